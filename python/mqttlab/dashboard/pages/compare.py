"""Compare: two runs side by side, metric by metric, quantile by quantile, message by message."""

from __future__ import annotations

from dash import dcc, html

from mqttlab.comparison import ByMessage, Comparison, ComparisonError, compare
from mqttlab.dashboard.panels import Content, Head, notice, written_table
from mqttlab.dashboard.store import Store
from mqttlab.report.comparison import tables

WORDS = ("better", "worse", "equivalent", "different", "undecided")


def page(store: Store, query: dict[str, str]) -> html.Div:
    """The page: which two, and what differs.

    Raises:
        UnknownRun: one of them is no run.
        ComparisonError: they cannot be compared.
    """
    names = store.runs()["run"].to_list()
    first, second = query.get("first", ""), query.get("second", "")
    body = _compared(compare(str(store.place(first)), str(store.place(second)))) if first and second else [
        notice("note", "Choose two runs. The first is the reference.")]
    return html.Div([
        html.H1("Compare"),
        html.Div([_side("First", "compare-first", first, names), _side("Second", "compare-second", second, names)],
                 className="form-row"),
        *body,
    ])


def _side(label: str, identifier: str, value: str, names: list[str]) -> html.Div:
    return html.Div([html.Label(label, htmlFor=identifier), dcc.Dropdown(
        id=identifier, value=value or None, options=names, placeholder="a run", className="run-choice")],
        className="field-below")


def _compared(comparison: Comparison) -> Content:
    found = [verdict.word for row in comparison.rows if (verdict := row.verdict)]
    counts = ", ".join(f"{found.count(word)} {word}" for word in WORDS if word in found)
    kind = "not-valid" if "worse" in found else "note"
    made: Content = [
        notice(kind, counts or "One run each", [comparison.design, *tables.remarks(comparison)]),
        html.Section([html.H2("The plans differ in"), html.Ul([html.Li(line) for line in tables.knobs(comparison)])],
                     className="panel"),
        _panel("Metrics", tables.metrics(comparison), 2),
    ]
    if comparison.shifts:
        made.append(_panel("Latency, quantile by quantile", tables.quantiles(comparison.shifts), 2))
    try:
        pairs = comparison.by_message
    except ComparisonError as error:
        return [*made, notice("note", "Message by message", error.problems)]
    return [*made, *(panel for pair in pairs for panel in _pair(pair))]


def _pair(pair: ByMessage) -> Content:
    return [_panel("What became of each message", tables.fates(pair), 2),
            _panel("Messages that differ", tables.reasons(pair), 1)]


def _panel(title: str, table: tables.Table, left: int) -> html.Section:
    """A table of a comparison: its first columns are names."""
    heads, rows = table
    return html.Section([html.H2(title), written_table(
        title, [Head(words, text=place < left) for place, words in enumerate(heads)], rows)], className="panel")
