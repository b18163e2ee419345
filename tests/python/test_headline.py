"""The headline: one set of numbers and words on every surface, equal to the tables, whoever made the recording."""

from __future__ import annotations

import dataclasses
import json
import random
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner
from rich.console import Console

from mqttlab import metrics
from mqttlab.cli.main import main
from mqttlab.plurals import counted
from mqttlab.recording import Recording
from mqttlab.report import answer, cards, headline, network, write_html
from mqttlab.report.answer import LINES, WIDTH, lines
from mqttlab.report.text import number as written
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse
from mqttlab.scenario.one_sentence import LENGTH_MAX, one_sentence
from recordings import MS, Message, S, segment, write

FLEET = """
name = "fleet"
backend = "sim"
[phases]
warm_up = "1 s"
duration = "6 s"
[[networks]]
between = ["field", "broker"]
model = "lte-m"
link = "each"
up.loss = "2 %"
down.loss = "2 %"
[[groups]]
name = "sensors"
host = "field"
count = 12
publish = { topic = "s/{client}", qos = 1, payload = "100 B", interval = "500 ms" }
[[groups]]
name = "dashboard"
host = "broker"
subscribe = [{ filter = "s/+", qos = 1 }]
"""


def held_together(recording: Recording) -> None:
    """The headline's numbers are those of the tables, and its lines fit a terminal."""
    told = headline.told(recording)
    table = metrics.application(recording, ("publisher_group", "subscriber_group", "qos"))
    assert len(told.numbers.flows) == table.height
    for flow, row in zip(told.numbers.flows, table.rows(named=True), strict=True):
        assert (flow.publishers, flow.subscribers, flow.qos) == (
            row["publisher_group"], row["subscriber_group"], row["qos"])
        assert (flow.sent, flow.expected, flow.delivered, flow.disconnects, flow.per_s) == tuple(row[name] for name in (
            "messages_sent", "deliveries_expected", "messages_delivered", "disconnects", "throughput_per_s"))
        assert flow.undelivered_percent == row["undelivered_percent"]
        assert sum(cause.count for cause in flow.causes) == (
            row["deliveries_expected"] - row["messages_delivered"] + row["messages_unsent"])
        for name, latency in flow.latency.items():
            assert latency.value == row[f"latency_ms_{name}"]
            assert latency.low is None or latency.value is None or latency.low <= latency.value
            assert latency.high is None or latency.value is None or latency.high >= latency.value
        for shares in (flow.typical, flow.slowest):
            assert not shares or sum(share.percent for share in shares) == pytest.approx(100)
    devices = {row["name"]: row for row in metrics.device_bytes(recording).rows(named=True)}
    for told_bytes in told.numbers.bytes:
        row = devices[told_bytes.group]
        assert (told_bytes.ip_up, told_bytes.link_down) == (
            row["ip_kb_per_device_hour_up"], row["link_kb_per_device_hour_down"])
    shown = lines(told)
    assert len(shown) <= LINES and max(map(len, shown)) <= WIDTH
    assert len(told.scenario) <= LENGTH_MAX + 20
    json.dumps(headline.document(recording), allow_nan=False)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "fleet.toml").write_text(FLEET)
    result = CliRunner().invoke(main, ["run", str(folder / "fleet.toml"), "--runs", str(folder / "runs"), "--no-html"])
    assert result.exit_code == 0, result.output
    (folder / "printed").write_text(result.stdout)
    [run] = (folder / "runs").glob("fleet-*")
    return run


def test_a_run_ends_with_the_answer(fleet: Path) -> None:
    printed = (fleet.parent.parent / "printed").read_text()
    assert max(map(len, printed.split("\nrecording")[0].splitlines())) <= WIDTH
    assert "12 devices (sensors), each behind its own LTE-M link with 2 % loss, publish 100 B" in " ".join(
        printed.split())
    assert "p99 " in printed and "kB/device/h up" in printed and "docs/explanation/simulator.md" in printed
    assert len(printed.splitlines()) <= 24
    assert "Links" not in printed and "Network layer" not in printed


