"""The form of the page Live for events by hand: what may be chosen, and what becomes of an event that is fired.

An event comes in the words of ``mqttlab event``, and goes the way of that command.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from mqttlab import fired
from mqttlab.dashboard.watch import Watch
from mqttlab.errors import MqttlabError
from mqttlab.scenario.possible import KINDS

WORDS_MAX, LETTERS_MAX = 20, 1000
GONE = "There is no such run any more."


def possible(watch: Watch, job: str) -> dict[str, Any]:
    """``things`` to choose from, each with its ``deeds``; or why there are none, as ``refused``."""
    directory = watch.directory_of(job)
    if directory is None:
        return {"refused": GONE}
    try:
        return {"things": [{**asdict(thing), "called": KINDS[thing.kind]} for thing in fired.possible(directory)]}
    except MqttlabError as error:
        return {"refused": _said(directory, error)}


def fire(watch: Watch, job: str, asked: Any) -> dict[str, Any]:
    """``fired``: what happens, a line each; or why nothing does, as ``refused``."""
    words = asked.get("words") if isinstance(asked, dict) else None
    if not isinstance(words, list) or len(words) > WORDS_MAX or not all(
            isinstance(word, str) and len(word) <= LETTERS_MAX for word in words):
        return {"refused": "That is no event."}
    directory = watch.directory_of(job)
    if directory is None:
        return {"refused": GONE}
    try:
        return {"fired": fired.fire(directory, words)}
    except MqttlabError as error:
        return {"refused": _said(directory, error)}


def _said(directory: Path, error: MqttlabError) -> str:
    """Its own words; which run it is stands above the form."""
    return " ".join(problem.removeprefix(f"{directory}: ") for problem in error.problems)
