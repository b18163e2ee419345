"""What `mqttlab check` tells of a scenario that a reader would look for: limits, comings and goings, the air."""

from __future__ import annotations

import re
from pathlib import Path

from commands import mqttlab
from mqttlab.scenario import compile_plan, parse
from mqttlab.scenario.one_sentence import one_sentence

HEAD = """
name = "told"
backend = "sim"
phases = { warm_up = "4 s", duration = "5 s" }
"""
GROUPS = """
[[groups]]
name = "meters"
host = "field"
count = 50
publish = { topic = "m/{client}", payload = "100 B", interval = "500 ms" }
churn = { connects = "25 /s", hold = "1 s", law = "exponential" }
[[groups]]
name = "sink"
host = "broker"
subscribe = ["m/#"]
"""


def told(text: str, place: Path) -> str:
    path = place / "told.toml"
    path.write_text(text, encoding="utf-8")
    checked = mqttlab("check", path)
    assert checked.returncode == 0, checked.stderr
    return checked.stdout


def test_limits_and_comings_are_told(tmp_path: Path) -> None:
    network = '[[networks]]\nbetween = ["field", "broker"]\nlink = "each"\nup = { delay = "5 ms" }\n'
    limits = '[hosts.broker.limits]\nprofile = "raspberry-pi-3"\nmemory = "16 MB"\n'
    said = told(HEAD + limits + network + GROUPS.replace('host = "broker"', 'host = "field"'), tmp_path)
    assert "host broker: 20 % of a processor, 16 MB of memory, a disk that takes 10 MB/s\n" in said
    assert "come and go: 25 connections a second, each for 1 s on average\n" in said


def test_what_varies_on_the_air_is_told(tmp_path: Path) -> None:
    radio = """
[radio]
shadowing = { sigma = "6 dB" }
fading = { kind = "nakagami", m = 3, coherence = "50 ms" }
errors = "snr"
[[radio.interferers]]
name = "oven"
position = ["30 m", "0 m"]
power = "20 dBm"
"""
    varied = "shadowing of 6 dB; Nakagami fading (m = 3), anew every 50 ms; errors by signal to noise; "
    varied += "interferers oven\n"
    assert varied in told(HEAD + radio + GROUPS, tmp_path)
    plain = told(HEAD + "[radio]\n" + GROUPS, tmp_path)
    assert "shadowing" not in plain and "fading" not in plain


def test_the_headlines_sentence_has_the_same_words(tmp_path: Path) -> None:
    network = '[[networks]]\nbetween = ["field", "broker"]\nlink = "each"\nup = { delay = "5 ms" }\n'
    limits = '[hosts.broker.limits]\nmemory = "16 MB"\n'
    groups = GROUPS.replace('host = "broker"', 'host = "field"')

    def sentence(text: str) -> str:
        return one_sentence(compile_plan(parse(text)))

    alone = sentence(HEAD + network + re.sub("churn = .*\n", "", groups))
    assert "limits" not in alone and "come and go" not in alone
    assert sentence(HEAD + limits + network + groups) == (
        f"{alone.removesuffix('.')}; host broker has 16 MB of memory; "
        "meters come and go: 25 connections a second, each for 1 s on average.")
    # What is too long is counted.
    whole = limits.replace("memory", 'profile = "raspberry-pi-3"\nmemory')
    assert sentence(HEAD + whole + network + groups) == (
        f"{alone.removesuffix('.')}; 1 host with limits; 50 clients come and go.")
    assert sentence(HEAD + whole + network + re.sub("churn = .*\n", "", groups)) == (
        f"{alone.removesuffix('.')}; host broker has 20 % of a processor, 16 MB of memory, a disk that takes 10 MB/s.")


def test_a_report_begins_with_limits(tmp_path: Path) -> None:
    network = '[[networks]]\nbetween = ["field", "broker"]\nlink = "each"\nup = { delay = "5 ms" }\n'
    path = tmp_path / "told.toml"
    path.write_text(f'{HEAD}[hosts.broker.limits]\nmemory = "16 MB"\n{network}'
                    + GROUPS.replace('host = "broker"', 'host = "field"'), encoding="utf-8")
    ran = mqttlab("run", path, "--runs", tmp_path / "runs", "--no-html", "--catalog", "none")
    assert ran.returncode in (0, 6), ran.stderr
    assert "host broker has 16 MB of memory" in " ".join(ran.stdout.split())
