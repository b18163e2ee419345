"""Which delivery is of which message, where no identity says so: by whole contents, by order, or not at all."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from captures import ACK, MS, RST, Client, Wire, answer, pair, publish
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.report import headline
from mqttlab.report.answer import lines
from mqttlab.report.text import verdict
from test_import_messages import fates, read

EQUAL = b"21.5"


def latencies_ms(recording: Recording) -> list[float | None]:
    """Of first deliveries, in the order of messages."""
    delivered = recording.messages.filter(fate="delivered").sort("publisher", "sequence", "subscriber")
    return [None if ns is None else ns / MS for ns in delivered["latency_ns"]]


def said(recording: Recording) -> list[str]:
    return lines(headline.told(recording))


def first_line(recording: Recording) -> str:
    """What stands above the recording's name."""
    made = said(recording)
    return " ".join(made[:made.index(recording.name)])


def send(publisher: Client, receivers: Sequence[Client], contents: Sequence[bytes], *, lost: Sequence[int] = (),
         qos: int = 0, topic: str = "t", every_ms: int = 5_000) -> None:
    """Each content is published, and delivered within a millisecond, but for the lost ones."""
    for number, content in enumerate(contents):
        identifier = number + 1
        publisher.up(publish(topic, content, qos=qos, identifier=identifier))
        if number not in lost:
            for receiver in receivers:
                receiver.down(publish(topic, content, qos=qos, identifier=identifier))
            for receiver in receivers:
                _acknowledge(receiver.up, receiver.down, qos, identifier)
        _acknowledge(publisher.down, publisher.up, qos, identifier)
        publisher._wire.wait(every_ms)


def _acknowledge(one: Callable[[bytes], None], other: Callable[[bytes], None], qos: int, identifier: int) -> None:
    if qos == 1:
        one(answer(4, identifier))
    elif qos == 2:
        one(answer(5, identifier))
        other(answer(6, identifier))
        one(answer(7, identifier))


def numbered_at(place: int, count: int = 20, size: int = 0) -> list[bytes]:
    """JSON objects of one size that differ at this place alone."""
    start = b'{"site":"hall","text":"'
    return [start + b"x" * (place - len(start)) + b"%03d" % number + b"y" * (size - place) + b'"}'
            for number in range(count)]


