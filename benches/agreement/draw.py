"""Scenarios drawn by chance: a number draws the same scenario for ever.

A scenario is a shape (who stands where), a protocol with its transport, links, hosts, and traffic. Each field has dice
of its own, named by the field, so that a field that is new leaves the others of a number as they were. Values are drawn
as people write them, most of them evenly on a logarithmic scale.

The load stays below some 150 deliveries a second and 4 Mbit/s: a live run has to be performed in time on two
processors. Not drawn is what ``tests/python/test_chance.py`` names, each with its reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

from mqttlab.errors import MqttlabError
from mqttlab.networks.trace import read_trace
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values

Values = dict[str, Any]

TABLE_TO, EVENTS_TO, LATER_TO, HANDLING_TO, NEXT_TO, LOCAL_TO, PING_TO = 200, 300, 700, 1100, 1300, 1500, 1700
"""Numbers below have results in ``CHANCE.md`` and ``CHANCE-EVENTS.md``, or were drawn before. What came later is not
drawn for them: they keep their scenarios."""
EVENTFUL_FROM = 10_000
"""Numbers from here on have one to three events, which may overlap, and a quarter of which never end: ``words.py`` asks
what is said of them."""
KEPT_FROM = 1_000_000
"""Numbers from here on are kept for judging: whoever mends the simulator does not run them."""
PHASES = {"connect_timeout": "30 s", "warm_up": "2 s", "duration": "12 s", "cool_down": "20 s"}
DELIVERIES_MAX, BIT_S_MAX = 150.0, 4e6
ATTEMPTS = 50
TEMPLATE = ('{"c": "{client}", "n": {sequence}, "t": "{time:iso}", "v": {random:-99.5..5000.0}, '
            '"x": "{random:choice a|bcd}"}')
# The longest is shorter.
TEMPLATE_BYTES = 200
STAGE_KINDS = {"rate": "step", "to": "ramp"}


class Dice:
    """The dice of one number, a throw for each field."""

    def __init__(self, number: int, attempt: int = 0, of: str = "") -> None:
        self._seed = f"{number}/{attempt}{of}"
        self._number, self._attempt = number, attempt

    def again(self, turn: int) -> Dice:
        """Other dice of the same number, for what it has several of."""
        return Dice(self._number, self._attempt, f"/{turn}") if turn else self

    def uniform(self, field: str) -> float:
        """The throw for a field: from 0 to below 1, with 53 bits of BLAKE2b, which no other version draws otherwise."""
        digest = blake2b(f"{self._seed}/{field}".encode(), digest_size=8).digest()
        return (int.from_bytes(digest, "big") >> 11) / 2**53

    def hits(self, field: str, share: float) -> bool:
        """Whether a field is set, with this probability."""
        return self.uniform(f"{field}?") < share

    def newly_hits(self, field: str, share: float, since: int = TABLE_TO) -> bool:
        """Whether a field is set that numbers before ``since`` do not have, with this probability."""
        return self._number >= since and self.hits(field, share)

    @property
    def is_eventful(self) -> bool:
        """Whether what was said of this number is committed (``words.jsonl``): it keeps its scenario."""
        return EVENTFUL_FROM <= self._number < KEPT_FROM

    def pick(self, field: str, options: Sequence[Any]) -> Any:
        """One of these, each as likely."""
        return options[int(self.uniform(field) * len(options))]

    def number(self, field: str, low: float, high: float) -> float:
        """A number, even on a logarithmic scale, with three digits."""
        return float(f"{low * (high / low) ** self.uniform(field):.3g}")

    def whole(self, field: str, low: int, high: int) -> int:
        """A whole number, even on a logarithmic scale."""
        return max(low, min(high, round((low - 0.49) * ((high + 0.49) / (low - 0.49)) ** self.uniform(field))))

    def measure(self, field: str, low: float, high: float, unit: str) -> str:
        """A quantity as a scenario has it."""
        return f"{self.number(field, low, high):g} {unit}"

    def some(self, share: float, **fields: tuple[str, Any]) -> Values:
        """Of these fields each with this probability; a field is the name of its throw and what draws it."""
        return {name: draw() for name, (throw, draw) in fields.items() if self.hits(throw, share)}

    def newly_some(self, share: float, **fields: tuple[str, Any]) -> Values:
        """Likewise of fields that older numbers do not have."""
        return self.some(share, **fields) if self._number >= EVENTS_TO else {}


def draw(number: int) -> Values:
    """The values of a scenario without its backend and seed.

    Raises:
        ValueError: the number is negative, or none of its scenarios is complete.
    """
    if number < 0:
        raise ValueError(f"{number} is no number of a scenario: it must be 0 or more")
    for attempt in range(ATTEMPTS):
        values = candidate(number, attempt)
        try:
            compile_plan(parse_values(values, f"number {number}"))
        except MqttlabError:
            continue
        return values
    raise ValueError(f"number {number} has drawn {ATTEMPTS} scenarios, and none is complete")


def candidate(number: int, attempt: int = 0) -> Values:
    """A scenario of a number, which may be incomplete: two of its fields may exclude each other."""
    dice = Dice(number, attempt)
    protocol = dice.pick("protocol", ("mqtt",) * 8 + ("mqtt-sn", "zeromq"))
    shapes = {"mqtt-sn": (_behind_gateway,), "zeromq": (_at_proxy,)}.get(protocol, MQTT_SHAPES)
    values = dice.pick("shape", shapes)(dice)
    values["phases"] = _staged(dice) if dice.newly_hits("phases.stages", 0.15, LATER_TO) else PHASES
    if "stages" not in values["phases"] and dice.newly_hits("summary", 0.15, LATER_TO):
        values["recording"] = {"detail": "summary"}
    if dice.hits("mtu", 0.12):
        values["mtu"] = f"{dice.whole('mtu', 576, 1500)} B"
    if number >= EVENTFUL_FROM:
        turns = [dice.again(turn) for turn in range(dice.pick("events", (1, 1, 2, 3)))]
        values["events"] = [_lasting(its, _event(its, protocol, values)) for its in turns]
    elif dice.newly_hits("event", 0.3):
        values["events"] = [_event(dice, protocol, values)]
    return values | {"name": f"chance-{number}"}


def _staged(dice: Dice) -> Values:
    """The measurement in two stages, at times with one between them that does not count."""
    first, between = dice.whole("phases.stages.first", 3, 6), dice.hits("phases.stages.between", 0.5)
    left_out = [{"name": "between", "for": "1 s", "measured": False}] if between else []
    stages = [{"name": "first", "for": f"{first} s"}, *left_out,
              {"name": "last", "for": f"{12 - first - between} s"}]
    return {name: value for name, value in PHASES.items() if name != "duration"} | {"stages": stages}


def _event(dice: Dice, protocol: str, values: Values) -> Values:
    """What changes for a while within the measurement, once or twice."""
    acts_on = dice.pick("event.acts_on", ("network", "network", "server", "group"))
    acts_on = acts_on if protocol == "mqtt" else "network"
    event: Values = {"at": dice.measure("event.at", 1, 5, "s"), "for": dice.measure("event.for", 0.3, 2.5, "s")}
    if dice.hits("event.every", 0.15):
        event |= {"every": "4 s", "count": 2}
    if "radio" in values and dice.newly_hits("event.on_air", 0.6, LATER_TO):
        return _on_channel(dice, values["radio"], event)
    # On a channel nothing is a network's.
    if acts_on == "network" and "networks" in values:
        network = dice.pick("event.network", values["networks"])
        taken = {each.get("name") for each in values["networks"]}
        if network.get("name") not in ("changed", "changed too"):
            network["name"] = "changed too" if "changed" in taken else "changed"
        event["network"] = network["name"]
        return event | _change(dice)
    if acts_on == "group":
        group = dice.pick("event.group", values["groups"])
        event["group"] = group["name"]
        if "publish" in group and dice.newly_hits("event.publishing", 0.5, EVENTS_TO):
            event |= _changed_publishing(dice, group)
            event = {name: value for name, value in event.items() if name != "for" or event.get("do") != "burst"}
        elif "subscribe" in group and dice.newly_hits("event.subscriptions", 0.3, EVENTS_TO):
            event |= {"do": "unsubscribe", "filter": group["subscribe"][0]["filter"]}
            if dice.hits("event.subscribe", 0.4):
                event |= {"do": "subscribe", "qos": dice.pick("event.qos", (0, 1, 2))}
        else:
            event["do"] = dice.pick("event.do", ("disconnect", "vanish", "stop-reading"))
        count = group.get("count", 1)
        if count > 1 and dice.hits("event.share", 0.6):
            event["share"] = "50 %"
        elif count > 1 and dice.hits("event.client", 0.5):
            event["client"] = dice.whole("event.client", 1, count) - 1
        return event
    server = values["servers"][0]["name"] if "servers" in values else "broker"
    event |= {"server": server, "do": dice.pick("event.server", ("pause", "kill", "stop"))}
    return event | dice.some(0.4, persistence=("event.persistence", lambda: dice.hits("event.keeps", 0.5)))


def _lasting(dice: Dice, event: Values) -> Values:
    """An event that nothing undoes, or that lasts beyond what TCP and a keep-alive bear in silence."""
    if dice.hits("event.endless", 0.25):
        return {name: value for name, value in event.items() if name not in ("for", "every", "count")}
    if "for" in event and "every" not in event and dice.hits("event.long", 0.4):
        event["for"] = dice.measure("event.long", 2.5, 9, "s")
    return event


def _on_channel(dice: Dice, radio: Values, event: Values) -> Values:
    """What happens on a radio channel: an interferer, a radio that is off, another place."""
    kind = dice.pick("event.on_air", ("switch-on", "radio-off", "position"))
    if kind == "switch-on":
        radio.setdefault("interferers", []).append(_interferer(dice, "switched") | {"starts": "off"})
        return event | {"interferer": "switched", "do": kind}
    if kind == "radio-off":
        return event | {"station": dice.pick("event.station", ("near", "far")), "do": kind}
    # Stations stand at random, and nobody could put one back.
    placed = {name: value for name, value in event.items() if name != "for"}
    return placed | {"station": "far", "position": _place(dice, "event.position")}


def _place(dice: Dice, name: str) -> list[str]:
    return [dice.measure(f"{name}.x", 1, 150, "m"), dice.measure(f"{name}.y", 1, 150, "m")]


def _interferer(dice: Dice, name: str) -> Values:
    return {"name": name, "position": _place(dice, name), "power": f"{dice.whole(f'{name}.power', 1, 20)} dBm",
            "on": dice.measure(f"{name}.on", 2, 15, "ms"), "off": dice.measure(f"{name}.off", 10, 80, "ms"),
            "turns": dice.pick(f"{name}.turns", ("regular", "exponential"))}


def _changed_publishing(dice: Dice, group: Values) -> Values:
    """What an event does to what clients publish: another rate, payload or QoS, a pause, or a burst."""
    kind = dice.pick("event.publishing", ("publish", "publish", "stop-publishing", "burst"))
    first = {"publication": 0} if isinstance(group["publish"], list) and dice.hits("event.publication", 0.5) else {}
    if kind != "publish":
        messages = {"messages": dice.whole("event.messages", 1, 20)} if kind == "burst" else {}
        return {"do": kind} | messages | first
    fields = dice.some(
        0.6,
        rate=("event.publish.rate", lambda: dice.measure("event.publish.rate", 0.3, 20, "/s")),
        payload=("event.publish.payload", lambda: f"{dice.whole('event.publish.payload', 16, 500)} B"),
        qos=("event.publish.qos", lambda: dice.pick("event.publish.qos", (0, 1) if "mqtt_sn" not in group else (0,))),
    )
    return {"publish": fields or {"qos": 0}} | first


def _change(dice: Dice) -> Values:
    """What an event does to a network: it is down, or has other fields."""
    way = {"direction": dice.pick("event.direction", ("up", "down"))} if dice.hits("event.direction", 0.3) else {}
    if dice.hits("event.down", 0.5):
        return way | {"down": True} | dice.some(0.5, queued=("event.queued", lambda: "keep"))
    fields = dice.some(
        0.5,
        rate=("event.rate", lambda: dice.measure("event.rate", 50, 2_000, "kbit/s")),
        delay=("event.delay", lambda: dice.measure("event.delay", 2, 200, "ms")),
        loss=("event.loss", lambda: dice.measure("event.loss", 0.5, 20, "%")),
    )
    return way | (fields or {"delay": "150 ms"})


# Links and hosts


def _discipline(dice: Dice, name: str) -> Values:
    """CoDel or FQ-CoDel, half of the fields their own."""

    def of(field: str) -> str:
        return f"{name}.{field}"

    kind = dice.pick(of("kind"), ("codel", "fq-codel"))
    fields = dice.some(0.5, target=(of("target"), lambda: dice.measure(of("target"), 3, 60, "ms")),
                       interval=(of("interval"), lambda: dice.measure(of("interval"), 60, 300, "ms")))
    if kind == "fq-codel":
        fields |= dice.some(0.5, flows=(of("flows"), lambda: dice.whole(of("flows"), 2, 1_024)),
                            quantum=(of("quantum"), lambda: f"{dice.whole(of('quantum'), 300, 3_000)} B"))
    if dice.newly_hits(of("ecn"), 0.5, LATER_TO):
        fields["ecn"] = True
    return {"kind": kind, **fields}


def _direction(dice: Dice, name: str, *, near: float = 1.0, far: float = 150.0) -> Values:
    """One direction of a link."""

    def of(field: str) -> str:
        return f"{name}.{field}"

    def percent(field: str, low: float, high: float) -> str:
        return dice.measure(of(field), low, high, "%")

    link: Values = {"delay": dice.measure(of("delay"), near, far, "ms")}
    delay_ms = float(link["delay"].split()[0])
    if dice.hits(of("rate"), 0.6):
        link["rate"] = dice.measure(of("rate"), 100, 10_000, "kbit/s")
        if dice.hits(of("queue"), 0.4):
            packets, kilobytes = dice.whole(of("queue.packets"), 5, 500), dice.whole(of("queue.bytes"), 8, 500)
            link["queue"] = dice.pick(of("queue"), (f"{packets} packets", f"{kilobytes} kB"))
            if dice.newly_hits(of("queue.by_rate"), 0.5, EVENTS_TO):
                link["queue"] = dice.pick(of("queue.by_rate"), (
                    dice.measure(of("queue.time"), 30, 2_000, "ms"), dice.measure(of("queue.bdp"), 0.3, 10, "BDP")))
            if dice.hits(of("queue_counts_delay_line"), 0.2):
                link["queue_counts_delay_line"] = True
        if dice.newly_hits(of("discipline"), 0.2, EVENTS_TO):
            link["discipline"] = _discipline(dice, of("discipline"))
        link |= dice.some(0.1, overhead=(of("overhead"), lambda: f"{dice.whole(of('overhead'), 4, 60)} B"),
                          minimum_frame=(of("minimum_frame"), lambda: f"{dice.whole(of('minimum_frame'), 46, 130)} B"))
    if dice.hits(of("jitter"), 0.25):
        link["jitter"] = f"{delay_ms * dice.number(of('jitter'), 0.02, 0.4):.3g} ms"
        link |= dice.some(0.5, distribution=(of("distribution"), lambda: dice.pick(
            of("distribution"), ("uniform", "normal", "pareto", "paretonormal"))))
        link |= dice.some(0.3, correlation=(of("correlation"), lambda: percent("correlation", 5, 80)),
                          keep_order=(of("keep_order"), lambda: False))
    if dice.newly_hits(of("policer"), 0.08, LATER_TO):
        link["policer"] = {"rate": dice.measure(of("policer.rate"), 200, 5_000, "kbit/s"),
                           "burst": f"{dice.whole(of('policer.burst'), 4, 60)} kB"}
    link |= _damage(dice, name)
    return _following(dice, name, link) if dice.newly_hits(of("trace"), 0.08, EVENTS_TO) else link


def _following(dice: Dice, name: str, link: Values) -> Values:
    """The same link, which follows a trace: fields that the trace has values of are left out."""
    followed = dice.pick(f"{name}.trace", ("lte-drive", "starlink", "train-tunnel", "wifi-busy"))
    way = dice.pick(f"{name}.way", ("up", "down"))
    sets = {*read_trace(f"{followed}/{way}", None).sets}
    # What goes with a field that is left out goes with it.
    sets |= {"burst_loss", "bit_errors", "loss_at"} if "loss" in sets else set()
    sets |= {"distribution", "correlation", "jitter"} if sets & {"delay", "jitter"} else set()
    kept = {field: value for field, value in link.items() if field not in sets}
    return kept | {"trace": f"{followed}/{way}"} | dice.some(
        0.3, trace_end=(f"{name}.trace_end", lambda: dice.pick(f"{name}.trace_end", ("loop", "hold"))))


def _damage(dice: Dice, name: str) -> Values:
    """What happens to frames: at most one law of loss, and now and then the rest."""

    def percent(field: str, low: float, high: float) -> str:
        return dice.measure(f"{name}.{field}", low, high, "%")

    link: Values = {}
    law = dice.pick(f"{name}.law", ("none",) * 11 + ("loss",) * 5 + ("burst_loss", "burst_loss", "bit_errors"))
    if law == "loss":
        link["loss"] = percent("loss", 0.2, 8)
        link |= dice.some(0.2, loss_at=(f"{name}.loss_at", lambda: dice.pick(f"{name}.loss_at", ("entry", "exit"))))
    elif law == "burst_loss":
        link["burst_loss"] = {
            "good_to_bad": percent("good_to_bad", 0.1, 2), "bad_to_good": percent("bad_to_good", 15, 60)}
        link["burst_loss"] |= dice.some(0.4, loss_good=(f"{name}.loss_good", lambda: percent("loss_good", 0.05, 1)),
                                        loss_bad=(f"{name}.loss_bad", lambda: percent("loss_bad", 30, 100)))
    elif law == "bit_errors":
        link["bit_errors"] = {
            "good_to_bad": percent("bits.good_to_bad", 0.0003, 0.002), "bad_to_bad": percent("bits.bad_to_bad", 80, 98),
            "error_good": percent("bits.error_good", 0.00003, 0.0003), "error_bad": percent("bits.error_bad", 5, 30)}
    link |= dice.some(0.08, duplicate=(f"{name}.duplicate", lambda: percent("duplicate", 0.5, 10)),
                      corrupt=(f"{name}.corrupt", lambda: percent("corrupt", 0.2, 3)))
    if dice.hits(f"{name}.reorder", 0.1):
        link["reorder"] = {"probability": percent("reorder.probability", 1, 25)}
        link["reorder"] |= dice.some(0.4, gap=(f"{name}.gap", lambda: dice.whole(f"{name}.gap", 1, 5)))
    return link


def _network(dice: Dice, one: str, other: str, *, name: str, **more: Any) -> Values:
    """A network between two hosts; every third is alike both ways."""
    up = _direction(dice, f"{name}.up")
    down = up if dice.hits(f"{name}.alike", 0.35) else _direction(dice, f"{name}.down")
    network = {"between": [one, other], "up": up, "down": down, **more}
    if dice.newly_hits(f"{name}.nat", 0.06, EVENTS_TO):
        network["nat"] = {"timeout": dice.measure(f"{name}.nat", 0.5, 8, "s"),
                          "forgotten": dice.pick(f"{name}.nat.forgotten", ("drop", "revive"))}
    return network


def _hosts(dice: Dice, *names: str) -> Values:
    """Hosts with a TCP of their own, now and then."""
    hosts = {}
    for host in names:
        if not dice.hits(f"{host}.tcp", 0.3):
            continue

        def of(field: str, host: str = host) -> str:
            return f"{host}.{field}"

        tcp = dice.some(
            0.2,
            profile=(of("profile"), lambda: "linux-2021"),
            congestion_control=(of("congestion_control"), lambda of=of: dice.pick(of("cc"), ("reno", "cubic"))),
            timestamps=(of("timestamps"), lambda: False),
            window_scaling=(of("window_scaling"), lambda: False),
            rto_min=(of("rto_min"), lambda of=of: dice.measure(of("rto_min"), 100, 1000, "ms")),
            rto_max=(of("rto_max"), lambda of=of: dice.measure(of("rto_max"), 2, 60, "s")),
            delayed_ack_max=(of("ack_max"), lambda of=of: dice.measure(of("ack_max"), 5, 200, "ms")),
            initial_window=(of("initial_window"), lambda of=of: dice.whole(of("initial_window"), 1, 20)),
            mss=(of("mss"), lambda of=of: f"{dice.whole(of('mss'), 536, 1400)} B"),
            send_buffer=(of("send_buffer"), lambda of=of: f"{dice.whole(of('send_buffer'), 8, 256)} kB"),
            receive_buffer=(of("receive_buffer"), lambda of=of: f"{dice.whole(of('receive_buffer'), 8, 256)} kB"),
            tail_loss_probe=(of("tail_loss_probe"), lambda: False),
            syn_retries=(of("syn_retries"), lambda of=of: dice.whole(of("syn_retries"), 2, 6)),
            syn_linear_retries=(of("syn_linear"), lambda of=of: dice.whole(of("syn_linear"), 1, 4)),
        )
        if dice.hits(of("ack_at_once"), 0.15):
            tcp = {key: value for key, value in tcp.items() if key != "delayed_ack_max"} | {"delayed_ack": False}
        if dice.hits(of("sack"), 0.1):
            tcp |= {"sack": False, "tail_loss_probe": False}
        if dice.newly_hits(of("ecn"), 0.5, LATER_TO):
            tcp["ecn"] = True
        hosts[host] = {"tcp": tcp}
    return hosts


# Sessions and traffic


def _mqtt(dice: Dice, name: str) -> Values:
    """Protocol and session."""

    def of(field: str) -> str:
        return f"{name}.{field}"

    version = dice.pick(of("version"), ("3.1.1", "3.1.1", "5", "5", "3.1"))
    mqtt: Values = {"version": version} | dice.some(
        0.2,
        keep_alive=(of("keep_alive"), lambda: f"{dice.whole(of('keep_alive'), 2, 120)} s"),
        max_inflight=(of("max_inflight"), lambda: dice.whole(of("max_inflight"), 1, 100)),
        max_queued=(of("max_queued"), lambda: dice.whole(of("max_queued"), 5, 1000)),
        clean_session=(of("clean_session"), lambda: False),
        deliver_qos2_on=(of("deliver_qos2_on"), lambda: "publish"),
        client_id=(of("client_id"), lambda: "drawn-{group}-{client}"),
        ping=(of("ping"), lambda: "silence"),
    )
    if version == "5":
        mqtt |= dice.some(
            0.25,
            receive_maximum=(of("receive_maximum"), lambda: dice.whole(of("receive_maximum"), 1, 30)),
            session_expiry=(of("session_expiry"), lambda: f"{dice.whole(of('session_expiry'), 5, 300)} s"),
        )
        mqtt |= dice.newly_some(
            0.25,
            topic_aliases=(of("topic_aliases"), lambda: dice.whole(of("topic_aliases"), 1, 12)),
            topic_alias_maximum=(of("topic_alias_maximum"), lambda: dice.whole(of("topic_alias_maximum"), 1, 12)),
        )
    elif dice.hits(of("retry"), 0.05):
        mqtt["retry"] = f"{dice.whole(of('retry'), 3, 20)} s"
    if dice.hits(of("credentials"), 0.1):
        mqtt |= {"username": "drawn", "password": "by-chance"}
    if dice.newly_hits(of("names"), 0.15, LATER_TO):
        mqtt |= {"client_id": "d{client:09}-{group}", "username": "{group}:{client:04}",
                 "password": "by-chance-{client}"}
    if dice.newly_hits(of("ping_rule"), 0.3, PING_TO) and not dice.is_eventful:
        # With a keep-alive of which a run has several: at the default of 60 s there is no ping to differ in.
        mqtt |= {"ping": dice.pick(of("ping_rule"), ("interval", "interval", "sent")),
                 "keep_alive": f"{dice.whole(of('ping_rule.keep_alive'), 1, 5)} s"}
    if dice.hits(of("will"), 0.1):
        mqtt["will"] = {"topic": "gone", "payload": "gone", "qos": dice.pick(of("will.qos"), (0, 1, 2)),
                        "retain": dice.hits(of("will.retain"), 0.3)}
    return mqtt


def _broker(dice: Dice, name: str = "broker") -> Values:
    """A broker's settings."""
    return dice.some(
        0.25,
        nagle=(f"{name}.nagle", lambda: False),
        max_inflight=(f"{name}.max_inflight", lambda: dice.whole(f"{name}.max_inflight", 1, 100)),
        max_queued=(f"{name}.max_queued", lambda: dice.whole(f"{name}.max_queued", 20, 2000)),
        persistence=(f"{name}.persistence", lambda: True),
    ) | dice.newly_some(0.2, topic_alias_maximum=(
        f"{name}.topic_alias_maximum", lambda: dice.pick(f"{name}.topic_alias_maximum", (0, 1, 3, 12))))


