"""Events that overlap: which of them ends which, read back from the recordings of simulated runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse

SECOND = 1_000_000_000
SCENARIO = """
name = "overlapping"
backend = "sim"
[phases]
stages = [{ name = "before", for = "18 s" }, { name = "after", for = "22 s" }]
[hosts.router]
forwards = true
[[networks]]
name = "wan"
between = ["field", "router"]
link = "each"
up = { delay = "20 ms", rate = "1 Mbit/s" }
down = { delay = "20 ms", rate = "1 Mbit/s" }
[[networks]]
name = "lan"
between = ["broker", "router"]
up = { delay = "1 ms" }
down = { delay = "1 ms" }
[[groups]]
name = "sensors"
host = "field"
count = 2
publish = { topic = "a/{client}", payload = "125 B", interval = "1 s" }
[[groups]]
name = "app"
host = "broker"
subscribe = ["a/+"]
"""
RATE = 'at = "10 s"\nfor = "20 s"\nnetwork = "wan"\nrate = "10 kbit/s"'
DELAY = 'at = "15 s"\nfor = "5 s"\nnetwork = "wan"\ndelay = "500 ms"'
Changes = list[tuple[str, float, float | None]]
Values = tuple[float, float, float]
"""The rate of `wan` in kbit/s, its delay and that of `lan` in ms."""
BASE: Values = (1000, 20, 1)
# The events; the changes with their times; and at such a second the rate of `wan`, its delay and that of `lan`.
CASES: dict[str, tuple[list[str], Changes, dict[int, Values]]] = {
    "another one inside": (
        [RATE, DELAY], [("wan rate 10 kbit/s", 10, 30), ("wan delay 500 ms", 15, 20)],
        {5: BASE, 12: (10, 20, 1), 17: (10, 500, 1), 22: (10, 20, 1), 32: BASE}),
    "the same kind twice": (
        [DELAY.replace("500", "300").replace('"5 s"', '"15 s"'), DELAY.replace("15 s", "20 s")],
        [("wan delay 300 ms", 15, 30), ("wan delay 500 ms", 20, 25)],
        {17: (1000, 300, 1), 22: (1000, 500, 1), 27: (1000, 300, 1), 32: BASE}),
    "the same values twice": (
        [DELAY.replace('"5 s"', '"10 s"'), DELAY.replace("15 s", "20 s").replace('"5 s"', '"10 s"')],
        [("wan delay 500 ms", 15, 25), ("wan delay 500 ms", 20, 30)],
        {17: (1000, 500, 1), 22: (1000, 500, 1), 27: (1000, 500, 1), 32: BASE}),
    "one that never ends": (
        [RATE.replace('for = "20 s"\n', ""), DELAY],
        [("wan rate 10 kbit/s", 10, None), ("wan delay 500 ms", 15, 20)],
        {17: (10, 500, 1), 22: (10, 20, 1), 35: (10, 20, 1)}),
    "the edge of a stage between": (
        [RATE, 'when = "after"\nfor = "5 s"\nnetwork = "wan"\ndelay = "500 ms"'],
        [("wan rate 10 kbit/s", 10, 30), ("wan delay 500 ms", 18, 23)],
        {16: (10, 20, 1), 20: (10, 500, 1), 25: (10, 20, 1)}),
    "two networks": (
        [RATE, 'at = "15 s"\nfor = "5 s"\nnetwork = "lan"\ndelay = "500 ms"'],
        [("wan rate 10 kbit/s", 10, 30), ("lan delay 500 ms", 15, 20)], {17: (10, 20, 500), 22: (10, 20, 1), 32: BASE}),
    "two groups of one name": (
        ['name = "away"\nat = "10 s"\nfor = "20 s"\ngroup = "sensors"\ndo = "stop-publishing"',
         'name = "away"\nat = "15 s"\nfor = "5 s"\ngroup = "app"\ndo = "stop-reading"'],
        [("away", 10, 30), ("away", 15, 20)], {5: BASE, 35: BASE}),
    "three deep": (
        [RATE, DELAY.replace('"5 s"', '"12 s"'), 'at = "18 s"\nfor = "6 s"\nnetwork = "wan"\ndelay = "900 ms"'],
        [("wan rate 10 kbit/s", 10, 30), ("wan delay 500 ms", 15, 27), ("wan delay 900 ms", 18, 24)],
        {16: (10, 500, 1), 19: (10, 900, 1), 28: (10, 20, 1), 32: BASE}),
    "equal instants": (
        [RATE.replace('"20 s"', '"5 s"'), DELAY],
        [("wan rate 10 kbit/s", 10, 15), ("wan delay 500 ms", 15, 20)],
        {12: (10, 20, 1), 17: (1000, 500, 1), 22: BASE}),
    "begun and ended together": (
        [RATE, RATE.replace('rate = "10 kbit/s"', 'delay = "500 ms"')],
        [("wan rate 10 kbit/s", 10, 30), ("wan delay 500 ms", 10, 30)], {20: (10, 500, 1), 32: BASE}),
    "it ends before the other one has": (
        [RATE.replace('"20 s"', '"8 s"'), DELAY.replace('"5 s"', '"10 s"')],
        [("wan rate 10 kbit/s", 10, 18), ("wan delay 500 ms", 15, 25)],
        {12: (10, 20, 1), 17: (10, 500, 1), 20: (1000, 500, 1), 27: BASE}),
    "one field by two, the first one outlives": (
        [RATE, RATE.replace('"10 s"', '"15 s"').replace('"20 s"', '"5 s"').replace("10 kbit", "20 kbit")],
        [("wan rate 10 kbit/s", 10, 30), ("wan rate 20 kbit/s", 15, 20)],
        {12: (10, 20, 1), 17: (20, 20, 1), 22: (10, 20, 1)}),
    "one direction inside both": (
        [DELAY.replace('"5 s"', '"15 s"'),
         'at = "20 s"\nfor = "5 s"\nnetwork = "wan"\ndirection = "up"\nrate = "10 kbit/s"'],
        [("wan delay 500 ms", 15, 30), ("wan/up rate 10 kbit/s", 20, 25)],
        {17: (1000, 500, 1), 22: (10, 500, 1), 27: (1000, 500, 1)}),
    "down twice: the link is up with the last one": (
        ['at = "10 s"\nfor = "10 s"\nnetwork = "wan"\ndown = true',
         'at = "15 s"\nfor = "10 s"\nnetwork = "wan"\ndown = true'],
        [("wan down", 10, 25), ("wan down", 15, 25)], {5: BASE, 35: BASE}),
    "some clients return earlier": (
        ['at = "10 s"\nfor = "20 s"\ngroup = "sensors"\ndo = "vanish"',
         'at = "15 s"\nfor = "5 s"\ngroup = "sensors"\nclient = 0\ndo = "disconnect"'],
        [("sensors vanish", 10, 30), ("sensors 0 disconnects", 15, 20)], {5: BASE, 37: BASE}),
    "the server starts within": (
        ['at = "10 s"\nfor = "20 s"\nserver = "broker"\ndo = "kill"',
         'at = "15 s"\nserver = "broker"\ndo = "start"'],
        [("broker is killed", 10, 15)], {5: BASE, 35: BASE}),
    "a payload and a stop within": (
        ['at = "10 s"\nfor = "20 s"\ngroup = "sensors"\npublish = { payload = "250 B" }',
         'at = "15 s"\nfor = "5 s"\ngroup = "sensors"\ndo = "stop-publishing"'],
        [("sensors publish 250 B", 10, 30), ("sensors stop publishing", 15, 20)], {5: BASE, 22: BASE, 35: BASE}),
}


def planned(events: list[str]) -> dict[str, Any]:
    return dict(compile_plan(parse(SCENARIO + "".join(f"[[events]]\n{event}\n" for event in events))))


@pytest.mark.parametrize("case", CASES)
def test_each_change_has_its_own_end(case: str, tmp_path: Path) -> None:
    events, expected, values = CASES[case]
    assert perform(Job(planned(events), tmp_path / "run"), lambda line: None).verdict == "complete"
    recording = Recording.open(tmp_path / "run")
    began = metrics.measurement(recording).from_ns
    assert [(change.name, (change.at_ns - began) / SECOND, change.until_ns and (change.until_ns - began) / SECOND)
            for change in recording.changes] == expected
    told = metrics.changes(recording)
    assert list(zip(told["change_at_s"], told["change_lasted_s"], strict=True)) == [
        (at, None if until is None else until - at) for _, at, until in expected]
    # The changes were in force.
    assert {second: values_at(recording, began + second * SECOND) for second in values} == values


def values_at(recording: Recording, at_ns: int) -> Values:
    """What the next frames of the first client met on its way to the broker."""
    came = pl.col("delivered_ns").is_not_null()
    frames = recording.packets.filter(pl.col("start_ns") >= at_ns, came).sort("start_ns")
    wan, lan = (frames.filter(pl.col("link") == link).row(0, named=True) for link in ("field-0/up", "router/up"))
    rate_kbit_s = 8e6 * wan["frame_bytes"] / (wan["sent_ns"] - wan["start_ns"])
    delays = ((frame["delivered_ns"] - frame["sent_ns"]) / 1e6 for frame in (wan, lan))
    return (round(rate_kbit_s, 1), *delays)
