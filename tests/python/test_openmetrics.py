"""Metrics of a run that goes on: readable by the format's own parser, and those that the Grafana dashboard asks for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

from commands import mqttlab
from mqttlab.cli.openmetrics import Watched, served
from mqttlab.cli.openmetrics_marks import EVENTS_SERVED, Marks
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse

ROOT = Path(__file__).resolve().parents[2]
TICK: dict[str, Any] = {
    "event": "tick", "at_ns": 2_500_000_000, "connected": 3, "offered": 30, "sent": 29, "expected": 58, "delivered": 50,
    "disconnects": 1, "latency_p50_ns": 1, "latency_p99_ns": 2, "sender_lateness_p99_ns": 20_000,
    "emulator_lateness_p99_ns": None, "events_per_s": None, "speed": 12.5,
    "latency": {"since_ns": 0, "count": 5, "p50_ns": 40_000_000, "p90_ns": None, "p99_ns": 900_000_000, "buckets": []},
    "groups": [{"group": 'a "b"\n', "offered": 30, "sent": 29, "delivered": 0}],
    "links": [{"link": "up", "frames": 7, "bytes": 700, "rate_bit_s": 8_000, "queue_frames": 1, "queue_bytes": 90,
               "drops": {"queue_full": 2, "link_down": 1}}],
    "links_left_out": 0, "servers": [{"server": "broker", "cpu_s": 0.25, "rss_bytes": 9_000}], "messages": []}
TEXT = """
name = "marks"
[phases]
warm_up = "500 ms"
stages = [{ name = "quiet", for = "2 s" }, { name = "busy", for = "2 s" }]
cool_down = "10 s"
[[networks]]
name = "wan"
between = ["field", "broker"]
up = { delay = "5 ms", rate = "10 Mbit/s" }
down = { delay = "5 ms", rate = "10 Mbit/s" }
[[groups]]
name = "sensors"
host = "field"
count = 4
publish = { topic = "a/{client}", payload = "100 B", rate = "20 /s", qos = 1 }
[[groups]]
name = "readers"
host = "broker"
subscribe = ["a/#"]
[[events]]
at = "500 ms"
every = "600 ms"
count = 2
network = "wan"
down = true
for = "300 ms"
[[events]]
when = "busy"
group = "sensors"
do = "burst"
messages = 5
[[events]]
at = "3 s"
server = "broker"
do = "pause"
for = "300 ms"
"""
PLAN = {"events": [], "stages": [], "groups": []}
OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


def read(url: str, **headers: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=30) as answer:
        return str(answer.read().decode())


def samples(text: str) -> dict[str, float]:
    """Values by name and labels."""
    return {name + json.dumps(labels, sort_keys=True) * bool(labels): value
            for family in text_string_to_metric_families(text) for name, labels, value, *_ in family.samples}


def test_a_line_is_served_in_both_formats() -> None:
    with served("127.0.0.1:0") as (watched, url):
        assert watched is not None
        assert samples(read(url, **OPENMETRICS)) == {}, "no run goes on"
        watched.begin("demo", "live", "demo-1", PLAN)
        watched.observe({"event": "phase", "phase": "measurement", "at_ns": 0, "length_ns": 0})
        watched.observe(TICK)
        found = samples(read(url, **OPENMETRICS))
        plain = [*plain_families(read(url))]
        watched.observe({"event": "done", "verdict": "incomplete", "reason": None, "directory": "x"})
        ended = samples(read(url, **OPENMETRICS))
        watched.begin("demo", "live", "demo-2", PLAN)
        again = samples(read(url, **OPENMETRICS))
    assert found['mqttlab_run_info{"backend": "live", "run": "demo-1", "scenario": "demo"}'] == 1
    assert found['mqttlab_phase{"mqttlab_phase": "measurement"}'] == 1
    assert found['mqttlab_phase{"mqttlab_phase": "warm_up"}'] == 0
    assert found["mqttlab_run_time_seconds"] == 2.5 and found["mqttlab_deliveries_expected_total"] == 58
    assert found["mqttlab_deliveries_outstanding"] == 8
    assert found['mqttlab_latency_seconds{"percentile": "99"}'] == 0.9
    assert 'mqttlab_latency_seconds{"percentile": "90"}' not in found, "what is not known is no number"
    assert found['mqttlab_lateness_seconds{"of": "sender"}'] == pytest.approx(2e-5)
    assert found['mqttlab_link_drops_total{"cause": "link_down", "link": "up"}'] == 1
    assert found['mqttlab_link_bytes_per_second{"link": "up"}'] == 1_000
    assert found['mqttlab_server_cpu_seconds_total{"server": "broker"}'] == 0.25
    assert sum(name.startswith("mqttlab_group_messages_sent_total") for name in found) == 1
    assert {family.name for family in plain} >= {"mqttlab_clients_connected", "mqttlab_link_frames"}
    assert ended['mqttlab_verdict{"mqttlab_verdict": "incomplete"}'] == 1
    # The next run has not said anything yet.
    assert "mqttlab_clients_connected" not in again and not any("verdict" in name for name in again)


def test_the_grafana_dashboard_and_the_page_know_the_metrics_that_there_are() -> None:
    watched = Watched()
    watched.begin("demo", "live", "demo-1", compile_plan(parse(TEXT)))
    watched.observe({"event": "change", "at_ns": 2_000_000_000, "name": "wan down"})
    watched.observe(TICK)
    watched.observe({"event": "done", "verdict": "complete"})
    families = list(watched.collect())
    served_ = {sample.name for family in families for sample in family.samples}
    dashboard = json.loads((ROOT / "docs" / "grafana" / "mqttlab.json").read_text(encoding="utf-8"))
    asked = re.findall(r"mqttlab_[a-z_]+(?=\{)", json.dumps([
        target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]))
    assert len(asked) >= 14 and {*asked} <= served_
    marks = dashboard["annotations"]["list"]
    assert {name for mark in marks for name in re.findall(r"mqttlab_[a-z_]+(?=\{)", mark["expr"])} == {
        "mqttlab_event_timestamp_seconds", "mqttlab_event_active", "mqttlab_stage"} <= served_
    labels = {label for family in families for sample in family.samples for label in sample.labels}
    assert {label for mark in marks for place in ("titleFormat", "textFormat", "tagKeys")
            for label in re.findall(r"[a-z_]+", mark[place])} <= labels
    page = (ROOT / "docs" / "how-to" / "metrics-endpoint.md").read_text(encoding="utf-8")
    assert {*re.findall(r"`(mqttlab_[a-z_]+)` *[|,]", page)} >= served_


def of_event(found: dict[str, float], metric: str, event: str, by: str = "scenario") -> float | None:
    """What one scrape says of an event."""
    values = [value for name, value in found.items() if name.startswith(metric + "{") and (
        f'"by": "{by}", "event": "{event}"' in name)]
    assert len(values) <= 1
    return values[0] if values else None


@pytest.mark.parametrize("backend", ["sim", pytest.param("live", marks=pytest.mark.live)])
def test_events_and_stages_of_a_run_are_read_as_they_come(backend: str, tmp_path: Path) -> None:
    plan = compile_plan(parse(f'backend = "{backend}"\n{TEXT}'))
    scrapes: list[tuple[str, dict[str, float]]] = []
    began = time.time()
    with served("127.0.0.1:0") as (watched, url):
        assert watched is not None
        watched.begin("marks", backend, "marks-1", plan)
        scrapes.append(("begin", samples(read(url, **OPENMETRICS))))

        def hear(line: dict[str, Any]) -> None:
            watched.observe(line)
            if line["event"] in ("change", "done"):
                scrapes.append((line.get("name", "done"), samples(read(url, **OPENMETRICS))))

        outcome = perform(Job(plan, tmp_path / "run", origin={"scenario": {"toml": TEXT, "settings": {}}}), hear)
    assert outcome.verdict in ("complete", "invalid"), outcome.reason
    events = [name for name, _ in scrapes]
    assert events == ["begin", "wan down", "wan up", "wan down", "wan up", "sensors publish 5 messages at once",
                      "broker is paused", "broker continues", "done"]
    found = [scrape for _, scrape in scrapes]
    assert [of_event(one, "mqttlab_event_active", "wan down") for one in found] == [0, 1, 0, 1, 0, 0, 0, 0, 0]
    assert [of_event(one, "mqttlab_event_active", "broker is paused") for one in found] == [0, 0, 0, 0, 0, 0, 1, 0, 0]
    assert [of_event(one, "mqttlab_events_total", "wan down") for one in found] == [0, 1, 1, 2, 2, 2, 2, 2, 2]
    burst = "sensors publish 5 messages at once"
    assert of_event(found[5], "mqttlab_events_total", burst) == 1
    assert of_event(found[5], "mqttlab_event_active", burst) == 0, "it has no end"
    at_s = [of_event(one, "mqttlab_event_timestamp_seconds", "wan down") for one in found]
    assert at_s[0] is None and at_s[1] is not None and at_s[3] is not None and began < at_s[1] < at_s[3] == at_s[-1]
    stages = [[one[f'mqttlab_stage{{"mqttlab_stage": "{name}"}}'] for name in ("quiet", "busy")] for one in found]
    # Live, the burst may be a moment before the stage with which it comes.
    assert stages[:5] + stages[6:] == [[0, 0], *4 * [[1, 0]], *2 * [[0, 1]], [0, 0]]
    # The last line is served: its counts are those of the recording.
    messages = Recording.open(tmp_path / "run").messages
    sent = messages.filter(pl.col("sent_ns").is_not_null()).select("publisher", "sequence").n_unique()
    assert found[-1]["mqttlab_messages_sent_total"] == sent > 300
    assert found[-1]["mqttlab_deliveries_outstanding"] == 0, "after its outages all of it has come"
    assert found[-1]["mqttlab_deliveries_total"] == messages.filter(pl.col("fate") == "delivered").height
    targets = {name.split('"target": ')[1] for name in found[0] if name.startswith("mqttlab_events_total")}
    assert targets == {'"field/up, field/down"}', '"sensors"}', '"broker"}'}


def test_names_of_events_are_bounded() -> None:
    event: dict[str, Any] = {"server": "broker", "change": {"kind": "pause", "persistence": False}}
    events = [{**event, "at_ns": n, "name": f"e{n}"} for n in range(EVENTS_SERVED + 9)]
    marks = Marks({"events": events, "groups": []})
    for n in range(EVENTS_SERVED + 9):
        marks.observe({"event": "change", "at_ns": n, "name": f"e{n}"})
        by_hand = {**event, "at_ns": 0, "name": f"h{n}"}
        marks.observe({"event": "change", "at_ns": n, "name": f"h{n}", "by_hand": by_hand})
    # A line of an engine that tells more events than its plan has.
    marks.observe({"event": "change", "at_ns": 1, "name": "more"})
    _, times, _ = marks.collect()
    assert len(times.samples) == 2 * EVENTS_SERVED and {sample.value for sample in times.samples} == {1}


@pytest.mark.parametrize(("address", "words"), [
    ("broker", "--metrics broker: 'broker' is not an IP address; write 127.0.0.1:9464"),
    ("127.0.0.1:99999", "--metrics 127.0.0.1:99999: '99999' is not a port"),
    ("192.0.2.1:9464", "--metrics 192.0.2.1:9464: "),
])
def test_a_wrong_address_is_told_before_anything_runs(address: str, words: str, tmp_path: Path) -> None:
    demo = ROOT / "scenarios" / "demo.toml"
    done = mqttlab("run", demo, "--backend", "sim", "--runs", tmp_path, "--metrics", address)
    assert done.returncode == 2 and words in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []
    handed = mqttlab("run", demo, "--detach", "--metrics", "127.0.0.1", "--runs", tmp_path)
    assert handed.returncode == 2 and "--metrics serves a run that this command makes" in handed.stderr


@pytest.mark.live
def test_a_live_run_is_watched_as_it_goes_on(tmp_path: Path) -> None:
    words = ["run", ROOT / "scenarios" / "demo.toml", "--backend", "live", "--set", "phases.duration=6 s", "--runs",
             tmp_path, "--no-html", "--catalog", "none", "--metrics", "127.0.0.1:0"]
    with subprocess.Popen([sys.executable, "-m", "mqttlab", *map(str, words)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as going:
        assert going.stderr is not None
        url = next(line.split()[1] for line in going.stderr if line.startswith("metrics "))
        seen: dict[str, float] = {}
        deadline = time.monotonic() + 120
        while not seen.get("mqttlab_deliveries_total") and time.monotonic() < deadline:
            seen = samples(read(url, **OPENMETRICS))
            time.sleep(0.1)
        [directory] = tmp_path.iterdir()
        fired = mqttlab("event", directory, "server=broker", "do=pause", "for=200 ms")
        assert fired.returncode == 0, fired.stderr
        mark: float | None = None
        while mark is None and time.monotonic() < deadline:
            marked = samples(read(url, **OPENMETRICS))
            mark = of_event(marked, "mqttlab_events_total", "broker is paused", by="hand")
        going.stderr.read()
    assert mark == 1
    assert seen["mqttlab_deliveries_total"] > 0 and seen["mqttlab_clients_connected"] > 0
    assert any(name.startswith("mqttlab_server_cpu_seconds_total") for name in seen)
