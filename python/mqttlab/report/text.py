"""Words and numbers as both reports print them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import polars as pl

from mqttlab.digits import LONG_NS, TIME_UNITS, duration, plain
from mqttlab.metrics import ALL, foreign
from mqttlab.plurals import counted
from mqttlab.recording import Recording
from mqttlab.report import nothing_delivered
from mqttlab.report.nothing_delivered import NOTHING_DELIVERED

# What stands below a heading; others are counts of what the heading names.
NOTHING = 1e-12
# A time of the engine with more digits than are read.
EXACT = re.compile(r"\b(\d+\.\d{2,}|\d{3,}\.\d|\d{5,}) (ns|us|ms|s)\b")
ANSWERS_SHOWN = 20
UNITS = ("ms", "s", "B", "B/s", "kbit/s", "%")


def number(value: Any, digits: int = 4) -> str:
    """A cell: integers as ``2,400``, floats to ``digits`` significant digits, nothing as a dash."""
    if value is None:
        return "–"
    if isinstance(value, float):
        if value != value:
            return "–"
        # What is left of a difference of equal numbers is none.
        if abs(value) < NOTHING:
            return "0"
        return plain(value, digits)
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def heading(column: str) -> str:
    """A column's short title."""
    metric = ALL.get(column)
    return metric.title if metric else column.replace("_", " ")


def disconnections_title(ended: pl.DataFrame, shown: pl.DataFrame) -> str:
    """The title of as much as is shown of :func:`mqttlab.metrics.disconnections`."""
    left = ended.height - shown.height
    return "Why connections ended or were refused" + (f" (and {counted(left, 'more row')})" if left else "")


def answers_title(answered: pl.DataFrame, shown: pl.DataFrame) -> str:
    """The title of as much as is shown of :func:`mqttlab.metrics.answers`."""
    left = answered.height - shown.height
    return "What brokers and clients answered" + (f" (and {counted(left, 'more row')})" if left else "")


def unit(column: str) -> str:
    """The unit of a column's numbers where its title does not tell it; empty for counts and ratios."""
    metric = ALL.get(column)
    told = metric is None or metric.unit in metric.title.split() or metric.unit not in UNITS
    return "" if metric is None or told else metric.unit


def meaning(column: str) -> str:
    """A column's meaning with its unit, for a tooltip."""
    metric = ALL.get(column)
    return f"{metric.meaning} [{metric.unit}]" if metric else ""


def _foreign(recording: Recording) -> list[str]:
    """What was received and is in no table, because nobody in the evidence has sent it; nothing where nothing was."""
    count = foreign(recording)
    if not count:
        return []
    imported = "sources" in recording.plan
    return [f"{counted(count, 'foreign delivery', 'foreign deliveries')}, which no publisher "
            f"{'in the evidence' if imported else 'of this run'} has sent, came on its topics and "
            f"{'is' if count == 1 else 'are'} not counted"
            # Only a broker that others reach has other publishers.
            + (": see who else publishes there." if any(
                server["kind"] == "external" for server in recording.plan["servers"]) and not imported else ".")]


def verdict(recording: Recording) -> tuple[str, list[str]]:
    """How far the numbers can be trusted: ``valid``, ``not valid`` or ``incomplete``, and sentences that say why.

    The first says why it is not valid. Then comes whose messages are not counted, before all else.
    """
    run = recording.run
    validity = run.get("validity") or {}
    stored = [str(text) for text in run.get("warnings", [])]
    reasons = [nothing_delivered.told(recording, text) if text.startswith(NOTHING_DELIVERED) else text
               for text in stored]
    if run.get("schema_version") == 1:
        reasons.append("Recorded with schema version 1, which counts what was under way at the end as lost.")
    if not recording.complete:
        reason = run.get("reason") or "the run ended before it was complete"
        said = [rounded(str(text)) for text in validity.get("reasons", [])]
        return "incomplete", [str(reason), *_foreign(recording), *said, *reasons]
    remarks = [rounded(str(text)) for text in (*validity.get("reasons", []), *validity.get("remarks", []))]
    if validity.get("valid", True):
        return "valid", [*_foreign(recording), *remarks, *reasons]
    return "not valid", [*remarks[:1], *_foreign(recording), *remarks[1:], *reasons]


