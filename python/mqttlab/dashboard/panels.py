"""What every page is made of: tables that can be read aloud, figures with their numbers beside them, facts, notices.

A figure comes after the page, so that the page is there at once; with it comes its twin, a table of what it shows, and
links to the same as CSV, SVG and PNG. React escapes all text: a topic or a client's name is never markup.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import polars as pl
from dash import html

from mqttlab.dashboard.legible import legible_json
from mqttlab.figures.drawing import Figure
from mqttlab.figures.style import DARK
from mqttlab.report.text import heading, meaning, number, unit

Content = list[Any]
"""Components, one below another."""
TWIN_ROWS = 100
ROWS_SHOWN = 100
# Beyond these a table scrolls within itself, under its headings.
ROWS_OPEN = 30
# Of a series. Without WebGL a point is an element of the page (:func:`themed`), and with six thousand of them a figure
# takes a second to draw; looking closer shows the others.
MARKERS_MAX = 1_000


def address(path: str, **query: Any) -> str:
    """An address within the dashboard; what is none or empty is left out."""
    kept = {key: value for key, value in query.items() if value not in (None, "")}
    return quote(path, safe="/") + (f"?{urlencode(kept)}" if kept else "")


def link(text: str, to: str, **attributes: Any) -> html.A:
    """A link to another page of the dashboard, which changes the page without loading it anew."""
    return html.A(text, href=to, **{"className": "page-link", **attributes})


def facts(rows: Sequence[tuple[str, str]]) -> html.Dl:
    """Labels and values."""
    return html.Dl([html.Div([html.Dt(label), html.Dd(value)]) for label, value in rows], className="facts")


def notice(kind: str, title: str, lines: Sequence[str] = ()) -> html.Div:
    """Something that must be seen: ``valid``, ``not-valid``, ``incomplete``, ``problem`` or ``note``."""
    return html.Div([html.P(title, className="notice-title"), html.Ul([html.Li(line) for line in lines])],
                    className=f"notice {kind}", role="alert" if kind == "problem" else "note")


def table(title: str, rows: pl.DataFrame, columns: Sequence[str], *, csv: str = "", words: str = "") -> html.Section:
    """A frame as a table whose headings explain themselves; of many rows the first hundred."""
    present = [column for column in columns if column in rows.columns]
    shown = rows.head(ROWS_SHOWN)
    cut = f" The first {ROWS_SHOWN} of {number(rows.height)} rows." if rows.height > ROWS_SHOWN else ""
    return html.Section(
        [html.H3(title), html.P(words + cut) if words or cut else None, plain_table(title, shown, present),
         html.P(html.A("CSV", href=csv, download="", **{"aria-label": f"{title} as CSV"}), className="links")
         if csv else None],
        className="panel",
    )


def plain_table(caption: str, rows: pl.DataFrame, columns: Sequence[str]) -> html.Div:
    """The table alone, in a box that scrolls, by keyboard too."""
    heads = [Head(heading(column), unit=unit(column), meaning=meaning(column), text=rows.schema[column] == pl.String)
             for column in columns]
    return written_table(caption, heads, [list(row) for row in rows.select(columns).rows()])


@dataclass(frozen=True)
class Head:
    """A column's heading."""

    title: str
    text: bool = False
    unit: str = ""
    meaning: str = ""


@dataclass(frozen=True)
class Cell:
    """What stands in a table and is more than a number or words."""


@dataclass(frozen=True)
class Link(Cell):
    """A cell that leads to another page."""

    title: str
    to: str
    label: str = ""
    """What is read aloud, where the title alone does not say where it leads."""
    state: str = ""
    """What colours it: ``done``, ``running`` or ``failed``."""


@dataclass(frozen=True)
class Coloured(Cell):
    """A cell whose words have a colour, too."""

    words: str
    state: str


