"""The stages of a run beside each other: a column for each, and one for all that are measured together.

A message belongs to the stage in which it was due. Numbers are those of :func:`mqttlab.metrics.headline`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqttlab import metrics
from mqttlab.metrics import Flow, Headline, Stage
from mqttlab.recording import Recording
from mqttlab.report import headline
from mqttlab.report.headline import cell, in_unit, percent
from mqttlab.report.text import number

NS_PER_S = 1e9
ALL = "all measured"
FLOWS_SHOWN = 20
# The answer in a terminal has 80 columns, of which these are the label's.
WIDTH, LABEL, COLUMN_MIN, COLUMN_MAX = 80, 12, 9, 16
# The largest stands in for a percentile that no stage has messages enough for.
BRIEF, LARGEST = ("p99 ms", "p50 ms", "not delivered", "sent"), "worst ms"


def columns(recording: Recording) -> list[tuple[Stage, Headline]]:
    """Each stage with its numbers; none without stages."""
    if "stages" not in recording.remembered:
        recording.remembered["stages"] = [
            (stage, metrics.headline(recording.of_stage(stage.name))) for stage in metrics.stages(recording)]
    found: list[tuple[Stage, Headline]] = recording.remembered["stages"]
    return found


def table(recording: Recording) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of text: what a row is, all measured stages together, each stage. No rows without stages."""
    told = columns(recording)
    if not told:
        return [], []
    whole = metrics.headline(recording)
    head = ["measure", ALL, *(called(stage) for stage, _ in told)]
    rows = [["from s", "–", *(number(begin, 6) for begin, _ in _times(recording))],
            ["lasts s", number(whole.measured_s, 6), *(number(end - begin, 6) for begin, end in _times(recording))]]
    flows = headline.shown(whole.flows, FLOWS_SHOWN)
    for flow in flows:
        those = [_same(numbers, flow) for numbers in (whole, *(numbers for _, numbers in told))]
        title = f"{headline.title(flow)}: " if len(flows) > 1 else ""
        rows += [[f"{title}{name}", *(_value(name, one) for one in those)] for name in VALUES]
    for group in whole.bytes:
        known = [next((one for one in numbers.bytes if one.group == group.group), None)
                 for numbers in (whole, *(numbers for _, numbers in told))]
        rows += [[f"{group.group}: {metrics.DEVICE_RATE} {way}",
                  *("–" if one is None else number(getattr(one, f"ip_{way}"), 3) for one in known)]
                 for way in ("up", "down")]
    return head, rows


def words(recording: Recording) -> str:
    """What is said below the table."""
    flows = len(metrics.headline(recording).flows) - FLOWS_SHOWN
    left = f" {flows} more flows are left out; `--json` has all." if flows > 0 else ""
    outside = [stage.name for stage, _ in columns(recording) if not stage.measured]
    unmeasured = ""
    if outside:
        unmeasured = f" Not measured: {', '.join(outside)}. The headline is of the other stages."
    return f"A message belongs to the stage in which it was due.{unmeasured}{left}"


def brief(recording: Recording) -> list[str]:
    """The stages in lines of at most 80 columns, for the flow that is worst off; empty without stages."""
    told = columns(recording)
    flows = headline.worst_first(metrics.headline(recording).flows)
    if not told or not flows:
        return []
    names = [called(stage) for stage, _ in told]
    width = min(COLUMN_MAX, max(COLUMN_MIN, *(len(name) + 1 for name in names)))
    room = (WIDTH - LABEL) // width
    lines = [f"{'stages':<{LABEL}}" + "".join(f"{_cut(name, width - 1):>{width}}" for name in names[:room])]
    for name in BRIEF:
        those = [_same(numbers, flows[0]) for _, numbers in told[:room]]
        if name == "p99 ms" and all(_value(name, one) == "–" for one in those):
            name = LARGEST
        unit = headline.unit_of(*(one.latency for one in those if one is not None))
        values = [_value(name, one, unit) for one in those]
        title = "missing" if name == "not delivered" else name.replace(" ms", f" {unit}")
        lines.append(f"{title:<{LABEL}}"
                     + "".join(f"{value:>{width}}" for value in values))
    more = [f"of {headline.title(flows[0])}"] if len(flows) > 1 else []
    more += [f"{len(told) - room} more stages: --full"] if len(told) > room else []
    more += ["* not measured"] if any(not stage.measured for stage, _ in told[:room]) else []
    return [*lines, *([f"{'':<{LABEL}}{'; '.join(more)}"[:WIDTH]] if more else [])]


def document(recording: Recording) -> list[dict[str, Any]]:
    """The stages as JSON has them."""
    return [{"name": stage.name, "from_s": begin, "until_s": end, "measured": stage.measured,
             "measured_s": numbers.measured_s, "flows": headline.flows_document(numbers)}
            for (stage, numbers), (begin, end) in zip(columns(recording), _times(recording), strict=True)]


def called(stage: Stage) -> str:
    """A stage's name, with a star where it is not measured."""
    return stage.name if stage.measured else f"{stage.name} *"


def _times(recording: Recording) -> list[tuple[float, float]]:
    """Begin and end of each stage, in seconds of the measurement."""
    stages = metrics.stages(recording)
    zero = stages[0].from_ns if stages else 0
    return [((stage.from_ns - zero) / NS_PER_S, (stage.until_ns - zero) / NS_PER_S) for stage in stages]


def _same(numbers: Headline, flow: Flow) -> Flow | None:
    """The same flow among others' numbers."""
    return next((one for one in numbers.flows if one.key == flow.key), None)


def _value(name: str, flow: Flow | None, unit: str = "ms") -> str:
    return "–" if flow is None else VALUES[name](flow, unit)


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[:width - 1]}…"


VALUES: dict[str, Callable[[Flow, str], str]] = {
    "p99 ms": lambda flow, unit: cell(flow.latency["p99"], unit),
    "p95 ms": lambda flow, unit: cell(flow.latency["p95"], unit),
    "p50 ms": lambda flow, unit: cell(flow.latency["p50"], unit),
    LARGEST: lambda flow, unit: in_unit(flow.latency["max"].value, unit),
    "not delivered": lambda flow, unit: percent(flow.undelivered_percent),
    "sent": lambda flow, unit: number(flow.left),
    "deliveries per s": lambda flow, unit: number(flow.per_s, 3),
}
