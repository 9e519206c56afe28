"""Kernels that know workgroups: LOCAL memory, barriers, branches, atomics, named instructions."""

from __future__ import annotations

import re
import shutil
from functools import reduce
from typing import cast

import numpy as np
import pytest

from uop.compiler.bundle import Job, run_many
from uop.compiler.pipeline import compile, lower
from uop.compiler.runtime.cuda import nvrtc_compile
from uop.compiler.runtime.device import Launch, check_group
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.compiler.stages.render.grid import Grid, grid_of, is_grouped, runs
from uop.compiler.stages.select.stage import select
from uop.compiler.targets.cuda import CUDA
from uop.compiler.targets.opencl import OPENCL
from uop.conformance.judging.compare import compare
from uop.conformance.judging.expected import accepted_on
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import case_by_id
from uop.conformance.suite.levels.kernel.scalar import Listing
from uop.interpreter.evaluate import evaluate
from uop.spec.args import (
    AddrSpace,
    AxisType,
    BufferArg,
    CustomArg,
    DTypeArg,
    InsArg,
    ParamArg,
    RangeArg,
    ReduceArg,
    SpecialArg,
)
from uop.spec.dtype import dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.graph import calls
from uop.spec.kernel.instructions import filled
from uop.spec.kernel.optimization import parse_optimizations
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, index_const, param

ROWS = param(0, (6, 8), dtypes.int32)
SUM = UOp(Op.REDUCE, UOp(Op.MUL, ROWS, ROWS), arg=ReduceArg(Op.ADD, (1,)))
DATA = np.arange(48, dtype=np.int32).reshape(6, 8) - 20
TOTALS = (DATA * DATA).sum(axis=1).tolist()
SEQUENCES = [
    "SPLIT(0, 3, LOCAL, INNER)",
    "SPLIT(1, 4, GROUP_REDUCE, OUTER)",
    "PADTO(0, 4); SPLIT(0, 4, LOCAL, INNER); SPLIT(1, 2, UPCAST, INNER)",
    "SPLIT(0, 2, LOCAL, INNER); PADTO(2, 5); SPLIT(2, 5, GROUP_REDUCE, INNER)",
    "SPLIT(0, 2, UPCAST, INNER); SPLIT(2, 2, GROUP_REDUCE, INNER); SPLIT(2, 2, UNROLL, INNER)",
]


def totals(found: object) -> list[int]:
    return cast("list[int]", np.asarray(found).reshape(-1).tolist())


def test_optimized_kernels_on_opencl(run_on_opencl: OpenCLDevice) -> None:
    programs = [compile(SUM, optimizations=[parse_optimizations(text)]) for text in SEQUENCES]
    for program in programs:
        assert totals(program.run({0: DATA})) == TOTALS
    for outcome in run_many([Job(program, [{0: DATA}, {0: DATA}]) for program in programs]):
        assert isinstance(outcome, list)
        assert [totals(result) for result in outcome] == [TOTALS, TOTALS]


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler g++ on this machine")
def test_optimized_kernels_as_cuda_on_the_cpu() -> None:
    for text in SEQUENCES[1:4:2]:
        program = compile(SUM, "cuda-host", optimizations=[parse_optimizations(text)])
        assert totals(program.run({0: DATA})) == TOTALS


WORKGROUPS = [f"kernel/BARRIER/{d}/workgroup/{k}" for d in ("int32", "uint64") for k in range(3)]


def test_workgroups_on_opencl(run_on_opencl: OpenCLDevice) -> None:
    cases = [case_by_id(id) for id in (*WORKGROUPS, "kernel/INS/uint32/instructions/0")]
    jobs = [
        Job(compile(c.root), [b.inputs for b in c.batches]) for c in cases if isinstance(c, Case)
    ]
    for case, outcome in zip(cases, run_many(jobs), strict=True):
        assert isinstance(outcome, list), outcome
        assert isinstance(case, Case)
        for batch, result in enumerate(outcome):
            assert isinstance(result, dict)
            outputs = [result[slot] for slot in sorted(result)]
            assert compare(accepted_on(case, batch, STRICT), outputs).mismatch is None, case.id


@pytest.mark.cuda
def test_nvrtc_takes_them() -> None:
    for id in WORKGROUPS:
        case = case_by_id(id)
        assert isinstance(case, Case)
        nvrtc_compile(compile(case.root, "cuda").source)
    nvrtc_compile(compile(SUM, "cuda", optimizations=[parse_optimizations(SEQUENCES[3])]).source)


