"""The kinds of scenario that are run live and simulated, side by side.

Each kind turns some fields of the scenario; together they turn every field that both backends have
(``tests/python/test_agreement_kinds.py`` holds that). A kind is the values of a scenario file without name, seed,
phases and backend. The two sides of the broker have delays without a common measure (20 ms and 27.3 ms), because where
two things happen at the same instant chance decides which comes first; kinds named ``coincidence`` keep such cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import mqtt_sn_kinds
import trace_kinds
import zeromq_kinds

Values = dict[str, Any]
NEAR, FAR = "20 ms", "27.3 ms"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of scenario. ``loss`` widens the bound of p95; ``seconds`` is measured in each run.

    Kinds of one ``run`` share it: each is judged by the messages of its ``flow``, a topic that begins with ``flow/``.
    """

    name: str
    values: Values
    loss: bool = False
    seconds: float = 10.0
    run: str = ""
    flow: str = ""


def both_ways(**direction: Any) -> Values:
    """A network whose two directions are alike."""
    return {"up": direction, "down": direction}


def pair(
    *,
    near: Values | None = None,
    far: Values | None = None,
    qos: int = 1,
    nagle: bool = False,
    hosts: Values | None = None,
    mqtt: Values | None = None,
    broker: Values | None = None,
    publish: Values | None = None,
    **more: Any,
) -> Values:
    """One publisher and one subscriber, each on a host of its own behind a network of its own."""
    publishing = {"topic": "t", "qos": qos, "payload": "100 B", "rate": "50 /s"} | (publish or {})
    near = both_ways(delay=NEAR) if near is None else near
    return {
        "broker": {"nagle": nagle} | (broker or {}),
        "mqtt": mqtt or {},
        "hosts": hosts or {},
        "networks": [
            {"between": ["publisher", "broker"], **near},
            {"between": ["subscriber", "broker"], **(_further(near) if far is None else far)},
        ],
        "groups": [
            {
                "name": "publisher",
                "host": "publisher",
                "nagle": nagle,
                "publish": {name: value for name, value in publishing.items() if value is not None},
            },
            {"name": "subscriber", "host": "subscriber", "nagle": nagle, "subscribe": [{"filter": "t", "qos": qos}]},
        ],
        **more,
    }


def _further(network: Values) -> Values:
    return {
        way: (
            direction | {"delay": FAR} if isinstance(direction, dict) and direction.get("delay") == NEAR else direction
        )
        for way, direction in network.items()
    }


def crowd(
    model: str, *, qos: int, count: int = 27, payload: str = "100 B", interval: str = "20 s", **network: Any
) -> Values:
    """As in andersen2021: publishers and subscribers on one host behind one narrow network."""
    topic = "field/{client}"
    return {
        "networks": [{"between": ["field", "broker"], "model": model, **network}],
        "groups": [
            {
                "name": "publishers",
                "host": "field",
                "count": count,
                "publish": {"topic": topic, "qos": qos, "payload": payload, "interval": interval},
            },
            {"name": "subscribers", "host": "field", "count": count, "subscribe": [{"filter": topic, "qos": qos}]},
        ],
    }


def link(**direction: Any) -> Values:
    """A link of 20 ms in both directions with these fields."""
    return both_ways(**({"delay": NEAR} | direction))


def tcp(**fields: Any) -> Values:
    """All three hosts with this TCP."""
    return {host: {"tcp": fields} for host in ("publisher", "broker", "subscriber")}


NAGLE_INTERVAL: Values = {"rate": "100 /s"}
SLOW: Values = {"rate": "20 /s"}
RIVALS: Values = {"initial": "400 ms", "jitter": "20 %"}


def _quality_of_service() -> Iterator[Kind]:
    yield Kind(name="qos0", values=pair(qos=0))
    yield Kind(name="qos1", values=pair(qos=1))
    yield Kind(name="qos2", values=pair(qos=2))
    yield Kind(name="qos1-nagle", values=pair(qos=1, nagle=True, publish=NAGLE_INTERVAL))
    yield Kind(name="qos2-nagle", values=pair(qos=2, nagle=True, publish=SLOW))
    equal = both_ways(delay=NEAR)
    yield Kind(name="coincidence-qos1-nagle", values=pair(qos=1, nagle=True, far=equal, publish=NAGLE_INTERVAL))
    yield Kind(
        name="coincidence-qos2",
        values=pair(
            qos=2, far=equal, publish=NAGLE_INTERVAL, mqtt={"max_inflight": 1000}, broker={"max_inflight": 1000}
        ),
    )
    yield Kind(name="qos2-handed-on-at-publish", values=pair(qos=2, mqtt={"deliver_qos2_on": "publish"}))
    yield Kind(name="qos1-to-qos0", values=_subscribed(pair(qos=1), qos=0))


