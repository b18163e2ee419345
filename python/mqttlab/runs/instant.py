"""A simulation stopped at an instant: the same plan again, until then, and the state of everything there.

Looking changes nothing: what happened before is what happened in the whole run (docs/explanation/simulator.md).
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from mqttlab import scratch
from mqttlab.digits import plain
from mqttlab.engine import EngineError, engine_path


def state_at(plan: Mapping[str, Any], seconds: float, *, timeout_s: float = 60.0) -> dict[str, Any]:
    """Simulate a plan until an instant, and return the state there, as docs/explanation/simulator.md has it.

    Args:
        plan: of a simulation, of the latest schema.
        seconds: since the start of the run, connecting included.
        timeout_s: how long that may take.

    Raises:
        EngineError: the engine is not there, refuses the plan, or takes too long.
    """
    with scratch.directory("instant") as place:
        arguments = [str(engine_path()), "run", "--directory", f"{place}/run", "--until", f"{seconds:.9f}"]
        try:
            # In a session of its own: Ctrl-C at a terminal is for whoever asks.
            done = subprocess.run(arguments, input=json.dumps(plan), capture_output=True, text=True, check=False,
                                  timeout=timeout_s, start_new_session=True)
        except subprocess.TimeoutExpired:
            raise EngineError(f"the simulation does not reach {plain(seconds)} s within {plain(timeout_s)} s; choose "
                              "an earlier instant") from None
    if done.returncode != 0:
        raise EngineError(done.stderr.strip().removeprefix("mqttlab-engine: ") or "the simulation could not be stopped")
    state: dict[str, Any] = json.loads(done.stdout)
    return state
