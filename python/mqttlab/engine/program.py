"""Where the engine is, and its small commands."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from mqttlab import scratch
from mqttlab.engine.interruption import Interrupted, Interruption
from mqttlab.engine.locks import is_locked
from mqttlab.errors import MqttlabError

if TYPE_CHECKING:
    from mqttlab.plan import Plan

PROGRAM = "mqttlab-engine"
PANICKED = 101
"""How a program of Rust ends where one of its invariants does not hold."""


class EngineError(MqttlabError):
    """The engine is not there, or could not do what it was asked."""


class MachineError(EngineError):
    """The machine cannot do what was asked, although it was asked rightly."""

    exit_status: ClassVar[int] = 1


def engine_path() -> Path:
    """The engine's program: beside this Python's, where the wheel puts it, or on the PATH.

    Raises:
        EngineError: it is in neither place.
    """
    beside = Path(sys.executable).parent / PROGRAM
    if beside.is_file():
        return beside
    found = shutil.which(PROGRAM)
    if found is None:
        raise EngineError(f"{PROGRAM} is not installed beside {sys.executable}, nor on the PATH; run `make setup`")
    return Path(found)


def doctor() -> dict[str, Any]:
    """What this machine can do, as the engine finds it.

    Raises:
        EngineError: the engine could not tell.
    """
    answer = call("doctor")
    findings = json.loads(answer)
    assert isinstance(findings, dict)
    return findings


def probe(plan: Plan, seconds: int, observe: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Measure the emulated paths of a plan.

    Args:
        plan: as :func:`mqttlab.scenario.compile_plan` makes it.
        seconds: for each path, about.
        observe: called with each line of progress: ``done``, a part of 1, and ``what``.

    Returns:
        What a live run keeps as ``details.probe``.

    Raises:
        EngineError: namespaces or devices cannot be made here.
        Interrupted: Ctrl-C, SIGTERM or SIGHUP.
    """
    return _watched(["probe", "--seconds", str(seconds)], json.dumps(plan), observe)


def measure(seconds: float, observe: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Try how exactly this machine emulates.

    Args:
        seconds: how long, about.
        observe: called with each line of progress: ``done``, a part of 1, and ``what``.

    Returns:
        Lateness and losses at several rates of frames, ``ranges`` of what can be measured, and the same in ``words``.

    Raises:
        EngineError: namespaces or devices cannot be made here.
        Interrupted: Ctrl-C, SIGTERM or SIGHUP.
    """
    return _watched(["measure", "--seconds", str(seconds)], "", observe)


def _watched(arguments: list[str], text: str, observe: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Run a command of the engine that says how far it is, and return what its last line has found."""
    interruption = Interruption()
    found: dict[str, Any] | None = None
    with scratch.unnamed() as complaints, interruption.heard():
        engine = subprocess.Popen([engine_path(), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=complaints, text=True, start_new_session=True)
        with interruption.telling(engine):
            assert engine.stdin is not None
            assert engine.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                engine.stdin.write(text)
                engine.stdin.close()
            for line in engine.stdout:
                said = json.loads(line)
                if "found" in said:
                    found = said["found"]
                else:
                    observe(said)
            code = engine.wait()
        complaints.seek(0)
        words = complaints.read().strip().removeprefix(f"{PROGRAM}: ")
    if interruption.asked is not None:
        raise Interrupted(f"stopped by {interruption.asked.name}")
    if found is None:
        # 2: the engine refused what it was given.
        raise (EngineError if code == 2 else MachineError)(words or f"{PROGRAM} {arguments[0]} ended with {code}")
    return found


def recover(directory: Path, out: Path | None = None, values: Mapping[str, str] | None = None) -> None:
    """Make the tables of a recording whose engine was killed, in its directory or in ``out``, and hide its secrets.

    Args:
        directory: the recording's.
        out: where the tables go.
        values: its secrets by mark; ``None`` where nobody knows them, so that all is overwritten that may show one.

    Raises:
        EngineError: nothing can be read from it, or the tables cannot be written.
    """
    options, given = ([], "") if values is None else (["--secrets"], json.dumps(dict(values)))
    call("recover", str(directory), *([] if out is None else ["--out", str(out)]), *options, given=given)


def cannot_be_written(directory: Path, error: EngineError) -> bool:
    """Whether that is why the tables of a recording were not made: its disk is full, or may not be written to."""
    full = any(words in str(error) for words in ("No space left", "Disk quota", "Read-only file system"))
    return full or not os.access(directory, os.W_OK) or shutil.disk_usage(directory).free == 0


def snapshot(directory: Path, out: Path) -> None:
    """Make a recording in ``out`` of what a run that is going on has written; ``directory`` is only read.

    Raises:
        EngineError: nothing can be read from it, or the run has ended meanwhile.
    """
    call("snapshot", str(directory), "--out", str(out))


def summarise(directory: Path, out: Path) -> None:
    """Make the derived tables of a finished recording in ``out``; ``directory`` is only read.

    Raises:
        EngineError: a table cannot be read.
    """
    call("summarise", str(directory), "--out", str(out))


def is_being_written(directory: Path) -> bool:
    """Whether an engine is writing the recording: it holds a lock on the directory until it ends, however it ends."""
    try:
        return is_locked(directory)
    except OSError:
        # It is not there, or on a file system without locks.
        return False


def call(*arguments: str, given: str = "") -> str:
    """What a short command of the engine prints; ``given`` is its standard input.

    Raises:
        EngineError: it failed.
    """
    result = subprocess.run([engine_path(), *arguments], capture_output=True, text=True, check=False, input=given)
    if result.returncode == PANICKED:
        # A fault of the program: its place and its stack are for who looks for it, with the command of this line.
        why = next(iter(result.stderr.splitlines()[1:]), "")
        raise EngineError(f"{PROGRAM} {' '.join(arguments)} failed, which is a fault of the program; please report it: "
                          f"{why}")
    if result.returncode != 0:
        raise EngineError(result.stderr.strip() or f"{PROGRAM} {arguments[0]} ended with {result.returncode}")
    return result.stdout
