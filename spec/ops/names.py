"""The names of all ops, in the order of the spec's tables."""

from __future__ import annotations

from enum import Enum


class Op(Enum):
    """An op name. What it means is declared once, in the file of its section."""

    # A member equals itself alone. Enum would hash its name, in Python, at each look-up.
    __hash__ = object.__hash__

    # source
    PARAM = "PARAM"
    BUFFER = "BUFFER"
    CONST = "CONST"
    BINARY = "BINARY"
    # movement
    PERMUTE = "PERMUTE"
    FLIP = "FLIP"
    RESHAPE = "RESHAPE"
    EXPAND = "EXPAND"
    PAD = "PAD"
    SHRINK = "SHRINK"
    INDEX = "INDEX"
    STACK = "STACK"
    REPLICATED = "REPLICATED"
    SLICE = "SLICE"
    BITCAST = "BITCAST"
    # reduce
    REDUCE = "REDUCE"
    # call
    FUNCTION = "FUNCTION"
    CALL = "CALL"
    TUPLE = "TUPLE"
    GETTUPLE = "GETTUPLE"
    # load and store
    LOAD = "LOAD"
    STORE = "STORE"
    # ordering
    RANGE = "RANGE"
    END = "END"
    AFTER = "AFTER"
    GROUP = "GROUP"
    SINK = "SINK"
    LINEAR = "LINEAR"
    # elementwise
    RECIP = "RECIP"
    TRUNC = "TRUNC"
    CAST = "CAST"
    ADD = "ADD"
    MUL = "MUL"
    MAX = "MAX"
    MOD = "MOD"
    IDIV = "IDIV"
    CMPLT = "CMPLT"
    CMPNE = "CMPNE"
    XOR = "XOR"
    OR = "OR"
    AND = "AND"
    SHR = "SHR"
    SHL = "SHL"
    WHERE = "WHERE"
    # decomposed
    NEG = "NEG"
    SUB = "SUB"
    DIV = "DIV"
    CMPGT = "CMPGT"
    CMPGE = "CMPGE"
    CMPLE = "CMPLE"
    CMPEQ = "CMPEQ"
    NOT = "NOT"
    EXP2 = "EXP2"
    LOG2 = "LOG2"
    SIN = "SIN"
    SQRT = "SQRT"
    POW = "POW"
    MULACC = "MULACC"
    THREEFRY = "THREEFRY"
    # marker
    CONTIGUOUS = "CONTIGUOUS"
    CONTIGUOUSBACKWARD = "CONTIGUOUSBACKWARD"
    DETACH = "DETACH"
    # codegen
    SPECIAL = "SPECIAL"
    BARRIER = "BARRIER"
    IF = "IF"
    ENDIF = "ENDIF"
    ATOMICADD = "ATOMICADD"
    WMMA = "WMMA"
    GETADDR = "GETADDR"
    INS = "INS"
    CUSTOM = "CUSTOM"
    CUSTOMFUNCTION = "CUSTOMFUNCTION"
    PROGRAM = "PROGRAM"
    SOURCE = "SOURCE"
    # extension
    BIND = "BIND"
    CDIV = "CDIV"
    CMOD = "CMOD"
    MIN = "MIN"
    NOOP = "NOOP"
    PRECAST = "PRECAST"
    UNROLL = "UNROLL"
    CONTRACT = "CONTRACT"
    STAGE = "STAGE"
    PTRADD = "PTRADD"
    ALLREDUCE = "ALLREDUCE"
    UNIQUE = "UNIQUE"
    LUNIQUE = "LUNIQUE"
    DEVICE = "DEVICE"
