"""Runs that go on are announced, whoever started them, and the dashboard shows them and keeps their figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqttlab import scratch
from mqttlab.runs import Job, going_on, perform
from mqttlab.runs import announced as announcements
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import scenario


@pytest.fixture(autouse=True)
def a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are announced below ``TMPDIR``: one that another test has left in its queue may still go on there."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))


def of(place: Path, **changes: Any) -> Job:
    values = {**scenario(**changes), "name": "by-a-command"}
    return Job(compile_plan(parse_values(values)), place / "runs" / "one")


def test_a_run_is_announced_while_it_goes_on_and_no_longer(tmp_path: Path) -> None:
    job, seen = of(tmp_path), []

    def observe(line: dict[str, Any]) -> None:
        [run] = [run for run in going_on() if run.identifier == job.identifier]
        assert (run.name, run.backend, run.directory) == ("by-a-command", "sim", job.directory)
        # What watches a run is told by the lines as they are written.
        seen.append(line == json.loads(run.lines.read_text(encoding="utf-8").splitlines()[-1]))

    assert perform(job, observe).verdict == "complete"
    assert len(seen) > 3 and all(seen)
    assert all(run.identifier != job.identifier for run in going_on())
    assert not [path for path in job.directory.iterdir() if path.name.startswith("lines")]


def test_one_whose_command_was_killed_does_not_go_on(tmp_path: Path) -> None:
    job = of(tmp_path)
    with announcements.announced(job, lambda line: None):
        [run] = [run for run in going_on() if run.identifier == job.identifier]
        copy = scratch.own() / f"{scratch.PREFIX}run-0-killed"
        copy.mkdir(mode=0o700)
        (copy / announcements.RUN).write_text((run.lines.parent / announcements.RUN).read_text(encoding="utf-8"),
                                              encoding="utf-8")
        assert len([run for run in going_on() if run.identifier == job.identifier]) == 1
    scratch.sweep()
    assert not copy.exists()


def test_a_run_of_days_writes_its_lines_ever_more_rarely(tmp_path: Path) -> None:
    job, heard = of(tmp_path), 0

    def observe(_line: dict[str, Any]) -> None:
        nonlocal heard
        heard += 1

    ticks = 5 * announcements.TICKS_OF_A_KIND
    with announcements.announced(job, observe) as hear:
        [run] = [run for run in going_on() if run.identifier == job.identifier]
        for at in range(ticks):
            hear({"event": "tick", "at_ns": at})
        hear({"event": "phase", "phase": "finalise"})
        written = [json.loads(line) for line in run.lines.read_text(encoding="utf-8").splitlines()]
    assert heard == ticks + 1, "who started it hears all"
    assert len(written) < 2 * announcements.TICKS_OF_A_KIND and written[-1]["event"] == "phase"
    assert [line["at_ns"] for line in written[:100]] == [*range(100)]


def test_the_page_live_shows_runs_of_its_directory_and_figures_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")
    from dashboards import queue_below
    from mqttlab.dashboard.jobs import Jobs
    from mqttlab.dashboard.pages import live
    from mqttlab.dashboard.store import Store
    from mqttlab.dashboard.watch import Watch
    from test_dashboard_pages import text_of

    # The default of `--runs` is relative.
    monkeypatch.chdir(tmp_path)
    job, frames = of(tmp_path), []
    with queue_below(tmp_path) as queue:
        here, other = Jobs(Path("runs"), queue.directory), Jobs(tmp_path / "others", queue.directory)
        watch, watch_there = Watch(here), Watch(other)

        def observe(_line: dict[str, Any]) -> None:
            if not frames:
                frames.extend(text_of(live.frame(Store(jobs.runs), jobs, seen))
                              for jobs, seen in ((here, watch), (other, watch_there)))
                assert job.identifier in live.told(here, watch)["jobs"]
                assert job.identifier not in live.told(other, watch_there)["jobs"]
                assert live.standing(here, watch) is not None and live.standing(other, watch_there) is None

        assert perform(job, observe).verdict == "complete"
        assert "by-a-command: " in frames[0] and "outside" not in frames[0]
        assert "by-a-command" not in frames[1] and "Nothing of this dashboard's directory runs now" in frames[1]
        assert f"One run goes on outside the directory of this dashboard: {job.directory}." in frames[1]
        # It was over before a second line of numbers: no figure says that the recording has nothing.
        shown = text_of(live.frame(Store(here.runs), here, watch))
        assert len(watch.of(job.identifier).ticks) < 2
        assert "by-a-command, which has ended" in shown and "figure/" not in shown
        assert "over before its engine had told enough for a figure here" in shown and "/run/one" in shown
        assert "by-a-command" not in text_of(live.frame(Store(other.runs), other, watch_there))


@pytest.mark.live
def test_the_page_live_shows_a_commands_run_and_keeps_its_figures(tmp_path: Path) -> None:
    pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")
    from dashboards import queue_below
    from mqttlab.dashboard import live_figures
    from mqttlab.dashboard.jobs import Jobs
    from mqttlab.dashboard.pages import live
    from mqttlab.dashboard.store import Store
    from mqttlab.dashboard.watch import Watch
    from test_dashboard_pages import text_of

    job = of(tmp_path, backend="live", phases={"duration": "2 s", "cool_down": "100 ms"})
    with queue_below(tmp_path) as queue:
        jobs = Jobs(tmp_path / "runs", queue.directory)
        store, watch, told = Store(jobs.runs), Watch(jobs), []
        frames: list[str] = []

        def observe(line: dict[str, Any]) -> None:
            if line["event"] == "tick":
                told.append(live.told(jobs, watch)["jobs"][job.identifier])
                if len(told) == 1:
                    frames.append(text_of(live.frame(store, jobs, watch)))

        assert perform(job, observe).verdict == "complete"
        assert "by-a-command: running" in frames[0] and "Started by a command" in frames[0]
        assert "Nothing runs now" not in frames[0] and "End early" not in frames[0]
        assert told[-1]["phase"] in live.PHASES.values() and told[-1]["tiles"]
        # It has ended: its figures stay, and lead to the run.
        shown = text_of(live.frame(store, jobs, watch))
        assert "by-a-command, which has ended" in shown and "/run/one" in shown and "Nothing runs now" in shown
        ticks = watch.of(job.identifier).ticks
        assert len(ticks) >= 4
        drawn = live_figures.drawn("messages", ticks)
        assert drawn is not None and f"/data/job/{job.identifier}/figure/messages.json" in shown
        # Whoever looks for the first time after that sees the run among the recordings alone.
        assert "which has ended" not in text_of(live.frame(store, jobs, Watch(jobs)))
