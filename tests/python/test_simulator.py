"""The simulator, from scenario to recording: exact times, conservation, every knob, and how it ends."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import mqttlab
from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.runs import Job, Outcome, perform
from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.load import parse_values
from mqttlab.scenario.model import Tcp

MS = 10**6


def scenario(
    *, qos: int = 0, link: dict[str, Any] | None = None, tcp: dict[str, Any] | None = None, payload: str = "100 B",
    **changes: Any,
) -> dict[str, Any]:
    """A publisher and a subscriber, 10 ms from the broker; ``changes`` replace whole parts."""
    hosts = {name: {"tcp": tcp or {"profile": "linux"}} for name in ("publisher", "subscriber", "broker")}
    line = {"delay": "10 ms", **(link or {})}
    values: dict[str, Any] = {
        "name": "sim", "backend": "sim", "phases": {"duration": "5 s", "cool_down": "5 s"},
        "sim": {"client_wake_up": "0 s"},
        "mqtt": {"keep_alive": "0 s"},
        "broker": {"nagle": False, "service": {"per_packet": "0 s", "per_copy": "0 s"}},
        "hosts": hosts,
        "networks": [{"between": [name, "broker"], "up": line, "down": line} for name in ("publisher", "subscriber")],
        "groups": [
            {"name": "publisher", "host": "publisher", "nagle": False,
             "publish": {"topic": "t", "qos": qos, "payload": payload, "rate": "20 /s"}},
            {"name": "subscriber", "host": "subscriber", "nagle": False, "subscribe": [{"filter": "t", "qos": qos}]},
        ],
    }
    values.update(changes)
    return values


def run(values: dict[str, Any], directory: Path) -> tuple[Outcome, Recording]:
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda event: None)
    return outcome, Recording.open(directory)


def latencies_ms(recording: Recording) -> list[float]:
    return metrics.deliveries(recording)["latency_ms"].to_list()


def mean_ms(values: dict[str, Any], directory: Path) -> float:
    latencies = latencies_ms(run(values, directory)[1])
    return sum(latencies) / len(latencies)


@pytest.mark.parametrize(("qos", "crossings"), [(0, 2), (1, 2), (2, 6)])
def test_an_empty_network_takes_exactly_its_delays(qos: int, crossings: int, tmp_path: Path) -> None:
    # At QoS 2 the broker forwards at the PUBREL and the subscriber delivers at its own.
    _, recording = run(scenario(qos=qos), tmp_path / "run")
    assert set(latencies_ms(recording)) == {crossings * 10.0}


def test_serialisation_adds_the_bits_of_the_frame_over_the_rate(tmp_path: Path) -> None:
    _, recording = run(scenario(link={"rate": "1 Mbit/s", "overhead": "14 B"}), tmp_path / "run")
    # PUBLISH: 2 + 2 + 1 + 100 bytes, TCP with timestamps 32, IPv4 20, Ethernet 14.
    expected = 2 * (10 + (105 + 32 + 20 + 14) * 8 / 1e6 * 1e3)
    assert latencies_ms(recording) == pytest.approx([expected] * 100, abs=1e-6)


def equal_text(path: Path) -> bytes:
    """A file's bytes; JSON without what may differ between equal recordings: identifier, machine, directory, times."""
    if path.suffix != ".json":
        return path.read_bytes()
    value = json.loads(path.read_text(encoding="utf-8"))
    # The checks of what has these.
    for name in ("plan.json", "layout.json", "run.json"):
        value.get("checks", {}).pop(name, None)
    for name in ("run_id", "machine", "directory", "started_at", "started_unix_ns", "plan_sha256"):
        value.pop(name, None)
    return json.dumps(value).encode()


