"""What a simulated run does as a live one: measured with Linux 6.18 and Mosquitto 2.0.11."""

from pathlib import Path
from typing import Any

import polars as pl

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

S = 10**9
RST = 0x04
WAN = {"between": ["field", "broker"], "link": "shared", "up": {"delay": "20 ms"}, "down": {"delay": "20 ms"}}


def simulated(directory: Path, **parts: Any) -> Recording:
    plan = compile_plan(parse_values({"name": "as-live", "backend": "sim", **parts}))
    outcome = perform(Job(plan, directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def killed(directory: Path) -> Recording:
    reconnect = {"initial": "1 s", "jitter": "0 %"}
    return simulated(
        directory, phases={"duration": "30 s", "cool_down": "10 s"}, networks=[WAN],
        groups=[{"name": "dev", "host": "field", "reconnect": reconnect,
                 "publish": {"topic": "d", "qos": 1, "payload": "100 B", "interval": "1 s"}},
                {"name": "app", "host": "field", "reconnect": reconnect, "mqtt": {"clean_session": False},
                 "subscribe": [{"filter": "d", "qos": 1}]}],
        events=[{"at": "10 s", "for": "5 s", "server": "broker", "do": "kill"}])


def test_who_reconnects_first_is_served_first(tmp_path: Path) -> None:
    """Both come back at one instant. The subscriber's packet came first, and was served last."""
    recording = killed(tmp_path / "run")
    [row] = metrics.application(recording).rows(named=True)
    assert (row["messages_sent"], row["messages_delivered"]) == (30, 30)


def test_each_wait_after_a_lost_connection_is_twice_the_last(tmp_path: Path) -> None:
    events = killed(tmp_path / "run").events.filter(pl.col("client") == 1)
    broken = pl.col("kind").is_in(["disconnect", "note"])
    began = events.filter(broken | (pl.col("kind") == "reconnect"))
    waits = [round((later - before) / S) for kind, before, later in zip(
        began["kind"], began["at_ns"], began["at_ns"][1:], strict=False) if kind != "reconnect"]
    assert waits == [1, 2, 4]


def test_overlapping_subscriptions_cause_the_copies_of_mosquitto(tmp_path: Path) -> None:
    copies = {}
    for version in ("3.1.1", "5"):
        filters = [{"filter": "a/#", "qos": 1}, {"filter": "a/+", "qos": 0}]
        recording = simulated(
            tmp_path / version, mqtt={"version": version}, phases={"duration": "2 s", "cool_down": "1 s"},
            groups=[{"name": "p", "host": "broker",
                     "publish": {"topic": "a/b", "qos": 1, "payload": "100 B", "interval": "1 s"}},
                    {"name": "s", "host": "broker", "subscribe": filters}])
        packets = recording.control_packets.filter(pl.col("direction") == "to_client", pl.col("kind") == "PUBLISH")
        copies[version] = packets["qos"].to_list()
    # Before MQTT 5 the narrowest filter decides.
    assert copies == {"3.1.1": [0, 0], "5": [0, 1, 0, 1]}


def test_a_broker_resets_a_connection_of_tls_whose_close_alert_it_has_not_read(tmp_path: Path) -> None:
    resets = {}
    for transport in ("tcp", "tls"):
        recording = simulated(
            tmp_path / transport, phases={"duration": "4 s", "cool_down": "1 s"}, networks=[WAN],
            groups=[{"name": "dev", "host": "field", "transport": transport,
                     "churn": {"connects": "1 /s", "hold": "500 ms"},
                     "publish": {"topic": "d", "qos": 1, "payload": "100 B", "interval": "100 ms"}}])
        down = recording.packets.filter(pl.col("direction") == "down")
        ended = down.filter(pl.col("flags") & RST != 0).height
        assert down["connection"].n_unique() > 3
        resets[transport] = ended / down["connection"].n_unique()
    assert resets["tcp"] == 0 and resets["tls"] > 0.5


def test_a_send_buffer_grows_with_the_congestion_window(tmp_path: Path) -> None:
    """Live 324 kB wait in the socket behind a queue of CoDel; a buffer of the first window alone had 35 kB."""
    way = {"rate": "10 Mbit/s", "delay": "20 ms"}
    recording = simulated(
        tmp_path / "run", phases={"warm_up": "2 s", "duration": "6 s", "cool_down": "3 s"},
        networks=[{"between": ["field", "broker"], "link": "shared", "down": way,
                   "up": {**way, "queue": "1 s", "discipline": "codel"}}],
        groups=[{"name": "greedy", "host": "field",
                 "publish": {"topic": "big", "qos": 0, "payload": "20 kB", "arrival": "back-to-back"}},
                {"name": "app", "host": "broker", "subscribe": ["big"]}])
    greedy = recording.tcp_state.filter(pl.col("client") == 0, pl.col("end") == "client")
    assert 150_000 < greedy["unsent_bytes"].mean() < 500_000
