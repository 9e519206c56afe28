"""Runs a command of the program `uop` and turns its outcome into an exit code."""

import gc
import os
import signal
import sys
from io import TextIOWrapper
from types import FrameType
from typing import TextIO

import click

from uop.cli import cli
from uop.conformance.run import Exit
from uop.conformance.workers import GARBAGE
from uop.spec.errors import (
    BackendError,
    ChangedError,
    DeviceLostError,
    JudgeLostError,
    PassError,
    UnfitError,
    UopError,
)

ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""The signals that end a process; not every system has both."""
MOST_OF_LINE = 2000
"""The most characters of a line of a message."""


def run(arguments: list[str] | None = None) -> int:
    """Run one command, of the command line where there are no arguments; its exit code."""
    if isinstance(sys.stdout, TextIOWrapper):
        # As on stderr: a report or a file name may contain bytes that are no text.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        if arguments is None:
            gc.set_threshold(*GARBAGE)
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            handle_signals(*ENDINGS)
        words = ["uop", *(sys.argv[1:] if arguments is None else arguments)]
        outcome = cli.main(arguments, prog_name="uop", standalone_mode=False, obj=words)
        # stdout is None after `>&-`.
        if sys.stdout is not None:
            sys.stdout.flush()
    except (click.Abort, KeyboardInterrupt):
        print_error("interrupted")
        return Exit.INTERRUPTED
    except click.ClickException as error:
        print_error(f"error: {in_one_style(error)}")
        return Exit.USAGE
    except UopError as error:
        print_error(f"error: {error}")
        return exit_code(error)
    except SystemExit as left:
        # click exits in this way after shell completion and, with 1, when the reader
        # of a pipe has gone: `uop explain ADD | head -1`.
        return Exit.INTERRUPTED if left.code else Exit.OK
    except OSError as error:
        # Commands report errors of their own files; what is left is mostly stdout on a full disk.
        return report_write_error(error)
    # click returns the status of --help and --version, or the result of the command.
    return Exit.OK if outcome is None else int(outcome)


def in_one_style(error: click.ClickException) -> str:
    """An error of click in the form of the other errors: the option, then what is wrong."""
    said = error.format_message()
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        option = error.param.opts[0] if error.param is not None else ""
        place = option if option.startswith("-") else option.upper()
        said = f"{place}: {error.message}" if place else error.message
    said = said[:1].lower() + said[1:] if said[1:2].islower() else said
    context = error.ctx if isinstance(error, click.UsageError) else None
    return said if context is None else f"{said}\ntry: {context.command_path} --help"


def handle_signals(*signals: int) -> None:
    """Handle signals like Ctrl-C: reports are written and workers end. They may come several times.

    An ignored signal, as under nohup, stays ignored.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        for each in heeded:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    heeded = [each for each in signals if signal.getsignal(each) is signal.SIG_DFL]
    for each in heeded:
        signal.signal(each, interrupt)


def print_error(text: str) -> None:
    """Print on stderr. If that fails too, only the exit code is left."""
    try:
        click.echo("\n".join(map(shown, text.split("\n"))), err=True)
    except OSError:
        silence(sys.stderr)


def shown(line: str) -> str:
    """A line of a message, which may quote a file: cut if long, control characters spelled."""
    if len(line) > MOST_OF_LINE:
        half = MOST_OF_LINE // 2
        line = f"{line[:half]}... ({len(line):,} characters) ...{line[-half:]}"
    return "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in line)


def silence(stream: TextIO) -> None:
    """Replace a broken output, so that it does not fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def report_write_error(error: OSError) -> Exit:
    """Report the file that could not be written."""
    silence(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return Exit.INTERRUPTED
    print_error(f"error: {error.filename or 'the output'}: {error.strerror or error}")
    return Exit.USAGE


def exit_code(error: UopError) -> Exit:
    """The exit code of an error, by its cause: the user, the backend or this program."""
    match error:
        case ChangedError() | JudgeLostError() | UnfitError():
            return Exit.INCONCLUSIVE
        case BackendError() | DeviceLostError():
            return Exit.NO_BACKEND
        case PassError():
            return Exit.FAILED
    return Exit.USAGE
