"""Why clients were refused or lost their connections, and what is in no table: in every report."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mqttlab import metrics
from mqttlab.metrics.disconnections import in_words
from mqttlab.recording import Recording
from mqttlab.report import headline, terminal, write_html
from mqttlab.report.answer import _further, lines
from mqttlab.report.document import document
from mqttlab.report.text import verdict
from mqttlab.runs import Job, perform
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from recordings import MS, Message, write

LINE = {"rate": "64 kbit/s", "delay": "50 ms"}


def event(kind: str, client: int, detail: str | None, at_ns: int = 1) -> dict[str, Any]:
    return {"at_ns": at_ns, "kind": kind, "client": client, "took_ns": None, "detail": detail}


NOBODY = "cannot connect: Connection refused (os error 111)"
EVENTS = [event("note", 1, NOBODY, 0), event("refused", 0, "CONNECT: code 0x05"),
          event("refused", 0, "CONNECT: code 0x05"),
          event("disconnect", 1, "no PINGRESP in time"), event("connack", 1, None),
          event("disconnect", 1, "the broker sent DISCONNECT, code 0x8e"), event("disconnect", 1, None)]


def printed(recording: Recording) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    terminal(recording, console)
    return console.export_text()


def test_reasons_are_counted_by_group_the_most_frequent_first_but_for_those_that_explain_nothing(
        tmp_path: Path) -> None:
    rows = metrics.disconnections(Recording.open(write(tmp_path / "run", [Message(0)], events=EVENTS))).rows()
    assert rows == [
        ("publishers", "refused", "CONNECT: code 0x05 (not authorised)", 2, 1),
        ("subscribers", "disconnected", "no PINGRESP in time", 1, 1),
        ("subscribers", "disconnected", "the broker sent DISCONNECT, code 0x8e (session taken over)", 1, 1),
        ("subscribers", "not connected", f"{NOBODY} (connection refused)", 1, 1),
        ("subscribers", "disconnected", "no reason was recorded", 1, 1)]
    assert metrics.disconnections(Recording.open(write(tmp_path / "none", [Message(0)]))).is_empty()


def test_a_code_of_a_subscription_is_not_one_of_a_connection() -> None:
    assert in_words("SUBSCRIBE: code 0x80") == "SUBSCRIBE: code 0x80"
    assert in_words("TLS: invalid peer certificate: Expired") == (
        "TLS: invalid peer certificate: Expired (certificate expired)")
    assert in_words("what nobody foresaw") == "what nobody foresaw"
    # Simulated, the reason has the words already.
    assert in_words("cannot connect: connection refused") == "cannot connect: connection refused"
    assert in_words("the broker sent PUBLISH") == "the broker sent PUBLISH"


@pytest.mark.parametrize("rows", [[Message(0)], []], ids=["measured", "nothing measured"])
def test_reasons_and_foreign_deliveries_are_in_every_report(rows: list[Message], tmp_path: Path) -> None:
    recording = Recording.open(write(tmp_path / "run", rows, events=EVENTS, foreign=742))
    page = write_html(recording, tmp_path / "report.html").read_text(encoding="utf-8")
    for said in (printed(recording), page):
        assert "no PINGRESP in time" in said and "CONNECT: code 0x05 (not authorised)" in said
        assert "742 foreign deliveries, which no publisher of this run has sent" in said
    # Before the tables.
    assert printed(recording).index("742 foreign") < printed(recording).index("Why connections ended")
    assert any("742 foreign deliveries" in reason for reason in verdict(recording)[1])
    assert page.index("742 foreign") < page.index("Why connections ended")
    # Once each: two functions told them.
    assert printed(recording).count("742 foreign") == 1 and page.count("742 foreign") == 2, "headline and verdict"
    notes = headline.told(recording).notes
    assert notes[0].startswith("742 foreign") and len(notes) == len(set(notes))
    told = json.loads(json.dumps(document(recording)))["disconnections"]
    assert told[0] == {"group": "publishers", "what": "refused", "reason": "CONNECT: code 0x05 (not authorised)",
                       "count": 2, "clients": 1}


@pytest.mark.parametrize(("complete", "validity", "word"), [
    (True, {"valid": False, "reasons": ["late", "later"]}, "not valid"),
    (True, {"valid": True, "remarks": ["near the limit"]}, "valid"), (False, {"valid": True}, "incomplete")])
def test_foreign_deliveries_come_right_after_why_a_run_is_not_valid(
    complete: bool, validity: dict[str, Any], word: str, tmp_path: Path,
) -> None:
    """They must be among the two notes that a terminal shows."""
    recording = Recording.open(write(tmp_path / "run", [Message(0)], foreign=742, complete=complete, validity=validity))
    said = verdict(recording)
    assert said[0] == word and said[1][word != "valid"].startswith("742 foreign")
    told = headline.told(recording)
    assert told.notes[0].startswith("742 foreign") and "742" not in told.timing
    assert " ".join(lines(told)).count("742 foreign") == 1


def test_one_of_a_thing_is_written_in_the_singular(tmp_path: Path) -> None:
    recording = Recording.open(write(tmp_path / "run", [Message(0)], foreign=1, events=[
        {"at_ns": 2, "kind": "connack", "client": 0, "took_ns": 7 * MS, "detail": None}]))
    said = printed(recording)
    assert "1 sent, 1 delivery expected" in said and "1 foreign delivery," in said


CAME = "the broker closed the connection (session taken over: another client came with its identifier)"


def shared_identifier(backend: str) -> dict[str, Any]:
    groups: list[dict[str, Any]] = [{"name": name, "host": "broker", "subscribe": [{"filter": "t"}]} for name in "ab"]
    return {"name": "taken", "backend": backend, "mqtt": {"client_id": "same"},
            "phases": {"duration": "3 s", "cool_down": "100 ms"}, "groups": groups}


def test_a_simulated_take_over_is_named(tmp_path: Path) -> None:
    rows = metrics.disconnections(simulated(shared_identifier("sim"), tmp_path / "run"))
    assert rows.height and set(rows["reason"]) == {CAME}


@pytest.mark.live
def test_a_take_over_at_mosquitto_is_named(tmp_path: Path) -> None:
    rows = metrics.disconnections(simulated(shared_identifier("live"), tmp_path / "run"))
    assert CAME in set(rows["reason"])


def test_a_closed_connection_is_no_take_over_where_nobody_came_with_its_identifier(tmp_path: Path) -> None:
    run = write(tmp_path / "run", [Message(0)], events=[
        event("connack", 0, None, 5), event("connack", 1, None, 10),
        event("disconnect", 0, "the broker closed the connection", 20),
        event("disconnect", 1, "the broker closed the connection", 30)])
    plan = json.loads((run / "plan.json").read_text())

    def reasons(*identifiers: str) -> list[str]:
        plan["groups"] = [{"name": name, "protocol": {"mqtt": {"client_id": identifier}}, "server": 0}
                          for name, identifier in zip(("publishers", "subscribers"), identifiers, strict=True)]
        (run / "plan.json").write_text(json.dumps(plan))
        return sorted(metrics.disconnections(Recording.open(run))["reason"])

    closed = "the broker closed the connection"
    assert reasons("{group}-{client}", "{group}-{client}") == [closed, closed]
    # The second one came after the first and stayed until nobody knows why.
    assert reasons("same", "same") == [closed, CAME]


def simulated(values: dict[str, Any], directory: Path) -> Recording:
    outcome = perform(Job(compile_plan(parse_values(values)), directory), lambda line: None)
    assert outcome.verdict == "complete", outcome.reason
    return Recording.open(directory)


@pytest.mark.parametrize(("cool_down", "valid"), [("5 s", True), ("300 ms", True)])
def test_what_an_overloaded_link_leaves_under_way_may_only_be_slow(
    cool_down: str, valid: bool, tmp_path: Path,
) -> None:
    """A link that carries an eighth of what is offered: most has not arrived when the run ends."""
    recording = simulated({
        "name": "overloaded", "backend": "sim", "phases": {"duration": "10 s", "cool_down": cool_down},
        "networks": [{"between": ["field", "broker"], "up": LINE, "down": LINE}],
        "groups": [{"name": "logger", "host": "field",
                    "publish": {"topic": "log", "qos": 0, "payload": "200 B", "rate": "300 /s"}},
                   {"name": "sink", "host": "broker", "subscribe": [{"filter": "log"}]}]}, tmp_path / "run")
    assert recording.run["validity"]["valid"] is valid
    [row] = metrics.application(recording).rows(named=True)
    assert row["messages_lost"] == 0 and row["messages_lost_percent"] == 0
    assert row["undelivered_percent"] > 50
    assert row["undelivered_percent"] == pytest.approx(
        100 * (1 - row["messages_delivered"] / row["messages_offered"]))
    assert "was shorter than three times the p99 of their flow" in printed(recording)


def test_clients_that_nobody_answers_say_so(tmp_path: Path) -> None:
    recording = simulated({
        "name": "lost", "backend": "sim",
        "phases": {"connect_timeout": "5 s", "duration": "1 s", "cool_down": "1 s"},
        "networks": [{"between": ["field", "broker"], "up": {"delay": "5 ms", "loss": "99.9 %"},
                      "down": {"delay": "5 ms"}}],
        "groups": [{"name": "p", "host": "field",
                    "publish": {"topic": "t", "qos": 0, "payload": "20 B", "rate": "1 /s"}}]}, tmp_path / "run")
    [reason] = recording.run["validity"]["reasons"]
    told = metrics.disconnections(recording)
    # The reason is the one that the client's own events have, and what helps stands beside it.
    assert reason.startswith(f"1 of 1 clients never connected: {told['reason'][0]}; see the network's loss and delay")
    assert "events.parquet" not in reason


@pytest.mark.parametrize(("rows", "said"), [
    ("a1 b1", ""), ("a1 b1 c1", "; the same in 1 more group"), ("a1 b1 c1 d1", "; the same in 2 more groups"),
    ("a1 b1 c2", "; 1 more reason"), ("a1 a2 b1 b3", "; 1 more reason, the same in 1 more group"),
])
def test_a_reason_of_another_group_is_no_further_reason(rows: str, said: str) -> None:
    """Once "1 more reason", which was the same one of another group."""
    assert _further([{"group": row[0], "reason": row[1]} for row in rows.split()]) == said
