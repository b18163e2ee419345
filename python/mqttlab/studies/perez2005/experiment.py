"""J. Perez, MQTT Performance Analysis with OMNeT++, 2005: its scenarios on Ethernet and 802.11.

A payload is what the study calls one: it includes the topic's name and a byte for the QoS (section 5.2.1), so that a
scenario's own payload is 2 B shorter. Section 5.2.1 has an MSS of 1024 B and no option of TCP; from section 5.2.2 on
the MSS is 536 B, with timestamps, unless something else is printed.

Readings chosen where the study leaves a parameter open:

- "BER" is the chance per bit to go from the good to the bad state; bits in the bad state are wrong with a chance of
  0.065, good ones never. Only so do isolated errors (p_BB 0.1) stay harmless, as the study reports. Section 4.3 prints
  a definition, the mean bit error rate p_G e_G + p_B e_B, and no error rate of the bad state. By it the tables do not
  come out with any (:func:`mean_error_rate`; ``readings.py`` has both).
- Each direction of each cable has such a channel of its own.
- TCP acknowledges each segment at once: the published m-efficiencies of 1, 1/2 and 1/4 count an acknowledgement for
  each answer of the broker.
- Nagle's algorithm is off: the error-free delay of 4.0 ms has no spread.
- Frames on the cable are Ethernet's 18 bytes and an IP packet, 64 bytes at least.
- On the radio the broker is a station like the others. 2 mW and 6 mW at a sensitivity of -100 dBm reach 126 m and 181 m
  with the exponent that is printed, so that hardly a pair of the 20 clients is out of range of each other, which the
  text says some are: the second reading (:attr:`Wifi.apart`) has a sensitivity at which the broker in the middle just
  reaches the corners.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.statistics import batch_means_ci95
from mqttlab.studies.study import number_of, published_rows
from mqttlab.studies.table import INFINITE, Cell, as_printed

ERROR_IN_BAD_STATE = 0.065
BURSTY = 0.8
RETRY = "10 s"
"""MQTT's own timeout, at clients and broker."""
SIDE_M = 150.0
FIRST_MSS, LATER_MSS = 1024, 536
"""Of section 5.2.1, and from section 5.2.2 on; bytes."""
OF_TOPIC_AND_QOS = 2
"""What of the study's payload is none of MQTT's: topics of one letter, and a byte for the QoS."""
SECONDS_SHOWN = 150
"""How much of a run its figures over time have: the first 150 s, of which section 5.2.1.1 tells."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long to simulate: until the mean is known so well, or every subscriber has so many messages."""

    relative_accuracy: str = "1 %"
    messages_per_subscriber: int = 50_000
    shortest_s: float = 600.0
    """Where a backlog grows, nobody ever has that many: then it is this long, or what the messages would take."""
    longest_s: float = 4000.0
    """20 clients on the radio would need four times that for 50 000 messages to the subscriber of one topic; known
    within 1 % are nearly all means before."""
    crowded_s: float = 180.0
    """20 clients on Ethernet at QoS 1 and 2, and with rates of our own, which cost most, are simulated no longer."""
    crowd_s: float = 180.0
    """Hundreds of clients, which the study has not, so that no rule of its own says how long."""
    crowded_radio_s: float = 1800.0
    """The same on the radio, with the study's rates."""
    serial_s: float = 600.0
    """The validation against real TCP."""
    backlog_s: float | None = None
    """Where 20 clients on the radio have so many seconds of messages outstanding, of all that they send, there will be
    no mean: what is repeated after 10 s would make the queue, and its cost, grow with the square of the time."""
    packets: bool = True

    def duration_s(self, per_s: float, longest_s: float | None = None) -> float:
        """What the messages take at most, of which so many come to each subscriber."""
        longest_s = self.longest_s if longest_s is None else longest_s
        return min(max(self.shortest_s, 1.25 * self.messages_per_subscriber / per_s), longest_s)


THOROUGH = Effort()
FULL = Effort(longest_s=math.inf, crowded_s=math.inf, crowded_radio_s=math.inf, serial_s=math.inf,
              backlog_s=600.0)
