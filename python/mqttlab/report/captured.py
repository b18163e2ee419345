"""What the reports show of an import: MQTT by type, topic and connection, and what else the capture holds."""

from __future__ import annotations

import json
import shlex
from typing import Any

import polars as pl

from mqttlab import figures, metrics
from mqttlab.recording import Recording

# Pages are read by people; the recording holds all.
SHOWN = 100
SHOWN_IN_TERMINAL = 10


def is_import(recording: Recording) -> bool:
    """Whether the evidence came from elsewhere: then nothing is known of a schedule, a seed or the machine."""
    return "sources" in recording.plan


def tables(recording: Recording) -> list[tuple[str, pl.DataFrame]]:
    """Title and table of each, without those that have nothing to show."""
    if not is_import(recording):
        return []
    kinds = metrics.packet_types(recording)
    if not kinds.is_empty():
        kinds = kinds.with_columns(pl.col("direction").replace(figures.DIRECTIONS))
    made = [
        ("MQTT packets by type", kinds),
        ("Topics", metrics.topics(recording)),
        ("MQTT connections", metrics.mqtt_connections(recording)),
        ("TCP connections without a CONNECT", metrics.connections_without_connect(recording)),
        ("Beside the broker's connections", metrics.other_traffic(recording)),
    ]
    return [(title, table) for title, table in made if not table.is_empty()]


def cut(title: str, table: pl.DataFrame, shown: int) -> tuple[str, pl.DataFrame]:
    """The first rows, and a title that says how many there are."""
    return (title, table) if table.height <= shown else (f"{title} ({shown} of {table.height})", table.head(shown))


def facts(recording: Recording) -> list[tuple[str, str]]:
    """What replaces seed and backend."""
    sources: list[Any] = recording.plan.get("sources") or []
    names = [str(source).rpartition("/")[2] for source in sources]
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    told = ((recording.run.get("details") or {}).get("import") or {}).get("captured_at") or {}
    point = [("captured", str(told["in_words"]))] if told.get("in_words") else []
    return [("imported from", ", ".join(names[:3]) + rest), *point]


def point(recording: Recording) -> str:
    """From which point the numbers of a capture speak, in words; empty where nothing says so, or where frames are known
    at both ends of their links."""
    told = ((recording.run.get("details") or {}).get("import") or {}).get("captured_at") or {}
    place = told.get("place", "both ends")
    if place == "both ends":
        return ""
    where = "at an unknown point" if place == "unknown" else str(told["in_words"]).partition(";")[0]
    # Earlier versions did not say, and took what passed for delivered.
    if not told.get("has_acknowledgements"):
        return f"captured {where} without acknowledgements of TCP: delivered is what passed there"
    ways = [told.get(name) for name in ("round_trip_to_clients_ms", "round_trip_to_broker_ms")]
    is_near = all(way is not None and way < NEAR_MS for way in ways)
    if place == "several":
        return f"captured {where}"
    return "" if place == "clients" or is_near else f"captured {where}: latencies end there"


def what_if(recording: Recording, place: str) -> str:
    """A command that simulates the messages of an import on another network; empty where none can be replayed.

    Args:
        place: the recording's directory, as it is written in a command.
    """
    # Reading scenarios takes long to load.
    from mqttlab.scenario.replay import ROWS_MAX

    if not is_import(recording) or not recording.rows("messages"):
        return ""
    known = recording.scan("messages").filter(
        pl.col("publisher").is_not_null(), pl.col("intended_ns").is_not_null())
    clients, rows, span_ns, qos = recording.collect(known.select(
        pl.col("publisher").n_unique(), pl.len(),
        (pl.col("intended_ns").max() - pl.col("intended_ns").min()).alias("span"), pl.col("qos").max())).row(0)
    if not 0 < rows <= ROWS_MAX:
        return ""
    # What is due at the very end of a measurement is not in it.
    seconds = span_ns // 10**9 + 1
    table = f"{place}/csv/messages.csv"
    settings = (f"groups[0].publish={{ replay = {json.dumps(table, ensure_ascii=False)} }}",
                f'groups[1].subscribe=[{{ filter = "#", qos = {qos or 0} }}]')
    changed = " ".join(f"--set {shlex.quote(setting)}" for setting in settings)
    return (f"mqttlab export {shlex.quote(place)} --csv && mqttlab try --simulate --network lte --clients {clients} "
            f"--duration {seconds}s {changed}")


def is_of_earlier_rules(recording: Recording) -> bool:
    """Whether an earlier version imported it, by other rules: importing it again may change its numbers."""
    told = (recording.run.get("details") or {}).get("import")
    return isinstance(told, dict) and int(told.get("rules") or 1) < RULES


def known(recording: Recording, table: pl.DataFrame, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns without those of a schedule, where there was none: what was offered late, or not sent."""
    if not is_import(recording):
        return columns
    return tuple(name for name in columns if name not in SCHEDULED or table[name].sum())


# The rules of this version's imports, as the engine writes them.
RULES = 3
# Ways that are shorter than this are of no weight.
NEAR_MS = 1.0
# Columns that only a schedule fills.
SCHEDULED = ("messages_unsent", "late")
