"""`uop eval`: prints the value of an expression and the accepted values."""

from __future__ import annotations

import click

from uop.cli.programs.files import edition_option
from uop.spec.errors import LabelledError, UnsupportedError

MOST = 64
"""The most elements whose accepted sets are printed."""


@click.command("eval", context_settings={"ignore_unknown_options": True})
@edition_option
@click.option(
    "--profile",
    metavar="PROFILE",
    default="strict",
    help="Accept what this profile allows, such as 'ftz=float32'.",
)
@click.argument("expression", nargs=-1, required=True, type=click.UNPROCESSED)
def eval(edition: str, profile: str, expression: tuple[str, ...]) -> None:
    """Evaluate one expression and print what a backend may return.

    A number takes the dtype of the other operand; u8(200), f16(0.1) and bool(true) have their own.
    A dtype around a value is a CAST. Operators are those of Python, also @; [1, 2, 3] is a STACK,
    and every op is a function. Fields of its arg stand behind the operands; a bare word is the
    first field.

    \b
    uop eval 'u8(200) + u8(100)'
    uop eval 'max(nan, 1.0)'
    uop eval '[[1, 2], [3, 4]] @ [5, 6]'
    uop eval 'bitcast(1.0, u32)'
    uop eval 'reduce(max, [1, nan])'
    uop eval 'pad([1, 2], [1], [4], zero)'
    uop eval 'permute([[1, 2, 3], [4, 5, 6]], order=[1, 0])'
    uop eval --profile contract=ADD '0.1 * 10 + -1'
    uop eval --edition 2026-05 'pad([1, 2], [1], [4])'
    """
    from uop.interpreter.accept import accept
    from uop.interpreter.evaluate import evaluate_full
    from uop.interpreter.show import accepted_words, show_value
    from uop.interpreter.values import Value
    from uop.spec.dtype import Kind
    from uop.spec.text.expression import read_expression
    from uop.spec.text.profile_text import parse_profile
    from uop.spec.text.uop_file import scope_of

    text = " ".join(expression)
    root = read_expression(text, scope_of(edition)(""))
    if root.dtype.kind is Kind.VOID:
        raise UnsupportedError(f"{root.op.name} has no value; `uop run` takes whole programs")
    try:
        value = evaluate_full(root)
        (accepted,) = accept(root, profile=parse_profile(profile))
    except LabelledError as error:
        error.where = text
        raise
    assert isinstance(value, Value)
    shape = "" if root.shape == () else f"[{','.join(map(str, root.shape))}]"
    click.echo(show_value("", value) + f" : {root.dtype.name}{shape}")
    count = value.data.size
    words = [accepted_words(accepted, i) for i in range(min(count, MOST))]
    more = ["..."] if count > MOST else []
    click.echo(f"accepted: {', '.join([*words, *more])}")
