"""How what commands do grows with what they are given, counted: calls of functions and bytes, not seconds."""

from __future__ import annotations

import gc
import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

import pytest
from rich.console import Console

from mqttlab import export
from mqttlab.catalog.reading import read as catalog_row
from mqttlab.cli.check import show_check
from mqttlab.cli.explain import show_explanation
from mqttlab.networks import link
from mqttlab.recording import Recording
from mqttlab.report import headline, terminal, write_html
from mqttlab.runs import Job, perform
from mqttlab.scenario import Scenario, ScenarioError, compile_plan, parse, warnings_of
from mqttlab.scenario.one_sentence import one_sentence
from mqttlab.scenario.sentence import sentence

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = """
name = "many"
backend = "sim"
phases = {{ duration = "{duration}", cool_down = "1 s" }}
hosts.clients = {{ count = {hosts} }}
[[networks]]
between = ["clients", "broker"]
link = "{link}"
up = {{ rate = "10 Mbit/s", delay = "5 ms" }}
down = {{ rate = "10 Mbit/s", delay = "5 ms", loss = "0.1 %" }}
[[groups]]
name = "both"
host = "clients"
count = {clients}
connect_over = "0 s"
publish = {{ topic = "t/{{client}}", payload = "64 B", rate = "50 /s", qos = 1 }}
subscribe = ["t/{{client}}"]
"""


def scenario(*, duration: str = "5 s", hosts: int = 1, clients: int = 1, link: str = "shared") -> str:
    return SCENARIO.format(duration=duration, hosts=hosts, clients=clients, link=link)


