"""Each constraint has a program that breaks exactly it; the suite sends the same files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import uop.conformance
from uop.conformance.reference.page import page_of
from uop.conformance.suite.levels.invalid import derived
from uop.spec.args import LoadArg, PadArg, PadFill, PermuteArg
from uop.spec.case import FileCase, UopFile
from uop.spec.dtype import dtypes
from uop.spec.errors import InvalidError, MalformedError
from uop.spec.ops.names import Op
from uop.spec.registry import DECLARATIONS, labels
from uop.spec.text.json_form import from_json, unbuilt_to_json
from uop.spec.text.program import Unbuilt, parse, print_unbuilt
from uop.spec.text.uop_file import parse_file, print_file, read_file
from uop.spec.uop import dims, param

FOLDER = Path(uop.conformance.__path__[0]) / "suite" / "cases" / "invalid"
FILES = sorted(FOLDER.glob("*.uop"))
CASES = [case for path in FILES for case in read_file(path).cases]
DERIVED = [pair for d in DECLARATIONS.values() for pair in derived(d).items()]
BY_TYPE_ONLY = {"PAD.arg", "LOAD.arg", "STAGE.arg"}
"""Text cannot break these: without fields such an op gets its default arg."""


def rejected(case: FileCase) -> Unbuilt:
    assert case.rejected is not None
    return case.rejected


def test_no_label_is_missing_and_no_case_stands_twice() -> None:
    found = [case.id for case in CASES]
    assert len(found) == len(set(found))
    shared = {label for label, _ in DERIVED}
    assert {case.invalid for case in CASES} | shared == set(labels()) - BY_TYPE_ONLY


def test_labels_are_unique_and_say_their_op() -> None:
    every = [c.label for d in DECLARATIONS.values() for c in d.constraints]
    assert len(every) == len(set(every))
    for declaration in DECLARATIONS.values():
        for constraint in declaration.constraints:
            assert constraint.label.split(".")[0] == declaration.op.name
            assert constraint.title


def test_files_are_named_after_sections() -> None:
    for path in FILES:
        ops = {rejected(case).op for case in read_file(path).cases}
        for op in ops:
            assert DECLARATIONS[op].section in path.stem.split("_and_") + path.stem.split("_")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_case_breaks_its_constraint(case: FileCase) -> None:
    assert case.id == case.invalid or case.id.startswith(f"{case.invalid}.")
    for build in (
        rejected(case).build,
        lambda: parse(case.text),
        lambda: from_json(unbuilt_to_json(rejected(case))),
    ):
        with pytest.raises(InvalidError) as caught:
            build()
        assert caught.value.label == case.invalid
        assert caught.value.title == labels()[caught.value.label].title
        assert caught.value.found
    (again,) = parse_file(print_file(UopFile((case,)))).cases
    assert again == case


def is_guard(label: str) -> bool:
    """Later constraints of the op are only meant for nodes on which this one holds."""
    _, kind = label.split(".")
    return kind in ("arity", "arg") or "STACK of ()-shaped" in labels()[label].title


BY_HAND = [pytest.param(case.invalid, rejected(case), id=case.id) for case in CASES]


@pytest.mark.parametrize(("label", "node"), [*BY_HAND, *DERIVED])
def test_a_case_breaks_nothing_else(label: str, node: Unbuilt) -> None:
    declaration = DECLARATIONS[node.op]
    if node.arg is None:
        node = replace(node, arg=declaration.default_arg)
    for constraint in declaration.constraints:
        if constraint.label == label:
            assert constraint.broken(node)  # type: ignore[arg-type]
            if is_guard(constraint.label):
                return
        else:
            assert constraint.broken(node) is None, constraint.label  # type: ignore[arg-type]


@pytest.mark.parametrize("label", sorted(BY_TYPE_ONLY))
def test_an_arg_of_another_type_is_refused_where_there_is_a_default(label: str) -> None:
    x = param(0, (2,), dtypes.int8)
    nodes = {
        "PAD.arg": Unbuilt(Op.PAD, (x, dims((0,)), dims((2,))), LoadArg()),
        "LOAD.arg": Unbuilt(Op.LOAD, (x,), PadArg(PadFill.ZERO)),
        "STAGE.arg": Unbuilt(Op.STAGE, (x,), PadArg(PadFill.ZERO)),
    }
    with pytest.raises(InvalidError) as caught:
        nodes[label].build()
    assert caught.value.label == label
    # Fields of another arg are malformed, before the node is built.
    with pytest.raises(MalformedError, match="has no arg field 'order'"):
        parse(print_unbuilt(replace(nodes[label], arg=PermuteArg((0,)))))


def test_the_page_of_each_other_label_has_a_program_that_breaks_it() -> None:
    for label, constraint in labels().items():
        titles = [section.title for section in page_of(constraint).sections]
        assert ("Must be rejected" in titles) == (label not in BY_TYPE_ONLY), label
        assert titles[-1] == "Said"
