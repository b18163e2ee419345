"""What schuhmacher2018 claims, each claim held against our runs, and its figures with ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import median

from mqttlab.studies.chart import Chart, Series
from mqttlab.studies.claims import Verdict, cause_open, in_words, judged, shown, waits_for
from mqttlab.studies.schuhmacher2018.experiment import (
    KB,
    LAPTOP,
    LIMITS,
    LOSSES,
    OVERHEADS,
    QOS,
    SHARED,
    WIDER,
    Connecting,
    Measured,
    Overhead,
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
from mqttlab.studies.schuhmacher2018.tables import (
    largest_rate,
    never_percent,
    overhead_of,
    pooled_loss,
    pooled_trip_s,
)
from mqttlab.studies.study import published_rows
from mqttlab.studies.table import Comparison

Results = Mapping[str, Measured]


def evaluate(directory: Path, results: Results) -> list[Comparison]:
    """Every claim of ``claims.toml`` with the numbers that decide it; a reason where it does not hold."""
    return judged(directory, results, JUDGES)


def _mean_ms(results: Results, case: Trip) -> float:
    return results[case.name].trips.mean_ms


def _order(_: Path, results: Results) -> Verdict:
    rows = {payload: [_mean_ms(results, laptop(payload, qos)) for qos in QOS] for payload in LAPTOP[:-1]}
    ordered = [payload for payload, row in rows.items() if payload != 500 * KB and all(
        later >= 0.98 * earlier for earlier, later in pairwise(row))]
    short = all(value < 50 for payload, row in rows.items() if payload != 500 * KB for value in row)
    small = rows[LAPTOP[0]]
    off = _mean_ms(results, without_nagle(laptop(LAPTOP[0], 2)))
    evidence = "ms at QoS 0 / 1 / 2: " + "; ".join(f"{payload} B {in_words(row)}" for payload, row in rows.items())
    return len(ordered) == len(rows) - 1 and short, evidence, shown(
        f"the order holds in {len(ordered)} of {len(rows) - 1} rows. What does not are the 50 ms: at QoS 2 small "
        f"messages take {small[2]:.3g} ms, because small packets wait for acknowledgements (Nagle); "
        f"with TCP_NODELAY alone they take {off:.3g} ms. 500 KB every 5.3 ms are 97 MB/s on each of two crossings of "
        "an interface of 125 MB/s: there the round trip grows as long as they are sent, as the study's 18.8 s do")


def _larger(_: Path, results: Results) -> Verdict:
    sizes = (1, 100, KB, 1500, 10 * KB)
    nagle, off = ({qos: [_mean_ms(results, case if on else without_nagle(case)) for payload in sizes
                         for case in [laptop(payload, qos)]] for qos in (1, 2)} for on in (True, False))
    holds = all(min(row[3:]) < 0.6 * row[0] for row in nagle.values())
    cause = all(row[0] < 0.2 * nagle[qos][0] for qos, row in off.items())
    evidence = (f"{in_words(sizes, 5)} B: " + "; ".join(f"QoS {qos} {in_words(row)} ms, with TCP_NODELAY "
                                                      f"{in_words(off[qos])} ms" for qos, row in nagle.items())
                + f"; TCP_NODELAY alone takes it away: {'yes' if cause else 'no'}")
    return holds and cause, evidence, shown(
        "small packets wait for the acknowledgement of the last small segment (Nagle), which the other side delays by "
        "up to 40 ms; from one segment on a message is sent at once, but its tail waits likewise")


def _large_alike(_: Path, results: Results) -> Verdict:
    rows = {payload: [_mean_ms(results, laptop(payload, qos)) for qos in QOS] for payload in LAPTOP[-2:]}
    evidence = "; ".join(f"{payload} B: {in_words(row)} ms" for payload, row in rows.items())
    return all(max(row) < 1.1 * min(row) for row in rows.values()), evidence, cause_open(
        "what QoS adds are a few crossings of small packets and their waits, which do not grow with the payload")


def _knee(_: Path, results: Results) -> Verdict:
    rows = {limit: [float(pooled_trip_s(results, limited(limit, qos), as_printed=False).mean())
                    if pooled_trip_s(results, limited(limit, qos), as_printed=False).size else math.nan
                    for qos in QOS] for limit in LIMITS}
    never = {limit: [never_percent(results, limited(limit, qos)) for qos in QOS] for limit in LIMITS}
    below = [value for limit in LIMITS[:2] for value in rows[limit] if value == value]
    above = [value for limit in LIMITS[2:] for value in rows[limit]]
    explodes = min(below) > 20 * max(above)
    loses = max(never["10kbps"]) > 20 and max(max(never[limit]) for limit in LIMITS[2:]) == 0
    evidence = "s, and never received, at QoS 0 / 1 / 2: " + "; ".join(
        f"{limit} {in_words(rows[limit])} s, {in_words(never[limit])} %" for limit in LIMITS)
    return explodes and loses, evidence, cause_open(
        "10 messages of 10 KB a second cross the limited interface twice, 206 kB/s: at 100kbps (100 kB/s) a backlog "
        "grows, and at 1mbps (1 MB/s) there is none. What does not hold is said of losses: ours are what has not come "
        "back when the run ends, and connections stay, where Paho's broke")


def _fins(_: Path, results: Results) -> Verdict:
    cases = [case for qos in QOS for case in limited("100kbps", qos) + limited("10kbps", qos)]
    falls, smooth = 0, 0
    for case in cases:
        trips = results[case.name].trip_s
        counted = as_the_study_counted(trips)
        falls += sum(later < earlier / 10 for earlier, later in pairwise(counted) if earlier > 10)
        smooth += sum(later < earlier / 10 for earlier, later in pairwise(trips) if earlier > 10)
    printed, seconds = ([float(pooled_trip_s(results, limited("100kbps", qos), as_printed=as_printed).mean())
                         for qos in QOS] for as_printed in (True, False))
    evidence = (f"sudden falls to a tenth, in runs at 10 and 100kbps: {falls} counted as the study's program stored "
                f"them (60 s and more in minutes), {smooth} in seconds; means at 100kbps {in_words(printed)} s and "
                f"{in_words(seconds)} s (published 25.4 / 9.98 / 14.6; its own logs in seconds 32.5 / – / 43.8)")
    return falls > 0 and smooth == 0, evidence, shown(
        "without a round trip of a minute there is nothing to store in minutes: ours stay below it")


def _loss(_: Path, results: Results) -> Verdict:
    rows = {loss: [pooled_loss(results, loss, qos) for qos in QOS] for loss in LOSSES}
    typical = {loss: [value[0] for value in row] for loss, row in rows.items()}
    slow = all(value < 2.5 for loss in (1, 5, 10, 15) for value in typical[loss])
    jump = all(typical[25][qos] > 5 * typical[15][qos] for qos in QOS)
    stops = all(row[3] > 10 for loss in (25, 30) for row in rows[loss])
    broken = sum(results[case.name].disconnects for loss in (25, 30) for qos in QOS for case in lossy(loss, qos))
    evidence = (f"s at QoS 0 / 1 / 2, median (least to greatest) of {len(lossy(1, 0))} runs of 60 messages, and never "
                "received: " + "; ".join(f"{loss} % " + " / ".join(
                    f"{middle:.3g} ({least:.2g} to {most:.2g}), {never:.0f} %" for middle, least, most, never in row)
                    for loss, row in rows.items())
                + f"; {broken} connections lost in the 60 runs at 25 and 30 %")
    return slow and jump and stops, evidence, shown(
        "one run of 60 messages is one draw, and means differ between seeds by a factor: a timeout doubles with each "
        "repetition that is lost in a row")


def overhead_rows(directory: Path, results: Results) -> list[tuple[str, float, float]]:
    """Item, published bytes and ours."""
    ours = {(case.payload, case.qos): results[case.name] for case in OVERHEADS}
    return [(row["item"], float(row["bytes"]), overhead_of(row["item"], ours))
            for _, row in published_rows(directory, "table_6_and_section_5_overhead")]


def _overhead(directory: Path, results: Results) -> Verdict:
    rows = overhead_rows(directory, results)
    wrong = [(item, theirs, ours) for item, theirs, ours in rows if abs(theirs - ours) > 0.01]
    evidence = f"{len(rows) - len(wrong)} of {len(rows)} values equal; " + "; ".join(
        f"{item}: published {theirs:g} B, ours {ours:g} B" for item, theirs, ours in wrong)
    return not wrong, evidence, shown(
        "every byte was counted: the topic's length field of 2 bytes is missing from the published sums and the packet "
        "identifier has 2 bytes, not 1, while the length of the packet itself takes 1 byte and not 2 up to 127 B")


def _bundling(_: Path, results: Results) -> Verdict:
    shared = {qos: results[Overhead(payload=10, qos=qos).name].publish_per_segment_max for qos in QOS}
    evidence = f"most PUBLISH packets of 10 B in one segment, 5 ms apart: {in_words(shared.values())} at QoS 0 / 1 / 2"
    return shared[0] > 1 and shared[1] == shared[2] == 1, evidence, cause_open(
        "at QoS 1 and 2 the broker's answer carries the acknowledgement that lets the next PUBLISH go at once; at QoS "
        "0 nothing answers but a delayed acknowledgement, and Nagle's algorithm gathers what is due meanwhile")


def _future(_: Path, results: Results) -> Verdict:
    rates = {qos: largest_rate(results, qos, 20, 0.1) for qos in QOS}
    windows = {(qos, window): largest_rate(results, qos, window, 10) for qos in (1, 2) for window in (20, 1)}
    kept = {(qos, persistent): sum(results[case.name].trips.never_percent for case in cases) / len(cases)
            for qos in (1, 2) for persistent in (False, True)
            for cases in [reconnecting(qos=qos, persistent=persistent, retain=False)]}
    evidence = ("largest rate of the relay, a second, as an interval: " + "; ".join(
        f"QoS {qos} {low:g} to {high:g}" for qos, (low, high) in rates.items())
        + "; on links of 10 ms: " + "; ".join(f"QoS {qos}, {window} in flight {low:g} to {high:g}"
                                              for (qos, window), (low, high) in windows.items())
        + "; never received under 25 % loss with reconnects: " + "; ".join(
            f"QoS {qos}, {'persistent' if persistent else 'clean'} {value:.0f} %"
            for (qos, persistent), value in kept.items()))
    return None, evidence, "rate, window, sessions and retained messages are done; other brokers wait for adapters"


def _constant_overhead(_: Path, results: Results) -> Verdict:
    rows = {qos: [results[Overhead(payload=payload, qos=qos).name].overhead["overhead_bytes"]
                  for payload in (1, 10, 100, KB, 10 * KB, 1024 * KB)] for qos in QOS}
    evidence = "; ".join(f"QoS {qos}: {in_words(row, 4)} B" for qos, row in rows.items())
    return all(max(row) == min(row) for row in rows.values()), evidence, shown(
        "the remaining length takes 1 byte up to 127 B, 2 up to 16 KB, 3 up to 2 MB and 4 beyond: 2 bytes more, which "
        "is little beside payloads of that size")


def _connect(_: Path, results: Results) -> Verdict:
    rows = {loss: results[Connecting(loss_percent=loss).name] for loss in LOSSES}
    trips = {loss: pooled_loss(results, loss, 1)[0] for loss in LOSSES}
    evidence = "median and 99th percentile to CONNACK: " + "; ".join(
        f"{loss} % {found.connect_ms[0]:.3g} / {found.connect_ms[1]:.4g} ms" for loss, found in rows.items())
    evidence += f"; a round trip of 10 KB takes {in_words(1000 * value for value in trips.values())} ms"
    worse = all(rows[loss].connect_ms[0] > 1000 * trips[loss] for loss in (20, 25, 30))
    short = {loss: median(run.mean_ms for case in short_lossy(loss) if (run := results[case.name].trips).count)
             for loss in LOSSES}
    slower = [loss for loss in LOSSES if rows[loss].connect_ms[0] > short[loss]]
    where = f"{in_words(slower)} %" if slower else "none of these losses"
    return worse, evidence, shown(
        "a message of 10 KB has 32 segments on four crossings to lose, and CONNECT one handshake. With messages of one "
        f"segment (100 B), alone, round trips take {in_words(short.values())} ms at {in_words(LOSSES)} %: connecting "
        f"takes longer than these at {where}. The study's own words are of a call of its "
        "client that never returned, which is not the protocol's")


def _small_best(_: Path, results: Results) -> Verdict:
    rows = {payload: (_mean_ms(results, laptop(payload, 0)),
                      results[Overhead(payload=payload, qos=0).name].publish_per_segment_max) for payload in SHARED}
    evidence = "QoS 0, a round trip and the most PUBLISH packets in a segment: " + "; ".join(
        f"{payload} B {trip:.3g} ms and {shared}" for payload, (trip, shared) in rows.items())
    least = min(trip for trip, _ in rows.values())
    best = all(rows[payload][0] < 1.02 * least and rows[payload][1] > 1 for payload in (128, 256))
    return best, evidence, shown("smaller ones share segments as well and take no longer")


def _dies(_: Path, results: Results) -> Verdict:
    lost = {qos: never_percent(results, pi(1, qos)) for qos in QOS}
    return waits_for(
        "limits of a host's processor, memory and disk; without them bursts of 10, 100 and 1000 messages of 1 B to the "
        f"Raspberry Pi's broker lose {in_words(lost.values())} % at QoS 0 / 1 / 2 (published logs: 0 / 37 / 59 %)")


def _release_bundling(_: Path, results: Results) -> Verdict:
    sizes = (1, 10, 100, KB, 10 * KB, 1024 * KB)
    shared = {payload: results[Overhead(payload=payload, qos=2).name].releases_shared for payload in sizes}
    evidence = "of ten PUBREL packets so many segments have one beside another packet: " + "; ".join(
        f"{payload} B {count}" for payload, count in shared.items())
    return shared[1024 * KB] > 0 and not any(shared[payload] for payload in sizes[:-1]), evidence, cause_open(
        "what is due while a message is on its way goes with its end")


def _first_segments(_: Path, results: Results) -> Verdict:
    first = {payload: results[Overhead(payload=payload, qos=0).name].first_segment_bytes
             for payload in (10 * KB, 1024 * KB)}
    evidence = "mean TCP payload of the first segment, QoS 0, of 1448 B: " + "; ".join(
        f"{payload} B {value:.0f} B" for payload, value in first.items())
    flights = {case.initial_window or 10: in_words(results[case.name].flights_bytes, 6)
               for case in (Overhead(payload=1024 * KB, qos=0), WIDER)}
    return all(value < 1400 for value in first.values()), evidence, shown(
        "all segments are full from the first on. What a capture at the sender shows as one frame is what TCP hands to "
        "its network card at once, for the card to cut into segments; the congestion window bounds it: in the first "
        f"round trips of a message of 1 MB leave {flights[10]} B, and with an initial window of 20 segments, alone, "
        f"{flights[20]} B. The study's own captures have 14480 B in the first round trip and 28960 in the second, in "
        "frames of whole segments; a client that still reads its file would leave others")


JUDGES: dict[str, Callable[[Path, Results], Verdict]] = {
    "qos-order": _order, "larger-is-faster": _larger, "qos-irrelevant-for-large": _large_alike,
    "bandwidth-knee": _knee, "shark-fin": _fins, "loss-knee": _loss, "overhead": _overhead, "bundling": _bundling,
    "future-work": _future, "payload-does-not-change-overhead": _constant_overhead, "connect-suffers-most": _connect,
    "qos0-best-at-128-to-256": _small_best, "broker-dies-of-overload": _dies,
    "qos2-bundles-releases": _release_bundling, "first-segments-not-full": _first_segments,
}


def charts(directory: Path, results: Results) -> list[Chart]:
    """Round trips by payload, over time at 100kbps in both readings, and by loss."""
    by_payload = [row for _, row in published_rows(directory, "tables_2_3_rtt_by_payload")
                  if row["broker_host"] == "laptop"]
    by_loss = [row for _, row in published_rows(directory, "table_5_rtt_by_loss")]
    payload, loss = [], []
    for qos in QOS:
        payload += [
            Series(name=f"QoS {qos}, table 3", published=True, colour=qos, points=[
                (float(row["payload_bytes"]), 1000 * float(row["rtt_mean_s"])) for row in by_payload
                if row["qos"] == str(qos)]),
            Series(name=f"QoS {qos}", colour=qos, points=[
                (float(size), _mean_ms(results, case)) for size in LAPTOP
                if (case := laptop(size, qos)).name in results])]
        # Live there is one run of each instead of ten.
        runs = {value: [results[case.name].trips for case in lossy(value, qos) if case.name in results]
                for value in LOSSES}
        means = {value: [run.mean_ms / 1000 for run in found if run.count] for value, found in runs.items()}
        loss += [
            Series(name=f"QoS {qos}, table 5", published=True, colour=qos, points=[
                (float(row["loss_percent_each_direction"]), float(row["rtt_mean_s"])) for row in by_loss
                if row["qos"] == str(qos)]),
            Series(name=f"QoS {qos}, median of runs", colour=qos,
                   points=[(float(value), median(found)) for value, found in means.items() if found])]
    return [
        Chart(name="table-3", title="Round trip by payload (table 3)", x="payload, B", y="mean round trip, ms",
              log_x=True, log_y=True, series=payload),
        _over_time(results),
        Chart(name="table-5", title="Round trip by loss each way (table 5)", x="loss each way, %",
              y="mean round trip, s", log_y=True, series=loss),
    ]


def _over_time(results: Results) -> Chart:
    series = []
    for qos in QOS:
        case = limited("100kbps", qos)[1]
        if case.name not in results:
            continue
        trips = results[case.name].trip_s
        counted = as_the_study_counted(trips)
        step = max(trips.size // 120, 1)
        series += [Series(name=f"QoS {qos}, as the study stored it", colour=qos, published=True,
                          points=[(float(n), float(counted[n])) for n in range(0, trips.size, step)]),
                   Series(name=f"QoS {qos}, in seconds", colour=qos,
                          points=[(float(n), float(trips[n])) for n in range(0, trips.size, step)])]
    return Chart(name="shark-fins", title="Round trips at 100kbps, 10 a second: the shark fins", x="message",
                 y="round trip, s", series=series)
