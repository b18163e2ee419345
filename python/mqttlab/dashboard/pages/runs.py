"""Runs: the recordings as one table, filtered and sorted by the server, however many there are."""

from __future__ import annotations

import re
from typing import Any

import dash_ag_grid as dag
import polars as pl
from dash import dcc, html

from mqttlab.dashboard.panels import address, link, notice
from mqttlab.dashboard.store import Store
from mqttlab.report.text import heading, meaning, number

TITLES = {"run": "run", "planned_s": "measured (s)", "payload_bytes": "payload", "qos": "QoS", "clients": "clients"}
ALWAYS = ("run", "started", "verdict")
BLOCK = 100


def page(store: Store, query: dict[str, str]) -> html.Div:
    """The page: a search, a switch, a table."""
    runs = store.runs()
    if runs.is_empty():
        return html.Div([html.H1("Runs"), notice("note", f"There are no recordings in {store.directory} yet.", [
            "mqttlab run scenarios/demo.toml makes one."])])
    differing = query.get("columns") == "different"
    return html.Div([
        html.H1("Runs"),
        html.P(f"Recordings in {store.directory}: {number(runs.height)}. Those that are not valid are struck out.",
               className="lead"),
        html.Div([
            html.Label("Search", htmlFor="runs-search"),
            dcc.Input(id="runs-search", type="search", value=query.get("search", ""), debounce=0.25,
                      placeholder="demo live qos=1"),
            link("All columns" if differing else "Only what differs",
                 address("/", **{**query, "columns": "" if differing else "different"})),
            html.Span(id="runs-count", role="status"),
        ], className="form-row"),
        dag.AgGrid(
            id="runs-grid", rowModelType="infinite", columnDefs=columns(selected(runs, query), differing),
            defaultColDef={"sortable": True, "resizable": True, "minWidth": 90, "filter": "agTextColumnFilter",
                           "filterParams": {"maxNumConditions": 1, "buttons": ["reset"]}},
            columnSize="autoSize", getRowId="params.data.run",
            dashGridOptions={"cacheBlockSize": BLOCK, "maxBlocksInCache": 20, "rowHeight": 34, "headerHeight": 38,
                             "suppressColumnVirtualisation": True},
            rowClassRules={"not-valid": "params.data && params.data.verdict !== 'valid'"},
            className="runs-grid", style={"height": "calc(100vh - 220px)", "minHeight": "320px"},
        ),
    ])


def columns(runs: pl.DataFrame, differing: bool) -> list[dict[str, Any]]:
    """The grid's columns; with ``differing`` only those in which the rows are not all alike."""
    shown = [name for name in runs.columns
             if name in ALWAYS or not differing or runs[name].n_unique() > 1]
    return [_column(name, runs.schema[name]) for name in shown if runs[name].null_count() < max(runs.height, 1)
            or name in ALWAYS]


def _column(name: str, kind: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"field": name, "headerName": TITLES.get(name, heading(name)),
                            "headerTooltip": meaning(name)}
    if name == "run":
        made |= {"cellRenderer": "RunLink", "pinned": "left", "minWidth": 180, "width": 250}
    if kind.is_numeric():
        made |= {"filter": "agNumberColumnFilter", "type": "rightAligned"}
    return made


def selected(runs: pl.DataFrame, query: dict[str, str]) -> pl.DataFrame:
    """The rows that an address asks for: those in which every word of its search occurs, or ``column=word``."""
    for word in query.get("search", "").split():
        name, sign, value = word.partition("=")
        if sign and name in runs.columns:
            runs = runs.filter(pl.col(name).cast(pl.String).fill_null("") == value)
        else:
            runs = runs.filter(pl.any_horizontal(_holds(column, word) for column in runs.columns))
    return runs


def rows(runs: pl.DataFrame, request: dict[str, Any]) -> dict[str, Any]:
    """A block of rows as the grid asks for it, with how many there are in all."""
    for name, condition in (request.get("filterModel") or {}).items():
        if name in runs.columns:
            runs = runs.filter(_condition(pl.col(name), condition))
    order = [part for part in request.get("sortModel") or [] if part["colId"] in runs.columns]
    if order:
        runs = runs.sort([part["colId"] for part in order], descending=[part["sort"] == "desc" for part in order],
                         nulls_last=True, maintain_order=True)
    block = runs.slice(int(request["startRow"]), int(request["endRow"]) - int(request["startRow"]))
    return {"rowData": [{**row, "href": address(f"/run/{row['run']}")} for row in block.iter_rows(named=True)],
            "rowCount": runs.height}


def _holds(column: str, word: str) -> pl.Expr:
    text = pl.col(column).cast(pl.String).fill_null("")
    return text.str.contains(f"(?i){re.escape(word)}")


def _condition(column: pl.Expr, asked: dict[str, Any]) -> pl.Expr:
    kind, value = asked.get("type"), asked.get("filter")
    if kind in ("blank", "notBlank"):
        return column.is_null() if kind == "blank" else column.is_not_null()
    if value is None:
        return pl.lit(True)
    if asked.get("filterType") == "number":
        other = asked.get("filterTo")
        compared = {"equals": column == value, "notEqual": column != value, "lessThan": column < value,
                    "lessThanOrEqual": column <= value, "greaterThan": column > value,
                    "greaterThanOrEqual": column >= value,
                    "inRange": column.is_between(value, value if other is None else other)}
        return compared.get(str(kind), pl.lit(True))
    text, word = column.cast(pl.String).fill_null("").str.to_lowercase(), str(value).lower()
    found = {"contains": text.str.contains(word, literal=True), "equals": text == word, "notEqual": text != word,
             "notContains": ~text.str.contains(word, literal=True), "startsWith": text.str.starts_with(word),
             "endsWith": text.str.ends_with(word)}
    return found.get(str(kind), pl.lit(True))
