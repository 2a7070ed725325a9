"""What a job of a site does: one call of a study, its answer or its error in a file that the driver looks for."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossperf import errors
from crossperf.documents import MEGABYTE, parse, read_bytes
from crossperf.errors import CrossperfError, WorkerError
from crossperf.files import write_json
from crossperf.workers.calls import Shared, WorkCall
from crossperf.workers.parcels import Parcel

_SHARED = "shared"


def to_plain(call: WorkCall) -> dict[str, Any]:
    """Return a call as JSON's own types."""
    arguments = [{_SHARED: [own.fingerprint, own.path]} if isinstance(own, Shared) else own for own in call.arguments]
    return {
        "function": call.function,
        "arguments": arguments,
        "threads": call.threads,
        "versions": dict(call.versions),
    }


def from_plain(facts: Mapping[str, Any]) -> WorkCall:
    """Return the call that `to_plain` wrote."""
    arguments = tuple(
        Shared(*own[_SHARED]) if isinstance(own, dict) and own.keys() == {_SHARED} else own
        for own in facts["arguments"]
    )
    return WorkCall(facts["function"], arguments, facts["threads"], facts["versions"])


def answer_path(folder: Path, name: str) -> Path:
    """Return the file of an answer."""
    return folder / f"{name}.npz"


def error_path(folder: Path, name: str) -> Path:
    """Return the file of the error that stands for an answer."""
    return folder / f"{name}.error.json"


def element(folder: str, name: str, call: dict[str, Any], most_starts: int) -> None:
    """Answer a call into a file; called again after a job was cut off, begin anew, a few times.

    Parameters
    ----------
    name
        The name of the call, by which its files go.
    most_starts
        How often it may begin: one that is longer than the time limit would begin for ever.
    """
    place = Path(folder)
    if answer_path(place, name).exists():
        return
    try:
        if _started(place / f"{name}.starts") > most_starts:
            raise WorkerError(  # noqa: TRY301, it goes into a file as every error does
                f"{platform.node()}: the job of a piece was cut off {most_starts} times before its answer, expected it "
                "to end within its time limit. Raise 'time' of [workers] in the site."
            )
        from_plain(call).run().write(answer_path(place, name))
    except Exception as error:
        write_json(error_path(place, name), {"format": 1, "kind": type(error).__name__, "message": str(error)})
        raise


def _started(path: Path) -> int:
    """Return how often a call has begun, this time included: a byte each time."""
    with path.open("ab") as file:
        file.write(b".")
        file.flush()
        os.fsync(file.fileno())
    return path.stat().st_size


def error_of(path: Path) -> CrossperfError | None:
    """Return the error that stands in a file; ``None`` where there is none."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        facts = parse(read_bytes(path, MEGABYTE))
        kind = getattr(errors, str(facts["kind"]), None)
        if isinstance(kind, type) and issubclass(kind, CrossperfError):
            return kind(str(facts["message"]))
        return WorkerError(f"a piece failed ({facts['kind']}: {facts['message']}).")
    return None


def answer_of(path: Path) -> Parcel | None:
    """Return the answer that stands in a file; ``None`` where there is none yet."""
    with contextlib.suppress(OSError, ValueError):
        return Parcel.read(path)
    return None
