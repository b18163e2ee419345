#!/usr/bin/env python3
"""Our client's keep-alive beside two libraries': when each pings, what that costs, and when it is back after an outage.

    benches/agreement/libraries.py                              a live run of 11 minutes, and its simulation
    benches/agreement/libraries.py --seconds 120 --only idle    shorter, and cases with a word in their names
    benches/agreement/libraries.py --out benches/agreement/LIBRARIES.md

libmosquitto (mosquitto_sub, mosquitto_pub -l) stands beside our client with the defaults of a scenario, and paho-mqtt
beside one with ``ping = "interval"`` and the timeout of a connection that Paho has. All have one keep-alive. Each has a
host and a network of its own. All of them are in one live run, with one Mosquitto; the simulation has ours alone. The
frames of the emulated networks say when a PINGREQ left.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl

from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

Values = dict[str, Any]
KEEP_ALIVE_S = 10
PAYLOAD_BYTES = 100
LIBRARIES = ("libmosquitto", "paho-mqtt")
# What our client has beside each of them.
MQTT: dict[str, Values] = {"libmosquitto": {}, "paho-mqtt": {"ping": "interval"}}
RECONNECT: dict[str, Values] = {
    "libmosquitto": {}, "paho-mqtt": {"reconnect": {"jitter": "0 %", "timeout": "5 s"}}}
OUTAGE_S = (33, 40)
NS = 10**9
BOUND = 0.02
HEAD = f"""# Keep-alive of our client beside libmosquitto and paho-mqtt

Mosquitto and libmosquitto 2.0.11, paho-mqtt 2.2.0; a keep-alive of {KEEP_ALIVE_S} s, payloads of {PAYLOAD_BYTES} B,
links of 5 ms. Written by `benches/agreement/libraries.py`. Bytes are IP bytes from the first PINGREQ to the last.
"""
# Lines at times that do not add up what each of them took.
PACE = """
import sys, time
interval, size = float(sys.argv[1]), int(sys.argv[2])
began = time.monotonic()
for number in range(1, 10**9):
    time.sleep(max(began + number * interval - time.monotonic(), 0))
    print("x" * size, flush=True)
"""
PAHO = """
import sys, time
import paho.mqtt.client as mqtt
address, port, client_id, keep_alive, topic, qos, interval, size = sys.argv[1:]
client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=client_id)
if not float(interval):
    client.on_connect = lambda *_: client.subscribe(topic, int(qos))
    client.connect(address, int(port), int(keep_alive))
    client.loop_forever()
client.connect(address, int(port), int(keep_alive))
client.loop_start()
began = time.monotonic()
for number in range(1, 10**9):
    time.sleep(max(began + number * float(interval) - time.monotonic(), 0))
    client.publish(topic, "x" * int(size), int(qos))
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a client does: publish every so many seconds, or else receive what comes every ``fed_s``."""

    name: str
    words: str
    qos: int = 0
    interval_s: float = 0
    fed_s: float = 0
    outage: bool = False

    def group(self, library: str, whose: str, keep_alive_s: int) -> Values:
        """The group of this library's client (``whose`` is theirs), or of ours beside it."""
        name = f"{library}-{self.name}-{whose}"
        group = {"name": name, "host": name}
        if whose == "ours":
            own = {"mqtt": {"keep_alive": f"{keep_alive_s} s", **MQTT[library]}, **RECONNECT[library]}
            return group | own | (self._publishing if self.interval_s else self._subscribing)
        program = self._mosquitto if library == "libmosquitto" else self._paho
        return group | {"client": program(keep_alive_s)}

    def feed(self) -> Values:
        """Who publishes what a receiver receives."""
        return {"name": f"feed-{self.name}", "host": "broker", "publish": {
            "topic": self.name, "payload": f"{PAYLOAD_BYTES} B", "interval": f"{self.fed_s} s"}}

    @property
    def _publishing(self) -> Values:
        return {"publish": {"topic": f"own/{self.name}", "qos": self.qos, "payload": f"{PAYLOAD_BYTES} B",
                            "interval": f"{self.interval_s} s"}}

    @property
    def _subscribing(self) -> Values:
        return {"subscribe": [{"filter": self.name, "qos": self.qos}]}

    def _mosquitto(self, keep_alive_s: int) -> Values:
        words = f"-h {{address}} -p {{port}} -i {{client_id}} -k {keep_alive_s} -q {self.qos}"
        if not self.interval_s:
            return {"command": ["mosquitto_sub", *words.split(), "-t", self.name]}
        lines = f"{sys.executable} {{directory}}/pace.py {self.interval_s} {PAYLOAD_BYTES}"
        return {"command": ["bash", "-c", f"exec mosquitto_pub {words} -l -t lib/{self.name} < <({lines})"],
                "files": {"pace.py": PACE}}

    def _paho(self, keep_alive_s: int) -> Values:
        topic = f"lib/{self.name}" if self.interval_s else self.name
        return {"command": [sys.executable, "{directory}/paho_client.py", "{address}", "{port}", "{client_id}",
                            str(keep_alive_s), topic, str(self.qos), str(self.interval_s), str(PAYLOAD_BYTES)],
                "files": {"paho_client.py": PAHO}}


