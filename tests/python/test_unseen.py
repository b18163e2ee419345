"""Control packets that only clients have seen: what they tell where there are no frames, alone and beside frames."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from conversations import Conversation, ns
from mqttlab import metrics
from mqttlab.cli import main
from mqttlab.metrics import PARTS, attribution_coverage, evidence
from mqttlab.metrics.attribution import explainable, intervals
from mqttlab.recording import Recording
from mqttlab.report.attribution import coverage, silence
from recordings import MS


def parts_ms(recording: Recording) -> dict[str, float]:
    """The parts of the last delivery that took any time; those of every delivery add up, and their spans are they."""
    table = metrics.attribution(recording)
    for row in table.iter_rows(named=True):
        assert row["unattributed"] is None, row["unattributed"]
        assert sum(row[part] for part in PARTS) == row["latency_ns"]
    legs = evidence(recording).legs
    for leg in legs.iter_rows(named=True):
        spans = intervals(legs.filter(legs["leg"] == leg["leg"]))
        lengths = dict.fromkeys(PARTS, 0)
        for span in spans.iter_rows(named=True):
            lengths[span["part"]] += span["to_ns"] - span["from_ns"]
        assert lengths == {part: leg[part] for part in PARTS}
    row = table.row(-1, named=True)
    return {part.removesuffix("_ns"): row[part] / MS for part in PARTS if row[part]}


def test_without_frames_network_and_broker_are_one_part(tmp_path: Path) -> None:
    told = Conversation()
    told.message(0, 1, 3, 33)
    told.own(0, True, 3)
    told.own(1, False, 33)
    recording = told.write(tmp_path)
    assert parts_ms(recording) == {"schedule": 1, "session": 2, "undivided": 30}
    assert metrics.attribution(recording)["seen_by"].to_list() == ["client"]
    covered = attribution_coverage(recording)
    assert (covered.delivered, covered.attributed, covered.by_clients) == (1, 1, 1)
    assert "Of 1 of these no frames were recorded" in coverage(recording)
    assert explainable(recording).collect().is_empty()


def test_qos_2_still_tells_how_long_the_subscriber_waited_for_the_release(tmp_path: Path) -> None:
    told = Conversation()
    told.message(0, 1, 3, 40, qos=2)
    told.own(0, True, 3, qos=2, packet_id=5)
    told.own(0, False, 8, "PUBREC", packet_id=5)
    told.own(0, True, 9, "PUBREL", packet_id=5)
    told.own(1, False, 33, qos=2, packet_id=7)
    told.own(1, True, 34, "PUBREC", packet_id=7)
    told.own(1, False, 40, "PUBREL", packet_id=7)
    # Whether the broker waited for the PUBREL, nobody knows who has not seen when it sent.
    assert parts_ms(told.write(tmp_path)) == {"schedule": 1, "session": 2, "undivided": 30, "release": 7}


def test_beside_frames_only_the_side_without_is_undivided(tmp_path: Path) -> None:
    up, down = Conversation(), Conversation()
    for told in (up, down):
        told.message(0, 1, 3, 33.4)
    up.frame(0, True, 3.5, 16.5, offset=0, size=100, waits=3)
    up.publish(0, True, 0, 100, 3.5, 16.5)
    up.own(1, False, 33.4)
    assert parts_ms(up.write(tmp_path / "up")) == {
        "schedule": 1, "session": 2, "sender_socket": 0.5, "queue_to_broker": 3, "wire_to_broker": 10,
        "undivided": pytest.approx(16.9)}
    down.own(0, True, 3)
    down.frame(1, False, 17, 33, offset=0, size=100, waits=6)
    down.publish(1, False, 0, 100, 17, 33)
    recording = down.write(tmp_path / "down")
    assert parts_ms(recording) == {
        "schedule": 1, "session": 2, "undivided": 14, "queue_to_subscriber": 6, "wire_to_subscriber": 10,
        "delivery": pytest.approx(0.4)}
    assert metrics.attribution(recording)["seen_by"].to_list() == ["both"]


def test_one_message_in_frames_and_one_without_are_counted_by_what_tells_them(tmp_path: Path) -> None:
    told = Conversation()
    told.carried()
    told.message(50, 51, 52, 60, sequence=1)
    told.own(0, True, 52, sequence=1)
    told.own(1, False, 60, sequence=1)
    recording = told.write(tmp_path)
    parts_ms(recording)
    assert metrics.attribution(recording)["seen_by"].to_list() == ["capture", "client"]
    covered = attribution_coverage(recording)
    assert (covered.attributed, covered.by_clients) == (2, 1)
    assert explainable(recording).collect()["sequence"].to_list() == [0]


def test_a_message_sent_again_on_a_new_connection_counts_from_its_first_copy(tmp_path: Path) -> None:
    told = Conversation()
    told.message(0, 1, 3, 80, qos=1)
    told.own(0, True, 3, qos=1, packet_id=1)
    told.own(0, True, 60, qos=1, packet_id=1, dup=True, connection=2**30 + 9)
    told.own(1, False, 80, qos=1, packet_id=1)
    assert parts_ms(told.write(tmp_path)) == {"schedule": 1, "session": 2, "undivided": 77}


def test_packets_by_type_count_what_clients_saw_and_segments_do_not(tmp_path: Path) -> None:
    told = Conversation()
    told.message(0, 1, 3, 33, qos=1, acknowledged_ns=ns(20))
    told.own(0, True, 3, qos=1, packet_id=1)
    told.own(0, False, 20, "PUBACK", packet_id=1)
    told.own(1, False, 33, qos=1, packet_id=1)
    recording = told.write(tmp_path)
    counts = metrics.packet_types(recording).select("direction", "kind", "packets").rows()
    assert sorted(counts) == [("to_broker", "PUBLISH", 1), ("to_client", "PUBACK", 1), ("to_client", "PUBLISH", 1)]
    assert metrics.segments_per_publish(recording).is_empty()
    assert recording.collect(recording.scan_captured()).is_empty()


def test_a_report_says_by_what_it_is_told_and_an_explanation_says_what_it_lacks(
        tmp_path: Path) -> None:
    told = Conversation()
    told.message(0, 1, 3, 33)
    told.own(0, True, 3)
    told.own(1, False, 33)
    told.write(tmp_path)
    done = CliRunner().invoke(main, ["explain", str(tmp_path)])
    said = " ".join(done.output.split())
    assert done.exit_code
    assert "cannot be explained" in said
    assert "network and broker are one part" in said


def of_three_protocols(
        directory: Path, told: Conversation, beside: int = 1, **recording: Any) -> Recording:
    """A recording whose plan has a group of each protocol and one of programs."""
    told.groups = [{"name": "p", "count": 1}, {"name": "motes", "count": 1, "protocol": {"mqtt_sn": {}}},
                   {"name": "feed", "count": 1, "protocol": {"zeromq": {}}},
                   {"name": "desk", "count": 1, "protocol": {"zeromq": {}}},
                   {"name": "paho", "count": 1, "protocol": {"mqtt": {}}, "program": {"command": ["p"]},
                    "host": beside, "connects_to": 0}]
    told.write(directory)
    path = directory / "plan.json"
    plan = json.loads(path.read_text())
    path.write_text(json.dumps({**plan, "recording": {"packets": True}, **recording}))
    return Recording(directory)


def test_groups_of_which_nobody_knows_the_packets_are_named_and_why(tmp_path: Path) -> None:
    told = Conversation()
    told.message(0, 1, 3, 33)
    told.own(0, True, 3)
    told.own(1, False, 33)
    recording = of_three_protocols(tmp_path, told)
    assert silence(recording) == (
        "No frames recorded for some groups, and no rows in control_packets: clients of MQTT-SN did not "
        "write down their own packets (motes); clients of ZeroMQ did not write down their own packets (feed, desk); "
        "programs do not say what they send and receive (paho).")
    assert coverage(recording).endswith(silence(recording))


@pytest.mark.parametrize("recording", [{"recording": {"packets": False}}, {"backend": "sim"}, {"backend": "import"}])
def test_of_what_was_not_asked_for_and_of_other_producers_nothing_is_said(
        tmp_path: Path, recording: dict[str, Any]) -> None:
    told = Conversation()
    told.message(0, 1, 3, 33)
    told.own(0, True, 3)
    assert silence(of_three_protocols(tmp_path, told, **recording)) == ""


def test_where_frames_were_recorded_nobody_is_silent(tmp_path: Path) -> None:
    told = Conversation()
    told.carried()
    assert silence(of_three_protocols(tmp_path, told)) == ""


def test_beside_frames_only_programs_on_their_brokers_host_are_silent_and_only_if_nobody_listened_there(
        tmp_path: Path) -> None:
    told = Conversation()
    told.carried()
    recording = of_three_protocols(tmp_path / "deaf", told, beside=0)
    assert silence(recording).endswith("control_packets: programs do not say what they send and receive (paho).")
    told.frame(1, False, 50, 51)
    told.packets[-1]["to_host"] = 0
    assert silence(of_three_protocols(tmp_path / "heard", told, beside=0)) == ""
