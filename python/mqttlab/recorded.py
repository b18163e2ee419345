"""Whether a recording's tables are such as an engine writes: kinds of columns, and numbers that name something.

Recordings come by mail and lie on disks for years. What is wrong with one is said in one line that names it: before a
table is read where its bytes (``mqttlab.checks``) or its columns tell, and afterwards, where what was read has led
nowhere (:func:`damage`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from mqttlab.plan.events import kinds
from mqttlab.plurals import counted

# What Polars raises of a damaged file; of some it panics.
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException)


class Column(NamedTuple):
    """What a column holds."""

    kind: str
    """``text``, ``bool``, ``f64`` or whole numbers: ``u8``, ``u16``, ``u32``, ``i64``."""
    unit: str
    """Of its numbers; empty where they have none."""
    may_be_empty: bool
    """Whether a row may have nothing in it."""


def _tables() -> dict[str, dict[str, Column]]:
    """The tables of today's recordings, as the engine declares them (``crates/recording``)."""
    text = Path(__file__).with_name("tables.json").read_text(encoding="utf-8")
    return {table: {name: Column(*column) for name, column in columns.items()}
            for table, columns in json.loads(text).items()}


COLUMNS = _tables()
"""The columns of each table, by name."""
_TYPES: dict[str, pl.DataType] = {
    "text": pl.String(), "bool": pl.Boolean(), "f64": pl.Float64(), "u8": pl.UInt8(), "u16": pl.UInt16(),
    "u32": pl.UInt32(), "i64": pl.Int64()}
# Columns that number what `layout.json` lists.
INDICES = {"publisher": "clients", "subscriber": "clients", "client": "clients", "up_client": "clients",
           "link": "links", "from_host": "hosts", "to_host": "hosts"}
# Words that are read again as numbers (RFC 2018's blocks), and those of which there are a few.
WORDS = {("packets", "sack"): r"^(\d{1,10}-\d{1,10}( |$))*$", ("tcp_state", "end"): "^(client|server)$",
         ("packets", "direction"): "^(up|down)$", ("control_packets", "direction"): "^to_(broker|client)$"}
# Times are of a run: of less than a century.
TIME_NS_MOST = 100 * 366 * 86_400 * 10**9
# What every reader relies on. It is not read off the plan's type: plans of imports and of earlier schemas have less.
LAYOUT = {"hosts": [str], "links": [str], "clients": [{"name": str, "group": str, "host": int}],
          "measurement_end_ns": int, "warm_up_end_ns": int}
PLAN = {"name": str, "groups": [{"name": str, "count": int}], "hosts": [{"name": str}],
        "phases": {"warm_up_ns": int, "duration_ns": int, "cool_down_ns": int}, "network": {"kind": str}}

EVENT = {"at_ns": int, "name": str, "change": {"kind": str}}
TRACE = {"name": str, "links": [str], "begins_at_ns": int, "course": {"kind": str}}
# What an event acts on, and how a plan has that.
TARGETS: dict[str, Any] = {"links": [str], "medium": str, "server": str, "clients": [int]}


def schema_of(table: str, names: Iterable[str] = ()) -> dict[str, pl.DataType]:
    """The types of a table's columns: of these, or of all."""
    declared = COLUMNS[table]
    return {name: _TYPES[declared[name].kind] for name in tuple(names) or declared}


def kinds_wrong(table: str, columns: Mapping[str, pl.DataType]) -> str | None:
    """The first column that holds something else than it should; of tables and columns that are not known nothing is
    said."""
    declared = COLUMNS.get(table, {})
    for name, kind in columns.items():
        if kind == pl.Null or name not in declared:
            continue
        match declared[name].kind:
            case "text":
                right, what = isinstance(kind, (pl.String, pl.Categorical, pl.Enum)), "text"
            case "bool":
                right, what = kind == pl.Boolean, "yes or no"
            case "f64":
                right, what = kind.is_numeric(), "numbers"
            case _:
                right, what = kind.is_integer(), "whole numbers"
        if not right:
            return f"its column {name!r} is of the kind {kind}, but must hold {what}"
    return None


