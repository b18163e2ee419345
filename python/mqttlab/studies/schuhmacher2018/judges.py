"""What schuhmacher2018 claims, each claim held against our runs, and its figures with ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from mqttlab.studies.chart import Chart, Series
from mqttlab.studies.claims import (
    MissingResult,
    Verdict,
    assumed,
    cause_open,
    in_words,
    judged,
    plain,
    reasons,
    shown,
)
from mqttlab.studies.schuhmacher2018.experiment import (
    BURSTS,
    KB,
    LAPTOP,
    LIMITS,
    LOSSES,
    OVERHEADS,
    OVERLOAD_S,
    OVERLOADS,
    PI_MEMORY_MB,
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
    reconnecting,
    short_lossy,
    with_free_disk,
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


def _by_payload(results: Results) -> dict[int, list[float]]:
    """Means by QoS of the payloads up to 1 MB, but for the 500 KB cells that the study excepts."""
    return {payload: [_mean_ms(results, laptop(payload, qos)) for qos in QOS] for payload in LAPTOP[:-1]
            if payload != 500 * KB}


def _order(_: Path, results: Results) -> Verdict:
    rows = _by_payload(results)
    ordered = [payload for payload, row in rows.items() if all(
        later >= 0.98 * earlier for earlier, later in pairwise(row))]
    evidence = f"in {len(ordered)} of {len(rows)} rows; ms at QoS 0 / 1 / 2: " + "; ".join(
        f"{payload} B {in_words(row)}" for payload, row in rows.items())
    return len(ordered) == len(rows), evidence, cause_open()


def _below_50(_: Path, results: Results) -> Verdict:
    rows = _by_payload(results)
    above = {f"{payload} B at QoS {qos}": value for payload, row in rows.items() for qos, value in enumerate(row)
             if value >= 50}
    off = [_mean_ms(results, without_nagle(laptop(payload, 2))) for payload in LAPTOP[:3]]
    evidence = "above 50 ms: " + (", ".join(f"{place} {value:.3g} ms" for place, value in above.items()) or "none")
    return not above, evidence, shown(
        "small packets wait for acknowledgements (Nagle), at QoS 2 for more of them here than in the study: with "
        f"TCP_NODELAY alone {in_words(LAPTOP[:3])} B take {in_words(off)} ms at QoS 2", follows=max(off) < 50)


def _half_megabyte(_: Path, results: Results) -> Verdict:
    ours = [_mean_ms(results, laptop(500 * KB, qos)) / 1000 for qos in QOS]
    return max(ours) > 10, f"{in_words(ours)} s at QoS 0 / 1 / 2", assumed(
        "500 KB every 5.3 ms nearly fill an interface of 125 MB/s that they cross twice, so that a queue grows")


def _larger(_: Path, results: Results) -> Verdict:
    sizes = (1, 100, KB, 1500, 10 * KB)
    nagle, off = ({qos: [_mean_ms(results, case if on else without_nagle(case)) for payload in sizes
                         for case in [laptop(payload, qos)]] for qos in (1, 2)} for on in (True, False))
    holds = all(min(row[3:]) < 0.6 * row[0] for row in nagle.values())
    cause = all(row[0] < 0.2 * nagle[qos][0] for qos, row in off.items())
    evidence = (f"{in_words(sizes, 5)} B: " + "; ".join(f"QoS {qos} {in_words(row)} ms, with TCP_NODELAY "
                                                      f"{in_words(off[qos])} ms" for qos, row in nagle.items())
                + f"; TCP_NODELAY alone takes it away: {'yes' if cause else 'no'}")
    return holds and cause, evidence, cause_open()


def _large_alike(_: Path, results: Results) -> Verdict:
    rows = {payload: [_mean_ms(results, laptop(payload, qos)) for qos in QOS] for payload in LAPTOP[-2:]}
    evidence = "; ".join(f"{payload} B: {in_words(row)} ms" for payload, row in rows.items())
    return all(max(row) < 1.1 * min(row) for row in rows.values()), evidence, cause_open()


def _knee(_: Path, results: Results) -> Verdict:
    rows = {limit: [float(pooled_trip_s(results, limited(limit, qos), as_printed=False).mean())
                    if pooled_trip_s(results, limited(limit, qos), as_printed=False).size else math.nan
                    for qos in QOS] for limit in LIMITS}
    never = {limit: [never_percent(results, limited(limit, qos)) for qos in QOS] for limit in LIMITS}
    below = [value for limit in LIMITS[:2] for value in rows[limit] if value == value]
    above = [value for limit in LIMITS[2:] for value in rows[limit]]
    explodes = min(below) > 20 * max(above)
    lost = {limit: sum(results[case.name].disconnects for qos in QOS for case in limited(limit, qos))
            for limit in LIMITS}
    loses = max(never["10kbps"]) > 20 and max(max(never[limit]) for limit in LIMITS[2:]) == 0 < lost["10kbps"]
    evidence = "s, and never received, at QoS 0 / 1 / 2: " + "; ".join(
        f"{limit} {in_words(rows[limit])} s, {in_words(never[limit])} %, {lost[limit]} connections lost"
        for limit in LIMITS)
    return explodes and loses, evidence, cause_open(
        "when the study's client gives a connection up: round trips explode here, too, but what is not received is "
        "still under way when the run ends")


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
    return falls > 0 and smooth == 0, evidence, assumed(
        "without a round trip of a minute there is nothing to store in minutes: ours stay below it")


def _loss(_: Path, results: Results) -> Verdict:
    rows = {loss: [pooled_loss(results, loss, qos) for qos in QOS] for loss in LOSSES}
    typical = {loss: [value[0] for value in row] for loss, row in rows.items()}
    before, after = ([typical[high][qos] / typical[low][qos] for qos in QOS] for low, high in ((15, 20), (20, 25)))
    knee = all(later > earlier for earlier, later in zip(before, after, strict=True))
    broken = sum(results[case.name].disconnects for loss in (25, 30) for qos in QOS for case in lossy(loss, qos))
    evidence = (f"s at QoS 0 / 1 / 2, median (least to greatest) of {len(lossy(1, 0))} runs of 60 messages, and never "
                "received: " + "; ".join(f"{loss} % " + " / ".join(
                    f"{plain(middle)} ({plain(least, 2)} to {plain(most, 2)}), {never:.0f} %"
                    for middle, least, most, never in row)
                    for loss, row in rows.items())
                + f"; from 15 to 20 % {in_words(before)} times as long, from 20 to 25 % {in_words(after)} times; "
                f"{broken} connections lost in the 60 runs at 25 and 30 %")
    return knee and broken > 0, evidence, assumed(
        "a timeout doubles with each repetition that is lost in a row, so that one run of 60 messages, which the study "
        "has of each, is one draw")


def _breaks(_: Path, results: Results) -> Verdict:
    found = {qos: [results[case.name] for loss in (25, 30) for case in lossy(loss, qos)] for qos in QOS}
    # One message a second: the number of the last that came back is when it broke off, in seconds. Where none came back
    # it broke off at once.
    last = {qos: median(0.0 if math.isnan(run.last_back_s) else run.last_back_s for run in runs)
            for qos, runs in found.items()}
    longest = {qos: max((float(run.trip_s.max()) for run in runs if run.trip_s.size), default=math.nan)
               for qos, runs in found.items()}
    evidence = ("25 and 30 % each way, twenty runs: the last message that came back was sent after "
                f"{in_words(last.values())} s of 60 at QoS 0 / 1 / 2 (medians); longest round trips "
                f"{in_words(longest.values())} s")
    first = last[1] < min(last[0], last[2])
    return first and longest[2] > 50 and longest[0] <= 40, evidence, cause_open(
        "the study has one run of each, and runs of 60 messages differ by a factor")


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
    return not wrong, evidence, assumed(
        "every byte of ours is counted, and follows from MQTT 3.1.1 §2.2 and 3.3. The published sums seem to leave out "
        "the 2 bytes of the topic's length, and to count 1 byte for the packet identifier, which has 2, and 2 for the "
        "remaining length, which has 1 up to 127 B")


def _bundling(_: Path, results: Results) -> Verdict:
    shared = {qos: results[Overhead(payload=10, qos=qos).name].publish_per_segment_max for qos in QOS}
    evidence = f"most PUBLISH packets of 10 B in one segment, 5 ms apart: {in_words(shared.values())} at QoS 0 / 1 / 2"
    return shared[0] > 1 and shared[1] == shared[2] == 1, evidence, cause_open()


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
    return all(max(row) == min(row) for row in rows.values()), evidence, assumed(
        "MQTT's remaining length takes 1 byte up to 127 B, 2 up to 16 KB, 3 up to 2 MB and 4 beyond; 2 bytes more are "
        "little beside payloads of that size")


def _connect(_: Path, results: Results) -> Verdict:
    rows = {loss: results[Connecting(loss_percent=loss).name] for loss in LOSSES}
    trips = {loss: pooled_loss(results, loss, 1)[0] for loss in LOSSES}
    evidence = "median and 99th percentile to CONNACK: " + "; ".join(
        f"{loss} % {found.connect_ms[0]:.3g} / {plain(found.connect_ms[1], 4)} ms" for loss, found in rows.items())
    evidence += f"; a round trip of 10 KB takes {in_words(1000 * value for value in trips.values())} ms"
    worse = all(rows[loss].connect_ms[0] > 1000 * trips[loss] for loss in (20, 25, 30))
    short = {loss: median(run.mean_ms for case in short_lossy(loss) if (run := results[case.name].trips).count)
             for loss in LOSSES}
    slower = [loss for loss in LOSSES if rows[loss].connect_ms[0] > short[loss]]
    where = f"{in_words(slower)} %" if slower else "none of these losses"
    return worse, evidence, reasons(
        assumed("a message of 10 KB has more segments on four crossings to lose than a handshake. But with messages of "
                f"one segment (100 B), alone, round trips take {in_words(short.values())} ms at {in_words(LOSSES)} %: "
                f"connecting takes longer than these at {where}"),
        cause_open("why a call of the study's client never returned, of which its words are"))


def _small_best(_: Path, results: Results) -> Verdict:
    rows = {payload: (_mean_ms(results, laptop(payload, 0)),
                      results[Overhead(payload=payload, qos=0).name].publish_per_segment_max) for payload in SHARED}
    evidence = "QoS 0, a round trip and the most PUBLISH packets in a segment: " + "; ".join(
        f"{payload} B {trip:.3g} ms and {shared}" for payload, (trip, shared) in rows.items())
    least = min(trip for trip, _ in rows.values())
    best = all(rows[payload][0] < 1.02 * least and rows[payload][1] > 1 for payload in (128, 256))
    return best, evidence, cause_open()


def _dies(_: Path, results: Results) -> Verdict:
    pairs = [(without, replace(without, persistence=True)) for without in OVERLOADS if not without.persistence]
    pairs = [pair for pair in pairs if all(case.name in results for case in pair)]
    # Live a part of them is run.
    died = {case: results[case.name].broker_died_s for pair in pairs for case in pair}
    whole = [case for case in died if case.memory_mb == PI_MEMORY_MB[0]]
    killed = [case for case in whole if math.isfinite(died[case])]
    dying = {without: (died[without], died[stored]) for without, stored in pairs
             if math.isfinite(min(died[without], died[stored]))}
    if not whole or not dying:
        raise MissingResult(OVERLOADS[0].name)
    evidence = (f"bursts of {BURSTS[-1]}, {PI_MEMORY_MB[0]} MB of memory: the broker dies in {len(killed)} of "
                f"{len(whole)} cells; with less it dies after, without and with persistence: " + "; ".join(
                    f"{case.memory_mb} MB, {case.payload} B at QoS {case.qos} {plain(without)} and {plain(stored)} s"
                    for case, (without, stored) in dying.items()) + f" (∞: it lives for the run's {OVERLOAD_S} s)")
    sooner = [case for case, (without, stored) in dying.items() if stored < without]
    later = [case for case, (without, stored) in dying.items() if stored > without]
    free = {case: results[other.name].broker_died_s for case in later
            if (other := with_free_disk(replace(case, persistence=True))).name in results}
    waits = "a broker that stores waits for its disk, and takes less from client1 meanwhile"
    return bool(killed) and len(sooner) == len(dying), evidence, reasons(
        shown(f"{PI_MEMORY_MB[0]} MB are more than this broker needs: it queues 100 messages for a client, and what it "
              "does not read waits at client1. With less memory, alone, it dies", follows=not killed),
        shown(f"{waits}. Without the limit of the disk, alone, it dies as early as without persistence: " + ", ".join(
                  f"{case.memory_mb} MB, {case.payload} B at QoS {case.qos} {plain(found)} s"
                  for case, found in free.items()),
              follows=all(abs(found - died[case]) < 0.1 * died[case] for case, found in free.items()))
        if free else assumed(waits),
        cause_open("when the study's broker died and what of, for it prints neither. Ours stores after each change. "
                   "Mosquitto's default is each half hour (`autosave_interval`): runs of this length store nothing"))


def _release_bundling(_: Path, results: Results) -> Verdict:
    sizes = (1, 10, 100, KB, 10 * KB, 1024 * KB)
    shared = {payload: results[Overhead(payload=payload, qos=2).name].releases_shared for payload in sizes}
    evidence = "of ten PUBREL packets so many segments have one beside another packet: " + "; ".join(
        f"{payload} B {count}" for payload, count in shared.items())
    return shared[1024 * KB] > 0 and not any(shared[payload] for payload in sizes[:-1]), evidence, cause_open()


def _first_segments(_: Path, results: Results) -> Verdict:
    first = {payload: results[Overhead(payload=payload, qos=0).name].first_segment_bytes
             for payload in (10 * KB, 1024 * KB)}
    evidence = "mean TCP payload of the first segment, QoS 0, of 1448 B: " + "; ".join(
        f"{payload} B {value:.0f} B" for payload, value in first.items())
    flights = {case.initial_window or 10: in_words(results[case.name].flights_bytes, 6)
               for case in (Overhead(payload=1024 * KB, qos=0), WIDER)}
    return all(value < 1400 for value in first.values()), evidence, shown(
        "all segments are full. A capture at the sender has as one frame what TCP hands to its network card at once, "
        "and the congestion window bounds that: in the first round trips of a message of 1 MB leave "
        f"{flights[10]} B, and with an initial window of 20 segments, alone, {flights[20]} B. The study's own captures "
        "have frames of whole segments, 14480 and 28960 B in the first two round trips",
        follows=flights[10] != flights[20])


def _puback(_: Path, results: Results) -> Verdict:
    rows = [results[Overhead(payload=10, qos=qos).name].bare_acks for qos in (0, 1)]
    evidence = f"for ten messages of 10 B the publisher gets {in_words(rows)} such segments at QoS 0 / 1"
    return rows[1] == 0 < rows[0], evidence, cause_open()


JUDGES: dict[str, Callable[[Path, Results], Verdict]] = {
    "qos-order": _order, "below-50-ms": _below_50, "500-kb-take-seconds": _half_megabyte,
    "loss-breaks-qos1-first": _breaks, "puback-replaces-tcp-ack": _puback,
    "larger-is-faster": _larger, "qos-irrelevant-for-large": _large_alike,
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
