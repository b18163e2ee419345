"""What ``mqttlab try`` does: one run and its report, or a comparison and its table."""

from __future__ import annotations

import queue
import re
import socket
import tempfile
import threading
import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich import box
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from mqttlab.cli import thresholds
from mqttlab.cli.problems import writable_directory
from mqttlab.cli.run import run_all, thresholds_of
from mqttlab.cli.space import need_room
from mqttlab.cli.status import worst
from mqttlab.console import Console, print_table
from mqttlab.engine import doctor
from mqttlab.errors import UsageError
from mqttlab.experiments.responses import Response
from mqttlab.experiments.schedule import Records
from mqttlab.files import from_here
from mqttlab.metrics import DEVICE_RATE
from mqttlab.scenario import Scenario, ScenarioError, warnings_of
from mqttlab.scenario.needs import need_secrets, need_servers
from mqttlab.scenario.places import steps
from mqttlab.scenario.secret import written_in
from mqttlab.schemas import OUTPUT_SCHEMA
from mqttlab.terminal import say, say_json, say_text
from mqttlab.trial import WHOLE, Files, Trial, TrialError, answer, asked, checked, files_of, scenario_text
from mqttlab.trial.answer import Point, figure
from mqttlab.trial.experiment import BYTES_DOWN, BYTES_UP, DISCONNECTS, LATE, LATENCIES, MONTH, UNDELIVERED

COLUMNS = (("p50", Response(LATENCIES[0])), ("p95", Response(LATENCIES[1])), ("p99", Response(LATENCIES[2])),
           ("not delivered", UNDELIVERED), ("late", LATE), ("disconnects", DISCONNECTS), ("up", BYTES_UP),
           ("down", BYTES_DOWN), ("a month", MONTH))
HEADS = {"up": f"{DEVICE_RATE}\nup", "not delivered": "not\ndelivered", "disconnects": "dis-\nconnects",
         "a month": "MB/device\na month"}
"""One name stands above the two columns of bytes."""

PATIENCE_S, LOOKUP_S = 2, 10
"""Seconds until a lookup of a broker's name is told, and is given up."""

UNWRITABLE = re.compile("[\x00-\x08\n-\x1f\x7f\ud800-\udfff]")


def trial_of(shape: str, simulate: bool, written: dict[str, str], settings: dict[str, Any] | None = None) -> Trial:
    """The options, with several values where there are commas between them; ``settings`` are those of ``--set``.

    Raises:
        TrialError: a value is empty or given twice.
        UsageError: the broker's name has no address.
    """
    values = {option: (text,) if option in WHOLE else tuple(part.strip() for part in text.split(","))
              for option, text in written.items()}
    for option, parts in values.items():
        if "" in parts:
            raise TrialError(f"--{option} is {written[option]!r}, which has an empty value; leave it out")
        if len(set(parts)) < len(parts):
            raise TrialError(f"--{option} has a value twice; keep one")
        # Neither TOML nor a file in UTF-8 can hold them, and the options become a scenario's file.
        if (found := UNWRITABLE.search("".join(parts))) is not None:
            raise TrialError(f"--{option} has " + (
                "a byte that is not UTF-8" if found[0] >= "\ud800" else f"the control character U+{ord(found[0]):04X}")
                + "; leave it out")
    for place in _secret_places(settings or {}):
        raise TrialError(f"--set {place} has a secret, which lists of processes and the scenario would show; use "
                         "--password-env VARIABLE, or write where it is: '{ env = \"VARIABLE\" }'")
    hosts: dict[str, str] = {}
    if "broker" in values:
        values["broker"] = tuple(_resolved(value, hosts) for value in values["broker"])
        if len(set(values["broker"])) < len(values["broker"]):
            raise TrialError("--broker has a value twice; keep one")
    return Trial(shape=shape, backend="sim" if simulate else "live", values=values, settings=settings or {},
                 hosts=hosts)


def _secret_places(settings: dict[str, Any]) -> Iterator[str]:
    """The settings that have a secret as text."""
    for place, value in settings.items():
        nested = value
        for is_index, step in reversed(steps(place)):
            nested = [nested] if is_index else {step: nested}
        if any(written_in(nested)):
            yield place


def _resolved(broker: str, hosts: dict[str, str]) -> str:
    """A broker's address and port: a scenario has no names of hosts, whose addresses change. ``hosts`` keeps names."""
    host, separator, port = broker.rpartition(":")
    if not separator:
        host, port = broker, "1883"
    try:
        address = _address_of(host)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--broker {broker}: there is no address of {host!r}: {error}; write HOST:PORT") from error
    if address != host:
        hosts[f"{address}:{port}"] = host
    return f"{address}:{port}"


