"""A program compiled for a target: the output of each stage, and functions that run it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from uop.compiler.execute import Executable, Inputs, Output
from uop.compiler.loaded import Loaded
from uop.compiler.runtime.binary import Binary, digest
from uop.compiler.runtime.device import Compiler, Device
from uop.compiler.stages.render.stage import kernel_names
from uop.spec.args import BinaryArg, SourceArg, arg_of
from uop.spec.graph import kernels
from uop.spec.ops.names import Op
from uop.spec.uop import UOp


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A program compiled for a target."""

    stages: Mapping[str, UOp]
    """The output of each stage by name, in their order."""
    executable: Executable

    @property
    def source(self) -> str:
        """The source of all kernels in the language of the target."""
        target = self.executable.target
        names = self.executable.names
        return target.source([target.kernel(linear, name) for linear, name in names.items()])

    def with_binaries(self, compiler: Compiler | None = None) -> UOp:
        """The output of `render`, with the machine code of each kernel in its PROGRAM.

        `compiler` is a device, by default that of the target. `compile` accepts the result, and its
        kernels then run without being built.
        """
        rendered = self.stages["render"]
        target = self.executable.target
        compiler = compiler or target.compiler()
        new: dict[UOp, UOp] = {}
        names = kernel_names(rendered)
        for body in kernels(rendered):
            linear, source, _ = body.src
            text = arg_of(source, SourceArg).text
            code = compiler.compile(text)
            about = target.name, compiler.machine, names[linear], digest(text.encode())
            data = BinaryArg(Binary(*about, code).pack())
            new[body] = UOp(Op.PROGRAM, linear, source, UOp(Op.BINARY, arg=data))
        return rendered.substitute(new)

    def run(self, inputs: Inputs | None = None, device: Device | None = None) -> Output:
        """Run the program on inputs by slot, by default on the device of the target.

        Returns an array, a tuple for a TUPLE, or for a SINK a dict of the contents by slot.
        """
        with self.load(device) as loaded:
            return loaded.run(inputs)

    def load(self, device: Device | None = None) -> Loaded:
        """Load the program on a device, by default that of the target, to run it many times there:
        on arrays, or on what earlier runs left on the device.
        """
        return Loaded(self.executable, self.source, device)
