"""Puts faults that were mended back, one at a time, and sees whether the test that holds each mend fails.

    python tests/mutants/mutants.py                     # those whose fault or test has changed since
    python tests/mutants/mutants.py --only B1 3.6 --again

`defects.toml` has a row for each bug and defect that was found, the tests that hold it, and a fault: text of a file of
the present tree, and what stands there instead. Each fault is tried in a copy of the working tree below
`target/mutants`, one after the other: a Rust test is compiled, and must compile; a Python test gets an engine that was
built with the fault, where the fault is in Rust. A fault is *seen* when the test fails, or does not end. What was tried
is kept in `results.jsonl`, by fault and test; `RESULT.md` is the table of both.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEFECTS, RESULTS, TABLE = HERE / "defects.toml", HERE / "results.jsonl", HERE / "RESULT.md"
SEEN, NOT_SEEN, BROKEN = "seen", "not seen", "not tried: it does not build"
TIMEOUT_S = 300


@dataclass(frozen=True)
class Defect:
    """A bug that was found in the version before, and what holds that it is mended."""

    number: str
    what: str
    tests: tuple[str, ...]
    """``test_x.py::test_name``, or ``crate target test_name`` of Cargo (``lib``, ``bins`` or a file of ``tests``)."""
    faults: tuple[tuple[str, str, str], ...]
    """File, text in it, and what stands there instead. All together make the fault."""
    remark: str

    @property
    def key(self) -> str:
        """Changes when fault or test does."""
        return hashlib.sha256(repr((self.tests[:1], self.faults)).encode()).hexdigest()[:16]


def defects() -> list[Defect]:
    """The rows of ``defects.toml``, in its order."""
    found = tomllib.loads(DEFECTS.read_text(encoding="utf-8"))["defect"]
    return [Defect(
        number=row["number"], what=row["what"], tests=tuple(row.get("tests", ())),
        faults=tuple((fault["file"], fault["old"], fault["new"]) for fault in row.get("fault", ())),
        remark=row.get("remark", ""),
    ) for row in found]


def results() -> dict[str, dict[str, Any]]:
    """What was tried, by the defect's key; the last trial counts."""
    if not RESULTS.is_file():
        return {}
    rows = [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]
    return {row["key"]: row for row in rows}


class Copy:
    """The copy of the working tree that faults are put into."""

    def __init__(self, place: Path, profile: str, under: list[str]) -> None:
        self._tree, self._env = place / "tree", place / "env"
        self._under = under
        self._profile = profile
        self._environ = {**os.environ, "CARGO_TARGET_DIR": str(place / "target"),
                         "PYTHONPATH": str(self._tree / "python"), "MQTTLAB_MUTANT": "1",
                         "PATH": f"{self._env / 'bin'}:{os.environ['PATH']}"}
        self._programs = place / "target" / ("debug" if profile == "dev" else profile)
        self._refresh()
        self._make_environment()
        # That of this environment is of the present tree: `make mutants` has built it.
        self._install(Path(sys.prefix, "bin", "mqttlab-engine"))
        self._has_fault = False

    def _refresh(self) -> None:
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                                capture_output=True, text=True, check=True).stdout.splitlines()
        names = {name for name in listed if (ROOT / name).is_file()}
        for old in [path for path in self._tree.rglob("*") if path.is_file()] if self._tree.is_dir() else []:
            if str(old.relative_to(self._tree)) not in names:
                old.unlink()
        for name in names:
            source, copy = ROOT / name, self._tree / name
            if not copy.is_file() or copy.read_bytes() != source.read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)
                shutil.copymode(source, copy)

    def _make_environment(self) -> None:
        """An environment with the packages of this one and an engine of its own."""
        (self._env / "bin").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(sys.prefix, "pyvenv.cfg"), self._env / "pyvenv.cfg")
        for link, target in ((self._env / "lib", Path(sys.prefix, "lib")),
                             (self._env / "bin" / "python3", Path(sys.executable).resolve())):
            link.unlink(missing_ok=True)
            link.symlink_to(target)

    def _install(self, engine: Path) -> None:
        installed = self._env / "bin" / "mqttlab-engine"
        # One that a fault keeps from ending may still run.
        installed.unlink(missing_ok=True)
        shutil.copy2(engine, installed)

    def _end_engines(self) -> None:
        """End what a fault has kept from ending."""
        for program in Path("/proc").glob("[0-9]*/exe"):
            with contextlib.suppress(OSError):
                if str(program.readlink()).removesuffix(" (deleted)") == str(self._env / "bin" / "mqttlab-engine"):
                    os.kill(int(program.parent.name), signal.SIGKILL)

    def _ended(self, *words: str, timeout_s: float) -> tuple[int | None, str]:
        """The exit status (``None``: it did not end in time) and what was printed."""
        limited = ["timeout", "--kill-after=5", str(timeout_s)]
        done = subprocess.run([*self._under, *limited, *words], cwd=self._tree, env=self._environ, text=True,
                              capture_output=True, errors="replace", check=False)
        self._end_engines()
        status = None if done.returncode in (124, 137, -9) else done.returncode
        return status, done.stdout + done.stderr

    def try_out(self, defect: Defect) -> tuple[str, str]:
        """Put a fault in, run the test, take the fault out; returns the result and the line that says it."""
        before = {name: (self._tree / name).read_text(encoding="utf-8") for name, _, _ in defect.faults}
        after = dict(before)
        for name, old, new in defect.faults:
            assert after[name].count(old) == 1, f"{defect.number}: {name} has the text {after[name].count(old)} times"
            after[name] = after[name].replace(old, new)
        self._write(after)
        try:
            in_rust = any(name.startswith("crates/") for name in after)
            return self._python(defect.tests[0], in_rust) if ".py::" in defect.tests[0] else self._rust(defect.tests[0])
        finally:
            self._write(before)

    def _write(self, texts: dict[str, str]) -> None:
        """Write files so that Cargo sees it: it builds what is newer than its last build, which may end after this."""
        for name, text in texts.items():
            (self._tree / name).write_text(text, encoding="utf-8")
            soon = time.time() + 2
            os.utime(self._tree / name, (soon, soon))

    def _rust(self, test: str) -> tuple[str, str]:
        crate, target, name = test.split()
        chosen = [f"--{target}"] if target in ("lib", "bins") else ["--test", target]
        words = ["cargo", "test", "--quiet", "--profile", self._profile, "--package", f"mqttlab-{crate}", *chosen]
        status, output = self._ended(*words, "--no-run", timeout_s=1800)
        if status != 0:
            return BROKEN, last_line(output, r"error.*")
        status, output = self._ended(*words, "--", name, timeout_s=TIMEOUT_S)
        if status == 0:
            return NOT_SEEN, "no test of this name" if "running 0 tests" in output else "it passes"
        return SEEN, last_line(output, r"thread .* panicked at.*\n.*") if status is not None else "it did not end"

    def _python(self, test: str, in_rust: bool) -> tuple[str, str]:
        if in_rust or self._has_fault:
            words = ["cargo", "build", "--quiet", "--profile", self._profile, "--package", "mqttlab-engine"]
            status, output = self._ended(*words, timeout_s=1800)
            if status != 0:
                return BROKEN, last_line(output, r"error.*")
            self._install(self._programs / "mqttlab-engine")
        self._has_fault = in_rust
        words = [str(self._env / "bin" / "python3"), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
                 f"tests/python/{test}"]
        status, output = self._ended(*words, timeout_s=TIMEOUT_S)
        if status in (1, None):
            return SEEN, last_line(output, r"^E  .*") if status == 1 else "it did not end"
        return (NOT_SEEN, "it passes") if status == 0 else (BROKEN, f"pytest ended with {status}")


