"""What may be fired by hand in a run: what there is, and what may happen to it, for a form to choose from.

Each choice is tried as an event of the run's scenario, by the checks that every event goes through. So nothing is
offered that would be refused for what it is; a length of time or a value that somebody types may still be wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from mqttlab.scenario.access import host_names, hosts_called
from mqttlab.scenario.event import ACTIONS, ENDS, TARGETS, Event
from mqttlab.scenario.event_check import event_problems
from mqttlab.scenario.event_plan import networks_called
from mqttlab.scenario.event_words import DONE
from mqttlab.scenario.model import Group, Scenario, Server

KINDS = {"network": "Networks", "server": "Servers", "group": "Clients", "interferer": "Interferers",
         "station": "Stations"}
SIGNALS = {"stop": "stop in order (SIGTERM)", "kill": "kill (SIGKILL)", "pause": "pause (SIGSTOP)",
           "continue": "continue (SIGCONT)", "start": "start", "vanish": "vanish, as after a loss of power",
           "disconnect": "disconnect in order"}
WAYS = ("both", "up", "down")
# A field of a link, what it may be as an example, and a value with which every link can be.
OF_LINKS = (("rate", "50 kbit/s", "1 Gbit/s"), ("delay", "300 ms", "1 ms"), ("jitter", "20 ms", "1 us"),
            ("loss", "2 %", "1 %"))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A field that goes with what happens."""

    name: str
    title: str
    example: str = ""
    options: tuple[tuple[str, str], ...] = ()
    """What it may be and how that is called; any text where there are none. Without a value it is left out."""
    pair: bool = False
    """Whether it is two lengths."""


@dataclass(frozen=True, kw_only=True)
class Deed:
    """Something that may happen."""

    title: str
    words: tuple[str, ...]
    """Fields of the event, as ``mqttlab event`` has them."""
    then: str = ""
    """What happens after a while, where it may last for one."""
    asked: tuple[Asked, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Thing:
    """Something that may change."""

    kind: str
    name: str
    words: tuple[str, ...]
    deeds: tuple[Deed, ...]


def things(scenario: Scenario) -> list[Thing]:
    """What may change in a run of a scenario, with what may happen to it."""
    tried = Tried(scenario)
    found = [*_networks(scenario, tried), *_servers(scenario, tried), *_groups(scenario, tried), *_air(scenario, tried)]
    order = list(TARGETS)
    return sorted((thing for thing in found if thing.deeds), key=lambda thing: order.index(thing.kind))


class Tried:
    """Tries events of a scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def __call__(self, **fields: Any) -> bool:
        """Whether this may happen at the beginning of publishing."""
        try:
            event = Event.model_validate({**fields, "at": f"{-self._scenario.phases.warm_up} ns"})
        except ValidationError:
            return False
        return not any(event_problems(self._scenario.model_copy(update={"events": [event]})))


def _networks(scenario: Scenario, tried: Tried) -> Iterator[Thing]:
    names: list[str] = ["trunk"] if scenario.trunk is not None else []
    for number, network in enumerate(scenario.networks):
        called = network.name if network.name is not None else next(
            (end for end in network.between if networks_called(scenario, end) == [number]), None)
        names += [] if called is None else [called]
    for name in names:
        yield Thing(kind="network", name=name, words=(_word("network", name),), deeds=tuple(_of_links(name, tried)))


def _of_links(name: str, tried: Tried) -> Iterator[Deed]:
    """Down and up in the directions that can be, then another rate, delay or loss."""
    def ways(**fields: Any) -> list[str]:
        return [way for way in WAYS if tried(network=name, **({} if way == "both" else {"direction": way}), **fields)]

    def direction(possible: list[str]) -> tuple[Asked, ...]:
        options = tuple(("" if way == "both" else f'"{way}"', way) for way in possible)
        return (Asked(name="direction", title="Direction", options=options),) if possible != ["both"] else ()

    if down := ways(down=True):
        queued = Asked(name="queued", title="Waiting frames", options=(("", "are dropped"), ('"keep"', "wait")))
        yield Deed(title="down", words=("down=true",), then="up again", asked=(*direction(down), queued))
        yield Deed(title="up", words=("down=false",), asked=direction(down))
    values = {field: ways(**{field: value}) for field, _, value in OF_LINKS}
    if any(values.values()):
        asked = tuple(Asked(name=field, title=field.capitalize(), example=example)
                      for field, example, _ in OF_LINKS if values[field])
        possible = [way for way in WAYS if any(way in found for found in values.values())]
        yield Deed(title="change rate, delay or loss", words=(), then="as before", asked=(*asked, *direction(possible)))


def _servers(scenario: Scenario, tried: Tried) -> Iterator[Thing]:
    for _, server in scenario.all_servers:
        deeds = tuple(replace(deed, asked=_stored(server, deed)) for deed in _does("server", server.name, tried))
        yield Thing(kind="server", name=server.name, words=(_word("server", server.name),), deeds=deeds)


def _stored(server: Server, deed: Deed) -> tuple[Asked, ...]:
    """Whether it finds what it had stored: asked of what stores something, and ends or begins."""
    if not server.persistence or not {_word("do", do) for do in ("stop", "kill", "start")} & {*deed.words}:
        return ()
    return (Asked(name="persistence", title="Stored sessions", options=(("", "are kept"), ("false", "are lost"))),)


def _groups(scenario: Scenario, tried: Tried) -> Iterator[Thing]:
    for group in scenario.groups:
        # What clients publish and subscribe to is fixed when a run begins.
        deeds = tuple(replace(deed, asked=_whom(group)) for deed in _does("group", group.name, tried))
        yield Thing(kind="group", name=group.name, words=(_word("group", group.name),), deeds=deeds)


def _whom(group: Group) -> tuple[Asked, ...]:
    if group.count == 1:
        return ()
    return (Asked(name="share", title="Share of them", example="100 %"),
            Asked(name="client", title="or one, by number", example=f"0 to {group.count - 1}"))


def _air(scenario: Scenario, tried: Tried) -> Iterator[Thing]:
    if scenario.radio is None:
        return
    for interferer in scenario.radio.interferers:
        yield Thing(kind="interferer", name=interferer.name, words=(_word("interferer", interferer.name),),
                    deeds=tuple(_does("interferer", interferer.name, tried)))
    for host in host_names(scenario):
        count = len(hosts_called(scenario, host))
        for name in dict.fromkeys([host, *(f"{host}-{number}" for number in range(min(count, STATIONS_MAX)))]):
            if count == 1 and name != host:
                continue
            deeds = [*_does("station", name, tried)]
            if tried(station=name, position=["0 m", "0 m"]):
                then = "back in its place" if scenario.radio.positions is not None else ""
                place = Asked(name="position", title="To (x, y)", example="90 m", pair=True)
                deeds.append(Deed(title="move", words=(), then=then, asked=(place,)))
            yield Thing(kind="station", name=name, words=(_word("station", name),), deeds=tuple(deeds))


def _does(target: str, name: str, tried: Tried) -> Iterator[Deed]:
    for do in ACTIONS[target]:
        if tried(**{target: name, "do": do}):
            yield Deed(title=SIGNALS.get(do, do.replace("-", " ")), words=(_word("do", do),),
                       then=DONE[ENDS[do]] if do in ENDS else "")


def _word(name: str, value: str) -> str:
    """A field as it is given, whose value stays a text."""
    return f"{name}={json.dumps(value, ensure_ascii=False)}"


# Who has more of one name takes them together.
STATIONS_MAX = 32