"""As long as the messages take: the study's rule ends all but those whose backlog grows."""
QUICK = Effort(relative_accuracy="5 %", messages_per_subscriber=2_000, shortest_s=60.0, longest_s=180.0,
               crowded_s=60.0, crowd_s=60.0, crowded_radio_s=60.0)


@dataclass(frozen=True, kw_only=True, order=True)
class Ethernet:
    """A scenario on Ethernet: P (one publisher, one subscriber) or Q (ten of each)."""

    clients: int
    payload: int
    """As the study counts it: with the topic's name and a byte for the QoS."""
    ber: float
    p_bb: float
    qos: int
    mss: int = LATER_MSS
    timestamps: bool = True
    buffer_segments: int = 32
    """Beyond 64 KiB with window scaling."""

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        stamps = "ts" if self.timestamps else "nots"
        buffers = "" if self.buffer_segments == 32 else f"-{self.buffer_segments}seg"
        return (f"e{self.clients}-{self.payload}B-{self.ber:g}-{self.p_bb:g}-qos{self.qos}"
                f"-{self.mss}-{stamps}{buffers}").replace(".", "_")

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        cable: dict[str, Any] = {"rate": "100 Mbit/s", "delay": "1 ms", "overhead": "18 B", "minimum_frame": "64 B"}
        if self.ber > 0:
            cable["bit_errors"] = {"good_to_bad": _percent(self.ber), "bad_to_bad": _percent(self.p_bb),
                                   "error_bad": _percent(ERROR_IN_BAD_STATE)}
        tcp = _tcp(self.mss, timestamps=self.timestamps, buffer_segments=self.buffer_segments)
        per_s = 200 if self.clients == 2 else 40
        is_crowded = self.clients > 2 and self.qos > 0
        duration_s = effort.duration_s(_least_per_s(self.clients, per_s), effort.crowded_s if is_crowded else None)
        return {
            "name": self.name,
            "phases": {"duration": f"{duration_s:g} s", "warm_up": "2 s", "cool_down": "1 s"},
            "mqtt": _mqtt(),
            "broker": _broker(),
            "hosts": {"broker": {"tcp": tcp}, **{name: {"count": n, "tcp": tcp} for name, n in _hosts(self.clients)}},
            "trunk": {"up": cable, "down": cable},
            "networks": [{"between": [name, "broker"], "link": "each", "up": cable, "down": cable}
                         for name, _ in _hosts(self.clients)],
            "groups": list(_groups(self.clients, self.qos, self.payload, per_s)),
            "sim": _sim(effort),
            "recording": {"detail": "full" if effort.packets else "messages"},
        }


