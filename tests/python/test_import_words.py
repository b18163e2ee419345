"""What clients and brokers say in their packets is used: bridges, wills, limits, expiry, releases, prefixes."""

from __future__ import annotations

from pathlib import Path

import pytest

from captures import ACK, FIN, Client, LastWill, Wire, answer, disconnect, publish, publish_5
from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.report.text import verdict
from test_import_messages import read

MAXIMUM_100 = b"\x27\0\0\0\x64"


def rows(recording: Recording) -> list[tuple[int | None, str | None, str, str | None]]:
    """Sequence, receiver's name, fate and cause of each row of messages, in order."""
    names = dict(enumerate(client["name"] for client in recording.layout["clients"]))
    table = recording.messages.sort("publisher", "sequence", "subscriber", "fate")
    return [(sequence, names.get(subscriber), fate, cause) for sequence, subscriber, fate, cause
            in table.select("sequence", "subscriber", "fate", "cause").rows()]


def words(recording: Recording) -> str:
    """All that the verdict says."""
    word, sentences = verdict(recording)
    return " ".join([word, *sentences])


def client(wire: Wire, number: int) -> Client:
    return Client(wire, f"10.0.0.{number + 2}", 40_000 + number)


@pytest.mark.parametrize("qos", [0, 1])
def test_a_bridge_does_not_get_its_own_messages_back_and_its_live_messages_keep_retain(
        qos: int, tmp_path: Path) -> None:
    wire = Wire()
    bridge, reader = client(wire, 0), client(wire, 1)
    bridge.connect("site", bridge=True)
    bridge.subscribe("site/#")
    reader.connect("reader")
    reader.subscribe("site/#")
    bridge.up(publish("site/up", b"up", qos=qos))
    reader.down(publish("site/up", b"up", qos=qos))
    reader.up(publish("site/cmd", b"cmd", qos=qos, retain=True))
    bridge.down(publish("site/cmd", b"cmd", qos=qos, retain=True))
    reader.down(publish("site/cmd", b"cmd", qos=qos))
    recording = read(wire, tmp_path)
    assert rows(recording) == [(0, "reader", "delivered", None), (0, "site", "delivered", None),
                               (0, "reader", "delivered", None)]
    versions = {one["client"]: one["mqtt_version"] for one in recording.run["details"]["connections"]}
    assert versions == {"site": "3.1.1, bridge", "reader": "3.1.1"}


def test_a_client_of_mqtt_3_that_is_no_bridge_gets_its_own_messages(tmp_path: Path) -> None:
    wire = Wire()
    own = client(wire, 0)
    own.connect("own")
    own.subscribe("site/#")
    own.up(publish("site/up", b"up", qos=1))
    own.down(answer(4))
    assert rows(read(wire, tmp_path)) == [(0, "own", "under_way", None)]


def watched(wire: Wire, will: LastWill, *, level: int = 4) -> tuple[Client, Client]:
    """A watcher of everything, and a device with a will that has published once."""
    watcher, device = client(wire, 0), client(wire, 1)
    watcher.connect("watcher")
    watcher.subscribe("#")
    device.connect("dev", will=will, level=level, keep_alive_s=10)
    device.up(publish_5("data", b"first") if level == 5 else publish("data", b"first"))
    watcher.down(publish("data", b"first"))
    return watcher, device


def test_a_will_is_its_client_s_and_no_message(tmp_path: Path) -> None:
    wire = Wire()
    watcher, device = watched(wire, LastWill("status/dev", b"offline", retain=True))
    wire.wait(15_000)
    device.down(b"", FIN | ACK)
    watcher.down(publish("status/dev", b"offline"))
    late = client(wire, 2)
    late.connect("late")
    late.subscribe("status/#")
    late.down(publish("status/dev", b"offline", retain=True))
    recording = read(wire, tmp_path)
    assert rows(recording) == [(None, "watcher", "will", None), (None, "late", "will", None),
                               (0, "watcher", "delivered", None)]
    assert metrics.foreign(recording) == 0 and "foreign" not in words(recording)
    said = words(recording)
    assert "The will of dev (`status/dev`) came to 1 subscriber 15.0 s after its last packet (1.50 keep-alives" in said
    table = metrics.application(recording, ("publisher_group", "subscriber_group", "qos"))
    assert table["messages_sent"].to_list() == [1]


