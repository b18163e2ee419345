"""A scenario as the Configure page has it: a few fields and the TOML that they stand for, each following the other.

What a browser may ask for is less than what a file may: servers go by the adapters' names, and no command,
environment, file of a server, file of payloads or secret as text is taken from it. Whoever has the token
shall be able to measure, not to run programs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mqttlab.errors import MqttlabError
from mqttlab.networks import MODELS
from mqttlab.networks.trace import Trace, is_shipped
from mqttlab.scenario import Scenario, ScenarioError
from mqttlab.scenario.load import parse
from mqttlab.scenario.secret import written_at
from mqttlab.toml_reader import read_toml

REFUSED = ("program", "command", "environment", "files", "path", "configuration", "config", "arguments", "address",
           "authority", "file", "env", "replay", "credentials")
# What may be a name or a path; only a name is taken, which is looked up in the catalog or among mqttlab's traces.
NAMES = ("baseline", "trace")
TOML_LETTERS_MAX = 200_000
PAYLOADS = {"gps": "GPS positions", "image": "images", "100 B": "100 B", "1 kB": "1 kB", "10 kB": "10 kB"}


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The questions of ``mqttlab try``, which are those of andersen2021's front end, loss, and the backend."""

    qos: str = "each"
    """``0``, ``1``, ``2`` or ``each`` of MQTT; ``mqtt-sn`` or ``zeromq``."""
    network: str = "satcom"
    data: str = "gps"
    duration: str = "20 s"
    delay: str = "2 s"
    """Between two messages of a node."""
    nodes: int = 9
    loss: str = ""
    """In each direction, in place of the network model's; empty where that holds."""
    backend: str = "live"


def written(draft: Draft) -> str:
    """The draft as TOML: publishers and as many subscribers, each of whom follows one publisher."""
    parts = [
        'name = "from-the-dashboard"', f'backend = "{_text(draft.backend)}"', "",
        "[phases]", 'warm_up = "2 s"', f'duration = "{_text(draft.duration)}"', 'cool_down = "10 s"', "",
        "[[networks]]", 'between = ["field", "broker"]', f'model = "{_text(draft.network)}"',
        # As in andersen2021's front end: the nodes stand behind one network.
        'link = "shared"', *(f'{way} = {{ loss = "{_text(draft.loss)}" }}' for way in ways(draft) if draft.loss), "",
    ]
    if draft.qos == "zeromq":
        parts += ["[[servers]]", 'name = "proxy"', 'role = "zeromq"', 'host = "broker"', ""]
        parts += _groups(draft, "zeromq", 0, "proxy")
    elif draft.qos == "mqtt-sn":
        parts += ["[broker]", "", "[[servers]]", 'name = "gateway"', 'role = "gateway"', 'host = "broker"', ""]
        parts += _groups(draft, "mqtt-sn", 1, "gateway")
    else:
        for qos in ("0", "1", "2") if draft.qos == "each" else (_text(draft.qos),):
            parts += _groups(draft, f"qos{qos}", qos)
    return "\n".join(parts)


def ways(draft: Draft) -> tuple[str, ...]:
    """The directions that have a loss of their own; a shared medium has the one downwards for both."""
    model = MODELS.get(draft.network)
    return ("down",) if model is not None and model.placement == "shared-medium" else ("up", "down")


def _groups(draft: Draft, kind: str, qos: int | str, server: str = "") -> list[str]:
    """Publishers and subscribers of one kind."""
    topic = f"data/{kind}/{{client}}"
    spoken = [f'connects_to = "{server}"', f'protocol = "{kind}"'] if server else []
    # ZeroMQ knows no QoS.
    told, asked = (f" qos = {qos},", f'[{{ filter = "{topic}", qos = {qos} }}]') if kind != "zeromq" else (
        "", f'["{topic}"]')
    return [
        "[[groups]]", f'name = "publishers-{kind}"', 'host = "field"', f"count = {draft.nodes}", *spoken,
        f'publish = {{ topic = "{topic}",{told} payload = "{_text(draft.data)}", '
        f'interval = "{_text(draft.delay)}" }}', "",
        "[[groups]]", f'name = "subscribers-{kind}"', 'host = "field"', f"count = {draft.nodes}", *spoken,
        f"subscribe = {asked}", "",
    ]


