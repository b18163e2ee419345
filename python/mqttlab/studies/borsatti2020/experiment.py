"""D. Borsatti et al., From IoT to Cloud, 2020: publisher and subscriber on two separate links to the broker.

100 messages of 20 B a second. Readings chosen where the study leaves something open:

- The spread of the delays is not printed: a tenth of the mean here, and frames stay in order, as one TCP connection
  over one interface has them. Both are factors of their own.
- The in-flight windows are unlimited: with the default of 20 a publisher at QoS 2 cannot keep up beyond 20 messages in
  two round trips, and the study's delays stay finite. The default is a factor of its own.
- "RTO so high that it never fires" is a least timeout of 10 s; the kernel's default of 200 ms is a factor of its own.
- Nagle's algorithm is on, as in Mosquitto and Paho by default; the study does not name it.
- A delivery at QoS 2 counts at its PUBREL, as Paho counts it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.studies.delays import Delays, delays
from mqttlab.studies.study import of_tables
from mqttlab.studies.table import Cell

PERIOD_MS = 10.0
LINKS_MS = (2, 5, 10, 15, 20, 25, 30, 40, 50, 60)
QOS = (0, 1, 2)
LAWS = ("constant", "normal", "pareto", "paretonormal")
SPREAD = 0.1
"""Standard deviation of a link's delay over its mean."""
# The study's sum, and two more.
PAIRS = {20: ((0, 20), (2, 18), (5, 15), (10, 10), (15, 5), (18, 2), (20, 0)),
         40: ((0, 40), (10, 30), (20, 20), (30, 10), (40, 0)),
         100: ((0, 100), (25, 75), (50, 50), (75, 25), (100, 0))}
# IP and TCP headers with timestamps.
HEADER_BYTES = 52


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How many messages to send."""

    messages: int


THOROUGH, QUICK = Effort(messages=10_000), Effort(messages=1_000)


@dataclass(frozen=True, kw_only=True)
class Links:
    """Two links, and what both ends do."""

    publisher_ms: int
    subscriber_ms: int
    qos: int
    law: str = "normal"
    nagle: bool = True
    delayed_ack: bool = True
    window: Literal["unlimited", "20"] = "unlimited"
    rto: Literal["pinned", "default"] = "pinned"
    spread: float = SPREAD
    """Standard deviation of a link's delay over its mean."""
    in_order: bool = True
    """Whether frames stay in order; netem's do not, unless their delays are made so."""

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        words = [f"{self.publisher_ms}-{self.subscriber_ms}ms", self.law, f"qos{self.qos}"]
        words += [word for word, given in (
            ("nagle-off", not self.nagle), ("acknowledged-at-once", not self.delayed_ack),
            ("window-20", self.window == "20"), ("rto-default", self.rto == "default"),
            (f"spread-{self.spread:g}".replace(".", "_"), self.spread != SPREAD),
            ("any-order", not self.in_order)) if given]
        return "-".join(words)

    @property
    def end_to_end_ms(self) -> int:
        """The mean delay of both links."""
        return self.publisher_ms + self.subscriber_ms

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        unlimited = self.window == "unlimited"
        tcp: dict[str, Any] = {"profile": "linux-2018"}
        if self.rto == "pinned":
            tcp |= {"rto_min": "10 s", "delayed_ack_max": "40 ms"}
        if not self.delayed_ack:
            tcp |= {"delayed_ack": False}
        return {
            "name": f"borsatti2020-{self.name}"[:40],
            "phases": {"warm_up": "2 s", "duration": f"{effort.messages / 100:g} s", "cool_down": "30 s"},
            "mqtt": {"max_inflight": 65_535 if unlimited else 20, "keep_alive": "0 s", "ping": "sent"},
            "broker": {"nagle": self.nagle, "max_inflight": 0 if unlimited else 20,
                       "max_queued": 0 if unlimited else 1000},
            "hosts": {name: {"tcp": tcp} for name in ("publisher", "subscriber", "broker")},
            "networks": [{"between": ["publisher", "broker"], **self._link(self.publisher_ms)},
                         {"between": ["subscriber", "broker"], **self._link(self.subscriber_ms)}],
            "groups": [
                {"name": "publisher", "host": "publisher", "nagle": self.nagle, "publish": {
                    "topic": "measurements", "qos": self.qos, "payload": "20 B", "rate": "100 /s"}},
                {"name": "subscriber", "host": "subscriber", "nagle": self.nagle,
                 "subscribe": [{"filter": "measurements", "qos": self.qos}]},
            ],
        }

    def _link(self, mean_ms: int) -> dict[str, Any]:
        link: dict[str, Any] = {"delay": f"{mean_ms} ms"}
        if self.law != "constant" and mean_ms > 0:
            link |= {"jitter": f"{self.spread * mean_ms:g} ms", "distribution": self.law}
            link |= {} if self.in_order else {"keep_order": False}
        return {"up": link, "down": link}


