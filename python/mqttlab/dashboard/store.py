"""What the pages look at: the runs below one directory, listed and opened.

A run's name in an address is its directory below the runs, and nothing else is ever opened: no ``..``, no link that
leads out. Recordings stay open for a while, because a page asks for many figures of one run.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import polars as pl

from mqttlab.catalog import Catalog, url_for
from mqttlab.catalog.place import file_of
from mqttlab.digits import plain
from mqttlab.errors import MqttlabError
from mqttlab.plan import publications_of
from mqttlab.recording import Recording
from mqttlab.runs import RunSummary, run_places, summary_of

OPEN_AT_ONCE = 6
# Derived tables of recordings that an earlier program made: else each opening would make them again.
SUMMARIES = ".dashboard/summaries"
GOING_ON_KEPT_S = 2.0
LISTED_FOR_S = 1.0
SETTLED_NS = 1_000_000_000
# Verdicts of runs that have come to their end.
COMPLETE = ("valid", "not valid")
# Of what is written into a recording's directory; nothing else there is of use.
SUFFIXES = (".parquet", ".json", ".pcapng", ".log", ".html", ".svg", ".csv", ".toml", ".conf", ".xlsx", ".spool",
            ".bin")
SCHEMA: dict[str, Any] = {
    "run": pl.String, "name": pl.String, "started": pl.String, "backend": pl.String, "verdict": pl.String,
    "broker": pl.String, "network": pl.String, "clients": pl.Int64, "planned_s": pl.Float64, "seed": pl.Int64,
    "qos": pl.String, "interval": pl.String, "payload_bytes": pl.String,
}
# Of the catalog, what the table of runs shows besides.
CATALOG_FIELDS = ("name", "started", "backend", "broker", "planned_s", "seed")
# Of each group of a run; the table has those of the group whose devices send and receive most.
OF_GROUPS = ("ip_kb_per_device_hour_up", "ip_kb_per_device_hour_down")
# What a headline has stands first.
HEADLINE = ("latency_ms_p99", "undelivered_percent", *OF_GROUPS)
METRICS = (*HEADLINE, "latency_ms_p50", "latency_ms_p95", "latency_ms_mean", "messages_delivered", "messages_lost",
           "retransmissions_percent", "acknowledge_ms_p99")
# A catalog on a server does not say when it changed.
ASKED_AGAIN_S = 10
# Before the names of tags, in the catalog's columns.
TAG = "tag."
TAKEN = (*CATALOG_FIELDS, "run", "verdict", "directory", "valid", "state")


class UnknownRun(MqttlabError):
    """No recording has this name."""


class Store:
    """The runs below a directory. Its methods may be called from several threads."""

    def __init__(self, runs: Path, catalog: str | None = None) -> None:
        """Make it; nothing is read yet.

        Args:
            runs: the directory.
            catalog: the URL of the catalog, or ``none``; when left out ``catalog.db`` in the directory.
        """
        self.directory = runs.resolve()
        self.catalog = catalog or url_for(self.directory)
        self._open: OrderedDict[Path, tuple[tuple[Any, ...], float, Recording]] = OrderedDict()
        self._facts: dict[Path, tuple[tuple[int, ...], dict[str, Any]]] = {}
        self._listed: tuple[float, pl.DataFrame] = (-LISTED_FOR_S, pl.DataFrame(schema=SCHEMA))
        self._seen: dict[str, int] = {}
        self._verdicts: set[str] = set()
        self._complete: set[str] = set()
        self._inner: dict[str, tuple[int, list[str]]] = {}
        self._lock = threading.Lock()

    def place(self, name: str) -> Path:
        """The directory of a run.

        Raises:
            UnknownRun: there is none of this name below the runs.
        """
        try:
            place = (self.directory / name).resolve()
            known = place.is_relative_to(self.directory) and (place / "plan.json").is_file()
        except (OSError, ValueError):
            known = False
        if not known or not name or name.startswith(("/", ".")):
            raise UnknownRun(f"there is no run {name!r} in {self.directory}")
        return place

    def recording(self, name: str) -> Recording:
        """A run, opened; one that goes on as it was a moment ago.

        Raises:
            UnknownRun: there is none of this name.
            RecordingError: it cannot be read.
        """
        place = self.place(name)
        with self._lock:
            known, opened, recording = self._open.get(place, ((), 0.0, None))
            fresh = recording is not None and known == stamp(place) and (
                not recording.going_on or time.monotonic() - opened < GOING_ON_KEPT_S)
            if recording is None or not fresh:
                recording = Recording.open(place, self.directory / SUMMARIES)
                self._open[place] = (stamp(place), time.monotonic(), recording)
            self._open.move_to_end(place)
            while len(self._open) > OPEN_AT_ONCE:
                self._open.popitem(last=False)
        return recording

    def runs(self) -> pl.DataFrame:
        """All runs, the latest first: a row each, with what their small files tell (columns: :data:`SCHEMA`)."""
        with self._lock:
            at, table = self._listed
            if time.monotonic() - at > LISTED_FOR_S:
                seen = self._look()
                # Of ten thousand runs that are all as they were nothing is read, and the table stays.
                if seen != self._seen or "running" in self._verdicts:
                    table, self._seen = self._made(), seen
                self._listed = (time.monotonic(), table)
        return table

    def _made(self) -> pl.DataFrame:
        rows = [row for place in run_places(self.directory) if (row := self._row(place)) is not None]
        self._verdicts = {row["verdict"] for row in rows}
        self._complete = {str(self.directory / row["run"]) for row in rows if row["verdict"] in COMPLETE}
        table = pl.DataFrame(rows, schema=SCHEMA, orient="row", strict=False)
        return self._with_catalog(table).sort("started", descending=True, maintain_order=True)

    def _look(self) -> dict[str, int]:
        """When what may have changed did so last: the directory of the runs, those of experiments, and of the runs in
        them those that are not complete. One that begins or ends puts a file into its own, and into one that is
        complete nobody writes any more: of ten thousand only their directory is asked."""
        seen: dict[str, int] = {}
        above = [str(self.directory)]
        for place in above:
            seen[place] = _when(place)
            for child in self._below(place, seen[place]):
                if child in self._complete:
                    continue
                seen[child] = _when(child)
                # Whether a directory has runs of its own changes with the directory.
                inner = f"{child}{os.sep}runs"
                if (inner in self._seen) if self._seen.get(child) == seen[child] else Path(inner).is_dir():
                    above.append(inner)
        file = file_of(self.catalog)
        if file is None:
            seen["catalog"] = int(time.monotonic() / ASKED_AGAIN_S)
        for end in ("", "-wal") if file is not None else ():
            with contextlib.suppress(OSError):
                seen[f"catalog{end}"] = Path(f"{file}{end}").stat().st_mtime_ns
        return seen

    @property
    def has_catalog(self) -> bool:
        """Whether there is a catalog, as far as that is seen without asking it."""
        file = file_of(self.catalog)
        return self.catalog != "none" and (file is None or file.is_file())

    def _below(self, place: str, changed: int) -> list[str]:
        """The directories in one, which was changed last at this time."""
        known, found = self._inner.get(place, (-1, []))
        if known != changed:
            try:
                with os.scandir(place) as entries:
                    found = [entry.path for entry in entries if entry.is_dir()]
            except OSError:
                found = []
            # One that was changed a moment ago may be changed again within the same tick of its clock.
            self._inner[place] = (changed if time.time_ns() - changed > SETTLED_NS else -1, found)
        return found

    def forget(self) -> None:
        """Read the list again: something is said of a run."""
        with self._lock:
            self._seen = {}
            self._listed = (-LISTED_FOR_S, self._listed[1])

    def _with_catalog(self, table: pl.DataFrame) -> pl.DataFrame:
        """The same with what the catalog has of these runs besides, if there is one: metrics, factors, tags, and runs
        deeper below, such as those of experiments."""
        if not self.has_catalog:
            return table
        try:
            with Catalog.open(self.catalog, read_only=True) as catalog:
                names = catalog.names()
                tags = names.filter(pl.col("what") == "tag")["name"].to_list()
                known = set(names["name"])
                of_runs = [name for name in METRICS if name in known and name not in OF_GROUPS]
                asked = [*of_runs, *names.filter(what="factor")["name"], *tags]
                more = [name for name in dict.fromkeys(asked) if name not in TAKEN]
                found = catalog.runs(columns=[*CATALOG_FIELDS, "directory", "valid", "state", *more])
                bytes_known = [name for name in OF_GROUPS if name in known]
                found, more = _with_bytes(found, catalog, bytes_known), [*bytes_known, *more]
            # A tag without a value is seen, and found, by its name.
            found = found.with_columns(pl.when(pl.col(tag) == "").then(pl.lit(tag.removeprefix(TAG))).otherwise(
                pl.col(tag)).alias(tag) for tag in tags if tag in found.columns)
        except MqttlabError:
            # Lists are of use without it, and doctor and `mqttlab catalog` say what is wrong.
            return table
        place = pl.col("directory").str.strip_prefix(f"{self.directory}/")
        below = found.filter(pl.col("directory").str.starts_with(f"{self.directory}/")).with_columns(
            run=place, verdict=pl.when(pl.col("state") != "complete").then(pl.lit("incomplete"))
            .when(pl.col("valid").not_()).then(pl.lit("not valid")).otherwise(pl.lit("valid")))
        both = table.join(below.select("run", *(name for name in more if name not in SCHEMA)), on="run", how="left")
        deeper = below.join(table, on="run", how="anti").select(
            "run", "verdict", *CATALOG_FIELDS, *more)
        return pl.concat([both, deeper], how="diagonal_relaxed")

    def _row(self, place: Path) -> dict[str, Any] | None:
        now = stamp(place)
        known = self._facts.get(place)
        # A run that goes on may end without a word.
        if known is None or known[0] != now or known[1]["verdict"] == "running":
            told = summary_of(place)
            if told is None:
                return None
            known = self._facts[place] = (now, _facts(*told))
        return {**known[1], "run": str(place.relative_to(self.directory))}


def given_out(place: Path) -> list[Path]:
    """The files of a recording's directory that are listed and sent: what the engine and its reports write there, and
    no link that leads elsewhere."""
    return sorted(path for path in place.iterdir() if path.name.endswith(SUFFIXES) and not path.is_symlink()
                  and path.is_file())


def _with_bytes(found: pl.DataFrame, catalog: Catalog, names: list[str]) -> pl.DataFrame:
    """The catalog's runs with what a device of one of their groups sends and receives: of the group that does most."""
    if not names:
        return found
    values = catalog.values(names, scopes=["group"])
    each = values.group_by("directory").agg(
        pl.col("value").filter(pl.col("metric") == name).max().alias(name) for name in names)
    return found.join(each, on="directory", how="left", maintain_order="left")


