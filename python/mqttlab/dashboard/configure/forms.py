"""What changes something: the fields of Configure, its start, buttons, and the frame of Live."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import dash
from dash import Input, Output, State

from mqttlab.dashboard.actions import Actions
from mqttlab.dashboard.configure import definition, draft_edits, drafts, experiment_drafts
from mqttlab.dashboard.configure.draft_edits import is_toml
from mqttlab.dashboard.configure.drafts import Draft
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.pages import configure, live
from mqttlab.dashboard.panels import link, notice
from mqttlab.dashboard.store import Store
from mqttlab.dashboard.watch import Watch
from mqttlab.errors import MqttlabError
from mqttlab.scenario import ScenarioError

FIELDS = configure.FIELDS


def forms(app: dash.Dash, store: Store, jobs: Jobs, watch: Watch, actions: Actions) -> None:
    """Add the callbacks of Configure, Live and of all buttons."""
    states = [State("toml", "value"), State("toml-known", "data"),
              *(State(f"draft-{name}", "value") for name in FIELDS)]

    @app.callback(
        Output("toml", "value"), *(Output(f"draft-{name}", "value") for name in FIELDS), Output("preview", "children"),
        Output("start", "disabled"), Output("start-held", "disabled"), Output("form", "data-form"),
        Output("toml-known", "data"), Output("draft-fields", "disabled"), Output("form-fields", "disabled"),
        Output("draft-address", "data"),
        Input("toml", "value"), Input("form-change", "data"),
        *(Input(f"draft-{name}", "value") for name in FIELDS), prevent_initial_call=True)
    def follow(toml: str, change: Any, *fields: Any) -> Any:
        text, draft = followed(set(dash.ctx.triggered_prop_ids.values()), toml or "", fields, change)
        told = [getattr(draft, name) for name in FIELDS]
        same = [dash.no_update if new == old else new for new, old in zip(told, fields, strict=True)]
        refused, broken = not runnable(text), not is_toml(text)
        # Where the text is none, the fields keep what they say until it is one again, and cannot be changed.
        return (dash.no_update if text == toml else text, *same, configure.preview(text, jobs), refused, refused,
                dash.no_update if broken else configure.form(text), text, broken, broken, configure.kept(text))

    @app.callback(Output("started", "children"), Input("start", "n_clicks"), Input("start-held", "n_clicks"),
                  *states, prevent_initial_call=True)
    def start(clicks: int | None, held: int | None, toml: str, known: str, *fields: Any) -> Any:
        if not clicks and not held:
            return dash.no_update
        try:
            begun = jobs.start(settled(toml or "", known, fields), held=dash.ctx.triggered_id == "start-held")
        except MqttlabError as error:
            return notice("problem", "This was not started.", drafts.problems(error))
        except OSError as error:
            return notice("problem", "This was not started.", [error.strerror or str(error)])
        many = f"{len(begun)} runs are" if len(begun) > 1 else "It is"
        return [f"{many} in the queue. ", link("Watch it live", "/live")]

    @app.callback(Output("experiment-preview", "children"), Input("experiment-check", "n_clicks"),
                  State("experiment-toml", "value"), *states, prevent_initial_call=True)
    def check_experiment(clicks: int | None, text: str, toml: str, known: str, *fields: Any) -> Any:
        return configure.design(text or "", settled(toml or "", known, fields)) if clicks else dash.no_update

    @app.callback(Output("experiment-started", "children"), Input("experiment-start", "n_clicks"),
                  State("experiment-toml", "value"), *states, prevent_initial_call=True)
    def start_experiment(clicks: int | None, text: str, toml: str, known: str, *fields: Any) -> Any:
        if not clicks:
            return dash.no_update
        try:
            name = experiment_drafts.start(text or "", settled(toml or "", known, fields), jobs)
        except MqttlabError as error:
            return notice("problem", "This was not started.", drafts.problems(error))
        except OSError as error:
            return notice("problem", "This was not started.", [error.strerror or str(error)])
        return [f"{name} is in the queue. ", link("Watch it live", "/live")]

    @app.callback(Output("live-now", "children"), Input("live-frame", "data"), prevent_initial_call=True)
    def renew(_frame: Any) -> Any:
        return live.frame(store, jobs, watch)

    @app.callback(Output("status", "children"), Output("done", "data"), Input("asked", "data"),
                  prevent_initial_call=True)
    def act(asked: Any) -> Any:
        return actions.perform(asked), asked


def followed(changed: Collection[str], toml: str, fields: tuple[Any, ...], change: Any = None) -> tuple[str, Draft]:
    """The text and the fields after one of them has changed: a field changes its places in the text, where it has any;
    the fields are what the text says.

    Args:
        changed: the identifiers of what has changed; more than one where they changed at once.
        toml: the text.
        fields: the values of the fields.
        change: ``place`` and ``value`` of what has changed in the form of all fields.
    """
    draft = drafted(fields)
    names = {name for name in FIELDS if f"draft-{name}" in changed}
    if "form-change" in changed:
        toml = _put(toml, change)
    if names and "toml" not in changed:
        toml = brought(toml, draft, names)
        return toml, drafts.read(toml, draft)
    # What was typed into the text is newer than every field but those that changed with it.
    for name in names:
        toml = draft_edits.changed(toml, name, draft)
    return toml, drafts.read(toml, draft)


def settled(toml: str, known: str, fields: tuple[Any, ...]) -> str:
    """The text that a start is meant to run. A browser that starts it may not have the answer yet to what was typed
    into fields before: then the text is still the one that the last answer brought, and the fields are newer.

    Args:
        toml: the text.
        known: the text that the last answer brought.
        fields: the values of the fields.
    """
    return brought(toml, drafted(fields)) if toml == known else toml


def brought(toml: str, draft: Draft, changed: Collection[str] = ()) -> str:
    """A text with what fields say otherwise, and the fields that changed: others may have changed a moment before,
    since browsers do not wait for an answer before they ask again."""
    told = drafts.read(toml, draft)
    for name in FIELDS:
        if name in changed or getattr(told, name) != getattr(draft, name):
            toml = draft_edits.changed(toml, name, draft)
    return toml


def drafted(fields: tuple[Any, ...]) -> Draft:
    """The fields' values as a draft."""
    told = dict(zip(FIELDS, fields, strict=True))
    texts = {name: str(value or "") for name, value in told.items() if name != "nodes"}
    return Draft(nodes=whole(told["nodes"]), **texts)


def _put(toml: str, change: Any) -> str:
    """The text with a field of the form set; as it is where the form has no such field, or the text is no TOML."""
    if not isinstance(change, dict) or not all(isinstance(change.get(key), str) for key in ("place", "value")):
        return toml
    try:
        return definition.put(toml, change["place"], change["value"].strip())
    except ValueError:
        return toml


def whole(value: Any) -> int:
    """A number of nodes; what is none is 0, which the scenario's check refuses at its place."""
    return int(value) if isinstance(value, (int, float)) else 0


def runnable(toml: str) -> bool:
    """Whether a text may be started."""
    try:
        drafts.check(toml)
    except ScenarioError:
        return False
    return True
