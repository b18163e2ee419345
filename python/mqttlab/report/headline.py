"""The headline of a run in words: the one text that terminal, page, dashboard and ``--json`` show first.

Numbers are those of :func:`mqttlab.metrics.headline`, the sentence is the plan's; this module adds the words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from mqttlab import metrics
from mqttlab.digits import LONG_NS, duration, latency_in_words, plain
from mqttlab.foreign import visible
from mqttlab.metrics.headline import (
    BATTERY_WH,
    UNKNOWN_ENDS,
    Acknowledged,
    Bytes,
    Energy,
    Flow,
    Share,
)
from mqttlab.metrics.quantiles import Latency
from mqttlab.plan import publications_of
from mqttlab.plurals import counted
from mqttlab.recording import Recording
from mqttlab.report import captured, cautions, changes, facts, promises
from mqttlab.report.text import delivered_nothing, number, verdict
from mqttlab.samples import fewest
from mqttlab.words import phrases

SIMULATED = "simulated; docs/explanation/simulator.md says how accurate the model is"
# A share that is told; smaller ones are left out.
TOLD_PERCENT = 5.0
# Rates of less than this hang on how it begins and ends: connecting takes a second or two, and is seldom done. One
# message more or less changes the rate of periodic ones by a tenth within ten intervals.
LONG_S, LONG_INTERVALS = 60.0, 10
# So many groups are named in a sentence.
NAMED = 3
NOT_RECORDED = "deliveries cannot be seen: no subscriber of these messages was recorded"
NO_SUBSCRIBER = "no delivery was expected: no client was subscribed when the broker had these messages"
PARTS = {
    **phrases("latency_part", "share"),
    **metrics.CAPTURED_WORDS,
}


@dataclass(frozen=True, kw_only=True)
class Told:
    """A run's headline: the scenario and the timing in words, and the numbers."""

    name: str
    scenario: str
    verdict: str
    """``valid``, ``not valid`` or ``incomplete``."""
    timing: str
    """One line: that the timing is ok, or what is wrong and what to do; and the length measured, where it is short."""
    short: str
    """The length measured, where rates are of little worth for its shortness; else empty."""
    delivered_nothing: str
    """That nothing was delivered, which comes before everything else; else empty."""
    untold: str
    """Of how many deliveries the latency cannot be told, which comes before everything else; else empty."""
    slowest: str
    """Of an import, its slowest clients; else empty."""
    events: str
    """What changed while the run went on, and when messages flowed again; empty without events."""
    parts: tuple[str, ...]
    """Of a run of several parts, how well their clocks agree."""
    reasons: tuple[str, ...]
    """Of the verdict, those that :attr:`timing` has not."""
    cautions: tuple[str, ...]
    """What else to read before a number is used: foreign messages, warnings."""
    numbers: metrics.Headline

    @property
    def notes(self) -> tuple[str, ...]:
        """All that is to be read before a number is used."""
        return (*self.parts, *self.reasons, *self.cautions)


def told(recording: Recording) -> Told:
    """The headline of a recording, whoever made it and however it ended.

    Raises:
        RecordingError: a table cannot be read.
    """
    # A comparison prints no sentence, and does not wait for what reads scenarios.
    from mqttlab.scenario.one_sentence import one_sentence

    word, reasons = verdict(recording)
    short = _short(recording)
    line, rest = _timing(recording, word, reasons)
    parts = (f"{label}: {words}" for label, words in facts.parts(recording))
    numbers = metrics.headline(recording)
    if short and word == "valid":
        what = f"rates and {metrics.DEVICE_RATE}" if numbers.bytes else "rates"
        line += f"; {what} are of {short} only"
    return Told(name=recording.name, scenario=one_sentence(recording.plan), verdict=word, timing=line, short=short,
                delivered_nothing=delivered_nothing(recording), untold=_untold(numbers.flows),
                slowest=_slowest(recording), events=changes.sentence(recording),
                parts=tuple(parts), reasons=tuple(rest), cautions=tuple(cautions.of(recording, numbers)),
                numbers=numbers)


def described(recording: Recording) -> str:
    """The description of the scenario; none where the headline's sentence begins with it, as an import's does."""
    from mqttlab.scenario.one_sentence import one_sentence

    words = str(recording.plan.get("description", ""))
    return "" if one_sentence(recording.plan).startswith(words.rstrip(".")) else words


