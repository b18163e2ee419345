"""Bytes of recorded frames, made again from what their rows say, where no capture has kept them.

Headers are exact as far as the recording goes: addresses, ports, numbers, flags, window, timestamps, selective
acknowledgements, lengths. MQTT packets have their type, flags, identifiers, topics and lengths.

What is not recorded is filled in: payloads have the identity of their message and zeros behind it
(:mod:`mqttlab.export.identity`), topic aliases are numbered as the plan's topics are, other MQTT 5 properties are of
the right length and say nothing, client identifiers are the clients' names, made as long as they were, filters are
those of the plan where their lengths fit, the window's scale is that of the host's TCP stack.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address
from itertools import islice
from typing import Any

from mqttlab.export import websocket
from mqttlab.export.identity import identity
from mqttlab.plan import publications_of
from mqttlab.recording import Recording

TCP, UDP = 6, 17
SYN, ACK = 2, 16
IP_HEADER_BYTES, TCP_HEADER_BYTES, UDP_HEADER_BYTES = 20, 20, 8
NOP = b"\x01"
# As the engine numbers hosts that have no address of their own.
FIRST_ADDRESS = (10 << 24) + (77 << 16) + 1
TYPES = {name: number for number, name in enumerate(
    ("CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "SUBSCRIBE", "SUBACK", "UNSUBSCRIBE",
     "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "AUTH"), start=1)}
# MQTT-SN 1.2, §5.2.2.
SN_TYPES = {
    "ADVERTISE": 0x00, "SEARCHGW": 0x01, "GWINFO": 0x02, "CONNECT": 0x04, "CONNACK": 0x05, "WILLTOPICREQ": 0x06,
    "WILLTOPIC": 0x07, "WILLMSGREQ": 0x08, "WILLMSG": 0x09, "REGISTER": 0x0A, "REGACK": 0x0B, "PUBLISH": 0x0C,
    "PUBACK": 0x0D, "PUBCOMP": 0x0E, "PUBREC": 0x0F, "PUBREL": 0x10, "SUBSCRIBE": 0x12, "SUBACK": 0x13,
    "UNSUBSCRIBE": 0x14, "UNSUBACK": 0x15, "PINGREQ": 0x16, "PINGRESP": 0x17, "DISCONNECT": 0x18,
}
# Bits that these types must have (MQTT 5 §2.1.3).
FLAGS = {"PUBREL": 2, "SUBSCRIBE": 2, "UNSUBSCRIBE": 2}
LEVELS = {"3.1": 3, "3.1.1": 4, "5": 5}


CLEAN = 2
# What precedes a topic's name (MQTT 5 §1.5.4); a topic alias (§3.3.2.3.4).
TOPIC_LENGTH_BYTES, ALIAS_PROPERTY_BYTES, TOPIC_ALIAS, ALIASES_MAX = 2, 3, 0x23, 65_535
# A user property without its two texts (§3.3.2.3.7).
USER_PROPERTY_BYTES, TEXT_MAX = 5, 65_535
# Bytes of a payload from which on it says whose it is, as the engine's do.
IDENTITY_BYTES = 9


@dataclass(frozen=True, kw_only=True)
class Session:
    """What the plan says of a client's CONNECT and SUBSCRIBE."""

    level: int = 4
    is_clean: bool = True
    keep_alive_s: int = 60
    filters: tuple[tuple[bytes, int], ...] = ()
    """Each with its option byte."""
    aliases: Mapping[str, int] = field(default_factory=dict)
    """Topics that the client may send by an alias."""
    websocket: str | None = None
    """The path of its WebSocket, where it has one that no TLS hides."""


UNKNOWN = Session()
HANDLINGS = ("send", "new", "never")


