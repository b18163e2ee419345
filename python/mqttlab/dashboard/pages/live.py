"""Live: what runs now, from the engine's progress lines, and what has just ended."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from mqttlab.dashboard.jobs import ENDED, RUNNING, WAITING, Jobs, JobState
from mqttlab.dashboard.panels import Content, address, facts, figure, link, notice
from mqttlab.report.text import duration, number

EVERY_MS = 500
ENDED_SHOWN = 5
FIGURES = ("messages", "latency", "lateness")
PHASES = {"setup": "setting up", "connect": "connecting", "warm_up": "warming up", "measurement": "measuring",
          "cool_down": "cooling down", "finalise": "writing the recording"}
WORDS = {WAITING: "waiting for the machine", RUNNING: "running", ENDED: "ended"}


def page(jobs: Jobs) -> html.Div:
    """The page; what stands on it is renewed twice a second."""
    return html.Div([
        html.H1("Live"),
        dcc.Interval(id="live-tick", interval=EVERY_MS),
        html.Div(now(jobs), id="live-now"),
    ])


def now(jobs: Jobs, beat: int = 0) -> Content:
    """What runs now, what waits, and what has ended last."""
    every = jobs.all()
    going_on = [job for job in every if job.state != ENDED]
    if not every:
        return [notice("note", "Nothing runs that was started here.", ["Configure has a scenario to begin with."])]
    shown = [_going_on(jobs, job, beat) for job in going_on]
    shown += [] if going_on else [html.P("Nothing runs now.", className="lead")]
    ended = [job for job in every if job.state == ENDED][:ENDED_SHOWN]
    return [*shown, html.Section([html.H2("Ended"), html.Ul([_ended(job) for job in ended])], className="panel",
                                 hidden=not ended)]


def _going_on(jobs: Jobs, job: JobState, beat: int) -> html.Section:
    lines = jobs.progress(job.identifier)
    last: dict[str, Any] = next((line for line in reversed(lines) if line.get("event") == "tick"), {})
    phase: dict[str, Any] = next((line for line in reversed(lines) if line.get("event") == "phase"), {})
    warnings = [str(line.get("text")) for line in lines if line.get("event") == "warning"]
    drawn = [figure(name, f"/data/job/{job.identifier}/figure/{name}.json", version=str(len(lines)))
             for name in FIGURES] if job.state == RUNNING else []
    return html.Section([
        html.H2(f"{job.name or 'scenario'}: {WORDS[job.state]}"),
        html.P(PHASES.get(str(phase.get("phase")), ""), className="phase"),
        facts(_numbers(last)),
        *([notice("note", "Warnings", warnings)] if warnings else []),
        html.Button("Stop", id={"kind": "stop", "job": job.identifier}, type="button",
                    **{"aria-label": f"Stop {job.name}"}),
        html.Div(drawn, className="figures"),
    ], className="panel", id=f"job-{job.identifier}")


def _numbers(tick: dict[str, Any]) -> list[tuple[str, str]]:
    if not tick:
        return []
    rows = [("run time", duration(tick["at_ns"]))]
    rows += [(name, number(tick[name])) for name in ("connected", "offered", "sent", "delivered", "disconnects")
             if tick.get(name) is not None]
    rows += [(words, duration(tick[name])) for name, words in (
        ("latency_p50_ns", "latency, median"), ("latency_p99_ns", "latency, p99"),
        ("sender_lateness_p99_ns", "senders late, p99"), ("emulator_lateness_p99_ns", "emulator late, p99"))
        if tick.get(name) is not None]
    if tick.get("events_per_s"):
        rows.append(("simulated events per second", number(tick["events_per_s"])))
    return rows


def _ended(job: JobState) -> html.Li:
    how = f"{job.name or 'a scenario'}: {job.verdict or 'ended'}" + (f" ({job.reason})" if job.reason else "")
    return html.Li([link(how, address(f"/run/{job.run}"))] if job.run and job.verdict != "failed" else how)
