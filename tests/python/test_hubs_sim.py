"""Protocols around a hub, simulated: delivery, loss and repetition, what is recorded, where the time went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab.explanation import cause, ladder, parts_table, tell
from mqttlab.metrics import attribution_coverage, deliveries, evidence
from mqttlab.plan.declared import HUB_PROTOCOLS
from mqttlab.recording import Recording
from mqttlab.report import coverage
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from test_hubs import scenario


def run(values: dict[str, Any], directory: Path) -> Recording:
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


@pytest.mark.parametrize("protocol", HUB_PROTOCOLS)
@pytest.mark.parametrize("qos", [0, 1])
def test_every_message_reaches_every_subscriber_once(protocol: str, qos: int, tmp_path: Path) -> None:
    recording = run(scenario(protocol, qos), tmp_path / "run")
    # Twenty messages of each: two subscribers of all three, and one of the second.
    found = deliveries(recording)
    assert found.height == 3 * 20 * 2 + 20
    # Twice 5 ms and twice the time of a frame, or once where the subscriber is beside the hub.
    assert 5 < found["latency_ms"].min() < found["latency_ms"].max() < 30  # type: ignore[operator]
    packets = recording.control_packets.with_columns(pl.col("kind", "protocol", "transport").cast(pl.String))
    assert set(packets["protocol"]) == {protocol} and set(packets["transport"]) == {"udp"}
    messages = packets.filter(kind="MESSAGE")
    assert messages.height == 60 + 140 and set(messages["payload_bytes"]) == {100}
    head = messages["fixed_header_bytes"] + messages["topic_bytes"] + messages["packet_id_bytes"]
    assert set(head) == {HUB_PROTOCOLS[protocol].head_bytes + len("t/0")}
    assert packets["client"].null_count() == 0
    if qos == 0:
        assert packets.filter(pl.col("kind") == "HEARD").is_empty()


def test_what_is_lost_on_the_way_up_at_qos_1_is_sent_again_and_delivered_once(tmp_path: Path) -> None:
    values = scenario(loss="20 %")
    values["networks"][0]["down"] = {"delay": "5 ms", "rate": "1 Mbit/s"}
    values["groups"][0]["hub"] = {"settings": {"repeat": "40 ms"}}
    recording = run(values, tmp_path / "run")
    assert deliveries(recording).height == 140
    packets = recording.control_packets.with_columns(pl.col("kind", "direction").cast(pl.String))
    up = packets.filter(kind="MESSAGE", direction="to_broker")
    assert up.height > 60 and up["dup"].sum() == up.height - 60
    assert up["complete_ns"].null_count() >= up.height - 60, "those that were lost never came"


def test_what_is_lost_on_the_way_down_is_known_to_be(tmp_path: Path) -> None:
    values = scenario(loss="20 %")
    values["networks"][0]["up"] = {"delay": "5 ms", "rate": "1 Mbit/s"}
    recording = run(values, tmp_path / "run")
    fates = recording.messages.with_columns(pl.col("fate").cast(pl.String))["fate"].value_counts()
    counted = dict(fates.rows())
    assert counted["lost"] > 5 and counted["delivered"] + counted["lost"] + counted.get("under_way", 0) == 140
    assert set(counted) <= {"delivered", "lost", "under_way"}


def test_every_delivery_is_explained_down_to_its_datagrams(tmp_path: Path) -> None:
    recording = run(scenario(loss="10 %"), tmp_path / "run")
    covered = attribution_coverage(recording)
    assert covered.attributed == covered.delivered > 50, covered
    found = evidence(recording)
    slowest = int(found.legs["latency_ns"].arg_max() or 0)
    story = tell(recording, found, slowest)
    words = "\n".join([cause(story), *ladder(story), *(part for part, _, _ in parts_table(story))])
    assert "hub" in words and "MESSAGE" in words, words


def test_a_report_names_the_protocol(tmp_path: Path) -> None:
    recording = run(scenario(), tmp_path / "run")
    assert coverage.protocol(recording) == "tell" and coverage.carrier(recording) == "tell message"
    assert "packets of tell, of which 200 tell messages" in coverage.control_packets(recording, 300)


def test_small_messages_are_told_by_their_order_and_empty_ones_need_no_payload(tmp_path: Path) -> None:
    recording = run(scenario(payload="4 B"), tmp_path / "run")
    assert deliveries(recording).height == 140


def test_a_busy_hub_takes_its_time_for_each_datagram(tmp_path: Path) -> None:
    values = scenario()
    values["servers"][0]["service"] = {"per_packet": "5 ms", "per_copy": "1 ms", "jitter": "0 %"}
    slow, fast = run(values, tmp_path / "slow"), run(scenario(), tmp_path / "fast")
    least = [float(deliveries(one)["latency_ms"].min()) for one in (slow, fast)]  # type: ignore[arg-type]
    assert least[0] - least[1] >= 6


def test_thousands_of_clients_are_simulated(tmp_path: Path) -> None:
    values = scenario(qos=0)
    values["groups"] = [
        {"name": "many", "host": "field", "count": 3000, "protocol": "tell",
         "publish": {"topic": "m/{client}", "payload": "20 B", "interval": "2 s"}},
        {"name": "one", "host": "hub", "protocol": "tell", "subscribe": ["m/#"]}]
    link = {"delay": "5 ms", "rate": "1 Gbit/s"}
    values["networks"] = [{"between": ["field", "hub"], "up": link, "down": link}]
    recording = run(values, tmp_path / "run")
    assert deliveries(recording).height == 3000
