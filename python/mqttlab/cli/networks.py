"""``mqttlab networks``: the named models and TCP profiles, as tables."""

from __future__ import annotations

from typing import Any

from rich import box
from rich.table import Table

from mqttlab.console import Console
from mqttlab.networks import MODELS, PLACEMENTS, PROFILES, implied, place


def show_networks(console: Console, tcp: bool) -> None:
    """Print the TCP profiles, or the network models with their placements and sources."""
    console.print(_tcp_table() if tcp else _network_table())
    if not tcp:
        for name, words in PLACEMENTS.items():
            console.print(f"[bold]{name}[/]: {words}", highlight=False)
        console.print()
        console.print("Sources")
        for model in MODELS.values():
            console.print(f"[bold]{model.name}[/] {model.title}: {model.source}", highlight=False)


def _network_table() -> Table:
    table = Table(title="Networks (delays in ms, rates in kbit/s, * default placement)",
                  title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("name", "rate up", "rate down", "loss", "placement", "up", "down", "round trip"):
        words = column in ("name", "placement")
        table.add_column(column, justify="left" if words else "right", no_wrap=words)
    for model in MODELS.values():
        what = (model.name, _kbit(model.up.rate), _kbit(model.down.rate), _loss(model.up))
        for placement in PLACEMENTS:
            figures = implied(place(model, placement))
            table.add_row(
                *what, placement + ("*" if placement == model.placement else ""),
                f"{figures.up_ms:g}", f"{figures.down_ms:g}", f"{figures.round_trip_ms:g}",
            )
            what = ("", "", "", "")
    return table


def _tcp_table() -> Table:
    table = Table(title="TCP profiles", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("name", "control", "least RTO", "SACK", "timestamps", "MSS", "meaning"):
        table.add_column(column, no_wrap=column == "name")
    for profile in PROFILES.values():
        table.add_row(
            profile.name, profile.congestion_control, f"{profile.rto_min_ns / 1e6:g} ms", _yes(profile.sack),
            _yes(profile.timestamps), "from MTU" if profile.mss_bytes is None else f"{profile.mss_bytes} B",
            profile.meaning,
        )
    return table


def _kbit(bit_s: int | None) -> str:
    return "unlimited" if bit_s is None else f"{bit_s / 1000:g}"


def _loss(link: Any) -> str:
    if link.burst_loss is not None:
        return "in bursts"
    return f"{100 * link.loss[0] / link.loss[1]:g} %"


def _yes(value: bool) -> str:
    return "yes" if value else "no"
