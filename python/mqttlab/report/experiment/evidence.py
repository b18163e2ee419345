"""What the figures of an experiment need of single messages: the latencies and the attribution of some runs.

Read are the runs of the points that differ from the reference in one factor; of many, the first blocks only. Runs whose
recordings are gone, or somewhere else, are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from mqttlab import metrics
from mqttlab.analysis import ExperimentDesign
from mqttlab.metrics import sums
from mqttlab.recording import Recording, RecordingError

RECORDINGS_MOST = 60


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Of one factor, by its levels in order."""

    factor: str
    latencies_ms: dict[str, np.ndarray]
    parts: pl.DataFrame
    """``level``, ``part``, ``mean_ms``: means over messages of the runs, by part."""
    runs: int
    of: int
    """Runs there are; fewer may have been read."""
    sampled: int = 0
    """Those of the runs that keep a sample of their messages alone."""


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """Of one run."""

    latencies_ms: np.ndarray
    parts: pl.DataFrame
    is_sampled: bool


def evidence(design: ExperimentDesign, table: pl.DataFrame) -> list[Evidence]:
    """For each factor the messages of the points on the line through the reference, or through the first point."""
    runs = table.filter(pl.col("state") == "done", pl.col("kind") == "run").unique("run", maintain_order=True)
    if runs.is_empty():
        return []
    at = runs.filter(pl.col("key") == (design.reference or ""))
    middle = (at if at.height else runs).row(0, named=True)
    chosen = {factor.name: runs.filter(*(pl.col(other.name) == middle[other.name] for other in design.factors
                                         if other.name != factor.name)).sort("block", "order_no")
              for factor in design.factors}
    wanted = sum(part.height for part in chosen.values())
    blocks = sorted(runs["block"].unique().to_list())
    kept = blocks[:max(1, int(len(blocks) * min(1.0, RECORDINGS_MOST / max(wanted, 1))))]
    read: dict[str, _Seen | None] = {}
    found = []
    for factor in design.factors:
        part = chosen[factor.name].filter(pl.col("block").is_in(kept))
        levels: dict[str, list[_Seen]] = {level: [] for level in factor.levels}
        for run in part.iter_rows(named=True):
            seen = read[run["directory"]] if run["directory"] in read else _read(run["directory"])
            read[run["directory"]] = seen
            if seen is not None:
                levels.setdefault(run[factor.name], []).append(seen)
        known = {level: seen for level, seen in levels.items() if seen}
        if len(known) > 1:
            found.append(Evidence(
                factor=factor.name, runs=sum(map(len, known.values())), of=chosen[factor.name].height,
                latencies_ms={level: samples for level, seen in known.items()
                              if (samples := np.concatenate([each.latencies_ms for each in seen])).size},
                sampled=sum(each.is_sampled for seen in known.values() for each in seen), parts=_parts(known)))
    return found


def _read(directory: str) -> _Seen | None:
    if "://" in directory or not Path(directory).is_dir():
        return None
    try:
        recording = Recording.open(Path(directory))
        latencies = metrics.deliveries(recording, ["latency_ms"])["latency_ms"].to_numpy()
        return _Seen(latencies_ms=latencies, parts=metrics.attribution_by_qos(recording),
                     is_sampled=sums.is_summed(recording))
    except RecordingError:
        return None


def _parts(levels: dict[str, list[_Seen]]) -> pl.DataFrame:
    """Means over the messages of all runs of a level."""
    rows = [frame.select("part", "mean_ms", "messages").with_columns(level=pl.lit(level))
            for level, seen in levels.items() for frame in (each.parts for each in seen) if not frame.is_empty()]
    if not rows:
        return pl.DataFrame(schema={"level": pl.String, "part": pl.String, "mean_ms": pl.Float64})
    mean = (pl.col("mean_ms") * pl.col("messages")).sum() / pl.col("messages").sum()
    return pl.concat(rows).group_by("level", "part", maintain_order=True).agg(mean_ms=mean)
