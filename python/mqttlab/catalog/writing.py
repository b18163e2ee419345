"""How facts become rows. Each function works within the transaction of its caller."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from mqttlab.catalog import tables as t
from mqttlab.catalog.origin import Experiment, Origin
from mqttlab.catalog.reading import Facts, Value, digest_of, short
from mqttlab.catalog.remarks import Annotations

# SQLite takes 32,766 values in a statement, and nobody more than 65,535.
KEYS_AT_ONCE = 5000


def put(connection: sa.Connection, facts: Facts, stored: str, stored_experiment: str | None) -> int:
    """Put a recording's facts into the catalog, in the place of what it had of the same recording.

    Args:
        connection: within a transaction.
        facts: the facts.
        stored: its directory as the catalog writes it.
        stored_experiment: its experiment's directory, likewise.

    Returns:
        The key of its row.
    """
    experiment, point = _experiment(connection, facts.origin, stored_experiment)
    row = facts.run | {
        "directory": stored, "plan_id": _plan(connection, facts), "machine_id": _machine(connection, facts.machine),
        "version_id": _version(connection, facts.version), "experiment_id": experiment, "point_id": point,
    }
    known = connection.execute(sa.select(t.RUN.c.id).where(t.RUN.c.run_id == row["run_id"])).scalar()
    if known is None:
        run = _insert(connection, t.RUN, row)
    else:
        run = int(known)
        connection.execute(t.RUN.update().where(t.RUN.c.id == run).values(row))
    _values(connection, run, facts.values)
    _sketches(connection, run, facts.sketches)
    annotate(connection, run, facts.annotations)
    return run


def remove(connection: sa.Connection, run: int) -> None:
    """Forget a recording, and all that is kept of it."""
    connection.execute(t.RUN.delete().where(t.RUN.c.id == run))


def sweep(connection: sa.Connection) -> None:
    """Forget plans, scenarios, experiments, machines, versions and series that nothing refers to any more."""
    for table, referring in (
        (t.PLAN, (t.RUN.c.plan_id,)), (t.SCENARIO, (t.PLAN.c.scenario_id,)), (t.EXPERIMENT, (t.RUN.c.experiment_id,)),
        (t.MACHINE, (t.RUN.c.machine_id,)), (t.VERSION, (t.RUN.c.version_id,)),
        (t.SERIES, (t.METRIC_VALUE.c.series_id,)),
    ):
        used = [sa.exists().where(column == table.c.id) for column in referring]
        connection.execute(table.delete().where(~sa.or_(*used)))


def annotate(connection: sa.Connection, run: int, annotations: Annotations) -> None:
    """Put what is said of a recording into the catalog, in the place of what was said before."""
    connection.execute(t.TAG.delete().where(t.TAG.c.run_id == run))
    connection.execute(t.NOTE.delete().where(t.NOTE.c.run_id == run))
    connection.execute(t.BASELINE.delete().where(t.BASELINE.c.run_id == run))
    if annotations.tags:
        connection.execute(t.TAG.insert(), [{"run_id": run, "name": name, "value": value}
                                            for name, value in annotations.tags.items()])
    if annotations.notes:
        connection.execute(t.NOTE.insert(), [{"run_id": run, "at": note.at, "author": note.author, "text": note.text}
                                             for note in annotations.notes])
    for name, baseline in annotations.baselines.items():
        other = connection.execute(sa.select(t.BASELINE.c.set_at).where(t.BASELINE.c.name == name)).scalar()
        # A name is of one run; where files disagree, the later word counts.
        if other is not None and other > baseline.set_at:
            continue
        connection.execute(t.BASELINE.delete().where(t.BASELINE.c.name == name))
        connection.execute(t.BASELINE.insert().values(
            name=name, run_id=run, covers=baseline.covers, set_at=baseline.set_at))


def _insert(connection: sa.Connection, table: sa.Table, row: Mapping[str, Any]) -> int:
    key = connection.execute(table.insert().values(dict(row))).inserted_primary_key
    assert key is not None
    return int(key[0])


def _found_or_made(connection: sa.Connection, table: sa.Table, by: Mapping[str, Any], rest: Mapping[str, Any]) -> int:
    """The key of the row that has these values; two who make it at once are told so, and one of them begins again."""
    match = sa.and_(*(table.c[name] == value for name, value in by.items()))
    found = connection.execute(sa.select(table.c.id).where(match)).scalar()
    return int(found) if found is not None else _insert(connection, table, {**by, **rest})


def _plan(connection: sa.Connection, facts: Facts) -> int:
    scenario = None
    if facts.origin.scenario is not None:
        scenario = _found_or_made(connection, t.SCENARIO, {"digest": digest_of(facts.origin.scenario)},
                                  {"name": facts.run["name"], "toml": facts.origin.scenario})
    by = {"digest": digest_of([facts.plan, facts.origin.scenario])}
    return _found_or_made(connection, t.PLAN, by, {"json": facts.plan, "scenario_id": scenario})


def _machine(connection: sa.Connection, machine: dict[str, Any] | None) -> int | None:
    if machine is None:
        return None
    columns = {name: machine.get(name) for name in list(t.MACHINE.c.keys()) if name not in ("id", "digest")}
    return _found_or_made(connection, t.MACHINE, {"digest": digest_of(columns)}, columns)


def _version(connection: sa.Connection, version: tuple[str, int] | None) -> int | None:
    if version is None:
        return None
    return _found_or_made(connection, t.VERSION, {"engine": version[0], "schema_version": version[1]}, {})


def _experiment(connection: sa.Connection, origin: Origin, stored: str | None) -> tuple[int | None, int | None]:
    experiment = origin.experiment
    if experiment is None or stored is None:
        return None, None
    rest = {"name": experiment.name, "kind": experiment.kind, "created_at": experiment.created_at,
            "toml": experiment.toml,
            "design": json.dumps(experiment.design, sort_keys=True, ensure_ascii=False)}
    key = _found_or_made(connection, t.EXPERIMENT, {"directory": stored}, rest)
    connection.execute(t.EXPERIMENT.update().where(t.EXPERIMENT.c.id == key).values(rest))
    if origin.point is None:
        return key, None
    factors = _factors(connection, key, experiment, origin)
    return key, _point(connection, key, origin, factors, _numbers(experiment))


def _factors(connection: sa.Connection, experiment: int, told: Experiment, origin: Origin) -> dict[str, int]:
    designed = {str(factor["name"]): factor for factor in told.design.get("factors", []) if "name" in factor}
    keys = {}
    for name in origin.levels or {}:
        factor = designed.get(name, {})
        rest = {"places": json.dumps(factor.get("places", [])), "unit": factor.get("unit"), "kind": factor.get("kind"),
                "scale": factor.get("scale")}
        keys[name] = _found_or_made(connection, t.FACTOR, {"experiment_id": experiment, "name": short(name)}, rest)
    return keys


def _numbers(experiment: Experiment) -> dict[tuple[str, str], float]:
    """The numbers behind levels as written, by factor and text."""
    return {(str(factor["name"]), str(level["text"])): float(level["value"])
            for factor in experiment.design.get("factors", []) if "name" in factor
            for level in factor.get("levels", []) if isinstance(level, dict) and level.get("value") is not None}


def _point(connection: sa.Connection, experiment: int, origin: Origin, factors: dict[str, int],
           numbers: dict[tuple[str, str], float]) -> int:
    by = {"experiment_id": experiment, "number": origin.point}
    levels = origin.levels or {}
    key = _found_or_made(connection, t.POINT, by, {"key": json.dumps(levels, sort_keys=True, ensure_ascii=False)})
    known = set(connection.execute(sa.select(t.LEVEL.c.factor_id).where(t.LEVEL.c.point_id == key)).scalars())
    rows = [{"point_id": key, "factor_id": factors[name], "text": str(text), "value": numbers.get((name, str(text)))}
            for name, text in levels.items() if factors[name] not in known]
    if rows:
        connection.execute(t.LEVEL.insert(), rows)
    return key


def _values(connection: sa.Connection, run: int, values: list[Value]) -> None:
    connection.execute(t.METRIC_VALUE.delete().where(t.METRIC_VALUE.c.run_id == run))
    if not values:
        return
    keys = _series(connection, values)
    # A name that two families use for the same of the same scope would be a fault; the later value is kept.
    rows = {keys[metric, scope, name]: value for metric, scope, name, _, value in values}
    connection.execute(t.METRIC_VALUE.insert(), [{"series_id": key, "run_id": run, "value": value}
                                                 for key, value in sorted(rows.items())])


def _sketches(connection: sa.Connection, run: int, sketches: dict[tuple[str, str], bytes]) -> None:
    connection.execute(t.SKETCH.delete().where(t.SKETCH.c.run_id == run))
    if sketches:
        connection.execute(t.SKETCH.insert(), [
            {"run_id": run, "metric": "latency_ms", "scope": scope, "scope_name": name, "data": data}
            for (scope, name), data in sorted(sketches.items())])


def _series(connection: sa.Connection, values: list[Value]) -> dict[tuple[str, str, str], int]:
    units = {(metric, scope, name): unit for metric, scope, name, unit, _ in values}
    keys = _known_series(connection, {metric for metric, _, _ in units})
    missing = [key for key in units if key not in keys]
    if missing:
        connection.execute(t.SERIES.insert(), [
            {"metric": metric, "scope": scope, "scope_name": name, "unit": units[metric, scope, name]}
            for metric, scope, name in missing])
        keys = _known_series(connection, {metric for metric, _, _ in units})
    return keys


def _known_series(connection: sa.Connection, metrics: set[str]) -> dict[tuple[str, str, str], int]:
    columns = (t.SERIES.c.metric, t.SERIES.c.scope, t.SERIES.c.scope_name, t.SERIES.c.id)
    named = sorted(metrics)
    keys: dict[tuple[str, str, str], int] = {}
    for start in range(0, len(named), KEYS_AT_ONCE):
        rows = connection.execute(sa.select(*columns).where(t.SERIES.c.metric.in_(named[start:start + KEYS_AT_ONCE])))
        keys |= {(metric, scope, name): key for metric, scope, name, key in rows}
    return keys


def directories_of(connection: sa.Connection) -> dict[str, tuple[int, str]]:
    """The recordings that the catalog knows: key and directory as written, by identifier."""
    rows = connection.execute(sa.select(t.RUN.c.run_id, t.RUN.c.id, t.RUN.c.directory))
    return {run_id: (key, directory) for run_id, key, directory in rows}


def stored_as(directory: Path, base: Path | None) -> str:
    """How the catalog writes a directory."""
    return str(directory.relative_to(base)) if base is not None and directory.is_relative_to(base) else str(directory)
