"""The commands. Each looks up what it needs and calls one room of the house."""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mqttlab import __version__
from mqttlab.brokers import ADAPTERS
from mqttlab.cli.doctor import show_doctor
from mqttlab.cli.problems import Commands, existing_directory, nearest, writable_directory, writable_file
from mqttlab.cli.progress import RunProgress
from mqttlab.cli.space import need_room
from mqttlab.cli.status import status_of, worst
from mqttlab.errors import UsageError
from mqttlab.networks import MODELS, PLACEMENTS, PROFILES, implied, place
from mqttlab.networks.link import LinkDirection
from mqttlab.plan import Plan
from mqttlab.recording import Recording
from mqttlab.runs import Job, LocalPool, Outcome, list_runs, take_directory
from mqttlab.scenario import Scenario, ScenarioError, compile_plan, load, unusual


class Percent(click.ParamType[float]):
    """A percentage: a number from 0 on."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read it."""
        try:
            percent = float(str(value).removesuffix("%"))
        except ValueError:
            percent = math.nan
        if not 0 <= percent < math.inf:
            self.fail(f"{value!r} is not a percentage; write a number of 0 or more, such as 5", param, ctx)
        return percent


SCENARIO = click.argument("scenario", type=click.Path(path_type=Path))
RUN = click.argument("run", type=click.Path(path_type=Path))
SET = click.option("--set", "settings", multiple=True, metavar="PLACE=VALUE",
                   help="Replace a field, such as phases.duration='5 s' or groups[0].publish.qos=1.")
RUNS = click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
                    help="Directory that contains the runs.")
BACKEND = click.option("--backend", type=click.Choice(["live", "sim"]), help="Replace the scenario's backend.")


@click.group("mqttlab", cls=Commands,
             context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="mqttlab")
def main() -> None:
    """The MQTT performance laboratory.

    A scenario (TOML) says who publishes what to whom, over which network and which protocol stack. mqttlab runs it on
    a real broker and real TCP over an emulated network, records every message and every packet, and reports.

    \b
      mqttlab check scenarios/demo.toml     what would run
      mqttlab run scenarios/demo.toml       run it; the recording goes to runs/
      mqttlab report runs/demo-...          table and HTML page from a recording
      mqttlab explain runs/demo-...         where the slowest message's time went, frame by frame
      mqttlab compare runs/a runs/b         two runs side by side
      mqttlab study perez2005               a published experiment, rerun
      mqttlab calibrate runs/demo-...       the broker's service time, for the simulator
      mqttlab doctor                        what this machine can do
    """


@main.command()
@SCENARIO
@SET
@BACKEND
@click.option("--plan", "show_plan", is_flag=True, help="Print the plan as JSON, as the engine would get it.")
def check(scenario: Path, settings: tuple[str, ...], backend: str | None, show_plan: bool) -> None:
    """Check SCENARIO and say what would run. Starts nothing.

    Errors come with file, line, value and the nearest right value (exit status 2); what is unusual but possible is a
    warning.

    \b
      mqttlab check scenarios/demo.toml
      mqttlab check scenarios/demo.toml --set phases.duration='5 s' --backend sim
    """
    overrides = _overrides(settings, backend)
    loaded = load(scenario, overrides)
    plan = compile_plan(loaded)
    if show_plan:
        click.echo(json.dumps(plan, indent=2))
        return
    console = Console(soft_wrap=True)
    console.print(f"[bold]{loaded.name}[/]: {escape(loaded.description)}", highlight=False)
    console.print(_what_would_run(loaded, plan), highlight=False, markup=False)
    _warn(loaded, scenario, overrides)


@main.command()
def schema() -> None:
    """Print the JSON Schema of scenarios, for editors.

    With `#:schema scenario.schema.json` in the first line of a scenario, editors that use taplo complete its fields and
    underline mistakes.

    \b
      mqttlab schema > scenario.schema.json
    """
    from mqttlab.scenario.schema import scenario_schema

    click.echo(json.dumps(scenario_schema(), indent=2))


