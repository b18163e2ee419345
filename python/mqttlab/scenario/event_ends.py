"""Which event of a plan ends which changes.

A change acts on parts: links, a server, stations, clients. An event may undo what several changes did to the same
parts: a broker that starts again ends every kill and stop before it, of whichever event. A change ends when nothing is
left of it, or with its own end. So a change inside another one of the same kind may end both.

What lies over others keeps those apart: fields of links and publications, where the owners of these fields know what is
left (``event_plan``, ``event_publish``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mqttlab.words import words_of


def _undoes() -> dict[str, tuple[str, ...]]:
    kinds = words_of("change_kind")
    found: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    for said in kinds.values():
        if said.get("undone_by", said["word"]) != said["word"]:
            found[kinds[said["undone_by"]]["change"]] += (said["change"],)
    return dict(found)


UNDOES = _undoes()
"""What undoes what, by the kinds of the plan's changes; those of the same kind are told apart below."""
LASTING = {kind for kinds in UNDOES.values() for kind in kinds} | {"station_moved"}
Part = tuple[str, Hashable]


class Undone:
    """The changes that have begun and are not undone, each with the parts on which it still acts."""

    def __init__(self) -> None:
        self._parts: dict[int, set[Part]] = {}
        self._of: defaultdict[Part, set[int]] = defaultdict(set)

    def turn(self, number: int, begins: bool, happened: Sequence[Mapping[str, Any]]) -> list[int]:
        """What happens as a change begins, or ends by itself; returns the numbers of the changes that it undoes, with
        its own where it ends.

        Args:
            number: of the change.
            begins: whether it begins.
            happened: the parts of the plan's events that say on what they act, and how.
        """
        # A link that another change keeps down comes up with the end of that one.
        found = {number} if happened and not begins else set()
        for one in happened:
            for kind in self._undone_by(one, begins):
                found |= self._take(kind, one)
        for ended in found:
            self._forget(ended)
        if begins:
            for kind, part in ((one["change"]["kind"], part) for one in happened for part in _parts(one)):
                if kind in LASTING:
                    self._parts.setdefault(number, set()).add((kind, part))
                    self._of[kind, part].add(number)
        return sorted(found)

    def _undone_by(self, one: Mapping[str, Any], begins: bool) -> Iterable[str]:
        kind = one["change"]["kind"]
        if kind == "station_moved":
            # A station that gets back its place leaves every other one.
            return () if begins else (kind,)
        if kind == "start" and any(self._of.get((gone, one["server"])) for gone in UNDOES[kind]):
            # The program that stood still is gone.
            return (*UNDOES[kind], "pause")
        return UNDOES.get(kind, ())

    def _take(self, kind: str, one: Mapping[str, Any]) -> set[int]:
        """The changes of a kind of which nothing is left."""
        found = set()
        for part in _parts(one):
            for number in self._of.pop((kind, part), ()):
                its = self._parts[number]
                its.discard((kind, part))
                if not its:
                    found.add(number)
        return found

    def _forget(self, number: int) -> None:
        for part in self._parts.pop(number, ()):
            self._of[part].discard(number)


def _parts(one: Mapping[str, Any]) -> Iterator[Hashable]:
    """On what an event acts."""
    change = one["change"]
    if "links" in one:
        yield from one["links"]
    elif "server" in one:
        yield one["server"]
    elif "clients" in one:
        yield from ((client, change.get("filter")) for client in one["clients"])
    else:
        yield from change.get("stations") or [change.get("interferer", change.get("station"))]
