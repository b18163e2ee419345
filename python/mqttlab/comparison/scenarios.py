"""Field by field: in what the scenarios of two sides differ, as they were written.

A plan has many values that nobody wrote; the scenario has what somebody decided. A recording keeps it in
``origin.json``, with the fields that were replaced on the command line.
"""

from __future__ import annotations

from typing import Any

from mqttlab.comparison.sides import NOT_KNOBS, Side, flat
from mqttlab.digits import whole
from mqttlab.files import written_scenario
from mqttlab.recording import Recording
from mqttlab.toml_reader import read_toml

ABSENT = "–"
"""A field that a scenario leaves to its default."""


def scenario_changes(first: Side, second: Side) -> list[tuple[str, str, str]] | None:
    """The fields in which the scenarios of two sides differ: place, and what each side wrote.

    A side whose own runs differ in a field (a level of an experiment, ``--set``) has all its values. ``None`` where a
    recording does not have the scenario that it was made from: an import, or a recording of before it was kept.
    """
    written = [[_written(recording) for recording in side.recordings] for side in (first, second)]
    known = [[values for values in side if values is not None] for side in written]
    if any(len(some) != len(all_) for some, all_ in zip(known, written, strict=True)):
        return None
    places = dict.fromkeys(place for side in known for values in side for place in values)
    rows = [(place, _words(known[0], place), _words(known[1], place)) for place in places if place not in NOT_KNOBS]
    return [row for row in rows if row[1] != row[2]]


def _written(recording: Recording) -> dict[str, Any] | None:
    written = written_scenario(recording.source or recording.directory)
    if written is None:
        return None
    toml, settings = written
    try:
        values = flat(read_toml(toml))
    except ValueError:
        return None
    return values | _by_name(settings, values)


def _by_name(settings: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Settings name groups by number (``groups[0].count``); what is laid over here has their names."""
    names: dict[str, list[str]] = {}
    for place in values:
        table, bracket, rest = place.partition("[")
        if bracket:
            known = names.setdefault(table, [])
            name = rest.partition("]")[0]
            known += [] if name in known else [name]
    found = {}
    for place, value in settings.items():
        table, bracket, rest = place.replace(".0.", "[0].").partition("[")
        number, _, field = rest.partition("]")
        there = names.get(table, [])
        index = whole(number)
        named = None if index is None or index >= len(there) else there[index]
        found[place if named is None else f"{table}[{named}]{field}"] = value
    return found


def _words(side: list[dict[str, Any]], place: str) -> str:
    return ", ".join(dict.fromkeys(str(values.get(place, ABSENT)) for values in side))
