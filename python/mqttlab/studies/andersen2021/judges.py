"""What andersen2021 claims, each claim held against the simulations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl

from mqttlab.studies.andersen2021.experiment import (
    DELAY_OVER_QOS0_MAX,
    NETWORKS,
    PAYLOADS,
    SIZES,
    Application,
    Measured,
    case_name,
    larger_name,
    published_application,
    published_network,
    recommended,
)
from mqttlab.studies.claims import Verdict, in_words, judged, waits_for
from mqttlab.studies.table import Comparison

Results = Mapping[str, Measured]
QOS = (0, 1, 2)
FAST = [f"{network}-{payload}" for network in ("tactical-broadband", "satcom") for payload in PAYLOADS.values()]
CNR = ("cnr-1", "cnr-10")

STAYS_CONNECTED = (
    "most probably the clients differ: Paho, which the study used, also pings when it has heard nothing for a "
    "keep-alive interval, and gives up when no answer comes within another, so that on a queue of minutes even its "
    "publishers disconnect, and stop; the clients here ping when they have sent nothing for an interval (MQTT 3.1.1 "
    "§3.1.2.10), stay where they have something to send, and deliver until the cool-down ends"
)

def evaluate(directory: Path, results: Results) -> list[Comparison]:
    """Every claim of ``claims.toml`` with the numbers that decide it; a reason where it does not hold."""
    return judged(directory, results, JUDGES)


def _rows(results: Results, name: str) -> list[Application]:
    return [results[name].by_qos[qos] for qos in QOS]


def _lost(rows: list[Application]) -> str:
    return in_words(row.messages_lost_percent for row in rows) + " %"


def _delays(rows: list[Application]) -> str:
    return in_words(row.delay_s_mean for row in rows) + " s"


def _disconnects(rows: list[Application]) -> str:
    return " / ".join(str(row.disconnects) for row in rows)


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
    reason = ("clients that publish in step queue at the link, QoS 1 behind QoS 0: in the study's own table, too, "
              "images on SATCOM take 1.4 times as long at QoS 1")
    return equal and thrice, f"QoS 0 / 1 / 2: {evidence}", reason


def _narrowband(_: Path, results: Results) -> Verdict:
    gps, image = (_rows(results, f"nato-narrowband-{payload}") for payload in PAYLOADS.values())
    survives = all(row.messages_lost_percent == 0 and 2 <= round(row.delay_s_mean) <= 10 for row in gps)
    collapses = all(row.messages_lost_percent > 85 for row in image[:2]) and image[2].messages_lost_percent == 100
    leaves = all(row.disconnects > 0 for row in image)
    evidence = (f"GPS loses {_lost(gps)}, mean delays {_delays(gps)} at QoS 0 / 1 / 2; images lose {_lost(image)}, "
                f"{_disconnects(image)} disconnects")
    what = "what does not hold is said of images" if survives else "neither holds as published"
    return survives and collapses and leaves, evidence, f"{what}; {STAYS_CONNECTED}"


def _cnr(_: Path, results: Results) -> Verdict:
    gps = [row for network in CNR for row in _rows(results, f"{network}-gps")]
    images = [row for network in CNR for row in _rows(results, f"{network}-image")]
    loses = all(100 / 3 <= row.messages_lost_percent <= 95 for row in gps)
    minutes = all(row.delay_s_mean > 30 for row in gps)
    leaves = all(row.disconnects > 40 for row in gps)
    nothing = all(row.messages_lost_percent > 85 for row in images)
    evidence = "; ".join(
        f"{network}: GPS loses {_lost(of[0])}, mean delays {_delays(of[0])}, {_disconnects(of[0])} disconnects, "
        f"images lose {_lost(of[1])}"
        for network in CNR if (of := [_rows(results, f"{network}-{payload}") for payload in PAYLOADS.values()]))
    return loses and minutes and leaves and nothing, evidence, STAYS_CONNECTED


def _segments(directory: Path, results: Results) -> Verdict:
    def of(source: Callable[[str, str], float], metric: str) -> list[float]:
        return [source(f"{network}-gps", metric) for network in ("tactical-broadband", *CNR)]

    printed = published_network(directory)
    ours: dict[str, list[float]] = {}
    parts = []
    for metric, words in (("avg_message_bytes", "bytes"), ("tcp_retransmissions", "retransmissions"),
                          ("duplicate_acks", "duplicate ACKs")):
        ours[metric] = of(lambda name, which: results[name].network.get(which, float("nan")), metric)
        theirs = of(lambda name, which: printed[name, which], metric)
        parts.append(f"{in_words(ours[metric], 4)} {words} (published {in_words(theirs, 4)})")
    sizes, again, duplicates = ours.values()
    grows = all(size > 2 * sizes[0] for size in sizes[1:])
    bursts = again[0] < 100 and duplicates[0] < 100 and all(value > 1000 for value in again[1:])
    # What the study prints of duplicate ACKs on CNR is 779 and 804.
    many = all(value > 10 * duplicates[0] and value > 700 for value in duplicates[1:])
    reason = (f"segments grow {sizes[1] / sizes[0]:.1f} and {sizes[2] / sizes[0]:.1f} times; they start at "
              f"{sizes[0]:.0f} B, and where connections stay up, less of the traffic is a backlog sent at once")
    return grows and bursts and many, "broadband / CNR 1 % / CNR 10 %, GPS: " + "; ".join(parts), reason


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
    return not apart, evidence, "delays and losses differ from the study's there, as its tables show"


def _rates(directory: Path, results: Results) -> Verdict:
    names = ("tactical-broadband", "satcom", "nato-narrowband", *CNR)
    theirs = published_network(directory)
    printed = [theirs[f"{name}-gps", "data_rate_kbit_s"] for name in names]
    ours = [results[f"{name}-gps"].network.get("data_rate_kbit_s", float("nan")) for name in names]
    holds = all(13 <= value <= 17 for value in ours[:3]) and all(value < 10 for value in ours[3:])
    return holds, f"{' / '.join(names)}: {in_words(ours)} kbit/s (published {in_words(printed)})", (
        "what does not fit into a network is not there to be counted")


def _qos1_least(_: Path, results: Results) -> Verdict:
    # Of images QoS 0 loses least in the study's own table.
    rows = {network: _rows(results, f"{network}-gps") for network in CNR}
    lost = all(row[1].messages_lost_percent == min(level.messages_lost_percent for level in row)
               and row[2].messages_lost_percent == max(level.messages_lost_percent for level in row)
               for row in rows.values())
    waits = all(row[1].delay_s_mean >= max(level.delay_s_mean for level in row if level.delay_s_mean
                                           == level.delay_s_mean) for row in rows.values())
    evidence = "; ".join(f"{name}: lost {_lost(row)}, {_delays(row)}" for name, row in rows.items())
    return lost and waits, evidence, STAYS_CONNECTED


def _images_faster(_: Path, results: Results) -> Verdict:
    gps, image = (_rows(results, f"cnr-1-{payload}") for payload in PAYLOADS.values())
    holds = all(small.delay_s_mean > large.delay_s_mean for small, large in zip(gps[:2], image[:2], strict=True))
    return holds, f"GPS {_delays(gps)}, images {_delays(image)}; lost {_lost(gps)} and {_lost(image)}", (
        "the study's means are over what arrived before its clients gave up: the more is lost, the shorter is the mean "
        "of what is left. Here more is delivered, and later")


def _larger(_: Path, results: Results) -> Verdict:
    carried = {}
    for network in NETWORKS.values():
        whole = {qos: [size for size in SIZES
                       if results[larger_name(network, size)].by_qos[qos].messages_lost_percent < 1] for qos in QOS}
        carried[network] = " / ".join(str(max(sizes, default=0)) for sizes in whole.values())
    evidence = (f"largest of {in_words(SIZES, 7)} B of which at least 99 % arrive within ten minutes and five more, at "
                "QoS 0 / 1 / 2: " + "; ".join(f"{network} {sizes} B" for network, sizes in carried.items()))
    return None, evidence, "the study names it as work to be done and prints nothing for it"


def _mqtt_sn(_: Path, __: Results) -> Verdict:
    return waits_for("MQTT-SN in the simulator and a gateway in scenarios; the study prints no values for it")


JUDGES: dict[str, Callable[[Path, Results], Verdict]] = {
    "broadband-satcom-lossless": _lossless, "qos0-equals-qos1": _three_times,
    "narrowband-gps-survives": _narrowband, "cnr-collapses": _cnr, "segments-grow-under-congestion": _segments,
    "recommendations": _recommendations, "mqtt-sn-prepared": _mqtt_sn,
    "fifteen-kbit-s-on-three": _rates, "cnr-qos1-loses-least": _qos1_least,
    "cnr-images-faster-than-gps": _images_faster, "even-larger-messages": _larger,
    "constrained-networks-mqtt-sn": _mqtt_sn,
}
