"""The class Edition: words that are read into core nodes, and rules that write core nodes.

The text of an edition has the grammar of the core text, after a first line `edition NAME`. The
reading function alone defines the meaning of a word. The writer runs it too, so the derived part of
a line is that of the node that will be read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

from uop.spec.args import Arg, PlaceArg, arg_of
from uop.spec.conditions.labels import Condition
from uop.spec.errors import InvalidError, MalformedError, UnsupportedError, UopError
from uop.spec.graph import toposort
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, Operands
from uop.spec.text.literal import Line, Literal, Quoted, print_literal
from uop.spec.text.literal import Word as Bare
from uop.spec.text.printer import derived, in_place, print_node, print_tag
from uop.spec.text.program import Scope, Unbuilt
from uop.spec.uop import UOp

Read = Callable[["Reading", tuple[UOp, ...], Any], UOp]
Write = Callable[["Writing", UOp], "Form"]


@dataclass(frozen=True, slots=True)
class Word(Operands):
    """One op of an edition. `src` names its operands as in a declaration: `alt?`, `i*`.

    `read` checks `conditions`, besides the constraints of the core nodes; `by_name` enters them.
    """

    name: str
    src: tuple[str, ...]
    read: Read
    arg: type[Arg] | None = None
    doc: str = ""
    conditions: tuple[Condition, ...] = ()

    @property
    def arity(self) -> Condition:
        return Condition(f"{self.name}.arity", f"src is ({', '.join(self.src)})")

    @property
    def typed(self) -> Condition:
        kind = "absent" if self.arg is None else self.arg.__name__
        return Condition(f"{self.name}.arg", f"arg is {kind}")

    @property
    def needs_arg(self) -> bool:
        """Whether a field of the arg is required."""
        return self.arg is not None and any(f.default is MISSING for f in fields(self.arg))


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A node in an edition; `core` is the core node that it reads into."""

    name: str
    src: tuple[Form, ...]
    arg: Arg | None
    tag: str | None
    core: UOp


@dataclass(frozen=True, slots=True)
class Edition:
    """An edition: its words, and the rules that write core ops it does not share.

    `spelling` maps its words for the values of fields to those of the core.
    """

    name: str
    doc: str
    words: Mapping[str, Word]
    writes: Mapping[Op, Write]
    spelling: Mapping[str, str] = field(default_factory=dict)

    def parse(self, text: str, path: str = "") -> UOp:
        """The core node of a text; the first line may name this edition."""
        scope, is_open = self.scope(path), True
        for number, line in enumerate(text.split("\n"), 1):
            if is_open and _header(line) is not None:
                if _header(line) != self.name:
                    message = f"expected edition {self.name}, found {_header(line)}"
                    raise MalformedError(message, number, 1, path)
                is_open = False
                continue
            scope.read_text(line, number)
            is_open = is_open and not scope.nodes
        return scope.root()

    def scope(self, path: str = "") -> Scope:
        """An empty program, whose nodes are read in the words of the edition."""
        return EditionScope(self, path)

    def print(self, root: UOp) -> str:
        """Print a program; UnsupportedError for an op that the edition has no word for."""
        lines = [f"edition {self.name}", *_lines(Writing(self).core(root))]
        return "\n".join(lines) + "\n"

    def word(self, name: str) -> Word:
        if name in self.words:
            return self.words[name]
        if name in Op.__members__:
            raise UnsupportedError(f"edition {self.name} has no {name}")
        raise MalformedError(f"unknown op {name!r}")

    def build(
        self,
        reading: Reading,
        name: str,
        src: tuple[UOp, ...],
        arg: Arg | None,
        tag: str | None = None,
    ) -> UOp:
        """Build the core node for a node of this edition."""
        word = self.word(name)
        if len(src) < word.least or (word.most is not None and len(src) > word.most):
            raise broken(word.arity, f"{len(src)} operands")
        for named in [] if arg is None else [getattr(arg, f.name) for f in fields(arg)]:
            if isinstance(named, Op):
                self.word(named.name)
        core = word.read(reading, src, _completed(word, arg))
        return core if tag is None else UOp(core.op, *core.src, arg=core.arg, tag=tag)


