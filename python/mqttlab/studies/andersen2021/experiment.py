"""E. P. Andersen, Creating an Analysis Tool for Testing and Evaluating the MQTT Protocol, 2021: its ten scenarios.

What is simulated are the points of ``experiments/networks.toml``, at full length. Readings chosen where the study
leaves something open:

- Its clients publish in step, QoS 0 first and QoS 2 last: on NATO Narrowband that makes mean delays of 2.0, 4.2 and
  8.9 s with GPS (printed: 2.15, 3.55 and 9.74), on SATCOM 0.79, 1.20 and 2.72 s with images (0.87, 1.24 and 2.6).
  At random moments it would be 1.2, 1.0 and 2.7 s, and 0.60, 0.59 and 1.70 s. Over all lossless rows the mean delays
  are off by a factor of 1.15 in step and 1.44 at random. SATCOM with GPS alone fits better at random.
- Delay and loss are on the broker's way out only, as the study's netem was: its smallest delays are one latency at
  QoS 0 and three at QoS 2.
- "Data rate" is that of the direction towards the clients: it is what stays below the rate of each network.
- "Message size" is a frame with the end of a PUBLISH, Ethernet's 14 bytes included. The study's own captures merge
  segments (receive offload), so that frames longer than 1514 bytes appear in them; here each segment is a frame.
- The study describes images of about 1300 B, and its captures show PUBLISH packets of about 1520 B (a whole one of
  1589 B as a frame, a second segment of 138 B). The scenarios keep to the description: one segment an image. Its
  captured GPS frames of 438 B are 34 B shorter than ours.
- Losses are counted among the messages sent, in percent: the study's clients stop to count while they are offline,
  the ones here send or queue on.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from mqttlab import metrics
from mqttlab.experiments import load
from mqttlab.experiments.scenarios import scenarios
from mqttlab.metrics.frames import frames, marked
from mqttlab.networks.models import MODELS
from mqttlab.recording import Recording
from mqttlab.statistics import proportion_interval
from mqttlab.studies.andersen2021.beyond import (
    CERTAINTY,
    NEVER,
    PAHO_1_5_SEEDS,
    SEEDS,
    SILENCE,
    TABLES,
    families,
    of_the_study,
    paho_name,
    repeating_name,
    seeded_name,
)
from mqttlab.studies.andersen2021.case import NETWORKS, PAYLOADS, Case
from mqttlab.studies.study import Case as AnyCase
from mqttlab.studies.study import number_of, of_tables, published_rows
from mqttlab.studies.table import Cell, as_printed, pooled

ETHERNET_BYTES = 14
STUDY_S = 600.0
"""The study's clients publish for ten minutes."""
NETWORK_TABLES, APPLICATION_TABLES = "tables_5_1_to_5_9_network_layer", "tables_5_2_to_5_10_application_layer"


@dataclass(frozen=True, kw_only=True)
class Application:
    """What the application-layer tables print of one QoS level."""

    messages_sent: float
    messages_lost_percent: float
    delay_s_min: float
    delay_s_mean: float
    delay_s_max: float
    disconnects: float
    delay_s_half: float | None = None
    """Half width of the mean's 95 % confidence interval, by batch means."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What is kept of a simulation."""

    by_qos: Mapping[int, Application]
    network: Mapping[str, float]
    """By the metric's name in the published tables."""
    measured_s: float = STUDY_S
    """The length of the measurement."""


def cases(directory: Path, tables: Sequence[str]) -> list[AnyCase]:
    """The scenarios behind these tables; without tables, the ten and what goes beyond them."""
    printed = [row for name in (NETWORK_TABLES, APPLICATION_TABLES) for _, row in published_rows(directory, name)]
    wanted = [row for row in printed if not tables or row["table"] in tables or {"4.1", "6.1"} & set(tables)]
    points = _points(directory)
    names = dict.fromkeys(case_name(row["network"], row["payload"]) for row in wanted)
    ten: list[AnyCase] = [Case(name=name, values=points[name]) for name in names]
    own = [case for name in names for case in of_the_study(points, name)]
    every = [*ten, *own, *of_tables(families(points), tables)]
    return list({case.name: case for case in every}.values())


def _points(directory: Path) -> Mapping[str, dict[str, Any]]:
    return scenarios(load(directory.parent / "experiments" / "networks.toml"))


