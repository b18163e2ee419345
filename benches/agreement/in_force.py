#!/usr/bin/env python3
"""Which fields of a kind's scenario are in force: those without which its simulation is another one.

    benches/agreement/in_force.py                  all kinds; some minutes
    benches/agreement/in_force.py --only taken     kinds with this word in their names

A field that a kind names and that changes nothing there (a window that never fills, a time-out that never ends) is not
compared by it, whatever the table says. Each field is left out in turn, in all of its places at once, and the same seed
simulated again: it is in force where messages or packets differ.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from keep_alive import pings_as_measured
from kinds import Kind, kinds

from mqttlab.runs import Job, perform
from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.load import parse_values

Location = tuple[str | int, ...]
NAMES = ("name", "host", "topic", "filter", "connects_to", "protocol", "role", "count", "between")
"""What says where and who, and not how."""
SECONDS_MAX = 30


def places(values: Mapping[str, Any]) -> dict[str, list[Location]]:
    """Every field of a scenario with all of its places; a link's two directions count as one, and so do all hosts."""
    found: dict[str, list[Location]] = {}
    for location in _leaves(values, ()):
        if location[-1] not in NAMES and not isinstance(location[-1], int):
            found.setdefault(field_at(location), []).append(location)
    return found


def field_at(location: Location) -> str:
    """A field's name, without indices and names of hosts."""
    return re.sub(r"^hosts\.\w+", "hosts", either_way(".".join(part for part in location if isinstance(part, str))))


def either_way(name: str) -> str:
    """A field's name, of whichever direction of whichever link it is."""
    return name.replace(".down", ".up").replace("trunk.up", "networks.up")


def _leaves(value: Any, here: Location) -> Iterator[Location]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, (*here, name))
    elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*here, index))
    else:
        yield here


def without(values: Mapping[str, Any], locations: list[Location]) -> dict[str, Any]:
    """The same scenario without these places."""
    # Kinds share parts: a copy by way of text has each for itself.
    left: dict[str, Any] = json.loads(json.dumps(values))
    for *way, last in locations:
        holder: Any = left
        for part in way:
            holder = holder[part]
        del holder[last]
    return left


class Trial:
    """Simulations of one kind with one seed."""

    def __init__(self, kind: Kind, scratch: Path) -> None:
        self._kind, self._scratch, self._number = kind, scratch, 0
        self._places = places(kind.values)
        self._whole = self._fingerprint(kind.values)

    @property
    def fields(self) -> list[str]:
        """What the kind's scenario has."""
        return list(self._places)

    def is_in_force(self, field: str) -> bool:
        """Whether the simulation is another one without it. One that a scenario cannot do without is."""
        try:
            return self._fingerprint(without(self._kind.values, self._places[field])) != self._whole
        except ScenarioError:
            return True

    def _fingerprint(self, values: Mapping[str, Any]) -> str:
        phases = {"warm_up": "0 s", "duration": f"{min(self._kind.seconds, SECONDS_MAX)} s", "cool_down": "2 s"}
        whole = {"name": "kind", "backend": "sim", "seed": 1, "phases": phases, **values}
        directory = self._scratch / str(self._number)
        self._number += 1
        outcome = perform(Job(compile_plan(parse_values(pings_as_measured(whole))), directory), lambda line: None)
        tables = [directory / f"{name}.parquet" for name in ("messages", "packets")]
        digest = sha256(outcome.verdict.encode())
        for table in tables:
            digest.update(table.read_bytes() if table.is_file() else b"")
        return digest.hexdigest()


def main() -> None:
    """Print them, by kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only kinds with this word in their names")
    chosen = [kind for kind in kinds() if parser.parse_args().only in kind.name]
    shown: dict[str, str] = {}
    turned: set[str] = set()
    for kind in chosen:
        with tempfile.TemporaryDirectory() as scratch:
            trial = Trial(kind, Path(scratch))
            found = {field: trial.is_in_force(field) for field in trial.fields}
        turned |= set(found)
        shown = {field: kind.name for field, is_so in found.items() if is_so} | shown
        print(f"{kind.name}: not in force: {', '.join(field for field, is_so in found.items() if not is_so) or '–'}",
              flush=True)
    print(f"\nin force in no kind: {', '.join(sorted(turned - set(shown))) or '–'}")
    print("\n".join(f"{field}: {name}" for field, name in sorted(shown.items())))


if __name__ == "__main__":
    main()
