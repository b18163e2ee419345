"""What is compared: a run, or a group of runs of which some may be left out by rule."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mqttlab.digits import whole
from mqttlab.errors import MqttlabError
from mqttlab.mistaken import names_like
from mqttlab.recording import Recording

Draw = tuple[int, int]
"""What the random streams of a run depend on: its plan's seed and repetition."""


class ComparisonError(MqttlabError):
    """Runs that cannot be compared as asked; the message says which and why."""


@dataclass(frozen=True)
class Side:
    """One of the two that are compared."""

    label: str
    recordings: tuple[Recording, ...]
    left_out: tuple[tuple[Path, str], ...] = ()
    """Runs that do not count, and what a pattern matches beside runs, and why: a rule that does not look at results."""

    @property
    def one(self) -> bool:
        """Whether it is a single run."""
        return len(self.recordings) == 1

    def by_draw(self) -> dict[Draw, Recording] | None:
        """The runs by their random streams; ``None`` where two share one, or one has none (imports)."""
        draws = [draw_of(recording) for recording in self.recordings]
        known = {draw: recording for draw, recording in zip(draws, self.recordings, strict=True) if draw is not None}
        return known if len(known) == len(draws) else None


def draw_of(recording: Recording) -> Draw | None:
    """A run's seed and repetition; ``None`` where its plan has no seed."""
    seed = recording.plan.get("seed")
    return None if seed is None else (int(seed), int(_repetition(recording.plan) or 0))


def _repetition(plan: Any) -> Any:
    return plan.get("repetition")


def gather(text: str) -> Side:
    """The runs that a word of the command line names: a recording, a directory of recordings, a pattern of either, or
    a point of an experiment (``DIRECTORY#NUMBER``).

    A single run counts whatever it is, and reports say so. Of several, those that are incomplete, not valid or still
    going on are left out, and named.

    Raises:
        ComparisonError: nothing is there, or every run of a group had to be left out.
        RecordingError: a single directory is no recording.
    """
    path = Path(text)
    experiment, _, point = text.rpartition("#")
    if (place := whole(point)) is not None and (Path(experiment) / "journal.jsonl").is_file():
        # Directories of runs begin with their point's number.
        return side(f"{Path(experiment).name}#{point}", sorted(
            plan.parent for plan in Path(experiment).glob(f"runs/p{place:03d}-*/plan.json")), text)
    if path.exists():
        found = [path] if (path / "plan.json").is_file() or not path.is_dir() else recordings_in(path)
        return side(path.name or text, found, text)
    matches = {Path(match): recordings_in(Path(match)) for match in sorted(glob.glob(text))}  # noqa: PTH207
    one = side(text, [place for places in matches.values() for place in places], text)
    others = [(match, "it holds no recording") for match, places in matches.items() if not places]
    return replace(one, left_out=(*one.left_out, *others))


def side(label: str, found: Sequence[Path], text: str) -> Side:
    """The recordings in these directories, as far as they can be used.

    Args:
        label: what reports call them.
        found: the directories.
        text: what messages call them.

    Raises:
        ComparisonError: there is none, or every run of a group had to be left out.
        RecordingError: a single directory is no recording.
    """
    if not found:
        path = Path(text)
        words = "holds no recording" if path.is_dir() else "is no directory, and no pattern that matches one"
        raise ComparisonError(f"{text} {words}; mqttlab list shows the recordings")
    if len(found) == 1:
        return Side(label, (Recording.open(found[0]),))
    kept, left_out = [], []
    for place in found:
        recording = Recording.open(place)
        reason = unfit(recording)
        if reason is None:
            kept.append(recording)
        else:
            left_out.append((place, reason))
    if not kept:
        raise ComparisonError([f"{text}: none of its {len(found)} runs can be used",
                               *(f"{place}: {reason}" for place, reason in left_out[:5])])
    return Side(label, tuple(kept), tuple(left_out))


