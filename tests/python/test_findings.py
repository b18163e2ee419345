"""The pages of findings and of verdicts say what the committed results of the studies say: every number, every verdict.

A finding names its commands. Its numbers stand in the rows of these commands' tables and claims, rounded to the digits
that the page prints; a value with its interval is of one row. What a finding says of its conditions and is in no such
row is listed here.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from mqttlab.statistics.proportions import proportion_interval
from mqttlab.studies.catalogue import known
from mqttlab.studies.document import CELL_COLUMNS, heading

ROOT = Path(__file__).resolve().parents[2]
STUDIES = known()
NUMBER = r"(?<![\w.,])[-+−]?(?:\d{1,3}(?:[ ,]\d{3})+(?![\d.])|\d+(?:\.\d+)?(?:e-?\d+)?)(?![\d])"
WITH_INTERVAL = re.compile(rf"({NUMBER})(?: (?:%|ms|s|kB|times))? ± ({NUMBER})")
NAMES = re.compile(
    r"QoS \d(?:(?:, | and |, and )\d(?![.\d]))*|MQTT 3\.1(?:\.1)?|802\.11b?|BER \S+|[Tt]ables? [\d., and]+|"
    r"[Ff]igures? [\d., and]+|§[\d.]+|CNR \d+ %|MSS of \d+|paho-mqtt [\d.]+|[Vv]ersion [\d.]+|MQTT 5|95 %|R²")
"""What has digits in its name."""
CONDITIONS: Mapping[str, Sequence[str]] = {
    # Of live runs: the greatest of the ratios before rounding; single runs; cells counted in the tables.
    "Live, on Mosquitto and Linux's TCP, it is the same": ("1.4",),
    "With Nagle's algorithm QoS 2 has two states": ("22.5", "5.6"),
    "Live, the same relay": ("9",),
    "Its recommendations follow from one rule": ("4", "5"),
    # Pairs counted in the rows of figure 5.4.
    "Timestamps lower TCP's retransmission time-out": ("15", "13"),
    # The interval of the line through the eight means; the slope of the study's table.
    "On a microcontroller latency grows with the payload in steps": ("12.3 ± 1.0", "15"),
    # What was set.
    "Behind 5G the broker may be at the access, the edge or in the core": ("4", "20"),
    # The upper bound of the share that none of 540 messages is; messages of a cell, and that bound.
    "MQTT-SN publishers behind a transparent gateway lose no GPS message on that radio at QoS 0": ("0.55",),
    "On a wire nothing happens at 4000 or 8000 bytes": ("1200", "0.25"),
    "The largest message of which 99 % arrive depends on the network": ("27",),
    'The "shark fins", round trips that suddenly fall back, come from the study\'s program': ("18",),
    "500 KB every 5.3 ms fill the interface that they cross twice": ("5.3",),
    "RTS/CTS saves little in bursts that lose half of the frames": ("21",),
    "Isolated bit errors cost about a factor of two at most; bursts of as many cost more than a factor of three": (
        "20", "600", "180"),
}
"""By a finding's heading: what its commands' rows do not say, because it is no result."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A part of the page, with the commands that repeat it."""

    heading: str
    text: str
    commands: Sequence[Sequence[str]]

    @property
    def numbers(self) -> Sequence[tuple[str, ...]]:
        """Each alone, or with the half width of its interval."""
        plain = NAMES.sub("", re.sub(r"`[^`]*`", "", self.text))
        pairs = [(value, half) for value, half in WITH_INTERVAL.findall(plain)]
        alone = [(found,) for found in re.findall(NUMBER, WITH_INTERVAL.sub("", plain))]
        return [*pairs, *alone]


def findings(text: str) -> Iterator[Finding]:
    """The parts under a heading, and the rows of the table of bad fits."""
    for part in re.split(r"^##+ ", text, flags=re.MULTILINE)[1:]:
        title, body = part.split("\n", 1)
        rows = [line for line in body.splitlines() if line.startswith("| ") and "`mqttlab study" in line]
        for name, told in [(row.split(" | ")[0], row) for row in rows] or [(title, f"{title}\n{body}")]:
            commands = [shlex.split(found)[2:] for found in re.findall(r"`(mqttlab study [^`]+)`", told)]
            if commands:
                yield Finding(heading=name.strip("| "), text=re.sub(r"\s+", " ", told), commands=commands)


PAGES = [(ROOT / "docs" / "explanation" / name).read_text(encoding="utf-8") for name in ("findings.md", "verdicts.md")]
FINDINGS = [finding for page in PAGES for finding in findings(page)]


def value(word: str) -> float:
    """A number as the page or a table prints it."""
    return abs(float(re.sub("[ ,]", "", word).replace("−", "-")))


def prints(word: str, exact: float) -> bool:
    """Whether this is the value, rounded to the digits shown; in thousands, or in thousandths, of its unit."""
    digits = re.sub("[ ,]", "", word)
    step = 10.0 ** -len(digits.split(".")[1]) if "." in digits else 1.0
    # A table's value is rounded, too, to four digits.
    return any(abs(value(word) - scaled) <= 0.5001 * step + 0.0005 * scaled * (scaled != exact)
               for scaled in (exact, exact * 1000, exact / 1000))


