"""A comparison's answer: one sentence, and a table of what differs, biggest first.

Terminal, page, dashboard and ``--json`` show this one. Its numbers are those of both sides' headlines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mqttlab.comparison import Change, Compared, Comparison, Side, words_of_change
from mqttlab.comparison.changes import interval
from mqttlab.comparison.headlines import CONNECTING, POWER
from mqttlab.digits import latency_in_words, plain
from mqttlab.foreign import visible
from mqttlab.metrics import DEVICE_RATE
from mqttlab.plurals import counted
from mqttlab.report.comparison.factors import Factor, against, factors, load_differs
from mqttlab.report.headline import milliseconds, percent
from mqttlab.report.text import delivered_nothing, number, verdict

TITLES = {
    "latency_ms_p50": "p50 ms", "latency_ms_p95": "p95 ms", "latency_ms_p99": "p99 ms", "latency_ms_max": "worst ms",
    "acknowledge_ms_p50": "p50 ms to acknowledge", "acknowledge_ms_p99": "p99 ms to acknowledge",
    "not_acknowledged": "not acknowledged",
    "connect_ms_p50": "p50 ms to connect", "connect_to_delivered_ms_p50": "p50 ms to connect and deliver",
    "connect_to_acknowledged_ms_p50": "p50 ms to connect and have an ack",
    "undelivered_percent": "not delivered", "messages_sent": "sent", "throughput_per_s": "deliveries/s",
    "disconnects": "disconnects", "ip_kb_per_device_hour_up": f"{DEVICE_RATE} up",
    "ip_kb_per_device_hour_down": f"{DEVICE_RATE} down", POWER: "mW a radio",
}
# By what the sentence begins: the first that both sides have. Without a delivery in the evidence, what is known is when
# the broker acknowledged; of few messages there is no 99th percentile.
SENTENCE = {"latency_ms_p99": "p99", "latency_ms_max": "worst latency", "acknowledge_ms_p99": "p99 to acknowledge",
            "acknowledge_ms_p50": "p50 to acknowledge"}
# What decides how long it takes to connect.
OF_CONNECTING = ("transport", "broker", "protocol")
UP, DOWN = "ip_kb_per_device_hour_up", "ip_kb_per_device_hour_down"
RUNS_ENOUGH = 3
SIDES = ("first", "second")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a comparison says first."""

    sentence: str
    basis: str
    """How sure that is: how many runs, and what they are too few for."""
    cautions: tuple[str, ...]
    """What to read before: sides that are not valid, incomplete, or to which nothing was delivered."""
    factors: tuple[Factor, ...]
    differing: tuple[Compared, ...]
    """Biggest first."""
    undecided: tuple[Compared, ...]
    """Too few runs, or too much scatter, to say whether they differ."""
    same: tuple[Compared, ...]
    tolerance_percent: float
    unmatched: tuple[str, ...]
    """Flows that only one side has."""


def answer(comparison: Comparison) -> Answer:
    """The answer of a comparison.

    Raises:
        RecordingError: a table cannot be read.
    """
    found, told = factors(comparison), headlines(comparison)
    far = [one for one in told if one.change.apart(comparison.tolerance_percent)]
    undecided = [one for one in told if one.change.word == "undecided"]
    same = [one for one in told if one not in far and one not in undecided
            and (one.change.first or one.change.second)]
    return Answer(
        sentence=_sentence(comparison, found), basis=_basis(comparison, told), cautions=_cautions(comparison),
        factors=tuple(found), differing=tuple(sorted(far, key=lambda one: -one.change.size)),
        undecided=tuple(undecided), same=tuple(same),
        tolerance_percent=comparison.tolerance_percent, unmatched=_unmatched(comparison))


def headlines(comparison: Comparison) -> list[Compared]:
    """The numbers of both sides that are told. Those of connecting are, where they clearly differ, or where what
    differs between the scenarios is about it."""
    about = any(factor.name in OF_CONNECTING for factor in factors(comparison))
    return [one for one in comparison.headlines if about or one.measure not in CONNECTING
            or one.change.apart(comparison.tolerance_percent)]


