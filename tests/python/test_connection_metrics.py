"""One TCP connection: its segments, what was acknowledged and what was in flight, held against the frames."""

from __future__ import annotations

import polars as pl
import pytest

from mqttlab import metrics
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import scenario


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    directory = tmp_path_factory.mktemp("runs") / "one"
    plan = compile_plan(parse_values(scenario(1, payload="3 kB", rate="60 /s", link={"loss": "3 %"})))
    assert perform(Job(plan, directory), lambda line: None).verdict == "complete"
    return Recording.open(directory)


@pytest.mark.parametrize("towards", metrics.DIRECTIONS)
def test_a_stream_is_sent_whole_and_acknowledged_to_its_end(recording: Recording, towards: str) -> None:
    packets = recording.packets.filter(pl.col("hop") == 0, pl.col("payload_bytes") > 0)
    for connection in packets["connection"].unique():
        segments = metrics.connection_segments(recording, connection, towards)
        flight = metrics.connection_flight(recording, connection, towards)
        if segments.is_empty():
            continue
        first = segments.filter(~pl.col("again"))
        # New segments follow one another without a gap.
        assert first["start"].to_list() == [0, *first["end"].to_list()[:-1]]
        assert flight["acknowledged"].max() == segments["end"].max()
        assert flight["acknowledged"].is_sorted() and flight["in_flight_bytes"][-1] == 0
        assert flight["in_flight_bytes"].min() == 0 and int(flight["in_flight_bytes"].max() or 0) > 0  # type: ignore
        assert flight["window"].drop_nulls().len() > 0
    assert packets.height == sum(
        metrics.connection_segments(recording, connection, way).height
        for connection in packets["connection"].unique() for way in metrics.DIRECTIONS)


def test_what_is_sent_again_is_what_the_recording_says(recording: Recording) -> None:
    packets = recording.packets.filter(pl.col("hop") == 0, pl.col("payload_bytes") > 0)
    again = sum(int(metrics.connection_segments(recording, connection, towards)["again"].sum())
                for connection in packets["connection"].unique() for towards in metrics.DIRECTIONS)
    assert again == packets.filter(pl.col("repetition") > 0).height > 0


def test_a_connection_that_is_not_there_has_nothing(recording: Recording) -> None:
    for towards in metrics.DIRECTIONS:
        assert metrics.connection_segments(recording, 999, towards).is_empty()
        assert metrics.connection_flight(recording, 999, towards).is_empty()
