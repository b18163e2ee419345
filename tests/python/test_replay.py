"""Tables of messages that are replayed: what is read of them, what is said of wrong ones, and what is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab import export
from mqttlab.engine import EngineError
from mqttlab.recording import Recording
from mqttlab.runs import Job, perform
from mqttlab.scenario import ScenarioError, compile_plan
from mqttlab.scenario.estimate import estimate
from mqttlab.scenario.load import parse_values, warnings_of
from mqttlab.scenario.one_sentence import what_and_how_often
from mqttlab.scenario.replay import ReplayError, ReplayTable, read_table
from short_scenarios import scenario

PHASES = {"warm_up": "500 ms", "duration": "2 s", "cool_down": "20 s"}
TABLE = """Timestamp; Topic ;Device;Payload;QoS;Retained
2026-01-01T00:00:00.000Z;room/1;b;21.5;1;
2026-01-01T00:00:00.500Z;room/2;a;"{""v"": ""a;b"", ""unit"": ""°C""}";2;true
2026-01-01T01:00:00.250+01:00;room/1;a;;0;no

2026-01-01T00:00:01.500Z;lost/{client};b;on;;
"""


def table(directory: Path, text: str = TABLE) -> Path:
    path = directory / "messages.csv"
    path.write_text(text, encoding="utf-8")
    return path


def replaying(replay: Any, publish: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Two clients that replay a table, and one that wants what is said in rooms."""
    published = {"replay": replay, **({"qos": 1} if publish is None else publish)}
    group = {"name": "devices", "host": "field", "count": 2, "publish": published}
    values = scenario(1, filters=["room/#"], phases=PHASES, recording={"payloads": True}, **changes)
    return {**values, "groups": [group, values["groups"][1]]}


def run(directory: Path, values: dict[str, Any], backend: str = "sim") -> Recording:
    outcome = perform(Job(compile_plan(parse_values({**values, "backend": backend})), directory), lambda line: None)
    assert outcome.verdict in ("complete", "invalid"), outcome.reason
    return Recording.open(directory)


def contents(recording: Recording) -> dict[tuple[int, int], bytes]:
    rows = recording.table("payloads").select("publisher", "sequence", "start_bytes", "kept_bytes").rows()
    return {row[:2]: recording.payload(*row[2:]) for row in rows}


def read(directory: Path, text: str) -> ReplayTable:
    return read_table(table(directory, text))


def test_columns_are_found_by_the_names_that_people_use(tmp_path: Path) -> None:
    found = read(tmp_path, TABLE)
    assert found.columns == {"time": 0, "topic": 1, "client": 2, "payload": 3, "qos": 4, "retain": 5}
    assert (found.rows, found.delimiter, found.time, found.span_ns) == (4, ";", "iso", 1_500_000_000)
    assert (found.topics, found.clients) == (("room/1", "room/2", "lost/{client}"), ("b", "a"))
    assert (found.sizes, found.unsized, found.qos) == ((0, 27, 33), 0, 2)


@pytest.mark.parametrize(("header", "first", "expected"), [
    ("time", "1.5", "s"), ("t", "1700000000123", "ms"), ("Time (ms)", "5", "ms"), ("timestamp_us", "5", "us"),
    ("ts", "1700000000123456789", "ns"), ("datetime", "2026-01-01 10:00", "iso"), ("elapsed", "-0.25", "s"),
])
def test_the_unit_of_times_is_in_their_name_or_their_size(
    header: str, first: str, expected: str, tmp_path: Path,
) -> None:
    assert read(tmp_path, f"\ufeff{header},note\n{first},x\n").time == expected


@pytest.mark.parametrize(("text", "problem"), [
    ("", "has no column `time`"),
    ("topic,size\na,1\n", "has no column `time`; known columns: time, topic"),
    ("time,topics\n0,a\n", 'line 1: the column "topics" is not known; did you mean `topic`?'),
    ("time,size,bytes\n0,1,2\n", 'line 1: the columns "size" and "bytes" both say the size; keep one'),
    ("time\n", "has no message behind its header"),
    ("time\n0\n\nsoon\n", 'line 4: column `time` is "soon", but must be a number of seconds'),
    ("time\n2026-01-01T00:00:00Z\n5\n", 'line 3: column `time` is "5", but must be a date such as'),
    ("time,qos\n0,3\n", 'line 2: column `qos` is "3", but must be 0, 1 or 2'),
    ("time,retain\n0,maybe\n", 'line 2: column `retain` is "maybe", but must be true or false'),
    ("time,size\n0,-1\n", 'line 2: column `size` is "-1", but must be a whole number of bytes up to 10000000'),
    ("time,topic\n0,a/#\n", "line 2: column `topic` is \"a/#\", but only filters"),
    ("time,client\n0,\n", "line 2: column `client` is empty"),
    ('time,payload\n0,"a\n', "unexpected end of data"),
    ("time\n0\n40000000\n", "lasts longer than 366 days"),
])
def test_what_is_wrong_is_named_with_its_line_and_column(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ReplayError) as caught:
        read(tmp_path, text)
    assert problem in str(caught.value)


