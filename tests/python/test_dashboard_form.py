"""The form of all fields: made from the scenario's definition, in step with the TOML."""

from __future__ import annotations

import base64
import json
import tomllib
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")
pytest.importorskip("tomlkit", reason="the dashboard's packages are missing: make setup-dashboard")

from mqttlab.dashboard import drawing
from mqttlab.dashboard.configure import definition, draft_edits, drafts
from mqttlab.dashboard.configure.drafts import REFUSED, Draft
from mqttlab.dashboard.configure.forms import FIELDS, drafted, followed
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.pages import configure
from mqttlab.dashboard.topology import topology
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import scenario
from test_dashboard_pages import text_of
from test_publications import TOML as PUBLICATIONS

TEXT = drafts.written(Draft())
COMMENTED = TEXT.replace("[phases]", "# Why it is so long.\n[phases]")


def fields(text: str) -> dict[str, dict[str, str]]:
    return {field["place"]: field for section in json.loads(configure.form(text)) for field in section["fields"]}


def test_every_field_has_its_value_its_words_and_its_default() -> None:
    found = fields(TEXT)
    assert found["phases.duration"]["value"] == "20 s" and found["phases.duration"]["required"]
    staged = fields(TEXT.replace('duration = "20 s"', 'stages = [{ name = "busy", for = "20 s" }]'))
    assert staged["phases.duration"]["value"] == "" and not staged["phases.duration"]["required"]
    assert found["phases.cool_down"]["help"].startswith("Waiting for messages under way")
    assert found["seed"]["kind"] == "whole" and found["seed"]["default"] == "1" and found["seed"]["value"] == ""
    assert found["groups[0].publish.qos"]["kind"] == "choice" and found["groups[0].publish.qos"]["value"] == "0"
    assert found["groups[0].publish.payload"]["value"] == "gps"
    assert found["recording.pcapng"]["options"] == ["true", "false"]
    assert found["recording.detail"]["options"] == ["full", "messages", "summary"]
    assert "networks[0].up.delay" in found and "mqtt.keep_alive" in found


def test_the_form_has_no_field_that_a_browser_may_not_set() -> None:
    named = {part for place in fields(TEXT) for part in place.replace("[", ".").split(".")}
    assert named & set(REFUSED) == set()
    for place in ("broker.program.command", "broker.address", "groups[0].publish.payload.path", "no.such", "seed.x",
                  "groups[9].count", "../x", "", "groups[0]", "phases", "groups[-1].count", "__class__"):
        with pytest.raises(ValueError):
            definition.put(TEXT, place, "x")


@pytest.mark.parametrize(("place", "written", "expected"), [
    ("phases.duration", "7 s", "7 s"), ("seed", "9", 9), ("recording.payloads", "true", True),
    ("groups[1].count", "4", 4), ("groups[0].publish.qos", "2", 2), ("mqtt.version", "5", "5"),
    ("sim.stop.messages_per_subscriber", "10", 10), ("description", 'says "this"\n[broker]', 'says "this"\n[broker]'),
])
def test_a_field_changes_its_place_and_nothing_else(place: str, written: str, expected: object) -> None:
    text = definition.put(COMMENTED, place, written)
    here: object = tomllib.loads(text)
    for word in place.split("."):
        name, _, number = word.partition("[")
        here = here[name]  # type: ignore[index]
        here = here[int(number[:-1])] if number else here  # type: ignore[index]
    assert here == expected and "# Why it is so long." in text
    assert fields(text)[place]["value"] == (str(expected).lower() if isinstance(expected, bool) else str(expected))
    back = definition.put(text, place, "")
    assert fields(back)[place]["value"] == ""


def test_a_problem_stands_at_its_field() -> None:
    text = definition.put(TEXT, "phases.duration", "9 parsecs")
    found = fields(text)
    assert "parsecs" in found["phases.duration"]["problem"]
    assert [place for place, field in found.items() if field["problem"]] == ["phases.duration"]
    assert fields("not [ toml")["phases.duration"]["value"] == ""


