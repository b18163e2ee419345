#!/usr/bin/env python3
"""What a user waits for, row by row beside what is aimed at: the table of docs/explanation/performance.md.

    benches/commands/table.py                              every row, three rounds
    benches/commands/table.py --part small import          only these parts; the other rows stay as they were
    benches/commands/table.py --before ../before           beside another checkout, interleaved
    benches/commands/table.py --mqttwrk PATH               for the load: `cargo install mqttwrk`
    benches/commands/table.py --write                      put the table into docs/explanation/performance.md

The parts are small (what needs no recording, or one of a moment), import (captures of 250 kB and 51 MB, beside tshark),
large (five million packets), many (a hundred thousand clients, 65,000 hosts) and load (back-to-back messages through a
Mosquitto on loopback, the engine to its complete recording, beside mqttwrk). A row is the least processor time (user +
system, children included) and the least peak of memory of the rounds, because another program on the machine only ever
adds. The other checkout is asked for a recording of five million packets once, not in each round. Figures are kept in
results.json beside this, with the load of the machine when a row was measured.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from run import PACKETS_PER_S, ROOT, SCENARIO, TSHARK, Checkout

RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "explanation" / "performance.md"
BEGIN, END = "<!-- table.py writes from here -->", "<!-- to here -->"
LARGE = 5_000_000
MESSAGES = 100_000
# So many packets make a capture of 250 kB, and of 51 MB.
CAPTURES = {"250 kB": 150, "51 MB": 187_000}
MANY = """
name = "many"
backend = "sim"
phases = { duration = "5 s", cool_down = "1 s" }
hosts.clients = { count = HOSTS }
[[networks]]
between = ["clients", "broker"]
up = { rate = "1 Gbit/s", delay = "5 ms" }
down = { rate = "1 Gbit/s", delay = "5 ms" }
[[groups]]
name = "both"
host = "clients"
count = CLIENTS
publish = { topic = "t/{client}", payload = "64 B", rate = "0.1 /s" }
subscribe = ["t/{client}"]
"""
LOAD = """
name = "load"
backend = "live"
network = "external"
phases = { duration = "3 s", cool_down = "1 s" }
broker = { kind = "external", address = "127.0.0.1", port = PORT }
mqtt = { max_inflight = 100 }
[[groups]]
name = "subscriber"
host = "clients"
nagle = false
subscribe = [{ filter = "load/0", qos = QOS }]
[[groups]]
name = "publisher"
host = "clients"
nagle = false
publish = { topic = "load/0", payload = "64 B", qos = QOS, arrival = "back-to-back", messages = MESSAGES }
"""


@dataclass(frozen=True)
class Row:
    """A row of the table, and what is aimed at."""

    name: str
    aim: str
    cpu_s: float = math.inf
    mib: float = math.inf
    of: str | None = None
    """The row that the time is divided by, before it is compared with ``ratio``; or the other way round."""
    ratio: float = math.inf
    at_least: bool = False


ROWS = [
    Row("`--help`", "0.15 s", 0.15),
    Row("`list`", "0.15 s", 0.15),
    Row("`check`", "0.15 s", 0.15),
    Row("`run` of a small simulation, with page", "0.8 s", 0.8),
    Row("`import capture` of 250 kB", "0.8 s", 0.8),
    Row("`import capture` of 51 MB", "1.5 s", 1.5),
    Row("the engine's import of 51 MB", "30 × tshark", of="tshark, 51 MB", ratio=30, at_least=True),
    Row("tshark, 51 MB", ""),
    Row("`report` on 5 M packets", "6 s, 500 MB", 6, 477),
    Row("`explain --slowest 3`, same", "2 s, 300 MB", 2, 286),
    Row("`export --csv`, same", "500 MB", mib=477),
    Row("`compare` of two, same", "2 s, 300 MB", 2, 286),
    Row("plan of 100,000 clients", "2 s, 20 MB of plan", 2),
    Row("`check` of 65,000 hosts", "5 s", 5),
    *(row for qos, ratio in ((0, 0.22), (1, 0.2)) for row in (
        Row(f"load 1→1 at QoS {qos}, {MESSAGES:,} messages", f"{ratio} × mqttwrk", of=f"mqttwrk, QoS {qos}",
            ratio=ratio),
        Row(f"mqttwrk, QoS {qos}", ""))),
]
Results = dict[str, dict[str, dict[str, Any]]]


def scenario(text: str, place: Path, **values: object) -> Path:
    """A scenario file with some words replaced."""
    for name, value in values.items():
        text = text.replace(name, str(value))
    place.write_text(text, encoding="utf-8")
    return place


def recording(side: Checkout, packets: float, scratch: Path) -> Path:
    """A simulated recording of about so many packets, made by this checkout."""
    runs = scratch / f"runs-{packets:g}"
    text = SCENARIO.format(duration_s=max(0.05, packets / PACKETS_PER_S))
    side.perform("run", scenario(text, scratch / f"{packets:g}.toml"), "--no-html", "--runs", runs)
    return next(place.parent for place in runs.glob("*/plan.json"))


def small(sides: list[Checkout], rounds: int, scratch: Path) -> None:
    """What needs no recording, or one of a moment."""
    for number in range(rounds):
        for side in sides:
            demo = side.demo
            empty = Path(tempfile.mkdtemp(dir=scratch))
            side.take("`--help`", number, side.mqttlab("--help"))
            side.take("`list`", number, side.mqttlab("list", "--runs", empty))
            side.take("`check`", number, side.mqttlab("check", demo))
            side.take("`run` of a small simulation, with page", number, side.mqttlab(
                "run", demo, "--backend", "sim", "--set", "phases.duration=5 s", "--runs", empty))


def imports(sides: list[Checkout], rounds: int, scratch: Path) -> None:
    """Captures of two sizes: the command, of the larger the engine alone, and tshark."""
    tshark = shutil.which("tshark")
    for name, packets in CAPTURES.items():
        capture = scratch / "run.pcapng"
        sides[-1].perform("export", recording(sides[-1], packets, scratch), "--pcapng", capture)
        print(f"{name}: {capture.stat().st_size:,} bytes", file=sys.stderr)
        for number in range(rounds):
            for side in sides:
                out = Path(tempfile.mkdtemp(dir=scratch))
                side.take(f"`import capture` of {name}", number, side.mqttlab(
                    "import", "capture", capture, "--no-html", "--output", out / "command"))
                if packets > 10_000:
                    engine = [str(side.programs / "mqttlab-engine"), "import", "capture", "--output"]
                    side.take(f"the engine's import of {name}", number, [*engine, str(out / "engine"), str(capture)])
                shutil.rmtree(out)
            if tshark and packets > 10_000:
                sides[-1].take(f"tshark, {name}", number, [tshark, "-r", str(capture), *TSHARK])


def large(sides: list[Checkout], rounds: int, scratch: Path) -> None:
    """Five million packets."""
    for number, side in enumerate(sides):
        side_scratch = scratch / f"large-{number}"
        side_scratch.mkdir()
        run = recording(side, LARGE, side_scratch)
        for turn in range(rounds if side is sides[-1] else 1):
            out = Path(tempfile.mkdtemp(dir=scratch))
            for row, words in (
                ("`report` on 5 M packets", ("report", run, "--html", out / "page.html")),
                ("`explain --slowest 3`, same", ("explain", run, "--slowest", "3")),
                ("`export --csv`, same", ("export", run, "--csv", out / "csv")),
                ("`compare` of two, same", ("compare", run, run)),
            ):
                side.take(row, turn, side.mqttlab(*words))
            shutil.rmtree(out)
        shutil.rmtree(side_scratch)


def many(sides: list[Checkout], rounds: int, scratch: Path) -> None:
    """A plan of many clients, and a check of many hosts."""
    clients = scenario(MANY, scratch / "clients.toml", HOSTS=1, CLIENTS=100_000)
    hosts = scenario(MANY, scratch / "hosts.toml", HOSTS=65_000, CLIENTS=65_000)
    for number in range(rounds):
        # A checkout that takes minutes for it is not asked: before commit 59fe6ab there was no answer in time.
        side = sides[-1]
        side.take("plan of 100,000 clients", number, side.mqttlab("check", clients, "--plan"))
        side.take("`check` of 65,000 hosts", number, side.mqttlab("check", hosts))


def load(sides: list[Checkout], rounds: int, scratch: Path, mqttwrk: str | None) -> None:
    """Back-to-back messages from one client to another: the engine alone, from its plan to the complete recording."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("load_bench", ROOT / "benches" / "load" / "run.py")
    assert spec is not None and spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    sys.modules["load_bench"] = bench
    spec.loader.exec_module(bench)
    for qos in (0, 1):
        with bench.servers() as broker:
            toml = scenario(LOAD, scratch / "load.toml", PORT=broker.ports["tcp"], QOS=qos, MESSAGES=MESSAGES)
            for number in range(rounds):
                for side in sides:
                    out = Path(tempfile.mkdtemp(dir=scratch)) / "run"
                    words, plan = engine_run(side, toml, out)
                    side.take(f"load 1→1 at QoS {qos}, {MESSAGES:,} messages", number, words, plan)
                if mqttwrk:
                    case = bench.Case(transport="tcp", port=broker.ports["tcp"], pairs=1, qos=qos, each=MESSAGES,
                                      authority=broker.authority)
                    delivered, cpu_s = bench.run_mqttwrk(mqttwrk)(case)
                    assert delivered == MESSAGES, f"mqttwrk has delivered {delivered}"
                    sides[-1].note(f"mqttwrk, QoS {qos}", number, cpu_s)


