"""A comparison as one HTML page."""

from __future__ import annotations

from html import escape
from pathlib import Path

import plotly.graph_objects as go
import polars as pl

from mqttlab import metrics
from mqttlab.comparison import ByMessage, Comparison, Side
from mqttlab.comparison.frames import fates as fates_of_frames
from mqttlab.comparison.words import head, what_happened
from mqttlab.figures import comparison as figures
from mqttlab.report.comparison import tables
from mqttlab.report.pages import grid, page_of, text_table, write_whole
from mqttlab.report.text import heading

MESSAGES_SHOWN = 200


def write_comparison(comparison: Comparison, out: Path, *, by_message: bool = False) -> Path:
    """Write the page to ``out`` and return it.

    Raises:
        ComparisonError: ``by_message``, and no two runs have the same random streams.
        OSError: the file cannot be written; whatever was there before is still there.
    """
    sections = [_design(comparison), _metrics(comparison), _latency(comparison)]
    sections += [_pair(pair, number) for number, pair in enumerate(comparison.by_message)] if by_message else []
    write_whole(out, page_of(comparison.title, "Two sides compared; the first is the reference.", sections,
                              "Made by mqttlab from the recordings alone."))
    return out


def _design(comparison: Comparison) -> str:
    words = {verdict.word for row in comparison.rows if (verdict := row.verdict)}
    counts = ", ".join(f"{sum(row.verdict is not None and row.verdict.word == word for row in comparison.rows)} {word}"
                       for word in ("better", "worse", "equivalent", "different", "undecided") if word in words)
    said = "".join(f"<li>{escape(remark)}</li>" for remark in tables.remarks(comparison))
    knobs = "".join(f"<li>{escape(line)}</li>" for line in tables.knobs(comparison))
    kind = "worse" if "worse" in words else "undecided" if "undecided" in words else "valid"
    return (f'<section class="verdict {kind}"><h2>{escape(counts or "One run each")}</h2>'
            f"<p>{escape(comparison.design)}</p><ul>{said}</ul><p>The plans differ in</p><ul>{knobs}</ul></section>")


def _metrics(comparison: Comparison) -> str:
    drawn: list[go.Figure] = []
    known = [row for row in comparison.rows if row.ratio is not None and row.ratio.bounded and row.verdict]
    if known:
        frame = pl.DataFrame({
            "name": [f"{row.scope}: {heading(row.metric)}" for row in known],
            "ratio": [row.ratio.estimate for row in known if row.ratio],
            "low": [row.ratio.low for row in known if row.ratio],
            "high": [row.ratio.high for row in known if row.ratio],
            "verdict": [row.verdict.word for row in known if row.verdict]})
        drawn.append(figures.ratios(frame))
    words = (f"<p>The margin of equivalence is {comparison.tolerance_percent:g} % of the first. p values are adjusted "
             "by Holm's method; intervals are of 95 % each.</p>" if known else "")
    table = text_table(*tables.metrics(comparison), left=2)
    return f"<section><h2>Metrics</h2>{table}{words}{grid(drawn, 'metrics')}</section>"


def _latency(comparison: Comparison) -> str:
    if not comparison.shifts:
        return ""
    samples = {f"{place}: {side.label}": _samples(side) for place, side in enumerate(
        (comparison.first, comparison.second), start=1)}
    shifts = pl.DataFrame(
        [{"qos": shift.qos, "quantile": tables.quantile(shift.q), "shift_ms": shift.shift_ms,
          "low_ms": shift.interval.low if shift.interval else None,
          "high_ms": shift.interval.high if shift.interval else None} for shift in comparison.shifts],
        schema_overrides={"low_ms": pl.Float64, "high_ms": pl.Float64})
    drawn = [figures.latency_cdf_of_two(samples), figures.quantile_shifts(shifts)]
    return (f"<section><h2>Latency</h2>{text_table(*tables.quantiles(comparison.shifts), left=2)}"
            f"{grid(drawn, 'latency')}</section>")


def _samples(side: Side) -> pl.DataFrame:
    return pl.concat([metrics.deliveries(recording).select("qos", "latency_ms") for recording in side.recordings])


def _pair(pair: ByMessage, number: int) -> str:
    name = f"Message by message: {pair.first.directory.name} → {pair.second.directory.name}"
    shown = pair.different.head(MESSAGES_SHOWN)
    told = "".join(
        f"<dt>{escape(head(record))}</dt>" + "".join(f"<dd>{escape(said)}</dd>" for said in what_happened(pair, record))
        for record in shown.iter_rows(named=True))
    more = pair.different.height - shown.height
    rest = f"<p>{more} more messages differ; mqttlab compare --json has all.</p>" if more > 0 else ""
    both = pair.together.filter(pl.col("latency_ns").is_not_null(), pl.col("latency_ns_second").is_not_null()).join(
        pair.different.select("publisher", "sequence", "subscriber", "reason"),
        on=["publisher", "sequence", "subscriber"], how="left", nulls_equal=True)
    drawn = [figures.latency_in_both(both.select(
        first_ms=pl.col("latency_ns") / 1e6, second_ms=pl.col("latency_ns_second") / 1e6,
        reason=pl.col("reason").fill_null("as fast")))] if both.height else []
    frames = tables.frame_fates(list(fates_of_frames(pair.frames).iter_rows()))
    return (f"<section><h2>{escape(name)}</h2>{text_table(*tables.fates(pair), left=2)}"
            f"{text_table(*tables.reasons(pair), left=1)}{grid(drawn, f'pair-{number}')}"
            f"<h2>Frames, by name</h2>{text_table(*frames, left=3)}"
            f'<h2>The messages that differ</h2><dl class="told">{told}</dl>{rest}</section>')
