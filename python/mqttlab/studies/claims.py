"""What a study claims, held against the simulations."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from mqttlab.studies.table import Comparison

Results = TypeVar("Results")
Verdict = tuple[bool | None, str, str]
"""Whether a claim holds (``None``: not decided), the numbers that say so, and why it does not hold."""


def claims_of(directory: Path) -> list[dict[str, str]]:
    """The claims of ``claims.toml`` in ``directory``: ``id`` and ``text`` of each."""
    found: list[dict[str, str]] = tomllib.loads((directory / "claims.toml").read_text(encoding="utf-8"))["claim"]
    return found


def judged(directory: Path, results: Results,
           judges: Mapping[str, Callable[[Path, Results], Verdict]]) -> list[Comparison]:
    """Every claim of ``claims.toml`` in ``directory`` with the numbers that decide it; a reason where it does not hold.

    ``judges`` decide by the claim's identifier; a claim that none of them knows is not decided.
    """
    found = []
    for claim in claims_of(directory):
        judge = judges.get(claim["id"])
        holds, evidence, reason = judge(directory, results) if judge else (None, "", "nothing here decides it")
        found.append(Comparison(claim=claim["id"], text=claim["text"], holds=holds, evidence=evidence,
                                reason="" if holds else reason))
    return found
