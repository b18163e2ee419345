"""Whose control packets nobody has written down, where nobody recorded frames."""

from __future__ import annotations

from typing import cast

import polars as pl

from mqttlab.plan import StoredGroup
from mqttlab.recording import Recording

NAMES = {"mqtt_sn": "MQTT-SN", "zeromq": "ZeroMQ"}


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
    for group in plan["groups"]:
        why = _why(group)
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


def _why(group: StoredGroup) -> str:
    """Why clients of this group do not tell of their packets; empty where they do."""
    if cast(dict[str, object], group).get("program"):
        return "programs do not say what they send and receive"
    protocol = next(iter(group.get("protocol", {})), "")
    return f"clients of {NAMES[protocol]} do not write down their own packets" if protocol in NAMES else ""
