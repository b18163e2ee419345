#!/usr/bin/env python3
"""What a hostile world does to mqttlab, kind by kind, with how often it was tried and how often it failed.

    benches/hostile/run.py --out benches/hostile/HOSTILE.md   20 kills of each command, an hour
    benches/hostile/run.py --kills 1 --mutations 100          the same kinds, less often
    benches/hostile/run.py --only clock                       kinds with this word in their names

Kinds that have tests are tried by these: there a try is a test, and many tests hold several cases. Others are tried
here. What this machine cannot try is said with its reason, and counts as not tried. The exit status is 1 where
something failed. The table is written anew after each kind.

A clock is moved in a namespace of its own (time_namespaces(7)), which has the clocks that a run measures with; the
time of day belongs to the whole machine, and is left alone. A control group is made only where `--group` names a
directory of version 2 that may be written to; the limit on addresses (`ulimit -v`) is tried everywhere.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import kills

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-m", "mqttlab"]
MEGABYTES = (64, 128, 256, 512, 1024)
# Seconds by which the clocks of a namespace differ from the machine's: a decade on, and nearly back to its start.
DECADE_S = 315_360_000
WITHIN_S = 900


@dataclass
class Tried:
    """What became of a kind."""

    tried: int = 0
    faults: list[str] = field(default_factory=list)
    not_tried: str = ""


@dataclass(frozen=True)
class Kind:
    """Something hostile, and who tries it."""

    name: str
    what: str
    perform: Callable[[argparse.Namespace], Tried]


@dataclass(frozen=True)
class Tests:
    """Files of tests, or those tests in them that are chosen by a word of their names."""

    files: tuple[str, ...]
    chosen: str = ""

    def __call__(self, asked: argparse.Namespace) -> Tried:
        """Run them."""
        with tempfile.TemporaryDirectory(prefix="mqttlab-hostile-") as place:
            told = Path(place) / "told.xml"
            chosen = ["-k", self.chosen] if self.chosen else []
            done = subprocess.run([sys.executable, "-m", "pytest", "-q", f"--junitxml={told}", *chosen, *self.paths()],
                                  cwd=ROOT, capture_output=True, text=True, check=False)
            return judged(told) if told.is_file() else Tried(1, [f"pytest: {done.stdout[-500:]}"])

    def paths(self) -> list[Path]:
        """Where they are."""
        return [ROOT / "tests" / "python" / f"{file}.py" for file in self.files]


def tests(*files: str, chosen: str = "") -> Tests:
    """Who tries a kind."""
    return Tests(files, chosen)


def judged(told: Path) -> Tried:
    """What JUnit's file says of tests."""
    found, skipped = Tried(), 0
    for case in xml.parse(told).getroot().iter("testcase"):
        if case.find("skipped") is not None:
            skipped += 1
            continue
        found.tried += 1
        if case.find("failure") is not None or case.find("error") is not None:
            found.faults.append(f"{case.get('classname')}::{case.get('name')}")
    if skipped:
        found.not_tried = f"{skipped} tests that this machine skips"
    return found


def killed(asked: argparse.Namespace) -> Tried:
    """Every command, by SIGKILL at random instants: `kills.py`."""
    found = Tried()
    with tempfile.TemporaryDirectory(prefix="mqttlab-kills-") as above:
        for command in kills.COMMANDS:
            place = kills.Place(Path(above, command.name.replace(" ", "-")))
            outcome = kills.kills(command, place, asked.kills, random.Random(f"{asked.seed}/{command.name}"))
            found.tried += outcome.kills
            found.faults += [f"{command.name}, {fault}" for fault in outcome.faults]
            place.end(place.processes())
    return found


def damaged(asked: argparse.Namespace) -> Tried:
    """Recordings of which a byte, a column or a number is another one: `tests/soak/mutations.py`."""
    sys.path.insert(0, str(ROOT / "tests" / "soak"))
    import mutations

    found = Tried()
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        mutations.make(Path(name))
        worker = mutations.Worker(Path(name) / "whole", asked.seed)
        for number in range(asked.mutations):
            outcome = worker.judge(number)
            found.tried += 1
            if outcome.fault:
                found.faults.append(f"{number}: {outcome.words}: {outcome.fault.splitlines()[-1]}")
        worker.end()
    return found


