"""A server that is a program cannot be simulated: a run says which model is in its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqttlab.recording import Recording
from mqttlab.report.text import verdict
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

PROGRAM: dict[str, Any] = {"kind": "program", "program": {"command": ["own-broker", "{address}", "{port}"]}}


@pytest.mark.parametrize(("broker", "servers", "words"), [
    (PROGRAM, [], {"broker": "Mosquitto"}),
    ({}, [{"name": "front", "role": "proxy", "host": "edge", "passes_to": "broker", **PROGRAM}], {"front": "proxy"}),
    ({}, [], {}),
], ids=["broker", "proxy", "mosquitto"])
def test_a_simulation_says_whose_model_is_in_a_programs_place(
    broker: dict[str, Any], servers: list[dict[str, Any]], words: dict[str, str], tmp_path: Path,
) -> None:
    hosts = ["edge"] if servers else ["field"]
    plan = compile_plan(parse_values({
        "name": "own", "backend": "sim", "phases": {"duration": "2 s"}, "broker": broker, "servers": servers,
        "networks": [{"between": [hosts[0], "broker"], "up": {"delay": "1 ms"}, "down": {"delay": "1 ms"}}],
        "groups": [{"name": "meter", "host": hosts[0], "connects_to": servers[0]["name"] if servers else "broker",
                    "publish": {"topic": "m", "qos": 1, "payload": "50 B", "rate": "2 /s"}},
                   {"name": "sink", "host": "broker", "connects_to": "broker", "subscribe": ["m"]}]}))
    outcome = perform(Job(plan, tmp_path / "run"), lambda event: None)
    assert outcome.verdict == "complete", outcome.reason
    said = [line for line in verdict(Recording.open(tmp_path / "run"))[1] if "is a program" in line]
    assert len(said) == len(words)
    for line, (name, model) in zip(said, words.items(), strict=True):
        assert f"`{name}` is a program" in line and f" {model} " in line, line
        assert line.endswith("is not known")
