"""Wrong experiment files, and what mqttlab says of them: the cases behind docs/reference/messages-experiment.md.

``python tests/python/wrong_experiments.py`` writes the page; a test holds it to what mqttlab says.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

from mqttlab.errors import MqttlabError
from mqttlab.experiments import load

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "messages-experiment.md"

SCENARIO = """name = "field"
backend = "sim"

[phases]
duration = "2 s"

[[networks]]
between = ["field", "broker"]
up = { rate = "1 Mbit/s", delay = "20 ms" }
down = { rate = "1 Mbit/s", delay = "20 ms" }

[[groups]]
name = "map"
host = "field"
count = 2
publish = { topic = "map/{client}", payload = "200 B", interval = "100 ms" }

[[groups]]
name = "reader"
host = "field"
subscribe = ["map/+"]
"""

GOOD = """name = "loss"
question = "Which QoS is fit for which loss?"
scenario = "field.toml"
design = "full"
repetitions = 5
control = "every 10 runs"
reference = { loss = "0 %" }
responses = ["latency_ms_p99", "messages_lost_percent"]

[[factors]]
name = "loss"
places = ["networks[0].up.loss", "networks[0].down.loss"]
levels = ["0 %", "1 %", "5 %"]

[[factors]]
place = "groups[map].publish.qos"
levels = [0, 1, 2]

