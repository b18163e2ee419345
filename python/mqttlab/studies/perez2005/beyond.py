"""What goes beyond perez2005: one thing changed alone where a claim does not hold, and its future work.

- *One thing alone*: a cell of its tables with another seed, a least retransmission timeout of 1 ms, without MQTT's
  repeats, at another rate, in other segments, with another topic for the subscribers of one topic, or with
  more of the frames lost in a bad channel.
- *More stations*: 20 to 500 stations on 802.11b, half of them publishers of 200 B at QoS 0 to a topic each, 20 messages
  a second together, and 100 stations at higher rates; stations that walk about, all in reach of each other or in a
  network that just reaches its corners; and 200 and 500 clients on Ethernet, 10 messages a second of each publisher.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mqttlab.studies.perez2005.experiment import (
    BURSTY,
    CORNERS_IN_REACH,
    MEAN,
    Effort,
    Ethernet,
    Measured,
    Wifi,
    words,
)
from mqttlab.studies.table import Cell

ALONE, STATIONS, FIGURE = "one thing alone", "more stations", "figure 5.3"
SEEDS = (2, 3, 4, 5)
Change = Literal["seed", "least timeout", "no repeats", "rate", "topic", "segment", "loss"]


@dataclass(frozen=True, kw_only=True)
class Altered:
    """A cell with one thing changed."""

    base: Ethernet | Wifi
    change: Change
    value: int = 0
    """The seed, messages of a publisher a second, bytes of a segment, or percent of frames lost in a bad state."""

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        return f"{self.base.name}-{self.change.replace(' ', '-')}" + (f"-{self.value}" if self.value else "")

    @property
    def words(self) -> str:
        """What is changed, and of what."""
        told = {"seed": f"seed {self.value}", "least timeout": "least timeout 1 ms", "no repeats": "MQTT never repeats",
                "rate": f"{self.value} a second", "topic": "one topic is z", "segment": f"MSS {self.value} B",
                "loss": f"{self.value} % lost in a bad state"}
        return f"{words(self.base)}, {told[self.change]}"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        values = self.base.scenario(effort)
        values["name"] = f"perez2005-{self.name}"[:40]
        if self.change == "seed":
            values["seed"] = self.value
        elif self.change in ("least timeout", "segment"):
            stack = {"rto_min": "1 ms"} if self.change == "least timeout" else {"mss": f"{self.value} B"}
            for host in values["hosts"].values():
                host["tcp"] = {**host["tcp"], **stack}
        elif self.change == "no repeats":
            values["mqtt"].pop("retry")
            values["broker"].pop("retry")
        elif self.change == "loss":
            values["radio"]["channel"]["loss_bad"] = f"{self.value} %"
        # What costs most is simulated no longer than the other crowded cells.
        if self.change == "segment" and math.isfinite(effort.crowded_s):
            values["phases"]["duration"] = f"{effort.crowded_s:g} s"
        for group in values["groups"]:
            if self.change == "rate" and "publish" in group:
                group["publish"]["rate"] = f"{self.value} /s"
            if self.change == "topic" and group["name"] == "subscriber-1":
                group["subscribe"] = [{**group["subscribe"][0], "filter": "z"}]
        return values


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Pairs of clients: each publisher has a topic, and a subscriber, of its own; QoS 0."""

    clients: int
    per_s: int
    """Messages of all publishers together."""
    medium: Literal["802.11b", "Ethernet"]
    walks: bool = False
    apart: bool = False
    """Whether a station is heard no farther than from the middle to a corner."""

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        more = f"{'-walking' if self.walks else ''}{'-apart' if self.apart else ''}"
        return f"crowd-{self.clients}-{self.per_s}-per-s-{self.medium}{more}"

    @property
    def words(self) -> str:
        """As the table names it."""
        walking = ", walking" if self.walks else ""
        return (f"{self.clients} clients on {self.medium}{walking}{', some out of range' if self.apart else ''}, "
                f"{self.per_s} messages a second together")

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        pairs = self.clients // 2
        values: dict[str, Any] = {
            "name": f"perez2005-{self.name}"[:40],
            "phases": {"duration": f"{effort.crowd_s:g} s", "warm_up": "10 s", "cool_down": "2 s"},
            "mqtt": {"keep_alive": "0 s"}, "broker": {"nagle": False, "max_queued": 0},
            "hosts": {name: {"count": pairs} for name in ("publisher", "subscriber")},
            "groups": [
                {"name": "publisher", "host": "publisher", "count": pairs, "nagle": False, "publish": {
                    "topic": "p/{client}", "payload": "200 B", "rate": f"{self.per_s / pairs:g} /s",
                    "arrival": "poisson"}},
                {"name": "subscriber", "host": "subscriber", "count": pairs, "nagle": False,
                 "subscribe": [{"filter": "p/{client}"}]},
            ],
            "recording": {"packets": False},
        }
        if self.medium == "Ethernet":
            cable = {"rate": "100 Mbit/s", "delay": "1 ms", "overhead": "18 B", "minimum_frame": "64 B"}
            values["trunk"] = {"up": cable, "down": cable}
            values["networks"] = [{"between": [name, "broker"], "link": "each", "up": cable, "down": cable}
                                  for name in ("publisher", "subscriber")]
        else:
            values["radio"] = {
                "standard": "b-11", "noise": "-110 dBm", "snir_data": "4 dB", "path_loss_exponent": 3.0,
                "area": "150 m x 150 m", "transmit_power": "7.78 dBm",
                "sensitivity": CORNERS_IN_REACH if self.apart else "-100 dBm",
                **({"mobility": {"speed": ["1 m/s", "2 m/s"]}} if self.walks else {})}
        return values


