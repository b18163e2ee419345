"""Who is let in: every request passes here before any page, callback or file.

Three things are asked of a request. Its ``Host`` is a name of this server: a name of somebody else's that was pointed
at this address (DNS rebinding) is not. It comes from a page of this server, or from no page at all: others' pages may
not send to it, nor embed or read it. It has the secret, as a cookie that the address with ``?token=…`` leaves behind.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit

import flask
from werkzeug.http import parse_cookie

from mqttlab.dashboard.address import Listen
from mqttlab.dashboard.connections import BODY_BYTES_MAX, place_of
from mqttlab.foreign import markup

SAFE = ("GET", "HEAD", "OPTIONS")
FAILURES_A_MINUTE = 20
# Of so many addresses failures are remembered, the latest ones.
ADDRESSES_MAX = 1000
ICON = "/_favicon.ico"


class Access:
    """Answers requests that may not pass, and puts what browsers must be told on all answers."""

    def __init__(self, listen: Listen, secret: str) -> None:
        self._listen = listen
        self._secret = secret
        # The cookie is not the secret: who reads it cannot log in elsewhere with it.
        self._session = hashlib.sha256(f"mqttlab dashboard {secret}".encode()).hexdigest()
        self._failures = Failures()
        self.script_hashes: list[str] = []
        """Of the inline scripts that Dash puts into its page; known when all pages are."""

    @property
    def cookie(self) -> str:
        """Cookies know no ports: two dashboards of one machine must not log each other out."""
        return f"mqttlab-{self._listen.port}"

    def guard(self, server: flask.Flask) -> None:
        """Stand before all requests of a server."""
        server.before_request(self.refusal)
        server.after_request(self.headers)

    def refusal(self) -> flask.Response | None:
        """The answer to a request that may not pass; none where it may."""
        request = flask.request
        if not self._listen.knows(request.host):
            return _plain(f"Unknown host {request.host!r}. Start the dashboard with --host-name to use this name.", 421)
        if foreign := self._foreign(request):
            return _plain(foreign, 403)
        if (request.content_length or 0) > BODY_BYTES_MAX and request.endpoint != "upload":
            return _plain(f"More than {BODY_BYTES_MAX} bytes in one request.", 413)
        if "token" in request.args and request.method == "GET":
            return self._enter(request.args["token"], _without_token(request.full_path))
        if request.path == "/login" and request.method == "POST":
            return self._enter(request.form.get("token", ""), "/")
        return None if self._is_session(request.cookies) else _login("", 401)

    def knows(self, fields: Mapping[str, str]) -> bool:
        """Whether a request's head has the cookie, before anything of its body has come."""
        return self._is_session(parse_cookie(fields.get("COOKIE")))

    def _is_session(self, cookies: Mapping[str, str]) -> bool:
        return hmac.compare_digest(cookies.get(self.cookie, "").encode(), self._session.encode())

    def _foreign(self, request: flask.Request) -> str:
        """What is wrong where a page of another server asks; empty where none does."""
        site = request.headers.get("Sec-Fetch-Site", "none")
        navigates = request.headers.get("Sec-Fetch-Mode") == "navigate" and request.headers.get(
            "Sec-Fetch-Dest") == "document"
        if site not in ("same-origin", "none") and not (navigates and request.method == "GET"):
            return "Pages of other servers may not ask here."
        origin = request.headers.get("Origin")
        if origin is not None and (urlsplit(origin).netloc != request.host or urlsplit(origin).scheme != "http"):
            return "Pages of other servers may not ask here."
        if request.method not in SAFE and origin is None and site == "none":
            # Browsers name the origin of what they send; what does not is a program, which can say it.
            return "A request that changes something must name its Origin."
        return ""

    def _enter(self, token: str, to: str) -> flask.Response:
        # The right one is taken whatever was tried before: nobody can lock its owner out.
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self._secret.encode()):
            if self._failures.are_too_many(flask.request.remote_addr or "", time.monotonic()):
                answer = _login("Too many wrong tokens from your address in a minute.", 429)
                answer.headers["Retry-After"] = "60"
                return answer
            return _login("That is not the token.", 401)
        answer = flask.redirect(to, 303)
        answer.set_cookie(self.cookie, self._session, httponly=True, samesite="Strict", max_age=30 * 86400)
        assert isinstance(answer, flask.Response)
        return answer

    def headers(self, answer: flask.Response) -> flask.Response:
        """What browsers must be told with every answer."""
        scripts = " ".join(("'self'", *self.script_hashes))
        answer.headers["Content-Security-Policy"] = (
            f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
            "font-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
            "worker-src 'none'; object-src 'none'")
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["X-Frame-Options"] = "DENY"
        answer.headers["Referrer-Policy"] = "no-referrer"
        answer.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        answer.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        # Browsers ask for the icon at each change of the address, unless they may keep it.
        icon = flask.request.path == ICON and answer.status_code == 200
        answer.headers.setdefault("Cache-Control", "private, max-age=86400" if icon else "no-store")
        return answer


class Failures:
    """Wrong tokens of the last minute, by the address that sent them."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def are_too_many(self, address: str, now: float) -> bool:
        """Count one more from an address, and say whether it has sent too many."""
        place = place_of((address,)) if address else ""
        with self._lock:
            times = self._times.setdefault(place, deque(maxlen=FAILURES_A_MINUTE + 1))
            self._times.move_to_end(place)
            while len(self._times) > ADDRESSES_MAX:
                self._times.popitem(last=False)
            times.append(now)
            return len(times) > FAILURES_A_MINUTE and now - times[0] < 60


def _without_token(path: str) -> str:
    """The same address without the token, so that it stays in no history; never of another server."""
    parts = urlsplit(path)
    query = urlencode([(key, value) for key, value in parse_qsl(parts.query) if key != "token"])
    return "/" + parts.path.lstrip("/\\") + (f"?{query}" if query else "")


def _plain(text: str, status: int) -> flask.Response:
    return flask.Response(text + "\n", status, content_type="text/plain; charset=utf-8")


def _login(problem: str, status: int) -> flask.Response:
    said = f'<p role="alert">{markup(problem)}</p>' if problem else ""
    return flask.Response(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>mqttlab: token</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"></head><body><main>'
        f"<h1>mqttlab</h1>{said}"
        "<p>Open the address that <code>mqttlab dashboard</code> has printed, or write its token or password here.</p>"
        '<form method="post" action="/login"><label for="token">Token or password</label> '
        '<input id="token" name="token" type="password" autocomplete="current-password" required> '
        "<button>Open</button></form></main></body></html>",
        status, content_type="text/html; charset=utf-8")
