"""The kinds of scenario that are compared live and simulated: complete, runnable, and judged as stated."""

from __future__ import annotations

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

from in_force import Trial, either_way, field_at, places
from judgement import Bound, difference
from kinds import SAMPLE, Kind, kinds

KINDS = kinds()
# What no pair of a live and a simulated run can turn, and why.
LEFT_OUT = {
    "events": "test_link_events.py, test_server_events.py and test_client_events.py compare them",
    "networks.nat": "test_nat.py compares them",
    "groups.churn": "test_churn.py compares them",
    "groups.subscribe.retain_handling": "test_retain_handling.py compares them",
    "groups.subscribe.retain_as_published": "test_retain_as_published.py compares them",
    "groups.subscribe.no_local": "test_no_local.py compares them",
    "groups.publish.expiry": "test_mqtt5_traffic.py compares it",
    "hosts.limits": "test_weak_hosts.py compares them",
    "mqtt.credentials": "test_credentials.py compares the packets",
    "mqtt.duplicate_ids": "the kind `taken-over` has two groups with one identifier",
    **dict.fromkeys(("networks.up.policer", "networks.down.policer", "trunk.up.policer", "trunk.down.policer"),
                    "test_policer.py compares them"),
    **dict.fromkeys(("hosts.tcp.ecn", *(f"{place}.discipline.ecn" for place in (
        "networks.up", "networks.down", "trunk.up", "trunk.down"))), "test_ecn.py compares them"),
    **{f"{place}.{field}": "kinds whose names begin with `trace-` turn that of a network; test_traces.py the others"
       for field in ("trace", "trace_end")
       for place in ("networks.up", "networks.down", "trunk", "trunk.up", "trunk.down")},
    "networks.trace_end": "no kind outlasts its trace; chance draws it",
    "networks.name": "what events call it",
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
    "servers.topic_alias_maximum": "the kind topic-aliases turns that of `broker`",
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
    "groups.publish.payload.template": "drawn by chance; test_payloads compares them",
    "groups.publish.replay": "a file; test_replay compares them",
    "groups.publish.stages": "drawn by chance; test_publications compares them",
}


