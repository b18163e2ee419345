"""What andersen2021 claims, each claim held against the simulations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl

from mqttlab.studies.andersen2021.beyond import (
    LEE_LOSSES,
    LEE_SIZES,
    NARROW,
    PAHO_1_5_SEEDS,
    SIZES,
    Johnsen,
    Lee,
    larger_name,
    moments_name,
    paho_name,
    repeating_name,
    sn_name,
)
from mqttlab.studies.andersen2021.case import NETWORKS, PAYLOADS
from mqttlab.studies.andersen2021.experiment import (
    DELAY_OVER_QOS0_MAX,
    Application,
    Measured,
    as_paho_1_5,
    case_name,
    certainty,
    published_application,
    published_network,
    recommended,
)
from mqttlab.studies.claims import Verdict, assumed, cause_open, in_words, judged, plain, reasons, shown
from mqttlab.studies.means import mean_of_runs
from mqttlab.studies.table import Comparison

Results = Mapping[str, Measured]
QOS = (0, 1, 2)
FAST = [f"{network}-{payload}" for network in ("tactical-broadband", "satcom") for payload in PAYLOADS.values()]
CNR = ("cnr-1", "cnr-10")


def evaluate(directory: Path, results: Results) -> list[Comparison]:
    """Every claim of ``claims.toml`` with the numbers that decide it; a reason where it does not hold."""
    return judged(directory, results, JUDGES)


def _rows(results: Results, name: str) -> list[Application]:
    return [results[name].by_qos[qos] for qos in QOS]


def _clients(results: Results, name: str, qos: int) -> str:
    """What other rules of clients do: what is lost at one QoS."""
    usual = results[name].by_qos[qos].messages_lost_percent
    silent = results[paho_name(*name.rsplit("-", 1))].by_qos[qos].messages_lost_percent
    repeating = _of_study(results, name)[qos].messages_lost_percent
    return reasons(
        shown(f"what clients do decides what is lost ({name} at QoS {qos}): {usual:.3g} % where they count what they "
              f"send for their keep-alive, {silent:.3g} % where they count silence, {repeating:.3g} % where they "
              "ping and repeat after 20 s as paho-mqtt 1.5.1 does, which the study ran (tables *clients that count "
              "silence*, 5.6, 5.8 and 5.10)",
              follows=max(usual, silent, repeating) - min(usual, silent, repeating) > 10),
        cause_open("the rest. The study counts losses among what its clients sent while they were connected"))


def _of_study(results: Results, name: str) -> list[Application]:
    """A narrow scenario with the study's clients."""
    return [as_paho_1_5(results, name).by_qos[qos] for qos in QOS]


def _lost(rows: list[Application]) -> str:
    return in_words(row.messages_lost_percent for row in rows) + " %"


def _delays(rows: list[Application]) -> str:
    return in_words(row.delay_s_mean for row in rows) + " s"


def _disconnects(rows: list[Application]) -> str:
    return in_words(row.disconnects for row in rows)


def _lossless(_: Path, results: Results) -> Verdict:
    rows = [row for name in FAST for row in _rows(results, name)]
    worst, disconnects = max(row.messages_lost_percent for row in rows), sum(row.disconnects for row in rows)
    return worst == 0 and disconnects == 0, f"at most {worst:g} % lost, {disconnects} disconnects", ""


def _three_times(directory: Path, results: Results) -> Verdict:
    def means(rows: Mapping[tuple[str, int], Application]) -> dict[str, list[float]]:
        return {name: [rows[name, qos].delay_s_mean for qos in QOS] for name in FAST}

    printed = means(published_application(directory))
    ours = means({(name, qos): results[name].by_qos[qos] for name in FAST for qos in QOS})
    equal = all(abs(one / zero - 1) < 0.1 for zero, one, _ in ours.values())
    thrice = all(2.5 <= two / zero <= 3.5 for zero, _, two in ours.values())
    evidence = "; ".join(f"{name} {in_words(ours[name])} s (published {in_words(printed[name])})" for name in FAST)
    if equal and thrice:
        return True, f"QoS 0 / 1 / 2: {evidence}", ""
    random = {name: _rows(results, moments_name(*name.rsplit("-", 1))) for name in FAST}
    return False, f"QoS 0 / 1 / 2: {evidence}", shown(
        "clients that publish in step queue at the link, QoS 1 behind QoS 0. At random moments, alone, it is "
        + "; ".join(f"{name} {_delays(rows)}" for name, rows in random.items()),
        follows=all(abs(rows[1].delay_s_mean / rows[0].delay_s_mean - 1) < 0.1 for rows in random.values()))