def test_the_same_plan_leaves_the_same_bytes(tmp_path: Path) -> None:
    values = scenario(qos=1, link={"loss": "5 %", "rate": "1 Mbit/s"})
    contents = []
    for _ in range(2):
        run(values, tmp_path / "run")
        contents.append({path.name: equal_text(path) for path in sorted((tmp_path / "run").iterdir())})
        shutil.rmtree(tmp_path / "run")
    assert contents[0].keys() == contents[1].keys()
    assert [name for name in contents[0] if contents[0][name] != contents[1][name]] == []
    _, other = run({**values, "seed": 2}, tmp_path / "run")
    assert other.table("packets").filter(pl.col("fate") == "dropped").height > 0
    assert (tmp_path / "run" / "messages.parquet").read_bytes() != contents[0]["messages.parquet"]


def test_nothing_is_lost_that_is_not_accounted_for(tmp_path: Path) -> None:
    values = scenario(qos=1, link={"loss": "10 %", "rate": "500 kbit/s", "queue": "20 packets"})
    _, recording = run(values, tmp_path / "run")
    by_fate = dict(recording.messages.group_by("fate").len().iter_rows())
    assert by_fate == {"delivered": 100}
    packets = recording.packets
    links = packets.group_by("link", "fate").len()
    assert links["len"].sum() == packets.height
    for (link,), frames in packets.group_by("link"):
        seconds = (frames["entered_ns"].max() - frames["entered_ns"].min()) / 1e9  # type: ignore[operator]
        bits = 8 * frames.filter(pl.col("sent_ns").is_not_null())["frame_bytes"].sum()
        assert bits <= 500_000 * (seconds + 1), link
    taken = packets.filter(pl.col("delivered_ns").is_not_null())
    assert (taken["delivered_ns"] - taken["entered_ns"]).min() >= 10 * MS  # type: ignore[operator]
    sent = recording.control_packets.filter(pl.col("kind") == "PUBLISH", pl.col("direction") == "to_broker")
    assert sent.filter(~pl.col("dup")).height == 100


def test_one_message_in_flight_is_one_a_round_trip(tmp_path: Path) -> None:
    values = scenario(qos=1, mqtt={"keep_alive": "0 s", "max_inflight": 1})
    values["groups"][0]["publish"] = {"topic": "t", "qos": 1, "payload": "100 B", "arrival": "back-to-back"}
    _, recording = run(values, tmp_path / "run")
    # 5 s at 20 ms each.
    assert 249 <= len(latencies_ms(recording)) <= 251


def test_a_full_queue_in_the_broker_drops_and_says_so(tmp_path: Path) -> None:
    values = scenario(qos=1, broker={"nagle": False, "max_inflight": 1, "max_queued": 3})
    values["groups"][0]["publish"]["rate"] = "200 /s"
    _, recording = run(values, tmp_path / "run")
    dropped = recording.run["details"]["dropped_by_broker"]
    assert dropped > 500
    lost = recording.messages.filter(pl.col("fate") == "lost")
    # The last ones too, which no later message has overtaken.
    assert lost["cause"].to_list() == ["queue_full"] * dropped


def test_a_broken_connection_is_opened_again_and_nothing_of_qos_1_is_lost(tmp_path: Path) -> None:
    values = scenario(qos=1, mqtt={"keep_alive": "1 s", "clean_session": False},
                      link={"loss": "25 %"}, phases={"duration": "60 s", "cool_down": "600 s"})
    for group in values["groups"]:
        group["reconnect"] = {"initial": "100 ms", "maximum": "1 s", "timeout": "10 s"}
    _, recording = run(values, tmp_path / "run")
    kinds = dict(recording.events.group_by("kind").len().iter_rows())
    assert kinds.get("disconnect", 0) > 0, "the scenario's bursts must break a connection"
    assert kinds.get("reconnect", 0) >= kinds["disconnect"]
    assert recording.messages.filter(pl.col("fate") == "lost").height == 0


