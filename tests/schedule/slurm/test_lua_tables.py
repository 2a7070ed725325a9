"""``crossperf.lua`` and whatever stands in the place of its table: a job is placed by a sound one, or left as it is."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossperf.schedule.slurm import setup
from crossperf.schedule.slurm.table import KeyRow, PartitionChoice, checksum
from tests.schedule.slurm.conftest import TABLE, spoiled
from tests.schedule.slurm.lua import JOB, PARTS, place, write_table


@pytest.mark.parametrize("how", list(spoiled()))
def test_a_table_that_is_not_sound_changes_nothing(lua: str, folder: Path, how: str) -> None:
    data = spoiled()[how]
    (folder / setup.TABLE).unlink()
    if data is not None:
        (folder / setup.TABLE).write_bytes(data)
    (done,) = place(lua, folder, JOB)
    assert (done["status"], done["partition"], done["user"]) == (0, None, [])


def test_a_stale_table_gives_lists_of_what_is_about_as_fast(lua: str, folder: Path) -> None:
    write_table(folder, replace(TABLE, expires=int(time.time()) - 1))
    (done,) = place(lua, folder, JOB)
    assert done["partition"] == "big,gpu,cpu"
    assert done["user"] == [
        "crossperf: partitions big,gpu,cpu (genoa, h200, epyc-2), whichever starts it first: lmp takes about 2.5 min, "
        "0.25 times as long on big as on cpu (range 0.2 to 0.312; predicted). Your own choice: -p PARTITION."
    ]
    write_table(folder, replace(TABLE, expires=int(time.time()) + 600))
    assert place(lua, folder, JOB)[0]["partition"] == "big"


def test_a_pipe_in_the_place_of_the_table_keeps_nobody_waiting(lua: str, folder: Path) -> None:
    """Opened for reading alone, a pipe waits for a writer, and slurmctld answered nobody any more."""
    (folder / setup.TABLE).unlink()
    os.mkfifo(folder / setup.TABLE)
    (done,) = place(lua, folder, JOB)
    assert (done["status"], done["partition"]) == (0, None)
    assert "is no regular file" in done["info"][0]


def test_a_table_that_cannot_be_read_is_said_to_be_so(lua: str, folder: Path) -> None:
    (folder / setup.TABLE).unlink()
    (folder / setup.TABLE).symlink_to(setup.TABLE)  # to itself
    (done,) = place(lua, folder, JOB)
    assert (done["status"], done["partition"]) == (0, None)
    assert "the table cannot be read" in done["info"][0]
    assert "Too many levels of symbolic links" in done["info"][0]


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "/dev/full"])
def test_a_device_in_the_place_of_the_table_is_no_table(lua: str, folder: Path, device: str) -> None:
    (folder / setup.TABLE).unlink()
    (folder / setup.TABLE).symlink_to(device)
    (done,) = place(lua, folder, JOB)
    assert (done["status"], done["partition"]) == (0, None)


def test_whatever_is_missing_or_odd_a_submission_goes_through(lua: str, folder: Path) -> None:
    jobs: list[dict[str, Any]] = [{}, {"name": ""}, {"name": "lmp"}, {"name": "lmp", "min_nodes": "many"}]
    jobs += [{"name": "lmp", "features": ""}, {"name": "%s %d \n", "script": "\0" * 10}, JOB | {"time_limit": -5}]
    for parts in (PARTS, {}, {"big": {}}, {"big": {"state_up": 3, "total_nodes": "x"}}):
        for done in place(lua, folder, *jobs, parts=parts):
            assert done["status"] == 0


@pytest.mark.parametrize("numbers", [b"a,b,", b"nan,nan,", b"inf,0.2,", b"-1,0.2,", b"0,0.2,"])
def test_what_raises_inside_leaves_the_job_as_it_is(lua: str, folder: Path, numbers: bytes) -> None:
    """Numbers that are no times come past the sums of a table that was written so."""
    data = TABLE.to_bytes().replace(b"0.25,0.2,", numbers)
    lines = data.split(b"\n")[1:-2]
    body = b"".join(
        line.rpartition(b"\t")[0] + b"\t" + checksum(line.rpartition(b"\t")[0]).encode() + b"\n" for line in lines
    )
    digest, header = b"0123456789abcdef", b"crossperf-table\t2\t%010d\t%010d\t0123456789abcdef\n"
    start, end = len(header % (0, 0)), b"end\t" + digest + b"\n"
    sizes = start + len(body) + len(end), start + body.index(b"site\t")
    (folder / setup.TABLE).write_bytes(header % sizes + body + end)
    (done,) = place(lua, folder, JOB)
    assert (done["status"], done["partition"], done["user"]) == (0, None, [])
    assert "left a job as it is" in done["info"][0]


def test_without_its_module_the_plugin_lets_every_job_through(lua: str, folder: Path) -> None:
    (folder / setup.MODULE).unlink()
    (done,) = place(lua, folder, JOB)
    assert (done["status"], done["partition"]) == (0, None)
    assert "jobs are left as they are" in done["info"][0]
    (folder / setup.MODULE).write_text("this is not Lua")
    assert place(lua, folder, JOB)[0]["status"] == 0


def test_a_table_that_is_a_folder_is_no_table(lua: str, folder: Path) -> None:
    (folder / setup.TABLE).unlink()
    (folder / setup.TABLE).mkdir()
    (done,) = place(lua, folder, JOB)
    assert (done["status"], done["partition"]) == (0, None)


def test_names_with_tabs_breaks_and_letters_of_any_script_are_found(lua: str, folder: Path) -> None:
    odd = ["a\tb", "a\nb", "a,b;c%d", "Ω-solver", "-", "key\tlmp", "x" * 300]
    write_table(folder, replace(TABLE, rows={(name, "", ""): TABLE.rows["lmp", "", ""] for name in odd}))
    done = place(lua, folder, *(JOB | {"name": name} for name in odd))
    assert [placed["partition"] for placed in done] == ["big"] * len(odd)


def test_every_key_of_a_large_table_is_found_and_none_besides(lua: str, folder: Path) -> None:
    apps = [f"app{number}{'y' * (number % 97)}" for number in range(3_000)]
    best = {app: ("big", "gpu")[number % 2] for number, app in enumerate(apps)}
    rows = {
        (app, "", ""): KeyRow((PartitionChoice(name, 0.5, 0.5, 0.5), PartitionChoice("cpu", 1, 1, 1)))
        for app, name in best.items()
    }
    write_table(folder, replace(TABLE, rows=rows))
    some = [*apps[::7], apps[-1]]
    done = place(lua, folder, *(JOB | {"name": app} for app in some))
    assert [placed["partition"] for placed in done] == [best[app] for app in some]
    done = place(lua, folder, *(JOB | {"name": f"{app}z"} for app in apps[:100]))
    assert {placed["partition"] for placed in done} == {None}
