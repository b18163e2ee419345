"""Why clients' connections ended unplanned, and why they were refused: as clients were told, and as their evidence has
it in ``events``.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from functools import cache
from importlib import resources
from typing import Any

import polars as pl

from mqttlab.recording import Recording

# A client's note says why it did not come as far as to be refused.
KINDS = {"disconnect": "disconnected", "refused": "refused", "note": "not connected"}
COLUMNS = {"group": pl.String, "what": pl.String, "reason": pl.String, "count": pl.Int64, "clients": pl.Int64}
# What a client of MQTT 3.1.1 sees of a take-over: no packet says why.
CLOSED = "the broker closed the connection"
TAKEN_OVER = f"{CLOSED} (session taken over: another client came with its identifier)"
CODE = re.compile(r"code 0x([0-9a-f]{2})$")
DELIVERY = "delivery, "
# What names a topic or filter: what was asked for, of which, and the answer.
SUBJECT = r"^(?P<asked>PUBLISH to|SUBSCRIBE|UNSUBSCRIBE) (?P<subject>.+): (?P<code>code 0x[0-9a-f]{2}.*)$"
SUBJECTS_MOST = 3
# Whose connection ended so may have been told why by none.
UNEXPLAINED = (CLOSED, "no reason was recorded", "closed by the broker without a DISCONNECT",
               "reset by the broker without a DISCONNECT", "closed by the client without a DISCONNECT",
               "reset by the client without a DISCONNECT")


@cache
def _known() -> tuple[dict[int, str], list[tuple[str, str]]]:
    """What codes and other reasons mean, as the engine's verdict says it (``crates/recording/src/refusals.rs``)."""
    table = json.loads(resources.files(__package__).joinpath("failures.json").read_text(encoding="utf-8"))
    return ({int(code, 16): name for code, (name, _) in table["codes"].items()},
            [(said, means) for said, means, _ in table["failures"]])


@cache
def code_names() -> dict[str, dict[int, str]]:
    """What codes are called, by packet; of packets before MQTT 5 under ``KIND before MQTT 5``."""
    table = json.loads(resources.files(__package__).joinpath("failures.json").read_text(encoding="utf-8"))
    return {packet: {int(code, 16): name for code, name in names.items()} for packet, names in table["names"].items()}


def disconnections(recording: Recording) -> pl.DataFrame:
    """One row for each group and reason: ``group``, ``what`` (``disconnected``, ``refused``, ``refused deliveries`` or
    ``not connected``), ``reason``, ``count`` (times) and ``clients`` (how many different ones).

    The most frequent come first, and behind them those that name no cause: a connection that was closed without a word.
    """
    events = recording.events
    if events.is_empty():
        return pl.DataFrame(schema=COLUMNS)
    kind = pl.col("kind").cast(pl.String)
    found = events.filter(kind.is_in(list(KINDS)), (kind != "note") | pl.col("client").is_not_null())
    if found.is_empty():
        return pl.DataFrame(schema=COLUMNS)
    groups = recording.layout["clients"].table.select("client", "group")
    # Only a client refuses what was delivered.
    delivered = pl.col("detail").cast(pl.String).str.starts_with(DELIVERY)
    what = pl.when(delivered).then(pl.lit("refused deliveries")).otherwise(
        kind.replace_strict(KINDS, return_dtype=pl.String))
    told = found.select(
        client=pl.col("client").cast(pl.Int64), what=what,
        reason=_taken_over(recording, found, pl.col("detail").cast(pl.String)).fill_null("no reason was recorded"))
    counted = _few_subjects(told.join(groups, on="client", how="left")).group_by("group", "what", "reason").agg(
        count=pl.len().cast(pl.Int64), clients=pl.col("client").n_unique().cast(pl.Int64))
    reasons = {reason: in_words(reason) for reason in counted["reason"].unique()}
    return counted.with_columns(pl.col("reason").replace(reasons)).select(
        pl.col(name).cast(type_) for name, type_ in COLUMNS.items()).sort(
        pl.col("reason").is_in(UNEXPLAINED), pl.col("count") * -1, "group", "what", "reason", nulls_last=True)


