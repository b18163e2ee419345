"""Messages in a database: the tables of andersen2021, on every database, after a run and while it goes on."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from databases import KINDS, new_database
from mqttlab.cli import main
from mqttlab.export import ExportError
from mqttlab.export.sql import METADATA, MessageDatabase, Writer
from mqttlab.recording import Recording
from recordings import Message, write

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = """
name = "short"
backend = "sim"
network = "direct"
phases = { duration = "DURATION", cool_down = "1 s" }
groups = [{ name = "p", host = "a", publish = { topic = "t", payload = "gps", rate = "10 /s" } },
          { name = "s", host = "b", count = 2, subscribe = ["t"] }]
"""


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return new_database(request.param, tmp_path)


def ask(url: str, question: str) -> list[tuple[Any, ...]]:
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        rows = [tuple(row) for row in connection.execute(sa.text(question))]
    engine.dispose()
    return rows


def mqttlab(*words: Any) -> Result:
    return CliRunner().invoke(main, [*map(str, words)])


def known(directory: Path) -> Path:
    """Five messages: one lost, one unsent, one delivered twice."""
    return write(directory, [
        Message(0, latency_ms=10), Message(1, latency_ms=30, qos=1), Message(2, latency_ms=None, fate="lost"),
        Message(3, latency_ms=None, fate="unsent"), Message(4, latency_ms=20),
        Message(4, latency_ms=25, fate="duplicate")])


def test_every_message_stands_in_the_five_tables(url: str, tmp_path: Path) -> None:
    run = known(tmp_path / "run")
    for _ in range(2):
        # Exported again, it stands there once.
        done = mqttlab("export", run, "--sql", url)
        assert done.exit_code == 0, done.output
    assert ask(url, "SELECT name, backend, network, duration_s, state FROM test") == [
        ("known", "live", "SATCOM", 10.0, "complete")]
    assert ask(url, "SELECT number, name, client_group, host FROM node ORDER BY number") == [
        (0, "p", "publishers", "a"), (1, "s", "subscribers", "b")]
    assert ask(url, "SELECT message, sent_ns IS NULL FROM publisher_log ORDER BY message") == [
        (0, 0), (1, 0), (2, 0), (3, 1), (4, 0)]
    assert ask(url, "SELECT message, fate, latency_ns FROM subscriber_log ORDER BY message, received_ns") == [
        (0, "delivered", 10_000_000), (1, "delivered", 30_000_000), (2, "lost", None), (4, "delivered", 20_000_000),
        (4, "duplicate", 25_000_000)]
    assert ask(url, "SELECT topic, bytes, qos FROM data ORDER BY qos") == [("t", 100, 0), ("t", 100, 1)]


def questions() -> dict[str, str]:
    """The questions that the page documents, by their headings."""
    page = (ROOT / "docs" / "how-to" / "sql.md").read_text(encoding="utf-8")
    return dict(re.findall(r"### ([^\n]+)\n.*?```sql\n(.*?)```", page, re.DOTALL))


def test_the_documented_questions_are_answered_alike_everywhere(url: str, tmp_path: Path) -> None:
    with MessageDatabase(url) as database:
        database.write(Recording.open(known(tmp_path / "run")))
    asked = questions()
    assert len(asked) == 4
    answers = {name: [tuple(float(v) if hasattr(v, "as_tuple") else v for v in row) for row in ask(url, question)]
               for name, question in asked.items()}
    assert answers["The tests"] == [("known", "SATCOM", 4, 3, 1, 25.0, 20.0, 10.0, 30.0)]
    assert [row[:4] for row in answers["The nodes of a test"]] == [("p", 4, 0, 0), ("s", 0, 3, 1)]
    assert [row[:2] for row in answers["Recent node data"]] == [("s", "p")] * 3
    assert [row[2] for row in answers["Recent node data"]] == ["t"] * 3
    assert answers["Delay over time"] == [(0.0, 3, 20.0)]


@pytest.mark.live
def test_rows_appear_while_a_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/messages.db"
    # Live, so that there are a few messages a second, however fast the machine is.
    text = SCENARIO.replace("DURATION", "1 h").replace('"sim"', '"live"')
    Path("long.toml").write_text(text, encoding="utf-8")
    counts: list[int] = []
    over = threading.Event()

    def look() -> None:
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and not (counts and counts[-1] > 10):
            if Path("messages.db").exists():
                # The tables may be being made.
                with contextlib.suppress(sa.exc.OperationalError):
                    counts.append(ask(url, "SELECT COUNT(*) FROM subscriber_log")[0][0])
            time.sleep(0.1)
        over.set()
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=look)
    watcher.start()
    done = mqttlab("run", "long.toml", "--no-html", "--sql", url, "--catalog", "none")
    watcher.join()
    assert over.is_set() and done.exit_code == 3, done.output
    assert counts[-1] > 10 and ask(url, "SELECT state FROM test") == [("incomplete",)]


def test_what_was_written_bit_by_bit_is_what_is_written_at_once(url: str, tmp_path: Path) -> None:
    whole = known(tmp_path / "run")
    part = write(tmp_path / "part", [Message(0, latency_ms=10), Message(1, latency_ms=None, qos=1, fate="under_way")])
    everything = "SELECT message, fate, latency_ns FROM subscriber_log ORDER BY message, received_ns"
    with MessageDatabase(url) as database:
        writer = Writer(database, Recording.open(part))
        assert writer.write(Recording.open(part), whole=False) == 3
        assert ask(url, everything) == [(0, "delivered", 10_000_000)]
        assert writer.write(Recording.open(part), whole=False) == 0
        writer.write(Recording.open(whole), whole=True)
    bit_by_bit = ask(url, everything)
    with MessageDatabase(url) as database:
        database.write(Recording.open(whole))
    assert ask(url, "SELECT COUNT(*) FROM test") == [(2,)]
    assert ask(url, everything.replace("ORDER", "WHERE test_id = (SELECT MAX(id) FROM test) ORDER")) == bit_by_bit


def test_a_run_is_written_and_its_end_too(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("short.toml").write_text(SCENARIO.replace("DURATION", "5 s"), encoding="utf-8")
    done = mqttlab("run", "short.toml", "--no-html", "--sql", url)
    assert done.exit_code == 0, done.output
    assert ask(url, "SELECT COUNT(*) FROM publisher_log") == [(50,)]
    assert ask(url, "SELECT COUNT(*), MIN(fate), MAX(fate) FROM subscriber_log") == [(100, "delivered", "delivered")]
    assert ask(url, "SELECT DISTINCT kind FROM data") == [("gps",)]


def test_a_database_that_cannot_be_used_is_told_before_anything_runs(tmp_path: Path) -> None:
    scenario = tmp_path / "short.toml"
    scenario.write_text(SCENARIO.replace("DURATION", "1 s"), encoding="utf-8")
    run = known(tmp_path / "run")
    for url in (f"postgresql://lab@/db?host={tmp_path}", f"sqlite:///{tmp_path}/nowhere/x.db", "oracle://x", tmp_path):
        for words in (("run", scenario, "--runs", tmp_path / "runs", "--sql", url), ("export", run, "--sql", url)):
            done = mqttlab(*words)
            assert done.exit_code in (1, 2) and done.stderr.startswith("mqttlab: --sql "), done.output
            assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()
    (tmp_path / "text.db").write_text("no database" * 100, encoding="utf-8")
    with pytest.raises(ExportError, match="not a database"):
        MessageDatabase(str(tmp_path / "text.db"))


def test_the_page_says_what_the_tables_have() -> None:
    page = (ROOT / "docs" / "how-to" / "sql.md").read_text(encoding="utf-8")
    for table in METADATA.tables.values():
        assert f"`{table.name}`" in page
        for column in table.c:
            assert f"`{column.name}`" in page, (table.name, column.name)
