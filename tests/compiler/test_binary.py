"""PROGRAMs with machine code: the device's compiler makes it, and they run from it."""

from __future__ import annotations

import json
from dataclasses import replace

import cupy_stand_in
import numpy as np
import pytest
from kernels import kernel_param, load, program, special, store

from uop.compiler import execute
from uop.compiler.bundle import Job, run_many
from uop.compiler.loaded import Compiled
from uop.compiler.pipeline import TARGETS, compile
from uop.compiler.runtime import cuda
from uop.compiler.runtime.binary import Binary, digest, unpack
from uop.compiler.runtime.cuda import NVRTC, open_cuda
from uop.compiler.runtime.opencl import OpenCLDevice
from uop.interpreter.evaluate import evaluate
from uop.spec.args import BinaryArg, ReduceArg, SourceArg, arg_of
from uop.spec.dtype import dtypes
from uop.spec.errors import BackendError, LackingError, UnsupportedError
from uop.spec.graph import kernels
from uop.spec.ops.names import Op
from uop.spec.text.json_form import from_json, to_json
from uop.spec.text.program import parse, print_program
from uop.spec.uop import UOp, const, param

COUNT = 5
GIVEN = {1: np.arange(COUNT, dtype=np.int32)}
TARGETS_HERE = ["opencl", "cuda-host"]


def plus(number: int) -> UOp:
    """A kernel that adds a number."""
    i = special(COUNT)
    total = UOp(Op.ADD, load(kernel_param(1, COUNT), i), const(number, dtypes.int32))
    body = UOp(Op.SINK, store(kernel_param(0, COUNT), i, total))
    return program(body, COUNT, COUNT)


def parts(root: UOp) -> tuple[UOp, str, Binary]:
    """The only PROGRAM, its SOURCE and its BINARY."""
    (body,) = kernels(root)
    source = arg_of(body.src[1], SourceArg).text
    return body, source, unpack(arg_of(body.src[2], BinaryArg).data, source)


def with_bytes(root: UOp, data: bytes) -> UOp:
    """The program with other bytes in its only PROGRAM."""
    (body,) = kernels(root)
    other = UOp(Op.PROGRAM, *body.src[:2], UOp(Op.BINARY, arg=BinaryArg(data)))
    return root.substitute({body: other})


def ran(root: UOp, target: str = "opencl") -> list[int]:
    found = compile(root, target).run(GIVEN)
    assert isinstance(found, dict)
    result: list[int] = found[0].tolist()
    return result


@pytest.mark.parametrize("target", TARGETS_HERE)
@pytest.mark.usefixtures("opencl")
def test_render_fills_the_source_and_the_device_the_binary(target: str) -> None:
    compiled = compile(plus(3), target)
    rendered = compiled.stages["render"]
    (empty,) = kernels(rendered)
    assert empty.src[2].shape == (0,)
    filled = compiled.with_binaries(execute.open_device(TARGETS[target]))
    body, source, binary = parts(filled)
    assert body.src[:2] == empty.src[:2]
    assert (binary.target, binary.kernel) == (target, "kernel_0_5")
    assert binary.source == digest(source.encode())
    assert len(binary.code) > 100
    assert parse(print_program(filled)) is filled
    assert from_json(json.loads(json.dumps(to_json(filled)))) is filled
    assert ran(filled, target) == [3, 4, 5, 6, 7]
    result = evaluate(filled, GIVEN)
    assert isinstance(result, dict)
    assert result[0].tolist() == [3, 4, 5, 6, 7]


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS_HERE)
@pytest.mark.usefixtures("opencl")
def test_a_program_runs_from_its_binary_and_not_from_its_source(target: str) -> None:
    """The code is that of another kernel, which shows in the result."""
    device = execute.open_device(TARGETS[target])
    filled, other = (compile(plus(n), target).with_binaries(device) for n in (3, 40))
    code = parts(other)[2].code
    swapped = with_bytes(filled, replace(parts(filled)[2], code=code).pack())
    assert ran(swapped, target) == [40, 41, 42, 43, 44]


def test_binaries_and_sources_run_side_by_side(run_on_opencl: OpenCLDevice) -> None:
    whole = compile(plus(3))
    filled = compile(whole.with_binaries(run_on_opencl))
    jobs = [Job(filled, (GIVEN, GIVEN)), Job(whole, (GIVEN,))]
    found = run_many(jobs, device=run_on_opencl)
    for outcome, count in zip(found, (2, 1), strict=True):
        assert isinstance(outcome, list)
        assert [r[0].tolist() for r in outcome] == [[3, 4, 5, 6, 7]] * count  # type: ignore[index]


