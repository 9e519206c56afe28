"""OpenCL helpers for vectors: memory, functions of floats, and casts of small floats as bits."""

from __future__ import annotations

from uop.compiler.targets.prelude_float import SMALL, of_small
from uop.spec.args import AddrSpace
from uop.spec.dtype import DType

WIDTHS = (2, 4, 8, 16)
INTEGERS = tuple(sign + word for word in ("char", "short", "int", "long") for sign in ("", "u"))
FUNCTIONS = ("exp2", "log2", "sqrt", "sin")

SPACES = {AddrSpace.GLOBAL: "global", AddrSpace.LOCAL: "local", AddrSpace.REG: "private"}
MARKS = {AddrSpace.GLOBAL: "", AddrSpace.LOCAL: "local_", AddrSpace.REG: "private_"}
"""The part of a helper's name that says its address space."""

# PoCL writes what vloadN and vstoreN do element by element where it joins work items.
MEMORY = """
FN {type}{n} load_{mark}{type}{n}({space} {type}* p) {{
  typedef {type}{n} unaligned __attribute__((aligned(sizeof({type}))));
  return *({space} unaligned*)p;
}}

FN void store_{mark}{type}{n}({type}{n} x, {space} {type}* p) {{
  typedef {type}{n} unaligned __attribute__((aligned(sizeof({type}))));
  *({space} unaligned*)p = x;
}}
"""

# Workaround function-of-literal-nan: a NaN does not reach the built-in function.
UNARY = """
FN {type} {name}_{type}({type} x) {{
  return x != x ? x + x : {name}(x != x ? ({type})(0) : x);
}}
"""

# Workaround sine-next-to-a-large-one: no vector with a large element, or a NaN, reaches sin.
SINE = """
FN {type} sin_{type}({type} x) {{
  return all(fabs(x) < 32768) ? sin(x) : ({type})({each});
}}
"""

# The arithmetic of the casts is that of `prelude_float`.
FROM_F32 = """
FN {unsigned}{n} f32_to_{name}_{n}(float{n} x) {{
  uint{n} m = as_uint{n}(x) & 0x7fffffffu;
  uint{n} sign = as_uint{n}(x) >> 31 << {sign_shift};
  uint{n} low = as_uint{n}(as_float{n}(m) + as_float({magic:#x}u)) - {magic:#x}u;
  uint{n} high = ((m + {half:#x}u + ((m >> {shift}) & 1u)) >> {shift}) - {rebias:#x}u;
  uint{n} rounded = m < {smallest_normal:#x}u ? low : high;
  uint{n} bounded = rounded > {largest:#x}u ? (uint{n})({overflow:#x}u) : rounded;
  return convert_{unsigned}{n}(sign | (m > 0x7f800000u ? (uint{n})({nan:#x}u) : bounded));
}}
"""

TO_F32 = """
FN float{n} {name}_to_f32_{n}({unsigned}{n} x) {{
  uint{n} m = convert_uint{n}(x) & {magnitude:#x}u;
  uint{n} sign = convert_uint{n}(x) >> {sign_shift} << 31;
  uint{n} ordinary = as_uint{n}(as_float{n}(m << {shift}) * as_float({scale:#x}u));
  uint{n} special = 0x7f800000u | (m & {fraction:#x}u) << {shift};
  return as_float{n}(sign | (m > {largest:#x}u ? special : ordinary));
}}
"""


def _cast(template: str, dtype: DType, width: int) -> str:
    numbers = of_small(dtype) | {"unsigned": "ushort" if dtype.bits == 16 else "uchar"}
    return template.format(n=width, **numbers)


def _sine(type: str, scalar: str, width: int) -> str:
    each = ", ".join(f"sin_{scalar}(x.s{k:x})" for k in range(width))
    return SINE.format(type=f"{type}{width}", each=each)


TEXT = "\n\n".join(
    [
        MEMORY.format(type=t, n=n, space=SPACES[space], mark=MARKS[space])
        for space in SPACES
        for t in (*INTEGERS, "float", "double")
        for n in WIDTHS
    ]
    + [
        UNARY.format(type=f"{type}{n}", name=name)
        for type in ("float", "double")
        for name in FUNCTIONS[:-1]
        for n in WIDTHS
    ]
    + [_sine(*types, n) for types in (("float", "f32"), ("double", "f64")) for n in WIDTHS]
    + [_cast(t, dtype, n) for t in (FROM_F32, TO_F32) for dtype in SMALL for n in WIDTHS]
)