def engine_run(side: Checkout, toml: Path, out: Path) -> tuple[list[str], Path]:
    """The command line of an engine that runs a scenario, and its plan; a plan of before has its directory in it."""
    said = subprocess.run(side.mqttlab("check", toml, "--plan"), env=side.environment(), check=True,
                          stdout=subprocess.PIPE).stdout
    plan = json.loads(said)
    words = [str(side.programs / "mqttlab-engine"), "run"]
    if "directory" in plan:
        plan["directory"] = str(out)
    else:
        words += ["--directory", str(out)]
    place = out.with_suffix(".json")
    place.write_text(json.dumps(plan), encoding="utf-8")
    return words, place


def kept(sides: list[Checkout], results: Results) -> None:
    """Put the least of all rounds into the results, with what the machine did beside."""
    for which, side in zip(["now"] if len(sides) == 1 else ["before", "now"], sides, strict=True):
        for row in dict.fromkeys(row for row, _ in side.costs):
            costs = [cost for (name, _), cost in side.costs.items() if name == row]
            least = {"cpu_s": round(min(cost.cpu_s for cost in costs), 3),
                     "mib": round(min(cost.peak_mib for cost in costs)), "failed": any(cost.failed for cost in costs)}
            results.setdefault(row, {})[which] = {**least, "rounds": len(costs), "load": round(os.getloadavg()[0], 1)}


