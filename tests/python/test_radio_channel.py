"""Shadowing, fading, bit errors and interferers of a radio channel: from the scenario to what arrives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse_values
from short_scenarios import scenario

METRES = ("20 m", "70 m", "110 m")
# -20.05 dBm - 30 log10(d) over -95 dBm: 35.9, 19.6 and 13.7 dB, where 10 dB are needed.


def radio(distance: str, **more: Any) -> dict[str, Any]:
    """A publisher at a distance from the broker, one transmission a frame, and a subscriber on the broker's host."""
    return scenario(
        0, rate="50 /s", hosts=("field", "broker"), phases={"duration": "60 s", "cool_down": "5 s"}, seed=1,
        radio={"positions": [["0 m", "0 m"], [distance, "0 m"]], "short_retries": 1, **more})


def run(values: dict[str, Any], directory: Path) -> Recording:
    """The recording of a scenario."""
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda event: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(outcome.directory)


def lost(recording: Recording) -> float:
    """Share of the frames on the air that did not arrive."""
    frames = recording.packets.filter(pl.col("link") == "radio")
    return frames.filter(pl.col("fate") == "dropped").height / frames.height


def medium(values: dict[str, Any]) -> dict[str, Any]:
    """The plan's radio channel."""
    return dict(compile_plan(parse_values(values))["network"]["media"][0])


def test_a_plan_has_what_the_scenario_says() -> None:
    said = medium(radio(
        "20 m", shadowing={"sigma": "6 dB"}, fading={"kind": "nakagami", "m": 3, "coherence": "50 ms"}, errors="snr",
        interferers=[
            {"name": "oven", "position": ["5 m", "6 m"], "power": "10 dBm", "on": "8 ms", "off": "12 ms"},
            {"name": "camera", "position": ["1 m", "0 m"], "power": "0 dBm", "starts": "off"},
        ]))
    assert said["radio"]["shadowing"] == {"sigma_mdb": 6000, "decorrelation_mm": None}
    assert said["radio"]["fading"] == {"kind": "nakagami", "m_milli": 3000, "coherence_ns": 50_000_000}
    assert said["radio"]["errors"] == "snr"
    assert said["interferers"] == [
        {"name": "oven", "position": {"x_mm": 5000, "y_mm": 6000}, "power_mdbm": 10_000, "on": True,
         "duty": {"kind": "regular", "on_ns": 8_000_000, "off_ns": 12_000_000}},
        {"name": "camera", "position": {"x_mm": 1000, "y_mm": 0}, "power_mdbm": 0, "on": False,
         "duty": {"kind": "constant"}},
    ]


def test_a_scenario_that_says_nothing_has_a_steady_channel() -> None:
    said = medium(radio("20 m"))
    assert {name: said["radio"][name] for name in ("shadowing", "fading", "errors")} == {
        "shadowing": None, "fading": None, "errors": "threshold"}
    assert said["interferers"] == []


@pytest.mark.parametrize("metres", METRES)
def test_rayleigh_fading_loses_frames_by_distance(tmp_path: Path, metres: str) -> None:
    recording = run(radio(metres, fading={"kind": "rayleigh", "coherence": "5 ms"}), tmp_path / "run")
    # A frame or its acknowledgement 1.2 ms later is lost in a fade below the needed 10 dB; frames of one block share
    # a gain, and TCP sends again what was lost, into later blocks.
    expected = {"20 m": 0.0026, "70 m": 0.104, "110 m": 0.345}[metres]
    assert expected / 2 < lost(recording) < 1.5 * expected + 0.003
    # The frames alone fade: nothing is out of reach.
    dropped = recording.packets.filter(pl.col("fate") == "dropped")
    assert set(dropped["cause"].drop_nulls().unique()) <= {"retry_limit"}


def test_without_fading_all_of_them_arrive(tmp_path: Path) -> None:
    assert lost(run(radio(METRES[-1]), tmp_path / "run")) == 0


def test_two_runs_of_one_seed_are_equal(tmp_path: Path) -> None:
    values = radio(METRES[-1], fading={"kind": "rayleigh", "coherence": "5 ms"}, shadowing={"sigma": "3 dB"},
                   errors="snr", interferers=[{"name": "oven", "position": ["50 m", "20 m"], "power": "10 dBm",
                                               "on": "3 ms", "off": "20 ms", "turns": "exponential"}])
    first, second = (run(values, tmp_path / name) for name in ("first", "second"))
    assert first.packets.equals(second.packets)
    assert not first.packets.equals(run({**values, "seed": 2}, tmp_path / "third").packets)


def test_long_frames_are_lost_sooner_by_their_bits(tmp_path: Path) -> None:
    def share(payload: str) -> float:
        # 7 dB over the noise: of 100,000 bits of CCK some are wrong.
        values = radio("185 m", errors="snr")
        values["groups"][0]["publish"]["payload"] = payload
        recording = run(values, tmp_path / payload.replace(" ", ""))
        data = recording.packets.filter(pl.col("link") == "radio", pl.col("frame_bytes") > 100)
        return data.filter(pl.col("fate") == "dropped").height / data.height

    short, long = share("50 B"), share("1000 B")
    assert short < long / 3
    assert long > 0.05


def test_stations_wait_for_an_interferer_that_they_hear(tmp_path: Path) -> None:
    oven = {"name": "oven", "position": ["10 m", "10 m"], "power": "20 dBm", "on": "40 ms", "off": "60 ms"}
    quiet = run(radio("20 m"), tmp_path / "quiet").messages["latency_ns"].max()
    recording = run(radio("20 m", interferers=[oven]), tmp_path / "run")
    longest = recording.messages["latency_ns"].max()
    assert longest > 35_000_000 > quiet  # type: ignore[operator]
    assert lost(recording) < 0.05
