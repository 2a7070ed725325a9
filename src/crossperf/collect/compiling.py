"""Compiles the small C libraries of this package with the system's compiler, once for each user."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import as_file, files
from pathlib import Path

from crossperf.errors import CollectError
from crossperf.files import whole

_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-O3", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread")


def compiler() -> str | None:
    """Return the system's C compiler, or ``None``."""
    return next(filter(None, map(shutil.which, _COMPILERS)), None)


def shared_library(source: str, folder: Path, linked: Sequence[str] = ("-ldl",)) -> Path:
    """Return a shared library compiled from a C file of this package.

    It is kept in the user's cache, under a digest of the source and the compiler's version. Where the cache cannot
    be trusted or written, `folder` takes its place.

    Parameters
    ----------
    source
        The C file's name.
    linked
        Libraries to link with.
    """
    program = compiler()
    if program is None:
        raise CollectError(f"no C compiler here, which {source} needs. Install one (Debian and Ubuntu: gcc)")
    version = subprocess.run([program, "--version"], capture_output=True, check=False, timeout=30).stdout
    text = (files("crossperf.collect") / source).read_bytes()
    digest = hashlib.sha256(b"\0".join([text, program.encode(), version, repr((_FLAGS, linked)).encode()])).hexdigest()
    place = private_cache() or folder
    library = place / f"{Path(source).stem}-{digest[:24]}.so"
    if not library.is_file():
        with whole(library) as part:
            _compile(program, source, part, linked)
    return library


def preloaded(library: Path) -> str:
    """Return ``LD_PRELOAD`` with a library in front of what the caller has there already."""
    others = os.environ.get("LD_PRELOAD")
    return f"{library}:{others}" if others else str(library)


def private_cache() -> Path | None:
    """Return this user's folder of compiled libraries; ``None`` where others could write to it, or nobody can."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crossperf"
    with suppress(OSError, RuntimeError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = place.stat()
        # qemu and the loader take a comma, a colon or a blank in a path for the end of it.
        plain = not any(letter in str(place) for letter in ",: ")
        if plain and facts.st_uid == os.geteuid() and not facts.st_mode & 0o022 and os.access(place, os.W_OK):
            return place
    return None


def _compile(program: str, source: str, library: Path, linked: Sequence[str]) -> None:
    with as_file(files("crossperf.collect") / source) as path:
        line = [program, *_FLAGS, "-o", str(library), str(path), *linked]
        done = subprocess.run(line, capture_output=True, text=True, errors="replace", check=False, timeout=120)
    if done.returncode != 0:
        problem = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip()[:200])
        raise CollectError(f"{source} does not compile with {program} ({problem}). Report it to us")
