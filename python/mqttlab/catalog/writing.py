"""How facts become rows. Each function works within the transaction of its caller."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mqttlab.catalog.origin import Experiment, Origin
from mqttlab.catalog.reading import Facts, Value, digest_of, short
from mqttlab.catalog.rows import Rows
from mqttlab.catalog.run_annotations import Annotations

# SQLite takes 32,766 values in a statement, and nobody more than 65,535.
KEYS_AT_ONCE = 5000
# What is kept of a machine: the columns of its table but for key and digest.
OF_MACHINE = ("processor", "processors", "architecture", "system", "kernel", "memory_bytes")


def put(rows: Rows, facts: Facts, stored: str, stored_experiment: str | None) -> int:
    """Put a recording's facts into the catalog, in the place of what it had of the same recording.

    Args:
        rows: within a transaction.
        facts: the facts.
        stored: its directory as the catalog writes it.
        stored_experiment: its experiment's directory, likewise.

    Returns:
        The key of its row.
    """
    experiment, point = _experiment(rows, facts.origin, stored_experiment)
    row = facts.run | {
        "directory": stored, "plan_id": _plan(rows, facts), "machine_id": _machine(rows, facts.machine),
        "version_id": _version(rows, facts.version), "experiment_id": experiment, "point_id": point,
    }
    run = rows.key("run", run_id=row["run_id"])
    if run is None:
        run = _insert(rows, "run", {"run_id": row["run_id"]}, row)
    else:
        rows.update("run", run, row)
    _values(rows, run, facts.values)
    _sketches(rows, run, facts.sketches)
    annotate(rows, run, facts.annotations)
    return run


def remove(rows: Rows, run: int) -> None:
    """Forget a recording, and all that is kept of it."""
    rows.delete("run", id=run)


def sweep(rows: Rows) -> None:
    """Forget plans, scenarios, experiments, machines, versions and series that nothing refers to any more."""
    for table, referring, column in (
        ("plan", "run", "plan_id"), ("scenario", "plan", "scenario_id"), ("experiment", "run", "experiment_id"),
        ("machine", "run", "machine_id"), ("version", "run", "version_id"), ("series", "metric_value", "series_id"),
    ):
        rows.delete_unused(table, referring, column)


def annotate(rows: Rows, run: int, annotations: Annotations) -> None:
    """Put what is said of a recording into the catalog, in the place of what was said before."""
    for table in ("tag", "note", "baseline"):
        rows.delete(table, run_id=run)
    rows.insert("tag", ({"run_id": run, "name": name, "value": value} for name, value in annotations.tags.items()))
    rows.insert("note", ({"run_id": run, "at": note.at, "author": note.author, "text": note.text}
                         for note in annotations.notes))
    for name, baseline in annotations.baselines.items():
        other = rows.find("baseline", ("set_at",), name=name)
        # A name is of one run; where files disagree, the later word counts.
        if other and other[0][0] > baseline.set_at:
            continue
        rows.delete("baseline", name=name)
        rows.insert("baseline", [{"name": name, "run_id": run, "covers": baseline.covers, "set_at": baseline.set_at}])


def _insert(rows: Rows, table: str, by: Mapping[str, Any], row: Mapping[str, Any]) -> int:
    """Add a row that is the only one with some of its values; returns its key."""
    rows.insert(table, [row])
    key = rows.key(table, **by)
    assert key is not None, "it was added in this transaction"
    return key


def _found_or_made(rows: Rows, table: str, by: Mapping[str, Any], rest: Mapping[str, Any]) -> int:
    """The key of the row that has these values; two who make it at once are told so, and one of them begins again."""
    found = rows.key(table, **by)
    return found if found is not None else _insert(rows, table, by, {**by, **rest})


def _plan(rows: Rows, facts: Facts) -> int:
    scenario = None
    if facts.origin.scenario is not None:
        scenario = _found_or_made(rows, "scenario", {"digest": digest_of(facts.origin.scenario)},
                                  {"name": facts.run["name"], "toml": facts.origin.scenario})
    by = {"digest": digest_of([facts.plan, facts.origin.scenario])}
    return _found_or_made(rows, "plan", by, {"json": facts.plan, "scenario_id": scenario})


def _machine(rows: Rows, machine: dict[str, Any] | None) -> int | None:
    if machine is None:
        return None
    columns = {name: machine.get(name) for name in OF_MACHINE}
    return _found_or_made(rows, "machine", {"digest": digest_of(columns)}, columns)


def _version(rows: Rows, version: tuple[str, int] | None) -> int | None:
    if version is None:
        return None
    return _found_or_made(rows, "version", {"engine": version[0], "schema_version": version[1]}, {})


def _experiment(rows: Rows, origin: Origin, stored: str | None) -> tuple[int | None, int | None]:
    experiment = origin.experiment
    if experiment is None or stored is None:
        return None, None
    rest = {"name": experiment.name, "kind": experiment.kind, "created_at": experiment.created_at,
            "toml": experiment.toml,
            "design": json.dumps(experiment.design, sort_keys=True, ensure_ascii=False)}
    key = _found_or_made(rows, "experiment", {"directory": stored}, rest)
    rows.update("experiment", key, rest)
    if origin.point is None:
        return key, None
    factors = _factors(rows, key, experiment, origin)
    return key, _point(rows, key, origin, factors, _numbers(experiment))


def _factors(rows: Rows, experiment: int, told: Experiment, origin: Origin) -> dict[str, int]:
    designed = {str(factor["name"]): factor for factor in told.design.get("factors", []) if "name" in factor}
    keys = {}
    for name in origin.levels or {}:
        factor = designed.get(name, {})
        rest = {"places": json.dumps(factor.get("places", [])), "unit": factor.get("unit"), "kind": factor.get("kind"),
                "scale": factor.get("scale")}
        keys[name] = _found_or_made(rows, "factor", {"experiment_id": experiment, "name": short(name)}, rest)
    return keys


def _numbers(experiment: Experiment) -> dict[tuple[str, str], float]:
    """The numbers behind levels as written, by factor and text."""
    return {(str(factor["name"]), str(level["text"])): float(level["value"])
            for factor in experiment.design.get("factors", []) if "name" in factor
            for level in factor.get("levels", []) if isinstance(level, dict) and level.get("value") is not None}


def _point(rows: Rows, experiment: int, origin: Origin, factors: dict[str, int],
           numbers: dict[tuple[str, str], float]) -> int:
    by = {"experiment_id": experiment, "number": origin.point}
    levels = origin.levels or {}
    key = _found_or_made(rows, "point", by, {"key": json.dumps(levels, sort_keys=True, ensure_ascii=False)})
    known = {factor for (factor,) in rows.find("level", ("factor_id",), point_id=key)}
    rows.insert("level", (
        {"point_id": key, "factor_id": factors[name], "text": str(text), "value": numbers.get((name, str(text)))}
        for name, text in levels.items() if factors[name] not in known))
    return key


def _values(rows: Rows, run: int, values: list[Value]) -> None:
    rows.delete("metric_value", run_id=run)
    if not values:
        return
    keys = _series(rows, values)
    # A name that two families use for the same of the same scope would be a fault; the later value is kept.
    kept = {keys[metric, scope, name]: value for metric, scope, name, _, value in values}
    rows.insert("metric_value", ({"series_id": key, "run_id": run, "value": value}
                                 for key, value in sorted(kept.items())))


def _sketches(rows: Rows, run: int, sketches: dict[tuple[str, str], bytes]) -> None:
    rows.delete("sketch", run_id=run)
    rows.insert("sketch", (
        {"run_id": run, "metric": "latency_ms", "scope": scope, "scope_name": name, "data": data}
        for (scope, name), data in sorted(sketches.items())))


def _series(rows: Rows, values: list[Value]) -> dict[tuple[str, str, str], int]:
    units = {(metric, scope, name): unit for metric, scope, name, unit, _ in values}
    keys = _known_series(rows, {metric for metric, _, _ in units})
    missing = [key for key in units if key not in keys]
    if missing:
        rows.insert("series", ({"metric": metric, "scope": scope, "scope_name": name,
                                "unit": units[metric, scope, name]} for metric, scope, name in missing))
        keys = _known_series(rows, {metric for metric, _, _ in units})
    return keys


def _known_series(rows: Rows, metrics: set[str]) -> dict[tuple[str, str, str], int]:
    named = sorted(metrics)
    keys: dict[tuple[str, str, str], int] = {}
    for start in range(0, len(named), KEYS_AT_ONCE):
        found = rows.find_in("series", ("metric", "scope", "scope_name", "id"), "metric",
                             named[start:start + KEYS_AT_ONCE])
        keys |= {(metric, scope, name): key for metric, scope, name, key in found}
    return keys


def directories_of(rows: Rows) -> dict[str, tuple[int, str]]:
    """The recordings that the catalog knows: key and directory as written, by identifier."""
    return {run_id: (key, directory) for run_id, key, directory in rows.find("run", ("run_id", "id", "directory"))}


def stored_as(directory: Path, base: Path | None) -> str:
    """How the catalog writes a directory."""
    return str(directory.relative_to(base)) if base is not None and directory.is_relative_to(base) else str(directory)
