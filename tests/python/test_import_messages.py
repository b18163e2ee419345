"""Who published, received and lost what, read from captures made for the purpose."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from captures import ACK, FIN, MS, RST, Client, Wire, answer, disconnect, pair, publish
from mqttlab import metrics
from mqttlab.imports import Evidence, import_evidence
from mqttlab.recording import Recording


def read(wire: Wire, tmp_path: Path, *options: str) -> Recording:
    tmp_path.mkdir(exist_ok=True)
    file = wire.save(tmp_path / "made.pcap")
    outcome = import_evidence("capture", [file], tmp_path / "recording", lambda line: None, options=options)
    return Recording.open(outcome.directory)


def fates(recording: Recording) -> list[tuple[int, int | None, str]]:
    """Sequence, receiver's name and fate of each message, in order."""
    names = dict(enumerate(client["name"] for client in recording.layout["clients"]))
    rows = recording.messages.sort("sequence", "subscriber", "fate").select("sequence", "subscriber", "fate").rows()
    return [(sequence, names.get(subscriber), fate) for sequence, subscriber, fate in rows]


def test_latency_counts_from_the_first_byte_to_the_broker_to_the_last_one_from_it(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    whole = publish("t", b"x" * 50)
    publisher.up(whole[:20])
    publisher.up(whole[20:])
    wire.wait(5)
    subscriber.down(whole[:30])
    subscriber.down(whole[30:])
    recording = read(wire, tmp_path)
    # Two segments of a millisecond, five milliseconds, and the first of two segments.
    assert recording.messages["latency_ns"].to_list() == [8 * MS]
    carried = recording.control_packets.filter(kind="PUBLISH")
    assert carried["segments"].to_list() == [2, 2]
    assert carried["publisher"].to_list() == [0, 0]


def test_what_does_not_arrive_is_missed_by_those_who_subscribe_and_by_nobody_else(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire, ("t", "forbidden/#"))
    other = Client(wire, "10.0.0.4", 40_002)
    other.connect("other")
    other.subscribe("t", "forbidden/a", codes=b"\0\x80")
    publisher.up(publish("t", b"0"))
    subscriber.down(publish("t", b"0"))
    publisher.up(publish("forbidden/a", b"1"))
    other.unsubscribe("t")
    publisher.up(publish("t", b"2"))
    subscriber.down(publish("t", b"2"))
    publisher.up(publish("nobody", b"3"))
    recording = read(wire, tmp_path)
    assert fates(recording) == [
        (0, "s", "delivered"), (0, "other", "lost"), (1, "s", "under_way"), (2, "s", "delivered"),
        (3, None, "no_receiver")]
    refused = recording.events.filter(kind="refused")["detail"].to_list()
    assert refused == ["SUBSCRIBE forbidden/a: code 0x80 (failure)"]


def test_equal_payloads_are_matched_by_order_and_a_late_subscriber_gets_only_later_ones(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    message = publish("t", b"same")
    publisher.up(message)
    publisher.up(message)
    subscriber.down(message + message)
    late = Client(wire, "10.0.0.4", 40_002)
    late.connect("late")
    late.subscribe("#")
    publisher.up(message)
    subscriber.down(message)
    late.down(message)
    recording = read(wire, tmp_path)
    assert fates(recording) == [
        (0, "s", "delivered"), (1, "s", "delivered"), (2, "s", "delivered"), (2, "late", "delivered")]
    assert any("by order" in warning for warning in recording.run["warnings"])


def test_a_retained_message_comes_from_the_store(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire, ("elsewhere",))
    publisher.up(publish("t", b"kept", retain=True))
    subscriber.subscribe("t")
    subscriber.down(publish("t", b"kept", retain=True))
    wire.wait(10_000)
    publisher.up(publish("t", b"new", retain=True))
    subscriber.down(publish("t", b"new"))
    late = Client(wire, "10.0.0.4", 40_002)
    late.connect("late")
    late.subscribe("t")
    late.down(publish("t", b"new", retain=True))
    recording = read(wire, tmp_path)
    assert fates(recording) == [(0, "s", "retained"), (1, "s", "delivered"), (1, "late", "retained")]
    whole = metrics.application(recording, ()).row(0, named=True)
    counts = ("messages_offered", "deliveries_expected", "messages_delivered", "duplicates", "retained_copies")
    assert [whole[name] for name in counts] == [2, 1, 1, 0, 2]
    assert whole["latency_ms_max"] == 1 and whole["retained_age_s_mean"] < 0.1


def test_a_repetition_with_dup_is_the_same_message_and_its_second_delivery_a_duplicate(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    publisher.up(publish("t", b"m", qos=1))
    publisher.up(publish("t", b"m", qos=1, dup=True))
    publisher.down(answer(4))
    subscriber.down(publish("t", b"m", qos=1, identifier=9))
    subscriber.down(publish("t", b"m", qos=1, identifier=9, dup=True))
    subscriber.up(answer(4, 9))
    recording = read(wire, tmp_path)
    assert fates(recording) == [(0, "s", "delivered"), (0, "s", "duplicate")]
    assert recording.messages["acknowledged_ns"].null_count() == 0


def at_qos_2(tmp_path: Path, *options: str) -> pl.DataFrame:
    tmp_path.mkdir()
    wire = Wire()
    publisher, subscriber = pair(wire)
    publisher.up(publish("t", b"m", qos=2))
    publisher.down(answer(5))
    publisher.up(answer(6))
    publisher.down(answer(7))
    subscriber.down(publish("t", b"m", qos=2))
    subscriber.up(answer(5))
    wire.wait(30)
    subscriber.down(answer(6))
    subscriber.up(answer(7))
    return read(wire, tmp_path, *options).messages


def test_at_qos_2_delivery_is_at_the_release_unless_it_is_wanted_at_the_publish(tmp_path: Path) -> None:
    released = at_qos_2(tmp_path / "release")
    published = at_qos_2(tmp_path / "publish", "--deliver-on", "publish")
    assert (released["latency_ns"] - published["latency_ns"]).to_list() == [32 * MS]
    # PUBLISH to PUBCOMP.
    assert (released["acknowledged_ns"] - released["sent_ns"]).to_list() == [3 * MS]


def test_connections_that_are_lost_refused_and_closed_are_told_apart(tmp_path: Path) -> None:
    wire = Wire()
    first = Client(wire, "10.0.0.2", 40_000)
    first.connect("p")
    first.up(publish("t", b"m"))
    first.down(b"", RST | ACK)
    again = Client(wire, "10.0.0.2", 40_001)
    again.connect("p")
    again.up(disconnect(), FIN | ACK)
    stranger = Client(wire, "10.0.0.9", 40_002)
    stranger.connect("stranger", code=5)
    stranger.down(b"", FIN | ACK)
    recording = read(wire, tmp_path)
    told = recording.events.select("kind", "client").rows()
    assert told == [
        ("connect", 0), ("connack", 0), ("disconnect", 0), ("reconnect", 0), ("connect", 0), ("connack", 0),
        ("close", 0), ("connect", 1), ("refused", 1)]
    details = recording.events.filter(pl.col("kind").is_in(["disconnect", "refused"]))["detail"].to_list()
    assert details == ["reset by the broker without a DISCONNECT", "CONNECT: code 0x05 (not authorised)"]
    # From the SYN to the CONNACK.
    assert recording.events.filter(kind="connack")["took_ns"].to_list() == [4 * MS, 4 * MS]
    assert metrics.application(recording)["disconnects"].to_list() == [1]


def test_a_subscription_ends_with_a_clean_session_and_outlives_a_persistent_one(tmp_path: Path) -> None:
    wire = Wire()
    publisher, clean = pair(wire)
    persistent = Client(wire, "10.0.0.4", 40_002)
    persistent.connect("persistent", clean=False)
    persistent.subscribe("t")
    for client in (clean, persistent):
        client.up(disconnect(), FIN | ACK)
    publisher.up(publish("t", b"m", qos=1))
    assert fates(read(wire, tmp_path)) == [(0, "persistent", "under_way")]


def mid_stream(tmp_path: Path, *options: str) -> Recording:
    tmp_path.mkdir()
    wire = Wire(port=8884)
    publisher, subscriber = Client(wire, "10.0.0.2", 40_000), Client(wire, "10.0.0.3", 40_001)
    for number in range(3):
        message = publish("plant/hall/temperature", b"%04d" % number)
        publisher.up(message)
        subscriber.down(message)
    return read(wire, tmp_path, *options)


def test_a_capture_that_begins_in_mid_stream_needs_the_broker_s_port(tmp_path: Path) -> None:
    blind = mid_stream(tmp_path / "blind")
    assert blind.control_packets.is_empty()
    assert "No MQTT was found on port 1883" in blind.run["validity"]["reasons"][0]
    told = mid_stream(tmp_path / "told", "--broker-port", "8884")
    assert told.clients["name"].to_list() == ["10.0.0.2:40000", "10.0.0.3:40001"]
    assert told.messages["fate"].to_list() == ["delivered"] * 3
    [server] = told.plan["servers"]
    assert server["kind"] == "captured at 10.0.0.1:8884"
    assert server["endpoints"] == [{"transport": "tcp", "port": 8884}]


def test_nothing_is_expected_of_a_connection_of_which_nothing_is_known_and_heard(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = Client(wire, "10.0.0.2", 40_000), Client(wire, "10.0.0.3", 40_001)
    for number, pause_ms in enumerate((0, 1_000, 200_000, 1_000)):
        wire.wait(pause_ms)
        message = publish("plant/hall/temperature", b"%04d" % number)
        publisher.up(message)
        publisher.down(b"")
        if number == 0:
            subscriber.down(message)
            subscriber.up(b"")
    assert fates(read(wire, tmp_path)) == [
        # It is taken for a subscriber from its first message on, of which nothing is certain.
        (0, "10.0.0.3:40001", "delivered"), (1, "10.0.0.3:40001", "unknown"), (2, None, "unknown"),
        # Nor does anybody know who else had subscribed before the capture began.
        (3, None, "unknown")]


def test_a_connection_that_nobody_answers_is_noted(tmp_path: Path) -> None:
    wire = Wire()
    pair(wire)
    lonely = Client(wire, "10.0.0.7", 40_007)
    for _ in range(3):
        lonely.up(b"", 2)
    recording = read(wire, tmp_path)
    assert recording.events.filter(kind="note")["detail"].to_list() == [
        "10.0.0.7:40007 could not open a connection to 10.0.0.1:1883: 3 SYN and no handshake"]


def test_the_zone_of_a_log_moves_its_start(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("2018-05-29,23:20:20:163,sent,t,1,10,0\n", encoding="utf-8")
    started = []
    evidence: Evidence = "log"
    for name, offset in (("utc", "Z"), ("summer", "+02:00")):
        outcome = import_evidence(evidence, [log], tmp_path / name, lambda line: None, options=["--utc-offset", offset])
        started.append(Recording.open(outcome.directory).run["started_at"])
    assert started == ["2018-05-29T23:20:20.163000Z", "2018-05-29T21:20:20.163000Z"]
