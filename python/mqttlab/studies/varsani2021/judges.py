"""What varsani2021 claims, each claim held against our runs, and its figures with ours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from mqttlab.studies.chart import Chart, Series
from mqttlab.studies.claims import Verdict, cause_open, in_words, judged, shown, waits_for
from mqttlab.studies.table import Comparison
from mqttlab.studies.varsani2021.experiment import (
    ALONE,
    BUSY,
    FIRST,
    FORMS,
    INTERVALS_MS,
    PAYLOADS,
    WILD_TOPICS,
    Burst,
    Measured,
    Single,
    altered,
    printed,
)

Results = Mapping[str, Measured]


def evaluate(directory: Path, results: Results) -> list[Comparison]:
    """Every claim of ``claims.toml`` with the numbers that decide it; a reason where it does not hold."""
    return judged(directory, results, JUDGES)


def _means(results: Results, cases: Iterable[Single]) -> list[float]:
    return [results[case.name].delays.mean_ms for case in cases]


def _bursts(results: Results, cases: Iterable[Burst]) -> list[float]:
    return [results[case.name].completion_ms for case in cases]


def _interval(_: Path, results: Results) -> Verdict:
    rows = {words: _means(results, (altered(Single(payload=1, interval_ms=interval), hosts)
                                    for interval in INTERVALS_MS)) for words, hosts in ALONE.items()}
    ours = rows["as set"]
    grows = ours[-1] > 1.1 * ours[0]
    evidence = f"1 B every {in_words(INTERVALS_MS, 5)} ms: " + "; ".join(
        f"{words} {in_words(row)} ms" for words, row in rows.items())
    return grows, evidence, shown(
        "of seven things changed alone none makes short intervals faster: Nagle's algorithm with delayed "
        "acknowledgements makes them slower, TCP_NODELAY alone takes that away, and from 500 ms on nothing depends on "
        "the interval. So it is not the network; 0.3 to 0.4 ms are less than a twentieth of what the study's own table "
        "1 has for the same message (8 ms). Which part of its hosts it is stays undecided: idle states are not "
        "simulated, and the live cells without host time are where they would show")


def _payload(_: Path, results: Results) -> Verdict:
    ours = _means(results, (Single(payload=payload) for payload in PAYLOADS))
    slope, constant = statistics.linear_regression(PAYLOADS, ours)
    r_squared = statistics.correlation(PAYLOADS, ours) ** 2
    evidence = (f"{in_words(PAYLOADS, 5)} B: {in_words(ours)} ms; {constant:.2f} ms + {1000 * slope:.2f} ms/kB, "
                f"R² {r_squared:.3f}")
    return r_squared > 0.95 and slope > 0, evidence, cause_open(
        "payloads up to the send buffer of two segments take one crossing, whatever their size; each further one waits "
        "for an acknowledgement, so that latency is a staircase")


def _first(_: Path, results: Results) -> Verdict:
    def slower(case: Single) -> float:
        """How much the first four messages took longer than those from the tenth on, ms."""
        first = results[case.name].first_ms
        return statistics.fmean(first[:4]) - statistics.fmean(first[9:FIRST])

    rows = {words: [slower(altered(Single(payload=payload), hosts)) for payload in (1, 4096, 10_000)]
            for words, hosts in ALONE.items()}
    delayed = results[altered(Single(payload=1), ALONE["lwIP delays acknowledgements"]).name].first_ms
    evidence = "the first four beyond the tenth to fiftieth, at 1 / 4096 / 10000 B: " + "; ".join(
        f"{words} {in_words(round(value, 6) for value in row)} ms" for words, row in rows.items())
    evidence += (f"; at 1 B the first alone is slow, and only where lwIP delays acknowledgements: {delayed[0]:.3g} ms "
                 f"against {delayed[1]:.3g}")
    return rows["as set"][0] > 1 and rows["as set"][-1] > 1, evidence, shown(
        "of what was changed alone lwIP's delayed acknowledgement makes the first message of a connection slow: "
        "Nagle's algorithm holds it behind the handshake's last packet. Three or four slow messages at every "
        "payload are neither that nor an opening window; their cause is undecided, as nothing else of a host is "
        "simulated")


def _log_then_linear(_: Path, results: Results) -> Verdict:
    counts = [2**power for power in range(14)]
    ours = _bursts(results, (Burst(topics=topics, payload=1) for topics in counts))
    head = [(math.log2(topics), time) for topics, time in zip(counts, ours, strict=True) if topics <= 128]
    tail = [(topics, time) for topics, time in zip(counts, ours, strict=True) if topics >= 128]
    straight = [statistics.correlation(*zip(*points, strict=True)) ** 2 for points in (head, tail)]
    linear_head = statistics.correlation([2**x for x, _ in head], [y for _, y in head]) ** 2
    evidence = (f"1 to 8192 topics, 1 B: {in_words(ours)} ms; R² of a line over log n up to 128: {straight[0]:.3f}, "
                f"over n up to 128: {linear_head:.3f}, over n from 128: {straight[1]:.3f}")
    return straight[0] > linear_head and straight[1] > 0.95, evidence, cause_open(
        "a burst takes the crossings of one message and then as many round trips as there are send buffers in it: "
        "a constant and a line, which looks like a logarithm where the constant dominates")


def _table(directory: Path, results: Results) -> Verdict:
    theirs = {name: value for name, (_, value) in printed(directory).items() if not math.isnan(value)}
    ratios = {name: results[name].completion_ms / value for name, value in theirs.items()}
    near = sum(1 / 2 <= ratio <= 2 for ratio in ratios.values())
    evidence = (f"{near} of {len(ratios)} printed cells within a factor of 2, median of ours over theirs "
                f"{statistics.median(ratios.values()):.2f}, from {min(ratios.values()):.2f} to "
                f"{max(ratios.values()):.2f}; one number fitted, on 1 topic and 1 B")
    far = max(ratios, key=lambda name: abs(math.log(ratios[name])))
    held = [results[name].completion_ms / value for name, (_, value) in printed(directory, BUSY).items()
            if not math.isnan(value)]
    within = sum(1 / 2 <= ratio <= 2 for ratio in held)
    return near == len(ratios), evidence, shown(
        f"farthest is {far}, {ratios[far]:.2f} times the printed value: here a message takes no time in a host. With "
        f"{BUSY.per_message} for each, alone, {within} of {len(held)} cells are within a factor of 2, median "
        f"{statistics.median(held):.2f}, from {min(held):.2f} to {max(held):.2f}. Large "
        "messages fit without it: the send buffer of two segments and the round trip make them")


def _subscribe(_: Path, results: Results) -> Verdict:
    rows = {form: [results[Burst(topics=topics, payload=1, form=form).name].subscribe_ms for topics in WILD_TOPICS]
            for form in FORMS}
    every = [value for row in rows.values() for value in row]
    evidence = f"SUBSCRIBE to SUBACK, {in_words(WILD_TOPICS, 5)} topics: " + "; ".join(
        f"{form} {in_words(row)} ms" for form, row in rows.items())
    return max(every) < 1.2 * min(every), evidence, shown(
        "of the sixteen cells one differs, that of a list of 100 filters, which is longer than a send buffer of two "
        "segments; from 1000 topics on one filter stands for the list, and takes as long as a wild card. One wild card "
        "is one filter, whatever it matches. The simulated broker takes the same time for every SUBSCRIBE: what "
        "Mosquitto takes is live's to say")


def _wild(_: Path, results: Results) -> Verdict:
    rows = {form: _bursts(results, (Burst(topics=topics, payload=1, form=form) for topics in WILD_TOPICS))
            for form in FORMS}
    flat = max(rows["+ and #"]) < 1.2 * min(rows["+ and #"])
    slower = max(row[number] / rows["plain"][number] for row in rows.values() for number in range(len(WILD_TOPICS)))
    evidence = f"time of a burst to {in_words(WILD_TOPICS, 5)} topics: " + "; ".join(
        f"{form} {in_words(row)} ms" for form, row in rows.items()) + f"; wild cards over plain at most {slower:.2f}"
    first = [results[Burst(topics=topics, payload=1, form="+ and #").name].first_arrival_ms for topics in WILD_TOPICS]
    return slower < 1.05 and flat, evidence, shown(
        "wild cards are no slower, which holds; but no form is flat, as the messages of a burst cross the same link "
        f"one after the other, however they were subscribed to. What is flat is the first of them: {in_words(first)} "
        "ms with + and #. The study verifies about 50 samples; whether its curve is of these is undecided")


def _future(_: Path, results: Results) -> Verdict:
    rows = {qos: _means(results, (Single(payload=payload, qos=qos) for payload in PAYLOADS)) for qos in (0, 1, 2)}
    bursts = {qos: _bursts(results, (Burst(topics=topics, payload=1, qos=qos) for topics in (10, 100, 1000)))
              for qos in (0, 1, 2)}
    evidence = "; ".join(f"QoS {qos}: {in_words(rows[qos])} ms at {in_words(PAYLOADS, 5)} B, bursts to 10 / 100 / 1000 "
                         f"topics {in_words(bursts[qos])} ms" for qos in rows)
    return None, evidence, "QoS 1 and 2 are done; other brokers wait for their adapters"


def _spread(_: Path, results: Results) -> Verdict:
    rows = [results[Single(payload=payload).name].delays.std_ms for payload in PAYLOADS]
    small, large = rows[: PAYLOADS.index(2048)], rows[PAYLOADS.index(2048):]
    evidence = f"standard deviation at {in_words(PAYLOADS, 5)} B: {in_words(rows)} ms"
    sizes = (1024, 2048, 4096, 10_000)
    at_once = [results[altered(Single(payload=payload), ALONE["acknowledged at once"]).name].delays.std_ms
               for payload in sizes]
    return min(large) > 2 * max(small), evidence, shown(
        "an idle network has no spread of its own. What varies here are delayed acknowledgements: with a broker that "
        f"acknowledges at once, alone, the standard deviation at {in_words(sizes, 5)} B is "
        f"{in_words(round(value, 6) for value in at_once)} ms")


def _hash_faster(_: Path, results: Results) -> Verdict:
    row = _bursts(results, (Burst(topics=topics, payload=1, form="#") for topics in (1000, 10_000)))
    first = [results[Burst(topics=topics, payload=1, form="#").name].first_arrival_ms for topics in (1000, 10_000)]
    return row[1] < row[0], f"# to 1000 / 10000 topics: {in_words(row)} ms", shown(
        f"ten times the messages take {row[1] / row[0]:.1f} times the time on the same link, while the first of them "
        f"takes {in_words(first)} ms: whole bursts cannot get faster. What the study's figure is of is undecided")


def _larger_slower(_: Path, results: Results) -> Verdict:
    rows = {form: [_bursts(results, (Burst(topics=topics, payload=payload, form=form) for topics in WILD_TOPICS))
                   for payload in (1, 128)] for form in FORMS}
    holds = all(large > small for one, many in rows.values() for small, large in zip(one, many, strict=True))
    evidence = "; ".join(f"{form}: {in_words(many[i] / one[i] for i in range(len(one)))} times"
                         for form, (one, many) in rows.items())
    return holds, f"128 B over 1 B at {in_words(WILD_TOPICS, 5)} topics: {evidence}", ""


JUDGES: dict[str, Callable[[Path, Results], Verdict]] = {
    "interval-effect": _interval, "payload-linear": _payload, "first-messages-slow": _first,
    "topics-log-then-linear": _log_then_linear, "table-1": _table, "subscribe-latency-flat": _subscribe,
    "wildcards-not-slower": _wild, "future-qos-brokers": _future, "spread-grows-from-2048": _spread,
    "hash-faster-to-10000": _hash_faster, "larger-slower-for-every-form": _larger_slower,
    "hundred-million-topics": lambda _, __: waits_for(
        "a machine of another size: 10^8 messages are 10^8 rows and hours of the link's time; 10^6 are run"),
}


def charts(directory: Path, results: Results) -> list[Chart]:
    """Figures 9, 12, 13, 16 to 18 and 19, of those cases that were run."""
    return [
        Chart(name="figure-9", title="1 B by publishing interval (figure 9)", x="interval, ms", y="mean latency, ms",
              log_x=True, series=[
                  Series(name="said: 0.3–0.4 ms at 1 ms", points=[(1, 0.35)], published=True),
                  *(Series(name=words, colour=number, points=_singles(results, [
                      altered(Single(payload=1, interval_ms=interval), hosts) for interval in INTERVALS_MS],
                      lambda case: case.interval_ms)) for number, (words, hosts) in enumerate(ALONE.items()))]),
        Chart(name="figure-12", title="Latency by payload (figures 11 and 12)", x="payload, B", y="mean latency, ms",
              series=[Series(name=f"QoS {qos}", colour=qos, points=_singles(
                  results, [Single(payload=payload, qos=qos) for payload in PAYLOADS], lambda case: case.payload))
                  for qos in (0, 1, 2)]),
        Chart(name="figure-13", title="The first 50 messages (figures 13 to 15)", x="message", y="latency, ms",
              series=[Series(name=f"{payload} B", colour=number, points=_firsts(results, Single(payload=payload)))
                      for number, payload in enumerate((1, 1024, 4096, 10_000))]),
        _topics(directory, results), _forms(results),
    ]


def _singles(results: Results, cases: Sequence[Single], x: Callable[[Single], float]) -> list[tuple[float, float]]:
    return [(x(case), results[case.name].delays.mean_ms) for case in cases if case.name in results]


def _firsts(results: Results, case: Single) -> list[tuple[float, float]]:
    if case.name not in results:
        return []
    return [(float(number), value) for number, value in enumerate(results[case.name].first_ms, start=1)]


def _topics(directory: Path, results: Results) -> Chart:
    theirs = printed(directory)
    series = []
    for number, payload in enumerate((1, 128, 1024, 4096)):
        cases = [Burst(topics=topics, payload=payload) for topics in (1, 10, 100, 1000, 10_000)]
        series += [
            Series(name=f"{payload} B, table 1", published=True, colour=number,
                   points=[(case.topics, theirs[case.name][1]) for case in cases]),
            Series(name=f"{payload} B", colour=number, points=[
                (case.topics, results[case.name].completion_ms) for case in cases if case.name in results])]
    return Chart(name="table-1", title="Time of a burst by topics and payload (table 1, figures 16 to 18)",
                 x="topics", y="time, ms", log_x=True, log_y=True, series=series)


def _forms(results: Results) -> Chart:
    return Chart(name="figure-19", title="Time of a burst by form of subscription (figures 19 and 20)", x="topics",
                 y="time, ms", log_x=True, log_y=True, series=[
                     Series(name=f"{form}, {payload} B", colour=number + 4 * (payload > 1), points=[
                         (case.topics, results[case.name].completion_ms) for topics in WILD_TOPICS
                         if (case := Burst(topics=topics, payload=payload, form=form)).name in results])
                     for payload in (1, 128) for number, form in enumerate(FORMS)])