def test_a_client_that_counts_silence_pings_although_it_sends(tmp_path: Path) -> None:
    # At QoS 0 a publisher hears nothing: who counts what it has sent never has to ask.
    asked = {}
    for ping in ("sent", "silence"):
        values = scenario(mqtt={"keep_alive": "5 s", "ping": ping}, phases={"duration": "18 s", "cool_down": "1 s"})
        values["groups"][1]["mqtt"] = {"keep_alive": "0 s"}
        _, recording = run(values, tmp_path / ping)
        asked[ping] = recording.control_packets.filter(pl.col("kind") == "PINGREQ").height
        assert recording.events.filter(pl.col("kind") == "disconnect").is_empty()
    assert asked == {"sent": 0, "silence": 3}


def test_the_broker_repeats_by_the_clock_where_it_is_told_to(tmp_path: Path) -> None:
    repeated = {}
    for retry in (None, "15 ms"):
        values = scenario(qos=1, broker={"nagle": False, "retry": retry} if retry else {"nagle": False})
        _, recording = run(values, tmp_path / str(retry))
        packets = recording.control_packets.filter(pl.col("kind") == "PUBLISH", pl.col("dup"))
        repeated[retry] = dict(packets.group_by("direction").len().iter_rows())
        # Repetitions are no further deliveries.
        assert metrics.application(recording)["messages_delivered"][0] == 100
    assert repeated[None] == {}
    # Its round trip is 20 ms and more; the client has no such clock.
    assert list(repeated["15 ms"]) == ["to_client"] and repeated["15 ms"]["to_client"] >= 100


def test_a_run_stops_when_the_mean_is_known_or_everybody_has_enough(tmp_path: Path) -> None:
    jitter = {"jitter": "2 ms", "distribution": "normal"}
    values = scenario(link=jitter, phases={"duration": "1000 s", "cool_down": "1 s"},
                      sim={"stop": {"relative_accuracy": "1 %"}, "detect_transient": True, "client_wake_up": "0 s"})
    _, accurate = run(values, tmp_path / "accurate")
    phases = accurate.run["details"]["phases"]
    assert phases["stopped"] and phases["mean_latency_relative_accuracy"] <= 0.01
    assert phases["measure_until_ns"] < 900 * 10**9
    assert metrics.application(accurate)["latency_ms_mean"][0] == pytest.approx(20, rel=0.03)
    values["sim"] = {"stop": {"messages_per_subscriber": 400}}
    _, counted = run(values, tmp_path / "counted")
    assert 400 <= metrics.application(counted)["messages_delivered"][0] <= 402


KNOBS: dict[str, tuple[Any, Any]] = {
    "nagle": (False, True),
    "rto_min": ("30 ms", "1 s"),
    "rto_max": ("700 ms", "60 s"),
    "delayed_ack": (False, True),
    "delayed_ack_max": ("20 ms", "150 ms"),
    "mss": ("300 B", "536 B"),
    "initial_window": (1, 10),
    "sack": (False, True),
    "timestamps": (False, True),
    "window_scaling": (False, True),
    "congestion_control": ("reno", "cubic"),
    "send_buffer": ("4096 B", "1 MB"),
    "receive_buffer": ("4096 B", "1 MB"),
    "tail_loss_probe": (False, True),
    "ecn": (False, True),
    "syn_retries": (0, 6),
    "syn_linear_retries": (0, 4),
}
# A stack without selective acknowledgements has no use for a probe of the tail (RFC 8985 §7.2), and a buffer behind a
# window that is narrower is never full. A window of four segments is no queue that CoDel would mark.
NEEDS = {"tail_loss_probe": {"sack": True}, "send_buffer": {"receive_buffer": "64 kB"},
         "ecn": {"send_buffer": "64 kB", "receive_buffer": "64 kB"}}


# NetBSD's stack of 2005 knows no ECN, and `check` refuses it.
TURNED = [(knob, profile) for knob in KNOBS for profile in ("linux", "netbsd-2005", "microcontroller")
          if (knob, profile) != ("ecn", "netbsd-2005")]


