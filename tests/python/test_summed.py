"""`recording.detail = "summary"`: sums of all messages and a sample of them, in both backends."""

from __future__ import annotations

import html
import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import mqttlab
from live import able
from mqttlab import metrics
from mqttlab.metrics import sums
from mqttlab.recording import Recording
from mqttlab.report.html import page
from mqttlab.runs import Job, perform
from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.load import parse_values

EXACT = ("messages_offered", "messages_sent", "messages_unsent", "deliveries_expected", "messages_delivered",
         "messages_lost", "messages_under_way", "messages_unknown", "duplicates", "retained_copies", "out_of_order",
         "late", "undelivered_percent", "latency_ms_min", "latency_ms_mean", "latency_ms_max",
         "throughput_per_s", "goodput_kbit_s", "effective_throughput_kbit_s", "disconnects")
SCENARIO = '''
name = "summed"
backend = "sim"
recording = { detail = "summary" }
phases = { duration = "1 s" }
network = "direct"
groups = [{ name = "p", host = "p", publish = { topic = "t", rate = "1 /s", payload = "9 B" } }]
'''
KEYS: tuple[tuple[str, ...], ...] = (
    (), ("qos",), ("publisher_group",), ("subscriber_group",), ("publisher_group", "subscriber_group", "qos"))


def values(backend: str, detail: str) -> dict[str, Any]:
    """Every QoS, a shared subscription, a lossy link with a short queue, clients that leave and come back."""
    return {
        "name": "summed", "backend": backend, "seed": 3, "recording": {"detail": detail},
        "phases": {"warm_up": "1 s", "duration": "6 s", "cool_down": "3 s"},
        "networks": [{
            "name": "field", "between": ["field", "broker"],
            "up": {"rate": "300 kbit/s", "delay": "20 ms", "loss": "3 %", "queue": "8 packets"},
            "down": {"rate": "300 kbit/s", "delay": "20 ms", "loss": "3 %"}}],
        "groups": [
            *({"name": f"sensors{qos}", "host": "field", "count": 2, "late_after": "200 ms",
               "publish": {"topic": f"t{qos}/{{client}}", "qos": qos, "rate": "12 /s", "payload": "60 B"}}
              for qos in (0, 1, 2)),
            {"name": "viewers", "host": "broker", "count": 2, "subscribe": [{"filter": "t1/#", "qos": 1},
                                                                         {"filter": "t2/#", "qos": 2}]},
            {"name": "far", "host": "field", "subscribe": [{"filter": "t0/#", "qos": 0}]},
            {"name": "sharing", "host": "broker", "count": 2, "subscribe": [{"filter": "$share/s/t1/#", "qos": 1}]},
        ],
        "events": [{"name": "away", "at": "2 s", "for": "1 s", "group": "sensors1", "share": "50 %",
                    "do": "disconnect"}],
    }


def made(directory: Path, backend: str, detail: str, fold_bytes: int = 4096, rows: int = 100) -> Recording:
    plan: Any = compile_plan(parse_values(values(backend, detail)))
    if detail == "summary":
        plan["recording"]["summary"] = {"fold_bytes": fold_bytes, "rows_most": rows}
    where = directory / f"{backend}-{detail}-{fold_bytes}-{rows}"
    perform(Job(plan, where), lambda line: None)
    return Recording.open(where)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("summed")


def test_the_numbers_of_a_run_are_those_of_all_its_messages(directory: Path) -> None:
    whole = made(directory, "sim", "messages")
    for fold_bytes in (4096, 1 << 25):
        summed = made(directory, "sim", "summary", fold_bytes)
        for keys in KEYS:
            expected, found = (metrics.application(recording, keys) for recording in (whole, summed))
            assert expected.height == found.height and expected.select(keys).equals(found.select(keys)), keys
            for name in EXACT:
                assert_close(expected[name], found[name], 1e-9, f"{keys} {name}")
            assert_close(expected["latency_ms_std"], found["latency_ms_std"], 1e-6, f"{keys} deviation")
            for name in ("latency_ms_p50", "latency_ms_p95", "latency_ms_p99"):
                assert_close(expected[name], found[name], sums.QUANTILE_ERROR, f"{keys} {name}")
        assert metrics.application(whole)["messages_lost"].sum() + metrics.application(whole)["duplicates"].sum() > 0
        assert summed.clients.equals(whole.clients)
        assert summed.run["messages"] == whole.run["messages"]
        assert metrics.fates.absent(summed).rows() == metrics.fates.absent(whole).rows()
        headlines = [metrics.headline(recording) for recording in (whole, summed)]
        for one, other in zip(*(told.flows for told in headlines), strict=True):
            assert (one.publishers, one.sent, one.unsent, one.delivered, one.causes) == (
                other.publishers, other.sent, other.unsent, other.delivered, other.causes)
        expected, found = (metrics.setup(recording) for recording in (whole, summed))
        assert expected["messages_acknowledged"].item() == found["messages_acknowledged"].item()
        assert_close(expected["acknowledge_ms_p99"], found["acknowledge_ms_p99"], sums.QUANTILE_ERROR, "acknowledge")


