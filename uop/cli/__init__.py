"""The command line; the module of a command is imported when the command runs."""

import reprlib
from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

import click

COMMANDS = {
    "run": ("programs.run", "Run a program and print its results."),
    "compile": (
        "programs.compile",
        "Compile a program and print its source, or the program that a stage leaves.",
    ),
    "fmt": ("programs.fmt", "Format files of programs: spaces, empty lines, derived parts."),
    "time": ("programs.time", "Time the kernels of a program, one row for each."),
    "view": ("programs.view", "Write how a program is compiled as one HTML page."),
    "serve": ("programs.serve", "Serve a page to try programs on, until Ctrl-C."),
    "backends": ("suite.backends", "List the backends and say which packages they lack."),
    "fuzz": (
        "suite.fuzz",
        "Judge random programs on a backend, or several, until the time is over.",
    ),
    "corpus": ("suite.fuzz", "Join or thin out the programs that `uop fuzz --corpus` keeps."),
    "conform": ("suite.conform", "Judge a backend, or several, by the conformance suite."),
    "compare": ("suite.compare", "Judge several backends, and show them side by side."),
    "merge": ("suite.reports", "Join the reports of the shards of a run."),
    "diff": ("suite.reports", "Compare two reports: what is better now, and what is worse."),
    "explain": ("explain", "Explain an op, a label, a decision or a word, or what a case demands."),
    "eval": ("programs.eval", "Evaluate one expression and print what a backend may return."),
    "export": ("suite.exported", "Write the suite as files, for checkers in any language."),
    "judge": ("suite.exported", "Judge outputs in files for the cases that `uop export` wrote."),
    "mutants": ("suite.mutants", "Measure the suite: seed faults and count which ones it finds."),
    "profile": (
        "suite.profile",
        "Show or write what a backend does where the spec leaves a choice.",
    ),
    "known": ("suite.known", "Keep a file of known failures up to date."),
    "report": ("suite.reports", "Print a failure as a bug report in Markdown."),
    "worker": ("suite.worker", "Check that an executable keeps to the protocol for backends."),
    "replay": ("suite.replay", "Judge programs in files again, or some cases of a report."),
}
"""By name the module of the command, a function of that name, and its line in `uop --help`."""
F = TypeVar("F", bound=Callable[..., object])


class Suggesting(click.Group):
    """A group of commands that suggests a name for a mistyped one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            if args[0].startswith("-"):
                raise
            from uop.spec.nearest import did_you_mean

            near = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"no command {reprlib.repr(args[0])}{near}", ctx) from None


class Commands(Suggesting):
    """A group that imports the module of a command only to run it or to print its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from uop.spec.distribution import load_additions

        load_additions()
        module = import_module(f"{__name__}.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one, in the order of the help."""

    def decorated(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from uop.spec.distribution import own_version

        click.echo(f"uop {own_version()}")
        ctx.exit()


EXIT_CODES = """\b
Exit codes:
  0    done; conform and replay: the backend conforms; fuzz: no failure was found;
       compare: what was asked for is written, whatever the verdicts
  1    it does not conform, or fails; diff: something is worse; replay: a verdict does not hold
  2    bad usage or bad input
  3    the backend could not be started
  4    inconclusive: too little was checked, or the backend was lost
  125  replay --bisect: not judged
  130  interrupted

\b
Completion of commands, options and names, for bash; for others zsh_source or fish_source:
  eval "$(_UOP_COMPLETE=bash_source uop)"
"""


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
    no_args_is_help=True,
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=print_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """The executable specification of the UOp language."""
