"""How deliveries are divided in a figure: by QoS, and by publication where clients have several."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import polars as pl

from mqttlab.figures.style import QOS_COLOURS, SERIES_COLOURS


@dataclass(frozen=True, kw_only=True)
class Series:
    """Deliveries of one curve."""

    name: str
    colour: str
    samples: pl.DataFrame


def has_publications(samples: pl.DataFrame) -> bool:
    """Whether deliveries are of clients with several publications."""
    return "publication" in samples.columns and samples["publication"].null_count() < samples.height


def divided(samples: pl.DataFrame) -> list[Series]:
    """Deliveries by QoS, in its order; of several publications by these first, in the order of the scenario.

    Args:
        samples: with ``qos``, and ``publication`` where it is known.
    """
    if not has_publications(samples):
        levels = sorted(samples["qos"].unique().to_list())
        parts = [samples.filter(pl.col("qos") == qos) if len(levels) > 1 else samples for qos in levels]
        return [Series(name=f"QoS {qos}", colour=QOS_COLOURS.get(qos, SERIES_COLOURS[-1]), samples=part)
                for qos, part in zip(levels, parts, strict=True)]
    keys = samples.select("publication", "qos").unique().sort("publication", "qos").rows()
    return [Series(name=", ".join((*([str(publication)] if publication else []), f"QoS {qos}")), colour=colour,
                   samples=samples.filter(pl.col("publication").eq_missing(pl.lit(publication)), pl.col("qos") == qos))
            for (publication, qos), colour in zip(keys, itertools.cycle(SERIES_COLOURS), strict=False)]
