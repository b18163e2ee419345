"""Secrets: passwords, tokens, files with keys. Their values are in memory, marks stand for them elsewhere.

::

    { env = "NAME" } ──► value ──► mark ***6f1d0c2b9a8e7f35 ──► scenario, plan, recording, catalog, messages
                           └─────────────── behind the plan, on the engine's standard input

A mark is ``***`` and a digest with a key of this user: two runs can be told to have had the same secret, and who has
only the mark cannot try passwords. What a program must not show is taken out by :func:`hidden`.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Literal

from mqttlab.mistaken import UserFileError, readable

HIDDEN = "***"
MARK = re.compile(r"\*\*\*[0-9a-f]{16}")
KEY_FILE = "secret-key"
KEY_BYTES = 32
FILE_BYTES_MAX = 1_000_000
# A shorter secret stands in many a text by chance.
SHORTEST = 4
# And a shorter line, and a shorter value of a setting, as `true` is.
SHORTEST_LINE = 12
SHORTEST_SET = 6
CREDENTIALS = "mqttlab credentials"
"""How a list of clients' credentials begins; its columns stand behind it (``crates/plan/src/credentials.rs``)."""

TOLD = "MQTTLAB_SECRETS"
"""The environment variable in which the queue tells a command of its own what it needs: values by mark, and by
``$NAME`` of a variable."""

_values: dict[str, str] = {}
_variables: dict[str, str] = {}
_absent: dict[str, str] = {}
_written: set[str] = set()


@dataclass(frozen=True)
class TextClass:
    """Of a text field of a scenario: what it may hold. One that may be secret is where it is a reference, and where it
    looks like a secret."""

    name: Literal["secret", "may be secret", "personal", "plain"]


SECRET, MAY_BE_SECRET = TextClass("secret"), TextClass("may be secret")
PERSONAL, PLAIN = TextClass("personal"), TextClass("plain")
PersonalText = Annotated[str, PERSONAL]
PlainText = Annotated[str, PLAIN]
PlainPath = Annotated[Path, PLAIN]


class MissingSecret(ValueError):
    """A reference leads to nothing; in words that follow the field's name."""


def mark(value: str, *, written: bool = False) -> str:
    """The mark of a secret, whose value this process knows from now on; a mark is its own.

    Args:
        value: the secret.
        written: whether it stands in a scenario, where a reference should.
    """
    if is_mark(value):
        if value not in _values:
            _absent.setdefault(value, f"is `{value}`, which stands for a secret that was taken out; write where it is, "
                                      "such as { env = \"NAME\" }")
        return value
    made = HIDDEN + _digest("value", value)
    _values[made] = value
    if written:
        _written.add(made)
    return made


def mark_of_absent(why: str) -> str:
    """The mark of a secret whose reference leads to nothing: it has no value, and this is why."""
    made = HIDDEN + _digest("absent", why)
    _absent[made] = why
    return made


def is_mark(text: str) -> bool:
    """Whether a text stands for a secret."""
    return text == HIDDEN or MARK.fullmatch(text) is not None


def value_of(mark: str) -> str | None:
    """The value behind a mark, where this process knows it."""
    return _values.get(mark)


def why_absent(mark: str) -> str | None:
    """Why a mark has no value, in words that follow the field's name; none where it has one."""
    if mark in _values:
        return None
    return _absent.get(mark)


def any_is_absent() -> bool:
    """Whether this process has met a mark without a value."""
    return not _absent.keys() <= _values.keys()


def was_written(mark: str) -> bool:
    """Whether the secret stood in a scenario itself."""
    return mark in _written


def learn(values: dict[str, str]) -> None:
    """Know values by their marks, as another process of this user has told them."""
    _values.update({name: value for name, value in values.items() if MARK.fullmatch(name)})
    _variables.update({name: value for name, value in values.items() if name.startswith("$")})


def environment_without_variables() -> dict[str, str]:
    """The environment without the variables that references have named."""
    return {name: value for name, value in os.environ.items() if f"${name}" not in _variables}


