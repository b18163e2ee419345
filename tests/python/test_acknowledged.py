"""Captures at a publisher and runs without subscribers: what the broker acknowledged stands in for deliveries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from captures import Client, Wire, answer, publish
from commands import mqttlab
from mqttlab import metrics
from mqttlab.dashboard.pages import overview
from mqttlab.recording import Recording


def publishers(wire: Wire, qos: tuple[int, ...] = (0, 1, 2), *, unanswered: int = 2, messages: int = 20) -> None:
    """Clients that publish at these levels; of those at QoS 1 the last messages are not acknowledged."""
    for level in qos:
        client = Client(wire, f"10.0.0.{2 + level}", 40_000 + level)
        client.connect(f"level{'abc'[level]}-1")
        for number in range(messages):
            client.up(publish(f"t/{level}", b"payload %03d" % number, qos=level, identifier=number + 1))
            if level == 0:
                wire.wait(2)
                client.down(b"")
            if level == 1 and number < messages - unanswered:
                wire.wait(6)
                client.down(answer(4, number + 1))
            if level == 2:
                client.down(answer(5, number + 1))
                client.up(answer(6, number + 1))
                wire.wait(9)
                client.down(answer(7, number + 1))
            wire.wait(10)


def imported(file: Path, directory: Path) -> tuple[Recording, str]:
    """The recording of a capture, and what the command prints."""
    done = mqttlab("import", "capture", file, "--output", directory, "--no-html")
    assert done.returncode in (0, 6), done.stderr
    return Recording(directory), done.stdout


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The import of a capture with publishers of three levels and no subscriber."""
    home, wire = tmp_path_factory.mktemp("alone"), Wire()
    publishers(wire)
    imported(wire.save(home / "publishers.pcap"), home / "runs" / "alone")
    return home / "runs" / "alone"


def test_of_publishers_alone_the_headline_has_the_time_to_puback_and_pubcomp(alone: Path) -> None:
    at_0, at_1, at_2 = (flow.acknowledged for flow in metrics.headline(Recording(alone)).flows)
    assert at_0 and at_1 and at_2
    assert (at_1.packet, at_1.count, at_1.missing) == ("PUBACK", 18, 2)
    assert [at_1.latency[name].value for name in ("p50", "p95", "p99", "max")] == pytest.approx([7.0] * 4)
    assert (at_2.packet, at_2.count, at_2.missing) == ("PUBCOMP", 20, 0)
    assert at_2.latency["p99"].value == pytest.approx(12.0)
    assert (at_0.packet, at_0.latency, at_0.round_trip_ms_p50) == (None, {}, pytest.approx(3.0))


def test_the_terminal_says_that_deliveries_cannot_be_seen(alone: Path) -> None:
    shown = mqttlab("report", alone).stdout
    assert "deliveries cannot be seen: no subscriber of these messages was" in shown
    rows = {line.split(",")[1].split()[1]: line.split()[-6:] for line in shown.splitlines() if " QoS " in line
            and "no known" in line}
    assert rows["1"] == ["–", "2", "–", "7", "7", "20"]
    assert rows["2"] == ["–", "0", "–", "12", "12", "20"]
    assert rows["0"] == ["–", "–", "–", "–", "–", "20"]
    assert "At QoS 0 MQTT acknowledges nothing, only TCP its segments: round" in shown


def test_a_single_flow_names_its_packet_and_what_was_not_acknowledged(tmp_path: Path) -> None:
    wire = Wire()
    publishers(wire, (1,))
    _, shown = imported(wire.save(tmp_path / "one.pcap"), tmp_path / "run")
    assert "PUBACK ms   p50 7  worst of 18: 7" in shown
    assert "18 of 20 acknowledged, 2 not" in shown
    assert "sent/s; 0 disconnects" in shown


def test_the_object_for_programs_and_the_page_have_it(alone: Path, tmp_path: Path) -> None:
    done = mqttlab("report", alone, "--json", "--html", tmp_path / "page.html")
    flows = json.loads(done.stdout)["headline"]["flows"]
    assert flows[1]["acknowledged"]["missing"] == 2
    assert flows[1]["acknowledged"]["latency"]["p95"]["value"] == pytest.approx(7.0)
    assert flows[1]["words"] == [
        "Deliveries cannot be seen: no subscriber of these messages was recorded",
        "Time to PUBACK in ms: p50 7, worst of 18: 7; 18 of 20 acknowledged, 2 not"]
    page = (tmp_path / "page.html").read_text()
    assert "p99 ms to PUBACK, PUBCOMP" in page
    assert "Deliveries cannot be seen" in page


