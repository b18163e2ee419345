"""What MQTT promises is held against what happened, on every first screen, where it happened and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab.dashboard.pages import overview
from mqttlab.metrics import headline
from mqttlab.recording import Recording
from mqttlab.report import cards
from mqttlab.report.answer import lines
from mqttlab.report.headline import told
from recordings import Message, write

# Each is sent 100 ms after the one before it.
IN_ORDER = [Message(number, qos=1) for number in range(8)]
BEHIND = [Message(0, qos=1), Message(1, 350, qos=1), Message(2, 300, qos=1, out_of_order=True),
          *(Message(number, qos=1, out_of_order=number == 3) for number in range(3, 8))]
ORDER = "came behind a later one of the same publisher and topic, which breaks the promise of order (MQTT §4.6)"
DROPPED = ("of messages acknowledged by PUBACK did not happen, which breaks the promise of QoS 1: the broker's queue "
           "was full")


def lost(number: int, **more: Any) -> Message:
    return Message(number, None, fate="lost", **({"cause": "queue_full", "qos": 1} | more))


def recorded(directory: Path, messages: list[Message], **subscribers: Any) -> Recording:
    """A recording whose subscribers ask for these: the fields of their group in the plan."""
    write(directory, messages)
    plan = json.loads((directory / "plan.json").read_text())
    plan["groups"][1] |= {"subscriptions": [{"filter": "t", "qos": 1}], **subscribers}
    (directory / "plan.json").write_text(json.dumps(plan))
    return Recording.open(directory)


def screens(recording: Recording) -> list[str]:
    """The first screens: of a terminal, a report and the dashboard."""
    terminal = " ".join(" ".join(lines(told(recording))).split())
    return [terminal, cards.section(recording).replace("&#x27;", "'"), str(overview.part(recording))]


@pytest.mark.parametrize(("messages", "subscribers", "expected"), [
    (IN_ORDER, {}, None),
    # The first two came at 450 and 500 ms: behind the one of 300 ms that came at 310 ms, and before all others.
    (BEHIND, {}, f"2 of 8 messages {ORDER}"),
    (BEHIND, {"subscriptions": [{"filter": "$share/g/t", "qos": 1}]}, None),
    (BEHIND, {"protocol": {"mqtt_sn": {}}}, None),
    (BEHIND, {"protocol": {"zeromq": {}}}, None),
    ([*IN_ORDER, lost(8), lost(9)], {}, f"2 deliveries {DROPPED}"),
    ([*IN_ORDER, lost(8)], {"subscriptions": [{"filter": "+", "qos": 2}]}, f"1 delivery {DROPPED}"),
    ([*IN_ORDER, lost(8)], {"subscriptions": [{"filter": "{client}", "qos": 1}]}, f"1 delivery {DROPPED}"),
    # Of QoS 0 nothing was promised, of an unknown subscription nothing is known.
    ([*IN_ORDER, lost(8)], {"subscriptions": [{"filter": "t", "qos": 0}]}, None),
    ([*IN_ORDER, lost(8)], {"subscriptions": []}, None),
    ([*IN_ORDER, lost(8, qos=0)], {}, None),
    *(([*IN_ORDER, lost(8, cause=cause)], {}, None) for cause in (
        "session_ended", "not_subscribed", "expired", "refused", "too_large")),
    ([*IN_ORDER, Message(8, None, qos=1, fate="under_way")], {}, None),
    ([*IN_ORDER, Message(8, None, qos=1, fate="unknown", cause="queue_full")], {}, None),
])
def test_a_promise_that_was_not_kept_is_on_every_first_screen(
    messages: list[Message], subscribers: dict[str, Any], expected: str | None, tmp_path: Path,
) -> None:
    for screen in screens(recorded(tmp_path / "run", messages, **subscribers)):
        assert ("breaks the promise" in screen) == (expected is not None), screen
        assert expected is None or expected in screen, screen


@pytest.mark.parametrize(("column", "values"), [
    # Which of several with equal contents is which is a guess.
    ("identified", pl.lit("ambiguous")),
    # Order is promised within a topic, and within a QoS.
    ("topic", pl.format("t{}", "sequence")), ("qos_delivered", (pl.col("sequence") % 8).cast(pl.UInt8)),
])
def test_order_is_told_within_a_topic_and_of_messages_that_are_known(
    column: str, values: pl.Expr, tmp_path: Path,
) -> None:
    directory = tmp_path / "run"
    recorded(directory, BEHIND)
    path = directory / "messages.parquet"
    pl.read_parquet(path).with_columns(values.alias(column)).write_parquet(path)
    assert [flow.broken for flow in headline(Recording.open(directory)).flows] == [None]
