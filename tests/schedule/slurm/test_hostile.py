"""No user can keep the controller busy: submissions made for it, in every Lua and in a real Slurm."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from crossperf.schedule.slurm import names, setup
from crossperf.schedule.slurm.table import KeyRow, PartitionChoice, PartitionFacts, PlacementTable
from tests.schedule.slurm import hostile
from tests.schedule.slurm.cluster import Cluster
from tests.schedule.slurm.lua import PARTS, place, run, twins

#: Seconds of a processor that one submission may take on a busy machine; the quadratic patterns took up to 27.
ENOUGH_S = 0.5
TIMED = """
dofile(FOLDER .. "/job_submit.lua")
for _, case in ipairs(CASES) do
  spoken = { info = {}, user = {} }
  local start = os.clock()
  local status = slurm_job_submit(case, PARTS, 0)
  print(('{"status":%d,"seconds":%.6f,"hook":%s}'):format(status, os.clock() - start, text(debug.gethook())))
end
"""


def timed(lua: str, folder: Path, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return run(lua, folder, jobs, f"local PARTS = {setup.lua(PARTS)}\n{TIMED}")


def test_no_submission_takes_the_controller_longer_than_a_moment(lua: str, folder: Path) -> None:
    answers = timed(lua, folder, list(hostile.JOBS.values()))
    slow = {what: a["seconds"] for what, a in zip(hostile.JOBS, answers, strict=True) if a["seconds"] > ENOUGH_S}
    assert slow == {}
    assert {(answer["status"], answer["hook"]) for answer in answers} == {(0, None)}


def test_a_job_that_wants_no_advice_is_not_even_read(lua: str, folder: Path) -> None:
    """Reading the script of this job would raise."""
    program = """
    local crossperf = dofile(FOLDER .. "/crossperf.lua")
    spoken = { info = {}, user = {} }
    local job = setmetatable({ comment = "crossperf=off" }, { __index = function(_, field)
      if field ~= "comment" then error("read " .. field) end
    end })
    crossperf.place(job, {})
    print(list(spoken.info))
    """
    assert run(lua, folder, [], program) == [[]]


def test_what_takes_too_many_instructions_leaves_the_job_as_it_is_and_the_sites_own_hook_in_place(
    lua: str, folder: Path
) -> None:
    """A partition list of the site's own that never ends stands for whatever nobody thought of."""
    program = """
    local crossperf = dofile(FOLDER .. "/crossperf.lua")
    spoken = { info = {}, user = {} }
    local ours = function() end
    debug.sethook(ours, "", 1000000)
    local job = setmetatable({ name = "lmp" }, { __index = function(_, field) while true do end end })
    crossperf.place(job, {})
    print(list(spoken.info))
    print(text(debug.gethook() == ours))
    """
    messages, same = run(lua, folder, [], program)
    assert "left a job as it is: it took more than" in messages[0]
    assert same is True


def test_a_site_with_many_partitions_is_served_within_the_instructions_allowed(lua: str, folder: Path) -> None:
    names_ = [f"p{number:02d}" for number in range(48)]
    features = tuple(f"feature{number}" for number in range(30))
    partitions = tuple(PartitionFacts(name, f"platform-{name}", 4, 64, 256000, features, {}) for name in names_)
    choices = tuple(PartitionChoice(name, 1.0 - n / 100, 0.123456, 1.23456) for n, name in enumerate(names_))
    table = PlacementTable("p00", "list", partitions, {("lmp", "", ""): KeyRow(choices, 60.0)})
    assert table.too_long == 0
    table.write(folder / setup.TABLE)
    parts = {name: PARTS["gpu"] | {"flag_default": int(name == "p00"), "total_nodes": 4} for name in names_}
    script = "#!/bin/bash\n" + "export VARIABLE=value\n" * 400 + "srun ./lmp in.melt\n"
    job = {"name": "run.sh", "user_name": "ann", "script": script, "time_limit": 60, "features": "feature0&feature29"}
    (done,) = place(lua, folder, job, parts=parts)
    assert done["partition"] == ",".join(reversed(names_))


def test_both_read_the_same_start_of_a_script_and_of_a_comment(folder: Path) -> None:
    """A program right before and right behind the bounds is seen by both readers or by none."""
    before = "#" * (names.LONGEST - 12) + "\n"
    scripts = [before[shift:] + "srun ./solve" for shift in range(40)]
    scripts += ["a=b " * count + "./solve" for count in range(names.MOST_WORDS - 3, names.MOST_WORDS + 3)]
    scripts += [before[shift:] + "srun ./sölve" for shift in range(12, 40)]
    jobs: list[dict[str, Any]] = [{"name": "", "script": script} for script in scripts]
    jobs += [{"name": "n" * count} for count in range(names.LONGEST_NAME - 2, names.LONGEST_NAME + 3)]
    jobs += [{"comment": " " * (names.LONGEST_COMMENT - shift) + "app=lmp"} for shift in range(12)]
    jobs += [{"comment": "app=x input=" + "i" * count} for count in (names.LONGEST_NAME, names.LONGEST_NAME + 1)]
    twins("lua5.1", folder, jobs)


def test_a_job_with_odd_fields_is_placed_by_its_name_or_left(folder: Path) -> None:
    answers = dict(zip(hostile.FIELDS, place("lua5.1", folder, *hostile.FIELDS.values()), strict=True))
    assert {answer["partition"] for what, answer in answers.items() if what != "a long user"} == {None}


@pytest.mark.slow
def test_a_real_controller_answers_others_while_scripts_of_64_kb_are_submitted(slurm: Cluster, tmp_path: Path) -> None:
    """Before, one of these scripts kept slurmctld from answering anybody for half a minute."""
    scripts = [what for what in hostile.SCRIPTS if "no text" not in what]
    for number, what in enumerate(scripts):
        (tmp_path / f"{number}.sh").write_text("#!/bin/bash\n" + hostile.SCRIPTS[what])
    statuses: list[int] = []

    def submit() -> None:
        for number in range(len(scripts)):
            done = slurm.run("sbatch", "--hold", "-o/dev/null", str(tmp_path / f"{number}.sh"))
            statuses.append(done.returncode)

    submitting = threading.Thread(target=submit)
    submitting.start()
    waits = []
    while submitting.is_alive():
        start = time.monotonic()
        subprocess.run(["sinfo"], check=True, capture_output=True, timeout=20)
        waits.append(time.monotonic() - start)
    submitting.join()
    assert statuses == [0] * len(scripts)
    assert max(waits) < 3.0, waits
