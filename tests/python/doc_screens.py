"""The screens in the documents: ``python tests/python/doc_screens.py [PAGE…]`` runs the commands and writes what they
print.

A page has commands and screens in blocks of the language ``console``. A line that begins with ``$ `` is a command, and
goes on after a last ``\\`` or until the ``END`` of a here-document. The lines below it are its standard output. The
commands of a page run one after the other in one new folder. Times in names of recordings are always the same.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WHEN = re.compile(r"(?<=-)\d{8}-\d{6}")


@dataclass(frozen=True)
class Screen:
    """A command with what a page says that it prints."""

    command: str
    printed: str


def shown(printed: str) -> str:
    """What a page shows of what a command has printed."""
    lines = WHEN.sub("20261127-120000", printed).strip("\n").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def screens(block: str) -> Iterator[Screen]:
    """The commands of a block."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        count = 1
        while lines[count - 1].endswith("\\\n"):
            count += 1
        if "<<" in lines[0]:
            count = lines.index("END\n") + 1
        yield Screen("".join(lines[:count]), "".join(lines[count:]))


def screens_of(page: Path) -> list[Screen]:
    """All commands of a page."""
    text = page.read_text(encoding="utf-8")
    return [screen for block in BLOCK.findall(text) for screen in screens(block)]


def _run(command: str, folder: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "MQTTLAB_CATALOG")}
    environment |= {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                    "MQTTLAB_QUEUE": str(folder / "queue")}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4, 5):
        raise SystemExit(f"{command}{done.stderr}")
    return done.stdout


def renewed(page: Path) -> str:
    """A page with what its commands print today."""
    with tempfile.TemporaryDirectory(prefix="mqttlab-docs-") as folder:
        def block(found: re.Match[str]) -> str:
            said = [f"$ {each.command}{shown(_run(each.command, Path(folder)))}" for each in screens(found[1])]
            return f"```console\n{''.join(said)}```"

        return BLOCK.sub(block, page.read_text(encoding="utf-8"))


if __name__ == "__main__":
    for each in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        if screens_of(each):
            each.write_text(renewed(each), encoding="utf-8")
            print(each.relative_to(ROOT))
