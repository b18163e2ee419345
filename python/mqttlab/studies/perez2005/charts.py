"""perez2005's figures 4.3, 4.4, 5.2 to 5.7 and 5.10 to 5.16, and curves of its tables 5.3, 5.4, 5.12 and 5.17.

Figures 5.1, 5.8 and 5.9 are drawings without values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mqttlab.studies.chart import Chart, Series
from mqttlab.studies.perez2005.beyond import LARGE, LOADED, RISING, bursts
from mqttlab.studies.perez2005.experiment import (
    BURSTY,
    FIRST_MSS,
    LATER_MSS,
    MEAN,
    SERIAL,
    Ethernet,
    Measured,
    Printed,
    Wifi,
    delay_cells,
    efficiency_cells,
    efficiency_of,
)

Results = Mapping[str, Measured]


def charts(directory: Path, results: Results) -> list[Chart]:
    """The figures in the order of their numbers, then curves of tables."""
    means = [cell for cell in delay_cells(directory) if cell.metric == MEAN]

    def of(table: str, keep: Callable[[Printed], bool] = lambda cell: True) -> list[Printed]:
        return [cell for cell in means if cell.table == table and keep(cell)]

    return [
        _validation(results), _distribution(results), _rising(results), _timeouts(results),
        *(_by_errors(results, means, name, p_bb) for name, p_bb in (("5.5", 0.1), ("5.6", BURSTY))),
        _by_topics(results), _loaded(results),
        *(_evolution(results, means, name, table, levels) for name, table, levels in (
            ("5.11", "5.17", (0, 1)), ("5.12", "5.17", (2,)), ("5.15", "5.18", (0, 1)), ("5.16", "5.18", (2,)))),
        *(_larger(results, name, qos) for name, qos in (("5.13", 0), ("5.14", 2))),
        _delays(results, "table-5-4", "Two clients, 65 B, bursts of bit errors, MSS 536 (table 5.4)",
                "bit errors, 10⁻⁶", of("5.4", lambda cell: cell.case.mss == LATER_MSS), _micro_errors),
        *(_delays(results, f"table-5-12-{word}", f"Three stations, 200 B, {word} (table 5.12)", "mean bad state, ms",
                  [cell for cell in of("5.12") if _rts(cell) is on], _bad_ms)
          for word, on in (("without RTS/CTS", False), ("with RTS/CTS", True))),
        *(_delays(results, f"table-5-17-{payload}B", f"21 stations, {payload} B, without RTS/CTS (table 5.17)",
                  "mean bad state, ms",
                  [cell for cell in of("5.17") if not _rts(cell) and cell.case.payload == payload], _bad_ms)
          for payload in (200, 1000)),
        _efficiency(directory, results),
    ]


def _by_second(name: str, values: Sequence[float], colour: int) -> Series:
    return Series(name=name, colour=colour, points=list(enumerate(values)))


def _distribution(results: Results) -> Chart:
    """Figure 5.2, whose values are not printed."""
    series = []
    for number, (word, p_bb) in enumerate((("single errors", 0.1), ("bursts", BURSTY))):
        case = Ethernet(clients=2, payload=30, ber=1e-4, p_bb=p_bb, qos=0, mss=FIRST_MSS, timestamps=False)
        if case.name in results:
            series.append(_by_second(word, results[case.name].greatest_by_second_ms["subscriber"], number))
    return Chart(name="figure-5-2", title="Single errors and bursts, BER 10⁻⁴, 30 B, QoS 0 (figure 5.2)",
                 x="time, s", y="greatest delay in each second, ms", log_y=True, series=series)


def _timeouts(results: Results) -> Chart:
    """Figure 5.4, whose values are not printed."""
    series = []
    for stamps in (False, True):
        for qos in (0, 1, 2):
            case = bursts(payload=65, qos=qos, mss=LATER_MSS, timestamps=stamps)
            if case.name in results:
                series.append(_by_second(f"QoS {qos}, {'timestamps' if stamps else 'no timestamps'}",
                                         results[case.name].rto_by_second_ms, 3 * stamps + qos))
    return Chart(name="figure-5-4", title="Timeout at the publisher, 65 B, BER 10⁻⁴ (figure 5.4)", x="time, s",
                 y="retransmission timeout, ms", log_y=True, series=series)


def _by_errors(results: Results, means: Sequence[Printed], number: str, p_bb: float) -> Chart:
    """Figures 5.5 and 5.6; of the second table 5.5 has the values."""
    series = []
    for payload in (50, 200):
        for qos in (0, 1, 2):
            colour = qos + 3 * (payload == 200)
            theirs = [(_micro_errors(cell), cell.value) for cell in means if cell.table == "5.5" and p_bb == BURSTY
                      and (cell.case.payload, cell.case.qos) == (payload, qos)]
            series.append(Series(name=f"{payload} B, QoS {qos}, table 5.5", published=True, colour=colour,
                                 points=theirs))
            ran = [case for ber in (0.0, 1e-5, 1e-4)
                   if (case := Ethernet(clients=20, payload=payload, ber=ber, p_bb=p_bb, qos=qos)).name in results]
            series.append(Series(name=f"{payload} B, QoS {qos}", colour=colour,
                                 points=[(1e6 * case.ber, results[case.name].delay_ms) for case in ran],
                                 halves=[results[case.name].half_ms for case in ran]))
    return Chart(name=f"figure-{number.replace('.', '-')}", title=f"20 clients on Ethernet, p_BB {p_bb:g} "
                 f"(figure {number})", x="bit errors, 10⁻⁶", y="mean delay, ms", log_y=True, series=series)


def _by_topics(results: Results) -> Chart:
    """Figure 5.7, whose values are not printed."""
    case = Ethernet(clients=20, payload=200, ber=1e-4, p_bb=BURSTY, qos=0)
    found = results[case.name].greatest_by_second_ms if case.name in results else {}
    return Chart(name="figure-5-7", title="Subscribers of one, two, three topics, 200 B, bursts (figure 5.7)",
                 x="time, s", y="greatest delay in each second, ms", log_y=True, series=[
                     _by_second(f"{word} topics" if word != "one" else "one topic",
                                found.get(f"subscriber-{number}", ()), number)
                     for number, word in ((1, "one"), (2, "two"), (3, "three"))])


def _loaded(results: Results) -> Chart:
    """Figure 5.10, whose values are printed for 200 B alone (table 5.13)."""
    series = []
    for number, (word, ratios) in enumerate((("S", ("S",)), ("R", ("R",)), ("T", ("T_p", "T_s")))):
        for qos in (0, 1, 2):
            ran = [case for case in LOADED if case.qos == qos and case.name in results]
            series.append(Series(name=f"{word}, QoS {qos}", colour=qos + 3 * number, points=[
                (float(case.payload), sum(efficiency_of(results[case.name], "", ratio) for ratio in ratios)
                 / len(ratios)) for case in ran]))
    return Chart(name="figure-5-10", title="Byte efficiency, bad states of 60 ms, with RTS/CTS (figure 5.10)",
                 x="payload, B", y="application bytes / radio bytes", series=series)


def _evolution(
    results: Results, means: Sequence[Printed], number: str, table: str, levels: Sequence[int],
) -> Chart:
    """Figures 5.11, 5.12, 5.15 and 5.16: their tables have the least and the largest payload of the figures."""
    cells = [cell for cell in means if cell.table == table and _rts(cell) and cell.case.qos in levels]
    series = []
    for place, (qos, payload) in enumerate(dict.fromkeys((cell.case.qos, cell.case.payload) for cell in cells)):
        here = [cell for cell in cells if (cell.case.qos, cell.case.payload) == (qos, payload)]
        ran = [cell for cell in here if cell.case.name in results]
        series += [
            Series(name=f"QoS {qos}, {payload} B, table {table}", published=True, colour=place,
                   points=[(_bad_ms(cell), cell.value) for cell in here]),
            Series(name=f"QoS {qos}, {payload} B", colour=place,
                   points=[(_bad_ms(cell), results[cell.case.name].delay_ms) for cell in ran],
                   halves=[results[cell.case.name].half_ms for cell in ran])]
    which = "QoS 2" if levels == (2,) else "QoS 0 and 1"
    return Chart(name=f"figure-{number.replace('.', '-')}", x="mean bad state, ms", y="mean delay, ms", log_y=True,
                 title=f"21 stations with RTS/CTS, {which}, MSS {cells[0].case.mss} (figure {number})", series=series)


def _larger(results: Results, number: str, qos: int) -> Chart:
    """Figures 5.13 and 5.14, whose values are not printed, at the subscribers of all topics."""
    series = [_by_second(f"{case.payload} B", results[case.name].greatest_by_second_ms.get("subscriber-3", ()), place)
              for place, case in enumerate(case for case in LARGE if case.qos == qos) if case.name in results]
    return Chart(name=f"figure-{number.replace('.', '-')}", x="time, s", y="greatest delay in each second, ms",
                 title=f"21 stations with RTS/CTS, bad states of 120 ms, QoS {qos} (figure {number})", log_y=True,
                 series=series)


def _rising(results: Results) -> Chart:
    """Figure 5.3, whose values are not printed."""
    series = []
    for qos in (0, 1, 2):
        ran = [case for case in RISING if case.qos == qos and case.name in results]
        series.append(Series(name=f"QoS {qos}", colour=qos,
                             points=[(1e6 * case.ber, results[case.name].delay_ms) for case in ran],
                             halves=[results[case.name].half_ms for case in ran]))
    return Chart(name="figure-5-3", title="30 B in bursts of bit errors (figure 5.3)", x="bit errors, 10⁻⁶",
                 y="mean delay, ms", log_y=True, series=series)


def _validation(results: Results) -> Chart:
    """What figures 4.3 and 4.4 show without values."""
    series = []
    for number, per_s in enumerate((10, 50)):
        for qos in (0, 1, 2):
            ran = [case for case in SERIAL if (case.per_s, case.qos) == (per_s, qos) and case.name in results]
            series.append(Series(
                name=f"{per_s} /s, QoS {qos}", colour=3 * number + qos,
                points=[(1e6 * case.ber, results[case.name].delay_ms) for case in ran],
                halves=[results[case.name].half_ms for case in ran]))
    return Chart(name="figures-4-3-4-4", title="Validation: 10 B over PPP, random bit errors (figures 4.3 and 4.4)",
                 x="bit errors, 10⁻⁶", y="mean delay, ms", log_y=True, series=series)


def _micro_errors(cell: Printed) -> float:
    return 1e6 * cell.case.ber if isinstance(cell.case, Ethernet) else float("nan")


def _bad_ms(cell: Printed) -> float:
    return float(cell.case.mean_bad_ms) if isinstance(cell.case, Wifi) else float("nan")


def _rts(cell: Printed) -> bool:
    return isinstance(cell.case, Wifi) and cell.case.rts_cts


def _delays(
    results: Results, name: str, title: str, x: str, cells: Sequence[Printed], place: Callable[[Printed], float],
) -> Chart:
    series = []
    for qos in (0, 1, 2):
        here = [cell for cell in cells if cell.case.qos == qos]
        run = [cell for cell in here if cell.case.name in results]
        series += [
            Series(name=f"QoS {qos}, published", published=True, colour=qos,
                   points=[(place(cell), cell.value) for cell in here]),
            Series(name=f"QoS {qos}", colour=qos,
                   points=[(place(cell), results[cell.case.name].delay_ms) for cell in run],
                   halves=[results[cell.case.name].half_ms for cell in run])]
    return Chart(name=name.replace(" ", "-").replace("/", "-"), title=title, x=x, y="mean delay, ms", log_y=True,
                 series=series)


def _efficiency(directory: Path, results: Results) -> Chart:
    cells = [cell for cell in efficiency_cells(directory)
             if cell.table == "5.3" and cell.metric == "publisher_b_efficiency"]
    series = []
    for qos in (0, 1, 2):
        here = [cell for cell in cells if cell.case.qos == qos]
        series += [
            Series(name=f"QoS {qos}, published", published=True, colour=qos,
                   points=[(float(cell.case.payload), cell.value) for cell in here]),
            Series(name=f"QoS {qos}", colour=qos,
                   points=[(float(cell.case.payload), efficiency_of(results[cell.case.name], "", cell.metric))
                           for cell in here if cell.case.name in results])]
    return Chart(name="table-5-3", title="Publisher's efficiency in bytes by payload (table 5.3)", x="payload, B",
                 y="application bytes / link bytes", series=series)
