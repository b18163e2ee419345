"""Queue disciplines, live and simulated: CoDel keeps a queue short, FQ-CoDel lets small flows pass large ones."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from live import in_both
from mqttlab.recording import Recording
from short_scenarios import bloated

pytestmark = pytest.mark.live(runs=4)
CODEL = {"target": "20 ms", "interval": "100 ms"}
DISCIPLINES: dict[str, Any] = {
    "tail-drop": "tail-drop", "codel": {"kind": "codel", **CODEL}, "fq-codel": {"kind": "fq-codel", **CODEL}}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Recording]]:
    kinds = {name: bloated("10 ms", discipline=discipline) for name, discipline in DISCIPLINES.items()}
    kinds["changed"] = {**bloated("10 ms"), "events": [
        {"at": "1 s", "network": "field", "direction": "up", "discipline": DISCIPLINES["fq-codel"]}]}
    return in_both(kinds, tmp_path_factory.mktemp("disciplines"), 4)


def drops(recording: Recording) -> dict[str, int]:
    packets = pl.read_parquet(recording.directory / "packets.parquet").with_columns(pl.col("cause").cast(pl.String))
    return dict(packets.filter(pl.col("cause") != "")["cause"].value_counts().iter_rows())


def slowest_ms(recording: Recording, since_ns: int = 0) -> float:
    """The median and more of the sensor's messages: the 80th percentile of their latency."""
    small = recording.messages.filter((pl.col("payload_bytes") == 50) & (pl.col("intended_ns") >= since_ns))
    return float((small["received_ns"] - small["intended_ns"]).quantile(0.8) or 0) / 1e6


@pytest.mark.parametrize("backend", ["sim", "live"])
def test_codel_drops_and_says_so_and_every_message_arrives(
    runs: dict[str, dict[str, Recording]], backend: str,
) -> None:
    found = {name: drops(recordings[backend]) for name, recordings in runs.items()}
    assert found["tail-drop"] == {}
    assert all(set(found[name]) == {"codel"} and found[name]["codel"] > 0 for name in ("codel", "fq-codel", "changed"))
    for recordings in runs.values():
        assert recordings[backend].messages["fate"].cast(pl.String).unique().to_list() == ["delivered"]


@pytest.mark.parametrize("backend", ["sim", "live"])
def test_a_small_flow_waits_for_the_large_one_unless_flows_are_apart(
    runs: dict[str, dict[str, Recording]], backend: str,
) -> None:
    waits = {name: slowest_ms(recordings[backend]) for name, recordings in runs.items()}
    # Behind up to a second of buffer; behind one frame of 12 ms.
    assert waits["tail-drop"] > 300 and waits["fq-codel"] < 150, waits
    assert waits["codel"] < waits["tail-drop"], waits


def test_the_plan_says_what_a_discipline_is(runs: dict[str, dict[str, Recording]]) -> None:
    links = {name: {link["name"]: link for link in recordings["live"].plan["network"]["links"]}["field/up"]
             for name, recordings in runs.items()}
    assert links["tail-drop"]["queue"] == {
        "limit_packets": None, "limit_bytes": 125_000, "counts_delay_line": False, "discipline": {"kind": "tail_drop"}}
    assert links["codel"]["queue"]["discipline"] == {
        "kind": "codel", "target_ns": 20_000_000, "interval_ns": 100_000_000, "largest_frame_bytes": 1500,
        "ecn": False}
    assert links["fq-codel"]["queue"]["discipline"] == {
        "kind": "fq_codel", "target_ns": 20_000_000, "interval_ns": 100_000_000, "largest_frame_bytes": 1500,
        "flows": 1024, "quantum_bytes": 1500, "ecn": False}
