"""``crossperf.lua`` outside of a controller: where jobs go, in every Lua that Slurm is built with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crossperf.schedule.slurm import setup
from crossperf.schedule.slurm.table import KeyRow, PartitionChoice
from tests.schedule.slurm.conftest import SITE, TABLE
from tests.schedule.slurm.lua import JOB, NOTHING, PARTS, PLACE, place, run, write_table


def test_a_known_job_is_sent_to_the_best_partition_and_its_user_reads_it(lua: str, folder: Path) -> None:
    (done,) = place(lua, folder, JOB)
    assert (done["status"], done["partition"]) == (0, "big")
    assert done["user"] == [
        "crossperf: partition big (genoa) by policy 'fastest': lmp takes about 2.5 min, 0.25 times as long as on cpu "
        "(range 0.2 to 0.312; predicted). Your own choice: -p PARTITION."
    ]
    assert done["admin_comment"] == ("crossperf app=lmp input=nodes-1 sent=big there=0.25,0.2,0.3125 here=1,0.8,1.25")


GENERAL = ["wrap", "run.sh", "JOB.SLURM", "python3.11", "a.out"]


def test_a_name_that_jobs_of_many_programs_bear_is_no_name(lua: str, folder: Path) -> None:
    write_table(folder, replace(TABLE, rows={(name, "", ""): TABLE.rows["lmp", "", ""] for name in GENERAL}))
    for done in place(lua, folder, *(JOB | {"name": name, "script": f"./{name}"} for name in GENERAL)):
        assert (done["partition"], done["admin_comment"]) == (None, None)
    (said,) = place(lua, folder, JOB | {"name": "run.sh", "comment": "app=a.out"})
    assert said["partition"] == "big", "said outright it is a name"


def test_the_program_comes_before_the_name(lua: str, folder: Path) -> None:
    (done,) = place(lua, folder, JOB | {"name": "solve", "script": "srun ./lmp"})
    assert (done["partition"], done["admin_comment"][:19]) == ("big", "crossperf app=lmp i")


def test_jobs_that_do_the_same_are_noted_with_the_same_sum(lua: str, folder: Path) -> None:
    scripts = ["#!/bin/sh\n#SBATCH -pbig\nsrun ./lmp in.a", "#!/bin/sh\n#SBATCH -p cpu\nsrun ./lmp in.a"]
    scripts += ["N=1\nsrun ./lmp in.b", "N=2\nsrun ./lmp in.b"]
    jobs = [JOB | {"script": script} for script in scripts]
    jobs += [JOB | {"script": scripts[0], "argv": {0: "run.sh", 1: word}} for word in ("x", "x", "y")]
    works = [done["admin_comment"].partition(" work=")[2].partition(" ")[0] for done in place(lua, folder, *jobs)]
    assert works[0] == works[1]
    assert works[4] == works[5]
    assert len(set(works)) == 5
    assert all(len(work) == 8 for work in works)


def test_the_most_special_key_wins(lua: str, folder: Path) -> None:
    melt = JOB | {"comment": "input=melt"}
    first, second, third = place(lua, folder, JOB, melt, melt | {"user_name": "root"})
    assert [first["partition"], second["partition"], third["partition"]] == ["big", "gpu", "big"]
    assert "measured 5 times" in third["user"][0]


def test_a_job_that_belongs_to_the_default_stays_there_and_its_user_reads_it(lua: str, folder: Path) -> None:
    (done,) = place(lua, folder, JOB | {"name": "hpcc"})
    assert done["partition"] is None
    assert "partition cpu (epyc-2) by policy 'fastest': hpcc takes about 10 min there (predicted)" in done["user"][0]


def test_without_seconds_the_user_reads_the_ratio_alone(lua: str, folder: Path) -> None:
    (done,) = place(lua, folder, JOB | {"name": "solve"})
    assert "solve takes 0.25 times as long as on cpu (range" in done["user"][0]


FIXED: list[dict[str, Any]] = [
    {"partition": "cpu"},
    {"req_nodes": "cpu1"},
    {"reservation": "mine"},
    {"clusters": "other"},
    {"tres_per_task": "gres:gpu:1"},
    {"het_job_offset": 1},
    {"exc_nodes": "big1"},
    {"mem_per_tres": "gres:gpu:100"},
    {"cpus_per_tres": "gres:gpu:2"},
    {"ntasks_per_tres": 2},
    {"sockets_per_node": 2},
    {"threads_per_core": 1},
    {"pn_min_tmp_disk": 100},
    {"pn_min_tmp_disk": 200_000},
    {"comment": "crossperf=off"},
    {"name": "unknown"},
    {"features": "x86|gpu"},
    {"features": "[x86*2&gpu*1]"},
]


def test_a_job_that_is_not_ours_to_place_stays_as_it_is(lua: str, folder: Path) -> None:
    for more, done in zip(FIXED, place(lua, folder, *(JOB | more for more in FIXED)), strict=True):
        assert (done["status"], done["partition"], done["user"]) == (0, more.get("partition"), []), more


WANTS: list[tuple[dict[str, Any], str | None]] = [
    ({"min_nodes": 2, "max_nodes": 2}, None),  # two nodes: the default partition alone has them
    ({"min_cpus": 2}, "big"),
    ({"min_cpus": 3}, None),
    ({"cpus_per_task": 4, "min_cpus": 4}, None),
    ({"ntasks_per_node": 2, "cpus_per_task": 2}, None),
    ({"pn_min_cpus": 3}, None),
    ({"min_mem_per_node": 9000}, "big"),
    ({"min_mem_per_node": 17000}, None),
    ({"min_mem_per_cpu": 5000, "min_cpus": 2}, "big"),
    ({"min_mem_per_cpu": 9000, "min_cpus": 2}, None),
    ({"min_mem_per_node": 0}, "big"),  # --mem=0 asks for all there is
    ({"tres_per_node": "gres:gpu:1"}, "gpu"),
    ({"tres_per_node": "gres:gpu:fake:2"}, "gpu"),
    ({"tres_per_node": "gres/gpu:2"}, "gpu"),
    ({"tres_per_node": "gres:gpu"}, "gpu"),
    ({"tres_per_node": "gres:gpu:3"}, None),
    ({"tres_per_node": "gres:gpu:a100:1"}, None),
    ({"tres_per_node": "gres:gpu:1,gres:nvme:1"}, None),
    ({"tres_per_job": "gres:gpu:2"}, "gpu"),
    ({"tres_per_job": "gres:gpu:3"}, None),
    ({"features": "gpu"}, "gpu"),
    ({"features": "x86&genoa"}, "big"),
    ({"features": "cascade"}, None),
    ({"time_limit": 1440}, "big"),
    ({"time_limit": 1441}, "gpu"),
    ({"time_limit": 4294967295}, "gpu"),  # unlimited
]


def test_a_job_goes_only_where_what_it_asks_for_is(lua: str, folder: Path) -> None:
    done = place(lua, folder, *(JOB | wants for wants, _ in WANTS))
    for (wants, expected), placed in zip(WANTS, done, strict=True):
        assert (placed["status"], placed["partition"]) == (0, expected), wants


CLOSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"state_up": 1}, {}, "gpu"),
    ({"max_nodes": 0}, {}, "gpu"),
    ({"min_nodes": 2}, {}, "gpu"),
    ({"total_nodes": 0}, {}, "gpu"),
    ({"flags": 16}, {}, "gpu"),  # a reservation is required
    ({"flags": 15 + 32}, {}, "big"),
    ({"qos": "short"}, {}, "gpu"),  # nobody knows what it asks for
    ({"qos": ""}, {}, "big"),
    ({"priority_tier": 9, "max_share": 0}, {}, "big"),
    ({"allow_alloc_nodes": "login1,login2"}, {"alloc_node": "login3"}, "gpu"),
    ({"allow_alloc_nodes": "login1,login2"}, {"alloc_node": "login2"}, "big"),
    ({"allow_alloc_nodes": "login[1-4]"}, {"alloc_node": "login2"}, "gpu"),  # not worked out here
    ({"allow_alloc_nodes": "ALL"}, {"alloc_node": "login3"}, "big"),
    ({"max_cpus_per_node": 1}, {"min_cpus": 2}, "gpu"),
    ({"max_cpus_per_node": 1}, {"tres_per_task": "cpu=2"}, "gpu"),
    ({"max_cpus_per_node": 1}, {"shared": 0}, "gpu"),  # a whole node
    ({"max_cpus_per_node": 2}, {"min_cpus": 2}, "big"),
    ({"max_mem_per_node": 1000}, {"min_mem_per_node": 2000}, "gpu"),
    ({"max_mem_per_node": 2000}, {"min_mem_per_node": 2000}, "big"),
    ({"max_mem_per_cpu": 1000}, {"min_mem_per_cpu": 1001}, "gpu"),
    ({"max_mem_per_cpu": 1000}, {"min_mem_per_node": 2000, "min_cpus": 2}, "big"),
    ({"max_mem_per_cpu": 1000}, {"min_mem_per_node": 2001, "min_cpus": 2}, "gpu"),
    ({"def_mem_per_cpu": 100}, {}, "gpu"),  # less memory than without the plugin
    ({"def_mem_per_cpu": 100}, {"min_mem_per_cpu": 50}, "big"),
    ({"allow_accounts": "physics,chemistry"}, {"account": "biology"}, "gpu"),
    ({"allow_accounts": "physics,chemistry"}, {}, "gpu"),
    ({"allow_accounts": "physics,chemistry"}, {"default_account": "chemistry"}, "big"),
    ({"deny_accounts": "physics"}, {"account": "physics"}, "gpu"),
    ({"deny_accounts": "physics"}, {"account": "chemistry"}, "big"),
    ({"allow_qos": "long"}, {"qos": "short"}, "gpu"),
    ({"deny_qos": "short"}, {"qos": "short"}, "gpu"),
]


def test_a_job_goes_only_where_it_is_let_in(lua: str, folder: Path) -> None:
    cases = [{"job": JOB | job, "parts": PARTS | {"big": PARTS["big"] | part}} for part, job, _ in CLOSED]
    for case, done in zip(CLOSED, run(lua, folder, cases, PLACE), strict=True):
        assert done["partition"] == case[2], case


def test_a_partition_that_the_user_may_not_see_is_not_chosen(lua: str, folder: Path) -> None:
    (done,) = place(lua, folder, JOB, parts={name: part for name, part in PARTS.items() if name != "big"})
    assert done["partition"] == "gpu"


def test_what_the_table_does_not_know_of_a_partition_is_not_relied_on(lua: str, folder: Path) -> None:
    unknown = {"cpus": None, "memory_mb": None, "features": None, "gres": None}
    bare = tuple(replace(partition, **unknown) for partition in TABLE.partitions)
    write_table(folder, replace(TABLE, partitions=bare))
    asks = [{}, {"min_cpus": 2}, {"min_mem_per_node": 10}, {"features": "x86"}, {"tres_per_node": "gres:gpu:1"}]
    done = place(lua, folder, *(JOB | ask for ask in asks))
    assert [placed["partition"] for placed in done] == ["big", None, None, None, None]


def test_limits_are_scaled_to_the_top_of_the_range_only_where_the_site_asks_for_it(lua: str, folder: Path) -> None:
    jobs = [JOB | {"time_limit": 100}, JOB | {"time_limit": 1}, JOB | {"name": "hpcc", "time_limit": 100}, JOB]
    assert [placed["time_limit"] for placed in place(lua, folder, *jobs)] == [100, 1, 100, 60]
    setup.write(folder, setup.files(folder, SITE, scale_limits=True), overwrite=True)
    # 100 minutes, 0.25 times as long, 1.25 times that at the top of the range: 31.25, and no shorter than that.
    assert [placed["time_limit"] for placed in place(lua, folder, *jobs)] == [32, 1, 100, 60]
    slower = KeyRow((PartitionChoice("big", 30.0, 25.0, 40.0), PartitionChoice("cpu", 1.0, 1.0, 1.0)))
    write_table(folder, replace(TABLE, rows={("lmp", "", ""): slower}))
    assert place(lua, folder, jobs[0])[0]["time_limit"] == 1440, "not beyond what the partition allows"


def times(**relative: float) -> KeyRow:
    return KeyRow(tuple(PartitionChoice(name, t, 0.8 * t, 1.25 * t) for name, t in relative.items()), 600.0)


LISTED: list[tuple[dict[str, float], str | None]] = [
    ({"big": 0.25, "gpu": 0.5, "cpu": 1.0}, "big,gpu,cpu"),
    ({"cpu": 1.0, "gpu": 0.5, "big": 0.25}, "big,gpu,cpu"),
    ({"big": 0.25, "gpu": 0.2, "cpu": 1.0}, "gpu,big"),  # cpu takes 5 times as long as gpu
    ({"big": 0.1, "gpu": 9.0, "cpu": 1.0}, "big"),
    ({"big": 5.0, "gpu": 9.0, "cpu": 1.0}, None),
    ({"big": 2.0, "gpu": 9.0, "cpu": 1.0}, "cpu,big"),
]


@pytest.mark.parametrize(("relative", "expected"), LISTED)
def test_without_the_queues_a_job_gets_a_list_of_what_takes_up_to_four_times_as_long_as_the_fastest(
    lua: str, folder: Path, relative: dict[str, float], expected: str | None
) -> None:
    write_table(folder, replace(TABLE, policy="list", rows={("lmp", "", ""): times(**relative)}))
    (done,) = place(lua, folder, JOB)
    assert done["partition"] == expected


def test_a_list_that_begins_with_the_default_partition_says_so(lua: str, folder: Path) -> None:
    rows = {("lmp", "", ""): times(cpu=1.0, big=2.0), ("hpcc", "", ""): replace(times(cpu=1.0, gpu=2.0), seconds=None)}
    write_table(folder, replace(TABLE, policy="list", rows=rows))
    first, second = place(lua, folder, JOB, JOB | {"name": "hpcc", "time_limit": 4294967295})
    assert "whichever starts it first: lmp takes about 10 min on cpu (predicted)." in first["user"][0]
    assert "whichever starts it first: hpcc is fastest on cpu (predicted)." in second["user"][0]


def test_no_job_goes_to_a_slower_partition_where_its_limit_might_end_it(lua: str, folder: Path) -> None:
    """600 s on cpu, at most 2.5 times that on big: 25 minutes."""
    row = times(cpu=1.0, big=2.0)
    for policy, choices in (("list", row.choices), ("turnaround", row.choices[::-1])):
        rows = {("lmp", "", ""): replace(row, choices=choices), ("hpcc", "", ""): KeyRow(choices)}
        write_table(folder, replace(TABLE, policy=policy, rows=rows))
        jobs = [JOB | {"time_limit": minutes} for minutes in (24, 25)] + [JOB | {"name": "hpcc", "time_limit": 600}]
        sent = "cpu,big" if policy == "list" else "big"
        assert [done["partition"] for done in place(lua, folder, *jobs)] == [None, sent, None], policy
    setup.write(folder, setup.files(folder, SITE, scale_limits=True), overwrite=True)
    (done,) = place(lua, folder, jobs[0])
    assert (done["partition"], done["time_limit"]) == ("big", 60), "the limit follows"


def with_gres(folder: Path, relative: dict[str, float], policy: str = "list") -> None:
    """Write a table where jobs get a GPU in 'gpu'."""
    partitions = (*TABLE.partitions[:2], replace(TABLE.partitions[2], adds="gpu:1"))
    rows = {("lmp", "", ""): times(**relative)}
    write_table(folder, replace(TABLE, policy=policy, partitions=partitions, rows=rows))


def test_a_job_that_is_sent_to_a_gpu_gets_one(lua: str, folder: Path) -> None:
    with_gres(folder, {"gpu": 0.1, "big": 0.9, "cpu": 1.0}, "fastest")
    (done,) = place(lua, folder, JOB)
    assert (done["partition"], done["gres"]) == ("gpu", "gpu:1")
    own, other = place(lua, folder, JOB | {"tres_per_node": "gres:gpu:2"}, JOB | {"tres_per_job": "gres:gpu:1"})
    assert [(done["partition"], done["gres"]) for done in (own, other)] == [("gpu", None)] * 2, (
        "what it asks for itself"
    )


def test_a_gpu_is_not_asked_for_in_a_list_with_partitions_that_have_none(lua: str, folder: Path) -> None:
    with_gres(folder, {"gpu": 0.3, "big": 0.9, "cpu": 1.0})
    (done,) = place(lua, folder, JOB)
    assert (done["partition"], done["gres"]) == ("big,cpu", None)
    with_gres(folder, {"gpu": 0.1, "big": 0.9, "cpu": 1.0})
    (done,) = place(lua, folder, JOB)
    assert (done["partition"], done["gres"]) == ("gpu", "gpu:1"), "nothing else comes near"
    (own,) = place(lua, folder, JOB | {"tres_per_node": "gres:gpu:1"})
    assert (own["partition"], own["gres"]) == ("gpu", None)


def test_a_partition_whose_nodes_do_not_offer_what_jobs_would_get_is_not_chosen(lua: str, folder: Path) -> None:
    partitions = (*TABLE.partitions[:2], replace(TABLE.partitions[2], adds="gpu:8"))
    rows = {("lmp", "", ""): times(gpu=0.1, big=0.9, cpu=1.0)}
    write_table(folder, replace(TABLE, policy="list", partitions=partitions, rows=rows))
    assert place(lua, folder, JOB)[0]["partition"] == "big,cpu"


def test_a_job_without_a_limit_keeps_the_limit_of_the_default_partition(lua: str, folder: Path) -> None:
    """It inherited the limit of the new partition, and was ended early."""
    short = PARTS | {"big": PARTS["big"] | {"default_time": 1}}
    (done,) = place(lua, folder, JOB, parts=short)
    assert (done["partition"], done["time_limit"]) == ("big", 60)
    without = PARTS | {"cpu": PARTS["cpu"] | {"default_time": NOTHING, "max_time": 600}}
    (done,) = place(lua, folder, JOB, parts=without)
    assert (done["partition"], done["time_limit"]) == ("big", 600), "no default is the longest"
    endless = PARTS | {"cpu": PARTS["cpu"] | {"default_time": NOTHING}}
    (done,) = place(lua, folder, JOB, parts=endless)
    assert (done["partition"], done["time_limit"]) == ("gpu", 4294967295), "big ends jobs after a day"
    nowhere = {name: part | {"flag_default": 0} for name, part in PARTS.items() if name != "cpu"}
    assert place(lua, folder, JOB, parts=nowhere)[0]["partition"] is None, "what it would have had is not known"


def test_a_job_of_slurm_23_11_and_later_names_its_processors_twice(lua: str, folder: Path) -> None:
    jobs = [JOB | {"cpus_per_task": n, "min_cpus": n, "tres_per_task": f"cpu={n}"} for n in (1, 2, 3)]
    assert [done["partition"] for done in place(lua, folder, *jobs)] == ["big", "big", None]
    alone = [JOB | {"tres_per_task": f"cpu:{n}"} for n in (2, 3)]
    assert [done["partition"] for done in place(lua, folder, *alone)] == ["big", None]
    gpu = [JOB | {"tres_per_task": text} for text in ("cpu=2,gres/gpu=1", "gres/gpu:1")]
    assert [done["partition"] for done in place(lua, folder, *gpu)] == [None, None]


#: How versions of Slurm write generic resources, and whether they name processors twice: from the source of each.
VERSIONS = {"22.05": ("gres:", False), "23.11": ("gres/", True), "24.05": ("gres/", True), "25.05": ("gres/", True)}


def descriptors(version: str) -> list[tuple[dict[str, Any], str | None]]:
    """Return jobs as a version's job_submit/lua hands them over, unset fields included, and where each should go."""
    prefix, twice = VERSIONS[version]
    numbers = ("ntasks_per_tres", "ntasks_per_node", "ntasks_per_socket", "ntasks_per_core", "sockets_per_node")
    unset = dict.fromkeys((*numbers, "cores_per_socket", "threads_per_core", "shared", "pn_min_cpus"), 65534)
    base = JOB | unset | {"pn_min_tmp_disk": NOTHING, "max_nodes": NOTHING, "het_job_offset": NOTHING, "argc": 0}

    def cpus(count: int) -> dict[str, Any]:
        return {"cpus_per_task": count, "min_cpus": count} | ({"tres_per_task": f"cpu={count}"} if twice else {})

    return [
        (base, "big"),  # sbatch -J lmp
        (base | cpus(2), "big"),  # -c 2
        (base | cpus(3), None),  # -c 3: no node has them but in the default partition, perhaps
        (base | {"tres_per_node": f"{prefix}gpu:1"}, "gpu"),  # --gres=gpu:1
        (base | {"tres_per_job": f"{prefix}gpu:2"}, "gpu"),  # --gpus=2
        (base | {"tres_per_task": f"{prefix}gpu:1"}, None),  # --gpus-per-task=1
        (base | cpus(2) | {"tres_per_task": f"cpu=2,{prefix}gpu=1"}, None),  # both
        (base | {"min_mem_per_node": 12000}, "big"),  # --mem=12000
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_of_all_versions_are_placed_alike(lua: str, folder: Path, version: str) -> None:
    cases = descriptors(version)
    done = place(lua, folder, *(job for job, _ in cases))
    assert [placed["partition"] for placed in done] == [expected for _, expected in cases]


def test_in_shadow_mode_choices_are_noted_and_nothing_is_changed(lua: str, folder: Path) -> None:
    setup.write(folder, setup.files(folder, SITE, shadow=True), overwrite=True)
    with_gres(folder, {"gpu": 0.1, "big": 0.9, "cpu": 1.0}, "fastest")
    (done,) = place(lua, folder, JOB)
    assert (done["partition"], done["time_limit"], done["gres"], done["user"]) == (None, NOTHING, None, [])
    assert done["admin_comment"].endswith(" would=gpu there=0.1,0.08,0.125 here=1,0.8,1.25")
    assert done["info"][0].startswith("crossperf would choose partition gpu (h200)")


def test_a_job_is_noted_once_and_not_where_the_site_does_not_want_it(lua: str, folder: Path) -> None:
    odd = JOB | {"comment": "app=my%20code; input=a%3Bb%25"}
    assert place(lua, folder, odd)[0]["admin_comment"] == "crossperf app=my%20code input=a%3Bb%25", "nothing is chosen"
    assert place(lua, folder, JOB | {"admin_comment": "theirs"})[0]["admin_comment"] == "theirs"
    setup.write(folder, setup.files(folder, SITE, tag_jobs=False), overwrite=True)
    assert place(lua, folder, JOB)[0]["admin_comment"] is None
