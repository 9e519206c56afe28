"""The conditions of the bestiary's words besides the constraints of the core nodes."""

from __future__ import annotations

from uop.spec.conditions.labels import Condition


def _device(name: str) -> Condition:
    return Condition(f"{name}.device", "the device is a DEVICE")


def _size(name: str) -> Condition:
    return Condition(f"{name}.size", "size is 0 or more")


def _sizes(name: str) -> Condition:
    return Condition(f"{name}.sizes", "a number for each axis")


def _pairs(name: str) -> Condition:
    return Condition(f"{name}.axes", "pairs of an axis and a factor")


ALLREDUCE_DEVICE = _device("ALLREDUCE")
BUFFER_NUMBER = Condition("BUFFER.number", "every BUFFER has a UNIQUE, or none does")
BUFFER_SIZE = Condition("BUFFER.size", "a size of 0 or more, or a shape")
BUFFER_UNIQUE = Condition("BUFFER.unique", "operands are a UNIQUE or LUNIQUE, and a DEVICE")
CAT_SOURCES = Condition("CAT.sources", "sources are vectors or scalars")
CONTRACT_AXES = _pairs("CONTRACT")
COPY_DEVICE = _device("COPY")
LOCAL_SIZE = _size("DEFINE_LOCAL")
REG_SIZE = _size("DEFINE_REG")
LOAD_ALT = Condition("LOAD.alt", "an alt belongs to an INDEX with a gate")
LOAD_INDEX = Condition("LOAD.index", "index is an INDEX of the buffer")
PAD_SIZES = _sizes("PAD")
PARAM_DEVICE = _device("PARAM")
PARAM_PLACE = Condition("PARAM.place", "one size or shape, at most one device")
PARAM_SIZE = _size("PARAM")
PROGRAM_DEVICE = _device("PROGRAM")
PROGRAM_STAGE = Condition(
    "PROGRAM.stage", "SINK, then LINEAR, SOURCE and PROGRAM_BINARY in this order"
)
SHRINK_SIZES = _sizes("SHRINK")
UNROLL_AXES = _pairs("UNROLL")
VARIABLE_NUMBER = Condition("DEFINE_VAR.number", "every variable says its slot, or none does")
VCONST_VALUES = Condition("VCONST.values", "values are of the dtype")
WMMA_UPCAST = Condition("WMMA.upcast", "the factors of a fragment's axes multiply to its elements")
VECTORIZE_ELEMENTS = Condition("VECTORIZE.elements", "elements are scalars")
