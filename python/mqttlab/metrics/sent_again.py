"""What senders sent again, and what for, as the engine judged it from what had arrived when."""

from __future__ import annotations

import polars as pl

from mqttlab.recording import Recording

NOTHING = {"frame": pl.Int64, "sent_again": pl.String}


def sent_again(recording: Recording) -> pl.DataFrame:
    """The frames whose segments were sent again: ``frame``, and ``sent_again``, which is one of ``KINDS``."""
    table = recording.summary("sent_again")
    if table.is_empty():
        return pl.DataFrame(schema=NOTHING)
    return table.with_columns(pl.col("sent_again").cast(pl.String))
