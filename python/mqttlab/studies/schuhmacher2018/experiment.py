"""S. Schuhmacher, L. Stolz, QoS-Eigenschaften von MQTT, 2018: round trips through a relay.

client1 publishes, client2 publishes what it receives to a second topic, client1 receives it: both run on one host, so
that a message crosses its interface four times. Readings chosen where the study leaves something open:

- The hosts are joined at 1 Gbit/s, the Raspberry Pi's interface has 100 Mbit/s, as its model has.
- Messages carry the study's six bytes of identity. One is due every 5.3 ms, every 51 ms (500 KB at QoS 2, 1 MB) or
  every 513 ms (10 MB), as the study's logs show; "100 packets a second" were 97 in four runs and 10 in the others.
- ``tc``'s ``kbps`` is kilobytes per second, on what the clients' host sends; ``iptables`` drops on both ways.
- Nagle's algorithm is on, as in Mosquitto and Paho by default. Mosquitto of 2018 queued 100 messages for a client.
- One number is fitted, on 1 B at QoS 0 and full rate: :data:`WAKE_UP`, a Python client's time for a message. For the
  Raspberry Pi one more, on the same cell: :data:`PI_SERVICE`, the broker's time for a packet.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mqttlab import metrics
from mqttlab.metrics.frames import frames
from mqttlab.recording import Recording
from mqttlab.studies.delays import Delays, delays
from mqttlab.studies.study import number_of, of_tables

WAKE_UP = "386 us"
PI_SERVICE = "74 us"
KB = 1024
QOS = (0, 1, 2)
LAPTOP = (1, 10, 100, KB, 1500, 10 * KB, 100 * KB, 500 * 1024, 1024 * KB, 10 * 1024 * KB)
PI = (1, 10, 100, KB, 1500, 10 * KB, 100 * KB, 1024 * KB)
LIMITS = ("10kbps", "100kbps", "1mbps", "10mbps", "100mbps")
LOSSES = (1, 5, 10, 15, 20, 25, 30)
BURSTS = (10, 100, 1000)
PI_PROCESSOR = "20 %"
PI_MEMORY_MB = (1000, 64, 16)
"""A Raspberry Pi 3's; about 16 and 60 times less."""
OVERLOAD_S = 20
IDENTITY_BYTES = 6
PAYLOAD_MAX = 10_000_000
"""A scenario's largest; the study's 10 MB are 5 % more."""
TOPIC = "mqtt-roundtrip-qos0-10Byte-10-cycles-10pbs"
SEEDS = 10


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long to run."""

    part: float
    """Of the study's minute, where no link is full and nothing is lost."""


THOROUGH, QUICK = Effort(part=1.0), Effort(part=0.1)


