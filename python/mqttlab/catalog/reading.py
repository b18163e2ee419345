"""What the catalog takes from a recording: read from its directory, without knowing a database."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqttlab.catalog.headline import headline_columns
from mqttlab.catalog.origin import Origin, origin_of
from mqttlab.catalog.place import NAME_LETTERS_MAX, PATH_LETTERS_MAX, CatalogError
from mqttlab.catalog.run_annotations import Annotations
from mqttlab.engine import EngineError, is_being_written
from mqttlab.foreign import visible
from mqttlab.recording import Recording, evaluated

Value = tuple[str, str, str, str, float]
"""Metric, scope, name in the scope (empty for ``run``), unit, value."""
# What is not of the plan itself: repetitions have the same.
OF_ONE_RUN = ("seed", "repetition", "directory")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All that the catalog keeps of one recording."""

    directory: Path
    run: dict[str, Any]
    """The columns of ``run`` that are numbers and words."""
    plan: str
    machine: dict[str, Any] | None
    version: tuple[str, int] | None
    values: list[Value]
    sketches: dict[tuple[str, str], bytes]
    """Of latencies in milliseconds, by scope and name in the scope."""
    annotations: Annotations
    origin: Origin


def read(directory: Path, recording: Recording | None = None) -> Facts:
    """Read a recording.

    Args:
        directory: where it is.
        recording: the same, where it is open already.

    Raises:
        RecordingError: it cannot be read.
        CatalogError: it is still being written, or what is said of it is damaged.
    """
    directory = directory.resolve()
    if is_being_written(directory):
        raise CatalogError(f"{directory} is still being written; the catalog takes it when it has ended")
    if len(str(directory)) > PATH_LETTERS_MAX:
        raise CatalogError(f"{directory}: the path has more than {PATH_LETTERS_MAX} letters")
    try:
        recording = recording or Recording.open(directory)
    except EngineError as error:
        raise CatalogError(f"{directory} cannot be read: {error}") from error
    with evaluated(recording):
        return _facts(directory, recording)


def _facts(directory: Path, recording: Recording) -> Facts:
    run, plan = recording.run, recording.plan
    origin = origin_of(directory, recording.run_id)
    server: Mapping[str, Any] = next(iter(plan["servers"]), {})
    validity = run.get("validity") or {}
    versions = run.get("versions") or {}
    started = _instant(run.get("started_at"))
    row = {
        "run_id": recording.run_id or _identity(directory), "name": visible(recording.name)[:NAME_LETTERS_MAX],
        "backend": str(plan.get("backend", "unknown")), "producer": run.get("producer"),
        "state": "complete" if recording.complete else "incomplete",
        "valid": bool(validity["valid"]) if "valid" in validity else None,
        "reason": str(run.get("reason") or "") or next(iter(validity.get("reasons") or ()), None),
        "seed": plan.get("seed"), "repetition": plan.get("repetition", origin.repetition),
        "started_at": started, "planned_s": plan["phases"]["duration_ns"] / 1e9, "bytes": _bytes(directory),
        "broker_kind": server.get("kind") or None,
        "broker_version": versions.get("broker") or server.get("version") or None,
        "run_json": _text(directory, ("run.json", "incomplete.json")),
        "kind": origin.kind, "block": origin.block, "order_no": origin.order_no, "attempt": origin.attempt,
    }
    values = _values(recording)
    row |= headline_columns(values)
    row["reason"] = None if row["reason"] is None else str(row["reason"])
    machine = recording.run.get("machine")
    engine = versions.get("engine")
    return Facts(
        directory=directory, run=row, plan=_plan(directory),
        machine=dict(machine) if isinstance(machine, dict) and machine else None,
        version=(str(engine), int(run.get("schema_version", 1))) if engine else None, values=values,
        sketches=_sketches(recording),
        annotations=Annotations.read(directory), origin=origin)


def found_below(directories: Iterable[Path]) -> Iterator[Path]:
    """Every directory with a plan at or below some, each once, in the order of their names."""
    seen: set[Path] = set()
    for top in directories:
        for place, below, files in os.walk(top):
            below.sort()
            if "plan.json" in files:
                below.clear()
                directory = Path(place).resolve()
                if directory not in seen:
                    seen.add(directory)
                    yield directory


def digest_of(value: Any) -> str:
    """SHA-256 of a value, however it is written."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _values(recording: Recording) -> list[Value]:
    from mqttlab.metrics import summary

    table = summary(recording)
    rows = table.select("metric", "scope", "name", "unit", "value").iter_rows()
    return [(metric, scope, short(name or ""), unit or "", value) for metric, scope, name, unit, value in rows
            if value is not None and math.isfinite(value)]


def _sketches(recording: Recording) -> dict[tuple[str, str], bytes]:
    """Latencies of the run, of each QoS and of each flow, as :func:`metrics.summary` names them."""
    from mqttlab.catalog.sketch import Sketch
    from mqttlab.metrics import has_both_ways
    from mqttlab.metrics.application import flow_latencies
    from mqttlab.metrics.flow import scope

    # A sketch is of all latencies: of a run with sums there is none.
    of = {key: Sketch.of(latencies) for key, latencies in flow_latencies(recording) if latencies.len()}
    if not of:
        return {}
    found = {("groups", short(scope(key))): sketch for key, sketch in of.items()}
    if not has_both_ways(recording):
        found["run", ""] = Sketch.merged(of.values())
        for level in dict.fromkeys(key.qos for key in of):
            found["qos", str(level)] = Sketch.merged(sketch for key, sketch in of.items() if key.qos == level)
    return {key: sketch.data() for key, sketch in found.items()}


def short(name: str) -> str:
    """A name as it is seen, as long as a key may be; of a longer one its beginning and a digest."""
    name = visible(name)
    if len(name) <= NAME_LETTERS_MAX:
        return name
    return f"{name[:NAME_LETTERS_MAX - 17]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _plan(directory: Path) -> str:
    plan = json.loads((directory / "plan.json").read_text(encoding="utf-8"))
    return json.dumps({name: value for name, value in plan.items() if name not in OF_ONE_RUN}, separators=(",", ":"),
                      sort_keys=True, ensure_ascii=False)


def _identity(directory: Path) -> str:
    """For recordings of schema version 1, which have no identifier: a digest that copies share."""
    text = hashlib.sha256((directory / "plan.json").read_bytes())
    text.update(_text(directory, ("run.json", "incomplete.json")).encode())
    if (directory / "messages.parquet").is_file():
        text.update((directory / "messages.parquet").read_bytes())
    return f"sha256-{text.hexdigest()[:32]}"


def _text(directory: Path, names: Iterable[str]) -> str:
    for name in names:
        try:
            return (directory / name).read_text(encoding="utf-8")
        except OSError:
            continue
    return "{}"


def _instant(written: Any) -> str | None:
    """An instant with six digits, so that text sorts by time; none where nobody knew (schema version 1: 1970)."""
    text = str(written or "")
    if not text or text.startswith("1970-01-01T00:00:00"):
        return None
    head, _, fraction = text.removesuffix("Z").partition(".")
    return f"{head}.{(fraction + '000000')[:6]}Z"


def _bytes(directory: Path) -> int:
    """What the engine wrote there; reports and annotations are not of the recording."""
    names = ("*.parquet", "*.pcapng", "plan.json", "layout.json", "run.json", "incomplete.json", "*.log")
    return sum(path.stat().st_size for pattern in names for path in directory.glob(pattern))


