"""What becomes of messages to shared subscriptions while a member is away, live beside simulated; who got how many."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import mqttlab
from live import able, in_both
from mqttlab import metrics
from mqttlab.recording import Recording

LINE = {"delay": "5 ms"}


def pool(qos: int, does: dict[str, Any], *, kept: bool = True, version: str = "5", more: int = 0) -> dict[str, Any]:
    """Three members share a subscription; the second leaves after 11 of 31 messages. ``more``: members of another share
    of the same filter."""
    session: dict[str, Any] = {"version": version, "keep_alive": "10 s", "clean_session": not kept}
    if kept and version == "5":
        session["session_expiry"] = "60 s"
    near = {"host": "clients", "nagle": False}
    sharing = {**near, "mqtt": session}
    groups: list[dict[str, Any]] = [
        {"name": "publisher", **near, "publish": {
            "topic": "t/0", "qos": qos, "payload": "50 B", "interval": "100 ms", "start_phase": "synchronised",
            "messages": 31}},
        {"name": "pool", "count": 3, **sharing, "subscribe": [{"filter": "$share/pool/t/+", "qos": qos}]},
        {"name": "plain", **near, "subscribe": [{"filter": "t/0", "qos": qos}]},
    ]
    if more:
        groups.append({"name": "second", "count": more, **sharing,
                       "subscribe": [{"filter": "$share/second/t/+", "qos": qos}]})
    return {"name": "shares", "phases": {"duration": "4 s", "cool_down": "2 s"}, "mqtt": {"version": version},
            "networks": [{"between": ["clients", "broker"], "up": LINE, "down": LINE}], "groups": groups,
            "events": [{"at": "1050 ms", "group": "pool", "client": 1, **does}]}


LEAVES, VANISHES = {"do": "disconnect"}, {"do": "vanish"}
SCENARIOS = {
    "QoS 0, leaves": pool(0, LEAVES),
    "QoS 0, leaves, 3.1.1": pool(0, LEAVES, version="3.1.1"),
    "QoS 0, leaves and comes back": pool(0, {**LEAVES, "for": "1 s"}),
    "QoS 0, leaves, no session": pool(0, LEAVES, kept=False),
    "QoS 0, vanishes and comes back": pool(0, {**VANISHES, "for": "1 s"}, kept=False),
    "QoS 0, leaves, two shares": pool(0, LEAVES, more=2),
    "QoS 1, leaves": pool(1, LEAVES),
    "QoS 1, vanishes and comes back": pool(1, {**VANISHES, "for": "1 s"}, kept=False),
    "QoS 2, leaves, no session": pool(2, LEAVES, kept=False),
    "QoS 2, vanishes and comes back": pool(2, {**VANISHES, "for": "1 s"}),
}
# What of the share's 31 messages was not delivered: fate, cause, member, and how many.
LOST = "lost", "connection_lost", 2
ABSENT = {
    "QoS 0, leaves": {LOST: 6}, "QoS 0, leaves, 3.1.1": {LOST: 6}, "QoS 0, leaves and comes back": {LOST: 3},
    "QoS 0, vanishes and comes back": {LOST: 3}, "QoS 0, leaves, two shares": {LOST: 6},
    "QoS 1, leaves": {("under_way", None, None): 6},
    "QoS 1, vanishes and comes back": {("lost", "session_ended", 2): 3},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Recording]]:
    return in_both(SCENARIOS, tmp_path_factory.mktemp("shares"), at_once=2)


def fates(recording: Recording) -> Counter[tuple[Any, ...]]:
    return Counter(recording.messages.select(pl.col("fate", "cause").cast(pl.String), "subscriber").rows())


@pytest.mark.live(runs=2)
@pytest.mark.skipif(able() is not None, reason=str(able()))
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_fates_of_messages_to_a_share_are_the_same_in_both(
    name: str, runs: dict[str, dict[str, Recording]],
) -> None:
    live, simulated = (fates(runs[name][backend]) for backend in ("live", "sim"))
    assert live == simulated
    assert {key: count for key, count in live.items() if key[0] != "delivered"} == ABSENT.get(name, {})


@pytest.mark.live(runs=2)
@pytest.mark.skipif(able() is not None, reason=str(able()))
def test_who_got_how_many_is_in_the_report(runs: dict[str, dict[str, Recording]]) -> None:
    for recording in runs["QoS 0, leaves, two shares"].values():
        rows = metrics.members(recording).select("share", "client", "messages_delivered").rows()
        assert rows == [
            ("$share/pool/t/+", "pool-0", 11), ("$share/pool/t/+", "pool-1", 4), ("$share/pool/t/+", "pool-2", 10),
            ("$share/second/t/+", "second-0", 16), ("$share/second/t/+", "second-1", 15)]
    told = mqttlab("report", recording.directory, "--full")
    assert told.returncode == 0 and "Members of shared subscriptions" in told.stdout


@pytest.mark.live(runs=2)
@pytest.mark.skipif(able() is not None, reason=str(able()))
def test_a_capture_names_the_members_that_it_saw(runs: dict[str, dict[str, Recording]], tmp_path: Path) -> None:
    recording = runs["QoS 1, leaves"]["live"]
    capture, there = tmp_path / "run.pcapng", tmp_path / "imported"
    assert mqttlab("export", recording.directory, "--pcapng", capture).returncode == 0
    assert mqttlab("import", "capture", capture, "--output", there).returncode == 0
    assert metrics.members(Recording.open(there)).rows() == metrics.members(recording).rows()
