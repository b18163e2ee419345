"""What is meant by an option that ``mqttlab try`` does not have: another option of it, or a field of the scenario."""

from __future__ import annotations

import re
import shlex
from typing import get_origin

from mqttlab.networks.link import LinkDirection
from mqttlab.scenario.model import Scenario
from mqttlab.scenario.wording import example_of, fields_of, holders
from mqttlab.trial.options import DEVICES

CERTIFICATES = ("clients cannot show a certificate of yours; to a broker that the run starts they show one that is "
                "made for the run: --set groups[0].transport='{ tls = { client_certificate = true } }'")
# What the options of mosquitto_pub, mosquitto_sub, emqtt-bench and mqtt-stresser are called here. Some are fields.
OPTIONS = {
    **dict.fromkeys(("-p", "--host", "--hostname", "--port", "--address", "--server", "--url", "-L"),
                    "--broker HOST:PORT"),
    **dict.fromkeys(("-u", "--user"), "--username NAME"),
    **dict.fromkeys(("-P", "--pw", "--password", "--pass"), "--password-env VARIABLE"),
    **dict.fromkeys(("-q",), "--qos 0|1|2"),
    **dict.fromkeys(("-k", "--keepalive"), "--keep-alive TIME"),
    **dict.fromkeys(("-V", "--mqtt-version", "--protocol-version", "--ver"), "--mqtt VERSION"),
    **dict.fromkeys(("--tls", "--ssl", "-S", "--secure"), "--transport tls"),
    **dict.fromkeys(("--ws", "--websocket", "--websockets"), "--transport websocket"),
    "--wss": "--transport wss",
    **dict.fromkeys(("--cafile", "--cacert", "--cacertfile", "--capath", "--ca-cert"), "--ca FILE"),
    **dict.fromkeys(("-c", "--num-clients", "--count", "--devices", "--connections"), "--clients N"),
    **dict.fromkeys(("-I", "--interval_of_msg", "--interval", "--period"), "--every TIME"),
    **dict.fromkeys(("-s", "--size", "--message-size"), "--payload SIZE"),
    **dict.fromkeys(("--will-topic",), "--will TOPIC"),
    **dict.fromkeys(("--sim", "--simulation"), "--simulate"),
    **dict.fromkeys(("--backend",), "--simulate"),
    **dict.fromkeys(("-o", "--out", "--output"), "--save FILE"),
}
FIELDS = {
    "-t": "groups.publish.topic", "--topic": "groups.publish.topic", "--topics": "groups.publish.topic",
    "-r": "groups.publish.retain", "-i": "mqtt.client_id", "--id": "mqtt.client_id",
    "--disable-clean-session": "mqtt.clean_session", "--clean": "mqtt.clean_session",
    "-x": "mqtt.session_expiry", "--will-payload": "mqtt.will.payload", "--will-qos": "mqtt.will.qos",
    "--will-retain": "mqtt.will.retain", "-m": "groups.publish.payload", "--message": "groups.publish.payload",
}
PREFERRED = ("groups.publish", "mqtt", "groups", "phases", "networks", "broker", "recording")
"""Tables of fields that several tables have; first the one that is meant most."""


def instead_of(option: str) -> str | None:
    """What to write instead, in words; none where nothing is known of it.

    Args:
        option: as written, with its dashes.
    """
    if option in ("--cert", "--key", "--certfile", "--keyfile"):
        return CERTIFICATES
    if option in OPTIONS:
        return f"write {OPTIONS[option]}"
    place = FIELDS.get(option) or _place_of(option.lstrip("-").replace("-", "_"))
    return None if place is None else _field(place)


def _place_of(name: str) -> str | None:
    """The place of a field of this name."""
    if name in fields_of(Scenario):
        return name
    found = holders(name, Scenario)
    chosen = next((place for place in PREFERRED if place in found), None)
    if chosen is None and name in fields_of(LinkDirection):
        chosen = "networks.up"
    chosen = chosen or next(iter(found), None)
    return None if chosen is None else f"{chosen}.{name}"


def _field(place: str) -> str:
    """How a field is set: by --set, and in a file."""
    table, _, name = place.rpartition(".")
    first, _, rest = table.partition(".")
    kind = get_origin(fields_of(Scenario)[first or name].annotation)
    is_array = kind is list
    top = f"{first}.{DEVICES}" if kind is dict else first
    heading = f"[[{first}]]" if is_array else f"[{top}]"
    where = ".".join(part for part in (f"{first}[0]" if is_array else top, rest, name) if part)
    value = example_of(place, Scenario)
    within = f" in `{rest}` of {heading}" if rest else f" below {heading}" if table else ""
    line = f"in the file that --save writes: `{name} = {value}`{within}"
    # Only of these has a scenario of this command an entry to change.
    is_there = not is_array or first in ("groups", "networks")
    return f"write --set {where}={_shell(value)}, or {line}" if is_there else f"write {line}"


def _shell(value: str) -> str:
    """A value as an argument: text needs no quotes of TOML, unless it looks like a number."""
    bare = value.strip('"')
    if value != bare and not re.fullmatch(r"[\d.]+", bare):
        return shlex.quote(bare)
    return shlex.quote(value)