[[thresholds]]
metric = "latency_ms_p99"
below = "250 ms"
"""

NAME = 'name = "loss"\nquestion'
SCENARIO_FIELD = 'scenario = "field.toml"'
DESIGN = 'design = "full"'
REPETITIONS = "repetitions = 5"
CONTROL = 'control = "every 10 runs"'
REFERENCE = 'reference = { loss = "0 %" }'
RESPONSES = 'responses = ["latency_ms_p99", "messages_lost_percent"]'
PLACES = 'places = ["networks[0].up.loss", "networks[0].down.loss"]'
LEVELS = 'levels = ["0 %", "1 %", "5 %"]'
PLACE = 'place = "groups[map].publish.qos"'
QOS = "levels = [0, 1, 2]"
METRIC = 'metric = "latency_ms_p99"\nbelow'
BELOW = 'below = "250 ms"'
SEARCH = '\n[search]\nfactor = "loss"\ncriterion = { metric = "latency_ms_p99", below = "1 s" }\n'

WRONG: dict[str, list[tuple[str, str]]] = {
    "Files and fields": [
        (NAME, "name = loss\nquestion"), (NAME, "question"), (NAME, 'name = "a b"\nquestion'),
        (NAME, 'nmae = "loss"\nquestion'), (SCENARIO_FIELD, ""), (SCENARIO_FIELD, 'scenario = "feild.toml"'),
        (SCENARIO_FIELD, 'scenario = "loss.toml"'), (SCENARIO_FIELD, "scenario = 7"),
        (SCENARIO_FIELD, 'scenario = "field.toml"\nbackend = "ns-3"'),
        (SCENARIO_FIELD, 'scenario = "field.toml"\nset = { "phases.duration" = 5 }'),
        (SCENARIO_FIELD, 'scenario = "field.toml"\nset = { "groups[7].count" = 5 }'),
        (SCENARIO_FIELD, 'scenario = "field.toml"\nseed = -1'), (REPETITIONS, "repetitions = 5\nattempts = 0"),
        (REPETITIONS, 'repetitions = 5\nkeep_recordings = "no"'),
    ],
    "Factors": [
        (PLACE, ""), (PLACE, PLACE + '\nplaces = ["mtu"]'), (PLACE, 'place = "groups[mpa].publish.qos"'),
        (PLACE, 'place = "groups[5].publish.qos"'), (PLACE, 'place = "groups.publish.qos"'),
        (PLACE, 'place = "groups[map]..qos"'), (PLACE, 'place = "groups[map].publish.qso"'),
        (PLACE, 'place = "groups[*].relay.suffix"'), (PLACE, 'place = "name.qos"'), (QOS, ""), (QOS, "levels = []"),
        (QOS, "levels = [0, 1, 3]"), (QOS, 'levels = ["0"]'), (QOS, "levels = [0, 1, 1]"), (QOS, "levels = 0"),
        (LEVELS, 'levels = ["0 %", "150 %"]'), (LEVELS, "levels = [0, 1]"),
        (LEVELS, LEVELS + '\nrange = { from = "0 %", to = "5 %" }'),
        (LEVELS, 'range = { from = "0 %", to = "5 %" }'), (LEVELS, 'range = { from = "0 %", to = "5 ms", levels = 3 }'),
        (LEVELS, 'range = { from = "5 %", to = "0 %", levels = 3 }'),
        (LEVELS, 'range = { from = "0 %", to = "5 %", levels = 3, scale = "logarithmic" }'),
        (LEVELS, 'range = { from = "0 %", to = "5 %", levels = 1 }'),
        (LEVELS, 'range = { from = "0 %", to = "5 %", levels = 3, scale = "log" }'),
        (LEVELS, 'range = { from = "low", to = "5 %", levels = 3 }'), (LEVELS, 'range = { from = "0 %" }'),
        (QOS, "range = { from = 0, to = 2, levels = 5 }"), (PLACE, PLACE + '\nname = "loss"'),
        (PLACE, PLACE + '\nname = "seed"'), (PLACE, PLACE + '\nname = "q o s"'),
        (f"{PLACE}\n{QOS}", 'name = "qos"\n[factors.patches.good]\n"groups[map].publish.qos" = 1\n'
                            '[factors.patches.bad]\n"groups[map].publish.qos" = 5'),
        (f"{PLACE}\n{QOS}", 'name = "qos"\n[factors.patches.bad]\n"groups[pam].publish.qos" = 5'),
    ],
    "Designs": [
        (DESIGN, 'design = "fulll"'), (DESIGN, 'design = "fractional"'), (DESIGN, 'design = "sobol"'),
        (DESIGN, 'design = { kind = "sobol", points = 60 }'), (DESIGN, 'design = { kind = "full", points = 60 }'),
        (DESIGN, 'design = { kind = "full", resolution = 4 }'),
        (DESIGN, 'design = { kind = "fractional", resolution = 6 }'),
        (DESIGN, 'design = { kind = "latin-hypercube", points = 0 }'), (DESIGN, 'design = "list"'),
        (DESIGN, 'design = "search"'), (QOS, QOS + "\n[[points]]\nqos = 1"), (QOS, QOS + SEARCH),
        (REFERENCE, 'reference = { loss = "2 %" }'), (REFERENCE, 'reference = { los = "0 %" }'),
        (REFERENCE, "reference = 3"),
    ],
    "Repetitions, order and control": [
        (REPETITIONS, "repetitions = 0"), (REPETITIONS, 'repetitions = "5"'),
        (REPETITIONS, "repetitions = { min = 5 }"),
        (REPETITIONS, 'repetitions = { min = 9, max = 5, until = { metric = "latency_ms_p99", half_width = "5 %" } }'),
        (REPETITIONS, 'repetitions = { until = { metric = "latency_p99", half_width = "5 %" } }'),
        (REPETITIONS, 'repetitions = { until = { metric = "latency_ms_p99", half_width = 5 } }'),
        (REPETITIONS, 'repetitions = 5\norder = "random"'), (REPETITIONS, 'repetitions = 5\nseeds = "same"'),
        (CONTROL, 'control = "often"'), (CONTROL, "control = 0"),
    ],
    "Responses and thresholds": [
        (RESPONSES, 'responses = ["latency_p99"]'), (RESPONSES, 'responses = [{ metric = "frames" }]'),
        (RESPONSES, 'responses = [{ metric = "latency_ms_p99", scope = "link" }]'), (RESPONSES, "responses = 5"),
        (METRIC, 'metric = "latency"\nbelow'), (BELOW, ""), (BELOW, 'below = "5 %"'), (BELOW, 'below = "soon"'),
        (BELOW, BELOW + '\nabove = "1 ms"'), (BELOW, BELOW + '\nat = { loss = "2 %" }'),
        (BELOW, BELOW + "\nat = { x = 1 }"), (BELOW, BELOW + '\nstage = "busy"'),
        (BELOW, BELOW + '\nabort = true\nstage = "busy"'),
        (BELOW, BELOW + '\nscope = "qos"'), (BELOW, BELOW + '\nname = "1"'), (BELOW, 'above = "1 ms"\nabort = true'),
        (BELOW, 'not_worse_than = { by = "5 %" }'), (BELOW, 'not_worse_than = { baseline = "v1", by = 5 }'),
    ],
}


def experiment_message(old: str, new: str) -> list[str]:
    """What is said of the experiment with one part replaced."""
    assert old in GOOD, old
    with tempfile.TemporaryDirectory() as directory, chdir(directory):
        Path("field.toml").write_text(SCENARIO, encoding="utf-8")
        Path("loss.toml").write_text(GOOD.replace(old, new, 1), encoding="utf-8")
        try:
            load(Path("loss.toml"))
        except MqttlabError as error:
            return error.problems
    return []


def page() -> str:
    """The page of all messages."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from ("# Messages about experiment files", "", "Generated by `python tests/python/wrong_experiments.py`; a "
                "test checks that the program prints them. The exit status is 2, and nothing has been started. "
                "[messages.md](messages.md) has those about scenarios.", "", "The left column replaces one part of "
                "this experiment (`loss.toml`):", "", "```toml", GOOD.strip(), "```", "",
                "Its scenario (`field.toml`):", "", "```toml", SCENARIO.strip(), "```")
    for heading, cases in WRONG.items():
        yield from ("", f"## {heading}", "", "| written | message |", "|---|---|")
        for old, new in cases:
            written = new.strip() or f"{old}  # left out"
            lines = [f"`{line}`" for line in written.splitlines() if line]
            yield f"| {_cell(lines)} | {_cell(experiment_message(old, new))} |"


def _cell(lines: list[str]) -> str:
    return "<br>".join(line.replace("|", "\\|") for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
