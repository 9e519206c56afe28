"""Replaces an expression, or a few statements, in the text of a module.

The definition around it and the code itself name the place. Code is compared as syntax trees, so
edits elsewhere and changes of layout keep a fault in place.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import accumulate
from textwrap import indent

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
Code = Sequence[ast.expr] | Sequence[ast.stmt]


class PlaceError(ValueError):
    """The code to replace is not in its module exactly once: says how often it is."""


class Text:
    """The text of a module, with the byte positions of the nodes of its syntax tree."""

    def __init__(self, text: str) -> None:
        self.bytes, self.tree = text.encode(), ast.parse(text)
        lengths = map(len, self.bytes.splitlines(keepends=True))
        self._starts = list(accumulate(lengths, initial=0))

    def span(self, first: ast.expr | ast.stmt, last: ast.expr | ast.stmt) -> slice:
        """The bytes from one node to another; decorators belong to their definition."""
        above: ast.expr | ast.stmt = next(iter(getattr(first, "decorator_list", ())), first)
        start = self._starts[above.lineno - 1] + first.col_offset
        end_line, end_column = last.end_lineno, last.end_col_offset
        assert end_line is not None
        assert end_column is not None
        return slice(start, self._starts[end_line - 1] + end_column)

    def with_fault(self, place: slice, fault: str) -> str:
        return (self.bytes[: place.start] + fault.encode() + self.bytes[place.stop :]).decode()


def with_fault(text: str, inside: str, before: str, after: str) -> str:
    """Replace `before` with `after` in the text of a module; it stands once `inside` a definition.

    `inside` is a dotted name of classes and functions that ends in one of them or in a table; empty
    means the whole module. Code that is not Python, such as C in a string, is compared as text.
    """
    module = Text(text)
    scope = _definition(module.tree, inside)
    places = [module.span(code[0], code[-1]) for code in _equal(scope, _code(before))]
    if places:
        column = places[0].start - module.bytes.rfind(b"\n", 0, places[0].start) - 1
        if all(isinstance(node, ast.expr) for node in (*_code(before), *_code(after))):
            after = f"({after})"
        else:
            after = indent(after, " " * column)[column:]
    else:
        places = _equal_text(module, scope, before.encode())
    if len(places) != 1:
        raise PlaceError(f"expected once in {inside or 'the module'}, found {len(places)} times")
    return module.with_fault(places[0], after)


def _definition(tree: ast.Module, name: str) -> ast.Module | Definition:
    scope: ast.Module | Definition = tree
    for part in filter(None, name.split(".")):
        body = getattr(scope, "body", ())
        named = [s for s in body if isinstance(s, Definition) and _name(s) == part]
        if len(named) != 1:
            raise PlaceError(f"expected a definition {name}, found {part} {len(named)} times")
        (scope,) = named
    return scope


def _name(definition: Definition) -> str:
    if isinstance(definition, ast.FunctionDef | ast.ClassDef):
        return definition.name
    target = definition.targets[0] if isinstance(definition, ast.Assign) else definition.target
    return target.id if isinstance(target, ast.Name) else ""


def _code(text: str) -> Code:
    """Parse an expression, or statements; empty for text that is not Python."""
    try:
        return [ast.parse(f"({text})", mode="eval").body]
    except SyntaxError:
        pass
    try:
        return ast.parse(text).body
    except SyntaxError:
        return []


def _equal(scope: ast.AST, code: Code) -> Iterator[Code]:
    """The places in a scope with the same syntax tree."""
    wanted = [ast.dump(node) for node in code]
    for parent in ast.walk(scope):
        for _, held in ast.iter_fields(parent):
            nodes = held if isinstance(held, list) else [held]
            for k in range(len(nodes) - len(wanted) + 1 if wanted else 0):
                part = nodes[k : k + len(wanted)]
                if all(isinstance(n, ast.AST) for n in part) and [*map(ast.dump, part)] == wanted:
                    yield part


def _equal_text(module: Text, scope: ast.Module | Definition, wanted: bytes) -> list[slice]:
    within = (
        slice(0, len(module.bytes)) if isinstance(scope, ast.Module) else module.span(scope, scope)
    )
    places, start = [], module.bytes.find(wanted, within.start, within.stop)
    while start >= 0:
        places.append(slice(start, start + len(wanted)))
        start = module.bytes.find(wanted, start + 1, within.stop)
    return places
