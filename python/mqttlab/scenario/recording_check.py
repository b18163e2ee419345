"""What of a recording does not go together."""

from __future__ import annotations

from collections.abc import Iterator

from mqttlab.scenario.location import Problem
from mqttlab.scenario.model import Scenario


def recording_problems(scenario: Scenario) -> Iterator[Problem]:
    """What `recording` asks for that no run can have."""
    detail = scenario.recording.detail
    if scenario.recording.pcapng and not scenario.recording.packets:
        yield ("recording", "pcapng"), (f"is on, but `recording.detail` is \"{detail}\": without frames there is no "
                                        "capture; leave one of them out")
    if detail != "summary":
        return
    if scenario.recording.payloads:
        yield ("recording", "payloads"), ("is on, but `recording.detail` is \"summary\", which keeps a sample of the "
                                          "messages; use \"messages\", or leave `payloads` out")
    if scenario.backend == "sim" and scenario.sim.detect_transient:
        yield ("recording", "detail"), ("is \"summary\", which adds up messages by phase while the run goes on, but "
                                        "`sim.detect_transient` finds out afterwards when the measurement began; use "
                                        "\"messages\", or leave `sim.detect_transient` out")
    if scenario.phases.stages:
        yield ("recording", "detail"), ("is \"summary\", which adds up the messages of the whole measurement, but "
                                        "`phases.stages` asks for a column of each stage; use \"messages\", or "
                                        "`phases.duration`")
    if scenario.live.parts > 1:
        yield ("recording", "detail"), ("is \"summary\", which adds up the messages of one engine, and `live.parts` is "
                                        f"{scenario.live.parts}; use \"messages\", or one part")
