"""What changes something: the fields of Configure, start and stop, and what is renewed while a run goes on."""

from __future__ import annotations

from typing import Any

import dash
from dash import ALL, Input, Output, State

from mqttlab.dashboard import drafts
from mqttlab.dashboard.drafts import Draft
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.pages import configure, live
from mqttlab.dashboard.panels import link, notice
from mqttlab.scenario import ScenarioError

FIELDS = configure.FIELDS


def forms(app: dash.Dash, jobs: Jobs) -> None:
    """Add the callbacks of Configure and Live."""

    @app.callback(
        Output("toml", "value"), *(Output(f"draft-{name}", "value") for name in FIELDS), Output("preview", "children"),
        Output("start", "disabled"), Input("toml", "value"), *(Input(f"draft-{name}", "value") for name in FIELDS),
        prevent_initial_call=True)
    def follow(toml: str, *fields: Any) -> Any:
        text, draft = followed(dash.ctx.triggered_id, toml or "", fields)
        shown = configure.preview(text)
        told = [getattr(draft, name) for name in FIELDS]
        same = [dash.no_update if new == old else new for new, old in zip(told, fields, strict=True)]
        return dash.no_update if text == toml else text, *same, shown, not runnable(text)

    @app.callback(Output("started", "children"), Input("start", "n_clicks"), State("toml", "value"),
                  prevent_initial_call=True)
    def start(clicks: int | None, toml: str) -> Any:
        if not clicks:
            return dash.no_update
        try:
            drafts.check(toml or "")
            jobs.start(toml)
        except ScenarioError as error:
            return notice("problem", "This was not started.", drafts.problems(error))
        except OSError as error:
            return notice("problem", "This was not started.", [error.strerror or str(error)])
        return ["Started. ", link("Watch it live", "/live")]

    @app.callback(Output("live-now", "children"), Input("live-tick", "n_intervals"),
                  Input({"kind": "stop", "job": ALL}, "n_clicks"), prevent_initial_call=True)
    def renew(beat: int | None, clicks: list[int | None]) -> Any:
        asked = dash.ctx.triggered_id
        if isinstance(asked, dict) and any(clicks):
            jobs.stop(str(asked["job"]))
        return live.now(jobs, beat or 0)


def followed(changed: Any, toml: str, fields: tuple[Any, ...]) -> tuple[str, Draft]:
    """The text and the fields after one of them has changed: a field writes the text anew, the text sets the fields."""
    told = dict(zip(FIELDS, fields, strict=True))
    texts = {name: str(value or "") for name, value in told.items() if name != "nodes"}
    draft = Draft(nodes=whole(told["nodes"]), **texts)
    name = str(changed).removeprefix("draft-")
    if name in FIELDS:
        return drafts.written(draft), draft
    return toml, drafts.read(toml, draft)


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
