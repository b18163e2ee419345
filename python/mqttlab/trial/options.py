"""The options of ``mqttlab try``: their values as written, and the fields of the scenario that they set.

The scenario's own parser reads every value, so that units and limits are the same in both. A problem names the option
where a scenario would name the field.
"""

from __future__ import annotations

import copy
import itertools
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mqttlab.errors import MqttlabError
from mqttlab.experiments.scenarios import toml_of
from mqttlab.networks import MODELS
from mqttlab.quantity import duration_ns, interval_ns
from mqttlab.scenario import Scenario, ScenarioError
from mqttlab.scenario.load import override, read_values
from mqttlab.scenario.location import Location
from mqttlab.scenario.wording import Source

LAYERS = ("tls", "websocket", "wss")
"""Transports that have a port of their own."""
SHAPES = ("fan-in", "fan-out", "own")
DEVICES = "devices"
LINK_OPTIONS = ("loss", "delay", "jitter", "bandwidth")
WHOLE = ("ca", "password-env", "username", "will")
"""Options with one value, in which a comma is a letter like any other."""
INSTEAD = {"backend": "--simulate", "repetitions": "--repetitions"}
"""What says a field that decides how the command itself runs."""
POINTS_MAX = 24
S = 10**9


class TrialError(MqttlabError):
    """Options that are no scenario. ``problems`` are one line each, and name the option."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What the options say. An option that is left out has no value; one with several values has them in order."""

    shape: str = "fan-in"
    backend: str = "live"
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By option, without the dashes, as written."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What ``--set`` gives: values by place."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """The names of brokers that were given by name, by address and port."""

    def one(self, option: str) -> str | None:
        """The first value of an option."""
        return self.values[option][0] if option in self.values else None

    def value(self, option: str, default: str) -> str:
        """The first value of an option, or its default."""
        return self.one(option) or default

    @property
    def varied(self) -> dict[str, tuple[str, ...]]:
        """The options with several values."""
        return {option: values for option, values in self.values.items() if len(values) > 1}

    def singles(self) -> Iterator[Trial]:
        """Every combination of the values, each as a trial with one value of each option."""
        for combination in itertools.product(*self.values.values()):
            yield replace(self, values={option: (value,) for option, value in zip(self.values, combination,
                                                                                  strict=True)})

    @property
    def command(self) -> str:
        """The command line that says the same."""
        words = ["mqttlab", "try"] + (["--shape", self.shape] if self.shape != "fan-in" else [])
        for option, values in self.values.items():
            words += [f"--{option}", shlex.quote(",".join(values))]
        for place, value in self.settings.items():
            written = value if isinstance(value, str) else toml_of(value)
            words += ["--set", shlex.quote(f"{place}={written}")]
        return " ".join(words + (["--simulate"] if self.backend == "sim" else []))

    @property
    def port(self) -> str:
        """The field of a broker that has the port which clients connect to."""
        layer = self.value("transport", "tcp")
        return f"ports.{layer}" if layer in LAYERS else "port"

    def names(self, broker: str) -> bool:
        """Whether a broker's certificate is for a name, which its address does not tell."""
        return broker in self.hosts and "ca" in self.values

    @property
    def subscribing(self) -> int:
        """The number of the group that subscribes; the first one publishes."""
        return 0 if self.shape == "own" else 1

    @property
    def devices(self) -> int:
        """The number of the group behind the network."""
        return 1 if self.shape == "fan-out" else 0

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions whose link is written; a model of one shared medium has its figures in the one downwards."""
        model = MODELS.get(self.one("network") or "")
        return ("down",) if model is not None and model.placement == "shared-medium" else ("up", "down")

    def places(self, option: str) -> tuple[str, ...]:
        """The fields of the scenario that an option sets."""
        publisher, subscriber = "groups[0]", f"groups[{self.subscribing}]"
        if option in LINK_OPTIONS:
            name = "rate" if option == "bandwidth" else option
            return tuple(f"networks[0].{direction}.{name}" for direction in self.directions)
        return {
            "clients": (f"groups[{self.devices}].count",),
            "subscribers": (f"{subscriber}.count",), "publishers": (f"{publisher}.count",),
            "every": (f"{publisher}.publish.interval",), "rate": (f"{publisher}.publish.rate",),
            "qos": (f"{publisher}.publish.qos", f"{subscriber}.subscribe[0].qos"),
            "payload": (f"{publisher}.publish.payload",),
            "network": ("networks[0].model",), "link": ("networks[0].link",), "nat": ("networks[0].nat",),
            "mqtt": ("mqtt.version",), "keep-alive": ("mqtt.keep_alive",), "ping": ("mqtt.ping",),
            "username": ("mqtt.username",), "password-env": ("mqtt.password",), "will": ("mqtt.will.topic",),
            "transport": tuple(f"{group}.transport" for group in dict.fromkeys((publisher, subscriber))),
            "broker": ("broker.address", f"broker.{self.port}"), "ca": ("broker.tls.authority",),
            "duration": ("phases.duration",), "seed": ("seed",), "repetitions": ("repetitions",),
        }[option]

    @property
    def interval_s(self) -> float:
        """Seconds between two messages of a client, the longest of those asked for; 1 where it is no quantity."""
        try:
            found = [duration_ns(value) for value in self.values.get("every", ())]
            found += [interval_ns(value) for value in self.values.get("rate", ())]
        except ValueError:
            return 1.0
        return max(found, default=S) / S


@dataclass(frozen=True)
class Asked(Source):
    """Problems are of the options that have set a field."""

    options: tuple[tuple[str, str], ...] = ()
    """Places and options."""

    def at(self, location: Location) -> str:
        """The option, or the field where none has set it."""
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
        inside = [(len(other), option) for other, option in self.options
                  if place == other or place.startswith((f"{other}.", f"{other}["))]
        return f"--{max(inside)[1]} " if inside else super().at(location)


def options_of(trial: Trial, values: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The places in the values of its scenario that options have set, and these options.

    Raises:
        ScenarioError: the scenario has no place of a setting.
        TrialError: two options set the same field.
    """
    options = [(place, option) for option in trial.values for place in trial.places(option)]
    for place, value in trial.settings.items():
        scratch = copy.deepcopy(values)
        for where in override(scratch, place, value, "the scenario"):
            if where in INSTEAD:
                raise TrialError(f"--set {place}: use {INSTEAD[where]}")
            for other, option in options:
                if where == other or where.startswith((f"{other}.", f"{other}[")) or other.startswith(f"{where}."):
                    raise TrialError(f"--set {place} and --{option} set the same field; keep one")
            options.append((where, f"set {place}"))
    return tuple(options)


def asked(trial: Trial, text: str) -> Asked:
    """Where problems of a trial's scenario are: at the option that has set the field.

    Raises:
        TrialError: two options set the same field.
    """
    return Asked("the scenario", text, (), options=options_of(trial, tomllib.loads(text)))


def checked(trial: Trial, values: dict[str, object], text: str) -> Scenario:
    """The scenario of a trial with one value of each option.

    Raises:
        TrialError: an option is wrong; each problem names it.
    """
    try:
        return read_values(values, asked(trial, text))
    except ScenarioError as error:
        raise TrialError(list(dict.fromkeys(error.problems))) from error
