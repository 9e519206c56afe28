"""The program `uop`: runs the command line and turns every outcome into an exit code."""

import sys

import click

from uop.cli import Exit, cli
from uop.spec.errors import BackendError, PassError, UopError


def main(arguments: list[str] | None = None) -> int:
    """Run one command; expected errors are printed on stderr, without a traceback."""
    try:
        outcome = cli.main(arguments, prog_name="uop", standalone_mode=False)
    except click.Abort:
        click.echo("interrupted", err=True)
        return Exit.INTERRUPTED
    except click.ClickException as error:
        error.show()
        return Exit.USAGE
    except UopError as error:
        click.echo(f"error: {error}", err=True)
        return exit_code(error)
    # click returns the status of --help and --version, and what a command returns.
    return Exit.OK if outcome is None else int(outcome)


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
