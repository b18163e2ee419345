"""An event that somebody fires by hand: the words of ``[[events]]`` without a time, checked as a scenario's events are.

It is laid over what the scenario's events, and those that were fired before, have changed by then: when it ends, all is
as before. An event of the scenario that changes the same link while it lasts takes its place.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mqttlab.networks.trace import traces_of
from mqttlab.quantity import shown
from mqttlab.scenario.compile import laid_links
from mqttlab.scenario.event import ACTIONS, PUBLISHING_ACTIONS, WHOSE, near_action
from mqttlab.scenario.event_plan import planned_and_written, publishing_of
from mqttlab.scenario.load import ScenarioError, override, read_values
from mqttlab.scenario.location import Location
from mqttlab.scenario.model import Scenario
from mqttlab.scenario.possible import Thing, things
from mqttlab.scenario.wording import Source, toml_values

if TYPE_CHECKING:
    from mqttlab.plan import types

SCENARIO = "the run's scenario"
WHEN = ("at", "when", "every", "until", "count")
FIXED = ("subscribe", "unsubscribe", *PUBLISHING_ACTIONS)


@dataclass(frozen=True)
class _ByHand(Source):
    """Names the fields of the event that is fired, as they are given."""

    number: int = 0

    def at(self, location: Location) -> str:
        """The field, or the place in the scenario where it is not the event's."""
        if location[:2] != ("events", self.number):
            return super().at(location)
        field = ".".join(str(part) for part in location[2:])
        return f"`{field}` " if field else "the event "


def fields_of(words: Sequence[str]) -> dict[str, Any]:
    """The fields of an event as they are given: ``network=wan``, ``down=true``, ``for='20 s'``.

    Raises:
        ScenarioError: they are not given so.
    """
    found: dict[str, Any] = {}
    for word in words:
        name, is_field, value = (part.strip() for part in word.partition("="))
        if not is_field or not name:
            raise ScenarioError(f"{shown(word)} is no field of an event; write FIELD=VALUE, such as network=wan "
                                "down=true for='20 s'")
        if name in found:
            raise ScenarioError(f"`{name}` is given twice; keep one")
        if name in WHEN:
            raise ScenarioError(f"`{name}` says when, but an event by hand takes place at once; leave it out, or put "
                                "the event into the scenario")
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except (tomllib.TOMLDecodeError, RecursionError):
            found[name] = value
    if found.get("do") in FIXED or "publish" in found:
        name = "publish" if "publish" in found else "do"
        raise ScenarioError(f"`{name}` is {shown(found[name])}, which cannot be fired by hand: what clients publish "
                            "and subscribe to is fixed when a run begins; put the event into the scenario")
    _need_deed(found)
    return found


def _need_deed(fields: Mapping[str, Any]) -> None:
    """Refuse what clients cannot do by hand before the scenario's own check, which would offer it.

    Raises:
        ScenarioError: with what they can do.
    """
    do = fields.get("do")
    known = {target: [action for action in actions if action not in FIXED] for target, actions in ACTIONS.items()}
    if "group" in fields and do is None:
        raise ScenarioError("the event does not say what happens; add `do`, one of " + ", ".join(known["group"]))
    every = [action for actions in known.values() for action in actions]
    target = next((name for name in known if name in fields), None)
    # The scenario's check knows how a server starts again.
    if not isinstance(do, str) or do in (known[target] if target else every) or do.lower() == "restart":
        return
    possible = ", ".join(known[target]) if target else "; ".join(
        f"{', '.join(actions)} for {WHOSE[name]}" for name, actions in known.items())
    whose = next((WHOSE[name] for name, actions in known.items() if do in actions), None)
    if whose is not None:
        raise ScenarioError(f"`do` is {shown(do)}, which is for {whose}, but `{target}` is given; use one of "
                            f"{possible}")
    near = near_action(do)
    hint = f"; did you mean {shown(near)}?" if near in (known[target] if target else every) else ""
    raise ScenarioError(f"`do` is {shown(do)}, but must be one of {possible}{hint}")


def planned_by_hand(
    written: tuple[str, dict[str, Any]], plan: Mapping[str, Any], fields: Mapping[str, Any],
    earlier: Sequence[tuple[int, Mapping[str, Any]]], now_ns: int,
) -> list[tuple[int, types.Event]]:
    """What happens by an event that is fired now, each so long from now.

    Args:
        written: the run's scenario, as written, and the fields that were replaced.
        plan: the run's.
        fields: of the event, as :func:`fields_of` reads them.
        earlier: events that were fired before, since publishing began.
        now_ns: since publishing began.

    Raises:
        ScenarioError: the event is wrong, or the scenario cannot be read again.
    """
    warm_up = int(plan["phases"]["warm_up_ns"])
    fired = [{**each, "at": f"{at - warm_up} ns"} for at, each in [*earlier, (now_ns, fields)]]
    scenario = _read_again(written, plan, fired)
    found = [event for origin, event in planned_and_written(scenario, laid_links(scenario), publishing_of(scenario))
             if origin is scenario.events[-1]]
    return [(event["at_ns"] - now_ns, event) for event in found]


def possible_by_hand(written: tuple[str, dict[str, Any]], plan: Mapping[str, Any]) -> list[Thing]:
    """What may be fired by hand in a run, for a form to choose from.

    Raises:
        ScenarioError: the scenario cannot be read again.
    """
    return [replace(thing, deeds=deeds) for thing in things(_read_again(written, plan, ()))
            if (deeds := tuple(deed for deed in thing.deeds if not any(_is_fixed(word) for word in deed.words)))]


def _is_fixed(word: str) -> bool:
    return word in {f'do="{do}"' for do in FIXED}


def _read_again(
    written: tuple[str, dict[str, Any]], plan: Mapping[str, Any], fired: Sequence[Mapping[str, Any]],
) -> Scenario:
    """A run's scenario, with events that were fired behind its own."""
    text, replaced = written
    try:
        values = toml_values(text, SCENARIO)
    except ValueError as error:
        raise ScenarioError(str(error)) from error
    for place, value in replaced.items():
        override(values, place, value, SCENARIO)
    _with_files_of(values, plan)
    events = [*values.get("events", ()), *fired]
    source = _ByHand(SCENARIO, text, (), number=len(events) - 1)
    return read_values({**values, "events": events}, source, traces_of(plan))


def _with_files_of(values: dict[str, Any], plan: Mapping[str, Any]) -> None:
    """The files that the run has read, from wherever it was started; what clients are called changes no event."""
    for owner in (values, *values.get("groups", ())):
        if isinstance(session := owner.get("mqtt"), dict):
            owner["mqtt"] = {name: value for name, value in session.items() if name != "credentials"}
    for group, planned in zip(values.get("groups", ()), plan["groups"], strict=False):
        given = group.get("publish")
        for publish, made in zip(given if isinstance(given, list) else [given], planned["publications"], strict=False):
            if isinstance(publish, dict) and publish.get("replay") is not None and made.get("replay"):
                replay = publish["replay"]
                publish["replay"] = {**(replay if isinstance(replay, dict) else {}), "file": made["replay"]["path"]}
            payload = made.get("payload") or {}
            if isinstance(publish, dict) and payload.get("kind") == "file":
                publish["payload"] = {"kind": "file", "path": payload["path"]}