def test_a_page_of_one_flow_has_cards_of_the_acknowledgements(tmp_path: Path) -> None:
    wire = Wire()
    publishers(wire, (2,))
    recording, _ = imported(wire.save(tmp_path / "one.pcap"), tmp_path / "run")
    mqttlab("report", recording.directory, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "worst to PUBCOMP" in page and "median to PUBCOMP" in page
    # Of 20 messages no p99 is known.
    assert "p99 to PUBCOMP" not in page
    assert "not acknowledged" in page
    assert "p99 latency" not in page


def test_the_list_of_runs_has_the_time_to_acknowledge(alone: Path) -> None:
    mqttlab("catalog", "scan", alone.parent)
    shown = mqttlab("list", "--runs", alone.parent).stdout
    assert "12 to ack." in shown
    assert "not seen" in shown


def test_a_comparison_has_the_times_to_acknowledge(alone: Path, tmp_path: Path) -> None:
    wire = Wire()
    publishers(wire, (1,), unanswered=0)
    imported(wire.save(tmp_path / "all.pcap"), tmp_path / "all")
    wire = Wire()
    publishers(wire, (1,), unanswered=5)
    imported(wire.save(tmp_path / "some.pcap"), tmp_path / "some")
    said = mqttlab("compare", tmp_path / "all", tmp_path / "some").stdout
    assert "p50 to acknowledge 7 ms in both" in said
    assert "5 not acknowledged instead of 0; no delivery can be seen" in said


def test_flows_with_and_without_receivers_stand_beside_each_other(tmp_path: Path) -> None:
    wire = Wire()
    receiver = Client(wire, "10.0.0.9", 40_009)
    receiver.connect("receiver-1")
    receiver.subscribe("seen")
    publishers(wire, (1, 2))
    sender = Client(wire, "10.0.0.8", 40_008)
    sender.connect("sender-1")
    for number in range(20):
        message = b"message %03d" % number
        sender.up(publish("seen", message, qos=1, identifier=number + 1))
        sender.down(answer(4, number + 1))
        receiver.down(publish("seen", message))
        receiver.up(b"")
        wire.wait(10)
    recording, shown = imported(wire.save(tmp_path / "mixed.pcap"), tmp_path / "run")
    flows = {flow.publishers: flow for flow in metrics.headline(recording).flows}
    assert flows["sender"].acknowledged is None
    assert (flows["sender"].delivered, flows["sender"].latency["p99"].value) == (20, pytest.approx(2.0))
    assert flows["levelb"].acknowledged and flows["levelb"].acknowledged.missing == 2
    assert shown.index("flow  ") < shown.index("sender → receiver, QoS 1") < shown.index("time to PUBACK, PUBCOMP")


def test_where_a_subscriber_has_left_no_delivery_was_expected(tmp_path: Path) -> None:
    wire = Wire()
    receiver, sender = Client(wire, "10.0.0.9", 40_009), Client(wire, "10.0.0.8", 40_008)
    receiver.connect("receiver-1")
    receiver.subscribe("seen")
    sender.connect("sender-1")
    for number in range(20):
        message = b"message %03d" % number
        if number == 10:
            receiver.unsubscribe("seen")
        sender.up(publish("seen", message, qos=1, identifier=number + 1))
        sender.down(answer(4, number + 1))
        if number < 10:
            receiver.down(publish("seen", message))
            receiver.up(b"")
        wire.wait(10)
    recording, shown = imported(wire.save(tmp_path / "left.pcap"), tmp_path / "run")
    assert [flow.acknowledged for flow in metrics.headline(recording).flows] == [None, None]
    assert "no delivery was expected" in shown
    assert "deliveries cannot be seen" not in shown.lower()


def test_frames_without_times_have_counts_and_no_times_to_acknowledge(tmp_path: Path) -> None:
    wire = Wire()
    publishers(wire, (1,))
    recording, shown = imported(wire.save_pcapng(tmp_path / "untimed.pcapng", timed=False), tmp_path / "run")
    [flow] = metrics.headline(recording).flows
    assert flow.acknowledged and flow.acknowledged.missing == 2
    assert all(one.value is None for one in flow.acknowledged.latency.values())
    assert "PUBACK ms" not in shown
    assert metrics.setup(recording)["acknowledge_ms_p99"].to_list() == [None]


def test_a_simulation_with_publishers_alone_has_them_too(tmp_path: Path) -> None:
    scenario = tmp_path / "publishers.toml"
    scenario.write_text("""
name = "publishers"
backend = "sim"
[phases]
warm_up = "100 ms"
duration = "2 s"
cool_down = "2 s"
[[networks]]
between = ["field", "broker"]
up = { rate = "1 Mbit/s", delay = "20 ms" }
down = { rate = "1 Mbit/s", delay = "20 ms" }
[[groups]]
name = "publishers"
host = "field"
publish = { topic = "t", qos = 1, payload = "100 B", rate = "20 /s" }
""")
    for detail in ("full", "summary"):
        done = mqttlab("run", scenario, "--runs", tmp_path / detail, "--json", "--set", f"recording.detail={detail}")
        [run] = json.loads(done.stdout)["runs"]
        [flow] = run["headline"]["flows"]
        assert (flow["acknowledged"]["packet"], flow["acknowledged"]["missing"]) == ("PUBACK", 0), detail
        # All clients are the run's own: there was no subscriber, which is not one that was not recorded.
        assert flow["words"][0] == (
            "No delivery was expected: no client was subscribed when the broker had these messages")
        # Two ways of 20 ms and the time to send 170 and 44 bytes.
        assert flow["acknowledged"]["latency"]["p50"]["value"] == pytest.approx(42, abs=2), detail


def test_the_overview_of_the_dashboard_has_a_table_of_them(alone: Path) -> None:
    shown = str(overview.part(Recording(alone)))
    assert "p99 ms to PUBACK, PUBCOMP" in shown
    assert "Deliveries cannot be seen" in shown
