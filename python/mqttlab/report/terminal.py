"""The table at the end of a run."""

from __future__ import annotations

import polars as pl
from rich.markup import escape

from mqttlab import metrics
from mqttlab.console import Console, print_table
from mqttlab.metrics import flow
from mqttlab.recording import Recording
from mqttlab.report import attribution, captured, changes, coverage, facts, fleet, network, stages
from mqttlab.report.text import (
    ANSWERS_SHOWN,
    answers_title,
    delivered_nothing,
    disconnections_title,
    heading,
    lateness,
    number,
    unit,
    verdict,
)

GROUP_COLUMNS = (
    "messages_sent", "messages_delivered", "messages_lost", "messages_under_way", "messages_unknown",
    "latency_ms_mean", "latency_ms_p99", "latency_ms_max",
)
DISCONNECTIONS_SHOWN = 10
STYLES = {"valid": "green", "not valid": "bold red", "incomplete": "bold red"}


def terminal(recording: Recording, console: Console) -> None:
    """Print a run's tables and its validity: first what is wrong with it, if anything.

    Raises:
        RecordingError: a table cannot be read.
    """
    by_qos = metrics.application(recording)
    word, _ = verdict(recording)
    comes_first = word != "valid" or bool(delivered_nothing(recording) or metrics.foreign(recording))
    if comes_first:
        _print_verdict(recording, console)
    if by_qos.is_empty():
        console.print("[bold red]No message was measured.[/]")
    else:
        columns = metrics.family("application").columns("wide")
        both_ways = metrics.has_both_ways(recording)
        if not both_ways:
            _print_table(console, f"{recording.name}: latency in ms, by QoS", by_qos, ("qos", *columns))
        by_group = metrics.application(recording, metrics.FLOW)
        keys = flow.shown(by_group)
        if both_ways:
            _print_table(console, f"{recording.name}: latency in ms, there and back apart", by_group, (*keys, *columns),
                         keys=len(keys))
        elif by_group.height > by_qos.height:
            _print_table(console, "By group: latency in ms", by_group, (*keys, *GROUP_COLUMNS),
                         keys=len(keys))
        for words in coverage.application(recording, by_qos):
            console.print(words, highlight=False, markup=False)
    _print_clients(recording, console)
    _print_stages(recording, console)
    happened = metrics.changes(recording)
    if not happened.is_empty():
        columns = metrics.family("changes").columns("wide")
        _print_table(console, "Events: times in s", happened, ("event", *columns))
        if words := changes.left_out(recording):
            console.print(words, highlight=False, markup=False)
    ended = metrics.disconnections(recording)
    if not ended.is_empty():
        shown = ended.head(DISCONNECTIONS_SHOWN)
        _print_table(console, disconnections_title(ended, shown), shown, tuple(ended.columns))
    _print_answers(recording, console)
    for label, words in facts.parts(recording) + facts.left_out(recording):
        console.print(f"{label}: {words}", highlight=False, markup=False)
    parts = attribution.by_qos(recording, attribution.SHOWN_PERCENT)
    if not parts.is_empty():
        _print_table(console, "Where the time went: means", parts.with_columns(
            pl.col("part").replace(metrics.part_titles(recording))), tuple(parts.columns))
        for words in attribution.below(recording, parts):
            console.print(words, highlight=False, markup=False)
    elif not by_qos.is_empty():
        console.print(attribution.accuracy(recording), highlight=False, markup=False)
    links = metrics.links(recording)
    if not links.is_empty():
        of_links = ("link", *metrics.family("links").columns("wide"))
        shown = network.busiest(links, network.LINKS_PRINTED)
        _print_table(console, "Links", shown, of_links, units=True)
        words = coverage.links(recording, links) + network.left_out(links, shown, "shown")
        console.print(words, highlight=False, markup=False)
    seen = network.labelled(metrics.network(recording, ("run", "direction")))
    if not seen.is_empty():
        columns = network.columns(seen, network.SHORT_COLUMNS)
        _print_table(console, "Network layer", seen, ("of", *columns), units=True)
        console.print(network.covered(recording, seen), highlight=False, markup=False)
    for title, table in captured.tables(recording):
        title, rows = captured.cut(title, table, captured.SHOWN_IN_TERMINAL)
        _print_table(console, title, rows, tuple(rows.columns))
    if not comes_first:
        _print_verdict(recording, console)
    else:
        console.print(f"[{STYLES[word]}]{word}[/]: the reasons are above the tables", highlight=False)


def _print_table(
    console: Console, title: str, frame: pl.DataFrame, columns: tuple[str, ...], *, units: bool = False, keys: int = 1,
) -> None:
    present = [column for column in columns if column in frame.columns]
    heads = [f"{heading(column)} ({unit(column)})" if units and unit(column) else heading(column) for column in present]
    print_table(console, title, heads, [[number(value) for value in row] for row in frame.select(present).rows()],
                left=[place for place, column in enumerate(present) if frame.schema[column] == pl.String], keys=keys)


def _print_answers(recording: Recording, console: Console) -> None:
    answered = metrics.answers(recording)
    if not answered.is_empty():
        shown = answered.head(ANSWERS_SHOWN)
        _print_table(console, answers_title(answered, shown), shown, tuple(answered.columns))


def _print_clients(recording: Recording, console: Console) -> None:
    members = metrics.members(recording)
    if not members.is_empty():
        shown, words = fleet.members(members)
        _print_table(console, "Members of shared subscriptions", shown, tuple(shown.columns), keys=2)
        console.print(words, highlight=False, markup=False)
    each = metrics.messages_by_device(recording)
    if each.height > 1:
        shown, words = fleet.worst(each)
        _print_table(console, "Clients: latency in ms", shown, ("client", "group", *metrics.COLUMNS_OF_CLIENTS),
                     keys=2)
        console.print(words, highlight=False, markup=False)


def _print_stages(recording: Recording, console: Console) -> None:
    heads, rows = stages.table(recording)
    if rows:
        print_table(console, "Stages", heads, rows)
        console.print(stages.words(recording), highlight=False, markup=False)


def _print_verdict(recording: Recording, console: Console) -> None:
    word, reasons = verdict(recording)
    evidence = "; ".join(f"{label} {value}" for label, value in lateness(recording)[:2])
    console.print(f"[{STYLES[word]}]{word}[/]" + (f"  {escape(evidence)}" if evidence else ""), highlight=False)
    for reason in reasons:
        console.print(f"  • {reason}", highlight=False, markup=False)
