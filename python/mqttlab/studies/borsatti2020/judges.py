"""What borsatti2020 claims, each claim held against our runs, and its figures with ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from mqttlab.studies.borsatti2020.experiment import (
    LAWS,
    LINKS_MS,
    PAIRS,
    QOS,
    SPREAD_AT_TWO,
    SPREAD_LINKS_MS,
    SPREADS,
    Links,
    Measured,
    derived,
    factor,
    symmetric,
)
from mqttlab.studies.chart import Chart, Series
from mqttlab.studies.claims import Verdict, assumed, cause_open, in_words, judged, reasons, shown
from mqttlab.studies.table import Comparison

Results = Mapping[str, Measured]


def evaluate(directory: Path, results: Results) -> list[Comparison]:
    """Every claim of ``claims.toml`` with the numbers that decide it; a reason where it does not hold."""
    return judged(directory, results, JUDGES)


def _factors(results: Results, cases: Iterable[Links]) -> list[float]:
    return [factor(case, results[case.name]) for case in cases]


def _one_then_two(_: Path, results: Results) -> Verdict:
    with_nagle, without = ({qos: _factors(results, (symmetric(each, qos, nagle=on) for each in LINKS_MS))
                            for qos in (0, 1)} for on in (True, False))
    short = all(row[0] < 1.3 for row in with_nagle.values())
    twice = all(1.5 <= value <= 2.5 for row in with_nagle.values() for value in row[1:])
    evidence = (f"latency in end-to-end delays at {in_words(LINKS_MS)} ms each: " + "; ".join(
        f"QoS {qos} {in_words(row)}" for qos, row in with_nagle.items())
        + f"; with TCP_NODELAY {in_words(value for row in without.values() for value in row)}")
    return short and twice, evidence, cause_open()


def _qos2(_: Path, results: Results) -> Verdict:
    nagle, without = (_factors(results, (symmetric(each, 2, nagle=on) for each in LINKS_MS)) for on in (True, False))
    least, most = derived(symmetric(20, 2))
    alone = _factors(results, (Links(publisher_ms=p, subscriber_ms=s, qos=2) for p, s in ((20, 0), (0, 20))))
    spread = _factors(results, SPREAD_AT_TWO)
    apart = [value >= 4 for value in spread]
    evidence = (f"QoS 2 at {in_words(LINKS_MS)} ms each: {in_words(nagle)} end-to-end delays, derived {least:g} to "
                f"{most:g} from 5 ms on; with TCP_NODELAY {in_words(without)}, derived 3. With one link of 20 ms "
                f"alone: the publisher's takes {alone[0]:.2f} link delays, the subscriber's {alone[1]:.2f}. At 2 ms "
                f"each, with other spreads of the delay, frames in order and not, {in_words(spread)}")
    holds: bool | None = min(nagle) >= 4
    if min(nagle[1:]) >= 4 and any(apart) and nagle[0] < 4:
        holds = None
    return holds, evidence, reasons(
        shown("what is beyond three crossings are waits for acknowledgements (Nagle): TCP_NODELAY alone ends them",
              follows=max(without) < 3.5 < max(nagle)),
        shown("at 2 ms each the spread of the delay decides, which is not printed: with a standard deviation of a half "
              "of it, alone, there are more than four delays, as in a part of the live runs (live/results.md)",
              follows=apart[-1] and nagle[0] < 4))


def _aggregation(_: Path, results: Results) -> Verdict:
    rows = {qos: [results[symmetric(each, qos).name].publish_per_segment for each in LINKS_MS] for qos in QOS}
    grows = all(later > 0.95 * earlier for row in rows.values() for earlier, later in pairwise(row))
    grows = grows and all(row[-1] > 3 * row[0] for row in rows.values())
    alike = max(max(column) / min(column) for column in zip(*rows.values(), strict=True))
    evidence = ("PUBLISH packets in a segment with any, " + "; ".join(
        f"QoS {qos}: {in_words(row)}" for qos, row in rows.items())
        + f"; QoS levels differ by at most {alike:.2f} times")
    return grows and alike < 1.2, evidence, cause_open()


def _largest(_: Path, results: Results) -> Verdict:
    by_qos = [max(results[symmetric(each, qos).name].largest_segment_bytes for each in LINKS_MS) for qos in QOS]
    at_most = max(max(results[symmetric(each, qos).name].publish_per_segment for each in LINKS_MS) for qos in QOS)
    return 540 <= max(by_qos) <= 660, (
        f"{in_words(by_qos)} B of TCP payload at QoS 0 / 1 / 2, where at most {at_most:.3g} PUBLISH packets share a "
        "segment on the average"), assumed("the study's topic, whose length is a part of each packet, is not printed")


def _placement(_: Path, results: Results) -> Verdict:
    spreads: dict[tuple[int, int], float] = {}
    for total, pairs in PAIRS.items():
        for qos in QOS:
            row = [results[Links(publisher_ms=p, subscriber_ms=s, qos=qos).name].delays.mean_ms for p, s in pairs]
            spreads[total, qos] = max(row) / min(row)
    off = [max(row) / min(row) for qos in QOS for row in [[
        results[Links(publisher_ms=p, subscriber_ms=s, qos=qos, nagle=False).name].delays.mean_ms
        for p, s in PAIRS[20]]]]
    evidence = "; ".join(
        f"sum {total} ms: " + ", ".join(f"QoS {qos} " + " / ".join(
            f"{results[Links(publisher_ms=p, subscriber_ms=s, qos=qos).name].delays.mean_ms:.3g}" for p, s in pairs)
            for qos in QOS) + " ms" for total, pairs in PAIRS.items())
    evidence += f"; greatest over smallest {in_words(spreads.values())}, with TCP_NODELAY {in_words(off)}"
    return max(spreads.values()) < 1.15, evidence, shown(
        "the publisher's link costs more than the subscriber's at QoS 2, by waits for acknowledgements (Nagle): with "
        "TCP_NODELAY alone the placement does not matter at any QoS",
        follows=max(off) < 1.05 < max(spreads[20, qos] for qos in QOS))


def _laws(_: Path, results: Results) -> Verdict:
    apart: dict[str, float] = {}
    for law in LAWS:
        # The study's were netem's three; without any spread is ours.
        rows = [(factor(symmetric(each, qos, law=law), results[symmetric(each, qos, law=law).name])
                 / factor(symmetric(each, qos), results[symmetric(each, qos).name])) - 1
                for each in (2, 20, 60) for qos in QOS]
        apart[law] = 100 * max(rows, key=abs)
    evidence = "largest difference from the normal distribution's mean: " + ", ".join(
        f"{law} {value:+.1f} %" for law, value in apart.items())
    return all(abs(apart[law]) < 10 for law in LAWS if law != "constant"), evidence, cause_open()


def _spread(_: Path, results: Results) -> Verdict:
    worst: dict[int, float] = {}
    for qos in QOS:
        usual = {each: factor(symmetric(each, qos), results[symmetric(each, qos).name]) for each in SPREAD_LINKS_MS}
        worst[qos] = 100 * max((factor(case, results[case.name]) / usual[case.publisher_ms] - 1 for case in SPREADS
                                if case.qos == qos), key=abs)
    evidence = ("mean latency with a standard deviation of 0.1, 0.3 and 0.5 of the delay, frames in order and not, at "
                f"{in_words(SPREAD_LINKS_MS)} ms each, differs from ours as set by at most " + ", ".join(
                    f"{value:+.1f} % at QoS {qos}" for qos, value in worst.items()))
    return None, evidence, "the study prints neither, so that there is nothing to hold ours against"


JUDGES: dict[str, Callable[[Path, Results], Verdict]] = {
    "one-delay-then-round-trip": _one_then_two, "qos2-at-least-four": _qos2, "aggregation-grows": _aggregation,
    "largest-segment": _largest, "spread-and-order": _spread,
    "placement-does-not-matter": _placement, "distribution-does-not-matter": _laws,
}


def charts(directory: Path, results: Results) -> list[Chart]:
    """Figures 3a, 3b, 4 and 5; of theirs the words that the study prints stand as points."""
    base = {qos: [case for each in LINKS_MS if (case := symmetric(each, qos)).name in results] for qos in QOS}
    said = [Series(name="said: 1 at 2 ms, then 2 (QoS 0, 1)", published=True, colour=0,
                   points=[(4, 1.0), *((2.0 * each, 2.0) for each in LINKS_MS[1:])]),
            Series(name="said: 4 to 7 (QoS 2)", published=True, colour=2, points=[(10, 4.0), (120, 7.0)])]
    off = [Series(name=f"QoS {qos}, TCP_NODELAY", colour=3 + qos,
                  points=[(case.end_to_end_ms, factor(case, results[case.name])) for each in LINKS_MS
                          if (case := replace(symmetric(each, qos), nagle=False)).name in results]) for qos in QOS]
    return [
        Chart(name="figure-3a", title="Latency by end-to-end delay (figure 3a)", x="mean end-to-end delay, ms",
              y="mean latency, ms", series=[_ours(results, base[qos], qos, lambda case, found: found.delays.mean_ms)
                                            for qos in QOS]),
        Chart(name="figure-3b", title="Latency in end-to-end delays (figure 3b)", x="mean end-to-end delay, ms",
              y="latency / end-to-end delay",
              series=[*said, *(_ours(results, base[qos], qos, factor) for qos in QOS), *off]),
        Chart(name="figure-4", title="PUBLISH packets in a segment (figure 4)", x="mean end-to-end delay, ms",
              y="packets", series=[_ours(results, base[qos], qos, lambda case, found: found.publish_per_segment)
                                   for qos in QOS]),
        _pairs(results),
    ]


def _ours(results: Results, cases: Iterable[Links], qos: int, value: Callable[[Links, Measured], float]) -> Series:
    return Series(name=f"QoS {qos}", colour=qos,
                  points=[(case.end_to_end_ms, value(case, results[case.name])) for case in cases])


def _pairs(results: Results) -> Chart:
    pairs = [pair for pairs in PAIRS.values() for pair in pairs]
    found = {qos: [(float(number), results[case.name].delays.mean_ms) for number, (p, s) in enumerate(pairs)
                   if (case := Links(publisher_ms=p, subscriber_ms=s, qos=qos)).name in results] for qos in QOS}
    return Chart(name="figure-5", title="Latency by placement of the broker (figure 5)", log_y=True,
                 x="delays of the two links, ms", y="mean latency, ms", ticks=[f"{p}–{s}" for p, s in pairs],
                 series=[Series(name=f"QoS {qos}", points=points, colour=qos) for qos, points in found.items()])
