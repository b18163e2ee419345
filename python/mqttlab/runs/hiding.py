"""A run's secrets taken out of what others wrote into its recording: logs of programs, captures, keys of TLS.

What the engine writes of a plan has marks. A program may print what it was told, and a capture has the bytes of
CONNECT, plain or masked by WebSocket (RFC 6455, §5.3); they are overwritten by as many asterisks. Over TLS the keys
would show the password: ``keys.log`` goes when the recording has its tables.

What is not found: a secret of fewer than four letters, one of fewer than eight behind a WebSocket's mask, and the ends
of one that two segments share.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from mqttlab.secrets import parts

LOGS, CAPTURES, KEYS = ("*.log",), ("*.pcapng",), "keys.log"
ENDED = ("run.json", "incomplete.json")
STAR = ord("*")
MASK_BYTES = 4
# With fewer a masked secret would be found by chance.
MASKED_MIN = 8
PIECE = 16
# More secrets than these are looked for in one pass.
FEW = 50
LOOK_BYTES = 1 << 24
GONE = "# The keys were removed: with them the capture would show a secret of the scenario.\n"


def hide_in_files(directory: Path, secrets: Mapping[str, str]) -> None:
    """Overwrite secrets in the logs and captures of a recording; those that cannot be written to stay as they are."""
    values = [part.encode() for part in {part for value in secrets.values() for part in parts(value)}]
    if not values:
        return
    for file in found(directory, LOGS + CAPTURES):
        with contextlib.suppress(OSError, ValueError):
            hide_in_file(file, values)
    keys = directory / KEYS
    if keys.is_file() and any((directory / name).is_file() for name in ENDED):
        with contextlib.suppress(OSError):
            keys.write_text(GONE, encoding="ascii")


def found(directory: Path, patterns: Collection[str]) -> Iterator[Path]:
    """The files of a directory, but for the keys, which have no text of others."""
    for pattern in patterns:
        yield from (file for file in sorted(directory.glob(pattern)) if file.name != KEYS)


def hide_in_file(file: Path, values: Collection[bytes]) -> bool:
    """Overwrite secrets in a file, as many bytes as they have; whether there were any."""
    if file.stat().st_size == 0:
        return False
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as data:
        many = len(values) > FEW
        hits = list(_places_of_many(data, values)) if many else [
            hit for value in values for hit in _places(data, value)]
        if file.suffix == ".pcapng":
            longer = [value for value in values if len(value) >= MASKED_MIN]
            hits += list(_masked_places_of_many(data, longer)) if many else [
                hit for value in longer for hit in _masked_places(data, value)]
        for place, covered in hits:
            data[place:place + len(covered)] = covered
    return bool(hits)


def _places(data: mmap.mmap, value: bytes) -> Iterator[tuple[int, bytes]]:
    """Where a secret, or a long one's pieces, stand as they are."""
    pieces = {value} if len(value) < 2 * PIECE else {value[at:at + PIECE] for at in range(0, len(value) - PIECE, PIECE)}
    pieces |= {value[-PIECE:]} if len(value) >= 2 * PIECE else set()
    for piece in pieces:
        at = data.find(piece)
        while at >= 0:
            yield at, b"*" * len(piece)
            at = data.find(piece, at + 1)


def _masked_places(data: mmap.mmap, value: bytes) -> Iterator[tuple[int, bytes]]:
    """Where a secret stands under a mask of four bytes: there bytes that are four apart differ as the secret's do."""
    wanted = _differences(value)
    step = LOOK_BYTES
    for begin in range(0, len(data), step):
        part = data[begin:begin + step + len(value)]
        differences = _differences(part)
        at = differences.find(wanted)
        while at >= 0:
            mask = [part[at + index] ^ value[index] for index in range(MASK_BYTES)]
            if any(mask):
                yield begin + at, bytes(STAR ^ mask[index % MASK_BYTES] for index in range(len(value)))
            at = differences.find(wanted, at + 1)


def _places_of_many(data: mmap.mmap, values: Collection[bytes]) -> Iterator[tuple[int, bytes]]:
    """Where any of many secrets stand as they are, in one pass: passwords of a list have no pieces."""
    wanted = {value: value for value in values}
    for at, value in _found_in_one_pass(lambda begin, end: data[begin:end], len(data), wanted):
        yield at, b"*" * len(value)


def _masked_places_of_many(data: mmap.mmap, values: Collection[bytes]) -> Iterator[tuple[int, bytes]]:
    """Likewise under a mask."""
    wanted = {_differences(value): value for value in values}
    for at, value in _found_in_one_pass(
            lambda begin, end: _differences(data[begin:end + MASK_BYTES]), len(data), wanted):
        mask = [data[at + index] ^ value[index] for index in range(MASK_BYTES)]
        if any(mask):
            yield at, bytes(STAR ^ mask[index % MASK_BYTES] for index in range(len(value)))


def _found_in_one_pass(
    read: Callable[[int, int], bytes], length: int, wanted: Mapping[bytes, bytes],
) -> Iterator[tuple[int, bytes]]:
    """Where any of these stand: their first four bytes are looked for at every place, and the rest where these are."""
    # Only runs with many secrets wait for it to be loaded.
    import numpy as np

    if not wanted:
        return
    lengths = sorted({len(each) for each in wanted}, reverse=True)
    begins = np.unique([int.from_bytes(each[:4], "little") for each in wanted]).astype(np.uint32)
    for begin in range(0, length, LOOK_BYTES):
        part = read(begin, begin + LOOK_BYTES + lengths[0])
        bytes_ = np.frombuffer(part, np.uint8).astype(np.uint32)
        if len(bytes_) < 4:
            continue
        fours = bytes_[:-3] | bytes_[1:-2] << 8 | bytes_[2:-1] << 16 | bytes_[3:] << 24
        for at in np.flatnonzero(np.isin(fours, begins)).tolist():
            if (found := next((each for size in lengths if (each := part[at:at + size]) in wanted), None)) is not None:
                yield begin + at, wanted[found]


def _differences(data: bytes) -> bytes:
    """Each byte, and the one four further on, exclusive-or."""
    length = max(len(data) - MASK_BYTES, 0)
    first, second = int.from_bytes(data[:length], "big"), int.from_bytes(data[MASK_BYTES:], "big")
    return (first ^ second).to_bytes(length, "big")