def _transport(dice: Dice, name: str) -> Values:
    """What carries MQTT: fields of a group."""
    nagle = not dice.hits(f"{name}.nagle", 0.5)
    kind = dice.pick(f"{name}.transport", ("tcp",) * 7 + ("websocket", "tls", "wss"))
    if kind == "tcp":
        return {} if nagle else {"nagle": False}
    transport: Values = {"tcp": {"nagle": nagle}}
    if kind != "tls":
        transport["websocket"] = dice.some(0.3, path=(f"{name}.path", lambda: "/drawn/by/chance"))
    if kind != "websocket":
        transport["tls"] = dice.some(
            0.3,
            version=(f"{name}.tls", lambda: dice.pick(f"{name}.tls", ("1.2", "1.3"))),
            resumption=(f"{name}.resumption", lambda: False),
            # A broker asks all of its clients, or none.
            client_certificate=("certificate", lambda: True),
        )
    return {"transport": transport}


def _publish(dice: Dice, name: str, topic: str, *, clients: int, copies: int, narrowest: float, qos: int | None = None
             ) -> Values:
    """What each of so many clients publishes, when each message becomes so many copies.

    Args:
        narrowest: the rate of the narrowest link that all of it crosses, in bit/s.
    """

    def of(field: str) -> str:
        return f"{name}.{field}"

    size = dice.whole(of("payload"), 16, 20_000)
    load = dice.number(of("load"), 0.02, 1.6)
    most = min(DELIVERIES_MAX / copies, BIT_S_MAX / (8 * (size + 60) * copies)) / clients
    rate = min(most, load * narrowest / (8 * (size + 60) * clients))
    publish: Values = {
        "topic": topic, "qos": dice.pick(of("qos"), (0, 1, 1, 2)) if qos is None else qos, "payload": f"{size} B"}
    if dice.hits(of("payload.kind"), 0.1):
        publish["payload"] = dice.pick(of("payload.kind"), (
            "gps", {"kind": "random", "size": f"{size} B"}, {"kind": "fixed", "size": f"{size} B"}))
    if dice.newly_hits(of("payload.template"), 0.1, EVENTS_TO):
        publish["payload"] = {"template": TEMPLATE, **({"size": f"{size} B"} if size > TEMPLATE_BYTES else {})}
    if dice.newly_hits(of("payload.document"), 0.1, EVENTS_TO):
        kind = dice.pick(of("payload.document"), ("alert", "report", "jpeg", "png"))
        publish["payload"] = {"kind": kind, "size": f"{max(1_400, size)} B"}
    arrival = dice.pick(of("arrival"), ("constant", "constant", "poisson", "burst"))
    if arrival == "burst":
        every_s = dice.number(of("every"), 0.3, 3)
        publish["arrival"] = "burst"
        publish["burst"] = {"size": max(1, min(40, round(rate * every_s))), "every": f"{every_s:g} s"}
        publish["burst"] |= dice.some(0.3, gap=(of("gap"), lambda: dice.measure(of("gap"), 0.2, 5, "ms")))
    else:
        rate = max(rate, 0.3)
        publish |= {"rate": f"{rate:.3g} /s"} | ({"arrival": "poisson"} if arrival == "poisson" else {})
        # Some of them are left when the measurement begins.
        publish |= dice.some(0.05, messages=(
            of("messages"), lambda: math.ceil(rate * dice.number(of("messages"), 4, 12))))
    if dice.newly_hits(of("stages"), 0.15):
        publish["stages"] = _stages(dice, of("stages"), max(rate, 0.3))
    if dice.hits(of("start_phase"), 0.3):
        publish["start_phase"] = dice.pick(of("start_phase"), ("even", "synchronised"))
    if dice.hits(of("retain"), 0.06):
        publish["retain"] = True
    return publish


