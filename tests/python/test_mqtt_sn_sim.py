"""MQTT-SN in virtual time: datagrams on the links, gateways as models, and what is recorded of both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.metrics import deliveries
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from test_mqtt_sn import beside_the_gateway, scenario

MODES = ("transparent", "aggregating")


def simulated(values: dict[str, Any], directory: Path) -> Recording:
    outcome = perform(Job(compile_plan(parse_values({**values, "backend": "sim"})), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_pass_both_ways_through_a_simulated_gateway(mode: str, qos: int, tmp_path: Path) -> None:
    recording = simulated(scenario(mode=mode, qos=qos), tmp_path / "run")
    found = deliveries(recording)
    by_group = found.group_by(pl.col("subscriber_group").cast(pl.String)).agg(
        pl.len(), pl.col("latency_ms").min()).sort("subscriber_group")
    assert by_group.select("subscriber_group", "len").rows() == [("back", 60), ("office", 60)]
    back, office = by_group["latency_ms"]
    # 5 ms on each link: three of them, or two and back again. At QoS 2 PUBREC and PUBREL cross each leg, too.
    to_broker = 10 + (20 if qos == 2 and mode == "transparent" else 0)
    assert to_broker + 5 + (10 if qos == 2 else 0) <= office < (60 if qos == 2 else 16)
    assert to_broker + 10 + (10 if qos == 2 else 0) <= back < (100 if qos == 2 else 21)
    refused = recording.events.filter(pl.col("kind").is_in(["refused", "disconnect"]))
    assert refused.is_empty(), refused


@pytest.mark.parametrize("beside", ["sensors", "broker"])
def test_what_stays_within_the_gateways_host_crosses_a_link_that_has_a_name(beside: str, tmp_path: Path) -> None:
    recording = simulated(beside_the_gateway(beside, "transparent"), tmp_path / "run")
    assert recording.packets["link"].null_count() == 0
    links = metrics.links(recording)
    assert set(links["link"].to_list()) >= {"loopback"} and links["link"].null_count() == 0
    covered = metrics.attribution_coverage(recording)
    assert covered.attributed == covered.delivered == 60


@pytest.mark.parametrize("mode", MODES)
def test_datagrams_and_what_is_in_them_are_recorded(mode: str, tmp_path: Path) -> None:
    recording = simulated(scenario(mode=mode, qos=1), tmp_path / "run")
    packets = recording.control_packets.with_columns(pl.col("kind", "protocol", "transport").cast(pl.String))
    sn = packets.filter(pl.col("protocol") == "mqtt-sn")
    assert sn["transport"].unique().to_list() == ["udp"]
    counts = dict(sn.group_by("kind").len().rows())
    # Three sensors register a topic each, and publish 20 messages; `back` hears of three topics.
    assert counts["REGISTER"] == counts["REGACK"] == 3 + 3
    assert counts["PUBLISH"] == counts["PUBACK"] == 120
    assert counts["CONNECT"] == counts["CONNACK"] == 4
    assert sn["complete_ns"].is_not_null().all()
    # Length, type, flags, topic, identifier: 7 B; and 50 B of message (MQTT-SN 1.2, 5.4.12).
    publish = sn.filter(pl.col("kind") == "PUBLISH")
    assert (publish["stream_end"] - publish["stream_start"]).unique().to_list() == [57]
    links = {"mqtt": pl.col("protocol") == "mqtt"}
    connects = packets.filter(links["mqtt"] & (pl.col("kind") == "CONNECT")).height
    assert connects == 1 + (1 if mode == "aggregating" else 4), "a connection for each, or one for all"
    named = metrics.connections(recording)["name"]
    assert named.null_count() == 0 and ("host gateway" in named) == (mode == "aggregating"), named
    frames = recording.packets.filter(pl.col("protocol") == 17)
    assert frames.height == sn.height and set(frames["connection"]) == set(sn["connection"])
    assert (frames["ip_bytes"] - frames["payload_bytes"]).unique().to_list() == [28]


def test_a_gateway_s_connection_to_the_broker_waits_for_no_acknowledgement(tmp_path: Path) -> None:
    values = scenario(mode="aggregating", qos=1)
    # A message every 4 ms over a round trip of 10 ms: with Nagle's algorithm at the gateway most would wait for the
    # acknowledgement of the one before.
    values["broker"] = {"nagle": False}
    values["groups"][0] |= {"count": 10}
    values["groups"][0]["publish"] |= {"interval": "40 ms"}
    recording = simulated(values, tmp_path / "run")
    office = deliveries(recording).filter(pl.col("subscriber_group") == "office")
    assert office.height == 500
    # Three links of 5 ms; the first message of each client waits for its REGISTER, too.
    assert (office["latency_ms"] < 15.2).mean() > 0.95  # type: ignore[operator]


def test_what_the_air_loses_is_sent_again_after_t_retry(tmp_path: Path) -> None:
    values = scenario(mode="transparent", qos=1)
    values["networks"][0]["up"]["loss"] = "20 %"
    recording = simulated(values, tmp_path / "run")
    office = deliveries(recording).filter(pl.col("subscriber_group") == "office")
    assert office.height == 60
    assert office["latency_ms"].max() > 300  # type: ignore[operator]
    frames = recording.packets.filter((pl.col("protocol") == 17) & (pl.col("direction") == "up"))
    again = frames.filter(pl.col("repetition").fill_null(0) > 0)
    dropped = frames.filter(pl.col("fate").cast(pl.String) == "dropped")
    assert again.height > 0 and dropped.height > 0
    assert abs(dropped.height / frames.height - 0.2) < 0.1


def test_one_more_retry_does_not_change_the_fates_of_others(tmp_path: Path) -> None:
    def lost(retry: str) -> set[str]:
        values = scenario(mode="transparent", qos=1)
        values["networks"][0]["up"]["loss"] = "20 %"
        values["groups"][0]["mqtt_sn"]["retry"] = retry
        del values["groups"][2]
        recording = simulated(values, tmp_path / retry.replace(" ", ""))
        first = recording.packets.filter(
            (pl.col("protocol") == 17) & (pl.col("direction") == "up") & (pl.col("repetition") == 0)
            & (pl.col("fate").cast(pl.String) == "dropped"))
        return set((first["connection"].cast(pl.String) + first["mqtt"].cast(pl.String)).to_list())

    assert lost("300 ms") == lost("450 ms")


def test_a_sleeper_gets_what_was_kept_and_a_client_without_a_connection_is_heard(tmp_path: Path) -> None:
    values = scenario(mode="transparent", qos=1)
    values["groups"][2]["mqtt_sn"] |= {"sleep": {"duration": "5 s", "wake_every": "500 ms", "linger": "20 ms"}}
    values["groups"].append({
        "name": "mute", "host": "field", "connects_to": "gateway", "protocol": "mqtt-sn",
        "mqtt_sn": {"without_connection": True, "predefined_topics": {"mute/0": 7}},
        "publish": {"topic": "mute/0", "payload": "20 B", "interval": "100 ms"},
    })
    values["servers"][0]["gateway"]["predefined_topics"] = {"mute/0": 7}
    values["groups"][1]["subscribe"].append("mute/#")
    found = deliveries(simulated(values, tmp_path / "run"))
    slept = found.filter(pl.col("subscriber_group") == "back")
    assert slept.height == 60
    assert 200 < slept["latency_ms"].max() < 1000, "who sleeps for 500 ms has waited"  # type: ignore[operator]
    assert found.filter(pl.col("publisher_group") == "mute").height == 20


def with_a_mote(**radio: Any) -> dict[str, Any]:
    """The receiver behind the gateway on a host of its own, asleep for half a second at a time; one channel for all."""
    values = scenario(mode="transparent", qos=1)
    del values["networks"]
    values["radio"] = {"standard": "b-11", "placement": "grid", "energy": "mica2", **radio}
    values["groups"][2]["host"] = "mote"
    values["groups"][2]["mqtt_sn"] |= {"sleep": {"duration": "5 s", "wake_every": "500 ms", "linger": "20 ms"}}
    return values


def rested(recording: Recording) -> tuple[dict[str, Any], float]:
    """The station of the host `mote`, and the seconds that its client slept."""
    host = list(recording.layout["hosts"]).index("mote")
    [station] = [each for each in recording.run["details"]["stations"] if each["host"] == host]
    naps = recording.events.filter(pl.col("kind").cast(pl.String) == "awake")["took_ns"]
    return station, naps.sum() / 1e9


def test_a_radio_draws_its_sleep_current_while_all_clients_of_its_host_sleep(tmp_path: Path) -> None:
    recording = simulated(with_a_mote(), tmp_path / "run")
    station, slept = rested(recording)
    assert deliveries(recording).filter(pl.col("subscriber_group") == "back").height == 60
    # It is awake for what is left of an exchange when its client sleeps already.
    assert 1 < slept - 0.1 < station["sleep_s"] <= slept
    whole = {each["host"]: sum(each[f"{state}_s"] for state in ("transmit", "receive", "idle", "sleep"))
             for each in recording.run["details"]["stations"]}
    assert max(whole.values()) == pytest.approx(min(whole.values()))
    drawn = (8.47e-3 * station["transmit_s"] + 7.03e-3 * (station["receive_s"] + station["idle_s"])
             + 0.2e-6 * station["sleep_s"])
    assert station["energy_j"] == pytest.approx(3 * drawn)
    rows = {(row["scope"], row["name"]): row for row in metrics.energy(recording).to_dicts()}
    assert rows["station", "mote"]["radio_asleep_s"] == rows["run", None]["radio_asleep_s"] == station["sleep_s"]
    # The same run with a radio that is worse at sleeping.
    worse, _ = rested(simulated(with_a_mote(sleep_current="1 mA"), tmp_path / "worse"))
    assert worse["energy_j"] - station["energy_j"] == pytest.approx(3 * (1e-3 - 0.2e-6) * station["sleep_s"])
    # With somebody else beside it the host's radio has to listen.
    values = with_a_mote()
    values["groups"][1]["host"] = "mote"
    station, slept = rested(simulated(values, tmp_path / "shared"))
    assert station["sleep_s"] == 0 and slept > 1


def test_who_sleeps_is_awake_for_the_rest_of_its_time(tmp_path: Path) -> None:
    values = scenario(mode="transparent", qos=1)
    values["groups"][2]["mqtt_sn"] |= {"sleep": {"duration": "5 s", "wake_every": "500 ms", "linger": "20 ms"}}
    recording = simulated(values, tmp_path / "run")
    table = {(row["scope"], row["name"]): row for row in metrics.mqtt_sn(recording).to_dicts()}
    back = table["group", "back"]
    kinds = recording.events["kind"].cast(pl.String)
    assert back["awakenings"] == (kinds == "awake").sum() == (kinds == "asleep").sum() > 3
    # Its questions take a round trip of 10 ms and more, a few in a second.
    assert 0 < back["awake_percent"] < 50
    life = back["awake_s"] / (back["awake_percent"] / 100)
    slept = recording.events.filter(kinds == "awake")["took_ns"].sum() / 1e9
    assert life - back["awake_s"] == pytest.approx(slept)
    assert table["run", None]["awake_s"] == back["awake_s"]
    sensors = table["group", "sensors"]
    assert [sensors[name] for name in ("awake_s", "awake_percent", "awakenings")] == [None] * 3, "they cannot sleep"


def test_a_gateway_that_is_full_says_so_and_nobody_waits_for_ever(tmp_path: Path) -> None:
    values = scenario(mode="transparent", qos=1)
    values["servers"][0]["gateway"]["clients_max"] = 2
    for group in (values["groups"][0], values["groups"][2]):
        group["reconnect"] = {"enabled": False}
    outcome = perform(
        Job(compile_plan(parse_values({**values, "backend": "sim"})), tmp_path / "run"), lambda line: None)
    recording = Recording.open(tmp_path / "run")
    assert outcome.verdict in ("complete", "incomplete")
    told = recording.events.filter(pl.col("detail").cast(pl.String).str.contains("congestion"))
    assert told.height == 2, recording.events


def test_an_802_11_channel_carries_datagrams(tmp_path: Path) -> None:
    values = scenario(mode="aggregating", qos=1)
    del values["networks"]
    values["radio"] = {"standard": "b-11"}
    recording = simulated(values, tmp_path / "run")
    assert deliveries(recording).height == 120
    frames = recording.packets.filter(pl.col("protocol") == 17)
    delivered = frames.filter(pl.col("fate").cast(pl.String) == "delivered")
    assert delivered.height > 200 and delivered["start_ns"].is_not_null().all()


def test_a_simulation_of_gateways_is_the_same_every_time(tmp_path: Path) -> None:
    values = scenario(mode="aggregating", qos=2)
    values["networks"][0]["up"]["loss"] = "10 %"
    one, other = (simulated(values, tmp_path / name) for name in ("one", "other"))
    for table in ("messages", "packets", "control_packets", "events"):
        assert getattr(one, table).equals(getattr(other, table)), table


def test_what_a_delivered_message_costs_is_counted(tmp_path: Path) -> None:
    values = scenario(mode="transparent", qos=1)
    values["groups"][2]["mqtt_sn"] |= {"sleep": {"duration": "5 s", "wake_every": "500 ms", "linger": "20 ms"}}
    values["networks"][0]["up"]["loss"] = "10 %"
    recording = simulated(values, tmp_path / "run")
    table = metrics.mqtt_sn(recording)
    whole, sensors, back = (table.filter(pl.col("scope") == scope, pl.col("name").eq_missing(pl.lit(name))).row(
        0, named=True) for scope, name in (("run", None), ("group", "sensors"), ("group", "back")))
    frames = recording.packets.filter((pl.col("protocol") == 17) & (pl.col("hop") == 0))
    assert whole["datagrams"] == sensors["datagrams"] + back["datagrams"] == frames.height
    assert whole["datagram_bytes"] == frames["frame_bytes"].sum()
    assert whole["datagrams_lost"] == frames.filter(pl.col("fate").cast(pl.String) == "dropped").height > 0
    assert whole["datagrams_sent_again"] == frames.filter(pl.col("repetition").fill_null(0) > 0).height > 0
    assert whole["datagram_bytes_per_delivery"] == pytest.approx(whole["datagram_bytes"] / 120)
    # Sensors' messages have 60 receivers at the office and 60 behind the gateway.
    assert sensors["datagram_bytes_per_delivery"] == pytest.approx(sensors["datagram_bytes"] / 120)
    assert sensors["registrations"] >= 3 and sensors["gateway_wait_ms_mean"] is None
    assert back["gateway_wait_ms_mean"] > 100, "it sleeps for 500 ms, and some of its questions are lost"
    kinds = table.filter(pl.col("scope") == "packet_type")
    assert kinds["datagrams"].sum() == whole["datagrams"]
    long = metrics.summary(recording, tables=["mqtt_sn"])
    assert long.filter(metric="datagrams", scope="run")["value"].to_list() == [whole["datagrams"]]


def test_recordings_without_mqtt_sn_have_no_such_table(tmp_path: Path) -> None:
    values = scenario()
    del values["groups"][0], values["groups"][1], values["servers"], values["networks"][:2]
    values["groups"][0]["publish"] = {"topic": "s/0", "payload": "10 B", "interval": "100 ms"}
    assert metrics.mqtt_sn(simulated(values, tmp_path / "run")).is_empty()
