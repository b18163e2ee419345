"""Captures by dumpcap in which nothing is missing, however busy the machine is.

A buffer holds every frame, and a last frame must have reached the file before it is closed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

LAST = b"the last frame of this capture"
SEND_LAST = f"import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto({LAST!r}, (sys.argv[1], 9))"
BUFFER_MIB = 64
PATIENCE_S = 60


@contextmanager
def capture(
    inside: Sequence[str], options: Sequence[str], file: Path, last: tuple[Sequence[str], str]
) -> Iterator[None]:
    """Captures into ``file`` while the block runs.

    ``inside`` is what comes before dumpcap's command (a namespace), ``options`` name the interface; ``last`` says from
    inside what, and to which address, :data:`LAST` is sent past it.
    """
    sender, address = last
    # dumpcap gives up root, and must write all the same.
    file.parent.chmod(0o777)
    for parent in (file.parent.parent, file.parent.parent.parent):
        parent.chmod(parent.stat().st_mode | 0o055)
    command = [*inside, "dumpcap", "-q", "-B", str(BUFFER_MIB), *options, "-w", str(file)]
    process = subprocess.Popen(command, text=True, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        # It says so when it captures.
        while "File:" not in process.stderr.readline():
            assert process.poll() is None, "dumpcap has ended"
        yield
        deadline = time.monotonic() + PATIENCE_S
        while LAST not in file.read_bytes():
            assert time.monotonic() < deadline, "dumpcap writes nothing"
            subprocess.run([*sender, sys.executable, "-c", SEND_LAST, address], check=True, timeout=PATIENCE_S)
            time.sleep(0.1)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