def _subscribed(values: Values, **fields: Any) -> Values:
    """The same with other fields of the subscription."""
    publisher, subscriber = values["groups"]
    return values | {"groups": [publisher, subscriber | {"subscribe": [subscriber["subscribe"][0] | fields]}]}


def _delays() -> Iterator[Kind]:
    yield Kind(name="jitter-normal", values=pair(near=link(jitter="3 ms")))
    yield Kind(
        name="jitter-uniform-overtaking",
        values=pair(near=link(jitter="4 ms", distribution="uniform", keep_order=False)),
    )
    yield Kind(
        name="jitter-pareto-correlated",
        values=pair(near=link(jitter="2 ms", distribution="pareto", correlation="30 %")),
    )
    yield Kind(name="jitter-paretonormal", values=pair(near=link(jitter="2 ms", distribution="paretonormal")))


def _rates() -> Iterator[Kind]:
    yield Kind(name="rate-250kbit", values=pair(qos=0, near=link(rate="250 kbit/s"), publish={"payload": "500 B"}))
    yield Kind(name="rate-20kB", values=pair(near=link(rate="1 Mbit/s"), publish={"payload": "20 kB", "rate": "4 /s"}))
    yield Kind(
        name="rate-asymmetric",
        values=pair(
            near={"up": {"delay": NEAR, "rate": "200 kbit/s"}, "down": {"delay": "35 ms", "rate": "1 Mbit/s"}},
            far={"up": {"delay": FAR, "rate": "64 kbit/s"}, "down": {"delay": "31 ms", "rate": "2 Mbit/s"}},
        ),
    )
    # An acknowledgement alone has 90 B with the overhead.
    yield Kind(
        name="frame-overhead",
        values=pair(
            near=link(rate="100 kbit/s", overhead="38 B", minimum_frame="120 B"),
            publish={"rate": "20 /s", "payload": "100 B"},
        ),
    )
    burst = {"arrival": "burst", "burst": {"size": 40, "every": "1 s"}, "rate": None, "payload": "700 B"}
    narrow = {"rate": "500 kbit/s", "delay": NEAR}
    yield Kind(
        name="tail-drop-packets", loss=True, values=pair(near=both_ways(**narrow, queue="8 packets"), publish=burst)
    )
    yield Kind(name="tail-drop-bytes", loss=True, values=pair(near=both_ways(**narrow, queue="12 kB"), publish=burst))
    yield Kind(
        name="queue-with-delay-line",
        loss=True,
        values=pair(near=both_ways(**narrow, queue="12 packets", queue_counts_delay_line=True), publish=burst),
    )
    codel = {"kind": "codel", "target": "30 ms", "interval": "150 ms"}
    large = {"payload": "60 kB", "rate": "0.9 /s"}
    yield Kind(
        name="codel",
        loss=True,
        values=pair(qos=0, near=both_ways(**narrow, queue="2 s", discipline=codel), publish=large),
    )
    yield Kind(
        name="fq-codel",
        loss=True,
        values={
            "networks": [
                {
                    "between": ["field", "broker"],
                    "link": "shared",
                    **both_ways(
                        **narrow, discipline={**codel, "kind": "fq-codel", "flows": 6, "quantum": "250 B"}
                    ),
                }
            ],
            "groups": [
                {"name": "cameras", "host": "field", "count": 3, "publish": {"topic": "{client}", "qos": 1, **large}
                 | {"payload": "15 kB"}},
                {"name": "sensors", "host": "field", "count": 5,
                 "publish": {"topic": "{client}", "qos": 1, "payload": "400 B", "rate": "6 /s"}},
                {"name": "office", "host": "broker", "subscribe": [{"filter": "#", "qos": 1}]},
            ],
        },
    )
    yield Kind(
        name="bufferbloat",
        values=pair(
            qos=0,
            near=both_ways(rate="500 kbit/s", delay=NEAR, queue="1000 packets"),
            publish={"payload": "60 kB", "rate": "0.9 /s"},
        ),
    )


