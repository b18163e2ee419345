"""Whose control packets nobody has written down, where nobody recorded frames."""

from __future__ import annotations

from typing import cast

import polars as pl

from mqttlab.plan import StoredGroup
from mqttlab.recording import Recording

# By their names in plans: what recordings made before did not write down, and its word in ``control_packets``.
PROTOCOLS = {"mqtt_sn": ("MQTT-SN", "mqtt-sn"), "zeromq": ("ZeroMQ", "zeromq")}


def silent_groups(recording: Recording) -> dict[str, list[str]]:
    """Of which groups ``control_packets`` has no row because nobody could write one: why, and the groups' names.

    Empty where frames of them were recorded, where the scenario asked for no packets, and for recordings that are
    not of live runs: simulations have frames on every network.
    """
    plan = recording.plan
    asked = plan.get("recording", {}).get("packets", False)
    if plan["backend"] != "live" or not asked:
        return {}
    some = recording.rows("packets") > 0
    silent: dict[str, list[str]] = {}
    told = _told(recording)
    for group in plan["groups"]:
        why = _why(group, told)
        if why and not (some and _is_seen(recording, group)):
            silent.setdefault(why, []).append(group["name"])
    return silent


def _is_seen(recording: Recording, group: StoredGroup) -> bool:
    """Whether frames of this group can be among those that were recorded: on its server's host somebody must listen."""
    host = cast(dict[str, object], group).get("host")
    if host is None or recording.plan["servers"][group["connects_to"]].get("host") != host:
        return True
    within = recording.scan("packets").filter(pl.col("from_host") == host, pl.col("to_host") == host).select(pl.len())
    return bool(recording.collect(within).item())


def _told(recording: Recording) -> set[str]:
    """The protocols whose clients have written down packets themselves."""
    rows = recording.scan("control_packets")
    if not rows.collect_schema():
        return set()
    own = rows.filter(pl.col("seen_by").cast(pl.String) == "client").select(pl.col("protocol").cast(pl.String).unique())
    return set(recording.collect(own)["protocol"])


def _why(group: StoredGroup, told: set[str]) -> str:
    """Why clients of this group do not tell of their packets; empty where they do."""
    if cast(dict[str, object], group).get("program"):
        return "programs do not say what they send and receive"
    name, word = PROTOCOLS.get(next(iter(group.get("protocol", {})), ""), ("", ""))
    return f"clients of {name} did not write down their own packets" if name and word not in told else ""