def _address_of(host: str) -> str:
    """The IPv4 address of a host, which is looked up for a bounded time.

    Raises:
        OSError: there is none, or no answer in time.
        UnicodeError: this is no name.
    """
    found: queue.Queue[str | Exception] = queue.Queue()

    def look_up() -> None:
        try:
            found.put(str(socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]))
        except Exception as error:
            found.put(error)

    threading.Thread(target=look_up, daemon=True).start()
    try:
        answered = found.get(timeout=PATIENCE_S)
    except queue.Empty:
        say(f"mqttlab: looking up {host}, at most {LOOKUP_S} s", err=True)
        try:
            answered = found.get(timeout=LOOKUP_S - PATIENCE_S)
        except queue.Empty:
            raise TimeoutError(f"no name server answered within {LOOKUP_S} s") from None
    if isinstance(answered, Exception):
        raise answered
    return answered


def show_trial(
    trial: Trial, runs: Path, *, save: Path | None, as_json: bool, html: bool, catalog: str | None,
) -> int:
    """Run it, say what came of it, and return the exit status."""
    compares = bool(trial.varied)
    name = f"try-{'-'.join(trial.varied)}"[:22] + f"-{datetime.now(UTC):%Y%m%d-%H%M%S}" if compares else "try"
    files = files_of(trial, name, f"{(save or Path('try.toml')).stem}-scenario.toml") if compares else None
    scenarios = [(text, _checked(single, text)) for single in trial.singles() for text in [scenario_text(single)]]
    writable_directory(runs, "--runs")
    _can_run(scenarios[0][1])
    need_secrets(scenarios[0][1], asked(trial, scenarios[0][0]))
    for line in dict.fromkeys(line for text, scenario in scenarios for line in warnings_of(scenario, "the scenario",
                                                                                           text)):
        say(f"mqttlab: warning: {line}", err=True)
    if files is not None:
        if scenarios[0][1].thresholds:
            raise UsageError("--set thresholds is judged of one load; give each option one value, or save the "
                             "comparison without it (--save FILE) and write the thresholds into the experiment")
        return _compare(trial, files, runs, save, as_json=as_json, catalog=catalog)
    text, scenario = scenarios[0]
    repetitions = thresholds_of(scenario, Path("the scenario"), trial.settings, catalog, runs)
    need_room(scenario, runs)
    if save is not None:
        save.write_text(text, encoding="utf-8")
    origin: dict[str, Any] = {"scenario": {"toml": text, "settings": {}}}
    statuses, documents = run_all(scenario, origin, runs, html=html, as_json=as_json, catalog=catalog,
                                  repetitions=repetitions)
    judged = [] if repetitions is None else repetitions.judged()
    status = worst([*statuses, *thresholds.statuses(judged)])
    if as_json:
        say_json({"schema": OUTPUT_SCHEMA, "exit_status": status, "runs": documents,
                  "thresholds": thresholds.documents(judged), "scenario": text})
    else:
        thresholds.say_judged(Console(), judged)
        _say_file(text, save)
    return status


def _checked(trial: Trial, text: str) -> Scenario:
    return checked(trial, tomllib.loads(text), text)


def _can_run(scenario: Scenario) -> None:
    """Refuse a live run that this machine cannot make, and name the simulation that it can.

    Raises:
        UsageError: with what is missing.
    """
    if scenario.backend == "sim" or scenario.network == "external":
        return
    able = {capability["name"]: capability for capability in doctor()["capabilities"]}
    if not able["namespaces"]["available"]:
        raise UsageError(f"a live run needs network namespaces, which this machine does not permit here "
                         f"({able['namespaces']['detail']}); add --simulate, or run it as root")
    try:
        need_servers(scenario)
    except ScenarioError as error:
        raise UsageError(f"{error.problems[0]}; or add --simulate") from error


