"""Templates of payloads: what becomes of a text, and where its messages say which they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.load import parse_values
from mqttlab.scenario.one_sentence import what_and_how_often
from mqttlab.scenario.template import bounds, parts_of, payload_template
from short_scenarios import scenario

IDENTITY = "<46>"


def shape(template: str) -> str:
    """The parts of a template as one text."""
    return "".join(_shape(part) for part in parts_of(template, "g"))


def _shape(part: Any) -> str:
    if part["kind"] in ("text", "identity"):
        return str(part.get("text", IDENTITY))
    return f"<{' '.join(str(value) for value in part.values())}>"


@pytest.mark.parametrize(("template", "expected"), [
    ("{client:04}/{group}", "<46> <client 4>/g"),
    ("no placeholder", "<46> no placeholder"),
    ("{identity}{sequence}", "<46><sequence 0>"),
    ("{time} {time:iso}", "<46> <time ms> <time iso>"),
    ("{random:0..100}{random:int -5 .. 5}", "<46> <number 0 100 0><number -5 5 0>"),
    ("{random:20..25.5}{random:-0.25..1}", "<46> <number 200 255 1><number -25 100 2>"),
    ("{random:hex 8}{random:choice a b||c}{random:uuid}", "<46> <hex 8><choice ['a b', '', 'c']><uuid>"),
    ('{"a": {"b": {client}}}', '{"mqttlab":"<46>","a": {"b": <client 0>}}'),
    (' {"t": "{time:iso}", "v": {random:0.0..1.0}}', ' {"mqttlab":"<46>","t": "<time iso>", "v": <number 0 10 1>}'),
    ("{}", '{"mqttlab":"<46>"}'),
    ('{"id": "{identity}"}', '{"id": "<46>"}'),
    ("[{client}]", "<46> [<client 0>]"),
    ("{{client}} {{time:iso}} {{", "<46> {client} {time:iso} {{"),
    ("{id} {a:1} { client } {\n} }{", "<46> {id} {a:1} { client } {\n} }{"),
    ("{client} {", "<46> <client 0> {"),
])
def test_placeholders_are_filled_in_and_other_braces_stay(template: str, expected: str) -> None:
    assert payload_template(template) == template
    assert shape(template) == expected


def test_a_json_object_stays_one_with_its_identity_in_its_first_member() -> None:
    text = "".join("0" * 46 if part["kind"] == "identity" else part["text"] if part["kind"] == "text" else "7"
                   for part in parts_of('{"id": {client}, "list": [{}, {"deep": "{sequence}"}]}', "g"))
    assert json.loads(text) == {"mqttlab": "0" * 46, "id": 7, "list": [{}, {"deep": "7"}]}


def test_the_bounds_are_those_of_the_shortest_and_the_longest_message() -> None:
    assert bounds(parts_of("{client}{sequence:03}{random:-20..7}{random:choice é|abc}", "g"), 99) == (
        47 + 1 + 3 + 1 + 2, 47 + 2 + 10 + 3 + 3)


def planned(payload: dict[str, Any], **more: Any) -> dict[str, Any]:
    plan = compile_plan(parse_values(scenario(publish={"payload": payload, "rate": "1 /s"}, **more)))
    return dict(plan["groups"][0]["publications"][0])


def test_check_tells_the_size() -> None:
    assert what_and_how_often(planned({"template": "{client}", "size": "1 kB"})) == "texts of 1 kB every 1 s"
    assert what_and_how_often(planned({"template": "{sequence:04}"})) == "texts of 51 B every 1 s"
    assert what_and_how_often(planned({"template": "{sequence}"})) == "texts of about 49 B every 1 s"


def test_a_size_has_room_for_the_longest_message_of_the_last_client() -> None:
    assert planned({"template": "{client}", "size": "49 B"}, count=100, topic="t/{client}")["payload"]["bytes"] == 49
    with pytest.raises(ScenarioError, match=r"up to 50 B with its placeholders filled in, .*; use 50 B or more"):
        planned({"template": "{client}", "size": "49 B"}, count=1000, topic="t/{client}")


def test_a_datagram_has_room_for_the_longest_message() -> None:
    gateway = {"servers": [{"name": "gateway", "role": "gateway", "gateway": {"mode": "transparent"}}]}
    speaks = {"protocol": "mqtt-sn", "connects_to": "gateway"}
    with pytest.raises(ScenarioError, match="has 555 B, but a datagram of 576 B"):
        planned({"template": "x" * 498 + "{sequence}"}, publisher=speaks, mtu="576 B", **gateway)