def _loss() -> Iterator[Kind]:
    for percent, qos, more in (
        (2, 0, {}),
        (5, 0, {}),
        (5, 1, {}),
        (10, 1, SLOW),
        (20, 1, {"rate": "5 /s"}),
        (5, 2, SLOW),
    ):
        yield Kind(
            name=f"loss{percent}-qos{qos}",
            loss=True,
            seconds=20.0,
            values=pair(qos=qos, near=link(loss=f"{percent} %"), publish=more),
        )
    yield Kind(name="loss5-qos1-nagle", loss=True, seconds=20.0, values=pair(nagle=True, near=link(loss="5 %")))
    yield Kind(
        name="loss5-10kB-qos2",
        loss=True,
        seconds=20.0,
        values=pair(qos=2, near=link(loss="5 %"), publish={"payload": "10 kB", "rate": "5 /s"}),
    )
    yield Kind(
        name="burst-loss",
        loss=True,
        seconds=20.0,
        values=pair(
            near=link(
                burst_loss={"good_to_bad": "0.5 %", "bad_to_good": "30 %", "loss_good": "0.1 %", "loss_bad": "80 %"}
            )
        ),
    )
    yield Kind(
        name="bit-errors",
        loss=True,
        seconds=20.0,
        values=pair(
            near=link(
                bit_errors={
                    "good_to_bad": "0.001 %",
                    "bad_to_bad": "95 %",
                    "error_good": "0.0002 %",
                    "error_bad": "20 %",
                }
            )
        ),
    )
    yield Kind(
        name="loss-at-entry",
        loss=True,
        seconds=20.0,
        values=pair(near=link(rate="300 kbit/s", loss="5 %", loss_at="entry")),
    )
    yield Kind(name="duplicates", values=pair(near=link(duplicate="10 %")))
    yield Kind(name="corruption", loss=True, seconds=20.0, values=pair(near=link(corrupt="3 %")))
    yield Kind(name="reordering", values=pair(near=link(reorder={"probability": "20 %", "gap": 3})))
    # Messages every 23 ms over 20 ms of delay: what overtakes does not come beside what it overtakes.
    yield Kind(
        name="reordering-apart",
        values=pair(
            near=link(reorder={"probability": "20 %", "gap": 3}), publish={"rate": None, "interval": "23 ms"}
        ),
    )
    outage = {"good_to_bad": "0.4 %", "bad_to_good": "3 %", "loss_bad": "100 %"}
    yield Kind(
        name="outages-persistent-session",
        loss=True,
        seconds=30.0,
        values=pair(near=link(burst_loss=outage), publish=SLOW, mqtt={"clean_session": False, "keep_alive": "5 s"})
        | {"sim": {}},
    )


def _placements() -> Iterator[Kind]:
    narrow = {"count": 9, "interval": "5 s", "qos": 1}
    yield Kind(name="crowd-narrowband-qos0", seconds=60.0, 
               values=crowd("nato-narrowband", qos=0, placement="egress-at-broker"))
    yield Kind(name="crowd-at-broker", seconds=20.0, values=crowd("satcom", **narrow, placement="egress-at-broker"))
    yield Kind(name="crowd-both", seconds=20.0, values=crowd("satcom", **narrow, placement="both"))
    yield Kind(name="crowd-split", seconds=20.0, values=crowd("satcom", **narrow, placement="split"))
    yield Kind(name="crowd-shared-medium", seconds=20.0, values=crowd("satcom", **narrow, placement="shared-medium"))
    yield Kind(name="trunk-behind-switch", values=_trunk(link="shared"))
    yield Kind(name="trunk-links-of-their-own", values=_trunk(link="each"))
    yield Kind(name="subscriber-on-the-broker's-host", values=_on_broker("subscriber"))
    yield Kind(name="publisher-on-the-broker's-host", values=_on_broker("publisher"))
    yield Kind(name="both-on-hosts-by-count", values=_by_count())
    yield Kind(name="links-of-their-own-without-count", values=_each())
    adjusted = {"up": {"delay": "60 ms"}, "down": {"rate": "400 kbit/s"}}
    yield Kind(name="model-adjusted", seconds=20.0, values=crowd("lte", **narrow, link="shared", **adjusted))
    yield Kind(name="network-direct", values=_without_network("direct"))
    yield Kind(name="network-loopback", values=_without_network("loopback"))
    yield Kind(name="two-brokers", values=_two_brokers())