@dataclass(frozen=True, kw_only=True, order=True)
class Wifi:
    """A scenario on 802.11: R (one publisher, one subscriber at 2 Mbit/s) or S (ten of each at 11 Mbit/s)."""

    clients: int
    payload: int
    mean_bad_ms: int
    rts_cts: bool
    qos: int
    mss: int = 536
    per_s: int | None = None
    """Messages of a publisher; the study's 25 with three stations and 1 with 21 when left out."""
    apart: bool = False
    """Whether some of the 20 clients are out of range of each other, as the text says; with the printed values hardly
    any is."""

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        access = "rts" if self.rts_cts else "basic"
        rate = "" if self.per_s is None else f"-{self.per_s}-per-s"
        apart = "-apart" if self.apart else ""
        return f"w{self.clients}-{self.payload}B-{self.mean_bad_ms}ms-{access}-qos{self.qos}-{self.mss}{rate}{apart}"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        small = self.clients == 2
        radio: dict[str, Any] = {
            "standard": "dsss-2" if small else "b-11", "noise": "-110 dBm", "snir_data": "4 dB",
            "path_loss_exponent": 3.0, "area": "100 m x 100 m" if small else f"{SIDE_M:g} m x {SIDE_M:g} m",
            "transmit_power": "3 dBm" if small else "7.78 dBm",
            "sensitivity": CORNERS_IN_REACH if self.apart else "-100 dBm"}
        if small:
            radio["positions"] = [["0 m", "0 m"], ["20 m", "0 m"], ["0 m", "20 m"]]
        if self.apart:
            radio["positions"] = [[f"{x:.1f} m", f"{y:.1f} m"] for x, y in places()]
        if self.rts_cts:
            radio["rts_threshold"] = "0 B"
        if self.mean_bad_ms > 0:
            radio["channel"] = {"mean_bad": f"{self.mean_bad_ms} ms", "bad": "10 %", "loss_bad": "50 %"}
        tcp = _tcp(self.mss, timestamps=True)
        per_s = self.per_s or (25 if small else 1)
        longest_s = None
        if not small and (self.qos > 0 or self.per_s is not None):
            longest_s = effort.crowded_radio_s if self.per_s is None else effort.crowded_s
        duration_s = effort.duration_s(_least_per_s(self.clients, per_s), longest_s)
        return {
            "name": self.name,
            "phases": {"duration": f"{duration_s:g} s", "warm_up": "10 s", "cool_down": "1 s"},
            "mqtt": _mqtt(),
            "broker": _broker(),
            "hosts": {"broker": {"tcp": tcp}, **{name: {"count": n, "tcp": tcp} for name, n in _hosts(self.clients)}},
            "radio": radio,
            "groups": list(_groups(self.clients, self.qos, self.payload, per_s)),
            "sim": _sim(effort, None if small else _deliveries_per_s(self.clients, per_s)),
            "recording": {"detail": "messages"},
        }


CORNERS_IN_REACH = "-93.1 dBm"
"""6 mW are heard so weakly at 106.6 m; from the middle to a corner it is 106.1 m."""


def places() -> list[tuple[float, float]]:
    """The broker in the middle, and 20 clients at random, drawn once; m."""
    dice = random.Random(2005)
    middle = SIDE_M / 2
    return [(middle, middle), *((dice.uniform(0, SIDE_M), dice.uniform(0, SIDE_M)) for _ in range(20))]


@dataclass(frozen=True, kw_only=True, order=True)
class Serial:
    """The study's validation against real TCP (section 4.2.2): both clients on one host, PPP to the broker."""

    per_s: int
    ber: float
    """Random, not in bursts."""
    qos: int
    payload: int = 10
    mss: int = 1460

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        return f"ppp-{self.per_s}-per-s-{self.ber:g}-qos{self.qos}".replace(".", "_")

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        line: dict[str, Any] = {"rate": "115 kbit/s", "delay": "0.1 ms", "overhead": "8 B"}
        if self.ber > 0:
            line["bit_errors"] = {"good_to_bad": "0 %", "bad_to_bad": "0 %", "error_good": _percent(self.ber)}
        # Linux stands for the study's Thinkpads, so that the same cells can be run live.
        tcp = {"profile": "linux"}
        duration_s = effort.duration_s(self.per_s, min(effort.longest_s, effort.serial_s))
        return {
            "name": self.name,
            "phases": {"duration": f"{duration_s:g} s", "warm_up": "2 s", "cool_down": "2 s"},
            "mqtt": _mqtt(),
            "broker": _broker(),
            "hosts": {"broker": {"tcp": tcp}, "field": {"tcp": tcp}},
            "networks": [{"between": ["field", "broker"], "up": line, "down": line}],
            "groups": [
                {"name": "publisher", "host": "field", "nagle": False, "publish": {
                    "topic": "x", "qos": self.qos, "payload": f"{self.payload} B", "rate": f"{self.per_s} /s",
                    "arrival": "poisson"}},
                {"name": "subscriber", "host": "field", "nagle": False,
                 "subscribe": [{"filter": "x", "qos": self.qos}]},
            ],
            "sim": _sim(effort),
        }


SERIAL = [Serial(per_s=per_s, ber=ber, qos=qos)
          for per_s in (10, 50) for ber in (0.0, 1e-5, 1e-4, 5e-4) for qos in (0, 1, 2)]
Case = Ethernet | Wifi | Serial


