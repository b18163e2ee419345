"""Whether a network can carry what a scenario asks of it, and whether the scenario says whose links they are.

Sums are of what must cross: each message once with its headers, and the acknowledgements of QoS 1 and 2. Where stages
or events change a rate, the highest counts. Clients that come and go publish while they are there, and have their
packets of connecting, subscribing and leaving. A subscription that an event adds to all clients of a group counts from
the beginning.

Not counted is what TCP repeats, acknowledges alone or joins, so that near its limit a link may say nothing; handshakes
of TLS and WebSocket; and of events bursts, other payloads, subscriptions of some clients of a group, and other links.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from mqttlab.digits import plain
from mqttlab.networks.link import LinkDirection
from mqttlab.quantity import rate_words, shown
from mqttlab.scenario.access import Crossing, crossings, is_counted
from mqttlab.scenario.audiences import Audiences, Heard
from mqttlab.scenario.estimate import payload_bytes, per_second
from mqttlab.scenario.event_load import offered
from mqttlab.scenario.location import Location, Problem
from mqttlab.scenario.model import Group, Scenario, Subscription
from mqttlab.scenario.publish import Publish

# IPv4 (20 B) with TCP and its timestamps (32 B, RFC 7323 3.2), or with UDP.
TCP_BYTES, UDP_BYTES = 52, 28
# Fixed header, topic's length and packet identifier of a PUBLISH (MQTT 3.1.1, 3.3); PUBACK and its relatives.
PUBLISH_BYTES, ACKNOWLEDGEMENT_BYTES = 6, 4
# CONNECT with an identifier of 8 B (3.1); DISCONNECT (3.14).
CONNECT_BYTES, DISCONNECT_BYTES = 22, 2
# How often each QoS crosses from its sender until it is done, in times one way.
ONE_WAYS = {0: 1, 1: 2, 2: 4}
# Of so many phases of two publications a run has all sorts.
PHASES_ENOUGH = 20


def fit(scenario: Scenario) -> list[Problem]:
    """What the networks of a scenario do not carry, or do not say."""
    known = _Known(scenario)
    checks = (_whose_links, _directions, _load, _in_step, _cool_down, _keep_alive, _take_over)
    return [problem for check in checks for problem in check(known)]


class _Known:
    """A scenario, with each group's way to its server and what its clients receive, worked out once."""

    def __init__(self, scenario: Scenario) -> None:
        scenario = _with_later_subscriptions(scenario)
        self.scenario = scenario
        self._changed = offered(scenario) if any(event.publishes for event in scenario.events) else {}
        self.ways = {group.name: way for group, way in zip(scenario.groups, crossings(scenario), strict=True)}
        self._legs: dict[tuple[int, int, int, bool], float] = {}
        self._audiences = Audiences(scenario)
        for group in scenario.groups:
            for publish, per_s in self.published(group):
                self._publish(group, publish, per_s)

    def published(self, group: Group) -> Iterator[tuple[Publish, float]]:
        """A group's publications, each with the messages a second of one client; where that changes, the most."""
        for number, (_, publish) in enumerate(group.publications):
            changed = self._changed.get((group.name, number))
            per_s = per_second(publish) if changed is None else changed.most_per_s / group.count
            yield publish, per_s * _there(group)

    def _publish(self, group: Group, publish: Publish, per_s: float) -> None:
        size = len(publish.topic) + publish.property_bytes
        looks = payload_bytes(publish), size, publish.qos, per_s, group.count
        takes_s = self.leg_s(group, payload_bytes(publish), publish.qos, sends=True)
        for audience, how in self._audiences.receiving(group, publish):
            heard = audience.heard.get((*looks, how))
            if heard is None:
                heard = audience.heard[(*looks, how)] = Heard(publish, group, how, per_s=per_s, takes_s=takes_s)
            heard.groups += 1
            if takes_s > heard.takes_s:
                heard.publisher, heard.takes_s = group, takes_s

    def leg_s(self, group: Group, size: int, qos: int, *, sends: bool) -> float:
        """How long a message and its acknowledgements take between a client and its server."""
        way = self.ways[group.name]
        # Groups of one host have one way.
        asked = id(way), size, qos, sends
        if asked not in self._legs:
            self._legs[asked] = _leg_s(way, size, qos, sends=sends)
        return self._legs[asked]

    def left_out(self, group: Group) -> Iterator[tuple[Publish, float]]:
        """What :meth:`sources` has of a client's own messages that it does not get, with its messages a second."""
        for publish, per_s in self.published(group):
            if self._audiences.leaves_out(group, publish):
                yield publish, per_s

    def sources(self, group: Group) -> Iterator[tuple[Heard, float]]:
        """What a group receives, messages that look alike together, and how many of its clients receive one."""
        audience = self._audiences.of(group)
        for heard in () if audience is None else audience.heard.values():
            yield heard, heard.clients(group.count)


