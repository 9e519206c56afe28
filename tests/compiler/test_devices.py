"""Programs on several devices: what each computes, what is copied, and that it waits for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from kernels import argument, kernel_param, load, program, special, store
from sharded import copy, devices, distinct, reshape

from uop.compiler.execute import CopyStep, KernelRun, open_device
from uop.compiler.pipeline import compile, find_target
from uop.compiler.runtime.cuda_host import Queued
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.compiler.stages.callify.devices import on_single_devices
from uop.conformance.backends.interpreter import in_order
from uop.conformance.judging.compare import compare
from uop.conformance.shrink.reduce import decomposed
from uop.conformance.suite.case import Case
from uop.conformance.suite.generate import cases
from uop.conformance.suite.levels.devices import COLLECTIVES, OF_ONE
from uop.interpreter.accept import accept
from uop.interpreter.evaluate import evaluate
from uop.spec.args import (
    BufferArg,
    GetAddrArg,
    PermuteArg,
    ReduceArg,
)
from uop.spec.dtype import DType, dtypes
from uop.spec.errors import UnsupportedError
from uop.spec.frontend.tensor import Tensor
from uop.spec.graph import inlined
from uop.spec.ops.names import Op
from uop.spec.uop import UOp, const, dims, param, variable

I32 = dtypes.int32
Arrays = dict[int, np.ndarray[Any, Any]]


def ran(root: UOp, inputs: Mapping[int, Any], target: str = "cuda-host") -> Any:
    return compile(root, target).run(inputs)


def collective(name: str, n: int, s: int = 2) -> UOp:
    on = devices(n)
    t = param(0, (n * n * s,), I32, on[0] if name in OF_ONE else on)
    return COLLECTIVES[name](Tensor(t), on).uop


def meant(name: str, x: np.ndarray[Any, Any], n: int) -> np.ndarray[Any, Any]:
    """What a collective gives, of the whole value."""
    sums = "reduce" in name
    return x.reshape(n, -1).sum(0) if sums else x


# What each device computes.


def sharded_programs() -> list[Case]:
    return [c for c in cases(["device"], effort="smoke") if isinstance(c, Case)]


@pytest.mark.parametrize("case", sharded_programs()[::3], ids=lambda c: str(c.id))
def test_every_value_is_on_one_device_and_means_the_same(case: Case) -> None:
    root = decomposed(inlined(case.root))
    if not any(isinstance(u.device, tuple) for u in root.toposort()):
        return
    placed = on_single_devices(root)
    for u in placed.toposort():
        assert not isinstance(u.device, tuple)
        there = {s.device for s in u.src} - {None}
        assert len(there) < 2 or u.op in (Op.SINK, Op.TUPLE, Op.AFTER)
    for batch in case.batches:
        expected, found = (evaluate(u, batch.inputs) for u in (root, placed))
        if isinstance(expected, dict):
            found = {slot: cast("Arrays", found)[slot] for slot in expected}
        assert compare(accept(root, batch.inputs), in_order(found)).mismatch is None


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name: str, n: int) -> None:
    root, x = collective(name, n), distinct((2 * n * n,))
    np.testing.assert_array_equal(ran(root, {0: x}), meant(name, x, n))


@pytest.mark.sampled(37)
@pytest.mark.parametrize("to", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
@pytest.mark.parametrize("axis", [0, 1])
def test_a_value_is_split_anew(n: int, to: int, axis: int) -> None:
    """Shards that have parts of several others, along their axis and along another one."""
    t, x = param(0, (12, 12), I32, devices(n)), distinct((12, 12))
    turned = UOp(Op.PERMUTE, t, arg=PermuteArg((1, 0))) if axis else t
    names = tuple(f"E{k}" for k in range(to))
    root = UOp(Op.NEG, copy(UOp(Op.NEG, turned), names))
    np.testing.assert_array_equal(ran(root, {0: x}), x.T if axis else x)


def test_a_shard_beside_a_whole_value_takes_its_part() -> None:
    t, whole = param(0, (4, 3), I32, devices(2)), param(1, (4, 3), I32)
    inputs = {0: distinct((4, 3)), 1: distinct((4, 3)) * 100}
    row = UOp(Op.SHRINK, whole, dims((1, 0)), dims((1, 3)))
    root = UOp(Op.ADD, UOp(Op.MUL, t, whole), row)
    expected = inputs[0] * inputs[1] + inputs[1][1:2]
    np.testing.assert_array_equal(ran(root, inputs), expected)


def test_a_fold_over_devices_has_what_all_of_them_have() -> None:
    t, x = param(0, (6, 2), I32, devices(3)), distinct((6, 2))
    root = UOp(Op.ADD, t, UOp(Op.REDUCE, t, arg=ReduceArg(Op.ADD, (0,))))
    np.testing.assert_array_equal(ran(root, {0: x}), x + x.sum(0))


@pytest.mark.parametrize("to", ["E", ("E", "F")])
def test_what_is_absent_is_absent_on_another_device(to: Any) -> None:
    """Padding: a fold there skips it, whether a program knows what is absent or its inputs do."""
    x = np.array([-3, 5, -7], np.int32)
    t, chosen = param(0, (3,), I32, "D"), param(1, (4,), dtypes.bool, "D")
    padded = UOp(Op.PAD, t, dims((0,)), dims((4,)))
    nothing = UOp(Op.PAD, UOp(Op.SHRINK, t, dims((0,)), dims((0,))), dims((0,)), dims((4,)))
    picked = UOp(Op.WHERE, chosen, padded, nothing)
    largest = [UOp(Op.REDUCE, copy(v, to), arg=ReduceArg(Op.MAX, (0,))) for v in (padded, picked)]
    flags = np.array([True, False, True, True])
    found = ran(UOp(Op.TUPLE, *largest), {0: x, 1: flags})
    assert [a.tolist() for a in found] == [[5], [-3]]


def test_the_parts_of_a_buffer_are_stored_to_and_joined() -> None:
    """Through a view of each part, and once more behind it; the rest keeps its contents."""
    on = devices(2)
    buffer = UOp(Op.BUFFER, dims((4, 3)), arg=BufferArg(0, I32, on))
    x, new = distinct((4, 3)), distinct((4, 1)) * 100
    column = UOp(Op.SHRINK, buffer, dims((0, 1)), dims((4, 1)))
    first = UOp(Op.STORE, column, param(1, (4, 1), I32, on))
    behind = UOp(Op.AFTER, buffer, first)
    second = UOp(Op.STORE, behind, UOp(Op.ADD, behind, behind))
    for root in (first, UOp(Op.SINK, first), UOp(Op.SINK, second)):
        expected = cast("Arrays", evaluate(root, {0: x, 1: new}))
        np.testing.assert_array_equal(ran(root, {0: x, 1: new})[0], expected[0])


def test_memory_on_several_devices_and_on_none() -> None:
    """Stores to memory on one device, on another, and on none, in one program."""
    places = ("D0", "D1", None)
    buffers = [UOp(Op.BUFFER, dims((3,)), arg=BufferArg(k, I32, d)) for k, d in enumerate(places)]
    x = param(3, (3,), I32)
    first = UOp(Op.STORE, buffers[2], UOp(Op.NEG, x))
    kept = UOp(Op.AFTER, buffers[2], first)
    stores = [UOp(Op.STORE, b, UOp(Op.MUL, kept, const(k + 2, I32)))
              for k, b in enumerate(buffers[:2])]  # fmt: skip
    data = distinct((3,))
    grouped = UOp(Op.SINK, UOp(Op.GROUP, stores[0], first), UOp(Op.SINK, stores[1], stores[0]))
    for root in (UOp(Op.SINK, first, *stores), grouped, UOp(Op.GROUP, *stores, first)):
        found = ran(root, {3: data})
        for slot, factor in enumerate((-2, -3, -1)):
            np.testing.assert_array_equal(found[slot], factor * data)


def test_results_without_elements_or_inputs() -> None:
    t = param(0, (0, 4), I32, devices(2))
    assert ran(copy(UOp(Op.NEG, t), "E"), {0: np.zeros((0, 4), np.int32)}).shape == (0, 4)
    ones = UOp(Op.EXPAND, reshape(const(1, I32), 1), dims((4,)))
    np.testing.assert_array_equal(ran(UOp(Op.NEG, copy(ones, devices(2))), {}), [-1] * 4)
    pair = UOp(Op.TUPLE, copy(ones, "D0"), copy(ones, "D1"), const(7, I32))
    assert [a.tolist() for a in ran(pair, {})] == [[1] * 4, [1] * 4, 7]


def test_devices_share_kernels_where_they_do_the_same() -> None:
    t = param(0, (8,), I32, devices(4))
    found = compile(UOp(Op.NEG, UOp(Op.MUL, t, t)), "cuda-host").executable
    squares = [s for s in found.kernels if len(s.arguments) == 2]
    assert [s.place for s in squares] == [1, 2, 3]
    # The first one computes its own where it joins all of them.
    assert len({s.linear for s in squares}) == 1
    copies = [s for s in found.steps if isinstance(s, CopyStep)]
    moved = {(found.places[c.source], found.places[c.to]) for c in copies}
    assert moved == {(0, k) for k in (1, 2, 3)} | {(k, 0) for k in (1, 2, 3)}


def test_temporaries_share_memory_of_one_device_only() -> None:
    t = param(0, (4,), I32, "D0")
    for k in range(6):
        t = UOp(Op.NEG, copy(UOp(Op.CONTIGUOUS, UOp(Op.NEG, t)), f"D{k % 2}"))
    found = compile(t, "cuda-host").executable
    for step in found.steps:
        if isinstance(step, KernelRun):
            assert {found.places[b] for b in step.buffers.values()} == {step.place}
    np.testing.assert_array_equal(ran(t, {0: distinct((4,))}), distinct((4,)))


# What is refused.


def test_what_has_no_kernels_on_several_devices() -> None:
    on = devices(2)
    size = variable(1, 1, 4)
    cut = UOp(Op.SHRINK, param(0, (4, 4), I32, on), dims((0, 0)), dims((4, size)))
    address = UOp(Op.GETADDR, UOp(Op.BUFFER, dims((4,)), arg=BufferArg(5, I32)),
                  arg=GetAddrArg("D0"))  # fmt: skip
    kernel = program(doubled(), 3, 3).src[0]
    buffer = UOp(Op.BUFFER, dims((3,)), arg=BufferArg(6, I32, "D0"))
    call = UOp(Op.CALL, kernel.src[0], buffer, UOp(Op.BUFFER, dims((3,)), arg=BufferArg(7, I32)))
    sharded = UOp(Op.NEG, param(3, (4,), I32, on))
    for root, said in (
        (cut, "SHRINK of a size that is not fixed on the devices"),
        (UOp(Op.TUPLE, address, sharded), "GETADDR on the devices"),
        (UOp(Op.TUPLE, UOp(Op.AFTER, buffer, call), sharded), r"CALL\.n5"),
    ):
        with pytest.raises(UnsupportedError, match=said):
            compile(root)


def doubled() -> UOp:
    kind = special(3)
    value = load(kernel_param(1, 3), kind)
    return UOp(Op.SINK, store(kernel_param(0, 3), kind, UOp(Op.ADD, value, value)))


def test_a_kernel_of_a_program_has_its_buffers_on_one_device() -> None:
    a, b, c = (UOp(Op.BUFFER, dims((3,)), arg=BufferArg(k, I32, d))
               for k, d in enumerate(("D0", "D1", "D1")))  # fmt: skip
    apart = UOp(Op.SINK, UOp(Op.CALL, doubled(), a, b))
    with pytest.raises(UnsupportedError, match=r"a kernel with buffers on the devices \(D0, D1\)"):
        compile(apart)
    d = argument(3, 3)
    both = UOp(Op.SINK, UOp(Op.CALL, doubled(), a, d), UOp(Op.CALL, doubled(), b, c))
    found = ran(both, {2: distinct((3,)), 3: distinct((3,)) * 10})
    assert found[0].tolist() == (20 * distinct((3,))).tolist()
    assert found[1].tolist() == (2 * distinct((3,))).tolist()


def test_sizes_that_are_not_fixed_are_copied_whole() -> None:
    x = param(1, (variable(0, 1, 8), 2), I32, "D0")
    root = UOp(Op.NEG, copy(UOp(Op.MUL, x, x), "D1"))
    compiled = compile(root, "cuda-host")
    assert len(compiled.executable.devices) == 2
    for rows in (1, 3, 8):
        data = distinct((rows, 2))
        found = compiled.run({0: np.array(rows), 1: data})
        np.testing.assert_array_equal(cast(Any, found), -data * data)


# On devices.


def chained(dtype: DType = I32) -> UOp:
    """Each device changes what it gets from the other, again and again."""
    t = param(0, (64,), dtype, "D0")
    for k in range(1, 9):
        t = UOp(Op.ADD, copy(UOp(Op.MUL, t, const(3, dtype)), f"D{k % 2}"), const(k, dtype))
    return t


def chained_of(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    for k in range(1, 9):
        x = x * 3 + k
    return x


def test_a_queue_that_does_not_wait_goes_wrong_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    x = distinct((64,))
    np.testing.assert_array_equal(ran(chained(), {0: x}), chained_of(x))
    monkeypatch.setattr(Queued, "wait_for", lambda self, other: None)
    assert (ran(chained(), {0: x}) != chained_of(x)).any()


def test_memory_is_overwritten_after_it_was_copied() -> None:
    """Loaded again and again, with results that stay: the next run writes where a copy reads."""
    host = open_device(find_target("cuda-host"))
    with compile(chained(), "cuda-host").load(host) as loaded:
        kept = [loaded.run_kept({0: distinct((64,)) + k}) for k in range(3)]
        for k, array in enumerate(kept):
            found = cast(Any, array).numpy()
            np.testing.assert_array_equal(found, chained_of(distinct((64,)) + k))


def test_an_array_on_another_device_is_refused(opencl: OpenCLDevice) -> None:
    x = param(0, (4,), I32, "D0")
    root = UOp(Op.TUPLE, copy(UOp(Op.NEG, x), "D1"), UOp(Op.NEG, x))
    with compile(root).load(opencl) as loaded:
        there, here = cast("tuple[Any, ...]", loaded.run_kept({0: distinct((4,))}))
        again = cast("tuple[Any, ...]", loaded.run_kept({0: here}))
        np.testing.assert_array_equal(again[0].numpy(), distinct((4,)))
        with pytest.raises(UnsupportedError, match="slot 0: an array on"):
            loaded.run({0: there})


@pytest.mark.slow
@pytest.mark.usefixtures("run_on_opencl")
@pytest.mark.parametrize("n", [2, 3, 8])
def test_parts_of_a_device_and_queues_that_share_it(opencl: OpenCLDevice, n: int) -> None:
    peers = opencl.peers(n)
    assert len({id(peer.queue) for peer in peers}) == n
    units = opencl.context.devices[0].max_compute_units
    assert len({peer.queue.device for peer in peers}) == (n if n <= units else 1)
    what = "part" if n <= units else "queue"
    assert peers[1].name == f"{opencl.name}, {what} 2 of {n}"
    for name in COLLECTIVES:
        x = distinct((2 * n * n,))
        found = compile(collective(name, n)).run({0: x})
        np.testing.assert_array_equal(cast(Any, found), meant(name, x, n))


SCRIPT = """
import json, sys
import numpy as np
from sharded import distinct
from test_devices import COLLECTIVES, chained, collective
from uop.compiler.pipeline import compile
from uop.compiler.runtime.opencl import open_opencl
device = open_opencl("pocl")
there = [[peer.queue.device.int_ptr, peer.name] for peer in device.peers(2)]
found = {name: compile(collective(name, 2)).run({0: distinct((8,))}, device).tolist()
         for name in COLLECTIVES}
