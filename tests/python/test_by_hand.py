"""Events that are fired by hand in a run that goes on: how they are given, checked, performed, recorded and told."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import Done, mqttlab
from mqttlab import metrics
from mqttlab.plan.events import changes
from mqttlab.recording import Recording
from mqttlab.report import changes as report_changes
from mqttlab.runs import Job, perform
from mqttlab.scenario import ScenarioError, compile_plan, parse
from mqttlab.scenario.by_hand import fields_of, planned_by_hand

S = 10**9
TEXT = """
name = "hand"
[phases]
warm_up = "500 ms"
duration = "7 s"
cool_down = "10 s"
[[networks]]
name = "wan"
between = ["field", "broker"]
up = { delay = "5 ms", rate = "10 Mbit/s" }
down = { delay = "5 ms", rate = "10 Mbit/s" }
[[groups]]
name = "sensors"
host = "field"
count = 4
publish = { topic = "a/{client}", payload = "100 B", rate = "20 /s", qos = 1 }
mqtt = { keep_alive = "2 s" }
reconnect = { initial = "100 ms", maximum = "200 ms" }
[[groups]]
name = "readers"
host = "broker"
subscribe = ["a/#"]
"""


def refusal(*words: str, text: str = TEXT) -> str:
    with pytest.raises(ScenarioError) as said:
        planned_by_hand((text, {}), plan_of(text), fields_of(words), [], S)
    [problem] = said.value.problems
    return problem


def plan_of(text: str) -> Any:
    return compile_plan(parse(text))


def test_fields_are_those_of_a_scenario_and_need_no_quotes() -> None:
    assert fields_of(["network=wan", 'rate = "50 kbit/s"', "loss=2 %", "client=3", "down=true", "for=20 s"]) == {
        "network": "wan", "rate": "50 kbit/s", "loss": "2 %", "client": 3, "down": True, "for": "20 s"}


@pytest.mark.parametrize(("words", "said"), [
    (["wan"], 'is no field of an event; write FIELD=VALUE, such as network=wan down=true for=\'20 s\''),
    (["network=wan", "network=lan"], "`network` is given twice; keep one"),
    (["network=wan", "down=true", "at=3 s"], "`at` says when, but an event by hand takes place at once"),
    (["group=sensors", "publish={ rate = \"1 /s\" }"], "which cannot be fired by hand"),
    (["group=sensors", "do=burst"], "`do` is \"burst\", which cannot be fired by hand"),
    (["network=wna", "down=true"], "`network` is the unknown network \"wna\"; did you mean `wan`?"),
    (["network=wan", "dwon=true"], "`dwon` is an unknown field; did you mean `down`?"),
    (["network=wan"], "the event does not say what changes in the network; add `down = true`, or fields of a link"),
    (["server=broker", "do=crash"], "`do` is \"crash\", but must be one of"),
    (["group=sensors", "client=9", "do=vanish"], "`client` is 9, but"),
    (["group=sensors"], "what happens; add `do`, one of disconnect, vanish, return, stop-reading, continue-reading"),
    (["group=sensors", "do=brust"],
     '`do` is "brust", but must be one of disconnect, vanish, return, stop-reading, continue-reading'),
    (["group=sensors", "do=vanihs"], 'stop-reading, continue-reading; did you mean "vanish"?'),
    (["group=sensors", "do=kill"], '`do` is "kill", which is for servers, but `group` is given; use one of disconnect'),
    (["server=broker", "do=vanish"], "which is for clients, but `server` is given; use one of stop, kill, pause"),
    (["server=broker", "do=restart"], "write `do = \"stop\"` or `\"kill\"` with `for`"),
    (["do=brust"], "stop, kill, pause, continue, start for servers; disconnect, vanish"),
    (["server=brokr", "do=kill"], '`server` is the unknown server "brokr"; did you mean `broker`?'),
    (["server=broker"], "the event does not say what happens; add `do`, one of stop, kill"),
    (["down=true"], "the event does not say what changes; add `network`, `server`, `group`"),
    (["link=wan", "down=true"], "`link` is an unknown field; did you mean `network`?"),
    (["clients=sensors", "do=vanish"], "`clients` is an unknown field; did you mean `group`?"),
    (["kind=kill", "server=broker"], "`kind` is an unknown field; did you mean `do`?"),
    (["group=sensors", "vanish=true", "do=vanish"], '`vanish` is an unknown field; write `do = "vanish"`'),
    (["network=wan", "loss=120%"], '`loss` is "120%", but must be 100 % or less'),
    (["network=wan", "rate=50kbits"], 'did you mean "50 kbit/s"?'),
    (["network=wan", "queue=-5"], '`queue` is -5, which has no unit; write "5 packets" or "5 B"'),
    (["network=wan", "down=true", "for=20"], '`for` is 20, which has no unit; write "20 s"'),
    (["group=sensors", "do=vanish", "share=1e400"], "`share` is inf, which is not a ratio; write a number and"),
    (["group=readers", "do=vanish"], "`do` is \"vanish\", but no emulated network lies between `readers` and"),
])
def test_a_wrong_event_is_refused_as_a_scenarios_is(words: list[str], said: str) -> None:
    assert said in refusal(*words)


def test_an_event_lies_over_what_others_have_changed_by_then() -> None:
    rain = '[[events]]\nname = "rain"\nat = "1 s"\nfor = "5 s"\nnetwork = "wan"\nrate = "1 Mbit/s"\n'
    text = TEXT + rain
    earlier = [(2 * S, {"network": "wan", "direction": "up", "delay": "9 ms"})]
    fields = fields_of(["network=wan", "direction=up", "loss=5 %", "for=1 s"])
    (begins, changed), (ends, back) = planned_by_hand((text, {}), plan_of(text), fields, earlier, 3 * S)
    assert (begins, ends) == (0, S)
    specs: list[Any] = [one["change"]["spec"] for one in (changed, back)]  # type: ignore[typeddict-item]
    assert [(spec["rate_bit_s"], spec["delay"]["mean_ns"]) for spec in specs] == 2 * [(1_000_000, 9_000_000)]
    before: Any = plan_of(text)["network"]["links"][0]
    assert specs[0]["loss"] != before["loss"] == specs[1]["loss"]
    assert (changed["name"], back["name"]) == ("wan/up loss 5 %", "wan/up as before")


def test_an_event_by_hand_ends_its_own_change_and_those_of_the_scenario_that_it_undoes() -> None:
    text = TEXT + ('[[events]]\nat = "1 s"\nfor = "5 s"\nserver = "broker"\ndo = "kill"\n'
                   '[[events]]\nat = "1 s"\nfor = "5 s"\nnetwork = "wan"\nrate = "1 Mbit/s"\n')
    rain = [(2 * S, {"network": "wan", "delay": "9 ms"})]
    start = planned_by_hand((text, {}), plan_of(text), fields_of(["server=broker", "do=start"]), rain, 3 * S)
    loss = planned_by_hand((text, {}), plan_of(text), fields_of(["network=wan", "loss=5 %", "for=1 s"]), rain, 3 * S)
    assert [(event.get("begins"), event.get("ends")) for _, event in start] == [(None, [0])]
    assert [(event.get("begins"), event.get("ends")) for _, event in loss] == [(3, None), (None, [3])]
    planned = plan_of(text)["events"]
    fired = [(event["at_ns"], event) for _, event in [*start, *loss]]
    found = changes(planned, [event["at_ns"] for event in planned], sorted(fired, key=lambda one: one[0]))
    assert [(one.name, one.at_ns / S, one.until_ns and one.until_ns / S) for one in found] == [
        ("broker is killed", 1.5, 3), ("wan rate 1 Mbit/s", 1.5, 6.5), ("wan loss 5 %, by hand", 3, 4)]


def test_files_of_the_run_are_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.bin").write_bytes(b"123")
    (tmp_path / "x.csv").write_text("time,topic\n0,a\n", encoding="utf-8")
    text = TEXT.replace('payload = "100 B"', 'payload = { kind = "file", path = "x.bin" }') + (
        '[[groups]]\nname = "old"\nhost = "field"\npublish = { replay = "x.csv" }\n')
    plan: Any = compile_plan(parse(text, str(tmp_path / "x.toml")))
    monkeypatch.chdir("/")
    [(_, event)] = planned_by_hand((text, {"groups[0].count": 2}), plan, {"network": "wan", "down": True}, [], S)
    assert event["name"] == "wan down"


def test_runs_that_take_no_events_say_why(tmp_path: Path) -> None:
    def said(directory: Path) -> str:
        result = mqttlab("event", str(directory), "network=wan", "down=true")
        assert result.returncode == 2
        return result.stderr

    assert "is no run that has begun; mqttlab list shows runs" in said(tmp_path)
    assert said(tmp_path / "sin").endswith("sin is no run that has begun; mqttlab list shows runs\n")
    for name, plan, words in (
            ("sim", '{"backend": "sim"}', "this run is simulated: put the event into the scenario"),
            ("over", '{"backend": "live"}', "the run has ended; put the event into the scenario")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.json").write_text(plan, encoding="utf-8")
        assert words in said(tmp_path / name)
    assert f"simm is no run that has begun; did you mean {tmp_path / 'sim'}?" in said(tmp_path / "simm")
    assert f"is a file of a run; name its directory: {tmp_path / 'sim'}" in said(tmp_path / "sim" / "plan.json")
    assert "is no run that has begun: it is a directory of recordings; mqttlab list --runs" in said(tmp_path)
    (tmp_path / "a.toml").write_text(TEXT, encoding="utf-8")
    assert "a.toml is no run that has begun: it is a scenario" in said(tmp_path / "a.toml")


def performed(directory: Path, text: str, deeds: dict[float, list[str]]) -> tuple[list[dict[str, Any]], list[Done]]:
    """A live run, and what is said when these are fired at these seconds of its measurement."""
    lines: list[dict[str, Any]] = []
    measured = threading.Event()
    answers: list[Done] = []

    def hear(line: dict[str, Any]) -> None:
        lines.append(line)
        if line.get("phase") == "measurement":
            measured.set()

    def fire() -> None:
        assert measured.wait(120)
        begun = time.monotonic()
        for at, words in deeds.items():
            time.sleep(max(0.0, begun + at - time.monotonic()))
            answers.append(mqttlab("event", directory, *words))

    firing = threading.Thread(target=fire)
    firing.start()
    origin = {"scenario": {"toml": text, "settings": {}}}
    outcome = perform(Job(plan_of(text), directory, origin=origin), hear)
    firing.join()
    assert outcome.verdict in ("complete", "invalid"), outcome.reason
    return lines, answers


@pytest.mark.live
def test_a_live_run_performs_records_and_tells_them(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    lines, answers = performed(directory, TEXT, {
        0.3: ["network=wan", "down=true", "for=500 ms"], 1.8: ["server=broker", "do=pause", "for=400 ms"],
        3.2: ["group=sensors", "share=50 %", "do=vanish", "for=1 s"], 3.6: ["group=sensors", "do=brust"]})
    assert [answer.returncode for answer in answers] == [0, 0, 0, 2], [answer.stderr for answer in answers]
    assert answers[0].stdout.splitlines() == ["now: wan down", "in 500 ms: wan up"]
    recording = Recording.open(directory)
    assert recording.plan["events"] == []
    taken = recording.changes
    assert [one.name for one in taken] == [
        "wan down, by hand", "broker is paused, by hand", "50 % of sensors vanish, by hand"]
    lasted = [((one.until_ns or 0) - one.at_ns) / S for one in taken]
    assert lasted == pytest.approx([0.5, 0.4, 1], abs=0.2)
    rows = recording.events.filter(pl.col("kind") == "change_by_hand")
    assert rows["detail"].to_list()[:2] == ["wan down", "wan up"]
    said = [line for line in lines if line["event"] == "change"]
    assert [line["at_ns"] for line in said] == rows["at_ns"].to_list() and all(line["by_hand"] for line in said)
    # A link that no event of the plan changes was down.
    dropped = recording.table("packets").filter(pl.col("cause") == "link_down")
    begin, end = taken[0].at_ns - S // 10, (taken[0].until_ns or 0) + S // 10
    assert dropped.height > 10 and dropped["entered_ns"].is_between(begin, end).all()
    first, paused, vanished = metrics.changes(recording).rows(named=True)
    assert first["change_silence_s"] > 0.4 and paused["change_silence_s"] > 0.3
    assert vanished["change_connections_lost"] >= 2
    assert "wan down, by hand for" in report_changes.sentence(recording)
    # Nothing but recordings is left.
    assert not (directory / "events.sock").exists()
    assert "the run has ended" in mqttlab("event", str(directory), "network=wan", "down=true").stderr
