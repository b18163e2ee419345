"""What followed from events, against answers that can be worked out by hand; and how it is told and drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner

from mqttlab import figures, metrics
from mqttlab.cli import main
from mqttlab.dashboard import live_figures, run_figures
from mqttlab.dashboard.watch import Followed, Watch
from mqttlab.experiments.responses import wrong
from mqttlab.figures.marks import DRAWN_MAX, NAMED_MAX, Mark, mark
from mqttlab.figures.style import blank
from mqttlab.recording import Recording
from mqttlab.report import changes, headline
from mqttlab.report.answer import lines
from mqttlab.report.html import page
from mqttlab.scenario.threshold import Measured
from recordings import Message, S, write


def link(name: str, at_s: float, kind: str, *links: str) -> dict[str, Any]:
    change = {"kind": kind, "queue": "drop"} if kind == "down" else {"kind": kind}
    return {"at_ns": int(at_s * S), "name": name, "links": list(links or ("up", "down")), "change": change}


def row(at_s: float, kind: str, detail: str | None = None, client: int | None = None) -> dict[str, Any]:
    return {"at_ns": int(at_s * S), "kind": kind, "client": client, "took_ns": None, "detail": detail}


def write_resources(directory: Path, used: list[tuple[float, float]]) -> None:
    """Samples of the server: when, and the processor time so far."""
    pl.DataFrame({
        "at_ns": [int(at * S) for at, _ in used], "process": ["server"] * len(used), "server": [0] * len(used),
        "cpu_user_s": [seconds for _, seconds in used], "cpu_system_s": [0.0] * len(used),
    }).write_parquet(directory / "resources.parquet")


def outage(directory: Path, **more: Any) -> Recording:
    """The link is down from 3 s to 5 s: 20 messages are lost, one comes late, the subscriber comes back after 0.5 s."""
    messages = [Message(number) for number in range(100)]
    messages[30:50] = [Message(number, None, fate="lost", cause="overtaken") for number in range(30, 50)]
    messages[50] = Message(50, 300)
    messages.append(Message(60, 20, fate="duplicate"))
    events = [row(0.1, "connack", client=1), row(3, "change", "wan down"), row(3.5, "disconnect", "reset", 1),
              row(5, "change", "wan up"), row(5.5, "connack", client=1), row(9.9, "close", client=0)]
    return Recording.open(write(directory, messages, **{
        "events": events, "planned": [link("wan down", 3, "down"), link("wan up", 5, "up")], **more}))


def test_what_followed_from_an_outage_is_counted(tmp_path: Path) -> None:
    [found] = metrics.changes(outage(tmp_path / "run")).rows(named=True)
    assert found == {
        "event": "wan down", "change_at_s": 3, "change_lasted_s": 2,
        # From the delivery at 2.91 s to that at 5.11 s, which overtook the one that was due at 5 s.
        "change_silence_s": pytest.approx(2.2),
        "change_flow_back_s_p50": pytest.approx(0.11), "change_flow_back_s_max": pytest.approx(0.11),
        "change_flows_not_back": 0, "change_undelivered": 20, "change_late": 1, "change_duplicates": 1,
        # The publisher closes its connection at 9.9 s, within the measurement: as planned, so that is no loss.
        "change_connections_lost": 1, "change_connects_per_s_max": 1, "change_reconnected_s_p50": pytest.approx(0.5),
        "change_reconnected_s_max": pytest.approx(0.5), "change_not_reconnected": 0,
        "change_backlog": 20, "change_backlog_through_s": None, "change_backlog_undelivered": 20,
        # Those of 5 s, 5.1 s and 5.2 s, of which the first took 0.3 s.
        "change_waiting_max": 2, "change_server_cpu_percent_max": None, "change_wills": None,
        "change_will_s_p50": None, "change_will_s_max": None, "change_retained_again": 0}


def test_an_event_ends_what_is_counted_of_the_one_before_it(tmp_path: Path) -> None:
    planned = [link("wan down", 3, "down"), link("wan up", 5, "up"), link("wan down", 6, "down"),
               link("wan up", 7, "up")]
    events = [row(3, "change", "wan down"), row(5, "change", "wan up"), row(6, "change", "wan down"),
              row(7, "change", "wan up")]
    table = metrics.changes(outage(tmp_path / "run", planned=planned, events=events))
    assert table["event"].to_list() == ["wan down", "wan down (2)"]
    assert table["change_undelivered"].to_list() == [20, 0]
    assert table["change_duplicates"].to_list() == [0, 1], "that of the message that was due at 6 s"
    assert table["change_connections_lost"].to_list() == [0, 0]
    summary = metrics.summary(Recording.open(tmp_path / "run"), tables=["changes"])
    known = {(name, metric): value for _, name, metric, value, _ in summary.rows()}
    assert (known["wan down", "change_undelivered"], known["wan down (2)", "change_at_s"]) == (20, 6)


def test_a_storm_is_counted_where_its_second_is_fullest_and_late_is_later_than_before(tmp_path: Path) -> None:
    # 30 clients come back: 10 at once, 12 over 0.9 s from 6.5 s on, and 8 later, one a second.
    back = [6.0] * 10 + [6.5 + 0.9 * n / 11 for n in range(12)] + [8.0 + n for n in range(8)]
    events = [row(3, "change", "wan down"), row(5, "change", "wan up")]
    events += [row(3.5, "disconnect", "reset", client) for client in range(30)]
    events += [row(at, "connack", client=client) for client, at in enumerate(back)]
    [found] = metrics.changes(outage(tmp_path / "run", events=events)).rows(named=True)
    # From 6.0 s to 7.0 s, without its end: ten, and those of 6.5 s + 0.082 s × n below 7 s.
    assert found["change_connects_per_s_max"] == 10 + sum(at < 7 for at in back[10:22])
    assert found["change_reconnected_s_max"] == pytest.approx(10), "in the cool-down, after the measurement's end"
    # That at 5 s alone took more than the others' 10 ms; nothing was due before an event at 0 s.
    assert found["change_late"] == 1
    planned = [link("wan down", 0, "down"), link("wan up", 5, "up")]
    early = outage(tmp_path / "early", planned=planned, events=[row(0, "change", "wan down"),
                                                                 row(5, "change", "wan up")])
    assert metrics.changes(early)["change_late"].to_list() == [None]


@pytest.mark.parametrize(("usual_ms", "took_ms", "is_late"), [
    # Whether a message of the event's window took more than 1 ms and more than 5 % longer than any before the event.
    (10, 10.006, False), (10, 11, False), (10, 11.1, True), (200, 209, False), (200, 210.1, True), (0.2, 1.1, False),
    (0.2, 1.3, True)])
def test_a_message_is_late_only_by_more_than_a_run_is_late_by_itself(
        usual_ms: float, took_ms: float, is_late: bool, tmp_path: Path) -> None:
    messages = [Message(number, usual_ms) for number in range(100)]
    messages[40] = Message(40, took_ms)
    events = [row(3, "change", "wan down"), row(5, "change", "wan up")]
    recording = Recording.open(write(tmp_path / "run", messages, events=events, planned=[
        link("wan down", 3, "down"), link("wan up", 5, "up")]))
    assert metrics.changes(recording)["change_late"].to_list() == [int(is_late)]


def test_an_event_that_never_ended_counts_from_its_begin(tmp_path: Path) -> None:
    recording = outage(tmp_path / "run", planned=[link("wan down", 3, "down")], events=[row(3, "change", "wan down")])
    [found] = metrics.changes(recording).rows(named=True)
    assert found["change_lasted_s"] is None
    assert found["change_flow_back_s_max"] == pytest.approx(2.11), "since the event, for it did not end"
    assert changes.sentence(recording) == "at 3 s wan down", "nothing waited for it"


def fleet(directory: Path, messages: list[Message], back: list[float | None], **more: Any) -> str:
    """What is said of clients that lose their connection in an outage from 3 s to 5 s and are back then."""
    events = [row(3, "change", "wan down"), row(5, "change", "wan up")]
    events += [row(3.5, "disconnect", "reset", client) for client in range(len(back))]
    events += [row(at, "connack", client=client) for client, at in enumerate(back) if at is not None]
    return changes.sentence(Recording.open(write(directory, messages, **{
        "events": events, "planned": [link("wan down", 3, "down"), link("wan up", 5, "up")], **more})))


def test_after_an_event_is_said_when_all_were_back_and_the_backlog_was_through(tmp_path: Path) -> None:
    """A publisher's interval of 4 s is no part of it: the flow is back after 3 s, and all was as before after 0.7 s."""
    messages = [Message(0), Message(20), Message(40, 1700, qos=1), Message(80)]
    said = fleet(tmp_path / "run", messages, [5.6, 4.0])
    assert said == ("at 3 s wan down for 2 s, all 2 connected again 600 ms after its end, the backlog was through 700 "
                    "ms after its end")
    [found] = metrics.changes(Recording.open(tmp_path / "run")).rows(named=True)
    assert found["change_flow_back_s_max"] == pytest.approx(3.01)
    assert (found["change_backlog"], found["change_backlog_through_s"], found["change_backlog_undelivered"]) == (
        1, pytest.approx(0.7), 0)


