"""An experiment as one HTML page: the verdict, the recommendation, then each response."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from mqttlab import metrics
from mqttlab.analysis import Analysis, Factor, Response, methods
from mqttlab.figures import experiment as figures
from mqttlab.figures.drawing import Figure
from mqttlab.foreign import markup
from mqttlab.report.experiment import answer, frames, tables
from mqttlab.report.experiment.evidence import Evidence, evidence
from mqttlab.report.pages import grid, page_of, text_table, write_whole

LINES_MOST = 16
PAIRS_MOST = 3
TRENDS_MOST = 6
RESPONSES_DRAWN = 4
# A longer table is folded: figures show the points.
ROWS_OPEN = 12
# A broken threshold is red, and nothing is green that no threshold has judged.
KINDS = {"broken": "broken", "undecided": "undecided", "held": "valid", "none": "none"}
SIGNS = {"broken": "✕", "undecided": "?", "held": "✓"}
COSTS = "Means over the runs. kB are IP bytes, as the operator of the link counts them."
STYLE = """<style>.verdict.broken{border-left-color:var(--bad)}.verdict.none{border-left-color:var(--line-2)}
td.broken{color:var(--broken);font-weight:700}td.undecided{color:var(--undecided)}td.held{color:var(--held)}
.thresholds td{white-space:normal;min-width:80px}details summary{cursor:pointer;color:var(--faint)}</style>"""


def write_experiment(analysis: Analysis, table: pl.DataFrame, out: Path) -> Path:
    """Write an experiment's page to ``out`` and return it; the recordings that the table names are read for latencies.

    Raises:
        OSError: the file cannot be written; whatever was there before is still there.
    """
    design = analysis.design
    sections = [_verdict(analysis), _thresholds(analysis), _costs(analysis), _recommendation(analysis)]
    sections += [_drawn(analysis, each, place) for place, each in enumerate(analysis.responses)]
    sections += [_messages(evidence(design, table)), _overview(analysis)]
    sections += [_response(analysis, each, place) for place, each in enumerate(analysis.responses)] + [_rest(analysis)]
    write_whole(out, page_of(design.name, design.question, sections,
                             "Made by mqttlab from the experiment's journal and recordings. Error bars and intervals "
                             "are of 95 %; the run is the unit."))
    return out


def drawn(analysis: Analysis, each: Response) -> list[Figure]:
    """The figures of a response: by factor, interactions, residuals, trends."""
    if not each.varies:
        return []
    modelled = [] if each.model is None else [
        *_interactions(analysis, each), figures.residuals(frames.residuals(each), each.name)]
    return [*_points(analysis, each), *modelled, *_trends(analysis, each)]


def _verdict(analysis: Analysis) -> str:
    told = answer.answer(analysis)
    said = "".join(f"<li>{markup(line)}</li>" for line in [tables.headline(analysis) + ".", *tables.facts(analysis)])
    first, *more = told.sentences or (tables.headline(analysis),)
    rest = "".join(f"<p>{markup(words)}</p>" for words in more)
    return (f'{STYLE}<section class="verdict {KINDS[told.state]}"><h2>{markup(first)}</h2>{rest}'
            f"<ul>{said}</ul></section>")


def _thresholds(analysis: Analysis) -> str:
    head, rows = answer.thresholds(analysis)
    if not rows:
        return ""
    top = "".join(f'<th class="text">{markup(column)}</th>' for column in head)
    body = "".join(f'<tr><td class="text {row[0]}">{SIGNS[row[0]]} {row[0]}</td>' + "".join(
        f'<td class="text">{markup(cell)}</td>' for cell in row[1:]) + "</tr>" for row in rows)
    shown = (f'<div class="scroll"><table class="thresholds"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
             "</div>")
    if len(rows) > ROWS_OPEN:
        counts = ", ".join(f"{count} {word}" for word in SIGNS if (count := [row[0] for row in rows].count(word)))
        shown = f"<details><summary>{counts}</summary>{shown}</details>"
    return f"<section><h2>Thresholds</h2>{shown}</section>"


def _costs(analysis: Analysis) -> str:
    table, said = answer.costs(analysis), " ".join(analysis.costs_unknown)
    words = f"{COSTS} {said}" if table[1] else said
    if not words:
        return ""
    shown = _table(table, 1)
    if len(table[1]) > ROWS_OPEN:
        shown = f"<details><summary>All {len(table[1])} points</summary>{shown}</details>"
    return f"<section><h2>What it costs</h2>{shown}<p>{markup(words)}</p></section>"


def _recommendation(analysis: Analysis) -> str:
    if analysis.recommendations is None:
        return ""
    shown = _table(answer.recommendations(analysis), answer.words_of_choices(analysis))
    return (f"<section><h2>Recommendation</h2>{shown}"
            f"<p>{markup(analysis.recommendations.rule)}</p></section>")


def _overview(analysis: Analysis) -> str:
    """What holds for all responses: where the variation comes from, and every point at once."""
    drawn: list[Figure] = []
    varied = [each for each in analysis.responses if each.varies]
    terms = frames.variation(analysis).filter(pl.col("response").is_in([each.name for each in varied])) if any(
        each.model for each in varied) else pl.DataFrame()
    if terms.height:
        drawn.append(figures.variation(terms.select("response", "term", "percent")))
    factors = {factor.name: _of_axis(factor, {point.levels[factor.name]: point.numbers[factor.name] for each in varied
                                              for point in each.points}) for factor in analysis.design.factors}
    if varied and len(factors) > 1:
        rows = [{**{name: point.levels[name] if levels else point.numbers[name] for name, levels in factors.items()},
                 "point": point.point, each.label: point.interval.estimate}
                for each in varied[:RESPONSES_DRAWN] for point in each.points]
        labels = list(dict.fromkeys(each.label for each in varied[:RESPONSES_DRAWN]))
        wide = pl.DataFrame(rows, infer_schema_length=None).group_by("point", maintain_order=True).agg(
            *(pl.col(name).first() for name in factors), *(pl.col(label).drop_nulls().first() for label in labels))
        drawn.append(figures.parallel(wide, factors, labels))
    shown = "".join(grid([figure], f"overview-{place}") for place, figure in enumerate(drawn))
    return (f"<section><details><summary>Where the variation comes from</summary>{shown}</details></section>"
            if drawn else "")


def _of_axis(factor: Factor, seen: dict[str, float | None]) -> tuple[str, ...]:
    """A factor's levels in order; none where a design made up its points and their numbers are drawn."""
    if set(seen) <= set(factor.levels):
        return factor.levels
    return tuple(sorted(seen)) if None in seen.values() else ()