def test_check_tells_what_is_replayed_and_what_is_expected(tmp_path: Path) -> None:
    values = replaying({"file": str(table(tmp_path)), "loop": True, "speed": 2})
    loaded = parse_values(values)
    plan = compile_plan(loaded)
    said = what_and_how_often(plan["groups"][0]["publications"][0])
    assert said == "the 4 messages of messages.csv, again and again, 2 times as fast"
    once = compile_plan(parse_values(replaying(str(table(tmp_path)))))["groups"][0]["publications"][0]
    # A table may last longer than the measurement.
    assert what_and_how_often(once) == "up to 4 messages of messages.csv"
    # A table of 2 s at twice its speed, for 2 s; all of it counted for who wants a part.
    assert estimate(loaded).messages == pytest.approx(8)
    assert len(str(plan["groups"][0])) < 3_000
    small = parse_values({**values, "backend": "live"})
    assert any("below 9 B a message does not name its publisher" in str(problem) for problem in warnings_of(small))
    own = replaying(str(table(tmp_path, "time,client,topic,payload\n0,a,x,1\n1,b,y,2\n2,a,z,3\n3,a,x,1\n")))
    assert not any("does not name" in str(problem) for problem in warnings_of(parse_values({**own, "backend": "live"})))
    long = parse_values(replaying({"file": str(table(tmp_path)), "speed": 0.5}))
    assert any("lasts 3 s, longer than the measurement of 2 s" in str(problem) for problem in warnings_of(long))
    assert estimate(long).messages == pytest.approx(2)
    wanted = parse_values(replaying({"file": str(table(tmp_path, "time,topic\n0,nobody\n"))}))
    assert any("nothing subscribes to it" in str(problem) for problem in warnings_of(wanted))


def test_more_clients_in_the_table_than_in_the_group_are_refused(tmp_path: Path) -> None:
    three = str(table(tmp_path, "time,client,topic\n0,x,a\n1,y,a\n2,z,a\n"))
    with pytest.raises(ScenarioError, match="has 3 clients, but `devices` has `count = 2`; use `count = 3`"):
        compile_plan(parse_values(replaying(three)))
    numbered = str(table(tmp_path, "time,client,topic\n0,1,a\n1,0,a\n"))
    assert compile_plan(parse_values(replaying(numbered)))["groups"][0]["publications"][0]["replay"]["clients"] == []


def test_a_run_has_the_messages_of_the_table_when_it_says(tmp_path: Path) -> None:
    recording = run(tmp_path / "run", replaying(str(table(tmp_path))))
    begin = recording.plan["phases"]["warm_up_ns"]
    rows = recording.messages.sort("intended_ns").select(
        "publisher", "sequence", pl.col("intended_ns").cast(pl.Int64), "topic", "qos", "payload_bytes", "fate").rows()
    first = min(row[2] for row in rows)
    assert first >= begin
    assert [(row[0], row[1], (row[2] - first) / 1e6, *row[3:]) for row in rows] == [
        (0, 0, 0.0, "room/1", 1, 4, "delivered"), (1, 0, 250.0, "room/1", 0, 0, "delivered"),
        (1, 1, 500.0, "room/2", 2, 27, "delivered"), (0, 1, 1500.0, "lost/0", 1, 2, rows[3][-1])]
    # A payload of 9 B or more begins with the identity, a smaller one is the end of the message's number.
    kept = contents(recording)
    assert kept[1, 1][9:].decode(errors="ignore").endswith('"unit": "°C"}') and len(kept[1, 1]) == 27


