"""The words of the engine, as it declares them where they act: what each means, and how pages say it.

``words.json`` is made of these declarations, and a test of ``crates/derived`` holds it to them.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

VOCABULARIES = ("change_kind", "frame_cause", "latency_part", "loss_cause", "message_fate")


@cache
def _declared() -> dict[str, list[dict[str, str]]]:
    declared: dict[str, list[dict[str, str]]] = json.loads(
        Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
    return declared


@cache
def words_of(vocabulary: str) -> dict[str, dict[str, str]]:
    """Its words in their order: of each its ``meaning``, and what else the engine says of it.

    Args:
        vocabulary: one of :data:`VOCABULARIES`.
    """
    return {entry["word"]: entry for entry in _declared()[vocabulary]}


def phrases(vocabulary: str, way: str) -> dict[str, str]:
    """How pages say the words of a vocabulary in one way, as far as it has a phrase for them."""
    return {word: entry[way] for word, entry in words_of(vocabulary).items() if way in entry}


EXPECTED_FATES = tuple(phrases("message_fate", "counts"))
"""The fates of messages that a receiver should have had."""
