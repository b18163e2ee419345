"""What happens on a radio channel while a run goes on, live and simulated: interferers, silent and moved stations."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from live import in_both
from mqttlab.plan.events import changes
from mqttlab.recording import Recording
from mqttlab.scenario import compile_plan, parse_values
from short_scenarios import scenario

pytestmark = pytest.mark.live(runs=3)
SECOND = 1_000_000_000
PHASES = {"warm_up": "1 s", "duration": "8 s", "cool_down": "20 s"}
RADIO = {"positions": [["0 m", "0 m"], ["20 m", "0 m"], ["0 m", "20 m"]]}
OVEN = {"name": "oven", "position": ["10 m", "0 m"], "power": "20 dBm", "starts": "off"}


def on_air(events: list[dict[str, Any]], **radio: Any) -> dict[str, Any]:
    return scenario(1, rate="20 /s", hosts=("field", "far"), phases=PHASES, radio={**RADIO, **radio}, events=events)


SCENARIOS = {
    "interferer": on_air([{"at": "2 s", "for": "2 s", "interferer": "oven", "do": "switch-on"}], interferers=[OVEN]),
    "silence": on_air([{"at": "2 s", "for": "2 s", "station": "field", "do": "radio-off"}]),
    "elsewhere": on_air([{"at": "2 s", "for": "2 s", "station": "field", "position": ["900 m", "0 m"]}]),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Recording]]:
    return in_both(SCENARIOS, tmp_path_factory.mktemp("air"), 3)


def happened(recording: Recording) -> dict[str, int]:
    """When each event took place, by name."""
    rows = recording.events.filter(pl.col("kind").cast(pl.String) == "change")
    return dict(zip(rows["detail"].to_list(), rows["at_ns"].to_list(), strict=True))


def sent_by(recording: Recording, host: str) -> pl.Series:
    """When a station's frames on the air began."""
    frames = recording.packets.filter(pl.col("link") == "radio", pl.col("from_host") == host)
    return frames["start_ns"].drop_nulls().sort()


@pytest.mark.parametrize(("name", "begins", "ends"), [
    ("interferer", "oven is switched on", "oven is switched off"),
    ("silence", "field falls silent", "field speaks again"),
    ("elsewhere", "field moves to 900, 0 m", "field back in its place")])
def test_an_event_lasts_two_seconds_and_all_messages_arrive_after_it(
    runs: dict[str, dict[str, Recording]], name: str, begins: str, ends: str,
) -> None:
    for recording in runs[name].values():
        took_place = happened(recording)
        assert list(took_place) == [begins, ends]
        start, end = took_place[begins], took_place[ends]
        assert abs(end - start - 2 * SECOND) < SECOND
        # TCP sends again what was due meanwhile.
        fates = recording.messages["fate"].cast(pl.String)
        assert set(fates.unique()) <= {"delivered", "duplicate"}
        during = recording.messages.filter(pl.col("intended_ns").is_between(start + SECOND // 10, end - SECOND))
        assert during.height > 10
        assert during["latency_ns"].min() > SECOND // 2  # type: ignore[operator]


def test_nobody_sends_beside_an_interferer_or_with_the_radio_off(runs: dict[str, dict[str, Recording]]) -> None:
    for name, (begins, ends) in {"interferer": ("oven is switched on", "oven is switched off"),
                                 "silence": ("field falls silent", "field speaks again")}.items():
        for recording in runs[name].values():
            took_place = happened(recording)
            start, end = took_place[begins], took_place[ends]
            # Live, the row of an event may be later than the event by some milliseconds.
            inside = sent_by(recording, "field").is_between(start, end - SECOND // 5)
            assert inside.sum() == 0, name


def test_a_station_out_of_reach_sends_in_vain(runs: dict[str, dict[str, Recording]]) -> None:
    for recording in runs["elsewhere"].values():
        took_place = happened(recording)
        inside = recording.packets.filter(
            pl.col("link") == "radio", pl.col("from_host") == "field",
            pl.col("start_ns").is_between(took_place["field moves to 900, 0 m"] + SECOND // 10,
                                          took_place["field back in its place"] - SECOND // 5))
        assert set(inside["cause"].unique()) == {"unreachable"}
        stands = recording.positions.filter(pl.col("host") == 1).sort("at_ns")
        assert list(zip(stands["x_m"], stands["y_m"], strict=True)) == [(20, 0), (900, 0), (20, 0)]


def test_the_changes_of_a_plan_have_their_ends() -> None:
    for values in SCENARIOS.values():
        events = compile_plan(parse_values(values))["events"]
        found = changes(events, [event["at_ns"] for event in events])
        assert [(change.at_ns, change.until_ns) for change in found] == [(3 * SECOND, 5 * SECOND)]


def test_stations_are_named_as_hosts_are() -> None:
    values = on_air([{"at": "1 s", "station": "field-2", "do": "radio-off"},
                     {"at": "2 s", "station": "field", "do": "radio-on"}])
    del values["radio"]["positions"]
    values["hosts"] = {"field": {"count": 3}}
    values["groups"][0]["count"] = 3
    first, second = compile_plan(parse_values(values))["events"]
    assert [first["change"], second["change"]] == [
        {"kind": "stations_off", "stations": [3]}, {"kind": "stations_on", "stations": [1, 2, 3]}]
