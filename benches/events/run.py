#!/usr/bin/env python3
"""What events of a scenario cost before anything runs: processor time of `mqttlab check`, and how it grows.

    benches/events/run.py                                   1,000 to 32,000 events
    benches/events/run.py --events 1000 100000              other sizes
    benches/events/run.py --out benches/events/RESULTS.md

Each kind is a way in which many events have to do with each other: one line that takes place again and again, events
that wait for each other in a row, events that lie over each other. Every check is a fresh process, whose user and
system time count, the least of the rounds. Growth is the exponent between the two largest sizes: 1 means twice the
time for twice the events, 2 four times.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

SCENARIO = """
name = "events"
[phases]
warm_up = "0 s"
duration = "{seconds} s"
cool_down = "10 s"
[[networks]]
name = "wan"
between = ["field", "broker"]
up = {{ rate = "1 Mbit/s", delay = "20 ms" }}
down = {{ rate = "1 Mbit/s", delay = "20 ms" }}
link = "each"
[[groups]]
name = "pub"
host = "field"
count = 2
publish = {{ topic = "gps/{{client}}", payload = "30 B", interval = "100 ms" }}
"""
RAIN = 'network = "wan"\nloss = "1 %"'
FASTER = 'group = "pub"\npublish = { interval = "50 ms" }'
MUTE = 'group = "pub"\ndo = "stop-publishing"'


def again(what: str) -> Callable[[int], str]:
    """One line that takes place so often."""
    return lambda count: f'[[events]]\nat = "0 s"\nevery = "1 ms"\ncount = {count}\n{what}\n'


def in_a_row(what: str) -> Callable[[int], str]:
    """Each begins with the one before it."""
    return lambda count: "".join(
        f'[[events]]\nname = "e{number}"\n' + (f'when = "e{number - 1}"\n' if number else 'at = "0 s"\n') + what + "\n"
        for number in range(count))


KINDS: dict[str, Callable[[int], str]] = {
    "a link, every 1 ms": again(RAIN),
    "a link for 500 us, every 1 ms": again(f'{RAIN}\nfor = "500 us"'),
    "a group's rate, every 1 ms": again(FASTER),
    "a link, in a row": in_a_row(RAIN),
    "a link for 1 s, in a row and over each other": in_a_row(f'{RAIN}\nfor = "1 s"'),
    "a group's rate, in a row": in_a_row(FASTER),
    "a group falls silent, in a row": in_a_row(MUTE),
}


def cpu_s(path: Path) -> float:
    """Of one check."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-m", "mqttlab", "check", str(path)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{path}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def table(sizes: list[int], rounds: int, most: dict[str, int]) -> str:
    """The results in Markdown."""
    lines = [f"| kind | {' | '.join(f'{size:,}' for size in sizes)} | growth |", "|---|" + "---|" * (len(sizes) + 1)]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "events.toml"
        for kind, made in KINDS.items():
            taken = []
            for size in (size for size in sizes if size <= most.get(kind, size)):
                path.write_text(SCENARIO.format(seconds=size // 1000 + 1) + made(size), encoding="utf-8")
                taken.append(min(cpu_s(path) for _ in range(rounds)))
            growth = math.log(taken[-1] / taken[-2]) / math.log(sizes[len(taken) - 1] / sizes[len(taken) - 2])
            cells = [f"{one:.2f}" for one in taken] + ["–"] * (len(sizes) - len(taken))
            lines.append(f"| {kind} | {' | '.join(cells)} | {growth:.1f} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, nargs="+", default=[1000, 2000, 8000, 32_000], help="how many")
    parser.add_argument("--rounds", type=int, default=2, help="of which the least counts")
    parser.add_argument("--out", type=Path, help="a file for the table")
    given = parser.parse_args()
    # What lies over each other has states as long as it is deep; 8,000 of these are more than anybody writes.
    text = table(given.events, given.rounds, {"a group falls silent, in a row": 8000})
    if given.out is not None:
        given.out.write_text("# What events cost before anything runs\n\nSeconds of processor time of `mqttlab check`, "
                             f"by the number of events; made by `benches/events/run.py`.\n\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
