"""J. Perez, MQTT Performance Analysis with OMNeT++, 2005: its scenarios on Ethernet and 802.11.

Readings chosen where the study leaves a parameter open:

- "BER" is the chance per bit to go from the good to the bad state; bits in the bad state are wrong with a chance of
  0.065, good ones never. Only so do isolated errors (p_BB 0.1) stay harmless, as the study reports; read as the mean
  bit error rate its tables do not come out with any error rate in the bad state.
- Each direction of each cable has such a channel of its own.
- TCP acknowledges each segment at once: the published m-efficiencies of 1, 1/2 and 1/4 count an acknowledgement for
  each answer of the broker.
- Nagle's algorithm is off: the error-free delay of 4.0 ms has no spread.
- Frames on the cable are Ethernet's 18 bytes and an IP packet, 64 bytes at least.
- On the radio the broker is a station like the others; the 20 clients stand at random places, and hear each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.studies.table import INFINITE, Cell

ERROR_IN_BAD_STATE = 0.065
BURSTY = 0.8


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long to simulate."""

    relative_accuracy: str = "1 %"
    messages_per_subscriber: int = 50_000
    duration_s: float = 600.0
    packets: bool = True


THOROUGH = Effort()
QUICK = Effort(relative_accuracy="5 %", messages_per_subscriber=2_000, duration_s=60.0)


