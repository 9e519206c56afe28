"""Reads and writes trees: the text of an edition in which a node stands above its operands.

    STORE
    ├── INDEX : Int32
    │   ├── PARAM(0, size=4) : Int32
    │   └── RANGE(end=4, axis_id=R0, type=Global) : Index
    ├── CONST(7) : Int32 — a comment
    └── RANGE(R0, Global)

Fields of the arg stand in parentheses, the first ones by position; so does an operand that is an
index constant or a shape. A RANGE, PARAM or DEFINE that says no more than its number is the one
that says all. A tree that begins with `%3 = ` is `%3` in later ones, and the last tree is the root.
The type after the colon is checked as far as it goes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields

from uop.spec.args import Arg, ConstArg, PlaceArg
from uop.spec.dtype import dtypes
from uop.spec.editions.edition import Edition, EditionScope, Form, Word, Writing
from uop.spec.errors import MalformedError
from uop.spec.graph import toposort
from uop.spec.ops.names import Op
from uop.spec.properties.symbolic import spelled
from uop.spec.text.codec import decode_fields, encode_arg
from uop.spec.text.literal import Line, Literal, Quoted, print_literal
from uop.spec.text.literal import Word as Bare
from uop.spec.text.printer import in_place, print_tag
from uop.spec.text.program import read_tag
from uop.spec.uop import UOp, dims, index_const

BRANCH = re.compile(r"[\s│]*(?P<corner>[├└])─*\s*(?P<text>.*)", re.DOTALL)
DRAWN_OTHERWISE = re.compile(r"\s*[|│`+]")
COMMENT = re.compile(r"\s+—.*", re.DOTALL)
TYPE = re.compile(
    r"\s*:\s*(?:<(?P<lanes>\w+) x (?P<lane>\w+)>|(?P<name>\w+)(?P<shape>\[[\w, ]*\])?)\s*"
)
ONE_LINE = re.compile(r"\s*%\d+\s*=\s*\w+(?:\s+[^\s:—(]|\s*\{)")
"""A node with its operands and its arg in one line."""
AXIS = re.compile(r"([RU])(\d+)")

BY_OPERANDS = ("Unary", "Binary", "Ternary")
"""The text that trees may write around the name of an elementwise op."""

VALUES = {"value", "values"}
"""The fields of constants, from which the usual dtype follows."""

DEEPEST = 8
"""The most brackets inside each other; no field has more than two."""

ALIASES = {"type": "axis_type", "kind": "name", "bytes": "data"}
"""Names that trees give to fields."""
GROUPS = {"opts": "", "info": "", "metadata": "", "upcast_axes": "upcast_"}
"""Names that trees give to groups of fields in braces, each with the start of the names of these
fields.
"""
NUMBERED = {
    "RANGE": ("axis_id", "end"),
    "PARAM": ("slot", "size"),
    "DEFINE_LOCAL": ("id", "size"),
    "DEFINE_REG": ("id", "size"),
    "DEFINE_VAR": ("name", "max"),
}
"""By word the field that numbers its nodes, and a field that only a full node has."""


@dataclass(frozen=True, slots=True)
class TreeEdition(Edition):
    """An edition whose programs are trees, or have one node per line."""

    def scope(self, path: str = "") -> TreeScope:
        return TreeScope(self, path)

    def word(self, name: str) -> Word:
        """The word of a name, which may be that of the structure: GetTuple for GET_TUPLE. In the
        sketch of an order in the document KERNEL is a CALL.
        """
        if name == "KERNEL":
            name = "CALL"
        elif name not in self.words:
            plain = name.replace("_", "").upper()
            name = next((own for own in self.words if own.replace("_", "") == plain), name)
        return Edition.word(self, name)


@dataclass(eq=False, slots=True)
class Branch:
    """A node of a tree as it is written; without a name it is the node of the label."""

    line: Line
    name: str = ""
    label: int | None = None
    brackets: tuple[Literal, ...] | None = None
    fields: dict[str, Literal] = field(default_factory=dict)
    tag: str | None = None
    type: re.Match[str] | None = None
    children: list[Branch] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, Literal]:
        """The word with the number of a node that may be referred to."""
        return self.name, self.fields.get(NUMBERED[self.name][0])

    @property
    def refers(self) -> bool:
        """Whether it gives only the number of a node."""
        if self.name not in NUMBERED or self.children or self.brackets is not None:
            return False
        number, more = NUMBERED[self.name]
        return number in self.fields and more not in self.fields


class TreeScope(EditionScope):
    """Reads trees, and nodes that stand one per line."""

    __slots__ = ("_full", "_lines")

    def __init__(self, edition: Edition, path: str) -> None:
        super().__init__(edition, path)
        self._lines: list[tuple[str, int]] = []
        self._full: dict[tuple[str, Literal], dict[UOp, Branch]] = {}

    def read_text(self, text: str, number: int) -> None:
        """Read one line; a tree is read when the next line is none of its branches."""
        if not text.strip() or text.lstrip().startswith(";"):
            return
        if BRANCH.fullmatch(text) is None:
            if DRAWN_OTHERWISE.match(text):
                raise MalformedError("expected ├── or └── before a branch", number, 1, self._path)
            self._end()
        elif not self._lines:
            raise MalformedError("expected a node above this branch", number, 1, self._path)
        self._lines.append((text, number))

    def root(self, line: int = 1) -> UOp:
        self._end()
        return super().root(line)

    def _end(self) -> None:
        lines, self._lines = self._lines, []
        if len(lines) == 1 and ONE_LINE.match(lines[0][0]):
            self.read(Line(*lines[0], self._path))
        elif lines:
            self._read_tree(_drawn([self._branch(*line) for line in lines]))

    def _read_tree(self, tree: Branch) -> None:
        number = max(self.nodes, default=-1) + 1 if tree.label is None else tree.label
        if not tree.name or number in self.nodes:
            found = f"%{number} is defined twice" if tree.name else "expected the name of an op"
            raise tree.line.fail(found)
        self._place[number] = (tree.line.number, 1)
        order = toposort([tree], lambda b: b.children)
        in_full: dict[tuple[str, Literal], list[Branch]] = {}
        for b in order:
            if b.name in NUMBERED and not b.refers:
                in_full.setdefault(b.key, []).append(b)
        built: dict[Branch, UOp] = {}

        def sources(b: Branch) -> list[Branch]:
            return in_full.get(b.key, []) if b.refers else b.children

        # A branch may refer to one further down.
        first = [b for branches in in_full.values() for b in branches]
        for b in dict.fromkeys((*toposort(first, sources), *order)):
            built[b] = self._built(b, [built[child] for child in b.children])
            if b.type is not None:
                self._check_type(b, b.type, built[b])
        self.nodes[number] = built[tree]

    def _branch(self, text: str, number: int) -> tuple[int, bool, Branch]:
        """The column of a branch, whether it is the last one there, and its node."""
        corner = BRANCH.fullmatch(text)
        column = corner.start("corner") if corner else -1
        is_last = corner is not None and corner["corner"] == "└"
        if corner:
            text = " " * corner.start("text") + corner["text"]
        text = COMMENT.sub("", text)
        type = next((m for m in TYPE.finditer(text) if m.end() == len(text)), None)
        line = Line(text[: type.start()] if type else text, number, self._path)
        b = Branch(line, type=type)
        if line.peek().kind == "node":
            b.label = int(line.next().text[1:])
        if b.label is None or line.take("="):
            word = self._word(line)
            b.name = word.name
            b.brackets = tuple(v for _, v in _items(line, "]")) if line.take("[") else None
            b.fields = _fields(b.name, word, line) if line.take("(") else {}
        b.tag = read_tag(line)
        line.need_end()
        return column, is_last, b

    def _built(self, b: Branch, src: list[UOp]) -> UOp:
        if not b.name:
            return self.numbered(b.label or 0, b.line)
        if b.refers:
            return self._referred(b)
        if b.name == Op.CONST.name and isinstance(b.fields.get("value"), tuple):
            return dims(_integers(b, b.fields["value"]))
        word, said = self._edition.word(b.name), dict(b.fields)
        self._enter_brackets(b, word, said, src)
        self._enter_operands(b, word, said, src)
        u = self._build(b.name, tuple(src), self._arg(b, word, said), b.tag, b.line, 1)
        if b.name in NUMBERED:
            self._full.setdefault(b.key, {})[u] = b
        return u

    def _word(self, line: Line) -> Word:
        """The word before the fields; the number of its operands may follow in brackets."""
        name = line.need_kind("word", "the name of an op")
        if name.text in BY_OPERANDS and line.take("("):
            name = line.need_kind("word", "the name of an op")
            line.need(")")
        try:
            return self._edition.word(name.text)
        except MalformedError as error:
            raise line.fail(error.message, name) from None

    def _referred(self, b: Branch) -> UOp:
        """The node in full that has the number of a branch, and all else that it says."""
        number, more = NUMBERED[b.name]
        word = self._edition.word(b.name)
        operands = {name.rstrip("?*") for name in word.src}
        found: list[UOp] = []
        for u, full in self._full.get(b.key, {}).items():
            said = {name: v for name, v in full.fields.items() if name not in operands}
            if self._arg(full, word, said) == self._arg(full, word, said | b.fields):
                found.append(u)
        if len(found) != 1:
            here = f"found {len(found)}" if b.key in self._full else "found none"
            expected = f"expected one {b.name} with this {number} that says its {more}"
            raise b.line.fail(f"{expected}, {here}")
        return found[0]

    def _arg(self, b: Branch, word: Word, said: Mapping[str, Literal]) -> Arg | None:
        named = _names(word.arg)
        if "dtype" in named and "dtype" not in said and b.type is not None:
            said = {**said, "dtype": Bare(b.type["lane"] or b.type["name"])}
        elif "dtype" in named and "dtype" not in said and not VALUES.isdisjoint(said):
            said = {**said, "dtype": Bare(_usual(said.get("value", said.get("values"))))}
        try:
            return decode_fields(b.name, word.arg, self.spelled(said)) if said else None
        except MalformedError as error:
            raise b.line.fail(error.message) from None

    def _check_type(self, b: Branch, type: re.Match[str], u: UOp) -> None:
        """Compare what the type says with what the node is; the dtype Shape stands for any."""
        name = type["lane"] or type["name"]
        sizes, own = type["lanes"] or type["shape"], [str(spelled(size)) for size in u.shape]
        is_dtype = name == "Shape" or self._edition.spelling.get(name, name) == u.dtype.name
        if not is_dtype or (sizes is not None and re.findall(r"\w+", sizes) != own):
            expected = f"{u.dtype.name}[{','.join(own)}]"
            raise b.line.fail(f"expected the type {expected}, found {type[0].strip(' :')}")

    def _enter_brackets(
        self, b: Branch, word: Word, said: dict[str, Literal], src: list[UOp]
    ) -> None:
        """Read the brackets after the name: a shape, or the RANGEs of an INDEX."""
        if b.brackets is None:
            return
        axes = [AXIS.fullmatch(v) if isinstance(v, Bare) else None for v in b.brackets]
        if axes and all(axes):
            for axis in filter(None, axes):
                key = "RANGE", int(axis[2])
                if len(self._full.get(key, ())) != 1:
                    raise b.line.fail(f"expected one RANGE with the axis_id {axis[0]} and its end")
                src.extend(self._full[key])
        elif "shape" in _names(word.arg):
            said["shape"] = b.brackets
        else:
            src.append(dims(_integers(b, b.brackets)))

    def _enter_operands(
        self, b: Branch, word: Word, said: dict[str, Literal], src: list[UOp]
    ) -> None:
        """Operands that stand as fields, in their places among the branches."""
        for position, name in enumerate(name.rstrip("?*") for name in word.src):
            if name not in said:
                continue
            value = said.pop(name)
            if isinstance(value, Quoted):
                u = UOp(Op.DEVICE, arg=PlaceArg(str(value)))
            elif isinstance(value, int):
                u = index_const(value)
            else:
                u = dims(_integers(b, value))
            if position == len(src):
                src.append(u)
            elif position > len(src) or src[position] is not u:
                raise b.line.fail(f"expected the operand {name} to be what its branch is")


def _drawn(items: list[tuple[int, bool, Branch]]) -> Branch:
    """The tree of these branches. One that follows the last of a column is its child."""
    above = items[:1]
    for column, is_last, branch in items[1:]:
        while above[-1][0] > column or (above[-1][0] == column and not above[-1][1]):
            above.pop()
        above[-1][2].children.append(branch)
        above.append((column, is_last, branch))
    return items[0][2]


def _fields(name: str, word: Word, line: Line) -> dict[str, Literal]:
    """The fields in parentheses, by position or by name."""
    named, found = _names(word.arg), dict[str, Literal]()
    for position, (own, value) in enumerate(_items(line, ")")):
        if not own and position >= len(named):
            raise line.fail(f"{name} has {len(named)} fields")
        own = ALIASES.get(own, own) or named[position]
        if own in found:
            raise line.fail(f"the field {own!r} stands twice")
        axis = AXIS.fullmatch(value) if own == "axis_id" and isinstance(value, Bare) else None
        found[own] = int(axis[2]) if axis else value
        if axis and axis[1] == "U":
            found["renumbered"] = False
    return found


def _names(kind: type[Arg] | None) -> list[str]:
    """The fields of an arg in order, as the text has them."""
    if kind is ConstArg:
        return ["value", "dtype"]
    return [] if kind is None else [f.name for f in fields(kind)]


def _items(line: Line, closing: str, depth: int = 0) -> Iterator[tuple[str, Literal]]:
    """Values up to the closing bracket, each with its name or an empty one."""
    if depth > DEEPEST:
        raise line.fail(f"brackets nested more than {DEEPEST} deep")
    while not line.take(closing):
        name, value = "", None
        if line.peek().kind == "word":
            name = line.next().text
            if not line.take("="):
                name, value = "", {"true": True, "false": False}.get(name, Bare(name))
        if line.take("{"):
            if name not in GROUPS:
                raise line.fail(f"expected one of {', '.join(GROUPS)} before the brace")
            yield from ((GROUPS[name] + inner, v) for inner, v in _items(line, "}", depth + 1))
        else:
            yield name, _value(line, depth + 1) if value is None else value
        if not line.take(","):
            if line.peek().text == "(":
                raise line.fail(f"expected operands in branches below, found {name or value}(")
            line.need(closing)
            return


def _value(line: Line, depth: int) -> Literal:
    for opening, closing in ("[]", "()"):
        if line.take(opening):
            found = list(_items(line, closing, depth))
            named = [name for name, _ in found if name]
            if named:
                raise line.fail(
                    f"expected no name between these brackets, found {named[0]}; "
                    "fields of fields stand in braces"
                )
            return tuple(value for _, value in found)
    return line.literal()


def _integers(b: Branch, value: Literal) -> Iterable[int]:
    found = value if isinstance(value, tuple) else (value,)
    integers = [v for v in found if isinstance(v, int)]
    if len(integers) != len(found):
        raise b.line.fail("expected integers between the brackets")
    return integers


def _usual(value: Literal) -> str:
    """The dtype of a constant, or of a vector of them, that says none."""
    if isinstance(value, tuple):
        usual = {_usual(v) for v in value}
        return usual.pop() if len(usual) == 1 else dtypes.float32.name
    if isinstance(value, bool):
        return dtypes.bool.name
    return dtypes.index.name if isinstance(value, int) else dtypes.float32.name


MOST_LEVELS = 16
"""The most levels of one tree; deeper nodes get a separate tree."""
BY_POSITION = (
    "CONST", "PARAM", "DEVICE", "UNIQUE", "LUNIQUE", "DEFINE_LOCAL", "DEFINE_REG",
    "REDUCE", "REDUCE_AXIS", "ALLREDUCE", "GEP",
)  # fmt: skip
"""The words whose first field stands without its name."""
INSIDE = ("end", "offset", "new_shape", "begin_pads", "end_pads", "begins", "ends")
"""The operands that are written as fields if they are index constants or shapes."""
MEMORY = ("PARAM", "BUFFER", "DEFINE_LOCAL", "DEFINE_REG")
"""The words whose type is that of an element."""


def print_tree(edition: TreeEdition, root: UOp) -> str:
    """Print a program as trees; UnsupportedError for an op that the edition cannot express.

    A node with several uses, or deep below the root, has a separate tree above.
    """
    return f"edition {edition.name}\n{_Trees(edition, Writing(edition).core(root)).text()}"


class _Trees:
    """The trees of a program."""

    def __init__(self, edition: TreeEdition, root: Form) -> None:
        self._edition, self._root = edition, root
        self._spelled = {core: own for own, core in edition.spelling.items()}
        self._number: dict[Form, int] = {}
        self._seen: set[Form] = set()
        self._count: Counter[tuple[str, str]] = Counter()

    def text(self) -> str:
        order = toposort([self._root], self._branches)
        uses = Counter(s for form in order for s in self._branches(form))
        self._count.update(self._numbered(form) for form in order if form.name in NUMBERED)
        depth: dict[Form, int] = {}
        trees: list[str] = []
        for form in order:
            below = (0 if s in self._number else depth[s] + 1 for s in self._branches(form))
            depth[form] = max(below, default=0)
            is_shared = uses[form] > 1 and form.src and form.name not in NUMBERED
            if form is not self._root and (is_shared or depth[form] >= MOST_LEVELS):
                number = len(self._number)
                trees.append(f"%{number} = {self._tree(form)}")
                self._number[form] = number
        return "".join([*trees, self._tree(self._root)])

    def _tree(self, root: Form) -> str:
        """A node above its branches."""
        text = ""
        left = [(root, "", "")]
        while left:
            form, corner, indent = left.pop()
            is_short = form in self._number or self._may_refer(form)
            text += f"{corner}{self._node(form)}\n"
            self._seen.add(form)
            branches = [] if is_short else self._branches(form)
            items = [(s, f"{indent}├── ", f"{indent}│   ") for s in branches[:-1]]
            items += [(s, f"{indent}└── ", f"{indent}    ") for s in branches[-1:]]
            left.extend(reversed(items))
        return text

    def _branches(self, form: Form) -> list[Form]:
        """The operands that are branches: not those that stand as fields or in brackets."""
        if _constants(form) is not None:
            return []
        if form.name == "PARAM" and self._shape(form):
            return list(form.src[1:])
        return list(form.src[: len(form.src) - len(self._inside(form))])

    def _inside(self, form: Form) -> dict[str, str]:
        """The last operands, where they stand as fields."""
        names = [name.rstrip("?*") for name in self._edition.word(form.name).src]
        found: dict[str, str] = {}
        for name, s in list(zip(names, form.src, strict=False))[::-1]:
            value = in_place(s.core) if s.name in ("CONST", "STACK") else None
            if name not in INSIDE or value is None or len(form.src) > len(names):
                break
            found[name] = value.replace(",", ", ")
        return dict(reversed(found.items())) if len(form.src) <= len(names) else {}

    def _shape(self, form: Form) -> str:
        """The shape in brackets after the word; empty for none."""
        if form.name == "PARAM" and form.src:
            return (in_place(form.src[0].core) or "").replace(",", ", ")
        shape = getattr(form.arg, "shape", None)
        return "" if shape is None else f"[{', '.join(map(str, shape))}]"

    def _numbered(self, form: Form) -> tuple[str, str]:
        """The word and the number of a node that may be referred to."""
        return form.name, self._fields(form)[NUMBERED[form.name][0]]

    def _may_refer(self, form: Form) -> bool:
        """Whether a node stands in full above, and is the only one of its number."""
        is_above = form in self._seen and form.name in NUMBERED
        return is_above and self._count[self._numbered(form)] == 1

    def _node(self, form: Form) -> str:
        """One line: the number of a tree above, or the word with its fields and its type."""
        if form in self._number:
            return f"%{self._number[form]}"
        constants = _constants(form)
        if constants is not None:
            return f"CONST({constants}) : Shape"
        said = self._fields(form)
        if self._may_refer(form):
            number = NUMBERED[form.name][0]
            said = {name: v for name, v in said.items() if name in (number, "axis_type")}
            return _written(form.name, said, by_position=2)
        type = self._type(form.core, form.name in MEMORY)
        if type and getattr(form.arg, "dtype", None) is form.core.dtype:
            said.pop("dtype")
        shape = self._shape(form)
        if shape:
            said.pop("shape", None)
        word, position = form.name + shape, int(form.name in BY_POSITION)
        return _written(word, self._inside(form) | said, position) + print_tag(form.tag) + type

    def _fields(self, form: Form) -> dict[str, str]:
        """The fields that say more than the default."""
        usual = {} if form.arg is None else {f.name: f.default for f in fields(form.arg)}
        said = {
            name: self._value(literal)
            for name, literal in (encode_arg(form.arg) or {}).items()
            if name not in usual or name == "axis_type" or getattr(form.arg, name) != usual[name]
        }
        if form.name == "CONST" and form.core.dtype.is_float:
            said["value"] = _decimal(said["value"])
        if "axis_id" in said:
            kind = "U" if said.pop("renumbered", None) else "R"
            said["axis_id"] = kind + said["axis_id"]
        return said

    def _value(self, literal: Literal, brackets: str = "[]") -> str:
        if isinstance(literal, tuple):
            inside = ", ".join(self._value(item, "()") for item in literal)
            return f"{brackets[0]}{inside}{brackets[1]}"
        is_word = isinstance(literal, Bare)
        return self._spelled.get(str(literal), str(literal)) if is_word else print_literal(literal)

    def _type(self, u: UOp, is_memory: bool) -> str:
        if u.dtype is dtypes.void:
            return ""
        name, sizes = self._spelled[u.dtype.name], [str(spelled(size)) for size in u.shape]
        if is_memory or not sizes:
            return f" : {name}"
        if len(sizes) == 1:
            return f" : <{sizes[0]} x {name}>"
        return f" : {name}[{', '.join(sizes)}]"


def _written(word: str, said: dict[str, str], by_position: int) -> str:
    """The word with its fields, the first of them without their names."""
    own = {core: name for name, core in ALIASES.items()}
    items = [
        value if position < by_position else f"{own.get(name, name)}={value}"
        for position, (name, value) in enumerate(said.items())
    ]
    return f"{word}({', '.join(items)})" if items else word


def _constants(form: Form) -> str | None:
    """The integers of a shape or another STACK of index constants; None for another node."""
    if form.name != "STACK" or form.tag is not None:
        return None
    values = in_place(form.core)
    return None if values is None else values.replace(",", ", ")


def _decimal(text: str) -> str:
    """A finite float in decimals that read back to its bits."""
    return text if "0x" not in text or "nan" in text else repr(float.fromhex(text))