def mean_error_rate(good_to_bad: float, p_bb: float) -> float:
    """The share of wrong bits, p_G e_G + p_B e_B of section 4.3, of a channel that is run; e_G is zero."""
    return good_to_bad / (good_to_bad + 1 - p_bb) * ERROR_IN_BAD_STATE


def good_to_bad_of(mean: float, p_bb: float) -> float:
    """The chance to go to the bad state by which a channel has this share of wrong bits."""
    bad = mean / ERROR_IN_BAD_STATE
    return bad / (1 - bad) * (1 - p_bb)


def frame_loss(good_to_bad: float, p_bb: float, frame_bytes: int) -> float:
    """The chance of a frame to have a wrong bit, where stays in the bad state are few."""
    in_stay = ERROR_IN_BAD_STATE / (1 - (1 - ERROR_IN_BAD_STATE) * p_bb)
    return -math.expm1(-8 * frame_bytes * good_to_bad * in_stay)


def _percent(ratio: float) -> str:
    """A ratio as a scenario writes it."""
    return f"{100 * ratio:.12g} %"


def _tcp(mss: int, *, timestamps: bool, buffer_segments: int = 32) -> dict[str, Any]:
    buffer = f"{buffer_segments * mss} B"
    scaled = {"window_scaling": True} if buffer_segments * mss > 65_535 else {}
    return {"profile": "netbsd-2005", "mss": f"{mss} B", "timestamps": timestamps, "delayed_ack": False,
            "send_buffer": buffer, "receive_buffer": buffer, **scaled}


def _mqtt() -> dict[str, Any]:
    return {"version": "3.1", "keep_alive": "0 s", "ping": "sent", "max_inflight": 65_535, "retry": RETRY}


def _broker() -> dict[str, Any]:
    return {"nagle": False, "max_inflight": 0, "max_queued": 0, "retry": RETRY,
            "service": {"per_packet": "0 s", "per_copy": "0 s"}}


def _sim(effort: Effort, deliveries_per_s: float | None = None) -> dict[str, Any]:
    """The study's hosts take no time. Where the deliveries of a second are given, a backlog may end the run."""
    stop: dict[str, Any] = {"relative_accuracy": effort.relative_accuracy,
                            "messages_per_subscriber": effort.messages_per_subscriber}
    if effort.backlog_s is not None and deliveries_per_s is not None:
        stop["deliveries_outstanding"] = round(effort.backlog_s * deliveries_per_s)
    return {"stop": stop, "client_wake_up": "0 s"}


def _hosts(clients: int) -> list[tuple[str, int]]:
    if clients == 2:
        return [("publisher", 1), ("subscriber", 1)]
    return [("publisher-x", 4), ("publisher-y", 3), ("publisher-z", 3),
            ("subscriber-1", 4), ("subscriber-2", 3), ("subscriber-3", 3)]


def _least_per_s(clients: int, per_s: float) -> float:
    """Messages that come to the subscriber that gets fewest, of the first topic alone."""
    return per_s * _hosts(clients)[0][1]


def _deliveries_per_s(clients: int, per_s: float) -> float:
    """Of all publishers to all subscribers, of which some have one topic, some two and some three."""
    counts = dict(_hosts(clients))
    topics = [sum(count for name, count in counts.items() if name.startswith("subscriber-") and name[-1] >= str(which))
              for which in (1, 2, 3)]
    return per_s * sum(counts[f"publisher-{topic}"] * stations for topic, stations in zip("xyz", topics, strict=True))


