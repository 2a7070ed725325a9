"""Caches as valgrind can simulate them, checked by valgrind itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from crossperf.platforms import CpuCache, MachineFacts, cache_geometry, facts_of_this_machine
from tests.collect.real import need
from tests.platforms import trees


def facts_with(last: tuple, first: tuple = (32 * 1024, 8, 64)) -> MachineFacts:
    caches = (CpuCache(1, "data", *first), CpuCache(1, "instruction", *first), CpuCache(3, "unified", *last))
    return MachineFacts(caches=caches)


def sets(geometry: tuple[int, int, int]) -> float:
    size, ways, line = geometry
    return size / (ways * line)


def accepted_by_valgrind(options: list[str]) -> str:
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--cache-sim=yes", *options, "/bin/true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stderr


@pytest.mark.parametrize(
    "last",
    [
        (1280 * 1024, 20, 64),  # Ice Lake's second level
        (33 * 2**20, 11, 64),  # Cascade Lake
        (36 * 2**20, 12, 64),
        (300 * 2**20, 20, 64),  # as a virtual machine on Emerald Rapids reports it
        (256 * 2**20, 1, 64),  # direct-mapped, as valgrind finds it on some virtual machines
        (10 * 2**20, 20, 128),  # POWER9
        (1152 * 2**20, 16, 64),
        (2 * 2**20 + 12345, 7, 48),
        (0, 0, 0),
        (2**40, 16, 64),
    ],
)
def test_valgrind_accepts_every_geometry_and_sizes_stay_near(last: tuple[int, int, int]) -> None:
    need("valgrind")
    geometry = cache_geometry(facts_with(last))
    assert accepted_by_valgrind(geometry.options()) == ""
    size, _, _ = geometry.caches["LL"]
    if 2**16 <= last[0] < 2**31:
        assert size == pytest.approx(last[0], rel=0.05)


@pytest.mark.parametrize("first", [(48 * 1024, 12, 64), (96 * 1024, 6, 64), (64 * 1024, 4, 128), (12345, 3, 16)])
def test_valgrind_accepts_odd_first_levels(first: tuple[int, int, int]) -> None:
    need("valgrind")
    geometry = cache_geometry(facts_with((32 * 2**20, 16, 64), first))
    assert accepted_by_valgrind(geometry.options()) == ""


def test_valgrind_refuses_what_the_33_mib_really_are() -> None:
    need("valgrind")
    assert "power of two" in accepted_by_valgrind([f"--LL={33 * 2**20},11,64"])


def test_what_valgrind_accepts_stays_as_it_is() -> None:
    geometry = cache_geometry(facts_with((1280 * 1024, 20, 64), (48 * 1024, 12, 64)))
    assert geometry.caches == {"I1": (49152, 12, 64), "D1": (49152, 12, 64), "LL": (1310720, 20, 64)}
    assert geometry.notes == ()


def test_a_change_is_noted() -> None:
    caches, notes = cache_geometry(facts_with((33 * 2**20, 11, 64)))
    assert sets(caches["LL"]) in [2**n for n in range(30)]
    assert notes == ("LL: 33 MiB in 11 ways of 64 B simulated as 32 MiB in 8 ways of 64 B, which valgrind accepts",)


def test_what_nothing_is_known_of_is_assumed_and_said() -> None:
    caches, notes = cache_geometry(MachineFacts())
    assert caches == {"I1": (32768, 8, 64), "D1": (32768, 8, 64), "LL": (32 * 2**20, 16, 64)}
    assert len(notes) == 3
    assert all("assumed" in note for note in notes)


def test_the_direct_mapped_giant_of_some_virtual_machines_gets_ways() -> None:
    caches, notes = cache_geometry(facts_with((256 * 2**20, 1, 64)))
    assert caches["LL"] == (256 * 2**20, 16, 64)
    assert notes == ("LL: ways not known, 256 MiB in 16 ways of 64 B assumed",)


def test_the_last_level_is_the_highest(tmp_path: Path) -> None:
    facts = facts_of_this_machine(trees.intel_two_sockets(tmp_path))
    caches, _ = cache_geometry(facts)
    assert caches["D1"] == (48 * 1024, 12, 64)
    assert caches["LL"] == (36 * 2**20, 9, 64)


def test_the_second_level_is_not_taken_for_the_last_where_the_last_is_hidden(tmp_path: Path) -> None:
    caches, _ = cache_geometry(facts_of_this_machine(trees.amd_virtual(tmp_path)))
    assert caches["LL"] == (32 * 2**20, 16, 64)


def test_this_machines_caches_are_accepted() -> None:
    need("valgrind")
    assert accepted_by_valgrind(cache_geometry(facts_of_this_machine()).options()) == ""
