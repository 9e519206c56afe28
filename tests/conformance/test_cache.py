"""The cache folder: where it is, which kernels a run takes from it, and that it has a size."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from uop.compiler.runtime.cache import POCL_VARIABLE as POCL
from uop.compiler.runtime.cache import cache_folder, keep
from uop.conformance.checks import OptionError
from uop.conformance.run import cache
from uop.conformance.run.cache import cache_in_use, most_bytes

ONE_OP = ("--op", "NEG", "--dtype", "int32", "--level", "op", "--effort", "smoke", "-n", "1")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder, which is not there yet."""
    monkeypatch.setenv("UOP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("UOP_CACHE_SIZE", raising=False)
    monkeypatch.setenv(POCL, "")
    return tmp_path / "cache"


def kernels() -> Path:
    """The folder in which a process that starts now would keep kernels."""
    with cache_in_use():
        return Path(os.environ[POCL])


@pytest.fixture
def built(folder: Path) -> Path:
    """A folder of kernels as a run has left it."""
    place = kernels()
    with cache_in_use():
        for name in ("AA/ONE", "AA/TWO", "BB/THREE"):
            (place / name / "k" / "1-1-1").mkdir(parents=True)
            (place / name / "program.bc").write_bytes(b"b" * 1000)
            (place / name / "k" / "1-1-1" / "k.so").write_bytes(b"s" * 1000)
            (place / name / "last_accessed").touch()
    return place


def left(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.glob("*/*"))


def test_where_it_is(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == folder
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UOP_CACHE", "mine")
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.setenv("UOP_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache_folder() == Path("/x/uop")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "/h")
    assert cache_folder() == Path("/h/.cache/uop")


@pytest.mark.parametrize(
    ("text", "size"),
    [("", 1 << 30), ("0", 0), ("77", 77), ("500M", 500 << 20), ("2G", 2 << 30), ("3K", 3 << 10)],
)
def test_its_size_is_a_number_with_a_unit(
    text: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UOP_CACHE_SIZE", text)
    assert most_bytes() == size


@pytest.mark.parametrize("text", ["much", "-1", "1.5G", "2 G", "2GB", "1e9"])
def test_another_size_ends_before_the_run(
    text: str, uop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UOP_CACHE_SIZE", text)
    with pytest.raises(OptionError):
        most_bytes()
    outcome = uop("conform", "interpreter", *ONE_OP)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        f"error: UOP_CACHE_SIZE: expected a number of bytes such as 500M or 2G, found {text!r}\n"
    )


def test_kernels_are_kept_where_a_folder_is_named_and_pocl_has_no_other(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kernels().parent == folder / "kernels"
    assert not os.environ.get(POCL), "the variable is set during the run alone"
    monkeypatch.setenv(POCL, str(tmp_path))
    assert kernels() == tmp_path
    monkeypatch.setenv(POCL, "")
    monkeypatch.setenv("UOP_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    with cache_in_use():
        assert not os.environ[POCL]


def test_another_processor_has_kernels_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    own = kernels()
    monkeypatch.setattr(cache, "processor", lambda: ["flags: other"])
    assert kernels() != own


def test_kernels_that_were_noted_stay(built: Path) -> None:
    assert kernels() == built
    (built / "AA" / "ONE" / "last_accessed").write_text("read by PoCL")
    with cache_in_use():
        assert left(built) == ["AA/ONE", "AA/TWO", "BB/THREE"]


@pytest.mark.parametrize("damage", ["cut", "missing", "more", "other", "notes", "unnoted"])
def test_what_is_damaged_or_not_of_a_run_is_removed(built: Path, damage: str) -> None:
    library = built / "AA" / "TWO" / "k" / "1-1-1" / "k.so"
    remaining = ["AA/ONE", "BB/THREE"]
    match damage:
        case "cut":
            library.write_bytes(library.read_bytes()[:500])
        case "missing":
            library.unlink()
        case "more":
            library.with_name("other.so").write_bytes(b"x")
        case "other":
            library.write_bytes(b"t" * 1000)
        case "notes":
            built.with_suffix(".json").write_text('{"AA/ONE":')
            remaining = []
        case "unnoted":
            shutil.copytree(built / "AA" / "ONE", built / "AA" / "NEW")
            (built / "tempfile_abc").touch()
            (built / "AA" / "link").symlink_to(library.parent)
            remaining = ["AA/ONE", "AA/TWO", "BB/THREE"]
    with cache_in_use():
        assert left(built) == remaining
        assert not (built / "tempfile_abc").exists()
    assert damage != "unnoted" or library.exists()


def used(path: Path, when: int) -> None:
    """Let a kernel be built long ago and used at some time."""
    for file in path.rglob("*"):
        os.utime(file, (1000, 1000))
    os.utime(path, (1000, 1000))
    os.utime(path / "last_accessed", (when, when))


def test_what_was_used_longest_ago_goes_whole(
    built: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used(built / "AA" / "ONE", 3000)
    used(built / "AA" / "TWO", 2000)
    used(built / "BB" / "THREE", 4000)
    keep(folder / "drivers" / "old.json", "o" * 100)
    os.utime(folder / "drivers" / "old.json", (1000, 1000))
    keep(folder / "drivers" / "new.json", "n" * 100)
    (folder / "notes.txt").write_text("mine" * 1000)
    size = sum(cache.Entry.at(built / name).size for name in ("AA/ONE", "BB/THREE"))
    monkeypatch.setenv("UOP_CACHE_SIZE", str(size + 100))
    kernels()
    assert left(built) == ["AA/ONE", "BB/THREE"]
    assert [path.name for path in (folder / "drivers").iterdir()] == ["new.json"]
    monkeypatch.setenv("UOP_CACHE_SIZE", "0")
    kernels()
    assert left(built) == []
    assert (folder / "notes.txt").exists(), "what is not of uop stays"


def test_what_another_process_removes_first_is_no_error(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = cache._entries

    def racing(folder: Path) -> Iterator[Path]:
        for path in list(listed(folder)):
            shutil.rmtree(built / "AA", ignore_errors=True)
            yield path

    monkeypatch.setattr(cache, "_entries", racing)
    monkeypatch.setenv("UOP_CACHE_SIZE", "0")
    kernels()
    assert left(built) == []
    for gone in (built / "AA", built / "absent.json"):
        cache._remove(gone)


def test_nothing_is_removed_that_another_run_may_use(
    built: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (built / "AA" / "ONE" / "program.bc").write_text("being written")
    monkeypatch.setenv("UOP_CACHE_SIZE", "0")
    with (folder / "lock").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        assert kernels() == built
        assert len(left(built)) == 3
    with cache_in_use(), (folder / "lock").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    kernels()
    assert left(built) == []


@pytest.mark.parametrize("obstacle", ["file", "read-only", "full"])
def test_a_folder_that_takes_nothing_keeps_nothing(
    obstacle: str, folder: Path, uop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    match obstacle:
        case "file":
            folder.write_text("a file where the folder should be")
        case "read-only":
            monkeypatch.setenv("UOP_CACHE", "/proc/cache")
        case "full":
            monkeypatch.setattr(cache, "refusal_of", lambda path: "No space left on device")
    with cache_in_use():
        assert not os.environ[POCL]
    keep(cache_folder() / "drivers" / "a.json", "{}")
    assert obstacle != "file" or uop("conform", "interpreter", *ONE_OP).code in (0, 4)


def test_a_file_that_cannot_be_written_leaves_no_part(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *paths: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            keep(folder / "a.json", "{}")
    assert list(folder.iterdir()) == []


def libraries(folder: Path) -> dict[Path, int]:
    """The machine code of the kernels, and when it was built."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.so")}


@pytest.mark.slow
@pytest.mark.usefixtures("pocl")
def test_the_second_run_builds_nothing_and_what_is_cut_off_is_built_anew(
    folder: Path, uop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PoCL alone keeps kernels; that of the tests has a folder, which does not count here."""
    monkeypatch.setenv(POCL, "")
    assert uop("conform", "opencl:pocl", *ONE_OP).code in (0, 4)
    first = libraries(folder)
    assert first
    cold = uop("conform", "opencl:pocl", *ONE_OP)
    assert libraries(folder) == first
    for path in first:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    again = uop("conform", "opencl:pocl", *ONE_OP)
    assert again.code == cold.code, again.out
    assert libraries(folder).keys() == first.keys()
    assert all(libraries(folder)[path] != built for path, built in first.items())
