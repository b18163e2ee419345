"""An event of a scenario: what changes while a run goes on, when, and for how long."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, create_model, model_validator

from mqttlab.mistaken import closest
from mqttlab.networks.link import LinkDirection, Part, Queue, Truth, Whole
from mqttlab.networks.radio import PAIR_OF_LENGTHS
from mqttlab.quantity import DurationNs, IntervalOrNoneNs, MomentNs, PositiveDurationNs, RatioPair, shown
from mqttlab.scenario.mqtt import Qos
from mqttlab.scenario.publish import PayloadOrSize
from mqttlab.scenario.topics import topic_filter
from mqttlab.secrets import PlainText

TARGETS = ("network", "server", "group", "interferer", "station")
# A link follows its trace from the beginning on.
LINK_FIELDS = tuple(name for name in LinkDirection.model_fields if name not in ("trace", "trace_end"))
# What goes with what an event acts on.
BELONGS = {
    **dict.fromkeys(("direction", "down", "queued", *LINK_FIELDS), ("network",)),
    "do": ("server", "group", "interferer", "station"), "persistence": ("server",),
    "position": ("station",),
    **dict.fromkeys(("share", "client", "filter", "qos", "publish", "publication", "messages"), ("group",)),
}
SERVER_ACTIONS = ("stop", "kill", "pause", "continue", "start")
PUBLISHING_ACTIONS = ("stop-publishing", "continue-publishing", "burst")
CLIENT_ACTIONS = ("disconnect", "vanish", "return", "stop-reading", "continue-reading", "subscribe", "unsubscribe",
                  *PUBLISHING_ACTIONS)
ACTIONS = {"server": SERVER_ACTIONS, "group": CLIENT_ACTIONS, "interferer": ("switch-on", "switch-off"),
           "station": ("radio-off", "radio-on")}
# What ends with `for`, and how. The others are ends themselves.
ENDS = {"stop": "start", "kill": "start", "pause": "continue", "disconnect": "return", "vanish": "return",
        "stop-reading": "continue-reading", "subscribe": "unsubscribe", "unsubscribe": "subscribe",
        "stop-publishing": "continue-publishing", "switch-on": "switch-off", "switch-off": "switch-on",
        "radio-off": "radio-on"}
WHOSE = {"server": "servers", "group": "clients", "interferer": "interferers", "station": "stations"}
# What other tools call it: Docker, systemd, Kubernetes, Chaos Mesh, Pumba.
ACTIONS_CALLED = {"terminate": "stop", "crash": "kill", "freeze": "pause", "suspend": "pause", "unpause": "continue",
                "resume": "continue", "restart": "kill", "reconnect": "return", "connect": "return",
                "leave": "disconnect", "power-off": "vanish", "die": "vanish", "disappear": "vanish",
                "pause-publishing": "stop-publishing", "mute": "stop-publishing", "silence": "stop-publishing",
                "resume-publishing": "continue-publishing", "start-publishing": "continue-publishing"}
# What people may mean who do to clients what is done to servers.
FOR_CLIENTS = {"pause": "stop-publishing", "stop": "stop-publishing", "continue": "continue-publishing"}


def near_action(given: str) -> str | None:
    """The action that somebody may mean, also by what other tools call it."""
    known = [action for actions in ACTIONS.values() for action in actions]
    near = closest(given.lower().replace("_", "-").replace(" ", "-"), [*known, *ACTIONS_CALLED], 0.6)
    return ACTIONS_CALLED.get(near or "", near)


def read_do(value: Any) -> Any:
    """What is done, by its own name."""
    known = [action for actions in ACTIONS.values() for action in actions]
    if isinstance(value, str) and value not in known:
        near = near_action(value)
        instead = f"; did you mean \"{near}\"?" if near else ""
        if value.lower() == "restart":
            instead = "; write `do = \"stop\"` or `\"kill\"` with `for`, the time until it starts again"
        these = ", ".join(f"{', '.join(actions)} for {WHOSE[target]}" for target, actions in ACTIONS.items())
        raise ValueError(f"is {shown(value)}, but must be one of {these}{instead}")
    return value


def read_queued(value: Any) -> Any:
    """What becomes of waiting frames, with a hint where it is a queue's limit."""
    if value not in ("keep", "drop"):
        raise ValueError(f"is {shown(value)}, but must be \"keep\" or \"drop\": what becomes of frames that wait while "
                         "the link is down; the length of the queue is `queue`")
    return value