def rounded(words: str) -> str:
    """A sentence of the engine, its times to three digits: the recording has them to the nanosecond."""
    return EXACT.sub(lambda found: _rounded(float(found[1]), found[2]), words)


def _rounded(value: float, unit: str) -> str:
    nanoseconds = value * TIME_UNITS[unit]
    return duration(nanoseconds) if nanoseconds >= LONG_NS else f"{plain(value, 3)} {unit}"


def delivered_nothing(recording: Recording) -> str:
    """The sentence on a run to which nothing was delivered: read that first, valid or not. Else empty."""
    stored = (str(text) for text in recording.run.get("warnings", []))
    return next((nothing_delivered.told(recording, text) for text in stored if text.startswith(NOTHING_DELIVERED)), "")


def lateness(recording: Recording) -> list[tuple[str, str]]:
    """The lateness of emulator and senders and the other evidence of validity, as label and value."""
    validity = recording.run.get("validity") or {}
    rows: list[tuple[str, str]] = []
    for who in ("emulator", "control_timer", "sender", "senders"):
        figures = validity.get(f"{who}_lateness") or validity.get(who)
        if isinstance(figures, dict):
            parts = [
                f"{name} {duration(figures.get(f'{name}_ns'))}" for name in ("p50", "p99", "max")
                if figures.get(f"{name}_ns") is not None
            ]
            rows.append((f"{who.removesuffix('s').replace('_', ' ')} lateness", ", ".join(parts)))
    for path in validity.get("paths") or []:
        if path.get("p99_ns") is not None:
            more = f" and {path['paths'] - 1} more" if path["paths"] > 1 else ""
            rows.append((f"lateness {path['from']} → {path['to']}{more}",
                         f"p99 {duration(path['p99_ns'])}, at most {duration(path['limit_ns'])}"))
    machine = validity.get("machine") or {}
    rows += [(label, say(machine[key])) for key, label, say in MACHINE if machine.get(key) is not None]
    for key, value in validity.items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            label = key.removesuffix("_ns").replace("_", " ")
            rows.append((label, duration(value) if key.endswith("_ns") else number(value)))
    return rows


def moment(text: Any) -> str:
    """A point in time as people write it: to the second, in UTC."""
    date, separator, rest = str(text).partition("T")
    return f"{date} {rest[:8]} UTC" if separator and str(text).endswith("Z") else str(text)


def _percent(share: Any) -> str:
    return f"{number(share, 3)} %"


def _hold_ups(held: Any) -> str:
    """How often a thread was held up, for how long, and what it waited for."""
    if not isinstance(held, dict) or not held.get("count"):
        return "never"
    parts = (("run_queue_ns", "without a processor"), ("recorder_ns", "for the recorder"), ("working_ns", "with work"),
             ("elsewhere_ns", "elsewhere"))
    shares = ", ".join(f"{duration(held[name])} {words}" for name, words in parts if held.get(name))
    return f"{number(held['count'])} times, {duration(held['total_ns'])}: {shares}"


# What of the machine's own doing is shown, in this order.
MACHINE: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("steal_percent", "steal (processor time given to other machines)", _percent),
    ("throttled_periods", "periods in which the container's quota was used up", number),
    ("emulator_cpu_percent", "the emulator's share of a processor", _percent),
    ("emulator_run_queue_ns", "the emulator waited for a processor", duration),
    ("emulator_faults_major", "the emulator's page faults from disk", number),
    ("emulator_held_up", "the emulator was held up by 0.1 ms or more", _hold_ups),
    ("control_timer_held_up", "the control timer was held up by 0.1 ms or more", _hold_ups),
    ("disk_pressure_percent", "time in which some program waited for a disk", _percent),
    ("memory_pressure_percent", "time in which some program waited for memory", _percent),
    ("cpu_kept_awake", "processors kept from deep sleep", lambda held: "yes" if held else "no"),
)