def cell(row: Row, results: Results, which: str) -> str:
    """What was measured of a row."""
    found = results.get(row.name, {}).get(which)
    if found is None:
        return "–"
    if found["failed"]:
        return f"failed after {found['cpu_s']:.2f} s"
    words = f"{found['cpu_s']:.2f} s" + (f", {found['mib']:.0f} MiB" if found["mib"] else "")
    ratio = against(row, results, which)
    return words if ratio is None else f"{words}; {ratio:.2f} ×" if ratio < 1 else f"{words}; {ratio:.1f} ×"


def against(row: Row, results: Results, which: str) -> float | None:
    """The row's time relative to its peer's, or the peer's to it; the peer is measured once for both checkouts.

    What was measured on another day has its own ratio.
    """
    peer = results.get(row.of or "", {}).get("now")
    found = results.get(row.name, {}).get(which)
    if found is not None and "ratio" in found:
        return float(found["ratio"])
    if peer is None or found is None:
        return None
    return float(peer["cpu_s"] / found["cpu_s"] if row.at_least else found["cpu_s"] / peer["cpu_s"])


def reached(row: Row, results: Results) -> str:
    """Whether the aim is reached: yes, no, or nothing where there is none or nothing was measured."""
    found = results.get(row.name, {}).get("now")
    if found is None or not row.aim:
        return ""
    holds = not found["failed"] and found["cpu_s"] <= row.cpu_s and found["mib"] <= row.mib
    if row.of is not None:
        ratio = against(row, results, "now")
        if ratio is None:
            return ""
        holds &= ratio >= row.ratio if row.at_least else ratio <= row.ratio
    return "yes" if holds else "no"


def table(results: Results, which: tuple[str, ...] = ("now",)) -> str:
    """All rows as Markdown."""
    lines = [f"| | {' | '.join(which)} | load of the machine | aim | reached |",
             f"|---|{'---:|' * len(which)}---:|---:|---|"]
    for row in ROWS:
        busy = results.get(row.name, {}).get("now", {}).get("load", "–")
        cells = [row.name, *(cell(row, results, each) for each in which), busy, row.aim, reached(row, results)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, keep, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="*", choices=["small", "import", "large", "many", "load"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path, help="another checkout, built")
    parser.add_argument("--mqttwrk", default=shutil.which("mqttwrk"), metavar="PATH")
    parser.add_argument("--write", action="store_true", help="put the table into docs/explanation/performance.md")
    options = parser.parse_args()
    parts = ["small", "import", "many", "load", "large"] if options.part is None else options.part
    results: Results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    places = [*([options.before.resolve()] if options.before else []), ROOT]
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="mqttlab-table-") as directory:
            scratch = Path(directory)
            sides = [Checkout(place, compiled=scratch / f"compiled-{n}") for n, place in enumerate(places)]
            for side in sides:
                side.perform("--help")
                side.perform("run", side.demo, "--backend", "sim", "--set",
                             "phases.duration=1 s", "--runs", scratch / "first")
            if part == "load":
                load(sides, options.rounds, scratch, options.mqttwrk)
            else:
                {"small": small, "import": imports, "large": large, "many": many}[part](sides, options.rounds, scratch)
            kept(sides, results)
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{part}: done", file=sys.stderr)
    print(table(results, ("before", "now") if options.before else ("now",)))
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        between = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
        PAGE.write_text(between.sub(lambda _: f"{BEGIN}\n\n{table(results)}\n\n{END}", page), encoding="utf-8")


if __name__ == "__main__":
    main()
