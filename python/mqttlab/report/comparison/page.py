"""A comparison of two or more sides as one HTML page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mqttlab.comparison import ByMessage, Comparison
from mqttlab.comparison.frames import fates as fates_of_frames
from mqttlab.comparison.words import head, what_happened
from mqttlab.digits import plain
from mqttlab.foreign import markup
from mqttlab.report.comparison import answer, drawn, several, tables
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


def write_several(comparisons: Sequence[Comparison], out: Path) -> Path:
    """Write the page of more than two sides, each against the first, to ``out`` and return it.

    Raises:
        OSError: the file cannot be written; whatever was there before is still there.
    """
    labels = several.labels(comparisons)
    sides = "; ".join(f"{drawn.ordinal(place)}: {label}" for place, label in enumerate(labels))
    cdf = drawn.latency_cdf(*comparisons)
    figures = [*([cdf] if cdf else []), *drawn.by_qos(*comparisons).values()]
    sections = [_several(comparisons), f"<section><h2>All sides</h2>{grid(figures, 'sides')}</section>"]
    for place, each in enumerate(comparisons, 1):
        name = f"{drawn.ordinal(place)} against the first: {labels[place]}"
        # A heading that is folded leads nowhere in the list of contents.
        folded = re.sub(r"(</?)h2>", r"\1h3>", _latency(each, place) + _metrics(each, place) + _design(each))
        sections.append(f"<section><details><summary>{markup(name[:1].upper() + name[1:])}</summary>{folded}</details>"
                        "</section>")
    words = f"{sides[:1].upper()}{sides[1:]}. The first is the reference."
    write_whole(out, page_of(f"{len(labels)} sides compared", words, sections,
                             "Made by mqttlab from the recordings alone."))
    return out


def _several(comparisons: Sequence[Comparison]) -> str:
    said = several.said(comparisons)
    table = text_table(*several.table(said.differing, several.labels(comparisons)), left=2) if said.differing else ""
    return _verdict(said.cautions, said.undecided, said.sentences, [*said.bases], table, said.notes)


def _verdict(cautions: Sequence[str], undecided: bool, sentences: Sequence[str], bases: Sequence[str], table: str,
             rest: Sequence[str]) -> str:
    kind = "not-valid" if cautions else "undecided" if undecided else "valid"
    parts = [*(f"<p><strong>{markup(words)}</strong></p>" for words in cautions),
             *(f"<h2>{markup(words)}</h2>" for words in sentences), *(f"<p>{markup(words)}</p>" for words in bases),
             table, *(f"<p>{markup(words)}</p>" for words in rest)]
    return f'<section class="verdict {kind}">{"".join(parts)}</section>'


def _answer(comparison: Comparison) -> str:
    told = answer.answer(comparison)
    table = text_table(*answer.table(told.differing), left=2) if told.differing else ""
    return _verdict(told.cautions, bool(told.undecided), [told.sentence], [told.basis], table, answer.rest(told))


def _design(comparison: Comparison) -> str:
    knobs = "".join(f"<li>{markup(line)}</li>" for line in tables.knobs(comparison))
    return (f"<section><details><summary>Where the scenarios and the plans differ</summary>"
            f"<p>{markup(comparison.design)}</p>{_scenarios(comparison)}"
            f"<p>The plans differ in</p><ul>{knobs}</ul></details></section>")


def _scenarios(comparison: Comparison) -> str:
    table = tables.scenarios(comparison)
    return f"<p>The scenarios differ in</p>{text_table(*table, left=3)}" if table and table[1] else ""


def _metrics(comparison: Comparison, place: int = 1) -> str:
    ratios = drawn.ratios(comparison)
    words = (f"<p>The margin of equivalence is {plain(comparison.tolerance_percent)} % of the first. p values are "
             "adjusted by Holm's method; intervals are of 95 % each.</p>" if ratios else "")
    table = text_table(*tables.metrics(comparison), left=2)
    shown = [*drawn.by_qos(comparison).values(), *([ratios] if ratios else [])]
    return (f"<section><h2>Metrics</h2>{grid(shown, f'metrics-{place}')}"
            f"<details><summary>Every metric</summary>{table}{words}</details></section>")


def _latency(comparison: Comparison, place: int = 1) -> str:
    if not comparison.shifts:
        return ""
    latency = [figure for figure in (drawn.latency_cdf(comparison), drawn.shifts(comparison)) if figure]
    return (f"<section><h2>Latency</h2>{grid(latency, f'latency-{place}')}"
            "<details><summary>Quantile by quantile</summary>"
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
