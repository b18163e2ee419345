"""What the dashboard's bench looks at: ten thousand runs with their metrics in the catalog, and one large recording."""

from __future__ import annotations

import random
import shutil
import sqlite3
from pathlib import Path

from dashboards import simulate
from mqttlab.catalog import Catalog, url_for
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

RUNS = 10_000
SECONDS = 100
DONE = "made"


def many(place: Path) -> Path:
    """Ten thousand run directories with what a list of them reads, and a catalog that has metrics of each. One of them
    (``first``) is whole; the others have its plan and its metrics, each some per cent apart."""
    runs = place / "many"
    if (place / f"many.{DONE}").exists():
        return runs
    shutil.rmtree(runs, ignore_errors=True)
    first = simulate(runs, "first", qos=1, rate="10 /s")
    small = [(name, (first / name).read_bytes()) for name in ("plan.json", "run.json", "layout.json")]
    for number in range(RUNS):
        (runs / f"run-{number:05}").mkdir()
        for name, data in small:
            (runs / f"run-{number:05}" / name).write_bytes(data)
    with Catalog.open(url_for(runs)) as catalog:
        catalog.add(first)
    _copied(runs)
    (place / f"many.{DONE}").touch()
    return runs


def _copied(runs: Path) -> None:
    """The first run's rows in the catalog, again for each of the others."""
    dice = random.Random(1)
    with sqlite3.connect(runs / "catalog.db") as catalog:
        names = [row[1] for row in catalog.execute("PRAGMA table_info(run)")]
        first = dict(zip(names, catalog.execute("SELECT * FROM run").fetchone(), strict=True))
        values = catalog.execute("SELECT series_id, value FROM metric_value").fetchall()
        for number in range(RUNS):
            row = {**first, "id": first["id"] + 1 + number, "run_id": f"copy-{number:05}",
                   "directory": str(runs / f"run-{number:05}"), "seed": number}
            catalog.execute(f"INSERT INTO run VALUES ({', '.join('?' * len(row))})", [*row.values()])
            catalog.executemany("INSERT INTO metric_value (series_id, run_id, value) VALUES (?, ?, ?)", [
                (series, row["id"], value * dice.uniform(0.95, 1.05)) for series, value in values])


def large(place: Path, messages: int) -> tuple[Path, str]:
    """The directory of a run of many messages, and what it has in words."""
    runs = place / f"large-{messages}"
    if not (runs / "big" / "run.json").exists():
        shutil.rmtree(runs, ignore_errors=True)
        link = {"rate": "1 Gbit/s", "delay": "1 ms"}
        values = {
            "name": "big", "backend": "sim", "phases": {"duration": f"{SECONDS} s", "cool_down": "10 s"},
            "networks": [{"between": ["a", "broker"], "up": link, "down": link}],
            "groups": [{"name": "p", "host": "a", "count": 100, "publish": {
                            "topic": "t/{client}", "payload": "100 B", "rate": f"{messages // SECONDS // 100} /s"}},
                       {"name": "s", "host": "a", "count": 100, "subscribe": ["t/{client}"]}]}
        outcome = perform(Job(compile_plan(parse_values(values)), runs / "big"), lambda line: None)
        assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(runs / "big")
    return runs, f"a run of {recording.rows('messages'):,} messages and {recording.rows('packets'):,} frames"
