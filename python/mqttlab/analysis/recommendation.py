"""What to choose for which network, by a rule that is said, and how certain that is.

The rule: of the choices that deliver enough (the upper confidence limit of the mean undelivered share is at most the
limit, where it was measured), the one with the best mean of the objective, the first response. Its certainty is
the share of 2,000 experiments, drawn from the blocks with replacement, in which the same rule chooses it. Choices
that cannot be told from it are named: their difference in pairs is not refused at 5 % (Holm).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mqttlab import statistics
from mqttlab.analysis.design import ExperimentDesign, Factor
from mqttlab.analysis.responses import PointEstimate, Response, combinations, pairs
from mqttlab.digits import plain

RESAMPLES = 2_000
# What was under way when a run ended counts. Experiments of earlier versions kept what was lost, and nothing else.
SHARES = ("undelivered_percent", "messages_lost_percent")


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """For one environment."""

    environment: dict[str, str]
    choice: dict[str, str] | None
    """``None`` where no choice delivers enough."""
    objective: statistics.Interval | None
    certainty: float | None
    as_good: tuple[dict[str, str], ...]
    refused: int
    """Choices that do not deliver enough."""


@dataclass(frozen=True, kw_only=True)
class Recommendations:
    """The table, and the rule it follows."""

    rule: str
    objective: str
    """The response that is judged by."""
    side: str
    """Which end of it is good: ``lowest`` or ``highest``."""
    rows: tuple[Recommendation, ...]


def recommend(
    design: ExperimentDesign, responses: Sequence[Response], kept: Sequence[Response] = (),
) -> Recommendations | None:
    """The recommendation for every combination of the environment's levels; ``None`` where nothing can be chosen, or
    the first response has no good side.

    Args:
        design: the experiment's question.
        responses: what was asked for.
        kept: what was kept to judge it by.
    """
    choices = [factor for factor in design.factors if not factor.environment]
    environment = [factor for factor in design.factors if factor.environment]
    objective = next((each for each in responses if each.better != "neither" and each.metric not in SHARES), None)
    if not choices or objective is None or design.kind != "full":
        return None
    shares = [each for metric in SHARES for each in (*responses, *kept)
              if each.metric == metric and each.scope == objective.scope]
    lost = next(iter(shares), None)
    rows = [_row(design, objective, lost, place, choices) for place in combinations(environment)]
    known = tuple(row for row in rows if row is not None)
    if not known:
        return None
    fate = "leave undelivered" if lost is not None and lost.metric == SHARES[0] else "lose"
    limit = (f"of the choices that {fate} at most {plain(design.lost_most_percent)} % of the messages, take"
             if lost is not None else "take")
    side = "lowest" if objective.better == "lower" else "highest"
    return Recommendations(rows=known, objective=objective.name, side=side, rule=(
        f"The rule: {limit} the one with the {side} {objective.name}. Certainty: how often the "
        "same choice comes out when the runs are drawn again at random. Also fine: these runs show no difference from "
        "the choice."))


def _row(
    design: ExperimentDesign, objective: Response, lost: Response | None, place: dict[str, str],
    choices: Sequence[Factor],
) -> Recommendation | None:
    here = [point for point in objective.points if place.items() <= point.levels.items()]
    if len(here) < 2:
        return None
    losses = {point.key: point for point in lost.points} if lost else {}
    allowed = [point for point in here if _acceptable(losses.get(point.key), design.lost_most_percent)]
    names = [factor.name for factor in choices]
    if not allowed:
        return Recommendation(environment=place, choice=None, objective=None, certainty=None, as_good=(),
                              refused=len(here))
    sign = 1 if objective.better == "lower" else -1
    best = min(allowed, key=lambda point: sign * point.interval.estimate)
    rivals = [point for point in allowed if point is not best]
    return Recommendation(
        environment=place, choice=_levels(best, names), objective=best.interval,
        certainty=_certainty(here, losses, best, sign, design.lost_most_percent), refused=len(here) - len(allowed),
        as_good=tuple(_levels(point, names) for point in _not_told_apart(design, best, rivals, objective.logarithm)))


def _levels(point: PointEstimate, names: Sequence[str]) -> dict[str, str]:
    return {name: point.levels[name] for name in names}


def _acceptable(lost: PointEstimate | None, most_percent: float) -> bool:
    return lost is None or min(lost.interval.high, 100.0) <= most_percent or max(lost.values) == 0


def _not_told_apart(
    design: ExperimentDesign, best: PointEstimate, rivals: Sequence[PointEstimate], logarithm: bool,
) -> list[PointEstimate]:
    tested = []
    for rival in rivals:
        first, second, paired = pairs(best, rival) if design.common_seeds else (
            list(best.values), list(rival.values), False)
        known = len(first) >= 2 and len(second) >= 2
        if logarithm:
            first, second = np.log(first).tolist(), np.log(second).tolist()
        tested.append(statistics.difference(first, second, paired=paired).p if known else 1.0)
    return [rival for rival, p in zip(rivals, statistics.holm(tested), strict=True) if p > design.family]


def _certainty(
    here: Sequence[PointEstimate], losses: dict[str, PointEstimate], best: PointEstimate, sign: int,
    most_percent: float,
) -> float | None:
    """Blocks are drawn, the same for every choice: what they share stays shared."""
    blocks = sorted(set.intersection(*(set(point.blocks) for point in here)))
    if len(blocks) < 3:
        return None
    drawn = np.random.default_rng(1).integers(0, len(blocks), (RESAMPLES, len(blocks)))
    means = np.array([_by_block(point, blocks)[drawn].mean(axis=1) for point in here])
    worst = np.full_like(means, -np.inf)
    for place, point in enumerate(here):
        lost = losses.get(point.key)
        if lost is not None and set(blocks) <= set(lost.blocks):
            again = _by_block(lost, blocks)[drawn]
            reach = statistics.t_quantile(0.975, len(blocks) - 1) / np.sqrt(len(blocks))
            worst[place] = again.mean(axis=1) + reach * again.std(axis=1, ddof=1)
    ranked = np.where(worst <= most_percent, sign * means, np.inf)
    chosen = np.argmin(ranked, axis=0)
    possible = np.isfinite(ranked).any(axis=0)
    return float(np.mean(possible & (chosen == list(here).index(best))))


def _by_block(point: PointEstimate, blocks: Sequence[int]) -> np.ndarray:
    known = dict(zip(point.blocks, point.values, strict=True))
    return np.array([known[block] for block in blocks])
