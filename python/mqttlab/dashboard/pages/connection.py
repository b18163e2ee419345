"""One TCP connection of a run: time and sequence, round trips, windows, what is in flight; and which there are."""

from __future__ import annotations

import polars as pl
from dash import html

from mqttlab import metrics
from mqttlab.dashboard import connection_figures
from mqttlab.dashboard.panels import Content, Head, Link, address, figure, link, notice, written_table
from mqttlab.digits import whole
from mqttlab.recording import Recording
from mqttlab.report.network import DATAGRAMS

SHOWN = 300
HEADS = (Head("connection", text=True), Head("client", text=True), Head("segments to the broker"),
         Head("to the client"), Head("sent again"), Head("look into it", text=True))


def part(recording: Recording, run: str, query: dict[str, str]) -> Content:
    """The connection that the address names, or all of them."""
    named = query.get("connection", "")
    if (connection := whole(named)) is not None:
        drawn = [figure(name, address(f"/data/run/{run}/figure/{name}.json"), over_time=True)
                 for name in connection_figures.names(connection)]
        every = link("All connections", address(f"/run/{run}", part="connections"))
        return [html.P([every, f" › connection {_spoken(connection)}"], className="crumbs"),
                html.P("Segments where they came to their first link; all have one time axis. For Wireshark `mqttlab "
                       "export --pcapng` makes a capture of them.", className="lead"),
                html.Div(drawn, className="figures")]
    rows = _rows(recording, run)
    if not rows:
        return [notice("note", "No frames were recorded, so that there are no connections to look into.")]
    cut = [html.P(f"The first {SHOWN}.")] if len(rows) > SHOWN else []
    return [html.Section([html.H2("Connections"), *cut, written_table("Connections", HEADS, rows[:SHOWN])],
                         className="panel")]


def _spoken(number: int) -> str:
    return f"UDP {number - DATAGRAMS}" if number >= DATAGRAMS else str(number)


def _rows(recording: Recording, run: str) -> list[list[object]]:
    table = metrics.connections(recording)
    if table.is_empty():
        return []
    again = "retransmissions" if "retransmissions" in table.columns else None
    rows: list[list[object]] = []
    # One more than is shown tells that there are more.
    first = table["connection"].drop_nulls().unique(maintain_order=True).head(SHOWN + 1)
    shown = table.filter(pl.col("connection").is_in(first.implode()))
    for (number,), part in shown.partition_by("connection", as_dict=True, maintain_order=True).items():
        ways = {str(row["direction"]): row for row in part.iter_rows(named=True)}
        spoken = _spoken(int(number))
        client = next((str(row["name"]) for row in ways.values() if row["name"] is not None), "–")
        counts = [int(ways[way]["segments_with_payload"] or 0) if way in ways else 0 for way in metrics.DIRECTIONS]
        repeated = sum(int(row[again] or 0) for row in ways.values()) if again else None
        # Datagrams have neither a stream nor windows.
        more = Link("messages", address(f"/run/{run}", part="recent", client=client), f"messages of {client}") if (
            number >= DATAGRAMS) else Link("figures", address(f"/run/{run}", part="connections", connection=number),
                                           f"figures of connection {spoken}")
        rows.append([spoken, client, *counts, repeated, more])
    return rows
