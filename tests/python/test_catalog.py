"""The catalog: the same on every database, grown or built again, by one writer or two."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from click.testing import CliRunner, Result
from polars.testing import assert_frame_equal

from databases import KINDS, new_database
from mqttlab.catalog import FIELDS, Catalog, CatalogError, CatalogUnavailable
from mqttlab.catalog import place as places
from mqttlab.catalog.database import HEAD, SCHEMA, Database, known_schemas, make_version_table, rows_of
from mqttlab.catalog.migrations.upgrade import migrate
from mqttlab.catalog.place import url_of
from mqttlab.catalog.rows import Rows
from mqttlab.catalog.tables import METADATA, sqlite_schema
from mqttlab.cli import main
from mqttlab.cli.catalogs import remember
from mqttlab.runs.job import ulid
from recordings import Message, write

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests" / "schemas"


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return new_database(request.param, tmp_path)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three recordings whose latencies differ, the fourth incomplete."""
    for number, latency_ms in enumerate((10, 20, 400)):
        recording(tmp_path / "runs" / f"r{number}", latency_ms)
    recording(tmp_path / "runs" / "short", 30, complete=False)
    return tmp_path / "runs"


def recording(directory: Path, latency_ms: float, *, run_id: str | None = None, complete: bool = True,
              seed: int = 1) -> str:
    """A recording with an identifier, of six messages, two at QoS 1 that take twice as long."""
    messages = [Message(n, latency_ms=latency_ms * (1 + n % 2), qos=n % 2) for n in range(6)]
    write(directory, messages, complete=complete)
    run_id = run_id or ulid()
    name = "run.json" if complete else "incomplete.json"
    change(directory / name, run_id=run_id, started_at=f"2026-01-01T00:00:00.{seed}Z", seed=seed, schema_version=2,
           producer="live", versions={"engine": "0.1.0", "broker": "2.0.11"},
           machine={"processor": "EPYC", "processors": 2, "kernel": "6.18", "memory_bytes": 2**35})
    change(directory / "plan.json", seed=seed)
    return run_id


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | values), encoding="utf-8")


def experiment(directory: Path, points: int = 2, blocks: int = 2) -> None:
    """An experiment's directory as :mod:`mqttlab.experiments` leaves it, with recordings."""
    levels = [{"text": f"{number} %", "value": number / 100} for number in range(points)]
    directory.mkdir(parents=True)
    (directory / "experiment.toml").write_text('name = "loss"\n', encoding="utf-8")
    (directory / "scenario.toml").write_text('name = "known"\n', encoding="utf-8")
    (directory / "design.json").write_text(json.dumps({
        "name": directory.name, "kind": "full", "factors": [
            {"name": "loss", "places": ["networks[0].up.loss"], "unit": "ratio", "kind": "numeric", "levels": levels}],
        "points": [{"number": n, "key": str(n), "levels": {"loss": f"{n} %"}} for n in range(points)]}))
    lines = [{"event": "created", "at": "2026-01-01T00:00:00Z", "name": directory.name}]
    for order, (block, point) in enumerate((block, point) for block in range(blocks) for point in range(points)):
        run_id = recording(directory / "runs" / f"{point}-{block}", 10 + 100 * point, seed=1 + block)
        lines.append({"event": "began", "run": run_id, "kind": "run", "point": point,  # type: ignore[dict-item]
                      "levels": {"loss": f"{point} %"}, "block": block, "repetition": block, "order_no": order,
                      "attempt": 1})
    text = "\n".join(map(json.dumps, lines)) + '\n{"event": "beg'
    (directory / "journal.jsonl").write_text(text, encoding="utf-8")


def contents(catalog: Catalog) -> dict[str, pl.DataFrame]:
    """Everything that a catalog says, in an order of its own."""
    names = catalog.names().filter(pl.col("what").is_in(["factor", "tag"]))["name"].to_list()
    found = {"runs": catalog.runs(columns=[*FIELDS, *names]), "values": catalog.values(), "notes": catalog.notes(),
             "experiments": catalog.experiments(), "baselines": catalog.baselines(),
             "sketches": catalog.table("sketch").drop("run_id"), "scenarios": catalog.table("scenario").drop("id"),
             "plans": catalog.table("plan").select("json", "digest")}
    for name in found["experiments"]["name"]:
        found[name] = catalog.points(name)
    return {name: table.sort(table.columns) for name, table in found.items()}