def test_full_prints_the_tables_below(fleet: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["report", str(fleet), "--full", "--html", str(tmp_path / "page.html")])
    assert result.exit_code == 0, result.output
    assert "latency in ms, by QoS" in result.stdout and "Network layer" in result.stdout
    assert result.stdout.index("p99 ") < result.stdout.index("latency in ms, by QoS")


def test_the_headline_equals_the_tables_of_a_simulation(fleet: Path) -> None:
    recording = Recording.open(fleet)
    held_together(recording)
    [flow] = metrics.headline(recording).flows
    # The wire takes 60 ms on average; what was lost waits for its repetition.
    assert flow.typical[0].part == "wire_to_broker_ns"
    [device] = metrics.headline(recording).bytes
    assert device.group == "sensors" and device.devices == 12
    # Two messages of 100 B a second and at least their headers; acknowledgements the other way.
    assert device.ip_up is not None and device.ip_up > 3.6 * 2 * 150
    assert device.ip_down is not None and 0 < device.ip_down < device.ip_up


@pytest.mark.parametrize("messages", [
    [], [Message(0)], [Message(number, latency_ms=None, fate="lost", cause="queue_full") for number in range(5)],
    [Message(number, fate="unsent", latency_ms=None, subscriber=None) for number in range(3)],
    [Message(number, qos=number % 3, latency_ms=float(number + 1)) for number in range(90)],
    [Message(number, latency_ms=None if number % 2 else 4.0, fate="under_way" if number % 2 else "delivered")
     for number in range(60)],
])
@pytest.mark.parametrize("complete", [True, False])
def test_the_headline_equals_the_tables_of_any_recording(
    messages: list[Message], complete: bool, tmp_path: Path,
) -> None:
    recording = Recording.open(write(tmp_path / "run", messages, complete=complete, foreign=3))
    held_together(recording)
    console = Console(record=True, width=200)
    answer(recording, console)
    printed = console.export_text()
    assert "3 foreign deliveries" in printed
    assert ("incomplete" in printed) is not complete
    assert messages or "No message was measured" in printed


def test_a_percentile_that_has_no_interval_says_none(tmp_path: Path) -> None:
    few = Recording.open(write(tmp_path / "few", [Message(number) for number in range(30)]))
    [flow] = metrics.headline(few).flows
    assert flow.latency["p99"].low is None and flow.latency["p99"].high is None
    assert headline.interval(flow.latency["p99"]) == ""


@pytest.mark.parametrize("duration_s", [1.5, 59, 60, 599, 600])
@pytest.mark.parametrize("interval_s", [0, 1, 60])
def test_a_headline_says_for_how_long_was_measured_where_that_is_short(
    duration_s: float, interval_s: int, tmp_path: Path,
) -> None:
    frame = segment(100, frame=1, payload=48)
    run = write(tmp_path / "run", [Message(0)], packets=[frame], duration_s=duration_s)
    if interval_s:
        plan = json.loads((run / "plan.json").read_text())
        plan["groups"][0]["publish"] = {"arrival": {"kind": "constant", "interval_ns": interval_s * S}}
        (run / "plan.json").write_text(json.dumps(plan))
    printed = " ".join(lines(headline.told(Recording.open(run))))
    assert "kB/device/h up" in printed
    is_short = duration_s < (600 if interval_s == 60 else 60)
    assert (f"rates and kB/device/h are of {duration_s:g} s only" in printed) is is_short
    assert (f"(IP bytes of {duration_s:g} s)" in printed) is is_short


