#!/usr/bin/env python3
"""How far the simulator agrees with the kernel: scenarios run live and simulated with the same seed.

    benches/agreement/run.py [--seconds 40] [--only WORD] [--out FILE]

Prints a table in Markdown: mean and p95 latency, messages, segments with payload and PUBLISH packets per segment, live
and simulated. Each scenario takes its seconds once, in real time; the simulations take next to none.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from mqttlab import metrics
from mqttlab.recording import Recording

MQTTLAB = Path(sys.executable).with_name("mqttlab")
BOUNDS = {"latency_ms_mean": 5.0, "latency_ms_p95": 5.0, "messages_delivered": 2.0, "segments_with_payload": 2.0,
          "publish_per_segment_mean": 5.0}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One scenario: a publisher and a subscriber, or 54 clients, around a broker."""

    name: str
    link: str
    # The subscriber's, where it differs.
    far: str = ""
    qos: int
    nagle: bool = True
    rate: str = "50 /s"
    payload: str = "100 B"
    inflight: int = 20
    crowd: bool = False
    extra: dict[str, str] = field(default_factory=dict)

    def scenario(self, seconds: float) -> str:
        """As TOML."""
        nagle = str(self.nagle).lower()
        if self.crowd:
            return f"""
name = "{self.name}"
seed = 7
[phases]
warm_up = "5 s"
duration = "{seconds} s"
cool_down = "60 s"
[broker]
nagle = {nagle}
[[networks]]
between = ["clients", "broker"]
placement = "shared-medium"
{self.link}
[[groups]]
name = "publishers"
host = "clients"
count = 27
nagle = {nagle}
publish = {{ topic = "field/{{client}}", qos = {self.qos}, payload = "{self.payload}", rate = "{self.rate}" }}
[[groups]]
name = "subscribers"
host = "clients"
count = 27
nagle = {nagle}
subscribe = [{{ filter = "field/{{client}}", qos = {self.qos} }}]
"""
        return f"""
name = "{self.name}"
seed = 7
[phases]
warm_up = "3 s"
duration = "{seconds} s"
cool_down = "30 s"
[broker]
nagle = {nagle}
max_inflight = {self.inflight}
[mqtt]
max_inflight = {self.inflight}
[[networks]]
between = ["publisher", "broker"]
{self.link}
[[networks]]
between = ["subscriber", "broker"]
{self.far or self.link}
[[groups]]
name = "publisher"
host = "publisher"
nagle = {nagle}
publish = {{ topic = "t", qos = {self.qos}, payload = "{self.payload}", rate = "{self.rate}" }}
[[groups]]
name = "subscriber"
host = "subscriber"
nagle = {nagle}
subscribe = [{{ filter = "t", qos = {self.qos} }}]
"""


def link(**fields: str) -> str:
    """Both directions alike."""
    one = ", ".join(f'{name} = "{value}"' for name, value in fields.items())
    return f"up = {{ {one} }}\ndown = {{ {one} }}"


