"""How a response follows a number: lines of five shapes, chosen by AICc, with confidence and prediction bands.

``constant``, ``linear`` (y = a + b x), ``logarithmic`` (y = a + b ln x), ``power`` (y = a x^b, fitted as ln y, which
takes errors as shares) and ``segmented`` (two lines that meet in a knee). All are compared on the scale of y by
Akaike's criterion with its correction for few values (Burnham and Anderson 2002); of shapes within 2 of the best the
one with the fewest parameters is taken. No line is drawn through fewer than four levels, and none is asked outside of
them.

What it does not model: errors that grow with the response, except as the power law has them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mqttlab.digits import plain
from mqttlab.statistics.distributions import f_quantile, normal_quantile, t_quantile
from mqttlab.statistics.interval import CONFIDENCE, Interval, Numbers, Values, sample

Shape = Literal["constant", "linear", "logarithmic", "power", "segmented"]
LEVELS_LEAST = 4
# Two lines through four levels would have two levels each, which any two lines meet.
KNEE_LEVELS_LEAST = 5
INDIFFERENT = 2.0
KNEES_TRIED = 400


@dataclass(frozen=True, kw_only=True)
class Fit:
    """One shape through the values."""

    shape: Shape
    parameters: tuple[float, ...]
    """``a``; ``a, b``; or ``a, b, c, knee``: from the knee on the slope is ``b + c``."""
    aicc: float
    spread: float
    """Standard deviation of the residuals: in y's unit, of ln y for the power law."""
    freedom: int
    inverse: Values
    """Of the parameters: their covariance is ``spread² × inverse``."""
    knee: Interval | None = None

    def at(self, x: Values) -> Values:
        """The line."""
        found = self._terms(x) @ np.asarray(self.parameters[:3] if self.shape == "segmented" else self.parameters)
        line: Values = np.exp(found) if self.shape == "power" else found
        return line

    def band(self, x: Values, *, confidence: float = CONFIDENCE, prediction: bool = False) -> tuple[Values, Values]:
        """Where the line lies with this confidence at each x; with ``prediction``, where one more run would."""
        gradient = self._terms(x)
        if self.shape == "segmented":
            beyond = np.where(x > self.parameters[3], -self.parameters[2], 0.0)
            gradient = np.column_stack([gradient, beyond])
        variance = np.einsum("ni,ij,nj->n", gradient, self.inverse, gradient) + float(prediction)
        half = t_quantile((1 + confidence) / 2, self.freedom) * self.spread * np.sqrt(np.maximum(variance, 0))
        line = self.at(x)
        if self.shape == "power":
            return line * np.exp(-half), line * np.exp(half)
        return line - half, line + half

    def _terms(self, x: Values) -> Values:
        one = np.ones(x.size)
        if self.shape == "constant":
            return one[:, None]
        if self.shape == "segmented":
            return np.column_stack([one, x, np.maximum(x - self.parameters[3], 0)])
        return np.column_stack([one, x if self.shape == "linear" else np.log(x)])

    def words(self, digits: int = 4) -> str:
        """The formula."""
        numbers = [plain(value, digits) for value in self.parameters]
        if self.shape == "constant":
            return f"y = {numbers[0]}"
        if self.shape == "power":
            return f"y = {plain(math.exp(self.parameters[0]), digits)} · x^{numbers[1]}"
        sign = "−" if self.parameters[1] < 0 else "+"
        slope = numbers[1].removeprefix("-")
        if self.shape == "segmented":
            after = self.parameters[1] + self.parameters[2]
            return (f"y = {numbers[0]} {sign} {slope} x up to x = {numbers[3]}, "
                    f"then the slope is {plain(after, digits)}")
        return f"y = {numbers[0]} {sign} {slope} {'ln x' if self.shape == 'logarithmic' else 'x'}"