def _stages(dice: Dice, name: str, most: float) -> list[Values]:
    """Steps and ramps below a rate, of half of the measurement to all of it."""
    count = dice.whole(f"{name}.count", 1, 4)
    stages = []
    for number in range(count):
        here = f"{name}[{number}]"
        stage: Values = {"for": dice.measure(f"{here}.for", 6 / count, 12 / count, "s")}
        kind = dice.pick(f"{here}.kind", ("step", "ramp", "both"))
        rates = {end: f"{most * dice.number(f'{here}.{end}', 0.1, 1):.3g} /s" for end in ("rate", "to")}
        if dice.hits(f"{here}.none", 0.1):
            rates["rate"] = "0 /s"
        stages.append(stage | {end: rate for end, rate in rates.items() if kind in ("both", STAGE_KINDS[end])})
    return stages


def _beside(dice: Dice, name: str, publish: Values, levels: tuple[int, ...] = (0, 1, 2)) -> Values | list[Values]:
    """A publication, now and then with another one of the same clients that adds a third of its load at most."""
    if not dice.newly_hits(f"{name}.beside", 0.2):
        return publish

    def of(field: str) -> str:
        return f"{name}.beside.{field}"

    burst = publish.get("burst")
    rate = burst["size"] / float(burst["every"].split()[0]) if burst else float(publish["rate"].split()[0])
    largest = publish["payload"] if isinstance(publish["payload"], str) else publish["payload"].get("size", "400 B")
    size = dice.whole(of("payload"), 16, max(17, int((largest if largest != "gps" else "400 B").split()[0])))
    other = {"topic": publish["topic"], "qos": dice.pick(of("qos"), levels), "payload": f"{size} B",
             "rate": f"{max(0.2, rate * dice.number(of('rate'), 0.03, 0.3)):.3g} /s"}
    other |= {"topics": publish["topics"]} if "topics" in publish else {}
    other |= {"arrival": "poisson"} if dice.hits(of("arrival"), 0.4) else {}
    return [publish, other]