def _timing(recording: Recording, word: str, reasons: list[str]) -> tuple[str, list[str]]:
    """The line about the timing, and the reasons that are not in it."""
    if word != "valid":
        first = reasons[0] if reasons else "the recording does not say why"
        return f"{word}: {first}", reasons[1:]
    if captured.is_import(recording):
        length = duration(metrics.headline(recording).measured_s * 1e9)
        point = captured.point(recording)
        words = f"as captured over {length}; the evidence has no known gap"
        return f"{words}; {point}" if point else words, reasons
    if recording.plan.get("backend") == "sim":
        return SIMULATED, reasons
    return "timing ok", reasons


def _short(recording: Recording) -> str:
    seconds = metrics.headline(recording).measured_s
    # Of an import nobody knows what was published when.
    published = [publish for group in recording.plan.get("groups") or () for publish in publications_of(group)]
    arrivals: list[dict[str, Any]] = [each.get("arrival") or {} for each in published]
    intervals = [arrival.get("interval_ns") or arrival.get("mean_interval_ns") or 0 for arrival in arrivals]
    long_s = max(LONG_S, LONG_INTERVALS * max(intervals, default=0) / 1e9)
    return duration(seconds * 1e9) if seconds < long_s else ""


def _untold(flows: Sequence[Flow]) -> str:
    untold, delivered = sum(flow.untold for flow in flows), sum(flow.delivered for flow in flows)
    if not untold:
        return ""
    whole = ("Latency cannot be told" if untold == delivered else
             f"Latencies are of {number(delivered - untold)} of {counted(delivered, 'delivery', 'deliveries')}")
    are = "is" if untold == 1 else "are"
    return (f"{whole}: {number(untold)} {are} of messages with equal contents, of which not all arrived or whose order "
            "is not promised, and which is which cannot be told.")


def _slowest(recording: Recording) -> str:
    """Of an import, whose groups are guessed from names: its slowest clients, by their medians; empty where there are
    no two to compare."""
    each = metrics.messages_by_device(recording) if captured.is_import(recording) else pl.DataFrame()
    timed = each.filter(pl.col("latency_ms_p50").is_not_null()) if not each.is_empty() else each
    if timed.height < 2:
        return ""
    first = timed.sort("latency_ms_p50", "latency_ms_max", descending=True, maintain_order=True).head(NAMED)
    words = [f"{visible(row['client'])} {latency_in_words(row['latency_ms_p50'])} (worst of "
             f"{number(row['messages_delivered'])}: {latency_in_words(row['latency_ms_max'])})"
             for row in first.rows(named=True)]
    return f"by their medians, of {number(timed.height)}: {', '.join(words)}"


def document(recording: Recording) -> dict[str, Any]:
    """The headline as JSON has it; ``docs/reference/output.md`` describes it."""
    one = told(recording)
    numbers = asdict(one.numbers)
    return {"scenario": one.scenario, "verdict": one.verdict, "timing": one.timing, "untold": one.untold,
            "slowest": one.slowest,
            "notes": list(one.notes),
            "measured_s": numbers["measured_s"],
            "flows": flows_document(one.numbers),
            "bytes": list(numbers["bytes"]), "energy": list(numbers["energy"]), "foreign": numbers["foreign"],
            "wills": list(numbers["wills"]),
            "disconnections": list(numbers["disconnections"]), "events": changes.document(recording)}


def flows_document(numbers: metrics.Headline) -> list[dict[str, Any]]:
    """Flows as JSON has them."""
    return [flow | {"causes": list(flow["causes"]), "typical": list(flow["typical"]),
                    "slowest": list(flow["slowest"]),
                    "acknowledged": _acknowledged_document(flow["acknowledged"]),
                    "words": [*where_the_time_went(known), *acknowledged_in_words(known)]}
            for flow, known in zip(map(asdict, numbers.flows), numbers.flows, strict=True)]


def _acknowledged_document(seen: dict[str, Any] | None) -> dict[str, Any] | None:
    """What stands in for deliveries; without latencies null stands for them, as elsewhere."""
    return seen and seen | {"latency": seen["latency"] or None}


def title(flow: Flow) -> str:
    """A flow's name: who publishes for whom, and at which QoS."""
    return f"{publisher(flow)} → {visible(flow.subscribers or UNKNOWN_ENDS[1])}, QoS {number(flow.qos)}"


def publisher(flow: Flow) -> str:
    """Who publishes a flow, and what, where that is one publication of several."""
    return visible(metrics.publisher(flow.publishers or UNKNOWN_ENDS[0], flow.publication))


