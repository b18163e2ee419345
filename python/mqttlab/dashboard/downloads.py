"""What is asked for besides pages: figures, the numbers behind figures and tables, files of a recording, its report."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from urllib.parse import quote

import flask
import polars as pl

from mqttlab import scratch
from mqttlab.dashboard import events_by_hand, live_figures, maps, payloads, run_figures, run_sets, run_tables, verdicts
from mqttlab.dashboard.comparisons import Comparisons
from mqttlab.dashboard.experiment_figures import Analyses
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.pages import live, runs
from mqttlab.dashboard.pages.message import message_numbers
from mqttlab.dashboard.panels import answer, twin
from mqttlab.dashboard.store import Store, given_out
from mqttlab.dashboard.uploads import UploadError, Uploads
from mqttlab.dashboard.watch import Watch
from mqttlab.digits import whole
from mqttlab.errors import MqttlabError
from mqttlab.export import ExportError, cut_of_message, pcapng
from mqttlab.figures.drawing import PLOTLY_CARTESIAN
from mqttlab.recording import Recording
from mqttlab.report import changes
from mqttlab.report.html import page
from mqttlab.sheets import csv_text

HERE = Path(__file__).parent
# As many as a browser is patient for: some seconds.
CAPTURE_FRAMES_MAX = 200_000
# Its version is in its name: who has it asks for it no more.
PLOTLY = "plotly-4.1.1.js"
# What others have written and pages ask for when they need it.
VENDOR = {PLOTLY: (PLOTLY_CARTESIAN, "text/javascript"),
          "leaflet.js": (HERE / "vendor/leaflet/leaflet.js", "text/javascript"),
          "leaflet.css": (HERE / "vendor/leaflet/leaflet.css", "text/css"),
          "outlines.json": (HERE / "vendor/outlines.geojson", "application/json")}


def routes(server: flask.Flask, store: Store, jobs: Jobs, watch: Watch, uploads: Uploads,
           analyses: Analyses, comparisons: Comparisons) -> None:
    """Add the addresses of all downloads."""
    _of_a_run(server, store)
    _of_many_runs(server, store)
    _of_experiments(server, analyses)
    _of_comparisons(server, comparisons)
    _going_on(server, jobs, watch)
    _of_others(server)
    _sent(server, uploads)

    @server.errorhandler(MqttlabError)
    def refused(error: MqttlabError) -> flask.Response:
        return flask.Response("\n".join(error.problems) + "\n", 404, content_type="text/plain; charset=utf-8")


def _of_a_run(server: flask.Flask, store: Store) -> None:
    """Figures, tables, the map, the report and files of a recording."""
    @server.get("/data/run/<path:run>/figure/<name>.json")
    def figure_json(run: str, name: str) -> flask.Response:
        figure, shown = run_figures.named(name), _range()
        if figure is None:
            return _missing("figure", name)
        drawn = figure.draw(store.recording(run), shown)
        if drawn is not None:
            [drawn] = changes.marked(store.recording(run), [drawn])
        theme = flask.request.args.get("theme", "light")
        if figure.over_time and shown is None:
            shown = run_figures.span(store.recording(run))
        made = '{"figure": null}' if drawn is None else answer(
            verdicts.mark(drawn, name, verdicts.thresholds(store, run)), theme, over_time=figure.over_time, shown=shown)
        return flask.Response(made, content_type="application/json")

    @server.get("/data/run/<path:run>/map.json")
    def map_json(run: str) -> flask.Response:
        return flask.Response(json.dumps(maps.told(store.recording(run))), content_type="application/json")

    @server.get("/data/run/<path:run>/figure/<name>.csv")
    def figure_csv(run: str, name: str) -> flask.Response:
        figure = run_figures.named(name)
        drawn = figure.draw(store.recording(run), _range()) if figure else None
        return _missing("figure", name) if drawn is None else _csv(twin(drawn), f"{run}-{name}.csv")

    @server.get("/data/run/<path:run>/table/<name>.csv")
    def table_csv(run: str, name: str) -> flask.Response:
        table = run_tables.named(store.recording(run), name)
        if table is None:
            return _missing("table", name)
        return _csv(table.rows.select(column for column in table.columns if column in table.rows.columns),
                    f"{run}-{name}.csv")

    @server.get("/data/run/<path:run>/payload/<row>.bin")
    def payload(run: str, row: str) -> flask.Response:
        content = payloads.one(store.recording(run), row)
        if content is None:
            return _missing("payload", row)
        return flask.Response(content, content_type="application/octet-stream", headers={
            "Content-Disposition": f"attachment; filename=payload-{row}.bin"})

    @server.get("/data/run/<path:run>/picture/<row>")
    def picture(run: str, row: str) -> flask.Response:
        content = payloads.one(store.recording(run), row)
        found = payloads.picture(content) if content else None
        if found is None:
            return _missing("picture", row)
        return flask.Response(found.content, content_type=found.kind)

    @server.get("/data/run/<path:run>/report.html")
    def report(run: str) -> flask.Response:
        return _attached(page(store.recording(run)), f"{run}.html", "text/html")

    @server.get("/data/run/<path:run>/capture.pcapng")
    def capture(run: str) -> flask.Response:
        return _capture(store.recording(run), run, flask.request.args.get("message", ""))

    @server.get("/data/run/<path:run>/file/<name>")
    def file(run: str, name: str) -> flask.Response:
        path = next((path for path in given_out(store.place(run)) if path.name == name), None)
        if path is None:
            return _missing("file", name)
        return flask.send_file(path, as_attachment=True, download_name=name, mimetype="application/octet-stream")


def _capture(recording: Recording, run: str, message: str) -> flask.Response:
    """The frames of a run, or of one of its messages, for Wireshark; made for this answer alone."""
    numbers = message_numbers(message)
    if message and numbers is None:
        return _missing("message", message)
    frames = recording.rows("packets")
    if frames > CAPTURE_FRAMES_MAX and numbers is None:
        raise ExportError(f"this run has {frames:,} frames, too many to be waited for here; on the machine of the runs "
                          f"write: mqttlab export {recording.directory} --pcapng")
    with scratch.directory("capture") as place:
        cut = cut_of_message(recording, *numbers) if numbers else None
        pcapng(recording, place / "run.pcapng", cut)
        # The file is read while it is sent; its name need not outlive this.
        frames_file = (place / "run.pcapng").open("rb")
    name = f"{run}-{message}.pcapng" if message else f"{run}.pcapng"
    sent = flask.send_file(frames_file, as_attachment=True, mimetype="application/octet-stream",
                           download_name=re.sub(r"[^\w.-]+", "-", name))
    sent.content_length = os.fstat(frames_file.fileno()).st_size
    return sent


def _of_many_runs(server: flask.Flask, store: Store) -> None:
    """Figures of the table of runs."""
    @server.get("/data/runs/figure/<name>.json")
    def runs_figure_json(name: str) -> flask.Response:
        query = flask.request.args.to_dict()
        drawn = run_sets.drawn(store, name, runs.selected(store.runs(), query), query)
        made = '{"figure": null}' if drawn is None else answer(drawn, query.get("theme", "light"))
        return flask.Response(made, content_type="application/json")

    @server.get("/data/runs/figure/<name>.csv")
    def runs_figure_csv(name: str) -> flask.Response:
        query = flask.request.args.to_dict()
        drawn = run_sets.drawn(store, name, runs.selected(store.runs(), query), query)
        return _missing("figure", name) if drawn is None else _csv(twin(drawn), f"runs-{name}.csv")


def _of_experiments(server: flask.Flask, analyses: Analyses) -> None:
    """Figures of experiments."""
    @server.get("/data/experiment/<name>/figure/<figure>.json")
    def experiment_figure_json(name: str, figure: str) -> flask.Response:
        drawn = analyses.of(name)[1].get(figure)
        made = '{"figure": null}' if drawn is None else answer(drawn, flask.request.args.get("theme", "light"))
        return flask.Response(made, content_type="application/json")

    @server.get("/data/experiment/<name>/figure/<figure>.csv")
    def experiment_figure_csv(name: str, figure: str) -> flask.Response:
        drawn = analyses.of(name)[1].get(figure)
        return _missing("figure", figure) if drawn is None else _csv(twin(drawn), f"{name}-{figure}.csv")


def _of_comparisons(server: flask.Flask, comparisons: Comparisons) -> None:
    """Figures of a comparison."""
    @server.get("/data/compare/figure/<name>.json")
    def comparison_figure_json(name: str) -> flask.Response:
        query = flask.request.args.to_dict()
        found = comparisons.drawn(name, query)
        made = '{"figure": null}' if found is None else answer(found, query.get("theme", "light"))
        return flask.Response(made, content_type="application/json")

    @server.get("/data/compare/figure/<name>.csv")
    def comparison_figure_csv(name: str) -> flask.Response:
        found = comparisons.drawn(name, flask.request.args.to_dict())
        return _missing("figure", name) if found is None else _csv(twin(found), f"compare-{name}.csv")


def _going_on(server: flask.Flask, jobs: Jobs, watch: Watch) -> None:
    """What the page Live asks for, again and again."""
    @server.get("/data/live.json")
    def live_json() -> flask.Response:
        return flask.Response(json.dumps(live.told(jobs, watch)), content_type="application/json")

    @server.get("/data/job/<job>/figure/<name>.json")
    def job_figure_json(job: str, name: str) -> flask.Response:
        found = watch.of(job)
        drawn = live_figures.drawn(name, found.ticks, watch.changes(job))
        made = json.dumps({"figure": None, "words": live_figures.nothing(found.ticks)}) if drawn is None else answer(
            drawn, flask.request.args.get("theme", "light"))
        return flask.Response(made, content_type="application/json")

    @server.get("/data/job/<job>/figure/<name>.csv")
    def job_figure_csv(job: str, name: str) -> flask.Response:
        drawn = live_figures.drawn(name, watch.of(job).ticks)
        return _missing("figure", name) if drawn is None else _csv(twin(drawn), f"{name}.csv")

    @server.get("/data/job/<job>/possible.json")
    def job_possible(job: str) -> flask.Response:
        return flask.Response(json.dumps(events_by_hand.possible(watch, job)), content_type="application/json")

    @server.post("/data/job/<job>/event")
    def job_event(job: str) -> flask.Response:
        told = events_by_hand.fire(watch, job, flask.request.get_json(silent=True))
        return flask.Response(json.dumps(told), content_type="application/json")


def _of_others(server: flask.Flask) -> None:
    """Libraries and outlines, which come with the first figure and the first map."""
    @server.get("/vendor/<name>")
    def vendor(name: str) -> flask.Response:
        if name not in VENDOR:
            return _missing("file", name)
        sent = flask.send_file(VENDOR[name][0], mimetype=VENDOR[name][1])
        sent.headers["Cache-Control"] = f"private, max-age={'31536000, immutable' if name == PLOTLY else '86400'}"
        return sent


def _sent(server: flask.Flask, uploads: Uploads) -> None:
    """Files that are sent here, in parts."""
    @server.post("/upload")
    def begin_upload() -> flask.Response:
        told = flask.request.get_json(silent=True)
        if not isinstance(told, dict) or not isinstance(told.get("name"), str) or type(told.get("size")) is not int:
            return _refused("A file's name and size are needed.")
        return _plain(uploads.begin(told["name"], told["size"]))

    @server.post("/upload/<identifier>")
    def add_part(identifier: str) -> flask.Response:
        offset = whole(flask.request.args.get("offset", ""))
        if offset is None:
            return _refused("The part's offset is needed.")
        return _plain(str(uploads.add(identifier, offset, flask.request.get_data())))

    @server.post("/upload/<identifier>/finish")
    def finish_upload(identifier: str) -> flask.Response:
        return _plain(uploads.finish(identifier))

    @server.errorhandler(UploadError)
    def not_taken(error: UploadError) -> flask.Response:
        return _refused("\n".join(error.problems))


def _range() -> run_figures.Range:
    try:
        return float(flask.request.args["from"]), float(flask.request.args["to"])
    except (KeyError, ValueError):
        return None


def _plain(text: str) -> flask.Response:
    return flask.Response(text + "\n", content_type="text/plain; charset=utf-8")


def _refused(words: str) -> flask.Response:
    return flask.Response(words + "\n", 400, content_type="text/plain; charset=utf-8")


def _missing(what: str, name: str) -> flask.Response:
    return flask.Response(f"There is no {what} {name!r} here.\n", 404, content_type="text/plain; charset=utf-8")


def _csv(table: pl.DataFrame, name: str) -> flask.Response:
    return _attached(csv_text(table), name, "text/csv")


def _attached(text: str, name: str, kind: str) -> flask.Response:
    return flask.Response(text, content_type=f"{kind}; charset=utf-8", headers={
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name.replace('/', '-'), safe='')}"})