def _few_subjects(told: pl.DataFrame) -> pl.DataFrame:
    """Reasons that name topics or filters, together where a group has more than a few that differ in these alone."""
    parts = pl.col("reason").str.extract_groups(SUBJECT)
    split = told.with_columns(asked=parts.struct.field("asked"), subject=parts.struct.field("subject"),
                              code=parts.struct.field("code"))
    together = ("group", "what", "asked", "code")
    subjects = pl.col("subject").n_unique().over(*together)
    first = pl.col("subject").min().over(*together)
    words = pl.format("{} {} topics, such as {}: {}", "asked", subjects, first, "code")
    return split.with_columns(
        reason=pl.when(pl.col("subject").is_not_null() & (subjects > SUBJECTS_MOST)).then(words).otherwise("reason"))


def _taken_over(recording: Recording, found: pl.DataFrame, detail: pl.Expr) -> pl.Expr:
    """The details, and of connections that the broker closed when another client of the run had come with the same
    identifier, that reason: the broker must then close the older one (MQTT 3.1.1, [MQTT-3.1.4-2]).

    Clients from outside of the run are in no event; the broker's log names them.
    """
    closed = found.filter(pl.col("kind").cast(pl.String) == "disconnect", pl.col("detail").cast(pl.String) == CLOSED)
    if closed.is_empty():
        return detail
    rivals = {client: clients for clients in _owners(recording) for client in clients}
    if not rivals:
        return detail
    accepted: dict[int, list[tuple[int, int]]] = defaultdict(list)
    connacks = recording.events.filter(pl.col("kind").cast(pl.String) == "connack", pl.col("client").is_in(rivals))
    times = (pl.col("at_ns").cast(pl.Int64), pl.col("took_ns").cast(pl.Int64).fill_null(0))
    for client, at_ns, took_ns in connacks.select("client", *times).sort("at_ns").rows():
        accepted[client].append((at_ns, took_ns))

    def is_taken(client: int, at_ns: int) -> bool:
        own = accepted[client]
        place = bisect_right(own, (at_ns,))
        since_ns = own[place - 1][0] if place else 0
        # The other one has asked before this one's end, and was accepted after this one was.
        return any(
            since_ns < came_ns and came_ns - took_ns <= at_ns for other in rivals.get(client, ()) if other != client
            for came_ns, took_ns in accepted[other][bisect_right(accepted[other], (since_ns,)):])

    taken = [(client, at_ns) for client, at_ns in closed.select("client", pl.col("at_ns").cast(pl.Int64)).rows()
             if is_taken(client, at_ns)]
    both = pl.struct(pl.col("client").cast(pl.Int64), pl.col("at_ns").cast(pl.Int64))
    ended = pl.Series([{"client": client, "at_ns": at_ns} for client, at_ns in taken],
                      dtype=pl.Struct({"client": pl.Int64, "at_ns": pl.Int64}))
    is_one = (pl.col("kind").cast(pl.String) == "disconnect") & both.is_in(ended.implode()) & (detail == CLOSED)
    return pl.when(is_one).then(pl.lit(TAKEN_OVER)).otherwise(detail)


def _owners(recording: Recording) -> list[list[int]]:
    """Clients of one server with one identifier, where these are several."""
    of_group: dict[str, Any] = {group["name"]: group for group in recording.plan.get("groups") or ()}
    servers: dict[Any, int] = {}
    rows: list[tuple[str, int, str | None]] = []
    for name, group in of_group.items():
        if mqtt := (group.get("protocol") or {}).get("mqtt"):
            pattern = str(mqtt["client_id"])
            # What is listed, or has so many digits, the engine has told.
            told = mqtt.get("credentials") or "{client:" in pattern
            rows.append((name, servers.setdefault(group.get("server"), len(servers)),
                         None if told else pattern.replace("{group}", name)))
    groups = pl.DataFrame(rows, orient="row", schema={"group": pl.String, "server": pl.Int64, "pattern": pl.String})
    place = pl.int_range(pl.len()).over("group").cast(pl.String)
    clients: pl.DataFrame = recording.layout["clients"].table
    known = clients.select("client", "name", "group", place=place).join(groups, on="group", maintain_order="left")
    identifier = pl.coalesce(pl.col("pattern").str.replace_all("{client}", pl.col("place"), literal=True), "name")
    found = known.group_by("server", identifier=identifier, maintain_order=True).agg("client").filter(
        pl.col("identifier") != "", pl.col("client").list.len() > 1)
    return found["client"].to_list()


def in_words(reason: str) -> str:
    """A reason with what its code means."""
    codes, others = _known()
    code = CODE.search(reason)
    if code:
        means = None if reason.startswith("SUBSCRIBE") else codes.get(int(code[1], 16))
    else:
        means = next((means for said, means in others if said in reason), None)
    # A simulated client says it in these very words.
    return f"{reason} ({means})" if means and means not in reason else reason
