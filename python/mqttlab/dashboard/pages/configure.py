"""Configure: a scenario from six fields or as TOML, what it would run, and its start."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from mqttlab.dashboard import drafts
from mqttlab.dashboard.drafts import PAYLOADS, Draft
from mqttlab.dashboard.panels import Content, facts, notice
from mqttlab.networks import MODELS
from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.estimate import estimate

FIELDS = ("qos", "network", "data", "duration", "delay", "nodes", "backend")
LABELS = {"qos": "Protocol", "network": "Network model", "data": "Data type", "duration": "Duration",
          "delay": "Publish delay", "nodes": "Nodes at each level", "backend": "Backend"}
QOS = {"each": "MQTT, each QoS level", "0": "MQTT, QoS 0", "1": "MQTT, QoS 1", "2": "MQTT, QoS 2"}
BACKENDS = {"live": "live: real broker and TCP", "sim": "simulated"}


def page(toml: str | None = None) -> html.Div:
    """The page, with a scenario to begin with."""
    draft = Draft() if toml is None else drafts.read(toml, Draft())
    text = drafts.written(draft) if toml is None else toml
    return html.Div([
        html.H1("Configure"),
        html.P("The fields write the scenario; what is written in the scenario changes the fields. All that a scenario "
               "can say may be written there, but for what would start programs.", className="lead"),
        html.Div([
            html.Section([html.H2("Fields"), *(_field(name, getattr(draft, name)) for name in FIELDS)],
                         className="panel"),
            html.Section([
                html.H2(html.Label("Scenario (TOML)", htmlFor="toml")),
                dcc.Textarea(id="toml", value=text, spellCheck=False, className="toml"),
            ], className="panel"),
            html.Section([
                html.H2("What it would run"), html.Div(preview(text), id="preview", role="status"),
                html.Button("Start", id="start", type="button", className="main"),
                html.Div(id="started", role="status"),
            ], className="panel"),
        ], className="configure"),
    ])


def _field(name: str, value: Any) -> html.Div:
    label = html.Label(LABELS[name], htmlFor=f"draft-{name}")
    choices = {"qos": QOS, "data": PAYLOADS, "backend": BACKENDS,
               "network": {model: MODELS[model].title for model in MODELS}}.get(name)
    if choices is None:
        kind = "number" if name == "nodes" else "text"
        field = dcc.Input(id=f"draft-{name}", type=kind, value=value, debounce=0.3)
    else:
        known = choices if value in choices else {**choices, value: str(value)}
        # A browser's own list: everybody's keyboard and reader knows it.
        field = dcc.RadioItems(id=f"draft-{name}", value=value, className="choices-below", options=[
            {"label": words, "value": key} for key, words in known.items()]) if len(known) <= 2 else dcc.Dropdown(
            id=f"draft-{name}", value=value, clearable=False, searchable=False,
            options=[{"label": words, "value": key} for key, words in known.items()])
    return html.Div([label, field], className="field-below")


def preview(toml: str) -> Content:
    """What a TOML would run, or its problems, each at its place."""
    try:
        scenario = drafts.check(toml)
        plan = compile_plan(scenario)
    except ScenarioError as error:
        return [notice("problem", "This cannot be run.", drafts.problems(error))]
    load = estimate(scenario)
    phases = scenario.phases
    longest = (phases.warm_up + phases.duration + phases.cool_down) / 1e9
    rows = [
        ("name", scenario.name), ("backend", scenario.backend),
        ("clients", str(sum(group.count for group in scenario.groups))),
        ("offered", f"{load.offered_per_s:g} messages a second"),
        ("would make", load.words()),
        ("publishing", f"{(phases.warm_up + phases.duration) / 1e9:g} s"), ("at most", f"{longest:g} s"),
        ("recording", f"about {load.recording_bytes / 1e6:.3g} MB"),
        ("network", str(plan["network"]["description"])),
    ]
    links = [f"{link['name']}: {_rate(link.get('rate_bit_s'))}, {_delay(link.get('delay'))}"
             for link in plan["network"]["links"][:12]]
    return [notice("valid", "This can be run."), facts(rows),
            html.Ul([html.Li(words) for words in links], className="links-of-plan")]


def _rate(rate: Any) -> str:
    return f"{rate / 1000:g} kbit/s" if isinstance(rate, (int, float)) and rate else "no rate limit"


def _delay(delay: Any) -> str:
    if isinstance(delay, dict):
        for key in ("mean_ns", "delay_ns", "value_ns", "ns", "constant_ns"):
            if isinstance(delay.get(key), (int, float)):
                return f"{delay[key] / 1e6:g} ms"
    return "no delay" if not delay else "a law of delays"
