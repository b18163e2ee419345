"""The dashboard's server: Flask under Dash, with the guard before both."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import dash
import flask
from dash import ClientsideFunction, Input, Output, State, html
from dash.exceptions import DependencyException
from flask.json.provider import DefaultJSONProvider

from mqttlab.dashboard import panels, run_annotations
from mqttlab.dashboard.access import Access
from mqttlab.dashboard.actions import Actions
from mqttlab.dashboard.address import AddressError, Listen
from mqttlab.dashboard.comparisons import SIDES, Comparisons
from mqttlab.dashboard.configure.forms import forms
from mqttlab.dashboard.connections import Server
from mqttlab.dashboard.downloads import routes
from mqttlab.dashboard.experiment_figures import Analyses
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.legible import legible
from mqttlab.dashboard.pages import captures, compare, configure, doctor, experiments, live, run, runs, studies
from mqttlab.dashboard.pages import map as map_page
from mqttlab.dashboard.pages.shell import shell
from mqttlab.dashboard.store import Store
from mqttlab.dashboard.uploads import Uploads
from mqttlab.dashboard.watch import Watch
from mqttlab.errors import MqttlabError
from mqttlab.experiments import find_experiments
from mqttlab.studies.catalogue import known

ASSETS = Path(__file__).parent / "assets"
INDEX = """<!DOCTYPE html>
<html lang="en"><head>{%metas%}<title>{%title%}</title>{%favicon%}{%css%}</head>
<body>{%app_entry%}<footer>{%config%}{%scripts%}{%renderer%}</footer></body></html>"""
PAGES = (("/", "Runs"), ("/experiments", "Experiments"), ("/compare", "Compare"), ("/configure", "Configure"),
         ("/live", "Live"), ("/map", "Map"), ("/studies", "Studies"), ("/captures", "Captures"), ("/doctor", "Doctor"))
# Dash answers every address that nothing else answers with its page, in which the browser then shows one of ours.
ANY_PAGE = "/<path:path>"
KEPT = ("/configure", "/live", "/doctor", "/captures")
log = logging.getLogger(__name__)


class Json(DefaultJSONProvider):
    """JSON of browsers. What is nested too deeply is no JSON to us, as what cannot be parsed is none: status 400."""

    def loads(self, s: str | bytes, **kwargs: Any) -> Any:
        """The value of a text.

        Raises:
            ValueError: it is not JSON, or is nested too deeply.
        """
        try:
            return super().loads(s, **kwargs)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


class Dashboard:
    """A dashboard of the runs below a directory, ready to serve."""

    def __init__(self, runs_directory: Path, listen: Listen, secret: str, queue: Path | None = None,
                 catalog: str | None = None) -> None:
        """Make it; nothing listens yet.

        Args:
            runs_directory: whose recordings it shows, and where runs that are started in it go.
            listen: where it listens.
            secret: what lets a browser in.
            queue: the directory of the queue that performs runs; the user's own when left out.
            catalog: the URL of the catalog, or ``none``; when left out ``catalog.db`` in the directory of the runs.

        Raises:
            AddressError: nothing can listen there.
        """
        self.store = Store(runs_directory, catalog)
        self.flask = flask.Flask("mqttlab.dashboard", static_folder=None)
        self.flask.json = Json(self.flask)
        try:
            # Port 0 is known as another from here on.
            self._server = Server(self.flask, listen.host, listen.port, lambda fields: self.access.knows(fields))
        except OSError as error:
            raise AddressError(f"--listen {listen.host}:{listen.port}: {error.strerror or error}; --listen "
                               f"{listen.host}:0 takes a port that is free") from error
        self.listen = Listen(host=listen.host, port=int(self._server.effective_port), names=listen.names)
        self.access = Access(self.listen, secret)
        self.access.guard(self.flask)
        self.flask.after_request(legible)
        self.jobs = Jobs(self.store.directory, queue, catalog)
        self.watch = Watch(self.jobs)
        self.actions = Actions(self.jobs, self.store)
        self.uploads = Uploads(self.jobs)
        self.analyses = Analyses(self.store)
        self.comparisons = Comparisons(self.store)
        routes(self.flask, self.store, self.jobs, self.watch, self.uploads, self.analyses, self.comparisons)
        self.dash = self._pages()
        self._missing()
        self.access.script_hashes = self.dash.csp_hashes()
        self._secret = secret
        self._first_request()

    @property
    def url(self) -> str:
        """The address that opens it."""
        return f"http://{self.listen.shown}:{self.listen.port}/?token={self._secret}"

    def serve(self) -> None:
        """Serve until Ctrl-C, or :meth:`end` from another thread."""
        # Who opens the printed address shall not wait for thousands of runs to be read.
        threading.Thread(target=self.store.runs, daemon=True).start()
        self._server.run()

    def end(self) -> None:
        """End it, from any thread."""
        threading.Thread(target=self._server.close, daemon=True).start()

    def _first_request(self) -> None:
        """Have the pages put together before anybody asks.

        Dash does so at its first request, and whoever asks meanwhile gets a page without some of its scripts: a browser
        whose dashboard was killed and started again does, with the looks of its old page.
        """
        with self.flask.test_client() as client:
            client.get(f"/?token={self._secret}", base_url=f"http://{self.listen.shown}:{self.listen.port}",
                       follow_redirects=True)

    def _pages(self) -> dash.Dash:
        app = dash.Dash(
            "mqttlab.dashboard", server=self.flask, assets_folder=str(ASSETS), index_string=INDEX, title="mqttlab",
            update_title="", suppress_callback_exceptions=True, serve_locally=True, enable_mcp=False,
            meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"},
                       {"name": "color-scheme", "content": "light dark"}])
        app.layout = shell(PAGES)
        _browser_callbacks(app)
        self._page_callbacks(app)
        forms(app, self.store, self.jobs, self.watch, self.actions)
        self._lists(app)
        self._selections(app)
        return app

    def _missing(self) -> None:
        """Say of addresses at which there is nothing that there is none."""
        @self.flask.after_request
        def page_status(answer: flask.Response) -> flask.Response:
            request = flask.request
            if request.endpoint == ANY_PAGE and answer.status_code == 200 and not self._is_page(request.path):
                answer.status_code = 404
            return answer

        @self.flask.errorhandler(DependencyException)
        def no_component(_error: DependencyException) -> flask.Response:
            return flask.Response("There is no such file.\n", 404, content_type="text/plain; charset=utf-8")

    def _is_page(self, path: str) -> bool:
        """Whether there is a page at an address; it may still be one that says why it cannot be shown."""
        kind, _, name = path.lstrip("/").partition("/")
        try:
            if kind == "run" and name:
                return self.store.place(name).is_dir()
        except MqttlabError:
            return False
        if kind == "experiment" and name:
            return name in {directory.name for directory in find_experiments(self.store.directory)}
        if kind == "study" and name:
            return name in known()
        return path in dict(PAGES)

    def _page_callbacks(self, app: dash.Dash) -> None:
        @app.callback(Output("page", "children"), Output("typed", "data"), Input("location", "pathname"),
                      Input("location", "search"), Input("done", "data"), State("typed", "data"))
        def show_page(path: str | None, search: str | None, _done: Any, typed: str | None) -> Any:
            # What a button has done shows, but nobody's text is taken away for that, and Live looks by itself.
            if dash.ctx.triggered_id == "done" and (path or "/").startswith(KEPT):
                return dash.no_update, dash.no_update
            # Rows have followed each letter, and follow_search does the rest: nobody's table goes while he types.
            if dash.ctx.triggered_id == "location" and (path or "/") == "/" and typed == (search or ""):
                return dash.no_update, dash.no_update
            return self.page(path or "/", _query(search)), None

        @app.callback(Output("runs-grid", "getRowsResponse"), Output("runs-count", "children"),
                      Input("runs-grid", "getRowsRequest"), State("runs-search", "value"),
                      State("location", "search"), prevent_initial_call=True)
        def give_rows(request: dict[str, Any] | None, search: str | None, where: str | None) -> Any:
            if request is None:
                return dash.no_update, dash.no_update
            query = {**_query(where), "search": search or ""}
            found = runs.rows(runs.selected(self.store.runs(), query), request, query)
            return found, f"{found['rowCount']} shown"

    def _selections(self, app: dash.Dash) -> None:
        @app.callback(Output("runs-figures", "children"), Output("runs-selected", "children"),
                      Input("runs-grid", "selectedRows"), Input("runs-x", "value"), Input("runs-y", "value"),
                      Input("runs-colour", "value"), Input("runs-typed", "data"), State("location", "search"),
                      prevent_initial_call=True)
        def draw_selected(rows: Any, x: str | None, y: str | None, colour: str | None, typed: str | None,
                          search: str | None) -> Any:
            names = [name for row in rows or () if isinstance(row, dict) and "run" in row
                     for name in row.get("runs") or [row["run"]]]
            words = f"{len(names)} selected." if names else "No run is selected."
            axes = {"x": x or "", "y": y or "", "colour": colour or ""}
            return runs.figures_of(names, _query(search if typed is None else typed), axes), words

        @app.callback(Output("runs-columns", "children"), Output("runs-shown-as", "children"),
                      Output("runs-groups", "children"), Output("runs-first-side", "children"),
                      Output("runs-grid", "columnDefs"), Input("runs-typed", "data"),
                      State("runs-grid", "columnDefs"), prevent_initial_call=True)
        def follow_search(typed: str | None, before: list[dict[str, Any]]) -> Any:
            *around, columns = runs.follow(self.store, _query(typed))
            return *around, dash.no_update if runs.alike(columns, before) else columns

    def _scenario(self, query: dict[str, str]) -> str | None:
        """The scenario to begin with: that of the address, or of a run that it names."""
        if "scenario" in query:
            return configure.unpacked(query["scenario"])
        return run_annotations.scenario_of(self.store, query["run"])[0] if "run" in query else None

    def _lists(self, app: dash.Dash) -> None:
        @app.callback(Output("captures-list", "children"), Input("captures-tick", "n_intervals"),
                      prevent_initial_call=True)
        def list_captures(_beat: int | None) -> Any:
            return captures.listed(self.uploads, self.store)

    def page(self, path: str, query: dict[str, str]) -> Any:
        """What stands on the page of an address; a page that says so where there is none, or it cannot be shown."""
        try:
            if path == "/":
                return runs.page(self.store, query, live.standing(self.jobs, self.watch))
            if path == "/compare":
                return compare.page(self.store, self.comparisons, query)
            if path == "/map":
                return map_page.page(self.store, query)
            simple = {
                "/configure": lambda: configure.page(self.jobs, self._scenario(query)),
                "/experiments": lambda: experiments.page(self.store), "/studies": studies.page,
                "/captures": lambda: captures.page(self.uploads, self.store),
                "/live": lambda: live.page(self.store, self.jobs, self.watch), "/doctor": doctor.page,
            }
            if path in simple:
                return simple[path]()
            if path.startswith("/experiment/"):
                return experiments.one(self.store, path.removeprefix("/experiment/"), self.analyses)
            if path.startswith("/study/"):
                return studies.one(self.store, path.removeprefix("/study/"))
            if path.startswith("/run/"):
                return run.page(self.store, path.removeprefix("/run/"), query)
        except MqttlabError as error:
            return html.Div([html.H1("This cannot be shown"), panels.notice("problem", "", error.problems)])
        except Exception:
            log.exception("the page %s failed", path)
            return html.Div([html.H1("This page has failed"), panels.notice(
                "problem", "That is a fault of mqttlab: the terminal of the dashboard has its traceback.")])
        return html.Div([html.H1("No such page"), html.P(panels.link("To the runs", "/"))])


def _query(search: str | None) -> dict[str, str]:
    return dict(parse_qsl((search or "").removeprefix("?")))


def _browser_callbacks(app: dash.Dash) -> None:
    """What the browser does alone (assets/b-dashboard.js)."""
    def here(name: str) -> ClientsideFunction:
        return ClientsideFunction(namespace="mqttlab", function_name=name)

    app.clientside_callback(here("theme"), Output("theme", "data"), Input("toggle-theme", "n_clicks"),
                            State("theme", "data"))
    app.clientside_callback(
        here("searchRuns"), Output("status", "title"), Input("runs-search", "value"), prevent_initial_call=True)
    app.clientside_callback(
        here("chooseSides"), Output("location", "search", allow_duplicate=True), *(
            Input(f"compare-{side}{of}", "value") for side in SIDES for of in ("", "-search")),
        State("location", "search"), prevent_initial_call=True)
    app.clientside_callback(
        here("groupRuns"), Output("location", "search", allow_duplicate=True), Input("runs-group", "value"),
        Input("runs-pin", "value"), prevent_initial_call=True)
    app.clientside_callback(
        here("keepTable"), Output("runs-typed", "modified_timestamp"), Input("runs-grid", "getRowsRequest"),
        Input("runs-x", "value"), Input("runs-y", "value"), Input("runs-colour", "value"), prevent_initial_call=True)
    app.clientside_callback(here("keepSelection"), Output("done", "modified_timestamp"),
                            Input("runs-grid", "selectedRows"), prevent_initial_call=True)
    app.clientside_callback(
        here("chooseRun"), Output("location", "search", allow_duplicate=True), Input("map-run", "value"),
        State("location", "search"), prevent_initial_call=True)
    app.clientside_callback(here("keepScenario"), Output("started", "title"), Input("draft-address", "data"),
                            prevent_initial_call=True)
    app.clientside_callback(
        here("searchMessages"), Output("location", "search", allow_duplicate=True), Input("message-topic", "value"),
        Input("message-client", "value"), State("location", "search"),
        prevent_initial_call=True)