def _narrowest(*links: Values) -> float:
    """The least rate of these directions, in bit/s."""
    rates = [float(link["rate"].split()[0]) * 1e3 for link in links if "rate" in link]
    return min(rates, default=BIT_S_MAX)


def _reconnect(dice: Dice, name: str) -> Values:
    """What happens after a connection is lost: fields of a group."""
    if not dice.hits(f"{name}.reconnect", 0.12):
        return {}
    return {"reconnect": {
        "initial": dice.measure(f"{name}.initial", 0.2, 3, "s"), "maximum": dice.measure(f"{name}.maximum", 3, 20, "s"),
        "jitter": dice.measure(f"{name}.jitter", 1, 30, "%")} | dice.some(
            0.2, timeout=(f"{name}.timeout", lambda: dice.measure(f"{name}.timeout", 2, 20, "s")))}


def _group(dice: Dice, name: str, host: str, count: int = 1, **more: Any) -> Values:
    """A group of MQTT clients."""
    group: Values = {"name": name, "host": host} | ({"count": count} if count > 1 else {})
    group |= _transport(dice, name) | _reconnect(dice, name) | more
    if "publish" in group:
        group["publish"] = _beside(dice, name, group["publish"])
    if dice.hits(f"{name}.mqtt", 0.4):
        group["mqtt"] = _mqtt(dice, name)
    if dice.newly_hits(f"{name}.churn", 0.15, LATER_TO):
        turn_s = (hold_s := dice.number(f"{name}.churn.hold", 0.5, 4)) + dice.number(f"{name}.churn.away", 0.3, 2)
        group["churn"] = {"connects": f"{count / turn_s:.4g} /s", "hold": f"{hold_s:g} s"} | dice.some(
            0.5, law=(f"{name}.churn.law", lambda: "exponential"))
    return group | dice.some(0.08, connect_over=(f"{name}.connect_over", lambda: dice.measure(
        f"{name}.connect_over", 0.1, 1, "s")), late_after=(f"{name}.late_after", lambda: "1 s"))


