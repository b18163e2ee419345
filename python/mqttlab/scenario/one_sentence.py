"""A plan as one sentence that stands above its numbers: who publishes what, how often, to whom, over which links.

Everything in it is read from the plan, so that recordings of any age have one. What one sentence does not hold is
summed up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, cast

from mqttlab.digits import plain
from mqttlab.foreign import shortened
from mqttlab.plan import StoredPlan
from mqttlab.plurals import counted
from mqttlab.scenario.held_words import words_of_churn, words_of_limits
from mqttlab.scenario.sentence import places
from mqttlab.scenario.template import bounds
from mqttlab.scenario.topics import Filters, Prefixes

LENGTH_MAX = 200
# What hosts are held to, and who comes and goes, behind it.
HELD_MAX = 100
# Each has a clause of its own, which is longer than this.
TOLD_MAX = LENGTH_MAX // len("1 device (a)")
PAYLOADS = {"gps": "GPS positions", "image": "images"}
TEXTS = {"template": "texts", "alert": "alerts", "report": "reports"}
PROTOCOLS = {"mqtt_sn": " by MQTT-SN", "zeromq": " by ZeroMQ"}
# Of ends that are at the same place.
SAME = {"sharing": " behind a link alike", "behind": " behind a link alike", "on": " there, too",
        "beside": " there, too"}
# What older plans do not say of a group.
UNSAID: dict[str, Any] = {"program": None, "relay": None, "protocol": {"mqtt": {}}, "subscriptions": [], "host_step": 0}
UNITS = (("h", 3_600 * 10**9), ("min", 60 * 10**9), ("s", 10**9), ("ms", 10**6), ("µs", 10**3), ("ns", 1))


def one_sentence(plan: StoredPlan) -> str:
    """What a plan does, in at most about 200 characters, and 100 more of limits and of who comes and goes."""
    groups = [{**UNSAID, **group} for group in cast("list[dict[str, Any]]", plan["groups"])]
    if "sources" in plan:
        described = shortened(str(plan.get("description") or "Imported."), LENGTH_MAX - 40)
        return f"{described.rstrip('.')}: {_all(groups)}."
    if not groups or any("publications" not in group or "connects_to" not in group for group in groups):
        network = plan.get("network", {}).get("description") or plan.get("network", {}).get("kind") or "not recorded"
        return f"{_all(groups)}; network: {network}."
    for told in _ways(plan, groups):
        if len(told) <= LENGTH_MAX:
            break
    for more in _held(plan, groups):
        if sum(map(len, more)) <= HELD_MAX:
            break
    return "; ".join([told.removesuffix("."), *more]) + "."


def _held(plan: StoredPlan, groups: list[dict[str, Any]]) -> Iterator[list[str]]:
    """What hosts are limited to, and who comes and goes: with the numbers, or their count."""
    limited = [host for host in cast("list[dict[str, Any]]", plan.get("hosts") or []) if host.get("limits")]
    coming = [group for group in groups if group.get("churn")]
    yield [
        *(f"host {host['name']} has {words_of_limits(host['limits'])}" for host in limited),
        *(f"{group['name']} {words_of_churn(group['churn'], group['count'])}" for group in coming)]
    count = sum(group["count"] for group in coming)
    yield [*([f"{counted(len(limited), 'host')} with limits"] if limited else []),
           *([counted(count, "client comes and goes", "clients come and go")] if coming else [])]


def _ways(plan: StoredPlan, groups: list[dict[str, Any]]) -> Iterator[str]:
    """The sentence, from the longest way to the shortest."""
    where = places(plan, groups)
    publishing = [group for group in groups if group["publications"] or group["program"]]
    subscribing = [group for group in groups if not (group["publications"] or group["program"])]
    if not publishing:
        yield f"{_all(groups)} connect; no client publishes."
        return
    if len(publishing) <= TOLD_MAX:
        yield from _each(groups, publishing, subscribing, where)
    count = sum(group["count"] for group in publishing)
    kinds = list(dict.fromkeys(place.strip(", ") for place in where.values()))
    of = f" of {len(publishing)} groups" if len(publishing) > 1 else ""
    several = f"{count:,} {_devices(count)}{of} publish{'es' if count == 1 else ''}"
    hearing = sum(group["count"] for group in subscribing)
    rest = f", {_all(subscribing)} receive{'s' if hearing == 1 else ''}" if subscribing else ""
    yield f"{several}{rest}: {'; '.join(kinds)}."
    yield f"{several}{rest}, on {len(kinds)} kinds of links."


def _each(
    groups: list[dict[str, Any]], publishing: list[dict[str, Any]], subscribing: list[dict[str, Any]],
    where: dict[str, str],
) -> Iterator[str]:
    """The ways with a clause for each group."""
    hearing_of = _receivers(groups)
    clauses = [_publishes(group, hearing_of[group["name"]], where) for group in publishing]
    heard = {other["name"] for group in publishing for other in hearing_of[group["name"]]}
    others = [f"{_who(group)}{where[group['name']]} {_does(group)}" for group in subscribing
              if len(publishing) > 1 or group["name"] not in heard or group["relay"]]
    yield _capital("; ".join([*clauses, *others]))
    if len(publishing) == 1 and not others:
        yield _capital(_publishes(publishing[0], hearing_of[publishing[0]["name"]], where, with_places=False))


def _publishes(
    group: dict[str, Any], receivers: list[dict[str, Any]], where: dict[str, str], *, with_places: bool = True,
) -> str:
    who = f"{_who(group)}{where[group['name']]}"
    if not group["publications"]:
        return f"{who} run a program of their own"
    # The plan does not say the topics of a table.
    told_by_tables = any((publish.get("replay") or {"columns": {"topic": None}})["columns"]["topic"] is not None
                         for publish in group["publications"])
    to = "" if told_by_tables else ", without a subscriber"
    if receivers:
        to = f" to {' and '.join(_subscribers(group, other, where if with_places else {}) for other in receivers)}"
    verb = "publish" if group["count"] != 1 else "publishes"
    spoken = PROTOCOLS.get(next(iter(group["protocol"]), ""), "")
    comma = "," if "," in who else ""
    told = " and ".join(f"{_payload(publish)} at QoS {publish['qos']}{spoken} {_often(publish)}"
                        if not publish.get("replay") else f"{_replayed(publish['replay'])}{spoken}"
                        for publish in group["publications"])
    return f"{who}{comma} {verb} {told}{to}"


def _receivers(groups: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The groups that each group reaches, as far as topics tell; relays pass its messages on under other topics."""
    wanting: dict[bool, dict[str, list[str]]] = {False: {}, True: {}}
    for group in groups:
        for wanted in group["subscriptions"]:
            wanting["zeromq" in group["protocol"]].setdefault(wanted["filter"], []).append(group["name"])
    filters: dict[bool, Filters | Prefixes] = {False: Filters(wanting[False]), True: Prefixes(wanting[True])}
    found: dict[str, list[dict[str, Any]]] = {}
    order = {group["name"]: number for number, group in enumerate(groups)}
    for group in groups:
        prefixes = "zeromq" in group["protocol"]
        matched = {each for publish in group["publications"] for each in filters[prefixes].matching(publish["topic"])}
        names = {name for pattern in matched for name in wanting[prefixes][pattern]}
        found[group["name"]] = [groups[number] for number in sorted(order[name] for name in names)]
    return found


