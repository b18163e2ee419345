"""Message by message: what each subscriber got, the latest or the slowest first, by topic, client and fate."""

from __future__ import annotations

from typing import Any

import polars as pl
from dash import dcc, html

from mqttlab.dashboard import payloads
from mqttlab.dashboard.panels import Carried, Content, Head, Link, address, link, notice, written_table
from mqttlab.metrics import attribution_gap, fates
from mqttlab.recording import Recording, looked_up
from mqttlab.report.text import number

SHOWN = 100
COLUMNS = ("publisher", "sequence", "subscriber", "topic", "qos", "payload_bytes", "intended_ns", "received_ns",
           "latency_ns", "fate", "cause")


ORDERS = {"": pl.coalesce("received_ns", "intended_ns"), "slowest": pl.col("latency_ns")}
"""What stands first, by what an address calls it: the latest when it says nothing."""


def part(recording: Recording, run: str, query: dict[str, str]) -> Content:
    """The filter and the table."""
    count = recording.rows("messages")
    if not count:
        return [notice("note", "No message was recorded.")]
    names = recording.layout["clients"].names
    fates = recording.derived("fates", _fates)["fate"].to_list()
    # Of millions those that are shown are held.
    found = chosen(recording.scan("messages"), names, query)
    height = recording.collect(found.select(pl.len())).item()
    order = query.get("order", "") if query.get("order") in ORDERS else ""
    by = ORDERS[order]
    # Of those without a latency none is slow.
    ranked = found if not order else found.filter(pl.col("latency_ns").is_not_null())
    shown = recording.collect(ranked.select(COLUMNS).top_k(SHOWN, by=by).sort(by, descending=True, nulls_last=True))
    # A story needs frames; what clients know of their packets is not enough for one.
    explained = attribution_gap(recording) is None and recording.rows("packets") > 0
    shown = payloads.found(recording, shown)
    words = f"{number(height)} of {number(count)} messages and receivers"
    words += f", the {order or 'latest'} {SHOWN} of them." if height > SHOWN else "."
    kept = recording.rows("payloads") > 0
    if not kept:
        words += " What they carried was not kept; recording.payloads keeps it."
    return [
        html.Div([
            _field("Topic", dcc.Input(id="message-topic", type="search", value=query.get("topic", ""), debounce=0.3)),
            _field("Client", dcc.Input(id="message-client", type="search", value=query.get("client", ""),
                                       debounce=0.3)),
            html.Nav([html.Span("Fate "), *(_fate(run, query, fate) for fate in ("", *fates))], className="choices",
                     **{"aria-label": "Fate"}),
            html.Nav([html.Span("First "), *(link(f"the {name or 'latest'}", address(
                f"/run/{run}", **{**query, "order": name}), **({"aria-current": "true"} if name == order else {}))
                for name in ORDERS)], className="choices", **{"aria-label": "Order"}),
        ], className="form-row"),
        html.P(words, role="status"),
        html.Section(written_table(f"The {order or 'latest'} messages", HEADS if kept else HEADS[:-1], [
            [*_row(run, row, names, explained), *([_carried(recording, run, row)] if kept else [])]
            for row in shown.iter_rows(named=True)]), className="panel"),
        html.Section([html.H2("Subscribers"), written_table("Subscribers", NODE_HEADS, _nodes(run, recording, names))],
                     className="panel"),
    ]


def _carried(recording: Recording, run: str, row: dict[str, Any]) -> Carried | str:
    """What a message carried, where that was kept."""
    if row["payload"] is None:
        return ""
    told = payloads.shown(recording.payload(row["start_bytes"], row["kept_bytes"]), row["payload_bytes"])
    number = row["payload"]
    return Carried(told.kind, told.text, address(f"/data/run/{run}/payload/{number}.bin"),
                   address(f"/data/run/{run}/picture/{number}") if told.picture else "")


def _fates(recording: Recording) -> pl.DataFrame:
    return recording.collect(recording.scan("messages").select(pl.col("fate").drop_nulls().unique().sort()))


def _by_subscriber(recording: Recording) -> pl.DataFrame:
    """What each subscriber got, and what of it last."""
    of_subscribers = recording.scan("messages").filter(pl.col("subscriber").is_not_null())
    return recording.collect(of_subscribers.group_by("subscriber").agg(
        delivered=(pl.col("fate") == "delivered").sum(), others=(pl.col("fate") != "delivered").sum(),
        received_ns=pl.col("received_ns").max(), topic=pl.col("topic").max_by("received_ns")))


def _nodes(run: str, recording: Recording, names: pl.Series) -> list[list[Any]]:
    """Each subscriber with what it got last; those that got something last first."""
    found = recording.derived("messages by subscriber", _by_subscriber).sort(
        "received_ns", "subscriber", descending=[True, False], nulls_last=True)
    rows: list[list[Any]] = []
    for row in found.head(NODES_SHOWN).iter_rows(named=True):
        name = names[row["subscriber"]] if row["subscriber"] < len(names) else str(row["subscriber"])
        rows.append([Link(name, address(f"/run/{run}", part="recent", client=name), f"messages of {name}"),
                     row["delivered"], row["others"],
                     None if row["received_ns"] is None else f"{row['received_ns'] / 1e9:.3f}", str(row["topic"])])
    return rows


def chosen(messages: pl.LazyFrame, names: pl.Series, query: dict[str, str]) -> pl.LazyFrame:
    """The messages that an address asks for."""
    if topic := query.get("topic"):
        messages = messages.filter(pl.col("topic").cast(pl.String).str.contains(topic, literal=True))
    if client := query.get("client"):
        is_one = names.str.contains(client, literal=True)
        messages = messages.filter(looked_up("publisher", is_one) | looked_up("subscriber", is_one))
    if fate := query.get("fate"):
        messages = messages.filter(pl.col("fate") == fate)
    return messages


def _fate(run: str, query: dict[str, str], fate: str) -> html.A:
    """A link to the messages of this fate; of any where it is empty."""
    current = {"aria-current": "true"} if query.get("fate", "") == fate else {}
    return link(fate.replace("_", " ") or "any", address(f"/run/{run}", **{**query, "fate": fate}), **current)


def _field(label: str, field: Any) -> html.Div:
    return html.Div([html.Label(label, htmlFor=field.id), field], className="field")


HEADS = (Head("received", unit="s"), Head("topic", text=True), Head("from", text=True), Head("to", text=True),
         Head("QoS"), Head("size", unit="B"), Head("latency", unit="ms"), Head("fate", text=True),
         Head("explanation", text=True), Head("payload", text=True))
NODE_HEADS = (Head("subscriber", text=True), Head("delivered"), Head("lost or other"), Head("last received", unit="s"),
              Head("last topic", text=True))
NODES_SHOWN = 200


def _row(run: str, row: dict[str, Any], names: pl.Series, explained: bool) -> list[Any]:
    def name(index: Any) -> str:
        return names[index] if isinstance(index, int) and index < len(names) else "–"

    received, latency = row.get("received_ns"), row.get("latency_ns")
    to = address(f"/run/{run}", part="message", message=f"{row['publisher']}:{row['sequence']}@{row['subscriber']}")
    fate = fates.in_words(str(row["fate"]), row.get("cause"))
    ladder = Link("ladder", to, f"ladder of message {row['sequence']} of {name(row['publisher'])}")
    return [
        None if received is None else f"{received / 1e9:.3f}", str(row.get("topic")), name(row["publisher"]),
        name(row["subscriber"]), row.get("qos"), row.get("payload_bytes"),
        None if latency is None else f"{latency / 1e6:.3f}", fate, ladder if explained and latency is not None else "",
    ]