IN_FORCE: dict[str, tuple[str, ...]] = {
    "qos0": ("broker.nagle", "groups.nagle", "groups.publish.payload", "groups.publish.rate", "networks.up.delay"),
    "qos1": ("groups.publish.qos", "groups.subscribe.qos"),
    "qos2-handed-on-at-publish": ("mqtt.deliver_qos2_on",),
    "jitter-normal": ("networks.up.jitter",),
    "jitter-uniform-overtaking": ("networks.up.distribution", "networks.up.keep_order"),
    "jitter-pareto-correlated": ("networks.up.correlation",),
    "rate-250kbit": ("networks.up.rate",),
    "frame-overhead": ("networks.up.minimum_frame", "networks.up.overhead"),
    "tail-drop-packets": (
        "groups.publish.arrival", "groups.publish.burst.every", "groups.publish.burst.size", "networks.up.queue"),
    "codel": (
        "networks.up.discipline.interval", "networks.up.discipline.kind", "networks.up.discipline.target"),
    "fq-codel": ("networks.up.discipline.flows", "networks.up.discipline.quantum"),
    "queue-with-delay-line": ("networks.up.queue_counts_delay_line",),
    "loss2-qos0": ("networks.up.loss",),
    "burst-loss": (
        "networks.up.burst_loss.bad_to_good", "networks.up.burst_loss.good_to_bad",
        "networks.up.burst_loss.loss_bad", "networks.up.burst_loss.loss_good"),
    "bit-errors": (
        "networks.up.bit_errors.bad_to_bad", "networks.up.bit_errors.error_bad",
        "networks.up.bit_errors.error_good", "networks.up.bit_errors.good_to_bad"),
    "loss-at-entry": ("networks.up.loss_at",),
    "duplicates": ("networks.up.duplicate",),
    "corruption": ("networks.up.corrupt",),
    "reordering": ("networks.up.reorder.gap", "networks.up.reorder.probability"),
    "reordering-apart": ("groups.publish.interval",),
    "outages-persistent-session": ("mqtt.clean_session", "mqtt.keep_alive"),
    "crowd-narrowband-qos0": ("networks.model",),
    "crowd-at-broker": ("networks.placement",),
    "trunk-links-of-their-own": ("networks.link",),
    "both-on-hosts-by-count": ("groups.connect_over", "groups.publish.start_phase"),
    "network-direct": ("network",),
    "two-brokers": ("groups.transport.tcp.nagle", "servers.max_inflight", "servers.max_queued", "servers.nagle"),
    "closed-loop-qos2-window1": ("mqtt.max_inflight",),
    "inflight1-qos1": ("broker.max_inflight",),
    "receive-maximum2-qos2": ("mqtt.receive_maximum", "mqtt.version"),
    "topic-aliases": ("broker.topic_alias_maximum", "mqtt.topic_alias_maximum", "mqtt.topic_aliases"),
    "message-properties": (
        "groups.publish.content_type", "groups.publish.correlation_data", "groups.publish.payload_format",
        "groups.publish.response_topic", "groups.publish.user_properties"),
    "broker-queue-overflows": ("broker.max_queued",),
    "client-queue-overflows": ("mqtt.max_queued",),
    "buffers-4kB": ("hosts.tcp.receive_buffer", "hosts.tcp.send_buffer"),
    "initial-window-2-mss-536": ("hosts.tcp.initial_window", "hosts.tcp.mss"),
    "mtu-576": ("mtu",),
    "newreno-without-sack": ("hosts.tcp.congestion_control", "hosts.tcp.sack"),
    "no-timestamps-no-scaling": ("hosts.tcp.timestamps", "hosts.tcp.window_scaling"),
    "rto-min-1s-no-tail-loss-probe": ("hosts.tcp.rto_min", "hosts.tcp.tail_loss_probe"),
    "acknowledged-at-once": ("hosts.tcp.delayed_ack",),
    "acknowledged-within-10ms": ("hosts.tcp.delayed_ack_max",),
    "rto-max-1.2s": ("hosts.tcp.rto_max",),
    "syn-retries": (
        "groups.reconnect.initial", "groups.reconnect.jitter", "hosts.tcp.syn_linear_retries",
        "hosts.tcp.syn_retries"),
    "syn-linux-2021": ("hosts.tcp.profile",),
    "topics-and-wild-cards": ("groups.publish.topics",),
    "retained-and-will": ("groups.publish.retain", "mqtt.will.payload"),
    "relay-round-trip": ("groups.relay.qos", "groups.relay.suffix"),
    "bursts-with-gaps": ("groups.publish.burst.gap",),
    "payload-random": ("groups.publish.messages", "groups.publish.payload.size"),
    "mqtt-3.1-with-credentials": ("mqtt.client_id", "mqtt.password", "mqtt.retry", "mqtt.username"),
    "keep-alive-by-silence": ("mqtt.ping",),
    "reconnects": ("groups.late_after",),
    "taken-over": ("groups.mqtt.clean_session", "groups.mqtt.client_id"),
    "taken-over-clean": ("groups.mqtt.will.payload", "groups.mqtt.will.qos", "groups.mqtt.will.retain"),
    "taken-over-for-good": ("groups.reconnect.enabled",),
    "taken-over-slowly": ("groups.reconnect.maximum", "groups.reconnect.timeout"),
    "taken-over-expiring": ("groups.mqtt.session_expiry", "groups.mqtt.version"),
    "websocket-large": ("groups.transport.websocket.path",),
    "tls1.2-qos1": ("groups.transport.tls.client_certificate", "groups.transport.tls.version"),
    "tls1.3-taken-over-without-resumption": ("groups.transport.tls.resumption",),
    "sn-qos1": ("groups.mqtt_sn.retry",),
    "sn-without-connection": ("groups.mqtt_sn.without_connection", "servers.gateway.retry"),
    "sn-aggregating": ("servers.gateway.mode",),
    "sn-keep-alive": ("groups.mqtt_sn.keep_alive",),
    "sn-keep-alive-aggregating": ("servers.gateway.keep_alive",),
    "sn-loss30-gives-up": ("groups.mqtt_sn.retries", "servers.gateway.retries"),
    "sn-down-asleep": (
        "groups.mqtt_sn.sleep.duration", "groups.mqtt_sn.sleep.linger", "groups.mqtt_sn.sleep.wake_every"),
    "zmq-small": ("groups.subscribe",),
    "trace-wifi-busy": ("networks.trace",),
}
"""By kind, fields without which its simulation is another one: `benches/agreement/in_force.py` finds them."""
# Fields that kinds turn and that make no difference to a message or a packet, and why.
NEVER_IN_FORCE = {
    "broker.persistence": "no broker is started again",
    "servers.persistence": "no broker is started again",
    "groups.publish.payload.kind": "what is in a payload of its size",
    "hosts": "a table without fields",
    "mqtt": "a table without fields",
    "networks": "a list without any",
    "sim": "a table without fields",
}


def fields(model: type[BaseModel], place: str = "") -> Iterator[str]:
    """Every field's place, without indices; a link's two directions count as one."""
    for name, field in model.model_fields.items():
        here = either_way(f"{place}.{name}".removeprefix("."))
        if any(here == left or here.startswith(f"{left}.") for left in LEFT_OUT):
            continue
        inner = list(models(field.annotation))
        yield from [f for part in inner for f in fields(part, here)] or [here]


def models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from models(argument)


def turned(value: Any, place: tuple[str, ...] = ()) -> Iterator[str]:
    yield field_at(place)
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from turned(inner, (*place, name))
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
    used = {place for kind in KINDS for place in turned(kind.values)}
    # A queue written as one word turns the field that its unit names.
    used |= {f"networks.up.queue.{unit}" for unit in ("packets", "bytes")}
    # Times and products are bytes in the plan.
    used |= {f"networks.up.queue.{unit}" for unit in ("time", "bdp")}
    used |= {"groups.publish.payload.kind"}
    assert sorted({field for field in fields(Scenario) if field not in used}) == []


def test_every_field_that_is_turned_is_in_force_in_some_kind() -> None:
    """A window that never fills and a time-out that never ends are turned, and compare nothing."""
    shown = {field for fields_of_kind in IN_FORCE.values() for field in fields_of_kind}
    # A group's session has the fields of the run's.
    shown |= {field.removeprefix("groups.") for field in shown if field.startswith("groups.mqtt.")}
    turned_somewhere = {field for kind in KINDS for field in places(kind.values)}
    assert sorted(turned_somewhere - shown - set(NEVER_IN_FORCE)) == []
    assert sorted(set(IN_FORCE) - {kind.name for kind in KINDS}) == []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name in IN_FORCE], ids=lambda kind: kind.name)
def test_without_a_field_that_is_in_force_a_kind_is_another_one(kind: Kind, tmp_path: Path) -> None:
    trial = Trial(kind, tmp_path)
    assert [field for field in IN_FORCE[kind.name] if not trial.is_in_force(field)] == []


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
