"""Scenarios drawn by chance: complete, the same for ever, with every field; and how their runs are judged."""

from __future__ import annotations

import json
import sys
import typing
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from commands import mqttlab
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import Scenario, compile_plan
from mqttlab.scenario.event import LINK_FIELDS
from mqttlab.scenario.load import parse_values

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches" / "agreement"))

import chance_judgement as judge
from chance import counts, late_ms, metrics_of, toml
from draw import candidate, draw

COMPLETE = range(30)
CANDIDATES = range(1900)
# Fields that no number draws, and why.
LEFT_OUT = {
    "events.name": "words",
    **{f"events.{field}": "three fields of links are drawn of an event, which writes all of them as a network does"
       for field in sorted({*LINK_FIELDS} - {"rate", "delay", "loss"})},
    "events.publish.interval": "the rate is drawn, which is the same",
    "events.publish.payload": "its size is drawn; groups draw the kinds",
    "events.when": "a time that is known, which is drawn",
    "events.until": "the count is drawn, which is the same",
    "networks.trace": "each link's is drawn",
    "networks.trace_end": "each link's is drawn",
    "trunk.trace": "each link's is drawn",
    "trunk.trace_end": "each link's is drawn",
    "backend": "both are run",
    "description": "words",
    "seed": "the judge's",
    "repetitions": "the judge's seeds are",
    "thresholds": "judged of what was measured",
    "recording": "not what is measured",
    "live": "how a live run is performed",
    "sim": "how a simulation is performed",
    "network": "without an emulated network latencies are the machine's",
    "networks.model": "short for links, which are drawn",
    "networks.placement": "of a model",
    "hosts.tcp.profile": "one of two, drawn",
    "broker.kind": "Mosquitto is what both have",
    "servers.kind": "Mosquitto is what both have",
    **{f"{server}.{field}": why for server in ("broker", "servers") for field, why in {
        "host": "a name, drawn for two brokers",
        "address": "of a server elsewhere",
        "port": "changes nothing that is measured",
        "ports": "changes nothing that is measured",
        "tls": "of a server elsewhere",
        "program": "how a live server is started",
        "ready": "when a live run goes on",
        "start_timeout": "when a live run gives up",
        "when_it_dies": "no server dies here",
        "retry": "only simulated",
        "service": "only simulated",
    }.items()},
    "servers.passes_to": "of proxies, which test_servers_live compares",
    "servers.gateway": "two of its fields are drawn; test_mqtt_sn_sim turns the rest",
    "servers.zeromq.subscriber_port": "changes nothing that is measured",
    "networks.up.queue": "a string has each of its units",
    "groups.client": "a program, which is real",
    "groups.mqtt_sn": "four of its fields are drawn; test_mqtt_sn_sim turns the rest",
    "groups.zeromq": "test_zeromq_sim turns its marks",
    "groups.mqtt.credentials": "a file; test_credentials compares them",
    "groups.mqtt.duplicate_ids": "refuses nothing; `taken-over` of the agreement compares such clients",
    "groups.publish.replay": "a file; test_replay compares them",
    "groups.publish.payload.path": "a file's content is as any payload",
    "groups.publish.interval": "the rate is drawn, which is the same",
    "groups.reconnect.enabled": "a client that stays away has nothing to compare",
    "radio": "five of its fields are drawn; test_radio_live compares the others",
    **{f"phases.{field}": "the same for all" for field in ("connect_timeout", "warm_up", "duration", "cool_down")},
}


@pytest.fixture(scope="module")
def drawn() -> dict[int, dict[str, Any]]:
    """The scenarios of some numbers."""
    return {number: draw(number) for number in COMPLETE}


def test_each_number_is_another_scenario(drawn: dict[int, dict[str, Any]]) -> None:
    assert len({json.dumps(values, sort_keys=True) for values in drawn.values()}) == len(drawn)
    with pytest.raises(ValueError, match="0 or more"):
        draw(-1)


