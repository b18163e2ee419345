"""The commands. Each looks up what it needs and calls one room of the house."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path
from typing import Any, Literal

import click
from click.core import ParameterSource

from mqttlab.cli.problems import Commands, WithTables, existing_directory, writable_file
from mqttlab.errors import UsageError
from mqttlab.terminal import say, say_json
from mqttlab.version import __version__

# Nothing else is imported up here: what a command needs it imports itself, so that `--help` waits for nothing.


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


class Place(click.ParamType[Path]):
    """A directory, or a recording in a place by URL, which is fetched into a cache."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Fetch it, where it is elsewhere."""
        return Path(_here(value))


class PlaceOrPattern(click.ParamType[str]):
    """The same, or a pattern."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Fetch it, where it is elsewhere."""
        return _here(value)


class Described(click.ParamType[str]):
    """What has a JSON Schema: scenarios, experiments, and the commands with ``--json``."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check it."""
        from mqttlab.schemas import COMMANDS

        return click.Choice(["scenario", "experiment", *COMMANDS]).convert(value, param, ctx)


def _here(value: Any) -> str:
    if "://" not in str(value):
        return str(value)
    from mqttlab.runs.storage import fetch

    return str(fetch(str(value)))


SCENARIO = click.argument("scenario", type=click.Path(path_type=Path))
RUN = click.argument("run", type=Place())
SET = click.option("--set", "settings", multiple=True, metavar="PLACE=VALUE",
                   help="Replace a field, such as phases.duration='5 s', groups[0].publish.qos=1 or "
                        "groups[0].publish.payload='{size = \"1 kB\"}'.")
RUNS = click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
                    help="Directory that contains the runs.")
HTML = click.option("--html/--no-html", default=None, show_default="--html; --no-html with --json",
                    help="Write report.html into the directory of the recording.")
JSON = click.option("--json", "as_json", is_flag=True,
                    help="Print one JSON object instead of tables; docs/reference/output.md describes it.")
FULL = click.option("--full", is_flag=True, help="Print all tables below the headline.")
JUNIT = click.option("--junit", type=click.Path(path_type=Path), metavar="FILE",
                     help="Write the thresholds as JUnit XML.")
CATALOG = click.option("--catalog", metavar="FILE|URL", envvar="MQTTLAB_CATALOG", show_envvar=True,
                       help="The catalog: an SQLite file, postgresql://… or mariadb://…  [default: RUNS/catalog.db]")
BACKEND = click.option("--backend", type=click.Choice(["live", "sim"]), help="Replace the scenario's backend.")


@click.group("mqttlab", cls=Commands,
             context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="mqttlab")
def main() -> None:
    """The MQTT performance laboratory.

    A scenario (TOML) defines publishers, subscribers, network and protocol stack. mqttlab runs it on a real broker and
    real TCP over an emulated network, records every message and every packet, and reports.

    \b
      mqttlab check scenarios/demo.toml     what would run
      mqttlab run scenarios/demo.toml       run it; the recording goes to runs/
      mqttlab report runs/demo-...          table and HTML page from a recording
      mqttlab explain runs/demo-...         where the slowest message's time went, frame by frame
      mqttlab compare runs/a runs/b         two runs, or groups of runs, side by side
      mqttlab experiment FILE               a scenario with factors, design, repetitions
      mqttlab study perez2005               a published experiment, rerun
      mqttlab calibrate runs/demo-...       the broker's service time, for the simulator
      mqttlab doctor                        what this machine can do
    """


@main.command()
@SCENARIO
@SET
@BACKEND
@click.option("--plan", "show_plan", is_flag=True, help="Print the plan as JSON, as the engine would get it.")
@click.option("--sensitivity", is_flag=True, help=(
    "Simulate it several times with other host times, and print how far latencies depend on them."))
