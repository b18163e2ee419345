"""What a host has of processor, memory and disk: ``[hosts.NAME.limits]``, and the machines that are known by name.

Live, a control group holds the host's servers and programs to it. Simulated, the host's server takes longer, dies above
its memory, and waits for its disk.

Where the values of :data:`MACHINES` are from:

==================  =========  ======================================================================================
machine             value      source
==================  =========  ======================================================================================
``raspberry-pi-3``  processor  fitted: table 2 of schuhmacher2018, 1 B at QoS 0, gives 0.074 ms for a packet and as
                               much for a copy; the simulated broker's 0.03 ms for both are 20 % of that
``raspberry-pi-3``  memory     chosen, not fitted
``raspberry-pi-3``  disk_rate  chosen, not fitted
``raspberry-pi-4``  processor  chosen, not fitted: twice a Raspberry Pi 3's. varsani2021's 0.308 ms for a message has
                               the time of 10,000 topics in it
``raspberry-pi-4``  memory     chosen, not fitted
``raspberry-pi-4``  disk_rate  chosen, not fitted
==================  =========  ======================================================================================
"""

from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from mqttlab.digits import plain
from mqttlab.mistaken import closest, did_you_mean
from mqttlab.networks.link import Part
from mqttlab.quantity import RATE, SIZE, ratio, shown
from mqttlab.scenario.held_words import words_of_limits
from mqttlab.secrets import PlainText

# The engine has the same bounds (crates/plan, limits.rs).
MEMORY_BYTES_MIN = 2**20
DISK_BIT_S_MIN = 8_000


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What a machine has."""

    processor: tuple[int, int]
    memory: int
    disk_rate: int


MACHINES = {
    "raspberry-pi-3": Machine(processor=(1, 5), memory=10**9, disk_rate=8 * 10**7),
    "raspberry-pi-4": Machine(processor=(2, 5), memory=4 * 10**9, disk_rate=16 * 10**7),
}
CLIENTS = {"esp8266", "esp32"}
"""Machines that run clients, whose processors and memory neither backend has a model of."""


def _known(profile: str) -> str:
    if profile in MACHINES:
        return profile
    if profile in CLIENTS:
        raise ValueError(f"is {shown(profile)}, which runs clients, but limits hold servers and programs; "
                         "use `tcp = { profile = \"microcontroller\" }` for its TCP")
    raise ValueError(f"is the unknown machine {shown(profile)}; {did_you_mean(profile, MACHINES)}")


def _share(value: tuple[int, int]) -> tuple[int, int]:
    if 100 * value[0] < value[1]:
        raise ValueError(f"is {plain(100 * value[0] / value[1])} %, but must be 1 % or more: a kernel gives out "
                         "no less")
    return value


def _memory(value: Any) -> int:
    return round(MEMORY.read(value))


def _disk_rate(value: Any) -> int:
    return round(DISK_RATE.read(value))


def _text(example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "examples": [example]})


Share = Annotated[tuple[int, int], BeforeValidator(ratio), AfterValidator(_share), _text("25 %")]
# No server starts in less memory.
MEMORY = replace(SIZE, usual="MB", example="64 MB", least=MEMORY_BYTES_MIN, least_text="1 MiB")
DISK_RATE = replace(RATE, usual="MB/s", example="1 MB/s", least=DISK_BIT_S_MIN, least_text="1 kB/s")
Memory = Annotated[int, BeforeValidator(_memory), _text("64 MB")]
DiskRate = Annotated[int, BeforeValidator(_disk_rate), _text("1 MB/s")]


class Limits(Part):
    """What the servers and programs of a host have together. A machine that `profile` names has all of it."""

    profile: Annotated[PlainText, AfterValidator(_known)] | None = Field(None, description=(
        "A machine: `raspberry-pi-3` (20 % of a processor, 1000 MB, 10 MB/s) or `raspberry-pi-4` (40 %, 4000 MB, "
        "20 MB/s); what is written beside it goes before. Only the first 20 % are fitted on data, the rest is chosen."))
    processor: Share | None = Field(None, description=(
        "Share of one processor. Live it is one of the machine that runs it; simulated, `service` takes that much "
        "longer."))
    memory: Memory | None = Field(
        None, description="Memory. A server that needs more is killed.")
    disk_rate: DiskRate | None = Field(None, description=(
        "How fast the disk takes what is written and waited for, as by Mosquitto with `persistence`."))

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, values: Any) -> Any:
        if not isinstance(values, str):
            return values
        near = values if values in CLIENTS else closest(values, MACHINES) or next(iter(MACHINES))
        raise ValueError(f"is {shown(values)}, but must be a table, such as {{ profile = {shown(_known(near))} }}")

    @model_validator(mode="after")
    def _some(self) -> "Limits":
        if not self.in_force:
            raise ValueError("is empty; add `processor`, `memory`, `disk_rate` or `profile`, or leave it out")
        return self

    @property
    def in_force(self) -> dict[str, Any]:
        """The limits, those of the machine among them."""
        machine = {} if self.profile is None else asdict(MACHINES[self.profile])
        own = {name: getattr(self, name) for name in ("processor", "memory", "disk_rate")}
        return machine | {name: value for name, value in own.items() if value is not None}

    def words(self) -> str:
        """As `check` tells it."""
        return words_of_limits(self.plan())

    def plan(self) -> dict[str, Any]:
        """As the plan has them."""
        limits = self.in_force
        return {"processor": limits.get("processor"), "memory_bytes": limits.get("memory"),
                "disk_bytes_s": limits["disk_rate"] // 8 if "disk_rate" in limits else None}
