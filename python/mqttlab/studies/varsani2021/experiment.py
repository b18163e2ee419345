"""B. J. Varsani, Edge Class MQTT Broker Pipeline Performance Evaluation, 2021: one publisher, one subscriber.

Two ESP8266 on Wi-Fi and a Raspberry Pi with Mosquitto behind its router. Readings chosen where the study leaves
something open:

- The microcontrollers have lwIP as their Arduino core sets it: MSS 536, a send buffer of 2 segments, a receive window
  of 4, Nagle's algorithm on. They acknowledge at once: with lwIP's timer of 250 ms ten messages would take 200 ms
  where the study's table 1 has 24 (one of the things that are changed alone). The Wi-Fi carries 20 Mbit/s.
- One number is fitted, on one cell: :data:`HOST_TIME`, what host and radio add to a frame in each direction, so that
  one message of 1 B to one topic takes the printed 8 ms. All else is predicted.
- "Latency of n topics" is the time from the first publish of a burst of n messages until the last has arrived.
- Plain subscriptions are a list of filters up to 100 topics; beyond, one filter stands for them.
- The first burst of a connection does not count, unless it is the only one: it waits behind the handshake.
- The broker's queues are unlimited: the study's subscribers lose nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.statistics import mean_interval
from mqttlab.studies.delays import Delays, delays
from mqttlab.studies.study import number_of, of_tables, published_rows
from mqttlab.studies.table import Cell, as_printed

HOST_TIME = "3.92 ms"
"""Fitted on 1 B to one topic: 8 ms from publisher to subscriber are two of these, and what is known."""
PAYLOADS = (1, 64, 128, 512, 1024, 2048, 4096, 10_000)
INTERVALS_MS = (1, 100, 500, 1000, 2000, 10_000)
TOPICS = (1, 10, 100, 1000, 10_000)
FIRST = 50
Form = Literal["plain", "+", "#", "+ and #"]
FORMS: tuple[Form, ...] = ("plain", "+", "#", "+ and #")
FORM_WORDS: dict[Form, str] = {"plain": "plain", "+": "plus", "#": "hash", "+ and #": "both"}
FILTERS: dict[Form, str] = {"plain": "t/#", "+": "t/+/v", "#": "t/#", "+ and #": "+/+/#"}
PLAIN_MAX = 100


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How many messages and bursts to send."""

    messages: int
    bursts: int
    burst_bytes_max: float
    """Larger bursts are sent once."""


THOROUGH = Effort(messages=250, bursts=5, burst_bytes_max=200_000)
QUICK = Effort(messages=50, bursts=1, burst_bytes_max=100_000)


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """What both microcontrollers and the broker do: the factors that are varied one at a time."""

    host_time: str = HOST_TIME
    nagle: bool = True
    delayed_ack: bool = True
    """The broker's."""
    lwip_delays: bool = False
    """Whether the microcontrollers delay acknowledgements, by lwIP's timer of 250 ms."""
    initial_window: int | None = None
    stack: str = "microcontroller"
    per_message: str = ""
    """What each message takes at one place on its way, here the broker; nothing beyond the default when empty."""

    def tcp(self) -> dict[str, Any]:
        """The microcontrollers' TCP."""
        if self.stack != "microcontroller":
            return {"profile": self.stack}
        small = {"send_buffer": "2048 B", "receive_buffer": "2144 B", "delayed_ack": self.lwip_delays}
        more = {} if self.initial_window is None else {"initial_window": self.initial_window}
        return {"profile": "microcontroller", **small, **more}

    def parts(self) -> dict[str, Any]:
        """The parts of a scenario that all cases share."""
        link = {"rate": "20 Mbit/s", "delay": self.host_time, "overhead": "38 B"}
        service = {"service": {"per_packet": self.per_message, "per_copy": "0 s"}} if self.per_message else {}
        return {
            "hosts": {"publisher": {"tcp": self.tcp()}, "subscriber": {"tcp": self.tcp()},
                      "broker": {"tcp": {"profile": "linux", "delayed_ack": self.delayed_ack}}},
            "networks": [{"between": [name, "broker"], "up": link, "down": link} for name in
                         ("publisher", "subscriber")],
            "broker": {"nagle": self.nagle, "max_queued": 0, "max_inflight": 0, **service},
            "mqtt": {"keep_alive": "0 s", "ping": "sent", "max_queued": 2_000_000},
        }

    @property
    def words(self) -> str:
        """What differs from the study's setting; nothing where nothing does."""
        usual = Hosts()
        return "".join(f"-{word}" for word, differs in (
            ("nagle-off", self.nagle != usual.nagle), ("acknowledged-at-once", self.delayed_ack != usual.delayed_ack),
            ("lwip-delays", self.lwip_delays),
            (f"window-{self.initial_window}", self.initial_window != usual.initial_window),
            (self.stack, self.stack != usual.stack), ("time-a-message", self.per_message),
            ("no-host-time", self.host_time != usual.host_time)) if differs)


