"""``mqttlab compare``: runs, or groups of runs, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mqttlab.cli.problems import writable_file
from mqttlab.comparison import Side, compare, gather, of_stage, side
from mqttlab.console import Console
from mqttlab.errors import UsageError
from mqttlab.metrics import ALL, is_of_stages
from mqttlab.mistaken import did_you_mean, what_it_is
from mqttlab.report.comparison import (
    document,
    print_comparison,
    print_several,
    several,
    write_comparison,
    write_several,
)
from mqttlab.schemas import OUTPUT_SCHEMA
from mqttlab.terminal import say, say_json

CATALOG = "catalog:"


def show_comparison(
    words: Sequence[str], *, tolerance: float, metrics: tuple[str, ...], by_message: bool, limit: int,
    html: Path | None, as_json: bool, full: bool = False, catalog: str | None = None,
    stage: str | None = None,
) -> None:
    """Compare the first side with each of the others, print, and write what was asked for.

    A side that begins with ``catalog:`` is what the catalog has for conditions, separated by semicolons.

    Raises:
        CatalogError: there is no catalog, or it does not know what is asked for.
        UsageError: a metric that is not known, or a page that cannot be written.
        ComparisonError: the runs cannot be compared as asked, or one of them has no such stage.
        RecordingError: one of them is no recording, or they have no metric in common.
    """
    for metric in metrics:
        if metric not in ALL:
            raise UsageError(f"--metric {metric}: unknown metric; {did_you_mean(metric, sorted(ALL))}")
        if stage is not None and not is_of_stages(metric):
            raise UsageError(f"--metric {metric} is of the whole run, not of a stage; leave --stage out, or choose "
                             "another metric, such as latency_ms_p99")
    if stage is not None and by_message:
        raise UsageError("--by message compares whole runs, but --stage asks for a part of them; leave one of them out")
    if html is not None:
        writable_file(html, "--html")
    words = _without_files(words)
    several_sides = len(words) > 2
    if several_sides and by_message:
        raise UsageError(f"--by message is for two sides, but there are {len(words)}; compare two of them")
    first, *others = [_of_catalog(word, catalog) if word.startswith(CATALOG) else gather(word) for word in words]
    if stage is not None:
        first, *others = of_stage([first, *others], stage)
    made = [compare(first, other, tolerance_percent=tolerance, metrics=metrics) for other in others]
    if several_sides:
        if as_json:
            say_json({"schema": OUTPUT_SCHEMA} | several.document(made), indent=1, ascii_only=False)
        else:
            print_several(made, Console(), full=full)
        if html is not None:
            say(f"report     {write_several(made, html)}", err=as_json)
        return
    [comparison] = made
    if as_json:
        say_json({"schema": OUTPUT_SCHEMA} | document(comparison) | comparison.data(by_message=by_message), indent=1,
                 ascii_only=False)
    else:
        print_comparison(comparison, Console(), by_message=by_message, limit=limit, full=full)
    if html is not None:
        page = write_comparison(comparison, html, by_message=by_message)
        say(f"report     {page}", err=as_json)


def _without_files(words: Sequence[str]) -> Sequence[str]:
    """The words without files, which a shell's pattern names beside runs, such as the catalog; as they are where fewer
    than two would be left, so that the file is told as a mistake."""
    files = [word for word in words if Path(word).is_file()]
    if not files or len(words) - len(files) < 2:
        return words
    for word in files:
        say(f"mqttlab: warning: {word} left out: it {what_it_is(Path(word)) or 'is a file'}", err=True)
    return [word for word in words if word not in files]


def _of_catalog(word: str, url: str | None) -> Side:
    from mqttlab.catalog import Catalog, url_for

    conditions = [condition.strip() for condition in word.removeprefix(CATALOG).split(";") if condition.strip()]
    if not conditions:
        raise UsageError(f"{word}: name conditions, such as 'catalog: backend = sim; name = demo'")
    with Catalog.open(url or url_for(Path("runs")), read_only=True) as opened:
        listed = opened.runs(conditions, columns=("directory",))["directory"].to_list()
    found = [Path(directory) for directory in listed]
    there = [directory for directory in found if (directory / "plan.json").is_file()]
    if not there:
        gone = f": the recordings of all {len(found)} runs are gone" if found else ": no run of the catalog is such"
        raise UsageError(f"{word}{gone}; mqttlab list --where shows what there is")
    return side("; ".join(conditions), there, word)
