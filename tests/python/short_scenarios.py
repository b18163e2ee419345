"""Scenarios of many kinds, as short as shows the kind, with the defaults that a user has."""

from __future__ import annotations

from typing import Any

Values = dict[str, Any]
LINE: Values = {"rate": "10 Mbit/s", "delay": "5 ms"}


def scenario(
    qos: int = 1, *, payload: str = "100 B", rate: str = "40 /s", publish: Values | None = None,
    hosts: tuple[str, str] = ("field", "field"), up: Values | None = None, down: Values | None = None,
    link: Values | None = None, count: int = 1, topic: str = "t", filters: list[str] | None = None,
    publisher: Values | None = None, subscriber: Values | None = None, **changes: Any,
) -> Values:
    """Publishers and subscribers on ``hosts``, each joined to the broker's; ``changes`` replace whole parts."""
    when = {} if publish else {"rate": rate}
    line = {**LINE, **(link or {})}
    values: Values = {
        "name": "kind", "backend": "sim", "phases": {"warm_up": "100 ms", "duration": "1 s", "cool_down": "20 s"},
        "groups": [
            {"name": "publishers", "host": hosts[0], "count": count, **(publisher or {}),
             "publish": {"topic": topic, "qos": qos, "payload": payload, **when, **(publish or {})}},
            {"name": "subscribers", "host": hosts[1],
             "subscribe": [{"filter": name, "qos": qos} for name in filters or ["#"]], **(subscriber or {})},
        ],
    }
    joined = [name for name in dict.fromkeys(hosts) if name != "broker"]
    if changes.get("network", "emulated") == "emulated" and "radio" not in changes:
        values["networks"] = [{"between": [name, "broker"], "up": {**line, **(up or {})},
                               "down": {**line, **(down or {})}} for name in joined]
    return {**values, **changes}


def model(name: str, placement: str | None = None, **more: Any) -> Values:
    """A named network model under a placement."""
    network = {"between": ["field", "broker"], "model": name, **({"placement": placement} if placement else {})}
    return scenario(**more, networks=[network])


def relay(*, nagle: bool, payload: str = "100 B", qos: int = 1, host: str = "laptop", **changes: Any) -> Values:
    """schuhmacher2018: a message goes to a relay, which runs on ``host``, and comes back."""
    return {
        "name": "relay", "backend": "sim", "phases": {"duration": "1 s", "cool_down": "5 s"},
        "broker": {"nagle": nagle},
        "networks": [{"between": ["laptop", "broker"], "up": {"delay": "100 us"}, "down": {"delay": "100 us"}}],
        "groups": [
            {"name": "client1", "host": "laptop", "nagle": nagle,
             "publish": {"topic": "roundtrip", "qos": qos, "payload": payload, "rate": "50 /s"},
             "subscribe": [{"filter": "roundtrip_2", "qos": qos}]},
            {"name": "client2", "host": host, "nagle": nagle, "subscribe": [{"filter": "roundtrip", "qos": qos}],
             "relay": {"suffix": "_2", "qos": qos}},
        ],
        **changes,
    }


def bloated(delay: str, **up: Any) -> Values:
    """A client that sends 150 kB at once over 1 Mbit/s with a second of buffer, beside a sensor."""
    return {
        "name": "bloated", "phases": {"duration": "4 s", "cool_down": "30 s"},
        "networks": [{"between": ["field", "broker"], "up": {"rate": "1 Mbit/s", "delay": delay, "queue": "1 s", **up},
                      "down": {"delay": delay}, "link": "shared"}],
        "groups": [
            {"name": "camera", "host": "field", "publish": {"topic": "image", "payload": "150 kB", "interval": "2 s"}},
            {"name": "sensor", "host": "field", "publish": {"topic": "value", "payload": "50 B", "interval": "50 ms"}},
            {"name": "office", "host": "broker", "subscribe": ["image", "value"]},
        ],
    }


