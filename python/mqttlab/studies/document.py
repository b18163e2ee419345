"""What a rerun of a study yields, as Markdown: claims, fit, every table with ours beside theirs, and the figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mqttlab.studies.agreement import Disagreement, far
from mqttlab.studies.chart import Chart, svg
from mqttlab.studies.claims import plain
from mqttlab.studies.study import Reading, Study, printed_sources
from mqttlab.studies.table import Cell, Comparison, fits
from mqttlab.version import __version__

FIT_COLUMNS = ("table", "values", "median ratio", "within 10 %", "within 25 %")
CELL_COLUMNS = ("scenario", "metric", "published", "ours", "± 95 %", "deviation", "never received")
LIVE_COLUMNS = ("simulated", "live over simulated")
VERDICTS = {"held": "held", "refuted": "**refuted**", "not reproduced": "**not reproduced**", "undecided": "undecided",
            "not judged yet": "not judged yet"}
EQUAL = 1e-6
"""Values that differ by no more than this part of them are equal: recordings have whole nanoseconds."""
CLAIM_COLUMNS = ("claim", "verdict", "held, if", "rule written", "numbers", "reason")
HOW_JUDGED = (
    "*Refuted* is only what does not hold under the study's own conditions, or by its own records; *not reproduced* is "
    "what we do not get under our model of its hosts and network, which does not refute a measurement on real ones. A "
    "rule that was written *after* its numbers had been looked at may fit them too well. A reason is *shown* where one "
    "thing was changed alone and the effect followed; else it is *assumed*, or *not known*.")


@dataclass(frozen=True, kw_only=True)
class Rerun:
    """A study, rerun."""

    study: Study
    how: str
    """The command's own words for what was run, for the head of the document."""
    cells: Sequence[Cell]
    judged: Sequence[Comparison]
    charts: Sequence[Chart] = field(default=())
    doubts: Mapping[str, str] = field(default_factory=dict)
    """Why some of the live runs are not valid, by scenario and repetition."""
    apart: Sequence[Disagreement] = field(default=())
    """Of live runs, every mean latency beside its simulation's."""
    simulator: str = ""
    """The digest of the simulator that made the simulated values; empty leaves it out."""
    readings: Sequence[Reading] = field(default=())
    """What was chosen where the study leaves something open."""

    @property
    def rows_beside(self) -> tuple[int, int]:
        """Of the printed rows, how many have ours beside, and how many there are."""
        printed = set(printed_sources(self.study.published))
        return len(printed & {cell.source for cell in self.cells if not math.isnan(cell.ours)}), len(printed)


def markdown(rerun: Rerun) -> str:
    """The whole document; figures are in ``figures/`` beside it."""
    beside, printed = rerun.rows_beside
    parts = [
        f"# {rerun.study.name}: published and ours", "", f"{rerun.study.title}.", "",
        f"{rerun.how}. Of {printed} printed rows {beside} have ours beside.", "",
        *([f"Simulator `{rerun.simulator}`, version {__version__}.", ""] if rerun.simulator else ()),
        *(_doubts(rerun.doubts) if rerun.doubts else ()),
        *(_claims(rerun.judged) if rerun.judged else ()),
        *_fits(rerun.cells),
        *(_disagreement(rerun.apart) if rerun.apart else ()),
        *_figures(rerun.charts, is_live=bool(rerun.apart)),
        *(_readings(rerun.readings) if rerun.readings else ()),
        *_tables(rerun.cells, rerun.readings),
    ]
    return "\n".join(parts)


def write(rerun: Rerun, out: Path) -> None:
    """Write the document into ``out``, and its figures into ``figures/`` beside it."""
    charts = [chart for chart in rerun.charts if not chart.empty]
    if charts:
        folder = out.parent / "figures"
        folder.mkdir(exist_ok=True)
        for chart in charts:
            (folder / f"{chart.name}.svg").write_text(svg(chart), encoding="utf-8")
    out.write_text(markdown(rerun), encoding="utf-8")


def number(value: float) -> str:
    """A value as tables show it: the digits that are printed, else four; a dash where there is none."""
    return plain(value, 4)


