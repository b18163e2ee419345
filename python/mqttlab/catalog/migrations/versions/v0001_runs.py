"""The first schema: runs with their plans, machines, experiments, metric values, tags, notes and baselines."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0001"
down_revision = None

# As they were then: what is in mqttlab.catalog.tables goes on changing.
OPTIONS: dict[str, Any] = {
    f"{dialect}_{name}": value for dialect in ("mysql", "mariadb")
    for name, value in (("charset", "utf8mb4"), ("collate", "utf8mb4_bin"), ("engine", "InnoDB"))
}
LONG = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
WORD, NAME, INSTANT, DIGEST = sa.String(120), sa.String(255), sa.String(32), sa.String(64)


def _key() -> sa.Column[int]:
    return sa.Column("id", sa.Integer, primary_key=True, autoincrement=True)


def _to(table: str, *, nullable: bool = True, primary_key: bool = False, ondelete: str | None = None) -> sa.Column[int]:
    return sa.Column(f"{table}_id", sa.Integer, sa.ForeignKey(f"{table}.id", ondelete=ondelete), nullable=nullable,
                     primary_key=primary_key)


def upgrade() -> None:
    """Make every table."""
    _plans()
    _experiments()
    _runs()
    _values()


def _plans() -> None:
    op.create_table("scenario", _key(), sa.Column("name", NAME, nullable=False),
                    sa.Column("toml", LONG, nullable=False),
                    sa.Column("digest", DIGEST, nullable=False, unique=True), **OPTIONS)
    op.create_table("plan", _key(), _to("scenario"), sa.Column("json", LONG, nullable=False),
                    sa.Column("digest", DIGEST, nullable=False, unique=True), **OPTIONS)
    op.create_table(
        "machine", _key(), sa.Column("digest", DIGEST, nullable=False, unique=True), sa.Column("processor", NAME),
        sa.Column("processors", sa.Integer), sa.Column("architecture", WORD), sa.Column("system", WORD),
        sa.Column("kernel", NAME), sa.Column("memory_bytes", sa.BigInteger), **OPTIONS)
    op.create_table("version", _key(), sa.Column("engine", WORD, nullable=False),
                    sa.Column("schema_version", sa.Integer, nullable=False),
                    sa.UniqueConstraint("engine", "schema_version"),
                    **OPTIONS)


def _experiments() -> None:
    op.create_table(
        "experiment", _key(), sa.Column("name", NAME, nullable=False),
        sa.Column("directory", sa.String(700), nullable=False,
                                                                                 unique=True),
        sa.Column("kind", WORD, nullable=False), sa.Column("design", LONG, nullable=False),
        sa.Column("toml", LONG, nullable=False), sa.Column("created_at", INSTANT), **OPTIONS)
    op.create_index("ix_experiment_name", "experiment", ["name"])
    op.create_table(
        "factor", _key(), _to("experiment", nullable=False, ondelete="CASCADE"),
        sa.Column("name", NAME, nullable=False),
        sa.Column("places", LONG, nullable=False), sa.Column("unit", WORD), sa.Column("kind", WORD),
        sa.Column("scale", WORD),
        sa.UniqueConstraint("experiment_id", "name"), **OPTIONS)
    op.create_table(
        "point", _key(), _to("experiment", nullable=False, ondelete="CASCADE"),
        sa.Column("number", sa.Integer, nullable=False), sa.Column("key", LONG),
        sa.UniqueConstraint("experiment_id", "number"), **OPTIONS)
    op.create_table(
        "level", _to("point", primary_key=True, nullable=False, ondelete="CASCADE"),
        _to("factor", primary_key=True, nullable=False, ondelete="CASCADE"), sa.Column("text", LONG, nullable=False),
        sa.Column("value", sa.Double), **OPTIONS)


def _runs() -> None:
    op.create_table(
        "run", _key(), sa.Column("run_id", sa.String(40), nullable=False, unique=True),
        sa.Column("directory", sa.String(700), nullable=False), sa.Column("name", NAME, nullable=False),
        sa.Column("backend", WORD, nullable=False), sa.Column("producer", WORD),
        sa.Column("state", WORD, nullable=False),
        sa.Column("valid", sa.Boolean), sa.Column("reason", LONG), sa.Column("seed", sa.BigInteger),
        sa.Column("repetition", sa.Integer), sa.Column("started_at", INSTANT), sa.Column("planned_s", sa.Double),
        sa.Column("bytes", sa.BigInteger), sa.Column("broker_kind", WORD), sa.Column("broker_version", WORD),
        _to("plan", nullable=False), _to("machine"), _to("version"), _to("experiment"), _to("point"),
        sa.Column("kind", WORD),
        sa.Column("block", sa.Integer), sa.Column("order_no", sa.Integer), sa.Column("attempt", sa.Integer),
        sa.Column("run_json", LONG, nullable=False), **OPTIONS)
    op.create_index("ix_run_directory", "run", ["directory"])
    op.create_index("ix_run_started_at", "run", ["started_at"])
    op.create_index("ix_run_experiment_id_point_id", "run", ["experiment_id", "point_id"])


def _values() -> None:
    op.create_table(
        "series", _key(), sa.Column("metric", WORD, nullable=False), sa.Column("scope", sa.String(32), nullable=False),
        sa.Column("scope_name", NAME, nullable=False), sa.Column("unit", WORD, nullable=False),
        sa.UniqueConstraint("metric", "scope", "scope_name"), **OPTIONS)
    op.create_table(
        "metric_value", _to("series", primary_key=True, nullable=False, ondelete="CASCADE"),
        _to("run", primary_key=True, nullable=False, ondelete="CASCADE"),
        sa.Column("value", sa.Double, nullable=False), sqlite_with_rowid=False, **OPTIONS)
    op.create_index("ix_metric_value_run_id", "metric_value", ["run_id"])
    op.create_table(
        "tag", _to("run", primary_key=True, nullable=False, ondelete="CASCADE"),
        sa.Column("name", NAME, primary_key=True), sa.Column("value", NAME, nullable=False), **OPTIONS)
    op.create_index("ix_tag_name_value", "tag", ["name", "value"])
    op.create_table(
        "note", _key(), _to("run", ondelete="CASCADE"), _to("experiment", ondelete="CASCADE"),
        sa.Column("at", INSTANT, nullable=False), sa.Column("author", NAME, nullable=False),
        sa.Column("text", LONG, nullable=False), **OPTIONS)
    op.create_table(
        "baseline", sa.Column("name", NAME, primary_key=True), _to("run", nullable=False, ondelete="CASCADE"),
        sa.Column("covers", WORD, nullable=False), sa.Column("set_at", INSTANT, nullable=False), **OPTIONS)
