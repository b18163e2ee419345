"""What is possible, but rarely meant: ``mqttlab check`` and ``run`` warn of it and go on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from mqttlab import secrets
from mqttlab.digits import plain
from mqttlab.memory import memory_left
from mqttlab.mistaken import some
from mqttlab.quantity import shown
from mqttlab.scenario.check import IDENTITY_BYTES, links
from mqttlab.scenario.churn_check import early_churn
from mqttlab.scenario.client_ids import long_ids
from mqttlab.scenario.estimate import RATE_SEEN, Load, estimate, per_second
from mqttlab.scenario.fit import fit
from mqttlab.scenario.location import Location, Problem
from mqttlab.scenario.model import Group, Scenario
from mqttlab.scenario.publish import Publish
from mqttlab.scenario.secret_places import secrets_of
from mqttlab.scenario.topics import Filters

GIGABYTE = 10**9
# Of relays that hear each other there may be any number.
TOPICS_MAX = 100_000
RELAYS_MAX = 4
# Of more warnings of a kind the first ones are worked out.
WARNINGS_MAX = 20
# Fifty million frames with 25 million deliveries at QoS 1, of 50 clients alike, held 1.93 GB; the frames of one
# connection are held at once, at 430 B each. The estimate takes them for twice as many.
SUMMING_UP_BYTES = 15
BUSIEST_BYTES = 215


def unusual(scenario: Scenario) -> list[Problem]:
    """Everything unusual in a scenario that can be run."""
    checks = (shown_secrets, _phases, _parts, _servers, _windows, _links, fit, early_churn, long_ids, _bursts, _replays,
              _subscriptions, _identities, _load)
    return [problem for check in checks for problem in islice(check(scenario), WARNINGS_MAX)]


def shown_secrets(scenario: Scenario) -> Iterator[Problem]:
    """Secrets that others can see: as text in the scenario, or in a command."""
    for place, mark in secrets_of(scenario):
        if "command" in place:
            yield place, ("is a secret in a command, which everybody on this machine sees in a list of processes; use "
                          "`environment` or `files`")
        elif secrets.was_written(mark):
            yield place, ("is a secret that is written as text, and every reader of the scenario sees it; write its "
                          "place instead, such as { env = \"NAME\" } or { file = \"PATH\" }")


def _phases(scenario: Scenario) -> Iterator[Problem]:
    phases = scenario.phases
    if phases.warm_up > phases.duration:
        yield ("phases", "warm_up"), (f"is {plain(phases.warm_up / 1e9)} s, longer than the measurement of "
                                      f"{plain(phases.duration / 1e9)} s; messages of the warm-up are not counted")


def _servers(scenario: Scenario) -> Iterator[Problem]:
    for place, server in scenario.all_servers:
        if server.retry is not None and scenario.backend == "live":
            yield (*place, "retry"), (f"is {plain(server.retry / 1e9)} s, which only the simulated broker obeys: since "
                                      "MQTT 3.1.1 brokers repeat only when a client comes back")


def _windows(scenario: Scenario) -> Iterator[Problem]:
    """Mosquitto 2.0.11 acknowledges QoS 2 messages beyond its window and drops them; only MQTT 5 tells the client."""
    for index, group in enumerate(scenario.groups):
        mqtt, server = group.mqtt or scenario.mqtt, scenario.serving(group)
        if group.protocol != "mqtt" or group.client is not None or server.kind != "mosquitto" or mqtt.version == "5":
            continue
        sends = {publish.qos for _, publish in group.publications} | ({group.relay.qos} if group.relay else set())
        if 2 in sends and 0 < server.max_inflight < mqtt.max_inflight:
            place: Location = ("mqtt",) if group.mqtt is None else ("groups", index, "mqtt")
            yield (*place, "max_inflight"), (
                f"is {mqtt.max_inflight}, but `max_inflight` of `{server.name}` is {server.max_inflight}: Mosquitto "
                f"acknowledges QoS 2 messages beyond that and drops them; use {server.max_inflight} or less, raise the "
                "broker's, or use version \"5\", which tells the client")


def _parts(scenario: Scenario) -> Iterator[Problem]:
    if scenario.backend == "sim" and scenario.live.parts > 1:
        yield ("live", "parts"), f"is {scenario.live.parts}, but has no effect on a simulation: one engine performs it"


def _links(scenario: Scenario) -> Iterator[Problem]:
    phases = scenario.phases
    run_s = (phases.warm_up + phases.duration + phases.cool_down) / 1e9
    knows_ecn = any(host.tcp.ecn for host in scenario.hosts.values())
    for place, link in links(scenario):
        if link.discipline.ecn and not knows_ecn:
            yield (*place, "discipline", "ecn"), (
                "is true, but marks nothing: no host has `tcp = { ecn = true }`; both ends of a connection need it")
        certain = link.loss[0] == link.loss[1] or (
            link.burst_loss is not None and link.burst_loss.loss_bad == link.burst_loss.loss_good == (1, 1))
        if certain:
            yield (*place, "loss"), "is 100 %: nothing can arrive, and no client can connect"
        if link.rate is not None:
            frame = link.largest_frame(scenario.mtu)
            takes_s = 8 * frame / link.rate
            if takes_s > run_s:
                yield (*place, "rate"), (f"is {link.rate} bit/s: one packet of {scenario.mtu} B takes "
                                         f"{plain(takes_s)} s, "
                                         f"longer than the run of {plain(run_s)} s")
            # RFC 8290, 5.2.2: below that CoDel drops what only waits for one packet before it.
            if link.discipline.kind != "tail-drop" and takes_s * 1e9 > link.discipline.target:
                yield (*place, "discipline"), (
                    f"has a `target` of {plain(link.discipline.target / 1e6)} ms, but one packet of {scenario.mtu} B "
                    f"takes {plain(takes_s * 1e3, 3)} ms at {link.rate} bit/s; use a `target` of "
                    f"{math.ceil(takes_s * 1e3)} ms or more")
        # A named model's own spread is as its source says.
        if link.jitter > link.delay and (place[0] == "trunk" or scenario.networks[int(place[1])].model is None):
            yield (*place, "jitter"), (f"is {plain(link.jitter / 1e6)} ms, more than the delay of "
                                      f"{plain(link.delay / 1e6)} ms; "
                                       "delays below 0 become 0, so that their mean is higher")


def _bursts(scenario: Scenario) -> Iterator[Problem]:
    for index, group in enumerate(scenario.groups):
        for place, publish in group.publications:
            burst = publish.burst
            if burst is not None and burst.gap * (burst.size - 1) >= burst.every:
                yield ("groups", index, *place, "burst"), (
                    f"lasts {plain(burst.gap * (burst.size - 1) / 1e9)} s, but the next one begins after "
                    f"{plain(burst.every / 1e9)} s; bursts overlap")
            seconds, measured = sum(stage.for_ for stage in publish.stages) / 1e9, scenario.phases.duration / 1e9
            if seconds > measured:
                yield ("groups", index, *place, "stages"), (
                    f"last {plain(seconds)} s, but the measurement ends after {plain(measured)} s; "
                    "the rest is not performed")


def _replays(scenario: Scenario) -> Iterator[Problem]:
    for index, group in enumerate(scenario.groups):
        for place, publish in group.publications:
            if publish.replay is None:
                continue
            lasts = publish.replay.table.span_ns * publish.replay.second_us / 1e15
            if lasts > scenario.phases.duration / 1e9:
                yield ("groups", index, *place, "replay"), (
                    f"lasts {plain(lasts, 4)} s, longer than the measurement of "
                    f"{plain(scenario.phases.duration / 1e9)} s; later messages are left out")
            table = publish.replay.table
            for column in ("qos", "retain"):
                if column in publish.model_fields_set and column in table.columns and column not in table.left_open:
                    yield ("groups", index, *place, column), (
                        f"is {shown(getattr(publish, column))}, but every message of the table has its own, which "
                        f"holds; to use this one write replay = {{ file = {shown(str(publish.replay.file))}, ignore = "
                        f"[\"{column}\"] }}")


def _subscriptions(scenario: Scenario) -> Iterator[Problem]:
    served: dict[str, list[Group]] = {server.name: [] for _, server in scenario.all_servers}
    for group in scenario.groups:
        served[scenario.serving(group).name].append(group)
    filters = {name: Filters(each.filter.replace("{group}", group.name) for group in groups for each in group.subscribe)
               for name, groups in served.items()}
    topics = {name: _topics(scenario, groups) for name, groups in served.items()}
    matched = {name: {pattern for topic in found for pattern in filters[name].matching(topic)}
               for name, found in topics.items()}
    # What programs publish, and to what they subscribe, only they know.
    programs = any(group.client is not None for group in scenario.groups)
    for index, group in enumerate(scenario.groups):
        mqtt, server = group.mqtt or scenario.mqtt, scenario.serving(group)
        for number, subscription in enumerate(group.subscribe):
            place: Location = ("groups", index, "subscribe", number)
            pattern = subscription.filter.replace("{group}", group.name)
            if pattern.startswith("$share/") and mqtt.version != "5" and group.protocol == "mqtt":
                yield (*place, "filter"), (f"is {shown(subscription.filter)}, but shared subscriptions are part of "
                                           f"MQTT 5, and this group uses {mqtt.version}; Mosquitto supports them, "
                                           f"other brokers may not")
            # Others may publish to an external broker, and every broker to $SYS; a proxy's broker has other clients.
            known = server.kind == "external" or server.role != "broker" or pattern.startswith("$SYS") or programs
            if not known and pattern not in matched[server.name]:
                yield (*place, "filter"), (f"is {shown(subscription.filter)}, but no topic matches it; published: "
                                           f"{some(sorted(topics[server.name])) or 'nothing'}")
    for index, group in enumerate(scenario.groups):
        server = scenario.serving(group)
        if server.kind == "external" or server.role != "broker" or programs:
            continue
        for where, publish in group.publications:
            patterns = [topic.replace("{group}", group.name) for topic in publish.topic_patterns]
            if not any(filters[server.name].matching(topic) for topic in patterns):
                yield ("groups", index, *where, "topic"), (
                    f"is {shown(publish.topic_patterns[0])}, but nothing subscribes to it; its messages have no "
                    "receiver")


def _identities(scenario: Scenario) -> Iterator[Problem]:
    """Small messages from several publishers on one topic: a simulator knows whose they are, a network does not."""
    if scenario.backend != "live":
        return
    publishers: dict[tuple[str, str], int] = {}
    for group in scenario.groups:
        server = scenario.serving(group).name
        # Two publications of a client may have one topic.
        counts: dict[str, int] = {}
        for _, publish in group.publications:
            for pattern in publish.topic_patterns:
                count = 1 if publish.has_publisher_of_its_own(pattern) else group.count
                topic = pattern.replace("{group}", group.name)
                counts[topic] = max(counts.get(topic, 0), count)
        for topic, count in counts.items():
            publishers[server, topic] = publishers.get((server, topic), 0) + count
    for index, group in enumerate(scenario.groups):
        for place, publish in group.publications:
            size = _least_bytes(publish)
            named = [topic for topic in publish.topic_patterns
                     if publishers[scenario.serving(group).name, topic.replace("{group}", group.name)] > 1]
            if size is not None and size < IDENTITY_BYTES and named:
                yield ("groups", index, *place, "payload"), (
                    f"is {size} B, and several clients publish to {shown(named[0])}: below {IDENTITY_BYTES} B a "
                    "message does not name its publisher, and in a live run its fate is unknown; use "
                    f"{IDENTITY_BYTES} B or more, or `{{client}}` in the topic")


def _least_bytes(publish: Publish) -> int | None:
    """The smallest size of a message, where the scenario or its table says it."""
    if publish.replay is not None and publish.replay.table.sizes is not None:
        return publish.replay.table.sizes[0]
    return publish.payload.size


def _topics(scenario: Scenario, groups: list[Group]) -> set[str]:
    """The topics that messages of a server's groups may have, as patterns; copies of relays included."""
    topics = {topic.replace("{group}", group.name) for group in groups for _, publish in group.publications
              for topic in publish.topic_patterns}
    wills = [scenario.mqtt.will, *(group.mqtt_sn.will for group in groups),
             *(group.mqtt.will for group in groups if group.mqtt is not None)]
    topics |= {will.topic for will in wills if will is not None}
    suffixes: dict[str, set[str]] = {}
    for group in groups:
        if group.relay is not None:
            for each in group.subscribe:
                suffixes.setdefault(each.filter.replace("{group}", group.name), set()).add(group.relay.suffix)
    relayed, told = Filters(suffixes), topics
    # A relay may hear another relay; two in a row are as many as have been seen.
    for _ in range(RELAYS_MAX if suffixes else 0):
        copies = (topic + suffix for topic in told for pattern in relayed.matching(topic)
                  for suffix in suffixes[pattern])
        told = set(islice(copies, TOPICS_MAX - len(topics)))
        topics = topics | told
    return topics


