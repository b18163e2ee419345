"""Taking recordings into a catalog, as runs, imports and experiments do at their end: without SQLAlchemy on a file."""

from __future__ import annotations

from pathlib import Path

from mqttlab.catalog import writing
from mqttlab.catalog.database import Database
from mqttlab.catalog.place import CatalogError, path_of
from mqttlab.catalog.reading import Facts, read
from mqttlab.catalog.rows import Rows
from mqttlab.recording import Recording


def add(database: Database, directory: Path, recording: Recording | None = None) -> str:
    """Take a recording into a catalog, or again; returns its identifier.

    Args:
        database: the catalog's, open for writing.
        directory: where the recording is.
        recording: the same, where it is open already: what it has read is not read again.

    Raises:
        RecordingError: it cannot be read.
        CatalogError: it is being written, or is a copy of one that is in the catalog and still there.
    """
    facts = read(directory, recording)
    copied = add_facts(database, facts)
    if copied is not None:
        raise CatalogError(f"{directory} is a copy of {copied}, which is in the catalog; remove one of them")
    return str(facts.run["run_id"])


def add_facts(database: Database, facts: Facts) -> Path | None:
    """Put facts into a catalog; returns what they are a copy of, and puts nothing then."""
    return database.write(lambda rows: _put(rows, facts, database.base))


def _put(rows: Rows, facts: Facts, base: Path | None) -> Path | None:
    stored = writing.stored_as(facts.directory, base)
    known = rows.find("run", ("directory",), run_id=facts.run["run_id"])
    if known and known[0][0] != stored:
        other = path_of(known[0][0], base)
        if (other / "plan.json").is_file():
            return other
    experiment = facts.origin.experiment
    place = None if experiment is None else writing.stored_as(experiment.directory, base)
    writing.put(rows, facts, stored, place)
    return None