def test_a_will_after_a_goodbye_is_foreign_and_with_reason_4_it_is_one(tmp_path: Path) -> None:
    for reason, fate in ((0, "foreign"), (4, "will")):
        wire = Wire()
        watcher, device = watched(wire, LastWill("status/dev", b"offline"), level=5)
        device.up(disconnect(reason))
        device.up(b"", FIN | ACK)
        watcher.down(publish("status/dev", b"offline"))
        place = tmp_path / fate
        place.mkdir()
        assert [row[2] for row in rows(read(wire, place))] == [fate, "delivered"], fate


def test_what_the_client_publishes_itself_with_the_words_of_its_will_is_a_message(tmp_path: Path) -> None:
    wire = Wire()
    watcher, device = watched(wire, LastWill("status/dev", b"offline"))
    device.up(publish("status/dev", b"offline"))
    watcher.down(publish("status/dev", b"offline"))
    device.up(b"", FIN | ACK)
    watcher.down(publish("status/dev", b"offline"))
    assert [row[::2] for row in rows(read(wire, tmp_path))] == [(None, "will"), (0, "delivered"), (1, "delivered")]


def test_a_will_that_overtakes_the_birth_of_the_next_connection_is_said(tmp_path: Path) -> None:
    wire = Wire()
    watcher, device = watched(wire, LastWill("status/dev", b"offline", retain=True))
    wire.wait(5000)
    again = client(wire, 2)
    again.connect("dev", will=LastWill("status/dev", b"offline", retain=True))
    again.up(publish("status/dev", b"online", retain=True))
    watcher.down(publish("status/dev", b"online"))
    device.down(b"", FIN | ACK)
    watcher.down(publish("status/dev", b"offline"))
    said = words(read(wire, tmp_path))
    assert "came 2.0 ms behind its message to `status/dev` on the new one, while it was connected" in said
    assert "it stays the last retained message of the topic" in said


def test_a_packet_that_is_larger_than_its_receiver_takes_is_withheld(tmp_path: Path) -> None:
    wire = Wire()
    writer, small, large = client(wire, 0), client(wire, 1), client(wire, 2)
    writer.connect("writer")
    small.connect("small", level=5, properties=MAXIMUM_100)
    large.connect("large")
    small.subscribe("t")
    large.subscribe("t")
    for number, size in enumerate((94, 95, 20)):
        content = bytes([65 + number]) * size
        writer.up(publish("t", content, qos=1, identifier=number + 1))
        writer.down(answer(4, number + 1))
        large.down(publish("t", content, qos=1, identifier=number + 1))
        if number != 1:
            small.down(publish_5("t", content, qos=0))
    assert rows(read(wire, tmp_path)) == [
        (0, "small", "delivered", None), (0, "large", "delivered", None), (1, "small", "lost", "too_large"),
        (1, "large", "delivered", None), (2, "small", "delivered", None), (2, "large", "delivered", None)]


def test_a_packet_that_is_larger_than_the_broker_takes_reaches_no_one(tmp_path: Path) -> None:
    wire = Wire()
    writer, reader = client(wire, 0), client(wire, 1)
    reader.connect("reader")
    reader.subscribe("t")
    writer.connect("writer", level=5, terms=MAXIMUM_100)
    writer.up(publish_5("t", b"x" * 200, qos=1))
    writer.down(disconnect(0x95))
    writer.down(b"", FIN | ACK)
    assert rows(read(wire, tmp_path)) == [(0, "reader", "lost", "too_large")]


@pytest.mark.parametrize(("away_s", "returns", "expected"), [
    (6, True, ("lost", "expired")), (4, True, ("under_way", None)), (6, False, ("lost", "expired")),
    (4, False, ("under_way", None))])