@dataclass(frozen=True, kw_only=True)
class Single:
    """One message after the other to one topic."""

    payload: int
    interval_ms: int = 1000
    qos: int = 0
    retain: bool = False
    hosts: Hosts = Hosts()

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        extra = f"-qos{self.qos}" if self.qos else ""
        return f"single-{self.payload}B-{self.interval_ms}ms{extra}{'-retain' if self.retain else ''}{self.hosts.words}"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        length_ms = max(self.interval_ms * effort.messages, 100)
        return {
            "name": f"varsani2021-{self.name}"[:40],
            "phases": {"duration": f"{length_ms:g} ms", "cool_down": "20 s"}, **self.hosts.parts(),
            "groups": [
                {"name": "publisher", "host": "publisher", "nagle": self.hosts.nagle, "publish": {
                    "topic": "t/0/v", "qos": self.qos, "retain": self.retain, "payload": f"{self.payload} B",
                    "interval": f"{self.interval_ms} ms", "start_phase": "synchronised"}},
                {"name": "subscriber", "host": "subscriber", "nagle": self.hosts.nagle,
                 "subscribe": [{"filter": "t/0/v", "qos": self.qos}]},
            ],
        }


@dataclass(frozen=True, kw_only=True)
class Burst:
    """A message to each of n topics at once, some times."""

    topics: int
    payload: int
    form: Form = "plain"
    qos: int = 0
    hosts: Hosts = Hosts()

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        extra = f"-qos{self.qos}" if self.qos else ""
        return f"burst-{self.topics}-{self.payload}B-{FORM_WORDS[self.form]}{extra}{self.hosts.words}"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        size_bytes = self.topics * (self.payload + 20)
        bursts = effort.bursts if size_bytes <= effort.burst_bytes_max else 1
        # Some 1000 bytes of a send buffer each 20 ms, at the slowest.
        every_s = 2 + size_bytes / 1000 * 0.02 + self.topics * 0.002
        filters = [f"t/{topic}/v" for topic in range(self.topics)]
        listed = self.form == "plain" and self.topics <= PLAIN_MAX
        return {
            "name": f"varsani2021-{self.name}"[:40],
            "phases": {"warm_up": f"{every_s:g} s" if bursts > 1 else "0 s", "duration": f"{bursts * every_s:g} s",
                       "cool_down": f"{every_s:g} s"}, **self.hosts.parts(),
            "groups": [
                {"name": "publisher", "host": "publisher", "nagle": self.hosts.nagle, "publish": {
                    "topic": "t/{topic}/v", "topics": self.topics, "qos": self.qos, "payload": f"{self.payload} B",
                    "arrival": "burst", "burst": {"size": self.topics, "every": f"{every_s:g} s"},
                    "start_phase": "synchronised"}},
                {"name": "subscriber", "host": "subscriber", "nagle": self.hosts.nagle, "subscribe": [
                    {"filter": one, "qos": self.qos} for one in (filters if listed else [FILTERS[self.form]])]},
            ],
            "recording": {"detail": "messages"},
        }


