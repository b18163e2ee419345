"""Live: what runs now below the dashboard's directory, from the engines' progress lines; what waits; what has ended.

Who started a run does not matter. The queue's table has what it performs for other directories too, for all take turns.

The page's frame is made when it opens and when a run begins or ends. Between, the browser asks for the numbers alone
twice a second (``assets/c-live.js``), so that looking costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from dash import dcc, html

from mqttlab.dashboard import live_figures
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.pages import experiments
from mqttlab.dashboard.panels import (
    Act,
    Content,
    Head,
    act,
    address,
    facts,
    figure,
    link,
    rows_json,
    told_table,
    written_table,
)
from mqttlab.dashboard.store import Store
from mqttlab.dashboard.watch import Followed, Watch, events_told, shown
from mqttlab.errors import MqttlabError
from mqttlab.queue import QueuedJob
from mqttlab.queue.client import Driver
from mqttlab.report.text import number
from mqttlab.runs import Announced

ENDED_SHOWN = 8
# So many runs that have ended in so many seconds keep their figures.
FIGURES_KEPT, KEPT_S = 2, 600
WAITING_SHOWN = 50
OUTSIDE_NAMED = 3
FIGURES = ("messages", "latency", "links", "queues", "servers", "lateness")
PHASES = {"setup": "setting up", "connect": "connecting", "warm_up": "warming up", "measurement": "measuring",
          "cool_down": "cooling down", "finalise": "writing the recording"}
TABLES = ("links", "servers", "groups", "tail")
FIRES_IN = ("warm_up", "measurement")
"""Where events by hand take place."""
QUEUE_HEADS = (Head("run", text=True), Head("of", text=True), Head("backend", text=True), Head("state", text=True),
               Head("takes", text=True), Head("", text=True), Head("", text=True))


def page(store: Store, jobs: Jobs, watch: Watch) -> html.Div:
    """The page; its numbers come after it."""
    return html.Div([
        html.H1("Live"),
        dcc.Store(id="live-frame"),
        html.P(id="live-silent", className="notice problem", role="alert", hidden=True),
        html.Div(frame(store, jobs, watch), id="live-now"),
    ])


def frame(store: Store, jobs: Jobs, watch: Watch) -> Content:
    """What runs, waits and has ended last, with places for the numbers."""
    going_on = jobs.going_on()
    running = _begun(jobs, going_on)
    drivers = jobs.experiments()
    elsewhere, gone = watch.elsewhere()
    shown_now: list[QueuedJob | Announced] = [*running, *elsewhere]
    found = [_running(jobs, job, watch) for job in shown_now]
    found += [_experiment(store, driver) for driver in drivers]
    outside = jobs.outside()
    if not found:
        what = "Nothing of this dashboard's directory runs now. " if outside else "Nothing runs now. "
        found = [html.P([what, link("Configure", "/configure"), " has a scenario to begin with."],
                        className="lead")]
    found += [_outside(outside)] if outside else []
    ended, left = jobs.ended(ENDED_SHOWN), jobs.left_s(going_on)
    states = _states(running, elsewhere, watch)
    queue = html.Section([
        html.H2("Queue"),
        html.P(_words(jobs, going_on, left), id="queue-words", role="status"),
        html.Div([act("Resume the queue", "resume-queue") if jobs.paused else act("Pause the queue", "pause-queue")],
                 className="form-row"),
        written_table("Queue", QUEUE_HEADS, _waiting(jobs, going_on, left), name="queue"),
    ], className="panel")
    over: list[QueuedJob | Announced] = [*gone, *_lately(ended)]
    kept = [_kept(jobs, job, watch) for job in over[:FIGURES_KEPT]]
    return [html.Div(id="live-signature", **{"data-signature": signature(jobs, states, going_on, drivers, outside)}),
            *found,
            *kept, queue,
            html.Section([html.H2("Ended"), html.Ul([_ended(jobs, job) for job in ended])], className="panel",
                         hidden=not ended)]


def _begun(jobs: Jobs, going_on: Sequence[QueuedJob]) -> list[QueuedJob]:
    """The queue's runs that have begun, of this dashboard's directory."""
    return [job for job in going_on if job.state == "running" and jobs.has(job)]


def _outside(runs: Sequence[Announced]) -> html.P:
    """That runs go on which are not below the dashboard's directory, and where."""
    words = "One run goes on" if len(runs) == 1 else f"{number(len(runs))} runs go on"
    places = ", ".join(str(run.directory) for run in runs[:OUTSIDE_NAMED])
    more = f", and {number(len(runs) - OUTSIDE_NAMED)} more" if len(runs) > OUTSIDE_NAMED else ""
    return html.P(f"{words} outside the directory of this dashboard: {places}{more}.", className="faint")