def test_more_local_memory_than_a_group_has_is_refused() -> None:
    wide = param(0, (64, 4096), dtypes.float64)
    total = UOp(Op.REDUCE, wide, arg=ReduceArg(Op.ADD, (1,)))
    sequence = parse_optimizations("SPLIT(0, 16, UPCAST); SPLIT(2, 1024, GROUP_REDUCE)")
    what = "262,144 bytes of LOCAL memory, cuda has at most"
    with pytest.raises(UnsupportedError, match=what):
        compile(total, "cuda", optimizations=[sequence])
    # In a source of many programs it is refused before the source is built.
    quick = compile(total, "cuda", optimizations=[sequence], quick=True)
    (refused,) = run_many([Job(quick, [{0: np.zeros((64, 4096))}])])
    assert isinstance(refused, UnsupportedError)
    assert what in str(refused)


def special(name: str, count: int) -> UOp:
    return UOp(Op.SPECIAL, index_const(count), arg=SpecialArg(name))


def place(i: UOp, n: int = 8) -> UOp:
    arg = ParamArg(0, dtypes.int32, None, AddrSpace.GLOBAL)
    return UOp(Op.INDEX, UOp(Op.PARAM, dims((n,)), arg=arg), i)


def linear(*roots: UOp) -> UOp:
    return UOp(Op.LINEAR, *dict.fromkeys(u for root in roots for u in root.toposort()))


def test_what_a_launch_is_read_off() -> None:
    number = UOp(Op.ADD, special("gidx1", 3), special("lidx0", 4))
    both = linear(UOp(Op.STORE, place(number), const(1, dtypes.int32)))
    assert is_grouped(both)
    assert grid_of(both) == Grid((1, 3), (4, 1))
    waiting = linear(UOp(Op.BARRIER))
    assert is_grouped(waiting)
    assert grid_of(waiting) == Grid((1,), (1,))
    empty = linear(UOp(Op.STORE, place(special("lidx0", 0)), const(1, dtypes.int32)))
    assert not runs(empty)
    assert not is_grouped(linear(UOp(Op.STORE, place(special("gidx0", 3)), const(1, dtypes.int32))))


def test_work_items_follow_each_other_along_the_last_axis() -> None:
    root = UOp(Op.NEG, param(0, (4, 6), dtypes.float32))

    def last(text: str) -> set[UOp]:
        selected = lower(root, "select", optimizations=[parse_optimizations(text)])
        return {u.src[1] for u in selected.toposort() if u.op is Op.MOD}

    assert last("") <= {index_const(6)}
    assert last("SWAP(0, 1)") == {index_const(4)}
    assert last("SPLIT(1, 3, THREAD); SWAP(0, 1)") == {index_const(4), index_const(2)}


def test_each_number_is_the_one_that_the_device_has_for_it() -> None:
    """A kernel with all numbers of a launch, in the words of OpenCL and of CUDA."""
    names = [f"{kind}idx{k}" for kind in "gl" for k in range(3)]
    total = reduce(lambda a, b: UOp(Op.ADD, a, b), (special(name, 2) for name in names))
    body = linear(UOp(Op.STORE, place(total), const(1, dtypes.int32)))
    opencl, cuda = (target.kernel(body, "k") for target in (OPENCL, CUDA))
    for k, axis in enumerate("xyz"):
        assert f"i32 gidx{k} = get_group_id({k});" in opencl
        assert f"i32 lidx{k} = get_local_id({k});" in opencl
        assert re.search(rf"i32 gidx{k} = \W*blockIdx\.{axis}\b", cuda)
        assert re.search(rf"i32 lidx{k} = \W*threadIdx\.{axis}\b", cuda)


def test_kernels_share_their_folds_each_among_its_own_items() -> None:
    other = UOp(Op.REDUCE, param(1, (6, 8), dtypes.int32), arg=ReduceArg(Op.MAX, (1,)))
    texts = ("SPLIT(1, 4, GROUP_REDUCE, INNER)", "SPLIT(1, 2, GROUP_REDUCE, INNER)")
    root = UOp(Op.TUPLE, SUM, other)
    # Alone in their workgroups, and beside two other rows there.
    for rows in ("", "SPLIT(0, 3, LOCAL, INNER)"):
        both = [f"{text}; {rows}" if rows else text for text in texts]
        program = compile(root, optimizations=[parse_optimizations(text) for text in both])
        found = evaluate(program.stages["select"], {0: DATA, 1: DATA})
        assert isinstance(found, dict)
        assert [totals(v) for v in found.values()] == [TOTALS, DATA.max(axis=1).tolist()]


ROWS = UOp(Op.REDUCE, param(0, (4, 256), dtypes.int32), arg=ReduceArg(Op.ADD, (1,)))


