"""``--sql``: every message of a run in a database, while it goes on or afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from mqttlab.terminal import say


def export_messages(run: Path, url: str) -> None:
    """Write the messages of a recording into a database.

    Raises:
        RecordingError: it cannot be read.
        ExportError: the database cannot be used.
    """
    from mqttlab.export.sql import MessageDatabase
    from mqttlab.recording import Recording

    recording = Recording.open(run)
    if recording.going_on:
        say(f"mqttlab: {recording.going_on}", err=True)
    with MessageDatabase(url) as database:
        say(f"{database.write(recording)} rows: {database.name}")


def need_database(url: str | None) -> None:
    """Refuse a database that cannot be used, before anything runs.

    Raises:
        ExportError: it cannot.
    """
    if url is not None:
        from mqttlab.export.sql import MessageDatabase

        MessageDatabase(url).__exit__(None, None, None)


@contextlib.contextmanager
def followed(url: str | None, directory: Path) -> Iterator[None]:
    """Write the run of a directory into a database meanwhile; what goes wrong is a warning."""
    if url is None:
        yield
        return
    from mqttlab.export.sql import Follower, MessageDatabase
    from mqttlab.secrets import without_passwords

    with MessageDatabase(url) as database:
        follower = Follower(database, directory)
        try:
            with follower:
                yield
        finally:
            for problem in [] if follower.problem is None else follower.problem.problems:
                say(f"mqttlab: warning: {problem}; mqttlab export {directory} --sql {without_passwords(url)} "
                    "writes it again", err=True)
