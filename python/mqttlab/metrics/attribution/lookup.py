"""Looking a row up by time or position: the two ways in which everything here is found."""

from __future__ import annotations

import polars as pl


def latest(table: pl.DataFrame, among: pl.DataFrame, by: list[str], *, at: str, key: str, take: dict[str, str]
           ) -> pl.DataFrame:
    """Add to each row what the last row of ``among`` with ``key`` ≤ ``at`` says; null where there is none.

    Args:
        by: columns that must be equal.
        take: column of ``among`` → its name in the result.
    """
    return _look_up(table, among, by, at, key, take, "backward")


def next_at(table: pl.DataFrame, among: pl.DataFrame, by: list[str], *, at: str, key: str, take: dict[str, str]
            ) -> pl.DataFrame:
    """Add to each row what the first row of ``among`` with ``key`` ≥ ``at`` says; null where there is none."""
    return _look_up(table, among, by, at, key, take, "forward")


def _look_up(table: pl.DataFrame, among: pl.DataFrame, by: list[str], at: str, key: str, take: dict[str, str],
             strategy: str) -> pl.DataFrame:
    kinds = {name: among.schema[name] for name in by} | {key: pl.Int64()}
    right = among.filter(pl.col(key).is_not_null()).select(
        *(pl.col(name).alias(f"_by_{name}") for name in by),
        pl.col(key).cast(pl.Int64).alias("_key"),
        *(pl.col(old).alias(new) for old, new in take.items()),
    ).sort("_key", maintain_order=True)
    left = table.with_row_index("_row").with_columns(pl.col(at).cast(pl.Int64).alias("_moment"))
    known = left.filter(pl.col("_moment").is_not_null()).sort("_moment")
    known = known.select("_row", "_moment", *(pl.col(name).cast(kinds[name]).alias(f"_by_{name}") for name in by))
    found = known.join_asof(
        right, left_on="_moment", right_on="_key", by=[f"_by_{name}" for name in by],
        strategy="backward" if strategy == "backward" else "forward", check_sortedness=False,
    ).select("_row", *take.values())
    return left.drop("_moment", *take.values(), strict=False).join(
        found, on="_row", how="left", maintain_order="left").drop("_row")
