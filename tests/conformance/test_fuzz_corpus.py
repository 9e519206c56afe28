"""The corpus of a fuzz run: what is kept, what it survives, and how folders are joined."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uop.conformance.backends.interpreter import InterpreterBackend
from uop.conformance.checks import OptionError
from uop.conformance.fuzz import folders
from uop.conformance.fuzz.corpus import Corpus, cover, merge, minimize
from uop.conformance.fuzz.fuzz import fuzz
from uop.conformance.fuzz.reached import Reached, by_program, points_of, rules_on, text_of
from uop.conformance.judging.judge import Judge
from uop.conformance.judging.storage import file_text
from uop.conformance.judging.verdict import Status, Verdict
from uop.conformance.report.model import Report
from uop.conformance.report.tally import Tally
from uop.conformance.report.terminal import Display
from uop.conformance.run import replay as replaying
from uop.conformance.run.options import Options
from uop.conformance.run.tasks import Reaching
from uop.conformance.suite import generate
from uop.conformance.suite.case import Batch, Case, CaseId
from uop.conformance.suite.levels.written import by_file
from uop.conformance.suite.own_cases import suite_case
from uop.conformance.workers.in_process import InProcess
from uop.conformance.workers.sessions import started
from uop.conformance.workers.transport import Local
from uop.spec.case import UopFile
from uop.spec.dtype import dtypes
from uop.spec.latitude import STRICT
from uop.spec.ops.names import Op
from uop.spec.text.uop_file import parse_file, print_file
from uop.spec.uop import UOp, dims, index_const, param, variable

pytestmark = pytest.mark.usefixtures("choosing_backends")
HOUR = 3600.0
INACCURATE = "backends_for_tests:Inaccurate"
ID = CaseId("cases", "a.uop", "MIXED", "a.uop/case", 0)


class Enough(Display):
    """Ends a run, as Ctrl-C does, once it has judged so many programs."""

    def __init__(self, programs: int) -> None:
        self.programs = programs
        self.failing: list[Verdict] = []

    def progress(self, tally: Tally, seconds: float) -> None:
        if tally.programs >= self.programs:
            raise KeyboardInterrupt

    def failed(self, verdict: Verdict) -> None:
        self.failing.append(verdict)


def fuzzed(folder: Path, programs: int, backend: str = "interpreter", seed: int = 1) -> Report:
    """A run in this process that ends after so many programs."""
    levels = ("graph", "kernel", "twin")
    options = Options(
        backend, seed, levels, seconds=HOUR, workers=1, output=folder.parent / "found"
    )
    corpus = Corpus.read(folder)
    return fuzz(options, Enough(programs), InProcess(options), corpus=corpus)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus of a short run."""
    folder = tmp_path_factory.mktemp("run") / "corpus"
    fuzzed(folder, 40)
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    copy = tmp_path / "corpus"
    copy.mkdir()
    for path in filled.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    return copy


def case_of(text: str) -> Case:
    case = suite_case(ID, parse_file(text).cases[0])
    assert isinstance(case, Case)
    return case


def program(op: str, dtype: str = "int32") -> Case:
    return case_of(
        f"%0 = PARAM [2] {{slot=0, dtype={dtype}}} : {dtype}[2]\n"
        f"%1 = {op} %0 : {dtype}[2]\ninput 0 = [1,2]\n"
    )


def test_each_file_is_a_program_named_by_its_sha256(filled: Path) -> None:
    files = list(filled.iterdir())
    assert len(files) > 20
    for path in files:
        assert path.name == f"{hashlib.sha256(path.read_bytes()).hexdigest()}.uop"
    assert not Corpus.read(filled).left_alone


def test_a_file_reaches_what_its_program_reached(filled: Path) -> None:
    corpus = Corpus.read(filled)
    for path in filled.iterdir():
        text = path.read_text()
        # The suite binds variables to the inputs; the file has the program before that.
        assert file_text(parse_file(text).cases[0]) == text
        assert points_of(case_of(text)) == corpus.programs[path.name].points


