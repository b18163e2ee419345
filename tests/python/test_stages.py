"""Stages of a run: what they are in scenario and plan, and each looked at by itself; live and simulated."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomlkit
from click.testing import CliRunner

from mqttlab import figures, metrics
from mqttlab.cli import main
from mqttlab.comparison import compare
from mqttlab.experiments.responses import Response, chosen, values_of, wrong
from mqttlab.recording import Recording, RecordingError
from mqttlab.report import changes, headline, stages
from mqttlab.report.answer import lines as answer_lines
from mqttlab.report.document import document
from mqttlab.report.facts import of_run
from mqttlab.report.html import page
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.event_plan import EventTimes
from mqttlab.scenario.load import parse_values
from mqttlab.scenario.threshold import Threshold
from recordings import Message, S, packet, write

LIVE_AND_SIMULATED = [pytest.param("live", marks=pytest.mark.live), "sim"]
SCENARIO: dict[str, Any] = {
    "name": "staged", "backend": "sim",
    "phases": {"warm_up": "1 s", "cool_down": "5 s", "stages": [
        {"name": "quiet", "for": "2 s"}, {"name": "switch", "for": "1 s", "measured": False},
        {"name": "busy", "for": "2 s"}]},
    "networks": [{"between": ["field", "broker"], "up": {"delay": "20 ms"}, "down": {"delay": "20 ms"}}],
    "groups": [
        # Nagle's algorithm would hold messages back, more of them in the busy stage.
        {"name": "p", "host": "field", "count": 2, "nagle": False, "publish": {
            "topic": "a/{client}", "qos": 1, "payload": "100 B", "rate": "20 /s", "start_phase": "synchronised"}},
        {"name": "s", "host": "broker", "subscribe": [{"filter": "#", "qos": 1}]}],
    # Half a second of the switch at the old rate, half of it at the new one.
    "events": [{"when": "switch", "at": "500 ms", "group": "p", "publish": {"rate": "60 /s"}},
               {"when": "busy", "network": "field", "direction": "up", "delay": "50 ms"}]}
SENT = {"quiet": 80, "switch": 20 + 60, "busy": 240}
THREE = (("a", 0, 4, True), ("between", 4, 5, False), ("b", 5, 10, True))


def planned(**phases: Any) -> Any:
    return compile_plan(parse_values({**SCENARIO, "events": [], "phases": phases}))


def test_stages_are_in_the_plan_and_say_how_long_the_measurement_is() -> None:
    plan = planned(**SCENARIO["phases"])
    assert plan["phases"]["duration_ns"] == 5 * S
    assert [(stage["name"], stage["from_ns"] / S, stage["until_ns"] / S, stage["measured"])
            for stage in plan["stages"]] == [("quiet", 1, 3, True), ("switch", 3, 4, False), ("busy", 4, 6, True)]
    whole = planned(warm_up="1 s", duration="5 s", cool_down="5 s")
    assert "stages" not in whole
    assert {name: value for name, value in plan.items() if name != "stages"} == whole


@pytest.mark.parametrize("when, at, expected", [
    ("quiet", None, 0), ("switch", None, 2), ("end of switch", None, 3), ("busy", "-500 ms", 2.5),
    ("end of quiet", "1 s", 3)])
def test_an_event_begins_with_a_stage_or_its_end(when: str, at: str | None, expected: float) -> None:
    event = {"when": when, "server": "broker", "do": "pause", "for": "10 ms", **({"at": at} if at else {})}
    scenario = parse_values({**SCENARIO, "events": [event]})
    assert list(EventTimes(scenario).of(scenario.events[0])) == [expected * S]


def test_events_of_every_kind_follow_a_stage() -> None:
    acts: list[dict[str, Any]] = [
        {"network": "field", "down": True, "for": "100 ms"}, {"server": "broker", "do": "kill", "for": "100 ms"},
        {"group": "p", "do": "vanish", "for": "100 ms"}, {"group": "p", "do": "burst", "messages": 3},
        {"group": "s", "do": "unsubscribe", "filter": "#", "for": "100 ms"}]
    plan = compile_plan(parse_values({**SCENARIO, "events": [{"when": "busy", **act} for act in acts]}))
    assert sum(event["at_ns"] == 4 * S for event in plan["events"]) == len(acts)
    repeated = parse_values({**SCENARIO, "events": [{"when": "busy", "every": "500 ms", **acts[3]}]})
    assert [at / S for at in EventTimes(repeated).of(repeated.events[0])] == [3, 3.5, 4, 4.5]


def test_every_metric_takes_the_window_of_its_stage(tmp_path: Path) -> None:
    messages = [Message(number, 10 if number < 50 else 30) for number in range(100)]
    messages[45] = Message(45, None, fate="lost", cause="overtaken")
    messages[60] = Message(60, None, fate="lost", cause="overtaken")
    frames = [packet(at * 1000 + 50, size=1000) for at in range(10)]
    ended = [{"at_ns": int(at * S), "kind": "disconnect", "client": 0, "took_ns": None, "detail": "reset"}
             for at in (4.5, 6, 7)]
    recording = Recording.open(write(tmp_path / "run", messages, packets=frames, events=ended, stages=THREE))
    whole = metrics.measurement(recording)
    assert (whole.from_ns, whole.until_ns, whole.seconds, whole.gaps) == (0, 10 * S, 9, ((4 * S, 5 * S),))

    def told(view: Recording) -> tuple[Any, ...]:
        [row] = metrics.application(view, ()).rows(named=True)
        return (row["messages_sent"], row["messages_lost"], row["latency_ms_p50"], row["throughput_per_s"],
                row["disconnects"], metrics.deliveries(view).height)

    # The message that was lost in the switch is in no number of the headline.
    assert told(recording) == (90, 1, 30, pytest.approx(89 / 9), 3, 89)
    assert told(recording.of_stage("a")) == (40, 0, 10, pytest.approx(10), 0, 40)
    assert told(recording.of_stage("between")) == (10, 1, 10, pytest.approx(9), 1, 9)
    assert told(recording.of_stage("b")) == (50, 1, 30, pytest.approx(49 / 5), 2, 49)
    bytes_up = {name: metrics.by_device(recording.of_stage(name))["link_bytes_up"][0] for name in ("a", "between", "b")}
    assert bytes_up == {"a": 4000, "between": 1000, "b": 5000}
    assert metrics.by_device(recording)["link_bytes_up"][0] == 9000
    summary = metrics.summary(recording, stage="b")
    known = {metric: value for scope, _, metric, value, _ in summary.rows() if scope == "run"}
    assert (known["messages_sent"], known["latency_ms_p50"]) == (50, 30)
    windows = {metrics.ALL[name].window for name in summary["metric"] if name in metrics.ALL}
    assert windows <= {"due", "measurement"}, "nothing of the whole run"
    assert metrics.summary(recording).height > summary.height


def test_an_unknown_stage_is_refused_with_the_nearest(tmp_path: Path) -> None:
    recording = Recording.open(write(tmp_path / "run", [Message(0)], stages=THREE))
    with pytest.raises(RecordingError, match="no stage 'betwen'; did you mean `between`"):
        metrics.summary(recording, stage="betwen")
    without = Recording.open(write(tmp_path / "other", [Message(0)]))
    with pytest.raises(RecordingError, match=r"no stage 'a'; its scenario has no `phases.stages`"):
        without.of_stage("a")


def test_a_run_that_was_cut_short_has_measured_as_far_as_it_came(tmp_path: Path) -> None:
    messages = [Message(number) for number in range(70)]
    recording = Recording.open(write(tmp_path / "run", messages, complete=False, stages=THREE))
    assert metrics.measurement(recording).seconds == pytest.approx(5.91)
    assert metrics.measurement(recording.of_stage("a")).seconds == 4
    assert metrics.measurement(recording.of_stage("b")).seconds == pytest.approx(1.91)
    assert stages.table(recording)[1][0] == ["from s", "–", "0", "4", "5"]
    early = Recording.open(write(tmp_path / "early", messages[:20], complete=False, packets=[packet(50)], stages=THREE))
    assert [(one["name"], one["measured_s"], [flow["sent"] for flow in one["flows"]]) for one in stages.document(early)
            ] == [("a", pytest.approx(1.91), [20]), ("between", 0, []), ("b", 0, [])]
    assert metrics.summary(early, stage="b").filter(~pl.col("value").is_finite()).is_empty()


def test_a_simulation_that_was_killed_says_by_its_events_when_its_stages_began(tmp_path: Path) -> None:
    """It writes in its layout when they were at its end only."""
    began = {"at_ns": 2 * S, "kind": "phase", "client": None, "took_ns": None, "detail": "measurement"}
    recording = Recording.open(write(
        tmp_path / "run", [Message(number) for number in range(70)], complete=False, events=[began], stages=THREE))
    assert [stage.from_ns / S for stage in metrics.stages(recording)] == [2, 6, 7]
    assert metrics.headline(recording.of_stage("between")).flows[0].sent == 10


def test_without_stages_nothing_is_said_of_them(tmp_path: Path) -> None:
    recording = Recording.open(write(tmp_path / "run", [Message(number) for number in range(100)]))
    assert (metrics.stages(recording), stages.brief(recording), document(recording)["stages"]) == ((), [], [])
    assert "Stages" not in page(recording)
    samples = metrics.deliveries(recording)
    assert changes.marked(recording, [figures.latency_over_time(samples, 100)])[0].layout.get("shapes", ()) == ()


def test_borders_are_marked_in_figures_over_time(tmp_path: Path) -> None:
    recording = Recording.open(write(tmp_path / "run", [Message(number) for number in range(100)], stages=THREE))
    samples = metrics.deliveries(recording)
    [drawn, other] = changes.marked(recording, [figures.latency_over_time(samples, 100), figures.latency_cdf(samples)])
    lines = sorted(shape["x0"] for shape in drawn.layout["shapes"] if shape["type"] == "line")
    assert lines == [0, 4, 5]
    [shade] = [shape for shape in drawn.layout["shapes"] if shape["type"] == "rect"]
    assert (shade["x0"], shade["x1"]) == (4, 5)
    assert {one["text"] for one in drawn.layout["annotations"]} >= {"a", "between", "b"}
    heights = {one["text"]: one["y"] for one in drawn.layout["annotations"] if one["text"] in ("a", "between", "b")}
    assert all(0 < height < 0.3 for height in heights.values()), "names of events stand above"
    assert not other.layout.get("shapes")


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_the_answer_in_a_terminal_has_a_column_for_each_stage_as_far_as_they_fit(count: int, tmp_path: Path) -> None:
    each = 10 / count
    listed = [(f"stage-{number}-of-many", each * number, each * (number + 1), True) for number in range(count)]
    recording = Recording.open(write(tmp_path / "run", [Message(number) for number in range(100)], stages=listed))
    lines = answer_lines(headline.told(recording), stages.brief(recording))
    assert all(len(line) <= 80 for line in lines)
    [head] = [line for line in lines if line.startswith("stages ")]
    shown = head.count("stage-")
    assert shown == min(count, 4)
    assert any(f"{count - shown} more stages: --full" in line for line in lines) == (count > shown)
    assert len(stages.table(recording)[0]) == count + 2


@pytest.fixture(scope="module", params=LIVE_AND_SIMULATED)
def staged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    directory = tmp_path_factory.mktemp("staged") / "run"
    plan = compile_plan(parse_values(copy.deepcopy(SCENARIO) | {"backend": request.param}))
    outcome = perform(Job(plan, directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def test_each_backend_measures_stage_by_stage(staged: Recording) -> None:
    told = {stage.name: numbers for stage, numbers in stages.columns(staged)}
    assert {name: numbers.flows[0].sent for name, numbers in told.items()} == SENT
    assert {name: numbers.measured_s for name, numbers in told.items()} == {"quiet": 2, "switch": 1, "busy": 2}
    whole = metrics.headline(staged)
    assert (whole.flows[0].sent, whole.measured_s) == (SENT["quiet"] + SENT["busy"], 4)
    quiet, busy = (told[name].flows[0].latency["p50"].value for name in ("quiet", "busy"))
    assert quiet is not None and busy is not None
    # The link up takes 30 ms longer; live, frames are handed over a little early and late.
    assert 25 < busy - quiet < 35
    # Bytes of a device and the parts of latencies are of the stage alone.
    up = {name: numbers.bytes[0].ip_up for name, numbers in told.items()}
    assert up["quiet"] is not None and up["busy"] is not None and 2 < up["busy"] / up["quiet"] < 3.5
    waits = {name: {share.part for share in numbers.flows[0].typical} for name, numbers in told.items()}
    assert "wire_to_broker_ns" in waits["quiet"] & waits["busy"]
    assert dict(of_run(staged))["measured"] == "4 s"


def test_frames_of_stages_that_are_not_measured_are_not_in_efficiencies(staged: Recording) -> None:
    window = metrics.measurement(staged)
    entered = pl.col("entered_ns")
    packets = staged.scan("packets").filter(pl.col("from_host") == 1, pl.col("hop") == 0)
    sent, left_out = staged.collect(packets.select(
        window.holds(entered).sum(), entered.is_between(*window.gaps[0]).sum().alias("left_out"))).row(0)
    assert left_out >= 80
    [row] = metrics.efficiency(staged).filter(pl.col("group") == "p").rows(named=True)
    # Of the frames at the border of a window one more or less may be on its way.
    assert abs(row["frames_sent"] - sent) <= 2


def test_the_report_has_a_column_for_each_stage(staged: Recording) -> None:
    result = CliRunner().invoke(main, ["report", str(staged.directory), "--full"])
    assert result.exit_code == 0, result.output
    head = next(line for line in result.output.splitlines() if line.startswith("stages "))
    assert head.split() == ["stages", "quiet", "switch", "*", "busy"]
    assert "Not measured: switch" in result.output
    written = (staged.directory / "report.html").read_text(encoding="utf-8")
    assert "<h2" in written and ">Stages</h2>" in written and "switch *" in written
    told = json.loads(CliRunner().invoke(main, ["report", str(staged.directory), "--json"]).output)["stages"]
    assert [(one["name"], one["from_s"], one["until_s"], one["measured"], one["measured_s"]) for one in told] == [
        ("quiet", 0, 2, True, 2), ("switch", 2, 3, False, 1), ("busy", 3, 5, True, 2)]
    assert [one["flows"][0]["sent"] for one in told] == list(SENT.values())


def test_the_dashboard_shows_the_stages_of_a_run(staged: Recording) -> None:
    pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")
    from mqttlab.dashboard.pages import overview

    parts = [part.to_plotly_json() for part in overview.part(staged)]
    shown = json.dumps(parts, default=lambda one: one.to_plotly_json())
    assert "Stages, table" in shown and "switch *" in shown and "Not measured: switch" in shown


def both_runs(directory: Path) -> list[str]:
    """Two runs that differ in their second stage alone."""
    found = []
    for name, late_ms in (("first", 30), ("second", 60)):
        messages = [Message(number, 10 if number < 50 else late_ms) for number in range(100)]
        frames = [packet(at * 1000 + 50, size=1000) for at in range(10)]
        found.append(str(write(directory / name, messages, packets=frames, stages=THREE)))
    return found


def test_one_stage_of_two_runs_is_compared(tmp_path: Path) -> None:
    runs = both_runs(tmp_path)
    page_of_b = tmp_path / "b.html"
    done = CliRunner().invoke(main, ["compare", *runs, "--stage", "b", "--json", "--html", str(page_of_b)])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["stage"] == "b" and ", in stage b: worst latency 60 instead of 30 ms" in told["answer"]
    values = {row["metric"]: (row["first"], row["second"]) for row in told["metrics"]}
    assert values["messages_sent"] == ([50], [50]) and values["latency_ms_p50"] == ([30], [60])
    assert "frames" not in values, "it is of the whole run"
    medians = [(row["first_ms"], row["second_ms"]) for row in told["quantiles"] if row["quantile"] == 0.5]
    assert medians == [(30, 60)]
    assert "in stage b" in page_of_b.read_text(encoding="utf-8")
    same = compare(*runs, stage="a")
    assert {row.percent for row in same.rows} == {0} and same.title.endswith(", stage a")
    whole = json.loads(CliRunner().invoke(main, ["compare", *runs, "--json"]).stdout)
    assert whole["stage"] is None and "frames" in {row["metric"] for row in whole["metrics"]}


@pytest.mark.parametrize(("words", "said"), [
    (["--stage", "betwen"], 'has no stage "betwen"; did you mean `between`? stages of all these runs: a, between, b'),
    (["--stage", "b", "--metric", "frames"], "--metric frames is of the whole run, not of a stage"),
    (["--stage", "b", "--by", "message"], "--by message compares whole runs, but --stage asks for a part of them"),
])
def test_what_cannot_be_compared_of_a_stage_is_refused(words: list[str], said: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["compare", *both_runs(tmp_path), *words])
    assert done.exit_code != 0 and said in "\n".join(getattr(done.exception, "problems", [done.output]))


def test_a_run_without_the_stage_is_named(tmp_path: Path) -> None:
    first, _ = both_runs(tmp_path)
    without = str(write(tmp_path / "without", [Message(0)]))
    done = CliRunner().invoke(main, ["compare", first, without, "--stage", "a"])
    said = "\n".join(getattr(done.exception, "problems", [done.output]))
    assert f'{without} has no stage "a"; no stage is in all of these runs' in said


def test_a_threshold_is_judged_of_its_stage(tmp_path: Path) -> None:
    run = Recording.open(Path(both_runs(tmp_path)[1]))
    wanted = [Response("messages_sent", stage=stage) for stage in (None, "a", "b")]
    values = values_of(run, wanted)
    assert [chosen(values, each) for each in wanted] == [90, 40, 50]
    assert [value.kept.get("stage", "left out") for value in values] == ["left out", "a", "b"]
    scenario = {**SCENARIO, "thresholds": [
        {"metric": "latency_ms_mean", "below": "40 ms", "stage": "quiet"},
        {"metric": "latency_ms_mean", "below": "40 ms", "stage": "busy"}]}
    path = tmp_path / "staged.toml"
    path.write_text(tomlkit.dumps(scenario), encoding="utf-8")
    done = CliRunner().invoke(main, ["run", str(path), "--runs", str(tmp_path / "runs"), "--json", "--no-html",
                                     "--catalog", "none"])
    told = json.loads(done.stdout)["thresholds"]
    assert [(each["stage"], each["verdict"]) for each in told] == [("quiet", "held"), ("busy", "broken")]
    assert told[0]["threshold"] == "latency_ms_mean in stage quiet below 40 ms"


def test_a_threshold_on_the_whole_run_takes_no_stage() -> None:
    given = Threshold(metric="latency_ms_p99", below=1, stage="a")
    assert wrong(given) is None
    of_run = given.model_copy(update={"metric": "connect_ms_p50"})
    assert wrong(of_run) == ("stage", 'is "a", but connect_ms_p50 is of the whole run; leave it out')
    assert metrics.is_of_stages("messages_sent") and not metrics.is_of_stages("frames")
