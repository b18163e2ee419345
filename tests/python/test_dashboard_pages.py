"""What stands on the dashboard's pages: the report's figures and numbers, and nothing else."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")

from mqttlab import metrics
from mqttlab.catalog import Catalog, url_for
from mqttlab.dashboard import comparisons, downloads, panels, run_figures, run_tables
from mqttlab.dashboard.address import Listen
from mqttlab.dashboard.comparisons import FIGURES, Comparisons
from mqttlab.dashboard.pages import compare, instant, message, messages, run, runs, studies
from mqttlab.dashboard.panels import answer, themed, twin
from mqttlab.dashboard.server import Dashboard
from mqttlab.dashboard.store import SCHEMA, Store, UnknownRun
from mqttlab.figures import style
from mqttlab.figures.drawing import trace
from mqttlab.recording import Recording
from mqttlab.report import headline
from mqttlab.report.comparison import several
from mqttlab.runs import Job, perform
from mqttlab.runs.instant import state_at
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from mqttlab.studies.catalogue import known
from recordings import Message, write
from short_scenarios import scenario
from test_dashboard_access import SECRET, Browser


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    runs_directory = tmp_path_factory.mktemp("runs")
    for seed in (1, 2):
        plan = compile_plan(parse_values({**scenario(2), "seed": seed}))
        assert perform(Job(plan, runs_directory / f"seed-{seed}"), lambda line: None).verdict == "complete"
    return Store(runs_directory)


def text_of(component: Any) -> str:
    return json.dumps(component.to_plotly_json() if hasattr(component, "to_plotly_json") else component,
                      default=lambda part: part.to_plotly_json())


def test_a_run_opens_with_its_headline(store: Store) -> None:
    page = text_of(run.page(store, "seed-1", {}))
    told = headline.told(store.recording("seed-1"))
    assert json.dumps(told.scenario)[1:-1] in page and "worst latency" in page
    for flow in told.numbers.flows:
        assert json.dumps(headline.title(flow))[1:-1] in page and json.dumps(
            headline.milliseconds(flow.latency["max"].value))[1:-1] in page


def test_a_run_that_is_not_valid_says_why_once_and_has_its_numbers_near(tmp_path: Path) -> None:
    """Reasons stood in the notice and again above the cards: on a telephone p99 was on the third screen."""
    reasons = ["the emulator was 157.286399 ms late", "the senders were 195.035135 ms late", "no real-time priority"]
    write(tmp_path / "late", [Message(0), Message(1)], validity={"valid": False, "reasons": reasons})
    page = text_of(run.page(Store(tmp_path), "late", {}))
    assert "Not valid" in page and "2 more reasons" in page
    for words in ("the emulator was 157 ms late", "the senders were 195 ms late", "no real-time priority"):
        assert page.count(words) == 1, words


@pytest.mark.parametrize("part", [*run.PARTS, "no-such-part"])
def test_every_part_of_a_run_has_its_verdict(store: Store, part: str) -> None:
    page = text_of(run.page(store, "seed-1", {"part": part}))
    assert "notice valid" in page


def test_every_figure_of_the_report_is_drawn_and_its_csv_is_what_it_shows(store: Store) -> None:
    recording = store.recording("seed-1")
    drawn = {one.name: one.draw(recording, None) for page in run.PARTS for one in run_figures.of_page(recording, page)}
    missing = {name for name, figure in drawn.items() if figure is None}
    # A simulation has no broker process to be sampled, and does not tell the state of its TCP unless asked.
    assert missing <= {"resources", "congestion-windows", "outstanding-bytes"}
    assert {"latency-over-time", "latency-cdf", "link-utilisation", "parts-by-qos", "round-trips-over-time",
            "throughput-0"} <= set(drawn)
    shown = twin(drawn["latency-over-time"])
    samples = metrics.deliveries(recording)
    assert sorted(shown["latency (ms)"].to_list()) == pytest.approx(sorted(samples["latency_ms"].to_list()))


def test_a_simulated_run_is_stopped_and_looked_into_and_stepped(store: Store) -> None:
    recording = store.recording("seed-1")
    first = state_at(recording.plan, 0.5)
    assert first["at_ns"] == 500_000_000 and first["next_event_at_ns"] > first["at_ns"]
    shown = text_of(instant.part(recording, "seed-1", {"at": "0.5"}))
    assert "0.500000000 s" in shown and "TCP sockets" in shown and "Sessions at servers" in shown
    assert f"at={first['next_event_at_ns'] / 1e9:.9f}" in shown
    after = state_at(recording.plan, first["next_event_at_ns"] / 1e9)
    assert after["events"] > first["events"] and after["at_ns"] == first["next_event_at_ns"]
    for asked in ("", "x", "-1", "nan", "1e99"):
        assert "run time" in text_of(instant.part(recording, "seed-1", {"at": asked})), asked
    # Beyond the end everything is over.
    over = state_at(recording.plan, 1e6)
    assert over["phase"] == "over" and over["counts"]["delivered"] == recording.clients["delivered"].sum()


def test_figures_over_time_have_the_runs_time(store: Store) -> None:
    recording = store.recording("seed-1")
    shown = twin(run_figures.named("latency-over-time").draw(recording, None))  # type: ignore
    intended = recording.messages.filter(pl.col("phase") == "measurement")["intended_ns"]
    assert shown["run time of intended sending (s)"].min() == pytest.approx(intended.min() / 1e9)  # type: ignore


def test_looking_closer_draws_what_lies_within_alone(store: Store) -> None:
    recording = store.recording("seed-1")
    figure = run_figures.named("latency-over-time")
    assert figure is not None
    times = twin(figure.draw(recording, None))["run time of intended sending (s)"]  # type: ignore
    low, high = float(times.quantile(0.4) or 0), float(times.quantile(0.6) or 0)
    closer = twin(figure.draw(recording, (low, high)))["run time of intended sending (s)"]  # type: ignore
    assert 0 < closer.len() < times.len() and closer.is_between(low, high).all()
    assert figure.draw(recording, (1e6, 2e6)) is None


def test_tables_are_those_of_metrics(store: Store) -> None:
    recording = store.recording("seed-1")
    table = run_tables.named(recording, "messages-by-qos")
    assert table is not None and table.rows.equals(metrics.application(recording))
    assert run_tables.named(recording, "no-such-table") is None


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_figure_is_told_with_its_title_and_twin_and_without_webgl(store: Store, theme: str) -> None:
    drawn = run_figures.named("latency-over-time").draw(store.recording("seed-1"), None)  # type: ignore
    told = json.loads(answer(drawn, theme, over_time=True, shown=(0, 1)))  # type: ignore
    assert told["title"] == "Latency of each delivery"
    assert told["twin"]["total"] == metrics.deliveries(store.recording("seed-1")).height
    assert {trace["type"] for trace in told["figure"]["data"]} == {"scatter"}
    assert told["figure"]["layout"]["xaxis"]["range"] == [0, 1]
    assert "scattergl" in {trace.type for trace in drawn.data}, "the report's figure is not to be changed"  # type: ignore


def test_a_dark_ground_has_light_ink() -> None:
    black = style.blank("bars", "x", "y").add_trace(trace("scatter", x=[0], y=[0], line={"color": "#000000"}))
    black.add_trace(trace("bar", x=[0], y=[0], marker={
        "color": ["#0072B2", "#E69F00"], "line": {"color": "#0072B2"}}))
    black.add_line("y", 1, {"color": "#A5123A"}, {"text": "bound", "font": {"color": "#A5123A"}})
    before = black.to_json()
    dark = themed(black, "dark")
    assert dark.data[0].line.color == "#FFFFFF"
    assert dark.data[1].marker.color == [style.DARK["#0072B2"], "#E69F00"] != black.data[1].marker.color
    assert dark.layout.shapes[0].line.color == dark.layout.annotations[0].font.color == style.DARK["#A5123A"]
    assert black.to_json() == before and "#0072B2" not in dark.to_json()


def _contrast(colour: str, ground: str) -> float:
    def luminance(of: str) -> float:
        parts = [int(of[at:at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (x / 12.92 if x <= 0.03928 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((luminance(colour), luminance(ground)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_colour_of_a_series_can_be_seen_on_the_dark_ground() -> None:
    ground = "#18212b"
    sheet = Path(panels.__file__).parent / "assets" / "dashboard.css"
    assert f"--panel: {ground}" in sheet.read_text(encoding="utf-8")
    for colour in {*style.QOS_COLOURS.values(), *style.SERIES_COLOURS, *style.PART_COLOURS.values()}:
        assert _contrast(style.DARK.get(colour, colour), ground) > 3.4, colour
    shown = [style.DARK.get(colour, colour) for colour in style.SERIES_COLOURS]
    assert len(set(shown)) == len(shown)


def test_messages_are_found_by_topic_client_and_fate(tmp_path: Path) -> None:
    write(tmp_path / "one", [Message(sequence=1), Message(sequence=2, latency_ms=None, fate="lost")])
    recording = Recording.open(tmp_path / "one")
    names = recording.layout["clients"].names
    everything = messages.chosen(recording.messages, names, {})
    assert everything.height == recording.messages.height
    assert messages.chosen(recording.messages, names, {"topic": "no such topic"}).is_empty()
    assert messages.chosen(recording.messages, names, {"client": "no such client"}).is_empty()
    assert messages.chosen(recording.messages, names, {"client": names[0]}).height == everything.height
    fates = recording.messages["fate"].unique().to_list()
    found = [messages.chosen(recording.messages, names, {"fate": fate}).height for fate in fates]
    assert sum(found) == recording.messages.height


def test_the_runs_are_listed_filtered_and_sorted_by_the_server(store: Store) -> None:
    table = store.runs()
    assert set(table["run"]) == {"seed-1", "seed-2"} and set(table["verdict"]) == {"valid"}
    assert runs.selected(table, {"search": "seed=2"})["run"].to_list() == ["seed-2"]
    assert runs.selected(table, {"search": "SEED-1 sim"})["run"].to_list() == ["seed-1"]
    assert runs.selected(table, {"search": "(["}).is_empty()
    asked = {"startRow": 0, "endRow": 1, "sortModel": [{"colId": "seed", "sort": "desc"}], "filterModel": {
        "seed": {"filterType": "number", "type": "lessThan", "filter": 5}}}
    found = runs.rows(table, asked)
    assert found["rowCount"] == 2 and [row["run"] for row in found["rowData"]] == ["seed-2"]
    assert found["rowData"][0]["href"] == "/run/seed-2"
    differing = [column["field"] for column in runs.columns(table, True)]
    assert "seed" in differing and "backend" not in differing and "run" in differing


def test_ten_thousand_runs_are_filtered_and_sorted_within_a_moment() -> None:
    rows = 10_000
    table = pl.DataFrame({"run": [f"run-{n}" for n in range(rows)], "seed": list(range(rows))}).with_columns(
        pl.lit(None, dtype=kind).alias(name) for name, kind in SCHEMA.items() if name not in ("run", "seed"))
    asked = {"startRow": 100, "endRow": 200, "sortModel": [{"colId": "seed", "sort": "desc"}], "filterModel": {
        "run": {"filterType": "text", "type": "contains", "filter": "9"}}}
    found = runs.rows(runs.selected(table, {"search": "run"}), asked)
    expected = sorted((n for n in range(rows) if "9" in str(n)), reverse=True)
    assert found["rowCount"] == len(expected)
    assert [row["seed"] for row in found["rowData"]] == expected[100:200]


def test_no_runs_and_a_broken_run_are_said(tmp_path: Path) -> None:
    assert "no recordings" in text_of(runs.page(Store(tmp_path), {}))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "plan.json").write_text("{", encoding="utf-8")
    assert Store(tmp_path).runs().is_empty()
    with pytest.raises(UnknownRun, match="no run 'none'"):
        Store(tmp_path).recording("none")


def test_a_run_that_has_ended_meanwhile_is_read_again(tmp_path: Path) -> None:
    write(tmp_path / "one", [Message(sequence=1)])
    store = Store(tmp_path)
    first = store.recording("one")
    assert store.recording("one") is first
    (tmp_path / "one" / "run.json").touch()
    assert store.recording("one") is not first


def test_csv_of_a_figure_reads_as_the_same_numbers(store: Store) -> None:
    drawn = run_figures.named("latency-cdf").draw(store.recording("seed-1"), None)  # type: ignore
    rows = twin(drawn)  # type: ignore
    again = pl.read_csv(io.StringIO(rows.write_csv()))
    assert again.height == rows.height and again.columns == rows.columns


def test_two_runs_are_compared_as_the_command_line_does(store: Store) -> None:
    from mqttlab.comparison import compare as compare_runs
    from mqttlab.report.comparison import tables

    sides = Comparisons(store)
    shown = text_of(compare.page(store, sides, {"first": "seed-1", "second": "seed-2"}))
    expected = compare_runs(str(store.place("seed-1")), str(store.place("seed-2")))
    for row in tables.metrics(expected)[1]:
        assert json.dumps(row[2])[1:-1].replace("\\", "\\\\") in shown or row[2] in shown, row
    assert "Choose two sides" in text_of(compare.page(store, sides, {}))
    assert "Choose two sides" in text_of(compare.page(store, sides, {"first": "seed-1"}))
    with pytest.raises(UnknownRun):
        compare.page(store, sides, {"first": "seed-1", "second": "../seed-2"})


def test_groups_are_compared_and_what_cannot_be_is_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sides = Comparisons(store)
    both = {"first_search": "name=kind", "second": "seed-1,seed-2"}
    shown = text_of(compare.page(store, sides, both))
    assert "2 runs each, compared in pairs" in shown and "equivalent" in shown
    assert "the first of 2 pairs" in shown and "does not have the scenario" in shown
    drawn = {name: sides.drawn(name, both) for name in FIGURES}
    assert all(figure is not None for figure in drawn.values()), drawn
    bars = drawn["latency-ms-mean-by-qos"]
    assert bars is not None and [trace.name for trace in bars.data] == ["1: name=kind", "2: 2 runs"]
    means = [metrics.application(store.recording(run))["latency_ms_mean"][0] for run in ("seed-1", "seed-2")]
    assert list(bars.data[0].y) == pytest.approx([sum(means) / 2]) and list(bars.data[0].x) == ["QoS 2"]
    for figure in drawn.values():
        assert figure is not None and twin(figure).height > 0
    assert sides.of(both) is sides.of(both) and sides.drawn("none", both) is None
    said = text_of(compare.page(store, sides, {"first_search": "name=none", "second": "seed-1"}))
    assert "no run is found" in said and "First: or all" in said
    monkeypatch.setattr(comparisons, "RUNS_MAX", 1)
    assert "at most 1 are compared" in text_of(compare.page(store, sides, both))


def test_more_than_two_sides_are_compared_as_in_the_terminal(store: Store) -> None:
    """The page had room for two."""
    sides, three = Comparisons(store), {"first": "seed-1", "second": "seed-2", "third_search": "name=kind"}
    shown = text_of(compare.page(store, sides, three))
    found = sides.of(three)
    assert found is not None and len(found.comparisons) == 2
    said = several.said(found.comparisons)
    assert len(said.sentences) == 2 and all(json.dumps(words)[1:-1] in shown for words in said.sentences)
    assert "Each against the first" in shown and "Third: name=kind, 2 runs" in shown
    bars, cdf = sides.drawn("latency-ms-mean-by-qos", three), sides.drawn("latency-cdf", three)
    assert bars is not None and [trace.name for trace in bars.data] == ["1: seed-1", "2: seed-2", "3: name=kind"]
    assert cdf is not None and [trace.name for trace in cdf.data] == [
        f"{side}, QoS 2" for side in ("first", "second", "third")]
    assert len({trace.line["dash"] for trace in cdf.data}) == 3
    # What is of two sides is a step away, and not drawn here.
    assert sides.drawn("quantile-shifts", three) is None
    assert "/compare?first=seed-1&second_search=name%3Dkind" in shown
    # A third side without a second is the second.
    two = {"first": "seed-1", "third": "seed-2"}
    assert text_of(compare.page(store, sides, two)) == text_of(
        compare.page(store, sides, {"first": "seed-1", "second": "seed-2"}))
    assert len(re.findall(r'"children": "Swap[^"]*"', shown)) == 2
    assert '"children": "Swap with the first"' not in text_of(compare.page(store, sides, two))


def test_all_groups_are_compared_at_once(store: Store) -> None:
    table = store.runs()
    three = pl.concat([table.head(1).with_columns(seed=pl.lit(seed, table.schema["seed"])) for seed in (1, 2, 3)])
    shown = text_of(runs._groups(three, ["seed"], {"reference": "1"}))
    assert "Compare all groups" in shown
    assert "/compare?first_search=seed%3D2&second_search=seed%3D1&third_search=seed%3D3" in shown
    assert "Compare all groups" not in text_of(runs._groups(three.head(2), ["seed"], {})), "two have a link each"


def test_frames_are_given_out_as_a_capture_of_the_run_or_of_a_message(
        store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = Dashboard(store.directory, Listen.read("127.0.0.1:0"), SECRET, tmp_path / "queue")
    try:
        browser = Browser(served)
        whole = browser.get("/data/run/seed-1/capture.pcapng")
        assert whole.status_code == 200 and whole.data[:4] == b"\x0a\x0d\x0d\x0a"
        row = store.recording("seed-1").messages.filter(fate="delivered").row(5, named=True)
        named = f"{row['publisher']}:{row['sequence']}@{row['subscriber']}"
        part = browser.get(f"/data/run/seed-1/capture.pcapng?message={named}")
        assert part.status_code == 200 and 200 < len(part.data) < len(whole.data)
        for wrong in ("0:99999@1", "x", "0:1", "-1:1@1", "0:1@1;ls"):
            assert browser.get(f"/data/run/seed-1/capture.pcapng?message={wrong}").status_code == 404, wrong
        monkeypatch.setattr(downloads, "CAPTURE_FRAMES_MAX", 1)
        refused = browser.get("/data/run/seed-1/capture.pcapng")
        assert refused.status_code == 404 and "too many to be waited for" in refused.text
    finally:
        served.end()


def test_the_catalogs_metrics_and_tags_stand_beside_the_runs(tmp_path: Path) -> None:
    for name in ("one", "deep/two"):
        plan = compile_plan(parse_values({**scenario(1), "name": "kind"}))
        assert perform(Job(plan, tmp_path / name), lambda line: None).verdict == "complete"
    before = Store(tmp_path).runs()
    assert "latency_ms_p99" not in before.columns and before["run"].to_list() == ["one"]
    with Catalog.open(url_for(tmp_path)) as catalog:
        catalog.scan([tmp_path])
        catalog.tag(tmp_path / "one", {"nightly": ""})
    after = Store(tmp_path).runs()
    assert set(after["run"]) == {"one", "deep/two"}
    expected = metrics.application(Recording.open(tmp_path / "one"), ())["latency_ms_p99"][0]
    assert after.filter(run="one")["latency_ms_p99"][0] == pytest.approx(expected)
    assert "tag.nightly" in after.columns and after.filter(run="deep/two")["verdict"][0] == "valid"
    assert runs.rows(after, {"startRow": 0, "endRow": 9})["rowCount"] == 2
    assert Store(tmp_path).recording("deep/two").complete
    (tmp_path / "catalog.db").write_bytes(b"no database")
    assert Store(tmp_path).runs()["run"].to_list() == ["one"]


@pytest.mark.parametrize("name", [*known()])
def test_a_studys_claims_have_the_verdicts_of_its_results(name: str, tmp_path: Path) -> None:
    results = studies.read_results(known()[name].directory / "results.md")
    verdicts = studies._verdicts(results)
    assert set(verdicts) <= set(studies.SIGNS)
    shown = text_of(studies.one(Store(tmp_path), name))
    for word, sign in studies.SIGNS.items():
        assert shown.count(json.dumps(json.dumps(sign))[3:-3]) >= verdicts.count(word), word
    assert "Scenarios behind the cells" in shown and name in text_of(studies.page())
    with pytest.raises(UnknownRun):
        studies.one(Store(tmp_path), "none")


def test_the_slowest_messages_stand_first_and_a_point_of_a_figure_is_a_message(store: Store) -> None:
    recording = store.recording("seed-1")
    shown = text_of(messages.part(recording, "seed-1", {"part": "recent", "order": "slowest"}))
    rows = shown.partition("The slowest messages")[2]
    slowest = recording.messages["latency_ns"].drop_nulls().unique().sort(descending=True).head(5)
    places = [rows.index(f"{latency / 1e6:.3f}") for latency in slowest]
    assert places == sorted(places) and "order=slowest" in shown
    assert "The latest messages" in text_of(messages.part(recording, "seed-1", {"order": "no such"}))
    drawn = run_figures.named("latency-over-time").draw(recording, None)  # type: ignore
    for trace_of in drawn.data:
        for at, latency in list(zip(trace_of.x, trace_of.y, strict=True))[::10]:
            name = message._at(recording, str(at), str(latency))
            [publisher, sequence, subscriber] = map(int, name.replace("@", ":").split(":"))
            [row] = recording.messages.filter(publisher=publisher, sequence=sequence, subscriber=subscriber).rows(
                named=True)
            assert row["intended_ns"] == pytest.approx(at * 1e9, abs=1000)
            assert row["latency_ns"] == pytest.approx(latency * 1e6, abs=1)
    assert message._at(recording, "1e9", "3") == message._at(recording, "x", "") == ""
    assert "cannot be explained" in text_of(message.part(recording, "seed-1", {"at": "nan", "latency": "1"}))
