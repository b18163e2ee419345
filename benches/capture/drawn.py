"""What a number draws: a scenario, where its capture is taken, and what happens to it.

Scenarios come from ``benches/agreement/draw.py``, shorter, and without what an export of a simulation cannot show.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "agreement"))

from contents import CONTENTS
from draw import ATTEMPTS, KEPT_FROM, Dice, candidate
from files import COOKED, ETHERNET, RAW, Damage
from keep_alive import pings_as_measured
from passing import Frame, Point
from right import View, right_of
from streams import Traffic

from mqttlab.errors import MqttlabError
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

Values = dict[str, Any]

SCENARIOS_FROM = 2_000
"""Number 0 has the scenario of this number: those before have fewer fields."""
JUDGED_FROM = KEPT_FROM - SCENARIOS_FROM
"""Numbers from here on are kept for judging."""
LIVE_EVERY = 5
SIMULATED_PHASES = {"connect_timeout": "10 s", "warm_up": "200 ms", "duration": "3 s", "cool_down": "3 s"}
LIVE_PHASES = SIMULATED_PHASES | {"duration": "2 s", "cool_down": "2 s"}
PAYLOAD_MIN, PAYLOAD_MAX, CLIENTS_MAX = 40, 3_000, 6
RATE_MIN, BURST_MAX = 4, 12
# Links' copies and damaged frames are in no export.
LINK_LEFT_OUT = ("duplicate", "corrupt", "bit_errors")
# What no export of a simulation has: credentials, wills, aliases that the broker gives, lengths of sessions.
MQTT_LEFT_OUT = ("will", "username", "password", "client_id", "topic_aliases", "topic_alias_maximum", "session_expiry",
                 "deliver_qos2_on")
FIRST_ADDRESS = (10 << 24) + (77 << 16) + 1
SECOND = 10**9


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A capture by chance."""

    number: int
    backend: str
    values: Values
    contents: str
    assigns: bool
    place: str
    """``client``, ``broker``, ``middle`` or two of them."""
    damages: tuple[Damage, ...]
    """Of each file."""
    clock: tuple[int, float]
    """How far the last file's clock is ahead, in nanoseconds, and from which share of the capture on."""
    cut: tuple[float, float]
    """Which part of the time is captured, as shares."""
    file: tuple[int, str]
    """Link type, and kind of file."""

    def words(self, points: str = "") -> str:
        """What it is, in one line."""
        words = [self.backend, points or self.place, self.contents]
        for number, damage in enumerate(self.damages):
            words += [f"{what} ({number})" for what in _words(damage)]
        words += ["assigned identifiers"] * self.assigns
        if self.clock[0]:
            words.append(f"clock {self.clock[0] / 1e6:g} ms ahead" + (
                f" from {self.clock[1]:.0%} on" if self.clock[1] else ""))
        words += ["begins late"] * (self.cut[0] > 0) + ["ends early"] * (self.cut[1] < 1)
        kinds = {"websocket" in group.get("transport", {}) for group in self.values["groups"]}
        words += ["two listeners"] if len(kinds) > 1 else ["WebSocket"] * (True in kinds)
        words += [f"event: {event.get('do') or 'network'}" for event in self.values.get("events", [])]
        return ", ".join(words)


def _words(damage: Damage) -> list[str]:
    found = [f"snap {damage.snap}"] if damage.snap else []
    found += ["1 % missing"] * bool(damage.missing) + ["mirror"] * damage.mirror + ["nat"] * damage.nat
    return found + {"own": [], "zero": ["no IP numbers"], "v6": ["IPv6"]}[damage.numbers]


def draw_capture(number: int) -> Drawn:
    """What a number draws.

    Raises:
        ValueError: the number is negative, or none of its scenarios is complete.
    """
    dice = Dice(number)
    backend = "live" if number % LIVE_EVERY == LIVE_EVERY - 1 else "sim"
    place = dice.pick("capture.place", (
        "client", "client", "broker", "broker", "broker", "middle", "middle", "client+broker", "client+client",
        "middle+broker"))
    damages, clock, cut = _damages(dice, len(place.split("+")))
    return Drawn(
        number=number, backend=backend, values=_scenario(number, dice, backend), place=place, damages=damages,
        contents=dice.pick("capture.contents", ("late", "late", *CONTENTS)), clock=clock, cut=cut,
        assigns=backend == "sim" and dice.hits("capture.assigns", 0.15),
        file=(dice.pick("capture.link_type", (ETHERNET, ETHERNET, RAW, COOKED)),
              dice.pick("capture.file", ("pcap", "pcap", "nanoseconds", "pcapng"))))