def parted(flows: Sequence[Flow]) -> tuple[list[Flow], list[str]]:
    """The flows that have numbers, and a sentence for each of the others: their messages were never sent."""
    unsent = [flow for flow in flows if flow.never_sent]
    return [flow for flow in flows if not flow.never_sent], [
        f"{publisher(flow)}, QoS {number(flow.qos)}: "
        f"{counted(flow.unsent, 'message was', 'messages were')} never sent ({flow.why_unsent})." for flow in unsent]


def shown(flows: Sequence[Flow], most: int) -> list[Flow]:
    """As many flows as there is room for: all, in the order of the scenario, or the worst ones."""
    return list(flows) if len(flows) <= most else worst_first(flows)[:most]


def not_kept(flows: Sequence[Flow]) -> list[str]:
    """A sentence for each promise that was not kept to one of many flows, those that lost most first."""
    return [f"{title(flow)}: {words}." for flow in worst_first(flows) for _, words in promises.of(flow)]


def worst_first(flows: Sequence[Flow]) -> list[Flow]:
    """Those that lost most and were slowest first."""
    return sorted(flows, key=lambda flow: (-(flow.undelivered_percent or 0), -(_p99(flow).value or 0)))


def _p99(flow: Flow) -> Latency:
    return _known(flow)["p99"]


def _known(flow: Flow) -> Mapping[str, Latency]:
    """Of its latencies, or the times to acknowledge."""
    acknowledged = flow.acknowledged
    return acknowledged.latency if acknowledged and acknowledged.latency else flow.latency


def slowest_in_words(flow: Flow) -> str:
    """A flow's 99th percentile and what it is of: latency, or the time to acknowledge. Where the percentile is not
    told, the largest of them."""
    its, found = _known(flow), flow.acknowledged
    if found is not None and found.packet is None:
        return "not acknowledged at QoS 0"
    to = "" if found is None else f" to {found.packet}"
    p99 = its["p99"]
    if p99.value is None or (not p99.is_quantile and its["max"].value is None):
        return f"p99{to} not known"
    return f"p99{to} {latency_in_words(p99.value)}" if p99.is_quantile else largest(its, to, latency_in_words)


def seen_apart(flows: Sequence[Flow]) -> tuple[list[Flow], list[Flow]]:
    """The flows with deliveries, and those of which only acknowledgements are known."""
    return ([flow for flow in flows if flow.acknowledged is None],
            [flow for flow in flows if flow.acknowledged is not None])


def unseen(flows: Sequence[Flow]) -> str:
    """Why acknowledgements stand in for the deliveries of flows of one run."""
    known = all(one.acknowledged and one.acknowledged.receivers_known for one in flows)
    return NO_SUBSCRIBER if known else NOT_RECORDED


def not_acknowledged(flow: Flow) -> str:
    """How many messages were not acknowledged; a dash where the protocol acknowledges none."""
    found = flow.acknowledged
    return "–" if found is None or found.packet is None else number(found.missing)


def acknowledged_time(flow: Flow, name: str, unit: str = "ms") -> str:
    """A quantile of the times to acknowledge without the unit; a dash where there is none."""
    found = flow.acknowledged
    return "–" if found is None or name not in found.latency else cell(found.latency[name], unit)


def acknowledged_in_words(flow: Flow) -> list[str]:
    """What is known of a flow without deliveries: how many messages were acknowledged and how soon, or why none was."""
    found = flow.acknowledged
    if found is None:
        return []
    words = unseen([flow])
    return [f"{words[:1].upper()}{words[1:]}", _acknowledged(found, flow.sent)]


def _acknowledged(found: Acknowledged, sent: int) -> str:
    if found.packet is None:
        return f"At QoS 0 MQTT acknowledges nothing{round_trip(found)}"
    known = found.latency["p50"].value is not None
    unit = "" if is_long(found.latency) else " in ms"
    packet = f"Time to {found.packet}{unit}: {', '.join(times(found.latency))}; " if known else f"{found.packet}: "
    return packet + share_acknowledged(found, sent)


def share_acknowledged(found: Acknowledged, sent: int) -> str:
    """How many messages of those sent were acknowledged."""
    if not found.missing:
        return f"all {number(sent)} acknowledged"
    return f"{number(found.count)} of {number(sent)} acknowledged, {number(found.missing)} not"


def at_qos_0(flows: Sequence[Flow]) -> str:
    """What is known of several flows at QoS 0 without deliveries; empty where there is none."""
    found = [(flow, flow.acknowledged) for flow in flows if flow.acknowledged and flow.acknowledged.packet is None]
    if len(found) < 2:
        return acknowledged_in_words(found[0][0])[-1] if found else ""
    timed = [(flow, one) for flow, one in found if one.round_trip_ms_p50 is not None]
    each = [f"{latency_in_words(one.round_trip_ms_p50)} ({publisher(flow)})"
            for flow, one in timed]
    more = f", and {counted(len(each) - NAMED, 'more group')}" if len(each) > NAMED else ""
    return "At QoS 0 MQTT acknowledges nothing" + (
        f", only TCP its segments: median round trip to the broker {', '.join(each[:NAMED])}{more}" if each else "")