def assert_equal(one: dict[str, pl.DataFrame], other: dict[str, pl.DataFrame]) -> None:
    assert one.keys() == other.keys()
    for name, table in one.items():
        assert_frame_equal(table, other[name])


def test_a_catalog_that_grew_is_equal_to_one_that_is_built_again(url: str, runs: Path, tmp_path: Path) -> None:
    experiment(runs / "loss")
    for sample in sorted(SAMPLES.glob("*/*")):
        shutil.copytree(sample, runs / f"sample-{sample.parent.name}-{sample.name}")
    found = sorted((plan.parent for plan in runs.rglob("plan.json")), reverse=True)
    with Catalog.open(url) as grown:
        for directory in found:
            grown.add(directory)
        # Twice is once.
        grown.add(found[0])
        grown.tag(runs / "r0", {"nightly": "", "site": "Kjeller Ø"})
        grown.note(runs / "r1", "the antenna was wet; 'quotes' and \"more\"")
        grown.set_baseline("release", runs / "r0")
        grown.set_baseline("release", runs / "r2")
        grown.set_baseline("good", runs / "loss" / "runs" / "0-0", "point")
        before = contents(grown)
        assert before["runs"].height == len(found)
        grown.scan([runs], fresh=True)
        assert_equal(contents(grown), before)
    with Catalog.open(str(tmp_path / "other.db")) as other:
        scanned = other.scan([runs])
        assert scanned.problems == []
        assert_equal(contents(other), before)
        assert [path.name for path in other.baseline("release")] == ["r2"]
        assert [path.name for path in other.baseline("good")] == ["0-0", "0-1"]


def test_lists_filter_and_sort_by_fields_metrics_factors_and_tags(url: str, runs: Path) -> None:
    experiment(runs / "loss", points=3, blocks=1)
    with Catalog.open(url) as catalog:
        catalog.scan([runs])
        catalog.tag(runs / "r1", {"site": "lab2"})

        def names(*where: str, **how: Any) -> list[str]:
            return [Path(path).name for path in catalog.runs(where, columns=["directory"], **how)["directory"]]

        assert names("latency_ms_p50 > 500") == ["r2"]
        assert set(names("state = incomplete")) == {"short"}
        assert names("latency_ms_max[qos 1] >= 40", "experiment != loss", sort=["-latency_ms_max[qos 1]"]) == [
            "r2", "short", "r1"]
        assert names("loss = 2 %") == ["2-0"] == names("loss > 0.01") == names("loss=0.02")
        assert names("loss <= 1%", sort=["-loss"]) == ["1-0", "0-0"]
        assert names("tag.site") == ["r1"] == names("tag.site = lab2") == names("tag.site ~ AB2")
        assert names("tag.site = LAB2") == []
        assert names("directory ~ SHORT") == ["short"] and names("name ~ %") == []
        assert len(names(sort=["latency_ms_p50"], limit=2)) == 2
        # Who has no value comes last, whichever way.
        assert names(sort=["-loss"])[:3] == ["2-0", "1-0", "0-0"]
        table = catalog.runs(["experiment = loss"], columns=["loss", "point", "latency_ms_p50", "valid"], sort=["loss"])
        assert table["loss"].to_list() == ["0 %", "1 %", "2 %"] and table["valid"].to_list() == [True] * 3
        assert table["point"].to_list() == [0, 1, 2] and table["latency_ms_p50"][1] == pytest.approx(165)
        long = catalog.values(["latency_ms_max"], where=["loss = 2 %"], scopes=["qos"])
        assert long.select("scope_name", "value", "unit").rows() == [("0", 210.0, "ms"), ("1", 420.0, "ms")]
        assert catalog.points("loss").rows()[2] == (2, "loss", "2 %", 0.02, "ratio")


def test_sketches_of_many_runs_merge_and_are_within_their_accuracy(url: str, runs: Path) -> None:
    with Catalog.open(url) as catalog:
        catalog.scan([runs])
        whole = catalog.sketch(["state = complete"])
        # Three runs of three messages at QoS 0 and as many at QoS 1 with twice the latency.
        values = sorted(latency * factor for latency in (10, 20, 400) for factor in (1, 2) for _ in range(3))
        assert whole.count == len(values) == 18
        for part in (0, 0.1, 0.5, 0.9, 1):
            exact = values[max(0, math.ceil(part * len(values)) - 1)]
            assert whole.quantile(part) == pytest.approx(exact, rel=0.01)
        assert catalog.sketch(scope="qos", scope_name="1").count == 12
        assert catalog.sketch(["backend = sim"]).quantile(0.5) is None
        catalog.save_view("mine", {"columns": ["loss"], "Ø": None})
        catalog.save_view("mine", {"columns": ["qos"]})
        assert catalog.views() == {"mine": {"columns": ["qos"]}}
        catalog.scan([runs], fresh=True)
        assert catalog.views() == {"mine": {"columns": ["qos"]}}


