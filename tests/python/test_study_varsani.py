"""The study varsani2021: its fitted cell, what follows from it, and its judges."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mqttlab.studies import simulate
from mqttlab.studies.varsani2021 import STUDY, experiment
from mqttlab.studies.varsani2021.experiment import ALONE, Burst, Measured, Single, altered

SHORT = experiment.Effort(messages=20, bursts=2, burst_bytes_max=100_000)
SINGLES = [Single(payload=1), Single(payload=4096), Single(payload=10_000), Single(payload=1, qos=2),
           altered(Single(payload=1), ALONE["lwIP delays acknowledgements"])]
BURSTS = [Burst(topics=1, payload=1), Burst(topics=100, payload=1024), Burst(topics=100, payload=1, form="+ and #")]


@pytest.fixture(scope="module")
def results() -> Mapping[str, Measured]:
    """Some cells of each kind, in short."""
    return simulate({case.name: case.scenario(SHORT) for case in [*SINGLES, *BURSTS]}, experiment.measure)


def test_the_one_fitted_number_makes_its_cell(results: Mapping[str, Measured]) -> None:
    assert results[Burst(topics=1, payload=1).name].completion_ms == pytest.approx(8, rel=0.02)


def test_latency_is_a_round_trip_for_each_send_buffer(results: Mapping[str, Measured]) -> None:
    # 4096 B leave in two buffers of 2048 B, 10 000 B in five: a crossing, and a round trip of 7.84 ms for each but one.
    assert results["single-4096B-1000ms"].delays.p50_ms > 2 * 3.92 + 7.84
    assert results["single-10000B-1000ms"].delays.p50_ms > 2 * 3.92 + 4 * 7.84
    assert results["single-1B-1000ms-qos2"].delays.p50_ms == pytest.approx(3 * 8, rel=0.05)


def test_the_first_message_waits_behind_the_handshake_where_that_is_acknowledged_late(
    results: Mapping[str, Measured],
) -> None:
    first = results["single-1B-1000ms-lwip-delays"].first_ms
    assert first[0] > 1.5 * first[10]
    at_once = results["single-1B-1000ms"].first_ms
    assert at_once[0] == pytest.approx(at_once[10], rel=0.01)


def test_a_burst_cannot_be_faster_than_its_link(results: Mapping[str, Measured]) -> None:
    for case in BURSTS:
        ours = results[case.name]
        assert ours.delays.never_percent == 0
        # 20 Mbit/s.
        assert ours.completion_ms > case.topics * case.payload * 8 / 20e3 + 7.84


def test_every_printed_row_has_its_case() -> None:
    assert len(experiment.printed(STUDY.published)) == 20
    names = {case.name for case in experiment.cases(STUDY.published, ["1"])}
    assert set(experiment.printed(STUDY.published)) == names
