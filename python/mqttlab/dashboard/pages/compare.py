"""Compare: runs or groups of runs side by side: scenario, metrics, quantiles, bars by QoS, message by message."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from mqttlab.comparison import ByMessage, Comparison, ComparisonError
from mqttlab.comparison.words import head, what_happened
from mqttlab.dashboard.comparisons import BY_QOS, FIGURES, SIDES, Comparisons, Shown, chosen, without_gaps
from mqttlab.dashboard.panels import Content, Head, address, figure, link, notice, written_table
from mqttlab.dashboard.store import Store
from mqttlab.digits import plain
from mqttlab.report.comparison import answer, several, tables
from mqttlab.report.comparison.drawn import ordinal, sides_of
from mqttlab.report.text import number

CHOOSE = ("Choose two sides or more. The first is the reference.",
          "A side is a run, several runs, or all that a search of the table finds, such as: name=demo qos=1.",
          "On the page Runs, what is selected and what is grouped can be compared, too.")
NAMES_OFFERED = 1000
DIFFERING_SHOWN = 25
MESSAGES_SHOWN = 100


def page(store: Store, comparisons: Comparisons, query: dict[str, str]) -> html.Div:
    """The page: which sides, and what differs.

    Raises:
        UnknownRun: a run is not there.
    """
    names, query = store.runs()["run"].to_list(), without_gaps(query)
    try:
        found = comparisons.of(query)
        body = _compared(found, query) if found else [notice("note", CHOOSE[0], CHOOSE[1:])]
    except ComparisonError as error:
        body = [notice("problem", "These cannot be compared", error.problems)]
    sides = [_side(place, name, query, names) for place, name in enumerate(SIDES)]
    return html.Div([
        html.H1("Compare"),
        html.Div(sides[:2], className="sides"),
        html.Details([html.Summary("More sides"), html.Div(sides[2:], className="sides")],
                     open=any(chosen(name, query) for name in SIDES[2:])),
        *body,
    ])


def _side(place: int, name: str, query: dict[str, str], names: list[str]) -> html.Fieldset:
    """A side's fields: runs by name, or by a search."""
    title = name.capitalize()
    asked = [run for run in query.get(name, "").split(",") if run]
    offered = dict.fromkeys([*asked, *names[:NAMES_OFFERED]])
    # This side as the reference, and the reference in its place.
    turned = {f"{one}{of}": query.get(f"{other}{of}", "") for one, other in ((name, SIDES[0]), (SIDES[0], name))
              for of in ("", "_search")}
    return html.Fieldset([
        html.Legend(f"{title} side" + (", the reference" if place == 0 else "")),
        html.Div([html.Label(title, htmlFor=f"compare-{name}"), dcc.Dropdown(
            id=f"compare-{name}", value=asked, options=list(offered), multi=True, placeholder="one or several runs",
            className="run-choice")], className="field-below"),
        html.Div([html.Label(f"{title}: or all that are found by", htmlFor=f"compare-{name}-search"), dcc.Input(
            id=f"compare-{name}-search", type="search", value=query.get(f"{name}_search", ""), debounce=0.5,
            placeholder="name=demo qos=1", className="wide")], className="field-below"),
        link("Swap" if place == 1 else "Swap with the first", address("/compare", **{**query, **turned}))
        if place == 1 or (place and chosen(name, query)) else None,
    ])


def _compared(found: Shown, query: dict[str, str]) -> Content:
    if len(found.comparisons) > 1:
        return _several(found, query)
    [comparison] = found.comparisons
    words = [verdict.word for row in comparison.rows if (verdict := row.verdict)]
    told = answer.answer(comparison)
    shown = {one: figure(one, _source(one, query)) for one in FIGURES}
    made: Content = [
        notice("not-valid" if told.cautions else "note", told.sentence,
               [*told.cautions, told.basis, *_runs(found)]),
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


def _several(found: Shown, query: dict[str, str]) -> Content:
    """More than two sides: each against the first, then one table with a column for each."""
    said, labels = several.said(found.comparisons), several.labels(found.comparisons)
    first, *more = said.sentences
    table = several.table(said.differing, labels)
    pairs = [link(f"{ordinal(place)} against the first: {label}", address("/compare", **_pair_of(place, query)))
             for place, label in enumerate(labels) if place]
    return [
        notice("not-valid" if said.cautions else "note", first, [*more, *said.cautions, *said.bases, *_runs(found)]),
        html.Section([html.H2("Each against the first"),
                      _table("Each against the first", table, 2) if said.differing else None,
                      *(html.P(words) for words in said.notes)], className="panel"),
        html.Div([figure(name, _source(name, query)) for name in ("latency-cdf", *BY_QOS)], className="figures"),
        html.Section([html.H2("Two at a time, with every metric"), html.Ul([html.Li(one) for one in pairs])],
                     className="panel"),
    ]


def _answer(told: answer.Answer) -> html.Section:
    """What differs, biggest first, and what does not."""
    table = _table("What differs, biggest first", answer.table(told.differing), 2) if told.differing else None
    return html.Section([html.H2("What differs, biggest first"), table,
                         *(html.P(words) for words in answer.rest(told))], className="panel")


def _source(name: str, query: dict[str, str]) -> str:
    kept = {key: query.get(key, "") for side in SIDES for key in (side, f"{side}_search")}
    return address(f"/data/compare/figure/{name}.json", **kept)


def _pair_of(place: int, query: dict[str, str]) -> dict[str, str]:
    """The address of one side against the first."""
    return {f"{name}{of}": query.get(f"{side}{of}", "") for name, side in (("first", "first"), ("second", SIDES[place]))
            for of in ("", "_search")}


def _runs(found: Shown) -> list[str]:
    """How many runs each side has, and which of them do not count."""
    return [f"{ordinal(place).capitalize()}: {side.label}" + (
        f", {number(len(side.recordings))} runs" if len(side.recordings) > 1 else "")
        for place, side in enumerate(sides_of(found.comparisons))]


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
    words += "differ by their verdicts" if several else f"differ by more than {plain(comparison.tolerance_percent)} %"
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