class Reading:
    """The state of a reader: numbers for slots and ids that the edition leaves implicit."""

    __slots__ = ("_edition", "_numbers")

    def __init__(self, edition: Edition) -> None:
        self._edition = edition
        self._numbers: dict[str, dict[Hashable, int] | None] = {}

    def broken(self, label: str, found: str) -> InvalidError:
        """The error for a word with a broken condition."""
        word = self._edition.words[label.partition(".")[0]]
        return broken(next(c for c in word.conditions if c.label == label), found)

    def number(self, label: str, key: Hashable, explicit: int | None) -> int:
        """The explicit number of a node, or else one by key, in order from 0.

        The condition of this label is that all nodes have an explicit one, or none.
        """
        known = self._numbers.setdefault(label, {} if explicit is None else None)
        if (known is None) != (explicit is not None):
            raise self.broken(label, "some do")
        if known is None:
            return explicit or 0
        return known.setdefault(key, len(known))


class Writing:
    """The forms of the nodes of a program, built sources first."""

    __slots__ = ("_forms", "_interned", "_reading", "edition")

    def __init__(self, edition: Edition) -> None:
        self.edition = edition
        self._forms: dict[UOp, Form | UnsupportedError] = {}
        self._interned: dict[Hashable, Form] = {}
        self._reading = Reading(edition)

    def __getitem__(self, u: UOp) -> Form:
        """The form of a source of the node that is being written."""
        form = self._forms[u]
        if isinstance(form, UnsupportedError):
            raise form
        return form

    def form(self, name: str, *src: Form, arg: Arg | None = None, tag: str | None = None) -> Form:
        """A node of the edition; equal nodes are one object."""
        key = (name, src, arg, tag)
        if key not in self._interned:
            operands = tuple(s.core for s in src)
            core = self.edition.build(self._reading, name, operands, arg, tag)
            self._interned[key] = Form(name, src, arg, tag, core)
        return self._interned[key]

    def same(self, u: UOp) -> Form:
        """A node that the edition shares with the core."""
        return written_as(u.op.name)(self, u)

    def core(self, u: UOp) -> Form:
        """The form of a core node, of a program or built by a rule."""
        for v in toposort([u], lambda v: [s for s in v.src if s not in self._forms]):
            if v not in self._forms:
                self.enter(v)
        return self[u]

    def cannot(self, u: UOp, reason: str) -> UnsupportedError:
        return UnsupportedError(f"edition {self.edition.name} cannot say {u.op.name}: {reason}")

    def enter(self, u: UOp) -> None:
        """Build the form of a node. An error is kept until a user needs the form."""
        try:
            form = self.edition.writes.get(u.op, Writing.same)(self, u)
            if u.tag is not None and form.core.tag != u.tag:
                form = self.form(form.name, *form.src, arg=form.arg, tag=u.tag)
            self._forms[u] = form
        except UnsupportedError as error:
            self._forms[u] = error
        except UopError as error:
            self._forms[u] = self.cannot(u, str(error).partition("\n")[0])


def core_words(*without: str) -> dict[str, Word]:
    """The words of the core ops, without extension ops and ops of later editions."""
    return {
        op.name: core_word(op)
        for op, d in DECLARATIONS.items()
        if d.section != "extension" and op.name not in without
    }


def core_word(op: Op) -> Word:
    """The word of a core op."""
    declaration = DECLARATIONS[op]
    return Word(op.name, declaration.src, read_as(op), declaration.arg, declaration.doc)


Make = Callable[..., Arg]
"""Makes an arg of the values of another one, which has as many fields."""


def read_as(op: Op, make: Make | None = None) -> Read:
    """The reader of a word that is one node of a core op; `make` makes its arg of the word's."""
    return lambda reading, src, arg: UOp(op, *src, arg=_made(make, arg))


def written_as(name: str, make: Make | None = None) -> Write:
    """The writer of a core op that is one word of an edition; `make` makes its arg of the op's."""
    return lambda writing, u: writing.form(
        name, *(writing[s] for s in u.src), arg=_made(make, u.arg)
    )


