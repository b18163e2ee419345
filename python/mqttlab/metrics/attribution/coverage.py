"""Of how many messages it is known where their time went."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Coverage:
    """Of how many messages it is known where their time went."""

    delivered: int
    attributed: int
    reasons: dict[str, int]
    """Of the others: why it is not, and of how many."""

    @property
    def complete(self) -> bool:
        """Whether all are attributed."""
        return self.attributed == self.delivered

    def table(self) -> pl.DataFrame:
        """One row for what is attributed and one for each reason: ``what``, ``deliveries``."""
        rows = {"delivered": self.delivered, "attributed": self.attributed, **self.reasons}
        return pl.DataFrame({"what": list(rows), "deliveries": list(rows.values())})
