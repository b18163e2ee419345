"""What buttons ask for: each is a name and a value, checked here, whoever sends them.

A button says so in its markup (``panels.act``), the browser puts it into one store, and one callback comes here. What
an action answers is shown in the status line, and the page is made anew.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqttlab.dashboard import run_annotations
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.store import Store
from mqttlab.errors import MqttlabError
from mqttlab.scenario.load import parse_values
from mqttlab.studies.catalogue import known

VALUE_LETTERS_MAX = 4000
Action = Callable[[str], str]


class Actions:
    """The actions by name."""

    def __init__(self, jobs: Jobs, store: Store | None = None) -> None:
        self._known: dict[str, Action] = {
            "cancel": lambda job: "It ends." if jobs.cancel(job) else "It has ended already.",
            "resume": lambda job: _said(jobs.resume(job), "It begins when there is room."),
            "study-case": lambda named: _study_case(jobs, named),
            "pause-queue": lambda _: _said(jobs.queue.pause(), "The queue is paused; what runs goes on."),
            "resume-queue": lambda _: _said(jobs.resume(), "The queue goes on."),
        }
        if store is not None:
            self._known |= run_annotations.actions(store, jobs)

    def perform(self, asked: Any) -> str:
        """Do what a button asks for, and say what came of it."""
        name = asked.get("name") if isinstance(asked, dict) else None
        if not isinstance(name, str) or name not in self._known:
            return "There is no such action."
        value = asked.get("value", "")
        if not isinstance(value, str) or len(value) > VALUE_LETTERS_MAX:
            return "That is no value."
        try:
            return self._known[name](value)
        except MqttlabError as error:
            return " ".join(error.problems)


def _study_case(jobs: Jobs, named: str) -> str:
    """Simulate one scenario of a study at its quick effort."""
    name, _, wanted = named.partition(" ")
    study = known().get(name)
    case = next((case for case in study.cases(study.published, ()) if case.name == wanted), None) if study else None
    if study is None or case is None:
        return "There is no such scenario."
    values = {**case.scenario(study.quick), "backend": "sim"}
    jobs.start_scenario(parse_values(values, wanted))
    return f"{wanted} is in the queue."


def _said(_done: Any, words: str) -> str:
    return words
