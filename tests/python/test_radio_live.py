"""Radio stations and routers in live runs, beside their simulation: the emulator drives the simulator's own network, so
that times on the air are the same to the nanosecond, and losses, retries and their causes follow the same law."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from live import in_both
from mqttlab.recording import Recording
from short_scenarios import scenario

pytestmark = pytest.mark.live
STATIONS = {"standard": "b-11", "positions": [["0 m", "0 m"], ["10 m", "0 m"], ["0 m", "10 m"]]}
CABLE = {"rate": "100 Mbit/s", "delay": "3 ms"}
PHASES = {"warm_up": "500 ms", "duration": "5 s", "cool_down": "20 s"}
BOTH = ("field", "far")
SCENARIOS: dict[str, dict[str, Any]] = {
    "clean": scenario(1, radio=STATIONS, hosts=BOTH, phases=PHASES),
    "access point": scenario(
        1, radio={**STATIONS, "access_point": True}, trunk={"up": CABLE, "down": CABLE}, hosts=BOTH),
    "errors": scenario(
        1, rate="100 /s", hosts=BOTH, phases=PHASES,
        radio={**STATIONS, "short_retries": 2, "channel": {"mean_bad": "5 ms", "bad": "5 %", "loss_bad": "90 %"}}),
    "routers": {
        **scenario(1, hosts=BOTH),
        "hosts": {"edge": {"forwards": True}, "core": {"forwards": True}},
        "networks": [
            {"between": ["field", "edge"], "up": {"delay": "2 ms"}, "down": {"delay": "2 ms"}},
            {"between": ["core", "edge"], "up": {"delay": "4 ms"}, "down": {"delay": "3 ms"}},
            {"between": ["core", "broker"], "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}},
            {"between": ["far", "core"], "up": {"delay": "1 ms"}, "down": {"delay": "1 ms"}},
        ],
    },
}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Recording]]:
    """Every scenario in both backends."""
    return in_both(SCENARIOS, tmp_path_factory.mktemp("runs"), at_once=2)


def on_the_air(recording: Recording) -> pl.DataFrame:
    return recording.packets.filter(pl.col("link") == "radio")


def stations(recording: Recording) -> list[dict[str, Any]]:
    found = recording.run["details"]["stations"]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_all_messages_arrive_in_both(pairs: dict[str, dict[str, Recording]], name: str) -> None:
    live, sim = pairs[name]["live"], pairs[name]["sim"]
    counts = [dict(recording.messages.group_by("fate").len().rows()) for recording in (live, sim)]
    # Under errors a message may come twice, over a connection that was made again.
    assert [count["delivered"] for count in counts] == [counts[0]["delivered"]] * 2
    assert all(set(count) <= {"delivered", "duplicate"} for count in counts)


@pytest.mark.parametrize("name", ["clean", "access point", "routers"])
def test_latencies_are_alike(pairs: dict[str, dict[str, Recording]], name: str) -> None:
    real, modelled = (pairs[name][backend].messages["latency_ns"].median() for backend in ("live", "sim"))
    # Programs wake up, Mosquitto works; a busy machine takes longer.
    assert modelled - 300_000 <= real <= 1.5 * modelled + 50_000_000  # type: ignore[operator]


def test_a_frame_is_as_long_on_the_air_in_both(pairs: dict[str, dict[str, Recording]]) -> None:
    def shortest(recording: Recording) -> dict[int, int]:
        delivered = on_the_air(recording).filter(pl.col("fate") == "delivered")
        took = (pl.col("delivered_ns") - pl.col("start_ns")).min().alias("took")
        times = delivered.group_by("frame_bytes").agg(took, pl.len())
        # Of many frames of a size one at least was not sent again.
        return dict(times.filter(pl.col("len") >= 20).select("frame_bytes", "took").rows())

    live, sim = (shortest(pairs["clean"][backend]) for backend in ("live", "sim"))
    common = set(live) & set(sim)
    assert len(common) >= 2
    assert {size: live[size] for size in common} == {size: sim[size] for size in common}


def test_behind_an_access_point_frames_cross_air_and_cable(pairs: dict[str, dict[str, Recording]]) -> None:
    for recording in pairs["access point"].values():
        packets = recording.packets
        assert set(packets["hops"].unique()) == {2}
        up = packets.filter(pl.col("direction") == "up").group_by("hop").agg(pl.col("link").unique()).sort("hop")
        assert up["link"].to_list() == [["radio"], ["trunk/up"]]
        crossed = packets.filter(pl.col("direction") == "up", pl.col("fate") == "delivered").select(
            "frame", "hop", "entered_ns", "delivered_ns")
        joined = crossed.filter(pl.col("hop") == 0).join(crossed.filter(pl.col("hop") == 1), on="frame")
        # However late the emulator was: the cable begins where the air ends.
        assert (joined["delivered_ns"] == joined["entered_ns_right"]).all()


def test_losses_retries_and_causes_agree(pairs: dict[str, dict[str, Recording]]) -> None:
    shares, retries = [], []
    for recording in pairs["errors"].values():
        frames = on_the_air(recording)
        dropped = frames.filter(pl.col("fate") == "dropped")
        assert set(dropped["cause"].unique()) == {"retry_limit"}
        # A drop used the air, and TCP sent its data again.
        assert dropped["sent_ns"].null_count() == 0
        assert (recording.packets["repetition"].fill_null(0) > 0).any()
        shares.append(dropped.height / frames.height)
        told = stations(recording)
        assert sum(station["dropped_retry_limit"] for station in told) == dropped.height
        assert sum(station["channel_errors"] for station in told) > 0
        retries.append(sum(s["retries"] for s in told) / sum(s["data_sent"] for s in told))
    # Some thirty drops in bursts of a few, and fewer frames where a busy machine answers late. Another law, such as
    # another limit of retries, changes shares more than threefold.
    assert 1 / 3 < shares[0] / shares[1] < 3
    assert 1 / 2 < retries[0] / retries[1] < 2


def test_every_host_has_a_station_that_drew_energy(pairs: dict[str, dict[str, Recording]]) -> None:
    for recording in pairs["clean"].values():
        told = stations(recording)
        assert [station["host"] for station in told] == [0, 1, 2]
        assert all(station["energy_j"] > 0 and station["idle_s"] > 5 for station in told)
        frames = on_the_air(recording).height
        assert sum(station["data_sent"] for station in told) >= frames
    assert "stations" not in pairs["routers"]["live"].run["details"]


def test_frames_cross_routers_on_their_way(pairs: dict[str, dict[str, Recording]]) -> None:
    for recording in pairs["routers"].values():
        packets = recording.packets.filter(pl.col("fate") == "delivered")
        # What was still on its way at the end has not crossed all of it.
        whole = packets.filter(pl.len().over("frame") == pl.col("hops"))
        ways = whole.sort("hop").group_by("from_host", "to_host", "frame", maintain_order=True).agg("link")
        found = {(row["from_host"], row["to_host"]): row["link"] for row in ways.iter_rows(named=True)}
        assert found == {
            ("field", "broker"): ["field/up", "edge/up", "core/up"],
            ("broker", "field"): ["core/down", "edge/down", "field/down"],
            ("far", "broker"): ["far/up", "core/up"],
            ("broker", "far"): ["core/down", "far/down"],
        }
        first, last = pl.col("entered_ns").min(), pl.col("delivered_ns").max()
        delays = whole.group_by("from_host", "to_host", "frame").agg(took=last - first)
        shortest = delays.group_by("from_host", "to_host").agg(pl.col("took").min())
        by_way = {(start, end): took for start, end, took in shortest.rows()}
        # `up` of a network is towards its second host: 3 ms lead from the edge to the core.
        assert by_way == {("field", "broker"): 10_000_000, ("broker", "field"): 11_000_000,
                          ("far", "broker"): 6_000_000, ("broker", "far"): 6_000_000}
