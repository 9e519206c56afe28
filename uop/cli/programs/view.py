"""`uop view`: writes how a program is compiled as an HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from uop.cli import names as listed
from uop.cli.programs.compiling import optimizations_option, read_optimizations, target_option
from uop.cli.programs.files import (
    case_to_run,
    errors_by_line,
    native_option,
    one_line_errors,
    program_options,
)
from uop.conformance.checks import one_of


@click.command("view")
@program_options
@target_option
@optimizations_option
@native_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="Where the page is written; by default FILE.html beside FILE.uop.",
)
def view(
    file: Path,
    case_id: str | None,
    edition: str,
    target: str,
    optimizations: tuple[str, ...],
    native: bool,
    output: Path | None,
) -> None:
    """Write how a program is compiled as one HTML page.

    The page has the results, the graph of each stage with the value of each node, every firing of a
    rule as a step, and the source with links to the nodes of its lines. It needs no device and
    loads nothing. A large program is cut, and the page says where. `uop serve` shows it for any
    program.
    """
    from uop.compiler.pipeline import find_target
    from uop.compiler.stages.stage import Setting
    from uop.conformance.locate.stages import check_stages
    from uop.conformance.playground.page import page_of_file
    from uop.conformance.playground.shown import judged, outputs_of, shown
    from uop.conformance.suite.levels.written import inputs_and_drawn, ordinary

    one_of("--target", [target], listed.targets())
    case, root = case_to_run(file, case_id, edition, native=native)
    output = output or file.with_suffix(".html")
    with errors_by_line(case):
        inputs, drawn = inputs_and_drawn(case, root, ordinary)
        setting = Setting(find_target(target), read_optimizations(optimizations))
        checked = check_stages(root, [inputs], setting)
        outputs = outputs_of(root, inputs)
        page = shown(root, inputs, outputs, checked.log, checked.compiled)
        page = judged(page, inputs, checked)
    text = page_of_file(file.name, case, target, page)
    with one_line_errors("write", output):
        output.write_text(text, encoding="utf-8")
    for slot in drawn:
        click.echo(f"input {slot} was drawn: the file has none")
    click.echo(f"{output}: {len(checked.log.firings)} firings, {len(text) >> 10} KiB")
