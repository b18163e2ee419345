"""The port of ``mqttlab run --metrics``: who may ask, and how many at once.

A scrape is short. A connection is one question, and is closed :data:`REQUEST_MAX_S` after it began. At most
:data:`CONNECTIONS_MAX` are open: where one more comes the oldest is closed, so that nobody is locked out. ``Host`` must
be an address, or this machine's own name: a page of somebody else's may point a name of his at this address (DNS
rebinding), and read what a browser here can.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterable
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

CONNECTIONS_MAX = 64
"""Each has a thread while it is answered. Prometheus opens one to a target."""
REQUEST_MAX_S = 10
WAITING_MAX = 128
"""Of connections that wait to be accepted: a burst of scrapes."""
Answer = Callable[[dict[str, Any], Any], Iterable[bytes]]


class MetricsPort(ThreadingMixIn, WSGIServer):
    """Serves one page.

    Args:
        host: an IP address.
        port: 0 is any that is free.
        answer: the page, as a WSGI application.

    Raises:
        OSError: nothing can listen there.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = WAITING_MAX

    def __init__(self, host: str, port: int, answer: Answer) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._begun: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        super().__init__((host, port), _Quiet)
        self.set_app(_guarded(answer))

    def server_bind(self) -> None:
        """Bind; ``http.server`` would ask a name server who this is."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, with room made for it."""
        with self._lock:
            oldest = next(iter(self._begun)) if len(self._begun) >= CONNECTIONS_MAX else None
            if oldest is not None:
                self._cut(oldest)
            self._begun[request] = time.monotonic()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Twice a second: close what has taken too long."""
        latest = time.monotonic() - REQUEST_MAX_S
        with self._lock:
            for request in [request for request, begun in self._begun.items() if begun < latest]:
                self._cut(request)

    def shutdown_request(self, request: Any) -> None:
        """It is answered, or its other end has gone."""
        with self._lock:
            self._begun.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who goes away in the middle is no fault of the run's."""

    def _cut(self, request: socket.socket) -> None:
        """Its thread reads the end then, and ends."""
        del self._begun[request]
        with contextlib.suppress(OSError):
            request.shutdown(socket.SHUT_RDWR)


class _Quiet(WSGIRequestHandler):
    """Logs nothing: standard error has what the run says."""

    timeout = REQUEST_MAX_S

    def log_message(self, *_: Any) -> None:
        pass


def knows(authority: str) -> bool:
    """Whether a ``Host`` field names this machine by an address or its own name; one of HTTP/1.0 may have none."""
    name = authority.lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    if name in ("", "localhost", socket.gethostname().lower()):
        return True
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(name)
        return True
    return False


def _guarded(answer: Answer) -> Answer:
    def guarded(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        host = environ.get("HTTP_HOST", "")
        if knows(host):
            return answer(environ, start)
        start("421 Misdirected Request", [("Content-Type", "text/plain; charset=utf-8")])
        return [f"Unknown host {host!r}. Use an address, or this machine's own name.\n".encode()]

    return guarded
