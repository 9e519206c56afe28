"""Puts a fault into the text of a module: an expression, or a few statements, become others.

A place is named by the definition around it and by the code itself. Code is compared as syntax
trees: edits elsewhere, or another layout, leave a fault where it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import accumulate
from textwrap import indent

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
Code = Sequence[ast.expr] | Sequence[ast.stmt]


class PlaceError(ValueError):
    """A place that does not stand in a module once: says how often it does."""


class Text:
    """The text of a module, and where the nodes of its syntax tree stand in its bytes."""

    def __init__(self, text: str) -> None:
        self.bytes, self.tree = text.encode(), ast.parse(text)
        lengths = map(len, self.bytes.splitlines(keepends=True))
        self._starts = list(accumulate(lengths, initial=0))

    def span(self, first: ast.expr | ast.stmt, last: ast.expr | ast.stmt) -> slice:
        """The bytes from a node to another; a decorator is a part of what it decorates."""
        above: ast.expr | ast.stmt = next(iter(getattr(first, "decorator_list", ())), first)
        start = self._starts[above.lineno - 1] + first.col_offset
        end_line, end_column = last.end_lineno, last.end_col_offset
        assert end_line is not None
        assert end_column is not None
        return slice(start, self._starts[end_line - 1] + end_column)

    def with_fault(self, place: slice, fault: str) -> str:
        return (self.bytes[: place.start] + fault.encode() + self.bytes[place.stop :]).decode()


def with_fault(text: str, inside: str, before: str, after: str) -> str:
    """The text of a module with `after` for `before`, which stands once `inside` a definition.

    `inside` is a dotted name of classes and functions that ends in one of them or in a table; if it
    is empty, the whole module. What is no Python, such as the C in a string, is compared as text.
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
    found: ast.Module | Definition = tree
    for part in filter(None, name.split(".")):
        body = getattr(found, "body", ())
        named = [s for s in body if isinstance(s, Definition) and _name(s) == part]
        if len(named) != 1:
            raise PlaceError(f"expected a definition {name}, found {part} {len(named)} times")
        (found,) = named
    return found


def _name(definition: Definition) -> str:
    if isinstance(definition, ast.FunctionDef | ast.ClassDef):
        return definition.name
    target = definition.targets[0] if isinstance(definition, ast.Assign) else definition.target
    return target.id if isinstance(target, ast.Name) else ""


def _code(text: str) -> Code:
    """An expression, or statements; nothing where a text is no Python."""
    try:
        return [ast.parse(f"({text})", mode="eval").body]
    except SyntaxError:
        pass
    try:
        return ast.parse(text).body
    except SyntaxError:
        return []


def _equal(scope: ast.AST, code: Code) -> Iterator[Code]:
    """Where the same code stands."""
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