def check(
    scenario: Path, settings: tuple[str, ...], backend: str | None, show_plan: bool, sensitivity: bool,
) -> None:
    """Check SCENARIO and print what would run. Starts nothing, except simulations with --sensitivity.

    Errors name file, line, value and the nearest right value (exit status 2). Unusual but possible values give a
    warning.

    \b
      mqttlab check scenarios/demo.toml
      mqttlab check scenarios/demo.toml --set phases.duration='5 s' --backend sim
    """
    from mqttlab.cli.check import show_check

    show_check(scenario, overrides_of(settings, backend), show_plan)
    if sensitivity:
        from mqttlab.cli.sensitivity import show_sensitivity

        show_sensitivity(scenario, overrides_of(settings, backend))


@main.command()
@click.argument("of", type=Described(), default="scenario", metavar="[scenario|experiment|COMMAND]")
def schema(of: str) -> None:
    """Print the JSON Schema of scenarios or of experiments, for editors, or of what COMMAND prints with --json.

    With `#:schema scenario.schema.json` in the first line of a scenario, editors that use taplo complete its fields and
    underline mistakes. COMMAND is report, run, import, try, compare, networks or doctor.

    \b
      mqttlab schema > scenario.schema.json
      mqttlab schema experiment > experiment.schema.json
      mqttlab schema report > report.schema.json
    """
    if of == "scenario":
        from mqttlab.scenario.schema import scenario_schema

        say_json(scenario_schema())
    elif of == "experiment":
        from mqttlab.experiments.model import ExperimentFile
        from mqttlab.scenario.schema import schema_of

        say_json(schema_of(ExperimentFile, "mqttlab experiment"))
    else:
        from mqttlab.schemas import schema_of_output

        say_json(schema_of_output(of), ascii_only=False)


@main.command(cls=WithTables)
@SCENARIO
@SET
@BACKEND
@RUNS
@HTML
@JSON
@JUNIT
@CATALOG
@click.option("--sql", metavar="FILE|URL",
              help="Write every message into this database during the run; docs/how-to/sql.md lists its tables.")
@click.option("--detach", is_flag=True, help="Hand it over to the queue and return at once; mqttlab queue shows it.")
@click.option("--queue", type=click.Path(path_type=Path), envvar="MQTTLAB_QUEUE", show_envvar=True, metavar="DIR",
              help="With --detach: another queue than the user's own.")
@FULL
@click.option("--ignore-disk", is_flag=True, help="Start even if the disk seems too small for the recording.")
@click.option("--metrics", metavar="ADDRESS[:PORT]",
              help="Serve what the run says as it goes on, for Prometheus (OpenMetrics); the port is 9464 without one.")
@click.option("--probe", is_flag=True,
              help="Measure the emulated paths for 10 s each before a live run; the recording keeps the results.")
def run(
    scenario: Path, settings: tuple[str, ...], backend: str | None, runs: Path, html: bool | None, as_json: bool,
    junit: Path | None, catalog: str | None, sql: str | None, detach: bool, queue: Path | None, ignore_disk: bool,
    metrics: str | None, probe: bool, full: bool,
) -> None:
    """Run SCENARIO, all its repetitions, report each, and add it to the catalog (--catalog none: to none).

    \b
      mqttlab run scenarios/demo.toml
      mqttlab run scenarios/demo.toml --backend sim --set groups[0].count=20
      mqttlab run scenarios/demo.toml --detach
    """
    overrides = overrides_of(settings, backend) | ({"live.probe": "10 s"} if probe else {})
    if detach:
        from mqttlab.cli.queues import hand_over

        if as_json or junit is not None:
            raise UsageError(f"{'--json' if as_json else '--junit'} is of results, which --detach does not wait for")
        if metrics is not None:
            raise UsageError("--metrics serves a run that this command makes; leave --detach out, or see the dashboard")
        if sql is not None:
            raise UsageError("--sql follows a run that this command makes; leave --detach out, or export the recording")
        hand_over(scenario, overrides, runs, catalog=catalog, queue=queue, html=html is not False,
                  ignore_disk=ignore_disk)
        return
    from mqttlab.cli.run import run_scenario

    if junit is not None:
        writable_file(junit, "--junit")
    sys.exit(run_scenario(scenario, overrides, runs, html=not as_json if html is None else html,
                          ignore_disk=ignore_disk, as_json=as_json, junit=junit, catalog=catalog, sql=sql,
                          full=full, metrics=metrics))


