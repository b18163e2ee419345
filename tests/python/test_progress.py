"""What a run says while it goes on: the lines of both backends, and what the terminal makes of them."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest
from rich.console import Console

from mqttlab.cli.progress import ImportProgress, RunProgress, figures, spark, summary
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

TICK = {
    "event": "tick", "at_ns": 2_000_000_000, "connected": 3, "offered": 12, "sent": 10, "expected": 20, "delivered": 18,
    "disconnects": 0, "latency_p50_ns": 1_000_000, "latency_p99_ns": 2_000_000, "sender_lateness_p99_ns": None,
    "emulator_lateness_p99_ns": None, "events_per_s": 5_000, "speed": 12.5,
    "latency": {"since_ns": 0, "count": 4, "p50_ns": 1_048_575, "p90_ns": 4_194_303, "p99_ns": 4_194_303,
                "buckets": [[1_048_575, 3], [4_194_303, 1]]},
    "groups": [{"group": "sensors", "offered": 12, "sent": 10, "delivered": 0},
               {"group": "screens", "offered": 0, "sent": 0, "delivered": 18}],
    "links": [{"link": "idle", "frames": 0, "bytes": 0, "rate_bit_s": 0, "queue_frames": 0, "queue_bytes": 0,
               "drops": {}},
              {"link": "up", "frames": 9, "bytes": 900, "rate_bit_s": 64_000, "queue_frames": 2, "queue_bytes": 200,
               "drops": {"queue_full": 3}}],
    "links_left_out": 0,
    "servers": [{"server": "broker", "cpu_s": 0.5, "rss_bytes": 8_000_000}],
}  # fmt: skip


def test_a_summary_says_what_groups_links_and_servers_do() -> None:
    before = TICK | {"at_ns": 1_000_000_000, "servers": [{"server": "broker", "cpu_s": 0.25, "rss_bytes": 1}],
                     "groups": [{"group": "screens", "offered": 0, "sent": 0, "delivered": 8}]}  # fmt: skip
    assert summary(TICK, before) == [
        "  latency of the last 4: p50 1.05 ms, p90 4.19 ms, p99 4.19 ms  █ ▃",
        "  sensors: sent 10 (0/s), 2 unsent",
        "  screens: delivered 18 (10/s)",
        "  up: 64 kbit/s, 2 frames wait, dropped: 3 queue full",
        "  broker: 25 % of a processor, 8 MB",
    ]


def test_large_figures_are_read_without_powers_of_ten() -> None:
    hour = {"since_ns": 0, "count": 1, "p50_ns": 999_999, "p90_ns": 1_200_000_000, "p99_ns": 3_600_000_000_000,
            "buckets": [[3_600_000_000_000, 1]]}  # fmt: skip
    groups = [{"group": "sensors", "offered": 24_600, "sent": 24_600, "delivered": 0}]
    line = TICK | {"latency": hour, "latency_p99_ns": 3_600_000_000_000, "speed": 1234.5, "groups": groups}
    before = TICK | {"at_ns": 1_000_000_000, "groups": [groups[0] | {"sent": 12_300}]}
    assert summary(line, before)[:2] == [
        "  latency of the last 1: p50 1 ms, p90 1.2 s, p99 60 min  █",
        "  sensors: sent 24600 (12300/s)",
    ]
    assert "p99 60 min" in figures(line) and "1234 × real time" in figures(line)


def test_a_line_of_an_older_engine_is_shown_as_far_as_it_goes() -> None:
    old = {name: value for name, value in TICK.items() if not isinstance(value, list | dict)}
    assert summary(old, {}) == []


def test_a_distribution_is_drawn_by_doublings() -> None:
    assert spark({"buckets": [[1000, 8], [1020, 8], [8000, 1]]}) == "█  ▁"


def test_a_terminal_shows_the_summary_while_the_run_goes_on() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=120, height=40)
    with RunProgress(console, "a [run]") as progress:
        progress.observe({"event": "phase", "phase": "measurement", "at_ns": 0, "length_ns": 4_000_000_000})
        progress.observe(TICK)
    assert "measuring" in out.getvalue() and "dropped: 3 queue full" in out.getvalue()


@pytest.mark.parametrize("is_terminal", [False, True])
@pytest.mark.parametrize(("connected", "length_s", "said"), [(0, 60, 1), (2, 60, 0), (0, 2, 0)])
def test_who_waits_for_clients_reads_so_once(connected: int, length_s: int, said: int, is_terminal: bool) -> None:
    """A broker that does not answer was waited for in silence, for a minute."""
    console = Console(file=io.StringIO(), force_terminal=is_terminal, width=100)
    with RunProgress(console, "try") as progress:
        progress.observe({"event": "phase", "phase": "connect", "at_ns": 10**9, "length_ns": length_s * 10**9})
        for at_s in (2, 4, 5, 6):
            progress.observe({**TICK, "at_ns": at_s * 10**9, "connected": connected})
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.count("no client is connected yet; waiting for at most 60 s") == said


def test_a_run_that_waits_for_another_says_for_which() -> None:
    console = Console(file=io.StringIO(), width=100)
    with RunProgress(console, "second") as progress:
        progress.observe({"event": "waiting", "text": "waiting for the live run in runs/first to end"})
    assert "second: waiting for the live run in runs/first" in console.file.getvalue()  # type: ignore[attr-defined]


def test_an_import_says_how_much_it_has_read_of_the_whole_and_how_fast_on_one_line() -> None:
    out = io.StringIO()
    with ImportProgress(Console(file=out, force_terminal=True, width=80, height=40, color_system=None)) as progress:
        for read_bytes in (100_000_000, 900_000_000):
            progress.observe({"event": "import", "read_bytes": read_bytes, "total_bytes": 10**9, "rows": 4_096_000})
            progress._bar.refresh()
    last = out.getvalue().rpartition("reading")[2].partition("\x1b")[0]
    assert "0.9/1.0 GB" in last and "B/s" in last and "4,096,000 rows" in last and ":" in last, last
    assert "reading" in out.getvalue() and "\n\n" not in out.getvalue().replace("\r", "")


def test_an_import_says_that_it_writes_its_tables_when_all_is_read() -> None:
    out = io.StringIO()
    with ImportProgress(Console(file=out, force_terminal=True, width=80, height=40, color_system=None)) as progress:
        progress.observe({"event": "import", "read_bytes": 10**9, "total_bytes": 10**9, "rows": 4_096_000})
        progress.observe({"event": "phase", "phase": "finalise", "at_ns": 7, "length_ns": 0})
        progress._bar.refresh()
    last = out.getvalue().rpartition("\r")[0].rpartition("writing the recording")[2].partition("\x1b")[0]
    # How much was read is said no more: it changes no more, and looks as if the command stood still.
    assert "4,096,000 rows" in last and "0:00:0" in last and "GB" not in last, out.getvalue()
    assert "\n\n" not in out.getvalue().replace("\r", "")


@pytest.mark.parametrize(("name", "evidence", "rows"), [("a.csv", "csv", 2), ("a.log", "log", 2)])
def test_the_engine_says_when_it_has_read_all_and_writes(
    name: str, evidence: Literal["csv", "log"], rows: int, tmp_path: Path
) -> None:
    texts = {"csv": "message,publisher,subscriber,topic,sent,received\n1,a,b,t,1.0,1.5\n2,a,b,t,2.0,\n",
             "log": "2018-01-01,10:00:00:000,sent,t,0,16,1\n2018-01-01,10:00:00:500,received,t,0,16,1\n"}
    (tmp_path / name).write_text(texts[evidence])
    heard: list[dict[str, Any]] = []
    import_evidence(evidence, [tmp_path / name], tmp_path / "run", heard.append)
    size = len(texts[evidence])
    assert heard == [
        {"event": "import", "read_bytes": size, "total_bytes": size, "rows": rows},
        {"event": "phase", "phase": "finalise", "at_ns": heard[1]["at_ns"], "length_ns": 0},
        {"event": "done", "verdict": "complete", "reason": None, "directory": str(tmp_path / "run")},
    ]
    assert heard[1]["at_ns"] == (1_000_000_000 if evidence == "csv" else 500_000_000)


def test_nobody_is_shown_the_progress_of_an_import_but_a_terminal() -> None:
    out = io.StringIO()
    with ImportProgress(Console(file=out)) as progress:
        progress.observe({"event": "import", "read_bytes": 1, "total_bytes": 2, "rows": 1})
    assert out.getvalue() == ""


def test_an_import_leaves_a_terminal_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("message,publisher,subscriber,topic,sent,received\n1,a,b,t,1.0,1.5\n")
    terminal, theirs = pty.openpty()
    words = ["import", "log", "log.csv", "--output", "run", "--no-html", "--catalog", "none"]
    command = subprocess.Popen([sys.executable, "-m", "mqttlab", *words], cwd=tmp_path, stderr=theirs,
                               stdout=subprocess.PIPE, env=os.environ | {"COLUMNS": "80", "TERM": "xterm-256color"})
    os.close(theirs)
    said = bytearray()
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:
            # Linux says so when the last one has closed it.
            break
        said += part
    os.close(terminal)
    printed, _ = command.communicate()
    assert b"reading" in said and b"reading" not in printed and (tmp_path / "run" / "run.json").exists()
    # The cursor is shown again, and the line of the bar erased.
    assert said.endswith(b"\x1b[?25h\r\x1b[1A\x1b[2K"), said[-60:]


def lines_of(backend: str, directory: Path, **changes: Any) -> list[dict[str, Any]]:
    """What a run says that is long enough for some lines in either backend."""
    line = {"rate": "400 kbit/s", "delay": "20 ms", "loss": "5 %"}
    publish = {"topic": "t/{client}", "qos": 1, "payload": "200 B", "rate": "20 /s"}
    values = {
        "name": "watched", "backend": backend, "seed": 4,
        "phases": {"warm_up": "200 ms", "duration": "2 s", "cool_down": "3 s"},
        "networks": [{"between": ["field", "broker"], "up": line, "down": line}],
        "groups": [{"name": "sensors", "host": "field", "count": 4, "publish": publish},
                   {"name": "screen", "host": "field", "subscribe": [{"filter": "t/#", "qos": 1}]}],
        **changes,
    }  # fmt: skip
    lines: list[dict[str, Any]] = []
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lines.append)
    assert outcome.verdict == "complete", outcome.reason
    return lines


def check(line: dict[str, Any]) -> None:
    """What holds of every tick."""
    assert [group["group"] for group in line["groups"]] == ["sensors", "screen"]
    for total in ("offered", "sent", "delivered"):
        assert sum(group[total] for group in line["groups"]) == pytest.approx(line[total], abs=20), total
    assert sum(count for _, count in line["latency"]["buckets"]) == line["latency"]["count"]
    uppers = [upper for upper, _ in line["latency"]["buckets"]]
    assert uppers == sorted(set(uppers)) and line["links_left_out"] == 0
    assert all(link["rate_bit_s"] <= 440_000 for link in line["links"]), "no link is faster than it is"


def check_messages(ticks: list[dict[str, Any]], recording: Recording) -> None:
    """What lines say of messages is what the recording says of them, and no more of it than is promised."""
    told = [message for line in ticks for message in line["messages"]]
    assert told and all(len(line["messages"]) <= 5 for line in ticks)
    names = [client["name"] for client in recording.layout["clients"]]
    known = recording.messages.filter(fate="delivered").select(
        pl.col("received_ns").alias("at_ns"), "topic", "publisher", "subscriber", "qos", "payload_bytes", "latency_ns")
    kept = {(*row[:2], names[row[2]], names[row[3]], *row[4:]) for row in known.rows()}
    assert {tuple(message[name] for name in known.columns) for message in told} <= kept


@pytest.mark.live
def test_a_live_run_says_what_its_groups_links_and_broker_do(tmp_path: Path) -> None:
    ticks = [line for line in lines_of("live", tmp_path / "run") if line["event"] == "tick"]
    assert len(ticks) >= 8
    for line in ticks:
        check(line)
    last, recording = ticks[-1], Recording.open(tmp_path / "run")
    check_messages(ticks, recording)
    sent = recording.messages.filter(pl.col("sent_ns").is_not_null()).unique(["publisher", "sequence"])
    assert abs(last["sent"] - len(sent)) <= 8, "80 a second, and a line is 250 ms old at most when publishing ends"
    links = {link["link"]: link for link in last["links"]}
    frames = recording.packets.filter(fate="delivered").group_by("link").len()
    for name, count in frames.rows():
        assert 0 < links[name]["frames"] <= count
    assert any(link["drops"].get("random_loss") for link in links.values()), "5 % of some hundred frames"
    (server,) = last["servers"]
    assert server["server"] == "broker" and server["rss_bytes"] > 1e6 and server["cpu_s"] >= 0
    assert last["events_per_s"] is None and last["speed"] is None
    assert any(line["sender_lateness_p99_ns"] is not None for line in ticks)


def test_a_simulation_says_the_same_and_how_fast_it_is(tmp_path: Path) -> None:
    lines = lines_of("sim", tmp_path / "run", phases={"duration": "6000 s", "cool_down": "3 s"})
    ticks = [line for line in lines if line["event"] == "tick"]
    assert ticks, "6000 s of five clients take longer than a quarter of a second"
    for line in ticks:
        check(line)
        assert line["speed"] > 0 and line["events_per_s"] > 0
        assert line["sender_lateness_p99_ns"] is None and line["servers"] == []
    assert any(link["drops"].get("random_loss") for link in ticks[-1]["links"])
    assert any(line["latency"]["count"] for line in ticks)
    check_messages(ticks, Recording.open(tmp_path / "run"))
