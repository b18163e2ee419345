"""Captures: drop what somebody else has captured or logged, and see it as a recording; imports by commands beside."""

from __future__ import annotations

import polars as pl
from dash import dcc, html

from mqttlab.dashboard.panels import Act, Content, Head, Link, address, link, written_table
from mqttlab.dashboard.store import Store
from mqttlab.dashboard.uploads import Uploads
from mqttlab.digits import plain
from mqttlab.plurals import counted
from mqttlab.queue.client import Driver

EVERY_MS = 1000
LOG_LETTERS = 300
WORDS = {0: "done", 3: "incomplete: the file ends early or is damaged", 6: "not valid: the evidence is not whole"}
VERDICTS = {"valid": WORDS[0], "incomplete": WORDS[3], "not valid": WORDS[6]}
BY_COMMANDS_MAX = 100
HEADS = (Head("file or name", text=True), Head("state", text=True), Head("recording", text=True),
         Head("what it said", text=True), Head("", text=True))


def page(uploads: Uploads, store: Store) -> html.Div:
    """The page; the list is renewed while it is open."""
    return html.Div([
        html.H1("Captures"),
        html.P("A capture (pcapng, pcap) or a log (.log, .csv), packed or not, of up to "
               f"{plain(uploads.bytes_max / 1e9)} GB. The queue imports it, not beside a live run; it stays here.",
               className="lead"),
        html.Section([
            # The browser makes the field (assets/a-captures.js) and sends the file in parts.
            html.Div(className="drop-place", **{"data-bytes": str(uploads.bytes_max)}),
            html.Div(className="drop-words", role="status"),
        ], className="panel"),
        dcc.Interval(id="captures-tick", interval=EVERY_MS),
        html.Section([html.H2("Imports"), html.Div(listed(uploads, store), id="captures-list")], className="panel"),
    ])


def listed(uploads: Uploads, store: Store) -> Content:
    """The imports, the latest first: those that were dropped here, then those that a command has made."""
    drivers = uploads.imports()
    rows = [_row(uploads, driver) for driver in drivers]
    dropped = [run for driver in drivers if (run := uploads.run_of(driver)) is not None]
    others = store.runs().filter(pl.col("backend") == "import", ~pl.col("run").is_in(dropped))
    rows += [[run["name"], VERDICTS.get(run["verdict"], run["verdict"]),
              Link(run["run"], address(f"/run/{run['run']}")), "imported by a command", ""]
             for run in others.head(BY_COMMANDS_MAX).iter_rows(named=True)]
    left = others.height - BY_COMMANDS_MAX
    more = [html.P([f"{counted(left, 'more import')}: ", link("Runs", address("/", search="backend=import"))])] if (
        left > 0) else []
    return [written_table("Imports", HEADS, rows, wraps=True) if rows else html.P(
        "Nothing has been imported here yet."), *more]


def _row(uploads: Uploads, driver: Driver) -> list[object]:
    run = uploads.run_of(driver)
    name = driver.command[2].rsplit("/", 1)[-1]
    ended = driver.state not in ("pending", "running")
    state = WORDS.get(driver.status if driver.status is not None else -1, "failed") if driver.state == "done" else (
        "waiting" if driver.state == "pending" else driver.state)
    said = _said(driver) if state == "failed" else ""
    return [name, state, Link(run, address(f"/run/{run}")) if run and ended else "", said,
            "" if ended else Act("Cancel", "cancel", driver.identifier, f"Cancel the import of {name}")]


def _said(driver: Driver) -> str:
    """The end of what a command has printed."""
    try:
        return driver.log.read_text(encoding="utf-8", errors="replace").strip()[-LOG_LETTERS:]
    except OSError:
        return ""