CASES = (
    Case(name="idle", words="subscriber without messages"),
    Case(name="often", words="publishes at QoS 0 every 3.7 s", interval_s=3.7),
    Case(name="seldom", words="publishes at QoS 0 every 23 s", interval_s=23),
    Case(name="often-1", words="publishes at QoS 1 every 3.7 s", qos=1, interval_s=3.7),
    Case(name="seldom-1", words="publishes at QoS 1 every 23 s", qos=1, interval_s=23),
    Case(name="receives", words="receives at QoS 0 every 3.7 s", fed_s=3.7),
    Case(name="receives-1", words="receives at QoS 1 every 3.7 s", qos=1, fed_s=3.7),
    Case(name="outage", words="subscriber, link down for 40 s", outage=True),
)


def scenario(cases: Sequence[Case], seconds: int, backend: str, keep_alive_s: int = KEEP_ALIVE_S) -> Values:
    """All cases of all libraries beside each other; simulated, of ours alone."""
    line = {"delay": "5 ms"}
    sides = ("ours",) if backend == "sim" else ("ours", "theirs")
    groups = {case: [case.group(library, whose, keep_alive_s) for library in LIBRARIES for whose in sides]
              for case in cases}
    return {
        "name": "libraries", "backend": backend, "seed": 1,
        "phases": {"warm_up": "5 s", "duration": f"{seconds} s", "cool_down": "1 s"},
        "broker": {"kind": "mosquitto"} if backend == "live" else {},
        "networks": [{"name": group["name"], "between": [group["host"], "broker"], "up": line, "down": line}
                     for of_case in groups.values() for group in of_case],
        "groups": [*(group for of_case in groups.values() for group in of_case),
                   *(case.feed() for case in cases if case.fed_s)],
        "events": [{"at": f"{OUTAGE_S[0]} s", "for": f"{OUTAGE_S[1]} s", "network": group["name"], "down": True}
                   for case, of_case in groups.items() if case.outage for group in of_case],
    }


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the frames show of one client."""

    pings_s: tuple[float, ...]
    """When its PINGREQs left, since its first CONNECT."""
    connects_s: tuple[float, ...]
    """When the packets CONNECT left that came, of the outage since its end."""
    bytes_per_hour: float
    """IP bytes both ways, from the first PINGREQ to the last; without one, from the first PUBLISH to the last."""

    @property
    def intervals_s(self) -> tuple[float, ...]:
        """Between PINGREQs of one connection."""
        return tuple(after - before for before, after in itertools.pairwise(self.pings_s))


def seen(recording: Recording, case: Case, library: str, whose: str) -> Seen:
    """The client's part of a recording."""
    name = f"{library}-{case.name}-{whose}"
    client = list(recording.layout["clients"].names).index(f"{name}-0")
    packets = recording.control_packets.filter(client=client, direction="to_broker").drop_nulls("first_sent_ns")
    times = {kind: sorted(packets.filter(kind=kind)["first_sent_ns"]) for kind in ("CONNECT", "PINGREQ", "PUBLISH")}
    ends = times["PINGREQ"] if len(times["PINGREQ"]) > 1 else times["PUBLISH"]
    frames = recording.packets.filter(
        (pl.col("from_host") == name) | (pl.col("to_host") == name),
        pl.col("entered_ns").is_between(ends[0], ends[-1], closed="left"))
    began = times["CONNECT"][0]
    [restored, *_] = [*recording.events.filter(kind="change", detail=f"{name} up")["at_ns"], began]
    return Seen(
        pings_s=tuple((at - began) / NS for at in times["PINGREQ"]),
        connects_s=tuple((at - restored) / NS for at in times["CONNECT"][1:]),
        bytes_per_hour=int(frames["ip_bytes"].sum()) * 3600 * NS / (ends[-1] - ends[0]))