def _two_brokers() -> Values:
    """A pair of clients on one host for each of two brokers, which differ."""
    servers = [
        {"name": "east", "nagle": False},
        # 18 messages a second have room in a window of one, so that the queue of the west fills and overflows.
        {"name": "west", "nagle": False, "host": "far", "max_inflight": 1, "max_queued": 100, "persistence": False},
    ]
    groups = [
        {"name": f"{role}-{server['name']}", "host": "field", "connects_to": server["name"], **tcp, **part}
        for server, tcp in zip(servers, [{"nagle": False}, {"transport": {"tcp": {"nagle": False}}}], strict=True)
        for role, part in (
            ("publisher", {"publish": {"topic": "t", "qos": 1, "payload": "100 B", "rate": "50 /s"}}),
            ("subscriber", {"subscribe": [{"filter": "t", "qos": 1}]}),
        )
    ]
    networks = [
        {"between": ["field", "east"], **both_ways(delay=NEAR)},
        {"between": ["field", "far"], **both_ways(delay=FAR)},
    ]
    return {"servers": servers, "networks": networks, "groups": groups}


def _trunk(*, link: str) -> Values:
    return {
        "trunk": both_ways(rate="500 kbit/s", delay="10 ms"),
        "hosts": {"field": {"count": 4}},
        "networks": [{"between": ["field", "broker"], "link": link, **both_ways(rate="200 kbit/s", delay=NEAR)}],
        "groups": [
            {
                "name": "publishers",
                "host": "field",
                "count": 4,
                "publish": {"topic": "t/{client}", "qos": 1, "payload": "300 B", "rate": "5 /s"},
            },
            {"name": "subscribers", "host": "field", "count": 4, "subscribe": [{"filter": "t/{client}", "qos": 1}]},
        ],
    }


def _on_broker(name: str) -> Values:
    values = pair()
    for group in values["groups"]:
        if group["name"] == name:
            group["host"] = "broker"
    values["networks"] = [network for network in values["networks"] if name not in network["between"]]
    return values


def _by_count() -> Values:
    return {
        "hosts": {"field": {"count": 3}},
        "networks": [{"between": ["field", "broker"], "link": "each", **both_ways(delay=NEAR)}],
        "groups": [
            {
                "name": "publishers",
                "host": "field",
                "count": 3,
                "connect_over": "300 ms",
                "publish": {"topic": "t", "qos": 1, "payload": "100 B", "rate": "10 /s", "start_phase": "even"},
            },
            {"name": "subscribers", "host": "field", "count": 3, "subscribe": [{"filter": "t", "qos": 1}]},
        ],
    }


def _each() -> Values:
    """Every client behind links of its own, without a count of hosts."""
    return {
        "networks": [
            {"between": ["field", "broker"], "link": "each", **both_ways(rate="60 kbit/s", delay=NEAR)},
        ],
        "groups": [
            {
                "name": "publishers",
                "host": "field",
                "count": 6,
                "publish": {"topic": "t/{client}", "qos": 1, "payload": "300 B", "rate": "8 /s"},
            },
            {"name": "subscribers", "host": "field", "count": 6, "subscribe": [{"filter": "t/{client}", "qos": 1}]},
        ],
    }


def _without_network(network: str) -> Values:
    """Where no network delays anything; what remains is the time of the machine."""
    values = pair()
    values["network"] = network
    values["networks"] = []
    if network == "loopback":
        for group in values["groups"]:
            group["host"] = "broker"
    return values


