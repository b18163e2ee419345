"""One run of the engine: the plan goes in, progress comes out, and it ends whatever happens.

The engine ends itself when nobody reads its standard output any more, so that killing this program leaves nothing
behind. Signals are passed on (:mod:`mqttlab.engine.interruption`); what was recorded is kept.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mqttlab import scratch, secrets
from mqttlab.engine import EngineError, Interrupted, Interruption, engine_path, hide_in_files, recover
from mqttlab.files import ORIGIN, as_open_as, make_private
from mqttlab.runs.announced import announced
from mqttlab.runs.job import Job, following, leading


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended: ``complete``, ``incomplete`` or ``failed``, and why."""

    verdict: str
    directory: Path
    reason: str | None = None
    warnings: list[str] = field(default_factory=list)
    asked: signal.Signals | None = None
    """The signal that asked for its end, if one did."""


def perform(
    job: Job, observe: Callable[[dict[str, Any]], None], interruption: Interruption | None = None,
    inherit: Sequence[int] = (),
) -> Outcome:
    """Perform a job and wait for its end.

    Args:
        job: what to run, and where.
        observe: called with each of the engine's progress lines (the engine's ``Progress``).
        interruption: what ends this run; signals alone when left out. Several runs may share one.
        inherit: descriptors that the engine keeps open as long as it lives, such as a lock's.

    Raises:
        EngineError: the engine is not there, or refused the plan; nothing was started.
        Interrupted: the end had been asked for before; nothing was started.
    """
    interruption = interruption or Interruption()
    with interruption.heard():
        if interruption.asked is not None:
            raise Interrupted(f"stopped by {interruption.asked.name}")
        return _perform(job, observe, interruption, inherit)


def _perform(
    job: Job, observe: Callable[[dict[str, Any]], None], interruption: Interruption, inherit: Sequence[int]
) -> Outcome:
    directory = job.directory
    make_private(directory.parent)
    # A run that the engine has not begun leaves nothing.
    with scratch.promised(directory):
        if job.origin is not None:
            # Where nothing can be written, the engine says so.
            with contextlib.suppress(OSError):
                directory.mkdir(mode=as_open_as(directory.parent), exist_ok=True)
                told = json.dumps(job.origin, ensure_ascii=False, default=str)
                (directory / ORIGIN).write_text(told, encoding="utf-8")
        try:
            with announced(job, _keeping_tables(job, observe)) as hear:
                if job.parts > 1 and not job.part:
                    return _run_parts(job, hear, interruption, inherit)
                return _run_engine(job, hear, interruption, inherit)
        finally:
            hide_in_files(directory, job.known_secrets)


def _keeping_tables(
    job: Job, observe: Callable[[dict[str, Any]], None]
) -> Callable[[dict[str, Any]], None]:
    """Hears of a run, and copies the tables that it replays when it has begun, so that it can be repeated."""
    replays = {index: replay for index, group in enumerate(job.plan["groups"])
               for publish in group["publications"] if (replay := publish.get("replay"))}

    def hear(progress: dict[str, Any]) -> None:
        if replays and (job.directory / "plan.json").is_file():
            for index in [*replays]:
                replay = replays.pop(index)
                # Where it is gone, or nothing can be written, the run itself goes on.
                with contextlib.suppress(OSError):
                    shutil.copyfile(replay["path"], job.directory / f"replay-{index}.csv")
        observe(progress)

    return hear


def _run_parts(
    job: Job, observe: Callable[[dict[str, Any]], None], interruption: Interruption, inherit: Sequence[int]
) -> Outcome:
    """All parts on this machine. What a part has recorded stays below the job's directory if part 0 is gone."""
    lead, troubles, threads = Interruption(), list[str](), list[threading.Thread]()

    def follow(number: int, address: str) -> None:
        part = following(job, number, address, job.directory / "parts" / str(number))
        try:
            outcome = _run_engine(part, lambda progress: None, interruption, inherit)
            reason = outcome.reason if outcome.verdict == "failed" else None
        except EngineError as error:
            reason = str(error)
        if reason is not None:
            # Part 0 would wait for it.
            troubles.append(f"part {number} of the run: {reason}")
            lead.end(signal.SIGTERM)

    def observed(progress: dict[str, Any]) -> None:
        if progress.get("event") == "leading":
            for number in range(1, job.parts):
                threads.append(threading.Thread(target=follow, args=(number, progress["address"]), daemon=True))
                threads[-1].start()
        observe(progress)

    try:
        with interruption.passing_on(lead):
            outcome = _run_engine(leading(job, "127.0.0.1:0"), observed, lead, inherit)
    finally:
        for thread in threads:
            thread.join()
        with contextlib.suppress(OSError):
            (job.directory / "parts").rmdir()
    if outcome.verdict != "complete" and troubles and interruption.asked is None:
        return replace(outcome, reason=troubles[0])
    return outcome


def _run_engine(
    job: Job, observe: Callable[[dict[str, Any]], None], interruption: Interruption, inherit: Sequence[int]
) -> Outcome:
    directory = job.directory
    with scratch.unnamed() as complaints:
        engine = subprocess.Popen(
            [engine_path(), *job.arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints,
            # The engine gets Ctrl-C from us, once; not from the terminal as well.
            # Nor variables that only a reference of the scenario is to read, which servers and programs would inherit.
            text=True, start_new_session=True, pass_fds=inherit, env=secrets.environment_without_variables(),
        )
        with interruption.telling(engine):
            last, warnings = _follow(engine, job.input, observe)
            code = engine.wait()
        complaints.seek(0)
        words = secrets.hidden(complaints.read().strip())
    if code == 2:
        raise EngineError(words or "the engine refused the plan")
    if last is None:
        return _after_a_crash(job, code, words, warnings, interruption.asked)
    reason = last.get("reason")
    return Outcome(verdict=last["verdict"], directory=directory,
                   reason=None if reason is None else secrets.hidden(reason), warnings=warnings,
                   asked=interruption.asked)


def _follow(
    engine: subprocess.Popen[str], text: str, observe: Callable[[dict[str, Any]], None]
) -> tuple[dict[str, Any] | None, list[str]]:
    assert engine.stdin is not None
    assert engine.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        engine.stdin.write(text)
        engine.stdin.close()
    last: dict[str, Any] | None = None
    warnings: list[str] = []
    for line in engine.stdout:
        try:
            progress = json.loads(line)
        except ValueError:
            # A line that was cut by the engine's death.
            continue
        observe(progress)
        if progress.get("event") == "warning":
            warnings.append(progress["text"])
        if progress.get("event") == "done":
            last = progress
    return last, warnings


def _after_a_crash(
    job: Job, code: int, words: str, warnings: list[str], asked: signal.Signals | None
) -> Outcome:
    directory = job.directory
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    reason = f"the engine {how}" + (f": {words.splitlines()[-1]}" if words else "")
    if asked is not None:
        reason = f"the run was stopped by {asked.name}"
    if not (directory / "plan.json").is_file():
        return Outcome(verdict="failed", directory=directory, reason=reason, warnings=warnings)
    if asked is not None:
        # Who insists on the end does not wait for tables; they are made when the recording is opened.
        return Outcome(verdict="incomplete", directory=directory, reason=reason, warnings=warnings, asked=asked)
    try:
        recover(directory, values=job.known_secrets)
    except EngineError as error:
        reason += f"; its recording could not be recovered: {error}"
    return Outcome(verdict="incomplete", directory=directory, reason=reason, warnings=warnings)