def test_the_six_fields_leave_the_rest_of_the_text_alone() -> None:
    values = tuple(getattr(Draft(), name) for name in FIELDS)
    text = definition.put(COMMENTED, "mqtt.keep_alive", "7 s")
    for name, value in (("duration", "3 s"), ("delay", "1 s"), ("nodes", 2), ("data", "image"), ("loss", "2 %"),
                        ("network", "dsl"), ("backend", "sim")):
        asked = tuple(value if name == field else old for field, old in zip(FIELDS, values, strict=True))
        text, draft = followed({f"draft-{name}"}, text, asked)
        assert getattr(draft, name) == value and drafts.read(text, Draft()) == draft, name
        values = tuple(getattr(draft, field) for field in FIELDS)
    assert "# Why it is so long." in text and tomllib.loads(text)["mqtt"]["keep_alive"] == "7 s"
    # Another network has the loss that was asked for; without one the network's own holds.
    [network] = tomllib.loads(text)["networks"]
    assert network["model"] == "dsl" and network["up"] == network["down"] == {"loss": "2 %"}
    [network] = tomllib.loads(after(text, "loss", ""))["networks"]
    assert "up" not in network and "down" not in network
    changed, _ = followed({"form-change"}, text, values, {"place": "seed", "value": " 5 "})
    assert tomllib.loads(changed)["seed"] == 5
    # What is no TOML yet is somebody's work: no field touches it, and each keeps what it says.
    for broken in (text + "\n[", "not [ toml"):
        for name in FIELDS:
            assert followed({f"draft-{name}"}, broken, values) == (broken, drafted(values)), name
        assert followed({"form-change"}, broken, values, {"place": "seed", "value": "5"})[0] == broken
    for change in (None, {}, {"place": "x"}, {"place": "broker.address", "value": "1"}, {"place": 3, "value": "1"}):
        assert followed({"form-change"}, text, values, change)[0] == text


def after(text: str, name: str, value: object) -> str:
    """The text after one of the six fields was set; the fields say what it says."""
    before = drafts.read(text, Draft())
    made, draft = followed({f"draft-{name}"}, text, tuple(
        value if field == name else getattr(before, field) for field in FIELDS))
    assert drafts.read(made, Draft()) == draft
    return made


@pytest.mark.parametrize("protocol", ["mqtt-sn", "zeromq", "2", "each"])
def test_another_protocol_takes_the_groups_place_and_leaves_the_rest(protocol: str) -> None:
    text = after(definition.put(COMMENTED, "mqtt.keep_alive", "7 s"), "nodes", 2)
    there = after(text, "qos", protocol)
    assert drafts.check(there) and drafts.read(there, Draft()).qos == protocol
    assert "# Why it is so long." in there and tomllib.loads(there)["mqtt"]["keep_alive"] == "7 s"
    assert tomllib.loads(after(there, "qos", "each"))["groups"] == tomllib.loads(text)["groups"]


def test_a_text_that_the_fields_did_not_write_is_never_written_anew() -> None:
    text = '''name = "mine"  # Mine.
[phases]
duration = "9 s"
[[networks]]
between = ["far", "broker"]
up = { rate = "1 Mbit/s", delay = "5 ms" }
down = { rate = "1 Mbit/s", delay = "5 ms" }
[[groups]]
name = "sensors"
host = "far"
count = 8
publish = { topic = "s/{client}", payload = { kind = "zeros", size = "50 B" }, rate = "2 /s" }
[[groups]]
name = "office"
host = "far"
subscribe = ["s/#", { filter = "t/#", qos = 1 }]
'''
    told = drafts.read(text, Draft())
    assert (told.network, told.data, told.delay, told.nodes, told.qos, told.duration) == ("", "", "", 8, "0", "9 s")
    for name, value in (("network", "dsl"), ("data", "gps"), ("delay", "3 s"), ("nodes", 4), ("qos", "2"),
                        ("backend", "sim"), ("duration", "5 s")):
        text = after(text, name, value)
        assert getattr(drafts.read(text, Draft()), name) == value, name
    found = tomllib.loads(text)
    assert "# Mine." in text and [group["name"] for group in found["groups"]] == ["sensors", "office"]
    assert "count" not in found["groups"][1] and drafts.check(text).groups[1].subscribe[1].qos == 2
    # Its groups are nobody's to replace.
    assert after(text, "qos", "zeromq") == text


