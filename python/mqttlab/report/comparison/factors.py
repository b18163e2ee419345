"""What differs on purpose between two sides, in the words of the field: ``QoS 1`` against ``QoS 0``.

The plans are read, because in them nothing is left to a default; fields that no descriptor knows are read as they were
written. Names of groups, hosts and topics are no difference: flows are lined up by their roles.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqttlab.comparison import Comparison, scenario_changes
from mqttlab.comparison.sides import flat
from mqttlab.digits import duration
from mqttlab.foreign import shortened, visible
from mqttlab.plan import publications_of
from mqttlab.report.text import number

Plan = Mapping[str, Any]
PROTOCOLS = {"mqtt": "MQTT", "mqtt_sn": "MQTT-SN", "zeromq": "ZeroMQ"}
TOLD = 2
"""More factors than these are not all named in a sentence."""
VALUE_MAX = 40


@dataclass(frozen=True, kw_only=True)
class Factor:
    """One thing that differs."""

    name: str
    first: str
    second: str


def factors(comparison: Comparison) -> list[Factor]:
    """What differs between the scenarios of both sides, the best known first; empty where nothing does."""
    plans = [[dict(recording.plan) for recording in side.recordings] for side in (comparison.first, comparison.second)]
    captured = any("sources" in plan for side in plans for plan in side)
    found: list[Factor] = []
    for name, (describe, _) in DESCRIBED.items():
        first, second = (_joined([describe(plan) for plan in side]) for side in plans)
        known = {factor.name for factor in found}
        if (name == "subscriptions" and "QoS" in known) or (
                # A model of a broker has its kind, and no version.
                name == "broker" and "backend" in known and first.split(" ")[0] == second.split(" ")[0]):
            continue
        # A capture does not say what a scenario has said.
        if first != second and first and second and (not captured or name in ("backend", "protocol")):
            found.append(Factor(name=name, first=first, second=second))
    network = None if captured else _network([side[0] for side in plans])
    found += [network] if network is not None else []
    return found if captured else [*found, *_others(comparison, network is not None)]


def _others(comparison: Comparison, network: bool) -> list[Factor]:
    """Fields that no descriptor reads: as written in the scenarios, or in the plans where these are not known."""
    changes = scenario_changes(comparison.first, comparison.second)
    # A plan has a link for each device: which of their fields differ was asked before.
    known = [known for _, known in DESCRIBED.values()] + ([NETWORK] if network or changes is None else [])
    names = {visible(name): visible(other) for name, other in comparison.roles.groups.items()}
    sides: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for place, first, second in comparison.changed if changes is None else changes:
        if NAMES.search(place) or any(pattern.search(place) for pattern in known):
            continue
        # A group that has another name is written twice, once with either.
        renamed = GROUP.sub(lambda found: f"groups[{names.get(found[1], found[1])}]", place)
        for side, here, value in ((sides[0], place, first), (sides[1], renamed, second)):
            if value != "–" or here == renamed == place:
                side[here] = value
    return [Factor(name=place, first=_value(place, sides[0].get(place, "–")), second=_value(
        place, sides[1].get(place, "–"))) for place in dict.fromkeys([*sides[0], *sides[1]])
        if sides[0].get(place, "–") != sides[1].get(place, "–")]


def against(comparison: Comparison) -> tuple[str, str]:
    """What a sentence calls the second side and the first one."""
    found = factors(comparison)
    # How long was measured is no difference between the things measured, unless there is no other.
    found = [factor for factor in found if factor.name != "duration"] or found
    if not found:
        return visible(comparison.second.label), visible(comparison.first.label)
    more = len(found) - TOLD
    words = [", ".join(getattr(factor, side) for factor in found[:TOLD]) for side in ("second", "first")]
    return words[0], words[1] + (f" ({number(more)} more setting{'s' if more > 1 else ''} differ"
                                 f"{'' if more > 1 else 's'})" if more > 0 else "")


def load_differs(found: Sequence[Factor]) -> bool:
    """Whether the sides were asked for other loads, so that their bytes differ on purpose."""
    return any(factor.name in ("payload", "interval") for factor in found)


def _joined(words: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(filter(None, words)))


def _groups(plan: Plan) -> list[Any]:
    return list(plan.get("groups", []))


def _publishing(plan: Plan) -> list[Any]:
    return [publish for group in _groups(plan) for publish in publications_of(group)]


def _backend(plan: Plan) -> str:
    if "sources" in plan:
        return "captured"
    return {"sim": "simulated", "live": "live"}.get(str(plan.get("backend", "")), "")


def _protocol(plan: Plan) -> str:
    kinds = [next(iter(group["protocol"]), "") for group in _groups(plan) if group.get("protocol")]
    # Subscribers of MQTT behind a gateway of MQTT-SN: what the publishers speak is the difference.
    publishing = [next(iter(group["protocol"]), "") for group in _groups(plan)
                  if group.get("protocol") and publications_of(group)]
    return _joined([PROTOCOLS.get(kind, kind) for kind in publishing or kinds])


def _version(plan: Plan) -> str:
    versions = [group["protocol"]["mqtt"].get("version", "") for group in _groups(plan)
                if "mqtt" in (group.get("protocol") or {})]
    return _joined([f"MQTT {version}" for version in versions if version]) if _protocol(plan) == "MQTT" else ""


def _transport(plan: Plan) -> str:
    found = []
    for group in _groups(plan):
        transport = group.get("transport") or {}
        kind = transport if isinstance(transport, str) else next(iter(transport), "")
        options = {} if isinstance(transport, str) else transport.get(kind)
        tls, websocket = ((options or {}).get(layer) for layer in ("tls", "websocket"))
        layers = [*(["WebSocket"] if websocket else []), *([_tls(tls)] if tls else [])]
        found.append((" over ".join(layers) or f"plain {kind.upper()}") if kind else "")
    return _joined(found)


def _tls(options: Mapping[str, Any]) -> str:
    """TLS with its version, and what clients do otherwise than they do when nothing is said."""
    words = f"TLS {options['version']}" if options.get("version") else "TLS"
    if options.get("resumption") is False:
        words += " without resumption"
    return words + (" with clients' certificates" if options.get("client_certificate") else "")


def _qos(plan: Plan) -> str:
    levels = [str(publish["qos"]) for publish in _publishing(plan) if "qos" in publish]
    return f"QoS {_joined(levels)}" if levels else ""


def _subscribed(plan: Plan) -> str:
    levels = [str(wanted["qos"]) for group in _groups(plan) for wanted in group.get("subscriptions") or []
              if "qos" in wanted]
    return f"subscriptions at QoS {_joined(levels)}" if levels else ""


def _count(plan: Plan) -> str:
    count = sum(group.get("count", 0) for group in _groups(plan))
    return f"{number(count)} client{'s' if count != 1 else ''}" if count else ""


def _payload(plan: Plan) -> str:
    payloads = [publish.get("payload") or {} for publish in _publishing(plan)]
    return _joined([f"{number(payload['bytes'])} B" if payload.get("bytes") else str(payload.get("kind", ""))
                    for payload in payloads])


def _interval(plan: Plan) -> str:
    arrivals = [publish.get("arrival") or {} for publish in _publishing(plan)]
    spans = [arrival.get("interval_ns") or arrival.get("mean_interval_ns") for arrival in arrivals]
    return _joined([f"a message every {duration(span)}" for span in spans if span])


def _broker(plan: Plan) -> str:
    return _joined([_called(server) for server in plan.get("servers", []) if "broker" in (
        server.get("role") or {"broker": 0})])


def _called(server: Plan) -> str:
    """A broker's kind and version; where it is of one elsewhere, its address."""
    if server.get("kind") == "external" and server.get("endpoints"):
        first = server["endpoints"][0]
        return f"the broker at {first.get('address')}:{first.get('port')}"
    return " ".join(filter(None, (str(server.get("kind", "")).capitalize(), server.get("version") or "")))


