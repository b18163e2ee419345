"""Studies as packages: one shape for all, and usable wherever the package is installed."""

from __future__ import annotations

import io
import itertools
import math
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from mqttlab.cli.main import main
from mqttlab.cli.study import as_live, print_results
from mqttlab.console import Console
from mqttlab.errors import UsageError
from mqttlab.recording import Recording
from mqttlab.runs import LocalPool
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import parse_values
from mqttlab.studies import Cell, Comparison
from mqttlab.studies.agreement import Measured, compared, far
from mqttlab.studies.catalogue import known
from mqttlab.studies.chart import BOTTOM, HEIGHT, TOP, Chart, Series, svg
from mqttlab.studies.claims import (
    ASSUMED,
    OPEN,
    SHOWN,
    TOO_SHORT,
    Ran,
    cause_open,
    claims_of,
    decides,
    of_short_pass,
    reasons,
    shown,
)
from mqttlab.studies.document import CLAIM_COLUMNS, Rerun, columns, fit_rows, rows, write
from mqttlab.studies.means import mean_charts
from mqttlab.studies.probes import simulator_digest
from mqttlab.studies.simulate import _held_up, simulate
from mqttlab.studies.study import Reading, Study, printed_sources, published_rows
from mqttlab.studies.table import AsPrinted, as_printed, beside_simulated, pooled
from mqttlab.version import __version__

ROOT = Path(__file__).resolve().parents[2]
STUDIES = known()


def test_all_five_are_there() -> None:
    assert list(STUDIES) == ["andersen2021", "borsatti2020", "perez2005", "schuhmacher2018", "varsani2021"]


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_has_the_same_shape(name: str) -> None:
    study = STUDIES[name]
    assert study.name == name
    assert (study.directory / "README.md").is_file()
    claims = claims_of(study.published)
    assert claims and all(claim["id"] and claim["text"] for claim in claims)
    assert list(study.published.glob("*.csv")) or name == "borsatti2020"
    cases = study.cases(study.published, ())
    names = {case.name for case in cases}
    assert names
    for effort in (study.quick, study.thorough, *([] if study.full is None else [study.full])):
        assert all(case.scenario(effort)["phases"]["duration"] for case in cases)
    # What decides a claim, and what is run live, is there.
    for claim in claims:
        assert any(decides(claim, case) for case in names), claim["id"]
    assert study.live.repetitions >= 5 and study.live.together >= 1
    assert study.live.cases and set(study.live.cases) <= names
    # For minutes instead of hours a part of the same, as often.
    quick = study.live_quick
    assert quick.repetitions == study.live.repetitions
    assert set(quick.cases) < set(study.live.cases) and quick.phases != study.live.phases


@pytest.mark.parametrize("name", STUDIES)
def test_every_scenario_of_a_study_compiles(name: str) -> None:
    study = STUDIES[name]
    cases = {case.name: case for case in study.cases(study.published, ())}
    assert max(len(case.scenario(study.quick)["name"]) for case in cases.values()) <= 40, "longer names are refused"
    # Of a family of hundreds every seventh, and all that are run live.
    for number, (label, case) in enumerate(cases.items()):
        if number % 7 == 0 or label in study.live.cases:
            compile_plan(parse_values(case.scenario(study.quick), label))


@pytest.mark.parametrize("name", STUDIES)
def test_every_table_has_its_cases(name: str) -> None:
    study = STUDIES[name]
    for table in study.tables(study.published):
        assert study.cases(study.published, [table]), table


def test_the_published_rows_are_counted() -> None:
    assert sum(len(printed_sources(study.published)) for study in STUDIES.values()) == 1020


