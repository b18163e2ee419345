"""Text of others reaches a terminal, page, figure, file or database by one function each, and none of it is hidden."""

from __future__ import annotations

import ast
import csv
import io
import json
import logging
import re
import subprocess
import sys
import unicodedata
import zipfile
from pathlib import Path

import polars as pl
import pytest

from mqttlab import foreign, sheets, terminal
from mqttlab.catalog.rows import Rows
from mqttlab.console import Console
from mqttlab.engine import engine_path
from mqttlab.figures.drawing import Figure, trace

PACKAGE = Path(foreign.__file__).parent
# Signs of Arabic and Kaithi numbers, which are seen; and halves of pairs, which are hidden, too.
SEEN = {*range(0x600, 0x606), 0x6DD, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
HOSTILE = "a\x1b]0;owned\x07\x9b2J\u202eb\u200b\n\x7f\udcff"
SHOWN = r"a\x1b]0;owned\x07\x9b2J\u202eb\u200b\n\x7f\xff"


def test_what_unicode_calls_a_control_or_a_format_is_hidden_and_no_letter_is() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    hidden = set(foreign.HIDDEN.findall(every))
    kinds = {letter: unicodedata.category(letter) for letter in every}
    controls = {letter for letter, kind in kinds.items() if kind in ("Cc", "Cf", "Zl", "Zp", "Cs")}
    assert set(map(ord, controls - hidden)) <= SEEN
    assert {letter for letter in hidden - controls if kinds[letter][0] in "NPSZ"} == set()


def test_hidden_characters_become_escapes_and_everything_else_stays() -> None:
    assert foreign.visible(HOSTILE) == SHOWN
    assert foreign.visible("Grüße ☃ 漢字 \\x1b") == "Grüße ☃ 漢字 \\x1b"
    assert foreign.laid_out("a\n\tb\r\x1b") == "a\n\tb\\r\\x1b"
    assert foreign.markup("<b title='\"'>\x1b&") == "&lt;b title=&#x27;&quot;&#x27;&gt;\\x1b&amp;"
    assert foreign.visible("\U000e0041") == r"\U000e0041"


def test_json_is_the_same_value_in_characters_that_are_seen() -> None:
    for ascii_only in (True, False):
        text = foreign.json_text({HOSTILE: [HOSTILE, "é\U000e0041"]}, indent=1, ascii_only=ascii_only)
        assert json.loads(text) == {HOSTILE: [HOSTILE, "é\U000e0041"]}
        assert not foreign.HIDDEN.search(text.replace("\n", ""))


def test_a_file_is_named_by_letters_and_lies_where_it_is_put() -> None:
    assert foreign.file_name("../../etc/\x1bpasswd") == "______etc__passwd"
    assert foreign.file_name("latency p99 (ms)") == "latency_p99__ms_"
    assert foreign.file_name("") == "_"
    assert foreign.file_name("..", also=".") == "_."
    assert foreign.file_name("a b.c/d\u202e", also=". ") == "a b.c_d_"


def printed(*words: str, markup: bool = True) -> str:
    console = Console(file=io.StringIO(), width=200, force_terminal=True)
    console.print(*words, markup=markup)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_a_console_obeys_nobody_but_us() -> None:
    assert SHOWN in re.sub(r"\x1b\[[\d;]*m", "", printed(HOSTILE, markup=False))
    assert "\x1b]" not in printed("[link=https://evil.example]click[/link]")
    assert printed("[bold]ours[/]") == "\x1b[1mours\x1b[0m\n"


def test_a_figure_shows_tags_as_text() -> None:
    name = "<a href='https://evil.example'>&lt;b&gt;</a><img src=x>\x1b"
    figure = Figure().add_trace(trace("scatter", x=[name], y=[1.0], name=name, hovertemplate="%{x}<br>" + name))
    told = json.loads(figure.to_json())["data"][0]
    assert told["name"] == told["x"][0] == (
        "&lt;a href='https://evil.example'>&amp;lt;b&amp;gt;&lt;/a>&lt;img src=x>\\x1b")
    assert told["hovertemplate"].startswith("%{x}<br>&lt;a")


def test_a_log_obeys_nobody_either(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger()
    before = logger.handlers[:]
    logger.handlers[:] = []
    try:
        terminal.keep_log()
        logging.getLogger("test").warning("the page %s failed", HOSTILE)
    finally:
        logger.handlers[:] = before
    assert capsys.readouterr().err == f"the page {foreign.laid_out(HOSTILE)} failed\n"


FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "  =1", "\t=1", "\r=1", "＝1", "-", "--1"]
NUMBERS = ["-5", "+3.5", "-1e-9", "-.5", "7", " -4 "]


def test_a_csv_file_holds_no_formula_and_numbers_stay_numbers() -> None:
    table = pl.DataFrame({"=head": FORMULAS + NUMBERS, "number": [-1.5] * 16}).with_columns(
        pl.col("=head").cast(pl.Categorical).alias("kind"))
    rows = list(csv.reader(io.StringIO(sheets.csv_text(table))))
    assert rows[0] == ["'=head", "number", "kind"]
    assert [row[0] for row in rows[1:]] == [
        *("'" + word if not word.startswith(("\t", "\r")) else foreign.visible(word) for word in FORMULAS), *NUMBERS]
    assert {row[1] for row in rows[1:]} == {"-1.5"}
    assert [row[2] for row in rows[1:]] == [row[0] for row in rows[1:]]


def test_a_workbook_holds_text_as_text(tmp_path: Path) -> None:
    table = pl.DataFrame({"text": ["=1+1", "https://evil.example", HOSTILE[:-1], "12"], "number": [1, 2, 3, 4]})
    with sheets.workbook(tmp_path / "book.xlsx") as book:
        sheets.write_sheet(book, table, "a/b:" + "c" * 40)
    with zipfile.ZipFile(tmp_path / "book.xlsx") as packed:
        sheet = packed.read("xl/worksheets/sheet1.xml").decode()
        words = packed.read("xl/sharedStrings.xml").decode()
    assert "<f>" not in sheet and "hyperlink" not in sheet
    assert ">=1+1<" in words and ">12<" in words and "\\x1b" in words and "_x001B_" not in words


def test_a_database_gets_words_that_are_seen_and_a_directory_as_it_is() -> None:
    done: list[object] = []
    Rows(lambda statement, values: done.append(values) or []).insert("run", [{"name": HOSTILE, "directory": "a\x1b"}])
    assert done == [[{"name": foreign.laid_out(HOSTILE), "directory": "a\x1b"}]]


def test_the_dashboard_answers_in_characters_that_are_seen() -> None:
    pytest.importorskip("flask")
    from mqttlab.dashboard.legible import legible_json

    value = {"a\u202e": [HOSTILE, "\\u001b", "line\nend\t\U000e0041", 1.5, None]}
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        shown = json.loads(legible_json(text))
        assert shown == {r"a\u202e": [foreign.laid_out(HOSTILE), "\\u001b", "line\nend\t\\U000e0041", 1.5, None]}
    assert legible_json('{"plain": "\\n\\"\\\\u001b"}') == '{"plain": "\\n\\"\\\\u001b"}'


# What may be called where. Anything else goes through the functions that these modules have.
ONLY_IN = {
    # What `make` writes a file of; a client's word to its engine.
    "print": {"catalog/tables.py", "studies/andersen2021/paho_client.py"},
    "click.echo": {"terminal.py"}, "click.secho": {"terminal.py"},
    "rich.console.Console": set(), "rich.print": set(),
    "sys.stdout.write": set(), "sys.stderr.write": {"__main__.py"},
    # A scrub looks for what HTML has written.
    "html.escape": {"foreign.py", "scrubbing.py"}, "xml.sax.saxutils.escape": set(), "markupsafe.escape": set(),
    "csv.writer": set(), "csv.DictWriter": set(), "xlsxwriter.Workbook": {"sheets.py"},
}
METHODS = {"write_csv": {"sheets.py"}, "write_excel": {"sheets.py"}, "sink_csv": set()}


def called(tree: ast.Module) -> set[str]:
    """What a module calls, by full names as far as its imports tell, and methods by `.name`."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {(alias.asname or alias.name).partition(".")[0]: (alias.asname and alias.name)
                      or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            parts, place = [], node.func
            while isinstance(place, ast.Attribute):
                parts.insert(0, place.attr)
                place = place.value
            found |= {f".{parts[-1]}"} if parts else set()
            if isinstance(place, ast.Name):
                found |= {".".join([names.get(place.id, place.id), *parts])}
    return found


def test_nothing_is_printed_or_written_by_another_way() -> None:
    problems = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        calls = called(ast.parse(path.read_text(encoding="utf-8")))
        problems += [f"{name}: {call}" for call, where in ONLY_IN.items() if call in calls and name not in where]
        problems += [f"{name}: .{method}" for method, where in METHODS.items()
                     if f".{method}" in calls and name not in where
                     and not {"mqttlab.sheets.write_csv", "mqttlab.sheets." + method} & calls]
    assert problems == []


def test_the_engine_complains_in_one_place_and_hides_as_little() -> None:
    crates = PACKAGE.parents[1] / "crates"
    loud = {path.relative_to(crates).as_posix() for path in crates.glob("*/src/**/*.rs")
            if re.search(r"\beprint(ln)?!|io::stderr", re.split(r"\n#\[cfg\(test\)\]", path.read_text("utf-8"))[0])}
    # The second says in tests why they were skipped.
    assert loud <= {"engine/src/stderr.rs", "system/src/namespaces.rs"}
    text = (crates / "engine" / "src" / "stderr.rs").read_text("utf-8")
    ranges = re.findall(r"^    \(0x([0-9a-f]+), 0x([0-9a-f]+)\),", text, re.MULTILINE)
    assert tuple((int(low, 16), int(high, 16)) for low, high in ranges) == foreign.RANGES


def test_the_engine_complains_in_characters_that_are_seen() -> None:
    for words in (("recover", "/nowhere" + HOSTILE[:-1]), ("summarise", "/nowhere" + HOSTILE[:-1]), (HOSTILE[:-1],)):
        done = subprocess.run([engine_path(), *words], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode != 0 and done.stderr.startswith("mqttlab-engine: ")
        assert foreign.visible(done.stderr.removesuffix("\n")) + "\n" == done.stderr
        assert "\\x1b]0;owned\\x07\\x9b2J\\u202e" in done.stderr
