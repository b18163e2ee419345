"""What varsani2021 claims, each claim held against our runs, and its figures with ours."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from mqttlab.studies.chart import Chart, Series
from mqttlab.studies.claims import (
    Verdict,
    assumed,
    by_assumption,
    cause_open,
    in_words,
    judged,
    reasons,
    shown,
    waits_for,
)
from mqttlab.studies.table import Comparison
from mqttlab.studies.varsani2021.experiment import (
    ALONE,
    BUSY,
    FIRST,
    FORMS,
    INTERVALS_MS,
    LISTED,
    ONE_FILTER,
    PAYLOADS,
    SEVERAL,
    WILD_TOPICS,
    Burst,
    Listed,
    Measured,
    Several,
    Single,
    Unsubscribed,
    altered,
    printed,
)

Results = Mapping[str, Measured]
MODELLED = 1.0005
"""Times within this factor differ by the bytes of a filter on the link alone. Those of a real broker differ more."""


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
    off = rows["TCP_NODELAY"]
    return grows and ours[0] == min(ours) and 0.2 <= ours[0] <= 0.5, evidence, reasons(
        shown("Nagle's algorithm makes the shortest interval slower here: with TCP_NODELAY alone every interval is "
              "alike", follows=ours[0] > 1.5 * off[0] and max(off) < 1.05 * min(off)),
        cause_open("what makes it faster in the study: none of six things changed alone does. Idle states of the hosts "
                   "are not simulated. Its own table 1 has 8 ms for the same message"))


def _payload(_: Path, results: Results) -> Verdict:
    ours = _means(results, (Single(payload=payload) for payload in PAYLOADS))
    slope, constant = statistics.linear_regression(PAYLOADS, ours)
    few = PAYLOADS.index(1024) + 1
    every, small = (statistics.correlation(PAYLOADS[:count], ours[:count]) ** 2 for count in (len(PAYLOADS), few))
    evidence = (f"{in_words(PAYLOADS, 5)} B: {in_words(ours)} ms; {constant:.2f} ms + {1000 * slope:.2f} ms/kB; R² "
                f"{small:.3f} up to 1024 B (figure 11), {every:.3f} up to 10 000 B (figure 12)")
    linux = _means(results, (altered(Single(payload=payload), ALONE["Linux on the clients"]) for payload in (1, 1024)))
    return min(every, small) > 0.95 and slope > 0, evidence, shown(
        "the microcontrollers' segments and send buffers make a staircase: what fits into a segment takes one "
        "crossing, whatever its size, and what does not waits for an acknowledgement. With Linux on the clients, "
        f"alone, 1 and 1024 B take {in_words(linux)} ms",
        follows=linux[1] < 1.2 * linux[0] and ours[few - 1] > 1.5 * ours[0])


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
    return all(value > 1 for value in rows["as set"]), evidence, reasons(
        shown("the first message of a connection is slow where lwIP delays acknowledgements, changed alone: Nagle's "
              "algorithm holds it behind the handshake's last packet", follows=delayed[0] > 1.5 * delayed[1]),
        cause_open("why three or four are: nothing else of a host is simulated"))


def _log_then_linear(_: Path, results: Results) -> Verdict:
    counts = [2**power for power in range(14)]
    ours = _bursts(results, (Burst(topics=topics, payload=1) for topics in counts))
    head = [(math.log2(topics), time) for topics, time in zip(counts, ours, strict=True) if topics <= 128]
    tail = [(topics, time) for topics, time in zip(counts, ours, strict=True) if topics >= 128]
    straight = [statistics.correlation(*zip(*points, strict=True)) ** 2 for points in (head, tail)]
    linear_head = statistics.correlation([2**x for x, _ in head], [y for _, y in head]) ** 2
    evidence = (f"1 to 8192 topics, 1 B: {in_words(ours)} ms; R² of a line over log n up to 128: {straight[0]:.3f}, "
                f"over n up to 128: {linear_head:.3f}, over n from 128: {straight[1]:.3f}")
    return min(straight) > 0.95, evidence, assumed(
        "up to 32 topics a burst fits into the send buffer, and takes one or two round trips; beyond it takes a round "
        "trip for each buffer. That is a staircase, of which neither curve is the law")


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
        f"{BUSY.per_message} for each, which is fitted on 10 000 topics and 1 B, alone, {within} of {len(held)} cells "
        f"are within a factor of 2, median {statistics.median(held):.2f}, from {min(held):.2f} to {max(held):.2f}",
        follows=within > near)


def _subscribe(_: Path, results: Results) -> Verdict:
    rows = {form: [results[Burst(topics=topics, payload=1, form=form).name].subscribe_ms for topics in ONE_FILTER]
            for form in FORMS}
    every = [value for row in rows.values() for value in row]
    evidence = (f"SUBSCRIBE with one filter to SUBACK, {in_words(ONE_FILTER, 5)} topics: " + "; ".join(
        f"{form} {in_words(row)} ms" for form, row in rows.items()))
    if max(every) < MODELLED * min(every):
        return by_assumption(evidence, "the simulated broker takes the same time for every filter")
    return max(every) < 1.2 * min(every), evidence, cause_open()


def _subscribe_time(_: Path, results: Results) -> Verdict:
    ours = [results[Burst(topics=1, payload=1, form=form).name].subscribe_ms for form in FORMS]
    without = results[altered(Single(payload=1), ALONE["no host time"]).name].subscribe_ms
    return all(0.5 <= value <= 0.7 for value in ours), f"plain, +, #, + and #: {in_words(ours)} ms", reasons(
        shown("the time of the hosts, which is fitted on the 8 ms of a message in table 1, is twice in it: without it, "
              f"alone, {without:.2g} ms", follows=without < 0.7),
        cause_open("how 8 ms for a message and 0.5 ms for SUBSCRIBE come from the same hosts"))


def _wild(_: Path, results: Results) -> Verdict:
    rows = {form: _bursts(results, (Burst(topics=topics, payload=1, form=form) for topics in WILD_TOPICS))
            for form in FORMS}
    flat = max(rows["+ and #"]) < 1.2 * min(rows["+ and #"])
    slower = max(row[number] / rows["plain"][number] for row in rows.values() for number in range(len(WILD_TOPICS)))
    evidence = f"time of a burst to {in_words(WILD_TOPICS, 5)} topics: " + "; ".join(
        f"{form} {in_words(row)} ms" for form, row in rows.items()) + f"; wild cards over plain at most {slower:.2f}"
    first = [results[Burst(topics=topics, payload=1, form="+ and #").name].first_arrival_ms for topics in WILD_TOPICS]
    least = all(rows["+ and #"][number] <= min(row[number] for row in rows.values())
                for number in range(len(WILD_TOPICS)))
    return slower < 1.05 and flat and least, evidence, reasons(
        assumed("the messages of a burst cross the same link one after the other, however they were subscribed to, so "
                f"that no form is flat; flat is the first of them: {in_words(first)} ms with + and #"),
        cause_open("whether the study's curve is of the about 50 samples that it verifies"))


def _future(_: Path, results: Results) -> Verdict:
    rows = {qos: _means(results, (Single(payload=payload, qos=qos) for payload in PAYLOADS)) for qos in (0, 1, 2)}
    bursts = {qos: _bursts(results, (Burst(topics=topics, payload=1, qos=qos) for topics in (10, 100, 1000)))
              for qos in (0, 1, 2)}
    evidence = "; ".join(f"QoS {qos}: {in_words(rows[qos])} ms at {in_words(PAYLOADS, 5)} B, bursts to 10 / 100 / 1000 "
                         f"topics {in_words(bursts[qos])} ms" for qos in rows)
    return None, evidence, "QoS 1 and 2 are done; other brokers wait for their adapters"


def _several(_: Path, results: Results) -> Verdict:
    one = _bursts(results, (Burst(topics=number, payload=1) for number in SEVERAL))
    found = [results[Several(publishers=number).name].delays for number in SEVERAL]
    return None, (
        f"1 B to {in_words(SEVERAL, 5)} topics at once: from the first publish to the last arrival {in_words(one)} ms "
        "with one publisher of all topics; with a publisher and a subscriber for each, on the same two hosts, the "
        f"greatest latency is {in_words(ours.max_ms for ours in found)} ms, the mean "
        f"{in_words(ours.mean_ms for ours in found)} ms"
    ), "the study has one publisher of n topics, which it calls a number of publishers; it prints nothing of this"


def _listed(_: Path, results: Results) -> Verdict:
    times = [results[Listed(filters=number).name].subscribe_ms for number in LISTED]
    return None, (f"SUBSCRIBE with {in_words(LISTED, 5)} plain filters to SUBACK: {in_words(times)} ms"), (
        "the study names it and prints nothing for it")


def _unsubscribe(_: Path, results: Results) -> Verdict:
    ours = [results[Unsubscribed(form=form).name] for form in FORMS]
    return None, (
        f"UNSUBSCRIBE to UNSUBACK with {', '.join(FORMS)}: {in_words(each.unsubscribe_ms for each in ours)} ms; "
        f"SUBSCRIBE to SUBACK: {in_words(each.subscribe_ms for each in ours)} ms; after UNSUBACK "
        f"{sum(each.arrived_after for each in ours)} of ten messages a second arrived"
    ), "the study names it and prints nothing for it"


def _spread(_: Path, results: Results) -> Verdict:
    rows = [results[Single(payload=payload).name].delays.std_ms for payload in PAYLOADS]
    small, large = rows[: PAYLOADS.index(2048)], rows[PAYLOADS.index(2048):]
    evidence = f"standard deviation at {in_words(PAYLOADS, 5)} B: {in_words(rows)} ms"
    sizes = (1024, 2048, 4096, 10_000)
    at_once = [results[altered(Single(payload=payload), ALONE["acknowledged at once"]).name].delays.std_ms
               for payload in sizes]
    return min(large) > 2 * max(small), evidence, reasons(
        shown("what varies here are delayed acknowledgements: with a broker that acknowledges at once, alone, the "
              f"standard deviation at {in_words(sizes, 5)} B is {in_words(round(value, 6) for value in at_once)} ms",
              follows=max(at_once) < 0.01 < max(rows)),
        cause_open("what varies in the study: radio and hosts have no spread here"))


def _hash_faster(_: Path, results: Results) -> Verdict:
    row = _bursts(results, (Burst(topics=topics, payload=1, form="#") for topics in (1000, 10_000)))
    first = [results[Burst(topics=topics, payload=1, form="#").name].first_arrival_ms for topics in (1000, 10_000)]
    return row[1] < row[0], f"# to 1000 / 10000 topics: {in_words(row)} ms", reasons(
        assumed(f"ten times the messages take {row[1] / row[0]:.1f} times the time on the same link, while the first "
                f"of them takes {in_words(first)} ms: a whole burst cannot get faster"),
        cause_open("what the study's figure is of"))


def _larger_slower(_: Path, results: Results) -> Verdict:
    rows = {form: [_bursts(results, (Burst(topics=topics, payload=payload, form=form) for topics in WILD_TOPICS))
                   for payload in (1, 128)] for form in FORMS}
    holds = all(large > small for one, many in rows.values() for small, large in zip(one, many, strict=True))
    evidence = "; ".join(f"{form}: {in_words(many[i] / one[i] for i in range(len(one)))} times"
                         for form, (one, many) in rows.items())
    return holds, f"128 B over 1 B at {in_words(WILD_TOPICS, 5)} topics: {evidence}", cause_open()


JUDGES: dict[str, Callable[[Path, Results], Verdict]] = {
    "interval-effect": _interval, "payload-linear": _payload, "first-messages-slow": _first,
    "topics-log-then-linear": _log_then_linear, "table-1": _table, "subscribe-latency-flat": _subscribe,
    "subscribe-in-half-a-millisecond": _subscribe_time, "several-publishers": _several, "n-plain-filters": _listed,
    "wildcards-not-slower": _wild, "future-qos-brokers": _future, "spread-grows-from-2048": _spread,
    "hash-faster-to-10000": _hash_faster, "larger-slower-for-every-form": _larger_slower,
    "unsubscribe": _unsubscribe,
    "hundred-million-topics": lambda _, __: waits_for(
        "a machine of another size: 10^8 messages are 10^8 rows and hours of the link's time; 10^6 are run"),
}


def charts(directory: Path, results: Results) -> list[Chart]:
    """Figures 9, 11 to 20 and table 1, of those cases that were run."""
    return [
        Chart(name="figure-9", title="1 B by publishing interval (figure 9)", x="interval, ms", y="mean latency, ms",
              log_x=True, series=[
                  Series(name="said: 0.3–0.4 ms at 1 ms", points=[(1, 0.35)], published=True),
                  *(Series(name=words, colour=number, points=_singles(results, [
                      altered(Single(payload=1, interval_ms=interval), hosts) for interval in INTERVALS_MS],
                      lambda case: case.interval_ms)) for number, (words, hosts) in enumerate(ALONE.items()))]),
        Chart(name="figure-12", title="Latency by payload (figures 11, 12)", x="payload, B", y="mean latency, ms",
              series=[Series(name=f"QoS {qos}", colour=qos, points=_singles(
                  results, [Single(payload=payload, qos=qos) for payload in PAYLOADS], lambda case: case.payload))
                  for qos in (0, 1, 2)]),
        Chart(name="figure-13", title="The first 50 messages (figures 13 to 15)", x="message", y="latency, ms",
              series=[Series(name=f"{payload} B", colour=number, points=_firsts(results, Single(payload=payload)))
                      for number, payload in enumerate((1, 1024, 4096, 10_000))]),
        _without_first(results), _topics(directory, results), _many_topics(results), _subscribing(results),
        _forms(results),
    ]


def _singles(results: Results, cases: Sequence[Single], x: Callable[[Single], float]) -> list[tuple[float, float]]:
    return [(x(case), results[case.name].delays.mean_ms) for case in cases if case.name in results]


def _firsts(results: Results, case: Single) -> list[tuple[float, float]]:
    if case.name not in results:
        return []
    return [(float(number), value) for number, value in enumerate(results[case.name].first_ms, start=1)]


def _without_first(results: Results) -> Chart:
    """Figure 15, whose values are not printed: means over the first 50 messages."""
    cases = [case for payload in PAYLOADS[:5] if (case := Single(payload=payload)).name in results]
    return Chart(name="figure-15", title="The first 50 messages, with and without four (figure 15)", x="payload, B",
                 y="mean latency, ms", series=[
                     Series(name=words, colour=number, points=[
                         (float(case.payload), statistics.fmean(results[case.name].first_ms[left_out:]))
                         for case in cases]) for number, (words, left_out) in enumerate((
                             ("with all", 0), ("without the first four", 4)))])


def _many_topics(results: Results) -> Chart:
    """Figures 16 and 17, whose values are not printed."""
    return Chart(name="figure-16", title="Time of a burst by number of topics (figures 16, 17)", x="topics",
                 y="time, ms", log_x=True, log_y=True, series=[
                     Series(name=f"{payload} B", colour=number, points=[
                         (2.0**power, results[case.name].completion_ms) for power in range(14)
                         if (case := Burst(topics=2**power, payload=payload)).name in results])
                     for number, payload in enumerate((1, 128))])


def _subscribing(results: Results) -> Chart:
    """Figure 18: SUBSCRIBE to SUBACK by form, one filter each."""
    return Chart(name="figure-18", title="From SUBSCRIBE to SUBACK (figure 18)", x="form of subscription",
                 y="time, ms", ticks=FORMS, series=[
                     Series(name="said: 0.5 to 0.7 ms", published=True,
                            points=[(float(place), 0.6) for place in range(len(FORMS))]),
                     Series(name="one filter", colour=1, points=[
                         (float(place), results[case.name].subscribe_ms) for place, form in enumerate(FORMS)
                         if (case := Burst(topics=1, payload=1, form=form)).name in results])])


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
    return Chart(name="table-1", title="Time of a burst by topics and payload (table 1)",
                 x="topics", y="time, ms", log_x=True, log_y=True, series=series)


def _forms(results: Results) -> Chart:
    return Chart(name="figure-19", title="Time of a burst by form of subscription (figures 19 and 20)", x="topics",
                 y="time, ms", log_x=True, log_y=True, series=[
                     Series(name=f"{form}, {payload} B", colour=number + 4 * (payload > 1), points=[
                         (case.topics, results[case.name].completion_ms) for topics in WILD_TOPICS
                         if (case := Burst(topics=topics, payload=payload, form=form)).name in results])
                     for payload in (1, 128) for number, form in enumerate(FORMS)])