@dataclass(frozen=True, kw_only=True)
class Several:
    """The other reading of "number of publishers": each has a topic and a subscriber of its own."""

    publishers: int

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        return f"several-{self.publishers}-1B"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        every_s = 2 + self.publishers * 0.02
        return {
            "name": f"varsani2021-{self.name}",
            "phases": {"warm_up": f"{every_s:g} s", "duration": f"{effort.bursts * every_s:g} s",
                       "cool_down": f"{every_s:g} s"}, **STUDY_HOSTS.parts(),
            "groups": [
                {"name": "publisher", "host": "publisher", "count": self.publishers, "publish": {
                    "topic": "t/{client}/v", "payload": "1 B", "interval": f"{every_s:g} s",
                    "start_phase": "synchronised"}},
                {"name": "subscriber", "host": "subscriber", "count": self.publishers,
                 "subscribe": [{"filter": "t/{client}/v"}]},
            ],
            "recording": {"detail": "messages"},
        }


@dataclass(frozen=True, kw_only=True)
class Listed:
    """One client that subscribes to so many plain topics in one SUBSCRIBE, and one message."""

    filters: int

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        return f"listed-{self.filters}"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        return {
            "name": f"varsani2021-{self.name}",
            "phases": {"warm_up": "0 s", "duration": f"{2 + self.filters * 0.02:g} s", "cool_down": "2 s"},
            **STUDY_HOSTS.parts(),
            "groups": [
                {"name": "publisher", "host": "publisher", "publish": {"topic": "t/0/v", "payload": "1 B",
                                                                       "interval": "1 s"}},
                {"name": "subscriber", "host": "subscriber",
                 "subscribe": [{"filter": f"t/{topic}/v"} for topic in range(self.filters)]},
            ],
            "recording": {"detail": "messages"},
        }


@dataclass(frozen=True, kw_only=True)
class Unsubscribed:
    """Ten messages a second to one topic; in the middle the subscriber unsubscribes."""

    form: Form

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        return f"unsubscribe-{FORM_WORDS[self.form]}"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        subscribed = "t/0/v" if self.form == "plain" else FILTERS[self.form]
        return {
            "name": f"varsani2021-{self.name}",
            "phases": {"duration": "4 s", "cool_down": "2 s"}, **STUDY_HOSTS.parts(),
            "groups": [
                {"name": "publisher", "host": "publisher",
                 "publish": {"topic": "t/0/v", "payload": "1 B", "interval": "100 ms"}},
                {"name": "subscriber", "host": "subscriber", "subscribe": [{"filter": subscribed}]},
            ],
            "events": [{"at": "2 s", "group": "subscriber", "do": "unsubscribe", "filter": subscribed}],
            "recording": {"detail": "messages"},
        }


