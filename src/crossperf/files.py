"""Files that appear whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crossperf.errors import CrossperfError


@contextmanager
def whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a file to write to; it takes the place of `path` on success and vanishes on failure.

    An interrupt counts as failure: what stood at `path` before is still there.
    """
    target = Path(path)
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except OSError as error:
        raise _unwritable(target, error) from error
    os.close(descriptor)
    part = Path(name)
    try:
        yield part
        part.chmod(0o644)
        part.replace(target)
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        part.unlink(missing_ok=True)


def write_json(path: str | os.PathLike[str], facts: Any) -> None:
    """Write facts as JSON, the file whole or not at all."""
    text = json.dumps(facts, indent=2, allow_nan=False) + "\n"
    with whole(path) as part:
        part.write_text(text, encoding="utf-8")


def _unwritable(target: Path, error: OSError) -> CrossperfError:
    return CrossperfError(f"{target}: cannot be written ({error.strerror}). Choose another place.", path=str(target))
