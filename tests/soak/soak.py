"""Runs that are killed, starved and looked at, one after the other: does anything stay behind, is any row lost?

    python tests/soak/soak.py --runs 200 --seed 1 --jobs 2

Each case is drawn from the seed and its number: which producer (live, simulator, import), who is hit (engine, command
line, broker, its disk, its directory), by which signal, when, and whether somebody opens the recording meanwhile. Then
it is judged: no process, mount or network namespace is left; no row that was in a spool is missing in the tables; the
recording opens and says what it is. When a case strikes depends on the machine; what it is does not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mqttlab.engine import EngineError, is_being_written
from mqttlab.recording import Recording, RecordingError

SCENARIO = """
name = "soak"
backend = "{backend}"
seed = {seed}
[phases]
duration = "{duration}"
cool_down = "1 s"
[[networks]]
between = ["field", "broker"]
up = {{ delay = "2 ms", loss = "2 %" }}
down = {{ delay = "2 ms", loss = "2 %" }}
[[groups]]
name = "publishers"
host = "field"
count = 4
publish = {{ topic = "t/{{client}}", qos = {qos}, payload = "100 B", interval = "10 ms" }}
[[groups]]
name = "subscribers"
host = "field"
count = 2
subscribe = [{{ filter = "t/#", qos = {qos} }}]
"""
MARK = "MQTTLAB_SOAK"
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
VICTIMS = {
    "live": ("engine", "engine", "command line", "broker", "disk", "directory", "nobody"),
    "sim": ("engine", "engine", "command line", "disk", "directory", "nobody"),
    "import": ("engine", "command line", "nobody"),
}
# Nothing that is asked to end takes longer than this, on a busy machine too.
END_WITHIN_S = 120


@dataclass
class Case:
    """What is done to one run, and what came of it."""

    number: int
    producer: str
    victim: str
    signal: signal.Signals
    after_s: float
    reader: bool
    qos: int
    faults: list[str] = field(default_factory=list)
    status: str = ""
    rows: int = 0

    def __str__(self) -> str:
        how = self.signal.name if self.victim in ("engine", "command line", "broker") else ""
        look = ", looked at" if self.reader else ""
        verdict = "; ".join(self.faults) or "ok"
        return (f"{self.number:3} {self.producer:6} {self.victim:12} {how:7} after {self.after_s:4.1f} s{look:11} "
                f"{self.status:22} {self.rows:8} deliveries  {verdict}")


def draw(seed: int, number: int, live: bool) -> Case:
    """The case of a number."""
    dice = random.Random(f"{seed}/{number}")
    producer = dice.choice(["live", "live", "sim", "sim", "import"] if live else ["sim", "sim", "import"])
    return Case(
        number=number, producer=producer, victim=dice.choice(VICTIMS[producer]), signal=dice.choice(SIGNALS),
        after_s=round(dice.uniform(0.1, 4), 1), reader=dice.random() < 0.4, qos=dice.randrange(3))


def perform(case: Case, capture: Path) -> Case:
    """Do it, and judge it."""
    with tempfile.TemporaryDirectory(prefix=f"soak-{case.number}-") as name:
        place = Path(name)
        runs = place / "runs"
        runs.mkdir()
        mounted = case.victim == "disk"
        if mounted:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(runs)], check=True)
        try:
            _strike(case, place, runs, capture)
            _judge(case, place, runs)
        except subprocess.TimeoutExpired:
            case.faults.append("it did not end")
        finally:
            for pid in _processes(place):
                case.faults.append(f"process {pid} was left")
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if mounted:
                subprocess.run(["umount", str(runs)], check=True)
    return case


def _strike(case: Case, place: Path, runs: Path, capture: Path) -> None:
    lasts = 2 if case.victim == "nobody" or case.producer == "import" else 100_000
    scenario = place / "soak.toml"
    scenario.write_text(SCENARIO.format(backend="sim" if case.producer == "sim" else "live", seed=case.number,
                                        duration=f"{lasts} s", qos=case.qos), encoding="utf-8")
    # A run that is to be killed would write more than any disk has, were it let.
    run = ["run", str(scenario), "--ignore-disk"]
    words = ["import", "capture", str(capture)] if case.producer == "import" else run
    program = subprocess.Popen(
        [sys.executable, "-m", "mqttlab", *words, "--no-html", "--runs", str(runs)], start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, MARK: str(place)})
    deadline = time.monotonic() + END_WITHIN_S
    while not list(runs.glob("*/plan.json")) and program.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    # A simulation makes in a second what takes a live run minutes, and an import is over in seconds.
    time.sleep(case.after_s / (1 if case.producer == "live" else 4))
    if case.victim in ("engine", "broker", "command line", "directory") and lasts > 2 and program.poll() is not None:
        case.faults.append(f"it ended before it was hit, with {program.returncode}")
    if case.reader:
        for plan in runs.glob("*/plan.json"):
            with suppress(EngineError, RecordingError, OSError):
                Recording.open(plan.parent)
    if case.victim == "directory":
        for directory in runs.glob("*"):
            shutil.rmtree(directory, ignore_errors=True)
        program.send_signal(signal.SIGTERM)
    elif case.victim in ("engine", "broker"):
        wanted = "mqttlab-engine" if case.victim == "engine" else "mosquitto"
        for pid in [pid for pid in _processes(place) if _name(pid).startswith(wanted[:15])]:
            with suppress(ProcessLookupError):
                os.kill(pid, case.signal)
        if case.victim == "broker" and case.signal == signal.SIGHUP:
            # Mosquitto reads its configuration again, and goes on.
            program.send_signal(signal.SIGTERM)
    elif case.victim == "command line":
        program.send_signal(case.signal)
    try:
        program.wait(END_WITHIN_S)
    finally:
        program.kill()
        program.wait()


def _judge(case: Case, place: Path, runs: Path) -> None:
    deadline = time.monotonic() + 30
    while _processes(place) and time.monotonic() < deadline:
        time.sleep(0.05)
    plans = list(runs.glob("*/plan.json"))
    if case.victim == "nobody" and not plans:
        case.faults.append("there is no recording")
    if not plans:
        case.status = "nothing left"
        if list(runs.glob("*/*.spool")):
            case.faults.append("spools without a plan")
        return
    directory = plans[0].parent
    if is_being_written(directory):
        case.faults.append("the directory is still locked")
    written = _records(directory / "received.spool")
    try:
        recording = Recording.open(directory)
        case.status = str(recording.run["status"])
        case.rows = recording.messages["received_ns"].count() if recording.messages.width else 0
    except (RecordingError, EngineError, OSError) as error:
        case.faults.append(f"it does not open: {str(error).splitlines()[0]}")
        return
    if written is not None and case.rows < written:
        case.faults.append(f"{written} deliveries were written, {case.rows} are there")
    if case.victim == "nobody" and case.status != "complete":
        case.faults.append(f"nobody hit it, and it is {case.status}: {recording.run.get('reason')}")
    if recording.directory.parent != runs and recording.directory != directory:
        shutil.rmtree(recording.directory, ignore_errors=True)


def _records(spool: Path) -> int | None:
    """Whole records in a spool of records of one size; ``None`` when the tables have been made."""
    try:
        with spool.open("rb") as file:
            header = file.read(32)
        if len(header) < 32:
            return 0
        return (spool.stat().st_size - 32) // int(struct.unpack("<I", header[12:16])[0])
    except OSError:
        return None


def _processes(place: Path) -> list[int]:
    """Processes that this case has started, however far removed: they have inherited its mark."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                alive = (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
                if alive and f"{MARK}={place}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    return ""


