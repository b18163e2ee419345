"""``mqttlab networks --probe``: what an emulated path does, beside what its model says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from mqttlab.console import Console
from mqttlab.engine import probe
from mqttlab.errors import UsageError
from mqttlab.mistaken import did_you_mean
from mqttlab.networks import MODELS
from mqttlab.report import probe as shown
from mqttlab.scenario import compile_plan
from mqttlab.scenario.load import load, parse_values
from mqttlab.schemas import OUTPUT_SCHEMA
from mqttlab.terminal import say_json

if TYPE_CHECKING:
    from mqttlab.plan import Plan


def show_probe(target: str, seconds: int, as_json: bool) -> None:
    """Probe a named model, or the networks of a scenario file, and print what was found.

    Raises:
        UsageError: there is no such model or file, or nothing in it is emulated.
    """
    plan = _plan(target)
    if not plan["network"]["links"]:
        raise UsageError(f"--probe {target}: it has no emulated links to probe")
    with Progress(TextColumn("{task.description}", markup=False), BarColumn(), console=Console(stderr=True),
                  transient=True) as bar:
        task = bar.add_task("probing", total=1.0)
        found = probe(plan, seconds, lambda line: bar.update(task, completed=line["done"], description=line["what"]))
    if as_json:
        say_json({"schema": OUTPUT_SCHEMA} | found)
    else:
        _print(target, found)


def _print(target: str, found: dict[str, Any]) -> None:
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 160)
    table = Table(title=escape(target), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column in shown.COLUMNS:
        table.add_column(column, justify="right" if column in ("model", "measured") else "left")
    before = None
    for path, *cells in shown.table(found).rows():
        table.add_row("" if path == before else escape(path), *map(escape, cells))
        before = path
    console.print(table)
    for remark in shown.remarks(found):
        console.print(remark, highlight=False, markup=False)


def _plan(target: str) -> Plan:
    if target in MODELS:
        values: dict[str, Any] = {
            "name": target, "phases": {"duration": "1 s"},
            "networks": [{"between": ["client", "broker"], "model": target}],
            "groups": [{"name": "client", "host": "client", "subscribe": [{"filter": "t"}]}],
        }
        return compile_plan(parse_values(values))
    if Path(target).suffix == ".toml" or Path(target).exists():
        return compile_plan(load(Path(target), {"backend": "live"}))
    raise UsageError(f"--probe {target}: there is no such network model or scenario file; "
                     f"{did_you_mean(target, list(MODELS))}")
