"""Events of a scenario: when they are, what they become in the plan, and how they are told."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from mqttlab.engine import engine_path
from mqttlab.experiments.responses import wrong
from mqttlab.plan.events import Change, changes, kind_of
from mqttlab.scenario import compile_plan, parse
from mqttlab.scenario.threshold import Threshold

SCENARIO = """
name = "changing"
backend = "sim"
[phases]
warm_up = "2 s"
duration = "60 s"
[broker]
persistence = true
[hosts.router]
forwards = true
[[networks]]
name = "wan"
between = ["field", "router"]
up = { rate = "1 Mbit/s", delay = "20 ms", loss = "1 %" }
down = { rate = "2 Mbit/s", delay = "20 ms" }
link = "each"
[[networks]]
between = ["broker", "router"]
up = { rate = "10 Mbit/s" }
down = { rate = "20 Mbit/s" }
[[groups]]
name = "office"
host = "broker"
subscribe = ["a/+"]
[[groups]]
name = "sensors"
host = "field"
count = 4
publish = { topic = "a/{client}", payload = "20 B", interval = "1 s" }
subscribe = [{ filter = "b", qos = 2 }]
"""
UP = [f"field-{number}/up" for number in range(4)]
DOWN = [f"field-{number}/down" for number in range(4)]


def events(text: str) -> list[Any]:
    """The plan's events of the scenario with these, each ``[[events]]`` before a semicolon."""
    tables = "".join(f"[[events]]\n{part.strip()}\n" for part in text.split(";"))
    return compile_plan(parse(SCENARIO + tables))["events"]


def short(planned: list[Any]) -> list[tuple[float, str, str]]:
    return [(event["at_ns"] / 1e9, kind_of(event), event["name"]) for event in planned]


def test_a_scenario_without_events_has_none() -> None:
    assert compile_plan(parse(SCENARIO))["events"] == []


def test_times_are_of_the_measurement_and_the_plan_counts_from_the_warm_up() -> None:
    planned = events('at = "10 s"\nfor = "5 s"\nnetwork = "wan"\ndown = true;'
                     'at = "-500 ms"\nserver = "broker"\ndo = "kill"')
    assert short(planned) == [
        (1.5, "server_kill", "broker is killed"), (12, "link_down", "wan down"), (17, "link_up", "wan up")]
    assert planned[1]["links"] == [*UP, *DOWN]
    assert planned[1]["change"] == {"kind": "down", "queue": "drop"}


@pytest.mark.parametrize(("when", "times"), [
    ('every = "20 s"', [22, 42]), ('every = "20 s"\nat = "0 s"', [2, 22, 42]),
    ('every = "20 s"\nat = "-1 s"\ncount = 2', [1, 21]), ('every = "10 s"\nuntil = "30 s"', [12, 22, 32]),
    ('every = "1 h"\nat = "59999 ms"', [61.999]),
])
def test_what_happens_again_and_again_ends_with_the_measurement(when: str, times: list[float]) -> None:
    planned = events(f'{when}\nnetwork = "wan"\ndown = true\nqueued = "keep"')
    assert [event["at_ns"] / 1e9 for event in planned] == times
    assert {event["change"]["queue"] for event in planned} == {"keep"}


@pytest.mark.parametrize(("when", "times"), [
    ('when = "rain"', [12, 32]), ('when = "rain"\nat = "1 s"', [13, 33]),
    ('when = "end of rain"\nat = "-1 s"', [16, 36]),
    ('when = "once"\nevery = "10 s"\nuntil = "40 s"', [22, 32, 42]),
    ('when = "once"\nevery = "5 s"\nat = "1 s"\ncount = 2', [23, 28]),
])
def test_an_event_begins_with_another_one_or_its_end(when: str, times: list[float]) -> None:
    rain = 'name = "rain"\nat = "10 s"\nevery = "20 s"\ncount = 2\nfor = "5 s"\nnetwork = "wan"\ndown = true'
    # It may stand before what it waits for, and that may wait itself.
    planned = events(f'{when}\nname = "it"\nserver = "broker"\ndo = "pause";{rain};'
                     'name = "once"\nwhen = "start"\nat = "5 s"\nserver = "broker"\ndo = "kill";'
                     'name = "start"\nat = "15 s"\nserver = "broker"\ndo = "start"')
    assert [event["at_ns"] / 1e9 for event in planned if event["name"] == "it"] == times