def test_every_printed_row_has_ours_beside_in_the_committed_results() -> None:
    beside = {}
    for name, study in STUDIES.items():
        text = (study.directory / "results.md").read_text(encoding="utf-8")
        found = re.search(rf"`mqttlab study {name}`: \d+ simulations. Of (\d+) printed rows (\d+) have ours", text)
        assert found is not None, f"{name}: results.md is not of the whole study by one command"
        assert int(found[1]) == len(printed_sources(study.published))
        beside[name] = int(found[2])
    assert sum(beside.values()) == 1020, beside


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel in it, far from the checkout; it borrows this one's packages, not this package.

    Maturin finds the engine compiled, as `make test` leaves it: compiling it again would take minutes.
    """
    pytest.importorskip("maturin", reason="maturin is not installed: make setup-test")
    engine = ROOT / "target" / "release" / "mqttlab-engine"
    sources = [*ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("crates/*/Cargo.toml"), ROOT / "Cargo.lock"]
    if not engine.is_file() or engine.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        pytest.skip("target/release/mqttlab-engine is not of these sources: make setup")
    directory = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "maturin", "build", "--release", "--locked", "--offline", "--auditwheel", "skip",
        "--out", str(directory), cwd=ROOT)
    (wheel,) = directory.glob("*.whl")
    environment = directory / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", str(environment), cwd=directory)
    python = environment / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index",
        str(wheel), cwd=directory)
    # A path in such a file is looked in for packages, but its own such files, and so the checkout, are not.
    (site,) = environment.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    found = run(str(python), "-c", "import mqttlab; print(mqttlab.__file__)", cwd=directory).stdout
    assert found.startswith(str(site))
    return environment / "bin"


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command that has to succeed."""
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300,
                         env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"})
    assert ran.returncode == 0, f"{command}: {ran.stdout}{ran.stderr}"
    return ran


