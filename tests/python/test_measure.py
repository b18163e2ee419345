"""What `mqttlab doctor --measure` says of this machine: its structure and its bounds, not the machine's speed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mqttlab.cli.measure import CHUNK_BYTES, DISK_BYTES, write_rate
from mqttlab.engine import EngineError, measure

DOCTOR = [sys.executable, "-m", "mqttlab", "doctor"]


@pytest.mark.live
def test_a_short_measurement_says_what_was_seen_and_what_follows(tmp_path: Path) -> None:
    result = subprocess.run([*DOCTOR, "--measure", "1.5", "--json", "--runs", str(tmp_path / "runs")],
                            capture_output=True, text=True, check=True, timeout=60)
    found = json.loads(result.stdout)
    timer = found["control_timer"]
    assert timer["count"] > 0 and 0 <= timer["p50_ns"] <= timer["p99_ns"] <= timer["max_ns"]
    assert [rate["frames_s"] for rate in found["rates"]] == [1000, 5000, 20_000]
    for rate in found["rates"]:
        assert 0 <= rate["lost"] <= rate["sent"]
        # A sender that was held up catches up; what it does in all is no more than was asked for.
        assert 0 < rate["offered_frames_s"] < 2 * rate["frames_s"]
        if rate["lost"] < rate["sent"]:
            assert rate["error_p50_ns"] <= rate["error_p99_ns"] <= rate["error_max_ns"]
            # Never earlier than what is taken off for the machine's own time.
            assert rate["error_p50_ns"] >= -found["latency_compensation_ns"] - 1e6
    delays = [(wide["frames_s"], wide["delay_ns_min"]) for wide in found["ranges"]]
    assert delays == sorted(delays)
    assert found["words"]
    assert found["steal_percent"] is None or 0 <= found["steal_percent"] <= 100
    assert 0 < found["disk"]["written_bytes"] <= DISK_BYTES and found["disk"]["bytes_s"] > 0
    assert not list(tmp_path.iterdir())


@pytest.mark.live
def test_people_read_a_table_and_sentences(tmp_path: Path) -> None:
    result = subprocess.run([*DOCTOR, "--measure", "1", "--runs", str(tmp_path)], capture_output=True, text=True,
                            check=True, timeout=60)
    assert "Control timer" in result.stdout and "20,000" in result.stdout
    assert "Emulated delays" in result.stdout or "Nothing can be measured" in result.stdout


@pytest.mark.live
def test_ctrl_c_ends_a_measurement(tmp_path: Path) -> None:
    doctor = subprocess.Popen([*DOCTOR, "--measure", "60", "--json", "--runs", str(tmp_path)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    children = Path(f"/proc/{doctor.pid}/task/{doctor.pid}/children")
    while not children.read_text(encoding="ascii").strip():
        assert doctor.poll() is None
    doctor.send_signal(signal.SIGINT)
    out, _ = doctor.communicate(timeout=30)
    assert doctor.returncode != 0 and not out


def test_the_disk_is_written_to_for_a_bounded_time_and_nothing_stays(tmp_path: Path) -> None:
    found = write_rate(tmp_path / "made" / "later", 0.0)
    assert found["directory"] == str(tmp_path) and found["written_bytes"] == CHUNK_BYTES and found["bytes_s"] > 0
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no /proc here")
def test_a_disk_that_cannot_be_written_to_is_said() -> None:
    found = write_rate(Path("/proc/self"), 0.1)
    assert found["bytes_s"] is None and found["problem"]


@pytest.mark.parametrize("arguments, words", [
    (["--json"], "--json goes with --measure"), (["--runs", "x"], "--runs goes with --measure"),
    (["--measure", "0.2"], "--measure"), (["--measure", "soon"], "--measure"),
])
def test_options_that_do_not_fit_are_refused(arguments: list[str], words: str) -> None:
    result = subprocess.run([*DOCTOR, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 2 and words in result.stderr


def test_a_machine_that_cannot_be_measured_is_a_failure_and_no_wrong_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a machine without namespaces does cannot be had on demand.
    stub = tmp_path / "mqttlab-engine"
    stub.write_text("#!/bin/sh\necho 'cannot make a user namespace' >&2\nexit 1\n", encoding="utf-8")
    stub.chmod(0o755)
    monkeypatch.setattr("mqttlab.engine.program.engine_path", lambda: stub)
    with pytest.raises(EngineError, match="cannot make a user namespace") as caught:
        measure(1.0, lambda _: None)
    assert caught.value.exit_status == 1
