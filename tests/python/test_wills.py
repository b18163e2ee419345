"""Wills: a fate of their own, live and simulated, with the client that announced it where it is one client's alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.report.text import verdict
from test_no_local import run

BACKENDS = [pytest.param("live", marks=pytest.mark.live), "sim"]


def vanishing(backend: str, tmp_path: Path, devices: int) -> Recording:
    """Devices with a will, of which one vanishes after a second, and a watcher."""
    # Mosquitto looks for silent clients every 5 s.
    mqtt: dict[str, Any] = {"keep_alive": "1 s", "will": {"topic": "status/dev", "payload": "offline", "qos": 1}}
    return run({
        "name": "wills", "backend": backend, "phases": {"duration": "9 s", "cool_down": "1 s"},
        "networks": [{"between": ["field", "broker"], "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}}],
        "groups": [
            {"name": "device", "host": "field", "count": devices, "mqtt": mqtt,
             "publish": {"topic": "data/{client}", "payload": "20 B", "interval": "500 ms"}},
            {"name": "watcher", "host": "field", "subscribe": [{"filter": "#", "qos": 1}]}],
        "events": [{"at": "1 s", "group": "device", "client": 0, "do": "vanish"}]}, tmp_path)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("devices", [1, 2])
def test_a_will_is_no_foreign_delivery_and_in_no_flow(backend: str, devices: int, tmp_path: Path) -> None:
    recording = vanishing(backend, tmp_path, devices)
    wills = recording.messages.filter(pl.col("fate").cast(pl.String) == "will")
    # Of two clients with the same will the payload does not say whose it is; the simulator knows.
    publisher = None if backend == "live" and devices > 1 else 0
    row = (publisher, None, devices, 7)
    assert wills.select("publisher", "sequence", "subscriber", "payload_bytes").rows() == [row]
    assert metrics.foreign(recording) == 0
    assert not any("foreign" in sentence for sentence in verdict(recording)[1])
    change = metrics.changes(recording).row(0, named=True)
    assert change["change_wills"] == 1 and 0.5 < change["change_will_s_max"] < 8
    flows = metrics.application(recording, ("publisher_group", "subscriber_group", "qos"))
    assert flows["qos"].null_count() == 0 and flows["messages_lost"].sum() == 0
