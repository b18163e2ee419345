"""Tables 2 to 6 of schuhmacher2018, ours beside theirs, and what goes beyond them.

Two readings of the printed round trips stand in tables 2 and 4: as printed, beside ours counted in the study's way (the
first message dropped, minutes among the seconds); and corrected, from the study's own logs, beside ours in seconds. The
logs are not part of this package: where ``MQTTLAB_SHARED`` names a directory with ``data/schuhmacher2018``, its
``reference_tables.csv`` has the corrected means.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from mqttlab.studies.delays import over_runs
from mqttlab.studies.schuhmacher2018.experiment import (
    FAMILIES,
    LAPTOP,
    LIMITS,
    LOSSES,
    OVERHEADS,
    QOS,
    RATES,
    SEEDS,
    SHARED,
    Connecting,
    Measured,
    Overhead,
    Overload,
    Rate,
    Trip,
    as_the_study_counted,
    laptop,
    limited,
    lossy,
    pi,
    reconnecting,
    short_lossy,
    without_nagle,
)
from mqttlab.studies.study import published_rows
from mqttlab.studies.table import Cell, as_printed

Results = Mapping[str, Measured]
Known = Mapping[tuple[str, str, int], tuple[float, float]]
"""Corrected mean in seconds and share never received in percent, by table, row and QoS."""
NONE = float("nan")


def compare(published: Path, results: Results) -> list[Cell]:
    """Every table, published and ours."""
    known = corrected()
    return [*_payloads(published, results, known), *_overloads(results), *_payloads_without_nagle(results),
            *_limits(published, results, known), *_losses(published, results),
            *_sent(published, results), *_overheads(published, results), *_connecting(results),
            *_small(results), *_short(results), *_rates(results), *_reconnects(results)]


def corrected() -> Known:
    """The study's own logs in seconds: mean, and share never received in percent, by table, row and QoS.

    Empty where the logs are not there.
    """
    path = Path(os.environ.get("MQTTLAB_SHARED", "../shared")) / "data" / "schuhmacher2018" / "reference_tables.csv"
    if not path.is_file():
        return {}
    found = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["corrected_mean_s"]:
                never = 100 * float(row["lost"]) / float(row["sent_ok"])
                found[row["table"], row["row"].lower(), int(row["qos"])] = float(row["corrected_mean_s"]), never
    return found


ROW_NAMES = {1: "1byte", 10: "10byte", 100: "100byte", 1024: "1kbyte", 1500: "1500byte", 10_240: "10kbyte",
             102_400: "100kbyte", 512_000: "500kbyte", 1_048_576: "1mbyte", 10_485_760: "10mbyte"}


def pooled_trip_s(results: Results, cases: Sequence[Trip], *, as_printed: bool) -> np.ndarray:
    """Every round trip of some runs, counted as the study did or in seconds throughout."""
    every = np.concatenate([results[case.name].trip_s for case in cases])
    return as_the_study_counted(every) if as_printed else every


def pooled_half_s(results: Results, cases: Sequence[Trip]) -> float | None:
    """Half width of the 95 % interval of the mean over all round trips of some runs, from the intervals within each;
    none where a run has none."""
    runs = [results[case.name].trips for case in cases if results[case.name].trips.count]
    every = sum(run.count for run in runs)
    halves = [run.half_ms for run in runs]
    if not runs or any(half is None for half in halves):
        return None
    return math.hypot(*(run.count / every * (half or 0.0) / 1000 for run, half in zip(runs, halves, strict=True)))


def never_percent(results: Results, cases: Sequence[Trip]) -> float:
    """Of all messages of some runs, those that never came back."""
    came = sum(results[case.name].trips.count for case in cases)
    # A run's share, weighted by its messages.
    expected = sum(_expected(results[case.name]) for case in cases)
    return 100 * (1 - came / expected) if expected else NONE


def _expected(ours: Measured) -> float:
    never = ours.trips.never_percent
    return ours.trips.count / (1 - never / 100) if never < 100 else 60.0


def _two_readings(
    table: str, place: str, source: str, theirs: float, cases: Sequence[Trip], results: Results,
    known: tuple[float, float] | None,
) -> Iterable[Cell]:
    never = never_percent(results, cases)
    printed = pooled_trip_s(results, cases, as_printed=True)
    seconds = pooled_trip_s(results, cases, as_printed=False)
    half = pooled_half_s(results, cases)
    yield Cell(table=table, place=place, metric="mean round trip, s, as printed", published=theirs, source=source,
               # Minutes among the seconds have no interval.
               ours=float(printed.mean()) if printed.size else NONE,
               half=half if np.array_equal(printed, seconds) else None,
               never=never, published_never=None if known is None else known[1])
    yield Cell(table=table, place=place, metric="mean round trip, s, corrected", never=never, half=half,
               published=NONE if known is None else known[0], ours=float(seconds.mean()) if seconds.size else NONE,
               published_never=None if known is None else known[1])


def _payloads(published: Path, results: Results, known: Known) -> list[Cell]:
    cells: list[Cell] = []
    for source, row in published_rows(published, "tables_2_3_rtt_by_payload"):
        payload, qos = int(row["payload_bytes"]), int(row["qos"])
        table = "3" if row["broker_host"] == "laptop" else "2"
        cases = [laptop(payload, qos)] if table == "3" else pi(payload, qos)
        if all(case.name in results for case in cases):
            cells += _two_readings(table, f"{payload} B, QoS {qos}", source, as_printed(row["rtt_mean_s"]), cases,
                                   results, known.get((table, ROW_NAMES[payload], qos)))
    return sorted(cells, key=lambda cell: cell.table)


def _overloads(results: Results) -> Iterable[Cell]:
    """When the broker died, from the first message on; without end where it lived."""
    table = "2, limits of the host"
    for case in FAMILIES[table]:
        if isinstance(case, Overload) and case.name in results:
            ours = results[case.name]
            disk = ", no limit of the disk" if case.free_disk else ""
            place = (f"{case.payload} B, QoS {case.qos}, {case.memory_mb} MB, "
                     f"{'with' if case.persistence else 'without'} persistence{disk}")
            yield Cell(table=table, place=place, metric="the broker died after, s", published=NONE,
                       ours=ours.broker_died_s, never=ours.trips.never_percent)


def _payloads_without_nagle(results: Results) -> Iterable[Cell]:
    for payload in LAPTOP:
        for qos in QOS:
            ours = results.get(without_nagle(laptop(payload, qos)).name)
            if ours is not None:
                half = ours.trips.half_ms
                yield Cell(table="3, TCP_NODELAY", place=f"{payload} B, QoS {qos}", metric="mean round trip, s",
                           published=NONE, ours=ours.trips.mean_ms / 1000, half=None if half is None else half / 1000,
                           never=ours.trips.never_percent)


def _limits(published: Path, results: Results, known: Known) -> list[Cell]:
    cells: list[Cell] = []
    for source, row in published_rows(published, "table_4_rtt_by_bandwidth"):
        limit, qos = row["tc_rate"], int(row["qos"])
        cases = limited(limit, qos)
        if all(case.name in results for case in cases):
            theirs = as_printed(row["rtt_mean_s"])
            cells += _two_readings("4", f"{limit}, QoS {qos}", source, theirs, cases, results,
                                   known.get(("4", limit, qos)))
    return cells


def _losses(published: Path, results: Results) -> list[Cell]:
    cells: list[Cell] = []
    known = corrected()
    for source, row in published_rows(published, "table_5_rtt_by_loss"):
        loss, qos = int(row["loss_percent_each_direction"]), int(row["qos"])
        runs = [results[case.name].trips for case in lossy(loss, qos) if case.name in results]
        if not runs:
            continue
        whole = over_runs(runs)
        theirs = known.get(("5", f"{loss}%", qos))
        place = f"{loss} % each way, QoS {qos}"
        cells.append(Cell(
            table="5", place=place, metric="mean round trip, s", published=as_printed(row["rtt_mean_s"]), source=source,
            ours=whole.mean_ms / 1000, half=None if whole.half_ms is None else whole.half_ms / 1000,
            never=whole.never_percent, published_never=None if theirs is None else theirs[1]))
        means = [run.mean_ms / 1000 for run in runs if run.count]
        cells += [Cell(table="5", place=place, metric=f"{word} of {len(runs)} means, s", published=NONE, ours=value)
                  for word, value in (("least", min(means)), ("median", median(means)), ("greatest", max(means)))]
    return cells


def _sent(published: Path, results: Results) -> Iterable[Cell]:
    """Section 3.3: how many round trips the study has at 100kbps, by nominal rate."""
    for source, row in published_rows(published, "section_3_3_observations_sent_at_100kbps"):
        qos, rate = int(row["qos"]), int(row["rate_per_s"])
        case = limited("100kbps", qos)[(1, 10, 100).index(rate)]
        if case.name in results:
            yield Cell(table="3.3", place=f"100kbps, QoS {qos}, {rate} a second", metric="round trips", source=source,
                       published=as_printed(row["observations"]), ours=float(results[case.name].trips.count - 1),
                       shorter=_expected(results[case.name]) < 0.9 * case.messages)


def _overheads(published: Path, results: Results) -> Iterable[Cell]:
    ours = {(case.payload, case.qos): results[case.name] for case in OVERHEADS if case.name in results}
    for source, row in published_rows(published, "table_6_and_section_5_overhead"):
        if value := overhead_of(row["item"], ours):
            yield Cell(table="6", place=row["item"], metric="bytes", published=as_printed(row["bytes"]), ours=value,
                       source=source)
    for (payload, qos), measured in ours.items():
        yield Cell(table="6", place=f"{payload} B, QoS {qos}, acknowledgements included", metric="bytes a PUBLISH",
                   published=NONE, ours=measured.overhead["overhead_bytes"])


def overhead_of(item: str, ours: Mapping[tuple[int, int], Measured]) -> float:
    """Ours for a row of table 6 and section 5, at the payload of 10 B; 0 where it was not run."""
    if item.startswith("topic"):
        return ours[10, 0].overhead["overhead_topic_bytes"] - 2 if (10, 0) in ours else 0.0
    qos = int(item[4]) if item.startswith("QoS") else {"PUBACK": 1, "PUBREC": 2, "PUBREL": 2, "PUBCOMP": 2}.get(item, 0)
    if (10, qos) not in ours:
        return 0.0
    found = ours[10, qos]
    if item.startswith("QoS"):
        without = found.overhead["overhead_acknowledgements_bytes"] if "PUBLISH overhead" in item else 0.0
        return found.overhead["overhead_bytes"] - without
    return found.packet_bytes.get(item, 0.0)


def _connecting(results: Results) -> Iterable[Cell]:
    for case in FAMILIES["connecting under loss"]:
        if isinstance(case, Connecting) and case.name in results:
            found = results[case.name]
            place = f"{case.loss_percent} % each way, {case.syn_retries} SYN retries"
            for metric, value in (("median to CONNACK, ms", found.connect_ms[0]),
                                  ("99th percentile to CONNACK, ms", found.connect_ms[1]),
                                  ("CONNACKs for 50 clients", float(found.connected)),
                                  ("connections lost", float(found.disconnects))):
                yield Cell(table="connecting under loss", place=place, metric=metric, published=NONE, ours=value)


def keeps_up(ours: Measured) -> bool:
    """The criterion of the search: nothing is missing at the end, and the last fifth takes no longer than twice the
    first one."""
    trips = ours.trip_s
    fifth = max(trips.size // 5, 1)
    return (ours.trips.never_percent == 0 and trips.size > 0
            and float(trips[-fifth:].mean()) <= 2 * float(trips[:fifth].mean()))


def largest_rate(results: Results, qos: int, window: int, delay_ms: float) -> tuple[float, float]:
    """The largest rate of the ladder that the relay keeps up with, and the next, where it does not."""
    kept = [rate for rate in RATES if (name := Rate(per_s=rate, qos=qos, window=window, delay_ms=delay_ms).name)
            in results and keeps_up(results[name])]
    least = max(kept, default=0)
    above = [rate for rate in RATES if rate > least]
    return float(least), float(above[0]) if above else math.inf


def _small(results: Results) -> Iterable[Cell]:
    table = "small payloads at QoS 0"
    for payload in SHARED:
        trip, seen = laptop(payload, 0), Overhead(payload=payload, qos=0)
        if trip.name in results and seen.name in results:
            ours = results[trip.name].trips
            yield Cell(table=table, place=f"{payload} B", metric="mean round trip, ms", published=NONE,
                       ours=ours.mean_ms, half=ours.half_ms, never=ours.never_percent)
            yield Cell(table=table, place=f"{payload} B", metric="most PUBLISH packets in a segment", published=NONE,
                       ours=float(results[seen.name].publish_per_segment_max))


def _short(results: Results) -> Iterable[Cell]:
    for loss in LOSSES:
        runs = [results[case.name].trips for case in short_lossy(loss) if case.name in results]
        if runs:
            whole = over_runs(runs)
            yield Cell(table="messages of one segment under loss", place=f"100 B, {loss} % each way, QoS 1",
                       metric="mean round trip, s", published=NONE, ours=whole.mean_ms / 1000,
                       half=None if whole.half_ms is None else whole.half_ms / 1000, never=whole.never_percent)


def _rates(results: Results) -> Iterable[Cell]:
    for table, delay_ms, windows in (("maximum rate", 0.1, (20,)), ("one in flight", 0.1, (1,)),
                                     ("one in flight", 10, (20, 1))):
        for qos in QOS:
            for window in windows:
                if Rate(per_s=RATES[0], qos=qos, window=window, delay_ms=delay_ms).name not in results:
                    continue
                low, high = largest_rate(results, qos, window, delay_ms)
                place = f"QoS {qos}, {window} in flight, links of {delay_ms:g} ms"
                yield Cell(table=table, place=place, metric="kept up with, a second", published=NONE, ours=low)
                yield Cell(table=table, place=place, metric="not kept up with, a second", published=NONE, ours=high)


def _reconnects(results: Results) -> Iterable[Cell]:
    for qos in (1, 2):
        for persistent in (False, True):
            for retain in (False, True):
                cases = reconnecting(qos=qos, persistent=persistent, retain=retain)
                if any(case.name not in results for case in cases):
                    continue
                whole = over_runs([results[case.name].trips for case in cases])
                place = (f"QoS {qos}, {'persistent' if persistent else 'clean'} sessions"
                         f"{', retained' if retain else ''}")
                yield Cell(table="reconnects", place=place, metric="mean round trip, s", published=NONE,
                           ours=whole.mean_ms / 1000, half=None if whole.half_ms is None else whole.half_ms / 1000,
                           never=whole.never_percent)
                yield Cell(table="reconnects", place=place, metric="connections lost, per run", published=NONE,
                           ours=sum(results[case.name].disconnects for case in cases) / len(cases))


def limits_of(results: Results) -> list[tuple[str, int]]:
    """The cells of table 4 that were run."""
    return [(limit, qos) for limit in LIMITS for qos in QOS
            if all(case.name in results for case in limited(limit, qos))]


def pooled_loss(results: Results, loss: int, qos: int) -> tuple[float, float, float, float]:
    """Of the runs' means in seconds the median, the least and the greatest; share never received in percent."""
    runs = [results[case.name].trips for case in lossy(loss, qos)]
    means = [run.mean_ms / 1000 for run in runs if run.count]
    return median(means), min(means), max(means), over_runs(runs).never_percent


__all__ = ["LOSSES", "SEEDS", "Overhead", "compare", "keeps_up", "largest_rate", "pooled_loss", "pooled_trip_s"]
