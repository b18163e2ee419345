"""Progress on the terminal: a run's bar and a live summary, or plain lines where nobody watches; an import's bar.

What a line of progress holds is in ``docs/reference/progress.md``. Fields that a line does not have are passed over:
older engines say less.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from mqttlab.console import Console
from mqttlab.digits import duration, plain
from mqttlab.foreign import visible

PHASES = {
    "setup": "setting up", "connect": "connecting", "warm_up": "warming up", "measurement": "measuring",
    "cool_down": "cooling down", "finalise": "writing the recording",
}

CHANGES_SHOWN = 20
PATIENCE_NS = 3 * 10**9
"""How long clients connect until it is told that none has."""


class RunProgress:
    """Shows the engine's progress lines. A context manager; :meth:`observe` is called with each line."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._live = console.is_terminal
        self._phase_start_ns = self._measured_ns = self._changes = 0
        self._before: dict[str, Any] = {}
        # Since when clients connect, and for how long at most, until it is told that none has.
        self._connecting: tuple[int, float] | None = None
        self._bar = Progress(
            SpinnerColumn(), TextColumn("[bold]{task.fields[phase]}"), BarColumn(),
            TextColumn("{task.fields[figures]}"), TimeRemainingColumn(), console=console,
        )
        self._task = self._bar.add_task(title, total=None, phase="starting", figures="")
        self._display = Live(self._bar, console=console, transient=True)

    def __enter__(self) -> Self:
        if self._live:
            self._display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._display.stop()

    def say(self, words: str) -> None:
        """Print a line beside the bar."""
        self._console.print(f"{self._title}: {words}", highlight=False, markup=False, soft_wrap=True)

    def observe(self, line: dict[str, Any]) -> None:
        """Show one line."""
        kind = line.get("event")
        if kind == "phase":
            self._phase(line)
        elif kind == "tick":
            self._tick(line)
        elif kind == "change":
            self._change(line)
        elif kind == "waiting":
            self.say(str(line["text"]))
        elif kind == "warning":
            self._console.print(f"[yellow]warning:[/] {escape(line['text'])}", highlight=False)

    def _phase(self, line: dict[str, Any]) -> None:
        words = PHASES.get(line["phase"], line["phase"])
        self._phase_start_ns = line["at_ns"]
        length = line["length_ns"] / 1e9
        self._connecting = (line["at_ns"], length) if line["phase"] == "connect" else None
        if line["phase"] in ("warm_up", "measurement"):
            self._measured_ns = line["at_ns"] + (line["length_ns"] if line["phase"] == "warm_up" else 0)
        if self._live:
            self._bar.reset(self._task, total=length or None, phase=words, figures="")
        else:
            limit = f" (at most {plain(length)} s)" if length else ""
            self._console.print(f"{self._title}: {words}{limit}", highlight=False, markup=False)

    def _change(self, line: dict[str, Any]) -> None:
        """Events: on a terminal the first ones of very many. Those that are fired by hand everywhere: no scenario tells
        them."""
        self._changes += 1
        by_hand = bool(line.get("by_hand"))
        if by_hand or (self._live and self._changes <= CHANGES_SHOWN):
            at = (line["at_ns"] - self._measured_ns) / 1e9
            self.say(f"at {at:.1f} s {visible(str(line['name']))}{', by hand' if by_hand else ''}")

    def _tick(self, line: dict[str, Any]) -> None:
        if self._connecting is not None and line["at_ns"] - self._connecting[0] >= PATIENCE_NS:
            length, self._connecting = self._connecting[1], None
            if line["connected"] == 0 and length > PATIENCE_NS / 1e9:
                self.say(f"no client is connected yet; waiting for at most {plain(length)} s")
        if self._live:
            elapsed = (line["at_ns"] - self._phase_start_ns) / 1e9
            self._bar.update(self._task, completed=elapsed, figures=figures(line))
            lines = [Text(text, overflow="ellipsis", no_wrap=True) for text in summary(line, self._before)]
            self._display.update(Group(self._bar, *lines))
            self._before = line


def figures(line: dict[str, Any]) -> str:
    """The live figures of a tick in a few words."""
    parts = [f"{line['connected']} connected", f"{line['sent']} sent", f"{line['delivered']} delivered"]
    if line.get("latency_p50_ns") is not None:
        parts.append(f"p50 {duration(line['latency_p50_ns'])}")
    if line.get("latency_p99_ns") is not None:
        parts.append(f"p99 {duration(line['latency_p99_ns'])}")
    if line.get("emulator_lateness_p99_ns") is not None:
        parts.append(f"emulator late {line['emulator_lateness_p99_ns'] / 1e3:.0f} µs")
    if line.get("events_per_s") is not None:
        parts.append(f"{line['events_per_s'] / 1e3:.0f} k events/s")
    if line.get("speed") is not None:
        parts.append(f"{_figure(line['speed'])} × real time")
    if line.get("disconnects"):
        parts.append(f"[red]{line['disconnects']} disconnects[/]")
    return ", ".join(parts)


