#!/usr/bin/env python3
"""What is said of scenarios with events by chance, held against what was asked and what was recorded.

    benches/agreement/words.py                      200 numbers simulated, the first 60 of them live, too
    benches/agreement/words.py --count 20 --live 0  fewer, simulated
    benches/agreement/words.py --table              run nothing; print the table of what was run

A scenario has one to three events that may overlap, a quarter of which never end (`draw.py`). Each run is read as a
user reads it: the verdict, the report with all tables, the explanation of the three slowest messages and of a lost one.
`contradictions.py` has what would be wrong. Results are lines of `words.jsonl`; a simulation is made again by another
engine, a live run with `--again`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import run as agreement
from chance import Trial, counts
from contradictions import between, within
from draw import EVENTFUL_FROM, KEPT_FROM, draw

HERE = Path(__file__).parent
SEED = 1


def trials(numbers: Sequence[int], backend: str) -> list[Trial]:
    """One run of each number."""
    return [Trial(name=str(number), values=draw(number), seed=SEED, backend=backend) for number in numbers]


def table(numbers: Sequence[int], results: agreement.Results) -> str:
    """Every contradiction, in Markdown."""
    rows, simulated, compared = [], 0, 0
    for number in numbers:
        pair = {trial.backend: results.rows.get(trial.key(), {}) for backend in ("sim", "live")
                for trial in trials([number], backend)}
        sim, live = pair["sim"], pair["live"]
        simulated += "valid" in sim
        found = [*_named("simulated", sim), *_named("live", live)]
        if "valid" in sim and counts(live):
            compared += 1
            found += [f"{word}: {what}" for word, what in between(live, sim)]
        rows += [f"| {number} | {_events(draw(number))} | {what} |" for what in found]
    head = [f"{simulated} scenarios simulated, {compared} of them live, too: {len(rows)} contradictions in "
            f"{len({row.split('|')[1] for row in rows})} of them.", ""]
    return "\n".join([*head, *(["| number | events | contradiction |", "|---:|---|---|", *rows] if rows else [])])


def _named(backend: str, row: Mapping[str, Any]) -> list[str]:
    if "failed" in row:
        return [f"{backend}: {row['failed']}"]
    return [f"{backend}, {word}: {what}" for word, what in row.get("contradictions", [])]


def _events(values: Mapping[str, Any]) -> str:
    return "; ".join(" ".join(f"{name} {value}" for name, value in event.items()) for event in values["events"])


def main() -> None:
    """Run them, and say what contradicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--from", dest="first", type=int, default=EVENTFUL_FROM, help="the first number (default: %(default)s)")
    parser.add_argument("--count", type=int, default=200, help="how many are simulated (default: %(default)s)")
    parser.add_argument("--live", type=int, default=60, help="how many run live, too (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=4, help="runs at once (default: %(default)s)")
    parser.add_argument("--again", action="store_true", help="make live runs again")
    parser.add_argument(
        "--results", type=Path, default=HERE / "words.jsonl", help="what was run (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="write the table here, too")
    parser.add_argument("--table", action="store_true", help="run nothing; print the table of what was run")
    parser.add_argument("--judging", action="store_true", help="run numbers that are kept for judging")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.count)
    if numbers[-1] >= KEPT_FROM and not options.judging:
        parser.error(f"numbers from {KEPT_FROM:,} up are kept for judging; add --judging to run them")
    results = agreement.Results(options.results)
    if not options.table:
        lived = trials(numbers[: options.live], "live")
        if options.again:
            for trial in lived:
                results.rows.pop(trial.key(), None)
        agreement.perform_all(trials(numbers, "sim"), results, options.jobs, metrics=within)
        agreement.perform_all(lived, results, options.jobs, metrics=within)
    text = table(numbers, results)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
