"""What engines have said so far, read from the queue line by line and kept for the figures of runs that go on."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.panels import Head, told_table
from mqttlab.digits import duration, plain
from mqttlab.plan.events import Change, changes
from mqttlab.report.text import number
from mqttlab.runs import Announced

if TYPE_CHECKING:
    from mqttlab.plan.types import Event

# With those that have ended, whose figures stay.
FOLLOWED_AT_ONCE = 16
LINES_AT_ONCE = 1000
# Of a long run every second tick is kept, every fourth, ...: twice what a figure draws.
TICKS_KEPT = 2400
LINKS_DRAWN = 8
TAIL_SHOWN = 20
EVENTS_SHOWN = 50
RECENT = 5
NUMBERS = ("at_ns", "connected", "offered", "sent", "delivered", "disconnects", "latency_p50_ns", "latency_p99_ns",
           "sender_lateness_p99_ns", "emulator_lateness_p99_ns", "events_per_s", "speed")


@dataclass
class Followed:
    """What the engine of one run has said."""

    heard: int = 0
    """The queue's number of the last line that was read; of a run elsewhere, how much of its lines, in bytes."""
    elsewhere: Announced | None = None
    """The run, where it is not the queue's."""
    ticks: list[dict[str, Any]] = field(default_factory=list)
    """Of each tick what figures draw; of a long run an even selection."""
    recent: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=RECENT))
    """The last ticks, a second of real time: rates are of it, for servers are sampled more rarely than ticks come."""
    phase: dict[str, Any] = field(default_factory=dict)
    waiting: str = ""
    """For what it waits before its first phase."""
    taken: list[int] = field(default_factory=list)
    """When events of the plan took place, in its order."""
    fired: list[tuple[int, Event]] = field(default_factory=list)
    """When events took place that were fired by hand, and what they were."""
    planned: list[Event] | None = None
    """The plan's events, once they were read."""
    warnings: list[str] = field(default_factory=list)
    tail: list[dict[str, Any]] = field(default_factory=list)
    """The last messages that ticks have told of, the latest first."""
    sampled: int = 0
    """How many they have told of."""
    every: int = 1
    seen: int = 0

    @property
    def last(self) -> dict[str, Any]:
        """The last tick; empty before the first."""
        return self.recent[-1] if self.recent else {}

    @property
    def before(self) -> dict[str, Any]:
        """The tick of a second ago."""
        return self.recent[0] if self.recent else {}

    def hear(self, line: dict[str, Any]) -> None:
        """Take a progress line."""
        event = line.get("event")
        if event == "phase":
            self.phase, self.waiting = line, ""
        elif event == "waiting":
            self.waiting = str(line.get("text"))
        elif event == "change":
            if line.get("by_hand"):
                self.fired.append((line["at_ns"], line["by_hand"]))
            else:
                self.taken.append(line["at_ns"])
        elif event == "warning":
            self.warnings.append(str(line.get("text")))
        elif event == "tick":
            self.recent.append(line)
            told = line.get("messages") or []
            self.sampled += len(told)
            self.tail = [*reversed(told), *self.tail][:TAIL_SHOWN]
            if self.seen % self.every == 0:
                self.ticks.append(_kept(line, self.before))
            self.seen += 1
            if len(self.ticks) >= TICKS_KEPT:
                self.ticks, self.every = self.ticks[::2], 2 * self.every


