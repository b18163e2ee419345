"""The study perez2005: its error-free tables, and how their fit is counted."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import get_args

import pytest

from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from mqttlab.studies import simulate
from mqttlab.studies.claims import Ran, claims_of, decides
from mqttlab.studies.document import cell_row
from mqttlab.studies.perez2005 import STUDY, beyond, experiment, judges, readings
from mqttlab.studies.perez2005.experiment import Ethernet, Measured, Wifi
from mqttlab.studies.table import INFINITE, Cell, fits

PUBLISHED = STUDY.published


@pytest.fixture(scope="module")
def error_free() -> Mapping[str, Measured]:
    """Every scenario on Ethernet without bit errors, in short."""
    cases = [case for case in judges.cases(PUBLISHED, []) if isinstance(case, Ethernet) and case.ber == 0]
    assert {case.qos for case in cases} == {0, 1, 2}
    return simulate({case.name: case.scenario(experiment.QUICK) for case in cases}, experiment.measure)


def test_delays_without_errors_are_those_of_four_cables(error_free: Mapping[str, Measured]) -> None:
    # Client, switch, broker, switch, client at 1 ms each; QoS 2 passes them three times.
    cells = experiment.compare_delays(PUBLISHED, error_free)
    assert len(cells) > 10
    for cell in cells:
        # Printed as 0 is what the broker's and the cables' times leave of a spread.
        assert cell.ours == pytest.approx(cell.published, rel=0.05, abs=0.1), cell.place


def test_efficiencies_without_errors_are_the_printed_ones(error_free: Mapping[str, Measured]) -> None:
    cells = experiment.compare_efficiencies(PUBLISHED, error_free)
    assert {cell.table for cell in cells} == {"5.6", "5.7", "5.10"}
    for cell in cells:
        assert cell.ours == pytest.approx(cell.published, abs=0.02), f"{cell.place} {cell.metric}"


def test_the_settings_are_the_printed_ones() -> None:
    further = {case.name for table in beyond.TABLES.values() for case in table}
    cases = [case for case in judges.cases(PUBLISHED, []) if case.name not in further]
    for case in cases:
        values = case.scenario(experiment.THOROUGH)
        assert values["mqtt"]["retry"] == values["broker"]["retry"] == "10 s"
        if isinstance(case, Wifi):
            radio = values["radio"]
            assert (radio["transmit_power"], radio["area"]) == (
                ("3 dBm", "100 m x 100 m") if case.clients == 2 else ("7.78 dBm", "150 m x 150 m"))
            assert radio["sensitivity"] == ("-93.1 dBm" if case.apart else "-100 dBm")
    assert {case.clients for case in cases if isinstance(case, Wifi)} == {2, 20}
    # Nobody but the subscribers of 20 clients has fewer than 50 000 messages when a run is over.
    assert experiment.THOROUGH.duration_s(25) * 25 >= 50_000
    assert experiment.THOROUGH.duration_s(200) * 200 >= 50_000


def test_section_5_2_1_has_an_mss_of_1024_no_options_and_a_payload_with_topic_and_qos() -> None:
    # Tables 5.2 and 5.3 and everything with 30 B; 536 B and timestamps come with section 5.2.2.
    first = [cell.case for cell in experiment.efficiency_cells(PUBLISHED) if cell.table in ("5.2", "5.3")]
    first += [*beyond.RISING, *beyond.IN_BURSTS]
    for case in first:
        values = case.scenario(experiment.THOROUGH)
        for host in values["hosts"].values():
            assert host["tcp"]["mss"] == "1024 B" and host["tcp"]["send_buffer"] == "32768 B"
            assert host["tcp"]["timestamps"] is False and "window_scaling" not in host["tcp"]
        (publish,) = [group["publish"] for group in values["groups"] if "publish" in group]
        assert publish["payload"] == f"{case.payload - len(publish['topic']) - 1} B"
    later = [cell.case for cell in experiment.delay_cells(PUBLISHED) if cell.table == "5.5"]
    assert {case.scenario(experiment.QUICK)["hosts"]["broker"]["tcp"]["mss"] for case in later} == {"536 B"}


def test_table_5_2_comes_out_with_the_payload_as_the_study_counts_it() -> None:
    cases = {case.name: case for case in judges.cases(PUBLISHED, ["5.2"])}
    results = simulate({name: case.scenario(experiment.QUICK) for name, case in cases.items()}, experiment.measure)
    cells = [cell for cell in experiment.compare(PUBLISHED, results) if cell.metric == "publisher_b_efficiency"]
    assert len(cells) == 3
    for cell in cells:
        # 30 B of frames of 91 B, 30 of 157, 30 of 285: an ACK and MQTT's answers take 64 B each.
        assert abs(cell.ours - cell.published) <= 0.006, cell.place


def test_the_timeout_is_judged_where_figure_5_4_is() -> None:
    assert {(case.ber, case.payload) for one in beyond.STAMPED
            for case in [one.base if isinstance(one, beyond.Altered) else one]
            if isinstance(case, Ethernet)} == {(1e-4, 65)}
    claim = next(claim for claim in claims_of(PUBLISHED) if claim["id"] == "timestamps-lower-rto")
    decided = {case.name for case in judges.cases(PUBLISHED, []) if decides(claim, case.name)}
    assert decided == {case.name for case in beyond.STAMPED}


def test_the_publishers_buffer_is_held_against_the_brokers() -> None:
    case = beyond.bursts(payload=65, qos=0, mss=1024)
    (ours,) = simulate({case.name: case.scenario(experiment.QUICK)}, experiment.measure).values()
    runs = beyond.with_seeds(case)

    def verdict(publisher: float, broker: float) -> str:
        filled = replace(ours, publisher_buffer_bytes=publisher, broker_buffer_bytes=broker)
        found = judges.evaluate(PUBLISHED, Ran({run.name: filled for run in runs}))
        return next(claim.verdict for claim in found if claim.claim == "publishers-buffer-fills")

    assert 0 <= ours.publisher_buffer_bytes <= 32_768 and 0 <= ours.broker_buffer_bytes <= 32_768
    assert verdict(30_000, 5_000) == "held"
    assert verdict(8_000, 20_000) == verdict(30_000, 20_000) == "not reproduced"
    assert len(ours.greatest_by_second_ms["subscriber"]) == len(ours.rto_by_second_ms) == experiment.SECONDS_SHOWN


def verdicts(results: Mapping[str, Measured]) -> dict[str, str]:
    return {claim.claim: claim.verdict for claim in judges.evaluate(PUBLISHED, Ran(results))}


def test_a_rule_is_about_the_cells_of_its_sentence(error_free: Mapping[str, Measured]) -> None:
    some = next(iter(error_free.values()))

    def took(case: Ethernet | Wifi, ms: float) -> dict[str, Measured]:
        return {case.name: replace(some, delay_mean_ms=ms, never_percent=0.0, diverges=False)}

    # Five to six times the lower levels with RTS/CTS, three to four without: 11.2 and 5.7 are neither.
    def small(*six: float) -> str:
        cases = [judges.wifi(2, qos=qos, rts=rts) for rts in (False, True) for qos in (0, 1, 2)]
        return verdicts({name: value for case, ms in zip(cases, six, strict=True)
                         for name, value in took(case, ms).items()})["rts-cts-costs-small-network"]

    assert small(5, 7, 23, 6, 11, 49) == "held", "table 5.12 itself"
    assert small(5.3, 6.4, 30, 8.2, 11.6, 92) == "not reproduced"
    # RTS/CTS is on until section 5.3.4.2; that the channel carries it without says nothing of the sentence.
    rates = {**took(judges.faster(20, 10, rts=True), 17_100), **took(judges.faster(20, 10, rts=False), 266),
             **took(beyond.fuller(15), 11_500)}  # type: ignore[arg-type]
    assert verdicts(rates)["ten-a-second-collapses"] == "held"
    # Three topics lose at 200 B; at 50 B the study sees no difference.
    claim = next(claim for claim in claims_of(PUBLISHED) if claim["id"] == "more-topics-more-delay")
    assert "200 B" in claim["rule"] and "200 B" in claim["text"]


def test_seeds_that_do_not_agree_do_not_decide(error_free: Mapping[str, Measured]) -> None:
    some = next(iter(error_free.values()))

    def runs(payload: int, mss: int, qos: int, *delays_ms: float) -> dict[str, Measured]:
        cases = beyond.with_seeds(beyond.bursts(payload=payload, qos=qos, mss=mss))
        return {case.name: replace(some, delay_mean_ms=ms, never_percent=0.0, diverges=ms == INFINITE)
                for case, ms in zip(cases, delays_ms, strict=True)}

    def bursts(*at_qos_1: float) -> str:
        single = {judges.small(payload=30, ber=1e-4, p_bb=0.1, qos=qos, mss=1024).name: replace(
            some, delay_mean_ms=50.0, never_percent=0.0, diverges=False) for qos in (0, 1, 2)}
        return verdicts({**single, **runs(30, 1024, 0, *[570] * 5), **runs(30, 1024, 1, *at_qos_1),
                         **runs(30, 1024, 2, *[500] * 5)})["bursts-cost-an-order"]

    assert bursts(500, 500, 500, 500, 500) == "held"
    assert bursts(500, 500, 500, 500, INFINITE) == bursts(60, 60, 60, 60, INFINITE) == "undecided"
    assert bursts(60, 60, 60, 60, 60) == bursts(2000, INFINITE, 2000, 2000, 2000) == "not reproduced"

    def holds(at_536: Sequence[float], at_1024: Sequence[float] = [INFINITE] * 5, apart_ms: float = 0.1) -> str:
        low = {judges.small(payload=65, ber=1e-6, p_bb=0.8, qos=qos, mss=mss).name: replace(
            some, delay_mean_ms=4.0 + apart_ms * (mss == 1024), never_percent=0.0, diverges=False)
            for qos in (0, 1, 2) for mss in (536, 1024)}
        return verdicts({name: run for qos in (0, 1, 2) for name, run in {
            **low, **runs(65, 536, qos, *at_536), **runs(65, 1024, qos, *at_1024)}.items()})["mss-1024-diverges"]

    assert holds([150] * 5) == "held"
    assert holds([150, 150, 150, 150, INFINITE]) == "undecided"
    assert holds([INFINITE] * 5) == holds([150] * 5, [150] * 5) == holds([150] * 5, apart_ms=1.0) == "not reproduced"


def test_one_run_that_ends_with_a_backlog_does_not_decide(error_free: Mapping[str, Measured]) -> None:
    some = error_free[judges.large(payload=200, ber=0.0, p_bb=0.1, qos=0).name]

    def verdict(never_percent: float, three_ms: float) -> str:
        """Three topics lose half of R at QoS 0, and nothing at QoS 1 and 2."""
        row = some.efficiency["subscriber-1"]
        half = {**row, "application_received_bytes": float(row["application_received_bytes"] or 0) / 2}
        return verdicts({judges.large(payload=payload, ber=1e-4, p_bb=0.8, qos=qos).name: replace(
            some, never_percent=never_percent, by_subscriber={"subscriber-1": 10.0, "subscriber-3": three_ms},
            efficiency={"subscriber-1": row, "subscriber-3": row if qos else half})
            for payload in (50, 200) for qos in (0, 1, 2)})["more-topics-more-delay"]

    assert verdict(0.0, 20.0) == "held" and verdict(0.0, 5.0) == "not reproduced"
    assert verdict(28.9, 20.0) == verdict(28.9, 5.0) == "undecided"


def test_in_full_no_scenario_ends_before_the_studys_rule() -> None:
    further = {case.name for table in beyond.TABLES.values() for case in table}
    for case in judges.cases(PUBLISHED, []):
        values = case.scenario(experiment.FULL)
        plan = compile_plan(parse_values({**values, "backend": "sim"}))
        if case.name in further:
            continue
        stop = dict(values["sim"]["stop"])
        backlog = stop.pop("deliveries_outstanding", None)
        assert stop == {"relative_accuracy": "1 %", "messages_per_subscriber": 50_000}
        # Ten minutes of everything that 20 stations send: 4, 3 and 3 publishers to 10, 6 and 3 subscribers.
        crowded = isinstance(case, Wifi) and case.clients == 20
        assert backlog == (600 * 67 * (case.per_s or 1) if crowded else None), case.name
        per_s: dict[str, float] = defaultdict(float)
        for group in values["groups"]:
            if "publish" in group:
                per_s[group["publish"]["topic"]] += group.get("count", 1) * float(group["publish"]["rate"].split()[0])
        least_per_s = min(sum(per_s[one["filter"]] for one in group["subscribe"])
                          for group in values["groups"] if "subscribe" in group)
        assert plan["phases"]["duration_ns"] / 1e9 * least_per_s >= 50_000, case.name


def test_a_backlog_ends_a_run_of_twenty_stations_and_has_no_mean() -> None:
    # Three times as many messages as the study's, in bad channels at QoS 2: nearly all of them wait.
    case = Wifi(clients=20, payload=1000, mean_bad_ms=120, rts_cts=True, qos=2, per_s=3)
    effort = replace(experiment.QUICK, crowded_s=600.0, backlog_s=200.0)
    values = case.scenario(effort)
    assert values["sim"]["stop"]["deliveries_outstanding"] == 40_200
    (measured,) = simulate({case.name: values}, experiment.measure).values()
    assert measured.diverges and measured.grows and not measured.ended_by_rule
    # It ended long before its ten minutes, which have 120 600 deliveries.
    assert measured.messages < 30_000 and measured.delay_ms == INFINITE


def test_the_second_reading_has_the_broker_in_reach_of_all_and_some_apart() -> None:
    # Free space to 1 m at 2.4 GHz costs 40.05 dB, and then 30 dB a decade; 6 mW are 7.78 dBm.
    reach_m = 10 ** ((7.78 + 93.1 - 40.05) / 30)
    broker, *clients = experiment.places()
    assert len(clients) == 20
    assert max(math.dist(broker, client) for client in clients) < reach_m
    apart = [math.dist(one, other) > reach_m for one, other in itertools.combinations(clients, 2)]
    assert 0.2 < sum(apart) / len(apart) < 0.5


def test_table_5_20_is_not_table_5_2() -> None:
    cells = experiment.efficiency_cells(PUBLISHED)
    assert {isinstance(cell.case, Wifi) for cell in cells if cell.table == "5.20"} == {True}
    assert {isinstance(cell.case, Ethernet) for cell in cells if cell.table == "5.2"} == {True}
    assert judges.tables(PUBLISHED)[:3] == ["figures 4.3 and 4.4", "5.2", "5.3"]


def test_the_mean_bit_error_rate_is_that_of_section_4_3() -> None:
    # p_B = p_GB / (p_GB + 1 - p_BB), of which 6.5 % are wrong.
    assert experiment.mean_error_rate(1e-4, 0.1) == pytest.approx(7.2e-6, rel=0.01)
    assert experiment.mean_error_rate(1e-4, 0.8) == pytest.approx(3.25e-5, rel=0.01)
    for p_bb in (0.1, 0.8):
        by_definition = experiment.good_to_bad_of(1e-4, p_bb)
        assert experiment.mean_error_rate(by_definition, p_bb) == pytest.approx(1e-4, rel=1e-9)
    # Of frames of 125 B section 5.2.2 expects a tenth to be lost, which single wrong bits make.
    assert experiment.frame_loss(1e-4, 0.1, 125) == pytest.approx(0.007, abs=0.0005)
    assert experiment.frame_loss(experiment.good_to_bad_of(1e-4, 0.1), 0.1, 125) == pytest.approx(0.1, abs=0.01)


def test_the_readings_on_the_page_are_those_of_the_code() -> None:
    page = (PUBLISHED.parent / "results.md").read_text(encoding="utf-8")
    assert [text for _, text, _ in readings.TOLD if f" | {text} | " not in page] == []


def test_what_is_changed_is_one_thing_alone() -> None:
    changed = [case for case in [*beyond.CHANGED, *beyond.READ] if isinstance(case, beyond.Altered)]
    assert {case.change for case in changed} == set(get_args(beyond.Change))
    for case in changed:
        before, after = case.base.scenario(experiment.QUICK), case.scenario(experiment.QUICK)
        assert {key for key in before.keys() | after.keys() if after.get(key) != before.get(key)} - {"name"} == {
            "seed": {"seed"}, "no repeats": {"mqtt", "broker"}, "rate": {"groups"}, "topic": {"groups"},
            "loss": {"radio"}, "no switch": {"trunk"}, "delayed ACK": {"hosts"}, "Nagle": {"groups", "broker"},
            "bad bits": {"networks", "trunk"}, "mean BER": {"networks", "trunk"},
        }[case.change], case.name  # fmt: skip


def test_hundreds_of_stations_are_simulated_and_those_out_of_range_lose() -> None:
    cases = [beyond.Crowd(clients=200, per_s=20, medium="802.11b"),
             beyond.Crowd(clients=20, per_s=20, medium="802.11b", walks=True, apart=True)]
    short = replace(experiment.QUICK, crowd_s=10.0)
    many, walking = simulate({case.name: case.scenario(short) for case in cases}, experiment.measure).values()
    assert many.never_percent == 0 and 1 < many.delay_mean_ms < 10
    assert walking.never_percent > 5


def test_a_fit_counts_half_of_the_last_digit_printed_as_equal() -> None:
    cells = [_cell(0.02, 0.0249), _cell(0.02, 0.026), _cell(485.0, 485.4), _cell(100.0, 120.0),
             _cell(INFINITE, 3.0), _cell(0.00003, 0.000034)]
    (fit,) = fits(cells)
    # What has no bound there and a value here is as wrong as it can be.
    assert fit.cells == 6
    assert fit.within == (pytest.approx(3 / 6), pytest.approx(4 / 6))
    assert fit.median_ratio == pytest.approx(1.2)


def test_what_has_no_bound_fits_what_has_none_and_what_is_printed_as_more() -> None:
    more = replace(_cell(INFINITE, 1200.0), bound=1000.0)
    for cell, share in ((_cell(INFINITE, 3.0), 0), (_cell(3.0, INFINITE), 0), (_cell(INFINITE, INFINITE), 1), (more, 1),
                        (replace(more, ours=900.0), 0), (replace(more, ours=INFINITE), 1)):
        (fit,) = fits([cell])
        assert fit.within == (share, share) and math.isnan(fit.median_ratio), cell
    assert fits([_cell(math.nan, INFINITE), _cell(3.0, math.nan), _cell(0.0, 3.0)]) == []
    assert cell_row(more)[2] == "> 1000"
    printed = [cell for cell in experiment.delay_cells(PUBLISHED) if cell.bound is not None]
    assert printed and all(cell.value == INFINITE for cell in printed)


def _cell(published: float, simulated: float) -> Cell:
    return Cell(table="1", place="here", metric="delay", published=published, ours=simulated)


def test_a_queue_that_has_most_of_the_messages_has_no_mean(error_free: Mapping[str, Measured]) -> None:
    name, held = next((case.name, error_free[case.name]) for case in judges.cases(PUBLISHED, [])
                      if case.name in error_free and case.name.startswith("e20-200B"))
    assert not held.grows and math.isfinite(held.delay_ms)
    for full in (replace(held, never_percent=50.1), replace(held, diverges=True)):
        assert full.grows and full.delay_ms == INFINITE
        cells = experiment.compare_delays(PUBLISHED, {name: full})
        assert cells and all(cell.ours == INFINITE and cell.half is None for cell in cells)
