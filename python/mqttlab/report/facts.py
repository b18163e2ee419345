"""What was run, in a few labelled words."""

from __future__ import annotations

from mqttlab.digits import plain
from mqttlab.metrics import sums
from mqttlab.plan import StoredPlan
from mqttlab.recording import Recording
from mqttlab.report import captured
from mqttlab.report.text import moment, number


def of_run(recording: Recording) -> list[tuple[str, str]]:
    """When, on what, over which network, by how many, for how long: label and value of each."""
    plan = recording.plan
    clients = sum(group["count"] for group in plan.get("groups", []))
    network = plan.get("network", {})
    how = captured.facts(recording) if captured.is_import(recording) else [
        ("backend", str(plan.get("backend", "–"))), ("seed", str(plan.get("seed", "–")))]
    return [
        ("started", moment(recording.run.get("started_at", "–"))),
        *how,
        *_servers(plan),
        ("network", str(network.get("description") or network.get("kind", "–"))),
        ("clients", number(clients)),
        *parts(recording),
        *left_out(recording),
        ("measured", f"{plain(_measured_ns(plan) / 1e9)} s"),
    ]


def _measured_ns(plan: StoredPlan) -> int:
    """How long is measured as planned: of stages those that count."""
    stages = plan.get("stages") or ()
    measured = sum(stage["until_ns"] - stage["from_ns"] for stage in stages if stage["measured"])
    return measured or int(plan.get("phases", {}).get("duration_ns", 0))


def parts(recording: Recording) -> list[tuple[str, str]]:
    """Into how many parts a run was split, and how well their clocks agree."""
    details = recording.run.get("details") or {}
    told = details.get("parts")
    if not told:
        return []
    bound = f"{details['clock_bound_ns'] / 1e3:,.0f} µs"
    known = sum(part.get("clock") is not None for part in told[1:])
    clocks = f"their clocks are known to ± {bound}, and latencies between them" if known else "their clocks are unknown"
    troubles = [f"part {part['part']}: {part['problem']}" for part in told if part.get("problem")]
    return [("parts", "; ".join([f"{len(told)}, {clocks}", *troubles]))]


def left_out(recording: Recording) -> list[tuple[str, str]]:
    """What a run was told not to record, and what is unknown for that; nothing where it recorded everything."""
    if recording.plan.get("recording", {}).get("packets", True):
        return []
    if told := sums.sampled(recording):
        return [("recorded", f"sums of all messages, and a sample, {told} (`recording.detail`): counts, means, "
                             "smallest and largest values are exact, quantiles are off by 1/256 at most and have no "
                             "intervals; these are unknown: metrics of links, TCP, protocols, devices, topics, bursts "
                             "and events, and the parts of latencies")]
    return [("recorded", "messages only (`recording.detail`); without frames and control packets these are unknown: "
                         "metrics of links, TCP, protocols and devices' bytes, and the parts of latencies")]


def _servers(plan: StoredPlan) -> list[tuple[str, str]]:
    """Each server under its name, which is `broker` where there is one and nobody called it otherwise."""
    return [(server["name"], f"{server['kind']} {server['version']}".strip()) for server in plan["servers"]]
