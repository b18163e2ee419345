"""Compare: two runs or groups of runs side by side: scenario, metrics, quantiles, bars by QoS, message by message."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from mqttlab.comparison import ByMessage, Comparison, ComparisonError
from mqttlab.comparison.words import head, what_happened
from mqttlab.dashboard.comparisons import BY_QOS, FIGURES, SIDES, Comparisons, Shown
from mqttlab.dashboard.panels import Content, Head, address, figure, link, notice, written_table
from mqttlab.dashboard.store import Store
from mqttlab.report.comparison import answer, tables
from mqttlab.report.text import number

CHOOSE = ("Choose the two sides. The first is the reference.",
          "A side is a run, several runs, or all that a search of the table finds, such as: name=demo qos=1.",
          "On the page Runs, what is selected and what is grouped can be compared, too.")
NAMES_OFFERED = 1000
DIFFERING_SHOWN = 25
MESSAGES_SHOWN = 100


def page(store: Store, comparisons: Comparisons, query: dict[str, str]) -> html.Div:
    """The page: which two sides, and what differs.

    Raises:
        UnknownRun: a run is not there.
    """
    names = store.runs()["run"].to_list()
    try:
        found = comparisons.of(query)
        body = _compared(found, query) if found else [notice("note", CHOOSE[0], CHOOSE[1:])]
    except ComparisonError as error:
        body = [notice("problem", "These cannot be compared", error.problems)]
    return html.Div([
        html.H1("Compare"),
        html.Div([_side(place, name, query, names) for place, name in enumerate(SIDES)], className="sides"),
        *body,
    ])


def _side(place: int, name: str, query: dict[str, str], names: list[str]) -> html.Fieldset:
    """A side's fields: runs by name, or by a search."""
    title = name.capitalize()
    chosen = [run for run in query.get(name, "").split(",") if run]
    offered = dict.fromkeys([*chosen, *names[:NAMES_OFFERED]])
    other = SIDES[1 - place]
    turned = {name: query.get(other, ""), f"{name}_search": query.get(f"{other}_search", ""),
              other: query.get(name, ""), f"{other}_search": query.get(f"{name}_search", "")}
    return html.Fieldset([
        html.Legend(f"{title} side" + (", the reference" if place == 0 else "")),
        html.Div([html.Label(title, htmlFor=f"compare-{name}"), dcc.Dropdown(
            id=f"compare-{name}", value=chosen, options=list(offered), multi=True, placeholder="one or several runs",
            className="run-choice")], className="field-below"),
        html.Div([html.Label(f"{title}: or all that are found by", htmlFor=f"compare-{name}-search"), dcc.Input(
            id=f"compare-{name}-search", type="search", value=query.get(f"{name}_search", ""), debounce=0.5,
            placeholder="name=demo qos=1", className="wide")], className="field-below"),
        link("Swap", address("/compare", **turned)) if place else None,
    ])


def _compared(found: Shown, query: dict[str, str]) -> Content:
    comparison = found.comparison
    words = [verdict.word for row in comparison.rows if (verdict := row.verdict)]
    told = answer.answer(comparison)
    shown = {one: figure(one, _source(one, query)) for one in FIGURES}
    made: Content = [
        notice("not-valid" if told.cautions else "note", told.sentence,
               [*told.cautions, told.basis, *_runs(comparison)]),
        _answer(told),
        _scenarios(comparison),
        html.Div([shown[name] for name in BY_QOS], className="figures"),
        _metrics(comparison),
        shown["ratios"] if words else None,
    ]
    if comparison.shifts:
        made += [_panel("Latency, quantile by quantile", tables.quantiles(comparison.shifts), 2),
                 html.Div([shown["latency-cdf"], shown["quantile-shifts"]], className="figures")]
    try:
        pairs = comparison.by_message
    except ComparisonError as error:
        return [*made, notice("note", "Message by message", error.problems)]
    more = [notice("note", f"Message by message: the first of {number(len(pairs))} pairs", [
        "Each pair of runs has the same random streams."])] if len(pairs) > 1 else []
    return [*made, *more, *_pair(pairs[0]), shown["latency-in-both"]]


