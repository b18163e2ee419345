"""A group with more clients than hosts: they sit on them in turn, in both backends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.fit import fit
from mqttlab.scenario.load import parse_values
from mqttlab.scenario.sentence import sentence


def scenario(backend: str = "sim", *, hosts: int = 3, clients: int = 7, link: str = "each") -> dict[str, Any]:
    ways = {"up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}}
    return {
        "name": "turn", "backend": backend, "phases": {"warm_up": "1 s", "duration": "2 s", "cool_down": "2 s"},
        "hosts": {"field": {"count": hosts}},
        "networks": [{"between": ["field", "broker"], "link": link, **ways}],
        "groups": [{"name": "meters", "host": "field", "count": clients,
                    "publish": {"topic": "m/{client}", "qos": 1, "payload": "50 B", "rate": "2 /s"}},
                   {"name": "sink", "host": "broker", "subscribe": ["m/#"]}]}


@pytest.mark.parametrize("backend", ["sim", pytest.param("live", marks=pytest.mark.live)])
@pytest.mark.parametrize("link", ["each", "shared"])
def test_clients_sit_on_hosts_in_turn(backend: str, link: str, tmp_path: Path) -> None:
    """Once "is 7, but there are 3 hosts; use 3 clients or fewer", to who had done as the port limit advises."""
    plan = compile_plan(parse_values(scenario(backend, link=link)))
    outcome = perform(Job(plan, tmp_path / "run"), lambda event: None)
    assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(tmp_path / "run")
    hosts = recording.clients.sort("client")["host"].to_list()
    assert hosts == [*(f"field-{number % 3}" for number in range(7)), "broker"]
    assert recording.run["messages"] == {"delivered": 7 * 2 * 3}


def test_a_group_of_fewer_clients_has_a_host_for_each_as_before() -> None:
    for clients in (1, 2, 3):
        [group, _] = compile_plan(parse_values(scenario(clients=clients)))["groups"]
        assert group["host_step"] == 1 and "hosts_in_turn" not in group
    [group, _] = compile_plan(parse_values(scenario(clients=4)))["groups"]
    assert group["hosts_in_turn"] == 3


def test_the_sentence_says_on_how_many_hosts() -> None:
    assert sentence(compile_plan(parse_values(scenario()))).startswith(
        "7 meters, on 3 hosts, each behind its own link of ")


def test_a_link_of_a_host_carries_all_of_its_clients() -> None:
    """The 4 clients of each of 2 hosts, 101.6 bit/s of acknowledgements and messages at most, are added up."""
    def said(hosts: int, rate: str) -> list[str]:
        values = scenario(hosts=hosts, clients=8)
        values["networks"][0]["up"] = {"rate": rate}
        return [words for _, words in fit(parse_values(values)) if "must carry" in words]

    [words] = said(2, "5 kbit/s")
    assert "but 4 clients share 5 kbit/s" in words
    assert words.endswith("send less, use a faster link, or more hosts (`hosts.field.count`)"), words
    assert said(8, "5 kbit/s") == []
