"""A scenario as the Configure page has it: six fields and the TOML that they stand for, each following the other.

What a browser may ask for is less than what a file may: servers go by the adapters' names, and no command,
environment, file of a server or file of payloads is taken from it. Whoever has the token shall be able to measure, not
to run programs.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import Any

from mqttlab.errors import MqttlabError
from mqttlab.scenario import Scenario, ScenarioError
from mqttlab.scenario.load import parse

REFUSED = ("program", "command", "environment", "files", "path", "configuration", "config", "arguments", "address")
TOML_LETTERS_MAX = 200_000
PAYLOADS = {"gps": "GPS positions", "image": "images", "100 B": "100 B", "1 kB": "1 kB", "10 kB": "10 kB"}


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The six fields that andersen2021's front end has, and which backend."""

    qos: str = "each"
    """``0``, ``1``, ``2`` or ``each``."""
    network: str = "satcom"
    data: str = "gps"
    duration: str = "20 s"
    delay: str = "2 s"
    """Between two messages of a node."""
    nodes: int = 9
    backend: str = "live"


def written(draft: Draft) -> str:
    """The draft as TOML: publishers and as many subscribers, each of whom follows one publisher."""
    levels = ["0", "1", "2"] if draft.qos == "each" else [draft.qos]
    parts = [
        'name = "from-the-dashboard"', f'backend = "{_text(draft.backend)}"', "",
        "[phases]", 'warm_up = "2 s"', f'duration = "{_text(draft.duration)}"', 'cool_down = "10 s"', "",
        "[[networks]]", 'between = ["field", "broker"]', f'model = "{_text(draft.network)}"', "",
    ]
    for qos in levels:
        topic = f"data/qos{qos}/{{client}}"
        parts += [
            "[[groups]]", f'name = "publishers-qos{qos}"', 'host = "field"', f"count = {draft.nodes}",
            f'publish = {{ topic = "{topic}", qos = {qos}, payload = "{_text(draft.data)}", '
            f'interval = "{_text(draft.delay)}" }}', "",
            "[[groups]]", f'name = "subscribers-qos{qos}"', 'host = "field"', f"count = {draft.nodes}",
            f'subscribe = [{{ filter = "{topic}", qos = {qos} }}]', "",
        ]
    return "\n".join(parts)


def read(toml: str, before: Draft) -> Draft:
    """The six fields as a TOML has them; those that it does not tell stay as they were."""
    try:
        values = tomllib.loads(toml)
        groups = [group["publish"] | {"count": group.get("count", 1)} for group in values["groups"]
                  if "publish" in group]
        levels = {str(publish.get("qos", 0)) for publish in groups}
        return Draft(
            qos="each" if len(levels) > 1 else levels.pop(), network=str(values["networks"][0].get(
                "model", before.network)),
            data=str(groups[0].get("payload", before.data)), duration=str(values["phases"]["duration"]),
            delay=str(groups[0].get("interval", before.delay)), nodes=int(groups[0]["count"]),
            backend=str(values.get("backend", "live")))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return before


def check(toml: str) -> Scenario:
    """The scenario of a TOML, if it can be run, and may be from a browser.

    Raises:
        ScenarioError: one line for each problem, with the line of the TOML where it has one.
    """
    if len(toml) > TOML_LETTERS_MAX:
        raise ScenarioError(f"scenario: has {len(toml)} characters; from the browser at most {TOML_LETTERS_MAX}")
    try:
        values = tomllib.loads(toml)
    except (ValueError, RecursionError):
        values = {}
    check_values(values)
    return parse(toml)


def check_values(values: dict[str, Any]) -> None:
    """Refuse values of a scenario that a browser may not ask for.

    Raises:
        ScenarioError: one line for each place.
    """
    if found := sorted(_refused(values, "")):
        raise ScenarioError([f"scenario: {place} cannot be set from the browser; use mqttlab run" for place in found])


def _refused(value: Any, place: str) -> list[str]:
    if isinstance(value, dict):
        inner = [(f"{place}.{key}".lstrip("."), key, part) for key, part in value.items()]
        # A host may have any name, this one too.
        named = place == "hosts"
        return [at for at, key, _ in inner if key in REFUSED and not named] + [
            found for at, key, part in inner for found in _refused(part, at)]
    if isinstance(value, list):
        return [found for number, part in enumerate(value) for found in _refused(part, f"{place}[{number}]")]
    if isinstance(value, str) and value in ("file", "program") and place.endswith(("payload.kind", ".kind")):
        return [place]
    return []


def problems(error: MqttlabError) -> list[str]:
    """The problems of an error without the name of a file that the page does not have."""
    return [re.sub(r"^scenario:(\d+): ", r"line \1: ", text).removeprefix("scenario: ") for text in error.problems]


def _text(value: str) -> str:
    """A text within TOML's quotes: what would end them is left out."""
    return re.sub(r'["\\\x00-\x1f\x7f]', "", value)
