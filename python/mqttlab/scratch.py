"""All that a command makes beside its result, in one directory of this user: ``$TMPDIR/mqttlab-UID``, or ``/tmp/…``.

As the engine's (``crates/live/src/host/scratch.rs``): each directory in it is locked (flock(2)) while its owner lives.
The kernel frees the lock however the owner ends, and :func:`sweep` removes what has none. It is called whenever a
command begins. A directory is made and locked, and those without a lock are looked for, while the whole place is
locked: none is without a lock and has an owner.

What has to stand beside a result until it is whole (a page, a run's directory) is named in a file of such a directory,
and is removed with it.

``XDG_RUNTIME_DIR`` would be this user's alone, too, but is memory on most systems, and tables can be larger.

Raises:
    ScratchError: the place cannot be made, or belongs to somebody else.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, ClassVar

from mqttlab.errors import MqttlabError

PREFIX = "scratch-"
UNFINISHED = "unfinished"
"""The file that names what is removed with a directory."""
ENDS = ".unfinished"
"""How a name ends that is going to be another one."""
UNHIDDEN = "secrets-not-hidden.txt"
"""Stands in the directory of a recording as long as its files may show a secret."""
OF_WRITING = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
"""What the system says of files that are written, never of others that are read meanwhile."""
NO_ROOM_BYTES = 2**16
# All that is in a run's directory before its engine has written the plan.
BEFORE_THE_PLAN = {"origin.json"}


class ScratchError(MqttlabError):
    """There is no place for temporary files."""

    exit_status: ClassVar[int] = 1


class Scratch:
    """A private directory, which is gone when it is released; at the next start of a command, where its owner was
    killed."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    def release(self) -> None:
        """Remove it, once or again."""
        lock, self._lock = self._lock, -1
        if lock != -1:
            _remove(self.path)
            os.close(lock)


def own() -> Path:
    """This user's place, made where it is missing.

    Raises:
        ScratchError: it cannot be made, or is somebody else's.
    """
    place = _place()
    try:
        # Others than its owner may not look into it, whatever the umask is.
        with contextlib.suppress(FileExistsError):
            place.mkdir(mode=0o700)
        os.close(_opened(place))
    except OSError as error:
        raise ScratchError(f"no temporary directory {place}: {error.strerror}; set TMPDIR to a directory that can be "
                           "written to") from error
    return place


def take(purpose: str, above: Path | None = None) -> Scratch:
    """A new private directory; first, those that nobody has any more are removed.

    Args:
        purpose: a part of its name.
        above: where it is made; this user's place when left out.

    Raises:
        ScratchError: none can be made.
    """
    above = above or own()
    try:
        with _alone(above):
            _remove_abandoned(above)
            for number in range(1_000_000):
                path = above / f"{PREFIX}{purpose}-{os.getpid()}-{number}"
                with contextlib.suppress(FileExistsError):
                    path.mkdir(mode=0o700)
                    return Scratch(path, _locked(path))
    except OSError as error:
        raise ScratchError(f"no temporary directory in {above}: {error.strerror}; set TMPDIR to a directory that can "
                           "be written to") from error
    raise AssertionError("a process has fewer scratch directories")


@contextmanager
def directory(purpose: str) -> Iterator[Path]:
    """A private directory for as long as the block takes.

    Raises:
        ScratchError: none can be made.
    """
    held = take(purpose)
    try:
        yield held.path
    finally:
        held.release()


@contextmanager
def unnamed() -> Iterator[IO[str]]:
    """A text file in memory: what a child complains of needs no disk, which may be full, and has no name."""
    with os.fdopen(os.memfd_create("mqttlab"), "w+", encoding="utf-8", errors="replace") as file:
        yield file


@contextmanager
def unfinished(out: Path) -> Iterator[Path]:
    """A path beside ``out`` for what gets that name when it is whole. Nothing is left of it where the block ends with
    an exception; at the next start of a command, where the process is killed in it.

    Raises:
        OSError: it cannot be written, or cannot get its name; the error has the name that it was to get.
    """
    if out.exists() and not out.is_file() and not out.is_dir():
        # Of a pipe or a device there is no half, and it stays what it is.
        yield out
        return
    # A link stays one: /dev/stdout may lead to a file.
    real = out.resolve() if out.is_symlink() else out
    made = real.with_name(f".{real.name}.{os.urandom(4).hex()}{ENDS}")
    try:
        with promised(made):
            try:
                yield made
            except Exception as error:
                if (code := _refused(error, made)) is None:
                    raise
                raise OSError(code, os.strerror(code), str(made)) from error
            made.replace(real)
    except OSError as error:
        # Nobody has asked for the file that was to get its name.
        named = None if error.filename is None else Path(os.fsdecode(error.filename))
        if named is not None and named.is_relative_to(made):
            error.filename, error.filename2 = str(out / named.relative_to(made)), None
        raise