@dataclass(frozen=True, kw_only=True)
class Trip:
    """Round trips at one rate over one network."""

    payload: int
    qos: int
    interval_ms: float = 5.3
    limit: str = ""
    """As ``tc`` reads it; none where empty."""
    loss_percent: int = 0
    """Each way."""
    nagle: bool = True
    window: int = 20
    """Messages in flight, at the clients and at the broker."""
    pi_burst: int = 0
    """So many messages without a pause, with the Raspberry Pi as broker."""
    persistent: bool = False
    retain: bool = False
    keep_alive_s: int = 60
    delay_ms: float = 0.1
    seed: int = 1
    seconds: float = 60.0

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        words = [f"pi-burst-{self.pi_burst}" if self.pi_burst else "trip", f"{self.payload}B", f"qos{self.qos}"]
        words += [word for word, given in (
            (f"{self.interval_ms:g}ms", not self.pi_burst), (self.limit, self.limit),
            (f"loss{self.loss_percent}", self.loss_percent), ("nagle-off", not self.nagle),
            (f"window{self.window}", self.window != 20), ("persistent", self.persistent), ("retained", self.retain),
            (f"keep-alive-{self.keep_alive_s}s", self.keep_alive_s != 60),
            (f"{self.delay_ms:g}ms-link", self.delay_ms != 0.1), (f"seed{self.seed}", self.loss_percent),
        ) if given]
        return "-".join(words)

    @property
    def messages(self) -> int:
        """How many are sent."""
        return self.pi_burst or round(1000 * self.seconds / self.interval_ms)

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        # Runs under loss have 60 messages each, large ones few, and a full link's depend on their length.
        part = 1.0 if self.loss_percent or self.limit or self.interval_ms > 400 else effort.part
        bytes_sent = self.messages * (self.payload + 100)
        tcp = {"profile": "linux-2018"}
        service = {"per_packet": PI_SERVICE, "per_copy": PI_SERVICE} if self.pi_burst else {}
        messages = max(round(part * self.messages), 2)
        publish: dict[str, Any] = {
            "topic": "roundtrip", "qos": self.qos,
            "payload": f"{min(self.payload + IDENTITY_BYTES, PAYLOAD_MAX)} B",
            "retain": self.retain, "messages": self.pi_burst or messages,
            "start_phase": "synchronised"}
        if self.pi_burst:
            duration_s = 2 + 4 * bytes_sent * 8 / 1e8
            publish |= {"arrival": "burst", "burst": {"size": self.pi_burst, "every": f"{duration_s:g} s"}}
        else:
            duration_s = part * self.seconds
            publish |= {"interval": f"{self.interval_ms:g} ms"}
        return {
            "name": f"schuhmacher2018-{self.name}"[:40], "seed": self.seed,
            "phases": {"duration": f"{duration_s:g} s", "cool_down": f"{self._cool_down_s(bytes_sent):g} s"},
            "mqtt": {"max_inflight": self.window, "keep_alive": f"{self.keep_alive_s} s", "ping": "sent",
                     "clean_session": not self.persistent},
            "broker": {"nagle": self.nagle, "max_inflight": self.window, "max_queued": 100, **({"service": service}
                                                                                            if service else {})},
            "hosts": {"laptop": {"tcp": tcp}, "broker": {"tcp": tcp}},
            "networks": [{"between": ["laptop", "broker"], **self._links()}],
            "groups": [
                {"name": "client1", "host": "laptop", "nagle": self.nagle, "publish": publish,
                 "subscribe": [{"filter": "roundtrip_2", "qos": self.qos}]},
                {"name": "client2", "host": "laptop", "nagle": self.nagle,
                 "subscribe": [{"filter": "roundtrip", "qos": self.qos}], "relay": {"suffix": "_2", "qos": self.qos}},
            ],
            "sim": {"client_wake_up": WAKE_UP}, "recording": {"detail": "messages"},
        }

    def _cool_down_s(self, bytes_sent: float) -> float:
        """As long as what is on its way may take; the run ends when nothing is."""
        if self.limit:
            return min(120.0, 4 * bytes_sent / kilobytes_per_s(self.limit) / 1000 + 5)
        return 60.0 if self.loss_percent else 5 + 8 * bytes_sent * 8 / 1e8

    def _links(self) -> dict[str, Any]:
        rate = "100 Mbit/s" if self.pi_burst else "1 Gbit/s"
        link: dict[str, Any] = {"rate": rate, "delay": f"{self.delay_ms:g} ms", "overhead": "38 B"}
        if self.loss_percent:
            link |= {"loss": f"{self.loss_percent} %", "loss_at": "entry"}
        limited = {**link, "rate": f"{kilobytes_per_s(self.limit):g} kB/s", "overhead": "14 B"} if self.limit else link
        return {"up": limited, "down": link}


def kilobytes_per_s(limit: str) -> float:
    """A rate as ``tc`` reads it: ``kbps`` are kilobytes a second, ``mbps`` megabytes."""
    return float(limit.removesuffix("kbps")) if limit.endswith("kbps") else 1000 * float(limit.removesuffix("mbps"))