def fit_rows(cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    """The rows of the table of fits."""
    return [(fit.table, str(fit.cells), "–" if math.isnan(fit.median_ratio) else f"{fit.median_ratio:.2f}",
             *(f"{share:.0%}" for share in fit.within)) for fit in fits(cells)]


def cell_row(cell: Cell) -> tuple[str, ...]:
    """A cell's row in its table."""
    published = number(cell.published) if cell.bound is None else f"> {number(cell.bound)}"
    return (cell.place, cell.metric, published, _ours(cell),
            _half(cell.half, cell.ours), cell.waits or _deviation(cell),
            _never(cell))


def columns(cells: Sequence[Cell]) -> tuple[str, ...]:
    """The columns of a table of these cells: with the simulated values beside live ones."""
    return CELL_COLUMNS + (LIVE_COLUMNS if any(cell.simulated is not None for cell in cells) else ())


def rows(cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    """The rows of a table, one for each cell."""
    live = len(columns(cells)) > len(CELL_COLUMNS)
    return [cell_row(cell) + (_beside(cell) if live else ()) for cell in cells]


def _beside(cell: Cell) -> tuple[str, str]:
    if cell.simulated is None:
        return "", ""
    # What is left of sums of equal numbers is none; beside what has no end any number is small.
    finite = math.isfinite(cell.simulated) and math.isfinite(cell.ours)
    simulated = 0.0 if finite and abs(cell.simulated) <= 1e-9 * abs(cell.ours) else cell.simulated
    return number(simulated), f"{cell.ours / simulated:.2f}" if finite and simulated else ""


def _ours(cell: Cell) -> str:
    if cell.without_end is None:
        return number(cell.ours)
    endless, runs = cell.without_end
    return number(cell.ours) if endless == runs else f"{number(cell.ours)} in {endless} of {runs} runs"


def _half(half: float | None, value: float) -> str:
    """A half width; none where all values are equal, as where a run without chance repeats itself."""
    if half is None or math.isnan(half) or half <= EQUAL * abs(value):
        return ""
    return plain(half, 2)


def _deviation(cell: Cell) -> str:
    if cell.shorter:
        return "shorter run"
    if (deviation := cell.deviation_percent) is None:
        return ""
    value, half = deviation
    words = "" if half is None or not _half(cell.half, cell.ours) else plain(half, 2)
    return f"{value:+.0f} ± {words} %" if words else f"{value:+.0f} %"


def _never(cell: Cell) -> str:
    if cell.never is None:
        return ""
    theirs = "" if cell.published_never is None else f"{cell.published_never:.3g} % / "
    return f"{theirs}{cell.never:.3g} %"


def _row(values: Iterable[str]) -> str:
    return "| " + " | ".join(values) + " |"


def _doubts(doubts: Mapping[str, str]) -> list[str]:
    lines = ["## Runs that are not valid", "", "Their values are among those below.", "", "| run | why |", "|---|---|"]
    return [*lines, *(_row((name, doubt)) for name, doubt in doubts.items()), ""]


def _disagreement(found: Sequence[Disagreement]) -> list[str]:
    odd = far(found)
    lines = ["## Where live runs and simulations differ", "",
             f"More than 10 % off their simulation: {len(odd)} of {len(found)} mean latencies, one for each scenario "
             "and QoS. Milliseconds; ± is half of the 95 % confidence interval between runs. Parts are those of "
             "docs/explanation/attribution.md; named are those that come to nine tenths of what all parts differ "
             "by.", ""]
    if not odd:
        return lines
    lines += ["| scenario | QoS | live | simulated | live over simulated | parts: simulated → live |",
              "|---|---:|---:|---:|---:|---|"]
    for one in odd:
        parts = "; ".join(f"{part} {number(simulated)} → {number(live)}" for part, live, simulated in one.parts)
        lines.append(_row((
            one.scenario, str(one.qos), _with_half(one.live, one.live_half),
            _with_half(one.simulated, one.simulated_half),
            f"{one.live / one.simulated:.2f}" + (", within the intervals" if one.within else ""), parts)))
    return [*lines, ""]


def _with_half(value: float, half: float | None) -> str:
    words = _half(half, value)
    return number(value) + (f" ± {words}" if words else "")


def _claims(judged: Sequence[Comparison]) -> list[str]:
    lines = ["## Claims", "", HOW_JUDGED, "", _row(CLAIM_COLUMNS), "|---" * len(CLAIM_COLUMNS) + "|"]
    lines += [_row((f"`{c.claim}` {c.text}", VERDICTS[c.verdict], c.rule, c.written, c.evidence,
                    c.reason.replace("\n", "<br>"))) for c in judged]
    return [*lines, ""]


def _fits(cells: Sequence[Cell]) -> list[str]:
    rows = fit_rows(cells)
    if not rows:
        return []
    return ["## Fit", "", "Ours over published; half of the last digit printed counts as equal. ∞ is equal to ∞, and "
            "to what is printed as more than a value.", "",
            _row(FIT_COLUMNS), "|---" + "|---:" * (len(FIT_COLUMNS) - 1) + "|", *(_row(row) for row in rows), ""]


def _figures(charts: Sequence[Chart], is_live: bool) -> list[str]:
    drawn = [chart for chart in charts if not chart.empty]
    if not drawn:
        return []
    which = ": means of the live runs of a cell, with the 95 % intervals between them" if is_live else ""
    bound = any(chart.unbounded(series) for chart in drawn for series in chart.series)
    edge = " At the upper edge stands what has no bound." if bound else ""
    return ["## Figures", "", f"Hollow squares are the study's, filled circles ours{which}.{edge}", "",
            *(line for chart in drawn for line in (f"![{chart.title}](figures/{chart.name}.svg)", ""))]


def _readings(found: Sequence[Reading]) -> list[str]:
    lines = ["## Readings", "", "What the study leaves open, or this program has otherwise, and what the other way "
             "comes to. Each table names those that are behind it.", "", "| | reading | effect |", "|---|---|---|"]
    return [*lines, *(_row((f"R{number}", one.text, one.effect)) for number, one in enumerate(found, start=1)), ""]


def heading(table: str) -> str:
    """A table's title: of a figure's values it is the figure's."""
    return table[:1].upper() + table[1:] if table.startswith("figure") else f"Table {table}"


def _tables(cells: Sequence[Cell], readings: Sequence[Reading]) -> list[str]:
    lines = []
    for table in dict.fromkeys(cell.table for cell in cells):
        here = [cell for cell in cells if cell.table == table]
        heads = columns(here)
        behind = [f"R{number}" for number, one in enumerate(readings, start=1) if table in one.tables]
        lines += [f"## {heading(table)}", "", *([f"Readings: {', '.join(behind)}.", ""] if behind else []),
                  _row(heads), "|---|---" + "|---:" * (len(heads) - 2) + "|"]
        lines += [_row(row) for row in rows(here)]
        lines.append("")
    return lines
