"""Quantile sketches of runs, and saved views."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT, MEDIUMBLOB

revision = "0002"
down_revision = "0001"

OPTIONS: dict[str, Any] = {
    f"{dialect}_{name}": value for dialect in ("mysql", "mariadb")
    for name, value in (("charset", "utf8mb4"), ("collate", "utf8mb4_bin"), ("engine", "InnoDB"))
}


def upgrade() -> None:
    """Make two tables; a scan fills the first."""
    op.create_table(
        "sketch",
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id", ondelete="CASCADE"), nullable=False, primary_key=True),
        sa.Column("metric", sa.String(120), primary_key=True), sa.Column("scope", sa.String(32), primary_key=True),
        sa.Column("scope_name", sa.String(255), primary_key=True),
        sa.Column("data", sa.LargeBinary().with_variant(MEDIUMBLOB(), "mysql", "mariadb"), nullable=False), **OPTIONS)
    op.create_table(
        "saved_view", sa.Column("name", sa.String(255), primary_key=True),
        sa.Column("json", sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb"), nullable=False), **OPTIONS)
