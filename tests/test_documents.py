"""JSON documents: bounded before parsing, whatever stands in them; a pipe or a device is not waited for."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossperf import documents
from crossperf.documents import DEEPEST, MEGABYTE, Document, depth_of, parse, parse_toml, read_bytes
from crossperf.errors import CrossperfError

KIND = Document("a list of things", "Make it again.", format=2, oldest=1, most_bytes=MEGABYTE)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=40,
)


@given(VALUES)
def test_what_json_writes_is_read_as_python_reads_it(value: object) -> None:
    assert parse(json.dumps(value).encode()) == value
    assert parse(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_a_reason(data: bytes) -> None:
    for reader in (parse, parse_toml):
        try:
            reader(data)
        except ValueError as error:
            assert type(error) is ValueError or "TOML" in type(error).__name__
            assert str(error)


@pytest.mark.parametrize("depth", [DEEPEST, DEEPEST + 1])
@pytest.mark.parametrize("pair", ["[]", '{"a":}'])
def test_depth_is_told_to_the_level(depth: int, pair: str) -> None:
    text = pair[:-1] * depth + "1" + pair[-1] * depth
    if depth > DEEPEST:
        with pytest.raises(ValueError, match="nested more than 50 deep"):
            parse(text.encode())
    else:
        assert parse(text.encode())


def test_brackets_in_texts_do_not_count() -> None:
    value = {"a": "[" * 100, '\\"[': ["]" * 100, "\\"], "b": [[1]] * 100}
    assert parse(json.dumps(value).encode()) == value
    assert depth_of(json.dumps(value).encode()) == 3


def test_depth_is_told_in_a_time_that_grows_with_the_length_alone() -> None:
    def seconds(count: int) -> float:
        data = b'["' + b'\\"[' * count + b"[" * count
        started = time.process_time()
        depth_of(data)
        return time.process_time() - started

    seconds(1000)
    assert seconds(400_000) < 100 * max(seconds(40_000), 1e-3)


def test_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(OSError, match="it is no regular file"):
            read_bytes(path, 100)
    with pytest.raises(OSError, match="it is a folder"):
        read_bytes(tmp_path, 100)
    with pytest.raises(
        CrossperfError, match=r"pipe: cannot be read \(it is no regular file\), expected a list of things"
    ):
        KIND.read(tmp_path / "pipe")


def test_a_small_file_takes_little_memory_whatever_is_allowed(tmp_path: Path) -> None:
    """Each load of a model set 4 GB aside for its 10 MB, which a limit on memory may refuse."""
    (tmp_path / "small").write_bytes(b"abc")
    assert read_bytes(tmp_path / "small", 1 << 50) == b"abc"


def test_a_file_whose_size_the_kernel_does_not_tell_is_read_to_its_end() -> None:
    assert b"VmPeak" in read_bytes("/proc/self/status", MEGABYTE)
    with pytest.raises(OSError, match="are allowed"):
        read_bytes("/proc/self/status", 100)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(2**40)  # a hole, not a terabyte
    with pytest.raises(CrossperfError, match=r"it has 1,048,576\.0 MB, and 1 MB are allowed"):
        KIND.read(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CrossperfError, match=r"nothing\.json: cannot be read \(No such file or directory\)"):
        KIND.read(tmp_path / "nothing.json")


def test_older_formats_are_read_and_newer_ones_refused() -> None:
    assert KIND.check({"format": 1}, "f") == {"format": 1}
    with pytest.raises(
        CrossperfError, match=r"found format 3, expected a list of things of format 1 or 2. Upgrade"
    ) as caught:
        KIND.check({"format": 3}, "f")
    assert (caught.value.facts["found"], caught.value.facts["expected"]) == (3, 2)
    with pytest.raises(CrossperfError, match="Make it again"):
        KIND.check({"format": 0}, "f")


def test_a_byte_order_mark_is_passed_over() -> None:
    assert parse(b"\xef\xbb\xbf{}") == {}
    assert parse_toml(b"\xef\xbb\xbfa = 1") == {"a": 1}


def test_other_programs_numbers_are_taken_where_that_is_asked_for() -> None:
    assert str(parse(b"[NaN, -Infinity]", lenient=True)) == "[nan, -inf]"
    with pytest.raises(ValueError, match="NaN is no number of JSON"):
        parse(b"[NaN]")


def test_a_dotted_key_cannot_exhaust_the_memory() -> None:
    with pytest.raises(ValueError, match="more than 200 dots"):
        parse_toml(b"a." * 100_000 + b"a = 1")
    assert documents.parse_toml(b'a.b.c = "x.y"') == {"a": {"b": {"c": "x.y"}}}