def mqttlab(programs: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The installed command, in a directory that knows nothing of the checkout."""
    return run(str(programs / "mqttlab"), *words, cwd=programs.parent.parent)


def test_an_installed_package_answers_in_one_line_and_has_its_gallery(installed: Path) -> None:
    ran = mqttlab(installed, "try", "--simulate", "--clients", "2", "--duration", "1s", "--catalog", "none")
    assert "# mqttlab try --clients 2" in ran.stdout
    assert "sleeping-sensors" in mqttlab(installed, "new", "--list").stdout
    assert "\"$defs\"" in mqttlab(installed, "schema", "report").stdout


def test_an_installed_package_lists_its_studies_from_anywhere(installed: Path) -> None:
    ran = mqttlab(installed, "study", "list")
    assert (installed / "mqttlab-engine").is_file()
    for name, study in STUDIES.items():
        assert name in ran.stdout
        assert study.title.split(",")[0] in ran.stdout


@pytest.mark.parametrize(("name", "table", "runs"), [
    ("andersen2021", "5.4", 2), ("borsatti2020", "laws", 36), ("perez2005", "5.2", 3), ("schuhmacher2018", "6", 19),
    ("varsani2021", "retained", 4)])
def test_an_installed_package_reruns_a_study_from_anywhere(installed: Path, name: str, table: str, runs: int) -> None:
    ran = mqttlab(installed, "study", name, "--quick", "--table", table)
    assert f"Table {table}" in ran.stdout
    assert f"{runs} simulations in" in ran.stdout


def test_the_verdicts_come_first_and_each_claim_has_a_line() -> None:
    claims = [Comparison(claim=f"c{number}", text=f"claim {number}", holds=holds, evidence=evidence)
              for number, (holds, evidence) in enumerate(
                  [(False, "x"), (True, "x"), (None, "x"), (True, "x"), (None, "")])]
    cell = Cell(table="5.4", place="a", metric="mean", published=1.0, ours=1.0, source="x")
    console = Console(width=100, record=True, file=io.StringIO())
    print_results(claims, [cell], console)
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert lines[:6] == [
        "Of 5 claims: 2 held, 1 not reproduced, 1 undecided, 1 not judged yet.", "  not reproduced  claim 0",
        "  held            claim 1", "  undecided       claim 2", "  held            claim 3",
        "  not judged yet  claim 4"]
    assert any("5.4" in line for line in lines[6:])


def test_a_claim_is_judged_with_its_own_cases_and_drawn(tmp_path: Path) -> None:
    out = tmp_path / "out.md"
    ran = CliRunner().invoke(main, ["study", "borsatti2020", "--quick", "--claim", "qos2-at-least-four",
                                    "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    # Once the claims stood behind thousands of lines.
    first, second = [line for line in ran.stdout.splitlines() if line][:2]
    assert re.fullmatch(r"Of 1 claim: 1 (undecided|not reproduced)\.", first)
    assert re.match(r"  (undecided|not reproduced)  \S", second)
    text = out.read_text(encoding="utf-8")
    assert re.search(rf"^Simulator `[0-9a-f]{{12}}`, version {re.escape(__version__)}\.$", text, flags=re.MULTILINE)
    assert "| `qos2-at-least-four`" in text and re.search(r"\| (undecided|\*\*not reproduced\*\*) \|", text)
    drawn = (tmp_path / "figures" / "figure-3b.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<svg") and "said: 4 to 7 (QoS 2)" in drawn
    ElementTree.fromstring(drawn)


OLDER = re.findall(r"^Results of an older simulator: (.*)\.$",
                   (ROOT / "docs/explanation/findings.md").read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("name", STUDIES)
def test_the_committed_results_are_of_todays_simulator_or_findings_says_that_they_are_older(name: str) -> None:
    study = STUDIES[name]
    assert set(study.probes) <= {case.name for case in study.cases(study.published, ())}
    page = (study.directory / "results.md").read_text(encoding="utf-8")
    said = re.findall(r"^Simulator `(\w+)`, version \S+\.$", page, flags=re.MULTILINE)
    assert len(said) == len(OLDER) == 1
    is_older = said != [simulator_digest(study)]
    assert is_older == (name in OLDER[0].split(", ")), (
        f"the simulator computes {name} otherwise than its results.md has it: give `mqttlab study {name} --out "
        f"{study.directory / 'results.md'}` and read findings.md again, or name it there as older" if is_older else
        f"{name} is of today's simulator; findings.md says that it is older")


def test_a_simulator_that_computes_otherwise_has_another_digest(monkeypatch: Any) -> None:
    study = STUDIES["schuhmacher2018"]
    digest = simulator_digest(study)
    assert simulator_digest(study) == digest
    # Other draws stand for another simulator.
    monkeypatch.setattr("mqttlab.studies.probes.simulate", lambda scenarios, measure, **options: simulate(
        {name: {**values, "seed": 9} for name, values in scenarios.items()}, measure, **options))
    assert simulator_digest(study) != digest


def test_every_committed_result_is_of_every_claim() -> None:
    for name, study in STUDIES.items():
        text = (study.directory / "results.md").read_text(encoding="utf-8")
        for claim in claims_of(study.published):
            assert claim["text"] in text, f"{name}: {claim['id']}"


def judged_in(study: Study) -> Iterator[dict[str, str]]:
    """The rows of the claims in the committed results, by their columns."""
    for line in (study.directory / "results.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            yield dict(zip(CLAIM_COLUMNS, line.removeprefix("| ").removesuffix(" |").split(" | "), strict=True))


@pytest.mark.parametrize("name", STUDIES)
def test_a_claim_that_does_not_hold_says_what_of_its_cause_was_shown(name: str) -> None:
    missed = [row for row in judged_in(STUDIES[name]) if row["verdict"] in ("**refuted**", "**not reproduced**")]
    assert missed
    for row in missed:
        parts = row["reason"].split("<br>")
        assert all(part.startswith((SHOWN, ASSUMED, OPEN)) for part in parts), row["claim"]
        shown_parts = [part for part in parts if part.startswith(SHOWN)]
        assert not any("undecided" in part or "not known" in part for part in shown_parts), row["claim"]


@pytest.mark.parametrize("name", STUDIES)
def test_every_claim_has_its_rule_beside_its_verdict(name: str) -> None:
    study = STUDIES[name]
    claims = {claim["id"]: claim for claim in claims_of(study.published)}
    for claim in claims.values():
        assert claim["rule"] and claim["otherwise"] in ("refuted", "not reproduced"), claim["id"]
        assert claim.get("written", "after") in ("before", "after"), claim["id"]
    rows = {row["claim"].split("`")[1]: row for row in judged_in(study)}
    assert rows.keys() == claims.keys()
    for key, row in rows.items():
        assert row["held, if"] == claims[key]["rule"] and row["rule written"] == claims[key].get("written", "after")


def test_what_was_measured_on_real_hosts_is_refuted_by_its_own_records_alone() -> None:
    # Bytes that MQTT prescribes, and frames of the study's own captures.
    refutable = {claim["id"] for study in STUDIES.values() for claim in claims_of(study.published)
                 if claim["otherwise"] == "refuted"}
    assert refutable == {"overhead", "payload-does-not-change-overhead", "first-segments-not-full"}


def test_a_cause_is_shown_only_where_the_effect_followed() -> None:
    assert shown("why", follows=True) == f"{SHOWN}why"
    assert shown("why", follows=False) == f"{ASSUMED}why"
    assert reasons(shown("a", follows=True), "", cause_open("b")) == f"{SHOWN}a\n{OPEN}b"


@pytest.mark.parametrize("name", STUDIES)
def test_no_two_scenarios_of_a_table_have_one_label(name: str) -> None:
    text = (STUDIES[name].directory / "results.md").read_text(encoding="utf-8")
    heading = ""
    seen: set[tuple[str, ...]] = set()
    for line in text.splitlines():
        heading = line if line.startswith("## ") else heading
        of_cells = heading.startswith(("## Table", "## Figure"))
        if of_cells and line.startswith("| ") and not line.startswith("| scenario"):
            place = (heading, *line.split(" | ")[:2])
            assert place not in seen, place
            seen.add(place)
    assert seen


PRINTED = {
    "perez2005": ([f"5.{number}" for number in range(2, 22)],
                  ["4.3", "4.4", *(f"5.{number}" for number in (2, 3, 4, 5, 6, 7, *range(10, 17)))]),
    "andersen2021": (["4.1", *(f"5.{number}" for number in range(1, 15)), "6.1"], ["5.1", "5.2", "5.3", "5.4"]),
    "varsani2021": (["1"], [str(number) for number in range(9, 21)]),
    "schuhmacher2018": (["2", "3", "3.3", "4", "5", "6"], ["3", "4", "5"]),
    "borsatti2020": ([], ["3", "3a", "3b", "4", "5"]),
}
"""Every table and figure with results; the others are drawings, or tables of parameters and hardware."""


@pytest.mark.parametrize("name", STUDIES)
def test_every_printed_table_and_figure_can_be_asked_for_by_its_number(name: str) -> None:
    study = STUDIES[name]
    known = study.tables(study.published)
    tables, figures = PRINTED[name]
    for kind, numbers in (("table", tables), ("figure", figures)):
        for number in numbers:
            found = study.tables_of(kind, number)  # type: ignore[arg-type]
            assert found and set(found) <= set(known), (kind, number)
            assert study.cases(study.published, found), (kind, number)
            assert study.tables_of(kind, f"{kind.title()} {number}") == found  # type: ignore[arg-type]
    assert all(set(found) <= set(known) for found in study.aliases.values())
    with pytest.raises(UsageError, match=rf"--figure 99: {name} has no such figure; known: .*{figures[-1]}"):
        study.tables_of("figure", "99")


def test_readings_stand_beside_the_tables_that_they_are_behind(tmp_path: Path) -> None:
    cells = [Cell(table=table, place="here", metric="mean", published=2.0, ours=2.0) for table in ("5.2", "figure 5.4")]
    readings = [Reading(tables=("figure 5.4",), text="one", effect="3 ms"),
                Reading(tables=("5.2", "figure 5.4"), text="other", effect="not run")]
    write(Rerun(study=STUDIES["perez2005"], how="", cells=cells, judged=(), readings=readings), tmp_path / "r.md")
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    assert "| R1 | one | 3 ms |" in text and "| R2 | other | not run |" in text
    assert "## Table 5.2\n\nReadings: R2.\n" in text and "## Figure 5.4\n\nReadings: R1, R2.\n" in text


@pytest.mark.parametrize("page", ["explanation/findings.md", "explanation/verdicts.md",
                                  "explanation/studies-coverage.md", "how-to/studies.md"])
def test_every_command_of_the_pages_names_tables_and_claims_that_are_there(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    commands = [shlex.split(found) for found in re.findall(r"mqttlab study ([a-z]+20\d\d[^`#\n]*)", text)]
    assert commands
    for name, *words in commands:
        study = STUDIES[name]
        known_claims = {claim["id"] for claim in claims_of(study.published)}
        for option, value in itertools.pairwise(words):
            assert option not in ("--table", "--figure") or study.tables_of(
                "table" if option == "--table" else "figure", value), (name, value)
            assert option != "--claim" or value in known_claims, (name, value)


def test_an_unknown_claim_is_refused_with_those_that_are_known() -> None:
    ran = CliRunner().invoke(main, ["study", "borsatti2020", "--claim", "nothing"])
    assert ran.exit_code == 2
    assert "--claim nothing: borsatti2020 has no such claim; known: one-delay-then-round-trip" in ran.output


def test_what_is_not_run_live_is_said() -> None:
    ran = CliRunner().invoke(main, ["study", "borsatti2020", "--backend", "live", "--table", "placements"])
    assert ran.exit_code == 2
    assert "none of these is run live" in ran.output and "live.toml" in ran.output


def test_repetitions_have_an_interval_between_them() -> None:
    cells = [[Cell(table="1", place="here", metric="mean", published=2.0, ours=value, never=0.0)]
             for value in (1.9, 2.0, 2.1, 2.0, 2.0)]
    (cell,) = pooled(cells)
    assert cell.ours == pytest.approx(2.0)
    # Student's t with 4 degrees of freedom: 2.776 standard errors.
    assert cell.half == pytest.approx(2.776 * 0.0707107 / 5**0.5, rel=1e-3)
    assert cell.deviation_percent == (pytest.approx(0.0), pytest.approx(100 * cell.half / 2))
    without_end = [replace(cells[0][0], ours=float("inf"), never=60.0)]
    (endless,) = pooled([*cells, without_end])
    assert endless.ours == float("inf") and endless.half is None
    assert endless.never == pytest.approx(10.0), "the share of all six runs"
    (both,) = beside_simulated([endless], [replace(cells[0][0], ours=1.9)])
    (row,) = rows([both])
    shown = dict(zip(columns([both]), row, strict=True))
    assert shown["ours"] == "∞ in 1 of 6 runs" and shown["never received"] == "10 %"
    assert shown["simulated"] == "1.9" and shown["live over simulated"] == ""
    (all_of_them,) = pooled([without_end, without_end])
    assert rows([all_of_them])[0][3] == "∞"


def test_where_live_and_simulated_differ_the_parts_say_by_what() -> None:
    def runs(*broker_ms: float) -> list[Measured[None]]:
        return [Measured(value=None, parts={1: {"broker": broker, "wire_to_broker": 10.0, "delivery": 0.01}})
                for broker in broker_ms]

    found = list(compared({"slow": runs(4, 4.2, 4.4), "same": runs(1, 1.1, 0.9), "other": runs(2)},
                          {"slow": runs(1), "same": runs(1)}))
    assert [(one.scenario, one.qos) for one in found] == [("slow", 1), ("same", 1)]
    [slow] = far(found)
    assert slow.live == pytest.approx(14.21) and slow.simulated == pytest.approx(11.01) and not slow.within
    assert [part for part, _, _ in slow.parts] == ["broker"]
    # Values that differ much from run to run do not say that a simulation is off.
    [apart] = far(compared({"wild": runs(1, 9)}, {"wild": runs(1, 1)}))
    assert apart.within


@pytest.mark.parametrize("name", STUDIES)
def test_what_is_run_live_keeps_its_packets_and_has_the_lengths_chosen(name: str) -> None:
    study = STUDIES[name]
    cases = {case.name: case for case in study.cases(study.published, ())}
    for case in study.live.cases:
        values = cases[case].scenario(study.thorough)
        as_live(values, study.live)
        plan = compile_plan(parse_values({**values, "backend": "live"}, case))
        assert plan["recording"]["packets"], case
        assert values["phases"].items() >= study.live.phases.items()


@pytest.mark.parametrize("name", STUDIES)
def test_what_is_run_live_is_enough_for_tables_claims_and_figures(name: str, tmp_path: Path) -> None:
    # A part of all cases, and so of each table and figure: a live pass must not fail at its end.
    study = STUDIES[name]
    cases = {case.name: case for case in study.cases(study.published, ())}
    scenarios = {label: cases[label].scenario(study.quick) for label in study.live.cases}
    for values in scenarios.values():
        values["phases"] |= study.live_quick.phases
    results = Ran(simulate(scenarios, study.measure))
    cells, judged = study.compare(study.published, results), study.claims(study.published, results)
    charts = study.charts(study.published, results)
    write(Rerun(study=study, how="", cells=cells, judged=judged, charts=charts), tmp_path / "results.md")
    assert cells and any(not chart.empty for chart in charts)


@pytest.mark.parametrize("name", STUDIES)
def test_what_was_measured_is_kept_and_a_pass_goes_on(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    study = STUDIES[name]
    cases = {case.name: case for case in study.cases(study.published, ())}
    scenarios = {label: cases[label].scenario(study.quick) for label in study.live_quick.cases[:2]}
    for values in scenarios.values():
        values["phases"] |= study.live_quick.phases
    first, *others = scenarios
    begun = simulate({first: scenarios[first]}, study.measure, keep=tmp_path)
    done: list[str] = []
    whole = simulate(scenarios, study.measure, keep=tmp_path, progress=done.append)
    assert list(whole) == list(scenarios) and done == [first, *others], "what is there comes first"
    assert len(list(tmp_path.iterdir())) == len(scenarios)
    # Nothing is simulated any more, and nothing comes out otherwise.
    monkeypatch.setattr(LocalPool, "submit", lambda pool, job: pytest.fail(f"{job.plan['name']} is simulated again"))
    again = simulate(scenarios, study.measure, keep=tmp_path)
    assert repr(again) == repr(whole) and repr(again[first]) == repr(begun[first])


def test_what_is_kept_answers_for_its_plan_and_engine_alone_and_says_what_is_damaged(
    tmp_path: Path, monkeypatch: Any,
) -> None:
    study = STUDIES["borsatti2020"]
    case = {case.name: case for case in study.cases(study.published, ())}[study.live_quick.cases[0]]
    values = case.scenario(study.quick)
    values["phases"] |= study.live_quick.phases
    simulate({"one": values}, study.measure, keep=tmp_path)
    simulate({"one": {**values, "seed": 2}}, study.measure, keep=tmp_path)
    paths = list(tmp_path.glob("*.json"))
    assert len(paths) == 2
    monkeypatch.setattr("mqttlab.studies.cached_results._engine", lambda: "another engine")
    simulate({"one": values}, study.measure, keep=tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 3
    monkeypatch.undo()
    for path in paths:
        path.write_text(path.read_text(encoding="utf-8")[:40], encoding="utf-8")
    with pytest.raises(UsageError, match="is not what was measured of a simulation"):
        simulate({"one": values}, study.measure, keep=tmp_path)
    result = CliRunner().invoke(main, ["study", "borsatti2020", "--backend", "live", "--keep", str(tmp_path)])
    assert result.exit_code == 2 and "--keep is for simulations" in result.output


@pytest.mark.parametrize(("validity", "again"), [
    (None, False), ({}, False), ({"valid": True, "reasons": []}, False),
    # The network left no client connected.
    ({"valid": False, "lateness_limit_ns": 100_000, "emulator": {"p99_ns": 99_000}, "senders": {"p99_ns": 1_000_000}},
     False),
    ({"valid": False, "lateness_limit_ns": 100_000, "emulator": {"p99_ns": 101_000}, "senders": {"p99_ns": 0}}, True),
    ({"valid": False, "lateness_limit_ns": 100_000, "senders": {"p99_ns": 1_000_001}}, True),
    # 2 % of a delay of 150 ms are no harm.
    ({"valid": False, "lateness_limit_ns": 3_000_000, "senders": {"p99_ns": 2_900_000}}, False),
    ({"valid": False, "lateness_limit_ns": 100_000, "emulator": {"p99_ns": None}, "ring_drops": 1}, True),
    # Each path by its own limit.
    ({"valid": False, "lateness_limit_ns": 100_000, "emulator": {"p99_ns": 2_000_000}, "paths": [
        {"p99_ns": 90_000, "limit_ns": 100_000}, {"p99_ns": 2_100_000, "limit_ns": 11_000_000}]}, False),
    ({"valid": False, "lateness_limit_ns": 100_000, "emulator": {"p99_ns": 90_000}, "paths": [
        {"p99_ns": None, "limit_ns": 100_000}, {"p99_ns": 101_000, "limit_ns": 100_000}]}, True),
])
def test_a_run_is_repeated_for_what_the_machine_did_and_not_the_network(validity: Any, again: bool) -> None:
    assert _held_up(cast(Recording, SimpleNamespace(run={"validity": validity}))) is again


def test_a_live_value_stands_beside_what_is_simulated() -> None:
    live = [Cell(table="1", place=place, metric="mean", published=2.0, ours=2.2) for place in ("here", "there")]
    sim = [Cell(table="1", place="here", metric="mean", published=2.0, ours=2.0)]
    both = beside_simulated(live, sim)
    assert [cell.simulated for cell in both] == [2.0, None]
    assert columns(live) == columns(sim) and columns(both)[-2:] == ("simulated", "live over simulated")
    assert [row[-2:] for row in rows(both)] == [("2", "1.10"), ("", "")]
    assert all(len(row) == len(columns(both)) for row in rows(both))


def test_a_published_value_stands_with_the_digits_that_are_printed() -> None:
    def shown(printed: float, **others: Any) -> str:
        (row,) = rows([Cell(table="1", place="here", metric="m", published=printed, ours=1.0, **others)])
        return row[2]

    assert [shown(as_printed(word)) for word in ("14157", "189.65", "0.0424829", "4.0")] == [
        "14157", "189.65", "0.0424829", "4.0"]
    assert (shown(as_printed("")), shown(as_printed("inf"))) == ("–", "∞")
    assert shown(math.inf, bound=as_printed("1000")) == "> 1000"
    # What is computed from printed values has no digits of its own; half of the last digit printed is equal.
    assert shown(100 * 190 / 540) == "35.19"
    near = Cell(table="1", place="here", metric="m", published=as_printed("4.0"), ours=4.5)
    assert fit_rows([near])[0][-2] == "0%" and fit_rows([replace(near, published=AsPrinted("4"))])[0][-2] == "100%"


OF_CELLS = ("value", "delay_mean_ms", "delay_std_ms", "rtt_mean_s", "observations", "bytes", "latency_ms",
            "messages_sent", "min_delay_s", "avg_delay_s", "max_delay_s", "disconnects", "data_rate_bit_s",
            "loss_percent")
"""Columns of published tables whose values are published values of cells."""


@pytest.mark.parametrize("name", STUDIES)
def test_the_committed_pages_have_every_published_value_as_it_is_printed(name: str) -> None:
    study = STUDIES[name]
    page = (study.directory / "results.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\| [^|]+ \| [^|]+ \| (?:> )?([^ |]+) \|", page, re.MULTILINE))
    printed = {row[column].strip("> ") for path in study.published.glob("*.csv")
               for _, row in published_rows(study.published, path.stem) for column in OF_CELLS if row.get(column)}
    assert {"∞" if word == "inf" else word for word in printed} - shown == set()


def test_counts_of_a_shorter_run_are_not_compared() -> None:
    cell = Cell(table="1", place="here", metric="packets", published=as_printed("14157"), ours=3216.0)
    assert rows([cell])[0][5] == "-77 %"
    shorter = replace(cell, shorter=True)
    assert rows([shorter])[0][2:6] == ("14157", "3216", "", "shorter run")
    assert fit_rows([shorter]) == []
    study = STUDIES["andersen2021"]
    case = {case.name: case for case in study.cases(study.published, ())}["satcom-gps"]
    results = Ran(simulate({"satcom-gps": case.scenario(study.quick)}, study.measure))
    marked = {cell.metric for cell in study.compare(study.published, results) if cell.shorter}
    assert marked == {"messages sent", "disconnects", "total_packets", "tcp_retransmissions", "duplicate_acks"}


def test_equal_values_have_no_interval() -> None:
    cell = Cell(table="4", place="here", metric="mean", published=26.2, ours=7.588, half=3e-8)
    assert rows([cell])[0][4:6] == ("", "-71 %")
    assert rows([replace(cell, half=0.0)])[0][4:6] == ("", "-71 %")
    assert rows([replace(cell, half=0.01)])[0][4:6] == ("0.01", "-71 ± 0.038 %")


def test_a_shortened_pass_leaves_undecided_what_only_the_whole_pass_decides() -> None:
    study = STUDIES["schuhmacher2018"]
    judged = [Comparison(claim=claim["id"], text="", holds=True, evidence="1") for claim in claims_of(study.published)]
    short = [case.name for case in study.cases(study.published, ())
             if case.scenario(study.quick) != case.scenario(study.thorough)]
    found = {claim.claim: claim for claim in of_short_pass(study.published, judged, short)}
    # A quarter of its interface is too short for 500 KB to queue up; 60 messages under loss are never cut short.
    assert found["500-kb-take-seconds"].verdict == "undecided" and found["500-kb-take-seconds"].reason == TOO_SHORT
    assert found["loss-knee"].verdict == "held"
    assert of_short_pass(study.published, judged, ()) == judged
    # What is not judged for want of numbers says what it waits for.
    waits = Comparison(claim="500-kb-take-seconds", text="", holds=None, evidence="", reason="waits")
    assert of_short_pass(study.published, [waits], short) == [waits]


@pytest.mark.parametrize("name", STUDIES)
def test_a_short_pass_has_no_other_verdict_than_the_whole_pass(name: str) -> None:
    study = STUDIES[name]
    cases = {case.name: case for case in study.cases(study.published, ())}
    told = [claim for claim in claims_of(study.published) if claim.get("short_pass")]
    scenarios = {label: case.scenario(study.quick) for label, case in cases.items()
                 if any(decides(claim, label) for claim in told)}
    if not told:
        pytest.skip(f"no claim of {name} is decided by a shortened pass")
    found = {claim.claim: claim.verdict for claim in study.claims(
        study.published, Ran(simulate(scenarios, study.measure)))}
    whole = {row["claim"].split("`")[1]: row["verdict"].strip("*") for row in judged_in(study)}
    assert {claim["id"]: found[claim["id"]] for claim in told} == {claim["id"]: whole[claim["id"]] for claim in told}


def test_a_verdict_has_numbers_or_says_what_it_waits_for() -> None:
    words = [Comparison(claim="a", text="", holds=holds, evidence=evidence).verdict
             for holds, evidence in ((True, "1"), (False, "1"), (None, "1"), (None, ""))]
    assert words == ["held", "not reproduced", "undecided", "not judged yet"]
    own = Comparison(claim="a", text="", holds=False, evidence="1", otherwise="refuted")
    assert own.verdict == "refuted"


def test_figures_of_several_runs_are_the_means_of_their_points_and_the_studys_own_stay() -> None:
    def chart(*ours: tuple[float, float], name: str = "delay") -> Chart:
        published = Series(name="study", points=[(1, 7)], published=True)
        return Chart(name=name, title="t", x="x", y="y", series=[published, Series(name="ours", points=ours)])

    # Unsorted as a study has it; a point that only one run has; and x measured as y is.
    runs = [[chart((2, 10), (1, 1)), chart((1, 1), name="extra")], [chart((2, 14), (1, 3))]]
    delay, extra = mean_charts(runs)
    assert delay.series[0].points == [(1, 7)]
    assert delay.series[1].points == [(2, 12), (1, 2)]
    # Student's t of one degree of freedom at 97.5 % is 12.706.
    assert delay.series[1].halves == [pytest.approx(12.706 * 2, rel=1e-3), pytest.approx(12.706, rel=1e-3)]
    assert list(extra.series[1].points) == [(1, 1)]
    (some,) = mean_charts([[chart((1, 1), (2, 2))], [chart((1, 3))]])
    assert (some.series[1].points, some.series[1].halves[1]) == ([(1, 2), (2, 2)], None)
    (measured,) = mean_charts([[chart((1.0, 1), (2.0, 2))], [chart((1.5, 3), (2.5, math.inf))]])
    assert measured.series[1].points == [(1.25, 2), (2.25, math.inf)], "one run came to no end"
    (unknown,) = mean_charts([[chart((1, math.nan))], [chart((1, math.inf))]])
    assert math.isnan(unknown.series[1].points[0][1])
    assert mean_charts([[chart((1, 1))]]) == [chart((1, 1))]


def test_what_a_chart_has_no_room_for_stands_at_its_edge_and_not_in_its_legend() -> None:
    ours = Series(name="ours", points=[(1.0, 5.0), (1e7, 9.0)], halves=[100.0, None])
    drawn = svg(Chart(name="edge", title="", x="x", y="y", log_x=True, log_y=True, series=[
        ours, Series(name="not run", points=[]),
        Series(name="grows", points=[(10.0, 2.0), (100.0, math.inf)], published=True)]))
    assert "not run" not in drawn and "grows" in drawn
    assert drawn.count("∞") == 1 and drawn.count("<rect") == 1 + 3, "two points, and the legend's"
    # The interval reaches below zero, and is drawn down to the axis.
    assert f"{HEIGHT - BOTTOM:.1f}V{TOP:.1f}" in drawn
    labels = [(float(label.get("x", "")), label.text or "") for label in ElementTree.fromstring(drawn).iter(
        "{http://www.w3.org/2000/svg}text") if label.get("y") == str(HEIGHT - BOTTOM + 18)]
    assert len(labels) > 3
    for (left, word), (right, other) in itertools.pairwise(labels):
        assert right - left > 3.5 * (len(word) + len(other)), f"{word} and {other} overlap"


def test_a_chart_without_points_is_refused_and_logarithms_pass_over_zero() -> None:
    with pytest.raises(ValueError, match="no point"):
        svg(Chart(name="nothing", title="", x="", y="", series=[Series(name="a", points=[(0.0, 1.0)])], log_x=True))
    with pytest.raises(ValueError, match="no point of ours"):
        svg(Chart(name="theirs", title="", x="", y="", series=[Series(name="a", points=[(1.0, 1.0)], published=True)]))
    drawn = svg(Chart(name="one", title="<&>", x="x", y="y", series=[
        Series(name="a", points=[(0.0, 1.0), (10.0, 5.0)], halves=[None, 6.0])], log_x=True, log_y=True))
    assert drawn.count("<circle") == 2 and "&lt;&amp;&gt;" in drawn
    ElementTree.fromstring(drawn)


def test_a_study_is_found_as_a_directory_too() -> None:
    ran = CliRunner().invoke(main, ["study", "studies/perez2005", "--table", "99.9"])
    assert ran.exit_code == 2
    assert "perez2005 has no such table; known: 5.2; 5.3; 5.4" in ran.output


@pytest.mark.parametrize("name", ["perez", "perez205", "nowhere", "."])
def test_an_unknown_study_is_refused(name: str) -> None:
    ran = CliRunner().invoke(main, ["study", name])
    assert ran.exit_code == 2
    assert f"unknown study '{name}'" in ran.output


