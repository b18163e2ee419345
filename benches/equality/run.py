#!/usr/bin/env python3
"""Does this checkout simulate the same as another one? Thirty-odd kinds of scenario, every table compared.

    benches/equality/run.py --before ../before        both checkouts set up (`make setup`) beforehand
    benches/equality/run.py --before ../before --only loss

Each kind is simulated by both checkouts with one seed, through their command lines. Recordings are equal when every
table is: the same columns, types, rows and order. What changed on purpose stands in `mapping.toml` beside this file:
columns that were added, dropped or renamed, tables and rows that are new, rows that are gone. `run.json` is compared
without identifiers, machine, directory and times. Exit status 1 when anything differs that the mapping does not name.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import polars as pl

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "agreement"))
from kinds import kinds  # noqa: E402 (the kinds of the agreement are the scenarios)

# Every nth kind of the agreement, which is 41 of 81, from its start to its end.
STRIDE = 2
# The exit status of a scenario that a program does not take.
WRONG_INPUT = 2
PHASES = {"warm_up": "1 s", "duration": "8 s", "cool_down": "20 s"}
# What names one run or one machine, and says nothing of what was simulated.
VOLATILE = {
    "run_id",
    "directory",
    "machine",
    "started_at",
    "ended_at",
    "wall_s",
    "version",
    "engine",
    "duration_s",
    "cpu_s",
    "plan_sha256",
    # In `checks`: it has the run's identifier and times. Tables have their checksums there.
    "layout.json",
}


def toml_of(value: Any) -> str:
    """A value as inline TOML."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {toml_of(inner)}" for name, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_of, value)) + "]"
    return json.dumps(value)


def knows(checkout: Path, scenario: Path) -> bool:
    """Whether the program of ``checkout`` has the scenario's fields: an older one may not."""
    program = checkout / ".venv" / "bin" / "mqttlab"
    return subprocess.run([program, "check", scenario], capture_output=True).returncode != WRONG_INPUT


def simulate(checkout: Path, scenario: Path, runs: Path) -> Path:
    """Run the scenario with the program of ``checkout``; the recording's directory."""
    program = checkout / ".venv" / "bin" / "mqttlab"
    done = subprocess.run(
        [program, "run", scenario, "--no-html", "--runs", runs, "--ignore-disk"], capture_output=True, text=True
    )
    found = sorted(runs.glob("*/run.json"))
    if not found:
        raise SystemExit(f"{program} run {scenario} left no recording ({done.returncode}):\n{done.stdout}{done.stderr}")
    return found[-1].parent


def differences(before: Path, after: Path, mapping: dict[str, Any]) -> list[str]:
    """What differs between two recordings, a line each."""
    found = []
    names = {path.name for path in [*before.glob("*.parquet"), *after.glob("*.parquet")]}
    for name in sorted(names - {f"{table}.parquet" for table in mapping.get("new_tables", [])}):
        if not (before / name).is_file() or not (after / name).is_file():
            found.append(f"{name}: only in {'before' if (before / name).is_file() else 'after'}")
            continue
        found += _table(name, pl.read_parquet(before / name), pl.read_parquet(after / name), mapping)
    left, right = (json.loads((place / "run.json").read_text(encoding="utf-8")) for place in (before, after))
    return found + _values("run.json", left, right, set(mapping.get("run_json", [])) | VOLATILE)


def _table(name: str, left: pl.DataFrame, right: pl.DataFrame, mapping: dict[str, Any]) -> list[str]:
    changes = mapping.get("tables", {}).get(name.removesuffix(".parquet"), {})
    left = left.drop([column for column in changes.get("dropped", []) if column in left.columns])
    left = left.rename({old: new for old, new in changes.get("renamed", {}).items() if old in left.columns})
    right = right.drop(
        [column for column in changes.get("added", []) if column in right.columns and column not in left.columns]
    )
    for column, words in changes.get("new_rows", {}).items():
        right = right.filter(~pl.col(column).cast(pl.String).is_in(set(words) - set(left[column].cast(pl.String))))
    for column, words in changes.get("gone_rows", {}).items():
        left = left.filter(~pl.col(column).cast(pl.String).is_in(words))
    for column, words in changes.get("words", {}).items():
        if column in left.columns:
            left = left.with_columns(pl.col(column).cast(pl.String).replace(words))
    if sorted(left.columns) != sorted(right.columns):
        return [f"{name}: columns {sorted(set(left.columns) ^ set(right.columns))} stand on one side only"]
    if len(left) != len(right):
        return [f"{name}: {len(left)} rows before, {len(right)} after"]
    found = []
    for column in left.columns:
        one, other = (_plain(frame[column]) for frame in (left, right))
        if not one.equals(other, null_equal=True):
            unequal = (one.ne_missing(other)).arg_true()
            first = unequal[0] if len(unequal) else 0
            found.append(f"{name}: {column} differs in {len(unequal)} rows: {one[first]} / {other[first]}")
    return found


def _plain(series: pl.Series) -> pl.Series:
    """Dictionary-coded columns as their words: codes are the writer's business."""
    return series.cast(pl.String) if series.dtype in (pl.Categorical, pl.Enum) else series


def _values(place: str, left: Any, right: Any, ignored: set[str]) -> list[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        return [
            line
            for name in sorted({*left, *right} - ignored)
            for line in _values(f"{place}.{name}", left.get(name), right.get(name), ignored)
        ]
    return [] if left == right else [f"{place}: {left!r} / {right!r}"]


def main() -> int:
    """Simulate everything twice, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the other checkout, set up")
    parser.add_argument("--only", default="", help="only kinds with this word in their names")
    parser.add_argument("--keep", type=Path, help="keep what --before recorded here, and use what is there")
    options = parser.parse_args()
    mapping = tomllib.loads((HERE / "mapping.toml").read_text(encoding="utf-8"))
    chosen = [kind for kind in kinds()[::STRIDE] if options.only in kind.name]
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(2) as pool:

        def compare(kind: Any) -> list[str] | None:
            name = "".join(letter if letter.isalnum() or letter == "-" else "_" for letter in kind.name)
            values = {"name": name, "seed": 7, "backend": "sim", "phases": PHASES, **kind.values}
            scenario = Path(scratch, f"{name}.toml")
            scenario.write_text("".join(f"{key} = {toml_of(value)}\n" for key, value in values.items()), "utf-8")
            if not knows(options.before, scenario):
                return None
            kept = (options.keep or Path(scratch, "before")) / name
            found = sorted(kept.glob("*/run.json"))
            before = found[-1].parent if found else simulate(options.before, scenario, kept)
            return differences(before, simulate(PROJECT, scenario, Path(scratch, "after", name)), mapping)

        equal = compared = 0
        for kind, found in zip(chosen, pool.map(compare, chosen), strict=True):
            if found is None:
                print(f"{kind.name}: not compared, --before does not take the scenario", flush=True)
                continue
            print(f"{kind.name}: {'equal' if not found else ''}", *found, sep="\n    " if found else "", flush=True)
            compared, equal = compared + 1, equal + (not found)
    print(f"\n{equal} of {compared} recordings are equal; {len(chosen) - compared} were not compared.")
    return 0 if equal == compared else 1


if __name__ == "__main__":
    sys.exit(main())
