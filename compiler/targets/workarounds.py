"""Known bugs of device compilers, and the workarounds in rendered code.

Each bug is listed once. The code of a workaround names it, and a test shows that it is needed.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Workaround:
    """A compiler bug, its workaround, the module of the workaround, and the test that needs it."""

    name: str
    seen_in: str
    fault: str
    instead: str
    where: str
    test: str


WORKAROUNDS = (
    Workaround(
        "trunc-of-literal-nan",
        "PoCL 3.0, optimised",
        "trunc of a literal NaN is folded into an undefined value",
        "TRUNC works on the bits",
        "compiler/targets/prelude.py",
        "tests/compiler/test_targets_constants.py::test_truncating_a_literal_nan_gives_nan",
    ),
    Workaround(
        "function-of-literal-nan",
        "PoCL 3.1, optimised",
        "exp2 and pow of a literal NaN are folded into an undefined value, or crash the process",
        "a NaN does not reach the built-in functions",
        "compiler/targets/prelude.py",
        "tests/compiler/test_targets_constants.py::test_literals_fold_to_what_is_computed",
    ),
    Workaround(
        "copy-or-arithmetic",
        "PoCL 3.1 (LLVM 15), clang 14 and 15, Intel's CPU runtime 2026.2, optimised",
        "c ? x : x * y becomes x * (c ? 1 : y), and so with +, - and /: a signalling NaN that is "
        "to be copied comes back quiet",
        "WHERE is a function that is not inlined where one operand is computed from the other",
        "compiler/targets/cstyle.py",
        "tests/compiler/test_pipeline.py::test_a_copy_beside_arithmetic_keeps_its_bits",
    ),
    Workaround(
        "complement-of-max",
        "Intel's CPU runtime 2026.2, work items one by one, optimised",
        "the complement of a maximum or minimum of 32 or 64 bits, which -1 - x and the maximum of "
        "two complements become too, is not taken",
        "MAX and MIN of such integers are functions that are not inlined",
        "compiler/targets/prelude.py",
        "tests/compiler/test_targets_ops.py::test_complements_around_an_extremum",
    ),
    Workaround(
        "integer-minus-zero",
        "Intel's CPU runtime 2026.2, optimised",
        "a float64 cast to int32 and back, where a comparison chooses it, is truncated only: -0.5 "
        "becomes -0.0, not the 0 of an integer",
        "casts of floats to integers are functions that are not inlined",
        "compiler/targets/prelude.py",
        "tests/compiler/test_targets_constants.py::test_literals_fold_to_what_is_computed",
    ),
    Workaround(
        "vectorizer-crash",
        "Intel's CPU runtime 2026.2",
        "building a loop with a value that is chosen inside it ends the process, in SimplifyCFG",
        "work items are computed one by one",
        "compiler/runtime/drivers.py",
        "tests/conformance/test_findings.py::"
        "test_a_loop_is_built_where_work_items_are_computed_one_by_one",
    ),
    Workaround(
        "contraction",
        "PoCL 3.0",
        "a * b + c is fused unless the source forbids it",
        "the pragma FP_CONTRACT OFF heads every source, and select splits MULACC",
        "compiler/targets/opencl.py",
        "tests/compiler/test_targets_ops.py::test_multiply_add_is_not_contracted",
    ),
    Workaround(
        "sine-next-to-a-large-one",
        "PoCL 3.0",
        "sin of a vector with an element above some 39,000 is wrong in its small elements: "
        "sin(2.4e-38) is 0.0156",
        "such a vector is computed element by element",
        "compiler/targets/opencl.py",
        "tests/compiler/test_vectors.py::test_a_sine_beside_that_of_a_large_number",
    ),
    Workaround(
        "negation-of-int16",
        "ptxas of CUDA 13.0, sm_90",
        "the negation of the lowest int16 is not cut to 16 bits before it is extended, compared or "
        "shifted: 32768 instead of -32768",
        "a function that no compiler sees through hides arithmetic that may become a negation",
        "compiler/stages/render/statements.py",
        "tests/compiler/test_cuda_nvrtc.py::test_no_int16_is_negated_in_16_bits",
    ),
    Workaround(
        "copy-or-constant",
        "ptxas of CUDA 13.0, sm_90",
        "x < c ? c : x becomes a maximum, which makes one NaN of all",
        "the same function hides the condition",
        "compiler/stages/render/statements.py",
        "tests/compiler/test_cuda_nvrtc.py::test_a_choice_beside_a_constant_is_no_maximum",
    ),
    Workaround(
        "signalling-constant",
        "NVRTC 13.0 and 13.5",
        "a float64 added to a literal NaN that signals is infinite once it is cast to float32",
        "the bits of such a literal are hidden",
        "compiler/targets/cuda.py",
        "tests/compiler/test_cuda_nvrtc.py::test_a_signalling_literal_is_not_folded",
    ),
    Workaround(
        "pow-of-signalling-nan",
        "Oclgrind 21.10 and g++, whose pow is that of the C library",
        "x to the 0 and 1 to the y are NaN where the other operand is a signalling NaN",
        "POW compares with both before it calls pow",
        "compiler/targets/prelude.py",
        "tests/compiler/test_runtime_cuda_host.py::"
        "test_powers_that_are_one_whatever_the_other_operand",
    ),
)
