"""TCP: its fields in a scenario, and the stacks that studies ran on.

Everything about a stack is declared here and nowhere else. The plan carries it to the engine in two parts: the fields
that a kernel can be told, which each host has (``hosts[].tcp``), and a stack's behaviour that has no such field
(``sim.tcp_stacks``, by the profile's name), for the simulator. What each field does is said where it is read, in
``crates/tcp/src/profile.rs``.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from mqttlab.mistaken import closest
from mqttlab.networks.link import Part, Truth, Whole
from mqttlab.quantity import HOUR_NS, PositiveDurationNs, PositiveShortDurationNs, SizeBytes, shown
from mqttlab.secrets import PlainText

MS = 10**6
S = 10**9
BUFFER_BYTES_MAX = 2**26


class Tcp(Part):
    """A host's TCP: a profile, and what differs from it."""

    profile: PlainText = Field(
        "linux", description="Default values of the fields below; `mqttlab networks --tcp` lists the profiles.")
    congestion_control: Literal["reno", "cubic", "bbr"] | None = Field(None, description="Congestion control.")
    sack: Truth | None = Field(None, description="Selective acknowledgements.")
    timestamps: Truth | None = Field(None, description="Timestamps option.")
    window_scaling: Truth | None = Field(None, description="Window scaling.")
    rto_min: PositiveShortDurationNs | None = Field(
        None, le=HOUR_NS, serialization_alias="rto_min_ns",
        description="Minimum retransmission timeout. On Linux it caps the delayed acknowledgement too.")
    rto_max: PositiveDurationNs | None = Field(
        None, le=24 * HOUR_NS, serialization_alias="rto_max_ns", description="Maximum retransmission timeout.")
    delayed_ack: Truth | None = Field(None, description="`false` acknowledges every segment at once.")
    delayed_ack_max: PositiveShortDurationNs | None = Field(
        None, le=HOUR_NS, serialization_alias="delayed_ack_max_ns",
        description="Longest delay of an acknowledgement. Simulated stacks with a periodic timer for "
        "acknowledgements (netbsd-2005, microcontroller) use it as their period.")
    initial_window: Whole | None = Field(
        None, ge=1, le=100, serialization_alias="initial_window_segments",
        description="Initial congestion window in segments.")
    mss: SizeBytes | None = Field(
        None, ge=88, le=65_495, serialization_alias="mss_bytes", description="Maximum segment size.")
    send_buffer: SizeBytes | None = Field(
        None, ge=2048, le=BUFFER_BYTES_MAX, serialization_alias="send_buffer_bytes",
        description="Send buffer; automatic when left out.")
    receive_buffer: SizeBytes | None = Field(
        None, ge=2048, le=BUFFER_BYTES_MAX, serialization_alias="receive_buffer_bytes",
        description="Receive buffer; automatic when left out.")
    tail_loss_probe: Truth | None = Field(None, description="Tail loss probes; they need `sack`.")
    ecn: Truth | None = Field(None, description=(
        "Explicit congestion notification (RFC 3168), with hosts that have it, too. A queue marks frames instead of "
        "dropping them where its `discipline` has `ecn = true`. `netbsd-2005` is older than NetBSD's and refuses it."))
    syn_retries: Whole | None = Field(None, ge=0, le=127, description="Number of repetitions of a SYN.")
    syn_linear_retries: Whole | None = Field(
        None, ge=0, le=127, description="Number of these repetitions that come every 1 s, before the interval doubles.")

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, values: Any) -> Any:
        if not isinstance(values, str):
            return values
        near = closest(values, PROFILES) or "linux"
        raise ValueError(f"is {shown(values)}, but must be a table, such as {{ profile = {shown(near)} }}")

    @model_validator(mode="after")
    def _of_its_time(self) -> Self:
        if self.ecn and self.profile in PROFILES and not PROFILES[self.profile].ecn_possible:
            raise ValueError(f"has `ecn = true`, but the stack of {shown(self.profile)} did not know it; leave it out, "
                             "or use the profile \"linux\"")
        return self

    def plan(self) -> dict[str, Any]:
        """The plan's ``TcpPlan``: the profile, and what differs from it."""
        given = self.model_dump(by_alias=True, exclude_none=True, exclude={"profile"})
        return PROFILES[self.profile].plan(given)


