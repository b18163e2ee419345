"""What a scenario needs of this machine before it can be run."""

from __future__ import annotations

import shutil
from pathlib import Path

from mqttlab import secrets
from mqttlab.brokers import ADAPTERS
from mqttlab.scenario.estimate import estimate
from mqttlab.scenario.load import ScenarioError
from mqttlab.scenario.model import Scenario
from mqttlab.scenario.secret_places import secrets_of
from mqttlab.scenario.wording import Source


def need_servers(scenario: Scenario) -> None:
    """Refuse a live run whose servers are not installed.

    Raises:
        ScenarioError: one is not.
    """
    problems = []
    for where, server in scenario.all_servers:
        if scenario.backend == "sim" or server.kind == "external" or ADAPTERS[server.kind].found(server) is not None:
            continue
        words = where[0] if len(where) == 1 else f"{where[0]}[{where[1]}]"
        if server.program is not None:
            problems.append(f"`{words}.program.command` is {server.program.command[0]!r}, which is not installed")
        else:
            problems.append(f"`{words}.kind` is {server.kind!r}, but {server.kind} is not installed; run `make setup`, "
                            f"or install it (Debian: apt-get install {server.kind})")
    if problems:
        raise ScenarioError(problems)


def need_secrets(scenario: Scenario, source: Source | None = None) -> None:
    """Refuse a run whose secrets are not all known.

    Args:
        scenario: as loaded.
        source: what it was loaded from, for the lines of problems.

    Raises:
        ScenarioError: a variable is not set, a file cannot be read, or a secret was taken out.
    """
    if not secrets.any_is_absent():
        return
    at = (source or Source("scenario", "", ())).at
    missing = [(place, secrets.why_absent(mark)) for place, mark in secrets_of(scenario)]
    problems = [at(place) + why for place, why in missing if why is not None]
    if problems:
        raise ScenarioError(problems)


def room(scenario: Scenario, runs: Path) -> tuple[float, int]:
    """Bytes that a scenario's recordings would take, by estimate, and how many the disk of ``runs`` has free."""
    # The directory is made later, on the disk of the nearest one that is there.
    there = next(place for place in (runs.absolute(), *runs.absolute().parents) if place.exists())
    return estimate(scenario).recording_bytes * scenario.repetitions, shutil.disk_usage(there).free