def _groups(clients: int, qos: int, payload: int, per_s: float) -> Iterable[dict[str, Any]]:
    for name, count in _hosts(clients):
        group: dict[str, Any] = {"name": name, "host": name, "count": count, "nagle": False}
        kind, _, which = name.partition("-")
        if kind == "publisher":
            group["publish"] = {"topic": which or "x", "qos": qos, "payload": f"{payload - OF_TOPIC_AND_QOS} B",
                                "rate": f"{per_s:g} /s", "arrival": "poisson"}
        else:
            group["subscribe"] = [{"filter": topic, "qos": qos} for topic in "xyz"[: int(which or 1)]]
        yield group


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What is kept of a simulation."""

    delay_mean_ms: float
    delay_std_ms: float
    half_ms: float | None
    """Half width of the mean's 95 % confidence interval, by batch means."""
    never_percent: float
    """Of the deliveries that were expected, those that had not been made when the run ended."""
    diverges: bool
    efficiency: Mapping[str, Mapping[str, float | None]]
    by_subscriber: Mapping[str, float]
    retransmissions: float
    messages: int
    ended_by_rule: bool
    """Whether the mean was known so well, or everybody had so many messages, before the longest time was over."""
    rto_ms: float
    """Mean retransmission timeout at the publishers' ends, back-off included; not a number without samples."""
    publisher_buffer_bytes: float
    """Mean of what a publisher's send buffer held, sent or not; not a number without samples."""
    broker_buffer_bytes: float
    """The same of the broker's send buffers towards the subscribers."""
    greatest_by_second_ms: Mapping[str, Sequence[float]]
    """The greatest delay of the messages of each second from the beginning, by group of subscribers; not a number where
    none came."""
    rto_by_second_ms: Sequence[float]
    """The publishers' mean retransmission timeout in each second."""

    @property
    def grows(self) -> bool:
        """Whether the delay has no bound: it grows from quarter to quarter, or the queue has most of the messages.

        TCP loses nothing, and publishers go on: what more than half of the messages wait for comes to no end.
        """
        return self.diverges or self.never_percent > 50

    @property
    def delay_ms(self) -> float:
        """The mean delay, infinite where it grows without bound."""
        return INFINITE if self.grows else self.delay_mean_ms


def measure(recording: Recording) -> Measured:
    """The delays and efficiencies of a recording."""
    delivered = metrics.deliveries(recording)
    latency = delivered["latency_ms"]
    by_group = delivered.group_by("subscriber_group").agg(pl.col("latency_ms").mean())
    counted = bool(recording.plan["recording"]["packets"] or recording.plan["network"]["media"])
    table = metrics.efficiency(recording) if counted else pl.DataFrame()
    is_backlog = _ended_by_backlog(recording)
    return Measured(
        delay_mean_ms=number_of(latency.mean()),
        delay_std_ms=number_of(latency.std()),
        half_ms=batch_means_ci95(latency.to_numpy()),
        never_percent=_never_percent(recording),
        diverges=_diverges(delivered) or is_backlog,
        efficiency={row["group"]: row for row in table.iter_rows(named=True)},
        by_subscriber=dict(by_group.iter_rows()),
        retransmissions=_retransmissions(recording),
        messages=latency.len(),
        greatest_by_second_ms=_greatest_by_second(delivered),
        ended_by_rule=bool(recording.run.get("details", {}).get("phases", {}).get("stopped")) and not is_backlog,
        **_tcp_state(recording),
    )


def _ended_by_backlog(recording: Recording) -> bool:
    """Whether so much was outstanding as was to end the run; a little came while it ended, or is of the warm-up."""
    stop = recording.plan["sim"]["stop"] if "sim" in recording.plan else None
    bound = None if stop is None else stop.get("deliveries_outstanding")
    whole = metrics.application(recording, ())
    if bound is None or whole.is_empty():
        return False
    return bool(whole["deliveries_expected"][0] - whole["messages_delivered"][0] > 0.9 * bound)


def _never_percent(recording: Recording) -> float:
    whole = metrics.application(recording, ())
    if whole.is_empty() or not whole["deliveries_expected"][0]:
        return float("nan")
    return float(100 * (1 - whole["messages_delivered"][0] / whole["deliveries_expected"][0]))


