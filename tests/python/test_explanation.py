"""One message explained: which frames are in its story, which cause is named, and that the picture can be read."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree

import polars as pl
import pytest
from click.testing import CliRunner, Result

from conversations import Conversation
from mqttlab.cli import main
from mqttlab.explanation import Story, cause, head, ladder, tell, words, write
from mqttlab.explanation.diagram import Ladder
from mqttlab.explanation.layout import CLEAR, LINE, Place, scale
from mqttlab.explanation.story import Happening
from mqttlab.metrics import evidence
from mqttlab.metrics.attribution import explainable
from mqttlab.metrics.attribution.lookup import Lookup
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from recordings import Message
from recordings import write as write_messages
from test_attribution import outstanding_at_broker, qos2

SIMULATED = Path(__file__).resolve().parents[1] / "schemas" / "4" / "simulated"
SVG = "{http://www.w3.org/2000/svg}"


def story(recording: Recording) -> Story:
    found = evidence(recording)
    return tell(recording, found, found.legs.sort("latency_ns")["leg"][-1])


def held() -> Conversation:
    told = Conversation()
    outstanding_at_broker(told, ack_at=50, forwarded=50.1)
    return told


def lost() -> Conversation:
    told = Conversation()
    told.message(0, 0, 0, 230)
    told.frame(0, True, 0, None, offset=0, size=100)
    told.frame(0, True, 200, 210, offset=0, size=100)
    told.publish(0, True, 0, 100, 0, 210, segments=2)
    told.frame(1, False, 210, 230, offset=0, size=100)
    told.publish(1, False, 0, 100, 210, 230)
    return told


def test_nagles_hold_is_named_with_the_acknowledgement_that_ended_it(tmp_path: Path) -> None:
    told = story(held().write(tmp_path))
    # The 10 bytes of frame 2 arrived at 12; their acknowledgement, frame 4, left at 40.
    assert cause(told) == (
        "Held for 40.0 ms by Nagle's algorithm at the broker until the delayed ACK of frame 2 (10 B) came: its "
        "receiver kept it back for 28.0 ms; set TCP_NODELAY on the broker (`broker.nagle = false`).")
    assert {arrow.frame for arrow in told.arrows} == {2, 3, 4, 5}
    assert any("ends the wait under Nagle" in line and "frame 4" in line for line in ladder(told))


def test_a_round_trip_is_not_called_a_delayed_acknowledgement(tmp_path: Path) -> None:
    told = Conversation()
    told.frame(1, True, -9, -8, offset=0, size=5)
    told.frame(1, False, -1, 24, offset=0, size=10, ack=5)
    told.message(0, 0, 0, 74.1)
    told.frame(0, True, 0, 10, offset=0, size=100)
    told.publish(0, True, 0, 100, 0, 10)
    told.frame(1, True, 24, 49, ack=10)
    told.frame(1, False, 49.1, 74.1, offset=10, size=100, ack=5)
    told.publish(1, False, 10, 110, 49.1, 74.1)
    words = cause(story(told.write(tmp_path)))
    assert "Nagle" in words
    assert "a round trip later" in words
    assert "delayed" not in words


def test_a_lost_frame_and_its_repetition_are_marked(tmp_path: Path) -> None:
    told = story(lost().write(tmp_path))
    assert "lost (1 lost frame: random loss). Frame 2 was sent again." in cause(told)
    text = "\n".join(ladder(told))
    assert "──✕" in text
    assert "lost: random loss" in text
    assert "sent again" in text
    assert [(arrow.frame, arrow.again, arrow.lost) for arrow in told.arrows] == [
        (1, False, "random loss"), (2, True, None), (3, False, None)]


def test_a_handshake_is_in_the_story_with_its_pubrels(tmp_path: Path) -> None:
    told = Conversation()
    qos2(told, forwarded=31, received=61)
    labels = [arrow.label() for arrow in story(told.write(tmp_path)).arrows]
    assert labels == ["PUBLISH(2,7)", "PUBREL(7)", "PUBLISH(2,3)", "PUBREL(3)"]


def test_where_no_part_dominates_the_largest_are_named(tmp_path: Path) -> None:
    told = Conversation()
    qos2(told, forwarded=31, received=61)
    whole = story(told.write(tmp_path))
    parts = dict.fromkeys(whole.parts, 0) | {"handshake_ns": 30_000_000, "broker_ns": 1_000_000,
                                             "wire_to_subscriber_ns": 33_000_000, "release_ns": 36_000_000}
    said = cause(replace(whole, parts=parts, ends_ns=whole.begins_ns + 100_000_000))
    assert said == "No single part dominates. The largest: release 36.0 ms, wire down 33.0 ms, handshake 30.0 ms."


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_client_beside_its_broker_is_named_on_its_end_of_a_frame(qos: int, tmp_path: Path) -> None:
    """It read `broker ──► broker`."""
    plan = compile_plan(parse_values({
        "name": "beside", "backend": "sim", "phases": {"duration": "2 s", "cool_down": "2 s"},
        "networks": [{"between": ["field", "broker"], "model": "lte"}],
        "groups": [{"name": "p", "host": "field",
                    "publish": {"topic": "t", "qos": qos, "payload": "50 B", "rate": "5 /s"}},
                   {"name": "s", "host": "broker", "subscribe": [{"filter": "t", "qos": qos}]}]}))
    perform(Job(plan, tmp_path / "run"), lambda event: None)
    told = story(Recording.open(tmp_path / "run"))
    text = "\n".join(ladder(told))
    assert "broker ──► s-0" in text and "broker ──► broker" not in text
    assert ("s-0 ──► broker" in text) == (qos == 2)


def test_no_label_stands_across_the_head_of_an_arrow(tmp_path: Path) -> None:
    told = Conversation()
    qos2(told, forwarded=31, received=61)
    drawn = Ladder(story(told.write(tmp_path)))
    for ending, beginning in ((one, other) for one in drawn.story.arrows for other in drawn.story.arrows):
        # An arrow that ends where another one sets out later: the other's label begins below the first one's head.
        if ending.to_host == beginning.from_host and ending.from_host == beginning.to_host \
                and ending.ended_ns < beginning.sent_ns and not ending.lost:
            top = drawn.y(beginning.sent_ns) - LINE * len(drawn.lines[beginning.frame])
            assert top >= drawn.y(ending.ended_ns), (ending.label(), beginning.label())


def test_spans_fill_the_time_without_gaps(tmp_path: Path) -> None:
    told = story(lost().write(tmp_path))
    edges = [(span.from_ns, span.to_ns) for span in told.spans]
    assert edges[0][0] == told.begins_ns
    assert edges[-1][1] == told.ends_ns
    assert all(before[1] == after[0] for before, after in pairwise(edges))


@pytest.mark.parametrize(("qos", "delay", "rate", "words"), [
    (1, "50 ms", "1 Gbit/s", "its in-flight window was full (`mqtt.max_inflight`) until PUBACK("),
    (0, "1 ms", "64 kbit/s", "its socket was full"),
], ids=["window", "socket"])
def test_a_wait_in_a_session_has_the_cause_that_its_frames_show(
    qos: int, delay: str, rate: str, words: str, tmp_path: Path,
) -> None:
    line = {"delay": delay, "rate": rate}
    plan = compile_plan(parse_values({
        "name": "waits", "backend": "sim", "mqtt": {"max_inflight": 1},
        "phases": {"duration": "3 s", "cool_down": "60 s"},
        "hosts": {"field": {"tcp": {"send_buffer": "5 kB"}}, "broker": {"tcp": {"receive_buffer": "5 kB"}}},
        "networks": [{"between": ["field", "broker"], "up": line, "down": line}],
        "groups": [{"name": "p", "host": "field", "nagle": False,
                    "publish": {"topic": "t", "qos": qos, "payload": "500 B", "rate": "40 /s"}},
                   {"name": "s", "host": "broker", "subscribe": [{"filter": "t", "qos": 0}]}]}))
    perform(Job(plan, tmp_path / "run"), lambda event: None)
    told = story(Recording.open(tmp_path / "run"))
    said = cause(told)
    assert said.startswith("Waited ") and words in said and "not connected" not in said, said
    [wait] = [span for span in told.spans if span.part == "session_ns"]
    came = Happening(at_ns=wait.to_ns - 1, host=wait.host, text=f"{told.names['publisher']} is connected")
    assert ": it was not connected." in cause(replace(told, happenings=(came,)))
    # The subscriber's connection is not the publisher's.
    other = Happening(at_ns=wait.to_ns - 1, host=wait.host, text=f"{told.names['subscriber']} is connected")
    assert cause(replace(told, happenings=(other,))) == said


def test_no_two_labels_of_a_slot_meet() -> None:
    slots = [("a", "left"), ("a", "right"), ("b", "left")]
    instants = [0, 1, 2, 3, 50_000, 50_001, 9_000_000_000]
    labels = [Place(slot=slot, at_ns=at, lines=1 + at % 2, above=above)
              for slot in slots for at in instants for above in (True, False)]
    pixels = scale(instants, labels)
    assert sorted(pixels.values()) == [pixels[instant] for instant in instants]
    boxes = {
        label: (pixels[label.at_ns] - label.lines * LINE, pixels[label.at_ns]) if label.above
        else (pixels[label.at_ns], pixels[label.at_ns] + label.lines * LINE) for label in labels}
    for one, other in combinations(labels, 2):
        if one.slot == other.slot:
            assert boxes[one][1] <= boxes[other][0] + 1e-9 or boxes[other][1] <= boxes[one][0] + 1e-9
    assert CLEAR > 0


def test_the_picture_has_an_arrow_a_frame_and_every_text_within_it(tmp_path: Path) -> None:
    told = story(held().write(tmp_path))
    root = ElementTree.fromstring(Ladder(told).draw())
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    arrows = [line for line in root.iter(f"{SVG}line") if line.find(f"{SVG}title") is not None]
    assert len(arrows) == len(told.arrows)
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.attrib["x"]) <= width
        assert 0 <= float(text.attrib["y"]) <= height
    # Time runs downwards.
    for arrow, line in zip(told.arrows, arrows, strict=True):
        assert (float(line.attrib["y2"]) > float(line.attrib["y1"])) == (arrow.ended_ns > arrow.sent_ns)


def test_the_page_is_whole_in_itself(tmp_path: Path) -> None:
    told = story(lost().write(tmp_path))
    page, drawing = write(told, tmp_path, "explain-0-0")
    text = page.read_text(encoding="utf-8")
    assert head(told) in text
    assert re.search(r'(src|href)="', text) is None
    # A telephone shows it at its size, and a dark system in the dark; the picture shrinks a little, then scrolls.
    assert 'name="viewport"' in text and "prefers-color-scheme:dark" in text
    assert re.search(r"figure\{[^}]*overflow-x:auto\}", text)
    assert re.search(r'<div style="max-width:\d+px;min-width', text)
    ElementTree.fromstring(drawing.read_text(encoding="utf-8"))


def explain(*words: str) -> Result:
    return CliRunner().invoke(main, ["explain", *words])


def test_the_command_explains_a_message_by_name_and_writes_its_page(tmp_path: Path) -> None:
    held().write(tmp_path)
    done = explain(str(tmp_path), "--message", "p-0:0@s-0")
    assert done.exit_code == 0, done.stderr
    assert "Held for 40.0 ms by Nagle's algorithm" in done.stdout
    assert (tmp_path / "explain-0-0.html").is_file()
    assert (tmp_path / "explain-0-0.svg").is_file()


@pytest.mark.parametrize(("message", "words"), [
    ("0", "write PUBLISHER:SEQUENCE"), ("nobody:0", "there is no client 'nobody'"), ("0:9", "there is none"),
    ("0:1", "it is lost (a later message arrived before it)"), ("0:2", "it is still under way"),
])
def test_a_message_that_cannot_be_explained_is_refused(tmp_path: Path, message: str, words: str) -> None:
    told = held()
    told.message(0, 0, 0, None, sequence=1, fate="lost", cause="overtaken")
    told.message(0, 0, 0, None, sequence=2, fate="under_way")
    told.write(tmp_path)
    done = explain(str(tmp_path), "--message", message)
    assert done.exit_code == 2
    assert words in done.stderr


def test_a_run_without_packets_says_why_it_cannot_be_explained(tmp_path: Path) -> None:
    write_messages(tmp_path, [Message(sequence=0)])
    done = explain(str(tmp_path))
    assert done.exit_code == 2
    assert "packets were not recorded" in done.stderr


def test_rows_are_found_by_a_number_as_a_filter_finds_them() -> None:
    numbers = [7, None, 0, 7, 3, 2**40, 0, 7]
    table = pl.DataFrame({"number": numbers, "row": range(len(numbers))})
    lookup = Lookup(table, "number")
    for number in (0, 1, 3, 7, 2**40, 2**41):
        assert lookup.of(number).equals(table.filter(pl.col("number") == number)), number
    assert Lookup(table.head(0), pl.col("number") * 2).of(0).is_empty()


@pytest.mark.parametrize("around_ns", [0, 1_000_000, 100_000_000])
def test_of_a_message_so_much_is_read_before_and_after_it_that_its_story_is_whole(
    around_ns: int, monkeypatch: pytest.MonkeyPatch,
) -> None:
    recording = Recording.open(SIMULATED)
    whole = evidence(recording)
    legs = recording.collect(explainable(recording))["leg"].to_list()[::11]
    monkeypatch.setattr(sys.modules[evidence.__module__], "AROUND_NS", around_ns)
    read = 0
    for leg in legs:
        few = evidence(recording, [leg])
        read += few.transport.packets.height
        assert tell(recording, few, leg) == tell(recording, whole, leg)
    assert 0 < read < len(legs) * whole.transport.packets.height / 2


def test_what_was_sent_before_the_time_that_is_read_may_be_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    recording = held().write(tmp_path)
    whole = story(recording)
    awaited = whole.releases[0].awaited
    assert awaited is not None
    leg = evidence(recording).legs.sort("latency_ns")["leg"][-1]
    begins_after_ns = awaited.sent_ns + 1 - evidence(recording).legs["begins_ns"].min()
    monkeypatch.setattr(sys.modules[evidence.__module__], "AROUND_NS", -begins_after_ns)
    few = evidence(recording, [leg])
    assert cause(tell(recording, few, leg)) == cause(whole)


@pytest.mark.parametrize(("lost", "said"), [
    # It said only how many, and the ladder alone said why.
    (["nat forgot"] * 17, "17 lost frames: the NAT had forgotten the connection"),
    (["random loss", "queue full", "random loss"], "3 lost frames: 2 random loss, 1 its queue was full"),
    # A capture does not know why.
    (["dropped", "random loss"], "2 lost frames: 1 random loss"), (["dropped"], "1 lost frame"),
    ([], "no lost frame was recorded"),
])
def test_lost_frames_have_their_causes_as_far_as_they_are_known(lost: list[str], said: str) -> None:
    arrows = [SimpleNamespace(lost=one) for one in [*lost, None]]
    assert words._frames(cast(Any, SimpleNamespace(arrows=arrows))) == said
    told = words._missing(cast(Any, SimpleNamespace(arrows=arrows)))
    assert (f"({said})" in told) is bool(lost)


def test_a_wait_of_minutes_is_said_in_minutes() -> None:
    """It said 1085.63 s."""
    assert [words.ms(ns) for ns in (9_999_000_000, 32_640_000_000, 1_085_630_000_000)] == [
        "9999.0 ms", "32.6 s", "18.1 min"]
