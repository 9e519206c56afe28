"""A fuzz run over a cluster of real processes, some of which are killed: what counts, and once."""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from uop.conformance.fuzz.corpus import Corpus, name_of
from uop.conformance.judging.verdict import Status
from uop.conformance.report.format import read_report
from uop.conformance.report.merge import joined
from uop.conformance.report.model import Report
from uop.conformance.report.tally import Tally
from uop.conformance.report.terminal import Display
from uop.conformance.run import Exit
from uop.conformance.run.options import Options
from uop.conformance.run.replay import replay
from uop.conformance.run.run import Clock
from uop.conformance.suite.case import FUZZ
from uop.spec.errors import BackendError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
cloudpickle = pytest.importorskip("cloudpickle")
url_to_fs = pytest.importorskip("fsspec.core").url_to_fs

from uop.conformance.fuzz import cluster as on_cluster  # noqa: E402
from uop.conformance.fuzz import shard  # noqa: E402
from uop.conformance.fuzz.cluster import Campaign, Process  # noqa: E402
from uop.conformance.fuzz.folders import Store  # noqa: E402
from uop.conformance.fuzz.shard import Here, Part, Work  # noqa: E402

pytestmark = pytest.mark.slow

# The processes of the cluster cannot import this module: its functions are sent whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
SHARDS, PROGRAMS = 10, 4
JOINING = 60
"""The seconds in which a process that was killed starts again."""
OPTIONS = Options("interpreter", 5, ("graph",), effort=FUZZ, seconds=600.0, workers=1)
WORK = Work("test", OPTIONS, programs=PROGRAMS, seconds=600.0)
EXPLORING = replace(WORK, name="exploring", options=replace(OPTIONS, seconds=240.0), explores=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two processes, each with a nanny that starts it again.

    Dask closes a nanny if its process is lost for the second time just when the timeout of the
    first loss ends, so the timeout is longer than all tests.
    """
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})
    two = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with patient, two as made:
        yield made


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=JOINING)
        yield client


class Killing(Display):
    """Kills a process of the cluster at each of the first signs of progress."""

    def __init__(self, cluster: Any, *victims: int) -> None:
        self.cluster, self.victims = cluster, list(victims)

    def progress(self, tally: Tally, seconds: float) -> None:
        if self.victims:
            os.kill(self.cluster.workers[self.victims.pop(0)].pid, signal.SIGKILL)


def campaign(
    cluster: Any,
    display: Display,
    work: Work = WORK,
    shards: int = SHARDS,
    corpus: Corpus | None = None,
) -> Any:
    said: list[str] = []
    run = Campaign(work, display, said.append, shards, corpus=corpus)
    return run.result(cluster.scheduler_address), said


def alone(shards: int, work: Work = WORK) -> list[Part]:
    """The same shards, judged one after the other by this process."""
    here = shard.RUNS[work.name] = Here(work, float("inf"), work.options)
    parts = [here.run(str(number), 600.0) for number in range(shards)]
    shard.drop(work.name)
    return parts


def totals(report: Report) -> object:
    summary = report.summary
    counts = (summary.programs, summary.passed, summary.skipped, summary.checks, summary.elements)
    return counts, [(c.place, c.programs, c.elements, c.histogram) for c in report.cells]


def test_processes_that_are_killed_lose_nothing_and_count_nothing_twice(
    cluster: Any, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_cluster, "STEP", 0.0)
    display = Killing(cluster, 0, 1)
    report, said = campaign(cluster, display)
    assert (display.victims, said, report.summary.lost) == ([], [], "")
    assert report.summary.programs + report.summary.skipped == SHARDS * PROGRAMS
    assert totals(report) == totals(joined([part.report for part in alone(SHARDS)]))


def test_processes_with_other_code_and_shards_that_always_fail_are_named(
    cluster: Any, client: Any
) -> None:
    one, other = client.scheduler_info()["workers"]
    client.run(pretend, "0.0.9, code 123", workers=[one])
    client.run(break_shard, "1", workers=[other])
    report, said = campaign(cluster, Display(), replace(WORK, name="mixed"), 3)
    wrong = f"expected uop {shard.own_code()}; found 0.0.9, code 123"
    assert said == [f"refused: {one}: {wrong}"]
    assert report.summary.lost == "shard 1 was lost 4 times, last as ZeroDivisionError: of a test"
    assert report.summary.programs + report.summary.skipped == 2 * PROGRAMS
    assert report.conclusion == "inconclusive"
    absent = replace(WORK, options=replace(OPTIONS, backend="backends_for_tests:DeadAtStart"))
    with pytest.raises(BackendError) as error:
        campaign(cluster, Display(), absent, 2)
    assert f"{one}: {wrong}" in str(error.value)
    assert f"{other}: backend 'backends_for_tests:DeadAtStart' did not start" in str(error.value)
    client.run(mend)


def test_a_store_gets_repros_that_fail_alone_and_results_that_merge(
    cluster: Any, client: Any, uop: Any, tmp_path: Path
) -> None:
    name = "backends_for_tests:Inaccurate"
    work = replace(WORK, name="wrong", options=replace(OPTIONS, backend=name))
    store = Store.at((tmp_path / "store").as_uri(), "--output")
    run = Campaign(work, Display(), print, 3, store)
    report = run.result(cluster.scheduler_address)
    assert (store.problems(), report.conclusion) == ([], "does not conform")
    signatures = [failure.signature for failure in report.failures]
    assert len(signatures) == len(set(signatures))
    explained = {id for failure in report.failures for id in failure.cases}
    assert len(explained) + len(report.unexplained) == report.summary.failed
    repros = [Path(url2pathname(urlsplit(f.repro).path)) for f in report.failures]
    assert {path.stem for path in repros} == {digest_of(path) for path in repros}
    assert {one.verdict.status for one in replay(repros, name)} == {Status.FAILED}
    results = sorted((tmp_path / "store" / "results").iterdir())
    assert len(results) == 3
    assert uop("merge", *results, "--json", tmp_path / "merged.json").code == Exit.FAILED
    merged = read_report(tmp_path / "merged.json")
    assert totals(merged) == totals(report)
    assert uop("merge", *results, results[0]).code == Exit.USAGE


@pytest.fixture(params=["folder", "memory://corpus"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str | Path]:
    """An empty folder, or one behind a URL."""
    if request.param == "folder":
        yield tmp_path / "corpus"
    else:
        yield request.param
        url_to_fs(request.param)[0].store.clear()


def test_a_corpus_is_judged_first_and_gets_what_reaches_something_new(
    cluster: Any, client: Any, place: str | Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed loses none of it."""
    monkeypatch.setattr(on_cluster, "STEP", 0.0)
    monkeypatch.setattr(on_cluster, "HANDED", 8)
    corpus = Corpus.read(place)
    display = Killing(cluster, 0)
    report, _ = campaign(cluster, display, EXPLORING, 5, corpus)
    assert (display.victims, report.summary.lost, corpus.problems()) == ([], "", [])
    kept = Corpus.read(place)
    assert (kept.programs, kept.left_alone) == (corpus.programs, [])
    assert corpus.added == len(kept.programs) <= 5 * PROGRAMS
    reaching = [program for part in alone(5, EXPLORING) for program in part.reaching]
    assert kept.points == set[str]().union(*(program.points for program in reaching))
    other = replace(EXPLORING, name="again", options=replace(EXPLORING.options, seed=6))
    again = Corpus.read(place)
    client.wait_for_workers(2, timeout=JOINING)
    report, _ = campaign(cluster, Display(), other, 5, again)
    judged = [cell for cell in report.cells if cell.level == "cases"]
    assert {cell.op: cell.programs for cell in judged} == dict.fromkeys(kept.programs, 1)
    assert report.summary.programs + report.summary.skipped == 5 * PROGRAMS + len(kept.programs)
    assert again.problems() == []
    assert Corpus.read(place).points == again.points > kept.points


def test_two_runs_fill_one_corpus(cluster: Any, client: Any, tmp_path: Path) -> None:
    """Each with what the folder had when it began."""
    both = [Corpus.read(tmp_path / "corpus") for _ in range(2)]
    for seed, corpus in enumerate(both):
        options = replace(EXPLORING.options, seed=seed)
        campaign(cluster, Display(), replace(EXPLORING, name=str(seed), options=options), 2, corpus)
    found = Corpus.read(tmp_path / "corpus")
    assert found.programs == both[0].programs | both[1].programs
    assert found.left_alone == []


def test_a_process_says_nothing_twice_and_judges_the_corpus_in_its_part_of_the_time() -> None:
    here = shard.RUNS[EXPLORING.name] = Here(EXPLORING, float("inf"), OPTIONS)
    first, second = (here.run("1", 600.0) for _ in range(2))
    assert first.reaching
    assert not second.reaching
    programs = {name_of(one.text): one.text for one in first.reaching}
    again = here.run("1", 600.0, programs)
    assert again.report.summary.programs == first.report.summary.programs + len(programs)
    shard.drop(EXPLORING.name)
    late = Campaign(EXPLORING, Display(), print, corpus=Corpus(None))
    late.old, late.clock = ["a"], Clock(-1.0)
    assert late._news(Process(""), 0).programs == {}


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:32]


