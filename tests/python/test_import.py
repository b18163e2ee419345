"""Captures, logs and tables that somebody else made, imported and read like our own."""

from __future__ import annotations

import gzip
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from commands import mqttlab
from mqttlab import metrics
from mqttlab.engine import EngineError
from mqttlab.imports import Evidence, evidence_of, import_evidence, title_of
from mqttlab.recording import Recording
from mqttlab.report import write_html
from mqttlab.runs import list_runs

CAPTURE = Path(__file__).resolve().parents[2] / "fuzz" / "corpus" / "capture" / "pcapng-le"
TABLE = """\
message,publisher,subscriber,topic,qos,payload_bytes,intended,sent,received
1,meter-1,desk,power,1,120,2024-05-01T12:00:00Z,2024-05-01T12:00:00.002Z,2024-05-01T12:00:00.050Z
1,meter-1,wall,power,1,120,2024-05-01T12:00:00Z,2024-05-01T12:00:00.002Z,
2,meter-1,desk,power,1,120,2024-05-01T12:00:01Z,2024-05-01T12:00:01.001Z,2024-05-01T12:00:01.030Z
2,meter-1,desk,power,1,120,2024-05-01T12:00:01Z,2024-05-01T12:00:01.001Z,2024-05-01T12:00:01.090Z
3,meter-2,desk,power,0,80,2024-05-01T12:00:02Z,,
"""


def imported(tmp_path: Path, *files: Path, evidence: Evidence = "capture", options: tuple[str, ...] = ()) -> Recording:
    outcome = import_evidence(evidence, files, tmp_path / "recording", lambda line: None, options=options)
    return Recording.open(outcome.directory)


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def gzipped(path: Path, content: bytes) -> Path:
    return written(path, gzip.compress(content))


def zstandard(path: Path, content: bytes) -> Path:
    zstd = shutil.which("zstd")
    if zstd is None:
        pytest.skip("the program zstd is not installed")
    return written(path, subprocess.run([zstd, "-c"], input=content, capture_output=True, check=True).stdout)


def test_a_capture_becomes_a_recording_with_everything_that_is_known(tmp_path: Path) -> None:
    recording = imported(tmp_path, CAPTURE)
    assert recording.complete
    assert recording.name == "pcapng-le"
    assert recording.packets["link"].unique().to_list() == ["pcapng-le"]
    assert recording.packets["start_ns"].null_count() == recording.packets.height
    assert recording.clients["name"].to_list() == ["sensor-1"]
    assert recording.control_packets.filter(kind="PUBLISH")["qos"].sort().to_list() == [0, 1, 2]
    assert {"connect", "connack", "subscribe", "suback", "close"} <= set(recording.events["kind"])
    acknowledged = recording.messages.filter(pl.col("acknowledged_ns").is_not_null())
    assert acknowledged["qos"].sort().to_list() == [1, 2]


@pytest.mark.parametrize("compress", [gzipped, zstandard])
def test_a_compressed_capture_reads_the_same(compress: Callable[[Path, bytes], Path], tmp_path: Path) -> None:
    plain = imported(tmp_path / "plain", CAPTURE)
    # The name does not tell how it is stored; the first bytes do.
    packed = imported(tmp_path / "packed", compress(tmp_path / "pcapng-le", CAPTURE.read_bytes()))
    for table in ("packets", "control_packets", "messages", "network_metrics"):
        assert packed.table(table).equals(plain.table(table)), table


def test_a_cut_capture_is_imported_as_far_as_it_goes_and_says_so(tmp_path: Path) -> None:
    cut = written(tmp_path / "cut.pcapng", CAPTURE.read_bytes()[:-30])
    result = mqttlab("import", "capture", cut, "--output", tmp_path / "recording")
    assert result.returncode == 3, result.stderr
    assert result.stdout.startswith("incomplete")
    assert "cut ends in the middle of a frame" in " ".join(result.stdout.split())
    recording = Recording.open(tmp_path / "recording")
    whole = imported(tmp_path / "whole", CAPTURE)
    assert 0 < recording.packets.height < whole.packets.height
    assert not recording.complete


def test_full_prints_the_tables_of_an_import_below_its_headline(tmp_path: Path) -> None:
    short = mqttlab("import", "capture", CAPTURE, "--output", tmp_path / "short", "--no-html")
    whole = mqttlab("import", "capture", CAPTURE, "--output", tmp_path / "whole", "--no-html", "--full")
    table = mqttlab("import", "log", written(tmp_path / "t.csv", TABLE), "--output", tmp_path / "table", "--no-html",
                    "--full")
    assert "Network layer" not in short.stdout and "By group: latency in ms" not in short.stdout
    assert whole.stdout.index("p99 ") < whole.stdout.index("latency in ms, ") < whole.stdout.index("Network layer")
    assert table.stdout.index("latency ms ") < table.stdout.index("latency in ms, ")


