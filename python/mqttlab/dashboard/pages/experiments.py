"""Experiments: which there are, and of one its design as a matrix of points and blocks with the runs' states."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from dash import html

from mqttlab.analysis import Analysis, Judged, Response
from mqttlab.dashboard.experiment_figures import Analyses
from mqttlab.dashboard.panels import (
    Coloured,
    Content,
    Head,
    Link,
    address,
    facts,
    figure,
    link,
    notice,
    written_table,
)
from mqttlab.dashboard.store import Store, UnknownRun
from mqttlab.errors import MqttlabError
from mqttlab.experiment_answers import listed
from mqttlab.experiments import ExperimentDirectory, ExperimentError, find_experiments
from mqttlab.experiments.journal import RunRecord
from mqttlab.plurals import counted
from mqttlab.report.experiment import answer, tables
from mqttlab.report.experiment.page import ROWS_OPEN
from mqttlab.report.text import heading, number

SIGNS = {"done": "✓ done", "running": "● running", "invalid": "✕ not valid", "incomplete": "… incomplete",
         "failed": "✕ failed",
         "aborted": "✕ ended by a threshold", "stale": "– stale"}
KINDS = {"broken": "problem", "undecided": "incomplete", "held": "valid", "none": "note"}
VERDICTS = {"broken": ("✕", "failed"), "undecided": ("?", "running"), "held": ("✓", "done")}
"""Of thresholds: a sign, and the state whose colour it has."""
VALUES_SHOWN = 500
# Figures of a response that stand open: by factor, and its means.
FIGURES_OPEN = 2


def page(store: Store) -> html.Div:
    """All experiments below the runs."""
    found = listed(store.directory)
    if not found:
        return html.Div([html.H1("Experiments"), notice("note", "There are no experiments here yet.", [
            "mqttlab experiment FILE makes one."])])
    heads = [Head(words, text=True) for words in ("experiment", "answer", "question", "state", "date (UTC)")]
    rows = [[Link(each.name, address(f"/experiment/{each.name}")), each.answer, each.question,
             Coloured(each.state, {"broken": "failed", "held": "done"}[each.verdict])
             if each.verdict in ("broken", "held") else each.state,
             each.date[:16].replace("T", " ")] for each in found]
    return html.Div([html.H1("Experiments"), html.Section([
        written_table("Experiments", heads, rows, wraps=True)], className="panel")])


def one(store: Store, name: str, analyses: Analyses | None = None) -> html.Div:
    """One experiment: its question, its answer, its matrix, its values run by run.

    Raises:
        UnknownRun: there is none of this name.
        ExperimentError: it cannot be read.
    """
    if name not in {path.name for path in find_experiments(store.directory)}:
        raise UnknownRun(f"there is no experiment {name!r} in {store.directory}")
    directory = ExperimentDirectory.open(store.directory / name)
    runs, pending = directory.runs(), len(directory.pending())
    design, file = directory.design, directory.experiment.file
    counts = {state: sum(run.state == state for run in runs) for state in SIGNS}
    known = [("design", design.kind), ("points", number(len(design.points))),
             *((state, number(count)) for state, count in counts.items() if count), ("to be done", number(pending))]
    place = store.directory / name
    return html.Div([
        html.P([link("Experiments", "/experiments"), " › ", name], className="crumbs"),
        html.H1(name), html.P(file.question, className="lead"),
        *_answered(analyses or Analyses(store), name,
                   lambda judged: html.Section([html.H2("Design"), facts(known),
                                                _matrix(directory, runs, name, judged)], className="panel"),
                   len(design.points)),
        folded("Values, run by run", [_values(directory, name)]),
        html.Section([html.H2("The same as one file"), html.Pre(f"mqttlab report {place}", tabIndex=0)],
                     className="panel"),
    ])


def _answered(
    analyses: Analyses, name: str, design: Callable[[Sequence[Judged]], html.Section], points: int,
) -> Content:
    """What it says so far: its answer, thresholds and costs, then the figures of each response.

    Statistics and design are folded; the design is open as long as it is all there is to see.
    """
    try:
        analysis, drawn = analyses.of(name)
    except ExperimentError as error:
        return [notice("note", "It says nothing yet.", error.problems), design(())]
    told = answer.answer(analysis)
    first, *more = told.sentences or (tables.headline(analysis),)
    found: Content = [notice(KINDS[told.state], first, [*more, tables.headline(analysis) + ".",
                                                       *tables.facts(analysis)])]
    heads, rows = answer.thresholds(analysis)
    costs = answer.costs(analysis)
    if rows:
        found.append(_long(_panel("Thresholds", (heads, [(
            Coloured(f"{VERDICTS[word][0]} {word}", VERDICTS[word][1]), *more) for word, *more in rows]), 4),
            "Thresholds: " + ", ".join(f"{count} {word}" for word in VERDICTS
                                       if (count := [row[0] for row in rows].count(word))), len(rows)))
    if costs[1]:
        panel = _panel("What it costs", costs, 1, " ".join(analysis.costs_unknown))
        found.append(_long(panel, f"What it costs: {len(costs[1])} points", len(costs[1])))
    if analysis.recommendations is not None:
        found.append(_panel("Recommendation", answer.recommendations(analysis),
                            answer.words_of_choices(analysis), analysis.recommendations.rule))
    for place, each in enumerate(analysis.responses):
        if not each.varies:
            found.append(html.P(tables.constant(each)))
            continue
        first, more = _figures_of(name, drawn, place)
        found += [html.H2(each.label), first, folded(f"Statistics of {each.label}", [
            *_statistics(analysis, each), *more])]
    if "variation" in drawn:
        found.append(folded("Where the variation comes from", [
            html.Div([_figure(name, "variation")], className="figures")]))
    found.append(folded(f"Design: {counted(points, 'point')}, with the state of each run", [
        design(analysis.thresholds)]))
    return found


def _figures_of(name: str, drawn: Collection[str], place: int) -> tuple[html.Div, Content]:
    """The figures of a response: those that show its points, and the statistics' own."""
    its = [of for of in drawn if of.startswith(f"response-{place}-")]
    parts = [html.Div([_figure(name, of) for of in some], className="figures")
             for some in (its[:FIGURES_OPEN], its[FIGURES_OPEN:])]
    return parts[0], parts[1:] if its[FIGURES_OPEN:] else []


