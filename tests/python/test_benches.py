"""How benches put two checkouts beside each other, whose tables need not have the same columns."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

BENCHES = Path(__file__).resolve().parents[2] / "benches"
THEN = """
| pairs | QoS | tool | delivered | CPU s per 100 000 |
|---|---|---|---|---|
| 1 | 0 | mqttlab | 100.0% | 0.058 |
"""
NOW = """
| transport | pairs | QoS | tool | delivered | CPU s per 100 000 |
|---|---|---|---|---|---|
| tcp | 1 | 0 | mqttlab | 100.0% | 0.029 |
| websocket | 1 | 0 | mqttlab | 100.0% | 0.040 |
"""


def bench(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A bench's program as a module; the ones beside it are found as when it is run."""
    path = BENCHES / f"{name}.py"
    monkeypatch.syspath_prepend(str(path.parent))
    monkeypatch.delitem(sys.modules, "run", raising=False)
    spec = importlib.util.spec_from_file_location(f"bench_{path.parent.name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    monkeypatch.delitem(sys.modules, "run", raising=False)
    return module


def test_a_case_of_then_is_found_again_where_a_column_came_since(monkeypatch: pytest.MonkeyPatch) -> None:
    against = bench("against/run", monkeypatch)
    before, now = defaultdict(list), defaultdict(list)
    against.read("load", THEN, before)
    against.read("load", NOW, now)
    assert against.table(before, now).splitlines()[2:] == [
        "| load | tcp, 1, 0, mqttlab | delivered | 100 | 100 | 1.00 |",
        "| load | tcp, 1, 0, mqttlab | CPU s per 100 000 | 0.058 | 0.029 | 0.50 |"]


def test_the_table_says_what_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    table = bench("commands/table", monkeypatch)
    measured = {"failed": False, "rounds": 1, "load": 1.0}
    results = {
        "`check`": {"now": {"cpu_s": 0.15, "mib": 30, **measured}},
        "`list`": {"now": {"cpu_s": 0.16, "mib": 30, **measured}},
        "`report` on 5 M packets": {"now": {"cpu_s": 5, "mib": 478, **measured}},
        "`compare` of two, same": {"now": {"cpu_s": 1, "mib": 100, **measured, "failed": True}},
        "the engine's import of 51 MB": {"now": {"cpu_s": 0.3, "mib": 100, **measured}},
        "tshark, 51 MB": {"now": {"cpu_s": 9.0, "mib": 300, **measured}},
        "load 1→1 at QoS 0, 100,000 messages": {"now": {"cpu_s": 0.3, "mib": 100, **measured}},
        "mqttwrk, QoS 0": {"now": {"cpu_s": 1.0, "mib": 0, **measured}},
    }
    rows = {row.name: table.reached(row, results) for row in table.ROWS}
    assert [name for name, said in rows.items() if said == "yes"] == ["`check`", "the engine's import of 51 MB"]
    assert {name for name, said in rows.items() if said == "no"} == {
        "`list`", "`report` on 5 M packets", "`compare` of two, same", "load 1→1 at QoS 0, 100,000 messages"}


def test_the_page_has_the_table_of_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    table = bench("commands/table", monkeypatch)
    results = json.loads(table.RESULTS.read_text(encoding="utf-8"))
    assert table.table(results) in table.PAGE.read_text(encoding="utf-8")


def advised(latencies: dict[str, list[float]], kilobytes: dict[str, float], undelivered: float = 0.0) -> pl.DataFrame:
    return pl.DataFrame([
        {"state": "done", "kind": "run", "transport": way, "block": block, "metric": metric, "value": value}
        for way, values in latencies.items() for block, latency in enumerate(values) for metric, value in (
            ("latency_ms_p50", latency), ("undelivered_percent", undelivered if way == "tcp" else 0.0),
            ("ip_kb_per_device_hour_up", kilobytes[way]), ("ip_kb_per_device_hour_down", 10.0))])


@pytest.mark.parametrize(("tcp", "kilobytes", "undelivered", "against"), [
    ([301.42, 301.43, 301.42], 100.0, 0.0, ["tcp"]), ([301.41, 301.41, 301.41], 170.0, 0.0, []),
    ([330.0, 331.0, 329.0], 100.0, 0.0, []), ([280.0, 310.0, 330.0], 100.0, 0.0, []),
    ([301.42, 301.43, 301.42], 100.0, 3.0, []), ([301.42], 100.0, 0.0, []),
])
def test_the_judge_of_advice_objects_to_the_dearer_of_two_that_are_equivalent(
    tcp: list[float], kilobytes: float, undelivered: float, against: list[str], monkeypatch: pytest.MonkeyPatch,
) -> None:
    judge = bench("advice/run", monkeypatch)
    table = advised({"tls": [301.41, 301.41, 301.41], "tcp": tcp}, {"tls": 172.0, "tcp": kilobytes}, undelivered)
    assert judge.judged(table, "transport", "tls") == against


def test_two_hundred_experiments_by_chance_have_no_advice_against_an_equivalent_cheaper_choice() -> None:
    lines = (BENCHES / "advice" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert sorted(row["number"] for row in rows) == list(range(1, 201))
    assert not [row["number"] for row in rows if row["against"]]
