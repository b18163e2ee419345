"""What the report of an import says: the broker's connections, MQTT by type, topic, connection, and its words."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from captures import ACK, FIN, MS, SLL, SLL2, SYN, Client, Wire, disconnect, pair, publish
from mqttlab import metrics
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.report import terminal
from mqttlab.report.html import page
from mqttlab.report.text import verdict


def read(file: Path, tmp_path: Path, *options: str) -> Recording:
    outcome = import_evidence("capture", [file], tmp_path / "recording", lambda line: None, options=options)
    return Recording.open(outcome.directory)


def printed(recording: Recording) -> str:
    console = Console(file=io.StringIO(), width=200)
    terminal(recording, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def conversation(messages: int = 10) -> Wire:
    wire = Wire()
    publisher, subscriber = pair(wire, ("plant/#",), clean=False)
    for number in range(messages):
        content = publish("plant/a", b"%08d" % number)
        publisher.up(content)
        subscriber.down(content)
    publisher.up(disconnect(), FIN | ACK)
    return wire


def test_http_beside_mqtt_is_listed_beside_it_and_counted_nowhere_else(tmp_path: Path) -> None:
    alone = read(conversation().save(tmp_path / "alone.pcap"), tmp_path / "alone")
    wire = conversation()
    mqtt, wire.port = list(wire.frames), 80
    wire.frames = []
    browser = Client(wire, "10.0.0.9", 50_000)
    browser.open()
    browser.up(b"GET / HTTP/1.1\r\n\r\n")
    for _ in range(200):
        browser.down(b"x" * 1400)
    wire.port = 443
    Client(wire, "10.0.0.9", 50_001).up(b"", SYN)
    wire.frames = sorted(mqtt + wire.frames, key=lambda frame: frame[0])
    both = read(wire.save(tmp_path / "both.pcap"), tmp_path / "both")
    assert metrics.network(both, ("run", "direction")).equals(metrics.network(alone, ("run", "direction")))
    for name in ("frames", "tcp_payload_bytes", "link_rate_bit_s"):
        def chosen(recording: Recording, name: str = name) -> pl.DataFrame:
            rows = recording.network_metrics.filter(pl.col("scope") != "connection", metric=name)
            return rows.sort("scope", "direction").select("scope", "direction", "value")
        assert chosen(both).equals(chosen(alone)), name
    others = metrics.other_traffic(both)
    assert others.select("protocol", "port", "connections", "frames").rows() == [
        ("HTTP", 80, 1, 404), ("no data", 443, 1, 1)]
    assert "Beside the broker's connections" in printed(both)
    assert both.messages.equals(alone.messages)


def forwarded(wire: Wire, link_type: int) -> Wire:
    """Every frame comes in on interface 2 and goes out on interface 3, a hop on."""
    frames = []
    for at, packet in wire.frames:
        routed = packet[:8] + bytes([packet[8] - 1]) + packet[9:]
        for number, (way, body) in enumerate(((0, packet), (4, routed))):
            if link_type == SLL:
                head = struct.pack(">HHH8sH", way, 1, 6, bytes(8), 0x0800)
            else:
                head = struct.pack(">HHIHBB8s", 0x0800, 0, 2 + number, 1, way, 6, bytes(8))
            frames.append((at + number * 1000, head + body))
    wire.frames = frames
    return wire


@pytest.mark.parametrize("link_type", [SLL, SLL2])
def test_a_capture_of_all_interfaces_of_a_forwarding_host_doubles_nothing(link_type: int, tmp_path: Path) -> None:
    plain = read(conversation().save(tmp_path / "plain.pcap"), tmp_path / "plain")
    file = forwarded(conversation(), link_type).save(tmp_path / "any.pcap", link_type=link_type)
    every = read(file, tmp_path / "any")
    assert every.packets.height == 2 * plain.packets.height
    assert every.packets["marks"].null_count() == every.packets.height - plain.packets["marks"].count()
    assert every.messages.equals(plain.messages)
    wanted = ("tcp_analysis_retransmissions", "publish_packets", "segments_with_payload")
    counted = [metrics.network(recording, ("run",)).select(wanted).rows() for recording in (every, plain)]
    assert counted[0] == counted[1]
    links = every.layout["links"]
    assert links == (["any interface 2", "any interface 3"] if link_type == SLL2 else ["any"])


def test_packets_topics_and_connections_are_in_the_report(tmp_path: Path) -> None:
    recording = read(conversation().save(tmp_path / "made.pcap"), tmp_path)
    kinds = metrics.packet_types(recording).filter(direction="to_broker").select("kind", "packets", "packet_bytes_mean")
    assert ("PUBLISH", 10, 19.0) in kinds.rows()
    assert metrics.topics(recording).rows() == [("plant/a", 10, 10, 8.0)]
    connections = metrics.mqtt_connections(recording)
    assert connections.select("client", "from", "mqtt_version", "keep_alive_s", "clean_start").rows() == [
        ("p", "10.0.0.2:40000", "3.1.1", 60, "yes"), ("s", "10.0.0.3:40001", "3.1.1", 60, "no")]
    assert connections["ended_how"].to_list() == ["closed as planned", None]
    text, html = printed(recording), page(recording)
    for words in ("MQTT packets by type", "Topics", "MQTT connections"):
        assert words in text, words
        assert words in html, words


def test_an_import_s_report_has_no_words_of_own_runs(tmp_path: Path) -> None:
    recording = read(conversation().save(tmp_path / "made.pcap"), tmp_path)
    assert verdict(recording)[0] == "valid"
    shown = page(recording).partition("</script>")[2].partition("The plan, as run")[0]
    for word in ("lateness", "<dt>seed", "<dt>backend", "unsent"):
        assert word not in shown, word
    assert "The evidence has no known gap." in shown
    # Acknowledgements by the clients and by the broker took different ways.
    assert metrics.network(recording, ("run",))["rtt_ms_mean"].to_list() == [None]
    assert metrics.round_trips(recording).height > 0
    titles = [figure.partition("</h3>")[0] for figure in shown.split('<div class="figure"><h3>')[1:]]
    assert len(set(titles)) == len(titles)


def test_round_trips_and_one_way_trips_of_logs_are_not_in_one_mean(tmp_path: Path) -> None:
    sender, relay = tmp_path / "sender.log", tmp_path / "relay.log"
    line = "2018-05-29,23:20:{:02}:{:03},{},{},1,10,{:06}\n".format
    sender.write_text("".join(
        line(n, 0, "sent", "t", n) + line(n, 80, "received", "t2", n) for n in range(20)), encoding="utf-8")
    relay.write_text("".join(
        line(n, 30, "received", "t", n) + line(n, 40, "sent", "t2", n) for n in range(20)), encoding="utf-8")
    outcome = import_evidence("log", [sender, relay], tmp_path / "recording", lambda line: None)
    recording = Recording.open(outcome.directory)
    assert metrics.has_both_ways(recording)
    by_group = metrics.application(recording, ("publisher_group", "subscriber_group", "qos"))
    assert dict(by_group.select("subscriber_group", "latency_ms_mean").rows()) == {"senders": 80.0, "relays": 30.0}
    assert "there and back apart" in printed(recording)
    assert "by QoS" not in printed(recording).partition("Where the time")[0]
    assert "Messages by QoS" not in page(recording)


def test_a_stray_syn_is_no_note_of_the_broker_s(tmp_path: Path) -> None:
    wire = conversation()
    wire.port = 443
    Client(wire, "10.0.0.9", 50_001).up(b"", SYN)
    recording = read(wire.save(tmp_path / "made.pcap"), tmp_path)
    assert recording.events.filter(kind="note").is_empty()
    assert recording.messages["latency_ns"].max() == MS
