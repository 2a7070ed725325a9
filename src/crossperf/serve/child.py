"""The process that reads what strangers upload: one request a line on stdin, one framed answer on stdout.

Native readers (Parquet, Caliper, Nsight Compute) can crash, hang or take all memory on a hostile file; here that costs
a process with limits and nothing else. `readers` is the other end.
"""

from __future__ import annotations

import io
import json
import os
import resource
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from crossperf.errors import CrossperfError, shortened

#: What stands before an answer: the bytes of its facts and of its arrays.
FRAME = struct.Struct("<QQ")
#: Problems that one answer names; a table can have millions.
MOST_PROBLEMS = 1_000

Answer = tuple[dict[str, Any], bytes]


def measure(path: Path, need_runtime: bool = False) -> Answer:
    """Return the cells of a runs table as facts and arrays; see `dataset.measured.Measured`."""
    import numpy as np

    from crossperf.prediction.answer import measure as measured_of

    own = measured_of(path, need_runtime=need_runtime)
    arrays = io.BytesIO()
    np.savez(arrays, values_nc=own.values_nc, runtime_s_n=own.runtime_s_n)
    names = ("names", "app_n", "input_n", "platform_n", "failed_runs", "runnable_n")
    return {name: getattr(own, name) for name in names}, arrays.getvalue()


def runs(path: Path, need_runtime: bool = True, need_counters: bool = True) -> Answer:
    """Return the runs of a table as records."""
    from crossperf.runs.raw import opened
    from crossperf.runs.table import sound

    table = sound(opened(path), need_runtime, need_counters)
    return {"runs": [run.to_json() for run in table.runs()]}, b""


def check(path: Path, need_runtime: bool = True) -> Answer:
    """Return every problem of a table."""
    from crossperf.runs.table import check as problems_of

    problems = problems_of(path, need_runtime=need_runtime)
    return {"problems": [own.to_json() for own in problems[:MOST_PROBLEMS]], "count": len(problems)}, b""


def imported(path: Path, format: str = "auto", **names: Any) -> Answer:  # noqa: A002
    """Return the runs of a profiler's file, with notes and what was left out."""
    from crossperf.importers.detect import import_runs

    own = import_runs(format, [path], **names)
    notes = list(dict.fromkeys(text for _, text in own.notes))
    rejected = [str(each) for each in own.rejected[:MOST_PROBLEMS]]
    return {"runs": [run.to_json() for run in own.runs], "notes": notes, "rejected": rejected}, b""


_TASKS: Mapping[str, Callable[..., Answer]] = {"measure": measure, "runs": runs, "check": check, "import": imported}


def limit(memory_bytes: int) -> None:
    """Bound the memory of this process, and forbid it core files."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_next(seconds: float) -> None:
    """Bound the processor time of the next request: the kernel ends what hangs, even where nobody waits any more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    # Several threads may use as many seconds in one.
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + 4 * seconds) + 2, hard))


def answered(request: Mapping[str, Any]) -> Answer:
    """Return the answer to a request; what goes wrong is an answer too."""
    os.chdir(request["folder"])  # messages then name the file alone, and no folder of the server
    try:
        return _TASKS[request["task"]](Path(request["name"]), **request["settings"])
    except CrossperfError as error:
        return {"error": _error(error)}, b""
    except MemoryError:
        return {"crash": "memory"}, b""
    except Exception as error:  # whatever a reader raises on a file that nobody foresaw
        return {"crash": shortened(f"{type(error).__name__}: {error}", 300)}, b""
    finally:
        os.chdir("/")


def _error(error: CrossperfError) -> dict[str, Any]:
    problems = error.facts.get("problems") or []
    listed = [own.to_json() for own in problems[:MOST_PROBLEMS] if not isinstance(own, str)]
    facts = {name: value for name, value in error.facts.items() if isinstance(value, str | int) and name != "path"}
    return {"kind": type(error).__name__, "message": str(error), "problems": listed, "facts": facts}


def serve(requests: Iterator[bytes], answers: BinaryIO, seconds: float) -> None:
    """Answer requests until there are no more, each within some seconds."""
    for line in requests:
        limit_next(seconds)
        facts, arrays = answered(json.loads(line))
        data = json.dumps(facts).encode()
        answers.write(FRAME.pack(len(data), len(arrays)) + data + arrays)
        answers.flush()


def main() -> None:
    """Take the place of stdout, so that what a reader prints spoils no answer, and serve."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    import polars  # noqa: F401 - the first request should not wait for it

    limit(int(sys.argv[1]))
    serve(iter(sys.stdin.buffer), answers, float(sys.argv[2]))


if __name__ == "__main__":
    main()
