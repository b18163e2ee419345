"""Captures made of recordings: every frame with its length, sums and numbers; MQTT as it was; cut where it is asked."""

from __future__ import annotations

import json
import shutil
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result

from mqttlab import export
from mqttlab.cli import main
from mqttlab.export.pcapng import _frames as frames
from mqttlab.export.wire import _checksum as checksum
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording

SAMPLES = Path(__file__).resolve().parents[1] / "schemas"
SIMULATED = SAMPLES / "3" / "simulated"


def mqttlab(*words: str | Path) -> Result:
    return CliRunner().invoke(main, list(map(str, words)), prog_name="mqttlab")


def imported(capture: Path, directory: Path) -> Recording:
    outcome = import_evidence("capture", [capture], directory, lambda line: None)
    assert outcome.verdict == "complete"
    return Recording.open(directory)


def kinds(recording: Recording) -> Counter[tuple[Any, ...]]:
    return Counter(recording.control_packets.select("direction", "kind", "qos", "packet_id", "topic", pl.col(
        "stream_end") - pl.col("stream_start")).rows())


@pytest.mark.parametrize("sample", ["3/simulated", "3/live", "2/simulated", "1/live"])
def test_frames_are_as_long_as_they_were_and_their_sums_are_right(sample: str, tmp_path: Path) -> None:
    recording = Recording.open(SAMPLES / sample)
    written = export.pcapng(recording, tmp_path / "run.pcapng")
    rows = recording.packets.filter(pl.col("fate") != "duplicated").sort("entered_ns", maintain_order=True)
    made = list(frames(tmp_path / "run.pcapng"))
    assert written == len(made) == rows.height
    started = recording.layout["started_unix_ns"]
    for (name, at, data), row in zip(made, rows.iter_rows(named=True), strict=True):
        assert (name, at - started) == (f"{row['link']} {row['direction']}", row["entered_ns"])
        assert len(data) == row["ip_bytes"] == struct.unpack_from("!H", data, 2)[0]
        assert checksum(data[:20]) == 0
        if row["protocol"] == 6:
            assert checksum(data[12:20] + struct.pack("!2H", 6, len(data) - 20) + data[20:]) == 0
            assert struct.unpack_from("!2HI", data, 20) == (row["source_port"], row["destination_port"], row["seq"])
            assert 20 + (data[32] >> 4) * 4 + row["payload_bytes"] == row["ip_bytes"]
    assert list(tmp_path.iterdir()) == [tmp_path / "run.pcapng"]


def test_a_capture_of_a_simulation_holds_the_mqtt_packets_that_were_sent(tmp_path: Path) -> None:
    recording = Recording.open(SIMULATED)
    export.pcapng(recording, tmp_path / "run.pcapng")
    again = imported(tmp_path / "run.pcapng", tmp_path / "again")
    assert kinds(again) == kinds(recording)
    assert again.packets.height == recording.packets.filter(pl.col("fate") != "duplicated").height


def test_a_message_is_cut_out_with_its_connections_and_nothing_else(tmp_path: Path) -> None:
    recording = Recording.open(SIMULATED)
    message = recording.messages.filter(pl.col("fate") == "delivered").sort("latency_ns").row(-1, named=True)
    name = recording.layout["clients"][message["publisher"]]["name"]
    out = tmp_path / "cut.pcapng"
    result = mqttlab("export", SIMULATED, "--pcapng", out, "--message", f"{name}:{message['sequence']}")
    assert result.exit_code == 0, result.output
    started = recording.layout["started_unix_ns"]
    made = list(frames(out))
    assert all(message["intended_ns"] <= at - started for _, at, _ in made)
    assert len(made) < recording.packets.height / 2
    topic = message["topic"].encode()
    # To the broker and from it, at least.
    assert sum(topic in data for _, _, data in made) >= 2


