"""``mqttlab event``: an event fired by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mqttlab import fired
from mqttlab.foreign import visible
from mqttlab.terminal import say


def fire(run: Path, words: Sequence[str]) -> None:
    """Fire an event in a run, and say what happens."""
    for line in fired.fire(run, words):
        say(visible(line))
