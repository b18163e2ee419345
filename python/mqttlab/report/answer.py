"""The headline in a terminal: at most 24 lines of 80 columns, the worst percentile in sight."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from mqttlab.console import Console
from mqttlab.foreign import visible
from mqttlab.metrics import Flow
from mqttlab.metrics.quantiles import Latency
from mqttlab.plurals import counted
from mqttlab.recording import Recording
from mqttlab.report import headline, promises, stages
from mqttlab.report.headline import Told, cell, percent
from mqttlab.report.text import number

WIDTH, LINES = 80, 20
LABEL = 12
# Of flows that have no deliveries, beside others that do.
UNSEEN_SHOWN = 3
# So many flows are told one by one; more are a table.
APART = 2
ENDINGS_SHOWN = 2
FLOWS_SHOWN, GROUPS_SHOWN, NOTES_SHOWN = 6, 3, 2
NAME = 32
CLAUSE_END = re.compile(r"[;:.] ")
MORE = "; more: --full"
STYLES = {"valid": "green", "not valid": "bold red", "incomplete": "bold red"}


def answer(recording: Recording, console: Console) -> None:
    """Print a run's headline.

    Raises:
        RecordingError: a table cannot be read.
    """
    told = headline.told(recording)
    for line in lines(told, stages.brief(recording)):
        is_verdict = line.startswith(("timing", told.verdict))
        style = STYLES[told.verdict] if is_verdict else "bold" if line == visible(told.name)[:WIDTH] else ""
        console.print(Text(line, style=style), soft_wrap=True, highlight=False)


def lines(told: Told, of_stages: Sequence[str] = ()) -> list[str]:
    """The headline's lines, of at most 80 columns; those of stages stand below the flows."""
    most = LINES + len(of_stages)
    made = _made(told, of_stages, with_typical=True)
    if len(made) > most:
        made = _made(told, of_stages, with_typical=False)
    # Of several flows the cause of each comes before what each group sends.
    for groups in range(GROUPS_SHOWN - 1, -1, -1):
        if len(made) > most and len(told.numbers.flows) > APART:
            made = _made(told, of_stages, with_typical=False, groups=groups)
    return made[:most]


def _made(told: Told, of_stages: Sequence[str], *, with_typical: bool, groups: int = GROUPS_SHOWN) -> list[str]:
    flows, unsent = headline.parted(told.numbers.flows)
    top = [visible(told.name)[:WIDTH], *_wrapped(told.scenario, WIDTH, 3)]
    # What makes numbers worthless comes before them.
    top = ([*top, *_labelled("timing", told.timing, 2)] if told.verdict == "valid" else
           [*_wrapped(told.timing, WIDTH, 4), *top])
    first = told.delivered_nothing if told.verdict == "valid" else ""
    if first:
        top = [*_wrapped(first, WIDTH, 4), *top]
    if told.untold:
        top = [*_wrapped(told.untold, WIDTH, 3), *top]
    if not flows:
        middle = [] if unsent else ["No message was measured."]
    elif len(flows) <= APART:
        middle = [line for flow in flows for line in (
            _flow(flow, with_typical) if flow.acknowledged is None else _unseen(flow, told.numbers.measured_s))]
    else:
        seen, unseen = headline.seen_apart(flows)
        middle = [*(_table(seen) if seen else []),
                  *(_unseen_table(unseen, UNSEEN_SHOWN if seen else FLOWS_SHOWN) if unseen else [])]
    middle += _labelled("events", told.events, 4) if told.events else []
    middle += [line for words in unsent[:APART] for line in _labelled("not sent", words, 2)]
    middle += [line for words in promises.of_wills(told.numbers)[:APART] for line in _labelled("wills", words, 3)]
    bottom = [*of_stages, *(_labelled("slowest", told.slowest, 3) if told.slowest else []), *_groups(told, groups),
              *_disconnections(told)]
    notes = [note for note in told.notes if note != first]
    for note in notes[:NOTES_SHOWN]:
        bottom += _labelled("note", note, 3)
    left = len(notes) - NOTES_SHOWN
    if left > 0:
        bottom += _labelled("", f"{counted(left, 'more note')}: --full", 1)
    return [*top, *middle, *bottom]