def test_a_changed_link_is_whole_and_has_what_it_had_before_afterwards() -> None:
    planned = events('at = "10 s"\nfor = "5 s"\nnetwork = "wan"\nrate = "50 kbit/s"\n'
                     'burst_loss = { good_to_bad = "1 %", bad_to_good = "50 %" }')
    before = {link["name"]: link for link in compile_plan(parse(SCENARIO))["network"]["links"]}
    assert short(planned) == [(12, "link_change", "wan rate 50 kbit/s, burst loss")] + [
        (17, "link_change", "wan as before")] * 2
    # Both directions are alike while it lasts, and differ before and after.
    assert planned[0]["links"] == [*UP, *DOWN]
    spec = planned[0]["change"]["spec"]
    assert (spec["rate_bit_s"], spec["delay"]["mean_ns"]) == (50_000, 20_000_000)
    assert spec["loss"]["kind"] == "gilbert_elliott"
    assert [event["links"] for event in planned[1:]] == [UP, DOWN]
    assert [event["change"]["spec"] for event in planned[1:]] == [before[UP[0]], before[DOWN[0]]]


def test_changes_lie_over_each_other_and_each_ends_alone() -> None:
    planned = events('at = "10 s"\nfor = "20 s"\nnetwork = "wan"\ndirection = "up"\nrate = "50 kbit/s"\nname = "rain";'
                     'at = "20 s"\nfor = "20 s"\nnetwork = "wan"\ndirection = "up"\ndelay = "1 s"\nrate = "9 kbit/s";'
                     'at = "50 s"\nnetwork = "wan"\ndirection = "up"\nrate = "5 Mbit/s"')
    specs = [event["change"]["spec"] for event in planned]
    assert [spec["rate_bit_s"] for spec in specs] == [50_000, 9_000, 9_000, 1_000_000, 5_000_000]
    assert [spec["delay"]["mean_ns"] // 10**6 for spec in specs] == [20, 1000, 1000, 20, 20]
    assert [event["name"] for event in planned[:3]] == ["rain", "wan/up rate 9 kbit/s, delay 1000 ms", "end of rain"]


def test_a_link_is_up_again_when_nothing_keeps_it_down() -> None:
    planned = events('at = "10 s"\nfor = "20 s"\nnetwork = "wan"\ndown = true;'
                     'at = "20 s"\nfor = "20 s"\nnetwork = "wan"\ndirection = "up"\ndown = true;'
                     'at = "50 s"\nnetwork = "wan"\ndown = false')
    assert [(event["at_ns"] // 10**9, event["change"]["kind"], event["links"]) for event in planned] == [
        (12, "down", [*UP, *DOWN]), (22, "down", UP), (32, "up", DOWN), (42, "up", UP), (52, "up", [*UP, *DOWN])]


def test_directions_are_those_of_the_scenario_whichever_end_is_the_servers() -> None:
    """The plan calls links by the way to the server; this network is written from the broker on."""
    for direction, link in (("up", "router/down"), ("down", "router/up")):
        [event] = events(f'at = "1 s"\nnetwork = "broker"\ndirection = "{direction}"\ndown = true')
        assert event["links"] == [link]
    rates = {link["name"]: link["rate_bit_s"] for link in compile_plan(parse(SCENARIO))["network"]["links"]}
    assert rates["router/down"] == 10_000_000


def test_a_server_changes_with_its_own_persistence_or_the_events() -> None:
    planned = events('at = "1 s"\nfor = "2 s"\nserver = "broker"\ndo = "stop";'
                     'at = "9 s"\nfor = "2 s"\nserver = "broker"\ndo = "pause";'
                     'at = "20 s"\nfor = "2 s"\nserver = "broker"\ndo = "kill"\npersistence = false')
    assert [(event["change"]["kind"], event["change"]["persistence"]) for event in planned] == [
        ("stop", True), ("start", True), ("pause", True), ("continue", True), ("kill", False), ("start", False)]


def test_clients_are_a_share_spread_over_the_group_one_or_all() -> None:
    def clients(who: str) -> list[int]:
        return list(events(f'at = "1 s"\ngroup = "sensors"\ndo = "vanish"\n{who}')[0]["clients"])

    # The office is client 0.
    assert clients("") == [1, 2, 3, 4]
    assert clients('share = "50 %"') == [2, 4]
    assert clients('share = "75 %"') == [2, 3, 4]
    assert clients("client = 0") == [1]
    [gone, back] = events('at = "1 s"\nfor = "1 s"\ngroup = "sensors"\ndo = "unsubscribe"\nfilter = "b"')
    assert gone["change"] == {"kind": "unsubscribe", "filter": "b"}
    assert back["change"] == {"kind": "subscribe", "filter": "b", "qos": 2}, "as the group has it"


def test_ends_are_told_with_what_they_end() -> None:
    planned = events('at = "10 s"\nfor = "5 s"\nnetwork = "wan"\ndown = true;'
                     'every = "20 s"\nfor = "1 s"\nnetwork = "wan"\ndelay = "1 s";'
                     'name = "crash"\nat = "10 s"\nfor = "3 s"\nserver = "broker"\ndo = "kill";'
                     'at = "30 s"\ngroup = "sensors"\ndo = "vanish"')
    told = changes(planned, [event["at_ns"] for event in planned])
    assert [(one.name, one.at_ns // 10**9, one.until_ns and one.until_ns // 10**9) for one in told] == [
        ("wan down", 12, 17), ("crash", 12, 15), ("wan delay 1000 ms", 22, 23), ("sensors vanish", 32, None),
        ("wan delay 1000 ms", 42, 43)]
    # The run ended before the rest.
    assert changes(planned, [7]) == [Change(name="wan down", kind="link_down", at_ns=7)]


def test_the_engine_reads_every_kind_of_event() -> None:
    kinds = {
        'network = "wan"\ndown = true\nfor = "1 s"', 'network = "wan"\nrate = "1 kbit/s"',
        'server = "broker"\ndo = "stop"\nfor = "1 s"', 'server = "broker"\ndo = "kill"\nfor = "1 s"',
        'server = "broker"\ndo = "pause"\nfor = "1 s"', 'group = "sensors"\ndo = "disconnect"\nfor = "1 s"',
        'group = "sensors"\ndo = "vanish"\nfor = "1 s"', 'group = "sensors"\ndo = "stop-reading"\nfor = "1 s"',
        'group = "sensors"\ndo = "subscribe"\nfilter = "c/{client}"\nfor = "1 s"',
        'group = "sensors"\npublish = { rate = "9 /s", payload = "gps", qos = 2 }\nfor = "1 s"',
        'group = "sensors"\ndo = "stop-publishing"\nfor = "1 s"', 'group = "sensors"\ndo = "burst"\nmessages = 9'}
    for lines in kinds:
        plan = compile_plan(parse(SCENARIO + f'[[events]]\nat = "1 s"\n{lines}'))
        said = subprocess.run([engine_path(), "check"], input=json.dumps(plan), capture_output=True, text=True,
                              check=False)
        assert said.returncode == 0, (lines, said)


def test_a_threshold_may_be_about_an_event() -> None:
    asked = Threshold(metric="change_reconnected_s_max", scope="event", name="broker is killed", below=30)
    assert wrong(asked) is None
    assert wrong(asked.model_copy(update={"name": None})) == (
        "scope", 'is "event", of which there are several; add `name`, which of them')
