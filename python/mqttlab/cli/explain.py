"""``mqttlab explain``: where one message's time went, as a table, a sentence, a ladder and a picture."""

from __future__ import annotations

import textwrap
from pathlib import Path

import polars as pl
from rich.markup import escape

from mqttlab.console import Console, print_table
from mqttlab.digits import whole
from mqttlab.explanation import Story, cause, head, ladder, parts_table, tell, write
from mqttlab.metrics import attribution_gap, evidence, fates
from mqttlab.metrics.attribution import explainable
from mqttlab.recording import Recording, RecordingError
from mqttlab.report.attribution import coverage

# Where a line of the ladder goes on: below the names of its ends.
INDENT = 16


def show_explanation(run: Path, message: str | None, slowest: int, console: Console) -> None:
    """Explain one message of the run, or its slowest ones, and write a page for each.

    Raises:
        RecordingError: there is no recording, it has no packets, or no such delivery.
    """
    recording = Recording.open(run)
    gap = attribution_gap(recording)
    if gap is not None:
        raise RecordingError(f"{run} cannot be explained: {gap}")
    known = explainable(recording)
    if message is not None:
        known, slowest = _of_message(recording, known, message).lazy(), 1
    # Of millions a few rows are held. Of those that took as long the first ones.
    chosen = recording.collect(known.top_k(slowest, by=["latency_ns", "leg"], reverse=[False, True]))["leg"].to_list()
    if not chosen:
        raise RecordingError(f"{run} cannot be explained frame by frame. {coverage(recording)}")
    if recording.going_on:
        console.print(f"[bold yellow]{escape(recording.going_on)}[/]", highlight=False, soft_wrap=True)
    console.print(coverage(recording), highlight=False, soft_wrap=True, markup=False)
    written: set[str] = set()
    for leg in chosen:
        # One after the other: the slowest of a long run have little in common that would be read twice.
        story = tell(recording, evidence(recording, [leg]), leg)
        name = f"explain-{story.publisher}-{story.sequence}"
        name = f"{name}-to-{story.subscriber}" if name in written else name
        written.add(name)
        _print(story, console)
        for path in write(story, recording.source or recording.directory, name):
            console.print(f"written to {path}", highlight=False, soft_wrap=True, markup=False)


def _of_message(recording: Recording, known: pl.LazyFrame, message: str) -> pl.DataFrame:
    """The deliveries of ``PUBLISHER:SEQUENCE[@SUBSCRIBER]``; clients by number or by name."""
    first, _, to = message.partition("@")
    publisher, separator, sequence = first.rpartition(":")
    if not separator or (number := whole(sequence)) is None:
        raise RecordingError(f"--message {message}: write PUBLISHER:SEQUENCE or PUBLISHER:SEQUENCE@SUBSCRIBER, such "
                             "as 0:17 or client1-0:17@client2-0")
    wanted = pl.col("publisher") == _client(recording, publisher), pl.col("sequence") == number
    for_whom = [pl.col("subscriber") == _client(recording, to)] if to else []
    chosen = recording.collect(known.filter(*wanted, *for_whom))
    if chosen.is_empty():
        theirs = recording.scan("messages").filter(*wanted, *for_whom).select("fate", "cause").unique()
        told = [fates.in_words(*row) for row in recording.collect(theirs.sort("fate", "cause")).iter_rows()]
        words = f"it is {', '.join(told)}" if told else "there is none in this recording"
        raise RecordingError(f"message {message} cannot be explained: {words}")
    return chosen


def _client(recording: Recording, word: str) -> int:
    clients = recording.layout["clients"]
    number: int | None = clients.number(word)
    if number is not None:
        return number
    raise RecordingError(f"there is no client {word!r}; they are numbered from 0 to {len(clients) - 1}, or named such "
                         f"as {clients.names[0]}")


def _print(story: Story, console: Console) -> None:
    console.print(f"[bold]{escape(head(story))}[/]", highlight=False)
    print_table(console, "", ("part", "time", "share"), parts_table(story))
    console.print(cause(story), highlight=False, markup=False)
    for line in ladder(story):
        for part in textwrap.wrap(line, console.width, subsequent_indent=" " * INDENT, break_long_words=False,
                                  break_on_hyphens=False):
            console.print(part, highlight=False, soft_wrap=True, markup=False)
