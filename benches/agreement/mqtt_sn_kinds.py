"""The kinds of scenario with MQTT-SN clients behind a gateway; see ``kinds.py``, which has the others.

Sensors reach the gateway over a network that each kind turns; the gateway reaches the broker over a fast one, and an
MQTT subscriber stands behind a third. Kinds named ``down`` have subscribers behind the gateway, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Values = dict[str, Any]
#: Name, values, whether there is loss, seconds that are measured.
Described = tuple[str, Values, bool, float]


def behind_a_gateway(
    *,
    air: Values | None = None,
    gateway: Values | None = None,
    session: Values | None = None,
    publish: Values | None = None,
    count: int = 2,
    down: Values | None = None,
) -> Values:
    """Sensors behind a gateway, an MQTT subscriber at the broker, and with ``down`` a subscriber behind the gateway."""
    way = {"delay": "20 ms"} | (air or {})
    talk = {"retry": "1 s", "retries": 20, "keep_alive": "60 s"}
    publishing = {"topic": "s/{client}", "qos": 1, "payload": "60 B", "interval": "200 ms"} | (publish or {})
    values: Values = {
        "servers": [
            {"name": "broker", "host": "broker"},
            {"name": "gateway", "role": "gateway", "host": "gateway", "gateway": talk | (gateway or {})},
        ],
        "networks": [
            {"between": ["field", "gateway"], "up": way, "down": way},
            {"between": ["gateway", "broker"], "up": {"delay": "3 ms"}, "down": {"delay": "3 ms"}},
            {"between": ["desk", "broker"], "up": {"delay": "5 ms"}, "down": {"delay": "5 ms"}},
        ],
        "groups": [
            {
                "name": "sensors", "host": "field", "count": count, "connects_to": "gateway", "protocol": "mqtt-sn",
                "mqtt_sn": talk | (session or {}), "publish": publishing,
            },
            {
                "name": "desk", "host": "desk", "connects_to": "broker", "nagle": False,
                "subscribe": [{"filter": "#", "qos": publishing["qos"]}],
            },
        ],
    }
    if down is not None:
        values["groups"].append({
            "name": "down", "host": "field", "connects_to": "gateway", "protocol": "mqtt-sn",
            "mqtt_sn": talk | down, "subscribe": [{"filter": "s/#", "qos": publishing["qos"]}],
        })
    return values


LOSSY: Values = {"delay": "20 ms", "loss": "10 %"}
SLEEPING: Values = {"sleep": {"duration": "10 s", "wake_every": "2 s", "linger": "200 ms"}}


def described() -> Iterator[Described]:
    """All of them."""
    make: Callable[..., Values] = behind_a_gateway
    yield "sn-qos0", make(publish={"qos": 0}), False, 10.0
    yield "sn-qos1", make(), False, 10.0
    yield "sn-qos2", make(publish={"qos": 2}), False, 10.0
    yield "sn-without-connection", make(
        count=1, session={"without_connection": True}, publish={"topic": "aa", "qos": 0}), False, 10.0
    yield "sn-aggregating", make(gateway={"mode": "aggregating"}, count=8), False, 10.0
    yield "sn-loss10-qos0", make(air=LOSSY, publish={"qos": 0}), True, 20.0
    yield "sn-loss10-qos1", make(air=LOSSY), True, 20.0
    yield "sn-loss10-aggregating", make(air=LOSSY, gateway={"mode": "aggregating"}), True, 20.0
    yield "sn-slow-air", make(
        air={"delay": "20 ms", "rate": "20 kbit/s"}, publish={"interval": "400 ms"}), False, 10.0
    yield "sn-short-topics", make(count=1, publish={"topic": "aa"}), False, 10.0
    yield "sn-down-qos1", make(down={}), False, 10.0
    # What is silent for a second asks whether the other is there; so does an aggregating gateway of its broker.
    yield "sn-keep-alive", make(session={"keep_alive": "1 s"}, publish={"interval": "4.3 s"}), False, 20.0
    yield "sn-keep-alive-aggregating", make(
        gateway={"mode": "aggregating", "keep_alive": "1 s"}, publish={"interval": "4.3 s"}), False, 20.0
    # Two transmissions, of which one or both are lost in half of the cases.
    yield "sn-loss30-gives-up", make(
        air={"delay": "20 ms", "loss": "30 %"}, session={"retry": "300 ms", "retries": 1},
        gateway={"retry": "300 ms", "retries": 1}, publish={"interval": "1 s"}, down={}), True, 20.0
    yield "sn-down-asleep", make(down=SLEEPING), False, 20.0
