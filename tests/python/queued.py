"""Runs for the queue's tests, and what is kept of them: the queue's process loads this module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mqttlab.recording import Recording
from mqttlab.runs import Job, Outcome
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

SCENARIO = {
    "name": "waits", "backend": "sim", "network": "direct", "phases": {"duration": "1 s", "cool_down": "1 s"},
    "groups": [{"name": "p", "host": "a", "publish": {"topic": "t", "payload": "20 B", "rate": "10 /s"}},
               {"name": "s", "host": "b", "subscribe": ["t"]}],
}


def job(directory: Path, duration: str = "1 s", **more: Any) -> Job:
    values = SCENARIO | {"phases": {"duration": duration, "cool_down": "1 s"}} | more
    return Job(compile_plan(parse_values(values)), directory.absolute())


def messages(_job: Job, outcome: Outcome) -> tuple[str, int]:
    return outcome.verdict, Recording.open(outcome.directory).messages.height
