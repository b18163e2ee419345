"""``layout.json``, read as columns and entry by entry."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqttlab import layout
from mqttlab.layout import read

CLIENTS = [{"name": name, "group": "g" if number else "f", "host": number % 2, "session": {"expiry_ns": 0}}
           for number, name in enumerate(["a-0", "a-1", "a-2"])]


def told(clients: Any, hosts: int = 2) -> dict[str, Any]:
    return {"schema_version": 4, "hosts": ["h"] * hosts, "links": [], "clients": clients, "topics": [{"name": "t"}],
            "receivers": [[0, 2]], "warm_up_end_ns": 0, "measurement_end_ns": 1}


def as_written(value: Any) -> bytes:
    """As the engine writes it: without blanks, and letters as they are."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize("name", [
    "a", "", "ä\n\"\\", 'x}],', 'x},{', '},{"name":"', '}],"', '"clients":[{"name":"', "\U0001f600", "\x00", "]",
    "\\ud"])
def test_clients_are_the_same_in_columns_and_one_by_one(name: str) -> None:
    clients = [*CLIENTS, {"name": name, "group": name, "host": 1, "session": {"expiry_ns": 5}}]
    fast, slow = read(as_written(told(clients))), read(json.dumps(told(clients)).encode())
    for found, problem in (fast, slow):
        assert problem is None
        assert [*found["clients"]] == [{key: client[key] for key in ("name", "group", "host")} for client in clients]
        assert found | {"clients": []} == told([])
        assert found["clients"].group_names == ["f", "g", name]
        assert found["clients"].group_numbers.to_list() == [0, 1, 1, 2]


def test_what_the_engine_writes_is_read_as_columns_and_blanks_are_not() -> None:
    assert layout._parted(as_written(told(CLIENTS))) is not None
    assert layout._parted(json.dumps(told(CLIENTS)).encode()) is None
    assert [*read(as_written(told([])))[0]["clients"]] == []


@pytest.mark.parametrize(("change", "words"), [
    ({"host": "1"}, "`clients[1].host` must be a whole number of 0 or more"),
    ({"host": -1}, "`clients[1].host` must be a whole number of 0 or more"),
    ({"host": True}, "`clients[1].host` must be a whole number of 0 or more"),
    ({"host": 1.5}, "`clients[1].host` must be a whole number of 0 or more"),
    ({"host": 2}, "a client is on a host that is not there"),
    ({"host": 1 << 64}, "a client is on a host that is not there"),
    ({"name": 5}, "`clients[1].name` must be text"),
    ({"name": None}, "`clients[1].name` must be text"),
    ({"group": {}}, "`clients[1].group` must be text"),
    ({"group": 7}, "`clients[1].group` must be text"),
])
def test_what_is_wrong_with_a_client_is_named_however_it_was_written(change: dict[str, Any], words: str) -> None:
    clients = [CLIENTS[0], CLIENTS[1] | change, CLIENTS[2]]
    for content in (as_written(told(clients)), json.dumps(told(clients)).encode()):
        assert read(content)[1] == words


def test_half_an_entry_is_not_json() -> None:
    with pytest.raises(ValueError, match="line 1"):
        read(as_written(told(CLIENTS)).replace(b'"host":1,', b'"host":1 1,'))


def test_a_client_is_found_by_its_name_and_else_by_its_number() -> None:
    clients = read(as_written(told([*CLIENTS, {"name": "1", "group": "g", "host": 0, "session": {}}])))[0]["clients"]
    assert [clients.number(word) for word in ("a-2", "1", "2", "4", "b")] == [2, 3, 2, None, None]
    assert clients.of_groups(["g"]) == [1, 2, 3] and clients[-1]["name"] == "1"
    assert [client["name"] for client in clients[1:3]] == ["a-1", "a-2"]