def table(rows: Sequence[Compared]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Numbers of both sides beside each other, with the change in words."""
    return ("of", "what", "change", *SIDES), [
        (one.of, TITLES[one.measure], difference(one), *(figure(one.measure, mean) for mean in one.change.means))
        for one in rows]


def rest(found: Answer) -> list[str]:
    """What is not in the table: numbers that are the same, those that are undecided, flows without a partner."""
    same = [one for one in found.same if one.change.word != "one run"]
    near = [one for one in found.same if one.change.word == "one run"]
    said = [f"{label}: {_listed(rows)}." for label, rows in (
        ("Too few runs to say", found.undecided), ("The same", same),
        (f"No more than {plain(found.tolerance_percent)} % apart", near)) if rows]
    return [*said, *(f"{words}." for words in found.unmatched)]


def document(comparison: Comparison) -> dict[str, Any]:
    """The answer as JSON has it; ``docs/output.md`` describes it."""
    found = answer(comparison)
    return {
        "answer": found.sentence, "basis": found.basis, "cautions": list(found.cautions),
        "factors": [{"name": one.name, "first": one.first, "second": one.second} for one in found.factors],
        "headlines": [
            {"of": one.of, "measure": one.measure, "state": state, "first": list(one.change.first),
             "second": list(one.change.second), "percent": one.change.percent,
             "low_percent": None if one.change.low is None else 100 * (one.change.low - 1),
             "high_percent": None if one.change.high is None else 100 * (one.change.high - 1)}
            for state, rows in (("differs", found.differing), ("undecided", found.undecided), ("same", found.same))
            for one in rows],
        "only_one_side": list(found.unmatched),
    }


def figure(measure: str, value: float | None) -> str:
    """A number of a headline, written as headlines write it."""
    if value is None:
        return "–"
    if measure.startswith(("latency_ms", "acknowledge_ms", *CONNECTING)):
        return milliseconds(value)
    if measure == "undelivered_percent":
        return percent(value)
    return number(int(value)) if float(value).is_integer() and abs(value) < 1e15 else number(value, 3)


def difference(one: Compared) -> str:
    """A change as a cell: in per cent with its interval."""
    change = one.change
    if change.percent is None or change.word == "missing":
        return "–" if change.size else "0 %"
    shown = f"{change.percent:+.1f} %" if abs(change.percent) < 10 else f"{change.percent:+,.0f} %"
    return f"{shown} {interval(change)}".rstrip().replace("-", "−")


def _sentence(comparison: Comparison, found: list[Factor]) -> str:
    measured = ((what, [one for one in comparison.headlines if one.measure == measure])
                for measure, what in SENTENCE.items())
    latency = next((_latency(flows, what) for what, flows in measured if any(
        one.change.first and one.change.second for one in flows)), "no latency to compare")
    parts = [latency, *_connecting(comparison, found), *_costs(comparison, found)]
    where = f", in stage {comparison.stage}" if comparison.stage else ""
    return f"{_names(comparison, found)}{where}: {', '.join(filter(None, parts))}; {_losses(comparison)}."


def _names(comparison: Comparison, found: list[Factor]) -> str:
    second, first = against(comparison)
    if found:
        return f"{second[:1].upper()}{second[1:]} against {first}"
    if any("sources" in run.plan for side in (comparison.first, comparison.second) for run in side.recordings):
        return f"{second} against {first}"
    return "The same settings on both sides"


def _latency(flows: list[Compared], what: str) -> str:
    """A statistic of the latency; of several flows that which changed most, by its name."""
    known = [one for one in flows if one.change.first and one.change.second]
    if all(one.change.word == "same" for one in known) and len(known) > 1:
        return f"{what} the same in all {counted(len(known), 'flow')}"
    most = max(known, key=lambda one: (one.change.word in ("differs", "one run"), one.change.size))
    name = f" of {most.of}" if len(flows) > 1 else ""
    return f"{what}{name} {_milliseconds(most.change)}"


def _milliseconds(change: Change) -> str:
    if change.word == "one run":
        a, b = (latency_in_words(mean) for mean in change.means)
        # The unit of both is written once.
        b = b.removesuffix(" ms") if a.endswith(" ms") and a != b else b
        return f"{b} instead of {a}" if a != b else f"{a} in both"
    return words_of_change(change, "lower", "higher", latency_in_words)


def _connecting(comparison: Comparison, found: list[Factor]) -> list[str]:
    """How long it takes to connect, where something that decides it differs on purpose."""
    about = any(factor.name in OF_CONNECTING for factor in found)
    return [f"p50 to connect {_milliseconds(one.change)}" for one in comparison.headlines
            if about and one.measure == CONNECTING[0] and one.change.first and one.change.second]


def _costs(comparison: Comparison, found: list[Factor]) -> list[str]:
    """Bytes and energy of the group whose change is largest; bytes of another load differ on purpose."""
    said = []
    for measure, less, more in ((UP, "fewer bytes up", "more bytes up"), (DOWN, "fewer bytes down", "more bytes down"),
                                (POWER, "less power of a radio", "more power of a radio")):
        its = [one for one in comparison.headlines if one.measure == measure and all(one.change.means)]
        if not its or (load_differs(found) and measure != POWER):
            continue
        most = max(its, key=lambda one: one.change.size)
        noun = more.removeprefix("more ")
        text = words_of_change(most.change, less, more, partial(figure, measure))
        whose = f" a device of {most.of}" if len(its) > 1 else ""
        said.append((text if noun in text else f"{noun} {text}") + whose)
    # The way down is told where it says something else.
    return [words for words in said if not words.startswith("bytes down the same")]


def _losses(comparison: Comparison) -> str:
    sides = [_lost(side) for side in (comparison.first, comparison.second)]
    if None in sides:
        return _not_acknowledged(comparison) or "no delivery was expected in one of them"
    first, second = (float(share or 0) for share in sides)
    if not first and not second:
        return "nothing lost in either"
    if first == second:
        return f"{percent(first)} not delivered in both"
    return f"{percent(second)} not delivered instead of {percent(first)}"


def _not_acknowledged(comparison: Comparison) -> str:
    """What the broker did not acknowledge, where neither side shows deliveries; empty where one does, or at QoS 0."""
    known = [one.change for one in comparison.headlines if one.measure == "not_acknowledged"
             and one.change.first and one.change.second]
    shown = [one for one in comparison.headlines if one.measure == "undelivered_percent"
             and (one.change.first or one.change.second)]
    if not known or shown:
        return ""
    first, second = (sum(sum(values) for values in side) for side in (
        [change.first for change in known], [change.second for change in known]))
    return ("all acknowledged in both" if not first and not second else
            f"{number(int(second))} not acknowledged instead of {number(int(first))}" if first != second else
            f"{number(int(first))} not acknowledged in both") + "; no delivery can be seen"


def _lost(side: Side) -> float | None:
    """What was not delivered of all that was expected, in per cent over a side's runs."""
    from mqttlab import metrics

    flows = [flow for run in side.recordings for flow in metrics.headline(run).flows]
    expected = sum(flow.expected for flow in flows)
    return 100 * sum(flow.expected - flow.delivered for flow in flows) / expected if expected else None


def _basis(comparison: Comparison, told: list[Compared]) -> str:
    counts = [len(side.recordings) for side in (comparison.first, comparison.second)]
    if min(counts) == 1:
        which = "One run each" if max(counts) == 1 else "One run on a side"
        return f"{which}: too few to tell a difference from chance. Compare groups of {RUNS_ENOUGH} runs or more."
    text = comparison.design
    if any(one.change.word == "undecided" for one in told) or min(counts) < RUNS_ENOUGH:
        open_ = [TITLES[one.measure].removesuffix(" ms") for one in told if one.change.word == "undecided"]
        about = f" about {', '.join(dict.fromkeys(open_))}" if open_ else " much"
        text += f" That is too few to say{about}."
    return text


def _cautions(comparison: Comparison) -> tuple[str, ...]:
    said = []
    for name, side in zip(SIDES, (comparison.first, comparison.second), strict=True):
        runs = side.recordings
        label = f"{visible(side.label)} ({name})"
        said += [f"{label}: {visible(path.name)} left out: {visible(reason)}" for path, reason in side.left_out]
        for run in runs:
            word, reasons = verdict(run)
            if run.going_on:
                said.append(f"{label}: {run.going_on}")
            elif word != "valid":
                said.append(f"{label} is {word}: {visible('; '.join(reasons) or 'no reason is recorded')}")
        silent = [run for run in runs if delivered_nothing(run)]
        if silent:
            of = "" if len(runs) == 1 else f" in {len(silent)} of {len(runs)} runs"
            said.append(f"{label}: nothing was delivered{of}")
    return tuple(said)


def _unmatched(comparison: Comparison) -> tuple[str, ...]:
    return tuple(f"Only in the {SIDES[role.first is None]}: {role.title}" for role in comparison.roles.flows
                 if role.first is None or role.second is None)


def _listed(rows: Sequence[Compared]) -> str:
    by_thing: dict[str, list[str]] = {}
    for one in rows:
        means = [figure(one.measure, mean) for mean in one.change.means]
        values = means[0] if means[0] == means[1] else f"{means[0]} and {means[1]}"
        by_thing.setdefault(one.of, []).append(f"{TITLES[one.measure]} {values}")
    if len(by_thing) == 1:
        return ", ".join(next(iter(by_thing.values())))
    return "; ".join(f"{of}: {', '.join(told)}" for of, told in by_thing.items())
