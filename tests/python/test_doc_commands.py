"""Every command in the documents is one that mqttlab knows, and figures beside a link to a screen stand on that screen.

Commands stand in indented blocks, in blocks of a language, and between backquotes. Each is read as the command line
reads it: the command is there, its options are, and a choice is one of those that are. What they print is tested in
``test_doc_screens.py``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from mqttlab.cli.main import main
from test_docs import slug_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")),
         *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "experiments").rglob("README.md")),
         *sorted((ROOT / "python").rglob("README.md"))]
# Of what is given wrongly on purpose these pages have the answers.
WRONG = {ROOT / "docs" / "reference" / name for name in ("messages.md", "messages-experiment.md")}
COMMAND = re.compile(r"(?:^(?: {4}|\$ )|`)(?:\.venv/bin/)?(mqttlab [a-z][^`\n]*)", re.MULTILINE)


def commands(text: str) -> Iterator[list[str]]:
    """The words of every command in a text, without what a shell does with its output."""
    joined = re.sub(r"\\\n\s*", "", text)
    for found in COMMAND.findall(joined):
        # Explained beside the command: at least two spaces away, or behind a comment sign.
        told = re.split(r" {2,}| #|[|>] |;", re.sub(r" *<<END", "", found))[0]
        try:
            yield shlex.split(told)[1:]
        except ValueError:
            # A quotation that goes on in the next line; its options are those before it.
            yield shlex.split(told[:told.index("'")])[1:]


def refused(words: list[str]) -> str | None:
    """What is wrong with a command; none where nothing is."""
    command: click.Command = main
    rest = list(words)
    while isinstance(command, click.Group):
        if not rest or rest[0] not in command.commands:
            # Three dots stand for a command of any kind.
            return None if not rest or rest[0].startswith(("-", "…")) else f"no command {rest[0]}"
        command = command.commands[rest.pop(0)]
    options = {name: param for param in command.params if isinstance(param, click.Option)
               for name in (*param.opts, *param.secondary_opts)}
    while rest:
        word, equals, value = rest.pop(0).partition("=")
        if not word.startswith("--") or word in ("--", "--help"):
            continue
        if word not in options:
            return f"no option {word}"
        option = options[word]
        if option.is_flag or option.count:
            continue
        if not equals:
            # A sentence may name an option without its value, at the end.
            value = rest.pop(0) if rest else ""
        choices = option.type.choices if isinstance(option.type, click.Choice) else ()
        if choices and value and value not in choices and not re.search(r"[A-Z…|]", value):
            return f"{word} {value}"
    return None


@pytest.mark.parametrize("page", [page for page in PAGES if page not in WRONG],
                         ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_command_of_a_page_is_one(page: Path) -> None:
    wrong = [f"mqttlab {' '.join(words)}: {why}" for words in commands(page.read_text(encoding="utf-8"))
             if (why := refused(words))]
    assert wrong == []


def test_commands_are_found_and_wrong_ones_refused() -> None:
    text = ("`mqttlab run a.toml --full`\n\n    mqttlab try --clients 2 \\\n      --fast   # quick\n\n"
            "$ mqttlab nothing\n")
    found = list(commands(text))
    assert found == [["run", "a.toml", "--full"], ["try", "--clients", "2", "--fast"], ["nothing"]]
    assert [refused(words) for words in found] == [None, "no option --fast", "no command nothing"]
    assert refused(["run", "a.toml", "--backend", "dream"]) == "--backend dream"
    assert refused(["run", "a.toml", "--backend", "sim"]) is None
    assert sum(len(list(commands(page.read_text(encoding="utf-8")))) for page in PAGES) > 400


SCREEN = re.compile(r"\]\(([^)#]*)#([^)]+)\)\s+has\s+(?:the|a)\s+screen")
NUMBER = re.compile(r"(?<![\w.,#-])\d[\d,]*(?:\.\d+)?(?!\w)")
NAMES = re.compile(r"QoS \d(?: and \d)?|`[^`]*`|\[[^\]]*\]\([^)]*\)")
GIVEN = {
    # Days of a month, hours of a day; cells and their energy.
    "how-to/data-volume.md": {"30", "24"},
    "how-to/battery.md": {"7.5"},
}
"""Numbers beside a link to a screen that are no results, by page."""


def beside_screens() -> Iterator[tuple[str, str, str]]:
    """Page, paragraph, and the section with the screen that the paragraph names."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for paragraph in page.read_text(encoding="utf-8").split("\n\n"):
            for target, anchor in SCREEN.findall(paragraph):
                text = (page.parent / target if target else page).resolve().read_text(encoding="utf-8")
                parts = [part for part in re.split(r"^(?=#+ )", text, flags=re.MULTILINE)
                         if slug_of(part.split("\n", 1)[0].lstrip("# ")) == anchor]
                assert len(parts) == 1, (page, anchor)
                yield page.relative_to(ROOT / "docs").as_posix(), paragraph, parts[0]


def is_printed(word: str, screens: str) -> bool:
    """Whether a number stands among those of a screen, rounded to its digits; or a thousandth: 21.5 s for 21,531 ms."""
    digits = len(word.split(".")[1]) if "." in word else 0
    wanted = float(word.replace(",", ""))
    exact = [float(found.replace(",", "")) for found in NUMBER.findall(screens)]
    return any(round(each / scale, digits) == wanted for each in exact for scale in (1, 1000))


@pytest.mark.parametrize(("page", "paragraph", "section"), [pytest.param(*found, id=found[0])
                                                            for found in beside_screens()])
def test_figures_beside_a_link_to_a_screen_stand_on_it(page: str, paragraph: str, section: str) -> None:
    numbers = NUMBER.findall(NAMES.sub("", re.sub(r"\*\*[^*]*\*\*", "", paragraph)))
    assert [word for word in numbers if word not in GIVEN.get(page, ()) and not is_printed(word, section)] == []


def test_the_data_volume_of_a_month_is_the_sum_of_both_ways() -> None:
    text = (ROOT / "docs" / "how-to" / "data-volume.md").read_text(encoding="utf-8")
    up, down, month = map(float, re.findall(r"([\d.]+) kB/device/h up and ([\d.]+) down make ([\d.]+) MB", text)[0])
    assert month == pytest.approx(0.72 * (up + down), abs=0.005)
