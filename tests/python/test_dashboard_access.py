"""Who is let into the dashboard, and what is never given out."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")

import dash
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from mqttlab.dashboard.address import AddressError, Listen, read_secret
from mqttlab.dashboard.server import Dashboard
from recordings import Message, write

SECRET = "a-secret-of-the-tests"
CALLBACK = "/_dash-update-component"


@pytest.fixture
def served(tmp_path: Path) -> Dashboard:
    (tmp_path / "runs").mkdir()
    write(tmp_path / "runs" / "one", [Message(sequence=1), Message(sequence=2)])
    (tmp_path / "private.json").write_text("{}", encoding="utf-8")
    (tmp_path / "runs" / "one" / "linked.json").symlink_to(tmp_path / "private.json")
    (tmp_path / "runs" / "one" / "key.pem").write_text("secret", encoding="utf-8")
    outside = tmp_path / "outside"
    write(outside, [Message(sequence=1)])
    (tmp_path / "runs" / "link").symlink_to(outside)
    made = Dashboard(tmp_path / "runs", Listen.read("127.0.0.1:0"), SECRET, tmp_path / "queue")
    made.end()
    return made


class Browser:
    """Requests as a browser sends them: to the right host, from the right page, with the cookie."""

    def __init__(self, served: Dashboard, *, known: bool = True) -> None:
        self.host = f"127.0.0.1:{served.listen.port}"
        self.client: FlaskClient = served.flask.test_client()
        self.headers = {"Host": self.host, "Sec-Fetch-Site": "same-origin", "Origin": f"http://{self.host}"}
        if known:
            assert self.get(f"/?token={SECRET}").status_code == 303

    def get(self, path: str, **headers: str) -> TestResponse:
        return self.client.get(path, base_url=f"http://{self.host}", headers={**self.headers, **headers})

    def post(self, path: str, **headers: str) -> TestResponse:
        sent = {name: value for name, value in {**self.headers, **headers}.items() if value}
        return self.client.post(path, base_url=f"http://{self.host}", headers=sent, json={})


def test_who_asks_together_with_the_first_gets_all_scripts_of_the_page(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walk, walking = dash.Dash._walk_assets_directory, threading.Event()

    def slowly(app: dash.Dash, *given: Any) -> None:
        walking.set()
        time.sleep(1)
        walk(app, *given)

    monkeypatch.setattr(dash.Dash, "_walk_assets_directory", slowly)
    (tmp_path / "runs").mkdir()
    served = Dashboard(tmp_path / "runs", Listen.read("127.0.0.1:0"), SECRET, tmp_path / "queue")
    served.end()
    browsers = [Browser(served) for _ in range(2)]
    with ThreadPoolExecutor() as pool:
        first = pool.submit(browsers[0].get, "/")
        assert walking.wait(60)
        pages = [browsers[1].get("/").text, first.result().text]
    for page in pages:
        assert "c-live" in page and "a-elements" in page


@pytest.mark.parametrize("path", ["/", "/run/one", "/_dash-layout", "/_dash-dependencies", "/vendor/plotly-4.1.1.js",
                                  "/assets/dashboard.css", "/data/run/one/file/plan.json",
                                  "/data/run/one/figure/latency-cdf.json", "/data/run/one/report.html"])
def test_nothing_answers_without_the_token(served: Dashboard, path: str) -> None:
    stranger = Browser(served, known=False)
    answer = stranger.get(path)
    assert answer.status_code == 401
    assert b"Token or password" in answer.data
    assert stranger.get(f"{path}?token=wrong").status_code == 401
    assert Browser(served).get(path).status_code == 200


def test_browsers_keep_what_they_ask_for_at_each_change_of_the_address_and_no_numbers(served: Dashboard) -> None:
    kept = {path: Browser(served).get(path).headers["Cache-Control"] for path in (
        "/_favicon.ico?v=1", "/vendor/plotly-4.1.1.js", "/run/one", "/data/run/one/figure/latency-cdf.json")}
    assert kept == {"/_favicon.ico?v=1": "private, max-age=86400", "/run/one": "no-store",
                    "/vendor/plotly-4.1.1.js": "private, max-age=31536000, immutable",
                    "/data/run/one/figure/latency-cdf.json": "no-store"}
    assert Browser(served, known=False).get("/_favicon.ico").headers["Cache-Control"] == "no-store"


def test_a_token_leaves_the_address_and_becomes_a_cookie_that_no_script_reads(served: Dashboard) -> None:
    answer = Browser(served, known=False).get(f"/run/one?part=time&token={SECRET}")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/run/one?part=time")
    cookie = answer.headers["Set-Cookie"]
    assert SECRET not in cookie and "HttpOnly" in cookie and "SameSite=Strict" in cookie


def test_entering_leads_to_no_other_server(served: Dashboard) -> None:
    answer = Browser(served, known=False).get(f"//evil.example/?token={SECRET}")
    assert answer.headers.get("Location", "/").startswith("/") and "//" not in answer.headers.get("Location", "/")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8350", "127.0.0.1.evil.example", "127.0.0.1:1", ""])
def test_another_name_that_points_here_is_refused(served: Dashboard, host: str) -> None:
    answer = Browser(served).get("/", Host=host)
    assert answer.status_code in (400, 421)


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"}, {"Origin": "", "Sec-Fetch-Site": ""},
])
def test_pages_of_others_cannot_send_anything(served: Dashboard, headers: dict[str, str]) -> None:
    assert Browser(served).post(CALLBACK, **headers).status_code == 403


def test_another_port_of_this_machine_is_another_server(served: Dashboard) -> None:
    assert Browser(served).post(CALLBACK, Origin="http://127.0.0.1:1").status_code == 403


@pytest.mark.parametrize("wanted", ["script", "image", "iframe", "empty", "object"])
def test_pages_of_others_cannot_embed_what_is_here(served: Dashboard, wanted: str) -> None:
    answer = Browser(served).get("/vendor/plotly-4.1.1.js", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": wanted,
                                                  "Sec-Fetch-Mode": "no-cors", "Origin": ""})
    assert answer.status_code == 403


def test_every_answer_forbids_what_no_page_needs(served: Dashboard) -> None:
    for known in (False, True):
        headers = Browser(served, known=known).get("/").headers
        policy = headers["Content-Security-Policy"]
        scripts = policy.partition("script-src")[2].partition(";")[0]
        assert "unsafe" not in scripts and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("path", [
    "/data/run/../file/private.json", "/data/run/one/file/..%2f..%2fprivate.json", "/data/run/one/file/linked.json",
    "/data/run/one/file/key.pem", "/data/run/link/file/plan.json", "/data/run/%2fetc/file/plan.json",
    "/data/run/one%00/file/plan.json", "/data/run/one/file/none.json", "/data/run/one/figure/none.json",
    "/data/run/one/figure/throughput-99999999999999999999.csv", "/data/run/one/table/none.csv",
    "/assets/../server.py", "/data/run/./file/plan.json",
])
def test_nothing_outside_a_recording_is_given_out(served: Dashboard, path: str) -> None:
    answer = Browser(served).get(path)
    assert answer.status_code in (308, 404) or (answer.status_code == 200 and b"_dash-config" in answer.data)
    assert b"secret" not in answer.data and answer.data != b"{}"


def test_a_body_of_any_size_is_not_taken(served: Dashboard) -> None:
    browser = Browser(served)
    answer = browser.client.post(CALLBACK, base_url=f"http://{browser.host}", headers=browser.headers,
                                 data=b"x" * 9_000_000)
    assert answer.status_code == 413


@pytest.mark.parametrize(("text", "host", "port"), [
    ("127.0.0.1", "127.0.0.1", 8350), ("localhost:0", "127.0.0.1", 0), ("[::1]:9", "::1", 9), ("::1", "::1", 8350),
    ("0.0.0.0:80", "0.0.0.0", 80)])
def test_an_address_to_listen_at(text: str, host: str, port: int) -> None:
    where = Listen.read(text)
    assert (where.host, where.port) == (host, port)
    assert where.loopback == (host in ("127.0.0.1", "::1"))


@pytest.mark.parametrize("text", ["example.org", "127.0.0.1:x", "127.0.0.1:65536", "", "[::1", "1.2.3"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(AddressError, match="--listen"):
        Listen.read(text)


def test_beyond_loopback_only_names_that_were_given_are_known() -> None:
    where = Listen.read("192.0.2.7:81", ["Lab.example"])
    assert where.knows("lab.example:81") and where.knows("192.0.2.7:81")
    assert not where.knows("localhost:81") and not where.knows("evil.example:81") and not where.knows("lab.example:82")


def test_a_port_that_is_taken_is_named(served: Dashboard, tmp_path: Path) -> None:
    first = Dashboard(tmp_path / "runs", Listen.read("127.0.0.1:0"), SECRET, tmp_path / "queue")
    with pytest.raises(AddressError, match=f"127.0.0.1:{first.listen.port}"):
        Dashboard(tmp_path / "runs", Listen.read(f"127.0.0.1:{first.listen.port}"), SECRET, tmp_path / "queue")
    first.end()


def test_a_token_is_made_once_and_kept_for_its_owner_alone(tmp_path: Path) -> None:
    kept = tmp_path / "state" / "token"
    secret = read_secret(None, kept)
    assert read_secret(None, kept) == secret and len(secret) >= 24
    assert kept.stat().st_mode & 0o777 == 0o600
    # One that others could read is not trusted any more.
    kept.chmod(0o644)
    assert read_secret(None, kept) != secret


def test_a_password_comes_from_a_file_and_is_no_short_one(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("correct horse battery\nmore\n", encoding="utf-8")
    assert read_secret(file, tmp_path / "kept") == "correct horse battery"
    assert not (tmp_path / "kept").exists()
    file.write_text("short\n", encoding="utf-8")
    with pytest.raises(AddressError, match="at least 12"):
        read_secret(file, tmp_path / "kept")
    with pytest.raises(AddressError, match="is not there"):
        read_secret(tmp_path / "none", tmp_path / "kept")


@pytest.mark.parametrize("path", ["/data/job/none/event", "/upload", CALLBACK])
def test_json_that_is_nested_too_deeply_is_no_failure(path: str, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    served = Dashboard(tmp_path / "runs", Listen.read("127.0.0.1:0"), SECRET, tmp_path / "queue")
    browser = Browser(served)
    answer = browser.client.post(path, base_url=f"http://{browser.host}", headers=browser.headers,
                                 data="[" * 20_000, content_type="application/json")
    assert answer.status_code in ((200, 400) if path.endswith("event") else (400,))
    served.end()