def tables(directory: Path) -> list[str]:
    """The names of the tables, in the order of their numbers."""
    printed = {row["table"] for name in (NETWORK_TABLES, APPLICATION_TABLES)
               for _, row in published_rows(directory, name)}
    return [*sorted({"4.1", *printed, "6.1"}, key=_number_of), *TABLES]


NETWORK_LAYER, APPLICATION_LAYER = ("5.1", "5.3", "5.5", "5.7", "5.9"), ("5.2", "5.4", "5.6", "5.8", "5.10")
ALIASES = {"table 5.11": NETWORK_LAYER, "table 5.12": NETWORK_LAYER, "table 5.13": APPLICATION_LAYER,
           "table 5.14": APPLICATION_LAYER, "figure 5.1": ("5.4",), "figure 5.2": ("5.6",), "figure 5.3": ("5.8",),
           "figure 5.4": ("5.10",), "table clients as paho-mqtt 1.5.1": ("5.6", "5.8", "5.10")}
"""Tables 5.11 to 5.14 print those before them once more, by payload; the figures are their mean delays."""


def _number_of(table: str) -> list[int]:
    return [int(part) for part in table.split(".")]


def case_name(network: str, payload: str) -> str:
    """The scenario of a network and a payload as the tables name them."""
    return f"{NETWORKS[network]}-{PAYLOADS[payload]}"


def measure(recording: Recording) -> Measured:
    """The application layer by QoS, and the network layer of the whole run."""
    by_qos = {row["qos"]: _application(row) for row in metrics.application(recording).iter_rows(named=True)}
    return Measured(by_qos=by_qos, network=_network(recording),
                    measured_s=recording.plan["phases"]["duration_ns"] / 1e9)


def _application(row: Mapping[str, Any]) -> Application:
    return Application(
        messages_sent=row["messages_sent"],
        # Published as lost is what had not arrived when the experiment ended, under way or not.
        messages_lost_percent=100 * (1 - row["messages_delivered"] / row["deliveries_expected"])
        if row["deliveries_expected"] else float("nan"),
        delay_s_min=number_of(row["latency_ms_min"]) / 1000,
        delay_s_mean=number_of(row["latency_ms_mean"]) / 1000,
        delay_s_max=number_of(row["latency_ms_max"]) / 1000,
        disconnects=row["disconnects"],
        delay_s_half=None if row["latency_ms_mean_ci95"] is None else row["latency_ms_mean_ci95"] / 1000,
    )


def _network(recording: Recording) -> dict[str, float]:
    seen = frames(recording)
    if seen.is_empty():
        return {}
    sent = seen.filter(pl.col("hop") == 0)
    of_publish = sent.filter(pl.col("publishes") > 0)["ip_bytes"].cast(pl.Int64) + ETHERNET_BYTES
    both = metrics.network(recording, ["direction"])
    outwards = both.filter(pl.col("direction") == "to_client")
    return {
        "total_packets": float(sent.height),
        "data_rate_kbit_s": float(outwards["data_rate_kbit_s"].sum()),
        "min_message_bytes": number_of(of_publish.min()),
        "avg_message_bytes": number_of(of_publish.mean()),
        "max_message_bytes": number_of(of_publish.max()),
        "tcp_retransmissions": float(sent.select(marked("retransmission").sum()).item()),
        "spurious_retransmissions": float(both["retransmissions_spurious"].sum()),
        "duplicate_acks": float(sent.select(marked("duplicate_ack").sum()).item()),
    }


def published_application(directory: Path) -> dict[tuple[str, int], Application]:
    """The printed application-layer rows, by scenario and QoS."""
    return {
        (case_name(row["network"], row["payload"]), int(row["qos"])): Application(
            messages_sent=as_printed(row["messages_sent"]),
            messages_lost_percent=100 * float(row["messages_lost"]) / float(row["messages_sent"]),
            delay_s_min=as_printed(row["min_delay_s"]),
            delay_s_mean=as_printed(row["avg_delay_s"]),
            delay_s_max=as_printed(row["max_delay_s"]),
            disconnects=as_printed(row["disconnects"]),
        )
        for _, row in published_rows(directory, APPLICATION_TABLES)
    }