def _with_later_subscriptions(scenario: Scenario) -> Scenario:
    """A scenario in which groups have from the beginning what all of their clients subscribe to later."""
    later: dict[str, list[Subscription]] = {}
    for event in scenario.events:
        if event.do == "subscribe" and event.share is None and event.client is None:
            later.setdefault(str(event.group), []).append(
                Subscription(filter=str(event.filter), qos=event.qos or 0))
    if not later:
        return scenario
    return scenario.model_copy(update={"groups": [
        group.model_copy(update={"subscribe": [*group.subscribe, *later[group.name]]}) if group.name in later else group
        for group in scenario.groups]})


def _there(group: Group) -> float:
    """The share of the time that a client of a group is connected for."""
    if group.churn is None:
        return 1.0
    return group.churn.hold / (group.churn.hold + group.churn.away_ns(group.count))


def _seconds(length: float) -> str:
    return f"{plain(length, 3)} s"


def _whose_links(known: _Known) -> Iterator[Problem]:
    clients: Counter[int] = Counter()
    several: set[int] = set()
    words: dict[int, str] = {}
    scenario = known.scenario
    for group in scenario.groups:
        way = known.ways[group.name]
        if not way or way[0].number is None or scenario.networks[way[0].number].link is not None:
            continue
        number = way[0].number
        clients[number] += group.count
        several |= {number} if group.count > 1 else set()
        rates = [link.rate for link in (way[0].up, way[0].down) if link is not None and link.rate is not None]
        words[number] = " up and ".join(rate_words(rate) for rate in dict.fromkeys(rates))
    for number in sorted(several):
        rate = f" of {words[number]}" + (" down" if "up and" in words[number] else "") if words[number] else ""
        yield ("networks", number), (
            f"has no `link`: {clients[number]} clients share one link{rate}; write `link = "
            "\"each\"` for a link for each client, or `link = \"shared\"`")


def _directions(known: _Known) -> Iterator[Problem]:
    for index, network in enumerate(known.scenario.networks):
        # Who names a placement, or writes `{}`, has said so.
        if network.model is not None or (network.up is not None and network.down is not None):
            continue
        name, ends = ("down", network.between[::-1]) if network.down is None else ("up", network.between)
        yield ("networks", index), (
            f"has no `{name}`: from `{ends[0]}` to `{ends[1]}` nothing is delayed, limited or lost; add `{name}`, or "
            f"`{name} = {{}}` if that is meant")


@dataclass
class _Link:
    """What a link is asked to carry."""

    place: Location
    rate_bit_s: int
    is_policed: bool
    """Whether a policer lets less pass than the link carries."""
    bit_s: float = 0.0
    busiest_bit_s: float = 0.0
    """Of one client, which a link of its own would have to carry."""
    clients: int = 0
    """Who share it; 0 where each has its own."""
    host: str | None = None
    """The counted hosts of which each has such a link, by name."""


