"""Large data of a `.uop` file: compressed, with their sum; what is cut off or wrong is told."""

import base64
import hashlib
import zlib
from pathlib import Path

import pytest

from uop.__main__ import main
from uop.spec.case import ElementSet, FileCase, UopFile
from uop.spec.dtype import dtypes
from uop.spec.errors import MalformedError
from uop.spec.ops.names import Op
from uop.spec.text.array import Array
from uop.spec.text.uop_file import parse_file, print_file
from uop.spec.uop import UOp, param

KIB = 1 << 10
DATA = bytes(k * k % 251 for k in range(65 * KIB))
HEAD = "%0 = PARAM [{size}] {{slot=0, dtype=uint8}}\ninput 0 = {word}"


def word(data: bytes, *, sum_of: bytes | None = None, packed: bytes | None = None) -> str:
    """The word of data, or of what claims to be them."""
    sha256 = hashlib.sha256(data if sum_of is None else sum_of).hexdigest()
    shown = zlib.compress(data) if packed is None else packed
    return f"zlib:{sha256}:{base64.b64encode(shown).decode()}"


def read(text: str, size: int = len(DATA)) -> FileCase:
    (case,) = parse_file(HEAD.format(size=size, word=text)).cases
    return case


@pytest.mark.parametrize(("size", "form"), [(64 * KIB, "base64:"), (64 * KIB + 1, "zlib:")])
def test_data_over_64_kib_are_compressed(size: int, form: str) -> None:
    u = param(0, (size,), dtypes.uint8)
    case = FileCase("big", u, {0: Array(dtypes.uint8, (size,), DATA[:size])})
    text = print_file(UopFile((case,)))
    assert f"input 0 = {form}" in text
    assert parse_file(text) == UopFile((case,))


def test_what_others_compress_is_read() -> None:
    assert read(word(DATA)).inputs[0].data == DATA


def test_large_sets_are_compressed_text() -> None:
    size = 8 * KIB
    sets = tuple(ElementSet(((k % 200, k % 200 + 7),)) for k in range(size))
    case = FileCase("big", UOp(Op.NEG, param(0, (size,), dtypes.uint8)), accept={0: sets})
    text = print_file(UopFile((case,)))
    assert "accept 0 = zlib:" in text
    assert len(text) < 16 * KIB
    assert parse_file(text) == UopFile((case,))


PACKED = zlib.compress(DATA)
DAMAGED = PACKED[:50] + bytes(9) + PACKED[59:]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zlib:", "expected zlib:SHA256:BASE64, a sum of 64 hex digits"),
        (f"zlib:{'0' * 63}:AQ==", "expected zlib:SHA256:BASE64, a sum of 64 hex digits"),
        (word(DATA)[:-1], "bytes that are no base64"),
        (word(DATA, packed=PACKED[:-5]), "compressed data that are cut off"),
        (word(DATA, packed=b""), "compressed data that are cut off"),
        (word(DATA, packed=DAMAGED), "compressed data that are damaged"),
        (word(DATA, packed=PACKED + b"more"), "expected the end of the compressed data"),
        (word(DATA, sum_of=b"others"), "expected data of sha256 "),
        (word(DATA[:-1]), f"expected {len(DATA)} bytes for uint8[{len(DATA)}], found"),
        (word(DATA + b"a"), f"expected at most {len(DATA)} bytes"),
        # A thousand times as much as stands in the file.
        (word(bytes(50 * KIB * KIB)), f"expected at most {len(DATA)} bytes"),
    ],
)
def test_what_is_no_such_data_is_refused_in_its_place(text: str, said: str) -> None:
    with pytest.raises(MalformedError) as caught:
        read(text)
    assert said in caught.value.message
    assert (caught.value.line, caught.value.column) == (2, 11)


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (b"\xff", "expected sets in the compressed data, found no text"),
        (b"1, 2", "expected 1 set or 3, found 2"),
        (b"1, 2, [3", "column 9 of the compressed text: expected ']'"),
        (b"1, 2, 3 4", "column 9 of the compressed text: expected the end of the line"),
        (b"1" * 601, "expected at most 600 bytes"),
    ],
)
def test_what_are_no_such_sets_is_refused_in_its_place(sets: bytes, said: str) -> None:
    with pytest.raises(MalformedError) as caught:
        parse_file(f"%0 = PARAM [3] {{slot=0, dtype=uint8}}\naccept 0 = {word(sets)}")
    assert said in caught.value.message
    assert (caught.value.line, caught.value.column) == (2, 12)


def test_sizes_that_no_machine_has_are_no_trap() -> None:
    with pytest.raises(MalformedError, match="bytes for all inputs and results of the file"):
        read(word(DATA), 10**18)


def test_a_repro_with_large_data_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "large.uop"
    same = HEAD.format(size=len(DATA), word=word(DATA)) + f"\nexpect 0 = {word(DATA)}\n"
    path.write_text(same)
    assert main(["replay", str(path), "interpreter"]) == 0
    path.write_text(same.replace(word(DATA), word(DATA)[:-400], 1))
    assert main(["replay", str(path), "interpreter"]) == 2
    assert "large.uop:2:11: compressed data that are cut off" in capsys.readouterr().err
