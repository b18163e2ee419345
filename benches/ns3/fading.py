#!/usr/bin/env python3
"""Frame errors of mqttlab's faded radio channel beside ns-3's, by distance.

    benches/ns3/fading.py [--frames 20000] [--only WORDS] [--out FILE]

A sensor sends frames of one length over one way, each once and each with a gain of its own. README.md explains what
differs; needs what run.py needs.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from run import build, line, missing

from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

IP_BYTES = 200
# UDP and IP take 28 B, PUBLISH of MQTT-SN 7 B.
PAYLOAD_BYTES = IP_BYTES - 28 - 7
INTERVAL_MS = 10
MODES = {"b-11": "DsssRate11Mbps", "g-54": "ErpOfdmRate54Mbps"}
NIST, YANS = "ns3::NistErrorRateModel", "ns3::YansErrorRateModel"
SIGMAS_OF_95_PERCENT = 1.96
NOISE_DBM = -95.0
NOISE_DB_OFF_MAX = 0.01


@dataclass(frozen=True, kw_only=True)
class Way:
    """A sensor so far from its gateway."""

    standard: str
    m: float | None
    metres: int

    @property
    def words(self) -> str:
        law = "steady" if self.m is None else "Rayleigh" if self.m == 1 else f"Nakagami, m = {self.m:g}"
        return f"{self.standard}, {law}, {self.metres} m"

    @property
    def error_models(self) -> tuple[str, ...]:
        """802.11b has one model in ns-3, which both of the names lead to."""
        return (NIST,) if self.standard == "b-11" else (NIST, YANS)

    @property
    def fading(self) -> dict[str, Any]:
        """A gain for each frame: they come at twice the coherence time."""
        if self.m is None:
            return {}
        law = {"kind": "rayleigh"} if self.m == 1 else {"kind": "nakagami", "m": self.m}
        return {"fading": {**law, "coherence": f"{INTERVAL_MS / 2:g} ms"}}

    def scenario(self, errors: str, frames: int, seed: int) -> dict[str, Any]:
        """Datagrams without a connection: none of them waits for another, and none is repeated."""
        topics = {"value/0": 7}
        return {
            "name": "fading", "backend": "sim", "seed": seed, "recording": {"detail": "full"},
            "phases": {"warm_up": "1 s", "duration": f"{frames * INTERVAL_MS} ms", "cool_down": "1 s"},
            "radio": {
                "standard": self.standard, "short_retries": 1, "errors": errors, **self.fading,
                # The broker is so near the gateway that no fade reaches down to the noise.
                "positions": [["0 m", "1 m"], ["0 m", "0 m"], [f"{self.metres} m", "0 m"]],
            },
            "broker": {},
            "servers": [{"name": "gateway", "role": "gateway", "host": "gateway",
                         "gateway": {"mode": "aggregating", "predefined_topics": topics}}],
            "groups": [{
                "name": "sensor", "host": "field", "connects_to": "gateway", "protocol": "mqtt-sn",
                "mqtt_sn": {"without_connection": True, "predefined_topics": topics},
                "publish": {"topic": "value/0", "qos": 0, "payload": f"{PAYLOAD_BYTES} B",
                            "interval": f"{INTERVAL_MS} ms"},
            }],
        }


def ways() -> Iterator[Way]:
    """Where a part of the frames is lost; without fading that is a short way."""
    yield from (Way(standard="b-11", m=None, metres=metres) for metres in (160, 170, 180, 190, 200))
    for m in (1.0, 3.0):
        yield from (Way(standard="b-11", m=m, metres=metres) for metres in (60, 100, 140, 180, 220))
    yield from (Way(standard="g-54", m=None, metres=metres) for metres in (60, 65, 70, 75))
    for m in (1.0, 3.0):
        yield from (Way(standard="g-54", m=m, metres=metres) for metres in (20, 40, 60, 80))


@dataclass(frozen=True, kw_only=True)
class Lost:
    """How many of the frames were lost."""

    lost: int
    frames: int

    @property
    def percent(self) -> float:
        return 100 * self.lost / self.frames

    @property
    def variance(self) -> float:
        return self.percent * (100 - self.percent) / self.frames

    def beside(self, other: Lost) -> str:
        """What the other one has more, with its 95 % interval in percentage points."""
        half = SIGMAS_OF_95_PERCENT * math.sqrt(self.variance + other.variance)
        return f"{self.percent - other.percent:+.2f} ± {half:.2f}"


def in_ns3(program: Path, way: Way, errors: str, frames: int, seed: int) -> Lost:
    """The same frames in ns-3."""
    options = {"mode": MODES[way.standard], "errors": errors, "m": way.m or 0, "metres": way.metres, "bytes": IP_BYTES,
               "frames": frames, "run": seed}
    done = subprocess.run([program, *(f"--{name}={value}" for name, value in options.items())],
                          capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    if said["received"] and abs(said["noise_dbm"] - NOISE_DBM) > NOISE_DB_OFF_MAX:
        raise SystemExit(f"{way.words}: ns-3 reckons with a noise of {said['noise_dbm']:.2f} dBm, not {NOISE_DBM:g}")
    return Lost(lost=said["frames"] - said["received"], frames=said["frames"])


def in_mqttlab(way: Way, errors: str, frames: int, seed: int) -> Lost:
    """The sensor's frames in mqttlab, all of this length."""
    plan = compile_plan(parse_values(way.scenario(errors, frames, seed), way.words))
    with tempfile.TemporaryDirectory() as scratch:
        recording = Recording.open(perform(Job(plan, Path(scratch, "run")), lambda _: None).directory)
        is_sensors = pl.col("from_host").cast(pl.String) == "field"
        sent = recording.packets.filter(is_sensors & (pl.col("ip_bytes") == IP_BYTES))
        delivered = sent.filter(pl.col("fate").cast(pl.String) == "delivered")
        return Lost(lost=sent.height - delivered.height, frames=sent.height)


def main() -> None:
    """Simulate all, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=20_000, help="frames of each way")
    parser.add_argument("--seed", type=int, default=1, help="seed of both")
    parser.add_argument("--only", default="", help="of the rows those with these words")
    parser.add_argument("--out", type=Path, help="write the table here, too")
    options = parser.parse_args()
    if (reason := missing()) is not None:
        print(f"Skipped: {reason}.")
        sys.exit(0)
    heads = ["frames lost, %", "mqttlab, `threshold`", "mqttlab, `snr`", "ns-3, NIST", "mqttlab − ns-3", "ns-3, YANS"]
    lines = [line(heads), "|---|" + "---:|" * (len(heads) - 1)]
    print("\n".join(lines), flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        program, _ = build(Path(scratch), Path(__file__).with_suffix(".cc"))
        for way in (way for way in ways() if options.only in way.words):
            bounded, ours = (in_mqttlab(way, errors, options.frames, options.seed) for errors in ("threshold", "snr"))
            nist, *yans = (in_ns3(program, way, errors, options.frames, options.seed) for errors in way.error_models)
            lines.append(line([way.words, f"{bounded.percent:.2f}", f"{ours.percent:.2f}", f"{nist.percent:.2f}",
                               ours.beside(nist), *(f"{other.percent:.2f}" for other in yans or [nist])]))
            print(lines[-1], flush=True)
    if options.out is not None:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
