"""Reads CALL and FUNCTION of the bestiary, with the variables that their bodies name (D-088).

A variable has a name there. One name is one variable, inside a body and around it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from uop.spec.args import ParamArg, arg_of
from uop.spec.editions import bestiary_args as b
from uop.spec.graph import slot_of
from uop.spec.ops.names import Op
from uop.spec.uop import UOp
from uop.spec.walk import CALLS, free_params

if TYPE_CHECKING:
    from uop.spec.editions.edition import Reading

VARIABLE_SLOTS = 1 << 33
"""The slot of the first variable: variables have names there, not slots."""


def read_function(reading: Reading, src: tuple[UOp, ...], arg: b.CallArg) -> UOp:
    """A FUNCTION if the body is a TUPLE, else the CALL of a kernel."""
    op = Op.FUNCTION if src[0].op is Op.TUPLE else Op.CALL
    return UOp(op, *_with_variables(src[0], src[1:]), tag=_note(arg))


def _note(arg: b.CallArg) -> str | None:
    """The tag that keeps the annotations of a call: its name alone if there are no others."""
    if arg == b.CallArg(arg.name) and arg.name is not None and arg.name[:1] != "{":
        return arg.name
    return b.noted(arg)


def read_call(reading: Reading, src: tuple[UOp, ...], arg: b.CallArg) -> UOp:
    """A call of a FUNCTION or of a body, with its own arguments."""
    body, *arguments = src
    if body.op in CALLS:
        # The arguments after those that the text lists are the variables of the body.
        arguments += body.src[1 + len(arguments) :]
        body = body.src[0]
    return read_function(reading, (body, *arguments), arg)


def _with_variables(body: UOp, said: tuple[UOp, ...]) -> tuple[UOp, ...]:
    """A body and its arguments, with the number of each variable that the body names.

    The number is a BIND of the variable among the arguments or in the body, else the variable.
    """
    arguments, numbered = list(said), dict[UOp, UOp]()
    bound = {u.src[0]: u.src[1] for u in body.toposort() if u.op is Op.BIND}
    for variable in sorted(free_params(body), key=slot_of):
        if slot_of(variable) < VARIABLE_SLOTS:
            continue
        given = [k for k, a in enumerate(said) if variable in (a, *a.src[: a.op is Op.BIND])]
        if not given:
            value = bound.get(variable, variable)
            arguments.append(value if value.op is Op.CONST else variable)
        slot = given[0] if given else len(arguments) - 1
        kept = replace(arg_of(variable, ParamArg), slot=slot)
        numbered[variable] = UOp(Op.PARAM, *variable.src, arg=kept, tag=variable.tag)
    return body.substitute(numbered), *arguments