def test_a_message_expires_while_its_receiver_is_away(
        away_s: int, returns: bool, expected: tuple[str, str | None], tmp_path: Path) -> None:
    wire = Wire()
    writer, reader = client(wire, 0), client(wire, 1)
    writer.connect("writer", level=5)
    reader.connect("reader", level=5, clean=False, expiry_s=3600)
    reader.subscribe("t")
    reader.up(disconnect())
    reader.up(b"", FIN | ACK)
    writer.up(publish_5("t", b"old", qos=1, expiry_s=5))
    writer.down(answer(4))
    wire.wait(1000 * away_s)
    back = client(wire, 2)
    if returns:
        back.connect("reader", level=5, clean=False, expiry_s=3600, present=True)
    else:
        back.connect("another")
    assert rows(read(wire, tmp_path)) == [(0, "reader", *expected)]


def test_a_session_that_ends_before_the_message_expires_is_the_cause(tmp_path: Path) -> None:
    wire = Wire()
    writer, reader = client(wire, 0), client(wire, 1)
    writer.connect("writer", level=5)
    reader.connect("reader", level=5, clean=False, expiry_s=2)
    reader.subscribe("t")
    reader.up(b"", FIN | ACK)
    writer.up(publish_5("t", b"old", qos=1, expiry_s=5))
    writer.down(answer(4))
    wire.wait(9000)
    writer.up(b"\xc0\0")
    assert rows(read(wire, tmp_path)) == [(0, "reader", "lost", "session_ended")]


@pytest.mark.parametrize(("kept", "expected"), [(False, ("lost", "not_released")), (True, ("under_way", None))])
def test_what_its_publisher_never_releases_is_lost_with_its_session(
        kept: bool, expected: tuple[str, str | None], tmp_path: Path) -> None:
    wire = Wire()
    writer, reader = client(wire, 0), client(wire, 1)
    reader.connect("reader")
    reader.subscribe("t")
    writer.connect("writer", clean=not kept)
    writer.up(publish("t", b"x", qos=2))
    writer.down(answer(5))
    writer.up(disconnect())
    assert rows(read(wire, tmp_path)) == [(0, "reader", *expected)]


def test_what_a_broker_passes_on_before_its_release_is_delivered_and_its_loss_is_of_another_cause(
        tmp_path: Path) -> None:
    wire = Wire()
    writer, reader = client(wire, 0), client(wire, 1)
    reader.connect("reader")
    reader.subscribe("t")
    writer.connect("writer")
    for number, content in enumerate((b"x", b"y"), 1):
        writer.up(publish("t", content, qos=2, identifier=number))
        writer.down(answer(5, number))
    reader.down(publish("t", b"x", qos=1))
    writer.up(disconnect())
    assert rows(read(wire, tmp_path)) == [(0, "reader", "delivered", None), (1, "reader", "under_way", None)]


def test_what_a_broker_never_releases_to_a_receiver_is_lost_with_its_session(tmp_path: Path) -> None:
    wire = Wire()
    writer, reader = client(wire, 0), client(wire, 1)
    reader.connect("reader")
    reader.subscribe("t")
    writer.connect("writer")
    writer.up(publish("t", b"x", qos=1))
    writer.down(answer(4))
    reader.down(publish("t", b"x", qos=2))
    reader.up(answer(5))
    reader.up(b"", FIN | ACK)
    assert rows(read(wire, tmp_path)) == [(0, "reader", "lost", "not_released")]


@pytest.mark.parametrize("prefix", ["$queue/", "$share/g/", "$oshare/g/", "$queue/name/"])
def test_of_a_shared_subscription_one_delivery_is_expected_of_each_message(prefix: str, tmp_path: Path) -> None:
    wire = Wire()
    writer, *workers = (client(wire, number) for number in range(3))
    for number, worker in enumerate(workers):
        worker.connect(f"worker-{number}")
        worker.subscribe(f"{prefix}jobs/#")
    writer.connect("writer")
    for number in range(4):
        content = f"job {number}".encode()
        writer.up(publish("jobs/a", content, qos=1, identifier=number + 1))
        writer.down(answer(4, number + 1))
        if number != 3:
            workers[number % 2].down(publish("jobs/a", content, qos=1, identifier=number + 1))
    assert [row[2] for row in rows(read(wire, tmp_path))] == ["delivered", "delivered", "delivered", "under_way"]