def _of_mqtt(dice: Dice, values: Values) -> Values:
    """With what all MQTT scenarios have."""
    whole = {"broker": _broker(dice)} if "servers" not in values else {}
    whole |= {"mqtt": _mqtt(dice, "mqtt")} if dice.hits("mqtt", 0.7) else {}
    for group in values["groups"] if dice.newly_hits("properties", 0.3, EVENTS_TO) else ():
        if group.get("mqtt", whole.get("mqtt", {})).get("version") == "5":
            _add_properties(dice, group)
    for group in values["groups"] if dice.newly_hits("retain_handling", 0.3, HANDLING_TO) else ():
        if group.get("mqtt", whole.get("mqtt", {})).get("version") == "5":
            for subscription in group.get("subscribe", ()):
                subscription["retain_handling"] = dice.pick("subscribe.retain_handling", ("send", "new", "never"))
    for group in values["groups"] if dice.newly_hits("retain_as_published", 0.3, NEXT_TO) else ():
        if group.get("mqtt", whole.get("mqtt", {})).get("version") == "5":
            for subscription in group.get("subscribe", ()):
                subscription["retain_as_published"] = True
    for group in values["groups"] if dice.newly_hits("no_local", 0.3, LOCAL_TO) else ():
        # Not beside relays, nor for shared subscriptions.
        relays = any("relay" in other for other in values["groups"])
        if group.get("mqtt", whole.get("mqtt", {})).get("version") == "5" and not relays:
            for subscription in group.get("subscribe", ()):
                if not subscription["filter"].startswith("$share/"):
                    subscription["no_local"] = True
    for group in values["groups"] if dice.newly_hits("expiry", 0.3, NEXT_TO) else ():
        if group.get("mqtt", whole.get("mqtt", {})).get("version") == "5":
            published = group.get("publish", [])
            for publish in published if isinstance(published, list) else [published]:
                publish["expiry"] = f"{dice.whole('publish.expiry', 1, 60)} s"
    hosts = _hosts(dice, "near", "far", "broker")
    used = {group["host"] for group in values["groups"]} | ({"broker"} if "servers" not in values else set())
    for host, fields in hosts.items():
        if host in used:
            values.setdefault("hosts", {})[host] = values.get("hosts", {}).get(host, {}) | fields
    beside = {group["host"] for group in values["groups"]}
    if "servers" not in values and "broker" not in beside and dice.newly_hits("broker.limits", 0.2, LATER_TO):
        values.setdefault("hosts", {}).setdefault("broker", {})["limits"] = _limits(dice)
    return values | whole


