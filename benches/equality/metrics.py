#!/usr/bin/env python3
"""Does this checkout tell the same of recordings as another one? Every table that exports have, value by value.

    benches/equality/metrics.py --before ../before RECORDING...

Both checkouts read the same recordings with this environment's Python: counts and quantiles must be equal, sums and
means within 1e-12. Exit status 1 when a value differs; each table's first such row is printed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
READ = """
import json, sys
from pathlib import Path
import polars as pl
from mqttlab import export, metrics
from mqttlab.recording import Recording
for directory in sys.argv[1:]:
    recording = Recording.open(Path(directory))
    # Older checkouts are given the table of attribution.
    more = [metrics.attribution(recording)] if export.summary_tables.__code__.co_argcount == 2 else []
    tables = export.summary_tables(recording, *more)
    tables |= {f"application by {by}": metrics.application(recording, by)
               for by in ((), ("topic",), ("publisher_group", "topic"))}
    tables |= {name: getattr(metrics, name)(recording)
               for name in ("deliveries", "attribution", "round_trips", "packet_types", "topics")}
    told = {name: table.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)).to_dicts()
            for name, table in tables.items()}
    print(json.dumps(told, default=str), flush=True)
"""
Tables = dict[str, list[dict[str, Any]]]


def read(checkout: Path, recordings: list[str]) -> list[Tables]:
    """The tables of each recording, as a checkout tells them."""
    done = subprocess.run([sys.executable, "-c", READ, *recordings], check=True, text=True, stdout=subprocess.PIPE,
                          env={**os.environ, "PYTHONPATH": str(checkout / "python")})
    return [json.loads(line) for line in done.stdout.splitlines()]


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same by the rule."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (one != one and other != other) or math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return type(one) is type(other) and bool(one == other)


def differences(before: Tables, after: Tables) -> list[str]:
    """A line for each table that differs."""
    found = []
    for name in sorted(before | after):
        old, new = before.get(name, []), after.get(name, [])
        if len(old) != len(new):
            found.append(f"{name}: {len(old)} rows, now {len(new)}")
            continue
        for number, (left, right) in enumerate(zip(old, new, strict=True)):
            changed = {key: (left.get(key), right.get(key)) for key in left | right
                       if not same(left.get(key), right.get(key))}
            if changed:
                found.append(f"{name}, row {number}: {changed}")
                break
    return found


def main() -> None:
    """Compare, print, and exit with 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the other checkout")
    parser.add_argument("recordings", nargs="+")
    options = parser.parse_args()
    sides = [read(checkout, options.recordings) for checkout in (options.before, ROOT)]
    differ = 0
    for recording, before, after in zip(options.recordings, *sides, strict=True):
        found = differences(before, after)
        differ += len(found)
        values = sum(len(row) for table in after.values() for row in table)
        print(f"{recording}: {values} values, {len(found)} tables differ", *found, sep="\n  ")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
