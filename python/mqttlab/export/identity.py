"""Who a message is, written into its payload: the binary form that ``crates/rows/src/identity.rs`` reads."""

from __future__ import annotations

import struct

SALT = 0x6D71_7474_6C61_6221
NO_TIME = 0x5BF0_3635
WORD = 2**64 - 1
# The smallest payload with room for the intended time.
BYTES_WITH_TIME = 17


def identity(publisher: int, sequence: int, intended_ns: int | None, length: int) -> bytes:
    """A payload of so many bytes, at least 9, that says whose message it is."""
    timed = intended_ns if length >= BYTES_WITH_TIME else None
    head = struct.pack("!HBHI", _check(publisher, sequence, timed), publisher >> 16, publisher & 0xFFFF, sequence)
    return (head + (b"" if timed is None else struct.pack("!Q", timed))).ljust(length, b"\0")


def _check(publisher: int, sequence: int, intended_ns: int | None) -> int:
    """16 bits of a hash of everything else."""
    time = NO_TIME if intended_ns is None else (intended_ns << 1 | intended_ns >> 63) & WORD ^ 1
    mixed = SALT ^ (publisher << 32 | sequence)
    for word in (time, SALT):
        mixed = (mixed ^ mixed >> 30) * 0xBF58_476D_1CE4_E5B9 & WORD
        mixed = (mixed ^ mixed >> 27) * 0x94D0_49BB_1331_11EB & WORD ^ word
    return ((mixed ^ mixed >> 31) * 0xBF58_476D_1CE4_E5B9 & WORD) >> 48 | 0x8000