def fuzzed(asked: argparse.Namespace) -> Tried:
    """Captures, packets and plans with bytes changed: the bounded part of the fuzz targets."""
    if shutil.which("cargo") is None:
        return Tried(not_tried="there is no cargo")
    words = ["cargo", "test", "--locked", "--package", "mqttlab-capture", "--package", "mqttlab-mqttsn",
             "--package", "mqttlab-zmtp", "--package", "mqttlab-sim", "fuzz"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    results = re.findall(r"^test (\S+) \.\.\. (ok|FAILED)$", done.stdout, re.MULTILINE)
    faults = [name for name, outcome in results if outcome != "ok"]
    return Tried(len(results), faults or ([] if done.returncode == 0 else [done.stderr[-300:]]))


def counted(directory: Path) -> tuple[int, str]:
    """Deliveries and status of the one run in a directory."""
    [run] = directory.glob("small-*/run.json")
    told = json.loads(run.read_text(encoding="utf-8"))
    return int(told["messages"].get("delivered", 0)), str(told["status"])


def moved_clock(asked: argparse.Namespace) -> Tried:
    """Runs whose clocks are years ahead of the machine's, or have just begun: the same deliveries as without."""
    with tempfile.TemporaryDirectory(prefix="mqttlab-clock-") as above:
        place = kills.Place(Path(above))
        try:
            subprocess.run(["unshare", "--time", "--monotonic", "1", "true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return Tried(not_tried="no namespace of time can be made here (unshare --time)")
        found, offsets = Tried(), {"a decade on": DECADE_S, "just begun": 60 - int(time.monotonic())}
        for backend in ("sim", "live"):
            usual: tuple[int, str] | None = None
            for name, offset in [("as it is", 0), *offsets.items()]:
                runs = place.path / f"{backend}-{name.replace(' ', '-')}"
                words = ["unshare", "--time", "--monotonic", str(offset), "--boottime", str(offset), "--fork", *PROGRAM,
                         "run", f"{backend}.toml", "--runs", runs, "--no-html", "--catalog", "none"]
                done = subprocess.run([*map(str, words)], cwd=place.path, env=place.environment, capture_output=True,
                                      text=True, check=False, timeout=WITHIN_S)
                found.tried += 1
                # Whether a live run was valid is the machine's business.
                if done.returncode not in (0, 6) or "Traceback" in done.stderr:
                    found.faults.append(f"{backend}, {name}: {done.returncode}: {done.stderr[-300:]}")
                    continue
                told = counted(runs)
                usual = usual or told
                if told != usual:
                    found.faults.append(f"{backend}, {name}: {told} where it was {usual}")
                found.tried += 1
                again = subprocess.run([*words[:7], *PROGRAM, "list", "--runs", str(runs)], cwd=place.path,
                                       env=place.environment, capture_output=True, text=True, check=False)
                if again.returncode != 0 or "complete" not in again.stdout:
                    found.faults.append(f"list, {backend}, {name}: {again.returncode}: {again.stderr[-300:]}")
        return found


def limited(asked: argparse.Namespace, begin: Callable[[list[str], int], subprocess.CompletedProcess[str]]) -> Tried:
    """Commands within so many megabytes: each works, or says in one line what it needs."""
    found = Tried()
    with tempfile.TemporaryDirectory(prefix="mqttlab-limits-") as above:
        place = kills.Place(Path(above))
        given = [["check", "sim.toml"], ["run", "sim.toml", "--runs", str(place.runs), "--no-html"],
                 ["report", str(place.recording)], ["explain", str(place.recording)],
                 ["list", "--runs", str(place.recording.parent)]]
        for megabytes in MEGABYTES:
            for words in given:
                done = begin([*PROGRAM, *words], megabytes)
                found.tried += 1
                lines = done.stderr.splitlines()
                if "Traceback" in done.stderr or (done.returncode not in (0, 6) and len(lines) != 1):
                    found.faults.append(f"{words[0]} within {megabytes} MB: {done.returncode}: {done.stderr[-200:]}")
    return found


def addresses(asked: argparse.Namespace) -> Tried:
    """`ulimit -v`."""
    def begin(words: list[str], megabytes: int) -> subprocess.CompletedProcess[str]:
        size = megabytes * 10**6
        return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=WITHIN_S,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
    return limited(asked, begin)


def control_group(asked: argparse.Namespace) -> Tried:
    """`memory.max` of a control group. What the kernel ends for want of memory is no fault."""
    group: Path | None = asked.group
    if group is None or not os.access(group / "cgroup.procs", os.W_OK) or "memory" not in (
            group / "cgroup.subtree_control").read_text():
        return Tried(not_tried="`--group` names no control group of version 2 below which one with `memory.max` can be "
                     "made")
    own = group / f"mqttlab-{os.getpid()}"
    own.mkdir()
    (own / "memory.swap.max").write_text("0")

    def begin(words: list[str], megabytes: int) -> subprocess.CompletedProcess[str]:
        (own / "memory.max").write_text(str(megabytes * 10**6))
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=WITHIN_S,
                              preexec_fn=lambda: (own / "cgroup.procs").write_text("0"))
        if done.returncode == -9:
            return subprocess.CompletedProcess(words, 0, done.stdout, done.stderr)
        return done
    try:
        return limited(asked, begin)
    finally:
        own.rmdir()


KINDS = [
    Kind("moved clock", "the same deliveries", moved_clock),
    Kind("little memory: addresses", "works, or one line", addresses),
    Kind("kills", "every command ended by SIGKILL; nothing but results is left", killed),
    Kind("damaged recordings", "one answer, or one line", damaged),
    Kind("hostile scenarios", "one line with place and remedy", tests("test_wrong_scenarios", "test_bounds")),
    Kind("large scenarios", "no cost that grows as a square", tests("test_growth")),
    Kind("hostile strings", "nothing steers terminals, tables, databases",
         tests("test_hostile_strings", "test_foreign")),
    Kind("scripts in a browser", "no page runs one", tests("test_hostile_strings", chosen="script")),
    Kind("secrets", "in no byte that is written", tests("test_secrets", "test_secret_bytes")),
    Kind("full disk, rights, leftovers", "one line, nothing left", tests("test_disk", "test_scratch")),
    Kind("little memory: control group", "works, one line, or ended by the kernel", control_group),
    Kind("foreign messages", "counted, not held", tests("test_flood_live")),
    Kind("brokers that refuse", "the reason on the screen", tests("test_refusals_live")),
    Kind("the dashboard's doors", "closed to strangers, open to its user",
         tests("test_dashboard_access", "test_dashboard_uploads")),
    Kind("damaged captures, packets, plans", "no panic, no hang", fuzzed),
]


def table(results: Sequence[tuple[Kind, Tried]], asked: argparse.Namespace) -> str:
    """All kinds as Markdown."""
    lines = [f"`benches/hostile/run.py --kills {asked.kills} --mutations {asked.mutations} --seed {asked.seed}`, "
             f"{time.strftime('%d %B %Y', time.gmtime())}, {os.cpu_count()} processors. Where tests try a kind, a "
             "try is a test.", "", "| kind | expected | tried | failed |", "|---|---|---:|---:|"]
    for kind, tried in results:
        lines.append(f"| {kind.name} | {kind.what} | {tried.tried or 'not tried'} | {len(tried.faults)} |")
    notes = [*(f"- Not tried, {kind.name}: {tried.not_tried}." for kind, tried in results if tried.not_tried),
             *(f"- {kind.name}: {' '.join(fault.split())}" for kind, tried in results for fault in tried.faults)]
    return "\n".join([*lines, "", *notes]).rstrip() + "\n"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="of each command")
    parser.add_argument("--mutations", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", action="append", default=[], help="kinds with this word in their names")
    parser.add_argument("--but", action="append", default=[], help="none of these kinds")
    parser.add_argument("--group", type=Path, help="a control group of version 2 that may be written to")
    parser.add_argument("--out", type=Path, help="a Markdown file")
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    results, text = list[tuple[Kind, Tried]](), ""
    for kind in KINDS:
        wanted = not asked.only or any(word in kind.name for word in asked.only)
        if not wanted or any(word in kind.name for word in asked.but):
            continue
        try:
            results.append((kind, kind.perform(asked)))
        except Exception as error:
            # What nobody thought of is a fault, and the others are still to be tried.
            results.append((kind, Tried(1, [f"{type(error).__name__}: {error}"])))
        print(f"{kind.name}: {results[-1][1]}", flush=True)
        text = table(results, asked)
        if asked.out is not None:
            asked.out.write_text("# What was tried, and what failed\n\n" + text, encoding="utf-8")
    print(text)
    return 1 if any(tried.faults for _, tried in results) else 0


if __name__ == "__main__":
    sys.exit(main())
