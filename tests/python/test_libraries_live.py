"""Our keep-alive beside libmosquitto's and paho-mqtt's, which run as programs: a short run of the bench."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches/agreement"))

from libraries import LIBRARIES, Case, scenario, seen

KEEP_ALIVE_S = 5
# At QoS 0 a publisher hears nothing but PINGRESP; at QoS 1 it hears a PUBACK within each keep-alive.
UNANSWERED = Case(name="unanswered", words="publishes at QoS 0", interval_s=1.2)
ANSWERED = Case(name="answered", words="publishes at QoS 1", qos=1, interval_s=1.2)
IDLE = Case(name="idle", words="subscriber without messages")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    pytest.importorskip("paho.mqtt.client", reason="paho-mqtt is not installed: make setup-test")
    for program in ("mosquitto_sub", "mosquitto_pub"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    directory = tmp_path_factory.mktemp("libraries") / "run"
    values = scenario((UNANSWERED, ANSWERED, IDLE), 13, "live", KEEP_ALIVE_S)
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


@pytest.mark.live
@pytest.mark.parametrize("case", [UNANSWERED, ANSWERED, IDLE], ids=lambda case: case.name)
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_client_pings_when_the_library_does(library: str, case: Case, recording: Recording) -> None:
    theirs, ours = (seen(recording, case, library, whose) for whose in ("theirs", "ours"))
    if (library, case) == ("libmosquitto", ANSWERED):
        assert not theirs.pings_s and not ours.pings_s
        return
    # A look comes with a message, or a second after the last. libmosquitto's clock has whole seconds.
    longest_s = KEEP_ALIVE_S + max(case.interval_s, 1) + 0.5
    assert len(theirs.pings_s) >= 2 and abs(len(theirs.pings_s) - len(ours.pings_s)) <= 1
    for interval_s in (*theirs.intervals_s, *ours.intervals_s):
        assert KEEP_ALIVE_S - 1 <= interval_s <= longest_s
