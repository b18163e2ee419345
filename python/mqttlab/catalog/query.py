"""Questions to the catalog: names, conditions and orders as people write them, as SQL.

A name is a field of a run (``backend``, ``started``), a factor of experiments, ``tag.NAME``, or a metric, of the whole
run or of a scope: ``latency_ms_p99[qos 1]``. A condition is a name, a comparison and a value: ``latency_ms_p99 < 250``,
``loss = 5 %``, ``name ~ field``, or ``tag.nightly`` alone. Values of factors may have a unit.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import sqlalchemy as sa

from mqttlab.catalog import tables as t
from mqttlab.catalog.place import CatalogError
from mqttlab.digits import TIME_UNITS
from mqttlab.mistaken import closest, names_like
from mqttlab.quantity import FREQUENCY_UNITS, LENGTH_UNITS, NUMBER, RATE_UNITS, SIZE_UNITS

Kind = Literal["text", "number", "truth"]
Comparison = Callable[[Any, Any], Any]
COMPARISONS: dict[str, Comparison] = {
    "<=": operator.le, ">=": operator.ge, "!=": operator.ne, "=": operator.eq, "<": operator.lt, ">": operator.gt,
}
CONDITION = re.compile(r"\s*(?P<name>.+?)\s*(?P<how><=|>=|!=|==|=|<|>|~)\s*(?P<value>.*?)\s*", re.DOTALL)
SCOPED = re.compile(r"(?P<metric>[A-Za-z0-9_]+)\s*\[\s*(?P<scope>[a-z]+)(?:\s+(?P<name>.+?))?\s*\]")
# SI, which factors' values are in: seconds, bit/s, bytes, metres, ratios.
UNITS: dict[str, Fraction] = {
    **{unit: Fraction(ns, 10**9) for unit, ns in TIME_UNITS.items()},
    **{unit: Fraction(v) for unit, v in RATE_UNITS.items()},
    **{unit: Fraction(v) for unit, v in SIZE_UNITS.items()},
    **{unit: Fraction(mm, 1000) for unit, mm in LENGTH_UNITS.items()},
    **FREQUENCY_UNITS, "%": Fraction(1, 100),
}
QUANTITY = re.compile(rf"\s*({NUMBER})\s*(\S*)\s*")
# MariaDB joins 61 tables at once.
JOINS_MAX = 30
TOLERANCE = 1e-9
# In a message.
NAMES_MAX = 40
STATES = ("complete", "incomplete")


@dataclass(frozen=True)
class Field:
    """What every run has: its expression and kind."""

    column: sa.ColumnElement[Any]
    kind: Kind
    meaning: str


FIELDS: dict[str, Field] = {
    "run": Field(t.RUN.c.run_id, "text", "The recording's identifier."),
    "name": Field(t.RUN.c.name, "text", "The scenario's name."),
    "backend": Field(t.RUN.c.backend, "text", "`live`, `sim`, or what an import is of."),
    "state": Field(t.RUN.c.state, "text", "`complete` or `incomplete`."),
    "valid": Field(t.RUN.c.valid, "truth", "Whether it measured what its scenario asks for."),
    "reason": Field(t.RUN.c.reason, "text", "Why it ended early, or is not valid."),
    "started": Field(t.RUN.c.started_at, "text", "When it began (ISO 8601, UTC)."),
    "directory": Field(t.RUN.c.directory, "text", "Where the recording is."),
    "sent": Field(t.RUN.c.messages_sent, "number", "Messages sent."),
    "delivered": Field(t.RUN.c.messages_delivered, "number", "Deliveries."),
    "undelivered": Field(t.RUN.c.undelivered_percent, "number", "Expected deliveries that did not happen, in percent."),
    "p50": Field(t.RUN.c.latency_ms_p50, "number", "Median latency of the slowest flow, in ms."),
    "p95": Field(t.RUN.c.latency_ms_p95, "number", "95th percentile of the latency of the slowest flow, in ms."),
    "p99": Field(t.RUN.c.latency_ms_p99, "number", "99th percentile of the latency of the slowest flow, in ms."),
    "kb_up": Field(t.RUN.c.ip_kb_per_device_hour_up, "number", "IP kB that a device sends in an hour."),
    "kb_down": Field(t.RUN.c.ip_kb_per_device_hour_down, "number", "IP kB that a device receives in an hour."),
    "seed": Field(t.RUN.c.seed, "number", "The seed of its random streams."),
    "repetition": Field(t.RUN.c.repetition, "number", "Which repetition it is, from 0."),
    "planned_s": Field(t.RUN.c.planned_s, "number", "Length of the measurement as planned, in seconds."),
    "bytes": Field(t.RUN.c.bytes, "number", "Size of the recording."),
    "broker": Field(t.RUN.c.broker_kind, "text", "The first server's kind."),
    "broker_version": Field(t.RUN.c.broker_version, "text", "Its version."),
    "engine": Field(t.VERSION.c.engine, "text", "Version of the engine that made it."),
    "processor": Field(t.MACHINE.c.processor, "text", "The machine's processor."),
    "processors": Field(t.MACHINE.c.processors, "number", "How many it has."),
    "kernel": Field(t.MACHINE.c.kernel, "text", "The machine's kernel."),
    "experiment": Field(t.EXPERIMENT.c.name, "text", "The experiment that it is of."),
    "point": Field(t.POINT.c.number, "number", "The experiment's point, from 0."),
    "kind": Field(t.RUN.c.kind, "text", "`run`, `control` or `pilot` of an experiment."),
    "block": Field(t.RUN.c.block, "number", "The experiment's block, from 0."),
    "order": Field(t.RUN.c.order_no, "number", "Its place in the experiment's order, from 0."),
    "attempt": Field(t.RUN.c.attempt, "number", "Which attempt at its point it is, from 1."),
    "plan": Field(t.PLAN.c.digest, "text", "Digest of its plan without seed and repetition."),
}


@dataclass(frozen=True)
class Names:
    """What can be asked for besides fields: read from the catalog once for each question."""

    factors: dict[str, list[int]]
    """Keys of the factors of this name, in whichever experiments."""
    series: dict[str, dict[tuple[str, str], int]]
    """By metric, then by scope and name."""
    tags: list[str]

    @classmethod
    def read(cls, connection: sa.Connection) -> Names:
        """Read them."""
        factors: dict[str, list[int]] = {}
        for key, name in connection.execute(sa.select(t.FACTOR.c.id, t.FACTOR.c.name).order_by(t.FACTOR.c.id)):
            factors.setdefault(name, []).append(key)
        series: dict[str, dict[tuple[str, str], int]] = {}
        columns = (t.SERIES.c.id, t.SERIES.c.metric, t.SERIES.c.scope, t.SERIES.c.scope_name)
        for key, metric, scope, name in connection.execute(sa.select(*columns)):
            series.setdefault(metric, {})[scope, name] = key
        tags = list(connection.execute(sa.select(t.TAG.c.name).distinct().order_by(t.TAG.c.name)).scalars())
        return cls(factors, series, tags)

    def all(self) -> list[str]:
        """Every name, fields first."""
        return [*FIELDS, *self.factors, *(f"tag.{tag}" for tag in self.tags), *sorted(self.series)]


@dataclass(frozen=True)
class Column:
    """A name as SQL."""

    name: str
    value: sa.ColumnElement[Any]
    kind: Kind
    number: sa.ColumnElement[Any] | None = None
    """Of a factor: its level as a number."""


class Question:
    """One question about runs, put together name by name; each name is joined once."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._columns: dict[str, Column] = {}
        self._from: Any = (
            t.RUN.join(t.PLAN, t.PLAN.c.id == t.RUN.c.plan_id).outerjoin(t.MACHINE,
                                                                         t.MACHINE.c.id == t.RUN.c.machine_id)
            .outerjoin(t.VERSION, t.VERSION.c.id == t.RUN.c.version_id)
            .outerjoin(t.EXPERIMENT, t.EXPERIMENT.c.id == t.RUN.c.experiment_id)
            .outerjoin(t.POINT, t.POINT.c.id == t.RUN.c.point_id))
        self._where: list[sa.ColumnElement[bool]] = []
        self._order: list[Any] = []

    def column(self, name: str) -> Column:
        """What a name stands for.

        Raises:
            CatalogError: for nothing; the nearest one is named.
        """
        name = name.strip()
        if name not in self._columns:
            # Fields are of tables that are joined already.
            if name not in FIELDS and sum(other not in FIELDS for other in self._columns) >= JOINS_MAX:
                raise CatalogError(f"more than {JOINS_MAX} names at once; ask for the long form (catalog query "
                                   "--long), or twice")
            self._columns[name] = self._field(name) or self._factor(name) or self._tag(name) or self._metric(name)
        return self._columns[name]

    def where(self, condition: str) -> None:
        """Only runs for which this holds.

        Raises:
            CatalogError: it is no condition, or names what is not there.
        """
        self._where.append(self._condition(condition))

    def order(self, by: str) -> None:
        """Order by a name; from large to small with ``-`` before it. Runs without a value come last."""
        column = self.column(by.removeprefix("-"))
        value = column.value if column.number is None else sa.func.coalesce(column.number, 0)
        self._order.append(sa.case((column.value.is_(None), 1), else_=0))
        parts = [value] if column.number is None else [value, column.value]
        self._order += [part.desc() if by.startswith("-") else part.asc() for part in parts]

    def select(self, names: Sequence[str], limit: int | None) -> sa.Select[Any]:
        """The question as SQL: a column for each name, in this order."""
        columns = [self.column(name).value.label(f"c{number}") for number, name in enumerate(names)]
        found = sa.select(*columns).select_from(self._from).where(*self._where)
        found = found.order_by(*self._order, t.RUN.c.started_at, t.RUN.c.id)
        return found if limit is None else found.limit(limit)

    def keys(self) -> sa.Select[Any]:
        """The keys of the runs for which all conditions hold."""
        return sa.select(t.RUN.c.id).select_from(self._from).where(*self._where)

    def _condition(self, condition: str) -> sa.ColumnElement[bool]:
        match = CONDITION.fullmatch(condition)
        if match is None:
            column = self.column(condition)
            if not condition.strip().startswith("tag.") and column.kind != "truth":
                raise CatalogError(f"--where {condition}: write NAME, a comparison and a value, such as \"{condition} "
                                   "= …\"")
            return column.value.is_(True) if column.kind == "truth" else column.value.is_not(None)
        column, how, value = self.column(match["name"]), match["how"].replace("==", "="), match["value"]
        value = value[1:-1] if value[:1] in "\"'" and value[-1:] == value[:1] and len(value) > 1 else value
        if how == "~":
            escaped = value.replace("/", "//").replace("%", "/%").replace("_", "/_")
            return sa.func.lower(sa.cast(column.value, sa.String(255))).like(f"%{escaped.lower()}%", escape="/")
        if column.number is not None:
            return _of_factor(column, how, value)
        given = _value(column, value, condition)
        if how == "!=":
            return sa.or_(column.value != given, column.value.is_(None))
        found: sa.ColumnElement[bool] = COMPARISONS[how](column.value, given)
        return found

    def _field(self, name: str) -> Column | None:
        field = FIELDS.get(name)
        return None if field is None else Column(name, field.column, field.kind)

    def _factor(self, name: str) -> Column | None:
        keys = self._names.factors.get(name.removeprefix("factor."))
        if keys is None:
            return None
        level = t.LEVEL.alias()
        self._from = self._from.outerjoin(level,
                                          sa.and_(level.c.point_id == t.RUN.c.point_id, level.c.factor_id.in_(keys)))
        return Column(name, level.c.text, "text", level.c.value)

    def _tag(self, name: str) -> Column | None:
        if not name.startswith("tag."):
            return None
        tag = t.TAG.alias()
        word = name.removeprefix("tag.")
        if word not in self._names.tags:
            known = _nearest(word, self._names.tags) if self._names.tags else "no run has a tag"
            raise CatalogError(f"no run has the tag {word!r}; {known}")
        self._from = self._from.outerjoin(tag, sa.and_(tag.c.run_id == t.RUN.c.id, tag.c.name == word))
        return Column(name, tag.c.value, "text")

    def _metric(self, name: str) -> Column:
        key = series_of(name, self._names)
        value = t.METRIC_VALUE.alias()
        self._from = self._from.outerjoin(value, sa.and_(value.c.series_id == key, value.c.run_id == t.RUN.c.id))
        return Column(name, value.c.value, "number")


