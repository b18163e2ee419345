"""What lies between TCP and MQTT: the scenario's words for it, the plan, and simulated runs."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import mqttlab
from mqttlab.errors import MqttlabError
from mqttlab.metrics import deliveries, setup
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import scenario as short

Values = dict[str, Any]
WEBSOCKET_PORT = 8083
# Of a masked and of an unmasked frame with less than 126 B, and with less than 64 KiB.
MASKED, BARE = (6, 8), (2, 4)


def scenario(transport: Any = "websocket", **changes: Any) -> Values:
    """Publishers and subscribers over a transport, 5 ms from their broker."""
    values = short(**changes)
    for group in values["groups"]:
        group["transport"] = copy.deepcopy(transport)
    return values


def coming_and_going(transport: Any) -> Values:
    """A client that is there for half of each second and says nothing, and a subscriber that hears nothing."""
    values = scenario(transport, rate="0.01 /s", phases={"warm_up": "0 s", "duration": "6 s"})
    for way in ("up", "down"):
        del values["networks"][0][way]["rate"]
    values["groups"][0]["churn"] = {"connects": "1 /s", "hold": "0.5 s"}
    values["groups"][1]["transport"] = {name: layer for name, layer in values["groups"][1]["transport"].items()
                                        if name != "websocket"} or "tcp"
    return values


def simulated(values: Values, directory: Path) -> Recording:
    outcome = perform(Job(compile_plan(parse_values({**values, "backend": "sim"})), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def opened(recording: Recording) -> dict[str, list[float]]:
    """How long each part of the clients' connections took to be opened, in milliseconds."""
    events = recording.events.filter(pl.col("kind").cast(pl.String) == "layer_open")
    parts = events.with_columns(pl.col("detail").str.split(" ").list.first().alias("part"))
    return {str(part): (rows["took_ns"] / 1e6).to_list() for (part,), rows in parts.group_by("part")}


def test_a_transport_is_a_word_or_a_table_and_becomes_a_listener() -> None:
    for transport in ("websocket", "ws", {"websocket": {}}, {"websocket": {"path": "/mqtt"}}):
        plan = compile_plan(parse_values(scenario(transport)))
        assert [group["transport"] for group in plan["groups"]] == [
            {"tcp": {"nodelay": False, "tls": None, "websocket": {"path": "/mqtt"}}}] * 2
        assert [(end["transport"], end["port"]) for end in plan["servers"][0]["endpoints"]] == [
            ("tcp", 1883), ("websocket", WEBSOCKET_PORT)]
    for transport in ("tcp", {"tcp": {}}, {}):
        plan = compile_plan(parse_values(scenario(transport)))
        assert [end["transport"] for end in plan["servers"][0]["endpoints"]] == ["tcp"]
    values = scenario("websocket", broker={"ports": {"websocket": 9001}})
    values["groups"][1] |= {"transport": "tcp", "nagle": False}
    plan = compile_plan(parse_values({**values, "backend": "live"}))
    assert plan["servers"][0]["endpoints"][1]["port"] == 9001
    process = plan["servers"][0]["process"]
    assert process is not None
    listener = "listener 9001 10.77.0.1\nmax_topic_alias 10\nprotocol websockets"
    assert listener in process["files"][0]["text"]
    assert plan["groups"][1]["transport"] == {"tcp": {"nodelay": True, "tls": None, "websocket": None}}