class ChangedPublish(Part):
    """What clients publish from an event on: the fields of `groups.publish` that an event may change."""

    rate: IntervalOrNoneNs | None = Field(None, description="Messages per time; `\"0 /s\"`: none.")
    interval: PositiveDurationNs | None = Field(
        None, ge=1000, description="Time between messages, instead of `rate`.")
    payload: PayloadOrSize | None = Field(None, description="Content of a message.")
    qos: Qos | None = Field(None, description="Quality of service.")

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.rate is not None and self.interval is not None:
            raise ValueError("has both `rate` and `interval`; keep one")
        if all(value is None for value in (self.rate, self.interval, self.payload, self.qos)):
            raise ValueError("changes nothing; add `rate`, `interval`, `payload` or `qos`")
        return self

    @property
    def every(self) -> int | None:
        """Nanoseconds between messages, 0 for none; none where the rate stays."""
        return self.interval if self.rate is None else self.rate


class EventFields(Part):
    """An event without the fields of the links that it changes."""

    name: Annotated[PlainText, Field(min_length=1, max_length=80)] | None = Field(
        None, description="What tables and figures call it; without one, what happens in a few words.")
    at: MomentNs | None = Field(None, description=(
        "When, from the beginning of the measurement; `\"-2 s\"` is 2 s before it, in the warm-up. With `when`: from "
        "what that says."))
    when: Annotated[PlainText, Field(min_length=1)] | None = Field(None, description=(
        "Begins with the event of this `name`, each time that it takes place, or with its end: `\"end of rain\"`; "
        "likewise with a stage (`phases.stages`) or its end. `at` is the time from then on."))
    every: PositiveDurationNs | None = Field(None, description=(
        "Again and again, so long after the last time; for the first time at `at`, or after this time."))
    until: DurationNs | None = Field(
        None, description="With `every`: not after this time of the measurement; its end when left out.")
    count: Whole | None = Field(None, ge=1, le=100_000, description="With `every`: so many times.")
    lasts: PositiveDurationNs | None = Field(None, alias="for", description=(
        "Ends after this time: the link is up again, or as before; the server starts or continues; the clients return, "
        "read again, or have their subscriptions back. When left out, it does not end by itself."))
    network: PlainText | None = Field(None, description=(
        "Network that changes: its `name`, the host that it joins to the rest, or `trunk`."))
    direction: Literal["up", "down", "both"] | None = Field(
        None, description="The link of the network: `up` or `down` as in [[networks]]; both when left out.")
    down: Truth | None = Field(None, description="`true`: the links carry nothing; `false`: they carry frames again.")
    queued: Annotated[Literal["keep", "drop"], BeforeValidator(read_queued)] | None = Field(None, description=(
        "With `down = true`: frames that wait, and those that come while the link is down, are dropped (`drop`, the "
        "default, as Linux does when a device goes down) or wait as far as the queue has room (`keep`)."))
    server: PlainText | None = Field(None, description="Server that changes.")
    group: PlainText | None = Field(None, description="Group whose clients change.")
    interferer: PlainText | None = Field(None, description="Interferer of `radio` that changes.")
    station: PlainText | None = Field(None, description=(
        "Station of `radio` that changes: a host's name, or of several hosts of a name one, such as `near-0`."))
    position: PAIR_OF_LENGTHS | None = Field(
        None, description="Where the station stands from now on; it must not move by itself.")
    share: RatioPair | None = Field(None, description=(
        "Share of the group's clients, evenly spread over their numbers; the same share is the same clients."))
    client: Whole | None = Field(None, ge=0, description="One client of the group, counted from 0.")
    do: Annotated[Literal["stop", "kill", "pause", "continue", "start", "disconnect", "vanish", "return",
                          "stop-reading", "continue-reading", "subscribe", "unsubscribe",
                          "stop-publishing", "continue-publishing", "burst",
                          "switch-on", "switch-off", "radio-off", "radio-on"],
                  BeforeValidator(read_do)] | None = Field(
        None, description=(
            "To a server: `stop` (SIGTERM), `kill` (SIGKILL), `pause` (SIGSTOP), `continue` (SIGCONT), `start`. To "
            "clients: `disconnect` (in order), `vanish` (without a word, as after a loss of power), `return`, "
            "`stop-reading`, `continue-reading`, `subscribe`, `unsubscribe`, `stop-publishing`, "
            "`continue-publishing`, `burst` (`messages` at once). To an interferer: `switch-on`, `switch-off`. To a "
            "station: `radio-off` (it neither sends nor hears; its frames wait), `radio-on`."))
    publish: ChangedPublish | None = Field(None, description=(
        "What the clients publish from now on; what is left out stays as it was. With `for` all is as before then."))
    publication: Annotated[Whole, Field(ge=0)] | PlainText | None = Field(None, description=(
        "Which of the clients' publications: its number, counted from 0, or its `topic` as the group has it. All when "
        "left out."))
    messages: Whole | None = Field(None, ge=1, le=1_000_000, description=(
        "For `burst`: how many messages each client publishes at once, of each publication."))
    persistence: Truth | None = Field(None, description=(
        "Whether the server finds what it had stored when it starts again; its own `persistence` when left out."))
    filter: Annotated[PlainText, AfterValidator(topic_filter)] | None = Field(
        None, description="For `subscribe` and `unsubscribe`: the topic filter.")
    qos: Qos | None = Field(None, description="For `subscribe`: the QoS; 0 when left out.")

    @property
    def changed(self) -> dict[str, Any]:
        """The fields of links that it sets."""
        return {name: getattr(self, name) for name in LINK_FIELDS if name in self.model_fields_set}

    @property
    def publishes(self) -> bool:
        """Whether it changes what clients publish."""
        return self.publish is not None or self.do in PUBLISHING_ACTIONS

    @property
    def target(self) -> str:
        """What it acts on: one of `TARGETS`."""
        return next(name for name in TARGETS if getattr(self, name) is not None)

    @model_validator(mode="before")
    @classmethod
    def _is_no_limit(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("queue") in ("keep", "drop"):
            raise ValueError(f"has `queue = \"{values['queue']}\"`, but `queue` is a limit; write `queued = "
                             f"\"{values['queue']}\"` for what becomes of frames that wait while the link is down")
        if isinstance(values, dict) and "group" in values and "rate" in values:
            raise ValueError(f"acts on a group, but has `rate`, which goes with `network`; for messages, write "
                             f"`publish = {{ rate = {shown(values['rate'])} }}`")
        return values

    @model_validator(mode="after")
    def _has_a_time(self) -> Self:
        if self.at is None and self.every is None and self.when is None:
            raise ValueError("does not say when; add `at`, such as \"30 s\" of the measurement, `every`, or `when` "
                             "with the name of a stage or another event")
        for name in ("until", "count"):
            if getattr(self, name) is not None and self.every is None:
                raise ValueError(f"has `{name}` without `every`; add `every`, or leave `{name}` out")
        if self.until is not None and self.count is not None:
            raise ValueError("has both `until` and `count`; keep one")
        if self.lasts is not None and self.every is not None and self.lasts >= self.every:
            raise ValueError("takes longer (`for`) than from one time to the next (`every`); use a shorter `for`")
        return self

    @model_validator(mode="after")
    def _has_a_target(self) -> Self:
        targets = [name for name in TARGETS if getattr(self, name) is not None]
        if not targets:
            raise ValueError("does not say what changes; add `network`, `server`, `group`, `interferer` or `station`")
        if len(targets) > 1:
            raise ValueError(f"has `{targets[0]}` and `{targets[1]}`; keep one, and make another event of the other")
        for name in BELONGS:
            if name in self.model_fields_set and targets[0] not in BELONGS[name]:
                *others, last = (f"`{one}`" for one in BELONGS[name])
                goes = f"{', '.join(others)} or {last}" if others else last
                raise ValueError(f"acts on {_a(targets[0])}, but has `{name}`, which goes with {goes}; leave it out")
        if self.network is not None:
            self._changes_links()
        elif self.position is not None:
            if self.do is not None:
                raise ValueError(f"has `do = \"{self.do}\"` and `position`; make two events of it")
        elif self.do is None and self.publish is None:
            actions = ACTIONS[targets[0]]
            other = {"group": ", or `publish` with what becomes of messages",
                     "station": ", or `position`"}.get(targets[0], "")
            raise ValueError(f"does not say what happens; add `do`, one of {', '.join(actions)}{other}")
        else:
            self._acts(self.do)
        return self

    def _acts(self, do: str | None) -> None:
        if do is not None and self.publish is not None:
            raise ValueError(f"has `do = \"{do}\"` and `publish`; make two events of it")
        if do is not None:
            self._does(do)
        if self.share is not None and self.client is not None:
            raise ValueError("has both `share` and `client`; keep one")
        if self.share is not None and self.share[0] == 0:
            raise ValueError("has `share = \"0 %\"`, which is no client; use a larger share")
        if self.publication is not None and not self.publishes:
            raise ValueError(f"has `publication`, which goes with `publish`, {_listed(PUBLISHING_ACTIONS)}; leave it "
                             "out")

    def _changes_links(self) -> None:
        if self.down is None and not self.changed:
            raise ValueError("does not say what changes in the network; add `down = true`, or fields of a link such as "
                             "`rate` or `delay`")
        if self.down is not None and self.changed:
            raise ValueError(f"has `down` and `{next(iter(self.changed))}`; make two events of it")
        if self.queued is not None and not self.down:
            raise ValueError("has `queued`, which goes with `down = true`; leave it out")
        if self.down is False and self.lasts is not None:
            raise ValueError("has `for`, but `down = false` does not end; leave it out, or write `down = true`")

    def _does(self, do: str) -> None:
        actions = ACTIONS[self.target]
        if do not in actions:
            other = next(WHOSE[target] for target, known in ACTIONS.items() if do in known)
            near = f"; did you mean \"{FOR_CLIENTS[do]}\"?" if self.group is not None and do in FOR_CLIENTS else ""
            raise ValueError(f"acts on {_a(self.target)}, but `do = \"{do}\"` is for {other}; use one of "
                             f"{', '.join(actions)}{near}")
        if self.lasts is not None and do not in ENDS:
            raise ValueError(f"has `for`, but `do = \"{do}\"` does not end; leave it out")
        if (self.filter is not None) != (do in ("subscribe", "unsubscribe")):
            raise ValueError(f"has `do = \"{do}\"`, which {'has no' if self.filter else 'needs a'} `filter`")
        if self.qos is not None and do != "subscribe":
            raise ValueError("has `qos`, which goes with `do = \"subscribe\"`; for messages, write `publish = { qos "
                             f"= {self.qos} }}`")
        if (self.messages is not None) != (do == "burst"):
            raise ValueError(f"has `do = \"{do}\"`, which {'needs' if do == 'burst' else 'has no'} `messages`")


def _a(target: str) -> str:
    return f"{'an' if target[0] in 'aeiou' else 'a'} {target}"


def _listed(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


if TYPE_CHECKING:
    class Event(EventFields):
        """An event with the fields of links."""

        queue: Queue | None
else:
    # The fields of a link as a network has them, none of which needs to be there.
    Event = create_model("Event", __base__=EventFields, __module__=__name__, __doc__=(
        "Something changes while the run goes on: a network, a server, or clients of a group. Links have their fields "
        "of `networks[].up`; what an event leaves out stays as it was. The guide is [Change something during a "
        "run](../how-to/events.md)."), **{
            name: (field.rebuild_annotation() | None, Field(None, description=f"Of the links: {field.description}"))
            for name, field in LinkDirection.model_fields.items() if name in LINK_FIELDS})
