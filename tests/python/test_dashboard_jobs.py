"""Scenarios from the browser: what may be asked for, what follows what, and runs that outlive the dashboard."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")

from dashboards import queue_below
from mqttlab.catalog import Catalog, url_for
from mqttlab.dashboard import live_figures
from mqttlab.dashboard.actions import Actions
from mqttlab.dashboard.configure import drafts
from mqttlab.dashboard.configure.drafts import Draft
from mqttlab.dashboard.configure.forms import FIELDS, followed, settled
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.pages import configure, live
from mqttlab.dashboard.pages import runs as runs_page
from mqttlab.dashboard.store import Store
from mqttlab.dashboard.watch import TICKS_KEPT, Followed, Watch, shown
from mqttlab.networks import MODELS
from mqttlab.queue import QueuedJob
from mqttlab.recording import Recording
from mqttlab.runs.machine import live_alone
from mqttlab.scenario import Scenario, ScenarioError
from queued import job
from test_dashboard_pages import text_of

SHORT = replace(Draft(), backend="sim", duration="2 s", delay="100 ms", nodes=2, qos="1")
WITHIN_S = 60


@pytest.mark.parametrize("qos", configure.QOS)
@pytest.mark.parametrize("network", MODELS)
@pytest.mark.parametrize("data", drafts.PAYLOADS)
def test_every_choice_of_the_fields_can_be_run_and_is_read_back(qos: str, network: str, data: str) -> None:
    draft = Draft(qos=qos, network=network, data=data, nodes=3, loss="2 %")
    text = drafts.written(draft)
    assert drafts.read(text, Draft()) == draft
    if qos == "mqtt-sn" and data == "10 kB":
        with pytest.raises(ScenarioError, match="MQTT-SN does not fragment"):
            drafts.check(text)
        return
    assert drafts.check(text).groups[0].count == 3


def test_a_field_writes_the_text_and_the_text_sets_the_fields() -> None:
    fields = tuple(getattr(Draft(), name) for name in FIELDS)
    changed = tuple("7 s" if name == "duration" else value for name, value in zip(FIELDS, fields, strict=True))
    text, draft = followed({"draft-duration"}, drafts.written(Draft()), changed)
    assert tomllib.loads(text)["phases"]["duration"] == "7 s" and draft.duration == "7 s"
    written = text.replace("count = 9", "count = 4").replace('"satcom"', '"dsl"')
    again, draft = followed({"toml"}, written, changed)
    assert again == written and (draft.nodes, draft.network) == (4, "dsl")
    assert followed({"toml"}, "not [ toml", changed)[1].duration == "7 s"
    assert followed({"draft-nodes"}, text, tuple(None for _ in FIELDS))[1].nodes == 0


def test_what_was_typed_a_moment_ago_is_not_lost() -> None:
    before = drafts.written(Draft())
    typed = Draft(duration="7 s", delay="1 s", nodes=3)
    fields = tuple(getattr(typed, name) for name in FIELDS)
    # The browser asks for the last field before it has the answer to the others.
    text, _ = followed({"draft-nodes"}, before, fields)
    assert drafts.read(text, Draft()) == typed
    # The text was typed into while a field changed: the other fields are older than both.
    edited = before.replace("count = 9", "count = 4")
    both, draft = followed({"toml", "draft-duration"}, edited, fields)
    assert drafts.read(both, Draft()) == draft == Draft(duration="7 s", nodes=4)
    # A start that no answer has reached runs what the fields say; what was typed into the text is newer than they are.
    assert drafts.read(settled(before, before, fields), Draft()) == typed
    assert settled(text, before, tuple(getattr(Draft(), name) for name in FIELDS)) == text
    assert settled("not [ toml", "not [ toml", fields) == "not [ toml"


@pytest.mark.parametrize("value", ['9"\nname="x', "9\\", "9\n[broker]"])
def test_a_field_cannot_write_anything_but_itself(value: str) -> None:
    text = drafts.written(replace(Draft(), duration=value))
    assert set(tomllib.loads(text)) == {"name", "backend", "phases", "networks", "groups"}


@pytest.mark.parametrize(("added", "place"), [
    ('[broker]\nkind = "program"\nprogram = { command = ["id"] }', "broker.kind"),
    ('[[servers]]\nname = "s"\nprogram = { command = ["id"], environment = { A = "1" } }', "servers[0].program"),
    ('[[servers]]\nname = "s"\n[servers.program.files]\n"/etc/x" = "y"', "servers[0].program.files"),
    ('[[groups]]\nname = "g"\nhost = "field"\npublish = { topic = "t", interval = "1 s", payload = { kind = "file", '
     'path = "/etc/shadow" } }', "groups[6].publish.payload.path"),
    ('[[groups]]\nname = "g"\nhost = "field"\nclient = { command = ["id"] }', "groups[6].client.command"),
    ('[broker]\nkind = "external"\naddress = "192.0.2.1"', "broker.address"),
])
def test_what_would_start_a_program_or_read_a_file_is_refused(added: str, place: str, tmp_path: Path) -> None:
    text = f"{drafts.written(Draft())}\n{added}\n"
    with pytest.raises(ScenarioError) as refused:
        drafts.check(text)
    assert any(problem.startswith(f"scenario: {place} cannot be set") for problem in refused.value.problems)
    assert "cannot be set from the browser" in text_of(configure.preview(text, Jobs(tmp_path)))


def test_a_host_may_have_any_name() -> None:
    with pytest.raises(ScenarioError, match="is not used") as told:
        drafts.check(drafts.written(SHORT) + "\n[hosts.path]\n[hosts.command]\n")
    assert "from the browser" not in str(told.value)


def test_a_wrong_field_is_named_at_its_line_and_a_scenario_of_any_size_is_not_read(tmp_path: Path) -> None:
    shown = text_of(configure.preview(drafts.written(replace(Draft(), duration="9 parsecs")), Jobs(tmp_path)))
    assert "line 6: " in shown and "parsecs" in shown and "This cannot be run" in shown
    with pytest.raises(ScenarioError, match="at most"):
        drafts.check("#" * 300_000)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with queue_below(tmp_path) as queue:
        (tmp_path / "runs").mkdir()
        yield Jobs(tmp_path / "runs", queue.directory)


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def ended(jobs: Jobs, identifier: str) -> QueuedJob:
    def found() -> list[QueuedJob]:
        return [job for job in jobs.ended(100) if job.identifier == identifier]

    wait_for(found)
    return found()[0]


def test_a_run_from_the_browser_leaves_a_recording_that_the_catalog_knows(jobs: Jobs) -> None:
    [identifier] = jobs.start(drafts.written(SHORT))
    job = ended(jobs, identifier)
    assert (job.verdict, job.reason, job.label) == ("complete", None, "from-the-dashboard")
    run = jobs.run_of(job)
    recording = Recording.open(jobs.runs / str(run))
    assert recording.complete and recording.run_id == identifier
    with Catalog.open(url_for(jobs.runs), read_only=True) as catalog:
        assert catalog.runs(columns=["run"])["run"].to_list() == [identifier]
    # Another dashboard on the same runs and queue tells the same.
    again = Jobs(jobs.runs, jobs.queue.directory)
    assert f"/run/{run}" in text_of(live.page(Store(jobs.runs), again, Watch(again)))
    assert again.going_on() == []


def test_another_directorys_jobs_are_in_the_queue_alone(jobs: Jobs, tmp_path: Path) -> None:
    [identifier] = jobs.start(drafts.written(SHORT), held=True)
    there = Jobs(tmp_path / "others", jobs.queue.directory)
    jobs.queue.add_driver(["experiment", "x.toml", "--runs", str(jobs.runs), "--help"], label="x", directory=tmp_path)
    assert [one.label for one in jobs.experiments()] == ["x"] or jobs.queue.drivers() == []
    assert there.experiments() == []
    told = live.told(there, Watch(there))
    assert f"in {jobs.runs}" in json.dumps(told["queue"]) and told["jobs"] == {}
    assert f"in {jobs.runs}" not in json.dumps(live.told(jobs, Watch(jobs))["queue"])
    jobs.resume(identifier)
    ended(jobs, identifier)
    assert there.ended(100) == []


def test_a_run_can_be_ended_early_and_keeps_what_it_has(jobs: Jobs) -> None:
    [identifier] = jobs.start(drafts.written(replace(SHORT, duration="3 h", delay="5 ms")))
    watch, actions = Watch(jobs), Actions(jobs)
    wait_for(lambda: watch.of(identifier).last)
    told = live.told(jobs, watch)
    tiles = dict(told["jobs"][identifier]["tiles"])
    assert tiles["connected"] == "4" and told["jobs"][identifier]["tables"]["links"]["rows"]
    assert "End early" in text_of(live.frame(Store(jobs.runs), jobs, watch))
    assert actions.perform({"name": "cancel", "value": identifier}) == "It ends."
    job = ended(jobs, identifier)
    assert (job.state, job.verdict) == ("cancelled", "incomplete")
    assert not Recording.open(jobs.runs / str(jobs.run_of(job))).complete
    assert actions.perform({"name": "cancel", "value": identifier}) == "It has ended already."


def test_what_is_held_waits_and_a_paused_queue_begins_nothing(jobs: Jobs) -> None:
    actions = Actions(jobs)
    [identifier] = jobs.start(drafts.written(SHORT), held=True)
    assert [job.state for job in jobs.going_on()] == ["held"]
    assert "Let it begin" in json.dumps(live.told(jobs, Watch(jobs))["queue"])
    actions.perform({"name": "pause-queue"})
    actions.perform({"name": "resume", "value": identifier})
    assert jobs.paused and [job.state for job in jobs.going_on()] == ["held"]
    assert "paused" in live.told(jobs, Watch(jobs))["words"]
    actions.perform({"name": "resume-queue"})
    assert ended(jobs, identifier).verdict == "complete"


def test_how_long_the_queue_takes_is_known_for_live_runs_and_for_names_that_ran_before(jobs: Jobs) -> None:
    jobs.start(drafts.written(replace(SHORT, backend="live", duration="5 min")), held=True)
    jobs.start(drafts.written(SHORT), held=True)
    first, second = jobs.going_on()
    left = jobs.left_s(jobs.going_on())
    # 2 s of warm-up, 10 s of cool-down, and what is around.
    assert left[first.identifier] == pytest.approx(300 + 12, abs=10) and left[second.identifier] is None
    words = live.told(jobs, Watch(jobs))["words"]
    assert "2 waiting" in words and "5 min left" in words and "1 of unknown length" in words


def test_actions_take_nothing_that_is_none(jobs: Jobs) -> None:
    actions = Actions(jobs)
    for asked in (None, [], {}, {"name": "../x"}, {"name": "cancel", "value": 3}, {"name": ["cancel"]},
                  {"name": "cancel", "value": "x" * 9999}):
        assert actions.perform(asked) in ("There is no such action.", "That is no value."), asked
    for name in ("..", "", "none", "a/b"):
        assert actions.perform({"name": "cancel", "value": name}) == "It has ended already."
        assert Watch(jobs).of(name).ticks == []


def test_a_scenario_that_cannot_be_performed_here_is_refused_and_leaves_nothing(jobs: Jobs) -> None:
    text = drafts.written(replace(SHORT, duration="1000 h", delay="1 ms", nodes=999))
    with pytest.raises(ScenarioError, match="MB free"):
        jobs.start(text)
    assert list(jobs.runs.iterdir()) == [] and jobs.going_on() == []


def tick(n: int) -> dict[str, Any]:
    return {"event": "tick", "at_ns": n * 250_000_000, "offered": n, "sent": n, "delivered": n, "connected": 1,
            "disconnects": 0, "latency_p50_ns": None if n % 2 else 5_000_000,
            "links": [{"link": "up", "rate_bit_s": 8 * n, "queue_bytes": 1, "queue_frames": 1, "frames": n,
                       "bytes": n, "drops": {"queue_full": 2}}],
            "servers": [{"server": "broker", "cpu_s": n / 40, "rss_bytes": 4_000_000}]}


def test_a_long_run_is_kept_as_an_even_selection_and_its_last_second_whole() -> None:
    run = Followed()
    for n in range(20_000):
        run.hear(tick(n))
    assert len(run.ticks) < TICKS_KEPT and run.last["sent"] == 19_999
    steps = {later["at_ns"] - earlier["at_ns"] for earlier, later in pairwise(run.ticks)}
    assert len(steps) == 1
    for name in live.FIGURES:
        figure = live_figures.drawn(name, run.ticks)
        if name == "lateness":
            assert figure is None, "a simulation's clients are never late"
        else:
            assert figure is not None and max(len(trace.x) for trace in figure.data) <= live_figures.TICKS_DRAWN
    assert "told nothing" in live_figures.nothing(run.ticks) and "too little" in live_figures.nothing(run.ticks[:1])
    assert live_figures.drawn("latency", run.ticks[:1]) is None and live_figures.drawn("none", run.ticks) is None
    tables = shown(run)["tables"]
    # A tenth of a second of processor time in a second.
    assert tables["servers"]["rows"] == [["broker", "10", "4"]]
    assert tables["links"]["rows"][0][-1] == "2 queue full"


def test_lines_of_an_older_engine_are_shown_as_far_as_they_go() -> None:
    run = Followed()
    run.hear({"event": "tick", "at_ns": 1, "connected": 2, "offered": 3, "sent": 3, "delivered": 1, "disconnects": 0})
    found = shown(run)
    assert ("connected", "2") in found["tiles"] and found["tables"]["links"]["rows"] == []
    assert found["tables"]["tail"]["rows"] == [] and found["sample"] == ""
    assert shown(Followed()) == {"tiles": [], "tables": {}, "done": 0.0, "sample": ""}


def test_the_tail_has_the_latest_messages_first_and_says_what_it_is_a_sample_of() -> None:
    run = Followed()
    for n in range(1, 31):
        messages = [{"at_ns": 10 * n + at, "topic": "<b>", "publisher": "p", "subscriber": "s", "qos": 1,
                     "payload_bytes": 100, "latency_ns": None if at else 2_500_000} for at in range(2)]
        run.hear({**tick(n), "delivered": 100 * n, "messages": messages})
    rows = shown(run)["tables"]["tail"]["rows"]
    assert len(rows) == 20 and rows[0][1:] == ["<b>", "p", "s", "1", "100", "–"] and rows[1][-1] == "2.500"
    assert " 60 of the 3000 so far" in shown(run)["sample"].replace(",", "")


@pytest.mark.parametrize("path", ["/tmp/outside", "../outside", "runs/../../outside", "..", ".hidden", "a\\b"])
def test_a_baseline_from_the_browser_is_a_name_and_no_path(path: str) -> None:
    text = (drafts.written(Draft()) + '\n[[thresholds]]\nmetric = "latency_ms_p99"\n'
            f"not_worse_than = {{ baseline = {json.dumps(path)} }}\n")
    with pytest.raises(ScenarioError, match=r"thresholds\[0\]\.not_worse_than\.baseline cannot be a path"):
        drafts.check(text)
    assert drafts.check(text.replace(json.dumps(path), '"release-1"')).thresholds


def test_every_field_that_is_a_path_is_refused_from_the_browser() -> None:
    """A new field of this kind fails here until somebody has decided what a browser may do with it."""
    def named(part: Any) -> set[str]:
        if isinstance(part, list):
            return set().union(*map(named, part))
        if not isinstance(part, dict):
            return set()
        inner = set().union(*map(named, part.values()))
        properties = part.get("properties")
        return inner | ({name for name, field in properties.items() if '"format": "path"' in json.dumps(field)}
                        if isinstance(properties, dict) else set())

    found = named(Scenario.model_json_schema())
    assert found >= {"path", "authority"} and found <= set(drafts.REFUSED)


def test_a_run_that_waits_for_another_says_for_which_and_draws_nothing_yet(tmp_path: Path) -> None:
    """Once "running: starting", and six figures of which each said that the recording has nothing that it shows."""
    runs = tmp_path / "runs"
    runs.mkdir()
    assert live.standing(Jobs(runs, tmp_path / "queue"), Watch(Jobs(runs, tmp_path / "queue"))) is None
    with live_alone(what="runs/the-first"), queue_below(tmp_path) as queue:
        waits = job(runs / "second", backend="live")
        queue.submit(waits)
        jobs = Jobs(runs, queue.directory)
        watch = Watch(jobs)
        deadline = time.monotonic() + 60
        while not watch.of(waits.identifier).waiting and time.monotonic() < deadline:
            time.sleep(0.1)
        told = live.told(jobs, watch)
        assert told["jobs"][waits.identifier]["phase"] == (
            "waiting for the live run in runs/the-first to end: live runs have the machine to themselves")
        assert f"{waits.identifier} waiting" in told["signature"]
        shown = str(live.frame(Store(runs), jobs, watch))
        assert "waits: waiting " in shown and "the live run in runs/the-first" in shown
        assert "figure/messages.json" not in shown
        told_on_runs = text_of(runs_page.page(Store(runs), {}, live.standing(jobs, watch)))
        assert "0 running, 1 waiting. " in told_on_runs
        assert "waits: waiting for the live run in runs/the-first to end" in told_on_runs
        # When it begins the frame is made anew, with figures.
        followed = watch.of(waits.identifier)
        followed.hear({"event": "phase", "phase": "setup", "at_ns": 0, "length_ns": 0})
        assert f"{waits.identifier} running" in live.told(jobs, watch)["signature"]
        assert "figure/messages.json" in str(live.frame(Store(runs), jobs, watch))
        queue.cancel()
