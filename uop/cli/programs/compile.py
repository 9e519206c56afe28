"""`uop compile`: prints the source of a program or what a stage leaves; judges the stages."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uop.cli import names as listed
from uop.cli.names import StageName
from uop.cli.programs.compiling import beam_option, chosen, optimizations_option, target_option
from uop.cli.programs.files import (
    case_to_run,
    errors_by_line,
    native_option,
    program_options,
    read_case,
)
from uop.conformance.checks import OptionError, one_of
from uop.conformance.run import Exit
from uop.spec.errors import UnsupportedError

if TYPE_CHECKING:
    from uop.compiler.stages.stage import Setting
    from uop.spec.case import FileCase
    from uop.spec.uop import UOp


@click.command("compile")
@program_options
@target_option
@click.option(
    "--stage",
    type=StageName(listed.stages, shown=True),
    help="Print what this stage leaves, not the source, and what it has changed; the documents' "
    "names, as 'Instruction Selection', are names too.",
)
@click.option(
    "--binary",
    is_flag=True,
    help="Print what `render` leaves, with the machine code of the device here in each PROGRAM; "
    "`uop run --backend NAME --native` runs that code, as every command that runs a file needs "
    "--native for machine code.",
)
@click.option(
    "--nest",
    is_flag=True,
    help="Print the kernels that --stage leaves as nests of loops, as code. A > marks each "
    "line that the stage before does not have.",
)
@optimizations_option
@beam_option
@native_option
@click.option(
    "--check",
    is_flag=True,
    help="Judge what each stage leaves by the interpreter, and the device; name the first stage "
    "that changes the meaning, and the firing of a rule that does.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what --check found as JSON.")
def compile(
    file: Path,
    case_id: str | None,
    edition: str,
    target: str,
    stage: str | None,
    binary: bool,
    nest: bool,
    optimizations: tuple[str, ...],
    beam: int | None,
    native: bool,
    check: bool,
    as_json: bool,
) -> int:
    """Compile a program and print its source, or the program that a stage leaves.

    No device is needed, but for --beam, and for --binary except with CUDA. Variables are arguments
    of the kernels: one source serves all sizes. What a stage leaves comes with the inputs of the
    case, for `uop run`. --check and --beam alone run the program: they need --native where it holds
    native code.
    """
    from uop.compiler.pipeline import compile, find_target
    from uop.compiler.stages.stage import Setting
    from uop.spec.case import FileCase, UopFile
    from uop.spec.graph import slots_of
    from uop.spec.text.uop_file import print_file

    if check and (binary or stage is not None):
        raise click.UsageError("--check prints a verdict; --stage and --binary print programs")
    if nest and stage is None:
        raise click.UsageError("--nest is a form of what a stage leaves: expected --stage too")
    if as_json and not check:
        raise click.UsageError("--json is the form of what --check found: expected --check too")
    if binary and stage is not None:
        raise click.UsageError("--binary prints what render leaves; --stage is for other stages")
    one_of("--target", [target], listed.targets())
    # --check and --beam run the program; all else reads it.
    runs = check or beam is not None
    case, root = (
        case_to_run(file, case_id, edition, native=native)
        if runs
        else read_case(file, case_id, edition)
    )
    with errors_by_line(case):
        sequences = chosen(optimizations, beam, case, root, target)
        if check:
            return judged(case, root, Setting(find_target(target), sequences), as_json=as_json)
        compiled = compile(root, target, optimizations=sequences)
    if stage is None and not binary:
        click.echo(compiled.source, nl=not compiled.source.endswith("\n"))
        return Exit.OK
    if stage is None:
        compiler = compiled.executable.target.compiler()
        left = compiled.with_binaries(compiler)
        lines = [f"each BINARY is for {compiler.machine}"]
    else:
        one_of("--stage", [stage], listed.stages())
        if stage not in compiled.stages:
            raise OptionError(
                f"--stage: the kernels of this program need no {stage}: "
                f"expected one of {', '.join(compiled.stages)}"
            )
        left = compiled.stages[stage]
        before = [root, *compiled.stages.values()][[*compiled.stages].index(stage)]
        lines = [*about(stage, before, left)]
        if nest:
            nests = marked(before, left, stage)
            click.echo("\n".join((*(f"; {line}" for line in lines), *nests)))
            return Exit.OK
    # A stage may drop an input that no result depends on.
    inputs = {slot: data for slot, data in case.inputs.items() if slot in slots_of(left)}
    for line in lines:
        click.echo(f"; {line}")
    click.echo(print_file(UopFile((FileCase(root=left, inputs=inputs),))), nl=False)
    return Exit.OK


def about(stage: str, before: UOp, after: UOp) -> Iterator[str]:
    """What a stage is about, and what it has changed."""
    from uop.compiler.pipeline import STAGES

    (said,) = (s.about for s in STAGES if s.name == stage)
    yield f"{stage}: {said}"
    old, new = before.toposort(), after.toposort()
    fresh = len(set(new) - set(old))
    if not fresh:
        yield "changed: nothing"
        return
    ops = [dict.fromkeys(u.op.name for u in order) for order in (old, new)]
    moves = (("brought", ops[1].keys() - ops[0].keys()), ("removed", ops[0].keys() - ops[1].keys()))
    told = [f"{verb} {', '.join(sorted(names))}" for verb, names in moves if names]
    yield "; ".join((f"changed: {len(old)} nodes to {len(new)}, {fresh} of them new", *told))


def marked(before: UOp, after: UOp, stage: str) -> Iterator[str]:
    """The nests of a stage; those of its lines are marked that the stage before does not have."""
    from uop.spec.text.nest import nests

    lines, old = nests(after), nests(before)
    if not lines:
        raise OptionError(f"--nest: {stage} leaves no kernel")
    yield from (f"{' ' if line in old or not old else '>'} {line}" for line in lines)


def judged(case: FileCase, root: UOp, setting: Setting, *, as_json: bool) -> Exit:
    """Judge the stages and the device on the inputs of a case, and print what was found."""
    from uop.compiler.execute import open_device
    from uop.conformance.locate.device import check_device, lines_of, to_json
    from uop.conformance.locate.stages import check_stages
    from uop.conformance.suite.levels.written import inputs_and_drawn, ordinary

    inputs, drawn = inputs_and_drawn(case, root, ordinary)
    notes = [f"input {slot} was drawn: the file has none" for slot in drawn]
    checked = check_stages(root, [inputs], setting)
    if checked.blame is None:
        try:
            device = open_device(setting.target)
            checked = check_device(root, [inputs], checked, setting, device)
        except UnsupportedError as error:
            notes.append(f"not run on a device: {str(error).partition(chr(10))[0]}")
    if as_json:
        click.echo(json_module.dumps({**to_json(checked), "notes": notes}, indent=1))
    else:
        for line in (*notes, *lines_of(checked)):
            click.echo(line)
    return Exit.OK if checked.blame is None else Exit.FAILED
