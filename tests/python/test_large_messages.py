"""The time of a message of many segments is that of all of its bytes, whatever its last frame went through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.explanation import cause, tell
from mqttlab.metrics import PARTS, evidence
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

PAYLOAD_BYTES, RATE_BIT_S = 500_000, 300_000
# Payload, and the headers of 346 segments.
TRANSMISSION_MS = (PAYLOAD_BYTES + 346 * 52) * 8 / RATE_BIT_S * 1e3


def run(directory: Path, *, down: bool, queue: str, size: str = "500 kB", **link: Any) -> dict[str, float]:
    """The parts of the one message's latency, in ms; it goes down the slow link, or up it."""
    slow = {"rate": "300 kbit/s", "delay": "40 ms", "queue": queue, **link}
    fast = {"rate": "375 kbit/s", "delay": "60 ms"}
    hosts = ("broker", "field") if down else ("field", "broker")
    values = {
        "name": "large", "backend": "sim", "phases": {"duration": "5 s", "cool_down": "60 s"},
        "networks": [{"between": ["field", "broker"], "up": fast if down else slow, "down": slow if down else fast}],
        "groups": [
            {"name": "from", "host": hosts[0], "publish": {"topic": "fw", "qos": 1, "interval": "5 s",
             "payload": {"kind": "random", "size": size}, "start_phase": "synchronised"}},
            {"name": "to", "host": hosts[1], "subscribe": [{"filter": "fw", "qos": 1}]},
        ],
    }
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda event: None)
    assert outcome.verdict == "complete", outcome.reason
    recording = Recording.open(directory)
    table = metrics.attribution(recording)
    assert (table.select(pl.sum_horizontal(PARTS)).to_series() == table["latency_ns"]).all()
    row = table.row(0, named=True)
    found = evidence(recording)
    said = cause(tell(recording, found, 0))
    if row["latency_ns"] > 1e9:
        assert "ravelled" in said, said
    return {part.removesuffix("_ns"): row[part] / 1e6 for part in PARTS if row[part]}


@pytest.mark.parametrize("queue", ["10 MB", "30 kB"])
@pytest.mark.parametrize("down", [True, False], ids=["down", "up"])
def test_transmission_takes_as_long_with_a_long_queue_as_with_a_short_one(
    tmp_path: Path, down: bool, queue: str,
) -> None:
    parts = run(tmp_path / "run", down=down, queue=queue)
    wire = parts["wire_to_subscriber" if down else "wire_to_broker"]
    assert wire == pytest.approx(TRANSMISSION_MS + 40, rel=0.03)
    again = parts.get("retransmission_to_subscriber" if down else "retransmission_to_broker", 0)
    assert wire + again > 0.95 * sum(parts.values())


def test_repairs_that_cost_time_are_told_from_transmission(tmp_path: Path) -> None:
    parts = run(tmp_path / "run", down=True, queue="10 MB", loss="5 %")
    assert parts["wire_to_subscriber"] == pytest.approx(TRANSMISSION_MS + 40, rel=0.05)
    assert parts["retransmission_to_subscriber"] + parts.get("broker_socket", 0) > 300


def test_a_message_of_one_segment_is_divided_as_before(tmp_path: Path) -> None:
    parts = run(tmp_path / "run", down=True, queue="10 MB", size="1 kB")
    assert parts["wire_to_subscriber"] == pytest.approx(40 + 1070 * 8 / 300, rel=0.1)
    assert set(parts) <= {"wire_to_subscriber", "broker", "delivery", "broker_nagle", "schedule"}
