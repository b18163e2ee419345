"""Numbers in sentences: as many digits as are read, and in no surface a power of ten."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from mqttlab.digits import duration, plain
from mqttlab.quantity import rate_words
from mqttlab.report.text import number, rounded
from mqttlab.statistics.drift import Drift

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "mqttlab"
# Who formats numbers to so many significant digits: the owner, a value as its file has it (`shown`), and the published
# studies, whose results are committed as an owner of their own has written them.
OWNERS = ("digits.py", "quantity.py", "studies/")


@pytest.mark.parametrize(("value", "digits", "words"), [
    (0.25, 6, "0.25"), (86_400.0, 6, "86400"), (1234.0, 4, "1,234"),
    (1e6, 6, "1,000,000"), (2643.21, 3, "2,643"), (999.6, 3, "1,000"),
    (8.8e-6, 2, "0.0000088"), (-1e-9, 6, "-0.000000001"), (0.0, 3, "0"), (-2643.21, 3, "-2,643"),
    (float("inf"), 3, "inf"), (1e20, 6, "100,000,000,000,000,000,000"),
])
def test_a_number_has_no_power_of_ten(value: float, digits: int, words: str) -> None:
    assert plain(value, digits) == words
    assert plain(value, digits, grouped=False) == words.replace(",", "")


def test_sentences_of_reports_have_none_either() -> None:
    assert rounded("after a cool-down of 2640.123 s, late 119810.200 ms") == "after a cool-down of 44 min, late 120 s"
    assert rounded("0.12345 ms, 1234567 us, 42.5 s and 65535 ms") == "0.123 ms, 1,234,567 us, 42.5 s and 65.5 s"
    assert number(0.0000088) == "0.0000088" and number(8.8e6) == "8,800,000"
    assert rate_words(0.00001) == "0.00001 bit/s" and rate_words(5e12) == "5,000 Gbit/s"
    assert "p < 0.0001," in Drift(rho=-0.99, p=3e-12, n=20).words()
    assert "p = 0.0016," in Drift(rho=-0.87, p=0.0016, n=9).words()


@pytest.mark.parametrize(("ns", "words"), [
    (None, "–"), (0, "0 s"), (999, "999 ns"), (1500, "1.5 µs"), (9_999_000_000, "10 s"), (119_810_200_000, "120 s"),
    (32_640_000_000, "32.6 s"), (599_400_000_000, "599 s"), (599_900_000_000, "10 min"),
    (1_085_630_000_000, "18.1 min"), (7_199_900_000_000, "2 h"), (90 * 3600 * 10**9, "90 h"),
    (-1_085_630_000_000, "-18.1 min"),
])
def test_a_length_of_time_has_the_unit_in_which_people_say_it(ns: int | None, words: str) -> None:
    assert duration(ns) == words


def test_numbers_are_written_by_their_owner() -> None:
    """No other module formats by `g` or `e`, which write powers of ten; d3's `g` of figures does as well."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        if any(place.startswith(owner) for owner in OWNERS):
            continue
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        read_again = {part for node in ast.walk(tree) if isinstance(node, ast.Call)
                      and isinstance(node.func, ast.Name) and node.func.id == "float" for part in ast.walk(node)}
        found += [f"{place}:{node.lineno}" for node in ast.walk(tree)
                  if isinstance(node, ast.FormattedValue) and node not in read_again
                  and re.search(r"[geGE]$", _spec(node))]
        found += [f"{place}: {match[0]}" for match in re.finditer(r"%\{+\w+:[^}]*[geGE]\}", text)]
    assert found == []


def _spec(node: ast.FormattedValue) -> str:
    """What follows the colon, as far as it is written out."""
    parts = node.format_spec.values if isinstance(node.format_spec, ast.JoinedStr) else []
    return "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))
