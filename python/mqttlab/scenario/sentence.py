"""A plan in one sentence: how many clients there are, whose links they are behind, and what they publish.

It asks the plan alone, so that recordings of any age have their sentence.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from mqttlab.digits import plain
from mqttlab.foreign import shortened
from mqttlab.quantity import rate_words

if TYPE_CHECKING:
    from mqttlab.plan import StoredPlan
    from mqttlab.plan.types import Group, Plan

NAMED_MAX = 3
# What a model may lose otherwise, and is still called by its name.
LOSS_FIELDS = ("loss", "loss_at")
WHERE = {"radio": "on one 802.11 channel", "loopback": "on the loopback network of one host",
         "veth": "on networks that are not emulated", "external": "on a network that is not emulated"}
Paths = dict[tuple[int, int], tuple[str, ...]]
Traces = dict[str, Any]
TRACE_NAME_MAX = 32


def sentence(plan: Plan) -> str:
    """Who is behind which links, in a sentence."""
    text = "; ".join(whose_links(plan))
    return f"{text[:1].upper()}{text[1:]}."


def whose_links(plan: Plan) -> list[str]:
    """The same, a line for the groups behind each kind of links."""
    behind: dict[tuple[Any, ...], list[Group]] = defaultdict(list)
    places_of = _Places(plan)
    for group in plan["groups"]:
        behind[places_of(group)].append(group)
    return [_clause(plan, place, groups) for place, groups in behind.items()]


def places(plan: StoredPlan, groups: Sequence[Any]) -> dict[str, str]:
    """Where each group is, to be put behind its name: ``, each behind its own LTE link``, `` beside the broker``."""
    if "paths" not in plan["network"]:
        return {group["name"]: "" for group in groups}
    whole = cast("Plan", plan)
    places_of, found = _Places(whole), {}
    for group in groups:
        place = places_of(group)
        found[group["name"]] = (
            f" beside the {whole['servers'][group['connects_to']]['name']}" if place[0] == "beside" else
            f"{', ' if place[0] in ('each', 'one') else ' '}{_behind(place, group['count'])}")
    return found


class _Places:
    """The places of a plan's groups, worked out once for all groups of a host."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self._paths, self._traces = plan, _paths(plan), _traces(plan)
        self._known: dict[tuple[int, int, int | None, int, bool], tuple[Any, ...]] = {}

    def __call__(self, group: Group) -> tuple[Any, ...]:
        asked = (group["host"], group["host_step"], group.get("hosts_in_turn"), group["connects_to"],
                 group["count"] > 1)
        if asked not in self._known:
            self._known[asked] = _place(self._plan, group, self._paths, self._traces)
        return self._known[asked]


def _paths(plan: Plan) -> Paths:
    return {(path["from"], path["to"]): tuple(_hop(hop) for hop in path["hops"]) for path in plan["network"]["paths"]}


def _behind(place: tuple[Any, ...], clients: int) -> str:
    """What clients are behind, or on, that are not on a server's host."""
    if place[0] == "each":
        return f"{f'on {place[2]:,} hosts, ' if place[2] else ''}each behind its own {place[1]}"
    if place[0] == "one":
        return f"{'sharing one' if clients > 1 else 'behind one'} {place[2]}"
    return WHERE.get(place[0], f"on a network of kind {place[0]}")


def _hop(hop: Any) -> str:
    return str(hop["link"]) if "link" in hop else "radio"


def _place(plan: Plan, group: Group, paths: Paths, traces: Traces) -> tuple[Any, ...]:
    """What groups have in common that are told of together: the kind of their access, and the link itself where it is
    one."""
    kind = plan["network"]["kind"]
    server = plan["servers"][group["connects_to"]]["host"]
    if kind != "emulated":
        return (kind,)
    if group["host"] == server and not group["host_step"]:
        return ("beside", server)
    first, second = (_access(plan, group, client, paths) for client in (0, 1))
    if first[0][:1] == ("radio",) or first[1][:1] == ("radio",):
        return ("radio",)
    each = group["host_step"] > 0 and group["count"] > 1 and first != second
    looks = _following(plan, first, traces) or _looks(plan, first)
    return ("each", looks, group.get("hosts_in_turn")) if each else ("one", first, looks)


