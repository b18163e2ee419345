"""Kills every command with SIGKILL at random instants and looks for what is left: ``benches/hostile/kills.py``.

Each command first runs undisturbed, which says how long it takes. Then it is begun anew and killed at an instant that
is drawn between its start and that time, as often as ``--times`` says. Once it is gone the next command runs
(``mqttlab list``), and nothing may be left but results: no process, no namespace, mount, network device or control
group, no file in the directory for temporary files, none beside a result that is not one, and no run's directory
without a plan.

A result that was cut short is none of that: a recording that says it is incomplete, a page that is whole.

``--command NAME`` takes only this one; ``--out FILE`` writes the table as Markdown. The instants follow from
``--seed``, what is met there does not: the machine decides how far a command has come.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path

from mqttlab import control_groups, scratch

MARK = "MQTTLAB_KILLS"
PROGRAM = [sys.executable, "-m", "mqttlab"]
GONE_WITHIN_S = 30.0
SCENARIO = """
name = "small"
backend = "BACKEND"
phases = { duration = "2 s", cool_down = "500 ms" }
[[networks]]
between = ["field", "broker"]
up = { rate = "10 Mbit/s", delay = "5 ms", loss = "1 %" }
down = { rate = "10 Mbit/s", delay = "5 ms" }
link = "shared"
[[groups]]
name = "publishers"
host = "field"
count = 5
publish = { topic = "gps/{client}", qos = 1, payload = "100 B", rate = "RATE" }
[[groups]]
name = "subscribers"
host = "field"
subscribe = [{ filter = "gps/+", qos = 1 }]
"""
# What goes on from the beginning of the measurement until its end.
EVENTS = {
    "network down": 'network = "field"\ndown = true',
    "other link": 'network = "field"\nrate = "100 kbit/s"\nloss = "20 %"',
    "broker paused": 'server = "broker"\ndo = "pause"',
    "broker killed": 'server = "broker"\ndo = "kill"',
    "broker restarts": 'every = "300 ms"\nserver = "broker"\ndo = "stop"',
    "clients vanished": 'group = "publishers"\ndo = "vanish"',
    "clients silent": 'group = "subscribers"\ndo = "stop-reading"',
}
# The broker's host is held to these by control groups.
LIMITS = '[hosts.broker]\nlimits = { processor = "20 %", memory = "64 MB" }\n'
EXPERIMENT = """
name = "small-experiment"
scenario = "sim.toml"
design = "full"
repetitions = 2
responses = ["latency_ms_p99"]
[[factors]]
name = "loss"
place = "networks[0].up.loss"
levels = ["0 %", "1 %"]
"""
HOLDER = """
import sys
from mqttlab.runs.machine import live_alone
with live_alone(what="another"):
    print("held", flush=True)
    sys.stdin.read()
"""
OTHERS = {"catalog.db", "catalog.db-wal", "catalog.db-shm", "catalog.db-journal", "csv", "parquet", ".dashboard"}
"""What stands among recordings and in them, and is no recording: results of other commands."""


class Place:
    """A directory with what commands read, in which everything that they make must lie."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.temporary, self.runs = path / "tmp", path / "runs"
        for directory in (path, self.temporary, self.runs):
            directory.mkdir(exist_ok=True)
        for name, backend, rate in (("sim", "sim", "400 /s"), ("live", "live", "20 /s")):
            text = SCENARIO.replace("BACKEND", backend).replace("RATE", rate)
            (path / f"{name}.toml").write_text(text, encoding="utf-8")
        live = (path / "live.toml").read_text(encoding="utf-8")
        (path / "limited.toml").write_text(f"{live}{LIMITS}", encoding="utf-8")
        for name, event in EVENTS.items():
            lasts = "100 ms" if "every" in event else "1900 ms"
            (path / f"{name}.toml").write_text(f'{live}[[events]]\nat = "0 s"\nfor = "{lasts}"\n{event}\n',
                                               encoding="utf-8")
        (path / "experiment.toml").write_text(EXPERIMENT, encoding="utf-8")
        self.environment = {
            **os.environ, MARK: str(path), "TMPDIR": str(self.temporary), "MQTTLAB_QUEUE": str(path / "queue"),
            "HOME": str(path), "XDG_STATE_HOME": "", "XDG_CACHE_HOME": str(path / "cache")}

    def begin(self, words: Sequence[object]) -> subprocess.Popen[bytes]:
        """A command, in a session of its own."""
        return subprocess.Popen([*PROGRAM, *map(str, words)], cwd=self.path, env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                start_new_session=True)

    def perform(self, *words: object) -> int:
        """A command, and its exit status."""
        return self.begin(words).wait(timeout=600)

    @property
    def recording(self) -> Path:
        """One recording of a simulation, made when it is first asked for."""
        made = self.path / "made"
        if not made.is_dir():
            self.perform("run", "sim.toml", "--runs", made, "--no-html", "--catalog", "none")
        return next(made.glob("small-*"))

    @property
    def copies(self) -> Path:
        """Two copies of it, of which each is a directory of its own."""
        there = self.path / "copies"
        for name in ("a", "b"):
            if not (there / name).is_dir():
                shutil.copytree(self.recording, there / name)
        return there

    def processes(self) -> list[int]:
        """All that were started here, however far removed: they have inherited the mark."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with suppress(OSError):
                    alive = (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
                    if alive and f"{MARK}={self.path}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
        return found

    def end(self, processes: Sequence[int]) -> None:
        """End processes that were started here."""
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command, as it is begun."""

    name: str
    words: Callable[[Place], list[object]]
    around: Callable[[Place], contextlib.AbstractContextManager[object]] = lambda place: nullcontext()
    """What is there meanwhile."""
    victim: Callable[[Place, int], int] = lambda place, begun: begun
    """The process that is killed."""
    lasts_s: float | None = None
    """How long it runs, where it does not end by itself."""
    stays: Callable[[Place], None] = lambda place: None
    """What ends processes that are not the killed one's, and rightly go on."""


