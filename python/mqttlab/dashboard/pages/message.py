"""One message: where its time went, and the ladder of the frames that carried it or decided its fate."""

from __future__ import annotations

import base64

import polars as pl
from dash import html

from mqttlab.dashboard.panels import Content, Head, address, link, notice, written_table
from mqttlab.digits import whole
from mqttlab.explanation import Story, cause, head, ladder, parts_table, tell
from mqttlab.explanation.diagram import Ladder
from mqttlab.metrics import attribution_gap, evidence
from mqttlab.metrics.attribution import explainable
from mqttlab.recording import Recording

# What is lost of an instant where a figure has it in seconds.
ROUNDED_NS = 500
UNKNOWN = "No delivery of this name has evidence of where its time went: it was not delivered, or is not recorded."


def part(recording: Recording, run: str, query: dict[str, str]) -> Content:
    """The story of the message that the address names: ``publisher:sequence@subscriber``, by number; or of the one that
    a point of the figure of latencies is, by its place there (``at`` in s, ``latency`` in ms)."""
    back = html.P(link("All messages", address(f"/run/{run}", part="recent")), className="crumbs")
    named = query.get("message") or _at(recording, query.get("at", ""), query.get("latency", ""))
    story = _story(recording, named)
    if story is None:
        gap = attribution_gap(recording)
        return [back, notice("note", "This message cannot be explained.", [gap or UNKNOWN])]
    diagram = Ladder(story)
    picture = base64.b64encode(diagram.draw().encode()).decode()
    heads = [Head("part", text=True), Head("time"), Head("share")]
    return [
        back,
        html.Section([
            html.H2(head(story)), html.P(cause(story), className="cause"),
            written_table("Where the time went", heads, parts_table(story)),
        ], className="panel"),
        html.Section([
            html.H2("Ladder"),
            # An image cannot run anything, whatever its words are.
            html.Div(html.Img(src=f"data:image/svg+xml;base64,{picture}", alt=f"Ladder diagram. {cause(story)}",
                              className="ladder", style={"maxWidth": f"{diagram.width:.0f}px",
                                                         "minWidth": f"{diagram.smallest:.0f}px"}),
                     className="scroll", tabIndex=0, role="region", **{"aria-label": "Ladder diagram"}),
            html.P(html.A("Its connections while it was under way, as a capture for Wireshark", download="", href=(
                address(f"/data/run/{run}/capture.pcapng", message=named)))),
            html.Details([html.Summary("The ladder as text"), html.Pre("\n".join(ladder(story)), tabIndex=0)]),
        ], className="panel"),
    ]


def message_numbers(named: str) -> tuple[int, int, int] | None:
    """Publisher, sequence and subscriber of ``publisher:sequence@subscriber``; ``None`` for any other text."""
    first, _, subscriber = named.partition("@")
    publisher, _, sequence = first.partition(":")
    numbers = whole(publisher), whole(sequence), whole(subscriber)
    return None if None in numbers else numbers  # type: ignore[return-value]


def _at(recording: Recording, at_s: str, latency_ms: str) -> str:
    """The name of the message that was to be sent at this run time and took so long; empty where there is none."""
    try:
        at, latency = float(at_s) * 1e9, float(latency_ms) * 1e6
    except ValueError:
        return ""
    if not {"intended_ns", "latency_ns"} <= set(recording.scan("messages").collect_schema()):
        return ""

    def near(column: str, value: float) -> pl.Expr:
        return (pl.col(column).cast(pl.Float64) - value).abs() <= ROUNDED_NS

    found = recording.collect(recording.scan("messages").filter(
        near("intended_ns", at), near("latency_ns", latency), pl.col("subscriber").is_not_null(),
    ).select("publisher", "sequence", "subscriber").head(1))
    return "" if found.is_empty() else "{}:{}@{}".format(*found.row(0))


def _story(recording: Recording, named: str) -> Story | None:
    numbers = message_numbers(named)
    if attribution_gap(recording) is not None or numbers is None:
        return None
    wanted = explainable(recording).filter(*(
        pl.col(name) == number for name, number in zip(("publisher", "sequence", "subscriber"), numbers, strict=True)))
    legs = recording.collect(wanted.select("leg").head(1))["leg"].to_list()
    return tell(recording, evidence(recording, legs), legs[0]) if legs else None