def last_line(output: str, pattern: str) -> str:
    """The first match in what a program has printed, on one short line."""
    found = re.search(pattern, output, re.MULTILINE)
    text = " ".join(found[0].split()) if found else " ".join(output.split())[-200:]
    # Of paths the last part, which is the same on every machine.
    text = re.sub(r"(?:/[\w.-]+)+/([\w.-]+)", r"\1", text).removeprefix("E ")
    return text if len(text) < 160 else f"{text[:157]}…"


def table(rows: list[Defect], tried: dict[str, dict[str, Any]]) -> str:
    """``RESULT.md``."""
    seen = sum(tried.get(row.key, {}).get("result") == SEEN for row in rows)
    without = sum(not row.faults for row in rows)
    lines = [
        "# Faults that were mended, put back", "",
        "Written by `tests/mutants/mutants.py` (`make mutants`). Each row is a bug (B1 to B18) or a defect (by section",
        "and place) that was found in the version of 21 November 2026, and the test that holds that it is mended.",
        "*Seen*: the fault was put back into the present code, as `defects.toml` has it, and the test failed, as the",
        "last column says.",
        "",
        f"{seen} of {len(rows)} rows are seen; {without} have no fault to put back, with the reason.", "",
        "| | what was wrong | test | fault put back | how it fails |", "|---|---|---|---|---|",
    ]
    for row in rows:
        result = tried.get(row.key, {"result": "not tried" if row.faults else "no fault", "words": row.remark})
        tests = "<br>".join(f"`{test}`" for test in row.tests) or "–"
        words = result["words"].replace("|", "\\|").replace("<", "&lt;")
        lines.append(f"| {row.number} | {row.what} | {tests} | {result['result']} | {words} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Try what has not been tried, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", default=[], help="numbers of defects")
    parser.add_argument("--again", action="store_true", help="what was tried, too")
    parser.add_argument("--profile", default="release", help="of Cargo")
    parser.add_argument("--place", type=Path, default=ROOT / "target" / "mutants", help="of the copy")
    parser.add_argument("--under", default="", help="a command that runs every other, such as 'nice -n 10'")
    given = parser.parse_args()
    rows, tried = defects(), results()
    wanted = [row for row in rows if row.faults and (not given.only or row.number in given.only)
              and (given.again or tried.get(row.key, {}).get("result") != SEEN)]
    copy = Copy(given.place, given.profile, shlex.split(given.under)) if wanted else None
    for row in wanted:
        assert copy is not None
        began = time.monotonic()
        result, words = copy.try_out(row)
        print(f"{row.number:8} {result:10} {time.monotonic() - began:5.0f} s  {words}", flush=True)
        tried[row.key] = {"key": row.key, "number": row.number, "result": result, "words": words}
        keys = {row.key for row in rows}
        RESULTS.write_text("".join(json.dumps(one) + "\n" for key, one in tried.items() if key in keys),
                           encoding="utf-8")
    TABLE.write_text(table(rows, tried), encoding="utf-8")
    return 0 if all(tried.get(row.key, {}).get("result") == SEEN for row in rows if row.faults) else 1


if __name__ == "__main__":
    sys.exit(main())
