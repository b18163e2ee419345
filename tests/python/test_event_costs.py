"""What many events of a scenario cost before anything runs: counted in calls, which no other program changes."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

import pytest

from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.load import parse, warnings_of
from test_benches import bench

SCENARIO = """
name = "events"
[phases]
warm_up = "0 s"
duration = "{seconds} s"
cool_down = "10 s"
[[networks]]
name = "wan"
between = ["field", "broker"]
up = {{ rate = "1 Mbit/s", delay = "20 ms" }}
down = {{ rate = "1 Mbit/s", delay = "20 ms" }}
link = "each"
[[groups]]
name = "pub"
host = "field"
count = 2
publish = {{ topic = "gps/{{client}}", payload = "30 B", interval = "100 ms" }}
subscribe = [{{ filter = "gps/+" }}]
"""
RAIN = 'network = "wan"\nloss = "1 %"'
KINDS = {
    "a link": RAIN, "a link for a time": f'{RAIN}\nfor = "200 us"', "a link down": 'network = "wan"\ndown = true',
    "a rate": 'group = "pub"\npublish = { interval = "50 ms" }',
    "a silence": 'group = "pub"\ndo = "stop-publishing"', "one of many": 'group = "pub"\nshare = "1/2"\ndo = "burst"\n'
    'messages = 1',
    "a filter": 'group = "pub"\ndo = "subscribe"\nfilter = "x/y"',
}


def again(count: int, what: str) -> str:
    """One line that takes place so often."""
    return f'[[events]]\nat = "0 s"\nevery = "1 ms"\ncount = {count}\n{what}\n'


def in_a_row(count: int, what: str, begins: str = 'at = "0 s"') -> str:
    """Each begins with the one before it."""
    return "".join(f'[[events]]\nname = "e{number}"\n' + (f'when = "e{number - 1}"' if number else begins)
                   + f"\n{what}\n" for number in range(count))


def calls(text: str, scenario_text: str = SCENARIO) -> int:
    """Of Python's functions, for a check and a plan."""
    profile = cProfile.Profile()
    profile.enable()
    scenario = parse(scenario_text.format(seconds=3) + text)
    warnings_of(scenario)
    compile_plan(scenario)
    profile.disable()
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize("made", [again, in_a_row])
@pytest.mark.parametrize("what", KINDS.values(), ids=list(KINDS))
def test_twice_the_events_take_twice_the_work(made: object, what: str) -> None:
    assert callable(made)
    # What is done once, whatever the number of events, is no growth.
    _, few, some, many = (calls(made(count, what)) for count in (10, 10, 300, 600))
    assert (many - few) / (some - few) < 2.3


def test_a_row_of_any_length_is_followed() -> None:
    scenario = parse(SCENARIO.format(seconds=3) + in_a_row(5000, f'{RAIN}\nat = "100 us"', begins=""))
    times = [event["at_ns"] for event in compile_plan(scenario)["events"]]
    assert times == [100_000 * number for number in range(1, 5001)]


@pytest.mark.parametrize("before", ["", '[[events]]\nwhen = "e7"\nnetwork = "wan"\ndown = true\n'])
def test_a_circle_of_any_length_is_told_in_one_line(before: str) -> None:
    with pytest.raises(ScenarioError) as told:
        parse(SCENARIO.format(seconds=3) + before + in_a_row(1000, RAIN, begins='when = "e999"'))
    [line] = told.value.problems
    assert "which waits for this event in turn (1,000 events wait for each other); give one of them" in line


def test_what_waits_for_an_event_that_does_not_take_place_is_no_circle() -> None:
    with pytest.raises(ScenarioError) as told:
        parse(SCENARIO.format(seconds=3) + f'[[events]]\nname = "a"\nevery = "2 s"\nuntil = "1 s"\n{RAIN}\n'
              f'[[events]]\nwhen = "a"\n{RAIN}\n')
    [line] = told.value.problems
    assert "`events[0].until` leaves no time for the event" in line


@pytest.mark.parametrize("waiting", [0, 3000])
def test_too_many_are_told_before_they_are_made(waiting: int) -> None:
    text = in_a_row(waiting + 1, RAIN, begins='every = "1 us"')
    with pytest.raises(ScenarioError, match="but may be at most 100,000; use a longer `every`") as told:
        parse(SCENARIO.format(seconds=3) + text)
    [line] = told.value.problems
    assert f"{2_999_999 * (waiting + 1):,}" in line


@pytest.mark.parametrize("size", [1, 40])
def test_what_covers_another_change_for_ever_gives_the_same_plan(size: int) -> None:
    """A change that ends still gives back what was there before it."""
    text = "".join(
        f'[[events]]\nat = "{number} ms"\nnetwork = "wan"\ndelay = "{number + 1} ms"\n' for number in range(size))
    text += ('[[events]]\nat = "100 ms"\nfor = "500 ms"\nnetwork = "wan"\ndelay = "99 ms"\n'
             'burst_loss = { good_to_bad = "1 %", bad_to_good = "20 %" }\n'
             '[[events]]\nat = "200 ms"\nnetwork = "wan"\nloss = "5 %"\n')
    last = compile_plan(parse(SCENARIO.format(seconds=3) + text))["events"][-1]
    spec = last["change"]["spec"]  # type: ignore[typeddict-item]
    assert spec["delay"]["mean_ns"] == size * 1_000_000
    assert spec["loss"] == {"kind": "bernoulli", "probability": [1, 20]}


def test_the_bench_has_a_row_for_each_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    events = bench("events/run", monkeypatch)
    written = (Path(events.__file__).parent / "RESULTS.md").read_text(encoding="utf-8")
    assert all(f"| {kind} |" in written for kind in events.KINDS)