def _tcp_state(recording: Recording) -> dict[str, Any]:
    """What the ends of the connections knew, sampled."""
    state = recording.tcp_state
    if state.is_empty():
        none = float("nan")
        return {"rto_ms": none, "publisher_buffer_bytes": none, "broker_buffer_bytes": none, "rto_by_second_ms": []}
    groups = recording.layout["clients"].groups

    def of(kind: str, end: str) -> pl.DataFrame:
        clients = [number for number, group in enumerate(groups) if group.startswith(kind)]
        return state.filter(pl.col("client").is_in(clients), pl.col("end").cast(pl.String) == end)

    def held(rows: pl.DataFrame) -> float:
        return number_of((rows["unsent_bytes"].cast(pl.Int64) + rows["unacknowledged_bytes"].cast(pl.Int64)).mean())

    publishers = of("publisher", "client")
    timed = publishers.filter(pl.col("srtt_ns").is_not_null())
    return {"rto_ms": number_of(timed["rto_ns"].mean()) / 1e6, "publisher_buffer_bytes": held(publishers),
            "broker_buffer_bytes": held(of("subscriber", "server")),
            "rto_by_second_ms": [value / 1e6 for value in _by_second(timed, "at_ns", 1e9, pl.col("rto_ns").mean())]}


def _greatest_by_second(delivered: pl.DataFrame) -> dict[str, list[float]]:
    greatest = pl.col("latency_ms").max()
    return {group: _by_second(rows, "intended_s", 1, greatest)
            for (group,), rows in delivered.partition_by("subscriber_group", as_dict=True).items()}


def _by_second(rows: pl.DataFrame, when: str, second: float, value: pl.Expr) -> list[float]:
    """A value for each of the first seconds; not a number where there are no rows."""
    found = dict(rows.group_by((pl.col(when) / second).floor().cast(pl.Int64).alias("at")).agg(value.alias("value"))
                 .iter_rows())
    return [number_of(found.get(at)) for at in range(SECONDS_SHOWN)]


def _diverges(delivered: pl.DataFrame) -> bool:
    """Whether the delay grows from quarter to quarter, and is long: a queue that never empties."""
    if delivered.height < 400:
        return False
    quarters = (
        delivered.with_columns(quarter=(pl.col("intended_s") / pl.col("intended_s").max() * 3.999).floor())
        .group_by("quarter").agg(pl.col("latency_ms").mean()).sort("quarter")["latency_ms"].to_list()
    )
    grows = all(later > 1.2 * earlier for earlier, later in itertools.pairwise(quarters))
    return grows and quarters[-1] > 1000


def _retransmissions(recording: Recording) -> float:
    return float(metrics.sent_again(recording).height)


@dataclass(frozen=True, kw_only=True)
class Printed:
    """One printed number."""

    case: Case
    table: str
    metric: str
    value: float
    """Milliseconds for delays; infinite where the study saw it grow, or prints only that it is above 1 s."""
    source: str
    """The row: its file and number."""
    bound: float | None = None
    """What the value is printed to be more than."""
    place: str = ""
    """The group of subscribers that it is of; all where empty."""


DELAY_TABLES = {
    "5.4": "table_5_4_mss_delay", "5.5": "table_5_5_ethernet_20_delay", "5.12": "table_5_12_wifi_small_delay",
    "5.17": "table_5_17_wifi_20_delay", "5.18": "table_5_18_wifi_20_delay_mss_1024",
}
MEAN, DEVIATION = "mean delay, ms", "standard deviation, ms"


def delay_cells(directory: Path) -> list[Printed]:
    """Every printed mean delay and standard deviation, in the order of the tables."""
    cells = []
    for table, name in DELAY_TABLES.items():
        for source, row in published_rows(directory, name):
            case = _delay_case(table, row)
            for metric, column in ((MEAN, "delay_mean_ms"), (DEVIATION, "delay_std_ms")):
                if printed := row.get(column, ""):
                    value = INFINITE if printed.startswith(">") else as_printed(printed)
                    bound = as_printed(printed[1:]) if printed.startswith(">") else None
                    cells.append(Printed(case=case, table=table, metric=metric, value=value, source=source,
                                         bound=bound))
    return cells + _apart(cells)


def _delay_case(table: str, row: Mapping[str, str]) -> Case:
    if table == "5.4":
        return Ethernet(clients=2, payload=int(row["payload_bytes"]), ber=float(row["ber"]), p_bb=BURSTY,
                        qos=int(row["qos"]), mss=int(row["mss_bytes"]), timestamps=False)
    if table == "5.5":
        return _ethernet(row, 20)
    return _wifi(row, 2 if table == "5.12" else 20)


