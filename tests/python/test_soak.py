"""The short form of ``make soak``: a few runs that are killed, starved and looked at."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "soak"))

import soak

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a small disk to fill can only be mounted by root")


@pytest.mark.parametrize(("live", "seed"), [
    pytest.param(True, 1, marks=pytest.mark.live), (False, 5),
])
def test_runs_that_are_killed_starved_and_looked_at_leave_nothing_and_lose_no_row(live: bool, seed: int) -> None:
    cases = soak.soak(5, seed, 2, live=live)
    assert [str(case) for case in cases if case.faults] == []
