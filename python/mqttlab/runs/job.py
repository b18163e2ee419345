"""A job: one run that is to be made.

The plan says what is run and nothing of where; the same plan in another directory leaves the same recording. The
identifier names the job from before it is begun, for whoever queues, watches or cancels it.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqttlab import secrets

if TYPE_CHECKING:
    from mqttlab.plan import Plan

# Crockford's base 32: no I, L, O or U.
LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid() -> str:
    """A new identifier: 48 bits of milliseconds since 1970, then 80 random bits, as 26 letters that sort by time."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10), "big")
    return "".join(LETTERS[value >> shift & 31] for shift in range(125, -1, -5))


@dataclass(frozen=True)
class Job:
    """One run to be made: what, where, and under which name."""

    plan: Plan
    """As :func:`mqttlab.scenario.compile_plan` makes it."""
    directory: Path
    """Where the recording will be written."""
    identifier: str = field(default_factory=ulid)
    """A ULID."""
    origin: dict[str, Any] | None = field(default=None, compare=False)
    """What it was made from, kept as ``origin.json`` beside the plan: ``scenario`` with ``toml`` and ``settings``."""

    secrets: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Values of marks in the plan that another process has told; this one's own are known besides."""

    part: tuple[str, ...] = field(default=(), compare=False)
    """What the engine is told of its part, where several share the run: :func:`leading` or :func:`following`."""

    @property
    def parts(self) -> int:
        """How many engines share the run."""
        return self.plan["live"].get("parts", 1) if self.plan["backend"] == "live" else 1

    @property
    def text(self) -> str:
        """The plan, without secrets."""
        return json.dumps(self.plan)

    @property
    def known_secrets(self) -> dict[str, str]:
        """The values of the marks in the plan, as far as they are known."""
        return secrets.values_in(self.text) | self.secrets

    @property
    def input(self) -> str:
        """What the engine reads on its standard input, which nobody else sees: the plan, and its secrets behind it."""
        text = self.text
        found = secrets.values_in(text) | self.secrets
        return f"{text}\n{json.dumps(found)}" if found else text

    @property
    def arguments(self) -> list[str]:
        """What the engine's program is called with."""
        return ["run", "--directory", str(self.directory), "--identifier", self.identifier, *self.part]


def leading(job: Job, address: str) -> Job:
    """Part 0 of a job that several engines share: the others come to this address; port 0 is any that is free."""
    return replace(job, part=("--lead-at", address))


def following(job: Job, number: int, lead: str, directory: Path) -> Job:
    """Another part, which leaves its rows to part 0, and nothing in its directory unless that is gone."""
    part = ("--part", str(number), "--lead", lead)
    return replace(job, directory=directory, origin=None, part=part)
