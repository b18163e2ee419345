"""Emulated paths measured through the live emulator, beside their models and first principles."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mqttlab.engine import probe
from mqttlab.report import probe as shown
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values


def scenario(up: dict[str, Any], down: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "probed", "phases": {"duration": "1 s", "cool_down": "1 s"},
        "networks": [{"between": ["field", "broker"], "up": up, "down": down}],
        "groups": [{"name": "p", "host": "field", "subscribe": [{"filter": "t/#"}],
                    "publish": {"topic": "t/1", "payload": "100 B", "interval": "100 ms"}}],
    }


@pytest.mark.live
def test_a_path_is_measured_as_its_model_says() -> None:
    values = scenario({"delay": "20 ms", "rate": "5 Mbit/s", "loss": "5 %"}, {"delay": "10 ms", "rate": "1 Mbit/s"})
    heard: list[float] = []
    found = probe(compile_plan(parse_values(values)), 4, lambda line: heard.append(line["done"]))
    assert heard == sorted(heard) and heard[-1] == 1
    path, = found["paths"]
    up, down = path["up"], path["down"]
    # 2,000 probes at 5 %: the binomial's mean 100, standard deviation 9.7; six of them leave one miss in 10^9.
    assert up["udp"]["sent"] > 1000
    low, high = (up["udp"]["sent"] * 0.05 + sign * 6 * (up["udp"]["sent"] * 0.05 * 0.95) ** 0.5 for sign in (-1, 1))
    assert low <= up["udp"]["sent"] - up["udp"]["received"] <= high
    assert down["udp"]["received"] == down["udp"]["sent"]
    for way, delay_ms in ((up, 20), (down, 10)):
        # Never faster than the link, but for the machine's own time, which is taken off; a busy machine adds to it.
        assert way["udp"]["delay_min_ns"] >= delay_ms * 1e6 - found["latency_compensation_ns"]
        assert way["expected"]["delay_mean_ns"] > delay_ms * 1e6
        # Gaps between frames cannot be shorter in all than their sending takes; a late emulator moves only the ends.
        assert 0.5 < way["trains"]["rate_bit_s"] / way["expected"]["rate_bit_s"] < 1.5
        assert 0 < way["tcp"]["goodput_bit_s"] < 1.5 * way["expected"]["rate_bit_s"]
    assert path["connect_ns"] >= 30e6 - 2 * found["latency_compensation_ns"]
    words = set(shown.table(found)["quantity"])
    assert words >= {"rate", "delay, mean", "delay, standard deviation", "loss", "goodput", "round trip"}


@pytest.mark.live
def test_the_numbers_stand_in_the_recording_and_its_report(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(scenario({"delay": "5 ms", "loss": "2 %"}, {"delay": "5 ms"})), encoding="utf-8")
    code = ("import json, sys; from mqttlab.runs import Job, perform; from mqttlab.scenario import compile_plan; "
            "from mqttlab.scenario.load import parse_values; from pathlib import Path; "
            "values = json.load(open(sys.argv[1])); values['live'] = {'probe': '1 s'}; "
            "perform(Job(compile_plan(parse_values(values)), Path(sys.argv[2])), lambda line: None)")
    subprocess.run([sys.executable, "-c", code, str(path), str(tmp_path / "run")], check=True, timeout=120)
    run = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    found, = run["details"]["probe"]["paths"]
    assert found["up"]["expected"]["loss_percent"] == pytest.approx(2)
    assert found["up"]["udp"]["sent"] > 100
    subprocess.run([sys.executable, "-m", "mqttlab", "report", str(tmp_path / "run")], check=True, timeout=120,
                   capture_output=True)
    assert "measured before the run" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")


@pytest.mark.live
def test_a_named_model_is_probed_from_the_command_line() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "mqttlab", "networks", "--probe", "satcom", "--seconds", "1", "--json"],
        capture_output=True, text=True, check=True, timeout=120)
    path, = json.loads(result.stdout)["paths"]
    # The model's 550 ms, each way or for both, are there whatever the placement.
    assert path["connect_ns"] > 500e6


def test_an_unknown_model_is_named() -> None:
    result = subprocess.run([sys.executable, "-m", "mqttlab", "networks", "--probe", "satcmo"],
                            capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 2
    assert "did you mean `satcom`?" in result.stderr


def test_an_interval_covers_what_it_says() -> None:
    # Wilson's interval of 5 in 100, as published (Newcombe 1998 gives the method; the values are R's prop.test).
    low, high = shown.interval(5, 100)
    assert low == pytest.approx(0.02154, abs=1e-4)
    assert high == pytest.approx(0.11175, abs=1e-4)
    wide = shown.interval(5, 100, inflation=9)
    assert wide[0] < low and wide[1] > high
    assert shown.interval(0, 2000)[0] == 0


def test_a_transfer_of_which_nothing_came_in_time_is_no_goodput_of_zero() -> None:
    udp = {"sent": 4, "received": 0, "reordered": 0, "duplicates": 0}
    expected = {"rate_bit_s": 60_000, "loss_percent": 0.0, "loss_inflation": 1.0, "duplicates_percent": 0.0,
                "keeps_order": True, "delay_mean_ns": 0.0}
    way = {"expected": expected, "udp": udp, "trains": None, "tcp": {"bytes": 0, "goodput_bit_s": 0.0}}
    found = {"paths": [{"host": "client", "broker_host": "broker", "up": way, "connect_ns": 1_000_000,
                        "down": {**way, "tcp": {"bytes": 1448, "goodput_bit_s": 19_306.7}}}]}
    rows = shown.table(found).filter(pl.col("quantity") == "goodput")
    assert rows["measured"].to_list() == ["not known: measure for longer", "19.31 kbit/s"]
    assert rows["from"].to_list()[1].startswith("1,448 B")
