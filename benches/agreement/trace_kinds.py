"""The kinds of scenario whose link follows a trace of mqttlab; see ``kinds.py``, which has the others.

Behind each trace stands one publisher, and its subscriber behind a link without one. Time 0 of a trace is that of the
measurement, and what a trace is named after may come late in it: the slow ones share one run, in which each has
clients and links of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Values = dict[str, Any]
#: Name, values, whether there is loss, seconds that are measured, and what else a kind has.
Described = tuple[str, Values, bool, float, Values]
SECONDS = 180.0
"""Twelve handovers of Starlink and five of LTE each way; the tunnel from 70 to 115 s; a minute in each coverage level;
a shower from 64 s on that takes the link away from 136 to 166 s."""
TOGETHER: dict[str, Values] = {
    "starlink": {"rate": "20 /s", "payload": "100 B"},
    "lte-drive": {"rate": "20 /s", "payload": "100 B"},
    "train-tunnel": {"rate": "5 /s", "payload": "100 B"},
    # At the last level 469 bit/s are left, so that a message and its acknowledgements take 3 s of 5.
    "nb-iot-coverage": {"rate": "0.2 /s", "payload": "20 B"},
    "rain-fade": {"rate": "10 /s", "payload": "1 kB"},
}
LOSSY = ("starlink", "train-tunnel")


FAR: Values = {"up": {"delay": "27.3 ms"}, "down": {"delay": "27.3 ms"}}


def alone(trace: str) -> Values:
    """A publisher whose link follows the trace, in each direction its own."""
    return {
        "networks": [
            {"between": ["publisher", "broker"], "trace": trace},
            {"between": ["subscriber", "broker"], **FAR},
        ],
        "groups": [
            {"name": "publisher", "host": "publisher",
             "publish": {"topic": "t", "qos": 1, "payload": "100 B", "rate": "20 /s"}},
            {"name": "subscriber", "host": "subscriber", "subscribe": [{"filter": "t", "qos": 1}]},
        ],
    }


def together(publishing: dict[str, Values]) -> Values:
    """The same for several traces."""
    networks: list[Values] = [{"between": [name, "broker"], "trace": name} for name in publishing]
    groups: list[Values] = []
    for name, publish in publishing.items():
        topic = f"flow/{name}"
        groups += [
            {"name": name, "host": name, "publish": {"topic": topic, "qos": 1, **publish}},
            {"name": f"{name}-reader", "host": "subscriber", "subscribe": [{"filter": topic, "qos": 1}]},
        ]
    return {"networks": [*networks, {"between": ["subscriber", "broker"], **FAR}], "groups": groups}


def described() -> Iterator[Described]:
    """All of them."""
    # A quarter of its length: what others leave of the channel changes every 0.2 s.
    yield "trace-wifi-busy", alone("wifi-busy"), True, 15.0, {}
    for name in TOGETHER:
        yield f"trace-{name}", together(TOGETHER), name in LOSSY, SECONDS, {"run": "traces", "flow": f"flow/{name}"}
