#!/usr/bin/env python3
"""What mqttlab's commands cost by the size of a recording: processor time and peak memory, and how they grow.

    benches/commands/run.py                              10^3 to 10^6 packets
    benches/commands/run.py --packets 1e3 1e5 1e7        other sizes
    benches/commands/run.py --packets 5e7 --rounds 1 --most-mib 1024     exit status 1 where a command takes more memory
    benches/commands/run.py --before ../before           beside another checkout, interleaved
    benches/commands/run.py --out benches/commands/RESULTS.md

The other checkout's commands are run by its own `.venv`, where there is one (`benches/against/run.py COMMIT --keep
DIRECTORY --build-only` makes both), and so by its own engine. Recordings are simulated: 50 clients at 20 messages/s
each over lossy links, for as long as the packets take. Every command is a fresh process, whose user and system time
count; memory is the process's own peak. The least of the rounds is shown, because another program on the machine only
ever adds. Growth is the exponent between the two largest sizes: 1 means twice the time for twice the packets. Up to a
million packets the import reads what `export --pcapng` made, beside tshark with as many fields.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = """
name = "commands"
backend = "sim"
phases = {{ duration = "{duration_s:g} s", cool_down = "1 s" }}
hosts.clients = {{ count = 50 }}
[[networks]]
between = ["clients", "broker"]
link = "each"
up = {{ rate = "10 Mbit/s", delay = "5 ms" }}
down = {{ rate = "10 Mbit/s", delay = "5 ms", loss = "0.1 %" }}
[[groups]]
name = "both"
host = "clients"
count = 50
connect_over = "0 s"
publish = {{ topic = "t/{{client}}", payload = "64 B", rate = "20 /s", qos = 1 }}
subscribe = ["t/{{client}}"]
"""
# 1000 messages a second to the broker and from it, most of whose acknowledgements ride on what goes the other way.
PACKETS_PER_S = 2_000
TSHARK = ["-T", "fields", *(word for name in (
    "frame.time_epoch", "ip.src", "ip.dst", "tcp.srcport", "tcp.dstport", "tcp.seq", "tcp.ack", "tcp.flags", "tcp.len",
    "tcp.analysis.retransmission", "tcp.analysis.ack_rtt", "mqtt.msgtype", "mqtt.qos", "mqtt.topic", "mqtt.msgid")
    for word in ("-e", name))]
# Making a capture takes a minute or two for each million frames.
CAPTURED_MAX = 1_500_000
# A parent with little memory: until it calls exec, a child counts its parent's as its own.
MEASURE = """
import json, os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ,
                       file_actions=[(os.POSIX_SPAWN_OPEN, n, "/dev/null", os.O_WRONLY, 0) for n in (1, 2)])
