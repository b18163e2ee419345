"""The tidy table: a row for each run and response, with the point's levels beside it.

Columns: ``point``, ``key``, ``kind``, for each factor its text and ``<factor>__value``, ``block``, ``repetition``,
``order_no``, ``seed``, ``run``, ``directory``, ``state``, ``verdict``, ``reason``, ``metric``, ``scope``,
``scope_name``, ``value``, ``unit``, ``declared``. Runs without values have one row in which ``metric`` is null: nothing
is dropped here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from mqttlab.experiments.factors import Factor, number
from mqttlab.experiments.journal import RunRecord
from mqttlab.experiments.points import Design
from mqttlab.experiments.responses import Response, Value, values_of
from mqttlab.recording import Recording
from mqttlab.runs.storage import fetch, is_url

OF_RUN: dict[str, pl.DataType] = {
    "block": pl.Int64(), "repetition": pl.Int64(), "order_no": pl.Int64(), "seed": pl.Int64(), "run": pl.String(),
    "directory": pl.String(), "state": pl.String(), "verdict": pl.String(), "reason": pl.String(),
}
OF_VALUE: dict[str, pl.DataType] = {
    "metric": pl.String(), "scope": pl.String(), "scope_name": pl.String(), "value": pl.Float64(), "unit": pl.String(),
    "declared": pl.Boolean(),
}
NOTHING = dict.fromkeys(OF_VALUE)


def table(
    directory: Path, design: Design, runs: Iterable[RunRecord], metrics: Collection[str] = (),
    scopes: Collection[str] = ("run",),
) -> pl.DataFrame:
    """The tidy table of an experiment.

    Args:
        directory: the experiment's, which runs' directories are below.
        design: its factors.
        runs: from its journal.
        metrics: besides the responses of the journal, these are read from the recordings (``declared`` is false).
        scopes: of these metrics.
    """
    more = [Response(metric, scope) for metric in metrics for scope in scopes]
    rows: list[dict[str, Any]] = []
    for record in runs:
        run = _of_run(directory, design.factors, record)
        values: list[dict[str, Any]] = [{**value.kept, "declared": True} for value in record.responses
                                        # What thresholds say of stages is beside the responses.
                                        if value.stage is None]
        if more and record.state in ("done", "invalid"):
            values += [{**value.kept, "declared": False} for value in _read(directory, record, more)]
        rows += [{**run, **value} for value in values or [NOTHING]]
    schema: dict[str, pl.DataType] = {"point": pl.Int64(), "key": pl.String(), "kind": pl.String()}
    for factor in design.factors:
        schema |= {factor.name: pl.String(), f"{factor.name}__value": pl.Float64()}
    return pl.DataFrame(rows, schema=schema | OF_RUN | OF_VALUE)


def _of_run(directory: Path, factors: Sequence[Factor], record: RunRecord) -> dict[str, Any]:
    row: dict[str, Any] = {"point": record.point, "key": record.point_key, "kind": record.kind}
    for factor in factors:
        text = record.levels.get(factor.name)
        row[factor.name] = text
        row[f"{factor.name}__value"] = _value(factor, text)
    row |= {name: getattr(record, name) for name in OF_RUN}
    if not is_url(record.directory):
        row["directory"] = str(directory / record.directory)
    return row


def _value(factor: Factor, text: str | None) -> float | None:
    if text is None or factor.kind != "numeric":
        return None
    level = next((level for level in factor.levels if level.text == text), None)
    if level is not None:
        return level.value
    # Of a point that a design made up, or that is no longer in it.
    found = number(text) or _plain(text)
    return None if found is None else found.value


def _plain(text: str) -> Any:
    try:
        return number(float(text))
    except ValueError:
        return None


def _read(directory: Path, record: RunRecord, wanted: Sequence[Response]) -> list[Value]:
    known = {(value.metric, value.scope, value.scope_name) for value in record.responses}
    place = fetch(record.directory) if is_url(record.directory) else directory / record.directory
    if not place.is_dir():
        return []
    found = values_of(Recording.open(place), wanted)
    return [value for value in found if (value.metric, value.scope, value.scope_name) not in known]
