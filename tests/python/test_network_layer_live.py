"""Real TCP over the emulated network: Nagle's algorithm puts as many PUBLISH packets into a segment as Borsatti 2020
counted, one for each period of the schedule in a round trip."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from live import perform, points, valid
from mqttlab import metrics
from mqttlab.recording import Recording

pytestmark = pytest.mark.live(runs=6)
EXPERIMENT = Path(__file__).resolve().parents[2] / "experiments" / "borsatti2020" / "symmetric.toml"
RATE_PER_S = 100
ATTEMPTS = 3
CASES = [(delay, nagle, qos) for delay in (20, 60) for nagle in ("on", "off") for qos in (0, 1)]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str, int], Recording]:
    """All cases at once; those whose schedule or emulator was late are run again."""
    files = points(EXPERIMENT, tmp_path_factory.mktemp("points"))
    kept: dict[tuple[int, str, int], Recording] = {}
    for attempt in range(ATTEMPTS):
        missing = [case for case in CASES if case not in kept]
        if not missing:
            break
        paths = [files[f"{delay}ms-nagle-{nagle}-qos{qos}"] for delay, nagle, qos in missing]
        made = perform(tmp_path_factory.mktemp(f"attempt{attempt}"), paths,
                       phases__warm_up="1 s", phases__duration="5 s", phases__cool_down="1 s")
        kept |= {case: recording for case, recording in zip(missing, made, strict=True) if valid(recording)}
    return kept


def mean_per_segment(recording: Recording, direction: str) -> float:
    table = metrics.publish_per_segment(recording, measurement_only=True).filter(pl.col("direction") == direction)
    return float((table["packets"] * table["segments"]).sum() / table["segments"].sum())


@pytest.mark.parametrize("direction", ["to_broker", "to_client"])
@pytest.mark.parametrize(("delay", "nagle", "qos"), CASES)
def test_publish_packets_per_segment_are_those_of_a_round_trip(
    recordings: dict[tuple[int, str, int], Recording], delay: int, nagle: str, qos: int, direction: str
) -> None:
    if (delay, nagle, qos) not in recordings:
        pytest.skip(f"the machine was too busy to keep the schedule, {ATTEMPTS} times")
    recording = recordings[delay, nagle, qos]
    # Each segment waits for the acknowledgement of the one before: a round trip of two delays, and of what a busy
    # machine adds to some of them. Only the connections that carry PUBLISH packets this way count: a PUBACK that goes
    # the same way may wait for a delayed acknowledgement.
    writer = "publisher" if direction == "to_broker" else "subscriber"
    round_trips = metrics.round_trips(recording).filter(group=writer, towards=direction)["rtt_ms"]
    assert round_trips.min() == pytest.approx(2 * delay, rel=0.02)
    mean = float(round_trips.mean())  # type: ignore[arg-type]
    expected = mean * RATE_PER_S / 1000 if nagle == "on" else 1
    assert mean_per_segment(recording, direction) == pytest.approx(expected, rel=0.05)
