"""`uop export`: writes the suite as files for checkers in any language."""

from __future__ import annotations

from pathlib import Path

import click

from uop.conformance.run.exits import Exit


@click.command("export")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--seed", type=int, default=0, show_default=True, help="Chooses the cases.")
@click.option(
    "--profile",
    default="strict",
    show_default=True,
    help="The profile that the accepted results are computed for.",
)
@click.option(
    "--size", type=click.FloatRange(min=0.1), default=20.0, show_default=True, metavar="MIB",
    help="The most that the files may hold.",
)  # fmt: skip
def command(folder: Path, seed: int, profile: str, size: float) -> int:
    """Write the suite as files, for checkers in any language.

    Writes one folder per case: the program, its inputs and the accepted results, as raw bits.
    FOLDER must be empty. docs/suite-as-files.md describes the files; `uop judge` judges outputs
    that anyone has written for them.
    """
    from uop.conformance.exported.export import MEBIBYTE, cases_of_all, export

    most = int(size * MEBIBYTE)
    done = export(folder, cases_of_all(seed), seed=seed, profile=profile, most_bytes=most)
    click.echo(
        f"{done.cases:,} cases in {done.bytes / MEBIBYTE:.1f} MiB; "
        f"{done.left_out:,} left out, which are large or did not fit"
    )
    return Exit.OK