@dataclass(frozen=True)
class Carried(Cell):
    """A cell that shows what a message carried."""

    kind: str
    text: str
    to: str
    """Where its bytes are."""
    picture: str = ""
    """Where its picture is."""


@dataclass(frozen=True)
class Act(Cell):
    """A cell that is a button; what it does is asked of :mod:`mqttlab.dashboard.actions`."""

    title: str
    act: str
    value: str
    label: str = ""


def written_table(caption: str, heads: Sequence[Head], rows: Sequence[Sequence[Any]], name: str = "",
                  wraps: bool = False, filtered: bool = False) -> html.Div:
    """A table of any cells: numbers, texts, :class:`Link`, :class:`Act`.

    The browser builds it from data (``assets/a-tables.js``): thousands of cells as components of their own would take
    Dash a minute.

    Args:
        caption: what is read aloud.
        heads: a heading for each column.
        rows: the cells.
        name: under which a page that goes on finds it again, to give it other rows.
        wraps: whether its texts are sentences.
        filtered: whether a field stands above it that keeps only the rows with what is typed.
    """
    told = {**told_table(caption, heads, rows), "filtered": filtered}
    kinds = ("scroll rows", "wraps" if wraps else "", "many" if len(rows) > ROWS_OPEN else "")
    return html.Div(className=" ".join(filter(None, kinds)), tabIndex=0, role="region",
                    **{"aria-label": f"{caption}, table", "data-rows": rows_json(told), "data-table": name})


def rows_json(told: dict[str, Any]) -> str:
    """What the browser builds a table from, as JSON that stands within JSON: there nothing else looks into it."""
    return legible_json(json.dumps(told))


