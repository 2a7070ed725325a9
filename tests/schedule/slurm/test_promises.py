"""What Slurm takes of an ordinary user without the plugin it takes with it, where partitions are closed in odd ways."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crossperf.schedule.slurm import setup
from crossperf.schedule.slurm.site import Site
from tests.cli.test_cli import Crossperf, crossperf
from tests.collect.real import need
from tests.schedule.slurm.cluster import ACCOUNTING, PROGRAMS, Cluster, until
from tests.schedule.slurm.conftest import need_another_user, speak_to

pytestmark = pytest.mark.slow

__all__ = ["crossperf"]

USER = "nobody"
#: Partitions, each of which is predicted to be ten times as fast as the default one to an application of its name.
CLOSED = {
    "needsgpu": "Nodes=gpu1 QOS=needsgpu",
    "limited": "Nodes=big1 QOS=limited",
    "open": "Nodes=big1 QOS=open",
    "withgpu": "Nodes=gpu1 QOS=needsgpu",
    "elsewhere": "Nodes=big1 AllocNodes=login9",
    "reserved": "Nodes=big1 ReqResv=YES",
    "few": "Nodes=big1 MaxCPUsPerNode=1",
    "lean": "Nodes=big1 MaxMemPerNode=150",
    "brief": "Nodes=big1 DefaultTime=1",
    "short": "Nodes=big1 MaxTime=30",
    "forgetful": "Nodes=big1 DefMemPerCPU=50",
    "denied": "Nodes=big1 DenyAccounts=physics",
    "rooted": "Nodes=big1 RootOnly=YES",
}
MORE = (
    "AccountingStorageEnforce=associations,limits,qos\nAccountingStorageTRES=gres/gpu\nEnforcePartLimits=ALL\n"
    + "".join(f"PartitionName={name} {words} State=UP\n" for name, words in CLOSED.items())
)
ACCOUNTS = (
    "qos needsgpu Flags=DenyOnLimit",
    "qos limited MaxTRESPerJob=cpu=1 Flags=DenyOnLimit",
    "qos open",
    "account physics",
    f"user {USER} account=physics",
    "user root account=physics",
)
MAPPING = "cpu=epyc-2," + ",".join(f"{name}=p-{name}{':gres/gpu:1' if name == 'withgpu' else ''}" for name in CLOSED)
#: What each application asks for beside its name.
OPTIONS = {"few": ("-n2",), "lean": ("--mem=200",), "limited": ("-n2",)}


@pytest.fixture(scope="module")
def closed() -> Iterator[Cluster]:
    need(*PROGRAMS, *ACCOUNTING)
    need_another_user()

    def plugin(folder: Path) -> None:
        setup.write(folder, setup.files(folder, Site.of(MAPPING)))

    with Cluster(plugin, accounting=True, more=MORE, accounts=ACCOUNTS) as started:
        # The database learns of GPUs from the controller.
        started.output("sacctmgr", "-i", "modify", "qos", "needsgpu", "set", "MinTRESPerJob=gres/gpu=1")
        yield started


@pytest.fixture
def tabled(closed: Cluster, crossperf: Crossperf, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Cluster, str]]:
    """The cluster with a table by the documented road, and what that printed."""
    speak_to(closed, monkeypatch)
    rows = [",".join([f"app-{app}", "x", "1.0", *("0.1" if name == app else "" for name in CLOSED)]) for app in CLOSED]
    Path("times.csv").write_text("\n".join([f"app,input,epyc-2,{','.join(f'p-{name}' for name in CLOSED)}", *rows]))
    done = crossperf("slurm", "table", "--times", "times.csv", "-o", closed.etc / setup.TABLE)
    assert done.status == 0, done.stderr
    yield closed, done.stderr
    closed.cancel_all()


def submitted(slurm: Cluster, app: str, *options: str) -> dict[str, str]:
    done = slurm.run("sbatch", "--parsable", "--hold", "-o/dev/null", f"-J{app}", *options, "--wrap=true", user=USER)
    assert done.returncode == 0, (app, done.stderr)
    return slurm.facts(done.stdout.strip())


def test_no_job_is_refused_or_left_waiting_for_ever_where_it_was_sent(tabled: tuple[Cluster, str]) -> None:
    slurm, _ = tabled
    sent = {}
    for name in CLOSED:
        options = OPTIONS.get(name, ())
        alone = slurm.run("sbatch", "--hold", "-pcpu", *options, "--wrap=true", user=USER)
        assert alone.returncode == 0, "Slurm takes it in its default partition"
        sent[name] = submitted(slurm, f"app-{name}", *options)["Partition"]
    assert {name: where for name, where in sent.items() if where != "cpu"} == {
        "open": "open",
        "withgpu": "withgpu",
        "brief": "brief",
    }


def test_the_table_says_which_partitions_are_closed(tabled: tuple[Cluster, str]) -> None:
    notes = tabled[1]
    assert "no job is sent to needsgpu: its QOS needsgpu sets MinTRES." in notes
    assert "no job is sent to limited: its QOS limited sets MaxTRES." in notes
    assert "sent to open" not in notes
    assert "sent to withgpu" not in notes


def test_a_job_that_is_sent_to_gpus_gets_one_and_really_runs(tabled: tuple[Cluster, str]) -> None:
    slurm, _ = tabled
    facts = submitted(slurm, "app-withgpu")
    assert (facts["Partition"], facts["TresPerNode"]) == ("withgpu", "gres:gpu:1")
    slurm.output("scontrol", "release", facts["JobId"])
    until(lambda: slurm.facts(facts["JobId"])["JobState"] in ("RUNNING", "COMPLETED"), "the job to run", 120.0)
    assert "gres/gpu=1" in slurm.facts(facts["JobId"])["TRES"]


def test_a_job_without_a_limit_keeps_the_one_of_the_default_partition(tabled: tuple[Cluster, str]) -> None:
    slurm, _ = tabled
    facts = submitted(slurm, "app-brief")
    assert (facts["Partition"], facts["TimeLimit"]) == ("brief", "01:00:00")


def test_where_associations_name_partitions_nothing_is_moved(tabled: tuple[Cluster, str], crossperf: Crossperf) -> None:
    """Slurm refuses a list of partitions there, and users in partitions that they have no association with."""
    slurm, _ = tabled
    slurm.output("sacctmgr", "-i", "add", "user", "daemon", "account=physics", "partition=cpu")
    done = crossperf("slurm", "table", "--times", "times.csv", "-o", slurm.etc / setup.TABLE)
    slurm.output("sacctmgr", "-i", "delete", "user", "daemon")
    assert "no job is sent to open: associations name partitions" in done.stderr
    assert submitted(slurm, "app-open")["Partition"] == "cpu"
