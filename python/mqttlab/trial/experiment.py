"""Options with several values as an experiment: a point for each combination, the same dice at every point."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mqttlab.experiments.responses import Response
from mqttlab.networks import MODELS
from mqttlab.trial.options import DEVICES, LINK_OPTIONS, POINTS_MAX, Trial, TrialError
from mqttlab.trial.text import quantity, scenario_text, toml_value

ONE_VALUE = ("shape", "seed", "repetitions", "duration")
COUNTS = ("clients", "subscribers", "publishers", "qos")
LATENCIES = ("latency_ms_p50", "latency_ms_p95", "latency_ms_p99")
UNDELIVERED = Response("undelivered_percent")
BYTES_UP = Response("ip_kb_per_device_hour_up", "group", DEVICES)
BYTES_DOWN = Response("ip_kb_per_device_hour_down", "group", DEVICES)
MONTH = Response("ip_mb_per_device_month", "group", DEVICES)
LATE, DISCONNECTS = Response("late"), Response("disconnects")
"""Later than the scenario asks for; connections that ended unplanned, such as those that a NAT has forgotten."""


@dataclass(frozen=True, kw_only=True)
class Files:
    """A comparison as two files: the experiment, and the scenario that it varies."""

    experiment: str
    scenario: str


def responses() -> tuple[Response, ...]:
    """What a comparison measures."""
    return (*(Response(name) for name in LATENCIES), UNDELIVERED, BYTES_UP, BYTES_DOWN, MONTH, LATE,
            DISCONNECTS)


def files_of(trial: Trial, name: str, scenario_file: str) -> Files:
    """The experiment that varies what the trial has several values of.

    Args:
        trial: at least one of its options has several values.
        name: of the experiment.
        scenario_file: the name of the scenario's file, beside the experiment's.

    Raises:
        TrialError: these options cannot be compared, or there are too many combinations.
    """
    _check(trial)
    repetitions = trial.value("repetitions", default_repetitions(trial))
    lines = [f"# {trial.command}", f"name = {json.dumps(name)}", f"question = {json.dumps(_question(trial))}",
             f"scenario = {json.dumps(scenario_file)}",
             f"repetitions = {repetitions}           # runs of each point; they are compared in pairs",
             "responses = ["]
    lines += [f"    {_response(response)}," for response in responses()]
    lines.append("]")
    for option, values in trial.varied.items():
        lines += ["", "[[factors]]", f'name = "{option}"', *_levels(trial, option, values)]
    return Files(experiment="\n".join(lines) + "\n", scenario=scenario_text(trial, as_base=True))


def default_repetitions(trial: Trial) -> str:
    """A simulation is cheap, a live run takes its time."""
    return "5" if trial.backend == "sim" else "1"


def _check(trial: Trial) -> None:
    for option in trial.varied:
        if option in ONE_VALUE:
            raise TrialError(f"--{option} has several values, but takes one; compare another option")
    combinations = sum(1 for _ in trial.singles())
    if combinations > POINTS_MAX:
        raise TrialError(f"{combinations} combinations are more than {POINTS_MAX}; leave some values out, or write an "
                         "experiment (docs/how-to/experiment.md)")
    if "transport" in trial.varied and trial.one("broker"):
        raise TrialError("--transport has several values, but --broker names one port; compare them without --broker")
    shared = {name for name in trial.values.get("network", ()) if name in MODELS
              and MODELS[name].placement == "shared-medium"}
    written = [option for option in LINK_OPTIONS if option in trial.values]
    if shared and written and shared != set(trial.values["network"]):
        raise TrialError(f"--{written[0]} is for one direction of {min(shared)}, which is a shared medium, and for two "
                         "of the other networks; compare them apart")


def _question(trial: Trial) -> str:
    words = " and ".join(f"{option} ({', '.join(values)})" for option, values in trial.varied.items())
    return f"What difference does it make: {words}?"


def _response(response: Response) -> str:
    if response.scope == "run":
        return json.dumps(response.metric)
    return (f'{{ metric = "{response.metric}", scope = "{response.scope}", name = "{response.scope_name}" }}')


def _levels(trial: Trial, option: str, values: Sequence[str]) -> list[str]:
    places = trial.places(option)
    if option == "broker":
        lines = ["[factors.patches]"]
        for value in values:
            address, _, port = value.rpartition(":")
            label = re.sub(r"[^A-Za-z0-9_.-]", "-", value)
            # Where the first one has a name, the others must not keep it.
            name = json.dumps(trial.hosts.get(value, address))
            named = f', "broker.tls.name" = {name}' if any(map(trial.names, values)) else ""
            lines.append(f'"{label}" = {{ "broker.address" = {json.dumps(address)}, "broker.{trial.port}" = '
                         f"{toml_value(port)}{named} }}")
        return lines
    levels = ", ".join(toml_value(value) if option in COUNTS else quantity(value) for value in values)
    return [f"places = {json.dumps(list(places))}", f"levels = [{levels}]"]
