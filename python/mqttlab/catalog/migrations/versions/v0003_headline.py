"""The headline of each run as columns, filled from the values that are there."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

OF_RUN = ("SELECT {what}(value) FROM metric_value JOIN series ON series.id = metric_value.series_id "
          "WHERE metric_value.run_id = run.id AND series.metric = '{metric}' AND series.scope = '{scope}'")
LARGEST = {"latency_ms_p50": "groups", "latency_ms_p95": "groups", "latency_ms_p99": "groups",
           "ip_kb_per_device_hour_up": "group", "ip_kb_per_device_hour_down": "group"}
COUNTS = ("messages_sent", "messages_delivered")


def upgrade() -> None:
    """Add the columns and fill them."""
    for name in COUNTS:
        op.add_column("run", sa.Column(name, sa.BigInteger))
        op.execute(f"UPDATE run SET {name} = {_whole(name)}")
    op.add_column("run", sa.Column("undelivered_percent", sa.Double))
    expected = _whole("deliveries_expected")
    op.execute(f"UPDATE run SET undelivered_percent = 100.0 * ({expected} - messages_delivered) / {expected} "
               f"WHERE {expected} > 0")
    for name, scope in LARGEST.items():
        op.add_column("run", sa.Column(name, sa.Double))
        op.execute(f"UPDATE run SET {name} = ({OF_RUN.format(what='MAX', metric=name, scope=scope)})")


def _whole(metric: str) -> str:
    run, groups = (OF_RUN.format(what="SUM", metric=metric, scope=scope) for scope in ("run", "groups"))
    return f"COALESCE(({run}), ({groups}))"
