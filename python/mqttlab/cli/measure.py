"""``mqttlab doctor --measure``: how exactly this machine emulates, and what can be measured on it therefore."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

from rich import box
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from mqttlab.cli.space import size
from mqttlab.console import Console
from mqttlab.digits import duration
from mqttlab.engine import measure
from mqttlab.report.text import number
from mqttlab.scenario.estimate import FRAME_BYTES
from mqttlab.schemas import OUTPUT_SCHEMA
from mqttlab.terminal import say_json

DISK_SECONDS = 1.0
DISK_BYTES = 64_000_000
CHUNK_BYTES = 1_000_000
COLUMNS = ("frames/s", "sent/s", "frames", "lost", "error p50", "error p99", "emulator late p99", "its processor")


def show_measure(seconds: float, runs: Path, as_json: bool) -> None:
    """Measure for about ``seconds``, and print what was found and what follows.

    Raises:
        EngineError: nothing can be emulated here.
    """
    with Progress(TextColumn("{task.description}"), BarColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("disk", total=1.0)
        disk_seconds = min(DISK_SECONDS, seconds / 10)
        disk = write_rate(runs, disk_seconds)
        found = measure(max(1.0, seconds - disk_seconds),
                        lambda line: bar.update(task, completed=line["done"], description=line["what"]))
    found = {"seconds": seconds, **found, "disk": disk}
    if as_json:
        say_json({"schema": OUTPUT_SCHEMA} | found)
    else:
        _print(found)


def write_rate(runs: Path, seconds: float) -> dict[str, Any]:
    """How fast the disk of ``runs`` takes data that must be on it; the file has no name, so that nothing stays."""
    # The directory is made later, on the disk of the nearest one that is there.
    there = next(place for place in (runs.absolute(), *runs.absolute().parents) if place.is_dir())
    # A disk that compresses is not shown zeros.
    chunk = os.urandom(CHUNK_BYTES)
    written = 0
    try:
        with tempfile.TemporaryFile(dir=there, buffering=0) as file:
            began = time.monotonic()
            while written < DISK_BYTES and (not written or time.monotonic() - began < seconds):
                written += file.write(chunk)
                os.fdatasync(file.fileno())
            took = time.monotonic() - began
    except OSError as error:
        return {"directory": str(there), "bytes_s": None, "written_bytes": written,
                "problem": error.strerror or str(error)}
    return {"directory": str(there), "bytes_s": written / took, "written_bytes": written, "problem": None}


def _print(found: dict[str, Any]) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 120)
    timer = found["control_timer"]
    priority = "real-time priority" if found["real_time"] else "no real-time priority"
    steal = found["steal_percent"]
    lines = [
        f"Control timer ({priority}): late by {duration(timer['p50_ns'])} at the median, "
        f"{duration(timer['p99_ns'])} at the 99th percentile, {duration(timer['max_ns'])} at most",
        "Steal: " + ("not reported by this kernel" if steal is None else f"{number(steal, 2)} % of processor time"),
        _disk(found["disk"]),
    ]
    for line in lines:
        console.print(line, highlight=False, markup=False)
    console.print(rates(found))
    for sentence in found["words"]:
        console.print(sentence, highlight=False, markup=False)


def rates(found: dict[str, Any]) -> Table:
    """A row for each rate of frames."""
    title = f"Frames over an emulated delay of {duration(found['delay_ns'])} (ports: {found['port']})"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for rate in found["rates"]:
        processor = rate["emulator_cpu_percent"]
        table.add_row(
            number(rate["frames_s"]), number(float(rate["offered_frames_s"])), number(rate["sent"]),
            number(rate["lost"]),
            duration(rate["error_p50_ns"]), duration(rate["error_p99_ns"]), duration(rate["emulator_late"]["p99_ns"]),
            "–" if processor is None else f"{processor:.0f} %",
        )
    return table


def _disk(disk: dict[str, Any]) -> str:
    if disk["bytes_s"] is None:
        return f"Disk of {disk['directory']}: cannot be written to: {disk['problem']}"
    # Two digits: it is an estimate.
    frames = float(f"{disk['bytes_s'] / FRAME_BYTES:.2g}")
    return (f"Disk of {disk['directory']}: takes {size(disk['bytes_s'])}/s ({size(disk['written_bytes'])} written), "
            f"enough to record about {number(frames, 2)} frames/s")
