"""What can go wrong for a user, as one tree of exceptions.

::

    MqttlabError
     ├── UsageError          the command line asks for something that cannot be done
     ├── ScenarioError       the scenario cannot be run (mqttlab.scenario)
     ├── EngineError         the engine is missing, or refused its plan (mqttlab.engine)
     ├── Interrupted         Ctrl-C before there was anything to keep (mqttlab.engine)
     ├── ScratchError        there is no place for temporary files (mqttlab.scratch)
     ├── RecordingError      a directory is not a recording, or a part of it cannot be read (mqttlab.recording)
     ├── ExportError         a recording cannot be exported in the form asked for (mqttlab.export)
     └── CalibrationError    a recording shows no service time (mqttlab.calibration)

Each is printed in one place, ``mqttlab.cli.main``, one line a problem. An exception outside this tree is a fault of the
program, and keeps its traceback.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class MqttlabError(Exception):
    """Something that the user can mend; ``problems`` are one line each, with place, value, limit and remedy."""

    exit_status: ClassVar[int] = 2
    """What ``mqttlab`` exits with: 2 for wrong input, before anything was made; 1 for what failed on the way."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class UsageError(MqttlabError):
    """The command line asks for something that cannot be done."""
