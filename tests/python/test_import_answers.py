"""What brokers and clients answered in a capture: refusals, what CONNACK changes, and why connections ended."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from captures import ACK, FIN, RST, Client, Wire, answer, disconnect, publish, publish_5
from mqttlab import metrics
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.report.html import page

TOPIC, SECRET = "plant/open", "plant/secret"


def read(wire: Wire, tmp_path: Path) -> Recording:
    file = wire.save(tmp_path / "made.pcap")
    outcome = import_evidence("capture", [file], tmp_path / "recording", lambda line: None)
    recording = Recording.open(outcome.directory)
    assert recording.run["validity"] == {"valid": True, "reasons": []}
    return recording


def pair(*, level: int = 5, terms: bytes = b"") -> tuple[Wire, Client, Client]:
    wire = Wire()
    reader, writer = Client(wire, "10.0.0.3", 40_001), Client(wire, "10.0.0.2", 40_000)
    reader.connect("reader", level=level)
    reader.subscribe("plant/#")
    writer.connect("writer", level=level, terms=terms)
    return wire, reader, writer


def fates(recording: Recording) -> list[tuple[str, str | None]]:
    rows = recording.messages.sort("publisher", "sequence")
    return rows.select(pl.col("fate", "cause").cast(pl.String)).rows()


def ended(recording: Recording) -> list[tuple[str, str, str, int]]:
    return metrics.disconnections(recording).select("group", "what", "reason", "count").rows()


def answered(recording: Recording, packet: str) -> list[tuple[str, str, str, int]]:
    return metrics.answers(recording).filter(packet=packet).select("from", "code", "name", "count").rows()


def deliver(writer: Client, reader: Client, number: int, qos: int = 1) -> None:
    """A message that the broker takes and hands on at QoS 0."""
    content = b"message %02d" % number
    writer.up(publish_5(TOPIC, content, qos=qos, identifier=number))
    for kind in {1: (4,), 2: (5, 6, 7)}.get(qos, ()):
        (writer.up if kind == 6 else writer.down)(answer(kind, number))
    reader.down(publish_5(TOPIC, content))


@pytest.mark.parametrize(("qos", "kind", "code", "name"), [
    (1, 4, 0x87, "not authorised"), (2, 5, 0x97, "quota exceeded"), (1, 4, 0x99, "payload format invalid")])
def test_a_publish_that_the_broker_refuses_is_refused_by_the_broker_and_nowhere_under_way(
        qos: int, kind: int, code: int, name: str, tmp_path: Path) -> None:
    wire, reader, writer = pair()
    for number in range(1, 6):
        deliver(writer, reader, number, qos)
        writer.up(publish_5(SECRET, b"secret %02d" % number, qos=qos, identifier=10 + number))
        writer.down(answer(kind, 10 + number, code=code))
    recording = read(wire, tmp_path)
    assert fates(recording) == [("delivered", None), ("lost", "refused")] * 5
    assert recording.messages.filter(topic=SECRET)["acknowledged_ns"].to_list() == [None] * 5
    assert [(cause.words, cause.count) for cause in metrics.headline(recording).flows[0].causes] == [
        (f"refused by the broker: {name}", 5)]
    assert ended(recording) == [("writer", "refused", f"PUBLISH to {SECRET}: code 0x{code:02x} ({name})", 5)]
    packet = "PUBACK" if qos == 1 else "PUBREC"
    assert ("broker", f"0x{code:02x}", name, 5) in answered(recording, packet)
    assert ("broker", "0x00", "success", 5) in answered(recording, packet)
    codes = recording.control_packets.filter(pl.col("kind").cast(pl.String) == packet)["reason"].to_list()
    assert codes == [0, code] * 5
    assert f"refused by the broker: {name}" in page(recording)


def test_of_equal_messages_the_refused_one_is_not_taken_for_the_one_that_is_delivered(tmp_path: Path) -> None:
    wire, reader, writer = pair()
    for number in (1, 2):
        writer.up(publish_5(TOPIC, b"equal", qos=1, identifier=number))
        writer.down(answer(4, number, code=0x97 if number == 1 else None))
    reader.down(publish_5(TOPIC, b"equal"))
    assert fates(read(wire, tmp_path)) == [("lost", "refused"), ("delivered", None)]


def test_topics_without_end_are_one_reason(tmp_path: Path) -> None:
    wire, _, writer = pair()
    for number in range(1, 8):
        writer.up(publish_5(f"plant/{number}", b"%08d" % number, qos=1, identifier=number))
        writer.down(answer(4, number, code=0x87))
    reason = "PUBLISH to 7 topics, such as plant/1: code 0x87 (not authorised)"
    assert ended(read(wire, tmp_path)) == [("writer", "refused", reason, 7)]


@pytest.mark.parametrize("qos", [1, 2])
def test_a_broker_without_a_matching_subscriber_proves_that_there_is_no_receiver(qos: int, tmp_path: Path) -> None:
    wire, reader, writer = pair()
    kind = {1: 4, 2: 5}[qos]
    for number, topic in enumerate(("other", TOPIC, TOPIC), start=1):
        writer.up(publish_5(topic, b"%08d" % number, qos=qos, identifier=number))
        writer.down(answer(kind, number, code=0x10 if number < 3 else None))
        if qos == 2:
            writer.up(answer(6, number))
            writer.down(answer(7, number))
    reader.down(publish_5(TOPIC, b"%08d" % 3))
    recording = read(wire, tmp_path)
    # The second contradicts a subscription that was granted: it is lost, and said so.
    assert fates(recording) == [("no_receiver", None), ("lost", "no_matching_subscribers"), ("delivered", None)]
    assert recording.messages["acknowledged_ns"].null_count() == 0
    words = [cause.words for flow in metrics.headline(recording).flows for cause in flow.causes]
    assert words == ["lost (the broker knew of no subscriber, although there was one)"]
    assert ("broker", "0x10", "no matching subscribers", 2) in answered(recording, "PUBACK" if qos == 1 else "PUBREC")


@pytest.mark.parametrize(("qos", "kind"), [(1, 4), (2, 5)])
def test_a_client_that_refuses_a_delivery_has_had_it(qos: int, kind: int, tmp_path: Path) -> None:
    wire, reader, writer = pair()
    writer.up(publish_5(TOPIC, b"content"))
    reader.down(publish_5(TOPIC, b"content", qos=qos))
    reader.up(answer(kind, code=0x83))
    recording = read(wire, tmp_path)
    assert fates(recording) == [("delivered", None)]
    packet = "PUBACK" if qos == 1 else "PUBREC"
    assert ended(recording) == [
        ("reader", "refused deliveries", f"delivery, {packet}: code 0x83 (implementation specific error)", 1)]
    assert answered(recording, packet) == [("client", "0x83", "implementation specific error", 1)]


def test_a_packet_identifier_that_is_not_found_ends_an_exchange_that_the_broker_had_accepted(tmp_path: Path) -> None:
    wire, reader, writer = pair()
    writer.up(publish_5(TOPIC, b"content", qos=2))
    writer.down(answer(5))
    reader.down(publish_5(TOPIC, b"content"))
    writer.up(answer(6))
    writer.down(answer(7, code=0x92))
    recording = read(wire, tmp_path)
    assert fates(recording) == [("delivered", None)]
    assert recording.messages["acknowledged_ns"].null_count() == 0
    assert answered(recording, "PUBCOMP") == [("broker", "0x92", "packet identifier not found", 1)]


@pytest.mark.parametrize(("code", "expected"), [(0x00, "no_receiver"), (0x11, "no_receiver"), (0x87, "delivered")])
def test_a_subscription_that_the_broker_does_not_end_goes_on(code: int, expected: str, tmp_path: Path) -> None:
    wire, reader, writer = pair()
    deliver(writer, reader, 1)
    reader.unsubscribe("plant/#", codes=bytes([code]))
    writer.up(publish_5(TOPIC, b"later", qos=1, identifier=2))
    writer.down(answer(4, 2))
    if expected == "delivered":
        reader.down(publish_5(TOPIC, b"later"))
    recording = read(wire, tmp_path)
    assert [fate for fate, _ in fates(recording)] == ["delivered", expected]
    reason = "UNSUBSCRIBE plant/#: code 0x87 (not authorised)"
    assert ended(recording) == ([("reader", "refused", reason, 1)] if code == 0x87 else [])
    name = {0: "success", 0x11: "no subscription existed", 0x87: "not authorised"}[code]
    assert answered(recording, "UNSUBACK") == [("broker", f"0x{code:02x}", name, 1)]


def test_what_a_subscription_goes_on_to_owe_and_does_not_come_is_missing(tmp_path: Path) -> None:
    wire, reader, writer = pair()
    reader.unsubscribe("plant/#", codes=b"\x87")
    for number in (1, 2):
        writer.up(publish_5(TOPIC, b"%08d" % number, qos=1, identifier=number))
        writer.down(answer(4, number))
    reader.down(publish_5(TOPIC, b"%08d" % 2, qos=1))
    assert fates(read(wire, tmp_path)) == [("lost", "overtaken"), ("delivered", None)]


def test_subacks_have_the_names_of_their_version(tmp_path: Path) -> None:
    wire = Wire()
    for place, (level, code) in enumerate(((4, 0x80), (5, 0x80), (5, 0x8F))):
        client = Client(wire, f"10.0.0.{place + 2}", 40_000 + place)
        client.connect(f"client{place}", level=level)
        client.subscribe("a/#", codes=bytes([code]))
    recording = read(wire, tmp_path)
    assert sorted(answered(recording, "SUBACK")) == [
        ("broker", "0x80", "failure", 1), ("broker", "0x80", "unspecified error", 1),
        ("broker", "0x8f", "topic filter invalid", 1)]
    assert [row[2] for row in ended(recording)] == [
        "SUBSCRIBE a/#: code 0x80 (failure)", "SUBSCRIBE a/#: code 0x80 (unspecified error)",
        "SUBSCRIBE a/#: code 0x8f (topic filter invalid)"]


def assigned(name: str) -> bytes:
    return b"\x12" + len(name).to_bytes(2, "big") + name.encode()


def test_a_client_whose_identifier_the_broker_assigned_is_one_client_when_it_comes_back(tmp_path: Path) -> None:
    wire = Wire()
    writer, reader = Client(wire, "10.0.0.1", 40_000), Client(wire, "10.0.0.2", 40_001)
    writer.connect("writer", level=5)
    reader.connect("", level=5, expiry_s=3600, terms=assigned("auto-7f3a"))
    reader.subscribe("plant/#")
    for number in range(1, 5):
        deliver(writer, reader, number)
    reader.up(b"", RST)
    for number in range(5, 9):
        writer.up(publish_5(TOPIC, b"message %02d" % number, qos=1, identifier=number))
        writer.down(answer(4, number))
    back = Client(wire, "10.0.0.2", 40_002)
    back.connect("auto-7f3a", level=5, clean=False, present=True, expiry_s=3600)
    for number in range(5, 9):
        back.down(publish_5(TOPIC, b"message %02d" % number))
    other = Client(wire, "10.0.0.2", 40_003)
    other.connect("", level=5, terms=assigned("auto-0001"))
    recording = read(wire, tmp_path)
    assert fates(recording) == [("delivered", None)] * 8
    assert recording.layout["clients"].table["name"].to_list() == ["writer", "auto-7f3a", "auto-0001"]
    connections = metrics.mqtt_connections(recording)
    assert connections["client"].to_list() == ["writer", "auto-7f3a", "auto-7f3a", "auto-0001"]
    assert connections["connack"].to_list()[1] == "identifier auto-7f3a"


def test_what_a_connack_says_is_in_the_table_of_connections(tmp_path: Path) -> None:
    terms = (b"\x13\0\x0a\x21\0\2\x24\1\x25\0\x27\0\0\4\0\x22\0\5\x28\0\x29\0\x2a\0"
             b"\x1f\0\2hi\x1c\0\1b\x1a\0\1r\x11\0\0\0\x09")
    wire, _, _ = pair(terms=terms)
    recording = read(wire, tmp_path)
    connection = recording.run["details"]["connections"][1]
    assert connection["connack"] == {
        "server_keep_alive_s": 10, "receive_maximum": 2, "maximum_qos": 1, "retain_available": False,
        "maximum_packet_size": 1024, "topic_alias_maximum": 5, "wildcard_subscription_available": False,
        "subscription_identifiers_available": False, "shared_subscription_available": False, "reason_string": "hi",
        "server_reference": "b", "response_information": "r", "session_expiry_interval_s": 9}
    row = metrics.mqtt_connections(recording).row(1, named=True)
    assert (row["keep_alive_s"], row["keep_alive_asked_s"]) == (10, 60)
    assert "maximum QoS 1, retain not available, maximum packet size 1024 B" in row["connack"]


@pytest.mark.parametrize("asked_s", [600, 0])
def test_a_client_that_ignores_the_server_s_keep_alive_is_named(asked_s: int, tmp_path: Path) -> None:
    wire = Wire()
    client = Client(wire, "10.0.0.2", 40_000)
    client.connect("client", level=5, keep_alive_s=asked_s, terms=b"\x13\0\x0a")
    wire.wait(15_200)
    client.down(disconnect(0x8D))
    client.down(b"", FIN | ACK)
    recording = read(wire, tmp_path)
    words = ("the broker sent DISCONNECT, code 0x8d (keep alive timeout); the client ignored the server's keep-alive "
             "of 10 s")
    assert ended(recording) == [("client", "disconnected", words, 1)]
    row = metrics.mqtt_connections(recording).row(0, named=True)
    assert (row["keep_alive_s"], row["keep_alive_ignored"], row["ended_how"]) == (10, "yes", words)


def test_reasons_of_a_disconnect_have_names_and_stand_before_what_explains_nothing(tmp_path: Path) -> None:
    wire = Wire()
    for place, code in enumerate((0x8E, 0x93)):
        client = Client(wire, f"10.0.0.{place + 2}", 40_000 + place)
        client.connect("abcd"[place] * 3, level=5)
        client.down(disconnect(code))
        client.down(b"", FIN | ACK)
    for place in range(3):
        client = Client(wire, "10.0.0.9", 41_000 + place)
        client.connect("zzz", level=5)
        client.down(b"", FIN | ACK)
        wire.wait(10_000)
    angry = Client(wire, "10.0.0.8", 42_000)
    angry.connect("yyy", level=5)
    angry.up(disconnect(0x95), FIN | ACK)
    assert ended(read(wire, tmp_path)) == [
        ("aaa", "disconnected", "the broker sent DISCONNECT, code 0x8e (session taken over)", 1),
        ("bbb", "disconnected", "the broker sent DISCONNECT, code 0x93 (receive maximum exceeded)", 1),
        ("yyy", "disconnected", "the client sent DISCONNECT, code 0x95 (packet too large)", 1),
        ("zzz", "disconnected", "closed by the broker without a DISCONNECT", 3)]


@pytest.mark.parametrize(("level", "code", "name"), [
    (4, 5, "not authorised"), (4, 2, "identifier rejected"), (5, 0x86, "bad user name or password")])
def test_a_client_that_is_refused_again_and_again_is_refused_and_not_disconnected(
        level: int, code: int, name: str, tmp_path: Path) -> None:
    wire = Wire()
    for place in range(10):
        client = Client(wire, "10.0.0.2", 40_000 + place)
        client.connect("bad", level=level, code=code)
        client.down(b"", FIN | ACK)
        wire.wait(1000)
    recording = read(wire, tmp_path)
    assert ended(recording) == [("bad", "refused", f"CONNECT: code 0x{code:02x} ({name})", 10)]
    assert set(metrics.mqtt_connections(recording)["ended_how"]) == {
        f"refused by the broker: CONNACK, code 0x{code:02x} ({name})"}
    assert answered(recording, "CONNACK") == [("broker", f"0x{code:02x}", name, 10)]


@pytest.mark.parametrize("flags", [FIN | ACK, RST | ACK])
@pytest.mark.parametrize("first", ["the close", "the CONNACK"])
def test_before_mqtt_5_a_session_that_is_taken_over_is_known_by_the_other_connect(
        flags: int, first: str, tmp_path: Path) -> None:
    wire = Wire()
    old, new = Client(wire, "10.0.0.2", 40_000), Client(wire, "10.0.0.3", 40_001)
    old.connect("twin")
    wire.wait(3000)
    new.connect("twin", answered=first == "the CONNACK")
    old.down(b"", flags)
    if first == "the close":
        new.down(b"\x20\2\0\0")
    how = "closed" if flags & FIN else "reset"
    words = (f"{how} by the broker without a DISCONNECT (session taken over: a connection with the same identifier "
             "came just before)")
    assert ended(read(wire, tmp_path)) == [("twin", "disconnected", words, 1)]


def test_a_connection_that_is_closed_while_another_one_is_refused_is_not_taken_over(tmp_path: Path) -> None:
    wire = Wire()
    old, new = Client(wire, "10.0.0.2", 40_000), Client(wire, "10.0.0.3", 40_001)
    old.connect("twin")
    new.connect("twin", code=5)
    old.down(b"", FIN | ACK)
    assert ended(read(wire, tmp_path)) == [
        ("twin", "refused", "CONNECT: code 0x05 (not authorised)", 1),
        ("twin", "disconnected", "closed by the broker without a DISCONNECT", 1)]


@pytest.mark.parametrize(("silent_ms", "is_timeout"), [
    (60_000, False), (90_100, True), (104_000, True), (400_000, False)])
def test_before_mqtt_5_a_keep_alive_timeout_is_known_by_the_silence(
        silent_ms: int, is_timeout: bool, tmp_path: Path) -> None:
    wire = Wire()
    client = Client(wire, "10.0.0.2", 40_000)
    client.connect("client")
    wire.wait(1000)
    client.up(publish("a", b"x"))
    wire.wait(silent_ms)
    client.down(b"", FIN | ACK)
    why = " (keep alive timeout: nothing from the client for 1.5 times its 60 s)" if is_timeout else ""
    assert ended(read(wire, tmp_path)) == [
        ("client", "disconnected", f"closed by the broker without a DISCONNECT{why}", 1)]


def test_who_closed_or_reset_a_connection_is_said(tmp_path: Path) -> None:
    wire = Wire()
    for place, (flags, direction) in enumerate(((RST, "up"), (FIN | ACK, "up"), (RST, "down"))):
        client = Client(wire, f"10.0.0.{place + 2}", 40_000 + place)
        client.connect("abc"[place] * 2)
        getattr(client, direction)(b"", flags)
    assert ended(read(wire, tmp_path)) == [
        ("aa", "disconnected", "reset by the client without a DISCONNECT", 1),
        ("bb", "disconnected", "closed by the client without a DISCONNECT", 1),
        ("cc", "disconnected", "reset by the broker without a DISCONNECT", 1)]


def test_tcp_connections_without_a_connect_are_counted_by_who_and_by_who_closed_them(tmp_path: Path) -> None:
    wire, reader, writer = pair(level=4)
    for number in range(3):
        probe = Client(wire, "10.0.0.77", 50_000 + number)
        probe.open()
        wire.wait(15_000)
        probe.down(b"", FIN | ACK)
        probe.up(b"", FIN | ACK)
    check = Client(wire, "10.0.0.78", 50_000)
    check.open()
    check.up(b"", RST)
    Client(wire, "10.0.0.79", 50_000).open()
    writer.up(publish(TOPIC, b"x"))
    reader.down(publish(TOPIC, b"x"))
    recording = read(wire, tmp_path)
    rows = metrics.connections_without_connect(recording)
    assert rows.select("from", "to", "connections", "closed_by").rows() == [
        ("10.0.0.77", "10.0.0.1:1883", 3, "broker"), ("10.0.0.78", "10.0.0.1:1883", 1, "client (reset)"),
        ("10.0.0.79", "10.0.0.1:1883", 1, "open at the end")]
    assert [round(value) for value in rows["open_s_p50"]][:2] == [15, 0]
    words = ("5 TCP connections to the broker's port carried no CONNECT, from 10.0.0.77 and 2 more addresses: "
             "3 closed by the broker after at most 15.0 s, 1 closed by the client (reset) after at most 0.0 s, "
             "1 open at the end.")
    assert [told for told in recording.run["warnings"] if told.startswith(words)]
    assert "TCP connections without a CONNECT" in page(recording)
