"""More than two sides: each against the first, a sentence each, then one table with a column for each side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from mqttlab.comparison import Compared, Comparison
from mqttlab.foreign import visible
from mqttlab.report.comparison import answer


@dataclass(frozen=True, kw_only=True)
class Said:
    """What more than two sides say first."""

    cautions: tuple[str, ...]
    sentences: tuple[str, ...]
    """One for each side against the first."""
    bases: tuple[str, ...]
    undecided: bool
    rows: tuple[Row, ...]
    """Those that differ most first."""
    notes: tuple[str, ...]
    """Below the table: a mark in it, what does not differ, flows that only one side has."""

    @property
    def differing(self) -> tuple[Row, ...]:
        """The rows in which some side differs from the first, or may."""
        return tuple(row for row in self.rows if row.differs)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One number of the headlines, of all sides."""

    of: str
    """The flow or the group, as the first side calls it."""
    measure: str
    first: float | None
    others: tuple[Compared | None, ...]
    """Against the first; ``None`` where a side does not have it."""
    differs: bool
    """For one of the sides at least."""

    @property
    def means(self) -> list[float | None]:
        """Of every side."""
        return [self.first, *(None if one is None else one.change.means[1] for one in self.others)]

    @property
    def size(self) -> float:
        """How far the side is apart that is furthest."""
        return max(one.change.size for one in self.others if one is not None)


def labels(comparisons: Sequence[Comparison]) -> list[str]:
    """What the sides are called, the first one first; with their numbers where two are called alike."""
    found = [visible(side.label) for side in (comparisons[0].first, *(each.second for each in comparisons))]
    return found if len(set(found)) == len(found) else [f"{place}: {label}" for place, label in enumerate(found, 1)]


def rows(comparisons: Sequence[Comparison]) -> list[Row]:
    """Every number that the first side has, those that differ most first.

    Args:
        comparisons: all with the same first side.

    Raises:
        RecordingError: a table cannot be read.
    """
    told = [{_key(one): one for one in each.headlines} for each in comparisons]
    found = []
    for key in dict.fromkeys(_key(one) for each in comparisons for one in answer.headlines(each)):
        its = tuple(one.get(key) for one in told)
        known = [one for one in its if one is not None]
        apart = [one.change.apart(each.tolerance_percent) for one, each in zip(its, comparisons, strict=True) if one]
        found.append(Row(of=_of(known[0]), measure=known[0].measure, first=known[0].change.means[0], others=its,
                         differs=any(apart) or any(one.change.word == "undecided" for one in known)))
    return sorted(found, key=lambda row: (not row.differs, -row.size))


def said(comparisons: Sequence[Comparison]) -> Said:
    """What they say.

    Args:
        comparisons: all with the same first side.

    Raises:
        RecordingError: a table cannot be read.
    """
    answers, found = [answer.answer(each) for each in comparisons], rows(comparisons)
    undecided = any(one is not None and one.change.word == "undecided" for row in found for one in row.others)
    near = dict.fromkeys(answer.TITLES[row.measure] for row in found
                         if not row.differs and any(mean is not None for mean in row.means))
    notes = ["?: too few runs, or too much scatter, to say"] if undecided else []
    notes += [f"No difference in: {', '.join(near)}."] if near else []
    return Said(
        cautions=tuple(dict.fromkeys(words for told in answers for words in told.cautions)),
        sentences=tuple(told.sentence for told in answers), undecided=undecided, rows=tuple(found),
        bases=tuple(dict.fromkeys(told.basis for told in answers)),
        notes=(*notes, *dict.fromkeys(f"{words}." for told in answers for words in told.unmatched)))


def table(found: Sequence[Row], names: Sequence[str]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Values side by side, with the change where there is one."""
    return ("of", "what", *names), [
        (row.of, answer.TITLES[row.measure], answer.figure(row.measure, row.first),
         *(_cell(row.measure, one) for one in row.others)) for row in found]


def document(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """All comparisons as JSON has them, and the table of all sides."""
    return {
        "sides": labels(comparisons),
        "table": [{"of": row.of, "measure": row.measure, "means": row.means, "differs": row.differs}
                  for row in rows(comparisons)],
        "comparisons": [answer.document(each) | each.data(by_message=False) for each in comparisons]}


def _key(one: Compared) -> tuple[object, ...]:
    return (one.measure, one.group, one.role.first if one.role is not None else None)


def _of(one: Compared) -> str:
    if one.role is None:
        return visible(one.group or one.of)
    return replace(one.role, second=None).title


def _cell(measure: str, one: Compared | None) -> str:
    if one is None:
        return "–"
    shown, change = answer.figure(measure, one.change.means[1]), one.change
    if change.word == "same" or change.percent is None or not change.size:
        return shown
    percent = f"{change.percent:+.1f}" if abs(change.percent) < 10 else f"{change.percent:+,.0f}"
    return f"{shown} ({percent.replace('-', '−')} %{'?' if change.word == 'undecided' else ''})"