OUTAGES = {"burst_loss": {"good_to_bad": "2 %", "bad_to_good": "10 %"}}
PERSISTENT = {"clean_session": False, "keep_alive": "1 s"}
RADIO = {"standard": "b-11"}
PLACEMENTS: dict[str, tuple[str, str]] = {
    "both on one other host": ("field", "field"),
    "subscriber on the broker's host": ("field", "broker"),
    "publisher on the broker's host": ("broker", "field"),
    "both on the broker's host": ("broker", "broker"),
    "three hosts": ("field", "far"),
}
KINDS: dict[str, Values] = {
    **{f"QoS {qos}, MQTT {version}": scenario(qos, mqtt={"version": version})
       for qos in (0, 1, 2) for version in ("3.1.1", "5")},
    **{f"QoS {qos}, Nagle off": scenario(
        qos, rate="100 /s", publisher={"nagle": False}, subscriber={"nagle": False}, broker={"nagle": False})
       for qos in (0, 1, 2)},
    **{f"QoS {qos}, Nagle on, often": scenario(qos, rate="300 /s") for qos in (0, 1, 2)},
    **{f"loss 5 %, QoS {qos}": scenario(qos, link={"loss": "5 %"}) for qos in (0, 1, 2)},
    "corruption": scenario(2, link={"corrupt": "5 %"}),
    "bit errors": scenario(1, payload="1 kB", link={"bit_errors": {"good_to_bad": "0.001 %", "bad_to_bad": "50 %"}}),
    "duplication": scenario(2, link={"duplicate": "10 %"}),
    "jitter that reorders": scenario(1, rate="200 /s", link={"jitter": "4 ms", "keep_order": False}),
    "a slow link": scenario(1, payload="1 kB", link={"rate": "200 kbit/s"}),
    "a short queue": scenario(1, payload="1 kB", rate="80 /s", link={"rate": "500 kbit/s", "queue": "5 packets"}),
    "bursts of messages": scenario(
        1, publish={"arrival": "burst", "burst": {"size": 20, "every": "300 ms"}}),
    "poisson": scenario(2, publish={"arrival": "poisson", "rate": "50 /s"}),
    "back to back": scenario(1, publish={"arrival": "back-to-back", "messages": 200}),
    "relay, Nagle on": relay(nagle=True),
    "relay, Nagle off": relay(nagle=False),
    "relay, 1 B": relay(nagle=True, payload="1 B"),
    "relay, QoS 2": relay(nagle=False, qos=2),
    "many topics": scenario(1, topic="a/{client}/{topic}", publish={"topics": 20, "rate": "60 /s"}, count=3),
    "wild cards": scenario(1, topic="a/{client}/b", count=3, filters=["a/+/b", "a/1/#"]),
    "overlapping filters": scenario(1, topic="a/{client}/b", count=2, filters=["a/+/b", "a/0/b", "#"]),
    "shared subscription": scenario(1, filters=["$share/pool/t"], mqtt={"version": "5"}, subscriber={"count": 3}),
    "retained": scenario(1, publish={"retain": True, "rate": "40 /s"}),
    "wills": scenario(1, mqtt={**PERSISTENT, "will": {"topic": "t", "payload": "gone", "qos": 1}}, up=OUTAGES),
    "persistent sessions with outages": scenario(1, mqtt=PERSISTENT, up=OUTAGES),
    "outages and payloads without identity": scenario(1, payload="4 B", mqtt=PERSISTENT, up=OUTAGES),
    "radio": scenario(1, radio=RADIO, hosts=("field", "far")),
    "radio, mobile": scenario(1, radio={**RADIO, "mobility": {"speed": ["1 m/s", "2 m/s"]}}, hosts=("field", "far")),
    "radio, subscriber on the broker's host": scenario(1, radio=RADIO, hosts=("field", "broker")),
    "several hosts by count": scenario(1, count=5, topic="{client}"),
    "own links by count": scenario(1, count=4, topic="{client}"),
    "three hosts": scenario(2, hosts=("field", "far")),
    "trunk": scenario(1, trunk={"up": LINE, "down": LINE}),
    "shared medium": model("satcom", "shared-medium"),
    "egress at the broker": model("satcom", "egress-at-broker"),
    **{f"{words}, QoS {qos}": scenario(qos, hosts=where) for words, where in PLACEMENTS.items()
       for qos in (0, 2) if "broker" in where},
    "direct network": scenario(1, network="direct"),
    "direct network, one host": scenario(1, network="direct", hosts=("broker", "broker")),
    "loopback": scenario(2, network="loopback"),
    **{f"payload of {size}": scenario(qos, payload=size, rate=rate)
       for size, rate, qos in (("0 B", "40 /s", 1), ("1 B", "40 /s", 2), ("20 kB", "20 /s", 1), ("100 kB", "5 /s", 1),
                               ("1 MB", "2 /s", 0))},
    "1 MB on the broker's host": scenario(1, payload="1 MB", rate="4 /s", hosts=("broker", "broker")),
    "1 MB to the broker's host": scenario(1, payload="1 MB", rate="2 /s", hosts=("field", "broker")),
    "back to back on the broker's host": scenario(
        0, hosts=("broker", "broker"), publish={"arrival": "back-to-back", "messages": 3000}),
    "in-flight 1": scenario(1, rate="100 /s", mqtt={"max_inflight": 1}, broker={"max_inflight": 1}),
    "in-flight 1000": scenario(2, rate="300 /s", mqtt={"max_inflight": 1000}, broker={"max_inflight": 1000}),
    "receive maximum 2": scenario(2, rate="60 /s", mqtt={"version": "5", "receive_maximum": 2}),
    "delivered at the PUBLISH": scenario(2, mqtt={"deliver_qos2_on": "publish"}),
    "timed repetition": scenario(1, mqtt={"version": "3.1", "retry": "20 ms"}, link={"delay": "15 ms"}),
    "slow broker": scenario(1, rate="200 /s", broker={"service": {"per_packet": "2 ms", "per_copy": "1 ms"}}),
    "many subscribers": scenario(1, subscriber={"count": 20}),
    "many publishers": scenario(0, count=30, topic="{client}"),
}
KINDS["several hosts by count"]["hosts"] = {"field": {"count": 5}}
KINDS["own links by count"]["hosts"] = {"field": {"count": 4}}
KINDS["own links by count"]["networks"][0]["link"] = "each"
for _words in ("several hosts by count", "own links by count"):
    KINDS[_words]["groups"][1]["host"] = "broker"
for _name in ("linux", "netbsd-2005", "microcontroller"):
    KINDS[f"TCP profile {_name}"] = {
        **scenario(1, payload="3 kB", hosts=("field", "far")),
        "hosts": {_host: {"tcp": {"profile": _name}} for _host in ("field", "far", "broker")}}