@main.command(cls=WithTables)
@RUN
@click.option("--html", "out", type=click.Path(path_type=Path),
              help="File for the page  [default: RUN/report.html; none with --json]")
@JSON
@FULL
def report(run: Path, out: Path | None, as_json: bool, full: bool) -> None:
    """Print the headline of RUN, a recording or an experiment's directory, and write its HTML page.

    Of an experiment: the verdicts, the recommendation, and each response with intervals, effects, interactions,
    residuals and trends; docs/explanation/statistics.md defines the terms.

    The exit status is 0 also where the recording is incomplete or not valid: the report begins with that.

    \b
      mqttlab report runs/demo-20260101-120000
      mqttlab report runs/demo-20260101-120000 --html demo.html
      mqttlab report runs/demo-20260101-120000 --full
      mqttlab report runs/demo-20260101-120000 --json
      mqttlab report runs/qos-delay-loss
    """
    from mqttlab.cli.report import show_report

    show_report(run, None if out is None else writable_file(out, "--html"), as_json, full=full)


@main.command()
@RUN
@click.argument("fields", nargs=-1, required=True, metavar="FIELD=VALUE...")
def event(run: Path, fields: tuple[str, ...]) -> None:
    """Fire an event by hand in RUN, a live run that is going on.

    The fields are those of [[events]] in a scenario, without those that say when: it takes place at once. With `for`
    it ends by itself. It is checked as a scenario's event is, recorded as fired by hand, and told in the report.

    \b
      mqttlab event runs/demo-20260101-120000 network=wan down=true for='20 s'
      mqttlab event runs/demo-20260101-120000 network=wan rate='50 kbit/s' delay='300 ms'
      mqttlab event runs/demo-20260101-120000 server=broker do=kill for='5 s'
      mqttlab event runs/demo-20260101-120000 group=sensors share='50 %' do=vanish for='10 s'
    """
    from mqttlab.cli.event import fire

    fire(run, fields)


@main.command(cls=WithTables)
@RUN
@click.option("--message", metavar="PUBLISHER:SEQUENCE[@SUBSCRIBER]",
              help="The message; clients by number or name. Of several deliveries, the slowest.")
@click.option("--slowest", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
              help="Number of slowest deliveries to explain if no message is named.")
def explain(run: Path, message: str | None, slowest: int) -> None:
    """Explain where the time of a message of the recording RUN went, and what delayed it.

    Prints its parts, the cause, and every frame that carried it or decided its fate. Writes the same as a page with a
    message sequence chart to RUN/explain-PUBLISHER-SEQUENCE.html and .svg.

    \b
      mqttlab explain runs/demo-20260101-120000 --slowest 3
      mqttlab explain runs/demo-20260101-120000 --message publishers-qos1-0:17
    """
    from mqttlab.cli.explain import show_explanation
    from mqttlab.console import Console

    show_explanation(run, message, slowest, Console())


@main.command(cls=WithTables)
@click.argument("first", type=PlaceOrPattern())
@click.argument("second", type=PlaceOrPattern())
@click.argument("more", type=PlaceOrPattern(), nargs=-1)
@click.option("--tolerance", type=Percent(), default=5.0, show_default=True, metavar="PERCENT",
              help="Mark differences larger than this; the margin of equivalence.")
@click.option("--by", type=click.Choice(["metric", "message"]), default="metric", show_default=True,
              help="Also message by message, where runs have the same random streams.")
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, metavar="N",
              help="Number of messages to explain.")
