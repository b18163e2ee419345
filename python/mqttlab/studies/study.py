"""What every study offers, so that one command can rerun any of them."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from mqttlab.errors import UsageError
from mqttlab.recording import Recording
from mqttlab.studies.chart import Chart
from mqttlab.studies.table import Cell, Comparison


class Case(Protocol):
    """One scenario of a study."""

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        ...

    def scenario(self, effort: Any) -> dict[str, Any]:
        """As a scenario file's values; ``effort`` is one of the study's own."""
        ...


@runtime_checkable
class LiveCase(Case, Protocol):
    """A scenario that is another one when it is run live, where programs may be clients."""

    def live_scenario(self, effort: Any) -> dict[str, Any]:
        """As a scenario file's values."""
        ...


def live_scenario(case: Case, effort: Any) -> dict[str, Any]:
    """What is run live of a case: its own form of it, or the same as is simulated."""
    return case.live_scenario(effort) if isinstance(case, LiveCase) else case.scenario(effort)


Named = TypeVar("Named", bound=Case)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a study leaves open, or this program has otherwise, and what that changes."""

    tables: Sequence[str]
    """The tables that it is behind."""
    text: str
    effect: str
    """What the other way comes to, in numbers of the runs; or that it was not run."""


def no_readings(published: Path, results: Mapping[str, Any]) -> Sequence[Reading]:
    """A study whose README alone has its readings."""
    return ()


def no_charts(published: Path, results: Mapping[str, Any]) -> Sequence[Chart]:
    """A study without figures."""
    return ()


@dataclass(frozen=True, kw_only=True)
class Study:
    """A published experiment.

    The directory that its functions take is where its published values are: :attr:`published`.
    """

    title: str
    """Who published what, and when."""
    directory: Path
    """Its package, which has its data."""
    thorough: Any
    """How long to run, in the study's own words."""
    quick: Any
    """The same for seconds instead of minutes, at the price of accuracy."""
    full: Any = None
    """The same with nothing cut short, for hours; none where ``thorough`` cuts nothing short."""
    cases: Callable[[Path, Sequence[str]], Sequence[Case]]
    """The scenarios behind these tables; without tables, behind all of them and the claims."""
    measure: Callable[[Recording], Any]
    """What is kept of a recording."""
    tables: Callable[[Path], Sequence[str]]
    """The names of its tables: the printed ones', and those of what goes beyond them."""
    compare: Callable[[Path, Mapping[str, Any]], Sequence[Cell]]
    """Published values and ours, of those scenarios that have a result."""
    claims: Callable[[Path, Mapping[str, Any]], Sequence[Comparison]]
    """Every claim whose scenarios have results, with its verdict."""
    charts: Callable[[Path, Mapping[str, Any]], Sequence[Chart]] = no_charts
    """The study's own figures, of those scenarios that have a result."""
    readings: Callable[[Path, Mapping[str, Any]], Sequence[Reading]] = no_readings
    """What was chosen where the study leaves something open, with its effect, of those scenarios that have a result."""
    probes: Sequence[str]
    """Some of its cases, cheap and of every kind: a simulator that computes them otherwise is another one."""
    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The tables behind a printed table or figure that has another name here, such as ``figure 5.11``."""

    @property
    def name(self) -> str:
        """As the command line has it."""
        return self.directory.name

    def tables_of(self, kind: Literal["table", "figure"], name: str) -> Sequence[str]:
        """The tables behind a printed table or figure.

        Raises:
            UsageError: there is none of this name.
        """
        known = self.tables(self.published)
        word = name.strip().removeprefix(f"{kind.title()} ").removeprefix(f"{kind} ")
        if kind == "table" and word in known:
            return (word,)
        place = f"{kind} {word}"
        if place in known:
            return (place,)
        if place in self.aliases:
            return self.aliases[place]
        own = [word for word in known if word.startswith("figure") == (kind == "figure")]
        others = [alias.removeprefix(f"{kind} ") for alias in self.aliases if alias.startswith(f"{kind} ")]
        raise UsageError(f"--{kind} {name}: {self.name} has no such {kind}; known: {'; '.join([*own, *others])}")

    @property
    def published(self) -> Path:
        """Where the printed values and ``claims.toml`` are."""
        return self.directory / "published"

    @property
    def live(self) -> LiveCells:
        """What is run live, as ``live.toml`` says, which was written before any of it was run."""
        return _live_cells(self._live_told())

    @property
    def live_quick(self) -> LiveCells:
        """Less of it, for minutes instead of hours: the table ``quick`` of ``live.toml``, where it has one."""
        told = self._live_told()
        return _live_cells({**told, **told.get("quick", {})})

    def _live_told(self) -> Mapping[str, Any]:
        path = self.directory / "live.toml"
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


@dataclass(frozen=True, kw_only=True)
class LiveCells:
    """The cells that are run live."""

    repetitions: int
    cases: Sequence[str]
    """Names of the study's cases, in the order of their running."""
    phases: Mapping[str, str]
    """Lengths that replace those of the scenarios, such as ``duration``."""
    together: int
    """How many are run at once. Each has hosts of its own; what they share is the processors."""


def _live_cells(told: Mapping[str, Any]) -> LiveCells:
    return LiveCells(repetitions=told.get("repetitions", 1), cases=tuple(told.get("cases", ())),
                     phases=told.get("phases", {}), together=told.get("together", 1))


def published_rows(directory: Path, name: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Every row of a table of published values, with its source: the file's name and the row's number, from 1."""
    with (directory / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=1):
            yield f"{name}:{number}", row


def of_tables(families: Mapping[str, Sequence[Named]], tables: Sequence[str]) -> list[Named]:
    """The cases of these tables, each once; without tables, of all."""
    wanted = [case for table, family in families.items() if not tables or table in tables for case in family]
    return list({case.name: case for case in wanted}.values())


def number_of(value: Any) -> float:
    """A measured value, not a number where there is none."""
    return float("nan") if value is None else float(value)


def printed_sources(directory: Path) -> list[str]:
    """The sources of all rows of all tables of published values."""
    return [source for path in sorted(directory.glob("*.csv")) for source, _ in published_rows(directory, path.stem)]