def _damages(dice: Dice, files: int) -> tuple[tuple[Damage, ...], tuple[int, float], tuple[float, float]]:
    """What happens to the files: a quarter of the captures is whole."""
    if dice.hits("capture.whole", 0.25):
        return (Damage(),) * files, (0, 0.0), (0.0, 1.0)
    first = dice.pick("capture.damage", ("snap", "missing", "mirror", "nat", "numbers", "clock", "cut"))
    second = dice.pick("capture.damage.second", ("snap", "missing", "mirror", "numbers", "cut"))
    kinds = {first, second} if dice.hits("capture.damage.two", 0.3) else {first}
    numbers = dice.pick("capture.numbers", ("zero", "v6"))
    # A mirror is on one of the files; hosts without numbers, and IPv6, are everywhere.
    where = dice.whole("capture.where", 1, files) - 1
    has_numbers = "numbers" in kinds or ("mirror" in kinds and dice.hits("capture.mirror.numbers", 0.6))
    nat = "nat" in kinds and numbers != "v6"
    damages = tuple(Damage(
        snap=dice.pick("capture.snap", (64, 96, 128, 256)) if "snap" in kinds else None,
        missing=0.01 if "missing" in kinds else 0,
        mirror="mirror" in kinds and index == where,
        numbers=numbers if has_numbers or ("nat" in kinds and not nat) else "own",
        # The last of two files is outside.
        nat=nat and index == files - 1) for index in range(files))
    clock = (0, 0.0)
    if "clock" in kinds:
        sign = dice.pick("capture.clock.sign", (-1, 1)) if files > 1 else -1
        ahead = sign * round(dice.number("capture.clock", 0.05, 4_000) * 1e6)
        steps = files == 1 or dice.hits("capture.clock.steps", 0.5)
        clock = (ahead, round(0.2 + 0.6 * dice.uniform("capture.clock.from"), 2) if steps else 0.0)
    late = round(0.1 + 0.3 * dice.uniform("capture.late"), 2) if dice.hits("capture.late", 0.5) else 0.0
    cut = (late, 1.0 if late else round(0.3 + 0.6 * dice.uniform("capture.early"), 2)) if "cut" in kinds else (0.0, 1.0)
    return damages, clock, cut


def _scenario(number: int, dice: Dice, backend: str) -> Values:
    """A scenario of MQTT without relays that is complete."""
    for attempt in range(ATTEMPTS):
        values = candidate(SCENARIOS_FROM + number, attempt)
        if any("relay" in group or group.get("protocol") for group in values["groups"]):
            continue
        values = pings_as_measured(_plain(values, dice, backend))
        try:
            compile_plan(parse_values(values | {"backend": backend}, f"number {number}"))
        except MqttlabError:
            continue
        return values
    raise ValueError(f"number {number} has drawn {ATTEMPTS} scenarios, and none is complete")


def _plain(values: Values, dice: Dice, backend: str) -> Values:
    """The scenario, shorter, with what a capture of it can show."""
    values = {name: value for name, value in values.items() if name not in ("recording", "events")}
    values["phases"] = LIVE_PHASES if backend == "live" else SIMULATED_PHASES
    for network in [*values.get("networks", []), values.get("trunk", {})]:
        for way in ("up", "down"):
            if way in network:
                network[way] = {name: value for name, value in network[way].items() if name not in LINK_LEFT_OUT}
    _lose(values, dice)
    for host in values.get("hosts", {}).values():
        host.pop("limits", None)
    for server in [values.get("broker", {}), *values.get("servers", [])]:
        server.pop("topic_alias_maximum", None)
    for mqtt in [values.get("mqtt", {}), *(group.get("mqtt", {}) for group in values["groups"])]:
        _plain_mqtt(mqtt)
    values.setdefault("mqtt", {})
    # A broker with two listeners is rarer than a draw for each group makes it.
    if not dice.hits("capture.listeners", 0.2):
        for group in values["groups"][1:]:
            group.pop("transport", None)
            group.pop("nagle", None)
            group |= {name: values["groups"][0][name] for name in ("transport", "nagle") if name in values["groups"][0]}
    for group in values["groups"]:
        group.setdefault("mqtt", dict(values["mqtt"]))
        group["mqtt"]["client_id"] = "{group}-{client}"
        group["count"] = min(group.get("count", 1), CLIENTS_MAX)
        group.get("transport", {}).pop("tls", None)
        for number, publish in enumerate(_publications(group)):
            _plain_publish(publish, dice, f"capture.{group['name']}.{number}")
        for subscription in group.get("subscribe", ()):
            for name in ("retain_handling", "retain_as_published", "no_local"):
                subscription.pop(name, None)
    return values | (_events(dice, values) if dice.hits("capture.event", 0.5) else {})


def _lose(values: Values, dice: Dice) -> None:
    """Frames are lost on one link of most scenarios."""
    if "networks" in values and dice.hits("capture.loss", 0.5):
        network = dice.pick("capture.loss.network", values["networks"])
        way = dice.pick("capture.loss.way", ("up", "down"))
        law = {name: value for name, value in network[way].items() if name not in ("burst_loss", "loss_at")}
        network[way] = law | {"loss": dice.measure("capture.loss.share", 1, 10, "%")}


