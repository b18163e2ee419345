#!/usr/bin/env python3
"""Captures drawn by chance, imported, and held against what the run itself knows.

    benches/capture/chance.py                         numbers 0 to 499: 400 simulated, 100 live; resumable
    benches/capture/chance.py --from 500 --count 20   other numbers
    benches/capture/chance.py --show 17               write the capture of a number, and print what is right
    benches/capture/chance.py --again                 numbers whose importer was another one, again

A number draws a scenario, where its capture is taken, and what happens to the capture (`drawn.py`). Numbers that are
kept for judging are refused without `--judging`. Each is a line of the results file, which says `right`, `cannot be
told` or `wrong and valid`. A number that stands there is not repeated.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import files as capture_files
from contents import rewritten
from drawn import JUDGED_FROM, Dice, Drawn, draw_capture, views_of
from passing import Frame, frames_of
from right import Right, View, right_of
from streams import Traffic, traffic_of
from verdict import EXPECTED, RIGHT, UNTOLD, WRONG, Found, judge

from mqttlab.engine import engine_path
from mqttlab.export.pcapng import pcapng
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

HERE = Path(__file__).resolve().parent
MIRROR_NS, EXACT_NS = 200_000, 2_500
LIVE_SLACK_NS = 5_000_000
"""The emulator says when a frame is to arrive. By so much an answer to it may be earlier."""


@dataclass(frozen=True, kw_only=True)
class Capture:
    """A capture in files, and what is right for it."""

    drawn: Drawn
    files: list[Path]
    views: list[View]
    servers: set[int]
    right: Right
    names: dict[str, int]
    expected: Mapping[tuple[int, int], set[int]]
    never: set[tuple[int, int, int]]


def make(drawn: Drawn, directory: Path) -> Capture | None:
    """Run the scenario of a number, and write its capture; nothing where no frame passes the point."""
    plan = compile_plan(parse_values(drawn.values | {
        "seed": drawn.number + 1, "backend": drawn.backend, "recording": {"pcapng": drawn.backend == "live"},
    }, f"number {drawn.number}"))
    outcome = perform(Job(plan, directory / "run"), lambda progress: None)
    if outcome.verdict != "complete":
        raise RuntimeError(f"number {drawn.number}: the run {outcome.verdict}: {outcome.reason}")
    recording = Recording.open(directory / "run")
    pcapng(recording, directory / "run.pcapng")
    frames = frames_of(directory / "run.pcapng")
    names = list(recording.layout["clients"].names)
    traffic = traffic_of(frames, names)
    slack_ns = LIVE_SLACK_NS if drawn.backend == "live" else 0
    traffic.settle_arrivals(slack_ns)
    views = views_of(drawn, recording.layout["hosts"], traffic, frames)
    right = right_of(traffic, frames, views, slack_ns=slack_ns)
    data = rewritten(frames, traffic, contents=drawn.contents, assigns=drawn.assigns,
                     completes=drawn.backend == "sim")
    files, ports = _write(drawn, directory, views, frames, data, _clients(traffic))
    expected, never = _of_run(recording)
    servers = {connection.server_address for connection in traffic.connections}
    return Capture(drawn=drawn, files=files, views=views, servers=servers, right=right,
                   names=_names(traffic, names, ports), expected=expected, never=never) if files else None


def _clients(traffic: Traffic) -> list[bytes]:
    servers = {connection.server_address for connection in traffic.connections}
    return sorted({connection.client_address.to_bytes(4) for connection in traffic.connections
                   if connection.client_address not in servers})


def _write(drawn: Drawn, directory: Path, views: list[View], frames: list[Frame], data: dict[int, bytes],
           clients: list[bytes]) -> tuple[list[Path], dict[tuple[bytes, int], int]]:
    link_type, kind = drawn.file
    ports: dict[tuple[bytes, int], int] = {}
    written = []
    for index, (view, damage) in enumerate(zip(views, drawn.damages, strict=False)):
        chance = capture_files.Chance(f"capture.{index}", Dice(drawn.number).uniform)
        seen = capture_files.seen_by(view, frames, data)
        seen = capture_files.damaged(seen, damage, chance, clients, ports)
        if not seen:
            continue
        content = capture_files.pcapng(seen, link_type=link_type, snap=damage.snap) if kind == "pcapng" else (
            capture_files.pcap(seen, link_type=link_type, in_ns=kind == "nanoseconds", snap=damage.snap))
        path = directory / f"capture-{drawn.number}-{index}.{'pcapng' if kind == 'pcapng' else 'pcap'}"
        path.write_bytes(content)
        written.append(path)
    return written, ports


def _names(traffic: Traffic, names: list[str], ports: Mapping[tuple[bytes, int], int]) -> dict[str, int]:
    """Clients by what an import may call them."""
    known = {name: number for number, name in enumerate(names)}
    for connection in traffic.connections:
        if connection.client is None:
            continue
        address = connection.client_address.to_bytes(4)
        known[connection.client_id.decode()] = connection.client
        places = [(address, connection.client_port)]
        if (outside := ports.get((address, connection.client_port))) is not None:
            places.append((capture_files.PUBLIC, outside))
        for host, port in places:
            known[f"{'.'.join(map(str, host))}:{port}"] = connection.client
            v6 = f"fd00::{host[0] << 8 | host[1]:x}:{host[2] << 8 | host[3]:x}"
            known[f"[{v6}]:{port}"] = known[f"{v6}:{port}"] = connection.client
    return known


def _of_run(recording: Recording) -> tuple[dict[tuple[int, int], set[int]], set[tuple[int, int, int]]]:
    """Which clients should have a message, and which never got it."""
    expected: dict[tuple[int, int], set[int]] = {}
    never: set[tuple[int, int, int]] = set()
    for row in recording.messages.select("publisher", "sequence", "subscriber", "fate").iter_rows():
        if row[0] is not None and row[2] is not None and row[3] in EXPECTED:
            expected.setdefault(row[:2], set()).add(row[2])
            if row[3] != "delivered":
                never.add(row[:3])
    return expected, never


def tried(number: int, directory: Path) -> dict[str, Any]:
    """The line of a number."""
    drawn = draw_capture(number)
    row: dict[str, Any] = {"number": number, "importer": engine_digest(), "what": drawn.words()}
    capture = make(drawn, directory)
    if capture is None:
        return row | {"word": "nothing passes"}
    exact_ns = EXACT_NS + MIRROR_NS * any(damage.mirror for damage in drawn.damages)
    found = judge(capture.files, directory / "import", capture.names, capture.right, capture.expected, capture.never,
                  tolerance_ns=exact_ns)
    places = "+".join(_place(view, capture.servers) for view in capture.views)
    return row | {"what": drawn.words(places)} | said(found)


def _place(view: View, servers: set[int]) -> str:
    """Where a file was taken."""
    return "middle" if view.point.host is None else "broker" if view.point.host in servers else "client"


def said(found: Found) -> dict[str, Any]:
    """What is kept of a verdict."""
    return {"word": found.word, "problems": dict(found.problems), "examples": found.examples, "reasons": found.reasons,
            "numbers": found.numbers}


@functools.cache
def engine_digest() -> str:
    """Names the importer's program."""
    return hashlib.sha256(engine_path().read_bytes()).hexdigest()[:12]


