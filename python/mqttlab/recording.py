"""A recording: the evidence that a run leaves, opened for reading.

The same class reads what the live testbed, the simulator and an import have left; nothing here or above can tell
which of them it was, and nothing may ask. A directory whose producer was killed is recovered first, so that what
was recorded is there, and says that it is incomplete. A run that is still going on is not touched: what it has written
is copied to a temporary directory, which goes when the :class:`Recording` goes.

Raises:
    RecordingError: the directory is not a recording, or a table of it cannot be read.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mqttlab import layout, scratch
from mqttlab.checks import Checks
from mqttlab.digits import plain
from mqttlab.engine import (
    EngineError,
    cannot_be_written,
    hide_abandoned,
    is_being_written,
    recover,
    snapshot,
    summarise,
)
from mqttlab.errors import MqttlabError
from mqttlab.files import BY_HAND, json_lines
from mqttlab.mistaken import did_you_mean, nearest_path, what_it_is
from mqttlab.plan import StoredPlan, read_plan
from mqttlab.plan.events import Change, changes
from mqttlab.recorded import UNREADABLE, damage, first_line, kinds_wrong, schema_of

SCHEMA_VERSION = 4
"""The latest version of the recording's schema that this program reads; earlier ones are read as it."""
CARRIERS = ("PUBLISH", "MESSAGE")
"""Kinds of control packets that carry a message: of MQTT and MQTT-SN, and of ZeroMQ."""

TABLES = ("messages", "packets", "control_packets", "network_metrics", "events", "resources", "clients", "tcp_state",
          "positions", "payloads")
SUM_TABLES = ("message_sums", "latency_sums")
"""Tables that only recordings with a sample of the messages have."""

# Columns and tables that came later: empty in older recordings. A test holds this list to docs/reference/recording.md.
NEW_TABLES = {name: schema_of(name) for name in ("tcp_state", "positions", "payloads")}
ADDED = NEW_TABLES | {table: schema_of(table, names.split()) for table, names in {
    "messages": "cause publication", "message_sums": "publication", "packets": "repetition ecn",
    "control_packets": "written_ns read_ns", "clients": "under_way unknown",
    "resources": "run_queue_s faults_minor faults_major steal_s server"}.items()}

# Rows of a long column.
READ_AT_ONCE = 1 << 20

# What older recordings do not say, for they have nothing else: their control packets are MQTT's on TCP, in frames.
IMPLIED: dict[str, dict[str, str]] = {
    "control_packets": {"transport": "tcp", "protocol": "mqtt", "seen_by": "capture"},
}


class RecordingError(MqttlabError):
    """A directory is not a recording, or a part of it cannot be read. The message names the path."""


