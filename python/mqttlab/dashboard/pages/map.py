"""Map: a run's nodes where they are, while its time passes."""

from __future__ import annotations

from dash import dcc, html

from mqttlab.dashboard import maps
from mqttlab.dashboard.panels import Content, Head, address, link, notice, written_table
from mqttlab.dashboard.store import Store
from mqttlab.digits import plain
from mqttlab.recording import Recording

ROWS = 200
# The latest; a run of long ago has its map on its own page.
NAMES_OFFERED = 1000
NODE_HEADS = (Head("node", text=True), Head("is", text=True), Head("place", text=True), Head("has", text=True))


def page(store: Store, query: dict[str, str]) -> html.Div:
    """The page: which run, and its map.

    Raises:
        UnknownRun: there is none of this name.
    """
    names = store.runs()["run"].to_list()
    run = query.get("run") or (names[0] if names else "")
    if not run:
        return html.Div([html.H1("Map"), notice("note", f"There are no recordings in {store.directory} yet.")])
    return html.Div([
        html.H1("Map"),
        html.Div([html.Label("Run", htmlFor="map-run"), dcc.Dropdown(
            id="map-run", value=run, options=[*dict.fromkeys([run, *names[:NAMES_OFFERED]])], clearable=False,
            className="run-choice"),
            link("The run", address(f"/run/{run}"))], className="form-row"),
        *part(store.recording(run), run),
    ])


def part(recording: Recording, run: str) -> Content:
    """The map of a run with what moves it, and its nodes as a table."""
    told = maps.told(recording)
    return [
        html.P(told["words"], className="lead"),
        html.Section([
            # The browser builds what moves it (assets/d-map.js): nothing of it asks the server.
            html.Div(className="map-controls form-row"),
            html.Div(className="map-place", **{
                "aria-label": f"Map of {recording.name}: arrow keys move it, plus and minus zoom",
                "data-source": address(f"/data/run/{run}/map.json")}),
            html.P(className="map-words", role="status"),
        ], className="panel map-panel"),
        html.Section([html.H2("Nodes"), written_table("Nodes", NODE_HEADS, _rows(told), wraps=True),
                      html.P(f"The first {ROWS} of {len(told['nodes'])}.") if len(told["nodes"]) > ROWS else None],
                     className="panel"),
    ]


def _rows(told: dict[str, object]) -> list[list[str]]:
    units = {"geographic": "°", "plane": " m"}.get(str(told["kind"]))
    rows = []
    nodes = told["nodes"]
    assert isinstance(nodes, list)
    for node in nodes[:ROWS]:
        path = node["path"]
        if units is None:
            place = "–"
        elif not path:
            place = "not known"
        else:
            x, y = path[0][1:]
            place = f"{plain(x)}{units}, {plain(y)}{units}" + (
                ", moves" if len({(px, py) for _, px, py in path}) > 1 else "")
        rows.append([node["name"], node["role"], place, node["words"]])
    return rows
