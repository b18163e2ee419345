"""Run: one recording, as its report has it, in parts that are asked for one by one."""

from __future__ import annotations

import json
from collections.abc import Callable

from dash import dcc, html

from mqttlab import metrics
from mqttlab.catalog.place import CatalogError
from mqttlab.catalog.run_annotations import Annotations
from mqttlab.dashboard import run_figures, run_tables, verdicts
from mqttlab.dashboard.pages import connection, instant, message, messages, overview
from mqttlab.dashboard.pages import map as map_page
from mqttlab.dashboard.panels import (
    Content,
    Head,
    Link,
    act,
    address,
    facts,
    figure,
    link,
    notice,
    table,
    written_table,
)
from mqttlab.dashboard.store import Store, given_out
from mqttlab.digits import duration, plain
from mqttlab.experiments.thresholds import Judgement
from mqttlab.plurals import counted
from mqttlab.recording import Recording
from mqttlab.report import headline
from mqttlab.report.facts import of_run
from mqttlab.report.text import lateness, moment, verdict

PARTS = {"overview": "Overview", "messages": "Messages", "time": "Over time", "parts": "Where the time went",
         "network": "Network", "recent": "Message by message", "connections": "Connections",
         "instant": "At an instant", "map": "Map", "files": "Files and provenance"}
FIRST = "overview"
WORDS = {"valid": "Valid", "not valid": "Not valid: read why before you use a number", "incomplete":
         "Incomplete: this is what was recorded"}


def page(store: Store, name: str, query: dict[str, str]) -> html.Div:
    """A part of a run, under its verdict.

    Raises:
        UnknownRun: there is no run of this name.
        RecordingError: it cannot be read.
    """
    recording = store.recording(name)
    part = query.get("part", FIRST)
    part = part if part in PARTS or part == "message" else FIRST
    return html.Div([
        html.P([link("Runs", "/"), " › ", name], className="crumbs"),
        html.H1(recording.name),
        html.P(headline.described(recording), className="lead"),
        _verdict(store, name, recording),
        _worst(recording) if part != FIRST else None,
        html.Nav([link(title, address(f"/run/{name}", part=key), **({"aria-current": "page"} if key == part else {}))
                  for key, title in PARTS.items()], className="parts", **{"aria-label": "Parts of the run"}),
        html.Div(_body(recording, name, part, query), id="part"),
        _remarks(store, name, recording),
    ])


def _verdict(store: Store, name: str, recording: Recording) -> html.Div:
    word, reasons = verdict(recording)
    said = notice(word.replace(" ", "-"), WORDS.get(word, word), reasons[:1])
    # The numbers shall be on the first screen, of a telephone too.
    more = [html.Details([html.Summary(counted(len(reasons) - 1, "more reason")),
                          html.Ul([html.Li(reason) for reason in reasons[1:]])])] if len(reasons) > 1 else []
    rows = [*of_run(recording), *lateness(recording)]
    return html.Div([said, *more, *_thresholds(verdicts.judged(store, name, recording)),
                     html.Details([html.Summary("What was run, and how exactly"), facts(rows)])],
                    className="verdict")


def _worst(recording: Recording) -> html.P | None:
    """The numbers that people look for first, which *Overview* has in full."""
    flows = headline.worst_first(metrics.headline(recording).flows)
    if not flows:
        return None
    late = headline.slowest_in_words(flows[0])
    more = f"; {counted(len(flows) - 1, 'more flow')}, none worse" if len(flows) > 1 else ""
    return html.P(f"{headline.title(flows[0])}: {late}, {headline.undelivered(flows[0])}{more}.", className="worst")


def _thresholds(judged: list[Judgement]) -> Content:
    """Each threshold with what this run says of it."""
    kinds = {"held": "valid", "broken": "problem-of-run", "undecided": "incomplete"}
    return [notice(kinds[one.verdict], f"Threshold {one.verdict}: {one.name}", [one.words]) for one in judged]


