"""The table of runs: groups with statistics, figures of a selection, tags, notes, views, and running again."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")

from dashboards import queue_below
from mqttlab.catalog import Catalog, url_for
from mqttlab.catalog.place import url_of
from mqttlab.dashboard import run_sets
from mqttlab.dashboard import store as store_module
from mqttlab.dashboard.actions import Actions
from mqttlab.dashboard.jobs import Jobs
from mqttlab.dashboard.pages import runs
from mqttlab.dashboard.pages.runs import selected
from mqttlab.dashboard.run_annotations import views
from mqttlab.dashboard.store import Store
from mqttlab.runs import Job, perform, summary_of
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from mqttlab.statistics import mean_interval
from short_scenarios import scenario
from test_dashboard_jobs import ended
from test_dashboard_pages import text_of

TOML = """
name = "again"
backend = "sim"
network = "direct"
[phases]
duration = "1 s"
[[groups]]
name = "p"
host = "a"
publish = { topic = "t", payload = "20 B", rate = "10 /s" }
[[groups]]
name = "s"
host = "b"
subscribe = ["t"]
"""


def table() -> pl.DataFrame:
    """Twelve runs: two networks, two levels of QoS, three seeds; one is not valid."""
    rows = [{"run": f"r{n}", "started": str(n), "verdict": "not valid" if n == 11 else "valid", "name": "x",
             "network": ("a", "b")[n % 2], "qos": str(n // 2 % 2), "seed": n // 4, "latency_ms_p99": 10.0 * n}
            for n in range(12)]
    return pl.DataFrame(rows)


def test_groups_have_their_number_of_runs_and_the_mean_with_its_interval() -> None:
    names, rows, keys = run_sets.grouped(run_sets.counted(table(), False), ["network", "qos"])
    assert keys == [row[:2] for row in rows]
    assert names == ["network", "qos", "n", "latency_ms_p99"]
    assert sorted((row[0], row[1], row[2]) for row in rows) == [
        ("a", "0", 3), ("a", "1", 3), ("b", "0", 3), ("b", "1", 2)]
    cell = next(row[3] for row in rows if row[:2] == ["a", "0"])
    found = mean_interval([0.0, 40.0, 80.0])
    assert cell.startswith("40 ± ") and "(0 – 80)" in cell and f"{found.high - 40:.2g}"[:2] in cell
    assert sum(row[1] for row in run_sets.grouped(run_sets.counted(table(), True), ["network"])[1]) == 12
    assert run_sets.varied(table()) == ["network", "qos"]


FIRST_ROWS = {"startRow": 0, "endRow": 100}


def test_the_runs_of_an_experiment_are_one_row_that_opens() -> None:
    runs_of = table().with_columns(run=pl.when(pl.col("seed") == 0).then(pl.col("run")).otherwise(
        pl.format("qos/runs/{}", "run")))
    shown = runs.rows(runs_of, FIRST_ROWS, {})
    assert shown["rowCount"] == 5
    [row] = [row for row in shown["rowData"] if row["runs"]]
    # The mean of the valid runs; settings that are not the same in all have no value.
    assert row["run"] == "qos" and row["latency_ms_p99"] == sum(10 * n for n in range(4, 11)) / 7
    assert row["name"] == "x" and row["network"] is None and row["verdict"] == "1 of 8 not valid"
    assert row["href"] == "/experiment/qos" and row["fold"] == "/?open=qos" and row["words"] == "8 runs"
    assert len(row["runs"]) == 8
    opened = runs.rows(runs_of, {**FIRST_ROWS, "sortModel": [{"colId": "latency_ms_p99", "sort": "desc"}]},
                       {"open": "qos", "pin": "qos"})["rowData"]
    assert [one["run"].rpartition("/")[2] for one in opened] == [
        "qos", *(f"r{n}" for n in range(11, 3, -1)), "r3", "r2", "r1", "r0"]
    assert opened[0]["fold"] == "/?pin=qos"
    # Who searches or filters looks for a run.
    assert runs.rows(runs_of, FIRST_ROWS, {"search": "x"})["rowCount"] == 12
    filtered = {**FIRST_ROWS, "filterModel": {"qos": {"filterType": "text", "type": "equals", "filter": "1"}}}
    assert runs.rows(runs_of, filtered, {})["rowCount"] == 6
    assert runs.rows(table(), FIRST_ROWS, {})["rowCount"] == 12


def test_the_answer_stands_first_and_the_catalog_may_be_elsewhere(tmp_path: Path) -> None:
    from mqttlab import metrics
    from mqttlab.recording import Recording

    hosts = {"hosts": {"field": {"count": 2}}, "networks": [{"between": ["field", "broker"], "model": "lte"}]}
    values = scenario(1)
    values.pop("network", None)
    plan = compile_plan(parse_values({**values, **hosts, "groups": [
        {"name": "sensors", "host": "field", "count": 2, "publish": {
            "topic": "t", "payload": "20 B", "rate": "10 /s"}},
        {"name": "all", "host": "broker", "subscribe": ["t"]}]}))
    assert perform(Job(plan, tmp_path / "runs" / "one"), lambda line: None).verdict == "complete"
    elsewhere = url_of(str(tmp_path / "other.db"))
    with Catalog.open(elsewhere) as catalog:
        catalog.scan([tmp_path / "runs"])
    assert "latency_ms_p99" not in Store(tmp_path / "runs").runs().columns
    assert "latency_ms_p99" not in Store(tmp_path / "runs", "none").runs().columns
    store = Store(tmp_path / "runs", elsewhere)
    [row] = store.runs().rows(named=True)
    [flow] = metrics.headline(Recording.open(tmp_path / "runs" / "one")).flows
    [sensors] = [group for group in metrics.headline(Recording.open(tmp_path / "runs" / "one")).bytes
                 if group.group == "sensors"]
    assert row["latency_ms_p99"] == flow.latency["p99"].value and row["undelivered_percent"] == 0
    assert row["ip_kb_per_device_hour_up"] == pytest.approx(sensors.ip_up)
    titles = [column["headerName"] for column in runs.columns(store.runs(), False)]
    assert titles[:5] == ["run", "p99 (ms)", "not delivered (%)", "kB/device/h up", "kB/device/h down"]
    # What is said of a run is kept there, too.
    assert say(Actions(Jobs(tmp_path / "runs", tmp_path / "queue", elsewhere), store), "tag", text="kept",
               runs=["one"]) == "kept: 1 tagged."
    assert not (tmp_path / "runs" / "catalog.db").exists()


def test_settings_stand_in_their_order_whatever_ran_first(tmp_path: Path) -> None:
    losses = pl.Series(["10 %", "0 %", None, "5 %"] * 3)
    runs = table().with_columns(loss=losses)
    assert [row[0] for row in run_sets.grouped(runs, ["loss"])[1]] == ["0 %", "5 %", "10 %", "–"]
    scatter = run_sets.drawn(Store(tmp_path), "scatter", runs, {"x": "loss", "colour": "qos"})
    assert scatter is not None and scatter.layout.xaxis.categoryarray == ["0 %", "5 %", "10 %"]
    assert [trace.name for trace in scatter.data] == ["0", "1"]
    boxes = run_sets.drawn(Store(tmp_path), "box", runs, {"colour": "loss"})
    assert boxes is not None and [trace.name for trace in boxes.data] == ["0 %", "5 %", "10 %", "–"]
    lines = run_sets.drawn(Store(tmp_path), "parallel", runs.select("run", "verdict", "loss", "latency_ms_p99"), {})
    assert lines is not None and lines.layout.xaxis.ticktext[0] == "loss<br>0 % –<br>10 %"
    assert [lines.data[0].y[at] for at in (0, 3, 9)] == [1.0, 0.0, 0.5]


def test_a_search_finds_the_runs_of_a_group_and_no_others() -> None:
    named = pl.when(pl.col("network") == "a").then(pl.lit("it's"))
    runs = table().with_columns(name=pl.lit("two words"), network=named)
    _, rows, keys = run_sets.grouped(runs, ["name", "network"])
    for row, key in zip(rows, keys, strict=True):
        search = " ".join(f"{name}={shlex.quote(value)}" for name, value in zip(("name", "network"), key, strict=True))
        assert selected(runs, {"search": search}).height == row[2] == 6, search
    # A quotation that is not ended yet is a search all the same.
    assert selected(runs, {"search": "it's"}).height == 6 and selected(runs, {"search": 'name="two'}).height == 0


@pytest.mark.parametrize("by", [["no such"], [], ["network"]])
def test_a_page_groups_by_what_there_is(by: list[str], tmp_path: Path) -> None:
    plan = compile_plan(parse_values(scenario(1)))
    assert perform(Job(plan, tmp_path / "one"), lambda line: None).verdict == "complete"
    with Catalog.open(url_for(tmp_path)) as catalog:
        catalog.scan([tmp_path])
    shown = text_of(runs.page(Store(tmp_path), {"group": ",".join(by)}))
    assert ("Groups of runs" in shown) == (by == ["network"]) and "runs-figures" in shown
    assert "Save this view" in shown and "Only what differs" in shown


@pytest.mark.parametrize("name", run_sets.FIGURES)
@pytest.mark.parametrize("query", [{}, {"x": "qos", "y": "latency_ms_p99", "colour": "network"},
                                   {"x": "no such", "y": "none", "colour": "<img>"}, {"runs": "r1,r2"}])
def test_figures_draw_what_is_selected(name: str, query: dict[str, str], tmp_path: Path) -> None:
    if name in ("cdf", "tail"):
        assert query.get("runs") or run_sets.drawn(Store(tmp_path), name, table(), query) is None
        return
    figure = run_sets.drawn(Store(tmp_path), name, table(), query)
    assert figure is not None
    if name == "scatter":
        drawn = {run for trace in figure.data for run in trace.customdata}
        # The one that is not valid is drawn only when it is selected or asked for.
        assert drawn == (set(query["runs"].split(",")) if "runs" in query else {f"r{n}" for n in range(11)})
    assert run_sets.drawn(Store(tmp_path), name, table().head(0), query) is None
    assert run_sets.drawn(Store(tmp_path), name, table().drop("latency_ms_p99"), query) is None


def test_distributions_are_of_all_deliveries_of_the_selected(tmp_path: Path) -> None:
    for seed in (1, 2):
        plan = compile_plan(parse_values({**scenario(1), "seed": seed}))
        assert perform(Job(plan, tmp_path / f"r{seed}"), lambda line: None).verdict == "complete"
    for name in ("cdf", "tail"):
        figure = run_sets.drawn(Store(tmp_path), name, table(), {"runs": "r1,r2"})
        assert figure is not None and [trace.name for trace in figure.data] == ["r1", "r2"]
    assert run_sets.drawn(Store(tmp_path), "cdf", table(), {"runs": ",".join(f"r{n}" for n in range(9))}) is None


@pytest.fixture
def runs_of(tmp_path: Path) -> Iterator[tuple[Store, Jobs, Actions]]:
    with queue_below(tmp_path) as queue:
        directory = tmp_path / "runs"
        plan = compile_plan(parse_values({**scenario(1), "name": "one"}))
        assert perform(Job(plan, directory / "one"), lambda line: None).verdict == "complete"
        store, jobs = Store(directory), Jobs(directory, queue.directory)
        yield store, jobs, Actions(jobs, store)


def say(actions: Actions, name: str, **told: object) -> str:
    return actions.perform({"name": name, "value": json.dumps(told)})


def test_runs_are_tagged_and_found_again_and_notes_are_kept(runs_of: tuple[Store, Jobs, Actions]) -> None:
    store, _, actions = runs_of
    assert say(actions, "tag", text="kept=<b>yes</b>", runs=["one"]) == "kept: 1 tagged."
    assert store.runs()["tag.kept"].to_list() == ["<b>yes</b>"]
    assert runs.selected(store.runs(), {"search": "tag.kept=<b>yes</b>"})["run"].to_list() == ["one"]
    assert say(actions, "note", text="why it was run", runs=["one"]) == "The note is kept."
    with Catalog.open(url_for(store.directory), read_only=True) as catalog:
        assert catalog.notes()["text"].to_list() == ["why it was run"]
    assert runs.selected(store.runs(), {"search": "kept=<b>yes</b>"})["run"].to_list() == ["one"]
    say(actions, "untag", tag="kept", runs=["one"])
    assert "tag.kept" not in store.runs().columns
    # A tag without a value is seen by its name, and found by it.
    say(actions, "tag", text="nightly", runs=["one"])
    assert store.runs()["tag.nightly"].to_list() == ["nightly"]
    assert runs.selected(store.runs(), {"search": "nightly"})["run"].to_list() == ["one"]


@pytest.mark.parametrize("told", [
    {"text": "x", "runs": ["../one"]}, {"text": "x", "runs": ["none"]}, {"text": "", "runs": ["one"]},
    {"text": "x" * 99, "runs": ["one"]}, {"text": "x", "runs": []}, {"text": "x", "runs": "one"}, {"text": 3}, {}])
def test_what_cannot_be_said_is_refused_in_words(runs_of: tuple[Store, Jobs, Actions], told: dict[str, object]) -> None:
    store, _, actions = runs_of
    words = say(actions, "tag", **told)
    assert "tagged" not in words and words
    assert actions.perform({"name": "tag", "value": "not json"}) == "that is no value"
    assert not (store.directory / "one" / "annotations.json").exists()


def test_a_view_is_an_address_that_is_kept_under_a_name(runs_of: tuple[Store, Jobs, Actions]) -> None:
    store, _, actions = runs_of
    state = "?search=one&group=qos&pin=seed"
    say(actions, "save-view", text="mine", state=state)
    assert (views(store) == {"mine": state} and state.replace("&", "\\u0026")) or state in text_of(runs.page(store, {}))
    assert say(actions, "save-view", text="bad", state="javascript:alert(1)") == "that is no view"
    say(actions, "drop-view", view="mine")
    assert views(store) == {}


def test_a_run_is_run_again_with_what_was_replaced(runs_of: tuple[Store, Jobs, Actions]) -> None:
    store, jobs, actions = runs_of
    assert "does not have the scenario" in actions.perform({"name": "again", "value": "one"})
    [identifier] = jobs.start(TOML)
    first = ended(jobs, identifier)
    origin = first.directory / "origin.json"
    told = json.loads(origin.read_text(encoding="utf-8"))
    told["scenario"]["settings"] = {"seed": 7}
    origin.write_text(json.dumps(told), encoding="utf-8")
    run = str(jobs.run_of(first))
    assert "in the queue" in actions.perform({"name": "again", "value": run})
    [again] = [job for job in jobs.queue.jobs(all_=True) if job.identifier != identifier]
    ended(jobs, again.identifier)
    store.forget()
    assert sorted(store.runs().filter(name="again")["seed"]) == [1, 7]
    told["scenario"]["settings"] = {"servers[0].program.command": ["id"]}
    origin.write_text(json.dumps(told), encoding="utf-8")
    assert "cannot be set from the browser" in actions.perform({"name": "again", "value": run})


def test_a_list_made_anew_reads_only_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def written(place: Path, **ended: object) -> None:
        place.mkdir(parents=True)
        (place / "plan.json").write_text(json.dumps({"name": place.name, "backend": "sim"}), encoding="utf-8")
        if ended:
            (place / "run.json").write_text(json.dumps(ended), encoding="utf-8")

    read: list[str] = []
    monkeypatch.setattr(store_module, "LISTED_FOR_S", -1.0)
    monkeypatch.setattr(store_module, "summary_of", lambda place: read.append(place.name) or summary_of(place))
    for number in range(20):
        written(tmp_path / f"r{number}", started_at="2026-01-01T00:00:00Z", validity={"valid": number > 0})
    written(tmp_path / "some" / "runs" / "deep", started_at="2026-01-01T00:00:00Z")
    store = Store(tmp_path)
    assert store.runs().height == len(read) == 21
    assert store.runs().filter(verdict="not valid")["run"].to_list() == ["r0"]
    assert store.runs().filter(name="deep")["run"].to_list() == ["some/runs/deep"]
    assert store.place("some/runs/deep") == tmp_path / "some" / "runs" / "deep"
    # Nobody writes into a run that is complete: only the directories above it are asked whether they have changed.
    asked: list[str] = []
    monkeypatch.setattr(store_module, "_when", lambda place: asked.append(place) or Path(place).stat().st_mtime_ns)
    assert store.runs().height == 21
    assert asked == [str(tmp_path), str(tmp_path / "some"), str(tmp_path / "some" / "runs")]
    written(tmp_path / "new")
    read.clear()
    assert store.runs().height == 22 and read == ["new"]
    written(tmp_path / "some" / "runs" / "deeper", started_at="2026-01-01T00:00:00Z")
    assert store.runs().height == 23
    shutil.rmtree(tmp_path / "some" / "runs" / "deeper")
    assert store.runs().height == 22
    (tmp_path / "new" / "run.json").write_text("{}", encoding="utf-8")
    (tmp_path / "r1" / "plan.json").write_text("{", encoding="utf-8")
    assert store.runs().height == 21, "what is no plan any more is no run"