@main.command()
@SCENARIO
@SET
@BACKEND
@RUNS
@click.option("--html/--no-html", default=True, show_default=True, help="Write report.html into the run directory.")
@click.option("--ignore-disk", is_flag=True, help="Start even if the disk seems too small for the recording.")
@click.option("--probe", is_flag=True,
              help="Measure the emulated paths for 10 s each before a live run, and keep that in the recording.")
def run(
    scenario: Path, settings: tuple[str, ...], backend: str | None, runs: Path, html: bool, ignore_disk: bool,
    probe: bool,
) -> None:
    """Run SCENARIO, all its repetitions, and report each.

    \b
      mqttlab run scenarios/demo.toml
      mqttlab run scenarios/demo.toml --backend sim --set groups[0].count=20

    \b
    Exit status, of several the first in the order 2, 1, 3, 6, 4, 5:
      0  done
      1  failed: nothing was measured
      2  wrong input: nothing was started
      3  incomplete: it ended early; what it recorded is kept
      4  a threshold was broken
      5  undecided
      6  not valid: it ran to its end and did not measure what the scenario asks for; the report begins with the reason
    """
    overrides = _overrides(settings, backend) | ({"live.probe": "10 s"} if probe else {})
    loaded = load(scenario, overrides)
    writable_directory(runs, "--runs")
    _need_servers(loaded)
    if not ignore_disk:
        need_room(loaded, runs)
    _warn(loaded, scenario, overrides)
    statuses = []
    for repetition in range(loaded.repetitions):
        directory = take_directory(loaded.name, repetition, loaded.repetitions, runs).absolute()
        try:
            outcome = _one_run(loaded, directory, repetition)
        finally:
            # A run that failed before it started leaves nothing.
            with contextlib.suppress(OSError):
                directory.rmdir()
        _report_run(outcome, html)
        statuses.append(status_of(outcome))
        if outcome.verdict != "complete":
            break
    sys.exit(worst(statuses))


def _one_run(loaded: Scenario, directory: Path, repetition: int) -> Outcome:
    console = Console(stderr=True)
    title = loaded.name if loaded.repetitions == 1 else f"{loaded.name} {repetition + 1}/{loaded.repetitions}"
    with RunProgress(console, title) as progress:
        job = Job(compile_plan(loaded, repetition), directory)
        with LocalPool(lambda _, outcome: outcome, jobs=1, observe=lambda _, line: progress.observe(line)) as pool:
            pool.submit(job)
            [finished] = pool.results()
    return finished.result()


def _report_run(outcome: Outcome, html: bool) -> None:
    from mqttlab.report import terminal, write_html

    console = Console()
    if outcome.verdict == "failed":
        click.echo(f"mqttlab: the run failed: {outcome.reason}", err=True)
        return
    if outcome.verdict == "incomplete" and not (outcome.directory / "incomplete.json").exists():
        # There was no time for tables, and who has asked for the end does not wait for them now.
        place = _relative(outcome.directory)
        console.print(f"ended early: {outcome.reason}", highlight=False, soft_wrap=True, markup=False)
        console.print(f"recording  {place} (incomplete; `mqttlab report {place}` makes its tables)", highlight=False,
                      soft_wrap=True)
        return
    recording = Recording.open(outcome.directory)
    terminal(recording, console)
    console.print(f"recording  {_relative(outcome.directory)}", highlight=False, soft_wrap=True, markup=False)
    if outcome.reason:
        console.print(f"ended early: {outcome.reason}", highlight=False, soft_wrap=True, markup=False)
    if html:
        out = outcome.directory / "report.html"
        try:
            page = write_html(recording, out)
            console.print(f"report     {_relative(page)}", highlight=False, soft_wrap=True, markup=False)
        except OSError as error:
            # The recording is what matters, and it is there.
            click.echo(f"mqttlab: {out} cannot be written: {error.strerror}; write the report elsewhere with "
                       f"mqttlab report {outcome.directory} --html FILE", err=True)


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