CASES = (
    Case(name="delay-qos0", link=link(delay="20 ms"), qos=0, nagle=False),
    Case(name="delay-qos1-nagle", link=link(delay="20 ms"), qos=1, rate="100 /s"),
    Case(name="delay-qos2-nagle", link=link(delay="20 ms"), qos=2, rate="20 /s"),
    Case(name="delay-qos2", link=link(delay="20 ms"), qos=2, nagle=False, rate="100 /s", inflight=1000),
    Case(name="loss1-qos1", link=link(delay="20 ms", loss="1 %"), qos=1, nagle=False),
    Case(name="loss5-qos0", link=link(delay="20 ms", loss="5 %"), qos=0, nagle=False),
    Case(name="loss5-qos1-nagle", link=link(delay="20 ms", loss="5 %"), qos=1),
    Case(name="loss10-qos1", link=link(delay="20 ms", loss="10 %"), qos=1, nagle=False, rate="20 /s"),
    Case(name="loss2-qos2", link=link(delay="20 ms", loss="2 %"), qos=2, nagle=False, rate="20 /s"),
    Case(name="rate-qos0", link=link(delay="10 ms", rate="250 kbit/s"), qos=0, payload="500 B"),
    Case(name="rate-qos1-large", link=link(delay="30 ms", rate="1 Mbit/s"), qos=1, payload="20 kB", rate="4 /s"),
    Case(name="inflight1-qos1", link=link(delay="50 ms"), qos=1, nagle=False, rate="8 /s", inflight=1),
    Case(name="inflight1000-qos1", link=link(delay="50 ms"), qos=1, rate="200 /s", inflight=1000),
    Case(name="inflight20-qos1-window", link=link(delay="50 ms"), qos=1, nagle=False, rate="190 /s", inflight=20),
    # The delays of the two sides have no common measure: no two things happen at the same instant.
    Case(name="apart-qos1-nagle", link=link(delay="20 ms"), far=link(delay="27.3 ms"), qos=1, rate="100 /s"),
    Case(name="apart-qos2-nagle", link=link(delay="20 ms"), far=link(delay="27.3 ms"), qos=2, rate="20 /s"),
    Case(name="apart-qos2", link=link(delay="20 ms"), far=link(delay="27.3 ms"), qos=2, nagle=False, rate="100 /s",
         inflight=1000),
    Case(name="apart-inflight1000", link=link(delay="50 ms"), far=link(delay="57.3 ms"), qos=1, rate="200 /s",
         inflight=1000),
    Case(name="crowd-16kbit-qos0", link='model = "nato-narrowband"', qos=0, crowd=True, rate="0.05 /s"),
    Case(name="crowd-16kbit-qos1", link='model = "nato-narrowband"', qos=1, crowd=True, rate="0.03 /s"),
)


def run(case: Case, seconds: float, directory: Path, backend: str) -> Recording:
    """Run a case and open what it left."""
    scenario = directory / f"{case.name}.toml"
    scenario.write_text(case.scenario(seconds), encoding="utf-8")
    runs = directory / case.name / backend
    done = subprocess.run([MQTTLAB, "run", scenario, "--backend", backend, "--runs", runs, "--no-html"],
                          capture_output=True, text=True, check=False)
    found = sorted(runs.glob("*")) if runs.is_dir() else []
    if not found:
        raise SystemExit(f"{case.name} ({backend}) did not run:\n{done.stderr[-2000:]}")
    return Recording.open(found[-1])


def compare(case: Case, seconds: float, directory: Path) -> tuple[list[str], list[str]]:
    """A row of the table, and what lies beyond its bound."""
    live, sim = (run(case, seconds, directory, backend) for backend in ("live", "sim"))
    table = metrics.compare(live, sim).filter(pl.col("metric").is_in(list(BOUNDS)))
    cells, misses = [case.name], []
    for metric, bound in BOUNDS.items():
        rows = table.filter(pl.col("metric") == metric)
        if rows.is_empty():
            cells.append("–")
            continue
        first, second = float(rows["first"].mean()), float(rows["second"].mean())  # type: ignore[arg-type]
        difference = (second / first - 1) * 100 if first else 0.0
        far = abs(difference) > bound
        cells.append(f"{first:.4g} / {second:.4g} ({'**' if far else ''}{difference:+.1f} %{'**' if far else ''})")
        if far:
            misses.append(f"{metric} {difference:+.1f} %")
    word = "valid" if (live.run.get("validity") or {}).get("valid", True) else "marked"
    return [*cells, word], misses


def main() -> None:
    """Run them all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=40.0, help="measured in each live run")
    parser.add_argument("--only", default="", help="run only cases with this in their names")
    parser.add_argument("--out", type=Path, help="write the table here, too")
    options = parser.parse_args()
    heads = ["case", *(f"{metric} (± {bound:g} %)" for metric, bound in BOUNDS.items()), "live run"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    print("\n".join(lines), flush=True)
    missed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for case in CASES:
            if options.only not in case.name:
                continue
            cells, misses = compare(case, options.seconds, Path(scratch))
            lines.append("| " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
            missed += bool(misses)
    summary = f"\n{len(lines) - 2 - missed} of {len(lines) - 2} cases are within all bounds."
    print(summary)
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n" + summary + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
