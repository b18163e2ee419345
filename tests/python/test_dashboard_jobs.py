"""Scenarios from the browser: what may be asked for, what follows what, and runs that outlive the dashboard."""

from __future__ import annotations

import time
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")

from mqttlab.dashboard import drafts, live_figures
from mqttlab.dashboard.drafts import Draft
from mqttlab.dashboard.forms import FIELDS, followed
from mqttlab.dashboard.jobs import ENDED, Jobs, JobState
from mqttlab.dashboard.pages import configure, live
from mqttlab.networks import MODELS
from mqttlab.recording import Recording
from mqttlab.scenario import ScenarioError
from test_dashboard_pages import text_of

SHORT = replace(Draft(), backend="sim", duration="2 s", delay="100 ms", nodes=2, qos="1")
WITHIN_S = 60


@pytest.mark.parametrize("qos", configure.QOS)
@pytest.mark.parametrize("network", MODELS)
@pytest.mark.parametrize("data", drafts.PAYLOADS)
def test_every_choice_of_the_fields_can_be_run_and_is_read_back(qos: str, network: str, data: str) -> None:
    draft = Draft(qos=qos, network=network, data=data, nodes=3)
    text = drafts.written(draft)
    assert drafts.check(text).groups[0].count == 3
    assert drafts.read(text, Draft()) == draft


def test_a_field_writes_the_text_and_the_text_sets_the_fields() -> None:
    fields = tuple(getattr(Draft(), name) for name in FIELDS)
    changed = tuple("7 s" if name == "duration" else value for name, value in zip(FIELDS, fields, strict=True))
    text, draft = followed("draft-duration", drafts.written(Draft()), changed)
    assert tomllib.loads(text)["phases"]["duration"] == "7 s" and draft.duration == "7 s"
    written = text.replace("count = 9", "count = 4").replace('"satcom"', '"dsl"')
    again, draft = followed("toml", written, changed)
    assert again == written and (draft.nodes, draft.network) == (4, "dsl")
    assert followed("toml", "not [ toml", changed)[1].duration == "7 s"
    assert followed("draft-nodes", text, tuple(None for _ in FIELDS))[1].nodes == 0


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
    assert "cannot be set from the browser" in text_of(configure.preview(text))


def test_a_host_may_have_any_name() -> None:
    with pytest.raises(ScenarioError, match="is not used") as told:
        drafts.check(drafts.written(SHORT) + "\n[hosts.path]\n[hosts.command]\n")
    assert "from the browser" not in str(told.value)


def test_a_wrong_field_is_named_at_its_line_and_a_scenario_of_any_size_is_not_read() -> None:
    shown = text_of(configure.preview(drafts.written(replace(Draft(), duration="9 parsecs"))))
    assert "line 6: " in shown and "parsecs" in shown and "This cannot be run" in shown
    with pytest.raises(ScenarioError, match="at most"):
        drafts.check("#" * 300_000)


def ended(jobs: Jobs, identifier: str) -> JobState:
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        state = jobs.state(identifier)
        if state is not None and state.state == ENDED:
            return state
        time.sleep(0.1)
    raise AssertionError(f"{jobs.state(identifier)} after {WITHIN_S} s")


def test_a_run_from_the_browser_leaves_a_recording_that_the_catalog_knows(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    identifier = jobs.start(drafts.written(SHORT))
    state = ended(jobs, identifier)
    assert (state.verdict, state.reason) == ("complete", None)
    recording = Recording.open(tmp_path / str(state.run))
    assert recording.complete and recording.run_id == identifier
    assert (tmp_path / "catalog.db").is_file()
    # Another dashboard on the same runs tells the same.
    assert Jobs(tmp_path).all() == [state]
    assert f"/run/{state.run}" in text_of(live.page(Jobs(tmp_path)))
    table = live_figures.ticks(jobs.progress(identifier))
    assert set(live_figures.FIGURES) == set(live.FIGURES)
    assert table.height == 0 or table["delivered"].is_sorted()


def test_a_run_can_be_stopped_and_keeps_what_it_has(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    identifier = jobs.start(drafts.written(replace(SHORT, duration="10 h", delay="1 ms")))
    until = time.monotonic() + WITHIN_S
    while not any(line.get("event") == "tick" for line in jobs.progress(identifier)) and time.monotonic() < until:
        time.sleep(0.1)
    assert "Stop" in text_of(live.now(jobs))
    assert jobs.stop(identifier)
    assert ended(jobs, identifier).verdict == "incomplete"
    assert not jobs.stop(identifier)


def test_only_jobs_can_be_looked_at_or_stopped(tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    for name in ("..", "../x", "", "none", "a/b"):
        assert jobs.state(name) is None and not jobs.stop(name) and jobs.progress("none") == []


def test_a_job_whose_process_is_gone_is_no_longer_told_to_run(tmp_path: Path) -> None:
    place = tmp_path / ".dashboard" / "01GONE"
    place.mkdir(parents=True)
    (place / "job.json").write_text('{"state": "running", "started": 1, "process": 1, "name": "x"}', encoding="utf-8")
    state = Jobs(tmp_path).state("01GONE")
    assert state is not None and state.state == ENDED and "gone" in str(state.reason)
    assert not Jobs(tmp_path).stop("01GONE")


def test_figures_of_ticks_are_thinned_and_bear_gaps() -> None:
    lines = [{"event": "tick", "at_ns": n * 250_000_000, "offered": n, "sent": n, "delivered": n, "connected": 1,
              "disconnects": 0, "latency_p50_ns": None if n % 2 else 5_000_000} for n in range(5000)]
    assert live_figures.ticks(lines).height <= live_figures.TICKS_DRAWN
    for name in live.FIGURES:
        assert live_figures.drawn(name, lines) is not None
    assert live_figures.drawn("latency", lines[:1]) is None and live_figures.drawn("none", lines) is None
