"""WebSocket around MQTT (RFC 6455), made again from lengths: a recording has how many bytes it took, and not which.

Masks are zeros, so that payloads are readable as they are.
"""

from __future__ import annotations

REQUEST = (
    "GET {path} HTTP/1.1\r\nHost: broker\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n")
ANSWER = ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"
          "Sec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\nSec-WebSocket-Protocol: mqtt\r\n")
LINE, FIELD = "\r\n", "X: "
FINAL_BINARY, FINAL_CLOSE, MASKED, MASK_BYTES = 0x82, 0x88, 0x80, 4
# What a length of one byte holds; what stands before one of two, or of eight.
SHORT, TWO_BYTES, EIGHT_BYTES = 125, 126, 127


def header(size: int, *, is_masked: bool, first: int = FINAL_BINARY) -> bytes:
    """The header of a frame with so many bytes (§5.2)."""
    mark = MASKED if is_masked else 0
    mask = bytes(MASK_BYTES) if is_masked else b""
    if size <= SHORT:
        return bytes((first, mark | size)) + mask
    wide = size > 0xFFFF
    return bytes((first, mark | (EIGHT_BYTES if wide else TWO_BYTES))) + size.to_bytes(8 if wide else 2) + mask


def header_bytes(total: int, *, is_masked: bool) -> int:
    """How many bytes of a frame are its header."""
    sizes = (len(header(size, is_masked=is_masked)) for size in (0, SHORT + 1, 0x1_0000))
    return next((size for size in sizes if len(header(max(0, total - size), is_masked=is_masked)) == size), 0)


def upgrade(room: int, *, is_request: bool, path: str = "/mqtt") -> bytes:
    """A request to open a connection, or its answer, in so many bytes; a field of no meaning fills them."""
    words = REQUEST.format(path=path) if is_request else ANSWER
    rest = room - len(words.encode()) - len(LINE)
    filling = FIELD + "-" * (rest - len(FIELD + LINE)) + LINE if rest >= len(FIELD + LINE) else ""
    return (words + filling + LINE).encode().ljust(room, b"\0")[:room]


def close(room: int, *, is_masked: bool) -> bytes:
    """A frame that ends a connection (§5.5.1), in so many bytes."""
    head = len(header(0, is_masked=is_masked))
    return header(max(0, room - head), is_masked=is_masked, first=FINAL_CLOSE).ljust(room, b"\0")[:room]
