"""What clients publish: topic, payload, and when messages are due.

Every field says in its description what it does; ``docs/reference/scenario.md`` is generated from them.
"""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from mqttlab.digits import plain
from mqttlab.mistaken import UserFileError, readable
from mqttlab.networks.link import Part, Truth, Whole
from mqttlab.quantity import (
    DURATION,
    DURATION_NS_MAX,
    IntervalNs,
    IntervalOrNoneNs,
    PositiveDurationNs,
    SecondsNs,
    ShortDurationNs,
    SizeBytes,
    shown,
    size_bytes,
)
from mqttlab.scenario.beside import FileBeside
from mqttlab.scenario.documents import BYTES as DOCUMENTS
from mqttlab.scenario.documents import document
from mqttlab.scenario.mqtt import MQTT_5, Qos
from mqttlab.scenario.replay import ReplayTable, read_table
from mqttlab.scenario.template import payload_template, usual_bytes
from mqttlab.scenario.topics import property_data, property_text, published_topic, topic_of_answers
from mqttlab.secrets import PlainText

PAYLOAD_BYTES_MAX = 10_000_000
STAGES_MAX = 1_000
# As the engine makes pictures of 20 × 20 pixels, and the least that it makes (crates/plan, payload and bounds.rs).
SIZES: dict[str, int] = {"jpeg": 870, "png": 1_354, **DOCUMENTS}
SMALLEST = {"jpeg": 800, "png": 200}
NAMED = ("gps", "image", *SIZES)
"""Kinds that need no further field."""
USER_PROPERTIES_MAX = 100


PropertyText = Annotated[PlainText, AfterValidator(property_text)]


class Payload(Part):
    """Content of a message."""

    kind: Literal["fixed", "random", "gps", "image", "jpeg", "png", "alert", "report", "file", "template"] = Field(
        "fixed", description="Kind of content; `template` where there is one.")
    size: SizeBytes | None = Field(
        None, le=PAYLOAD_BYTES_MAX, description="For `fixed` and `random`: up to 10 MB. For `template`: spaces at the "
        "end fill a shorter message up. Of pictures (`jpeg`, from 800 B, and `png`, from 200 B), alerts and reports: "
        "870 B, 1354 B, 400 B and 1300 B when left out.")
    path: FileBeside | None = Field(None, description=(
        "For `file`: relative to the scenario's file, else to the working directory."))
    template: Annotated[PlainText, AfterValidator(payload_template)] | None = Field(
        None, description="For `template`: a text, such as JSON, in which "
        "`{client}`, `{group}`, `{sequence}`, `{time}`, `{random:…}` and `{identity}` are filled in. The guide is [Say "
        "what messages carry](../how-to/payloads.md).")

    @model_validator(mode="before")
    @classmethod
    def _of_a_template(cls, given: Any) -> Any:
        return {"kind": "template", **given} if isinstance(given, dict) and "template" in given else given

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        for field, needing, having in (
            ("size", ("fixed", "random"), ("template", *SIZES)), ("path", ("file",), ()),
            ("template", ("template",), ()),
        ):
            given = getattr(self, field) is not None
            if given and self.kind not in (*needing, *having):
                raise ValueError(f"is of kind \"{self.kind}\", which has no `{field}`")
            if not given and self.kind in needing:
                raise ValueError(f"is of kind \"{self.kind}\", which needs a `{field}`")
        if self.size is not None and self.size < SMALLEST.get(self.kind, 0):
            raise ValueError(f"is a \"{self.kind}\" of {self.size} B, but has room for a picture from "
                             f"{SMALLEST[self.kind]} B on; use {SMALLEST[self.kind]} B or more")
        return self

    @property
    def text(self) -> tuple[str, int | None] | None:
        """The template of a message and the size up to which it is filled; ``None`` of a message that is no text."""
        if self.kind in DOCUMENTS:
            return document(self.kind, self.size)
        return None if self.template is None else (self.template, self.size)

    @property
    def usual_bytes(self) -> int | None:
        """The length of a message, of texts a usual one; ``None`` where no field says it."""
        if self.text is not None:
            return usual_bytes(*self.text)
        return SIZES.get(self.kind) if self.size is None else self.size


