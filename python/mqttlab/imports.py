"""Imports: captures, logs and tables that somebody else made, turned into recordings by the engine.

What comes out is a recording like any other; ``docs/how-to/import.md`` says what is taken from what.

Raises:
    EngineError: the engine is not there, or a file cannot be read; nothing was written.
    Interrupted: Ctrl-C, SIGTERM or SIGHUP; nothing was kept.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Literal

from mqttlab import scratch
from mqttlab.engine import EngineError, Interrupted, Interruption, engine_path
from mqttlab.files import make_private
from mqttlab.foreign import file_name
from mqttlab.mistaken import nearest_path, what_it_is
from mqttlab.runs import Outcome, taken_directory

Evidence = Literal["capture", "log", "csv"]
# What only says how a file is stored; the engine drops the same ones from the names of links and clients.
STORED = {".gz", ".zst", ".pcapng", ".pcap", ".cap", ".ntar", ".log", ".csv"}


def evidence_of(files: Iterable[Path]) -> Literal["log", "csv"]:
    """Whether message logs are tables, by their names.

    Raises:
        EngineError: some are and some are not; the two cannot be told together.
    """
    tables = ["csv" in {suffix.lstrip(".").lower() for suffix in file.suffixes} for file in files]
    if any(tables) and not all(tables):
        raise EngineError("logs and tables (.csv) cannot be imported together; import them one after the other")
    return "csv" if any(tables) else "log"


def title_of(files: Sequence[Path]) -> str:
    """What an import is called: its first file without suffixes."""
    first = files[0]
    if str(first) == "-":
        return "import"
    name = Path(first.name)
    while name.suffix.lower() in STORED and name.stem:
        name = Path(name.stem)
    return str(name) if len(files) == 1 else f"{name}-and-{len(files) - 1}-more"


def directory_for(files: Sequence[Path], runs: Path) -> AbstractContextManager[tuple[Path, scratch.Promise]]:
    """A new directory for an import, among the runs, as :func:`mqttlab.runs.taken_directory` makes one."""
    return taken_directory(file_name(title_of(files), also=". "), 0, 1, runs)


def import_evidence(
    evidence: Evidence,
    files: Sequence[Path],
    directory: Path,
    observe: Callable[[dict[str, Any]], None],
    *,
    options: Sequence[str] = (),
) -> Outcome:
    """Turn files into the recording ``directory`` and wait for its end.

    Args:
        evidence: what the files are.
        files: the files; ``-`` is standard input.
        directory: where the recording goes; it must not hold one.
        observe: called with each of the engine's progress lines.
        options: further options of ``mqttlab-engine import``.

    Raises:
        EngineError: the engine is not there, or a file cannot be read; nothing was written.
        Interrupted: Ctrl-C, SIGTERM or SIGHUP; nothing was kept.
    """
    if (directory / "plan.json").exists():
        raise EngineError(f"{directory} already holds a recording; choose another directory")
    fresh = not directory.exists() or not any(directory.iterdir())
    make_private(directory.parent)
    arguments = ["import", evidence, "--output", str(directory), *options, *map(str, files)]
    if "--name" not in options:
        arguments += ["--name", title_of(files)]
    interruption = Interruption()
    try:
        with scratch.promised(directory):
            last, code, words = _follow(arguments, observe, interruption)
        if interruption.asked is not None and code != 0:
            raise Interrupted(f"the import was stopped by {interruption.asked.name}; nothing was kept")
    except BaseException:
        _discard(directory, fresh)
        raise
    if last is None:
        _discard(directory, fresh)
        raise EngineError(_with_what_it_is(words, files) or f"the engine ended with {code}; nothing was imported")
    warnings = [str(text) for text in last.pop("warnings")]
    return Outcome(verdict=last["verdict"], directory=directory, reason=last.get("reason"), warnings=warnings)


def _with_what_it_is(words: str, files: Sequence[Path]) -> str:
    """The engine's problem, and what the file is where it is another kind of file."""
    gone = next((file for file in files if words == f"{file}: there is no such file"), None)
    if gone is not None and (near := nearest_path(gone)) is not None:
        return f"{words}; did you mean {near}?"
    wrong = next((file for file in files if words.startswith(f"{file}: not a ") or (
        words.startswith(f"{file}: line ") and file.suffix == ".toml")), None)
    what = None if wrong is None else what_it_is(wrong)
    # What it is leaves no "if".
    return words if what is None else f"{words.partition('; if it is a capture')[0]}; it {what}"


def _follow(
    arguments: Sequence[str], observe: Callable[[dict[str, Any]], None], interruption: Interruption
) -> tuple[dict[str, Any] | None, int, str]:
    """Runs the engine; returns its last word, if it had one, with all warnings, its exit status and complaints."""
    last: dict[str, Any] | None = None
    warnings: list[str] = []
    with scratch.unnamed() as complaints, interruption.heard():
        engine = subprocess.Popen(
            [engine_path(), *arguments], stdout=subprocess.PIPE, stderr=complaints, text=True,
            # The engine gets Ctrl-C from us; not from the terminal as well.
            start_new_session=True,
        )
        with interruption.telling(engine):
            assert engine.stdout is not None
            for text in engine.stdout:
                line = json.loads(text)
                observe(line)
                if line["event"] == "warning":
                    warnings.append(line["text"])
                elif line["event"] == "done":
                    last = {**line, "warnings": warnings}
            code = engine.wait()
        complaints.seek(0)
        words = complaints.read().strip().removeprefix("mqttlab-engine: ")
    return last, code, words


def _discard(directory: Path, fresh: bool) -> None:
    """What an import leaves that did not end: the evidence is still there, so that half a recording is of no use."""
    if fresh:
        shutil.rmtree(directory, ignore_errors=True)