def test_tls_is_a_word_or_a_table_too_and_its_listener_has_the_certificates_of_the_run() -> None:
    defaults = {"version": "1.3", "resumption": True, "client_certificate": False}
    for transport in ("tls", "mqtts", {"tls": {}}, {"tls": {"version": "1.3"}}):
        plan = compile_plan(parse_values(scenario(transport)))
        assert [group["transport"] for group in plan["groups"]] == [
            {"tcp": {"nodelay": False, "tls": defaults, "websocket": None}}] * 2
        ends = [(end["transport"], end["port"]) for end in plan["servers"][0]["endpoints"]]
        assert ends == [("tcp", 1883), ("tls", 8883)]
    values = scenario("wss")
    values["groups"][1]["transport"] = {"tls": {"version": "1.2", "resumption": False}}
    plan = compile_plan(parse_values({**values, "backend": "live"}))
    websockets = [group["transport"]["tcp"]["websocket"] for group in plan["groups"]]  # type: ignore[index]
    assert websockets == [{"path": "/mqtt"}, None]
    process = plan["servers"][0]["process"]
    assert process is not None
    text = process["files"][0]["text"]
    for start in ("listener 8084 10.77.0.1\nmax_topic_alias 10\nprotocol websockets\n",
                  "listener 8883 10.77.0.1\nmax_topic_alias 10\n"):
        assert start + "cafile {directory}/tls/ca.pem\ncertfile {directory}/tls/server.pem\nkeyfile" in text
    assert text.count("require_certificate false") == 2
    assert "PRIVATE KEY" not in str(plan), "keys are made by the engine, and no plan has them"


@pytest.mark.parametrize(("backend", "change", "says"), [
    ("sim", {"client_certificate": True}, "says the opposite"),
    ("sim", {"version": "1.1"}, "1.2"),
    ("sim", {"resumtion": False}, "resumption"),
    ("live", {}, "the authority that clients trust"),
    ("live", {"client_certificate": True}, "does not know this run's certificates"),
])
def test_what_tls_cannot_be_is_named_with_the_remedy(backend: str, change: Values, says: str) -> None:
    values = scenario({"tls": {}}, broker={"kind": "external", "address": "127.0.0.1"} if backend == "live" else {})
    values["groups"][1]["transport"] = {"tls": change}
    with pytest.raises(MqttlabError) as caught:
        parse_values({**values, "backend": backend})
    assert says in str(caught.value) and "groups" in str(caught.value)


@pytest.mark.parametrize(("broker", "says"), [
    ({"kind": "external", "tls": {"authority": "nowhere.pem"}}, "\"nowhere.pem\", which is not there"),
    ({"kind": "external", "tls": {"authority": __file__}}, "which has no certificate"),
    ({"kind": "external", "tls": {"authority": "/"}}, "which is a directory"),
    ({"kind": "external", "tls": {}}, "authority"),
    ({"kind": "external", "tls": {"authority": __file__, "name": ""}}, "name"),
    ({"kind": "mosquitto", "tls": {"authority": __file__}}, "only for brokers of `kind = \"external\"`"),
])
def test_who_vouches_for_a_broker_is_checked_before_the_run(broker: Values, says: str) -> None:
    values = scenario("tls", broker=broker)
    values |= {"backend": "live", "network": "external"} if broker["kind"] == "external" else {}
    if broker["kind"] == "external":
        values["broker"]["address"] = "127.0.0.1"
    with pytest.raises(MqttlabError) as caught:
        parse_values(values)
    assert says in str(caught.value), caught.value


@pytest.mark.parametrize(("change", "says"), [
    ({"transport": "webscoket"}, "did you mean \"websocket\"?"),
    ({"transport": "quic"}, "known: tcp, websocket"),
    ({"transport": {"websocket": {"path": "mqtt"}}}, "must begin with `/`"),
    ({"transport": {"websocket": {"path": "/a b"}}}, "without blanks"),
    ({"transport": {"tcp": {"nagle": True}}, "nagle": False}, "`transport.tcp` and `nagle`"),
])
def test_a_wrong_transport_is_named_with_the_nearest_right_one(change: Values, says: str) -> None:
    values = scenario()
    values["groups"][0] |= change
    with pytest.raises(MqttlabError) as caught:
        parse_values(values)
    assert says in str(caught.value) and "groups" in str(caught.value)


def test_layers_begin_at_a_client_and_end_at_a_broker_on_a_port_of_their_own() -> None:
    with pytest.raises(MqttlabError, match=r"ports\.websocket.*is 1883"):
        parse_values(scenario(broker={"ports": {"websocket": 1883}}))
    proxied = scenario(servers=[{"name": "proxy", "role": "proxy", "kind": "program", "passes_to": "broker",
                                 "program": {"command": ["true"]}}], broker={})
    for group in proxied["groups"]:
        group["connects_to"] = "proxy"
    with pytest.raises(MqttlabError, match="which passes on MQTT over plain TCP"):
        parse_values(proxied)


