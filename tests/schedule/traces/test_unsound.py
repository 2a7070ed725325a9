"""Whatever the bytes of a trace, a map or a table of outages: jobs or rows, or one sentence of ours."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crossperf.errors import CrossperfError
from crossperf.schedule.mapping import read_map
from crossperf.schedule.readers import read_machines, read_maintenance, read_times
from crossperf.schedule.traces import read_trace
from tests.schedule.traces.test_tables import GAVEL, HELIOS, PAI_TASKS, PHILLY, SUPERCLOUD, THROUGHPUTS

BRIEF = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
SWF = (
    "; MaxProcs: 1,024\n"
    + "1 0 5 100 8 -1 2048 8 600 4096 1 3 1 7 1 -1 -1 -1\n2 9 5 100 8 -1 -1 8 600 -1 1 3 1 7 1 -1 1 30\n"
)

#: The name of a file, what is sound in it, and what reads it.
FILES: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "t.swf": (SWF, lambda path: read_trace(path, feedback="jobs")),
    "users.swf": (SWF, lambda path: read_trace(path, feedback="users", share_nodes=True)),
    "cluster_log.csv": (HELIOS, read_trace),
    "pai_task_table.csv": (PAI_TASKS, read_trace),
    "slurm-log.csv": (SUPERCLOUD, read_trace),
    "cluster_job_log": (json.dumps(PHILLY), read_trace),
    "g.trace": ("\n".join(GAVEL), lambda path: read_trace(path, throughputs=path.parent / "throughputs.json")),
    "t.json": (json.dumps(THROUGHPUTS), read_times),
    "map.csv": ("executable,user,queue,app,input,priority\n1,2,,lu,n,3\n", read_map),
    "windows.csv": ("machine,start_s,end_s,nodes\na,1,2,3\n", read_maintenance),
    "machines.csv": ("machine,size,price_per_node_hour,power_w,idle_w,memory_gb\na,1,2,3,4,5\n", read_machines),
}


def spoiled(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with a few changed, cut out, doubled or replaced by what readers stumble over."""
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(data) + 1), rng.randint(0, 12)
        odd = [b"", b"\0", b"\xff", b"-1", b"nan", b"1e999", b"9" * 400, b",", b"\n", b'"', b"[" * 50, data[:length]]
        data = data[:at] + rng.choice(odd) + data[at + rng.choice([0, length]) :]
    return data


@pytest.mark.parametrize("name", FILES)
def test_an_unsound_file_is_read_or_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    text, read = FILES[name]
    (tmp_path / "throughputs.json").write_text(json.dumps(THROUGHPUTS))
    (tmp_path / name).write_text(text)
    read(tmp_path / name)

    @BRIEF
    @given(st.integers(0, 2**32), st.one_of(st.none(), st.binary(max_size=200)))
    def tried(seed: int, data: bytes | None) -> None:
        (tmp_path / name).write_bytes(spoiled(text.encode(), random.Random(seed)) if data is None else data)  # noqa: S311
        try:
            read(tmp_path / name)
        except CrossperfError as error:
            assert str(error).count("\n") == 0

    tried()
