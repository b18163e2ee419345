"""The study andersen2021: its scenarios, its tables, its claims."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from mqttlab.cli.main import main
from mqttlab.errors import UsageError
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from mqttlab.studies import Comparison, simulate
from mqttlab.studies.andersen2021 import STUDY, experiment, judges
from mqttlab.studies.andersen2021.beyond import (
    NARROW,
    NEVER,
    PAHO_1_5_PLACE,
    PAHO_1_5_SEEDS,
    SEEDS,
    TABLES,
    Johnsen,
    Paho,
    moments_name,
    repeating_name,
    seeded_name,
)
from mqttlab.studies.andersen2021.case import THOROUGH, Case, Effort
from mqttlab.studies.andersen2021.charts import charts
from mqttlab.studies.andersen2021.experiment import Application, Measured
from mqttlab.studies.claims import Ran
from mqttlab.studies.study import published_rows

PUBLISHED = STUDY.published
SHORT = Effort(duration_s=60.0, cool_down_s=20.0)


@pytest.fixture(scope="module")
def results() -> dict[str, Measured]:
    """Two of the scenarios, shortened."""
    wanted = [case for case in experiment.cases(PUBLISHED, []) if case.name in ("satcom-gps", "nato-narrowband-gps")]
    return dict(simulate({case.name: case.scenario(SHORT) for case in wanted}, experiment.measure))


def test_the_tables_name_the_ten_scenario_files() -> None:
    cases = experiment.cases(PUBLISHED, [])
    further = [case for table in TABLES for case in experiment.cases(PUBLISHED, [table])]
    # Those that never repeat are six of the ten; the study's own clients are in its own tables.
    own = [case for case in cases if "paho-1-5" in case.name]
    assert len(own) == 6 * len(PAHO_1_5_SEEDS)
    assert len({case.name for case in cases}) == len(cases) == 10 + len(own) + len(further) - 6


def test_clients_that_count_silence_are_performed_by_paho_live() -> None:
    cases = [case for case in experiment.cases(PUBLISHED, ["clients that count silence"]) if isinstance(case, Paho)]
    assert len(cases) == 6
    for case in cases:
        assert case.scenario(THOROUGH)["mqtt"]["ping"] == "silence"
        live = case.live_scenario(THOROUGH)
        plan = compile_plan(parse_values({**live, "backend": "live"}, case.name))
        assert all(group["program"] is not None for group in plan["groups"])
        # What a group does, its program is told: its own topic, QoS and payload.
        for told, did in zip(live["groups"], case.scenario(THOROUGH)["groups"], strict=True):
            does = did["publish"] if "publish" in did else did["subscribe"][0]
            assert str(does["qos"]) in told["client"]["command"]
            assert (does.get("topic") or does["filter"]) in told["client"]["command"]


def test_the_studys_own_clients_repeat_and_are_a_version_of_paho_of_their_own_live(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:
    cases = [case for case in experiment.cases(PUBLISHED, ["5.6", "5.8", "5.10"]) if "paho-1-5" in case.name]
    assert len(cases) == 3 * 2 * len(PAHO_1_5_SEEDS)
    case = cases[0]
    assert isinstance(case, Paho)
    assert case.scenario(THOROUGH)["mqtt"] == {"ping": "interval", "retry": "20 s"}
    monkeypatch.delenv(PAHO_1_5_PLACE, raising=False)
    with pytest.raises(UsageError, match=r"paho-mqtt==1\.5\.1"):
        case.live_scenario(THOROUGH)
    monkeypatch.setenv(PAHO_1_5_PLACE, str(tmp_path))
    live = case.live_scenario(THOROUGH)
    assert all(group["client"]["environment"] == {"PYTHONPATH": str(tmp_path)} for group in live["groups"])
    compile_plan(parse_values({**live, "backend": "live"}, case.name))


def test_a_recommendation_is_as_certain_as_its_seeds_agree() -> None:
    def measured(lost: float) -> Measured:
        return Measured(network={}, by_qos={qos: Application(
            messages_sent=10, messages_lost_percent=lost if qos else 0.0, delay_s_min=1.0, delay_s_mean=1.0,
            delay_s_max=1.0, disconnects=0) for qos in (0, 1, 2)})

    results = {seeded_name("satcom-gps", seed): measured(5.0 * (seed > 3)) for seed in SEEDS}
    shares = experiment.certainty("satcom-gps", results)
    assert shares[0][0] == 100 and shares[1][0] == pytest.approx(30)
    # Wilson's interval of 3 of 10 is 10.8 to 60.3 %.
    assert shares[1][1] == pytest.approx(30.3, abs=0.1)
    assert experiment.certainty("satcom-gps", dict(list(results.items())[1:])) == {}


def test_recommendations_are_judged_by_every_seed() -> None:
    fine = Application(messages_sent=540, messages_lost_percent=0.0, delay_s_min=1.0, delay_s_mean=1.0, delay_s_max=1.0,
                       disconnects=0)
    printed = {experiment.case_name(row["network"], row["payload"]): row["qos"]
               for _, row in published_rows(PUBLISHED, "table_6_1_recommendations")}

    def verdict(also: int, *, seeded: bool = True) -> str:
        """With so many seeds CNR 1 % is recommended for GPS at QoS 1, too; else all is as table 6.1 has it."""
        def run(name: str, seed: int) -> Measured:
            return Measured(network={}, by_qos={qos: replace(
                fine, disconnects=int(str(qos) not in printed[name]
                                      and not (name == "cnr-1-gps" and qos == 1 and seed <= also)))
                for qos in (0, 1, 2)})

        runs = {name: run(name, also + 1) for name in printed}
        if seeded:
            runs |= {seeded_name(name, seed): run(name, seed) for name in printed for seed in SEEDS}
        found = judges.evaluate(PUBLISHED, Ran(runs))
        return next(claim.verdict for claim in found if claim.claim == "recommendations")

    assert [verdict(also) for also in (0, 4, 10)] == ["held", "undecided", "not reproduced"]
    # Table 6.1 alone needs one run of each, whatever they say.
    assert verdict(0, seeded=False) == "undecided"


def test_a_table_needs_only_its_own_scenarios() -> None:
    own = [repeating_name(f"cnr-10-{payload}", seed) for payload in ("gps", "image") for seed in PAHO_1_5_SEEDS]
    assert [case.name for case in experiment.cases(PUBLISHED, ["5.10"])] == ["cnr-10-gps", "cnr-10-image", *own]
    assert len(experiment.cases(PUBLISHED, [NEVER])) == 3 * 2
    assert {case.name for case in experiment.cases(PUBLISHED, ["5.1"])} == {
        "tactical-broadband-gps", "tactical-broadband-image"}


def test_full_length_is_ten_minutes_and_five_of_cool_down() -> None:
    case: Case = experiment.cases(PUBLISHED, ["5.3"])[0]
    assert case.scenario(THOROUGH)["phases"] == {"duration": "600 s", "cool_down": "300 s"}


def test_delays_respect_what_the_network_imposes(results: dict[str, Measured]) -> None:
    # SATCOM: 550 ms in one direction; a GPS frame takes at least 12 ms at 250 kbit/s. QoS 2 passes it three times.
    rows = results["satcom-gps"].by_qos
    assert [row.messages_lost_percent for row in rows.values()] == [0, 0, 0]
    assert all(row.messages_sent == 54 for row in rows.values())
    assert 0.562 < rows[0].delay_s_min <= rows[0].delay_s_mean < 0.8
    assert 3 * 0.55 < rows[2].delay_s_min < 2.1


def test_the_narrow_link_is_slower_and_never_faster_than_its_rate(results: dict[str, Measured]) -> None:
    narrow, wide = results["nato-narrowband-gps"], results["satcom-gps"]
    assert all(narrow.by_qos[qos].delay_s_mean > wide.by_qos[qos].delay_s_mean for qos in (0, 1, 2))
    assert 10 < narrow.network["data_rate_kbit_s"] <= 16
    assert narrow.network["tcp_retransmissions"] > wide.network["tcp_retransmissions"]


def test_values_stand_beside_the_printed_ones(results: dict[str, Measured]) -> None:
    cells = experiment.compare(PUBLISHED, results)
    assert list(dict.fromkeys(cell.table for cell in cells)) == [
        "4.1", "5.3", "5.4", "5.5", "5.6", "6.1", NEVER]
    found = {(cell.place, cell.metric): cell for cell in cells}
    cell = found["SATCOM, GPS, QoS 2", "mean delay, s"]
    assert cell.published == 1.72
    assert cell.ours == results["satcom-gps"].by_qos[2].delay_s_mean
    assert found["SATCOM, GPS", "total_packets"].published == 13829


def judged_on_the_studys_own_numbers() -> dict[str, Comparison]:
    rows = experiment.published_application(PUBLISHED)
    network = experiment.published_network(PUBLISHED)
    names = {name for name, _ in rows}
    own = Ran({name: Measured(by_qos={qos: rows[name, qos] for qos in (0, 1, 2)},
                          network={metric: value for (of, metric), value in network.items() if of == name})
           for name in names})
    # Its clients were paho-mqtt 1.5.1.
    own |= {repeating_name(name, seed): own[name] for name in names for seed in PAHO_1_5_SEEDS}
    own |= {seeded_name(name, seed): own[name] for name in names for seed in SEEDS}
    own |= {moments_name(*name.rsplit("-", 1)): own[name] for name in names}
    return {claim.claim: claim for claim in judges.evaluate(PUBLISHED, own)}


def test_the_judges_agree_with_the_study_about_its_own_numbers() -> None:
    verdicts = {claim: comparison.holds for claim, comparison in judged_on_the_studys_own_numbers().items()}
    # The study prints nothing of larger messages, of MQTT-SN, or of the studies that it cites.
    assert "even-larger-messages" not in verdicts and "mqtt-sn-prepared" not in verdicts
    assert not any(claim.startswith(("johnsen", "lee")) for claim in verdicts)
    # Images on SATCOM take 0.87 s at QoS 0 and 1.24 s at QoS 1.
    assert verdicts.pop("qos0-equals-qos1") is False
    assert set(verdicts.values()) == {True}


def test_means_within_their_intervals_do_not_decide_an_order() -> None:
    def run(lost: tuple[float, ...], delay_s: tuple[float, ...]) -> Measured:
        return Measured(network={}, by_qos={qos: Application(
            messages_sent=540, messages_lost_percent=lost[qos], delay_s_min=1, delay_s_mean=delay_s[qos], delay_s_max=1,
            disconnects=40) for qos in (0, 1, 2)})

    def verdict(last: float) -> str:
        # On CNR 10 % QoS 1 waits 187 s, and QoS 2 about as long, here and there 110 s more or less.
        seeds = {repeating_name("cnr-1-gps", seed): run((44, 28, 91), (45, 234, 154)) for seed in PAHO_1_5_SEEDS}
        seeds |= {repeating_name("cnr-10-gps", seed): run((58, 38, 85), (37, 187, last + 60 * (seed - 3)))
                  for seed in PAHO_1_5_SEEDS}
        plain = {name: run((25, 3, 10), (50, 57, 165)) for name in ("cnr-1-gps", "cnr-1-gps-paho")}
        found = judges.evaluate(PUBLISHED, Ran({**seeds, **plain}))
        return next(claim.verdict for claim in found if claim.claim == "cnr-qos1-loses-least")

    assert verdict(225) == verdict(150) == "undecided"
    assert verdict(50) == "held" and verdict(500) == "not reproduced"


def test_a_claim_that_a_gateways_unknown_window_decides_is_undecided() -> None:
    def verdict(sn: float, free: float) -> str:
        runs = Ran()
        for network in NARROW:
            for qos in (0, 1):
                for protocol, window, delay_s in (("mqtt", 1, 2.0), ("mqtt-sn", 1, sn), ("mqtt-sn", 0, free)):
                    row = Application(messages_sent=9, messages_lost_percent=0, delay_s_min=1, delay_s_mean=delay_s,
                                      delay_s_max=1, disconnects=0)
                    name = Johnsen(network=network, protocol=protocol, qos=qos, window=window).name
                    runs[name] = Measured(network={"spurious_retransmissions": 0.0, "tcp_retransmissions": 1.0},
                                          by_qos={qos: row})
        return next(claim.verdict for claim in judges.evaluate(PUBLISHED, runs)
                    if claim.claim == "johnsen-mqtt-lowest-delay")

    assert verdict(400, 1) == "undecided"
    assert verdict(400, 300) == "held" and verdict(1, 1) == "not reproduced"


def test_a_claim_that_does_not_hold_says_why() -> None:
    for claim in judged_on_the_studys_own_numbers().values():
        assert claim.holds or claim.reason


def test_lost_messages_change_a_recommendation() -> None:
    fine = Application(messages_sent=540, messages_lost_percent=0.0, delay_s_min=0.1, delay_s_mean=0.1,
                       delay_s_max=0.1, disconnects=0)
    lossy = Application(**{**vars(fine), "messages_lost_percent": 1.0})
    assert judges._levels({0: fine, 1: fine, 2: fine}) == "0 and 1 and 2"
    assert judges._levels({0: fine, 1: lossy, 2: fine}) == "0 and 2"


def test_the_command_prints_one_table_and_writes_it(tmp_path: Path) -> None:
    out = tmp_path / "table.md"
    ran = CliRunner().invoke(main, ["study", "andersen2021", "--quick", "--table", "5.4", "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    assert "2 simulations in" in ran.output
    assert "| SATCOM, GPS, QoS 0 | mean delay, s | 0.59 |" in out.read_text(encoding="utf-8")


def test_one_live_run_by_the_studys_own_clients_is_no_mean_of_five_in_a_figure() -> None:
    # The live cells have one of the five seeds that are simulated.
    row = Application(messages_sent=9, messages_lost_percent=0, delay_s_min=1, delay_s_mean=1, delay_s_max=1,
                      disconnects=0)
    network = {"data_rate_kbit_s": 1.0, "tcp_retransmissions": 0.0}
    one = Measured(by_qos=dict.fromkeys((0, 1, 2), row), network=network)
    found = charts(STUDY.published, Ran({"cnr-1-gps": one, repeating_name("cnr-1-gps", 1): one}))
    by_name = {series.name: series.points for series in found[0].series}
    assert len(by_name["QoS 1"]) == 1 and not by_name["QoS 1, as paho-mqtt 1.5.1"]
    five = {repeating_name("cnr-1-gps", seed): one for seed in PAHO_1_5_SEEDS}
    found = charts(STUDY.published, Ran({"cnr-1-gps": one, **five}))
    assert len({series.name: series.points for series in found[0].series}["QoS 1, as paho-mqtt 1.5.1"]) == 1
    # In a table it stands for its repetition.
    cells = experiment.compare(STUDY.published, {repeating_name("cnr-1-gps", 1): one})
    assert {(cell.table, cell.ours) for cell in cells if cell.metric == "mean delay, s"} == {("5.8", 1)}
    assert experiment.compare(STUDY.published, {}) == []


def test_the_studys_own_clients_stand_beside_its_printed_rows() -> None:
    def measured(mean_s: float) -> Measured:
        row = Application(messages_sent=540, messages_lost_percent=0, delay_s_min=1, delay_s_mean=mean_s,
                          delay_s_max=9, disconnects=0, delay_s_half=0.5)
        return Measured(by_qos=dict.fromkeys((0, 1, 2), row), network={"total_packets": 100 * mean_s})

    runs = {repeating_name("cnr-10-gps", seed): measured(10 + seed) for seed in PAHO_1_5_SEEDS}
    cells = experiment.compare(STUDY.published, {"cnr-10-gps": measured(3), "satcom-gps": measured(2), **runs})
    by_table = {(cell.table, cell.metric): cell for cell in cells}
    # Means over five seeds, with the interval between them; those that never repeat have a table of their own.
    own = by_table["5.10", "mean delay, s"]
    assert own.ours == 13 and own.half is not None and own.half != 0.5
    assert by_table["5.9", "total_packets"].ours == 1300 and not by_table["5.9", "total_packets"].shorter
    assert by_table[NEVER, "mean delay, s"].ours == 3 and by_table[NEVER, "total_packets"].ours == 300
    assert by_table["5.4", "mean delay, s"].ours == 2 and by_table["5.4", "mean delay, s"].half == 0.5
