"""The one place that prints what went wrong: a line on standard error for each problem, and the exit status.

Commands raise :class:`mqttlab.errors.MqttlabError` and never print problems themselves. What the operating system
refuses, what the command line's parser refuses, Ctrl-C and a reader that went away (``mqttlab list | head -1``) end
here too. What is left is a fault of the program, and keeps its traceback.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from mqttlab import control_groups, scratch
from mqttlab.errors import MqttlabError, UsageError
from mqttlab.files import from_here
from mqttlab.terminal import say

FAILED = 1
# What lists what a command is about; recordings are what most are.
LISTS = {"study": "mqttlab study list", "networks": "mqttlab networks", "experiment": "mqttlab list --experiments"}
LISTED = 8
"""Options that a line names at most."""
WRONG = 2
# How files that are imported may end.
LOGS, PACKED = (".csv", ".tsv", ".json", ".jsonl", ".log", ".txt"), (".gz", ".zst")
# A place that the user named, and that is not what it should be. Everything else (a full disk) failed on the way.
WRONG_PLACE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM, errno.EEXIST, errno.EROFS,
               errno.ENAMETOOLONG, errno.ELOOP}


class Command(click.Command):
    """A command whose mistakes in options name it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; click's parser does not say whose they are."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise


    def instead_of_option(self, option: str) -> str | None:
        """What to write instead of an option that there is not; nothing where the nearest option says enough."""
        listing = LISTS.get(self.name or "", "mqttlab list")
        return f"write: {listing}" if option in ("--list", "--ls") and "list" not in (self.name or "") else None


class Stopped(SystemExit):
    """A signal asked for the end. What a command has made beside its result is removed on the way."""


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """End in order at SIGTERM and SIGHUP, by the signal itself; at once at a second one.

    Runs listen by themselves (:mod:`mqttlab.engine.interruption`), and a signal that is ignored stays ignored.
    """
    numbers = (signal.SIGTERM, signal.SIGHUP) if threading.current_thread() is threading.main_thread() else ()
    heard = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    asked: list[int] = []

    def stop(number: int, _: object) -> NoReturn:
        asked.append(number)
        signal.signal(number, signal.SIG_DFL)
        raise Stopped(128 + number)

    def end() -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        signal.raise_signal(asked[0])

    # Who started it sees by what it has ended. Of what is removed as the process ends, the first one is the last.
    last = weakref.finalize(Commands, end)
    for number in heard:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, signal.SIG_DFL)
        if not asked:
            last.detach()


class Commands(click.Group):
    """A group of commands whose problems are printed here."""

    command_class = Command

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line."""
        extra["standalone_mode"] = False
        to_hide = scratch.sweep()
        control_groups.sweep()
        try:
            with _stoppable():
                _hide(to_hide)
                status = super().main(*args, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(WRONG)
        except click.UsageError as error:
            refuse(_usage(error), error.exit_code)
        except click.ClickException as error:
            refuse([error.format_message()], error.exit_code)
        except MqttlabError as error:
            refuse(error.problems, error.exit_status)
        except (click.Abort, KeyboardInterrupt):
            refuse(["interrupted"], FAILED)
        except MemoryError:
            refuse(["there is not enough memory for this"], FAILED)
        except OSError as error:
            refuse([_system(error)], WRONG if error.filename and error.errno in WRONG_PLACE else FAILED)
        except BaseException as error:
            # A table whose columns have other names or kinds than the engine gives them. Their class would load Polars.
            of_table = type(error).__module__.split(".")[0] in ("polars", "pyo3_runtime")
            problem = _damaged() if of_table or isinstance(error, Exception) else None
            if problem is None and not of_table:
                raise
            line = next(iter(str(error).splitlines()), "")
            refuse([problem or f"a table is damaged, or of another version: {line}"], WRONG)
        sys.exit(status if isinstance(status, int) else 0)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of this name; the nearest one is named where there is none."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            from mqttlab.mistaken import did_you_mean

            asked = " ".join([ctx.command_path, *args[1:2]])
            told = f"write: {asked} --help" if args[0] == "help" else self.instead(args[0])
            told = told or f"there is no command {args[0]!r}; {did_you_mean(args[0], known)}"
            raise click.UsageError(told, ctx)
        return super().resolve_command(ctx, args)


    def instead(self, given: str) -> str | None:
        """What to write instead of a word that is no command; nothing where the nearest command says enough."""
        return None


class Imports(Commands):
    """The commands that read files: a file in a command's place is told its command."""

    def instead(self, given: str) -> str | None:
        """The command for a file of this name."""
        path = Path(given)
        if not path.suffix and not path.exists():
            return None
        name = path.stem if path.suffix in PACKED else path.name
        kind = "log" if name.endswith(LOGS) else "capture"
        return f"name the kind of file first: mqttlab import {kind} {given}{missing(path)}"


class WithTables(Command):
    """A command that reads tables, at its end at the latest: it does not begin where there is no memory for that."""

    def invoke(self, ctx: click.Context) -> Any:
        """Ask, then perform it."""
        from mqttlab.memory import need_for_tables

        need_for_tables()
        return super().invoke(ctx)


def _hide(directories: Sequence[Path]) -> None:
    """Hide the secrets of runs whose command was killed, and say so."""
    if not directories:
        return
    from mqttlab.engine import EngineError, hide_abandoned

    for directory in directories:
        try:
            for file in hide_abandoned(directory):
                say(f"mqttlab: {from_here(directory)}: its command and its engine were killed. What could show a "
                    f"secret was overwritten: {from_here(file)}", err=True)
        except EngineError as error:
            say(f"mqttlab: {from_here(directory)}: its files may show a secret, which cannot be overwritten: {error}",
                err=True)


