"""Calibration: the broker's service time, read back from recordings."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import live
from mqttlab.calibration import Calibration, CalibrationError, calibrate
from mqttlab.cli.main import main
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

FAN_OUT = """
name = "fan-out"

[phases]
duration = "4 s"
cool_down = "2 s"

[[networks]]
between = ["field", "broker"]
up = { delay = "1 ms" }
down = { delay = "1 ms" }

[broker]
nagle = false
service = { per_packet = "80 us", per_copy = "15 us", jitter = "20 %" }

[[groups]]
name = "publisher"
host = "field"
nagle = false
publish = { topic = "news", qos = 0, payload = "100 B", rate = "20 /s" }

[[groups]]
name = "subscribers"
host = "field"
count = 20
subscribe = [{ filter = "news", qos = 0 }]
"""


def simulated(directory: Path, *, subscribers: int = 20, nagle: bool = False, **publish: Any) -> Path:
    values = tomllib.loads(FAN_OUT)
    values["backend"] = "sim"
    values["broker"]["nagle"] = nagle
    values["groups"][0]["publish"] |= publish
    values["groups"][1]["count"] = subscribers
    outcome = perform(Job(compile_plan(parse_values(values, "fan-out")), directory / "run"), lambda event: None)
    assert outcome.verdict == "complete"
    return outcome.directory


def of(directory: Path, **changes: Any) -> Calibration:
    return calibrate(Recording.open(simulated(directory, **changes)))


def command(run: Path) -> Result:
    return CliRunner().invoke(main, ["calibrate", str(run)])


def test_what_the_simulated_broker_took_is_read_back(tmp_path: Path) -> None:
    found = of(tmp_path, rate="50 /s")
    assert found.messages + found.messages_busy + found.messages_held == 200
    assert found.messages > 180
    assert found.copies == 20 * found.messages
    assert found.per_packet_us == pytest.approx(80, rel=0.05)
    assert found.per_copy_us == pytest.approx(15, rel=0.05)
    assert found.jitter_percent == pytest.approx(20, rel=0.2)
    assert abs(found.residual_us[2]) < 5


def test_messages_that_meet_a_busy_broker_are_left_out(tmp_path: Path) -> None:
    # A message takes the broker 0.4 ms: at 1500 of them a second many wait for the one before.
    found = of(tmp_path, rate="1500 /s", arrival="poisson")
    assert found.messages_busy > found.messages
    assert found.per_packet_us == pytest.approx(80, rel=0.1)


def test_copies_behind_unacknowledged_data_are_left_out_where_nagle_is_on(tmp_path: Path) -> None:
    # The round trip is 2 ms: of each pair, the second message finds its subscriber's first copy unacknowledged.
    pairs = {"rate": None, "arrival": "burst", "burst": {"size": 2, "every": "200 ms", "gap": "1 ms"}}
    off, on = (of(tmp_path / str(nagle), subscribers=2, nagle=nagle, **pairs) for nagle in (False, True))
    assert (off.messages, off.messages_held) == (40, 0)
    assert (on.messages, on.messages_held) == (20, 20)
    # Those that waited did so for most of a round trip.
    assert on.residual_us[4] < 200


def test_a_single_subscriber_cannot_tell_packet_from_copy(tmp_path: Path) -> None:
    found = of(tmp_path, subscribers=1)
    assert found.per_copy_us is None
    assert found.per_packet_us == pytest.approx(95, rel=0.05)
    assert "No message had two copies" in found.toml()


def test_qos_2_shows_no_service_time_and_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="0 messages at QoS 0 or 1"):
        of(tmp_path, qos=2)


def test_each_of_several_brokers_has_its_own(tmp_path: Path) -> None:
    values = tomllib.loads(FAN_OUT)
    del values["broker"]
    values |= {"backend": "sim", "servers": [
        {"name": name, "nagle": False, "service": {"per_packet": packet, "per_copy": "15 us"}}
        for name, packet in (("north", "80 us"), ("south", "200 us"))]}
    line = values.pop("networks")[0]
    values["networks"] = [{**line, "between": ["field", name]} for name in ("north", "south")]
    values["groups"] = [{**group, "name": f"{group['name']}-{name}", "connects_to": name}
                        for name in ("north", "south") for group in values["groups"]]
    outcome = perform(Job(compile_plan(parse_values(values, "two")), tmp_path / "run"), lambda event: None)
    recording = Recording.open(outcome.directory)
    found = {name: calibrate(recording, name) for name in ("north", "south")}
    assert [round(one.per_packet_us, -1) for one in found.values()] == [80, 200]
    assert all(one.messages > 60 and one.per_copy_us == pytest.approx(15, rel=0.05) for one in found.values())
    with pytest.raises(CalibrationError, match=r"2 brokers.*north, south; say which with --server"):
        calibrate(recording)
    with pytest.raises(CalibrationError, match="no broker 'east'; known: north, south"):
        calibrate(recording, "east")
    printed = CliRunner().invoke(main, ["calibrate", str(outcome.directory), "--server", "south"])
    assert printed.exit_code == 0, printed.output
    values["servers"][1] |= tomllib.loads(printed.output)
    service = parse_values(values, "calibrated").servers[1].service
    assert service.per_packet == pytest.approx(200_000, rel=0.05)


def test_the_command_prints_what_a_scenario_accepts(tmp_path: Path) -> None:
    run = simulated(tmp_path)
    printed = command(run)
    assert printed.exit_code == 0, printed.output
    values = tomllib.loads(FAN_OUT)
    values["broker"] |= tomllib.loads(printed.output)["broker"]
    service = parse_values(values, "calibrated").broker.service
    assert service.per_packet == pytest.approx(80_000, rel=0.05)
    assert service.per_copy == pytest.approx(15_000, rel=0.05)


def test_a_recording_without_packets_is_refused(tmp_path: Path) -> None:
    run = simulated(tmp_path)
    (run / "packets.parquet").unlink()
    printed = command(run)
    assert printed.exit_code == 2
    assert "no packets were recorded" in printed.output


@pytest.mark.live
def test_a_real_broker_takes_microseconds_for_a_copy(tmp_path: Path) -> None:
    scenario = tmp_path / "fan-out.toml"
    scenario.write_text(FAN_OUT, encoding="utf-8")
    [recording] = live.perform(tmp_path / "runs", [scenario])
    found = calibrate(recording)
    assert found.messages >= 10
    assert found.per_copy_us is not None
    # A system call at least; and the message with all its copies is no longer under way than messages were.
    assert found.per_copy_us > 0
    worst_us = recording.messages["latency_ns"].max() / 1000  # type: ignore[operator]
    assert found.per_packet_us + 20 * found.per_copy_us < worst_us
