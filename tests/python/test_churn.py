"""Clients that come and go all the time, simulated and beside a real Mosquitto."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.errors import MqttlabError
from mqttlab.metrics.window import measurement
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values, warnings_of

MS = 10**6


def scenario(churn: dict[str, Any] | None, *, backend: str = "sim", count: int = 40, **group: Any) -> dict[str, Any]:
    coming = {"name": "coming", "host": "field", "count": count, "subscribe": ["orders/{client}"],
              "publish": {"topic": "t/{client}", "qos": 1, "payload": "30 B", "interval": "100 ms"},
              **({} if churn is None else {"churn": churn}), **group}
    return {
        "name": "churn", "backend": backend, "networks": [{
            "between": ["field", "broker"], "link": "each", "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}}],
        "phases": {"connect_timeout": "20 s", "warm_up": "2 s", "duration": "6 s", "cool_down": "2 s"},
        "groups": [{name: value for name, value in coming.items() if value is not None},
                   {"name": "hearing", "host": "field", "subscribe": [{"filter": "t/+", "qos": 1}]}]}


def made(values: dict[str, Any], directory: Path) -> Recording:
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def events(recording: Recording, kind: str) -> pl.DataFrame:
    found = recording.events.filter(pl.col("kind").cast(pl.String) == kind, pl.col("client") < 40)
    return found.select(pl.col("client").cast(pl.Int64), pl.col("at_ns").cast(pl.Int64)).sort("client", "at_ns")


def in_measurement(recording: Recording, kind: str) -> int:
    return events(recording, kind).filter(measurement(recording).holds(pl.col("at_ns"))).height


def judge(recording: Recording, *, exactly: bool) -> None:
    """40 clients with 20 connections a second stay for 1 s of each 2 s."""
    setup = metrics.setup(recording)
    accepted = in_measurement(recording, "connack")
    assert accepted == in_measurement(recording, "suback") or not exactly
    assert setup["connects_per_s"].item() == accepted / 6
    assert (118 <= accepted <= 122) if exactly else (60 <= accepted <= 140)
    assert setup["connects_refused"].item() == 0 and setup["connects"].item() >= accepted + 40
    # Two round trips of 10 ms: SYN and CONNECT.
    assert setup["connect_ms_p50"].item() >= 20 and setup["subscribe_ms_p50"].item() >= 10
    assert metrics.disconnections(recording).is_empty(), "who leaves in order has lost no connection"
    messages = recording.table("messages").filter(pl.col("publisher") < 40)
    fates = set(messages["fate"].cast(pl.String).unique())
    assert "unsent" not in fates, "nothing is due while a client is away"
    assert "delivered" in fates and "lost" not in fates
    # What was due lies between a CONNACK and the next leaving.
    came = events(recording, "connack").select("client", came_ns="at_ns", at_ns="at_ns")
    gone = events(recording, "close").select("client", gone_ns="at_ns", at_ns="at_ns")
    due = messages.select(client=pl.col("publisher").cast(pl.Int64), at_ns=pl.col("intended_ns").cast(pl.Int64))
    here = due.sort("at_ns").join_asof(came.sort("at_ns"), on="at_ns", by="client").join_asof(
        gone.sort("at_ns"), on="at_ns", by="client")
    assert here["came_ns"].null_count() == 0
    assert here.filter(pl.col("gone_ns").is_not_null() & (pl.col("gone_ns") > pl.col("came_ns"))).is_empty()


def test_simulated_clients_come_and_go_at_their_rate(tmp_path: Path) -> None:
    recording = made(scenario({"connects": "20 /s", "hold": "1 s"}), tmp_path / "run")
    judge(recording, exactly=True)
    # Each is there for half of the time: 10 messages a second of half of 40 clients, less those due before a CONNACK.
    due = recording.table("messages").filter(
        pl.col("publisher") < 40, pl.col("phase").cast(pl.String) == "measurement")["sequence"].len()
    assert 1_000 <= due <= 1_200


@pytest.mark.live
def test_clients_come_and_go_at_mosquitto(tmp_path: Path) -> None:
    judge(made(scenario({"connects": "20 /s", "hold": "1 s"}, backend="live"), tmp_path / "run"), exactly=False)


def test_drawn_times_of_stay_keep_the_rate(tmp_path: Path) -> None:
    values = scenario({"connects": "20 /s", "hold": "1 s", "law": "exponential"})
    values["phases"]["duration"] = "20 s"
    recording = made(values, tmp_path / "run")
    # A renewal process: 400 connections, whose standard deviation is below the 20 of a Poisson process.
    assert 320 <= in_measurement(recording, "connack") <= 480
    again = made(values, tmp_path / "again")
    assert events(recording, "connack").equals(events(again, "connack"))


def test_clients_may_do_nothing_but_come_and_go(tmp_path: Path) -> None:
    values = scenario({"connects": "20 /s", "hold": "1 s"}, subscribe=None, publish=None)
    values["groups"] = values["groups"][:1]
    assert 118 <= in_measurement(made(values, tmp_path / "run"), "connack") <= 122


def test_a_session_that_is_kept_has_what_came_while_its_client_was_away(tmp_path: Path) -> None:
    values = scenario({"connects": "20 /s", "hold": "1 s"}, publish=None, mqtt={"clean_session": False},
                      subscribe=[{"filter": "orders/#", "qos": 1}])
    values["groups"][1] |= {"subscribe": [], "publish": {
        "topic": "orders/all", "qos": 1, "payload": "20 B", "interval": "500 ms"}}
    recording = made(values, tmp_path / "run")
    row = metrics.application(recording).row(0, named=True)
    assert row["deliveries_expected"] == row["messages_delivered"] == 40 * 12


def test_clients_that_were_refused_come_again_and_are_counted(tmp_path: Path) -> None:
    values = scenario({"connects": "20 /s", "hold": "1 s"})
    values["events"] = [{"at": "1 s", "for": "2 s", "server": "broker", "do": "stop"}]
    recording = made(values, tmp_path / "run")
    late = events(recording, "connack").filter(pl.col("at_ns") > measurement(recording).from_ns + 3_500 * MS)
    # Half of those that came while the broker was stopped were to be gone again by then.
    assert late["client"].n_unique() == 40


def test_a_plan_without_churn_says_nothing_of_it() -> None:
    assert all("churn" not in group for group in compile_plan(parse_values(scenario(None)))["groups"])


@pytest.mark.parametrize(("churn", "group", "told"), [
    ({"connects": "50 /s", "hold": "10 s"}, {}, "use `count = 501` or more, or a shorter `hold`"),
    ({"connects": "20 /s", "hold": "2 s"}, {}, "come every 2 s each"),
    ({"connects": "20 /s", "hold": "1 s"}, {"relay": {"suffix": "/again"}}, "what they miss has no copies"),
    ({"connects": "20 /s", "hold": "1 s"}, {"publish": {"topic": "t", "payload": "9 B", "arrival": "back-to-back"}},
     "such messages have no time; use a `rate`"),
    ({"connects": "20 /s", "hold": "1 s"}, {"subscribe": ["t/#"]}, "to which `coming` publishes"),
    ({"connects": "20 /s", "hold": "1 s"}, {"subscribe": ["t/#"], "mqtt": {
        "version": "5", "clean_session": False, "session_expiry": "0 s"}}, "their sessions end"),
])
def test_what_does_not_go_with_churn_is_refused(churn: dict[str, Any], group: dict[str, Any], told: str) -> None:
    with pytest.raises(MqttlabError) as caught:
        parse_values(scenario(churn, **group))
    assert told in str(caught.value)


def test_events_that_clients_come_and_go_by_are_refused() -> None:
    values = scenario({"connects": "20 /s", "hold": "1 s"})
    values["events"] = [{"at": "1 s", "group": "coming", "do": "vanish"}]
    with pytest.raises(MqttlabError, match="come and go by themselves"):
        parse_values(values)


def test_a_short_warm_up_is_a_warning() -> None:
    values = scenario({"connects": "20 /s", "hold": "500 ms"})
    assert not any("comes again after" in line for line in warnings_of(parse_values(values)))
    values["phases"]["warm_up"] = "1 s"
    assert any("comes again after 1.5 s" in line for line in warnings_of(parse_values(values)))


def test_clients_that_are_away_for_longer_than_the_engine_takes_are_refused_by_their_rate() -> None:
    with pytest.raises(MqttlabError) as error:
        parse_values(scenario({"connects": "0.0000000001 /s", "hold": "1 s"}, count=2))
    assert "groups[0].churn.connects" in str(error.value) and "but 366 days is the longest time" in str(error.value)
    # The longest that it takes.
    parse_values(scenario({"connects": "0.0000000001 /s", "hold": "1 s"}, count=1))