@main.command()
@RUN
@click.option("--html", "out", type=click.Path(path_type=Path), help="File for the page  [default: RUN/report.html]")
def report(run: Path, out: Path | None) -> None:
    """Print the tables of the recording RUN and write its HTML page.

    Exit status 0, too, where the recording is incomplete or not valid: the report begins with that.

    \b
      mqttlab report runs/demo-20260101-120000
      mqttlab report runs/demo-20260101-120000 --html demo.html
    """
    from mqttlab.report import terminal, write_html

    place = run / "report.html" if out is None else writable_file(out, "--html")
    console = Console()
    recording = Recording.open(run)
    terminal(recording, console)
    page = write_html(recording, place)
    console.print(f"report     {page}", highlight=False, soft_wrap=True, markup=False)


@main.command()
@RUN
@click.option("--message", metavar="PUBLISHER:SEQUENCE[@SUBSCRIBER]",
              help="The message; clients by number or name. Of several deliveries, the slowest.")
@click.option("--slowest", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
              help="Number of slowest deliveries to explain if no message is named.")
def explain(run: Path, message: str | None, slowest: int) -> None:
    """Explain where the time of a message of the recording RUN went, and what held it.

    Prints its parts, the cause, and every frame that carried it or decided its fate; writes the same as a page with a
    message sequence chart to RUN/explain-PUBLISHER-SEQUENCE.html and .svg.

    \b
      mqttlab explain runs/demo-20260101-120000 --slowest 3
      mqttlab explain runs/demo-20260101-120000 --message publishers-qos1-0:17
    """
    from mqttlab.cli.explain import show_explanation

    show_explanation(run, message, slowest, Console())


@main.command()
@click.argument("first", type=click.Path(path_type=Path))
@click.argument("second", type=click.Path(path_type=Path))
@click.option("--tolerance", type=Percent(), default=5.0, show_default=True, metavar="PERCENT",
              help="Mark differences larger than this.")
def compare(first: Path, second: Path, tolerance: float) -> None:
    """Compare the recordings FIRST and SECOND, such as a live run and a simulation of the same scenario.

    Exit status 0, too, where one of them is incomplete or not valid.

    \b
      mqttlab run scenario.toml --backend live --runs runs
      mqttlab run scenario.toml --backend sim --runs runs
      mqttlab compare runs/scenario-... runs/scenario-...
    """
    from mqttlab.report import comparison

    comparison(first, second, Console(), tolerance)


@main.command()
@RUN
@click.option("--csv", "csv_directory", type=click.Path(path_type=Path), is_flag=False, flag_value=Path(),
              help="Write one CSV file per table into this directory  [default: RUN/csv]")
@click.option("--xlsx", "workbook", type=click.Path(path_type=Path), is_flag=False, flag_value=Path(),
              help="Write one workbook  [default: RUN/run.xlsx]")
def export(run: Path, csv_directory: Path | None, workbook: Path | None) -> None:
    """Export the recording RUN for spreadsheets and other programs.

    \b
      mqttlab export runs/demo-20260101-120000 --csv
      mqttlab export runs/demo-20260101-120000 --xlsx demo.xlsx
    """
    from mqttlab import export as exports

    if csv_directory is None and workbook is None:
        raise UsageError("nothing to export to; add --csv, --xlsx, or both")
    if csv_directory is not None and csv_directory.name:
        if csv_directory.is_file():
            raise UsageError(f"--csv {csv_directory}: this is a file; name a directory")
        writable_file(csv_directory / "messages.csv" if csv_directory.is_dir() else csv_directory, "--csv")
    if workbook is not None and workbook.name:
        writable_file(workbook, "--xlsx")
    going_on = Recording.open(run).going_on
    if going_on:
        click.echo(f"mqttlab: {going_on}", err=True)
    if csv_directory is not None:
        click.echo(exports.csv(run, csv_directory if csv_directory.name else run / "csv"))
    if workbook is not None:
        click.echo(exports.xlsx(run, workbook if workbook.name else run / "run.xlsx"))


