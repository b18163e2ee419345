"""What a broker answers to live and simulated clients: refusals with code and topic, and what its CONNACK forbids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.report.text import verdict
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

RULES = "topic readwrite plant/open\ntopic read plant/#\n"


def publication(topic: str, qos: int = 1, **more: Any) -> dict[str, Any]:
    return {"topic": topic, "qos": qos, "payload": "20 B", "interval": "200 ms", **more}


def run(directory: Path, *publish: dict[str, Any], backend: str = "live", settings: str = "",
        version: str = "5") -> Recording:
    line = {"delay": "5 ms"}
    config = f"listener {{port}} {{address}}\nallow_anonymous true\nuser root\n{settings}\n"
    program = {"command": ["mosquitto", "-c", "{directory}/m.conf"], "files": {"m.conf": config, "acl": RULES}}
    live = {"broker": {"kind": "program", "ready": {"kind": "tcp-accept"}, "program": program}}
    values = {
        "name": "answers", "backend": backend, "phases": {"duration": "2 s", "cool_down": "3 s"},
        "mqtt": {"version": version}, "networks": [{"between": ["field", "broker"], "up": line, "down": line}],
        "groups": [{"name": "writer", "host": "field", "publish": list(publish)},
                   {"name": "reader", "host": "field", "subscribe": [{"filter": "plant/#", "qos": 2}]}],
        **(live if backend == "live" else {}),
    }
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def fates(recording: Recording, topic: str) -> set[tuple[str, str | None]]:
    rows = recording.messages.filter(pl.col("topic").cast(pl.String) == topic)
    return set(rows.select(pl.col("fate", "cause").cast(pl.String)).rows())


@pytest.mark.live
@pytest.mark.parametrize(("qos", "packet"), [(1, "PUBACK"), (2, "PUBREC")])
def test_what_access_rules_refuse_is_refused_with_code_and_topic_and_stands_nowhere_still(
        qos: int, packet: str, tmp_path: Path) -> None:
    recording = run(tmp_path / "run", publication("plant/open", qos), publication("plant/secret", qos),
                    settings="acl_file {directory}/acl")
    assert fates(recording, "plant/open") == {("delivered", None)}
    assert fates(recording, "plant/secret") == {("lost", "refused")}
    assert not any("stood still" in reason for reason in verdict(recording)[1])
    refused = recording.messages.filter(cause="refused").height
    assert refused > 0
    reason = "PUBLISH to plant/secret: code 0x87 (not authorised)"
    assert metrics.disconnections(recording).rows() == [("writer", "refused", reason, refused, 1)]
    causes = [cause.words for flow in metrics.headline(recording).flows for cause in flow.causes]
    assert causes == ["refused by the broker: not authorised"]
    answers = metrics.answers(recording)
    assert answers.row(0) == ("broker", packet, "0x87", "not authorised", "writer", refused, 1)
    # The run need not wait for what will not come.
    assert recording.events.filter(kind="phase")["at_ns"].max() < 7_000_000_000  # type: ignore[operator]


@pytest.mark.live
def test_before_mqtt_5_nothing_says_that_a_message_was_refused(tmp_path: Path) -> None:
    recording = run(tmp_path / "run", publication("plant/open"), publication("plant/secret"),
                    settings="acl_file {directory}/acl", version="3.1.1")
    assert ("lost", "refused") not in fates(recording, "plant/secret")
    assert metrics.answers(recording)["packet"].is_in(["CONNACK", "SUBACK"]).all()


@pytest.mark.live
@pytest.mark.parametrize(("settings", "publish", "why"), [
    ("max_qos 1", publication("plant/open", 2), "QoS 2 is above the broker's maximum QoS of 1"),
    ("retain_available false", publication("plant/open", 1, retain=True), "the broker does not take RETAIN"),
    ("max_packet_size 30", publication("plant/open", 1), "its packet has more than the broker's maximum of 30 B"),
])
def test_a_client_does_not_send_what_its_broker_s_connack_forbids(
        settings: str, publish: dict[str, Any], why: str, tmp_path: Path) -> None:
    recording = run(tmp_path / "run", publish, settings=settings)
    assert fates(recording, "plant/open") == {("unsent", None)}
    told = metrics.disconnections(recording)
    assert told.select("group", "what", "reason").rows() == [
        ("writer", "refused", f"PUBLISH to plant/open: not sent, {why}")]
    assert recording.control_packets.filter(kind="PUBLISH").is_empty()
    assert [flow.why_unsent for flow in metrics.headline(recording).flows] == ["the broker's CONNACK forbids it"]


@pytest.mark.live
def test_a_broker_without_a_subscriber_says_so(tmp_path: Path) -> None:
    recording = run(tmp_path / "run", publication("elsewhere"), publication("plant/open"))
    assert fates(recording, "elsewhere") == {("no_receiver", None)}
    assert fates(recording, "plant/open") == {("delivered", None)}
    packets = metrics.answers(recording).filter(pl.col("from") == "broker", packet="PUBACK")
    answers = packets.select("code", "name").rows()
    assert sorted(answers) == [("0x00", "success"), ("0x10", "no matching subscribers")]


@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_simulated_answers_have_the_codes_of_their_version(version: str, tmp_path: Path) -> None:
    recording = run(tmp_path / "run", publication("plant/open", 1), publication("plant/open", 2), backend="sim",
                    version=version)
    assert fates(recording, "plant/open") == {("delivered", None)}
    answers = metrics.answers(recording)
    told = set(answers.select("from", "packet", "code", "name").rows())
    assert ("broker", "SUBACK", "0x02", "granted QoS 2") in told
    if version == "3.1.1":
        assert {row[1] for row in told} == {"CONNACK", "SUBACK"}
        return
    for sender, packet in (("broker", "PUBACK"), ("broker", "PUBREC"), ("broker", "PUBCOMP"), ("client", "PUBREC"),
                           ("client", "PUBREL"), ("broker", "PUBREL")):
        assert (sender, packet, "0x00", "success") in told, (sender, packet)
    assert metrics.disconnections(recording).is_empty()