class ImportProgress:
    """Shows how much of the files has been read, how fast, and how long the rest takes; then that tables are written.

    A context manager; :meth:`observe` is called with each line.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            # On one line of 80 columns.
            SpinnerColumn(), TextColumn("[bold]reading"), BarColumn(bar_width=16), DownloadColumn(),
            TransferSpeedColumn(), TextColumn("{task.fields[rows]:,} rows"), TimeRemainingColumn(),
            console=console, transient=True, disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("reading", total=None, rows=0)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def observe(self, line: dict[str, Any]) -> None:
        """Show one line. Warnings are printed with the report."""
        if line["event"] == "import":
            self._bar.update(self._task, completed=line["read_bytes"], total=line["total_bytes"], rows=line["rows"])
        elif line["event"] == "phase":
            self._write(PHASES.get(line["phase"], line["phase"]))

    def _write(self, words: str) -> None:
        """How long the tables take is not known: the bar moves, and the time is that since the last row was read."""
        rows = self._bar.tasks[0].fields["rows"]
        self._bar.columns = (
            SpinnerColumn(), TextColumn(f"[bold]{escape(words)}"), BarColumn(bar_width=16),
            TextColumn("{task.fields[rows]:,} rows"), TimeElapsedColumn(),
        )
        self._bar.reset(self._task, total=None, rows=rows)


def summary(line: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """What groups, links and servers do, and how latencies of the last seconds are distributed, a line of text each.

    Args:
        line: a tick.
        before: the tick before, for rates; empty at first.
    """
    passed_s = (line["at_ns"] - before.get("at_ns", line["at_ns"])) / 1e9
    return [*_latency(line), *_groups(line, before, passed_s), *_links(line), *_servers(line, before, passed_s)]


def _latency(line: dict[str, Any]) -> list[str]:
    latency = line.get("latency", {})
    if not latency.get("count"):
        return []
    percentiles = (f"{name} {duration(latency[f'{name}_ns'])}" for name in ("p50", "p90", "p99"))
    return [f"  latency of the last {latency['count']}: {', '.join(percentiles)}  {spark(latency)}"]


def spark(latency: dict[str, Any]) -> str:
    """The distribution of recent latencies in a few characters, from the least to the greatest, by doublings."""
    octaves: dict[int, int] = {}
    for upper_ns, count in latency["buckets"]:
        octave = int(upper_ns).bit_length()
        octaves[octave] = octaves.get(octave, 0) + count
    most = max(octaves.values())
    shown = range(min(octaves), max(octaves) + 1)
    return "".join(BARS[-(-octaves.get(octave, 0) * (len(BARS) - 1) // most)] for octave in shown)


def _groups(line: dict[str, Any], before: dict[str, Any], passed_s: float) -> list[str]:
    known = {group["group"]: group for group in before.get("groups", ())}
    shown = []
    for group in line.get("groups", ())[:SHOWN]:
        parts = []
        for field in ("sent", "delivered"):
            rate = (group[field] - known.get(group["group"], group)[field]) / passed_s if passed_s > 0 else 0.0
            if group[field]:
                parts.append(f"{field} {group[field]} ({_figure(rate)}/s)")
        unsent = group["offered"] - group["sent"]
        parts += [f"{unsent} unsent"] if unsent else []
        shown += [f"  {group['group']}: {', '.join(parts)}"] if parts else []
    return shown


def _links(line: dict[str, Any]) -> list[str]:
    busy = [link for link in line.get("links", ()) if link["frames"] or link["drops"]]
    busy.sort(key=lambda link: (link["queue_bytes"] > 0, link["rate_bit_s"], sum(link["drops"].values())), reverse=True)
    shown = []
    for link in busy[:SHOWN]:
        drops = ", ".join(f"{count} {cause.replace('_', ' ')}" for cause, count in link["drops"].items())
        queue = f", {link['queue_frames']} frames wait" if link["queue_frames"] else ""
        shown.append(f"  {link['link']}: {_rate(link['rate_bit_s'])}{queue}{f', dropped: {drops}' if drops else ''}")
    left = len(busy) - len(shown) + line.get("links_left_out", 0)
    return [*shown, f"  and {left} more links"] if left > 0 else shown


def _servers(line: dict[str, Any], before: dict[str, Any], passed_s: float) -> list[str]:
    known = {server["server"]: server for server in before.get("servers", ())}
    shown = []
    for server in line.get("servers", ())[:SHOWN]:
        used_s = server["cpu_s"] - known.get(server["server"], server)["cpu_s"]
        percent = 100 * used_s / passed_s if passed_s > 0 else 0.0
        shown.append(f"  {server['server']}: {percent:.0f} % of a processor, {server['rss_bytes'] / 1e6:.0f} MB")
    return shown


def _figure(value: float) -> str:
    """A number to three digits, and never as a power of ten."""
    return plain(value, 3, grouped=False)


def _rate(bit_s: int) -> str:
    for unit, size in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if bit_s >= size:
            return f"{_figure(bit_s / size)} {unit}"
    return f"{bit_s} bit/s"


# Groups, links and servers that are shown at most, each.
SHOWN = 4
BARS = " ▁▂▃▄▅▆▇█"
