"""A capture that mqttlab wrote of a run of its own, imported: the numbers of the run."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from live import able
from mqttlab import export, metrics
from mqttlab.imports import import_evidence
from mqttlab.metrics.attribution import attribution_by_qos
from mqttlab.metrics.device_bytes import BYTES, RATES, by_device
from mqttlab.metrics.window import measurement
from mqttlab.recording import Recording
from mqttlab.report.headline import where_the_time_went
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse_values
from short_scenarios import scenario

Values = dict[str, Any]
PHASES = {"warm_up": "0 s", "duration": "2 s", "cool_down": "20 s"}
# What is sent before and after the measurement crosses its bounds, too.
MEASURED = {"warm_up": "2 s", "duration": "4 s", "cool_down": "20 s"}
FAR = {"delay": "60 ms"}
LOSSY = {"delay": "30 ms", "rate": "1 Mbit/s", "loss": "4 %"}
KEYS = ["publisher", "sequence", "subscriber"]
# Parts whose bounds no frame shows, or only with what the plan says: before a message's first frame, and at the broker
# with its window and Nagle's algorithm. Their sums are known.
BEFORE = ("schedule_ns", "session_ns", "sender_nagle_ns", "sender_socket_ns")
AT_BROKER = ("broker_ns", "broker_window_ns", "broker_nagle_ns", "broker_socket_ns")
# What a program takes to read what has come.
DELIVERY = "delivery_ns"


def both(directory: Path, values: Values) -> tuple[Recording, Recording]:
    """A run, and the import of the capture that is exported of it."""
    outcome = perform(Job(compile_plan(parse_values(values)), directory / "run"), lambda event: None)
    assert outcome.verdict == "complete", outcome.reason
    run = Recording.open(outcome.directory)
    export.pcapng(run, directory / "own.pcapng")
    result = import_evidence("capture", [directory / "own.pcapng"], directory / "again", lambda line: None)
    assert result.verdict == "complete", result.reason
    return run, Recording.open(result.directory)


def named(recording: Recording) -> pl.DataFrame:
    """Rows of messages with the names of their clients."""
    names = [client["name"] for client in recording.layout["clients"]]
    clients = [pl.col(name).replace_strict(range(len(names)), names, return_dtype=pl.String)
               for name in ("publisher", "subscriber")]
    return recording.messages.with_columns(*clients, pl.col("fate").cast(pl.String))


def fates(recording: Recording) -> Counter[tuple[Any, ...]]:
    return Counter(named(recording).select(*KEYS, "fate").rows())


def assert_same_counts(run: Recording, again: Recording) -> None:
    """Phases, counts, rates, and bytes of a device in an hour: those of the run."""
    windows = [(window.from_ns, window.until_ns, window.seconds) for window in map(measurement, (run, again))]
    assert windows[1] == windows[0]
    phases = [Counter(named(recording).select(*KEYS, pl.col("phase").cast(pl.String)).rows())
              for recording in (run, again)]
    assert phases[1] == phases[0]
    counted = [metrics.application(recording, ()).row(0, named=True) for recording in (run, again)]
    for name in ("messages_sent", "deliveries_expected", "messages_delivered", "messages_offered"):
        assert counted[1][name] == counted[0][name], name
    for name in ("throughput_per_s", "goodput_kbit_s"):
        # The first or last delivery of the window may be on its other side: the receiver's own time is not captured.
        assert counted[1][name] == pytest.approx(counted[0][name], rel=1.5 / counted[0]["messages_delivered"]), name
    columns = ["client", *BYTES, *RATES]
    of_devices = [by_device(recording).sort("client").select(columns) for recording in (run, again)]
    assert of_devices[1].equals(of_devices[0])


def frames(recording: Recording) -> pl.DataFrame:
    """Each frame on each link: where, when, and what became of it."""
    return recording.packets.filter(pl.col("fate") != "duplicated").select(
        pl.col("link", "direction", "fate", "cause").cast(pl.String), "frame", "hop", "hops", "frame_bytes",
        "entered_ns", "start_ns", "sent_ns", "delivered_ns", "repetition", "connection", "stream_offset",
    ).sort("frame", "hop")


def parts(recording: Recording) -> dict[str, float]:
    """Mean times in ms: of each part, but of two groups of parts in sum; without what the receiving program took."""
    means = dict(attribution_by_qos(recording).select("part", "mean_ms").rows())
    means["before"], means["at broker"] = (sum(means.pop(part) for part in group) for group in (BEFORE, AT_BROKER))
    return {part: mean for part, mean in means.items() if part != DELIVERY}


def assert_same_network(run: Recording, again: Recording) -> None:
    """Frames, packets and losses: what a capture shows, it shows as it was."""
    assert frames(again).equals(frames(run))
    arrived = [recording.control_packets.select(
        "connection", pl.col("direction", "kind").cast(pl.String), "stream_start", "first_sent_ns", "complete_ns",
        "segments",
    ).sort("connection", "direction", "stream_start") for recording in (run, again)]
    assert arrived[1].equals(arrived[0])
    assert fates(again) == fates(run)
    told = again.run["details"]["import"]["captured_at"]
    assert told["place"] == "both ends"
    assert not [text for text in again.run["warnings"] if "capture was" in text]


CASES: dict[str, Values] = {
    **{f"QoS {qos}": scenario(qos, link=LOSSY, phases=PHASES) for qos in (0, 1, 2)},
    "two links": scenario(
        1, phases=PHASES, hosts=("field", "broker"), hosts_=None, networks=[
            {"between": ["field", "edge"], "up": LOSSY, "down": LOSSY},
            {"between": ["edge", "broker"], "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}}]),
}
# Each packet is a frame of WebSocket, behind an upgrade and before the frame that closes.
CASES["WebSocket"] = scenario(1, link=LOSSY, phases=PHASES, **{
    end: {"transport": {"tcp": {}, "websocket": {"path": "/here"}}} for end in ("publisher", "subscriber")})
CASES["two links"].pop("hosts_")
CASES["two links"]["hosts"] = {"edge": {"forwards": True}}


@pytest.mark.parametrize("case", CASES)
def test_an_exported_simulation_is_imported_with_its_own_numbers(case: str, tmp_path: Path) -> None:
    run, again = both(tmp_path, CASES[case])
    assert_same_network(run, again)
    assert len(fates(run)) > 60
    latencies = [named(recording).filter(fate="delivered").select(*KEYS, "intended_ns", "received_ns").sort(KEYS)
                 for recording in (run, again)]
    assert latencies[1]["intended_ns"].equals(latencies[0]["intended_ns"])
    # The simulated program wakes up so long after its host has a message.
    assert set(latencies[0]["received_ns"] - latencies[1]["received_ns"]) == {50_000}
    assert parts(again) == pytest.approx(parts(run), abs=1e-9)
    lost = [metrics.application(recording, ()).row(0, named=True) for recording in (run, again)]
    assert lost[0]["messages_lost_percent"] == lost[1]["messages_lost_percent"]


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("phases", [MEASURED, {**MEASURED, "warm_up": "0 s"}])
def test_an_import_counts_what_its_run_counted(qos: int, phases: Values, tmp_path: Path) -> None:
    run, again = both(tmp_path, scenario(qos, link=FAR, phases=phases))
    assert_same_counts(run, again)
    assert again.plan["phases"]["duration_ns"] == 4 * 10**9
    # What was exported of an import says it, too.
    export.pcapng(again, tmp_path / "twice.pcapng")
    result = import_evidence("capture", [tmp_path / "twice.pcapng"], tmp_path / "twice", lambda line: None)
    assert_same_counts(run, Recording.open(result.directory))


@pytest.mark.parametrize("until_ns", [None, 0, 2**63, 2**64])
def test_a_capture_without_a_whole_measurement_is_measured_from_end_to_end(
    until_ns: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Earlier versions say nothing of it; and a file may have been changed."""
    measured = [] if until_ns is None else [(1, b"measured_from_ns=5 measured_until_ns=%d" % until_ns)]
    monkeypatch.setattr(sys.modules[export.pcapng.__module__], "_whole",
                        lambda recording, started_ns: [(1, b"started_unix_ns=%d" % started_ns), *measured])
    run, again = both(tmp_path, scenario(1, link=FAR, phases=MEASURED))
    assert measurement(again).from_ns == 0
    # Handshakes come before the warm-up.
    assert 6 < measurement(again).seconds < 30
    assert again.messages["phase"].cast(pl.String).unique().to_list() == ["measurement"]
    assert fates(again) == fates(run)


