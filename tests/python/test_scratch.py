"""What commands make beside their results goes with them, and with the next command where they were killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import mqttlab
from mqttlab import scratch
from mqttlab.runs import taken_directory

OWNER = """
import sys
from pathlib import Path
from mqttlab import scratch
with scratch.directory("owner") as place, scratch.unfinished(Path(sys.argv[1])) as made:
    (place / "tables").write_text("much")
    made.write_text("half a page")
    print(place, flush=True)
    sys.stdin.read()
"""

EXPERIMENT_OWNER = """
import sys
from pathlib import Path
from mqttlab.experiments import load
from mqttlab.experiments.directory import ExperimentDirectory
from mqttlab.experiments.journal import Journal
Journal.append = lambda *event, **values: (print("begun", flush=True), sys.stdin.read())
ExperimentDirectory.prepare(load(Path(sys.argv[1])), Path(sys.argv[2]))
"""

EXPORTING = """
import sys
from mqttlab import export, sheets
from mqttlab.cli import main
export.tables.write_sheet = lambda *sheet: (print("begun", flush=True), sys.stdin.read())
main(["export", sys.argv[1], "--xlsx", sys.argv[2]])
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for temporary files, in which this user's place is made."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    return place


def left(above: Path) -> list[str]:
    """All that is there but for this user's place."""
    return sorted(str(path.relative_to(above)) for path in above.rglob("*") if path.name != f"mqttlab-{os.getuid()}")


def test_all_lies_in_one_private_directory_and_goes_with_its_block(temporary: Path) -> None:
    with pytest.raises(ValueError, match="as an error"), scratch.directory("test") as place:
        assert place.parent == temporary / f"mqttlab-{os.getuid()}" and "test" in place.name
        assert [path.stat().st_mode & 0o777 for path in (place, place.parent)] == [0o700, 0o700]
        (place / "below").mkdir()
        raise ValueError("as an error")
    assert left(temporary) == []


def test_what_a_killed_process_leaves_goes_at_the_next_command_and_nothing_else(
    tmp_path: Path, temporary: Path,
) -> None:
    owners = [subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path / f"{number}.html")], text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE) for number in range(2)]
    try:
        places = [Path(owner.stdout.readline().strip()) for owner in owners if owner.stdout is not None]
        assert all(place.is_dir() for place in places)
        owners[0].send_signal(signal.SIGKILL)
        owners[0].wait(timeout=30)
        assert places[0].is_dir() and len(list(tmp_path.glob(".*.unfinished"))) == 2
        assert mqttlab("list", "--runs", tmp_path / "none").returncode == 2
        assert not places[0].exists() and (places[1] / "tables").is_file()
        assert [path.name[:7] for path in tmp_path.glob(".*.unfinished")] == [".1.html"]
        owners[1].communicate(timeout=30)
        assert (tmp_path / "1.html").read_text(encoding="utf-8") == "half a page"
    finally:
        for owner in owners:
            owner.kill()
            owner.communicate(timeout=30)
    assert left(temporary) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_stopped_leaves_nothing(number: signal.Signals, tmp_path: Path, temporary: Path) -> None:
    run = Path(__file__).resolve().parents[1] / "schemas" / "4" / "simulated"
    words = [sys.executable, "-c", EXPORTING, str(run), str(tmp_path / "run.xlsx")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as owner:
        assert owner.stdout is not None and owner.stderr is not None
        assert owner.stdout.readline() == "begun\n"
        assert len(list(tmp_path.glob(".*.unfinished"))) == 0 and left(temporary) != []
        owner.send_signal(number)
        # By the signal, as who started it expects.
        assert owner.wait(30) == -number
        assert owner.stderr.read() == ""
    assert left(temporary) == [] and [path.name for path in tmp_path.iterdir()] == ["tmp"]


def test_an_error_has_the_name_that_a_file_was_to_get(tmp_path: Path, temporary: Path) -> None:
    out = tmp_path / "none" / "page.html"
    with pytest.raises(OSError, match="No such file") as error, scratch.unfinished(out) as made:
        made.write_text("whole", encoding="utf-8")
    assert (error.value.filename, error.value.filename2) == (str(out), None)
    # What is read meanwhile keeps its own.
    with pytest.raises(OSError, match="No such file") as error, scratch.unfinished(tmp_path / "page.html"):
        (tmp_path / "other").read_text(encoding="utf-8")
    assert error.value.filename == str(tmp_path / "other")
    with pytest.raises(OSError, match="Is a directory") as error, scratch.unfinished(tmp_path) as made:
        made.write_text("whole", encoding="utf-8")
    assert error.value.filename == str(tmp_path)


def test_a_link_and_a_pipe_stay_what_they_are(tmp_path: Path, temporary: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "page.html")
    with scratch.unfinished(tmp_path / "link") as made:
        made.write_text("whole", encoding="utf-8")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "page.html").read_text(encoding="utf-8") == "whole"
    os.mkfifo(tmp_path / "pipe")
    with scratch.unfinished(tmp_path / "pipe") as made:
        assert made == tmp_path / "pipe"
    assert (tmp_path / "pipe").is_fifo()