def test_a_sentence_too_long_for_its_place_ends_at_a_clause(tmp_path: Path) -> None:
    """Once it ended within a word, with an ellipsis."""
    run = write(tmp_path / "run", [Message(i, 5.0) for i in range(40)])
    told = headline.told(Recording.open(run))
    first = "the broker dropped what came for a client that was away for all of the time that was measured"
    for note, shown in [
        (f"{first}; {first}; {first}", f"{first}; more: --full"),
        (f"{first}: see its log", f"{first}: see its log"),
        # One clause is said whole.
        (" ".join([first] * 3), " ".join([first] * 3)),
    ]:
        made = lines(dataclasses.replace(told, parts=(), reasons=(), cautions=(note,)))
        assert all(len(line) <= WIDTH for line in made)
        words = " ".join(" ".join(made).split())
        assert f"note {shown}" in words and "…" not in words, words


def test_the_share_that_did_not_arrive_is_never_rounded_to_all_or_none() -> None:
    assert headline.percent(0.0) == "0 %" and headline.percent(100.0) == "100 %"
    assert headline.percent(0.004) == "< 0.01 %" and headline.percent(99.996) == "> 99.99 %"


def frames(random_of: random.Random, count: int) -> list[dict[str, Any]]:
    """Frames of the client `p` (connection 0) and of a stranger, on paths of one or two links."""
    made = []
    for number in range(count):
        hops = random_of.choice((1, 2))
        up = random_of.random() < 0.5
        for hop in range(hops):
            fate, cause = random_of.choice([
                ("delivered", None), ("delivered", None), ("dropped", "queue_full"), ("dropped", "random_loss"),
                ("duplicated", None), ("corrupted", "bit_error")])
            row = segment(random_of.uniform(0, 20_000), frame=number, up=up, payload=random_of.randrange(1400),
                          connection=random_of.choice((0, 0, 7)))
            made.append(row | {"hop": hop, "hops": hops, "fate": fate, "cause": cause,
                               "start_ns": None if fate == "dropped" else row["start_ns"]})
    return made


@pytest.mark.parametrize("seed", range(12))
def test_bytes_of_a_device_are_those_of_its_frames_counted_by_hand(seed: int, tmp_path: Path) -> None:
    rows = frames(random.Random(seed), 200)
    run = write(tmp_path / "run", [Message(0)], packets=rows)
    pl.DataFrame({"scope": ["connection"], "connection": [0], "client": [0], "metric": ["resets"], "value": [0.0],
                  "direction": ["to_broker"]},
                 schema_overrides={"connection": pl.UInt32, "client": pl.UInt32}).write_parquet(
        run / "network_metrics.parquet")
    table = {row["name"]: row for row in metrics.device_bytes(Recording.open(run)).rows(named=True)}
    for layer, column in (("ip", "ip_bytes"), ("link", "frame_bytes")):
        for way, host, place in (("up", "from_host", "first"), ("down", "to_host", "last")):
            # The publisher's host is 0: its connection's frames, and those that no connection tells of.
            its = [row for row in rows if row[host] == 0
                   and row["hop"] == (0 if place == "first" else row["hops"] - 1)
                   and row["fate"] != "duplicated" and row["cause"] != "queue_full"
                   and 0 <= (row["entered_ns"] if row["start_ns"] is None else row["start_ns"]) < 10 * S]
            by_hand = sum(row[column] for row in its) / 10 * 3600 / 1000
            assert table["publishers"][f"{layer}_kb_per_device_hour_{way}"] == pytest.approx(by_hand)


def test_connections_are_numbered_with_gaps(tmp_path: Path) -> None:
    """Those of MQTT-SN are; a list as long as the largest number had no room."""
    rows = [segment(100, frame=1, payload=48, connection=0) | {"connection": 2**31 + 5, "source_port": 40_000}]
    run = write(tmp_path / "run", [Message(0)], packets=rows)
    pl.DataFrame({"scope": ["connection"], "connection": [2**31 + 5], "client": [0], "metric": ["resets"],
                  "value": [0.0], "direction": ["to_broker"]},
                 schema_overrides={"connection": pl.UInt32, "client": pl.UInt32}).write_parquet(
        run / "network_metrics.parquet")
    row = metrics.device_bytes(Recording.open(run)).row(0, named=True)
    assert row["ip_kb_per_device_hour_up"] == pytest.approx(100 * 360 / 1000)