@pytest.mark.parametrize(("messages", "back", "said"), [
    ([Message(0)], [], ""),
    # Messages are on their way at any instant: that of 4.995 s came as fast as any.
    ([Message(0, 200), Message(49, 200)], [], ""),
    ([Message(0), Message(49, 200)], [], ", the backlog was through 100 ms after its end"),
    ([Message(0)], [5.5], ", 1 client connected again 500 ms after its end"),
    ([Message(0)], [4.5, 4.6], ", all 2 connected again by its end"),
    ([Message(0)], [5.5, None, 9.0], ", 2 of 3 connected again"),
    ([Message(0)], [None], ", 0 of 1 connected again"),
    # The measurement ends at 10 s.
    ([Message(0), Message(40, 9000)], [12.5],
     ", 1 client connected again 7.5 s after its end, the backlog was through 8 s after its end"),
    ([Message(0), Message(40, 2000), Message(41, None, fate="under_way"), Message(42, None, fate="unsent")], [],
     ", 2 of 3 backlog messages not delivered"),
    ([Message(0), Message(40, None, fate="lost")], [], ", 1 message due before its end not delivered"),
])
def test_what_is_said_after_an_event(
        messages: list[Message], back: list[float | None], said: str, tmp_path: Path) -> None:
    assert fleet(tmp_path / "run", messages, back) == f"at 3 s wan down for 2 s{said}"