def _windows() -> Iterator[Kind]:
    closed = {"arrival": "back-to-back", "rate": None, "payload": "200 B"}
    yield Kind(
        name="closed-loop-qos1-window20",
        values=pair(
            near=both_ways(delay="5 ms", rate="10 Mbit/s"),
            far=both_ways(delay="5 ms", rate="10 Mbit/s"),
            publish=closed,
        ),
    )
    yield Kind(name="closed-loop-qos2-window1", values=pair(qos=2, publish=closed, mqtt={"max_inflight": 1}))
    yield Kind(name="closed-loop-qos1-window1-nagle", values=pair(nagle=True, publish=closed, mqtt={"max_inflight": 1}))
    yield Kind(
        name="inflight1-qos1",
        values=pair(
            publish={"rate": "10 /s", "arrival": "poisson"}, mqtt={"max_inflight": 1}, broker={"max_inflight": 1}
        ),
    )
    yield Kind(
        name="inflight1000-qos1-nagle",
        values=pair(
            nagle=True,
            near=both_ways(delay="50 ms"),
            far=both_ways(delay="57.3 ms"),
            publish={"rate": "200 /s"},
            mqtt={"max_inflight": 1000},
            broker={"max_inflight": 1000},
        ),
    )
    yield Kind(
        name="inflight20-qos1-filled",
        values=pair(near=both_ways(delay="50 ms"), far=both_ways(delay="50 ms"), publish={"rate": "190 /s"}),
    )
    yield Kind(
        name="receive-maximum2-qos2",
        seconds=30.0,
        values=pair(
            qos=2,
            near=both_ways(delay="80 ms"),
            far=both_ways(delay="80 ms"),
            mqtt={"version": "5", "receive_maximum": 2, "session_expiry": "60 s"},
            publish={"rate": "6 /s", "arrival": "poisson"},
        ),
    )
    aliased = pair(
        mqtt={"version": "5", "topic_aliases": 8, "topic_alias_maximum": 2},
        broker={"topic_alias_maximum": 3},
        publish={"topic": "t/{topic}", "topics": 5},
    )
    aliased["groups"][1]["subscribe"] = [{"filter": "t/#", "qos": 1}]
    yield Kind(name="topic-aliases", values=aliased)
    yield Kind(
        name="message-properties",
        values=pair(
            mqtt={"version": "5"},
            far=both_ways(delay=FAR, rate="100 kbit/s"),
            publish={
                "user_properties": [["unit", "mbar"], ["site", "roof"], ["site", "north"]],
                "content_type": "application/json",
                "payload_format": "utf-8",
                "response_topic": "answers/{client}",
                "correlation_data": "{group}-{client}",
            },
        ),
    )
    yield Kind(
        name="broker-queue-overflows",
        values=pair(
            publish={"payload": "500 B", "rate": "10 /s"},
            far=both_ways(delay=FAR, rate="20 kbit/s"),
            broker={"max_inflight": 2, "max_queued": 5},
        ),
    )
    yield Kind(
        name="client-queue-overflows",
        values=pair(publish={"rate": "60 /s"}, mqtt={"max_inflight": 2, "max_queued": 10}),
    )


def _stacks() -> Iterator[Kind]:
    large: Values = {"payload": "20 kB", "rate": "5 /s"}
    yield Kind(
        name="buffers-4kB",
        values=pair(
            near=both_ways(delay="5 ms"),
            far=both_ways(delay="5 ms"),
            publish=large,
            hosts=tcp(send_buffer="4 kB", receive_buffer="4 kB"),
        ),
    )
    yield Kind(name="initial-window-2-mss-536", values=pair(publish=large, hosts=tcp(initial_window=2, mss="536 B")))
    yield Kind(name="mtu-576", values=pair(publish={"payload": "3 kB", "rate": "20 /s"}, mtu="576 B"))
    yield Kind(
        name="newreno-without-sack",
        loss=True,
        seconds=20.0,
        values=pair(near=link(loss="3 %"), publish=SLOW, hosts=tcp(congestion_control="reno", sack=False)),
    )
    yield Kind(
        name="no-timestamps-no-scaling",
        loss=True,
        seconds=20.0,
        values=pair(near=link(loss="3 %"), publish=SLOW, hosts=tcp(timestamps=False, window_scaling=False)),
    )
    yield Kind(
        name="rto-min-1s-no-tail-loss-probe",
        loss=True,
        seconds=20.0,
        values=pair(
            near=link(loss="3 %"), publish=SLOW, hosts=tcp(rto_min="1 s", rto_max="30 s", tail_loss_probe=False)
        ),
    )
    yield Kind(
        name="acknowledged-at-once", values=pair(nagle=True, publish=NAGLE_INTERVAL, hosts=tcp(delayed_ack=False))
    )
    yield Kind(
        name="acknowledged-within-10ms",
        values=pair(nagle=True, publish=NAGLE_INTERVAL, hosts=tcp(delayed_ack_max="10 ms")),
    )
    yield Kind(
        name="rto-max-1.2s",
        loss=True,
        seconds=20.0,
        values=pair(near=link(loss="20 %"), publish={"rate": "2 /s"}, hosts=tcp(rto_min="1 s", rto_max="1.2 s")),
    )
    yield Kind(name="syn-retries", loss=True, values=_connecting({"syn_retries": 1, "syn_linear_retries": 0}))
    yield Kind(name="syn-linear", loss=True, values=_connecting({"syn_linear_retries": 1}))
    yield Kind(name="syn-linux-2021", loss=True, values=_connecting({"profile": "linux-2021"}))
    yield Kind(name="profile-linux-2021", values=pair(hosts=tcp(profile="linux-2021"), nagle=True))


