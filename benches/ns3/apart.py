#!/usr/bin/env python3
"""mqttlab's simulator beside ns-3 where an independent comparison had found them apart.

    benches/ns3/apart.py [--rounds 5] [--only WORDS] [--out FILE]

Each row is one network, simulated by both with the same parameters: the mean over all messages of all rounds, and the
median of the rounds' means. README.md explains what differs; needs what run.py needs.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from run import build, line, missing, read_the_standard_like_ns3

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from mqttlab.studies.perez2005.experiment import Effort, Ethernet, Wifi

CONNECTED_BY_S = 60
MSS_1024 = {f"ns3::TcpSocket::{name}": size for name, size in (
    ("SegmentSize", 1024), ("SndBufSize", 32 * 1024), ("RcvBufSize", 32 * 1024))}


@dataclass(frozen=True, kw_only=True)
class Apart:
    """One network; ``ns3`` are the options of mqtt.cc, ``values`` a scenario's."""

    words: str
    ns3: dict[str, str | float]
    values: dict[str, Any]
    duration_s: float
    echoes: bool = False
    """Whether the receiver of a segment that it has already acknowledged echoes its timestamp, other than NetBSD 2."""


@dataclass(kw_only=True)
class Sums:
    """What the rounds of one program gave."""

    latencies: list[tuple[float, float, int]] = field(default_factory=list)
    segments: int = 0

    def add(self, mean_ms: float, p99_ms: float, messages: int, segments: float) -> None:
        self.latencies.append((mean_ms, p99_ms, messages))
        self.segments += int(segments)

    def cells(self) -> tuple[float, float, float, float]:
        """Mean over all messages, median of the rounds' means, largest p99 of a round, segments per message"""
        messages = sum(count for *_, count in self.latencies)
        mean = sum(mean * count for mean, _, count in self.latencies) / messages
        # In some rounds of great loss nobody connects in time.
        median = statistics.median(mean for mean, _, count in self.latencies if count)
        return mean, median, max(p99 for _, p99, _ in self.latencies), self.segments / messages


def cases() -> Iterator[Apart]:
    """The networks that were found apart, and beside each one what shows the cause."""
    for echoes in (False, True):
        how = ", repetitions' timestamps are echoed" if echoes else ""
        yield Apart(words=f"Ethernet, 8 % loss on each of four links, 50 B, QoS 0, 10 msg/s{how}", duration_s=300,
                    ns3={"network": "small", "loss": 0.08, "qos": 0, "rate": 10}, values=ethernet(loss="8 %", rate=10),
                    echoes=echoes)
    for rate in (5, 50, 200):
        yield Apart(words=f"Ethernet, 3 kB over an MSS of 1,024 B, QoS 1, {rate} msg/s", duration_s=60,
                    ns3={"network": "small", "qos": 1, "payload": 3000, "rate": rate, **MSS_1024},
                    values=ethernet(qos=1, payload=3000, mss=1024, rate=rate))
    for rate in (20, 25):
        yield Apart(words=f"802.11, RTS/CTS, 3 stations, 500 B, QoS 1, {rate} msg/s", duration_s=300,
                    ns3={"network": "radio", "rtsCts": 1, "qos": 1, "payload": 500, "rate": rate},
                    values=radio(pairs=1, qos=1, payload=500, rts_cts=True, rate=rate))
    yield Apart(words="802.11, 25 stations, 50 B, QoS 0, 8 msg/s each", duration_s=60,
                ns3={"network": "radio", "pairs": 12, "qos": 0, "rate": 8},
                values=radio(pairs=12, qos=0, payload=50, rts_cts=False, rate=8))


def ethernet(*, rate: float, loss: str = "0 %", qos: int = 0, payload: int = 50, mss: int = 536) -> dict[str, Any]:
    """Perez's small Ethernet with a loss on every link."""
    values = Ethernet(clients=2, payload=payload, ber=0, p_bb=0.8, qos=qos, mss=mss).scenario(Effort())
    for place in (values["trunk"], *values["networks"]):
        place |= {way: place[way] | {"loss": loss} for way in ("up", "down")}
    values["groups"][0]["publish"]["rate"] = f"{rate} /s"
    return values


