"""What goes beyond perez2005: one thing changed alone where a claim does not hold, and its future work.

- *One thing alone*: a cell of its tables with another seed, without MQTT's repeats, at another rate, with another topic
  for the subscribers of one topic, or with more of the frames lost in a bad channel.
- *Rates and arrivals*, its future work: 30 B of the small Ethernet at three rates, by three laws of arrival.
- *Readings*: what the study leaves open, or this program has otherwise, set the other way.
- *More stations*: 20 to 500 stations on 802.11b, half of them publishers of 200 B at QoS 0 to a topic each, 20 messages
  a second together, and 100 stations at higher rates; stations that walk about, all in reach of each other or in a
  network that just reaches its corners; and 200 and 500 clients on Ethernet, 10 messages a second of each publisher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mqttlab.studies.perez2005.experiment import (
    BURSTY,
    CORNERS_IN_REACH,
    FIRST_MSS,
    LATER_MSS,
    MEAN,
    OF_TOPIC_AND_QOS,
    Effort,
    Ethernet,
    Measured,
    Wifi,
    good_to_bad_of,
    words,
)
from mqttlab.studies.table import Cell

ARRIVALS = "rates and arrivals"
ALONE, STATIONS, READINGS = "one thing alone", "more stations", "readings"
BURSTS, BY_ERRORS = "figure 5.2", "figure 5.5"
RISE, LOADS, LARGER = "figure 5.3", "figure 5.10", "figures 5.13 and 5.14"
TIMEOUTS = "figure 5.4"
SEEDS = (2, 3, 4, 5)
Change = Literal["seed", "no repeats", "rate", "topic", "loss", "no switch", "delayed ACK", "Nagle", "bad bits",
                 "mean BER"]


@dataclass(frozen=True, kw_only=True)
class Altered:
    """A cell with one thing changed."""

    base: Ethernet | Wifi
    change: Change
    value: int = 0
    """The seed, messages of a publisher a second, or percent of frames or bits that are wrong in a bad state."""

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        return f"{self.base.name}-{self.change.replace(' ', '-')}" + (f"-{self.value}" if self.value else "")

    @property
    def words(self) -> str:
        """What is changed, and of what."""
        told = {"seed": f"seed {self.value}", "no repeats": "MQTT never repeats", "rate": f"{self.value} a second",
                "topic": "one topic is z", "loss": f"{self.value} % lost in a bad state",
                "no switch": "no switch between client and broker", "delayed ACK": "TCP delays acknowledgements",
                "Nagle": "Nagle's algorithm on", "bad bits": f"{self.value} % of the bits wrong in a bad state",
                "mean BER": "BER the mean of section 4.3"}
        return f"{words(self.base)}, {told[self.change]}"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        values = self.base.scenario(effort)
        values["name"] = f"perez2005-{self.name}"[:40]
        if self.change == "seed":
            values["seed"] = self.value
        elif self.change == "no repeats":
            values["mqtt"].pop("retry")
            values["broker"].pop("retry")
        elif self.change == "loss":
            values["radio"]["channel"]["loss_bad"] = f"{self.value} %"
        elif self.change == "no switch":
            values.pop("trunk")
        elif self.change == "delayed ACK":
            for host in values["hosts"].values():
                host["tcp"] = {**host["tcp"], "delayed_ack": True}
        elif self.change == "Nagle":
            values["broker"]["nagle"] = True
        elif self.change in ("bad bits", "mean BER"):
            changed = {"error_bad": f"{self.value} %"} if self.change == "bad bits" else self._mean_ber()
            for cable in (values["trunk"], *values["networks"]):
                for way in ("up", "down"):
                    cable[way] = {**cable[way], "bit_errors": {**cable[way]["bit_errors"], **changed}}
        for group in values["groups"]:
            if self.change == "rate" and "publish" in group:
                group["publish"]["rate"] = f"{self.value} /s"
            if self.change == "Nagle":
                group["nagle"] = True
            if self.change == "topic" and group["name"] == "subscriber-1":
                group["subscribe"] = [{**group["subscribe"][0], "filter": "z"}]
        return values

    def _mean_ber(self) -> dict[str, str]:
        """The channel whose mean bit error rate is what the study calls BER."""
        assert isinstance(self.base, Ethernet)
        return {"good_to_bad": f"{100 * good_to_bad_of(self.base.ber, self.base.p_bb):.12g} %"}


@dataclass(frozen=True, kw_only=True)
class Arriving:
    """30 B in bursts of bit errors at another rate, by another law of arrival, with the same mean."""

    per_s: int
    law: Literal["constant", "poisson", "burst"]
    qos: int

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        return f"arriving-{self.law}-{self.per_s}-per-s-qos{self.qos}"

    @property
    def words(self) -> str:
        """As the table names it."""
        law = f"ten at once, {self.per_s // 10} times a second" if self.law == "burst" else f"{self.per_s} a second"
        return f"30 B, BER 1e-05, p_BB 0.8, QoS {self.qos}, {law}, {self.law}"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        values = bursts(payload=30, qos=self.qos, mss=FIRST_MSS, ber=1e-5).scenario(effort)
        values["name"] = f"perez2005-{self.name}"[:40]
        for group in values["groups"]:
            if "publish" in group:
                group["publish"] |= {"rate": f"{self.per_s} /s", "arrival": self.law}
                if self.law == "burst":
                    del group["publish"]["rate"]
                    group["publish"]["burst"] = {"size": 10, "every": f"{10_000 / self.per_s:g} ms"}
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
            "mqtt": {"keep_alive": "0 s", "ping": "sent"}, "broker": {"nagle": False, "max_queued": 0},
            "hosts": {name: {"count": pairs} for name in ("publisher", "subscriber")},
            "groups": [
                {"name": "publisher", "host": "publisher", "count": pairs, "nagle": False, "publish": {
                    "topic": "p/{client}", "payload": "200 B", "rate": f"{self.per_s / pairs:g} /s",
                    "arrival": "poisson"}},
                {"name": "subscriber", "host": "subscriber", "count": pairs, "nagle": False,
                 "subscribe": [{"filter": "p/{client}"}]},
            ],
            "recording": {"detail": "messages"},
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


def bursts(*, payload: int, qos: int, mss: int, ber: float = 1e-4, timestamps: bool = False) -> Ethernet:
    """A scenario of the small Ethernet in bursts of bit errors."""
    return Ethernet(clients=2, payload=payload, ber=ber, p_bb=BURSTY, qos=qos, mss=mss, timestamps=timestamps)


def with_seeds(base: Ethernet | Wifi) -> list[Ethernet | Wifi | Altered]:
    """A scenario with five seeds: its own, and four more."""
    return [base, *(Altered(base=base, change="seed", value=seed) for seed in SEEDS)]


def below_saturation(qos: int) -> Altered:
    """65 B in bursts of errors at 100 messages a second instead of 200."""
    return Altered(base=bursts(payload=65, qos=qos, mss=LATER_MSS), change="rate", value=100)


def without_repeats() -> Altered:
    """65 B in bursts of errors at QoS 2, where nothing is repeated but by TCP."""
    return Altered(base=bursts(payload=65, qos=2, mss=LATER_MSS), change="no repeats")


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


def losing(percent: int, *, rts: bool) -> Altered:
    """21 stations, 1000 B at QoS 1, whose bad channels lose this many frames in a hundred instead of 50."""
    base = Wifi(clients=20, payload=1000, mean_bad_ms=120, rts_cts=rts, qos=1)
    return Altered(base=base, change="loss", value=percent)


def as_read(qos: int, change: Change | None = None, value: int = 0) -> Ethernet | Altered:
    """30 B in single errors, as table 5.2 has it, or one of its readings set the other way."""
    base = single_errors(qos)
    return base if change is None else Altered(base=base, change=change, value=value)


def single_errors(qos: int) -> Ethernet:
    """30 B in single errors, as table 5.2 has it."""
    return Ethernet(clients=2, payload=30, ber=1e-5, p_bb=0.1, qos=qos, mss=FIRST_MSS, timestamps=False)


def read_otherwise(qos: int) -> dict[str, Ethernet | Altered]:
    """Table 5.2's scenario with each of its readings set the other way, alone."""
    base = single_errors(qos)
    return {"payload": replace(base, payload=base.payload + OF_TOPIC_AND_QOS), "mss": replace(base, mss=LATER_MSS),
            **{change: as_read(qos, change) for change in ("no switch", "delayed ACK", "Nagle")},
            "bad bits": as_read(qos, "bad bits", 50)}


