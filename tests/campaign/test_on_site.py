from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from crossperf.campaign import log
from crossperf.campaign.ledger import JOBS, Ledger
from crossperf.serve.following import Campaign
from tests.campaign import stand_in
from tests.campaign.site_stand_in import asked, command, crossperf, n_visits, names, prepare, statuses, table
from tests.campaign.test_campaign import DUMPING
from tests.collect.real import need
from tests.schedule.slurm.cluster import Cluster, until

pytest.importorskip("submitit")
pytestmark = pytest.mark.slow
QUICK = [f"{name} 0.05 0" for name in "abcd"]


def begin(spec: Path, site: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    """Start a driver, as a user does."""
    return subprocess.Popen(
        command(spec, site, out, *options), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def jobs_of(slurm: Cluster) -> list[str]:
    return slurm.output("squeue", "-h", "-r", "-o%i").split()


def test_each_input_is_measured_once_on_each_partition_and_a_failing_one_is_named(
    slurm: Cluster, tmp_path: Path
) -> None:
    inputs = [*QUICK, "bad 0.05 3"]
    spec, site = prepare(tmp_path, inputs, batch=2)
    done = crossperf(*command(spec, site, tmp_path / "out")[3:])
    good = dict.fromkeys(names(QUICK), "ok")
    texts = {text.split()[0]: text for text in inputs}
    assert statuses(tmp_path / "out") == {
        **{(texts[name], platform): status for (name, platform), status in good.items()},
        ("bad 0.05 3", "small"): "exit status 3",
        ("bad 0.05 3", "large"): "exit status 3",
    }
    assert asked(tmp_path) == dict.fromkeys(names(inputs), 1)
    assert "failed: script bad 0.05 3 on small: exit status 3" in done.stderr
    assert "10 cells of 10, 10 runs, 2 failed" in done.stdout
    # One array a platform, one element a batch.
    assert [known.size for known in Ledger(tmp_path / "out").submissions.values()] == [3, 3]


def test_a_driver_that_is_killed_and_started_again_loses_no_input_and_measures_none_twice(
    slurm: Cluster, tmp_path: Path
) -> None:
    inputs, out = [f"i{number} 0.4 0" for number in range(6)], tmp_path / "out"
    spec, site = prepare(tmp_path, inputs)
    driver = begin(spec, site, out)
    until(lambda: n_visits(out) >= 2, "two visits")
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    time.sleep(0.5)  # jobs go on meanwhile
    done = crossperf(*command(spec, site, out)[3:])
    assert len(statuses(out)) == 12
    assert set(statuses(out).values()) == {"ok"}
    assert asked(tmp_path) == dict.fromkeys(names(inputs), 1)
    assert "submitted" not in done.stderr
    assert len(Ledger(out).submissions) == 2


def test_arrays_whose_number_was_not_noted_are_taken_up_again(slurm: Cluster, tmp_path: Path) -> None:
    inputs, out = [f"i{number} 0.3 0" for number in range(4)], tmp_path / "out"
    spec, site = prepare(tmp_path, inputs, platforms=["small"])
    driver = begin(spec, site, out)
    until(lambda: asked(tmp_path).total() >= 1, "a start")
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    # As if the kill had come right after sbatch: the number is not in the ledger.
    lines = (out / JOBS).read_text().splitlines()
    (out / JOBS).write_text("".join(f"{line}\n" for line in lines if '"platform"' in line))
    crossperf(*command(spec, site, out)[3:])
    assert set(statuses(out).values()) == {"ok"}
    assert asked(tmp_path) == dict.fromkeys(names(inputs, "small"), 1)


def test_a_cancelled_element_is_named_and_not_submitted_again_unless_asked(slurm: Cluster, tmp_path: Path) -> None:
    inputs, out = ["long 30 0", *QUICK], tmp_path / "out"
    spec, site = prepare(tmp_path, inputs, batch=1, platforms=["small"])
    driver = begin(spec, site, out)
    until(lambda: asked(tmp_path)["long", "small"] == 1 and n_visits(out) >= 4, "all but one")
    until(lambda: len(jobs_of(slurm)) == 1, "Slurm to know that the others have ended")
    (running,) = jobs_of(slurm)
    slurm.output("scancel", running)
    _, error = driver.communicate(timeout=60)
    assert driver.returncode == 0
    assert "failed: script long 30 0 on small: its job was cancelled (CANCELLED" in error
    assert statuses(out).pop(("long 30 0", "small")).startswith("its job was cancelled")
    crossperf(*command(spec, site, out)[3:])
    assert asked(tmp_path)["long", "small"] == 1
    (tmp_path / "script").write_text("#!/bin/sh\nexit 0\n")
    crossperf(*command(spec, site, out, "--retry-failed")[3:])
    assert set(statuses(out).values()) == {"ok"}
    assert len(statuses(out)) == 5


def test_the_controller_may_be_restarted_in_the_middle(slurm: Cluster, tmp_path: Path) -> None:
    inputs, out = [f"i{number} 0.5 0" for number in range(6)], tmp_path / "out"
    spec, site = prepare(tmp_path, inputs, batch=2)
    driver = begin(spec, site, out)
    until(lambda: n_visits(out) >= 1, "a visit")
    slurm.stop_controller()
    before = n_visits(out)
    until(lambda: n_visits(out) > before, "a visit while the controller is down")
    slurm.start_controller()
    _, error = driver.communicate(timeout=90)
    assert driver.returncode == 0, error
    assert "Slurm does not answer" in error
    assert "Slurm answers again" in error
    assert set(statuses(out).values()) == {"ok"}
    assert asked(tmp_path) == dict.fromkeys(names(inputs), 1)


def test_an_element_that_is_preempted_goes_on_where_its_log_ends(slurm: Cluster, tmp_path: Path) -> None:
    inputs, out = [f"i{number} 0.6 0" for number in range(4)], tmp_path / "out"
    spec, site = prepare(tmp_path, inputs, batch=4, platforms=["small"])
    site.write_text(site.read_text().replace('partition = "cpu"', 'partition = "spare"\nexclusive = true'))
    driver = begin(spec, site, out)
    until(lambda: n_visits(out) >= 1, "a visit")
    slurm.submit("--partition=urgent", "--exclusive", "--time=1", wrap="sleep 0.2")
    _, error = driver.communicate(timeout=90)
    assert driver.returncode == 0, error
    assert set(statuses(out).values()) == {"ok"}
    times = asked(tmp_path)
    assert times.keys() == set(names(inputs, "small"))
    # The input that it was at is measured again, and no other.
    assert times.total() == 5
    assert max(times.values()) == 2


def test_an_input_beyond_the_time_limit_is_named_and_the_others_are_measured_once(
    slurm: Cluster, tmp_path: Path
) -> None:
    inputs, out = ["endless 300 0", *QUICK[:2]], tmp_path / "out"
    spec, site = prepare(tmp_path, inputs, batch=3, platforms=["small"], limit_s=600)
    # The shortest limit that Slurm has; its warning comes up to half a minute before its time.
    site.write_text(site.read_text().replace('time = "5"', 'time = "1"\nwarn_s = 55\ntries = 1'))
    crossperf(*command(spec, site, out)[3:])
    status = statuses(out)
    assert status.pop(("endless 300 0", "small")) == (
        "cut off 1 time: longer than its job's time limit, or deadly to its node"
    )
    assert list(status.values()) == ["ok", "ok"]
    assert asked(tmp_path) == dict.fromkeys(names(inputs, "small"), 1)


def test_a_job_that_is_killed_outright_loses_the_input_that_it_was_at_alone(slurm: Cluster, tmp_path: Path) -> None:
    inputs, out = ["deadly 0 0", *QUICK[:3]], tmp_path / "out"
    spec, site = prepare(tmp_path, inputs, batch=4, platforms=["small"])
    # It kills the process that measures it, without a word, as a node does that fails.
    text = (tmp_path / "script").read_text()
    kill = 'if [ "$1" = deadly ]; then kill -9 $PPID; sleep 9; fi\n'
    (tmp_path / "script").write_text(text.replace("sleep", f"{kill}sleep", 1))
    site.write_text(site.read_text().replace("at_once = 2", "at_once = 2\ntries = 2"))
    done = crossperf(*command(spec, site, out)[3:])
    status = statuses(out)
    assert "was cut off 2 times" in status.pop(("deadly 0 0", "small")), done.stderr
    assert list(status.values()) == ["ok"] * 3
    times = asked(tmp_path)
    assert times.pop(("deadly", "small")) == 2
    assert set(times.values()) == {1}


def test_a_second_driver_is_refused_with_who_drives(slurm: Cluster, tmp_path: Path) -> None:
    spec, site = prepare(tmp_path, ["a 3 0"], platforms=["small"])
    driver = begin(spec, site, tmp_path / "out")
    until(lambda: asked(tmp_path).total() >= 1, "a start")
    second = crossperf(*command(spec, site, tmp_path / "out")[3:], check=False)
    assert second.returncode == 1
    assert f"process {driver.pid} on " in second.stderr
    assert "drives this campaign already" in second.stderr
    driver.communicate(timeout=60)
    assert asked(tmp_path).total() == 1


def test_detach_returns_at_once_status_tells_how_far_it_is_and_cancel_ends_it(slurm: Cluster, tmp_path: Path) -> None:
    inputs, out = ["a 0.05 0", "b 60 0"], tmp_path / "out"
    spec, site = prepare(tmp_path, inputs, batch=2, platforms=["small"])
    # Whatever the order is, the long input is not the first.
    site.write_text(site.read_text().replace("batch = 2", "batch = 1"))
    start = time.monotonic()
    done = crossperf(*command(spec, site, out, "--detach")[3:])
    assert time.monotonic() - start < 20
    assert "follows in the background" in done.stdout
    until(lambda: n_visits(out) == 1 and asked(tmp_path)["b", "small"] == 1, "the first visit")
    until(lambda: "1 running" in crossperf("campaign", "status", out).stdout, "a status", 10)
    facts = json.loads(crossperf("campaign", "status", out, "--json", "-").stdout)
    assert facts["driver"].startswith("process ")
    (own,) = facts["platforms"]
    assert (own["platform"], own["total"], own["done"], own["failed"]) == ("small", 2, 1, 0)
    # The service's screen shows the same from the folder alone.
    progress, visits = Campaign("night", out).read()
    assert (progress.left, [visit.input for visit in visits]) == (1, ["a 0.05 0"])
    assert progress.platforms[0].running == 1
    cancelled = crossperf("campaign", "cancel", out)
    assert "cancelled 1 element" in cancelled.stdout
    until(lambda: json.loads((out / "status.json").read_text())["ended"], "the driver's end")
    until((out / "runs.jsonl").exists, "the table")
    assert statuses(out)["a 0.05 0", "small"] == "ok"
    assert statuses(out)["b 60 0", "small"].startswith("its job was cancelled")


def test_status_and_cancel_without_a_driver_merge_what_jobs_wrote(slurm: Cluster, tmp_path: Path) -> None:
    inputs, out = ["a 0.05 0", "b 60 0"], tmp_path / "out"
    spec, site = prepare(tmp_path, inputs, batch=1, platforms=["small"])
    driver = begin(spec, site, out)
    until(lambda: asked(tmp_path).total() == 2, "two starts")
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    until(lambda: "1 of 2 done" in crossperf("campaign", "status", out).stdout, "a status", 10)
    assert "nobody drives it" in crossperf("campaign", "status", out).stderr
    crossperf("campaign", "cancel", out)
    assert not jobs_of(slurm)
    assert [run["status"] == "ok" for run in table(out)] == [True, False]


def test_a_site_that_the_cluster_does_not_have_is_refused_before_anything_is_submitted(
    slurm: Cluster, tmp_path: Path
) -> None:
    spec, site = prepare(tmp_path, QUICK)
    good = site.read_text()
    bad = good.replace('partition = "cpu"', 'partition = "cpus"\nconstraint = "x86"').replace(
        'time = "5"', 'time = "2-0"'
    )
    site.write_text(bad)
    checked = crossperf("campaign", spec, "--site", site, "--check", check=False)
    assert checked.returncode == 1
    known = "expected one of big, cpu, gpu, spare, urgent"
    assert checked.stdout.splitlines() == [
        f"small: partition cpus: no partition 'cpus' (did you mean 'cpu'?), {known}",
        "large: partition big: time is 2-0, and partition big allows 1-00:00:00",
    ]
    refused = crossperf(*command(spec, site, tmp_path / "out")[3:], check=False)
    assert refused.returncode == 1
    assert "platform small: no partition 'cpus'" in refused.stderr
    assert "Nothing was submitted" in refused.stderr
    assert not jobs_of(slurm)
    assert not (tmp_path / "out").exists()
    changes = {
        "cpus = 1": ("cpus = 99", "cpus is 99, and the largest node of partition cpu has 2"),
        "at_once = 2": ('gres = "gpu:9"', "gres is gpu:9, and nodes of partition cpu have none"),
        "batch = 3": ('constraint = "genoa"', "constraint names 'genoa', and nodes of partition cpu have cascade, x86"),
        'time = "5"': ('memory = "1T"', "Slurm would refuse its jobs (allocation failure: "),
    }
    for before, (after, sentence) in changes.items():
        site.write_text(good.replace(before, after))
        assert sentence in crossperf("campaign", spec, "--site", site, "--check", check=False).stdout
    site.write_text(good)
    assert crossperf("campaign", spec, "--site", site, "--check").stdout.splitlines() == [
        "small: partition cpu: ok, 2 nodes; a job would start at once",
        "large: partition big: ok, 1 node; a job would start at once",
    ]


def test_a_program_that_is_missing_on_the_node_is_named_for_each_input_and_can_be_tried_again(
    slurm: Cluster, tmp_path: Path
) -> None:
    spec, site = prepare(tmp_path, QUICK[:2], platforms=["small"])
    good, out = site.read_text(), tmp_path / "out"
    site.write_text(good.replace('"export PLATFORM=small"', f'"mv {tmp_path}/script {tmp_path}/moved"'))
    crossperf(*command(spec, site, out)[3:])
    assert len(statuses(out)) == 2
    assert all("no such file. Check the path of the command" in status for status in statuses(out).values())
    (tmp_path / "moved").rename(tmp_path / "script")
    site.write_text(good)
    crossperf(*command(spec, site, out, "--retry-failed")[3:])
    assert list(statuses(out).values()) == ["ok", "ok"]


def test_a_platforms_own_program_and_its_counts_go_through_slurm_as_on_this_machine(
    slurm: Cluster, tmp_path: Path
) -> None:
    need("qemu-x86_64", "gcc")
    pytest.importorskip("capstone")
    spec = stand_in.prepare(tmp_path, "[quick]\nn = [1, 2, 3]\n[crash]\nn = [1]\n")
    source = tmp_path / "counted.c"
    source.write_text(DUMPING)
    subprocess.run(["gcc", "-O1", "-o", str(tmp_path / "counted"), str(source)], check=True)
    changed = spec.read_text().replace('tool = "valgrind"\nprogram = "program"', 'tool = "qemu"\nprogram = "counted"')
    spec.write_text(changed.replace("visits = 1", "visits = 2"))
    site = tmp_path / "site.toml"
    table_of = '[platforms.{}]\npartition = "{}"\ncpus = 1\nbatch = 2\n'
    site.write_text("poll_s = 0.2\n" + table_of.format("one", "cpu") + table_of.format("two", "big"))
    out = tmp_path / "out"
    crossperf(*command(spec, site, out)[3:])
    runs = table(out)
    # Two visits of three repeats for each input that ends, and one failed run a visit for the one that does not.
    assert Counter((run["app"], run["input"], run["platform"]) for run in runs) == {
        **{("quick", f"n={n}", platform): 6 for n in (1, 2, 3) for platform in ("one", "two")},
        **{("crash", "n=1", platform): 2 for platform in ("one", "two")},
    }
    assert len({run["measured_in"] for run in runs}) == 2
    ok = [run for run in runs if run["status"] == "ok" and run["platform"] == "one"]
    assert all(run["counters"]["instructions"] > 0 for run in ok)
    assert sum("calibration" in line for line in log.lines(out / log.TIMES)) == 2 * 2 * 2 * 2  # ends, batches, visits


def test_programs_are_counted_once_and_their_counts_are_joined_to_every_visit(slurm: Cluster, tmp_path: Path) -> None:
    need("valgrind")
    pytest.importorskip("capstone")
    spec, site = prepare(tmp_path, ["a 0.01 0"], visits=2, repeats=2)
    spec.write_text(spec.read_text().replace('"os"', '"valgrind"'))
    site.write_text(
        site.read_text().replace('partition = "big"', 'partition = "big"\ncpus = 2\nlauncher = "srun -n 2"')
    )
    out = tmp_path / "out"
    crossperf(*command(spec, site, out)[3:])
    runs = table(out)
    small, large = ([run for run in runs if run["platform"] == name] for name in ("small", "large"))
    assert [(run["status"], run["repeat"]) for run in small] == [("ok", number) for number in range(4)]
    visits = [line for line in log.lines(out / log.TIMES) if "workload" in line]
    assert sum(bool(line["measurements"]) for line in visits if line["platform"] == "small") == 1
    (instructions,) = {run["counters"]["instructions"] for run in small}
    assert instructions > 1e5
    # What srun starts is no child of ours: it is timed, and why it was not counted is kept.
    assert [(run["status"], run["ranks"]) for run in large] == [("ok", 2)] * 4
    (reason,) = {line["not_counted"].get("valgrind") for line in visits if line["platform"] == "large"} - {None}
    assert "srun starts its processes where they cannot be followed" in reason
    assert asked(tmp_path)["a", "large"] == 2 * 5  # of two ranks: two visits, two repeats, and once under valgrind
