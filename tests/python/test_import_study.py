"""The captures and logs of Schuhmacher 2018, imported, against the study's reference tables.

The data are not part of the repository: ``MQTTLAB_SHARED`` names the directory that holds ``data/schuhmacher2018``;
without it, ``../shared`` beside the repository is tried.
"""

from __future__ import annotations

import csv
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from mqttlab.imports import import_evidence
from mqttlab.recording import Recording

ROOT = Path(__file__).resolve().parents[2]
STUDY = Path(os.environ.get("MQTTLAB_SHARED", ROOT.parent / "shared")) / "data" / "schuhmacher2018"
pytestmark = pytest.mark.skipif(
    not STUDY.is_dir(), reason="no data/schuhmacher2018 under MQTTLAB_SHARED or ../shared")
Row = dict[str, str]


def table(name: str) -> list[Row]:
    with (STUDY / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def stored(name: str, scratch: Path) -> Path:
    """The file of the study's repository; ``archive!entry`` is taken out of its archive, which no import reads."""
    archive, _, entry = name.partition("!")
    if not entry:
        plain = STUDY / name
        return plain if plain.exists() else plain.with_name(plain.name + ".zst")
    with tarfile.open(STUDY / archive) as tar:
        member = next(member for member in tar.getmembers() if Path(member.name).name == entry)
        content = tar.extractfile(member)
        assert content is not None, f"{entry} is no file in {archive}"
        # Read and not extracted: Debian's Python 3.11.2 has no extraction filters yet.
        found = scratch / Path(member.name).name
        found.write_bytes(content.read())
        return found


def compared(checks: Iterator[tuple[str, float | None, str]]) -> int:
    """How many values equal the reference to the digits that it prints; fails with all that do not."""
    wrong, equal = [], 0
    for what, ours, expected in checks:
        if same(ours, expected):
            equal += 1
        else:
            wrong.append(f"{what}: {ours}, reference {expected}")
    assert not wrong, "\n".join(wrong)
    return equal


def same(ours: float | None, expected: str) -> bool:
    if ours is None or not expected:
        return ours is None and not expected
    reference = float(expected)
    decimals = len(expected.partition("e")[0].partition(".")[2])
    # The study's sums are of single numbers in binary64.
    return abs(ours - reference) <= max(0.51 * 10.0**-decimals, abs(reference) * 1e-12)


def captured_value(recording: Recording, metric: str, direction: str) -> float | None:
    """A reference metric from the tables of the recording, without the analyser's own sums."""
    packets, control = recording.packets, recording.control_packets
    whole = control.filter(pl.col("complete_ns").is_not_null())
    if direction != "all":
        packets = packets.filter(direction={"to_broker": "up", "from_broker": "down"}[direction], protocol=6)
        whole = whole.filter(direction={"to_broker": "to_broker", "from_broker": "to_client"}[direction])
    segments = packets.filter(protocol=6)
    publish = whole.filter(kind="PUBLISH")
    parts = ("fixed_header_bytes", "topic_bytes", "packet_id_bytes", "property_bytes")
    sums = {
        "packets_total": packets.height,
        "bytes_total_frames": packets["frame_bytes"].sum(),
        "bytes_ethernet": packets["frame_bytes"].sum(),
        "tcp_packets": segments.height,
        "bytes_ip": segments["ip_bytes"].sum(),
        "bytes_tcp_payload": segments["payload_bytes"].sum(),
        "tcp_segments_with_payload": segments.filter(pl.col("payload_bytes") > 0).height,
        "syn_packets": segments.filter(pl.col("flags") & 18 == 2).height,
        "rst_packets": segments.filter(pl.col("flags") & 4 > 0).height,
        "mqtt_PUBLISH_dup": publish["dup"].sum(),
        "bytes_mqtt": sum(int(whole[part].sum()) for part in (*parts, "payload_bytes")),
        "bytes_publish_payload": publish["payload_bytes"].sum(),
        "bytes_publish_overhead": sum(int(publish[part].sum()) for part in parts),
    }
    if metric in sums:
        return float(sums[metric])
    if metric.startswith("mqtt_PUBLISH_qos"):
        return publish.filter(qos=int(metric[-1])).height
    if metric.startswith("mqtt_") and metric.removeprefix("mqtt_").isupper():
        return whole.filter(kind=metric.removeprefix("mqtt_")).height
    if metric in ("tcp_retransmission", "tcp_fast_retransmission", "tcp_duplicate_ack", "tcp_out_of_order"):
        word = metric.removeprefix("tcp_")
        return segments.filter(pl.col("marks").str.split(",").list.contains(word)).height
    return None


def captured_checks(scratch: Path) -> Iterator[tuple[str, float | None, str]]:
    rows = table("reference_pcap.csv")
    own = {(row["file"], row["metric"], row["direction"]) for row in rows if row["method"] == "own"}
    recordings: dict[str, Recording] = {}
    for row in rows:
        file, metric, direction = row["file"], row["metric"], row["direction"]
        # Where tshark and the study's own reader differ, tshark has lost the framing (TSHARK.md).
        if row["method"] != "own" and ((file, metric, direction) in own or row["method"] == "tshark-ooo"):
            continue
        if file not in recordings:
            number = len(recordings)
            outcome = import_evidence(
                "capture", [stored(file, scratch)], scratch / f"recording-{number}", lambda line: None)
            assert outcome.verdict == "complete"
            recordings[file] = Recording.open(outcome.directory)
        ours = captured_value(recordings[file], metric, direction)
        if ours is not None:
            yield f"{file} {metric} {direction}", ours, row["value"]


def test_every_count_of_the_captures_is_found_in_the_imported_tables(tmp_path: Path) -> None:
    equal = compared(captured_checks(tmp_path))
    # 28 captures with 14 kinds of MQTT packets alone.
    assert equal > 28 * 14


def log_checks(scratch: Path) -> Iterator[tuple[str, float | None, str]]:
    for number, row in enumerate(table("reference_logs_client1.csv")):
        outcome = import_evidence(
            "log", [stored(row["file"], scratch)], scratch / f"recording-{number}", lambda line: None,
            options=("--utc-offset", "+02:00"))
        messages = Recording.open(outcome.directory).messages
        trips = messages.filter(fate="delivered")["latency_ns"] / 1e9
        values = {
            "sent": messages.filter(~pl.col("fate").is_in(["unsent", "foreign"])).n_unique(["publisher", "sequence"]),
            "delivered": trips.len(),
            "duplicates": messages.filter(fate="duplicate").height,
            # The script calls lost what has not arrived, at the end of the log too.
            "lost": messages.filter(pl.col("fate").is_in(["lost", "under_way"])).height,
            "rtt_mean_s": trips.mean(),
            "rtt_median_s": trips.quantile(0.5, "linear"),
            "rtt_p95_s": trips.quantile(0.95, "linear"),
            "rtt_p99_s": trips.quantile(0.99, "linear"),
            "rtt_min_s": trips.min(),
            "rtt_max_s": trips.max(),
            "rtt_std_s": trips.std(),
        }
        for column, ours in values.items():
            yield f"{row['file']} {column}", ours, row[column]


def test_every_round_trip_of_the_senders_logs_is_met(tmp_path: Path) -> None:
    assert compared(log_checks(tmp_path)) == 11 * len(table("reference_logs_client1.csv"))


def relay_checks(scratch: Path) -> Iterator[tuple[str, float | None, str]]:
    for number, row in enumerate(table("reference_logs_client2.csv")):
        sender = stored(row["file"].replace("client2", "client1"), scratch)
        relay = stored(row["file"], scratch)
        # The reference does not tell runs that were appended to one file apart, and one file is another run's.
        if row["received"] in ("", "0") or row["fwd_mean_s"] == "" or runs(row) != "1":
            continue
        outcome = import_evidence("log", [sender, relay], scratch / f"recording-{number}", lambda line: None)
        recording = Recording.open(outcome.directory)
        trips = recording.messages.filter(fate="delivered")
        at_relay = trips.filter(subscriber_group="relays").select("sequence", forward_ns="latency_ns")
        returned = trips.filter(subscriber_group="senders").select("sequence")
        # The reference's legs are those of messages that came back.
        legs = at_relay.join(returned, on="sequence")["forward_ns"] / 1e9
        yield f"{row['file']} n", legs.len(), row["n"]
        yield f"{row['file']} fwd_mean_s", legs.mean(), row["fwd_mean_s"]


def runs(row: Row) -> str:
    sender = row["file"].replace("client2", "client1")
    return next(other["runs"] for other in table("reference_logs_client1.csv") if other["file"] == sender)


def test_the_way_to_the_relay_is_measured_where_its_log_is_imported_beside_the_senders(tmp_path: Path) -> None:
    assert compared(relay_checks(tmp_path)) > 20


def test_a_study_s_capture_tells_who_sent_what_to_whom(tmp_path: Path) -> None:
    capture = stored("logs/10%-ploss/qos1.pcapng", tmp_path)
    outcome = import_evidence("capture", [capture], tmp_path / "recording", lambda line: None)
    messages = Recording.open(outcome.directory).messages
    ways = messages.group_by("publisher_group", "subscriber_group", "fate").len().rows()
    # The study's sender and its relay, which sends back under another topic.
    assert sorted(ways) == [("Schuhmacher", "Stolz", "delivered", 20), ("Stolz", "Schuhmacher", "delivered", 20)]
    assert messages["identified"].unique().to_list() == ["payload"]
    assert messages["acknowledged_ns"].null_count() == 0
