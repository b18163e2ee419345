"""What commands print, line by line; tables in ``mqttlab.console``. A test refuses commands that print otherwise."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any

import click

from mqttlab.foreign import json_text, laid_out, visible

WIDTH_OF_FILES = 100


def width_of_output(environment: Mapping[str, str], *, is_terminal: bool) -> int | None:
    """How many columns tables take: ``COLUMNS`` where it is set, else 100 where no terminal has a width of its own.

    ``None`` where a terminal has one.
    """
    asked = environment.get("COLUMNS", "")
    if asked.isascii() and asked.isdigit() and int(asked) > 0:
        return int(asked)
    return None if is_terminal else WIDTH_OF_FILES


def width() -> int:
    """How many columns standard output has by this rule."""
    asked = width_of_output(os.environ, is_terminal=sys.stdout.isatty())
    return shutil.get_terminal_size((WIDTH_OF_FILES, 24)).columns if asked is None else asked


def say(words: object, *, head: str = "", err: bool = False, bold: bool | None = None,
        colour: str | None = None) -> None:
    """Print one line, whatever is in it, after a head in bold; on standard error where that is asked for."""
    before = click.style(visible(head), bold=True) if head else ""
    click.echo(before + click.style(visible(str(words)), bold=bold, fg=colour), err=err)


def say_text(text: str) -> None:
    """Print a text of several lines."""
    click.echo(laid_out(text))


def say_json(value: Any, *, indent: int = 2, ascii_only: bool = True) -> None:
    """Print a value as JSON."""
    click.echo(json_text(value, indent=indent, ascii_only=ascii_only))


def keep_log() -> None:
    """Have what is logged on standard error; paths of requests stand in it, and text of recordings in tracebacks."""
    import logging

    class Visible(logging.Formatter):
        """Records with escapes; a traceback has lines."""

        def format(self, record: logging.LogRecord) -> str:
            return laid_out(super().format(record))

    handler = logging.StreamHandler()
    handler.setFormatter(Visible())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
