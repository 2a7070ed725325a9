"""Runs ``crossperf.lua`` outside of a controller, in each Lua that Slurm is built with."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crossperf.schedule.slurm import names, setup
from crossperf.schedule.slurm.table import PlacementTable
from tests.collect.real import need

#: Debian's Slurm 22.05 brings Lua 5.1; later builds take 5.3 or 5.4.
LUAS = ("lua5.1", "lua5.3", "lua5.4")
#: What Slurm hands over where a job asks for nothing, and such a job.
NOTHING = 4294967294
JOB = {"name": "lmp", "user_name": "ann", "min_nodes": NOTHING, "min_cpus": 1, "time_limit": NOTHING}
#: What the controller tells of its partitions; the numbers are those of slurm.h.
PARTS: dict[str, dict[str, Any]] = {
    name: {
        "flag_default": int(name == "cpu"),
        "state_up": 3,
        "total_nodes": nodes,
        "max_nodes": 4294967295,
        "min_nodes": 0,
        "max_time": max_time,
        "default_time": 60 if name == "cpu" else 4294967294,
        "max_cpus_per_node": 4294967295,
        "flags": int(name == "cpu"),
    }
    for name, nodes, max_time in (("cpu", 2, 4294967295), ("big", 1, 1440), ("gpu", 1, 4294967295))
}
STUB = """
local spoken
slurm = {
  NO_VAL = 4294967294, NO_VAL16 = 65534, INFINITE = 4294967295, SUCCESS = 0, ERROR = -1,
  log_info = function(form, ...) spoken.info[#spoken.info + 1] = form:format(...) end,
  log_user = function(form, ...) spoken.user[#spoken.user + 1] = form:format(...) end,
}
local function text(value)
  if value == nil then return "null" end
  if type(value) ~= "string" then return tostring(value) end
  return '"' .. value:gsub('[%c"\\\\\\127-\\255]', function(c) return ("\\\\u%04x"):format(c:byte()) end) .. '"'
end
local function list(values)
  local texts = {}
  for i, value in ipairs(values) do texts[i] = text(value) end
  return "[" .. table.concat(texts, ",") .. "]"
end
"""
PLACE = """
dofile(FOLDER .. "/job_submit.lua")
for _, case in ipairs(CASES) do
  spoken = { info = {}, user = {} }
  local status = slurm_job_submit(case.job, case.parts, 0)
  print(('{"status":%s,"partition":%s,"time_limit":%s,"gres":%s,"admin_comment":%s,"user":%s,"info":%s}'):format(
    text(status), text(case.job.partition), text(case.job.time_limit), text(case.job.gres),
    text(case.job.admin_comment), list(spoken.user), list(spoken.info)))
end
"""
NAMED = """
local crossperf = dofile(FOLDER .. "/crossperf.lua")
for _, job in ipairs(CASES) do
  local apps, input, off = crossperf.named(job)
  print(('{"apps":%s,"input":%s,"off":%s}'):format(list(apps), text(input), text(off)))
end
"""


def run(lua: str, folder: Path, cases: Sequence[Any], program: str) -> list[dict[str, Any]]:
    """Return what a program prints for each case, as JSON."""
    need(lua)
    script = f"{STUB}\nlocal FOLDER, CASES = {setup.lua(str(folder))}, {setup.lua(cases)}\n{program}"
    done = subprocess.run(
        [lua, "-"], input=script.encode(errors="surrogateescape"), capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def place(
    lua: str, folder: Path, *jobs: Mapping[str, Any], parts: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Return what becomes of jobs that are submitted one after the other."""
    return run(lua, folder, [{"job": job, "parts": PARTS if parts is None else parts} for job in jobs], PLACE)


def write_table(folder: Path, table: PlacementTable) -> None:
    """Write the table where the plugin in a folder looks for it."""
    table.write(folder / setup.TABLE)


def twins(lua: str, folder: Path, jobs: list[dict[str, Any]]) -> None:
    """Assert that Lua and Python give jobs the same names."""
    answers = run(lua, folder, jobs, NAMED)
    for job, answer in zip(jobs, answers, strict=True):
        nodes = 1 if job.get("min_nodes", NOTHING) == NOTHING else job["min_nodes"]
        ours = names.named(job.get("name", ""), "", job.get("comment", ""), job.get("script", ""), nodes)
        apps = [app.encode("latin-1").decode(errors="replace") for app in dict.fromkeys(answer["apps"])]
        assert (apps, answer["input"], answer["off"]) == (list(ours.apps), ours.input, ours.off), job
