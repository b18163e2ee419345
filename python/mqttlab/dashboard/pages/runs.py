"""Runs: the recordings as one table, filtered and sorted by the server, however many there are."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import dash_ag_grid as dag
import polars as pl
from dash import dcc, html

from mqttlab.dashboard import folding, run_sets
from mqttlab.dashboard.panels import Content, Head, Link, act, address, figure, link, notice, written_table
from mqttlab.dashboard.run_annotations import views
from mqttlab.dashboard.store import HEADLINE, METRICS, TAG, Store
from mqttlab.digits import whole
from mqttlab.plurals import counted
from mqttlab.report.comparison.drawn import ORDINALS
from mqttlab.report.text import heading, meaning, number, unit

TITLES = {"run": "run", "undelivered_percent": "not delivered (%)",
          "planned_s": "measured (s)", "payload_bytes": "payload", "qos": "QoS", "clients": "clients"}
ALWAYS = ("run", "started", "verdict")
BLOCK = 100
# To the second: "2026-11-22 21:30:18".
MOMENT_LETTERS = 19
# Of a metric, which is rounded for the table.
DIGITS = 7
# Of the widest of fonts that a system may have; a sign in the heading, and what stands around a cell's words.
LETTER_PX, AROUND_PX, COLUMN_PX_MAX = 8, 36, 330
GROUPS_SHOWN = 500
RUNS_IN_ADDRESS = 200
STRUCK_OUT = "params.data && !params.data.runs && !['valid', 'running'].includes(params.data.verdict)"
"""Which rows are those of runs that are not valid; of one that goes on nothing is known yet."""
STATE = ("search", "columns", "group", "pin", "all", "first")


def page(store: Store, query: dict[str, str], standing: html.P | None = None) -> html.Div:
    """The page: what goes on now (``standing``), a search, what is shown how, a table of runs or of their groups, and
    figures of what is selected."""
    runs = store.runs()
    if runs.is_empty():
        return html.Div([
            html.H1("Runs"), standing, notice("note", f"There are no recordings in {store.directory} yet.", [
                "mqttlab run scenarios/demo.toml makes one."])])
    shown = selected(runs, query)
    by = _grouped_by(shown, query)
    return html.Div([
        html.H1("Runs"),
        html.P(f"Recordings in {store.directory}: {number(runs.height)}. Those that are not valid are struck out. "
               "The runs of an experiment are one row, with their means; ▸ shows them.",
               className="lead"),
        standing,
        _searched(query),
        html.Div(_shown_as(shown, by, query), id="runs-shown-as", className="form-row"),
        html.Div(_groups(shown, by, query) if by else None, id="runs-groups"),
        _grid(shown, query),
        _said(query),
        _views(store),
        _figures(shown, query),
    ])


def follow(store: Store, query: dict[str, str]) -> tuple[Any, Content, Any, Content, list[dict[str, Any]]]:
    """What of the page follows an address whose search alone has changed, besides rows and figures: the link beside the
    search, what is shown how, the groups, the first side of a comparison, the table's columns."""
    shown = selected(store.runs(), query)
    by = _grouped_by(shown, query)
    return (_other_columns(query), _shown_as(shown, by, query), _groups(shown, by, query) if by else None,
            _first_side(query), _pinned(shown, query))


def _grouped_by(shown: pl.DataFrame, query: dict[str, str]) -> list[str]:
    return [name for name in query.get("group", "").split(",") if name in shown.columns]


def _searched(query: dict[str, str]) -> html.Div:
    return html.Div([
        html.Label("Search", htmlFor="runs-search"),
        # Rows follow each letter, the address and the rest of the page when no other letter comes (searchRuns).
        dcc.Input(id="runs-search", type="search", value=query.get("search", ""), placeholder="demo live qos=1"),
        dcc.Store(id="runs-typed"),
        html.Span(_other_columns(query), id="runs-columns"),
        html.Span(id="runs-count", role="status"),
    ], className="form-row")


def _other_columns(query: dict[str, str]) -> html.A:
    differing = query.get("columns") == "different"
    return link("All columns" if differing else "Only what differs",
                address("/", **{**query, "columns": "" if differing else "different"}))


