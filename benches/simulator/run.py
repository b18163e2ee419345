#!/usr/bin/env python3
"""What a simulation costs: from 20 to 10 000 clients on Ethernet, each publishing and receiving a message a second.

    benches/simulator/run.py [--seconds 20] [--clients 20 200 2000 10000] [--html FILE]
    benches/simulator/run.py --growth [--rounds 3]

For each number of clients, with every frame recorded and without: processor seconds of the engine per simulated second,
the same per link crossed (an event of the network), and memory per client while it measures.

`--growth` has messages, clients and links grow one at a time, a hundredfold each, while the others stay. The exponent
is the slope of a straight line through the logarithms: 0 is a cost that stays, 1 one that grows alike.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from mqttlab.engine import engine_path
from mqttlab.runs import Job
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values


@dataclass(frozen=True)
class Load:
    """What is simulated: clients on hosts with a cable each, a message a second of each client or another rate."""

    clients: int
    seconds: float
    packets: bool
    hosts: int = 0
    """As many as clients, in one group, when left out; else each host has a group of its own."""
    per_s: float = 1.0


def job(load: Load, directory: Path) -> Job:
    """Clients on cables of their own to a switch, and the switch's to the broker."""
    cable = {"rate": "100 Mbit/s", "delay": "1 ms", "overhead": "38 B"}
    trunk = {"rate": "10 Gbit/s", "delay": "1 ms", "overhead": "38 B"}
    def group(name: str, host: str, count: int) -> dict[str, object]:
        # A topic for each client, so that as many messages arrive as are published.
        topic = f"{name}/{{client}}"
        return {"name": name, "host": host, "count": count, "nagle": False, "connect_over": "1 s",
                "publish": {"topic": topic, "payload": "64 B", "rate": f"{load.per_s} /s"}, "subscribe": [topic]}

    if load.hosts:
        names = [f"site{number}" for number in range(load.hosts)]
        hosts: dict[str, object] = {name: {} for name in names}
        networks = [{"between": [name, "broker"], "up": cable, "down": cable} for name in names]
        groups = [group(name, name, load.clients // load.hosts) for name in names]
    else:
        hosts = {"clients": {"count": load.clients}}
        networks = [{"between": ["clients", "broker"], "link": "each", "up": cable, "down": cable}]
        groups = [group("both", "clients", load.clients)]
    return Job(compile_plan(parse_values({
        "name": "scale", "backend": "sim", "phases": {"duration": f"{load.seconds} s", "cool_down": "1 s"},
        "mqtt": {"ping": "sent"},
        "hosts": hosts,
        "sim": {"client_wake_up": "0 s"},
        "broker": {"nagle": False, "service": {"per_packet": "0 s", "per_copy": "0 s"}},
        "trunk": {"up": trunk, "down": trunk},
        "networks": networks,
        "groups": groups,
        "recording": {"detail": "full" if load.packets else "messages"},
    })), directory)


def measure(load: Load) -> dict[str, float]:
    """Run the engine, and watch its memory and its processor time."""
    with tempfile.TemporaryDirectory() as scratch:
        work = job(load, Path(scratch) / "run")
        text = work.text
        command = [engine_path(), *work.arguments]
        engine = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        phase = ["setup"]
        reader = threading.Thread(target=_follow, args=(engine, phase), daemon=True)
        reader.start()
        threading.Thread(target=_feed, args=(engine, text), daemon=True).start()
        memory = 0.0
        done, used = 0, None
        while not done:
            lines = Path(f"/proc/{engine.pid}/status").read_text(encoding="utf-8").splitlines()
            resident = next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)
            if phase[0] == "measurement":
                memory = max(memory, resident)
            time.sleep(0.01)
            done, _, used = os.wait4(engine.pid, os.WNOHANG)
        reader.join(5)
        links = json.loads((Path(scratch) / "run" / "run.json").read_text(encoding="utf-8"))["links"]
    assert used is not None
    crossings = sum(link["frames"] for link in links)
    return {"cpu_s": used.ru_utime + used.ru_stime, "memory_kib": memory, "crossings": crossings}


def _feed(engine: subprocess.Popen[str], text: str) -> None:
    assert engine.stdin is not None
    engine.stdin.write(text)
    engine.stdin.close()


def _follow(engine: subprocess.Popen[str], phase: list[str]) -> None:
    assert engine.stdout is not None
    for line in engine.stdout:
        progress = json.loads(line)
        if progress["event"] == "phase":
            phase[0] = progress["phase"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="simulated in each run")
    parser.add_argument("--clients", type=int, nargs="+", default=[20, 200, 2000, 10_000])
    parser.add_argument("--html", type=Path, help="a plot of it")
    parser.add_argument("--growth", action="store_true", help="exponents instead")
    parser.add_argument("--rounds", type=int, default=3, help="of --growth; the least of them counts")
    options = parser.parse_args()
    if options.growth:
        growth(options.rounds)
        return
    print("| clients | simulated s per CPU s, frames recorded | not recorded | CPU µs per link crossed | "
          "memory per client, KiB, frames recorded | not recorded |")
    print("|---:|---:|---:|---:|---:|---:|")
    rows = []
    for clients in options.clients:
        # Few clients are simulated for longer, so that there is something to measure.
        seconds = options.seconds * max(1.0, min(100.0, 10_000 / clients))
        full, bare = (measure(Load(clients, seconds, packets)) for packets in (True, False))
        crossed = full["crossings"]
        rows.append((clients, 1e6 * full["cpu_s"] / crossed))
        print(f"| {clients} | {seconds / full['cpu_s']:.3g} | {seconds / bare['cpu_s']:.3g} "
              f"| {1e6 * full['cpu_s'] / crossed:.2f} | {full['memory_kib'] / clients:.1f} "
              f"| {bare['memory_kib'] / clients:.1f} |", flush=True)
    if options.html is not None:
        plot(rows, options.html)


def growth(rounds: int) -> None:
    """Cost by messages, clients and links, with exponents."""
    # Messages of ten thousand clients come so seldom that their sum stays.
    axes = {
        "messages": {count: {"clients": 100, "seconds": count / 1000, "per_s": 10.0}
                     for count in (10_000, 100_000, 1_000_000)},
        "clients": {count: {"clients": count, "hosts": 10, "seconds": 100.0, "per_s": 1000 / count}
                    for count in (100, 1000, 10_000)},
        "links": {count: {"clients": 10_000, "hosts": count, "seconds": 100.0, "per_s": 0.1}
                  for count in (10, 100, 1000)},
    }
    print("| what grows | recorded | processor time, s | exponent |\n|---|---|---:|---:|")
    for axis, sizes in axes.items():
        for packets in (True, False):
            costs = {size: min(measure(Load(packets=packets, **values))["cpu_s"] for _ in range(rounds))
                     for size, values in sizes.items()}
            told = ", ".join(f"{size:,}: {cost:.3g}" for size, cost in costs.items())
            print(f"| {axis} | {'frames' if packets else 'messages'} | {told} | {exponent(costs):.2f} |", flush=True)


def exponent(costs: dict[int, float]) -> float:
    """The slope of the straight line through the logarithms (least squares)."""
    points = [(math.log(size), math.log(cost)) for size, cost in costs.items()]
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def plot(rows: list[tuple[int, float]], path: Path) -> None:
    """Cost of an event over the number of clients, beside a logarithm through the first point."""
    import plotly.graph_objects as go

    clients = [row[0] for row in rows]
    first = rows[0]
    figure = go.Figure([
        go.Scatter(x=clients, y=[row[1] for row in rows], mode="lines+markers", name="measured"),
        go.Scatter(x=clients, y=[first[1] * math.log(n) / math.log(first[0]) for n in clients], mode="lines",
                   line={"dash": "dot"}, name="logarithmic growth"),
    ])
    figure.update_layout(xaxis={"title": "clients", "type": "log"}, yaxis={"title": "CPU µs per link crossed"},
                         template="plotly_white")
    figure.write_html(path, include_plotlyjs="inline")


if __name__ == "__main__":
    main()