def _limits(dice: Dice) -> Values:
    """What a broker's host has: less than this machine, and enough for what is drawn."""
    limits = dice.some(
        0.5,
        processor=("broker.processor", lambda: dice.measure("broker.processor", 20, 100, "%")),
        memory=("broker.memory", lambda: f"{dice.whole('broker.memory', 64, 512)} MB"),
        disk_rate=("broker.disk_rate", lambda: dice.measure("broker.disk_rate", 5, 100, "MB/s")),
    )
    return limits or {"profile": dice.pick("broker.machine", ("raspberry-pi-3", "raspberry-pi-4"))}


def _add_properties(dice: Dice, group: Values) -> None:
    """What MQTT 5 says of messages beside topic and payload."""
    published = group.get("publish", [])
    for number, publish in enumerate(published if isinstance(published, list) else [published]):

        def of(field: str, here: str = f"{group['name']}.properties[{number}]") -> str:
            return f"{here}.{field}"

        def text(field: str, of: Callable[[str], str] = of) -> str:
            return "x" * dice.whole(of(f"{field}.length"), 1, 60)

        publish |= dice.some(
            0.5,
            user_properties=(of("user"), lambda of=of, text=text: [
                [text(f"name{each}"), text(f"value{each}")] for each in range(dice.whole(of("user.count"), 1, 4))]),
            content_type=(of("content_type"), lambda text=text: text("content_type")),
            payload_format=(of("payload_format"), lambda of=of: dice.pick(of("payload_format"), ("bytes", "utf-8"))),
            response_topic=(of("response_topic"), lambda text=text: f"{text('response_topic')}/{{client}}"),
            correlation_data=(of("correlation_data"), lambda text=text: text("correlation_data")),
        )


def _subscription(dice: Dice, topic: str, qos: int) -> list[Values]:
    """A subscription, mostly with the quality of what is published."""
    return [{"filter": topic, "qos": dice.pick("subscribe.qos", (0, 1, 2)) if dice.hits("subscribe.qos", 0.2) else qos}]


def _pair(dice: Dice) -> Values:
    """A publisher and a subscriber, each behind a network of its own."""
    networks = [_network(dice, "near", "broker", name="near"), _network(dice, "far", "broker", name="far")]
    narrowest = _narrowest(networks[0]["up"], networks[1]["down"])
    publish = _publish(dice, "publish", "t", clients=1, copies=1, narrowest=narrowest)
    return _of_mqtt(dice, {"networks": networks, "groups": [
        _group(dice, "publisher", "near", publish=publish),
        _group(dice, "subscriber", "far", subscribe=_subscription(dice, "t", publish["qos"]))]})