class _OnceEach:
    """Tables by name, each made once however many threads ask for it at a time: a page asks for many figures at once,
    and all of them would read the same."""

    def __init__(self) -> None:
        self._made: dict[str, pl.DataFrame] = {}
        self._each: dict[str, threading.Lock] = {}
        self._all = threading.Lock()

    def of(self, name: str, make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        with self._all:
            being_made = self._each.setdefault(name, threading.Lock())
        # What it is made of has locks of its own: nothing is made of itself, so that nobody waits in a circle.
        with being_made:
            if name not in self._made:
                self._made[name] = make()
            return self._made[name]


# Those of this process, for whoever has to say why a command failed.
_OPENED: deque[weakref.ref[Recording]] = deque(maxlen=16)


def found_damaged() -> str | None:
    """What is wrong with the recordings that were opened, the latest first; nothing where they are whole."""
    opened = (reference() for reference in reversed(_OPENED))
    return next((problem for recording in opened if recording and (problem := recording.damage())), None)


@contextmanager
def evaluated(recording: Recording) -> Iterator[None]:
    """What is made of a recording: where that fails because the recording is damaged, this is said, and in one line.

    Raises:
        RecordingError: it is damaged.
    """
    try:
        yield
    except MqttlabError:
        raise
    except (Exception, *UNREADABLE) as error:
        problem = recording.damage()
        if problem is None and not isinstance(error, UNREADABLE):
            raise
        raise RecordingError(problem or f"{recording.directory} cannot be read: {first_line(error)}") from error


@dataclass(frozen=True)
class Recording:
    """One run's directory. Tables are read when they are first asked for, and kept."""

    directory: Path
    source: Path | None = None
    """The run that is still going on, or cannot be written to, where this is made of what it had written."""
    summaries: Path | None = None
    """Where derived tables are kept of recordings that have none of this version; nowhere when left out."""
    stage: str | None = None
    """The stage that is looked at alone, of its measurement; all that are measured when left out."""
    _derived: _OnceEach = field(default_factory=_OnceEach, init=False, repr=False, compare=False)
    _checks: Checks = field(default_factory=Checks, init=False, repr=False, compare=False)

    @classmethod
    def open(cls, directory: Path, summaries: Path | None = None) -> Recording:
        """Open a directory; recovers what a killed run has left behind, and only looks at a run that is going on.

        Args:
            directory: the recording's.
            summaries: a directory, which need not exist, for derived tables of recordings that have none of this
                version, so that they are made once. Nothing is ever written into a recording for that.

        Raises:
            RecordingError: there is no recording in it.
        """
        if not directory.is_dir():
            raise RecordingError(_no_recording(directory))
        if not (directory / "plan.json").is_file():
            raise RecordingError(f"{directory} is not a recording: it has no plan.json")
        # Before anything is printed: every table needs the plan.
        _json(directory / "plan.json")
        with contextlib.suppress(EngineError):
            hide_abandoned(directory)
        recording = _finished(directory) if any(directory.glob("*.spool")) else cls(directory, summaries=summaries)
        _OPENED.append(weakref.ref(recording))
        version = recording.run.get("schema_version", SCHEMA_VERSION)
        if not isinstance(version, int):
            raise RecordingError(f"{directory} cannot be read: its schema version is no number")
        if version > SCHEMA_VERSION:
            raise RecordingError(f"{directory} is of schema version {version}, but this program knows versions up to "
                                 f"{SCHEMA_VERSION}; open it with the program that made it, or a later one")
        recording._check(recording.directory / "plan.json")
        return recording

    def of_stage(self, name: str) -> Recording:
        """The same recording, of whose measurement one stage is looked at alone.

        Raises:
            RecordingError: its plan has no such stage.
        """
        names = [stage["name"] for stage in self.plan.get("stages") or ()]
        if name not in names:
            known = did_you_mean(name, names) if names else "its scenario has no `phases.stages`"
            raise RecordingError(f"{self.directory} has no stage {name!r}; {known}")
        return replace(self, stage=name)

    @cached_property
    def run(self) -> dict[str, Any]:
        """``run.json`` of a complete run, ``incomplete.json`` of one that was cut short, with its ``reason`` in words.

        What the words are made of is ``ending``: a ``kind`` and its fields. Earlier recordings hold the words alone.
        """
        for name in ("run.json", "incomplete.json"):
            path = self.directory / name
            if path.is_file():
                run = self._json(path)
                return {**run, "reason": _words(run.get("reason")), "ending": run.get("reason")}
        return {"status": "incomplete", "warnings": ["The run ended before it could say how."]}

    @property
    def run_id(self) -> str | None:
        """The recording's identifier, a ULID; recordings of schema version 1 have none."""
        found = self.run.get("run_id") or self.layout.get("run_id")
        return str(found) if found else None

    @property
    def going_on(self) -> str | None:
        """For a run that is still going on: a sentence that says so, and of what time this is."""
        return str(self.run["reason"]) if self.run.get("status") == "running" else None

    @property
    def complete(self) -> bool:
        """Whether the run went as planned: ``run.json`` is written last, and only then."""
        return (self.directory / "run.json").is_file() and self.run.get("status") == "complete"

    @cached_property
    def plan(self) -> StoredPlan:
        """``plan.json``: what was to be run, as run; older ones as one of the latest schema."""
        return read_plan(self._json(self.directory / "plan.json"))

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self.plan.get("name", self.directory.name))

    def table(self, name: str) -> pl.DataFrame:
        """One of :data:`TABLES`; empty where the run recorded none.

        Raises:
            RecordingError: the file is there and cannot be read.
        """
        return self.collect(self.scan(name))

    def scan(self, name: str, index: str | None = None) -> pl.LazyFrame:
        """One of :data:`TABLES`, of which nothing is read yet: what is selected and filtered decides what will be.

        Rows come in the order of the table; empty where the run recorded none. :meth:`collect` reads it.

        Args:
            name: the table.
            index: a column with the rows' numbers. Numbered afterwards, all rows of the file are read.

        Raises:
            RecordingError: the file is there and cannot be read.
        """
        path = self.directory / f"{name}.parquet"
        if not path.is_file():
            nothing = pl.LazyFrame(schema=NEW_TABLES.get(name, {}))
            return nothing if index is None else nothing.with_row_index(index)
        table = self._scanned(path, index)
        columns = table.collect_schema()
        # Times were stored unsigned once; their differences are not.
        times = [column for column, kind in columns.items() if column.endswith("_ns") and kind != pl.Int64]
        missing = {column: kind for column, kind in ADDED.get(name, {}).items() if column not in columns}
        implied = {column: word for column, word in IMPLIED.get(name, {}).items() if column not in columns}
        changes = [
            *(pl.col(column).cast(pl.Int64) for column in times),
            *(pl.lit(None, dtype=kind).alias(column) for column, kind in missing.items()),
            *(pl.lit(word).alias(column) for column, word in implied.items()),
        ]
        # Behind a step, even one that changes nothing, rows are numbered and taken when the whole file has been read.
        return table.with_columns(changes) if changes else table

    def collect(self, scanned: pl.LazyFrame) -> pl.DataFrame:
        """Read what was made of :meth:`scan`, in parts where what is made of it permits that.

        Raises:
            RecordingError: a file cannot be read.
        """
        try:
            return scanned.collect(engine="streaming")
        except (*UNREADABLE, OSError) as error:
            file = self._unreadable_file() or self.directory
            raise RecordingError(f"{file} cannot be read: {first_line(error)}; take the recording from a copy, or run "
                                 "again") from error

    def _unreadable_file(self) -> Path | None:
        """The first of the tables of which not every page can be decoded."""
        for path in [*sorted(self.directory.glob("*.parquet")), *sorted(self._summed_up.glob("*.parquet"))]:
            try:
                pl.scan_parquet(path, glob=False).select(pl.all().null_count()).collect(engine="streaming")
            except (*UNREADABLE, OSError):
                return path
        return None

    def scan_captured(self) -> pl.LazyFrame:
        """The rows of ``control_packets`` that frames show: without those that only clients have seen."""
        table = self.scan("control_packets")
        if not table.collect_schema():
            return table
        return table.filter(pl.col("seen_by").cast(pl.String) == "capture")

    @cached_property
    def has_clients_packets(self) -> bool:
        """Whether clients have seen control packets that no frame shows."""
        table = self.scan("control_packets")
        if not table.collect_schema():
            return False
        seen = table.filter(pl.col("seen_by").cast(pl.String) == "client").select(pl.len())
        return bool(self.collect(seen).item())

    def ranges(self, scanned: pl.LazyFrame, rows: int) -> list[tuple[int, int]]:
        """Begin and length of so many rows at a time of what :meth:`scan` gives; an empty range of an empty table."""
        whole = int(self.collect(scanned.select(pl.len())).item())
        return [(begin, min(rows, whole - begin)) for begin in range(0, max(whole, 1), rows)]

    def read_column(self, name: str, of: Callable[[int, int], pl.LazyFrame]) -> NDArray[np.float64]:
        """The one column that ``of`` makes of so many rows of a table (first, how many), one part after the other.

        Not a number where nothing is known. Collected at once, a long column is held twice while it is put together.
        """
        values, height = np.empty(self.rows(name)), 0
        for begin in range(0, len(values), READ_AT_ONCE):
            part = self.collect(of(begin, READ_AT_ONCE)).to_series()
            values[height : height + len(part)] = part.to_numpy()
            height += len(part)
        return values[:height]

    def rows(self, name: str) -> int:
        """How many rows a table has, which its file says at its end."""
        return int(self.collect(self.scan(name).select(pl.len())).item())

    @cached_property
    def _summed_up(self) -> Path:
        """Where the derived tables are: beside the others, or made now, elsewhere, of a recording that has none."""
        if _is_summary_of(self.directory, self.directory):
            return self.directory
        kept = self.summaries and self.summaries / sha256(str(self.directory.resolve()).encode()).hexdigest()[:32]
        if kept and _is_summary_of(self.directory, kept):
            return kept
        # Made of a damaged table, they would be right for it.
        try:
            wrong = self._checks.problem_of_run(self.directory)
        except OSError as error:
            raise RecordingError(f"{self.directory} cannot be read: {error.strerror}") from error
        if wrong is not None:
            raise RecordingError(f"{wrong[0]} cannot be read: {wrong[1]}")
        made = _made_below(self.summaries) or scratch.take("summary")
        try:
            summarise(self.directory, made.path)
        except EngineError as error:
            made.release()
            raise RecordingError(str(error)) from error
        if kept and _put(made.path, kept):
            made.release()
            return kept
        weakref.finalize(self, made.release)
        return made.path

    def scan_summary(self, name: str) -> pl.LazyFrame:
        """One of the derived tables of ``docs/reference/recording.md``, to be collected.

        It is empty where there is nothing to derive.

        Raises:
            RecordingError: the tables that it is derived from cannot be read.
        """
        path = self._summed_up / f"{name}.parquet"
        return self._scanned(path) if path.is_file() else pl.LazyFrame()

    def summary(self, name: str, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """The same, as a table: all its columns, or these."""
        table = self.scan_summary(name)
        return self.collect(table if columns is None else table.select(columns))

    @cached_property
    def layout(self) -> dict[str, Any]:
        """``layout.json``: the names behind the indices; ``clients`` are :class:`mqttlab.layout.Clients`."""
        path = self.directory / "layout.json"
        self._check(path)
        found, problem = _read(path, layout.read)
        if problem:
            raise RecordingError(f"{path} is damaged: {problem}")
        return found

    def _json(self, path: Path) -> dict[str, Any]:
        self._check(path)
        return _json(path)

    def _check(self, path: Path) -> None:
        try:
            problem = self._checks.problem(path)
        except OSError as error:
            problem = error.strerror
        if problem is not None:
            raise RecordingError(f"{path} cannot be read: {problem}")

    def damage(self) -> str | None:
        """What is wrong with a recording of which something could not be evaluated, in one line; nothing where it is a
        fault of this program."""
        try:
            derived = sorted(path.stem for path in self._summed_up.glob("*.parquet") if path.stem not in TABLES)
            scanned = [*((name, self.scan(name)) for name in TABLES),
                       *((name, self.scan_summary(name)) for name in derived)]
            plan = self._json(self.directory / "plan.json")
            return damage(self.directory, plan, self.layout, scanned, ADDED)
        except MqttlabError as error:
            return error.problems[0]
        except UNREADABLE as error:
            return f"{self.directory} cannot be read: {first_line(error)}"

    def _scanned(self, path: Path, index: str | None = None) -> pl.LazyFrame:
        """A table's file: its bytes are those that were written, as far as that is known; its columns can be read, have
        names that the engine gives, and hold what they should.

        Raises:
            RecordingError: it is damaged.
        """
        self._check(path)
        try:
            table = pl.scan_parquet(path, row_index_name=index, glob=False)
            columns = table.collect_schema()
        except (*UNREADABLE, OSError) as error:
            raise RecordingError(f"{path} cannot be read: {first_line(error)}") from error
        strange = [name for name in columns if not re.fullmatch(r"[a-z][a-z0-9_]*", name)]
        if strange:
            raise RecordingError(f"{path} cannot be read: it has a column {strange[0]!r}, which no table has")
        if problem := kinds_wrong(path.stem, columns):
            raise RecordingError(f"{path} cannot be read: {problem}")
        return table

    @cached_property
    def messages(self) -> pl.DataFrame:
        """One row per message per receiver, what did not arrive too, and the unsent; with the groups of both ends."""
        messages = self.table("messages")
        if messages.is_empty():
            return messages
        groups = self.layout["clients"].groups
        return messages.with_columns(
            publisher_group=named("publisher", groups), subscriber_group=named("subscriber", groups)
        )

    @cached_property
    def packets(self) -> pl.DataFrame:
        """One row per frame per link, with its fate; links and hosts by name."""
        packets = self.table("packets")
        if packets.is_empty():
            return packets
        hosts = self.layout["hosts"]
        return packets.with_columns(
            named("link", self.layout["links"]), named("from_host", hosts), named("to_host", hosts)
        )

    @cached_property
    def remembered(self) -> dict[str, Any]:
        """Single facts that were found out, by name."""
        return {}

    def derived(self, name: str, derive: Callable[[Recording], pl.DataFrame]) -> pl.DataFrame:
        """What ``derive`` makes of the recording: made once under this name, however many metrics and threads ask."""
        return self._derived.of(name, lambda: derive(self))

    @cached_property
    def control_packets(self) -> pl.DataFrame:
        """One row per control packet that was seen."""
        return self.table("control_packets")

    @cached_property
    def network_metrics(self) -> pl.DataFrame:
        """One row per network-layer metric of the run, of its directions and of its connections."""
        return self.table("network_metrics")

    @cached_property
    def events(self) -> pl.DataFrame:
        """Connects, disconnects, phases, changes, warnings. Events of servers are called alike in all recordings."""
        events = self.table("events")
        return events if events.is_empty() else events.with_columns(
            pl.col("kind").cast(pl.String).replace({"broker_start": "server_start", "broker_exit": "server_exit"}))

    @cached_property
    def changes(self) -> list[Change]:
        """The events that took place, the plan's and those fired by hand, at run time, each with the one that ended
        it."""
        planned, fired = self.plan.get("events") or [], self._fired()
        if self.events.is_empty() or not (planned or fired):
            return []
        taken = self.events.filter(pl.col("kind") == "change")["at_ns"].to_list()
        return changes(planned, taken, fired)

    def _fired(self) -> list[tuple[int, Any]]:
        """The events that were fired by hand, and when."""
        path = self.directory / BY_HAND
        try:
            fired = [(int(line["at_ns"]), line["event"]) for line in json_lines(path)] if path.is_file() else []
            changes((), (), fired)
        except (OSError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise RecordingError(f"{path} is damaged: it holds something else than events") from error
        return fired

    @cached_property
    def resources(self) -> pl.DataFrame:
        """Processor, memory and pressure samples of servers, engine and machine; ``name`` is a server's or the process.

        Earlier recordings have one row for all servers together.
        """
        samples = self.table("resources")
        if samples.is_empty():
            return samples.with_columns(name=pl.lit(None, dtype=pl.String))
        names = [server["name"] for server in self.plan["servers"]]
        together = names[0] if len(names) == 1 else "servers"
        process = pl.col("process").cast(pl.String).replace({"broker": "server"})
        server = pl.col("server").cast(pl.Int64).replace_strict(
            dict(enumerate(names)), default=together, return_dtype=pl.String)
        return samples.with_columns(process=process).with_columns(
            name=pl.when(pl.col("process") == "server").then(server.fill_null(together)).otherwise(pl.col("process")))

    @cached_property
    def tcp_state(self) -> pl.DataFrame:
        """What both ends of TCP connections knew: time-out, window, threshold, bytes unsent and under way; sampled."""
        return self.table("tcp_state")

    @cached_property
    def positions(self) -> pl.DataFrame:
        """Where clients and radio stations were: metres in a channel's plane, or degrees where payloads say them."""
        return self.table("positions")

    def payload(self, start_bytes: int, kept_bytes: int) -> bytes:
        """What a message carried, by the columns of its row in ``payloads``.

        Raises:
            RecordingError: the bytes are not there.
        """
        path = self.directory / "payloads.bin"
        try:
            with path.open("rb") as file:
                file.seek(start_bytes)
                content = file.read(kept_bytes)
        except (OSError, ValueError) as error:
            raise RecordingError(f"{path} cannot be read: {error}") from error
        if len(content) != kept_bytes:
            raise RecordingError(f"{path} ends before the payload at {start_bytes} of {kept_bytes} B")
        return content

    @cached_property
    def clients(self) -> pl.DataFrame:
        """One row per client: who it is, its timings and its counts."""
        return self.table("clients")


ENDINGS: dict[str, Callable[[dict[str, Any]], str]] = {
    "signal": lambda why: f"the run was stopped by {why['name']}",
    "stopped_at": lambda why: f"it was stopped at {plain(why['at_ns'] / 1e9)} s of simulated time, as asked",
    "abandoned": lambda why: "the program that started the engine has ended",
    "server_exit": lambda why: "; see ".join(filter(None, (
        f"the server `{why['server']}` ended during the run ({why['status']})" if why["status"] else
        "a server ended during the run", why["log"]))),
    "killed": lambda why: "the producer ended without finishing the recording",
    "going_on": lambda why: f"the run is still in progress; this is what it had written at {why['until']}",
    "evidence": lambda why: "; ".join(why["problems"]),
}
"""The words for why a recording is not complete, by kind; other kinds have a ``problem`` in words."""


def _words(ending: dict[str, Any] | str | None) -> str | None:
    if ending is None or isinstance(ending, str):
        return ending
    words = ENDINGS.get(ending["kind"])
    return words(ending) if words else str(ending.get("problem", ending["kind"]))


def _no_recording(path: Path) -> str:
    if path.exists():
        return f"{path} is not a recording: it {what_it_is(path) or 'is not a directory'}"
    beside = (nearest_path(place) for place in (path, Path("runs") / path))
    near = next((found for found in beside if found and Path(found).is_dir()), None)
    hint = f"did you mean {near}?" if near else "mqttlab list shows the recordings"
    return f"there is no directory {path}; {hint}"


def _finished(directory: Path) -> Recording:
    """A recording with spools: of a run that is going on, or was killed, or is just being finished by somebody."""
    deadline = time.monotonic() + FINISHED_WITHIN_S
    while True:
        going_on = is_being_written(directory)
        try:
            return _looked_at(directory) if going_on else _recovered(directory)
        except EngineError:
            # It may have come to its end between the two questions, or somebody else is recovering it.
            if not any(directory.glob("*.spool")):
                return Recording(directory)
            if going_on == is_being_written(directory) or time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def _looked_at(directory: Path) -> Recording:
    look = scratch.take("look")
    recording = Recording(look.path, source=directory)
    weakref.finalize(recording, look.release)
    snapshot(directory, look.path)
    return recording


def _recovered(directory: Path) -> Recording:
    """A recording whose engine was killed, with its tables: elsewhere, where they cannot be written into it."""
    try:
        recover(directory)
        return Recording(directory)
    except EngineError as error:
        if not cannot_be_written(directory, error):
            raise
        made = scratch.take("recovered")
        try:
            recover(directory, made.path)
        except EngineError:
            made.release()
            raise error from None
    recording = Recording(made.path, source=directory)
    weakref.finalize(recording, made.release)
    return recording


FINISHED_WITHIN_S = 10
SUMMARY_VERSION = 5
"""The version of the derived tables that this program reads."""


def _made_below(above: Path | None) -> scratch.Scratch | None:
    """A new directory in one; nothing where none can be made."""
    if above is None:
        return None
    try:
        above.mkdir(parents=True, exist_ok=True)
        return scratch.take("summary", above)
    except (OSError, scratch.ScratchError):
        return None


def _put(made: Path, place: Path) -> bool:
    """Give a directory its place, in which an earlier one may stand; whether that was possible."""
    try:
        if place.exists():
            earlier = scratch.take("earlier", place.parent)
            try:
                place.rename(earlier.path / "earlier")
            finally:
                earlier.release()
        made.rename(place)
    except (OSError, scratch.ScratchError):
        # Somebody else was first, or it is on another file system.
        return False
    return True


def _is_summary_of(directory: Path, summary: Path) -> bool:
    """Whether a directory has the derived tables of this version, made from a recording's tables as they are."""
    try:
        said = json.loads((summary / "summary.json").read_text(encoding="utf-8"))
        sizes = {name: (directory / f"{name}.parquet").stat().st_size for name in said["made_from"]}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return bool(said.get("version") == SUMMARY_VERSION and sizes == said["made_from"])


def named(index: str, names: Sequence[str] | pl.Series) -> pl.Expr:
    """The column of indices as names; null where there is none of this number."""
    return looked_up(index, pl.Series(names, dtype=pl.String))


def looked_up(index: str, values: pl.Series) -> pl.Expr:
    """The column of indices, which are not negative, as these values; null where there is none of this number.

    The same by :meth:`polars.Expr.replace_strict` takes seven times the time, and twice the table's room.
    """
    return pl.lit(values).gather(pl.col(index), null_on_oob=True).alias(index)


def _json(path: Path) -> dict[str, Any]:
    return _read(path, lambda content: (json.loads(content.decode("utf-8")), None))[0]


def _read(path: Path, read: Callable[[bytes], tuple[Any, str | None]]) -> tuple[dict[str, Any], str | None]:
    """An object of JSON, and what is wrong with it."""
    try:
        value, problem = read(path.read_bytes())
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{path} cannot be read: it is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise RecordingError(f"{path} cannot be read: it is not a JSON object")
    return value, problem
