"""What `mqttlab check` tells of a scenario that a reader would look for: limits, comings and goings, the air."""

from __future__ import annotations

from pathlib import Path

from commands import mqttlab

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