def test_the_command_ends_at_the_first_failure_and_writes_its_repro(
    cluster: Any, client: Any, uop: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_cluster, "Work", functools.partial(Work, programs=PROGRAMS))
    name, found = "backends_for_tests:Inaccurate", tmp_path / "found"
    words = ("--level", "graph", "--seed", 1, "--fail-fast", "--time", "10m", "--output", found,
             "--corpus", tmp_path / "corpus")  # fmt: skip
    outcome = uop("fuzz", name, "--scheduler", cluster.scheduler_address, *words)
    assert outcome.code == Exit.FAILED, outcome.err
    assert "verdict: Inaccurate fails" in outcome.out
    assert list(found.glob("*.uop"))
    kept = len(list((tmp_path / "corpus").glob("*.uop")))
    assert f"added, {kept} in {tmp_path / 'corpus'}\n" in outcome.out


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("tcp://127.0.0.1:1",), 3, "no Dask scheduler answers at tcp://127.0.0.1:1"),
        (("abc://127.0.0.1:1",), 2, "expected tcp://HOST:PORT, found 'abc://127.0.0.1:1'"),
        (("tcp://127.0.0.1:1", "--against", "interpreter"), 2, "expected no --scheduler"),
        (("tcp://127.0.0.1:1", "--corpus", "abc://x/y"), 2, "--corpus: cannot use abc://x/y"),
        (("tcp://127.0.0.1:1", "--output", "abc://x/y"), 2, "--output: cannot use abc://x/y"),
    ],
)
def test_without_a_scheduler_there_is_one_clear_error(
    words: tuple[str, ...], code: int, error: str, uop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_cluster, "CONNECTING", 0.5)
    outcome = uop("fuzz", "interpreter", "--time", "5s", "--scheduler", *words)
    assert (outcome.code, error in outcome.err) == (code, True), outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_the_error_names_the_extra_that_is_missing(
    uop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    outcome = uop("fuzz", "interpreter", "--scheduler", "tcp://127.0.0.1:1")
    assert (outcome.code, 'pip install "uop[cluster]"' in outcome.err) == (2, True), outcome.err


def test_a_url_needs_a_scheduler(uop: Any) -> None:
    outcome = uop("fuzz", "interpreter", "--output", "memory://found")
    assert (outcome.code, "expected a folder, or --scheduler" in outcome.err) == (2, True)


def break_shard(which: str) -> None:
    """Let a shard fail in this process."""
    run = shard.Here.run

    def broken(here: Here, number: str, *rest: Any) -> Any:
        if number == which:
            raise ZeroDivisionError("of a test")
        return run(here, number, *rest)

    shard.Here.run = broken  # type: ignore[method-assign]


def pretend(code: str) -> None:
    """Let this process have other code."""
    shard.own_code = lambda: code  # type: ignore[assignment]


def mend() -> None:
    """Let this process have what its files say."""
    importlib.reload(shard)
