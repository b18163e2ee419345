"""Every sentence that names a cause, or sends somebody to a log, with what it needs to be said: no cause by guess.

The sentences are found in the source by their words. One that is not in the table fails the test: whoever adds it says
which evidence of the recording, the system or the scenario it rests on, or says instead that the cause is not known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CAUSE = re.compile(
    r"\bbecause\b|\b(?:too|is|was|were) busy\b|\b(?:broker|server|gateway|proxy)'s log|\bstood still\b|\bowing to\b|"
    r"\bmore was sent than\b|\b(?:is|was|were) full\b|\bcaused by\b|\bwho else publishes\b|\bthe machine is\b")

# By file: a part of the sentence, and what it needs.
EVIDENCE: dict[str, list[tuple[str, str]]] = {
    "python/mqttlab/calibration.py": [
        ("for which the broker was busy", "service times between a packet's arrival and its copies, in the frames")],
    "python/mqttlab/cli/doctor.py": [
        ("delays are late by milliseconds", "said of a capability that is missing, before any run")],
    "python/mqttlab/comparison/words.py": [
        ("its queue was full",
         "the cause `publisher_queue` in the table of messages, which the client writes when it drops one")],
    "python/mqttlab/metrics/headline.py": [
        ("no connection, or the client's queue was full",
         "messages with the fate unsent: both ways are named, neither chosen")],
    "python/mqttlab/metrics/catalogue.py": [
        ("Offered messages that were not", "a definition, which names both ways"),
        ("because a client subscribed", "a definition: RETAIN is set in the delivery (MQTT 3.1.1, 3.3.1.3)"),
        ("the transmitter was busy", "a definition: transmission times of a link's frames"),
        ("because all clients of their hosts slept", "a definition: the sleeping clients' own rows")],
    "python/mqttlab/metrics/attribution/__init__.py": [
        ("because the scenario did not ask for them",
         "`recording.detail` of the plan; the other way is named beside it")],
    "python/mqttlab/export/pcapng.py": [
        ("because the network was direct", "the recording has no frames; both ways to that are named")],
    "python/mqttlab/figures/run.py": [("the transmitter is busy", "a title: transmission times of a link's frames")],
    "python/mqttlab/mistaken.py": [("is a broker's log", "the first lines of the file")],
    "python/mqttlab/reference.py": [
        ("The report names two cases", "a definition: cool-down and p99 of the flow"),
        ("On a busy machine", "a measurement that the page describes")],
    "python/mqttlab/report/text.py": [
        ("see who else publishes there",
         "deliveries without a publisher of the run, and a broker elsewhere that others reach")],
    # The parts of a latency come from frames; what a part's sentence names must be in the frames or events as well.
    "python/mqttlab/explanation/words.py": [
        ("until a segment was full", "Nagle's part ended by data, without an acknowledgement"),
        ("the publisher was late", "the part between intended time and write, of a live run"),
        ("inside the gateway: it was busy", "the part inside the gateway; the ways to it are named, none chosen"),
        ("more was sent than", "the part in a link's queue"),
        ("inside the broker: it was busy", "the part inside the broker; the ways to it are named, none chosen"),
        ("until the application read it", "the part between arrival at the host and the read"),
        ("whether the machine was too busy, the timing in the report tells", "none: it says where to look; live only"),
        ("its in-flight window was full", "an acknowledgement within the wait that makes room, with its frame"),
        ("its socket was full", "QoS 0, which has no window"),
        ("its in-flight window or its socket was full", "no frame tells which: both are named")],
    "crates/import/src/completeness.rs": [
        ("the messages are not imported, because", "TLS records in the capture, and whether keys were given"),
        ("because several had the same content", "the contents of the PUBLISH packets")],
    "crates/import/src/tools/unread.rs": [("import the broker's log", "the form of the file's lines")],
    "crates/capture/src/metrics/table.rs": [
        ("because they came within the initial round trip", "a definition of Wireshark's: times of the segments")],
    "crates/live/src/doctor.rs": [("if the machine is busy, try again", "a trial before any run: a condition")],
    "crates/live/src/host/server_stalls.rs": [
        ("see whether the disk is full or slow", "the server's thread waited for a disk, by the kernel's counters")],
    "crates/live/src/network/loopback_capture.rs": [
        ("because this program did not read them in time",
         "the kernel's count of frames dropped at the capture's full buffer")],
    "crates/live/src/processes/broker_log.rs": [
        ("because their queues were full", "the broker's log line of dropped messages, by client")],
    "crates/live/src/verdict/server_silences.rs": [
        ("it stood still, had too much to do",
         "silence of the server while TCP of its host acknowledged; the ways are named"),
        ("stood still is not known", "TCP acknowledged nothing, or could not be asked: said to be unknown")],
    "crates/live/src/verdict/validity.rs": [
        ("because the emulator did not read them in time",
         "drops of the ring that the emulator reads, and the scheduler's counters"),
        ("because this program may open no more files", "EMFILE of the system"),
        ("because nothing listened", "ECONNREFUSED of the system, at a broker that had served")],
    # Of live runs and of brokers elsewhere: these have a log. The verdict does not say it of simulations.
    "crates/net/src/fate.rs": [
        ("its queue was full", "the cause `queue_full` of a frame, from the link that dropped it")],
    "crates/rows/src/rows.rs": [
        ("the broker's queue was full",
         "the cause `queue_full`, from the simulated broker or from a line of a broker's log")],
    "crates/scenario/src/files.rs": [("is a broker's log", "the first lines of the file")],
    "crates/recording/src/refusals.rs": [
        ("see the broker's log", "what the client was told, word for word, beside it"),
        ("the broker's log, or give them more time", "no answer in time"),
        ("see the gateway's log", "the gateway's refusal")],
    "crates/recording/src/validity.rs": [
        ("their subscriptions were never accepted", "connected clients without a SUBACK"),
        ("see the broker's log, or ", "the same, live only"),
        ("no client was connected any more", "the clients' own rows at the end"),
        ("stood still", "deliveries under way long after all others had come"),
        ("none was told why", "clients without a connection and without a reason")],
}


def test_every_sentence_with_a_cause_says_what_it_rests_on() -> None:
    found = [*python_sentences(), *rust_sentences()]
    without = [(place, words[:120]) for place, words in found
               if not any(part in words for part, _ in EVIDENCE.get(place, []))]
    assert without == []
    assert len(found) > 30, "the sentences are found at all"


def test_sentences_of_causes_are_found_by_their_words() -> None:
    for words in ("Nothing came, because it rained", "it was busy", "see the server's log", "it was full"):
        assert CAUSE.search(words), words
    assert not CAUSE.search("Waited 3 ms in the broker's socket.")


def python_sentences() -> Iterator[tuple[str, str]]:
    """Texts of the package but docstrings, with ``{}`` for what is filled in. Studies have claims instead."""
    for path in sorted((ROOT / "python" / "mqttlab").rglob("*.py")):
        place = path.relative_to(ROOT).as_posix()
        if "/studies/" in place:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        skipped |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if id(node) not in skipped and CAUSE.search(words := text(node)):
                yield place, words


def text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return ""


def rust_sentences() -> Iterator[tuple[str, str]]:
    """Strings of the engine, without comments and unit tests."""
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        source = path.read_text(encoding="utf-8").split("#[cfg(test)]")[0]
        source = re.sub(r"(?m)^\s*//.*$", "", source)
        for literal in re.finditer(r'"((?:[^"\\]|\\.)*)"', source, re.DOTALL):
            if CAUSE.search(words := re.sub(r"\\\n\s*", "", literal[1])):
                yield path.relative_to(ROOT).as_posix(), words
