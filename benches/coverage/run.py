#!/usr/bin/env python3
"""How often intervals cover the true value: every kind of interval, over 2,000 artificial experiments each.

    benches/coverage/run.py                 print the tables
    benches/coverage/run.py --out FILE      write them as Markdown, and what reports warn by
                                            (python/mqttlab/statistics/coverage.json)

The same seeds give the same tables. A minute and a half on one processor.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mqttlab import statistics
from mqttlab.statistics import Interval, distributions
from mqttlab.statistics.means import bootstrap

Values = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Values]

ROOT = Path(__file__).resolve().parents[2]
WARNINGS = ROOT / "python" / "mqttlab" / "statistics" / "coverage.json"
CORRELATED = WARNINGS.with_name("correlated.json")
SIZES = (5, 10, 30)
EXPERIMENTS = 2000
# Correlations of a run's batches, between which the coverage is tabulated.
BATCHES_SHOW = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
# What a report can tell from the values at hand: how skewed they are, not that one in ten will be an outlier.
WARNED = ("normal", "log-normal, σ = 0.5", "exponential", "log-normal, σ = 1")
# Name, how to draw, and the true mean.
FAMILIES: dict[str, tuple[Draw, float]] = {
    "normal": (lambda rng, n: rng.normal(100, 15, n), 100.0),
    "uniform": (lambda rng, n: rng.uniform(0, 2, n), 1.0),
    "log-normal, σ = 0.5": (lambda rng, n: rng.lognormal(0, 0.5, n), math.exp(0.125)),
    "exponential": (lambda rng, n: rng.exponential(size=n), 1.0),
    "log-normal, σ = 1": (lambda rng, n: rng.lognormal(0, 1, n), math.exp(0.5)),
    "one run in ten is ten times as slow": (lambda rng, n: np.where(rng.random(n) < 0.1, 10.0, 1.0)
                                            + rng.normal(0, 0.1, n), 1.9),
}


def covered(found: Iterator[Interval], truth: float) -> tuple[float, float]:
    """The share of the intervals that cover, and of those with both ends."""
    listed = list(found)
    bounded = [interval for interval in listed if interval.bounded]
    share = sum(interval.covers(truth) for interval in bounded) / len(bounded) if bounded else math.nan
    return share, len(bounded) / len(listed)


def means() -> Iterator[dict[str, Any]]:
    """Means by family and n: what `mean_interval` gives, and Student's t and the bootstrap alone."""
    for family, (draw, truth) in FAMILIES.items():
        for n in SIZES:
            rng = np.random.default_rng(1)
            samples = [draw(rng, n) for _ in range(EXPERIMENTS)]
            share, _ = covered((statistics.mean_interval(x) for x in samples), truth)
            row = {"family": family, "n": n, "coverage": share, "t": _student(samples, truth), "bca": None,
                   "skewness": float(np.mean([statistics.skewness(x) for x in samples]))}
            if n >= 10:
                ends = [bootstrap(x, lambda drawn: drawn.mean(axis=-1)) for x in samples]
                row["bca"] = sum(low <= truth <= high for low, high in ends) / EXPERIMENTS
            yield row


def _student(samples: list[Values], truth: float) -> float:
    from scipy import stats

    table = np.array(samples)
    half = stats.t.ppf(0.975, table.shape[1] - 1) * table.std(axis=1, ddof=1) / math.sqrt(table.shape[1])
    return float(np.mean(np.abs(table.mean(axis=1) - truth) <= half))


def proportions() -> Iterator[dict[str, Any]]:
    """Wilson's interval and the bounds of none and all; the interval of Clopper and Pearson beside it."""
    for share in (0.001, 0.01, 0.05, 0.2, 0.5):
        for n in (*SIZES, 1000):
            counts = np.random.default_rng(1).binomial(n, share, EXPERIMENTS)
            ours, exact = (covered((of(int(k), n) for k in counts), share)[0]
                           for of in (statistics.proportion_interval, statistics.proportion_exact))
            yield {"share": share, "n": n, "coverage": ours, "exact": exact}