def test_a_number_draws_the_same_scenario_for_ever(drawn: dict[int, dict[str, Any]]) -> None:
    assert all(draw(number) == drawn[number] for number in (0, 7))
    # Made once; another value here gives every number in a committed table another scenario.
    digest = sha256(json.dumps(drawn[4], sort_keys=True).encode()).hexdigest()[:16]
    assert digest == "f186ad91af5e7301"


def test_a_drawn_scenario_is_a_file_that_check_accepts(drawn: dict[int, dict[str, Any]], tmp_path: Path) -> None:
    for number in (0, 3, 11):
        path = tmp_path / f"{number}.toml"
        path.write_text(toml(drawn[number]), encoding="utf-8")
        done = mqttlab("check", path, "--backend", "sim")
        assert done.returncode == 0, done.stderr


def _leaves(model: type[BaseModel], here: str = "") -> Iterator[str]:
    """The fields of a scenario, those of tables within it too."""
    for python, field in model.model_fields.items():
        name = field.alias or python
        inner = list(_models(field.annotation))
        for found in inner:
            yield from _leaves(found, f"{here}{name}.")
        if not inner:
            yield here + name


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from _models(argument)


def _set(value: Any, here: str = "") -> Iterator[str]:
    """The fields that a scenario sets, without indices and names of hosts."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield here + name
            yield from _set(list(inner.values()) if here + name == "hosts" else inner, f"{here}{name}.")
    elif isinstance(value, list):
        for inner in value:
            yield from _set(inner, here)


def _alike(field: str) -> str:
    """Fields of all links are one kind, and so are those of a scenario's and a group's sessions."""
    for one, other in (("trunk.", "networks."), (".down", ".up"), ("groups.mqtt.", "mqtt."), ("broker.", "servers.")):
        field = field.replace(one, other)
    return field


def test_every_field_of_a_scenario_is_drawn_or_says_why_not() -> None:
    known = {_alike(field) for field in _leaves(Scenario)}
    left_out = {_alike(field) for field in LEFT_OUT}
    found = {_alike(field) for number in CANDIDATES for field in _set(candidate(number))}
    missing = sorted(field for field in known - found
                     if not any(field == other or field.startswith(f"{other}.") for other in left_out))
    assert missing == []


def test_each_rule_of_pinging_is_drawn_with_a_keep_alive_that_a_run_has_pings_of() -> None:
    found: dict[str, set[str]] = {}
    for number in CANDIDATES:
        for group in candidate(number)["groups"]:
            mqtt = group.get("mqtt", {})
            found.setdefault(str(mqtt.get("ping")), set()).add(str(mqtt.get("keep_alive")))
    assert {"silence", "interval", "sent"} <= found.keys()
    assert found["interval"] <= {f"{seconds} s" for seconds in range(1, 6)}


def test_both_backends_have_the_rows_that_are_judged(drawn: dict[int, dict[str, Any]], tmp_path: Path) -> None:
    plan = compile_plan(parse_values({**drawn[0], "seed": 1, "backend": "sim"}, "0"))
    perform(Job(plan, tmp_path / "run", "0" * 26), lambda progress: None)
    row = metrics_of(Recording.open(tmp_path / "run"))
    assert row["valid"] and row["messages_delivered"] == row["expected"] - row["undelivered"] > 0
    assert row["latencies_ms"][0] < row["latency_ms_p50"] <= row["latency_ms_p95"] < row["latencies_ms"][-1] + 0.001
    assert 0 <= row["segments_sent_again"] < row["segments_with_payload"]


def rows(*means: float, delivered: int = 1000) -> list[dict[str, Any]]:
    """Runs with these mean latencies."""
    counts = {"messages_delivered": delivered, "expected": 1000, "undelivered": 1000 - delivered,
              "frames_dropped": 10, "segments_sent_again": 10}
    return [counts | {"latency_ms_mean": mean, "latency_ms_p50": mean, "latency_ms_p95": 1.2 * mean,
                      "latencies_ms": [mean + step for step in range(100)]} for mean in means]


def test_two_runs_are_alike_within_their_bounds() -> None:
    assert judge.alike(rows(100)[0], rows(109)[0])
    assert not judge.alike(rows(100)[0], rows(112)[0])
    assert not judge.alike(rows(100)[0], rows(100, delivered=970)[0])
    assert judge.alike({"messages_delivered": 0}, {"messages_delivered": 2})


def test_five_pairs_agree_differ_or_leave_it_open() -> None:
    live = rows(100, 101, 99, 100, 102)
    assert judge.judge({}, live, rows(101, 102, 100, 100, 103)).word == "agrees"
    assert judge.judge({}, live, rows(130, 131, 129, 130, 132)).word == "differs"
    assert judge.judge({}, live, rows(90, 160, 80, 70, 150)).word == "undecided"


def test_tails_are_judged_by_the_distribution() -> None:
    bursts = {"networks": [{"up": {"burst_loss": {}}, "down": {}}]}
    live, sim = rows(100, 100, 101, 99, 100), rows(100, 101, 100, 100, 99)
    for row in sim:
        row["latency_ms_mean"] *= 10
    assert judge.judge(bursts, live, sim).word == "agrees" and judge.judge({}, live, sim).word == "differs"
    for row in sim:
        row["latencies_ms"] = [value + 40 for value in row["latencies_ms"]]
    assert judge.judge(bursts, live, sim).word == "differs"


def test_the_distance_of_two_distributions_by_hand() -> None:
    assert judge.distance([[1, 2, 3, 4]], [[1, 2, 3, 4]]) == 0
    assert judge.distance([[1, 2]], [[3, 4]]) == 1
    # A run of two values weighs as much as one of four.
    assert judge.distance([[1, 1], [5, 5, 5, 5]], [[1, 1, 1, 5]]) == pytest.approx(0.25)
    # What lies nearer than the bound of the median is equal, on either side: 10 % and 0.4 ms.
    assert judge.distance([[144.0] * 4], [[143.6] * 4]) == judge.distance([[143.6] * 4], [[144.0] * 4]) == 0
    assert judge.distance([[100.0] * 4], [[110.3, 110.3, 110.5, 110.5]]) == pytest.approx(0.5)
    assert judge.distance([[110.3, 110.3, 111.6, 111.6]], [[100.0] * 4]) == pytest.approx(0.5)


def test_shrinking_keeps_what_the_difference_needs() -> None:
    network = {"between": ["a", "b"], "up": {"delay": "1 ms", "loss": "1 %"}}
    values = {"name": "n", "mtu": "600 B", "networks": [network], "broker": {"nagle": False, "max_inflight": 3}}

    def differs(candidate: Mapping[str, Any]) -> bool:
        return candidate.get("broker", {}).get("max_inflight") == 3 and "up" in candidate["networks"][0]

    smallest, left_out = judge.shrink(values, differs, trials=100)
    assert smallest == {"name": "n", "networks": [{"between": ["a", "b"], "up": {"delay": "1 ms"}}],
                        "broker": {"max_inflight": 3}}
    assert set(left_out) == {"mtu", "broker.nagle", "networks.0.up.loss"}
    assert judge.shrink(values, differs, trials=0) == (values, [])


def test_a_run_counts_that_was_late_by_little_beside_its_latencies() -> None:
    late = "the emulator was 150 us late at the 99th percentile on 2 paths, above 100 us: the host delayed this machine"
    row = {"valid": False, "reasons": [late], "late_ms": 0.15, "latency_ms_mean": 20.0}
    assert counts(row)
    assert not counts({**row, "latency_ms_mean": 14.0}), "more than a hundredth"
    assert not counts({**row, "latency_ms_mean": None}), "beside nothing"
    assert not counts({**row, "reasons": [late, "server `broker` waited for a disk from 6.6 s to 7.7 s"]})
    assert counts({**row, "reasons": ["2 of 5 clients never connected"], "late_ms": 9.0}), "the scenario's own"
    assert not counts({"failed": "no broker"})


def test_lateness_is_that_of_the_worst_path_or_of_the_senders() -> None:
    assert late_ms({"paths": [{"p99_ns": 90_000}, {"p99_ns": 2_500_000}], "senders": {"p99_ns": 40_000}}) == 2.5
    assert late_ms({"paths": [], "senders": {"p99_ns": 3_000_000}}) == 3
    assert late_ms({}) == 0
