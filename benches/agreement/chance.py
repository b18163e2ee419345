#!/usr/bin/env python3
"""Live beside simulated, over scenarios drawn by chance.

    make chance                                       numbers 0 to 199, one seed a side, five for those that part
    benches/agreement/chance.py --from 500 --count 20       other numbers
    benches/agreement/chance.py --from 200 --count 93 --with events   those of them that have events
    benches/agreement/chance.py --show 17                   print the scenario of a number, as a file
    benches/agreement/chance.py --shrink 17                 the smallest scenario that still differs

A number draws the same scenario for ever (`draw.py`); numbers from 1,000,000 up are kept for judging and refused
without `--judging`. Each finished run is a line of the results file (`--results`) and is not repeated, unless a
simulation was made by another engine: stop it whenever you like, and start it again. A live run that the machine
spoilt is made again twice at most. Prints, and writes with `--out`, a table in Markdown of what does not agree, and
why, where `chance-reasons.md` says so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import chance_judgement as judging
import polars as pl
import run as agreement
from draw import KEPT_FROM, draw
from keep_alive import pings_as_measured

from mqttlab.errors import MqttlabError
from mqttlab.metrics.application import EXPECTED, FIRST_DELIVERY
from mqttlab.recording import Recording
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

HERE = Path(__file__).parent
SEEDS = (1, 2, 3, 4, 5)
QUANTILES = 200
"""So many evenly spaced latencies are kept of a run."""
LATE = "late at the 99th percentile"
"""Word of the reasons that say how late the emulator or the senders were."""
LATE_SHARE_MAX = 0.01
"""A live run counts that was late by at most this share of its mean latency, a fifth of what means may differ by."""
MACHINE = ("emulator", "senders", "could not offer", "machine", "waited for a disk")
"""Words of the reasons for which a live run is not valid that are the machine's, not the scenario's."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One run to make."""

    name: str
    values: Mapping[str, Any]
    seed: int
    backend: str

    def plan(self) -> dict[str, Any]:
        """What is run, as the engine takes it."""
        whole = {**self.values, "seed": self.seed, "backend": self.backend}
        return compile_plan(parse_values(pings_as_measured(whole), self.name))

    def key(self) -> str:
        """Names the run by all that decides it."""
        digest = hashlib.sha256(json.dumps(self.values, sort_keys=True).encode()).hexdigest()[:12]
        return f"{self.name}/{self.seed}/{self.backend}/{digest}"

    def is_missing(self, results: agreement.Results) -> bool:
        """Whether it is still to be run: never was, or was simulated by another engine."""
        row = results.rows.get(self.key())
        return row is None or (self.backend == "sim" and row.get("engine") != agreement.engine_digest())

    def is_spoilt(self, row: Mapping[str, Any]) -> bool:
        """Whether a run with this row is made again: the machine was late, which a simulation cannot be."""
        return self.backend == "live" and not counts(row)


def metrics_of(recording: Recording) -> dict[str, Any]:
    """What is compared: of the messages of the measurement, and of all frames of the run."""
    messages = recording.messages.filter(pl.col("phase") == "measurement")
    delivered = messages.filter(FIRST_DELIVERY)
    latencies = delivered["latency_ns"].drop_nulls().sort() / 1e6
    verdict = recording.run.get("validity") or {}
    values: dict[str, Any] = {
        "valid": bool(verdict.get("valid", True)), "reasons": verdict.get("reasons", []), "late_ms": late_ms(verdict),
        "messages_delivered": len(delivered), "expected": len(messages.filter(EXPECTED | (pl.col("fate") == "unsent"))),
        "fates": dict(messages.group_by("fate").len().sort("fate").rows()), "latencies_ms": [],
    }
    values["undelivered"] = values["expected"] - len(delivered)
    if len(latencies):
        quantiles = [latencies.quantile((step + 0.5) / QUANTILES, "linear") for step in range(QUANTILES)]
        values |= {"latency_ms_mean": latencies.mean(), "latency_ms_p50": latencies.median(),
                   "latency_ms_p95": latencies.quantile(0.95, "linear"),
                   "latencies_ms": [round(value, 3) for value in quantiles if value is not None]}
    packets = recording.packets
    if len(packets):
        values["frames_dropped"] = len(packets.filter(pl.col("fate") == "dropped"))
        first = packets.filter((pl.col("hop") == 0) & (pl.col("payload_bytes") > 0))
        values["segments_with_payload"] = len(first)
        values["segments_sent_again"] = len(first.filter(pl.col("repetition") > 0))
    return values