@dataclass(frozen=True, kw_only=True)
class Overhead:
    """Ten messages, and every byte of MQTT."""

    payload: int
    qos: int
    initial_window: int | None = None
    """Segments; Linux's ten when left out."""

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        window = "" if self.initial_window is None else f"-iw{self.initial_window}"
        return f"overhead-{self.payload}B-qos{self.qos}{window}"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values: 10 messages, 5 ms apart, as the captures have them."""
        window = {} if self.initial_window is None else {"initial_window": self.initial_window}
        return {
            "name": f"schuhmacher2018-{self.name}"[:40], "phases": {"duration": "1 s", "cool_down": "5 s"},
            "broker": {"max_queued": 0},
            "hosts": {name: {"tcp": {"profile": "linux-2018", **window}} for name in ("laptop", "broker")},
            "networks": [{"between": ["laptop", "broker"], **Trip(payload=1, qos=0)._links()}],
            "groups": [
                {"name": "client1", "host": "laptop", "mqtt": {"client_id": "Schuhmacher", "ping": "sent"}, "publish": {
                    "topic": TOPIC, "qos": self.qos, "payload": f"{self.payload + IDENTITY_BYTES} B",
                    "interval": "5 ms", "messages": 10, "start_phase": "synchronised"}},
                {"name": "observer", "host": "laptop", "mqtt": {"client_id": "Schuhmache2", "ping": "sent"},
                 "subscribe": [{"filter": TOPIC, "qos": self.qos}]},
            ],
        }


@dataclass(frozen=True, kw_only=True)
class Connecting:
    """Fifty clients that connect and subscribe under loss."""

    loss_percent: int
    syn_retries: int = 6
    seed: int = 1

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        return f"connecting-loss{self.loss_percent}-syn{self.syn_retries}"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        lossy = {"delay": "0.1 ms", "loss": f"{self.loss_percent} %"}
        tcp = {"profile": "linux-2018", "syn_retries": self.syn_retries}
        return {
            "name": f"schuhmacher2018-{self.name}"[:40], "seed": self.seed,
            "phases": {"duration": "1 s", "cool_down": "1 s", "connect_timeout": "10 min"},
            "mqtt": {"ping": "sent"},
            "hosts": {"laptop": {"tcp": tcp}, "broker": {"tcp": tcp}},
            "networks": [{"between": ["laptop", "broker"], "up": lossy, "down": lossy}],
            "groups": [{"name": "clients", "host": "laptop", "count": 50, "connect_over": "5 s",
                        "subscribe": [{"filter": "nothing", "qos": 1}]}],
        }


@dataclass(frozen=True, kw_only=True)
class Rate:
    """The relay at a rate, to find the largest that it keeps up with."""

    per_s: int
    qos: int
    window: int = 20
    delay_ms: float = 0.1

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        return f"rate-{self.per_s}-qos{self.qos}-window{self.window}-{self.delay_ms:g}ms"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values: 5 s of it."""
        trip = Trip(payload=100, qos=self.qos, interval_ms=1000 / self.per_s, window=self.window, seconds=5.0,
                    delay_ms=self.delay_ms)
        values = trip.scenario(THOROUGH)
        values["name"] = f"schuhmacher2018-{self.name}"[:40]
        values["phases"] = {"duration": "5 s", "cool_down": "2 s"}
        return values