def quantiles() -> Iterator[dict[str, Any]]:
    """Quantiles within a run, of independent exponential latencies and of correlated ones."""
    for q in (0.5, 0.9, 0.99):
        for n in (5, 10, 30, 400, 2000):
            rng = np.random.default_rng(1)
            truth = -math.log(1 - q)
            found = covered((statistics.quantile_interval(rng.exponential(size=n), q)
                             for _ in range(EXPERIMENTS)), truth)
            rng = np.random.default_rng(1)
            walks = [_correlated(rng, n) for _ in range(400 if n > 100 else 0)]
            normal = distributions.normal_quantile(q)
            correlated, naive = (covered((statistics.quantile_interval(x, q, correlated=way) for x in walks), normal)
                                 if walks else (math.nan, 0.0) for way in (True, False))
            yield {"q": q, "n": n, "coverage": found[0], "bounded": found[1], "correlated": correlated[0],
                   "naive": naive[0]}


def _correlated(rng: np.random.Generator, n: int) -> Values:
    """Standard normal samples, neighbours correlated by 0.8."""
    noise = rng.normal(size=n)
    values = np.empty(n)
    values[0] = noise[0]
    for place in range(1, n):
        values[place] = 0.8 * values[place - 1] + 0.6 * noise[place]
    return values


def batches() -> tuple[list[dict[str, Any]], list[dict[str, float]]]:
    """Means within a run by batch means: by length and neighbours' correlation, and by what batches show of it."""
    rows, shown, hits = [], [], []
    for phi in (0.0, 0.8, 0.95, 0.99, 0.995):
        for n in (400, 2000, 10_000):
            rng = np.random.default_rng(1)
            covers = []
            for _ in range(EXPERIMENTS):
                samples = _autoregressive(rng, n, phi)
                half = statistics.batch_means_ci95(samples)
                assert half is not None
                covers.append(abs(float(samples.mean())) <= half)
                shown.append(statistics.batch_correlation(samples))
            hits += covers
            rows.append({"phi": phi, "n": n, "coverage": float(np.mean(covers))})
    seen, found, bins = np.array(shown), np.array(hits), []
    for low, high in itertools.pairwise((-1.0, *BATCHES_SHOW, 1.01)):
        within = (seen >= low) & (seen < high)
        bins.append({"below": high, "coverage": float(found[within].mean()), "runs": int(within.sum())})
    return rows, bins


def _autoregressive(rng: np.random.Generator, n: int, phi: float) -> Values:
    """Standard normal samples from the steady state, neighbours correlated by ``phi``."""
    from scipy.signal import lfilter

    noise = rng.normal(size=n)
    noise[1:] *= math.sqrt(1 - phi**2)
    return np.asarray(lfilter([1.0], [1.0, -phi], noise), dtype=np.float64)


def effects() -> Iterator[dict[str, Any]]:
    """Two series of n runs each, the second shifted, and scaled for the ratio."""
    for family in ("normal", "exponential"):
        draw, mean = FAMILIES[family]
        shift = 0.3 * mean
        for n in SIZES:
            pairs = [(draw(rng, n), draw(rng, n)) for rng in [np.random.default_rng(1)] for _ in range(EXPERIMENTS)]
            kinds: dict[str, tuple[Callable[[Values, Values], Interval], float]] = {
                "difference": (lambda a, b, shift=shift: statistics.difference(a, b + shift).interval, shift),
                "ratio": (lambda a, b: statistics.ratio_interval(a, 1.3 * b), 1.3),
                "Hodges–Lehmann": (lambda a, b, shift=shift: statistics.hodges_lehmann(a, b + shift), shift),
                "Hodges–Lehmann, paired": (
                    lambda a, b, shift=shift: statistics.hodges_lehmann(a, b + shift, paired=True), shift),
                "Cliff's δ": (statistics.cliffs_delta, 0.0),
            }
            row: dict[str, Any] = {"family": family, "n": n}
            for name, (of, truth) in kinds.items():
                share, bounded = covered((of(a, b) for a, b in pairs), truth)
                row[name] = share if bounded > 0.5 else math.nan
            yield row


