"""What was sent again, and what for, in conversations of which both ends are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqttlab import metrics
from mqttlab.recording import Recording
from recordings import Message, segment, write

SYN, FIN, ACK = 2, 1, 16
# Both sides' first numbers wrap soon.
ISN = 2**32 - 150


class Sender:
    """A client that sends segments of 100 B, 20 ms from a broker that acknowledges as it is told."""

    def __init__(self) -> None:
        self.packets: list[dict[str, Any]] = []
        self.repetitions = 0
        self.fresh = 0
        self.segment(0, 0, 1, flags=SYN)
        self.ack(20, 1)

    def segment(self, at: float, start: int, size: int, *, lost: bool = False, flags: int = ACK, **more: Any) -> int:
        again = start < self.fresh
        self.repetitions += again
        self.fresh = max(self.fresh, start + size)
        payload = size - bool(flags & (SYN | FIN))
        return self._row(at, seq=(ISN + start) % 2**32, payload=payload, lost=lost, flags=flags,
                         repetition=self.repetitions if again else 0, **more)

    def ack(self, at: float, number: int, *sack: tuple[int, int], lost: bool = False) -> int:
        blocks = " ".join(f"{(ISN + a) % 2**32}-{(ISN + b) % 2**32}" for a, b in sack)
        return self._row(at, up=False, seq=7, ack=(ISN + number) % 2**32, sack=blocks or None, lost=lost)

    def _row(self, at: float, **more: Any) -> int:
        self.packets.append(segment(at, frame=len(self.packets), **more))
        return len(self.packets) - 1

    def kinds(self, directory: Path) -> dict[int, str]:
        run = write(directory / "run", [Message(0)], packets=self.packets)
        return dict(metrics.sent_again(Recording.open(run)).rows())


@pytest.fixture
def sender() -> Sender:
    return Sender()


def test_after_a_selective_acknowledgement_beyond_it_a_segment_is_sent_again_fast(
        sender: Sender, tmp_path: Path) -> None:
    sender.segment(40, 1, 100, lost=True)
    sender.segment(41, 101, 100)
    sender.ack(61, 1, (101, 201))
    again = sender.segment(82, 1, 100)
    assert sender.kinds(tmp_path) == {again: "fast"}


def test_what_left_at_the_same_instant_but_behind_it_was_sent_later(sender: Sender, tmp_path: Path) -> None:
    sender.segment(40, 1, 100, lost=True)
    sender.segment(40, 101, 100)
    sender.segment(40, 201, 100)
    sender.ack(60, 1, (101, 301))
    again = sender.segment(81, 1, 100)
    assert sender.kinds(tmp_path) == {again: "fast"}


def test_what_had_not_come_back_when_it_left_is_no_reason(sender: Sender, tmp_path: Path) -> None:
    sender.segment(40, 1, 100, lost=True)
    sender.segment(41, 101, 100)
    sender.ack(61, 1, (101, 201))
    again = sender.segment(80, 1, 100)
    assert sender.kinds(tmp_path) == {again: "timer_or_probe"}


def test_a_lost_acknowledgement_is_no_reason_and_the_repetition_is_spurious(sender: Sender, tmp_path: Path) -> None:
    sender.segment(40, 1, 100)
    sender.ack(60, 101, lost=True)
    again = sender.segment(300, 1, 100)
    assert sender.kinds(tmp_path) == {again: "spurious"}


def test_a_repetition_that_left_before_the_first_copy_had_arrived_is_not_spurious(
        sender: Sender, tmp_path: Path) -> None:
    sender.segment(40, 1, 100, delay_ms=500)
    again = sender.segment(300, 1, 100)
    assert sender.kinds(tmp_path) == {again: "timer_or_probe"}


def test_old_evidence_does_not_make_the_second_repetition_fast(sender: Sender, tmp_path: Path) -> None:
    sender.segment(40, 1, 100, lost=True)
    sender.segment(41, 101, 100)
    sender.ack(61, 1, (101, 201))
    first = sender.segment(82, 1, 100, lost=True)
    second = sender.segment(300, 1, 100)
    assert sender.kinds(tmp_path) == {first: "fast", second: "timer_or_probe"}


def test_new_evidence_makes_the_second_repetition_fast(sender: Sender, tmp_path: Path) -> None:
    sender.segment(40, 1, 100, lost=True)
    sender.segment(41, 101, 100)
    sender.ack(61, 1, (101, 201))
    first = sender.segment(82, 1, 100, lost=True)
    sender.segment(83, 201, 100)
    sender.ack(103, 1, (101, 301))
    second = sender.segment(124, 1, 100)
    assert sender.kinds(tmp_path) == {first: "fast", second: "fast"}


def test_another_repetition_that_was_acknowledged_is_a_reason_too(sender: Sender, tmp_path: Path) -> None:
    sender.segment(40, 1, 100, lost=True)
    sender.segment(41, 101, 100, lost=True)
    sender.segment(42, 201, 100)
    sender.ack(62, 1, (201, 301))
    first = sender.segment(83, 101, 100, lost=True)
    other = sender.segment(84, 1, 100)
    sender.ack(105, 101, (201, 301))
    second = sender.segment(126, 101, 100)
    assert sender.kinds(tmp_path) == {first: "fast", other: "fast", second: "fast"}


def test_three_equal_acknowledgements_do_without_selective_ones(sender: Sender, tmp_path: Path) -> None:
    sender.segment(40, 1, 100, lost=True)
    for n in range(3):
        sender.segment(41 + n, 101 + 100 * n, 100)
        sender.ack(61 + n, 1)
    early, late = 62 + 20, 64 + 20
    # The handshake's acknowledgement had the number first; then come the three.
    before = sender.segment(early + 0.5, 1, 100, lost=True)
    assert sender.kinds(tmp_path / "two") == {before: "timer_or_probe"}
    sender.packets.pop()
    sender.repetitions = 0
    after = sender.segment(late, 1, 100)
    assert sender.kinds(tmp_path / "three") == {after: "fast"}


def test_a_syn_and_a_fin_are_sent_again_too(tmp_path: Path) -> None:
    sender = Sender()
    sender.packets.clear()
    sender.repetitions = sender.fresh = 0
    sender.segment(0, 0, 1, flags=SYN, lost=True)
    syn = sender.segment(1000, 0, 1, flags=SYN)
    sender.ack(1020, 1)
    sender.segment(1040, 1, 1, flags=FIN | ACK, lost=True)
    fin = sender.segment(1300, 1, 1, flags=FIN | ACK)
    assert sender.kinds(tmp_path) == {syn: "timer_or_probe", fin: "timer_or_probe"}


def test_a_repetition_of_parts_that_had_arrived_one_by_one_is_spurious(sender: Sender, tmp_path: Path) -> None:
    sender.segment(40, 1, 100)
    sender.segment(41, 101, 100, lost=True)
    half = sender.segment(300, 101, 100)
    whole = sender.segment(700, 1, 200)
    assert sender.kinds(tmp_path) == {half: "timer_or_probe", whole: "spurious"}


def test_without_an_earlier_copy_nothing_can_be_said(sender: Sender, tmp_path: Path) -> None:
    sender.fresh = 5_000
    again = sender.segment(40, 1_000, 100)
    assert sender.kinds(tmp_path) == {again: "unknown"}


def test_the_copy_that_a_link_makes_is_not_sent_again_but_brings_what_it_carries(
        sender: Sender, tmp_path: Path) -> None:
    lost = sender.segment(40, 1, 100, lost=True)
    copy = {**sender.packets[lost], "frame": 99, "fate": "duplicated", "cause": None,
            "delivered_ns": sender.packets[lost]["entered_ns"] + 5_000_000}
    sender.packets.append(copy)
    again = sender.segment(300, 1, 100)
    assert sender.kinds(tmp_path) == {again: "spurious"}