@cache
def tables(path: Path) -> Mapping[str, Sequence[str]]:
    """The rows of a page of results by its headings; those of claims by `claim` and their names."""
    found: dict[str, list[str]] = {}
    title = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        title = line[3:] if line.startswith("## ") else title
        if line.startswith("| `"):
            found[f"claim {line.split('`')[1]}"] = [line]
        elif line.startswith("| "):
            found.setdefault(title, []).append(line)
    return found


def options(command: Sequence[str], *names: str) -> list[str]:
    """The values of a command's options."""
    return [after for word, after in itertools.pairwise(command) if word in names]


def rows_of(command: Sequence[str]) -> list[str]:
    """The rows that a command writes into its committed results."""
    study = STUDIES[command[0]]
    is_live = "live" in options(command, "--backend")
    paths = sorted((study.directory / "live").glob("*.md")) if is_live else [study.directory / "results.md"]
    claims = [f"claim {name}" for name in options(command, "--claim")]
    asked = [table for kind in ("table", "figure") for name in options(command, f"--{kind}")
             for table in study.tables_of(kind, name)]  # type: ignore[arg-type]
    found: list[str] = []
    for path in paths:
        for title, rows in tables(path).items():
            if (is_live or title in claims or title in {heading(table) for table in asked}
                    or not (claims or asked)):
                found += rows
            elif title == "Fit":
                found += [row for row in rows if row.split(" | ")[0].strip("| ") in asked]
    return found


def values_of(row: str) -> list[tuple[float, ...]]:
    """The numbers of a row, and those with their interval; where messages were lost, that of their share, too."""
    found: list[tuple[float, ...]] = [(value(word),) for word in re.findall(NUMBER, row)]
    found += [(value(word), value(half)) for word, half in WITH_INTERVAL.findall(row)]
    cells = [cell.strip() for cell in row.removeprefix("|").split("|")]
    if len(cells) >= len(CELL_COLUMNS) and re.fullmatch(NUMBER, cells[3]) and re.fullmatch(NUMBER, cells[4]):
        found.append((value(cells[3]), value(cells[4])))
    if len(cells) > 3 and cells[1] == "messages lost, %" and re.fullmatch(NUMBER, cells[3]):
        share = proportion_interval(round(value(cells[3]) * SENT / 100), SENT)
        found += [(100 * share.low,), (100 * share.high,)]
    return found


SENT = 540
"""Messages that andersen2021's GPS groups send in 20 minutes."""


def unfound(finding: Finding) -> list[str]:
    """Numbers of a finding that its commands' rows do not have."""
    said = [values for command in finding.commands for row in rows_of(command) for values in values_of(row)]
    stated = CONDITIONS.get(finding.heading, ())
    return [" ± ".join(words) for words in finding.numbers
            if not any(len(words) == len(exact) and all(map(prints, words, exact)) for exact in said)
            and " ± ".join(words) not in stated]


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.heading[:60])
def test_every_number_stands_in_the_results_that_the_finding_names(finding: Finding) -> None:
    assert finding.numbers
    assert unfound(finding) == []


def test_what_is_stated_without_a_row_is_on_the_page_and_needed() -> None:
    by_heading = {finding.heading: finding for finding in FINDINGS}
    for title, stated in CONDITIONS.items():
        said = {" ± ".join(words) for words in by_heading[title].numbers}
        assert set(stated) <= said, title


def test_a_number_that_is_not_of_the_results_is_noticed() -> None:
    # Every value with its interval, made a tenth greater.
    changed = noticed = 0
    for finding in FINDINGS:
        for value_, half in WITH_INTERVAL.findall(finding.text):
            digits = len(value_.split(".")[1]) if "." in value_ else 0
            other = f"{value(value_) * 1.1 + 2 * 10.0 ** -digits:.{digits}f}"
            text = finding.text.replace(f"{value_} ± {half}", f"{other} ± {half}", 1)
            changed += text != finding.text
            noticed += len(unfound(replace(finding, text=text))) > len(unfound(finding))
    assert changed > 80 and noticed > 0.85 * changed, (noticed, changed)


OF_CLAIMS = [each for each in FINDINGS if any("--claim" in command for command in each.commands)]


@pytest.mark.parametrize("finding", OF_CLAIMS,
                         ids=lambda finding: finding.heading[:60])
def test_a_finding_has_the_verdict_of_its_claims(finding: Finding) -> None:
    told = re.sub(r"\([^)]*\)", "", finding.text)
    verdicts = {word for row in (row for command in finding.commands for name in options(command, "--claim")
                                 for row in tables(STUDIES[command[0]].directory / "results.md")[f"claim {name}"])
                for word in [row.split(" | ")[1].strip("*")]}
    named = re.findall(rf"- {finding.commands[0][0]}: (held|refuted|not reproduced|undecided)", told)
    assert set(named) <= verdicts, (named, verdicts)