def round_trip(found: Acknowledged) -> str:
    """At QoS 0, TCP's round trip; empty where no segment tells."""
    if found.round_trip_ms_p50 is None:
        return ""
    few = found.round_trips < fewest("round_trip_ms_p95")
    return (f", only TCP its segments: round trip to the broker p50 {latency_in_words(found.round_trip_ms_p50)}"
            + ("" if few else f", p95 {latency_in_words(found.round_trip_ms_p95)}"))


def percent(value: float | None) -> str:
    """A percentage of deliveries; what is not all is never written as all."""
    if value is None:
        return "–"
    if 0 < value < 0.01:
        return "< 0.01 %"
    if 99.99 < value < 100:
        return "> 99.99 %"
    return f"{number(value, 3)} %"


def milliseconds(value: float | None) -> str:
    """A latency without its unit: ms to three digits, whole from 1,000 on."""
    return number(value, 3) if value is None or value < 1000 else number(round(value))


def unit_of(*flows: Mapping[str, Latency]) -> str:
    """The unit of a table's latencies: ms, or s where one of them is 10 s or longer."""
    return "s" if any((one.value or 0) * 1e6 >= LONG_NS for known in flows for one in known.values()) else "ms"


def is_long(known: Mapping[str, Latency]) -> bool:
    """Whether a flow has latencies of 10 s and more: then each is said with its unit, for no unit suits all."""
    return unit_of(known) == "s"


def said(value_ms: float | None, with_unit: bool) -> str:
    """A latency in ms, or with its own unit."""
    return latency_in_words(value_ms) if with_unit else milliseconds(value_ms)


def in_unit(value_ms: float | None, unit: str) -> str:
    """A latency without its unit, which is ms or s."""
    return milliseconds(value_ms) if unit == "ms" or value_ms is None else number(value_ms / 1e3, 3)


def cell(latency: Latency, unit: str = "ms") -> str:
    """A quantile or the largest, where there is room for nothing else; a dash where the quantile is not told."""
    return in_unit(latency.value if latency.is_quantile or latency.value is None else None, unit)


def times(known: Mapping[str, Latency], names: Sequence[str] = ("p50", "p95", "p99"), *,
          intervals: bool = False) -> list[str]:
    """The quantiles that are told, each with its name and, if asked for, its interval; then the largest of all."""
    told, with_unit = [], is_long(known)
    for name in names:
        one = known[name]
        if one.is_quantile:
            between = interval(one, with_unit) if intervals and name != "p50" else ""
            told.append(f"{name} {said(one.value, with_unit)}" + (f" ({between})" if between else ""))
    return told if known["max"].value is None else [*told, largest(known, "", lambda value: said(value, with_unit))]


def largest(known: Mapping[str, Latency], what: str, say: Callable[[float | None], str]) -> str:
    """The largest, written by ``say``; where it stands in for a quantile, also of how many it is, and how many equal
    it."""
    one, few = known["max"], [each for name, each in known.items() if name != "max" and not each.is_quantile]
    if not few:
        return f"worst{what} {say(one.value)}"
    alike = alike_in_words(known)
    return f"worst{what} of {number(one.n)}: {say(one.value)}" + (f" ({alike})" if alike else "")


def alike_in_words(known: Mapping[str, Latency]) -> str:
    """How many latencies equal the largest, where a percentile is not told for that; else empty."""
    alike = next((one.alike for one in known.values() if one.enough and one.alike is not None), None)
    return "" if alike is None else f"{'all' if alike == known['max'].n else number(alike)} took exactly that"


def interval(latency: Latency, with_unit: bool = False) -> str:
    """The 95 % interval of a quantile in ms, or with the units that the quantile has not; empty where the run cannot
    tell either bound."""
    if latency.low is None and latency.high is None:
        return ""
    low, high = ("" if bound is None else said(bound, with_unit) for bound in (latency.low, latency.high))
    unit = f" {latency_in_words(latency.value).split()[-1]}"
    if all(not bound or bound.endswith(unit) for bound in (low, high)):
        # The quantile before it has the same unit.
        low, high = low.removesuffix(unit), high.removesuffix(unit)
    if not low or not high:
        return f"at least {low}" if low else f"at most {high}"
    return f"{low}–{high}"