def _remarks(store: Store, name: str, recording: Recording) -> html.Section:
    """Tags, notes, and what can be done with the run."""
    try:
        said = Annotations.read(store.place(name))
    except CatalogError:
        said = Annotations()
    one = json.dumps({"runs": [name]})
    tags: Content = []
    for tag, value in said.tags.items():
        words = f"{tag}={value}" if value else tag
        tags.append(html.Span([words, act("×", "untag", json.dumps({"runs": [name], "tag": tag}),
                                          label=f"Take the tag {tag} away")], className="view badge"))
    notes = [html.Li([note.text, html.Small(f" {note.author}, {moment(note.at)}")]) for note in said.notes]
    return html.Section([
        html.Div([
            html.Span("Tags" if tags else "No tags"), *tags, html.Label("Tag", htmlFor="run-tag"),
            dcc.Input(id="run-tag", placeholder="name or name=value"),
            html.Button("Add the tag", type="button", className="act", **{
                "data-act": "tag", "data-from": "run-tag", "data-value": one}),
            html.Label("Note", htmlFor="run-note"), dcc.Input(id="run-note", className="wide"),
            html.Button("Add the note", type="button", className="act", **{
                "data-act": "note", "data-from": "run-note", "data-value": one}),
            act("Run again", "again", name), link("Change it and run", address("/configure", run=name)),
        ], className="form-row"),
        html.Ul(notes, className="notes") if notes else None,
    ], className="panel remarks")


def _body(recording: Recording, name: str, part: str, query: dict[str, str]) -> Content:
    special: dict[str, Callable[[], Content]] = {
        "overview": lambda: overview.part(recording),
        "recent": lambda: messages.part(recording, name, query),
        "message": lambda: message.part(recording, name, query),
        "connections": lambda: connection.part(recording, name, query),
        "instant": lambda: instant.part(recording, name, query),
        "map": lambda: map_page.part(recording, name),
        "files": lambda: _files(recording, name),
    }
    if part in special:
        return special[part]()
    drawn = [figure(one.name, address(f"/data/run/{name}/figure/{one.name}.json"), over_time=one.over_time)
             for one in run_figures.of_page(recording, part)]
    tables = [table(one.title, one.rows, one.columns, words=one.words,
                    csv=address(f"/data/run/{name}/table/{one.name}.csv"))
              for one in run_tables.of_page(recording, part)]
    said = [html.P("All of these have one time axis: zoom into one by dragging, and the others follow; a double click "
                   "shows all.", className="lead")] if part == "time" else []
    if not tables and part == "messages":
        tables = [notice("note", "No message was measured.")]
    return [*said, *tables, html.Div(drawn, className="figures" if part != "time" else "figures one-below-another")]


def _told(key: str, value: object) -> tuple[str, str]:
    """A fact of the machine; bytes as people say them."""
    if key.endswith("_bytes") and isinstance(value, (int, float)):
        return key.removesuffix("_bytes").replace("_", " "), f"{plain(value / 1e9, 3)} GB"
    return key.replace("_", " "), str(value)


def _files(recording: Recording, name: str) -> Content:
    place = recording.source or recording.directory
    run = recording.run
    rows = [[Link(path.name, address(f"/data/run/{name}/file/{path.name}")), path.stat().st_size]
            for path in given_out(place)]
    machine = run.get("machine") or recording.layout.get("machine") or {}
    versions = run.get("versions") or {}
    known = [("identifier", recording.run_id or "–"), ("recording", str(place)),
             *(_told(key, value) for key, value in {**machine, **versions}.items()),
             ("plan", str(run.get("plan_sha256", "–")))]
    phases = (run.get("details") or {}).get("phases") or {}
    known += [(key.removesuffix("_ns").replace("_", " "), duration(value)) for key, value in phases.items()
              if key.endswith("_ns") and value is not None]
    plan = json.dumps(recording.plan, indent=1)
    again = f"mqttlab report {place}\nmqttlab export {place} --csv\nmqttlab explain {place} --slowest 3"
    return [
        html.Section([html.H2("Provenance"), facts(known)], className="panel"),
        html.Section([html.H2("The same from the command line"), html.Pre(again, tabIndex=0)], className="panel"),
        html.Section([
            html.H2("Files"),
            html.P([html.A("The report as one HTML file", href=address(f"/data/run/{name}/report.html"), download=""),
                    *([" · ", html.A("All frames as a capture for Wireshark", download="", href=address(
                        f"/data/run/{name}/capture.pcapng"))] if recording.rows("packets") else [])]),
            written_table("Files of the recording", [Head("file", text=True), Head("size", unit="B")], rows),
        ], className="panel"),
        html.Section([html.Details([html.Summary("The plan, as run"), html.Pre(plan, tabIndex=0)])],
                     className="panel"),
    ]
