"""What was given in the place of something else is named, with the command that takes it.

docs/reference/messages.md has more.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from commands import mqttlab
from mqttlab.catalog.query import _nearest
from mqttlab.experiments.responses import wrong
from mqttlab.mistaken import did_you_mean, names_like, nearest_path, what_it_is
from mqttlab.scenario.threshold import Measured

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("runs/one", "runs/qos", "empty"):
        (tmp_path / name).mkdir(parents=True)
    Path("runs/one/plan.json").write_text("{}", encoding="utf-8")
    Path("runs/one/report.html").write_text("<!DOCTYPE html>\n<title>x</title>", encoding="utf-8")
    Path("runs/one/messages.parquet").write_bytes(b"PAR1" + bytes(9) + b"PAR1")
    Path("runs/qos/journal.jsonl").write_text("{}\n", encoding="utf-8")
    Path("fleet.toml").write_text("[[groups]]\n", encoding="utf-8")
    Path("qos.toml").write_text('scenario = "fleet.toml"\n', encoding="utf-8")
    Path("broken.toml").write_text("[[groups\n", encoding="utf-8")
    Path("messages.csv").write_text("topic,sent\nx,1\n", encoding="utf-8")
    Path("exported.csv").write_text("publisher,sequence,topic\n0,0,x\n", encoding="utf-8")
    Path("trace.pcap.gz").write_bytes(gzip.compress(b"\xd4\xc3\xb2\xa1"))
    Path("log.gz").write_bytes(gzip.compress(b"log"))
    return tmp_path


WHAT = {
    "runs/one": "is a recording; its report: mqttlab report runs/one",
    "runs/qos": "is an experiment's directory; its report: mqttlab report runs/qos; to go on: mqttlab experiment "
                "runs/qos/experiment.toml",
    "runs": "is a directory of recordings; mqttlab list --runs runs shows them",
    "empty": "is a directory; name a file",
    ".": "is a directory; name a file in it, such as broken.toml",
    "runs/one/report.html": "is an HTML page of the recording runs/one; its report: mqttlab report runs/one",
    "runs/one/plan.json": "is JSON of the recording runs/one; its report: mqttlab report runs/one",
    "runs/one/messages.parquet": "is a Parquet table of the recording runs/one; its report: mqttlab report runs/one",
    "fleet.toml": "is a scenario; run it with: mqttlab run fleet.toml",
    "qos.toml": "is an experiment; run it with: mqttlab experiment qos.toml",
    "messages.csv": "is a table; a table of messages is imported with: mqttlab import log messages.csv",
    "exported.csv": "is a table of a recording's messages; a scenario replays it: publish = { replay = "
                    "\"exported.csv\" }",
    "trace.pcap.gz": "is a capture; import it with: mqttlab import capture trace.pcap.gz",
    "log.gz": "is a compressed file; unpack it, or import it with mqttlab import, if it is a capture or a log",
    "broken.toml": None, "nowhere": None,
}


def test_each_kind_is_named_with_the_command_that_takes_it(place: Path) -> None:
    assert {name: what_it_is(Path(name)) for name in WHAT} == WHAT


@pytest.mark.parametrize(("words", "said"), [
    (("run", "runs/one"), "runs/one: is a recording"), (("experiment", "runs/qos"), "is an experiment's directory"),
    (("check", "trace.pcap.gz"), "is a capture"), (("run", "messages.csv"), "is a table"),
    (("run", "runs/one/report.html"), "is an HTML page"), (("report", "fleet.toml"), "it is a scenario"),
    (("explain", "qos.toml"), "it is an experiment"), (("run", "fleet.tml"), "did you mean fleet.toml?"),
    (("report", "runs/on"), "did you mean runs/one?"), (("run", "qos.toml"), "mqttlab experiment qos.toml"),
])
def test_commands_say_so_in_one_line(words: tuple[str, ...], said: str, place: Path) -> None:
    done = mqttlab(*words)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert said in line


@pytest.mark.parametrize(("name", "text", "what"), [
    ("load.yaml", "name: a\ngroups:\n  - name: b\n", "is YAML"), ("load.toml", "# a load\n---\nname: a\n", "is YAML"),
    ("load.txt", "- name: a\n  count: 3\n", "is YAML"), ("load.json", '{"name": "a", "groups": []}', "is JSON"),
    ("loads.json", '[{"name": "a"}]', "is JSON"), ("cut.json", '{"name": "a", "groups": [', "is JSON"),
])
@pytest.mark.parametrize("command", ["run", "check", "experiment"])
def test_a_scenario_in_another_language_is_told_its_own(
    command: str, name: str, text: str, what: str, tmp_path: Path,
) -> None:
    """Once "is not TOML: expected '=' after a key", and "is JSON"."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = mqttlab(command, name, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2, f"mqttlab: {name}: {what}; scenarios and experiments are TOML; mqttlab new writes one\n")


