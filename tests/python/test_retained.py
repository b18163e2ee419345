"""Copies from a broker's store: deliveries of their own kind, and what came before a subscription."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from live import able
from mqttlab import metrics
from mqttlab.metrics import fates
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse_values

LINE = {"rate": "1 Mbit/s", "delay": "20 ms"}


def late_subscriber(directory: Path, backend: str, qos: int, version: str = "3.1.1") -> Recording:
    """States of ten topics, and two clients, of which the second one connects in the middle."""
    values: dict[str, Any] = {
        "name": "late", "backend": backend, "mqtt": {"version": version},
        "phases": {"connect_timeout": "500 ms", "duration": "4 s", "cool_down": "2 s"},
        "networks": [{"between": [host, "broker"], "up": LINE, "down": LINE} for host in ("office", "phone")],
        "groups": [
            {"name": "states", "host": "office",
             "publish": {"topic": "dev/{topic}/state", "topics": 10, "qos": qos, "retain": True, "payload": "60 B",
                         "rate": "20 /s"}},
            {"name": "app", "host": "phone", "count": 2, "connect_over": "4 s",
             "subscribe": [{"filter": "dev/+/state", "qos": qos}]},
        ],
    }
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda event: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(outcome.directory)


def check(recording: Recording, qos: int) -> None:
    messages = recording.messages.with_columns(pl.col("fate", "cause").cast(pl.String))
    copies = messages.filter("retained")
    assert set(copies["fate"]) == {"retained"} and 1 <= copies.height <= 10
    assert copies["latency_ns"].null_count() == copies.height
    assert messages.filter(fate="retained", retained=False).is_empty()
    # What the broker had before the subscription is expected of nobody.
    assert fates.absent(recording).is_empty()
    late = messages.filter(subscriber=2)
    first = late.filter(fate="delivered")["sent_ns"].min()
    assert messages.filter(pl.col("sent_ns") < first, fate="delivered", subscriber=1).height > 10
    assert set(late.filter(pl.col("sent_ns") < first)["fate"]) == {"retained"}
    assert messages.filter(pl.col("fate") == "duplicate").is_empty()
    whole = metrics.application(recording, ()).row(0, named=True)
    assert whole["retained_copies"] == copies.filter(phase="measurement").height > 0
    assert whole["retained_age_s_mean"] > 0
    assert whole["messages_delivered"] == messages.filter(fate="delivered", phase="measurement").height
    assert whole["out_of_order"] == 0 or qos == 0


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_simulated_copy_from_the_store_is_no_latency(tmp_path: Path, qos: int) -> None:
    recording = late_subscriber(tmp_path / "run", "sim", qos)
    check(recording, qos)
    # The path takes 40 ms, at QoS 2 two handshakes more, and Nagle's algorithm waits for delayed acknowledgements.
    assert metrics.application(recording, ()).row(0, named=True)["latency_ms_max"] < (450 if qos == 2 else 300)


@pytest.mark.live
@pytest.mark.skipif(able() is not None, reason=str(able()))
@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_a_live_copy_from_the_store_is_of_the_same_kind(tmp_path: Path, version: str) -> None:
    check(late_subscriber(tmp_path / "run", "live", 1, version), 1)
