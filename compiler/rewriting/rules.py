"""The rules of the compiler, by stage and dtype of the nodes, in the order of their trial.

`left -> right if guard` is the whole rule. A left side alone documents a function of that name in
the module of the stage. `patterns.py` explains the notation. The tests prove each rule, and the
suite draws programs from it under its name.
"""

from __future__ import annotations

from collections.abc import Mapping

Table = Mapping[str, Mapping[str, tuple[str, ...]]]

RULES: Mapping[str, Table] = {
    "simplify": {
        "any": {
            "fold_constants": (
                "ADD(c, d)",
                "MAX(c, d)",
                "CMPLT(c, d)",
                "WHERE(True, c, d)",
            ),
            "choose": (
                "WHERE(True, x, y) -> x",
                "WHERE(False, x, y) -> y",
                "WHERE(p, x, x) -> x",
            ),
            "choose_twice": (
                "WHERE(p, WHERE(p, x, z), y) -> WHERE(p, x, y)",
                "WHERE(p, x, WHERE(p, z, y)) -> WHERE(p, x, y)",
            ),
            "choose_condition": ("WHERE(p, True, False) -> p",),
            "and_condition": (
                "AND(p, True) -> p",
                "AND(True, p) -> p",
                "AND(p, False) -> False",
                "AND(False, p) -> False",
                "AND(p, p) -> p",
            ),
            # Other pairs of casts stay: each rounds or wraps.
            "cast_to_itself": ("CAST(x) -> x",),
            "open_gate": (
                "LOAD(i, x, True) -> LOAD(i)",
                "STORE(i, x, True) -> STORE(i, x)",
            ),
            "closed_gate": ("LOAD(i, x, False) -> x",),
            "choose_like_a_gate": (
                "WHERE(p, LOAD(i, x, p), x)",
                "WHERE(p, LOAD(i, x, AND(p, q)), x)",
            ),
            "read_once": (
                "LOAD(i, NEG(LOAD(i)), p)",
                "LOAD(i, MAX(x, LOAD(i)), p)",
            ),
        },
        "index": {
            "decided_by_interval": (
                "CMPLT(x, c) if c > 20 or c < -9",
                "CMPNE(x, c) if c > 20",
                "MAX(x, c) if c > 20",
                "IDIV(y, c) if c > 9",
            ),
            "collect_terms": (
                "ADD(ADD(x, c), d)",
                "SUB(ADD(x, c), ADD(d, x))",
                "SUB(ADD(x, y), MUL(x, c))",
                "NEG(SUB(x, y))",
                "MUL(ADD(x, c), d)",
                "ADD(MUL(IDIV(x, c), c), MOD(x, c)) if c != 0",
                "ADD(MUL(MOD(IDIV(x, c), d), c), MOD(x, c)) if c > 0 and d > 0",
            ),
            "divide_by_one": ("IDIV(x, 1) -> x",),
            "divide_terms": (
                "IDIV(ADD(MUL(x, c), y), d) if d > 0",
                "IDIV(ADD(x, c), d) if d > 0",
            ),
            "divide_twice": ("IDIV(IDIV(x, c), d) -> IDIV(x, c * d) if c > 0 and d > 0",),
            "divide_remainder": (
                "IDIV(MOD(x, c), d) -> MOD(IDIV(x, d), c // d) if c > 0 and d > 0 and c % d == 0",
            ),
            "reduce_terms": (
                "MOD(ADD(MUL(x, c), y), d) if d > 0",
                "MOD(ADD(x, c), d) if d > 0",
                "MOD(y, c) if c > 0",
            ),
            "reduce_twice": ("MOD(MOD(x, c), d) -> MOD(x, d) if c > 0 and d > 0 and c % d == 0",),
            "compare_terms": (
                "CMPLT(ADD(x, c), d)",
                "CMPLT(c, ADD(x, d))",
                "CMPLT(ADD(x, ADD(y, c)), d)",
            ),
            "drop_weaker_bound": (
                "AND(CMPLT(x, c), CMPLT(x, d))",
                "AND(CMPLT(c, x), CMPLT(d, x))",
                "AND(AND(CMPLT(x, c), CMPLT(y, e)), CMPLT(x, d))",
            ),
            "choose_both": (
                "WHERE(p, CMPLT(x, c), False)",
                "WHERE(CMPLT(y, d), CMPLT(x, c), False)",
            ),
        },
    },
}
