#!/usr/bin/env python3
"""mqttlab's simulator beside ns-3: mean delays, and simulated seconds per second of processor time.

    benches/ns3/run.py [--rounds 3] [--shorten 1] [--only WORD] [--engine FILE] [--out FILE]

Needs ns-3's headers (Debian: libns3-dev), g++ and pkg-config; where they are missing it says so and ends well. Both
simulate the same error-free networks of perez2005 for the same simulated time, one after the other, each round with
another seed. Delays are means over all messages of all rounds; speeds are medians over rounds.

Counted is the processor time of mqttlab's whole engine process, from start to end with all its threads, but of ns-3
only that of its event loop. Python's is in neither. ns-3 records nothing but the sums of delays, and where it is said a
capture (pcap) of every device.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mqttlab import metrics
from mqttlab.engine import engine_path
from mqttlab.recording import Recording
from mqttlab.runs import Job
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from mqttlab.studies.perez2005.experiment import Effort, Ethernet, Wifi

SOURCE = Path(__file__).with_name("mqtt.cc")
MODULES = ("core", "network", "internet", "point-to-point", "traffic-control", "mobility", "propagation", "wifi")
DELAY_BOUND_PERCENT = 5.0
COOL_DOWN_S = 1


@dataclass(frozen=True, kw_only=True)
class Case:
    """One network at one quality of service."""

    words: str
    ns3: dict[str, str | float]
    study: Ethernet | Wifi
    warm_up_s: float
    duration_s: float
    speed_aim: float | None

    @property
    def is_radio(self) -> bool:
        return isinstance(self.study, Wifi)

    def job(self, seed: int, directory: Path, *, packets: bool, like_ns3: bool = True) -> Job:
        """What mqttlab's engine is given."""
        values = self.study.scenario(Effort())
        values |= {
            "backend": "sim", "seed": seed, "sim": {"client_wake_up": "0 s"},
            "recording": {"detail": "full" if packets else "messages"},
            "phases": {"warm_up": f"{self.warm_up_s:g} s", "duration": f"{self.duration_s:g} s",
                       "cool_down": f"{COOL_DOWN_S} s"},
        }
        plan = compile_plan(parse_values(values, self.words))
        if self.is_radio and like_ns3:
            read_the_standard_like_ns3(plan["network"]["media"][0])
        return Job(plan, directory)


def read_the_standard_like_ns3(medium: dict[str, Any]) -> None:
    """Where ns-3 3.37 departs from IEEE 802.11, or leaves its default.

    It takes each rate of 802.11b for a basic one and acknowledges at the data's rate, lets a frame that finds the
    medium idle wait for a whole DIFS, and tries announced frames as often as others.
    """
    medium["phy"]["ack_rate_bit_s"] = medium["phy"]["data_rate_bit_s"]
    medium["mac"] |= {"difs_from_queueing": True, "long_retry_limit": medium["mac"]["short_retry_limit"]}


def cases(shorten: float) -> Iterator[Case]:
    """The networks; the slower a mean settles, the longer they are simulated."""
    for clients, name, rate, duration_s, aim in ((2, "small", 200, 120, None), (20, "twenty", 40, 60, 30.0)):
        for qos in (0, 1, 2):
            yield Case(
                words=f"Ethernet, {clients} clients, QoS {qos}",
                ns3={"network": name, "rate": rate, "payload": 50, "qos": qos},
                study=Ethernet(clients=clients, payload=50, ber=0, p_bb=0.8, qos=qos),
                warm_up_s=2, duration_s=duration_s / shorten, speed_aim=aim,
            )
    for rts_cts in (False, True):
        for qos in (0, 1, 2):
            yield Case(
                words=f"802.11, 3 stations, {'RTS/CTS' if rts_cts else 'basic access'}, QoS {qos}",
                ns3={"network": "radio", "rate": 25, "payload": 200, "qos": qos, "rtsCts": int(rts_cts)},
                study=Wifi(clients=2, payload=200, mean_bad_ms=0, rts_cts=rts_cts, qos=qos),
                warm_up_s=10, duration_s=1200 / shorten, speed_aim=10.0,
            )