def _drawn(analysis: Analysis, each: Response, place: int) -> str:
    shown = _points(analysis, each) if each.varies else []
    return f"<section><h2>{markup(each.label)}</h2>{grid(shown, f'points-{place}')}</section>" if shown else ""


def _response(analysis: Analysis, each: Response, place: int) -> str:
    note = "" if each.declared else " (exploratory: not named before the runs)"
    if not each.varies:
        return f"<section><h2>{markup(each.label + note)}</h2><p>{markup(tables.constant(each))}</p></section>"
    parts = [f"<section><details><summary>Statistics of {markup(each.label + note)}</summary>",
             _table(tables.points(analysis, each), 1)]
    if each.model is not None:
        parts += [f"<h2>Effects on {markup(each.name)}</h2>", _table(tables.variation(each), 1),
                  _table(tables.effects(each), 2)]
        pairs = tables.effects(each, pairs=True)
        if pairs[1]:
            parts.append(f"<details><summary>Interactions, pair by pair</summary>{_table(pairs, 2)}</details>")
        parts.append(grid([*_interactions(analysis, each), figures.residuals(frames.residuals(each), each.name)],
                          f"effects-{place}"))
    if each.lines:
        parts += ["<h2>Trends</h2>", _table(tables.trends(each), 5), grid(_trends(analysis, each), f"trends-{place}")]
    if each.drift is not None:
        parts.append(f"<p>{markup(each.drift.words())} Looked for in {markup(each.drift_of)}.</p>")
    return "".join(parts) + "</details></section>"