def test_a_simulated_upgrade_takes_a_round_trip_two_passes_of_the_broker_and_its_bytes(tmp_path: Path) -> None:
    plain, layered = (simulated(scenario(kind), tmp_path / kind) for kind in ("tcp", "websocket"))
    assert opened(plain) == {}
    took = opened(layered)
    assert set(took) == {"tcp", "websocket"} and [len(times) for times in took.values()] == [2, 2]
    # A round trip is 10 ms and a bit each. The idle broker accepts within 100 ms, and hears the request 100 ms later.
    assert all(10 <= time < 12 for time in took["tcp"]), took
    assert all(110 <= time < 212 for time in took["websocket"]), took
    connack = pl.col("kind").cast(pl.String) == "connack"
    waits = [recording.events.filter(connack)["took_ns"].median() for recording in (plain, layered)]
    assert 110e6 <= float(waits[1]) - float(waits[0]) < 212e6  # type: ignore[arg-type]
    ports = {int(port) for name in ("source_port", "destination_port") for port in layered.packets[name].unique()
             } if "source_port" in layered.packets.columns else {WEBSOCKET_PORT}
    assert WEBSOCKET_PORT in ports
    # 111 B: PUBLISH with a topic of one letter at QoS 1, 100 B of message; HTTP takes its way before all packets.
    first = layered.control_packets.filter(pl.col("kind").cast(pl.String) == "CONNECT")["stream_start"]
    assert first.min() > 150  # type: ignore[operator]


