"""Captures of a slow link, taken at one place, at both, or with the times of senders: what is said of where the time
went is what the run knows, or that it is not told.
"""

from __future__ import annotations

import html
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from captures import Wire, pair, publish
from commands import mqttlab
from live import able
from mqttlab import metrics
from mqttlab.calibration import CalibrationError, calibrate
from mqttlab.comparison.messages import ByMessage
from mqttlab.comparison.words import what_happened
from mqttlab.dashboard.pages import overview
from mqttlab.explanation import words
from mqttlab.explanation.story import Story, tell
from mqttlab.export.pcapng import pcapng
from mqttlab.imports import import_evidence
from mqttlab.metrics import PARTS, attribution
from mqttlab.metrics.attribution import evidence, intervals
from mqttlab.recording import Recording
from mqttlab.report import captured, cards, headline
from mqttlab.report.answer import lines
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse_values
from test_import_messages import read as import_of

Values = dict[str, Any]
SLOW = {"rate": "200 kbit/s", "delay": "20 ms"}
BROKER = ("broker_ns", "broker_window_ns", "broker_nagle_ns", "broker_socket_ns")
TO_BROKER = ("queue_to_broker_ns", "wire_to_broker_ns", "retransmission_to_broker_ns")
TO_SUBSCRIBER = ("queue_to_subscriber_ns", "wire_to_subscriber_ns", "retransmission_to_subscriber_ns")
BEYOND, AFTER = "beyond the place of capture, in the broker or on the way", "after its first capture, on the way"
# What a tap and a client's socket or the emulator's clock may differ by on a busy machine; a way takes 34 ms.
NEAR_MS = 8.0


def scenario(qos: int, rate: str, *groups: Values, up: Values | None = None, down: Values | None = None) -> Values:
    """Devices that publish over a slow link to one that is behind it, too."""
    return {
        "name": "slow", "phases": {"warm_up": "1 s", "duration": "4 s", "cool_down": "20 s"},
        "networks": [{"between": ["field", "broker"], "link": "shared", "up": up or SLOW, "down": down or SLOW}],
        "groups": [
            {"name": "meters", "host": "field", "count": 2, "nagle": False,
             "publish": {"topic": "m/{client}", "qos": qos, "payload": "300 B", "rate": rate}},
            {"name": "desk", "host": "field", "nagle": False, "subscribe": [{"filter": "m/#", "qos": qos}]}, *groups],
        "broker": {"nagle": False},
    }


def run(values: Values, directory: Path) -> Recording:
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda event: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def read(directory: Path, *files: Path, options: tuple[str, ...] = ()) -> Recording:
    outcome = import_evidence("capture", files, directory, lambda line: None, options=options)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def place(recording: Recording) -> Values:
    told: Values = recording.run["details"]["import"]["captured_at"]
    return told


def means(recording: Recording) -> dict[str, float]:
    """Mean times of parts of all deliveries, in ms."""
    table = attribution(recording)
    assert table["unattributed"].null_count() == table.height
    return {part: float(table[part].mean() or 0) / 1e6 for part in PARTS}  # type: ignore[arg-type]


def together(parts: dict[str, float], *names: str) -> float:
    return sum(parts[name] for name in names)


def slowest(recording: Recording) -> Story:
    leg = int(attribution(recording)["latency_ns"].arg_max() or 0)
    return tell(recording, evidence(recording, [leg]), leg)


def assert_spans_are_the_parts(recording: Recording) -> None:
    """What ``explain`` shows of some messages is what the tables say of them."""
    some = list(range(0, attribution(recording).height, 7))
    known = evidence(recording, some)
    legs = known.legs.filter(pl.col("leg").is_in(some))
    spans = intervals(legs, known.holds).with_columns(took=pl.col("to_ns") - pl.col("from_ns"))
    for part in PARTS:
        shown = spans.filter(part=part)["took"].sum()
        assert shown == legs[part].sum(), part


def senders(run: Recording, directory: Path) -> Path:
    """A capture in which each frame has the time of its sender: other formats have room for one time."""
    directory.mkdir(exist_ok=True)
    own, file = directory / "own.pcapng", directory / "senders.pcap"
    pcapng(run, own)
    subprocess.run(["editcap", "-F", "pcap", own, file], check=True, capture_output=True, timeout=60)
    return file


