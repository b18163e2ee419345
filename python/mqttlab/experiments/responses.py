"""Responses: which metric of what an experiment measures, and what a bound on it is in the metric's own unit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mqttlab import metrics
from mqttlab.experiments.factors import number
from mqttlab.mistaken import names_like
from mqttlab.quantity import shown
from mqttlab.recording import Recording
from mqttlab.samples import counted_by, fewest
from mqttlab.scenario.threshold import Measured

DEFAULT = ("latency_ms_mean", "latency_ms_p50", "latency_ms_p99", "undelivered_percent", "throughput_per_s")
# How much of a metric's unit the unit without a prefix is.
PER_BASE = {"ns": ("s", 1e9), "ms": ("s", 1e3), "s": ("s", 1.0), "%": ("ratio", 100.0), "ratio": ("ratio", 1.0),
            "B": ("B", 1.0), "kbit/s": ("bit/s", 1e-3), "bit/s": ("bit/s", 1.0)}


@dataclass(frozen=True)
class Response:
    """A metric of something."""

    metric: str
    scope: str = "run"
    scope_name: str | None = None
    """Which of that scope; ``None`` for all of them."""
    stage: str | None = None
    """Of this stage of the measurement alone; ``None`` for all that are measured."""

    def __str__(self) -> str:
        where = "" if self.scope == "run" else f" of {self.scope}" + (f" {self.scope_name}" if self.scope_name else "")
        return self.metric + where + ("" if self.stage is None else f" in stage {self.stage}")


@dataclass(frozen=True, kw_only=True)
class Value:
    """What a run yields for a response."""

    metric: str
    scope: str
    scope_name: str | None
    value: float
    unit: str
    stage: str | None = None
    """Of a threshold that is about a stage alone."""

    @property
    def kept(self) -> dict[str, str | float | None]:
        """As journals have it; the stage where there is one."""
        return {name: value for name, value in vars(self).items() if name != "stage" or value is not None}


def response_of(measured: Measured) -> Response:
    """The response that a table of the file names."""
    return Response(measured.metric, measured.scope, measured.name, getattr(measured, "stage", None))


def wrong(measured: Measured, *, named: bool = True) -> tuple[str, str] | None:
    """The field that is wrong with a metric and its scope, and what; ``None`` where nothing is.

    Args:
        measured: from a file.
        named: one value is needed, so that scopes of several need a name.
    """
    families = _families(measured.metric)
    if not families:
        known = sorted({metric.name for family in _all() for metric in family.metrics})
        near = names_like(measured.metric, known)
        hint = f"did you mean {', '.join(map(shown, near))}?" if near else "docs/reference/metrics.md lists them"
        return "metric", f"is {shown(measured.metric)}, which is no metric; {hint}"
    scopes = [scope for scope in SCOPES if any(scope in family.scopes for family in families)]
    if measured.scope not in scopes:
        if measured.scope == "run" and scopes:
            return "metric", (f"is {shown(measured.metric)}, which a run as a whole does not have; add `scope`, one of "
                              f"{', '.join(scopes)}")
        return "scope", (f"is {shown(measured.scope)}, but {measured.metric} is of "
                         f"{', '.join(scopes) or 'single messages and connections'}")
    if measured.scope == "run" and measured.name is not None:
        return "name", f"is {shown(measured.name)}, but the scope is \"run\"; leave it out, or add a `scope`"
    stage = getattr(measured, "stage", None)
    if stage is not None and not metrics.is_of_stages(measured.metric):
        return "stage", f"is {shown(stage)}, but {measured.metric} is of the whole run; leave it out"
    if named and measured.scope != "run" and measured.name is None:
        return "scope", f"is {shown(measured.scope)}, of which there are several; add `name`, which of them"
    return None


EXPECTED, LOST, UNDELIVERED = "deliveries_expected", "messages_lost_percent", "undelivered_percent"
# A latency is that of what was delivered. So many percent of the expected may be under way when a run ends before a
# bound from above says nothing of the rest; of a mean, which any share moves, as of the 99th percentile.
LATE_PERCENT_MAX = {"latency_ms_mean": 1.0, "latency_ms_p50": 50.0, "latency_ms_p95": 5.0, "latency_ms_p99": 1.0,
                    "latency_ms_max": 0.0}
# What judging a metric needs besides it.
SUPPORT = {**dict.fromkeys(LATE_PERCENT_MAX, (UNDELIVERED, LOST)), LOST: (EXPECTED, UNDELIVERED),
           UNDELIVERED: (EXPECTED,), "latency_ms_mean": ("latency_ms_mean_ci95", UNDELIVERED, LOST)}


def supported(responses: Iterable[Response]) -> list[Response]:
    """Responses, and what judging them needs."""
    found = list(responses)
    needed = [replace(each, metric=metric) for each in found
              for metric in (*SUPPORT.get(each.metric, ()), counted_by(each.metric)) if metric is not None]
    return found + [each for each in dict.fromkeys(needed) if each not in found]


def judged_of(measured: Measured) -> Response:
    """The response by which a bound is judged: what was under way when a run ended is not lost, and no success
    either."""
    response = response_of(measured)
    return replace(response, metric=UNDELIVERED) if response.metric == LOST else response


SCOPES = ("run", "qos", "groups", "group", "direction", "link", "station", "event")


def _all() -> list[metrics.Family]:
    return [*metrics.FAMILIES, metrics.ENGINE]


def _families(name: str) -> list[metrics.Family]:
    return [family for family in _all() if name in [metric.name for metric in family.metrics]]


def unit_of(metric: str) -> str:
    """A metric's unit."""
    return next(m.unit for family in _families(metric) for m in family.metrics if m.name == metric)


