"""Where the dashboard listens, and who may speak to it under which name."""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mqttlab.digits import whole
from mqttlab.errors import MqttlabError
from mqttlab.mistaken import UserFileError, readable

PORT = 8350
SECRET_LEAST = 12
PASSWORD_BYTES_MAX = 1_000_000


class AddressError(MqttlabError):
    """The dashboard cannot listen there, or its secret cannot be used."""


@dataclass(frozen=True, kw_only=True)
class Listen:
    """An address to listen at, and the names under which browsers may call it."""

    host: str
    port: int
    names: frozenset[str]

    @classmethod
    def read(cls, text: str, names: Sequence[str] = (), *, option: str = "--listen", default: int = PORT) -> Listen:
        """Read ``HOST``, ``HOST:PORT`` or ``[HOST]:PORT``.

        Args:
            text: an IP address or ``localhost``; port 0 is any that is free.
            names: further host names that browsers may use.
            option: what messages name.
            default: the port where none is given.

        Raises:
            AddressError: it is neither.
        """
        host, port = _split(text, option, default)
        host = "127.0.0.1" if host == "localhost" else host
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            named = ", and --host-name for the name that browsers use" if option == "--listen" else ""
            raise AddressError(
                f"{option} {text}: {host!r} is not an IP address; write 127.0.0.1:{default}, 0.0.0.0:{default} or "
                f"[::1]:{default}{named}") from None
        own = {"localhost", "127.0.0.1", "[::1]"} if address.is_loopback or address.is_unspecified else set()
        own |= set() if address.is_unspecified else {f"[{host}]" if address.version == 6 else host}
        return cls(host=host, port=port, names=frozenset(own | {name.lower() for name in names}))

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.host).is_loopback

    @property
    def shown(self) -> str:
        """The host as an address in a browser has it."""
        if ipaddress.ip_address(self.host).is_unspecified:
            named = sorted(self.names - {"localhost", "127.0.0.1", "[::1]"})
            return named[0] if named else "127.0.0.1"
        return f"[{self.host}]" if ":" in self.host else self.host

    def knows(self, authority: str) -> bool:
        """Whether a ``Host`` header names this server: another name may be somebody's who points it here."""
        name, separator, port = authority.lower().rpartition(":")
        if not separator or authority.endswith("]"):
            name, port = authority.lower(), ""
        return name in self.names and port in ("", str(self.port))


def _split(text: str, option: str, default: int) -> tuple[str, int]:
    if text.startswith("[") and "]" in text:
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    number = whole(port) if port else default
    if number is None or number > 65_535:
        raise AddressError(f"{option} {text}: {port!r} is not a port; write 0 (any) to 65535")
    return host, number


def read_secret(file: Path | None, kept: Path) -> str:
    """The secret that opens the dashboard: the user's, or one that is made once and kept.

    Args:
        file: a file with a password in its first line, if the user has one.
        kept: where the one that is made is kept, readable by its owner alone, so that a dashboard that is started again
            knows the browsers that it knew.

    Raises:
        AddressError: the file cannot be read, or its password is too short to be one.
    """
    if file is not None:
        try:
            with readable(file, PASSWORD_BYTES_MAX, "a password"):
                secret = file.read_text(encoding="utf-8").split("\n")[0].strip()
        except UserFileError as error:
            raise AddressError(f"--password-file {file}: {error}") from error
        if len(secret) < SECRET_LEAST:
            raise AddressError(f"--password-file {file}: the password has {len(secret)} characters; write at least "
                               f"{SECRET_LEAST}")
        return secret
    try:
        found = kept.read_text(encoding="ascii").strip()
        if len(found) >= SECRET_LEAST and kept.stat().st_mode & 0o077 == 0:
            return found
    except (OSError, UnicodeDecodeError):
        pass
    secret = secrets.token_urlsafe(24)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.unlink(missing_ok=True)
        kept.touch(mode=0o600)
        kept.write_text(secret + "\n", encoding="ascii")
    except OSError:
        # A home that cannot be written to: the token holds until this dashboard ends.
        pass
    return secret
