"""``mqttlab networks``: the named models and TCP profiles, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mqttlab.console import Console, print_table
from mqttlab.digits import plain
from mqttlab.errors import UsageError
from mqttlab.mistaken import did_you_mean
from mqttlab.networks import MODELS, PLACEMENTS, PROFILES, implied, place
from mqttlab.networks.models import NetworkModel
from mqttlab.networks.tcp import TcpProfile
from mqttlab.networks.trace import about_shipped, read_trace, shipped, title_of


def show_networks(console: Console, tcp: bool, name: str | None = None) -> None:
    """Print the TCP profiles, or the network models with their placements and sources; the named one alone.

    Raises:
        UsageError: there is none of this name.
    """
    known = [*PROFILES] if tcp else [*MODELS, *shipped()]
    if name is not None and name not in known:
        what = "TCP profile" if tcp else "network model or trace"
        raise UsageError(f"there is no {what} {name!r}; {did_you_mean(name, known)}")
    models = [model for model in MODELS.values() if name in (None, model.name)]
    traces = [trace for trace in shipped() if name in (None, trace)]
    if tcp:
        _tcp_table(console, [profile for profile in PROFILES.values() if name in (None, profile.name)])
    else:
        if models:
            _network_table(console, models)
            for placement, words in PLACEMENTS.items():
                console.print(f"[bold]{placement}[/]: {words}", highlight=False)
            console.print()
        if traces:
            _trace_table(console, traces)
        console.print("Sources")
        for model in models:
            console.print(f"[bold]{model.name}[/] {model.title}: {model.source}", highlight=False)
        for trace in traces:
            console.print(f"[bold]{trace}[/] {title_of(trace)}: {about_shipped(trace)}", highlight=False)


def _network_table(console: Console, models: Sequence[NetworkModel]) -> None:
    rows = []
    for model in models:
        name, what = model.name, (_kbit(model.up.rate), _kbit(model.down.rate), _loss(model.up))
        for placement in PLACEMENTS:
            figures = implied(place(model, placement))
            rows.append((name, placement + ("*" if placement == model.placement else ""), *what,
                         plain(figures.up_ms), plain(figures.down_ms), plain(figures.round_trip_ms)))
            name, what = "", ("", "", "")
    print_table(console, "Networks (delays in ms, rates in kbit/s, * default placement)",
                ("name", "placement", "rate up", "rate down", "loss", "up", "down", "round trip"), rows, left=(0, 1),
                keys=2)


def _trace_table(console: Console, names: Sequence[str]) -> None:
    rows = []
    for name in names:
        ways = [read_trace(f"{name}/{way}", None) for way in ("up", "down")]
        rates = ["{} to {}".format(*(plain(bit_s / 1000) for bit_s in way.span("rate"))) for way in ways]
        rows.append((name, title_of(name), plain(ways[1].length_ns / 1e9), *rates))
    print_table(console, "Traces that links follow (`trace = \"name\"`; rates in kbit/s)",
                ("name", "what", "seconds", "rate up", "rate down"), rows, left=(0, 1))


def _tcp_table(console: Console, profiles: Sequence[TcpProfile]) -> None:
    heads = ("name", "control", "least RTO", "SACK", "timestamps", "MSS", "meaning")
    rows = [(profile.name, profile.congestion_control, f"{plain(profile.rto_min_ns / 1e6)} ms", _yes(profile.sack),
             _yes(profile.timestamps), "from MTU" if profile.mss_bytes is None else f"{profile.mss_bytes} B",
             profile.meaning) for profile in profiles]
    print_table(console, "TCP profiles", heads, rows, left=range(len(heads)))


def _kbit(bit_s: int | None) -> str:
    return "unlimited" if bit_s is None else plain(bit_s / 1000)


def _loss(link: Any) -> str:
    if link.burst_loss is not None:
        return "in bursts"
    return f"{plain(100 * link.loss[0] / link.loss[1])} %"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
