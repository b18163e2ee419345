"""Instant: a simulated run stopped at a time of its own, and looked into; then on to the next event, or played."""

from __future__ import annotations

from typing import Any

from dash import html

from mqttlab.dashboard.panels import Content, Head, address, facts, link, notice, written_table
from mqttlab.digits import duration
from mqttlab.errors import MqttlabError
from mqttlab.recording import Recording
from mqttlab.report.text import number
from mqttlab.runs.instant import state_at

ROWS = 200
TIMEOUT_S = 20.0
CLIENT_HEADS = (Head("host", text=True), Head("client", text=True), Head("connection", text=True),
                Head("online", text=True), Head("unacknowledged"), Head("unsent"), Head("unwritten"), Head("held"))
SESSION_HEADS = (Head("server", text=True), Head("session of", text=True), Head("connected", text=True),
                 Head("subscriptions"), Head("in flight"), Head("window"), Head("waiting"), Head("held"))
SOCKET_HEADS = (Head("connection"), Head("host", text=True), Head("client", text=True), Head("end", text=True),
                Head("state", text=True), Head("recovery", text=True), Head("congestion window"), Head("threshold"),
                Head("in flight"), Head("unacknowledged", unit="B"), Head("round trip", text=True),
                Head("time-out", text=True), Head("next timer", unit="s"), Head("unwritten", unit="B"),
                Head("unread", unit="B"))


def part(recording: Recording, run: str, query: dict[str, str]) -> Content:
    """The state at the instant that the address names; of the middle of the measurement where it names none."""
    if recording.plan.get("backend") != "sim":
        return [notice("note", "Only a simulated run can be stopped and looked into: a live one is over.")]
    at = _asked(recording, query)
    try:
        state = state_at(recording.plan, at, timeout_s=TIMEOUT_S)
    except MqttlabError as error:
        return [_steps(run, at, None), notice("problem", "The run could not be stopped there.", error.problems)]
    names = [str(server["name"]) for server in recording.plan.get("servers") or ()]
    # What a run that is over still had to do is done by nobody.
    next_ns = None if state["phase"] == "over" else state.get("next_event_at_ns")
    return [_steps(run, at, next_ns), _counts(state), *_tables(state, names)]


def _asked(recording: Recording, query: dict[str, str]) -> float:
    try:
        asked = float(query["at"])
        if 0 <= asked < 1e9:
            return asked
    except (KeyError, ValueError):
        pass
    measured = recording.layout.get("measurement_end_ns") or 2e9
    return round(float(measured) / 2e9, 6)


def _steps(run: str, at: float, next_ns: Any) -> html.Div:
    """Where to look next. All of it is in the address."""
    def to(seconds: float, words: str) -> html.A:
        return link(words, address(f"/run/{run}", part="instant", at=f"{max(0.0, seconds):.9f}"), className=(
            "page-link button"))

    steps = [to(at - 1, "1 s back"), to(at - 0.01, "10 ms back"), to(at + 0.01, "10 ms on"), to(at + 1, "1 s on")]
    if isinstance(next_ns, int):
        steps.insert(2, to(next_ns / 1e9, "To the next event"))
    told = {"data-run": address(f"/run/{run}"), "data-at": f"{at:.9f}"}
    next_s = f"{next_ns / 1e9:.9f}" if isinstance(next_ns, int) else ""
    return html.Div([
        html.Label("Run time (s)", htmlFor="instant-at"), html.Span(className="instant-place", **told),
        html.Span(className="instant-play", **told, **{"data-next": next_s}), *steps], className="form-row")


def _counts(state: dict[str, Any]) -> html.Dl:
    next_ns = state.get("next_event_at_ns")
    rows = [("run time", f"{state['at_ns'] / 1e9:.9f} s"), ("phase", str(state["phase"]).replace("_", " ")),
            ("events so far", number(state["events"])),
            ("next event", "none" if next_ns is None else f"after {duration(next_ns - state['at_ns'])}")]
    rows += [(f"frames {name.replace('_', ' ')}", number(count)) for name, count in state["frames"].items()]
    rows += [(name.replace("_", " "), number(count)) for name, count in state["counts"].items()]
    return facts(rows)


def _tables(state: dict[str, Any], names: list[str]) -> Content:
    hosts = state["hosts"]

    def name(server: int) -> str:
        return names[server] if server < len(names) else str(server)

    queues = [[link_["link"], link_["queue_frames"], link_["queue_bytes"]] for link_ in state["links"]]
    clients = [[host["host"], one["client"], _when(one), _yes(one["online"]), one["unacknowledged"], one["unsent"],
                one["unwritten"], one["held"]] for host in hosts for one in host["clients"]]
    servers = [[host["host"], name(one["server"]), one["inbox"], one["outbox"], _until(one.get("busy_until_ns"))]
               for host in hosts for one in host["servers"]]
    sessions = [[name(one["server"]), each["client"], _yes(each["connected"]), each["subscriptions"], each["in_flight"],
                 each["window"], each["waiting"], each["held"]]
                for host in hosts for one in host["servers"] for each in one["sessions"]]
    sockets = [[one["connection"], host["host"], one["client"], one["side"], one["state"], one["recovery"],
                one["congestion_window"], one["slow_start_threshold"], one["in_flight"], one["unacknowledged_bytes"],
                duration(one["srtt_ns"]), duration(one["rto_ns"]), _until(one["next_timer_at_ns"]),
                one["unwritten_bytes"], one["unread_bytes"]] for host in hosts for one in host["sockets"]]
    server_heads = (Head("host", text=True), Head("server", text=True), Head("read, not served"),
                    Head("served, not written"), Head("busy until", unit="s"))
    link_heads = (Head("link", text=True), Head("waiting", unit="frames"), Head("waiting", unit="B"))
    return [_panel(title, heads, rows) for title, heads, rows in (
        ("Queues of links", link_heads, queues), ("Clients and their sessions", CLIENT_HEADS, clients),
        ("Servers", server_heads, servers), ("Sessions at servers", SESSION_HEADS, sessions),
        ("TCP sockets", SOCKET_HEADS, sockets)) if rows]


def _panel(title: str, heads: tuple[Head, ...], rows: list[list[Any]]) -> html.Section:
    cut = html.P(f"The first {ROWS} of {number(len(rows))}.") if len(rows) > ROWS else None
    return html.Section([html.H2(title), cut, written_table(title, heads, rows[:ROWS])], className="panel")


def _when(client: dict[str, Any]) -> str:
    at = client.get("next_attempt_at_ns")
    return str(client["connection"]) + (f" until {at / 1e9:.6f} s" if at is not None else "")


def _until(at: Any) -> str | None:
    return f"{at / 1e9:.6f}" if isinstance(at, int) else None


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