def test_a_cut_compressed_capture_is_imported_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = imported(tmp_path / "whole", CAPTURE)
    # Stored, not deflated, so that a cut takes the last frames only.
    packed = gzip.compress(CAPTURE.read_bytes(), compresslevel=0)
    cut = imported(tmp_path, written(tmp_path / "cut.pcapng.gz", packed[:-60]))
    assert not cut.complete
    assert 0 < cut.packets.height < whole.packets.height


def test_what_unpacks_to_more_than_a_bound_is_read_up_to_there_and_the_bound_can_be_raised(tmp_path: Path) -> None:
    packed = gzipped(tmp_path / "packed.pcapng.gz", CAPTURE.read_bytes())
    half = f"{CAPTURE.stat().st_size // 2} B"
    result = mqttlab("import", "capture", packed, "--output", tmp_path / "half", "--unpacked-max", half)
    assert result.returncode == 3, result.stderr
    assert "unpacks to more than" in result.stdout and "--unpacked-max" in result.stdout
    whole = mqttlab("import", "capture", packed, "--output", tmp_path / "whole", "--unpacked-max", "1 MB")
    assert whole.returncode == 0, whole.stdout + whole.stderr
    assert Recording.open(tmp_path / "half").packets.height < Recording.open(tmp_path / "whole").packets.height
    rows = b"message,publisher,subscriber,sent_ms,received_ms\n" + b"1,a,b,1,2\n" * 1000
    table = gzipped(tmp_path / "messages.csv.gz", rows)
    refused = mqttlab("import", "log", table, "--output", tmp_path / "table", "--unpacked-max", "1 kB")
    assert refused.returncode == 2 and "unpacks to more than" in refused.stderr, refused.stderr
    assert len(refused.stderr.splitlines()) == 1 and not (tmp_path / "table").exists()
    wrong = mqttlab("import", "log", table, "--unpacked-max", "much")
    assert wrong.returncode == 2 and len(wrong.stderr.splitlines()) == 1


@pytest.mark.parametrize(("content", "problem"), [
    (b"hello, this is not a capture at all", "not a pcapng or pcap file"),
    (b"", "not a pcapng or pcap file: it is empty"),
    (bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000"), "there is no frame to import"),
])
def test_what_is_no_capture_is_refused_and_nothing_is_written(content: bytes, problem: str, tmp_path: Path) -> None:
    file = written(tmp_path / "evidence.pcapng", content)
    result = mqttlab("import", "capture", file, "--output", tmp_path / "recording")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"mqttlab: {file}: {problem}")
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "recording").exists()


def test_mistakes_are_named(tmp_path: Path) -> None:
    missing = mqttlab("import", "capture", tmp_path / "nowhere.pcapng", "--output", tmp_path / "recording")
    assert (missing.returncode, missing.stderr.strip()) == (
        2, f"mqttlab: {tmp_path / 'nowhere.pcapng'}: there is no such file")
    imported(tmp_path, CAPTURE)
    occupied = mqttlab("import", "capture", CAPTURE, "--output", tmp_path / "recording")
    assert occupied.returncode == 2
    assert "already holds a recording" in occupied.stderr
    both = mqttlab("import", "log", "a.csv", "b.log", "--output", tmp_path / "other")
    assert both.returncode == 2
    assert "cannot be imported together" in both.stderr


def test_the_help_says_what_is_read() -> None:
    words = mqttlab("import", "log", "--help").stdout
    for name in ("message", "publisher", "subscriber", "payload_bytes", "intended", "sent", "received", "qos"):
        assert name in words


def test_a_table_becomes_messages_with_their_fates(tmp_path: Path) -> None:
    recording = imported(tmp_path, written(tmp_path / "t.csv", TABLE), evidence="csv")
    rows = recording.messages.select("publisher", "sequence", "subscriber", "fate", "latency_ns").rows()
    assert sorted(rows, key=str) == sorted([
        (0, 0, 1, "delivered", 50_000_000), (0, 0, 2, "under_way", None),
        (0, 1, 1, "delivered", 30_000_000), (0, 1, 1, "duplicate", 90_000_000),
        (3, 0, None, "unsent", None),
    ], key=str)
    assert recording.clients["group"].to_list() == ["meter", "desk", "wall", "meter"]
    assert recording.run["started_at"] == "2024-05-01T12:00:00.000000Z"


