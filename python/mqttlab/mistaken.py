"""What a path is that was given where something else was expected: in words, with the command that takes it. And the
files that a scenario names: where they are, and what is wrong with them.

A problem says both on one line, so that nobody has to look up what a file is called here.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

# Files by their first bytes: pcapng, pcap of either byte order in µs and ns and modified, snoop, Network Monitor, gzip,
# Zstandard, Parquet, ZIP, SQLite.
CAPTURES = (b"\x0a\x0d\x0d\x0a", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d",
            b"\x34\xcd\xb2\xa1", b"\xa1\xb2\xcd\x34", b"snoop\0\0\0", b"RTSS", b"GMBU")
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
OTHERS = {b"PAR1": "a Parquet table", b"PK\x03\x04": "a workbook or archive", b"SQLite format 3": "a database"}
HEAD_BYTES = 4096
# What lines of brokers' logs have in them: Mosquitto's, EMQX's.
OF_BROKERS = ("mosquitto version ", "New client connected from ", "Received PUBLISH from ", "Sending PUBLISH to ",
              "mqtt_packet_received", "mqtt_packet_sent")
TABLE = "is a table"
# A line of YAML; a field of TOML has an equals sign, and a heading brackets.
_YAML = re.compile(r"---|%YAML|(- )?[A-Za-z_][\w -]*:(\s|$)")
_OF_TOML = re.compile(r"^\s*(\[\[?[\w.-]+\]|[\w.-]+\s*=)", re.MULTILINE)
NAMES_MAX = 4
NAMED_MAX = 20
COMPARED_MAX = 1_000


def what_it_is(path: Path) -> str | None:
    """What is at a path, and the command that takes it; none where nothing is there, or nothing is known of it."""
    try:
        if path.is_dir():
            return _directory(path)
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return None
    if head.startswith(CAPTURES) or (head.startswith(PACKED) and "pcap" in path.name):
        return f"is a capture; import it with: mqttlab import capture {path}"
    if head.startswith(PACKED):
        return "is a compressed file; unpack it, or import it with mqttlab import, if it is a capture or a log"
    if path.suffix.lower() == ".etl":
        return f"is a trace of Windows; make a capture of it with: etl2pcapng {path} {path.with_suffix('.pcapng')}"
    for first, what in OTHERS.items():
        if head.startswith(first):
            return f"is {what}{_part_of(path)}"
    text = head.decode("utf-8", errors="replace")
    return _toml(path) if path.suffix == ".toml" else text_is(text, path)


def text_is(text: str, path: Path) -> str | None:
    """What a text is that is not TOML."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    if text.lstrip().lower().startswith(("<!doctype", "<html", "<svg")):
        return f"is an HTML page{_part_of(path)}"
    if any(words in text for words in OF_BROKERS) and path.suffix != ".toml":
        return f"is a broker's log; import it with: mqttlab import log {path}"
    if text.lstrip().startswith(("{", "[{")) and _is_json(text):
        return f"is JSON{_part_of(path)}"
    bare = next((line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
    if path.suffix.lower() in (".yaml", ".yml") or (_YAML.match(bare) and not _OF_TOML.search(text)):
        return "is YAML"
    if first.startswith("publisher,sequence,"):
        # A name with a quote in it is written by others.
        return f"{TABLE} of a recording's messages; a scenario replays it: publish = {{ replay = \"{path}\" }}"
    if path.suffix == ".csv" or (first.count(",") >= 2 and "=" not in first and first[:1] not in "#["):
        return f"{TABLE}{_part_of(path)}; a table of messages is imported with: mqttlab import log {path}"
    return None


def _is_json(text: str) -> bool:
    """Whether a text is JSON, as far as it was read."""
    import json  # only where a file is not what it should be

    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        # What was cut off goes on behind its end; so does an inline table that somebody takes for a file.
        return error.pos >= len(text) - 1 or '":' in text
    except RecursionError:
        return True
    return True


def _directory(path: Path) -> str:
    if (path / "plan.json").is_file():
        return f"is a recording; its report: mqttlab report {path}"
    if (path / "journal.jsonl").is_file():
        return (f"is an experiment's directory; its report: mqttlab report {path}; to go on: mqttlab experiment "
                f"{path / 'experiment.toml'}")
    inner = sorted(path.iterdir())
    if any((each / "plan.json").is_file() or (each / "journal.jsonl").is_file() for each in inner):
        return f"is a directory of recordings; mqttlab list --runs {path} shows them"
    files = [each.name for each in inner if each.suffix == ".toml"]
    return "is a directory" + (f"; name a file in it, such as {path / files[0]}" if files else "; name a file")


def _toml(path: Path) -> str | None:
    import tomllib  # only where a file is not what it should be

    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    if "scenario" in values and "groups" not in values:
        return f"is an experiment; run it with: mqttlab experiment {path}"
    if "groups" in values:
        return f"is a scenario; run it with: mqttlab run {path}"
    return None


def _part_of(path: Path) -> str:
    """The recording that a file belongs to."""
    home = path.parent
    if not (home / "plan.json").is_file():
        return ""
    return f" of the recording {home}; its report: mqttlab report {home}"


def nearest_path(path: Path) -> str | None:
    """What is beside a path where nothing is, by the nearest name."""
    try:
        names = [each.name for each in path.parent.iterdir()]
    except OSError:
        return None
    # A recording by its scenario's name: the latest of that name.
    longer = sorted(name for name in names if path.name and name.startswith(f"{path.name}-") and
                    (path.parent / name).is_dir())
    if longer:
        return str(path.with_name(longer[-1]))
    # Names of one kind of file are alike by their ends alone.
    stems = [Path(name).stem for name in names if Path(name).suffix == path.suffix]
    near = [stem + path.suffix for stem in _alike(path.stem, stems, 0.6)]
    others = [name for name in names if Path(name).suffix != path.suffix]
    near += _alike(path.name, others, 0.6)
    return str(path.with_name(near[0])) if near else None


class UserFileError(ValueError):
    """A file that cannot be used; in words that follow its name."""


def beside(path: Path, directory: Path | None) -> Path:
    """A file that a scenario names: beside the scenario's, else in the working directory where it is only there."""
    if directory is None or path.is_absolute():
        return path
    with contextlib.suppress(OSError, ValueError):
        if path.exists() and not (directory / path).exists():
            return path
    return directory / path


@contextlib.contextmanager
def readable(path: Path, bytes_max: int, kind: str) -> Iterator[os.stat_result]:
    """Size and time of a user's file, which is read meanwhile: what is kept of it is kept by both.

    Raises:
        UserFileError: it is not there, no file, or too large; or it cannot be read as what it is read as.
    """
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise UserFileError("is a directory" if stat.S_ISDIR(about.st_mode) else "is no file")
        if about.st_size > bytes_max:
            raise UserFileError(f"has {about.st_size:,} B, but {kind} may have {bytes_max:,} B at most")
        if not about.st_size and not _is_empty(path):
            raise UserFileError("is no file: the system makes its contents when they are read")
        yield about
    except FileNotFoundError as error:
        near = nearest_path(path)
        raise UserFileError("is not there" + (f"; did you mean {near}?" if near else "")) from error
    except UnicodeDecodeError as error:
        other = what_it_is(path) or TABLE
        # A table in another encoding is still the table that was asked for.
        raise UserFileError(f"is not UTF-8 text (byte {error.start})" if other.startswith(TABLE) else other) from error
    except UserFileError:
        raise
    except ValueError as error:
        if "null" not in str(error):
            raise
        # No name of a file has one, so that the system is not even asked.
        raise UserFileError("has a NUL in its name, which no file has") from error
    except OSError as error:
        raise UserFileError(f"cannot be read: {error.strerror or error}") from error


def _is_empty(path: Path) -> bool:
    """Whether a file of 0 B has nothing in it. Those of ``/proc`` have, and some of them keep a reader waiting.

    Raises:
        OSError: it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return not os.read(descriptor, 1)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)


def closest(given: str, known: Collection[str], likeness: float = 0.5) -> str | None:
    """The known name that is most like a given one, of at least this likeness (0 to 1; difflib's ratio)."""
    # A comparison takes a time that grows with all letters of all names.
    near = _alike(given, known, likeness) if len(known) <= COMPARED_MAX else []
    return near[0] if near else None


def did_you_mean(given: str, known: Iterable[str], likeness: float = 0.5) -> str:
    """The nearest known name as a question, or the known names."""
    names = sorted(known) if isinstance(known, AbstractSet) else list(known)
    near = closest(given, names, likeness)
    return f"did you mean `{near}`?" if near else f"known: {some(names) or 'none'}"


def some(names: Sequence[str]) -> str:
    """Names one after the other, of many the first ones."""
    more = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f", and {more} more" if more > 0 else "")


def names_like(given: str, known: Collection[str]) -> list[str]:
    """What an unknown name may stand for: one with a slip; else those that have it in them; else the nearest one.

    Latencies come first, for what people call `p99` has a longer name.
    """
    slip = _alike(given, known, 0.8)
    containing = [name for name in known if given and given.lower() in name.lower()]
    containing.sort(key=lambda name: (not name.startswith("latency_"), len(name), name))
    return slip or containing[:NAMES_MAX] or _alike(given, known, 0.5)


def _alike(given: str, known: Collection[str], likeness: float) -> list[str]:
    """The known name that is most like a given one, if any is like it enough."""
    import difflib  # most commands meet no mistake

    return difflib.get_close_matches(given, known, n=1, cutoff=likeness)
