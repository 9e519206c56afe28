"""The program `uop`: runs the command line and turns every outcome into an exit code."""

import os
import sys

import click

from uop.cli import Exit, cli
from uop.spec.errors import BackendError, PassError, UopError


def main(arguments: list[str] | None = None) -> int:
    """Run one command; expected errors are printed on stderr, without a traceback."""
    try:
        outcome = cli.main(arguments, prog_name="uop", standalone_mode=False)
        # Closed by `>&-`, it is None.
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.Abort:
        click.echo("interrupted", err=True)
        return Exit.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return Exit.USAGE
    except UopError as error:
        click.echo(f"error: {error}", err=True)
        return exit_code(error)
    except SystemExit:
        # So click leaves when the reader of a pipe has gone: `uop explain ADD | head -1`.
        return Exit.INTERRUPTED
    except OSError as error:
        # What a command opens it says itself; left is mostly the output: a full disk.
        return unwritten(error)
    # click returns the status of --help and --version, and what a command returns.
    return Exit.OK if outcome is None else int(outcome)


def unwritten(error: OSError) -> Exit:
    """Say which file the system refused, and leave no output that fails again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return Exit.INTERRUPTED
    click.echo(f"error: {error.filename or 'the output'}: {error.strerror or error}", err=True)
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
