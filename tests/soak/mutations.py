"""Recordings that are damaged on purpose, one change at a time: does each command give the same answer, or one line?

    python tests/soak/mutations.py --count 100000 --seed 1
    python tests/soak/mutations.py --seed 1 --only 4711        one of them again, with its traceback
    python tests/soak/mutations.py --count 100000 --bytes      bytes alone, half without `summary.json`

Each mutation is drawn from the seed and its number: a byte of a file is another one, a file ends early, or is another
table's; and, without the checks of `summary.json`, a column is missing, has another kind or another name, or a number
in it is out of range. Then one command reads it. It must print what it printed of the whole recording, or, where its
table was changed and nothing can tell, anything without a traceback; else one line, with exit status 2.

Commands are given in one process, which is started again when it dies, takes too long or too much memory: such an end
is a fault, too.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from unchecked import without_checks

# Address space, of which a process that evaluates recordings takes some gigabytes; no mutation needs so much.
MEMORY_BYTES = 6 << 30
WITHIN_S = 60
# A run of hours that is ended early has said something.
SAID_EVERY = 1_000
# What those say that go on with other recordings.
SAYS = {"list": ("damaged",), "catalog": ("cannot be read", "is damaged")}
# Commands by how often each is drawn.
COMMANDS = {"report": 4, "explain": 2, "compare": 2, "export": 1, "list": 1, "catalog": 1}
# Kinds by how often each is drawn; those of the second row change a table so that its bytes say nothing.
BYTE, END, SWAP, EDIT = "byte", "end", "swap", "edit"
DROP, KIND, NAME, RANGE = "drop", "kind", "name", "range"
KINDS = {BYTE: 12, END: 2, SWAP: 1, DROP: 2, KIND: 2, NAME: 1, RANGE: 3}
# Of `--bytes`, whose only command prints a run's numbers.
BYTES = {BYTE: 8, EDIT: 4, END: 1}
NUMBERS = {"numbers": 1}
SCENARIO: dict[str, Any] = {
    "name": "mutated", "backend": "sim", "phases": {"warm_up": "100 ms", "duration": "1 s", "cool_down": "5 s"},
    "networks": [{"between": ["field", "broker"], "up": {"rate": "1 Mbit/s", "delay": "5 ms", "loss": "5 %"},
                  "down": {"rate": "1 Mbit/s", "delay": "5 ms", "loss": "5 %"}}],
    "recording": {"payloads": True},
    "groups": [{"name": "publishers", "host": "field",
                "publish": {"topic": "t", "qos": 1, "payload": "40 B", "rate": "10 /s"}},
               {"name": "subscribers", "host": "field", "subscribe": [{"filter": "#", "qos": 1}]}],
}


@dataclass(frozen=True)
class Outcome:
    """What a command said of a mutated recording."""

    number: int
    words: str
    fault: str = ""
    verdict: str = ""
    """``refused`` or ``named`` in a line, the ``same`` answer, ``another`` answer."""


def make(place: Path) -> None:
    """The whole recording, as `whole` in a directory."""
    from mqttlab.runs import Job, perform
    from mqttlab.scenario import compile_plan
    from mqttlab.scenario.load import parse_values

    outcome = perform(Job(compile_plan(parse_values(SCENARIO)), place / "whole"), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason


def mutate(run: Path, dice: random.Random, kinds: Mapping[str, int] = KINDS) -> tuple[str, bool]:
    """Change one thing; returns which, and whether numbers may be others afterwards."""
    kind = dice.choices(list(kinds), list(kinds.values()))[0]
    lost = kinds is BYTES and dice.random() < 0.5
    if lost:
        (run / "summary.json").unlink()
    tables = sorted(run.glob("*.parquet"))
    if kind in (BYTE, END, EDIT):
        named = [run / name for name in ("plan.json", "layout.json", "run.json", "summary.json")]
        # Nothing but `summary.json` tells of `run.json`: of both at once nothing could be told.
        files = [*tables, *(path for path in named if path.exists() and not (lost and path.name == "run.json"))]
        path = dice.choice(files)
        content = bytearray(path.read_bytes())
        place = dice.randrange(len(content))
        if kind == BYTE:
            content[place] ^= 1 << dice.randrange(8)
            words = f"byte {place} of {path.name} is {content[place]:#04x}"
        elif kind == EDIT:
            words = _edited(content, place, dice, path.name)
        else:
            del content[place:]
            words = f"{path.name} ends at {place}"
        words += " without summary.json" if lost else ""
        path.write_bytes(content)
        # A byte of Parquet's end, where the file has another length, is not looked for: half a file has none.
        return words, False
    path = dice.choice(tables)
    if kind == SWAP:
        other = dice.choice([table for table in tables if table != path])
        shutil.copyfile(other, path)
        without_checks(run)
        (run / "summary.json").unlink(missing_ok=True)
        return f"{path.name} is {other.name}", True
    words = _rewritten(path, kind, dice)
    without_checks(run)
    return words, True


def _edited(content: bytearray, place: int, dice: random.Random, name: str) -> str:
    """A small edit: bytes come in between, go, or are others; of text a digit where there is one near."""
    digit = next((at for at in range(place, min(place + 40, len(content))) if 48 <= content[at] < 58), None)
    place = digit if name.endswith(".json") and digit is not None else place
    edit = dice.choice(["in", "out", "for"])
    some = bytes(dice.randrange(48, 58) if name.endswith(".json") else dice.randrange(256)
                 for _ in range(dice.randint(1, 3)))
    content[place:place + (0 if edit == "in" else len(some))] = b"" if edit == "out" else some
    return f"{name} has {some!r} {edit} at {place}"


def _rewritten(path: Path, kind: str, dice: random.Random) -> str:
    import polars as pl

    table = pl.read_parquet(path)
    column = dice.choice(table.columns)
    if kind == DROP:
        changed, words = table.drop(column), "is missing"
    elif kind == NAME:
        changed, words = table.rename({column: f"{column}_2"}), "has another name"
    elif kind == KIND:
        instead = dice.choice([pl.String, pl.Float64, pl.Boolean, pl.List(pl.Int64), pl.Binary, pl.Date])
        changed, words = table.with_columns(pl.lit(None, dtype=instead).alias(column)), f"is of the kind {instead}"
    else:
        value = dice.choice([0, -1, 255, 2**31, 2**32 - 1, 2**62, -2**62])
        is_number = table.schema[column].is_integer()
        first = pl.int_range(pl.len()) == dice.randrange(max(table.height, 1))
        changed = table.with_columns(
            pl.when(first).then(pl.lit(value, dtype=pl.Int64) if is_number else None)
            .otherwise(pl.col(column)).alias(column))
        words = f"has {value if is_number else 'nothing'} in a row"
    changed.write_parquet(path)
    return f"column {column} of {path.name} {words}"


def commands(run: Path, whole: Path, out: Path) -> dict[str, list[list[str]]]:
    """What is given, by name."""
    runs = str(run.parent)
    return {
        "numbers": [["report", str(run), "--json"]],
        "report": [["report", str(run), "--html", str(out / "report.html")]], "explain": [["explain", str(run)]],
        "compare": [["compare", str(run), str(whole), "--by", "message"]],
        "export": [["export", str(run), "--csv", str(out / "csv")]], "list": [["list", "--runs", runs]],
        "catalog": [["catalog", "scan", runs, "--runs", str(out)],
                    ["catalog", "query", "--runs", str(out), "--column", "latency_ms_p99"]],
    }


def said(given: list[list[str]], out: Path) -> tuple[int, str, str, str]:
    """Exit status, standard output with the tables that were written, standard error, and a traceback."""
    from click.testing import CliRunner

    from mqttlab.cli import main

    stdout, stderr, status = [], [], 0
    for words in given:
        result = CliRunner().invoke(main, words)
        stdout.append(result.stdout)
        stderr.append(result.stderr)
        status = result.exit_code
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            return status, "", "", "".join(traceback.format_exception(result.exception))
        # What is not in the catalog cannot be asked for.
        if status or "cannot be read" in result.stderr or "is damaged" in result.stderr:
            break
    stdout += [f"{path.name}\n{path.read_text(encoding='utf-8')}" for path in sorted(out.glob("csv/*.csv"))]
    return status, "".join(stdout), "".join(stderr), ""


class Judge:
    """Mutates a copy of a recording and judges what commands say of it."""

    def __init__(self, place: Path, seed: int, of_bytes: bool = False) -> None:
        self._place, self._seed = place, seed
        self._commands, self._kinds = (NUMBERS, BYTES) if of_bytes else (COMMANDS, KINDS)
        self._whole = place / "whole"
        self._expected: dict[str, str] = {}

    def judge(self, number: int) -> Outcome:
        """The mutation of a number."""
        dice = random.Random(f"{self._seed}/{number}")
        command = dice.choices(list(self._commands), list(self._commands.values()))[0]
        if command not in self._expected:
            status, answer, problem, trace = self._perform(command, lambda run: None)
            assert status == 0, (command, problem, trace)
            self._expected[command] = answer
        told: list[tuple[str, bool]] = []
        status, answer, problem, trace = self._perform(command, lambda run: told.append(mutate(run, dice, self._kinds)))
        words, others = told[0]
        words = f"{command}: {words}"
        if trace:
            return Outcome(number, words, trace)
        if status == 0:
            if any(said in answer + problem for said in SAYS.get(command, ())):
                return Outcome(number, words, verdict="named")
            same = answer == self._expected[command]
            fault = "" if same or others else f"it says something else:\n{_different(self._expected[command], answer)}"
            return Outcome(number, words, fault, "same" if same else "another")
        lines = problem.splitlines()
        if status not in (2, 3) or len(lines) != 1 or not lines[0].startswith("mqttlab: "):
            return Outcome(number, words, f"exit status {status}, {len(lines)} lines: {problem[:500]}")
        return Outcome(number, words, verdict="refused")

    def _perform(self, command: str, change: Callable[[Path], None]) -> tuple[int, str, str, str]:
        with tempfile.TemporaryDirectory(prefix="mutated-", dir=self._place) as name:
            run, out = self._place / "runs" / "run", Path(name)
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(self._whole, run)
            change(run)
            found = said(commands(run, self._whole, out)[command], out)
            return found[0], found[1].replace(name, "OUT"), found[2], found[3]


def _different(expected: str, found: str) -> str:
    pairs = zip(expected.splitlines(), found.splitlines(), strict=False)
    return next((f"  {before}\n  {after}" for before, after in pairs if before != after), "  another number of lines")


def work(pipe: Connection, place: str, seed: int, of_bytes: bool) -> None:
    """Judge the numbers that come, in a process that may die of them."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    judge = Judge(Path(place), seed, of_bytes)
    while (number := pipe.recv()) is not None:
        pipe.send(judge.judge(number))


