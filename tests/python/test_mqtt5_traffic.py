"""What MQTT 5 adds to traffic: live beside simulated, with equal counts and equal bytes on the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import mqttlab
from live import able, in_both
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse_values

SIZES = ["fixed_header_bytes", "topic_bytes", "packet_id_bytes", "property_bytes", "payload_bytes"]


def scenario(publish: Any, subscribe: Any = "t/#", *, mqtt: Any = None, **changes: Any) -> dict[str, Any]:
    """A publisher and a subscriber, 5 ms from their broker."""
    line = {"delay": "5 ms"}
    subscriber = {"name": "subscriber", "host": "clients", "nagle": False,
                  "subscribe": [{"filter": subscribe, "qos": 1}]}
    publisher = {"name": "publisher", "host": "clients", "nagle": False, "publish": publish}
    return {
        "name": "mqtt5", "phases": {"duration": "2 s", "cool_down": "5 s"}, "mqtt": {"version": "5", **(mqtt or {})},
        "networks": [{"between": ["clients", "broker"], "up": line, "down": line}],
        "groups": [publisher, subscriber], **changes,
    }


def publish(**changes: Any) -> dict[str, Any]:
    """Three topics, one after another."""
    return {"topic": "t/{topic}", "topics": 3, "qos": 1, "payload": "50 B", "interval": "100 ms",
            "start_phase": "synchronised", "messages": 12, **changes}


def simulated(values: dict[str, Any], directory: Path) -> Recording:
    perform(Job(compile_plan(parse_values({**values, "backend": "sim"})), directory), lambda event: None)
    return Recording.open(directory)


def on_the_wire(recording: Recording) -> list[tuple[Any, ...]]:
    """How many packets of which kind, topic and sizes went which way, but for keep-alives. Simulated packets are
    divided into parts where they carry a message."""
    table = recording.control_packets.with_columns(
        pl.col("kind", "direction", "topic").cast(pl.String), bytes=pl.sum_horizontal(SIZES))
    kinds = table.filter(~pl.col("kind").str.starts_with("PING"))
    parts = kinds.with_columns(pl.when(kind="PUBLISH").then(pl.col(SIZES)))
    columns = ["kind", "direction", "topic", "qos", "retain", "bytes", *SIZES]
    return parts.group_by(columns).len().sort(columns).rows()


def assert_equal_in_both(runs: dict[str, Recording]) -> None:
    """The same packets with the same bytes, and the same fates."""
    assert on_the_wire(runs["live"]) == on_the_wire(runs["sim"])
    fates = [recording.messages.select(pl.col("topic", "fate").cast(pl.String), "qos", "sequence", "subscriber",
                                       "payload_bytes").sort("subscriber", "sequence").rows()
             for recording in (runs["live"], runs["sim"])]
    assert fates[0] == fates[1] and fates[0]


ALIASED = {
    "more topics than aliases": scenario(publish(), mqtt={"topic_aliases": 2, "topic_alias_maximum": 5}),
    "a broker that takes one": scenario(
        publish(qos=0, payload="4 B"), mqtt={"topic_aliases": 9}, broker={"topic_alias_maximum": 1}),
    "a broker that takes none": scenario(
        publish(qos=2), mqtt={"topic_aliases": 9}, broker={"topic_alias_maximum": 0}),
}


@pytest.fixture(scope="module")
def aliased(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Recording]]:
    return in_both(ALIASED, tmp_path_factory.mktemp("aliased"), at_once=2)


def sizes(recording: Recording, direction: str) -> list[tuple[int, int]]:
    """Bytes of topic and properties of each PUBLISH in this direction."""
    sent = recording.control_packets.filter(
        (pl.col("kind").cast(pl.String) == "PUBLISH") & (pl.col("direction").cast(pl.String) == direction))
    return sent.sort("stream_start").select("topic_bytes", "property_bytes").rows()


@pytest.mark.live(runs=2)
@pytest.mark.skipif(able() is not None, reason=str(able()))
@pytest.mark.parametrize("name", ALIASED)
def test_aliases_stand_for_topics_with_the_same_bytes_in_both(
    name: str, aliased: dict[str, dict[str, Recording]],
) -> None:
    assert_equal_in_both(aliased[name])
    # The name, with an alias or not (1 B says that there are no properties, an alias has 3 B); then the alias alone.
    named, first, alias = (5, 1), (5, 4), (2, 4)
    expected = {"more topics than aliases": [first, first, named, *[alias, alias, named] * 3],
                "a broker that takes one": [first, named, named, *[alias, named, named] * 3],
                "a broker that takes none": [named] * 12}[name]
    for recording in aliased[name].values():
        assert sizes(recording, "to_broker") == expected
        # Mosquitto gives no aliases to subscribers, also where one would take them.
        assert sizes(recording, "to_client") == [named] * 12
        topics = recording.messages["topic"].cast(pl.String).to_list()
        assert [topics.count(f"t/{n}") for n in range(3)] == [4, 4, 4]


def test_a_new_connection_gives_its_aliases_anew(tmp_path: Path) -> None:
    # The broker dies and comes back: what is sent again is named by name again.
    values = scenario(publish(topics=1, messages=20), mqtt={"topic_aliases": 5, "clean_session": False},
                      broker={"persistence": True, "when_it_dies": "go-on"},
                      events=[{"at": "800 ms", "server": "broker", "do": "kill", "for": "200 ms"}])
    recording = simulated(values, tmp_path / "run")
    sent = recording.control_packets.filter(
        (pl.col("kind").cast(pl.String) == "PUBLISH") & (pl.col("direction").cast(pl.String) == "to_broker"))
    by_connection = [part.sort("stream_start")["topic_bytes"].to_list()
                     for _, part in sent.group_by("connection", maintain_order=True)]
    assert len(by_connection) == 2 and all(part[0] == 5 and set(part[1:]) == {2} for part in by_connection)
    assert set(recording.messages["fate"].cast(pl.String)) == {"delivered"}


def test_a_relay_passes_on_messages_whose_topic_was_an_alias(tmp_path: Path) -> None:
    values = scenario(publish(), mqtt={"topic_aliases": 5})
    values["groups"][1]["relay"] = {"suffix": "/again", "qos": 1}
    values["groups"][1]["subscribe"] = [{"filter": "t/+", "qos": 1}]
    values["groups"].append({"name": "end", "host": "clients", "subscribe": [{"filter": "t/+/again", "qos": 1}]})
    recording = simulated(values, tmp_path / "run")
    assert set(recording.messages["fate"].cast(pl.String)) == {"delivered"} and recording.messages.height == 24


@pytest.mark.parametrize("value", ["", "x" * 140, "x" * 20_000])
def test_an_exported_capture_has_aliases_that_imports_resolve(value: str, tmp_path: Path) -> None:
    properties = {"user_properties": [["n", value]]} if value else {}
    recording = simulated(scenario(publish(**properties), mqtt={"topic_aliases": 2}), tmp_path / "run")
    capture, there = tmp_path / "run.pcapng", tmp_path / "imported"
    assert mqttlab("export", tmp_path / "run", "--pcapng", capture).returncode == 0
    assert mqttlab("import", "capture", capture, "--output", there).returncode == 0
    imported = Recording.open(there)
    assert on_the_wire(imported) == on_the_wire(recording)


SAID: dict[str, Any] = {
    "user_properties": [["unit", "mbar"], ["site", "roof"], ["site", "Dach, nördlich"], ["", ""]],
    "content_type": "application/json", "payload_format": "bytes", "response_topic": "answers/{group}/{client}",
    "correlation_data": "{group}-{client}"}
# An identifier, and two bytes before each text.
SAID_BYTES = sum([5 + 8, 5 + 8, 5 + 4 + 15, 5, 3 + 16, 2, 3 + len("answers/publisher/0"), 3 + len("publisher-0")])


def with_an_older_subscriber(values: dict[str, Any]) -> dict[str, Any]:
    """Beside one of MQTT 5 another of 3.1.1, and one that repeats what it hears."""
    older = {"name": "older", "host": "clients", "nagle": False, "mqtt": {"version": "3.1.1"},
             "subscribe": [{"filter": "t/0", "qos": 0}]}
    mirror = {"name": "mirror", "host": "clients", "nagle": False, "relay": {"suffix": "/again", "qos": 0},
              "subscribe": [{"filter": "t/1", "qos": 0}]}
    end = {"name": "end", "host": "clients", "nagle": False, "subscribe": [{"filter": "+/1/again", "qos": 0}]}
    return {**values, "groups": [*values["groups"], older, mirror, end]}


WITH_PROPERTIES = {
    "all of them": with_an_older_subscriber(scenario(publish(**SAID), "t/+", mqtt={"topic_aliases": 1})),
    "more than 127 B, retained": scenario(
        publish(qos=2, retain=True, payload="9 B", user_properties=[["long", "x" * 300]] * 2)),
}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Recording]]:
    return in_both(WITH_PROPERTIES, tmp_path_factory.mktemp("said"), at_once=2)


@pytest.mark.live(runs=2)
@pytest.mark.skipif(able() is not None, reason=str(able()))
@pytest.mark.parametrize("name", WITH_PROPERTIES)
def test_properties_of_messages_are_forwarded_with_the_same_bytes_in_both(
    name: str, said: dict[str, dict[str, Recording]],
) -> None:
    assert_equal_in_both(said[name])


def test_properties_go_to_subscribers_of_mqtt_5_and_not_with_a_relays_copy(tmp_path: Path) -> None:
    recording = simulated(WITH_PROPERTIES["all of them"], tmp_path / "run")
    sent = recording.control_packets.with_columns(pl.col("kind", "direction", "topic").cast(pl.String))
    found = sent.filter(kind="PUBLISH").group_by("direction", "topic", "client").agg(
        pl.col("property_bytes").unique()).sort("direction", "topic", "client").rows()
    alias, whole = SAID_BYTES + 3 + 1, SAID_BYTES + 1
    assert found == [
        ("to_broker", "t/0", 0, [alias]), ("to_broker", "t/1", 0, [whole]), ("to_broker", "t/1/again", 3, [1]),
        ("to_broker", "t/2", 0, [whole]), ("to_client", "t/0", 1, [whole]), ("to_client", "t/0", 2, [0]),
        ("to_client", "t/1", 1, [whole]), ("to_client", "t/1", 3, [whole]), ("to_client", "t/1/again", 4, [1]),
        ("to_client", "t/2", 1, [whole])]
    assert set(recording.messages["fate"].cast(pl.String)) == {"delivered"}


def pool(qos: int) -> dict[str, Any]:
    """Three members of a shared subscription, and one who receives everything."""
    values = scenario(publish(topics=1, qos=qos, messages=30, interval="40 ms"))
    values["groups"][1] |= {"name": "pool", "count": 3, "subscribe": [{"filter": "$share/pool/t/+", "qos": qos}]}
    values["groups"].append({"name": "all", "host": "clients", "nagle": False,
                             "subscribe": [{"filter": "t/0", "qos": qos}]})
    return values


@pytest.mark.live(runs=2)
@pytest.mark.skipif(able() is not None, reason=str(able()))
def test_one_member_of_a_shared_subscription_receives_each_message_in_turn(tmp_path: Path) -> None:
    for runs in in_both({f"qos {qos}": pool(qos) for qos in (0, 2)}, tmp_path, at_once=2).values():
        for recording in runs.values():
            messages = recording.messages.with_columns(pl.col("fate").cast(pl.String)).sort("received_ns")
            shared = messages.filter(pl.col("subscriber") < 4)
            assert messages.height == 60 and set(messages["fate"]) == {"delivered"}
            assert sorted(shared["sequence"]) == list(range(30))
            # In turn: of three messages in a row each member has one.
            turns = [sorted(part) for part in shared.sort("sequence")["subscriber"].reshape((10, 3)).to_list()]
            assert turns == [[1, 2, 3]] * 10


def away(seconds: float) -> dict[str, Any]:
    """A subscriber that is away while messages of two kinds are published: good for 1 s, and for a minute."""
    return {
        **scenario([publish(topics=1, topic="t/a", messages=8, expiry="1 s"),
                    publish(topics=1, topic="t/b", messages=8, expiry="60 s")],
                   mqtt={"clean_session": False, "session_expiry": "60 s"},
                   events=[{"at": "50 ms", "group": "subscriber", "do": "disconnect", "for": f"{seconds} s"}]),
        "phases": {"duration": f"{seconds + 1} s", "cool_down": "5 s"},
    }


@pytest.mark.live(runs=1)
@pytest.mark.skipif(able() is not None, reason=str(able()))
def test_what_waits_for_longer_than_its_expiry_is_not_sent_in_both(tmp_path: Path) -> None:
    runs = in_both({"a subscriber that is away": away(4.5)}, tmp_path, at_once=1)["a subscriber that is away"]
    assert on_the_wire(runs["live"]) == on_the_wire(runs["sim"])
    # The first goes out before the subscriber leaves. Mosquitto does not say that it drops the others: live only those
    # are lost for certain that had waited for 2 s more.
    certain = {"sim": 7, "live": 3}
    for backend, recording in runs.items():
        fates = recording.messages.select(pl.col("topic", "fate", "cause").cast(pl.String)).rows()
        assert fates.count(("t/a", "delivered", None)) == 1 and fates.count(("t/b", "delivered", None)) == 8
        expired = fates.count(("t/a", "lost", "expired"))
        assert expired >= certain[backend] and expired + fates.count(("t/a", "under_way", None)) == 7


@pytest.mark.live(runs=1)
@pytest.mark.skipif(able() is not None, reason=str(able()))
@pytest.mark.parametrize(("expiry", "copies"), [("1 s", 0), ("60 s", 1)])
def test_a_retained_copy_is_sent_until_it_expires_in_both(tmp_path: Path, expiry: str, copies: int) -> None:
    # The subscriber asks for it again 3.5 s later.
    values = scenario(publish(topics=1, topic="t/a", messages=1, retain=True, expiry=expiry),
                      phases={"duration": "5 s", "cool_down": "2 s"},
                      events=[{"at": "3500 ms", "group": "subscriber", "do": "subscribe", "filter": "t/a"}])
    for recording in in_both({"retained": values}, tmp_path, at_once=1)["retained"].values():
        assert recording.messages["fate"].cast(pl.String).to_list().count("retained") == copies