def _subscribers(sender: dict[str, Any], group: dict[str, Any], where: dict[str, str]) -> str:
    many = f"{group['count']:,} subscribers" if group["count"] != 1 else "one subscriber"
    there = where.get(group["name"], "")
    if there and there == where.get(sender["name"]) and not there.startswith(", each"):
        there = SAME.get(there.split(" ")[1], f"{there}, too")
    return f"{many}{there}" + (", which relays it" if group["relay"] else "")


def _does(group: dict[str, Any]) -> str:
    verb = "relays" if group["relay"] else "subscribes" if group["subscriptions"] else "connects"
    return verb if group["count"] == 1 else verb.removesuffix("s")


def _who(group: dict[str, Any]) -> str:
    devices = _devices(group["count"])
    # "10 devices (devices)" says nothing twice.
    named = "" if group["name"] in ("device", "devices") else f" ({group['name']})"
    return f"{group['count']:,} {devices}{named}"


def _all(groups: list[dict[str, Any]]) -> str:
    count = sum(group["count"] for group in groups)
    return f"{count:,} client{'s' if count != 1 else ''}" + (f" in {len(groups)} groups" if len(groups) > 1 else "")


def _devices(count: int) -> str:
    return "device" if count == 1 else "devices"


def what_and_how_often(publish: Mapping[str, Any]) -> str:
    """A publication's payload and rate."""
    if publish.get("replay"):
        return _replayed(publish["replay"])
    return f"{_payload(publish)} {_often(publish)}"


