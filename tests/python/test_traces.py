"""Links that follow a trace: what files may hold, what a plan has of them, and what frames meet, simulated and live."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from live import in_both
from mqttlab import metrics
from mqttlab.networks.trace import Trace, read_trace, shipped, traces_of
from mqttlab.recorded import damage
from mqttlab.recording import Recording
from mqttlab.report.html import page
from mqttlab.runs import Job, perform
from mqttlab.scenario import ScenarioError, parse
from mqttlab.scenario.compile import compile_plan
from mqttlab.scenario.load import parse_values
from short_scenarios import scenario

ROOT = Path(__file__).resolve().parents[2]
PHASES = {"warm_up": "1 s", "duration": "10 s", "cool_down": "20 s"}
S = 10**9


def read(tmp_path: Path, text: str) -> Trace:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    return read_trace("a.csv", tmp_path)


def test_a_table_has_its_units_in_the_header_or_in_each_value(tmp_path: Path) -> None:
    in_header = read(tmp_path, "# a note\ntime_ms,rate_mbit,delay_ms,jitter_us,loss_percent\n"
                               "0,2,40,500,0\n500,0.5,80,0,1.5\n")
    written = read(tmp_path, "time,rate,delay,jitter,loss\n"
                             "0 s,2 Mbit/s,40 ms,500 us,0 %\n500 ms,500 kbit/s,80 ms,0 ms,3/200\n")
    assert list(in_header.at) == list(written.at) == [0, S // 2]
    assert in_header.columns == written.columns == {
        "rate": [2_000_000, 500_000], "delay": [40_000_000, 80_000_000], "jitter": [500_000, 0],
        "loss": [0, 15_000_000]}
    assert in_header.length_ns == S and in_header.mean("rate") == 1_250_000
    assert in_header.span("rate") == (500_000, 2 * 10**6)


@pytest.mark.parametrize("header", [
    "time_s,rate_mbit_s", "time_s,rate_Mbps", "Time_s,Rate_Mbit", "time_sec,rate_mbits", "timestamp_s,rate_mbit"])
def test_headers_are_read_as_other_tools_write_them(tmp_path: Path, header: str) -> None:
    if header.startswith("timestamp"):
        with pytest.raises(ValueError, match="line 1, column `timestamp_s` is unknown; did you mean `time_s`"):
            read(tmp_path, f"{header}\n0,3\n")
    else:
        assert read(tmp_path, f"{header}\n0,3\n").columns == {"rate": [3_000_000]}


def test_times_count_from_the_first_row_and_opportunities_from_0(tmp_path: Path) -> None:
    assert list(read(tmp_path, "time_s,delay_ms\n1700000000,1\n1700000002,2\n").at) == [0, 2 * S]
    mahimahi = read(tmp_path, "1\n1\n3\n")
    assert mahimahi.is_opportunities and list(mahimahi.at) == [1, 1, 3] and mahimahi.length_ns == 3_000_000
    assert mahimahi.mean("rate") == 12_000_000, "3 packets of 12 kbit in 3 ms"


def test_the_plan_has_tables_and_the_measurement_begins_with_the_trace(tmp_path: Path) -> None:
    (tmp_path / "up.trace").write_text("10\n20\n40\n")
    (tmp_path / "down.csv").write_text("time_s,rate_mbit\n0,1\n3,2\n")
    values = scenario(1, phases={"warm_up": "5 ms", "duration": "1 s"}, count=3)
    values["networks"][0] |= {"link": "each", "up": {"trace": "up.trace", "delay": "5 ms"},
                              "down": {"trace": "down.csv", "trace_end": "hold"}}
    (tmp_path / "s.toml").write_text("")
    plan: Any = compile_plan(parse_values(values, str(tmp_path / "s.toml")))
    up, down = plan["network"]["traces"]
    assert up["course"] == {"kind": "opportunities", "at_ms": [10, 20, 40], "bytes": 1500}
    assert (up["period_ns"], up["begins_at_ns"]) == (40_000_000, 35_000_000), "5 ms before its place 0"
    assert down["course"]["at_ns"] == [0, 3 * S + 5_000_000] and down["period_ns"] is None
    assert len(up["links"]) == len(down["links"]) == 4, "a client of each group has its own"
    rates = {link["name"].rpartition("/")[2]: link["rate_bit_s"] for link in plan["network"]["links"]}
    assert rates == {"up": 900_000, "down": 1_500_000}, "links have the means"
    assert parse_values(values, str(tmp_path / "s.toml")).networks[0].up.delay == 5_000_000


def test_a_trace_of_mqttlab_has_each_direction_and_its_generator(tmp_path: Path) -> None:
    values = scenario(1, phases=PHASES)
    between = values["networks"][0]["between"]
    values["networks"][0] = {"between": between, "model": "lte", "trace": "starlink", "link": "each"}
    plan: Any = compile_plan(parse_values(values))
    assert [trace["name"] for trace in plan["network"]["traces"]] == ["starlink/up", "starlink/down"]
    assert plan["network"]["links"][0]["queue"]["limit_packets"] == 500, "what the trace does not have is the model's"
    assert len(shipped()) == 6
    command = [sys.executable, ROOT / "scripts" / "traces", "--check"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout


def test_without_a_trace_a_plan_says_nothing_of_traces() -> None:
    plan: Any = compile_plan(parse_values(scenario(1, phases=PHASES)))
    assert plan["network"]["traces"] == []


def test_an_event_that_a_trace_would_hide_is_refused(tmp_path: Path) -> None:
    values = scenario(1, phases=PHASES, events=[{"at": "2 s", "network": "field", "rate": "1 kbit/s"}])
    values["networks"][0] |= {"up": {"trace": "rain-fade/up"}, "down": {}}
    with pytest.raises(ScenarioError, match="`events.0..rate` changes what the network's trace \"rain-fade/up\" has"):
        parse_values(values)
    values["events"][0] = {"at": "2 s", "network": "field", "loss": "1 %"}
    parse_values(values)


def test_a_wrong_line_is_named_with_its_column_and_the_nearest_value(tmp_path: Path) -> None:
    for text, words in (
            ("time_s,rate_mbit\n0,1\n1,fast\n", "line 3, column `rate_mbit` is \"fast\", which is not a number"),
            ("time_s,rate_mbit\n0,1\n0,2\n", "line 3, column `time_s` is \"0\", which is not after"),
            ("5\n3\n", "line 2 is 3, which is before the time in the line above; write 5 or more"),
            ("1\n2.6\n", "line 2 is \"2.6\", but must be a time in whole ms; the nearest is 3"),
            ("time_s,rate_mbyte\n0,1\n", "did you mean `rate_mbit`?")):
        with pytest.raises(ValueError, match="where ") as refused:
            read(tmp_path, text)
        assert words in str(refused.value)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Recording]]:
    folder = tmp_path_factory.mktemp("traces")
    (folder / "gap.csv").write_text("time_s,rate_kbit,delay_ms\n0,1000,10\n2,0,10\n4,1000,40\n20,1000,40\n")
    (folder / "cell.trace").write_text("".join(f"{at}\n" for at in range(50, 1001, 50)))
    link = {"delay": "5 ms"}
    kinds = {}
    for name, file in (("gap", "gap.csv"), ("cell", "cell.trace")):
        own = {} if name == "gap" else link
        kinds[name] = scenario(1, rate="20 /s", count=2, topic="{client}", phases=PHASES)
        kinds[name]["networks"][0] |= {"up": {"trace": str(folder / file), **own}, "down": dict(link)}
    return in_both(kinds, folder, 2)


def left(recording: Recording) -> pl.DataFrame:
    """When frames left the link that follows the trace, in ms of the measurement."""
    began = metrics.measurement(recording).from_ns
    packets = pl.read_parquet(recording.directory / "packets.parquet").with_columns(pl.col("direction").cast(pl.String))
    return packets.filter(pl.col("direction") == "up", pl.col("sent_ns").is_not_null()).with_columns(
        at_ms=(pl.col("sent_ns").cast(pl.Int64) - began) / 1e6)


@pytest.mark.live(runs=4)
def test_both_backends_deliver_the_same(runs: dict[str, dict[str, Recording]]) -> None:
    for kind, both in runs.items():
        counted = {backend: dict(recording.messages["fate"].cast(pl.String).value_counts().iter_rows())
                   for backend, recording in both.items()}
        assert counted["live"] == counted["sim"] == {"delivered": 440}, (kind, counted)


@pytest.mark.live(runs=4)
@pytest.mark.parametrize("backend", ["sim", "live"])
def test_frames_leave_when_the_trace_lets_them(runs: dict[str, dict[str, Recording]], backend: str) -> None:
    gap = left(runs["gap"][backend])["at_ms"]
    assert gap.is_between(2_000.001, 4_000).sum() == 0, "the rate is 0"
    assert gap.is_between(4_000, 4_600).sum() > 20 and gap.max() > 9_900
    cell = left(runs["cell"][backend]).filter(pl.col("at_ms") > 100)["at_ms"]
    assert len(cell) > 100
    assert ((cell + 0.001) % 50 < 0.002).all(), "at opportunities alone"
    plan = runs["cell"][backend].plan
    assert plan["network"]["traces"][0]["course"]["at_ms"][:3] == [50, 100, 150], "the recording holds the trace"


def test_a_name_that_is_no_trace_has_the_nearest(tmp_path: Path) -> None:
    text = 'name = "a"\n[[networks]]\nbetween = ["x", "broker"]\ntrace = "starlnk"\n[phases]\nduration = "1 s"\n'
    text += '[[groups]]\nname = "g"\nhost = "x"\nsubscribe = ["a"]\n'
    with pytest.raises(ScenarioError) as refused:
        parse(text, str(tmp_path / "s.toml"))
    assert f'{tmp_path}/s.toml:4: `networks[0].trace` is "starlnk"' in refused.value.problems[0]
    assert 'did you mean "starlink"?' in refused.value.problems[0]


def test_a_report_draws_what_a_link_could_carry_and_says_that_it_followed_a_trace(tmp_path: Path) -> None:
    values = scenario(1, rate="20 /s", phases={"warm_up": "1 s", "duration": "5 s", "cool_down": "5 s"})
    values["networks"][0] = {"between": values["networks"][0]["between"], "trace": "train-tunnel", "link": "shared"}
    outcome = perform(Job(compile_plan(parse_values(values)), tmp_path / "run"), lambda event: None)
    recording = Recording.open(outcome.directory)
    began = metrics.measurement(recording).from_ns
    drawn = metrics.traced_rates(recording, ["field/up"], began - S, began + 3 * S)
    table = read_trace("train-tunnel/up", None)
    rates = [table.columns["rate"][place] for place in (-1, 0, 1, 2)]
    assert drawn["rate_bit_s"].to_list()[:4] == rates, "in the warm-up it is at its end"
    assert drawn["at_s"].diff().drop_nulls().round(6).to_list()[:3] == [1, 1, 1]
    words = page(recording)
    assert "link that follows train-tunnel (0 bit/s to 20.3 Mbit/s up, 0 bit/s to 45.9 Mbit/s down)" in words
    assert "rate of its trace" in words


@pytest.mark.parametrize("change", [
    {"links": None}, {"course": None}, {"course": {"kind": "new"}}, {"period_ns": 0}, {"period_ns": "long"},
    {"course": {"kind": "values", "at_ns": [0], "rate_bit_s": [1, 2]}}, {"begins_at_ns": "now"}])
def test_a_damaged_trace_of_a_plan_is_told(change: dict[str, Any]) -> None:
    right = {"name": "t", "links": ["a"], "begins_at_ns": 0, "period_ns": 5, "course": {
        "kind": "values", "at_ns": [0], "rate_bit_s": [1], "delay_ns": None, "jitter_ns": None, "loss_ppb": None}}
    plan = {"name": "a", "groups": [], "hosts": [], "phases": {"warm_up_ns": 0, "duration_ns": 1, "cool_down_ns": 0},
            "network": {"kind": "emulated", "traces": [right]}}
    layout = {"hosts": [], "links": [], "clients": [], "warm_up_end_ns": 0, "measurement_end_ns": 1}
    assert "network.traces" not in str(damage(Path("x"), plan, layout, [], {}))
    plan["network"] = {"kind": "emulated", "traces": [right | change]}
    assert "network.traces" in str(damage(Path("x"), plan, layout, [], {}))


def test_a_scenario_is_repeated_with_the_traces_of_its_recording(tmp_path: Path) -> None:
    (tmp_path / "drive.csv").write_text("time_s,rate_mbit,loss_percent\n0,1,0\n3,2,1\n", encoding="utf-8")
    (tmp_path / "cell.trace").write_text("10\n20\n40\n", encoding="utf-8")
    text = ('name = "a"\nbackend = "sim"\n[phases]\nduration = "1 s"\n[[networks]]\nbetween = ["field", "broker"]\n'
            'up = { trace = "drive.csv", trace_end = "hold" }\ndown = { trace = "cell.trace" }\n[[groups]]\n'
            'name = "g"\nhost = "field"\nsubscribe = ["a"]\n')
    first: Any = compile_plan(parse(text, str(tmp_path / "a.toml")))
    (tmp_path / "drive.csv").unlink()
    (tmp_path / "cell.trace").unlink()
    assert compile_plan(parse(text, traces=traces_of(first))) == first
    pytest.importorskip("dash", reason="the dashboard's packages are missing: make setup-dashboard")
    from mqttlab.dashboard.configure import drafts

    # Only a recording's traces, and those of mqttlab, may be asked for by a browser: messages show parts of files.
    with pytest.raises(ScenarioError, match="networks.0..up.trace cannot be a path from the browser"):
        drafts.check(text)
    assert compile_plan(drafts.check(text, traces_of(first))) == first
    drafts.check(text.replace("drive.csv", "starlink/up").replace("cell.trace", "starlink"))


@pytest.mark.parametrize(("text", "problem"), [
    ("time_s,delay_ms\n0,20\n1e30,30\n", "line 3, column `time_s` is \"1e30\", but must be at most 366 days after"),
    ("time_s,delay_ms\n0,20\n2e7,30\n", "line 3, the last row, lasts as long as the one before it"),
    ("time_s,delay_ms\n0,20\n1e300,30\n", "line 3, column `time_s` is \"1e300\", but must be a finite number"),
    ("time_s,rate_mbit\n0,1_000\n", "line 2, column `rate_mbit` is \"1_000\", which is not a number"),
    ("time_s,rate_mbit\n0,\u0661\n", "column `rate_mbit` is \"\u0661\", which is not a number"),
    ("1\n\u0662\n", "line 2 is \"\u0662\", but must be a time in whole ms"),
    ("time_s,delay\n0,1_000 ms\n", "column `delay` is \"1_000 ms\", which is not a number with a unit; write it"),
    ("5\n" * 90_000, "90,000 lines end at 5 ms, which is 216 Gbit/s on the mean, but must be 100 Gbit/s or less"),
])
def test_what_no_reader_takes_is_told_with_its_line(text: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError) as error:
        read(tmp_path, text)
    assert problem in str(error.value)


@pytest.mark.parametrize("line", [1, 2])
def test_a_field_that_no_table_has_is_told_with_its_line(line: int, tmp_path: Path) -> None:
    text = f"time_s,{'a' * 10_000_001}\n0,1\n" if line == 1 else f"time_s,rate_mbit\n0,{'9' * 10_000_001}\n"
    with pytest.raises(ValueError, match=f"where line {line} is not a line of a table: field larger than"):
        read(tmp_path, text)