def sent(flow: Flow) -> str:
    """What left the clients of a flow, with what still waits in them, and the copies from the broker's store."""
    words = f"{number(flow.left)} sent"
    if flow.waiting:
        words += f", {number(flow.waiting)} waiting in the client"
    return words + (f", {counted(flow.retained, 'retained copy', 'retained copies')} came" if flow.retained else "")


def undelivered(flow: Flow) -> str:
    """What did not arrive in percent, and why."""
    if flow.acknowledged is not None:
        return unseen([flow])
    if flow.undelivered_percent is None:
        return "no delivery was expected"
    if not flow.undelivered_percent:
        return "all delivered"
    told = [f"{number(cause.count)} {visible(cause.words)}" for cause in flow.causes[:2]]
    # Unsent messages have no subscriber: where others arrived, they stand in a row of nobody, not in the flow's.
    never = 0 if flow.unsent else flow.wanted - flow.expected
    told += [f"{number(never)} never sent"] if never else []
    reasons = "; ".join(told)
    more = f"; {len(flow.causes) - 2} more causes" if len(flow.causes) > 2 else ""
    return f"{percent(flow.undelivered_percent)} not delivered" + (f": {reasons}{more}" if reasons else "")


def late(flow: Flow) -> str:
    """How many of the deliveries came later than ``late_after``; empty where no group says so, or nothing came."""
    return " came ".join(late_parts(flow))


def late_parts(flow: Flow) -> tuple[str, ...]:
    """The share of the deliveries, and later than what they came; nothing where no group says so, or nothing came."""
    timed = flow.delivered - flow.untold
    if flow.late_after_ns is None or timed <= 0:
        return ()
    share = "all" if flow.late == timed else percent(100 * flow.late / timed) if flow.late else "none"
    return share, f"later than {duration(flow.late_after_ns)}"


def kilobytes(told: Bytes, short: str = "") -> str:
    """What a device of a group sends and receives in an hour, both together in 30 days, and how long was measured where
    that is short."""
    known = [(value, way) for value, way in ((told.ip_up, "up"), (told.ip_down, "down")) if value is not None]
    words = ", ".join(f"{number(value, 3)}{'' if place else f' {metrics.DEVICE_RATE}'} {way}"
                      for place, (value, way) in enumerate(known))
    month = "" if told.month_mb is None else f", {number(told.month_mb, 3)} MB/month"
    return f"{words}{month} (IP bytes{f' of {short}' if short else ''})"


def battery(told: Energy) -> str:
    """What a radio draws, and how long a battery lasts on it."""
    return (f"{number(told.mean_mw, 3)} mW a radio; {plain(BATTERY_WH)} Wh (two AA cells) last "
            f"{number(told.battery_days, 3)} days on it")


def where_the_time_went(flow: Flow) -> list[str]:
    """Of the faster half and of the slowest hundredth, in words; empty where that is not known."""
    return [f"of the {which}, {words}" for which, shares in _bands(flow) if (words := _shares(shares))]


def _bands(flow: Flow) -> tuple[tuple[str, tuple[Share, ...]], ...]:
    return ("faster half", flow.typical), ("slowest 1 %", flow.slowest)


def largest_part(flow: Flow) -> str:
    """The last of :func:`where_the_time_went` with its largest part alone; empty where it is not known."""
    told = [f"of the {which}, {_told(shares[:1])}" for which, shares in _bands(flow) if shares]
    return told[-1] if told else ""


def causes(flows: Sequence[Flow]) -> list[str]:
    """A sentence for each of many flows: where the time of its slowest hundredth went."""
    return [f"{title(flow)}: {words[-1]}." for flow in flows if (words := where_the_time_went(flow))]


def sentences(flow: Flow) -> list[str]:
    """What is said below a flow's numbers: what did not arrive, and where the time went. What came late is one of the
    numbers."""
    said = [words[:1].upper() + words[1:] for words in (*acknowledged_in_words(flow), *where_the_time_went(flow))]
    said = [f"{words[:1].upper()}{words[1:]}" for _, words in promises.of(flow)] + said
    return [f"{words}." for words in ([undelivered(flow)] if flow.undelivered_percent else []) + said]


def _shares(shares: tuple[Share, ...]) -> str:
    return _told([share for share in shares if share.percent >= TOLD_PERCENT][:2])


def _told(told: Sequence[Share]) -> str:
    words = ", ".join(f"{number(share.percent, 3)} % {PARTS.get(share.part, share.part)}" for share in told)
    return words.replace(" % ", " % was ", 1)
