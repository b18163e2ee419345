"""`mqttlab try`: a load in one line, compared where an option has several values; checked by the scenario's parser."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path

import pytest

from commands import Done, mqttlab
from mqttlab import comparison
from mqttlab.experiments import load as load_experiment
from mqttlab.report.comparison.answer import answer as compared_answer
from mqttlab.scenario.load import load as load_scenario
from mqttlab.trial import Trial, checked, scenario_text

QUICK = "--simulate --duration 1s --no-html --catalog none"


def attempt(words: str, cwd: Path) -> Done:
    return mqttlab("try", *shlex.split(words), cwd=cwd)


def test_a_load_in_one_line_is_run_and_its_scenario_printed_and_kept(tmp_path: Path) -> None:
    done = attempt(f"--clients 3 --every 100ms --qos 1 --payload 50B --network lte --loss 2% {QUICK}", tmp_path)
    assert done.returncode == 0, done.stderr
    (run,) = (tmp_path / "runs").glob("try-*")
    text = done.stdout[done.stdout.index("# mqttlab try"):]
    scenario = tomllib.loads(text)
    network = scenario["networks"][0]
    assert (network["model"], network["up"], network["down"]) == ("lte", {"loss": "2 %"}, {"loss": "2 %"})
    assert network["link"] == "each"
    plan = json.loads((run / "plan.json").read_text(encoding="utf-8"))
    assert len(plan["network"]["links"]) == 6
    saved = attempt(f"--clients 3 --every 100ms --qos 1 --payload 50B --network lte --loss 2% {QUICK} --save load.toml",
                    tmp_path)
    assert saved.returncode == 0
    assert (tmp_path / "load.toml").read_text(encoding="utf-8").rstrip() == text.rstrip()
    again = mqttlab("run", "load.toml", "--no-html", "--catalog", "none", cwd=tmp_path)
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize(("shape", "deliveries"), [("fan-in", 2 * 30), ("fan-out", 3 * 20), ("own", 30)])
def test_each_shape_expects_its_deliveries(shape: str, deliveries: int, tmp_path: Path) -> None:
    others = {"fan-in": "--subscribers 2", "fan-out": "--publishers 2", "own": ""}[shape]
    done = attempt(f"--shape {shape} --clients 3 {others} --rate 10/s --json {QUICK}", tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    values = {row["metric"]: row["value"] for row in found["runs"][0]["metrics"] if row["scope"] == "run"}
    assert values["deliveries_expected"] == deliveries
    assert tomllib.loads(found["scenario"])["name"] == "try"


def test_an_option_with_several_values_compares_them(tmp_path: Path) -> None:
    done = attempt(f"--clients 2 --rate 60/s --qos 0,1 --network lte --repetitions 2 {QUICK} --save qos.toml", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("QoS 1 against QoS 0: p99 ")
    assert "bytes up" in done.stdout
    assert max(map(len, done.stdout.splitlines()[:12])) <= 80
    rows = [line for line in done.stdout.splitlines() if line.strip().startswith("qos ")]
    assert len(rows) == 2
    made = load_experiment(tmp_path / "qos.toml")
    assert [point.levels["qos"].text for point in made.design.points] == ["0", "1"]
    assert load_scenario(tmp_path / "qos-scenario.toml").backend == "sim"


def test_values_of_two_options_are_combined_and_figures_agree_with_the_runs(tmp_path: Path) -> None:
    done = attempt(f"--clients 1,2 --rate 20/s --network lte,nb-iot --repetitions 1 --json {QUICK}", tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [point["levels"] for point in found["points"]] == [
        {"clients": c, "network": n} for c in ("1", "2") for n in ("lte", "nb-iot")]
    assert "p50 is lowest with" in found["answer"] and "20 deliveries are too few for a p99" in found["answer"]
    for point in found["points"]:
        # 35 ms and 800 ms each way at least: the models' delays; and every message has headers and 100 B.
        least = 20 if point["levels"]["network"] == "lte" else 400
        assert point["values"]["latency_ms_p50"]["mean"] > least
        assert point["values"]["kb_per_device_hour_up"]["mean"] > 20 * 3600 * 150 / 1000 * 0.9


WRONG = {
    "--every 5sec": '--every is "5 sec", but "sec" is not a unit of a length of time; did you mean "5 s"?',
    "--bandwidth '10 Mbps'": '"Mbps" is not a unit of a data rate; did you mean "10 Mbit/s"?',
    "--loss 2": '--loss is "2", which has no unit; write "2 %"',
    "--qos 0,3": "--qos is 3, but must be one of 0, 1, 2",
    "--network ltem": "did you mean `lte-m`?",
    "--clients many": '--clients is "many", but must be a whole number',
    "--clients 1,,2": "--clients is '1,,2', which has an empty value; leave it out",
    "--qos 1,1": "--qos has a value twice; keep one",
    "--seed 1,2": "--seed has several values, but takes one; compare another option",
    "--every 1s --rate 1/s": "--every and --rate exclude each other; keep one",
    "--shape fan-out --subscribers 2": "--subscribers goes with --shape fan-in; leave it out",
    "--broker 127.0.0.1": "--broker names a broker that runs, which cannot be simulated; leave --simulate out",
    "--qos 0,1,2 --loss 0%,1%,2% --delay 1ms,2ms,3ms": "27 combinations are more than 24",
    "--network lte,802.15.4 --loss 1%": "compare them apart",
    "--keep-alive 1h,24h": "--keep-alive is",
    "--transport quic": "--transport",
}


@pytest.mark.parametrize("words", WRONG)
def test_a_wrong_option_is_named_in_one_line_and_nothing_is_made(words: str, tmp_path: Path) -> None:
    done = attempt(f"{words} --simulate", tmp_path)
    assert done.returncode == 2, done.stdout
    (line,) = done.stderr.splitlines()
    assert WRONG[words] in line
    assert list(tmp_path.iterdir()) == []


def test_every_option_is_read_where_it_is_written() -> None:
    values = {"clients": "3", "subscribers": "2", "rate": "10/s", "qos": "2", "payload": "gps", "network": "dsl",
              "loss": "1%", "delay": "5ms", "jitter": "1ms", "bandwidth": "1Mbit/s", "link": "shared", "mqtt": "5",
              "keep-alive": "30s", "transport": "tls", "duration": "90s", "repetitions": "3", "seed": "7"}
    trial = Trial(values={option: (value,) for option, value in values.items()})
    text = scenario_text(trial)
    scenario = checked(trial, tomllib.loads(text), text)
    assert scenario.networks[0].named is not None
    link = scenario.networks[0].named.up
    assert (link.rate, link.delay, link.jitter, link.loss) == (10**6, 5 * 10**6, 10**6, (1, 100))
    assert (scenario.seed, scenario.repetitions, scenario.mqtt.version) == (7, 3, "5")
    assert scenario.mqtt.keep_alive == 30 * 10**9
    assert [(group.count, group.layers) for group in scenario.groups] == [(3, "tls"), (2, "tls")]


def test_a_run_of_the_default_length_has_ten_messages_of_each_client() -> None:
    trial = Trial(values={"every": ("1s", "10 min")})
    assert checked(trial, tomllib.loads(scenario_text(trial)), "").phases.duration == 6000 * 10**9


def test_where_no_namespace_can_be_made_a_simulation_is_proposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    from mqttlab.cli import trial

    findings = {"capabilities": [{"name": "namespaces", "available": False, "detail": "unshare: not permitted"}]}
    monkeypatch.setattr(trial, "doctor", lambda: findings)
    done = attempt("--clients 2", tmp_path)
    assert done.returncode == 2
    assert "unshare: not permitted" in done.stderr
    assert "add --simulate" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.live
def test_the_same_line_runs_on_a_real_broker(tmp_path: Path) -> None:
    done = attempt("--clients 2 --rate 10/s --qos 1 --network lte --duration 1s --no-html --catalog none --json",
                   tmp_path)
    # On a busy machine the run is not valid (6); the messages arrive all the same.
    assert done.returncode in (0, 6), done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    values = {row["metric"]: row["value"] for row in run["metrics"] if row["scope"] == "run"}
    assert values["deliveries_expected"] == 20
    assert values["messages_delivered"] == 20


def test_a_comparison_cuts_nothing_off_on_eighty_columns(tmp_path: Path) -> None:
    # Of names and figures this long a table with intervals beside means left "keep-alive 1 m…" and "1,302 ± …".
    done = attempt(f"--clients 2 --rate 5/s --keep-alive 150s,900s --network nb-iot --repetitions 3 {QUICK}", tmp_path)
    assert done.returncode == 0, done.stderr
    table = done.stdout[:done.stdout.index("latency in ms")]
    assert "…" not in table.replace(" … ", ""), table
    assert "keep-alive 150s" in table or "keep-alive 150 s" in table
    assert "kB/device/h" in table and "delivered" in table
    assert table.count("±") >= 6
    assert max(map(len, table.splitlines())) <= 80


def test_a_simulation_without_a_result_is_made_once(tmp_path: Path) -> None:
    # Of three attempts with one seed all would be the same: nobody connects.
    done = attempt(f"--clients 1 --qos 0,1 --loss 100% --repetitions 1 --json {QUICK}", tmp_path)
    assert done.returncode == 6, done.stderr
    [place] = (tmp_path / "runs").glob("try-qos-*")
    assert len(list((place / "runs").iterdir())) == 2
    assert json.loads(done.stdout)["answer"].startswith("No comparison")


def test_try_and_compare_say_the_same_of_the_same_runs(tmp_path: Path) -> None:
    """Each had a judgement and words of its own."""
    words = f"--clients 3 --rate 10/s --qos 0,1 --network lte --loss 5% --repetitions 3 {QUICK} --json"
    done = attempt(words, tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    told = compared_answer(comparison.compare(*(f"{tmp_path / found['experiment']}#{point}" for point in (0, 1))))
    changes = {one.measure: one.change for one in told.differing + told.undecided + told.same}
    up = changes["ip_kb_per_device_hour_up"]
    assert up.word == "differs" and up.low is not None and up.low > 1
    both = comparison.words_of_change(up, "fewer bytes up", "more bytes up", str)
    assert both in found["answer"] and both in told.sentence


@pytest.mark.parametrize(("option", "value", "problem"), [
    ("network", "\x1b[31m", "--network has the control character U+001B; leave it out"),
    ("bandwidth", "1\x7f Mbit/s", "--bandwidth has the control character U+007F; leave it out"),
    ("payload", "10 B\n20 B", "--payload has the control character U+000A; leave it out"),
    ("transport", "t\udcff", "--transport has a byte that is not UTF-8; leave it out"),
])
def test_what_no_scenario_can_hold_is_refused_by_its_option(
    option: str, value: str, problem: str, tmp_path: Path,
) -> None:
    done = mqttlab("try", "--simulate", f"--{option}", value, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"mqttlab: {problem}\n")
