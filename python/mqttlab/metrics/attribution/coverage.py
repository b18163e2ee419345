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
    by_clients: int = 0
    """Of those that are: how many by what clients know, all of it or a part, because frames were not recorded."""

    @property
    def complete(self) -> bool:
        """Whether all are attributed."""
        return self.attributed == self.delivered

    def table(self) -> pl.DataFrame:
        """One row for what is attributed, one for what of that only clients tell, one for each reason.

        Columns: ``what``, ``deliveries``.
        """
        by_clients = {"attributed by what clients know": self.by_clients} if self.by_clients else {}
        rows = {"delivered": self.delivered, "attributed": self.attributed, **by_clients, **self.reasons}
        return pl.DataFrame({"what": list(rows), "deliveries": list(rows.values())})