@contextmanager
def holding(place: Place) -> Iterator[None]:
    """Another live run has the machine."""
    with subprocess.Popen([sys.executable, "-c", HOLDER], env=place.environment, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        try:
            yield
        finally:
            holder.communicate()


@contextmanager
def queued(place: Place) -> Iterator[None]:
    """Two simulations are in the queue."""
    for _ in range(2):
        place.perform("run", "sim.toml", "--runs", place.runs, "--detach", "--no-html")
    try:
        yield
    finally:
        place.perform("queue", "cancel", "--all")


def of_queue(place: Place, begun: int) -> int:
    """The queue's process."""
    with suppress(OSError):
        for process in place.processes():
            if b"mqttlab.queue" in Path(f"/proc/{process}/cmdline").read_bytes():
                return process
    return begun


def end_queue(place: Place) -> None:
    """Cancel what waits, and let the queue's process end."""
    place.perform("queue", "cancel", "--all")
    with suppress(ProcessLookupError):
        for process in place.processes():
            os.kill(process, signal.SIGTERM)


def capture_of(place: Place) -> Path:
    """A capture of the recording."""
    made = place.path / "frames.pcapng"
    if not made.exists():
        place.perform("export", place.recording, "--pcapng", made)
    return made


def log_of(place: Place) -> Path:
    """A table of messages."""
    made = place.path / "messages.csv"
    if not made.exists():
        rows = "".join(f"{number},p{number % 7},s,t,1,100,{number / 100},{number / 100},{number / 100 + 0.01}\n"
                       for number in range(20_000))
        made.write_text("message,publisher,subscriber,topic,qos,payload_bytes,intended,sent,received\n" + rows,
                        encoding="utf-8")
    return made


COMMANDS = [
    Command(name="run live", words=lambda place: ["run", "live.toml", "--runs", place.runs]),
    Command(name="run simulated", words=lambda place: ["run", "sim.toml", "--runs", place.runs]),
    Command(name="run that waits", words=lambda place: ["run", "live.toml", "--runs", place.runs], around=holding,
            lasts_s=2.0),
    *(Command(name=f"run live, {name}", words=lambda place, name=name: ["run", f"{name}.toml", "--runs", place.runs])
      for name in EVENTS),
    Command(name="run live, limited", words=lambda place: ["run", "limited.toml", "--runs", place.runs]),
    Command(name="import capture", words=lambda place: ["import", "capture", capture_of(place), "--runs", place.runs]),
    Command(name="import log", words=lambda place: ["import", "log", log_of(place), "--runs", place.runs]),
    Command(name="report", words=lambda place: ["report", place.copies / "a"]),
    Command(name="export", words=lambda place: ["export", place.copies / "a", "--csv", "--parquet", "--xlsx",
                                                "--pcapng"]),
    Command(name="explain", words=lambda place: ["explain", place.copies / "a", "--slowest", 3]),
    Command(name="compare", words=lambda place: ["compare", place.copies / "a", place.copies / "b", "--html",
                                                 place.path / "compared.html"]),
    Command(name="experiment", words=lambda place: ["experiment", "experiment.toml", "--runs", place.runs, "--queue",
                                                    "none"]),
    Command(name="queue", words=lambda place: ["queue", "list"], around=queued, victim=of_queue, lasts_s=4.0,
            stays=end_queue),
    Command(name="dashboard", words=lambda place: ["dashboard", "--runs", place.copies, "--listen", "127.0.0.1:0"],
            lasts_s=4.0, stays=end_queue),
    Command(name="catalog", words=lambda place: ["catalog", "scan", place.copies]),
]


@dataclass
class Outcome:
    """What became of all kills of a command."""

    name: str
    took_s: float = 0.0
    kills: int = 0
    too_late: int = 0
    processes: int = 0
    devices: int = 0
    files: int = 0
    faults: list[str] = field(default_factory=list)


def mounts_and_devices() -> set[str]:
    """What a namespace, an emulated link with a name or a limited host would leave."""
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    groups = {str(path) for above in control_groups.places() for path in above.glob(f"{control_groups.PREFIX}*")
              # Not those of other runs that are going on beside this one.
              if not Path("/proc", path.name.split("-")[1]).exists()}
    return {line.split()[1] for line in mounts} | {path.name for path in Path("/sys/class/net").iterdir()} | groups


def left_files(place: Place) -> list[str]:
    """Files and directories that are neither results nor were there before."""
    found = [path for path in place.temporary.rglob("*")
             if path.name not in (f"mqttlab-{os.getuid()}", "live.lock")]
    found += [path for path in place.path.rglob(".*") if path.name.endswith((".unfinished", ".tmp"))]
    found += [path for above in (place.runs, place.copies, *place.runs.glob("small-experiment/runs"))
              for path in above.glob("*") if path.name not in OTHERS and not (path / "journal.jsonl").exists()
              and not (path / "plan.json").exists() and path.is_dir()]
    found += [path for above in place.copies.glob("*") for path in above.glob(f"{scratch.PREFIX}*")]
    return sorted(str(path.relative_to(place.path)) for path in found)


def kill(command: Command, place: Place, after_s: float, outcome: Outcome) -> None:
    """Begin a command, kill it, give the next one, and look."""
    before = mounts_and_devices()
    with command.around(place):
        others = set(place.processes())
        begun = place.begin(command.words(place))
        time.sleep(after_s)
        victim = command.victim(place, begun.pid)
        outcome.kills += 1
        outcome.too_late += begun.poll() is not None and victim == begun.pid
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        begun.wait(timeout=60)
        deadline = time.monotonic() + GONE_WITHIN_S
        if victim == begun.pid:
            command.stays(place)
            while (alive := set(place.processes()) - others) and time.monotonic() < deadline:
                time.sleep(0.05)
            if alive:
                outcome.processes += len(alive)
                outcome.faults.append(f"after {after_s:.2f} s: processes {sorted(alive)}")
                place.end([*alive])
    if victim != begun.pid:
        command.stays(place)
        while place.processes() and time.monotonic() < deadline:
            time.sleep(0.05)
        outcome.processes += len(place.processes())
    place.perform("list", "--runs", place.runs)
    if files := left_files(place):
        outcome.files += len(files)
        outcome.faults.append(f"after {after_s:.2f} s: {', '.join(files)}")
    while (devices := mounts_and_devices() - before) and time.monotonic() < deadline:
        time.sleep(0.2)
    if devices:
        outcome.devices += len(devices)
        outcome.faults.append(f"after {after_s:.2f} s: {', '.join(sorted(devices))}")


def clear(place: Place) -> None:
    """Take results away, so that each command finds what the first one found."""
    for path in (*place.runs.iterdir(), *place.copies.iterdir()):
        # A database's files go when the queue's process, which may still end, closes it.
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def kills(command: Command, place: Place, times: int, dice: random.Random) -> Outcome:
    """Kill a command so many times."""
    outcome = Outcome(command.name)
    with command.around(place):
        words, began = command.words(place), time.monotonic()
        if command.lasts_s is None:
            place.begin(words).wait(timeout=600)
            outcome.took_s = time.monotonic() - began
    length = command.lasts_s or outcome.took_s
    if command.lasts_s is None:
        command.stays(place)
    for _ in range(times):
        clear(place)
        kill(command, place, dice.uniform(0, length), outcome)
    return outcome


def table(outcomes: Sequence[Outcome], seed: int) -> str:
    """All outcomes as Markdown."""
    lines = [f"`benches/hostile/kills.py --seed {seed}`, {time.strftime('%d %B %Y', time.gmtime())}, "
             f"{os.cpu_count()} processors.", "",
             "| command | undisturbed | kills | of these too late | processes left | mounts and devices left "
             "| files left |", "|---|---:|---:|---:|---:|---:|---:|"]
    for each in outcomes:
        took = f"{each.took_s:.1f} s" if each.took_s else "goes on"
        lines.append(f"| {each.name} | {took} | {each.kills} | {each.too_late} | {each.processes} | {each.devices} "
                     f"| {each.files} |")
    lines += ["", *(f"- {each.name}, {fault}" for each in outcomes for fault in each.faults)]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--command", dest="commands", action="append", choices=[each.name for each in COMMANDS])
    parser.add_argument("--out", type=Path, help="a Markdown file")
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="mqttlab-kills-") as above:
        for command in COMMANDS:
            if chosen.commands and command.name not in chosen.commands:
                continue
            place = Place(Path(above, command.name.replace(" ", "-")))
            outcomes.append(kills(command, place, chosen.times, random.Random(f"{chosen.seed}/{command.name}")))
            print(outcomes[-1], flush=True)
            place.end(place.processes())
    text = table(outcomes, chosen.seed)
    print(text)
    if chosen.out is not None:
        chosen.out.write_text("# Commands that were killed\n\n" + text, encoding="utf-8")
    return 1 if any(each.faults for each in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
