"""What a study claims, held against our runs."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from mqttlab.studies.table import Comparison

Results = TypeVar("Results")
Verdict = tuple[bool | None, str, str]
"""Whether a claim holds (``None``: not decided), the numbers that say so, and why it does not hold.

Without numbers it is not judged yet, and the third part says what it waits for.
"""
EVERY = ("*",)
SHOWN, OPEN = "shown: ", "cause undecided: "
"""How the reason of a refuted claim begins: it was shown by an experiment, or it is not known."""


def waits_for(what: str) -> Verdict:
    """A claim that is not judged yet."""
    return None, "", f"waits for {what}"


def shown(by: str) -> str:
    """Why a claim does not hold, where runs show it: counted in them, or one thing alone changed."""
    return f"{SHOWN}{by}"


def cause_open(why: str) -> str:
    """What is known of why a claim does not hold, where no run has shown it."""
    return f"{OPEN}{why}"


def in_words(values: Iterable[float], digits: int = 3) -> str:
    """Numbers as evidence shows them, a dash where there is none."""
    return " / ".join("–" if value != value else f"{value:.{digits}g}" for value in values)


def claims_of(directory: Path) -> list[dict[str, Any]]:
    """The claims of ``claims.toml`` in ``directory``: ``id``, ``text``, and ``cases``, patterns of what decides it."""
    found: list[dict[str, Any]] = tomllib.loads((directory / "claims.toml").read_text(encoding="utf-8"))["claim"]
    return found


def decides(claim: Mapping[str, Any], case: str) -> bool:
    """Whether a case is among those that decide a claim; all are, where it does not say."""
    return any(fnmatch.fnmatchcase(case, pattern) for pattern in claim.get("cases", EVERY))


def judged(directory: Path, results: Results,
           judges: Mapping[str, Callable[[Path, Results], Verdict]]) -> list[Comparison]:
    """Every claim of ``claims.toml`` in ``directory`` that has its results, with the numbers that decide it.

    ``judges`` decide by the claim's identifier; a claim that none of them knows is not judged yet. A claim whose cases
    were not run is left out.
    """
    found = []
    for claim in claims_of(directory):
        judge = judges.get(claim["id"])
        try:
            holds, evidence, reason = judge(directory, results) if judge else waits_for("a judge")
        except MissingResult:
            continue
        found.append(Comparison(claim=claim["id"], text=claim["text"], holds=holds, evidence=evidence,
                                reason="" if holds else reason))
    return found


class MissingResult(KeyError):
    """A judge asked for a case that was not run."""


class Ran(dict[str, Any]):
    """What was measured of the cases that were run, by name."""

    def __missing__(self, name: str) -> Any:
        raise MissingResult(name)