def _lately(ended: Sequence[QueuedJob]) -> list[QueuedJob]:
    """Those that ended a short time ago."""
    since = (datetime.now(UTC) - timedelta(seconds=KEPT_S)).strftime("%Y-%m-%dT%H:%M:%S")
    return [job for job in ended if (job.ended_at or "") >= since]


def _kept(jobs: Jobs, job: QueuedJob | Announced, watch: Watch) -> html.Section:
    """The figures of a run that has ended, as they were last: those for which its engine had told enough."""
    run, ticks = jobs.run_of(job), watch.of(job.identifier).ticks
    names = [one for one in FIGURES if live_figures.drawn(one, ticks) is not None]
    short = None if names else html.P("The run was over before its engine had told enough for a figure here. The page "
                                      "of the run has its figures.")
    return html.Section([
        html.H2([f"{job.name or 'scenario'}, which has ended ", html.Span(job.backend, className="badge")]),
        short,
        html.P(link("Open the run", address(f"/run/{run}")) if run else str(job.directory)),
        html.Div([figure(one, f"/data/job/{job.identifier}/figure/{one}.json") for one in names],
                 className="figures"),
    ])


def standing(jobs: Jobs, watch: Watch) -> html.P | None:
    """How many runs of this directory go on and wait, and for what, in a line for other pages; none where nothing
    does."""
    try:
        going_on = [job for job in jobs.going_on() if jobs.has(job)]
    except MqttlabError:
        # Live says what is wrong with the queue.
        return None
    elsewhere, _ = watch.elsewhere()
    states = _states(_begun(jobs, going_on), elsewhere, watch)
    if not going_on and not elsewhere:
        return None
    waits = [f"{job.name or 'scenario'}: {watch.of(job.identifier).waiting}." for job in going_on
             if states.get(job.identifier) == "waiting"]
    running = sum(state != "waiting" for state in states.values())
    words = f"{number(running)} running, {number(len(going_on) + len(elsewhere) - running)} waiting. "
    return html.P([words, *(f"{each} " for each in waits[:1]), link("Live", "/live"), " shows them."], role="status")


def _states(begun: Sequence[QueuedJob], elsewhere: Sequence[Announced], watch: Watch) -> dict[str, str]:
    """How the runs stand that have begun, by identifier: ``running``, ``waiting`` or ``starting``."""
    running: list[QueuedJob | Announced] = [*begun, *elsewhere]
    return {job.identifier: _state(watch.of(job.identifier)) for job in running}


def _state(followed: Followed) -> str:
    return "waiting" if followed.waiting else "running" if followed.phase else "starting"


def signature(jobs: Jobs, states: Mapping[str, str], going_on: Sequence[QueuedJob], drivers: Sequence[Driver],
              outside: Sequence[Announced]) -> str:
    """What of the page is in its frame, as a text that changes with it."""
    parts = [f"{identifier} {state}" for identifier, state in states.items()]
    parts += [f"{driver.identifier} {_stamp(jobs, driver)}" for driver in drivers]
    parts += [f"{run.identifier} outside" for run in outside]
    return "; ".join([*parts, str(jobs.paused), str(len(going_on) == 0)])


def told(jobs: Jobs, watch: Watch) -> dict[str, Any]:
    """The page's numbers, as the browser asks for them: ``signature``, ``jobs`` by identifier, ``queue``."""
    going_on, found = jobs.going_on(), {}
    elsewhere, _ = watch.elsewhere()
    begun = _begun(jobs, going_on)
    for name in [*(job.identifier for job in begun), *(run.identifier for run in elsewhere)]:
        followed = watch.of(name)
        numbers = shown(followed)
        numbers["tables"]["events"] = events_told(watch.changes(name))
        found[name] = {**numbers, "phase": _phase(followed), "warnings": followed.warnings,
                       "fires": followed.phase.get("phase") in FIRES_IN}
    left = jobs.left_s(going_on)
    signed = signature(jobs, _states(begun, elsewhere, watch), going_on, jobs.experiments(), jobs.outside())
    return {"signature": signed, "jobs": found,
            "words": _words(jobs, going_on, left),
            "queue": told_table("Queue", QUEUE_HEADS, _waiting(jobs, going_on, left))}


