"""The catalog's tables, the same on SQLite, PostgreSQL and MariaDB.

::

    scenario ◄── plan ◄──┐                 ┌──► machine
                         ├── run ──────────┼──► version
    experiment ◄── point ┘   ▲ ▲ ▲ ▲       └──► series ◄── metric_value (run)
        ▲  ▲         ▲       │ │ │ │
     factor note   level    tag note baseline sketch

A metric's value is two numbers and a key: what is measured (metric, scope, name in the scope) stands once, in
``series``. The key begins with the series, so that one metric of all runs lies together, which is what lists sort and
filter by.

Numbers are numbers, in the unit that ``series.unit`` says; times are text in ISO 8601 with microseconds and ``Z``,
which sorts by time everywhere. Plans (without seed and repetition) and ``run.json`` stand verbatim beside what was
taken out of them.

A file of SQLite is made from ``schema.sql``, which this module writes (``python -m mqttlab.catalog.tables``), so that a
run's first recording does not wait for SQLAlchemy.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.mysql import LONGTEXT, MEDIUMBLOB
from sqlalchemy.schema import CreateIndex, CreateTable

from mqttlab.catalog.place import NAME_LETTERS_MAX, PATH_LETTERS_MAX

CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s", "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
METADATA = MetaData(naming_convention=CONVENTION)

# MariaDB compares text without regard to case unless it is told; its TEXT ends at 64 kB.
OPTIONS: dict[str, Any] = {
    f"{dialect}_{name}": value for dialect in ("mysql", "mariadb")
    for name, value in (("charset", "utf8mb4"), ("collate", "utf8mb4_bin"), ("engine", "InnoDB"))
}
LONG = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
BYTES = LargeBinary().with_variant(MEDIUMBLOB(), "mysql", "mariadb")
WORD = String(120)
NAME = String(NAME_LETTERS_MAX)
INSTANT = String(32)
DIGEST = String(64)


def _key() -> Column[int]:
    return Column("id", Integer, primary_key=True, autoincrement=True)


def _to(table: str, *, nullable: bool = True, primary_key: bool = False, name: str | None = None,
        ondelete: str | None = None) -> Column[int]:
    return Column(name or f"{table}_id", Integer, ForeignKey(f"{table}.id", ondelete=ondelete), nullable=nullable,
                  primary_key=primary_key)


SCENARIO = Table(
    "scenario", METADATA, _key(), Column("name", NAME, nullable=False), Column("toml", LONG, nullable=False),
    Column("digest", DIGEST, nullable=False, unique=True), **OPTIONS)

PLAN = Table(
    "plan", METADATA, _key(), _to("scenario"), Column("json", LONG, nullable=False),
    Column("digest", DIGEST, nullable=False, unique=True), **OPTIONS)

EXPERIMENT = Table(
    "experiment", METADATA, _key(), Column("name", NAME, nullable=False, index=True),
    Column("directory", String(PATH_LETTERS_MAX), nullable=False, unique=True), Column("kind", WORD, nullable=False),
    Column("design", LONG, nullable=False), Column("toml", LONG, nullable=False), Column("created_at", INSTANT),
    **OPTIONS)

FACTOR = Table(
    "factor", METADATA, _key(), _to("experiment", nullable=False, ondelete="CASCADE"),
    Column("name", NAME, nullable=False), Column("places", LONG, nullable=False), Column("unit", WORD),
    Column("kind", WORD), Column("scale", WORD), UniqueConstraint("experiment_id", "name"), **OPTIONS)

POINT = Table(
    "point", METADATA, _key(), _to("experiment", nullable=False, ondelete="CASCADE"),
    Column("number", Integer, nullable=False), Column("key", LONG), UniqueConstraint("experiment_id", "number"),
    **OPTIONS)

LEVEL = Table(
    "level", METADATA, _to("point", primary_key=True, nullable=False, ondelete="CASCADE"),
    _to("factor", primary_key=True, nullable=False, ondelete="CASCADE"), Column("text", LONG, nullable=False),
    Column("value", Double), **OPTIONS)

MACHINE = Table(
    "machine", METADATA, _key(), Column("digest", DIGEST, nullable=False, unique=True), Column("processor", NAME),
    Column("processors", Integer), Column("architecture", WORD), Column("system", WORD), Column("kernel", NAME),
    Column("memory_bytes", BigInteger), **OPTIONS)

VERSION = Table(
    "version", METADATA, _key(), Column("engine", WORD, nullable=False),
    Column("schema_version", Integer, nullable=False),
    UniqueConstraint("engine", "schema_version"), **OPTIONS)

RUN = Table(
    "run", METADATA, _key(), Column("run_id", String(40), nullable=False, unique=True),
    Column("directory", String(PATH_LETTERS_MAX), nullable=False, index=True), Column("name", NAME, nullable=False),
    Column("backend", WORD, nullable=False), Column("producer", WORD), Column("state", WORD, nullable=False),
    Column("valid", Boolean), Column("reason", LONG), Column("seed", BigInteger), Column("repetition", Integer),
    Column("started_at", INSTANT, index=True), Column("planned_s", Double), Column("bytes", BigInteger),
    Column("broker_kind", WORD), Column("broker_version", WORD), _to("plan", nullable=False), _to("machine"),
    _to("version"), _to("experiment"), _to("point"), Column("kind", WORD), Column("block", Integer),
    Column("order_no", Integer), Column("attempt", Integer), Column("run_json", LONG, nullable=False),
    Column("messages_sent", BigInteger), Column("messages_delivered", BigInteger),
    Column("undelivered_percent", Double), Column("latency_ms_p50", Double), Column("latency_ms_p95", Double),
    Column("latency_ms_p99", Double), Column("ip_kb_per_device_hour_up", Double),
    Column("ip_kb_per_device_hour_down", Double),
    Index("ix_run_experiment_id_point_id", "experiment_id", "point_id"), **OPTIONS)

SERIES = Table(
    "series", METADATA, _key(), Column("metric", WORD, nullable=False), Column("scope", String(32), nullable=False),
    Column("scope_name", NAME, nullable=False), Column("unit", WORD, nullable=False),
    UniqueConstraint("metric", "scope", "scope_name"), **OPTIONS)

METRIC_VALUE = Table(
    "metric_value", METADATA, _to("series", primary_key=True, nullable=False, ondelete="CASCADE"),
    _to("run", primary_key=True, nullable=False, ondelete="CASCADE"), Column("value", Double, nullable=False),
    Index("ix_metric_value_run_id", "run_id"), sqlite_with_rowid=False, **OPTIONS)

TAG = Table(
    "tag", METADATA, _to("run", primary_key=True, nullable=False, ondelete="CASCADE"),
    Column("name", NAME, primary_key=True), Column("value", NAME, nullable=False),
    Index("ix_tag_name_value", "name", "value"), **OPTIONS)

NOTE = Table(
    "note", METADATA, _key(), _to("run", ondelete="CASCADE"), _to("experiment", ondelete="CASCADE"),
    Column("at", INSTANT, nullable=False), Column("author", NAME, nullable=False), Column("text", LONG, nullable=False),
    **OPTIONS)

BASELINE = Table(
    "baseline", METADATA, Column("name", NAME, primary_key=True), _to("run", nullable=False, ondelete="CASCADE"),
    Column("covers", WORD, nullable=False), Column("set_at", INSTANT, nullable=False), **OPTIONS)

SKETCH = Table(
    "sketch", METADATA, _to("run", primary_key=True, nullable=False, ondelete="CASCADE"),
    Column("metric", WORD, primary_key=True), Column("scope", String(32), primary_key=True),
    Column("scope_name", NAME, primary_key=True), Column("data", BYTES, nullable=False), **OPTIONS)

SAVED_VIEW = Table(
    "saved_view", METADATA, Column("name", NAME, primary_key=True), Column("json", LONG, nullable=False), **OPTIONS)


def sqlite_schema() -> str:
    """The statements that make the tables in a file of SQLite: what ``schema.sql`` has."""
    dialect = sqlite.dialect()
    made: list[CreateTable | CreateIndex] = []
    for table in METADATA.sorted_tables:
        indices = sorted(table.indexes, key=lambda index: str(index.name))
        made += [CreateTable(table), *map(CreateIndex, indices)]
    statements = [str(statement.compile(dialect=dialect)).strip().replace("\t", "    ") for statement in made]
    lines = "\n\n".join(f"{statement};" for statement in statements).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


if __name__ == "__main__":
    # python -m mqttlab.catalog.tables > python/mqttlab/catalog/schema.sql
    print(sqlite_schema(), end="")
