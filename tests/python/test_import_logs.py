"""Logs of brokers and output of other tools: read where they tell of messages, else named with what works instead."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from commands import mqttlab
from mqttlab import metrics
from mqttlab.mistaken import what_it_is
from mqttlab.recording import Recording
from mqttlab.report.text import verdict

MOSQUITTO = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
CLIENTS = all(shutil.which(tool) for tool in ("mosquitto_pub", "mosquitto_sub"))
START_S = 1_700_000_000


@dataclass
class Log:
    """A log of Mosquitto under construction; every line takes a millisecond, which its form of time may not show."""

    form: str = "%s"
    lines: list[str] = field(default_factory=list)
    at_ms: int = START_S * 1000

    def say(self, *messages: str) -> None:
        """Write messages."""
        for message in messages:
            self.lines.append(f"{self._time()}{message}")
            self.at_ms += 1

    def _time(self) -> str:
        at = datetime.fromtimestamp(self.at_ms / 1000, UTC)
        forms = {"%s": f"{self.at_ms // 1000}: ", "": "", "iso": f"{at:%Y-%m-%dT%H:%M:%S}: ",
                 "clock": f"{at:%H:%M:%S}: ",
                 "docker": f"{at:%Y-%m-%dT%H:%M:%S}.{self.at_ms % 1000:03d}000000Z {self.at_ms // 1000}: ",
                 "journal": f"{at:%Y-%m-%dT%H:%M:%S}.{self.at_ms % 1000:03d}000+0000 host mosquitto[7]: "
                            f"{self.at_ms // 1000}: ",
                 "syslog": f"{at:%b %d %H:%M:%S} host mosquitto[7]: "}
        return forms[self.form]

    def start(self) -> None:
        """The broker begins."""
        self.say("mosquitto version 2.0.11 starting", "Config loaded from /etc/mosquitto/mosquitto.conf.")

    def connect(self, name: str, *, clean: bool = True, present: bool = False, level: int = 2) -> None:
        """A client connects."""
        self.say("New connection from 10.0.0.2:5000 on port 1883.",
                 f"New client connected from 10.0.0.2:5000 as {name} (p{level}, c{int(clean)}, k60).",
                 "No will message specified.", f"Sending CONNACK to {name} ({int(present)}, 0)")

    def subscribe(self, name: str, topic: str, qos: int = 0, *, granted: bool = True) -> None:
        """A client subscribes."""
        self.say(f"Received SUBSCRIBE from {name}", f"\t{topic} (QoS {qos})",
                 *([f"{name} {qos} {topic}"] if granted else []), f"Sending SUBACK to {name}")

    def publish(self, name: str, topic: str, qos: int, number: int, receivers: dict[str, int], *, size: int = 10,
                acknowledged: bool = True) -> None:
        """A message, with the copies that follow it at once: by receiver their packet identifiers."""
        copies = [f"Sending PUBLISH to {who} (d0, q{qos if packet else 0}, r0, m{packet}, '{topic}', "
                  f"... ({size} bytes))" for who, packet in receivers.items()]
        self.say(f"Received PUBLISH from {name} (d0, q{qos}, r0, m{number}, '{topic}', ... ({size} bytes))")
        if qos == 2:
            self.say(f"Sending PUBREC to {name} (m{number}, rc0)", f"Received PUBREL from {name} (Mid: {number})")
        self.say(*copies)
        if qos and acknowledged:
            packet, code = ("PUBACK", ", rc0") if qos == 1 else ("PUBCOMP", "")
            self.say(f"Sending {packet} to {name} (m{number}{code})")

    def save(self, file: Path, *, end: str = "\n") -> Path:
        """Write the file."""
        file.write_bytes("".join(f"{line}{end}" for line in self.lines).encode())
        return file


def fleet(form: str = "%s") -> Log:
    """A publisher and two subscribers: ten messages at each QoS, of which the second subscriber acknowledges none."""
    log = Log(form)
    log.start()
    for name in ("reader-1", "silent-1"):
        log.connect(name)
        log.subscribe(name, "s/#", 2)
    log.connect("sensor-1")
    for qos in (0, 1, 2):
        for number in range(1, 11):
            packet = 100 * qos + number if qos else 0
            log.publish("sensor-1", f"s/{qos}", qos, number, {"reader-1": packet, "silent-1": packet})
            if qos == 1:
                log.say(f"Received PUBACK from reader-1 (Mid: {packet}, RC:0)")
            if qos == 2:
                log.say(f"Received PUBREC from reader-1 (Mid: {packet})", f"Sending PUBREL to reader-1 (m{packet})",
                        f"Received PUBCOMP from reader-1 (Mid: {packet}, RC:0)")
    return log


def imported(*files: Path, to: Path, status: int = 0) -> Recording:
    """The recording of logs."""
    done = mqttlab("import", "log", *files, "--output", to, "--no-html")
    assert done.returncode == status, done.stdout + done.stderr
    return Recording(to)


def fates(recording: Recording, subscriber: str) -> Counter[tuple[int, str]]:
    """Of what a client should have had: how many messages of each QoS had which fate."""
    names = recording.layout["clients"].names
    rows = recording.collect(recording.scan("messages").filter(pl.col("subscriber") == list(names).index(subscriber)))
    return Counter(zip(rows["qos"], rows["fate"].cast(pl.String), strict=True))


def test_a_log_of_mosquitto_becomes_a_recording(tmp_path: Path) -> None:
    recording = imported(fleet().save(tmp_path / "mosquitto.log"), to=tmp_path / "run")
    assert fates(recording, "reader-1") == {(0, "delivered"): 10, (1, "delivered"): 10, (2, "delivered"): 10}
    # At QoS 0 the broker's word is all there is; what it sent at QoS 1 and 2 was never acknowledged.
    assert fates(recording, "silent-1") == {(0, "delivered"): 10, (1, "under_way"): 10, (2, "under_way"): 10}
    events = Counter(recording.events["kind"].cast(pl.String))
    assert (events["connack"], events["suback"], events["disconnect"]) == (3, 2, 0)
    assert recording.run["details"]["import"]["log_of"] == "Mosquitto"


@pytest.mark.parametrize("form", ["%s", "iso", "syslog"])
def test_whole_seconds_give_no_latency_and_say_why(form: str, tmp_path: Path) -> None:
    recording = imported(fleet(form).save(tmp_path / "mosquitto.log"), to=tmp_path / "run")
    assert all(one.value is None for flow in metrics.headline(recording).flows for one in flow.latency.values())
    assert metrics.setup(recording)["acknowledge_ms_p99"].to_list() == [None]
    [said] = [note for note in verdict(recording)[1] if "whole seconds" in note]
    assert "log_timestamp_format has no fractions of a second" in said
    assert "docker logs -t" in said


@pytest.mark.parametrize("form", ["docker", "journal"])
def test_finer_times_of_who_took_the_lines_give_latencies(form: str, tmp_path: Path) -> None:
    recording = imported(fleet(form).save(tmp_path / "lines.txt"), to=tmp_path / "run")
    flows = {(flow.subscribers, flow.qos): flow.latency["p99"].value for flow in metrics.headline(recording).flows}
    # At QoS 2 PUBREC and PUBREL stand between a message and its first copy.
    assert (flows["reader", 0], flows["reader", 1], flows["reader", 2]) == (1.0, 1.0, 3.0)
    assert metrics.setup(recording)["acknowledge_ms_p50"].to_list() == [4.0]


@pytest.mark.parametrize("form", ["", "clock"])
def test_lines_without_a_date_keep_order_and_counts_and_are_not_valid(form: str, tmp_path: Path) -> None:
    recording = imported(fleet(form).save(tmp_path / "mosquitto.log"), to=tmp_path / "run", status=6)
    said = verdict(recording)[1][0]
    assert said.startswith("The lines of the log have no time that can be read")
    assert "log_timestamp_format %Y-%m-%dT%H:%M:%S" in said
    assert fates(recording, "reader-1")[1, "delivered"] == 10


def test_what_waited_for_its_receiver_is_told_by_topic_size_and_order(tmp_path: Path) -> None:
    log = Log("docker")
    log.start()
    log.connect("away-1", clean=False)
    log.subscribe("away-1", "t", 1)
    log.say("Received DISCONNECT from away-1", "Client away-1 disconnected.")
    log.connect("sensor-1")
    for number in range(1, 6):
        log.publish("sensor-1", "t", 1, number, {})
    log.connect("away-1", clean=False, present=True)
    log.say(*(line for packet in range(1, 6) for line in (
        f"Sending PUBLISH to away-1 (d0, q1, r0, m{packet}, 't', ... (10 bytes))",
        f"Received PUBACK from away-1 (Mid: {packet}, RC:0)")))
    recording = imported(log.save(tmp_path / "mosquitto.log"), to=tmp_path / "run")
    assert fates(recording, "away-1") == {(1, "delivered"): 5}
    latencies = recording.collect(recording.scan("messages"))["latency_ns"].to_list()
    # Ten lines are of five messages, four of the connection; copies are as far apart as messages were.
    assert latencies == [14_000_000] * 5
    assert any("5 copies had waited" in note for note in verdict(recording)[1])


def test_of_messages_that_the_broker_dropped_the_log_does_not_say_which(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.connect("away-1", clean=False)
    log.subscribe("away-1", "t", 1)
    log.say("Received DISCONNECT from away-1", "Client away-1 disconnected.")
    log.connect("sensor-1")
    for number in range(1, 4):
        log.publish("sensor-1", "t", 1, number, {})
    log.say("Outgoing messages are being dropped for client away-1.")
    for number in range(4, 6):
        log.publish("sensor-1", "t", 1, number, {})
    log.connect("away-1", clean=False, present=True)
    log.say(*(line for packet in range(1, 4) for line in (
        f"Sending PUBLISH to away-1 (d0, q1, r0, m{packet}, 't', ... (10 bytes))",
        f"Received PUBACK from away-1 (Mid: {packet}, RC:0)")))
    open_end = imported(log.save(tmp_path / "open.log"), to=tmp_path / "open")
    assert fates(open_end, "away-1") == {(1, "delivered"): 3, (1, "unknown"): 2}
    # What is sent at once shows that nothing waits any more: the two are lost.
    log.publish("sensor-1", "t", 1, 6, {"away-1": 4})
    log.say("Received PUBACK from away-1 (Mid: 4, RC:0)")
    closed = imported(log.save(tmp_path / "closed.log"), to=tmp_path / "closed")
    assert fates(closed, "away-1") == {(1, "delivered"): 4, (1, "lost"): 2}


def test_a_copy_sent_again_is_the_same_message_and_a_stored_one_is_no_delivery(tmp_path: Path) -> None:
    log = Log("docker")
    log.start()
    log.connect("reader-1", clean=False)
    log.subscribe("reader-1", "t", 1)
    log.connect("sensor-1")
    log.publish("sensor-1", "t", 1, 1, {"reader-1": 1})
    log.say("Socket error on client reader-1, disconnecting.")
    log.connect("reader-1", clean=False, present=True)
    log.say("Sending PUBLISH to reader-1 (d1, q1, r0, m1, 't', ... (10 bytes))",
            "Received PUBACK from reader-1 (Mid: 1, RC:0)")
    log.say("Received PUBLISH from sensor-1 (d0, q0, r1, m0, 'kept', ... (3 bytes))")
    log.connect("late-1")
    log.say("Received SUBSCRIBE from late-1", "\tkept (QoS 0)", "late-1 0 kept", "Sending SUBACK to late-1",
            "Sending PUBLISH to late-1 (d0, q0, r1, m0, 'kept', ... (3 bytes))")
    recording = imported(log.save(tmp_path / "mosquitto.log"), to=tmp_path / "run")
    assert fates(recording, "reader-1") == {(1, "delivered"): 1}
    assert fates(recording, "late-1") == {(0, "retained"): 1}
    # Its time is that of the copy that was acknowledged: 8 lines after the message.
    sent_again = recording.collect(recording.scan("messages").filter(pl.col("qos") == 1))
    assert sent_again["latency_ns"].to_list() == [8_000_000]
    ended = metrics.disconnections(recording).to_dicts()
    assert [(row["group"], row["reason"]) for row in ended] == [("reader", "socket error")]


def test_a_refused_subscription_expects_nothing_and_a_refused_message_is_counted(tmp_path: Path) -> None:
    log = Log()
    log.start()
    for name, granted in (("good-1", True), ("bad-1", False)):
        log.connect(name)
        log.subscribe(name, "t", 0, granted=granted)
    log.connect("sensor-1")
    log.publish("sensor-1", "t", 0, 0, {"good-1": 0})
    log.say("Denied PUBLISH from sensor-1 (d0, q0, r0, m0, 'secret', ... (10 bytes))")
    recording = imported(log.save(tmp_path / "mosquitto.log"), to=tmp_path / "run")
    assert (fates(recording, "good-1"), fates(recording, "bad-1")) == ({(0, "delivered"): 1}, {})
    assert any("1 messages were refused" in note for note in verdict(recording)[1])


@pytest.mark.parametrize("comes_back", [True, False])
def test_of_a_session_of_mqtt_5_that_may_have_expired_it_cannot_be_told(comes_back: bool, tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.connect("away-1", clean=False, level=5)
    log.subscribe("away-1", "t", 1)
    log.say("Received DISCONNECT from away-1", "Client away-1 disconnected.")
    log.connect("sensor-1")
    log.publish("sensor-1", "t", 1, 1, {})
    if comes_back:
        log.connect("away-1", clean=False, level=5)
    recording = imported(log.save(tmp_path / "mosquitto.log"), to=tmp_path / "run", status=6)
    assert verdict(recording)[1][0].startswith("1 clients of MQTT 5 were away while messages came for them")


def test_rotated_files_in_any_order_are_one_log(tmp_path: Path) -> None:
    whole = fleet("iso")
    parts = [Log("iso", whole.lines[start:start + 60]) for start in range(0, len(whole.lines), 60)]
    # Seconds of the form would not tell parts of one second apart.
    files = []
    for number, part in enumerate(parts):
        lines = [f"2026-11-28T10:00:{number:02d}: {line.split(': ', 1)[1]}" for line in part.lines]
        files.append(tmp_path / f"mosquitto.log.{number}.gz")
        files[-1].write_bytes(gzip.compress("".join(f"{line}\r\n" for line in lines).encode()))
    recording = imported(*reversed(files), to=tmp_path / "run")
    assert fates(recording, "reader-1") == {(0, "delivered"): 10, (1, "delivered"): 10, (2, "delivered"): 10}


def test_logs_of_two_brokers_at_the_same_time_are_not_valid_together(tmp_path: Path) -> None:
    log = fleet("docker")
    first = log.save(tmp_path / "first.log")
    second = Log("docker", log.lines[50:]).save(tmp_path / "second.log")
    recording = imported(first, second, to=tmp_path / "run", status=6)
    assert verdict(recording)[1][0].startswith("second begins before the log before it ends")


def test_a_log_that_begins_late_is_not_valid_and_one_that_is_cut_is_incomplete(tmp_path: Path) -> None:
    log = fleet()
    late = Log("%s", log.lines[24:])
    recording = imported(late.save(tmp_path / "late.log"), to=tmp_path / "late", status=6)
    assert verdict(recording)[1][0].startswith("3 clients were connected before the log began")
    cut = log.save(tmp_path / "cut.log")
    cut.write_bytes(cut.read_bytes()[:-20])
    recording = imported(cut, to=tmp_path / "cut", status=3)
    assert verdict(recording)[1][0] == f"cut ends in the middle of line {len(log.lines)}"
    packed = tmp_path / "cut.log.gz"
    packed.write_bytes(gzip.compress(log.save(tmp_path / "whole.log").read_bytes())[:-200])
    imported(packed, to=tmp_path / "packed", status=3)


def test_a_log_of_two_runs_ends_connections_where_the_broker_began_anew(tmp_path: Path) -> None:
    log = fleet()
    log.start()
    log.connect("reader-1")
    log.subscribe("reader-1", "s/#", 0)
    log.connect("sensor-1")
    log.publish("sensor-1", "s/x", 0, 0, {"reader-1": 0})
    recording = imported(log.save(tmp_path / "mosquitto.log"), to=tmp_path / "run")
    assert fates(recording, "reader-1")[0, "delivered"] == 11
    # The silent one did not come back: nothing of the second run was for it.
    assert fates(recording, "silent-1")[0, "delivered"] == 10
    ended = [(row["group"], row["reason"]) for row in metrics.disconnections(recording).to_dicts()]
    assert sorted(ended) == [(group, "the broker ended") for group in ("reader", "sensor", "silent")]
    assert any("began anew" in note for note in verdict(recording)[1])


def test_damaged_bytes_and_lines_of_other_programs_are_passed_over(tmp_path: Path) -> None:
    log = fleet("docker")
    log.lines[30:30] = ["\x00\x01", "Traceback (most recent call last):", "x" * 3_000_000]
    file = log.save(tmp_path / "mosquitto.log")
    file.write_bytes(file.read_bytes().replace(b"s/0", b"s/\xff", 2))
    recording = imported(file, to=tmp_path / "run")
    assert fates(recording, "reader-1")[1, "delivered"] == 10


def test_damaged_lines_of_packets_are_counted_and_not_valid(tmp_path: Path) -> None:
    log = fleet()
    place = next(number for number, line in enumerate(log.lines) if "Received PUBLISH" in line)
    log.lines[place] = log.lines[place].replace("q0", "q\x00")
    recording = imported(log.save(tmp_path / "mosquitto.log"), to=tmp_path / "run", status=6)
    assert verdict(recording)[1][0].startswith("1 lines of packets are damaged")


def test_a_log_without_messages_says_what_to_set(tmp_path: Path) -> None:
    log = Log()
    log.start()
    log.say("Client a disconnected.")
    done = mqttlab("import", "log", log.save(tmp_path / "quiet.log"), "--output", tmp_path / "run")
    assert done.returncode == 2
    assert "quiet.log: is a log of Mosquitto without messages" in done.stderr
    assert "set log_type all in its configuration, or start it with -v" in done.stderr
    assert not (tmp_path / "run").exists()


def test_publishers_alone_have_the_times_to_acknowledge(tmp_path: Path) -> None:
    log = Log("docker")
    log.start()
    log.connect("sensor-1")
    for number in range(1, 11):
        log.publish("sensor-1", "t", 1, number, {}, acknowledged=number < 9)
    [flow] = metrics.headline(imported(log.save(tmp_path / "m.log"), to=tmp_path / "run")).flows
    assert flow.acknowledged
    assert (flow.acknowledged.missing, flow.acknowledged.latency["p99"].value) == (2, 1.0)


def emqx(at_ms: int, way: str, client: str, packet: str) -> str:
    """A line of EMQX at level debug."""
    at = datetime.fromtimestamp(START_S + at_ms / 1000, UTC)
    return (f"{at:%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}000+00:00 [debug] msg: mqtt_packet_{way}, "
            f"mfa: emqx_channel:x/2, line: 360, peername: 127.0.0.1:5, clientid: {client}, packet: {packet}, "
            "tag: MQTT\n")


def test_a_log_of_emqx_tells_copies_by_their_content(tmp_path: Path) -> None:
    told = "ProtoName=MQTT, ProtoVsn=5, CleanStart=true, KeepAlive=30, Username=undefined, Password="
    lines = []
    for client in ("sub-1", "pub-1"):
        lines += [emqx(0, "received", client, f"CONNECT(Q0, R0, D0, ClientId={client}, {told})"),
                  emqx(1, "sent", client, "CONNACK(Q0, R0, D0, AckFlags=0, ReasonCode=0)")]
    filters = "TopicFilters=[t(#{nl => 0,qos => 1,rap => 0,rh => 0}),no(#{nl => 0,qos => 1})]"
    lines += [emqx(2, "received", "sub-1", f"SUBSCRIBE(Q1, R0, D0, PacketId=1 {filters})"),
              emqx(3, "sent", "sub-1", "SUBACK(Q0, R0, D0, PacketId=1, ReasonCodes=[1,135])")]
    for number in range(1, 4):
        body = f"Payload=value {number}"
        lines += [emqx(100 * number, "received", "pub-1",
                       f"PUBLISH(Q1, R0, D0, Topic=t, PacketId={number}, {body})"),
                  emqx(100 * number + 5, "sent", "pub-1", f"PUBACK(Q0, R0, D0, PacketId={number}, ReasonCode=0)")]
    # Two connections write at once, so that copies may come in another order, and one is missing.
    for number, packet in ((3, 1), (1, 2)):
        lines += [emqx(400 + packet, "sent", "sub-1",
                       f"PUBLISH(Q1, R0, D0, Topic=t, PacketId={packet}, Payload=value {number})"),
                  emqx(410 + packet, "received", "sub-1", f"PUBACK(Q0, R0, D0, PacketId={packet}, ReasonCode=0)")]
    file = tmp_path / "emqx.log.1"
    file.write_text("".join(lines))
    recording = imported(file, to=tmp_path / "run")
    rows = recording.collect(recording.scan("messages").sort("sequence"))
    assert rows["latency_ns"].to_list() == [302_000_000, None, 101_000_000]
    assert rows["fate"].cast(pl.String).to_list()[0::2] == ["delivered", "delivered"]
    assert metrics.setup(recording)["acknowledge_ms_p50"].to_list() == [5.0]


def test_records_of_mqttloader_have_a_latency_for_each_delivery(tmp_path: Path) -> None:
    start = START_S * 1_000_000
    lines = [f"{start},,,"]
    for number in range(10):
        sent = start + 1_000 * number
        lines.append(f"{sent},ml-x-p-00000,S,")
        lines += [f"{sent + 300 + place},ml-x-s-0000{place},R,{300 + place}" for place in (0, 1)
                  if (number, place) != (4, 1)]
    file = tmp_path / "mqttloader_20200909-183156.csv"
    file.write_text("\n".join(lines) + "\n")
    recording = imported(file, to=tmp_path / "run")
    [flow] = metrics.headline(recording).flows
    assert (flow.sent, flow.expected, flow.delivered) == (10, 20, 19)
    assert flow.latency["max"].value == pytest.approx(0.301)
    assert any("no topic, QoS or size" in note for note in verdict(recording)[1])


@pytest.mark.parametrize(("name", "text", "what", "way"), [
    ("bench.log", "1s pub total=1000 rate=1000.00/sec\n", "is output of emqtt-bench", "tcpdump"),
    ("run.jtl", "timeStamp,elapsed,label,responseCode\n1,2,Pub Sampler,200\n", "is a result file of JMeter", "tcpdump"),
    ("run.csv", "timeStamp,elapsed,label,responseCode\n1,2,Pub Sampler,200\n", "is a result file of JMeter", "tcpdump"),
    ("run.xml", '<?xml version="1.0"?>\n<testResults version="1.2">\n', "is a result file of JMeter", "tcpdump"),
    ("k6.json", '{"type":"Metric","data":{"name":"mqtt_calls"},"metric":"mqtt_calls"}\n', "is output of k6", "tcpdump"),
    ("k6.csv", "metric_name,timestamp,metric_value,check\n", "is output of k6", "tcpdump"),
    ("out.txt", "-----Publisher-----\nMaximum throughput[msg/s]: 18622\n", "is a summary of MQTTLoader", "output"),
    ("nano.log", "2024-01-01 00:00:00 [1] INFO /build/nanomq/x.c:1 main: y\n", "is a log of NanoMQ", "tcpdump"),
    ("wide.log", "\ufeff1700000000: mosquitto version 2.0.11 starting\n", "is UTF-16 text", "iconv"),
])
def test_output_without_messages_is_named_with_what_is_missing_and_what_works(
    name: str, text: str, what: str, way: str, tmp_path: Path,
) -> None:
    file = tmp_path / name
    file.write_bytes(text.encode("utf-16-le" if name == "wide.log" else "utf-8"))
    done = mqttlab("import", "log", file, "--output", tmp_path / "run")
    assert done.returncode == 2
    assert f"{file}: {what}" in done.stderr
    assert way in done.stderr
    assert not (tmp_path / "run").exists()


def test_logs_of_two_tools_are_not_mixed(tmp_path: Path) -> None:
    one = fleet().save(tmp_path / "mosquitto.log")
    other = tmp_path / "emqx.log"
    other.write_text(emqx(0, "sent", "a", "PUBLISH(Q0, R0, D0, Topic=t, PacketId=undefined, Payload=x)"))
    done = mqttlab("import", "log", one, other, "--output", tmp_path / "run")
    assert done.returncode == 2
    assert "is a log of Mosquitto, and another file is a log of EMQX; import them one after the other" in done.stderr


def test_where_a_log_is_given_as_something_else_the_command_is_named(tmp_path: Path) -> None:
    file = fleet().save(tmp_path / "mosquitto.log")
    assert what_it_is(file) == f"is a broker's log; import it with: mqttlab import log {file}"
    done = mqttlab("import", "capture", file, "--output", tmp_path / "run")
    assert "it is a broker's log; import it with: mqttlab import log" in done.stderr


@contextlib.contextmanager
def broker(home: Path) -> Iterator[int]:
    """A Mosquitto; ``plain.log`` has its lines as they are, ``timed.log`` with a finer time before them."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = home / "mosquitto.conf"
    config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\nlog_type all\nlog_dest stderr\n"
                      "max_queued_messages 5\nlog_timestamp_format %Y-%m-%dT%H:%M:%S\n")
    running = subprocess.Popen([str(MOSQUITTO), "-c", str(config)], stderr=subprocess.PIPE, text=True)

    def take() -> None:
        assert running.stderr is not None
        with (home / "plain.log").open("w") as plain, (home / "timed.log").open("w") as timed:
            for line in running.stderr:
                plain.write(line)
                timed.write(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ} {line}")

    taking = threading.Thread(target=take)
    taking.start()
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.05)
        yield port
    finally:
        running.terminate()
        running.wait(timeout=20)
        taking.join(timeout=20)


