"""Where the time of messages went that passed gateways: sleep, registration, retries, and the gateway itself."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from mqttlab import explanation
from mqttlab.metrics import PARTS, attribution, attribution_coverage, evidence
from mqttlab.recording import Recording
from test_mqtt_sn import scenario
from test_mqtt_sn_sim import MODES, simulated

MS = 1_000_000


def parts_of(recording: Recording) -> pl.DataFrame:
    """The parts of every delivery, which must be all there and add up."""
    table = attribution(recording)
    coverage = attribution_coverage(recording)
    assert coverage.attributed == coverage.delivered > 0, coverage
    assert (table.select(pl.sum_horizontal(PARTS)).to_series() == table["latency_ns"]).all()
    assert table.select(pl.min_horizontal(PARTS).min()).item() >= 0
    return table


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_the_time_of_messages_through_a_gateway_has_parts(mode: str, qos: int, tmp_path: Path) -> None:
    table = parts_of(simulated(scenario(mode=mode, qos=qos), tmp_path / "run")).sort("publisher", "sequence")
    assert table["adjusted_ns"].max() == 0
    assert not table.select(pl.any_horizontal(pl.col("sleep_ns", "retry_ns") > 0)).to_series().any()
    office, back = (table.filter(pl.col("subscriber_group") == group) for group in ("office", "back"))
    assert (office.height, back.height) == (60, 60)
    # Two links of 5 ms lead to the broker, one to the office, two back to the field.
    assert set(table["wire_to_broker_ns"]) == {10 * MS}
    assert set(office["wire_to_subscriber_ns"]) == {5 * MS} and set(back["wire_to_subscriber_ns"]) == {10 * MS}
    # Each sensor registers its topic, which takes a round trip, and the gateway those that `back` has not heard of.
    first, rest = (table.filter((pl.col("sequence") == pl.col("sequence").min().over("publisher")) == is_first)
                   for is_first in (True, False))
    # Client and gateway need some microseconds for it besides.
    for group, trips in (("office", 10 * MS), ("back", 20 * MS)):
        took = first.filter(pl.col("subscriber_group") == group)["register_ns"].to_list()
        assert len(took) == 3 and all(trips <= one < trips + MS for one in took), took
    assert rest["register_ns"].sum() < 0.1 * first["register_ns"].sum()
    # An aggregating one may wait for room on its connection.
    if qos < 2 and mode == "transparent":
        assert rest["gateway_ns"].max() < MS, "a gateway takes microseconds"  # type: ignore[operator]


def test_what_is_in_a_gateway_is_what_its_packets_tell(tmp_path: Path) -> None:
    recording = simulated(scenario(mode="transparent", qos=1), tmp_path / "run")
    packets = recording.control_packets.filter(pl.col("kind").cast(pl.String) == "PUBLISH").with_columns(
        pl.col("protocol", "direction").cast(pl.String))
    # Only messages that nothing is registered for: the gateway has them from the one packet until the other.
    def one(protocol: str, direction: str, at: str) -> pl.DataFrame:
        return packets.filter(protocol=protocol, direction=direction).group_by("publisher", "sequence", "client").agg(
            pl.col(at).min().alias(f"{protocol} {direction}"))

    table = parts_of(recording).filter(pl.col("subscriber_group") == "back", pl.col("register_ns") == 0)
    message, found = ["publisher", "sequence"], table
    for protocol, at in (("mqtt-sn", "complete_ns"), ("mqtt", "first_sent_ns")):
        found = found.join(one(protocol, "to_broker", at).drop("client"), on=message)
    for protocol, at in (("mqtt", "complete_ns"), ("mqtt-sn", "first_sent_ns")):
        found = found.join(one(protocol, "to_client", at), left_on=[*message, "subscriber"],
                           right_on=[*message, "client"])
    expected = (found["mqtt to_broker"].cast(pl.Int64) - found["mqtt-sn to_broker"].cast(pl.Int64)
                + found["mqtt-sn to_client"].cast(pl.Int64) - found["mqtt to_client"].cast(pl.Int64))
    assert found.height == table.height > 40
    assert found["gateway_ns"].to_list() == expected.to_list()


def test_what_the_air_lost_has_waited_for_t_retry(tmp_path: Path) -> None:
    values = scenario(mode="transparent", qos=1)
    values["networks"][0]["up"]["loss"] = values["networks"][0]["down"]["loss"] = "20 %"
    recording = simulated(values, tmp_path / "run")
    table = parts_of(recording)
    retried = table.filter(pl.col("retry_ns") > 0)
    assert retried.height > 20
    # T_retry is 300 ms at both ends. What was registered anew meanwhile is no retry.
    whole = retried.filter(pl.col("register_ns") == 0)["retry_ns"]
    assert ((whole % (300 * MS)) <= MS).all() and whole.min() >= 300 * MS  # type: ignore[operator]
    assert table.filter(pl.col("register_ns") > 300 * MS).height > 0, "a REGISTER is lost, too"


def test_a_sleepers_messages_wait_for_it_to_be_awake(tmp_path: Path) -> None:
    values = scenario(mode="transparent", qos=1)
    values["groups"][2]["mqtt_sn"] |= {"sleep": {"duration": "5 s", "wake_every": "500 ms", "linger": "20 ms"}}
    table = parts_of(simulated(values, tmp_path / "run"))
    back = table.filter(pl.col("subscriber_group") == "back")
    slept = back.filter(pl.col("sleep_ns") > 0)
    assert slept.height > 40
    assert 100 * MS < slept["sleep_ns"].mean() < 500 * MS  # type: ignore[operator]
    assert slept["sleep_ns"].max() < 550 * MS  # type: ignore[operator]
    assert not table.filter(pl.col("subscriber_group") == "office")["sleep_ns"].sum()
    # What is left of the gateway's time is what it sends before, one message after the other.
    assert back["gateway_ns"].max() < 300 * MS  # type: ignore[operator]


def test_a_sleeping_publisher_keeps_its_messages_until_it_wakes(tmp_path: Path) -> None:
    values = scenario(mode="transparent", qos=1)
    values["groups"][0]["mqtt_sn"] |= {
        "sleep": {"duration": "5 s", "wake_every": "400 ms", "linger": "20 ms", "publish": "when-awake"}}
    table = parts_of(simulated(values, tmp_path / "run"))
    slept = table.filter(pl.col("sleep_ns") > 0)
    assert slept.height > 60
    assert slept["sleep_ns"].max() <= 450 * MS  # type: ignore[operator]


@pytest.mark.parametrize("mode", MODES)
def test_a_message_through_gateways_has_a_story(mode: str, tmp_path: Path) -> None:
    values = scenario(mode=mode, qos=1)
    values["networks"][0]["up"]["loss"] = "20 %"
    values["groups"][0] |= {"count": 1, "publish": values["groups"][0]["publish"] | {"interval": "1 s"}}
    values["phases"]["duration"] = "30 s"
    recording = simulated(values, tmp_path / "run")
    table = parts_of(recording).with_row_index("leg")
    back = table.filter(pl.col("subscriber_group") == "back")
    for name, word in (("register_ns", "registered"), ("retry_ns", "sent again")):
        leg = int(back.sort(pl.col(name) / pl.col("latency_ns"))["leg"][-1])
        story = explanation.tell(recording, evidence(recording, [leg]), leg)
        assert story.hosts == ("field", "gateway", "broker")
        assert sum(span.length_ns for span in story.spans) == story.latency_ns
        assert {span.host for span in story.spans if span.part == "gateway_ns"} <= {"gateway"}
        first = story.spans[0]
        assert first.host == "field", "what passes before the gateway passes at the publisher"
        said = "\n".join([explanation.cause(story), *explanation.ladder(story)])
        assert word in said and "PUBLISH" in said, said
        assert ("REGISTER" in said) == (story.parts["register_ns"] > 0)
        assert any(arrow.lost for arrow in story.arrows)
        assert "gateway ──► back-0" in said and "──► broker" in said and "back-0 ──► back-0" not in said
