"""Runs that several engines share (``live.parts``): one clock, one schedule, one recording, whatever becomes of one."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from commands import mqttlab
from mqttlab.engine import engine_path
from mqttlab.recording import Recording
from mqttlab.runs.job import ulid
from mqttlab.scenario import ScenarioError, compile_plan, parse
from mqttlab.scenario.load import warnings_of
from ports import own_port

pytestmark = pytest.mark.skipif(shutil.which("mosquitto") is None, reason="mosquitto is not installed")

SCENARIO = """
name = "shared"
network = "external"

[phases]
warm_up = "200 ms"
duration = "1 s"

[broker]
kind = "external"
address = "127.0.0.1"
port = PORT

[[groups]]
name = "publishers"
host = "here"
count = 5
publish = { topic = "a/{client}", qos = 1, payload = "40 B", interval = "20 ms" }

[[groups]]
name = "subscribers"
host = "here"
count = 3
subscribe = [{ filter = "a/+", qos = 1 }]

[live]
parts = 2
"""
# A day: no clock that is wrong by accident is.
SHIFT_S = 86_400


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A broker that is running already."""
    number = own_port()
    settings = tmp_path_factory.mktemp("broker") / "mosquitto.conf"
    settings.write_text(f"listener {number} 127.0.0.1\nallow_anonymous true\n", encoding="utf-8")
    with subprocess.Popen(["mosquitto", "-c", str(settings)], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as broker:
        deadline = time.monotonic() + 30
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", number)) == 0:
                    break
            assert time.monotonic() < deadline and broker.poll() is None
            time.sleep(0.05)
        yield number
        broker.kill()


def scenario(port: int, **replaced: str) -> str:
    text = SCENARIO.replace("PORT", str(port))
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    return text


def plan_of(text: str) -> dict[str, Any]:
    return dict(compile_plan(parse(text)))


class Engine:
    """One part, as an engine of its own."""

    def __init__(self, plan: dict[str, Any], directory: Path, *words: str, before: tuple[str, ...] = ()) -> None:
        self.directory = directory
        self.process = subprocess.Popen(
            [*before, engine_path(), "run", "--directory", str(directory), *words], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(plan))
        self.process.stdin.close()
        self.said: list[dict[str, Any]] = []

    def until(self, event: str, **fields: str) -> dict[str, Any]:
        """The next such line."""
        assert self.process.stdout is not None
        for text in self.process.stdout:
            line = json.loads(text)
            self.said.append(line)
            if line["event"] == event and all(line[name] == value for name, value in fields.items()):
                return dict(line)
        raise AssertionError((event, self.said[-3:], self.process.stderr.read() if self.process.stderr else ""))

    def done(self) -> tuple[str, str | None]:
        line = self.until("done")
        self.process.wait(60)
        return line["verdict"], line["reason"]


def parts(plan: dict[str, Any], directory: Path, before: tuple[str, ...] = (), *, number: int = 1,
          identifiers: tuple[str, str] | None = None, other: dict[str, Any] | None = None) -> tuple[Engine, Engine]:
    """Part 0 and another one that has come to it."""
    one = ulid()
    first, second = identifiers or (one, one)
    lead = Engine(plan, directory / "lead", "--identifier", first, "--lead-at", "127.0.0.1:0")
    address = lead.until("leading")["address"]
    return lead, Engine(other or plan, directory / "other", "--identifier", second, "--part", str(number), "--lead",
                        address, before=before)


def deliveries(recording: Recording) -> pl.DataFrame:
    measured = recording.messages.filter((pl.col("fate") == "delivered") & (pl.col("phase") == "measurement"))
    return measured.select("publisher", "sequence", "subscriber").sort(pl.all())


def can_shift_clocks() -> bool:
    return shutil.which("unshare") is not None and subprocess.run(
        ["unshare", "--time", "--monotonic", "9", "--fork", "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_shift_clocks(), reason="time namespaces cannot be made here")
def test_a_part_whose_clock_is_a_day_ahead_has_the_same_run_time(tmp_path: Path, port: int) -> None:
    plan = plan_of(scenario(port))
    shifted = ("unshare", "--time", "--monotonic", str(SHIFT_S), "--boottime", str(SHIFT_S), "--fork", "--kill-child")
    lead, other = parts(plan, tmp_path, shifted)
    assert (lead.done(), other.done()) == (("complete", None), ("complete", None))
    assert not other.directory.exists()
    recording = Recording.open(lead.directory)
    details = recording.run["details"]
    clock = details["parts"][1]["clock"]
    # The same machine has one clock: what was found is off by no more than it says.
    assert abs(clock["offset_ns"] + SHIFT_S * 10**9) <= clock["bound_ns"] == details["clock_bound_ns"]
    assert 0 < clock["bound_ns"] < 50e6 and clock["rounds"] >= 5
    assert [part["clients"] for part in details["parts"]] == [4, 4]
    arrived = recording.messages.filter(pl.col("received_ns").is_not_null())
    assert arrived["latency_ns"].null_count() == 0
    assert (arrived["received_ns"] - arrived["sent_ns"]).min() > -2 * clock["bound_ns"]
    # From either part to either part.
    ways = arrived.select((pl.col(name) % 2).alias(name) for name in ("publisher", "subscriber")).unique()
    assert ways.height == 4
    assert recording.messages["fate"].unique().to_list() == ["delivered"]
    whole = Engine({**plan, "live": {**plan["live"], "parts": 1}}, tmp_path / "whole")
    assert whole.done() == ("complete", None)
    assert deliveries(recording).equals(deliveries(Recording.open(whole.directory)))


def test_a_user_splits_a_run_on_one_machine_and_the_report_says_how_well_the_clocks_agree(
    tmp_path: Path, port: int,
) -> None:
    (tmp_path / "shared.toml").write_text(scenario(port, **{"parts = 2": "parts = 3"}), encoding="utf-8")
    result = subprocess.run([sys.executable, "-m", "mqttlab", "run", "shared.toml"], cwd=tmp_path, text=True,
                            capture_output=True, timeout=120, check=False)
    # A busy machine makes it invalid, and that is not in question here.
    assert result.returncode in (0, 6), result.stdout + result.stderr
    words = "3, their clocks are known to ±"
    assert f"parts: {words}" in " ".join(result.stdout.split())
    run = next((tmp_path / "runs").glob("*/run.json")).parent
    assert words in (run / "report.html").read_text(encoding="utf-8")
    assert not (run / "parts").exists() and not list(run.glob("*received*"))
    clients = Recording.open(run).clients
    assert clients.height == 8 and clients["connect_ns"].null_count() == 0


@pytest.mark.parametrize("victim", ["part 1", "part 0"])
def test_when_a_part_is_killed_the_run_is_marked_and_what_the_other_recorded_is_kept(
    tmp_path: Path, port: int, victim: str,
) -> None:
    plan = plan_of(scenario(port, **{'duration = "1 s"': 'duration = "60 s"'}))
    lead, other = parts(plan, tmp_path)
    dying, left = (lead, other) if victim == "part 0" else (other, lead)
    left.until("phase", phase="measurement")
    left.until("tick")
    dying.process.send_signal(signal.SIGKILL)
    verdict, reason = left.done()
    assert verdict == "incomplete" and reason is not None and victim in reason and "ended without a word" in reason
    recording = Recording.open(left.directory)
    assert recording.run["status"] == "incomplete" and recording.run["reason"] == reason
    sent = recording.messages.filter(pl.col("sent_ns").is_not_null())
    assert sent.height > 0 and set((sent["publisher"] % 2).unique()) == {0 if left is lead else 1}
    # What the dead part's subscribers had is not known to be lost.
    assert "lost" not in sent["fate"].unique().to_list()
    dying.process.wait()


def test_ctrl_c_ends_all_parts_within_seconds_and_keeps_their_rows(tmp_path: Path, port: int) -> None:
    plan = plan_of(scenario(port, **{'duration = "1 s"': 'duration = "60 s"'}))
    lead, other = parts(plan, tmp_path)
    lead.until("phase", phase="measurement")
    lead.until("tick")
    lead.process.send_signal(signal.SIGINT)
    verdict, reason = lead.done()
    assert verdict == "incomplete" and reason is not None and "SIGINT" in reason
    assert other.done()[0] == "incomplete"
    sent = Recording.open(lead.directory).messages.filter(pl.col("sent_ns").is_not_null())
    assert set((sent["publisher"] % 2).unique()) <= {0, 1} and sent.height > 0


@pytest.mark.parametrize(("change", "words"), [
    ({"identifiers": (ulid(), ulid())}, "another run"),
    ({"number": 2}, "the plan has parts 0 to 1"),
    ({"other": "seed"}, "another plan"),
])
def test_who_does_not_belong_to_the_run_is_refused(
    tmp_path: Path, port: int, change: dict[str, Any], words: str,
) -> None:
    plan = plan_of(scenario(port))
    if change.get("other"):
        change = {"other": {**plan, "seed": 7}}
    lead, other = parts(plan, tmp_path, **change)
    verdict, reason = other.done()
    assert verdict == "failed" and words in str(reason)
    assert lead.process.poll() is None
    lead.process.send_signal(signal.SIGTERM)
    assert lead.done()[0] == "failed"
    assert not lead.directory.exists() and not other.directory.exists()


def test_what_cannot_be_split_is_said_before_anything_starts() -> None:
    def problems(text: str) -> str:
        with pytest.raises(ScenarioError) as refused:
            parse(text)
        return str(refused.value)

    external = scenario(1883)
    assert "`network` is \"direct\", which one machine has for itself" in problems(
        external.replace('"external"\n\n[phases]', '"direct"\n\n[phases]'))
    assert "needs 9 B" in problems(external.replace("40 B", "8 B"))
    assert "live.parts" in problems(external.replace("parts = 2", "parts = 65"))
    simulated = external.replace('kind = "external"\naddress = "127.0.0.1"\nport = 1883', "").replace(
        'network = "external"', 'network = "direct"\nbackend = "sim"')
    assert any("has no effect on a simulation" in line for line in warnings_of(parse(simulated), "s.toml", simulated))


def test_check_says_that_a_run_is_shared(tmp_path: Path) -> None:
    (tmp_path / "shared.toml").write_text(scenario(1883), encoding="utf-8")
    checked = mqttlab("check", "shared.toml", cwd=tmp_path)
    assert "shared by 2 engines" in checked.stdout


def test_a_part_that_nobody_leads_says_so(tmp_path: Path, port: int) -> None:
    plan = plan_of(scenario(port))
    nobody = f"127.0.0.1:{own_port()}"
    alone = Engine(plan, tmp_path / "alone", "--identifier", ulid(), "--part", "1", "--lead", nobody)
    verdict, reason = alone.done()
    assert verdict == "failed" and nobody in str(reason)
    whole = Engine(plan, tmp_path / "whole")
    assert "part 0 needs --lead-at" in str(whole.done()[1])
    assert not list(tmp_path.iterdir())
