"""A comparison as one HTML page."""

from __future__ import annotations

from pathlib import Path

from mqttlab.comparison import ByMessage, Comparison
from mqttlab.comparison.frames import fates as fates_of_frames
from mqttlab.comparison.words import head, what_happened
from mqttlab.foreign import markup
from mqttlab.report.comparison import answer, drawn, tables
from mqttlab.report.pages import grid, page_of, text_table, write_whole

MESSAGES_SHOWN = 200


def write_comparison(comparison: Comparison, out: Path, *, by_message: bool = False) -> Path:
    """Write the page to ``out`` and return it.

    Raises:
        ComparisonError: ``by_message``, and no two runs have the same random streams.
        OSError: the file cannot be written; whatever was there before is still there.
    """
    sections = [_answer(comparison), _latency(comparison), _metrics(comparison), _design(comparison)]
    sections += [_pair(pair, number) for number, pair in enumerate(comparison.by_message)] if by_message else []
    sides = f"First, the reference: {comparison.first.label}. Second: {comparison.second.label}."
    write_whole(out, page_of(comparison.title, sides, sections, "Made by mqttlab from the recordings alone."))
    return out


def _answer(comparison: Comparison) -> str:
    told = answer.answer(comparison)
    kind = "not-valid" if told.cautions else "undecided" if told.undecided else "valid"
    cautions = "".join(f"<p><strong>{markup(words)}</strong></p>" for words in told.cautions)
    table = text_table(*answer.table(told.differing), left=2) if told.differing else ""
    rest = "".join(f"<p>{markup(words)}</p>" for words in answer.rest(told))
    return (f'<section class="verdict {kind}">{cautions}<h2>{markup(told.sentence)}</h2><p>{markup(told.basis)}</p>'
            f"{table}{rest}</section>")


def _design(comparison: Comparison) -> str:
    knobs = "".join(f"<li>{markup(line)}</li>" for line in tables.knobs(comparison))
    return (f"<section><details><summary>Where the scenarios and the plans differ</summary>"
            f"<p>{markup(comparison.design)}</p>{_scenarios(comparison)}"
            f"<p>The plans differ in</p><ul>{knobs}</ul></details></section>")


def _scenarios(comparison: Comparison) -> str:
    table = tables.scenarios(comparison)
    return f"<p>The scenarios differ in</p>{text_table(*table, left=3)}" if table and table[1] else ""


def _metrics(comparison: Comparison) -> str:
    ratios = drawn.ratios(comparison)
    words = (f"<p>The margin of equivalence is {comparison.tolerance_percent:g} % of the first. p values are adjusted "
             "by Holm's method; intervals are of 95 % each.</p>" if ratios else "")
    table = text_table(*tables.metrics(comparison), left=2)
    shown = [*drawn.by_qos(comparison).values(), *([ratios] if ratios else [])]
    return (f"<section><h2>Metrics</h2>{grid(shown, 'metrics')}"
            f"<details><summary>Every metric</summary>{table}{words}</details></section>")


def _latency(comparison: Comparison) -> str:
    if not comparison.shifts:
        return ""
    latency = [figure for figure in (drawn.latency_cdf(comparison), drawn.shifts(comparison)) if figure]
    return (f"<section><h2>Latency</h2>{grid(latency, 'latency')}<details><summary>Quantile by quantile</summary>"
            f"{text_table(*tables.quantiles(comparison.shifts), left=2)}</details></section>")


def _pair(pair: ByMessage, number: int) -> str:
    name = f"Message by message: {pair.first.directory.name} → {pair.second.directory.name}"
    shown = pair.different.head(MESSAGES_SHOWN)
    told = "".join(
        f"<dt>{markup(head(record))}</dt>" + "".join(f"<dd>{markup(said)}</dd>" for said in what_happened(pair, record))
        for record in shown.iter_rows(named=True))
    more = pair.different.height - shown.height
    rest = f"<p>{more} more messages differ; mqttlab compare --json has all.</p>" if more > 0 else ""
    both = drawn.latency_in_both(pair)
    frames = tables.frame_fates(list(fates_of_frames(pair.frames).iter_rows()))
    return (f"<section><h2>{markup(name)}</h2>{text_table(*tables.fates(pair), left=2)}"
            f"{text_table(*tables.reasons(pair), left=1)}{grid([both] if both else [], f'pair-{number}')}"
            f"<h2>Frames, by name</h2>{text_table(*frames, left=3)}"
            f'<h2>The messages that differ</h2><dl class="told">{told}</dl>{rest}</section>')
