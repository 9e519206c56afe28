"""What is installed: packages, files in the wheel, imports, and the README's test command."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.metadata import Distribution, packages_distributions
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import uop
from uop.spec.ops.names import Op

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES: list[str] = PROJECT["tool"]["setuptools"]["packages"]
FOLDERS = {
    "uop": ROOT / "uop",
    **{
        name: ROOT / folder
        for name, folder in PROJECT["tool"]["setuptools"]["package-dir"].items()
        if name != "uop"
    },
}


def shipped_files() -> dict[str, Path]:
    """Every file that belongs in the wheel, by its path there: of examples/ the programs alone."""
    return {
        f"{name.replace('.', '/')}/{path.relative_to(folder).as_posix()}": path
        for name, folder in FOLDERS.items()
        for path in (folder.glob("*[py]") if name == "uop.examples" else folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def dependencies() -> set[str]:
    """The distributions named by the core and by every extra."""
    extras: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
    lines = [
        *PROJECT["project"]["dependencies"],
        *(line for extra in extras.values() for line in extra),
    ]
    return {re.split(r"[^\w-]", line, maxsplit=1)[0] for line in lines}


def imported_modules(path: Path) -> set[str]:
    """The absolute imports anywhere in a file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names=names):
                found.update(alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                found.add(module)
    return found


def modules() -> dict[str, Path]:
    """Every product module, by the name under which it is imported."""
    return {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path
        for name, path in shipped_files().items()
        if name.endswith(".py")
    }


def imports_at_run_time(path: Path, known: Collection[str]) -> set[str]:
    """The product modules that a file imports, at its start or later; not those for types alone."""

    def nodes(tree: ast.AST) -> Iterator[ast.AST]:
        for node in ast.iter_child_nodes(tree):
            if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
                yield node
                yield from nodes(node)

    found: set[str] = set()
    for node in nodes(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import(names=names):
                found.update(alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                inner = (f"{module}.{alias.name}" for alias in names)
                found.update(name if name in known else module for name in inner)
    return found & {*known}


def without_encoding(path: Path) -> list[str]:
    """The calls that read or write text in the encoding of the place where they run."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Call(ast.Attribute(attr="read_text"), [], keywords):
                pass
            case ast.Call(ast.Attribute(attr="write_text"), [_], keywords):
                pass
            case ast.Call(_, _, keywords) if "text=True" in map(ast.unparse, keywords):
                pass
            case _:
                continue
        if "encoding" not in {k.arg for k in keywords}:
            found.append(f"{path}:{node.lineno}")
    return found


SETS_OF_OPS = {
    "uop.compiler.targets.target": "COPIES",
    "uop.conformance.adapters.compositions": "COMPUTED",
    "uop.conformance.backends.tinygrad_graph": "REDUCES",
    "uop.conformance.judging.verdict": "NOT_COMPUTING",
    "uop.conformance.suite.levels.graph.pairs": "ARITHMETIC",
    "uop.conformance.suite.levels.graph.steps": "CALLED FOLDS MEMORY",
    "uop.conformance.suite.levels.kernel.scalar": "KERNEL_OPS",
    "uop.conformance.suite.levels.op.memory": "MARKERS",
    "uop.interpreter.accepted.liberties": "GIVEN_BITS",
    "uop.spec.graph": "AROUND_CALLS CALLS LEAVES",
    "uop.spec.kernel.forms": "BELOW_THE_GRAPH ELEMENTWISE OPAQUE",
    "uop.spec.kernel.listing": "BLOCK_ENDS BLOCK_STARTS",
    "uop.spec.ops.codegen": "PROGRAM_PARTS",
    "uop.spec.ops.names": "CONVERSIONS FLOOR_DIVISIONS",
    "uop.spec.properties.symbolic": "SIZE_OPS",
}
"""The sets of ops of each module. A new one is rather a field or a property of `OpDef`."""


def sets_of_ops(module: str, text: str) -> list[str]:
    """The names that a module binds to collections of ops alone; a dict gives an op something."""
    bound = (n for n in ast.parse(text).body if isinstance(n, ast.Assign | ast.AnnAssign))
    nodes = (n for b in bound if b.value for n in ast.walk(b) if isinstance(n, ast.Name))
    names = {n.id for n in nodes if isinstance(n.ctx, ast.Store)}
    known = vars(import_module(module))
    values = {name: known.get(name) for name in sorted(names)}
    kinds = (frozenset, set, tuple, list)
    sets = {name: value for name, value in values.items() if isinstance(value, kinds) and value}
    return [name for name, ops in sets.items() if all(isinstance(op, Op) for op in ops)]


def test_a_set_of_ops_is_read_by_several_modules() -> None:
    apart = (".findings.", ".fuzz.cluster")  # These need other packages.
    files = {n: path for n, path in modules().items() if not any(a in n for a in apart)}
    texts = {name: path.read_text("utf-8") for name, path in files.items()}
    found = {name: sets_of_ops(name, text) for name, text in texts.items() if "Op" in text}
    assert {name: " ".join(sets) for name, sets in found.items() if sets} == SETS_OF_OPS
    imported = {
        (node.module, alias.name)
        for text in texts.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert {(name, each) for name, sets in found.items() for each in sets} <= imported


def test_no_import_goes_in_a_circle() -> None:
    files = modules()
    graph = {name: imports_at_run_time(path, files) - {name} for name, path in files.items()}
    assert len(graph) > 400
    TopologicalSorter(graph).prepare()


def test_no_text_has_the_encoding_of_the_place() -> None:
    sources = [path for path in shipped_files().values() if path.suffix == ".py"]
    assert [place for path in sources for place in without_encoding(path)] == []


def test_the_package_list_is_the_folders_with_an_init() -> None:
    on_disk = {
        Path(name).parent.as_posix().replace("/", ".")
        for name in shipped_files()
        if name.endswith("/__init__.py")
    }
    assert sorted(PACKAGES) == sorted(on_disk)


def test_every_python_file_lies_in_a_listed_package() -> None:
    homes = {
        Path(name).parent.as_posix().replace("/", ".")
        for name in shipped_files()
        if name.endswith(".py")
    }
    assert homes <= set(PACKAGES)


def test_the_wheel_holds_every_file_of_the_packages() -> None:
    installed = Distribution.from_name("uop")
    origin = installed.read_text("direct_url.json")
    if origin and json.loads(origin).get("dir_info", {}).get("editable"):
        pytest.skip("editable install: nothing was packed; tox runs this against the wheel")
    packed = {file.as_posix() for file in installed.files or ()}
    missing = sorted(set(shipped_files()) - packed)
    assert not missing, "add them to [tool.setuptools.package-data]"


def test_spec_needs_nothing_but_the_standard_library() -> None:
    foreign = {
        (path.name, module)
        for path in FOLDERS["uop.spec"].rglob("*.py")
        for module in imported_modules(path)
        if module.split(".")[0] not in sys.stdlib_module_names and not module.startswith("uop.spec")
    }
    assert not foreign


def test_every_import_is_a_declared_dependency() -> None:
    declared = dependencies()
    distributions = packages_distributions()
    foreign = {
        (name, module)
        for name, path in shipped_files().items()
        # A finding is a script for the library that it is about; its own tests check its imports.
        if name.endswith(".py") and not name.startswith("uop/conformance/findings/")
        for module in {m.split(".")[0] for m in imported_modules(path)}
        if module not in sys.stdlib_module_names and module != "uop"
        if not declared & {d.replace("_", "-") for d in distributions.get(module, [module])}
    }
    assert not foreign


def test_contributing_gives_a_reason_for_every_dependency() -> None:
    lines = (ROOT / "CONTRIBUTING.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    # cupy's wheels carry the CUDA version in their name.
    names = {name.split("-cuda")[0] for name in dependencies()}
    assert {name for name in names if not any(name in row for row in rows)} == set()


def test_importing_uop_imports_neither_numpy_nor_click() -> None:
    assert heavy_modules_after("import uop") == set()


def test_a_public_name_is_imported_on_use() -> None:
    assert heavy_modules_after("from uop import UOp, Op, dtypes, param, const, parse") == set()


@pytest.mark.parametrize("name", uop.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(uop, name).__module__.startswith("uop.")


def test_all_lists_every_public_name_and_mypy_sees_each() -> None:
    tree = ast.parse((ROOT / "uop" / "__init__.py").read_text())
    typed = {
        alias.asname
        for block in ast.walk(tree)
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == set(uop.__all__)


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        getattr(uop, "nonsense")  # noqa: B009 - the name is unknown to mypy on purpose


def test_ci_runs_the_test_command_of_the_readme() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert {line for line in lines if line.endswith("/tox")} & {
        *(ROOT / "README.md").read_text().splitlines()
    }


def test_the_oldest_versions_are_those_that_the_project_allows() -> None:
    named = (
        PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"].values(),
    )
    allowed = {
        r.name: r.specifier for line in chain.from_iterable(named) for r in [Requirement(line)]
    }
    for line in (ROOT / "tests" / "oldest.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        oldest = Requirement(line)
        (version,) = (Version(s.version) for s in oldest.specifier)
        assert version in allowed[oldest.name]
        if oldest.marker is None or "<" in str(oldest.marker):
            (floor,) = (s.version for s in allowed[oldest.name] if s.operator == ">=")
            assert version == Version(floor)


def test_classifiers_name_supported_pythons() -> None:
    names = {c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"]}
    text = (ROOT / "tests" / "pythons.py").read_text()
    assert all(f'"{name}"' in text for name in names)


def heavy_modules_after(code: str) -> set[str]:
    """Third-party top-level modules that a fresh interpreter has loaded after running `code`."""
    probe = f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    before = subprocess.run(
        [sys.executable, "-c", "import sys, json; print(json.dumps(sorted(sys.modules)))"],
        capture_output=True,
        check=True,
        text=True,
    )
    after = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, check=True, text=True
    )
    loaded = set(json.loads(after.stdout)) - set(json.loads(before.stdout))
    tops = {module.split(".")[0] for module in loaded}
    return tops - set(sys.stdlib_module_names) - {"uop"}
