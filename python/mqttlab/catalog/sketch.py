"""Quantile sketches: latencies of a run in a few hundred bytes, which merge, so that tails over many runs need no
recording.

A value is counted in a bucket whose bounds are 2 % apart (DDSketch: Masson, Rim, Lee, VLDB 2019), so that a quantile is
within 1 % of a value of that rank. Merging adds counts and loses nothing: a quantile of the merged is one of all
values, and never a mean of quantiles.

The engine counts in ranges of equal width within each doubling (``crates/units``, ``Histogram``). These here stay
because catalogs hold them: they are stored, and those of new runs must add up with those of earlier ones. They are made
of latencies in ms, which are fractions.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import polars as pl

ACCURACY = 0.01
GAMMA = (1 + ACCURACY) / (1 - ACCURACY)
STEP = math.log(GAMMA)


@dataclass
class Sketch:
    """Counts by bucket; bucket ``k`` holds what lies above ``GAMMA ** (k - 1)`` and not above ``GAMMA ** k``."""

    counts: dict[int, int] = field(default_factory=dict)
    zeros: int = 0
    """Values of zero or less."""

    @classmethod
    def of(cls, values: pl.Series) -> Sketch:
        """The sketch of some values; missing ones are left out."""
        numbers = values.drop_nulls().to_numpy()
        positive = numbers[numbers > 0]
        buckets, counts = np.unique(np.ceil(np.log(positive) / STEP).astype(np.int64), return_counts=True)
        return cls(dict(zip(buckets.tolist(), counts.tolist(), strict=True)), int(numbers.size - positive.size))

    @property
    def count(self) -> int:
        """How many values it is of."""
        return self.zeros + sum(self.counts.values())

    def quantile(self, part: float) -> float | None:
        """The value below which this part of 1 lies, within 1 %; nothing of no values."""
        if not 0 <= part <= 1:
            raise ValueError(f"a quantile is of a part from 0 to 1, not of {part}")
        left = math.ceil(part * self.count) - self.zeros
        if self.count == 0:
            return None
        if left <= 0:
            return 0.0 if self.zeros else self._middle(min(self.counts))
        for bucket in sorted(self.counts):
            left -= self.counts[bucket]
            if left <= 0:
                return self._middle(bucket)
        raise AssertionError("the counts add up")

    @staticmethod
    def _middle(bucket: int) -> float:
        return 2 * math.exp(bucket * STEP) / (GAMMA + 1)

    @classmethod
    def merged(cls, sketches: Iterable[Sketch]) -> Sketch:
        """One sketch of all values."""
        whole = cls()
        for sketch in sketches:
            whole.zeros += sketch.zeros
            for bucket, count in sketch.counts.items():
                whole.counts[bucket] = whole.counts.get(bucket, 0) + count
        return whole

    def data(self) -> bytes:
        """As the catalog stores it: the same sketch makes the same bytes."""
        return zlib.compress(json.dumps([self.zeros, sorted(self.counts.items())], separators=(",", ":")).encode())

    @classmethod
    def read(cls, data: bytes) -> Sketch:
        """What :meth:`data` has written."""
        zeros, counts = json.loads(zlib.decompress(data))
        return cls({int(bucket): int(count) for bucket, count in counts}, int(zeros))