def test_an_address_holds_a_scenario_and_nothing_else() -> None:
    assert configure.kept(TEXT) == ""
    for text in (COMMENTED, "not [ toml", "ä = 1"):
        assert configure.unpacked(configure.kept(text)) == text
    endless = base64.urlsafe_b64encode(zlib.compress(b"x" * 10_000_000, 9)).decode()
    for packed in ("", "?", "AAAA", "x" * 10_000, endless):
        assert len(configure.unpacked(packed) or "") <= drafts.TOML_LETTERS_MAX
    assert configure.kept("".join(chr(33 + (7 * n * n) % 90) + str(n) for n in range(9000))) == ""


def test_the_plan_is_drawn_and_said_and_names_stay_text(tmp_path: Path) -> None:
    shown = text_of(configure.page(Jobs(tmp_path, tmp_path / "queue")))
    assert "data:image/svg+xml" in shown and "round trip" in shown
    values = scenario(1)
    values["groups"][0]["name"] = "a-b"
    plan = {**compile_plan(parse_values(values))}
    plan["hosts"] = [{**host, "name": f"<{host['name']}>"} for host in plan["hosts"]]
    svg, words = drawing.drawn(plan)
    assert "<field>" not in svg and "&lt;field&gt;" in svg and "a-b × 1" in svg and "<field>: " in words


def test_routers_and_shared_links_are_junctions() -> None:
    link = {"rate": "1 Mbit/s", "delay": "1 ms"}
    values = scenario(1, hosts=("field", "far"), networks=[
        {"between": ["field", "router"], "up": link, "down": link}, {"between": ["far", "router"], "up": link,
                                                                     "down": link},
        {"between": ["router", "broker"], "up": link, "down": link}])
    values["hosts"] = {"router": {"forwards": True}}
    found = topology(compile_plan(parse_values(values)))
    joints = [*range(found.hosts, len(found.names))]
    assert len(found.edges) == 6 and len(joints) == 1
    ends = [{found.names[edge.first], found.names[edge.second]} - {found.names[joints[0]]} for edge in found.edges]
    assert sorted(name for end in ends for name in end) == ["broker", "broker", "far", "far", "field", "field"]
    assert len(set(found.places([0]))) == len(found.names)
    assert topology({}).places([]) == [] and topology({"hosts": [{"name": "a"}]}).places([]) == [(0.0, 0.0)]


def test_the_form_has_a_section_for_each_publication() -> None:
    made = definition.form(tomllib.loads(PUBLICATIONS), [])
    places = {field["place"] for section in made for field in section["fields"]}
    assert {"groups[0].publish[0].topic", "groups[0].publish[1].topic"} <= places
    assert "groups[0].publish.topic" not in places
    assert 'topic = "warning"' in definition.put(PUBLICATIONS, "groups[0].publish[1].topic", "warning")


def test_a_field_of_the_draft_changes_each_publication() -> None:
    draft = drafts.read(PUBLICATIONS, Draft())
    assert (draft.data, draft.qos) == ("60 B", "each")
    changed = tomllib.loads(draft_edits.changed(PUBLICATIONS, "delay", replace(draft, delay="3 s")))
    assert [publish.get("interval") for publish in changed["groups"][0]["publish"]] == ["3 s", "3 s"]
    assert "rate" not in changed["groups"][0]["publish"][0]
