"""Runs a module of the project with one seeded fault, before anything that may hold it is imported.

`python -m uop.conformance.mutants.run NAME MODULE ARGUMENT...`
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from uop.conformance.mutants.catalogue import Mutant, mutants, mutated


class MutantLoader(SourceFileLoader):
    """Loads a module from its text with the fault."""

    mutant: Mutant

    def get_code(self, fullname: str) -> CodeType:
        """Compile always: the bytecode cached on disk has no fault."""
        text = mutated(self.mutant, self.get_source(fullname) or "")
        code: CodeType = compile(text, self.path, "exec", dont_inherit=True)
        return code


class Finder(MetaPathFinder):
    """Finds the module with the fault as Python would, and loads it by `MutantLoader`."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.mutant.module:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None:
            loader = MutantLoader(fullname, spec.origin)
            loader.mutant = self.mutant
            spec.loader = loader
        return spec


def install(mutant: Mutant) -> None:
    """Load the module of the mutant with its fault from now on."""
    if mutant.module in sys.modules:
        raise ImportError(f"{mutant.module} is loaded already")
    sys.meta_path.insert(0, Finder(mutant))


if __name__ == "__main__":
    name, module, *arguments = sys.argv[1:]
    install(mutants()[name])
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