def _statistics(analysis: Analysis, each: Response) -> Content:
    """Points, what varies them, effects and trends of a response, as tables."""
    found = [_panel(f"{each.label}: points", tables.points(analysis, each), 1)]
    if each.model is not None:
        found += [_panel(f"{each.label}: what the variation comes from", tables.variation(each), 1),
                  _panel(f"{each.label}: effects", tables.effects(each), 2)]
    if each.lines:
        found.append(_panel(f"{each.label}: trends", tables.trends(each), 5))
    return found


def _long(panel: html.Section, summary: str, rows: int) -> html.Section | html.Details:
    """A panel as it is, or folded where its table is long."""
    return folded(summary, [panel]) if rows > ROWS_OPEN else panel


def folded(summary: str, parts: Content) -> html.Details:
    """What is read after the answer, by those who ask for it."""
    return html.Details([html.Summary(summary), *parts], className="panel folded")


def _figure(name: str, of: str) -> html.Section:
    return figure(of, address(f"/data/experiment/{name}/figure/{of}.json"))


def _panel(
    title: str, table: tuple[Sequence[str], Sequence[Sequence[object]]], left: int, words: str = "",
) -> html.Section:
    heads, rows = table
    return html.Section([html.H3(title), html.P(words) if words else None, written_table(
        title, [Head(head, text=place < left) for place, head in enumerate(heads)], rows)], className="panel")


def matrix_of(store: Store, name: str) -> Content:
    """The matrix of an experiment that goes on; a word where it has not begun."""
    try:
        directory = ExperimentDirectory.open(store.directory / name)
    except MqttlabError:
        return [html.P("It is getting ready.")]
    return [_matrix(directory, directory.runs(), name)]


def _matrix(
    directory: ExperimentDirectory, runs: list[RunRecord], name: str, judged: Sequence[Judged] = (),
) -> html.Div:
    """A row for each point, a column for each block; of several attempts the last.

    Where thresholds are judged, the colour of a point is theirs: a run that is done is no good news by itself.
    """
    factors = [factor.name for factor in directory.design.factors]
    last = {(run.point, run.block): run for run in runs if run.kind == "run"}
    blocks = sorted({block for _, block in last}) or [0]
    heads = [*(Head(factor, text=True) for factor in factors),
             *([Head("thresholds", text=True)] if judged else []),
             *(Head(f"block {block + 1}", text=True) for block in blocks)]
    rows = [[*(point.levels[factor].text if factor in point.levels else "" for factor in factors),
             *([_verdict([each.verdict for each in judged if each.key == point.key])] if judged else []),
             *(_state(last.get((point.number, block)), name, plain=bool(judged)) for block in blocks)]
            for point in directory.design.points]
    return written_table("Design: points and blocks", heads, rows)


def _verdict(verdicts: Sequence[str]) -> str | Coloured:
    """What became of a point's thresholds: the worst, with how many of them; in words beside its colour."""
    worst = next((word for word in VERDICTS if word in verdicts), None)
    if worst is None:
        return "none is about this point"
    sign, state = VERDICTS[worst]
    count = list(verdicts).count(worst)
    share = "" if count == len(verdicts) else f"{count} of {len(verdicts)} "
    return Coloured(f"{sign} {share}{worst}", state)


def _state(run: RunRecord | None, name: str, *, plain: bool) -> str | Link | Coloured:
    if run is None:
        return "○ to be done"
    sign = SIGNS.get(run.state, run.state)
    if run.state == "running" or "://" in run.directory or run.verdict == "failed":
        return Coloured(sign, "running" if run.state == "running" else "failed")
    words = ", ".join(f"{factor} {level}" for factor, level in run.levels.items())
    return Link(sign, address(f"/run/{name}/{run.directory}"), f"{sign}: {words}, block {run.block + 1}",
                ("" if plain else "done") if run.state == "done" else "failed")


def _values(directory: ExperimentDirectory, name: str) -> html.Div | html.P:
    table = directory.table()
    if table.is_empty():
        return html.P("No run has ended yet.")
    factors = [factor.name for factor in directory.design.factors]
    heads = [Head("run", text=True), *(Head(factor, text=True) for factor in factors), Head("block"),
             Head("state", text=True), Head("metric", text=True), Head("scope", text=True), Head("value"),
             Head("unit", text=True)]
    rows = [[Link(row["run"][-6:], address(f"/run/{name}/{row['directory']}"), f"run {row['run']}")
             if "://" not in row["directory"] and row["state"] == "done" else row["run"][-6:],
             *(str(row[factor]) for factor in factors), row["block"] + 1, row["state"],
             heading(row["metric"]) if row["metric"] else None,
             " ".join(filter(None, (row["scope"], row["scope_name"]))), row["value"], row["unit"]]
            for row in table.head(VALUES_SHOWN).iter_rows(named=True)]
    return written_table("Values, run by run", heads, rows)
