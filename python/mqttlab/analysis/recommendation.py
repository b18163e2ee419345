"""What to choose for which network and load, by a rule that is said, and how certain that is.

The rule: of the choices that deliver enough (the upper confidence limit of the mean undelivered share is at most the
limit, where it was measured), the one with the best mean of the objective, the first response, is looked for. Others
are as good where the difference is equivalent to none within the margin of the verdicts, or where the runs do not
tell it from none (Holm). Of all these the cheapest is chosen; of several as cheap the one that is so in most
environments, so that chance does not choose another in each. Its certainty is the share of 2,000 experiments, drawn
from the blocks with replacement, in which it delivers enough and no other is better by more than the margin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mqttlab import statistics
from mqttlab.analysis.answered import Cost, cheapest
from mqttlab.analysis.design import ExperimentDesign, Factor
from mqttlab.analysis.responses import PointEstimate, Response, combinations, difference, margin
from mqttlab.digits import plain

RESAMPLES = 2_000
# What was under way when a run ended counts. Experiments of earlier versions kept what was lost, and nothing else.
SHARES = ("undelivered_percent", "messages_lost_percent")


Word = Literal["equivalent", "undecided"]


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """What is weighed where the objective does not decide."""

    costs: tuple[Cost, ...] = ()
    broken: frozenset[str] = frozenset()
    """Keys of the points that break a threshold."""
    margin: float = 0.05
    """The relative difference of a cost that does not matter."""


@dataclass(frozen=True, kw_only=True)
class AsGood:
    """A choice that is as good as the best one in its environment."""

    levels: dict[str, str]
    estimate: float
    """Of the objective."""
    word: Word
    """Equivalent to the best one, or not told from it."""
    runs_needed: int | None = None
    """How many more runs of each point would probably tell; ``None`` where that is not known, or nothing is to tell."""


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """For one environment."""

    environment: dict[str, str]
    choice: dict[str, str] | None
    """``None`` where no choice delivers enough."""
    objective: statistics.Interval | None
    certainty: float | None
    as_good: tuple[AsGood, ...]
    """The others that are as good, the best of the objective among them where it is not the choice."""
    refused: int
    """Choices that do not deliver enough."""
    best: AsGood | None = None
    """What has the best mean of the objective, with what tells it from the choice; ``None`` where that is the
    choice."""
    cheaper: dict[str, str] | None = None
    """What costs less, and is worse; ``None`` where nothing does that delivers enough."""


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
    weighed: Weighed | None = None,
) -> Recommendations | None:
    """The recommendation for every combination of the environment's levels; ``None`` where nothing can be chosen, or
    the first response has no good side.

    Args:
        design: the experiment's question.
        responses: what was asked for.
        kept: what was kept to judge it by.
        weighed: costs and thresholds.
    """
    choices = [factor for factor in design.factors if not factor.environment]
    environment = [factor for factor in design.factors if factor.environment]
    objective = next((each for each in responses if each.better != "neither" and each.metric not in SHARES), None)
    if not choices or objective is None or design.kind != "full":
        return None
    shares = [each for metric in SHARES for each in (*responses, *kept)
              if each.metric == metric and each.scope == objective.scope]
    lost = next(iter(shares), None)
    beside = weighed or Weighed(margin=design.margin)
    found = [_place(design, objective, lost, place, choices, beside) for place in combinations(environment)]
    places = [place for place in found if place is not None]
    if not places:
        return None
    often = Counter(choice for place in places for choice in place.alike)
    known = tuple(_row(design, objective, place, often, beside) for place in places)
    fate = "leave undelivered" if lost is not None and lost.metric == SHARES[0] else "lose"
    limit = (f"of the choices that {fate} at most {plain(design.lost_most_percent)} % of the messages, take"
             if lost is not None else "take")
    side = "lowest" if objective.better == "lower" else "highest"
    within = f"{plain(100 * design.margin)} %"
    return Recommendations(rows=known, objective=objective.name, side=side, rule=(
        f"The rule: {limit} those whose {objective.name} is the {side}, within {within} of it, or not told from it by "
        f"these runs. Of these, take the cheapest. Certainty: how often no choice is better by more than {within} when "
        "the runs are drawn again at random."))


@dataclass(frozen=True, kw_only=True)
class _Place:
    """An environment, with what may be chosen in it."""

    environment: dict[str, str]
    names: tuple[str, ...]
    """Of the factors that are choices."""
    here: list[PointEstimate]
    allowed: list[PointEstimate]
    """Those that deliver enough."""
    losses: dict[str, PointEstimate]
    best: PointEstimate | None
    as_good: dict[str, AsGood]
    """By key, others than the best one."""
    cheapest: list[PointEstimate]
    """Of the best one and those that are as good."""

    @property
    def alike(self) -> list[tuple[str, ...]]:
        """Their choices."""
        return [self.choice(point) for point in self.cheapest]

    def choice(self, point: PointEstimate) -> tuple[str, ...]:
        """What tells it from the others of its environment."""
        return tuple(point.levels[name] for name in self.names)


def _place(
    design: ExperimentDesign, objective: Response, lost: Response | None, place: dict[str, str],
    choices: Sequence[Factor], weighed: Weighed,
) -> _Place | None:
    here = [point for point in objective.points if place.items() <= point.levels.items()]
    if len(here) < 2:
        return None
    losses = {point.key: point for point in lost.points} if lost else {}
    allowed = [point for point in here if _acceptable(losses.get(point.key), design.lost_most_percent)]
    names = tuple(factor.name for factor in choices)
    best, as_good, least = None, dict[str, AsGood](), list[PointEstimate]()
    if allowed:
        sign = 1 if objective.better == "lower" else -1
        best = min(allowed, key=lambda point: sign * point.interval.estimate)
        as_good = _as_good(design, objective, best, [point for point in allowed if point is not best], names)
        least = _cheapest(
            design, best, [point for point in allowed if point is best or point.key in as_good], weighed)
    return _Place(environment=place, names=names, here=here, allowed=allowed, losses=losses, best=best,
                  as_good=as_good, cheapest=least)


def _row(
    design: ExperimentDesign, objective: Response, place: _Place, often: Counter[tuple[str, ...]], weighed: Weighed,
) -> Recommendation:
    best, as_good = place.best, place.as_good
    refused = len(place.here) - len(place.allowed)
    if best is None:
        return Recommendation(environment=place.environment, choice=None, objective=None, certainty=None, as_good=(),
                              refused=refused)
    sign = 1 if objective.better == "lower" else -1
    chosen = min(place.cheapest, key=lambda point: (
        -often[place.choice(point)], abs(point.interval.estimate - best.interval.estimate)))
    worse = [point for point in place.allowed if point is not best and point.key not in as_good
             and (point.key not in weighed.broken or chosen.key in weighed.broken)]
    fewest = cheapest(weighed.costs, [chosen.key, *(point.key for point in worse)], weighed.margin)
    others = {point.key: each for point in place.allowed if (each := as_good.get(point.key)) and point is not chosen}
    leader = None
    if chosen is not best:
        leader = AsGood(levels=_levels(best, place.names), estimate=best.interval.estimate,
                        word=as_good[chosen.key].word, runs_needed=as_good[chosen.key].runs_needed)
        others = {best.key: leader, **others}
    return Recommendation(
        environment=place.environment, choice=_levels(chosen, place.names), objective=chosen.interval, best=leader,
        certainty=_certainty(place.here, place.losses, chosen, sign, design), refused=refused,
        as_good=tuple(others.values()), cheaper=None if chosen.key in fewest else next(
            _levels(point, place.names) for point in worse if point.key in fewest))


def _cheapest(
    design: ExperimentDesign, best: PointEstimate, good: Sequence[PointEstimate], weighed: Weighed,
) -> list[PointEstimate]:
    """Of those that are as good the cheapest ones; what breaks a threshold comes last.

    One run tells nothing of chance: what has only one is not taken for its cost if it lies beyond the margin.
    """
    far = [point for point in good if min(len(point.values), len(best.values)) < 2
           and abs(point.interval.estimate - best.interval.estimate) > margin(design, best.interval.estimate, False)]
    held = [point for point in good if point.key not in weighed.broken]
    left = [point for point in held or good if point not in far] or held or list(good)
    fewest = cheapest(weighed.costs, [point.key for point in left], weighed.margin)
    return [point for point in left if point.key in fewest]


def _levels(point: PointEstimate, names: Sequence[str]) -> dict[str, str]:
    return {name: point.levels[name] for name in names}


def _acceptable(lost: PointEstimate | None, most_percent: float) -> bool:
    return lost is None or min(lost.interval.high, 100.0) <= most_percent or max(lost.values) == 0


def _as_good(
    design: ExperimentDesign, objective: Response, best: PointEstimate, rivals: Sequence[PointEstimate],
    names: Sequence[str],
) -> dict[str, AsGood]:
    """By key, the rivals that are equivalent to the best one, and those that are not told from it."""
    differences = {point.key: difference(design, best, point, objective.logarithm) for point in rivals}
    known = {key: found for key, found in differences.items() if found is not None}
    bounds = [margin(design, best.interval.estimate, objective.logarithm)] * len(known)
    verdicts = dict(zip(known, statistics.judge(
        list(known.values()), bounds, [objective.better] * len(known), alpha=design.family), strict=True))
    found = {}
    for point in rivals:
        verdict = verdicts.get(point.key)
        word: Word = "equivalent" if verdict is not None and verdict.word == "equivalent" else "undecided"
        if verdict is None or verdict.word != "worse":
            found[point.key] = AsGood(levels=_levels(point, names), estimate=point.interval.estimate, word=word,
                                      runs_needed=None if verdict is None else verdict.runs_needed)
    return found


def _certainty(
    here: Sequence[PointEstimate], losses: dict[str, PointEstimate], chosen: PointEstimate, sign: int,
    design: ExperimentDesign,
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
    ranked = np.where(worst <= design.lost_most_percent, sign * means, np.inf)
    best = ranked.min(axis=0)
    possible = np.isfinite(ranked[list(here).index(chosen)])
    near = np.where(possible, ranked[list(here).index(chosen)], 0.0) <= np.where(
        np.isfinite(best), best + design.margin * np.abs(best), np.inf)
    return float(np.mean(possible & near))


def _by_block(point: PointEstimate, blocks: Sequence[int]) -> np.ndarray:
    known = dict(zip(point.blocks, point.values, strict=True))
    return np.array([known[block] for block in blocks])
