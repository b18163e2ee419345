"""What is said of runs and messages: fates, validity, exit statuses."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from mqttlab.runs import EngineError, Outcome


def test_a_study_takes_no_simulation_that_ended_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(plan: dict[str, Any], *others: object) -> Outcome:
        return Outcome(verdict="incomplete", reason="killed by SIGKILL", directory=tmp_path)

    simulations = importlib.import_module("mqttlab.studies.simulate")
    monkeypatch.setattr(simulations, "perform", interrupted)
    values = {
        "name": "t", "phases": {"duration": "1 s"}, "networks": [{"between": ["field", "broker"], "up": {}}],
        "groups": [{"name": "p", "host": "field", "count": 1,
                    "publish": {"topic": "t", "qos": 0, "payload": "100 B", "rate": "1 /s"}}],
    }
    with pytest.raises(EngineError, match="killed by SIGKILL"):
        simulations.simulate({"half": values}, lambda recording: "half a recording", jobs=1)
