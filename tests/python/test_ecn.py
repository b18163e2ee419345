"""ECN, live and simulated: a queue marks frames in the place of dropping them, and TCP slows down."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from live import in_both
from mqttlab import export, metrics
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from short_scenarios import bloated

pytestmark = pytest.mark.live(runs=3)
CODEL = {"kind": "codel", "target": "15 ms"}
BACKENDS = pytest.mark.parametrize("backend", ["sim", "live"])
ECE, CWR, SYN = 64, 128, 2
ECT, CE = 2, 3


def marked(discipline: dict[str, Any], **ecn: bool) -> dict[str, Any]:
    """Over a queue that marks, between hosts that know ECN or not."""
    hosts = {host: {"tcp": {"ecn": on}} for host, on in ecn.items()}
    return {**bloated("20 ms", discipline=discipline), "hosts": hosts}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Recording]]:
    marks, both = {**CODEL, "ecn": True}, {"field": True, "broker": True}
    kinds = {
        "marks": marked(marks, **both), "fq-codel marks": marked({**marks, "kind": "fq-codel"}, **both),
        "drops": marked(CODEL), "one end": marked(marks, field=True), "queue drops": marked(CODEL, **both),
        "event": {**marked(CODEL, **both), "events": [
            {"at": "0.1 s", "network": "field", "direction": "up", "discipline": marks}]}}
    return in_both(kinds, tmp_path_factory.mktemp("ecn"), 3)


def facts(recording: Recording) -> dict[str, int]:
    """Frames by what they say of congestion, and what was sent again."""
    rows, flags = recording.packets, pl.col("flags").cast(pl.Int32)
    wanted = {
        "marked": pl.col("ecn") == CE, "ect": pl.col("ecn") == ECT, "ece": flags & (ECE | SYN) == ECE,
        "cwr": flags & (CWR | SYN) == CWR, "again": (pl.col("repetition") > 0) & (pl.col("hop") == 0),
        "dropped": pl.col("cause").cast(pl.String) == "codel",
    }
    return {name: rows.filter(which).height for name, which in wanted.items()}


@BACKENDS
def test_a_queue_marks_in_the_place_of_dropping_and_nothing_is_sent_again(
    runs: dict[str, dict[str, Recording]], backend: str,
) -> None:
    for name in ("marks", "fq-codel marks"):
        found = facts(runs[name][backend])
        assert found["marked"] > 0 and found["ece"] > 0 and found["cwr"] > 0, (name, found)
        assert (found["dropped"], found["again"]) == (0, 0), (name, found)
        assert runs[name][backend].messages["fate"].cast(pl.String).unique().to_list() == ["delivered"]


@BACKENDS
def test_where_an_end_or_the_queue_does_without_it_frames_are_dropped(
    runs: dict[str, dict[str, Recording]], backend: str,
) -> None:
    for name in ("drops", "one end"):
        found = facts(runs[name][backend])
        assert (found["marked"], found["ect"], found["ece"], found["cwr"]) == (0, 0, 0, 0), (name, found)
        assert found["dropped"] > 0 and found["again"] > 0, (name, found)
    found = facts(runs["queue drops"][backend])
    assert found["ect"] > 0 and found["marked"] == 0 and found["dropped"] > 0, found
    # A sender says of a loss, too, that its window is smaller (RFC 3168, 6.1.2).
    assert found["cwr"] > 0, found


@BACKENDS
def test_only_new_data_can_be_marked(runs: dict[str, dict[str, Recording]], backend: str) -> None:
    for name in ("marks", "queue drops"):
        able = runs[name][backend].packets.filter(pl.col("ecn").is_not_null())
        assert able.filter(pl.col("payload_bytes") == 0).is_empty()
        assert able.filter(pl.col("repetition") > 0).is_empty()
        assert able.filter(pl.col("flags").cast(pl.Int32) & SYN > 0).is_empty()


@BACKENDS
def test_an_event_lets_a_queue_mark(runs: dict[str, dict[str, Recording]], backend: str) -> None:
    assert facts(runs["event"][backend])["marked"] > 0


def test_both_backends_mark_as_many_and_the_sensor_waits_as_long(runs: dict[str, dict[str, Recording]]) -> None:
    for name in ("marks", "fq-codel marks"):
        simulated, live = (facts(runs[name][backend]) for backend in ("sim", "live"))
        assert abs(simulated["marked"] - live["marked"]) <= max(5, 0.4 * simulated["marked"]), (name, simulated, live)


@BACKENDS
def test_a_link_tells_how_many_it_marked_and_connections_how_often_they_slowed_down(
    runs: dict[str, dict[str, Recording]], backend: str,
) -> None:
    recording, plain = runs["marks"][backend], runs["drops"][backend]
    found = facts(recording)
    links = metrics.links(recording)
    assert dict(links.select("link", "frames_marked").iter_rows())["field/up"] == found["marked"]
    total = metrics.network(recording).filter(pl.col("scope") == "run")
    assert total["window_reductions"].to_list() == [found["cwr"]]
    assert "frames_marked" not in metrics.links(plain).columns
    assert "window_reductions" not in metrics.network(plain).columns


@BACKENDS
def test_a_capture_of_it_has_the_bits_and_an_import_reads_them(
    runs: dict[str, dict[str, Recording]], backend: str, tmp_path: Path,
) -> None:
    recording = runs["marks"][backend]
    export.pcapng(recording, tmp_path / "run.pcapng")
    assert import_evidence(
        "capture", [tmp_path / "run.pcapng"], tmp_path / "again", lambda line: None).verdict == "complete"
    again = Recording.open(tmp_path / "again")
    ours, theirs = (Counter(one.packets["ecn"].to_list()) for one in (recording, again))
    assert ours[CE] == theirs[CE] > 0 and ours[ECT] == theirs[ECT]
    assert metrics.links(again)["frames_marked"].sum() == ours[CE]


@BACKENDS
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_reads_the_same(runs: dict[str, dict[str, Recording]], backend: str, tmp_path: Path) -> None:
    recording = runs["marks"][backend]
    export.pcapng(recording, tmp_path / "run.pcapng")
    told = subprocess.run(
        ["tshark", "-r", str(tmp_path / "run.pcapng"), "-o", "ip.check_checksum:TRUE", "-T", "fields", "-e",
         "ip.dsfield.ecn", "-e", "tcp.flags.ece", "-e", "tcp.flags.cwr", "-e", "tcp.flags.syn", "-e",
         "ip.checksum.status"],
        capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in told.splitlines()]
    yes = ("1", "True")
    found = facts(recording)
    assert sum(row[0] == "3" for row in rows) == found["marked"]
    assert sum(row[0] == "2" for row in rows) == found["ect"]
    assert sum(row[1] in yes and row[3] not in yes for row in rows) == found["ece"]
    assert sum(row[2] in yes and row[3] not in yes for row in rows) == found["cwr"]
    assert {row[4] for row in rows} == {"1"}


def test_the_plan_says_who_knows_it(runs: dict[str, dict[str, Recording]]) -> None:
    plan = runs["one end"]["live"].plan
    assert {host["name"]: host["tcp"]["ecn"] for host in plan["hosts"]} == {"field": True, "broker": False}
    links = {link["name"]: link for link in plan["network"]["links"]}
    assert links["field/up"]["queue"]["discipline"]["ecn"] is True
