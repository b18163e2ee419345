"""The catalog itself: takes recordings in, and answers questions about them with frames."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import polars as pl
import sqlalchemy as sa

from mqttlab.catalog import run_annotations, writing
from mqttlab.catalog import tables as t
from mqttlab.catalog.adding import add, add_facts
from mqttlab.catalog.database import Database
from mqttlab.catalog.found import ask, is_integer
from mqttlab.catalog.place import CatalogError, path_of
from mqttlab.catalog.query import FIELDS, Kind, Names, Question, series_of
from mqttlab.catalog.reading import found_below, read
from mqttlab.catalog.rows import Rows
from mqttlab.catalog.run_annotations import Annotations, Baseline, Covers, Note
from mqttlab.catalog.sketch import Sketch
from mqttlab.errors import MqttlabError
from mqttlab.recording import Recording

DEFAULT_COLUMNS = ("started", "name", "backend", "state", "valid", "directory")
VALUES_SCHEMA: dict[str, Any] = {
    "run": pl.String(), "directory": pl.String(), "metric": pl.String(), "scope": pl.String(),
    "scope_name": pl.String(),
    "value": pl.Float64(), "unit": pl.String(),
}
TABLES = tuple(t.METADATA.tables)


@dataclass(kw_only=True)
class Scanned:
    """What a scan has found."""

    added: list[Path] = field(default_factory=list)
    """Recordings that are in the catalog now, anew or again."""
    removed: list[Path] = field(default_factory=list)
    """Recordings that are no longer where they were."""
    copies: list[tuple[Path, Path]] = field(default_factory=list)
    """A recording, and the one in the catalog that it is a copy of."""
    going_on: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What could not be read, a line each."""


