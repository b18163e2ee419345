"""One direction of a link, as a scenario writes it."""

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

from mqttlab.networks.trace import Trace, read_trace, shipped
from mqttlab.quantity import DelayNs, RateBitS, RatioPair, SizeBytes, shown, size_bytes
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
    """Limits of a queue."""

    packets: Whole | None = Field(None, ge=1, le=10_000_000, description="Frames that wait or are in service.")
    bytes: SizeBytes | None = Field(None, ge=1, description="Bytes that wait or are in service.")


def read_queue(value: Any) -> Any:
    """A queue limit from ``"1000 packets"`` or ``"64 kB"``."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise ValueError(f"is {value}, which has no unit; write \"{value} packets\" or \"{value} B\"")
    if not isinstance(value, str):
        return value
    if match := re.fullmatch(r"\s*(\d{1,18})\s*packets?\s*", value):
        return {"packets": int(match[1])}
    try:
        size_bytes(value)
    except ValueError:
        raise ValueError(
            f"is {shown(value)}, which is not a queue limit; write it as \"1000 packets\" or \"64 kB\"") from None
    return {"bytes": value}


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
        Queue(packets=1000, bytes=None), description="What may wait: `\"1000 packets\"` or `\"64 kB\"`.")
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
        return self

    def plan(self, name: str) -> dict[str, Any]:
        """The link as the plan has it (``LinkSpec`` of the engine)."""
        law = self.distribution or ("normal" if self.jitter else "constant")
        overtakes = self.reorder.probability if self.reorder else ZERO
        return {
            "name": name,
            "rate_bit_s": self.rate,
            "overhead_bytes": self.overhead,
            "minimum_frame_bytes": self.minimum_frame,
            "queue": {"limit_packets": self.queue.packets, "limit_bytes": self.queue.bytes,
                      "counts_delay_line": self.queue_counts_delay_line},
            "delay": {"law": law, "mean_ns": self.delay, "jitter_ns": self.jitter,
                      "correlation": list(self.correlation), "keep_order": self.keep_order},
            "loss": self._plan_loss(),
            "loss_at": self.loss_at,
            "duplication": list(self.duplicate),
            "corruption": list(self.corrupt),
            "reordering": {"probability": list(overtakes), "gap": self.reorder.gap if self.reorder else 1},
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
