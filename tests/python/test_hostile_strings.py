"""Strings that strangers wrote: every command, page and export of a recording whose every text is hostile."""

from __future__ import annotations

import json
import os
import pty
import re
import sqlite3
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import click
import polars as pl
import pytest

from captures import Client, Wire, publish
from commands import mqttlab
from hostile import HOSTILE, OURS, SCRIPT, STEERS, hidden, make_hostile
from mqttlab.cli import main
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import scenario

SCENARIO = """
name = "hostile"
backend = "sim"
network = "direct"
description = %s
phases = { duration = "1 s" }
[[groups]]
name = "publishers"
host = "field"
publish = { topic = "a", payload = "20 B", interval = "1 s" }
[[groups]]
name = "subscribers"
host = "field"
subscribe = [%s, "a"]
"""
# Commands whose words come from nobody but this program and the machine, or that other tests start: with why.
NOT_WALKED = {
    "dashboard": "its pages are walked below", "doctor": "the machine's own words", "networks": "our own models",
    "schema": "our own words", "study": "our own studies", "experiment": "its words are its file's, as those of check",
    "run": "prints what report does, of a run whose names are checked", "catalog upgrade": "versions",
    "queue add": "an identifier", "queue cancel": "a count", "queue pause": "nothing", "queue resume": "nothing",
    "queue wait": "nothing", "catalog baseline": "nothing",
    "catalog scrub": "names of files and of fields", "try": "prints what run does, of its own scenario",
    "new": "our own templates",
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two simulated recordings, everything in them hostile, in a directory with a hostile name."""
    place = tmp_path_factory.mktemp("made")
    runs = place / f"runs{STEERS.replace('/', '')}"
    runs.mkdir()
    for number, loss in ((1, "2 %"), (2, "5 %")):
        plain = place / f"plain-{number}"
        job = Job(compile_plan(parse_values(scenario(link={"loss": loss}))), plain)
        assert perform(job, lambda line: None).verdict == "complete"
        make_hostile(plain, runs / f"hostile-{number}")
    return runs


def capture(directory: Path) -> Path:
    """A capture in which a client of a hostile name publishes to a hostile topic, and its broker answers."""
    wire = Wire()
    topic = HOSTILE.replace("\x00", "").replace("#", "").replace("+", "")
    publisher, subscriber = Client(wire, "10.0.0.2", 4000), Client(wire, "10.0.0.3", 4001)
    publisher.connect(f"p{topic}")
    subscriber.connect(f"s{topic}")
    subscriber.subscribe(topic)
    for number in range(3):
        packet = publish(topic, bytes([number]) * 20)
        publisher.up(packet)
        subscriber.down(packet)
    return wire.save(directory / f"capture{STEERS}.pcap")


def walk(runs: Path, place: Path) -> list[tuple[str, ...]]:
    """The commands that show what a recording, a capture, a log or a scenario holds."""
    one, other = str(runs / "hostile-1"), str(runs / "hostile-2")
    (place / "scenario.toml").write_text(SCENARIO % (json.dumps(HOSTILE[:60]), json.dumps("a/" + STEERS[:12])),
                                         encoding="utf-8")
    (place / "wrong.toml").write_text(f'name = "x"\n{json.dumps(HOSTILE)} = {json.dumps(HOSTILE)}\n', encoding="utf-8")
    (place / "wrong.log").write_text(f"{HOSTILE}\n{HOSTILE};{HOSTILE}\n", encoding="utf-8")
    imported = str(place / "imported")
    return [
        ("report", one), ("report", one, "--json"), ("explain", one), ("compare", one, other, "--by", "message"),
        ("compare", one, other, "--json", "--html", str(place / "compare.html")),
        ("import", "capture", str(capture(place)), "--output", imported, "--runs", str(runs)), ("report", imported),
        ("import", "log", str(place / "wrong.log"), "--output", str(place / "log")),
        ("check", str(place / "scenario.toml")), ("check", str(place / "scenario.toml"), "--plan"),
        ("check", str(place / "wrong.toml")), ("calibrate", one),
        ("catalog", "scan", str(runs), "--runs", str(runs)), ("list", "--runs", str(runs)),
        ("list", "--runs", str(runs), "--where", "backend = sim", "--column", "name"),
        ("catalog", "tag", one, HOSTILE, "--runs", str(runs)), ("catalog", "note", one, HOSTILE, "--runs", str(runs)),
        ("catalog", "names", "--runs", str(runs)), ("catalog", "query", "--runs", str(runs), "--column", "name"),
        ("catalog", "query", "--runs", str(runs), "--column", "name", "--csv", str(place / "catalog.csv")),
        ("queue", "list", "--queue", str(place / "queue")), ("event", one, f"network={HOSTILE}", "down=true"),
        ("export", one, "--csv", str(place / "csv"), "--xlsx", str(place / "run.xlsx"),
         "--sql", f"sqlite:///{place / 'messages.db'}"),
        ("export", one, "--pcapng", str(place / "run.pcapng")),
        ("report", HOSTILE.replace("/", "")), ("report", one, f"--{HOSTILE}"), (HOSTILE,), ("export", "\udcff"),
    ]


def of_all_commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group) and name != "experiment":
            yield from of_all_commands(command, (*words, name))
        else:
            yield " ".join((*words, name))


# All commands in one process, for its start takes longer than most of them.
PROGRAM = """
import json, sys
from mqttlab.cli import main
for words in json.load(open(sys.argv[1], encoding="utf-8")):
    try:
        main([word.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape") for word in words])
    except SystemExit:
        pass
"""


@pytest.fixture(scope="module")
def walked(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Where their files are, and what all commands said on a real terminal, where Rich draws its bars."""
    place = tmp_path_factory.mktemp("walked")
    (place / "words.json").write_text(json.dumps(walk(runs, place)), encoding="utf-8")
    process, terminal = pty.fork()
    if process == 0:
        os.environ |= {"COLUMNS": "250", "TERM": "xterm-256color"}
        os.execv(sys.executable, [sys.executable, "-c", PROGRAM, str(place / "words.json")])
    said = bytearray()
    while True:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:
            # Linux says so when the last one has closed it.
            break
        if not part:
            break
        said += part
    os.waitpid(process, 0)
    return place, said.decode()


def test_every_command_is_walked_or_says_why_it_is_not(runs: Path, tmp_path: Path) -> None:
    known = set(of_all_commands(main))
    given = walk(runs, tmp_path)
    walked = {name for name in known if any(" ".join(words).startswith(name) for words in given)}
    assert walked | NOT_WALKED.keys() == known


def test_no_command_steers_a_terminal(walked: tuple[Path, str]) -> None:
    _, said = walked
    text = OURS.sub("", said.replace("\r\n", "\n"))
    assert hidden(text) == []
    # They had something to say: the test is none of silence.
    assert text.count("\\x1b[2J") > 50 and "Traceback" not in text
    # A line that a stranger has written is not one of ours, and his link leads nowhere.
    assert not re.search(r"^mqttlab: valid", text, re.MULTILINE)
    assert "\x1b]8;" not in said


def test_no_command_says_what_nobody_sees_into_a_pipe(runs: Path, tmp_path: Path) -> None:
    said = {}
    for words in walk(runs, tmp_path):
        if words[0] in ("report", "explain", "check", "list", "import") or "--json" in words:
            done = mqttlab(*words)
            assert done.returncode in (0, 2, 6), (words, done.stderr)
            said[words] = done.stdout + done.stderr
    assert {words: found for words, text in said.items() if (found := hidden(text))} == {}
    assert "\n".join(said.values()).count("x1b[2J") > 20


def test_no_file_holds_what_nobody_sees(walked: tuple[Path, str], runs: Path) -> None:
    place, _ = walked
    pages = [*runs.glob("*/*.html"), *runs.glob("*/*.svg"), *place.glob("*.html"), *place.glob("*/*.html")]
    tables = [*place.rglob("*.csv")]
    assert len(pages) >= 4 and len(tables) > 10
    for path in [*pages, *tables]:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".html":
            # Plotly's own script has such characters in its strings, the page around it has none.
            text = re.sub(r"<script>/\*\*.*?</script>", "", text, flags=re.DOTALL)
        assert hidden(text) == [], path
        assert SCRIPT not in text or path.suffix == ".csv", path
    for path in tables:
        columns = pl.read_csv(path, infer_schema=False, glob=False).get_columns()
        words = pl.concat(column.alias("words") for column in columns).drop_nulls()
        assert words.filter(words.str.contains(r"^\s*[=+@]")).to_list() == [], path
    with zipfile.ZipFile(place / "run.xlsx") as packed:
        for name in packed.namelist():
            text = packed.read(name).decode()
            assert hidden(text) == [] and "<f>" not in text and "_x001B_" not in text, name


def test_no_database_holds_what_nobody_sees(walked: tuple[Path, str], runs: Path) -> None:
    place, _ = walked
    for path in (place / "messages.db", runs / "catalog.db"):
        with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True) as database:
            for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                rows = database.execute(f'SELECT * FROM "{table}"')
                names = [column[0] for column in rows.description]
                for row in rows:
                    for name, value in zip(names, row, strict=True):
                        assert name == "directory" or not isinstance(value, str) or hidden(value) == [], (table, name)


def test_no_page_runs_a_strangers_script(walked: tuple[Path, str], runs: Path) -> None:
    from dashboards import dashboard, visitor

    place, _ = walked
    with dashboard(runs) as served, visitor(served) as somebody:
        page = somebody.page
        looked = []
        for path in ("/", "/run/hostile-1?part=network", "/run/hostile-1?part=recent",
                     "/compare?first=hostile-1&second=hostile-2"):
            somebody.go(path)
            looked.append((path, page.inner_text("body"), page.title()))
            assert page.locator("img[src=x]").count() == 0, path
        for path in (runs / "hostile-1" / "report.html", place / "compare.html",
                     next((runs / "hostile-1").glob("explain-*.html"))):
            page.goto(path.as_uri())
            page.wait_for_load_state()
            looked.append((path.name, page.inner_text("body"), page.title()))
            assert page.locator("img[src=x], a[href*=evil]").count() == 0, path
        for where, text, title in looked:
            assert hidden(text) == [] and "broken-into" not in title.split("<")[0], where
        assert "\\x1b[2J" in "".join(text for _, text, _ in looked)
