"""Real runs for tests: whether they are possible here, and some at once."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import polars as pl

from mqttlab.brokers import ADAPTERS
from mqttlab.engine import doctor
from mqttlab.experiments import load
from mqttlab.experiments.scenarios import write_scenarios
from mqttlab.recording import Recording
from mqttlab.runs import Job
from mqttlab.runs import perform as perform_job
from mqttlab.scenario import compile_plan, parse_values
from mqttlab.scenario.load import load as load_scenario


@functools.cache
def able() -> str | None:
    """Why real runs are impossible here, if they are."""
    capabilities = {c["name"]: c["available"] for c in doctor()["capabilities"]}
    if not capabilities["namespaces"] or not (capabilities["tun"] or capabilities["packet"]):
        return "network namespaces or devices cannot be made here; `mqttlab doctor` says why"
    return None if ADAPTERS["mosquitto"].found(None) else "mosquitto is not installed"


def early_ms(recording: Recording, links: int) -> float:
    """By how much a message that crosses so many links may come earlier than their delays say: the emulator hands each
    frame over earlier by what it then takes to get to its reader."""
    emulator = recording.run["details"].get("emulator", {})
    return float(links * emulator.get("latency_compensation_ns", 0) / 1e6)


def points(experiment: Path, directory: Path) -> dict[str, Path]:
    """Scenario files of an experiment's points, by name."""
    return {path.stem: path for path in write_scenarios(load(experiment), directory)}


def perform(directory: Path, scenarios: list[Path], **settings: str) -> list[Recording]:
    """Run scenarios side by side, with these fields replaced (``phases__duration="5 s"``)."""
    replaced = {name.replace("__", "."): value for name, value in settings.items()}

    def run(number: int, scenario: Path) -> Recording:
        outcome = perform_job(Job(compile_plan(load_scenario(scenario, replaced)), directory / str(number)),
                              lambda event: None)
        assert outcome.verdict == "complete", (scenario, outcome.reason)
        return Recording.open(outcome.directory)

    with ThreadPoolExecutor(len(scenarios)) as pool:
        return list(pool.map(run, range(len(scenarios)), scenarios))


def in_both(scenarios: Mapping[str, dict[str, Any]], directory: Path, at_once: int) -> dict[str, dict[str, Recording]]:
    """Every scenario in both backends: recordings by name, then by backend; so many live runs side by side."""

    def run(name: str, backend: str) -> Recording:
        where = directory / backend / name.replace(" ", "-")
        plan = compile_plan(parse_values({**scenarios[name], "backend": backend}))
        outcome = perform_job(Job(plan, where), lambda event: None)
        assert outcome.verdict == "complete", (name, outcome.reason)
        return Recording.open(where)

    with ThreadPoolExecutor(at_once) as pool:
        live = dict(zip(scenarios, pool.map(lambda name: run(name, "live"), scenarios), strict=True))
    return {name: {"live": live[name], "sim": run(name, "sim")} for name in scenarios}


def valid(recording: Recording) -> bool:
    """Whether emulator and senders kept their time."""
    return bool((recording.run.get("validity") or {}).get("valid", True))


def assert_undivided(table: pl.DataFrame) -> None:
    """Every row of an attribution has a part that nobody divides; none only where clocks disagree.

    A client that was held up between sending and looking at its clock seems to have sent late, which is adjusted."""
    assert table.filter(undivided_ns=0, adjusted_ns=0).is_empty()
    assert table["undivided_ns"].median() > 0  # type: ignore[operator]
