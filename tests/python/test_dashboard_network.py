"""The dashboard against whoever reaches its port: slow, half-sent, huge and very many requests over real sockets."""

from __future__ import annotations

import contextlib
import http.client
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")

from mqttlab.dashboard import connections
from mqttlab.dashboard.address import Listen
from mqttlab.dashboard.connections import LOGIN_BYTES_MAX, WAITING_MAX_PER_ADDRESS, place_of
from mqttlab.dashboard.server import Dashboard
from recordings import Message, write

SECRET = "a-secret-of-the-tests"
WITHIN_S = 60
HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
HALF_BODY = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\nt"


class Stranger:
    """Somebody who reaches the port, from one of this machine's addresses."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.held: list[socket.socket] = []

    def hold(self, count: int, begun: bytes = HALF, source: str = "127.0.0.1") -> list[socket.socket]:
        """Open so many connections, and begin a request on each."""
        opened = []
        for _ in range(count):
            one = socket.create_connection(("127.0.0.1", self.port), WITHIN_S, (source, 0))
            self.held.append(one)
            opened.append(one)
            with contextlib.suppress(OSError):
                one.sendall(begun)
        return opened

    def answer(self, sent: bytes, source: str = "127.0.0.1") -> bytes:
        """What comes back until the server closes, or says nothing more for its answer is there."""
        [one] = self.hold(1, sent, source)
        got = b""
        with contextlib.suppress(OSError):
            while b"</html>" not in got and (part := one.recv(65_536)):
                got += part
        return got

    def status(self, sent: bytes, source: str = "127.0.0.1") -> int:
        return int(self.answer(sent, source).split()[1])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Dashboard]:
    (tmp_path / "runs").mkdir()
    write(tmp_path / "runs" / "one", [Message(sequence=1)])
    made = Dashboard(tmp_path / "runs", Listen.read("127.0.0.1:0"), SECRET, tmp_path / "queue")
    thread = threading.Thread(target=made.serve, daemon=True)
    thread.start()
    yield made
    made.end()
    thread.join(WITHIN_S)


@pytest.fixture
def stranger(served: Dashboard) -> Iterator[Stranger]:
    somebody = Stranger(served.listen.port)
    yield somebody
    for one in somebody.held:
        one.close()


def entered(served: Dashboard) -> tuple[http.client.HTTPConnection, dict[str, str]]:
    """A connection of somebody who has the token, kept open."""
    kept = http.client.HTTPConnection("127.0.0.1", served.listen.port, timeout=WITHIN_S)
    kept.request("GET", f"/?token={SECRET}")
    # What the server has closed is not dialled again without a word.
    kept.auto_open = 0
    answer = kept.getresponse()
    answer.read()
    assert answer.status == 303, answer.status
    return kept, {"Cookie": str(answer.headers["Set-Cookie"]).partition(";")[0]}


def status(kept: http.client.HTTPConnection, cookie: dict[str, str], path: str) -> int:
    kept.request("GET", path, headers=cookie)
    answer = kept.getresponse()
    answer.read()
    return answer.status


def still_open(held: list[socket.socket]) -> int:
    """How many the server has not closed."""
    poll = select.poll()
    for one in held:
        poll.register(one, select.POLLIN)
    return len(held) - len(poll.poll(0))


def until_open(held: list[socket.socket], count: int) -> int:
    """Wait until no more than so many are open."""
    deadline = time.monotonic() + WITHIN_S
    while still_open(held) > count and time.monotonic() < deadline:
        time.sleep(0.05)
    return still_open(held)


@pytest.mark.parametrize("begun", [HALF, b"", HALF_BODY],
                         ids=["half a head", "nothing", "half a body"])
def test_half_sent_requests_stop_nobody_not_even_at_their_own_address(
        begun: bytes, served: Dashboard, stranger: Stranger) -> None:
    before, cookie = entered(served)
    assert status(before, cookie, "/") == 200
    held = stranger.hold(250, begun)
    # Whoever was there already keeps his connection, and whoever comes finds room.
    assert status(before, cookie, "/run/one") == 200
    assert status(http.client.HTTPConnection("127.0.0.1", served.listen.port, timeout=WITHIN_S), cookie, "/") == 200
    assert until_open(held, WAITING_MAX_PER_ADDRESS) <= WAITING_MAX_PER_ADDRESS
    entered(served)


def test_connections_are_counted_by_address_and_the_oldest_goes_first(served: Dashboard, stranger: Stranger) -> None:
    few = stranger.hold(20, source="127.0.0.2")
    many = stranger.hold(WAITING_MAX_PER_ADDRESS + 30)
    assert until_open(many, WAITING_MAX_PER_ADDRESS) == WAITING_MAX_PER_ADDRESS
    assert still_open(few) == 20
    assert still_open(many[:30]) == 0


def test_many_addresses_together_do_not_take_all_connections(
        served: Dashboard, stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WAITING_MAX", 60)
    before, cookie = entered(served)
    assert status(before, cookie, "/") == 200
    held = [one for place in range(2, 10) for one in stranger.hold(15, source=f"127.0.0.{place}")]
    assert until_open(held, 60) <= 60
    assert status(before, cookie, "/") == 200


@pytest.mark.parametrize("begun", [HALF, b"", HALF_BODY], ids=["half a head", "nothing", "half a body"])
def test_a_crowd_of_addresses_with_a_connection_each_closes_none_of_a_browser(
        begun: bytes, served: Dashboard, stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "WAITING_MAX", 40)
    first, cookie = entered(served)
    browser = [first, *(http.client.HTTPConnection("127.0.0.1", served.listen.port, timeout=WITHIN_S)
                        for _ in range(5))]
    assert [status(one, cookie, "/") for one in browser] == [200] * 6
    for one in browser:
        one.auto_open = 0
    # Each address has one connection, and the browser's has the most of all.
    held = [one for place in range(90) for one in stranger.hold(1, begun, f"127.0.1.{place + 1}")]
    assert until_open(held, 34) == 34
    # Those that have waited longest went.
    assert still_open(held[:56]) == 0
    assert [status(one, cookie, "/run/one") for one in browser] == [200] * 6
    # Whoever opens a new window is let in, too, and it is no browser's connection that goes for it.
    [late] = [http.client.HTTPConnection("127.0.0.1", served.listen.port, timeout=WITHIN_S)]
    assert status(late, cookie, "/") == 200
    assert [status(one, cookie, "/run/one") for one in browser] == [200] * 6


def test_where_all_have_the_token_the_one_that_has_waited_longest_goes(
        served: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    first, cookie = entered(served)
    monkeypatch.setattr(connections, "WAITING_MAX", 3)
    several = [http.client.HTTPConnection("127.0.0.1", served.listen.port, timeout=WITHIN_S) for _ in range(12)]
    assert status(first, cookie, "/") == 200
    # Whoever comes is let in, although he is the only one who has not shown it yet.
    assert [status(one, cookie, "/") for one in several] == [200] * 12
    opened = [one.sock for one in (first, *several) if one.sock is not None]
    # A worker may still be at the latest answer as the next one comes.
    assert until_open(opened, 4) <= 4 and still_open(opened[:8]) == 0


def test_a_request_that_comes_slowly_ends_although_its_bytes_keep_coming(
        served: Dashboard, stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_MAX_S", 1)
    [slow] = stranger.hold(1)
    began = time.monotonic()
    with contextlib.suppress(OSError):
        while still_open([slow]) and time.monotonic() < began + WITHIN_S:
            slow.sendall(b"x")
            time.sleep(0.05)
    assert not still_open([slow]) and time.monotonic() - began >= 1


def test_an_answer_that_nobody_reads_ends(
        served: Dashboard, stranger: Stranger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ANSWER_MAX_S", 1)
    monkeypatch.setattr(connections, "REQUEST_MAX_S", 1)
    one = socket.socket()
    stranger.held.append(one)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.settimeout(WITHIN_S)
    one.connect(("127.0.0.1", served.listen.port))
    one.setblocking(False)
    asked = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 1000
    poll = select.poll()
    poll.register(one, 0)
    deadline = time.monotonic() + WITHIN_S
    # A reset: the server has closed with answers unread.
    while not poll.poll(20) and time.monotonic() < deadline:
        with contextlib.suppress(BlockingIOError):
            one.send(asked)
    assert poll.poll(0)


@pytest.mark.parametrize(("head", "expected"), [
    (b"POST /login HTTP/1.1\r\nContent-Length: 7000000\r\n", 413),
    (b"POST /_dash-update-component HTTP/1.1\r\nContent-Length: 7000000\r\nCookie: mqttlab-1=x\r\n", 413),
    (b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n", 413),
    (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n", 400),
    (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, 431),
    (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n", 431),
    (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 12_000, 431),
])
def test_what_is_huge_is_refused_before_it_has_come(
        head: bytes, expected: int, stranger: Stranger) -> None:
    assert stranger.status(head + b"Host: 127.0.0.1\r\n\r\n") == expected


def test_a_body_without_a_length_ends_at_the_limit_of_a_log_in(stranger: Stranger) -> None:
    parts = b"".join(b"400\r\n" + b"x" * 1024 + b"\r\n" for _ in range(2 * LOGIN_BYTES_MAX // 1024))
    sent = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n" + parts
    assert stranger.status(sent) == 413


def test_whoever_has_the_token_may_send_as_much_as_an_upload_has(served: Dashboard, stranger: Stranger) -> None:
    kept, cookie = entered(served)
    headers = {**cookie, "Origin": f"http://127.0.0.1:{served.listen.port}", "Content-Type": "application/json"}
    kept.request("POST", "/login", b"token=" + b"x" * 5_000_000, headers)
    # It has come whole, and only then is the token wrong.
    assert kept.getresponse().status == 401


def test_wrong_tokens_are_limited_by_address_and_lock_nobody_out(served: Dashboard, stranger: Stranger) -> None:
    host = f"Host: 127.0.0.1:{served.listen.port}\r\n\r\n".encode()

    def tried(token: str, source: str = "127.0.0.1") -> int:
        return stranger.status(f"GET /?token={token} HTTP/1.0\r\n".encode() + host, source)

    told = [tried(f"guess{number}") for number in range(25)]
    assert told == [401] * 20 + [429] * 5
    assert tried("guess", "127.0.0.2") == 401
    assert tried(SECRET) == 303 and tried(SECRET, "127.0.0.2") == 303
    # A right token in between does not begin the count anew for whoever guesses.
    assert tried("guess") == 429


def test_who_shares_a_limit() -> None:
    assert place_of(("192.0.2.1", 9)) == "192.0.2.1"
    assert place_of(("2001:db8::1", 9, 0, 0)) == place_of(("2001:db8::ffff", 1, 0, 0)) == "2001:db8::/64"
    assert place_of(("2001:db8:0:1::1", 9, 0, 0)) != place_of(("2001:db8::1", 9, 0, 0))
    assert place_of(("fe80::1%eth0", 9, 0, 2)) == "fe80::/64"


@pytest.mark.parametrize(("path", "expected"), [
    ("/", 200), ("/run/one", 200), ("/compare?first=one", 200), ("/doctor", 200), ("/study/perez2005", 200),
    ("/none", 404), ("/login", 404), ("/run/none", 404), ("/run/", 404), ("/run/..", 404), ("/run/%00", 404),
    ("/experiment/none", 404), ("/study/none", 404), ("/a/b/c", 404), ("/wp-login.php", 404), ("/runs", 404),
    ("/_dash-component-suites/none/none.js", 404), ("/_dash-component-suites/dash/none.js", 404),
    ("/_dash-component-suites/dash/../../etc/passwd", 404), ("/_dash-component-suites/os/x", 404),
    ("/assets/none.css", 404), ("/vendor/none.js", 404), ("/data/none", 404),
])
def test_an_address_at_which_there_is_nothing_says_so(path: str, expected: int, served: Dashboard,
                                                      caplog: pytest.LogCaptureFixture) -> None:
    kept, cookie = entered(served)
    assert status(kept, cookie, path) == expected
    assert "Traceback" not in caplog.text
