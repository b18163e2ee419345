"""andersen2021's figures, theirs and ours: delay, loss, rate and retransmissions by network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from mqttlab.studies.andersen2021.beyond import PAHO_1_5_SEEDS, repeating_name
from mqttlab.studies.andersen2021.case import NETWORKS, PAYLOADS
from mqttlab.studies.andersen2021.experiment import (
    Application,
    Measured,
    as_paho_1_5,
    published_application,
    published_network,
)
from mqttlab.studies.chart import Chart, Series

NAMES = tuple(NETWORKS.values())
TICKS = ("broadband", "SATCOM", "narrowband", "CNR 1 %", "CNR 10 %")


def charts(directory: Path, results: Mapping[str, Measured]) -> list[Chart]:
    """For each payload the mean delays and the losses by QoS; for both the data rates and what TCP sent again."""
    found = []
    for word, payload in PAYLOADS.items():
        found += [
            _by_qos(directory, results, payload, f"delay-{payload}", f"Mean delay, {word}", "s",
                    lambda row: row.delay_s_mean, log_y=True),
            _by_qos(directory, results, payload, f"loss-{payload}", f"Messages not received, {word}", "%",
                    lambda row: row.messages_lost_percent, log_y=False)]
    for metric, title, unit in (("data_rate_kbit_s", "Data rate towards the clients", "kbit/s"),
                                ("tcp_retransmissions", "TCP retransmissions", "segments")):
        theirs = published_network(directory)
        series = []
        for number, (word, payload) in enumerate(PAYLOADS.items()):
            names = [f"{network}-{payload}" for network in NAMES]
            series += [
                Series(name=f"{word}, published", published=True, colour=number,
                       points=[(float(place), theirs[name, metric]) for place, name in enumerate(names)]),
                Series(name=word, colour=number, points=[
                    (float(place), results[name].network[metric]) for place, name in enumerate(names)
                    if name in results])]
        found.append(Chart(name=metric.replace("_", "-"), title=title, x="network", y=unit, ticks=TICKS,
                           series=series))
    return found


def _by_qos(
    directory: Path, results: Mapping[str, Measured], payload: str, name: str, title: str, unit: str,
    value: Callable[[Application], float], *, log_y: bool,
) -> Chart:
    theirs = published_application(directory)
    names = [f"{network}-{payload}" for network in NAMES]
    series = []
    for qos in (0, 1, 2):
        series += [
            Series(name=f"QoS {qos}, published", published=True, colour=qos,
                   points=[(float(place), value(theirs[case, qos])) for place, case in enumerate(names)]),
            Series(name=f"QoS {qos}", colour=qos,
                   points=[(float(place), value(results[case].by_qos[qos])) for place, case in enumerate(names)
                           if case in results]),
            Series(name=f"QoS {qos}, as paho-mqtt 1.5.1", colour=3 + qos,
                   points=[(float(place), value(as_paho_1_5(results, case).by_qos[qos]))
                           for place, case in enumerate(names)
                           if all(repeating_name(case, seed) in results for seed in PAHO_1_5_SEEDS)])]
    return Chart(name=name, title=title, x="network", y=unit, ticks=TICKS, series=series, log_y=log_y)