@pytest.mark.parametrize(
    ("text", "warp", "group"),
    [
        ("SPLIT(1, 16, GROUP_REDUCE)", 4, 0),
        ("SPLIT(0, 4, LOCAL); SPLIT(2, 8, GROUP_REDUCE)", 3, 0),
        ("SPLIT(1, 128, GROUP_REDUCE)", 5, 2),
    ],
)
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler g++ on this machine")
def test_steps_within_warps_wait_for_a_warp_alone(text: str, warp: int, group: int) -> None:
    compiled = compile(ROWS, "cuda-host", optimizations=[parse_optimizations(text)])
    source = compiled.source
    assert (source.count("__syncwarp"), source.count("__syncthreads")) == (warp, group)
    data = np.arange(1024, dtype=np.int32).reshape(4, 256)
    assert np.asarray(compiled.run({0: data})).ravel().tolist() == data.sum(axis=1).tolist()
    # A tag of a program that comes from outside decides nothing.
    again = compile(compiled.stages["linearize"], "cuda-host").source
    assert (again.count("__syncwarp"), again.count("__syncthreads")) == (0, warp + group)


def test_folds_of_one_kernel_are_shared_by_equally_many_items() -> None:
    """Made by hand of one fold: half of the items would have no part in the other one."""
    program = lower(SUM, "optimize", optimizations=[parse_optimizations(SEQUENCES[1])])
    (body,) = (call.src[0] for call in calls(program))
    (fold,) = (u for u in body.toposort() if u.op is Op.REDUCE)
    fewer = UOp(Op.RANGE, index_const(2), arg=RangeArg(8, AxisType.GROUP_REDUCE))
    step = UOp(Op.CAST, fewer, arg=DTypeArg(dtypes.int32))
    other = UOp(Op.REDUCE, step, fewer, arg=ReduceArg(Op.ADD))
    both = program.substitute({body: body.substitute({fold: UOp(Op.ADD, fold, other)})})
    found = evaluate(both, {0: DATA})
    assert isinstance(found, dict)
    assert [totals(v) for v in found.values()] == [[t + 1 for t in TOTALS]]
    with pytest.raises(UnsupportedError, match="shared by 2, 4 work items"):
        select(both, OPENCL)


def test_groups_of_more_items_than_the_device_takes_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="workgroups of 2048 work items: this one takes"):
        check_group(Launch("k", (), (1,), (1024, 2)), 1024, "this one")
    check_group(Launch("k", (), (9,), (1024,)), 1024, "this one")


def test_what_is_listed_inside_a_branch_and_again_behind_it_is_one_argument(
    run_on_opencl: OpenCLDevice,
) -> None:
    g = special("gidx0", 8)
    args = (ParamArg(k, dtypes.int32, None, AddrSpace.GLOBAL) for k in range(2))
    into, source = (UOp(Op.PARAM, dims((8,)), arg=a) for a in args)
    listing = Listing()
    with listing.where(UOp(Op.CMPLT, g, index_const(3))):
        read = UOp(Op.LOAD, UOp(Op.INDEX, source, g))
        listing.do(UOp(Op.ATOMICADD, UOp(Op.INDEX, into, g), read))
    first = UOp(Op.INDEX, into, index_const(0))
    listing.do(UOp(Op.ATOMICADD, first, const(1, dtypes.int32)))
    memories = [UOp(Op.BUFFER, dims((8,)), arg=BufferArg(k, dtypes.int32)) for k in range(2)]
    root = UOp(Op.SINK, UOp(Op.CALL, listing.body, *memories))
    given = {0: np.zeros(8, np.int32), 1: np.arange(10, 18, dtype=np.int32)}
    (found,) = run_many([Job(compile(root, "opencl"), (given,))], device=run_on_opencl)
    assert found[0][0].tolist() == [10 + 8, 11, 12, 0, 0, 0, 0, 0]


def test_an_atomic_addition_that_a_target_lacks_is_named() -> None:
    arg = ParamArg(0, dtypes.int8, None, AddrSpace.GLOBAL)
    there = UOp(Op.INDEX, UOp(Op.PARAM, dims((8,)), arg=arg), special("gidx0", 3))
    body = linear(UOp(Op.ATOMICADD, there, const(1, dtypes.int8)))
    for target in (OPENCL, CUDA):
        with pytest.raises(UnsupportedError, match="no atomic addition of int8"):
            target.kernel(body, "k")


def test_instructions_are_spelled_by_the_target() -> None:
    i = special("gidx0", 3)
    read = UOp(Op.LOAD, place(i))
    named = UOp(Op.INS, read, arg=InsArg("popcount", dtypes.int32))
    text = UOp(Op.CUSTOM, read, named, arg=CustomArg("max({0}, {1})", dtypes.int32))
    body = linear(UOp(Op.STORE, place(i), text))
    opencl, cuda = (target.kernel(body, "k") for target in (OPENCL, CUDA))
    assert "(i32)(popcount(t0))" in opencl
    assert "(i32)(__popc(t0))" in cuda
    for source in (opencl, cuda):
        assert "(i32)(max(t0, t1))" in source
    with pytest.raises(UnsupportedError, match="no instruction 'fused'"):
        OPENCL.kernel(linear(UOp(Op.INS, read, arg=InsArg("fused", dtypes.int32))), "k")
    with pytest.raises(UnsupportedError, match="names operand 1 of 1"):
        filled("max({0}, {1})", ["x"])