@main.command()
@click.argument("study")
@click.option("--quick", is_flag=True,
              help="Simulate fewer messages: seconds instead of minutes, with less accurate means.")
@click.option("--table", "tables", multiple=True, metavar="TABLE", help="Only this table, such as 5.4; repeatable.")
@click.option("--jobs", type=click.IntRange(1), help="Number of simulations at once  [default: one per processor]")
@click.option("--out", type=click.Path(path_type=Path), help="Write tables and claims into this file, as Markdown.")
def study(study: str, quick: bool, tables: tuple[str, ...], jobs: int | None, out: Path | None) -> None:
    """Rerun the published experiment STUDY and put its values and claims beside ours; list says which there are.

    \b
      mqttlab study list
      mqttlab study perez2005 --quick
      mqttlab study perez2005 --table 5.17 --table 5.18
      mqttlab study andersen2021 --out andersen2021.md
    """
    from mqttlab.cli.study import list_studies, run_study
    from mqttlab.studies.catalogue import known

    studies = known()
    if study == "list":
        Console().print(list_studies(studies.values()))
        return
    # `studies/perez2005`, as it was written when studies were directories, still names one.
    found = studies.get(Path(study).name)
    if found is None:
        raise UsageError(f"unknown study {study!r}; {nearest(study, list(studies))}")
    if out is not None:
        writable_file(out, "--out")
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 160)
    text = run_study(found, console, quick=quick, tables=tables, jobs=jobs)
    if out is not None:
        out.write_text(text, encoding="utf-8")


@main.command()
@RUN
def calibrate(run: Path) -> None:
    """Estimate the broker's service time from the recording RUN, as a scenario's [broker.service].

    It takes messages at QoS 0 or 1 behind which nothing waited; several subscribers to one topic tell the time for a
    packet from that for a copy. What a direct network carries is not recorded: emulate one.

    \b
      mqttlab calibrate runs/fan-out-... >> scenario.toml
    """
    from mqttlab.calibration import calibrate as estimate

    recording = Recording.open(run)
    click.echo(estimate(recording).toml())
    if not (recording.run.get("validity") or {}).get("valid", True):
        click.echo(f"mqttlab: {run} is not valid: its emulator or its senders were late, and that is in these times",
                   err=True)


@main.command(name="list")
@RUNS
def list_(runs: Path) -> None:
    """List the recordings in a directory, oldest first.

    \b
      mqttlab list
      mqttlab list --runs other/runs
    """
    source = click.get_current_context().get_parameter_source("runs")
    given = source is not ParameterSource.DEFAULT
    found = list_runs(existing_directory(runs, "--runs") if given else runs)
    if not found:
        click.echo(f"no runs in {runs}; make one with: mqttlab run scenarios/demo.toml")
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("started (UTC)", "backend", "status"):
        table.add_column(column, no_wrap=True)
    table.add_column("directory", overflow="fold")
    for summary in found:
        style = "" if summary.status == "complete" else "yellow"
        started = summary.started[:16].replace("T", " ")
        table.add_row(started, escape(summary.backend), summary.status, escape(str(summary.directory)), style=style)
    Console().print(table)


@main.command()
@click.option("--tcp", is_flag=True, help="List TCP profiles instead.")
@click.option("--probe", "target", metavar="MODEL|SCENARIO",
              help="Measure this model, or the networks of this scenario file, in the live emulator instead.")
@click.option("--seconds", type=click.IntRange(1, 3600), default=10, show_default=True,
              help="How long --probe measures each path.")