def _mounts_and_interfaces() -> set[str]:
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    return {line.split()[1] for line in mounts} | {path.name for path in Path("/sys/class/net").iterdir()}


def _left(before: set[str], seconds: float = 60) -> set[str]:
    """Mounts and interfaces that stay; another program's, such as a test's beside this one, go again."""
    deadline = time.monotonic() + seconds
    while (left := _mounts_and_interfaces() - before) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def _scratch() -> list[Path]:
    return sorted(Path(tempfile.gettempdir()).glob("mqttlab-*/scratch-*"))


def soak(runs: int, seed: int, jobs: int, *, live: bool) -> list[Case]:
    """Perform cases, several at once, and say how each went."""
    # Under `nohup` programs would inherit that it is ignored, and rightly go on.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    before = _mounts_and_interfaces()
    with tempfile.TemporaryDirectory(prefix="soak-temporary-") as temporary:
        # What is left in the temporary directory is then ours.
        os.environ["TMPDIR"] = tempfile.tempdir = temporary
        capture = Path(temporary) / "evidence.pcapng"
        header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
        frame = struct.pack("<IIII", 0, 0, 60, 60) + bytes(60)
        with capture.open("wb") as file:
            file.write(header)
            for _ in range(20):
                file.write(frame * 100_000)
        with ThreadPoolExecutor(jobs) as pool:
            cases = []
            for case in pool.map(lambda number: perform(draw(seed, number, live), capture), range(runs)):
                print(case, flush=True)
                cases.append(case)
        if live:
            # The next start takes away what the killed ones have left.
            last = perform(Case(number=runs, producer="live", victim="nobody", signal=signal.SIGTERM, after_s=0,
                                reader=False, qos=1), capture)
            if _scratch():
                last.faults.append(f"scratch directories are left: {', '.join(path.name for path in _scratch())}")
            print(last, flush=True)
            cases.append(last)
        tempfile.tempdir = None
        del os.environ["TMPDIR"]
    if left := _left(before):
        cases[-1].faults.append(f"mounts or interfaces are left: {', '.join(sorted(left))}")
    return cases


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--no-live", action="store_true", help="simulations and imports only")
    chosen = parser.parse_args()
    began = time.monotonic()
    cases = soak(chosen.runs, chosen.seed, chosen.jobs, live=not chosen.no_live)
    faulty = [case for case in cases if case.faults]
    count = Counter(f"{case.producer}, {case.victim}" for case in cases)
    print(json.dumps(dict(sorted(count.items())), indent=1))
    print(f"{len(cases)} runs in {time.monotonic() - began:.0f} s, seed {chosen.seed}: {len(faulty)} with a fault")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
