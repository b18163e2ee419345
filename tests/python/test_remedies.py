"""What a refusal or a warning advises is done here as it says, and is accepted: no remedy leads to the next refusal."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from contextlib import chdir
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from mqttlab.scenario import ScenarioError
from mqttlab.scenario.load import parse_values, warnings_of
from mqttlab.scenario.places import steps
from wrong_input import GOOD, SCENARIOS, prepare

Values = dict[str, Any]
LINE = re.compile(r"good\.toml(?::\d+)?: `(?P<place>[^`]+)` (?P<words>.*)")


def refusals(values: Values) -> list[tuple[str, str]]:
    """Place and words of what is wrong."""
    try:
        parse_values(deepcopy(values), "good.toml")
    except ScenarioError as error:
        found = [LINE.fullmatch(problem) for problem in error.problems]
        return [(one["place"], one["words"]) for one in found if one is not None]
    return []


def owner(values: Values, place: str) -> tuple[Any, Any]:
    """The table or array that has a place, and its key there.

    Raises:
        KeyError, IndexError, TypeError: there is none.
    """
    *path, (is_index, last) = steps(place)
    here: Any = values
    for index, step in path:
        here = here[int(step) if index else step]
    return here, int(last) if is_index else last


def put(values: Values, place: str, text: str) -> None:
    """Write what a message has, in quotes or not: a number where one of its own kind was."""
    here, key = owner(values, place)
    if isinstance(here, str):
        # A table that is written short, by its one value.
        put(values, place.rpartition(".")[0], text)
        return
    if isinstance(here[key], (dict, list)):
        raise TypeError("the message is about a whole table")
    is_text = text.startswith('"') or isinstance(here[key], str) or not re.fullmatch(r"-?[\d.]+|true|false", text)
    here[key] = text.strip('"') if is_text else tomllib.loads(f"it = {text}")["it"]


def rename(values: Values, place: str, name: str) -> None:
    here, key = owner(values, place)
    here[name.strip("`")] = here.pop(key)


def remove(values: Values, place: str, _: str) -> None:
    here, key = owner(values, place)
    if isinstance(here[key], dict):
        raise TypeError("the message is about a part of a table")
    del here[key]


def replace_line(values: Values, place: str, line: str) -> None:
    remove(values, place, "")
    owner(values, place)[0].update(tomllib.loads(line.strip("`")))


# What advice in a message makes of the value at its place.
REMEDIES: list[tuple[str, Callable[[Values, str, str], None]]] = [
    (r"^is (?:an unknown field|not used); did you mean (`[\w]+`)\?", rename),
    (r"^is an unknown field; write (`\w+ = [^`]+`)", replace_line),
    (r"; did you mean `([^`]+)`\?", put),
    (r"; did you mean (\"[^\"]+\")\?", put),
    (r"but must be ([^;(:]+?)(?: \([^)]*\))? or (?:more|less)\b", put),
    (r"; write (\"[^\"]+\")(?: \(or|$)", put),
    (r"; use ([\d,.]+(?: [A-Za-z%/]+)?) or (?:more|less|fewer)", put),
    (r"; the nearest is (\"[^\"]+\")", put),
    (r"; leave it (out)\b", remove),
]
# Advice on a number that only its writer can know.
UNKNOWABLE = {'events[0].at is 30, which has no unit; write "30 s" (or another unit: one of ns, us, ms, s, min, h)'}


def advised(words: str) -> tuple[Callable[[Values, str, str], None], str] | None:
    """The advice of a message that is a value, a name, or to leave something out; not of a line of another file."""
    if ", where " in words or ": line " in words:
        return None
    found = ((act, match[1]) for pattern, act in REMEDIES if (match := re.search(pattern, words)))
    return next(found, None)


def is_refused_again(place: str, text: str, after: list[tuple[str, str]]) -> bool:
    """Whether what was advised is itself refused; another matter at that place, such as its version, is not meant."""
    plain = text.strip('"`')
    return any(at == place and words.startswith((f"is {plain}", f'is "{plain}"')) for at, words in after)


CASES = [case for cases in SCENARIOS.values() for case in cases]


def test_what_refusals_advise_is_accepted(tmp_path: Path) -> None:
    """Of each wrong scenario of the page of messages whose advice is a value, a name, or to leave something out."""
    done, wrong = 0, []
    with chdir(tmp_path):
        prepare(tmp_path)
        for old, new in CASES:
            try:
                values = tomllib.loads(GOOD.replace(old, new, 1))
            except tomllib.TOMLDecodeError:
                continue
            for place, words in refusals(values):
                if (advice := advised(words)) is None or f"{place} {words}" in UNKNOWABLE:
                    continue
                act, text = advice
                mended = deepcopy(values)
                try:
                    act(mended, place, text)
                except (KeyError, IndexError, TypeError):
                    continue
                done += 1
                if is_refused_again(place, text, after := refusals(mended)):
                    wrong.append((new, f"{place} {words}", text, after))
    assert wrong == []
    assert done > 200


def changed(changes: Values) -> Values:
    """The good scenario with values at places; ``None`` takes one away."""
    values = tomllib.loads(GOOD)
    for place, value in changes.items():
        *path, (is_index, last) = steps(place)
        here: Any = values
        for index, step in path:
            here = here[int(step)] if index else here.setdefault(step, {})
        key: Any = int(last) if is_index else last
        if value is None:
            here.pop(key, None)
        else:
            here[key] = value
    return values


def said(values: Values) -> list[str]:
    """What is refused, else what is warned of."""
    try:
        scenario = parse_values(deepcopy(values), "good.toml")
    except ScenarioError as error:
        return list(error.problems)
    return warnings_of(scenario, "good.toml")


FIELD, BROKER = "networks[0].between", {"kind": "mosquitto", "host": "broker"}
MODEL = {"between": ["field", "broker"], "model": "lte-m"}
SIM = {"backend": "sim"}
# What is written, the words of the advice, and what they make of it. Advice of several ways has a row for each.
ADVICE: list[tuple[Values, str, Values]] = [
    # Of many clients on a few hosts: once "use 60 clients or fewer".
    ({"networks[0].link": None}, 'write `link = "each"` for a link for each client', {"networks[0].link": "each"}),
    ({"networks[0].link": None}, 'or `link = "shared"`', {"networks[0].link": "shared"}),
    ({"networks[0].up": None}, "has no `up`: from `field` to `broker` nothing is delayed", {"networks[0].up": {}}),
    ({"groups[0].count": 200}, "a faster link",
     {"networks[0].up.rate": "10 Mbit/s", "networks[0].down.rate": "10 Mbit/s"}),
    ({"groups[0].count": 200, "groups[1].host": "broker"}, 'or `link = "each"`', {"networks[0].link": "each"}),
    ({"hosts.field.count": 2, "groups[0].count": 400, "networks[0].link": "each", "groups[1].host": "broker"},
     "or more hosts (`hosts.field.count`)", {"hosts.field.count": 100}),
    ({"hosts.field.count": 1, "networks[0].link": "each"}, "leave it out", {"hosts.field.count": None}),
    ({"hosts.field.count": 65_534, "groups[0].host": "far", "networks": [
        {"between": [name, "broker"], "link": "shared", "up": {}, "down": {}} for name in ("field", "far")]},
     "use 65533 or fewer", {"hosts.field.count": 65_533}),
    ({"networks[0].link": "each", "groups[0].count": 40_000}, 'use fewer hosts, or `link = "shared"`',
     {"networks[0].link": "shared", "groups[0].publish.interval": "1 h", "networks[0].up.rate": "1 Gbit/s",
      "networks[0].down.rate": "1 Gbit/s", "groups[0].publish.qos": 0}),
    ({"phases.warm_up": "10 s"}, "longer than the measurement", {"phases.warm_up": "5 s"}),
    ({"phases.cool_down": "0.1 s"}, "make it longer", {"phases.cool_down": "10 s"}),
    ({"networks[0].up.discipline": {"kind": "codel", "target": "1 ms"}}, "use a `target` of 48 ms or more",
     {"networks[0].up.discipline.target": "48 ms"}),
    ({"networks[0].up": {"discipline": "codel"}}, "add one", {"networks[0].up.rate": "10 Mbit/s"}),
    ({"networks[0].up": {"discipline": "codel"}}, "or leave it out", {"networks[0].up": {}}),
    ({"networks[0].up.queue": "10 B"}, "must be 1500 B or more", {"networks[0].up.queue": "1500 B"}),
    ({"networks[0].up.policer": {"rate": "100 kbit/s", "burst": "10 B"}}, "must be 1500 B or more",
     {"networks[0].up.policer.burst": "1500 B"}),
    ({"mqtt.keep_alive": "1 s", "networks[0].up.delay": "1 s"}, "make it longer than a round trip",
     {"mqtt.keep_alive": "10 s", "phases.cool_down": "30 s"}),
    ({"mqtt.client_id": "c{client}"}, "add `{group}`", {"mqtt.client_id": "{group}-c{client}"}),
    ({"groups[0].publish.qos": 2, "mqtt.max_inflight": 30}, "use 20 or less", {"mqtt.max_inflight": 20}),
    ({"groups[0].publish.qos": 2, "mqtt.max_inflight": 30}, "raise the broker's", {"broker.max_inflight": 30}),
    ({"groups[0].publish.qos": 2, "mqtt.max_inflight": 30}, 'or use version "5"', {"mqtt.version": "5"}),
    ({"groups[0].publish.topic": "a/b", "groups[0].publish.payload": "5 B"}, "use 9 B or more",
     {"groups[0].publish.payload": "9 B"}),
    ({"groups[0].publish.topic": "a/b", "groups[0].publish.payload": "5 B"}, "or `{client}` in the topic",
     {"groups[0].publish.topic": "a/{client}"}),
    ({"groups[0].publish.expiry": "30 s"}, "leave it out", {"groups[0].publish.expiry": None}),
    ({"groups[0].publish.expiry": "30 s"}, 'or use version "5"', {"mqtt.version": "5"}),
    ({"network": "direct"}, "leave one of them out", {"networks": None}),
    ({"network": "direct"}, "leave one of them out", {"network": None}),
    ({"broker.kind": "external", "network": "external", "networks": None}, 'needs an address, such as "192.0.2.1"',
     {"broker.address": "192.0.2.1"}),
    ({"groups[0].churn": {"connects": "50 /s", "hold": "10 s"}}, "use `count = 501` or more",
     {"groups[0].count": 501, "phases.warm_up": "12 s", "phases.duration": "20 s", "networks[0].up.rate": "1 Gbit/s",
      "networks[0].down.rate": "1 Gbit/s"}),
    (SIM | {"groups[0].client": {"command": ["x"]}, "groups[0].publish": None}, 'use `backend = "live"`',
     {"backend": "live"}),
    (SIM | {"live.parts": 2}, "has no effect on a simulation", {"live.parts": None}),
    ({"live.parts": 2}, "or 1", {"live.parts": 1}),
    ({"recording.pcapng": True, "recording.detail": "messages"}, "leave one of them out", {"recording.pcapng": None}),
    ({"recording.pcapng": True, "recording.detail": "messages"}, "leave one of them out", {"recording.detail": None}),
    ({"recording.payloads": True, "recording.detail": "summary"}, 'use "messages"', {"recording.detail": "messages"}),
    ({"hosts.router": {"forwards": True}}, "name it in `between` of [[networks]]", {"networks": [
        {"between": [one, "router"], "link": "shared", "up": {}, "down": {}} for one in ("field", "broker")]}),
    ({"hosts.router": {"forwards": True}}, "or leave it out", {"hosts.router": None}),
    ({"groups[0].host": "far"}, 'add [[networks]] with between = ["far", "broker"]', {"networks": [
        {"between": [one, "broker"], "link": "shared", "up": {}, "down": {}} for one in ("field", "far")]}),
    ({"networks[0].up.loss": "1 %", "networks[0].nat": "1 min", "networks[0].down": None},
     "add `up = {}` and `down = {}`", {"networks[0].down": {}}),
]


@pytest.mark.parametrize(("written", "advice", "done"), ADVICE, ids=[f"{n}-{advice[:40]}" for n, (_, advice, _) in
                                                                     enumerate(ADVICE)])
def test_what_is_advised_is_accepted(written: Values, advice: str, done: Values) -> None:
    told = said(changed(written))
    assert any(advice in line for line in told), told
    assert said(changed(written | done)) == []


def test_a_link_for_each_client_is_advised_only_where_one_client_is_not_too_much_for_it() -> None:
    """All messages go to one subscriber, whose link would be as full alone."""
    [down] = [line for line in said(changed({"groups[0].count": 200})) if ".down` must carry" in line]
    assert down.endswith("send less, or use a faster link"), down