def symmetric(each_ms: int, qos: int, **more: Any) -> Links:
    """Two links alike."""
    return Links(publisher_ms=each_ms, subscriber_ms=each_ms, qos=qos, **more)


ACCESS = {"5G eMBB": "5g-embb", "5G URLLC": "5g-urllc", "5G mMTC": "5g-mmtc"}
SITES = ("access", "edge", "core")


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A device on a 5G access, an application in the core cloud, and a broker at one of three sites between them."""

    access: str
    """A named network model."""
    site: str
    qos: int

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        return f"{self.access}-broker-at-{self.site}-qos{self.qos}"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values: device, access site, edge (2 ms on), core (18 ms on)."""
        both = {"up": {"delay": "2 ms"}, "down": {"delay": "2 ms"}}
        far = {"up": {"delay": "18 ms"}, "down": {"delay": "18 ms"}}
        near = {"up": {"delay": "0 ms"}, "down": {"delay": "0 ms"}}
        tcp = {"profile": "linux"}
        return {
            "name": f"borsatti2020-{self.name}"[:40],
            "phases": {"warm_up": "2 s", "duration": f"{effort.messages / 100:g} s", "cool_down": "30 s"},
            "mqtt": {"max_inflight": 65_535, "keep_alive": "0 s", "ping": "sent"},
            "broker": {"nagle": False, "max_inflight": 0, "max_queued": 0},
            "hosts": {**{name: {"tcp": tcp} for name in ("device", "application", "broker")},
                      **{name: {"forwards": True} for name in SITES}},
            "networks": [
                {"between": ["device", "access"], "model": self.access},
                {"between": ["access", "edge"], **both}, {"between": ["edge", "core"], **far},
                {"between": ["application", "core"], **near}, {"between": ["broker", self.site], **near},
            ],
            "groups": [
                {"name": "publisher", "host": "device", "nagle": False, "publish": {
                    "topic": "measurements", "qos": self.qos, "payload": "20 B", "rate": "100 /s"}},
                {"name": "subscriber", "host": "application", "nagle": False,
                 "subscribe": [{"filter": "measurements", "qos": self.qos}]},
            ],
        }


Case = Links | Placed
BASE = [symmetric(each, qos) for each in LINKS_MS for qos in QOS]
SPREAD_LINKS_MS = (2, 20, 60)
SPREADS = [symmetric(each, qos, spread=spread, in_order=in_order) for each in SPREAD_LINKS_MS for qos in QOS
           for spread in (SPREAD, 0.3, 0.5) for in_order in (True, False) if (spread, in_order) != (SPREAD, True)]
SPREAD_AT_TWO = [case for case in SPREADS if (case.publisher_ms, case.qos) == (2, 2)]
"""What the study does not print: the spread of the delays, and whether frames overtake each other."""
FAMILIES: dict[str, Sequence[Case]] = {
    "figure 3": [*BASE],
    "figure 3, Nagle off": [replace(case, nagle=False) for case in BASE],
    "figure 3, acknowledged at once": [replace(case, delayed_ack=False) for case in BASE
                                       if case.publisher_ms in (5, 20, 60)],
    "figure 3, in-flight 20": [replace(case, window="20") for case in BASE if case.qos > 0],
    "figure 3, default RTO": [replace(case, rto="default") for case in BASE],
    "spread and order": SPREADS,
    "laws": [symmetric(each, qos, law=law) for law in LAWS for each in (2, 20, 60) for qos in QOS],
    "figure 4": [*BASE],
    "figure 5": [Links(publisher_ms=p, subscriber_ms=s, qos=qos) for pairs in PAIRS.values() for p, s in pairs
                 for qos in QOS],
    "figure 5, Nagle off": [Links(publisher_ms=p, subscriber_ms=s, qos=qos, nagle=False)
                            for p, s in PAIRS[20] for qos in QOS],
    "placements": [Placed(access=access, site=site, qos=qos) for access, site, qos in
                   itertools.product(ACCESS.values(), SITES, QOS)],
}
"""The study's figures and what goes beyond them, by the name of the table that holds each."""


ALIASES = {"figure 3a": ("figure 3",), "figure 3b": ("figure 3",), "table 3": ("figure 3",), "table 4": ("figure 4",),
           "table 5": ("figure 5",)}
"""The study has figures alone; "table" is what their values are in here."""


