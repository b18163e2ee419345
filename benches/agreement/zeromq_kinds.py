"""The kinds of scenario with ZeroMQ clients at a proxy; see ``kinds.py``, which has the others.

Sensors reach the proxy over a network that each kind turns, and two desks stand behind another one. The delays are
long beside what a busy machine is late: a run counts when that is 2 % of the shortest delay or less.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Values = dict[str, Any]
#: Name, values, whether there is loss, seconds that are measured.
Described = tuple[str, Values, bool, float]


def at_a_proxy(*, way: Values | None = None, publish: Values | None = None, count: int = 2) -> Values:
    """Sensors and two desks at a proxy."""
    near = {"delay": "40 ms", "rate": "10 Mbit/s"} | (way or {})
    far = {"delay": "25 ms"}
    return {
        "servers": [{"name": "proxy", "role": "zeromq"}],
        "networks": [
            {"between": ["field", "proxy"], "up": near, "down": near},
            {"between": ["desk", "proxy"], "up": far, "down": far},
        ],
        "groups": [
            {"name": "sensors", "host": "field", "count": count, "protocol": "zeromq",
             "publish": {"topic": "s/{client}", "payload": "60 B", "interval": "50 ms"} | (publish or {})},
            {"name": "desk", "host": "desk", "count": 2, "protocol": "zeromq", "subscribe": ["s/#"]},
        ],
    }


def described() -> Iterator[Described]:
    """All of them."""
    yield "zmq-small", at_a_proxy(), False, 10.0
    yield "zmq-large", at_a_proxy(publish={"payload": "20 kB", "interval": "200 ms"}), False, 10.0
    yield "zmq-loss2", at_a_proxy(way={"loss": "2 %"}), True, 20.0
    yield "zmq-slow", at_a_proxy(way={"rate": "100 kbit/s"}, publish={"interval": "200 ms"}, count=8), False, 10.0