def test_all_programs_replay_without_the_generator(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(generate, "group_of")
    verdicts = replaying.replay([filled], "interpreter")
    assert len(verdicts) == len(list(filled.iterdir()))
    assert {one.verdict.status for one in verdicts} == {Status.PASSED}


def test_a_run_judges_the_corpus_first_and_adds_what_it_lacks(folder: Path) -> None:
    before = {path.name for path in folder.iterdir()}
    report = fuzzed(folder, len(before) + 1, seed=2)
    first = [cell for cell in report.cells if cell.level == "cases"]
    assert {cell.op for cell in first} == before
    assert {path.name for path in folder.iterdir()} > before


def test_the_same_programs_reach_nothing_new(folder: Path) -> None:
    before = sorted(folder.iterdir())
    fuzzed(folder, len(before) + 1)
    assert sorted(folder.iterdir()) == before


@pytest.mark.slow
def test_what_fails_is_a_repro_and_not_kept(tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    report = fuzzed(folder, 60, INACCURATE)
    assert report.failures
    kept = replaying.replay([folder], INACCURATE)
    assert {one.verdict.status for one in kept} == {Status.PASSED}


@pytest.mark.slow
def test_a_program_of_the_corpus_that_fails_has_a_cause(folder: Path) -> None:
    failing = [path.name for path in folder.iterdir() if "ADD" in path.read_text()]
    size = len(list(folder.iterdir()))
    report = fuzzed(folder, size, INACCURATE)
    assert {id.split("/")[1] for f in report.failures for id in f.cases} <= set(failing)
    assert report.failures
    assert all((folder / name).exists() for name in failing)


@pytest.mark.slow
def test_other_files_are_named_and_left_alone(folder: Path, uop: Any, tmp_path: Path) -> None:
    whole = sorted(folder.iterdir())
    cut, renamed = whole[0], folder / f"{'0' * 64}.uop"
    cut.write_text(cut.read_text()[:40])
    renamed.write_bytes(whole[1].read_bytes())
    (folder / "notes.txt").write_text("mine")
    (folder / "\x1b[2J.uop").mkdir()
    (folder / ".part").write_text("half")
    wrong, odd = (
        folder / f"{hashlib.sha256(data).hexdigest()}.uop" for data in (b"%0 = NEG\n", b"\xff")
    )
    wrong.write_bytes(b"%0 = NEG\n")
    odd.write_bytes(b"\xff")
    before = {path: path.is_file() and path.read_bytes() for path in folder.iterdir()}
    corpus = Corpus.read(folder)
    assert len(corpus.programs) == len(whole) - 1
    assert len(corpus.left_alone) == 6
    assert all(line.isprintable() for line in corpus.left_alone)
    for path, reason in (
        (cut, "damaged"),
        (renamed, "damaged"),
        (folder / "notes.txt", "SHA256.uop"),
        (wrong, "NEG.arity"),
        (odd, "UTF-8"),
    ):
        assert any(str(path) in line and reason in line for line in corpus.left_alone), reason
    words = ("--corpus", folder, "--time", "5s", "-n", 1, "--output", tmp_path / "found")
    outcome = uop("fuzz", "interpreter", *words)
    assert outcome.out.count("left alone: ") == 6
    assert f"of earlier runs: {len(whole) - 1} programs in {folder}" in outcome.out
    assert {path: path.is_file() and path.read_bytes() for path in before} == before


def test_source_text_of_a_stranger_does_not_run(tmp_path: Path) -> None:
    known = next(case for case in by_file("kernel")["CUSTOM"] if case.root is not None)
    # The same text with other spaces is not registered.
    text = print_file(UopFile((known,))).replace("max({0}, {1})", "max({0},{1})")
    made = suite_case(ID, parse_file(text).cases[0])
    assert isinstance(made, Case)
    with started("interpreter") as session:
        assert not list(Reached().new(Judge(session, STRICT), [made], {}))
    text = text_of(made)
    name = f"{hashlib.sha256(text.encode()).hexdigest()}.uop"
    (tmp_path / name).write_text(text)
    corpus = Corpus.read(tmp_path)
    assert not corpus.programs
    (left,) = corpus.left_alone
    assert name in left
    assert "found the CUSTOM 'max({0},{1})', which is not registered" in left
    assert list(Corpus.read(tmp_path, native=True).programs) == [name]


@pytest.mark.slow
def test_a_full_disk_is_named_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Path] = []

    def full(path: Path, text: str) -> str:
        tries.append(path)
        return f"cannot write {path}: No space left on device"

    monkeypatch.setattr(folders, "write_file", full)
    report = tmp_path / "report.json"
    options = Options(
        INACCURATE, 1, ("graph",), seconds=HOUR, workers=1,
        output=tmp_path / "found", json=report,
    )  # fmt: skip
    with pytest.raises(OptionError, match="No space left on device"):
        fuzz(options, Enough(40), InProcess(options), corpus=Corpus.read(tmp_path / "corpus"))
    assert len(tries) == 1, "one error is enough"
    assert report.exists()
    assert list((tmp_path / "found").glob("*.uop"))


def test_a_corpus_that_cannot_be_written_ends_before_the_run(uop: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    outcome = uop("fuzz", "interpreter", "--corpus", tmp_path / "file", "--time", "5s")
    assert outcome.code == 2
    assert str(tmp_path / "file") in outcome.err


@pytest.mark.slow
def test_killed_runs_on_one_folder_leave_whole_programs(tmp_path: Path, uop: Any) -> None:
    folder, found = tmp_path / "corpus", tmp_path / "found"
    words = ("--seed", "1", "--time", "10m", "--level", "graph", "--corpus", folder)
    command = (sys.executable, "-P", "-m", "uop", "fuzz", "interpreter", *words, "-n", "1",
               "--output", found)  # fmt: skip
    runs = [subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=tmp_path) for _ in range(2)]
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and len(list(folder.glob("*.uop"))) < 12:
        time.sleep(0.1)
    for run in runs:
        run.kill()
        run.wait()
    kept = Corpus.read(folder)
    assert len(kept.programs) >= 12
    assert not kept.left_alone
    words = ("--corpus", folder, "--time", "5s", "-n", 1, "--output", found)
    outcome = uop("fuzz", "interpreter", *words)
    assert f"of earlier runs: {len(kept.programs)} programs in {folder}" in outcome.out


def test_a_merge_is_the_union(folder: Path, tmp_path: Path, uop: Any) -> None:
    files = sorted(folder.iterdir())
    parts = [tmp_path / "a", tmp_path / "b"]
    for part, own in zip(parts, (files[:-3], files[3:]), strict=True):
        part.mkdir()
        for path in own:
            (part / path.name).write_bytes(path.read_bytes())
    (parts[0] / "notes.txt").write_text("mine")
    out = tmp_path / "out"
    outcome = uop("corpus", "merge", *parts, "--output", out)
    assert (outcome.code, outcome.err.count("left alone: ")) == (0, 1)
    assert f"{len(files)} programs in {out}, {len(files)} of them new" in outcome.out
    assert {p.name: p.read_bytes() for p in out.iterdir()} == {
        p.name: p.read_bytes() for p in files
    }
    assert merge(parts, out).added == 0


@pytest.fixture
def files() -> Iterator[Any]:
    """The files behind `memory://`, of which there are none."""
    files = pytest.importorskip("fsspec").filesystem("memory")
    yield files
    files.store.clear()


def test_a_url_holds_a_corpus_as_a_folder_does(folder: Path, uop: Any, files: Any) -> None:
    url, programs = "memory://a/corpus", Corpus.read(folder).programs
    assert Corpus.read(url).programs == {}
    outcome = uop("corpus", "merge", folder, "--output", url)
    assert f"{len(programs)} programs in {url}, {len(programs)} of them new" in outcome.out
    assert Corpus.read(url).programs == programs
    cut, *_ = programs
    files.pipe_file(f"/a/corpus/{cut}", b"%0")
    files.pipe_file("/a/corpus/notes.txt", b"mine")
    outcome = uop("corpus", "minimize", url)
    assert f"left alone: {url}/{cut}: damaged" in outcome.err
    assert f"left alone: {url}/notes.txt: no program of a corpus" in outcome.err
    left = Corpus.read(url)
    assert left.points == set[str]().union(*(p.points for n, p in programs.items() if n != cut))
    assert len(left.programs) < len(programs) - 1
    assert len(left.left_alone) == 2
    back = uop("corpus", "merge", url, "--output", folder.parent / "back")
    assert (back.code, f"{len(left.programs)} of them new" in back.out) == (0, True)


def test_a_store_that_takes_nothing_is_named(
    folder: Path, uop: Any, files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stores raise errors of any class."""

    def refuse(*words: object, **options: object) -> None:
        raise ArithmeticError("no key")

    monkeypatch.setattr(type(files), "pipe_file", refuse)
    outcome = uop("corpus", "merge", folder, "--output", "memory://c")
    assert (outcome.code, "cannot write memory://c/" in outcome.err) == (2, True), outcome.err
    assert outcome.err.count(": no key\n") == len(list(folder.iterdir()))
    monkeypatch.setattr(type(files), "ls", refuse)
    outcome = uop("fuzz", "interpreter", "--corpus", "memory://c", "--time", "5s")
    assert (outcome.code, outcome.err) == (2, "error: cannot read memory://c: no key\n")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    outcome = uop("corpus", "minimize", "memory://c")
    assert (outcome.code, 'pip install "uop[cluster]"' in outcome.err) == (2, True), outcome.err
    assert uop("corpus", "minimize", folder).code == 0


def test_what_is_left_reaches_what_all_reach(folder: Path, uop: Any) -> None:
    notes = folder / "notes.txt"
    notes.write_text("mine")
    before = Corpus.read(folder)
    outcome = uop("corpus", "minimize", folder)
    after = Corpus.read(folder)
    assert outcome.code == 0
    assert after.points == before.points
    assert len(after.programs) < len(before.programs)
    assert notes.exists()


@pytest.mark.parametrize("place", [0, 1])
def test_a_program_that_alone_fires_a_rule_is_left(place: int, tmp_path: Path) -> None:
    case = program("NEG")
    corpus = Corpus.read(tmp_path)
    for comment in ("one", "another"):
        corpus.points.clear()
        corpus.add(Reaching(f"; {comment}\n{text_of(case)}", points_of(case)))
    firing, rule = sorted(corpus.programs)[place], frozenset({"a/rule"})
    assert minimize(corpus, lambda case: rule if case.id.op == firing else frozenset()) == 1
    assert [path.name for path in tmp_path.iterdir()] == [firing]


def test_rules_belong_to_the_program_that_fires_them() -> None:
    negs = [program("NEG"), program("RECIP", "float32")]
    with rules_on("test_fired:Counting") as fired:
        assert [fired(case) for case in negs] == [{"a/each", "a/neg"}, {"a/each"}]
    with rules_on(None) as fired:
        assert fired(negs[0]) == frozenset()
    programs = [program("RECIP", "float32") for _ in range(5)]
    programs.insert(3, negs[0])
    with started("test_fired:Counting") as session:
        judge = Judge(session, STRICT)
        found = by_program(judge, programs, frozenset({"a/each", "a/neg", "b/never"}))
    assert {programs.index(case): rules for case, rules in found.items()} == {
        0: {"a/each"},
        3: {"a/neg"},
    }


def test_a_rule_that_fires_anew_is_something_new() -> None:
    case = program("NEG")
    reached = Reached(set(points_of(case)))
    judge = Judge(Local(InterpreterBackend()), STRICT)
    assert not list(reached.new(judge, [case], {"a/neg": 0}))
    with started("test_fired:Counting") as session:
        judge = Judge(session, STRICT)
        (one,) = reached.new(judge, [case], {"a/neg": 1, "a/gone": 1})
        assert one.points == points_of(case) | {"a/neg"}
        assert not list(reached.new(judge, [case], {"a/neg": 1, "a/gone": 1}))


REACH = st.dictionaries(st.text("abc", min_size=1), st.frozensets(st.sampled_from("123456")))


@given(REACH)
def test_a_cover_reaches_all_and_each_of_it_adds_something(
    reach: dict[str, frozenset[str]],
) -> None:
    chosen = cover(reach)
    assert chosen <= reach.keys()
    every = frozenset[str]().union(*reach.values())
    assert frozenset[str]().union(*(reach[name] for name in chosen)) == every
    assert len(chosen) <= len(every)


def test_the_cover_is_greedy() -> None:
    reach = {"a": frozenset("12"), "b": frozenset("23"), "c": frozenset("1234")}
    assert cover(reach) == {"c"}


def test_a_program_with_a_variable_reaches_what_its_file_reaches(tmp_path: Path) -> None:
    """A file is judged with its variables bound; the ops that compute with them are gone then."""
    size = variable(1, 1, 8)
    part = dims([UOp(Op.ADD, size, index_const(1))])
    root = UOp(Op.SHRINK, param(0, (9,), dtypes.int32), dims([0]), part)
    inputs = {0: np.arange(9, dtype=np.int32), 1: np.array(3)}
    program = Case(CaseId("graph", "MIXED", "int32", "cut", 0), root, (Batch(inputs),))
    corpus = Corpus.read(tmp_path)
    corpus.add(Reaching(text_of(program), points_of(program)))
    assert corpus.problems() == []
    assert Corpus.read(tmp_path).points == corpus.points
