"""Runs a module of the project with seeded faults, before anything that may hold one is imported.

`python -m uop.conformance.mutants.run NAME[,NAME...] MODULE ARGUMENT...`
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from uop.conformance.mutants.catalogue import Mutant, find_mutants, mutated


class MutantLoader(SourceFileLoader):
    """Loads a module from its text with its faults."""

    mutants: Sequence[Mutant]

    def get_code(self, fullname: str) -> CodeType:
        """Compile always: the bytecode cached on disk has no fault."""
        text = self.get_source(fullname) or ""
        for mutant in self.mutants:
            text = mutated(mutant, text)
        code: CodeType = compile(text, self.path, "exec", dont_inherit=True)
        return code


class Finder(MetaPathFinder):
    """Finds the modules with faults as Python would, and loads them by `MutantLoader`."""

    def __init__(self, mutants: Sequence[Mutant]) -> None:
        self.mutants = mutants

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        here = [mutant for mutant in self.mutants if mutant.module == fullname]
        if not here:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None:
            loader = MutantLoader(fullname, spec.origin)
            loader.mutants = here
            spec.loader = loader
        return spec


def install(mutants: Sequence[Mutant]) -> None:
    """Load the modules of the mutants with their faults from now on."""
    for mutant in mutants:
        if mutant.module in sys.modules:
            raise ImportError(f"{mutant.module} is loaded already")
    sys.meta_path.insert(0, Finder(mutants))


if __name__ == "__main__":
    names, module, *arguments = sys.argv[1:]
    install(find_mutants(names))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