@dataclass(frozen=True, kw_only=True)
class Trend:
    """The shape that was chosen, why, and the others."""

    chosen: Fit
    others: tuple[Fit, ...]
    why: str
    low: float
    high: float
    levels: int
    n: int
    slope: Interval
    """Theil and Sen's slope (1950, 1968), which outliers do not move, beside the line."""

    def at(self, x: float) -> float:
        """The line at one place.

        Raises:
            ValueError: the place lies outside of what was measured.
        """
        if not self.low <= x <= self.high:
            raise ValueError(f"{plain(x)} lies outside of what was measured, {plain(self.low)} to {plain(self.high)}")
        return float(self.chosen.at(np.array([x]))[0])


def trend(x: Numbers, y: Numbers, *, confidence: float = CONFIDENCE) -> Trend | None:
    """The trend of a response over the levels of a numeric factor; a value a run.

    Returns:
        ``None`` for fewer than four levels, or where no freedom is left.

    Raises:
        ValueError: lengths that differ, or a value that is not finite.
    """
    a, b = sample(x, 0), sample(y, 0)
    if a.size != b.size:
        raise ValueError(f"{a.size} places, but {b.size} values")
    levels = np.unique(a)
    if levels.size < LEVELS_LEAST or b.size < LEVELS_LEAST + 1:
        return None
    fits = [fit for shape in _possible(a, b) if (fit := _line(shape, a, b)) is not None]
    if levels.size >= KNEE_LEVELS_LEAST and (bent := _segmented(a, b, levels, confidence)) is not None:
        fits.append(bent)
    if not fits:
        return None
    best = min(fit.aicc for fit in fits)
    # A perfect fit has no finite criterion: nothing is within 2 of it but another one.
    near = [fit for fit in fits if fit.aicc == best or fit.aicc - best < INDIFFERENT]
    chosen = min(near, key=lambda fit: (len(fit.parameters), fit.aicc))
    others = tuple(sorted((fit for fit in fits if fit is not chosen), key=lambda fit: fit.aicc))
    return Trend(chosen=chosen, others=others, why=_why(chosen, others, best), low=float(levels[0]),
                 high=float(levels[-1]), levels=levels.size, n=b.size, slope=theil_sen(a, b, confidence=confidence))


def theil_sen(x: Numbers, y: Numbers, *, confidence: float = CONFIDENCE) -> Interval:
    """The median slope of all pairs, with the interval that inverts Kendall's test (Sen 1968).

    Raises:
        ValueError: no two places differ.
    """
    a, b = sample(x, 2), sample(y, 2)
    rows, columns = np.triu_indices(a.size, 1)
    apart = a[columns] != a[rows]
    if not apart.any():
        raise ValueError("no two places differ")
    slopes = np.sort((b[columns] - b[rows])[apart] / (a[columns] - a[rows])[apart])
    ties = [np.unique(values, return_counts=True)[1] for values in (a, b)]
    n = a.size
    variance = (n * (n - 1) * (2 * n + 5) - sum(float(np.sum(k * (k - 1) * (2 * k + 5))) for k in ties)) / 18
    reach = normal_quantile((1 + confidence) / 2) * math.sqrt(max(variance, 0.0))
    low, high = round((slopes.size - reach) / 2), round((slopes.size + reach) / 2) - 1
    ends = (float(slopes[low - 1]) if low > 0 else -math.inf,
            float(slopes[high + 1]) if high + 1 < slopes.size else math.inf)
    return Interval(estimate=float(np.median(slopes)), low=ends[0], high=ends[1], n=n, method="Theil–Sen",
                    confidence=confidence)


def _possible(x: Values, y: Values) -> list[Shape]:
    shapes: list[Shape] = ["constant", "linear"]
    if (x > 0).all():
        shapes.append("logarithmic")
        if (y > 0).all():
            shapes.append("power")
    return shapes