Case = Single | Burst | Several | Listed | Unsubscribed
SEVERAL, LISTED = (1, 10, 100), (1, 10, 100, 1000)
STUDY_HOSTS = Hosts()
ALONE: dict[str, Hosts] = {
    "as set": Hosts(), "TCP_NODELAY": Hosts(nagle=False), "acknowledged at once": Hosts(delayed_ack=False),
    "lwIP delays acknowledgements": Hosts(lwip_delays=True), "initial window of 10": Hosts(initial_window=10),
    "Linux on the clients": Hosts(stack="linux"),
    "no host time": Hosts(host_time="0 ms"),
}
"""One thing changed alone, to find what a finding comes from."""
BUSY = Hosts(per_message="0.308 ms")
"""Fitted on 10 000 topics and 1 B: 3083 ms. A Raspberry Pi 3's broker takes 0.148 ms (schuhmacher2018)."""
WILD_TOPICS = (1, 100, 1000, 10_000)
ONE_FILTER = (1, 1000, 10_000)
"""Where a plain subscription, too, is one filter: with 100 topics it is a list of 100."""
MILLION = 1_000_000
FAMILIES: dict[str, Sequence[Case]] = {
    "1": [Burst(topics=topics, payload=payload) for topics in TOPICS for payload in (1, 128, 1024, 4096)],
    "1, a time for each message": [Burst(topics=topics, payload=payload, hosts=BUSY) for topics in TOPICS
                                   for payload in (1, 128, 1024, 4096)],
    "figure 9": [Single(payload=1, interval_ms=interval) for interval in INTERVALS_MS],
    "figure 9, one thing alone": [Single(payload=1, interval_ms=interval, hosts=hosts)
                                  for hosts in ALONE.values() for interval in INTERVALS_MS],
    "figure 10": [Single(payload=payload, interval_ms=interval) for interval in (100, 1000) for payload in PAYLOADS],
    "figures 11 and 12": [Single(payload=payload) for payload in PAYLOADS],
    "figures 13 to 15, one thing alone": [Single(payload=payload, hosts=hosts) for hosts in ALONE.values()
                                          for payload in (1, 1024, 2048, 4096, 10_000)],
    "figures 16 and 17": [Burst(topics=2**power, payload=payload) for payload in (1, 128) for power in range(14)],
    "figures 18 to 20": [Burst(topics=topics, payload=payload, form=form) for form in FORMS
                          for topics in WILD_TOPICS for payload in (1, 128)],
    "a million topics": [Burst(topics=MILLION, payload=1, form=form) for form in FORMS[1:]],
    "QoS 1 and 2": [Single(payload=payload, qos=qos) for qos in (1, 2) for payload in PAYLOADS]
    + [Burst(topics=topics, payload=1, qos=qos) for qos in (1, 2) for topics in (10, 100, 1000)],
    "several publishers": [Several(publishers=number) for number in SEVERAL],
    "unsubscribing": [Unsubscribed(form=form) for form in FORMS],
    "n plain filters": [Listed(filters=number) for number in LISTED],
    "retained": [Single(payload=payload, retain=retain) for retain in (False, True) for payload in (1, 1024)],
}
"""What is run, by the table that shows it."""
ALIASES = {f"figure {number}": (table,) for table, numbers in (
    ("figures 11 and 12", (11, 12)), ("figures 13 to 15, one thing alone", (13, 14, 15)),
    ("figures 16 and 17", (16, 17)), ("figures 18 to 20", (18, 19, 20))) for number in numbers}


def cases(published: Path, tables: Sequence[str]) -> list[Case]:
    """The scenarios behind these tables; without tables, all."""
    return of_tables(FAMILIES, tables)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What is kept of a run."""

    delays: Delays
    first_ms: Sequence[float]
    """Latencies of the first messages, by their places."""
    completion_ms: float
    """Mean time of a burst; not a number without bursts."""
    completion_half_ms: float | None
    """Half width of its 95 % confidence interval over the bursts; none for one."""
    spread_ms: float
    """Mean time from a burst's first arrival to its last."""
    spread_half_ms: float | None
    subscribe_ms: float
    """From SUBSCRIBE to SUBACK."""
    unsubscribe_ms: float
    """From UNSUBSCRIBE to UNSUBACK; not a number where nobody unsubscribes."""
    arrived_after: int
    """Messages that arrived after the last UNSUBACK."""

    @property
    def first_arrival_ms(self) -> float:
        """Mean time from a burst's first publish to its first arrival."""
        return self.completion_ms - self.spread_ms


def measure(recording: Recording) -> Measured:
    """Delays, bursts and subscriptions."""
    times = metrics.burst_times(recording)
    complete = times.filter("complete").sort("burst") if not times.is_empty() else times
    first = metrics.deliveries(recording, ["latency_ms"])["latency_ms"].head(FIRST).to_list()
    took = metrics.setup(recording).row(0, named=True)
    (completion_ms, completion_half_ms), (spread_ms, spread_half_ms) = (
        _over_bursts(complete, what) for what in ("completion_ms", "spread_ms"))
    return Measured(
        delays=delays(recording), first_ms=first, completion_ms=completion_ms, completion_half_ms=completion_half_ms,
        spread_ms=spread_ms, spread_half_ms=spread_half_ms,
        subscribe_ms=number_of(took["subscribe_ms_p50"]), unsubscribe_ms=number_of(took["unsubscribe_ms_p50"]),
        arrived_after=_arrived_after(recording))


def _arrived_after(recording: Recording) -> int:
    """Messages that came to a client that had its UNSUBACK."""
    acknowledged = recording.events.filter(pl.col("kind").cast(pl.String) == "unsuback")["at_ns"]
    if acknowledged.is_empty():
        return 0
    last_ns = acknowledged.to_list()[-1]
    return recording.messages.filter(pl.col("received_ns") > last_ns).height