def file_problem(path: Path | None) -> str | None:
    """What is wrong with the file of a payload."""
    if path is None:
        return None
    try:
        with readable(path, PAYLOAD_BYTES_MAX, "a payload"):
            return None
    except UserFileError as error:
        return f"is {shown(str(path))}, which {error}"


def read_payload(value: Any) -> Any:
    """A payload from ``"gps"``, ``"image"`` or a size."""
    if isinstance(value, dict):
        return value
    if value in NAMED:
        return {"kind": value}
    try:
        size_bytes(value)
    except ValueError:
        if re.match(r"[\s\d.+-]+", str(value)):
            raise
        raise ValueError(
            f"is {shown(value)}, which is not a payload; write a size such as \"200 B\", a kind such as "
            f"{', '.join(shown(name) for name in NAMED)}, or a table"
        ) from None
    return {"kind": "fixed", "size": value}


PayloadOrSize = Annotated[Payload, BeforeValidator(read_payload, json_schema_input_type=Payload | str)]


class Burst(Part):
    """Several messages at once, then a pause."""

    size: Whole = Field(ge=1, le=1_000_000, description="Messages in a burst.")
    every: PositiveDurationNs = Field(ge=1000, description="From the start of one burst to the start of the next.")
    gap: ShortDurationNs = Field(0, description="Between the messages of a burst.")

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.size * self.gap > DURATION_NS_MAX:
            raise ValueError(f"has {self.size:,} messages, each {plain(self.gap / 10**9)} s after the last, which "
                             f"takes longer than {DURATION.most_text}; use a shorter `gap` or a smaller `size`")
        return self


class RateStage(Part):
    """A part of the measurement in which a publication's rate stays, or changes evenly. The last one's end stays."""

    for_: PositiveDurationNs = Field(alias="for", description="How long it lasts.")
    rate: IntervalOrNoneNs | None = Field(
        None, description="Messages per time when it begins; when left out, the rate before goes on. `\"0 /s\"`: none.")
    to: IntervalOrNoneNs | None = Field(
        None, description="Messages per time when it ends: a ramp. When left out, the rate stays.")

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if self.rate is None and self.to is None:
            raise ValueError("has neither `rate` nor `to`; add one: `rate` for a step, `to` for a ramp")
        return self


class Replay(Part):
    """Messages from a table of comma-separated values, from the beginning of the measurement on."""

    file: FileBeside = Field(description=(
        "The table: a header line, and a line for each message. Its path is relative to the scenario's file, "
        "else to the working directory."))
    loop: Truth = Field(False, description="Begins again when it has ended, as long as the measurement lasts.")
    speed: float = Field(1.0, ge=0.001, le=1_000_000, allow_inf_nan=False, description=(
        "How much faster than the table's times: `2` takes half as long."))
    ignore: list[Literal["topic", "payload", "size", "client", "qos", "retain"]] = Field(
        default_factory=list, description="Columns of the table that are not used: the publication's fields hold.")

    @property
    def table(self) -> ReplayTable:
        """What the table has.

        Raises:
            ReplayError: what is wrong with it.
        """
        return read_table(self.file, frozenset(self.ignore))

    @property
    def second_us(self) -> int:
        """How many microseconds a second of the table takes."""
        return max(1, round(1_000_000 / self.speed))


def read_replay(value: Any) -> Any:
    """A replay from its file alone."""
    return {"file": value} if isinstance(value, (str, Path)) else value