def _shown_as(shown: pl.DataFrame, by: list[str], query: dict[str, str]) -> Content:
    """By what runs are grouped, and which columns stay in sight."""
    names = run_sets.settings(shown)
    others = [name for name in run_sets.varied(shown) if name != "name"]
    everything = query.get("all") == "1"
    return [
        html.Label("Group by", htmlFor="runs-group"), _several("runs-group", names, by, "nothing"),
        link("all but the seed", address("/", **{**query, "group": ",".join(others)})) if others else None,
        html.Label("Pinned", htmlFor="runs-pin"),
        _several("runs-pin", [*shown.columns], query.get("pin", "").split(","), "the run alone"),
        link("Leave out runs that are not valid" if everything else "Count runs that are not valid, too",
             address("/", **{**query, "all": "" if everything else "1"})),
    ]


def _several(identifier: str, names: list[str], value: list[str], words: str) -> dcc.Dropdown:
    return dcc.Dropdown(id=identifier, multi=True, placeholder=words, className="several", value=[
        name for name in value if name in names], options=[{"label": TITLES.get(name, heading(name)), "value": name}
                                                           for name in names])


def _pinned(shown: pl.DataFrame, query: dict[str, str]) -> list[dict[str, Any]]:
    pinned, sorted_by = query.get("pin", "").split(","), _sorted_by(query)
    return [{**column, **({"pinned": "left"} if column["field"] in pinned else {}), **sorted_by.get(
        column["field"], {})}
            for column in columns(shown, query.get("columns") == "different")]


def alike(columns: list[dict[str, Any]], before: list[dict[str, Any]]) -> bool:
    """Whether these are the columns that stand there, however they are sorted by now."""
    one, other = ([{**column, "initialSort": None, "initialSortIndex": None} for column in each]
                  for each in (columns, before))
    return one == other


