"""Our own captures of a lossy run, read by tshark: the same frames, bytes, TCP analysis and MQTT packets.

A capture shows what came to each link's queue, at both ends of the connection and on one clock; merged, the links of
a run are what Wireshark would see from there. Frame by frame, tshark's judgement is compared with the recording's.

Where the two differ the reason is known, and each difference is checked against it:

- tshark decodes the MQTT of a fast or spurious retransmission again. Its preference "do not call subdissectors for
  error packets" (tcp.no_subdissector_on_error) covers plain retransmissions and out-of-order segments only. The
  recording names a packet once, in the segment that completed it first.
- tshark loses its place in a stream for good when a segment ends inside the remaining length of a packet: its MQTT
  dissector asks for two bytes of header and then reads a third one that is not there, and says "malformed". The MQTT
  of that direction of that connection is compared up to there only.
- A packet that is longer than a segment and begins in one that tshark decodes again is forgotten by tshark at times: it
  names only what follows it in the segment that completes it. Compared up to there only, too.
- tshark gives a round trip to acknowledgements of segments that were sent more than once, from the oldest copy. The
  recording leaves them out (Karn's algorithm): nobody can tell which copy is acknowledged.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from live import perform
from mqttlab import metrics
from mqttlab.recording import Recording

SCENARIO = """
name = "lossy"

[phases]
duration = "5 s"
cool_down = "4 s"

[[networks]]
between = ["field", "broker"]
up = { rate = "2 Mbit/s", delay = "20 ms", loss = "5 %", duplicate = "1 %", queue = "40 packets" }
down = { rate = "2 Mbit/s", delay = "20 ms", loss = "5 %", duplicate = "1 %", queue = "40 packets" }

[[groups]]
name = "small"
host = "field"
count = 3
publish = { topic = "small/{client}", qos = 1, payload = "60 B", rate = "50 /s" }

[[groups]]
name = "large"
host = "field"
mqtt = { version = "5" }
publish = { topic = "large", qos = 2, payload = "5 kB", rate = "6 /s" }

[[groups]]
name = "plain"
host = "field"
nagle = false
publish = { topic = "plain", qos = 0, payload = "100 B", rate = "60 /s" }

[[groups]]
name = "listeners"
host = "field"
count = 2
subscribe = [{ filter = "#", qos = 2 }]

