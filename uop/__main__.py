"""The program `uop`: runs the command line and turns every outcome into an exit code."""

import os
import signal
import sys
from importlib.metadata import PackageNotFoundError
from io import TextIOWrapper
from types import FrameType
from typing import TextIO

import click

from uop.cli import cli
from uop.conformance.run.exits import Exit
from uop.spec.errors import BackendError, PassError, UopError

ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
"""What a system asks to end with: not all have both."""


def main(arguments: list[str] | None = None) -> int:
    """Run one command; expected errors are printed on stderr, without a traceback."""
    if isinstance(sys.stdout, TextIOWrapper):
        # As stderr does: a report or the name of a file may hold what is no text.
        sys.stdout.reconfigure(errors="backslashreplace")
    if arguments is None:
        heed(*ENDINGS)
    try:
        words = ["uop", *(sys.argv[1:] if arguments is None else arguments)]
        outcome = cli.main(arguments, prog_name="uop", standalone_mode=False, obj=words)
        # Closed by `>&-`, it is None.
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.Abort:
        say("interrupted")
        return Exit.INTERRUPTED
    except click.ClickException as error:
        say(f"error: {in_one_style(error)}")
        return Exit.USAGE
    except UopError as error:
        say(f"error: {error}")
        return exit_code(error)
    except PackageNotFoundError as error:
        say(f"error: {error}; install it with: pip install -e '.[opencl,suite]'")
        return Exit.USAGE
    except SystemExit as left:
        # So click leaves when it has told a shell what may come next, and, with 1, when the reader
        # of a pipe has gone: `uop explain ADD | head -1`.
        return Exit.INTERRUPTED if left.code else Exit.OK
    except OSError as error:
        # What a command opens it says itself; left is mostly the output: a full disk.
        return unwritten(error)
    # click returns the status of --help and --version, and what a command returns.
    return Exit.OK if outcome is None else int(outcome)


def in_one_style(error: click.ClickException) -> str:
    """What click refuses, in the words of the other errors: the option, then what is wrong."""
    said = error.format_message()
    if isinstance(error, click.BadParameter) and not isinstance(error, click.MissingParameter):
        option = error.param.opts[0] if error.param is not None else ""
        place = option if option.startswith("-") else option.upper()
        said = f"{place}: {error.message}" if place else error.message
    said = said[:1].lower() + said[1:] if said[1:2].islower() else said
    context = error.ctx if isinstance(error, click.UsageError) else None
    return said if context is None else f"{said}\ntry: {context.command_path} --help"


def heed(*signals: int) -> None:
    """Take signals for Ctrl-C: reports are written and workers ended. They may come several times.

    One that is ignored, as by nohup, stays so.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        for each in heeded:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    heeded = [each for each in signals if signal.getsignal(each) is signal.SIG_DFL]
    for each in heeded:
        signal.signal(each, interrupt)


def say(text: str) -> None:
    """Print on stderr. Where that cannot be written either the exit code alone is left."""
    try:
        click.echo(text, err=True)
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Leave no output that fails again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def unwritten(error: OSError) -> Exit:
    """Say which file the system refused."""
    silence(sys.stdout)
    if isinstance(error, BrokenPipeError):
        return Exit.INTERRUPTED
    say(f"error: {error.filename or 'the output'}: {error.strerror or error}")
    return Exit.USAGE


def exit_code(error: UopError) -> Exit:
    """The exit code of an error: whose fault it is decides."""
    match error:
        case BackendError():
            return Exit.NO_BACKEND
        case PassError():
            return Exit.FAILED
    return Exit.USAGE


if __name__ == "__main__":
    sys.exit(main())
