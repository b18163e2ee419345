"""ZeroMQ simulated: sockets, proxy, readiness, high-water marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from mqttlab import metrics
from mqttlab.explanation import cause, ladder, parts_table, tell
from mqttlab.metrics import deliveries, evidence
from mqttlab.recording import Recording
from mqttlab.report import network
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from test_zeromq import scenario


def run(values: dict[str, Any], directory: Path) -> Recording:
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def with_fate(recording: Recording, fate: str) -> pl.DataFrame:
    return recording.messages.filter(pl.col("fate").cast(pl.String) == fate)


def test_every_message_reaches_every_subscriber_once(tmp_path: Path) -> None:
    recording = run(scenario(), tmp_path / "run")
    found = deliveries(recording)
    assert found.height == 3 * 20 * 2
    # Twice 5 ms, and about 1.7 ms for 200 B on each of two links of 1 Mbit/s.
    assert 10 < found["latency_ms"].min() < found["latency_ms"].max() < 30  # type: ignore[operator]
    assert with_fate(recording, "unsent").is_empty()
    packets = recording.control_packets.with_columns(pl.col("kind", "protocol").cast(pl.String))
    assert set(packets["protocol"]) == {"zeromq"}
    # Who leaves last hears that the others have.
    counted = dict(packets.filter(pl.col("kind") != "CANCEL").group_by("kind").len().rows())
    # Five connections: greeting and READY both ways; each subscriber's subscription, and one for each publisher.
    assert counted == {"GREETING": 10, "READY": 10, "SUBSCRIBE": 2 + 3, "PING": 2, "PONG": 2, "MESSAGE": 60 + 120}
    message = packets.filter(kind="MESSAGE").row(0, named=True)
    assert (message["fixed_header_bytes"], message["topic_bytes"], message["payload_bytes"]) == (4, 3, 100)


def test_publishing_begins_when_subscriptions_have_reached_the_publishers(tmp_path: Path) -> None:
    # Publishers are there 30 s before the first subscriber, and lose nothing.
    values = scenario()
    values["groups"][1]["connect_over"] = "60 s"
    recording = run(values, tmp_path / "run")
    assert deliveries(recording).height == 120 and with_fate(recording, "unsent").is_empty()


def test_a_topic_that_nobody_subscribes_to_is_not_sent(tmp_path: Path) -> None:
    values = scenario()
    values["groups"][1]["subscribe"] = ["t/0", "t/1"]
    recording = run(values, tmp_path / "run")
    assert deliveries(recording).height == 2 * 20 * 2
    assert with_fate(recording, "unsent").height == 20
    sent = recording.control_packets.filter(pl.col("kind").cast(pl.String) == "MESSAGE")
    assert set(sent["topic"].cast(pl.String)) == {"t/0", "t/1"}


def test_a_subscription_is_a_prefix(tmp_path: Path) -> None:
    values = scenario()
    values["groups"][0] |= {"count": 12}
    values["groups"][1] |= {"count": 1, "subscribe": ["t/1"]}
    recording = run(values, tmp_path / "run")
    # t/1, t/10, t/11.
    assert deliveries(recording).height == 3 * 20


def test_what_exceeds_a_high_water_mark_is_dropped_and_counted(tmp_path: Path) -> None:
    values = scenario(messages=2000)
    values["groups"][0] |= {"count": 1}
    values["groups"][0]["publish"] |= {"interval": "500 us", "payload": "1000 B"}
    values["phases"]["cool_down"] = "60 s"
    # 2000 messages of 1000 B in one second, and 1 Mbit/s takes 16 s for them.
    values["groups"][0]["zeromq"] = {"high_water_mark": 10}
    narrow = run(values, tmp_path / "publisher")
    unsent = with_fate(narrow, "unsent").height
    assert unsent > 1000
    assert deliveries(narrow).height == 2 * (2000 - unsent)
    # The publisher has room; what the proxy has none for is lost, and known to be.
    del values["groups"][0]["zeromq"]
    values["networks"][0]["up"]["rate"] = "100 Mbit/s"
    values["servers"][0]["zeromq"] = {"high_water_mark": 10}
    wide = run(values, tmp_path / "proxy")
    dropped = with_fate(wide, "lost")
    assert with_fate(wide, "unsent").is_empty() and set(dropped["cause"].cast(pl.String)) == {"queue_full"}
    assert deliveries(wide).height + dropped.height == 4000 and dropped.height > 1000


def test_the_same_seed_gives_the_same_recording(tmp_path: Path) -> None:
    values = scenario()
    values["networks"][0]["up"]["loss"] = "5 %"
    first, second = (run(values, tmp_path / name) for name in ("first", "second"))
    assert first.messages.equals(second.messages) and first.control_packets.equals(second.control_packets)
    assert deliveries(first).height == 120, "TCP repeats what is lost"
    assert deliveries(first)["latency_ms"].max() > 100  # type: ignore[operator]


def test_reports_and_explanations_speak_of_zeromq_alone(tmp_path: Path) -> None:
    recording = run(scenario(), tmp_path / "run")
    drawn = network.drawn(recording)
    titles = [str(part.title.text) for figure in drawn for part in (
        figure.layout, figure.layout.xaxis, figure.layout.yaxis)]
    titles += [str(trace.name) for figure in drawn for trace in figure.data]
    table = metrics.network(recording)
    covered = network.covered(recording, table)
    assert covered.endswith("of which 180 ZMTP messages.")
    assert {"What ZeroMQ adds to a message on one connection", "ZMTP messages (%)"} <= set(titles)
    assert network.columns(table, ("frames", "publish_packets")) == ("frames",)
    found = evidence(recording)
    story = tell(recording, found, found.legs.sort("latency_ns")["leg"][-1])
    explained = [cause(story), *ladder(story), *(part for part, _, _ in parts_table(story))]
    assert not [words for words in (covered, *titles, *explained) if "MQTT" in words or "PUBLISH" in words]
    assert any("proxy" in words for words in explained) and not [words for words in explained if "broker" in words]
