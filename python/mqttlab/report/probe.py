"""Emulated paths as they were measured, beside what their models say."""

from __future__ import annotations

from typing import Any

import polars as pl

from mqttlab.digits import duration
from mqttlab.report.text import number

COLUMNS = ("path", "quantity", "model", "measured", "from")
# The standard normal variable's 97.5 % point: intervals hold in 95 of 100 cases.
Z = 1.959964
LATE_NS = 100_000


def table(found: dict[str, Any]) -> pl.DataFrame:
    """One row per path, direction and quantity, as text, of what a recording holds as ``details.probe``."""
    rows = [row for path in found["paths"] for row in _path(path)]
    return pl.DataFrame(rows, schema={name: pl.String() for name in COLUMNS}, orient="row")


def remarks(found: dict[str, Any]) -> list[str]:
    """What to know before the numbers are compared."""
    said = []
    ways = [path[way]["expected"] for path in found["paths"] for way in ("up", "down")]
    if any(way["delay_sd_ns"] > 0 and way["keeps_order"] for way in ways):
        said.append("Where the delay varies and frames keep their order, a frame waits for the one before it: the mean "
                    "is above the model's, the standard deviation below it.")
    late = max((path["emulator_lateness_p99_ns"] or 0 for path in found["paths"]), default=0)
    if late > LATE_NS:
        said.append(f"The emulator was {duration(late)} late at the 99th percentile; that is in the delays.")
    if found["paths_left_out"]:
        said.append(f"{found['paths_left_out']} further paths with other parameters were not probed.")
    return said


def _path(path: dict[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for way, name in (("up", f"{path['host']} to {path['broker_host']}"),
                      ("down", f"{path['broker_host']} to {path['host']}")):
        rows += [(name, *row) for row in _direction(path[way])]
    expected = sum(path[way]["expected"]["delay_mean_ns"] for way in ("up", "down"))
    rows.append((f"{path['host']} and back", "round trip", duration(expected), duration(path["connect_ns"]),
                 "shortest of 3 TCP handshakes"))
    return rows


def _direction(way: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    expected, udp, trains, tcp = way["expected"], way["udp"], way["trains"], way["tcp"]
    probes = f"{number(udp['received'])} probes by UDP"
    rate = expected["rate_bit_s"]
    lost = udp["sent"] - udp["received"]
    low, high = interval(lost, udp["sent"], expected["loss_inflation"])
    rows = []
    if trains:
        rows.append(("rate", bit_rate(rate), bit_rate(trains["rate_bit_s"]) if trains["frames"] else "–",
                     f"{number(trains['frames'])} frames in {number(trains['trains'])} trains by UDP"))
    if udp["received"]:
        error = Z * udp["delay_sd_ns"] / udp["received"] ** 0.5
        rows += [
            ("delay, mean", duration(expected["delay_mean_ns"]),
             f"{duration(udp['delay_mean_ns'])} ± {duration(error)}", probes),
            ("delay, standard deviation", duration(expected["delay_sd_ns"]), duration(udp["delay_sd_ns"]), probes),
            ("delay, least to largest", "–",
             f"{duration(udp['delay_min_ns'])} to {duration(udp['delay_max_ns'])}", probes),
        ]
    rows.append(("loss", f"{number(expected['loss_percent'], 3)} %",
                 f"{number(100 * lost / udp['sent'], 3)} % (95 %: {number(100 * low, 2)} to {number(100 * high, 2)} %)",
                 f"{number(lost)} of {number(udp['sent'])} probes"))
    if udp["reordered"] or not expected["keeps_order"]:
        rows.append(("overtaken", "–", f"{number(100 * udp['reordered'] / udp['sent'], 3)} %", probes))
    if udp["duplicates"] or expected["duplicates_percent"]:
        rows.append(("duplicates", f"{number(expected['duplicates_percent'], 3)} %",
                     f"{number(100 * udp['duplicates'] / udp['sent'], 3)} %", probes))
    rows.append(("goodput", "no limit" if rate is None else f"below {bit_rate(rate)}", *_goodput(tcp)))
    return rows


def _goodput(tcp: dict[str, Any] | None) -> tuple[str, str]:
    if tcp is None:
        return "no connection", "one bulk transfer by TCP"
    # A slow path may deliver nothing while it is counted, which says that the time was short, and nothing of the path.
    measured = bit_rate(tcp["goodput_bit_s"]) if tcp["bytes"] else "not known: measure for longer"
    return measured, f"{number(tcp['bytes'])} B of one bulk transfer by TCP"


def interval(hits: int, trials: int, inflation: float = 1.0) -> tuple[float, float]:
    """Wilson's 95 % interval of a proportion; ``inflation`` is a factor on its variance."""
    effective = trials / inflation
    part = hits / trials
    centre = (part + Z * Z / (2 * effective)) / (1 + Z * Z / effective)
    half = Z / (1 + Z * Z / effective) * (part * (1 - part) / effective + Z * Z / (4 * effective**2)) ** 0.5
    return max(0.0, centre - half), min(1.0, centre + half)


def bit_rate(value: float) -> str:
    """A bit rate in the unit in which people would say it."""
    for unit, size in (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3)):
        if value >= size:
            return f"{number(value / size, 4)} {unit}"
    return f"{number(float(value), 4)} bit/s"