def test_a_table_without_clients_is_replayed_by_each_and_again(tmp_path: Path) -> None:
    text = "time_ms,size\n1000,20\n1100,2000\n1300,0\n"
    recording = run(tmp_path / "run", replaying({"file": str(table(tmp_path, text)), "loop": True, "speed": 0.5}))
    messages = recording.messages.sort("publisher", "sequence")
    # 900 ms from begin to begin: a pause of 300 ms, the mean one, behind 600 ms.
    expected = [(20, 0), (2000, 200), (0, 600), (20, 900), (2000, 1100), (0, 1500), (20, 1800)]
    for client in (0, 1):
        own = messages.filter(publisher=client)
        first = own["intended_ns"].min()
        rows = own.select("payload_bytes", "intended_ns").rows()
        assert [(size, (at - first) / 1e6) for size, at in rows] == expected
        assert set(own["topic"]) == {f"devices/{client}"}


def test_a_recording_keeps_the_table_and_is_repeated_from_it(tmp_path: Path) -> None:
    path = table(tmp_path)
    first = run(tmp_path / "first", replaying(str(path)))
    kept = tmp_path / "first" / "replay-0.csv"
    assert kept.read_bytes() == path.read_bytes()
    path.unlink()
    again = run(tmp_path / "again", replaying(str(kept)))
    assert again.messages.equals(first.messages) and again.packets.equals(first.packets)


def test_a_table_that_has_changed_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    path = table(tmp_path)
    plan = compile_plan(parse_values(replaying(str(path))))
    path.write_text(TABLE + "2026-01-01T00:00:02Z;room/1;a;1;;\n", encoding="utf-8")
    with pytest.raises(EngineError, match=r"replay.path. is .*, but had \d+ B when the plan was made"):
        perform(Job(plan, tmp_path / "run"), lambda line: None)
    assert not (tmp_path / "run").exists()


@pytest.mark.live
def test_live_and_simulated_replay_the_same(tmp_path: Path) -> None:
    lines = "".join(f"{number / 20},room/{number % 3},{'ab'[number % 2]},{9 + number * 37 % 1500},{number % 3}\n"
                    for number in range(36))
    values = replaying(str(table(tmp_path, "time,topic,client,size,qos\n" + lines)), {})
    both = [run(tmp_path / backend, values, backend) for backend in ("sim", "live")]
    columns = ["publisher", "sequence", "topic", "qos", "payload_bytes", "subscriber", "fate"]
    tables = [recording.messages.select(columns).sort(columns[:2]) for recording in both]
    assert tables[0].equals(tables[1])
    assert tables[0].height == 36 and set(tables[0]["fate"]) == {"delivered"}
    kept = [contents(recording) for recording in both]
    assert {key: content[17:] for key, content in kept[0].items()} == {
        key: content[17:] for key, content in kept[1].items()}


@pytest.mark.live
@pytest.mark.parametrize(("rows", "ambiguous"), [
    # Each device has topics of its own, with large or with small messages; or both share one.
    (["a,room/1,{}", "b,room/2,{}"], 0), (["a,room/1,21.5", "b,room/2,19.0"], 0), (["a,room/1,{}", "b,room/1,{}"], 0),
    (["a,room/1,21.5", "b,room/1,19.0"], 1), (["a,room/1,21.5", "a,room/2,20", "b,room/1,{}"], 1),
], ids=["own topics", "own topics, small", "one topic", "one topic, small", "one topic, small of one"])
def test_messages_of_several_devices_are_told_apart_where_topic_or_payload_names_them(
        rows: list[str], ambiguous: int, tmp_path: Path) -> None:
    large = 'a payload of more than nine bytes'
    lines = [f"{0.1 * number},{row.replace('{}', large)}\n" for number, row in enumerate(rows * 4)]
    recording = run(tmp_path / "run", replaying(
        str(table(tmp_path, "".join(["time,client,topic,payload\n", *lines])))), "live")
    said = [reason for reason in recording.run["validity"]["reasons"] if "do not name them" in reason]
    assert [reason.split()[0] for reason in said] == [str(ambiguous)] * bool(ambiguous)
    if not ambiguous:
        assert set(recording.messages["fate"]) == {"delivered"}


def test_an_event_cannot_change_what_a_table_says(tmp_path: Path) -> None:
    for event in ({"do": "burst", "messages": 3}, {"do": "stop-publishing"}, {"publish": {"qos": 0}}):
        values = replaying(str(table(tmp_path)))
        group = next(group["name"] for group in values["groups"] if "publish" in group)
        values["events"] = [{"at": "0 s", "group": group, **event}]
        with pytest.raises(ScenarioError, match="which replays a table"):
            parse_values(values)


@pytest.mark.parametrize("publish", [{"replay": "messages.csv"}, {
    "topic": "a", "interval": "1 s", "payload": {"kind": "file", "path": "messages.csv"}}])