WRONG = {
    "latency_ms_p9 < 5": "did you mean `latency_ms_p99`",
    "latency_ms_p50[qos 7] < 5": "did you mean `latency_ms_p50[qos ",
    "stat = complete": "did you mean `state`?",
    "state = completed": "did you mean `complete`?",
    "latency_ms_p50 < fast": "'fast' is not a number",
    "valid = perhaps": "must be yes or no",
    "tag.nightli": "did you mean `nightly`?",
    "backend": "a comparison and a value",
    "loss < 5 parsecs": "no number with a unit that is known",
}


def test_what_is_not_there_is_told_with_the_nearest_that_is(runs: Path, tmp_path: Path) -> None:
    experiment(runs / "loss", blocks=1)
    with Catalog.open(str(tmp_path / "catalog.db")) as catalog:
        catalog.scan([runs])
        catalog.tag(runs / "r0", {"nightly": ""})
        for condition, words in WRONG.items():
            with pytest.raises(CatalogError) as error:
                catalog.runs([condition])
            assert words in str(error.value) and "\n" not in str(error.value)
        for ask, words in ((lambda: catalog.baseline("x"), "mqttlab catalog baseline sets one"),
                           (lambda: catalog.points("lose"), "known: loss"),
                           (lambda: catalog.set_baseline("x", runs / "r0", "point"), "leave --point out"),
                           (lambda: catalog.tag(tmp_path, {"x": ""}), "no plan.json")):
            with pytest.raises(CatalogError, match=words):
                ask()


def test_recordings_that_moved_are_followed_gone_ones_forgotten_and_copies_refused(url: str, runs: Path) -> None:
    with Catalog.open(url) as catalog:
        catalog.scan([runs])
        (runs / "r0").rename(runs / "deeper")
        shutil.rmtree(runs / "r1")
        catalog.add(runs / "deeper")
        names = sorted(Path(path).name for path in catalog.runs(columns=["directory"])["directory"])
        assert names == ["deeper", "r1", "r2", "short"]
        shutil.copytree(runs / "r2", runs / "s2")
        with pytest.raises(CatalogError, match="is a copy of .*r2"):
            catalog.add(runs / "s2")
        scanned = catalog.scan([runs])
        assert [path.name for path in scanned.removed] == ["r1"]
        assert scanned.copies == [(runs / "s2", runs / "r2")]
        assert catalog.runs().height == 3


def test_a_scan_of_one_place_leaves_the_others_and_tells_what_cannot_be_read(runs: Path, tmp_path: Path) -> None:
    recording(tmp_path / "elsewhere" / "e0", 5)
    (runs / "broken").mkdir()
    (runs / "broken" / "plan.json").write_text("{", encoding="utf-8")
    (runs / "r2" / "annotations.json").write_text("[]", encoding="utf-8")
    with Catalog.open(str(tmp_path / "catalog.db")) as catalog:
        catalog.scan([tmp_path / "elsewhere"])
        scanned = catalog.scan([runs])
        assert len(scanned.problems) == 2 and "is not JSON" in scanned.problems[0]
        assert "mend it, or remove it" in scanned.problems[1]
        assert catalog.runs().height == 4
        catalog.scan([runs], fresh=True)
        assert catalog.runs().height == 3


def test_a_directory_of_runs_moves_with_its_catalog(runs: Path, tmp_path: Path) -> None:
    with Catalog.open(str(runs / "catalog.db")) as catalog:
        catalog.scan([runs])
    runs.rename(tmp_path / "moved")
    with Catalog.open(str(tmp_path / "moved" / "catalog.db"), read_only=True) as catalog:
        assert all(Path(path).is_dir() for path in catalog.runs(columns=["directory"])["directory"])


WRITER = """
import sys
from pathlib import Path
from mqttlab.catalog import Catalog
with Catalog.open(sys.argv[1]) as catalog:
    for directory in sys.argv[2:]:
        catalog.add(Path(directory))
        catalog.tag(Path(directory), {"by": directory[-1]})
"""