@click.option("--json", "as_json", is_flag=True, help="Print what --probe found as JSON.")
def networks(tcp: bool, target: str | None, seconds: int, as_json: bool) -> None:
    """List the named network models, with the delays that each placement implies, and their sources.

    With --probe, send datagrams and TCP through the emulated path, and print rate, delay, jitter and loss beside what
    the model says.

    \b
      mqttlab networks
      mqttlab networks --tcp
      mqttlab networks --probe satcom
      mqttlab networks --probe scenarios/demo.toml --json
    """
    if target is not None:
        from mqttlab.cli.probe import show_probe

        show_probe(target, seconds, as_json)
        return
    if as_json:
        raise UsageError("--json goes with --probe")
    console = Console()
    console.print(_tcp_table() if tcp else _network_table())
    if not tcp:
        for name, words in PLACEMENTS.items():
            console.print(f"[bold]{name}[/]: {words}", highlight=False)
        console.print("\nSources")
        for model in MODELS.values():
            console.print(f"[bold]{model.name}[/] {model.title}: {model.source}", highlight=False)


@main.command()
@click.option("--measure", "seconds", is_flag=False, flag_value=10.0, type=click.FloatRange(1, 300),
              metavar="[SECONDS]",
              help="Try for this long (10 s) how exactly this machine emulates, and say what can be measured on it.")
@click.option("--runs", type=click.Path(path_type=Path), metavar="PATH",
              help="Where --measure tries how fast the disk is.  [default: runs]")
@click.option("--json", "as_json", is_flag=True, help="Print what --measure found as JSON.")
def doctor(seconds: float | None, runs: Path | None, as_json: bool) -> None:
    """Say what this machine can do, which brokers it has, and what each missing thing costs.

    With --measure, send frames through the live emulator at several rates, beside a control timer, write to the disk of
    --runs (64 MB at most, removed again), and say which delays a live run may emulate here at how many frames a second.
    Exit status 0, or 1 where nothing can be emulated here.

    \b
      mqttlab doctor
      mqttlab doctor --measure
      mqttlab doctor --measure 30 --runs /data/runs --json
    """
    if seconds is not None:
        from mqttlab.cli.measure import show_measure

        show_measure(seconds, runs or Path("runs"), as_json)
        return
    for given, option in ((runs, "--runs"), (as_json, "--json")):
        if given:
            raise UsageError(f"{option} goes with --measure")
    sys.exit(show_doctor(Console()))


