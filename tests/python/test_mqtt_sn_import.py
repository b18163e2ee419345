"""MQTT-SN in captures: a live run's own, read again, and judged by tshark's dissector."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from mqttlab.imports import import_evidence
from mqttlab.metrics import PARTS, attribution, attribution_coverage
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from test_import_agreement import by_name, captures_of
from test_mqtt_sn import scenario

pytestmark = pytest.mark.live
KEYS = ["publisher", "sequence", "subscriber"]
MODES = ("transparent", "aggregating")


@pytest.fixture(scope="module", params=MODES)
def recordings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Recording]:
    """A live run with sensors that publish at QoS 2, one sleeper behind the gateway, one at the broker; its import."""
    directory = tmp_path_factory.mktemp("captured")
    values = scenario(mode=request.param, qos=2)
    values["recording"] = {"pcapng": True}
    values["groups"][2]["mqtt_sn"] |= {"sleep": {"duration": "5 s", "wake_every": "400 ms", "linger": "20 ms"}}
    values["groups"][2]["subscribe"] = [{"filter": "s/+", "qos": 1}]
    plan = compile_plan(parse_values({**values, "backend": "live"}))
    outcome = perform(Job(plan, directory / "run"), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    imported = import_evidence("capture", captures_of(outcome.directory), directory / "imported", lambda line: None)
    assert imported.verdict == "complete", imported.reason
    return Recording.open(outcome.directory), Recording.open(imported.directory)


def test_a_runs_capture_gives_its_clients_own_counts(recordings: tuple[Recording, Recording]) -> None:
    run, imported = (by_name(recording) for recording in recordings)
    assert run.height == 120
    assert imported.select(KEYS).sort(KEYS).equals(run.select(KEYS).sort(KEYS))
    assert imported["identified"].unique().to_list() == ["payload"]
    both = imported.join(run, on=KEYS, suffix="_run")
    assert (both["qos"] == both["qos_run"]).all()
    # The frames that carry it are captured where they enter a link: after the client writes, 5 ms before it reads.
    for column in ("sent_ns", "received_ns"):
        apart = (both[column].cast(pl.Int64) - both[f"{column}_run"].cast(pl.Int64)).abs()
        assert apart.median() < 20_000_000, column  # type: ignore[operator]
    # Nobody but the clients has sent or received anything: what a gateway passes on is none of its own.
    fates = [recording.messages.group_by(pl.col("fate").cast(pl.String)).len().sort("fate") for recording in recordings]
    assert fates[0].equals(fates[1]), fates


def test_packets_of_the_capture_are_those_of_the_run(recordings: tuple[Recording, Recording]) -> None:
    counts = []
    for recording in recordings:
        names = [client["name"] for client in recording.layout["clients"]]
        table = recording.control_packets.filter(pl.col("protocol").cast(pl.String) == "mqtt-sn").with_columns(
            name=pl.col("client").replace_strict(range(len(names)), names, default=None, return_dtype=pl.String))
        counts.append(Counter(table.select(pl.col("name"), pl.col("kind", "direction").cast(pl.String)).rows()))
    assert counts[0] == counts[1] and counts[0].total() > 300


def test_tshark_finds_the_same_packets(recordings: tuple[Recording, Recording]) -> None:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    run, imported = recordings
    # A file for each link: datagrams are on that between field and gateway. ICMP quotes what came to a closed socket.
    found: Counter[tuple[str, str]] = Counter()
    for capture in captures_of(run.directory):
        said = subprocess.run(
            [tshark, "-r", capture, "-d", "udp.port==1884,mqttsn", "-Y", "mqttsn && !icmp", "-T", "fields", "-e",
             "udp.dstport", "-e", "mqttsn.msg.type"], check=True, capture_output=True, text=True, timeout=120).stdout
        for line in said.splitlines():
            port, kind = line.split("\t")
            found[("to_broker" if port == "1884" else "to_client", kind)] += 1
    own = imported.control_packets.filter(pl.col("protocol").cast(pl.String) == "mqtt-sn").select(
        pl.col("direction", "kind").cast(pl.String)).rows()
    numbers = {"CONNECT": 0x04, "CONNACK": 0x05, "REGISTER": 0x0A, "REGACK": 0x0B, "PUBLISH": 0x0C, "PUBACK": 0x0D,
               "PUBCOMP": 0x0E, "PUBREC": 0x0F, "PUBREL": 0x10, "SUBSCRIBE": 0x12, "SUBACK": 0x13, "PINGREQ": 0x16,
               "PINGRESP": 0x17, "DISCONNECT": 0x18}
    expected = Counter((direction, numbers[kind]) for direction, kind in own)
    assert Counter({(way, int(kind, 0)): count for (way, kind), count in found.items()}) == expected


def test_where_the_time_went_is_told_of_a_capture_too(recordings: tuple[Recording, Recording]) -> None:
    for recording in recordings:
        table = attribution(recording)
        coverage = attribution_coverage(recording)
        assert coverage.attributed == coverage.delivered == 120, coverage
        assert (table.select(pl.sum_horizontal(PARTS)).to_series() == table["latency_ns"]).all()
    run, imported = (attribution(recording) for recording in recordings)
    assert run["sleep_ns"].max() > 100_000_000  # type: ignore[operator]
    # A capture has one instant for a frame, so that nothing travels, and a message that has waited for its REGACK is
    # sent only then. What the gateway registered for the subscriber is seen.
    assert imported["sleep_ns"].sum() == pytest.approx(run["sleep_ns"].sum(), rel=0.15)
    assert imported["register_ns"].max() > 0  # type: ignore[operator]


def test_a_gateway_on_another_port_is_found_by_its_clients_connect_and_a_named_one_without(
        recordings: tuple[Recording, Recording], tmp_path: Path) -> None:
    editcap = shutil.which("editcap")
    if editcap is None:
        pytest.skip("editcap is not installed")
    run, _ = recordings
    # Half of the run: no CONNECT is in it, so that only the port tells who is a gateway.
    halves = []
    for number, capture in enumerate(captures_of(run.directory)):
        half = tmp_path / f"half-{number}.pcapng"
        subprocess.run([editcap, capture, half, "1-60"], check=True, capture_output=True, timeout=60)
        halves.append(half)
    counts = {}
    for name, options in (("named", ["--gateway-port", "1884"]), ("unnamed", [])):
        outcome = import_evidence("capture", halves, tmp_path / name, lambda line: None, options=options)
        table = Recording.open(outcome.directory).control_packets
        counts[name] = table.filter(pl.col("protocol").cast(pl.String) == "mqtt-sn").height
    assert counts["named"] > 50 and counts["unnamed"] == 0