def _refused(error: Exception, made: Path) -> int | None:
    """What the system has said where an error has not the name of the file that is written; ``None`` for other errors.

    An error of a file that is open has no name. One of Polars, whose classes are not loaded here, has no number: it is
    in its words, or, of a Parquet file, not even there.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno if error.filename is None and error.errno in OF_WRITING else None
    if not isinstance(error, OSError) and type(error).__module__.split(".")[0] != "polars":
        return None
    if (found := re.search(r"\(os error (\d{1,4})\)", str(error))) is not None:
        code = int(found[1])
        return code if code in OF_WRITING or str(made) in str(error) else None
    disk = os.statvfs(made.parent)
    return errno.ENOSPC if made.exists() and disk.f_bavail * disk.f_frsize < NO_ROOM_BYTES else None


class Promise:
    """What is going to be a result, and is removed as long as it is none."""

    def __init__(self, held: Scratch | None) -> None:
        self._held = held
        self.path: Path | None = None

    def of(self, path: Path | None) -> None:
        """From now on it is this path; of nothing, where somebody else sees to it."""
        self.path = None if path is None else path.absolute()
        if self._held is not None:
            (self._held.path / UNFINISHED).write_bytes(b"" if path is None else os.fsencode(path.absolute()))


@contextmanager
def promised(path: Path | None = None) -> Iterator[Promise]:
    """Remove what is promised behind the block, or at the next start of a command where the process is killed in it, as
    :func:`remove_unfinished` does: what has become a result stays."""
    held = None
    # What is written beside a result needs no place for temporary files.
    with contextlib.suppress(ScratchError):
        held = take(UNFINISHED)
    promise = Promise(held)
    try:
        with contextlib.suppress(OSError):
            promise.of(path)
        yield promise
    finally:
        if promise.path is not None:
            remove_unfinished(promise.path)
        if held is not None:
            held.release()


def remove_unfinished(path: Path) -> None:
    """Remove a file or a directory that has not got its name, or a run's directory without a plan; another directory
    stays."""
    with contextlib.suppress(OSError):
        if not path.is_dir() or path.is_symlink():
            path.unlink(missing_ok=True)
        elif path.name.startswith(".") and path.name.endswith(ENDS):
            _remove(path)
        elif {entry.name for entry in os.scandir(path)} <= BEFORE_THE_PLAN:
            for name in BEFORE_THE_PLAN:
                (path / name).unlink(missing_ok=True)
            path.rmdir()


def unhidden(directory: Path) -> list[Path]:
    """Where files may show a secret: the directory of a recording, and those of its parts."""
    return [file.parent for pattern in (UNHIDDEN, f"parts/*/{UNHIDDEN}") for file in sorted(directory.glob(pattern))]


def sweep() -> list[Path]:
    """Remove what commands that were killed have left. What cannot be removed stays.

    Returns:
        Directories of runs whose command was killed, and whose files may show a secret. They are returned again until
        they do not.
    """
    place = _place()
    with contextlib.suppress(OSError):
        if any(entry.name.startswith(PREFIX) for entry in os.scandir(place)):
            with _alone(place):
                return _remove_abandoned(place)
    return []


def _place() -> Path:
    return Path(os.environ.get("TMPDIR") or "/tmp", f"mqttlab-{os.getuid()}").absolute()


def _opened(place: Path) -> int:
    """A descriptor of a directory that is this user's alone.

    Raises:
        OSError: it is not, or is a symbolic link.
    """
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.getuid():
            raise PermissionError(1, "it belongs to another user")
        if stat.S_IMODE(found.st_mode) & 0o077:
            os.fchmod(descriptor, 0o700)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def _alone(above: Path) -> Iterator[None]:
    """Hold the place: nobody makes or removes anything in it meanwhile."""
    descriptor = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _locked(path: Path) -> int:
    # Not for processes that it starts: these may live on, and the lock with them.
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _remove_abandoned(above: Path) -> list[Path]:
    to_hide = []
    for entry in list(os.scandir(above)):
        # One that has an owner, or is another user's.
        with contextlib.suppress(OSError):
            if entry.name.startswith(PREFIX):
                lock = _locked(Path(entry.path))
                try:
                    with contextlib.suppress(FileNotFoundError):
                        if named := (Path(entry.path) / UNFINISHED).read_bytes():
                            remove_unfinished(left := Path(os.fsdecode(named)))
                            if unhidden(left):
                                to_hide.append(left)
                                continue
                    _remove(Path(entry.path))
                finally:
                    os.close(lock)
    return to_hide


def _remove(path: Path) -> None:
    # Loaded by who has something to remove.
    import shutil

    shutil.rmtree(path, ignore_errors=True)