@dataclass(frozen=True, kw_only=True)
class Overload:
    """A burst of table 2 to a broker whose host has a Raspberry Pi's limits, and less and less memory."""

    payload: int
    qos: int
    memory_mb: int
    persistence: bool
    free_disk: bool = False
    """Whether the disk alone has no limit."""

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        words = [f"overload-{self.payload}B-qos{self.qos}-{self.memory_mb}MB"]
        return "-".join(words + ["persistence"] * self.persistence + ["free-disk"] * self.free_disk)

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values: :data:`OVERLOAD_S` from the burst on, which goes on without a broker that died.

        Sessions outlive their connections with and without persistence, so that there is something to store and
        persistence alone differs.
        """
        values = Trip(payload=self.payload, qos=self.qos, pi_burst=BURSTS[-1], persistent=True).scenario(effort)
        # The profile's share of a processor stands for the fitted time. Clients are this program's own, live and
        # simulated: how soon one reads decides how often TCP acknowledges, and so which of the queues grows.
        del values["broker"]["service"], values["sim"]
        values["broker"] |= {"persistence": self.persistence, "when_it_dies": "go-on"}
        values["hosts"]["broker"]["limits"] = {
            **({"processor": PI_PROCESSOR} if self.free_disk else {"profile": "raspberry-pi-3"}),
            "memory": f"{self.memory_mb} MB"}
        values["groups"][0]["publish"]["burst"]["every"] = f"{OVERLOAD_S} s"
        return values | {"name": f"schuhmacher2018-{self.name}"[:40],
                         "phases": {"duration": f"{OVERLOAD_S} s", "cool_down": "2 s"}}


RATES = (25, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600)
Case = Trip | Overhead | Connecting | Rate | Overload


def laptop(payload: int, qos: int, *, nagle: bool = True) -> Trip:
    """A cell of table 3."""
    interval = 513 if payload > 1024 * KB else 51 if payload > 500 * KB or (payload == 500 * KB and qos == 2) else 5.3
    return Trip(payload=payload, qos=qos, interval_ms=interval, nagle=nagle)


def limited(limit: str, qos: int) -> list[Trip]:
    """The three runs of a cell of table 4: nominally 1, 10 and 100 a second."""
    fastest = 10.3 if limit == "10mbps" or (limit == "100mbps" and qos == 0) else 100
    return [Trip(payload=10 * KB, qos=qos, limit=limit, interval_ms=interval) for interval in (1000, 100, fastest)]


def lossy(loss: int, qos: int) -> list[Trip]:
    """The runs of a cell of table 5, each of 60 messages like the study's one."""
    return [Trip(payload=10 * KB, qos=qos, loss_percent=loss, interval_ms=1000, seed=seed)
            for seed in range(1, SEEDS + 1)]


def short_lossy(loss: int) -> list[Trip]:
    """As :func:`lossy` at QoS 1, with messages of one segment, as a CONNECT is."""
    return [Trip(payload=100, qos=1, loss_percent=loss, interval_ms=1000, seed=seed) for seed in range(1, SEEDS + 1)]


def pi(payload: int, qos: int) -> list[Trip]:
    """The three runs of a cell of table 2."""
    return [Trip(payload=payload, qos=qos, pi_burst=burst) for burst in BURSTS]


OVERLOADS = [Overload(payload=payload, qos=qos, memory_mb=memory, persistence=persistence)
             for memory in PI_MEMORY_MB for payload in (1, 100 * KB, 1024 * KB) for qos in QOS
             for persistence in (False, True)]


def with_free_disk(case: Overload) -> Overload:
    """The same with a disk that holds nobody up."""
    return replace(case, free_disk=True)


def reconnecting(*, qos: int, persistent: bool, retain: bool) -> list[Trip]:
    """Under 25 % loss each way with a keep-alive of 5 s, so that connections break."""
    return [Trip(payload=10 * KB, qos=qos, loss_percent=25, interval_ms=1000, keep_alive_s=5, persistent=persistent,
                 retain=retain, seed=seed) for seed in range(1, 6)]