def _ethernet(row: Mapping[str, str], clients: int) -> Ethernet:
    small = clients == 2
    return Ethernet(clients=clients, payload=int(row["payload_bytes"]), ber=float(row["ber"]), p_bb=float(row["p_bb"]),
                    qos=int(row["qos"]), mss=FIRST_MSS if small else LATER_MSS, timestamps=not small)


def _wifi(row: Mapping[str, str], clients: int) -> Wifi:
    return Wifi(clients=clients, payload=int(row["payload_bytes"]), mean_bad_ms=int(row["mean_bad_ms"]),
                rts_cts=row["rts_cts"] == "enabled", qos=int(row["qos"]), mss=int(row.get("mss_bytes", 536)))


# What the tables call an efficiency: the group it is of, and its column.
NAMES = {
    "publisher_m_efficiency": ("publisher", "s_messages"), "publisher_b_efficiency": ("publisher", "s"),
    "subscriber_m_efficiency": ("subscriber", "r_messages"), "subscriber_b_efficiency": ("subscriber", "r"),
    "S": ("publisher", "s"), "R": ("subscriber", "r"), "T_p": ("publisher", "t"), "T_s": ("subscriber", "t"),
    "S_m": ("publisher", "s_messages"), "R_m": ("subscriber", "r_messages"), "T_pm": ("publisher", "t_messages"),
    "T_sm": ("subscriber", "t_messages"),
}


EFFICIENCY_TABLES = {
    "5.2": "table_5_2_ethernet_small_efficiency", "5.3": "table_5_3_ethernet_small_payload_efficiency",
    "5.6 to 5.9": "tables_5_6_to_5_9_ethernet_20_efficiency", "5.10 to 5.11": "tables_5_10_5_11_ethernet_20_by_topics",
    "5.13": "table_5_13_wifi_small_efficiency", "": "tables_5_14_to_5_16_5_19_to_5_21_wifi_20_efficiency",
}
"""Files by what they hold; the last one's rows name their tables."""


def _table_of(held: str, row: Mapping[str, str]) -> str:
    """The printed table of a row, where a file holds several."""
    bursty = float(row["p_bb"]) == BURSTY if "p_bb" in row else False
    if held == "5.6 to 5.9":
        return {("50", False): "5.6", ("200", False): "5.7", ("50", True): "5.8", ("200", True): "5.9"}[
            row["payload_bytes"], bursty]
    if held == "5.10 to 5.11":
        return "5.11" if bursty else "5.10"
    return held or row["table"]


def efficiency_cells(directory: Path) -> list[Printed]:
    """Every printed efficiency, in the order of the tables."""
    cells = []
    for table, name in EFFICIENCY_TABLES.items():
        for source, row in published_rows(directory, name):
            case: Case
            if table in ("5.2", "5.3"):
                case = _ethernet(row, 2)
            elif table.startswith("5.13") or not table:
                case = _wifi(row, 2 if table else 20)
            else:
                case = _ethernet(row, 20)
            place = f"subscriber-{row['topics_subscribed']}" if "topics_subscribed" in row else ""
            # A table's number is a name: 5.20 is not 5.2.
            cells.append(Printed(case=case, table=_table_of(table, row), metric=row["metric"],
                                 value=as_printed(row["value"]), source=source, place=place))
    return cells + _apart(cells)


def _apart(cells: Iterable[Printed]) -> list[Printed]:
    """The numbers of good channels once more, for the reading that has some clients out of range of each other."""
    return [replace(cell, case=replace(cell.case, apart=True), table=f"{cell.table}{SOME_APART}") for cell in cells
            if isinstance(cell.case, Wifi) and cell.case.clients == 20 and cell.case.mean_bad_ms == 0
            and cell.case.mss == 536 and cell.case.payload in (200, 1000)]


SOME_APART = ", some out of range"
VALIDATION = "figures 4.3 and 4.4"
"""Their values are not printed."""