def names_in(where: Sequence[str], sort: Sequence[str]) -> list[str]:
    """The names that conditions and an order speak of, in this order, each once."""
    matches = [(CONDITION.fullmatch(condition), condition) for condition in where]
    names = [match["name"] if match else condition.strip() for match, condition in matches]
    return list(dict.fromkeys([*names, *(by.removeprefix("-") for by in sort)]))


def series_of(name: str, names: Names) -> int:
    """The series that a metric's name stands for: of the whole run, or of the scope in brackets.

    Raises:
        CatalogError: no run has it; the nearest name is told.
    """
    match = SCOPED.fullmatch(name)
    metric = match["metric"] if match else name.removeprefix("metric.")
    scopes = names.series.get(metric)
    if scopes is None:
        raise CatalogError(f"unknown name {name!r}; {_nearest(metric, names.all())}")
    wanted = (match["scope"], match["name"] or "") if match else ("run", "")
    if wanted not in scopes:
        known = [f"{metric}[{scope}{' ' if inner else ''}{inner}]" for scope,
                 inner in sorted(scopes) if (scope, inner) != ("run", "")]
        few = ", ".join(known[:6]) + (", …" if len(known) > 6 else "")
        near = closest(name, known, 0.6) if match else None
        raise CatalogError(f"no run has {name}; "
                           + (f"did you mean `{near}`?" if near else f"there is {few or metric}"))
    return scopes[wanted]


