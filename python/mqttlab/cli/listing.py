"""``mqttlab list``: the recordings of a directory, of its catalog, or those of them that were asked for."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mqttlab.catalog.listed_runs import ListedRun, listed_runs
from mqttlab.digits import plain
from mqttlab.files import from_here
from mqttlab.foreign import visible
from mqttlab.plurals import counted
from mqttlab.runs.directory import list_runs
from mqttlab.samples import fewest
from mqttlab.terminal import say, width

# Too many to read on a terminal.
ROWS_MAX = 200
CELL_MAX = 400
# Between columns.
GAP = 2
COLUMNS = ("started (UTC)", "p99 ms", "not delivered", "status", "backend", "directory")


def show_list(runs: Path, *, everything: bool = False) -> None:
    """Print a line for each recording, oldest first: what the catalog knows, and what it does not know yet.

    Of an experiment's runs only how many there are is said, unless ``everything`` is asked for."""
    known = listed_runs(runs / "catalog.db")
    there = {run.directory for run in known if (run.directory / "plan.json").is_file()}
    others = list_runs(runs, but=there)
    if not known and not others:
        say(f"no runs in {runs}; make one with: mqttlab run scenarios/demo.toml")
        return
    found = [(run.started, *_numbers(run),
              _status(run, run.directory in there), run.backend, str(from_here(run.directory)))
             for run in known if everything or run.experiment is None]
    alone = [summary for summary in others if everything or not _is_of_experiment(summary.directory)]
    found += [(summary.started, "", "", summary.status, summary.backend, str(summary.directory)) for summary in alone]
    rows = sorted(([visible(cell) for cell in (_minute(started), *rest)] for started, *rest in found),
                  key=lambda row: (row[0], row[-1]))
    _say_table(COLUMNS, rows, (False, True, True), [None if row[3] == "complete" else "yellow" for row in rows])
    left = len(known) + len(others) - len(rows)
    if left:
        say(f"mqttlab: and {counted(left, 'run')} of experiments; --all lists them, too, --experiments their "
            "answers", err=True)


def show_experiments(runs: Path) -> None:
    """Print each experiment, the latest first: date, state, question and answer."""
    from mqttlab.experiment_answers import listed

    found = listed(runs)
    if not found:
        say(f"no experiments in {runs}; make one with: mqttlab experiment FILE, or mqttlab try --qos 0,1")
        return
    colours: dict[str, str] = {"broken": "red", "undecided": "yellow", "held": "green"}
    for place, each in enumerate(found):
        if place:
            say("")
        say(f"{_minute(each.date) or 'not begun'}  {visible(each.name)}  {visible(each.state)}",
            colour=colours.get(each.verdict), bold=True)
        for line in (each.question, each.answer):
            for part in textwrap.wrap(visible(line), width() - 2):
                say(f"  {part}")


def _is_of_experiment(directory: Path) -> bool:
    return (directory.parent.parent / "journal.jsonl").is_file()


def _numbers(run: ListedRun) -> tuple[str, str]:
    """The slowest p99 and what was not delivered; without a subscriber in the evidence the time to acknowledge. Of few
    messages there is no p99."""
    if run.acknowledge_ms_p99 is not None:
        return f"{_latency(run.acknowledge_ms_p99)} to ack.", "not seen"
    few = run.p99_ms is not None and run.delivered is not None and run.delivered < fewest("latency_ms_p99")
    return "–" if few else _latency(run.p99_ms), _share(run.undelivered_percent)


def _latency(milliseconds: float | None) -> str:
    return "" if milliseconds is None else plain(milliseconds, 3) if milliseconds < 1000 else f"{milliseconds:.0f}"


def _share(percent: float | None) -> str:
    """A percentage, of which what is not nothing is never written as nothing."""
    return "" if percent is None else "< 0.01 %" if 0 < percent < 0.01 else f"{plain(percent, 3)} %"


def show_found(
    url: str | None, runs: Path, where: Sequence[str], columns: Sequence[str], sort: Sequence[str], limit: int | None,
) -> None:
    """Print the runs of the catalog for which all conditions hold, with what was asked for beside the usual columns."""
    from mqttlab.catalog.found import find
    from mqttlab.catalog.place import url_for
    from mqttlab.catalog.query import names_in

    # Who asks for small latencies wants to see them.
    asked = (*columns, *names_in(where, sort))
    names = tuple(dict.fromkeys(("started", "backend", "state", *asked, "directory")))
    found = find(url or url_for(runs), where, columns=names, sort=sort, limit=limit)
    place = names.index("directory")
    rows = [(_minute(row[0]), *row[1:place], str(from_here(Path(row[place]))), *row[place + 1:]) for row in found.rows]
    names = (COLUMNS[0], *names[1:])
    cells = [tuple(_cell(value) for value in row) for row in rows[:ROWS_MAX]]
    _say_table(names, cells, [kind == "number" for kind in found.kinds])
    if len(rows) > ROWS_MAX:
        say(f"mqttlab: {len(rows) - ROWS_MAX} more rows; --limit shows fewer, mqttlab catalog query --csv all",
            err=True)
    known = found.known if url is None else None
    new = [] if known is None else list_runs(runs, but=known)
    if new:
        say(f"mqttlab: {len(new)} recordings below {runs} are not in the catalog; mqttlab catalog scan {runs} "
            "adds them", err=True)


def _status(run: ListedRun, there: bool) -> str:
    if not there:
        return "gone"
    return "not valid" if run.valid is False and run.state == "complete" else run.state


def _minute(started: str | None) -> str:
    """A time of ISO 8601, as far as people read it; nothing where an import does not know it."""
    return (started or "")[:16].replace("T", " ")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = plain(value, 6) if isinstance(value, float) else visible(str(value))
    return text if len(text) <= CELL_MAX else f"{text[:CELL_MAX - 3]}..."


def _say_table(
    names: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool], colours: Sequence[str | None] = (),
) -> None:
    """Print rows as wide as the terminal, without its library of tables, which takes longer to load than to list.

    What has no room in a line stands below it, with its name: no cell is cut.
    """
    room = width()
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    taken = [sum(widths[:count]) + GAP * (count - 1) for count in range(1, len(widths) + 1)]
    fit = max(1, sum(each <= room for each in taken))
    say(_line(names[:fit], widths[:fit], right[:fit]), bold=True)
    for place, row in enumerate(rows):
        colour = colours[place] if colours else None
        say(_line(row[:fit], widths[:fit], right[:fit]), colour=colour)
        rest = [f"{name} {cell}" for name, cell in zip(names[fit:], row[fit:], strict=True) if cell]
        for line in _filled(rest, room - GAP):
            say(" " * GAP + line, colour=colour)


def _filled(words: Sequence[str], room: int) -> list[str]:
    """Words in as few lines as hold them; a longer one has a line of its own, which the terminal folds."""
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + GAP + len(word) <= room:
            lines[-1] += " " * GAP + word
        else:
            lines.append(word)
    return lines


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool] = ()) -> str:
    """Cells in columns; numbers on the right side of theirs."""
    sides = [*right, *(False for _ in widths[len(right):])]
    return "  ".join(cell.rjust(width) if side else cell.ljust(width)
                     for cell, width, side in zip(cells, widths, sides, strict=True)).rstrip()
