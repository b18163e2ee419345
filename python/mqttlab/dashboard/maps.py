"""A run as a map: nodes at their places while time passes, links by their use and loss, messages as they go.

Where the recording has no places the topology is drawn. What stands here is counted from the recording's tables, cut to
what a screen can show; how much of it is left out is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from mqttlab import metrics
from mqttlab.dashboard.topology import Topology, servers_of, topology
from mqttlab.metrics import sums
from mqttlab.plurals import counted
from mqttlab.recording import Recording

NODES_MAX = 2000
# Of the clients on a host.
NAMES_SHOWN = 6
NOBODY: tuple[int, Sequence[str]] = (0, ())
PLACES_OF_A_NODE = 400
SLICES = 300
MESSAGES_SHOWN = 2000
DIGITS = {"geographic": 6, "plane": 2, "topology": 4}


def told(recording: Recording) -> dict[str, Any]:
    """What the browser draws: ``kind`` (``geographic``, ``plane`` in metres, ``topology``), ``nodes``, ``links``,
    ``messages``, ``span`` in seconds of run time, ``words``."""
    if "map" not in recording.remembered:
        recording.remembered["map"] = _told(recording)
    made: dict[str, Any] = recording.remembered["map"]
    return made


def _told(recording: Recording) -> dict[str, Any]:
    joined = topology(recording.plan)
    kind, known = _places(recording)
    nodes, of_client = _nodes(recording, joined, kind, known)
    edges = [{"from": edge.first, "to": edge.second, "link": edge.link} for edge in joined.edges]
    messages, left_out = _messages(recording, of_client)
    words = [{"geographic": "Places as clients have published or scenarios have given them.",
              "plane": "Places in metres, as the radio channel's model has them.",
              "topology": "The recording has no places: this is the topology, from hosts to servers."}[kind]]
    words += [f"Of {left_out + len(messages)} deliveries {len(messages)} are drawn, evenly chosen."] if left_out else []
    return {"kind": kind, "nodes": nodes, "edges": edges, "links": _links(recording), "messages": messages,
            "span": _span(recording), "words": " ".join(words)}


def _places(recording: Recording) -> tuple[str, pl.DataFrame]:
    """Which kind of places there are, and rows of ``source``, ``host``, ``client``, ``at_ns``, ``x``, ``y`` (east,
    north)."""
    table = recording.table("positions")
    if not table.is_empty():
        for kind, x, y in (("geographic", "longitude_deg", "latitude_deg"), ("plane", "x_m", "y_m")):
            found = table.filter(pl.col(x).is_not_null(), pl.col(y).is_not_null())
            if not found.is_empty():
                return kind, found.select("source", "host", "client", "at_ns", x=x, y=y).sort("at_ns")
    return "topology", pl.DataFrame(schema={"source": pl.String, "host": pl.UInt16, "client": pl.UInt32,
                                            "at_ns": pl.Int64, "x": pl.Float64, "y": pl.Float64})


def _nodes(recording: Recording, joined: Topology, kind: str, known: pl.DataFrame,
           ) -> tuple[list[dict[str, Any]], list[int]]:
    """The nodes: hosts and junctions of the topology, then clients that have places of their own; and each client's."""
    clients = recording.layout["clients"]
    servers = servers_of(recording.plan)
    tracks = _tracks(known, kind)
    nodes: list[dict[str, Any]] = []
    free = joined.places(servers)
    of_client: list[int] = clients.hosts.to_list()
    on_hosts = {host: (count, names) for host, count, names in clients.table.group_by("host").agg(
        count=pl.len(), names=pl.col("name").head(NAMES_SHOWN)).iter_rows()}
    amid = _amid(tracks, of_client) if kind == "geographic" else {}
    for number, name in enumerate(joined.names):
        count, names = on_hosts.get(number, NOBODY) if number < joined.hosts else NOBODY
        role = "server" if number in servers else "clients" if count else "junction"
        path = tracks.get(("host", number)) or ([] if kind != "topology" else [[0.0, *_rounded(free[number], kind)]])
        words = _words(servers.get(number), count, names)
        if not path and number in amid:
            path, words = [[0.0, *_rounded(amid[number], kind)]], f"{words}; drawn amid the places of its clients"
        nodes.append({"name": name, "role": role, "path": path, "words": words})
    for number, client in enumerate(clients[:NODES_MAX]):
        path = tracks.get(("client", number), [])
        # A client that moves with its host is its host; one that alone knows its place is a node.
        if path and ("host", of_client[number]) not in tracks:
            of_client[number] = len(nodes)
            nodes.append({"name": client["name"], "role": "client", "path": path,
                          "words": f"client of {client['group']}"})
    return nodes, of_client


