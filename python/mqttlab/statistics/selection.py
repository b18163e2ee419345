"""Which of many values are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Selection:
    """Of values that come in parts, at most so many in all: an even selection, and the largest hundredth.

    Or the largest third of those that are wanted, if that is less: outliers are what people look for. Of equal ones the
    first are taken.

    Args:
        height: how many values there are.
        most: how many of them are wanted; if there are no more, all are taken.
        largest: gives so many of the largest, in any order.
    """

    def __init__(self, height: int, most: int, largest: Callable[[int], NDArray[Any]]) -> None:
        self._step, self._least, self._equal, self._before = 1, np.inf, 0, 0
        if height <= most:
            return
        count = min(height // 100, most // 3)
        self._step = -(-height // (most - count))
        if count:
            found = largest(count)
            self._least = found.min()
            self._equal = int(np.count_nonzero(found == self._least))

    def places(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Which of the next values are taken."""
        chosen = values > self._least
        equal = np.flatnonzero(values == self._least)[:self._equal]
        self._equal -= len(equal)
        chosen[equal] = True
        chosen[-self._before % self._step :: self._step] = True
        self._before += len(values)
        return np.flatnonzero(chosen)