def _points(analysis: Analysis, each: Response) -> list[Figure]:
    """Box plots by factor, and means over the factor with most levels."""
    factors = analysis.design.factors
    if not factors:
        return []
    rows = [{"factor": factor.name, "level": level, "value": value}
            for factor in factors for level in factor.levels
            for value in each.rows.filter(pl.col(factor.name) == level)["value"].to_list()]
    drawn = [figures.boxes(pl.DataFrame(rows), each.label)] if rows else []
    across = max(factors, key=lambda factor: (
        factor.environment, factor.kind == "numeric", len(factor.levels)))
    others = [factor.name for factor in factors if factor is not across]
    cells = sorted(each.points, key=lambda point: (
        [_place(analysis, name, point.levels[name]) for name in others], _place(analysis, across.name,
                                                                             point.levels[across.name])))
    shown = pl.DataFrame(
        [{"x": point.levels[across.name], "by": tables.levels({name: point.levels[name] for name in others}),
          "estimate": point.interval.estimate, "low": point.interval.low if point.interval.bounded else None,
          "high": point.interval.high if point.interval.bounded else None} for point in cells],
        schema_overrides={"low": pl.Float64, "high": pl.Float64})
    if shown["by"].n_unique() <= LINES_MOST and shown["x"].n_unique() > 1:
        drawn.append(figures.means(shown, across.name, each.label))
    return drawn


def _interactions(analysis: Analysis, each: Response) -> list[Figure]:
    """The pairs of factors that interact most: as lines, and the first of them as a heat map."""
    assert each.model is not None
    pairs = sorted((term for term in each.model.terms if len(term.factors) == 2), key=lambda term: -term.percent)
    drawn = []
    for place, term in enumerate(pairs[:PAIRS_MOST]):
        a, b = sorted(term.factors, key=lambda name: -each.rows[name].n_unique())
        cells = each.rows.group_by(x=a, by=b).agg(mean=pl.col("value").mean())
        cells = pl.DataFrame(sorted(cells.to_dicts(), key=lambda row: (
            _place(analysis, b, row["by"]), _place(analysis, a, row["x"]))))
        drawn.append(figures.interaction(cells, a, b, each.label))
        if place == 0:
            drawn.append(figures.heat_map(cells.rename({"by": "y"}), a, b, each.label))
    return drawn


def _trends(analysis: Analysis, each: Response) -> list[Figure]:
    units = {factor.name: factor.unit for factor in analysis.design.factors}
    drawn = []
    for line in each.lines[:TRENDS_MOST]:
        others = f", {tables.levels(line.others)}" if line.others else ""
        unit = f" ({units[line.factor]})" if units.get(line.factor) else ""
        drawn.append(figures.trend(pl.DataFrame({"x": line.x, "y": line.y}), frames.band(line),
                                   f"{each.name} over {line.factor}{others}: {line.trend.chosen.shape}",
                                   f"{line.factor}{unit}", each.label))
    return drawn


def _messages(seen: list[Evidence]) -> str:
    """Latencies and attribution by each factor."""
    parts = []
    for place, found in enumerate(seen):
        drawn = []
        if found.latencies_ms:
            named = {f"{found.factor} {level}": values for level, values in found.latencies_ms.items()}
            drawn += [figures.cdf(named, f"Latency by {found.factor}, cumulative"),
                      figures.tail(named, f"Latency by {found.factor}, tail")]
        if found.parts.height:
            drawn.append(figures.attribution_by_level(found.parts, metrics.part_titles(), found.factor))
        if drawn:
            sampled = f"; {found.sampled} of them keep a sample of their messages alone" if found.sampled else ""
            parts.append(f"<p>By {markup(found.factor)}, at the reference's levels of the other factors: {found.runs} "
                         f"of {found.of} runs, all their messages together{sampled}.</p>"
                         + grid(drawn, f"messages-{place}"))
    return f"<section><h2>Messages</h2>{''.join(parts)}</section>" if parts else ""


def _rest(analysis: Analysis) -> str:
    out = tables.left_out(analysis)
    listed = f"<h2>Runs that were left out</h2>{_table(out, 4)}" if out[1] else ""
    return (f"<section>{listed}<details><summary>Methods</summary><p>{markup(methods(analysis))}</p></details>"
            "</section>")


def _place(analysis: Analysis, factor: str, level: str) -> int:
    known = next(each.levels for each in analysis.design.factors if each.name == factor)
    return known.index(level) if level in known else len(known)


def _table(table: tables.Table, left: int) -> str:
    return text_table(*table, left=left) if table[1] else ""