def _line(shape: Shape, x: Values, y: Values) -> Fit | None:
    """Least squares of a shape that is linear in its parameters."""
    wanted = np.log(y) if shape == "power" else y
    blank = Fit(shape=shape, parameters=(0.0, 0.0), aicc=0.0, spread=0.0, freedom=0, inverse=np.zeros((0, 0)))
    matrix = blank._terms(x)
    freedom = y.size - matrix.shape[1]
    if freedom < 1:
        return None
    inverse = np.asarray(np.linalg.pinv(matrix.T @ matrix), dtype=np.float64)
    parameters = np.linalg.lstsq(matrix, wanted, rcond=None)[0]
    rss = _squares(wanted, matrix @ parameters)
    # The likelihood of y, not of ln y: the power law's is divided by y once for each value.
    jacobian = 2 * float(np.sum(np.log(y))) if shape == "power" else 0.0
    return Fit(shape=shape, parameters=tuple(map(float, parameters)), spread=math.sqrt(rss / freedom), freedom=freedom,
               aicc=_aicc(rss, y.size, matrix.shape[1] + 1) + jacobian, inverse=inverse)


def _segmented(x: Values, y: Values, levels: Values, confidence: float) -> Fit | None:
    """Two lines that meet: the knee of the least squares, with two levels at least on each side, and where it may lie
    (profile of the residuals, F distribution)."""
    freedom = y.size - 4
    if freedom < 1:
        return None
    tried = np.unique(np.concatenate([np.linspace(levels[1], levels[-2], KNEES_TRIED), levels[1:-1]]))
    profile = np.array([_bent(x, y, knee)[1] for knee in tried])
    best = int(np.argmin(profile))
    near = (tried[max(best - 1, 0)], tried[min(best + 1, tried.size - 1)])
    finer = np.linspace(*near, 101)
    knee = float(finer[int(np.argmin([_bent(x, y, place)[1] for place in finer]))])
    (a, b, c), rss = _bent(x, y, knee)
    limit = rss * (1 + f_quantile(confidence, 1, freedom) / freedom)
    possible = tried[profile <= max(limit, float(profile[best]))]
    at_end = possible[0] <= tried[0] or possible[-1] >= tried[-1]
    gradient = np.column_stack([np.ones(x.size), x, np.maximum(x - knee, 0), np.where(x > knee, -c, 0.0)])
    return Fit(
        shape="segmented", parameters=(a, b, c, knee), spread=math.sqrt(rss / freedom), freedom=freedom,
        aicc=_aicc(rss, y.size, 5), inverse=np.linalg.pinv(gradient.T @ gradient),
        knee=Interval(estimate=knee, low=min(float(possible[0]), knee), high=max(float(possible[-1]), knee), n=y.size,
                      method="profile likelihood", confidence=confidence,
                      note="it may lie beyond the levels measured on both sides of it" if at_end else ""))


def _bent(x: Values, y: Values, knee: float) -> tuple[tuple[float, float, float], float]:
    matrix = np.column_stack([np.ones(x.size), x, np.maximum(x - knee, 0)])
    parameters = np.linalg.lstsq(matrix, y, rcond=None)[0]
    a, b, c = map(float, parameters)
    return (a, b, c), _squares(y, matrix @ parameters)


def _squares(y: Values, line: Values) -> float:
    squares = float(np.sum((y - line) ** 2))
    return 0.0 if squares <= 1e-24 * float(np.sum(y**2)) else squares


def _aicc(rss: float, n: int, parameters: int) -> float:
    """Akaike's criterion with its correction; the error's variance is one of the parameters."""
    if n - parameters - 1 < 1:
        return math.inf
    if rss == 0:
        return -math.inf
    return n * math.log(rss / n) + 2 * parameters + 2 * parameters * (parameters + 1) / (n - parameters - 1)


def _why(chosen: Fit, others: Sequence[Fit], best: float) -> str:
    if not others:
        return f"{chosen.shape}: no other shape is possible"
    if chosen.aicc == -math.inf:
        return f"{chosen.shape}: it goes through every value"
    rival = others[0]
    if chosen.aicc > best:
        return (f"{chosen.shape}: AICc within {chosen.aicc - best:.1f} of the best ({rival.shape}), with fewer "
                "parameters")
    return f"{chosen.shape}: smallest AICc, by {rival.aicc - chosen.aicc:.1f} before {rival.shape}"
