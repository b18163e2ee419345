"""Scratch directories go with their owners, and with the next one of owners that were killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mqttlab.engine import scratch

OWNER = """
import sys
from mqttlab.engine import scratch
with scratch.directory("owner") as place:
    (place / "tables").write_text("much")
    print(place, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_directory_is_private_and_goes_with_its_block(temporary: Path) -> None:
    with pytest.raises(ValueError, match="as an error"), scratch.directory("test") as place:
        assert place.parent == temporary and "test" in place.name and place.stat().st_mode & 0o077 == 0
        (place / "below").mkdir()
        raise ValueError("as an error")
    assert list(temporary.iterdir()) == []


def test_the_directory_of_a_killed_process_goes_at_the_next_start_and_no_other(temporary: Path) -> None:
    owners = [subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "TMPDIR": str(temporary)}) for _ in range(2)]
    try:
        places = [Path(owner.stdout.readline().strip()) for owner in owners if owner.stdout is not None]
        assert all(place.is_dir() for place in places)
        owners[0].send_signal(signal.SIGKILL)
        owners[0].wait(timeout=30)
        assert places[0].is_dir()
        with scratch.directory("next"):
            assert not places[0].exists() and (places[1] / "tables").is_file()
    finally:
        for owner in owners:
            owner.kill()
            owner.communicate(timeout=30)


def test_one_that_is_just_about_to_get_its_lock_is_left_alone_for_a_minute(temporary: Path) -> None:
    young, old = temporary / f"{scratch.NEW}young", temporary / f"{scratch.NEW}old"
    young.mkdir()
    old.mkdir()
    hour_ago = time.time() - 3600
    os.utime(old, (hour_ago, hour_ago))
    with scratch.directory("next"):
        assert young.is_dir() and not old.exists()
