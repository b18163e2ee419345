"""Tables on the terminal: their width, decided once; words wrap, numbers do not, and no column is lost."""

from __future__ import annotations

import io
import re

import pytest

from mqttlab.console import WIDTH_OF_FILES, Console, print_table, width_of_output

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