def _compare(
    trial: Trial, files: Files, runs: Path, save: Path | None, *, as_json: bool, catalog: str | None,
) -> int:
    """Run the experiment that the options stand for; print its answer, its table and its files."""
    from mqttlab.cli.experiments import performed, status_of
    from mqttlab.experiments import load

    with tempfile.TemporaryDirectory(prefix="mqttlab-try-") as scratch:
        path = save or Path(scratch) / "try.toml"
        path.write_text(files.experiment, encoding="utf-8")
        path.with_name(f"{path.stem}-scenario.toml").write_text(files.scenario, encoding="utf-8")
        experiment = load(path)
        directory, finish = performed(experiment, runs, catalog=catalog)
    records = Records(finish.records, experiment.file.attempts)
    status = status_of(finish, [], records)
    points = []
    for each in experiment.design.points:
        done = sorted((record for record in finish.records if record.state == "done"
                       and record.point_key == each.key), key=lambda record: record.block)
        levels = {option: level.text for option, level in each.levels.items()}
        points.append(Point(levels=levels, records=tuple(done)))
    said = answer(trial, points)
    place = from_here(directory.path)
    if as_json:
        say_json({
            "schema": OUTPUT_SCHEMA, "exit_status": status, "answer": said, "points": [_document(p) for p in points],
            "experiment": str(directory.path), "files": {"experiment": files.experiment, "scenario": files.scenario},
        })
        return status
    console = Console()
    console.print(said, highlight=False, markup=False)
    columns = _columns(trial, points)
    table = _table(points, columns, " ")
    if _width(console, table) > console.width:
        # An interval under its mean is narrower than cells that are cut off.
        table = _table(points, columns, "\n")
    if _width(console, table) > console.width:
        heads = [HEADS.get(title, title).replace("-\n", "").replace("\n", " ") for title, _ in columns]
        heads = [f"{DEVICE_RATE} down" if head == "down" else head for head in heads]
        print_table(console, "Means", ["point", *heads], [
            [str(point), *(Text(_cell(point, response, "\n")) for _, response in columns)] for point in points])
    else:
        console.print(table)
    console.print("latency in ms; IP packets of each device: kB in an hour of this load, MB in 30 days of it"
                  + ("; ± half width of the 95 % interval" if len(points[0].records) > 1 else ""), highlight=False)
    for task in finish.given_up:
        last = records.of(task)[-1]
        console.print(f"without result: {task.point}, run {task.block + 1}: {last.state}: {last.reason}",
                      highlight=False, markup=False, soft_wrap=True)
    for line in (f"experiment {place}", f"analysis   mqttlab report {place}"):
        console.print(line, highlight=False, soft_wrap=True, markup=False)
    _say_file(files.experiment, save, files.scenario)
    return status


def _columns(trial: Trial, points: list[Point]) -> list[tuple[str, Response]]:
    """What is shown: without late deliveries where nobody says what is late, and without disconnects where there is no
    NAT and were none."""
    asked_for = {LATE: any("late_after" in f"{place} {value}" for place, value in trial.settings.items()),
                 DISCONNECTS: "nat" in trial.values}
    return [(title, response) for title, response in COLUMNS if asked_for.get(response, True)
            or any(map(any, (point.values(response) for point in points)))]


def _width(console: Console, table: Table) -> int:
    return Measurement.get(console, console.options.update(width=500), table).maximum


def _table(points: list[Point], columns: Sequence[tuple[str, Response]], between: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    for title, _ in columns:
        table.add_column(Text(HEADS.get(title, f"\n{title}")), justify="right", no_wrap=True)
    for point in points:
        table.add_row(escape(str(point)), *(Text(_cell(point, response, between)) for _, response in columns))
    return table


def _cell(point: Point, response: Response, between: str) -> str:
    """A mean and its interval, with a blank or a line break between them; a dash for a percentile of too few
    messages."""
    if point.too_few(response):
        return "–"
    width = point.half_width(response)
    unit = " %" if response == UNDELIVERED and point.records else ""
    mean = figure(point.mean(response))
    if not width:
        return f"{mean}{unit}"
    half = figure(float(f"{width:.1g}"))
    return f"{mean} ± {half}{unit}" if between == " " else f"{mean}{unit}{between}± {half}"


def _document(point: Point) -> dict[str, Any]:
    names = ("latency_ms_p50", "latency_ms_p95", "latency_ms_p99", "undelivered_percent", "late", "disconnects",
             "kb_per_device_hour_up", "kb_per_device_hour_down", "mb_per_device_month")
    found = {name: {"mean": point.mean(response), "half_width": point.half_width(response),
                    "values": point.values(response)}
             for name, (_, response) in zip(names, COLUMNS, strict=True)}
    return {"levels": point.levels, "runs": len(point.records), "values": found}


def _say_file(text: str, save: Path | None, scenario: str | None = None) -> None:
    """The files that it was, or where they are kept."""
    what, command = ("scenario", "run") if scenario is None else ("experiment", "experiment")
    if save is not None:
        say(f"{what:<10} {from_here(save)}; again: mqttlab {command} {from_here(save)}")
        return
    say_text(f"\nThe {what}; --save FILE keeps it for `mqttlab {command} FILE`:\n\n{text.rstrip()}")
    if scenario is not None:
        say_text(f"\n# The scenario that it varies.\n{scenario.rstrip()}")
