"""Where a catalog is: its URL, and whether a file of SQLite may lie there.

SQLite's write-ahead log needs memory that all of its users share, which a network file system does not give: on one of
those a catalog is refused, before it is damaged.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from mqttlab import secrets
from mqttlab.errors import MqttlabError

FILE = "catalog.db"
VARIABLE = "env:"
"""Before the name of a variable with a URL, in the place of the URL."""
# As long as a key may be: one of InnoDB has 3072 bytes, four for each letter.
PATH_LETTERS_MAX = 700
NAME_LETTERS_MAX = 255
# SQLAlchemy's names with the drivers that this package installs.
DRIVERS = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg", "mysql": "mysql+pymysql",
           "mariadb": "mariadb+pymysql"}
HOST = re.compile(r"(?:\[[^\]]*\]|[^:\[\]]*)(?::\d{1,5})?")
NETWORK_FILE_SYSTEMS = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "beegfs",
                        "gpfs",
                        "ocfs2", "gfs2", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.rclone", "fuse.s3fs",
                        "virtiofs",
                        "davfs", "fuse.davfs2"}


class CatalogError(MqttlabError):
    """The catalog is not there, cannot be opened, or is asked for what it does not have."""


class CatalogUnavailable(CatalogError):
    """The catalog cannot be reached or written now; nothing is wrong with what was asked."""

    exit_status = 1


def url_for(runs: Path) -> str:
    """The catalog of a directory of runs: ``catalog.db`` in it."""
    return url_of(str(runs / FILE))


def url_of(given: str, option: str = "--catalog") -> str:
    """A URL as SQLAlchemy reads it, with a mark in the place of a password, of a URL or of the path of an SQLite file;
    ``option`` is what messages name.

    Raises:
        CatalogError: nobody knows this kind of URL, or it has no host.
    """
    if given.startswith(VARIABLE):
        # A command's arguments are seen by all users of the machine.
        try:
            given = secrets.from_environment(given.removeprefix(VARIABLE))
        except secrets.MissingSecret as missing:
            raise CatalogError(f"{option} {given}: the URL {missing}") from missing
    if "://" not in given:
        return f"sqlite:///{Path(given).absolute()}"
    # Whoever opens it reveals the password; everybody else shows the mark.
    given = secrets.safe_url(given)
    scheme, _, rest = given.partition("://")
    if scheme == "sqlite":
        path = rest.removeprefix("/")
        return f"sqlite:///{Path(path).absolute()}"
    host = re.split("[/?]", rest[rest.find("@") + 1:], maxsplit=1)[0]
    # The library would show it, and with it a part of a password that has a colon.
    if scheme in {*DRIVERS, *DRIVERS.values()} and not HOST.fullmatch(host):
        raise CatalogError(f"{option} {scheme}://…: this has no host, or a port that is no number; in a password write "
                           ": as %3A, @ as %40 and / as %2F")
    if scheme in DRIVERS:
        return f"{DRIVERS[scheme]}://{rest}"
    if scheme in DRIVERS.values():
        return given
    known = "sqlite:///FILE, postgresql://USER@HOST/DATABASE, mariadb://USER@HOST/DATABASE"
    raise CatalogError(f"{option} {given}: `{scheme}` is no kind of database that is known here; write a file, or one "
                       "of "
                       f"{known}")


def file_of(url: str) -> Path | None:
    """The SQLite file of a URL of :func:`url_of`; none for servers."""
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else None


def path_of(stored: str, base: Path | None) -> Path:
    """A directory of which the catalog wrote this; what lies below a catalog's own directory is written from there."""
    path = Path(stored)
    return path if path.is_absolute() or base is None else base / path


def refuse_network(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> None:
    """Refuse a place on a network file system.

    Raises:
        CatalogError: it is on one.
    """
    kind = file_system(path, mounts)
    if kind in NETWORK_FILE_SYSTEMS:
        raise CatalogError(
            f"{path}: this is on a network file system ({kind}), where SQLite's write-ahead log is not safe; put the "
            "catalog on a local disk with --catalog FILE, or use a server with --catalog postgresql://… or mariadb://…")


def file_system(path: Path, mounts: Path) -> str | None:
    """The type of the file system that a path lies on, or would lie on."""
    there = path.absolute()
    while not os.path.lexists(there):
        there = there.parent
    there = there.resolve()
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    # proc(5): ID, parent, device, root, mount point, options, optional fields, "-", type. The last mount of a place
    # counts.
    best: tuple[int, str] | None = None
    for line in lines:
        before, _, after = line.partition(" - ")
        point = before.split()[4].encode().decode("unicode_escape")
        if there.is_relative_to(point) and (best is None or len(point) >= best[0]):
            best = (len(point), after.split()[0])
    return None if best is None else best[1]