def _tracks(known: pl.DataFrame, kind: str) -> dict[tuple[str, int], list[list[float]]]:
    """Where each host and client was, and since when, in seconds; a long way as an even selection. A radio station is a
    host's; a place that was published is its client's alone, of however many on that host."""
    tracks: dict[tuple[str, int], list[list[float]]] = {}
    for what, source in (("host", "station"), ("client", "payload")):
        parts = known.filter(pl.col(what).is_not_null(), pl.col("source").cast(pl.String) == source).partition_by(
            what, as_dict=True)
        for (number,), part in parts.items():
            every = -(-part.height // PLACES_OF_A_NODE)
            kept = part.gather_every(every) if every > 1 else part
            tracks[what, int(number)] = [[at / 1e9, *_rounded((x, y), kind)] for at, x, y in kept.select(
                "at_ns", "x", "y").iter_rows()]
    return tracks


def _amid(
    tracks: dict[tuple[str, int], list[list[float]]], of_client: list[int],
) -> dict[int, tuple[float, float]]:
    """The middle of the first places of each host's clients."""
    firsts: dict[int, list[list[float]]] = {}
    for client in sorted(number for what, number in tracks if what == "client" and number < len(of_client)):
        if path := tracks["client", client]:
            firsts.setdefault(of_client[client], []).append(path[0])
    return {host: (sum(place[1] for place in places) / len(places), sum(place[2] for place in places) / len(places))
            for host, places in firsts.items()}


def _rounded(place: tuple[float, float], kind: str) -> list[float]:
    return [round(part, DIGITS[kind]) for part in place]


def _words(server: str | None, count: int, names: Sequence[str]) -> str:
    """What runs on a host: so many clients, of which the first have these names."""
    named = ", ".join(names) + (f" and {count - len(names)} more" if count > len(names) else "")
    parts = [f"server {server}" if server else "", f"{counted(count, 'client')}: {named}" if count else ""]
    return "; ".join(filter(None, parts))


def _span(recording: Recording) -> list[float]:
    messages = recording.scan("messages")
    if not {"intended_ns", "received_ns"} <= set(messages.collect_schema()):
        return [0.0, 1.0]
    first, *last = recording.collect(messages.select(
        pl.col("intended_ns").min().alias("first"), pl.col("intended_ns", "received_ns").max())).row(0)
    if first is None:
        return [0.0, 1.0]
    end = max(at for at in (*last, first + 10**6) if at is not None)
    return [round(first / 1e9, 3), round(end / 1e9, 3)]


def _links(recording: Recording) -> dict[str, dict[str, Any]]:
    """Of each link, slice by slice: when it began (s), the share of it that was busy, kbit/s, frames lost, frames."""
    slices = recording.derived("slices of figures", metrics.slices)
    if slices.is_empty():
        return {}
    first, last = int(slices["at_ns"].min()), int(slices["at_ns"].max())  # type: ignore[arg-type]
    width = max(int(slices["length_ns"][0]), -(-(last - first + 1) // SLICES))
    at = (pl.col("at_ns") - first) // width
    sums = slices.group_by("link", at=at).agg(pl.col("busy_ns").sum(), pl.col("link_bytes").sum())
    lost = _lost(recording, first, width)
    rows = sums.join(lost, on=["link", "at"], how="full", coalesce=True).sort("link", "at")
    made: dict[str, dict[str, Any]] = {}
    for (name,), part in rows.partition_by("link", as_dict=True, maintain_order=True).items():
        made[str(name)] = {"slices": [
            [round((first + slot * width) / 1e9, 3), round(min(1.0, (busy or 0) / width), 3),
             round((carried or 0) * 8e6 / width, 2), int(gone or 0), int(frames or 0)]
            for slot, busy, carried, gone, frames in part.select(
                "at", "busy_ns", "link_bytes", "lost", "frames").iter_rows()], "width": width / 1e9}
    return made


def _lost(recording: Recording, first: int, width: int) -> pl.DataFrame:
    """Frames of each link and slice, and how many of them were dropped."""
    names = recording.layout["links"]
    packets = recording.scan("packets")
    if "entered_ns" not in packets.collect_schema():
        return pl.DataFrame(schema={"link": pl.String, "at": pl.Int64, "frames": pl.UInt32, "lost": pl.UInt32})
    counted = recording.collect(packets.select("link", "entered_ns", "fate").group_by(
        "link", at=(pl.col("entered_ns") - first) // width).agg(
        frames=pl.len(), lost=(pl.col("fate").cast(pl.String) == "dropped").sum()))
    return counted.with_columns(pl.col("link").replace_strict(
        range(len(names)), names, default=None, return_dtype=pl.String), pl.col("at").cast(pl.Int64))


def _messages(recording: Recording, of_client: list[int]) -> tuple[list[list[Any]], int]:
    """Messages and receivers: sent (s), received (s, none where it was not), from and to by node, topic, fate, how late
    (ms). When they were sent is read of all, the rest of those that are shown."""
    table = recording.scan("messages")
    if sums.is_summed(recording):
        # Of a sample nobody sees what followed what.
        return [], 0
    if not {"sent_ns", "publisher", "subscriber"} <= set(table.collect_schema()):
        return [], 0
    numbered = table.with_row_index("row")
    sent = recording.collect(numbered.filter(
        pl.col("sent_ns").is_not_null(), pl.col("publisher").is_not_null(), pl.col("subscriber").is_not_null(),
    ).select("row", "sent_ns")).sort("sent_ns", maintain_order=True)
    chosen = sent.gather_every(-(-max(sent.height, 1) // MESSAGES_SHOWN))["row"]
    shown = recording.collect(numbered.filter(pl.col("row").is_in(chosen.implode())).select(
        "sent_ns", "received_ns", "publisher", "subscriber", pl.col("topic").cast(pl.String),
        pl.col("fate").cast(pl.String), "latency_ns")).sort("sent_ns", maintain_order=True)
    rows = [[round(at / 1e9, 4), None if received is None else round(received / 1e9, 4), of_client[publisher],
             of_client[subscriber], str(topic), str(fate), None if late is None else round(late / 1e6, 3)]
            for at, received, publisher, subscriber, topic, fate, late in shown.iter_rows()
            if publisher < len(of_client) and subscriber < len(of_client)]
    return rows, sent.height - len(rows)
