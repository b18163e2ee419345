"""Each publication of a client that has several is a flow of its own, wherever flows are told, in both backends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import mqttlab
from live import in_both
from mqttlab import figures, metrics
from mqttlab.comparison.roles import line_up
from mqttlab.export import tables
from mqttlab.metrics.flow import Key
from mqttlab.recording import Recording
from mqttlab.report import headline
from mqttlab.report.answer import lines
from mqttlab.report.fleet import worst
from test_publications import ALARM, BURSTS, EACH, STATE, scenario, simulated

IMAGE = {"topic": "image/{client}", "qos": 1, "payload": "20 kB", "interval": "900 ms"}
LINK = {"rate": "512 kbit/s", "delay": "5 ms"}
SHARED: dict[str, Any] = {
    "networks": [{"between": ["field", "broker"], "up": LINK, "down": LINK, "link": "shared"}],
    "phases": {"warm_up": "200 ms", "duration": "6 s", "cool_down": "10 s"}}
IMAGES, ALARMS = (Key("devices", f"{name}/{{client}}", "desk", 1) for name in ("image", "alarm"))


def mixed(**changes: Any) -> dict[str, Any]:
    return scenario([IMAGE, ALARM], **{**SHARED, **changes})


def by_hand(recording: Recording, topic: str) -> pl.DataFrame:
    """The first deliveries of the measurement of one kind of topic."""
    return recording.messages.filter(
        pl.col("topic").cast(pl.String).str.starts_with(topic), pl.col("phase") == "measurement",
        pl.col("fate") == "delivered")


def test_images_and_alarms_of_one_device_have_latencies_of_their_own(tmp_path: Path) -> None:
    recording = simulated(mixed(), tmp_path / "run")
    flows = {flow.key: flow for flow in metrics.headline(recording).flows}
    assert list(flows) == [IMAGES, ALARMS]
    for key, topic in ((IMAGES, "image"), (ALARMS, "alarm")):
        took = by_hand(recording, topic)["latency_ns"] / 1e6
        assert flows[key].latency["p50"].value == pytest.approx(took.median())
        assert flows[key].latency["max"].value == pytest.approx(took.max())
        assert flows[key].sent == flows[key].delivered == took.len()
    # One image takes a third of a second to send, an alarm what is left of the one before it.
    p50 = [flows[key].latency["p50"].value or 0 for key in (IMAGES, ALARMS)]
    assert p50[0] > 320 > 200 > p50[1]
    said = lines(headline.told(recording))
    assert "devices (image/{client}) → desk, QoS 1" in said and "devices (alarm/{client}) → desk, QoS 1" in said
    assert [flow["publication"] for flow in headline.document(recording)["flows"]] == [
        "image/{client}", "alarm/{client}"]
    # Where each part of the time went is told of each.
    assert all(flows[key].typical for key in flows)


def test_metrics_figures_and_tables_have_them_apart(tmp_path: Path) -> None:
    recording = simulated(mixed(), tmp_path / "run")
    names = metrics.summary(recording, tables=["application"], scopes=["groups"])["name"].unique(maintain_order=True)
    assert names.to_list() == ["devices (image/{client}) to desk at QoS 1", "devices (alarm/{client}) to desk at QoS 1"]
    samples = metrics.deliveries(recording)
    drawn = figures.latency_cdf(samples)
    # An axis that is cut has each curve once in each part.
    assert list(dict.fromkeys(curve["name"] for curve in drawn.data)) == [
        "image/{client}, QoS 1", "alarm/{client}, QoS 1"]
    assert tables.summary_tables(recording)["by_group"]["publication"].to_list() == [
        "image/{client}", "alarm/{client}"]
    told = metrics.attribution(recording)
    assert told["publication"].value_counts().sort("publication")["publication"].to_list() == [
        "alarm/{client}", "image/{client}"]


def test_a_group_of_one_publication_is_named_as_before(tmp_path: Path) -> None:
    recording = simulated(scenario(STATE), tmp_path / "run")
    [flow] = metrics.headline(recording).flows
    assert flow.key == Key("devices", None, "desk", 0) and headline.title(flow) == "devices → desk, QoS 0"
    assert metrics.application(recording, metrics.FLOW)["publication"].to_list() == [None]
    assert recording.messages["publication"].null_count() == recording.messages.height


def test_publications_of_one_topic_are_told_apart_by_their_numbers(tmp_path: Path) -> None:
    other = {**STATE, "payload": "7 kB", "rate": "3 /s"}
    recording = simulated(scenario([STATE, ALARM, other]), tmp_path / "run")
    flows = {flow.publication: flow for flow in metrics.headline(recording).flows}
    assert list(flows) == ["state/{client} #0", "alarm/{client}", "state/{client} #2"]
    sizes = recording.messages.group_by("publication").agg(pl.col("payload_bytes").unique()).sort("publication")
    assert sizes["payload_bytes"].to_list() == [[60], [20], [7000]]


def test_a_publication_that_an_event_changes_stays_the_same_flow(tmp_path: Path) -> None:
    event = {"at": "3 s", "group": "devices", "publish": {"payload": "200 B"}, "publication": 1}
    recording = simulated(mixed(events=[event]), tmp_path / "run")
    assert [flow.key for flow in metrics.headline(recording).flows] == [IMAGES, ALARMS]
    assert by_hand(recording, "alarm")["payload_bytes"].unique().sort().to_list() == [20, 200]


def test_sums_of_a_long_run_have_them_apart(tmp_path: Path) -> None:
    whole = simulated(scenario(list(EACH)), tmp_path / "whole")
    summed = simulated(scenario(list(EACH), recording={"detail": "summary"}), tmp_path / "summed")
    tables_of = [metrics.application(each, metrics.FLOW) for each in (whole, summed)]
    keys = [table.select(*metrics.FLOW, "messages_sent", "messages_delivered") for table in tables_of]
    assert keys[0].rows() == keys[1].rows() and keys[0].height == len(EACH)
    for name in ("latency_ms_p50", "latency_ms_max"):
        one, other = (table[name].to_list() for table in tables_of)
        assert one == pytest.approx(other, rel=1 / 128)


def test_a_threshold_holds_one_publication(tmp_path: Path) -> None:
    path = tmp_path / "mixed.toml"
    path.write_text(mixed_text(), encoding="utf-8")
    done = mqttlab("run", path, cwd=tmp_path)
    assert "devices (alarm/{client}) to desk at QoS 1" in done.stdout + done.stderr, done.stdout + done.stderr
    # One run has no interval.
    assert done.returncode == 5, done.stdout + done.stderr


def mixed_text() -> str:
    return """
