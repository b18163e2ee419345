"""A host's limits, and clients that come and go, in words: for `check`, and for the headline's sentence.

Apart from the fields that a scenario has for them: who tells a plan needs no reader of scenarios.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqttlab.digits import plain


def words_of_limits(planned: Mapping[str, Any]) -> str:
    """What a host has, as a plan says it."""
    told = []
    if planned["processor"] is not None:
        told.append(f"{plain(100 * planned['processor'][0] / planned['processor'][1])} % of a processor")
    if planned["memory_bytes"] is not None:
        told.append(f"{plain(planned['memory_bytes'] / 10**6)} MB of memory")
    if planned["disk_bytes_s"] is not None:
        told.append(f"a disk that takes {plain(planned['disk_bytes_s'] / 1e6)} MB/s")
    return ", ".join(told)


def words_of_churn(planned: Mapping[str, Any], clients: int) -> str:
    """How so many clients come and go, as a plan says it."""
    connects = clients * 1e9 / (planned["hold_ns"] + planned["away_ns"])
    mean = " on average" if planned["law"] == "exponential" else ""
    return f"come and go: {plain(connects)} connections a second, each for {plain(planned['hold_ns'] / 1e9)} s{mean}"
