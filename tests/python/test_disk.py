"""A run that the disk has no room for is refused; one that fills its disk ends with what it has."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import mqttlab
from mqttlab.cli.run import _capture
from mqttlab.recording import Recording
from mqttlab.runs import Outcome

KILLED = Path(__file__).resolve().parents[1] / "schemas" / "4" / "killed"
COMPLETE = KILLED.parent / "simulated"
SCENARIO = """
name = "large"
backend = "sim"
phases = { duration = "DURATION", cool_down = "1 s" }
networks = [{ between = ["field", "broker"], up = { delay = "1 ms" }, down = { delay = "1 ms" } }]

[[groups]]
name = "sensors"
host = "field"
publish = { topic = "t", qos = 1, payload = "100 B", rate = "100 /s" }

[[groups]]
name = "desk"
host = "field"
subscribe = ["t"]
"""


def scenario(directory: Path, duration: str) -> Path:
    path = directory / "large.toml"
    path.write_text(SCENARIO.replace("DURATION", duration), encoding="utf-8")
    return path


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    place.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place],
                                           capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system can only be mounted by root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=False)


def test_a_run_that_no_disk_can_hold_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    done = mqttlab("run", scenario(tmp_path, "8000 h"), "--runs", tmp_path / "runs")
    assert done.returncode == 2, done.stderr
    assert "the recording would take about" in done.stderr
    assert "`--ignore-disk`" in done.stderr
    assert not list((tmp_path / "runs").glob("*"))


def test_a_small_disk_is_refused_and_whoever_insists_keeps_what_it_holds(tmp_path: Path) -> None:
    path = scenario(tmp_path, "10 min")
    with small_disk(tmp_path / "disk", "1m") as disk:
        assert mqttlab("run", path, "--runs", disk).returncode == 2
        assert not list(disk.glob("*"))
        done = mqttlab("run", path, "--runs", disk, "--ignore-disk", "--no-html")
        assert done.returncode == 3, done.stdout + done.stderr
        recording = Recording.open(next(disk.glob("large-*")))
        assert not recording.complete
        assert len(recording.messages) > 0


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_report_of_a_run_that_was_killed_leaves_nothing_where_nothing_can_be_written(
    tmp_path: Path, how: str,
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    with small_disk(tmp_path / "disk", "1m") as disk:
        shutil.copytree(KILLED, disk / "killed", copy_function=shutil.copyfile)
        (disk / "filled").write_bytes(bytes(shutil.disk_usage(disk).free))
        if how == "read-only":
            (disk / "filled").unlink()
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        before = sorted(disk.rglob("*"))
        done = subprocess.run([sys.executable, "-m", "mqttlab", "report", disk / "killed"], capture_output=True,
                              text=True, check=False, env={**os.environ, "TMPDIR": str(temporary)})
        assert done.returncode == {"full": 1, "read-only": 2}[how], done.stderr
        [line] = done.stderr.splitlines()
        assert str(disk / "killed" / "report.html") in line and "--html FILE" in line
        assert "ended without finishing the recording" in done.stdout
        # On a full disk a recovery leaves tables that are whole already: the next one goes on from them.
        assert [path for path in disk.rglob("*") if path not in before and not path.name.endswith(".tmp")] == []
    assert [str(path.relative_to(temporary)) for path in temporary.rglob("*")] == [f"mqttlab-{os.getuid()}"]


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_an_export_that_cannot_be_written_is_one_line_with_its_name(how: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    shutil.copytree(COMPLETE, runs / "complete")
    assert mqttlab("catalog", "scan", runs).returncode == 0
    with small_disk(tmp_path / "disk", "64k") as disk:
        # A page is left where a file would be begun.
        (disk / "filled").write_bytes(bytes(shutil.disk_usage(disk).free - (4096 if how == "full" else 0)))
        if how == "read-only":
            subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        reason = {"full": "No space left on device", "read-only": "Read-only file system"}[how]
        for words, named in (
            (("export", runs / "complete", "--xlsx", disk / "run.xlsx"), "run.xlsx"),
            (("export", runs / "complete", "--pcapng", disk / "run.pcapng"), "run.pcapng"),
            (("export", runs / "complete", "--csv", disk / "csv"), "csv"),
            (("export", runs / "complete", "--parquet", disk / "parquet"), "parquet"),
            (("catalog", "query", "--runs", runs, "--table", "series", "--parquet", disk / "q.parquet"), "q.parquet"),
            (("catalog", "query", "--runs", runs, "--table", "series", "--xlsx", disk / "q.xlsx"), "q.xlsx"),
            (("catalog", "query", "--runs", runs, "--table", "series", "--csv", disk / "q.csv"), "q.csv"),
            (("report", runs / "complete", "--html", disk / "page.html"), "page.html"),
        ):
            done = subprocess.run([sys.executable, "-m", "mqttlab", *words], capture_output=True, text=True,
                                  check=False)
            assert done.returncode == {"full": 1, "read-only": 2}[how], (words, done.stderr)
            line = done.stderr.splitlines()[-1]
            assert line.startswith(f"mqttlab: {disk / named}") and line.endswith(reason), done.stderr
            assert "unfinished" not in line and "Traceback" not in done.stderr and "Exception" not in done.stderr
            assert done.stderr.count("\n") == 1, done.stderr
            for path in disk.iterdir():
                if path.is_dir():
                    path.rmdir()
        assert [path.name for path in disk.iterdir()] == ["filled"]


def test_a_run_whose_report_has_no_room_says_where_to_write_it(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "300k") as disk:
        done = mqttlab("run", scenario(tmp_path, "1 s"), "--runs", disk, "--catalog", "none", "--ignore-disk")
        [run] = disk.glob("large-*")
        assert done.returncode == 0 and Recording.open(run).complete, done.stderr
        assert (f"mqttlab: warning: there is no report: {run}/report.html: No space left on device; write it elsewhere "
                f"with mqttlab report {run} --html FILE") in done.stderr.splitlines(), done.stderr
        assert "100 sent; all delivered" in done.stdout and "\nreport " not in done.stdout


def test_a_capture_that_has_no_room_is_a_warning_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with small_disk(tmp_path / "disk", "1m") as disk:
        shutil.copytree(COMPLETE, disk / "run")
        (disk / "filled").write_bytes(bytes(shutil.disk_usage(disk).free))
        _capture(Outcome(verdict="complete", directory=disk / "run"))
        assert not (disk / "run" / "run.pcapng").exists()
        assert capsys.readouterr().err == (
            "mqttlab: warning: run.pcapng is not written: No space left on device; write it elsewhere with mqttlab "
            f"export {disk / 'run'} --pcapng FILE\n")
