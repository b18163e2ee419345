"""Tables on the terminal: their width, decided once; words wrap, numbers do not, and no column is lost."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
import rich.console
from rich.text import Text

from commands import mqttlab
from mqttlab.console import Console, print_table, sentence
from mqttlab.networks import MODELS
from mqttlab.terminal import WIDTH_OF_FILES, width_of_output
from recordings import Message, write

EDGES = "┏┡┗└┃│"


def rows_of_tables(printed: str) -> list[str]:
    """The lines of tables."""
    return [line for line in printed.splitlines() if line[:1] and line[0] in EDGES]


def tables_fit(printed: str, width: int) -> None:
    """No line of a table is wider."""
    assert rows_of_tables(printed)
    assert max(map(len, rows_of_tables(printed))) <= width


def numbers_of_tables(printed: str) -> list[str]:
    """The numbers in cells, as they are written."""
    return [word for line in rows_of_tables(printed) for word in line.split() if re.fullmatch(r"[+−-]?\d[\d,.]*", word)]


@pytest.mark.parametrize(("environment", "is_terminal", "width"), [
    ({}, False, WIDTH_OF_FILES), ({}, True, None), ({"COLUMNS": "72"}, False, 72), ({"COLUMNS": "72"}, True, 72),
    ({"COLUMNS": ""}, False, WIDTH_OF_FILES), ({"COLUMNS": "0"}, False, WIDTH_OF_FILES),
    ({"COLUMNS": "wide"}, True, None), ({"COLUMNS": "²"}, False, WIDTH_OF_FILES),
])
def test_the_width_is_decided_once(environment: dict[str, str], is_terminal: bool, width: int | None) -> None:
    assert width_of_output(environment, is_terminal=is_terminal) == width


def test_a_console_has_this_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert Console(file=io.StringIO()).width == WIDTH_OF_FILES
    assert Console(file=io.StringIO(), width=64).width == 64
    monkeypatch.setenv("COLUMNS", "123")
    assert Console(file=io.StringIO()).width == 123


@pytest.mark.parametrize("width", [30, 60, 80, 100, 140, 400])
def test_words_wrap_and_numbers_do_not(width: int) -> None:
    heads = ["point", *(f"kB/device/h up of group {number}" for number in range(12))]
    numbers = [[f"{row * 1_000_003 + place * 7_919 + 1_000_000:,}.{place:02}" for place in range(12)]
               for row in range(3)]
    rows = [[f"loss 2 %, a rather long description of the point {row}", *cells] for row, cells in enumerate(numbers)]
    text = io.StringIO()
    print_table(Console(file=text, width=width), "Widest [of] all", heads, rows)
    printed = text.getvalue()
    for cells in numbers:
        assert [printed.count(f" {cell} ") for cell in cells] == [1] * 12
    tables_fit(printed, width)
    assert "Widest [of] all" in printed and ("(part 2 of" in printed) == (width < 400)
    assert printed.count("description") == 3 * printed.count("Widest")


def test_each_part_of_a_table_names_its_columns() -> None:
    text = io.StringIO()
    heads = ["point", *(f"metric_{place} (kB/device/h)" for place in range(5))]
    print_table(Console(file=text, width=60), "Means", heads, [["a", *["1234567.8"] * 5]])
    titles = [line.strip() for line in text.getvalue().splitlines() if line.startswith("Means")]
    assert titles == ["Means (part 1 of 2: metric_0 to metric_2)", "Means (part 2 of 2: metric_3 to metric_4)"]


def test_a_number_wider_than_the_lines_is_not_cut() -> None:
    text = io.StringIO()
    print_table(Console(file=text, width=20), "t", ["of", "value"], [["one", "1234567890123456789012345"]])
    assert "1234567890123456789012345" in text.getvalue()


def test_a_long_path_takes_no_room_from_numbers() -> None:
    text = io.StringIO()
    path = "/".join(f"directory{number}" for number in range(30))
    print_table(Console(file=text, width=80), "t", ["path", "value"], [[path, "12.5"], ["", ""]])
    tables_fit(text.getvalue(), 80)
    letters = re.sub(r"[^a-z0-9/]", "", "".join(line.split("│")[1] for line in rows_of_tables(text.getvalue())
                                              if line.startswith("│")))
    assert letters == path and "12.5" in text.getvalue()


@pytest.mark.parametrize("columns", ["", "60", "80", "140"])
@pytest.mark.parametrize("words", [("networks",), ("networks", "--tcp"), ("doctor",), ("study", "list")])
def test_tables_of_small_commands_fit(
    words: tuple[str, ...], columns: str, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They were as wide as they were, and cut `1000` to `100…` at 80 columns."""
    monkeypatch.setenv("COLUMNS", columns)
    printed = mqttlab(*words).stdout
    tables_fit(printed, int(columns or 100))
    assert "…" not in printed
    if words == ("networks",):
        assert set(numbers_of_tables(printed)) >= {f"{model.up.rate / 1000:g}" for model in MODELS.values()
                                                   if model.up.rate is not None}


@pytest.mark.parametrize("columns", ["40", "60", "100"])
def test_a_list_is_as_wide_as_the_terminal_and_cuts_no_cell(
    columns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.chdir(tmp_path)
    name = "a-recording-with-a-long-name-20261127-120000"
    write(tmp_path / "runs" / name, [Message(number, 12_345.0) for number in range(100)])
    assert mqttlab("catalog", "scan", "runs").returncode == 0
    for words in (("list",), ("list", "--where", "latency_ms_p99 > 1", "--column", "name")):
        printed = mqttlab(*words).stdout
        assert f"runs/{name}" in printed and "12345" in printed
        # What is longer than a line has one of its own.
        assert all(len(line) <= int(columns) or line.split() == ["directory", f"runs/{name}"]
                   for line in printed.splitlines()), printed


def test_cells_of_several_lines_stand_apart_and_fit(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(width=60)
    print_table(console, "Claims", ("claim", "numbers"), [
        ("QoS 2 is slower than QoS 0 " * 4, Text("1 of 3: 12.5 ms\n2 of 3: 13.25 ms")), ("short", "7")],
        left=(0, 1), lines=True)
    printed = capsys.readouterr().out
    tables_fit(printed, 60)
    assert "1 of 3: 12.5 ms" in printed and "2 of 3: 13.25 ms" in printed and printed.count("├") == 1


@pytest.mark.parametrize("of", [Console, rich.console.Console])
@pytest.mark.parametrize("terminal", [True, False])
def test_a_sentence_wraps_on_a_terminal_and_is_one_line_in_a_file(
    of: type[rich.console.Console], terminal: bool,
) -> None:
    """Fifteen places said it; who looks for a sentence in a log finds it."""
    out = io.StringIO()
    console = of(file=out, force_terminal=terminal, width=30, color_system=None)
    sentence(console, "QoS 1 [bold]against[/] QoS 0: p99 the same, 24 % more bytes up.", "bold")
    printed = out.getvalue()
    assert " ".join(printed.split()) == "QoS 1 [bold]against[/] QoS 0: p99 the same, 24 % more bytes up."
    assert (printed.count("\n") > 1) is terminal
    assert max(map(len, printed.splitlines())) <= (30 if terminal else 100)


def test_a_sentence_of_others_is_shown_with_escapes() -> None:
    out = io.StringIO()
    sentence(Console(file=out), "run \x1b[2J is late")
    assert out.getvalue() == "run \\x1b[2J is late\n"