def _replayed(replay: Mapping[str, Any]) -> str:
    count, name = replay["rows"], shortened(PurePath(replay["path"]).name, 40)
    # What is due behind the measurement is not sent.
    which, again = ("up to", "") if replay["period_ns"] is None else ("the", ", again and again")
    faster = 1_000_000 / replay["second_us"]
    return f"{which} {count:,} messages of {name}{again}{'' if faster == 1 else f', {plain(faster, 4)} times as fast'}"


def _payload(publish: Mapping[str, Any]) -> str:
    payload = publish["payload"]
    if payload["kind"] in PAYLOADS:
        return PAYLOADS[payload["kind"]]
    if payload["kind"] == "template":
        return f"{TEXTS[payload['name']]} of {_template_bytes(payload)}"
    if payload["kind"] == "picture":
        return f"{payload['format'].upper()} pictures of {_bytes(payload['bytes'])}"
    return _bytes(payload["bytes"]) if payload["bytes"] else "empty messages"


def _template_bytes(payload: Mapping[str, Any]) -> str:
    if payload["bytes"] is not None:
        return _bytes(payload["bytes"])
    least, most = bounds(tuple(payload["parts"]), 100, 1_000)
    return _bytes(least) if least == most else f"about {(least + most) // 2:,} B"


def _bytes(count: int) -> str:
    for unit, size in (("MB", 10**6), ("kB", 10**3)):
        if count >= size and count % (size // 100) == 0:
            return f"{plain(count / size)} {unit}"
    return f"{count} B"


def _often(publish: Mapping[str, Any]) -> str:
    arrival = publish["arrival"]
    if publish.get("stages"):
        return _at_rates(publish)
    if arrival["kind"] == "poisson":
        return f"every {_time(arrival['mean_interval_ns'])} on average"
    if arrival["kind"] == "burst":
        return f"in bursts of {arrival['size']:,} every {_time(arrival['interval_ns'])}"
    if arrival["kind"] == "back_to_back":
        return "one after the other"
    return f"every {_time(arrival['interval_ns'])}"


def _at_rates(publish: Mapping[str, Any]) -> str:
    """The least and the greatest rate of the measurement; how many stages lead there."""
    stages, kind = publish["stages"], publish["arrival"]["kind"]
    rates = [1e9 / stage[end] if stage[end] else 0.0
             for stage in stages for end in ("from_interval_ns", "to_interval_ns")]
    least, most = plain(min(rates), 4), plain(max(rates), 4)
    count = f"in {len(stages)} stages" if len(stages) > 1 else "in one stage"
    law = {"poisson": " on average", "burst": f" in bursts of {publish['arrival'].get('size', 0):,}"}.get(kind, "")
    return f"at {least if least == most else f'{least} to {most}'} /s{law} {count}"


def _time(length_ns: int) -> str:
    unit, size = next((unit, size) for unit, size in UNITS if length_ns >= size or size == 1)
    return f"{plain(length_ns / size, 4)} {unit}"


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