@pytest.mark.parametrize(("knob", "profile"), TURNED)
def test_every_knob_of_tcp_moves_a_number_on_every_stack(knob: str, profile: str, tmp_path: Path) -> None:
    seen = []
    for value in KNOBS[knob]:
        tcp = {"profile": profile, **NEEDS.get(knob, {}), **({} if knob == "nagle" else {knob: value})}
        syn = knob.startswith("syn")
        link = {"loss": "70 %" if syn else "10 %" if knob.startswith(("rto", "tail")) else "3 %", "rate": "4 Mbit/s"}
        if knob == "ecn":
            link = {"rate": "100 kbit/s", "discipline": {"kind": "codel", "target": "60 ms", "ecn": True}}
        case = {**scenario(qos=1, tcp=tcp, payload="5 kB", link=link), **({"mtu": "576 B"} if knob == "ecn" else {})}
        case["phases"] = {"duration": "2 s", "connect_timeout": "20 s", "cool_down": "2 s"}
        if knob == "nagle":
            case["broker"]["nagle"] = value
            case["groups"][0]["publish"].update(payload="100 B", rate="200 /s")
        _, recording = run(case, tmp_path / str(len(seen)))
        network = recording.network_metrics.filter(pl.col("scope") == "run")
        seen.append((latencies_ms(recording), network["value"].to_list()))
    assert seen[0] != seen[1]


def test_every_field_of_tcp_is_turned() -> None:
    assert set(Tcp.model_fields) - {"profile"} == set(KNOBS) - {"nagle"}


def test_the_broker_works_as_long_as_it_is_told_to(tmp_path: Path) -> None:
    service = {"per_packet": "2 ms", "per_copy": "1 ms"}
    assert mean_ms(scenario(broker={"nagle": False, "service": service}), tmp_path / "run") == pytest.approx(23.0)


def test_the_broker_sends_a_window_for_the_oldest_acknowledgement_as_mosquitto_does(tmp_path: Path) -> None:
    # Live, Mosquitto 2.0.11 took 16 to 18 ms. A window that bounds what is in flight makes every round wait for a
    # delayed acknowledgement, 60 ms; one crossing of both links takes 10 ms.
    values = scenario(qos=1, link={"delay": "5 ms", "rate": "10 Mbit/s"}, broker={}, mqtt={"max_inflight": 20})
    del values["sim"]
    for group in values["groups"]:
        del group["nagle"]
    values["groups"][0]["publish"] = {"topic": "t", "qos": 1, "payload": "200 B", "arrival": "back-to-back"}
    assert 10 < mean_ms(values, tmp_path / "run") < 25


RADIO = {"standard": "b-11", "positions": [["0 m", "0 m"], ["20 m", "0 m"], ["0 m", "20 m"]]}


def radio(**changes: Any) -> dict[str, Any]:
    """The same three on a radio channel."""
    values = scenario()
    del values["networks"]
    return {**values, "radio": {**RADIO, **changes}}


def test_stations_in_range_deliver_overhear_and_draw_current(tmp_path: Path) -> None:
    _, recording = run(radio(), tmp_path / "run")
    assert metrics.application(recording)["messages_delivered"][0] == 100
    stations = {station["host"]: station for station in recording.run["details"]["stations"]}
    assert all(station["energy_j"] > 1 for station in stations.values())
    # All traffic is the broker's own; publisher and subscriber hear each other's.
    assert stations[0]["frames_overheard"] == 0
    assert stations[1]["frames_overheard"] > 100 and stations[2]["frames_overheard"] > 100
    total = stations[1]["transmit_s"] + stations[1]["receive_s"] + stations[1]["idle_s"]
    assert 5 < total < 11
    announced = run(radio(rts_threshold="0 B"), tmp_path / "rts")[1]
    assert sum(s["rts_sent"] for s in announced.run["details"]["stations"]) > 200
    assert metrics.application(announced)["latency_ms_mean"][0] > metrics.application(recording)["latency_ms_mean"][0]


