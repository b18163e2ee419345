#!/usr/bin/env python3
"""How far the simulator agrees with the kernel: kinds of scenario, each run live and simulated with the same seeds.

    make agreement                                   all kinds, five seeds; some 40 minutes, resumable
    benches/agreement/run.py --sample                ten kinds, as `make bench` does
    benches/agreement/run.py --only loss --seeds 8   kinds with this word in their names
    benches/agreement/run.py --simulate              simulations of another engine again, and no live run

Each finished run is a line of the results file (`--results`), and a run that stands there with the same plan is not
repeated: stop it whenever you like, and start it again. A live run that was not valid (the machine was held up) is
repeated twice at most. Where simulated and live part, the live runs are made a second time and laid beside the first
ones, so that one sees how far the kernel agrees with itself. Prints, and writes with `--out`, a table in Markdown.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import polars as pl
from judgement import SEEDS_MIN, Difference, bounds, difference
from keep_alive import pings_as_measured
from kinds import SAMPLE, Kind, kinds
from reasons import REASONS

from mqttlab.engine import engine_path
from mqttlab.recording import Recording
from mqttlab.runs import Job, LocalPool, Outcome
from mqttlab.runs.job import ulid
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

ATTEMPTS = 3
HERE = Path(__file__).parent
WARM_UP, COOL_DOWN = "3 s", "20 s"
UNDECIDED = (
    "undecided: the interval holds zero; losses fall differently once one segment differs, and so few runs do not "
    "average that out"
)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One run to make: a kind, a seed, a backend; ``again`` for the live run beside the first one."""

    kind: Kind
    seed: int
    backend: str
    again: bool = False

    def values(self) -> dict[str, Any]:
        """What is run, as a scenario file would have it."""
        return {
            "name": (self.kind.run or self.kind.name).replace("'", ""),
            "seed": self.seed,
            "backend": self.backend,
            "phases": {"warm_up": WARM_UP, "duration": f"{self.kind.seconds} s", "cool_down": COOL_DOWN},
            **self.kind.values,
        }

    def plan(self) -> dict[str, Any]:
        """What is run, as the engine takes it."""
        return compile_plan(parse_values(pings_as_measured(self.values()), self.kind.name))

    def key(self) -> str:
        """Names the run and the scenario that decides it: a changed kind is run again."""
        digest = hashlib.sha256(json.dumps(self.values(), sort_keys=True).encode())
        name = self.kind.run or self.kind.name
        return f"{name}/{self.seed}/{self.backend}{'-again' if self.again else ''}/{digest.hexdigest()[:12]}"

    def is_missing(self, results: Results) -> bool:
        """Whether it is still to be run: never was, or was not valid, or was simulated by another engine.

        The simulator is what is tried. What the kernel did stays true.
        """
        row = results.rows.get(self.key())
        if row is None or self.backend == "sim":
            return row is None or row.get("engine") != engine_digest()
        return not row.get("valid") and row.get("attempts", 0) <= ATTEMPTS

    def is_spoilt(self, row: dict[str, Any]) -> bool:
        """Whether a run with this row is made again."""
        return not row.get("valid")


class Runnable(Protocol):
    """A run to make, of a kind or of a number."""

    backend: str

    def plan(self) -> dict[str, Any]:
        """What is run, as the engine takes it."""

    def key(self) -> str:
        """Names the run and the scenario that decides it."""

    def is_missing(self, results: Results) -> bool:
        """Whether it is still to be run."""

    def is_spoilt(self, row: dict[str, Any]) -> bool:
        """Whether a run with this row is made again."""


@functools.cache
def engine_digest() -> str:
    """Names the engine's program."""
    return hashlib.sha256(engine_path().read_bytes()).hexdigest()[:12]


