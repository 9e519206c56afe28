"""Writes trees, which `tree` reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields

from uop.spec.dtype import dtypes
from uop.spec.editions.edition import Form, Writing
from uop.spec.editions.tree import ALIASES, NUMBERED, TreeEdition
from uop.spec.properties.symbolic import spelled
from uop.spec.text.codec import encode_arg
from uop.spec.text.literal import Literal, Word, print_literal
from uop.spec.text.printer import in_place, print_tag
from uop.spec.uop import UOp
from uop.spec.walk import toposort

DEEPEST = 16
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
    writing = Writing(edition)
    for u in root.toposort():
        writing.enter(u)
    return f"edition {edition.name}\n{_Trees(edition, writing[root]).text()}"


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
            if form is not self._root and (is_shared or depth[form] >= DEEPEST):
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
        is_word = isinstance(literal, Word)
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