def test_frames_outside_of_the_measurement_and_within_a_host_do_not_count(tmp_path: Path) -> None:
    rows = [segment(at, frame=number) for number, at in enumerate((-1 / MS, 500, 10_001)) if at > 0]
    rows.append(segment(600, frame=9, payload=1000) | {"to_host": 0})
    row = metrics.device_bytes(Recording.open(write(tmp_path / "run", [Message(0)], packets=rows))).row(0, named=True)
    assert row["ip_kb_per_device_hour_up"] == pytest.approx(52 * 360 / 1000)


def sentence(text: str) -> str:
    return one_sentence(compile_plan(parse(text)))


def test_a_sentence_names_the_model_and_its_loss() -> None:
    assert sentence(FLEET.replace("count = 12", "count = 200").replace("500 ms", "5 s")) == (
        "200 devices (sensors), each behind its own LTE-M link with 2 % loss, publish 100 B at QoS 1 every 5 s to one "
        "subscriber beside the broker.")
    assert "LTE-M link with 2 % loss up and no loss down" in sentence(FLEET.replace('down.loss = "2 %"\n', ""))
    assert "sharing one LTE link with 1.5 % loss" in sentence(
        FLEET.replace('"lte-m"', '"lte"').replace('"each"', '"shared"').replace('"2 %"', '"1.5 %"'))
    assert "each behind its own LTE-M link, publish" in sentence(
        FLEET.replace('up.loss = "2 %"\ndown.loss = "2 %"\n', ""))


def test_a_model_whose_loss_was_taken_away_says_so() -> None:
    assert "Wi-Fi in a home link with no loss" in sentence(
        FLEET.replace('"lte-m"', '"wifi"').replace('"2 %"', '"0 %"'))


def test_a_sentence_says_what_nobody_receives() -> None:
    assert "without a subscriber" in sentence(FLEET.replace('filter = "s/+"', 'filter = "other"'))


def test_many_groups_are_summed_up() -> None:
    group = '[[groups]]\nname = "g{0}"\nhost = "field"\ncount = 10\n' \
            'publish = {{ topic = "s/{0}/{{client}}", qos = 0, payload = "10 B", interval = "1 s" }}\n'
    told = sentence(FLEET + "".join(group.format(number) for number in range(30)))
    assert len(told) <= LENGTH_MAX and told.startswith("312 devices of 31 groups publish")


def test_the_list_of_recordings_has_the_p99_and_what_was_not_delivered(fleet: Path) -> None:
    result = CliRunner().invoke(main, ["list", "--runs", str(fleet.parent)])
    head, row, *_ = result.stdout.splitlines()
    assert "p99 ms" in head and "not delivered" in head
    [flow] = metrics.headline(Recording.open(fleet)).flows
    value = flow.latency["p99"].value
    assert value is not None and f" {value:.3g} " in row and " 0 % " in row


def test_a_page_begins_with_the_answer_and_sums_up_many_links(fleet: Path, tmp_path: Path) -> None:
    page = write_html(Recording.open(fleet), tmp_path / "page.html").read_text()
    assert page.index("each behind its own LTE-M link") < page.index("p99 latency") < page.index("Messages by QoS")
    # Of 24 links the sum, the devices' distribution and the worst; not a row for each.
    assert "all 25 links" in page or "all 24 links" in page
    assert "over devices" in page and "The 10 worst: least delivered, then slowest" in page
    assert "The 10 links that dropped most" in page
    assert page.count('<td class="text">field-') == 10
    # Links of the network layer, too; no other table has a row for each.
    assert "The links that sent most again" in page and page.count("<tr>") < 150
    assert "the lateness below" not in page


def test_the_object_for_programs_has_the_headline(fleet: Path) -> None:
    result = CliRunner().invoke(main, ["report", str(fleet), "--json"])
    told = json.loads(result.stdout)["headline"]
    [flow] = told["flows"]
    [row] = [row for row in json.loads(result.stdout)["metrics"]
             if (row["scope"], row["metric"]) == ("groups", "latency_ms_p99")]
    assert flow["latency"]["p99"]["value"] == row["value"]
    assert told["bytes"][0]["group"] == "sensors" and told["timing"].startswith("simulated")
    documented = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "output.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in documented for name in (*told, *flow))