@pytest.mark.live(runs=1)
@pytest.mark.skipif(able() is not None, reason=str(able()))
@pytest.mark.parametrize(("qos", "transport"), [(1, None), (2, {"tls": {}})])
def test_an_exported_live_run_is_imported_with_its_own_numbers(
    qos: int, transport: Values | None, tmp_path: Path,
) -> None:
    phases = {**PHASES, "warm_up": "500 ms"}
    values = scenario(qos, link=LOSSY, phases=phases, backend="live", recording={"pcapng": True})
    for group in values["groups"] if transport else []:
        group["transport"] = transport
    run, again = both(tmp_path, values)
    assert_same_network(run, again)
    assert_same_counts(run, again)
    latencies = [named(recording).filter(fate="delivered").select(*KEYS, "intended_ns", "received_ns").sort(KEYS)
                 for recording in (run, again)]
    assert latencies[1]["intended_ns"].equals(latencies[0]["intended_ns"])
    early_ns = run.run["details"]["emulator"]["latency_compensation_ns"]
    assert (latencies[0]["received_ns"] + early_ns >= latencies[1]["received_ns"]).all()
    # The emulator hands frames over a little early, which the run knows and its capture does not say.
    assert parts(again) == pytest.approx(parts(run), abs=0.1)


def test_what_held_a_message_before_its_first_packet_is_not_known_of_a_capture(tmp_path: Path) -> None:
    run, again = both(tmp_path, scenario(1, rate="50 /s", link=FAR, phases=PHASES))
    [ours], [read] = (metrics.headline(recording).flows for recording in (run, again))
    assert "sender_nagle_ns" in {share.part for share in ours.slowest}
    # The run knows that its clients were never late; of the capture the same time was "the client was late".
    assert not {"schedule_ns"} & {share.part for share in (*read.typical, *read.slowest)}
    assert "before_sending" in {share.part for share in read.slowest}
    assert "in the client or in TCP" in " ".join(where_the_time_went(read))
