"""The scenario that the options of ``mqttlab try`` stand for, as a file that a person reads and changes."""

from __future__ import annotations

import json
import math
import re

from mqttlab.experiments.scenarios import toml_of
from mqttlab.trial.options import DEVICES, LINK_OPTIONS, Trial
from mqttlab.trial.settings import with_settings

INTERVALS = 10
"""A run of the default length has so many messages of each client at least."""


def scenario_text(trial: Trial, *, as_base: bool = False) -> str:
    """A scenario file with the first value of each option; ``as_base`` leaves out what an experiment says itself."""
    head = [f"# {trial.command}", 'name = "try"']
    if trial.backend == "sim":
        head.append('backend = "sim"')
    if trial.one("broker"):
        head.append('network = "external"')
    head += [f"{name} = {toml_value(value)}" for name in ("seed",) + (() if as_base else ("repetitions",))
             if (value := trial.one(name)) is not None]
    lines = [*head, "", *_phases(trial), *_broker(trial), *_mqtt(trial), *_network(trial), *_groups(trial)]
    return with_settings("\n".join(lines), trial.settings) if trial.settings else "\n".join(lines)


def _phases(trial: Trial) -> list[str]:
    interval = trial.interval_s
    warm_up = min(10, max(1, math.ceil(interval)))
    duration = trial.value("duration", f"{max(60, math.ceil(INTERVALS * interval))} s")
    return ["[phases]", f'warm_up = "{warm_up} s"          # publishing that is not counted',
            f"duration = {quantity(duration)}", 'cool_down = "30 s"       # at most: for messages still under way', ""]


def _broker(trial: Trial) -> list[str]:
    written = trial.one("broker")
    if written is None:
        return []
    address, _, port = written.rpartition(":")
    lines = ["[broker]", 'kind = "external"', f"address = {json.dumps(address)}"]
    table, _, layer = trial.port.rpartition(".")
    lines.append(f"ports = {{ {layer} = {toml_value(port)} }}" if table else f"port = {toml_value(port)}")
    if (authority := trial.one("ca")) is not None:
        named = f", name = {json.dumps(trial.hosts[written])}" if trial.names(written) else ""
        lines.append(f"tls = {{ authority = {json.dumps(authority)}{named} }}")
    return [*lines, ""]


def _mqtt(trial: Trial) -> list[str]:
    names = {"mqtt": "version", "keep-alive": "keep_alive", "ping": "ping", "username": "username"}
    lines = [f"{name} = {toml_of(value) if option == 'username' else quantity(value)}"
             for option, name in names.items() if (value := trial.one(option)) is not None]
    if (variable := trial.one("password-env")) is not None:
        lines.append(f"password = {{ env = {toml_of(variable)} }}       # this environment variable has it")
    if (topic := trial.one("will")) is not None:
        lines.append(f"will = {{ topic = {toml_of(topic)} }}           # of every client")
    return ["[mqtt]", *lines, ""] if lines else []


def _network(trial: Trial) -> list[str]:
    """Devices and broker are joined by one network; without any option it has no delay, limit or loss."""
    if trial.one("broker"):
        return []
    names = {"bandwidth": "rate"}
    written = [f"{names.get(option, option)} = {quantity(value)}" for option in LINK_OPTIONS
               if (value := trial.one(option)) is not None]
    lines = ["[[networks]]", f'between = ["{DEVICES}", "broker"]']
    model = trial.one("network")
    if model is not None:
        lines.append(f"model = {json.dumps(model)}             # `mqttlab networks` lists them")
    if model is None or written:
        inner = f"{{ {', '.join(written)} }}" if written else "{}"
        lines += [f"{direction} = {inner}" for direction in trial.directions]
    link = quantity(trial.value("link", "each"))
    lines.append(f"link = {link}            # each: a link for each device; shared: one for all")
    if (timeout := trial.one("nat")) is not None:
        lines.append(f"nat = {quantity(timeout)}             # connections that are silent for so long are forgotten")
    return [*lines, ""]


def _groups(trial: Trial) -> list[str]:
    clients = toml_value(trial.value("clients", "10"))
    if trial.shape == "own":
        own = "devices/{client}"
        return _group(trial, DEVICES, DEVICES, clients, _publish(trial, own), _subscribe(trial, own))
    if trial.shape == "fan-out":
        return [*_group(trial, "publishers", "broker", toml_value(trial.value("publishers", "1")),
                        _publish(trial, "news/{client}")),
                *_group(trial, DEVICES, DEVICES, clients, _subscribe(trial, "news/+"))]
    return [*_group(trial, DEVICES, DEVICES, clients, _publish(trial, "devices/{client}")),
            *_group(trial, "subscribers", "broker", toml_value(trial.value("subscribers", "1")),
                    _subscribe(trial, "devices/+"))]


def _group(trial: Trial, name: str, host: str, count: str, *acts: str) -> list[str]:
    lines = ["[[groups]]", f'name = "{name}"', f'host = "{host}"', f"count = {count}"]
    if (transport := trial.one("transport")) is not None:
        lines.append(f"transport = {json.dumps(transport)}")
    return [*lines, *acts, ""]


def _publish(trial: Trial, topic: str) -> str:
    rate = trial.one("rate")
    when = f"interval = {quantity(trial.value('every', '1 s'))}" if rate is None else f"rate = {quantity(rate)}"
    payload = quantity(trial.value("payload", "100 B"))
    return f'publish = {{ topic = "{topic}", qos = {_qos(trial)}, payload = {payload}, {when} }}'


def _subscribe(trial: Trial, topic: str) -> str:
    return f'subscribe = [{{ filter = "{topic}", qos = {_qos(trial)} }}]'


def _qos(trial: Trial) -> str:
    return toml_value(trial.value("qos", "0"))


def quantity(value: str) -> str:
    """A text in TOML. A number and its unit are set apart."""
    return json.dumps(re.sub(r"^(\d[\d.]*)(?!e\d)(%|[A-Za-zµ/])", r"\1 \2", value), ensure_ascii=False)


def toml_value(value: str) -> str:
    """A whole number in TOML, or a text that the parser refuses."""
    return value if re.fullmatch(r"0|-?[1-9]\d{0,17}", value) else json.dumps(value)
