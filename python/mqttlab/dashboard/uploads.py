"""Captures and logs that somebody drops on the page: written to disk part by part, and imported by the queue.

A browser sends a file in parts of some megabytes, so that no part is kept in memory, none is taken before its sender
was let in, and a limit holds before the disk is full. What is complete is handed to the queue as ``mqttlab import``.
"""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from mqttlab.dashboard.jobs import Jobs
from mqttlab.errors import MqttlabError
from mqttlab.files import make_private
from mqttlab.queue.client import Driver
from mqttlab.runs.job import ulid

PLACE = ".dashboard/uploads"
PART_BYTES_MAX = 4_000_000
BYTES_MAX = 2_000_000_000
# An import takes about as much again as its file, in spools and tables.
FREE_AFTER = 3
UNFINISHED_MAX = 8
FORGOTTEN_AFTER_S = 3600
CAPTURES = (b"\x0a\x0d\x0d\x0a", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d")
PACKED = {b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}
# Rotated logs have a number behind their names.
LOGS = re.compile(r"\.(log|csv)(\.\d+)?(\.(gz|zst))?$")


class UploadError(MqttlabError):
    """A file is not taken."""


@dataclass(frozen=True, kw_only=True)
class Upload:
    """A file that is being sent."""

    identifier: str
    path: Path


class Uploads:
    """The files that are sent to one directory of runs."""

    def __init__(self, jobs: Jobs, *, bytes_max: int = BYTES_MAX) -> None:
        self._jobs = jobs
        self._place = jobs.runs / PLACE
        self.bytes_max = bytes_max

    def begin(self, name: str, size: int) -> str:
        """Begin a file, and return the identifier under which its parts are sent.

        Args:
            name: as the browser has it; only its letters are kept.
            size: of the whole file, in bytes.

        Raises:
            UploadError: it is too large, or there are too many that are not finished.
            OSError: nothing can be written below the runs.
        """
        if not 0 < size <= self.bytes_max:
            raise UploadError(f"{_safe(name)} has {size:,} bytes, but must have from 1 to {self.bytes_max:,}; "
                              "mqttlab import takes files of any size")
        make_private(self._place)
        self._forget()
        if len([*self._place.iterdir()]) >= UNFINISHED_MAX:
            raise UploadError(f"{UNFINISHED_MAX} files are being sent already; try again in a moment")
        free = shutil.disk_usage(self._place).free
        if size * FREE_AFTER > free:
            raise UploadError(f"{_safe(name)} and its recording would take {size * FREE_AFTER / 1e6:,.0f} MB, and the "
                              f"disk has {free / 1e6:,.0f} MB free")
        identifier = ulid()
        place = self._place / identifier
        place.mkdir()
        (place / _safe(name)).touch()
        (place / "size").write_text(str(size), encoding="ascii")
        return identifier

    def add(self, identifier: str, offset: int, part: bytes) -> int:
        """Add a part, and return how many bytes there are.

        Raises:
            UploadError: there is no such file, the part is not the next one, or more than was said.
        """
        upload = self._find(identifier)
        there, wanted = upload.path.stat().st_size, self._size(upload)
        if offset != there or there + len(part) > wanted or len(part) > PART_BYTES_MAX:
            raise UploadError(f"the part at {offset} does not follow what is there ({there} of {wanted} bytes)")
        with upload.path.open("ab") as file:
            file.write(part)
        return there + len(part)

    def finish(self, identifier: str) -> str:
        """Hand a whole file to the queue, which imports it; returns the import's label.

        Raises:
            UploadError: it is not whole, or is neither a capture nor a log; it is removed.
            QueueError: the queue does not take it.
        """
        upload = self._find(identifier)
        try:
            if upload.path.stat().st_size != self._size(upload):
                raise UploadError(f"{upload.path.name} is not whole; send it again")
            kind = kind_of(upload.path)
        except UploadError:
            shutil.rmtree(upload.path.parent, ignore_errors=True)
            raise
        label = f"import-{identifier[-6:]}-{upload.path.name}"
        kept = self._jobs.runs / ".dashboard" / "captures" / identifier
        make_private(kept.parent)
        upload.path.parent.rename(kept)
        self._jobs.queue.add_driver(
            ["import", kind, str(kept / upload.path.name), "--runs", str(self._jobs.runs), "--no-html", "--output",
             str(self._jobs.runs / f"{_stem(upload.path)}-{identifier[-6:].lower()}")], label=label,
            directory=self._jobs.runs)
        return label

    def imports(self) -> list[Driver]:
        """The imports of these runs that wait, run, or have ended, the latest first."""
        below = str(self._jobs.runs / ".dashboard" / "captures")
        return [driver for driver in reversed(self._jobs.queue.drivers(all_=True))
                if driver.command[:1] == ["import"] and driver.command[2].startswith(f"{below}/")]

    def run_of(self, driver: Driver) -> str | None:
        """The name of the recording that an import has made; nothing before it is there."""
        directory = Path(driver.command[driver.command.index("--output") + 1])
        return directory.name if (directory / "plan.json").is_file() else None

    def _find(self, identifier: str) -> Upload:
        place = self._place / identifier
        if not re.fullmatch(r"[0-9A-Z]{26}", identifier) or not place.is_dir():
            raise UploadError("there is no such file; begin it again")
        [path] = [path for path in place.iterdir() if path.name != "size"]
        return Upload(identifier=identifier, path=path)

    def _size(self, upload: Upload) -> int:
        return int((upload.path.parent / "size").read_text(encoding="ascii"))

    def _forget(self) -> None:
        """Remove what nobody has finished."""
        for place in self._place.iterdir():
            if time.time() - place.stat().st_mtime > FORGOTTEN_AFTER_S:
                shutil.rmtree(place, ignore_errors=True)


def kind_of(path: Path) -> str:
    """``capture`` or ``log``, by what the file begins with; by its name where it is packed or a text.

    Raises:
        UploadError: it is neither.
    """
    with path.open("rb") as file:
        begins = file.read(4)
    name = path.name.lower()
    packed = any(begins.startswith(letters) for letters in PACKED)
    if begins in CAPTURES or (packed and re.search(r"\.(pcapng|pcap|cap|ntar)\.(gz|zst)$", name)):
        return "capture"
    if LOGS.search(name) and (packed or b"\0" not in begins):
        return "log"
    raise UploadError(f"{path.name} is neither a capture (pcapng, pcap) nor a log (.log, .csv)")


def _stem(path: Path) -> str:
    """A file's name without what only says how it is stored."""
    return re.sub(r"\.(gz|zst)$", "", path.name).rpartition(".")[0] or "capture"


def _safe(name: str) -> str:
    """A file's name with nothing in it that a path or a command could read otherwise."""
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(name.replace("\\", "/")).name)[-100:].lstrip(".-")
    return kept if kept and kept != "size" else "capture"
