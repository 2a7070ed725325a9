from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from crossperf.collect import compiling
from crossperf.errors import CollectError
from tests.collect.real import need


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    need("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "crossperf"


def test_a_library_is_compiled_once_and_kept_for_this_user_alone(cache: Path, tmp_path: Path) -> None:
    first = compiling.shared_library("preload.c", tmp_path)
    assert first.parent == cache
    assert cache.stat().st_mode & 0o777 == 0o700
    made = first.stat().st_mtime_ns
    assert compiling.shared_library("preload.c", tmp_path) == first
    assert first.stat().st_mtime_ns == made
    assert [path.name for path in cache.iterdir()] == [first.name]
    assert ctypes.CDLL(str(first)).GOMP_parallel


def test_a_cache_that_others_may_write_to_is_not_used(cache: Path, tmp_path: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    folder = tmp_path / "own"
    folder.mkdir()
    assert compiling.shared_library("preload.c", folder).parent == folder
    assert not list(cache.iterdir())


def test_a_home_that_cannot_be_written_to_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("gcc")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compiling.shared_library("preload.c", tmp_path).parent == tmp_path


def test_a_machine_without_compiler_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CollectError, match="gcc"):
        compiling.shared_library("preload.c", tmp_path)
