"""A scenario of andersen2021, and how long it is run."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

NETWORKS = {
    "Tactical Broadband": "tactical-broadband", "SATCOM": "satcom", "NATO Narrowband Waveform": "nato-narrowband",
    "CNR 1%": "cnr-1", "CNR 10%": "cnr-10",
}
PAYLOADS = {"GPS": "gps", "Image": "image"}


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How long to simulate."""

    duration_s: float
    cool_down_s: float


THOROUGH = Effort(duration_s=600.0, cool_down_s=300.0)
QUICK = Effort(duration_s=120.0, cool_down_s=60.0)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One of the ten scenarios."""

    name: str
    """Unique among the study's scenarios: network and payload."""
    values: dict[str, Any]
    """As its file has them."""

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        values = copy.deepcopy(self.values)
        values["phases"] |= {"duration": f"{effort.duration_s:g} s", "cool_down": f"{effort.cool_down_s:g} s"}
        for group in values["groups"]:
            if "publish" in group:
                group["publish"]["start_phase"] = "synchronised"
        return values
