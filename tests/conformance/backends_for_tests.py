"""Backends with one fault each, loaded by workers as `backends_for_tests:Name`."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from uop.conformance.backends.interpreter import InterpreterBackend, interpret
from uop.conformance.protocol.types import (
    Hello,
    Limits,
    Outcome,
    Outputs,
    Problem,
    ProblemKind,
    Program,
)
from uop.interpreter.numeric.storage import Array, to_bits
from uop.spec.errors import UnsupportedError

kept: list[Any] = []


class Faulty(InterpreterBackend):
    """The interpreter, but for programs whose text holds the word `trigger`."""

    trigger = "SIN"

    def hello(self) -> Hello:
        known = super().hello()
        name = type(self).__name__
        return replace(known, name=name, version="1", device="test", limits=Limits(16))

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [
            self.misbehave(p) if self.trigger in p.text else super(Faulty, self).run([p])[0]
            for p in programs
        ]

    def misbehave(self, program: Program) -> Outcome:
        raise NotImplementedError


class Sticky(Faulty):
    """Negates wrong from its first FLIP on."""

    trigger = "FLIP"
    has_flipped = False

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return [self._sticky(program) for program in programs]

    def _sticky(self, program: Program) -> Outcome:
        if "NEG" in program.text and self.has_flipped:
            program = replace(program, text=program.text.replace("= NEG", "= CONTIGUOUS"))
        self.has_flipped |= self.trigger in program.text
        return interpret(program)


class Crashing(Faulty):
    def misbehave(self, program: Program) -> Outcome:
        print("about to crash", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError


class Exiting(Faulty):
    def misbehave(self, program: Program) -> Outcome:
        os._exit(7)


class Hanging(Faulty):
    def misbehave(self, program: Program) -> Outcome:
        time.sleep(3600)
        raise AssertionError


class Leaking(Faulty):
    def misbehave(self, program: Program) -> Outcome:
        kept.append(np.ones(64 << 20, np.uint8))
        return interpret(program)


class Chattering(Faulty):
    """Prints on stdout, which is where the frames go."""

    def misbehave(self, program: Program) -> Outcome:
        print("hello from a driver", flush=True)
        os.write(1, b"more of it\n")
        return interpret(program)


class Inaccurate(Faulty):
    """The last bit of the first element of every result is wrong."""

    trigger = "ADD"

    def misbehave(self, program: Program) -> Outcome:
        return Outputs(tuple(tuple(map(flipped, b)) for b in interpret(program).batches))


class InaccurateToo(Inaccurate):
    """Wrong in the same way."""


class WrongByte(Inaccurate):
    """Wrong where anything is cast to uint8."""

    trigger = "CAST %0 {dtype=uint8}"


class WrongUnsigned(Inaccurate):
    """Wrong where anything is cast to an unsigned dtype."""

    trigger = "CAST %0 {dtype=uint"


class Once(Faulty):
    """Does `HOW=FILE=COUNT` so often, by default once: the file has how often it has."""

    def __init__(self, argument: str) -> None:
        self.how, path, count = [*argument.split("="), "1"][:3]
        self.path, self.count = Path(path), int(count)

    @property
    def is_done(self) -> bool:
        done = len(self.path.read_text()) if self.path.exists() else 0
        self.path.write_text("x" * (done + 1))
        return done >= self.count

    def hello(self) -> Hello:
        known = super().hello()
        if self.how == "killed-first" and not self.is_done:
            os.kill(os.getpid(), signal.SIGKILL)
        another = self.how == "changes" and self.path.exists()
        return replace(known, device="another device") if another else known

    def misbehave(self, program: Program) -> Outcome:
        if not self.is_done:
            match self.how:
                case "hangs":
                    time.sleep(3600)
                case "exits" | "changes":
                    os._exit(7)
                case "killed":
                    os.kill(os.getpid(), signal.SIGKILL)
                case "leaks":
                    kept.append(np.ones(64 << 20, np.uint8))
                case "takes":
                    kept.append(np.ones(64 << 20, np.uint8))
                    time.sleep(3600)
        return interpret(program)


class CrashingTogether(Faulty):
    """Crashes on two programs at once, on neither alone."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        if len(programs) > 1:
            os._exit(3)
        return InterpreterBackend.run(self, programs)


