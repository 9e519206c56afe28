"""`uop eval`: the value of one expression, and what else it may be."""

from __future__ import annotations

import click

MOST = 64
"""Elements whose accepted sets are printed."""


@click.command("eval", context_settings={"ignore_unknown_options": True})
@click.argument("expression", nargs=-1, required=True, type=click.UNPROCESSED)
def command(expression: tuple[str, ...]) -> None:
    """Evaluate one expression and print what a backend may return.

    A number takes the dtype of the other operand; written u8(200), f16(0.1) or bool(true) it has
    its own. A dtype around a value with one is a CAST. Operators are those of Python, ops are
    functions: max(a, b), where(p, a, b), exp2(x), bitcast(x, u32). [1, 2, 3] is a STACK.

    \b
    uop eval 'u8(200) + u8(100)'
    uop eval 'i8(-128) // -1'
    uop eval 'max(nan, 1.0)'
    """
    from uop.interpreter.accept import accept
    from uop.interpreter.evaluate import evaluate_full
    from uop.interpreter.show import accepted_words, show_value
    from uop.interpreter.values import Value
    from uop.spec.errors import LabelledError
    from uop.spec.expression import read_expression

    text = " ".join(expression)
    root = read_expression(text)
    try:
        value = evaluate_full(root)
        (accepted,) = accept(root)
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
