"""A recording, or a part of it, as one pcapng file for Wireshark and everything else that reads it.

An interface for each direction of each link, frames as they came to its queue, in the order of time. A comment says
when each left and arrived, or what became of it, so that an import has both times (``crates/rows/src/transit.rs``
reads it). The section's comments say when the run began and from when to when it was measured, where the whole of it is
there, so that an import counts what the run counted. Where the recording keeps
captures of its links, the bytes are theirs; else they are made again from the tables (:mod:`mqttlab.export.wire`),
which is what makes captures of simulations. Secrets of TLS connections that the recording keeps (``keys.log``) stand in
front, so that Wireshark and ``mqttlab import`` open them.

What it does not hold: what links copied, for these copies did not come to a queue.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from mqttlab import scratch
from mqttlab.export.tables import ExportError
from mqttlab.export.wire import Wire
from mqttlab.metrics.window import TIME_MAX_NS, measurement
from mqttlab.plan import ports
from mqttlab.recording import Recording

COLUMNS = ("link", "direction", "frame", "from_host", "to_host", "entered_ns", "fate", "cause", "ip_bytes", "protocol",
           "source_port", "destination_port", "connection", "seq", "ack", "flags", "window", "payload_bytes", "tsval",
           "tsecr", "sack", "stream_offset", "hop", "hops", "frame_bytes", "start_ns", "sent_ns", "delivered_ns",
           "repetition", "ecn")
# Times of a frame that its comment says, counted from its own.
TIMES = ("start_ns", "sent_ns", "delivered_ns")
PACKET_COLUMNS = ("connection", "direction", "protocol", "client", "kind", "qos", "dup", "retain", "packet_id",
                  "reason", "topic", "stream_start", "stream_end", "fixed_header_bytes", "topic_bytes",
                  "packet_id_bytes", "property_bytes", "payload_bytes", "publisher", "sequence")
SECTION, INTERFACE, ENHANCED_PACKET, DECRYPTION_SECRETS = 0x0A0D0D0A, 1, 6, 10
# Secrets as a TLS key log (draft-ietf-opsawg-pcapng §4.7).
TLS_KEY_LOG = 0x544C534B
KEY_LOG = "keys.log"
MAGIC = 0x1A2B3C4D
COMMENT, NAME, RESOLUTION, APPLICATION = 1, 2, 9, 4
LINKTYPE_RAW = 101
# Rows that are in memory at a time.
ROWS_AT_ONCE = 100_000
DAY_NS = 86_400 * 10**9


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Which part of a recording is wanted."""

    from_ns: int = 0
    to_ns: int = 2**62
    """The first moment behind it."""
    connections: tuple[int, ...] | None = None
    """Of these TCP connections only."""


def cut_of_message(recording: Recording, publisher: int, sequence: int, subscriber: int | None = None) -> Cut:
    """The part that carried a message: the connections that it took, from when it was due until all is over.

    Raises:
        ExportError: there is no such message, or no packet of it was recorded.
    """
    messages = recording.scan("messages")
    wanted = [pl.col("publisher") == publisher, pl.col("sequence") == sequence]
    wanted += [] if subscriber is None else [pl.col("subscriber") == subscriber]
    rows = recording.collect(messages.filter(*wanted)) if messages.collect_schema() else pl.DataFrame()
    if rows.is_empty():
        raise ExportError(f"there is no message {publisher}:{sequence}" + (
            "" if subscriber is None else f" for client {subscriber}"))
    packets = recording.scan_captured()
    if not packets.collect_schema():
        raise ExportError(f"message {publisher}:{sequence} cannot be cut out: no packets were recorded")
    clients = [publisher, *rows["subscriber"].drop_nulls().unique()]
    begins = rows.select(pl.min_horizontal("intended_ns", "sent_ns").min()).item()
    is_named = (pl.col("publisher") == publisher) & (pl.col("sequence") == sequence)
    carried = recording.collect(
        packets.filter(is_named | pl.col("client").is_in(clients))
        .select("connection", "first_sent_ns", "complete_ns", is_named.fill_null(False).alias("named")))
    named = carried.filter("named")
    moments: list[Any] = [rows["received_ns"].max(), rows["acknowledged_ns"].max(), rows["sent_ns"].max(),
                          named["complete_ns"].max()]
    ends = max((int(moment) for moment in moments if moment is not None), default=DAY_NS)
    # Where its own packets are known, their connections; those of its clients else.
    of = named if named.height else carried.filter(
        pl.col("complete_ns").is_null() | (pl.col("complete_ns") >= begins), pl.col("first_sent_ns") <= ends)
    connections = tuple(sorted(of["connection"].unique()))
    if not connections:
        raise ExportError(f"message {publisher}:{sequence} cannot be cut out: no packet of it was recorded")
    return Cut(from_ns=int(begins or 0), to_ns=ends + 1, connections=connections)


