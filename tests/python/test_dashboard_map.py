"""The map of a run: places from the recording, the topology where there are none; links and messages by time."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")

from dashboards import Visitor, dashboard, simulate, visitor
from mqttlab.dashboard import maps
from mqttlab.dashboard.drawing import drawn
from mqttlab.recording import Recording
from unchecked import without_checks

SCHEMA = {"at_ns": pl.Int64, "host": pl.UInt16, "client": pl.UInt32, "source": pl.String, "link": pl.UInt16,
          "x_m": pl.Float64, "y_m": pl.Float64, "longitude_deg": pl.Float64, "latitude_deg": pl.Float64,
          "altitude_m": pl.Float64}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs")
    for name in ("plain", "abroad", "hall"):
        simulate(directory, name, qos=1, rate="20 /s", link={"loss": "5 %"})
    # A publisher sails from Oslo to Horten while the run goes on; in the hall it crosses the floor.
    track = [(at * 100_000_000, 10.7 - at * 0.01, 59.9 - at * 0.02) for at in range(20)]
    pl.DataFrame([{"at_ns": at, "client": 0, "source": "payload", "longitude_deg": x, "latitude_deg": y}
                  for at, x, y in track], schema=SCHEMA).write_parquet(directory / "abroad" / "positions.parquet")
    pl.DataFrame([{"at_ns": 0, "host": 0, "source": "station", "x_m": 0.0, "y_m": 0.0},
                  *({"at_ns": at, "host": 1, "source": "station", "x_m": at / 1e8, "y_m": 3.0} for at, _, _ in track)],
                 schema=SCHEMA).write_parquet(directory / "hall" / "positions.parquet")
    for name in ("abroad", "hall"):
        without_checks(directory / name)
    return directory


def test_servers_of_an_import_are_on_no_host_of_its_plan(runs: Path) -> None:
    recording = Recording.open(runs / "plain")
    plan = dict(recording.plan)
    plan["servers"] = [{name: value for name, value in server.items() if name != "host"} for server in plan["servers"]]
    recording.__dict__["plan"] = plan
    assert maps.told(recording)["nodes"] and all(drawn(plan))


def test_places_are_the_recordings_and_links_carry_what_was_sent(runs: Path) -> None:
    told = {name: maps.told(Recording.open(runs / name)) for name in ("plain", "abroad", "hall")}
    assert {name: one["kind"] for name, one in told.items()} == {
        "plain": "topology", "abroad": "geographic", "hall": "plane"}
    [sailing] = [node for node in told["abroad"]["nodes"] if node["role"] == "client"]
    assert sailing["name"] == "publishers-0" and sailing["path"][0] == [0.0, 10.7, 59.9] and len(sailing["path"]) == 20
    assert told["hall"]["nodes"][1]["path"][-1] == [1.9, 19.0, 3.0]
    recording = Recording.open(runs / "plain")
    links = told["plain"]["links"]
    for name, part in recording.packets.partition_by("link", as_dict=True).items():
        slices = links[str(name[0])]["slices"]
        assert sum(row[4] for row in slices) == part.height
        assert sum(row[3] for row in slices) == part.filter(pl.col("fate").cast(pl.String) == "dropped").height > 0
    sent = recording.messages.filter(pl.col("sent_ns").is_not_null())
    assert len(told["plain"]["messages"]) == sent.height and told["plain"]["messages"][0][2:4] == [1, 1]


def test_the_engines_own_places_are_those_of_clients_and_stations(tmp_path: Path) -> None:
    # Three trackers on one host are three nodes, each at its own place; the reader knows none.
    trackers = Recording.open(simulate(tmp_path, "trackers", payload="gps", count=3, topic="g/{client}", rate="10 /s"))
    told = maps.told(trackers)
    assert told["kind"] == "geographic"
    clients = [node for node in told["nodes"] if node["role"] == "client"]
    assert [node["name"] for node in clients] == ["publishers-0", "publishers-1", "publishers-2"]
    assert len({tuple(node["path"][0][1:]) for node in clients}) == 3
    [field] = [node for node in told["nodes"] if node["name"] == "field"]
    assert "amid the places" in field["words"] and field["path"][0][1] == pytest.approx(
        sum(node["path"][0][1] for node in clients) / 3, abs=1e-5)
    # Their messages come from them.
    assert {told["nodes"][message[2]]["name"] for message in told["messages"]} == {node["name"] for node in clients}
    walking = maps.told(Recording.open(simulate(
        tmp_path, "walking", hosts=("a", "b"), radio={"mobility": {"speed": ["1 m/s", "5 m/s"]}})))
    assert walking["kind"] == "plane"
    tracks = {node["name"]: node["path"] for node in walking["nodes"] if node["path"]}
    assert {"a", "b", "broker"} <= set(tracks) and len({tuple(place[1:]) for place in tracks["a"]}) > 1


def test_many_messages_are_thinned_and_it_is_said(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "MESSAGES_SHOWN", 5)
    told = maps.told(Recording.open(runs / "plain"))
    assert 0 < len(told["messages"]) <= 5 and "are drawn, evenly chosen" in told["words"]


@pytest.fixture(scope="module")
def somebody(runs: Path) -> Iterator[Visitor]:
    with dashboard(runs) as served, visitor(served) as found:
        yield found


def test_names_stand_at_their_nodes_however_late_the_style_of_the_map_comes(somebody: Visitor) -> None:
    page = somebody.page.context.new_page()
    page.route("**/leaflet.css", lambda route: (time.sleep(1), route.continue_()))
    page.goto(f"{somebody.base}/map?run=hall")
    for host in ("field", "broker"):
        name = page.locator(".map-name").filter(has_text=host)
        name.wait_for()
        box, around = name.bounding_box(), page.locator(".map-place").bounding_box()
        assert box is not None and around is not None and box["width"] < around["width"] / 4
        # Its mark ends right above it.
        marks = page.locator(".map-place path.leaflet-interactive").evaluate_all(
            "paths => paths.map(path => path.getBoundingClientRect()).map(at => [at.left + at.width / 2, at.bottom])")
        assert any(abs(x - box["x"] - box["width"] / 2) < 3 and abs(y - box["y"]) < 12 for x, y in marks), host
    page.close()


@pytest.mark.parametrize(("run", "kind", "words"), [
    ("plain", "topology", "this is the topology"), ("abroad", "geographic", "as clients have published"),
    ("hall", "plane", "in metres")])
def test_the_map_moves(somebody: Visitor, run: str, kind: str, words: str) -> None:
    page = somebody.page
    somebody.go(f"/map?run={run}")
    page.locator(f".map-place[data-drawn={kind}]").wait_for()
    # What is drawn is named beside the map.
    legend = page.get_by_label("Legend").get_by_role("listitem").all_inner_texts()
    assert "server" in legend and "message under way, delivered" in legend
    assert page.get_by_text(re.compile(words)).is_visible()
    # The first of the map's marks that has a place; every one in the hall, the ship abroad.
    marks = page.locator(".map-place path.leaflet-interactive")
    before = marks.evaluate_all("paths => paths.map(path => path.getAttribute('d'))")
    page.get_by_label("Speed").select_option(label="10 times slower")
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.wait_for_function("() => Number(document.querySelector('.map-now').textContent.split(' ')[0]) > "
                           "Number(document.getElementById('map-time').min) + 0.05")
    page.get_by_role("button", name="Pause").click()
    slider = page.get_by_label("Time", exact=True)
    # From the beginning, wherever playing has come to meanwhile; at an instant no message may be under way.
    slider.press("Home")
    at = page.locator(".map-now").inner_text()
    seen = []
    for _ in range(40):
        slider.press("ArrowRight")
        seen.append(marks.evaluate_all("paths => paths.map(path => path.getAttribute('d'))"))
    assert page.locator(".map-now").inner_text() != at
    assert all(len(after) >= 4 for after in seen) and any(before[:len(after)] != after for after in seen)
    page.get_by_label("Messages", exact=True).fill("no such topic")
    page.get_by_text("0 messages under way.").wait_for()
    # The address keeps what is looked at.
    page.wait_for_url(re.compile(r"(?=.*[?&]at=)(?=.*speed=0\.1)(?=.*messages=no\+such\+topic)"))
    at = page.locator(".map-now").inner_text()
    page.reload()
    page.locator(f".map-place[data-drawn={kind}]").wait_for()
    assert page.locator(".map-now").inner_text() == at
    assert page.get_by_label("Messages", exact=True).input_value() == "no such topic"
    assert page.get_by_label("Speed").input_value() == "0.1"
    assert somebody.elsewhere == set() and somebody.problems == []


@pytest.mark.parametrize("width", [320, 400])
@pytest.mark.parametrize("run", ["plain", "abroad", "hall"])
def test_the_map_is_as_wide_as_a_telephone(somebody: Visitor, run: str, width: int) -> None:
    page = somebody.page
    page.set_viewport_size({"width": width, "height": 860})
    for path in (f"/map?run={run}", f"/run/{run}?part=map"):
        somebody.go(path)
        page.locator(".map-place[data-drawn]").wait_for()
        page.locator(".map-place path.leaflet-interactive").first.hover(force=True)
        assert page.evaluate("document.documentElement.scrollWidth") == width, path