[recording]
pcapng = true
"""
MARKS = (
    "retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order", "duplicate_ack",
    "lost_segment", "ack_lost_segment", "zero_window", "zero_window_probe", "zero_window_probe_ack", "window_full",
    "window_update", "keep_alive", "keep_alive_ack", "reused_ports",
)
FIELDS = (
    "frame.time_epoch", "frame.len", "ip.len", "tcp.stream", "tcp.len", "tcp.analysis.ack_rtt", "mqtt.msgtype",
    "mqtt.len", "mqtt.topic", "mqtt.msgid", "mqtt.qos", "_ws.malformed",
)
KINDS = ("", "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "SUBSCRIBE", "SUBACK",
         "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "AUTH")
MISSING = [program for program in ("tshark", "mergecap") if shutil.which(program) is None]
NEEDED = f"{', '.join(MISSING)} not installed (Debian: apt-get install tshark)"
pytestmark = [pytest.mark.live, pytest.mark.skipif(bool(MISSING), reason=NEEDED)]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    directory = tmp_path_factory.mktemp("lossy")
    scenario = directory / "lossy.toml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    return perform(directory / "runs", [scenario])[0]


@pytest.fixture(scope="module")
def frames(recording: Recording, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """A row per frame: the recording's columns, and tshark's with ``t_`` before their names."""
    merged = tmp_path_factory.mktemp("merged") / "merged.pcapng"
    captures = [str(path) for path in sorted(recording.directory.glob("capture-*.pcapng"))]
    subprocess.run(["mergecap", "-w", str(merged), *captures], check=True, capture_output=True)
    theirs = tshark(merged, recording.layout["started_unix_ns"])
    ours = recording.packets.filter(pl.col("hop") == 0, pl.col("fate") != "duplicated").sort(
        "entered_ns", maintain_order=True)
    assert theirs.height == ours.height
    return pl.concat([ours, theirs], how="horizontal")


def tshark(capture: Path, started_unix_ns: int) -> pl.DataFrame:
    names = [*FIELDS, *(f"tcp.analysis.{mark}" for mark in MARKS)]
    asked = [word for name in names for word in ("-e", name)]
    output = subprocess.run(["tshark", "-r", str(capture), "-T", "fields", *asked],
                            check=True, capture_output=True, text=True).stdout
    rows = []
    for line in output.splitlines():
        time, size, ip, stream, payload, rtt, kinds, lengths, topics, ids, qos, malformed, *marks = line.split("\t")
        rows.append({
            "t_entered_ns": int(Decimal(time) * 10**9) - started_unix_ns, "t_frame_bytes": int(size),
            "t_ip_bytes": int(ip), "t_connection": int(stream), "t_payload_bytes": int(payload),
            "t_ack_rtt_ns": int(Decimal(rtt) * 10**9) if rtt else None,
            "t_mqtt": [KINDS[int(kind)] for kind in kinds.split(",") if kind],
            "t_remaining": [int(length) for length in lengths.split(",") if length],
            "t_topics": [topic for topic in topics.split(",") if topic],
            "t_ids": [int(identifier, 0) for identifier in ids.split(",") if identifier],
            "t_malformed": malformed != "",
            "t_qos": [int(level) for level in qos.split(",") if level],
            "t_marks": sorted(name for name, mark in zip(MARKS, marks, strict=True) if mark),
        })
    return pl.DataFrame(rows, infer_schema_length=None)


def towards() -> pl.Expr:
    """As ``control_packets`` names the directions."""
    return pl.when(pl.col("source_port") == 1883).then(pl.lit("to_client")).otherwise(pl.lit("to_broker"))


def repeated() -> pl.Expr:
    """Frames whose MQTT tshark decodes again (see above)."""
    marks = pl.col("t_marks")
    return marks.list.contains("fast_retransmission") | marks.list.contains("spurious_retransmission")


def forgotten(recording: Recording, frames: pl.DataFrame) -> pl.DataFrame:
    """Frames that complete a packet which began in a frame that tshark decoded again, and of which it says nothing."""
    ways = frames.with_columns(direction=towards(), end=pl.col("stream_offset") + pl.col("payload_bytes"))
    again = ways.filter(repeated(), pl.col("payload_bytes") > 0).select(
        "connection", "direction", again_ns="entered_ns", first="stream_offset", after="end")
    crossing = recording.control_packets.join(again, on=["connection", "direction"]).filter(
        pl.col("stream_start").is_between("first", pl.col("after") - 1), pl.col("stream_end") > pl.col("after"))
    completing = ways.filter(pl.col("mqtt").is_not_null()).join(
        crossing.select("connection", "direction", "stream_end", "again_ns"), on=["connection", "direction"],
    ).filter(
        pl.col("stream_end") > pl.col("stream_offset"), pl.col("stream_end") <= pl.col("end"),
        pl.col("entered_ns") > pl.col("again_ns"),
        pl.col("t_mqtt").list.len() == pl.col("mqtt").str.count_matches(r"\(") - 1)
    return completing.select("connection", "entered_ns", "t_malformed", "direction", "end")


@pytest.fixture(scope="module")
def compared(recording: Recording, frames: pl.DataFrame) -> pl.DataFrame:
    """The frames whose MQTT can be compared: those before tshark lost its place in their stream (see above)."""
    long = recording.control_packets.filter(pl.col("fixed_header_bytes") > 2).select(
        "connection", "direction", end=pl.col("stream_start") + 2)
    ending = frames.filter(pl.col("payload_bytes") > 0).select(
        "connection", "entered_ns", "t_malformed", direction=towards(),
        end=pl.col("stream_offset") + pl.col("payload_bytes"))
    broken = ending.join(long, on=["connection", "direction", "end"], how="semi").sort("entered_ns").unique(
        ["connection", "direction"], keep="first", maintain_order=True)
    assert broken["t_malformed"].all()
    places = pl.concat([broken, forgotten(recording, frames)]).group_by("connection", "direction").agg(
        broken_ns=pl.col("entered_ns").min())
    cut = frames.with_columns(direction=towards()).join(
        places, on=["connection", "direction"], how="left", maintain_order="left",
    ).filter(pl.col("broken_ns").is_null() | (pl.col("entered_ns") < pl.col("broken_ns")))
    assert cut["mqtt"].count() >= frames["mqtt"].count() / 3
    return cut


def test_the_run_was_lossy_enough_to_say_anything(frames: pl.DataFrame) -> None:
    counts = Counter(mark for marks in frames["t_marks"] for mark in marks)
    assert frames.height > 1000
    assert counts["retransmission"] >= 20
    assert counts["fast_retransmission"] >= 3
    assert counts["duplicate_ack"] >= 20


def test_frames_and_bytes_are_equal(frames: pl.DataFrame) -> None:
    for ours, theirs in (("entered_ns", "t_entered_ns"), ("ip_bytes", "t_frame_bytes"), ("ip_bytes", "t_ip_bytes"),
                         ("payload_bytes", "t_payload_bytes"), ("connection", "t_connection")):
        assert frames[ours].cast(pl.Int64).to_list() == frames[theirs].to_list(), ours


def test_every_frame_is_marked_as_tshark_marks_it(frames: pl.DataFrame) -> None:
    version = subprocess.run(["tshark", "--version"], capture_output=True, text=True, check=True).stdout
    if " 4.0." not in version.splitlines()[0]:
        pytest.skip("marks are those of Wireshark 4.0; other versions differ")
    ours = frames["marks"].fill_null("").str.split(",").list.sort().list.join(",").to_list()
    assert ours == frames["t_marks"].list.join(",").to_list()


def test_the_runs_sums_of_marks_are_those_of_the_frames(recording: Recording, frames: pl.DataFrame) -> None:
    run = recording.network_metrics.filter(pl.col("scope") == "run")
    sums = dict(zip(run["metric"], run["value"], strict=True))
    counts = Counter(mark for marks in frames["t_marks"] for mark in marks)
    for metric, mark in (("retransmissions", "retransmission"), ("fast_retransmissions", "fast_retransmission"),
                         ("spurious_retransmissions", "spurious_retransmission"), ("out_of_order", "out_of_order"),
                         ("duplicate_acks", "duplicate_ack"), ("window_updates", "window_update")):
        assert sums[f"tcp_analysis_{metric}"] == counts[mark], metric
    assert sums["frames"] == frames.height
    assert sums["tcp_payload_bytes"] == frames["t_payload_bytes"].sum()


def test_the_table_of_the_network_layer_has_the_same_sums(recording: Recording) -> None:
    table = metrics.network(recording, ["run", "direction"])
    analysed = recording.network_metrics.filter(pl.col("scope").is_in(["run", "direction"]))
    for row in table.to_dicts():
        part = analysed.filter(pl.col("direction").eq_missing(pl.lit(row["direction"])))
        sums = dict(zip(part["metric"], part["value"], strict=True))
        for column, metric in {
            "frames": "frames", "bytes": "frame_bytes", "ip_bytes": "ip_bytes",
            **{name: name for name in (
                "tcp_analysis_retransmissions", "tcp_analysis_fast_retransmissions", "tcp_analysis_out_of_order",
                "tcp_analysis_spurious_retransmissions", "tcp_analysis_duplicate_acks", "tcp_analysis_zero_windows")},
            "segments_with_payload": "segments_with_payload",
            "mqtt_packets": "mqtt_packets", "publish_packets": "mqtt_publish", "resets": "resets",
            "publish_per_segment_mean": "publish_per_segment_mean", "tcp_payload_bytes": "tcp_payload_bytes",
        }.items():
            assert row[column] == pytest.approx(sums[metric]), (row["direction"], column)


def test_round_trips_are_equal_and_left_out_where_a_copy_makes_them_ambiguous(frames: pl.DataFrame) -> None:
    both = frames.filter(pl.col("ack_rtt_ns").is_not_null())
    assert both.height > 100
    assert both["ack_rtt_ns"].to_list() == both["t_ack_rtt_ns"].to_list()
    ambiguous = frames.filter(pl.col("ack_rtt_ns").is_null(), pl.col("t_ack_rtt_ns").is_not_null())
    # SYN and FIN take up a sequence number.
    length = pl.col("payload_bytes").cast(pl.Int64) + (pl.col("flags") & 3 != 0).cast(pl.Int64)
    again = frames.filter(pl.col("marks").str.contains("retransmission|out_of_order")).with_columns(length=length)
    for connection, port, ack in ambiguous.select("connection", "destination_port", "ack").rows():
        copies = again.filter(pl.col("connection") == connection, pl.col("source_port") == port)
        behind = (copies["seq"].cast(pl.Int64) + copies["length"] - ack + 2**31) % 2**32 - 2**31
        assert ((behind >= 0) & (behind < copies["length"])).any(), (connection, ack)
    assert ambiguous.height <= again.height


def test_every_frame_completes_the_same_mqtt_packets(compared: pl.DataFrame) -> None:
    names = pl.col("mqtt").fill_null("").str.replace_all(r"\([^)]*\)", "")
    both = compared.with_columns(o_mqtt=names, t_mqtt=pl.col("t_mqtt").list.join(" "))
    differing = both.filter(pl.col("o_mqtt") != pl.col("t_mqtt"))
    # Only what had been decoded before is decoded again.
    assert differing.filter(~repeated() | (pl.col("o_mqtt") != "")).height == 0
    assert differing.height <= compared.filter(repeated()).height


def test_mqtt_packets_are_equal_in_kind_length_topic_identifier_and_qos(
    recording: Recording, compared: pl.DataFrame
) -> None:
    ends = compared.filter(pl.col("payload_bytes") > 0).group_by("connection", "direction").agg(
        end=(pl.col("stream_offset") + pl.col("payload_bytes")).max())
    packets = recording.control_packets.join(ends, on=["connection", "direction"]).filter(
        pl.col("stream_end") <= pl.col("end"))
    once = compared.filter(~repeated() | pl.col("mqtt").is_not_null())
    remaining = packets["stream_end"] - packets["stream_start"] - packets["fixed_header_bytes"]
    ours = Counter(zip(packets["kind"], remaining, strict=True))
    theirs = Counter(
        pair for kinds, lengths in once.select("t_mqtt", "t_remaining").rows()
        for pair in zip(kinds, lengths, strict=True))
    assert ours == theirs
    for column, field in (("topic", "t_topics"), ("packet_id", "t_ids"), ("qos", "t_qos")):
        described = packets if column == "packet_id" else packets.filter(pl.col("kind") == "PUBLISH")
        # The filter of a subscription is a topic to tshark.
        seen = Counter(value for values in once[field] for value in values if value != "#")
        assert Counter(described[column].drop_nulls().to_list()) == seen, column