class Wire:
    """Makes the IP packets of one recording."""

    def __init__(self, recording: Recording) -> None:
        plan: Mapping[str, Any] = recording.plan
        hosts = plan.get("hosts") or []
        names = recording.layout["hosts"]
        known: dict[str, Mapping[str, Any]] = {host["name"]: host for host in hosts}
        self._addresses = [_address(known.get(name, {}).get("address") or name, number)
                           for number, name in enumerate(names)]
        self._mtu = plan["network"].get("mtu_bytes") or 1500
        sim: Mapping[str, Any] = plan.get("sim") or {}
        stacks = sim.get("tcp_stacks") or {}
        tcp: list[Mapping[str, Any]] = [known.get(name, {}).get("tcp") or {} for name in names]
        self._mss = [stack.get("mss_bytes") or self._mtu - 40 for stack in tcp]
        self._shifts = [(stacks.get(stack.get("profile")) or {}).get("window_scale", 7) for stack in tcp]
        self._sessions = [_session(group, number) for group in plan["groups"] for number in range(group["count"])]
        self._names = recording.layout["clients"].names

    def ip(self, row: Mapping[str, Any], payload: bytes) -> bytes:
        """The IP packet of a row of ``packets``, with this payload."""
        source, destination = (self._addresses[row[end]] for end in ("from_host", "to_host"))
        protocol, length = row["protocol"], row["ip_bytes"]
        if protocol == TCP:
            body = self._tcp(row, length - IP_HEADER_BYTES - len(payload)) + payload
            check = 16
        elif protocol == UDP and row["source_port"] is not None:
            size = UDP_HEADER_BYTES + len(payload)
            body = struct.pack("!4H", row["source_port"], row["destination_port"], size, 0) + payload
            check = 6
        else:
            body, check = bytes(max(0, length - IP_HEADER_BYTES)), None
        if check is not None:
            pseudo = source + destination + struct.pack("!2H", protocol, len(body))
            body = _with(body, check, _checksum(pseudo + body))
        header = struct.pack("!2B3H2BH4s4s", 0x45, row["ecn"] or 0, IP_HEADER_BYTES + len(body),
                             row["frame"] & 0xFFFF, 0x4000, 64, protocol, 0, source, destination)
        return _with(header, 10, _checksum(header)) + body

    def _tcp(self, row: Mapping[str, Any], header_bytes: int) -> bytes:
        header_bytes = min(60, max(TCP_HEADER_BYTES, header_bytes))
        options = self._options(row, header_bytes - TCP_HEADER_BYTES)
        return struct.pack(
            "!2H2I2B3H", row["source_port"] or 0, row["destination_port"] or 0, row["seq"] or 0, row["ack"] or 0,
            header_bytes // 4 << 4, row["flags"] or 0, row["window"] or 0, 0, 0) + options

    def _options(self, row: Mapping[str, Any], room: int) -> bytes:
        """TCP options in so many bytes: those that the row tells, in Linux's order, and padding."""
        parts = []
        stamps = b"" if row["tsval"] is None else struct.pack("!2B2I", 8, 10, row["tsval"], row["tsecr"] or 0)
        if (row["flags"] or 0) & SYN:
            parts.append(struct.pack("!2BH", 2, 4, self._mss[row["from_host"]]))
            parts.append(b"\x04\x02" + stamps if stamps else NOP * 2 + b"\x04\x02")
            parts.append(NOP + bytes((3, 3, self._shifts[row["from_host"]])))
        else:
            parts += [NOP * 2 + stamps] if stamps else []
            edges = [int(edge) for block in (row["sack"] or "").split() for edge in block.split("-")]
            parts += [NOP * 2 + struct.pack(f"!2B{len(edges)}I", 5, 2 + 4 * len(edges), *edges)] if edges else []
        options = b""
        for part in parts:
            options += part if len(options) + len(part) <= room else b""
        return options + NOP * (room - len(options))

    def upgrade(self, client: int | None, room: int, *, is_request: bool) -> bytes:
        """What stands before the packets of a stream: the opening of a WebSocket, zeros where there is none."""
        path = self._session(client).websocket
        return bytes(room) if path is None else websocket.upgrade(room, is_request=is_request, path=path)

    def end(self, client: int | None, room: int, *, is_masked: bool) -> bytes:
        """What stands behind the packets of a stream."""
        has_websocket = self._session(client).websocket is not None
        return websocket.close(room, is_masked=is_masked) if has_websocket and room > 0 else bytes(room)

    def _session(self, client: int | None) -> Session:
        return self._sessions[client] if client is not None and client < len(self._sessions) else UNKNOWN

    def packet(self, packet: Mapping[str, Any]) -> bytes:
        """The bytes of a row of ``control_packets``, those of the layer below included."""
        length = packet["stream_end"] - packet["stream_start"]
        if packet["protocol"] != "mqtt" or self._session(packet["client"]).websocket is None:
            return self._mqtt(packet, length)
        is_masked = packet["direction"] == "to_broker"
        size = length - websocket.header_bytes(length, is_masked=is_masked)
        return websocket.header(size, is_masked=is_masked) + self._mqtt(packet, size)

    def _mqtt(self, packet: Mapping[str, Any], length: int) -> bytes:
        """The bytes of a packet; zeros where it is no MQTT that is known."""
        kind = str(packet["kind"])
        if packet["protocol"] == "mqtt-sn":
            return self._mqtt_sn(kind, packet, length)
        if packet["protocol"] != "mqtt" or kind not in TYPES:
            return bytes(length)
        flags = FLAGS.get(kind, 0)
        if kind == "PUBLISH":
            flags = packet["dup"] << 3 | (packet["qos"] or 0) << 1 | packet["retain"]
        rest = length - packet["fixed_header_bytes"]
        head = bytes((TYPES[kind] << 4 | flags,)) + _varint(rest, packet["fixed_header_bytes"] - 1)
        made = head + self._body(kind, packet, rest, self._session(packet["client"]))
        payload = _payload(packet) if kind == "PUBLISH" else b""
        return made.ljust(length - len(payload), b"\0")[:length - len(payload)] + payload

    def _mqtt_sn(self, kind: str, packet: Mapping[str, Any], length: int) -> bytes:
        """A datagram's packet (MQTT-SN 1.2, §5.4): topic identifiers, which no recording has, are zeros."""
        if kind not in SN_TYPES:
            return bytes(length)
        head = struct.pack("!BH", 1, length) if length > 255 else bytes((length,))
        head += bytes((SN_TYPES[kind],))
        identifier, code = struct.pack("!H", packet["packet_id"] or 0), bytes((packet["reason"] or 0,))
        name = self._names[packet["client"]].encode() if packet["client"] is not None else b""
        topic = (packet["topic"] or "\0\0").encode()[:2]
        flags = packet["dup"] << 7 | (packet["qos"] or 0) << 5 | packet["retain"] << 4 | (2 if packet["topic"] else 0)
        body = {
            "PUBLISH": bytes((flags,)) + topic + identifier + _payload(packet),
            "CONNECT": struct.pack("!2BH", 4, 1, 60) + name,
            "CONNACK": code,
            "REGISTER": bytes(2) + identifier,
            "REGACK": bytes(2) + identifier + code,
            "PUBACK": bytes(2) + identifier + code,
            "SUBSCRIBE": bytes((flags,)) + identifier,
            "SUBACK": bytes((flags,)) + bytes(2) + identifier + code,
            "UNSUBSCRIBE": bytes(1) + identifier,
        }.get(kind, identifier if packet["packet_id_bytes"] else b"")
        return (head + body).ljust(length, b"\0")[:length]

    def _body(self, kind: str, packet: Mapping[str, Any], rest: int, session: Session) -> bytes:
        level = session.level
        identifier = struct.pack("!H", packet["packet_id"] or 0)
        if kind == "PUBLISH":
            # An alias stands for a name that is empty.
            topic = (packet["topic"] or "").encode() if packet["topic_bytes"] > TOPIC_LENGTH_BYTES else b""
            alias = session.aliases.get(packet["topic"] or "", 0) if packet["direction"] == "to_broker" else 0
            return (struct.pack("!H", len(topic)) + topic + (identifier if packet["packet_id_bytes"] else b"")
                    + _properties(packet["property_bytes"], alias))
        if kind == "CONNECT":
            protocol = b"MQIsdp" if level == 3 else b"MQTT"
            fixed = struct.pack("!H", len(protocol)) + protocol + struct.pack(
                "!2BH", level, CLEAN * session.is_clean, session.keep_alive_s)
            fixed += _properties(max(1, packet["property_bytes"])) if level == 5 else b""
            name = self._names[packet["client"]].encode() if packet["client"] is not None else b""
            length = max(0, rest - len(fixed) - 2)
            return fixed + struct.pack("!H", length) + name.ljust(length, b"-")[:length]
        if kind == "CONNACK":
            return bytes((0, packet["reason"] or 0)) + (_properties(rest - 2) if rest > 2 else b"")
        if kind in ("SUBSCRIBE", "UNSUBSCRIBE"):
            start = identifier + (_properties(max(1, packet["property_bytes"])) if level == 5 else b"")
            filters = b"".join(struct.pack("!H", len(name)) + name + bytes((options,)) * (kind == "SUBSCRIBE")
                               for name, options in session.filters)
            if len(start) + len(filters) == rest:
                return start + filters
            length = max(0, rest - len(start) - 2 - (kind == "SUBSCRIBE"))
            return start + struct.pack("!H", length) + b"#".ljust(length, b"-")
        if kind in ("PUBACK", "PUBREC", "PUBREL", "PUBCOMP"):
            return identifier + bytes((packet["reason"] or 0,) if rest > 2 else ()) + _properties(rest - 3)
        if kind in ("SUBACK", "UNSUBACK"):
            return identifier + (_properties(max(1, packet["property_bytes"])) if level == 5 else b"")
        return bytes((packet["reason"] or 0,)) if rest else b""


def _session(group: Mapping[str, Any], number: int) -> Session:
    """What client ``number`` of a group says when it connects and subscribes."""
    mqtt = (group.get("protocol") or {}).get("mqtt") or {}

    def filled(pattern: str) -> bytes:
        named = pattern.replace("{group}", group["name"]).replace("{client}", str(number))
        return named.replace("{topic}", "0").encode()

    return Session(
        level=LEVELS.get(str(mqtt.get("version")), 4), is_clean=mqtt.get("clean_session", True),
        keep_alive_s=mqtt.get("keep_alive_s", 60),
        filters=tuple((filled(wanted["filter"]), _options(wanted)) for wanted in group.get("subscriptions") or ()),
        aliases=_aliases(group, number) if mqtt.get("topic_aliases") else {}, websocket=_websocket(group))


def _websocket(group: Mapping[str, Any]) -> str | None:
    """The path of a group's WebSocket."""
    transport = (group.get("transport") or {}).get("tcp") or {}
    opened = transport.get("websocket") if transport.get("tls") is None else None
    return None if opened is None else str(opened.get("path") or "/mqtt")


def _options(wanted: Mapping[str, Any]) -> int:
    """The option byte of a subscription (MQTT 5, 3.8.3.1)."""
    handling = HANDLINGS.index(wanted.get("retain_handling") or "send")
    as_published, no_local = (bool(wanted.get(name)) for name in ("retain_as_published", "no_local"))
    return int(wanted["qos"]) | no_local << 2 | as_published << 3 | handling << 4


def _aliases(group: Mapping[str, Any], number: int) -> dict[str, int]:
    """Numbers for the topics of a client."""
    named = (publish["topic"].replace("{group}", group["name"]).replace("{client}", str(number))
             .replace("{topic}", str(topic))
             for publish in publications_of(group) for topic in range(publish["topics"]))
    return {topic: alias for alias, topic in enumerate(dict.fromkeys(islice(named, ALIASES_MAX)), start=1)}


def _payload(packet: Mapping[str, Any]) -> bytes:
    """A message's payload: its identity as far as there is room, and zeros."""
    length: int = packet["payload_bytes"] or 0
    publisher, sequence = packet["publisher"], packet["sequence"]
    if sequence is None:
        return bytes(length)
    if length < IDENTITY_BYTES:
        return int(sequence & (1 << 8 * min(length, 4)) - 1).to_bytes(length)
    return bytes(length) if publisher is None else identity(publisher, sequence, packet.get("intended_ns"), length)


def _address(words: str, number: int) -> bytes:
    try:
        return IPv4Address(words).packed
    except AddressValueError:
        return IPv4Address(FIRST_ADDRESS + number).packed


def _varint(value: int, width: int) -> bytes:
    """A variable byte integer (MQTT 5 §1.5.5) in so many bytes."""
    digits = bytearray()
    for place in range(max(1, width)):
        value, digit = divmod(value, 128)
        digits.append(digit | (0x80 if place < width - 1 else 0))
    return bytes(digits)


def _properties(length: int, alias: int = 0) -> bytes:
    """MQTT 5 properties, their own length included: the topic alias where there is room for it, and others."""
    if length <= 0:
        return b""
    width = next((width for width in (1, 2, 3) if length - width < 1 << 7 * width), 4)
    content = length - width
    said = struct.pack("!BH", TOPIC_ALIAS, alias) if alias and content >= ALIAS_PROPERTY_BYTES else b""
    return _varint(content, width) + said + _filling(content - len(said))


def _filling(room: int) -> bytes:
    """User properties in so many bytes where there is room for one, else padding."""
    if room < USER_PROPERTY_BYTES:
        # Request problem information is two bytes; one byte alone can be no property.
        return b"\x17\x01" * (room // 2) + b"\0" * (room % 2)
    value = min(room - USER_PROPERTY_BYTES, TEXT_MAX)
    return b"\x26\0\0" + struct.pack("!H", value) + b"-" * value + _filling(room - USER_PROPERTY_BYTES - value)


def _checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + b"\0" * (len(data) % 2)))
    total = (total >> 16) + (total & 0xFFFF)
    return ~((total >> 16) + total) & 0xFFFF


def _with(data: bytes, place: int, check: int) -> bytes:
    return data[:place] + struct.pack("!H", check) + data[place + 2:]
