"""Where a capture was taken: what round trips say, what the user says, and captures of mqttlab's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from captures import Wire, answer, pair, publish
from mqttlab.export.pcapng import pcapng
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.report.captured import facts
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse_values
from short_scenarios import scenario
from test_import_messages import read


class Apart(Wire):
    """A capture whose segments are answered after so long: by clients, by the broker."""

    def __init__(self, to_client: float, to_broker: float) -> None:
        super().__init__()
        self.ways = to_client, to_broker

    def put(self, packet: bytes) -> None:
        """Capture a frame, which the other end answers with the next one."""
        self.frames.append((self.now_ns, packet))
        self.wait(self.ways[packet[16:20] == self.broker.packed])


@pytest.mark.parametrize(("ways", "options", "place"), [
    ((20, 0.1), [], "broker"), ((0.1, 20), [], "clients"), ((10, 10), [], "between"),
    ((20, 0.1), ["--captured-at", "clients"], "clients"),
])
def test_the_nearer_end_is_where_it_was_taken_unless_the_user_says_so(
    tmp_path: Path, ways: tuple[float, float], options: list[str], place: str,
) -> None:
    wire = Apart(*ways)
    publisher, subscriber = pair(wire)
    for number in range(5):
        publisher.up(publish("t", b"%d" % number))
        publisher.down(b"")
        subscriber.down(publish("t", b"%d" % number))
        subscriber.up(b"")
    recording = read(wire, tmp_path, *options)
    told = recording.run["details"]["import"]["captured_at"]
    assert (told["place"], told["said"]) == (place, bool(options))
    assert dict(facts(recording))["captured"] == told["in_words"]
    warned = [text for text in recording.run["warnings"] if text.startswith("The capture was taken")]
    assert len(warned) == (place != "broker")


@pytest.mark.parametrize("options", [[], ["--captured-at", "broker"]])
def test_without_acknowledgements_round_trips_are_upper_bounds_and_tell_no_place(
    tmp_path: Path, options: list[str],
) -> None:
    wire = Apart(0.1, 0.1)
    publisher, subscriber = pair(wire)
    for number in range(5):
        publisher.up(publish("t", b"%d" % number, qos=1, identifier=number + 1))
        publisher.down(answer(4, number + 1))
        publisher.up(b"")
        subscriber.down(publish("t", b"%d" % number))
        subscriber.up(b"")
        wire.wait(200)
    subscriber.up(b"\xc0\0")
    subscriber.down(b"\xd0\0")
    (tmp_path / "whole").mkdir()
    whole = read(wire, tmp_path / "whole", *options)
    assert not [text for text in whole.run["warnings"] if "upper bounds" in text]
    # A filter for segments with payload: ip[2:2] > 40.
    wire.frames = [(at_ns, packet) for at_ns, packet in wire.frames if len(packet) > 40]
    filtered = read(wire, tmp_path, *options)
    told = filtered.run["details"]["import"]["captured_at"]
    assert told["place"] == ("broker" if options else "unknown")
    assert told["round_trip_to_clients_ms"] is None
    assert len([text for text in filtered.run["warnings"] if "upper bounds" in text]) == 1
    assert not [text for text in filtered.run["warnings"] if text.startswith("The capture was taken")]


def test_a_capture_of_an_earlier_version_says_that_the_way_is_not_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.modules[pcapng.__module__], "_transit", lambda row: str(row["fate"]))
    values = scenario(1, up={"delay": "30 ms"}, down={"delay": "30 ms"})
    outcome = perform(Job(compile_plan(parse_values(values)), tmp_path / "run"), lambda event: None)
    run = Recording.open(outcome.directory)
    file = tmp_path / "own.pcapng"
    pcapng(run, file)
    imported = Recording.open(import_evidence("capture", [file], tmp_path / "again", lambda line: None).directory)
    assert imported.run["details"]["import"]["captured_at"]["place"] == "senders"
    assert any(text.startswith("The capture was written by mqttlab") for text in imported.run["warnings"])
