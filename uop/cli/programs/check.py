"""`uop compile --check`: judges each stage of the compiler on a program, and the device."""

from __future__ import annotations

import json as json_module
from typing import TYPE_CHECKING

import click

from uop.conformance.run import Exit

if TYPE_CHECKING:
    from uop.compiler.stages.stage import Setting
    from uop.spec.case import FileCase
    from uop.spec.uop import UOp


def check(case: FileCase, root: UOp, setting: Setting, *, as_json: bool) -> Exit:
    """Judge the stages and the device on the inputs of a case, and print what was found."""
    from uop.conformance.locate.stages import check_stages
    from uop.conformance.locate.text import lines_of, to_json
    from uop.conformance.suite.drawn import inputs_and_drawn, ordinary
    from uop.spec.errors import UnsupportedError

    inputs, drawn = inputs_and_drawn(case, root, ordinary)
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
