"""What does not go with clients that come and go."""

from __future__ import annotations

from collections.abc import Iterator

from mqttlab.digits import plain
from mqttlab.plurals import counted
from mqttlab.quantity import DURATION_NS_MAX, shown
from mqttlab.scenario.churn import MS, Churn
from mqttlab.scenario.location import Problem
from mqttlab.scenario.model import Group, Scenario
from mqttlab.scenario.topics import Filters

CLIENTS_MAX = 100_000
DAY_NS = 86_400 * 10**9


def churn_problems(scenario: Scenario) -> Iterator[Problem]:
    """What does not go with clients that come and go."""
    churning = {group.name for group in scenario.groups if group.churn is not None}
    for index, group in enumerate(scenario.groups):
        if (churn := group.churn) is None:
            continue
        for field, problem in _of_group(scenario, group, churn):
            yield ("groups", index, *field), problem
    for index, event in enumerate(scenario.events):
        if event.group in churning and event.do in ("disconnect", "vanish", "return"):
            yield ("events", index, "do"), (f"is \"{event.do}\", but the clients of `{event.group}` come and go by "
                                            "themselves (`churn`); leave the event out, or `churn`")


def _of_group(scenario: Scenario, group: Group, churn: Churn) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if group.protocol != "mqtt" or group.client is not None:
        spoken = "runs a program of its own" if group.client is not None else f"speaks {group.protocol}"
        yield ("churn",), f"is set, but `{group.name}` {spoken}; only clients of MQTT that mqttlab performs come and go"
        return
    if churn.away_ns(group.count) < MS:
        every_s, hold_s = group.count * churn.connects / 1e9, churn.hold / 1e9
        enough = (churn.hold + MS + churn.connects - 1) // churn.connects
        remedy = f"use `count = {enough}` or more, or " if enough <= CLIENTS_MAX else ""
        yield ("churn", "hold"), (f"is {plain(hold_s)} s, but {counted(group.count, 'client')} with "
                                  f"{plain(1e9 / churn.connects)} connections a second come every {plain(every_s)} s "
                                  f"each; {remedy or 'use '}a shorter `hold`")
    if (away_ns := churn.away_ns(group.count)) > DURATION_NS_MAX:
        yield ("churn", "connects"), (
            f"leaves each of {counted(group.count, 'client')} away for {plain(away_ns / DAY_NS)} days or more, but "
            f"{DURATION_NS_MAX // DAY_NS} days is the longest time; use a larger rate")
    for place, publish in group.publications:
        if publish.arrival == "back-to-back":
            yield (*place, "arrival"), ("is \"back-to-back\", but the clients come and go (`churn`), and such messages "
                                        "have no time; use a `rate`")
    if group.relay is not None:
        yield ("relay",), ("is set, but the clients come and go (`churn`), and what they miss has no copies; leave it "
                           "out")


def unowed_messages(scenario: Scenario) -> Iterator[Problem]:
    """Subscriptions to what others publish, of clients without a session that is kept: which messages a broker had for
    them, in the moments when they came and left, nobody can tell."""
    for index, group in enumerate(scenario.groups):
        mqtt = group.mqtt or scenario.mqtt
        ends = mqtt.clean_session or (mqtt.version == "5" and mqtt.session_expiry == 0)
        if group.churn is None or not ends:
            continue
        served = [other for other in scenario.groups if scenario.serving(other).name == scenario.serving(group).name]
        for number, each in enumerate(group.subscribe):
            heard = Filters([each.filter.replace("{group}", group.name)])
            publishers = [other.name for other in served for _, publish in other.publications
                          if any(heard.matching(topic.replace("{group}", other.name))
                                 for topic in publish.topic_patterns)]
            if publishers:
                yield ("groups", index, "subscribe", number, "filter"), (
                    f"is {shown(each.filter)}, to which `{publishers[0]}` publishes, but the clients come and go "
                    "(`churn`) and their sessions end: what they should have received is unknown; use "
                    "`mqtt.clean_session = false`, or a filter of topics that nobody publishes to")


def early_churn(scenario: Scenario) -> Iterator[Problem]:
    """The first clients come again when they have been away: before that, nobody connects."""
    for index, group in enumerate(scenario.groups):
        if group.churn is None:
            continue
        away_ns = group.churn.away_ns(group.count)
        if scenario.phases.warm_up < away_ns:
            yield ("phases", "warm_up"), (
                f"is {plain(scenario.phases.warm_up / 1e9)} s, but the first client of `{group.name}` that leaves "
                f"comes again after {plain(away_ns / 1e9)} s (`groups[{index}].churn`), and all have been away once "
                f"after {plain(group.count * group.churn.connects / 1e9)} s; until then fewer connect, so "
                "make it longer")