@dataclass(frozen=True, kw_only=True, order=True)
class Ethernet:
    """A scenario on Ethernet: P (one publisher, one subscriber) or Q (ten of each)."""

    clients: int
    payload: int
    ber: float
    p_bb: float
    qos: int
    mss: int = 536
    timestamps: bool = True

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        stamps = "ts" if self.timestamps else "nots"
        return (f"e{self.clients}-{self.payload}B-{self.ber:g}-{self.p_bb:g}-qos{self.qos}"
                f"-{self.mss}-{stamps}").replace(".", "_")

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        cable: dict[str, Any] = {"rate": "100 Mbit/s", "delay": "1 ms", "overhead": "18 B", "minimum_frame": "64 B"}
        if self.ber > 0:
            cable["bit_errors"] = {"good_to_bad": _percent(self.ber), "bad_to_bad": _percent(self.p_bb),
                                   "error_bad": _percent(ERROR_IN_BAD_STATE)}
        tcp = _tcp(self.mss, timestamps=self.timestamps)
        rate = "200 /s" if self.clients == 2 else "40 /s"
        return {
            "name": self.name,
            "phases": {"duration": f"{effort.duration_s:g} s", "warm_up": "2 s", "cool_down": "1 s"},
            "mqtt": {"keep_alive": "0 s", "max_inflight": 65_535},
            "broker": _broker(),
            "hosts": {"broker": {"tcp": tcp}, **{name: {"count": n, "tcp": tcp} for name, n in _hosts(self.clients)}},
            "trunk": {"up": cable, "down": cable},
            "networks": [{"between": [name, "broker"], "shared": False, "up": cable, "down": cable}
                         for name, _ in _hosts(self.clients)],
            "groups": list(_groups(self.clients, self.qos, self.payload, rate)),
            "sim": _sim(effort),
            "recording": {"packets": effort.packets},
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

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        access = "rts" if self.rts_cts else "basic"
        return f"w{self.clients}-{self.payload}B-{self.mean_bad_ms}ms-{access}-qos{self.qos}-{self.mss}"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        small = self.clients == 2
        radio: dict[str, Any] = {"standard": "dsss-2" if small else "b-11", "noise": "-110 dBm", "snir_data": "4 dB",
                                 "path_loss_exponent": 3.0, "area": "150 m x 150 m"}
        if small:
            radio["positions"] = [["0 m", "0 m"], ["20 m", "0 m"], ["0 m", "20 m"]]
        if self.rts_cts:
            radio["rts_threshold"] = "0 B"
        if self.mean_bad_ms > 0:
            radio["channel"] = {"mean_bad": f"{self.mean_bad_ms} ms", "bad": "10 %", "loss_bad": "50 %"}
        tcp = _tcp(self.mss, timestamps=True)
        rate = "25 /s" if small else "1 /s"
        return {
            "name": self.name,
            "phases": {"duration": f"{effort.duration_s * (1 if small else 3):g} s", "warm_up": "10 s",
                       "cool_down": "1 s"},
            "mqtt": {"keep_alive": "0 s", "max_inflight": 65_535},
            "broker": _broker(),
            "hosts": {"broker": {"tcp": tcp}, **{name: {"count": n, "tcp": tcp} for name, n in _hosts(self.clients)}},
            "radio": radio,
            "groups": list(_groups(self.clients, self.qos, self.payload, rate)),
            "sim": _sim(effort),
            "recording": {"packets": False},
        }


Case = Ethernet | Wifi


def _percent(ratio: float) -> str:
    """A ratio as a scenario writes it."""
    return f"{100 * ratio:.12g} %"


def _tcp(mss: int, *, timestamps: bool) -> dict[str, Any]:
    buffer = f"{32 * mss} B"
    return {"profile": "netbsd-2005", "mss": f"{mss} B", "timestamps": timestamps, "delayed_ack": False,
            "send_buffer": buffer, "receive_buffer": buffer}


def _broker() -> dict[str, Any]:
    return {"nagle": False, "max_inflight": 0, "max_queued": 0, "service": {"per_packet": "0 s", "per_copy": "0 s"}}


def _sim(effort: Effort) -> dict[str, Any]:
    """The study's hosts take no time."""
    stop = {"relative_accuracy": effort.relative_accuracy, "messages_per_subscriber": effort.messages_per_subscriber}
    return {"stop": stop, "client_wake_up": "0 s"}


def _hosts(clients: int) -> list[tuple[str, int]]:
    if clients == 2:
        return [("publisher", 1), ("subscriber", 1)]
    return [("publisher-x", 4), ("publisher-y", 3), ("publisher-z", 3),
            ("subscriber-1", 4), ("subscriber-2", 3), ("subscriber-3", 3)]


def _groups(clients: int, qos: int, payload: int, rate: str) -> Iterable[dict[str, Any]]:
    for name, count in _hosts(clients):
        group: dict[str, Any] = {"name": name, "host": name, "count": count, "nagle": False}
        kind, _, which = name.partition("-")
        if kind == "publisher":
            group["publish"] = {"topic": which or "x", "qos": qos, "payload": f"{payload} B", "rate": rate,
                                "arrival": "poisson"}
        else:
            group["subscribe"] = [{"filter": topic, "qos": qos} for topic in "xyz"[: int(which or 1)]]
        yield group


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What is kept of a simulation."""

    delay_mean_ms: float
    delay_std_ms: float
    diverges: bool
    efficiency: Mapping[str, Mapping[str, float | None]]
    by_subscriber: Mapping[str, float]
    retransmissions: float
    messages: int

    @property
    def delay_ms(self) -> float:
        """The mean delay, infinite where it grows without bound."""
        return INFINITE if self.diverges else self.delay_mean_ms


def measure(recording: Recording) -> Measured:
    """The delays and efficiencies of a recording."""
    delivered = metrics.deliveries(recording)
    latency = delivered["latency_ms"]
    by_group = delivered.group_by("subscriber_group").agg(pl.col("latency_ms").mean())
    counted = bool(recording.plan["recording"]["packets"] or recording.plan["network"]["media"])
    table = metrics.efficiency(recording) if counted else pl.DataFrame()
    return Measured(
        delay_mean_ms=_number(latency.mean()),
        delay_std_ms=_number(latency.std()),
        diverges=_diverges(delivered),
        efficiency={row["group"]: row for row in table.iter_rows(named=True)},
        by_subscriber=dict(by_group.iter_rows()),
        retransmissions=_retransmissions(recording),
        messages=latency.len(),
    )


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


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


def published(directory: Path, name: str) -> pl.DataFrame:
    """A table of published values."""
    return pl.read_csv(directory / f"{name}.csv", infer_schema_length=None)


def delay_cells(directory: Path) -> list[tuple[Case, str, float]]:
    """Scenario, table and published mean delay of tables 5.4, 5.5, 5.12, 5.17 and 5.18.

    Milliseconds; infinite where the study saw it grow, or prints only that it is above 1 s.
    """
    cells: list[tuple[Case, str, float]] = []
    for row in published(directory, "table_5_4_mss_delay").iter_rows(named=True):
        case = Ethernet(clients=2, payload=row["payload_bytes"], ber=float(row["ber"]), p_bb=BURSTY, qos=row["qos"],
                        mss=row["mss_bytes"], timestamps=False)
        cells.append((case, "5.4", float(row["delay_mean_ms"])))
    for row in published(directory, "table_5_5_ethernet_20_delay").iter_rows(named=True):
        case = Ethernet(clients=20, payload=row["payload_bytes"], ber=float(row["ber"]), p_bb=row["p_bb"],
                        qos=row["qos"])
        cells.append((case, "5.5", float(row["delay_mean_ms"])))
    for table, name, clients in (("5.12", "table_5_12_wifi_small_delay", 2), ("5.17", "table_5_17_wifi_20_delay", 20),
                                 ("5.18", "table_5_18_wifi_20_delay_mss_1024", 20)):
        for row in published(directory, name).iter_rows(named=True):
            printed = str(row["delay_mean_ms"])
            value = INFINITE if printed.startswith(">") else float(printed)
            cells.append((_wifi(row, clients), table, value))
    return cells


def _wifi(row: Mapping[str, Any], clients: int) -> Wifi:
    return Wifi(clients=clients, payload=row["payload_bytes"], mean_bad_ms=row["mean_bad_ms"],
                rts_cts=row["rts_cts"] == "enabled", qos=row["qos"], mss=row.get("mss_bytes", 536))


# What the tables call an efficiency: the group it is of, and its column.
NAMES = {
    "publisher_m_efficiency": ("publisher", "s_messages"), "publisher_b_efficiency": ("publisher", "s"),
    "subscriber_m_efficiency": ("subscriber", "r_messages"), "subscriber_b_efficiency": ("subscriber", "r"),
    "S": ("publisher", "s"), "R": ("subscriber", "r"), "T_p": ("publisher", "t"), "T_s": ("subscriber", "t"),
    "S_m": ("publisher", "s_messages"), "R_m": ("subscriber", "r_messages"), "T_pm": ("publisher", "t_messages"),
    "T_sm": ("subscriber", "t_messages"),
}


def efficiency_cells(directory: Path) -> list[tuple[Case, str, str, str, float]]:
    """Scenario, table, place, metric and published value of the efficiency tables."""
    cells: list[tuple[Case, str, str, str, float]] = []
    for table, name in (("5.2", "table_5_2_ethernet_small_efficiency"),
                        ("5.3", "table_5_3_ethernet_small_payload_efficiency")):
        for row in published(directory, name).iter_rows(named=True):
            case = Ethernet(clients=2, payload=row["payload_bytes"], ber=float(row["ber"]), p_bb=row["p_bb"],
                            qos=row["qos"], timestamps=False)
            cells.append((case, table, "", row["metric"], float(row["value"])))
    for row in published(directory, "tables_5_6_to_5_9_ethernet_20_efficiency").iter_rows(named=True):
        case = Ethernet(clients=20, payload=row["payload_bytes"], ber=float(row["ber"]), p_bb=row["p_bb"],
                        qos=row["qos"])
        cells.append((case, "5.6-5.9", "", row["metric"], float(row["value"])))
    for row in published(directory, "tables_5_10_5_11_ethernet_20_by_topics").iter_rows(named=True):
        case = Ethernet(clients=20, payload=row["payload_bytes"], ber=float(row["ber"]), p_bb=row["p_bb"],
                        qos=row["qos"])
        cells.append((case, "5.10-5.11", f"subscriber-{row['topics_subscribed']}", row["metric"],
                      float(row["value"])))
    for row in published(directory, "table_5_13_wifi_small_efficiency").iter_rows(named=True):
        cells.append((_wifi(row, 2), "5.13", "", row["metric"], float(row["value"])))
    name = "tables_5_14_to_5_16_5_19_to_5_21_wifi_20_efficiency"
    for row in published(directory, name).iter_rows(named=True):
        cells.append((_wifi(row, 20), str(row["table"]), "", row["metric"], float(row["value"])))
    return cells


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
    if isinstance(case, Wifi):
        access = "RTS/CTS" if case.rts_cts else "no RTS/CTS"
        return f"{case.payload} B, bad {case.mean_bad_ms} ms, {access}, QoS {case.qos}, MSS {case.mss}"
    channel = "no errors" if case.ber == 0 else f"BER {case.ber:g}, p_BB {case.p_bb:g}"
    return f"{case.payload} B, {channel}, QoS {case.qos}, MSS {case.mss}"


def compare_delays(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """Tables 5.4 and 5.5, published and simulated."""
    return [
        Cell(table=table, place=words(case), metric="mean delay, ms", published=value,
             simulated=results[case.name].delay_ms)
        for case, table, value in delay_cells(directory) if case.name in results
    ]


def compare_efficiencies(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """The efficiency tables, published and simulated."""
    return [
        Cell(table=table, place=f"{words(case)} {place}".strip(), metric=metric, published=value,
             simulated=efficiency_of(results[case.name], place, metric))
        for case, table, place, metric, value in efficiency_cells(directory) if case.name in results
    ]


def compare(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """Every table, published and simulated."""
    return compare_delays(directory, results) + compare_efficiencies(directory, results)
