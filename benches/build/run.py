#!/usr/bin/env python3
"""What link-time optimisation costs and brings: the engine built in several ways, and the same work done by each.

    benches/build/run.py                     three builds (some ten minutes on two processors), five rounds
    benches/build/run.py --keep DIR          keep the builds there, and use those that are there
    benches/build/run.py --out benches/build/RESULTS.md

Of each build: processor and wall time from cold dependencies, and the program's size. Of each program: processor
seconds of a simulation with packets, of its finalising pass, and of an import of its capture; interleaved, the least of
the rounds, because another program on the machine only ever adds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mqttlab.scenario import compile_plan, parse

ROOT = Path(__file__).resolve().parents[2]
# All that `profile.release` says less than Cargo by itself.
LESS = ("mqttlab-plan", "rcgen", "ring", "rustls", "zstd-sys")
WHOLE = ('profile.release.debug="line-tables-only"', *(f"profile.release.package.{name}.opt-level=3" for name in LESS))
# `false` is what Cargo does by itself: across the units of a crate, and not across crates.
BUILDS = {
    "fat, 1 unit": ('profile.release.lto="fat"', "profile.release.codegen-units=1", *WHOLE),
    "of a crate, 16 units": ("profile.release.lto=false", *WHOLE),
    "as `make setup`": (),
}
SCENARIO = """
name = "build"
backend = "sim"
phases = { duration = "100 s", cool_down = "1 s" }
hosts.clients = { count = 50 }
[[networks]]
between = ["clients", "broker"]
link = "each"
up = { rate = "10 Mbit/s", delay = "5 ms" }
down = { rate = "10 Mbit/s", delay = "5 ms", loss = "0.1 %" }
[[groups]]
name = "both"
host = "clients"
count = 50
connect_over = "0 s"
publish = { topic = "t/{client}", payload = "64 B", rate = "20 /s", qos = 1 }
subscribe = ["t/{client}"]
"""


def used(words: Sequence[str | Path], text: str | None = None) -> tuple[float, float]:
    """Processor and wall seconds of a program and what it started."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([str(word) for word in words], input=text, text=True, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, cwd=ROOT)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s, time.monotonic() - began


def build(name: str, place: Path) -> tuple[Path, tuple[float, float] | None]:
    """The engine built in one way, and what that took, if it was not there yet."""
    engine = place / re.sub(r"\W+", "-", name) / "release" / "mqttlab-engine"
    if engine.is_file():
        return engine, None
    settings = [word for setting in BUILDS[name] for word in ("--config", setting)]
    took = used(["cargo", "build", "--release", "--locked", "--quiet", "--package", "mqttlab-engine", "--target-dir",
                 engine.parents[1], *settings])
    return engine, took


def work(engine: Path, plan: str, scratch: Path, capture: Path) -> dict[str, float]:
    """Processor seconds of each kind of work."""
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        run, imported = Path(directory, "run"), Path(directory, "imported")
        return {
            "simulation": used([engine, "run", "--directory", run, "--identifier", "0" * 26], plan)[0],
            "finalising pass": used([engine, "summarise", run])[0],
            "import of its capture": used([engine, "import", "capture", "--output", imported, capture])[0],
        }


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="directory for the builds")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mqttlab-build-") as directory:
        scratch = Path(directory)
        builds = {name: build(name, options.keep or scratch) for name in BUILDS}
        plan = json.dumps(compile_plan(parse(SCENARIO)))
        least: dict[str, dict[str, float]] = {name: {} for name in BUILDS}
        capture = scratch / "run.pcapng"
        first = next(iter(builds.values()))[0]
        used([first, "run", "--directory", scratch / "first", "--identifier", "0" * 26], plan)
        used([sys.executable, "-m", "mqttlab", "export", scratch / "first", "--pcapng", capture])
        for _ in range(options.rounds):
            for name, (engine, _) in builds.items():
                for kind, cpu_s in work(engine, plan, scratch, capture).items():
                    least[name][kind] = min(cpu_s, least[name].get(kind, cpu_s))
        kinds = list(least[next(iter(BUILDS))])
        lines = [f"{platform.machine()}, {os.cpu_count()} processors, {options.rounds} rounds, the least of each", "",
                 "| link-time optimisation | build: CPU, wall | program | " + " | ".join(kinds) + " |",
                 "|---|---:|---:|" + "---:|" * len(kinds)]
        for name, (engine, took) in builds.items():
            cost = "–" if took is None else f"{took[0]:.0f} s, {took[1]:.0f} s"
            cells = " | ".join(f"{least[name][kind]:.3f} s" for kind in kinds)
            lines.append(f"| {name} | {cost} | {engine.stat().st_size / 1e6:.0f} MB | {cells} |")
    print(*lines, sep="\n")
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
