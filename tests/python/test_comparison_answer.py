"""The first sentence of a comparison and its table: flows lined up by their roles, numbers those of the headlines."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from commands import mqttlab
from mqttlab import comparison, metrics
from mqttlab.comparison import Change, Comparison, change, words_of_change
from mqttlab.recording import Recording
from mqttlab.report.comparison import document, several, write_comparison
from mqttlab.report.comparison.answer import Answer, answer, figure, rest, table
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan, parse
from mqttlab.scenario.load import parse_values
from recordings import Message, write
from test_console import numbers_of_tables, tables_fit
from test_mqtt_sn import scenario as behind_a_gateway

FLEET = """
name = "fleet"
backend = "sim"
seed = 7
[phases]
duration = "10 s"
cool_down = "20 s"
[[networks]]
between = ["field", "broker"]
model = "lte"
link = "each"
[[groups]]
name = "sensors"
host = "field"
count = 5
publish = { topic = "t/{client}", qos = 0, payload = "100 B", rate = "2 /s" }
[[groups]]
name = "dashboard"
host = "broker"
subscribe = [{ filter = "t/#", qos = 0 }]
"""
QOS_1 = {"groups[0].publish.qos": 1, "groups[1].subscribe[0].qos": 1}


def run(directory: Path, changes: dict[str, Any] | None = None, repetition: int = 0, text: str = FLEET) -> Path:
    plan = compile_plan(parse(text, "fleet", changes or {}), repetition)
    assert perform(Job(plan, directory), lambda event: None).verdict == "complete"
    return directory


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``qos0`` and ``qos1`` of three runs each; groups, host and topics of the second have other names."""
    made = tmp_path_factory.mktemp("fleet")
    renamed = FLEET.replace("sensors", "meters").replace("dashboard", "screen").replace("t/", "m/").replace(
        "field", "site")
    for repetition in range(3):
        run(made / "qos0" / str(repetition), {"repetitions": 3}, repetition)
        run(made / "qos1" / str(repetition), {**QOS_1, "repetitions": 3}, repetition, renamed)
    return made


def compared(first: Path, second: Path) -> tuple[Comparison, Answer]:
    found = comparison.compare(str(first), str(second))
    return found, answer(found)


def test_qos_0_and_qos_1_are_one_flow_whatever_groups_and_topics_are_called(place: Path) -> None:
    """Before, each flow was there twice, once with no first and once with no second: no difference at all."""
    found, told = compared(place / "qos0", place / "qos1")
    [role] = found.roles.flows
    assert (role.first, role.second) == (
        ("sensors", None, "dashboard", 0), ("meters", None, "screen", 1))
    assert role.title == "sensors or meters → dashboard or screen, QoS 0 and 1"
    assert [(factor.first, factor.second) for factor in told.factors] == [("QoS 0", "QoS 1")]
    assert told.sentence.startswith("QoS 1 against QoS 0: p99 ")
    assert "more bytes up (+" in told.sentence and told.sentence.endswith("; nothing lost in either.")
    assert told.unmatched == () and "compared in pairs" in told.basis
    rows = {row.metric: row for row in found.rows if " to " in row.scope}
    assert rows["latency_ms_p99"].first and rows["latency_ms_p99"].second and rows["latency_ms_p99"].verdict
    assert found.shifts and all(shift.flow == role.title for shift in found.shifts)