def better_of(metric: str) -> str:
    """Which direction of a metric is better: ``lower``, ``higher`` or ``neither``."""
    return next(m.better for family in _families(metric) for m in family.metrics if m.name == metric)


def bound(metric: str, written: float | str) -> float:
    """A bound in the metric's own unit.

    Raises:
        ValueError: it is of another kind, or no number.
    """
    unit = unit_of(metric)
    if not isinstance(written, str):
        return float(written)
    found = number(written)
    example = {"ms": "250 ms", "%": "1 %", "ns": "50 us", "s": "2 s", "B": "1 kB"}.get(unit)
    write = f"write \"{example}\"" if example else "write a number"
    if found is None:
        raise ValueError(f"is {shown(written)}, but {metric} is in {unit}; {write}")
    base, per = PER_BASE.get(unit, (unit, 1.0))
    if unit.endswith("/s") and found.unit == "/s":
        return found.value
    if found.unit != base:
        raise ValueError(f"is {shown(written)}, but {metric} is in {unit}; {write}")
    return found.value * per


def values_of(recording: Recording, wanted: Iterable[Response]) -> list[Value]:
    """What a recording yields for these responses; what it does not tell has none."""
    wanted = list(wanted)
    return [value for stage in dict.fromkeys(each.stage for each in wanted)
            for value in _of_stage(recording, [each for each in wanted if each.stage == stage], stage)]


def _of_stage(recording: Recording, wanted: Sequence[Response], stage: str | None) -> list[Value]:
    tables = {family.table for response in wanted for family in _families(response.metric)}
    scopes = {response.scope for response in wanted}
    rows = metrics.summary(recording, tables=tables, scopes=scopes, stage=stage).rows(named=True)
    found: dict[tuple[str, str, str | None], Value] = {}
    for row in rows:
        for response in wanted:
            if (row["metric"], row["scope"]) != (response.metric, response.scope):
                continue
            if response.scope_name is not None and row["name"] != response.scope_name:
                continue
            # A metric that two tables have is the same number in both.
            found.setdefault((row["metric"], row["scope"], row["name"]), Value(
                metric=row["metric"], scope=row["scope"], scope_name=row["name"], value=row["value"],
                unit=row["unit"], stage=stage))
    return list(found.values())


def under_way(values: Sequence[Value], response: Response) -> float:
    """How many percent of a response's expected deliveries were neither delivered nor lost when its run ended; 0 where
    that does not matter to it, or is not known."""
    if response.metric not in LATE_PERCENT_MAX:
        return 0.0
    missing, lost = (chosen(values, replace(response, metric=metric))
                     for metric in (UNDELIVERED, LOST))
    return 0.0 if missing is None else max(0.0, missing - (lost or 0.0))


def is_cut_off(response: Response, late_percent: float) -> bool:
    """Whether more of a response's deliveries were under way than its statistic leaves out."""
    return late_percent > LATE_PERCENT_MAX.get(response.metric, 100.0)


def too_few(values: Sequence[Value], response: Response) -> int | None:
    """Of how many values a run's percentile is, where these are too few to tell it; ``None`` where they are enough, or
    their number is not known."""
    counter = counted_by(response.metric)
    n = None if counter is None else chosen(values, replace(response, metric=counter))
    return None if n is None or n >= fewest(response.metric) else int(n)


def too_few_in_words(counts: Sequence[int], response: Response) -> str:
    """Why runs with so few values do not tell a percentile."""
    counter = counted_by(response.metric)
    assert counter is not None, "they were counted"
    least, most = min(counts), max(counts)
    of = f"{least}" if least == most else f"{least} to {most}"
    return (f"a run has only {of} {unit_of(counter)}, and this percentile needs {fewest(response.metric)}; lengthen "
            "`phases.duration`")


def chosen(values: Sequence[Value], response: Response) -> float | None:
    """The one value of a response."""
    return next((value.value for value in values
                 if (value.metric, value.scope, value.stage) == (response.metric, response.scope, response.stage)
                 and (response.scope == "run" or value.scope_name == response.scope_name)), None)