def test_secrets_that_the_run_logged_stand_before_its_frames(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(SAMPLES / "3" / "live", run)
    recording = Recording.open(run)
    export.pcapng(recording, tmp_path / "without.pcapng")
    text = f"CLIENT_RANDOM {'ab' * 32} {'cd' * 48}\n".encode()
    (run / "keys.log").write_bytes(text)
    export.pcapng(recording, tmp_path / "with.pcapng")
    without, opened = ((tmp_path / f"{name}.pcapng").read_bytes() for name in ("without", "with"))
    size = 20 + len(text) + -len(text) % 4
    block = struct.pack("<4I", 10, size, 0x544C534B, len(text)) + text + bytes(-len(text) % 4) + struct.pack("<I", size)
    section = struct.unpack_from("<I", without, 4)[0]
    assert opened == without[:section] + block + without[section:]
    # Who reads it back knows the secrets: else a capture without TLS would be imported all the same.
    assert imported(tmp_path / "with.pcapng", tmp_path / "again").control_packets.height


def test_a_part_of_the_time_is_cut_out(tmp_path: Path) -> None:
    recording = Recording.open(SIMULATED)
    times = recording.packets["entered_ns"]
    middle = int(times.median())  # type: ignore[arg-type]
    seen: list[int] = []
    for cut in (export.Cut(to_ns=middle), export.Cut(from_ns=middle)):
        seen.append(export.pcapng(recording, tmp_path / "part.pcapng", cut))
    copies = recording.packets.filter(pl.col("fate") == "duplicated").height
    assert all(seen)
    assert sum(seen) == times.len() - copies


def test_bytes_are_those_of_a_capture_that_the_run_kept(tmp_path: Path) -> None:
    recording = Recording.open(SIMULATED)
    run = tmp_path / "run"
    run.mkdir()
    for path in SIMULATED.iterdir():
        (run / path.name).write_bytes(path.read_bytes())
    export.pcapng(recording, tmp_path / "whole.pcapng")
    kept = bytearray((tmp_path / "whole.pcapng").read_bytes())
    # A mark that no made frame has, in the first frame's identification.
    _, _, first = next(frames(tmp_path / "whole.pcapng"))
    kept[kept.index(first) + 4:kept.index(first) + 6] = b"\xab\xcd"
    (run / "capture-all.pcapng").write_bytes(kept)
    export.pcapng(Recording.open(run), tmp_path / "again.pcapng")
    assert next(frames(tmp_path / "again.pcapng"))[2][4:6] == b"\xab\xcd"


@pytest.mark.parametrize(("words", "problem"), [
    (("--message", "0:0"), "--message goes with --pcapng"),
    (("--pcapng", "--message", "0"), "write PUBLISHER:SEQUENCE"),
    (("--pcapng", "--message", "nobody:0"), "there is no client 'nobody'"),
    (("--pcapng", "--message", "0:99999"), "there is no message 0:99999"),
    (("--pcapng", "--message", "0:0", "--to", "1 s"), "--message and --to exclude each other"),
    (("--pcapng", "--from", "2"), "--from"),
    (("--pcapng", "--from", "99 h"), "there are no frames in this part"),
])
def test_what_cannot_be_cut_is_said(words: tuple[str, ...], problem: str) -> None:
    before = sorted(SIMULATED.iterdir())
    result = mqttlab("export", SIMULATED, *words)
    assert (result.exit_code, problem in result.stderr) == (2, True), result.stderr
    assert sorted(SIMULATED.iterdir()) == before


def test_a_simulated_run_writes_a_capture_where_the_scenario_asks_for_one(tmp_path: Path) -> None:
    demo = Path(__file__).resolve().parents[2] / "scenarios" / "demo.toml"
    result = mqttlab("run", demo, "--backend", "sim", "--set", "phases.duration=1 s", "--set", "recording.pcapng=true",
                     "--runs", tmp_path, "--json")
    [one] = json.loads(result.stdout)["runs"]
    assert len(list(frames(Path(one["recording"]) / "run.pcapng"))) > 100