class WrongTogether(Faulty):
    """Gives wrong results only for several programs at once."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        results = InterpreterBackend.run(self, programs)
        if len(programs) == 1:
            return results
        wrong = results[0]
        assert isinstance(wrong, Outputs)
        return [Outputs(tuple(tuple(map(flipped, b)) for b in wrong.batches)), *results[1:]]


class Poor(Faulty):
    """Knows ADD on float32 and nothing else."""

    def hello(self) -> Hello:
        ops = frozenset({"ADD", "PARAM"})
        return Hello("poor", "1", "test", ops, frozenset({"float32"}))

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        return InterpreterBackend.run(self, programs)


class Flushing(Faulty):
    """Reads the small numbers of a float16 as zeros, and sees XOR as OR."""

    trigger = "%"

    def misbehave(self, program: Program) -> Outcome:
        read = tuple(
            {slot: flushed(a) if a.dtype == np.float16 else a for slot, a in batch.items()}
            for batch in program.batches
        )
        return interpret(Program(program.text.replace("XOR", "OR"), read))


class Poorer(Faulty):
    """Knows ADD, but nothing to add."""

    def hello(self) -> Hello:
        return Hello("poorer", "1", "test", frozenset({"ADD"}), frozenset({"float32"}))


class Missing(Faulty):
    def hello(self) -> Hello:
        raise UnsupportedError("no driver here; install it with: pip install driver")


class DeadAtStart(Faulty):
    def hello(self) -> Hello:
        os._exit(1)


class HangingAtStart(Faulty):
    def hello(self) -> Hello:
        time.sleep(3600)
        return super().hello()


class Slow(Faulty):
    """Takes a while for every program."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        time.sleep(0.2 * len(programs))
        return InterpreterBackend.run(self, programs)


def flipped(a: np.ndarray) -> np.ndarray:
    changed = np.array(a, order="C")
    if changed.size and changed.dtype != np.bool_:
        to_bits(changed).reshape(-1)[0] ^= 1
    return changed


class Declining(Faulty):
    """Lists everything, and takes programs that add alone."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        no = Problem(ProblemKind.UNSUPPORTED, "declined")
        return [super(Declining, self).run([p])[0] if "ADD" in p.text else no for p in programs]


class Picky(Faulty):
    """Refuses what is not finite."""

    def run(self, programs: Sequence[Program]) -> list[Outcome]:
        no = Problem(ProblemKind.UNSUPPORTED, "not here")
        return [no if self.refuses(p) else InterpreterBackend.run(self, [p])[0] for p in programs]

    def refuses(self, program: Program) -> bool:
        arrays = (a for batch in program.batches for a in batch.values())
        return any(not np.isfinite(a.astype(np.float64)).all() for a in arrays)


class NoAddition(Picky):
    """Refuses every ADD."""

    def refuses(self, program: Program) -> bool:
        return "ADD" in program.text


class Confused(Faulty):
    """Gives what is no outcome."""

    def misbehave(self, program: Program) -> Outcome:
        return None  # type: ignore[return-value]


class Untyped(Faulty):
    def misbehave(self, program: Program) -> Outcome:
        return Outputs((([0.0],),))  # type: ignore[arg-type]


class Raising(Faulty):
    def misbehave(self, program: Program) -> Outcome:
        raise KeyError("boo")


class Gullible(Faulty):
    """Accepts whatever folds."""

    trigger = "REDUCE"

    def misbehave(self, program: Program) -> Outcome:
        return Outputs(((),))


class UnknownKnob(InterpreterBackend):
    def hello(self) -> Hello:
        return replace(super().hello(), profile="mood=good")


class Told(Faulty):
    """Tells what would move the cursor of a terminal, and half a character."""

    def misbehave(self, program: Program) -> Outcome:
        return Problem(ProblemKind.INTERNAL, "esc \x1b[2J \ud800", "\0")


class Saying(InterpreterBackend):
    """Says of itself what its name is followed by."""

    def __init__(self, said: str) -> None:
        self.said = said

    def hello(self) -> Hello:
        return replace(super().hello(), **WRONG[self.said])


WRONG: dict[str, dict[str, Any]] = {
    "no-limits": {"limits": None},
    "no-programs": {"limits": Limits(programs=0)},
    "word-programs": {"limits": Limits(programs="x")},  # type: ignore[arg-type]
    "negative-elements": {"limits": Limits(elements=-1)},
    "most-programs": {"limits": Limits(programs=1 << 70)},
    "number-op": {"ops": frozenset({"PARAM", 5})},
    "no-dtypes": {"dtypes": None},
    "one-edition": {"editions": "core"},
    "number-profile": {"profile": 7},
    "red-profile": {"profile": "\x1b[31m=1"},
}


class NoHello(InterpreterBackend):
    def hello(self) -> Hello:
        return {"name": "none"}  # type: ignore[return-value]


def flushed(a: Array) -> Array:
    return np.where(np.abs(a) < 2.0**-14, 0, a).astype(a.dtype)


class Alternating(Inaccurate):
    """Wrong on programs with a sine in every second process."""

    def __init__(self) -> None:
        mark = Path(os.environ["ALTERNATING"])
        self.is_wrong = not mark.exists()
        if self.is_wrong:
            mark.touch()
        else:
            mark.unlink()

    def misbehave(self, program: Program) -> Outcome:
        return super().misbehave(program) if self.is_wrong else interpret(program)


class FlagsOfProcessor(InterpreterBackend):
    """Sets the flags of the processor by which subnormals become zeros, as -ffast-math does."""

    def hello(self) -> Hello:
        flush_subnormals()
        return super().hello()


def flush_subnormals() -> None:
    """Set FTZ and DAZ in MXCSR, for this thread of a process on x86-64."""
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\x0f\xae\x17\xc3")  # ldmxcsr [rdi]; ret
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    flags = ctypes.c_uint32(0x9FC0)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)(ctypes.addressof(flags))
    kept.append(code)
