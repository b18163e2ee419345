"""Looking rows up: by equal keys, by the last time before, by the first position behind.

Each of them adds columns to a table and leaves its rows as they are.
"""

from __future__ import annotations

import polars as pl


def beside(table: pl.DataFrame, among: pl.DataFrame, on: dict[str, str]) -> pl.DataFrame:
    """Add what the one row of ``among`` with the same key says; null where there is none.

    Args:
        on: column of ``table`` → the column of ``among`` that it must be equal to.
    """
    kinds = [pl.col(name).cast(among.schema[other]) for name, other in on.items()]
    # Only the key is joined: the table is wide, and its rows stay where they are.
    found = table.select(kinds).join(among, left_on=list(on), right_on=list(on.values()), how="left",
                                     maintain_order="left")
    return table.with_columns(found.select(name for name in among.columns if name not in on.values()))


def latest(table: pl.DataFrame, among: pl.DataFrame, by: list[str], *, at: str, key: str, take: dict[str, str]
           ) -> pl.DataFrame:
    """Add to each row what the last row of ``among`` with ``key`` ≤ ``at`` says; null where there is none.

    Args:
        by: columns that must be equal.
        take: column of ``among`` → its name in the result.
    """
    return _look_up(table, among, by, at, key, take, backward=True)


def next_at(table: pl.DataFrame, among: pl.DataFrame, by: list[str], *, at: str, key: str, take: dict[str, str]
            ) -> pl.DataFrame:
    """Add to each row what the first row of ``among`` with ``key`` ≥ ``at`` says; null where there is none."""
    return _look_up(table, among, by, at, key, take, backward=False)


def _look_up(table: pl.DataFrame, among: pl.DataFrame, by: list[str], at: str, key: str, take: dict[str, str],
             *, backward: bool) -> pl.DataFrame:
    kinds = {name: among.schema[name] for name in by}
    right = among.filter(pl.col(key).is_not_null()).select(
        *(pl.col(name).alias(f"_by_{name}") for name in by),
        pl.col(key).cast(pl.Int64).alias("_key"),
        *(pl.col(old).alias(new) for old, new in take.items()),
    ).sort("_key", maintain_order=True)
    # A row that has nothing to be looked up by stands where it finds nothing.
    nowhere = pl.Int64.min() if backward else pl.Int64.max()
    left = table.select(
        *(pl.col(name).cast(kinds[name]).alias(f"_by_{name}") for name in by),
        pl.col(at).cast(pl.Int64).fill_null(nowhere).alias("_moment"),
    ).with_row_index("_row").sort("_moment")
    found = left.join_asof(
        right, left_on="_moment", right_on="_key", by=[f"_by_{name}" for name in by],
        strategy="backward" if backward else "forward", check_sortedness=False,
    )
    return table.with_columns(found.sort("_row").select(take.values()))
