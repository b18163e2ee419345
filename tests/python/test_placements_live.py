"""Clients wherever they may run, live beside simulated: the same counts, latencies alike, and what stays within the
broker's host is recorded."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from live import in_both
from mqttlab import metrics
from mqttlab.engine import engine_path
from mqttlab.metrics import PARTS
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import KINDS, PLACEMENTS, relay, scenario

pytestmark = pytest.mark.live
LOCAL = [words for words, hosts in PLACEMENTS.items() if "broker" in hosts]
SCENARIOS: dict[str, dict[str, Any]] = {
    **{words: scenario(1, hosts=hosts) for words, hosts in PLACEMENTS.items()},
    **{f"direct, {words}": scenario(1, hosts=PLACEMENTS[words], network="direct")
       for words in ("both on one other host", "subscriber on the broker's host", "both on the broker's host")},
    "loopback": scenario(2, network="loopback"),
    "without identity": scenario(2, payload="0 B", hosts=("broker", "field")),
    "large": KINDS["1 MB to the broker's host"],
    "hosts by count": KINDS["several hosts by count"],
    "relay on the broker's host": relay(nagle=False, host="broker"),
}
# The machine's own time: programs wake up, Mosquitto works; a busy machine takes longer, so that this is generous.
OVERHEAD_NS = 50_000_000


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Recording]]:
    """Every scenario in both backends."""
    return in_both(SCENARIOS, tmp_path_factory.mktemp("runs"), at_once=3)


@pytest.mark.parametrize("name", SCENARIOS)
def test_both_backends_deliver_the_same_in_like_times(pairs: dict[str, dict[str, Recording]], name: str) -> None:
    live, sim = pairs[name]["live"], pairs[name]["sim"]
    counts = [recording.messages.group_by("fate").len().sort("fate").rows() for recording in (live, sim)]
    assert counts[0] == counts[1]
    assert [fate for fate, _ in counts[0]] == ["delivered"]
    real, modelled = (recording.messages["latency_ns"].median() for recording in (live, sim))
    # The simulated hosts take no time but the broker's; no emulated delay is shorter live.
    assert modelled - 300_000 <= real <= 1.5 * modelled + OVERHEAD_NS  # type: ignore[operator]


@pytest.mark.parametrize("name", [*PLACEMENTS, "without identity", "large", "hosts by count",
                                  "relay on the broker's host"])
def test_every_delivered_message_is_attributed(pairs: dict[str, dict[str, Recording]], name: str) -> None:
    for recording in pairs[name].values():
        table = metrics.attribution(recording)
        assert table.height == recording.messages.height
        assert table["adjusted_ns"].null_count() == 0
        assert (table.select(pl.sum_horizontal(PARTS)).to_series() == table["latency_ns"]).all()
        assert table.select(pl.min_horizontal(PARTS).min()).item() >= 0


@pytest.mark.parametrize("words", LOCAL)
def test_what_stays_within_the_brokers_host_is_captured(pairs: dict[str, dict[str, Recording]], words: str) -> None:
    live, sim = pairs[words]["live"], pairs[words]["sim"]
    assert live.layout["links"] == sim.layout["links"]
    counts = [recording.packets.filter(pl.col("link") == "loopback").height for recording in (live, sim)]
    # Two clients and 44 messages: the kernel may join or part with an acknowledgement or two more.
    assert counts[0] == pytest.approx(counts[1], rel=0.2)
    details = live.run["details"]["loopback"]
    assert details == {"frames_captured": counts[0], "frames_dropped": 0}
    frames = live.packets.filter(pl.col("link") == "loopback")
    assert (frames["from_host"] == "broker").all()
    assert (frames["to_host"] == "broker").all()
    published = live.control_packets.filter(pl.col("kind") == "PUBLISH")
    assert published.filter(pl.col("direction") == "to_broker").height == 44
    assert published.filter(pl.col("direction") == "to_client").height == 44


def test_a_direct_network_has_no_frames_and_its_clients_say_what_they_know(
        pairs: dict[str, dict[str, Recording]]) -> None:
    recording = pairs["direct, both on the broker's host"]["live"]
    assert recording.packets.is_empty()
    assert (recording.control_packets["seen_by"] == "client").all()
    covered = metrics.attribution_coverage(recording)
    assert (covered.attributed, covered.by_clients) == (recording.messages.height, recording.messages.height)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv") or not Path("/dev/net/tun").exists(),
                    reason="takes a capability away, which only root may, and needs TUN devices for the rest")
def test_where_nobody_may_listen_on_the_brokers_host_its_clients_say_what_they_know(tmp_path: Path) -> None:
    values = {**scenario(1, hosts=("broker", "field")), "backend": "live", "live": {"port": "tun"}}
    job = Job(compile_plan(parse_values(values)), tmp_path / "run")
    done = subprocess.run(
        ["setpriv", "--bounding-set", "-net_raw", engine_path(), *job.arguments], input=job.text, text=True,
        capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    recording = Recording.open(tmp_path / "run")
    (warning,) = (words for words in recording.run["warnings"] if "frames of clients beside `broker`" in words)
    assert "Operation not permitted" in warning
    assert recording.packets.height > 0
    assert "loopback" not in recording.packets["link"].to_list()
    published = recording.control_packets.filter(pl.col("kind") == "PUBLISH")
    seen = published.group_by("direction", "seen_by").len().sort("direction").rows()
    assert seen == [("to_broker", "client", 44), ("to_client", "capture", 44)]
    covered = metrics.attribution_coverage(recording)
    assert (covered.attributed, covered.by_clients) == (44, 44)


def test_tcp_settings_of_the_brokers_host_hold_on_its_loopback_device(tmp_path: Path) -> None:
    values = scenario(0, payload="20 kB", rate="20 /s", hosts=("broker", "broker"))
    values["hosts"] = {"broker": {"tcp": {"profile": "linux", "mss": "1000 B"}}}
    sizes = []
    for backend in ("live", "sim"):
        outcome = perform(Job(compile_plan(parse_values({**values, "backend": backend})), tmp_path / backend),
                          lambda event: None)
        assert outcome.verdict == "complete"
        sizes.append(Recording.open(tmp_path / backend).packets["ip_bytes"].max())
    assert sizes == [1040, 1040]