def test_a_broker_that_does_not_know_a_prefix_takes_it_for_a_level(tmp_path: Path) -> None:
    wire = Wire()
    writer, worker = client(wire, 0), client(wire, 1)
    worker.connect("worker")
    worker.subscribe("$queue/jobs/#")
    writer.connect("writer")
    writer.up(publish("jobs/a", b"one"))
    writer.up(publish("$queue/jobs/a", b"two"))
    worker.down(publish("$queue/jobs/a", b"two"))
    recording = read(wire, tmp_path)
    assert rows(recording) == [(0, None, "no_receiver", None), (1, "worker", "delivered", None)]
    assert "no delivery shows that this broker knows `$queue/`" in words(recording)


def delayed(wire: Wire, *, delivered: bool) -> None:
    writer, reader = client(wire, 0), client(wire, 1)
    reader.connect("reader")
    reader.subscribe("t/#")
    writer.connect("writer")
    writer.up(publish("$delayed/5/t/a", b"one", qos=1))
    writer.down(answer(4))
    wire.wait(4999)
    if delivered:
        reader.down(publish("t/a", b"one", qos=1))


def test_a_delayed_message_is_delivered_under_the_rest_of_its_topic(tmp_path: Path) -> None:
    wire = Wire()
    delayed(wire, delivered=True)
    recording = read(wire, tmp_path)
    assert rows(recording) == [(0, "reader", "delivered", None)]
    assert recording.messages["latency_ns"].to_list() == [5_001_000_000]
    assert "their latencies contain the time that the topic asks for, at most 1.0 ms behind it" in words(recording)


def test_without_a_delivery_a_delayed_topic_is_one_like_any_other(tmp_path: Path) -> None:
    wire = Wire()
    delayed(wire, delivered=False)
    recording = read(wire, tmp_path)
    assert rows(recording) == [(0, None, "no_receiver", None)]
    assert "no delivery shows that this broker does" in words(recording)


def test_foreign_deliveries_with_the_content_of_messages_without_a_receiver_are_said_and_not_counted(
        tmp_path: Path) -> None:
    wire = Wire()
    writer, reader = client(wire, 0), client(wire, 1)
    reader.connect("reader")
    reader.subscribe("plant/#", "$SYS/#")
    writer.connect("writer")
    for number in range(3):
        content = f"value {number}".encode()
        writer.up(publish("t/a", content))
        reader.down(publish("plant/a/t/a", content))
    reader.down(publish("$SYS/broker/uptime", b"12 seconds"))
    recording = read(wire, tmp_path)
    assert [row[2] for row in rows(recording)] == ["foreign"] * 4 + ["no_receiver"] * 3
    said = words(recording)
    assert ("3 foreign deliveries to `plant/a/t/a` have the content of 3 messages to `t/a` that no client received"
            in said)
    assert "1 foreign deliveries are messages of the broker's own" in said


def test_what_waits_behind_a_full_window_until_the_session_ends_is_lost_by_that(tmp_path: Path) -> None:
    wire = Wire()
    writer, reader = client(wire, 0), client(wire, 1)
    reader.connect("reader", level=5, properties=b"\x21\0\x01")
    reader.subscribe("t")
    writer.connect("writer")
    for number in (1, 2):
        writer.up(publish("t", b"%d" % number, qos=1, identifier=number))
        writer.down(answer(4, number))
        if number == 1:
            reader.down(publish_5("t", b"1", qos=1))
    reader.down(b"", FIN | ACK)
    assert rows(read(wire, tmp_path)) == [(0, "reader", "delivered", None), (1, "reader", "lost", "window_full")]