def cases(published: Path, tables: Sequence[str]) -> list[Case]:
    """The scenarios behind these tables; without tables, all."""
    return of_tables(FAMILIES, tables)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What is kept of a run."""

    delays: Delays
    packets_per_segment: float
    """MQTT packets over segments with payload, both directions of both connections."""
    publish_per_segment: float
    """PUBLISH packets in a segment that carries any."""
    largest_segment_bytes: float
    """TCP payload of the largest one."""
    retransmissions: float
    spurious: float
    """Of these, those whose original had arrived."""


def measure(recording: Recording) -> Measured:
    """Delays, and what TCP made of the packets."""
    whole = metrics.network(recording, ["run"])
    row = whole.row(0, named=True) if not whole.is_empty() else {}
    segments = row.get("segments_with_payload") or 0
    return Measured(
        delays=delays(recording),
        packets_per_segment=row["mqtt_packets"] / segments if segments else float("nan"),
        publish_per_segment=row.get("publish_per_segment_mean") or float("nan"),
        largest_segment_bytes=_largest(recording),
        retransmissions=float(row.get("retransmissions") or 0),
        spurious=float(row.get("retransmissions_spurious") or 0),
    )


def _largest(recording: Recording) -> float:
    packets = recording.scan("packets")
    if "payload_bytes" not in packets.collect_schema():
        return float("nan")
    found = recording.collect(packets.select(pl.col("payload_bytes").max())).item()
    return float("nan") if found is None else float(found)


def derived(case: Links) -> tuple[float, float]:
    """Bounds of the mean latency in end-to-end delays that follow from the protocols alone, without any fitted number.

    A message crosses each link once at QoS 0 and 1, and three times at QoS 2 (PUBLISH, PUBREC, PUBREL; the broker
    forwards at the PUBREL, and the subscriber delivers at its own). Without Nagle's algorithm nothing waits: one and
    three end-to-end delays, both bounds alike.

    With it, a small segment waits until the last one is acknowledged. A link whose round trip is shorter than the
    period is idle when the next message comes. Otherwise segments leave once a round trip, each with all that came
    meanwhile: a message comes at any time of it, and waits half of it, one link delay, on the average. What it causes
    further on comes together with the acknowledgement that lets it go, or just behind: the first packet of a segment's
    answers leaves at once, and the others wait for its acknowledgement, up to a round trip, two link delays.
    """
    crossings = 3 if case.qos == 2 else 1
    links = (case.publisher_ms, case.subscriber_ms)
    least = most = float(crossings * sum(links))
    if case.nagle:
        for number, link_ms in enumerate(links):
            if 2 * link_ms < PERIOD_MS:
                continue
            # The publisher's own message, which comes at any time; without a wait there, the broker's.
            first = number == 0 or 2 * links[0] < PERIOD_MS
            least += link_ms if first else 0
            most += link_ms + (crossings - 1) * 2 * link_ms if first else crossings * 2 * link_ms
    return least / case.end_to_end_ms, most / case.end_to_end_ms


def compare(published: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """Ours for every point; the study prints its figures' values only in words, which are claims."""
    cells: list[Cell] = []
    for table, family in FAMILIES.items():
        for case in family:
            if case.name not in results:
                continue
            ours = results[case.name]
            if table == "figure 4":
                cells += _segments(table, words(case), ours)
            else:
                cells += _latency(table, case, ours)
    return cells


def _latency(table: str, case: Case, ours: Measured) -> Iterable[Cell]:
    found, none = ours.delays, float("nan")
    place = words(case)
    yield Cell(table=table, place=place, metric="mean latency, ms", published=none, ours=found.mean_ms,
               half=found.half_ms, never=found.never_percent)
    yield Cell(table=table, place=place, metric="standard deviation, ms", published=none, ours=found.std_ms)
    if isinstance(case, Links):
        yield Cell(table=table, place=place, metric="mean latency, end-to-end delays", published=none,
                   ours=factor(case, ours), half=None if found.half_ms is None else found.half_ms / case.end_to_end_ms)
        for word, bound in zip(("least", "most"), derived(case), strict=True):
            yield Cell(table=table, place=place, metric=f"the same, derived, {word}", published=none, ours=bound)
    if isinstance(case, Links) and case.rto == "default":
        yield Cell(table=table, place=place, metric="segments sent again, of which spurious", published=none,
                   ours=ours.spurious)


def _segments(table: str, place: str, ours: Measured) -> Iterable[Cell]:
    for metric, value in (("MQTT packets in a segment", ours.packets_per_segment),
                          ("PUBLISH packets in a segment with any", ours.publish_per_segment),
                          ("largest segment, B", ours.largest_segment_bytes)):
        yield Cell(table=table, place=place, metric=metric, published=float("nan"), ours=value)


def factor(case: Links, ours: Measured) -> float:
    """The mean latency in end-to-end delays."""
    return ours.delays.mean_ms / case.end_to_end_ms


def words(case: Case) -> str:
    """A scenario as the tables name it."""
    if isinstance(case, Placed):
        title = next(words for words, model in ACCESS.items() if model == case.access)
        return f"{title}, broker at the {case.site}, QoS {case.qos}"
    parts = [f"{case.publisher_ms} and {case.subscriber_ms} ms", case.law, f"QoS {case.qos}"]
    parts += [f"spread {case.spread:g}"] if case.spread != SPREAD else []
    parts += ["frames may overtake"] if not case.in_order else []
    return ", ".join(parts)