@click.option("--metric", "metrics", multiple=True, metavar="METRIC",
              help="Only this metric, in all scopes; repeatable.")
@click.option("--stage", metavar="NAME", help="Only this stage of the measurements, which all runs must have.")
@CATALOG
@click.option("--full", is_flag=True, help="Also print every metric, the quantiles, and where the plans differ.")
@click.option("--html", type=click.Path(path_type=Path), help="Write a page.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON instead.")
def compare(
    first: str, second: str, more: tuple[str, ...], tolerance: float, by: str, limit: int, metrics: tuple[str, ...],
    full: bool, html: Path | None, as_json: bool, catalog: str | None, stage: str | None,
) -> None:
    """Compare SECOND, and each of MORE, with FIRST.

    Each is a recording, a directory of recordings, a pattern in quotes, a point of an experiment (runs/NAME#12), or
    conditions on the catalog ('catalog: qos = 1; loss = 1 %').

    A sentence says what differs, then a table, biggest first. Groups, topics, QoS, protocol and network may differ:
    flows are compared by publishing and subscribing group. Several runs on a side give intervals and verdicts. Runs
    with the same seed and repetition are compared in pairs. --by message names the messages of another fate or latency,
    and why.

    More than two sides have a sentence each, and one table with a column for each.

    The exit status is 0 also where a run is incomplete or not valid. In a group such runs are left out and named.

    \b
      mqttlab compare runs/demo-1 runs/demo-2
      mqttlab compare runs/qos0 runs/qos1 runs/qos2
      mqttlab compare 'runs/qos1-*' 'runs/qos2-*' --html qos.html
      mqttlab compare runs/demo-1 runs/demo-2 --stage busy
      mqttlab compare runs/qos-delay-loss#0 runs/qos-delay-loss#9
      mqttlab compare 'catalog: name = demo; backend = live' 'catalog: name = demo; backend = sim'
      mqttlab compare runs/loss-1 runs/loss-4 --by message --limit 3
    """
    from mqttlab.cli.compare import show_comparison

    show_comparison((first, second, *more), tolerance=tolerance, metrics=metrics, by_message=by == "message",
                    limit=limit, html=html, as_json=as_json, full=full, catalog=catalog, stage=stage)


@main.command(cls=WithTables)
@RUN
@click.option("--csv", "csv_directory", type=click.Path(path_type=Path), is_flag=False, flag_value=Path(),
              help="Write one CSV file per table into this directory  [default: RUN/csv]")
@click.option("--parquet", "parquet_directory", type=click.Path(path_type=Path), is_flag=False, flag_value=Path(),
              help="Write one Parquet file per table into this directory  [default: RUN/parquet]")
@click.option("--xlsx", "workbook", type=click.Path(path_type=Path), is_flag=False, flag_value=Path(),
              help="Write one workbook  [default: RUN/run.xlsx]")
@click.option("--pcapng", "capture", type=click.Path(path_type=Path), is_flag=False, flag_value=Path(),
              help="Write frames for Wireshark; of simulations, too  [default: RUN/run.pcapng]")
@click.option("--sql", metavar="FILE|URL",
              help="Write every message into this database; docs/how-to/sql.md lists its tables.")
@click.option("--message", metavar="PUBLISHER:SEQUENCE[@SUBSCRIBER]",
              help="With --pcapng: only the connections that carried this message, while it was under way.")