def test_files_lie_beside_the_scenario_else_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, publish: dict[str, Any],
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for place in (here, there):
        place.mkdir()
    monkeypatch.chdir(here)
    values: Any = replaying("messages.csv")
    values["groups"][0]["publish"] = publish
    name = str(there / "x.toml")
    with pytest.raises(ScenarioError, match="x.toml: `groups.0..publish.*, which is not there$"):
        parse_values(values, name)
    lengths = []
    for place, text in ((here, "time,topic\n0,a\n"), (there, "time,topic\n0,a\n1,a\n")):
        (place / "messages.csv").write_text(text, encoding="utf-8")
        publishes: Any = parse_values(values, name).groups[0].publish
        path = publishes.payload.path or publishes.replay.file
        lengths.append(path.read_text(encoding="utf-8").count("\n"))
    assert lengths == [2, 3]


def exported(directory: Path, scenario: dict[str, Any]) -> tuple[Recording, Path]:
    """A run, and its messages as ``export --csv`` writes them."""
    recording = run(directory / "run", scenario)
    export.csv(directory / "run", directory / "csv")
    return recording, directory / "csv" / "messages.csv"


def of_three(**changes: Any) -> dict[str, Any]:
    """Publishers 2, 3 and 4, two subscribers before them; the middle one publishes at QoS 2."""
    publish = {"topic": "room/{client}", "payload": "40 B", "rate": "5 /s", "retain": True}
    group = {"host": "field", "count": 1, "publish": publish}
    values = {"name": "whole", "backend": "sim", "network": "direct",
              "phases": {"warm_up": "0 s", "duration": "2 s", "cool_down": "1 s"},
              "groups": [{"name": "s", "host": "hall", "count": 2, "subscribe": [{"filter": "room/+", "qos": 2}]},
                         {**group, "name": "a"}, {**group, "name": "b", "publish": {**publish, "qos": 2}},
                         {**group, "name": "c"}]}
    return values | changes


def test_the_messages_of_a_recording_are_replayed_each_once(tmp_path: Path) -> None:
    """Once "the columns `retain` and `retained` both say the retain", and each message for each of its deliveries."""
    first, file = exported(tmp_path, of_three())
    table = read_table(file)
    sent = first.messages.unique(["publisher", "sequence"])
    assert first.messages.height == 2 * sent.height
    assert (table.rows, table.sizes, table.qos) == (sent.height, (40, 40, 40 * table.rows), 2)
    assert table.unused == () and table.names(3) == ("2", "3", "4")
    values = of_three()
    values["groups"] = [values["groups"][0], {"name": "p", "host": "field", "count": 3,
                                              "publish": {"replay": str(file)}}]
    again = run(tmp_path / "again", values)
    for one in (first, again):
        assert one.messages["fate"].unique().to_list() == ["delivered"]
    both = [one.messages.unique(["publisher", "sequence"]).sort("publisher", "sequence") for one in (first, again)]
    for column in ("publisher", "sequence", "qos", "retain", "payload_bytes"):
        assert both[0][column].to_list() == both[1][column].to_list(), column
    gaps = [one["intended_ns"].diff().to_list() for one in both]
    assert gaps[0][1:] == gaps[1][1:]


def test_a_column_is_ignored_so_that_the_field_holds(tmp_path: Path) -> None:
    """What would it be with QoS 1? The table's QoS won over the field without a word."""
    _, file = exported(tmp_path, of_three())
    values = of_three()
    values["groups"] = [values["groups"][0], {"name": "p", "host": "field", "count": 3,
                                              "publish": {"replay": str(file), "qos": 1}}]
    [warning] = [line for line in warnings_of(parse_values(values)) if "ignore" in line]
    assert "is 1, but every message of the table has its own, which holds" in warning
    assert 'ignore = ["qos"] }' in warning
    values["groups"][1]["publish"]["replay"] = {"file": str(file), "ignore": ["qos", "retain"]}
    assert not [line for line in warnings_of(parse_values(values)) if "ignore" in line]
    recording = run(tmp_path / "one", values)
    assert recording.messages["qos"].unique().to_list() == [1]
    assert recording.messages["retain"].unique().to_list() == [False]
    with pytest.raises(ReplayError, match="numbers its messages by client"):
        read_table(file, frozenset({"client"}))


def test_numbers_with_gaps_are_clients_in_the_order_of_the_numbers(tmp_path: Path) -> None:
    there = table(tmp_path, "time,client\n0,20\n1,7\n2,3\n")
    assert read_table(there).names(3) == ("3", "7", "20") and read_table(there).names(21) == ()
