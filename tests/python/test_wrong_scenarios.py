"""Wrong scenarios: each is refused in one line that names the place and the remedy, and nothing is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mqttlab.scenario import ScenarioError, parse

GOOD = """
name = "good"

[phases]
warm_up = "1 s"
duration = "5 s"

[broker]
kind = "mosquitto"
host = "broker"

[hosts.field]
tcp = { profile = "linux" }

[[networks]]
between = ["field", "broker"]
up = { rate = "250 kbit/s", delay = "50 ms" }
down = { rate = "250 kbit/s", delay = "50 ms" }

[[groups]]
name = "publishers"
host = "field"
count = 3
publish = { topic = "a/{client}", qos = 1, payload = "200 B", interval = "1 s" }

[[groups]]
name = "subscribers"
host = "field"
subscribe = [{ filter = "a/+", qos = 1 }]
"""

# What is replaced by what, where the problem is, and what would be right.
WRONG: list[tuple[str, str, str, str]] = [
    ('duration = "5 s"', 'duration = "5 kg"', "phases.duration", "use one of"),
    ('duration = "5 s"', 'duration = "5"', "phases.duration", "has no unit"),
    ('duration = "5 s"', "duration = 5", "phases.duration", "has no unit"),
    ('duration = "5 s"', 'duration = "-5 s"', "phases.duration", "is negative"),
    ('duration = "5 s"', 'duration = "0 s"', "phases.duration", "longer than 0"),
    ('duration = "5 s"', 'duratoin = "5 s"', "phases.duratoin", "did you mean `duration`?"),
    ('duration = "5 s"', "", "phases.duration", "is missing"),
    ('warm_up = "1 s"', 'warm_up = "soon"', "phases.warm_up", "is not a quantity"),
    ('rate = "250 kbit/s"', 'rate = "0 kbit/s"', "networks[0].up.rate", "between 1 bit/s and 100 Gbit/s"),
    ('rate = "250 kbit/s"', 'rate = "250 kb"', "networks[0].up.rate", "use one of"),
    ('rate = "250 kbit/s"', 'rate = "900 Gbit/s"', "networks[0].up.rate", "out of range"),
    ('delay = "50 ms" }', 'delay = "50 ms", loss = "150 %" }', "networks[0].up.loss", "between 0 and 1"),
    ('delay = "50 ms" }', 'delay = "50 ms", loss = "often" }', "networks[0].up.loss", "1 %"),
    ('delay = "50 ms" }', 'delay = "50 ms", jitter = "1 ms", distribution = "gauss" }',
     "networks[0].up.distribution", "'normal'"),
    ('delay = "50 ms" }', 'delay = "50 ms", distribution = "normal" }', "networks[0].up", "needs a `jitter`"),
    ('delay = "50 ms" }', 'delay = "50 ms", jitter = "1 ms", distribution = "constant" }',
     "networks[0].up", "has no jitter"),
    ('delay = "50 ms" }', 'delay = "50 ms", queue = "many" }', "networks[0].up.queue", "1000 packets"),
    ('delay = "50 ms" }', 'delay = "50 ms", queue = "0 packets" }', "networks[0].up.queue", "greater than or equal"),
    ('delay = "50 ms" }', 'delay = "50 ms", loss = "1 %", burst_loss = { good_to_bad = 0.1, bad_to_good = 0.5 } }',
     "networks[0].up", "exclude each other"),
    ('between = ["field", "broker"]', 'between = ["feld", "broker"]', "groups[0].host", "did you mean"),
    ('between = ["field", "broker"]', 'between = ["field", "brokr"]', "networks[0].between", "must name the broker"),
    ('between = ["field", "broker"]', 'between = ["broker", "broker"]', "networks[0]", "name two hosts"),
    ('between = ["field", "broker"]', 'between = ["field", "broker"]\nmodel = "satcom"',
     "networks[0]", "either `model`"),
    ('between = ["field", "broker"]\nup = { rate = "250 kbit/s", delay = "50 ms" }\n'
     'down = { rate = "250 kbit/s", delay = "50 ms" }',
     'between = ["field", "broker"]\nmodel = "satcomm"', "networks[0].model", "did you mean `satcom`?"),
    ('between = ["field", "broker"]', 'between = ["field", "broker"]\nplacement = "both"',
     "networks[0]", "goes with a `model`"),
    ('kind = "mosquitto"', 'kind = "mosquito"', "broker.kind", "did you mean `mosquitto`?"),
    ('kind = "mosquitto"', 'kind = "external"', "broker.address", "is missing"),
    ('kind = "mosquitto"', 'address = "192.0.2.1"', "broker.address", "external"),
    ('kind = "mosquitto"', "port = 70000", "broker.port", "65535"),
    ('profile = "linux"', 'profile = "linus"', "hosts.field.tcp.profile", "did you mean `linux`?"),
    ('profile = "linux"', 'profile = "linux", mss = "20 B"', "hosts.field.tcp.mss", "greater than or equal"),
    ("[hosts.field]", "[hosts.feild]", "hosts.feild", "did you mean `field`?"),
    ("qos = 1, payload", "qos = 3, payload", "groups[0].publish.qos", "0, 1 or 2"),
    ('topic = "a/{client}"', 'topic = "a/+"', "groups[0].publish", "only subscriptions may have"),
    ('topic = "a/{client}"', 'topic = "a/#"', "groups[0].publish", "only subscriptions may have"),
    ('topic = "a/{client}"', 'topic = ""', "groups[0].publish.topic", "at least 1 character"),
    ('topic = "a/{client}"', 'topic = "a", topics = 10', "groups[0].publish", "{topic}"),
    ('payload = "200 B"', 'payload = "20 MB"', "groups[0].publish.payload.size", "10000000"),
    ('payload = "200 B"', 'payload = "big"', "groups[0].publish.payload", "write a size"),
    ('payload = "200 B"', 'payload = { kind = "file" }', "groups[0].publish.payload", "needs `path`"),
    ('payload = "200 B"', 'payload = { kind = "file", path = "nowhere.bin" }', "payload.path", "not a file"),
    ('interval = "1 s"', 'interval = "1 s", rate = "1 /s"', "groups[0].publish", "either `interval` or `rate`"),
    (', interval = "1 s"', "", "groups[0].publish", "needs either `interval` or `rate`"),
    ('interval = "1 s"', 'interval = "1 s", arrival = "back-to-back"', "groups[0].publish", "back-to-back has no"),
    ('interval = "1 s"', 'arrival = "burst"', "groups[0].publish", "needs `burst`"),
    ('interval = "1 s"', 'rate = "0 /s"', "groups[0].publish.rate", "above 0"),
    ('interval = "1 s"', 'interval = "1 s", start_phase = "sometimes"', "groups[0].publish.start_phase", "'random'"),
    ('filter = "a/+"', 'filter = "a/b+"', "groups[1].subscribe[0]", "stand alone"),
    ('filter = "a/+"', 'filter = "#/a"', "groups[1].subscribe[0]", "last level"),
    ('host = "field"\ncount = 3', 'host = "feild"\ncount = 3', "groups[0].host", "did you mean `field`?"),
    ("count = 3", "count = 0", "groups[0].count", "greater than or equal to 1"),
    ("count = 3", "count = 3\nmqtt = { client_id = 'same' }", "groups[0].mqtt.client_id", "add {client}"),
    ("count = 3", "count = 3\nmqtt = { version = '4' }", "groups[0].mqtt.version", "'3.1.1'"),
    ("count = 3", "count = 3\nmqtt = { max_inflight = 0 }",
     "groups[0].mqtt.max_inflight", "greater than or equal to 1"),
    ('name = "subscribers"', 'name = "publishers"', "groups[1].name", "name of its own"),
    ('subscribe = [{ filter = "a/+", qos = 1 }]', "", "groups[1]", "add `publish` or `subscribe`"),
    ('subscribe = [{ filter = "a/+", qos = 1 }]', 'subscribe = ["a"]\nrelay = { qos = 7 }', "relay.qos", "0, 1 or 2"),
    ('name = "good"', 'name = "good bad"', "name", "match pattern"),
    ('name = "good"', 'name = "good"\nnetwork = "direct"', "networks", "leave one of them out"),
    ('name = "good"', 'name = "good"\nrepetitions = 0', "repetitions", "greater than or equal to 1"),
    ('name = "good"', 'name = "good"\nbackend = "life"', "backend", "did you mean `live`?"),
    ('name = "good"', "name = good", "", "is not TOML"),
]


def test_the_good_scenario_is_good() -> None:
    assert parse(GOOD).name == "good"


@pytest.mark.parametrize(("old", "new", "place", "remedy"), WRONG, ids=[f"{w[2]}-{i}" for i, w in enumerate(WRONG)])
def test_a_wrong_scenario_is_refused_with_place_and_remedy(old: str, new: str, place: str, remedy: str) -> None:
    assert old in GOOD
    with pytest.raises(ScenarioError) as caught:
        parse(GOOD.replace(old, new, 1), "wrong.toml")
    problems = caught.value.problems
    assert any(place in problem and remedy in problem for problem in problems), problems
    assert all("\n" not in problem and problem.startswith("wrong.toml") for problem in problems)


def test_the_line_of_a_problem_is_named() -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(GOOD.replace("count = 3", "cuont = 3"), "wrong.toml")
    line = GOOD.replace("count = 3", "cuont = 3").splitlines().index("cuont = 3") + 1
    assert caught.value.problems == [f"wrong.toml:{line}: `groups[0].cuont` unknown field; did you mean `count`?"]


@pytest.mark.parametrize("command", ["check", "run"])
def test_the_command_exits_with_2_and_starts_nothing(command: str, tmp_path: Path) -> None:
    scenario = tmp_path / "wrong.toml"
    scenario.write_text(GOOD.replace("qos = 1, payload", "qos = 3, payload"), encoding="utf-8")
    arguments = [sys.executable, "-m", "mqttlab", command, str(scenario)]
    result = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wrong.toml"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "mqttlab", "check", str(tmp_path / "none.toml")]
    result = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 2
    assert "none.toml: cannot be read" in result.stderr