def test_sentence_table_and_headlines_have_the_same_numbers(place: Path) -> None:
    """Each cell is the mean of what the headlines of these runs say, and the sentence has the cell's change."""
    found, told = compared(place / "qos0", place / "qos1")
    numbers = [[metrics.headline(Recording.open(each)) for each in sorted((place / side).iterdir())]
               for side in ("qos0", "qos1")]
    up = [sum(one.bytes[0].ip_up or 0 for one in side) / 3 for side in numbers]
    [row] = [row for row in table(told.differing)[1] if row[1] == "kB/device/h up"]
    assert row[3:5] == tuple(figure("ip_kb_per_device_hour_up", mean) for mean in up)
    assert f"{100 * (up[1] / up[0] - 1):.0f} % more bytes up" in told.sentence
    assert f"{up[1] / up[0] - 1:+.0%}"[:-1] in row[2]
    for one in found.headlines:
        if one.measure.startswith("latency_ms"):
            name = one.measure.removeprefix("latency_ms_")
            assert list(one.change.first) == [run.flows[0].latency[name].value for run in numbers[0]]
    sizes = [one.change.size for one in told.differing]
    assert sizes == sorted(sizes, reverse=True) and sizes
    said = " ".join(rest(told))
    assert "not delivered 0 %, sent" in said


def test_one_run_each_is_said_to_be_too_few(place: Path) -> None:
    found, told = compared(place / "qos0" / "0", place / "qos1" / "0")
    assert told.basis.startswith("One run each: too few to tell a difference from chance.")
    p99 = [figure("latency_ms_p99", metrics.headline(side.recordings[0]).flows[0].latency["p99"].value)
           for side in (found.first, found.second)]
    assert f"p99 {p99[1]} instead of {p99[0]} ms" in told.sentence
    again = compared(place / "qos0" / "0", place / "qos0" / "0")[1]
    assert again.sentence.startswith("The same settings on both sides: p99 ") and not again.differing


