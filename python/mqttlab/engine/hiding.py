"""A run's secrets taken out of what others wrote into its recording: logs of programs, captures, keys of TLS.

The engine does it (``crates/engine/src/hiding``): at the end of each run, and where it was killed, when it is called
here. ``secrets-not-hidden.txt`` stands in a recording's directory as long as that has not been done.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path

from mqttlab import scratch
from mqttlab.engine.program import EngineError, call, is_being_written, recover

OVERWRITTEN = "secrets-overwritten.txt"
"""What was overwritten in a recording because nobody knew its secrets any more; beside it."""


def hide(directory: Path, values: Mapping[str, str] | None) -> list[tuple[Path, str]]:
    """Overwrite secrets in the captures and logs of a recording; what was changed: each file, and what of it.

    Args:
        directory: the recording's.
        values: the secrets by mark; ``None`` where nobody knows them: then all that its plan calls secret.

    Raises:
        EngineError: it is being written, or a file cannot be changed.
    """
    options, given = ([], "") if values is None else (["--secrets"], json.dumps(dict(values)))
    changed = json.loads(call("hide", str(directory), *options, given=given))
    return [(directory / each["file"], each["what"]) for each in changed]


def hide_in_files(directory: Path, values: Mapping[str, str]) -> None:
    """Hide the secrets of a run that has ended, where its engine was killed before it had."""
    for unhidden in scratch.unhidden(directory):
        # What cannot be written to stays as it is, and the next command tries again.
        with contextlib.suppress(EngineError):
            hide(unhidden, values)


def hide_abandoned(directory: Path) -> list[Path]:
    """Hide the secrets of a run whose engine and command were killed, so that nobody knows them.

    Its tables are made first, for spools have frames as they were sent.

    Returns:
        The files that say what was overwritten.

    Raises:
        EngineError: a file cannot be changed.
    """
    said = []
    for unhidden in scratch.unhidden(directory):
        if is_being_written(unhidden):
            # Its engine is alive, and knows them.
            continue
        if any(unhidden.glob("*.spool")):
            recover(unhidden)
        else:
            hide(unhidden, None)
        if (unhidden / OVERWRITTEN).is_file():
            said.append(unhidden / OVERWRITTEN)
    return said