def test_toml_with_a_slip_is_not_taken_for_another_language(tmp_path: Path) -> None:
    (tmp_path / "slip.toml").write_text('name: "a"\n\n[phases]\nduration = "1 s"\n', encoding="utf-8")
    assert "slip.toml:1: is not TOML: expected '='" in mqttlab("check", "slip.toml", cwd=tmp_path).stderr


@pytest.mark.parametrize(("command", "said"), [
    ("study", "mqttlab study list"), ("networks", "mqttlab networks"), ("run", "mqttlab list"),
    ("experiment", "mqttlab list --experiments")])
def test_who_asks_for_a_list_is_told_what_lists(command: str, said: str) -> None:
    done = mqttlab(command, "--list")
    assert done.returncode == 2 and f"there is no option --list; write: {said} (see" in done.stderr


def test_an_unknown_name_is_answered_with_the_nearest_or_with_what_there_is() -> None:
    assert did_you_mean("publsh", ["publish", "subscribe"]) == "did you mean `publish`?"
    assert did_you_mean("xyz", {"b", "a"}) == "known: a, b"
    assert did_you_mean("xyz", []) == "known: none"
    # Too many to be compared, and to be printed.
    many = [f"name{number}" for number in range(1_001)]
    assert did_you_mean("name0", many) == f"known: {', '.join(many[:20])}, and 981 more"


def test_a_missing_file_has_a_nearest_one_or_none(place: Path) -> None:
    assert nearest_path(Path("fleet.tml")) == "fleet.toml"
    assert nearest_path(Path("runs/qqs")) == "runs/qos"
    assert nearest_path(Path("something-else.toml")) is None
    assert nearest_path(Path("no/where.toml")) is None
    # Their ends alone are alike.
    assert nearest_path(Path("nope.toml")) is None and Path("qos.toml").exists()


def test_a_part_of_a_metrics_name_finds_the_metric() -> None:
    known = ["acknowledge_ms_p99", "late", "latency_ms_p99", "latency_ms_mean", "connect_ms_p99"]
    assert names_like("p99", known)[0] == "latency_ms_p99"
    assert names_like("latency_ms_p9", known) == ["latency_ms_p99"]
    assert names_like("", known) == []
    assert _nearest("p99", known) == "did you mean `latency_ms_p99`, `connect_ms_p99`, `acknowledge_ms_p99`?"
    assert _nearest("latency", known) == "did you mean `latency_ms_p99`, `latency_ms_mean`?"
    found = wrong(Measured(metric="p99"))
    assert found is not None and 'did you mean "latency_ms_p99"' in found[1]


@pytest.mark.parametrize(("given", "said"), [
    ("import trace.pcap.gz", "name the kind of file first: mqttlab import capture trace.pcap.gz (see"),
    ("import messages.csv", "name the kind of file first: mqttlab import log messages.csv (see"),
    ("import trase.pcap.gz", "capture trase.pcap.gz; there is no file trase.pcap.gz, did you mean trace.pcap.gz?"),
    ("import capture trase.pcap.gz", "trase.pcap.gz: there is no such file; did you mean trace.pcap.gz?"),
    ("import captur x", "there is no command 'captur'; did you mean `capture`?"),
    ("networks lte_m", "there is no network model or trace 'lte_m'; did you mean `lte-m`?"),
    ("networks --tcp linx", "there is no TCP profile 'linx'; did you mean `linux`?"),
    ("new lte-m-flet", "unknown template 'lte-m-flet'; did you mean `lte-m-fleet`?"),
    ("study lists", "unknown study 'lists'; did you mean `list`?"),
    ("schema scen", "'scen' is unknown; did you mean `scenario`?"),
    ("try --every 5 sec", "a value with a blank is quoted ('5 s')"),
    ("help run", "write: mqttlab run --help"),
    ("try --protocol amqp", "there is no option --protocol; write --set groups[0].protocol="),
    ("try --brokr x", "did you mean `--broker`?"),
    ("import log fleet.toml", "it is a scenario; run it with: mqttlab run fleet.toml"),
    ("report demo", "there is no directory demo; did you mean runs/demo-20260102-000000?"),
    ("explain runs/demo", "there is no directory runs/demo; did you mean runs/demo-20260102-000000?"),
    ("report on", "there is no directory on; did you mean runs/one?"),
])
def test_what_a_beginner_types_is_answered_with_the_nearest_right_value(given: str, said: str, place: Path) -> None:
    for name in ("demo-20260101-000000", "demo-20260102-000000"):
        (place / "runs" / name).mkdir()
    (place / "demo.txt").touch()
    done = mqttlab(*given.split())
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_named_model_is_shown_alone() -> None:
    shown = mqttlab("networks", "lte-m").stdout
    assert "lte-m" in shown and "satcom" not in shown and "Sources" in shown
    assert "satcom" in mqttlab("networks").stdout
