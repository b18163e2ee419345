"""A recording whose every text is hostile, for tests of all that shows one."""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import polars as pl

from unchecked import without_checks

# Clears the screen, sets the title, begins a line that was never said, runs from right to left, is not seen, is a
# formula to spreadsheets, a script to pages, a link to Rich and to Plotly.
SCRIPT = "<img src=x onerror=document.title='broken-into'><script>document.title='broken-into'</script>"
STEERS = "\x1b[2J\x1b]0;owned\x07\x9b1A\x85\x7f\u202e\u2066\u200b\ufeff\r\nmqttlab: valid"
HOSTILE = f"=1+1{STEERS}{SCRIPT}[link=https://evil.example]<a href='https://evil.example'>x</a>"
# What is hidden, judged by Unicode's own table and not by the code under test.
LAID_OUT = "\n\t"
# What a terminal is told by us: colours, and how a bar is drawn.
OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[\d*[AKG]|\x1b\[1A\x1b\[2K|\x1b\[2K|\r(?=\n|\x1b\[|$)")
# Words of the program's own, by which it finds what belongs together.
OWN_FIELDS = {"backend", "kind", "role", "status", "fate", "cause", "run_id", "started_at", "profile", "producer",
              "engine", "arrival", "version", "schema", "protocol", "transport"}


def hidden(text: str) -> list[str]:
    """The control characters of a text that nobody sees, with what stands before each."""
    return [ascii(text[max(0, place - 40):place + 1]) for place, letter in enumerate(text)
            if unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp", "Cs") and letter not in LAID_OUT]


def make_hostile(run: Path, out: Path) -> Path:
    """A copy of a recording, every text of every table of it and every name hostile, where it still can be read."""
    shutil.copytree(run, out)
    for path in out.glob("*.parquet"):
        table = pl.read_parquet(path, glob=False)
        texts = [name for name, kind in table.schema.items() if kind in (pl.String, pl.Categorical) or
                 isinstance(kind, pl.Enum)]
        # Words that the program knows stay in two rows of three, so that there is something to show.
        table = table.with_row_index("place").with_columns(
            pl.when((pl.col("place") % 3 == 1) | pl.lit(name in ("topic", "detail")))
            .then(pl.lit(HOSTILE)).otherwise(pl.col(name).cast(pl.String)).alias(name) for name in texts).drop("place")
        table.write_parquet(path)
    for name in ("plan.json", "layout.json", "run.json", "incomplete.json"):
        path = out / name
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
            path.write_text(json.dumps(_hostile(found)), encoding="utf-8")
    without_checks(out)
    (out / "summary.json").unlink(missing_ok=True)
    return out


def _hostile(value: Any, field: str = "") -> Any:
    """Each text of a value with something behind it, always the same, so that names still name each other."""
    if isinstance(value, dict):
        return {name: _hostile(part, name) for name, part in value.items()}
    if isinstance(value, list):
        return [_hostile(part, field) for part in value]
    return value + HOSTILE if isinstance(value, str) and field not in OWN_FIELDS else value
