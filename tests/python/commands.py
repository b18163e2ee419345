"""Commands of mqttlab in this process: most tests ask what a command says, and starting Python anew costs more.

A test that is about the process itself (signals, standard output, what is imported) starts one.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from mqttlab.cli import main


@dataclass(frozen=True)
class Done:
    """What a command left, by the names that `subprocess` has for it."""

    returncode: int
    stdout: str
    stderr: str


def mqttlab(*words: object, cwd: Path | None = None) -> Done:
    """Give a command, in a directory if one is named."""
    with contextlib.chdir(cwd) if cwd else contextlib.nullcontext():
        result = CliRunner().invoke(main, [*map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)