def _made(make: Make | None, arg: Arg | None) -> Arg | None:
    if make is None:
        return arg
    return make(*(getattr(arg, f.name) for f in (fields(arg) if arg else ())))


def broken(condition: Condition, found: str) -> InvalidError:
    """The error for a word with a broken condition."""
    return condition.error(condition.label.partition(".")[0], found)


def by_name(titles: Mapping[str, str], *words: Word) -> dict[str, Word]:
    """Words by name; the labels of conditions begin with the word that must meet them."""
    conditions: dict[str, tuple[Condition, ...]] = {}
    for label, title in titles.items():
        name = label.partition(".")[0]
        conditions[name] = (*conditions.get(name, ()), Condition(label, title))
    return {word.name: replace(word, conditions=conditions.get(word.name, ())) for word in words}


def edition_of(text: str, path: str = "") -> str:
    """The edition that the first line of a text names, if any."""
    for number, line in enumerate(text.split("\n"), 1):
        name = _header(line)
        if name is not None:
            return name
        if line.partition(";")[0].strip():
            raise MalformedError("expected edition NAME", number, 1, path)
    raise MalformedError("no program: expected edition NAME", 1, 1, path)


class EditionScope(Scope):
    """Reads a program of an edition."""

    __slots__ = ("_edition", "_reading")

    def __init__(self, edition: Edition, path: str) -> None:
        super().__init__(path)
        self._edition, self._reading = edition, Reading(edition)

    @property
    def names(self) -> Collection[str]:
        return self._edition.words

    def operands(self, name: str) -> Operands:
        return self._edition.word(name)

    def spelled(self, fields: Mapping[str, Literal]) -> Mapping[str, Literal]:
        return {name: self._respelled(literal) for name, literal in fields.items()}

    def _respelled(self, literal: Literal) -> Literal:
        if isinstance(literal, tuple):
            return tuple(self._respelled(item) for item in literal)
        if isinstance(literal, Bare) and literal in self._edition.spelling:
            return Bare(self._edition.spelling[literal])
        return literal

    def operand(self, line: Line) -> UOp:
        """An operand; the name of a device in quotes is a DEVICE."""
        if line.peek().kind != "string" or Op.DEVICE.name not in self.names:
            return super().operand(line)
        return UOp(Op.DEVICE, arg=PlaceArg(str(line.literal())))

    def read_unbuilt(self, line: Line) -> Unbuilt:
        raise line.fail("expected no `invalid` in an edition: its label is one of the core")

    def arg_type(self, name: str) -> type[Arg] | None:
        return self._edition.word(name).arg

    def build(self, name: str, src: tuple[UOp, ...], arg: Arg | None, tag: str | None) -> UOp:
        return self._edition.build(self._reading, name, src, arg, tag)


def _header(line: str) -> str | None:
    words = line.partition(";")[0].split()
    return words[1] if len(words) == 2 and words[0] == "edition" else None


def _completed(word: Word, arg: Arg | None) -> Arg | None:
    """The arg of a word, by default the one without fields if no field is required."""
    if word.arg is None or arg is not None:
        return arg
    if word.needs_arg:
        raise broken(word.typed, "None")
    return word.arg()


def _in_place(form: Form) -> str | None:
    """How a form is written as an operand: an index constant, a STACK of them, a device's name."""
    if form.name in ("CONST", "STACK"):
        return in_place(form.core)
    if form.name != Op.DEVICE.name or form.tag is not None:
        return None
    device = arg_of(form.core, PlaceArg).device
    return print_literal(Quoted(device)) if isinstance(device, str) else None


def _lines(root: Form) -> list[str]:
    """The lines of the forms that are not written in place."""
    literals: dict[Form, str | None] = {}
    number: dict[Form, int] = {}

    def operands(form: Form) -> list[Form]:
        for s in form.src:
            if s not in literals:
                literals[s] = _in_place(s)
        return [s for s in form.src if literals[s] is None]

    lines: list[str] = []
    for form in toposort([root], operands):
        number[form] = len(lines)
        src = [literals[s] or f"%{number[s]}" for s in form.src]
        written = print_node(form.name, src, form.arg)
        lines.append(f"%{len(lines)} = {written} {derived(form.core)}{print_tag(form.tag)}")
    return lines