def table(live: Recording, sim: Recording, cases: Sequence[Case]) -> Iterator[str]:
    """Every case of every library, in Markdown."""
    yield ("| case | client | PINGREQ | s between two, mean (least to most) | connects, s after the outage | "
           "kB/h both ways | difference (± 2 %) |")
    yield "|---|---|---:|---|---:|---:|---:|"
    for case, library in itertools.product(cases, LIBRARIES):
        theirs = seen(live, case, library, "theirs")
        setting = "" if library == "libmosquitto" else ', `ping = "interval"`'
        rows = {library: theirs, f"ours{setting}": seen(live, case, library, "ours"),
                f"ours{setting}, simulated": seen(sim, case, library, "ours")}
        for client, of in rows.items():
            difference = of.bytes_per_hour / theirs.bytes_per_hour - 1
            told = "" if of is theirs or case.outage else f"{difference:+.1%}".replace("%", " %")
            marked = f"**{told}**" if told and abs(difference) > BOUND else told
            back = ", ".join(f"{at:.1f}" for at in of.connects_s) if case.outage else ""
            volume = "" if case.outage else f"{of.bytes_per_hour / 1000:.1f}"
            yield (f"| {case.words} | {client} | {len(of.pings_s)} | {_intervals(case, of)} | {back} | {volume} | "
                   f"{marked} |")


def _intervals(case: Case, of: Seen) -> str:
    """Without the gap that the outage makes."""
    lengths = [length for length in of.intervals_s if not case.outage or length < OUTAGE_S[1]]
    return f"{fmean(lengths):.2f} ({min(lengths):.2f} to {max(lengths):.2f})" if lengths else "none"


def run(cases: Sequence[Case], seconds: int, backend: str, directory: Path) -> Recording:
    """The cases performed, in a new directory."""
    outcome = perform(Job(compile_plan(parse_values(scenario(cases, seconds, backend))), directory), lambda line: None)
    if outcome.verdict != "complete":
        raise SystemExit(f"the {backend} run: {outcome.reason}")
    return Recording.open(directory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=660, help="how long clients are watched; 120 with the outage")
    parser.add_argument("--only", default="", help="a part of the names of cases: " + ", ".join(
        case.name for case in CASES))
    parser.add_argument("--out", type=Path, help="write the table there, and its reading below")
    arguments = parser.parse_args()
    cases = [case for case in CASES if arguments.only in case.name]
    with tempfile.TemporaryDirectory() as scratch:
        live, sim = (run(cases, arguments.seconds, backend, Path(scratch, backend)) for backend in ("live", "sim"))
        text = "\n".join(table(live, sim, cases))
    print(text)
    if arguments.out:
        arguments.out.write_text(f"{HEAD}\n{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