name = "mixed"
backend = "sim"
[phases]
duration = "6 s"
[[networks]]
between = ["field", "broker"]
link = "shared"
up = { rate = "512 kbit/s", delay = "5 ms" }
down = { rate = "512 kbit/s", delay = "5 ms" }
[[groups]]
name = "devices"
host = "field"
[[groups.publish]]
topic = "image/{client}"
qos = 1
payload = "20 kB"
interval = "900 ms"
[[groups.publish]]
topic = "alarm/{client}"
qos = 1
payload = "20 B"
interval = "310 ms"
[[groups]]
name = "desk"
host = "broker"
subscribe = [{ filter = "#", qos = 1 }]
[[thresholds]]
metric = "latency_ms_p50"
scope = "groups"
name = "devices (alarm/{client}) to desk at QoS 1"
below = "1 ms"
"""


def test_compared_runs_have_each_publication_beside_itself(tmp_path: Path) -> None:
    first = simulated(mixed(), tmp_path / "first")
    second = simulated(mixed(seed=9, groups=[
        {"name": "devices", "host": "field", "count": 2, "publish": [IMAGE, {**ALARM, "payload": "3 kB"}]},
        {"name": "desk", "host": "broker", "subscribe": [{"filter": "#", "qos": 2}]}]), tmp_path / "second")
    lined = line_up([first], [second])
    assert [(role.first, role.second) for role in lined.matched] == [(IMAGES, IMAGES), (ALARMS, ALARMS)]
    assert [role.title for role in lined.matched] == [
        "devices (image/{client}) → desk, QoS 1", "devices (alarm/{client}) → desk, QoS 1"]


def test_acknowledged_publications_without_receivers_are_apart(tmp_path: Path) -> None:
    alone = mixed(groups=[{"name": "devices", "host": "field", "count": 2, "publish": [IMAGE, ALARM]}])
    recording = simulated(alone, tmp_path / "run")
    flows = metrics.headline(recording).flows
    assert [flow.publication for flow in flows] == ["image/{client}", "alarm/{client}"]
    took = [flow.acknowledged.latency["p50"].value or 0 for flow in flows if flow.acknowledged]
    assert len(took) == 2 and took[0] > 2 * took[1] > 0


def test_bursts_of_one_publication_have_its_name(tmp_path: Path) -> None:
    recording = simulated(scenario([BURSTS, STATE]), tmp_path / "run")
    [row] = metrics.bursts(recording).to_dicts()
    assert row["publication"] == "burst/{client}" and row["bursts"] == row["bursts_complete"] > 0


def test_the_slowest_clients_of_any_group_are_shown_and_exported(tmp_path: Path) -> None:
    slow = {"between": ["far", "broker"], "up": {"delay": "90 ms"}, "down": {"delay": "5 ms"}}
    near = {**slow, "between": ["field", "broker"], "up": {"delay": "5 ms"}}
    recording = simulated(scenario(STATE, networks=[near, slow], groups=[
        {"name": "near", "host": "field", "count": 3, "publish": STATE},
        {"name": "away", "host": "far", "count": 2, "publish": STATE},
        {"name": "desk", "host": "broker", "subscribe": ["#"]}]), tmp_path / "run")
    shown, words = worst(metrics.messages_by_device(recording))
    assert set(shown["client"].head(2)) == {"away-0", "away-1"} and words.startswith("Of 6 clients all")
    csv = pl.read_csv(tables.csv(tmp_path / "run", tmp_path / "csv") / "clients.csv")
    medians = dict(csv.select("name", "latency_ms_p50").rows())
    assert medians["away-0"] > 90 > 10 > medians["near-0"] > 5
    assert json.loads(json.dumps(headline.document(recording)))["slowest"] == "", "its own groups are known"


@pytest.mark.live
def test_live_and_simulated_have_the_same_flows(tmp_path: Path) -> None:
    found = in_both({"mixed": mixed(), "alone": mixed(groups=[
        {"name": "devices", "host": "field", "count": 2, "publish": [IMAGE, ALARM]}])}, tmp_path, at_once=2)
    for name, both in found.items():
        keys = [[flow.key for flow in metrics.headline(both[backend]).flows] for backend in ("live", "sim")]
        assert keys[0] == keys[1] and len(keys[0]) == 2, name
        live = metrics.headline(both["live"]).flows
        # Queues differ, but an image takes a third of a second on the wire in both.
        assert (live[0].latency["p50"].value or 1e3) > 250, name