def test_latencies_of_many_seconds_have_their_deviation(tmp_path: Path) -> None:
    """The square of a deviation in nanoseconds had no room in a whole number."""
    link = {"rate": "9600 bit/s", "queue": "200 packets"}
    slow = {
        "name": "slow", "backend": "sim", "phases": {"duration": "10 s", "cool_down": "60 s"},
        "networks": [{"between": ["field", "broker"], "up": link, "down": link}],
        "groups": [{"name": "p", "host": "field", "publish": {"topic": "t", "payload": "200 B", "rate": "20 /s"}},
                   {"name": "s", "host": "broker", "subscribe": ["t"]}]}
    deviations = []
    for detail in ("messages", "summary"):
        plan = compile_plan(parse_values({**slow, "recording": {"detail": detail}}))
        perform(Job(plan, tmp_path / detail), lambda line: None)
        deviations.append(metrics.application(Recording.open(tmp_path / detail))["latency_ms_std"])
    assert deviations[0].item() > 3_100
    assert_close(*deviations, 1e-6, "deviation")


def assert_close(expected: pl.Series, found: pl.Series, tolerance: float, what: str) -> None:
    for one, other in zip(expected.to_list(), found.to_list(), strict=True):
        assert (one is None) == (other is None), f"{what}: {one} {other}"
        if one is not None:
            assert math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-9), f"{what}: {one} {other}"


def test_reports_say_what_is_of_a_sample_and_what_is_not_known(directory: Path) -> None:
    summed = made(directory, "sim", "summary", rows=50)
    told = summed.run["sampled"]
    assert told.startswith("1 in ") and 0 < summed.rows("messages") <= 100
    words = html.unescape(page(summed))
    assert f"Latency of a sample, {told} messages" in words
    assert f"sums of all messages, and a sample, {told}" in words
    for table in (metrics.bursts(summed), metrics.application(summed, ["topic"]), metrics.messages_by_device(summed)):
        assert table.is_empty()
    assert not list(summed.directory.glob("fold-*"))
    assert json.loads((summed.directory / "run.json").read_text())["messages"]["delivered"] > summed.rows("messages")


def test_what_needs_each_message_is_refused_with_the_reason(directory: Path) -> None:
    summed = made(directory, "sim", "summary", rows=60)
    refused = mqttlab("explain", str(summed.directory))
    assert refused.returncode == 2, refused.stderr
    scenario = summed.directory.parent / "summed.toml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    written = mqttlab("run", str(scenario), "--sql", str(scenario.with_suffix(".db")))
    assert written.returncode == 2 and "--sql writes every message" in written.stderr, written.stderr
    again = mqttlab("compare", str(summed.directory), str(summed.directory), "--by", "message")
    told = (again.stdout + again.stderr).replace("\n", " ")
    assert again.returncode != 0 and "which keeps a sample of the messages" in told, told


@pytest.mark.parametrize(("more", "words"), [
    ({"recording": {"detail": "summary", "pcapng": True}}, "without frames there is no capture"),
    ({"recording": {"detail": "summary", "payloads": True}}, "keeps a sample of the messages"),
    ({"sim": {"detect_transient": True}}, "finds out afterwards"),
    ({"phases": {"stages": [{"name": "all", "for": "1 s"}]}}, "a column of each stage"),
    ({"backend": "live", "live": {"parts": 2}}, "`live.parts` is 2"),
])
def test_what_a_summary_does_not_go_with_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        parse_values({**values("sim", "summary"), **more})


@pytest.mark.live(runs=1)
@pytest.mark.skipif(able() is not None, reason="no namespaces")
def test_a_live_run_adds_up_its_messages_while_it_goes_on(directory: Path) -> None:
    summed = made(directory, "live", "summary")
    table = metrics.application(summed).row(0, named=True)
    counted = summed.clients.select(pl.col("sent", "delivered", "duplicates").sum()).row(0)
    rows = sums.sums(summed)
    first = rows.filter(pl.col("fate") != "unsent")["messages_first"].sum()
    assert counted == (first, *(
        rows.filter(pl.col("fate") == fate)["count"].sum() for fate in ("delivered", "duplicate")))
    assert table["messages_delivered"] > 0 and table["latency_ms_min"] >= 20
    assert summed.run["sampled"].startswith("1 in ")
