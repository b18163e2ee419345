"""How far a simulation depends on what hosts take: the range covers what live runs show."""

from __future__ import annotations

import re
from pathlib import Path

from commands import mqttlab
from mqttlab.cli.sensitivity import drawn

# Reported of live runs of this scenario with Mosquitto 2.0.11 and Linux 6.18, mean latency in ms.
LIVE_MS = (169.0, 181.0)
SCENARIO = """
name = "equal-ways"
backend = "sim"
phases = {{ duration = "10 s", cool_down = "5 s" }}

[[networks]]
between = ["field", "broker"]
up = {{ delay = "50 ms" }}
down = {{ delay = "50 ms" }}

[[groups]]
name = "publisher"
host = "field"
nagle = {nagle}
publish = {{ topic = "t", qos = 1, payload = "100 B", rate = "50 /s" }}

[[groups]]
name = "subscriber"
host = "field"
nagle = {nagle}
subscribe = [{{ filter = "t", qos = 1 }}]
"""


def written(directory: Path, *, nagle: str = "true") -> Path:
    path = directory / "scenario.toml"
    path.write_text(SCENARIO.format(nagle=nagle), encoding="utf-8")
    return path


def checked(path: Path, *words: str) -> tuple[str, float, float]:
    """What the command says, and the range of the mean."""
    done = mqttlab("check", path, "--sensitivity", *words)
    assert done.returncode == 0, done.stderr
    low, high = re.search(r"mean: .* as written, ([0-9.]+) to ([0-9.]+) ms", done.stdout).groups()  # type: ignore[union-attr]
    return done.stdout, float(low), float(high)


def test_with_nagles_algorithm_over_equal_ways_the_range_covers_what_live_runs_show(tmp_path: Path) -> None:
    said, low, high = checked(written(tmp_path))
    assert "  sensitive: " in said
    assert low < sum(LIVE_MS) / 2 < high, said


def test_without_it_a_result_does_not_depend_on_microseconds(tmp_path: Path) -> None:
    said, low, high = checked(written(tmp_path, nagle="false"), "--set", "broker.nagle=false")
    assert "  not sensitive: " in said and 100 <= low <= high < 101, said


def test_draws_are_the_same_for_ever_and_a_few_microseconds_to_a_fifth_of_a_millisecond() -> None:
    assert drawn(0) == drawn(0) != drawn(1)
    for number in range(12):
        assert all(5 <= float(words.removesuffix(" us")) <= 200 for words in drawn(number).values())


def test_nothing_is_simulated_unless_it_is_asked_for(tmp_path: Path) -> None:
    assert "sensitive" not in mqttlab("check", written(tmp_path)).stdout
