"""What no single event can tell: that what it changes is there, that its times lie within the run, and that the backend
performs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from mqttlab.mistaken import did_you_mean
from mqttlab.plurals import counted
from mqttlab.quantity import shown
from mqttlab.scenario.access import host_names, hosts_called
from mqttlab.scenario.compile import laid_links
from mqttlab.scenario.event import Event
from mqttlab.scenario.event_plan import (
    EVENTS_MAX,
    EventTimes,
    WrongLinkError,
    clients_of,
    directions,
    networks_called,
    planned_and_written,
    publishing_of,
)
from mqttlab.scenario.event_publish import publications_named
from mqttlab.scenario.event_words import seconds
from mqttlab.scenario.location import Location, Problem
from mqttlab.scenario.model import Group, Scenario
from mqttlab.scenario.mqtt_sn import datagram_room
from mqttlab.scenario.publish import Payload, file_problem
from mqttlab.scenario.routes import Laid, LaidLinks

if TYPE_CHECKING:
    from mqttlab.networks.radio import Radio
    from mqttlab.plan import types

# Each has its place in the plan: a megabyte for 60,000.
ACTED_ON_MAX = 5_000_000
# As in the engine (crates/plan, bounds.rs).
CONTENTS_MAX = 256


def event_problems(scenario: Scenario) -> Iterator[Problem]:
    """What is wrong with the events of a scenario that is right otherwise."""
    if not scenario.events:
        return
    if scenario.backend == "live" and scenario.live.parts > 1:
        yield ("events",), (f"cannot be performed by a run of several parts (`live.parts` is {scenario.live.parts}); "
                            "use 1, or leave the events out")
        return
    times = EventTimes(scenario)
    waiting = [problem for index, event in enumerate(scenario.events)
               for problem in _when(scenario, times, index, event)]
    if waiting:
        yield from waiting
        return
    count = sum(len(times.of(event)) * (1 if event.lasts is None else 2) for event in scenario.events)
    if count > EVENTS_MAX:
        yield ("events",), (f"are {count:,}, each beginning and end counted, but may be at most {EVENTS_MAX:,}; use a "
                            "longer `every`")
        return
    laid, subscribed = laid_links(scenario), _subscribed(scenario)
    found = False
    for index, event in enumerate(scenario.events):
        for problem in (*_time(scenario, event, times.of(event)), *_target(scenario, event, laid, subscribed)):
            found = True
            yield ("events", index, *problem[0]), problem[1]
    if not found:
        yield from _planned(scenario, laid)


def _when(scenario: Scenario, times: EventTimes, index: int, event: Event) -> Iterator[Problem]:
    """What an event waits for is there, takes place, and does not wait for it."""
    if event.when is None:
        return
    place: Location = ("events", index, "when")
    found = times.waited_for(event)
    if scenario.phases.instant(event.when) is not None:
        if found:
            yield place, f"is {shown(event.when)}, which a stage and an event are called; give the event another `name`"
    elif not found and scenario.phases.stages:
        yield place, (f"is {shown(event.when)}, which is the `name` of no stage and no event; "
                      f"{scenario.phases.near(event.when, times.names)}")
    elif not found:
        near = did_you_mean(event.when, times.names) if times.names else "no event has a `name`; give it one"
        yield place, f"is {shown(event.when)}, which is the `name` of no event; {near}"
    elif len(found) > 1:
        yield place, f"is {shown(event.when)}, which {len(found)} events are called; give each its own `name`"
    elif found[0][1] and found[0][0].lasts is None:
        yield place, (f"is {shown(event.when)}, but `{found[0][0].name}` has no end; add `for` to it, or write its "
                      "name alone, and `at`")
    elif event.every is not None and found[0][0].every is not None:
        yield ("events", index, "every"), (f"is {seconds(event.every)}, but `{found[0][0].name}` takes place several "
                                           "times, and this event each time with it; leave `every` out")
    elif others := times.in_turn(event):
        # Of a circle one line is enough.
        several = f" ({others:,} events wait for each other)" if others > 2 else ""
        yield place, (f"is {shown(event.when)}, which waits for this event in turn{several}; give one of them its time "
                      "with `at`")


def _time(scenario: Scenario, event: Event, when: range) -> Iterator[Problem]:
    phases = scenario.phases
    if event.when is not None:
        outside = [at for at in when if not -phases.warm_up <= at < phases.duration]
        if outside:
            yield ("at",) if event.at is not None else ("when",), (
                f"lets the event begin at {seconds(outside[0])}, but must lie between "
                f"{seconds(-phases.warm_up)} and {seconds(phases.duration)} of the measurement")
            return
    field: Location = ("every",) if event.at is None else ("at",)
    if event.when is None and event.at is not None and event.at < -phases.warm_up:
        yield field, (f"is {seconds(event.at)}, but must be {seconds(-phases.warm_up)} or later: publishing begins "
                      "with the warm-up (`phases.warm_up`)")
    elif event.when is None and event.at is not None and event.at >= phases.duration:
        yield field, (f"is {seconds(event.at)}, but must be earlier than {seconds(phases.duration)}, the end of the "
                      "measurement (`phases.duration`)")
    elif event.when is not None and not when and event.every is None:
        # What it waits for does not take place, and is told there.
        return
    elif not when:
        yield ("until",) if event.until is not None else field, (
            f"leaves no time for the event, which would be at {seconds(_first(event))} first; use an earlier time")
    elif when[-1] >= phases.duration:
        yield ("count",), (f"is {event.count}, but the last time would be at {seconds(when[-1])}, and the measurement "
                           f"ends at {seconds(phases.duration)}; use "
                           f"{len([at for at in when if at < phases.duration])} or fewer")
    elif event.lasts is not None and when[-1] + event.lasts >= phases.duration + phases.cool_down:
        yield ("for",), (f"is {seconds(event.lasts)}, but the run is over at "
                         f"{seconds(phases.duration + phases.cool_down)} of the measurement, before the event that "
                         f"begins at {seconds(when[-1])} has ended; leave `for` out, or use a longer "
                         "`phases.duration`")


def _first(event: Event) -> int:
    return event.every or 0 if event.at is None else event.at


def _subscribed(scenario: Scenario) -> dict[str, dict[str, None]]:
    """The filters that clients of groups may be subscribed to, by the group, as the scenario has them in a row."""
    found = {group.name: dict.fromkeys(one.filter for one in group.subscribe) for group in scenario.groups}
    for event in scenario.events:
        if event.do == "subscribe" and event.filter is not None and event.group in found:
            found[event.group][event.filter] = None
    return found


def _target(
    scenario: Scenario, event: Event, laid: LaidLinks, subscribed: dict[str, dict[str, None]],
) -> Iterator[Problem]:
    if event.network is not None:
        yield from _network(scenario, event, laid)
    elif event.server is not None:
        known = scenario.server_numbers
        if event.server not in known:
            yield ("server",), f"is the unknown server {shown(event.server)}; {did_you_mean(event.server, known)}"
        elif scenario.server_named(event.server).kind == "external":
            yield ("server",), f"is `{event.server}`, which runs elsewhere and cannot be changed; leave the event out"
        elif event.persistence and not scenario.server_named(event.server).persistence:
            yield ("persistence",), (f"is true, but `{event.server}` stores nothing; add `persistence = true` to the "
                                     "server")
    elif event.group is None:
        yield from _on_air(scenario, event)
    else:
        yield from _clients(scenario, event, subscribed)


def _on_air(scenario: Scenario, event: Event) -> Iterator[Problem]:
    field = event.target
    if scenario.radio is None:
        yield (field,), (f"is {shown(getattr(event, field))}, but there is no `radio` channel; add [radio], or leave "
                         "the event out")
    elif event.interferer is not None:
        known = [interferer.name for interferer in scenario.radio.interferers]
        if event.interferer not in known:
            near = did_you_mean(event.interferer, known) if known else "there is none; add [[radio.interferers]]"
            yield (field,), f"is the unknown interferer {shown(event.interferer)}; {near}"
    elif not hosts_called(scenario, str(event.station)):
        yield (field,), (f"is the unknown host {shown(event.station)}; "
                         f"{did_you_mean(str(event.station), host_names(scenario))}")
    elif event.position is not None:
        yield from _moved(scenario.radio, event, len(hosts_called(scenario, str(event.station))))


def _moved(radio: Radio, event: Event, stations: int) -> Iterator[Problem]:
    if stations > 1:
        yield ("station",), (f"is {shown(event.station)}, which are {stations} hosts; name one of them, such as "
                             f"\"{event.station}-0\"")
    elif radio.mobility is not None:
        yield ("position",), "is set, but stations move by themselves (`radio.mobility`); leave one of them out"
    elif event.lasts is not None and radio.positions is None:
        yield ("for",), ("is set, but nobody has said where the station stood; add `radio.positions`, or leave `for` "
                         "out")


def _clients(scenario: Scenario, event: Event, subscribed: dict[str, dict[str, None]]) -> Iterator[Problem]:
    by_name = {group.name: group for group in scenario.groups}
    if event.group not in by_name:
        yield ("group",), f"is the unknown group {shown(event.group)}; {did_you_mean(str(event.group), by_name)}"
        return
    group = by_name[event.group]
    if group.client is not None:
        yield ("group",), f"is `{group.name}`, whose clients are programs that do as they like; leave the event out"
    elif event.client is not None and event.client >= group.count:
        yield ("client",), (f"is {event.client}, but `{group.name}` has {group.count} clients, counted from 0; the "
                            f"last one is {group.count - 1}")
    elif event.do == "vanish" and scenario.backend == "live" and (
            scenario.network != "emulated" or group.host == scenario.server_of(group).host):
        # The kernel of a host that is there closes connections of programs that are gone.
        yield ("do",), (f"is \"vanish\", but no emulated network lies between `{group.name}` and its server, and its "
                        "kernel would end its connections; use \"disconnect\", or a `host` behind [[networks]]")
    elif not clients_of(event, group):
        yield ("share",), f"is less than one of the {group.count} clients of `{group.name}`; use a larger share"
    elif event.publishes:
        yield from _publishing(scenario, event, group)
    elif event.filter is not None:
        yield from _subscribing(scenario, event, group, subscribed[group.name])


def _subscribing(scenario: Scenario, event: Event, group: Group, filters: dict[str, None]) -> Iterator[Problem]:
    stop = scenario.sim.stop
    if scenario.backend == "sim" and stop is not None and stop.deliveries_outstanding is not None:
        yield ("do",), (f"is \"{event.do}\", but `sim.stop.deliveries_outstanding` counts expected deliveries, and "
                        "nobody knows beforehand who is subscribed when; leave one of them out")
    elif group.protocol != "mqtt":
        yield ("do",), (f"is \"{event.do}\", but `{group.name}` speaks "
                        f"{'MQTT-SN' if group.protocol == 'mqtt-sn' else 'ZeroMQ'}, whose clients keep their "
                        "subscriptions; use MQTT, or leave the event out")
    elif str(event.filter).startswith("$share/"):
        yield ("filter",), f"is {shown(event.filter)}, but events do not change shared subscriptions; leave it out"
    elif event.do == "unsubscribe" and event.filter not in filters:
        known = did_you_mean(str(event.filter), filters) if filters else "it subscribes to nothing"
        yield ("filter",), f"is {shown(event.filter)}, to which `{group.name}` does not subscribe; {known}"
    elif event.do == "subscribe" and event.lasts is not None and any(
            one.filter == event.filter for one in group.subscribe):
        yield ("for",), (f"is {seconds(event.lasts)}, but `{group.name}` subscribes to {shown(event.filter)} anyway, "
                         "and would unsubscribe from it after that; leave `for` out, or use another filter")


def _publishing(scenario: Scenario, event: Event, group: Group) -> Iterator[Problem]:
    topics = [publish.topic for _, publish in group.publications]
    those = publications_named(event, group)
    if not topics:
        yield ("group",), f"is `{group.name}`, which publishes nothing; add `publish` to the group, or name another one"
    elif not those and isinstance(event.publication, int):
        yield ("publication",), (f"is {event.publication}, but `{group.name}` has "
                                 f"{counted(len(topics), 'publication')}, counted from 0; the last one is "
                                 f"{len(topics) - 1}")
    elif not those:
        yield ("publication",), (f"is the unknown topic {shown(event.publication)} of `{group.name}`; "
                                 f"{did_you_mean(str(event.publication), topics)}")
    if any(group.publications[number][1].replay is not None for number in those):
        yield ("group",), (f"is `{group.name}`, which replays a table (`publish.replay`): its rows say when and what; "
                           "name another publication (`publication`), or leave the event out")
    closed = [number for number in those if group.publications[number][1].arrival == "back-to-back"]
    follows = f"each message of `{group.name}` follows the last (`arrival = \"back-to-back\"`)"
    if closed and event.do == "burst":
        yield ("do",), f"is \"burst\", but {follows}; leave the event out"
    if event.publish is None:
        return
    if closed and event.publish.every:
        field = "interval" if event.publish.rate is None else "rate"
        yield ("publish", field), f"is set, but {follows}; use `do = \"stop-publishing\"` for none"
    if event.publish.qos and group.protocol == "zeromq":
        yield ("publish", "qos"), f"is {event.publish.qos}, but ZeroMQ acknowledges nothing; leave it out, or use MQTT"
    if event.publish.qos and group.protocol == "mqtt-sn" and group.mqtt_sn.without_connection:
        yield ("publish", "qos"), f"is {event.publish.qos}, but must be 0 with `without_connection`: it becomes QoS -1"
    if event.publish.payload is not None:
        yield from _payload(scenario, event.publish.payload, group)


def _payload(scenario: Scenario, payload: Payload, group: Group) -> Iterator[Problem]:
    problem, room = file_problem(payload.path), datagram_room(scenario.mtu)
    if problem is not None:
        yield ("publish", "payload", "path"), problem
    elif group.protocol == "mqtt-sn" and payload.size is not None and payload.size > room:
        yield ("publish", "payload"), (f"has {payload.size} B, but a datagram of {scenario.mtu} B (`mtu`) has room for "
                                       f"{room} B, and MQTT-SN does not fragment; use a smaller payload, or MQTT")


def _network(scenario: Scenario, event: Event, laid: LaidLinks) -> Iterator[Problem]:
    name = str(event.network)
    if scenario.radio is not None and name != "trunk":
        yield ("network",), "cannot be changed on a `radio` channel, whose stations have no links; leave the event out"
        return
    if scenario.network != "emulated":
        yield ("network",), (f"is {shown(name)}, but `network` is \"{scenario.network}\" and has no links that could "
                             "change; use \"emulated\" and [[networks]]")
        return
    numbers = networks_called(scenario, name)
    if len(numbers) != 1:
        known = {each for network in scenario.networks for each in (network.name, *network.between) if each is not None}
        known |= {"trunk"} if scenario.trunk is not None else set()
        yield ("network",), (
            f"is the unknown network {shown(name)}; {did_you_mean(name, known)}" if not numbers else
            f"is {shown(name)}, a host of {len(numbers)} networks; name the other host of the network that you mean, "
            "or give the network a `name`")
        return
    ways = laid.get(numbers[0], {})
    if event.direction in ("up", "down") and "both" in ways:
        yield ("direction",), (f"is \"{event.direction}\", but both directions of this network share one link; leave "
                               "it out")
    elif not directions(event, ways):
        direction = f" `{event.direction}`" if event.direction in ("up", "down") else ""
        yield ("direction" if direction else "network",), (
            f"is {shown(event.direction if direction else name)}, but the network has no link{direction}: it is not "
            "emulated; add one to the network")
    elif (held := _held_by_trace(event, directions(event, ways))) is not None:
        field, trace = held
        yield (field,), (f"changes what the network's trace {shown(trace)} has values of, so that it would have no "
                         "effect; leave it out, or the column of the trace")
    elif event.down is not None and (event.direction or "both") == "both" and len(ways) == 1 and "both" not in ways:
        has = next(iter(ways))
        yield ("down",), (f"is {shown(event.down)}, but the network has only a link `{has}`, and what goes the other "
                          f"way is not emulated; write `direction = \"{has}\"`, or add the other link")


def _held_by_trace(event: Event, ways: list[Laid]) -> tuple[str, str] | None:
    """A field of an event that one of these links takes from its trace, and the trace."""
    loses = {"burst_loss": "loss", "bit_errors": "loss"}
    return next(((name, way.link.trace.name) for way in ways if way.link.trace is not None for name in event.changed
                 if loses.get(name, name) in way.link.trace.sets), None)


def _planned(scenario: Scenario, laid: LaidLinks) -> Iterator[Problem]:
    """Whether they are not too many, and links have fields that go together all the time."""
    publishing = publishing_of(scenario)
    numbers = {id(event): index for index, event in enumerate(scenario.events)}
    found: dict[int, list[Problem]] = {}
    acted_on = 0
    try:
        for event, planned in planned_and_written(scenario, laid, publishing):
            about = cast("dict[str, list[Any]]", planned)
            acted_on += len(about.get("links") or about.get("clients") or ())
            if acted_on > ACTED_ON_MAX:
                yield ("events",), (f"change more than {ACTED_ON_MAX:,} links and clients, each time counted; use "
                                    "fewer clients, or a longer `every`")
                return
            if numbers[id(event)] not in found:
                problems = [*_queue(scenario, event, planned)]
                found |= {numbers[id(event)]: problems} if problems else {}
    except WrongLinkError as error:
        found[numbers[id(error.event)]] = [((), f"makes a link that cannot be: it {error}")]
    for group in scenario.groups:
        contents = len(group.publications) + (len(publishing[group.name].contents) if group.name in publishing else 0)
        if contents > CONTENTS_MAX:
            yield ("events",), (f"make {contents} kinds of messages of `{group.name}`, each payload and QoS counted, "
                                f"but may make at most {CONTENTS_MAX}; use fewer payloads")
    for index, problems in sorted(found.items()):
        yield from ((("events", index, *field), words) for field, words in problems)


def _queue(scenario: Scenario, event: Event, planned: types.Event) -> Iterator[Problem]:
    """A queue has room for a packet."""
    if "links" not in planned or planned["change"]["kind"] != "spec":
        return
    spec = planned["change"]["spec"]
    largest = max(scenario.mtu + spec["overhead_bytes"], spec["minimum_frame_bytes"])
    limit = spec["queue"]["limit_bytes"]
    # What the link had before is too short at another rate, too.
    if limit is not None and limit < largest:
        place: Location = () if event.queue is None else ("queue",)
        words = f"leaves a queue of {limit} B, which" if event.queue is None else f"is {limit} B, but"
        yield place, (f"{words} must be {largest} B or more: a shorter queue drops every packet of {scenario.mtu} B "
                      "(`mtu`)")