def test_a_table_is_imported_from_the_command_line_and_listed_among_the_runs(tmp_path: Path) -> None:
    table = written(tmp_path / "meters.csv", TABLE)
    result = mqttlab("import", "log", table, "--runs", tmp_path / "runs", "--name", "field trial")
    assert result.returncode == 0, result.stderr
    run = list_runs(tmp_path / "runs")[0]
    assert (run.name, run.backend, run.status) == ("field trial", "import", "complete")
    assert run.directory.name.startswith("meters-")
    assert str(run.directory) in result.stdout
    report = mqttlab("report", run.directory)
    assert report.returncode == 0, report.stderr
    assert "field trial" in report.stdout
    assert (run.directory / "report.html").stat().st_size > 100_000


def test_a_wrong_table_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    table = written(tmp_path / "t.csv", TABLE.replace("received", "recieved"))
    with pytest.raises(EngineError, match="line 1: the column `recieved` is not known .did you mean `received`"):
        imported(tmp_path, table, evidence="csv")
    assert not (tmp_path / "recording").exists()


def test_names_say_what_is_imported() -> None:
    assert title_of([Path("a/x.pcapng.gz")]) == "x"
    assert title_of([Path("x.log.zst"), Path("y.log")]) == "x-and-1-more"
    assert [evidence_of([Path("a.log.zst")]), evidence_of([Path("a.csv.gz")])] == ["log", "csv"]


def test_every_figure_and_table_of_the_page_is_made_from_an_import(tmp_path: Path) -> None:
    recording = imported(tmp_path, CAPTURE)
    page = write_html(recording, tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("Links: data rate", "Messages by QoS", "Network layer", "captured at 10.0.0.2:1883"):
        assert words in page, words
    # Nobody knows when a transmission began, and so not how long the transmitter was busy.
    assert "Links: share of the time that the transmitter is busy" not in page
    assert metrics.links(recording)["utilisation_percent"].to_list() == [None]


def test_frames_that_crossed_two_captured_links_are_judged_once(tmp_path: Path) -> None:
    alone = imported(tmp_path / "alone", CAPTURE)
    other = written(tmp_path / "behind-the-router", CAPTURE.read_bytes())
    both = imported(tmp_path / "both", CAPTURE, other)
    assert both.packets.height == 2 * alone.packets.height
    assert both.packets.group_by("frame").agg(pl.col("hop").sort())["hop"].to_list() == [
        [0, 1]] * alone.packets.height
    for table in ("control_packets", "messages", "network_metrics"):
        assert both.table(table).equals(alone.table(table)), table


def test_a_log_may_come_through_a_pipe(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mqttlab", "import", "log", "-", "--output", str(tmp_path / "recording")]
    log = "2018-05-29,23:20:20:163,sent,t,1,10,000000\n2018-05-29,23:20:20:200,received,t_2,1,16,000000\n"
    result = subprocess.run(command, input=log, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    assert Recording.open(tmp_path / "recording").messages["latency_ns"].to_list() == [37_000_000]


def test_an_import_that_is_stopped_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mqttlab", "import", "capture", "-", "--output", str(tmp_path / "recording")]
    running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert running.stdin is not None
    # The pipe stays open, so that the import waits for more.
    running.stdin.write(CAPTURE.read_bytes())
    running.stdin.flush()
    deadline = time.monotonic() + 60
    while not (tmp_path / "recording" / "plan.json").exists():
        assert time.monotonic() < deadline, "the import did not begin"
        time.sleep(0.02)
    running.send_signal(signal.SIGINT)
    # Not by `communicate`, which closes the pipe: that would be the capture's end, and an import that has come to it.
    assert running.wait(60) == 3
    assert running.stdout is not None
    assert b"stopped by SIGINT" in running.stdout.read()
    running.stdin.close()
    assert not (tmp_path / "recording").exists()


def test_what_is_another_kind_of_file_is_named(tmp_path: Path) -> None:
    scenario = tmp_path / "fleet.toml"
    scenario.write_text("[[groups]]\n", encoding="utf-8")
    refused = mqttlab("import", "capture", scenario, "--output", tmp_path / "recording")
    assert refused.returncode == 2 and f"it is a scenario; run it with: mqttlab run {scenario}" in refused.stderr
