"""What every command prints with ``--json``, of runs that differ in what they have: for tests of the schemas.

Each function makes a few outputs: the name of a schema, and the object that a command printed.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from captures import Client, Wire, answer, pair, publish, send_ten
from commands import mqttlab
from mqttlab.gallery import templates
from mqttlab.runs import Job, Outcome, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from recordings import MS, Message, segment, write
from test_comparison_answer import FLEET
from test_import_contents import EQUAL, send
from test_kept_wills import SCENARIO as WILLS
from test_kept_wills import lost as without_wills
from test_mqtt_sn import scenario as sensors_network
from test_nothing_delivered import STORED
from test_shares import LEAVES, pool
from unchecked import without_checks

Output = tuple[str, dict[str, Any]]
ROOT = Path(__file__).resolve().parents[2]
TWICE = ["--set", "repetitions=2"]
QUICK = ["--set", "phases.duration=2 s", "--set", "phases.cool_down=2 s"]
EVENTFUL = """
name = "eventful"
backend = "sim"
[mqtt]
version = "5"
[phases]
stages = [{ name = "calm", for = "5 s" }, { name = "storm", for = "25 s" }]
cool_down = "2 s"
[[networks]]
name = "wan"
between = ["field", "broker"]
link = "each"
up = { delay = "50 ms", loss = "5 %" }
down = { delay = "50 ms" }
[[groups]]
name = "device"
host = "field"
count = 4
mqtt = { keep_alive = "4 s", will = { topic = "status/dev", payload = "offline", qos = 1 } }
[[groups.publish]]
topic = "data/{client}"
payload = "20 B"
interval = "200 ms"
qos = 1
[[groups.publish]]
topic = "state/{client}"
payload = "20 B"
interval = "1 s"
retain = true
[[groups]]
name = "watcher"
host = "broker"
late_after = "100 ms"
subscribe = [{ filter = "status/#", qos = 1 }, { filter = "data/#", qos = 1 }, { filter = "state/#" }]
[[events]]
at = "5 s"
group = "device"
share = "50 %"
do = "vanish"
[[events]]
at = "10 s"
network = "wan"
down = true
for = "3 s"
[[events]]
at = "20 s"
server = "broker"
do = "kill"
for = "2 s"
[[events]]
at = "25 s"
group = "watcher"
do = "subscribe"
filter = "state/#"
"""
ALONE = FLEET[:FLEET.index("[[groups]]\nname = \"dashboard\"")]
SILENT = ALONE.replace("publish = {", "# {") + 'subscribe = [{ filter = "t/#" }]'
EXPERIMENT = """
name = "asked"
question = "QoS 0 or QoS 1?"
scenario = "fleet.toml"
repetitions = 3
reference = { qos = 0, rate = "2 /s" }
responses = ["latency_ms_p99", "undelivered_percent", { metric = "ip_kb_per_device_hour_up", scope = "group" }]
[[factors]]
name = "qos"
places = ["groups[0].publish.qos", "groups[1].subscribe[0].qos"]
levels = [0, 1]
[[factors]]
name = "rate"
places = ["groups[0].publish.rate"]
levels = ["1 /s", "2 /s", "3 /s", "4 /s", "6 /s"]
[[thresholds]]
metric = "latency_ms_p99"
below = "80 ms"
"""
SEARCH = """
name = "sought"
scenario = "fleet.toml"
design = "search"
repetitions = 1
[[factors]]
name = "qos"
places = ["groups[0].publish.qos", "groups[1].subscribe[0].qos"]
levels = [0, 1]
[[factors]]
name = "delay"
places = ["networks[0].up.delay"]
levels = ["10 ms", "50 ms", "400 ms"]
[search]
factor = "delay"
criterion = { metric = "latency_ms_p50", below = "100 ms" }
holds = "1 of 1"
tolerance = "5 %"
"""

LOSS = """
[[factors]]
name = "loss"
places = ["networks[0].up.loss"]
levels = ["0 %", "100 %"]
"""


def printed(schema: str, *words: object) -> Output:
    """Give a command with ``--json``."""
    done = mqttlab(*words, "--json")
    assert done.stdout, (words, done.stderr)
    return schema, json.loads(done.stdout)


def simulated(place: Path, text: str, *words: object) -> Output:
    """A scenario's run."""
    place.mkdir(parents=True)
    (place / "s.toml").write_text(text, encoding="utf-8")
    return printed("run", "run", place / "s.toml", "--backend", "sim", "--runs", place / "runs", *words)