def refuse(problems: Sequence[str], status: int) -> NoReturn:
    """Print problems, one line each, and exit."""
    from mqttlab.secrets import hidden

    for problem in problems:
        say(f"mqttlab: {hidden(problem)}", err=True)
    sys.exit(status)


def missing(path: Path) -> str:
    """That a file is not there, with the nearest one; empty where it is, or is standard input."""
    from mqttlab.mistaken import nearest_path

    if path.exists() or str(path) == "-":
        return ""
    near = nearest_path(path)
    return f"; there is no file {path}" + (f", did you mean {near}?" if near else "")


def writable_file(path: Path, option: str) -> Path:
    """A path whose directory is there, so that a file can be written to it.

    Raises:
        UsageError: there is no such directory, or the path is one.
    """
    parent = path.absolute().parent
    if path.is_dir():
        raise UsageError(f"{option} {path}: this is a directory; name a file in it")
    if not parent.is_dir():
        raise UsageError(f"{option} {path}: there is no directory {path.parent}; make it first, or name another")
    return path


def writable_directory(path: Path, option: str) -> Path:
    """A directory that is there, or that can be made below one that is.

    Raises:
        UsageError: it is a file, lies below one, or may not be written to.
    """
    there = path.absolute()
    while not os.path.lexists(there):
        there = there.parent
    if not there.is_dir():
        what = "this" if there == path.absolute() else from_here(there)
        raise UsageError(f"{option} {path}: {what} is not a directory; name a directory")
    if not os.access(there, os.W_OK | os.X_OK) or there.is_relative_to("/proc"):
        raise UsageError(f"{option} {path}: nothing can be written to {there}; name another directory")
    return path


def write_page(write: Callable[[Path], Path], out: Path | None, beside: Path) -> Path:
    """Write a page to the place that was asked for, or beside what it is of.

    Raises:
        OSError: it cannot be written; the words say how to have it elsewhere.
    """
    try:
        return write(out or beside)
    except OSError as error:
        if out is None:
            error.strerror = f"{error.strerror}; write the report elsewhere with --html FILE"
        raise


def existing_directory(path: Path, option: str) -> Path:
    """A directory that is there.

    Raises:
        UsageError: it is not, or is a file.
    """
    if not path.is_dir():
        what = "is not a directory" if path.exists() else "does not exist"
        raise UsageError(f"{option} {path}: this {what}; name the directory where runs are kept")
    return path


def _damaged() -> str | None:
    """What is wrong with a recording that a command has read: then its fault is none of the program's."""
    recording = sys.modules.get("mqttlab.recording")
    try:
        return None if recording is None else str(recording.found_damaged() or "") or None
    except Exception:
        return None


def _usage(error: click.UsageError) -> list[str]:
    """A mistake in the command line, as a line like any other."""
    from mqttlab.mistaken import closest, did_you_mean

    words = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption):
        options = [name for parameter in (error.ctx.command.params if error.ctx else []) for name in parameter.opts
                   if name.startswith("--")]
        # Two dashes alone make no likeness.
        known = [name[2:] for name in (*options, "--help")]
        close = closest(error.option_name.strip("-"), known, 0.6)
        asked = error.ctx.command if error.ctx else None
        hint = asked.instead_of_option(error.option_name) if isinstance(asked, Command) else None
        # Of many options the help says more.
        listed = f"; known: {', '.join([*options, '--help'])}" if len(options) < LISTED else ""
        close = f"; did you mean `--{close}`?" if close else listed
        words = f"there is no option {error.option_name}" + (f"; {hint}" if hint else close)
    elif isinstance(error, click.MissingParameter) and error.param is not None:
        words = f"{error.param.make_metavar(error.ctx) if error.ctx else error.param.name} is missing"
    elif isinstance(error, click.BadParameter) and error.param is not None:
        words = f"{error.param.opts[-1]}: {error.message.rstrip('.')}"
    if extra := re.fullmatch(r"Got unexpected extra arguments? \((.*)\)", words):
        words = f"unexpected argument {extra[1]}"
        # `--every 5 s`: to a shell these are two words.
        if re.fullmatch(r"[num]?s|secs?|seconds?|min(utes?)?|h|hours?|d|days?|[kKMG]?(B|bps|bit/s)|/s|%", extra[1]):
            words += "; a value with a blank is quoted ('5 s'), or written without one (5s)"
    if choice := re.fullmatch(r"(.*?)'(.*)' is not one of ('.*')", words):
        known = re.findall("'(.*?)'", choice[3])
        words = f"{choice[1]}{choice[2]!r} is unknown; {did_you_mean(choice[2], known)}"
    words = re.sub(r"(\d+) is not in the range x>=(\d+)", r"\1 must be \2 or more", words)
    words = re.sub(r"(\d+) is not in the range (\d+)<=x<=(\d+)", r"\1 must be from \2 to \3", words)
    words = words.replace("is not a valid integer range", "is not a whole number")
    words = re.sub(r"Option '(.*)' requires an argument", r"\1 needs a value", words)
    command = error.ctx.command_path if error.ctx else "mqttlab"
    if words[1:2].islower():
        words = words[:1].lower() + words[1:]
    return [f"{words} (see {command} --help)"]


def _system(error: OSError) -> str:
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {reason}"
    return f"the output cannot be written: {reason}" if error.errno == errno.ENOSPC else reason
