"""What live runs are held against: nothing due is nothing late, and each path has a limit of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from live import in_both
from mqttlab.recording import Recording
from mqttlab.report.text import lateness

pytestmark = pytest.mark.live
PUBLISH: dict[str, Any] = {"topic": "f/{client}", "qos": 1, "payload": {"size": "50 B"}}
PHASES = {"duration": "2 s", "cool_down": "1 s"}
SCENARIOS: dict[str, dict[str, Any]] = {
    # A message a minute each, the first in a random instant of it: most clients have none due.
    "rare": {
        "name": "rare", "phases": PHASES,
        "networks": [{"between": ["field", "broker"], "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}}],
        "groups": [{"name": "fleet", "host": "field", "count": 20, "publish": {**PUBLISH, "interval": "1 min"},
                    "subscribe": ["f/{client}"]}],
    },
    "lan beside satellite": {
        "name": "lan", "phases": PHASES,
        "networks": [{"between": ["lan", "broker"], "up": {}, "down": {}},
                     {"between": ["far", "broker"], "up": {"delay": "280 ms"}, "down": {"delay": "280 ms"}}],
        "groups": [{"name": name, "host": name, "publish": {**PUBLISH, "topic": name, "rate": "20 /s"},
                    "subscribe": [name]} for name in ("lan", "far")],
    },
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Recording]]:
    return in_both(SCENARIOS, Path(tmp_path_factory.mktemp("runs")), at_once=2)


def test_clients_without_a_message_due_have_offered_all(runs: dict[str, dict[str, Recording]]) -> None:
    live, sim = runs["rare"]["live"], runs["rare"]["sim"]
    said = " ".join(live.run["validity"]["reasons"])
    assert "could not offer" not in said
    assert live.messages.height == sim.messages.height < 20


def test_each_path_has_its_limit(runs: dict[str, dict[str, Recording]]) -> None:
    live = runs["lan beside satellite"]["live"]
    paths = {(path["from"], path["to"]): path for path in live.run["validity"]["paths"]}
    # 2 % of 280 ms and of nothing, of which a path has half each: a message from afar may go on into the LAN.
    assert {ends: path["limit_ns"] for ends, path in paths.items()} == {
        ("lan", "broker"): 100_000, ("far", "broker"): 2_800_000}
    assert all(path["paths"] == 2 and path["count"] > 0 for path in paths.values())
    assert live.run["validity"]["lateness_limit_ns"] == 100_000
    told = dict(lateness(live))
    assert told["lateness far → broker and 1 more"].endswith("at most 2.8 ms")
    assert told["lateness lan → broker and 1 more"].endswith("at most 100 µs")