@click.option("--from", "begin", metavar="TIME", help="With --pcapng: from this time of the run on, such as '2.5 s'.")
@click.option("--to", "end", metavar="TIME", help="With --pcapng: up to this time of the run.")
def export(
    run: Path, csv_directory: Path | None, parquet_directory: Path | None, workbook: Path | None, capture: Path | None,
    sql: str | None, message: str | None, begin: str | None, end: str | None,
) -> None:
    """Export RUN, a recording or an experiment's directory, for spreadsheets, Wireshark and other programs.

    A capture has the bytes that a live run kept (recording.pcapng). Else its frames are rebuilt from the recording:
    headers and MQTT packets as recorded, payloads of the right length.

    \b
      mqttlab export runs/demo-20260101-120000 --csv
      mqttlab export runs/demo-20260101-120000 --xlsx demo.xlsx
      mqttlab export runs/demo-20260101-120000 --sql postgresql://lab@host/messages
      mqttlab export runs/demo-20260101-120000 --pcapng --message publishers-qos1-0:17
      mqttlab export runs/demo-20260101-120000 --pcapng cut.pcapng --from '2 s' --to '2500 ms'
    """
    from mqttlab.cli.export import export_capture, export_tables

    cut = {"--message": message, "--from": begin, "--to": end}
    given = [option for option, value in cut.items() if value is not None]
    if given and capture is None:
        raise UsageError(f"{given[0]} goes with --pcapng")
    if message is not None and len(given) > 1:
        raise UsageError(f"--message and {given[1]} exclude each other; keep one")
    tables = {"csv": csv_directory, "parquet": parquet_directory, "xlsx": workbook}
    if any(place is not None for place in tables.values()) or (capture is None and sql is None):
        export_tables(run, tables)
    if sql is not None:
        from mqttlab.cli.sql import export_messages

        export_messages(run, sql)
    if capture is not None:
        export_capture(run, capture, message, begin, end)


@main.command(cls=WithTables)
@click.argument("study")
@click.option("--quick", is_flag=True,
              help="Run fewer messages: seconds instead of minutes, with less accurate means.")
@click.option("--full", is_flag=True,
              help="Run simulations to the study's own lengths: hours, best with --table.")
@click.option("--table", "tables", multiple=True, metavar="TABLE", help="Only this table, such as 5.4; repeatable.")
@click.option("--figure", "figures", multiple=True, metavar="FIGURE",
              help="Only this figure, such as 5.11; repeatable.")
@click.option("--claim", "claims", multiple=True, metavar="CLAIM",
              help="Only this claim, by its name in results.md; repeatable.")
@click.option("--backend", type=click.Choice(["sim", "live"]), default="sim", show_default=True,
              help="live: the cells of the study's live.toml, on a real broker. Complete and timely runs in "
                   "RUNS/study-NAME (-quick) are not run again.")
@click.option("--no-repeat", is_flag=True,
              help="With --backend live: keep existing runs, also those that the machine delayed.")
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Directory that contains the runs of --backend live.")
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), metavar="DIRECTORY",
              help="Store the results of each simulation there, and do not simulate stored ones again. So a stopped "
                   "pass goes on.")
@click.option("--jobs", type=click.IntRange(1),
              help="Number of simulations at once, or of live runs  [default: one per processor; as in live.toml]")
@click.option("--out", type=click.Path(path_type=Path),
              help="Write tables, claims and figures into this file, as Markdown, and into figures/ beside it.")