def _when(place: str) -> int:
    """When a directory changed last."""
    try:
        return Path(place).stat().st_mtime_ns
    except OSError:
        return 0


def stamp(place: Path) -> tuple[int, ...]:
    """What changes when a run ends or is recovered."""
    def of(name: str) -> int:
        try:
            return (place / name).stat().st_mtime_ns
        except OSError:
            return 0

    return tuple(of(name) for name in ("run.json", "incomplete.json", "plan.json"))


def _facts(summary: RunSummary, plan: dict[str, Any], ended: dict[str, Any]) -> dict[str, Any]:
    groups = [group for group in plan.get("groups") or [] if isinstance(group, dict)]
    publishing = [publish for group in groups for publish in publications_of(group) if isinstance(publish, dict)]
    servers = plan.get("servers") or [plan.get("broker") or {}]
    network = plan.get("network") or {}
    return {
        "name": summary.name, "started": summary.started, "backend": summary.backend,
        "verdict": _verdict(summary.status, ended), "seed": plan.get("seed"),
        "broker": ", ".join(f"{one.get('kind', '')} {one.get('version', '')}".strip() for one in servers),
        "network": network.get("description") or network.get("kind"),
        "clients": sum(int(group.get("count", 0)) for group in groups),
        "planned_s": (plan.get("phases") or {}).get("duration_ns", 0) / 1e9,
        "qos": _each(publish.get("qos") for publish in publishing),
        "interval": _each(_seconds(publish.get("arrival") or publish) for publish in publishing),
        "payload_bytes": _each(_bytes(publish.get("payload")) for publish in publishing),
    }


def _verdict(status: str, ended: dict[str, Any]) -> str:
    if status != "complete":
        return status
    validity = ended.get("validity") or {}
    return "valid" if validity.get("valid", True) else "not valid"


def _each(values: Any) -> str | None:
    """Different values, in order, as one cell."""
    return ", ".join(dict.fromkeys(str(value) for value in values if value is not None)) or None


def _seconds(schedule: dict[str, Any]) -> str | None:
    for key in ("interval_ns", "mean_ns", "period_ns"):
        if isinstance(schedule.get(key), (int, float)):
            return f"{plain(schedule[key] / 1e9)} s"
    return None


def _bytes(payload: Any) -> str | None:
    if isinstance(payload, dict):
        for key in ("bytes", "size_bytes", "size"):
            if isinstance(payload.get(key), int):
                return str(payload[key])
        kind = payload.get("kind") or next(iter(payload), None)
        return str(kind) if kind else None
    return str(payload) if payload else None
