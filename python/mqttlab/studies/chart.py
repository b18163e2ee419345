"""Small charts as SVG text: for documents, where nothing can draw.

A chart is drawn from its numbers alone, so that the same numbers make the same file. Published points are hollow, ours
are filled, with the half widths of their intervals. Points without bound stand at the upper edge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from mqttlab.foreign import markup

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"
# Font and palette of the figures elsewhere, whose module needs Plotly: `mqttlab study list` should not wait for it.
SERIES_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
WIDTH, HEIGHT = 800, 420
LEFT, RIGHT, TOP, BOTTOM = 90, 260, 44, 76
Point = tuple[float, float]
Axis = Callable[[float], float]


@dataclass(frozen=True, kw_only=True)
class Series:
    """Points that belong together, in the order of x."""

    name: str
    points: Sequence[Point]
    halves: Sequence[float | None] = ()
    """Half widths of intervals of y, one for each point."""
    published: bool = False
    """The study's own, not ours."""
    colour: int = 0
    """Which of the palette's; a study's series and ours of the same thing have one."""


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A figure of a study: its points, and the words around them."""

    name: str
    """Its file's, without the suffix."""
    title: str
    x: str
    y: str
    series: Sequence[Series]
    log_x: bool = False
    log_y: bool = False
    ticks: Sequence[str] = ()
    """Words below x = 0, 1, 2, ... instead of numbers."""

    @property
    def empty(self) -> bool:
        """Whether no point of ours can be drawn: the study's alone are not a rerun's figure."""
        ours = (series for series in self.series if not series.published)
        return not any(self._drawable(point) for series in ours for point in series.points)

    def _drawable(self, point: Point) -> bool:
        x, y = point
        return math.isfinite(x) and math.isfinite(y) and (x > 0 or not self.log_x) and (y > 0 or not self.log_y)

    def drawn(self, series: Series) -> list[tuple[Point, float | None]]:
        """The points that have a place, with their half widths."""
        halves = series.halves or [None] * len(series.points)
        return [(point, half) for point, half in zip(series.points, halves, strict=True) if self._drawable(point)]

    def unbounded(self, series: Series) -> list[float]:
        """Where the points without bound are."""
        return [x for x, y in series.points if y == math.inf and self._drawable((x, 1.0))]


def svg(chart: Chart) -> str:
    """The chart as an SVG document.

    Raises:
        ValueError: the chart has no point of ours.
    """
    if chart.empty:
        raise ValueError(f"the chart {chart.name!r} has no point of ours")
    points = [point for series in chart.series for point, _ in chart.drawn(series)]
    xs = [*(x for x, _ in points), *(x for series in chart.series for x in chart.unbounded(series))]
    ys = [y for _, y in points]
    x_ticks = list(range(len(chart.ticks))) if chart.ticks else _ticks(min(xs), max(xs), log=chart.log_x)
    y_ticks = _ticks(min(ys) if chart.log_y else min(0.0, *ys), max(ys), log=chart.log_y)
    across = _axis([*xs, *x_ticks], LEFT, WIDTH - RIGHT, log=chart.log_x, margin=0.5 if chart.ticks else 0)
    up = _axis([*ys, *y_ticks], HEIGHT - BOTTOM, TOP, log=chart.log_y)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="{markup(FONT)}" '
        f'font-size="12" fill="#1c2733">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{markup(chart.title)}</text>',
        *_grid(chart, across, up, x_ticks, y_ticks),
        *(line for series in chart.series for line in _series(chart, series, across, up)),
        *_legend([series for series in chart.series if chart.drawn(series) or chart.unbounded(series)]),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _axis(values: Iterable[float], start: float, end: float, *, log: bool, margin: float = 0) -> Axis:
    scaled = [math.log10(value) if log else value for value in values]
    low, high = min(scaled) - margin, max(scaled) + margin
    span = high - low or 1.0

    def place(value: float) -> float:
        return start + ((math.log10(value) if log else value) - low) / span * (end - start)

    return place