def study(study: str, quick: bool, full: bool, tables: tuple[str, ...], figures: tuple[str, ...],
          claims: tuple[str, ...], backend: Literal["sim", "live"], no_repeat: bool, runs: Path, keep: Path | None,
          jobs: int | None, out: Path | None) -> None:
    """Rerun the published experiment STUDY and print its values and claims beside ours; `study list` lists all.

    \b
      mqttlab study list
      mqttlab study perez2005 --quick
      mqttlab study perez2005 --table 5.17 --figure 5.11
      mqttlab study perez2005 --full --keep out/perez2005
      mqttlab study borsatti2020 --claim placement-does-not-matter
      mqttlab study andersen2021 --backend live
      mqttlab study andersen2021 --out andersen2021.md

    A claim is held; refuted, under the study's own conditions; not reproduced, by our model of its hosts; undecided; or
    not judged yet, with the reason.
    """
    from dataclasses import replace

    from mqttlab.cli.study import Asked, list_studies, run_study
    from mqttlab.console import Console
    from mqttlab.studies.catalogue import known
    from mqttlab.studies.document import write
    from mqttlab.studies.probes import simulator_digest

    studies = known()
    if study == "list":
        list_studies(studies.values(), Console())
        return
    # `studies/perez2005`, as it was written when studies were directories, still names one.
    found = studies.get(Path(study).name)
    if found is None:
        from mqttlab.mistaken import did_you_mean

        raise UsageError(f"unknown study {study!r}; {did_you_mean(study, ['list', *studies])}")
    if out is not None:
        writable_file(out, "--out")
    console = Console()
    if full and (quick or backend == "live"):
        raise UsageError(f"--full and {'--quick' if quick else '--backend live'} exclude each other; keep one")
    if keep is not None and backend == "live":
        raise UsageError("--keep is for simulations: live runs stay in --runs; leave it out")
    asked = Asked(quick=quick, full=full, tables=tables, figures=figures, claims=claims, backend=backend, jobs=jobs,
                  runs=runs, keep=keep, repeat=not no_repeat)
    rerun = run_study(found, console, asked)
    if out is not None:
        write(replace(rerun, simulator=simulator_digest(found, jobs)), out)


@main.command(cls=WithTables)
@RUN
@click.option("--server", metavar="NAME", help="The broker, where the run has several.")
def calibrate(run: Path, server: str | None) -> None:
    """Estimate a broker's service time from the recording RUN, as a scenario's [broker.service].

    It uses messages at QoS 0 or 1 that no other message waited for. Several subscribers to one topic separate the time
    for a packet from the time for a copy. Direct networks have no recorded packets: emulate a network.

    \b
      mqttlab calibrate runs/fan-out-... >> scenario.toml
      mqttlab calibrate runs/two-brokers-... --server north
    """
    from mqttlab.calibration import calibrate as estimate
    from mqttlab.recording import Recording

    recording = Recording.open(run)
    for line in estimate(recording, server).toml().splitlines():
        say(line)
    if not (recording.run.get("validity") or {}).get("valid", True):
        say(f"mqttlab: {run} is not valid: its emulator or its senders were late, and that is in these times",
            err=True)


@main.command(name="list")
@RUNS
@CATALOG
@click.option("--where", multiple=True, metavar="CONDITION",
              help="Only runs for which this holds, such as 'latency_ms_p99 < 250', 'loss = 5 %' or tag.nightly.")
@click.option("--tag", "tags", multiple=True, metavar="NAME", help="Only runs with this tag; repeatable.")
@click.option("--column", "columns", multiple=True, metavar="NAME",
              help="Show this field, factor, metric or tag.NAME, too; repeatable.")
