"""Who is killed leaves no secret: not the command of a live run, not its engine, not both, not the queue."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import mqttlab
from mqttlab import scratch
from mqttlab.engine import is_being_written
from mqttlab.queue import Queue
from secretly import SECRET, leaks, written

LIVE = 'backend = "live"\n[recording]\npcapng = true'


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary files of this test's own: another command would see its run first."""
    for name in ("tmp", "memory"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "memory"))
    monkeypatch.setenv("LAB_PASSWORD", SECRET)


def live(place: Path, transport: str = "tcp", duration: str = "60 s") -> Path:
    scenario = written(place, extra=f'transport = "{transport}"\n')
    text = scenario.read_text().replace('backend = "sim"', LIVE).replace('duration = "1 s"', f'duration = "{duration}"')
    scenario.write_text(text)
    return scenario


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.01)


def engine_of(process: int) -> int | None:
    found = subprocess.run(["pgrep", "-P", str(process), "-f", "mqttlab-engine run"], capture_output=True, text=True,
                           check=False).stdout.split()
    return int(found[0]) if found else None


def is_gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True


def begun(runs: Path) -> list[Path]:
    return [path.parent for path in runs.glob("kept-*/plan.json")]


def has_frames(runs: Path) -> bool:
    """Whether passwords were sent: the spool has frames of some connections."""
    return any(path.stat().st_size > 3000 for path in runs.glob("kept-*/frames.spool"))


MOMENTS: dict[str, Callable[[Path], bool]] = {
    "begun": lambda runs: bool(begun(runs)),
    "connected": has_frames,
    "finishing": lambda runs: any(runs.glob("kept-*/*.pcapng")),
}


@pytest.mark.live
@pytest.mark.parametrize(("moment", "transport"), [
    *((moment, "tcp") for moment in MOMENTS), ("connected", "tls"), ("connected", "websocket")])
@pytest.mark.parametrize("who", ["command", "engine", "both"])
def test_no_file_of_a_run_that_was_killed_has_its_password(
    who: str, moment: str, transport: str, tmp_path: Path,
) -> None:
    runs, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    elsewhere.mkdir()
    scenario = live(elsewhere, transport, "1 s" if moment == "finishing" else "60 s")
    command = subprocess.Popen([sys.executable, "-m", "mqttlab", "run", scenario, "--runs", runs, "--catalog", "none"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: MOMENTS[moment](runs))
        engine = engine_of(command.pid)
        for name, process in (("command", command.pid), ("engine", engine)):
            if process is not None and who in (name, "both"):
                os.kill(process, signal.SIGKILL)
        command.wait(60)
        until(lambda: engine is None or is_gone(engine))
    finally:
        command.kill()
    [run] = begun(runs) or [None]
    # The kernel gives the lock back when the last of its processes is gone.
    until(lambda: run is None or not is_being_written(run))
    done = mqttlab("list", "--runs", runs)
    assert leaks(runs, said=done.stdout + done.stderr) == []
    assert run is None or not run.exists() or not scratch.unhidden(run)
    if run is not None and (keys := run / "keys.log").exists():
        assert "removed" in keys.read_text(), "keys would show it"
    if run is not None and (overwritten := run / "secrets-overwritten.txt").is_file():
        assert f"overwritten: {overwritten}" in done.stderr, "it is said"
    assert mqttlab("report", run).returncode == 0 if run is not None and run.exists() else True
    assert leaks(runs) == []


@pytest.mark.live
def test_a_queue_that_was_killed_leaves_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQTTLAB_QUEUE", str(tmp_path / "queue"))
    runs, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = mqttlab("run", live(elsewhere), "--runs", runs, "--catalog", "none", "--detach")
    assert done.returncode == 0, done.stderr
    until(lambda: has_frames(runs))
    found = subprocess.run(["pgrep", "-f", f"mqttlab.queue {tmp_path / 'queue'}"], capture_output=True, text=True,
                           check=True).stdout.split()
    engines = [engine for process in found if (engine := engine_of(int(process))) is not None]
    for process in found:
        os.kill(int(process), signal.SIGKILL)
    until(lambda: not Queue(tmp_path / "queue").is_running and all(is_gone(engine) for engine in engines))
    [run] = begun(runs)
    assert leaks(run) == []
    assert leaks(tmp_path / "memory") != [], "the job may still be made again"
    assert mqttlab("queue", "cancel", "--all").returncode == 0
    assert "cancelled" in mqttlab("queue", "list", "--all").stdout
    assert leaks(tmp_path / "memory", tmp_path / "queue", runs) == []


def block(kind: int, body: bytes) -> bytes:
    """A block of pcapng."""
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def left_by_a_killed_run(place: Path) -> Path:
    """A recording whose capture and log show the password, and whose plan has its mark, as nobody has hidden them."""
    assert mqttlab("run", written(place), "--runs", place / "runs", "--catalog", "none").returncode == 0
    [run] = begun(place / "runs")
    fields = b"".join(struct.pack("!H", len(text)) + text for text in (b"sensor", b"alice", SECRET.encode()))
    connect = b"\x00\x04MQTT\x04\xc2\x00\x3c" + fields
    segment = struct.pack("!HHIIBBHHH", 40_000, 1883, 1, 1, 0x50, 0x18, 65535, 0, 0)
    segment += bytes([0x10, len(connect)]) + connect
    packet = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(segment), 0, 0, 64, 6, 0, bytes(4), bytes(4)) + segment
    head = block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1)) + block(1, struct.pack("<HHI", 101, 0, 0))
    (run / "capture-field-0-up.pcapng").write_bytes(
        head + block(6, struct.pack("<IIIII", 0, 0, 0, len(packet), len(packet)) + packet))
    (run / "keys.log").write_text("CLIENT_RANDOM 00 00\n")
    return run


def test_a_scrub_finds_captures_and_keys_of_a_run_that_an_earlier_version_left(tmp_path: Path) -> None:
    run = left_by_a_killed_run(tmp_path)
    before = (run / "capture-field-0-up.pcapng").stat()
    assert leaks(run) != []
    done = mqttlab("catalog", "scrub", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    assert "capture-field-0-up.pcapng: passwords and other credentials" in done.stdout
    assert "keys.log: keys of TLS connections" in done.stdout
    assert "2 files changed" in done.stdout
    after = (run / "capture-field-0-up.pcapng").stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert leaks(run) == []
    assert "0 files changed" in mqttlab("catalog", "scrub", tmp_path / "runs").stdout


def test_logs_of_programs_that_were_told_a_secret_go_where_nobody_knows_it(tmp_path: Path) -> None:
    run = left_by_a_killed_run(tmp_path)
    plan = json.loads((run / "plan.json").read_text())
    plan["servers"][0]["process"] = {"files": [{"text": "***0123456789abcdef"}]}
    (run / "plan.json").write_text(json.dumps(plan))
    (run / f"{plan['servers'][0]['name']}.log").write_text(f"told {SECRET}\n")
    (run / "other.log").write_text("said nothing\n")
    (run / scratch.UNHIDDEN).write_text("")
    mqttlab("report", run)
    assert leaks(run) == []
    assert (run / "other.log").read_text() == "said nothing\n"
    said = (run / "secrets-overwritten.txt").read_text()
    assert all(name in said for name in ("capture-field-0-up.pcapng", "keys.log", "broker.log"))
    assert scratch.unhidden(run) == []