def test_a_station_out_of_reach_connects_to_nobody(tmp_path: Path) -> None:
    far = [["0 m", "0 m"], ["20 m", "0 m"], ["0 m", "90 km"]]
    values = radio(positions=far)
    values["phases"] = {"duration": "1 s", "connect_timeout": "3 s", "cool_down": "1 s"}
    outcome, recording = run(values, tmp_path / "run")
    assert "1 of 2 clients had not connected" in outcome.warnings[0]
    causes = recording.packets.filter(pl.col("fate") == "dropped")["cause"].unique().to_list()
    assert causes == ["unreachable"]


def test_fifty_moving_stations_reach_the_broker_through_an_access_point(tmp_path: Path) -> None:
    cable = {"rate": "100 Mbit/s", "delay": "1 ms"}
    values = {
        "name": "moving", "backend": "sim", "phases": {"duration": "20 s", "cool_down": "20 s"},
        "hosts": {"vehicle": {"count": 50}},
        "radio": {"standard": "g-54", "area": "60 m x 60 m", "mobility": {"speed": ["1 m/s", "15 m/s"]},
                  "access_point": True},
        "trunk": {"up": cable, "down": cable},
        "groups": [{"name": "v", "host": "vehicle", "count": 50, "subscribe": [{"filter": "all/0", "qos": 1}],
                    "publish": {"topic": "all/{client}", "qos": 1, "payload": "gps", "rate": "1 /s"}}],
    }
    _, recording = run(values, tmp_path / "run")
    row = metrics.application(recording).row(0, named=True)
    assert row["messages_sent"] == 1000 and row["messages_lost"] == 0
    assert recording.table("packets")["hops"].max() == 2


def test_attribution_and_reports_read_a_simulated_run_like_any_other(tmp_path: Path) -> None:
    from mqttlab.report import write_html

    _, recording = run(scenario(qos=2, link={"loss": "5 %"}), tmp_path / "run")
    page = write_html(recording, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<html" in page and "plotly" in page.lower()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hosts": {"broker": {"forwards": True}}}, "cannot run on a router"),
        ({"radio": {}}, "cannot be used together"),
        ({"networks": [], "radio": {"access_point": True}}, "needs a [trunk]"),
        ({"networks": [], "radio": {"positions": [["0 m", "0 m"]]}}, "but there are 3 hosts"),
        ({"networks": [], "radio": {"transmit_power": "20 W"}}, "dBm"),
    ],
)
def test_radio_mistakes_are_refused_in_words(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError) as refusal:
        parse_values(scenario(**changes))
    assert words in str(refusal.value)


def test_what_only_the_kernel_knows_is_refused() -> None:
    with pytest.raises(ScenarioError) as refusal:
        parse_values(scenario(tcp={"profile": "linux", "congestion_control": "bbr"}))
    assert "which only live runs have; use cubic or reno" in str(refusal.value)


def test_an_interrupted_simulation_keeps_what_it_has_and_says_so(tmp_path: Path) -> None:
    values = scenario(qos=1, phases={"duration": "500000 s", "cool_down": "1 s"})
    job = Job(compile_plan(parse_values(values)), tmp_path / "run")
    from mqttlab.engine import engine_path

    engine = subprocess.Popen([engine_path(), *job.arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert engine.stdin is not None and engine.stdout is not None
    engine.stdin.write(job.text)
    engine.stdin.close()
    for line in engine.stdout:
        if json.loads(line).get("sent", 0) > 1000:
            break
    engine.send_signal(signal.SIGINT)
    last = json.loads(engine.stdout.read().splitlines()[-1])
    assert engine.wait(120) == 3
    assert "SIGINT" in last["reason"]
    recording = Recording.open(tmp_path / "run")
    assert not recording.complete
    assert recording.messages.height > 1000 and recording.table("packets").height > 1000


def test_the_command_line_runs_it(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text("""
name = "small"
[phases]
duration = "1 s"
[[networks]]
between = ["field", "broker"]
model = "satcom"
[[groups]]
name = "both"
host = "field"
publish = { topic = "t", payload = "10 B", rate = "5 /s" }
subscribe = ["t"]
""", encoding="utf-8")
    done = mqttlab("run", path, "--backend", "sim", "--runs", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    assert "simulated" in done.stdout