def _kept(line: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    busiest = sorted(line.get("links") or (), key=lambda link: -link["rate_bit_s"])[:LINKS_DRAWN]
    used = {server["server"]: server for server in _servers(line, before)}
    return {**{name: line.get(name) for name in NUMBERS},
            "links": {link["link"]: (link["rate_bit_s"], link["queue_bytes"]) for link in busiest},
            "servers": {name: server["percent"] for name, server in used.items()}}


class Watch:
    """The lines of the runs that somebody looks at. Its methods may be called from several threads."""

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._followed: OrderedDict[str, Followed] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, job: str) -> Followed:
        """What a run's engine has said up to now; empty where there is no such run."""
        with self._lock:
            found = self._followed.setdefault(job, Followed())
            self._followed.move_to_end(job)
            if found.elsewhere is not None:
                _read(found, found.elsewhere)
            while found.elsewhere is None:
                lines = self._jobs.queue.events(found.heard, job, LINES_AT_ONCE)
                for heard, _, line in lines:
                    found.heard = heard
                    found.hear(line)
                if len(lines) < LINES_AT_ONCE:
                    break
            while len(self._followed) > FOLLOWED_AT_ONCE:
                self._followed.popitem(last=False)
        return found

    def changes(self, job: str) -> list[Change]:
        """The events of a run that have taken place, when they did; those that were fired by hand, too."""
        found = self.of(job)
        if not (found.taken or found.fired):
            return []
        if found.planned is None:
            found.planned = _planned(self.directory_of(job))
        return changes(found.planned, found.taken, found.fired)

    def directory_of(self, job: str) -> Path | None:
        """Where a run's recording is made; nothing where there is no such run."""
        found = self.of(job)
        return self._jobs.directory_of(job) if found.elsewhere is None else found.elsewhere.directory

    def elsewhere(self) -> tuple[list[Announced], list[Announced]]:
        """The runs that go on and are not the queue's; and those that have ended since they were looked at, the latest
        first."""
        running = self._jobs.elsewhere()
        names = {run.identifier for run in running}
        for run in running:
            with self._lock:
                self._followed.setdefault(run.identifier, Followed(elsewhere=run))
            self.of(run.identifier)
        with self._lock:
            ended = [followed.elsewhere for name, followed in reversed(self._followed.items())
                     if followed.elsewhere is not None and name not in names]
        return running, ended


def _planned(directory: Path | None) -> list[Event]:
    """The events of a run's plan, which is written before the run begins; none where it cannot be read."""
    if directory is None:
        return []
    try:
        plan = json.loads((directory / "plan.json").read_text(encoding="utf-8"))
        found: list[Event] = plan.get("events") or []
    except (OSError, ValueError, AttributeError):
        return []
    return found


def _read(found: Followed, run: Announced) -> None:
    """The whole lines that have come since; none of a run that has ended."""
    try:
        with run.lines.open("rb") as file:
            file.seek(found.heard)
            text = file.read()
    except OSError:
        return
    whole = text[:text.rfind(b"\n") + 1]
    found.heard += len(whole)
    for line in whole.splitlines():
        with contextlib.suppress(ValueError):
            found.hear(json.loads(line))


def shown(run: Followed) -> dict[str, Any]:
    """A run's present numbers as the page writes them: ``tiles``, and tables by name."""
    tick, before = run.last, run.before
    if not tick:
        return {"tiles": [], "tables": {}, "done": 0.0, "sample": ""}
    return {"tiles": _tiles(tick, before), "done": _done(run), "tables": {
        "links": told_table("Links", LINK_HEADS, [_link(link) for link in tick.get("links") or ()]),
        "servers": told_table("Servers", SERVER_HEADS, [
            [server["server"], server["percent"], server["rss_bytes"] / 1e6] for server in _servers(tick, before)]),
        "groups": told_table("Groups", GROUP_HEADS, [
            _group(group, tick, before) for group in tick.get("groups") or ()]),
        "tail": told_table("Messages that have just arrived", TAIL_HEADS, [_message(one) for one in run.tail]),
    }, "sample": sample(run)}


def events_told(taken: Sequence[Change]) -> dict[str, Any]:
    """The events that have taken place, the latest first, as a table."""
    rows = [[f"{one.at_ns / 1e9:.1f}", one.name, "" if one.until_ns is None else f"{one.until_ns / 1e9:.1f}"]
            for one in reversed(taken[-EVENTS_SHOWN:])]
    return told_table("Events so far", EVENT_HEADS if rows else (), rows)


def sample(run: Followed) -> str:
    """What the tail is a sample of; nothing of engines that tell of no message."""
    delivered = number(int(run.last.get("delivered") or 0))
    return "" if not run.sampled else (
        f"The engine samples the first five deliveries of each quarter of a second: {number(run.sampled)} of the "
        f"{delivered} so far; here are the last {TAIL_SHOWN}.")


