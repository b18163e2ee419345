"""What goes beyond andersen2021's ten scenarios, and what it cites: families of cases, a table each.

- Clients whose keep-alive counts silence, on the three narrow networks. Live they are performed by
  paho-mqtt itself (``paho_client.py``).
- Clients that never repeat, on the three narrow networks. The study's own repeat what was not acknowledged within 20 s:
  it ran paho-mqtt 1.5.1, where this was the default (1.6 ended it). These, with five seeds, stand in its own tables.
- Broadband and satellite with clients that publish at random moments instead of in step.
- Messages of 400 B to 1 MB on all five networks (the study's section 6).
- Its ten scenarios with ten seeds, for the certainty of its recommendations.
- Publishers that speak MQTT-SN to a transparent gateway on the broker's host, which the study prepared.
- Johnsen et al. 2019 as the study's section 2.1 tells it: 23 publishers to one subscriber, every 10 s for 20 minutes.
  The radio is the study's narrow networks with one channel for both directions, the payload 100 B; WS-Notification is
  not here.
- Lee et al. as the same section tells it: payloads of 1 to 16 kB on a wire, here of 10 Mbit/s, without loss and with
  1 %.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mqttlab.errors import UsageError
from mqttlab.studies.andersen2021.case import NETWORKS, PAYLOADS, Case, Effort
from mqttlab.studies.study import Case as AnyCase

SIZES = (400, 4_000, 40_000, 400_000, 1_000_000)
FAST_NETWORKS = ("tactical-broadband", "satcom")
NARROW = ("nato-narrowband", "cnr-1", "cnr-10")
SEEDS = range(1, 11)
LEE_SIZES = (1_000, 2_000, 4_000, 8_000, 16_000)
LEE_LOSSES = (0, 1)
SILENCE, LARGER, CERTAINTY = "clients that count silence", "larger messages", "6.1, by seeds"
NEVER, MOMENTS = "clients that never repeat", "publishing at random moments"
PAHO_1_5_RETRY = "20 s"
PAHO_1_5_SEEDS = range(1, 6)
PAHO_1_5_PLACE = "MQTTLAB_PAHO_1_5"
"""Names a directory with paho-mqtt 1.5.1, for live runs: ``pip install --target DIRECTORY paho-mqtt==1.5.1``."""
SN, JOHNSEN, LEE = "MQTT-SN", "Johnsen 2019", "Lee"
# Protocol, QoS, and what the gateway has under way to a client.
JOHNSEN_RUNS = (("mqtt", 0, 1), ("mqtt", 1, 1), ("mqtt-sn", 0, 1), ("mqtt-sn", 1, 1), ("mqtt-sn", 1, 0))
TABLES = (SILENCE, NEVER, MOMENTS, LARGER, CERTAINTY, SN, JOHNSEN, LEE)
Points = Mapping[str, Mapping[str, Any]]


def families(points: Points) -> dict[str, list[AnyCase]]:
    """The cases by table, made from the study's ten scenarios by name."""
    return {
        SILENCE: [_silent(points, network, payload) for network in NARROW for payload in PAYLOADS.values()],
        NEVER: [Case(name=name, values=_copied(points, name)) for network in NARROW for payload in PAYLOADS.values()
                for name in [f"{network}-{payload}"]],
        MOMENTS: [AtRandom(name=moments_name(network, payload), values=_copied(points, f"{network}-{payload}"))
                  for network in FAST_NETWORKS for payload in PAYLOADS.values()],
        LARGER: [_larger(points, network, size) for network in NETWORKS.values() for size in SIZES],
        CERTAINTY: [_seeded(points, name, seed) for name in points for seed in SEEDS],
        SN: [_over_sn(points, name) for name in points],
        JOHNSEN: [Johnsen(network=network, protocol=protocol, qos=qos, window=window) for network in NARROW
                  for protocol, qos, window in JOHNSEN_RUNS],
        LEE: [Lee(size=size, loss=loss) for loss in LEE_LOSSES for size in LEE_SIZES],
    }