found["chained"] = compile(chained()).run({0: distinct((64,))}, device).tolist()
units = [peer.queue.device.max_compute_units for peer in device.peers(2)]
whole = device.name, device.queue.device.max_compute_units
print(json.dumps({"whole": whole, "devices": there, "units": units, "found": found}))
"""


@pytest.mark.slow
@pytest.mark.usefixtures("pocl")
def test_two_devices_of_a_driver() -> None:
    """PoCL has as many devices as it is asked for, each with its own threads and queue."""
    here = Path(__file__).parent
    paths = os.pathsep.join(map(str, (here, here.parent)))
    environment = os.environ | {"POCL_DEVICES": "pthread pthread", "PYTHONPATH": paths}
    run: Callable[..., Any] = subprocess.run
    ended = run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    whole, units = said["whole"]
    (first, _), (second, name) = said["devices"]
    assert first != second
    assert name == f"{whole}, device 2 of 2"
    assert said["units"] == [units, units]
    assert said["found"].pop("chained") == chained_of(distinct((64,))).tolist()
    for name, found in said["found"].items():
        assert found == meant(name, distinct((8,)), 2).tolist()


def test_a_store_waits_for_a_copy_to_another_device() -> None:
    """The copy reads the buffer before the STORE writes it, whatever else is split over devices."""
    pair = ("A", "B")
    kinds = enumerate(("A", "B", pair))
    source, target, split = (UOp(Op.BUFFER, dims((4,)), arg=BufferArg(k, I32, d)) for k, d in kinds)
    copied = UOp(Op.STORE, target, copy(source, "B"))
    change = UOp(Op.STORE, UOp(Op.AFTER, source, UOp(Op.GROUP, copied)), param(3, (4,), I32, "A"))
    root = UOp(Op.SINK, change, UOp(Op.STORE, split, param(4, (4,), I32, pair)))
    inputs = {slot: distinct((4,)) + slot for slot in range(5)}
    found = cast("Arrays", evaluate(on_single_devices(root), inputs))
    for slot, expected in enumerate((3, 0, 4)):
        np.testing.assert_array_equal(found[slot], inputs[expected])
