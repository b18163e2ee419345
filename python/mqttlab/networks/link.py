"""One direction of a link, as a scenario writes it."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)

from mqttlab.digits import TIME_UNITS, plain
from mqttlab.networks.trace import Trace, read_trace, shipped
from mqttlab.quantity import (
    HOUR_NS,
    DelayNs,
    PositiveShortDurationNs,
    ProductsThousandths,
    RateBitS,
    RatioPair,
    SizeBytes,
    shown,
    size_bytes,
)
from mqttlab.secrets import PLAIN

ZERO = (0, 1)
# `true` is no number, and "yes" no truth value, though Python would take them so.
Whole = Annotated[int, Field(strict=True)]
Truth = Annotated[bool, Field(strict=True)]


class Part(BaseModel):
    """A part of a scenario: unknown fields are refused, and nothing changes after reading.

    Modules that declare parts do without ``from __future__ import annotations``: pydantic would compile and evaluate
    each field's annotation from its text again, at every start of a command.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=False)

    def __hash__(self) -> int:
        """Equal parts have equal ones. Pydantic copies a default that has none, for each of tens of thousands of
        groups."""
        try:
            return hash((type(self), *self.__dict__.values()))
        except TypeError:
            # A list or a table among its fields.
            return hash(type(self))


def _in_parts(value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Read a long list part by part, up to the first one with mistakes: each of these takes memory."""
    if not isinstance(value, list) or len(value) <= READ_AT_ONCE:
        return read(value)
    done: list[Any] = []
    for begin in range(0, len(value), READ_AT_ONCE):
        # The models would check anew what was read. Only the last one stands there: what an argument of a command is
        # depends on the one before it.
        part, before = value[begin:begin + READ_AT_ONCE], done[-1:]
        try:
            found = read([*before, *part])
        except ValidationError:
            found = None
        if found is None:
            # All that was read stands there for the numbers of the mistakes.
            return read([*done, *part])
        done += found[len(before):]
    return done


READ_AT_ONCE = 5_000
IN_PARTS = WrapValidator(_in_parts)
"""For a list that may be long."""


class GilbertElliott(Part):
    """Loss in bursts: Gilbert and Elliott's two-state chain, one step a frame."""

    good_to_bad: RatioPair = Field(description="Probability per frame of a change from good to bad.")
    bad_to_good: RatioPair = Field(description="Probability per frame of a change from bad to good.")
    loss_good: RatioPair = Field(ZERO, description="Probability that a frame is lost in the good state.")
    loss_bad: RatioPair = Field((1, 1), description="Probability that a frame is lost in the bad state.")


class BitGilbertElliott(Part):
    """Bit errors in bursts: the same chain with one step a bit, so that long frames die more often."""

    good_to_bad: RatioPair = Field(description="Probability per bit of a change from good to bad.")
    bad_to_bad: RatioPair = Field(description="Probability per bit of staying in the bad state.")
    error_good: RatioPair = Field(ZERO, description="Bit error ratio in the good state.")
    error_bad: RatioPair = Field((1, 2), description="Bit error ratio in the bad state.")


class Queue(Part):
    """Limits of a queue; of several, what is reached first."""

    packets: Whole | None = Field(None, ge=1, le=10_000_000, description="Frames that wait or are in service.")
    bytes: SizeBytes | None = Field(None, ge=1, description="Bytes that wait or are in service.")
    time: PositiveShortDurationNs | None = Field(
        None, le=HOUR_NS, description="The bytes that the link sends in this time at its `rate`.")
    bdp: ProductsThousandths | None = Field(None, description=(
        "The bytes that the link sends at its `rate` in so many round trips (bandwidth-delay products). A round trip "
        "is the `delay` of all links on a path and back; of several paths over the link, the longest counts. Events "
        "that change a delay leave it as it was."))

    def limit_bytes(self, rate_bit_s: int | None, round_trip_ns: int) -> int | None:
        """The least of its limits in bytes on a link of this rate.

        Raises:
            ValueError: a limit needs a rate, and there is none.
        """
        limits = [] if self.bytes is None else [self.bytes]
        for ns in (self.time, None if self.bdp is None else self.bdp * round_trip_ns // 1000):
            if ns is not None and rate_bit_s is None:
                raise ValueError(f"has the queue {self.words()}, which needs a `rate`; add one, or write the queue as "
                                 "\"1000 packets\" or \"64 kB\"")
            if ns is not None and rate_bit_s is not None:
                limits.append(rate_bit_s * ns // (8 * 10**9))
        return min(limits, default=None)

    def words(self) -> str:
        """As a scenario writes it."""
        parts = [] if self.packets is None else [f"{self.packets} packets"]
        parts += [] if self.bytes is None else [f"{self.bytes} B"]
        parts += [] if self.time is None else [f"{plain(self.time / 1e6)} ms"]
        parts += [] if self.bdp is None else [f"{plain(self.bdp / 1000)} BDP"]
        return " or ".join(parts) or "without a limit"

    @property
    def by_rate(self) -> bool:
        """Whether a limit depends on the link's rate."""
        return self.time is not None or self.bdp is not None


def read_queue(value: Any) -> Any:
    """A queue limit from ``"1000 packets"``, ``"64 kB"``, ``"100 ms"`` or ``"1 BDP"``."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # A queue of less than nothing is a slip of the pen.
        near = abs(value) if math.isfinite(value) and value else 100
        raise ValueError(f"is {value}, which has no unit; write \"{near} packets\" or \"{near} B\"")
    if not isinstance(value, str):
        return value
    if match := re.fullmatch(r"\s*([0-9]{1,18})\s*packets?\s*", value):
        return {"packets": int(match[1])}
    unit = match[1] if (match := re.search(r"([A-Za-zµ]+)\s*$", value)) else ""
    if unit in TIME_UNITS:
        return {"time": value}
    if unit.upper() == "BDP":
        return {"bdp": value}
    try:
        size_bytes(value)
    except ValueError:
        raise ValueError(
            f"is {shown(value)}, which is not a queue limit; write it as \"1000 packets\", \"64 kB\", \"100 ms\" or "
            "\"1 BDP\"") from None
    return {"bytes": value}


KINDS_CALLED = {"fq_codel": "fq-codel", "fqcodel": "fq-codel", "fq codel": "fq-codel", "droptail": "tail-drop",
                "tail drop": "tail-drop", "taildrop": "tail-drop", "tail_drop": "tail-drop", "fifo": "tail-drop",
                "pfifo": "tail-drop", "bfifo": "tail-drop"}
# What goes with which disciplines.
DISCIPLINE_FIELDS = {"target": ("codel", "fq-codel"), "interval": ("codel", "fq-codel"), "flows": ("fq-codel",),
                     "quantum": ("fq-codel",), "ecn": ("codel", "fq-codel")}


def read_kind(value: Any) -> Any:
    """The name of a discipline, with a hint where others call it otherwise."""
    kinds = ("tail-drop", "codel", "fq-codel")
    if isinstance(value, str) and value not in kinds:
        called = KINDS_CALLED.get(value.lower())
        instead = f"; did you mean \"{called}\"?" if called else ""
        raise ValueError(f"is {shown(value)}, but must be one of {', '.join(kinds)}{instead}")
    return value


class Discipline(Part):
    """Which frame leaves a queue next, and which is dropped."""

    kind: Annotated[Literal["tail-drop", "codel", "fq-codel"], BeforeValidator(read_kind)] = Field(description=(
        "`tail-drop`: a frame that finds no room; `codel`: frames at the head while all stay too long (RFC 8289); "
        "`fq-codel`: a queue for each direction of a connection, served in turns, each under CoDel (RFC 8290)."))
    target: PositiveShortDurationNs = Field(5_000_000, ge=1000, le=HOUR_NS, description=(
        "CoDel drops nothing while a frame stays for less; on a slow link not below the time of one packet."))
    interval: PositiveShortDurationNs = Field(100_000_000, ge=1000, le=HOUR_NS, description=(
        "CoDel drops nothing before frames have stayed too long for this time: about the longest usual round trip."))
    flows: Whole = Field(1_024, ge=1, le=65_536, description="Queues that `fq-codel` spreads connections over.")
    quantum: SizeBytes | None = Field(None, ge=64, le=10_000_000, description=(
        "Bytes that a queue of `fq-codel` sends in its turn; the largest frame when left out."))
    ecn: Truth = Field(False, description=(
        "CoDel marks frames of hosts with `tcp = { ecn = true }` instead of dropping them (RFC 3168). What finds no "
        "room is dropped all the same."))

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        for name, kinds in DISCIPLINE_FIELDS.items():
            if name in self.model_fields_set and self.kind not in kinds:
                goes = " and ".join(f"\"{kind}\"" for kind in kinds)
                raise ValueError(f"is \"{self.kind}\", but has `{name}`, which goes with {goes}; leave it out")
        if self.target > self.interval:
            raise ValueError(f"has a `target` of {plain(self.target / 1e6)} ms, longer than its `interval` of "
                             f"{plain(self.interval / 1e6)} ms; use a shorter `target` or a longer `interval`")
        return self

    def words(self) -> str:
        """As ``check`` tells it."""
        if self.kind == "tail-drop":
            return self.kind
        marks = ", marks instead of drops" if self.ecn else ""
        return f"{self.kind} with a target of {plain(self.target / 1e6)} ms in {plain(self.interval / 1e6)} ms{marks}"

    def plan(self, largest_frame_bytes: int) -> dict[str, Any]:
        """As the plan has it, on a link with frames up to this size."""
        planned: dict[str, Any] = {"kind": self.kind.replace("-", "_")}
        if self.kind != "tail-drop":
            planned |= {"target_ns": self.target, "interval_ns": self.interval,
                        "largest_frame_bytes": largest_frame_bytes, "ecn": self.ecn}
        if self.kind == "fq-codel":
            planned |= {"flows": self.flows, "quantum_bytes": self.quantum or max(64, largest_frame_bytes)}
        return planned


TAIL_DROP = Discipline.model_construct(kind="tail-drop", target=5_000_000, interval=100_000_000, flows=1_024,
                                       quantum=None, ecn=False)


def read_discipline(value: Any) -> Any:
    """A discipline from its kind alone, such as ``"fq-codel"``."""
    return {"kind": value} if isinstance(value, str) else value


class Policer(Part):
    """A token bucket without a queue: frames that exceed it are dropped."""

    rate: RateBitS = Field(description="Data rate that may pass for ever.")
    burst: SizeBytes = Field(ge=1, le=1_000_000_000, description=(
        "Bytes that may pass at once after a silence, with the link's `overhead`; room for one packet at least."))

    def words(self) -> str:
        """As ``check`` tells it."""
        return f"policer {plain(self.rate / 1000)} kbit/s with bursts of {self.burst} B"


class Reorder(Part):
    """Reordering, as netem does it: a frame skips the delay and overtakes those before it."""

    probability: RatioPair = Field(description="Probability that a frame is reordered.")
    gap: Whole = Field(
        1, ge=1, le=1_000_000, description="Reorder every Nth frame at most; 1: any frame may be reordered.")


def _read_trace(value: Any, info: ValidationInfo) -> Trace:
    """A trace that is known, else from a file beside the scenario's."""
    context = info.context or {}
    known = context.get("traces") or {}
    return known[value] if isinstance(value, str) and value in known else read_trace(value, context.get("directory"))


TraceFile = Annotated[
    InstanceOf[Trace], BeforeValidator(_read_trace), WithJsonSchema({"type": "string", "examples": ["drive.csv"]}),
    PLAIN]
TRACE_END = Field(None, description=(
    "After the last line of the trace: it begins again (`loop`, the default), or its last values stay (`hold`)."))


class LinkDirection(Part):
    """One direction: a queue, a transmitter, a channel."""

    rate: RateBitS | None = Field(None, description="Data rate; leave it out for a link without transmission time.")
    delay: DelayNs = Field(0, description="Propagation delay; its mean where it varies.")
    jitter: DelayNs = Field(0, description="Standard deviation of the delay; half its width when uniform.")
    distribution: Literal["constant", "uniform", "normal", "pareto", "paretonormal"] | None = Field(
        None, description="Distribution of the delay; default `normal` with a jitter, `constant` without.")
    correlation: RatioPair = Field(ZERO, description="Correlation of a frame's delay with the last one's.")
    keep_order: Truth = Field(True, description="Frames arrive in order even where their delays vary.")
    loss: RatioPair = Field(ZERO, description="Probability that a frame is lost, independently of others.")
    burst_loss: GilbertElliott | None = Field(None, description="Loss in bursts of frames; instead of `loss`.")
    bit_errors: BitGilbertElliott | None = Field(None, description="Loss by bit errors; instead of `loss`.")
    loss_at: Literal["entry", "exit"] = Field(
        "exit", description="`exit`: a lost frame uses the link's time; `entry`: it does not, as in netem.")
    duplicate: RatioPair = Field(ZERO, description="Probability that a frame arrives twice.")
    corrupt: RatioPair = Field(ZERO, description="Probability that one bit of a frame is flipped.")
    reorder: Reorder | None = Field(None, description="Reordering of frames.")
    queue: Annotated[Queue, BeforeValidator(read_queue, json_schema_input_type=Queue | str)] = Field(
        Queue(packets=1000, bytes=None), description=(
            "What may wait: `\"1000 packets\"`, `\"64 kB\"`, `\"100 ms\"` at the link's rate, or `\"1 BDP\"`, its rate "
            "times the round trip of its path."))
    discipline: Annotated[
        Discipline, BeforeValidator(read_discipline, json_schema_input_type=Discipline | str)] = Field(
        TAIL_DROP, description=(
            "Which frame leaves the queue next, and which is dropped: `\"tail-drop\"`, `\"codel\"` or "
            "`\"fq-codel\"`."))
    policer: Policer | None = Field(None, description=(
        "Drops what comes faster than its `rate`, but for bursts: a token bucket before the queue, such as "
        "`{ rate = \"1 Mbit/s\", burst = \"15 kB\" }` (RFC 2697, `tc-police`)."))
    queue_counts_delay_line: Truth = Field(False, description=(
        "Frames that propagate count as waiting, as in netem. With `loss_at = \"exit\"` lost frames do, too."))
    overhead: SizeBytes = Field(
        0, le=65_535,
        description="Added to each IP packet: 14 B for an Ethernet header, 38 B with Ethernet's check sequence, "
                    "preamble and gap.")
    minimum_frame: SizeBytes = Field(
        0, le=65_535, description="Shorter frames are padded to this.")
    trace: TraceFile | None = Field(None, description=(
        "Rate, delay, jitter and loss over time: a file beside the scenario, Mahimahi's or CSV, or a trace of mqttlab "
        "such as `\"starlink\"` (`mqttlab networks`). The guide is [Follow a trace](../how-to/traces.md)."))
    trace_end: Literal["loop", "hold"] | None = TRACE_END

    @model_validator(mode="before")
    @classmethod
    def _has_means(cls, values: Any, info: ValidationInfo) -> Any:
        """What the trace has values of is its mean for all that looks at one number."""
        if not isinstance(values, dict) or values.get("trace") is None:
            if isinstance(values, dict) and values.get("trace_end") is not None:
                raise ValueError("has `trace_end` without `trace`; add a `trace`, or leave `trace_end` out")
            return values
        try:
            trace = _read_trace(values["trace"], info)
        except ValueError:
            # The field itself says what is wrong.
            return values
        written = {"burst_loss": "loss", "bit_errors": "loss"}
        for name in values:
            if written.get(name, name) in trace.sets and values[name] is not None:
                raise ValueError(f"has `{name}` and a `trace` with a column of `{written.get(name, name)}`; leave "
                                 f"`{name}` out, or the column")
        return {**values, **trace.fields(), "trace": trace}

    @model_validator(mode="after")
    def _end_of_trace(self) -> Self:
        if self.trace is not None and self.trace_end == "hold" and self.trace.is_opportunities:
            raise ValueError("has `trace_end = \"hold\"`, but a packet-delivery trace has no last value to hold; leave "
                             "it out, or use a CSV with a rate")
        return self

    @model_validator(mode="after")
    def _one_loss(self) -> Self:
        given = [self.loss != ZERO, self.burst_loss is not None, self.bit_errors is not None]
        if sum(given) > 1:
            raise ValueError("has more than one of `loss`, `burst_loss` and `bit_errors`; keep one")
        if self.jitter > 0 and self.distribution == "constant":
            raise ValueError("has a `jitter`, but its `distribution` is \"constant\"; leave one of them out")
        if self.distribution not in (None, "constant") and self.jitter == 0:
            raise ValueError(
                f"has the distribution \"{self.distribution}\" without a `jitter`; add one, such as \"5 ms\"")
        if self.queue_counts_delay_line and self.discipline.kind == "fq-codel":
            raise ValueError("has `queue_counts_delay_line` with the discipline \"fq-codel\", which has no queue that "
                             "a frame on its way could wait in; leave one of them out")
        return self

    def largest_frame(self, mtu: int) -> int:
        """The bytes that the link counts for the largest IP packet."""
        return max(mtu + self.overhead, self.minimum_frame)

    def plan(self, name: str, mtu: int = 1500, round_trip_ns: int = 0) -> dict[str, Any]:
        """The link as the plan has it (``LinkSpec`` of the engine); MTU and round trip are for its queue.

        Raises:
            ValueError: its queue's limit needs a rate.
        """
        law = self.distribution or ("normal" if self.jitter else "constant")
        overtakes = self.reorder.probability if self.reorder else ZERO
        return {
            "name": name,
            "rate_bit_s": self.rate,
            "overhead_bytes": self.overhead,
            "minimum_frame_bytes": self.minimum_frame,
            "queue": {"limit_packets": self.queue.packets,
                      "limit_bytes": self.queue.limit_bytes(self.rate, round_trip_ns),
                      "counts_delay_line": self.queue_counts_delay_line,
                      "discipline": self.discipline.plan(self.largest_frame(mtu))},
            "delay": {"law": law, "mean_ns": self.delay, "jitter_ns": self.jitter,
                      "correlation": list(self.correlation), "keep_order": self.keep_order},
            "loss": self._plan_loss(),
            "loss_at": self.loss_at,
            "duplication": list(self.duplicate),
            "corruption": list(self.corrupt),
            "reordering": {"probability": list(overtakes), "gap": self.reorder.gap if self.reorder else 1},
            "policer": self.policer and {"rate_bit_s": self.policer.rate, "burst_bytes": self.policer.burst},
        }

    def _plan_loss(self) -> dict[str, Any]:
        if self.burst_loss is not None:
            return {"kind": "gilbert_elliott", **_lists(self.burst_loss)}
        if self.bit_errors is not None:
            return {"kind": "bit_gilbert_elliott", **_lists(self.bit_errors)}
        if self.loss == ZERO:
            return {"kind": "none"}
        return {"kind": "bernoulli", "probability": list(self.loss)}


def _lists(part: Part) -> dict[str, Any]:
    return {name: list(value) for name, value in part.model_dump().items()}


def with_trace(values: Any, models: Mapping[str, Any], info: ValidationInfo) -> Any:
    """The values of a network whose links follow its trace, each in its own direction."""
    trace = values.get("trace") if isinstance(values, dict) else None
    if not isinstance(trace, str):
        return values
    try:
        _read_trace(trace, info)
    except ValueError:
        # The field itself says what is wrong.
        return values
    placement = values.get("placement") or getattr(models.get(str(values.get("model"))), "placement", None)
    ways = ("down",) if placement in ("egress-at-broker", "shared-medium") else ("up", "down")
    made = dict(values)
    for way in ways:
        link = values.get(way)
        if link is not None and not isinstance(link, dict):
            continue
        followed = {"trace": f"{trace}/{way}" if trace in shipped() else trace}
        if values.get("trace_end") is not None:
            followed["trace_end"] = values["trace_end"]
        made[way] = followed | (link or {})
    return made
