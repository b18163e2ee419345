"""Events by hand: a live run that goes on is asked for one, at the socket in its directory (``crates/live``,
``run/hand_socket.rs``).

Exceptions:
    HandError: the run takes no events now, or refuses this one.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from mqttlab.engine import is_being_written
from mqttlab.errors import MqttlabError
from mqttlab.files import BY_HAND, json_lines, json_object, written_scenario
from mqttlab.mistaken import nearest_path, what_it_is

SOCKET = "events.sock"
ANSWERED_S = 10
ELSEWHERE = "put the event into the scenario, and run it again"


class HandError(MqttlabError):
    """The run takes no events now, or refuses this one."""


@dataclass(frozen=True, kw_only=True)
class HandDesk:
    """Where a run takes events."""

    directory: Path
    plan: Mapping[str, Any]
    scenario: tuple[str, dict[str, Any]]
    """As written, and the fields that were replaced."""
    _connection: socket.socket

    @classmethod
    @contextlib.contextmanager
    def of(cls, directory: Path) -> Iterator[Self]:
        """The desk of a run that goes on.

        Raises:
            HandError: it is simulated, or has ended, or takes no events for another reason.
        """
        plan = json_object(directory / "plan.json")
        if not plan:
            raise HandError(_no_run(directory))
        if plan.get("backend") != "live":
            raise HandError(f"{directory}: this run is simulated: {ELSEWHERE}")
        if not is_being_written(directory):
            raise HandError(f"{directory}: the run has ended; {ELSEWHERE}")
        if (plan.get("live") or {}).get("parts", 1) > 1:
            raise HandError(f"{directory}: several engines share this run, which takes no events by hand; {ELSEWHERE}")
        scenario = written_scenario(directory)
        if scenario is None:
            raise HandError(f"{directory} does not have the scenario that it was made from, by which it checks events; "
                            "start it with mqttlab run")
        with contextlib.closing(_connected(directory)) as connection:
            yield cls(directory=directory, plan=plan, scenario=scenario, _connection=connection)

    @property
    def since_publishing_ns(self) -> int:
        """How long the run has published.

        Raises:
            HandError: it does not yet.
        """
        since = self._asked({"ask": "time"}).get("since_publishing_ns")
        if since is None:
            raise HandError(f"{self.directory}: clients are still connecting; events take place from the warm-up on: "
                            "try again")
        return int(since)

    @property
    def earlier(self) -> list[tuple[int, dict[str, Any]]]:
        """Events that were fired before, as written, and how long after publishing began."""
        path = self.directory / BY_HAND
        lines = json_lines(path) if path.is_file() else []
        return [(line["event"]["at_ns"], line["written"]) for line in lines if line.get("written")]

    def fire(self, events: Sequence[tuple[int, Any]], written: Mapping[str, Any]) -> None:
        """Let these take place, each so long from now.

        Raises:
            HandError: the run refuses it.
        """
        fired = [{"after_ns": after, "event": event} for after, event in events]
        answer = self._asked({"fire": fired, "written": written})
        if "refused" in answer:
            raise HandError(f"{self.directory}: {answer['refused']}")

    def _asked(self, question: dict[str, Any]) -> dict[str, Any]:
        try:
            self._connection.sendall(json.dumps(question).encode() + b"\n")
            with self._connection.makefile("rb") as answers:
                line = answers.readline()
            answer = json.loads(line) if line.endswith(b"\n") else None
        except (OSError, ValueError):
            answer = None
        if not isinstance(answer, dict):
            raise HandError(f"{self.directory}: the run has ended meanwhile; {ELSEWHERE}")
        return answer


def _no_run(path: Path) -> str:
    """Why a path is no run, and what may be meant."""
    if path.is_file() and (path.parent / "plan.json").is_file():
        return f"{path} is a file of a run; name its directory: {path.parent}"
    near = None if path.exists() else nearest_path(path)
    if near is not None and Path(near).is_dir():
        return f"{path} is no run that has begun; did you mean {near}?"
    what = what_it_is(path) if path.is_file() or (path.is_dir() and any(path.glob("*/plan.json"))) else None
    return f"{path} is no run that has begun{f': it {what}' if what else '; mqttlab list shows runs'}"


def _connected(directory: Path) -> socket.socket:
    """To the socket, whose name may be longer than a socket's may be."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(ANSWERED_S)
    try:
        place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            connection.connect(f"/proc/self/fd/{place}/{SOCKET}")
        finally:
            os.close(place)
    except PermissionError:
        connection.close()
        raise HandError(f"{directory}: the run is another user's, who alone may fire events") from None
    except OSError:
        connection.close()
        raise HandError(f"{directory}: the run takes no events now: it is being set up, or its clients have left; try "
                        "again while it publishes") from None
    return connection