@pytest.mark.parametrize(("qos", "rate", "up", "down"), [
    (0, "40 /s", None, None), (1, "40 /s", None, None), (2, "15 /s", None, None),
    # A way that is short in one direction looks like that of a capture near an end.
    (0, "40 /s", {"rate": "200 kbit/s", "delay": "1 ms"}, {"rate": "200 kbit/s", "delay": "80 ms"}),
    (0, "40 /s", {"rate": "200 kbit/s", "delay": "80 ms"}, {"rate": "200 kbit/s", "delay": "1 ms"}),
    (1, "40 /s", {"rate": "200 kbit/s", "delay": "0 ms"}, {"rate": "200 kbit/s", "delay": "0 ms"}),
])
def test_with_the_times_of_senders_no_part_is_the_brokers(
    qos: int, rate: str, up: Values | None, down: Values | None, tmp_path: Path,
) -> None:
    values = scenario(qos, rate, up=up, down=down) | {"backend": "sim"}
    file = senders(run(values, tmp_path / "run"), tmp_path / "files")
    recording = read(tmp_path / "again", file)
    told, parts = place(recording), means(recording)
    assert (told["at_clients"], told["at_broker"]) == (False, False), told
    assert together(parts, *BROKER, "sender_nagle_ns", "sender_socket_ns", "session_ns") == 0
    assert parts["undivided_ns"] > 0
    story = slowest(recording)
    said = " ".join([*lines(headline.told(recording)), words.cause(story), *words.ladder(story)])
    for wrong in ("inside the broker", "broker's socket", "by Nagle's", "between clients", "sender's socket"):
        assert wrong not in said
    # At QoS 2 the PUBREL shows for what a message waited.
    assert qos == 2 or (words.cause(story).startswith("Spent ") and BEYOND in words.cause(story))
    assert "captured away from both ends" in headline.told(recording).timing
    assert any("cannot be told apart" in text for text in recording.run["warnings"])
    assert_spans_are_the_parts(recording)
    with pytest.raises(CalibrationError, match="was imported"):
        calibrate(recording)


def test_whoever_says_another_place_is_contradicted_by_round_trips(tmp_path: Path) -> None:
    file = senders(run(scenario(1, "15 /s") | {"backend": "sim"}, tmp_path / "run"), tmp_path / "files")
    for end, name in (("broker", "the broker"), ("clients", "the clients")):
        recording = read(tmp_path / end, file, options=("--captured-at", end))
        assert [f"said to be taken at {name}, but no round trip to {name} takes less" in text
                for text in recording.run["warnings"]].count(True) == 1
        assert ", as was said" in place(recording)["in_words"]


def tap(name: str, host: str, file: Path) -> Values:
    """A capture of all interfaces of a host while the run goes on."""
    line = f"exec dumpcap -q -i any -f 'tcp port 1883' -w {file} 2>&1"
    return {"name": name, "host": host, "client": {"command": ["sh", "-c", line], "ready_line": "File:"}}


@pytest.fixture(scope="module")
def tapped(tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Path, Path]:
    """A live run over a slow link, with a capture at each of its ends."""
    if reason := able():
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("taps")
    files = directory / "files"
    files.mkdir()
    # dumpcap gives up root, and must write all the same.
    files.chmod(0o777)
    for parent in (directory, directory.parent, directory.parent.parent):
        parent.chmod(parent.stat().st_mode | 0o055)
    field, broker = files / "field.pcapng", files / "broker.pcapng"
    taps = (tap("tap-field", "field", field), tap("tap-broker", "broker", broker))
    return run(scenario(1, "18 /s", *taps), directory / "run"), field, broker


@pytest.mark.live
def test_a_capture_at_the_clients_does_not_divide_what_is_beyond_it(
    tapped: tuple[Recording, Path, Path], tmp_path: Path,
) -> None:
    known, field, _ = tapped
    recording = read(tmp_path / "field", field)
    told, ours, parts = place(recording), means(known), means(recording)
    assert (told["place"], told["at_clients"], told["at_broker"]) == ("clients", True, False)
    assert together(parts, *BROKER) == 0
    beyond = together(ours, *TO_BROKER, *BROKER, *TO_SUBSCRIBER)
    assert parts["undivided_ns"] == pytest.approx(beyond, abs=NEAR_MS)
    cause = words.cause(slowest(recording))
    assert cause.startswith("Spent ") and BEYOND in cause
    [flow] = headline.told(recording).numbers.flows
    assert all(BEYOND in said for said in headline.where_the_time_went(flow))
    assert_spans_are_the_parts(recording)


@pytest.mark.live
def test_a_capture_at_the_broker_has_the_brokers_own_time(
    tapped: tuple[Recording, Path, Path], tmp_path: Path,
) -> None:
    known, _, broker = tapped
    recording = read(tmp_path / "broker", broker)
    told, ours, parts = place(recording), means(known), means(recording)
    assert (told["place"], told["at_clients"], told["at_broker"]) == ("broker", False, True)
    assert together(parts, *BROKER) == pytest.approx(together(ours, *BROKER), abs=NEAR_MS)
    assert together(parts, "sender_nagle_ns", "sender_socket_ns", "undivided_ns") == 0
    # The first message is taken for one that was sent in time: what later ones took longer is before the capture.
    assert parts["schedule_ns"] < together(ours, "queue_to_broker_ns") + NEAR_MS
    assert metrics.part_titles(recording)["schedule_ns"] == "before capture"
    assert_spans_are_the_parts(recording)


