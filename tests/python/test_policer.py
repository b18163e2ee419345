"""A policer, live and simulated: the same frames of the same load exceed it, and the cause says so."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from live import in_both
from mqttlab.recording import Recording

pytestmark = pytest.mark.live(runs=3)
POLICER = {"rate": "64 kbit/s", "burst": "3 kB"}
RATE_B_S, BURST = 8_000, 3_000


def policed(**up: Any) -> dict[str, Any]:
    """A client that sends 12 kB at once, every 2 s: more than the burst."""
    link = {"rate": "10 Mbit/s", "delay": "20 ms"}
    return {
        "name": "policed", "phases": {"duration": "6 s", "cool_down": "30 s"},
        "networks": [{"between": ["field", "broker"], "up": {**link, **up}, "down": link, "link": "shared"}],
        "groups": [
            {"name": "camera", "host": "field",
             "publish": {"topic": "image", "payload": "12 kB", "interval": "2 s"}},
            {"name": "office", "host": "broker", "subscribe": ["image"]},
        ],
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Recording]]:
    kinds = {
        "plain": policed(), "policed": policed(policer=POLICER),
        # From 2 s on.
        "event": policed() | {"events": [
            {"at": "2 s", "network": "field", "direction": "up", "policer": POLICER}]}}
    return in_both(kinds, tmp_path_factory.mktemp("policer"), 3)


def packets(recording: Recording) -> pl.DataFrame:
    rows = pl.read_parquet(recording.directory / "packets.parquet")
    return rows.with_columns(pl.col("cause").cast(pl.String), pl.col("direction").cast(pl.String))


def dropped(recording: Recording) -> pl.DataFrame:
    return packets(recording).filter(pl.col("cause") != "")


@pytest.mark.parametrize("backend", ["sim", "live"])
def test_what_exceeds_it_is_dropped_and_says_so_and_tcp_sends_it_again(
    runs: dict[str, dict[str, Recording]], backend: str,
) -> None:
    assert dropped(runs["plain"][backend]).is_empty()
    for name in ("policed", "event"):
        found = dropped(runs[name][backend])
        assert set(found["cause"]) == {"policer"} and set(found["direction"]) == {"up"}, name
        # No time of the link was used.
        assert found["start_ns"].null_count() == found.height > 0, name
        assert runs[name][backend].messages["fate"].cast(pl.String).unique().to_list() == ["delivered"], name


def test_both_backends_drop_as_much(runs: dict[str, dict[str, Recording]]) -> None:
    """How long an acknowledgement takes differs by microseconds, and with it now and then what the bucket has."""
    for name in ("policed", "event"):
        simulated, live = (dropped(runs[name][backend]).height for backend in ("sim", "live"))
        assert abs(simulated - live) <= 0.25 * simulated, (name, simulated, live)


@pytest.mark.parametrize("backend", ["sim", "live"])
def test_no_more_passes_than_its_rate_and_one_burst(
    runs: dict[str, dict[str, Recording]], backend: str,
) -> None:
    rows = packets(runs["policed"][backend]).filter((pl.col("direction") == "up") & (pl.col("cause") == ""))
    rows = rows.sort("entered_ns")
    times, sizes = rows["entered_ns"].to_list(), rows["frame_bytes"].to_list()
    # The fill of the bucket by its own law, from what passed.
    tokens, last = float(BURST), 0
    for at, size in zip(times, sizes, strict=True):
        tokens = min(BURST, tokens + (at - last) * RATE_B_S / 1e9) - size
        last = at
        assert tokens > -1e-3, (at, tokens)


@pytest.mark.parametrize("backend", ["sim", "live"])
def test_an_event_brings_it(runs: dict[str, dict[str, Recording]], backend: str) -> None:
    recording = runs["event"][backend]
    began = recording.events.filter(pl.col("kind").cast(pl.String) == "change")["at_ns"].min()
    assert dropped(recording)["entered_ns"].min() >= began