class Results:
    """The runs that were made, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        self.rows: dict[str, dict[str, Any]] = {row["run"]: row for row in map(json.loads, lines)}

    def add(self, row: dict[str, Any]) -> None:
        """Keep a run, at once on disk."""
        with self._lock, self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, sort_keys=True) + "\n")
            self.rows[row["run"]] = row


def row_of(metrics: Callable[[Recording], dict[str, Any]], _: Job, outcome: Outcome) -> dict[str, Any]:
    """What is kept of a run, whose recording goes."""
    try:
        if outcome.verdict != "complete":
            return {"failed": f"{outcome.verdict}: {outcome.reason}"}
        return metrics(Recording.open(outcome.directory))
    finally:
        shutil.rmtree(outcome.directory, ignore_errors=True)


def metrics_of(recording: Recording) -> dict[str, Any]:
    """What is compared: of the messages of the measurement, of all segments of the run, and of each client's first
    connection (kinds that were run before that was compared have none)."""
    delivered = recording.messages.filter((pl.col("fate") == "delivered") & (pl.col("phase") == "measurement"))
    latency = delivered["latency_ns"].drop_nulls() / 1e6
    network = recording.network_metrics
    segments = network.filter((pl.col("scope") == "run") & (pl.col("metric") == "segments_with_payload"))["value"]
    values: dict[str, Any] = {"messages_delivered": len(delivered)}
    if len(latency):
        values |= {"latency_ms_mean": latency.mean(), "latency_ms_p95": latency.quantile(0.95, "linear")}
    flows = delivered.filter(pl.col("topic").cast(pl.String).str.starts_with("flow/"))
    for topic, its in sorted(flows.partition_by("topic", as_dict=True).items()):
        latency = its["latency_ns"].drop_nulls() / 1e6
        values.setdefault("flows", {})[str(topic[0])] = {
            "messages_delivered": len(its),
            "latency_ms_mean": latency.mean(),
            "latency_ms_p95": latency.quantile(0.95, "linear"),
        }
    connected = recording.clients["connect_ns"].drop_nulls() / 1e6
    if len(connected):
        values["connect_ms_mean"] = connected.mean()
    # Without a captured packet the sum over packets says nothing.
    if len(segments) and len(recording.packets):
        values["segments_with_payload"] = segments[0]
    verdict = recording.run.get("validity") or {}
    return values | {"valid": bool(verdict.get("valid", True)), "reasons": verdict.get("reasons", [])}


def perform_all(
    trials: Iterable[Runnable],
    results: Results,
    jobs: int,
    *,
    metrics: Callable[[Recording], dict[str, Any]] = metrics_of,
    quiet: bool = False,
) -> None:
    """Make the runs that are missing, ``jobs`` at once, and keep their ``metrics``.

    One that is spoilt is made again, ``ATTEMPTS`` times at most.
    """
    # Kinds may share a run.
    missing = list({trial.key(): trial for trial in trials if trial.is_missing(results)}.values())
    waiting: dict[str, tuple[Runnable, int]] = {}
    done = 0
    with tempfile.TemporaryDirectory() as scratch, LocalPool(functools.partial(row_of, metrics), jobs=jobs) as pool:

        def begin(trial: Runnable, attempt: int) -> None:
            identifier = ulid()
            waiting[identifier] = (trial, attempt)
            pool.submit(Job(trial.plan(), Path(scratch, identifier), identifier))

        for trial in missing:
            begin(trial, 1)
        for finished in pool.results():
            row = finished.result()
            if pool.asked is not None:
                raise SystemExit(f"stopped by {pool.asked.name}")
            trial, attempt = waiting.pop(finished.job.identifier)
            if trial.is_spoilt(row) and attempt < ATTEMPTS:
                begin(trial, attempt + 1)
                continue
            earlier = results.rows.get(trial.key(), {}).get("attempts", 0) if trial.backend == "live" else 0
            row |= {"run": trial.key(), "attempts": earlier + attempt}
            if trial.backend == "sim":
                row["engine"] = engine_digest()
            results.add(row)
            done += 1
            if quiet:
                continue
            note = row.get("failed") or (
                "" if row.get("valid") else "not valid: " + "; ".join(map(str, row["reasons"]))
            )
            print(f"[{done}/{len(missing)}] {row['run']} {note}", flush=True)


def compare(kind: Kind, seeds: list[int], results: Results, second: str) -> dict[str, Difference]:
    """The differences by metric of live runs against ``second``: ``sim``, or ``live-again``; empty without runs.

    Runs that were not valid are left out.
    """
    rows = {
        backend: {
            seed: row | row.get("flows", {}).get(kind.flow, {})
            for seed in seeds
            if (
                row := results.rows.get(
                    Trial(kind=kind, seed=seed, backend=backend.removesuffix("-again"), again="again" in backend).key()
                )
            )
            and row.get("valid")
        }
        for backend in ("live", second)
    }
    found = {}
    for metric, bound in bounds(loss=kind.loss).items():
        both = [seed for seed in seeds if all(metric in rows[backend].get(seed, {}) for backend in rows)]
        if len(both) >= 2:
            series = [[float(rows[backend][seed][metric]) for seed in both] for backend in rows]
            found[metric] = difference(series[0], series[1], bound)
    return found


def table(chosen: list[Kind], seeds: list[int], results: Results) -> tuple[str, list[str]]:
    """The table in Markdown, and the names of the kinds that part."""
    metrics = list(bounds(loss=False))
    lines = ["| kind | " + " | ".join(metrics) + " | live runs that were valid |", "|---" * (len(metrics) + 2) + "|"]
    parted = []
    for kind in chosen:
        found = compare(kind, seeds, results, "sim")
        live = [results.rows.get(Trial(kind=kind, seed=seed, backend="live").key(), {}) for seed in seeds]
        cells = [found[metric].words() if metric in found else "–" for metric in metrics]
        valid = f"{sum(bool(row.get('valid')) for row in live)} of {len(seeds)}"
        lines.append(f"| {kind.name} | " + " | ".join([*cells, valid]) + " |")
        if not found or not all(entry.agrees for entry in found.values()):
            parted.append(kind.name)
            again = compare(kind, seeds, results, "live-again")
            cells = [again[metric].words() if metric in again else "–" for metric in metrics]
            lines.append("| – live beside itself | " + " | ".join([*cells, ""]) + " |")
    return "\n".join(lines), parted


def exceptions(chosen: list[Kind], seeds: list[int], results: Results) -> str:
    """The kinds that part, in Markdown: in what, by how much, how far live runs agree with themselves, and why."""
    lines = ["| kind | metric | live / simulated | live / live again | why |", "|---|---|---|---|---|"]
    for kind in chosen:
        found, again = (compare(kind, seeds, results, second) for second in ("sim", "live-again"))
        for metric, entry in found.items():
            if entry.agrees:
                continue
            repeated = again[metric].words() if metric in again else "–"
            why = REASONS.get(kind.name, {}).get(metric) or REASONS.get(kind.name, {}).get("")
            if not why and metric in again and not again[metric].agrees:
                why = "live runs part from themselves, too"
            if not why and entry.is_undecided:
                why = UNDECIDED
            lines.append(f"| {kind.name} | {metric} | {entry.words()} | {repeated} | {why or 'not known'} |")
    return "\n".join(lines)


def split(parted: list[str], seeds: list[int], results: Results) -> tuple[list[str], list[str]]:
    """Of the kinds that part those with a difference, and those whose runs vary too much to tell."""
    differ = []
    for kind in kinds():
        if kind.name in parted:
            found = compare(kind, seeds, results, "sim").values()
            if not found or any(not entry.agrees and not entry.is_undecided for entry in found):
                differ.append(kind.name)
    return differ, [name for name in parted if name not in differ]


def main() -> None:
    """Run them, and say what agrees."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="run only kinds with this word in their names")
    parser.add_argument("--sample", action="store_true", help="run only the ten kinds of `make bench`")
    parser.add_argument("--simulate", action="store_true", help="run no live run, only what another engine simulated")
    parser.add_argument("--seeds", type=int, default=SEEDS_MIN, help="runs a kind and backend (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="live runs at once (default: %(default)s)")
    parser.add_argument(
        "--results", type=Path, default=HERE / "results.jsonl", help="what was run (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, help="write the table here, too")
    parser.add_argument("--table", action="store_true", help="run nothing; print the table of what was run")
    options = parser.parse_args()
    chosen = [kind for kind in kinds() if options.only in kind.name and (not options.sample or kind.name in SAMPLE)]
    if not chosen:
        parser.error(f"no kind has {options.only!r} in its name; known: {', '.join(kind.name for kind in kinds())}")
    seeds, results = list(range(1, options.seeds + 1)), Results(options.results)
    if not options.table:
        for backend in ("sim",) if options.simulate else ("sim", "live"):
            perform_all(
                [Trial(kind=kind, seed=seed, backend=backend) for kind in chosen for seed in seeds],
                results,
                options.jobs,
            )
        parted = [] if options.simulate else table(chosen, seeds, results)[1]
        perform_all(
            [
                Trial(kind=kind, seed=seed, backend="live", again=True)
                for kind in chosen
                if kind.name in parted
                for seed in seeds
            ],
            results,
            options.jobs,
        )
    text, parted = table(chosen, seeds, results)
    text += f"\n\n{len(chosen) - len(parted)} of {len(chosen)} kinds agree in everything, over {len(seeds)} seeds."
    differ, undecided = split(parted, seeds, results)
    text += f" A difference is shown in {len(differ)}: {', '.join(differ)}." if differ else ""
    text += f" Undecided with so few runs are {len(undecided)}: {', '.join(undecided)}." if undecided else ""
    if parted:
        text += "\n\n" + exceptions(chosen, seeds, results)
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