def safe_url(url: str) -> str:
    """A URL with a mark in the place of its password, which :func:`revealed` puts back; of those in its query, too.

    A password ends at the last ``@`` before the database. An ``@`` in it is encoded (RFC 3986, section 3.2.1): else the
    rest of the password is taken for a host, and asked of a name server.
    """
    def marked(text: str) -> str:
        return text if is_mark(text) else mark(text)

    if whole := _WITH_USER_INFO.fullmatch(url):
        url = whole[1] + marked(whole[2].replace("@", "%40")) + whole[3]
    return _IN_QUERY.sub(lambda part: part[1] + marked(part[2]), url)


def url_to_show(url: str) -> str:
    """A URL of :func:`safe_url` without its marks."""
    return MARK.sub(HIDDEN, url)


def revealed(text: str) -> str:
    """A text with the values of the marks in it, for who uses it and shows it to nobody."""
    return MARK.sub(lambda found: _values.get(found[0], found[0]), text)


def variables() -> dict[str, str]:
    """The environment variables that references of this process have named, by ``$NAME``, for :data:`TOLD`."""
    return dict(_variables)


def values_in(text: str) -> dict[str, str]:
    """The values of all marks in a text that this process knows."""
    return {found: _values[found] for found in MARK.findall(text) if found in _values}


def hidden(text: str, more: Iterable[str] = ()) -> str:
    """A text without the secrets that this process knows, and without those in ``more``."""
    known = {value: mark for mark, value in dict(_values).items()} | {value: mark_or_hidden(value) for value in more}
    found = {part: mark for value, mark in known.items() for part in parts(value)}
    # A secret may be a part of another one.
    for part in sorted(found, key=len, reverse=True):
        if part in text:
            text = text.replace(part, found[part])
    return without_passwords(text)


def parts(value: str) -> frozenset[str]:
    """A secret, and of a file what a program prints of it: a line, or what a line sets a password to. The engine has
    the same (``crates/plan/src/secret.rs``). Of a list of credentials the passwords."""
    return _parts_of_list(value) if value.startswith(CREDENTIALS) else _parts(value)


@lru_cache(maxsize=16)
def _parts_of_list(value: str) -> frozenset[str]:
    columns, *rows = (line.split("\t") for line in value.splitlines())
    if "password" not in columns:
        return frozenset()
    place = columns.index("password") - 1
    return frozenset(row[place] for row in rows if len(row[place]) >= SHORTEST)


def _parts(value: str) -> frozenset[str]:
    whole = {value} if len(value) >= SHORTEST else set()
    lines = {line for part in value.splitlines() if len(line := part.strip()) >= SHORTEST_LINE}
    return frozenset(whole | lines | {found[1] for found in _SET.finditer(value) if len(found[1]) >= SHORTEST_SET})


def mark_or_hidden(value: str) -> str:
    """What is shown of a value: its mark where there is a key, and it is a secret of a scenario."""
    return HIDDEN + _digest("value", value)


def from_environment(name: str) -> str:
    """The value of an environment variable.

    Raises:
        MissingSecret: it is not set.
    """
    value = os.environ.get(name, _variables.get(f"${name}"))
    if value is None:
        raise MissingSecret(f"is in the environment variable {name}, which is not set; set it: export {name}=...")
    _variables[f"${name}"] = value
    return value


def from_file(path: Path) -> str:
    """The text of a file, without the end of its last line.

    Raises:
        MissingSecret: it cannot be read.
    """
    try:
        with readable(path, FILE_BYTES_MAX, "a secret"):
            return path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except UserFileError as error:
        raise MissingSecret(f"is in the file {path}, which {error}") from error


# What looks like a secret where anything may be written. Whoever writes one there in another way is not protected.

_NAME = re.compile(r"pass(?:word|wd|phrase)|(?:^|_)pw(?:$|_)|secret|token|credential|(?:api|access|private|shared|psk)"
                   r"_?key|(?:^|_)psk(?:$|_)", re.IGNORECASE)
