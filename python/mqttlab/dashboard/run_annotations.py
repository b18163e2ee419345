"""What people say of runs from the browser: tags, notes, saved views; and running a scenario again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from mqttlab.catalog import Catalog
from mqttlab.dashboard.configure import drafts
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.store import Store
from mqttlab.errors import MqttlabError
from mqttlab.files import BY_HAND, json_object, written_scenario
from mqttlab.networks.trace import traces_of
from mqttlab.scenario.load import parse

TEXT_LETTERS_MAX = 2000
NAME_LETTERS_MAX = 60
RUNS_MAX = 500


class RemarkError(MqttlabError):
    """What is said of a run cannot be kept."""


def actions(store: Store, jobs: Jobs) -> dict[str, Callable[[str], str]]:
    """The actions by name; each takes a JSON object as text."""
    def of(work: Callable[[Store, dict[str, Any]], str]) -> Callable[[str], str]:
        def action(value: str) -> str:
            try:
                told = json.loads(value)
            except ValueError:
                told = None
            if not isinstance(told, dict):
                raise RemarkError("that is no value")
            words = work(store, told)
            store.forget()
            return words

        return action

    return {"tag": of(_tag), "untag": of(_untag), "note": of(_note), "save-view": of(_save_view),
            "drop-view": of(_drop_view), "again": lambda run: _again(store, jobs, run)}


def _text(told: dict[str, Any], name: str, most: int) -> str:
    value = told.get(name)
    if not isinstance(value, str) or not value.strip() or len(value) > most:
        raise RemarkError(f"write a {name} of 1 to {most} characters")
    return value.strip()


def _runs(told: dict[str, Any]) -> list[str]:
    runs = told.get("runs")
    if not isinstance(runs, list) or not runs or not all(isinstance(run, str) for run in runs):
        raise RemarkError("select runs first: press Space on their rows, or click them")
    return runs[:RUNS_MAX]


def _tag(store: Store, told: dict[str, Any]) -> str:
    """Tag runs: ``text`` is a name, or ``name=value``."""
    name, _, value = _text(told, "text", NAME_LETTERS_MAX).partition("=")
    runs = _runs(told)
    with Catalog.open(store.catalog) as catalog:
        for run in runs:
            catalog.tag(store.place(run), {name.strip(): value.strip()})
    return f"{name.strip()}: {len(runs)} tagged."


def _untag(store: Store, told: dict[str, Any]) -> str:
    name, runs = _text(told, "tag", NAME_LETTERS_MAX), _runs(told)
    with Catalog.open(store.catalog) as catalog:
        for run in runs:
            catalog.untag(store.place(run), [name])
    return f"{name} is taken away."


def _note(store: Store, told: dict[str, Any]) -> str:
    text, runs = _text(told, "text", TEXT_LETTERS_MAX), _runs(told)
    with Catalog.open(store.catalog) as catalog:
        for run in runs:
            catalog.note(store.place(run), text)
    return "The note is kept."


def _save_view(store: Store, told: dict[str, Any]) -> str:
    """Keep an address of the table of runs: what is searched, grouped, pinned and drawn."""
    name, state = _text(told, "text", NAME_LETTERS_MAX), told.get("state")
    if not isinstance(state, str) or len(state) > TEXT_LETTERS_MAX or not (state == "" or state.startswith("?")):
        raise RemarkError("that is no view")
    with Catalog.open(store.catalog) as catalog:
        catalog.save_view(name, state)
    return f"The view {name} is saved."


def _drop_view(store: Store, told: dict[str, Any]) -> str:
    name = _text(told, "view", NAME_LETTERS_MAX)
    with Catalog.open(store.catalog) as catalog:
        catalog.save_view(name, None)
    return f"The view {name} is gone."


def views(store: Store) -> dict[str, str]:
    """Saved views: the address of each by its name."""
    if not store.has_catalog:
        return {}
    try:
        with Catalog.open(store.catalog, read_only=True) as catalog:
            return {name: state for name, state in catalog.views().items() if isinstance(state, str)}
    except MqttlabError:
        # A catalog that cannot be read has no views; doctor and `mqttlab catalog` say what is wrong.
        return {}


def scenario_of(store: Store, run: str) -> tuple[str, dict[str, Any]]:
    """The scenario that a run was made from, as written, and the fields that were replaced.

    Raises:
        UnknownRun: there is no such run.
        RemarkError: its recording does not have it.
    """
    written = written_scenario(store.place(run))
    if written is None:
        raise RemarkError(f"the recording of {run} does not have the scenario that it was made from")
    return written


def _again(store: Store, jobs: Jobs, run: str) -> str:
    """Run a run's scenario again, with the fields that were replaced; what a browser may not ask for stays refused."""
    toml, replaced = scenario_of(store, run)
    try:
        traces = traces_of(json_object(store.place(run) / "plan.json"))
    except (KeyError, TypeError, IndexError) as error:
        raise RemarkError(f"the plan of {run} is damaged: its traces cannot be read") from error
    drafts.check(toml, traces)
    if refused := [place for place, value in replaced.items() if set(place.replace("[", ".").split("."))
                   & set(drafts.REFUSED) or drafts.is_path(place.rpartition(".")[2], value, traces)]:
        raise RemarkError(f"{refused[0]} cannot be set from the browser; use mqttlab run")
    begun = jobs.start_scenario(
        parse(toml, "scenario", replaced, traces), {"scenario": {"toml": toml, "settings": replaced}})
    fired = "; the events that were fired by hand are not in it" if (store.place(run) / BY_HAND).is_file() else ""
    return f"{len(begun)} in the queue{fired}; the page Live shows it."