def _narrowband(_: Path, results: Results) -> Verdict:
    gps, image = (_of_study(results, f"nato-narrowband-{payload}") for payload in PAYLOADS.values())
    survives = all(row.messages_lost_percent == 0 and 2 <= round(row.delay_s_mean) <= 10 for row in gps)
    collapses = all(row.messages_lost_percent > 85 for row in image[:2]) and image[2].messages_lost_percent == 100
    leaves = all(row.disconnects > 0 for row in image)
    evidence = (f"with clients as paho-mqtt 1.5.1, means of five seeds: GPS loses {_lost(gps)}, mean delays "
                f"{_delays(gps)} at QoS 0 / 1 / 2; images lose {_lost(image)}, {_disconnects(image)} disconnects")
    if survives and collapses and leaves:
        return True, evidence, ""
    return False, evidence, _clients(results, "nato-narrowband-image", 1)


def _cnr(_: Path, results: Results) -> Verdict:
    both = {network: [_of_study(results, f"{network}-{payload}") for payload in PAYLOADS.values()] for network in CNR}
    gps = [row for of, _ in both.values() for row in of]
    images = [row for _, of in both.values() for row in of]
    loses = all(100 / 3 <= row.messages_lost_percent <= 95 for row in gps)
    minutes = all(row.delay_s_mean > 30 for row in gps)
    leaves = all(row.disconnects > 40 for row in gps)
    nothing = all(row.messages_lost_percent > 85 for row in images)
    evidence = "with clients as paho-mqtt 1.5.1, means of five seeds: " + "; ".join(
        f"{network}: GPS loses {_lost(of)}, mean delays {_delays(of)}, {_disconnects(of)} disconnects, images lose "
        f"{_lost(large)}" for network, (of, large) in both.items())
    if loses and minutes and leaves and nothing:
        return True, evidence, ""
    return False, evidence, _clients(results, "cnr-1-gps", 2)


def _segments(directory: Path, results: Results) -> Verdict:
    def of(source: Callable[[str, str], float], metric: str) -> list[float]:
        return [source(f"{network}-gps", metric) for network in ("tactical-broadband", *CNR)]

    def at_all(name: str, metric: str) -> float:
        return results[name].network.get(metric, float("nan"))

    def of_study(name: str, metric: str) -> float:
        return at_all(name, metric) if name in FAST else as_paho_1_5(results, name).network[metric]

    printed = published_network(directory)
    ours: dict[str, list[float]] = {}
    parts = []
    for metric, words in (("avg_message_bytes", "bytes"), ("tcp_retransmissions", "retransmissions"),
                          ("duplicate_acks", "duplicate ACKs")):
        ours[metric] = of(of_study, metric)
        theirs = of(lambda name, which: printed[name, which], metric)
        parts.append(f"{in_words(ours[metric], 4)} {words} (published {in_words(theirs, 4)}; clients that never repeat "
                     f"{in_words(of(at_all, metric), 4)})")
    sizes, again, duplicates = ours.values()
    grows = all(size > 2 * sizes[0] for size in sizes[1:])
    bursts = again[0] < 100 and duplicates[0] < 100 and all(value > 1000 for value in again[1:])
    many = all(value > 700 for value in duplicates[1:])
    return grows and bursts and many, (
        "broadband / CNR 1 % / CNR 10 %, GPS, with clients as paho-mqtt 1.5.1: " + "; ".join(parts)), cause_open()


def _levels(rows: Mapping[int, Application]) -> str:
    return " and ".join(str(qos) for qos in recommended(rows))