def compare(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """Every table, published and simulated, in the order of their numbers."""
    own = _own_clients(results)
    others = {name: found for name, found in results.items() if not any(name in run for run in own)}
    cells = [*_table_of_models(directory, results), *_layers(directory, others),
             *pooled([_layers(directory, run) for run in own] or [[]]), *_recommended(directory, results)]
    return sorted(cells, key=lambda cell: _number_of(cell.table)) + _beyond(directory, results)


def _layers(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    return [*_compare_network(directory, results), *_compare_application(directory, results)]


def _own_clients(results: Mapping[str, Measured]) -> list[dict[str, Measured]]:
    """For each seed the scenarios with the study's own clients, paho-mqtt 1.5.1's, by the names of the ten."""
    names = {case_name(network, payload) for network in NETWORKS for payload in PAYLOADS}
    runs = [{name: results[ran] for name in sorted(names) if (ran := repeating_name(name, seed)) in results}
            for seed in PAHO_1_5_SEEDS]
    # Live it is one of them, as often as all is repeated.
    runs = [run for run in runs if run]
    return runs if all(run.keys() == runs[0].keys() for run in runs) else []


def _beyond(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """The tables that the study has not: beside the printed values where there are any."""
    cells = _silence_cells(directory, results) + _never_cells(directory, results)
    for table, family in families(_points(directory)).items():
        if table in (SILENCE, NEVER, CERTAINTY):
            continue
        for case in family:
            if case.name in results:
                cells += [Cell(table=table, place=f"{case.name}, QoS {qos}", metric="mean delay, s",
                               published=float("nan"), ours=row.delay_s_mean, half=row.delay_s_half,
                               never=row.messages_lost_percent) for qos, row in results[case.name].by_qos.items()]
    return cells + _certainty_cells(directory, results)


def _silence_cells(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """The narrow networks once more, with clients that count silence: printed values beside these."""
    again = {case_name(network, payload): results[name] for network in NETWORKS for payload in PAYLOADS
             if (name := paho_name(NETWORKS[network], PAYLOADS[payload])) in results}
    return [replace(cell, table=SILENCE) for cell in _compare_application(directory, again)
            if cell.metric in (METRICS["messages_lost_percent"], METRICS["delay_s_mean"], METRICS["disconnects"])]


def _never_cells(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """The narrow networks once more, with clients that never repeat: printed values beside these."""
    usual = {case.name: results[case.name] for case in families(_points(directory))[NEVER] if case.name in results}
    return [replace(cell, table=NEVER) for cell in _layers(directory, usual)]


def as_paho_1_5(results: Mapping[str, Measured], name: str) -> Measured:
    """A narrow scenario with the study's clients: means over the seeds."""
    runs = [results[repeating_name(name, seed)] for seed in PAHO_1_5_SEEDS]
    by_qos = {}
    for qos in (0, 1, 2):
        rows = [vars(run.by_qos[qos]) for run in runs]
        by_qos[qos] = Application(**{key: _mean(row[key] for row in rows) for key in rows[0]
                                     if key != "delay_s_half"})
    return Measured(by_qos=by_qos, network={key: _mean(run.network[key] for run in runs) for key in runs[0].network})


def _mean(values: Iterable[float]) -> float:
    """Of those that are numbers."""
    some = [value for value in values if value == value]
    return statistics.fmean(some) if some else float("nan")


def _certainty_cells(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """In how many percent of the seeds a QoS level is recommended, beside whether the study does."""
    cells = []
    for source, row in published_rows(directory, "table_6_1_recommendations"):
        shares = certainty(case_name(row["network"], row["payload"]), results)
        for qos, (share, half) in shares.items():
            cells.append(Cell(
                table=CERTAINTY, place=f"{row['network']}, {row['payload']}, QoS {qos}", source=source,
                metric="recommended, % of the seeds", published=100.0 * (str(qos) in row["qos"]), ours=share,
                half=half))
    return cells


def certainty(name: str, results: Mapping[str, Measured]) -> dict[int, tuple[float, float]]:
    """For each QoS level the share of a scenario's seeds in which it is recommended, and half of its 95 % interval."""
    ran = [results[seeded].by_qos for seed in SEEDS if (seeded := seeded_name(name, seed)) in results]
    if len(ran) < len(SEEDS):
        return {}
    found = {}
    for qos in (0, 1, 2):
        interval = proportion_interval(sum(qos in recommended(rows) for rows in ran), len(ran))
        found[qos] = (100 * interval.estimate, 100 * max(interval.high - interval.estimate,
                                                         interval.estimate - interval.low))
    return found


def _compare_network(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    # A table has GPS first, then images.
    rows = sorted(published_rows(directory, NETWORK_TABLES), key=lambda found: found[1]["payload"])
    return [
        Cell(table=row["table"], place=f"{row['network']}, {row['payload']}", metric=row["metric"], source=source,
             published=as_printed(row["value"]), ours=results[name].network.get(row["metric"], float("nan")),
             shorter=row["metric"] in COUNTS and _is_shorter(results[name]))
        for source, row in rows if (name := case_name(row["network"], row["payload"])) in results
    ]


def _compare_application(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    cells: list[Cell] = []
    printed = published_application(directory)
    for source, row in published_rows(directory, APPLICATION_TABLES):
        name, qos = case_name(row["network"], row["payload"]), int(row["qos"])
        if name not in results:
            continue
        place = f"{row['network']}, {row['payload']}, QoS {qos}"
        theirs, ours = printed[name, qos], results[name].by_qos[qos]
        for metric, words in METRICS.items():
            is_mean = metric == "delay_s_mean"
            cells.append(Cell(
                table=row["table"], place=place, metric=words, published=vars(theirs)[metric],
                shorter=metric in COUNTS and _is_shorter(results[name]), ours=float(vars(ours)[metric]),
                source=source, half=ours.delay_s_half if is_mean else None,
                never=ours.messages_lost_percent if is_mean else None,
                published_never=theirs.messages_lost_percent if is_mean else None))
    return cells


def _table_of_models(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """Table 4.1: what the networks are set to; ours is the model of that name."""
    run = {name.rpartition("-")[0] for name in results}
    cells = []
    for source, row in published_rows(directory, "table_4_1_network_models"):
        if (name := NETWORKS[row["network"]]) in run:
            link = MODELS[name].down
            ours = {"data_rate_bit_s": float(link.rate or 0), "latency_ms": link.delay / 1e6,
                    "loss_percent": 100 * link.loss[0] / link.loss[1]}
            cells += [Cell(table="4.1", place=row["network"], metric=column, published=as_printed(row[column]),
                           source=source, ours=value) for column, value in ours.items()]
    return cells


def _recommended(directory: Path, results: Mapping[str, Measured]) -> list[Cell]:
    """Table 6.1 as numbers: at how many QoS levels a network and payload are recommended."""
    cells = []
    for source, row in published_rows(directory, "table_6_1_recommendations"):
        name = case_name(row["network"], row["payload"])
        if name in results:
            cells.append(Cell(
                table="6.1", place=f"{row['network']}, {row['payload']}: QoS {row['qos'] or 'none'}", source=source,
                metric="QoS levels recommended", published=float(len(row["qos"].split(" and ")) if row["qos"] else 0),
                ours=float(len(recommended(results[name].by_qos)))))
    return cells


# Of the study's own numbers, every bound from 1.43 to 1.65 makes its table 6.1.
DELAY_OVER_QOS0_MAX = 1.6


def recommended(rows: Mapping[int, Application]) -> list[int]:
    """The levels at which nothing is lost, nobody disconnects, and the delay is little longer than at QoS 0."""
    return [qos for qos, row in rows.items() if row.messages_lost_percent == 0 and row.disconnects == 0
            and row.delay_s_mean <= DELAY_OVER_QOS0_MAX * rows[0].delay_s_mean]


METRICS = {
    "messages_sent": "messages sent", "messages_lost_percent": "messages lost, %", "delay_s_min": "least delay, s",
    "delay_s_mean": "mean delay, s", "delay_s_max": "greatest delay, s", "disconnects": "disconnects",
}
COUNTS = {"messages_sent", "disconnects", "total_packets", "tcp_retransmissions", "duplicate_acks"}
"""Metrics of both layers that grow with the length of a run."""


def _is_shorter(ours: Measured) -> bool:
    """Whether our clients had less time than the study's."""
    return ours.measured_s < STUDY_S


def published_network(directory: Path) -> dict[tuple[str, str], float]:
    """The printed network-layer values, by scenario and metric."""
    return {(case_name(row["network"], row["payload"]), row["metric"]): as_printed(row["value"])
            for _, row in published_rows(directory, NETWORK_TABLES)}
