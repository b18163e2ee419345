"""Links that change while a run goes on, live and simulated: an outage, another rate, another delay."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from live import in_both
from mqttlab.recording import Recording
from short_scenarios import scenario

pytestmark = pytest.mark.live(runs=4)
PHASES = {"warm_up": "1 s", "duration": "10 s", "cool_down": "30 s"}
LINE = {"rate": "1 Mbit/s", "delay": "10 ms"}


def changing(events: list[dict[str, Any]], qos: int = 1, **more: Any) -> dict[str, Any]:
    events = [{"network": "field", **event} for event in events]
    return scenario(qos, rate="20 /s", link=LINE, count=2, topic="{client}", phases=PHASES, events=events, **more)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Recording]]:
    outage = {"name": "outage", "at": "2 s", "for": "5 s", "down": True}
    return in_both({
        "outage": changing([outage]),
        "kept": changing([{**outage, "queued": "keep"}], qos=2),
        "rate": changing([{"at": "3 s", "for": "4 s", "rate": "100 kbit/s"}]),
        "delay": changing([{"at": "3 s", "for": "4 s", "delay": "80 ms"}], qos=0),
    }, tmp_path_factory.mktemp("links"), 4)


def happened(recording: Recording) -> dict[str, int]:
    """When each event took place, by name."""
    rows = recording.events.filter(pl.col("kind").cast(pl.String) == "change")
    return dict(zip(rows["detail"].to_list(), rows["at_ns"].to_list(), strict=True))


def frames(recording: Recording) -> pl.DataFrame:
    """What crossed the links, with rows of which they used no time left out."""
    packets = pl.read_parquet(recording.directory / "packets.parquet").with_columns(
        pl.col("fate", "cause").cast(pl.String))
    return packets.filter(pl.col("start_ns").is_not_null())


def fates(recording: Recording) -> dict[str, int]:
    messages = recording.messages.filter(pl.col("fate").cast(pl.String) != "duplicate")
    return dict(messages["fate"].cast(pl.String).value_counts().iter_rows())


@pytest.mark.parametrize("kind", ["outage", "kept", "rate", "delay"])
def test_nothing_is_lost_and_both_sides_count_the_same(runs: dict[str, dict[str, Recording]], kind: str) -> None:
    counted = {backend: fates(recording) for backend, recording in runs[kind].items()}
    assert counted["live"] == counted["sim"] and set(counted["sim"]) == {"delivered"}, counted
    # Two publishers, 20 a second, in the warm-up and the measurement.
    assert counted["sim"]["delivered"] == 2 * 20 * 11
    named = {backend: list(happened(recording)) for backend, recording in runs[kind].items()}
    assert named["live"] == named["sim"] and len(named["sim"]) == 2


@pytest.mark.parametrize("backend", ["sim", "live"])
@pytest.mark.parametrize("kind", ["outage", "kept"])
def test_an_outage_lets_nothing_through_and_what_waited_comes_afterwards(
    runs: dict[str, dict[str, Recording]], kind: str, backend: str,
) -> None:
    recording = runs[kind][backend]
    down, up = happened(recording).values()
    assert abs(up - down - 5 * 10**9) < 10**9
    crossed = frames(recording)
    # The events are noted a little later than the links change, by a thread that others may keep waiting.
    during = crossed.filter(pl.col("start_ns").is_between(down + 10**9, up - 10**9))
    assert during.is_empty(), during
    assert crossed.filter(pl.col("start_ns") > up)["fate"].to_list().count("delivered") > 100
    dropped = pl.read_parquet(recording.directory / "packets.parquet").filter(
        pl.col("cause").cast(pl.String) == "link_down")
    waiting = recording.messages.filter(pl.col("sent_ns").is_between(down, up - 10**9))
    assert waiting["received_ns"].min() >= up - 10**9, "what was sent during the outage comes after it"
    if kind == "outage":
        assert len(dropped) > 0 and dropped["entered_ns"].is_between(down - 10**9, up + 10**9).all()
    else:
        # Only what was being sent; all else has waited, and crossed in order.
        assert len(dropped) <= 2, dropped
        held = crossed.filter(pl.col("entered_ns").is_between(down + 10**9, up - 10**9))
        assert len(held) > 0 and (held["start_ns"] > up - 10**9).all()


@pytest.mark.parametrize("backend", ["sim", "live"])
def test_frames_take_the_rate_of_their_time(runs: dict[str, dict[str, Recording]], backend: str) -> None:
    recording = runs["rate"][backend]
    begun, ended = happened(recording).values()
    crossed = frames(recording).filter(pl.col("hop") == 0).with_columns(
        rate=(pl.col("frame_bytes") * 8e9 / (pl.col("sent_ns") - pl.col("start_ns")) / 1000).round(0))

    def rates(since: int, until: int) -> set[float]:
        return set(crossed.filter(pl.col("start_ns").is_between(since, until))["rate"].to_list())

    assert [rates(0, begun - 10**9), rates(begun + 10**9, ended - 10**9), rates(ended + 10**9, 10**12)] == [
        {1000.0}, {100.0}, {1000.0}]
    assert set(crossed["rate"].to_list()) == {1000.0, 100.0}, "no frame has anything between"


@pytest.mark.parametrize("backend", ["sim", "live"])
def test_frames_take_the_delay_of_their_time_and_keep_their_order(
    runs: dict[str, dict[str, Recording]], backend: str,
) -> None:
    recording = runs["delay"][backend]
    begun, ended = happened(recording).values()
    crossed = frames(recording).with_columns(flight=(pl.col("delivered_ns") - pl.col("sent_ns")) / 1e6)

    def flights(since: int, until: int) -> set[float]:
        return set(crossed.filter(pl.col("sent_ns").is_between(since, until))["flight"].to_list())

    assert [flights(0, begun - 10**9), flights(begun + 10**9, ended - 10**9), flights(ended + 10**9, 10**12)] == [
        {10.0}, {80.0}, {10.0}]
    for _, link in crossed.sort("sent_ns", maintain_order=True).group_by("link", "direction", maintain_order=True):
        assert link["delivered_ns"].is_sorted(), "the shorter delay lets nothing overtake"
