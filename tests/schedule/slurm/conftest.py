"""A real Slurm with the plugin in it, brought up once, and a table whose answers are known."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crossperf.schedule import policies
from crossperf.schedule.slurm import ranking, setup
from crossperf.schedule.slurm.ranking import LiveQueues, WorkloadTimes
from crossperf.schedule.slurm.site import Site
from crossperf.schedule.slurm.table import Key, KeyRow, PartitionChoice, PartitionFacts, PlacementTable, digest_of
from tests.collect.real import need, unavailable
from tests.schedule.slurm.cluster import PROGRAMS, Cluster, free_ports
from tests.schedule.slurm.lua import LUAS

SITE = Site.of("cpu=epyc-2,big=genoa,gpu=h200")
FACTS = (
    PartitionFacts("cpu", "epyc-2", 2, 2, 4000, ("cascade", "x86"), {}),
    PartitionFacts("big", "genoa", 1, 2, 16000, ("genoa", "x86"), {}),
    PartitionFacts("gpu", "h200", 1, 2, 8000, ("gpu",), {"gpu": 2, "gpu:fake": 2}),
)


def table_of(
    known: dict[Key, WorkloadTimes], policy: str = "fastest", live: LiveQueues | None = None
) -> PlacementTable:
    return ranking.table(known, SITE, FACTS, policies.make(policy), policy, live=live)[0]


def order(table: PlacementTable, key: Key) -> list[str]:
    return [choice.partition for choice in table.rows[key].choices]


def row(*order: str, seconds: float | None = 600.0, runs: int = 0) -> KeyRow:
    """Return a row with these partitions, best first: each takes half as long as the next."""
    relative = {name: 0.5 ** (order.index("cpu") - place) for place, name in enumerate(order)}
    return KeyRow(tuple(PartitionChoice(name, t, 0.8 * t, 1.25 * t, runs) for name, t in relative.items()), seconds)


#: What the tests know: where each key should run.
ROWS = {
    ("lmp", "", ""): row("big", "gpu", "cpu"),
    ("lmp", "", "melt"): row("gpu", "big", "cpu"),
    ("lmp", "root", "melt"): row("big", "cpu", "gpu", runs=5),
    ("hpcc", "", ""): row("cpu", "big"),
    ("wide", "", ""): row("big", "cpu"),
    ("solve", "", "nodes-2"): row("cpu", "big", seconds=None),
    ("solve", "", ""): row("gpu", "big", "cpu", seconds=None),
}
TABLE = PlacementTable("cpu", "fastest", FACTS, ROWS)


def spoiled() -> dict[str, bytes | None]:
    """Return the contents of tables that are not sound, by what is wrong with them; ``None`` is no file at all."""
    # Not the table that a controller has read already and may hold in memory.
    data = replace(TABLE, made=1).to_bytes()
    salt = data.partition(b"\nsite\t")[2].split(b"\t")[4].decode()
    at = data.index(b"big,", data.index(digest_of(("lmp", "", ""), salt).encode()))
    return {
        "missing": None,
        "empty": b"",
        "torn": data[: len(data) // 2],
        "without its last byte": data[:-1],
        "torn in the middle and filled up": data[:300] + b"\0" * (len(data) - 300),
        "of another version": data.replace(b"crossperf-table\t2\t", b"crossperf-table\t1\t"),
        "of noise": bytes(range(256)) * 40,
        "with one word changed in the row": data[:at] + b"gpu" + data[at + 3 :],
        "doubled": data * 2,
        "huge": b"crossperf-table\t2\t9999999999\t9999999000\t0123456789abcdef\n",
    }


def need_another_user() -> None:
    """Go on only where submissions can come from an ordinary user."""
    if os.geteuid() != 0:
        unavailable("only root can submit as another user")


def install(folder: Path) -> None:
    """Write the plugin and its table into a folder, as a site does."""
    setup.write(folder, setup.files(folder, SITE))
    (folder / setup.TABLE).unlink(missing_ok=True)  # what a test before left there need not be a table
    TABLE.write(folder / setup.TABLE)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The controller and its nodes, with the plugin; gone at the end of the session."""
    need(*PROGRAMS)
    with Cluster(install) as started:
        yield started


@pytest.fixture
def slurm(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The same cluster for one test: with the known table, spoken to by Slurm's commands here, empty afterwards."""
    install(cluster.etc)
    speak_to(cluster, monkeypatch)
    yield cluster
    cluster.cancel_all()


def speak_to(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Slurm's commands that a test runs speak to this cluster."""
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])


@pytest.fixture
def no_slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No controller is there to speak to: nobody listens on its port."""
    conf = f"ClusterName=none\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort={free_ports(1)[0]}\nMessageTimeout=2\n"
    (tmp_path / "no-slurm.conf").write_text(conf + "NodeName=none\nPartitionName=none Nodes=none\n")
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "no-slurm.conf"))


@pytest.fixture(params=LUAS)
def lua(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    install(tmp_path)
    return tmp_path