def first_line(error: BaseException) -> str:
    """An error in one line: those of Polars have its query below."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def damage(
    directory: Path, plan: Any, layout: Any, tables: Iterable[tuple[str, pl.LazyFrame]],
    added: Mapping[str, Collection[str]],
) -> str | None:
    """What is wrong with a recording that could not be evaluated: something is missing, or names what is not there.

    Args:
        directory: the recording's.
        plan: ``plan.json``.
        layout: ``layout.json``, as :func:`mqttlab.layout.read` has it: what is wrong with it is said there.
        tables: its tables by name.
        added: columns of tables that earlier recordings do not have.
    """
    if problem := unlike(plan, PLAN):
        return f"{directory / 'plan.json'} is damaged: {problem}"
    if problem := _events_wrong(plan.get("events")):
        return f"{directory / 'plan.json'} is damaged: {problem}"
    if problem := _traces_wrong(plan["network"].get("traces")):
        return f"{directory / 'plan.json'} is damaged: {problem}"
    for name, table in tables:
        columns = table.collect_schema().names()
        declared = COLUMNS.get(name, {})
        always = {column for column, of in declared.items() if not of.may_be_empty} - set(added.get(name, ()))
        problem = (
            next((f"it has no column {column!r}" for column in sorted(declared.keys() - set(columns)) if columns), None)
            or _missing(table.select(sorted(always & set(columns))))
            or _words_wrong(name, table, columns)
            or _numbers_wrong(table, columns, layout))
        if problem is not None:
            return f"{directory / name}.parquet is damaged: {problem}"
    return None


def _events_wrong(events: Any) -> str | None:
    """What is wrong with the plan's events; plans of before there were any have none."""
    if events is None:
        return None
    if problem := unlike({"events": events}, {"events": [EVENT]}):
        return problem
    for place, event in enumerate(events):
        target = next((name for name in TARGETS if name in event), None)
        if target is None:
            return f"`events[{place}]` acts on nothing"
        if problem := unlike(event, {target: TARGETS[target]}):
            return f"`events[{place}]`: {problem}"
        if (target, event["change"]["kind"]) not in kinds():
            return f"`events[{place}]` has an unknown change"
    return None


def _traces_wrong(traces: Any) -> str | None:
    """What is wrong with the plan's traces; plans of before there were any have none."""
    if traces is None:
        return None
    if problem := unlike({"network.traces": traces}, {"network.traces": [TRACE]}):
        return problem
    for place, one in enumerate(traces):
        course, whole = one["course"], f"`network.traces[{place}]`"
        columns: dict[str, Any] = {"opportunities": {"at_ms": [int], "bytes": int}, "values": {"at_ns": [int]}}
        if course["kind"] not in columns:
            return f"{whole} is of an unknown kind"
        if problem := unlike(course, columns[course["kind"]]):
            return f"{whole}: {problem}"
        rows = course.get("at_ms") or course.get("at_ns") or []
        rates, delays = course.get("rate_bit_s"), course.get("delay_ns")
        for column in (rates, delays):
            if column is not None and (unlike({"": column}, {"": [int]}) or len(column) != len(rows)):
                return f"{whole} has a column that is not of whole numbers, one for each row"
        if not rows or one.get("period_ns") == 0 or unlike({"": one.get("period_ns") or 1}, {"": int}):
            return f"{whole} has no rows, or takes no time"
        if course["kind"] == "values" and not {"rate_bit_s", "delay_ns"} <= set(course):
            return f"{whole} says nothing of a rate or a delay"
    return None


def _missing(table: pl.LazyFrame) -> str | None:
    """A column without a value in a row, of those that have one in each."""
    counts = table.null_count().collect()
    return next((f"its column {column!r} has no value in {counted(counts[column][0], 'row')}, but must have one in each"
                 for column in counts.columns if counts[column][0]), None)


def _words_wrong(name: str, table: pl.LazyFrame, columns: Collection[str]) -> str | None:
    for (of, column), pattern in WORDS.items():
        if of == name and column in columns:
            words = pl.col(column).cast(pl.String)
            strange = table.filter(~words.str.contains(pattern)).select(words).head(1).collect()
            if strange.height:
                return f"its column {column!r} has {strange.item()[:80]!r}"
    return None


def _numbers_wrong(table: pl.LazyFrame, columns: Collection[str], layout: Any) -> str | None:
    least = {column: 0 for column in columns if column in INDICES}
    most = {column: len(layout[INDICES[column]]) - 1 for column in least}
    times = [column for column in columns if column.endswith("_ns")]
    least |= dict.fromkeys(times, -TIME_NS_MOST)
    most |= dict.fromkeys(times, TIME_NS_MOST)
    if not most:
        return None
    ends = table.select(*(pl.col(column).cast(pl.Float64).min().alias(f"{column}<") for column in most),
                        *(pl.col(column).cast(pl.Float64).max().alias(f"{column}>") for column in most)).collect()
    for column, end in most.items():
        low, high = ends[f"{column}<"][0], ends[f"{column}>"][0]
        if low is not None and (low < least[column] or high > end):
            return (f"its column {column!r} goes from {low:.0f} to {high:.0f}, but must be within {least[column]} "
                    f"and {end}")
    return None


def unlike(value: Any, right: Any, place: str = "") -> str | None:
    """Where a value of JSON is not of the shape that it should have."""
    if isinstance(right, dict):
        if not isinstance(value, dict):
            return f"`{place}` must be an object" if place else "it must be an object"
        within = ((value.get(name), part, f"{place}.{name}".lstrip(".")) for name, part in right.items())
    elif isinstance(right, list):
        if not isinstance(value, list):
            return f"`{place}` must be an array"
        within = ((part, right[0], f"{place}[{number}]") for number, part in enumerate(value))
    else:
        fits = isinstance(value, right) and not (right is int and (isinstance(value, bool) or value < 0))
        return None if fits else f"`{place}` must be {'text' if right is str else 'a whole number of 0 or more'}"
    return next((problem for part in within if (problem := unlike(*part))), None)