def calls(work: Callable[[], object]) -> int:
    """How many functions are called while it works, those of other languages included."""
    count = 0

    def called(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def lines(work: Callable[[], object]) -> int:
    """How many lines are run while it works, each turn of a loop for itself."""
    count = 0

    def ran(frame: FrameType, event: str, argument: object) -> object:
        nonlocal count
        count += event == "line"
        return ran

    sys.settrace(ran)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


HEAD = """name = "many"
phases = { duration = "2 s" }
[[networks]]
between = ["field", "broker"]
up = { rate = "10 Mbit/s", delay = "20 ms" }
"""
PUBLISH = 'publish = { topic = "b/%d", payload = "30 B", interval = "1 s" }\n'


def groups(count: int, does: str, host: str = "field") -> str:
    return "".join(f'[[groups]]\nname = "g{number}"\nhost = "{host.replace("N", str(number))}"\n'
                   + does.replace("%d", str(number)) for number in range(count))


def networks(count: int, between: str, more: str = "") -> str:
    return "".join(f'[[networks]]\nbetween = [{between.replace("N+1", str(number + 1)).replace("N", str(number))}]\n'
                   f'up = {{ delay = "20 ms" }}\n{more}' for number in range(count))


MANY: dict[str, Callable[[int], str]] = {
    "subscribers": lambda n: HEAD + groups(n, 'subscribe = ["a/%d"]\n'),
    "publishers": lambda n: HEAD + groups(n, PUBLISH),
    "publishers with a subscriber each": lambda n: HEAD + groups(n, PUBLISH + 'subscribe = ["b/%d"]\n'),
    "all to all": lambda n: HEAD + groups(n, PUBLISH + 'subscribe = ["#"]\n'),
    "topics with placeholders": lambda n: HEAD + groups(n, PUBLISH.replace("b/%d", "{group}/{client}")
                                                        + 'subscribe = ["{group}/+"]\n'),
    "relays": lambda n: HEAD + groups(n, 'relay = { suffix = "/r" }\nsubscribe = ["b/%d"]\n')
    + groups(1, PUBLISH).replace("g0", "p"),
    "networks": lambda n: HEAD + networks(n, '"hN", "broker"') + groups(n, PUBLISH, "hN"),
    "networks with a link for each client": lambda n: HEAD + networks(n, '"hN", "broker"', 'link = "each"\n')
    + groups(n, "count = 2\n" + PUBLISH.replace("b/%d", "b/%d/{client}"), "hN"),
    "hosts of one network": lambda n: HEAD.replace('up =', 'link = "each"\nup =') + groups(n, PUBLISH),
    "filters of one group": lambda n: HEAD + groups(1, f"subscribe = {[f'a/{number}' for number in range(n)]}\n"),
    "wrong groups": lambda n: HEAD + groups(n, 'subscribe = [{ filter = "a", qos = 3 }]\n'),
    "hosts without a way": lambda n: HEAD + groups(n, PUBLISH, "hN"),
    "hosts that nobody uses": lambda n: HEAD + groups(1, PUBLISH) + "".join(f"[hosts.h{i}]\n" for i in range(n)),
    "thresholds": lambda n: HEAD + groups(1, PUBLISH) + "".join(
        f'[[thresholds]]\nmetric = "latency_ms_p99"\nbelow = {number + 1}\n' for number in range(n)),
}


@pytest.mark.parametrize("shape", MANY)
def test_a_check_of_twice_as_much_takes_no_more_than_twice_the_work(shape: str) -> None:
    def check(text: str) -> None:
        try:
            read = parse(text)
        except ScenarioError:
            return
        checked(read, text)
        plan = compile_plan(read)
        sentence(plan)
        one_sentence(plan)

    check(MANY[shape](3))
    work = [lines(lambda count=count: check(MANY[shape](count))) for count in (25, 50, 100)]
    # A line, not a parabola, of which the second step would be four times the first.
    assert work[2] - work[1] < 2.5 * (work[1] - work[0]), work


def called(name: str, work: Callable[[], object]) -> int:
    """How often a function of that name is called while it works."""
    count = 0

    def entered(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_name == name

    sys.setprofile(entered)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_what_all_groups_have_alike_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + groups(100, PUBLISH)
    # "2 s", "10 Mbit/s", "20 ms", "30 B" and "1 s"; it was 303 times.
    assert called("read", lambda: parse(text)) <= 5
    plan = compile_plan(parse(text))
    # Once for each of the places of a host's groups; it was 100 times.
    assert called("_looks", lambda: sentence(plan)) == 1
    monkeypatch.setattr(link, "READ_AT_ONCE", 10)
    # Each part has the last one of the part before; it was 550 times.
    assert called("_does_something", lambda: parse(text)) == 109


def test_a_check_leaves_little_to_collect_and_the_collector_on(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.toml", tmp_path / "wrong.toml"
    right.write_text(HEAD + groups(200, PUBLISH), encoding="utf-8")
    wrong.write_text(HEAD + groups(200, 'subscribe = [{ filter = "a", qos = 3 }]\n'), encoding="utf-8")
    show_check(right, {}, show_plan=False)
    gc.collect()
    gc.disable()
    try:
        show_check(right, {}, show_plan=False)
        # Fewer than one for each group.
        assert gc.collect() < 200
        assert not gc.isenabled()
    finally:
        gc.enable()
    with pytest.raises(ScenarioError):
        show_check(wrong, {}, show_plan=False)
    assert gc.isenabled()


def test_parts_of_a_list_are_read_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    command = ", ".join(f'"{word}"' for word in ["run", *["-v"] * 8, "--password", "open sesame", *["-v"] * 20])
    program = HEAD + groups(1, f"client = {{ command = [{command}] }}\n")
    many = groups(40, PUBLISH)
    texts = [HEAD + many, HEAD + many.replace('b/25"', 'b/#"'), HEAD + many.replace('"g10"', '"g 10"'), program]
    whole = [outcome(text) for text in texts]
    monkeypatch.setattr(link, "READ_AT_ONCE", 10)
    assert [outcome(text) for text in texts] == whole
    assert "groups[25].publish.topic" in str(whole[1]) and "groups[10].name" in str(whole[2])
    # The secret is the first argument of the second part, behind the option that names it.
    assert "sesame" not in str(whole[3]) and "***" in str(whole[3])


def outcome(text: str) -> object:
    try:
        return parse(text).groups
    except ScenarioError as error:
        return error.problems


def test_a_plan_of_a_hundred_thousand_clients_is_no_longer_than_one_of_ten() -> None:
    sizes, work = [], []
    for clients in (10, 100_000):
        read = parse(scenario(clients=clients))
        sizes.append(len(json.dumps(compile_plan(read))))
        work.append(calls(lambda read=read: compile_plan(read)))
    assert sizes[1] - sizes[0] < 20
    assert work[1] < 1.1 * work[0]


def checked(read: Scenario, text: str) -> Sequence[object]:
    return [compile_plan(read), *warnings_of(read, "many.toml", text, ())]


def test_what_a_check_looks_up_it_looks_up_once() -> None:
    text = (ROOT / "scenarios" / "demo.toml").read_text(encoding="utf-8")
    checked(parse(text), text)
    read = parse(text)
    # 3,700; it was 35,500 when the servers were copied for each question.
    assert calls(lambda: checked(read, text)) < 8_000


@pytest.mark.parametrize(("link", "bytes_of_one", "calls_of_one"), [("shared", 560, 25), ("each", 1600, 45)])
def test_a_check_of_many_hosts_does_as_much_for_each_as_one_of_few(
    link: str, bytes_of_one: int, calls_of_one: int,
) -> None:
    sizes, work = [], []
    for hosts in (500, 1000, 2000):
        text = scenario(hosts=hosts, clients=hosts, link=link)
        work.append(calls(lambda text=text: checked(parse(text), text)))
        sizes.append(len(json.dumps(compile_plan(parse(text)))))
    assert (sizes[2] - sizes[1]) / 1000 < bytes_of_one
    assert (work[2] - work[1]) / 1000 < calls_of_one
    # A line, not a parabola: the second step is twice the first.
    assert work[2] - work[1] < 2.2 * (work[1] - work[0])


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One recording, and one of 10,000 more messages."""
    made = []
    for duration in ("2 s", "12 s"):
        directory = tmp_path_factory.mktemp("growth") / "run"
        text = scenario(duration=duration, hosts=20, clients=20, link="each")
        outcome = perform(Job(compile_plan(parse(text)), directory), lambda line: None)
        assert outcome.verdict == "complete", outcome
        made.append(directory)
    return made


def report_of(run: Path, out: Path) -> None:
    recording = Recording.open(run)
    terminal(recording, Console(file=io.StringIO(), width=200))
    write_html(recording, out / "page.html")


@pytest.mark.parametrize("command", [
    report_of,
    lambda run, out: show_explanation(run, None, 3, Console(file=io.StringIO())),
    lambda run, out: export.parquet(run, out / "parquet"),
    lambda run, out: export.csv(run, out / "csv"),
])
def test_nothing_is_done_in_python_for_each_message(
    recordings: list[Path], tmp_path: Path, command: Callable[[Path, Path], object],
) -> None:
    # What is loaded or kept the first time is not counted.
    command(recordings[0], tmp_path)
    few, many = (calls(lambda run=run: command(run, tmp_path)) for run in recordings)
    # Less than one call for each of the 10,000 messages; of frames there are four times as many.
    assert many - few < 8000


MANY_CLIENTS = """
name = "fleet"
backend = "sim"
phases = {{ duration = "20 s", cool_down = "1 s" }}
recording.detail = "messages"
[[networks]]
between = ["sites", "broker"]
up = {{ rate = "1 Gbit/s", delay = "1 ms" }}
[[groups]]
name = "sensors"
host = "sites"
count = {clients}
connect_over = "10 s"
publish = {{ topic = "t/{{client}}", payload = "64 B", rate = "1 /min" }}
[[groups]]
name = "watcher"
host = "sites"
subscribe = ["t/#"]
"""


@pytest.fixture(scope="module")
def fleets(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A recording of a hundred clients, and one of 5,000 more."""
    made = []
    for clients in (100, 5_100):
        directory = tmp_path_factory.mktemp("fleets") / "run"
        text = MANY_CLIENTS.format(clients=clients)
        outcome = perform(Job(compile_plan(parse(text)), directory), lambda line: None)
        assert outcome.verdict == "complete", outcome
        made.append(directory)
    return made


@pytest.mark.parametrize("command", [
    report_of,
    lambda run, out: headline.document(Recording.open(run)),
    lambda run, out: catalog_row(run),
    lambda run, out: export.parquet(run, out / "parquet"),
    lambda run, out: export.csv(run, out / "csv"),
    lambda run, out: Recording.open(run).damage(),
])
def test_nothing_is_done_in_python_for_each_client(
    fleets: list[Path], tmp_path: Path, command: Callable[[Path, Path], object],
) -> None:
    command(fleets[0], tmp_path)
    few, many = (calls(lambda run=run: command(run, tmp_path)) for run in fleets)
    assert many - few < 2_500
