"""Progress on the terminal: a run's bar with live figures, or plain lines where nobody watches; an import's bar."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

PHASES = {
    "setup": "setting up", "connect": "connecting", "warm_up": "warming up", "measurement": "measuring",
    "cool_down": "cooling down", "finalise": "writing the recording",
}


class RunProgress:
    """Shows the engine's progress lines. A context manager; :meth:`observe` is called with each line."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._live = console.is_terminal
        self._phase_start_ns = 0
        self._bar = Progress(
            SpinnerColumn(), TextColumn("[bold]{task.fields[phase]}"), BarColumn(),
            TextColumn("{task.fields[figures]}"), TimeRemainingColumn(), console=console, transient=True,
        )
        self._task = self._bar.add_task(title, total=None, phase="starting", figures="")

    def __enter__(self) -> Self:
        if self._live:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._bar.stop()

    def observe(self, line: dict[str, Any]) -> None:
        """Show one line."""
        kind = line.get("event")
        if kind == "phase":
            self._phase(line)
        elif kind == "tick":
            self._tick(line)
        elif kind == "warning":
            self._console.print(f"[yellow]warning:[/] {escape(line['text'])}", highlight=False)

    def _phase(self, line: dict[str, Any]) -> None:
        words = PHASES.get(line["phase"], line["phase"])
        self._phase_start_ns = line["at_ns"]
        length = line["length_ns"] / 1e9
        if self._live:
            self._bar.reset(self._task, total=length or None, phase=words, figures="")
        else:
            limit = f" (at most {length:g} s)" if length else ""
            self._console.print(f"{self._title}: {words}{limit}", highlight=False, markup=False)

    def _tick(self, line: dict[str, Any]) -> None:
        if self._live:
            elapsed = (line["at_ns"] - self._phase_start_ns) / 1e9
            self._bar.update(self._task, completed=elapsed, figures=figures(line))


def figures(line: dict[str, Any]) -> str:
    """The live figures of a tick in a few words."""
    parts = [f"{line['connected']} connected", f"{line['sent']} sent", f"{line['delivered']} delivered"]
    if line.get("latency_p50_ns") is not None:
        parts.append(f"p50 {line['latency_p50_ns'] / 1e6:.1f} ms")
    if line.get("latency_p99_ns") is not None:
        parts.append(f"p99 {line['latency_p99_ns'] / 1e6:.1f} ms")
    if line.get("emulator_lateness_p99_ns") is not None:
        parts.append(f"emulator late {line['emulator_lateness_p99_ns'] / 1e3:.0f} µs")
    if line.get("events_per_s") is not None:
        parts.append(f"{line['events_per_s'] / 1e3:.0f} k events/s")
    if line.get("disconnects"):
        parts.append(f"[red]{line['disconnects']} disconnects[/]")
    return ", ".join(parts)


class ImportProgress:
    """Shows how much of the files has been read. A context manager; :meth:`observe` is called with each line."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = Progress(
            SpinnerColumn(), TextColumn("[bold]reading"), BarColumn(), DownloadColumn(),
            TextColumn("{task.fields[rows]:,} rows"), TimeRemainingColumn(), console=console, transient=True,
            disable=not console.is_terminal,
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