LINK_HEADS = (Head("link", text=True), Head("rate", unit="kbit/s"), Head("waiting", unit="frames"),
              Head("waiting", unit="B"), Head("frames"), Head("dropped", text=True))
SERVER_HEADS = (Head("server", text=True), Head("processor", unit="%"), Head("memory", unit="MB"))
GROUP_HEADS = (Head("group", text=True), Head("offered"), Head("sent"), Head("delivered"), Head("sent", unit="1/s"),
               Head("delivered", unit="1/s"))
EVENT_HEADS = (Head("at", unit="s"), Head("event", text=True), Head("until", unit="s"))
TAIL_HEADS = (Head("received", unit="s"), Head("topic", text=True), Head("from", text=True), Head("to", text=True),
              Head("QoS"), Head("size", unit="B"), Head("latency", unit="ms"))


def _tiles(tick: dict[str, Any], before: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("run time", duration(tick["at_ns"]))]
    rows += [(name, number(tick[name])) for name in ("connected", "offered", "sent", "delivered", "disconnects")
             if tick.get(name) is not None]
    lost = max(0, int(tick.get("expected") or 0) - int(tick.get("delivered") or 0))
    rows.append(("not delivered yet or lost", number(lost)))
    passed_s = _passed_s(tick, before)
    rows += [(f"{name} per second", number((tick[name] - before[name]) / passed_s, 3)) for name in ("sent", "delivered")
             if passed_s > 0]
    recent = tick.get("latency") or {}
    rows += [(f"latency of the last seconds, {words}", duration(recent[name])) for name, words in (
        ("p50_ns", "median"), ("p99_ns", "p99")) if recent.get("count")]
    rows += [(words, duration(tick[name])) for name, words in (
        ("sender_lateness_p99_ns", "senders late, p99"), ("emulator_lateness_p99_ns", "emulator late, p99"))
        if tick.get(name) is not None]
    if tick.get("events_per_s"):
        rows.append(("simulated events per second", number(tick["events_per_s"])))
    if tick.get("speed"):
        rows.append(("speed", f"{plain(tick['speed'], 3)} × real time"))
    return rows


def _done(run: Followed) -> float:
    """How much of its phase is over, from 0 to 1."""
    length = run.phase.get("length_ns") or 0
    passed = run.last.get("at_ns", 0) - run.phase.get("at_ns", 0)
    return min(1.0, max(0.0, passed / length)) if length else 0.0


def _passed_s(tick: dict[str, Any], before: dict[str, Any]) -> float:
    return float(tick["at_ns"] - before.get("at_ns", tick["at_ns"])) / 1e9


def _link(link: dict[str, Any]) -> list[Any]:
    drops = ", ".join(f"{number(count)} {cause.replace('_', ' ')}" for cause, count in link["drops"].items())
    return [link["link"], link["rate_bit_s"] / 1000, link["queue_frames"], link["queue_bytes"], link["frames"], drops]


def _group(group: dict[str, Any], tick: dict[str, Any], before: dict[str, Any]) -> list[Any]:
    passed_s = _passed_s(tick, before)
    known = next((one for one in before.get("groups") or () if one["group"] == group["group"]), group)
    rates = [(group[name] - known[name]) / passed_s if passed_s > 0 else None for name in ("sent", "delivered")]
    return [group["group"], group["offered"], group["sent"], group["delivered"], *rates]


def _servers(tick: dict[str, Any], before: dict[str, Any]) -> list[dict[str, Any]]:
    """The servers with their share of a processor since the line before."""
    passed_s = _passed_s(tick, before)
    known = {server["server"]: server["cpu_s"] for server in before.get("servers") or ()}
    return [{**server, "percent": 100 * (server["cpu_s"] - known.get(server["server"], server["cpu_s"])) / passed_s
             if passed_s > 0 else None} for server in tick.get("servers") or ()]


def _message(message: dict[str, Any]) -> list[Any]:
    return [f"{message['at_ns'] / 1e9:.3f}", message["topic"], message["publisher"], message["subscriber"],
            message["qos"], message["payload_bytes"],
            None if message.get("latency_ns") is None else f"{message['latency_ns'] / 1e6:.3f}"]