def test_two_writers_at_once_lose_nothing(url: str, tmp_path: Path) -> None:
    directories = [tmp_path / "runs" / f"r{number}" for number in range(12)]
    for number, directory in enumerate(directories):
        recording(directory, 10 + number)
    # Neither finds a catalog, nor series, machine or version.
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, url, *map(str, directories[first::2])],
                                stderr=subprocess.PIPE, text=True) for first in (0, 1)]
    for writer in writers:
        assert writer.communicate(timeout=120)[1] == ""
    with Catalog.open(url) as grown, Catalog.open(str(tmp_path / "again.db")) as again:
        again.scan([tmp_path / "runs"])
        assert grown.runs().height == 12
        assert_equal(contents(grown), contents(again))


def test_a_catalog_whose_making_was_cut_off_is_made_whole(url: str, tmp_path: Path) -> None:
    # MariaDB commits each table by itself, so that another process can see a part of them, or find a part.
    database = Database(url, as_it_is=True)
    if database.file is not None:
        pytest.skip("SQLite makes the whole schema in one transaction")
    with database.engine.begin() as connection:
        make_version_table(rows_of(connection))
        METADATA.create_all(connection, tables=[METADATA.tables["experiment"], METADATA.tables["scenario"]])
    database.close()
    recording(tmp_path / "r0", 5)
    with Catalog.open(url) as catalog:
        catalog.add(tmp_path / "r0")
        assert catalog.runs().height == 1


@pytest.fixture(params=known_schemas())
def old(request: pytest.FixtureRequest, url: str) -> Iterator[tuple[str, str]]:
    """A catalog of an older schema, with a run and a tag in it."""
    schema = request.param
    database = Database(url, as_it_is=True)
    with database.engine.begin() as connection:
        migrate(connection, schema)
        connection.execute(sa.text("INSERT INTO plan (id, json, digest) VALUES (7, '{}', 'd')"))
        connection.execute(sa.text(
            "INSERT INTO run (id, run_id, directory, name, backend, state, plan_id, run_json) "
            "VALUES (3, 'X', 'gone', 'old', 'sim', 'complete', 7, '{}')"))
        connection.execute(sa.text("INSERT INTO tag (run_id, name, value) VALUES (3, 'kept', 'yes')"))
        connection.execute(sa.text("INSERT INTO series (id, metric, scope, scope_name, unit) "
                                   "VALUES (1, 'm', 'run', '', 's')"))
        connection.execute(sa.text("INSERT INTO metric_value (series_id, run_id, value) VALUES (1, 3, 2.5)"))
    database.close()
    yield url, schema


def test_every_schema_is_brought_to_the_present_one_after_a_copy(old: tuple[str, str], tmp_path: Path) -> None:
    url, schema = old
    backup = tmp_path / "before.db"
    database = Database(url, as_it_is=True)
    assert database.upgrade(backup) == (None if schema == HEAD else backup)
    with database.engine.connect() as connection:
        # Names of constraints, too: the next step has to find them.
        assert compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), METADATA) == []
    database.close()
    with Catalog.open(url) as catalog:
        assert catalog.runs(["tag.kept = yes"], columns=["name", "m"]).rows() == [("old", 2.5)]
    if schema != HEAD:
        with sqlite3.connect(backup) as copy:
            assert copy.execute("SELECT version_num FROM alembic_version").fetchone() == (schema,)
            assert copy.execute("SELECT name, value FROM tag").fetchall() == [("kept", "yes")]


def test_who_writes_a_file_upgrades_it_and_who_reads_or_uses_a_server_is_told_how(old: tuple[str, str]) -> None:
    url, schema = old
    if schema == HEAD:
        return
    with pytest.raises(CatalogError, match="mqttlab catalog upgrade"):
        Catalog.open(url, read_only=True)
    if url.startswith("sqlite"):
        Catalog.open(url).close()
        file = Path(url.removeprefix("sqlite:///"))
        assert [path.name for path in file.parent.glob(f"catalog.db.schema-{schema}-*")]
    else:
        with pytest.raises(CatalogError, match="mqttlab catalog upgrade"):
            Catalog.open(url)