def _access(plan: Plan, group: Group, client: int, paths: Paths) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The links next to a client, away from it and towards it; none for a direction that is not emulated."""
    host = group["host"] + client * group["host_step"]
    server = plan["servers"][group["connects_to"]]["host"]
    return paths.get((host, server), ())[:1], paths.get((server, host), ())[-1:]


def _traces(plan: Plan) -> Traces:
    """The trace of each link that follows one, by its name."""
    return {name: trace for trace in plan["network"].get("traces", ()) for name in trace["links"]}


def _following(plan: Plan, links: tuple[tuple[str, ...], tuple[str, ...]], traces: Traces) -> str | None:
    """Links that follow a trace, with the least and the greatest rate; none where neither does."""
    told, names = [], []
    for way, direction in zip(links, ("up", "down"), strict=True):
        spec = plan["network"]["links"][int(way[0])] if way else None
        trace = None if spec is None else traces.get(spec["name"])
        if trace is None:
            told.append(f"{_figures(cast('dict[str, Any] | None', spec))} {direction}")
            continue
        told.append(f"{_span(trace['course'], spec)} {direction}")
        names.append(shortened(trace["name"].removesuffix(f"/{direction}").rpartition("/")[2], TRACE_NAME_MAX))
    if not names:
        return None
    return f"link that follows {' and '.join(dict.fromkeys(names))} ({', '.join(told)})"


def _span(course: Any, spec: Any) -> str:
    """The rates of a trace's table, or its delays where it has no rates."""
    if course["kind"] == "opportunities":
        return f"{rate_words(spec['rate_bit_s'])} in the mean"
    if course["rate_bit_s"] is not None:
        least, most = min(course["rate_bit_s"]), max(course["rate_bit_s"])
        return f"{rate_words(least)} to {rate_words(most)}" if least != most else rate_words(most)
    if course["delay_ns"] is not None:
        return f"{plain(min(course['delay_ns']) / 1e6, 3)} to {plain(max(course['delay_ns']) / 1e6, 3)} ms"
    return _figures(spec)


def _looks(plan: Plan, links: tuple[tuple[str, ...], tuple[str, ...]]) -> str:
    """Links as people call them: a model's name, or their figures."""
    specs = [cast("dict[str, Any]", plan["network"]["links"][int(way[0])]) if way else None for way in links]
    unnamed = [None if spec is None else {**spec, "name": ""} for spec in specs]
    named = _named_models().get(_text(unnamed))
    if named is not None:
        return named
    told = [_loss(spec) for spec in specs]
    # A model that loses something else is called by its name, and the loss is told.
    named = _named_models(LOSS_FIELDS).get(_text([_without(spec, LOSS_FIELDS) for spec in unnamed]))
    if named is None:
        shown = [_figures(spec) + (f" with {loss}" if loss else "") for spec, loss in zip(specs, told, strict=True)]
        both = f"{shown[0]} each way" if unnamed[0] == unnamed[1] else f"{shown[0]} up and {shown[1]} down"
        return f"link of {both}"
    if told[0] == told[1] or specs[0] is None or specs[1] is None:
        return f"{named} with {told[0] or told[1] or 'no loss'}"
    return f"{named} with {told[0] or 'no loss'} up and {told[1] or 'no loss'} down"


def _loss(spec: dict[str, Any] | None) -> str:
    """What a link loses, in words; empty for nothing."""
    loss = (spec or {}).get("loss") or {"kind": "none"}
    if loss["kind"] == "bernoulli":
        above, below = loss["probability"]
        return f"{plain(100 * above / below, 3)} % loss" if above else ""
    return {"gilbert_elliott": "bursts of loss", "bit_gilbert_elliott": "bit errors"}.get(loss["kind"], "")


@cache
def _named_models(without: tuple[str, ...] = ()) -> dict[str, str]:
    """What links of each model are called, by their plans, but for some fields. Every network of a scenario asks."""
    # Their fields take a tenth of a second to load, and the plan of an import has no links.
    from mqttlab.networks import MODELS, PLACEMENTS, place

    found: dict[str, str] = {}
    for model in MODELS.values():
        for placement in PLACEMENTS:
            placed = place(model, placement)
            title = model.title.split(" (")[0].split(", ")[0]
            title = {"4G": "LTE"}.get(title, title)
            links = [None if link is None else _without(link.plan(""), without) for link in (placed.up, placed.down)]
            found.setdefault(_text(links), f"{title} link" + (
                "" if placement in ("both", model.placement) else f" ({placement})"))
    return found


def _without(spec: dict[str, Any] | None, fields: tuple[str, ...]) -> dict[str, Any] | None:
    return None if spec is None else {name: value for name, value in spec.items() if name not in fields}


def _text(links: list[dict[str, Any] | None]) -> str:
    return json.dumps(links, sort_keys=True)


def _figures(spec: dict[str, Any] | None) -> str:
    if spec is None:
        return "no delay, rate limit or loss"
    rate = "any rate" if spec["rate_bit_s"] is None else rate_words(spec["rate_bit_s"])
    return f"{rate} and {plain(spec['delay']['mean_ns'] / 1e6)} ms"


def _clause(plan: Plan, place: tuple[Any, ...], groups: list[Group]) -> str:
    clients = sum(group["count"] for group in groups)
    named = [f"{group['count']:,} {group['name']}" if group["count"] > 1 else group["name"]
             for group in groups[:NAMED_MAX]]
    if len(groups) > NAMED_MAX:
        rest = groups[NAMED_MAX:]
        named.append(f"{sum(group['count'] for group in rest):,} clients of {len(rest)} more groups")
    who = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    if place[0] == "beside":
        return f"{who} on the host of `{plan['hosts'][place[1]]['name']}`"
    return f"{who}, {_behind(place, clients)}"
