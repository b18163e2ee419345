"""Exit statuses: how a command ended, for scripts.

======  ============================================================================================================
status  meaning
======  ============================================================================================================
0       done
1       failed: nothing was measured
2       wrong input: nothing was started
3       incomplete: it ended early; what it recorded is kept
4       a threshold was broken
5       undecided
6       not valid: a run came to its end and did not measure what its scenario asks for; imported evidence is not whole
======  ============================================================================================================

Of several the first in the order 2, 1, 3, 6, 4, 5 counts. Commands that read a recording (``report``, ``compare``) end
with 0 whatever its verdict is: they did what they were asked to do, and print it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqttlab.recording import Recording
    from mqttlab.runs import Outcome

DONE, FAILED, WRONG, INCOMPLETE, BROKEN, UNDECIDED, NOT_VALID = range(7)
ENDED = {"complete": DONE, "failed": FAILED, "incomplete": INCOMPLETE}
PRECEDENCE = (WRONG, FAILED, INCOMPLETE, NOT_VALID, BROKEN, UNDECIDED, DONE)


def status_of(outcome: Outcome) -> int:
    """The exit status of a run or an import."""
    from mqttlab.recording import Recording

    if outcome.verdict == "complete" and not is_valid(Recording.open(outcome.directory)):
        return NOT_VALID
    return ENDED[outcome.verdict]


def is_valid(recording: Recording) -> bool:
    """Whether what the recording says may be believed."""
    return bool((recording.run.get("validity") or {}).get("valid", True))


def worst(statuses: Iterable[int]) -> int:
    """The one that counts."""
    return min(statuses, key=PRECEDENCE.index, default=DONE)