class Worker:
    """A process that judges."""

    def __init__(self, whole: Path, seed: int, of_bytes: bool = False) -> None:
        self._whole, self._seed, self._of_bytes = whole, seed, of_bytes
        self._start()

    def _start(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="mutations-")
        place = Path(self._place.name)
        (place / "runs").mkdir()
        shutil.copytree(self._whole, place / "whole")
        # Forked after Polars has made its threads, it would wait for them.
        processes = multiprocessing.get_context("spawn")
        self._pipe, theirs = processes.Pipe()
        about = (theirs, self._place.name, self._seed, self._of_bytes)
        self._process = processes.Process(target=work, args=about, daemon=True)
        self._process.start()
        theirs.close()

    def judge(self, number: int) -> Outcome:
        """The same as :meth:`Judge.judge`; that the process has died of it is a fault."""
        try:
            self._pipe.send(number)
            if self._pipe.poll(WITHIN_S):
                found = self._pipe.recv()
                assert isinstance(found, Outcome)
                return found
            fault = f"it took more than {WITHIN_S} s"
        except (EOFError, OSError):
            self._process.join(10)
            fault = f"its process ended with {self._process.exitcode}"
        self.end()
        self._start()
        return Outcome(number, "", fault)

    def end(self) -> None:
        """End it."""
        self._process.kill()
        self._process.join()
        self._place.cleanup()