def of_the_study(points: Points, name: str) -> list[AnyCase]:
    """One of the ten scenarios with the study's own clients, with each seed; none on a fast network.

    Nothing waits there for the 20 s after which these clients repeat.
    """
    network, payload = name.rsplit("-", 1)
    return [_repeating(points, network, payload, seed) for seed in PAHO_1_5_SEEDS] if network in NARROW else []


def paho_name(network: str, payload: str) -> str:
    """The scenario of clients that count silence, which paho-mqtt performs live."""
    return f"{network}-{payload}-paho"


def repeating_name(name: str, seed: int) -> str:
    """One of the narrow scenarios with clients as paho-mqtt 1.5.1's."""
    return f"{name}-paho-1-5-run-{seed}"


def moments_name(network: str, payload: str) -> str:
    """One of the fast scenarios with clients that publish at random moments."""
    return f"{network}-{payload}-random"


def larger_name(network: str, size: int) -> str:
    """The scenario of a network with messages of a size."""
    return f"{network}-{size}B"


def seeded_name(name: str, seed: int) -> str:
    """One of the ten scenarios with a seed of its own."""
    return f"{name}-seed-{seed}"


def sn_name(name: str) -> str:
    """One of the ten scenarios with publishers that speak MQTT-SN."""
    return f"{name}-mqtt-sn"


def _silent(points: Points, network: str, payload: str) -> Case:
    values = _copied(points, f"{network}-{payload}")
    values["mqtt"] = {**values.get("mqtt", {}), "ping": "silence"}
    return Paho(name=paho_name(network, payload), values=values)


def _repeating(points: Points, network: str, payload: str, seed: int) -> Case:
    values = _copied(points, f"{network}-{payload}")
    values["mqtt"] = {**values.get("mqtt", {}), "ping": "interval", "retry": PAHO_1_5_RETRY}
    return PahoOf2021(name=repeating_name(f"{network}-{payload}", seed), values={**values, "seed": seed})


def _larger(points: Points, network: str, size: int) -> Case:
    values = _copied(points, f"{network}-gps")
    for group in values["groups"]:
        if "publish" in group:
            group["publish"]["payload"] = f"{size} B"
    values["recording"] = {"detail": "messages"}
    return Case(name=larger_name(network, size), values=values)


def _seeded(points: Points, name: str, seed: int) -> Case:
    values = {**_copied(points, name), "seed": seed, "recording": {"detail": "messages"}}
    return Case(name=seeded_name(name, seed), values=values)


def _over_sn(points: Points, name: str) -> Case:
    values = _copied(points, name)
    values["broker"] = values.get("broker", {})
    values["servers"] = [GATEWAY]
    for group in values["groups"]:
        group["connects_to"] = "broker"
        if "publish" in group:
            group |= {"protocol": "mqtt-sn", "connects_to": "gateway", "mqtt_sn": SN_SESSION}
    return Case(name=sn_name(name), values=values)


def _copied(points: Points, name: str) -> dict[str, Any]:
    return copy.deepcopy(dict(points[name]))


# As in the study's set-up: on the broker's machine, so that what it sends to the broker crosses no network.
GATEWAY_SAYS = {"mode": "transparent", "broker": "broker", "retry": "10 s", "retries": 5}
GATEWAY = {"name": "gateway", "role": "gateway", "host": "broker", "port": 10_000, "gateway": GATEWAY_SAYS}
SN_SESSION = {"retry": "10 s", "retries": 5, "keep_alive": "60 s"}


@dataclass(frozen=True, kw_only=True)
class Paho(Case):
    """Clients that count silence; live, paho-mqtt itself."""

    def live_scenario(self, effort: Effort) -> dict[str, Any]:
        """The same with a program for each client."""
        values = self.scenario(effort)
        program = Path(__file__).with_name("paho_client.py").read_text(encoding="utf-8")
        # On 9.6 kbit/s 54 clients need a while to connect; those that have go on until the measurement is over.
        values["phases"]["connect_timeout"] = "5 min"
        messages = round(effort.duration_s / 10) + 30
        for group in values["groups"]:
            publish, subscribe = group.pop("publish", None), group.pop("subscribe", [None])[0]
            words = (["publish", publish["topic"], publish["qos"], publish["payload"]] if publish
                     else ["subscribe", subscribe["filter"], subscribe["qos"], "-"])
            words = ["{address}", "{port}", "{client_id}", *words, messages, 10]
            group["client"] = {
                "command": [sys.executable, "{directory}/paho_client.py", *(str(word) for word in words)],
                "files": {"paho_client.py": program}, "ready_line": "ready"}
        return values


