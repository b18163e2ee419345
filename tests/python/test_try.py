"""`mqttlab try`: a load in one line, compared where an option has several values; checked by the scenario's parser."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
import tomllib
from pathlib import Path

import pytest

from commands import Done, mqttlab
from mqttlab import comparison
from mqttlab.cli import trial as trial_commands
from mqttlab.errors import UsageError
from mqttlab.experiments import load as load_experiment
from mqttlab.report.comparison.answer import answer as compared_answer
from mqttlab.scenario import Scenario
from mqttlab.scenario.load import load as load_scenario
from mqttlab.scenario.wording import example_of
from mqttlab.trial import Trial, checked, files_of, scenario_text
from mqttlab.trial.unknown import FIELDS, instead_of
from ports import own_port

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


def test_points_that_runs_do_not_tell_apart_are_no_extremes(tmp_path: Path) -> None:
    load = "--clients 2 --every 1s --delay 50ms --repetitions 3 --json"
    done = attempt(f"{load} --qos 0,1,2 {QUICK.replace('1s', '30s')}", tmp_path)
    found = json.loads(done.stdout)["answer"]
    assert "is lowest with qos 0 and qos 1, which are not told apart (" in found and "highest with qos 2 (" in found
    assert ("; fewest bytes up with qos 0, " in found and " % more with qos 2 (" in found) or "times as many" in found
    done = attempt(f"{load} --mqtt 3.1,3.1.1,5 {QUICK.replace('1s', '30s')}", tmp_path)
    assert json.loads(done.stdout)["answer"].startswith("no difference of p")


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
    "--clients -5": "--clients is -5, but must be 1 or more",
    "--nat 2sec": '--nat is "2 sec", but "sec" is not a unit of a length of time; did you mean "2 s"?',
    "--ping never": '--ping is "never", but must be one of silence, interval, sent',
    "--will a/#": '--will is "a/#"',
    "--username lab --password-env MQTTLAB_UNSET": "environment variable MQTTLAB_UNSET, which is not set",
    "--password-env MQTTLAB_UNSET": "--password-env needs a `username` in MQTT 3.1.1",
    "--set mqtt.version=7": "--set mqtt.version is 7, but must be one of 3.1, 3.1.1, 5",
    "--set groups[9].count=1": "there is no [9]",
    "--set mqtt.pingg=sent": "--set mqtt.pingg is an unknown field; did you mean `ping`?",
    "--set groups[0].publish.qos=2 --qos 1": "--set groups[0].publish.qos and --qos set the same field; keep one",
    "--set mqtt.password=open-sesame --set mqtt.username=a": "use --password-env VARIABLE",
    "--set backend=sim": "--set backend: use --simulate",
}
# An option that is not there, and what is meant: another one, or a field of the scenario.
ELSEWHERE = {
    "--retain": "write --set groups[0].publish.retain=true, or in the file that --save writes: `retain = true` in "
                "`publish` of [[groups]]",
    "--clean-session false": "write --set mqtt.clean_session=false, or in the file that --save writes: "
                             "`clean_session = false` below [mqtt]",
    "--late-after 1s": "`late_after = \"10 s\"` below [[groups]]",
    "--version 5": "write --set mqtt.version='\"3.1\"'",
    "--queue 5": "write --set networks[0].up.queue=",
    "--limits 5": "write --set hosts.devices.limits=",
    "-t a/b": "write --set groups[0].publish.topic=TEXT",
    "-q 1": "write --qos 0|1|2", "-P secret": "write --password-env VARIABLE", "-p 1883": "write --broker HOST:PORT",
    "-u lab": "write --username NAME", "--tls": "write --transport tls", "--cafile ca.pem": "write --ca FILE",
    "--cert own.pem": "clients cannot show a certificate of yours",
    "--clinets 3": "did you mean `--clients`?",
    "--no-such-thing": "there is no option --no-such-thing (see mqttlab try --help)",
}


@pytest.mark.parametrize("words", ELSEWHERE)
def test_an_option_that_is_not_there_is_answered_with_what_is_meant(words: str, tmp_path: Path) -> None:
    """Once a list of 25 options."""
    done = attempt(f"--simulate {words}", tmp_path)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and ELSEWHERE[words] in line, line
    assert line.count("--") < 8, "no list of options"


@pytest.mark.parametrize("field", [*FIELDS.values()])
def test_what_is_proposed_for_an_option_is_a_field(field: str) -> None:
    assert example_of(field, Scenario)


@pytest.mark.parametrize("option", ["--retain", "--clean-session", "--late-after", "--version", "--nagle",
                                    "--max-inflight", "--disable-clean-session", "--topic", "--detail",
                                    "--description", "--placement"])
def test_what_is_proposed_can_be_written(option: str, tmp_path: Path) -> None:
    told = instead_of(option)
    assert told is not None
    setting = shlex.split(told.partition("--set ")[2].partition(", or in")[0])[0]
    more = " --network dsl" if option == "--placement" else ""
    done = attempt(f"--clients 1 --set {shlex.quote(setting)}{more} {QUICK}", tmp_path)
    assert done.returncode in (0, 6), done.stderr


def test_settings_stand_in_the_saved_scenario_beside_its_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAB_WORD", "open-sesame")
    words = ("--clients 2 --rate 5/s --nat 2min --ping sent --will gone/now --username 'lab, # {client}' "
             "--password-env LAB_WORD --set groups[0].publish.retain=true --set groups[subscribers].subscribe[0].qos=1 "
             "--set phases.cool_down=20s --set recording.detail=messages --set 'description=of a # day'")
    done = attempt(f"{words} {QUICK} --save load.toml", tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "load.toml").read_text(encoding="utf-8")
    scenario = load_scenario(tmp_path / "load.toml")
    assert scenario.networks[0].nat is not None and scenario.networks[0].nat.timeout == 120 * 10**9
    assert (scenario.mqtt.ping, scenario.mqtt.username, scenario.description) == (
        "sent", "lab, # {client}", "of a # day")
    assert scenario.mqtt.will is not None and scenario.mqtt.will.topic == "gone/now"
    [(_, publish)] = scenario.groups[0].publications
    assert publish.retain and scenario.groups[1].subscribe[0].qos == 1
    assert (scenario.phases.cool_down, scenario.recording.detail) == (20 * 10**9, "messages")
    assert 'cool_down = "20s"       # at most: for messages still under way' in text
    assert "# publishing that is not counted" in text and "# of every client" in text
    assert "open-sesame" not in text + done.stdout and 'password = { env = "LAB_WORD" }' in text
    assert "--set 'groups[0].publish.retain=true'" in text.splitlines()[0]


def test_a_threshold_that_is_set_is_judged(tmp_path: Path) -> None:
    bound = "--set 'thresholds=[{metric=\"latency_ms_mean\",below=\"%s\"}]'"
    broken = attempt(f"--clients 2 {bound % '1 us'} {QUICK}", tmp_path)
    assert broken.returncode == 4 and "broken" in broken.stdout, broken.stdout + broken.stderr
    held = attempt(f"--clients 2 {bound % '1 h'} {QUICK}", tmp_path)
    assert held.returncode == 0 and "broken" not in held.stdout
    several = attempt(f"--clients 2 --qos 0,1 {bound % '1 h'} {QUICK}", tmp_path)
    assert several.returncode == 2 and "judged of one load" in several.stderr


def test_settings_hold_at_every_point_of_a_comparison(tmp_path: Path) -> None:
    words = "--clients 1 --nat 2min,5min --set groups[0].publish.retain=true --repetitions 1"
    done = attempt(f"{words} {QUICK} --save c.toml", tmp_path)
    assert done.returncode == 0, done.stderr
    made = load_experiment(tmp_path / "c.toml")
    for point in made.design.points:
        [(_, publish)] = made.scenario_at(point).groups[0].publications
        assert publish.retain


def test_a_broker_by_name_over_tls_is_known_by_its_name(tmp_path: Path) -> None:
    """Its certificate is not for the address that the name was resolved to."""
    hosts: dict[str, str] = {}
    address = trial_commands._resolved("localhost:8883", hosts)
    trial = Trial(values={"broker": (address,), "transport": ("tls",), "ca": ("ca.pem",)}, hosts=hosts)
    broker = tomllib.loads(scenario_text(trial))["broker"]
    assert broker == {"kind": "external", "address": "127.0.0.1", "ports": {"tls": 8883},
                      "tls": {"authority": "ca.pem", "name": "localhost"}}
    assert trial_commands._resolved("127.0.0.1:8883", kept := {}) == "127.0.0.1:8883" and not kept
    # Of several each has its port and its name; the port of plain TCP was varied once.
    both = Trial(values={**trial.values, "broker": (address, "127.0.0.2:8884")}, hosts=hosts)
    [factor] = tomllib.loads(files_of(both, "two", "two-scenario.toml").experiment)["factors"]
    assert list(factor["patches"].values()) == [
        {"broker.address": "127.0.0.1", "broker.ports.tls": 8883, "broker.tls.name": "localhost"},
        {"broker.address": "127.0.0.2", "broker.ports.tls": 8884, "broker.tls.name": "127.0.0.2"}]
    done = attempt("--broker localhost:1 --transport tls", tmp_path)
    assert done.returncode == 2 and "needs --ca with --broker" in done.stderr


def test_a_name_that_no_server_answers_is_given_up_after_a_time_that_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(trial_commands, "PATIENCE_S", 0.05)
    monkeypatch.setattr(trial_commands, "LOOKUP_S", 0.1)
    monkeypatch.setattr(trial_commands.socket, "getaddrinfo", lambda *_: time.sleep(5))
    with pytest.raises(UsageError, match="no name server answered within"):
        trial_commands._resolved("broker.example:1883", {})
    assert "looking up broker.example, at most" in capsys.readouterr().err


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


def test_two_options_compared_tell_what_decides(tmp_path: Path) -> None:
    """Behind a NAT that forgets: what comes late, what is cut off, and megabytes a month, once not on the screen."""
    words = ("--clients 5 --every 5min --nat 2min,10min --qos 0,1 --keep-alive 5min --network lte-m --duration 30min "
             "--repetitions 3 --simulate --set 'groups[0].late_after=\"60 ms\"'")
    said = attempt(words, tmp_path).stdout
    sentence = " ".join(said.partition("Means")[0].split())
    # A queue of QoS 1 waits for the next connection: all of it comes, long after it was due.
    assert "most late with nat 2 min, qos 1 (" in sentence
    assert "most disconnects with nat 2 min, qos 0 and nat 2 min, qos 1 (10)" in sentence
    assert "most not delivered with nat 2 min, qos 0 (" in sentence and "bytes up with nat 10 min" in sentence
    for head in ("late", "disconnects", "MB/device a month", "kB/device/h up"):
        assert head in said
    told = json.loads(attempt(f"{words} --json", tmp_path).stdout)
    points = {tuple(point["levels"].values()): point["values"] for point in told["points"]}
    of = points["2 min", "1"]
    assert of["disconnects"]["mean"] == 10 and of["late"]["mean"] > 20
    up, down, month = (of[name]["mean"] for name in (
        "kb_per_device_hour_up", "kb_per_device_hour_down", "mb_per_device_month"))
    assert month == pytest.approx((up + down) * 24 * 30 / 1000)
    # Nobody asks when a message is late, and no connection ends: there is no such column.
    plain = attempt("--qos 0,1 --every 1s --duration 5s --simulate", tmp_path).stdout.partition("latency in ms")[0]
    assert "late" not in plain and "connects" not in plain and "MB/device" in plain


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


@pytest.mark.live
def test_a_broker_elsewhere_with_tls_and_a_password_is_measured_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its certificate is for `localhost`; the scenario has the address."""
    port = own_port()
    subprocess.run([
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE",
        "-keyout", tmp_path / "own.key", "-out", tmp_path / "own.pem"], check=True, capture_output=True, timeout=30)
    (tmp_path / "words").touch(mode=0o600)
    subprocess.run(["mosquitto_passwd", "-b", tmp_path / "words", "lab", "open-sesame"], check=True,
                   capture_output=True)
    (tmp_path / "own.conf").write_text(
        f"listener {port} 127.0.0.1\ncertfile {tmp_path}/own.pem\nkeyfile {tmp_path}/own.key\nallow_anonymous false\n"
        f"password_file {tmp_path}/words\nuser root\n")
    monkeypatch.setenv("LAB_WORD", "open-sesame")
    broker = subprocess.Popen(["mosquitto", "-c", tmp_path / "own.conf"], stderr=subprocess.PIPE, text=True)
    try:
        assert broker.stderr is not None and any("running" in line for line in broker.stderr)
        words = (f"--broker localhost:{port} --transport tls --ca own.pem --username lab --password-env LAB_WORD "
                 "--clients 2 --rate 10/s --duration 1s --no-html --catalog none --json")
        done = attempt(words, tmp_path)
        monkeypatch.setenv("LAB_WORD", "wrong")
        refused = attempt(words, tmp_path)
    finally:
        broker.kill()
        broker.wait()
    assert done.returncode in (0, 6), done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    values = {row["metric"]: row["value"] for row in run["metrics"] if row["scope"] == "run"}
    assert values["messages_delivered"] == values["deliveries_expected"] == 20
    assert "open-sesame" not in done.stdout
    assert refused.returncode == 3 and "no client was accepted at 127.0.0.1" in refused.stdout
    assert "not authorised" in refused.stdout
