"""Wills are held against 1.5 keep-alives after their clients fell silent: told where they came late or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from mqttlab.dashboard.pages import overview
from mqttlab.recording import Recording
from mqttlab.report import cards
from mqttlab.report.answer import lines
from mqttlab.report.headline import told
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse
from unchecked import without_checks

S = 1_000_000_000
SCENARIO = """
name = "wills"
backend = "sim"
[phases]
duration = "30 s"
cool_down = "2 s"
[[networks]]
between = ["field", "broker"]
link = "each"
up = { delay = "50 ms" }
down = { delay = "50 ms" }
[[groups]]
name = "device"
host = "field"
count = 4
mqtt = { keep_alive = "4 s", will = { topic = "status/dev", payload = "offline", qos = 1 } }
publish = { topic = "data/{client}", payload = "20 B", interval = "1 s" }
[[groups]]
name = "watcher"
host = "broker"
subscribe = [{ filter = "status/#", qos = 1 }, { filter = "data/#", qos = 0 }]
[[events]]
at = "5 s"
group = "device"
share = "50 %"
do = "vanish"
"""
WILL = pl.col("fate") == "will"


def as_it_came(rows: pl.DataFrame) -> pl.DataFrame:
    return rows


def later(rows: pl.DataFrame) -> pl.DataFrame:
    """The first will comes 5 s later."""
    first = WILL & (WILL.cum_sum() == 1)
    return rows.with_columns(received_ns=pl.when(first).then(pl.col("received_ns") + 5 * S).otherwise("received_ns"))


def lost(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(~WILL)


@pytest.mark.parametrize(("change", "scenario", "expected"), [
    (as_it_came, SCENARIO, None),
    (later, SCENARIO, "Of 2 copies of wills of device, due within 1.5 keep-alives (6 s), 1 came later, which breaks"),
    (lost, SCENARIO, "due within 1.5 keep-alives (6 s), 2 did not come, which breaks"),
    # Of QoS 0 nothing is promised, a client that returns gives no time, and a broker that stands still explains it.
    (lost, SCENARIO.replace('"offline", qos = 1', '"offline", qos = 0'), None),
    (lost, SCENARIO + 'for = "3 s"\n', None),
    (lost, SCENARIO + '[[events]]\nat = "6 s"\nserver = "broker"\ndo = "pause"\nfor = "8 s"\n', None),
    # Who had no connection, or left in order, has no will to come.
    (lost, SCENARIO.replace("vanish", "disconnect"), None),
])
def test_a_will_that_came_late_or_not_at_all_is_on_every_first_screen(
    change: Callable[[pl.DataFrame], pl.DataFrame], scenario: str, expected: str | None, tmp_path: Path,
) -> None:
    outcome = perform(Job(compile_plan(parse(scenario)), tmp_path / "run"), lambda line: None)
    assert outcome.verdict in ("complete", "invalid"), outcome.reason
    path = tmp_path / "run" / "messages.parquet"
    rows = change(pl.read_parquet(path).with_columns(pl.col("fate").cast(pl.String)))
    rows.write_parquet(path)
    without_checks(tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    recording = Recording.open(tmp_path / "run")
    terminal = " ".join(" ".join(lines(told(recording))).split()).replace("keep- alives", "keep-alives")
    for screen in (terminal, cards.section(recording), str(overview.part(recording))):
        assert ("promise of a will" in screen) == (expected is not None), screen
        assert expected is None or expected in screen, screen