def _over_bursts(complete: pl.DataFrame, what: str) -> tuple[float, float | None]:
    """Mean and half width over the bursts that are complete."""
    if complete.is_empty():
        return float("nan"), None
    interval = mean_interval(complete[what].to_list())
    half = (interval.high - interval.low) / 2
    return interval.estimate, half if math.isfinite(half) else None


def printed(published: Path, hosts: Hosts = STUDY_HOSTS) -> dict[str, tuple[str, float]]:
    """Table 1: source and value by the case's name; not a number where the study prints none."""
    return {Burst(topics=int(row["topics"]), payload=int(row["payload_bytes"]), hosts=hosts).name:
            (source, as_printed(row["latency_ms"]))
            for source, row in published_rows(published, "table_1_topics_by_payload_latency")}


def compare(published: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """Every case's numbers; table 1 beside its printed values."""
    theirs = {**printed(published), **printed(published, BUSY)}
    cells: list[Cell] = []
    for table, family in FAMILIES.items():
        for case in family:
            if case.name in results:
                none = ("", float("nan"))
                source, value = theirs.get(case.name, none) if table.startswith("1") else none
                cells += _of(table, case, results[case.name], source, value)
    return cells


def _of(table: str, case: Case, ours: Measured, source: str, value: float) -> list[Cell]:
    found, none, place = ours.delays, float("nan"), words(case)
    if isinstance(case, Listed):
        return [Cell(table=table, place=place, metric="subscribing, ms", published=none, ours=ours.subscribe_ms)]
    if isinstance(case, Unsubscribed):
        return [Cell(table=table, place=place, metric=metric, published=none, ours=value) for metric, value in (
            ("subscribing, ms", ours.subscribe_ms), ("unsubscribing, ms", ours.unsubscribe_ms),
            ("messages after UNSUBACK", ours.arrived_after))]
    if isinstance(case, Several):
        return [Cell(table=table, place=place, metric="mean latency, ms", published=none, ours=found.mean_ms,
                     half=found.half_ms, never=found.never_percent),
                Cell(table=table, place=place, metric="greatest latency, ms", published=none, ours=found.max_ms)]
    if isinstance(case, Burst):
        cells = [Cell(table=table, place=place, metric="time of a burst, ms", published=value, source=source,
                      ours=ours.completion_ms, half=ours.completion_half_ms, never=found.never_percent)]
        if table == "figures 18 to 20":
            cells += [Cell(table=table, place=place, metric="subscribing, ms", published=none, ours=ours.subscribe_ms),
                      Cell(table=table, place=place, metric="first arrival of a burst, ms", published=none,
                           ours=ours.first_arrival_ms)]
        return cells
    return [Cell(table=table, place=place, metric="mean latency, ms", published=none, ours=found.mean_ms,
                 half=found.half_ms, never=found.never_percent),
            Cell(table=table, place=place, metric="mean of the first four, ms", published=none,
                 ours=sum(ours.first_ms[:4]) / max(len(ours.first_ms[:4]), 1)),
            Cell(table=table, place=place, metric="standard deviation, ms", published=none, ours=found.std_ms)]


def words(case: Case) -> str:
    """A scenario as the tables name it."""
    if isinstance(case, Several):
        return f"{case.publishers} publishers, a subscriber each, 1 B"
    if isinstance(case, Listed):
        return f"one SUBSCRIBE with {case.filters} filters"
    if isinstance(case, Unsubscribed):
        return f"UNSUBSCRIBE after 2 s, {case.form}"
    alone = next((words for words, hosts in {**ALONE, "a time for each message": BUSY}.items()
                  if hosts == case.hosts), "")
    setting = "" if alone in ("", "as set") else f", {alone}"
    qos = f", QoS {case.qos}" if case.qos else ""
    if isinstance(case, Burst):
        return f"{case.topics} topics, {case.payload} B, {case.form}{qos}{setting}"
    retained = ", retained" if case.retain else ""
    return f"{case.payload} B, every {case.interval_ms} ms{qos}{retained}{setting}"


def altered(case: Single, hosts: Hosts) -> Single:
    """The same case on other hosts."""
    return replace(case, hosts=hosts)
