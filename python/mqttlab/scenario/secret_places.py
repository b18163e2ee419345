"""Where a scenario has secrets, as far as it says them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from mqttlab import secrets
from mqttlab.scenario.credentials import CredentialsError
from mqttlab.scenario.location import Location
from mqttlab.scenario.model import ClientProgram, Program, Scenario
from mqttlab.scenario.mqtt import Mqtt


def secrets_of(scenario: Scenario) -> Iterator[tuple[Location, str]]:
    """The marks of a scenario's secrets, with their places."""
    found: list[tuple[Location, Any]] = []
    sessions: list[tuple[Location, Mqtt | None]] = [(("mqtt",), scenario.mqtt)]
    sessions += [(("groups", index, "mqtt"), group.mqtt) for index, group in enumerate(scenario.groups)]
    for place, session in sessions:
        if session is not None:
            found += [((*place, "username"), session.username), ((*place, "password"), session.password)]
            with contextlib.suppress(CredentialsError):
                found += [((*place, "credentials"), table.mark())] if (table := session.table) is not None else []
    for where, server in scenario.all_servers:
        found += _told((*where, "program"), server.program)
    for index, group in enumerate(scenario.groups):
        found += _told(("groups", index, "client"), group.client)
        if group.transport is not None and group.transport.websocket is not None:
            found.append((("groups", index, "transport", "websocket", "path"), group.transport.websocket.path))
    yield from ((place, text) for place, text in found if isinstance(text, str) and secrets.is_mark(text))


def _told(place: Location, program: Program | ClientProgram | None) -> list[tuple[Location, Any]]:
    if program is None:
        return []
    named = [(field, name, text) for field in ("environment", "files")
             for name, text in getattr(program, field).items()]
    return [((*place, "command", index), text) for index, text in enumerate(program.command)] + [
        ((*place, field, name), text) for field, name, text in named]