def _network_table() -> Table:
    table = Table(title="Networks (delays in ms, rates in kbit/s, * default placement)",
                  title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("name", "rate up", "rate down", "loss", "placement", "up", "down", "round trip"):
        words = column in ("name", "placement")
        table.add_column(column, justify="left" if words else "right", no_wrap=words)
    for model in MODELS.values():
        what = (model.name, _kbit(model.up.rate), _kbit(model.down.rate), _loss(model.up))
        for placement in PLACEMENTS:
            figures = implied(place(model, placement))
            table.add_row(
                *what, placement + ("*" if placement == model.placement else ""),
                f"{figures.up_ms:g}", f"{figures.down_ms:g}", f"{figures.round_trip_ms:g}",
            )
            what = ("", "", "", "")
    return table


def _tcp_table() -> Table:
    table = Table(title="TCP profiles", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in ("name", "control", "least RTO", "SACK", "timestamps", "MSS", "meaning"):
        table.add_column(column, no_wrap=column == "name")
    for profile in PROFILES.values():
        table.add_row(
            profile.name, profile.congestion_control, f"{profile.rto_min_ns / 1e6:g} ms", _yes(profile.sack),
            _yes(profile.timestamps), "from MTU" if profile.mss_bytes is None else f"{profile.mss_bytes} B",
            profile.meaning,
        )
    return table


def _kbit(bit_s: int | None) -> str:
    return "unlimited" if bit_s is None else f"{bit_s / 1000:g}"


def _loss(link: Any) -> str:
    if link.burst_loss is not None:
        return "in bursts"
    return f"{100 * link.loss[0] / link.loss[1]:g} %"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _overrides(settings: tuple[str, ...], backend: str | None) -> dict[str, Any]:
    overrides: dict[str, Any] = {} if backend is None else {"backend": backend}
    for setting in settings:
        place_, separator, value = setting.partition("=")
        if not separator or not place_:
            raise UsageError(f"--set {setting}: write PLACE=VALUE, such as phases.duration='5 s'")
        place_ = re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", place_)
        if place_ in overrides:
            once = "--backend" if place_ == "backend" and backend is not None else "--set"
            raise UsageError(f"--set {setting}: `{place_}` already has a value from {once}; give one value")
        overrides[place_] = _value(value)
    return overrides


def _value(text: str) -> Any:
    """A value as JSON has it, or text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _warn(loaded: Scenario, path: Path, replaced: Collection[str]) -> None:
    """Say what is unusual in a scenario, on standard error."""
    for problem in unusual(loaded, str(path), path.read_text(encoding="utf-8"), replaced):
        click.echo(f"mqttlab: warning: {problem}", err=True)


def _links(loaded: Scenario) -> list[str]:
    """Each link of the scenario in a line, what is not emulated included."""
    lines = []
    for network in loaded.networks:
        first, second = network.between
        if network.model is None:
            lines += [f"{first} → {second}: {_link(network.up)}", f"{second} → {first}: {_link(network.down)}"]
    if loaded.trunk is not None:
        lines += [f"switch → broker: {_link(loaded.trunk.up)}", f"broker → switch: {_link(loaded.trunk.down)}"]
    return lines


def _link(link: LinkDirection | None) -> str:
    if link is None:
        return "not emulated (no rate, delay or loss)"
    parts = ["no rate limit" if link.rate is None else f"{link.rate / 1000:g} kbit/s", f"{link.delay / 1e6:g} ms"]
    if link.jitter:
        parts[1] += f" ± {link.jitter / 1e6:g} ms"
    if link.burst_loss is not None or link.bit_errors is not None:
        parts.append("loss in bursts")
    elif link.loss[0]:
        parts.append(f"{100 * link.loss[0] / link.loss[1]:g} % loss")
    return ", ".join(parts)


def _need_servers(loaded: Scenario) -> None:
    problems = []
    for where, server in loaded.all_servers:
        if loaded.backend == "sim" or server.kind == "external" or ADAPTERS[server.kind].found(server) is not None:
            continue
        words = where[0] if len(where) == 1 else f"{where[0]}[{where[1]}]"
        if server.program is not None:
            problems.append(f"`{words}.program.command` is {server.program.command[0]!r}, which is not installed")
        else:
            problems.append(f"`{words}.kind` is {server.kind!r}, but {server.kind} is not installed; run `make setup`, "
                            f"or install it (Debian: apt-get install {server.kind})")
    if problems:
        raise ScenarioError(problems)


def _what_would_run(loaded: Scenario, plan: Plan) -> str:
    lines = []
    for group in loaded.groups:
        does = []
        if group.publish is not None:
            does.append(f"publish {group.publish.topic} at QoS {group.publish.qos}")
        if group.subscribe:
            does.append("subscribe to " + ", ".join(f"{s.filter} at QoS {s.qos}" for s in group.subscribe))
        if group.relay is not None:
            does.append("relay")
        lines.append(f"  {group.count} × {group.name} on {group.host}: {'; '.join(does)}")
    phases = loaded.phases
    seconds = (phases.warm_up + phases.duration) / 1e9
    for server in plan["servers"]:
        role = next(iter(server["role"])) if isinstance(server["role"], dict) else server["role"]
        host, port = plan["hosts"][server["host"]]["name"], server["endpoints"][0]["port"]
        name = "" if server["name"] == role else f" {server['name']}:"
        what = f"{server['kind']} {server['version']}".strip()
        lines.append(f"  {role}{name} {what} on {host}, port {port}")
    lines.append(f"  network {plan['network']['description']} ({len(plan['network']['links'])} links)")
    lines += [f"    {line}" for line in _links(loaded)]
    lines.append(f"  {seconds:g} s of publishing, then up to {phases.cool_down / 1e9:g} s of cooling down; "
                 f"{loaded.repetitions} repetition(s), seed {loaded.seed}")
    return "\n".join(lines)