@pytest.mark.parametrize(("transport", "round_trips", "passes"), [
    ({"tls": {"version": "1.3"}}, {"tcp": 1, "tls": 1}, {}),
    ({"tls": {"version": "1.2"}}, {"tcp": 1, "tls": 2}, {}),
    ({"tls": {"version": "1.2", "client_certificate": True}, "websocket": {}}, {"tcp": 1, "tls": 2, "websocket": 1},
     {"tls": 2, "websocket": 1}),
])
def test_a_simulated_handshake_takes_its_round_trips(
    transport: Values, round_trips: dict[str, int], passes: dict[str, int], tmp_path: Path
) -> None:
    recording = simulated(scenario(transport), tmp_path / "run")
    took = opened(recording)
    assert set(took) == set(round_trips)
    for part, times in took.items():
        # A round trip of 10 ms, at 10 Mbit/s some ms for handshakes, and 100 ms at most for each pass of the broker.
        least, most = 10 * round_trips[part], 10 * round_trips[part] + 5 + 100 * passes.get(part, 0)
        assert all(least <= time < most for time in times), (part, times)
    said = recording.events.filter(pl.col("detail").cast(pl.String).str.starts_with("tls"))["detail"].to_list()
    version = transport["tls"]["version"]
    suite = {"1.3": "TLS13_AES_256_GCM_SHA384", "1.2": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"}[version]
    assert said == [f"tls TLSv{version} full {suite}"] * 2
    row = setup(recording).row(0, named=True)
    assert row["connect_tls_ms_p50"] == pytest.approx(took["tls"][0], abs=1)
    assert row["connect_tls_resumed_ms_p50"] is None
    assert row["connect_ms_p50"] >= 10 * (sum(round_trips.values()) + 1)


@pytest.mark.parametrize(("resumption", "version"), [(True, "1.3"), (True, "1.2"), (False, "1.3")])
def test_who_connects_again_resumes_its_session_if_it_may(resumption: bool, version: str, tmp_path: Path) -> None:
    values = scenario({"tls": {"version": version, "resumption": resumption}}, qos=1, mqtt={"keep_alive": "1 s"},
                      up={"loss": "60 %"}, rate="5 /s", subscriber={"count": 5})
    values["phases"]["duration"] = "20 s"
    recording = simulated(values, tmp_path / "run")
    again = opened(recording)["tls"][6:]
    words = recording.events.filter(pl.col("kind").cast(pl.String) == "layer_open")["detail"].cast(pl.String)
    resumed = int(words.str.contains(" resumed ").sum())
    assert len(again) > 10 and (resumed > 10 if resumption else resumed == 0), words.to_list()
    row = setup(recording).row(0, named=True)
    assert (row["connect_tls_resumed_ms_p50"] is not None) == resumption
    cut = cut_off(recording, {"1.3": 22, "1.2": 29}[version])
    for direction, bytes_of in counted(recording, "direction").items():
        rest = bytes_of["tcp_payload_unique_bytes"] - bytes_of["tls_bytes"] - bytes_of["mqtt_bytes"]
        assert rest == cut[direction], (direction, rest, cut)


def cut_off(recording: Recording, record: int) -> dict[str, int]:
    """The bytes of packets that the end of a connection cut off within a segment, by direction: they are of no whole
    packet. ``record`` is what a record adds; the simulator counts that first."""
    offset, side = pl.col("stream_offset").cast(pl.Int64), pl.col("direction").cast(pl.String)
    of = pl.when(side == "up").then(pl.lit("to_broker")).otherwise(pl.lit("to_client")).alias("of")
    sent = recording.packets.filter(pl.col("payload_bytes") > 0).group_by("connection", of).agg(
        (offset + pl.col("payload_bytes").cast(pl.Int64)).max().alias("end"))
    packets = recording.control_packets.with_columns(side.alias("of")).join(sent, on=["connection", "of"])
    cut = packets.filter((pl.col("stream_start") < pl.col("end")) & (pl.col("stream_end") > pl.col("end")))
    parts = (pl.col("end") - pl.col("stream_start") - record).clip(0)
    return {way: cut.filter(pl.col("of") == way).select(parts.sum()).item() for way in ("to_broker", "to_client")}


@pytest.mark.parametrize("payload", ["0 B", "100 B", "20 kB"])
def test_each_packet_is_sealed_in_records_of_its_own(payload: str, tmp_path: Path) -> None:
    for version, record in (("1.3", 22), ("1.2", 29)):
        values = scenario({"tls": {"version": version}}, payload=payload, publish={"rate": "10 /s"})
        packets = simulated(values, tmp_path / version).control_packets
        own = sum(pl.col(f"{part}_bytes") for part in ("fixed_header", "topic", "packet_id", "property", "payload"))
        added = packets.select(own.alias("own"), added=(
            pl.col("stream_end").cast(pl.Int64) - pl.col("stream_start").cast(pl.Int64) - own.cast(pl.Int64)))
        records = (pl.col("own") - 1) // 16384 + 1
        assert added.filter(pl.col("added") != records * record).is_empty(), added


@pytest.mark.parametrize(("payload", "publisher", "subscriber", "waits_ms"), [
    ("4000 B", "websocket", "websocket", 0), ("5 kB", "websocket", "tcp", 0), ("5 kB", "tcp", "websocket", 100),
    ("5 kB", "websocket", "websocket", 200), ("9 kB", "tcp", "websocket", 200), ("5 kB", "tcp", "wss", 100),
])
def test_what_libwebsockets_leaves_waits_for_the_next_pass_of_an_idle_broker(
    payload: str, publisher: str, subscriber: str, waits_ms: int, tmp_path: Path,
) -> None:
    """Measured with Mosquitto 2.0.11: the waits of 5 kB are 0, 100 and 200 ms."""
    values = scenario(qos=0, payload=payload, rate="2 /s")
    for way in ("up", "down"):
        del values["networks"][0][way]["rate"]  # all segments come at once
    for group, transport in zip(values["groups"], (publisher, subscriber), strict=True):
        group["transport"] = transport
    latencies = deliveries(simulated(values, tmp_path / "run"))["latency_ms"].to_list()
    assert latencies and all(10 + waits_ms <= latency < 13 + waits_ms for latency in latencies), latencies


@pytest.mark.parametrize(("layers", "waits_ms"), [
    ({"websocket": {}}, {"websocket": 190.7}), ({"websocket": {}, "tls": {}}, {"tls": 91.5, "websocket": 190.7}),
])
def test_a_new_connection_waits_for_passes_of_an_idle_broker(
    layers: Values, waits_ms: dict[str, float], tmp_path: Path,
) -> None:
    """Measured with Mosquitto 2.0.11, to which nobody said anything since the last client left 500 ms before."""
    took = opened(simulated(coming_and_going(layers), tmp_path / "run"))
    for part, waits in waits_ms.items():
        # Mosquitto itself takes a millisecond for keys.
        assert all(abs(10 + waits - time) < 2 for time in took[part][2:5]), took


@pytest.mark.parametrize(("layers", "qos", "ways"), [
    ({"websocket": {}}, 0, 2), ({"websocket": {}}, 1, 2), ({"websocket": {}}, 2, 6),
    ({"websocket": {}, "tls": {}}, 0, 2), ({"websocket": {}, "tls": {}}, 1, 2),
])
def test_an_idle_broker_writes_all_whole_packets_that_wait_in_one_pass(
    layers: Values, qos: int, ways: int, tmp_path: Path,
) -> None:
    """Seen with strace of Mosquitto 2.0.11: one pass answers 20 PUBLISH by 20 PUBREC, each with a call of its own."""
    # So few segments fit into the first window; the last of an odd number of records is read before the pass writes.
    bursts = {"arrival": "burst", "burst": {"size": 5, "every": "900 ms"}}
    values = scenario({"tcp": {"nagle": False}, **layers}, qos=qos, payload="10 B", publish=bursts)
    for way in ("up", "down"):
        del values["networks"][0][way]["rate"]
    latencies = deliveries(simulated(values, tmp_path / "run"))["latency_ms"].to_list()
    assert len(latencies) >= 5, str(latencies)
    assert all(5 * ways <= latency < 5 * ways + 3 for latency in latencies), str(latencies)


def test_a_busy_broker_writes_parts_at_once_and_each_is_a_segment(tmp_path: Path) -> None:
    # The second message of each pair has come with the first one: there is data for another pass.
    pairs = {"arrival": "burst", "burst": {"size": 2, "every": "400 ms"}}
    values = scenario(qos=0, payload="5 kB", link={"rate": "1 Gbit/s"}, publish=pairs)
    values["groups"][0]["transport"] = "tcp"
    values["groups"][1] |= {"host": "broker"}
    recording = simulated(values, tmp_path / "run")
    sent = recording.packets.filter((pl.col("link") == "loopback") & (pl.col("payload_bytes") > 1000))
    assert set(sent["payload_bytes"]) == {4116}
    assert min(deliveries(recording)["latency_ms"]) < 10


@pytest.mark.parametrize("payload", ["0 B", "100 B", "200 B", "70 kB", "1 MB"])
def test_a_frame_adds_its_header_and_its_mask_to_each_packet(payload: str, tmp_path: Path) -> None:
    # A megabyte takes libwebsockets 245 passes of the broker, up to 24 s.
    rate, messages = ("1 /s", 1) if payload == "1 MB" else ("10 /s", 10)
    values = scenario(payload=payload, link={"rate": "1 Gbit/s"}, publish={"rate": rate})
    values["phases"]["cool_down"] = "30 s"
    recording = simulated(values, tmp_path / "run")
    packets = recording.control_packets
    own = sum(pl.col(f"{part}_bytes") for part in ("fixed_header", "topic", "packet_id", "property", "payload"))
    added = packets.select(
        pl.col("direction").cast(pl.String), own.alias("own"),
        added=(pl.col("stream_end").cast(pl.Int64) - pl.col("stream_start").cast(pl.Int64) - own.cast(pl.Int64)))
    header = pl.when(pl.col("own") < 126).then(2).when(pl.col("own") < 65536).then(4).otherwise(10)
    mask = pl.when(pl.col("direction") == "to_broker").then(4).otherwise(0)
    assert added.filter(pl.col("added") != header + mask).is_empty(), added
    assert deliveries(recording).height == messages
    assert packets["complete_ns"].is_not_null().all()


@pytest.mark.parametrize("transport", ["websocket", "tls", "wss"])
def test_bytes_of_tcp_are_those_of_mqtt_and_those_of_layers(transport: str, tmp_path: Path) -> None:
    # Segments of 536 B cut frames everywhere, and some are sent again.
    values = scenario(transport, qos=1, payload="700 B", link={"loss": "2 %"}, rate="100 /s", mtu="576 B")
    recording = simulated(values, tmp_path / "run")
    for scope in ("run", "direction"):
        rows = counted(recording, scope)
        assert rows
        for bytes_of in rows.values():
            assert (bytes_of["tls_bytes"] > 0) == (transport != "websocket")
            assert (bytes_of["websocket_bytes"] > 0) == (transport != "tls")
            layers = bytes_of["tls_bytes"] + bytes_of["websocket_bytes"]
            assert layers + bytes_of["mqtt_bytes"] == bytes_of["tcp_payload_unique_bytes"]


def counted(recording: Recording, scope: str) -> dict[str, dict[str, float]]:
    """What the analyser counted, by direction and name."""
    rows = recording.network_metrics.with_columns(pl.col("scope", "direction", "metric").cast(pl.String))
    rows = rows.filter(pl.col("scope") == scope)
    found: dict[str, dict[str, float]] = {}
    for direction, name, value in rows.select("direction", "metric", "value").rows():
        found.setdefault(str(direction), {})[name] = value
    return found


def test_the_same_plan_over_websocket_gives_the_same_recording(tmp_path: Path) -> None:
    found = [simulated(scenario(link={"loss": "3 %"}), tmp_path / str(number)) for number in range(2)]
    assert found[0].packets.equals(found[1].packets) and found[0].control_packets.equals(found[1].control_packets)


def test_a_client_that_loses_its_connection_opens_its_layers_again(tmp_path: Path) -> None:
    # Nothing crosses for longer than the broker waits for a sign of life.
    values = scenario(qos=1, mqtt={"keep_alive": "1 s"}, up={"loss": "60 %"}, rate="5 /s")
    values["phases"]["duration"] = "20 s"
    recording = simulated(values, tmp_path / "run")
    kinds = recording.events["kind"].cast(pl.String)
    again = int((kinds == "reconnect").sum())
    assert len(opened(recording)["websocket"]) > 2 if again else True
    assert len(opened(recording)["tcp"]) >= len(opened(recording)["websocket"])


@pytest.mark.parametrize("backend", ["sim", pytest.param("live", marks=pytest.mark.live)])
def test_from_connecting_to_the_first_message_is_known_of_both_backends_and_of_a_capture(
    backend: str, tmp_path: Path
) -> None:
    values = scenario("tcp", rate="1 /s", qos=1, phases={"warm_up": "0 s", "duration": "4 s"}, backend=backend)
    outcome = perform(Job(compile_plan(parse_values(values)), tmp_path / "run"), lambda line: None)
    assert (tmp_path / "run" / "run.json").exists(), outcome.reason
    for command in (("export", tmp_path / "run", "--pcapng", tmp_path / "run.pcapng"),
                    ("import", "capture", tmp_path / "run.pcapng", "--output", tmp_path / "again")):
        assert mqttlab(*command).returncode == 0
    for name in ("run", "again"):
        found = setup(Recording.open(tmp_path / name)).row(0, named=True)
        # Two round trips of 10 ms until the CONNACK, a way of 10 ms over the broker, and back for the PUBACK.
        assert 20 <= found["connect_ms_p50"] < found["connect_to_delivered_ms_p50"]
        assert found["connect_to_acknowledged_ms_p50"] >= 30
        # A message is due a second after the last: that the client waits for it does not count.
        assert 30 <= found["connect_to_delivered_ms_p50"] < 500
