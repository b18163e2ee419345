"""How many messages clients have whose publications events change, and what these messages are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from mqttlab.scenario.event_plan import changed_publishing, publishing_of
from mqttlab.scenario.event_publish import BurstOf, Happening, Publishing
from mqttlab.scenario.model import Scenario
from mqttlab.scenario.phases import Phases
from mqttlab.scenario.publish import Publish

S = 1e9
Line = list[tuple[float, Happening]]
"""What happens to a client, in the order of time, in seconds since publishing began."""


@dataclass
class Offered:
    """What the clients of a group publish of one publication."""

    messages: list[tuple[Publish, float]] = field(default_factory=list)
    """By what they are, of all clients together."""
    most_per_s: float = 0.0
    """The highest rate of all clients together, bursts left aside."""


def offered(scenario: Scenario) -> dict[tuple[str, int], Offered]:
    """Of each group whose publications events change, and each of its publications by its number."""
    publishing = publishing_of(scenario)
    lines: dict[str, list[Line]] = {}
    for at, group, clients, happening in changed_publishing(scenario, publishing):
        entry = at / S, happening
        if group.name not in lines:
            lines[group.name] = [[] for _ in range(group.count)]
        for client in clients:
            lines[group.name][client].append(entry)
    found: dict[tuple[str, int], Offered] = {}
    for name, of_clients in lines.items():
        alike = Counter(tuple(id(entry) for entry in line) for line in of_clients)
        one_of = {tuple(id(entry) for entry in line): line for line in of_clients}
        for number in range(len(publishing[name].publications)):
            found[name, number] = Offered()
            for key, count in alike.items():
                _add(found[name, number], publishing[name], number, (one_of[key], count), scenario.phases)
    return found


def _add(total: Offered, publishing: Publishing, number: int, line: tuple[Line, int], phases: Phases) -> None:
    """What so many clients have of a publication to which this happens."""
    (happened, clients), publish = line, publishing.publications[number]
    left = float("inf") if publish.messages is None else float(publish.messages)
    most = 0.0
    for content, messages, per_s in _spans(publish, number, happened, phases):
        messages = min(messages, left)
        left -= messages
        most = max(most, per_s)
        total.messages.append((publishing.content(content), clients * messages))
    total.most_per_s += clients * most


def _spans(publish: Publish, number: int, happened: Line, phases: Phases) -> Iterator[tuple[int, float, float]]:
    """The times between changes: what messages are, how many there are, and the highest rate."""
    content, every, since = number, None, 0.0
    until = (phases.warm_up + phases.duration) / S
    for at, happening in happened:
        if isinstance(happening, BurstOf):
            if number in happening.publications:
                # Besides what the time before it has.
                yield content, float(happening.messages), 0.0
            continue
        for change in happening:
            if change.publication == number:
                yield content, *_due(publish, every, since, at, phases)
                content, every, since = change.content, change.every, at
    yield content, *_due(publish, every, since, until, phases)


def _due(publish: Publish, every: int | None, since: float, until: float, phases: Phases) -> tuple[float, float]:
    """How many messages are due in a time, and the highest rate in it."""
    if every is not None:
        per_s = S / every if every else 0.0
        return per_s * max(0.0, until - since), per_s
    count = most = 0.0
    begins = phases.warm_up / S
    pieces = [(begins, publish.first_rate, publish.first_rate), *publish.rates]
    pieces.append((float("inf"), pieces[-1][2], pieces[-1][2]))
    at = 0.0
    for lasts, first, last in pieces:
        low, high = max(since, at), min(until, at + lasts)
        if low < high:
            rates = [first + (last - first) * (time - at) / lasts for time in (low, high)] if first != last else [first]
            count += sum(rates) / len(rates) * (high - low)
            most = max(most, *rates)
        at += lasts
    return count, most
