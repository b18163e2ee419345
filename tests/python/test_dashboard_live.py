"""Live in a browser: a real broker's run is started by the form, watched, and goes on while the dashboard is killed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import processes
from dashboards import Program, Visitor, queue_below, visitor
from mqttlab.dashboard.jobs import Jobs
from mqttlab.recording import Recording

pytestmark = pytest.mark.live


def engine_of(identifier: str) -> int | None:
    """The process that makes a recording, if it is there."""
    return next(iter(processes.engines(lambda words: identifier in words)), None)


def compare_with_its_simulation(somebody: Visitor) -> None:
    """From the page of the live run: its scenario simulated, and the two runs beside each other."""
    page = somebody.page
    page.get_by_role("link", name="Change it and run").click()
    page.get_by_label("simulated").check()
    page.get_by_text("This can be run.").wait_for()
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("link", name="Watch it live").click()
    page.get_by_role("heading", name="Live", level=1).wait_for()
    page.get_by_role("listitem").filter(has_text=re.compile("from-the-dashboard: ")).nth(1).wait_for()
    page.get_by_role("link", name="Runs", exact=True).click()
    page.get_by_text("2 shown").wait_for()
    page.get_by_role("gridcell", name="live", exact=True).click()
    page.get_by_role("gridcell", name="sim", exact=True).click(modifiers=["Control"])
    page.get_by_text("2 selected.").wait_for()
    page.get_by_role("button", name="Compare", exact=True).click()
    differing = page.get_by_role("region", name="The scenarios differ in, table")
    differing.get_by_role("row").filter(has_text="backend").wait_for()
    # The same seed: the same messages, each with its latency in both.
    page.get_by_role("heading", name="Message by message").wait_for()
    page.get_by_role("heading", name="Latency of each message in both runs").wait_for()
    assert somebody.elsewhere == set()


COUNT_UNSEEN = """() => {
    window.unseenDrawn = 0;
    const look = (changes) => changes.forEach(({ target }) => {
        if (target.getBoundingClientRect().top >= window.innerHeight) window.unseenDrawn += 1;
    });
    new MutationObserver(look).observe(document.body, { subtree: true, attributeFilter: ["data-version"] });
}"""
"""Counts figures below the edge of the window that are told to be drawn anew."""


@pytest.mark.timeout(1200)
def test_a_live_run_is_watched_through_the_death_of_the_dashboard(tmp_path: Path) -> None:
    # A busy machine may take longer for the pages than the run takes: then there was nothing to be watched.
    assert any(watched_through_a_death(tmp_path / str(seconds), seconds) for seconds in (10, 40, 160))


def watched_through_a_death(place: Path, seconds: int) -> bool:
    """From the form to the comparison with the simulation; False where the run was over before all that."""
    runs = place / "runs"
    runs.mkdir(parents=True)
    with queue_below(place) as queue:
        served = Program(runs, queue.directory, place)
        try:
            with visitor(served) as somebody:
                page = somebody.page
                somebody.go("/configure")
                page.get_by_label("Duration", exact=True).fill(f"{seconds} s")
                page.get_by_label("Interval", exact=True).fill("100 ms")
                page.get_by_label("Clients that publish").fill("2")
                # At once: the start waits for the last field.
                page.get_by_role("button", name="Start", exact=True).click()
                answer = page.get_by_role("link", name="Watch it live")
                answer.wait_for()
                # Where one looks: beside the button that was pressed.
                said = answer.bounding_box()
                pressed = page.get_by_role("button", name="Start", exact=True).bounding_box()
                assert said and pressed and abs(said["y"] - pressed["y"]) < 80
                answer.click()
                # On a busy machine it was late, and says so.
                finished = page.get_by_role("link", name=re.compile("from-the-dashboard: (complete|invalid)"))
                running = page.get_by_role("heading", name=re.compile("from-the-dashboard: running"))
                # Numbers, links, the broker's own use, and messages as they come, all from the engine.
                seen = [
                    running, page.get_by_text("measuring"),
                    page.get_by_role("region", name="Messages that have just arrived, table").get_by_role(
                        "cell", name="publishers-qos1-0"),
                    page.get_by_role("region", name="Links, table").get_by_role("row").nth(1),
                    page.get_by_role("region", name="Servers, table").get_by_role("cell", name="broker")]
                for one in seen:
                    one.or_(finished).first.wait_for()
                jobs = Jobs(runs, queue.directory)
                if not (going_on := jobs.going_on()):
                    return False
                [job] = going_on
                engine = engine_of(job.run)
                served.kill()
                served.start()
                page.reload()
                running.or_(finished).first.wait_for()
                as_before = running.is_visible()
                if engine is None or (now := engine_of(job.run)) is None:
                    return False
                assert as_before and now == engine
                page.evaluate(COUNT_UNSEEN)
                finished.wait_for(timeout=1000 * (seconds + 60))
                # A figure that nobody has scrolled to is drawn when its page comes, and never again.
                assert page.evaluate("window.unseenDrawn") == 0
                finished.click()
                page.get_by_role("heading", name="from-the-dashboard", level=1).wait_for()
                recording = Recording.open(job.directory)
                told = next(line for _, _, line in reversed(queue.events(0, job.identifier))
                            if line["event"] == "tick")
                # What the fields said: 6 clients at 10 messages a second after 2 s of warm-up.
                offered = recording.clients["sent"].sum() + recording.clients["unsent"].sum()
                assert recording.complete and 60 * seconds <= offered <= 60 * (seconds + 2)
                # The last line is of a moment before the end.
                assert offered / 2 < told["delivered"] <= recording.clients["delivered"].sum()
                assert somebody.elsewhere == set()
                page.get_by_role("link", name="Messages", exact=True).click()
                shown = page.get_by_role("region", name="Messages by QoS, table").get_by_role("row").nth(1)
                assert str(recording.messages.filter(qos=0, phase="measurement", fate="delivered").height) in (
                    shown.inner_text().split())
                compare_with_its_simulation(somebody)
                return True
        finally:
            served.kill()
