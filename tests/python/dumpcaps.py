"""Captures by dumpcap in which nothing is missing, however busy the machine is.

A buffer holds every frame, and a last frame must have reached the file before it is closed.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

LAST = b"the last frame of this capture"
SEND_LAST = f"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto({LAST!r}, ('{{address}}', 9))"
BUFFER_MIB = 64
PATIENCE_S = 60


@contextmanager
def capture(
    inside: Sequence[str], options: Sequence[str], file: Path, send_last: Callable[[str], object]
) -> Iterator[None]:
    """Captures into ``file`` while the block runs.

    ``inside`` is what comes before dumpcap's command (a namespace), ``options`` name the interface; ``send_last`` runs
    a Python program that sends :data:`LAST` past it, where ``{address}`` is to be filled in.
    """
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
            send_last(SEND_LAST)
            time.sleep(0.1)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