def _recommendations(directory: Path, results: Results) -> Verdict:
    printed = published_application(directory)
    table = pl.read_csv(directory / "table_6_1_recommendations.csv", schema_overrides={"qos": pl.String})
    theirs = {case_name(row["network"], row["payload"]): row["qos"] or "" for row in table.iter_rows(named=True)}
    rule = sum(_levels({qos: printed[name, qos] for qos in QOS}) == level for name, level in theirs.items())
    ours = {name: _levels(results[name].by_qos) for name in theirs}
    apart = [f"{name}: here {ours[name] or 'none'}, there {theirs[name] or 'none'}"
             for name in theirs if ours[name] != theirs[name]]
    evidence = (f"lossless, connected, delay at most {DELAY_OVER_QOS0_MAX:g} times QoS 0's: with the study's numbers "
                f"this makes {rule} of its {len(theirs)} recommendations, with ours {len(theirs) - len(apart)}"
                + (f" ({'; '.join(apart)})" if apart else ""))
    shares = {(name, qos): share for name in theirs for qos, (share, _) in certainty(name, results).items()}
    if not shares:
        # Live, and where only table 6.1 is asked for, there is one run of each.
        return None, evidence, "one run of each does not decide"
    evidence += _sureness(shares)
    # How many percent of the seeds have a level as the table has it.
    as_printed = [share if str(qos) in theirs[name] else 100 - share for (name, qos), share in shares.items()]
    if 0 in as_printed:
        return False, evidence, cause_open()
    return (True if min(as_printed) == 100 else None), evidence, "the seeds do not agree"


def _sureness(shares: Mapping[tuple[str, int], float]) -> str:
    """How many recommendations for a level, or against it, come out alike with every seed."""
    alike = sum(share in (0, 100) for share in shares.values())
    unsure = ", ".join(f"{name} at QoS {qos} in {share:.0f} % of the seeds" for (name, qos), share in shares.items()
                       if share not in (0, 100))
    return f"; {alike} of {len(shares)} levels come out alike with ten seeds" + (f" ({unsure})" if unsure else "")


def _rates(directory: Path, results: Results) -> Verdict:
    names = ("tactical-broadband", "satcom", "nato-narrowband", *CNR)
    theirs = published_network(directory)
    printed = [theirs[f"{name}-gps", "data_rate_kbit_s"] for name in names]
    ours = [results[f"{name}-gps"].network.get("data_rate_kbit_s", float("nan")) for name in names]
    holds = all(13 <= value <= 17 for value in ours[:3]) and all(value < 10 for value in ours[3:])
    return holds, f"{' / '.join(names)}: {in_words(ours)} kbit/s (published {in_words(printed)})", cause_open()


def _by_seed(results: Results, name: str, of: Callable[[Application], float]) -> list[list[float]]:
    """A value with each seed of the study's clients, by QoS; without those runs that have none."""
    runs = [results[repeating_name(name, seed)].by_qos for seed in PAHO_1_5_SEEDS]
    return [[value for run in runs if (value := of(run[qos])) == value] for qos in QOS]


def _above(high: Sequence[float], low: Sequence[float]) -> bool | None:
    """Whether one mean over the seeds is above another; none where their 95 % intervals reach each other."""
    (one, half), (other, width) = mean_of_runs(high), mean_of_runs(low)
    return None if abs(one - other) <= (half or 0) + (width or 0) else one > other


def _qos1_least(_: Path, results: Results) -> Verdict:
    orders: dict[str, bool | None] = {}
    parts = []
    for network in CNR:
        lost = _by_seed(results, f"{network}-gps", lambda row: row.messages_lost_percent)
        waits = _by_seed(results, f"{network}-gps", lambda row: row.delay_s_mean)
        orders |= {f"{network}: lost at QoS 0 over QoS 1": _above(lost[0], lost[1]),
                   f"{network}: lost at QoS 2 over QoS 0": _above(lost[2], lost[0]),
                   f"{network}: delay at QoS 1 over QoS 0": _above(waits[1], waits[0]),
                   f"{network}: delay at QoS 1 over QoS 2": _above(waits[1], waits[2])}
        parts.append(f"{network}: lost " + " / ".join(_mean_half(row) for row in lost) + " %, "
                     + " / ".join(_mean_half(row) for row in waits) + " s")
    open_ = [place for place, above in orders.items() if above is None]
    evidence = ("with clients as paho-mqtt 1.5.1, means of five seeds and their intervals: " + "; ".join(parts)
                + f"; {sum(above is True for above in orders.values())} of {len(orders)} orders hold")
    if False in orders.values():
        return False, evidence, _clients(results, "cnr-1-gps", 2)
    return (None if open_ else True), evidence, f"within the intervals: {', '.join(open_)}"


def _mean_half(values: Sequence[float]) -> str:
    mean, half = mean_of_runs(values)
    return plain(mean) + ("" if half is None else f" ± {plain(half, 2)}")


