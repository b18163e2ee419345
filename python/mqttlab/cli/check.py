"""``mqttlab check``: what a scenario would run, in words, and what is unusual in it."""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqttlab.digits import plain
from mqttlab.networks.link import LinkDirection
from mqttlab.networks.trace import Trace
from mqttlab.plurals import counted
from mqttlab.quantity import rate_words, shown
from mqttlab.scenario import Scenario, compile_plan, warnings_of
from mqttlab.scenario.access import is_counted
from mqttlab.scenario.compile import laid_links
from mqttlab.scenario.event_plan import EventTimes
from mqttlab.scenario.event_words import told
from mqttlab.scenario.load import load
from mqttlab.scenario.needs import need_secrets
from mqttlab.scenario.one_sentence import what_and_how_often
from mqttlab.scenario.publish import Publish
from mqttlab.scenario.routes import TRUNK, LaidLinks, placed
from mqttlab.scenario.sentence import sentence
from mqttlab.scenario.wording import Source, read_text
from mqttlab.terminal import say, say_json

if TYPE_CHECKING:
    from mqttlab.plan.types import Plan


@contextmanager
def without_collection() -> Iterator[None]:
    """Have Python's garbage collector off: a check makes hardly any circles of objects, and of 20,000 groups a sixth of
    its time would be looking through everything that was read."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


@without_collection()
def show_check(scenario: Path, overrides: dict[str, Any], show_plan: bool) -> None:
    """Print what would run, or the plan itself as JSON.

    Raises:
        ScenarioError: the scenario cannot be run.
    """
    loaded = load(scenario, overrides)
    need_secrets(loaded, Source(str(scenario), read_text(scenario), overrides))
    if loaded.thresholds:
        from mqttlab.cli.thresholds import check_thresholds

        check_thresholds(loaded, scenario, overrides)
    plan = compile_plan(loaded)
    if show_plan:
        say_json(plan)
        return
    # People write a description in lines; here it is a paragraph.
    say(" ".join(loaded.description.split()), head=f"{loaded.name}: ")
    for line in [f"  {sentence(plan)}", *_what_would_run(loaded, plan)]:
        say(line)
    warn(loaded, scenario, overrides)


def warn(loaded: Scenario, path: Path, replaced: Collection[str]) -> None:
    """Say what is unusual in a scenario, on standard error."""
    for problem in warnings_of(loaded, str(path), read_text(path), replaced):
        say(f"mqttlab: warning: {problem}", err=True)


def _links(loaded: Scenario) -> list[str]:
    """Each link of the scenario in a line, what is not emulated included."""
    lines, laid = [], laid_links(loaded)
    for number, network in enumerate(loaded.networks):
        first, second = network.between
        links = placed(network, upwards=True)
        each = "host" if any(is_counted(loaded, host) for host in network.between) else "client"
        whose = {"each": f"; a link for each {each}", "shared": "; one link for all", None: ""}[network.link]
        ways = (f"{first} → {second}", f"{second} → {first}") if network.model is None else (
            f"{first} – {second}, to the broker", f"{first} – {second}, from the broker")
        trips = [_round_trip(laid, number, way) for way in ("up", "down")]
        lines += [f"{way}: {_link(link, trip)}{whose}"
                  for way, link, trip in zip(ways, (links.up, links.down), trips, strict=True)]
        if network.nat is not None:
            then = {"drop": "until a client connects anew", "revive": "until the client sends something"}
            lines.append(f"{first} – {second}: NAT, which drops what comes for a TCP connection after "
                         f"{plain(network.nat.timeout / 1e9)} s of silence, {then[network.nat.forgotten]}")
    if loaded.trunk is not None:
        lines += [f"switch → broker: {_link(loaded.trunk.up, _round_trip(laid, TRUNK, 'up'))}",
                  f"broker → switch: {_link(loaded.trunk.down, _round_trip(laid, TRUNK, 'down'))}"]
    return lines


def _round_trip(laid: LaidLinks, number: int, way: str) -> int:
    ways = laid.get(number, {})
    one = ways.get(way, ways.get("both"))
    return 0 if one is None else one.round_trip_ns


def _link(link: LinkDirection | None, round_trip_ns: int) -> str:
    if link is None:
        return "not emulated (no rate, delay or loss)"
    if link.trace is not None:
        spans = [_span(link.trace, name) for name in link.trace.sets]
        own = [] if "delay" in link.trace.sets else [f"{plain(link.delay / 1e6)} ms"]
        ends = "then held" if link.trace_end == "hold" else "then again"
        return f"follows {link.trace.name} ({plain(link.trace.length_ns / 1e9)} s, {ends}): {', '.join(spans + own)}"
    parts = ["no rate limit" if link.rate is None else f"{plain(link.rate / 1000)} kbit/s",
             f"{plain(link.delay / 1e6)} ms"]
    if link.jitter:
        parts[1] += f" ± {plain(link.jitter / 1e6)} ms"
    if link.burst_loss is not None or link.bit_errors is not None:
        parts.append("loss in bursts")
    elif link.loss[0]:
        parts.append(f"{plain(100 * link.loss[0] / link.loss[1])} % loss")
    if link.queue.by_rate:
        trip = f" at a round trip of {plain(round_trip_ns / 1e6)} ms" if link.queue.bdp is not None else ""
        parts.append(f"queue {link.queue.words()} ({link.queue.limit_bytes(link.rate, round_trip_ns)} B{trip})")
    if link.policer is not None:
        parts.append(link.policer.words())
    if link.discipline.kind != "tail-drop":
        parts.append(link.discipline.words())
    return ", ".join(parts)


def _span(trace: Trace, name: str) -> str:
    """What a trace has of a field of links, from the least to the greatest, and the mean."""
    def words(value: int) -> str:
        if name == "rate":
            return rate_words(value)
        return f"{plain(value / 10**7, 3)} %" if name == "loss" else f"{plain(value / 1e6, 4)} ms"

    least, most = trace.span(name)
    field = "" if name == "rate" else f"{name} "
    if least == most:
        return f"{field}{words(least)}"
    over = " over a second" if trace.is_opportunities else ""
    return f"{field}{words(least)} to {words(most)}{over} (mean {words(trace.mean(name))})"


def _replayed(publish: Publish, what: str) -> str:
    assert publish.replay is not None
    table, topics = publish.replay.table, publish.topic_patterns
    to = topics[0] if len(topics) == 1 else f"{len(topics):,} topics"
    times = "dates" if table.time == "iso" else f"in {table.time}"
    unused = f", unused columns: {', '.join(shown(name) for name in table.unused)}" if table.unused else ""
    return f"{what} to {to} (times {times}{unused})"


def _what_would_run(loaded: Scenario, plan: Plan) -> list[str]:
    lines = []
    for group, planned in zip(loaded.groups, plan["groups"], strict=True):
        does = []
        published = [
            _replayed(publish, what_and_how_often(as_planned)) if publish.replay is not None else
            f"{as_planned['topic']} at QoS {as_planned['qos']} ({what_and_how_often(as_planned)})"
            for (_, publish), as_planned in zip(group.publications, planned["publications"], strict=True)]
        if published:
            does.append("publish " + ", ".join(published))
        if group.subscribe:
            does.append("subscribe to " + ", ".join(f"{s.filter} at QoS {s.qos}" for s in group.subscribe))
        if group.relay is not None:
            does.append("relay")
        if group.churn is not None:
            does.append(group.churn.words())
        if group.client is not None:
            does.append(f"run {' '.join(group.client.command)}")
        lines.append(f"  {group.count} × {group.name} on {group.host}: {'; '.join(does)}")
    phases = loaded.phases
    seconds = (phases.warm_up + phases.duration) / 1e9
    for server in plan["servers"]:
        role = next(iter(server["role"])) if isinstance(server["role"], dict) else server["role"]
        host, port = plan["hosts"][server["host"]]["name"], server["endpoints"][0]["port"]
        name = "" if server["name"] == role else f" {server['name']}:"
        what = f"{server['kind']} {server['version']}".strip()
        lines.append(f"  {role}{name} {what} on {host}, port {port}")
    lines.append(f"  network {plan['network']['description']} ({counted(len(plan['network']['links']), 'link')})")
    lines += [f"    {line}" for line in _links(loaded)]
    lines += [f"    {loaded.radio.words()}"] if loaded.radio is not None and loaded.radio.words() else []
    lines += [f"  host {name}: {host.limits.words()}" for name, host in loaded.hosts.items() if host.limits is not None]
    lines += [f"  stages of the measurement: {phases.told()}"] if phases.stages else []
    times = EventTimes(loaded)
    lines += [f"  {told(event, times.of(event))}" for event in loaded.events]
    if plan["backend"] == "live" and loaded.live.parts > 1:
        lines.append(f"  shared by {loaded.live.parts} engines, each with its part of the clients")
    lines.append(f"  {plain(seconds)} s of publishing, then up to {plain(phases.cool_down / 1e9)} s of cooling down; "
                 f"{counted(loaded.repetitions, 'repetition')}, seed {loaded.seed}")
    return lines
