"""What clients publish: several publications side by side, in both backends, from the scenario to the report."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import mqttlab
from live import in_both
from mqttlab import metrics
from mqttlab.plan import publications_of, read_plan
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.estimate import estimate
from mqttlab.scenario.load import ScenarioError, parse, parse_values
from mqttlab.scenario.one_sentence import one_sentence
from test_transports import Values

LINE = {"delay": "5 ms"}
STATE = {"topic": "state/{client}", "qos": 0, "payload": "60 B", "rate": "20 /s"}
ALARM = {"topic": "alarm/{client}", "qos": 1, "payload": "20 B", "interval": "300 ms", "retain": True}
REPORT = {"topic": "report/{client}/{topic}", "topics": 3, "qos": 2, "payload": "5 kB", "messages": 4, "rate": "10 /s"}
BURSTS = {"topic": "burst/{client}", "qos": 1, "payload": "gps", "arrival": "burst",
          "burst": {"size": 3, "every": "500 ms", "gap": "1 ms"}}
EACH = (STATE, ALARM, REPORT, BURSTS)


def scenario(publish: Any, **changes: Any) -> Values:
    """Two clients that publish, and one that hears it all."""
    return {
        "name": "publications", "backend": "sim",
        "phases": {"warm_up": "200 ms", "duration": "2 s", "cool_down": "10 s"},
        "networks": [{"between": ["field", "broker"], "up": LINE, "down": LINE, "link": "shared"}],
        "groups": [
            {"name": "devices", "host": "field", "count": 2, "publish": publish},
            {"name": "desk", "host": "broker", "subscribe": [{"filter": "#", "qos": 2}]},
        ],
        **changes,
    }


def simulated(values: Values, directory: Path) -> Recording:
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


def by_kind(recording: Recording) -> list[tuple[Any, ...]]:
    """How many messages of each kind were published, and how many have arrived: by topic without its numbers."""
    messages = recording.messages.with_columns(
        topic=pl.col("topic").cast(pl.String).str.split("/").list.first(), fate=pl.col("fate").cast(pl.String))
    return messages.group_by("topic", "qos", "payload_bytes", "retain", "fate").len().sort(
        "topic", "qos", "payload_bytes").rows()


def test_each_publication_has_its_own_schedule_topic_payload_and_qos(tmp_path: Path) -> None:
    together = simulated(scenario(list(EACH)), tmp_path / "together")
    found = by_kind(together)
    assert [row[:4] for row in found] == [
        ("alarm", 1, 20, True), ("burst", 1, 389, False), ("report", 2, 5000, False), ("state", 0, 60, False)]
    assert {row[4] for row in found} == {"delivered"}
    # 2.2 s of two clients: 20 /s, every 300 ms, four messages at most, three every 500 ms.
    counts = {row[0]: row[5] for row in found}
    assert counts["state"] == 88 and counts["report"] == 8
    assert 14 <= counts["alarm"] <= 16 and 24 <= counts["burst"] <= 30
    reports = together.messages.filter(pl.col("topic").cast(pl.String).str.starts_with("report/0"))
    assert reports["topic"].cast(pl.String).to_list() == [f"report/0/{n}" for n in (0, 1, 2, 0)]
    # A client's messages have one count, in the order in which they were due.
    first = together.messages.filter(pl.col("publisher") == 0).sort("sequence")
    assert first["sequence"].to_list() == list(range(first.height)) and first["intended_ns"].is_sorted()


def test_the_first_publication_does_not_notice_another(tmp_path: Path) -> None:
    """Its due times are drawn from streams of its own."""
    poisson = {**STATE, "arrival": "poisson"}

    def due(name: str, publish: Any) -> list[int]:
        messages = simulated(scenario(publish), tmp_path / name).messages
        theirs = messages.filter(pl.col("topic").cast(pl.String).str.starts_with("state/"))
        return sorted(theirs["intended_ns"].to_list())

    alone = due("alone", poisson)
    assert alone == due("listed", [poisson]) == due("beside", [poisson, ALARM])


def test_one_table_and_a_list_of_one_are_the_same_plan() -> None:
    one, listed = (compile_plan(parse_values(scenario(publish))) for publish in (STATE, [STATE]))
    assert one == listed and len(one["groups"][0]["publications"]) == 1 and one["groups"][1]["publications"] == []


def test_stored_plans_of_one_publication_are_read_as_a_list() -> None:
    group = compile_plan(parse_values(scenario(STATE)))["groups"][0]
    [publish] = group.pop("publications")  # type: ignore[misc]
    old: Any = {"groups": [{**group, "publish": publish}, {**group, "publish": None}]}
    assert [each["publications"] for each in read_plan(old)["groups"]] == [[publish], []]
    assert publications_of(old["groups"][0]) == [publish]


def test_bursts_are_told_from_other_publications(tmp_path: Path) -> None:
    alone = metrics.bursts(simulated(scenario(BURSTS), tmp_path / "alone"))
    beside = metrics.bursts(simulated(scenario([BURSTS, STATE]), tmp_path / "beside"))
    [one], [other] = alone.to_dicts(), beside.to_dicts()
    assert one["bursts"] == one["bursts_complete"] == other["bursts"] == other["bursts_complete"] > 0
    assert other["burst_spread_ms_p50"] >= 2


def test_payloads_are_kept_as_their_publication_makes_them(tmp_path: Path) -> None:
    recording = simulated(scenario([STATE, BURSTS], recording={"payloads": True}), tmp_path / "run")
    kept = recording.table("payloads").join(recording.messages, on=["publisher", "sequence"])
    assert kept["kept_bytes"].unique().sort().to_list() == [60, 389]
    assert kept.filter(pl.col("kept_bytes") != pl.col("payload_bytes")).is_empty()
    # Only one of them says where its publisher is.
    said = kept.filter(pl.col("kept_bytes") == 389)
    assert recording.positions.height == said.height > 0
    assert b'"Feature"' in recording.payload(*said.select("start_bytes", "kept_bytes").row(0))


RAMP = {**STATE, "rate": "10 /s", "stages": [{"for": "500 ms", "to": "100 /s"}, {"for": "500 ms", "rate": "0 /s"},
                                             {"for": "250 ms", "rate": "80 /s", "to": "40 /s"}]}


def due_by(recording: Recording, edges_ms: list[int]) -> list[int]:
    """How many messages of a client were due between these times of the measurement."""
    start = recording.layout["warm_up_end_ns"]
    due = recording.messages.filter(publisher=1).select(at=(pl.col("intended_ns") - start) / 1e6)["at"].to_list()
    return [sum(low <= at < high for at in due) for low, high in pairwise(edges_ms)]


def test_rates_change_in_steps_and_ramps_from_the_measurement_on(tmp_path: Path) -> None:
    recording = simulated(scenario(RAMP), tmp_path / "run")
    # 0.2 s at 10 /s; a ramp whose mean is 55 /s; none; a ramp of 60 /s; and 40 /s to the end.
    found = due_by(recording, [-200, 0, 500, 1000, 1250, 2000])
    assert all(abs(count - expected) <= 1 for count, expected in zip(found, [2, 27.5, 0, 15, 30], strict=True)), found
    ramp = due_by(recording, [0, 250, 500])
    assert ramp[0] < ramp[1] / 1.8, "the rate rises"
    assert recording.messages["fate"].cast(pl.String).unique().to_list() == ["delivered"]


@pytest.mark.parametrize("law", ["poisson", "burst"])
def test_each_law_of_arrivals_keeps_its_meaning_while_the_rate_changes(law: str, tmp_path: Path) -> None:
    steps = [{"for": "1 s", "rate": "40 /s"}, {"for": "1 s", "rate": "200 /s"}]
    when = {"rate": "40 /s"} if law == "poisson" else {"burst": {"size": 4, "every": "100 ms"}}
    publish = {key: value for key, value in STATE.items() if key != "rate"} | {"arrival": law, "stages": steps} | when
    recording = simulated(scenario(publish), tmp_path / "run")
    found = due_by(recording, [0, 1000, 2000])
    spread = 30 if law == "poisson" else 4
    assert all(abs(count - expected) <= spread for count, expected in zip(found, [40, 200], strict=True)), found
    due = recording.messages.filter(publisher=1).sort("sequence")["intended_ns"]
    assert due.n_unique() == (due.len() if law == "poisson" else -(-due.len() // 4)), "bursts are due at once"


def test_the_estimate_counts_what_stages_send(tmp_path: Path) -> None:
    loaded = parse_values(scenario(RAMP))
    recording = simulated(scenario(RAMP), tmp_path / "run")
    sent = recording.messages.height
    assert abs(estimate(loaded).messages - sent) <= 4 and estimate(loaded).offered_per_s == 200
    assert "publish 60 B at QoS 0 at 0 to 100 /s in 3 stages to" in one_sentence(read_plan(dict(compile_plan(loaded))))


def test_check_tells_each_publication(tmp_path: Path) -> None:
    assert one_sentence(read_plan(dict(compile_plan(parse_values(scenario([STATE, ALARM])))))) == (
        "2 devices, sharing one link of any rate and 5 ms each way, publish 60 B at QoS 0 every 50 ms and "
        "20 B at QoS 1 every 300 ms to one subscriber beside the broker.")
    path = tmp_path / "two.toml"
    path.write_text(TOML, encoding="utf-8")
    done = mqttlab("check", path)
    assert done.returncode == 0, done.stderr
    assert "publish state at QoS 0 (60 B every 50 ms), alarm at QoS 1 (20 B every 300 ms)" in done.stdout


TOML = """
name = "two"
backend = "sim"
[phases]
duration = "2 s"
[[networks]]
between = ["field", "broker"]
up = { delay = "5 ms" }
down = { delay = "5 ms" }
[[groups]]
name = "device"
host = "field"
[[groups.publish]]
topic = "state"
payload = "60 B"
rate = "20 /s"
[[groups.publish]]
topic = "alarm"
qos = 1
payload = "20 B"
interval = "300 ms"
[[groups]]
name = "desk"
host = "broker"
subscribe = ["#"]
"""


def test_problems_of_publications_have_the_place_that_the_file_has() -> None:
    for before, after, place in (
        ("interval =", "intervall =", "`groups[0].publish[1].intervall` is an unknown field"),
        ("interval =", "every =", "`groups[0].publish[1].every` is an unknown field; did you mean `interval`?"),
        ('payload = "60 B"', 'payload = "60"', "`groups[0].publish[0].payload` is"),
    ):
        with pytest.raises(ScenarioError, match=".") as raised:
            parse(TOML.replace(before, after))
        assert place in str(raised.value), raised.value
    assert parse(TOML, overrides={"groups[0].publish[1].qos": 2}).groups[0].publications[1][1].qos == 2


@pytest.mark.live
def test_live_and_simulated_publish_the_same_messages(tmp_path: Path) -> None:
    small = [{**STATE, "payload": "3 B"}, {**ALARM, "payload": "5 B"}]
    kinds = {"mqtt": scenario(list(EACH)), "small": scenario(small), "stages": scenario([RAMP, ALARM])}
    for name, found in in_both(kinds, tmp_path, at_once=3).items():
        live, sim = (by_kind(found[backend]) for backend in ("live", "sim"))
        assert live == sim, name