def _connecting(stack: Values) -> Values:
    """Twelve clients whose SYNs are lost as often as they arrive; what is compared is how long they take to connect."""
    return {
        "hosts": {"field": {"tcp": stack}, "broker": {"tcp": stack}},
        "networks": [{"between": ["field", "broker"], **link(loss="30 %")}],
        "groups": [
            {
                "name": "sensors",
                "host": "field",
                "count": 12,
                "publish": {"topic": "s/{client}", "qos": 0, "payload": "100 B", "rate": "1 /s"},
                "reconnect": {"initial": "300 ms", "maximum": "400 ms", "jitter": "5 %"},
            },
            {"name": "desk", "host": "broker", "subscribe": [{"filter": "s/#", "qos": 0}]},
        ],
    }


def _traffic() -> Iterator[Kind]:
    many = {"networks": [{"between": ["field", "broker"], **link()}]}
    yield Kind(
        name="fan-in-40",
        values=many
        | {
            "groups": [
                {
                    "name": "sensors",
                    "host": "field",
                    "count": 40,
                    "publish": {"topic": "s/{client}", "qos": 1, "payload": "100 B", "rate": "2 /s"},
                },
                {"name": "desk", "host": "field", "subscribe": [{"filter": "s/#", "qos": 1}]},
            ]
        },
    )
    yield Kind(
        name="fan-out-40",
        values=many
        | {
            "groups": [
                {
                    "name": "source",
                    "host": "field",
                    "publish": {"topic": "s", "qos": 1, "payload": "100 B", "rate": "4 /s"},
                },
                {"name": "desks", "host": "field", "count": 40, "subscribe": [{"filter": "s", "qos": 1}]},
            ]
        },
    )
    yield Kind(
        name="topics-and-wild-cards",
        values=many
        | {
            "groups": [
                {
                    "name": "sensors",
                    "host": "field",
                    "count": 5,
                    "publish": {
                        "topic": "s/{client}/{topic}",
                        "topics": 8,
                        "qos": 0,
                        "payload": "100 B",
                        "rate": "10 /s",
                    },
                },
                {"name": "one-level", "host": "field", "subscribe": [{"filter": "s/+/3", "qos": 0}]},
                {"name": "all-levels", "host": "field", "subscribe": [{"filter": "s/#", "qos": 0}]},
            ]
        },
    )
    yield Kind(
        name="shared-subscription",
        values=many
        | {
            "mqtt": {"version": "5"},
            "groups": [
                {
                    "name": "source",
                    "host": "field",
                    "publish": {"topic": "s", "qos": 1, "payload": "100 B", "rate": "30 /s"},
                },
                {"name": "workers", "host": "field", "count": 3, "subscribe": [{"filter": "$share/pool/s", "qos": 1}]},
            ],
        },
    )
    will = {"topic": "gone", "payload": "sensor lost", "qos": 1, "retain": True}
    yield Kind(name="retained-and-will", values=pair(publish={"retain": True}, mqtt={"will": will}))
    yield Kind(
        name="relay-round-trip",
        values=many
        | {
            "groups": [
                {
                    "name": "sender",
                    "host": "field",
                    "publish": {"topic": "ping", "qos": 1, "payload": "1 kB", "rate": "10 /s"},
                    "subscribe": [{"filter": "ping_back", "qos": 1}],
                },
                {
                    "name": "relay",
                    "host": "field",
                    "subscribe": [{"filter": "ping", "qos": 1}],
                    "relay": {"suffix": "_back", "qos": 1},
                },
            ]
        },
    )
    yield Kind(name="poisson", values=pair(publish={"arrival": "poisson"}))
    yield Kind(
        name="bursts-with-gaps",
        values=pair(
            publish={"arrival": "burst", "rate": None, "burst": {"size": 10, "every": "500 ms", "gap": "3 ms"}}
        ),
    )
    yield Kind(name="payload-gps", values=pair(publish={"payload": "gps", "start_phase": "synchronised"}))
    yield Kind(
        name="payload-image",
        seconds=20.0,
        values=pair(near=link(rate="2 Mbit/s"), publish={"payload": "image", "rate": None, "interval": "2 s"}),
    )
    yield Kind(
        name="payload-random", values=pair(publish={"payload": {"kind": "random", "size": "1 kB"}, "messages": 300})
    )
    yield Kind(
        name="mqtt-3.1-with-credentials",
        values=pair(
            # What is acknowledged after 120 ms has been repeated after 107, in no instant of another message.
            near=both_ways(delay="60 ms"),
            mqtt={
                "version": "3.1",
                "retry": "107 ms",
                "client_id": "c-{client}-{group}",
                "username": "u",
                "password": "p",
            }
        ),
    )
    yield Kind(
        name="keep-alive-pings",
        seconds=20.0,
        values=pair(mqtt={"keep_alive": "1 s"}, publish={"rate": None, "interval": "4.3 s"}),
    )
    # At QoS 0 a publisher hears nothing, and asks although it sends.
    yield Kind(
        name="keep-alive-by-silence",
        values=pair(
            mqtt={"keep_alive": "1 s", "ping": "silence"}, publish={"qos": 0, "rate": None, "interval": "430 ms"}
        ),
    )
    yield Kind(name="reconnects", loss=True, seconds=30.0, values=_reconnecting())
    yield Kind(name="taken-over", values=_taken_over(RIVALS, mqtt={"clean_session": False}))
    yield Kind(name="taken-over-clean", values=_taken_over(RIVALS))
    yield Kind(name="taken-over-for-good", values=_taken_over({"enabled": False}))
    # TCP and CONNACK take some 110 ms: attempts fail when the broker has a session for them, and the waits grow.
    slow = {"initial": "100 ms", "maximum": "150 ms", "timeout": "110 ms"}
    jittery = both_ways(delay=FAR, jitter="4 ms")
    yield Kind(name="taken-over-slowly", values=_taken_over(slow, mqtt={"clean_session": False}, far=jittery))
    # Nobody is there for longer than the session lasts, by whatever second the broker looks.
    absent = {"initial": "3 s", "maximum": "4 s", "timeout": "116 ms"}
    yield Kind(
        name="taken-over-expiring",
        seconds=30.0,
        values=_taken_over(
            absent, mqtt={"version": "5", "clean_session": False, "session_expiry": "1 s"}, far=jittery
        ),
    )