@pytest.mark.live
@pytest.mark.parametrize("turned", [False, True])
def test_captures_at_both_ends_divide_the_last_way_alone(
    turned: bool, tapped: tuple[Recording, Path, Path], tmp_path: Path,
) -> None:
    known, *files = tapped
    recording = read(tmp_path / "both", *(reversed(files) if turned else files))
    told, ours, parts = place(recording), means(known), means(recording)
    assert (told["place"], told["at_clients"], told["at_broker"]) == ("several", False, False)
    assert together(parts, *BROKER) == 0
    assert parts["undivided_ns"] == pytest.approx(together(ours, *TO_BROKER, *BROKER), abs=NEAR_MS)
    assert parts["delivery_ns"] == pytest.approx(together(ours, *TO_SUBSCRIBER), abs=NEAR_MS)
    cause = words.cause(slowest(recording))
    assert BEYOND in cause and AFTER in cause and "application" not in cause
    assert_spans_are_the_parts(recording)


@pytest.mark.parametrize("seconds", ["4 s", "15 s"])
def test_of_several_flows_the_first_screen_has_the_cause_of_each(seconds: str, tmp_path: Path) -> None:
    lossy = {**SLOW, "loss": "2 %"}
    flows = [("alpha", "field", 0, "field"), ("beta", "broker", 1, "field"), ("gamma", "field", 2, "broker")]
    groups = [group for name, at, qos, to in flows for group in (
        {"name": name, "host": at, "publish": {"topic": name, "qos": qos, "payload": "300 B", "rate": "10 /s"}},
        {"name": f"for-{name}", "host": to, "subscribe": [{"filter": name, "qos": qos}]})]
    ours = run(scenario(0, "1 /s", down=lossy) | {
        "groups": groups, "backend": "sim", "phases": {"duration": seconds, "cool_down": "20 s"}}, tmp_path / "run")
    again = read(tmp_path / "again", senders(ours, tmp_path / "files"))
    own = read(tmp_path / "own", tmp_path / "files" / "own.pcapng")
    for recording in (ours, again, own):
        told = headline.told(recording)
        printed = lines(told)
        assert len(printed) <= 20
        [first] = [number for number, line in enumerate(printed) if line.startswith("time ")]
        said = " ".join(line.strip() for line in printed[first:])
        which = "faster half" if seconds == "4 s" else "slowest 1 %"
        page, shown = cards.section(recording), str(overview.part(recording))
        for flow in told.numbers.flows:
            assert f"{headline.title(flow)}: " in said
            assert headline.largest_part(flow) in said and f"of the {which}, " in headline.largest_part(flow)
            [words_of_it] = headline.causes([flow])
            assert words_of_it in html.unescape(page) and words_of_it in shown


def test_the_first_screen_of_an_import_names_a_replay_that_works_when_copied(tmp_path: Path) -> None:
    ours = run(scenario(1, "10 /s") | {"backend": "sim"}, tmp_path / "run")
    file = senders(ours, tmp_path / "files")
    done = mqttlab("import", "capture", str(file), "--output", "it's captured", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [command] = [line.removeprefix("what if ").strip() for line in done.stdout.splitlines()
                 if line.startswith("what if ")]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    said = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, check=True, capture_output=True,
                          text=True, timeout=120).stdout
    count = Recording.open(tmp_path / "it's captured").messages.height
    assert f"publish up to {count} messages of" in " ".join(said.split())
    [again] = (tmp_path / "runs").glob("try-*")
    assert Recording.open(again).messages.filter(fate="delivered").height == count > 0
    assert "what if " not in mqttlab("run", "--help").stdout + mqttlab("try", "--simulate", cwd=tmp_path).stdout


def test_an_import_without_a_known_publisher_has_nothing_to_replay(tmp_path: Path) -> None:
    wire = Wire()
    publisher, subscriber = pair(wire)
    assert not captured.what_if(import_of(wire, tmp_path), "here")
    publisher.up(publish("t", b"1"))
    subscriber.down(publish("t", b"1"))
    (tmp_path / "more").mkdir()
    assert "--clients 1 --duration 1s" in captured.what_if(import_of(wire, tmp_path / "more"), "here")


def test_recordings_that_divide_latencies_in_other_ways_are_not_compared_by_parts(tmp_path: Path) -> None:
    runs = {seed: run(scenario(1, "15 /s", up=fast) | {"backend": "sim", "seed": 1}, tmp_path / f"run-{seed}")
            for seed, fast in ((1, SLOW), (2, {"rate": "200 kbit/s", "delay": "40 ms"}))}
    files = {seed: senders(one, tmp_path / f"files-{seed}") for seed, one in runs.items()}
    first, second = (read(tmp_path / f"again-{seed}", file) for seed, file in files.items())
    alike, other = ByMessage(first, second, 1.0), ByMessage(runs[1], second, 1.0)
    assert alike.different.height > 0 and other.different.height > 0
    assert other.different["part"].null_count() == other.different.height
    said = {what for row in alike.different.iter_rows(named=True) for what in what_happened(alike, row)}
    assert any("'beyond capture' changed most: +" in what for what in said)
    assert not any("'broker'" in what for what in said)
