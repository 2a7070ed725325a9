from __future__ import annotations

import re
from pathlib import Path

import pytest

from crossperf.collect.process import Runner
from crossperf.collect.valgrind import ValgrindBackend, parse_caches
from crossperf.errors import CollectError, SettingsError
from crossperf.importers.measurement import Measurement, counted
from tests.collect.real import between, compiled_mpi, need

SMALL_CACHES = {"I1": (32768, 8, 64), "D1": (32768, 8, 64), "LL": (1 << 20, 16, 64)}


@pytest.fixture(autouse=True)
def _needs_valgrind() -> None:
    need("valgrind")


def events(*command: object) -> dict[str, float]:
    found = ValgrindBackend(SMALL_CACHES).count([str(word) for word in command], Runner())
    return {name: value for name, value in found.events.items() if value is not None}


def test_a_matrix_product_has_exactly_two_n_cubed_floating_point_instructions(programs: dict[str, Path]) -> None:
    more = between(events(programs["dgemm"], 20), events(programs["dgemm"], 60))
    assert more["mix.float"] == 2 * (60**3 - 20**3)


def test_a_loop_of_two_instructions_has_one_branch_a_round_and_the_decrement_alone_is_independent(
    programs: dict[str, Path],
) -> None:
    more = between(events(programs["loop"], 1_000), events(programs["loop"], 101_000))
    # Reading one more digit of the argument costs a few dozen instructions.
    assert more["Ir"] == pytest.approx(200_000, abs=100)
    assert more["mix.control"] == pytest.approx(100_000, abs=30)
    assert more["mix.int"] == pytest.approx(100_000, abs=60)
    assert more["mix.independent"] == pytest.approx(100_000, abs=60)
    assert more["Bc"] == pytest.approx(100_000, abs=30)


def test_each_step_of_a_pointer_chase_misses_every_cache(programs: dict[str, Path]) -> None:
    more = between(events(programs["chase"], 10), events(programs["chase"], 100_010))
    assert more["D1mr"] == pytest.approx(100_000, rel=0.01)
    assert more["DLmr"] == pytest.approx(100_000, rel=0.08)  # one step in sixteen finds the last MiB it left


def test_a_chase_that_fits_its_caches_misses_none_of_them(programs: dict[str, Path]) -> None:
    large = {**SMALL_CACHES, "LL": (64 << 20, 16, 64)}
    found = [ValgrindBackend(large).count([str(programs["chase"]), n], Runner()).events for n in ("10", "100010")]
    assert found[1]["DLmr"] == pytest.approx(found[0]["DLmr"], rel=0.01)


def test_a_fused_multiply_add_from_memory_is_one_access_and_half_of_them_miss(programs: dict[str, Path]) -> None:
    more = between(events(programs["fma"], 1_000), events(programs["fma"], 101_000))
    # Valgrind itself sees a read of each element.
    assert more["Dr"] == pytest.approx(800_000, abs=1_000)
    assert more["mix.accesses"] == pytest.approx(100_000, abs=500)
    values = counted([Measurement("valgrind", events(programs["fma"], 2_000_000))]).values
    assert values["cache_miss_ratio"] == pytest.approx(1.0, rel=0.05)
    assert values["cache_miss_rate"] == pytest.approx(0.5, rel=0.03)
    assert values["bytes_beyond_l1"] == pytest.approx(64_000_000, rel=0.01)


def test_accesses_are_those_that_valgrind_sees_where_nothing_is_fused(programs: dict[str, Path]) -> None:
    """A second road: valgrind's own reads and writes."""
    for more in (
        between(events(programs["dgemm"], 20), events(programs["dgemm"], 60)),
        between(events(programs["chase"], 10), events(programs["chase"], 100_010)),
    ):
        assert more["mix.accesses"] == pytest.approx(more["Dr"] + more["Dw"], rel=1e-3)


