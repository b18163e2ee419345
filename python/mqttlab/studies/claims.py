"""What a study claims, held against our runs."""

from __future__ import annotations

import fnmatch
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from mqttlab.studies.table import AsPrinted, Comparison

Results = TypeVar("Results")
Verdict = tuple[bool | None, str, str]
"""Whether a claim's rule is met (``None``: the numbers do not decide), the numbers that say so, and why it is not met.

Without numbers it is not judged yet, and the third part says what it waits for.
"""
EVERY = ("*",)
SHOWN, ASSUMED, OPEN = "shown: ", "assumed: ", "not known: "
"""How a part of a reason begins: one thing was changed and the effect followed; nothing was; no cause is named."""


TOO_SHORT = "too short: the whole pass decides it"


def waits_for(what: str) -> Verdict:
    """A claim that is not judged yet."""
    return None, "", f"waits for {what}"


def shown(by: str, *, follows: bool) -> str:
    """Why a rule is not met, where one thing was changed alone to see.

    Args:
        by: what was changed, and what came of it.
        follows: whether the effect followed, worked out from the runs' numbers. Where it did not, it is an assumption.
    """
    return f"{SHOWN if follows else ASSUMED}{by}"


def assumed(why: str) -> str:
    """Why a rule may not be met: no run turned this cause."""
    return f"{ASSUMED}{why}"


def by_assumption(evidence: str, why: str) -> Verdict:
    """A claim that our model could not fail: undecided, with the assumption."""
    return None, evidence, f"by assumption: {why}"


def cause_open(what: str = "no run shows the cause") -> str:
    """What of the reason nobody knows."""
    return f"{OPEN}{what}"


def reasons(*parts: str) -> str:
    """Several parts of a reason, each on a line of its own."""
    return "\n".join(part for part in parts if part)


def in_words(values: Iterable[float], digits: int = 3) -> str:
    """Numbers as evidence shows them, a dash where there is none."""
    return " / ".join(plain(value, digits) for value in values)


def plain(value: float, digits: int = 3) -> str:
    """A number with so many digits and no power of ten: 2.6e+03 reads 2600; a dash where there is none.

    A published value has the digits that are printed.
    """
    if isinstance(value, AsPrinted):
        return value.digits
    if value != value or abs(value) == float("inf"):
        return "–" if value != value else "∞"
    words = f"{value:.{digits}g}"
    return f"{float(words):.0f}" if "e+" in words else words


def claims_of(directory: Path) -> list[dict[str, Any]]:
    """The claims of ``claims.toml`` in ``directory``.

    Of each ``id``, ``text``, ``cases`` (patterns of what decides it), ``rule`` (when it counts as held), ``written``
    (whether the rule was written before or after its numbers were looked at), and ``otherwise``, the verdict where the
    rule is not met. That is *refuted* only where the study's own conditions are run, or its own records count.
    ``short_pass`` is true where a shortened pass decides it, too, as it did with two sets of seeds.
    """
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
                                reason="" if holds else reason, rule=claim["rule"],
                                written=claim.get("written", "after"), otherwise=claim["otherwise"]))
    return found


def of_short_pass(directory: Path, judged: Iterable[Comparison], shortened: Iterable[str]) -> list[Comparison]:
    """Verdicts of a shortened pass: undecided, where only the whole pass decides.

    Args:
        directory: where ``claims.toml`` is.
        judged: the verdicts by the numbers of the shortened pass.
        shortened: the names of the cases that it has shortened; the others are those of the whole pass.
    """
    cases = set(shortened)
    needs_whole = {claim["id"] for claim in claims_of(directory)
                   if not claim.get("short_pass", False) and any(decides(claim, case) for case in cases)}
    return [replace(claim, holds=None, reason=TOO_SHORT) if claim.claim in needs_whole and claim.evidence else claim
            for claim in judged]


class MissingResult(KeyError):
    """A judge asked for a case that was not run."""


class Ran(dict[str, Any]):
    """What was measured of the cases that were run, by name."""

    def __missing__(self, name: str) -> Any:
        raise MissingResult(name)
