"""Runs a module of the suite with one seeded fault: `python -m uop.conformance.mutants.run NAME
MODULE ARGUMENT...`. Nothing of the project is imported before the fault is in place.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from uop.conformance.mutants.catalogue import Mutant, mutants, mutated


class Fault(SourceFileLoader):
    """Loads a module from its text with the fault."""

    mutant: Mutant

    def get_code(self, fullname: str) -> CodeType:
        """Compiled anew each time: what is cached on disk is the module without the fault."""
        text = mutated(self.mutant, self.get_source(fullname) or "")
        code: CodeType = compile(text, self.path, "exec", dont_inherit=True)
        return code


class Finder(MetaPathFinder):
    """Finds the one module that has the fault, as Python would, and loads it by `Fault`."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.mutant.module:
            return None
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and spec.origin is not None:
            loader = Fault(fullname, spec.origin)
            loader.mutant = self.mutant
            spec.loader = loader
        return spec


def install(mutant: Mutant) -> None:
    """From now on the module of the mutant is loaded with its fault."""
    if mutant.module in sys.modules:
        raise ImportError(f"{mutant.module} is loaded already")
    sys.meta_path.insert(0, Finder(mutant))


if __name__ == "__main__":
    name, module, *arguments = sys.argv[1:]
    install(mutants()[name])
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