def told_table(caption: str, heads: Sequence[Head], rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """What the browser builds a table from."""
    return {"caption": caption, "heads": [vars(head) for head in heads],
            "rows": [[vars(value) if isinstance(value, Cell) else number(value) for value in row] for row in rows]}


def act(title: str, name: str, value: str = "", *, label: str = "", main: bool = False) -> html.Button:
    """A button that asks :mod:`mqttlab.dashboard.actions` for something."""
    return html.Button(title, type="button", className="act main" if main else "act", **{
        "data-act": name, "data-value": value, **({"aria-label": label} if label else {})})


def figure(name: str, source: str, *, over_time: bool = False, version: str = "",
           across: bool = False) -> html.Section:
    """A figure's place: the browser asks for it when the page is there (``assets/a-figures.js``).

    Args:
        name: names the files that it can be saved as.
        source: the address of its JSON; with ``.csv`` in place of ``.json`` that of its numbers.
        version: another one asks for the figure again.
        over_time: whether its horizontal axis is the run's time, which all such figures of a page share.
        across: whether it is as wide as the page.
    """
    words = name.replace("-cdf", ", cumulative").replace("-", " ").capitalize()
    return html.Section(
        [
            html.H3(words),
            html.Div(className="plot over-time" if over_time else "plot", role="figure",
                     **{"data-source": source, "data-version": version, "data-name": name, "aria-label": words}),
            html.P([html.A("CSV", href=source.replace(".json", ".csv"), download="", className="csv",
                           **{"aria-label": f"{words} as CSV"}),
                    _picture("SVG", name), _picture("PNG", name)], className="links"),
            html.Details([html.Summary("The figure as a table"), html.Div(className="twin")]),
        ],
        className="panel figure-panel across" if across else "panel figure-panel",
    )


def _picture(form: str, name: str) -> html.Button:
    return html.Button(form, type="button", className="picture", **{
        "data-format": form.lower(), "data-name": name, "aria-label": f"{name} as {form}"})


def themed(drawn: Figure, theme: str) -> Figure:
    """A figure as it stands on the page: its title is the page's, and its ground too."""
    dark = theme == "dark"
    ink, faint, lines = ("#e6ebf0", "#9aa7b4", "#34414e") if dark else ("#1c2733", "#8a8f98", "#e6e8eb")
    figure = drawn.copy().update_layout(
        title=None, paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", font={"color": ink},
        margin={"l": 64, "r": 16, "t": 40, "b": 52})
    figure.update_xaxes(gridcolor=lines, linecolor=faint).update_yaxes(gridcolor=lines, linecolor=faint)
    # WebGL needs scripts that make scripts, which the page's policy forbids; so many points need none.
    for trace in figure.data:
        if trace["type"] == "scattergl":
            trace["type"] = "scatter"
        if dark:
            _lighten(trace)
    if dark:
        # Lists are the same in both figures: what is in them is replaced, not changed.
        for name in ("shapes", "annotations"):
            if figure.layout.get(name):
                figure.layout[name] = [_lighten(deepcopy(part)) for part in figure.layout[name]]
    return figure


def _lighten(part: dict[str, Any]) -> dict[str, Any]:
    """Colours that are too dark for a dark ground, in all of a part of a figure."""
    for name, value in part.items():
        if isinstance(value, dict):
            _lighten(value)
        elif name in ("color", "fillcolor"):
            part[name] = [_lighter(one) for one in value] if isinstance(value, (list, tuple)) else _lighter(value)
    return part


def _lighter(colour: Any) -> Any:
    return DARK.get(str(colour).upper(), colour)


def answer(drawn: Figure, theme: str, *, over_time: bool = False, shown: tuple[float, float] | None = None) -> str:
    """A figure as the browser gets it, in JSON: ``title``, ``figure``, and ``twin``: ``columns``, ``rows``, ``total``.

    Args:
        drawn: the figure.
        theme: ``dark`` or ``light``.
        over_time: drawn lower, because several stand below one another.
        shown: the range of its horizontal axis; all when left out.
    """
    rows = twin(drawn)
    title = str(drawn.layout.title.text or "")
    on_page = themed(drawn, theme)
    if over_time:
        on_page.update_layout(height=300)
    if shown is not None:
        on_page.update_xaxes(range=list(shown))
    some = [[number(value) for value in row] for row in rows.head(TWIN_ROWS).rows()]
    table = json.dumps({"columns": rows.columns, "rows": some, "total": rows.height})
    # A title may be any text.
    return f'{{"title": {json.dumps(title)}, "twin": {table}, "figure": {on_page.to_json()}}}'


def twin(drawn: Figure) -> pl.DataFrame:
    """What a figure shows, as a table: a row for each point, bar or box, and which series it is of."""
    x = str(drawn.layout.xaxis.title.text or "x")
    y = str(drawn.layout.yaxis.title.text or "y")
    x, y = (x, y) if x != y else ("x", "y")
    parts = []
    for trace in drawn.data:
        series = str(trace.get("name") or "")
        if trace["type"] == "heatmap":
            cells = [(series, str(column), str(row), value) for row, values in zip(trace["y"], trace["z"], strict=True)
                     for column, value in zip(trace["x"], values, strict=True)]
            parts.append(pl.DataFrame(cells, schema=["series", x, y, "value"], orient="row"))
            continue
        if trace["type"] == "box" and "q1" in trace:
            keys = ("lowerfence", "q1", "median", "mean", "q3", "upperfence")
            parts.append(pl.DataFrame({"series": [series], **{key: [float(trace[key][0])] for key in keys}}))
            continue
        xs, ys = list(trace.get("x", ())), list(trace.get("y", ()))
        columns = {x: _column(xs), y: _column(ys)}
        parts.append(pl.DataFrame({"series": [series] * len(xs), **columns}))
    return pl.concat(parts, how="diagonal_relaxed") if parts else pl.DataFrame()


def _column(values: list[Any]) -> pl.Series:
    if all(isinstance(value, (int, float)) or value is None for value in values):
        return pl.Series([None if value is None else float(value) for value in values], dtype=pl.Float64)
    return pl.Series([str(value) for value in values])