class Catalog:
    """An index of recordings. A context manager; questions may come from several threads.

    What lies below an SQLite catalog's own directory is written relative to it, so that both can be moved together.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._base = database.base

    @classmethod
    def open(cls, url: str, *, read_only: bool = False) -> Catalog:
        """Open a catalog; where there is none yet, it is made.

        Args:
            url: an SQLite file, ``postgresql://…`` or ``mariadb://…``.
            read_only: never write, nor wait for who writes; it must be there.

        Raises:
            CatalogError: it is of another schema, on a network file system, or no catalog.
            CatalogUnavailable: it cannot be reached.
        """
        return cls(Database(url, read_only=read_only))

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._database.name

    def close(self) -> None:
        """Close all connections."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Taking in.

    def add(self, directory: Path, recording: Recording | None = None) -> str:
        """Take a recording in, or again; returns its identifier.

        Args:
            directory: where it is.
            recording: the same, where it is open already: what it has read is not read again.

        Raises:
            RecordingError: it cannot be read.
            CatalogError: it is being written, or is a copy of one that is in the catalog and still there.
        """
        return add(self._database, directory, recording)

    def scan(self, directories: Sequence[Path], *, observe: Callable[[int, int, Path], None] = lambda done, of,
             place: None,
             fresh: bool = False) -> Scanned:
        """Make the catalog hold what lies below some directories, as it is now.

        Every recording there is read again; what was there and is no longer is forgotten; what lies elsewhere stays as
        it is.

        Args:
            directories: where to look, at any depth.
            observe: called before each recording with how many were read, how many there are, and where it is.
            fresh: forget all first, and what lies elsewhere too.

        Raises:
            CatalogUnavailable: the catalog cannot be written.
        """
        places = list(found_below(directories))
        scanned = Scanned()
        if fresh:
            self._database.write(_forget_all)
        for number, place in enumerate(places):
            observe(number, len(places), place)
            self._scan_one(place, scanned)
        observe(len(places), len(places), Path())
        tops = [directory.resolve() for directory in directories]
        scanned.removed = self._database.write(lambda rows: self._forget_gone(rows, tops, set(places)))
        return scanned

    def overwrite(self) -> None:
        """Leave nothing in an SQLite file of what was removed from it; a server sees to that itself.

        Raises:
            CatalogUnavailable: somebody is using it.
        """
        self._database.overwrite()

    def _scan_one(self, place: Path, scanned: Scanned) -> None:
        from mqttlab.engine import is_being_written

        if is_being_written(place):
            scanned.going_on.append(place)
            return
        try:
            facts = read(place)
        except MqttlabError as error:
            scanned.problems += error.problems
            return
        copied = add_facts(self._database, facts)
        if copied is None:
            scanned.added.append(place)
        else:
            scanned.copies.append((place, copied))

    def _forget_gone(self, rows: Rows, tops: list[Path], there: set[Path]) -> list[Path]:
        gone = []
        for run, stored in writing.directories_of(rows).values():
            place = path_of(stored, self._base)
            if place not in there and any(place.is_relative_to(top) for top in tops):
                writing.remove(rows, run)
                gone.append(place)
        writing.sweep(rows)
        return gone

    # Asking.

    def runs(self, where: Sequence[str] = (), *, columns: Sequence[str] = DEFAULT_COLUMNS, sort: Sequence[str] = (),
             limit: int | None = None) -> pl.DataFrame:
        """Runs, a row each.

        Args:
            where: conditions that all must hold (:mod:`mqttlab.catalog.query`).
            columns: names: fields of runs (``FIELDS``), factors, ``tag.NAME``, metrics, ``metric[scope name]``.
            sort: names to order by; from large to small with ``-`` before it. Then by time.
            limit: at most so many.

        Raises:
            CatalogError: a name that is not there, with the nearest; a condition that is none.
        """
        with self._database.reading() as connection:
            rows, kinds = ask(connection, where, columns=columns, sort=sort, limit=limit)
        return self._resolved(_frame(rows, columns, kinds))

    def values(self, metrics: Collection[str] | None = None, *, where: Sequence[str] = (),
               scopes: Collection[str] | None = None) -> pl.DataFrame:
        """Metric values in long form: ``run``, ``directory``, ``metric``, ``scope``, ``scope_name``, ``value``,
        ``unit``.

        Args:
            metrics: only these: of every scope, or of one (``latency_ms_p99[qos 1]``); all when left out.
            where: only of runs for which these conditions hold.
            scopes: only these scopes.
        """
        with self._database.reading() as connection:
            names = Names.read(connection)
            question = Question(names)
            for condition in where:
                question.where(condition)
            found = sa.select(
                t.RUN.c.run_id, t.RUN.c.directory, t.SERIES.c.metric, t.SERIES.c.scope, t.SERIES.c.scope_name,
                t.METRIC_VALUE.c.value, t.SERIES.c.unit,
            ).select_from(t.METRIC_VALUE.join(t.RUN).join(t.SERIES))
            if where:
                found = found.where(t.RUN.c.id.in_(question.keys()))
            if metrics is not None:
                found = found.where(t.SERIES.c.id.in_(_series(metrics, names)))
            if scopes is not None:
                found = found.where(t.SERIES.c.scope.in_(list(scopes)))
            order = (t.RUN.c.started_at, t.RUN.c.id, t.SERIES.c.metric, t.SERIES.c.scope, t.SERIES.c.scope_name)
            rows = connection.execute(found.order_by(*order)).all()
        return self._resolved(pl.DataFrame([tuple(row) for row in rows], schema=VALUES_SCHEMA, orient="row"))

    def names(self) -> pl.DataFrame:
        """Everything that can be asked for: ``name``, ``what`` (field, factor, tag, metric) and ``meaning`` or
        scopes."""
        with self._database.reading() as connection:
            names = Names.read(connection)
            rows = [(name, "field", field.meaning) for name, field in FIELDS.items()]
            rows += [(name, "factor", "") for name in names.factors]
            rows += [(f"tag.{name}", "tag", "") for name in names.tags]
            rows += [(name, "metric", ", ".join(sorted({scope for scope, _ in scopes}))) for name,
                     scopes in sorted(names.series.items())]
        return pl.DataFrame(rows, schema={"name": pl.String, "what": pl.String, "meaning": pl.String}, orient="row")

    def experiments(self) -> pl.DataFrame:
        """Experiments: ``name``, ``kind``, ``directory``, ``created_at``, ``runs``, ``complete`` and ``points``."""
        complete = sa.func.sum(sa.case((t.RUN.c.state == "complete", 1), else_=0))
        found = (
            sa.select(t.EXPERIMENT.c.name, t.EXPERIMENT.c.kind, t.EXPERIMENT.c.directory, t.EXPERIMENT.c.created_at,
                      sa.func.count(t.RUN.c.id), complete, sa.func.count(t.RUN.c.point_id.distinct()))
            .select_from(t.EXPERIMENT.outerjoin(t.RUN)).group_by(*t.EXPERIMENT.c[
                "id", "name", "kind", "directory", "created_at"]).order_by(t.EXPERIMENT.c.name, t.EXPERIMENT.c.id))
        schema = {"name": pl.String, "kind": pl.String, "directory": pl.String, "created_at": pl.String,
                  "runs": pl.Int64,
                  "complete": pl.Int64, "points": pl.Int64}
        with self._database.reading() as connection:
            rows = [(*row[:4], int(row[4]), int(row[5] or 0), int(row[6])) for row in connection.execute(found)]
        return self._resolved(pl.DataFrame(rows, schema=schema, orient="row"))

    def points(self, experiment: str) -> pl.DataFrame:
        """An experiment's points in long form: ``point``, ``factor``, ``text``, ``value`` (SI), ``unit``.

        Args:
            experiment: its name; of several that have it, all.

        Raises:
            CatalogError: there is none of this name.
        """
        found = (sa.select(t.POINT.c.number, t.FACTOR.c.name, t.LEVEL.c.text, t.LEVEL.c.value, t.FACTOR.c.unit)
                 .select_from(t.EXPERIMENT.join(t.POINT).join(t.LEVEL).join(t.FACTOR,
                                                                            t.FACTOR.c.id == t.LEVEL.c.factor_id))
                 .where(t.EXPERIMENT.c.name == experiment).order_by(t.POINT.c.number, t.FACTOR.c.id))
        with self._database.reading() as connection:
            rows = [tuple(row) for row in connection.execute(found)]
            known = list(connection.execute(sa.select(t.EXPERIMENT.c.name)).scalars()) if not rows else []
        if not rows and experiment not in known:
            raise CatalogError(f"no experiment {experiment!r}; known: {', '.join(sorted(known)) or 'none'}")
        schema = {"point": pl.Int64, "factor": pl.String, "text": pl.String, "value": pl.Float64, "unit": pl.String}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def sketch(self, where: Sequence[str] = (), *, scope: str = "run", scope_name: str = "") -> Sketch:
        """Latencies in milliseconds of all runs for which the conditions hold, as one sketch.

        Args:
            where: conditions.
            scope: ``run``, ``qos`` or ``groups``.
            scope_name: which of that scope, as the metrics' long form names it.
        """
        found = sa.select(t.SKETCH.c.data).where(
            t.SKETCH.c.metric == "latency_ms", t.SKETCH.c.scope == scope, t.SKETCH.c.scope_name == scope_name)
        with self._database.reading() as connection:
            question = Question(Names.read(connection))
            for condition in where:
                question.where(condition)
            if where:
                found = found.where(t.SKETCH.c.run_id.in_(question.keys()))
            return Sketch.merged(Sketch.read(bytes(data)) for data in connection.execute(found).scalars())

    def save_view(self, name: str, state: Any) -> None:
        """Keep a view (of a dashboard) under a name: whatever JSON can hold. Views stand in the catalog alone."""
        def work(rows: Rows) -> None:
            rows.delete("saved_view", name=name)
            rows.insert("saved_view", [{"name": name, "json": json.dumps(state)}])

        self._database.write(work)

    def views(self) -> dict[str, Any]:
        """Saved views by name."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(t.SAVED_VIEW).order_by(t.SAVED_VIEW.c.name)).all()
        return {name: json.loads(text) for name, text in rows}

    def table(self, name: str) -> pl.DataFrame:
        """One of the catalog's own tables (:data:`TABLES`), as it is."""
        table = t.METADATA.tables[name]
        with self._database.reading() as connection:
            rows = [tuple(row) for row in connection.execute(sa.select(table).order_by(*table.primary_key))]
        return pl.DataFrame(rows, schema=list(table.c.keys()), orient="row", infer_schema_length=None)

    # What people say of recordings.

    def tag(self, directory: Path, tags: dict[str, str]) -> None:
        """Tag a recording: names with values, which may be empty; a name that it has gets the new value."""
        self._say(directory, lambda annotations: annotations.tags.update(tags))

    def untag(self, directory: Path, names: Iterable[str]) -> None:
        """Take tags away; what it does not have is passed over."""
        wanted = list(names)

        def work(annotations: Annotations) -> None:
            for name in wanted:
                annotations.tags.pop(name, None)

        self._say(directory, work)

    def note(self, directory: Path, text: str) -> None:
        """Add a note to a recording, with the present time and the user's name."""
        note = Note(at=run_annotations.now(), author=run_annotations.author(), text=text)
        self._say(directory, lambda annotations: annotations.notes.append(note))

    def notes(self, where: Sequence[str] = ()) -> pl.DataFrame:
        """Notes, oldest first: ``at``, ``author``, ``text``, ``run``, ``directory``."""
        with self._database.reading() as connection:
            question = Question(Names.read(connection))
            for condition in where:
                question.where(condition)
            found = (sa.select(t.NOTE.c.at, t.NOTE.c.author, t.NOTE.c.text, t.RUN.c.run_id, t.RUN.c.directory)
                     .select_from(t.NOTE.join(t.RUN)).order_by(t.NOTE.c.at, t.NOTE.c.id))
            if where:
                found = found.where(t.RUN.c.id.in_(question.keys()))
            rows = [tuple(row) for row in connection.execute(found)]
        schema = dict.fromkeys(("at", "author", "text", "run", "directory"), pl.String)
        return self._resolved(pl.DataFrame(rows, schema=schema, orient="row"))

    def set_baseline(self, name: str, directory: Path, covers: Covers = "run") -> None:
        """Make a recording the baseline of this name, or all runs of its experiment's point; moves it from another.

        Raises:
            CatalogError: the point of a recording that is of no experiment.
        """
        if covers == "point" and read(directory).origin.point is None:
            raise CatalogError(f"{directory} is of no experiment, so that it has no point; leave --point out")
        self.remove_baseline(name, but=directory)
        baseline = Baseline(covers=covers, set_at=run_annotations.now())
        self._say(directory, lambda annotations: annotations.baselines.update({name: baseline}))

    def remove_baseline(self, name: str, *, but: Path | None = None) -> bool:
        """Take a baseline's name away; returns whether there was one."""
        with self._database.reading() as connection:
            found = connection.execute(
                sa.select(t.RUN.c.directory).select_from(t.BASELINE.join(t.RUN)).where(t.BASELINE.c.name == name)
            ).scalar()
        if found is None:
            return False
        place = path_of(found, self._base)
        if but is None or place != but.resolve():
            if place.is_dir():
                self._say(place, lambda annotations: _without(annotations, name))
            self._database.write(lambda rows: rows.delete("baseline", name=name))
        return True

    def baseline(self, name: str) -> list[Path]:
        """The recordings that a baseline covers: complete ones, oldest first.

        Raises:
            CatalogError: there is no baseline of this name.
        """
        with self._database.reading() as connection:
            found = connection.execute(sa.select(t.BASELINE.c.run_id, t.BASELINE.c.covers,
                                                 t.RUN.c.point_id).select_from(
                t.BASELINE.join(t.RUN)).where(t.BASELINE.c.name == name)).first()
            if found is None:
                known = sorted(connection.execute(sa.select(t.BASELINE.c.name)).scalars())
                raise CatalogError(f"no baseline {name!r}; known: "
                                   f"{', '.join(known) or 'none; mqttlab catalog baseline sets one'}")
            run, covers, point = found
            of = t.RUN.c.id == run
            if covers == "point":
                of = sa.and_(t.RUN.c.point_id == point, t.RUN.c.state == "complete",
                             sa.func.coalesce(t.RUN.c.kind, "run") == "run")
            rows = connection.execute(sa.select(t.RUN.c.directory).where(of).order_by(t.RUN.c.started_at,
                                                                                      t.RUN.c.id)).scalars()
            return [path_of(stored, self._base) for stored in rows]

    def baselines(self) -> pl.DataFrame:
        """Baselines: ``name``, ``covers``, ``set_at``, ``run``, ``directory``."""
        found = (sa.select(t.BASELINE.c.name, t.BASELINE.c.covers, t.BASELINE.c.set_at, t.RUN.c.run_id,
                           t.RUN.c.directory)
                 .select_from(t.BASELINE.join(t.RUN)).order_by(t.BASELINE.c.name))
        with self._database.reading() as connection:
            rows = [tuple(row) for row in connection.execute(found)]
        schema = dict.fromkeys(("name", "covers", "set_at", "run", "directory"), pl.String)
        return self._resolved(pl.DataFrame(rows, schema=schema, orient="row"))

    def _say(self, directory: Path, work: Callable[[Annotations], None]) -> None:
        """Change what is said of a recording: in its directory first, then here."""
        if not (directory / "plan.json").is_file():
            raise CatalogError(f"{directory} is not a recording: it has no plan.json")
        directory = directory.resolve()
        changed = run_annotations.change(directory, work)
        run = self._key_of(directory)
        if run is None:
            self.add(directory)
        else:
            self._database.write(lambda rows: writing.annotate(rows, run, changed))

    def _key_of(self, directory: Path) -> int | None:
        stored = writing.stored_as(directory, self._base)
        with self._database.reading() as connection:
            found = connection.execute(sa.select(t.RUN.c.id).where(t.RUN.c.directory == stored)).scalar()
        return None if found is None else int(found)

    def _resolved(self, table: pl.DataFrame) -> pl.DataFrame:
        """Directories as paths that lead there from anywhere."""
        base = self._base
        if base is None or "directory" not in table.columns:
            return table
        absolute = pl.col("directory").str.starts_with("/")
        return table.with_columns(pl.when(absolute).then("directory").otherwise(pl.format("{}/{}", pl.lit(str(base)),
                                                                                          "directory"))
                                  .alias("directory"))


def _frame(rows: Sequence[Any], names: Sequence[str], kinds: Sequence[Kind]) -> pl.DataFrame:
    """Rows as a frame."""
    types: dict[Kind, Any] = {"text": pl.String(), "number": pl.Float64(), "truth": pl.Boolean()}
    schema = {name: pl.Int64() if is_integer(name) else types[kind] for name, kind in zip(names, kinds, strict=True)}
    table = pl.DataFrame(rows, schema=dict.fromkeys(schema), orient="row",
                         infer_schema_length=None) if rows else pl.DataFrame(schema=schema)
    return table.with_columns(pl.col(name).cast(kind) for name, kind in schema.items())


def _without(annotations: Annotations, baseline: str) -> None:
    annotations.baselines.pop(baseline, None)


def _forget_all(rows: Rows) -> None:
    rows.delete("run")
    writing.sweep(rows)


def _series(metrics: Collection[str], names: Names) -> list[int]:
    """The series of metrics' names: of every scope where none is named."""
    found: list[int] = []
    for name in metrics:
        scopes = names.series.get(name)
        found += [series_of(name, names)] if scopes is None else scopes.values()
    return found