def _ticks(low: float, high: float, *, log: bool) -> list[float]:
    if log:
        return [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    span = high - low or 1.0
    step = 10.0 ** math.floor(math.log10(span / 5))
    step = next(step * factor for factor in (1, 2, 5, 10) if span / (step * factor) <= 6)
    first = math.floor(low / step)
    return [step * number for number in range(first, math.ceil(high / step) + 1)]


def _grid(chart: Chart, across: Axis, up: Axis, x_ticks: Sequence[float], y_ticks: Sequence[float]) -> Iterable[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for tick in y_ticks:
        y = up(tick)
        yield f'<path d="M{LEFT} {y:.1f}H{right}" stroke="#e6e8eb"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_label(tick)}</text>'
    free_from = 0.0
    for number, tick in enumerate(x_ticks):
        x = across(tick)
        words = chart.ticks[number] if chart.ticks else _label(tick)
        yield f'<path d="M{x:.1f} {bottom}v5" stroke="#8a8f98"/>'
        if not chart.ticks:
            # Numbers that would overlap the last one are left out.
            reach = DIGIT_WIDTH * len(words) / 2
            if x - reach < free_from:
                continue
            free_from = x + reach + DIGIT_WIDTH
        # Many words stand aslant, so that they do not overlap.
        aslant = len(chart.ticks) > WORDS_SIDE_BY_SIDE
        how = f'text-anchor="end" transform="rotate(-45 {x:.1f} {bottom + 16})"' if aslant else 'text-anchor="middle"'
        yield f'<text x="{x:.1f}" y="{bottom + 18}" {how}>{markup(words)}</text>'
    yield f'<path d="M{LEFT} {TOP}V{bottom}H{right}" fill="none" stroke="#8a8f98"/>'
    yield f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 14}" text-anchor="middle">{markup(chart.x)}</text>'
    middle = (TOP + bottom) / 2
    yield (f'<text x="16" y="{middle:.0f}" text-anchor="middle" transform="rotate(-90 16 {middle:.0f})">'
           f'{markup(chart.y)}</text>')


WORDS_SIDE_BY_SIDE = 8
DIGIT_WIDTH = 7.0


def _label(tick: float) -> str:
    """A number on an axis: thousands apart, without an exponent."""
    return f"{tick:,.0f}".replace(",", "\u202f") if abs(tick) >= 1000 else f"{tick:.4g}"


def _series(chart: Chart, series: Series, across: Axis, up: Axis) -> Iterable[str]:
    colour = SERIES_COLOURS[series.colour % len(SERIES_COLOURS)]
    drawn = chart.drawn(series)
    if len(drawn) > 1:
        path = "L".join(f"{across(x):.1f} {up(y):.1f}" for (x, y), _ in drawn)
        dashes = ' stroke-dasharray="4 4"' if series.published else ""
        yield f'<path d="M{path}" fill="none" stroke="{colour}"{dashes}/>'
    for (x, y), half in drawn:
        if half is not None and math.isfinite(half):
            # An interval goes no farther than the axes.
            low = HEIGHT - BOTTOM if chart.log_y and y <= half else min(up(y - half), HEIGHT - BOTTOM)
            yield f'<path d="M{across(x):.1f} {low:.1f}V{max(up(y + half), TOP):.1f}" stroke="{colour}"/>'
        yield _mark(across(x), up(y), colour, hollow=series.published)
    for x in chart.unbounded(series):
        yield _mark(across(x), TOP, colour, hollow=series.published)
        yield f'<text x="{across(x):.1f}" y="{TOP - 6}" text-anchor="middle" fill="{colour}">∞</text>'


def _mark(x: float, y: float, colour: str, *, hollow: bool) -> str:
    if hollow:
        return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="white" stroke="{colour}"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'


def _legend(every: Sequence[Series]) -> Iterable[str]:
    for number, series in enumerate(every):
        y = TOP + 8 + 18 * number
        yield _mark(WIDTH - RIGHT + 18, y, SERIES_COLOURS[series.colour % len(SERIES_COLOURS)], hollow=series.published)
        yield f'<text x="{WIDTH - RIGHT + 30}" y="{y + 4}">{markup(series.name)}</text>'