def radio(*, pairs: int, qos: int, payload: int, rts_cts: bool, rate: float) -> dict[str, Any]:
    """Publishers and subscribers in a circle of 20 m around the broker, each pair with a topic of its own."""
    values = Wifi(clients=2, payload=payload, mean_bad_ms=0, rts_cts=rts_cts, qos=qos).scenario(Effort())
    angles = [2 * math.pi * number / max(2 * pairs, 4) for number in range(2 * pairs)]
    around = [[f"{100 + 20 * turn(angle):.3f} m" for turn in (math.cos, math.sin)] for angle in angles]
    values["radio"] |= {"area": "200 m x 200 m", "positions": [["100 m", "100 m"], *around]}
    for group in values["groups"]:
        group["count"] = values["hosts"][group["host"]]["count"] = pairs
        if "publish" in group:
            group["publish"] |= {"topic": "x/{client}", "rate": f"{rate} /s"}
        else:
            group["subscribe"][0]["filter"] = "x/{client}"
    return values


def run_ns3(program: Path, case: Apart, seed: int, sums: Sums) -> None:
    """One round of ns-3."""
    options = {**case.ns3, "warmUp": 2, "duration": case.duration_s, "coolDown": 1, "run": seed,
               "connectedBy": CONNECTED_BY_S}
    done = subprocess.run([program, *(f"--{name}={value}" for name, value in options.items())],
                          capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    sums.add(said["delay_ms"], said["delay_ms_p99"], said["messages"], said["segments"])


def run_mqttlab(case: Apart, seed: int, sums: Sums) -> None:
    """One round of mqttlab."""
    values = case.values | {
        "backend": "sim", "seed": seed, "sim": {"client_wake_up": "0 s"}, "recording": {"detail": "full"},
        "phases": {"warm_up": "2 s", "duration": f"{case.duration_s:g} s", "cool_down": "1 s"},
    }
    with tempfile.TemporaryDirectory() as scratch:
        plan = compile_plan(parse_values(values, case.words))
        for medium in plan["network"]["media"]:
            if medium.get("mac"):
                read_the_standard_like_ns3(medium)
        for stack in plan["sim"]["tcp_stacks"].values():
            stack["echoes_repetitions"] |= case.echoes
        recording = Recording.open(perform(Job(plan, Path(scratch, "run")), lambda _: None).directory)
        latency = metrics.deliveries(recording)["latency_ms"]
        network = recording.network_metrics
        segments = network.filter((pl.col("scope") == "run") & (pl.col("metric") == "segments_with_payload"))["value"]
        sums.add(float(latency.mean()), float(latency.quantile(0.99)), latency.len(), segments[0])  # type: ignore[arg-type]


def main() -> None:
    """Simulate all, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="independent replications")
    parser.add_argument("--only", default="", help="of the rows those with these words")
    parser.add_argument("--out", type=Path, help="write the table here, too")
    options = parser.parse_args()
    if (reason := missing()) is not None:
        print(f"Skipped: {reason}.")
        sys.exit(0)
    heads = ["network", "mean, ns-3 / mqttlab, ms", "median of the rounds' means, ms", "greatest p99 of a round, ms",
             "segments with payload a message"]
    lines = [line(heads), "|" + "---|" * len(heads)]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        program, _ = build(Path(scratch))
        for case in (case for case in cases() if options.only in case.words):
            ns3, ours = Sums(), Sums()
            for seed in range(1, options.rounds + 1):
                run_ns3(program, case, seed, ns3)
                run_mqttlab(case, seed, ours)
            pairs = zip(ns3.cells(), ours.cells(), strict=True)
            lines.append(line([case.words, *(f"{theirs:.2f} / {own:.2f}" for theirs, own in pairs)]))
            print(lines[-1], flush=True)
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