def test_an_experiment_that_is_killed_before_it_has_begun_leaves_no_directory(tmp_path: Path, temporary: Path) -> None:
    experiment, runs = tmp_path / "experiment.toml", tmp_path / "runs"
    experiment.write_text('name = "small"\nscenario = "demo.toml"\ndesign = "full"\n[[factors]]\nname = "one"\n'
                          'place = "seed"\nlevels = [1, 2]\n', encoding="utf-8")
    shutil.copy(Path(__file__).parents[2] / "scenarios" / "demo.toml", tmp_path)
    words = [sys.executable, "-c", EXPERIMENT_OWNER, str(experiment), str(runs)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "begun\n"
        # A command that begins meanwhile takes nothing away from it.
        scratch.sweep()
        assert [path.name.endswith(".unfinished") for path in runs.iterdir()] == [True]
        owner.kill()
    mqttlab("list", "--runs", runs)
    assert list(runs.iterdir()) == []


def test_somebody_elses_place_is_refused_in_one_line_and_an_open_one_is_closed(tmp_path: Path, temporary: Path) -> None:
    place, elsewhere = temporary / f"mqttlab-{os.getuid()}", tmp_path / "elsewhere"
    elsewhere.mkdir()
    place.symlink_to(elsewhere)
    with pytest.raises(scratch.ScratchError, match="set TMPDIR to a directory") as refused, scratch.directory("test"):
        pass
    assert str(place) in str(refused.value)
    assert list(elsewhere.iterdir()) == []
    place.unlink()
    place.mkdir(mode=0o755)
    place.chmod(0o755)
    with scratch.directory("test"):
        assert place.stat().st_mode & 0o777 == 0o700


def test_a_page_is_written_whole_where_there_is_no_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    with scratch.unfinished(tmp_path / "page.html") as made:
        made.write_text("whole", encoding="utf-8")
    with pytest.raises(ValueError, match="half"), scratch.unfinished(tmp_path / "other.html") as made:
        made.write_text("half", encoding="utf-8")
        raise ValueError("half")
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_directory_in_which_no_run_has_begun_goes_and_one_with_a_plan_stays(tmp_path: Path, temporary: Path) -> None:
    runs = tmp_path / "runs"
    with taken_directory("a", 0, 1, runs) as (directory, _):
        (directory / "origin.json").write_text("{}", encoding="utf-8")
        with taken_directory("a", 0, 1, runs) as (other, _):
            assert other != directory
            (other / "plan.json").write_text("{}", encoding="utf-8")
    assert list(runs.iterdir()) == [other]
    with taken_directory("a", 0, 1, runs) as (waits, promise):
        promise.of(None)
    assert sorted(runs.iterdir()) == sorted([other, waits])
    assert left(temporary) == []
