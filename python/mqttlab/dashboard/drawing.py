"""A drawing of a plan: hosts, links, servers and groups, as SVG. Names stand in it as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqttlab.dashboard.topology import Topology, servers_of, topology
from mqttlab.foreign import markup
from mqttlab.plurals import counted

RING = 150
GROUPS_SHOWN = 6
HOSTS_MAX = 60
COLOURS = {"server": "#D55E00", "clients": "#0072B2", "junction": "#8a8f98"}


def drawn(plan: Mapping[str, Any]) -> tuple[str, str]:
    """The drawing as SVG, and the same in words."""
    joined = topology(plan)
    servers = servers_of(plan)
    groups: dict[int, list[str]] = {}
    for group in plan.get("groups") or ():
        for host in _hosts(group, joined.hosts):
            groups.setdefault(host, []).append(f"{group['name']} × {group['count']}")
    words = _words(joined, servers, groups)
    if len(joined.names) > HOSTS_MAX:
        return "", f"{words} (more than {HOSTS_MAX} hosts and junctions are not drawn)"
    places = [(RING * x, RING * y) for x, y in joined.places(servers)]
    left, right = min((x for x, _ in places), default=0) - 130, max((x for x, _ in places), default=0) + 130
    # Room for a host's name, its server, its groups and how many more there are.
    below = 26 + 15 * (GROUPS_SHOWN + 2)
    top, bottom = min((y for _, y in places), default=0) - 46, max((y for _, y in places), default=0) + below
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} {top:.0f} {right - left:.0f} '
             f'{bottom - top:.0f}" font-family="system-ui, sans-serif" font-size="12">']
    for edge in joined.edges:
        (x1, y1), (x2, y2) = places[edge.first], places[edge.second]
        style = "" if edge.link else ' stroke-dasharray="4"'
        parts.append(f'<line x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}" stroke="#8a8f98" '
                     f'stroke-width="2"{style}/>')
    for number, (name, (x, y)) in enumerate(zip(joined.names, places, strict=True)):
        role = "server" if number in servers else "clients" if number in groups else "junction"
        lines = [name, *([f"server {servers[number]}"] if number in servers else []),
                 *groups.get(number, [])[:GROUPS_SHOWN]]
        more = len(groups.get(number, [])) - GROUPS_SHOWN
        lines += [f"and {counted(more, 'more group')}"] if more > 0 else []
        parts.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{11 if role == "server" else 8}" fill="{COLOURS[role]}"/>')
        parts += [f'<text x="{x:.0f}" y="{y + 26 + 15 * line:.0f}" text-anchor="middle" fill="#1c2733" '
                  f'font-weight="{400 if line else 600}">{markup(text)}</text>' for line, text in enumerate(lines)]
    return "".join([*parts, "</svg>"]), words


def _hosts(group: Mapping[str, Any], hosts: int) -> list[int]:
    """The hosts that a group's clients are on."""
    first, step, count = int(group.get("host", 0)), int(group.get("host_step") or 0), int(group.get("count", 1))
    count = min(count, int(group.get("hosts_in_turn") or count))
    return [first] if not step else [first + step * number for number in range(min(count, hosts))
                                     if first + step * number < hosts]


def _words(joined: Topology, servers: Mapping[int, str], groups: Mapping[int, list[str]]) -> str:
    parts = []
    for number, name in enumerate(joined.names[:joined.hosts]):
        there = ([f"server {servers[number]}"] if number in servers else []) + groups.get(number, [])[:GROUPS_SHOWN]
        parts.append(f"{name}: {', '.join(there)}" if there else name)
    joins = [f"{joined.names[edge.first]} to {joined.names[edge.second]} by {edge.link}"
             for edge in joined.edges if edge.link]
    return "; ".join([*parts[:HOSTS_MAX], *joins[:HOSTS_MAX]])
