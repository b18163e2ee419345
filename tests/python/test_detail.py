"""`recording.detail`: what a run keeps, in both backends, and what is then said of the rest."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import mqttlab
from live import able, in_both
from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.report import facts
from mqttlab.report.html import page
from mqttlab.runs import Job, perform
from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import scenario

PHASES = {"warm_up": "0 s", "duration": "2 s", "cool_down": "5 s"}
SCENARIOS: dict[str, dict[str, Any]] = {
    "full": scenario(1, phases=PHASES),
    "messages": scenario(1, phases=PHASES, recording={"detail": "messages"}),
    "messages of QoS 2": scenario(2, phases=PHASES, recording={"detail": "messages"}),
}  # fmt: skip
ONLY_MESSAGES = ["messages", "messages of QoS 2"]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Recording]]:
    """Every scenario in both backends; simulated alone where the kernel does not permit more."""
    directory = tmp_path_factory.mktemp("runs")
    if able() is None:
        return in_both(SCENARIOS, directory, at_once=3)
    made = {}
    for name, values in SCENARIOS.items():
        where = directory / name.replace(" ", "-")
        perform(Job(compile_plan(parse_values({**values, "backend": "sim"})), where), lambda line: None)
        made[name] = {"sim": Recording.open(where)}
    return made


def recordings(found: dict[str, dict[str, Recording]], *names: str) -> list[Recording]:
    return [recording for name in names for recording in found[name].values()]


@pytest.mark.live(runs=3)
def test_messages_are_kept_without_frames_and_control_packets(found: dict[str, dict[str, Recording]]) -> None:
    for recording in recordings(found, *ONLY_MESSAGES):
        assert (recording.rows("packets"), recording.rows("control_packets")) == (0, 0)
        assert recording.rows("messages") > 0
        whole = metrics.application(recording).row(0, named=True)
        assert whole["messages_delivered"] > 0 and whole["latency_ms_p99"] > 0
    for recording in recordings(found, "full"):
        assert recording.rows("packets") > 0 and recording.rows("control_packets") > 0


def test_a_simulation_has_the_same_messages_in_either_detail(found: dict[str, dict[str, Recording]]) -> None:
    full, short = (found[name]["sim"].table("messages") for name in ("full", "messages"))
    assert short.equals(full)


@pytest.mark.live(runs=3)
def test_what_was_not_seen_is_no_zero(found: dict[str, dict[str, Recording]]) -> None:
    counters = {"frame_bytes", "segments", "tcp_bytes", "mqtt_publish", "handshakes"}
    for recording in recordings(found, *ONLY_MESSAGES):
        told = metrics.summary(recording)
        assert set(told["metric"]) & counters == set()
        assert "latency_ms_p99" in set(told["metric"])
    for recording in recordings(found, "full"):
        told = metrics.summary(recording).filter(pl.col("metric").is_in(counters))
        assert set(told["metric"]) == counters and told["value"].max() > 0  # type: ignore[operator]


@pytest.mark.live(runs=3)
def test_pages_tables_and_commands_say_what_was_not_recorded(
        found: dict[str, dict[str, Recording]], tmp_path: Path) -> None:
    for recording in recordings(found, *ONLY_MESSAGES):
        [(_, words)] = facts.left_out(recording)
        assert words.startswith("messages only") and words in html.unescape(page(recording))
        result = mqttlab("report", recording.directory, "--full", "--html", tmp_path / "page.html")
        assert result.returncode in (0, 6) and "recorded: messages only" in result.stdout
        document = json.loads(mqttlab("report", recording.directory, "--json").stdout)
        assert document["not_recorded"] == [words]
        explained = mqttlab("explain", recording.directory, "--slowest", "1")
        assert explained.returncode == 2 and "packets were not recorded" in explained.stderr
    for recording in recordings(found, "full"):
        assert facts.left_out(recording) == []
        assert json.loads(mqttlab("report", recording.directory, "--json").stdout)["not_recorded"] == []


def test_every_part_of_the_dashboards_page_is_shown_without_frames(found: dict[str, dict[str, Recording]]) -> None:
    pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")
    from mqttlab.dashboard.pages import run
    from mqttlab.dashboard.store import Store

    recording = found["messages"]["sim"]
    store = Store(recording.directory.parent)
    for part in run.PARTS:
        shown = json.dumps(run.page(store, recording.directory.name, {"part": part}).to_plotly_json(),
                           default=lambda component: component.to_plotly_json())
        assert "messages only" in shown, part


@pytest.mark.parametrize(("recording", "packets"), [
    ({}, True), ({"detail": "full"}, True), ({"detail": "messages"}, False),
    # As scenarios of recordings and of experiments have it that were made before.
    ({"packets": True}, True), ({"packets": False}, False), ({"packets": False, "payloads": True}, False),
])
def test_the_plan_says_whether_frames_are_recorded(recording: dict[str, Any], packets: bool) -> None:
    plan = compile_plan(parse_values(scenario(0, recording=recording)))
    assert plan["recording"]["packets"] is packets


@pytest.mark.parametrize(("recording", "words"), [
    ({"detail": "packets"}, "must be one of"), ({"detail": "messages", "packets": True}, "keep `detail`"),
    ({"detail": "messages", "pcapng": True}, "leave one of them out"), ({"packets": 3}, "packets"),
])
def test_what_does_not_go_together_is_refused(recording: dict[str, Any], words: str) -> None:
    for backend in ("sim", "live"):
        with pytest.raises(ScenarioError) as caught:
            parse_values({**scenario(0, recording=recording), "backend": backend})
        assert words in str(caught.value)


def test_the_command_line_sets_it(tmp_path: Path) -> None:
    demo = Path(__file__).resolve().parents[2] / "scenarios" / "demo.toml"
    result = mqttlab("run", demo, "--backend", "sim", "--set", "phases.duration=1 s", "--set", "recording.pcapng=false",
                     "--set", "recording.detail=messages", "--runs", tmp_path, "--full", "--no-html")
    assert result.returncode == 0 and "recorded: messages only" in result.stdout, result.stderr
