"""What is asked for besides pages: figures, the numbers behind figures and tables, files of a recording, its report."""

from __future__ import annotations

from urllib.parse import quote

import flask
import polars as pl
from plotly.offline import get_plotlyjs

from mqttlab.dashboard import live_figures, run_figures, run_tables
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.panels import answer, twin
from mqttlab.dashboard.store import Store
from mqttlab.errors import MqttlabError
from mqttlab.report.html import page

# Names of what the engine writes: a recording's directory has nothing else that is of use.
SUFFIXES = (".parquet", ".json", ".pcapng", ".log", ".html", ".svg", ".csv", ".toml", ".conf", ".xlsx", ".spool")


def routes(server: flask.Flask, store: Store, jobs: Jobs) -> None:
    """Add the addresses of all downloads."""

    @server.get("/data/run/<path:run>/figure/<name>.json")
    def figure_json(run: str, name: str) -> flask.Response:
        figure, shown = run_figures.named(name), _range()
        if figure is None:
            return _missing("figure", name)
        drawn = figure.draw(store.recording(run), shown)
        made = '{"figure": null}' if drawn is None else answer(
            drawn, flask.request.args.get("theme", "light"), over_time=figure.over_time, shown=shown)
        return flask.Response(made, content_type="application/json")

    @server.get("/data/job/<job>/figure/<name>.json")
    def job_figure_json(job: str, name: str) -> flask.Response:
        drawn = live_figures.drawn(name, jobs.progress(job)) if jobs.state(job) else None
        made = '{"figure": null}' if drawn is None else answer(drawn, flask.request.args.get("theme", "light"))
        return flask.Response(made, content_type="application/json")

    @server.get("/data/job/<job>/figure/<name>.csv")
    def job_figure_csv(job: str, name: str) -> flask.Response:
        drawn = live_figures.drawn(name, jobs.progress(job)) if jobs.state(job) else None
        return _missing("figure", name) if drawn is None else _csv(twin(drawn), f"{name}.csv")

    @server.get("/plotly.js")
    def plotly() -> flask.Response:
        sent = flask.Response(get_plotlyjs(), content_type="text/javascript; charset=utf-8")
        sent.headers["Cache-Control"] = "private, max-age=31536000, immutable"
        return sent

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

    @server.get("/data/run/<path:run>/report.html")
    def report(run: str) -> flask.Response:
        return _attached(page(store.recording(run)), f"{run}.html", "text/html")

    @server.get("/data/run/<path:run>/file/<name>")
    def file(run: str, name: str) -> flask.Response:
        place = store.place(run)
        path = place / name
        if path.is_symlink() or not path.is_file() or not name.endswith(SUFFIXES) or path.parent.resolve() != place:
            return _missing("file", name)
        return flask.send_file(path, as_attachment=True, download_name=name, mimetype="application/octet-stream")

    @server.errorhandler(MqttlabError)
    def refused(error: MqttlabError) -> flask.Response:
        return flask.Response("\n".join(error.problems) + "\n", 404, content_type="text/plain; charset=utf-8")


def _range() -> run_figures.Range:
    try:
        return float(flask.request.args["from"]), float(flask.request.args["to"])
    except (KeyError, ValueError):
        return None


def _missing(what: str, name: str) -> flask.Response:
    return flask.Response(f"There is no {what} {name!r} here.\n", 404, content_type="text/plain; charset=utf-8")


def _csv(table: pl.DataFrame, name: str) -> flask.Response:
    return _attached(table.write_csv(), name, "text/csv")


def _attached(text: str, name: str, kind: str) -> flask.Response:
    return flask.Response(text, content_type=f"{kind}; charset=utf-8", headers={
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name.replace('/', '-'), safe='')}"})