def read(path: Path) -> dict[int, dict[str, Any]]:
    """The lines of the results, by number."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {row["number"]: row for row in map(json.loads, lines)}


def campaign(numbers: range, path: Path, *, again: bool, backend: str | None) -> None:
    """Try the numbers that are missing."""
    rows = read(path)
    for number in numbers:
        kept = rows.get(number)
        if kept is not None and not (again and kept["importer"] != engine_digest()):
            continue
        if backend is not None and draw_capture(number).backend != backend:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            try:
                row = tried(number, Path(scratch))
            except Exception as error:
                row = {"number": number, "importer": engine_digest(), "what": draw_capture(number).words(),
                       "word": "bench", "problems": {f"{type(error).__name__}: {error}"[:200]: 1}}
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{number}: {row['word']} ({row['what']}) {row.get('problems') or ''} "
              f"{time.monotonic() - began:.1f} s", flush=True)


def summary(numbers: range, rows: Mapping[int, Mapping[str, Any]]) -> str:
    """What came out, in Markdown."""
    run = [rows[number] for number in numbers if number in rows]
    words = Counter(row["word"] for row in run)
    lines = [f"{len(run)} captures (numbers {numbers[0]} to {numbers[-1]}): " + ", ".join(
        f"{count} {word}" for word, count in words.most_common()) + ".", "",
        "| what | captures | right | cannot be told | wrong and valid |", "|---|---:|---:|---:|---:|"]
    parts: dict[str, Counter[str]] = {}
    for row in run:
        for part in {part.split(" (")[0].split(" ms")[0] for part in row["what"].split(", ")}:
            part = "clock" if part.startswith("clock") else part
            parts.setdefault(part, Counter())[row["word"]] += 1
    lines += [f"| {part} | {count.total()} | {count[RIGHT]} | {count[UNTOLD]} | {count[WRONG]} |"
              for part, count in sorted(parts.items())]
    lines += ["", "| difference of a valid import | captures | first number |", "|---|---:|---:|"]
    problems: dict[str, list[int]] = {}
    for row in run:
        for problem in row.get("problems", {}) if row["word"] not in (RIGHT, UNTOLD) else {}:
            problems.setdefault(problem, []).append(row["number"])
    lines += [f"| {problem} | {len(found)} | {found[0]} |"
              for problem, found in sorted(problems.items(), key=lambda each: -len(each[1]))]
    return "\n".join(lines)


def show(number: int) -> None:
    """Write the capture of a number into the working directory, and print what is right."""
    drawn = draw_capture(number)
    directory = Path(f"capture-{number}")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    capture = make(drawn, directory)
    print(f"{number}: {drawn.words()}")
    if capture is None:
        print("nothing passes the point")
        return
    print(*capture.files, sep="\n")
    for key, sent in capture.right.sent.items():
        ways = [f"{subscriber}: " + " ".join(
            f"{(each.low_ns - sent.at_ns) / 1e6:.3f}–{(each.high_ns - sent.at_ns) / 1e6:.3f} ms"
            + ("" if each.is_certain else " (not acknowledged)") for each in found)
            for (*its, subscriber), found in capture.right.deliveries.items() if tuple(its) == key]
        print(f"{key[0]}:{key[1]} sent {sent.at_ns / 1e9:.6f} {'; '.join(ways) or 'not delivered'}")


def main() -> None:
    """Try them, and say what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first number (default: %(default)s)")
    parser.add_argument("--count", type=int, default=500, help="how many numbers (default: %(default)s)")
    parser.add_argument("--backend", choices=("sim", "live"), help="only numbers of this backend")
    parser.add_argument(
        "--results", type=Path, default=HERE / "chance.jsonl", help="what was tried (default: %(default)s)")
    parser.add_argument("--out", type=Path, help="write the summary here, too")
    parser.add_argument("--again", action="store_true", help="repeat numbers that another importer has read")
    parser.add_argument("--table", action="store_true", help="try nothing; print the summary of what was tried")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="write a capture, and print what is right")
    parser.add_argument("--judging", action="store_true", help="try numbers that are kept for judging")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.count)
    last = numbers[-1] if options.show is None else options.show
    if last >= JUDGED_FROM and not options.judging:
        parser.error(f"numbers from {JUDGED_FROM:,} up are kept for judging; add --judging to try them")
    if options.show is not None:
        show(options.show)
        return
    if not options.table:
        campaign(numbers, options.results, again=options.again, backend=options.backend)
    text = summary(numbers, read(options.results))
    print(text)
    if options.out is not None:
        options.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