def pcapng(
    recording: Recording, out: Path, cut: Cut | None = None,
    observe: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Write the frames of a recording, or of a part of it; returns how many there are.

    Args:
        recording: the recording.
        out: the file; it is there when it is whole.
        cut: which part; all of it when left out.
        observe: called with how many rows have been written, and how many there are.

    Raises:
        ExportError: no frames were recorded, or there are none in this part.
    """
    cut = cut or Cut()
    table = recording.scan("packets")
    if not table.collect_schema():
        raise ExportError("there is nothing to capture: frames were not recorded, because the network was direct or "
                          "the scenario did not ask for them")
    wanted = [pl.col("entered_ns").is_between(cut.from_ns, cut.to_ns, closed="left"), pl.col("fate") != "duplicated"]
    wanted += [] if cut.connections is None else [pl.col("connection").is_in(cut.connections)]
    table = table.filter(*wanted).select(COLUMNS)
    total = int(recording.collect(table.select(pl.len())).item())
    if not total:
        raise ExportError("there are no frames in this part of the recording")
    with scratch.unfinished(out) as made, made.open("wb") as file:
        _write(recording, file, table, cut, total, observe)
    return total


def _write(
    recording: Recording, file: BinaryIO, table: pl.LazyFrame, cut: Cut, total: int,
    observe: Callable[[int, int], None],
) -> None:
    started_ns = int(recording.layout.get("started_unix_ns") or 0)
    wire, streams = Wire(recording), _Streams(recording)
    kept = _kept(recording, started_ns, cut)
    said = _whole(recording, started_ns) if cut == Cut() else []
    _block(file, SECTION, struct.pack("<IHHq", MAGIC, 1, 0, -1) + _options([*said, (APPLICATION, b"mqttlab")]))
    _secrets(file, recording.directory / KEY_LOG)
    links = [f"{name} {way}" for name in recording.layout["links"] for way in ("up", "down")]
    for name in links:
        _block(file, INTERFACE, struct.pack("<HHI", LINKTYPE_RAW, 0, 0) + _options(
            [(NAME, name.encode()), (RESOLUTION, b"\x09")]))
    for first in range(0, total, ROWS_AT_ONCE):
        rows = recording.collect(table.slice(first, ROWS_AT_ONCE)).sort("entered_ns", maintain_order=True)
        streams.look_at(rows)
        for row in rows.iter_rows(named=True):
            interface = 2 * row["link"] + (row["direction"] == "down")
            same = kept.get((links[interface], row["entered_ns"]))
            data = same.pop(0) if same else wire.ip(row, streams.payload(row, wire))
            at = started_ns + row["entered_ns"]
            size = len(data)
            _block(file, ENHANCED_PACKET, struct.pack("<5I", interface, at >> 32, at & 0xFFFFFFFF, size, size)
                   + data + bytes(-size % 4) + _options([(COMMENT, _transit(row).encode())]))
        observe(first + rows.height, total)


def _whole(recording: Recording, started_ns: int) -> list[tuple[int, bytes]]:
    """What a capture of a whole run says of it. Of one that was cut short nothing says when its measurement ended."""
    window = measurement(recording)
    is_known = recording.complete and window.from_ns < window.until_ns < TIME_MAX_NS
    measured = b"measured_from_ns=%d measured_until_ns=%d" % (window.from_ns, window.until_ns)
    return [(COMMENT, b"started_unix_ns=%d" % started_ns), *([(COMMENT, measured)] if is_known else [])]


def _transit(row: dict[str, Any]) -> str:
    """How a frame crossed its link; times count from its own."""
    # Of a capture of others, where a frame is seen again after what counts as the whole of its way.
    links = max(row["hops"], row["hop"] + 1)
    words = [f"frame={row['frame']}", f"link={row['hop'] + 1}/{links}", f"bytes={row['frame_bytes']}"]
    words += [f"{name}={row[name] - row['entered_ns']}" for name in TIMES
              if row[name] is not None and row[name] >= row["entered_ns"]]
    words += [] if row["repetition"] is None else [f"repetition={row['repetition']}"]
    return ": ".join(filter(None, (row["fate"], row["cause"]))) + "; " + " ".join(words)


class _Streams:
    """The bytes of the connections' streams, made again from control packets, where a part of the rows needs them."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._ports = ports(recording.plan)
        self._packets: dict[tuple[int, str], tuple[list[int], list[dict[str, Any]]]] = {}
        self._bounds: dict[tuple[int, str], tuple[int, int, int | None]] | None = None

    def look_at(self, rows: pl.DataFrame) -> None:
        """Read the control packets that these rows carry parts of."""
        self._packets.clear()
        packets = self._recording.scan("control_packets")
        if not packets.collect_schema():
            return
        to_broker = pl.col("destination_port").is_in(self._ports)
        carried = rows.filter(pl.col("stream_offset").is_not_null(), pl.col("connection").is_not_null()).group_by(
            "connection", direction=pl.when(to_broker).then(pl.lit("to_broker")).otherwise(pl.lit("to_client")),
        ).agg(low=pl.col("stream_offset").min(), high=(pl.col("stream_offset") + pl.col("payload_bytes")).max())
        found = self._recording.collect(
            packets.select(PACKET_COLUMNS).join(carried.lazy(), on=["connection", "direction"])
            .filter(pl.col("stream_end") > pl.col("low"), pl.col("stream_start") < pl.col("high")).drop("low", "high"))
        messages = self._recording.scan("messages")
        if messages.collect_schema():
            # A message has a row for each of its receivers.
            intended = messages.select("publisher", "sequence", "intended_ns").unique(["publisher", "sequence"])
            found = self._recording.collect(found.lazy().join(intended, on=["publisher", "sequence"], how="left"))
        for packet in found.sort("stream_start").iter_rows(named=True):
            starts, told = self._packets.setdefault((packet["connection"], packet["direction"]), ([], []))
            starts.append(packet["stream_start"])
            told.append(packet)

    def payload(self, row: dict[str, Any], wire: Wire) -> bytes:
        """The data of a segment."""
        length, offset = row["payload_bytes"], row["stream_offset"]
        if not length or offset is None or row["connection"] is None:
            return bytes(length or 0)
        direction = "to_broker" if row["destination_port"] in self._ports else "to_client"
        starts, told = self._packets.get((row["connection"], direction), ([], []))
        data = bytearray(self._around(row, direction, wire))
        # Packets of one stream do not overlap: those from the last that begins at or before the segment.
        for packet in told[max(0, bisect.bisect_right(starts, offset) - 1):]:
            start, end = packet["stream_start"], packet["stream_end"]
            if start >= offset + length:
                break
            if end > offset:
                made = wire.packet(packet)[max(0, offset - start):offset + length - start]
                place = max(0, start - offset)
                data[place:place + len(made)] = made
        return bytes(data)

    def _around(self, row: dict[str, Any], direction: str, wire: Wire) -> bytes:
        """What a segment has before the first packet of its stream, and behind the last one."""
        length, offset = row["payload_bytes"], row["stream_offset"]
        first, last, client = self._ends().get((row["connection"], direction), (0, 0, None))
        is_up = direction == "to_broker"
        before = wire.upgrade(client, first, is_request=is_up)[offset:] if offset < first else b""
        behind = max(0, offset + length - max(offset, last))
        # A stream ends with one segment behind its last packet.
        return (before[:length].ljust(length - behind, b"\0") + wire.end(client, behind, is_masked=is_up))[:length]

    def _ends(self) -> dict[tuple[int, str], tuple[int, int, int | None]]:
        """Of each stream where its first packet begins, where its last one ends, and whose it is."""
        if self._bounds is None:
            packets = self._recording.scan("control_packets")
            found = self._recording.collect(packets.group_by("connection", "direction").agg(
                pl.col("stream_start").min(), pl.col("stream_end").max(), pl.col("client").drop_nulls().first(),
            )) if packets.collect_schema() else pl.DataFrame()
            self._bounds = {(row[0], str(row[1])): row[2:] for row in found.iter_rows()}
        return self._bounds


def _kept(recording: Recording, started_ns: int, cut: Cut) -> dict[tuple[str, int], list[bytes]]:
    """Frames of the captures that the recording keeps, by interface and the time since the start, in their order."""
    kept: dict[tuple[str, int], list[bytes]] = {}
    for path in sorted(recording.directory.glob("capture-*.pcapng")):
        for name, at, data in _frames(path):
            if cut.from_ns <= at - started_ns < cut.to_ns:
                kept.setdefault((name, at - started_ns), []).append(data)
    return kept


def _frames(path: Path) -> Iterator[tuple[str, int, bytes]]:
    """Interface, time in ns since 1970 and bytes of each packet of a capture that the engine wrote."""
    names: list[str] = []
    with path.open("rb") as file:
        while len(head := file.read(8)) == 8:
            kind, size = struct.unpack("<2I", head)
            body = file.read(size - 8)
            if len(body) < size - 8:
                return
            if kind == INTERFACE:
                length = struct.unpack_from("<H", body, 10)[0]
                names.append(body[12:12 + length].decode(errors="replace"))
            elif kind == ENHANCED_PACKET:
                interface, high, low, captured = struct.unpack_from("<4I", body)
                yield names[interface], high << 32 | low, body[20:20 + captured]


def _secrets(file: BinaryIO, key_log: Path) -> None:
    """Secrets stand before the frames that they open."""
    text = key_log.read_bytes() if key_log.exists() else b""
    if text:
        _block(file, DECRYPTION_SECRETS, struct.pack("<2I", TLS_KEY_LOG, len(text)) + text + bytes(-len(text) % 4))


def _options(options: list[tuple[int, bytes]]) -> bytes:
    written = b"".join(struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
                       for code, value in options)
    return written + bytes(4)


def _block(file: BinaryIO, kind: int, body: bytes) -> None:
    size = struct.pack("<I", len(body) + 12)
    file.write(struct.pack("<I", kind) + size + body + size)
