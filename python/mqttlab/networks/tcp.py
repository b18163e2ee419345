"""TCP profiles: the stacks that studies ran on, as the fields that kernel and simulator both have."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

MS = 10**6
S = 10**9


@dataclass(frozen=True, kw_only=True)
class TcpProfile:
    """A named set of the plan's TCP fields."""

    name: str
    meaning: str
    congestion_control: str = "cubic"
    sack: bool = True
    timestamps: bool = True
    window_scaling: bool = True
    rto_min_ns: int = 200 * MS
    rto_max_ns: int = 120 * S
    delayed_ack: bool = True
    delayed_ack_max_ns: int | None = None
    initial_window_segments: int = 10
    mss_bytes: int | None = None
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    tail_loss_probe: bool = True
    syn_retries: int = 6
    syn_linear_retries: int = 4

    def plan(self, overrides: dict[str, Any]) -> dict[str, Any]:
        """The plan's ``TcpPlan`` with some fields replaced."""
        fields = asdict(replace(self, **overrides))
        fields.pop("meaning")
        return {"profile": fields.pop("name"), **fields}


PROFILES: dict[str, TcpProfile] = {
    profile.name: profile
    for profile in (
        TcpProfile(name="linux", meaning="Linux of today, CUBIC pinned (the kernel's own default may be another)"),
        TcpProfile(name="linux-bbr", meaning="Linux of today with BBR", congestion_control="bbr"),
        TcpProfile(name="linux-2021", meaning="Linux 5.x: no linear SYN timeouts (they came with 6.5)",
                   syn_linear_retries=0),
        TcpProfile(name="linux-2018", meaning="Linux 4.x as schuhmacher2018 ran", syn_linear_retries=0),
        TcpProfile(name="linux-reno", meaning="Linux of today with NewReno", congestion_control="reno"),
        TcpProfile(
            name="netbsd-2005", meaning="NetBSD's TCP as perez2005 modelled it: NewReno, no SACK, 30 ms minimum RTO, "
            "buffers of 32 segments", congestion_control="reno", sack=False, window_scaling=False,
            rto_min_ns=30 * MS, rto_max_ns=64 * S, delayed_ack_max_ns=200 * MS, initial_window_segments=2,
            mss_bytes=536, send_buffer_bytes=32 * 536, receive_buffer_bytes=32 * 536, tail_loss_probe=False,
            syn_linear_retries=0,
        ),
        TcpProfile(
            name="microcontroller", meaning="lwIP-like: small buffers, no options but MSS", congestion_control="reno",
            sack=False, timestamps=False, window_scaling=False, rto_min_ns=500 * MS, rto_max_ns=60 * S,
            initial_window_segments=2, mss_bytes=536, send_buffer_bytes=4 * 536, receive_buffer_bytes=4 * 536,
            tail_loss_probe=False, syn_linear_retries=0,
        ),
    )
}
