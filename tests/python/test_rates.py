"""Every rate, share and mean has one window: those of random recordings against plain Python over their rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import oracle.efficiency
import oracle.overhead
import oracle.rates
from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from mqttlab.scenario.mqtt import Mqtt

PAIR = ("publisher_group", "subscriber_group", "qos")


def run(values: dict[str, Any], directory: Path) -> Recording:
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def drawn(number: int) -> dict[str, Any]:
    """A scenario drawn by its number: idle, busy or overloaded, with and without loss, warm-up and long cool-down."""
    dice = random.Random(number)
    line = {"rate": dice.choice(["64 kbit/s", "250 kbit/s", "2 Mbit/s"]), "delay": f"{dice.randint(1, 120)} ms",
            "loss": dice.choice(["0 %", "1 %", "5 %"]), "duplicate": dice.choice(["0 %", "2 %"])}
    groups = [{"name": f"meters{qos}", "host": "field", "count": dice.randint(1, 3),
               "mqtt": {"max_queued": dice.choice([2, 1000])},
               "publish": {"topic": f"m{qos}/{{client}}", "qos": qos, "payload": f"{dice.randint(20, 400)} B",
                           "rate": f"{dice.choice([2, 10, 40])} /s", "arrival": dice.choice(["poisson", "constant"])}}
              for qos in dice.sample([0, 1, 2], 2)]
    desks = [{"name": "desk", "host": "desk", "count": dice.randint(1, 2), "subscribe": [{"filter": "#", "qos": 2}]},
             {"name": "one", "host": "field", "subscribe": [{"filter": "m1/#", "qos": dice.randint(0, 1)}]}]
    return {
        "name": "drawn", "seed": number, "backend": "sim", "groups": [*groups, *desks],
        "phases": {"warm_up": dice.choice(["0 s", "2 s"]), "duration": "5 s",
                   "cool_down": dice.choice(["0 s", "20 s"])},
        "networks": [{"between": ["field", "broker"], "up": line, "down": line},
                     {"between": ["desk", "broker"], "up": {"delay": "1 ms"}, "down": {"delay": "1 ms"}}],
    }


def hold(found: dict[str, Any], expected: dict[str, float | None], what: object) -> None:
    for name, value in expected.items():
        assert found[name] == (None if value is None else pytest.approx(value, rel=1e-9)), (what, name)


def hold_messages(recording: Recording) -> None:
    [whole] = metrics.application(recording, ()).rows(named=True)
    hold(whole, oracle.rates.messages(recording, {}), "run")
    for row in metrics.application(recording).rows(named=True):
        hold(row, oracle.rates.messages(recording, {"qos": row["qos"]}), row["qos"])
    for row in metrics.application(recording, PAIR).rows(named=True):
        expected = oracle.rates.messages(recording, {name: row[name] for name in PAIR})
        # Whose delivery an unsent message would have been, its own rows do not say.
        del expected["undelivered_percent"]
        hold(row, expected, row)


@pytest.mark.parametrize("number", range(6))
def test_rates_shares_and_means_are_those_of_the_rows_within_their_window(number: int, tmp_path: Path) -> None:
    recording = run(drawn(number), tmp_path / "run")
    hold_messages(recording)
    for row in metrics.links(recording).rows(named=True):
        hold(row, oracle.rates.link(recording, row["link"]), row["link"])
    for ours, theirs in ((metrics.efficiency, oracle.efficiency.efficiency),
                         (metrics.overhead, oracle.overhead.overhead)):
        for found, expected in zip(ours(recording).rows(named=True), theirs(recording).rows(named=True), strict=True):
            hold(found, {name: value for name, value in expected.items() if isinstance(value, float)}, ours)


BEYOND: dict[str, Any] = {
    "name": "beyond", "backend": "sim", "phases": {"duration": "5 s", "cool_down": "60 s"},
    "networks": [{"between": ["field", "broker"], "up": {"rate": "64 kbit/s", "delay": "50 ms"},
                  "down": {"rate": "64 kbit/s", "delay": "50 ms"}},
                 {"between": ["desk", "broker"], "up": {"delay": "1 ms"}, "down": {"delay": "1 ms"}}],
    "groups": [{"name": "logger", "host": "field",
                "publish": {"topic": "log", "qos": 0, "payload": "200 B", "rate": "300 /s"}},
               {"name": "sink", "host": "desk", "subscribe": [{"filter": "log"}]}],
}


@pytest.mark.parametrize("warm_up", ["0 s", "10 s"])
def test_throughput_is_no_more_than_the_link_carries(warm_up: str, tmp_path: Path) -> None:
    """After a warm-up the link carries what was due in it: the rate is the same."""
    recording = run({**BEYOND, "phases": {**BEYOND["phases"], "warm_up": warm_up}}, tmp_path / "run")
    [row] = metrics.application(recording).rows(named=True)
    # 64 kbit/s carry messages of 200 B and their headers; the first of them needs its time to the broker.
    assert 50 < row["goodput_kbit_s"] < 64
    assert row["throughput_per_s"] == pytest.approx(row["goodput_kbit_s"] / 1.6)


def test_with_a_detected_transient_a_rate_is_that_of_the_steady_flow(tmp_path: Path) -> None:
    """The flow begins with an overload that a slow link works off: what comes before it is steady is in no rate."""
    values = {
        "name": "steady", "backend": "sim", "sim": {"detect_transient": True},
        "phases": {"duration": "120 s", "cool_down": "10 s"},
        "networks": [{"between": ["field", "broker"], "up": {"rate": "20 kbit/s", "delay": "10 ms"},
                      "down": {"rate": "20 kbit/s", "delay": "10 ms"}}],
        "groups": [{"name": "meters", "host": "field",
                    "publish": {"topic": "m", "qos": 0, "payload": "100 B", "rate": "8 /s", "arrival": "poisson"}},
                   {"name": "burst", "host": "field",
                    "publish": {"topic": "m", "qos": 0, "payload": "100 B", "rate": "100 /s", "messages": 250}},
                   {"name": "desk", "host": "broker", "subscribe": [{"filter": "m"}]}],
    }
    recording = run(values, tmp_path / "run")
    steady = recording.run["details"]["phases"]["steady_from_ns"]
    assert steady is not None, "the scenario has no transient any more"
    hold_messages(recording)
    [row] = metrics.application(recording, ()).rows(named=True)
    # A Poisson count of 8/s in what is left of 120 s is within 7 % in 19 of 20 runs; of two beginnings 7.3 came.
    assert row["throughput_per_s"] == pytest.approx(8, rel=0.07)


def test_every_rate_share_and_mean_states_its_window() -> None:
    for metric in metrics.ALL.values():
        assert metric.window in metrics.WINDOWS, metric.name
        if metric.unit.endswith(("/s", "bit/s")):
            assert metric.window in ("measurement", "frames", "slice"), metric.name


def test_what_was_never_sent_is_not_delivered(tmp_path: Path) -> None:
    """A queue of two messages over a link that carries a tenth of what is offered: most are never sent."""
    values = {**BEYOND, "groups": [{**BEYOND["groups"][0], "mqtt": {"max_queued": 2}}, BEYOND["groups"][1]]}
    values["groups"][0]["publish"] = {**BEYOND["groups"][0]["publish"], "qos": 1}
    recording = run(values, tmp_path / "run")
    [row] = metrics.application(recording).rows(named=True)
    assert row["messages_unsent"] > row["messages_sent"] > 0
    assert row["undelivered_percent"] == pytest.approx(
        100 * (1 - row["messages_delivered"] / row["messages_offered"]))
    pairs = metrics.application(recording, PAIR)
    told = dict(pairs.select(pl.col("subscriber_group").cast(pl.String), "undelivered_percent").rows())
    # The subscribers' row has what they did not get, the row of the unsent ones nothing to deliver.
    assert told == {"sink": pytest.approx(row["undelivered_percent"]), None: None}


def test_a_clients_queue_has_no_place_for_qos_0(tmp_path: Path) -> None:
    """It waits for the socket, as `mqtt.max_queued` says."""
    values = {**BEYOND, "groups": [{**BEYOND["groups"][0], "mqtt": {"max_queued": 2}}, BEYOND["groups"][1]]}
    [row] = metrics.application(run(values, tmp_path / "run")).rows(named=True)
    assert row["qos"] == 0 and row["messages_unsent"] == 0 and row["messages_sent"] == row["messages_offered"]
    assert "QoS 0 messages take no place" in (Mqtt.model_fields["max_queued"].description or "")