@pytest.mark.live
@pytest.mark.skipif(not (MOSQUITTO and CLIENTS), reason="needs mosquitto, mosquitto_pub, mosquitto_sub")
def test_a_real_log_of_mosquitto_tells_what_its_clients_count(tmp_path: Path) -> None:
    with broker(tmp_path) as port:
        there = ["-h", "127.0.0.1", "-p", str(port)]

        def publish(name: str, qos: int, *words: str) -> None:
            subprocess.run(["mosquitto_pub", *there, "-i", name, "-q", str(qos), "-t", "s/x", *words], check=True,
                           timeout=30, input="\n".join(f"message {number}" for number in range(20)), text=True)

        keep = ["mosquitto_sub", *there, "-i", "kept-1", "-t", "s/#", "-q", "1", "-c"]
        subprocess.run([*keep, "-E"], check=True, timeout=30)
        reader = subprocess.Popen(["mosquitto_sub", *there, "-i", "reader-1", "-t", "s/x", "-q", "2", "-C", "60"],
                                  stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        for qos in (0, 1, 2):
            publish(f"sensor-{qos}", qos, "-l")
        read, _ = reader.communicate(timeout=30)
        kept = subprocess.run([*keep, "-W", "1"], capture_output=True, timeout=30, text=True, check=False).stdout
    for name in ("plain", "timed"):
        recording = imported(tmp_path / f"{name}.log", to=tmp_path / name)
        assert fates(recording, "reader-1") == {(qos, "delivered"): 20 for qos in (0, 1, 2)}
        assert len(read.splitlines()) == 60
        assert fates(recording, "kept-1").total() == 60
        delivered = sum(count for (_, fate), count in fates(recording, "kept-1").items() if fate == "delivered")
        assert delivered == len(kept.splitlines())
        assert 0 < delivered < 60
        p99 = [flow.latency["p99"].value for flow in metrics.headline(recording).flows if flow.subscribers == "reader"]
        assert all(value is None for value in p99) if name == "plain" else all(value is not None for value in p99)
