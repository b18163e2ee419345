"""perez2005's figures, theirs and ours: delay by bit errors, by bad states of the radio, and efficiency by payload."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mqttlab.studies.chart import Chart, Series
from mqttlab.studies.perez2005.beyond import RISING
from mqttlab.studies.perez2005.experiment import (
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
    """Delays of tables 5.4, 5.5, 5.12, 5.17 and 5.18 and efficiencies of table 5.3 as curves."""
    means = [cell for cell in delay_cells(directory) if cell.metric == MEAN]

    def of(table: str, keep: Callable[[Printed], bool] = lambda cell: True) -> list[Printed]:
        return [cell for cell in means if cell.table == table and keep(cell)]

    return [
        _delays(results, "table-5-4", "65 B, bursts of bit errors, MSS 536 (figures 5.1 to 5.4)", "bit errors, 10⁻⁶",
                of("5.4", lambda cell: cell.case.mss == 536), _micro_errors),
        _delays(results, "table-5-5", "Ethernet of 20 clients, 200 B, bursts (figures 5.5 to 5.7)",
                "bit errors, 10⁻⁶", of("5.5", lambda cell: cell.case.payload == 200), _micro_errors),
        *(_delays(results, f"table-5-12-{word}", f"Three stations, 200 B, {word} (figures 5.10 and 5.11)",
                  "mean bad state, ms", [cell for cell in of("5.12") if _rts(cell) is on], _bad_ms)
          for word, on in (("without RTS/CTS", False), ("with RTS/CTS", True))),
        *(_delays(results, f"table-5-17-{payload}B", f"21 stations, {payload} B, no RTS/CTS (figures 5.12 to 5.16)",
                  "mean bad state, ms",
                  [cell for cell in of("5.17") if not _rts(cell) and cell.case.payload == payload], _bad_ms)
          for payload in (200, 1000)),
        _efficiency(directory, results),
        _validation(results), _rising(results),
    ]


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
