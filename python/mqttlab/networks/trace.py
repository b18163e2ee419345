"""Traces of links: files with packet-delivery opportunities (Mahimahi) or with columns (CSV), and those of mqttlab.

A file whose first line is a whole number is Mahimahi's: a line for each opportunity to carry 1,500 B, its time in ms.
Any other has a header: ``time``, and one or more of ``rate``, ``delay``, ``jitter`` and ``loss``, with the unit in the
name (``rate_mbit``) or in each value (``2 Mbit/s``).
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from mqttlab.mistaken import UserFileError, beside, closest, did_you_mean, nearest_path, readable
from mqttlab.quantity import DELAY, DURATION, HOUR_NS, RATE, ratio, shown

FILE_BYTES_MAX = 16_000_000
ROWS_MAX = 1_000_000
"""As in the engine (``crates/plan/src/bounds.rs``)."""
OPPORTUNITY_BYTES = 1_500
RATE_MAX = 10**11
PPB = 10**9
MS = 10**6
NS = 10**9
FOLDER = Path(__file__).parent / "traces"

NUMERAL = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
"""Python also takes ``1_000`` and the digits of other scripts, which no other reader of these files does."""
_TIMES: dict[str, int] = {"ns": 1, "us": 1000, "ms": MS, "s": NS, "min": 60 * NS}
_RATES: dict[str, int] = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_LOSSES: dict[str, Fraction | int] = {"percent": PPB // 100, "ratio": PPB, "ppm": 1000}
UNITS: dict[str, dict[str, Any]] = {
    "time": _TIMES, "rate": _RATES, "delay": _TIMES, "jitter": _TIMES, "loss": _LOSSES}
LONGEST_NAME = 40
COLUMNS = tuple(UNITS)
# What other tools call a column, and how they write a unit.
ALSO_CALLED = {"timestamp": "time", "t": "time", "latency": "delay", "bandwidth": "rate", "throughput": "rate",
               "capacity": "rate", "packet": "loss", "plr": "loss", "owd": "delay"}
SPELLED = {"mbps": "mbit", "kbps": "kbit", "gbps": "gbit", "bps": "bit", "mbits": "mbit", "kbits": "kbit",
           "bits": "bit", "sec": "s", "seconds": "s", "msec": "ms", "pct": "percent", "%": "percent"}
EXAMPLE = {"time": "time_s", "rate": "rate_mbit", "delay": "delay_ms", "jitter": "jitter_ms", "loss": "loss_percent"}
NAMES = {"rate": "rate_bit_s", "delay": "delay_ns", "jitter": "jitter_ns", "loss": "loss_ppb"}
MOST = {"rate": (RATE_MAX, "100 Gbit/s"), "delay": (HOUR_NS, "1 h"), "jitter": (HOUR_NS, "1 h"), "loss": (PPB, "100 %"),
        "time": (366 * 86_400 * NS, "366 days")}


@dataclass(frozen=True, kw_only=True)
class Trace:
    """A trace as it was read; two of one file are equal."""

    name: str
    """As the scenario writes it."""
    digest: str
    at: Sequence[int] = field(compare=False, repr=False)
    """Times of rows in ns, from 0 on; of opportunities in ms."""
    columns: dict[str, list[int]] = field(default_factory=dict, compare=False, repr=False)
    """By their names in the scenario, in the plan's units; none of opportunities."""

    @property
    def is_opportunities(self) -> bool:
        """Whether it is Mahimahi's."""
        return not self.columns

    @property
    def length_ns(self) -> int:
        """Until it begins again: the last row lasts as long as the one before it."""
        if self.is_opportunities:
            return self.at[-1] * MS
        return 2 * self.at[-1] - self.at[-2] if len(self.at) > 1 else NS

    @property
    def sets(self) -> tuple[str, ...]:
        """The fields of a link that it has values of."""
        return ("rate",) if self.is_opportunities else tuple(self.columns)

    def mean(self, name: str) -> int:
        """The mean over its time of a column."""
        if self.is_opportunities:
            return max(1, round(len(self.at) * OPPORTUNITY_BYTES * 8 * NS / self.length_ns))
        lengths = [after - at for at, after in zip(self.at, [*self.at[1:], self.length_ns], strict=True)]
        total = sum(value * length for value, length in zip(self.columns[name], lengths, strict=True))
        mean = round(total / sum(lengths))
        return max(1, mean) if name == "rate" else mean

    def span(self, name: str) -> tuple[int, int]:
        """The least and the greatest value of a column; of opportunities, over whole seconds."""
        if not self.is_opportunities:
            return min(self.columns[name]), max(self.columns[name])
        seconds = [0] * max(1, self.at[-1] // 1000)
        for at in self.at:
            if at // 1000 < len(seconds):
                seconds[at // 1000] += OPPORTUNITY_BYTES * 8
        return (min(seconds), max(seconds)) if self.at[-1] >= 1000 else (self.mean(name), self.mean(name))

    def fields(self) -> dict[str, str]:
        """The fields of a link that follows it, each with its mean, as a scenario writes them."""
        units = {"rate": " bit/s", "delay": " ns", "jitter": " ns", "loss": f"/{PPB}"}
        return {name: f"{self.mean(name)}{units[name]}" for name in self.sets}

    def plan(self, links: Sequence[str], before_ns: int, end: str) -> dict[str, Any]:
        """As the plan has it (``TraceSpec`` of the engine); place 0 is so long after publishing begins."""
        at, length = self.at, self.length_ns
        loops = end == "loop"
        made: dict[str, Any] = {
            "name": self.name, "links": list(links), "begins_at_ns": -before_ns % length if loops else 0,
            "period_ns": length if loops else None}
        if self.is_opportunities:
            return made | {"course": {"kind": "opportunities", "at_ms": list(at), "bytes": OPPORTUNITY_BYTES}}
        if not loops:
            at = [0, *(one + before_ns for one in at[1:])]
        columns = {named: self.columns.get(name) for name, named in NAMES.items()}
        return made | {"course": {"kind": "values", "at_ns": list(at), **columns}}


def read_trace(value: Any, directory: Path | None) -> Trace:
    """A trace by the name of one that mqttlab has, or from a file beside the scenario.

    Raises:
        ValueError: it cannot be read; in words that follow the field's name.
    """
    if isinstance(value, Trace):
        return value
    if not isinstance(value, str) or not value:
        raise ValueError(f"is {shown(value)}, but must be the path of a file, or one of {', '.join(shipped())}")
    found = shipped()
    name, _, way = value.partition("/")
    if name in found and way in ("", "up", "down"):
        path = FOLDER / f"{name}-{way or 'down'}.csv"
    else:
        path = beside(Path(value), directory)
        if not path.exists():
            raise ValueError(_missing(value, path, found))
    if path.is_dir():
        raise ValueError(f"is {shown(value)}, which is a directory; write the path of a file, or a trace of mqttlab: "
                         f"{', '.join(found)}")
    try:
        with readable(path, FILE_BYTES_MAX, "a trace") as about:
            read = _read(str(path), about.st_mtime_ns, about.st_size)
    except UserFileError as error:
        raise ValueError(f"is {shown(value)}, which {error}; use a CSV file or a packet-delivery trace") from error
    except WrongTraceError as error:
        raise ValueError(f"is {shown(value)}, where {error}") from error
    return replace(read, name=value)


def is_shipped(name: str) -> bool:
    """Whether it is the name of a trace of mqttlab, with or without a direction."""
    return name.removesuffix("/up").removesuffix("/down") in shipped()


def traces_of(plan: Mapping[str, Any]) -> dict[str, Trace]:
    """The traces that a plan holds, by their names in the scenario.

    Raises:
        KeyError, TypeError, IndexError: the plan is damaged.
    """
    found = {}
    for one in (plan.get("network") or {}).get("traces") or ():
        course = one["course"]
        columns = {name: list(course[named]) for name, named in NAMES.items() if course.get(named) is not None}
        at = list(course["at_ns"] if columns else course["at_ms"])
        if one["period_ns"] is None and columns:
            # Its first values hold in the warm-up, too.
            at = [0, *(time - plan["phases"]["warm_up_ns"] for time in at[1:])]
        digest = hashlib.sha256(json.dumps(course).encode()).hexdigest()
        found[one["name"]] = Trace(name=one["name"], digest=digest, at=at, columns=columns)
    return found


class WrongTraceError(Exception):
    """What is wrong with a trace's text, from the line on."""


@cache
def shipped() -> tuple[str, ...]:
    """The names of the traces that mqttlab has."""
    return tuple(sorted(path.name.removesuffix("-down.csv") for path in FOLDER.glob("*-down.csv")))


def about_shipped(name: str) -> str:
    """What a trace of mqttlab says of its source."""
    return " ".join(_notes(name)[1:-1])


def title_of(name: str) -> str:
    """What a trace of mqttlab is, in a few words."""
    return _notes(name)[0]


def _notes(name: str) -> list[str]:
    """The lines above its header: a title, its sources, and how it was made."""
    lines = (FOLDER / f"{name}-down.csv").read_text(encoding="utf-8").splitlines()
    return [line.lstrip("# ").strip() for line in lines if line.startswith("#")]


def _missing(value: str, path: Path, found: Sequence[str]) -> str:
    if re.search(r"[./\\]", value):
        near = nearest_path(path)
        return f"is {shown(value)}, but there is no file {path}" + (
            f"; did you mean {shown(near)}?" if near else "; a path is relative to the scenario's file")
    near = closest(value.lower(), found, 0.4)
    hint = f"did you mean \"{near}\"?" if near else f"known: {', '.join(found)}"
    return f"is {shown(value)}, which is neither a trace of mqttlab nor a file {path}; {hint}"


@lru_cache(maxsize=32)
def _read(path: str, _changed: int, _size: int) -> Trace:
    data = Path(path).read_bytes()
    text = data.decode("utf-8-sig")
    digest = hashlib.sha256(data).hexdigest()
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1)
             if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise WrongTraceError("there is no line; write a header such as time_s,rate_mbit and rows below it")
    if len(lines) > ROWS_MAX + 1:
        raise WrongTraceError(f"there are {len(lines):,} lines, but {ROWS_MAX:,} are read at most; use a part of it")
    if re.fullmatch(r"[-+]?[0-9.]+", lines[0][1].strip()):
        return Trace(name=path, digest=digest, at=_opportunities(lines))
    at, columns = _table(lines)
    return Trace(name=path, digest=digest, at=at, columns=columns)


def _opportunities(lines: Sequence[tuple[int, str]]) -> list[int]:
    at: list[int] = []
    for number, line in lines:
        word = line.strip()
        if not re.fullmatch(r"[0-9]{1,9}", word):
            raise WrongTraceError(f"line {number} is {shown(word)}, but must be a time in whole ms{_whole(word)}")
        if at and int(word) < at[-1]:
            raise WrongTraceError(f"line {number} is {word}, which is before the time in the line above; write "
                                  f"{at[-1]} or more")
        at.append(int(word))
    if at[-1] == 0:
        raise WrongTraceError(f"line {lines[-1][0]} is 0, so that the trace takes no time; the last one must be 1 or "
                              "more")
    rate = len(at) * OPPORTUNITY_BYTES * 8 * 1000 // at[-1]
    if rate > RATE_MAX:
        raise WrongTraceError(f"{len(at):,} lines end at {at[-1]} ms, which is {rate // 10**9:,} Gbit/s on the mean, "
                              f"but must be {MOST['rate'][1]} or less; a line stands for {OPPORTUNITY_BYTES:,} B")
    return at


def _whole(word: str) -> str:
    try:
        return f"; the nearest is {max(0, round(float(word)))}"
    except (ValueError, OverflowError):
        return ", such as 12"


def _table(lines: Sequence[tuple[int, str]]) -> tuple[list[int], dict[str, list[int]]]:
    number, header = lines[0]
    names = _header(number, header)
    found: list[list[int]] = [[] for _ in names]
    for number, cells in _rows_of(lines[1:]):
        if len(cells) != len(names):
            raise WrongTraceError(f"line {number} has {len(cells)} values, but the header has {len(names)} columns")
        for place, (cell, (written, name, read)) in enumerate(zip(cells, names, strict=True)):
            try:
                found[place].append(read(cell.strip()))
            except ValueError as error:
                raise WrongTraceError(f"line {number}, column `{written}` {error}") from None
            if name == "time" and len(found[place]) > 1 and found[place][-1] <= found[place][-2]:
                raise WrongTraceError(f"line {number}, column `{written}` is {shown(cell.strip())}, which is not after "
                                      "the time in the line above; put the rows in the order of time, one for each "
                                      "time")
            if name == "time" and found[place][-1] - found[place][0] > MOST["time"][0]:
                raise WrongTraceError(f"line {number}, column `{written}` is {shown(cell.strip())}, but must be at "
                                      f"most {MOST['time'][1]} after the first row")
    if not found[0]:
        raise WrongTraceError(f"line {number} has a header, and no row follows it; add one")
    by_name = {name: values for (_, name, _), values in zip(names, found, strict=True)}
    times = by_name.pop("time")
    # The last row lasts as long as the one before it.
    if 2 * times[-1] - times[max(0, len(times) - 2)] - times[0] > MOST["time"][0]:
        raise WrongTraceError(f"line {lines[-1][0]}, the last row, lasts as long as the one before it, so that the "
                              f"trace takes more than {MOST['time'][1]}; use a part of it")
    if "rate" in by_name and not any(by_name["rate"]):
        raise WrongTraceError("the rate is 0 in every row; write a rate above 0 in one of them")
    return [at - times[0] for at in times], by_name


def _rows_of(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line, with its number in the file."""
    for number, line in lines:
        try:
            yield number, next(csv.reader([line]))
        except csv.Error as error:
            raise WrongTraceError(f"line {number} is not a line of a table: {error}") from None


def _header(number: int, header: str) -> list[tuple[str, str, Callable[[str], int]]]:
    """The columns: as written, by name, and what reads a value."""
    if ";" in header or "\t" in header:
        mark = "\";\"" if ";" in header else "a tab"
        raise WrongTraceError(f"line {number} separates columns with {mark}; use commas")
    written = [name.strip() for _, names in _rows_of([(number, header)]) for name in names]
    if not any(re.match(r"[A-Za-z]", name) for name in written):
        raise WrongTraceError(f"line {number} is {shown(header)}, which is no header; write one such as "
                              "time_s,rate_mbit above it")
    columns: list[tuple[str, str, Callable[[str], int]]] = []
    for name in written:
        column, read = _column(number, name)
        if column in [known for _, known, _ in columns]:
            raise WrongTraceError(f"line {number} has two columns of `{column}`; keep one")
        columns.append((name, column, read))
    known = [column for _, column, _ in columns]
    if "time" not in known:
        raise WrongTraceError(f"line {number} has no column of times; add `time_s`")
    if known == ["time"]:
        raise WrongTraceError(f"line {number} has times alone; add a column such as `rate_mbit` or `delay_ms`")
    return columns


def _column(number: int, written: str) -> tuple[str, Callable[[str], int]]:
    name, _, unit = written.lower().replace("-", "_").partition("_")
    unit = unit.removesuffix("_s").removesuffix("/s") if name == "rate" else unit
    unit = SPELLED.get(unit, unit)
    if name not in UNITS:
        near = ALSO_CALLED.get(name) or closest(name, COLUMNS, 0.6)
        hint = f"did you mean `{EXAMPLE[near]}`?" if near else f"known: {', '.join(EXAMPLE.values())}"
        raise WrongTraceError(f"line {number}, column {_named(written)} is unknown; {hint}")
    if not unit:
        return name, lambda cell: _quantity(name, cell)
    if unit not in UNITS[name]:
        hint = did_you_mean(f"{name}_{unit}", [f"{name}_{known}" for known in UNITS[name]], 0.8)
        raise WrongTraceError(f"line {number}, column {_named(written)} has an unknown unit; {hint}")
    return name, lambda cell: _number(name, cell, UNITS[name][unit])


def _named(written: str) -> str:
    """A column's name in a message; a line without separators is one name."""
    return f"`{written}`" if len(written) < LONGEST_NAME else shown(written)


def _number(name: str, cell: str, unit: Any) -> int:
    if not cell:
        raise ValueError("is empty; write the value of the line above again")
    if not NUMERAL.fullmatch(cell) and cell.lstrip("+-").lower() not in ("inf", "infinity", "nan"):
        raise ValueError(f"is {shown(cell)}, which is not a number; the header has the unit")
    value = float(cell)
    if not abs(value * unit) < float("inf"):
        raise ValueError(f"is {shown(cell)}, but must be a finite number")
    if value < 0 and name != "time":
        raise ValueError(f"is {shown(cell)}, but must be 0 or more")
    return _within(name, cell, round(value * unit))


def _quantity(name: str, cell: str) -> int:
    if not cell:
        raise ValueError("is empty; write the value of the line above again")
    if "_" in cell:
        raise ValueError(f"is {shown(cell)}, which is not a number with a unit; write it without underscores")
    if name == "loss":
        above, below = ratio(cell)
        return round(PPB * above / below)
    kind = {"time": DURATION, "rate": replace(RATE, least=0, least_text="0 bit/s")}.get(name, DELAY)
    return _within(name, cell, round(kind.read(cell)))


def _within(name: str, cell: str, value: int) -> int:
    most, words = MOST[name]
    # Times may count from long ago, as those of a clock do.
    if value > most and name != "time":
        raise ValueError(f"is {shown(cell)}, but must be {words} or less")
    return value


def rows(trace: Trace, name: str) -> Iterator[tuple[float, int]]:
    """A column over time, in seconds; of opportunities, the rate over each second."""
    if not trace.is_opportunities:
        yield from ((at / NS, value) for at, value in zip(trace.at, trace.columns[name], strict=True))
        return
    counts = [0] * (trace.at[-1] // 1000 + 1)
    for at in trace.at:
        counts[at // 1000] += OPPORTUNITY_BYTES * 8
    yield from ((float(second), count) for second, count in enumerate(counts))