def number_of(text: str) -> float | None:
    """A number, with a unit or without, in SI."""
    match = QUANTITY.fullmatch(text)
    if match is None:
        return None
    number, unit = match.groups()
    if unit and unit not in UNITS:
        return None
    try:
        return float(Fraction(number.replace("_", "")) * UNITS.get(unit, 1))
    except OverflowError:
        return None


def _of_factor(column: Column, how: str, value: str) -> sa.ColumnElement[bool]:
    """A factor's level is compared as a number where both are one, else as it was written."""
    assert column.number is not None
    given = number_of(value)
    if given is None:
        if how in ("=", "!="):
            found: sa.ColumnElement[bool] = COMPARISONS[how](column.value, value)
            return found
        raise CatalogError(f"--where {column.name} {how} {value}: {value!r} is no number with a unit that is known, "
                           "such as 50 ms")
    if how in ("=", "!="):
        near = sa.func.abs(column.number - given) <= TOLERANCE * max(abs(given), 1e-12)
        equal = sa.or_(sa.and_(column.number.is_not(None), near), column.value == value)
        return equal if how == "=" else sa.not_(equal)
    compared: sa.ColumnElement[bool] = COMPARISONS[how](column.number, given)
    return compared


def _value(column: Column, text: str, condition: str) -> Any:
    """A value of a field, a tag or a metric."""
    if column.kind == "number":
        number = number_of(text)
        if number is None:
            raise CatalogError(f"--where {condition}: {text!r} is not a number")
        return number
    if column.kind == "truth":
        truth = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(text.lower())
        if truth is None:
            raise CatalogError(f"--where {condition}: {text!r} must be yes or no")
        return truth
    if column.name == "state" and text not in STATES:
        raise CatalogError(f"--where {condition}: {_nearest(text, STATES)}")
    return text


def _nearest(given: str, known: Sequence[str]) -> str:
    if near := names_like(given, known):
        return f"did you mean {', '.join(f'`{name}`' for name in near)}?"
    return f"known: {', '.join(known[:NAMES_MAX])}{', …' if len(known) > NAMES_MAX else ''}"
