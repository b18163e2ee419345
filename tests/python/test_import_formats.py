"""Formats of capture files: what is read, and what is named with the program that makes a capture of it."""

from __future__ import annotations

import lzma
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from captures import Wire, assert_ten_measured, pair, send_ten
from commands import mqttlab
from mqttlab.imports import import_evidence
from mqttlab.recording import Recording
from mqttlab.report.text import verdict

EDITCAP = shutil.which("editcap")
READ_BY_EDITCAP = ["modpcap", "rh6_1pcap", "suse6_3pcap", "nokiapcap", "nsecpcap", "snoop", "netmon2"]
NAMED = {"5views": "5View", "ngsniffer": "Sniffer (DOS)", "ngwsniffer_2_0": "Sniffer or NetXray",
         "visual": "Visual Networks", "k12text": "K12", "lanalyzer": "LANalyzer"}


def conversation() -> Wire:
    wire = Wire()
    return send_ten(wire, *pair(wire, ("plant/#",)))


def assert_all_measured(file: Path, tmp_path: Path) -> None:
    outcome = import_evidence("capture", [file], tmp_path / "recording", lambda line: None)
    assert_ten_measured(Recording.open(outcome.directory))


@pytest.mark.parametrize("save", [
    lambda wire, path: wire.save_modified(path),
    lambda wire, path: wire.save_modified(path, more=12),
    lambda wire, path: wire.save_modified(path, magic=0xA1B2C3D4),
    lambda wire, path: wire.save_modified(path, magic=0xA1B2C3D4, more=4),
    lambda wire, path: wire.save_snoop(path),
], ids=["modified", "SuSE 6.3", "Red Hat 6.1", "Nokia", "snoop"])
def test_dialects_of_pcap_and_snoop_are_read(save: Callable[[Wire, Path], Path], tmp_path: Path) -> None:
    assert_all_measured(save(conversation(), tmp_path / "field.cap"), tmp_path)


@pytest.fixture
def ethernet(tmp_path: Path) -> Path:
    wire = conversation()
    wire.frames = [(at, bytes(12) + b"\x08\0" + packet) for at, packet in wire.frames]
    return wire.save(tmp_path / "field.pcap", link_type=1)


def converted(kind: str, file: Path) -> Path:
    assert EDITCAP is not None
    written = file.with_suffix(f".{kind}")
    subprocess.run([EDITCAP, "-F", kind, file, written], check=True, capture_output=True)
    return written


@pytest.mark.skipif(EDITCAP is None, reason="editcap is not installed")
@pytest.mark.parametrize("kind", READ_BY_EDITCAP)
def test_what_editcap_writes_is_read(kind: str, ethernet: Path, tmp_path: Path) -> None:
    assert_all_measured(converted(kind, ethernet), tmp_path)


@pytest.mark.skipif(EDITCAP is None, reason="editcap is not installed")
@pytest.mark.parametrize("kind", NAMED)
def test_other_formats_are_named_and_the_remedy_gives_a_capture(kind: str, ethernet: Path, tmp_path: Path) -> None:
    assert EDITCAP is not None
    file = converted(kind, ethernet)
    refused = mqttlab("import", "capture", file, "--output", tmp_path / "refused")
    assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1
    assert NAMED[kind] in refused.stderr
    names = {"IN": file, "OUT": tmp_path / "out.pcapng", "editcap": EDITCAP}
    remedy = refused.stderr.rstrip().rpartition("convert it with: ")[2].split()
    subprocess.run([names.get(word, word) for word in remedy], check=True, capture_output=True)
    assert mqttlab("import", "capture", tmp_path / "out.pcapng", "--output", tmp_path / "taken").returncode in (0, 3)


@pytest.mark.skipif(EDITCAP is None, reason="editcap is not installed")
def test_times_in_milliseconds_make_a_capture_not_valid(ethernet: Path, tmp_path: Path) -> None:
    file = converted("netmon1", ethernet)
    outcome = import_evidence("capture", [file], tmp_path / "recording", lambda line: None)
    recording = Recording.open(outcome.directory)
    assert verdict(recording)[0] != "valid"
    assert "whole milliseconds" in recording.run["validity"]["reasons"][0]


@pytest.mark.parametrize(("name", "content", "words"), [
    ("field.pcap.xz", lzma.compress(b"x"), "compressed with xz; unpack it first: unxz IN"),
    ("field.zip", b"PK\3\4" + bytes(40), "a ZIP archive; unpack it first (unzip IN) and name the files in it"),
    ("field.7z", b"7z\xbc\xaf\x27\x1c" + bytes(40), "a 7-Zip archive"),
    ("field.txt", b"0000  45 00 00 2c 03 e9 40 00\n", "a hex dump; make a capture of it with: text2pcap IN OUT"),
    ("field.json", b'[\n  {\n    "_index": "packets-2026",\n', "packets as JSON; give the capture that tshark made"),
    ("field.xml", b'<?xml version="1.0"?>\n<pdml version="0">', "packets as XML; give the capture"),
    ("field.txt", b"12:00:01.5 IP 10.0.0.1.4 > 10.0.0.2.1883: Flags [S]\n", "let it write the packets: tcpdump -w OUT"),
    ("field.etl", b"\0\0\1\0\x48\0\0\0" + bytes(60), "etl2pcapng"),
    ("field.ncf", b"\x3a\0\x3a\0\0\xe7" + bytes(60), "if it is a capture, convert it with: editcap -F pcapng IN OUT"),
])
def test_what_is_no_capture_is_refused_with_the_way_to_one(
    name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    refused = mqttlab("import", "capture", file, "--output", tmp_path / "recording")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert words in refused.stderr and len(refused.stderr.splitlines()) == 1, refused.stderr