@dataclass(frozen=True, kw_only=True)
class TcpStack:
    """A stack's behaviour that no kernel lets be set, with the values of Linux 6.x. The plan's ``Stack``."""

    timestamp_tick_ns: int = MS
    echoes_repetitions: bool = True
    dsack: bool = True
    limited_transmit: bool = True
    fresh_is_no_duplicate: bool = True
    rack: bool = True
    rate_reduction: bool = True
    undo: bool = True
    window_unit: Literal["segments", "bytes"] = "segments"
    slow_start_after_idle: bool = True
    rto_initial_ns: int = S
    rto_floor: Literal["timeout", "variance"] = "variance"
    retries: int = 15
    syn_echoes_latest: bool = False
    delayed_ack: dict[str, Any]
    nagle: Literal["classic", "minshall"] = "minshall"
    skb_coalescing: bool = True
    truesize: bool = True
    half_window_segments: bool = True
    # Where the profile sets no send buffer: `tcp_wmem`. It grows with the congestion window.
    send_buffer_bytes: int = 16_384
    send_buffer_bytes_max: int = 4 * 2**20
    # Where the profile sets no window scale or receive buffer: automatic tuning that has settled.
    window_scale: int = 7
    receive_buffer_bytes: int = 3 * 2**20
    keep_alive: dict[str, int] | None = None
    time_wait_ns: int = 60 * S
    granularity: dict[str, Any]


LINUX = TcpStack(
    delayed_ack={"kind": "adaptive", "min_ns": 40 * MS, "max_ns": 200 * MS},
    granularity={"kind": "wheel", "tick_ns": 4 * MS},
)
# A minimum RTO of 30 ms needs a timestamp clock that is finer than that release's of 500 ms.
NETBSD = replace(
    LINUX, echoes_repetitions=False, dsack=False, limited_transmit=False, fresh_is_no_duplicate=False, rack=False,
    rate_reduction=False, undo=False, window_unit="bytes", rto_initial_ns=3 * S, rto_floor="timeout", retries=12,
    syn_echoes_latest=True, nagle="classic", skb_coalescing=False, truesize=False,
    half_window_segments=False,
    delayed_ack={"kind": "every_second", "timeout_ns": 200 * MS},
    granularity={"kind": "fast_slow", "fast_ns": 200 * MS, "slow_ns": 0},
)
# lwIP's timers.
LWIP = replace(
    NETBSD, slow_start_after_idle=False, time_wait_ns=120 * S,
    delayed_ack={"kind": "every_second", "timeout_ns": 250 * MS},
    granularity={"kind": "fast_slow", "fast_ns": 250 * MS, "slow_ns": 500 * MS},
)


# What no plan has.
OF_PROFILE = {"name", "meaning", "stack", "ecn_possible"}


@dataclass(frozen=True, kw_only=True)
class TcpProfile:
    """A named stack with the values of all fields of the plan's TCP; those of Linux where nothing else is said."""

    name: str
    meaning: str
    stack: TcpStack = LINUX
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
    ecn: bool = False
    ecn_possible: bool = True
    """Whether the stack had it; of ``microcontroller``, which is no stack of a date, it may be tried."""
    syn_retries: int = 6
    syn_linear_retries: int = 4

    def plan(self, overrides: dict[str, Any]) -> dict[str, Any]:
        """The plan's ``TcpPlan`` with some fields replaced."""
        fields = {name: value for name, value in asdict(self).items() if name not in OF_PROFILE}
        return {"profile": self.name, **fields, **overrides}


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
            "buffers of 32 segments", stack=NETBSD, congestion_control="reno", sack=False, window_scaling=False,
            rto_min_ns=30 * MS, rto_max_ns=64 * S, delayed_ack_max_ns=200 * MS, initial_window_segments=2,
            mss_bytes=536, send_buffer_bytes=32 * 536, receive_buffer_bytes=32 * 536, tail_loss_probe=False,
            syn_linear_retries=0,
            # NetBSD's was first tried in August 2006 (tech-net, 17 August 2006: "TCP ECN summer of code project").
            ecn_possible=False,
        ),
        TcpProfile(
            name="microcontroller", meaning="lwIP-like: small buffers, no options but MSS", stack=LWIP,
            congestion_control="reno", sack=False, timestamps=False, window_scaling=False, rto_min_ns=500 * MS,
            rto_max_ns=60 * S, initial_window_segments=2, mss_bytes=536, send_buffer_bytes=4 * 536,
            receive_buffer_bytes=4 * 536, tail_loss_probe=False, syn_linear_retries=0,
        ),
    )
}


def stacks(profiles: set[str]) -> dict[str, Any]:
    """The plan's ``tcp_stacks``: the behaviour of the profiles that are in use."""
    return {name: asdict(PROFILES[name].stack) for name in sorted(profiles)}