def _bursts(*, payload: int, qos: int, ber: float = 1e-4) -> Ethernet:
    return Ethernet(clients=2, payload=payload, ber=ber, p_bb=BURSTY, qos=qos, timestamps=False)


def least_timeouts(*, timestamps: bool) -> list[Altered]:
    """65 B at BER 1e-5 with a least timeout of 1 ms, by QoS."""
    return [Altered(base=Ethernet(clients=2, payload=65, ber=1e-5, p_bb=BURSTY, qos=qos, timestamps=timestamps),
                    change="least timeout") for qos in (0, 1, 2)]


def seeded(qos: int) -> list[Altered]:
    """30 B in bursts of errors with other seeds."""
    return [Altered(base=_bursts(payload=30, qos=qos), change="seed", value=seed) for seed in SEEDS]


def below_saturation(qos: int) -> Altered:
    """65 B in bursts of errors at 100 messages a second instead of 200."""
    return Altered(base=_bursts(payload=65, qos=qos), change="rate", value=100)


def without_repeats() -> Altered:
    """65 B in bursts of errors at QoS 2, where nothing is repeated but by TCP."""
    return Altered(base=_bursts(payload=65, qos=2), change="no repeats")


def quicker(per_s: int, *, rts: bool) -> Altered:
    """Three stations at QoS 2 in bad channels, at rates beyond the study's."""
    base = Wifi(clients=2, payload=30, mean_bad_ms=60, rts_cts=rts, qos=2, per_s=25)
    return Altered(base=base, change="rate", value=per_s)


def fuller(per_s: int) -> Altered:
    """21 stations without RTS/CTS, at rates beyond the study's."""
    base = Wifi(clients=20, payload=200, mean_bad_ms=0, rts_cts=False, qos=0, per_s=10)
    return Altered(base=base, change="rate", value=per_s)


def other_topic() -> Altered:
    """21 stations at QoS 1, where who has one topic has z instead of x."""
    return Altered(base=Wifi(clients=20, payload=200, mean_bad_ms=0, rts_cts=False, qos=1), change="topic")


def in_segments(mss: int) -> Altered:
    """71 B in bursts of errors at QoS 0 for 20 clients, in segments of this size."""
    base = Ethernet(clients=20, payload=71, ber=1e-4, p_bb=BURSTY, qos=0)
    return Altered(base=base, change="segment", value=mss)


def losing(percent: int, *, rts: bool) -> Altered:
    """21 stations, 1000 B at QoS 1, whose bad channels lose this many frames in a hundred instead of 50."""
    base = Wifi(clients=20, payload=1000, mean_bad_ms=120, rts_cts=rts, qos=1)
    return Altered(base=base, change="loss", value=percent)


ONE_MESSAGE = 88
"""The segment that a message of 71 B fills: 5 B of MQTT's header, and 12 of TCP's timestamps."""
QUICKER, FULLER, LOSING = (33, 50), (15,), (70, 100)
RISING = [Ethernet(clients=2, payload=30, ber=ber, p_bb=BURSTY, qos=qos, timestamps=False)
          for ber in (1e-5, 2e-5, 5e-5, 1e-4) for qos in (0, 1, 2)]
"""Figure 5.3."""
CROWDS = [*(Crowd(clients=clients, per_s=20, medium="802.11b") for clients in (20, 50, 100, 200, 500)),
          *(Crowd(clients=100, per_s=per_s, medium="802.11b") for per_s in (100, 200, 400)),
          *(Crowd(clients=100, per_s=20, medium="802.11b", walks=True, apart=apart) for apart in (False, True)),
          *(Crowd(clients=clients, per_s=5 * clients, medium="Ethernet") for clients in (200, 500))]
CHANGED = [*(case for stamps in (False, True) for case in least_timeouts(timestamps=stamps)),
           *(case for qos in (0, 1, 2) for case in seeded(qos)), *(below_saturation(qos) for qos in (0, 2)),
           without_repeats(), *(quicker(per_s, rts=rts) for per_s in QUICKER for rts in (False, True)),
           *(fuller(per_s) for per_s in FULLER), other_topic(),
           *(in_segments(mss) for mss in (536, ONE_MESSAGE)),
           *(losing(percent, rts=rts) for percent in LOSING for rts in (False, True))]


TABLES: Mapping[str, Sequence[Ethernet | Altered | Crowd]] = {FIGURE: RISING, ALONE: CHANGED, STATIONS: CROWDS}


def compare(results: Mapping[str, Measured]) -> list[Cell]:
    """Mean delays, for which the study prints nothing."""
    cells = []
    for table, cases in TABLES.items():
        for case in cases:
            if case.name in results:
                ours = results[case.name]
                place = words(case) if isinstance(case, Ethernet) else case.words
                cells.append(Cell(table=table, place=place, metric=MEAN, published=float("nan"),
                                  ours=ours.delay_ms, half=None if ours.grows else ours.half_ms,
                                  never=ours.never_percent))
    return cells