class Publish(Part):
    """What each client of a group publishes. Several publications are an array of such tables, `[[groups.publish]]`,
    each with a schedule of its own."""

    topic: Annotated[PlainText, AfterValidator(published_topic)] = Field(
        description="`{group}`, `{client}` and `{topic}` are filled in.")
    topics: Whole = Field(1, ge=1, le=1_000_000, description="Number of topics: `{topic}` runs from 0 to one less.")
    qos: Qos = 0
    retain: Truth = Field(False, description="Retained.")
    payload: PayloadOrSize = Field(description="Content of a message.")
    interval: PositiveDurationNs | None = Field(None, ge=1000, description="Time between messages, from 1 us.")
    rate: IntervalNs | None = Field(None, description="Messages per time, such as `\"100 /s\"`; instead of `interval`.")
    arrival: Literal["constant", "poisson", "burst", "back-to-back"] = Field(
        "constant", description="When messages are due.")
    burst: Burst | None = Field(None, description="For `arrival = \"burst\"`.")
    stages: list[RateStage] = Field(
        default_factory=list, max_length=STAGES_MAX, description="Steps and ramps of the rate, from the beginning of "
        "the measurement on. `interval`, `rate` or `burst` say the rate before, by default the first stage's.")
    start_phase: Literal["random", "even", "synchronised"] = Field(
        "random", description="When the first message is due within the first interval.")
    user_properties: list[tuple[PropertyText, PropertyText]] | None = Field(
        None, max_length=USER_PROPERTIES_MAX, json_schema_extra=MQTT_5, description=(
            "User properties of each message (MQTT 5, 3.3.2.3.7): names, each with a value, such as "
            "`[[\"unit\", \"mbar\"], [\"site\", \"roof\"]]`."))
    expiry: SecondsNs | None = Field(
        None, ge=10**9, le=(2**32 - 1) * 10**9, json_schema_extra=MQTT_5, description=(
            "How long each message is good for, whole seconds (MQTT 5, 3.3.2.3.3): a broker does not send it later."))
    content_type: PropertyText | None = Field(None, json_schema_extra=MQTT_5, description=(
        "Content type of each message (MQTT 5, 3.3.2.3.9), such as `\"application/json\"`."))
    payload_format: Literal["bytes", "utf-8"] | None = Field(None, json_schema_extra=MQTT_5, description=(
        "Payload format indicator of each message (MQTT 5, 3.3.2.3.2)."))
    response_topic: Annotated[PlainText, AfterValidator(topic_of_answers)] | None = Field(
        None, json_schema_extra=MQTT_5, description=(
            "Response topic of each message (MQTT 5, 3.3.2.3.5); `{group}` and `{client}` are filled in."))
    correlation_data: Annotated[PlainText, AfterValidator(property_data)] | None = Field(
        None, json_schema_extra=MQTT_5, description=(
            "Correlation data of each message as text (MQTT 5, 3.3.2.3.6); `{group}` and `{client}` are filled in."))
    messages: Whole | None = Field(
        None, ge=1, lt=2**63, description="Maximum number of messages of a client, warm-up included.")
    replay: Annotated[Replay, BeforeValidator(read_replay, json_schema_input_type=Replay | str)] | None = Field(
        None, description="Messages from a table, such as `\"messages.csv\"`, in place of `interval` or `rate`. What "
        "it has no column for is as the other fields say; without a `topic` it is `{group}/{client}`, without a "
        "`payload` a message is empty. The guide is [Replay a table of messages](../how-to/replay.md).")

    @model_validator(mode="before")
    @classmethod
    def _of_a_table(cls, given: Any) -> Any:
        unsaid = {"topic": "{group}/{client}", "payload": "0 B"}
        return {**unsaid, **given} if isinstance(given, dict) and "replay" in given else given

    @model_validator(mode="after")
    def _when(self) -> Self:
        if self.replay is not None:
            return self._replayed()
        given = [self.interval is not None, self.rate is not None, self.burst is not None]
        if self.stages and self.arrival in ("constant", "poisson") and not any(given):
            if not self.stages[0].rate:
                raise ValueError("has `stages`, but no rate to begin with; add a `rate`, which holds until the "
                                 "measurement begins")
        elif self.stages and self.arrival == "back-to-back":
            raise ValueError("has `arrival = \"back-to-back\"` and `stages` of a rate; keep one: each message follows "
                             "the last")
        elif self.arrival == "back-to-back":
            if any(given):
                raise ValueError("has `arrival = \"back-to-back\"` and an `interval`, `rate` or `burst`; leave these "
                                 "out: each message follows the last")
        elif self.arrival == "burst":
            if given != [False, False, True]:
                raise ValueError("has `arrival = \"burst\"`, which needs `burst`, and no `interval` or `rate`")
        elif given[:2] == [True, True]:
            raise ValueError("has both `interval` and `rate`; keep one")
        elif given not in ([True, False, False], [False, True, False]):
            raise ValueError(f"has `arrival = \"{self.arrival}\"`, which needs an `interval` or a `rate`"
                             + ('; `burst` goes with `arrival = "burst"`' if self.burst is not None else ""))
        if self.topics > 1 and "{topic}" not in self.topic:
            raise ValueError(f"has `topics = {self.topics}`, but its `topic` has no `{{topic}}` to fill in")
        return self


    def _replayed(self) -> Self:
        for field in ("interval", "rate", "arrival", "burst", "stages", "start_phase", "topics"):
            if field in self.model_fields_set:
                raise ValueError(f"has `replay` and `{field}`; keep one: the table says when and what")
        return self

    @property
    def topic_patterns(self) -> tuple[str, ...]:
        """The topics that messages may have."""
        if self.replay is None:
            return (self.topic,)
        return tuple(dict.fromkeys(topic or self.topic for topic in self.replay.table.topics))

    def has_publisher_of_its_own(self, pattern: str) -> bool:
        """Whether one client of the group alone publishes to a topic, one of :attr:`topic_patterns`."""
        if "{client}" in pattern:
            return True
        if self.replay is None:
            return False
        table = self.replay.table
        return all(topic in table.owned for topic in table.topics if (topic or self.topic) == pattern)

    @property
    def property_bytes(self) -> int:
        """Bytes of the properties, before anything is filled in."""
        texts = [text for text in (self.content_type, self.response_topic, self.correlation_data) if text is not None]
        # An identifier, and a length before each text (MQTT 5, 2.2.2).
        pairs = sum(5 + len(name.encode()) + len(value.encode()) for name, value in self.user_properties or ())
        numbers = 5 * (self.expiry is not None) + 2 * (self.payload_format is not None)
        return numbers + sum(3 + len(text.encode()) for text in texts) + pairs

    @property
    def first_interval(self) -> int | None:
        """Nanoseconds between messages until the measurement begins; none of bursts and back-to-back messages."""
        for given in (self.interval, self.rate):
            if given is not None:
                return given
        return self.stages[0].rate if self.stages and self.burst is None else None

    @property
    def first_rate(self) -> float:
        """Messages a second until the measurement begins; 0 of back-to-back messages."""
        if self.burst is not None:
            return self.burst.size / (self.burst.every / 1e9)
        if self.replay is not None:
            return 0.0
        return 0.0 if self.first_interval is None else 1e9 / self.first_interval

    @property
    def rates(self) -> list[tuple[float, float, float]]:
        """The stages of the measurement: seconds, and messages a second when each begins and ends."""
        last, found = self.first_rate, []
        for stage in self.stages:
            begins = last if stage.rate is None else _per_second(stage.rate)
            last = begins if stage.to is None else _per_second(stage.to)
            found.append((stage.for_ / 1e9, begins, last))
        return found


def _per_second(interval_ns: int) -> float:
    return 1e9 / interval_ns if interval_ns else 0.0


def one_or_several(value: Any) -> str:
    """The kind of what stands at `publish`. Problems leave it out of their place, as other names of pydantic's own."""
    return "function-several" if isinstance(value, list) else "function-one"
