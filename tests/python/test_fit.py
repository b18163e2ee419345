"""Whether links carry what is asked of them: with policers, events, stages, and clients that come and go."""

from __future__ import annotations

from typing import Any

import pytest

from mqttlab.scenario.fit import fit
from mqttlab.scenario.load import parse_values

WIDE: dict[str, Any] = {"delay": "1 ms"}


def too_much(
    *, up: dict[str, Any] = WIDE, down: dict[str, Any] = WIDE, publisher: dict[str, Any] | None = None,
    publish: dict[str, Any] | None = None, subscribe: list[str] | None = None, **more: Any,
) -> list[tuple[str, str]]:
    """Links that are to carry more than they can: where, and what is said. 10 messages of 100 B a second are 12.7
    kbit/s with headers."""
    groups = [
        {"name": "meters", "host": "field", "count": 10, "mqtt": {"clean_session": True}, "publish": {
            "topic": "m", "qos": 0, "payload": "100 B", "rate": "1 /s"} | (publish or {})} | (publisher or {}),
        {"name": "sink", "host": "far", "subscribe": ["m"] if subscribe is None else subscribe}]
    values = {
        "name": "fit", "backend": "sim", "phases": {"warm_up": "10 s", "duration": "20 s", "cool_down": "5 s"},
        "networks": [{"between": ["field", "broker"], "link": "shared", "up": up, "down": WIDE},
                     {"between": ["far", "broker"], "link": "shared", "up": WIDE, "down": down}],
        "groups": [{name: value for name, value in group.items() if value is not None} for group in groups]} | more
    return [(".".join(map(str, place)), said) for place, said in fit(parse_values(values)) if "must carry" in said]


@pytest.mark.parametrize("side", ["up", "down"])
def test_the_highest_rate_of_stages_and_events_counts(side: str) -> None:
    narrow: dict[str, Any] = {side: {"rate": "20 kbit/s"}}
    assert too_much(**narrow) == []
    place = "networks.0.up" if side == "up" else "networks.1.down"
    stages = too_much(**narrow, publish={"stages": [{"for": "5 s", "rate": "1 /s"}, {"for": "5 s", "to": "2 /s"}]})
    event = too_much(**narrow, events=[{"at": "5 s", "for": "2 s", "group": "meters", "publish": {"rate": "2 /s"}}])
    for found in (stages, event):
        [(where, said)] = found
        assert where == place and "must carry 25.4 kbit/s" in said, said
    assert too_much(**narrow, events=[{"at": "5 s", "group": "meters", "do": "stop-publishing"}]) == []


def test_a_policer_carries_less_than_its_link() -> None:
    policed = {"rate": "1 Mbit/s", "policer": {"rate": "10 kbit/s", "burst": "5 kB"}}
    [(where, said)] = too_much(up=policed)
    assert where == "networks.0.up.policer"
    assert "10 clients share 10 kbit/s: its policer drops the rest; send less, use a faster policer, or" in said
    assert too_much(up=policed | {"policer": {"rate": "20 kbit/s", "burst": "5 kB"}}) == []
    # A link alone is narrower than its policer.
    [(where, said)] = too_much(up={"rate": "10 kbit/s", "policer": {"rate": "20 kbit/s", "burst": "5 kB"}})
    assert where == "networks.0.up" and "its queue grows" in said


def test_clients_that_come_and_go_publish_a_part_of_the_time_and_connect() -> None:
    seldom = {"churn": {"connects": "0.5 /s", "hold": "2 s"}}
    # They are there for a tenth of the time.
    assert len(too_much(up={"rate": "8 kbit/s"})) == 1
    assert too_much(up={"rate": "8 kbit/s"}, publisher=seldom) == []
    often = {"churn": {"connects": "50 /s", "hold": "100 ms"}, "publish": None}
    [(_, said)] = too_much(up={"rate": "20 kbit/s"}, publisher=often)
    # 50 times a second SYN, FIN, CONNECT and DISCONNECT with headers of 52 B.
    assert f"must carry {50 * 8 * (4 * 52 + 24) / 1000:.1f} kbit/s to the server" in said, said


def test_what_clients_subscribe_to_later_counts() -> None:
    event = {"at": "5 s", "group": "sink", "do": "subscribe", "filter": "m"}
    narrow = {"rate": "10 kbit/s"}
    assert too_much(down=narrow, subscribe=["other"]) == []
    [(where, said)] = too_much(down=narrow, subscribe=["other"], events=[event])
    assert where == "networks.1.down" and "from the server" in said
