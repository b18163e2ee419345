"""The headline of runs as columns of the catalog: the numbers of reports, and the upgrade of earlier catalogs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa

from commands import mqttlab
from mqttlab import metrics
from mqttlab.catalog import Catalog
from mqttlab.catalog.database import Database
from mqttlab.catalog.headline import COLUMNS, headline_columns
from mqttlab.catalog.listed_runs import listed_runs
from mqttlab.catalog.migrations.upgrade import migrate
from mqttlab.catalog.reading import read
from mqttlab.recording import Recording
from recordings import Message, write
from test_comparison_answer import QOS_1, run


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``fleet``: one flow with its bytes; ``ways``: two flows, one of which loses and is slow."""
    place = tmp_path_factory.mktemp("runs")
    run(place / "fleet", QOS_1)
    write(place / "ways", [*(Message(i, 10, subscriber=1) for i in range(40)),
                           *(Message(i, 90, publisher=1, subscriber=0) for i in range(38)),
                           *(Message(i, None, publisher=1, subscriber=0, fate="lost", cause="overtaken")
                             for i in range(38, 40))])
    return place


def headline_of(place: Path) -> dict[str, float | None]:
    told = metrics.headline(Recording.open(place))
    expected, delivered = (sum(getattr(flow, name) for flow in told.flows) for name in ("expected", "delivered"))
    worst = {name: max(flow.latency[name].value or 0 for flow in told.flows) for name in ("p50", "p95", "p99")}
    up, down = ([value for group in told.bytes if (value := getattr(group, way)) is not None]
                for way in ("ip_up", "ip_down"))
    return {"messages_sent": sum(flow.sent for flow in told.flows), "messages_delivered": delivered,
            "undelivered_percent": 100 * (expected - delivered) / expected,
            **{f"latency_ms_{name}": value for name, value in worst.items()},
            "ip_kb_per_device_hour_up": max(up, default=None), "ip_kb_per_device_hour_down": max(down, default=None)}


@pytest.mark.parametrize("name", ["fleet", "ways"])
def test_columns_are_the_numbers_of_the_headline(name: str, runs: Path) -> None:
    found = headline_columns(read(runs / name).values)
    assert tuple(found) == COLUMNS
    assert found == {key: pytest.approx(value) for key, value in headline_of(runs / name).items()}


def test_sql_and_conditions_ask_for_the_headline(runs: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    with Catalog.open(url) as catalog:
        for name in ("fleet", "ways"):
            catalog.add(runs / name)
        found = catalog.runs(["p99 > 80", "undelivered > 1"], columns=["sent", "delivered", "p50", "kb_up"])
        assert found.rows() == [(80, 78, 90.0, None)]
        assert catalog.runs(["kb_up > 1"], columns=["delivered"]).height == 1
    with sqlite3.connect(tmp_path / "catalog.db") as plain:
        assert plain.execute("SELECT count(*) FROM run WHERE latency_ms_p99 < 80 AND undelivered_percent = 0").fetchone(
            ) == (1,)
    assert {run.directory.name: run.undelivered_percent for run in listed_runs(tmp_path / "catalog.db")} == {
        "fleet": 0.0, "ways": pytest.approx(2.5)}
    listed = mqttlab("list", "--catalog", url, "--where", "p99 > 80", "--column", "undelivered")
    assert listed.returncode == 0 and "2.5" in listed.stdout


def test_a_catalog_of_before_gets_the_columns_of_the_values_that_it_has(runs: Path, tmp_path: Path) -> None:
    file = tmp_path / "catalog.db"
    facts = {name: read(runs / name) for name in ("fleet", "ways")}
    database = Database(f"sqlite:///{file}", as_it_is=True)
    with database.engine.begin() as connection:
        migrate(connection, "0002")
        connection.execute(sa.text("INSERT INTO plan (id, json, digest) VALUES (7, '{}', 'd')"))
        for number, (name, each) in enumerate(facts.items()):
            connection.execute(sa.text(
                "INSERT INTO run (id, run_id, directory, name, backend, state, plan_id, run_json) "
                "VALUES (:id, :name, :name, :name, 'sim', 'complete', 7, '{}')"), {"id": number, "name": name})
            for metric, scope, of, unit, value in each.values:
                key = {"metric": metric, "scope": scope, "of": of, "unit": unit}
                connection.execute(sa.text("INSERT INTO series (metric, scope, scope_name, unit) "
                                           "VALUES (:metric, :scope, :of, :unit) ON CONFLICT DO NOTHING"), key)
                connection.execute(sa.text(
                    "INSERT INTO metric_value (series_id, run_id, value) SELECT id, :run, :value FROM series WHERE "
                    "metric = :metric AND scope = :scope AND scope_name = :of"), key | {"run": number, "value": value})
    database.close()
    # A list that only reads shows the runs, and waits for the upgrade with the numbers.
    assert [(run.name, run.p99_ms) for run in listed_runs(file)] == [("fleet", None), ("ways", None)]
    Catalog.open(f"sqlite:///{file}").close()
    with sqlite3.connect(file) as plain:
        rows = plain.execute(f"SELECT run_id, {', '.join(COLUMNS)} FROM run ORDER BY id").fetchall()
    for row, (name, each) in zip(rows, facts.items(), strict=True):
        assert row[0] == name
        assert list(row[1:]) == [pytest.approx(value) for value in headline_columns(each.values).values()]