SHARED = (1, 10, 100, 128, 256, 512, KB)
"""Payloads whose sharing of segments is looked at, at QoS 0."""
OVERHEADS = [Overhead(payload=payload, qos=qos) for payload in (1, 10, 100, KB, 10 * KB, 1024 * KB) for qos in QOS]
WIDER = Overhead(payload=1024 * KB, qos=0, initial_window=20)
FAMILIES: dict[str, list[Case]] = {
    "2": [case for payload in PI for qos in QOS for case in pi(payload, qos)],
    "2, limits of the host": [*OVERLOADS, *(
        with_free_disk(case) for case in OVERLOADS
        if case.persistence and case.memory_mb == PI_MEMORY_MB[-1] and case.payload > 1)],
    "3": [laptop(payload, qos) for payload in LAPTOP for qos in QOS],
    "3, TCP_NODELAY": [laptop(payload, qos, nagle=False) for payload in LAPTOP[:8] for qos in QOS
                       if payload < 500 * KB],
    "small payloads at QoS 0": [case for payload in SHARED
                                for case in (laptop(payload, 0), Overhead(payload=payload, qos=0))],
    "3.3": [case for qos in QOS for case in limited("100kbps", qos)],
    "4": [case for limit in LIMITS for qos in QOS for case in limited(limit, qos)],
    "5": [case for loss in LOSSES for qos in QOS for case in lossy(loss, qos)],
    "6": [*OVERHEADS, WIDER],
    "connecting under loss": [Connecting(loss_percent=loss, syn_retries=retries)
                              for loss in LOSSES for retries in (2, 6)],
    "messages of one segment under loss": [case for loss in LOSSES for case in short_lossy(loss)],
    "maximum rate": [Rate(per_s=rate, qos=qos) for rate in RATES for qos in QOS],
    "one in flight": [Rate(per_s=rate, qos=qos, window=window, delay_ms=delay)
                      for delay, window in ((0.1, 1), (10, 1), (10, 20)) for rate in RATES for qos in (1, 2)],
    "reconnects": [case for qos, persistent, retain in itertools.product((1, 2), (False, True), (False, True))
                   for case in reconnecting(qos=qos, persistent=persistent, retain=retain)],
}
"""What is run, by the table that shows it."""
ALIASES = {f"figure {number}": ("6",) for number in (3, 4, 5)}
"""Captures whose bytes the section counts; figures 1 and 2 are drawings."""