def by_definition(case: Ethernet) -> Altered:
    """A cell with errors where BER is the mean bit error rate, as section 4.3 defines it."""
    return Altered(base=case, change="mean BER")


WITH_ERRORS: Mapping[str, Sequence[Ethernet]] = {
    "table 5.2": [single_errors(qos) for qos in (0, 1, 2)],
    "table 5.4": [bursts(payload=65, qos=qos, mss=LATER_MSS) for qos in (0, 1, 2)],
    "figure 5.5": [Ethernet(clients=20, payload=50, ber=1e-4, p_bb=0.1, qos=qos) for qos in (0, 1, 2)],
    "table 5.5": [Ethernet(clients=20, payload=50, ber=1e-4, p_bb=BURSTY, qos=qos) for qos in (0, 1, 2)]}
"""Cells with errors by their tables, which are run by both readings of BER."""
QUICKER, FULLER, LOSING = (33, 50), (15,), (70, 100)
RISING = [bursts(payload=30, qos=qos, ber=ber, mss=FIRST_MSS) for ber in (1e-5, 2e-5, 5e-5, 1e-4) for qos in (0, 1, 2)]
"""Figure 5.3."""
IN_BURSTS = [replace(bursts(payload=30, qos=0, mss=FIRST_MSS), p_bb=p_bb) for p_bb in (0.1, BURSTY)]
"""Figure 5.2."""
ISOLATED = [Ethernet(clients=20, payload=payload, ber=ber, p_bb=0.1, qos=qos)
            for payload in (50, 200) for ber in (0.0, 1e-5, 1e-4) for qos in (0, 1, 2)]
