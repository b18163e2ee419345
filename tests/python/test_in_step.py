"""Publications whose intervals divide each other: their phase stays the same for a run, and `check` warns of it."""

from __future__ import annotations

from typing import Any

import pytest

from mqttlab.scenario.load import parse
from mqttlab.scenario.unusual import unusual

STEP = """
name = "step"
backend = "sim"
[phases]
duration = "5 min"
cool_down = "30 s"
[[networks]]
between = ["field", "broker"]
link = "shared"
up = { rate = "256 kbit/s", delay = "40 ms" }
down = { delay = "40 ms" }
[[groups]]
name = "cameras"
host = "field"
publish = { topic = "image/{client}", qos = 1, payload = "200 kB", interval = "30 s" }
[[groups]]
name = "alarms"
host = "field"
publish = { topic = "alarm/{client}", qos = 1, payload = "50 B", interval = "2 s" }
[[groups]]
name = "viewer"
host = "broker"
subscribe = [{ filter = "#", qos = 1 }]
"""
DOWN = [("up = { rate = \"256 kbit/s\", ", "up = { "), ("down = { ", "down = { rate = \"256 kbit/s\", "),
        ('name = "viewer"\nhost = "broker"', 'name = "viewer"\nhost = "field"')]
OWN = [('link = "shared"', 'link = "each"')]
ONE_GROUP = [*OWN, ('publish = { topic = "image/{client}", qos = 1, payload = "200 kB", interval = "30 s" }', """
[[groups.publish]]
topic = "image/{client}"
qos = 1
payload = "200 kB"
interval = "30 s"
[[groups.publish]]
topic = "status/{client}"
qos = 1
payload = "50 B"
interval = "2 s"
""")]


@pytest.mark.parametrize(("changes", "place"), [
    ([], ("groups", 1, "publish", "interval")),
    ([('interval = "2 s"', 'rate = "0.5 /s"')], ("groups", 1, "publish", "rate")),
    ([('interval = "30 s"', 'interval = "2 s"'), ("200 kB", "20 kB")], ("groups", 0, "publish", "interval")),
    (DOWN, ("groups", 1, "publish", "interval")),
    (ONE_GROUP, ("groups", 0, "publish", 1, "interval")),
    # Intervals that do not divide each other, arrivals at random, quick messages, many phases, links of one's own.
    ([('interval = "30 s"', 'interval = "31 s"')], None),
    ([('interval = "2 s"', 'interval = "2 s", arrival = "poisson"')], None),
    ([("200 kB", "500 B")], None), ([("256 kbit/s", "100 Mbit/s")], None),
    ([('name = "cameras"', 'name = "cameras"\ncount = 20'), ("200 kB", "20 kB")], None),
    ([*OWN], None),
])
def test_publishers_in_step_on_one_link_are_told(
    changes: list[tuple[str, str]], place: tuple[Any, ...] | None,
) -> None:
    text = STEP
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    said = [(where, words) for where, words in unusual(parse(text, "step")) if "their phase stays the same" in words]
    assert [where for where, _ in said] == ([] if place is None else [place])
    if not changes:
        assert said[0][1].startswith("is 2 s, and the 30 s of `cameras` are a multiple of it: on their link to the "
                                     "server, which a message of `cameras` occupies for 6.48 s")
