"""The long form of a recording's metrics: one row for each value, whatever table it stands in.

Reports choose tables and columns; who compares, exports, collects or queries recordings reads this.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import polars as pl
import polars.selectors as cs

from mqttlab.metrics import flow
from mqttlab.metrics.application import application, has_both_ways
from mqttlab.metrics.attribution import attribution_by_qos
from mqttlab.metrics.bursts import bursts
from mqttlab.metrics.catalogue import ALL, ENGINE, FAMILIES
from mqttlab.metrics.changes import changes
from mqttlab.metrics.connecting import setup
from mqttlab.metrics.device_bytes import device_bytes
from mqttlab.metrics.efficiency import efficiency
from mqttlab.metrics.energy import energy
from mqttlab.metrics.link import links
from mqttlab.metrics.mqtt_sn import mqtt_sn
from mqttlab.metrics.network import SCOPES, network
from mqttlab.metrics.overhead import overhead
from mqttlab.metrics.processor import processor
from mqttlab.recording import Recording

SCHEMA: dict[str, pl.DataType] = {
    "scope": pl.String(), "name": pl.String(), "metric": pl.String(), "value": pl.Float64(), "unit": pl.String(),
}
OF_STAGES = ("application", "bursts", "devices", "processor", "attribution")
"""Tables of what happened to the messages of a time, or in it."""


@dataclass(frozen=True)
class _Part:
    """Rows of one table."""

    table: str
    scopes: tuple[str, ...]
    rows: Callable[[Recording], pl.DataFrame]
    """With ``scope`` and ``name``, and a column for each metric."""


def summary(
    recording: Recording, *, tables: Collection[str] | None = None, scopes: Collection[str] | None = None,
    stage: str | None = None,
) -> pl.DataFrame:
    """Every metric of a recording that is one number, of everything that it is measured of.

    Columns: ``scope``, ``name`` (which of that scope; null for ``run``), ``metric``, ``value``, ``unit``. What a
    recording does not tell has no row. Single connections and messages are not among the scopes.

    Args:
        recording: the recording.
        tables: only these families of the catalogue; what is left out is not computed.
        scopes: only these.
        stage: of this stage alone, and only what has to do with its time: not what covers the whole run. So it is, too,
            where the recording is that of one stage.

    Raises:
        RecordingError: there is no such stage, or a table cannot be read.
    """
    parts = []
    if stage is not None and stage != recording.stage:
        recording = recording.of_stage(stage)
    stage = recording.stage
    for part in PARTS:
        wanted = (tables is None or part.table in tables) and (scopes is None or set(part.scopes) & set(scopes))
        wanted = wanted and (stage is None or part.table in OF_STAGES)
        table = part.rows(recording) if wanted else pl.DataFrame()
        if not table.is_empty():
            parts.append(_long(table))
    found = pl.concat([pl.DataFrame(schema=SCHEMA), *parts])
    if stage is not None:
        found = found.filter(~pl.col("metric").is_in([name for name in ALL if not is_of_stages(name)]))
    return found if scopes is None else found.filter(pl.col("scope").is_in(list(scopes)))


def is_of_stages(metric: str) -> bool:
    """Whether a metric of the catalogue has a value for a stage alone."""
    return metric in ALL and ALL[metric].window in ("due", "measurement") and any(
        metric == each.name for family in FAMILIES if family.table in OF_STAGES for each in family.metrics)


def _long(table: pl.DataFrame) -> pl.DataFrame:
    if set(table.columns) == set(SCHEMA):
        return table.select(pl.col(name).cast(kind) for name, kind in SCHEMA.items())
    numbers = [name for name in table.select(cs.numeric() | cs.boolean()).columns if name in ALL]
    units = {name: ALL[name].unit for name in numbers}
    # A row's values stay together, in the order of the catalogue's tables.
    return (
        table.with_row_index("row").select("row", "scope", "name", pl.col(numbers).cast(pl.Float64))
        .unpivot(index=["row", "scope", "name"], variable_name="metric", value_name="value")
        .filter(pl.col("value").is_not_null())
        .sort("row", maintain_order=True)
        .select("scope", "name", "metric", "value",
                unit=pl.col("metric").replace_strict(units, default="", return_dtype=pl.String))
    )


def _named(table: pl.DataFrame, scope: str, name: pl.Expr) -> pl.DataFrame:
    if table.is_empty():
        return table
    return table.with_columns(pl.lit(scope).alias("scope"), name.cast(pl.String).alias("name"))


def _whole(recording: Recording) -> pl.DataFrame:
    # No mean is of round trips and of one way.
    return pl.DataFrame() if has_both_ways(recording) else _named(application(recording, ()), "run", pl.lit(None))


def _by_qos(recording: Recording) -> pl.DataFrame:
    return pl.DataFrame() if has_both_ways(recording) else _named(application(recording), "qos", pl.col("qos"))


def _of_flows(table: pl.DataFrame) -> pl.DataFrame:
    if table.is_empty():
        return table
    names = pl.Series([flow.scope(flow.Key(*row)) for row in table.select(flow.FLOW).rows()], dtype=pl.String)
    return _named(table, "groups", pl.lit(names))


def _by_flow(recording: Recording) -> pl.DataFrame:
    return _of_flows(application(recording, flow.FLOW))


def _network(recording: Recording) -> pl.DataFrame:
    table = network(recording, SCOPES)
    if table.is_empty():
        return table
    both = pl.format("{}, {}", pl.col("name").fill_null("unknown"), "direction")
    return table.with_columns(name=pl.when(pl.col("scope") == "direction").then("direction")
                              .when(pl.col("scope").is_in(["link", "group"])).then(both))


def _overhead(recording: Recording) -> pl.DataFrame:
    return _named(overhead(recording), "direction", pl.format("{} at QoS {}", "direction", "qos"))


def _efficiency(recording: Recording) -> pl.DataFrame:
    return _named(efficiency(recording), "group", pl.col("group"))


def _attribution(recording: Recording) -> pl.DataFrame:
    means = attribution_by_qos(recording)
    if means.is_empty():
        return means
    return means.select(
        scope=pl.lit("qos"), name=pl.col("qos").cast(pl.String), metric="part", value=pl.col("mean_ms") * 1e6,
        unit=pl.lit("ns"))


def _counted(recording: Recording) -> pl.DataFrame:
    table = recording.network_metrics
    # The engine's counters of a run whose frames nobody saw are zeros, and no measurement.
    if table.is_empty() or not recording.rows("packets"):
        return pl.DataFrame()
    units = {metric.name: metric.unit for metric in ENGINE.metrics}
    table = table.select(pl.col("scope", "metric").cast(pl.String), "value", name=pl.col("direction").cast(pl.String))
    return table.filter(pl.col("scope").is_in(["run", "direction"]), pl.col("metric").is_in(list(units))).with_columns(
        unit=pl.col("metric").replace_strict(units, return_dtype=pl.String))


PARTS: tuple[_Part, ...] = (
    _Part("application", ("run",), _whole),
    _Part("application", ("qos",), _by_qos),
    _Part("application", ("groups",), _by_flow),
    _Part("bursts", ("groups",), lambda recording: _of_flows(bursts(recording))),
    _Part("changes", ("event",), lambda recording: _named(changes(recording), "event", pl.col("event"))),
    _Part("setup", ("run",), lambda recording: _named(setup(recording), "run", pl.lit(None))),
    _Part("links", ("link",), lambda recording: _named(links(recording), "link", pl.col("link"))),
    _Part("network", SCOPES, _network),
    _Part("mqtt_sn", ("run", "group", "packet_type"), mqtt_sn),
    _Part("overhead", ("direction",), _overhead),
    _Part("efficiency", ("group",), _efficiency),
    _Part("devices", ("group",), device_bytes),
    _Part("processor", ("run",), processor),
    _Part("energy", ("run", "group", "station"), energy),
    _Part("attribution", ("qos",), _attribution),
    _Part("counted", ("run", "direction"), _counted),
)
