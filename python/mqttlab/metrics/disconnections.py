"""Why clients' connections ended unplanned, and why they were refused: as clients were told, and as their evidence has
it in ``events``.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources

import polars as pl

from mqttlab.recording import Recording

# A client's note says why it did not come as far as to be refused.
KINDS = {"disconnect": "disconnected", "refused": "refused", "note": "not connected"}
COLUMNS = {"group": pl.String, "what": pl.String, "reason": pl.String, "count": pl.Int64, "clients": pl.Int64}
CODE = re.compile(r"code 0x([0-9a-f]{2})$")


@cache
def _known() -> tuple[dict[int, str], list[tuple[str, str]]]:
    """What codes and other reasons mean, as the engine's verdict says it (``crates/recording/src/why.rs``)."""
    table = json.loads(resources.files(__package__).joinpath("failures.json").read_text(encoding="utf-8"))
    return ({int(code, 16): name for code, (name, _) in table["codes"].items()},
            [(said, means) for said, means, _ in table["failures"]])


def disconnections(recording: Recording) -> pl.DataFrame:
    """One row for each group and reason, the most frequent first: ``group``, ``what`` (``disconnected``,
    ``refused`` or ``not connected``), ``reason``, ``count`` (times) and ``clients`` (how many different ones)."""
    events = recording.events
    if events.is_empty():
        return pl.DataFrame(schema=COLUMNS)
    kind = pl.col("kind").cast(pl.String)
    found = events.filter(kind.is_in(list(KINDS)), (kind != "note") | pl.col("client").is_not_null())
    if found.is_empty():
        return pl.DataFrame(schema=COLUMNS)
    groups = pl.DataFrame({"client": range(len(recording.layout["clients"])),
                           "group": [client["group"] for client in recording.layout["clients"]]},
                          schema={"client": pl.Int64, "group": pl.String})
    told = found.select(
        client=pl.col("client").cast(pl.Int64), what=kind.replace_strict(KINDS, return_dtype=pl.String),
        reason=pl.col("detail").cast(pl.String).fill_null("no reason was recorded"))
    counted = told.join(groups, on="client", how="left").group_by("group", "what", "reason").agg(
        count=pl.len().cast(pl.Int64), clients=pl.col("client").n_unique().cast(pl.Int64))
    reasons = {reason: in_words(reason) for reason in counted["reason"].unique()}
    return counted.with_columns(pl.col("reason").replace(reasons)).select(
        pl.col(name).cast(type_) for name, type_ in COLUMNS.items()).sort(
        ["count", "group", "what", "reason"], descending=[True, False, False, False], nulls_last=True)


def in_words(reason: str) -> str:
    """A reason with what its code means."""
    codes, others = _known()
    code = CODE.search(reason)
    if code:
        means = None if reason.startswith("SUBSCRIBE") else codes.get(int(code[1], 16))
    else:
        means = next((means for said, means in others if said in reason), None)
    return f"{reason} ({means})" if means else reason