def _load(scenario: Scenario) -> Iterator[Problem]:
    load = estimate(scenario)
    if load.offered_per_s > RATE_SEEN:
        place, rate = _fastest(scenario)
        yield place, (f"is {rate:,.0f} messages/s, {load.offered_per_s:,.0f} /s in all; a broker and clients on one "
                      f"machine carried at most {RATE_SEEN:,} /s when measured; the rest counts as unsent")
    if load.recording_bytes > GIGABYTE:
        yield (), _size(load)
    held, left = load.frames * SUMMING_UP_BYTES + load.frames_busiest * BUSIEST_BYTES, memory_left()
    if left is not None and held > left:
        yield (), (f"summing up its frames at the end needs about {held / GIGABYTE:,.1f} GB of memory, but this "
                   f"machine has {left / GIGABYTE:,.1f} GB left ({load.words()}, of which one client has "
                   f"{load.frames_busiest:,.0f}); shorten `phases.duration`, or set `recording.detail = \"messages\"`")


def _size(load: Load) -> str:
    return (f"the recording takes about {load.recording_bytes / GIGABYTE:,.1f} GB ({load.words()}); "
            "shorten `phases.duration`, or set `recording.detail = \"messages\"`")


def _fastest(scenario: Scenario) -> tuple[Location, float]:
    """Where most messages come from."""
    rates: list[tuple[float, Location]] = []
    for index, group in enumerate(scenario.groups):
        for place, publish in group.publications:
            field = "rate" if publish.rate is not None else "burst" if publish.burst is not None else "interval"
            field = "stages" if publish.stages else field
            rates.append((group.count * per_second(publish), ("groups", index, *place, field)))
    rate, location = max(rates, key=lambda found: found[0])
    return location, rate