@click.option("--sort", multiple=True, metavar="NAME", help="Order by this; -NAME from large to small; repeatable.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="At most this many runs.")
@click.option("--all", "everything", is_flag=True, help="List the runs of experiments, too.")
@click.option("--experiments", is_flag=True, help="List experiments instead: question, state and answer.")
def list_(
    runs: Path, catalog: str | None, where: tuple[str, ...], tags: tuple[str, ...], columns: tuple[str, ...],
    sort: tuple[str, ...], limit: int | None, everything: bool, experiments: bool,
) -> None:
    """List the recordings in a directory, oldest first, or selected ones of the catalog.

    Each line begins with the p99 latency and the undelivered share, as far as the catalog knows the run.
    `mqttlab catalog names` lists all names. A metric is of the whole run, or of a scope in brackets.

    \b
      mqttlab list
      mqttlab list --runs other/runs
      mqttlab list --experiments
      mqttlab list --where 'backend = live' --where 'latency_ms_p99 < 250' --sort -latency_ms_p99
      mqttlab list --tag nightly --column 'latency_ms_p99[qos 1]' --limit 20
    """
    from mqttlab.cli.listing import show_experiments, show_found, show_list

    source = click.get_current_context().get_parameter_source("runs")
    if source is not ParameterSource.DEFAULT:
        existing_directory(runs, "--runs")
    if experiments:
        show_experiments(runs)
    elif catalog is None and not (where or tags or columns or sort or limit):
        show_list(runs, everything=everything)
    else:
        show_found(catalog, runs, [*where, *(f"tag.{tag}" for tag in tags)], columns, sort, limit)


@main.command()
@click.argument("model", required=False, metavar="[MODEL]")
@click.option("--tcp", is_flag=True, help="List TCP profiles instead.")
@click.option("--probe", "target", metavar="MODEL|SCENARIO",
              help="Measure this model, or the networks of this scenario file, in the live emulator instead.")
@click.option("--seconds", type=click.IntRange(1, 3600), default=10, show_default=True,
              help="Duration of --probe for each path.")
@click.option("--json", "as_json", is_flag=True, help="Print the results of --probe as JSON.")
def networks(model: str | None, tcp: bool, target: str | None, seconds: int, as_json: bool) -> None:
    """List the named network models, or MODEL alone, with the delays that each placement implies, and their sources.

    With --probe, send datagrams and TCP through the emulated path, and print rate, delay, jitter and loss beside the
    model's.

    \b
      mqttlab networks
      mqttlab networks lte-m
      mqttlab networks --tcp
      mqttlab networks --probe satcom
      mqttlab networks --probe scenarios/demo.toml --json
    """
    if target is not None:
        if model is not None:
            raise UsageError(f"--probe {target} and {model}: name one of them; --probe measures it")
        from mqttlab.cli.probe import show_probe

        show_probe(target, seconds, as_json)
        return
    if as_json:
        raise UsageError("--json goes with --probe")
    from mqttlab.cli.networks import show_networks
    from mqttlab.console import Console

    show_networks(Console(), tcp, model)


@main.command()
@click.option("--measure", "seconds", is_flag=False, flag_value=10.0, type=click.FloatRange(1, 300),
              metavar="[SECONDS]",
              help="Test for this long (10 s) how exactly this machine emulates, and print what it can measure.")
@click.option("--runs", type=click.Path(path_type=Path), metavar="PATH",
              help="Directory where --measure tests the disk.  [default: runs]")
@click.option("--json", "as_json", is_flag=True, help="Print the results of --measure as JSON.")
def doctor(seconds: float | None, runs: Path | None, as_json: bool) -> None:
    """Print what this machine can do, its brokers, and what each missing thing costs.

    With --measure, send frames through the live emulator at several rates, beside a control timer, and write to the
    disk of --runs (64 MB at most, removed again). Print the delays that a live run can emulate here, by frames a
    second. The exit status is 1 where nothing can be emulated here, else 0.

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
    from mqttlab.cli.doctor import show_doctor
    from mqttlab.console import Console

    sys.exit(show_doctor(Console()))


def overrides_of(settings: tuple[str, ...], backend: str | None) -> dict[str, Any]:
    """What `--set` and `--backend` replace, by place."""
    overrides: dict[str, Any] = {} if backend is None else {"backend": backend}
    for setting in settings:
        given, separator, value = setting.partition("=")
        if not separator or not given:
            raise UsageError(f"--set {setting}: write PLACE=VALUE, such as phases.duration='5 s'")
        place_ = re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", given)
        if place_ in overrides:
            once = "--backend" if place_ == "backend" and backend is not None else "--set"
            raise UsageError(f"--set {given}: `{place_}` already has a value from {once}; give one value")
        overrides[place_] = _value(value)
    return overrides


def _value(text: str) -> Any:
    """A value as JSON has it, a table or an array as a scenario's file has it, or text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if not text.startswith(("{", "[")):
        return text
    from mqttlab.toml_reader import read_toml

    try:
        values = read_toml(f"value = {text}")
    except ValueError:
        return text
    # What follows a line break would be further fields.
    return values["value"] if len(values) == 1 else text
