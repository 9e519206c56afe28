"""The names of all ops, in the order of the spec's tables, and sets of them for several modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar


class _Table(type):
    """Makes the class of ops the table of them: Op["ADD"], Op.__members__, iteration."""

    __members__: Mapping[str, Op]

    def __iter__(cls) -> Iterator[Op]:
        return iter(cls.__members__.values())

    def __len__(cls) -> int:
        return len(cls.__members__)

    def __getitem__(cls, name: str) -> Op:
        return cls.__members__[name]


class Op(metaclass=_Table):
    """An op name. The op is declared in the module of its section.

    `Op("ABS")` is a new one, for an op from outside this package; ValueError for a name that is
    taken. An op equals itself alone.
    """

    __members__: ClassVar[dict[str, Op]] = {}

    def __init__(self, name: str) -> None:
        if name in Op.__members__:
            raise ValueError(f"there is an op {name}")
        self.name = name
        Op.__members__[name] = self

    def __repr__(self) -> str:
        return f"Op.{self.name}"

    # source
    PARAM: ClassVar[Op]
    BUFFER: ClassVar[Op]
    CONST: ClassVar[Op]
    BINARY: ClassVar[Op]
    # movement
    PERMUTE: ClassVar[Op]
    FLIP: ClassVar[Op]
    RESHAPE: ClassVar[Op]
    EXPAND: ClassVar[Op]
    PAD: ClassVar[Op]
    SHRINK: ClassVar[Op]
    INDEX: ClassVar[Op]
    STACK: ClassVar[Op]
    REPLICATED: ClassVar[Op]
    SLICE: ClassVar[Op]
    BITCAST: ClassVar[Op]
    # reduce
    REDUCE: ClassVar[Op]
    # call
    FUNCTION: ClassVar[Op]
    CALL: ClassVar[Op]
    TUPLE: ClassVar[Op]
    GETTUPLE: ClassVar[Op]
    # load and store
    LOAD: ClassVar[Op]
    STORE: ClassVar[Op]
    # ordering
    RANGE: ClassVar[Op]
    END: ClassVar[Op]
    AFTER: ClassVar[Op]
    GROUP: ClassVar[Op]
    SINK: ClassVar[Op]
    LINEAR: ClassVar[Op]
    # elementwise
    RECIP: ClassVar[Op]
    TRUNC: ClassVar[Op]
    CAST: ClassVar[Op]
    ADD: ClassVar[Op]
    MUL: ClassVar[Op]
    MAX: ClassVar[Op]
    MOD: ClassVar[Op]
    IDIV: ClassVar[Op]
    CMPLT: ClassVar[Op]
    CMPNE: ClassVar[Op]
    XOR: ClassVar[Op]
    OR: ClassVar[Op]
    AND: ClassVar[Op]
    SHR: ClassVar[Op]
    SHL: ClassVar[Op]
    WHERE: ClassVar[Op]
    # decomposed
    NEG: ClassVar[Op]
    SUB: ClassVar[Op]
    DIV: ClassVar[Op]
    CMPGT: ClassVar[Op]
    CMPGE: ClassVar[Op]
    CMPLE: ClassVar[Op]
    CMPEQ: ClassVar[Op]
    NOT: ClassVar[Op]
    EXP2: ClassVar[Op]
    LOG2: ClassVar[Op]
    SIN: ClassVar[Op]
    SQRT: ClassVar[Op]
    POW: ClassVar[Op]
    MULACC: ClassVar[Op]
    THREEFRY: ClassVar[Op]
    # marker
    CONTIGUOUS: ClassVar[Op]
    CONTIGUOUSBACKWARD: ClassVar[Op]
    DETACH: ClassVar[Op]
    # codegen
    SPECIAL: ClassVar[Op]
    BARRIER: ClassVar[Op]
    IF: ClassVar[Op]
    ENDIF: ClassVar[Op]
    ATOMICADD: ClassVar[Op]
    WMMA: ClassVar[Op]
    GETADDR: ClassVar[Op]
    INS: ClassVar[Op]
    CUSTOM: ClassVar[Op]
    CUSTOMFUNCTION: ClassVar[Op]
    PROGRAM: ClassVar[Op]
    SOURCE: ClassVar[Op]
    # extension
    BIND: ClassVar[Op]
    CDIV: ClassVar[Op]
    CMOD: ClassVar[Op]
    MIN: ClassVar[Op]
    NOOP: ClassVar[Op]
    PRECAST: ClassVar[Op]
    UNROLL: ClassVar[Op]
    CONTRACT: ClassVar[Op]
    STAGE: ClassVar[Op]
    PTRADD: ClassVar[Op]
    ALLREDUCE: ClassVar[Op]
    UNIQUE: ClassVar[Op]
    LUNIQUE: ClassVar[Op]
    DEVICE: ClassVar[Op]


for _name in [name for name in Op.__annotations__ if name.isupper()]:
    setattr(Op, _name, Op(_name))

FLOOR_DIVISIONS = (Op.IDIV, Op.MOD)
CONVERSIONS = (Op.CAST, Op.BITCAST)