@pytest.mark.live
def test_the_headline_equals_the_tables_of_a_live_run(tmp_path: Path) -> None:
    (tmp_path / "live.toml").write_text(FLEET.replace('backend = "sim"', 'backend = "live"').replace("6 s", "3 s"))
    CliRunner().invoke(main, ["run", str(tmp_path / "live.toml"), "--runs", str(tmp_path / "runs"), "--no-html"])
    [run] = (tmp_path / "runs").glob("fleet-*")
    recording = Recording.open(run)
    held_together(recording)
    assert headline.told(recording).scenario.startswith("12 devices (sensors), each behind its own LTE-M link")


def test_the_headline_equals_the_tables_of_an_import(tmp_path: Path) -> None:
    table = tmp_path / "messages.csv"
    table.write_text("message,publisher,subscriber,topic,qos,payload_bytes,sent_ms,received_ms\n" + "".join(
        f"{number},a,b,t,1,20,{number * 5},{number * 5 + 7}\n" for number in range(1, 41)))
    words = ["import", "log", str(table), "--output", str(tmp_path / "imported"), "--no-html"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code in (0, 6), result.output
    recording = Recording.open(tmp_path / "imported")
    held_together(recording)
    assert "Imported from" in headline.told(recording).scenario
    # The sentence stands once on a page.
    assert recording.plan["description"] and headline.described(recording) == ""
    if headline.told(recording).verdict == "valid":
        assert headline.told(recording).timing.startswith("as captured over 2")


def test_messages_that_were_never_sent_are_a_sentence_and_no_flow_to_nobody(tmp_path: Path) -> None:
    """It was a flow "devices → nobody known", with "0 sent; no delivery was expected"."""
    from mqttlab.dashboard.pages import overview

    never = [Message(number, fate="unsent", latency_ms=None, subscriber=None) for number in (1, 2)]
    write(tmp_path / "run", [Message(0), *never])
    recording = Recording.open(tmp_path / "run")
    told = headline.told(recording)
    [flow], [words] = headline.parted(told.numbers.flows)
    assert (flow.sent, flow.never_sent) == (1, False)
    assert words.endswith(": 2 messages were never sent (no connection, or the client's queue was full).")
    assert sum(one.unsent for one in told.numbers.flows) == 2
    printed = lines(told)
    assert any(line.startswith("not sent ") for line in printed)
    page, shown = cards.section(recording), repr(overview.part(recording))
    for surface in ("\n".join(printed), page, shown):
        assert "never sent" in surface and "nobody known" not in surface and "no known subscriber" not in surface


def test_of_many_links_those_with_the_most_bytes_come_first_with_the_sum_of_all() -> None:
    links = pl.DataFrame({"link": [f"l{number:02}" for number in range(50)], "frames": [2] * 50,
                          "bytes": [number * 37 % 50 for number in range(50)], "frames_dropped": [1] * 50})
    shown = network.busiest(links, 40)
    assert shown["bytes"].to_list() == list(range(49, 9, -1))
    assert "all together: 100 frames, 1,225 B, 50 dropped" in network.left_out(links, shown, "shown")
    assert network.busiest(links, 50).equals(links) and not network.left_out(links, links, "shown")


def test_numbers_are_written_as_in_the_documents() -> None:
    # A narrow space between thousands is as wide in a terminal as the one between two numbers.
    assert [written(value) for value in (2657, 1585.4, -43_488, 999)] == ["2,657", "1,585", "-43,488", "999"]
    assert counted(2400, "message") == "2,400 messages"


def test_the_terminal_has_the_columns_of_the_report(fleet: Path) -> None:
    told = headline.told(Recording.open(fleet))
    flow = told.numbers.flows[0]
    several = dataclasses.replace(told, numbers=dataclasses.replace(told.numbers, flows=(flow, flow, flow)))
    [head] = [line for line in lines(several) if line.startswith("flow")]
    assert head.split() == ["flow", "p99", "ms", "missing", "p95", "p50", "worst", "sent"]
    assert max(map(len, lines(several))) <= WIDTH


def test_the_unit_of_a_devices_bytes_is_spelled_at_one_place() -> None:
    """It was kB/h on some surfaces and kB/device/h on others."""
    package = Path(metrics.__file__).parents[1]
    spelling = re.compile(r"kB/(device/)?h")
    found = [path.relative_to(package) for path in package.rglob("*.py") if spelling.search(path.read_text("utf-8"))]
    assert found == [Path("metrics/catalogue.py")]
    docs = package.parents[1] / "docs"
    assert not [path for path in docs.rglob("*.md") if "kB/h" in path.read_text("utf-8")]


ORDERED = FLEET.replace("count = 12", "count = 2").replace('filter = "s/+"', 'filter = "#"') + """
[[groups]]
name = "actuators"
host = "field"
publish = { topic = "a", qos = 0, payload = "10 B", interval = "1 s" }
[[groups]]
name = "burners"
host = "field"
publish = { topic = "b", qos = 0, payload = "10 B", interval = "1 s" }
"""


def test_groups_stand_in_the_order_of_the_scenario_everywhere(tmp_path: Path) -> None:
    """Flows were sorted by name, bytes as the scenario has them; terminal and page put the worst flow first."""
    run = perform(Job(compile_plan(parse(ORDERED)), tmp_path / "run"), lambda line: None)
    assert run.verdict == "complete", run.reason
    recording = Recording.open(tmp_path / "run")
    publishing = ["sensors", "actuators", "burners"]
    told = headline.told(recording)
    assert [flow.publishers for flow in told.numbers.flows] == publishing
    assert [group.group for group in told.numbers.bytes] == publishing
    assert [line.split(" ")[0] for line in lines(told) if " → " in line and "QoS" in line][:3] == publishing
    assert metrics.application(recording, ("publisher_group",))["publisher_group"].to_list() == publishing
    assert metrics.application(recording, ("subscriber_group", "qos"))["qos"].to_list() == [0, 1]
    by_group = metrics.network(recording, ("group",))["name"].to_list()
    assert list(dict.fromkeys(by_group)) == ["sensors", "dashboard", "actuators", "burners"]
    page = cards.section(recording)
    assert [page.index(f"{name} →") for name in publishing] == sorted(page.index(f"{name} →") for name in publishing)
    # Of more flows than there is room for, the worst.
    flow = told.numbers.flows[0]
    flows = [dataclasses.replace(flow, undelivered_percent=float(share)) for share in range(5)]
    assert [one.undelivered_percent for one in headline.shown(flows, 3)] == [4, 3, 2]
    assert [one.undelivered_percent for one in headline.shown(flows, 5)] == [0, 1, 2, 3, 4]


def test_what_was_never_sent_is_among_what_was_to_arrive(tmp_path: Path) -> None:
    text = FLEET.replace("up.loss = \"2 %\"\ndown.loss = \"2 %\"\n", "") + """
[[events]]
at = "2 s"
for = "2 s"
group = "sensors"
share = "50 %"
do = "vanish"
"""
    job = Job(compile_plan(parse(text)), tmp_path / "run")
    assert perform(job, lambda line: None).verdict == "complete"
    told = headline.told(Recording.open(tmp_path / "run"))
    [flow] = [one for one in told.numbers.flows if one.subscribers == "dashboard"]
    # Each message has one receiver.
    unsent = sum(one.unsent for one in told.numbers.flows)
    assert unsent > 0 and flow.wanted == flow.expected + unsent
    assert headline.undelivered(flow).endswith(f"not delivered: {written(unsent)} never sent")
    [card] = [card for card in cards.cards(flow, told) if card.title == "not delivered"]
    assert card.more == f"{written(flow.delivered)} of {written(flow.wanted)} delivered"
