"""Configure: a scenario from the questions of ``mqttlab try``, a form of all fields or as TOML; its start and what it
would run."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from dash import dcc, html

from mqttlab.dashboard import drawing
from mqttlab.dashboard.configure import definition, drafts, experiment_drafts
from mqttlab.dashboard.configure.draft_edits import is_toml
from mqttlab.dashboard.configure.drafts import PAYLOADS, Draft
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.panels import Content, Head, facts, notice, written_table
from mqttlab.digits import plain
from mqttlab.errors import MqttlabError
from mqttlab.networks import MODELS, PLACEMENTS, implied, place
from mqttlab.scenario import Scenario, ScenarioError, compile_plan
from mqttlab.scenario.estimate import estimate
from mqttlab.scenario.needs import room
from mqttlab.toml_reader import read_toml

FIELDS = ("nodes", "delay", "qos", "data", "network", "loss", "duration", "backend")
LABELS = {"nodes": "Clients that publish", "delay": "Interval", "qos": "QoS, or another protocol", "data": "Payload",
          "network": "Network", "loss": "Loss", "duration": "Duration", "backend": "Backend"}
# In fields that are empty: what that means.
EMPTY = {"delay": "5 s", "loss": "the network's own; or 2 %", "duration": "20 s"}
QOS = {"each": "MQTT, each QoS level", "0": "MQTT, QoS 0", "1": "MQTT, QoS 1", "2": "MQTT, QoS 2",
       "mqtt-sn": "MQTT-SN, QoS 1", "zeromq": "ZeroMQ"}
BACKENDS = {"live": "live: real broker and TCP", "sim": "simulated"}
LINKS_SHOWN = 12
# What browsers and proxies take for an address.
ADDRESS_LETTERS_MAX = 6000


def page(jobs: Jobs, toml: str | None = None) -> html.Div:
    """The page, with a scenario to begin with."""
    draft = Draft() if toml is None else drafts.read(toml, Draft())
    text = drafts.written(draft) if toml is None else toml
    return html.Div([
        html.H1("Configure"),
        html.P("Answer the questions, and start. Each client that publishes has a subscriber. Edit the form below or "
               "the TOML for all else; they stay in step. The URL saves your draft.", className="lead"),
        dcc.Store(id="draft-address", data=kept(text)),
        html.Div([
            html.Section([html.H2("Questions"), html.Fieldset([
                              _field(name, getattr(draft, name)) for name in FIELDS], id="draft-fields",
                              className="plain", disabled=not is_toml(text)),
                          # What becomes of a start stands beside its button.
                          html.Div([html.Button("Start", id="start", type="button", className="main"),
                                    html.Button("Add paused", id="start-held", type="button",
                                                title="Begins when you let it, on the page Live"),
                                    html.Div(id="started", role="status")], className="form-row"),
                          html.P("A live run waits until it has the machine to itself.", className="lead"),
                          html.Details([html.Summary("Network models and the delays that they imply"), networks()])],
                         className="panel"),
            html.Section([
                html.H2(html.Label("Scenario (TOML)", htmlFor="toml")),
                dcc.Textarea(id="toml", value=text, spellCheck=False, className="toml"),
                dcc.Store(id="toml-known", data=text),
            ], className="panel"),
            html.Section([
                html.H2("What it would run"), html.Div(preview(text, jobs), id="preview", role="status"),
            ], className="panel"),
        ], className="configure"),
        _experiment(),
        html.Section([
            html.H2("All fields"),
            html.P("Every field of a scenario, from its definition. A field that is empty has its default.",
                   className="lead"),
            dcc.Store(id="form-change"),
            html.Fieldset(html.Div(id="form", className="form-place", **{"data-form": form(text)}), id="form-fields",
                          className="plain", disabled=not is_toml(text)),
        ], className="panel"),
    ])


def kept(text: str) -> str:
    """A scenario as an address holds it; nothing for the one that the page begins with, and for what is too long."""
    if text == drafts.written(Draft()):
        return ""
    packed = base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")
    return packed if len(packed) <= ADDRESS_LETTERS_MAX else ""


def unpacked(packed: str) -> str | None:
    """The scenario of an address; nothing where it holds none."""
    if len(packed) > ADDRESS_LETTERS_MAX:
        return None
    try:
        content = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        return zlib.decompressobj().decompress(content, drafts.TOML_LETTERS_MAX).decode()
    except (ValueError, zlib.error):
        return None


def _experiment() -> html.Section:
    """The experiment that varies this scenario."""
    return html.Section([html.Details([
        html.Summary(html.H2("As an experiment")),
        html.P("The scenario above, varied on purpose: factors and their levels, a design, repetitions in random "
               "blocks. Its name is that of its directory; the same name goes on with it.", className="lead"),
        html.Div([
            html.Div([html.Label("Experiment (TOML)", htmlFor="experiment-toml"), dcc.Textarea(
                id="experiment-toml", value=experiment_drafts.TEMPLATE, spellCheck=False, className="toml")]),
            html.Div([html.Div(id="experiment-preview", role="status"), html.Div([
                html.Button("Check the experiment", id="experiment-check", type="button"),
                html.Button("Start the experiment", id="experiment-start", type="button", className="main")],
                className="form-row"), html.Div(id="experiment-started", role="status")]),
        ], className="configure-experiment"),
    ])], className="panel")


def design(text: str, toml: str) -> Content:
    """What an experiment would run, and its design as a matrix; or its problems."""
    try:
        experiment = experiment_drafts.check(text, toml)
    except MqttlabError as error:
        return [notice("problem", "This experiment cannot be run.", drafts.problems(error))]
    factors = [factor.name for factor in experiment.design.factors]
    rows = [[point.number + 1, *(point.levels[name].text if name in point.levels else "" for name in factors)]
            for point in experiment.design.points]
    return [notice("valid", "This experiment can be run."), facts(experiment_drafts.facts_of(experiment)),
            written_table("Design", [Head("point"), *(Head(name, text=True) for name in factors)], rows)]


def form(toml: str) -> str:
    """The form of a text, as the browser builds it; that of nothing where the text is no TOML."""
    try:
        values = read_toml(toml)
    except ValueError:
        values = {}
    try:
        drafts.check(toml)
        problems: list[str] = []
    except ScenarioError as error:
        problems = drafts.problems(error)
    return json.dumps(definition.form(values, problems))


def _field(name: str, value: Any) -> html.Div:
    label = html.Label(LABELS[name], htmlFor=f"draft-{name}")
    choices = {"qos": QOS, "data": PAYLOADS, "backend": BACKENDS,
               "network": {model: MODELS[model].title for model in MODELS}}.get(name)
    if choices is None:
        kind = "number" if name == "nodes" else "text"
        field = dcc.Input(id=f"draft-{name}", type=kind, value=value, debounce=0.3, placeholder=EMPTY.get(name))
    else:
        known = choices if not value or value in choices else {**choices, value: str(value)}
        # A browser's own list: everybody's keyboard and reader knows it.
        field = dcc.RadioItems(id=f"draft-{name}", value=value, className="choices-below", options=[
            {"label": words, "value": key} for key, words in known.items()]) if len(known) <= 2 else dcc.Dropdown(
            id=f"draft-{name}", value=value, clearable=False, searchable=False, placeholder="as the text says",
            options=[{"label": words, "value": key} for key, words in known.items()])
    return html.Div([label, field], className="field-below")


def networks() -> html.Div:
    """The network models, and which delays each implies where it is placed."""
    heads = [Head("model", text=True), Head("rate up", unit="kbit/s"), Head("rate down", unit="kbit/s"),
             Head("placed", text=True), Head("up", unit="ms"), Head("down", unit="ms"), Head("round trip", unit="ms")]
    rows = []
    for model in MODELS.values():
        for placement in PLACEMENTS:
            delays = implied(place(model, placement))
            rows.append([model.title, _kbit(model.up.rate), _kbit(model.down.rate),
                         placement + (" (default)" if placement == model.placement else ""),
                         float(delays.up_ms), float(delays.down_ms), float(delays.round_trip_ms)])
    return written_table("Network models and the delays that they imply", heads, rows)


def _kbit(rate: int | None) -> str:
    return "no limit" if rate is None else plain(rate / 1000)


def preview(toml: str, jobs: Jobs) -> Content:
    """What a TOML would run, or its problems, each at its place."""
    try:
        scenario = drafts.check(toml)
        plan = compile_plan(scenario)
    except ScenarioError as error:
        return [notice("problem", "This cannot be run.", drafts.problems(error))]
    links = [f"{link['name']}: {_rate(link.get('rate_bit_s'))}, {_delay(link.get('delay'))}"
             for link in plan["network"]["links"][:LINKS_SHOWN]]
    svg, words = drawing.drawn(plan)
    picture = base64.b64encode(svg.encode()).decode()
    drawn = [html.Img(src=f"data:image/svg+xml;base64,{picture}", alt=f"Drawing: {words}", className="drawing")] if (
        svg) else [html.P(words)]
    return [notice("valid", "This can be run."), facts(_facts(scenario, plan, jobs)), *drawn,
            html.Ul([html.Li(words) for words in links], className="links-of-plan")]


def _facts(scenario: Scenario, plan: Any, jobs: Jobs) -> list[tuple[str, str]]:
    load, phases = estimate(scenario), scenario.phases
    longest = (phases.warm_up + phases.duration + phases.cool_down) / 1e9
    wanted, free = room(scenario, jobs.runs)
    took = jobs.queue.took_s().get((scenario.name, scenario.backend))
    rows = [
        ("name", scenario.name), ("backend", scenario.backend),
        ("clients", str(sum(group.count for group in scenario.groups))),
        ("offered", f"{plain(load.offered_per_s)} messages a second"), ("would make", load.words()),
        ("publishing", f"{plain((phases.warm_up + phases.duration) / 1e9)} s"), ("at most", f"{plain(longest)} s"),
        ("recording", f"about {plain(wanted / 1e6, 3)} MB; the disk has {plain(free / 1e9, 3)} GB free"),
        ("network", str(plan["network"]["description"])),
    ]
    if scenario.repetitions > 1:
        rows.insert(2, ("repetitions", str(scenario.repetitions)))
    if took is not None:
        rows.append(("took, the last times", f"{took:.0f} s"))
    return rows


def _rate(rate: Any) -> str:
    return f"{plain(rate / 1000)} kbit/s" if isinstance(rate, (int, float)) and rate else "no rate limit"


def _delay(delay: Any) -> str:
    if isinstance(delay, dict):
        for key in ("mean_ns", "delay_ns", "value_ns", "ns", "constant_ns"):
            if isinstance(delay.get(key), (int, float)):
                return f"{plain(delay[key] / 1e6)} ms"
    return "no delay" if not delay else "a law of delays"