def _images_faster(_: Path, results: Results) -> Verdict:
    gps, image = (_of_study(results, f"cnr-1-{payload}") for payload in PAYLOADS.values())
    holds = all(small.delay_s_mean > large.delay_s_mean for small, large in zip(gps[:2], image[:2], strict=True))
    evidence = (f"with clients as paho-mqtt 1.5.1, means of five seeds: GPS {_delays(gps)}, images {_delays(image)}; "
                f"lost {_lost(gps)} and {_lost(image)}")
    return holds, evidence, cause_open()


def _larger(_: Path, results: Results) -> Verdict:
    carried = {}
    for network in NETWORKS.values():
        whole = {qos: [size for size in SIZES
                       if results[larger_name(network, size)].by_qos[qos].messages_lost_percent < 1] for qos in QOS}
        carried[network] = " / ".join(str(max(sizes, default=0)) for sizes in whole.values())
    evidence = (f"largest of {in_words(SIZES, 7)} B of which at least 99 % arrive within ten minutes and five more, at "
                "QoS 0 / 1 / 2: " + "; ".join(f"{network} {sizes} B" for network, sizes in carried.items()))
    return None, evidence, "the study names it as work to be done and prints nothing for it"


def _mqtt_sn(_: Path, results: Results) -> Verdict:
    parts = []
    for network in NETWORKS.values():
        pairs = [(_rows(results, f"{network}-{payload}"), _rows(results, sn_name(f"{network}-{payload}")))
                 for payload in PAYLOADS.values()]
        parts.append(f"{network}: " + "; ".join(
            f"{payload} lost {_lost(sn)} (MQTT {_lost(mqtt)}), {_delays(sn)} (MQTT {_delays(mqtt)})"
            for payload, (mqtt, sn) in zip(PAYLOADS.values(), pairs, strict=True)))
    return None, "; ".join(parts), "the study names it as work to be done and prints nothing for it"


def _johnsen(results: Results, network: str, protocol: str, qos: int, window: int = 1) -> Application:
    return results[Johnsen(network=network, protocol=protocol, qos=qos, window=window).name].by_qos[qos]


def _mqtt_first(_: Path, results: Results) -> Verdict:
    def first(qos: int, window: int) -> list[bool]:
        return [_johnsen(results, network, "mqtt", qos).delay_s_mean
                < _johnsen(results, network, "mqtt-sn", qos, window=window).delay_s_mean for network in NARROW]

    rows = {network: [[_johnsen(results, network, protocol, qos).delay_s_mean for protocol in ("mqtt", "mqtt-sn")]
                      for qos in (0, 1)] for network in NARROW}
    free = [_johnsen(results, network, "mqtt-sn", 1, window=0).delay_s_mean for network in NARROW]
    evidence = "; ".join(f"{network}: MQTT and MQTT-SN {in_words(zero)} s at QoS 0, {in_words(one)} s at QoS 1"
                         for network, (zero, one) in rows.items())
    evidence += f"; MQTT-SN at QoS 1 without the gateway's limit of one message under way {in_words(free)} s"
    every = [*first(0, 1), *first(1, 1), *first(1, 0)]
    holds = True if all(every) else None if any(every) else False
    return holds, evidence, ("at QoS 1 the gateway's window decides, and neither it nor the network is told: the study "
                             "tells of Johnsen et al. at second hand")


def _qos1_helps(_: Path, results: Results) -> Verdict:
    lossy = ("cnr-1", "cnr-10")
    rows = {network: {protocol: [_johnsen(results, network, protocol, qos).messages_lost_percent for qos in (0, 1)]
                      for protocol in ("mqtt", "mqtt-sn")} for network in lossy}
    evidence = "; ".join(f"{network}: lost at QoS 0 and 1 {in_words(each['mqtt'])} % by MQTT, "
                         f"{in_words(each['mqtt-sn'])} % by MQTT-SN" for network, each in rows.items())
    helps = all(one < zero / 2 for zero, one in (each["mqtt-sn"] for each in rows.values()))
    little = all(zero - one < 5 for zero, one in (each["mqtt"] for each in rows.values()))
    free = [_johnsen(results, network, "mqtt-sn", 1, window=0).messages_lost_percent for network in lossy]
    evidence += f"; MQTT-SN at QoS 1 without the gateway's limit of one message under way {in_words(free)} % lost"
    zero = [rows[network]["mqtt-sn"][0] for network in lossy]
    without = all(one < lost / 2 for lost, one in zip(zero, free, strict=True))
    holds = helps and little if helps == without else None
    return holds, evidence, reasons(
        shown("what MQTT-SN has not delivered at QoS 1 on CNR 1 % waits in the gateway, which has one message under "
              "way to the one subscriber: without that limit, alone, nothing is lost",
              follows=free[0] < 1 < rows["cnr-1"]["mqtt-sn"][1]),
        cause_open("why no fewer are lost on CNR 10 %; the study's network and gateway are not told"))


