"""Where there is little memory a command works, or says in a line what it takes, before it begins."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from mqttlab import memory
from mqttlab.memory import MemoryShort, memory_left, need_for_tables

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "tests" / "schemas" / "4" / "simulated"
LITTLE = {"100 MB": 10**8, "300 MB": 3 * 10**8, "600 MB": 6 * 10**8, "1 GB": 10**9}
WITH_TABLES = [
    ("run", "scenarios/demo.toml", "--backend", "sim"), ("report", str(RUN)), ("explain", str(RUN)),
    ("compare", str(RUN), str(RUN)), ("export", str(RUN), "--csv"), ("import", "log", "none.log"),
    ("experiment", "none.toml"), ("calibrate", str(RUN)), ("study", "perez2005"), ("dashboard",),
]
WITHOUT = [("check", "scenarios/demo.toml"), ("--help",), ("report", "--help"), ("networks",)]


def limited(size: int, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mqttlab", *words], cwd=ROOT, capture_output=True, text=True,
                          check=False, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)))


@pytest.mark.parametrize("size", LITTLE)
def test_a_command_that_reads_tables_says_how_much_it_takes(size: str, tmp_path: Path) -> None:
    # One command for each size, and others in turn: each starts Python anew.
    for words in WITH_TABLES[list(LITTLE).index(size)::len(LITTLE)]:
        done = limited(LITTLE[size], *words, *(("--runs", str(tmp_path)) if words[0] == "run" else ()))
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        [line] = done.stderr.splitlines()
        assert "GB of addresses" in line and "`ulimit -v` permits" in line and "raise it" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", WITHOUT)
def test_a_command_that_reads_none_works(words: tuple[str, ...]) -> None:
    done = limited(LITTLE["100 MB"], *words)
    assert done.returncode == 0, done.stderr


def test_what_is_left_is_the_least_of_the_machine_and_of_all_groups_around(tmp_path: Path) -> None:
    processes, groups = tmp_path / "proc", tmp_path / "groups"

    def write(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    assert memory_left(processes, groups) is None
    write(processes / "meminfo", "MemTotal: 9000 kB\nMemAvailable: 5000 kB\n")
    assert memory_left(processes, groups) == 5_120_000
    write(processes / "self" / "cgroup", "0::/a/b\n")
    write(groups / "a" / "b" / "memory.max", "max\n")
    write(groups / "a" / "b" / "memory.current", "900000\n")
    assert memory_left(processes, groups) == 5_120_000
    write(groups / "a" / "memory.max", "2000000\n")
    write(groups / "a" / "memory.current", "1500000\n")
    write(groups / "a" / "memory.stat", "anon 1\ninactive_file 100000\n")
    assert memory_left(processes, groups) == 600_000
    write(processes / "self" / "cgroup", "5:memory:/c\n4:cpu:/d\n")
    write(groups / "memory" / "c" / "memory.limit_in_bytes", "3000000\n")
    write(groups / "memory" / "c" / "memory.usage_in_bytes", "2999000\n")
    assert memory_left(processes, groups) == 1_000


def test_too_little_on_the_machine_or_in_the_group_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_left", lambda: 90_000_000)
    with pytest.raises(MemoryShort, match="200 MB of memory, and 90 MB are left"):
        need_for_tables()
