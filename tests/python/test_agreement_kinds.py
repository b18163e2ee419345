"""The kinds of scenario that are compared live and simulated: complete, runnable, and judged as stated."""

from __future__ import annotations

import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import Scenario, compile_plan
from mqttlab.scenario.load import parse_values

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches" / "agreement"))

from judgement import Bound, difference
from kinds import SAMPLE, Kind, kinds

KINDS = kinds()
# What no pair of a live and a simulated run can turn, and why.
LEFT_OUT = {
    "name": "every kind has its own",
    "hosts.forwards": "what takes time are its networks' links; tests/python/test_radio_live.py compares them",
    "description": "words",
    "seed": "every run has one",
    "backend": "that is what is compared",
    "repetitions": "the seeds are",
    "phases": "the same for all",
    "radio": "one machine in both; tests/python/test_radio_live.py compares it",
    "recording": "not what is measured",
    "thresholds": "judged of what was measured",
    "live": "how a live run is performed",
    "sim": "how a simulation is performed",
    "broker.service": "only simulated",
    "broker.retry": "only simulated: brokers of today repeat nothing by the clock",
    "broker.kind": "Mosquitto, or one that runs elsewhere",
    "broker.address": "of a broker elsewhere",
    "broker.tls": "of a broker elsewhere",
    "broker.host": "a name",
    "broker.port": "changes nothing that is measured",
    "broker.ports": "changes nothing that is measured",
    "broker.program": "how a live server is started",
    "broker.ready": "when a live run goes on",
    "broker.start_timeout": "when a live run gives up",
    "broker.when_it_dies": "no server dies here",
    "servers.program": "how a live server is started",
    "servers.ready": "when a live run goes on",
    "servers.start_timeout": "when a live run gives up",
    "servers.when_it_dies": "no server dies here",
    "servers.role": "proxies are compared by test_servers_live, gateways and proxies of ZeroMQ by kinds whose names "
                    "begin with `sn-` and `zmq-`",
    "servers.passes_to": "of a proxy",
    "servers.service": "only simulated",
    "servers.retry": "only simulated: brokers of today repeat nothing by the clock",
    "servers.kind": "Mosquitto, or one that runs elsewhere",
    "servers.address": "of a broker elsewhere",
    "servers.tls": "of a broker elsewhere",
    "servers.port": "changes nothing that is measured",
    "servers.ports": "changes nothing that is measured",
    "servers.gateway": "of kinds whose names begin with `sn-`; test_mqtt_sn_sim turns the rest",
    "groups.mqtt_sn": "of kinds whose names begin with `sn-`; test_mqtt_sn_sim turns the rest",
    "servers.zeromq": "of kinds whose names begin with `zmq-`; test_zeromq_sim turns the marks",
    "groups.zeromq": "of kinds whose names begin with `zmq-`; test_zeromq_sim turns the marks",
    "groups.mqtt": "the same fields as `mqtt`",
    "groups.client": "a program, which is real; test_programs_live compares its latencies with ours",
    "groups.publish.payload.path": "a file's content is as any payload",
}


def fields(model: type[BaseModel], place: str = "") -> Iterator[str]:
    """Every field's place, without indices; a link's two directions count as one."""
    for name, field in model.model_fields.items():
        here = f"{place}.{name}".removeprefix(".").replace(".down", ".up").replace("trunk.up", "networks.up")
        if any(here == left or here.startswith(f"{left}.") for left in LEFT_OUT):
            continue
        inner = list(models(field.annotation))
        yield from [f for part in inner for f in fields(part, here)] or [here]


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from models(argument)


def turned(value: Any, place: str = "") -> Iterator[str]:
    here = place.removeprefix(".").replace(".down", ".up").replace("trunk.up", "networks.up")
    yield here
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from turned(inner, f"{place}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from turned(inner, place)


def test_there_are_sixty_kinds_and_ten_of_them_are_the_sample() -> None:
    names = [kind.name for kind in KINDS]
    assert len(names) == len(set(names)) >= 60
    assert len(SAMPLE) == 10
    assert set(SAMPLE) <= set(names)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_is_a_scenario_for_both_backends(kind: Kind) -> None:
    for backend in ("live", "sim"):
        values = {"name": "kind", "backend": backend, "phases": {"duration": "1 s"}, **kind.values}
        assert compile_plan(parse_values(values, kind.name))["backend"] == backend


def test_every_field_of_a_scenario_is_turned_by_some_kind() -> None:
    # The hosts' names are no fields.
    places = {place for kind in KINDS for place in turned(kind.values)}
    used = {re.sub(r"^hosts\.\w+", "hosts", place) for place in places}
    # A queue written as one word turns the field that its unit names.
    used |= {"networks.up.queue.packets", "networks.up.queue.bytes", "groups.publish.payload.kind"}
    assert sorted({field for field in fields(Scenario) if field not in used}) == []


def test_series_agree_when_the_whole_interval_lies_within_the_bound() -> None:
    bound = Bound(relative=0.05)
    close = difference([100.0, 102.0, 98.0, 101.0, 99.0], [101.0, 103.0, 99.0, 102.0, 100.0], bound)
    assert (close.first, close.second, close.low, close.high) == (100.0, 101.0, 1.0, 1.0)
    assert close.agrees
    # The same mean difference, but so uncertain that it says nothing.
    assert not difference([100.0, 102.0, 98.0, 101.0, 99.0], [111.0, 93.0, 108.0, 92.0, 101.0], bound).agrees
    assert not difference([100.0, 100.0, 100.0], [106.0, 106.1, 105.9], bound).agrees


def test_the_interval_is_students() -> None:
    # Differences 1 … 5: mean 3, standard error 0.7071, t(4) = 2.776.
    found = difference([0.0] * 5, [1.0, 2.0, 3.0, 4.0, 5.0], Bound(relative=0.0, absolute=5.0))
    assert (found.low, found.high) == pytest.approx((1.0371, 4.9629), abs=1e-3)
    assert found.agrees


def test_one_run_alone_cannot_agree() -> None:
    with pytest.raises(ValueError, match="cannot be compared in pairs"):
        difference([1.0], [1.0], Bound(relative=0.05))


def test_queues_that_are_to_overflow_do(tmp_path: Path) -> None:
    fates = {}
    for name in ("broker-queue-overflows", "client-queue-overflows"):
        (kind,) = (kind for kind in KINDS if kind.name == name)
        values = {"name": name, "phases": {"duration": "5 s"}, "backend": "sim", **kind.values}
        outcome = perform(Job(compile_plan(parse_values(values)), tmp_path / name), lambda line: None)
        assert outcome.verdict == "complete", outcome.reason
        messages = Recording.open(outcome.directory).messages
        fates[name] = set(messages.select("fate", "cause").unique().rows())
    assert ("lost", "queue_full") in fates["broker-queue-overflows"]
    assert ("unsent", None) in fates["client-queue-overflows"]
