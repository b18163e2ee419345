"""Instructions of the engine for a frame and for a message: a change may not make them more without a word.

Instructions depend on neither the machine's speed nor on what else it does. The cost of one more frame is the
difference of a longer and a shorter simulation, which leaves out what a simulation costs once.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mqttlab.engine import engine_path
from mqttlab.runs import Job
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

# Compilers differ by some per cent in what they make of the same source.
MORE_MOST = 1.1


def counted(directory: Path, seconds: int, qos: int, detail: str) -> dict[str, int]:
    """Instructions, frames on links and messages of a simulation of 20 clients on Ethernet, a message a second each."""
    cable = {"rate": "100 Mbit/s", "delay": "1 ms", "overhead": "38 B"}
    values: dict[str, Any] = {
        "name": "counted", "backend": "sim", "phases": {"duration": f"{seconds} s", "cool_down": "1 s"},
        "hosts": {"clients": {"count": 20}},
        "networks": [{"between": ["clients", "broker"], "link": "each", "up": cable, "down": cable}],
        "groups": [{"name": "both", "host": "clients", "count": 20,
                    "publish": {"topic": "t/{client}", "qos": qos, "payload": "64 B", "rate": "10 /s"},
                    "subscribe": [{"filter": "t/{client}", "qos": qos}]}],
        "recording": {"detail": detail},
    }
    job = Job(compile_plan(parse_values(values)), directory)
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", engine_path(), *job.arguments],
        input=job.text, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found is not None, done.stderr[-2000:]
    run = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    return {"instructions": int(found[1]), "frames": sum(link["frames"] for link in run["links"]),
            "messages": sum(run["messages"].values())}


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
@pytest.mark.parametrize(("qos", "detail", "per", "known"), [
    (0, "full", "frames", 29_800), (2, "full", "frames", 22_800), (1, "messages", "messages", 70_800),
])
def test_instructions_do_not_grow(tmp_path: Path, qos: int, detail: str, per: str, known: int) -> None:
    short, long = (counted(tmp_path / str(seconds), seconds, qos, detail) for seconds in (2, 6))
    more = long[per] - short[per]
    assert more > 500, "too few to count"
    each = (long["instructions"] - short["instructions"]) / more
    assert each < MORE_MOST * known, f"{each:.0f} instructions for one of the {per}, which took {known}"