def test_terminal_page_and_json_have_the_one_sentence(place: Path, tmp_path: Path) -> None:
    first, second = str(place / "qos0"), str(place / "qos1")
    found, told = compared(place / "qos0", place / "qos1")
    short, whole = mqttlab("compare", first, second), mqttlab("compare", first, second, "--full")
    assert short.stdout.startswith(told.sentence.split("(")[0]) and "Hodges" not in short.stdout
    assert "Hodges" in whole.stdout and "The plans differ in" in whole.stdout
    data = json.loads(mqttlab("compare", first, second, "--json").stdout)
    assert data["answer"] == told.sentence == document(found)["answer"] and data["factors"][0]["name"] == "QoS"
    assert {row["state"] for row in data["headlines"]} >= {"differs", "same"}
    page = write_comparison(found, tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.index(told.sentence) < page.index("Every metric</summary>")


def test_another_network_and_a_list_of_settings_are_named(place: Path, tmp_path: Path) -> None:
    run(tmp_path / "slow", {"networks[0].model": "nb-iot"})
    _, told = compared(place / "qos0" / "0", tmp_path / "slow")
    assert [factor.name for factor in told.factors] == ["network"] and "link against LTE link: p99 " in told.sentence
    run(tmp_path / "other", {"groups[0].count": 7, "groups[0].publish.payload": "1 kB", "mqtt.keep_alive": "20 s",
                             "mqtt.version": "5"})
    _, told = compared(place / "qos0" / "0", tmp_path / "other")
    assert {factor.name for factor in told.factors} == {"version", "payload", "clients", "keep-alive"}
    assert "2 more settings differ" in told.sentence
    # Bytes of another load differ on purpose.
    assert "bytes" not in told.sentence


def test_mqtt_sn_against_mqtt(tmp_path: Path) -> None:
    """The same publisher once behind a gateway, and once with a broker alone."""
    values = {**behind_a_gateway(mode="transparent", qos=1), "backend": "sim"}
    assert perform(Job(compile_plan(parse_values(values)), tmp_path / "sn"), lambda line: None).verdict == "complete"
    run(tmp_path / "mqtt", QOS_1)
    found, told = compared(tmp_path / "mqtt", tmp_path / "sn")
    assert ("MQTT", "MQTT-SN") in [(factor.first, factor.second) for factor in told.factors]
    assert told.sentence.startswith("MQTT-SN") and " against MQTT" in told.sentence
    assert found.roles.matched or told.unmatched


def test_a_side_that_is_not_valid_or_delivered_nothing_is_said_first(place: Path, tmp_path: Path) -> None:
    write(tmp_path / "good", [Message(i, 10 + i % 3) for i in range(40)])
    write(tmp_path / "late", [Message(i, 12) for i in range(40)], validity={"valid": False, "reasons": ["too late"]})
    _, told = compared(tmp_path / "good", tmp_path / "late")
    assert told.cautions == ("late (second) is not valid: too late",)
    printed = mqttlab("compare", str(tmp_path / "good"), str(tmp_path / "late")).stdout
    assert printed.startswith(told.cautions[0])
    write(tmp_path / "none", [Message(i, None, fate="lost", cause="overtaken") for i in range(40)])
    _, told = compared(tmp_path / "good", tmp_path / "none")
    assert "no latency to compare" in told.sentence and "100 % not delivered instead of 0 %" in told.sentence
    assert ("not delivered", "0 %", "100 %") in [(row[1], *row[3:]) for row in table(told.differing)[1]]
    assert mqttlab("compare", str(tmp_path / "good"), str(tmp_path / "none")).returncode == 0


def test_what_has_no_partner_is_named(tmp_path: Path) -> None:
    """Two subscribing groups against one: nobody says which of the two it is, but the one of the same name."""
    write(tmp_path / "one", [Message(i, 10, subscriber=1) for i in range(40)])
    write(tmp_path / "two", [*(Message(i, 10, subscriber=1) for i in range(40)),
                             *(Message(i, 30, subscriber=0) for i in range(40))])
    found, told = compared(tmp_path / "one", tmp_path / "two")
    assert len(found.roles.matched) == 1
    assert told.unmatched == ("Only in the second: publishers → publishers, QoS 0",)


def test_tables_of_comparisons_fit_into_a_log(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They were 200 columns wide in a file."""
    for words in ([place / "qos0", place / "qos1"], [place / "qos0" / "0", place / "qos1" / "0", place / "qos1" / "1"]):
        printed = {}
        for columns in ("", "70", "180"):
            monkeypatch.setenv("COLUMNS", columns)
            printed[columns] = mqttlab("compare", *words, "--full").stdout
            tables_fit(printed[columns], int(columns or 100))
        wide = set(numbers_of_tables(printed["180"]))
        assert len(wide) > 50 and wide <= set(numbers_of_tables(printed[""])) & set(numbers_of_tables(printed["70"]))


def test_messages_that_were_never_sent_are_no_flow_to_an_unknown_subscriber(tmp_path: Path) -> None:
    """It was "Only in the second: devices → no known subscriber"."""
    sent = [Message(i, 10) for i in range(40)]
    never = [Message(40 + i, fate="unsent", latency_ms=None, subscriber=None) for i in range(4)]
    write(tmp_path / "all", sent)
    write(tmp_path / "some", [*sent, *never])
    words = "messages of publishers that were never sent, QoS 0"
    assert compared(tmp_path / "all", tmp_path / "some")[1].unmatched == (f"Only in the second: {words}",)
    assert compared(tmp_path / "some", tmp_path / "all")[1].unmatched == (f"Only in the first: {words}",)
    both, _ = compared(tmp_path / "some", tmp_path / "some")
    assert [role.title for role in both.roles.flows if role.never_sent] == [words]
    # Nothing was sent on one side: the subscriber that the other side knows is the flow's.
    write(tmp_path / "nothing", never)
    found, _ = compared(tmp_path / "all", tmp_path / "nothing")
    [role] = found.roles.flows
    assert not role.never_sent and "no known subscriber" not in role.title and " or " not in role.title


@pytest.mark.live
def test_a_live_run_against_its_simulation(place: Path, tmp_path: Path) -> None:
    run(tmp_path / "live", {"backend": "live", "phases.duration": "3 s"})
    found, told = compared(place / "qos0" / "0", tmp_path / "live")
    assert told.factors[0].second == "live" and told.sentence.startswith("Live against simulated: ")
    assert len(found.roles.matched) == 1 and found.shifts


@pytest.mark.parametrize(("first", "second", "word", "words"), [
    ([100, 101, 99, 100], [100, 100, 101, 99], "same", "the same (−"),
    ([100, 101, 99, 100], [200, 202, 198, 200], "differs", "2 times as high (+"),
    ([100, 101, 99, 100], [80, 81, 79, 80], "differs", "20 % lower (−"),
    ([100, 150, 60, 90], [120, 60, 180, 100], "undecided", "no difference shown (115 against 100, −"),
    # Two runs that scatter: "−505 … +6912 %" is no interval of a ratio.
    ([0.02, 0.75], [0.15, 0.9], "undecided", "no difference shown (0.525 against 0.385)"),
    ([0, 0, 0], [0, 0, 0], "same", "the same"),
    ([0, 0, 0], [5, 5, 5], "differs", "5 instead of 0"),
    ([0, 0, 0], [5, 0, 0], "undecided", "1.67 instead of 0"),
    ([100], [130], "one run", "30 % higher"),
    ([], [5], "missing", "5 instead of –"),
])
def test_a_change_says_how_sure_it_is(first: list[float], second: list[float], word: str, words: str) -> None:
    found: Change = change(first, second)
    assert found.word == word
    assert words_of_change(found, "lower", "higher", lambda value: "–" if value is None else f"{value:.3g}").startswith(
        words)


def test_several_sides_are_each_compared_with_the_first(place: Path, tmp_path: Path) -> None:
    """A third side was refused: "Got unexpected extra argument"."""
    third = tmp_path / "qos2"
    for repetition in range(3):
        run(third / str(repetition), {"groups[0].publish.qos": 2, "groups[1].subscribe[0].qos": 2, "repetitions": 3},
            repetition)
    sides = [place / "qos0", place / "qos1", third]
    words = list(map(str, sides))
    printed = mqttlab("compare", *words)
    assert printed.returncode == 0, printed.stderr
    answers = [compared(sides[0], other)[1] for other in sides[1:]]
    lines = printed.stdout.splitlines()
    assert lines[:2] == [told.sentence for told in answers] and lines[1].startswith("QoS 2 against QoS 0: p99 ")
    data = json.loads(mqttlab("compare", *words, "--json").stdout)
    assert [each["answer"] for each in data["comparisons"]] == lines[:2] and len(data["sides"]) == 3
    up = next(row for row in data["table"] if row["measure"] == "ip_kb_per_device_hour_up")
    means = [sum(metrics.headline(Recording.open(each)).bytes[0].ip_up or 0 for each in sorted(side.iterdir())) / 3
             for side in sides]
    assert up["means"] == pytest.approx(means) and means == sorted(means)
    [row] = [line for line in lines if "kB/device/h up" in line]
    cells = [figure("ip_kb_per_device_hour_up", mean) for mean in means]
    assert [row.index(cell) for cell in cells] == sorted(row.index(cell) for cell in cells) and "%)" in row
    refused = mqttlab("compare", *words, "--by", "message")
    assert refused.returncode == 2 and "for two sides, but there are 3" in refused.stderr
    # The page was refused, too. It says the same, and has what belongs to two sides behind it.
    written = mqttlab("compare", *words, "--html", tmp_path / "page.html")
    assert written.returncode == 0 and written.stdout.splitlines()[:2] == lines[:2], written.stderr
    page = html.unescape((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.index(f"<h2>{lines[0]}</h2>") < page.index(f"<h2>{lines[1]}</h2>")
    table = page[:page.index(">All sides</h2>")]
    assert all(f">{label}</th>" in table for label in data["sides"]) and all(f">{cell}" in table for cell in cells)
    assert "Second against the first: " in page and "Third against the first: " in page
    headings = re.findall(r"<h2[ >]", page[page.index("<main>"):])
    assert len(headings) == 3, "two sentences and all sides: what is folded is not in the contents"
    drawn = re.findall(r'<div id="([^"]+)" class="plotly-graph-div"', page)
    assert len(drawn) == len(set(drawn)) and "sides-0" in drawn, "each figure has a name of its own"
    assert all(f'"name":"{side}, QoS {qos}"' in page for qos, side in enumerate(("first", "second", "third")))


def test_sides_of_one_name_are_numbered(place: Path) -> None:
    """Two columns had the same head."""
    other = comparison.side("qos", sorted((place / "qos1").iterdir()), "qos1")
    first = comparison.side("qos", sorted((place / "qos0").iterdir()), "qos0")
    made = [comparison.compare(first, other)] * 2
    assert several.labels(made) == ["1: qos", "2: qos", "3: qos"]


def test_the_time_to_connect_is_told_where_the_transport_differs_and_elsewhere_only_a_clear_change(
    place: Path, tmp_path: Path
) -> None:
    tls = {f"groups[{number}].transport": {"tls": {"version": "1.3"}} for number in (0, 1)}
    for repetition in range(3):
        run(tmp_path / "tls" / str(repetition), {"repetitions": 3, **tls}, repetition)
        run(tmp_path / "far" / str(repetition), {"repetitions": 3, "networks[0].model": "nb-iot"}, repetition)
    measures = ("connect_ms_p50", "connect_to_delivered_ms_p50")
    both, found = compared(place / "qos0", tmp_path / "tls")
    assert re.match(r"TLS 1\.3 against plain TCP: p\d\d? .*, p50 to connect .* times as high", found.sentence)
    rows = {row[1]: row for row in table(found.differing)[1]}
    assert rows["p50 ms to connect"][0] == "all clients" and "p50 ms to connect and deliver" in rows
    for one in both.headlines:
        if one.measure in measures:
            at = metrics.setup(both.second.recordings[0])[one.measure].item()
            assert one.change.second[0] == at and one.change.first[0] < at
    # At QoS 0 and 1 clients connect alike: nobody is told of it.
    same, found = compared(place / "qos0", place / "qos1")
    assert {one.measure for one in same.headlines} >= set(measures)
    assert "to connect" not in f"{found.sentence} {rest(found)} {table(found.differing)}"
    told = several.said([both, same])
    assert "p50 ms to connect" in {row[1] for row in several.table(told.rows, ["a", "b", "c"])[1]}
    # On another network they do not, which is in the table.
    _, found = compared(place / "qos0", tmp_path / "far")
    assert "to connect" not in found.sentence
    assert "p50 ms to connect" in {row[1] for row in table(found.differing)[1]}


def test_a_file_among_runs_is_left_out_by_name(place: Path, tmp_path: Path) -> None:
    """What a shell makes of ``runs/*``: the catalog stands beside the runs."""
    for number in range(2):
        shutil.copytree(place / "qos0" / str(number), tmp_path / "runs" / str(number))
    catalog = tmp_path / "runs" / "catalog.db"
    catalog.write_bytes(b"SQLite format 3\0" + bytes(84))
    words = [str(path) for path in sorted((tmp_path / "runs").iterdir())]
    said = mqttlab("compare", *words)
    assert said.returncode == 0 and "The same settings on both sides" in said.stdout
    assert f"mqttlab: warning: {catalog} left out: it is a database" in said.stderr
    # Alone beside a run it is a mistake, as before.
    assert mqttlab("compare", words[0], str(catalog)).returncode == 2
    # A pattern in quotes names it among what a side leaves out.
    (tmp_path / "runs" / "empty").mkdir()
    side = comparison.gather(f"{tmp_path}/runs/*")
    assert len(side.recordings) == 2
    assert side.left_out == ((catalog, "it holds no recording"), (tmp_path / "runs" / "empty", "it holds no recording"))
    said = mqttlab("compare", f"{tmp_path}/runs/*", words[0])
    assert "catalog.db left out: it holds no recording" in " ".join(said.stdout.split())
