"""What stands beside the statistics of an experiment: its thresholds, point by point, and what each point costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from mqttlab.metrics import ALL

SERVERS = "server_cpu_us_per_delivery"
COSTS = {"ip_kb_per_device_hour_up": "group", "ip_kb_per_device_hour_down": "group", "energy_mj_per_delivery": "group",
         SERVERS: "run"}
"""What costs, and of what it is read where nobody asked for it."""
KINDS = {"ip_kb_per_device_hour_up": 0, "ip_kb_per_device_hour_down": 0, "energy_mj_per_delivery": 1, SERVERS: 2}


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What became of a threshold at one point."""

    threshold: str
    point: str
    """In words; empty where there is only one."""
    key: str
    """The point's."""
    verdict: Literal["held", "broken", "undecided"]
    words: str
    """The numbers behind it."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """One thing that costs, of one group of clients."""

    metric: str
    of: str | None
    values: Mapping[str, tuple[float, ...]]
    """By point, a value a run."""

    def mean(self, key: str) -> float | None:
        """The mean over a point's runs."""
        values = self.values.get(key, ())
        return math.fsum(values) / len(values) if values else None

    @property
    def title(self) -> str:
        """What is counted, with its unit, and of what."""
        metric = ALL[self.metric]
        unit = "" if metric.unit in metric.title else f" ({metric.unit})"
        return metric.title + unit + (f" of {self.of}" if self.of else "")


def costs_of(tables: Sequence[pl.DataFrame]) -> tuple[Cost, ...]:
    """The costs that tidy tables have; of a metric that several have, those of the first.

    Args:
        tables: that of the journal, then what was read of recordings.
    """
    found: dict[tuple[str, str | None], Cost] = {}
    for table in tables:
        known = {metric for metric, _ in found}
        asked = set(table.filter("declared")["metric"].to_list())
        for metric, scope in COSTS.items():
            rows = table.filter(pl.col("state") == "done", pl.col("kind") == "run", pl.col("metric") == metric,
                                pl.col("value").is_finite(),
                                pl.col("scope").is_in(["group", "run"] if metric in asked else [scope]))
            for name in rows["scope_name"].unique(maintain_order=True) if metric not in known else ():
                its = rows.filter(pl.col("scope_name").eq_missing(pl.lit(name)))
                values = {str(key): tuple(part["value"].to_list())
                          for (key,), part in its.group_by("key", maintain_order=True)}
                found[metric, name] = Cost(metric=metric, of=name, values=values)
    return tuple(found.values())


@dataclass(frozen=True, kw_only=True)
class Total:
    """What is weighed of a cost: of a group of clients, the bytes both ways as one."""

    kind: int
    """Its place among costs: bytes, then energy, then the processor."""
    of: str | None
    metrics: tuple[str, ...]
    means: Mapping[str, float]
    """By point."""


def totals(costs: Sequence[Cost]) -> list[Total]:
    """The costs as they are weighed, the weightiest first; a point that lacks a part of a sum is not in it."""
    parts: dict[tuple[int, str | None], list[Cost]] = {}
    for cost in sorted(costs, key=lambda each: KINDS[each.metric]):
        parts.setdefault((KINDS[cost.metric], cost.of), []).append(cost)
    found = []
    for (kind, of), summed in parts.items():
        means = {key: [cost.mean(key) for cost in summed] for key in summed[0].values}
        found.append(Total(kind=kind, of=of, metrics=tuple(cost.metric for cost in summed), means={
            key: math.fsum(value for value in values if value is not None)
            for key, values in means.items() if None not in values}))
    return found


def cheapest(costs: Sequence[Cost], keys: Sequence[str], margin: float) -> list[str]:
    """Those of some points that none is cheaper than: by bytes, then energy, then the processor.

    Of several groups of clients that one counts which costs most more than at its cheapest point: groups differ in
    size, and a sum would hide what the small messages of many clients cost.

    Args:
        costs: what is known. A total that is not known of every point decides nothing.
        keys: the points.
        margin: the relative difference of a cost that does not matter.
    """
    left, known = list(keys), totals(costs)
    for kind in sorted({total.kind for total in known}):
        more = dict.fromkeys(left, 1.0)
        for total in known:
            least = min((total.means.get(key, 0.0) for key in left), default=0.0)
            if total.kind == kind and least > 0:
                more = {key: max(more[key], total.means[key] / least) for key in left}
        fewest = min(more.values(), default=1.0)
        left = [key for key in left if more[key] <= fewest * (1 + margin)]
    return left
