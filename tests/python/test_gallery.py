"""The templates of `mqttlab new`: each is checked and run, says what to look at, and overwrites nothing."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from commands import mqttlab
from mqttlab.gallery import templates

TEMPLATES = templates()
RUNS = [name for name, template in TEMPLATES.items() if template.command == "run"]
ROOT = Path(__file__).resolve().parents[2]
# A minute has a message of each flow; of the one with 3,000 deliveries a second two seconds are enough. An hour has one
# of those that wait for it.
# A threshold on p99 needs 100 deliveries.
DURATIONS = {"dashboard-fan-out": "2 s", "fleet-at-the-hour": "61 min", "satcom-command": "6 min"}
FEWER = {"reconnect-storm": ("--set", "groups[0].count=500")}


def test_the_gallery_answers_the_questions_that_people_ask() -> None:
    assert list(TEMPLATES) == [
        "lte-m-fleet", "satcom-command", "dashboard-fan-out", "fleet-reconnect", "sleeping-sensors", "tls-thin-link",
        "radio-cell", "broker-settings", "image-bursts", "capture", "link-outage", "broker-restart", "reconnect-storm",
        "rain-fade", "fleet-at-the-hour", "nat-timeout"]
    listed = mqttlab("new", "--list")
    page = (ROOT / "docs" / "how-to" / "gallery.md").read_text(encoding="utf-8")
    for name, template in TEMPLATES.items():
        assert f"{name} " in listed.stdout
        assert template.title in listed.stdout
        assert template.title.endswith("?"), template.title
        assert f"`{name}`" in page, f"docs/how-to/gallery.md does not name {name}"
        picture = ROOT / "docs" / "pictures" / f"template-{name}.png"
        assert f"../pictures/{picture.name}" in page
        assert picture.stat().st_size < 60_000, "run: tests/python/pictures.py"


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_says_what_to_look_at_and_what_to_change(name: str) -> None:
    text = TEMPLATES[name].path.read_text(encoding="utf-8")
    assert "Look at:" in text
    assert "Change:" in text
    assert max(map(len, text.splitlines())) <= 130


@pytest.mark.parametrize("name", RUNS)
def test_a_template_runs_and_every_flow_arrives(name: str, tmp_path: Path) -> None:
    assert mqttlab("new", name, cwd=tmp_path).returncode == 0
    file = f"{name}.toml"
    check = mqttlab("check", file, cwd=tmp_path)
    assert (check.returncode, check.stderr) == (0, "")
    ran = mqttlab("run", file, "--json", "--catalog", "none", "--set", "phases.warm_up=1 s", "--set",
                  f"phases.duration={DURATIONS.get(name, '1 min')}", *FEWER.get(name, ()), cwd=tmp_path)
    found = json.loads(ran.stdout)
    assert found["exit_status"] == 0, ran.stderr
    rows = found["runs"][0]["metrics"]
    # What was never sent is for nobody.
    flows = {row["name"]: row["value"] for row in rows if row["metric"] == "messages_delivered"
             and row["scope"] == "groups" and " to none " not in row["name"]}
    subscribers = [group for group in tomllib.loads((tmp_path / file).read_text(encoding="utf-8"))["groups"]
                   if "subscribe" in group]
    assert len(flows) >= len(subscribers)
    assert all(flows.values()), flows


def test_the_experiment_of_the_gallery_runs_from_its_files(tmp_path: Path) -> None:
    made = mqttlab("new", "broker-settings", "--out", "window.toml", cwd=tmp_path)
    assert made.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["window-scenario.toml", "window.toml"]
    ran = mqttlab("experiment", "window.toml", "--queue", "none", "--catalog", "none", "--set", "phases.duration=5 s",
                  cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "window 6 " in ran.stdout
    assert "window 20" in ran.stdout


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "broker-settings-scenario.toml").write_text("mine", encoding="utf-8")
    done = mqttlab("new", "broker-settings", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == ("mqttlab: broker-settings-scenario.toml is there already; name another file with --out\n")
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["mine"]


def test_an_unknown_template_is_answered_with_the_nearest(tmp_path: Path) -> None:
    done = mqttlab("new", "lte-fleet", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (
        2, "mqttlab: unknown template 'lte-fleet'; did you mean `lte-m-fleet`?\n")
    assert mqttlab("new", "--out", "x.toml", cwd=tmp_path).returncode == 2
    assert mqttlab("new", "--list", "capture", cwd=tmp_path).returncode == 2
