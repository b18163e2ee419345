"""TLS as OpenSSL speaks it where no MQTT broker does: KeyUpdate, resumption, early data (tests/captures/README.md)."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from mqttlab.imports import import_evidence
from mqttlab.recording import Recording

CAPTURE = Path(__file__).resolve().parents[1] / "captures" / "tls-openssl.pcapng"
SENT = {0: ["CONNECT", 1, 2, 3, 4], 1: ["CONNECT", 5, 6], 2: ["CONNECT", 7], 3: ["CONNECT", 8], 4: ["CONNECT", 9]}
SECRETS, PACKET = 10, 6


def read(file: Path, directory: Path) -> Recording:
    return Recording.open(import_evidence("capture", [file], directory, lambda line: None).directory)


def sent(recording: Recording) -> dict[int, list[str | int]]:
    """CONNECT, or the packet identifier, of each packet by connection, in order."""
    found: dict[int, list[str | int]] = {}
    for connection, kind, number in recording.control_packets.select("connection", "kind", "packet_id").rows():
        found.setdefault(connection, []).append("CONNECT" if kind == "CONNECT" else number)
    return found


def blocks(data: bytes) -> list[bytes]:
    """A pcapng file in blocks."""
    found, at = [], 0
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 4)[0]
        found.append(data[at:at + size])
        at += size
    return found


def kind_of(block: bytes) -> int:
    return int(struct.unpack_from("<I", block)[0])


def test_new_keys_resumed_sessions_and_early_data_are_followed(tmp_path: Path) -> None:
    recording = read(CAPTURE, tmp_path / "whole")
    assert sent(recording) == SENT
    told = {row["version"]: row for row in recording.run["details"]["import"]["tls"]}
    assert {version: (row["connections"], row["resumed"], row["with_early_data"]) for version, row in told.items()} == {
        "TLS 1.3": (2, 1, 1), "TLS 1.2": (3, 1, 0)}
    assert recording.run["validity"] == {"valid": True, "reasons": []}


def test_without_the_secret_of_early_data_the_rest_is_read_and_a_gap_is_told(tmp_path: Path) -> None:
    data = []
    for block in blocks(CAPTURE.read_bytes()):
        if kind_of(block) == SECRETS:
            lines = block[16:-4].splitlines(keepends=True)
            text = b"".join(line for line in lines if not line.startswith(b"CLIENT_EARLY")).rstrip(b"\0")
            body = struct.pack("<2I", 0x544C534B, len(text)) + text + bytes(-len(text) % 4)
            size = struct.pack("<I", len(body) + 12)
            block = struct.pack("<I", SECRETS) + size + body + size
        data.append(block)
    file = tmp_path / "less.pcapng"
    file.write_bytes(b"".join(data))
    found = sent(read(file, tmp_path / "less"))
    assert found[0] == SENT[0]
    # The CONNECT was early data.
    assert found.get(1, []) in ([5, 6], [6], [])


@pytest.mark.parametrize("gone", range(4, 24, 3))
def test_without_any_one_frame_what_is_read_was_sent(gone: int, tmp_path: Path) -> None:
    found = blocks(CAPTURE.read_bytes())
    packets = [place for place, block in enumerate(found) if kind_of(block) == PACKET]
    del found[packets[gone]]
    file = tmp_path / "thinned.pcapng"
    file.write_bytes(b"".join(found))
    read_here = sent(read(file, tmp_path / "thinned"))
    for connection, packets_there in read_here.items():
        assert [packet for packet in SENT[connection] if packet in packets_there] == packets_there
    assert {connection: read_here[connection] for connection in (1, 2, 3, 4)} == {
        connection: SENT[connection] for connection in (1, 2, 3, 4)}