def test_a_backlog_is_later_than_its_own_flow_is(tmp_path: Path) -> None:
    """Pictures of another flow take 2.5 s without any event, and hide no message that took 1.2 s for 10 ms."""
    messages = [Message(0), Message(1, 2500, qos=1), Message(40, 1200), Message(45, 2500, qos=1)]
    assert fleet(tmp_path / "run", messages, []).endswith(" for 2 s, the backlog was through 200 ms after its end")
    # Of a flow without messages before the event nothing else is known than what others take.
    messages[0] = Message(60)
    assert fleet(tmp_path / "none", messages, []).endswith("wan down for 2 s")


def test_who_is_back_only_after_the_next_event_is_not_back_before_it(tmp_path: Path) -> None:
    planned = [link("wan down", 3, "down"), link("wan up", 5, "up"), link("wan slow", 6, "down")]
    changed = [row(3, "change", "wan down"), row(5, "change", "wan up"), row(6, "change", "wan slow")]
    events = [*changed, row(3.5, "disconnect", "reset", 1), row(7, "connack", client=1)]
    assert fleet(tmp_path / "run", [Message(0)], [], planned=planned, events=events) == (
        "at 3 s wan down for 2 s, 0 of 1 connected again; at 6 s wan slow")


def test_a_flow_that_did_not_come_back_has_no_time(tmp_path: Path) -> None:
    messages = [Message(number) if number < 30 else Message(number, None, fate="under_way") for number in range(100)]
    [found] = metrics.changes(Recording.open(write(
        tmp_path / "run", messages, events=[row(3, "change", "wan down")], planned=[link("wan down", 3, "down")],
    ))).rows(named=True)
    assert (found["change_flow_back_s_max"], found["change_flows_not_back"]) == (None, 1)
    assert found["change_undelivered"] == 70
    assert found["change_silence_s"] == pytest.approx(7.09), "until the measurement ended"


