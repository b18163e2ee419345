"""Every message in a relational database: the five tables of andersen2021 (section 3.2.3, figure 3.3), while a run goes
on or after it.

::

    test ◄── node ◄── publisher_log    a row for each message offered: who, what, when it was due and when it was sent
      ▲        ▲ ◄─── subscriber_log   a row for each message and receiver: when it arrived, or what became of it
      └─ data ─┴───── what was sent: topic, kind, size, QoS; both logs refer to it

While a run goes on its recording is looked at from time to time, and what is certain by then is written: messages that
were sent, and deliveries. What became of the others is written when the run has ended. Times are nanoseconds since the
start of the run, as in the recording; ``test.started_at`` says when that was.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import polars as pl
import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, InterfaceError

from mqttlab import scratch, secrets
from mqttlab.catalog.place import file_of, refuse_network, url_of
from mqttlab.catalog.tables import LONG, OPTIONS
from mqttlab.engine import EngineError, is_being_written, snapshot
from mqttlab.errors import MqttlabError
from mqttlab.export.tables import ExportError
from mqttlab.foreign import stored, visible
from mqttlab.plan import publications_of, topics_of
from mqttlab.recording import Recording

METADATA = sa.MetaData(naming_convention={
    "ix": "ix_%(table_name)s_%(column_0_N_name)s", "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s", "pk": "pk_%(table_name)s",
})
NAME = sa.String(255)
ROWS_AT_ONCE = 5_000
LOOK_S = 1.0
# Looking takes no more than a tenth of the time.
LOOKS_APART = 10


def _to(table: str) -> sa.Column[int]:
    return sa.Column(f"{table}_id", sa.Integer, sa.ForeignKey(f"{table}.id", ondelete="CASCADE"), nullable=False,
                     index=True)


def _node(name: str, *, nullable: bool) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, sa.ForeignKey("node.id", ondelete="CASCADE"), nullable=nullable, index=True)


TEST = sa.Table(
    "test", METADATA, sa.Column("id", sa.Integer, primary_key=True), sa.Column("run", sa.String(40), nullable=False,
                                                                            unique=True),
    sa.Column("name", NAME, nullable=False), sa.Column("backend", sa.String(40), nullable=False),
    sa.Column("network", LONG), sa.Column("started_at", sa.String(40)), sa.Column("duration_s", sa.Double),
    sa.Column("state", sa.String(20), nullable=False), sa.Column("plan", LONG, nullable=False), **OPTIONS)
NODE = sa.Table(
    "node", METADATA, sa.Column("id", sa.Integer, primary_key=True), _to("test"),
    sa.Column("number", sa.Integer, nullable=False), sa.Column("name", NAME, nullable=False),
    sa.Column("client_group", NAME), sa.Column("host", NAME), sa.UniqueConstraint("test_id", "number"), **OPTIONS)
DATA = sa.Table(
    "data", METADATA, sa.Column("id", sa.Integer, primary_key=True), _to("test"), sa.Column("topic", LONG),
    sa.Column("kind", NAME), sa.Column("bytes", sa.BigInteger), sa.Column("qos", sa.Integer), **OPTIONS)
PUBLISHER_LOG = sa.Table(
    "publisher_log", METADATA, sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
    _to("test"), _node("node_id", nullable=True), sa.Column("message", sa.BigInteger), _to("data"),
    sa.Column("phase", sa.String(20)), sa.Column("intended_ns", sa.BigInteger), sa.Column("sent_ns", sa.BigInteger),
    sa.Column("acknowledged_ns", sa.BigInteger), **OPTIONS)
SUBSCRIBER_LOG = sa.Table(
    "subscriber_log", METADATA,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True), _to("test"),
    _node("node_id", nullable=True), _node("publisher_id", nullable=True), sa.Column("message", sa.BigInteger),
    _to("data"), sa.Column("phase", sa.String(20)), sa.Column("fate", sa.String(20), nullable=False),
    sa.Column("cause", sa.String(40)), sa.Column("received_ns", sa.BigInteger), sa.Column("latency_ns", sa.BigInteger),
    **OPTIONS)
# A message that is certain while its run goes on.
ARRIVED = pl.col("fate").is_in(["delivered", "duplicate", "retained", "foreign", "will"])
WHAT = ("topic", "qos", "payload_bytes", "publisher_group")


class MessageDatabase:
    """A database of messages. A context manager."""

    def __init__(self, url: str) -> None:
        """Connect, and make the tables where they are not there.

        Raises:
            ExportError: it cannot be reached, or is not such a database.
        """
        self.url = url_of(url, "--sql")
        file = file_of(self.url)
        if file is not None:
            if not file.parent.is_dir() or file.is_dir():
                raise ExportError(f"--sql {url}: name a file in a directory that is there")
            refuse_network(file)
        with self._problems():
            self.engine = sa.create_engine(secrets.revealed(self.url))
            if file is not None:
                sa.event.listen(self.engine, "connect", _sqlite)
            self.name = str(file) if file is not None else secrets.url_to_show(self.url)
            METADATA.create_all(self.engine)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.engine.dispose()

    def write(self, recording: Recording) -> int:
        """Write all messages of a recording, in the place of what the database had of it; returns how many rows.

        Raises:
            ExportError: it cannot be written.
        """
        return Writer(self, recording).write(recording, whole=True)

    @contextlib.contextmanager
    def _problems(self) -> Iterator[None]:
        try:
            yield
        except (DatabaseError, InterfaceError) as error:
            words: Any = error.orig
            text = words.args[1] if len(getattr(words, "args", ())) > 1 else words
            raise ExportError(secrets.hidden(f"--sql {self.url}: {' '.join(str(text).split())}")) from error
        except (sa.exc.ArgumentError, ModuleNotFoundError) as error:
            raise ExportError(secrets.hidden(f"--sql {self.url}: {str(error).splitlines()[0]}")) from error


class Writer:
    """Writes one run, once or bit by bit."""

    def __init__(self, database: MessageDatabase, recording: Recording) -> None:
        """Begin the run in the database: ``test`` and its nodes; what it had of the same run is removed."""
        self._database = database
        self._sent: pl.DataFrame | None = None
        self._arrived: pl.DataFrame | None = None
        self._data: dict[tuple[Any, ...], int] = {}
        groups: list[Any] = list(recording.plan["groups"])
        self._publications = {group["name"]: [
            (re.compile(topics_of(group, publish)), (publish.get("payload") or {}).get("kind"))
            for publish in publications_of(group)] for group in groups}
        layout = recording.layout
        with database._problems(), database.engine.begin() as connection:
            # Recordings of schema version 1 have no identifier.
            run = recording.run_id or hashlib.sha256(str(recording.directory.resolve()).encode()).hexdigest()[:40]
            connection.execute(TEST.delete().where(TEST.c.run == run))
            self._test = _key(connection.execute(TEST.insert().values(stored(_test(recording, run)))))
            self._nodes = [_key(connection.execute(NODE.insert().values(stored({
                "test_id": self._test, "number": number, "name": visible(client["name"])[:255],
                "client_group": client["group"], "host": layout["hosts"][client["host"]],
            })))) for number, client in enumerate(layout["clients"])]

    def write(self, recording: Recording, *, whole: bool) -> int:
        """Write what is not written yet; returns how many rows that were.

        Args:
            recording: the run, or what it had written by now.
            whole: it has ended: what became of the rest is known.
        """
        messages = recording.messages
        if messages.is_empty():
            messages = pl.DataFrame()
        with self._database._problems(), self._database.engine.begin() as connection:
            rows = 0 if messages.is_empty() else self._messages(connection, messages, whole)
            if whole:
                state = str(recording.run.get("status", "incomplete"))
                connection.execute(TEST.update().where(TEST.c.id == self._test).values(
                    state=state, started_at=recording.run.get("started_at")))
            return rows

    def _messages(self, connection: sa.Connection, messages: pl.DataFrame, whole: bool) -> int:
        offered = (messages.filter(pl.col("publisher").is_not_null(), pl.col("sequence").is_not_null())
                   .unique(["publisher", "sequence"], keep="first", maintain_order=True))
        if not whole:
            offered = offered.filter(pl.col("sent_ns").is_not_null())
        if self._sent is not None:
            offered = offered.join(self._sent, on=["publisher", "sequence"], how="anti", maintain_order="left")
        received = messages if whole else messages.filter(ARRIVED, pl.col("received_ns").is_not_null())
        received = received.filter(~pl.col("fate").is_in(["unsent", "no_receiver"]))
        keys = ["publisher", "sequence", "subscriber", "received_ns"]
        if self._arrived is not None:
            received = received.join(self._arrived, on=keys, how="anti", nulls_equal=True, maintain_order="left")
        self._put_data(connection, pl.concat([offered.select(WHAT), received.select(WHAT)]).unique())
        self._put(connection, PUBLISHER_LOG, offered, self._published)
        self._put(connection, SUBSCRIBER_LOG, received, self._received)
        pair = offered.select("publisher", "sequence")
        self._sent = pair if self._sent is None else pl.concat([self._sent, pair])
        arrived = received.select(keys)
        self._arrived = arrived if self._arrived is None else pl.concat([self._arrived, arrived])
        return offered.height + received.height

    def _put_data(self, connection: sa.Connection, what: pl.DataFrame) -> None:
        for key in what.sort(WHAT, nulls_last=True).iter_rows():
            if key not in self._data:
                topic, qos, size, group = key
                self._data[key] = _key(connection.execute(DATA.insert().values(stored({
                    "test_id": self._test, "topic": topic, "qos": qos, "bytes": size,
                    "kind": self._kind(group, topic)}))))

    def _kind(self, group: str | None, topic: str | None) -> str | None:
        """The kind of payload that a group publishes under a topic."""
        known = self._publications.get(group or "", [])
        if len(known) == 1:
            return known[0][1]
        return next((kind for topics, kind in known if topics.search(topic or "")), None)

    def _put(self, connection: sa.Connection, table: sa.Table, messages: pl.DataFrame, row: Any) -> None:
        for part in messages.iter_slices(ROWS_AT_ONCE):
            connection.execute(table.insert(), [stored(row(message)) for message in part.iter_rows(named=True)])

    def _published(self, message: dict[str, Any]) -> dict[str, Any]:
        return {
            "test_id": self._test, "node_id": self._node_of(message["publisher"]), "message": message["sequence"],
            "data_id": self._data[tuple(message[name] for name in WHAT)], "phase": message["phase"],
            "intended_ns": message["intended_ns"], "sent_ns": message["sent_ns"],
            "acknowledged_ns": message["acknowledged_ns"],
        }

    def _received(self, message: dict[str, Any]) -> dict[str, Any]:
        return {
            "test_id": self._test, "node_id": self._node_of(message["subscriber"]),
            "publisher_id": self._node_of(message["publisher"]), "message": message["sequence"],
            "data_id": self._data[tuple(message[name] for name in WHAT)], "phase": message["phase"],
            "fate": message["fate"], "cause": message.get("cause"), "received_ns": message["received_ns"],
            "latency_ns": message["latency_ns"],
        }

    def _node_of(self, client: int | None) -> int | None:
        return None if client is None else self._nodes[client]


class Follower:
    """Writes a run while it goes on, in a thread of its own. A context manager: at its end the rest is written.

    What goes wrong does not end the run: it is :attr:`problem` afterwards.
    """

    def __init__(self, database: MessageDatabase, directory: Path) -> None:
        self._database = database
        self._directory = directory
        self._writer: Writer | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="sql", daemon=True)
        self.problem: MqttlabError | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if self.problem is None and (self._directory / "plan.json").is_file():
            try:
                self._write(Recording.open(self._directory), whole=True)
            except MqttlabError as problem:
                self.problem = problem

    def _follow(self) -> None:
        pause = LOOK_S
        # Of a thread alone on Linux: the run is not to be disturbed.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
        while not self._over.wait(pause):
            began = time.monotonic()
            try:
                self._look()
            except EngineError:
                # It ended meanwhile, or has not begun.
                pass
            except MqttlabError as problem:
                self.problem = problem
                return
            pause = max(LOOK_S, LOOKS_APART * (time.monotonic() - began))

    def _look(self) -> None:
        if not (self._directory / "plan.json").is_file() or not is_being_written(self._directory):
            return
        with scratch.directory("sql") as place:
            snapshot(self._directory, place)
            self._write(Recording(place), whole=False)

    def _write(self, recording: Recording, *, whole: bool) -> None:
        if self._writer is None:
            self._writer = Writer(self._database, recording)
        self._writer.write(recording, whole=whole)


def _test(recording: Recording, run: str) -> dict[str, Any]:
    plan = recording.plan
    plan_text = (recording.directory / "plan.json").read_text(encoding="utf-8")
    return {
        "run": run, "name": visible(recording.name)[:255], "backend": str(plan.get("backend", "unknown")),
        "plan": plan_text, "network": plan["network"].get("description"), "started_at": recording.run.get("started_at"),
        "duration_s": plan["phases"]["duration_ns"] / 1e9, "state": str(recording.run.get("status", "incomplete")),
    }


def _key(result: sa.CursorResult[Any]) -> int:
    key = result.inserted_primary_key
    assert key is not None
    return int(key[0])


def _sqlite(connection: Any, _record: Any) -> None:
    for pragma in ("foreign_keys = ON", "journal_mode = WAL", "synchronous = NORMAL", "busy_timeout = 10000"):
        connection.execute(f"PRAGMA {pragma}")