def given(place: Path, values: dict[str, Any]) -> Output:
    """The report of a scenario that is no text."""
    outcome = perform(Job(compile_plan(parse_values(values | {"backend": "sim"})), place), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return printed("report", "report", place)


def runs(place: Path) -> Iterator[Output]:
    """Simulations, one for each kind of thing that a report may have."""
    threshold = '[[thresholds]]\nmetric = "latency_ms_p99"\nBOUND = "100 ms"\n'
    yield simulated(place / "a", FLEET + threshold.replace("BOUND", "below"), *TWICE, "--html", *QUICK)
    yield simulated(place / "events", EVENTFUL + threshold.replace("BOUND", 'stage = "calm"\nbelow'))
    yield simulated(place / "radio", templates()["radio-cell"].path.read_text(encoding="utf-8"), *QUICK)
    yield given(place / "mqtt-sn", sensors_network())
    yield given(place / "shares", pool(1, LEAVES))
    for qos in (0, 1):
        yield simulated(place / f"alone-{qos}", ALONE, "--set", f"groups[0].publish.qos={qos}", *QUICK)
    yield simulated(place / "silent", SILENT, *QUICK)
    yield simulated(place / "summary", FLEET, "--set", "recording.detail=summary", *QUICK)
    yield simulated(place / "stored", STORED)
    yield simulated(place / "lost", FLEET, "--set", "networks[0].up.loss=100 %", *QUICK)


def imports(place: Path) -> Iterator[Output]:
    """Captures: of both ends, of publishers alone, of equal contents."""
    place.mkdir()
    both, alone, equal = Wire(), Wire(), Wire()
    publisher, subscriber = pair(both)
    send_ten(both, publisher, subscriber)
    _alone(alone)
    publisher, subscriber = pair(equal)
    send(publisher, [subscriber], [EQUAL] * 20, every_ms=1, lost=[3])
    for name, wire in (("both", both), ("alone", alone), ("equal", equal)):
        yield printed("run", "import", "capture", wire.save(place / f"{name}.pcap"), "--runs", place / "runs")


def _alone(wire: Wire) -> None:
    """Publishers at each QoS, and the broker's answers."""
    for qos in range(3):
        client = Client(wire, f"10.0.0.{2 + qos}", 40_000 + qos)
        client.connect(f"level{'abc'[qos]}-1")
        for number in range(20):
            client.up(publish(f"t/{qos}", b"payload %03d" % number, qos=qos, identifier=number + 1))
            for kind in ((), (4,), (5, 7))[qos]:
                client.down(answer(kind, number + 1))
            wire.wait(10)
    refused = Client(wire, "10.0.0.9", 40_009)
    refused.connect("refused-1", code=5)


def reports(place: Path) -> Iterator[Output]:
    """Recordings that no simulation makes: promises that were not kept, stages, a run that is not complete."""
    late = [Message(0, qos=1), Message(1, 350, qos=1), Message(2, 300, qos=1, out_of_order=True),
            *(Message(number, qos=1) for number in range(3, 8)),
            Message(8, None, fate="lost", cause="queue_full", qos=1), Message(7, qos=1, fate="duplicate")]
    packets = [segment(100 * number, frame=number, payload=100, offset=100 * number, seq=1) for number in range(9)]
    write(place / "broken", late, packets=packets, foreign=2)
    plan = json.loads((place / "broken" / "plan.json").read_text())
    plan["groups"][1] |= {"subscriptions": [{"filter": "t", "qos": 1}]}
    (place / "broken" / "plan.json").write_text(json.dumps(plan))
    yield printed("report", "report", place / "broken", "--html", place / "page.html")
    write(place / "incomplete", late[:5], complete=False)
    yield printed("report", "report", place / "incomplete")
    write(place / "nothing", [])
    yield printed("report", "report", place / "nothing")
    events = [{"at_ns": 500 * MS, "client": 0, "kind": kind, "took_ns": None, "detail": "Connection reset by peer"}
              for kind in ("disconnect", "connect_failed")]
    write(place / "ended", late[:5], events=events)
    yield printed("report", "report", place / "ended")
    given(place / "wills", tomllib.loads(WILLS))
    messages = place / "wills" / "messages.parquet"
    without_wills(pl.read_parquet(messages).with_columns(pl.col("fate").cast(pl.String))).write_parquet(messages)
    without_checks(place / "wills")
    (place / "wills" / "summary.json").unlink()
    yield printed("report", "report", place / "wills")


def ended(place: Path) -> Iterator[Output]:
    """A run that failed, and one that was stopped before it had tables."""
    for verdict, reason in (("failed", "the broker did not start"), ("incomplete", "stopped by SIGTERM")):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("mqttlab.runs.executor.perform", lambda job, *others, why=(verdict, reason): Outcome(
                verdict=why[0], reason=why[1], directory=job.directory))
            yield simulated(place / verdict, FLEET)


def trials(place: Path) -> Iterator[Output]:
    """One run, and comparisons with and without intervals, and without a result."""
    words = ["try", "--simulate", "--duration", "2s", "--rate", "20/s", "--runs", place]
    yield printed("try", *words)
    yield printed("try", *words, "--qos", "0,1", "--network", "lte,nb-iot", "--repetitions", "1")
    yield printed("try", *words, "--qos", "0,1", "--repetitions", "2")
    yield printed("try", *words, "--qos", "0,1", "--repetitions", "1", "--loss", "100%")


def experiments(place: Path) -> Iterator[Output]:
    """One with thresholds, a recommendation, costs and trends, and a search."""
    place.mkdir()
    (place / "fleet.toml").write_text(FLEET, encoding="utf-8")
    lost = SEARCH[SEARCH.index("[[factors]]"):SEARCH.index("[[factors]]\nname = \"delay\"")]
    lost = 'name = "lost"\nscenario = "fleet.toml"\nrepetitions = 1\nresponses = ["latency_ms_p99"]\n' + lost + LOSS
    void = SEARCH[:SEARCH.index("[[factors]]\nname = \"delay\"")] + LOSS + SEARCH[SEARCH.index("[search]"):]
    void = void.replace('"sought"', '"void"').replace('factor = "delay"', 'factor = "loss"')
    for name, text in (("asked", EXPERIMENT), ("sought", SEARCH), ("lost", lost), ("void", void)):
        (place / f"{name}.toml").write_text(text, encoding="utf-8")
        done = mqttlab("experiment", place / f"{name}.toml", "--runs", place / "runs")
        assert (place / "runs" / name / "journal.jsonl").is_file(), done.stderr
        yield printed("report", "report", place / "runs" / name)


def comparisons(place: Path) -> Iterator[Output]:
    """Two sides, one run each and several; three sides; message by message; a side without deliveries."""
    lossy = FLEET.replace('model = "lte"', 'up = { delay = "30 ms", loss = "2 %" }\ndown = { delay = "30 ms" }')
    for name, percent in (("one", "2 %"), ("other", "4 %"), ("none", "100 %")):
        simulated(place / name, lossy.replace("2 %", percent))
    for name, rate in (("few", "2 /s"), ("many", "4 /s")):
        simulated(place / name, FLEET.replace("2 /s", rate), *TWICE)
    at = {path.name: path / "runs" for path in place.iterdir()}
    write(at["many"] / "torn", [Message(0)], complete=False)
    simulated(place / "stages", EVENTFUL)
    yield printed("compare", "compare", place / "stages" / "runs", place / "stages" / "runs", "--stage", "calm")
    yield printed("compare", "compare", at["one"], at["other"], "--by", "message")
    yield printed("compare", "compare", at["few"], at["many"])
    yield printed("compare", "compare", at["one"], at["none"], "--by", "message")
    write(place / "kept", [Message(0, qos=1), Message(1, qos=1)])
    write(place / "full", [Message(0, qos=1), Message(1, None, fate="lost", cause="queue_full", qos=1)])
    for sides in (("kept", "full"), ("full", "kept")):
        yield printed("compare", "compare", *(place / name for name in sides), "--by", "message")
    yield printed("compare", "compare", at["one"], at["other"], at["few"])
