"""What a link, or a session that ended, took is the cause of a lost message, and not what arrived after it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

LINK = {"delay": "5 ms"}


BACKENDS = ["sim", pytest.param("live", marks=pytest.mark.live)]


def run(directory: Path, values: dict[str, Any], backend: str = "sim") -> Recording:
    if backend == "live" and shutil.which("mosquitto") is None:
        pytest.skip("mosquitto is not installed")
    whole = {"name": "lost", "backend": backend, "phases": {"duration": "20 s", "cool_down": "10 s"}} | values
    perform(Job(compile_plan(parse_values(whole)), directory), lambda event: None)
    return Recording.open(directory)


def fates(recording: Recording) -> dict[str, int]:
    """How many messages did not arrive, by fate and cause."""
    table = recording.messages.with_columns(pl.col("fate", "cause").cast(pl.String))
    missing = table.filter(~pl.col("fate").is_in(["delivered"]))
    counted = missing.group_by("fate", "cause").len().sort("len", descending=True)
    return {f"{fate} {cause}": count for fate, cause, count in counted.iter_rows()}


def datagrams(up: dict[str, Any], down: dict[str, Any] | None = None, *, towards: bool = True) -> dict[str, Any]:
    """Messages of MQTT-SN at QoS 0 over a link, to their gateway or from it."""
    field: dict[str, Any] = {"name": "dev", "host": "field", "protocol": "mqtt-sn", "connects_to": "gw"}
    app: dict[str, Any] = {"name": "app", "host": "broker", "connects_to": "broker"}
    publish = {"topic": "ab", "qos": 0, "payload": "200 B", "rate": "50 /s"}
    sides = ({"publish": publish}, {"subscribe": ["ab"]})
    first, second = sides if towards else sides[::-1]
    return {
        "servers": [{"name": "broker"}, {"name": "gw", "role": "gateway", "host": "gwhost",
                                         "gateway": {"broker": "broker"}}],
        "networks": [{"between": ["field", "gwhost"], "up": LINK | up, "down": LINK | (down or {}), "link": "shared"},
                     {"between": ["gwhost", "broker"], "up": {"delay": "1 ms"}, "down": {"delay": "1 ms"}}],
        "groups": [field | first, app | second],
    }


@pytest.mark.parametrize(("link", "cause"), [
    ({"policer": {"rate": "47 kbit/s", "burst": "2350 B"}}, "policer"),
    ({"rate": "50 kbit/s", "queue": "2 kB"}, "link_queue_full"),
    ({"loss": "20 %"}, "link_loss"),
])
@pytest.mark.parametrize("towards", [True, False], ids=["to the gateway", "from the gateway"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_link_took_of_datagrams_is_lost_by_it(
    tmp_path: Path, link: dict[str, Any], cause: str, towards: bool, backend: str,
) -> None:
    values = datagrams(link, towards=True) if towards else datagrams({}, link, towards=False)
    recording = run(tmp_path / "run", values, backend)
    found = fates(recording)
    assert set(found) == {f"lost {cause}"}, found
    assert found[f"lost {cause}"] > 50


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_came_while_a_link_was_down_is_lost_by_that(tmp_path: Path, backend: str) -> None:
    events = [{"at": "5 s", "for": "2 s", "network": "field", "down": True}]
    found = fates(run(tmp_path / "run", datagrams({}) | {"events": events}, backend))
    assert set(found) == {"lost link_down"} and 90 <= found["lost link_down"] <= 102, found


def test_what_comes_between_the_broker_s_end_and_the_new_subscription_was_not_subscribed(tmp_path: Path) -> None:
    def again(wait: str) -> dict[str, Any]:
        return {"reconnect": {"initial": wait, "jitter": "0 %"}, "host": "field"}

    recording = run(tmp_path / "run", {
        "networks": [{"between": ["field", "broker"], "up": {"delay": "20 ms"}, "down": {"delay": "20 ms"},
                      "link": "shared"}],
        "groups": [
            {"name": "dev", **again("1 s"),
             "publish": {"topic": "d", "qos": 1, "payload": "100 B", "interval": "1 s"}},
            {"name": "app", **again("9 s"), "mqtt": {"clean_session": False},
             "subscribe": [{"filter": "d", "qos": 1}]}],
        "events": [{"at": "10 s", "for": "5 s", "server": "broker", "do": "kill"}]})
    found = fates(recording)
    assert found and set(found) <= {"lost not_subscribed", "lost session_ended"}, found
    flow = metrics.headline(recording).flows[0]
    assert not any("later message" in cause.words for cause in flow.causes)