def _load(known: _Known) -> Iterator[Problem]:
    found: dict[tuple[int | None, str], _Link] = {}
    for group in known.scenario.groups:
        for crossing in known.ways[group.name]:
            for way, link, place in (("up", crossing.up, crossing.up_place),
                                     ("down", crossing.down, crossing.down_place)):
                if link is None or (rate := _carried_bit_s(link)) is None:
                    continue
                bit_s = _bits_per_second(known, group, link, way)
                asked = found.setdefault((crossing.number, way), _Link(place, rate, rate != link.rate))
                sharing = group.count
                if crossing.each:
                    # Hosts that the scenario counts have clients of each group, in turn; of others the busiest counts.
                    is_counted_host = is_counted(known.scenario, group.host)
                    asked.host = group.host if is_counted_host else None
                    sharing = -(-group.count // known.scenario.hosts[group.host].count) if is_counted_host else 1
                asked.busiest_bit_s = max(asked.busiest_bit_s, bit_s)
                alone = crossing.each and asked.host is None
                asked.bit_s = max(asked.bit_s, bit_s) if alone else asked.bit_s + sharing * bit_s
                asked.clients += 0 if alone else sharing
    for (_, way), asked in found.items():
        if asked.bit_s > asked.rate_bit_s:
            whose = f"{asked.clients} clients share" if asked.clients > 1 else "a client has"
            then, faster = ("its policer drops the rest", "use a faster policer") if asked.is_policed else (
                "its queue grows while clients publish", "use a faster link")
            remedies = ["send less", faster]
            # A link for each does not help where one client's messages are too many for it.
            if asked.clients > 1 and asked.busiest_bit_s <= asked.rate_bit_s:
                remedies.append("`link = \"each\"`" if asked.host is None else
                                f"more hosts (`hosts.{asked.host}.count`)")
            yield (*asked.place, "policer") if asked.is_policed else asked.place, (
                f"must carry {rate_words(asked.bit_s)} {'to' if way == 'up' else 'from'} the server with headers, but "
                f"{whose} {rate_words(asked.rate_bit_s)}: {then}; "
                f"{', '.join(remedies[:-1])}, or {remedies[-1]}")


@dataclass(frozen=True, kw_only=True)
class _Regular:
    """Messages on a link that are due at equal intervals."""

    group: Group
    publish: Publish
    interval_ns: int
    takes_s: float
    """Of the link's transmitter, for one of them."""
    clients: int
    """How many publishers, each with a phase of its own."""


def _in_step(known: _Known) -> Iterator[Problem]:
    """Two publications whose intervals divide each other keep their phase while a run lasts: where messages of one
    occupy a link for long, it decides how many of the other wait for them."""
    places = {id(publish): ("groups", index, *place, "interval" if publish.interval is not None else "rate")
              for index, group in enumerate(known.scenario.groups) for place, publish in group.publications}
    said: set[Location] = set()
    for way, link, alone, messages in _regular(known):
        pairs = combinations(messages, 2) if len(messages) <= PHASES_ENOUGH else ()
        for one, other in pairs:
            short, long = sorted((one, other), key=lambda each: each.interval_ns)
            slow, quick = sorted((one, other), key=lambda each: -each.takes_s)
            phases = min(one.clients, other.clients) if alone else one.clients * other.clients
            usual_s = quick.takes_s + (link.delay + link.jitter) / 1e9
            place = places[id(short.publish)]
            if long.interval_ns % short.interval_ns or phases >= PHASES_ENOUGH or slow.takes_s <= usual_s:
                continue
            if place in said:
                continue
            said.add(place)
            server = f"{'to' if way == 'up' else 'from'} the server"
            multiple = "the same" if long.interval_ns == short.interval_ns else "a multiple of it"
            yield place, (
                f"is {plain(short.interval_ns / 1e9)} s, and the {plain(long.interval_ns / 1e9)} s of "
                f"`{long.group.name}` are {multiple}: on their link {server}, which a message of `{slow.group.name}` "
                f"occupies for {_seconds(slow.takes_s)}, their phase stays the same for a whole run and decides the "
                "percentiles; use `arrival = \"poisson\"`, or intervals that are no multiples")


def _regular(known: _Known) -> Iterator[tuple[str, LinkDirection, bool, list[_Regular]]]:
    """For each link and direction, whether every client has its own, and what crosses it regularly."""
    found: dict[tuple[object, ...], tuple[str, LinkDirection, bool, list[_Regular]]] = {}
    for group in known.scenario.groups:
        sent = [(group, publish) for publish, _ in known.published(group)]
        received = [(heard.publisher, heard.publish) for heard, _ in known.sources(group)]
        for crossing in known.ways[group.name]:
            for way, link, its in (("up", crossing.up, sent), ("down", crossing.down, received)):
                if link is None or link.rate is None:
                    continue
                whose = None
                if crossing.each:
                    # Clients of several groups meet on hosts that the scenario counts; else nobody else is there.
                    whose = group.host if is_counted(known.scenario, group.host) else group.name
                alone = crossing.each and way == "up"
                messages = found.setdefault((crossing.number, way, whose), (way, link, alone, []))[-1]
                messages += [_Regular(
                    group=publisher, publish=publish, interval_ns=interval, clients=publisher.count,
                    takes_s=_message_bits(known.scenario.mtu, publisher, publish, link, publish.qos, sends=True)
                    / link.rate) for publisher, publish in its if (interval := _interval_ns(publisher, publish))
                    and not any(each.publish is publish for each in messages)]
    yield from found.values()


def _interval_ns(group: Group, publish: Publish) -> int | None:
    """From one message to the next, where that is always the same."""
    regular = publish.arrival == "constant" and not publish.stages and group.churn is None
    return publish.first_interval if regular else None


def _carried_bit_s(link: LinkDirection) -> int | None:
    """What a link carries for ever; none where nothing limits it."""
    policed = [] if link.policer is None else [link.policer.rate]
    return min([*policed, *([] if link.rate is None else [link.rate])], default=None)


def _bits_per_second(known: _Known, group: Group, link: LinkDirection, way: str) -> float:
    """What one client of a group sends or receives, headers included."""
    mtu, bits = known.scenario.mtu, _coming_bits_per_second(group, link, way)
    for publish, per_s in known.published(group):
        bits += per_s * _message_bits(mtu, group, publish, link, publish.qos, sends=way == "up")
    for heard, count in known.sources(group):
        publish = heard.publish
        rate = heard.groups * heard.per_s * heard.publisher.count * count / group.count
        bits += rate * _message_bits(mtu, group, publish, link, _received_qos(group, publish), sends=way == "down")
    for publish, per_s in known.left_out(group):
        bits -= per_s * _message_bits(mtu, group, publish, link, _received_qos(group, publish), sends=way == "down")
    return bits


def _coming_bits_per_second(group: Group, link: LinkDirection, way: str) -> float:
    """Packets with which one client of a group comes and goes: SYN and FIN, CONNECT, SUBSCRIBE and DISCONNECT, or what
    answers them (MQTT 3.1.1, 3.1 to 3.14)."""
    if group.churn is None:
        return 0.0
    filters = [len(subscription.filter) for subscription in group.subscribe]
    if way == "up":
        packets = [0, 0, CONNECT_BYTES, DISCONNECT_BYTES, *([4 + sum(filters) + 3 * len(filters)] if filters else [])]
    else:
        packets = [0, 0, ACKNOWLEDGEMENT_BYTES, *([ACKNOWLEDGEMENT_BYTES + len(filters)] if filters else [])]
    per_s = 1e9 / (group.count * group.churn.connects)
    return 8.0 * per_s * sum(size + TCP_BYTES + link.overhead for size in packets)


def _received_qos(group: Group, publish: Publish) -> int:
    """A message comes at the lower of its own QoS and its subscription's (MQTT 3.1.1, 3.8.4)."""
    return min(publish.qos, max((subscription.qos for subscription in group.subscribe), default=0))


def _message_bits(
    mtu: int, group: Group, publish: Publish, link: LinkDirection, qos: int, *, sends: bool,
) -> float:
    """A message on its way, or what comes back of it."""
    datagrams = group.protocol == "mqtt-sn"
    headers = (UDP_BYTES if datagrams else TCP_BYTES) + link.overhead
    # Of QoS 2 PUBREL goes with the message, PUBREC and PUBCOMP against it (MQTT 3.1.1, 4.3.3).
    acknowledgements = {(1, False): 1, (2, False): 2, (2, True): 1}.get((qos, sends), 0)
    size = acknowledgements * (ACKNOWLEDGEMENT_BYTES + headers)
    if sends:
        content = payload_bytes(publish) + len(publish.topic) + publish.property_bytes + PUBLISH_BYTES
        segments = max(1, -(-content // max(1, mtu - headers + link.overhead)))
        size += content + segments * headers
    return 8.0 * size


def _one_way_s(links: list[LinkDirection | None], size: int) -> float:
    there = [link for link in links if link is not None]
    return sum(link.delay / 1e9 + (8 * (size + TCP_BYTES) / link.rate if link.rate else 0.0) for link in there)


def _cool_down(known: _Known) -> Iterator[Problem]:
    """The last message has the cool-down to arrive and to be acknowledged."""
    longest, words = 0.0, ""
    for group in known.scenario.groups:
        for heard, _ in known.sources(group):
            publish = heard.publish
            takes = heard.takes_s + known.leg_s(group, payload_bytes(publish), _received_qos(group, publish),
                                                sends=False)
            if takes > longest:
                longest = takes
                words = f"a message of `{heard.publisher.name}` to `{group.name}` at QoS {publish.qos}"
    cool_down_s = known.scenario.phases.cool_down / 1e9
    if longest > cool_down_s:
        yield ("phases", "cool_down"), (
            f"is {plain(cool_down_s)} s, but {words} takes {_seconds(longest)} even on empty links: the last ones are "
            "under way when the run ends; make it longer")


def _leg_s(way: list[Crossing], size: int, qos: int, *, sends: bool) -> float:
    """A message and its acknowledgements between a client and its server."""
    up, down = [crossing.up for crossing in way], [crossing.down for crossing in way]
    message, back = (up, down) if sends else (down, up)
    rest = ONE_WAYS[qos] - 1
    return _one_way_s(message, size) + (rest + 1) // 2 * _one_way_s(back, 4) + rest // 2 * _one_way_s(message, 4)


def _keep_alive(known: _Known) -> Iterator[Problem]:
    """A server closes a connection on which no packet came for one and a half keep-alives (MQTT 3.1.1, 3.1.2.10), a
    client one without PINGRESP, which waits behind what it receives."""
    scenario = known.scenario
    for index, group in enumerate(scenario.groups):
        mqtt = group.mqtt or scenario.mqtt
        if group.protocol != "mqtt" or mqtt.keep_alive == 0:
            continue
        place: Location = ("mqtt",) if group.mqtt is None else ("groups", index, "mqtt")
        way = known.ways[group.name]
        trip_s = sum(_one_way_s(links, 2) for links in ([each.up for each in way], [each.down for each in way]))
        if trip_s > mqtt.keep_alive / 1e9:
            yield (*place, "keep_alive"), (
                f"is {plain(mqtt.keep_alive / 1e9)} s, but a PINGRESP takes {_seconds(trip_s)} to come back to "
                f"`{group.name}`, which gives the connection up meanwhile; make it longer than a round trip")
            continue
        sent = [payload_bytes(publish) for _, publish in group.publications]
        received = [payload_bytes(heard.publish) for heard, _ in known.sources(group)]
        for crossing in known.ways[group.name]:
            for sizes, link in ((sent, crossing.up), (received, crossing.down)):
                if link is None or link.rate is None or not sizes:
                    continue
                takes_s = 8 * max(sizes) / link.rate
                if takes_s > mqtt.keep_alive / 1e9:
                    yield (*place, "keep_alive"), (
                        f"is {plain(mqtt.keep_alive / 1e9)} s, but a packet of {max(sizes)} B takes "
                        f"{_seconds(takes_s)} on the link of `{group.name}` of {rate_words(link.rate)}: the "
                        "connection may be given up meanwhile; make it longer, or the payload smaller")


def _take_over(known: _Known) -> Iterator[Problem]:
    """A server closes the connection of a client when another comes with its identifier (MQTT 3.1.1, 3.1.4-2)."""
    scenario = known.scenario
    owners: dict[tuple[str, str], Group] = {}
    for index, group in enumerate(scenario.groups):
        if group.protocol != "mqtt":
            continue
        mqtt = group.mqtt or scenario.mqtt
        pattern = mqtt.client_id.replace("{group}", group.name)
        server = scenario.serving(group).name
        other = owners.get((server, pattern))
        if other is None and (numbered := re.fullmatch(r"(.*?)(\d{1,6})", pattern)) is not None:
            # The identifier of one of several.
            family = owners.get((server, numbered[1] + "{client}"))
            other = family if family is not None and int(numbered[2]) < family.count else None
        if other is not None:
            place: Location = ("mqtt",) if group.mqtt is None else ("groups", index, "mqtt")
            yield (*place, "client_id"), (
                f"is {shown(mqtt.client_id)}, so that clients of `{other.name}` and `{group.name}` have the same "
                f"identifier: each "
                "takes over the other's session, again and again; add `{group}`")
        owners.setdefault((server, pattern), group)
