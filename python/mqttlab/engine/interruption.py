"""What ends engines before their time: Ctrl-C, SIGTERM and SIGHUP, passed on to every engine that runs.

The first signal asks the engines to end, which they do within two seconds; a second one kills them. A signal can be
heard in the main thread only, while engines may be run by many: whoever starts several of them shares one
:class:`Interruption` among them, and listens in the main thread.

Exceptions:
    Interrupted: somebody asked for the end before there was anything to keep.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

from mqttlab.errors import MqttlabError

if TYPE_CHECKING:
    import socket

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# An engine ends by itself within two seconds of being asked to, if it can run at all.
GRACE_S = 10


class Interrupted(MqttlabError):
    """Somebody asked for the end before there was anything to keep."""

    exit_status = 3


class Interruption:
    """Whether the end has been asked for, and the engines that have to be told."""

    def __init__(self) -> None:
        self._engines: set[subprocess.Popen[str]] = set()
        self._others: set[Interruption] = set()
        self._asked: signal.Signals | None = None

    @property
    def asked(self) -> signal.Signals | None:
        """The signal that asked for the end, if one did."""
        return self._asked

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Listen to signals meanwhile, where that is possible: in the main thread."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        # What nohup ignores stays ignored.
        numbers = [n for n in SIGNALS if n != signal.SIGHUP or signal.getsignal(n) is not signal.SIG_IGN]
        # A handler runs once the main thread is back from what it waits for, and a signal that comes just before the
        # wait begins does not end it. The byte that Python writes for each signal is read by a thread at once.
        import socket

        ours, pythons = socket.socketpair()
        pythons.setblocking(False)
        listener = threading.Thread(target=self._listen, args=(ours,), name="signals", daemon=True)
        listener.start()
        other_fd = signal.set_wakeup_fd(pythons.fileno(), warn_on_full_buffer=False)
        before = {number: signal.signal(number, _wake) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(other_fd)
            pythons.close()
            listener.join()
            ours.close()

    @contextlib.contextmanager
    def telling(self, engine: subprocess.Popen[str]) -> Iterator[None]:
        """Tell this engine meanwhile; it has ended afterwards, whatever happens."""
        # In this order: a signal that comes in between is passed on twice rather than not at all.
        self._engines.add(engine)
        if self._asked is not None:
            _send(engine, self._asked)
        try:
            yield
        finally:
            self._engines.discard(engine)
            if engine.poll() is None:
                _send(engine, signal.SIGTERM)
                try:
                    engine.wait(GRACE_S)
                except subprocess.TimeoutExpired:
                    engine.kill()
                    engine.wait()

    @contextlib.contextmanager
    def passing_on(self, other: Interruption) -> Iterator[None]:
        """Pass the request for the end on to ``other`` meanwhile, which ends engines of its own, or none."""
        self._others.add(other)
        if self._asked is not None and other.asked is None:
            other.end(self._asked)
        try:
            yield
        finally:
            self._others.discard(other)

    def end(self, number: signal.Signals) -> None:
        """Ask for the end; for the second time, insist on it. From any thread."""
        first, self._asked = self._asked is None, self._asked or number
        for engine in list(self._engines):
            _send(engine, number if first else signal.SIGKILL)
        for other in list(self._others):
            other.end(number)
        if first:
            reminder = threading.Timer(GRACE_S, self.end, [number])
            reminder.daemon = True
            reminder.start()

    def _listen(self, pipe: socket.socket) -> None:
        while numbers := pipe.recv(16):
            for number in numbers:
                if number in SIGNALS:
                    self.end(signal.Signals(number))


def _wake(_number: int, _frame: FrameType | None) -> None:
    """In place of the default, which would end the program; the listener does the rest."""


def _send(engine: subprocess.Popen[str], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        engine.send_signal(number)
