"""Commands that are killed leave nothing but results: a share of ``benches/hostile/kills.py``."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kills", ROOT / "benches" / "hostile" / "kills.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["kills"] = module
    spec.loader.exec_module(module)
    return module


kills = load()
COMMANDS = {command.name: command for command in kills.COMMANDS}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> object:
    return kills.Place(tmp_path_factory.mktemp("kills"))


@pytest.mark.live
@pytest.mark.parametrize("name", ["run live", "run simulated", "run that waits", "report", "export"])
def test_a_command_that_is_killed_leaves_nothing_but_its_result(place: object, name: str) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    outcome = kills.Outcome(name)
    kills.kill(COMMANDS[name], place, random.Random(seed).uniform(0.1, 1.5), outcome)
    assert (outcome.kills, outcome.faults) == (1, [])


@pytest.mark.live
@pytest.mark.parametrize("name", [name for name in COMMANDS if name.startswith("run live, ")])
def test_a_run_that_is_killed_within_an_event_leaves_nothing(place: object, name: str) -> None:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    outcome = kills.Outcome(name)
    # It starts within a second here, and the event lasts as long as it measures; a slow machine is killed before.
    kills.kill(COMMANDS[name], place, random.Random(seed).uniform(1.5, 3), outcome)
    assert (outcome.kills, outcome.faults) == (1, [])


def test_what_is_left_is_seen(tmp_path: Path) -> None:
    place = kills.Place(tmp_path / "place")
    (place.path / "made" / "small-1").mkdir(parents=True)
    (place.path / "made" / "small-1" / "plan.json").touch()
    assert kills.left_files(place) == []
    (place.runs / "waiting").mkdir()
    (place.temporary / "mqttlab-derived-x").mkdir()
    (place.path / ".page.html.abc.unfinished").touch()
    (place.temporary / f"mqttlab-{os.getuid()}").mkdir(exist_ok=True)
    assert kills.left_files(place) == [".page.html.abc.unfinished", "runs/waiting", "tmp/mqttlab-derived-x"]
