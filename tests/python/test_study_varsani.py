"""The study varsani2021: its fitted cell, what follows from it, and its judges."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from mqttlab.studies import simulate
from mqttlab.studies.claims import Ran
from mqttlab.studies.delays import Delays
from mqttlab.studies.varsani2021 import STUDY, experiment, judges
from mqttlab.studies.varsani2021.experiment import ALONE, FORMS, PAYLOADS, Burst, Measured, Single, altered

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


def told(mean_ms: float = 8.0, *, completion_ms: float = 8.0, subscribe_ms: float = 8.0) -> Measured:
    found = Delays(count=50, mean_ms=mean_ms, half_ms=0.1, std_ms=0.0, min_ms=mean_ms, p50_ms=mean_ms, max_ms=mean_ms,
                   never_percent=0.0)
    return Measured(delays=found, first_ms=[mean_ms] * 50, completion_ms=completion_ms, completion_half_ms=None,
                    spread_ms=0.0, spread_half_ms=None, subscribe_ms=subscribe_ms, unsubscribe_ms=8.0,
                    arrived_after=0)


def verdict(claim: str, results: Ran) -> str:
    return next(found.verdict for found in judges.evaluate(STUDY.published, results) if found.claim == claim)


def test_a_list_of_a_hundred_filters_is_not_what_the_study_sent() -> None:
    # Of one filter every form takes 7.98 ms; the list takes 57.7.
    bursts = {(topics, form): Burst(topics=topics, payload=1, form=form).name
              for topics in (1, 100, 1000, 10_000) for form in FORMS}
    results = Ran({name: told(subscribe_ms=57.7 if key == (100, "plain") else 7.98) for key, name in bursts.items()})
    results[bursts[1, "+"]] = told(subscribe_ms=7.99)
    assert verdict("subscribe-latency-flat", results) == "held"
    results[bursts[1000, "#"]] = told(subscribe_ms=10.0)
    assert verdict("subscribe-latency-flat", results) == "not reproduced"


def test_what_the_model_has_alike_for_every_form_is_undecided_by_assumption() -> None:
    # As simulated: the bytes of a filter take a microsecond.
    times = {"plain": 7.9784, "+": 7.9792, "#": 7.9784, "+ and #": 7.9792}
    results = Ran({Burst(topics=topics, payload=1, form=form).name: told(subscribe_ms=times[form])
                   for topics in (1, 1000, 10_000) for form in FORMS})
    (found,) = (each for each in judges.evaluate(STUDY.published, results) if each.claim == "subscribe-latency-flat")
    assert found.verdict == "undecided" and found.reason.startswith("by assumption: ")


def test_a_line_is_asked_of_figure_11_as_of_figure_12() -> None:
    def judged(of_payload: Mapping[int, float]) -> str:
        results = Ran({Single(payload=payload).name: told(ms) for payload, ms in of_payload.items()})
        results |= {altered(Single(payload=payload), ALONE["Linux on the clients"]).name: told()
                    for payload in (1, 1024)}
        return verdict("payload-linear", results)

    assert judged({payload: 5 + payload / 80 for payload in PAYLOADS}) == "held"
    # Flat up to 512 B and then twice as much: R² is 0.994 over all, 0.816 up to 1024 B.
    assert judged(dict(zip(PAYLOADS, (7.99, 8.04, 8.09, 8.4, 16.9, 25.5, 50, 131), strict=True))) == "not reproduced"


def test_a_staircase_is_no_logarithm() -> None:
    def judged(times: list[float]) -> str:
        return verdict("topics-log-then-linear", Ran({
            Burst(topics=2**power, payload=1).name: told(completion_ms=ms) for power, ms in enumerate(times)}))

    ours = [7.99, 15.9, 15.9, 15.9, 16, 16.2, 24.3, 24.4, 32.4, 57, 106, 245, 449, 811]
    assert judged(ours) == "not reproduced"
    both = [8 + 3 * math.log2(n) if n <= 128 else 29 + (n - 128) / 10 for n in (2**power for power in range(14))]
    assert judged(both) == "held"