def test_a_newer_schema_is_refused_in_one_line(url: str) -> None:
    Catalog.open(url).close()
    database = Database(url)
    with database.engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0099'"))
    for how in (True, False):
        words = f"has schema 0099, but this mqttlab knows schemas up to {HEAD}"
        with pytest.raises(CatalogError, match=words) as error:
            Catalog.open(url, read_only=how)
        assert len(error.value.problems) == 1 and "\n" not in error.value.problems[0]
    database.close()


def test_the_migrations_end_at_the_schema_that_the_program_expects() -> None:
    assert known_schemas()[-1] == HEAD


def test_a_file_is_made_with_the_tables_that_are_declared(tmp_path: Path) -> None:
    assert SCHEMA.read_text(encoding="utf-8") == sqlite_schema(), (
        "run python -m mqttlab.catalog.tables > python/mqttlab/catalog/schema.sql")
    Catalog.open(str(tmp_path / "catalog.db")).close()
    declared = sa.create_engine(f"sqlite:///{tmp_path}/declared.db")
    METADATA.create_all(declared)
    declared.dispose()
    made, wanted = (objects_of(tmp_path / name) for name in ("catalog.db", "declared.db"))
    assert made.pop("alembic_version") and made == wanted and len(made) > 20


def objects_of(file: Path) -> dict[str, str]:
    """Tables and indices of a file of SQLite, and the statements that make them, with single blanks."""
    connection = sqlite3.connect(file)
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    connection.close()
    return {name: " ".join(statement.split()) for name, statement in found}


def test_what_went_wrong_halfway_leaves_nothing_and_the_next_writer_goes_on(url: str, tmp_path: Path) -> None:
    database = Database(url)

    def fail(rows: Rows) -> None:
        rows.insert("saved_view", [{"name": "half", "json": "{}"}])
        raise ValueError("halfway")

    with pytest.raises(ValueError, match="halfway"):
        database.write(fail)
    with pytest.raises(CatalogError):
        database.write(lambda rows: rows.insert("saved_view", [{"name": "no json", "json": None}]))
    # Names that are words of SQL's in one of the databases.
    database.write(lambda rows: rows.insert("saved_view", [{"name": "a", "json": ":b %s"}, {"name": "c", "json": "?"}]))
    assert database.write(lambda rows: rows.find("saved_view", ("name", "json"))) == [("a", ":b %s"), ("c", "?")]
    database.close()


def test_other_peoples_databases_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database at all, but long enough to be read as one" * 20, encoding="utf-8")
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE song (name)")
    for file, words in (("text.db", "not a database"), ("other.db", "is not a catalog of mqttlab"),
                        (".", "is a directory"), ("nowhere/x.db", "there is no directory")):
        with pytest.raises(CatalogError, match=words):
            Catalog.open(str(tmp_path / file))
    with pytest.raises(CatalogError, match="there is no catalog"):
        Catalog.open(str(tmp_path / "none.db"), read_only=True)
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(CatalogError, match="no kind of database"):
        Catalog.open("oracle://x/y")
    with pytest.raises(CatalogUnavailable):
        Catalog.open(f"postgresql://lab@/db?host={tmp_path}")


def test_a_file_of_sqlite_has_a_log_and_is_refused_on_network_file_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    Catalog.open(str(tmp_path / "a b#c?.db")).close()
    with sqlite3.connect(tmp_path / "a b#c?.db") as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    (tmp_path / "net" / "disk").mkdir(parents=True)
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 0:1 / / rw - ext4 /dev/x rw\n2 1 0:2 / {tmp_path}/net rw,x shared:1 - nfs4 s:/x rw\n"
                      f"3 2 0:3 / {tmp_path}/net/disk rw - xfs /dev/y rw\n", encoding="utf-8")
    for name, kind in (("net/x.db", "nfs4"), ("net/disk/x.db", "xfs"), ("x.db", "ext4")):
        assert places.file_system(tmp_path / name, mounts) == kind
    with pytest.raises(CatalogError, match=r"network file system \(nfs4\).*--catalog postgresql"):
        places.refuse_network(tmp_path / "net" / "x.db", mounts)
    places.refuse_network(tmp_path / "net" / "disk" / "x.db", mounts)
    monkeypatch.setattr("mqttlab.catalog.place.file_system", lambda path, mounts: "cifs")
    with pytest.raises(CatalogError, match="cifs"):
        Catalog.open(str(tmp_path / "y.db"))


