"""The headline of a run on its page: the scenario, the timing, and a card for each number that people ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mqttlab import metrics
from mqttlab.digits import latency_in_words
from mqttlab.foreign import markup, visible
from mqttlab.metrics.device_bytes import MONTH, RATES
from mqttlab.metrics.quantiles import Latency
from mqttlab.recording import Recording
from mqttlab.report import headline, promises
from mqttlab.report.headline import Told, cell, interval, milliseconds, percent
from mqttlab.report.pages import text_table
from mqttlab.report.text import number
from mqttlab.samples import fewest

# So many flows have cards each; more are a table.
FLOWS_WITH_CARDS = 2
FLOWS_SHOWN = 20
# Instead of an interval that a run is too short for.
UNKNOWN = "95 %: not known"
# What people look for first in a wide table.
FIRST = ("messages_sent", "messages_delivered", "undelivered_percent", "latency_ms_p50", "latency_ms_p95",
         "latency_ms_p99", "latency_ms_max", "latency_ms_mean", "latency_ms_mean_ci95")
STYLE = """<style>
.headline .scenario{font-size:17px;margin:.1em 0 .3em;max-width:85ch}
.headline .timing{margin:0 0 .6em;color:var(--faint)}
.not-valid .timing,.incomplete .timing{color:var(--bad-text);font-weight:600}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(118px,1fr));gap:10px;margin:.2em 0 .6em}
.card{border:1px solid var(--line);border-radius:6px;padding:8px 10px;min-width:0}
.card.first{border-color:var(--accent);background:var(--first)}
.card b{display:inline-flex;flex-wrap:wrap;align-items:baseline;font-size:22px;
font-variant-numeric:tabular-nums}.card b small{font-size:13px;font-weight:400;margin-left:3px}
.card span{display:block;font-size:12px;color:var(--faint)}.headline h2{margin:.6em 0 .3em}
.headline .said{margin:.1em 0;font-size:14px}details summary{cursor:pointer;color:var(--faint)}
@media(max-width:640px){section{padding:12px}.cards{grid-template-columns:repeat(2,1fr);gap:8px}
.headline .scenario{font-size:15px}
.headline td.text{white-space:normal;min-width:130px}}
</style>"""


@dataclass(frozen=True, kw_only=True)
class Card:
    """A number with its unit, what it is, and what is known beside it."""

    value: str
    unit: str
    title: str
    more: str = ""


def cards(flow: metrics.Flow, told: Told) -> list[Card]:
    """The cards of a flow, the one that people ask for first in front."""
    found = _of_messages(flow) if flow.acknowledged is None else _of_acknowledgements(flow, flow.acknowledged)
    for group in told.numbers.bytes:
        if group.group in (flow.publishers, flow.subscribers):
            for way, ip, link in (("up", group.ip_up, group.link_up), ("down", group.ip_down, group.link_down)):
                if ip is not None:
                    found.append(Card(value=number(ip, 3), unit=metrics.DEVICE_RATE,
                                      title=f"{way}, {visible(group.group)}",
                                      more=f"{number(link, 3)} on the link" if link != ip else "IP and link"))
            if group.month_mb is not None:
                found.append(Card(value=number(group.month_mb, 3), unit="MB/month",
                                  title=f"both ways, {visible(group.group)}", more="IP, 30 days"))
    found.append(Card(value=number(flow.disconnects), unit="", title="disconnects"))
    return found


def _of_messages(flow: metrics.Flow) -> list[Card]:
    found = _times(flow.latency, " latency")
    lost = percent(flow.undelivered_percent)
    found.append(Card(value=lost, unit="", title="not delivered",
                      more=f"{number(flow.delivered)} of {number(flow.wanted)} delivered"))
    if late := headline.late_parts(flow):
        share, than = late
        found.append(Card(value=share, unit="", title=f"came {than}",
                          more=f"{number(flow.late)} of {number(flow.delivered - flow.untold)} deliveries"))
    return [*found, Card(value=number(flow.per_s, 3), unit="/s", title="deliveries", more=headline.sent(flow))]


def _of_acknowledgements(flow: metrics.Flow, found: metrics.Acknowledged) -> list[Card]:
    """Where no delivery can be seen."""
    why = "no subscriber" if found.receivers_known else "no subscriber recorded"
    sent = Card(value=number(flow.left), unit="", title="sent", more=why)
    if found.packet is None:
        few = found.round_trips < fewest("round_trip_ms_p95")
        told = (("median round trip", found.round_trip_ms_p50),
                ("p95 round trip", None if few else found.round_trip_ms_p95))
        return [sent, *(Card(value=value, unit=unit, title=title, more="TCP to the broker")
                        for title, known in told if known is not None
                        for value, unit in [latency_in_words(known).split(" ")])]
    made = [] if found.latency["p50"].value is None else _times(found.latency, f" to {found.packet}")
    return [*made, Card(value=number(found.missing), unit="", title="not acknowledged",
                        more=f"{number(found.count)} of {number(flow.sent)} acknowledged"), sent]


def _times(known: Mapping[str, Latency], what: str) -> list[Card]:
    """The quantiles that are told, and the largest; in front of them where it stands in for the highest quantile."""
    made, with_unit = [], headline.is_long(known)
    for name, words in (("p99", "p99"), ("p95", "p95"), ("p50", "median")):
        if known[name].is_quantile:
            between = interval(known[name], with_unit)
            value, unit = latency_in_words(known[name].value).split(" ")
            made.append(Card(value=value, unit=unit, title=f"{words}{what}",
                             more=f"95 %: {between}" if between else UNKNOWN))
    one = known["max"]
    if one.value is None and made:
        return made
    alike = headline.alike_in_words(known)
    value, unit = ("–", "ms") if one.value is None else latency_in_words(one.value).split(" ")
    worst = Card(value=value, unit=unit, title=f"worst{what}",
                 more=f"of {number(one.n)}" + (f", {alike}" if alike else ""))
    return [*made, worst] if known["p99"].is_quantile else [worst, *made]


def section(recording: Recording) -> str:
    """The headline as the first section of the page."""
    told = headline.told(recording)
    flows, unsent = headline.parted(told.numbers.flows)
    parts = [STYLE, f'<section class="headline verdict {told.verdict.replace(" ", "-")}">',
             f'<p class="timing">{markup(told.untold)}</p>' if told.untold else "",
             f'<p class="scenario">{markup(told.scenario)}</p><p class="timing">{markup(told.timing)}</p>']
    if not flows and not unsent:
        parts.append("<p>No message was measured.</p>")
    elif len(flows) <= FLOWS_WITH_CARDS:
        parts += [_flow(flow, told) for flow in flows]
    else:
        seen, unseen = headline.seen_apart(flows)
        parts += [*([_flows(seen)] if seen else []), *([_unseen(unseen)] if unseen else []), _bytes(told)]
        parts += [_said(words) for words in headline.not_kept(flows)[:FLOWS_SHOWN]]
        parts += [_said(words) for words in headline.causes(headline.shown(seen, FLOWS_SHOWN))]
    parts += [_said(words) for words in (*unsent[:FLOWS_SHOWN], *promises.of_wills(told.numbers)[:FLOWS_SHOWN])]
    for energy in told.numbers.energy:
        parts.append(_said(f"{energy.group}: {headline.battery(energy)}"))
    parts += [_said(f"{ended['group']} {ended['what']} {number(ended['count'])} times: {ended['reason']}")
              for ended in told.numbers.disconnections[:1]]
    parts += [_said(f"Slowest clients {told.slowest}.")] if told.slowest else []
    parts += [_said(f"Events: {told.events}.")] if told.events else []
    parts += [_said(note) for note in told.notes[:3]]
    return "".join(parts) + "</section>"


def _said(words: str) -> str:
    return f'<p class="said">{markup(visible(words))}</p>'


def _flow(flow: metrics.Flow, told: Told) -> str:
    shown = "".join(
        f'<div class="card{" first" if place == 0 else ""}"><span>{markup(one.title)}</span>'
        f"<b>{markup(one.value)}<small>{markup(one.unit)}</small></b><span>{markup(one.more)}</span></div>"
        for place, one in enumerate(cards(flow, told)))
    return (f'<h2>{markup(headline.title(flow))}</h2><div class="cards">{shown}</div>'
            + "".join(map(_said, headline.sentences(flow))))


def _flows(flows: list[metrics.Flow]) -> str:
    rows = flow_rows(flows)
    head = ("flow", "p99 ms", "not delivered", "p95 ms", "p50 ms", "worst ms", "sent", "per s", "disconnects",
            *late_head(flows))
    left = len(flows) - len(rows)
    return text_table(head, rows) + (_said(f"{left} more flows, none worse, are in the tables below.") if left else "")


def flow_rows(flows: list[metrics.Flow]) -> list[tuple[str, ...]]:
    """Of flows with deliveries, a row each: name, p99, what was not delivered, p95, p50, the largest, what was sent,
    deliveries per s, disconnects, and what :func:`late_head` names."""
    late = late_head(flows)
    return [(headline.title(flow), cell(flow.latency["p99"]), percent(flow.undelivered_percent),
             *(cell(flow.latency[name]) for name in ("p95", "p50")), milliseconds(flow.latency["max"].value),
             number(flow.left), number(flow.per_s, 3), number(flow.disconnects),
             *((" ".join(headline.late_parts(flow)) or "–") for _ in late))
            for flow in headline.shown(flows, FLOWS_SHOWN)]


def late_head(flows: list[metrics.Flow]) -> tuple[str, ...]:
    """The heading of the column of late deliveries, where a group says what is late."""
    return ("came",) if any(headline.late(flow) for flow in flows) else ()


UNSEEN_HEADS = ("flow without a subscriber", "p99 ms to PUBACK, PUBCOMP", "not acknowledged", "p95 ms", "p50 ms",
                "worst ms", "sent", "disconnects")


def unseen_rows(flows: list[metrics.Flow]) -> list[tuple[str, ...]]:
    """Of flows whose acknowledgements stand in for deliveries, a row each with the columns of :data:`UNSEEN_HEADS`."""
    return [(headline.title(flow), headline.acknowledged_time(flow, "p99"), headline.not_acknowledged(flow),
             *(headline.acknowledged_time(flow, name) for name in ("p95", "p50", "max")), number(flow.left),
             number(flow.disconnects)) for flow in headline.shown(flows, FLOWS_SHOWN)]


def unseen_sentences(flows: list[metrics.Flow]) -> list[str]:
    """What is said below their table."""
    at_0 = headline.at_qos_0(flows)
    words = headline.unseen(flows)
    said = [f"{words[:1].upper()}{words[1:]}.", *([f"{at_0}."] if at_0 else [])]
    left = len(flows) - FLOWS_SHOWN
    return [*said, f"{left} more flows are in the tables below."] if left > 0 else said


def _unseen(flows: list[metrics.Flow]) -> str:
    return text_table(UNSEEN_HEADS, unseen_rows(flows)) + "".join(map(_said, unseen_sentences(flows)))


def byte_rows(told: Told) -> list[list[str]]:
    """Of each group its name, its devices, the rates of IP up and down and of the link up and down, and IP of 30 days.
    """
    return [[visible(group.group), number(group.devices), *(number(value, 3) for value in (
        group.ip_up, group.ip_down, group.link_up, group.link_down, group.month_mb))]
        for group in told.numbers.bytes[:FLOWS_SHOWN]]


def _bytes(told: Told) -> str:
    rows = byte_rows(told)
    head = ("a device of", "devices", *(metrics.ALL[name].title for name in (*RATES, MONTH)))
    return text_table(head, rows) if rows else ""


def first(columns: tuple[str, ...]) -> tuple[str, ...]:
    """Columns of a table of messages, those that people look for in front."""
    return (*(name for name in FIRST if name in columns), *(name for name in columns if name not in FIRST))
