"""Payloads as pages show them: JSON in lines, pictures small, text as text, other bytes as digits; never markup."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")

from dashboards import HOSTILE, SECRET, simulate
from mqttlab.dashboard import payloads
from mqttlab.dashboard.address import Listen
from mqttlab.dashboard.pages import messages
from mqttlab.dashboard.server import Dashboard
from mqttlab.dashboard.store import Store
from test_dashboard_access import Browser
from test_dashboard_pages import text_of

PNG = b"\x89PNG\r\n\x1a\n" + bytes(60)


def shown(content: bytes) -> payloads.Shown:
    return payloads.shown(content, len(content))


def test_what_a_payload_is_is_told_by_its_bytes() -> None:
    assert shown(b'{"b": [1, 2], "a": "\xc3\xa9"}').text == '{\n  "b": [\n    1,\n    2\n  ],\n  "a": "é"\n}'
    assert shown(b"21.5") == payloads.Shown("text", "21.5", False)
    assert shown(b"") == payloads.Shown("empty", "", False)
    assert shown(b"\x00\x01A").text == f"00000000  {'00 01 41':47}  ..A"
    assert shown(b"{not json").kind == "text" and shown(b"[" * 100_000).kind == "text"
    assert shown(PNG) == payloads.Shown("a picture", "", True)
    inside = shown(json.dumps({"data": base64.b64encode(PNG).decode()}).encode())
    assert inside.picture and inside.kind == "JSON, a picture"


def test_long_ones_are_cut_and_it_is_said() -> None:
    assert "characters more" in shown(b"x" * 5000).text and len(shown(b"x" * 5000).text) < 2100
    assert "(5" in shown(json.dumps({"a": "x" * 5000}).encode()).text
    assert "B more" in shown(bytes(5000)).text
    assert payloads.shown(b"half", 8).kind == "text, the first 4 B"
    # What was kept ends amid a character.
    assert payloads.shown(b"caf" + "é".encode()[:1], 5) == payloads.Shown("text, the first 4 B", "caf", False)


def test_a_picture_that_may_hold_scripts_is_none() -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    assert payloads.picture(svg) is None and payloads.picture(
        json.dumps({"data": base64.b64encode(svg).decode()}).encode()) is None
    assert shown(svg).kind == "text"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs")
    simulate(directory, "images", payload="image", rate="20 /s", topic=HOSTILE, recording={"payloads": True},
             subscriber={"count": 2})
    simulate(directory, "plain", rate="5 /s")
    return directory


def test_recent_messages_show_what_they_carried_and_who_got_what_last(runs: Path) -> None:
    recording = Store(runs).recording("images")
    page = text_of(messages.part(recording, "images", {}))
    assert page.count("/data/run/images/picture/") == recording.table("payloads").height
    assert "JSON, a picture" in page and "20" in page and "Subscribers" in page
    for client in ("subscribers-0", "subscribers-1"):
        assert f"client={client}" in page
        some = messages.part(recording, "images", {"client": client})
        assert text_of(some).count("/picture/") == recording.messages.filter(
            subscriber=int(client[-1]) + 1, fate="delivered").height
    without = text_of(messages.part(Store(runs).recording("plain"), "plain", {}))
    assert "was not kept" in without and "/picture/" not in without


def test_pictures_and_bytes_are_given_out_and_nothing_else(runs: Path) -> None:
    served = Dashboard(runs, Listen.read("127.0.0.1:0"), SECRET, runs.parent / "queue")
    browser = Browser(served)
    answer = browser.get("/data/run/images/picture/0")
    assert answer.status_code == 200 and answer.content_type == "image/jpeg" and answer.data.startswith(b"\xff\xd8\xff")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    whole = browser.get("/data/run/images/payload/0.bin")
    assert json.loads(whole.data)["type"] == "image" and "attachment" in whole.headers["Content-Disposition"]
    for path in ("/data/run/images/picture/99999", "/data/run/plain/picture/0", "/data/run/plain/payload/0.bin",
                 "/data/run/none/payload/0.bin", f"/data/run/images/payload/{10**20}.bin",
                 f"/data/run/images/picture/{'9' * 5000}", "/data/run/images/payload/-1.bin",
                 "/data/run/images/payload/\u0661.bin"):
        assert browser.get(path).status_code == 404, path
    served.end()