def test_where_most_was_compiled_at_run_time_shares_are_missing_with_the_reason(programs: dict[str, Path]) -> None:
    little, much = (ValgrindBackend(SMALL_CACHES).count([str(programs["jit"]), n], Runner()) for n in ("9", "900000"))
    of_kinds = {"int_ratio", "float_ratio", "mem_ratio", "control_ratio", "independent_ratio"}
    assert of_kinds <= set(counted([little]).values)
    found = counted([much])
    assert not of_kinds & set(found.values)
    reason = r"valgrind: 9\d% of the instructions are in no file \(compiled at run time\) and could not be sorted"
    assert all(re.fullmatch(reason, found.missing[name]) for name in of_kinds)
    assert {"instructions", "cache_miss_ratio", "branch_miss_ratio"} <= set(found.values)


def test_forked_children_are_followed_and_added_up(programs: dict[str, Path]) -> None:
    none, three = events(programs["children"], 0), events(programs["children"], 3)
    # What the parent had executed before the fork, start-up included, counts once: a child's own end is little.
    assert between(none, three)["mix.control"] == pytest.approx(3_000_000, rel=0.002)


def test_instructions_of_all_threads_are_counted(programs: dict[str, Path]) -> None:
    assert events(programs["threads"], 4)["Ir"] > events(programs["threads"], 0)["Ir"]


@pytest.mark.slow
def test_ranks_of_an_mpi_program_are_followed_and_its_launcher_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compiled_mpi("ranks.c", tmp_path)
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    command = ["mpirun", "--oversubscribe", "-n", "2", str(program), "20000000"]
    found = ValgrindBackend(SMALL_CACHES).count(command, Runner())
    assert found.events["mix.control"] is not None
    # Each rank has 20 million rounds; starting MPI is at most as much again.
    assert 40e6 < found.events["mix.control"] < 80e6
    assert any("mpirun" in note for note in found.notes)
    assert any("2 processes" in note for note in found.notes)


def test_an_avx512_program_is_refused_with_what_to_do(programs: dict[str, Path]) -> None:
    with pytest.raises(CollectError, match=r"AVX-512.*-march=x86-64-v3"):
        events(programs["avx512"], 1)


def test_a_program_that_fails_under_valgrind_is_no_measurement() -> None:
    with pytest.raises(CollectError, match="failed under valgrind: exit status 3"):
        events("sh", "-c", "exit 3")


def test_the_measurement_tells_version_command_caches_and_every_ratio(programs: dict[str, Path]) -> None:
    found = ValgrindBackend(SMALL_CACHES, ["assumed"]).count([str(programs["dgemm"]), "20"], Runner())
    assert found.version
    assert "--D1=32768,8,64" in found.command
    assert found.notes[0] == "assumed"
    values = counted([found]).values
    ratios = ("int_ratio", "float_ratio", "mem_ratio", "control_ratio", "independent_ratio", "branch_miss_ratio")
    assert all(0 <= values[name] <= 1 for name in ratios)
    assert {"instructions", "cache_miss_ratio", "llc_miss_ratio"} <= set(values)


def test_cache_sizes_are_read_as_valgrind_writes_them_and_others_refused() -> None:
    assert parse_caches("D1=49152,12,64 LL=1048576,16,64") == {"D1": (49152, 12, 64), "LL": (1048576, 16, 64)}
    with pytest.raises(SettingsError, match="found 'L2=1,2,3', expected I1, D1 or LL"):
        parse_caches("L2=1,2,3")


def test_filling_memory_counts_instructions_of_vectors_and_not_bytes(programs: dict[str, Path]) -> None:
    filled = between(events(programs["fill"], 1), events(programs["fill"], 3))
    # Two times 16 MiB: at most one store for each 16 bytes, and a few instructions around four of them.
    assert 2 * (16 << 20) / 64 < filled["Dw"] <= 2 * (16 << 20) / 16
    assert filled["Ir"] < 2 * (16 << 20) / 8