@pytest.mark.parametrize("place", [40, 79, 81, 200, 1_000])
def test_contents_that_differ_anywhere_are_not_equal(place: int, tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    send(publisher, [subscriber], numbered_at(place), lost=[5])
    recording = read(wire, tmp_path)
    assert fates(recording) == [(number, "s", "lost" if number == 5 else "delivered") for number in range(20)]
    assert latencies_ms(recording) == [1.0] * 19
    assert set(recording.messages.filter(fate="delivered")["identified"]) == {"payload"}
    traced = recording.run["details"]["import"]
    assert traced["deliveries_matched_by_order"] == traced["deliveries_ambiguous"] == traced["deliveries_foreign"] == 0
    assert verdict(recording)[0] == "valid" and not headline.told(recording).untold


@pytest.mark.parametrize("place, size", [(5_000, 8_000), (1_398, 3_000), (299_990, 300_000)])
def test_a_difference_behind_the_first_segment_counts_and_a_large_payload_is_read_to_its_end(
        place: int, size: int, tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    part = 1_400 if size < 10_000 else 60_000
    for number, content in enumerate(numbered_at(place, 4, size)):
        whole = publish("t", content)
        for client in [publisher.up] if number == 1 else [publisher.up, subscriber.down]:
            for begin in range(0, len(whole), part):
                client(whole[begin:begin + part])
        wire.wait(1_000)
    recording = read(wire, tmp_path)
    assert fates(recording) == [(number, "s", "lost" if number == 1 else "delivered") for number in range(4)]


def test_binary_contents_with_equal_beginnings_are_told_apart(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    # A field counts up and another one down: sums and simple products of both are equal.
    contents = [bytes(100) + struct.pack("<dH", 21.5, number) + bytes(6) + struct.pack(">H", 40 - number)
                for number in range(20)]
    send(publisher, [subscriber], contents, lost=[5])
    recording = read(wire, tmp_path)
    assert [row for row in fates(recording) if row[2] != "delivered"] == [(5, "s", "lost")]
    assert latencies_ms(recording) == [1.0] * 19


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_equal_contents_that_all_arrive_are_told_apart_by_their_order(qos: int, tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    send(publisher, [subscriber], [EQUAL] * 10, qos=qos)
    recording = read(wire, tmp_path)
    assert fates(recording) == [(number, "s", "delivered") for number in range(10)]
    # At QoS 2 from PUBLISH to PUBREL.
    assert latencies_ms(recording) == [3.0 if qos == 2 else 1.0] * 10
    traced = recording.run["details"]["import"]
    assert (traced["deliveries_matched_by_order"], traced["deliveries_ambiguous"]) == (9, 0)
    assert verdict(recording)[0] == "valid" and not headline.told(recording).untold


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_after_a_loss_among_equal_contents_no_latency_rests_on_a_guess(qos: int, tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    send(publisher, [subscriber], [EQUAL] * 20, lost=[5], qos=qos)
    recording = read(wire, tmp_path)
    took = 3.0 if qos == 2 else 1.0
    assert latencies_ms(recording) == [took] * 5 + [None] * 14
    absent = recording.messages.filter(fate="unknown")
    assert absent.select("subscriber", "cause").rows() == [(1, "equal_content")]
    traced = recording.run["details"]["import"]
    assert (traced["deliveries_matched_by_order"], traced["deliveries_ambiguous"]) == (4, 14)
    assert first_line(recording).startswith(
        "Latencies are of 5 of 19 deliveries: 14 are of messages with equal contents, of which not all arrived")
    [flow] = headline.told(recording).numbers.flows
    assert flow.latency["p50"].value == flow.latency["max"].value == took
    assert flow.undelivered_percent == 5 and "cannot be told" in flow.causes[0].words


def test_another_content_that_arrives_shows_which_of_equal_ones_is_lost(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    #           0       1       2(lost) 3     4      5      6
    contents = [EQUAL, EQUAL, EQUAL, b"21.6", EQUAL, EQUAL, b"21.7"]
    send(publisher, [subscriber], contents, lost=[2])
    recording = read(wire, tmp_path)
    assert fates(recording) == [(number, "s", "lost" if number == 2 else "delivered") for number in range(7)]
    assert latencies_ms(recording) == [1.0] * 6
    assert recording.run["details"]["import"]["deliveries_ambiguous"] == 0


def test_several_equal_messages_under_way_at_once_are_certain_when_all_have_arrived(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    for _ in range(3):
        for _ in range(3):
            publisher.up(publish("t", EQUAL))
        wire.wait(250)
        subscriber.down(publish("t", EQUAL))
        subscriber.down(publish("t", EQUAL) + publish("t", EQUAL))
        wire.wait(1_000)
    recording = read(wire, tmp_path)
    assert latencies_ms(recording) == [253.0, 253.0, 252.0] * 3
    assert not headline.told(recording).untold


def test_a_receiver_that_lost_one_takes_nothing_from_the_other(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    other = Client(wire, "10.0.0.4", 40_002)
    other.connect("other")
    other.subscribe("#")
    for number in range(6):
        publisher.up(publish("t", EQUAL))
        for client in [subscriber] if number == 2 else [subscriber, other]:
            client.down(publish("t", EQUAL))
        wire.wait(1_000)
    recording = read(wire, tmp_path)
    of = {name: recording.messages.filter(subscriber=place) for place, name in ((1, "s"), (2, "other"))}
    assert of["s"]["fate"].to_list() == ["delivered"] * 6 and of["s"]["latency_ns"].null_count() == 0
    assert sorted(of["other"]["fate"]) == ["delivered"] * 5 + ["unknown"]
    assert of["other"]["latency_ns"].drop_nulls().to_list() == [2 * MS] * 2


def test_two_publishers_of_one_content_are_told_apart_one_after_the_other_and_not_at_once(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    second = Client(wire, "10.0.0.4", 40_002)
    second.connect("q")
    for sender in (publisher, second, second, publisher):
        send(sender, [subscriber], [EQUAL])
    publisher.up(publish("t", EQUAL))
    second.up(publish("t", EQUAL))
    subscriber.down(publish("t", EQUAL))
    subscriber.down(publish("t", EQUAL))
    recording = read(wire, tmp_path)
    assert set(recording.messages["fate"]) == {"delivered"}
    assert sorted(latencies_ms(recording), key=str) == [1.0] * 4 + [None] * 2
    assert first_line(recording).startswith("Latencies are of 4 of 6 deliveries")


@pytest.mark.parametrize("contents", [[EQUAL] * 8, numbered_at(100, 8)], ids=["equal", "different"])
def test_second_copies_of_overlapping_filters_are_duplicates_and_named_first(
        contents: list[bytes], tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire, ("t", "#"))
    send(publisher, [subscriber, subscriber], contents[:4])
    # The broker may send one copy, too ([MQTT-3.3.5-1]).
    send(publisher, [subscriber], contents[4:5])
    recording = read(wire, tmp_path)
    assert fates(recording) == [
        (number, "s", fate) for number in range(4) for fate in ("delivered", "duplicate")] + [(4, "s", "delivered")]
    assert latencies_ms(recording) == [1.0] * 5
    assert "copies      4 of 5 messages came twice: 2 subscriptions that overlap" in said(recording)
    assert recording.run["details"]["import"]["deliveries_foreign"] == 0


def test_copies_among_several_equal_messages_are_duplicates_without_a_guess(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire, ("t", "#"))
    publisher.up(publish("t", EQUAL))
    publisher.up(publish("t", EQUAL))
    for _ in range(4):
        subscriber.down(publish("t", EQUAL))
    recording = read(wire, tmp_path)
    assert sorted(recording.messages["fate"]) == ["delivered"] * 2 + ["duplicate"] * 2
    assert latencies_ms(recording) == [None, None]
    assert first_line(recording).startswith("Latency cannot be told: 2 are of messages with equal contents")


@pytest.mark.parametrize("content", [EQUAL, b""], ids=["equal", "different"])
def test_a_redelivery_with_dup_after_a_reconnect_is_a_duplicate(content: bytes, tmp_path: Path) -> None:
    wire = Wire()
    publisher, first = pair(wire, clean=False)
    contents = [content or b"%d" % number for number in range(4)]
    send(publisher, [first], contents[:2], qos=1)
    publisher.up(publish("t", contents[2], qos=1, identifier=3))
    publisher.down(answer(4, 3))
    first.down(publish("t", contents[2], qos=1, identifier=3))
    first.up(b"", RST | ACK)
    again = Client(wire, "10.0.0.3", 40_005)
    again.connect("s", clean=False, present=True)
    again.down(publish("t", contents[2], qos=1, identifier=3, dup=True))
    again.up(answer(4, 3))
    send(publisher, [again], contents[3:], qos=1)
    recording = read(wire, tmp_path)
    assert fates(recording) == [(0, "s", "delivered"), (1, "s", "delivered"), (2, "s", "delivered"),
                                (2, "s", "duplicate"), (3, "s", "delivered")]
    words = " ".join(line.strip() for line in said(recording))
    assert "copies      1 of 4 messages came twice: the broker sent PUBLISH again with DUP" in words


@pytest.mark.parametrize("content", [b"0", b"1"], ids=["different", "equal"])
def test_a_client_that_publishes_after_pubrel_breaks_qos_2(content: bytes, tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    send(publisher, [subscriber], [content, b"1"], qos=2)
    publisher.up(publish("t", b"1", qos=2, identifier=2, dup=True))
    for kind, way in ((5, publisher.down), (6, publisher.up), (7, publisher.down)):
        way(answer(kind, 2))
    subscriber.down(publish("t", b"1", qos=2, identifier=9))
    for kind, way in ((5, subscriber.up), (6, subscriber.down), (7, subscriber.up)):
        way(answer(kind, 9))
    recording = read(wire, tmp_path)
    assert fates(recording) == [(0, "s", "delivered"), (1, "s", "delivered"), (1, "s", "duplicate")]
    words = " ".join(line.strip() for line in said(recording))
    assert ("copies      1 of 2 messages came twice, which breaks the promise of QoS 2: the client sent PUBLISH again "
            "after PUBREL (MQTT 3.1.1 §4.3.3)") in words
    assert "came twice" in "".join(headline.sentences(headline.told(recording).numbers.flows[0]))


def test_retained_copies_are_neither_duplicates_nor_guesses(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    for _ in range(3):
        publisher.up(publish("t", EQUAL, retain=True))
        subscriber.down(publish("t", EQUAL))
        wire.wait(1_000)
    late = Client(wire, "10.0.0.4", 40_002)
    late.connect("late")
    late.subscribe("t")
    late.down(publish("t", EQUAL, retain=True))
    publisher.up(publish("t", EQUAL, retain=True))
    subscriber.down(publish("t", EQUAL))
    late.down(publish("t", EQUAL))
    recording = read(wire, tmp_path)
    assert fates(recording) == [(0, "s", "delivered"), (1, "s", "delivered"), (2, "s", "delivered"),
                                (2, "late", "retained"), (3, "s", "delivered"), (3, "late", "delivered")]
    assert latencies_ms(recording) == [1.0] * 4 + [2.0]
    assert not headline.told(recording).untold


def two_captures(tmp_path: Path, contents: list[bytes], snaps: tuple[int, int]) -> Recording:
    """The publisher's and the subscriber's, frames cut to two lengths; the sixth message is lost."""
    wire = Wire()
    publisher, subscriber = pair(wire)
    send(publisher, [subscriber], contents, lost=[5])
    files = []
    for name, address, snap in zip("ps", ("10.0.0.2", "10.0.0.3"), snaps, strict=True):
        part = Wire()
        part.frames = [frame for frame in wire.frames if IPv4Address(address).packed in frame[1][12:20]]
        files.append(part.save(tmp_path / f"{name}.pcap", snap=snap))
    outcome = import_evidence("capture", files, tmp_path / "recording", lambda line: None)
    return Recording.open(outcome.directory)


@pytest.mark.parametrize("snaps", [(1 << 18, 260), (260, 1 << 18), (260, 300), (260, 260)])
def test_a_cut_payload_is_the_only_message_that_it_fits(snaps: tuple[int, int], tmp_path: Path) -> None:
    recording = two_captures(tmp_path, numbered_at(100, 12, 600), snaps)
    delivered = recording.messages.filter(fate="delivered")
    assert delivered["sequence"].to_list() == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11]
    assert delivered["latency_ns"].unique().to_list() == [MS]
    assert recording.messages.filter(fate="foreign").is_empty()


@pytest.mark.parametrize("snaps", [(1 << 18, 260), (260, 1 << 18), (260, 260)])
def test_a_cut_payload_that_fits_several_messages_is_none_of_them(snaps: tuple[int, int], tmp_path: Path) -> None:
    recording = two_captures(tmp_path, numbered_at(400, 12, 600), snaps)
    latencies = recording.messages.filter(fate="delivered")["latency_ns"].drop_nulls()
    # The first message is published when no other one is known that it may be.
    assert set(latencies) <= {MS} and len(latencies) <= 1
    assert recording.messages.filter(fate="lost").is_empty()
    assert verdict(recording)[0] != "valid"


class Datagrams:
    """A client of MQTT-SN: its datagrams in both directions."""

    def __init__(self, wire: Wire, address: str, port: int) -> None:
        self._wire, self._address, self._port = wire, IPv4Address(address), port

    def up(self, kind: int, body: bytes) -> None:
        self._put(self._address, self._port, self._wire.broker, 10_000, kind, body)

    def down(self, kind: int, body: bytes) -> None:
        self._put(self._wire.broker, 10_000, self._address, self._port, kind, body)

    def open(self, name: bytes) -> None:
        """CONNECT with a clean session, and CONNACK."""
        self.up(0x04, b"\x04\x01\0\x3c" + name)
        self.down(0x05, b"\0")

    def _put(self, source: IPv4Address, source_port: int, to: IPv4Address, port: int, kind: int, body: bytes) -> None:
        message = bytes([2 + len(body), kind]) + body
        datagram = struct.pack(">HHHH", source_port, port, 8 + len(message), 0) + message
        self._wire.put(struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(datagram), 0, 0x4000, 64, 17, 0, source.packed,
                                   to.packed) + datagram)


@pytest.mark.parametrize("content", [EQUAL, b""], ids=["equal", "different"])
def test_messages_of_mqtt_sn_are_traced_alike(content: bytes, tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = Datagrams(wire, "10.0.0.2", 40_000), Datagrams(wire, "10.0.0.3", 40_001)
    publisher.open(b"p")
    subscriber.open(b"s")
    subscriber.up(0x12, b"\x02\0\1ab")
    subscriber.down(0x13, b"\0\0\0\0\1\0")
    for number in range(12):
        payload = content or b"x" * 120 + b"%03d" % number
        publisher.up(0x0C, b"\x02ab\0\0" + payload)
        if number != 5:
            subscriber.down(0x0C, b"\x02ab\0\0" + payload)
        wire.wait(1_000)
    recording = read(wire, tmp_path, "--gateway-port", "10000")
    counts = recording.messages["fate"].value_counts().sort("fate").rows()
    if content:
        assert counts == [("delivered", 11), ("unknown", 1)]
        assert latencies_ms(recording) == [1.0] * 5 + [None] * 6
    else:
        assert counts == [("delivered", 11), ("lost", 1)]
        assert latencies_ms(recording) == [1.0] * 11


def test_a_session_that_begins_anew_owes_nothing_of_before(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    send(publisher, [subscriber], [EQUAL] * 3, lost=[2])
    subscriber.up(b"", RST | ACK)
    again = Client(wire, "10.0.0.3", 40_009)
    again.connect("s")
    again.subscribe("t")
    send(publisher, [again], [EQUAL] * 3)
    recording = read(wire, tmp_path)
    assert latencies_ms(recording) == [1.0] * 5
    assert not headline.told(recording).untold


def test_copies_are_named_without_a_reason_where_there_are_no_packets(tmp_path: Path) -> None:
    table = tmp_path / "made.csv"
    lines_of = ["message,publisher,subscriber,qos,sent,received"]
    lines_of += [f"{number},p,s,1,{number},{number + took}"
                 for number in range(5) for took in (0.1, 0.3)[:1 + number % 2]]
    table.write_text("\n".join(lines_of) + "\n")
    outcome = import_evidence("csv", [table], tmp_path / "recording", lambda line: None)
    recording = Recording.open(outcome.directory)
    assert "copies      2 of 5 messages came twice" in said(recording)
    [flow] = headline.document(recording)["flows"]
    assert flow["copies"] == {"messages": 2, "extra": 2, "why": (), "at_qos_2": False} and flow["untold"] == 0
