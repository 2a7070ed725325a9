"""Maps of the models' workloads, made once in a process of their own and kept for the next start.

t-SNE takes seconds and scikit-learn hundreds of megabytes; a server that answers in milliseconds has room for neither.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from crossperf import plain
from crossperf.documents import MEGABYTE, parse, read_bytes
from crossperf.errors import CrossperfError
from crossperf.files import write_json
from crossperf.model import store
from crossperf.prediction.workload_map import WorkloadMap, workload_map
from crossperf.serve.models import ServedModel

_LONGEST_S = 600.0
#: Changes where maps are made otherwise, so that those of earlier versions are not taken.
_VERSION = 1


class MapError(CrossperfError):
    """A map could not be made."""


class Atlas:
    """The maps of models by fingerprint: in memory, in a folder for caches, or made now.

    Parameters
    ----------
    folder
        Where maps are kept; ``None``: nowhere.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._maps: dict[str, WorkloadMap] = {}
        self._lock = threading.Lock()

    def map(self, served: ServedModel) -> WorkloadMap:
        """Return the map of a model; the first time ever, that takes seconds."""
        with self._lock:
            if served.fingerprint not in self._maps:
                self._maps[served.fingerprint] = self._read(served) or self._made(served)
            return self._maps[served.fingerprint]

    def _path(self, served: ServedModel) -> Path | None:
        return self._folder and self._folder / f"map-{_VERSION}-{served.fingerprint}.json"

    def _read(self, served: ServedModel) -> WorkloadMap | None:
        path = self._path(served)
        if path is None or not path.exists():
            return None
        try:
            own = plain.from_json(WorkloadMap, parse(read_bytes(path, 64 * MEGABYTE)))
        except (OSError, ValueError):
            return None  # a cache that cannot be read is none
        return own if own.workloads == served.model.workloads else None

    def _made(self, served: ServedModel) -> WorkloadMap:
        command = [sys.executable, "-m", "crossperf.serve.atlas", str(served.folder or store.SHIPPED)]
        quiet = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        try:
            done = subprocess.run(command, capture_output=True, timeout=_LONGEST_S, check=True, env=quiet)
            own = plain.from_json(WorkloadMap, parse(done.stdout))
        except subprocess.CalledProcessError as error:
            words = error.stderr.decode("utf-8", "replace").strip().splitlines() or ["it ended without a word"]
            raise MapError(words[-1].rpartition("Error: ")[2]) from error
        except (OSError, subprocess.TimeoutExpired, ValueError) as error:
            raise MapError(f"The map of model {served.id!r} could not be made ({type(error).__name__}).") from error
        path = self._path(served)
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_json(path, {"format": 1, **own.to_json()})
            except (OSError, CrossperfError):
                pass  # made again by the next start
        return own


def cache_folder() -> Path:
    """Return where this user's caches are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "crossperf"


if __name__ == "__main__":
    json.dump(workload_map(store.load(sys.argv[1])).to_json(), sys.stdout)