@dataclass(kw_only=True)
class Tally:
    """What several rounds of one program at one case have shown."""

    delay_sum_ms: float = 0.0
    messages: int = 0
    speeds: list[float] = field(default_factory=list)

    def add(self, delay_ms: float, messages: int, simulated_s: float, cpu_s: float) -> None:
        self.delay_sum_ms += delay_ms * messages
        self.messages += messages
        self.speeds.append(simulated_s / cpu_s)

    @property
    def delay_ms(self) -> float:
        return self.delay_sum_ms / self.messages

    @property
    def speed(self) -> float:
        return statistics.median(self.speeds)


def missing() -> str | None:
    """What keeps ns-3 from being used here."""
    for program in ("g++", "pkg-config"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    found = subprocess.run(["pkg-config", "--exists", *packages()], check=False)
    return "ns-3 is not installed (Debian: apt-get install libns3-dev)" if found.returncode else None


def packages() -> list[str]:
    return [f"ns3-{module}" for module in MODULES]


def pkg_config(*arguments: str) -> list[str]:
    return subprocess.run(["pkg-config", *arguments], capture_output=True, text=True, check=True).stdout.split()


def build(directory: Path, source: Path = SOURCE) -> tuple[Path, str]:
    """Compile mqtt.cc, or another source; returns the program and ns-3's version.

    Debian's files for pkg-config name libraries by path that only its -dev packages of GSL have; ns-3's own know
    where to find them.
    """
    program = directory / source.stem
    libraries = pkg_config("--libs-only-L", "--libs-only-l", *packages())
    subprocess.run(["g++", "-std=c++17", "-O3", "-Wall", "-Wextra", "-o", program, source, *libraries], check=True)
    return program, pkg_config("--modversion", "ns3-core")[0]


def run_ns3(program: Path, case: Case, seed: int, tally: Tally, pcap: str = "") -> None:
    """One round of ns-3; with captures of all devices where ``pcap`` says how their names begin."""
    options = {**case.ns3, "warmUp": case.warm_up_s, "duration": case.duration_s, "coolDown": COOL_DOWN_S,
               "run": seed} | ({"pcap": pcap} if pcap else {})
    done = subprocess.run([program, *(f"--{name}={value}" for name, value in options.items())],
                          capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    tally.add(said["delay_ms"], said["messages"], said["simulated_s"], said["cpu_s"])


def run_mqttlab(engine: Path, job: Job, tally: Tally) -> None:
    """One round of mqttlab; its recording is read and thrown away."""
    plan, directory = job.plan, job.directory
    with tempfile.TemporaryFile("w+") as stdin, tempfile.TemporaryFile("w+") as stderr:
        stdin.write(job.text)
        stdin.seek(0)
        process = subprocess.Popen([engine, *job.arguments], stdin=stdin, stdout=subprocess.DEVNULL, stderr=stderr)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            stderr.seek(0)
            raise SystemExit(f"{plan['name']} could not be simulated:\n{stderr.read()}")
    try:
        latency = metrics.deliveries(Recording.open(directory))["latency_ms"]
        phases = plan["phases"]
        simulated_s = (phases["warm_up_ns"] + phases["duration_ns"] + phases["cool_down_ns"]) / 1e9
        tally.add(float(latency.mean()), latency.len(), simulated_s,  # type: ignore[arg-type]
                  usage.ru_utime + usage.ru_stime)
    finally:
        shutil.rmtree(directory)


@dataclass(kw_only=True)
class Row:
    """A case, measured."""

    case: Case
    ns3: Tally = field(default_factory=Tally)
    captured: Tally = field(default_factory=Tally)
    packets: Tally = field(default_factory=Tally)
    messages: Tally = field(default_factory=Tally)
    standard: Tally = field(default_factory=Tally)

    def measure(self, program: Path, engine: Path, scratch: Path, seed: int) -> None:
        """One round."""
        run_ns3(program, self.case, seed, self.ns3)
        with tempfile.TemporaryDirectory(dir=scratch) as captures:
            run_ns3(program, self.case, seed, self.captured, str(Path(captures) / "device"))
        run_mqttlab(engine, self.case.job(seed, scratch / "packets", packets=True), self.packets)
        run_mqttlab(engine, self.case.job(seed, scratch / "messages", packets=False), self.messages)
        if self.case.is_radio:
            standard = self.case.job(seed, scratch / "standard", packets=False, like_ns3=False)
            run_mqttlab(engine, standard, self.standard)

    @property
    def difference_percent(self) -> float:
        return (self.packets.delay_ms / self.ns3.delay_ms - 1) * 100

    @property
    def ratio(self) -> float:
        return self.packets.speed / self.ns3.speed

    @property
    def misses(self) -> list[str]:
        """What falls short."""
        aim = self.case.speed_aim
        far = abs(self.difference_percent) > DELAY_BOUND_PERCENT
        return ([f"{self.case.words}: mean delay {self.difference_percent:+.1f} %"] if far else []) + (
            [f"{self.case.words}: {self.ratio:.1f} times as fast, not {aim:g}"] if aim and self.ratio < aim else [])

    def cells(self) -> list[str]:
        """As a row of the table."""
        standard = f"{self.standard.delay_ms:.2f}" if self.case.is_radio else "–"
        recording_percent = (1 - self.packets.speed / self.messages.speed) * 100
        return [
            self.case.words, f"{self.ns3.messages} / {self.packets.messages}",
            f"{self.ns3.delay_ms:.2f}", f"{self.packets.delay_ms:.2f}", f"{self.difference_percent:+.1f} %", standard,
            f"{self.ns3.speed:.1f}", f"{self.packets.speed:.0f}", f"{self.ratio:.1f}",
            f"{self.case.speed_aim:g}" if self.case.speed_aim else "–",
            f"{self.messages.speed:.0f}", f"{self.messages.speed / self.ns3.speed:.1f}", f"{recording_percent:.0f} %",
            f"{self.captured.speed:.1f}", f"{self.packets.speed / self.captured.speed:.1f}",
        ]


HEADS = [
    "network", "messages, ns-3 / mqttlab", "ns-3, ms", "mqttlab, ms", f"difference (± {DELAY_BOUND_PERCENT:g} %)",
    "mqttlab by the standard, ms", "ns-3, s/CPU s", "mqttlab, packets recorded, s/CPU s", "ratio", "aim",
    "mqttlab, only messages recorded, s/CPU s", "ratio", "cost of recording packets",
    "ns-3, all devices captured, s/CPU s", "ratio, packets recorded by both",
]


def line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Build, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="independent replications")
    parser.add_argument("--shorten", type=float, default=1.0, help="divide the simulated times by this")
    parser.add_argument("--only", default="", help="only cases with this in their names")
    parser.add_argument("--engine", type=Path, help="mqttlab's engine; the installed one when left out")
    parser.add_argument("--out", type=Path, help="write the table here, too")
    options = parser.parse_args()
    reason = missing()
    if reason is not None:
        print(f"Skipped: {reason}.")
        sys.exit(0)
    engine = options.engine or engine_path()
    with tempfile.TemporaryDirectory(prefix="mqttlab-ns3-") as name:
        scratch = Path(name)
        program, version = build(scratch)
        said = [f"ns-3 {version}, {platform.machine()}, {os.cpu_count()} processors, {options.rounds} rounds", "",
                line(HEADS), "|" + "---|" * len(HEADS)]
        print("\n".join(said), flush=True)
        misses: list[str] = []
        for case in cases(options.shorten):
            if options.only not in case.words:
                continue
            row = Row(case=case)
            for seed in range(1, options.rounds + 1):
                row.measure(program, engine, scratch, seed)
            said.append(line(row.cells()))
            misses += row.misses
            print(said[-1], flush=True)
    said += ["", *(f"- missed: {miss}" for miss in misses)] if misses else ["", "Nothing is missed."]
    print("\n".join(said[said.index("", 2):]))
    if options.out is not None:
        options.out.write_text("\n".join(said) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
