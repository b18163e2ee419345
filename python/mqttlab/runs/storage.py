"""Recordings in another place, by URL: ``file://``, ``s3://`` and whatever else fsspec knows.

A recording is stored whole, ``run.json`` last, so that its presence means complete there, too. It is fetched whole,
into a cache of this user, before anything opens it: tables are read in pieces, and that is slow over a network.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from mqttlab import scratch, secrets
from mqttlab.errors import MqttlabError
from mqttlab.files import make_private

LAST = "run.json"


class StorageError(MqttlabError):
    """A place by URL cannot be reached, or has no recording."""

    exit_status = 1

    def __init__(self, words: str) -> None:
        super().__init__(secrets.hidden(words))


def is_url(place: str) -> bool:
    """Whether it is a URL, and no path."""
    return "://" in place


def store(directory: Path, url: str) -> None:
    """Copy a recording to a place.

    Raises:
        StorageError: nothing can be written there.
    """
    files, place = _opened(url)
    names = sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())
    try:
        for name in sorted(names, key=lambda name: name == LAST):
            target = f"{place}/{name}"
            files.makedirs(target.rpartition("/")[0], exist_ok=True)
            files.put_file(str(directory / name), target)
    except Exception as error:
        raise StorageError(f"{url}: the recording cannot be stored: {_words(error)}") from error


def is_complete(url: str) -> bool:
    """Whether there is a recording that came to its end."""
    files, place = _opened(url)
    try:
        return bool(files.exists(f"{place}/{LAST}"))
    except Exception as error:
        raise StorageError(f"{url}: cannot be read: {_words(error)}") from error


def fetch(url: str, cache: Path | None = None) -> Path:
    """A local copy of a recording; fetched once, for a recording does not change.

    Raises:
        StorageError: there is none, or it cannot be read.
    """
    cache = cache or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mqttlab" / "recordings"
    name = url.rstrip("/").rpartition("/")[2]
    local = cache / hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16] / name
    if local.is_dir():
        return local
    files, place = _opened(url)
    make_private(local.parent)
    held = scratch.take("fetched", local.parent)
    fetched = held.path
    try:
        found = files.find(place)
        if not any(str(path).endswith("/plan.json") for path in found):
            raise StorageError(f"{url} is not a recording: it has no plan.json")
        for path in found:
            target = fetched / str(path)[len(place) :].lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            files.get_file(path, str(target))
        fetched.rename(local)
    except StorageError:
        raise
    except FileExistsError:
        # Somebody else has fetched it meanwhile.
        return local
    except Exception as error:
        if local.is_dir():
            return local
        raise StorageError(f"{url}: cannot be fetched: {_words(error)}") from error
    finally:
        held.release()
    return local


def _opened(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise StorageError(f"{url}: fsspec is not installed; pip install 'mqttlab[cluster]'") from error
    try:
        files, place = url_to_fs(secrets.revealed(url))
    except (ImportError, ValueError) as error:
        raise StorageError(f"{url}: {_words(error)}") from error
    return files, str(place).rstrip("/")


def _words(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