def _flow(flow: Flow, with_typical: bool) -> list[str]:
    told_apart = flow.expected not in (0, flow.sent)
    each = f", {counted(flow.expected, 'delivery', 'deliveries')} expected" if told_apart else ""
    whole = f"{headline.sent(flow)}{each}; "
    rate = f"{number(flow.per_s, 3)} deliveries/s; {counted(flow.disconnects, 'disconnect')}"
    told = [headline.title(flow)[:WIDTH], *_labelled("delivered", whole + headline.undelivered(flow), 2)]
    for label, words in promises.of(flow):
        told += _labelled(label, words, 2)
    if flow.latency["p99"].value is not None:
        told += _labelled(_called("latency", flow.latency), _times(flow.latency), 2)
    if words := headline.late(flow):
        told += _labelled("late", words, 1)
    told += _labelled("rate", rate, 1)
    for words in headline.where_the_time_went(flow)[0 if with_typical else -1:]:
        told += _labelled("time", words, 2)
    return told


def _times(latency: Mapping[str, Latency]) -> str:
    return "  ".join(headline.times(latency, ("p99", "p95", "p50"), intervals=True))


def _called(name: str, latency: Mapping[str, Latency]) -> str:
    """The label of times, with their unit where they do not have it themselves."""
    return name if headline.is_long(latency) else f"{name} ms"


def _unseen(flow: Flow, measured_s: float) -> list[str]:
    """A flow without a subscriber: what the broker acknowledged."""
    found = flow.acknowledged
    assert found is not None, "it has no deliveries"
    lines = [headline.title(flow)[:WIDTH],
             *_labelled("delivered", f"{headline.sent(flow)}; {headline.undelivered(flow)}", 2)]
    if found.packet is None:
        lines += _labelled("QoS 0", headline.acknowledged_in_words(flow)[-1], 2)
    else:
        if found.latency["p50"].value is not None:
            lines += _labelled(_called(found.packet, found.latency), _times(found.latency), 2)
        lines += _labelled(found.packet, headline.share_acknowledged(found, flow.sent), 2)
    rate = number(flow.left / measured_s, 3) if measured_s else "–"
    return [*lines, *_labelled("rate", f"{rate} sent/s; {counted(flow.disconnects, 'disconnect')}", 1)]


def _unseen_table(flows: list[Flow], most: int) -> list[str]:
    """Several of them, a line each, with the times to acknowledge."""
    unit = headline.unit_of(*(flow.acknowledged.latency for flow in flows if flow.acknowledged))
    head = f"{'time to PUBACK, PUBCOMP':<{NAME}}{f'p99 {unit}':>8}{'not ack.':>9}"
    rows = [f"{head}{'p95':>8}{'p50':>7}{'worst':>8}{'sent':>8}"]
    for flow in headline.shown(flows, most):
        times = {name: headline.acknowledged_time(flow, name, unit) for name in ("p99", "p95", "p50", "max")}
        rows.append(f"{_short(headline.title(flow)):<{NAME}}{times['p99']:>8}{headline.not_acknowledged(flow):>9}"
                    f"{times['p95']:>8}{times['p50']:>7}{times['max']:>8}{number(flow.left):>8}")
    if len(flows) > most:
        rows.append(f"and {counted(len(flows) - most, 'more flow')}, none worse: --full")
    rows += _labelled("delivered", headline.unseen(flows), 2)
    at_0 = headline.at_qos_0(flows)
    return rows + (_labelled("QoS 0", at_0, 2) if at_0 else [])


def _table(flows: list[Flow]) -> list[str]:
    """Several flows, a line each, in the order of the scenario; of many the worst ones."""
    [worst, *_] = headline.worst_first(flows)
    unit = headline.unit_of(*(flow.latency for flow in flows))
    head = f"{'flow':<{NAME}}{f'p99 {unit}':>8}{'missing':>9}{'p95':>8}{'p50':>7}{'worst':>8}{'sent':>8}"
    rows = [head]
    for flow in headline.shown(flows, FLOWS_SHOWN):
        latency = {name: cell(one, unit) for name, one in flow.latency.items()}
        rows.append(f"{_short(headline.title(flow)):<{NAME}}{latency['p99']:>8}{percent(flow.undelivered_percent):>9}"
                    f"{latency['p95']:>8}{latency['p50']:>7}{latency['max']:>8}{number(flow.left):>8}")
    if len(flows) > FLOWS_SHOWN:
        rows.append(f"and {counted(len(flows) - FLOWS_SHOWN, 'more flow')}, none worse: --full")
    rows += _late(flows)
    words = headline.where_the_time_went(worst)
    not_kept = [(label, f"{_short(headline.title(flow))}: {said}")
                for flow in headline.worst_first(flows) for label, said in promises.of(flow)]
    for label, said in not_kept[:APART]:
        rows += _labelled(label, said, 2)
    if (left := len(not_kept) - APART) > 0:
        rows += _labelled("", f"{counted(left, 'more promise')} not kept: --full", 1)
    # Its name may take a line.
    rows += _labelled("time", f"{_short(headline.title(worst))}: {words[-1]}", 3) if words else []
    others = [flow for flow in headline.shown(flows, FLOWS_SHOWN) if flow is not worst and headline.largest_part(flow)]
    for place, flow in enumerate(others):
        label = "time" if not words and not place else ""
        rows += _labelled(label, f"{_short(headline.title(flow))}: {headline.largest_part(flow)}", 3)
    return rows


