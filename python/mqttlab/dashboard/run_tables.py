"""The tables of a run that pages show and give as CSV: those of its report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from mqttlab import metrics
from mqttlab.metrics import flow
from mqttlab.recording import Recording
from mqttlab.report import attribution, captured, cards, coverage, fleet, network


@dataclass(frozen=True, kw_only=True)
class RunTable:
    """A table with the columns that pages show, in order, and a sentence on what it covers."""

    name: str
    title: str
    rows: pl.DataFrame
    columns: tuple[str, ...]
    words: str = ""


def of_page(recording: Recording, page: str) -> list[RunTable]:
    """The tables of a page that have a row; an import's have what only imports have."""
    made = [table for make in PAGES.get(page, ()) for table in make(recording)]
    return [table for table in made if not table.rows.is_empty()]


def named(recording: Recording, name: str) -> RunTable | None:
    """The table of this name."""
    return next((table for page in PAGES for table in of_page(recording, page) if table.name == name), None)


def _application(recording: Recording) -> list[RunTable]:
    by_qos = metrics.application(recording)
    if by_qos.is_empty():
        return []
    by_group = metrics.application(recording, metrics.FLOW)
    keys = flow.shown(by_group)
    both_ways = metrics.has_both_ways(recording)
    columns = captured.known(recording, by_group, metrics.family("application").columns("page"))
    words = " ".join(coverage.application(recording, by_qos))
    made = []
    if not both_ways:
        made.append(RunTable(name="messages-by-qos", title="Messages by QoS", rows=by_qos,
                             columns=("qos", *cards.first(columns)), words=words))
    if both_ways or by_group.height > by_qos.height:
        made.append(RunTable(name="messages-by-group", title="Messages by group", rows=by_group,
                             columns=(*keys, *cards.first(columns)), words=words))
    bursts = metrics.bursts(recording)
    made.append(RunTable(name="bursts", title="Bursts", rows=bursts,
                         columns=(*keys, *metrics.family("bursts").columns("page"))))
    return made


def _clients(recording: Recording) -> list[RunTable]:
    each = metrics.messages_by_device(recording)
    if each.height < 2:
        return []
    shown, words = fleet.worst(each)
    return [RunTable(name="clients", title="Clients", rows=shown,
                     columns=("client", "group", *metrics.COLUMNS_OF_CLIENTS), words=words)]


def _setup(recording: Recording) -> list[RunTable]:
    timings = metrics.setup(recording)
    return [RunTable(name="connecting", title="Connecting", rows=timings,
                     columns=network.columns(timings, metrics.family("setup").columns("page")),
                     words=coverage.setup(timings))]


def _parts(recording: Recording) -> list[RunTable]:
    if not metrics.has_deliveries(recording):
        return []
    rows = attribution.by_qos(recording)
    words = f"{attribution.accuracy(recording)} {attribution.left_out(recording, rows) if not rows.is_empty() else ''}"
    if rows.is_empty():
        return [RunTable(name="parts", title="Where the time went", rows=pl.DataFrame({"note": [words]}),
                         columns=("note",))]
    rows = rows.with_columns(pl.col("part").replace(metrics.part_titles(recording)))
    return [RunTable(name="parts", title="Where the time went, means", rows=rows, columns=tuple(rows.columns),
                     words=words)]


def _links(recording: Recording) -> list[RunTable]:
    table = metrics.links(recording)
    if table.is_empty():
        return []
    return [RunTable(name="links", title="Links", rows=table,
                     columns=("link", *metrics.family("links").columns("page")),
                     words=coverage.links(recording, table))]


def _network(recording: Recording) -> list[RunTable]:
    table = network.labelled(metrics.network(recording))
    if table.is_empty():
        return []
    made = [RunTable(name="network-layer", title="Network layer", rows=table,
                     columns=("of", *network.columns(table, network.COLUMNS)), words=network.covered(recording, table))]
    overhead = network.overhead(recording)
    if not overhead.is_empty():
        made.append(RunTable(name="overhead", title="Overhead", rows=overhead,
                             columns=("of", *network.columns(overhead, network.OVERHEAD_COLUMNS))))
    efficiency = metrics.efficiency(recording)
    made.append(RunTable(name="efficiency", title="Efficiency", rows=efficiency, columns=network.columns(
        efficiency, network.EFFICIENCY_COLUMNS), words=network.EFFICIENCY_WORDS))
    energy = network.energy(recording)
    if not energy.is_empty():
        made.append(RunTable(name="energy", title="Energy", rows=energy, columns=(
            "of", *network.columns(energy, metrics.family("energy").columns("page"))),
            words=coverage.energy(recording)))
    datagrams = network.mqtt_sn(recording)
    if not datagrams.is_empty():
        made.append(RunTable(name="mqtt-sn", title="MQTT-SN", rows=datagrams, words=coverage.mqtt_sn(
            datagrams), columns=("of", *network.columns(datagrams, metrics.family("mqtt_sn").columns("page")))))
    connections = network.connections(recording)
    made.append(RunTable(name="connections", title="Connections", rows=connections, columns=(
        "connection", "of", *network.columns(connections, network.COLUMNS))))
    return made


def _captured(recording: Recording) -> list[RunTable]:
    return [RunTable(name=title.lower().replace(" ", "-"), title=title, rows=table, columns=tuple(table.columns))
            for title, table in captured.tables(recording)]


PAGES: dict[str, tuple[Callable[[Recording], list[RunTable]], ...]] = {
    "messages": (_application, _clients, _setup),
    "parts": (_parts,),
    "network": (_links, _network, _captured),
}