def _running(jobs: Jobs, job: QueuedJob | Announced, watch: Watch) -> html.Section:
    run, followed = jobs.run_of(job), watch.of(job.identifier)
    now = shown(followed)
    titles = {"links": "Links", "servers": "Servers", "groups": "Groups", "tail": "Messages that have just arrived"}
    tables = [html.Section([
        html.H3(titles[name]),
        html.P(now["sample"], **{"data-live": "sample"}) if name == "tail" else None,
        html.Div(className="scroll rows", tabIndex=0, role="region", **{
            "aria-label": f"{titles[name]}, table", "data-table": name,
            "data-rows": rows_json(now["tables"].get(name) or told_table(titles[name], (), []))}),
    ], className="panel") for name in TABLES]
    name = job.name or "scenario"
    return html.Section([
        html.H2([f"{name}: {_state(followed)} ", html.Span(job.backend, className="badge")]),
        html.P(_phase(followed), className="phase", **{"data-live": "phase"}),
        html.Div(html.Div(className="bar-done"), className="bar-all", role="progressbar", **{
            "aria-label": f"{name}, this phase", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": 0}),
        html.Div(facts(now["tiles"]), **{"data-live": "tiles"}),
        html.Div(**{"data-live": "warnings"}),
        # What another command performs, that command ends.
        html.P(f"Started by a command, or by another queue; its recording: {job.directory}", className="faint")
        if isinstance(job, Announced) else None,
        html.Div([act("End early", "cancel", job.identifier, label=f"End {name} early, keep what it has recorded")
                  if isinstance(job, QueuedJob) else None,
                  link("Open what is recorded so far", address(f"/run/{run}")) if run else None],
                 className="form-row"),
        # Before its first phase a run has nothing to draw.
        *([_events(watch, job),
           html.Div([figure(one, f"/data/job/{job.identifier}/figure/{one}.json") for one in FIGURES],
                    className="figures"),
           html.Div(tables, className="tables")] if followed.phase else []),
    ], className="live-job", **{"data-job": job.identifier})


def _events(watch: Watch, job: QueuedJob | Announced) -> html.Section:
    """The events so far, and of a live run the form for one by hand (``assets/a-events.js``)."""
    return html.Section([
        html.H3("Events"),
        html.Div(className="event-form") if job.backend == "live" else None,
        html.Div(className="scroll rows", tabIndex=0, role="region", **{
            "aria-label": "Events so far, table", "data-table": "events",
            "data-rows": rows_json(events_told(watch.changes(job.identifier)))}),
    ], className="panel events-panel")


def _experiment(store: Store, driver: Driver) -> html.Section:
    """An experiment that the queue performs: its matrix by state."""
    return html.Section([
        html.H2(f"{driver.label}: experiment, {driver.state}"),
        html.Div([act("End early", "cancel", driver.identifier, label=f"End {driver.label} early"),
                  link("All of it", address(f"/experiment/{driver.label}"))], className="form-row"),
        *experiments.matrix_of(store, driver.label),
    ], className="panel")


def _stamp(jobs: Jobs, driver: Driver) -> str:
    """Changes, at most once a second, when an experiment's journal does."""
    try:
        return str(int((jobs.runs / driver.label / "journal.jsonl").stat().st_mtime))
    except OSError:
        return driver.state


def _phase(followed: Followed) -> str:
    """The phase of a run, or for what it waits."""
    return followed.waiting or PHASES.get(str(followed.phase.get("phase")), "starting")


def _words(jobs: Jobs, going_on: Sequence[QueuedJob], left: Mapping[str, float | None]) -> str:
    """How many wait, and how long all of it takes, as far as that is known."""
    running = sum(job.state == "running" for job in going_on)
    known = [seconds for seconds in left.values() if seconds is not None]
    words = f"{number(running)} running, {number(len(going_on) - running)} waiting"
    if known and going_on:
        more = f", and {len(left) - len(known)} of unknown length" if len(known) < len(left) else ""
        words += f"; about {span(sum(known))} left, one after the other{more}"
    return f"{words}. The queue is paused: nothing begins." if jobs.paused else f"{words}."


def span(seconds: float) -> str:
    """A length of time to wait for, roughly."""
    for size, unit in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _waiting(jobs: Jobs, going_on: Sequence[QueuedJob], left: Mapping[str, float | None]) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for job in going_on[:WAITING_SHOWN]:
        seconds = left.get(job.identifier)
        takes = "not known" if seconds is None else f"{span(seconds)}{' left' if job.state == 'running' else ''}"
        resume = Act("Let it begin", "resume", job.identifier, f"Let {job.name} begin") if (
            job.state == "held" and not jobs.paused) else ""
        end = "End early" if job.state == "running" else "Cancel"
        of = job.label if jobs.has(job) else f"{job.label}, in {job.directory.parent}"
        rows.append([job.name, of, job.backend, job.state, takes, resume,
                     Act(end, "cancel", job.identifier, f"{end}: {job.name}, {job.run[-6:]}")])
    if len(going_on) > WAITING_SHOWN:
        rows.append([f"and {number(len(going_on) - WAITING_SHOWN)} more", "", "", "", "", "", ""])
    return rows


def _ended(jobs: Jobs, job: QueuedJob) -> html.Li:
    run = jobs.run_of(job)
    how = f"{job.name or 'a scenario'}: {job.verdict or job.state}" + (f" ({job.reason})" if job.reason else "")
    # An experiment's runs, or those of a scenario that is run again, have all the same name.
    return html.Li([link(how, address(f"/run/{run}")), html.Span(f" {run}", className="faint")] if run else how)