def _taken_over(reconnect: Values, mqtt: Values | None = None, far: Values | None = None) -> Values:
    """Two subscribers with one client identifier: each ends the other's connection ([MQTT-3.1.4-2]), and comes again.

    The broker publishes the will of the one that it ended where the session ends with that.
    """
    will = {"topic": "gone", "payload": "taken over", "qos": 1, "retain": True}
    values = pair(far=far)
    # It has its subscription before the first one is there.
    values["networks"].append({"between": ["other", "broker"], **both_ways(delay="10 ms")})
    publisher, subscriber = values["groups"]
    one = subscriber | {
        "subscribe": [{"filter": "t", "qos": 1}, {"filter": "gone", "qos": 1}],
        "mqtt": {"client_id": "one", "will": will} | (mqtt or {}),
        "reconnect": reconnect,
    }
    other = one | {"name": "other", "host": "other"}
    return values | {"groups": [publisher, one, other]}


def _reconnecting() -> Values:
    outage = {"good_to_bad": "0.4 %", "bad_to_good": "3 %", "loss_bad": "100 %"}
    values = pair(
        near=link(burst_loss=outage),
        publish=SLOW,
        mqtt={"keep_alive": "5 s", "clean_session": True},
        broker={"persistence": True},
    )
    again = {"enabled": True, "initial": "500 ms", "maximum": "4 s", "jitter": "20 %", "timeout": "10 s"}
    values["groups"] = [group | {"reconnect": again, "late_after": "1 s"} for group in values["groups"]]
    return values


def over(transport: Any, values: Values) -> Values:
    """The same clients over another transport, which has its nagle in a table of its own."""
    groups = []
    for group in values["groups"]:
        nagle = group.get("nagle", True)
        rest = {name: value for name, value in group.items() if name != "nagle"}
        groups.append(rest | {"transport": transport | {"tcp": {"nagle": nagle}}})
    return values | {"groups": groups}