def _keep_alive(plan: Plan) -> str:
    spans = [group["protocol"]["mqtt"].get("keep_alive_s") for group in _groups(plan)
             if "mqtt" in (group.get("protocol") or {})]
    return _joined([f"keep-alive {span} s" for span in spans if span is not None])


def _measured(plan: Plan) -> str:
    span = (plan.get("phases") or {}).get("duration_ns")
    return f"{duration(span)} measured" if span else ""


def _network(plans: Sequence[Plan]) -> Factor | None:
    """The links that clients are behind, where they differ; what reads models is loaded only then."""
    if _unnamed(plans[0].get("network")) == _unnamed(plans[1].get("network")):
        return None
    from mqttlab.scenario.sentence import places

    words = []
    for plan in plans:
        groups = [{"host_step": 0, **group} for group in _groups(plan)]
        if not all("connects_to" in group for group in groups):
            return None
        told = places(plan, groups)  # type: ignore[arg-type]
        links = [told[group["name"]].strip(", ") for group in groups if not told[group["name"]].startswith(" beside")]
        words.append(_joined([ARTICLE.sub("", link) for link in links]) or "no emulated link")
    if words[0] == words[1]:
        return _field_of_links(plans)
    return Factor(name="network", first=words[0], second=words[1])


def _field_of_links(plans: Sequence[Plan]) -> Factor | None:
    """The first field in which links differ that are called the same; none where a side only has more of them."""
    links = [plan["network"].get("links", []) for plan in plans]
    if len(links[0]) != len(links[1]):
        return None
    sides = [flat({str(number): _unnamed(link) for number, link in enumerate(side)}) for side in links]
    for place, value in sides[0].items():
        if value != sides[1].get(place, value):
            return Factor(name="network", first=f"link of {_value(place, str(value))}",
                          second=f"link of {_value(place, str(sides[1][place]))}")
    return None


