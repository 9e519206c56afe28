"""`uop compile --check`: judges each stage of the compiler on a program, and the device."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING

import click

from uop.conformance.run.exits import Exit

if TYPE_CHECKING:
    from uop.compiler.pipeline import Setting
    from uop.interpreter.numeric.storage import Array
    from uop.spec.case import FileCase
    from uop.spec.uop import UOp


def check(case: FileCase, root: UOp, setting: Setting, *, as_json: bool) -> Exit:
    """Judge the stages and the device on the inputs of a case, and print what was found."""
    from uop.conformance.locate.stages import check_stages
    from uop.conformance.locate.text import lines_of, to_json
    from uop.spec.errors import UnsupportedError

    inputs, drawn = inputs_of(case, root)
    notes = [f"input {slot} was drawn: the file has none" for slot in drawn]
    checked = check_stages(root, [inputs], setting)
    if checked.blame is None:
        from uop.compiler.execute import open_device
        from uop.conformance.locate.device import check_device

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


def inputs_of(case: FileCase, root: UOp) -> tuple[dict[int, Array], list[int]]:
    """The inputs of a case, and ordinary values for those that it lacks, with their slots."""
    from uop.cli.programs.run import arrays
    from uop.conformance.suite.values import draw_ordinary
    from uop.spec.graph import slots_of
    from uop.spec.ops.names import Op
    from uop.spec.properties.shape import is_fixed, size

    inputs = arrays(case, root, {})
    drawn = [
        slot
        for slot, u in slots_of(root).items()
        if slot not in inputs and u.op is Op.PARAM and is_fixed(u.shape) and u.shape
    ]
    for slot in drawn:
        leaf = slots_of(root)[slot]
        inputs[slot] = draw_ordinary(leaf.dtype, size(leaf.shape), slot).reshape(leaf.shape)
    return inputs, drawn