"""Figure 5.5."""
LOADED = [Wifi(clients=2, payload=payload, mean_bad_ms=60, rts_cts=True, qos=qos)
          for payload in (30, 65, 100, 200) for qos in (0, 1, 2)]
"""Figure 5.10."""
LARGE = [Wifi(clients=20, payload=payload, mean_bad_ms=120, rts_cts=True, qos=qos)
         for payload in (200, 800) for qos in (0, 2)]
"""Figures 5.13 and 5.14; their captions say 1000 B, their text 800 B."""
STAMPED = [case for stamps in (False, True) for qos in (0, 1, 2)
           for case in with_seeds(bursts(payload=65, qos=qos, mss=LATER_MSS, timestamps=stamps))]
"""Figure 5.4, with five seeds."""
OTHER_MSS = [case for qos in (0, 1, 2) for case in with_seeds(bursts(payload=30, qos=qos, mss=LATER_MSS))]
"""What 30 B in bursts come to at the MSS of section 5.2.2."""
LAWS: Sequence[Literal["constant", "poisson", "burst"]] = ("constant", "poisson", "burst")
ARRIVING = [Arriving(per_s=per_s, law=law, qos=qos) for qos in (0, 2) for per_s in (100, 200, 400) for law in LAWS]
CROWDS = [*(Crowd(clients=clients, per_s=20, medium="802.11b") for clients in (20, 50, 100, 200, 500)),
          *(Crowd(clients=100, per_s=per_s, medium="802.11b") for per_s in (100, 200, 400)),
          *(Crowd(clients=100, per_s=20, medium="802.11b", walks=True, apart=apart) for apart in (False, True)),
          *(Crowd(clients=clients, per_s=5 * clients, medium="Ethernet") for clients in (200, 500))]
CHANGED = [*(case for qos in (0, 1, 2) for case in with_seeds(bursts(payload=30, qos=qos, mss=FIRST_MSS))[1:]),
           *(case for qos in (0, 1, 2) for case in with_seeds(bursts(payload=65, qos=qos, mss=FIRST_MSS))[1:]),
           *(below_saturation(qos) for qos in (0, 2)), without_repeats(),
           *(quicker(per_s, rts=rts) for per_s in QUICKER for rts in (False, True)),
           *(fuller(per_s) for per_s in FULLER), other_topic(),
           *(losing(percent, rts=rts) for percent in LOSING for rts in (False, True))]
READ = [*OTHER_MSS, *(case for qos in (0, 1, 2) for case in read_otherwise(qos).values()),
        *(by_definition(case) for cases in WITH_ERRORS.values() for case in cases)]


TABLES: Mapping[str, Sequence[Ethernet | Wifi | Altered | Arriving | Crowd]] = {
    BURSTS: IN_BURSTS, RISE: RISING, TIMEOUTS: STAMPED, BY_ERRORS: ISOLATED, LOADS: LOADED, LARGER: LARGE,
    ALONE: CHANGED, ARRIVALS: ARRIVING, READINGS: READ, STATIONS: CROWDS}


ALIASES: Mapping[str, Sequence[str]] = {
    "figure 4.3": ("figures 4.3 and 4.4",), "figure 4.4": ("figures 4.3 and 4.4",),
    "table 4.3": ("figures 4.3 and 4.4",), "figure 5.6": ("5.5",), "figure 5.7": ("5.5",), "figure 5.11": ("5.17",),
    "figure 5.12": ("5.17",), "figure 5.13": (LARGER,), "figure 5.14": (LARGER,), "figure 5.15": ("5.18",),
    "figure 5.16": ("5.18",)}
"""Figures by the tables that have their values; 5.1, 5.8 and 5.9 are drawings."""


def compare(results: Mapping[str, Measured]) -> list[Cell]:
    """Mean delays, for which the study prints nothing."""
    cells = []
    for table, cases in TABLES.items():
        for case in cases:
            if case.name in results:
                ours = results[case.name]
                place = words(case) if isinstance(case, Ethernet | Wifi) else case.words
                cells.append(Cell(table=table, place=place, metric=MEAN, published=float("nan"),
                                  ours=ours.delay_ms, half=None if ours.grows else ours.half_ms,
                                  never=ours.never_percent))
                if table == TIMEOUTS:
                    cells.append(Cell(table=table, place=place, metric="mean timeout at the publisher, ms",
                                      published=float("nan"), ours=ours.rto_ms))
    return cells
