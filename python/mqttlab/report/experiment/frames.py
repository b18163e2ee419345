"""The numbers of an analysis as tables, for CSV, XLSX and figures."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from mqttlab.analysis import Analysis, Compared, Line, Response
from mqttlab.statistics import Interval
from mqttlab.statistics.distributions import normal_quantile

BAND_POINTS = 60
TABLES = ("recommendations", "points", "variation", "effects", "trends", "left_out", "runs")
"""Those that an analysis may have, beside residuals of each response."""


def frames(analysis: Analysis, table: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Every table by name, empty ones left out, those first that answer; ``runs`` is the tidy table as it is."""
    made = (recommendations(analysis), points(analysis), variation(analysis), effects(analysis), trends(analysis),
            pl.DataFrame([vars(run) for run in analysis.left_out]))
    found = dict(zip(TABLES, made, strict=False))
    for each in analysis.responses:
        if each.model is not None:
            found[f"residuals {each.name}"] = residuals(each)
    found["runs"] = table
    return {name: frame for name, frame in found.items() if not frame.is_empty()}


def points(analysis: Analysis) -> pl.DataFrame:
    """A row per response and point: the mean with its interval, and the comparison with the reference."""
    rows = []
    for each in analysis.responses:
        compared = {found.point.key: found for found in each.compared}
        for point in each.points:
            rows.append({
                "response": each.name, "metric": each.metric, "scope": each.scope, "scope_name": each.scope_name,
                "unit": each.unit, "declared": each.declared, "point": point.point, **point.levels,
                "n": len(point.values), **_ends("mean", point.interval), "method": point.interval.method,
                "median": float(np.median(point.values)),
                "reference": point.key == analysis.design.reference, **_comparison(compared.get(point.key))})
    return pl.DataFrame(rows, infer_schema_length=None)


def _comparison(found: Compared | None) -> dict[str, object]:
    verdict = found.verdict if found else None
    return {
        **_ends("difference", found.difference.interval if found else None),
        **_ends("ratio", found.ratio if found else None), **_ends("cliffs_delta", found.overlap if found else None),
        "paired": found.difference.paired if found else None,
        "correlation": found.difference.correlation if found else None,
        "p_holm": verdict.p if verdict else None, "verdict": verdict.word if verdict else None,
        "runs_needed": verdict.runs_needed if verdict else None,
    }


def variation(analysis: Analysis) -> pl.DataFrame:
    """A row per response and term of its model."""
    return pl.DataFrame([
        {"response": each.name, "term": term.name, "degrees_of_freedom": term.freedom, "sum_of_squares": term.squares,
         "percent": term.percent, "f": term.f, "p": term.p, "confounded": term.confounded,
         "aliases": ", ".join(term.aliases)}
        for each in analysis.responses if each.model is not None for term in each.model.terms],
        infer_schema_length=None)


def effects(analysis: Analysis) -> pl.DataFrame:
    """A row per response and level, or pair of levels: the effect in the response's unit, or as a factor where the
    model is of logarithms."""
    rows = []
    for each in analysis.responses:
        for effect in each.model.effects if each.model else ():
            ends = effect.interval.estimate, effect.interval.low, effect.interval.high
            shown = [math.exp(end) for end in ends] if each.logarithm else list(ends)
            rows.append({"response": each.name, "of": " × ".join(effect.factors), "level": " × ".join(effect.levels),
                         "effect": shown[0], "low": shown[1], "high": shown[2],
                         "kind": "factor" if each.logarithm else "difference"})
    return pl.DataFrame(rows, infer_schema_length=None)


def trends(analysis: Analysis) -> pl.DataFrame:
    """A row per response, numeric factor and combination of the other levels."""
    return pl.DataFrame([
        {"response": each.name, "factor": line.factor, **{f"at {name}": level for name, level in line.others.items()},
         "shape": line.trend.chosen.shape, "formula": line.trend.chosen.words(), "why": line.trend.why,
         "from": line.trend.low, "to": line.trend.high, "n": line.trend.n,
         **_ends("knee", line.trend.chosen.knee), **_ends("theil_sen", line.trend.slope)}
        for each in analysis.responses for line in each.lines], infer_schema_length=None)


def recommendations(analysis: Analysis) -> pl.DataFrame:
    """A row per environment."""
    if analysis.recommendations is None:
        return pl.DataFrame()
    return pl.DataFrame([
        {**row.environment, "choice": _said(row.choice), **_ends("objective", row.objective),
         "certainty": row.certainty, "as_good": "; ".join(_said(other.levels) for other in row.as_good),
         "not_acceptable": row.refused} for row in analysis.recommendations.rows], infer_schema_length=None)


def residuals(each: Response) -> pl.DataFrame:
    """What the model leaves of each run: ``fitted``, ``residual``, ``order``, ``normal``."""
    assert each.model is not None
    left = each.model.residuals
    ranks = np.argsort(np.argsort(left)) + 1
    normal = [normal_quantile((rank - 0.375) / (left.size + 0.25)) for rank in ranks.tolist()]
    return pl.DataFrame({"fitted": each.model.fitted, "residual": left, "order": each.rows["order_no"],
                         "normal": normal})


def band(line: Line) -> pl.DataFrame:
    """A trend's line and its bands between the lowest and the highest level."""
    fit = line.trend.chosen
    x = (np.geomspace if line.trend.low > 0 and line.trend.high / line.trend.low > 30 else np.linspace)(
        line.trend.low, line.trend.high, BAND_POINTS).clip(line.trend.low, line.trend.high)
    low, high = fit.band(x)
    next_low, next_high = fit.band(x, prediction=True)
    return pl.DataFrame({"x": x, "y": fit.at(x), "low": low, "high": high, "next_low": next_low,
                         "next_high": next_high})


def _said(levels: dict[str, str] | None) -> str:
    return "none" if levels is None else ", ".join(f"{name} {level}" for name, level in levels.items())


def _ends(name: str, found: Interval | None) -> dict[str, float | None]:
    known = (None, None, None) if found is None else (found.estimate, found.low, found.high)
    return {f"{name}{suffix}": None if value is None or not math.isfinite(value) else value
            for suffix, value in zip(("", "_low", "_high"), known, strict=True)}