def _plain_mqtt(mqtt: Values) -> None:
    for name in MQTT_LEFT_OUT:
        mqtt.pop(name, None)
    # An export does not say how long a session of MQTT 5 lasts.
    if mqtt.get("version") == "5":
        mqtt.pop("clean_session", None)


def _plain_publish(publish: Values, dice: Dice, name: str) -> None:
    for name in ("retain", "expiry"):
        publish.pop(name, None)
    payload = publish["payload"]
    size = payload if isinstance(payload, str) else payload.get("size", "400 B")
    size_bytes = 400 if size == "gps" else int(size.split()[0])
    publish["payload"] = f"{max(PAYLOAD_MIN, min(PAYLOAD_MAX, size_bytes))} B"
    # A few seconds are to hold some messages.
    if "burst" in publish:
        publish["burst"] |= {"every": dice.measure(f"{name}.every", 0.1, 0.6, "s")}
        publish["burst"]["size"] = min(publish["burst"]["size"], BURST_MAX)
    elif float(publish["rate"].split()[0]) < RATE_MIN:
        publish["rate"] = dice.measure(f"{name}.rate", RATE_MIN, 20, "/s")


def _publications(group: Values) -> list[Values]:
    published = group.get("publish", [])
    return published if isinstance(published, list) else [published]


def _events(dice: Dice, values: Values) -> Values:
    """Half-open ends and second connections."""
    kind = dice.pick("capture.event", ("vanish", "vanish", "vanish for ever", "disconnect", "network", "kill", "pause"))
    event: Values = {"at": dice.measure("capture.event.at", 0.4, 2, "s")}
    if kind != "vanish for ever":
        event["for"] = dice.measure("capture.event.for", 0.3, 1.5, "s")
    if kind == "network" and "networks" in values:
        network = dice.pick("capture.event.network", values["networks"])
        event["network"] = network["name"] = "changed"
        event["down"] = True
    elif kind in ("kill", "pause"):
        server = values["servers"][0]["name"] if "servers" in values else "broker"
        event |= {"server": server, "do": kind} | ({"persistence": True} if kind == "kill" else {})
    else:
        # Receivers more often than senders.
        receivers = [group for group in values["groups"] if "subscribe" in group]
        group = dice.pick("capture.event.group", [*receivers, *receivers, *values["groups"]])
        event |= {"group": group["name"], "do": "disconnect" if kind == "disconnect" else "vanish"}
        group.setdefault("reconnect", {"initial": "200 ms", "maximum": "1 s"})
        if group["count"] > 1 and dice.hits("capture.event.one", 0.5):
            event["client"] = 0
    return {"events": [event]}


def views_of(drawn: Drawn, hosts: list[str], traffic: Traffic, frames: list[Frame]) -> list[View]:
    """The files of a capture: where they are taken, and when."""
    dice = Dice(drawn.number)
    begin, end = frames[0].sent_ns, frames[-1].sent_ns + SECOND
    from_ns, until_ns = (begin + round(share * (end - begin)) for share in drawn.cut)
    places: list[Point] = []
    kinds = drawn.place.split("+")
    for index, kind in enumerate(kinds):
        options = [point for point in _points(kind, hosts, traffic, frames) if point not in places]
        if len(kinds) == 1 and dice.hits("capture.point.both", 0.85):
            # Most points see messages and their deliveries.
            options = [point for point in options if _sees_both(point, traffic, frames)] or _points(
                "broker", hosts, traffic, frames)
        if options:
            places.append(dice.pick(f"capture.point.{index}", options))
    return [View(point=point, from_ns=from_ns if from_ns > begin else 0, until_ns=until_ns if until_ns < end else 2**62,
                 offset_ns=drawn.clock[0] if index == len(drawn.damages) - 1 else 0,
                 offset_from_ns=begin + round(drawn.clock[1] * (end - begin))) for index, point in enumerate(places)]


def _sees_both(point: Point, traffic: Traffic, frames: list[Frame]) -> bool:
    right = right_of(traffic, frames, [View(point=point)])
    return any(key[:2] in right.sent for key in right.deliveries)


def _points(kind: str, hosts: list[str], traffic: Traffic, frames: list[Frame]) -> list[Point]:
    """Where such a capture can be taken."""
    servers = {connection.server_address for connection in traffic.connections}
    if kind == "broker":
        return [Point(host=address) for address in sorted(servers)]
    if kind == "client":
        addresses = {FIRST_ADDRESS + number for number in range(len(hosts))}
        return [Point(host=address) for address in sorted(addresses - servers)]
    links = sorted({each.link for frame in frames for each in frame.passes} - {"loopback", "radio"})
    options = [Point(link=link, place=0.5) for link in links]
    routed = sorted({each.link for frame in frames if frame.links > 1 for each in frame.passes[1:]})
    return options + [Point(link=link, place=place) for link in routed for place in (0, 1)]
