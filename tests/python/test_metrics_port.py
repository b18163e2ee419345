"""The metrics' port has limits: who holds connections, or asks under a strange name, gets nothing and harms nobody."""

from __future__ import annotations

import http.client
import socket
import threading
import time
import urllib.parse
from collections.abc import Iterator

import pytest

from mqttlab.cli import metrics_port
from mqttlab.cli.openmetrics import served


@pytest.fixture
def port() -> Iterator[int]:
    with served("127.0.0.1:0") as (_, url):
        yield urllib.parse.urlsplit(url).port or 0


def asked(port: int, host: str | None = None) -> int:
    """The status of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/metrics", headers={} if host is None else {"Host": host})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(("host", "status"), [
    ("127.0.0.1", 200), ("localhost:9464", 200), ("[::1]:9464", 200), ("192.0.2.7:9464", 200),
    (socket.gethostname().upper(), 200),
    ("evil.example", 421), ("evil.example:9464", 421), ("127.0.0.1.evil.example", 421), ("[evil.example]", 421),
])
def test_only_an_address_or_the_machines_own_name_is_answered(port: int, host: str, status: int) -> None:
    assert asked(port, host) == status


def test_a_question_without_a_host_is_answered(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert b" 200 " in connection.recv(100)


def test_a_burst_of_scrapes_is_served_at_once(port: int) -> None:
    took: list[float] = []

    def scrape() -> None:
        began = time.monotonic()
        assert asked(port) == 200
        took.append(time.monotonic() - began)

    threads = [threading.Thread(target=scrape) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # A connection that found no room in the queue would come again after a second (RFC 6298, 2.1).
    assert len(took) == 40 and sorted(took)[-5] < 1


def test_connections_that_are_held_take_no_room(port: int) -> None:
    before = threading.active_count()
    held = [socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(3 * metrics_port.CONNECTIONS_MAX)]
    try:
        for connection in held[::2]:
            connection.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        assert asked(port) == 200
        deadline = time.monotonic() + 5
        while threading.active_count() > before + metrics_port.CONNECTIONS_MAX and time.monotonic() < deadline:
            time.sleep(0.05)
        assert threading.active_count() <= before + metrics_port.CONNECTIONS_MAX
    finally:
        for connection in held:
            connection.close()


def test_a_question_that_comes_slowly_is_cut_off(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_port, "REQUEST_MAX_S", 1)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        began = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() < began + 20:
                connection.sendall(b"G")
                time.sleep(0.05)
        assert time.monotonic() - began < 10