# What stands for an address, a port or a name is filled in later, also behind an option that others use for a password:
# -p of mosquitto_sub.
_PLACEHOLDER = re.compile(r"\{(?:[a-z]+_)?(?:address|port)\}|\{client_id\}|\{group\}|\{client\}")
_OPTION = re.compile(r"-P|--?[a-z-]*(?:pw|password|passwd|passphrase|token|secret|psk)", re.IGNORECASE)
_GIVEN = re.compile(r"(--?[a-z-]*(?:pw|password|passwd|passphrase|token|secret|psk)=).+", re.IGNORECASE | re.DOTALL)
_LINE = re.compile(r"^[ \t\"']*[\w.-]*(?:password|passwd|passphrase|secret|token|psk)[\"']?[ \t]*[=: ][ \t]*\S",
                   re.IGNORECASE | re.MULTILINE)
_SET = re.compile(r"^[ \t\"']*[\w.-]*(?:password|passwd|passphrase|secret|token|psk)[\"']?[ \t]*[=: \t][=: \t\"']*"
                  r"(.*?)[ \t,\"']*$", re.IGNORECASE | re.MULTILINE)
_QUERY = re.compile(r"[?&][^=&]*(?:token|signature|password|secret|credential|key)[^=&]*=", re.IGNORECASE)
_USER_INFO = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^/@\s:?#\"']*:)([^/\s\"']+)(?=@)", re.IGNORECASE)

# Before the password; the password, which may have a slash before its first @; the host and what follows it.
_WITH_USER_INFO = re.compile(r"([a-z][a-z0-9+.-]*://[^/@\s:?#]*:)([^@]+(?:@[^@/?#]*)*)(@[^@/?#]*(?:[/?#].*)?)",
                             re.IGNORECASE | re.DOTALL)
_IN_QUERY = re.compile(r"([?&][^=&]*(?:password|passwd|token|secret|signature)[^=&]*=)([^&#]+)", re.IGNORECASE)


def is_secret_variable(name: str, value: str) -> bool:
    """Whether an environment variable looks like a secret: by its name, or as a URL with a password."""
    return _NAME.search(name) is not None or is_secret_text(value)


def is_secret_argument(before: str, argument: str) -> bool:
    """Whether an argument of a command looks like a secret. A placeholder does not."""
    return _PLACEHOLDER.fullmatch(argument) is None and (
        _OPTION.fullmatch(before) is not None or _GIVEN.fullmatch(argument) is not None or is_secret_text(argument))


def is_secret_text(text: str) -> bool:
    """Whether a text has a private key, a line that sets a password, or a URL with a password."""
    return "PRIVATE KEY-----" in text or _LINE.search(text) is not None or _USER_INFO.search(text) is not None


def is_secret_path(path: str) -> bool:
    """Whether a resource of HTTP has a token in its query."""
    return _QUERY.search(path) is not None


def without_passwords(text: str) -> str:
    """A text without the passwords of the URLs in it."""
    return _USER_INFO.sub(lambda found: found[0] if is_mark(found[2]) else found[1] + HIDDEN, text)


def _digest(purpose: str, text: str) -> str:
    made = hmac.new(_key(), f"{purpose}\0{text}".encode("utf-8", "surrogatepass"), hashlib.sha256)
    return made.hexdigest()[:16]


def state_directory() -> Path:
    """Where this user's state of mqttlab is kept."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "mqttlab"


def _key() -> bytes:
    return _key_in(state_directory() / KEY_FILE)


@cache
def _key_in(file: Path) -> bytes:
    """The user's key, made where there is none; of a home that cannot be written to, a key of this process alone."""
    for _ in range(2):
        with contextlib.suppress(OSError):
            found = file.read_bytes()
            if len(found) == KEY_BYTES:
                return found
            file.unlink()
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary = file.with_name(f".{KEY_FILE}-{os.getpid()}")
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                out.write(os.urandom(KEY_BYTES))
            # Of several processes that make one at once, all read the first one's.
            with contextlib.suppress(FileExistsError):
                os.link(temporary, file)
            temporary.unlink()
    return os.urandom(KEY_BYTES)


def _hear() -> None:
    """Take what the queue has told, so that no program of ours finds it in its environment."""
    told = os.environ.pop(TOLD, None)
    with contextlib.suppress(ValueError):
        learn(json.loads(told) if told else {})


_hear()
