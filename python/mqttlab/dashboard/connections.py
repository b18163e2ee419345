"""The dashboard's server: waitress, with limits for connections whose sender has not shown the token.

Waitress reads requests in one thread, whatever their number, and hands whole ones to its workers: a request that comes
slowly takes a connection, and no worker. What its settings do not limit is added here. A connection that waits for a
request, or for its reader, can be closed; one that is being answered cannot. Where too many wait, from one address or
from all, the one that has waited longest is closed, and first those whose sender has not shown the token: a new
connection always finds room, so that nobody is locked out, not even at the address of whoever holds the others.

Among all it does not count who has the most: whoever has as many addresses as he likes has one connection at each, and
the most at one address are a browser's.
"""

from __future__ import annotations

import copy
import ipaddress
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import flask
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import TcpWSGIServer

THREADS = 8
# That wait; a browser has six connections to a server in all its windows.
WAITING_MAX_PER_ADDRESS = 64
WAITING_MAX = 400
# Of all; beyond it waitress accepts none. Others are accepted, so that room can be made, up to the limit of descriptors
# that processes have nearly everywhere (1024).
CONNECTIONS_MAX = 700
IDLE_MAX_S = 60
# A request's head, and so much longer as its body takes at the slowest.
REQUEST_MAX_S = 20
BODY_BYTES_S_MIN = 4000
# For whoever has not shown the token, to read an answer of less than 2 kB.
ANSWER_MAX_S = 20
HEAD_BYTES_MAX = 64 * 1024
BODY_BYTES_MAX = 8_000_000
LOGIN_BYTES_MAX = 4096
# An answer goes to the disk where its reader is slow (waitress has temporary files for that), so that no worker waits.
ANSWER_BYTES_AHEAD = 1_000_000_000
LOOK_EVERY_S = 2
Knows = Callable[[Mapping[str, str]], bool]
"""Whether the fields of a request's head (names as WSGI has them, without ``HTTP_``) show the token."""


class Request(HTTPRequestParser):
    """A request as it comes; of one without the token's cookie a body that is no log-in is not taken."""

    adj: Any

    def __init__(self, adj: Any, knows: Knows) -> None:
        super().__init__(adj)
        self._knows = knows

    def parse_header(self, header_plus: bytes) -> None:
        """Parse the head, and see whose request it is."""
        super().parse_header(header_plus)
        if not self._knows(self.headers):
            self.adj = copy.copy(self.adj)
            self.adj.max_request_body_size = LOGIN_BYTES_MAX


class Connection(HTTPChannel):
    """A connection of a browser, or of anybody."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self.known = False
        self.came_at = self.waits_since = time.monotonic()
        super().__init__(*given, **named)
        self.place = place_of(self.addr)

    @property
    def parser_class(self) -> Callable[[Any], Request]:
        """What reads its requests."""
        return partial(Request, knows=self._knows)

    def _knows(self, fields: Mapping[str, str]) -> bool:
        known = self.server.knows(fields)
        self.known = self.known or known
        return bool(known)

    def received(self, data: bytes) -> Any:
        """Take what came."""
        if self.request is None:
            self.waits_since = time.monotonic()
        return super().received(data)

    def service(self) -> None:
        """Answer a whole request; a worker does."""
        super().service()
        self.waits_since = time.monotonic()

    @property
    def waits(self) -> bool:
        """Whether it waits for its sender or its reader, and no worker has to do with it."""
        return not self.requests

    def is_overdue(self, now: float) -> bool:
        """Whether its request or its reading takes too long."""
        waited = now - self.waits_since
        if self.request is not None:
            return bool(waited > REQUEST_MAX_S + self.request.body_bytes_received / BODY_BYTES_S_MIN)
        if self.total_outbufs_len and not self.known:
            return waited > ANSWER_MAX_S
        return time.time() - self.last_activity > IDLE_MAX_S


class Server(TcpWSGIServer):
    """Waitress for one address."""

    channel_class = Connection

    def __init__(self, application: flask.Flask, host: str, port: int, knows: Knows) -> None:
        """Bind the address; nothing is answered before :meth:`run`.

        Args:
            application: what answers.
            host: an address of this machine.
            port: 0 takes any that is free.
            knows: who has the token.

        Raises:
            OSError: the address cannot be had.
        """
        self.knows = knows
        super().__init__(
            application, host=host, port=port, threads=THREADS, ident=None, connection_limit=CONNECTIONS_MAX,
            max_request_header_size=HEAD_BYTES_MAX, max_request_body_size=BODY_BYTES_MAX, channel_timeout=IDLE_MAX_S,
            cleanup_interval=LOOK_EVERY_S, outbuf_high_watermark=ANSWER_BYTES_AHEAD, asyncore_use_poll=True,
            # Others may close theirs at any time; that is nothing to log.
            log_socket_errors=False, clear_untrusted_proxy_headers=True)

    def handle_accept(self) -> None:
        """Accept a connection, and make room for the next."""
        super().handle_accept()
        by_address: dict[str, list[Connection]] = {}
        for one in self._waiting():
            by_address.setdefault(one.place, []).append(one)
        for mine in by_address.values():
            _close_down_to(WAITING_MAX_PER_ADDRESS, mine)
        _close_down_to(WAITING_MAX, self._waiting())

    def maintenance(self, now: float) -> None:
        """Close what takes too long; also what takes no bytes, which waitress would wait for."""
        for one in self._waiting():
            if one.is_overdue(time.monotonic()):
                one.handle_close()

    def _waiting(self) -> list[Connection]:
        return [one for one in [*self.active_channels.values()] if one.waits]


def _close_down_to(count: int, waiting: list[Connection]) -> None:
    """Close those without the token that have waited longest, then others, until no more than so many are left."""
    if len(waiting) <= count:
        return
    # Who has just come had no time to show the token, and is nobody's oldest where all others have shown it.
    came = max(waiting, key=lambda one: one.came_at)
    others = sorted((one for one in waiting if one is not came), key=lambda one: (one.known, one.waits_since))
    for one in others[:len(waiting) - count]:
        one.handle_close()


def place_of(address: tuple[Any, ...]) -> str:
    """Who shares a limit: an IPv4 address, or an IPv6 network of one site's (64 bits)."""
    host = str(address[0]).partition("%")[0]
    found = ipaddress.ip_address(host)
    return host if found.version == 4 else str(ipaddress.ip_network((host, 64), strict=False))
