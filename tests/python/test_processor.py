"""The servers' processor time: by hand, live, and where nobody knows it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.analysis import costs_of
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from recordings import Message, write
from test_catalogue import page
from test_comparison_answer import FLEET

S = 1_000_000_000


def sampled(directory: Path, used: list[tuple[float, float, float]], **more: Any) -> Recording:
    """100 messages in 10 s, 5 ms each; of the broker samples of instant, user and system time in s."""
    run = write(directory, [Message(i) for i in range(100)])
    rows = [{"at_ns": int(at * S), "process": process, "cpu_user_s": user, "cpu_system_s": system, "server": 0} | more
            for at, user, system in used for process in ("server", "engine")]
    pl.DataFrame(rows, schema_overrides={"server": pl.UInt16}).write_parquet(run / "resources.parquet")
    return Recording.open(run)


def test_both_ends_are_samples_within_the_measurement(tmp_path: Path) -> None:
    """The sample before it and the one after its end count nothing, neither do the deliveries outside the others."""
    recording = sampled(tmp_path / "run", [(-1, 0, 0), (2, 0.5, 0.25), (5, 0.6, 0.3), (8, 0.8, 0.45), (11, 9, 9)])
    [row] = metrics.processor(recording).to_dicts()
    assert (row["scope"], row["server_cpu_s"]) == ("run", pytest.approx(0.5))
    # Of the messages every 100 ms those that arrived from 2 s until 8 s.
    assert row["server_cpu_us_per_delivery"] == pytest.approx(500_000 / 60)
    long = metrics.summary(recording, tables=["processor"])
    assert long.select("scope", "metric", "unit").rows() == [
        ("run", "server_cpu_s", "s"), ("run", "server_cpu_us_per_delivery", "µs")]
    assert "in the measurement: 0.5 s, 8,333 µs for each first delivery." in page(recording)


@pytest.mark.parametrize(("why", "used"), [
    ("one sample", [(2, 0.5, 0)]), ("none within", [(-2, 0.5, 0), (-1, 0.7, 0), (12, 0.9, 0)]),
    ("a process ended, and its count with it", [(2, 0.5, 0), (5, 0.1, 0), (8, 0.7, 0)])])
def test_what_is_not_known_is_no_zero(why: str, used: list[tuple[float, float, float]], tmp_path: Path) -> None:
    recording = sampled(tmp_path / "run", used)
    assert metrics.processor(recording).is_empty(), why
    assert "Processor time" not in page(recording)


def test_of_less_than_the_ticks_can_tell_there_is_no_quotient(tmp_path: Path) -> None:
    [row] = metrics.processor(sampled(tmp_path / "run", [(2, 0, 0), (8, 0.05, 0.04)])).to_dicts()
    assert row["server_cpu_s"] == pytest.approx(0.09) and row["server_cpu_us_per_delivery"] is None


def test_a_server_that_nobody_sampled_makes_the_sum_unknown(tmp_path: Path) -> None:
    recording = sampled(tmp_path / "run", [(2, 0, 0), (8, 0.5, 0)])
    assert metrics.processor(recording).height == 1
    there = json.loads((recording.directory / "plan.json").read_text(encoding="utf-8"))
    there["servers"] = [there.pop("broker"), {"name": "elsewhere", "version": "", "host": 1, "port": 1884}]
    (recording.directory / "plan.json").write_text(json.dumps(there), encoding="utf-8")
    assert metrics.processor(Recording.open(recording.directory)).is_empty()


@pytest.mark.parametrize("schema", [1, 2, 3, 4])
def test_recordings_of_every_schema_are_read(schema: int) -> None:
    """The broker of these few messages took a tick or two."""
    kept = Path(__file__).parents[1] / "schemas" / str(schema)
    [row] = metrics.processor(Recording.open(kept / "live")).to_dicts()
    assert 0 <= row["server_cpu_s"] < 0.1 and row["server_cpu_us_per_delivery"] is None
    assert metrics.processor(Recording.open(kept / "simulated")).is_empty()


@pytest.mark.live
def test_a_real_broker_takes_what_its_samples_say(tmp_path: Path) -> None:
    values = tomllib.loads(FLEET) | {"backend": "live", "phases": {"duration": "3 s", "cool_down": "1 s"}}
    values["groups"][0]["publish"]["rate"] = "300 /s"
    assert perform(Job(compile_plan(parse_values(values)), tmp_path / "run"), lambda line: None).verdict == "complete"
    recording = Recording.open(tmp_path / "run")
    window = metrics.measurement(recording)
    samples = [row for row in recording.resources.filter(process="server").sort("at_ns").to_dicts()
               if window.from_ns <= row["at_ns"] < window.until_ns]
    first, last = samples[0], samples[-1]
    used = sum(last[name] - first[name] for name in ("cpu_user_s", "cpu_system_s"))
    arrived = recording.messages.filter(pl.col("fate") == "delivered")["received_ns"]
    count = ((arrived >= first["at_ns"]) & (arrived < last["at_ns"])).sum()
    [row] = metrics.processor(recording).to_dicts()
    assert row["server_cpu_s"] == pytest.approx(used) and used > 0
    assert row["server_cpu_us_per_delivery"] == (pytest.approx(1e6 * used / count) if used >= 0.1 else None)


def test_costs_of_points_have_it_of_the_run_and_energy_of_groups() -> None:
    """Energy of the whole run was not asked for: it would stand beside that of the groups as another cost."""
    row = {"state": "done", "kind": "run", "declared": False, "key": "a", "scope_name": None}
    table = pl.DataFrame([
        row | {"metric": "server_cpu_us_per_delivery", "scope": "run", "value": 40.0},
        row | {"metric": "server_cpu_us_per_delivery", "scope": "run", "value": 44.0},
        row | {"metric": "energy_mj_per_delivery", "scope": "run", "value": 7.0},
        row | {"metric": "energy_mj_per_delivery", "scope": "group", "scope_name": "sensors", "value": 3.0}],
        schema_overrides={"scope_name": pl.String})
    found = {(cost.metric, cost.of): cost.mean("a") for cost in costs_of([table])}
    assert found == {("server_cpu_us_per_delivery", None): 42, ("energy_mj_per_delivery", "sensors"): 3}
    [cost] = [cost for cost in costs_of([table]) if cost.of is None]
    assert cost.title == "servers' processor time per delivery (µs)" and cost.mean("b") is None
