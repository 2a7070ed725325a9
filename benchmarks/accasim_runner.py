"""Run AccaSim 1.1.3 on a trace and print when each job started, and the CPU time that it took.

    python benchmarks/accasim_runner.py TRACE.swf NODES fcfs|easy|easy-reserved

``easy`` is AccaSim's EASY backfilling as it was published. It hands its allocator an empty list of reserved nodes, and
so lets any job start that fits, even one that delays the first in the queue. ``easy-reserved`` refuses jobs that would
run into the reservation. Neither lets a job run past the reservation on nodes that the first leaves over, as EASY may.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# AccaSim imports these from where they stood before Python 3.10.
for _name in ("Mapping", "MutableMapping", "Sequence", "Iterable", "Callable", "Hashable", "Sized"):
    setattr(collections, _name, getattr(collections.abc, _name))


def main(trace: str, nodes: str, rule: str) -> None:
    starts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        simulator = make(trace, int(nodes), rule, Path(folder))
        note_starts(simulator, starts)
        begin = time.process_time()
        simulator.start_simulation()
        cpu_s = time.process_time() - begin
    print(json.dumps({"cpu_s": cpu_s, "starts": starts}))


def make(trace: str, nodes: int, rule: str, folder: Path) -> Any:
    from accasim.base.allocator_class import FirstFit
    from accasim.base.scheduler_class import EASYBackfilling, FirstInFirstOut
    from accasim.base.simulator_class import Simulator

    class KeepReservation(FirstFit):
        def _compute_reservation_overlaps(self, e: Any, cur_time: int, reserved_time: Any, reserved_nodes: Any) -> Any:
            late = reserved_time is not None and cur_time + e.expected_duration > reserved_time
            return ["all"] if late else []

    system = {
        "groups": {"all": {"core": 1}},
        "resources": {"all": nodes},
        "equivalence": {"processor": {"core": 1}},
        "start_time": 0,
    }
    config = folder / "system.json"
    config.write_text(json.dumps(system), encoding="utf-8")
    allocator = KeepReservation() if rule == "easy-reserved" else FirstFit()
    dispatcher = FirstInFirstOut(allocator) if rule == "fcfs" else EASYBackfilling(allocator)
    quiet = {"scheduling_output": False, "statistics_output": False, "show_statistics": False, "LOG_LEVEL": "ERROR"}
    return Simulator(trace, str(config), dispatcher, RESULTS_FOLDER_PATH=str(folder), **quiet)


def note_starts(simulator: Any, starts: dict[str, int]) -> None:
    finish = simulator.mapper.finish_event

    def note(job: Any) -> None:
        starts[job.id] = job.start_time
        finish(job)

    simulator.mapper.finish_event = note


if __name__ == "__main__":
    main(*sys.argv[1:])
