"""Overview: the headline of a run, as its report and the terminal have it."""

from __future__ import annotations

from dash import html

from mqttlab import metrics
from mqttlab.dashboard.panels import Content, Head, written_table
from mqttlab.foreign import visible
from mqttlab.recording import Recording
from mqttlab.report import cards, headline, promises, stages
from mqttlab.report.headline import Told
from mqttlab.report.text import number


def part(recording: Recording) -> Content:
    """The scenario in a sentence, the timing, cards for each of few flows, a table of many.

    Raises:
        RecordingError: a table cannot be read.
    """
    told = headline.told(recording)
    flows, unsent = headline.parted(told.numbers.flows)
    timing = [html.P(told.timing, className="timing")] if told.verdict == "valid" else []
    # The verdict with its reasons stands above all parts of a run.
    untold = [html.P(told.untold, className="timing")] if told.untold else []
    top = html.Section([*untold, html.P(told.scenario, className="scenario"), *timing,
                        *(html.P(visible(note), className="timing") for note in (*told.parts, *told.cautions)[:3])],
                       className="panel headline")
    if not flows and not unsent:
        return [top, html.Section([html.P("No message was measured.")], className="panel headline")]
    if len(flows) > cards.FLOWS_WITH_CARDS:
        seen, unseen = headline.seen_apart(flows)
        tables = [*([_table(seen)] if seen else []), *([_unseen(unseen)] if unseen else [])]
        return [top, *tables, *_stages(recording), *_bytes(told), *_more(told, [*headline.not_kept(flows), *unsent])]
    return [top, *(_flow(flow, told) for flow in flows), *_stages(recording), *_more(told, unsent)]


def _flow(flow: metrics.Flow, told: Told) -> html.Section:
    shown = [html.Div([html.Span(one.title), html.B([one.value, html.Small(one.unit)]), html.Span(one.more)],
                      className="card first" if place == 0 else "card")
             for place, one in enumerate(cards.cards(flow, told))]
    return html.Section([html.H2(headline.title(flow)), html.Div(shown, className="cards"),
                         *(html.P(words, className="said") for words in headline.sentences(flow))],
                        className="panel headline")


def _table(flows: list[metrics.Flow]) -> html.Section:
    heads = [Head("flow", text=True), Head("p99", unit="ms"), Head("not delivered"), Head("p95", unit="ms"),
             Head("p50", unit="ms"), Head("worst", unit="ms"), Head("sent"), Head("per s"), Head("disconnects"),
             *map(Head, cards.late_head(flows))]
    rows: list[list[object]] = [
        [*row] for row in cards.flow_rows(flows)]
    left = len(flows) - len(rows)
    rest = [html.P(f"{left} more flows, none worse, are under Messages.", className="said")] if left else []
    said = [html.P(words, className="said") for words in headline.causes(headline.shown(flows, cards.FLOWS_SHOWN))]
    return html.Section([written_table("Flows", heads, rows), *rest, *said], className="panel headline")


def _unseen(flows: list[metrics.Flow]) -> html.Section:
    heads = [Head(title, text=not place) for place, title in enumerate(cards.UNSEEN_HEADS)]
    rows: list[list[object]] = [[*row] for row in cards.unseen_rows(flows)]
    said = [html.P(words, className="said") for words in cards.unseen_sentences(flows)]
    return html.Section([written_table("Flows without a subscriber", heads, rows), *said], className="panel headline")


def _stages(recording: Recording) -> list[html.Section]:
    head, rows = stages.table(recording)
    if not rows:
        return []
    heads = [Head(title, text=not place) for place, title in enumerate(head)]
    return [html.Section([html.H2("Stages"), written_table("Stages", heads, rows),
                          html.P(visible(stages.words(recording)), className="said")], className="panel headline")]


def _bytes(told: Told) -> list[html.Section]:
    heads = [Head("a device of", text=True), Head("devices"), *(
        Head(way, unit=metrics.DEVICE_RATE) for way in ("up", "down", "link up", "link down")),
        Head("both ways, 30 days", unit=metrics.DEVICE_MONTH)]
    rows: list[list[object]] = [[*row] for row in cards.byte_rows(told)]
    if not rows:
        return []
    return [html.Section([html.H2("IP bytes of each device"), written_table("Bytes of each device", heads, rows)],
                         className="panel headline")]


def _more(told: Told, unsent: list[str]) -> list[html.Section]:
    said = [f"Events: {told.events}."] if told.events else []
    said += promises.of_wills(told.numbers)[:cards.FLOWS_SHOWN]
    said += [*unsent[:cards.FLOWS_SHOWN], *(f"{one.group}: {headline.battery(one)}" for one in told.numbers.energy)]
    said += [f"{ended['group']} {ended['what']} {number(ended['count'])} times: {ended['reason']}"
             for ended in told.numbers.disconnections[:3]]
    return [html.Section([html.P(visible(words), className="said") for words in said],
                         className="panel headline")] if said else []