def read(toml: str, before: Draft) -> Draft:
    """The fields as a TOML has them; empty, or 0, where it says something else than a field can. What is no TOML
    says nothing, and the fields stay as they were."""
    try:
        values = read_toml(toml)
    except ValueError:
        return before
    groups = [group for group in _tables(values, "groups") if _publications(group)]
    publish = _publications(groups[0])[0] if groups else {}
    phases, networks = values.get("phases"), _tables(values, "networks")
    count = groups[0].get("count", 1) if groups else 0
    losses = {_short(way.get("loss")) for name in ("up", "down") if networks
              and isinstance(way := networks[0].get(name), dict)}
    return Draft(
        loss=losses.pop() if len(losses) == 1 else "",
        qos=_protocol(groups), network=_short(networks[0].get("model")) if networks else "",
        data=_short(publish.get("payload")), delay=_short(publish.get("interval")),
        duration=_short(phases.get("duration")) if isinstance(phases, dict) else "",
        nodes=count if isinstance(count, int) else 0, backend=_short(values.get("backend", "live")))


def _tables(values: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = values.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _publications(group: dict[str, Any]) -> list[dict[str, Any]]:
    here = group.get("publish")
    return [here] if isinstance(here, dict) else _tables(group, "publish")


def _short(value: Any) -> str:
    return "" if value is None or isinstance(value, (dict, list)) else str(value)


def _protocol(groups: list[dict[str, Any]]) -> str:
    """What publishers speak, as the field has it; empty where they do not speak the same."""
    spoken = {str(group.get("protocol", "mqtt")) for group in groups}
    if spoken != {"mqtt"}:
        return spoken.pop() if len(spoken) == 1 else ""
    levels = {str(publish.get("qos", 0)) for group in groups for publish in _publications(group)}
    return "each" if len(levels) > 1 else levels.pop()


def check(toml: str, traces: Mapping[str, Trace] | None = None) -> Scenario:
    """The scenario of a TOML, if it can be run, and may be from a browser.

    Args:
        toml: the scenario.
        traces: those that a recording holds, by the paths that the scenario has of them.

    Raises:
        ScenarioError: one line for each problem, with the line of the TOML where it has one.
    """
    if len(toml) > TOML_LETTERS_MAX:
        raise ScenarioError(f"scenario: has {len(toml)} characters; from the browser at most {TOML_LETTERS_MAX}")
    try:
        values = read_toml(toml)
    except ValueError:
        values = {}
    check_values(values, traces or {})
    return parse(toml, traces=traces)


def check_values(values: dict[str, Any], traces: Collection[str] = ()) -> None:
    """Refuse values of a scenario that a browser may not ask for.

    Raises:
        ScenarioError: one line for each place.
    """
    if found := sorted(_refused(values, "", traces)):
        raise ScenarioError([f"scenario: {place} cannot be {_how(place)} from the browser; use mqttlab run"
                             for place in found])
    # The address keeps a draft, and others see addresses.
    if found := ["".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")
                 for place, _ in written_at(values)]:
        raise ScenarioError([f"scenario: `{place}` is a secret, which is not taken from the browser as text; write "
                             "{ env = \"NAME\" }, and start the dashboard with that variable" for place in found])


def _how(place: str) -> str:
    return "a path" if place.rpartition(".")[2] in NAMES else "set"


def _refused(value: Any, place: str, traces: Collection[str]) -> list[str]:
    if isinstance(value, dict):
        inner = [(f"{place}.{key}".lstrip("."), key, part) for key, part in value.items()]
        # A host may have any name, this one too.
        named = place == "hosts"
        # A browser may not have files read, nor variables used where others can see them.
        allowed = {"env"} if place.rpartition(".")[2] == "password" else set[str]()
        if value.keys() <= {"env", "file"} and value:
            return [] if value.keys() <= allowed else [place]
        return [at for at, key, part in inner if (key in REFUSED or is_path(key, part, traces)) and not named] + [
            found for at, key, part in inner for found in _refused(part, at, traces)]
    if isinstance(value, list):
        return [found for number, part in enumerate(value) for found in _refused(part, f"{place}[{number}]", traces)]
    if isinstance(value, str) and value in ("file", "program") and place.endswith(("payload.kind", ".kind")):
        return [place]
    return []


def is_path(field: str, value: Any, traces: Collection[str] = ()) -> bool:
    """Whether a field that may be a name or a path has a path: one could lead out of the runs' directory."""
    if field == "trace":
        # What a message says of a wrong line is a part of the file.
        return isinstance(value, str) and not is_shipped(value) and value not in traces
    return field in NAMES and isinstance(value, str) and ("/" in value or "\\" in value or value.startswith("."))


def problems(error: MqttlabError) -> list[str]:
    """The problems of an error without the name of a file that the page does not have."""
    return [re.sub(r"^scenario:(\d+): ", r"line \1: ", text).removeprefix("scenario: ") for text in error.problems]


def _text(value: str) -> str:
    """A text within TOML's quotes: what would end them is left out."""
    return re.sub(r'["\\\x00-\x1f\x7f]', "", value)