def _spurious(_: Path, results: Results) -> Verdict:
    found = {network: results[Johnsen(network=network, protocol="mqtt", qos=1).name].network for network in NARROW}
    shares = [100 * row["spurious_retransmissions"] / max(row["tcp_retransmissions"], 1) for row in found.values()]
    evidence = "; ".join(f"{network}: {row['spurious_retransmissions']:.0f} of {row['tcp_retransmissions']:.0f}"
                         for network, row in found.items())
    many = sum(share > 25 for share in shares) >= 2
    return many, f"spurious of all retransmissions at QoS 1: {evidence}", cause_open()


def _lee(results: Results, loss: int) -> dict[int, list[Application]]:
    return {qos: [results[Lee(size=size, loss=loss).name].by_qos[qos] for size in LEE_SIZES] for qos in QOS}


def _lee_delay(_: Path, results: Results) -> Verdict:
    # Beyond 4000 B the delay of a byte is another one, at QoS 0 and 1.
    rows = {loss: _lee(results, loss) for loss in LEE_LOSSES}
    evidence = "; ".join(
        f"{loss} % loss: " + ", ".join(f"QoS {qos} {in_words(1000 * row.delay_s_mean for row in each)} ms"
                                       for qos, each in of.items()) for loss, of in rows.items())
    steps = [_slopes([row.delay_s_mean for row in rows[0][qos]]) for qos in (0, 1)]
    return all(after > 2 * before for before, after in steps), f"{in_words(LEE_SIZES, 5)} B: {evidence}", reasons(
        assumed("on a wire a byte takes the same time before 4000 B and after: " + " and ".join(
            f"{1e6 * before:.2f} and {1e6 * after:.2f} µs at QoS {qos}" for qos, (before, after) in enumerate(steps))
            + "; two wires of 10 Mbit/s make 1.6 µs"),
        cause_open("what it was in their network, which the study does not tell"))


def _slopes(delays: Sequence[float]) -> tuple[float, float]:
    """Delay per byte up to 4000 B, and from there on."""
    middle = LEE_SIZES.index(4_000)
    return ((delays[middle] - delays[0]) / (LEE_SIZES[middle] - LEE_SIZES[0]),
            (delays[-1] - delays[middle]) / (LEE_SIZES[-1] - LEE_SIZES[middle]))


def _lee_loss(_: Path, results: Results) -> Verdict:
    rows = {loss: _lee(results, loss) for loss in LEE_LOSSES}
    place = LEE_SIZES.index(8_000)
    evidence = "; ".join(f"{loss} % loss: " + ", ".join(f"QoS {qos} {_lost(each)}" for qos, each in of.items())
                         for loss, of in rows.items())
    holds = all(each[place].messages_lost_percent > each[0].messages_lost_percent + 1 for each in rows[1].values())
    return holds, f"lost of {in_words(LEE_SIZES, 5)} B: {evidence}", reasons(
        assumed("TCP repairs what the wire loses, at every size"), cause_open("where theirs were lost"))


JUDGES: dict[str, Callable[[Path, Results], Verdict]] = {
    "broadband-satcom-lossless": _lossless, "qos0-equals-qos1": _three_times,
    "narrowband-gps-survives": _narrowband, "cnr-collapses": _cnr, "segments-grow-under-congestion": _segments,
    "recommendations": _recommendations, "mqtt-sn-prepared": _mqtt_sn,
    "fifteen-kbit-s-on-three": _rates, "cnr-qos1-loses-least": _qos1_least,
    "cnr-images-faster-than-gps": _images_faster, "even-larger-messages": _larger,
    "johnsen-mqtt-lowest-delay": _mqtt_first, "johnsen-qos1-helps-mqtt-sn": _qos1_helps,
    "johnsen-tcp-spurious": _spurious, "lee-delay-from-4000": _lee_delay, "lee-loss-at-8000": _lee_loss,
}