def of_stage(sides: Sequence[Side], stage: str) -> list[Side]:
    """The same sides, of whose measurements this stage is looked at alone.

    Raises:
        ComparisonError: a run has no such stage; the message names those that all have.
    """
    runs = [recording for side in sides for recording in side.recordings]
    names = [[str(one["name"]) for one in recording.plan.get("stages") or ()] for recording in runs]
    for recording, known in zip(runs, names, strict=True):
        if stage not in known:
            raise ComparisonError(f'{recording.directory} has no stage "{stage}"; {_stages_of_all(stage, names)}')
    return [replace(side, recordings=tuple(recording.of_stage(stage) for recording in side.recordings))
            for side in sides]


def _stages_of_all(stage: str, names: Sequence[Sequence[str]]) -> str:
    common = [name for name in names[0] if all(name in each for each in names)]
    if not common:
        return "no stage is in all of these runs; leave --stage out to compare their whole measurements"
    near = names_like(stage, common)
    return (f"did you mean {' or '.join(f'`{name}`' for name in near)}? " if near else "") + (
        f"stages of all these runs: {', '.join(common)}")


def recordings_in(directory: Path) -> list[Path]:
    """The directory itself if it is a recording, else the recordings in it, or in the `runs` of an experiment."""
    if (directory / "plan.json").is_file():
        return [directory]
    inside = sorted(plan.parent for plan in directory.glob("*/plan.json"))
    return inside or sorted(plan.parent for plan in directory.glob("runs/*/plan.json"))


def unfit(recording: Recording) -> str | None:
    """Why a run does not count in a group; ``None`` where it does."""
    if recording.going_on:
        return "it is still going on"
    if not recording.complete:
        return f"incomplete: {recording.run.get('reason') or 'it ended early'}"
    validity = recording.run.get("validity") or {}
    if not validity.get("valid", True):
        return f"not valid: {'; '.join(map(str, validity.get('reasons', []))) or 'no reason is recorded'}"
    return None


def pairs(first: Side, second: Side) -> list[tuple[Recording, Recording]]:
    """Runs of both sides with the same random streams, in the order of the first; empty where the streams do not tell
    runs apart."""
    known, other = first.by_draw(), second.by_draw()
    if known is None or other is None:
        return []
    return [(recording, other[draw]) for draw, recording in known.items() if draw in other]


def runs_of(first: Side, second: Side) -> tuple[list[Recording], list[Recording], bool]:
    """The runs of both sides, in the same order where every one has a partner, and whether that is so."""
    matched = pairs(first, second)
    if matched and len(matched) == len(first.recordings) == len(second.recordings):
        return [run for run, _ in matched], [run for _, run in matched], True
    return list(first.recordings), list(second.recordings), False


def changed(first: Side, second: Side) -> list[tuple[str, str, str]]:
    """Where the plans of the two sides' first runs differ: place, and both values as JSON would have them."""
    plans: Sequence[dict[str, Any]] = [flat(dict(side.recordings[0].plan)) for side in (first, second)]
    places = dict.fromkeys([*plans[0], *plans[1]])
    return [(place, _word(plans[0], place), _word(plans[1], place)) for place in places
            if plans[0].get(place) != plans[1].get(place) and place not in NOT_KNOBS]


# What no run shares with another, or only describes it.
NOT_KNOBS = ("description", "name", "schema", "seed", "repetition", "directory")


def _word(plan: dict[str, Any], place: str) -> str:
    return str(plan[place]) if place in plan else "–"


def flat(value: Any, place: str = "") -> dict[str, Any]:
    """The values of a plan or a scenario by their places; links and groups by their names."""
    if isinstance(value, dict):
        items = [(f"{place}.{key}" if place else str(key), inner) for key, inner in value.items()]
    elif isinstance(value, list) and value and not (len(value) == 2 and all(isinstance(n, int) for n in value)):
        items = [(f"{place}[{inner['name'] if isinstance(inner, dict) and 'name' in inner else number}]", inner)
                 for number, inner in enumerate(value)]
    else:
        return {place: value}
    found: dict[str, Any] = {}
    for name, inner in items:
        found |= flat(inner, name)
    return found
