"""The plan's type is declared once, in the engine: Python's types and the schemas for editors follow it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from commands import mqttlab
from json_schema import mistakes
from mqttlab.engine import engine_path
from mqttlab.plan import read_plan
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import load
from mqttlab.scenario.schema import scenario_schema

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = sorted((ROOT / "scenarios").rglob("*.toml"))


@pytest.fixture(scope="module")
def plan_schema() -> dict[str, Any]:
    printed = subprocess.run([engine_path(), "schema"], capture_output=True, text=True, check=True, timeout=60).stdout
    schema = json.loads(printed)
    assert isinstance(schema, dict)
    return schema


def test_the_plan_s_types_are_those_that_the_engine_declares() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "plan-types", "--check"], timeout=60, check=False)
    assert done.returncode == 0, "run scripts/plan-types"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_what_scenarios_become_fits_the_plan_s_schema(path: Path, plan_schema: dict[str, Any]) -> None:
    plan = compile_plan(load(path))
    assert mistakes(json.loads(json.dumps(plan)), plan_schema) == []


def test_the_plan_s_schema_refuses_what_the_engine_refuses(plan_schema: dict[str, Any]) -> None:
    plan = json.loads(json.dumps(compile_plan(load(ROOT / "scenarios" / "demo.toml"))))
    plan["servers"][0]["when_it_dies"] = "panic"
    plan["groups"][0]["tcp_nodelay"] = True
    del plan["network"]["mtu_bytes"]
    found = mistakes(plan, plan_schema)
    assert len(found) == 3
    assert any("when_it_dies" in line for line in found) and any("tcp_nodelay is unknown" in line for line in found)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_schema_for_editors_accepts_every_scenario_of_the_project(path: Path) -> None:
    assert mistakes(tomllib.loads(path.read_text(encoding="utf-8")), scenario_schema()) == []


EXPERIMENTS = sorted(path for path in (ROOT / "experiments").rglob("*.toml")
                     if "scenario" in tomllib.loads(path.read_text(encoding="utf-8")))


def test_the_schema_of_experiments_accepts_every_experiment_of_the_project_and_refuses_mistakes() -> None:
    schema = json.loads(mqttlab("schema", "experiment").stdout)
    assert len(EXPERIMENTS) > 10
    for path in EXPERIMENTS:
        assert mistakes(tomllib.loads(path.read_text(encoding="utf-8")), schema) == [], path
    wrong = {"name": "x", "scenario": "x.toml", "design": "complete", "repetitions": "often", "factor": []}
    found = mistakes(wrong, schema)
    assert {line.split(":")[0] for line in found} == {"$", "$.design", "$.repetitions"}


def test_the_schema_for_editors_refuses_unknown_fields_and_wrong_kinds() -> None:
    wrong = {
        "name": "x", "phases": {"duration": "1 s"}, "colour": "blue",
        "groups": [{"name": "p", "host": "h", "count": "many", "publish": {"topic": "t", "payload": 200}}],
    }
    found = mistakes(wrong, scenario_schema())
    assert [line.split(":")[0] for line in found] == ["$", "$.groups[0].count", "$.groups[0].publish"]
    assert "payload" in found[2]


@pytest.mark.parametrize("name", ["live", "simulated", "killed"])
def test_a_plan_of_the_first_schema_is_read_as_one_with_servers(name: str) -> None:
    stored = json.loads((ROOT / "tests" / "schemas" / "1" / name / "plan.json").read_text(encoding="utf-8"))
    plan = read_plan(stored)
    assert "broker" not in plan and "directory" not in plan
    [server] = plan["servers"]
    assert server["endpoints"][0]["port"] == stored["broker"]["port"]
    assert server["role"]["broker"]["settings"] == stored["broker"]["settings"]
    for group, before in zip(plan["groups"], stored["groups"], strict=True):
        assert group["protocol"]["mqtt"] == before["mqtt"] and group["connects_to"] == 0
        assert group["transport"]["tcp"]["nodelay"] == before["tcp_nodelay"]
    assert read_plan(plan) == plan, "what is of the latest schema stays as it is"