def _answer(told: answer.Answer) -> html.Section:
    """What differs, biggest first, and what does not."""
    table = _table("What differs, biggest first", answer.table(told.differing), 2) if told.differing else None
    return html.Section([html.H2("What differs, biggest first"), table,
                         *(html.P(words) for words in answer.rest(told))], className="panel")


def _source(name: str, query: dict[str, str]) -> str:
    kept = {key: query.get(key, "") for side in SIDES for key in (side, f"{side}_search")}
    return address(f"/data/compare/figure/{name}.json", **kept)


def _runs(comparison: Comparison) -> list[str]:
    """How many runs each side has, and which of them do not count."""
    said = []
    for name, side in zip(SIDES, (comparison.first, comparison.second), strict=True):
        said.append(f"{name.capitalize()}: {side.label}" + (
            f", {number(len(side.recordings))} runs" if len(side.recordings) > 1 else ""))
    return said


def _scenarios(comparison: Comparison) -> html.Section:
    """In what the two differ: the scenarios as written, and behind them the plans."""
    table = tables.scenarios(comparison)
    if table is None:
        said: Any = html.P("A recording does not have the scenario that it was made from; the plans tell.")
    elif table[1]:
        said = written_table("The scenarios differ in", [Head(words, text=True) for words in table[0]], table[1],
                             wraps=True)
    else:
        said = html.P("Nothing: both sides were made from the same scenario.")
    plans = html.Details([html.Summary("The plans differ in"), html.P(comparison.design),
                          html.Ul([html.Li(line) for line in tables.knobs(comparison)])], open=table is None)
    return html.Section([html.H2("The scenarios differ in"), said, plans], className="panel")


def _metrics(comparison: Comparison) -> html.Section:
    """What differs; behind it all metrics, which can be searched."""
    differing, several = comparison.differing, any(row.verdict for row in comparison.rows)
    words = f"{number(len(differing))} of {number(len(comparison.rows))} metrics "
    words += "differ by their verdicts" if several else f"differ by more than {comparison.tolerance_percent:g} %"
    words += f"; the {DIFFERING_SHOWN} that differ most:" if len(differing) > DIFFERING_SHOWN else "."
    shown = tables.metrics(comparison, differing[:DIFFERING_SHOWN])
    first = [_table("Metrics that differ", shown, 2)] if differing else []
    return html.Section([
        html.H2("Metrics"), html.P(words, role="status"), *first,
        html.Details([html.Summary(f"All {number(len(comparison.rows))} metrics"),
                      _table("All metrics", tables.metrics(comparison), 2, filtered=True)])], className="panel")


def _pair(pair: ByMessage) -> Content:
    """What became of the messages, and of those that differ what made the difference."""
    different = pair.different
    told = [[head(record), " ".join(what_happened(pair, record))]
            for record in different.head(MESSAGES_SHOWN).iter_rows(named=True)]
    words = f"{number(different.height)} of {number(pair.together.height)} messages and receivers differ"
    words += f"; the first {MESSAGES_SHOWN}:" if different.height > MESSAGES_SHOWN else "."
    return [
        html.Div([_panel("What became of each message", tables.fates(pair), 2),
                  None if different.is_empty() else _panel("Messages that differ", tables.reasons(pair), 1)],
                 className="tables"),
        html.Section([html.H2("Message by message"), html.P(words), written_table(
            "Message by message", [Head("message, first → second", text=True), Head("why", text=True)], told,
            wraps=True)], className="panel"),
    ]


def _panel(title: str, table: tables.Table, left: int) -> html.Section:
    """A table of a comparison: its first columns are names."""
    return html.Section([html.H2(title), _table(title, table, left)], className="panel")


def _table(title: str, table: tables.Table, left: int, filtered: bool = False) -> html.Div:
    heads, rows = table
    return written_table(title, [Head(words, text=place < left) for place, words in enumerate(heads)], rows,
                         filtered=filtered)