def test_a_silence_belongs_to_the_event_in_whose_window_it_is(tmp_path: Path) -> None:
    planned = [link("wan down", 1, "down"), link("wan down", 3, "down"), link("wan up", 5, "up")]
    events = [row(1, "change", "wan down"), row(3, "change", "wan down"), row(5, "change", "wan up")]
    table = metrics.changes(outage(tmp_path / "run", planned=planned, events=events))
    assert table["change_silence_s"].to_list() == pytest.approx([0.1, 2.2])


def test_wills_retained_copies_and_a_busy_server_are_of_the_event_in_whose_window_they_are(tmp_path: Path) -> None:
    vanish = {"at_ns": 3 * S, "name": "p vanishes", "clients": [0], "change": {"kind": "vanish"}}
    again = {**vanish, "at_ns": 8 * S, "name": "s vanishes", "clients": [1]}
    messages = [Message(number) for number in range(100)]
    # Nobody's messages, to two subscribers; a copy to each, of which one has not been away.
    messages += [Message(number, 10, fate="will") for number in (20, 45, 47, 90)]
    messages += [Message(85, 10, fate="retained", subscriber=one) for one in (1, 2)]
    events = [row(3, "change", "p vanishes"), row(8, "change", "s vanishes"), row(8.3, "connack", client=1)]
    directory = write(tmp_path / "run", messages, events=events, planned=[vanish, again])
    plan = json.loads((directory / "plan.json").read_text(encoding="utf-8"))
    plan["groups"][0]["protocol"] = {"mqtt": {"will": {"topic": "gone"}}}
    (directory / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    used = [(2.0, 1.0), (2.9, 1.1), (3.9, 1.8), (4.9, 1.9), (8.5, 2.0), (9.0, 0.1)]
    write_resources(directory, used)
    first, second = metrics.changes(Recording.open(directory)).rows(named=True)
    assert (first["change_wills"], first["change_will_s_p50"], first["change_will_s_max"]) == (
        2, pytest.approx(1.61), pytest.approx(1.71))
    assert [each["change_retained_again"] for each in (first, second)] == [0, 1]
    assert second["change_wills"] is None, "its client has none"
    # 0.7 s of a second; then it started again, and its count with it.
    assert first["change_server_cpu_percent_max"] == pytest.approx(70)
    assert second["change_server_cpu_percent_max"] == pytest.approx(100 * 0.1 / 3.6)


def test_clients_that_vanish_have_lost_their_connections_and_come_back(tmp_path: Path) -> None:
    """Nothing tells the end of their connection, for they fall silent."""
    gone, back = ({"at_ns": at * S, "name": name, "clients": [0], "change": {"kind": kind}}
                  for at, name, kind in ((3, "p vanishes", "vanish"), (5, "p returns", "return")))
    events = [row(3, "change", "p vanishes"), row(5, "change", "p returns"), row(5.25, "connack", client=0)]
    [found] = metrics.changes(outage(tmp_path / "run", planned=[gone, back], events=events)).rows(named=True)
    assert (found["change_connections_lost"], found["change_reconnected_s_max"]) == (1, 0.25)


def test_recordings_without_events_have_none(tmp_path: Path) -> None:
    recording = Recording.open(write(tmp_path / "run", [Message(0)]))
    assert recording.changes == []
    assert metrics.changes(recording).is_empty()
    assert changes.sentence(recording) == ""
    assert headline.document(recording)["events"] == []
    drawn = figures.latency_over_time(metrics.deliveries(recording))
    assert "shapes" not in changes.marked(recording, [drawn])[0].layout
    # A plan with events, of a run that ended before the first of them.
    early = Recording.open(write(tmp_path / "early", [Message(0)], planned=[link("wan down", 3, "down")]))
    assert early.changes == []


def test_terminal_page_and_json_tell_the_events(tmp_path: Path) -> None:
    recording = outage(tmp_path / "run")
    words = "wan down for 2 s, 1 client connected again 500 ms after its end, 20 messages due before its end not"
    short = CliRunner().invoke(main, ["report", str(tmp_path / "run")])
    assert words in " ".join(short.output.split()), short.output
    whole = CliRunner().invoke(main, ["report", "--full", str(tmp_path / "run")])
    assert "Events" in whole.output
    assert "wan down" in whole.output
    told = json.loads(json.dumps(headline.document(recording)))["events"]
    assert told[0]["event"] == "wan down"
    assert told[0]["change_undelivered"] == 20
    assert told[0]["change_reconnected_s_max"] == pytest.approx(0.5)
    assert told[0]["change_backlog_through_s"] is None, "never"
    shown = page(recording)
    assert words in shown
    assert ">Events</h2>" in shown


def test_events_stand_before_what_a_full_screen_leaves_out(tmp_path: Path) -> None:
    recording = outage(tmp_path / "run")
    shown = lines(headline.told(recording))
    [events] = [place for place, line in enumerate(shown) if line.startswith("events")]
    [connections] = [place for place, line in enumerate(shown) if line.startswith("connections")]
    assert events < connections


def test_figures_over_time_have_marks_in_their_own_time(tmp_path: Path) -> None:
    messages = [Message(number, phase="warm_up" if number < 10 else "measurement") for number in range(60)]
    recording = Recording.open(write(
        tmp_path / "run", messages, planned=[link("wan down", 3, "down"), link("wan up", 5, "up")],
        events=[row(3, "change", "wan down"), row(5, "change", "wan up")]))
    measured = figures.latency_over_time(metrics.deliveries(recording))
    since_start = run_figures.named("latency-over-time")
    assert since_start is not None
    drawn = since_start.draw(recording, None)
    assert drawn is not None
    other = figures.latency_cdf(metrics.deliveries(recording))
    marked = changes.marked(recording, [measured, drawn, other])
    begins = [[shape["x0"] for shape in figure.layout.get("shapes", ())] for figure in marked]
    assert begins == [[2, 2], [3, 3], []]
    band, line = marked[1].layout["shapes"]
    assert (band["type"], band["x1"], line["type"]) == ("rect", 5, "line")
    assert [note["text"] for note in marked[1].layout["annotations"]] == ["wan down"]


def test_many_marks_have_no_names_and_very_many_are_not_drawn() -> None:
    for count, names, drawn in ((NAMED_MAX, NAMED_MAX, NAMED_MAX), (NAMED_MAX + 1, 0, NAMED_MAX + 1),
                                (DRAWN_MAX + 50, 0, DRAWN_MAX)):
        figure = mark(blank("x", "run time (s)", "y"), [
            Mark(name=f"{place} " + "long " * 20, at_s=place, until_s=None) for place in range(count)])
        assert len(figure.layout.get("annotations", ())) == names
        assert len(figure.layout["shapes"]) == drawn
        assert all(len(note["text"]) <= 32 for note in figure.layout.get("annotations", ()))


@pytest.mark.parametrize("planned", [
    ["x"], [{}],
    [{"at_ns": 3, "name": "x", "links": 5, "change": {"kind": "up"}}],
    [{"at_ns": 3, "name": "x", "links": ["up"], "change": {"kind": "left"}}], [link("x", 3, "up") | {"change": 1}],
])
def test_a_plan_whose_events_are_damaged_is_told_in_a_line(tmp_path: Path, planned: list[Any]) -> None:
    outage(tmp_path / "run", planned=planned)
    said = CliRunner().invoke(main, ["report", str(tmp_path / "run")])
    assert said.exit_code == 2
    [line] = said.stderr.splitlines()
    assert "plan.json is damaged: " in line


def test_figures_of_a_run_that_goes_on_have_the_events_so_far(tmp_path: Path) -> None:
    planned = [link("wan down", 3, "down"), link("wan up", 5, "up"), link("wan down", 60, "down")]
    (tmp_path / "plan.json").write_text(json.dumps({"events": planned}), encoding="utf-8")

    class Elsewhere:
        """A run of a command, and no queue."""

        directory, lines = tmp_path, tmp_path / "lines"

    watch = Watch(Elsewhere())  # type: ignore[arg-type]
    found = watch._followed["run"] = Followed(elsewhere=Elsewhere())  # type: ignore[arg-type]
    assert watch.changes("run") == [], "publishing has not begun"
    numbers = {"offered": 0, "sent": 0, "delivered": 0}
    # A little later than the plan has them.
    down, up = (int(at * S) for at in (4.01, 6.02))
    for line in ({"event": "phase", "phase": "connect", "at_ns": 0}, {"event": "phase", "phase": "warm_up", "at_ns": S},
                 *({"event": "tick", "at_ns": at * S, **numbers} for at in range(1, 6)),
                 {"event": "change", "at_ns": down, "name": "wan down"}):
        found.hear(line)
    assert [(one.at_ns, one.until_ns) for one in watch.changes("run")] == [(down, None)]
    pause = {"at_ns": 4 * S, "name": "broker is paused", "server": "broker", "change": {"kind": "pause"}}
    found.hear({"event": "change", "at_ns": 5 * S, "name": "broker is paused", "by_hand": pause})
    found.hear({"event": "change", "at_ns": up, "name": "wan up"})
    found.hear({"event": "tick", "at_ns": 7 * S, **numbers})
    change, fired = watch.changes("run")
    assert (change.name, change.at_ns, change.until_ns) == ("wan down", down, up)
    assert (fired.name, fired.at_ns, fired.until_ns, fired.by_hand) == ("broker is paused, by hand", 5 * S, None, True)
    figure = live_figures.drawn("messages", found.ticks, [change])
    assert figure is not None
    assert [(shape["x0"], shape["x1"]) for shape in figure.layout["shapes"]] == [(4.01, 6.02), (4.01, 4.01)]


def test_events_that_were_fired_by_hand_are_among_the_others(tmp_path: Path) -> None:
    directory = outage(tmp_path / "run").directory
    pause = {"at_ns": int(3.4 * S), "name": "broker is paused", "server": "broker", "change": {"kind": "pause"}}
    ends = {**pause, "at_ns": int(4.4 * S), "name": "broker continues", "change": {"kind": "continue"}}
    lines = [{"at_ns": event["at_ns"], "event": event} for event in (pause, ends)]
    fired = directory / "by-hand.jsonl"
    fired.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    taken = Recording.open(directory).changes
    assert [(one.name, one.at_ns / S, (one.until_ns or 0) / S, one.by_hand) for one in taken] == [
        ("wan down", 3, 5, False), ("broker is paused, by hand", 3.4, 4.4, True)]
    assert "at 3.4 s broker is paused, by hand for 1 s" in changes.sentence(Recording.open(directory))
    fired.write_text('{"at_ns": 5, "event": 7}\n', encoding="utf-8")
    said = CliRunner().invoke(main, ["report", str(directory)])
    assert (said.exit_code, "by-hand.jsonl is damaged" in said.stderr) == (2, True), said.stderr


def test_a_threshold_may_be_of_an_event() -> None:
    measured = Measured.model_validate({"metric": "change_reconnected_s_max", "scope": "event", "name": "broker stops"})
    assert wrong(measured) is None
    nameless = wrong(Measured.model_validate({"metric": "change_reconnected_s_max", "scope": "event"}))
    assert nameless is not None and "add `name`" in nameless[1]