def late_ms(verdict: Mapping[str, Any]) -> float:
    """By how much frames of the worst path, or publications, were late at the 99th percentile; 0 where nothing says."""
    late = [*(verdict.get("paths") or []), verdict.get("senders") or {}]
    return max((row.get("p99_ns") or 0 for row in late), default=0) / 1e6


def both(name: str, values: Mapping[str, Any], seeds: Sequence[int]) -> list[Trial]:
    """The runs of a scenario with these seeds."""
    return [Trial(name=name, values=values, seed=seed, backend=backend)
            for seed in seeds for backend in ("sim", "live")]


def rows_of(name: str, values: Mapping[str, Any], seeds: Sequence[int], results: agreement.Results
            ) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The runs of a scenario that can be compared, of both sides: live, simulated."""
    live, sim = [], []
    for seed in seeds:
        pair = [results.rows.get(Trial(name=name, values=values, seed=seed, backend=backend).key(), {})
                for backend in ("live", "sim")]
        if all(counts(row) for row in pair):
            live.append(pair[0])
            sim.append(pair[1])
    return live, sim


def counts(row: Mapping[str, Any]) -> bool:
    """Whether a run can be compared: complete, and not invalid by what the machine did.

    A machine that was late by little beside the latencies has not spoilt them. That clients never connected, or a
    broker stood still, is what happened to the scenario, and the other side must have it, too.
    """
    if "valid" not in row:
        return False
    bears = row.get("late_ms", math.inf) <= LATE_SHARE_MAX * (row.get("latency_ms_mean") or 0)
    spoils = [reason for reason in row["reasons"] if any(word in reason for word in MACHINE)]
    return all(bears and LATE in reason for reason in spoils)


def word_of(name: str, values: Mapping[str, Any], results: agreement.Results) -> judging.Judged:
    """What is said of a scenario, from the runs that are there."""
    live, sim = rows_of(name, values, SEEDS[:1], results)
    if live and judging.alike(live[0], sim[0]):
        return judging.Judged(word="agrees", metrics={})
    live, sim = rows_of(name, values, SEEDS, results)
    if len(live) < 2:
        return judging.Judged(word="undecided", metrics={"runs": f"{len(live)} pairs of runs that can be compared"})
    return judging.judge(values, live, sim)


def campaign(numbers: Sequence[int], results: agreement.Results, jobs: int) -> None:
    """One seed of all, then five of those that part."""
    drawn = {number: draw(number) for number in numbers}
    first = [trial for number, values in drawn.items() for trial in both(str(number), values, SEEDS[:1])]
    agreement.perform_all(first, results, jobs, metrics=metrics_of)
    parted = [number for number, values in drawn.items() if word_of(str(number), values, results).word != "agrees"]
    more = [trial for number in parted for trial in both(str(number), drawn[number], SEEDS)]
    agreement.perform_all(more, results, jobs, metrics=metrics_of)


def table(numbers: Sequence[int], results: agreement.Results) -> str:
    """What agrees, and what does not, in Markdown."""
    run = [number for number in numbers if any(
        trial.key() in results.rows for trial in both(str(number), draw(number), SEEDS[:1]) if trial.backend == "live")]
    judged = {number: word_of(str(number), draw(number), results) for number in run}
    count = {word: sum(found.word == word for found in judged.values()) for word in ("agrees", "differs", "undecided")}
    reasons = _reasons()
    not_run = f" {len(numbers) - len(run)} were not run." if len(run) < len(numbers) else ""
    lines = [f"Of {len(run)} scenarios ({numbers[0]} to {numbers[-1]}) {count['agrees']} agree, {count['differs']} "
             f"differ, {count['undecided']} are undecided.{not_run}", "",
             "| number | word | metrics (live / simulated) | why |", "|---:|---|---|---|"]
    for number, found in judged.items():
        if found.word != "agrees":
            said = "<br>".join(f"{metric}: {words}" for metric, words in found.metrics.items())
            lines.append(f"| {number} | {found.word} | {said} | {reasons.get(number, 'not known')} |")
    return "\n".join(lines)


def _reasons() -> dict[int, str]:
    """Why scenarios part: rows of ``chance-reasons.md``, a number and its reason."""
    path = HERE / "chance-reasons.md"
    rows = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if row.startswith("| ")]
    return {int(row[0]): row[1] for row in cells if row[0].isdigit()}


def toml(values: Mapping[str, Any]) -> str:
    """A scenario as a file."""
    lines = [f"{name} = {_inline(value)}" for name, value in values.items() if not isinstance(value, (dict, list))]
    for name, value in values.items():
        for table_ in value if isinstance(value, list) else [value] if isinstance(value, dict) else []:
            lines.append("")
            lines.append(f"[[{name}]]" if isinstance(value, list) else f"[{name}]")
            lines += [f"{field} = {_inline(inner)}" for field, inner in table_.items()]
    return "\n".join(lines) + "\n"


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_inline(inner)}" for name, inner in value.items()) + " }" if value else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


def shrink(number: int, results: agreement.Results, jobs: int, trials: int) -> str:
    """The smallest scenario that still differs, and what it does not need."""
    values = draw(number)

    def still_differs(candidate: Mapping[str, Any]) -> bool:
        try:
            whole = {**candidate, "seed": 1, "backend": "sim"}
            compile_plan(parse_values(whole, "a smaller one"))
        except MqttlabError:
            return False
        smaller = both(f"{number}-smaller", candidate, SEEDS[:3])
        agreement.perform_all(smaller, results, jobs, metrics=metrics_of, quiet=True)
        live, sim = rows_of(f"{number}-smaller", candidate, SEEDS[:3], results)
        differs = len(live) >= 2 and judging.judge(candidate, live, sim).word == "differs"
        print("still differs" if differs else "does not", flush=True)
        return differs

    if not still_differs(values):
        return f"Number {number} does not differ over {len(SEEDS[:3])} seeds."
    smallest, left_out = judging.shrink(values, still_differs, trials=trials)
    live, sim = rows_of(f"{number}-smaller", smallest, SEEDS[:3], results)
    said = "\n".join(f"# {metric}: {words}" for metric, words in judging.judge(smallest, live, sim).metrics.items())
    return f"{said}\n# It does not need: {', '.join(left_out) or '–'}\n{toml(smallest)}"


def main() -> None:
    """Run them, and say what agrees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first number (default: %(default)s)")
    parser.add_argument("--count", type=int, default=200, help="how many numbers (default: %(default)s)")
    parser.add_argument("--with", dest="having", metavar="FIELD", help="only numbers whose scenario has this field")
    parser.add_argument("--jobs", type=int, default=4, help="runs at once (default: %(default)s)")
    parser.add_argument(
        "--results", type=Path, default=HERE / "chance.jsonl", help="what was run (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="write the table here, too")
    parser.add_argument("--table", action="store_true", help="run nothing; print the table of what was run")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="print the scenario of a number")
    parser.add_argument("--shrink", type=int, metavar="NUMBER", help="look for the smallest scenario that differs")
    parser.add_argument("--trials", type=int, default=60, help="of --shrink, scenarios at most (default: %(default)s)")
    parser.add_argument("--judging", action="store_true", help="run numbers that are kept for judging")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.count)
    asked = [number for number in (options.show, options.shrink) if number is not None] or [numbers[-1]]
    if max(asked) >= KEPT_FROM and not options.judging:
        parser.error(f"numbers from {KEPT_FROM:,} up are kept for judging; add --judging to run them")
    if options.show is not None:
        print(toml(draw(options.show)), end="")
        return
    numbers = [number for number in numbers if options.having in (None, *draw(number))]
    if not numbers:
        parser.error(f"no scenario of these numbers has {options.having!r}")
    results = agreement.Results(options.results)
    if options.shrink is not None:
        print(shrink(options.shrink, results, options.jobs, options.trials))
        return
    if not options.table:
        campaign(numbers, results, options.jobs)
    text = table(numbers, results)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
