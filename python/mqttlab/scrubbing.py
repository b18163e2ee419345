"""Secrets taken out of recordings and experiments that an earlier version made, as ``mqttlab catalog scrub`` does.

A secret is found where a plan, a scenario or an experiment says it; there its mark takes its place, and so it does in
what was made of these (reports, logs, captures). Nothing else of a file is changed, nor when it was last written.
"""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mqttlab import scratch, secrets
from mqttlab.checks import checked_again
from mqttlab.engine import hide, is_being_written
from mqttlab.files import ORIGIN
from mqttlab.scenario.secret import without_secrets, written_at

Place = tuple[str | int, ...]
JSON_FILES = ("plan.json", ORIGIN, "design.json")
TOML_FILES = ("scenario.toml", "experiment.toml")
TEXTS = ("*.html", "*.json", "*.jsonl", "*.log", "*.toml", "*.csv", "*.xml", "*.md", "*.svg")
# What is read as bytes.
BYTES = ("*.pcapng", "*.log", scratch.UNHIDDEN)
LONG = 8
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]|[^\s{}\[\],:"]+')


@dataclass(frozen=True, kw_only=True)
class Scrubbed:
    """A file that was changed, and of what."""

    file: Path
    what: str


def scrub_below(directories: Iterable[Path], values: dict[str, str]) -> Iterator[Scrubbed]:
    """Take the secrets out of every recording and experiment at or below some directories; what was changed.

    Args:
        directories: where to look.
        values: takes the secrets that were found, with their marks.

    Raises:
        OSError: a file cannot be read or written.
    """
    # What was found in a directory may stand in those below it, too: in tables and reports.
    known: dict[Path, dict[str, str]] = {}
    for top in directories:
        for place, _, _ in os.walk(top):
            directory = Path(place)
            own = known[directory] = dict(known.get(directory.parent, {}))
            yield from scrub(directory, own)
            values |= own


def scrub(directory: Path, values: dict[str, str]) -> Iterator[Scrubbed]:
    """:func:`scrub_below`, of one directory; one that is still being written stays as it is.

    Raises:
        OSError: a file cannot be read or written.
    """
    if is_being_written(directory):
        return
    changed = []
    for scrubbed in _scrub(directory, values):
        changed.append(scrubbed.file)
        yield scrubbed
    for file, text in checked_again(directory, changed):
        _replace(file, text)


def _scrub(directory: Path, values: dict[str, str]) -> Iterator[Scrubbed]:
    # Where a secret was found changes last, so that a scrub that is stopped finds it again.
    changes = [(file, text, what) for name in JSON_FILES + TOML_FILES if (file := directory / name).is_file()
               for text, what in (_json if name in JSON_FILES else _toml)(file, values)]
    if not values:
        yield from _hidden(directory, None)
        return
    for pattern in TEXTS:
        for file in sorted(directory.glob(pattern)):
            if file.name not in (*JSON_FILES, *TOML_FILES):
                yield from _text(file, values)
    yield from _hidden(directory, values)
    for file, text, what in changes:
        _replace(file, text)
        yield Scrubbed(file=file, what=what)
        # What is a place of its own was replaced; a short secret may be another word of it.
        yield from _text(file, {value: mark for value, mark in values.items() if len(value) >= LONG})
    yield from _digest_again(directory)


def _json(file: Path, values: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Of an origin the scenario's text, of all the places that are secret."""
    text = file.read_text(encoding="utf-8")
    changes = _changes(text, values)
    if changes:
        yield _with(text, changes), ", ".join(sorted({_words(place) for place in changes}))


def scrub_text(text: str, values: dict[str, str]) -> str:
    """A plan or an origin, as JSON, without the secrets that stand in it; ``values`` takes them, with their marks."""
    return _with(text, _changes(text, values))


def _changes(text: str, values: dict[str, str]) -> dict[Place, str]:
    """What takes the place of what in JSON that may be a plan or an origin."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    places = list(written_at(told))
    changes: dict[Place, str] = {place: secrets.mark_or_hidden(value) for place, value in places}
    values |= {value: secrets.mark_or_hidden(value) for _, value in places}
    scenario = told.get("scenario") if isinstance(told, dict) else None
    if isinstance(scenario, dict) and isinstance(scenario.get("toml"), str):
        toml = without_secrets(scenario["toml"], values)
        if toml != scenario["toml"]:
            changes["scenario", "toml"] = toml
    return changes


def _toml(file: Path, values: dict[str, str]) -> Iterator[tuple[str, str]]:
    text = file.read_text(encoding="utf-8")
    changed = without_secrets(text, values)
    if changed != text:
        yield changed, "secrets of the scenario"


def _digest_again(directory: Path) -> Iterator[Scrubbed]:
    """What a recording says of its plan's bytes."""
    plan = directory / "plan.json"
    for name in ("run.json", "incomplete.json"):
        file = directory / name
        if plan.is_file() and file.is_file():
            text = file.read_text(encoding="utf-8")
            digest = hashlib.sha256(plan.read_bytes()).hexdigest()
            changed = re.sub(r'("plan_sha256"\s*:\s*")[0-9a-f]{64}(")', rf"\g<1>{digest}\g<2>", text, count=1)
            if changed != text:
                _replace(file, changed)
                yield Scrubbed(file=file, what="the digest of the plan")


def _text(file: Path, values: dict[str, str]) -> Iterator[Scrubbed]:
    """Everywhere in a text, as it is, or as JSON and HTML write it; a short secret only behind its name."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    changed = text
    for value, mark in sorted(values.items(), key=lambda one: -len(one[0])):
        forms = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
        forms |= {html.escape(form) for form in forms} | {html.escape(form, quote=False) for form in forms}
        for form in sorted(forms, key=len, reverse=True):
            if len(value) >= secrets.SHORTEST:
                changed = changed.replace(form, mark)
            else:
                quote = '(?:"|&quot;|&#34;)'
                changed = re.sub(rf"(password{quote}?\s*[:=]\s*{quote}){re.escape(form)}(?={quote})",
                                 rf"\g<1>{mark}", changed)
    if changed != text:
        _replace(file, changed)
        yield Scrubbed(file=file, what="copies of the secrets")


def _with(text: str, changes: dict[Place, str]) -> str:
    """JSON with other texts at some places, and nothing else changed."""
    parts: list[str] = []
    stack: list[str | int] = []
    kinds: list[str] = []
    last, key = 0, ""
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "{[":
            kinds.append(token)
            stack.append(0 if token == "[" else "")
        elif token in "}]":
            kinds.pop()
            stack.pop()
        elif token == ",":
            stack[-1] = int(stack[-1]) + 1 if kinds[-1] == "[" else ""
        elif token == ":":
            stack[-1] = key
        elif token.startswith('"'):
            told = json.loads(token)
            if kinds and kinds[-1] == "{" and stack[-1] == "":
                key = told
            elif (new := changes.get(tuple(stack))) is not None:
                parts += [text[last:match.start()], json.dumps(new, ensure_ascii=False)]
                last = match.end()
    return "".join([*parts, text[last:]])


def _words(place: Place) -> str:
    words = ""
    for part in place:
        words += f"[{part}]" if isinstance(part, int) else f".{part}"
    return words.removeprefix(".")


def _replace(file: Path, text: str) -> None:
    """Another text in the place of a file's, whole or not at all; with its mode and its time."""
    before = file.stat()
    with scratch.unfinished(file) as made:
        # Nobody else's, until it has the file's own mode.
        made.touch(mode=0o600)
        made.write_text(text, encoding="utf-8", newline="")
        made.chmod(before.st_mode & 0o7777)
        os.utime(made, ns=(before.st_atime_ns, before.st_mtime_ns))


def _hidden(directory: Path, values: dict[str, str] | None) -> Iterator[Scrubbed]:
    """Captures, logs and keys of TLS, which the engine reads; with their times."""
    if not any(file for pattern in BYTES for file in directory.glob(pattern)):
        return
    before = {file: file.stat() for file in directory.iterdir()}
    told = None if values is None else {mark: value for value, mark in values.items()}
    for file, what in hide(directory, told):
        os.utime(file, ns=(before[file].st_atime_ns, before[file].st_mtime_ns))
        yield Scrubbed(file=file, what=what)
