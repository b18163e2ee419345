#!/usr/bin/env python3
"""This checkout beside another commit of it: commands, and load, simulator and ns-3 benches, round by round in turn.

    benches/against/run.py COMMIT [--rounds 3] [--part simulator] [--keep DIRECTORY] [--out FILE]

The commit is checked out and built beside this one, and each of its benches is the one that it came with: a plan of
then is nothing for the engine of now. Rounds alternate between the two, so that a machine that grows slower is unfair
to both. Of each cell of the benches' tables that is a number the medians over the rounds are printed beside each other.
Both are built with fat LTO and one codegen unit, as wheels are.

The part `command` is what a user waits for: `mqttlab run` of the simulator bench's scenario, with its report, as
processor time of the command with all its children. The bench of the simulator is of the engine alone, and what moved
from Python into the engine makes that dearer and the command cheaper.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS: dict[str, list[str]] = {
    "command": [],
    "simulator": ["benches/simulator/run.py", "--clients", "20", "200", "2000", "--seconds", "5"],
    "load": ["benches/load/run.py", "--rounds", "1"],
    "ns3": ["benches/ns3/run.py", "--rounds", "1", "--shorten", "10"],
}
# What is recorded, and a link for each client, as commits of today and of before say it.
EACH = ('link = "each"', "shared = false")
RECORDED = {"CPU s, frames recorded": (('detail = "full"', EACH[0]), ("packets = true", EACH[1])),
            "CPU s, frames not recorded": (('detail = "messages"', EACH[0]), ("packets = false", EACH[1]))}
# Clients and simulated seconds.
COMMANDS = ((20, 60), (200, 60), (2000, 25))
SCENARIO = """
name = "scale"
backend = "sim"
phases = {{ duration = "{seconds} s", cool_down = "1 s" }}
hosts.clients = {{ count = {clients} }}
sim.client_wake_up = "0 s"
broker = {{ nagle = false, service = {{ per_packet = "0 s", per_copy = "0 s" }} }}
trunk.up = {{ rate = "10 Gbit/s", delay = "1 ms", overhead = "38 B" }}
trunk.down = {{ rate = "10 Gbit/s", delay = "1 ms", overhead = "38 B" }}
recording.{recorded}
[[networks]]
between = ["clients", "broker"]
{link}
up = {{ rate = "100 Mbit/s", delay = "1 ms", overhead = "38 B" }}
down = {{ rate = "100 Mbit/s", delay = "1 ms", overhead = "38 B" }}
[[groups]]
name = "both"
host = "clients"
count = {clients}
nagle = false
connect_over = "1 s"
publish = {{ topic = "t/{{client}}", payload = "64 B", rate = "1 /s" }}
subscribe = ["t/{{client}}"]
"""
# The columns that say which case a row is, and what it was where a bench of then had no such column. Of other benches
# it is the first.
KEYS = {"load": {"transport": "tcp", "pairs": "", "QoS": "", "tool": ""}}
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
Figures = dict[tuple[str, str, str], list[float]]


def check_out(commit: str, directory: Path) -> Path:
    """The commit in a working tree of its own, built; the Python beside its engine."""
    tree = directory / "tree"
    if not tree.is_dir():
        subprocess.run(["git", "worktree", "add", "--detach", tree, commit], cwd=ROOT, check=True)
    python = tree / ".venv" / "bin" / "python"
    if not python.is_file():
        venv.create(tree / ".venv")
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        # Its own package before the libraries that are installed here.
        paths = tree / ".venv" / "lib" / version / "site-packages" / "beside.pth"
        paths.write_text(f"{tree / 'python'}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    build(tree, python.parent)
    return python


def build(tree: Path, programs: Path) -> None:
    """The engine, beside the Python that runs it, and the program of the load bench."""
    cargo = ["cargo", "build", "--release", "--locked", "--quiet"]
    # As wheels are built, whatever the profile of each commit says: some had that for every build, others for wheels.
    environment = {**os.environ, "CARGO_PROFILE_RELEASE_LTO": "fat", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "1"}
    subprocess.run([*cargo, "--package", "mqttlab-engine"], cwd=tree, check=True, env=environment)
    subprocess.run([*cargo, "--package", "mqttlab-live", "--example", "load"], cwd=tree, check=True, env=environment)
    asked = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    answer = subprocess.run(asked, cwd=tree, check=True, capture_output=True, text=True).stdout
    target = Path(json.loads(answer)["target_directory"])
    shutil.copy2(target / "release" / "mqttlab-engine", programs / "mqttlab-engine")


def measure(part: str, python: Path, tree: Path, figures: Figures) -> None:
    """One round of a bench: the numbers of its tables, by case and column."""
    if part == "command":
        run_commands(python, figures)
        return
    done = subprocess.run([python, *PARTS[part]], cwd=tree, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{part} of {tree} ended with {done.returncode}: {done.stderr[-800:]}", file=sys.stderr)
    read(part, done.stdout, figures)


def run_commands(python: Path, figures: Figures) -> None:
    """One round of whole commands: processor seconds of each with its children."""
    for clients, seconds in COMMANDS:
        for column, fields in RECORDED.items():
            # Each checkout knows one way to say it.
            cost = next((cost for said in fields if (cost := run_command(python, clients, seconds, *said))), None)
            if cost is not None:
                figures["command", f"mqttlab run, {clients} clients, {seconds} s", column].append(cost)


def run_command(python: Path, clients: int, seconds: int, recorded: str, link: str) -> float | None:
    """Processor seconds of one `mqttlab run` with its children; nothing, and why, where it failed."""
    with tempfile.TemporaryDirectory(prefix="mqttlab-against-") as scratch:
        scenario = Path(scratch) / "scale.toml"
        text = SCENARIO.format(clients=clients, seconds=seconds, recorded=recorded, link=link)
        scenario.write_text(text, encoding="utf-8")
        command = [python, "-m", "mqttlab", "run", scenario, "--runs", Path(scratch) / "runs"]
        with (Path(scratch) / "said").open("w+b") as said:
            process = subprocess.Popen(command, cwd=scratch, stdout=said, stderr=said)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode == 0:
                return used.ru_utime + used.ru_stime
            said.seek(0)
            print(f"{command} ended with {process.returncode}: {said.read()[-300:]!r}", file=sys.stderr)
    return None


def read(part: str, said: str, figures: Figures) -> None:
    """Take the numbers out of a bench's tables."""
    header: list[str] = []
    for line in said.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            header = []
        elif not header:
            # Two columns of one name are two figures.
            header = [f"{name} ({cells[:place].count(name) + 1})" if name in cells[:place] else name
                      for place, name in enumerate(cells)]
        elif not set("".join(cells)) <= set("-: "):
            row = dict(zip(header, cells, strict=False))
            keys = KEYS.get(part, {header[0]: ""})
            case = ", ".join(row.get(name, otherwise) for name, otherwise in keys.items())
            for name, cell in row.items():
                if name not in keys and (found := NUMBER.match(cell)):
                    figures[part, case, name].append(float(found.group()))


