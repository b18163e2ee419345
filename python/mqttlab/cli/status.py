"""Exit statuses: how a command ended, for scripts.

:data:`MEANINGS` lists them. Of several the first in the order of :data:`PRECEDENCE` counts. Commands that read a
recording (``report``, ``compare``) end with 0 whatever its verdict is: they did what they were asked to do, and print
it.
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
MEANINGS = {
    DONE: "done", FAILED: "failed: nothing was measured", WRONG: "wrong input: nothing was started",
    INCOMPLETE: "incomplete: it ended early; the recording is kept", BROKEN: "a threshold was broken",
    UNDECIDED: "a threshold is undecided",
    NOT_VALID: "not valid: it did not measure its scenario; the report begins with the reason",
}
WITHOUT_RUNS = "Exit status: 0 done; 1 failed; 2 wrong input, nothing was made."
"""Of commands that make no recording."""
NO_THRESHOLDS: dict[int, str | None] = {BROKEN: None, UNDECIDED: None}
OF_IMPORTS: dict[int, str | None] = NO_THRESHOLDS | {
    FAILED: "failed: the recording cannot be written", WRONG: "wrong input: nothing was written",
    INCOMPLETE: "incomplete: a file ends early or is damaged; its readable part is imported",
    NOT_VALID: "not valid: evidence is missing; the report begins with the missing parts"}
# Of commands that make recordings, by their words: what statuses mean there, where that is more than above; none: they
# have no such status.
OWN: dict[str, dict[int, str | None]] = {
    "run": {}, "try": NO_THRESHOLDS, "queue wait": NO_THRESHOLDS, "import": OF_IMPORTS, "import capture": OF_IMPORTS,
    "import log": OF_IMPORTS,
    "experiment": {
        DONE: "done, every threshold held", FAILED: "failed: a run has failed as often as `attempts` says",
        WRONG: "wrong input, or runs are stale: nothing was started",
        INCOMPLETE: "incomplete: it was interrupted, or runs ended early",
        NOT_VALID: "not valid: a run did not measure its scenario in as many tries as `attempts` says"},
}


def in_help(command: str) -> str:
    """The statuses of a command, for the end of its help.

    Args:
        command: its words without the program's name, such as ``import log``.
    """
    if command not in OWN:
        return WITHOUT_RUNS
    meanings = {status: words for status, words in {**MEANINGS, **OWN[command]}.items() if words is not None}
    order = ", ".join(str(status) for status in PRECEDENCE if status in meanings and status != DONE)
    lines = [f"  {status}  {words}" for status, words in sorted(meanings.items())]
    return "\n".join(["\b", f"Exit status, of several the first in the order {order}:", *lines])


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