def _crowd(dice: Dice) -> Values:
    """So many publishers and subscribers on one host, behind one network; a topic for each pair."""
    count = dice.whole("count", 2, 8)
    network = _network(dice, "near", "broker", name="near")
    narrowest = _narrowest(network["up"], network["down"])
    publish = _publish(dice, "publish", "t/{client}", clients=count, copies=1, narrowest=narrowest)
    return _of_mqtt(dice, {"networks": [network], "groups": [
        _group(dice, "publishers", "near", count, publish=publish),
        _group(dice, "subscribers", "near", count, subscribe=_subscription(dice, "t/{client}", publish["qos"]))]})


def _host_each(dice: Dice) -> Values:
    """Each client has a host, and a link of its own or a share of one."""
    count = dice.whole("count", 2, 6)
    network = _network(dice, "near", "broker", name="near", link="shared" if dice.hits("shared", 0.3) else "each")
    narrowest = _narrowest(network["up"]) * (1 if network["link"] == "shared" else count)
    publish = _publish(dice, "publish", "t/{client}", clients=count, copies=1, narrowest=narrowest)
    return _of_mqtt(dice, {"networks": [network], "hosts": {"near": {"count": count}}, "groups": [
        _group(dice, "sensors", "near", count, publish=publish),
        _group(dice, "desk", "broker", subscribe=_subscription(dice, "t/#", publish["qos"]))]})


def _echo(dice: Dice) -> Values:
    """Clients that hear what they publish."""
    count = dice.whole("count", 1, 6)
    network = _network(dice, "near", "broker", name="near")
    narrowest = _narrowest(network["up"], network["down"])
    publish = _publish(dice, "publish", "t/{client}", clients=count, copies=1, narrowest=narrowest)
    return _of_mqtt(dice, {"networks": [network], "groups": [_group(
        dice, "both", "near", count, publish=publish, subscribe=_subscription(dice, "t/{client}", publish["qos"]))]})


def _fan_out(dice: Dice) -> Values:
    """One message for many, who share a subscription now and then."""
    count = dice.whole("count", 2, 12)
    networks = [_network(dice, "near", "broker", name="near"), _network(dice, "far", "broker", name="far")]
    narrowest = min(_narrowest(networks[0]["up"]), _narrowest(networks[1]["down"]) / count)
    publish = _publish(dice, "publish", "t", clients=1, copies=count, narrowest=narrowest)
    wanted = "$share/all/t" if dice.hits("share", 0.15) else dice.pick("wildcard", ("t", "#", "+"))
    return _of_mqtt(dice, {"networks": networks, "groups": [
        _group(dice, "source", "near", publish=publish),
        _group(dice, "desks", "far", count, subscribe=_subscription(dice, wanted, publish["qos"]))]})


def _fan_in(dice: Dice) -> Values:
    """Many publish topics of their own, one listens to all."""
    count = dice.whole("count", 2, 20)
    networks = [_network(dice, "near", "broker", name="near"), _network(dice, "far", "broker", name="far")]
    narrowest = _narrowest(networks[0]["up"], networks[1]["down"])
    publish = _publish(dice, "publish", "t/{client}/{topic}", clients=count, copies=1, narrowest=narrowest)
    publish["topics"] = dice.whole("topics", 1, 8)
    return _of_mqtt(dice, {"networks": networks, "groups": [
        _group(dice, "sensors", "near", count, publish=publish),
        _group(dice, "desk", "far", subscribe=_subscription(dice, "t/#", publish["qos"]))]})


def _relay(dice: Dice) -> Values:
    """A round trip: what is received is published again."""
    networks = [_network(dice, "near", "broker", name="near"), _network(dice, "far", "broker", name="far")]
    narrowest = _narrowest(*(network[way] for network in networks for way in ("up", "down")))
    publish = _publish(dice, "publish", "ping", clients=1, copies=2, narrowest=narrowest)
    qos = publish["qos"]
    return _of_mqtt(dice, {"networks": networks, "groups": [
        _group(dice, "sender", "near", publish=publish, subscribe=_subscription(dice, "ping_back", qos)),
        _group(dice, "mirror", "far", subscribe=_subscription(dice, "ping", qos),
               relay={"suffix": "_back", "qos": dice.pick("relay.qos", (qos, qos, 0, 1))})]})


def _trunk(dice: Dice) -> Values:
    """Hosts behind a switch, and one link from it to the broker."""
    count = dice.whole("count", 2, 6)
    network = _network(dice, "near", "broker", name="near", link="shared" if dice.hits("shared", 0.5) else "each")
    trunk = {"up": _direction(dice, "trunk.up"), "down": _direction(dice, "trunk.down")}
    narrowest = _narrowest(network["up"], network["down"], trunk["up"], trunk["down"])
    publish = _publish(dice, "publish", "t/{client}", clients=count, copies=1, narrowest=narrowest)
    return _of_mqtt(dice, {"networks": [network], "trunk": trunk, "hosts": {"near": {"count": count}}, "groups": [
        _group(dice, "publishers", "near", count, publish=publish),
        _group(dice, "subscribers", "near", count, subscribe=_subscription(dice, "t/{client}", publish["qos"]))]})


def _routed(dice: Dice) -> Values:
    """Two hosts that forward between a publisher and its broker."""
    networks = [_network(dice, one, other, name=one) for one, other in (
        ("near", "edge"), ("edge", "core"), ("core", "broker"), ("far", "core"))]
    narrowest = _narrowest(*(network["up"] for network in networks[:3]), networks[3]["down"], networks[2]["down"])
    publish = _publish(dice, "publish", "t", clients=1, copies=1, narrowest=narrowest)
    hosts = {"edge": {"forwards": True}, "core": {"forwards": True}}
    return _of_mqtt(dice, {"networks": networks, "hosts": hosts, "groups": [
        _group(dice, "publisher", "near", publish=publish),
        _group(dice, "subscriber", "far", subscribe=_subscription(dice, "t", publish["qos"]))]})