_, status, used = os.wait4(child, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


@dataclass
class Cost:
    """Of one command at one size: the least of all rounds."""

    cpu_s: float = math.inf
    peak_mib: float = math.inf
    failed: bool = False


@dataclass
class Checkout:
    """One side of the comparison, and what its commands cost, by command and packets."""

    place: Path
    costs: dict[tuple[str, int], Cost] = field(default_factory=dict)
    compiled: Path | None = None
    """Where Python keeps what it has compiled; beside the modules when left out."""

    @property
    def programs(self) -> Path:
        """Where its Python and its engine are."""
        own = self.place / ".venv" / "bin"
        return own if (own / "mqttlab-engine").is_file() else Path(sys.executable).parent

    @property
    def demo(self) -> Path:
        """Its own demonstration: one checkout's scenario may have fields that the other does not know."""
        return self.place / "scenarios" / "demo.toml"

    def environment(self) -> dict[str, str]:
        """What its commands are run with. Modules are compiled once, as on a user's machine, whatever is set here."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        if self.compiled is not None:
            kept["PYTHONPYCACHEPREFIX"] = str(self.compiled)
        return {**kept, "PYTHONPATH": str(self.place / "python")}

    def mqttlab(self, *words: str | Path) -> list[str]:
        """The command line of one of its commands."""
        return [str(self.programs / "python"), "-m", "mqttlab", *map(str, words)]

    def perform(self, *words: str | Path) -> None:
        """Run one of its commands without measuring it."""
        subprocess.run(self.mqttlab(*words), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env=self.environment())

    def take(self, command: str, packets: int, words: list[str], given: Path | None = None) -> None:
        """Run a command once, its standard input from a file, and keep what it cost."""
        with (given or Path(os.devnull)).open("rb") as read:
            done = subprocess.run([sys.executable, "-I", "-S", "-c", MEASURE, *words], env=self.environment(),
                                  text=True, check=True, stdin=read, stdout=subprocess.PIPE)
        code, cpu_s, peak_mib = json.loads(done.stdout)
        self.note(command, packets, cpu_s, peak_mib, failed=code not in (0, 6))

    def note(self, command: str, packets: int, cpu_s: float, peak_mib: float = 0, *, failed: bool = False) -> None:
        """Keep what a command cost, if it is the least so far."""
        cost = self.costs.setdefault((command, packets), Cost())
        cost.cpu_s, cost.peak_mib = min(cost.cpu_s, cpu_s), min(cost.peak_mib, peak_mib)
        cost.failed |= failed


def simulate(packets: float, scratch: Path) -> tuple[Path, int]:
    """A recording with about so many packets, and how many it has."""
    run = scratch / f"{packets:g}"
    plan = compile_plan(parse(SCENARIO.format(duration_s=max(0.05, packets / PACKETS_PER_S))))
    outcome = perform(Job(plan, run), lambda line: None)
    assert outcome.verdict == "complete", outcome
    return run, pl.scan_parquet(run / "packets.parquet").select(pl.len()).collect().item()


def measure(side: Checkout, run: Path, packets: int, capture: Path | None, scratch: Path) -> None:
    """Run every command once on a recording."""
    out = scratch / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    commands = {
        "report": side.mqttlab("report", run, "--html", out / "page.html"),
        "compare": side.mqttlab("compare", run, run),
        "explain --slowest 3": side.mqttlab("explain", run, "--slowest", "3"),
        "export --parquet": side.mqttlab("export", run, "--parquet", out / "parquet"),
    }
    tshark = shutil.which("tshark")
    if capture is not None:
        commands["import capture"] = side.mqttlab(
            "import", "capture", capture, "--no-html", "--output", out / "imported")
        if tshark:
            commands["tshark, same capture"] = [tshark, "-r", str(capture), *TSHARK]
    for command, words in commands.items():
        side.take(command, packets, words)


def small(side: Checkout) -> None:
    """Run once what needs no recording."""
    with tempfile.TemporaryDirectory() as empty:
        side.take("--help", 0, side.mqttlab("--help"))
        side.take("list", 0, side.mqttlab("list", "--runs", empty))
        side.take("check", 0, side.mqttlab("check", ROOT / "scenarios" / "demo.toml"))
        side.take("run, small, with page", 0, side.mqttlab(
            "run", ROOT / "scenarios" / "demo.toml", "--backend", "sim", "--set", "phases.duration=5 s", "--runs",
            empty))


def table(sides: list[Checkout], sizes: list[int]) -> list[str]:
    """The results as Markdown."""
    columns = [f"{size:,} packets" for size in sizes]
    names = ["now"] if len(sides) == 1 else ["before", "now"]
    lines = ["| command | | " + " | ".join(columns) + " | growth of time | of memory |",
             "|---|---|" + "---:|" * (len(columns) + 2)]
    for command in dict.fromkeys(command for command, size in sides[-1].costs if size):
        for name, side in zip(names, sides, strict=True):
            taken = [side.costs.get((command, size)) for size in sizes]
            cells = ["–" if cost is None else "failed" if cost.failed else
                     f"{cost.cpu_s:.2f} s, {cost.peak_mib:.0f} MiB" for cost in taken]
            lines.append(f"| {command} | {name} | " + " | ".join(cells) + f" | {growth(taken, sizes, 'cpu_s')} | "
                         f"{growth(taken, sizes, 'peak_mib')} |")
    lines += ["", "| command | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for command in dict.fromkeys(command for command, size in sides[-1].costs if not size):
        costs = [side.costs[command, 0] for side in sides]
        lines.append(f"| {command} | " + " | ".join(
            f"{cost.cpu_s:.3f} s, {cost.peak_mib:.0f} MiB" for cost in costs) + " |")
    return lines


def growth(costs: list[Cost | None], sizes: list[int], what: str) -> str:
    """The exponent between the two largest sizes."""
    known = [(size, getattr(cost, what)) for cost, size in zip(costs, sizes, strict=True) if cost and not cost.failed]
    if len(known) < 2:
        return "–"
    (size, value), (larger, its) = known[-2:]
    return f"{math.log(its / value) / math.log(larger / size):.2f}"


def main() -> None:
    """Measure, print, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=float, nargs="+", default=[1e3, 1e4, 1e5, 1e6])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path, help="another checkout")
    parser.add_argument("--most-mib", type=float, default=math.inf, help="the most memory that a command may take")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    sides = [*([Checkout(options.before)] if options.before else []), Checkout(ROOT)]
    sizes = []
    with tempfile.TemporaryDirectory(prefix="mqttlab-commands-") as directory:
        scratch = Path(directory)
        for number, side in enumerate(sides):
            side.compiled = scratch / f"compiled-{number}"
            # What is compiled then is not counted.
            small(side)
            side.costs.clear()
        for _ in range(options.rounds):
            for side in sides:
                small(side)
        for wanted in options.packets:
            run, packets = simulate(wanted, scratch)
            sizes.append(packets)
            capture = scratch / "run.pcapng" if packets <= CAPTURED_MAX else None
            if capture is not None:
                Checkout(ROOT).perform("export", run, "--pcapng", capture)
            for _ in range(options.rounds):
                for side in sides:
                    measure(side, run, packets, capture, scratch)
            print(*table(sides, sizes), sep="\n", flush=True)
            shutil.rmtree(run)
    said = [f"{platform.machine()}, {os.cpu_count()} processors, {options.rounds} rounds, the least of each", "",
            *table(sides, sizes)]
    if options.out:
        options.out.write_text("\n".join(said) + "\n", encoding="utf-8")
    above = [f"{command} took {cost.peak_mib:.0f} MiB" + (" and failed" if cost.failed else "")
             for (command, _), cost in sides[-1].costs.items()
             if not command.startswith("tshark") and (cost.failed or cost.peak_mib > options.most_mib)]
    sys.exit("\n".join(above) or None)


if __name__ == "__main__":
    main()
