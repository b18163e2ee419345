"""What pages say of the engine's words: none is without a phrase or a colour where all are shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mqttlab import metrics, words
from mqttlab.figures import PART_COLOURS
from mqttlab.words import VOCABULARIES, phrases, words_of


def test_the_vocabularies_are_those_of_the_file() -> None:
    text = Path(words.__file__).with_name("words.json").read_text(encoding="utf-8")
    assert set(json.loads(text)) == set(VOCABULARIES)


@pytest.mark.parametrize(("vocabulary", "ways"), [
    ("change_kind", {"target", "change"}), ("frame_cause", {"frame"}), ("latency_part", {"title", "share", "meaning"})])
def test_every_word_has_what_pages_say_of_all(vocabulary: str, ways: set[str]) -> None:
    assert all(ways <= said.keys() for said in words_of(vocabulary).values())


def test_every_cause_has_words_for_a_loss_or_for_an_unknown_fate() -> None:
    assert set(phrases("loss_cause", "lost")) | set(phrases("loss_cause", "unknown")) == set(words_of("loss_cause"))


def test_every_part_of_a_latency_has_a_metric_and_a_colour_of_its_own() -> None:
    assert tuple(words_of("latency_part")) == metrics.PARTS
    assert set(PART_COLOURS) == set(metrics.PARTS) and len(set(PART_COLOURS.values())) == len(PART_COLOURS)
