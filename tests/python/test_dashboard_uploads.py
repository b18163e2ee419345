"""Files that are dropped on the dashboard: taken in parts, up to a limit, and imported by the queue."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")

from commands import mqttlab
from dashboards import queue_below
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.pages import captures
from mqttlab.dashboard.store import Store
from mqttlab.dashboard.uploads import UploadError, Uploads, kind_of
from test_dashboard_access import Browser
from test_dashboard_access import served as served
from test_dashboard_pages import text_of

LOG = """message,publisher,subscriber,topic,qos,payload_bytes,sent_ms,received_ms
1,a,b,t,1,100,0,10
2,a,b,t,1,100,100,125
"""


@pytest.fixture
def uploads(tmp_path: Path) -> Iterator[Uploads]:
    with queue_below(tmp_path) as queue:
        (tmp_path / "runs").mkdir()
        yield Uploads(Jobs(tmp_path / "runs", queue.directory), bytes_max=10_000)


def test_a_log_becomes_a_recording_and_one_that_is_none_says_why(uploads: Uploads, tmp_path: Path) -> None:
    for name, text in (("messages.csv", LOG), ("broken.csv", "no,such,columns\n1,2,3\n")):
        identifier = uploads.begin(name, len(text))
        half = len(text) // 2
        assert uploads.add(identifier, 0, text[:half].encode()) == half
        assert uploads.add(identifier, half, text[half:].encode()) == len(text)
        uploads.finish(identifier)
    deadline = time.monotonic() + 60
    while any(driver.state != "done" for driver in uploads.imports()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    broken, good = uploads.imports()
    assert (good.status, broken.status) == (0, 2) and uploads.run_of(broken) is None
    recording = Store(tmp_path / "runs").recording(str(uploads.run_of(good)))
    assert recording.complete and recording.messages["latency_ns"].to_list() == [10_000_000, 25_000_000]
    store = Store(tmp_path / "runs")
    shown = text_of(captures.page(uploads, store))
    assert shown.count(f"/run/{uploads.run_of(good)}") == 1 and "no,such,columns" not in shown and "failed" in shown
    assert "by a command" not in shown
    assert store.runs()["run"].to_list() == [uploads.run_of(good)]


def test_imports_that_a_command_has_made_are_listed_beside_those_dropped_here(uploads: Uploads, tmp_path: Path) -> None:
    assert "Nothing has been imported here yet." in text_of(captures.page(uploads, Store(tmp_path / "runs")))
    table = tmp_path / "field.csv"
    table.write_text(LOG, encoding="utf-8")
    runs = tmp_path / "runs"
    done = mqttlab("import", "log", table, "--output", runs / "by-hand", "--no-html", "--catalog", "none")
    assert done.returncode == 0, done.stderr
    # A run of our own is no import.
    done = mqttlab("try", "--simulate", "--clients", "1", "--duration", "1s", "--runs", runs, "--no-html", "--catalog",
                   "none")
    assert done.returncode == 0, done.stderr
    store = Store(runs)
    assert store.runs().height == 2
    shown = text_of(captures.page(uploads, store))
    assert "field" in shown and "/run/by-hand" in shown and "imported by a command" in shown and "/run/try" not in shown


def test_what_is_too_large_or_not_in_order_is_refused(uploads: Uploads) -> None:
    for size in (0, -1, 10_001, 10**15):
        with pytest.raises(UploadError, match="but must have from 1 to"):
            uploads.begin("x.log", size)
    identifier = uploads.begin("x.log", 10)
    for offset, part in ((1, b"x"), (0, b"x" * 11)):
        with pytest.raises(UploadError, match="does not follow"):
            uploads.add(identifier, offset, part)
    with pytest.raises(UploadError, match="not whole"):
        uploads.finish(identifier)
    with pytest.raises(UploadError, match="no such file"):
        uploads.add(identifier, 0, b"x")


def test_what_nobody_finishes_is_forgotten_and_many_at_once_are_refused(uploads: Uploads, tmp_path: Path) -> None:
    places = [uploads.begin("x.log", 10) for _ in range(8)]
    with pytest.raises(UploadError, match="already"):
        uploads.begin("x.log", 10)
    for place in places:
        os.utime(tmp_path / "runs" / ".dashboard" / "uploads" / place, (1, 1))
    uploads.begin("x.log", 10)


@pytest.mark.parametrize("name", ["../../etc/passwd.log", "..", "/etc/x.log", "a\0b.log", "size", "-rf.log", "x" * 300,
                                  "<img src=x>.log", "C:\\x\\y.log", ".hidden.log"])
def test_a_files_name_leads_nowhere(uploads: Uploads, tmp_path: Path, name: str) -> None:
    place = tmp_path / "runs" / ".dashboard" / "uploads" / uploads.begin(name, 3)
    [kept] = [path.name for path in place.iterdir() if path.name != "size"]
    assert set(kept) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    assert kept[0] not in ".-" and len(kept) <= 100


@pytest.mark.parametrize("identifier", ["..", "../x", "", "A" * 26, "a" * 26, "/etc"])
def test_an_identifier_leads_nowhere(uploads: Uploads, identifier: str) -> None:
    with pytest.raises(UploadError, match="no such file"):
        uploads.add(identifier, 0, b"x")


def test_what_a_file_is_stands_in_its_first_bytes(tmp_path: Path) -> None:
    for name, begins, kind in (("a.bin", b"\x0a\x0d\x0d\x0a", "capture"), ("b", b"\xd4\xc3\xb2\xa1", "capture"),
                               ("c.pcapng.gz", b"\x1f\x8b\x08\x00", "capture"), ("d.log", b"2021", "log"),
                               ("e.csv.zst", b"\x28\xb5\x2f\xfd", "log")):
        (tmp_path / name).write_bytes(begins)
        assert kind_of(tmp_path / name) == kind
    for name, begins in (("f.exe", b"MZ\x90\x00"), ("g.log", b"MZ\x90\x00"), ("h.gz", b"\x1f\x8b\x08\x00"),
                         ("i.pcapng", b"#!/b")):
        (tmp_path / name).write_bytes(begins)
        with pytest.raises(UploadError, match="neither a capture"):
            kind_of(tmp_path / name)


def test_nobody_sends_a_file_without_the_token(served: object, tmp_path: Path) -> None:
    from mqttlab.dashboard.server import Dashboard

    assert isinstance(served, Dashboard)
    stranger, known = Browser(served, known=False), Browser(served)
    for path in ("/upload", "/upload/" + "A" * 26 + "?offset=0", "/upload/" + "A" * 26 + "/finish"):
        assert stranger.post(path).status_code == 401
        assert known.post(path, Origin="http://evil.example").status_code == 403
        assert known.post(path).status_code == 400
    assert not (tmp_path / "runs" / ".dashboard").exists()