def _transports() -> Iterator[Kind]:
    websocket = {"websocket": {"path": "/mqtt"}}
    yield Kind(name="websocket-qos0", values=over(websocket, pair(qos=0)))
    yield Kind(name="websocket-qos2", values=over(websocket, pair(qos=2)))
    yield Kind(name="websocket-rate-20kB", values=over(websocket, pair(near=link(rate="20 kB/s"), publish=SLOW)))
    yield Kind(
        name="websocket-loss3-qos1", loss=True, seconds=20.0,
        values=over(websocket, pair(near=link(loss="3 %"), publish=SLOW)),
    )
    yield Kind(name="websocket-qos1-nagle", values=over(websocket, pair(qos=1, nagle=True, publish=NAGLE_INTERVAL)))
    yield Kind(
        name="websocket-large",
        seconds=20.0,
        values=over({"websocket": {"path": "/a/longer/resource"}}, pair(publish={"payload": "5 kB", "rate": "10 /s"})),
    )
    for version in ("1.2", "1.3"):
        tls = {"tls": {"version": version, "client_certificate": version == "1.2"}}
        yield Kind(name=f"tls{version}-qos1", values=over(tls, pair(qos=1)))
        yield Kind(name=f"tls{version}-large", values=over(tls, pair(publish={"payload": "20 kB", "rate": "10 /s"})))
    plain: Values = {"tls": {}}
    yield Kind(name="tls1.3-qos1-nagle", values=over(plain, pair(qos=1, nagle=True, publish=NAGLE_INTERVAL)))
    yield Kind(
        name="tls1.3-loss3-qos1", loss=True, seconds=20.0,
        values=over({"tls": {"resumption": False}}, pair(near=link(loss="3 %"), publish=SLOW)),
    )
    yield Kind(
        name="tls1.3-taken-over-without-resumption", values=over({"tls": {"resumption": False}}, _taken_over(RIVALS))
    )
    yield Kind(name="tls1.3-taken-over", values=over(plain, _taken_over(RIVALS)))
    yield Kind(name="tls1.3-rate-20kB", values=over(plain, pair(near=link(rate="20 kB/s"), publish=SLOW)))
    yield Kind(name="wss-qos1", values=over({"tls": {}, "websocket": {}}, pair(qos=1)))


def _jittered(exact: Iterable[Kind]) -> Iterator[Kind]:
    """Kinds whose simulated runs keep step with themselves, again over links that vary by a little.

    Cycles of Nagle's algorithm repeat to the nanosecond where neither hosts nor links ever vary, and stay at the phase
    at which they began. A live run drifts through all phases. Where jitter makes both drift, both must agree.
    """
    for kind in exact:
        if kind.name in CYCLES:
            networks = [
                network | {way: network.get(way, {}) | {"jitter": "0.3 ms"} for way in ("up", "down")}
                for network in kind.values["networks"]
            ]
            yield replace(
                kind, name=f"{kind.name}-jittered", seconds=60.0, values=kind.values | {"networks": networks}
            )


def kinds() -> list[Kind]:
    """All of them, in the order of the results' table."""
    exact = [
        *_quality_of_service(),
        *_delays(),
        *_rates(),
        *_loss(),
        *_placements(),
        *_windows(),
        *_stacks(),
        *_traffic(),
        *_transports(),
    ]
    others = [
        Kind(name=name, values=values, loss=loss, seconds=seconds)
        for name, values, loss, seconds in (*mqtt_sn_kinds.described(), *zeromq_kinds.described())
    ]
    traced = [
        Kind(name=name, values=values, loss=loss, seconds=seconds, **more)
        for name, values, loss, seconds, more in trace_kinds.described()
    ]
    return [*exact, *_jittered(exact), *others, *traced]


CYCLES = (
    "qos1-nagle",
    "tls1.3-qos1-nagle",
    "coincidence-qos1-nagle",
    "acknowledged-at-once",
    "acknowledged-within-10ms",
    "profile-linux-2021",
    "topics-and-wild-cards",
    "shared-subscription",
)


# What `make bench` repeats: one or two of each family, the shortest.
SAMPLE = (
    "qos0",
    "qos1-nagle",
    "qos2",
    "jitter-normal",
    "rate-20kB",
    "loss5-qos1",
    "crowd-split",
    "closed-loop-qos1-window20",
    "mtu-576",
    "fan-out-40",
)
