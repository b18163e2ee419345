"""Events by hand in the browser: the form offers what is possible in the run, the engine performs it, the page tells
it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dashboards import Visitor, dashboard, queue_below, visitor
from mqttlab.dashboard import events_by_hand
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.watch import Watch
from mqttlab.recording import Recording
from mqttlab.scenario.by_hand import possible_by_hand
from test_by_hand import TEXT, plan_of
from test_dashboard_accessibility import APART, WIDGETS

RADIO = """
name = "air"
[phases]
duration = "5 s"
[radio]
interferers = [{ name = "oven", position = ["1 m", "1 m"], power = "10 dBm", on = "10 ms", off = "10 ms" }]
positions = [["0 m", "0 m"], ["5 m", "0 m"], ["6 m", "0 m"]]
[hosts.field]
count = 2
[broker]
persistence = true
[[groups]]
name = "sensors"
host = "field"
count = 2
publish = { topic = "a/{client}", payload = "100 B", rate = "1 /s" }
subscribe = ["a/#"]
"""
ONE_WAY = TEXT.replace('down = { delay = "5 ms", rate = "10 Mbit/s" }\n', "", 1)


def offered(text: str) -> dict[tuple[str, str], dict[str, list[str]]]:
    """What happens to what, with the fields that go with it."""
    return {(thing.kind, thing.name): {deed.title: [one.name for one in deed.asked] for deed in thing.deeds}
            for thing in possible_by_hand((text, {}), plan_of(text))}


def test_only_what_is_possible_is_offered() -> None:
    found = offered(TEXT)
    assert [*found] == [("network", "wan"), ("server", "broker"), ("group", "sensors"), ("group", "readers")]
    assert [*found["network", "wan"]] == ["down", "up", "change rate, delay or loss"]
    assert found["network", "wan"]["change rate, delay or loss"] == ["rate", "delay", "jitter", "loss", "direction"]
    assert "vanish, as after a loss of power" in found["group", "sensors"]
    # No emulated network lies between these and the broker, and they are one.
    assert found["group", "readers"] == {
        name: [] for name in ("disconnect in order", "return", "stop reading", "continue reading")}
    # Nobody changes what clients publish or subscribe to, and no broker loses what it does not store.
    assert not re.search("publish|subscribe|burst", str(found)) and found["server", "broker"]["kill (SIGKILL)"] == []


def test_a_link_of_one_direction_is_changed_in_that_one() -> None:
    [down] = [deed for thing in possible_by_hand((ONE_WAY, {}), plan_of(ONE_WAY)) for deed in thing.deeds
              if deed.title == "down"]
    assert down.asked[0].options == (('"up"', "up"),)


def test_a_radio_channel_has_stations_and_interferers_and_no_networks() -> None:
    found = offered(RADIO)
    assert [*found] == [("server", "broker"), ("group", "sensors"), ("interferer", "oven"), ("station", "broker"),
                        ("station", "field"), ("station", "field-0"), ("station", "field-1")]
    assert [*found["interferer", "oven"]] == ["switch on", "switch off"]
    # Of two hosts one can be placed.
    assert "move" not in found["station", "field"] and found["station", "field-1"]["move"] == ["position"]
    assert found["server", "broker"]["kill (SIGKILL)"] == ["persistence"]


def test_what_is_no_event_and_a_run_that_takes_none_are_told(tmp_path: Path) -> None:
    over = tmp_path / "runs" / "over"
    over.mkdir(parents=True)
    (over / "plan.json").write_text('{"backend": "live"}', encoding="utf-8")

    class Known(Watch):
        def directory_of(self, job: str) -> Path | None:
            return over if job == "over" else None

    with queue_below(tmp_path) as queue:
        watch = Known(Jobs(tmp_path / "runs", queue.directory))
        down: Any = {"words": ["network=wan", "down=true"]}
        said = "the run has ended; put the event into the scenario, and run it again"
        assert events_by_hand.fire(watch, "over", down) == {"refused": said} == events_by_hand.possible(watch, "over")
        assert events_by_hand.fire(watch, "none", down) == {"refused": events_by_hand.GONE}
        for wrong in (None, [], {"words": "down"}, {"words": [3]}, {"words": ["x"] * 21}, {"words": ["x" * 1001]}):
            assert events_by_hand.fire(watch, "over", wrong) == {"refused": "That is no event."}


@pytest.mark.live
@pytest.mark.timeout(600)
def test_an_event_is_fired_by_keyboard_refused_told_and_drawn(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    with queue_below(tmp_path) as queue, dashboard(runs) as served, visitor(served) as somebody:
        jobs = Jobs(runs, queue.directory)
        [identifier] = jobs.start(TEXT.replace('duration = "7 s"', 'duration = "900 s"'))
        directory = jobs.directory_of(identifier)
        assert directory is not None
        fire(somebody, identifier)
        jobs.cancel(identifier)
        somebody.page.get_by_role("link", name=re.compile("^hand: ")).wait_for()
        assert somebody.problems == [] and somebody.elsewhere == set()
        names = [change.name for change in Recording.open(directory).changes]
        assert names == ["wan down, by hand", "50 % of sensors vanish, by hand"]


def fire(somebody: Visitor, identifier: str) -> None:
    page = somebody.page
    somebody.go("/live")
    # Runs of others may stand there, too.
    section = page.locator(f".live-job[data-job='{identifier}']")
    form = section.get_by_role("form", name="An event by hand")
    form.locator("fieldset:enabled").first.wait_for()
    # Nothing but keys, from the first field on.
    form.get_by_label("What", exact=True).focus()
    assert form.get_by_label("What", exact=True).locator("option").all_inner_texts() == [
        "wan", "broker", "sensors", "readers"]
    for _ in range(4):
        page.keyboard.press("Tab")
    page.keyboard.type("500 ms")
    page.keyboard.press("Enter")
    form.get_by_role("status").get_by_text("Fired by hand. now: wan down; in 500 ms: wan up").wait_for()
    told = section.get_by_role("region", name="Events so far, table")
    told.get_by_role("row").filter(has_text="wan down, by hand").wait_for()
    # Another choice has other fields, and what is wrong is told in the words of the command.
    form.get_by_label("What", exact=True).select_option("sensors")
    form.get_by_label("What happens").select_option("vanish, as after a loss of power")
    form.get_by_label("or one, by number").fill("9")
    form.get_by_role("button", name="Fire").press("Space")
    form.get_by_role("status").get_by_text("Not fired: `client` is 9, but `sensors` has 4 clients").wait_for()
    form.get_by_label("or one, by number").fill("")
    form.get_by_label("Share of them").fill("50 %")
    form.get_by_label(re.compile("^For, then return")).fill("300 ms")
    form.get_by_role("button", name="Fire").click()
    told.get_by_role("row").filter(has_text="50 % of sensors vanish, by hand").wait_for()
    answer = page.request.get(f"{somebody.base}/data/job/{identifier}/figure/messages.json").json()
    assert "wan down, by hand" in json.dumps(answer["figure"]["layout"]["annotations"])
    section.locator(".plot .annotation-text").filter(has_text="by hand").first.wait_for()
    fits(somebody)


def fits(somebody: Visitor) -> None:
    """The page with the form is no wider than the screen, and breaks no rule of accessibility."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="make setup-test").Axe()
    page = somebody.page
    for width in (1280, 400):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)
        assert page.evaluate(APART) == []
        found = axe.run(page, context={"exclude": [[widget] for widget in WIDGETS]}, options={
            "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}).response["violations"]
        assert [(width, one["id"], one["nodes"][0]["html"][:120]) for one in found
                if one["impact"] in ("serious", "critical")] == []