def cases(published: Path, tables: Sequence[str]) -> list[Case]:
    """The scenarios behind these tables; without tables, all."""
    return of_tables(FAMILIES, tables)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What is kept of a run."""

    trips: Delays
    trip_s: np.ndarray
    """Every round trip that ended, in the order of sending, from the second message on (the study drops the first)."""
    disconnects: int
    connect_ms: tuple[float, float]
    """Median and 99th percentile from the first attempt to CONNACK."""
    connected: int
    """CONNACK packets."""
    packet_bytes: Mapping[str, float]
    """Mean bytes of control packets, by type."""
    overhead: Mapping[str, float]
    """Bytes a PUBLISH to the broker, by part; ``overhead_bytes`` is their sum."""
    publish_per_segment_max: int
    releases_shared: int = 0
    """Segments to the broker that carry a PUBREL beside another packet."""
    first_segment_bytes: float = float("nan")
    """Mean TCP payload of the segments with which a PUBLISH to the broker begins."""
    last_back_s: float = float("nan")
    """When the last message that came back was due, from the beginning of the measurement."""
    bare_acks: int = 0
    """Segments without payload to the publisher while it publishes: acknowledgements that nothing carries."""
    flights_bytes: tuple[int, ...] = ()
    """TCP payload that leaves for the first PUBLISH in its first round trips, one after the other."""
    broker_died_s: float = float("inf")
    """When the broker was killed for memory, from the first message on; without end where it lived."""


def measure(recording: Recording) -> Measured:
    """Round trips; of runs with frames their overhead, too."""
    setup = metrics.setup(recording).row(0, named=True)
    application = metrics.application(recording, ())
    sent = metrics.overhead(recording)
    to_broker = sent.filter(pl.col("direction") == "to_broker") if not sent.is_empty() else sent
    kinds = metrics.packet_types(recording)
    shared = metrics.publish_per_segment(recording)
    to_broker_shared = shared.filter(pl.col("direction") == "to_broker")["packets"]
    return Measured(
        trips=delays(recording, "client1"),
        trip_s=_trips(recording),
        disconnects=0 if application.is_empty() else int(application["disconnects"][0]),
        connect_ms=(number_of(setup["connect_ms_p50"]), number_of(setup["connect_ms_p99"])),
        connected=int(setup["connects"] or 0),
        packet_bytes={} if kinds.is_empty() else dict(zip(kinds["kind"], kinds["packet_bytes_mean"], strict=True)),
        overhead={} if to_broker.is_empty() else to_broker.row(0, named=True),
        publish_per_segment_max=int(to_broker_shared.max() or 0),  # type: ignore[arg-type]
        last_back_s=_last_back_s(recording),
        broker_died_s=_broker_died_s(recording),
        **_segments(recording),
    )


def _segments(recording: Recording) -> dict[str, Any]:
    """What shares a segment with a PUBREL, how full the first segment of a PUBLISH is, and how much goes at once."""
    seen = frames(recording)
    if seen.is_empty():
        return {}
    sent = seen.filter(pl.col("hop") == 0, pl.col("towards") == "to_broker", pl.col("payload_bytes") > 0,
                       pl.col("repetition") == 0).sort("entered_ns")
    # What follows the end of a packet begins the next one.
    of_publisher = sent.filter(pl.col("group") == "client1", pl.col("mqtt").fill_null("").str.contains("DISC").not_())
    begins = of_publisher.filter((pl.col("control_packets") > 0).shift(1, fill_value=False))
    return {
        "releases_shared": sent.filter(pl.col("mqtt").fill_null("").str.contains("PUBREL"),
                                       pl.col("control_packets") > 1).height,
        "bare_acks": _bare_acks(seen),
        "first_segment_bytes": number_of(begins["payload_bytes"].mean()),
        "flights_bytes": _flights_bytes(of_publisher, begins)}


def _flights_bytes(sent: pl.DataFrame, begins: pl.DataFrame) -> tuple[int, ...]:
    """From the first PUBLISH on; nothing where a publisher could send none."""
    if begins.is_empty():
        return ()
    trip = (pl.col("entered_ns") - begins["entered_ns"].min()) // ROUND_TRIP_NS
    trips = sent.filter(trip >= 0).group_by(trip=trip).agg(pl.col("payload_bytes").sum()).sort("trip")
    return tuple(trips["payload_bytes"].head(FLIGHTS).to_list())


def _bare_acks(seen: pl.DataFrame) -> int:
    """Counted until a second after the last PUBLISH, so that what closes the connection is none."""
    of_publisher = seen.filter(pl.col("hop") == 0, pl.col("group") == "client1")
    times = of_publisher.filter(pl.col("towards") == "to_broker", pl.col("publishes") > 0)["entered_ns"]
    if times.is_empty():
        return 0
    return of_publisher.filter(pl.col("towards") != "to_broker", pl.col("payload_bytes") == 0,
                               pl.col("entered_ns").is_between(times.min(), pl.lit(times.max()) + 1_000_000_000)).height


def _last_back_s(recording: Recording) -> float:
    back = metrics.deliveries(recording).filter(pl.col("subscriber_group") == "client1")["intended_s"]
    return number_of(back.max())


def _broker_died_s(recording: Recording) -> float:
    # Live, the end of a broker that lived is an event, too.
    ended = recording.events.filter(pl.col("kind") == "server_exit", pl.col("detail").str.contains("killed for memory"))
    due = recording.messages["intended_ns"].to_list()
    return float("inf") if ended.is_empty() or not due else (ended["at_ns"].to_list()[0] - min(due)) / 1e9


ROUND_TRIP_NS = 200_000
"""Between the laptop and the broker, but for the time that frames take."""
FLIGHTS = 3


def _trips(recording: Recording) -> np.ndarray:
    delivered = metrics.deliveries(recording).filter(pl.col("subscriber_group") == "client1")
    return delivered["latency_ms"].to_numpy()[1:] / 1000


def as_the_study_counted(trip_s: np.ndarray) -> np.ndarray:
    """Round trips as the study's program stored them: those of a minute and more in minutes, among the seconds."""
    return np.where(trip_s >= 60, trip_s / 60, trip_s)


def without_nagle(case: Trip) -> Trip:
    """The same with TCP_NODELAY everywhere."""
    return replace(case, nagle=False)