def _unnamed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _unnamed(inner) for key, inner in value.items() if key not in ("name", "description")}
    return [_unnamed(inner) for inner in value] if isinstance(value, list) else value


def _value(place: str, written: str) -> str:
    last = place.rsplit(".", 1)[-1].replace("_", " ")
    shown = visible(shortened(written, VALUE_MAX))
    return f"{last} {'by default' if written == '–' else shown}"


# In a scenario and in a plan.
PUBLISH = r"publ(ish|ications)(\[\d+\])?"
# By name: what reads it of a plan, and the fields of scenarios and plans that it covers.
DESCRIBED: dict[str, tuple[Callable[[Plan], str], re.Pattern[str]]] = {
    "backend": (_backend, re.compile(r"^backend|^live\.|^sim\.")),
    "protocol": (_protocol, re.compile(r"protocol|^servers|connects_to|^mqtt_sn|^zeromq")),
    "QoS": (_qos, re.compile(rf"{PUBLISH}\.qos|subscri.*\.qos")),
    "subscriptions": (_subscribed, re.compile(r"subscri.*\.qos")),
    "version": (_version, re.compile(r"mqtt\.version")),
    "transport": (_transport, re.compile(r"transport|\.tls|\.ports\b|endpoints|trust")),
    "payload": (_payload, re.compile(r"payload\b")),
    "interval": (_interval, re.compile(rf"{PUBLISH}\.(interval|rate|arrival|stages)")),
    "clients": (_count, re.compile(r"\.count$|^hosts|host_step|hosts_in_turn|connect_over|addresses|^network\.paths")),
    "broker": (_broker, re.compile(r"(broker|servers\[[^\]]*\])\.(kind|version|address|port)|servers.*(process|role)")),
    "duration": (_measured, re.compile(r"^phases")),
    "keep-alive": (_keep_alive, re.compile(r"keep_alive")),
}
NETWORK = re.compile(r"^networks?\b|^hosts|host_step|hosts_in_turn|\.host$")
GROUP = re.compile(r"groups\[([^\]]*)\]")
ARTICLE = re.compile(r"^(each behind its own|sharing one|behind one) ")
# Names, and what only says where and how long: no difference between the things compared.
NAMES = re.compile(r"\.name$|\.topic$|\.filter$|\.host$|\.between|^tags|^description|^recording|^thresholds"
                   r"|^repetitions|(?<!tcp)\.host\b|^hosts|client_id|\.username\b|\.password\b")