def main() -> int:
    """Judge so many mutations, print each fault and how to have it again; 1 where there is one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--bytes", action="store_true", help="change bytes alone, and read the run's numbers")
    asked = parser.parse_args()
    numbers = range(asked.first, asked.first + asked.count) if asked.only is None else [asked.only]
    print(f"seed {asked.seed}, {len(numbers)} mutations from {numbers[0]}", flush=True)
    again = f"python tests/soak/mutations.py --seed {asked.seed}{' --bytes' if asked.bytes else ''} --only"
    faults, kinds, verdicts = 0, Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        make(Path(name))
        worker = Worker(Path(name) / "whole", asked.seed, asked.bytes)
        for number in numbers:
            outcome = worker.judge(number)
            kinds[outcome.words.partition(":")[0]] += 1
            verdicts[outcome.verdict or "fault"] += 1
            if outcome.fault:
                faults += 1
                print(f"\n{number}: {outcome.words}\n{outcome.fault}\nagain: {again} {number}", flush=True)
            judged = number - numbers[0] + 1
            if judged % SAID_EVERY == 0 and judged < len(numbers):
                print(f"{judged} so far: {_counted(verdicts)}; {faults} faults", flush=True)
        worker.end()
    print(f"{len(numbers)} mutations ({_counted(kinds)}): {_counted(verdicts)}; {faults} faults")
    return 1 if faults else 0


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{word} {count}" for word, count in sorted(counts.items()))


if __name__ == "__main__":
    sys.exit(main())
