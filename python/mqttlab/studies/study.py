"""What every study offers, so that one command can rerun any of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mqttlab.recording import Recording
from mqttlab.studies.table import Cell, Comparison


class Case(Protocol):
    """One scenario of a study."""

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        ...

    def scenario(self, effort: Any) -> dict[str, Any]:
        """As a scenario file's values; ``effort`` is one of the study's own two."""
        ...


@dataclass(frozen=True, kw_only=True)
class Study:
    """A published experiment.

    The directory that its functions take is where its published values are: :attr:`published`.
    """

    title: str
    """Who published what, and when."""
    directory: Path
    """Its package, which has its data."""
    thorough: Any
    """How long to simulate, in the study's own words."""
    quick: Any
    """The same for seconds instead of minutes, at the price of accuracy."""
    cases: Callable[[Path, Sequence[str]], Sequence[Case]]
    """The scenarios behind these tables; without tables, behind all of them and the claims."""
    measure: Callable[[Recording], Any]
    """What is kept of a recording."""
    compare: Callable[[Path, Mapping[str, Any]], Sequence[Cell]]
    """Published and simulated values, of those scenarios that have a result."""
    claims: Callable[[Path, Mapping[str, Any]], Sequence[Comparison]]
    """Every claim with its verdict, when every scenario has a result."""

    @property
    def name(self) -> str:
        """As the command line has it."""
        return self.directory.name

    @property
    def published(self) -> Path:
        """Where the printed values and ``claims.toml`` are."""
        return self.directory / "published"