def test_a_readers_question_waits_for_no_writer(runs: Path) -> None:
    file = str(runs / "catalog.db")
    with Catalog.open(file) as catalog:
        catalog.scan([runs])
        writer = sqlite3.connect(file, isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM run")
        with Catalog.open(file, read_only=True) as reader:
            assert reader.runs().height == 4
        writer.rollback()
        writer.close()


def test_urls_are_what_people_write() -> None:
    assert url_of("runs/x.db") == f"sqlite:///{Path.cwd()}/runs/x.db" == url_of("sqlite:///runs/x.db")
    assert url_of("sqlite:////tmp/x.db") == "sqlite:////tmp/x.db"
    assert url_of("postgresql://a@b/c") == "postgresql+psycopg://a@b/c" == url_of("postgresql+psycopg://a@b/c")
    assert url_of("mariadb://a@b/c") == "mariadb+pymysql://a@b/c"


def mqttlab(*words: Any) -> Result:
    return CliRunner().invoke(main, [*map(str, words)])


@pytest.mark.parametrize("indexed", [True, False])
def test_runs_of_experiments_are_counted_and_not_listed(
    indexed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    experiment(tmp_path / "runs" / "loss")
    recording(tmp_path / "runs" / "alone", 77)
    if indexed:
        mqttlab("catalog", "scan", "runs")
    few = mqttlab("list")
    assert few.exit_code == 0 and few.output.count("complete") == 1 and "4 runs of experiments; --all" in few.output
    # Of so few messages no p99 is listed.
    assert (" – " in few.output and "0 %" in few.output) is indexed and "154" not in few.output
    assert mqttlab("list", "--all").output.count("complete") == 5


def test_the_commands(runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "4 recordings indexed" in mqttlab("catalog", "scan", "runs").output
    recording(runs / "new", 77)
    plain = mqttlab("list")
    assert plain.exit_code == 0 and plain.output.count("complete") == 5 and "runs/new" in plain.output
    # Wide enough for all columns beside each other.
    monkeypatch.setenv("COLUMNS", "160")
    found = mqttlab("list", "--where", "latency_ms_p50 < 100", "--sort", "-latency_ms_p50",
                    "--sort", "messages_delivered", "--column", "name")
    assert found.stdout.splitlines()[0].split() == [
        "started", "(UTC)", "backend", "state", "name", "latency_ms_p50", "messages_delivered", "directory"]
    assert found.stdout.splitlines()[1].startswith("2026-01-01 00:00  ")
    assert [line.split()[-1] for line in found.stdout.splitlines() if "runs/" in line] == ["runs/short", "runs/r1",
                                                                                        "runs/r0"]
    assert "1 recordings below runs are not in the catalog" in found.stderr
    assert mqttlab("catalog", "tag", "runs/r0", "nightly", "site=lab2").exit_code == 0
    assert mqttlab("list", "--tag", "nightly").output.count("runs/") == 1
    assert mqttlab("catalog", "tag", "runs/r0", "nightly", "--remove").exit_code == 0
    assert "no run has the tag 'nightly'; did you mean" not in (gone := mqttlab("list", "--tag", "nightly")).output
    assert gone.exit_code == 2 and gone.output.count("\n") == 1
    assert mqttlab("catalog", "note", "runs/r0", "wet antenna").exit_code == 0
    assert "wet antenna" in mqttlab("catalog", "note", "runs/r0").output
    assert mqttlab("catalog", "baseline", "v1", "runs/r0").exit_code == 0
    assert mqttlab("catalog", "baseline", "v1").output.strip().endswith("runs/r0")
    assert "v1" in mqttlab("catalog", "baseline").output
    for form in ("csv", "parquet", "xlsx"):
        done = mqttlab("catalog", "query", "--column", "latency_ms_p50", f"--{form}", f"out.{form}")
        assert done.exit_code == 0, done.output
    read = (pl.read_csv("out.csv"), pl.read_parquet("out.parquet"))
    assert all(table.height == 4 and "latency_ms_p50" in table.columns for table in read)
    assert (tmp_path / "out.xlsx").read_bytes()[:2] == b"PK"
    assert "latency_ms_p99" in mqttlab("catalog", "query", "--long", "--metric", "latency_ms_p99").output
    assert "machine_id" in mqttlab("catalog", "query", "--table", "run").output
    assert "did you mean `run`?" in mqttlab("catalog", "query", "--table", "rum").output
    assert "is the present one" in mqttlab("catalog", "upgrade").output
    shutil.rmtree(runs / "r2")
    assert "gone" in mqttlab("list").output


SCENARIO = """
name = "short"
backend = "sim"
network = "direct"
phases = { duration = "1 s" }
groups = [{ name = "p", host = "a", publish = { topic = "t", payload = "20 B", rate = "10 /s" } },
          { name = "s", host = "b", subscribe = ["t"] }]
"""


def test_a_run_goes_into_the_catalog_and_never_fails_because_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short.toml").write_text(SCENARIO, encoding="utf-8")
    done = mqttlab("run", "short.toml", "--no-html")
    assert done.exit_code == 0, done.output
    with Catalog.open("runs/catalog.db", read_only=True) as catalog:
        [directory] = catalog.runs(["messages_delivered = 10"], columns=["directory"])["directory"]
        assert catalog.table("scenario")["toml"].to_list() == [SCENARIO]
    # What the scenario was stands with the recording.
    assert json.loads((Path(directory) / "origin.json").read_text())["scenario"]["toml"] == SCENARIO
    for url in (tmp_path, "postgresql://lab@/db?host=/nowhere", "what://x"):
        done = mqttlab("run", "short.toml", "--no-html", "--catalog", url)
        assert done.exit_code == 0, done.output
        [warning] = done.stderr.splitlines()[-1:]
        assert warning.startswith("mqttlab: warning: not in the catalog: ")
    assert mqttlab("run", "short.toml", "--no-html", "--catalog", "none").exit_code == 0
    assert mqttlab("list").output.count("complete") == 5
    with Catalog.open("runs/catalog.db", read_only=True) as catalog:
        assert catalog.runs().height == 1


def test_an_import_goes_into_the_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("messages.csv").write_text(
        "message,publisher,subscriber,topic,qos,payload_bytes,sent_ms,received_ms\n1,p,s,t,0,20,0,10\n2,p,s,t,0,20,5,12\n",
        encoding="utf-8")
    done = mqttlab("import", "log", "messages.csv", "--no-html")
    assert done.exit_code in (0, 6), done.output
    assert "messages" in mqttlab("list", "--where", "messages_delivered = 2").output


def damaged(runs: Path) -> Path:
    """A catalog with a byte in its schema that is no letter, as a disk may leave it."""
    file = runs / "catalog.db"
    with Catalog.open(str(file)) as catalog:
        catalog.scan([runs])
    data = file.read_bytes()
    place = data.index(b",", data.index(b"CREATE TABLE factor"))
    file.write_bytes(data[:place] + b"\x8d" + data[place + 1:])
    return file


def test_a_damaged_file_is_one_line_and_a_run_keeps_its_recording(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    file = damaged(runs)
    for words in (("catalog", "query"), ("list", "--where", "backend = live"), ("catalog", "names")):
        done = subprocess.run([sys.executable, "-m", "mqttlab", *words], capture_output=True, text=True, check=False)
        assert done.returncode != 0 and "Traceback" not in done.stderr, (words, done.stderr)
        if words[-1] != "names":
            assert "runs/catalog.db: the file is damaged; remove it, and mqttlab catalog scan" in done.stderr, words
    remember(runs / "r0", None, runs)
    assert "warning: not in the catalog: the catalog runs/catalog.db: the file is damaged" in capsys.readouterr().err
    file.unlink()
    assert "4 recordings indexed" in mqttlab("catalog", "scan", "runs").output


def test_nothing_where_a_value_must_be_is_damage_and_a_fault_of_the_program_is_none(runs: Path) -> None:
    file = runs / "catalog.db"
    with Catalog.open(str(file)) as catalog:
        catalog.scan([runs])
    database = Database(str(file), read_only=True)
    with pytest.raises(TypeError), database.problems():
        raise TypeError("a fault of the program")
    declared = sqlite3.connect(file).execute("SELECT sql FROM sqlite_master WHERE name = 'series'").fetchone()[0]
    for sql, change in ((declared.replace("metric VARCHAR(120) NOT NULL", "metric VARCHAR(120)"), "SELECT 1"),
                        (declared, "UPDATE series SET metric = NULL WHERE id = 1")):
        changed = sqlite3.connect(file)
        with changed:
            changed.execute(change)
            changed.execute("PRAGMA writable_schema = ON")
            changed.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'series'", (sql,))
        changed.close()
    with Catalog.open(str(file), read_only=True) as catalog, pytest.raises(CatalogError, match="the file is damaged"):
        catalog.names()
    database.close()