def table(before: Figures, after: Figures) -> str:
    """Medians beside each other, as Markdown."""
    lines = ["| bench | case | figure | before | after | after / before |", "|---|---|---|---:|---:|---:|"]
    for key in after:
        if key in before:
            old, new = statistics.median(before[key]), statistics.median(after[key])
            ratio = f"{new / old:.2f}" if old else ""
            lines.append(f"| {' | '.join(key)} | {old:g} | {new:g} | {ratio} |")
    return "\n".join(lines)


def main() -> None:
    """Build both, measure in turn, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", choices=list(PARTS), action="append", help="only this bench; repeatable")
    parser.add_argument("--keep", type=Path, metavar="DIRECTORY", help="where the other checkout is, and stays")
    parser.add_argument("--build-only", action="store_true", help="build both, and measure another time")
    parser.add_argument("--out", type=Path, help="write the table here, too")
    options = parser.parse_args()
    directory = options.keep or Path(tempfile.mkdtemp(prefix="mqttlab-against-"))
    directory.mkdir(parents=True, exist_ok=True)
    try:
        other = check_out(options.commit, directory)
        build(ROOT, Path(sys.executable).parent)
        before, after = defaultdict[tuple[str, str, str], list[float]](list), defaultdict(list)
        for part in () if options.build_only else options.part or PARTS:
            for round_ in range(options.rounds):
                measure(part, other, directory / "tree", before)
                measure(part, Path(sys.executable), ROOT, after)
                print(f"{part}: round {round_ + 1} of {options.rounds}", file=sys.stderr)
    finally:
        if options.keep is None:
            subprocess.run(["git", "worktree", "remove", "--force", directory / "tree"], cwd=ROOT, check=False)
            shutil.rmtree(directory, ignore_errors=True)
    text = table(before, after)
    print(text)
    if options.out is not None and not options.build_only:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