class PahoOf2021(Paho):
    """Clients that ping as paho-mqtt does, and repeat; live, paho-mqtt 1.5.1 itself."""

    def live_scenario(self, effort: Effort) -> dict[str, Any]:
        """The same with a program for each client, which finds that version in a directory of its own."""
        values = super().live_scenario(effort)
        if not (place := os.environ.get(PAHO_1_5_PLACE)):
            raise UsageError(f"{self.name} is performed by paho-mqtt 1.5.1: set {PAHO_1_5_PLACE} to a directory with "
                             f"it (pip install --target DIRECTORY paho-mqtt==1.5.1)")
        for group in values["groups"]:
            group["client"]["environment"] = {"PYTHONPATH": place}
        return values


class AtRandom(Case):
    """Clients that publish at random moments instead of in step."""

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        values = super().scenario(effort)
        for group in values["groups"]:
            if "publish" in group:
                group["publish"]["start_phase"] = "random"
        return values


@dataclass(frozen=True, kw_only=True)
class Johnsen:
    """23 publishers to one subscriber, every 10 s for 20 minutes, by MQTT or MQTT-SN."""

    network: str
    protocol: str
    qos: int
    window: int = 1
    """Messages that the gateway has under way to a client; 0: as many as come."""

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        return f"johnsen-{self.network}-{self.protocol}-qos{self.qos}" + ("" if self.window else "-w0")

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        sn = self.protocol == "mqtt-sn"
        speaks = {"protocol": "mqtt-sn", "connects_to": "gateway", "mqtt_sn": SN_SESSION} if sn else {
            "connects_to": "broker"}
        return {
            "name": self.name,
            "phases": {"duration": f"{2 * effort.duration_s:g} s", "cool_down": f"{effort.cool_down_s:g} s"},
            "mqtt": {"ping": "sent"}, "broker": {},
            "servers": [{**GATEWAY, "gateway": {**GATEWAY_SAYS, "window": self.window}}] if sn else [],
            "networks": [{"between": ["field", "broker"], "model": self.network, "placement": "shared-medium"}],
            "groups": [
                {"name": "publishers", "host": "field", "count": 23, **speaks,
                 "publish": {"topic": "p/{client}", "qos": self.qos, "payload": "100 B", "interval": "10 s"}},
                {"name": "subscriber", "host": "field", **speaks, "subscribe": [{"filter": "p/+", "qos": self.qos}]},
            ],
        }


@dataclass(frozen=True, kw_only=True)
class Lee:
    """A publisher and a subscriber at each QoS over a wire."""

    size: int
    loss: int
    """Percent, each way."""

    @property
    def name(self) -> str:
        """Unique among the study's scenarios."""
        return f"lee-{self.size}B-{self.loss}"

    def scenario(self, effort: Effort) -> dict[str, Any]:
        """As a scenario file's values."""
        wire = {"rate": "10 Mbit/s", "delay": "1 ms", "overhead": "18 B", "loss": f"{self.loss} %"}
        groups: list[dict[str, Any]] = []
        for qos in (0, 1, 2):
            groups += [
                {"name": f"publisher-qos{qos}", "host": "near",
                 "publish": {"topic": f"p/{qos}", "qos": qos, "payload": f"{self.size} B", "interval": "100 ms"}},
                {"name": f"subscriber-qos{qos}", "host": "far", "subscribe": [{"filter": f"p/{qos}", "qos": qos}]}]
        return {
            "name": self.name,
            "phases": {"duration": f"{effort.duration_s / 5:g} s", "cool_down": "10 s"},
            "networks": [{"between": [host, "broker"], "up": wire, "down": wire} for host in ("near", "far")],
            "mqtt": {"ping": "sent"}, "groups": groups, "recording": {"detail": "messages"},
        }