def _two_brokers(dice: Dice) -> Values:
    """Two brokers on hosts of their own, each with a client that hears itself."""
    servers = [{"name": name, "host": name, **_broker(dice, name)} for name in ("east", "west")]
    networks = [_network(dice, "near", name, name=name) for name in ("east", "west")]
    groups = []
    for network, server in zip(networks, ("east", "west"), strict=True):
        narrowest = _narrowest(network["up"], network["down"])
        publish = _publish(dice, f"publish-{server}", "t", clients=1, copies=1, narrowest=narrowest)
        groups.append(_group(dice, f"at-{server}", "near", connects_to=server, publish=publish,
                             subscribe=_subscription(dice, "t", publish["qos"])))
    return _of_mqtt(dice, {"servers": servers, "networks": networks, "groups": groups})


def _varied_powers(dice: Dice) -> Values:
    """What obstacles, reflections and bit errors make of frames; mild enough that most of them arrive."""
    varied: Values = {}
    if dice.newly_hits("radio.shadowing", 0.3, LATER_TO):
        varied["shadowing"] = {"sigma": dice.measure("radio.sigma", 1, 4, "dB")}
    if dice.newly_hits("radio.fading", 0.3, LATER_TO):
        kind = dice.pick("radio.fading.kind", ("rayleigh", "nakagami"))
        shape = {"m": dice.number("radio.fading.m", 0.8, 6)} if kind == "nakagami" else {}
        varied["fading"] = {"kind": kind, "coherence": dice.measure("radio.coherence", 5, 100, "ms"), **shape}
    if dice.newly_hits("radio.errors", 0.4, LATER_TO):
        varied["errors"] = "snr"
    if dice.newly_hits("radio.interferer", 0.25, LATER_TO):
        varied["interferers"] = [_interferer(dice, "oven")]
    return varied


def _on_air(dice: Dice) -> Values:
    """Stations on an 802.11 channel, of which one is the broker's."""
    radio: Values = {"standard": dice.pick("radio.standard", ("dsss-2", "b-11", "g-54"))} | dice.some(
        0.25,
        rts_threshold=("radio.rts", lambda: dice.pick("radio.rts", ("0 B", "500 B"))),
        short_retries=("radio.short", lambda: dice.whole("radio.short", 2, 10)),
        long_retries=("radio.long", lambda: dice.whole("radio.long", 2, 10)),
        queue=("radio.queue", lambda: dice.whole("radio.queue", 10, 200)),
        channel=("radio.channel", lambda: {
            "mean_bad": dice.measure("radio.bad_for", 1, 30, "ms"), "bad": dice.measure("radio.bad", 1, 10, "%"),
            "loss_bad": dice.measure("radio.loss_bad", 40, 100, "%")}),
    )
    radio |= _varied_powers(dice)
    count = dice.whole("count", 1, 5)
    publish = _publish(dice, "publish", "t/{client}", clients=count, copies=1, narrowest=8e5)
    return _of_mqtt(dice, {"radio": radio, "hosts": {"near": {"count": count}}, "groups": [
        _group(dice, "publishers", "near", count, publish=publish),
        _group(dice, "subscriber", "far", subscribe=_subscription(dice, "t/#", publish["qos"]))]})


MQTT_SHAPES = (
    _pair, _pair, _crowd, _host_each, _echo, _fan_out, _fan_in, _relay, _trunk, _routed, _two_brokers, _on_air)


# Other protocols


def _behind_gateway(dice: Dice) -> Values:
    """MQTT-SN clients behind a gateway, and a subscriber at the broker."""
    count = dice.whole("count", 1, 6)
    networks = [_network(dice, "near", "gateway", name="near"), {
        "between": ["gateway", "broker"], "up": {"delay": "3 ms"}, "down": {"delay": "3 ms"}},
        _network(dice, "far", "broker", name="far")]
    publish = _publish(dice, "publish", "s/{client}", clients=count, copies=1, narrowest=_narrowest(networks[0]["up"]))
    # A datagram carries it whole.
    publish["payload"] = f"{dice.whole('sn.payload', 16, 500)} B"
    session: Values = {"retry": dice.measure("sn.retry", 1, 5, "s"), "retries": dice.whole("sn.retries", 3, 10)}
    session |= dice.some(0.2, keep_alive=("sn.keep_alive", lambda: f"{dice.whole('sn.keep_alive', 2, 60)} s"),
                         max_queued=("sn.max_queued", lambda: dice.whole("sn.max_queued", 5, 500)))
    gateway = {"mode": dice.pick("sn.mode", ("transparent", "aggregating")), "retry": session["retry"],
               "retries": session["retries"]} | dice.some(
                   0.2, filter_duplicates=("sn.filter", lambda: True),
                   broker_window=("sn.broker_window", lambda: dice.whole("sn.broker_window", 1, 50)))
    groups = [
        {"name": "sensors", "host": "near", "count": count, "connects_to": "gateway", "protocol": "mqtt-sn",
         "mqtt_sn": session, "publish": _beside(dice, "sensors", publish)},
        {"name": "desk", "host": "far", "connects_to": "broker", "nagle": False,
         "subscribe": _subscription(dice, "s/#", publish["qos"])}]
    if dice.hits("sn.down", 0.3):
        groups.append({"name": "down", "host": "near", "connects_to": "gateway", "protocol": "mqtt-sn",
                       "mqtt_sn": session, "subscribe": _subscription(dice, "s/#", publish["qos"])})
    return {"servers": [{"name": "broker", **_broker(dice)},
                        {"name": "gateway", "role": "gateway", "host": "gateway", "gateway": gateway}],
            "networks": networks, "groups": groups}


def _at_proxy(dice: Dice) -> Values:
    """ZeroMQ publishers and subscribers at a proxy."""
    count = dice.whole("count", 1, 6)
    networks = [_network(dice, "near", "proxy", name="near"), _network(dice, "far", "proxy", name="far")]
    narrowest = _narrowest(networks[0]["up"], networks[1]["down"])
    publish = _publish(dice, "publish", "s/{client}", clients=count, copies=1, narrowest=narrowest, qos=0)
    publish.pop("retain", None)
    marks = dice.some(0.2, high_water_mark=("zmq.mark", lambda: dice.whole("zmq.mark", 5, 1000)))
    return {"servers": [{"name": "proxy", "role": "zeromq"} | ({"zeromq": marks} if marks else {})],
            "networks": networks, "hosts": _hosts(dice, "near", "far"), "groups": [
        {"name": "sensors", "host": "near", "count": count, "protocol": "zeromq",
         "publish": _beside(dice, "sensors", publish, levels=(0,))},
        {"name": "desk", "host": "far", "protocol": "zeromq", "subscribe": ["s/#"]}]}
