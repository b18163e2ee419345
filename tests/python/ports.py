"""Ports of loopback for servers that a test starts, which nobody else has meanwhile."""

from __future__ import annotations

import socket

_HELD: list[socket.socket] = []


def own_port() -> int:
    """A TCP port of 127.0.0.1 that no other program is given until the tests end.

    A port that was found free and let go may be another's before the server has it: Linux gives it to any `connect` or
    `bind` that asks for none in particular. So a socket stays bound to it, and never listens. With SO_REUSEADDR at
    both, a server may listen on the port all the same (socket(7)); until one does, a connection to it is refused.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    _HELD.append(held)
    return int(held.getsockname()[1])