def test_every_kernel_of_a_tensor_program_has_its_own_binary(run_on_opencl: OpenCLDevice) -> None:
    x = param(0, (4, 3), dtypes.float32)
    total = UOp(Op.REDUCE, UOp(Op.MUL, x, x), arg=ReduceArg(Op.ADD, (1,)))
    compiled = compile(UOp(Op.SUB, x, UOp(Op.CONTIGUOUS, total)))
    data = {0: np.arange(12, dtype=np.float32).reshape(4, 3)}
    filled = compiled.with_binaries(run_on_opencl)
    assert len(kernels(filled)) == len(kernels(compiled.stages["render"])) > 1
    again = compile(filled)
    assert len({step.binary for step in again.executable.kernels}) == len(kernels(filled))
    found, right = again.run(data), compiled.run(data)
    assert isinstance(found, dict)
    assert found[1].tobytes() == np.asarray(right).tobytes()


@pytest.mark.usefixtures("opencl")
def test_a_binary_that_is_not_whole_or_of_another_source_is_refused() -> None:
    filled, other = (compile(plus(n), "cuda-host").with_binaries() for n in (3, 40))
    data = parts(filled)[2].pack()
    head = data.index(b"\n", 20)
    for broken, said in (
        (data[:-1], "bytes of code that are cut off or damaged"),
        (data[:head], "bytes of code that are cut off or damaged"),
        (data[: head - 20], "a head that is cut off or damaged"),
        (data[:16], "a head that is cut off or damaged"),
        (data[:13] + 100_000 * b"[" + data[head:], "a head that is cut off or damaged"),
        (data[:7], "7 bytes that start with b'uop bin'"),
        (b"\x7fELF", "4 bytes that start with"),
        (bytes([*data[:-1], data[-1] ^ 1]), "bytes of code that are cut off or damaged"),
        (parts(other)[2].pack(), "code of another SOURCE"),
    ):
        with pytest.raises(LackingError, match=r"PROGRAM\.binary") as caught:
            compile(with_bytes(filled, broken), "cuda-host")
        assert said in str(caught.value)


def test_a_binary_for_another_machine_is_refused_where_it_would_run(opencl: OpenCLDevice) -> None:
    filled = compile(plus(3)).with_binaries(opencl)
    with pytest.raises(UnsupportedError, match="a BINARY for opencl, not for cuda-host"):
        compile(filled, "cuda-host")
    elsewhere = replace(parts(filled)[2], machine="Other GPU (OpenCL 1.2)")
    moved = compile(with_bytes(filled, elsewhere.pack()))
    with pytest.raises(UnsupportedError, match=r"a BINARY for Other GPU \(OpenCL 1.2\); this is"):
        moved.run(GIVEN)
    garbage = replace(parts(filled)[2], code=b"no code of any driver")
    with pytest.raises(BackendError, match="refuses the binary"):
        compile(with_bytes(filled, garbage.pack())).run(GIVEN)
    library = compile(plus(3), "cuda-host").with_binaries()
    garbage = replace(parts(library)[2], code=b"no library")
    with pytest.raises(BackendError, match="refuses the library"):
        compile(with_bytes(library, garbage.pack()), "cuda-host").run(GIVEN)


def test_a_binary_of_a_list_that_no_render_leaves_is_refused() -> None:
    filled = compile(plus(3), "cuda-host").with_binaries()
    (body,) = kernels(filled)
    fold = UOp(Op.STACK, const(1, dtypes.int32), const(2, dtypes.int32))
    vector = UOp(Op.LINEAR, *fold.src, fold, *body.src[0].src, UOp(Op.ADD, fold, fold))
    other = filled.substitute({body: UOp(Op.PROGRAM, vector, *body.src[1:])})
    with pytest.raises(UnsupportedError, match="whose LINEAR is not one of `render`"):
        compile(other, "cuda-host")


@pytest.mark.cuda
def test_cuda_code_is_compiled_without_a_gpu() -> None:
    """It is not run here: PTX of any architecture, and machine code, come from NVRTC."""
    compiled = compile(plus(3), "cuda")
    for compiler, start in ((NVRTC(), b"//"), (NVRTC("sm_90"), b"\x7fELF")):
        filled = compiled.with_binaries(compiler)
        _, _, binary = parts(filled)
        assert binary.machine == compiler.machine
        assert binary.code.lstrip().startswith(start)
        assert compile(filled, "cuda").executable.kernels[0].binary == binary


def test_a_gpu_runs_machine_code_of_its_own_and_older_ptx(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda, "require", lambda module, extra: cupy_stand_in.MODULES[module])
    device = open_cuda()
    runs = [device.runs(m) for m in ("sm_90", "sm_80", "compute_80", "compute_100", "opencl")]
    assert runs == [True, False, True, False, False]
    compiled = compile(plus(3), "cuda")
    filled = compile(compiled.with_binaries(device), "cuda")
    found = filled.run(GIVEN, device)
    assert isinstance(found, dict)
    assert found[0].tolist() == [3, 4, 5, 6, 7]


def test_a_program_without_kernels_has_nothing_to_fill() -> None:
    compiled = compile(UOp(Op.SINK), "cuda-host")
    assert isinstance(compiled, Compiled)
    assert compiled.with_binaries() is compiled.stages["render"]
