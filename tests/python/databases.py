"""Database servers of one's own: PostgreSQL and MariaDB, started as an ordinary user in a temporary directory.

Each is started when it is first asked for, and ends with the tests.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

KINDS = ("sqlite", "postgresql", "mariadb")
COUNT = itertools.count(1)
START_S = 60


def new_database(kind: str, directory: Path) -> str:
    """The URL of a new, empty database; skips the test where the server is not installed."""
    if kind == "sqlite":
        return f"sqlite:///{directory}/catalog.db"
    server, name = _server(kind), f"test{next(COUNT)}"
    engine = sa.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return sa.make_url(server).set(database=name).render_as_string(hide_password=False)


@functools.cache
def _server(kind: str) -> str:
    return _postgresql() if kind == "postgresql" else _mariadb()


def _postgresql() -> str:
    pytest.importorskip("psycopg")
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    initdb = _program("initdb", "postgresql", *homes)
    postgres = _program("postgres", "postgresql", *homes)
    home = _home()
    data = home / "data"
    _run([initdb, "-D", data, "-U", "lab", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
    _start([postgres, "-D", data, "-k", home, "-c", "listen_addresses=", "-c", "fsync=off"], home,
           # At once, but without the shared memory that a killed one leaves.
           signal.SIGQUIT)
    url = f"postgresql+psycopg://lab@/postgres?host={home}"
    return _wait(url, lambda: (home / ".s.PGSQL.5432").exists())


def _mariadb() -> str:
    pytest.importorskip("pymysql")
    install = _program("mariadb-install-db", "mariadb-server")
    mariadbd = _program("mariadbd", "mariadb-server")
    home = _home()
    data = home / "data"
    _run([install, "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db",
          "--skip-name-resolve"])
    _start([mariadbd, "--no-defaults", f"--datadir={data}", f"--socket={home}/socket", "--skip-networking",
            "--skip-log-bin", "--innodb-flush-log-at-trx-commit=0", f"--pid-file={home}/pid"], home, signal.SIGKILL)
    return _wait(f"mariadb+pymysql://root@localhost/mysql?unix_socket={home}/socket", (home / "socket").exists)


def _program(name: str, package: str, *places: Path) -> Path:
    path = os.pathsep.join([*map(str, places), os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian: apt-get install {package})")
    return Path(found)


def _home() -> Path:
    home = Path(tempfile.mkdtemp(prefix="mqttlab-server-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    if _user():
        user = pwd.getpwnam("nobody")
        os.chown(home, user.pw_uid, user.pw_gid)
    return home


def _user() -> dict[str, Any]:
    """Neither server runs as root."""
    return {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}


def _run(command: list[Any]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", timeout=START_S, **_user())
    assert done.returncode == 0, done.stdout + done.stderr


def _start(command: list[Any], home: Path, ends_by: signal.Signals) -> None:
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **_user())

    def end() -> None:
        # Its files go with it, so that nothing is gained by an orderly end, which takes seconds.
        server.send_signal(ends_by)
        server.wait(20)

    atexit.register(end)


def _wait(url: str, ready: Callable[[], bool]) -> str:
    deadline = time.monotonic() + START_S
    while True:
        try:
            if ready():
                engine = sa.create_engine(url)
                engine.connect().close()
                engine.dispose()
                return url
        except sa.exc.OperationalError:
            pass
        assert time.monotonic() < deadline, "the server does not answer"
        time.sleep(0.05)