def _sorted_by(query: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Of each column that the rows are sorted by how, as an address has it: ``-started,name``."""
    names = [name for name in query.get("sort", "").split(",") if name.strip("-")]
    return {name.removeprefix("-"): {"initialSort": "desc" if name.startswith("-") else "asc", "initialSortIndex": at}
            for at, name in enumerate(names)}


def _filters(shown: pl.DataFrame, query: dict[str, str]) -> dict[str, Any]:
    """What columns are filtered by, as an address has it; nothing where that is not to be read."""
    try:
        told = json.loads(query.get("filter", ""))
    except ValueError:
        return {}
    return {name: asked for name, asked in told.items() if name in shown.columns and isinstance(asked, dict)} if (
        isinstance(told, dict)) else {}


def _grid(shown: pl.DataFrame, query: dict[str, str]) -> dag.AgGrid:
    return dag.AgGrid(
        id="runs-grid", rowModelType="infinite", columnDefs=_pinned(shown, query), filterModel=_filters(shown, query),
        defaultColDef={"sortable": True, "resizable": True, "minWidth": 90, "filter": "agTextColumnFilter",
                       "filterParams": {"maxNumConditions": 1, "buttons": ["reset"]}},
        getRowId="params.data.run",
        dashGridOptions={"cacheBlockSize": BLOCK, "maxBlocksInCache": 20, "rowHeight": 34, "headerHeight": 38,
                         "suppressColumnVirtualisation": True,
                         "rowSelection": {"mode": "multiRow", "enableClickSelection": True, "headerCheckbox": False}},
        rowClassRules={"not-valid": STRUCK_OUT,
                       "experiment-row": "params.data && params.data.runs"},
        className="runs-grid", style={"height": "calc(100vh - 300px)", "minHeight": "320px"},
    )


def _said(query: dict[str, str]) -> html.Div:
    """What can be said of the runs that are selected."""
    first = query.get("first", "")
    return html.Div([
        html.Span("No run is selected.", id="runs-selected", role="status"),
        html.Label("Tag", htmlFor="runs-tag"), dcc.Input(id="runs-tag", placeholder="name or name=value"),
        html.Button("Tag the selected", type="button", className="act", **{
            "data-act": "tag", "data-from": "runs-tag", "data-with": "selection"}),
        html.Button("Compare with the first side" if first else "Compare", type="button", id="runs-compare",
                    title="Two runs with each other; of one or several you choose the second side next"),
        html.Span(_first_side(query), id="runs-first-side"),
    ], className="form-row")


def _first_side(query: dict[str, str]) -> Content:
    first = query.get("first", "")
    return [f"The first side has {counted(len(first.split(',')), 'run')}: select those of the second. ",
            link("Forget it", address("/", **{**query, "first": ""}))] if first else []


def _groups(shown: pl.DataFrame, by: list[str], query: dict[str, str]) -> html.Section:
    kept = run_sets.counted(shown, query.get("all") == "1")
    names, rows, keys = run_sets.grouped(kept, by)
    heads = [Head(TITLES.get(name, heading(name)), text=name in by, unit="" if name in by else unit(name),
                  meaning=meaning(name)) for name in names]
    left_out = shown.height - kept.height
    words = [f"{counted(len(rows), 'group')} of {counted(kept.height, 'run')}: mean ± half of the 95 % interval (least "
             "– greatest), over runs."]
    words += [f"{number(left_out)} that are not valid are left out."] if left_out else []
    words += [f"The first {GROUPS_SHOWN} are shown."] if len(rows) > GROUPS_SHOWN else []
    asked = [" ".join([query.get("search", ""), *(f"{name}={shlex.quote(value)}" for name, value in zip(
        by, key, strict=True))]).strip() for key in keys]
    at = whole(query.get("reference", "")) or 0
    reference = asked[min(at, len(asked) - 1)] if asked else ""
    told = [[*row, "the reference" if search == reference else Link(
        "compare", address("/compare", first_search=reference, second_search=search), f"compare group {place + 1}"),
        Link("make it the reference", address("/", **{**query, "reference": place}), f"group {place + 1} as reference")]
        for place, (row, search) in enumerate(zip(rows[:GROUPS_SHOWN], asked, strict=False))]
    others = [search for search in asked if search != reference]
    if 1 < len(others) < len(ORDINALS):
        every = {f"{side}_search": search for side, search in zip(ORDINALS, (reference, *others), strict=False)}
        words_of_all: Content = [html.P(link("Compare all groups", address("/compare", **every)))]
    else:
        words_of_all = []
    return html.Section([html.P(" ".join(words), role="status"), *words_of_all, written_table(
        "Groups of runs", [*heads, Head("compared", text=True), Head("", text=True)], told)], className="panel")


def _views(store: Store) -> html.Div:
    """Saved views, and a name to save this one under."""
    found: Content = []
    for name, state in views(store).items():
        found += [html.Span([link(name, f"/{state}"), act("×", "drop-view", json.dumps({"view": name}),
                                                        label=f"Remove the view {name}")], className="view")]
    return html.Div([
        html.Span("Views"), *found, html.Label("Name", htmlFor="view-name"), dcc.Input(id="view-name"),
        html.Button("Save this view", type="button", className="act", **{
            "data-act": "save-view", "data-from": "view-name", "data-with": "address"}),
    ], className="form-row", role="group", **{"aria-label": "Saved views"})


def _figures(shown: pl.DataFrame, query: dict[str, str]) -> html.Section:
    """Figures of the runs that are selected, or of all that are shown."""
    names, measured = run_sets.settings(shown), run_sets.responses(shown)
    words = ("Of all runs that are shown while none is selected; of up to eight selected ones all deliveries, too. A "
             "click on a point opens its run.") if measured else (
        "The catalog has no metrics of these runs: mqttlab catalog scan takes them in.")
    titles = run_sets.titles(shown)
    chosen = [("x", [*names, *measured]), ("y", measured), ("colour", names)]
    return html.Section([
        html.H2("Figures of what is selected"),
        html.P(words, className="lead"),
        html.Div([part for name, options in chosen for part in (
            html.Label(name, htmlFor=f"runs-{name}"), dcc.Dropdown(
                id=f"runs-{name}", value=query.get(name) or None, className="axis-choice", placeholder="chosen for you",
                options=[{"label": titles[option], "value": option} for option in options]))], className="form-row"),
        html.Div(figures_of([], query, {name: query.get(name, "") for name, _ in chosen}) if measured else [],
                 id="runs-figures", className="figures"),
    ], className="panel")


def figures_of(names: list[str], query: dict[str, str], axes: dict[str, str]) -> Content:
    """The figures of these runs; of all that an address shows where none is named."""
    asked = {**{key: query.get(key, "") for key in STATE}, **axes, "runs": ",".join(names[:RUNS_IN_ADDRESS])}
    return [figure(name, run_sets.source(name, asked), across=name == "parallel") for name in run_sets.FIGURES
            if names or name not in ("cdf", "tail")]


def columns(runs: pl.DataFrame, differing: bool) -> list[dict[str, Any]]:
    """The grid's columns; with ``differing`` only those in which the rows are not all alike."""
    ordered = ["run", *(name for name in HEADLINE if name in runs.columns)]
    ordered += [name for name in runs.columns if name not in ordered]
    shown = [name for name in ordered
             if name in ALWAYS or not differing or runs[name].n_unique() > 1]
    return [_column(name, runs[name]) for name in shown if runs[name].null_count() < max(runs.height, 1)
            or name in ALWAYS]


def _column(name: str, values: pl.Series) -> dict[str, Any]:
    title = TITLES.get(name, heading(name) + (f" ({unit(name)})" if unit(name) else ""))
    # The grid has no rows yet when it is laid out, and they come block by block: the server knows how wide all are.
    longest = values.cast(pl.String).str.len_chars().max()
    longest = MOMENT_LETTERS if name == "started" else DIGITS if name in METRICS else longest
    letters = max(len(title) + 4, longest if isinstance(longest, int) else 0)
    made: dict[str, Any] = {"field": name, "headerName": title, "headerTooltip": meaning(name),
                            "width": min(COLUMN_PX_MAX, AROUND_PX + LETTER_PX * letters)}
    if name == "run":
        made |= {"cellRenderer": "RunLink", "pinned": "left", "minWidth": 120}
    if values.dtype.is_numeric():
        made |= {"filter": "agNumberColumnFilter", "type": "rightAligned"}
    return made


def selected(runs: pl.DataFrame, query: dict[str, str]) -> pl.DataFrame:
    """The rows that an address asks for: those in which every word of its search occurs, or ``column=word``; words with
    spaces stand in quotes."""
    for word in _words(query.get("search", "")):
        name, sign, value = word.partition("=")
        # A tag is sought as it was given: `why=trial`, too.
        known = next((column for column in (name, f"{TAG}{name}") if column in runs.columns), "")
        if sign and known:
            runs = runs.filter(pl.col(known).cast(pl.String).fill_null("") == value)
        else:
            runs = runs.filter(pl.any_horizontal(_holds(column, word) for column in runs.columns))
    return runs


def _words(search: str) -> list[str]:
    try:
        return shlex.split(search)
    except ValueError:
        # A quotation that somebody has begun, and not ended yet.
        return search.split()


def rows(runs: pl.DataFrame, request: dict[str, Any], query: dict[str, str] | None = None) -> dict[str, Any]:
    """A block of rows as the grid asks for it, with how many there are in all.

    The runs of an experiment are one row, unless the address opens it, or somebody searches or filters: what is sought
    is a run.
    """
    query = query or {}
    for name, condition in (request.get("filterModel") or {}).items():
        if name in runs.columns:
            runs = runs.filter(_condition(pl.col(name), condition))
    order = [(part["colId"], part["sort"] == "desc") for part in request.get("sortModel") or []
             if part["colId"] in runs.columns]
    if query.get("search") or request.get("filterModel"):
        runs = folding.ordered(runs, order)
    else:
        runs = folding.folded(runs, order, query.get("open", "").split(","))
    block = runs.slice(int(request["startRow"]), int(request["endRow"]) - int(request["startRow"]))
    return {"rowData": [_row(row, query) for row in block.iter_rows(named=True)], "rowCount": runs.height}


def _row(row: dict[str, Any], query: dict[str, str]) -> dict[str, Any]:
    shown = {name: float(f"{value:.4g}") if name in METRICS and isinstance(value, float) else value
             for name, value in row.items()}
    shown["started"] = (row["started"] or "")[:MOMENT_LETTERS].replace("T", " ")
    if not row.get(folding.RUNS):
        return {**shown, "href": address(f"/run/{row['run']}")}
    name, opened = row["run"], [one for one in query.get("open", "").split(",") if one]
    others = [one for one in opened if one != name]
    return {**shown, "href": address(f"/experiment/{name}"), "open": name in opened,
            "words": counted(len(row[folding.RUNS]), "run"),
            "fold": address("/", **{**query, "open": ",".join(others if name in opened else [*opened, name])})}


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