def _late(flows: list[Flow]) -> list[str]:
    """Of several flows what came late, those with the largest share first."""
    known = [flow for flow in flows if headline.late(flow)]
    if known and not any(flow.late for flow in known):
        first = min(known, key=lambda flow: flow.late_after_ns or 0)
        return _labelled("late", headline.late(first), 1)
    known.sort(key=lambda flow: -flow.late / flow.delivered)
    rows = [line for flow in known[:APART]
            for line in _labelled("late", f"{_short(headline.title(flow))}: {headline.late(flow)}", 2)]
    left = len(known) - APART
    return [*rows, *(_labelled("", f"{counted(left, 'more flow')}: --full", 1) if left > 0 else [])]


def _short(title: str) -> str:
    return title if len(title) < NAME else f"{title[:NAME - 10]}…{title[-7:]}"


def _groups(told: Told, most: int) -> list[str]:
    found: list[str] = []
    for group in told.numbers.bytes[:most]:
        found += _labelled("per device", f"{visible(group.group)}: {headline.kilobytes(group, told.short)}", 2)
    if (left := len(told.numbers.bytes) - most) > 0:
        found += (_labelled("", f"and {counted(left, 'more group')}: --full", 1) if most else
                  _labelled("per device", f"{counted(left, 'group')}: --full", 1))
    for energy in told.numbers.energy[:GROUPS_SHOWN]:
        found += _labelled("energy", f"{visible(energy.group)}: {headline.battery(energy)}", 2)
    return found


def _disconnections(told: Told) -> list[str]:
    ended = told.numbers.disconnections
    if not ended:
        return []
    found: list[str] = []
    for place, row in enumerate(ended[:ENDINGS_SHOWN]):
        more = _further(ended) if place == ENDINGS_SHOWN - 1 else ""
        times = "once" if row["count"] == 1 else f"{number(row['count'])} times"
        words = f"{visible(str(row['group']))} {row['what']} {times}: {visible(row['reason'])}{more}"
        found += _labelled("connections" if not place else "", words, 3)
    return found


def _further(ended: Sequence[Mapping[str, Any]]) -> str:
    """What the rows say that are not shown: other reasons, or the same ones of other groups."""
    shown = {row["reason"] for row in ended[:ENDINGS_SHOWN]}
    others = {row["reason"] for row in ended[ENDINGS_SHOWN:]} - shown
    again = {row["group"] for row in ended[ENDINGS_SHOWN:] if row["reason"] in shown}
    parts = [counted(len(others), "more reason")] if others else []
    parts += [f"the same in {counted(len(again), 'more group')}"] if again else []
    return f"; {', '.join(parts)}" if parts else ""


def _labelled(label: str, text: str, most: int) -> list[str]:
    first, *rest = _wrapped(text, WIDTH - LABEL, most) or [""]
    return [f"{label:<{LABEL}}{first}", *(" " * LABEL + line for line in rest)]


def _wrapped(text: str, width: int, most: int) -> list[str]:
    """In so many lines at most: of more, whole clauses are left out at the end, and where they are is said. A text of
    one clause is as long as it is."""
    text = visible(text)
    made = textwrap.wrap(text, width)
    if len(made) <= most:
        return made
    for end in reversed([found.start() for found in CLAUSE_END.finditer(text)]):
        shorter = textwrap.wrap(text[:end] + MORE, width)
        if len(shorter) <= most:
            return shorter
    return made
