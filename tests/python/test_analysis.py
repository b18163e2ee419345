"""Experiments analysed: from tidy tables with known answers, and from a small experiment that is run."""

from __future__ import annotations

import io
import itertools
import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from rich.console import Console

from mqttlab.analysis import Analysis, Cost, ExperimentDesign, Factor, Judged, Recommendations, analyse, methods
from mqttlab.analysis.answered import cheapest
from mqttlab.cli.main import main
from mqttlab.figures import experiment as figures
from mqttlab.report.experiment import print_experiment, tables, write_experiment
from mqttlab.report.experiment.answer import answer
from mqttlab.report.experiment.frames import frames

QOS = Factor(name="qos", levels=("0", "1", "2"), values=(None,) * 3, places=("groups[0].publish.qos",))
LOSS = Factor(name="loss", levels=("0 %", "1 %", "3 %", "8 %", "10 %"), values=(0, 0.01, 0.03, 0.08, 0.1), unit="ratio",
              kind="numeric", places=("networks[0].up.loss",))
ASKED = ExperimentDesign(name="made-up", question="Which?", factors=(QOS, LOSS), reference="0",
              responses=(("latency_ms_mean", "run", None), ("messages_lost_percent", "run", None)))


def table(blocks: int = 5, *, noise: float = 0.03, factors: tuple[Factor, ...] = (QOS, LOSS), drift: float = 0.0,
          controls: int = 0) -> pl.DataFrame:
    """Latency: 40 ms, × 1.5 for each QoS, + 800 ms for each unit of loss, blocks that differ; QoS 0 loses 40 % of what
    links lose."""
    rng = np.random.default_rng(7)
    rows: list[dict[str, Any]] = []
    for block in range(blocks):
        shared = rng.normal(0, 0.2)
        points = list(enumerate(itertools.product(*(factor.levels for factor in factors))))
        for place in rng.permutation(len(points)):
            point, levels = points[place]
            at = dict(zip([factor.name for factor in factors], levels, strict=True))
            qos, loss = int(at.get("qos", "1")), float(at.get("loss", "0 %").split()[0]) / 100
            latency = (40 + 800 * loss) * 1.5**qos * np.exp(shared + rng.normal(0, noise) + drift * len(rows))
            values = {"messages_lost_percent": (0.0 if qos else 40 * loss, "%"), "latency_ms_mean": (latency, "ms")}
            for metric, (value, unit) in values.items():
                rows.append(_row(at, point, block, len(rows) // 2, metric, value, unit))
    rows += [_row({factor.name: factor.levels[0] for factor in factors}, 0, 0, 7 * number, "latency_ms_mean",
                  40.0 + number, "ms") | {"kind": "control", "run": f"C{number}"} for number in range(controls)]
    return pl.DataFrame(rows, schema_overrides={"scope_name": pl.String, "qos__value": pl.Float64})


def _row(
    at: dict[str, str], point: int, block: int, order: int, metric: str, value: float, unit: str,
) -> dict[str, Any]:
    numbers = {f"{name}__value": float(level.split()[0]) / 100 if level.endswith("%") else None
               for name, level in at.items()}
    return {"point": point, "key": str(point), "kind": "run", **at, **numbers, "block": block, "repetition": block,
            "order_no": order, "seed": 100 + block, "run": f"R{order}", "directory": "gone", "state": "done",
            "verdict": "complete", "reason": "", "metric": metric, "scope": "run", "scope_name": None, "value": value,
            "unit": unit, "declared": True}


@pytest.fixture(scope="module")
def analysed() -> Analysis:
    return analyse(ASKED, table())


def test_points_are_compared_with_the_reference_in_pairs(analysed: Analysis) -> None:
    latency, lost = analysed.responses
    assert (latency.metric, lost.metric) == ("latency_ms_mean", "messages_lost_percent")
    assert len(latency.points) == 15 and all(point.interval.n == 5 for point in latency.points)
    found = {compared.point.levels["qos"] + compared.point.levels["loss"]: compared for compared in latency.compared}
    assert len(found) == 14
    # The blocks differ by 20 %, the pairs by 4 %: each ratio is found, and covers what made it.
    for name, ratio in (("10 %", 1.5), ("210 %", 2.25 * 3), ("08 %", 2.6)):
        compared = found[name]
        assert compared.tested.paired and compared.ratio.covers(ratio) and compared.ratio.half_width < 0.12 * ratio
        assert compared.verdict is not None and compared.verdict.word == "worse"
    assert analysed.words()["worse"] > 15


def test_effects_of_latencies_are_factors(analysed: Analysis) -> None:
    latency = analysed.responses[0]
    assert latency.logarithm and latency.model is not None and latency.model.blocked
    qos, loss = latency.model.term("qos"), latency.model.term("loss")
    assert qos.p is not None and qos.p < 1e-9 and qos.percent + loss.percent > 50
    interaction = latency.model.term("qos", "loss")
    assert interaction.p is not None and interaction.p > 0.01
    effects = frames(analysed, table())["effects"].filter(response=latency.name, of="qos")
    # On the logarithmic scale QoS 1 lies in the middle.
    assert effects["effect"].to_list() == pytest.approx([1 / 1.5, 1, 1.5], rel=0.05)


def test_trends_are_over_numeric_factors_at_each_level_of_the_others(analysed: Analysis) -> None:
    lines = analysed.responses[0].lines
    assert [line.others for line in lines] == [{"qos": "0"}, {"qos": "1"}, {"qos": "2"}]
    assert {line.trend.chosen.shape for line in lines} <= {"linear", "segmented"}
    for line in lines:
        # The blocks share what makes them differ: slopes lie around the true one as their mean does.
        assert line.trend.slope.estimate == pytest.approx(800 * 1.5 ** int(line.others["qos"]), rel=0.25)


def test_the_recommendation_follows_its_rule(analysed: Analysis) -> None:
    found = analysed.recommendations
    assert found is not None
    chosen = {row.environment["loss"]: row for row in found.rows}
    # QoS 0 loses 40 % of what the link loses: 1 % and less is acceptable.
    assert chosen["0 %"].choice == chosen["1 %"].choice == {"qos": "0"}
    assert chosen["3 %"].choice == chosen["10 %"].choice == {"qos": "1"}
    assert chosen["3 %"].refused == 1 and chosen["3 %"].certainty == 1.0 and chosen["3 %"].as_good == ()
    assert "lose at most 1 %" in found.rule


def test_what_did_not_arrive_counts_against_a_choice_though_nothing_of_it_was_lost() -> None:
    """QoS 0, the quickest, has 5 % under way at the end, which was kept and not asked for."""
    rows = table()
    kept = rows.filter(metric="messages_lost_percent").with_columns(
        metric=pl.lit("undelivered_percent"), value=pl.when(pl.col("qos") == "0").then(5.0).otherwise(0.0))
    found = analyse(ASKED, pl.concat([rows.with_columns(value=pl.when(pl.col("metric") == "messages_lost_percent").then(
        0.0).otherwise(pl.col("value"))), kept]))
    assert [each.metric for each in found.responses] == ["latency_ms_mean", "messages_lost_percent"]
    assert found.recommendations is not None and "leave undelivered at most 1 %" in found.recommendations.rule
    assert {row.choice["qos"] for row in found.recommendations.rows if row.choice} == {"1"}
    assert {row.refused for row in found.recommendations.rows} == {1}


WAYS = ("tcp", "tls", "wss")
TRANSPORT = Factor(name="transport", levels=WAYS, values=(None,) * 3, places=("groups[0].transport",))


def ways(latencies: dict[str, list[float]]) -> pl.DataFrame:
    """A table of an experiment on transports: a latency for each and block."""
    rows = [_row({"transport": way}, WAYS.index(way), block, 3 * block + WAYS.index(way), "latency_ms_p50", value, "ms")
            for way, values in latencies.items() for block, value in enumerate(values)]
    return pl.DataFrame(rows, schema_overrides={"scope_name": pl.String, "transport__value": pl.Float64})


def bytes_of(**kilobytes: float) -> Cost:
    return Cost(metric="ip_kb_per_device_hour_up", of="devices",
                values={str(WAYS.index(way)): (value,) for way, value in kilobytes.items()})


NOISE = [1.0, 1.04, 0.97, 1.02, 0.95]
AGAIN = [1.03, 0.96, 1.01, 0.94, 1.02]


@pytest.mark.parametrize(("latencies", "costs", "choice", "word"), [
    # A simulation has no variance: 301.408 ms against 301.424 ms was "over 99 % certain, also fine: none".
    ({"tls": [301.408] * 5, "tcp": [301.424] * 5}, {"tls": 172.0, "tcp": 100.0}, "tcp", "equivalent"),
    ({"tls": [825 * x for x in NOISE], "tcp": [840 * x for x in AGAIN]}, {"tls": 172.0, "tcp": 100.0}, "tcp",
     "undecided"),
    # What costs the same is no reason to leave the best; neither is what is not known, or what is worse.
    ({"tls": [301.408] * 5, "tcp": [301.424] * 5}, {"tls": 103.0, "tcp": 100.0}, "tls", None),
    ({"tls": [301.408] * 5, "tcp": [301.424] * 5}, {}, "tls", None),
    ({"tls": [300.0 * x for x in NOISE], "tcp": [400.0 * x for x in NOISE]}, {"tls": 172.0, "tcp": 100.0}, "tls", None),
    # One run tells nothing of chance: what is near is as good, what is far is not chosen for its cost.
    ({"tls": [300.0], "tcp": [310.0]}, {"tls": 172.0, "tcp": 100.0}, "tcp", "undecided"),
    ({"tls": [10.0], "tcp": [1000.0]}, {"tls": 172.0, "tcp": 100.0}, "tls", None),
    ({"tls": [301.408] * 5, "tcp": [301.424] * 5, "wss": [301.5] * 5}, {"tls": 172.0, "tcp": 120.0, "wss": 100.0},
     "wss", "equivalent"),
])
def test_of_those_that_are_as_good_the_cheapest_is_chosen(
    latencies: dict[str, list[float]], costs: dict[str, float], choice: str, word: str | None,
) -> None:
    design = ExperimentDesign(name="ways", factors=(TRANSPORT,), reference="0")
    found = analyse(design, ways(latencies), costs=[bytes_of(**costs)] if costs else []).recommendations
    assert found is not None
    [row] = found.rows
    assert row.choice == {"transport": choice}
    assert (row.best.word if row.best else None) == word


def test_chance_does_not_choose_another_level_in_each_environment() -> None:
    """Of two that no run tells apart, and that cost the same, each was the best in some places."""
    rows = [_row({"qos": qos, "loss": loss}, 2 * place + int(qos), block, 10 * block + place, "latency_ms_mean",
                 100 * noise[block] * (1.004 if (int(qos) + place) % 2 else 1.0), "ms")
            for place, loss in enumerate(LOSS.levels[:4]) for qos, noise in (("0", NOISE), ("1", AGAIN))
            for block in range(5)]
    tidy = pl.DataFrame(rows, schema_overrides={"scope_name": pl.String})
    factors = (replace(QOS, levels=("0", "1"), values=QOS.values[:2]),
               replace(LOSS, levels=LOSS.levels[:4], values=LOSS.values[:4]))
    found = analyse(replace(ASKED, factors=factors, reference="0"), tidy)
    assert found.recommendations is not None and len(found.recommendations.rows) == 4
    assert len({str(row.choice) for row in found.recommendations.rows}) == 1
    assert any(said.startswith("Choose qos ") and "in all 4 cases of loss" in said for said in answer(found).sentences)


def test_a_choice_that_breaks_a_threshold_is_not_taken_for_its_cost() -> None:
    design = ExperimentDesign(name="ways", factors=(TRANSPORT,), reference="0")
    broken = Judged(threshold="energy", point="transport tcp", key="0", verdict="broken", words="")
    found = analyse(design, ways({"tls": [301.408] * 5, "tcp": [301.424] * 5}), [broken],
                    [bytes_of(tls=172.0, tcp=100.0)]).recommendations
    assert found is not None and found.rows[0].choice == {"transport": "tls"} and found.rows[0].cheaper is None


def test_what_is_worse_and_cheaper_is_named() -> None:
    design = ExperimentDesign(name="ways", factors=(TRANSPORT,), reference="0")
    found = analyse(design, ways({"tls": [300.0 * x for x in NOISE], "tcp": [400.0 * x for x in NOISE]}),
                    costs=[bytes_of(tls=172.0, tcp=100.0)])
    assert found.recommendations is not None
    assert found.recommendations.rows[0].cheaper == {"transport": "tcp"}
    assert "It costs 72 % more bytes than transport tcp." in answer(found).sentences


def test_a_group_of_few_clients_does_not_hide_what_many_pay() -> None:
    costs = [bytes_of(tls=133.0, tcp=100.0), replace(bytes_of(tls=9_000.0, tcp=9_100.0), of="viewer")]
    assert cheapest(costs, ["0", "1"], 0.05) == ["0"]


@pytest.mark.parametrize(("places", "given"), [
    (("groups[0].publish.payload",), True), (("groups[*].publish[1].payload.size",), True),
    (("groups[a].publish.interval", "networks[0].up.loss"), True), (("groups[0].count",), True),
    (("phases.duration",), True), (("groups[0].churn.hold",), True), (("groups[0].publish.qos",), False),
    (("groups[0].publish.payload", "groups[0].publish.qos"), False), (("groups[0].counted",), False), ((), False),
])
def test_a_load_is_described_and_not_chosen(places: tuple[str, ...], given: bool) -> None:
    """It said: choose payload 50 B, every 10 s."""
    factor = replace(TRANSPORT, places=places)
    assert factor.environment is given
    found = analyse(ExperimentDesign(name="load", factors=(factor,)), ways({"tls": [300.0] * 3, "tcp": [400.0] * 3}))
    assert (found.recommendations is None) is given
    assert ("hoose" in answer(found).text) is not given


def test_a_response_without_a_name_is_of_all_that_its_scope_has() -> None:
    """Responses such as `{ metric = "latency_ms_mean", scope = "qos" }` were measured, and left out of the analysis."""
    means = table().filter(pl.col("metric") == "latency_ms_mean")
    scoped = pl.concat([means.with_columns(scope=pl.lit("group"), scope_name=pl.lit(name)) for name in ("a", "b")])
    for name, expected in ((None, ["a", "b"]), ("b", ["b"])):
        found = analyse(replace(ASKED, responses=(("latency_ms_mean", "group", name),)), scoped)
        assert [each.scope_name for each in found.responses] == expected


def test_simulations_do_not_drift_over_their_order() -> None:
    """Virtual time does not know what was simulated before: it said that the results drifted, p = 0.0016."""
    found = analyse(replace(ASKED, simulated=True), table(drift=0.002, controls=9)).responses[0]
    assert found.drift is None and analyse(ASKED, table(drift=0.002)).responses[0].drift is not None


def test_nothing_is_recommended_where_nothing_can_be_chosen() -> None:
    design = ExperimentDesign(name="x", factors=(LOSS,), reference="0")
    assert analyse(design, table(factors=(LOSS,))).recommendations is None


def test_drift_is_looked_for_in_control_runs_first() -> None:
    found = analyse(ASKED, table(controls=9)).responses[0]
    assert found.drift is not None and found.drift_of == "control runs" and found.drift.rho == pytest.approx(1)
    slow = analyse(ASKED, table(drift=0.002)).responses[0]
    # The blocks are in the model: what is left within them drifts.
    assert slow.drift is not None and slow.drift.p < 0.05
    assert slow.drift_of == "residuals of the model, within the blocks"
    steady = analyse(ASKED, table()).responses[0]
    assert steady.drift is not None and steady.drift.p > 0.05


def test_runs_that_do_not_count_are_listed_and_change_nothing(analysed: Analysis) -> None:
    bad = table().head(1).with_columns(
        state=pl.lit("invalid"), run=pl.lit("X"), reason=pl.lit("the emulator was late"), value=pl.lit(1e9))
    found = analyse(ASKED, pl.concat([table(), bad]))
    assert [(run.run, run.state, run.reason) for run in found.left_out] == [("X", "invalid", "the emulator was late")]
    assert found.responses[0].points == analysed.responses[0].points
    assert "1 invalid" in methods(found)


def test_few_skewed_runs_come_with_a_warning() -> None:
    rng = np.random.default_rng(3)
    heavy = table().with_columns(value=pl.when(pl.col("unit") == "ms").then(
        pl.Series(rng.lognormal(3, 1.2, table().height))).otherwise("value"))
    [warning] = analyse(ASKED, heavy).responses[0].warnings
    assert "skewed" in warning and "not in 95 %" in warning


@pytest.mark.parametrize("blocks", [1, 2])
def test_too_few_runs_have_no_invented_intervals(blocks: int) -> None:
    found = analyse(ASKED, table(blocks))
    latency = found.responses[0]
    if blocks == 1:
        assert latency.compared == () and "15 of 15 points have one run" in latency.warnings[0]
        assert not any(point.interval.bounded for point in latency.points)
    # One run of a point is as many runs as the model has parameters: nothing is left to judge by.
    assert (latency.model is None) == (blocks == 1)
    assert tables.points(found, latency)[1]


def test_no_runs_have_no_responses() -> None:
    found = analyse(ASKED, table().head(0))
    assert found.responses == () and found.recommendations is None and found.words() == {}
    assert "no runs of each" in methods(found)


def test_a_response_that_never_varies_is_a_bound() -> None:
    none = table().with_columns(value=pl.when(pl.col("unit") == "%").then(0.0).otherwise("value"))
    lost = analyse(ASKED, none).responses[1]
    assert not lost.varies and lost.compared == ()
    assert "0 % in all 75 runs; with 95 % confidence fewer than 3.9 % of runs have any." in tables.constant(lost)


def test_none_of_n_bounds_messages_as_well_as_runs() -> None:
    none = table().with_columns(value=pl.when(pl.col("unit") == "%").then(0.0).otherwise("value"))
    expected = none.filter(pl.col("unit") == "%").with_columns(
        metric=pl.lit("deliveries_expected"), unit=pl.lit("deliveries"), value=pl.lit(400.0))
    found = analyse(ASKED, pl.concat([none, expected]))
    # What is kept for the bound is no response of its own.
    assert [each.metric for each in found.responses] == ["latency_ms_mean", "messages_lost_percent"]
    lost = found.responses[1]
    assert {point.expected for point in lost.points} == {2000}
    # 1 - 0.05^(1/N): of 75 runs, and of 30,000 messages.
    assert "fewer than 3.9 % of runs have any, and where each is lost or not by itself, fewer than 0.01 %" in (
        tables.constant(lost))
    assert tables.of_point(lost, lost.points[0]) == "0 in all: in < 45 % of runs any, < 0.15 % of 2,000"
    # A run without it leaves nothing to bound.
    gone = analyse(ASKED, pl.concat([none, expected.head(74)])).responses[1]
    assert {point.expected for point in gone.points} == {None}
    design = replace(ASKED, responses=(*ASKED.responses, ("deliveries_expected", "run", None)))
    assert "deliveries_expected" in [each.metric for each in analyse(design, pl.concat([none, expected])).responses]


def test_what_a_choice_may_lose_is_the_experiments_to_say() -> None:
    strict, lenient = (recommend_at(percent) for percent in (0.5, 5.0))
    assert "lose at most 0.5 %" in strict.rule and "lose at most 5 %" in lenient.rule
    # QoS 0 is the quickest, and loses 3.2 % at 8 % loss.
    chosen = [{row.environment["loss"]: row.choice for row in found.rows}["8 %"] for found in (strict, lenient)]
    assert chosen == [{"qos": "1"}, {"qos": "0"}]


def recommend_at(percent: float) -> Recommendations:
    found = analyse(replace(ASKED, lost_most_percent=percent), table()).recommendations
    assert found is not None
    return found


@pytest.mark.parametrize("kind", ["latin-hypercube", "sobol", "search", "list", "one-at-a-time", "full"])
@pytest.mark.parametrize("reference", ["0", None])
def test_every_kind_of_design_has_a_report(kind: str, reference: str | None, tmp_path: Path) -> None:
    """Points that a design makes up are not among its factors' levels."""
    rng = np.random.default_rng(5)
    made_up = kind in ("latin-hypercube", "sobol", "search")
    factors = [replace(factor, levels=() if made_up else factor.levels) for factor in (QOS, LOSS)]
    rows = []
    for point in range(8):
        at = {"qos": str(point % 3), "loss": f"{point * 1.25:g} %" if made_up else LOSS.levels[point % 5]}
        rows += [_row(at, point, block, 8 * block + point, "latency_ms_mean", 40 + point + rng.normal(), "ms")
                 for block in range(3)]
    tidy = pl.DataFrame(rows, schema_overrides={"scope_name": pl.String, "qos__value": pl.Float64})
    found = analyse(replace(ASKED, kind=kind, factors=tuple(factors), reference=reference), tidy)
    [response] = found.responses
    assert (response.model is None) == made_up and (response.drift is None) == (kind == "search")
    assert bool(response.compared) == (reference is not None)
    page = write_experiment(found, tidy, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Every point: factors and responses" in page
    print_experiment(found, Console(file=io.StringIO(), width=150))


def test_no_factor_at_all_has_a_report(tmp_path: Path) -> None:
    rows = [_row({}, 0, block, block, "latency_ms_mean", 40.0 + block, "ms") for block in range(6)]
    tidy = pl.DataFrame(rows, schema_overrides={"scope_name": pl.String})
    found = analyse(ExperimentDesign(name="one"), tidy)
    assert [point.interval.n for point in found.responses[0].points] == [6]
    assert "of no factor" in write_experiment(found, tidy, tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_tail_is_drawn_as_far_as_there_are_samples() -> None:
    figure = figures.tail({"a": np.random.default_rng(1).exponential(10, 20_000)})
    [curve] = figure.data
    assert min(curve.y) == pytest.approx(1 / 20_000) and len(curve.x) <= 500
    assert "4 nines" in figure.layout.yaxis.ticktext[-1]
    few = figures.tail({"a": np.arange(1.0, 51.0)})
    assert min(few.data[0].y) == pytest.approx(0.02) and "2 nines" in few.layout.yaxis.ticktext[-1]


SCENARIO = """
name = "line"
backend = "sim"
seed = 3
[phases]
duration = "500 ms"
cool_down = "5 s"
[[networks]]
between = ["field", "broker"]
up = { rate = "2 Mbit/s", delay = "5 ms" }
down = { rate = "2 Mbit/s", delay = "5 ms" }
[[groups]]
name = "publishers"
host = "field"
publish = { topic = "t", qos = 0, payload = "100 B", rate = "40 /s" }
[[groups]]
name = "subscribers"
host = "field"
subscribe = [{ filter = "#", qos = 2 }]
"""
EXPERIMENT = """
name = "small"
question = "What does QoS cost?"
scenario = "line.toml"
repetitions = 3
reference = { qos = 0, delay = "5 ms" }
responses = ["latency_ms_mean", "messages_lost_percent"]
[[factors]]
name = "qos"
place = "groups[publishers].publish.qos"
levels = [0, 2]
[[factors]]
name = "delay"
places = ["networks[0].up.delay", "networks[0].down.delay"]
levels = ["5 ms", "20 ms", "40 ms", "80 ms"]
"""


def mqttlab(*words: str | Path, status: int = 0) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == status, done.output
    return done.output


def test_an_experiment_is_reported_and_exported_from_its_directory(tmp_path: Path) -> None:
    (tmp_path / "line.toml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "small.toml").write_text(EXPERIMENT, encoding="utf-8")
    mqttlab("experiment", tmp_path / "small.toml", "--runs", tmp_path / "runs")
    where = tmp_path / "runs" / "small"
    printed = mqttlab("report", where, "--full")
    assert all(words in printed for words in ("What does QoS cost?", "Recommendation", "smallest", "AICc"))
    page = (where / "report.html").read_text(encoding="utf-8")
    for words in ("Recommendation", "What the variation comes from", "Residuals of", "Latency by qos, tail",
                  "Where the time went, by delay", "Methods"):
        assert words in page
    data = json.loads(mqttlab("report", where, "--json"))
    assert data["pending"] == 0 and len(data["tables"]["points"]) == 16 and data["tables"]["variation"]
    mqttlab("export", where, "--csv", tmp_path / "csv", "--xlsx", tmp_path / "all.xlsx")
    points = pl.read_csv(tmp_path / "csv" / "points.csv")
    # QoS 2 takes a handshake more on the way: two round trips of 160 ms at least.
    slow = points.filter(metric="latency_ms_mean", delay="80 ms")
    assert slow.filter(qos=2)["mean"][0] > slow.filter(qos=0)["mean"][0] + 160
    assert slow.filter(qos=2)["verdict"][0] == "worse"
    with zipfile.ZipFile(tmp_path / "all.xlsx") as book:
        sheets = re.findall(r'<sheet name="([^"]+)"', book.read("xl/workbook.xml").decode())
        first = book.read("xl/worksheets/sheet1.xml").decode()
        ranges = [book.read(f"xl/tables/table{place}.xml").decode() for place in (1, 2)]
    # What answers comes first, each run's values last; headings stay, and each table can be filtered.
    assert sheets[:2] == ["recommendations", "points"] and sheets[-2:] == ["runs", "methods"]
    assert 'state="frozen"' in first and all("<autoFilter " in text for text in ranges)
    # The drawing library's smaller part is enough for every figure.
    assert "Every point" in page and len(page) < 2_500_000
    assert "8 points, 3 runs of each, 24 runs" in (tmp_path / "csv" / "methods.txt").read_text(encoding="utf-8")


def test_every_point_is_a_line_through_its_levels_and_means() -> None:
    points = pl.DataFrame({"qos": ["0", "1", "2"], "delay": [0.0, 30.0, 120.0], "p50 (ms)": [1.0, 3.0, 11.0],
                           "lost (%)": [5.0, 5.0, 5.0]})
    drawn = figures.parallel(points, {"qos": ["0", "1", "2"], "delay": []}, ["p50 (ms)", "lost (%)"])
    lines = {part.name: list(zip(part.x, part.y, strict=True)) for part in drawn.data}
    # Between the ends of each axis; of equal values in the middle.
    assert lines == {"1": [(0, 0), (0, 1), (0, 2), (0.5, 3), (None, None)],
                     "3": [(0.5, 0), (0.25, 1), (0.2, 2), (0.5, 3), (None, None)],
                     "11": [(1, 0), (1, 1), (1, 2), (0.5, 3), (None, None)]}
    labels = [(words.y, words.x, words.text) for words in drawn.layout.annotations]
    assert (0, 0.5, "1") in labels and (1, 1.0, "120") in labels and (2, 0.5, "6") in labels and (3, 0.5, "5") in labels