def order_of(table: str) -> tuple[list[int], str]:
    """Tables by their numbers: 5.2 before 5.10."""
    number = re.search(r"\d+\.\d+", table)
    return [int(part) for part in number[0].split(".")] if number else [], table


def efficiency_of(measured: Measured, place: str, metric: str) -> float:
    """A simulated efficiency: of one group, or of all publishers or subscribers together."""
    kind, column = NAMES[metric]
    groups = [row for group, row in measured.efficiency.items() if group == place or
              (not place and group.startswith(kind))]
    above, below = PARTS[column]
    total = sum(float(row[name] or 0) for row in groups for name in below)
    return sum(float(row[name] or 0) for row in groups for name in above) / total if total else float("nan")


PARTS = {
    "s": (("application_sent_bytes",), ("frames_sent_bytes",)),
    "r": (("application_received_bytes",), ("frames_received_bytes", "frames_overheard_bytes")),
    "t": (("application_sent_bytes", "application_received_bytes"),
          ("frames_sent_bytes", "frames_received_bytes", "frames_overheard_bytes")),
    "s_messages": (("messages_sent",), ("frames_sent",)),
    "r_messages": (("messages_received",), ("frames_received", "frames_overheard")),
    "t_messages": (("messages_sent", "messages_received"),
                   ("frames_sent", "frames_received", "frames_overheard")),
}


def words(case: Case) -> str:
    """A scenario as the tables name it."""
    if isinstance(case, Serial):
        return f"115 kbit/s, 10 B, {case.per_s} /s, BER {case.ber:g}, QoS {case.qos}"
    if isinstance(case, Wifi):
        access = "RTS/CTS" if case.rts_cts else "no RTS/CTS"
        rate = "" if case.per_s is None else f", {case.per_s} a second"
        return f"{case.payload} B, bad {case.mean_bad_ms} ms, {access}, QoS {case.qos}, MSS {case.mss}{rate}"
    channel = "no errors" if case.ber == 0 else f"BER {case.ber:g}, p_BB {case.p_bb:g}"
    # What the section has otherwise is said.
    stamps = "" if case.timestamps == (case.clients > 2) else ", timestamps"
    buffers = "" if case.buffer_segments == 32 else f", buffers of {case.buffer_segments} segments"
    return f"{case.payload} B, {channel}, QoS {case.qos}, MSS {case.mss}{stamps}{buffers}"


def compare_delays(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """The tables of delays, published and ours: means and standard deviations."""
    return [_delay(cell, results[cell.case.name]) for cell in delay_cells(directory) if cell.case.name in results]


def _delay(cell: Printed, ours: Measured) -> Cell:
    is_mean = cell.metric == MEAN
    value = ours.delay_ms if is_mean else INFINITE if ours.grows else ours.delay_std_ms
    return Cell(table=cell.table, place=words(cell.case), metric=cell.metric, published=cell.value, ours=value,
                half=ours.half_ms if is_mean and not ours.grows else None,
                never=ours.never_percent if is_mean else None, source=cell.source, bound=cell.bound)


def compare_efficiencies(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """The efficiency tables, published and ours."""
    return [
        Cell(table=cell.table, place=f"{words(cell.case)} {cell.place}".strip(), metric=cell.metric,
             published=cell.value, ours=efficiency_of(results[cell.case.name], cell.place, cell.metric),
             source=cell.source)
        for cell in efficiency_cells(directory) if cell.case.name in results
    ]


def compare(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """Every table, published and ours, in the order of their numbers."""
    cells = compare_delays(directory, results) + compare_efficiencies(directory, results) + _validation(results)
    return sorted(cells, key=lambda cell: order_of(cell.table))


def _validation(results: Mapping[str, Measured]) -> list[Cell]:
    ran = [(case, results[case.name]) for case in SERIAL if case.name in results]
    return [Cell(table=VALIDATION, place=words(case), metric=MEAN, published=float("nan"), ours=ours.delay_ms,
                 half=None if ours.grows else ours.half_ms, never=ours.never_percent) for case, ours in ran]