def percent(share: float | None) -> str:
    """A cell."""
    return "–" if share is None else "n too small" if math.isnan(share) else f"{100 * share:.1f} %"


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def markdown(found: list[dict[str, Any]], in_batches: tuple[list[dict[str, Any]], list[dict[str, float]]]) -> str:
    """The page."""
    by_family = [[family, *(percent(row[kind]) for n in SIZES for kind in ("coverage", "t", "bca")
                            for row in found if row["family"] == family and row["n"] == n)] for family in FAMILIES]
    head = ["runs are", *(f"n = {n}{kind}" for n in SIZES for kind in ("", ", t alone", ", BCa alone"))]
    shares = list(proportions())
    in_run = list(quantiles())
    of_two = list(effects())
    return "\n".join([
        "# Coverage of intervals", "",
        f"Written by `benches/coverage/run.py`: {EXPERIMENTS} artificial experiments for each cell; 95 % is what every",
        "interval promises. A share from 2,000 experiments has a standard error of 0.5 %.", "",
        "## Means over runs", "", table(head, by_family),
        "## Proportions", "",
        table(["true share", "n", "Wilson, and bounds of none and all", "Clopper–Pearson"],
              [[f"{100 * row['share']:g} %", str(row["n"]), percent(row["coverage"]), percent(row["exact"])]
               for row in shares]),
        "## Quantiles within a run", "",
        "Exponential latencies, independent; and normal ones whose neighbours are correlated by 0.8 (400 experiments).",
        "",
        table(["quantile", "samples", "independent", "correlated", "correlated, taken for independent"],
              [[f"{row['q']:g}", str(row["n"]), percent(row["coverage"] if row["bounded"] > 0.5 else math.nan),
                *(percent(row[name] if row["n"] > 100 else None) for name in ("correlated", "naive"))]
               for row in in_run]),
        "## Means within a run", "",
        "Batch means (20 batches) of normal latencies; neighbours correlated as said. A run that is short against its",
        "memory leaves batches that depend on each other, which can be seen: reports warn where runs with batches",
        "correlated like that, of all those tried here, are covered in less than 92 %, from a correlation of 0.3 on:",
        "less is shown by independent batches, too, in more than one run of twenty.", "",
        table(["neighbours' correlation", *(f"{n} samples" for n in (400, 2000, 10_000))],
              [[f"{phi:g}", *(percent(row["coverage"]) for row in in_batches[0] if row["phi"] == phi)]
               for phi in dict.fromkeys(row["phi"] for row in in_batches[0])]),
        table(["batches' correlation below", "runs", "coverage"],
              [["any" if row["below"] > 1 else f"{row['below']:g}", str(row["runs"]), percent(row["coverage"])]
               for row in in_batches[1]]),
        "## Effects of two series", "",
        table(["runs are", "n", *list(of_two[0])[2:]],
              [[row["family"], str(row["n"]), *(percent(row[name]) for name in list(row)[2:])] for row in of_two]),
    ])


def main() -> int:
    """Simulate, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file for the tables, as Markdown")
    arguments = parser.parse_args()
    found, in_batches = list(means()), batches()
    page = markdown(found, in_batches)
    print(page)
    if arguments.out:
        arguments.out.write_text(page, encoding="utf-8")
        kept = [{name: row[name] for name in ("family", "n", "skewness", "coverage")}
                for row in found if row["family"] in WARNED]
        rows = ",\n".join(" " + json.dumps(row, ensure_ascii=False) for row in kept)
        WARNINGS.write_text(f"[\n{rows}\n]\n", encoding="utf-8")
        by_batches = ",\n".join(" " + json.dumps(row) for row in in_batches[1])
        CORRELATED.write_text(f"[\n{by_batches}\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
