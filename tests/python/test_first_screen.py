"""What the first screen of a run, its page and the dashboard say of late messages, of long times and of a month."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mqttlab import metrics
from mqttlab.dashboard.pages import overview
from mqttlab.digits import latency_in_words
from mqttlab.metrics.quantiles import Latency
from mqttlab.recording import Recording
from mqttlab.report import cards, headline, stages
from mqttlab.report.answer import lines
from mqttlab.report.html import page
from recordings import Message, segment, write


def recorded(directory: Path, messages: list[Message], late_after_ns: Any = None, **more: Any) -> Recording:
    run = write(directory, messages, **more)
    layout = json.loads((run / "layout.json").read_text(encoding="utf-8"))
    (run / "layout.json").write_text(json.dumps(layout | {"late_after_ns": late_after_ns}), encoding="utf-8")
    return Recording.open(run)


@pytest.mark.parametrize(("late", "delivered", "limit", "said"), [
    (0, 40, {"publishers": 10_000_000_000}, "none came later than 10 s"),
    (3, 97, {"publishers": 10_000_000_000}, "3.09 % came later than 10 s"),
    (40, 40, {"subscribers": 250_000_000}, "all came later than 250 ms"),
    (1, 40, {"publishers": 900_000_000_000, "subscribers": 1_200_000_000_000}, "2.5 % came later than 15 min"),
    # One number was for all groups.
    (1, 40, 2_000_000_000, "2.5 % came later than 2 s"),
    (0, 0, {"publishers": 10_000_000_000}, ""), (0, 40, {"others": 10_000_000_000}, ""), (0, 40, {}, ""),
    (0, 40, None, ""),
])
def test_late_messages_are_counted_on_every_first_screen(
        late: int, delivered: int, limit: Any, said: str, tmp_path: Path) -> None:
    messages = [Message(number, late=number < late) for number in range(delivered)] or [Message(0, None, fate="lost")]
    recording = recorded(tmp_path / "run", messages, limit)
    told = headline.told(recording)
    [flow] = told.numbers.flows
    assert headline.late(flow) == said
    printed = [line for line in lines(told) if line.startswith("late ")]
    assert printed == ([f"late        {said}"] if said else [])
    titles = [f"{card.value} {card.title}" for card in cards.cards(flow, told) if card.title.startswith("came")]
    assert titles == ([said] if said else [])
    for shown in (page(recording), str(overview.part(recording))):
        # Once, as a number.
        assert not said or shown.count("came later than") == 1 == shown.count(said[said.index("came"):])
    [document] = headline.document(recording)["flows"]
    assert (document["late"], document["late_after_ns"] is not None) == (late, bool(said) or limit == {
        "publishers": 10_000_000_000})


def test_of_many_flows_a_column_and_lines_say_what_came_late(tmp_path: Path) -> None:
    messages = [Message(number, qos=number % 3, late=number % 3 == 2) for number in range(90)]
    recording = recorded(tmp_path / "run", messages, {"publishers": 1_500_000_000})
    told = headline.told(recording)
    shown = lines(told)
    [first, second] = [place for place, line in enumerate(shown) if line.startswith("late ")]
    assert shown[first].endswith("QoS 2: all came later than 1.5 s")
    assert shown[second].endswith("none came later than 1.5 s") and shown[second + 1].endswith("1 more flow: --full")
    rows = cards.flow_rows(list(told.numbers.flows))
    assert [row[-1] for row in rows] == ["none later than 1.5 s", "none later than 1.5 s", "all later than 1.5 s"]
    assert cards.late_head(list(told.numbers.flows)) == ("came",)
    none = recorded(tmp_path / "none", [Message(number, qos=number % 3) for number in range(90)], {
        "publishers": 1_500_000_000})
    assert [line for line in lines(headline.told(none)) if line.startswith("late ")] == [
        "late        none came later than 1.5 s"]
    assert "all later than 1.5 s" in page(recording) and "all later than 1.5 s" in str(overview.part(recording))


def test_latencies_of_ten_seconds_and_more_are_in_seconds(tmp_path: Path) -> None:
    slow = [Message(number, 37.6 if number else 119_810.2) for number in range(150)]
    told = headline.told(recorded(tmp_path / "slow", slow))
    [flow] = told.numbers.flows
    [line] = [line for line in lines(told) if line.startswith("latency")]
    assert " ".join(line.split()).startswith("latency p99 37.6 ms p95") and line.endswith("worst 120 s"), line
    assert ("120", "s") in [(card.value, card.unit) for card in cards.cards(flow, told)]
    fast = headline.told(recorded(tmp_path / "fast", [Message(number, 9_999.0 - number) for number in range(150)]))
    assert any(line.startswith("latency ms  p99 9,99") for line in lines(fast))
    assert [latency_in_words(value) for value in (None, 0.25, 37.64, 9_999.4, 10_000.0, 119_810.2, 1_085_630.0)] == [
        "–", "0.25 ms", "37.6 ms", "9,999 ms", "10 s", "120 s", "18.1 min"]


@pytest.mark.parametrize(("value", "low", "high", "with_unit", "said"), [
    (5_000.0, 636.0, 9_100.0, False, "636–9,100"), (5_000.0, 636.0, 9_100.0, True, "636–9,100"),
    (5_000.0, 636.0, 22_500.0, True, "636 ms–22.5 s"), (1_010_000.0, 1_003_000.0, 1_037_000.0, True, "16.7–17.3"),
    (280_000.0, 271_398.0, None, True, "at least 271"), (9_000.0, None, 12_000.0, True, "at most 12 s"),
    (20_000.0, 9_000.0, None, True, "at least 9,000 ms"), (5_000.0, None, None, True, "")])
def test_an_interval_says_the_units_that_its_quantile_has_not(
        value: float, low: float | None, high: float | None, with_unit: bool, said: str) -> None:
    one = Latency(value=value, low=low, high=high, n=100, enough=True, alike=None)
    assert headline.interval(one, with_unit) == said


def test_many_flows_have_room_for_eighteen_minutes(tmp_path: Path) -> None:
    messages = [Message(number, 1_085_630.2 + number / 10, qos=number % 3) for number in range(390)]
    shown = lines(headline.told(recorded(tmp_path / "run", messages)))
    [head] = [line for line in shown if line.startswith("flow ")]
    rows = [line.split() for line in shown if "QoS" in line and "1,086" in line]
    assert "p99 s" in head and len(rows) == 3
    # p99, what is missing, p95, p50, the worst, and what was sent.
    assert all(row[-7:] == ["1,086", "0", "%", "1,086", "1,086", "1,086", "130"] for row in rows), rows


def test_stages_have_room_for_eighteen_minutes(tmp_path: Path) -> None:
    messages = [Message(number, 1_085_630.2 + number / 10 if number < 150 else 40.0 + number / 1000)
                for number in range(300)]
    parts = [("rush", 0, 15, True), ("calm", 15, 30, True)]
    told = stages.brief(recorded(tmp_path / "run", messages, duration_s=30, stages=parts))
    assert [line.split() for line in told[:3]] == [
        ["stages", "rush", "calm"], ["p99", "s", "1,086", "0.0403"], ["p50", "s", "1,086", "0.0402"]]


def test_a_month_of_a_device_is_both_ways_in_thirty_days(tmp_path: Path) -> None:
    frames = [segment(100, frame=1, payload=948), segment(200, frame=2, up=False, payload=148)]
    recording = recorded(tmp_path / "run", [Message(0)], packets=frames)
    [row] = [row for row in metrics.device_bytes(recording).rows(named=True) if row["name"] == "publishers"]
    # 1,000 B up and 200 B down in 10 s: 360 and 72 kB in an hour, and 720 hours of both.
    assert (row["ip_kb_per_device_hour_up"], row["ip_kb_per_device_hour_down"]) == (360, 72)
    assert row["ip_mb_per_device_month"] == pytest.approx(311.04)
    told = headline.told(recording)
    printed = " ".join(" ".join(lines(told)).split())
    assert "360 kB/device/h up, 72 down, 311 MB/month (IP bytes of 10 s)" in printed
    card = next(card for card in cards.cards(told.numbers.flows[0], told) if card.unit == "MB/month")
    assert (card.value, card.more) == ("311", "IP, 30 days")
    one_way = recorded(tmp_path / "one", [Message(0)], packets=frames[:1])
    found = [row["ip_mb_per_device_month"] for row in metrics.device_bytes(one_way).rows(named=True)]
    assert found[0] is None, "what came down is not known"
