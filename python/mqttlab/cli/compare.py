"""``mqttlab compare``: two runs, or two groups of runs, side by side."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console

from mqttlab.cli.problems import nearest, writable_file
from mqttlab.comparison import compare
from mqttlab.errors import UsageError
from mqttlab.metrics import ALL
from mqttlab.report.comparison import print_comparison, write_comparison


def show_comparison(
    first: str, second: str, *, tolerance: float, metrics: tuple[str, ...], by_message: bool, limit: int,
    html: Path | None, as_json: bool,
) -> None:
    """Compare, print, and write what was asked for.

    Raises:
        UsageError: a metric that is not known, or a page that cannot be written.
        ComparisonError: the runs cannot be compared as asked.
        RecordingError: one of them is no recording, or they have no metric in common.
    """
    for metric in metrics:
        if metric not in ALL:
            raise UsageError(f"--metric {metric}: unknown metric; {nearest(metric, sorted(ALL))}")
    if html is not None:
        writable_file(html, "--html")
    comparison = compare(first, second, tolerance_percent=tolerance, metrics=metrics)
    if as_json:
        click.echo(json.dumps(comparison.data(by_message=by_message), indent=1, ensure_ascii=False))
    else:
        print_comparison(comparison, Console(), by_message=by_message, limit=limit)
    if html is not None:
        page = write_comparison(comparison, html, by_message=by_message)
        click.echo(f"report     {page}", err=as_json)
