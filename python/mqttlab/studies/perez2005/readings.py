"""What perez2005 leaves open, or this program has otherwise, each with what the other way comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mqttlab.studies.claims import MissingResult, Ran, in_words
from mqttlab.studies.perez2005.beyond import WITH_ERRORS, as_read, bursts, by_definition, read_otherwise, with_seeds
from mqttlab.studies.perez2005.experiment import (
    BURSTY,
    FIRST_MSS,
    LATER_MSS,
    Measured,
    efficiency_of,
    frame_loss,
    good_to_bad_of,
    mean_error_rate,
)
from mqttlab.studies.study import Reading

Results = Mapping[str, Measured]
QOS = (0, 1, 2)
SMALL = ("5.2", "5.3", "5.4", "figure 5.2", "figure 5.3", "figure 5.4")
ETHERNET = (*SMALL, "5.5", "5.6", "5.7", "5.8", "5.9", "5.10", "5.11", "figure 5.5")
RADIO = ("5.12", "5.13", "5.14", "5.15", "5.16", "5.17", "5.18", "5.19", "5.20", "5.21", "figure 5.10",
         "figures 5.13 and 5.14")


def readings(directory: Path, results: Results) -> list[Reading]:
    """Those of them whose effect was run, and those that say that it was not."""
    found = []
    for tables, text, effect in TOLD:
        try:
            found.append(Reading(tables=tables, text=text, effect=effect(Ran(results))))
        except MissingResult:
            continue
    return found


def _delays(which: str) -> Callable[[Results], str]:
    """Mean delays of table 5.2's scenario as set, and set the other way."""
    def told(results: Results) -> str:
        usual, other = ([results[case.name].delay_ms for case in cases] for cases in (
            [as_read(qos) for qos in QOS], [read_otherwise(qos)[which] for qos in QOS]))
        return f"table 5.2, mean delay at QoS 0 / 1 / 2: {in_words(usual)} ms, the other way {in_words(other)} ms"
    return told


def _m_efficiencies(which: str) -> Callable[[Results], str]:
    def told(results: Results) -> str:
        usual, other = ([efficiency_of(results[case.name], "", "S_m") for case in cases] for cases in (
            [as_read(qos) for qos in QOS], [read_otherwise(qos)[which] for qos in QOS]))
        return (f"table 5.2, publisher's m-efficiency at QoS 0 / 1 / 2: {in_words(usual)}, the other way "
                f"{in_words(other)}")
    return told


def _b_efficiencies(which: str) -> Callable[[Results], str]:
    def told(results: Results) -> str:
        usual, other = ([efficiency_of(results[case.name], "", metric) for metric in ("S", "R") for case in cases]
                        for cases in ([as_read(qos) for qos in QOS], [read_otherwise(qos)[which] for qos in QOS]))
        return (f"table 5.2, b-efficiency of publisher and subscriber at QoS 0 / 1 / 2: {in_words(usual)} as set, "
                f"{in_words(other)} the other way (printed .33 / .19 / .10 / .33 / .21 / .11)")
    return told


def _error_rate(results: Results) -> str:
    """What both other readings of the errors come to: half of the bits of a bad state wrong, and BER as a mean."""
    means = " and ".join(f"{mean_error_rate(1e-5, p_bb):.1e} / {mean_error_rate(1e-4, p_bb):.1e} at p_BB {p_bb:g}"
                         for p_bb in (0.1, BURSTY))
    frames = " and ".join(
        f"{100 * frame_loss(1e-4, p_bb, 125):.2g} % at p_BB {p_bb:g} (by the definition "
        f"{100 * frame_loss(good_to_bad_of(1e-4, p_bb), p_bb, 125):.2g} %)" for p_bb in (0.1, BURSTY))
    ran = "; ".join(
        f"{table}, {cases[0].payload} B, BER {cases[0].ber:g}, p_BB {cases[0].p_bb:g}: "
        f"{in_words(results[case.name].delay_ms for case in cases)} ms, by the definition "
        f"{in_words(results[by_definition(case).name].delay_ms for case in cases)} ms"
        for table, cases in WITH_ERRORS.items())
    return (f"{_delays('bad bits')(results)}. By the definition our BER of 1e-5 / 1e-4 is {means}: tables 5.2, 5.3, "
            "5.6, 5.7 and 5.10 have the former p_BB, 5.4, 5.5, 5.8, 5.9 and 5.11 the latter. At 1e-4 a cable loses "
            f"{frames} of the frames of 125 B; §5.2.2 expects 10 %. Mean delays at QoS 0 / 1 / 2: {ran}")


def _segments(results: Results) -> str:
    parts = []
    for mss in (FIRST_MSS, LATER_MSS):
        rows = [[results[case.name].delay_ms for case in with_seeds(bursts(payload=30, qos=qos, mss=mss))]
                for qos in QOS]
        parts.append(f"MSS {mss} " + "; ".join(
            f"QoS {qos} " + in_words(row)
            for qos, row in enumerate(rows)) + " ms")
    return f"30 B in bursts at BER 1e-4, five seeds: {', '.join(parts)}"


def _apart(results: Results) -> str:
    return "tables *some out of range* have the other reading"


def _not_run(results: Results) -> str:
    return "not run"


TOLD: Sequence[tuple[Sequence[str], str, Callable[[Results], str]]] = (
    (("5.2", "5.3", "figure 5.2", "figure 5.3"),
     "§5.2.1 is run as printed, with an MSS of 1024 B and TCP's options off; the other way is the 536 B of §5.2.2.",
     _segments),
    (ETHERNET + RADIO, "A payload includes the topic's name and a byte for the QoS, as §5.2.1 says of its 30 B; the "
                       "other way is a payload beside them.", _b_efficiencies("payload")),
    (("figure 5.4",), "Figure 5.4's MSS is not printed: 536 B, at which 65 B have a bound. The other way is 1024 B.",
     _not_run),
    (ETHERNET, "A switch stands between each client and the broker, so that a message crosses four cables of 1 ms: the "
               "printed 4.0 ms ask for it, and §5.2.1 names none.", _delays("no switch")),
    (ETHERNET, "*BER* is the chance of a bit to go from the good to the bad state; 6.5 % of the bits in the bad state "
               "are wrong, which is fitted: §4.3 prints no number. The other way is 50 %. §4.3 prints the definition "
               "*mean BER* = p_G e_G + p_B e_B. It was not taken: by it the runs at a BER of 1e-4 have no bound, "
               "where §5.2.2 prints 3 ms more.", _error_rate),
    (ETHERNET, "TCP acknowledges every segment at once, as the printed m-efficiencies ask for; the other way is "
               "delayed acknowledgements.", _m_efficiencies("delayed ACK")),
    (ETHERNET, "Nagle's algorithm is off, as a delay of 4.0 ms without spread asks for.", _delays("Nagle")),
    (ETHERNET, "A frame is Ethernet's 18 B and an IP packet, 64 B at least.", _not_run),
    (RADIO, "The stations of §5.3.4 stand at random places that are not printed; with the printed powers hardly a pair "
            "is out of range of each other, as the text says of some.", _apart),
    (RADIO, "How the study's model of 802.11 backs off, and at which rates it sends RTS, CTS and ACK, is not printed: "
            "the standard's are used. (`benches/ns3` has what other rates come to.)", _not_run),
    (("figures 5.13 and 5.14",), "The captions say 1000 B, the text 800 B: 800 B are run.", _not_run),
)
