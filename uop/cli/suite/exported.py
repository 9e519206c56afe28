"""`uop export` and `uop judge`: the suite as files, and outputs in files that it judges."""

from __future__ import annotations

from pathlib import Path

import click

from uop.cli.suite.options import report_files, words
from uop.cli.suite.outcome import finished
from uop.conformance.checks import require_files
from uop.conformance.run import Exit


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
def export(folder: Path, seed: int, profile: str, size: float) -> int:
    """Write the suite as files, for checkers in any language.

    Writes one folder per case: the program, its inputs and the accepted results, as raw bits.
    FOLDER must be empty. docs/suite-as-files.md describes the files; `uop judge` judges outputs
    that anyone has written for them.
    """
    from uop.conformance.exported.files import MEBIBYTE, cases_of_all, export

    most = int(size * MEBIBYTE)
    done = export(folder, cases_of_all(seed), seed=seed, profile=profile, most_bytes=most)
    click.echo(
        f"{done.cases:,} cases in {done.bytes / MEBIBYTE:.1f} MiB; "
        f"{done.left_out:,} left out, which are large or did not fit"
    )
    return Exit.OK


SHOWN = 20
LINES = 60


@click.command("judge")
@click.argument("exported", type=click.Path(path_type=Path))
@click.argument("outputs", type=click.Path(path_type=Path))
@report_files
def judge(exported: Path, outputs: Path, **files: Path | None) -> int:
    """Judge outputs in files for the cases that `uop export` wrote.

    OUTPUTS/ID/outputs.bin holds the outputs of the case with that id, one after the other. A case
    without such a file is skipped.
    """
    from uop.conformance.exported.score import score
    from uop.conformance.report.text import figures_line, matrix, one_line, verdict_line

    require_files(*files.values())
    report = score(exported, outputs, words())
    verdict = f"verdict: {verdict_line(report)}"
    lines = [verdict, figures_line(report), "", *matrix(report, LINES)]
    lines += [one_line(f"FAILED {f.id}: {f.message}") for f in report.failures[:SHOWN]]
    if len(report.failures) > SHOWN:
        lines.append(f"... and {len(report.failures) - SHOWN} more")
    return finished(report, lines, **files)
