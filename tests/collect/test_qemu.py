from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crossperf.collect.process import Runner
from crossperf.collect.profile import profile
from crossperf.collect.qemu import ProcessReport, QemuBackend, measured_in, misses
from crossperf.collect.valgrind import ValgrindBackend
from crossperf.errors import CollectError
from crossperf.importers.measurement import Measurement, counted
from tests.collect.real import between, compiled, compiled_mpi, need

CACHES = {"I1": (32768, 8, 64), "D1": (32768, 8, 64), "LL": (8 << 20, 16, 64)}
MIB = 1 << 20


@pytest.fixture(autouse=True)
def _needs_qemu() -> None:
    need("qemu-x86_64", "gcc")


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("known.c", tmp_path_factory.mktemp("known"))


def measured(*command: object) -> Measurement:
    return QemuBackend(CACHES).count([str(word) for word in command], Runner())


def events(*command: object) -> dict[str, float]:
    return {name.removeprefix("qemu."): value for name, value in measured(*command).events.items() if value is not None}


def test_a_matrix_product_has_exactly_two_n_cubed_floating_point_instructions(programs: dict[str, Path]) -> None:
    more = between(events(programs["dgemm"], 20), events(programs["dgemm"], 60))
    assert more["mix.float"] == 2 * (60**3 - 20**3)


def test_a_loop_of_two_instructions_has_one_branch_a_round_and_the_decrement_alone_is_independent(
    programs: dict[str, Path],
) -> None:
    more = between(events(programs["loop"], 1_000), events(programs["loop"], 101_000))
    # Reading more digits of the argument costs a few dozen instructions.
    assert more["instructions"] == pytest.approx(200_000, abs=100)
    assert more["mix.control"] == pytest.approx(100_000, abs=30)
    assert more["mix.independent"] == pytest.approx(100_000, abs=60)
    assert more["conditional"] == pytest.approx(100_000, abs=30)
    assert more["conditional_missed"] == pytest.approx(0, abs=30)


@pytest.mark.parametrize(("what", "accesses", "n_bytes"), [("load", "loads", "loaded"), ("store", "stores", "stored")])
def test_loads_and_stores_and_their_bytes_are_counted_one_by_one(
    known: Path, what: str, accesses: str, n_bytes: str
) -> None:
    more = between(events(known, what, 10, MIB), events(known, what, 20, MIB))
    assert more[accesses] == pytest.approx(10 * MIB / 64, abs=60)
    assert more[f"bytes_{n_bytes}"] == pytest.approx(8 * 10 * MIB / 64, abs=400)
    assert more["sequential"] == pytest.approx(10 * MIB / 64, rel=0.01)


@pytest.mark.parametrize(("n_bytes", "misses_in", "fits_in"), [(128 << 10, "32k", "512k"), (3 * MIB, "2m", "8m")])
def test_a_sweep_misses_in_every_cache_below_its_size_and_hits_in_every_one_above(
    known: Path, n_bytes: int, misses_in: str, fits_in: str
) -> None:
    few, many = events(known, "load", 5, n_bytes), events(known, "load", 25, n_bytes)
    more, lines = between(few, many), n_bytes / 64
    assert more[f"misses_{misses_in}"] == pytest.approx(20 * lines, rel=0.05)
    assert more[f"misses_{fits_in}"] == pytest.approx(0, abs=0.01 * lines)
    assert more["footprint_bytes"] == pytest.approx(0, abs=0.02 * n_bytes)
    start = events(known, "empty", 0, 64)["footprint_bytes"]
    assert many["footprint_bytes"] - start == pytest.approx(n_bytes, rel=0.05)


def test_random_loads_are_irregular_and_hit_as_often_as_the_cache_holds_their_lines(known: Path) -> None:
    more = between(events(known, "random", 10_000, 4 * MIB), events(known, "random", 310_000, 4 * MIB))
    assert more["irregular"] == pytest.approx(300_000, rel=0.01)
    assert more["sequential"] == pytest.approx(0, abs=3_000)
    # An LRU cache that holds half or an eighth of the lines has the one asked for with that chance.
    assert more["misses_2m"] == pytest.approx(150_000, rel=0.1)
    assert more["misses_512k"] == pytest.approx(300_000 * 7 / 8, rel=0.05)


def test_a_coin_decides_half_of_a_branchs_outcomes_and_a_loop_decides_none(known: Path) -> None:
    coin = between(events(known, "coin", 1_000), events(known, "coin", 401_000))
    # Twice the rarer outcome to all is 1 for the coin; few tosses in a context make it a little less.
    assert 2 * coin["unsure"] == pytest.approx(400_000, rel=0.03)
    assert coin["conditional_missed"] == pytest.approx(200_000, rel=0.03)
    loop = between(events(known, "always", 1_000), events(known, "always", 401_000))
    assert loop["unsure"] == pytest.approx(0, abs=100)
    assert loop["conditional"] == pytest.approx(400_000, rel=0.01)


def test_each_atomic_addition_is_one_atomic_instruction(known: Path) -> None:
    more = between(events(known, "atomic", 1_000), events(known, "atomic", 11_000))
    assert more["mix.atomic"] == 10_000


def test_counts_are_exact_with_threads_and_the_busiest_is_known(programs: dict[str, Path]) -> None:
    none, four = events(programs["threads"], 0), events(programs["threads"], 4)
    assert (none["threads"], four["threads"]) == (1, 5)
    assert four["instructions"] > none["instructions"]
    assert none["busiest_thread"] == pytest.approx(none["instructions"], rel=0.001)
    assert four["busiest_thread"] < four["instructions"]


def test_openmp_regions_their_work_and_the_serial_share_are_known(tmp_path: Path) -> None:
    program = compiled("regions.c", tmp_path, "-fopenmp")
    values = counted([measured(program, 3, 1_000_000, 2_000_000)]).values
    assert values["parallel_regions"] == 3  # those inside are part of them
    assert values["region_instructions"] == pytest.approx(4_000_000, rel=0.01)
    outside = 2_000_000 + values["startup_instructions"]
    assert values["serial_ratio"] * values["instructions"] == pytest.approx(outside, rel=0.02)
    assert values["threads"] == 2


RUNTIME = """
#include <stdarg.h>
void __kmpc_fork_call(void *where, int n, void (*region)(int *, int *, void *, void *), ...) {
    va_list list;
    int number = 0;
    va_start(list, region);
    void *first = va_arg(list, void *), *second = va_arg(list, void *);
    region(&number, &number, first, second);
    (void)where, (void)n;
}
"""
CALLER = """
void __kmpc_fork_call(void *where, int n, void *region, ...);
static void region(int *a, int *b, long *rounds, long *done) {
    long left = *rounds;
    __asm__ volatile("1: decq %0; jnz 1b" : "+r"(left) : : "cc");
    *done = *rounds + *a + *b;
}
int main(void) {
    long rounds = 500000, done = 0;
    __kmpc_fork_call(0, 2, region, &rounds, &done);
    return done != rounds;
}
"""


def test_regions_of_llvms_openmp_get_their_arguments_and_are_counted(tmp_path: Path) -> None:
    """A stand-in for the runtime, which takes what clang's programs hand it."""
    for name, text, options in (("omp", RUNTIME, ["-shared", "-fPIC"]), ("caller", CALLER, [])):
        (tmp_path / f"{name}.c").write_text(text)
        target = tmp_path / ("libstandin.so" if options else name)
        linked = [] if options else [f"-L{tmp_path}", "-lstandin", f"-Wl,-rpath,{tmp_path}"]
        line = ["gcc", "-O1", *options, "-o", str(target), str(tmp_path / f"{name}.c"), *linked]
        subprocess.run(line, check=True)
    values = counted([measured(tmp_path / "caller")]).values
    assert values["parallel_regions"] == 1
    assert values["region_instructions"] == pytest.approx(1_000_000, rel=0.001)


def test_what_an_empty_program_executes_is_nearly_all_start_up(known: Path, programs: dict[str, Path]) -> None:
    empty = counted([measured(known, "empty")]).values
    assert 0.95 < empty["startup_instructions"] / empty["instructions"] <= 1
    assert empty["startup_files_opened"] == empty["io_files_opened"] == 2  # the cache of libraries, and one of them
    assert 20 < empty["startup_page_faults"] < 1000
    assert empty["startup_bytes_read"] >= 832  # the head of an ELF library
    longer = counted([measured(programs["loop"], 500_000)]).values
    assert longer["instructions"] - longer["startup_instructions"] == pytest.approx(1_000_000, rel=0.01)


def test_a_marked_part_is_counted_alone(tmp_path: Path) -> None:
    program = compiled("marked.c", tmp_path)
    part = measured(program, 1_000_000, "58500004", "58500005")
    assert part.events["qemu.instructions"] == pytest.approx(2_000_000, rel=0.001)
    assert any("marks" in note for note in part.notes)
    assert "startup_instructions" in counted([part]).missing
    untold = measured(program, 1_000_000, "43540002", "43540002")
    assert untold.events["qemu.instructions"] == pytest.approx(34_000_000, rel=0.01)


def test_counts_that_are_dumped_in_between_add_up_to_those_of_the_whole(tmp_path: Path) -> None:
    program = compiled("marked.c", tmp_path)
    folder = tmp_path / "reports"
    folder.mkdir()
    backend = QemuBackend(CACHES)
    command = [str(program), "1000000", "43540000", "43540000"]
    subprocess.run(backend.line(command), env={**os.environ, **backend.environment(folder)}, check=True)
    parts = [ProcessReport.read(path) for path in sorted(folder.iterdir())]
    assert [part.counts["ended"] for part in parts if part] == ["dump", "dump", "exit"]
    assert parts[1] is not None
    assert parts[1].counts["instructions"] == pytest.approx(2_000_000, rel=0.001)
    whole = measured(program, 1_000_000, "43540002", "43540002").events
    dumped = measured_in(folder, CACHES).events
    for name in ("qemu.instructions", "qemu.loads", "qemu.threads", "qemu.startup_instructions", "qemu.files_opened"):
        assert dumped[name] == pytest.approx(whole[name], rel=0.001)


def test_one_execution_tells_of_the_first_caches_of_two_machines(tmp_path: Path) -> None:
    # 1,000 lines in turn: 32 KiB hold none of them until they come again, 96 KiB hold all.
    source, program, folder = tmp_path / "turns.c", tmp_path / "turns", tmp_path / "reports"
    source.write_text(
        "static volatile char data[64000] __attribute__((aligned(64)));\n"
        "int main(void) { for (int turn = 0; turn < 50; turn++) for (int i = 0; i < 64000; i += 64) data[i]; }\n"
    )
    subprocess.run(["gcc", "-O1", "-o", str(program), str(source)], check=True)
    folder.mkdir()
    larger = {**CACHES, "D1": (98304, 12, 64)}
    backend = QemuBackend(CACHES, others=[larger])
    subprocess.run(backend.line([str(program)]), env={**os.environ, **backend.environment(folder)}, check=True)
    of_both = [measured_in(folder, caches).events["qemu.d1_misses"] for caches in (CACHES, larger)]
    assert of_both[0] is not None
    assert of_both[1] is not None
    assert of_both[0] - of_both[1] == pytest.approx(49_000, rel=0.02)


def test_an_instruction_across_two_pages_counts_once(tmp_path: Path) -> None:
    source, program = tmp_path / "page.S", tmp_path / "page"
    source.write_text(
        ".globl main\n.text\n.balign 4096\nmain: mov $1000000, %ecx\nlea buffer(%rip), %rsi\njmp 1f\n"
        ".space 4096-64, 0x90\n.balign 32\n1: mov 8(%rsi), %rdi\n.space 8192-2-(.-main), 0x90\n"
        "mov 0x100(%rsi), %rdx\ndec %ecx\njnz 1b\nxor %eax, %eax\nret\n"
        '.bss\nbuffer: .space 4096\n.section .note.GNU-stack,"",@progbits\n'
    )
    subprocess.run(["gcc", "-o", str(program), str(source)], check=True)
    listing = subprocess.run(["objdump", "-d", str(program)], check=True, capture_output=True, text=True).stdout
    loop = listing[listing.index("mov    0x8(%rsi),%rdi") :].partition("xor    %eax,%eax")[0]
    a_round = loop.count(":\t")
    counts = measured(program)
    values = counted([counts]).values
    assert values["instructions"] - values["startup_instructions"] == pytest.approx(1e6 * a_round, rel=0.001)
    assert not counts.notes


def test_programs_of_a_shell_and_what_replaces_it_are_followed(programs: dict[str, Path]) -> None:
    loop = programs["loop"]
    found = measured("sh", "-c", f"{loop} 1000000; {loop} 2000000 | cat; exec {loop} 3000000")
    assert found.events["qemu.mix.control"] == pytest.approx(6_000_000, rel=0.1)
    assert found.events["qemu.threads"] == 4
    assert found.notes == ("4 processes were followed and added up",)


def test_a_script_is_followed_as_its_interpreter(programs: dict[str, Path], tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text(f"#!/bin/sh\n{programs['loop']} $1\n")
    script.chmod(0o755)
    assert measured(script, 1_000_000).events["qemu.instructions"] == pytest.approx(2_000_000, rel=0.3)


def test_forked_children_count_what_they_do_themselves(programs: dict[str, Path]) -> None:
    none, three = events(programs["children"], 0), events(programs["children"], 3)
    assert between(none, three)["mix.control"] == pytest.approx(3_000_000, rel=0.02)
    assert between(none, three)["threads"] == 3


def test_programs_that_cannot_be_followed_are_told(programs: dict[str, Path], tmp_path: Path) -> None:
    static = compiled("loop.c", tmp_path, "-static")
    found = measured("sh", "-c", f"{static} 10; env -i {programs['loop']} 10; true")
    assert any("2 programs that could not be followed" in note for note in found.notes)


def test_a_statically_linked_program_is_counted_without_its_start(tmp_path: Path) -> None:
    found = measured(compiled("loop.c", tmp_path, "-static"), 1_000_000)
    assert found.events["qemu.instructions"] == pytest.approx(2_000_000, rel=0.05)
    assert found.events["qemu.startup_instructions"] is None
    assert any("statically linked" in note for note in found.notes)


def test_a_killed_child_is_told(known: Path) -> None:
    found = measured("sh", "-c", f"{known} kill; true")
    assert any("ended without a report (killed): 1 of" in note for note in found.notes)


@pytest.mark.slow
def test_ranks_of_an_mpi_program_are_followed_and_its_launcher_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = compiled_mpi("ranks.c", tmp_path)
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    found = measured("mpirun", "--oversubscribe", "-n", 2, program, 20_000_000)
    # Each rank has 20 million rounds; starting MPI is at most as much again.
    assert found.events["qemu.mix.control"] is not None
    assert 40e6 < found.events["qemu.mix.control"] < 80e6
    assert any("2 processes" in note for note in found.notes)


def test_an_avx512_program_is_refused_with_what_to_do(programs: dict[str, Path]) -> None:
    with pytest.raises(CollectError, match=r"AVX-512.*-march=x86-64-v3"):
        measured(programs["avx512"], 1)


def test_a_program_that_fails_under_qemu_is_no_measurement(known: Path) -> None:
    with pytest.raises(CollectError, match="failed under qemu: exit status 3"):
        measured("sh", "-c", "exit 3")
    with pytest.raises(CollectError, match="failed under qemu: killed by SIGSEGV"):
        measured(known, "crash")


def test_a_program_that_tells_a_result_by_its_exit_status_is_counted(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "b").write_text("2\n")
    found = profile(
        ["diff", str(tmp_path / "a"), str(tmp_path / "b")], backend="qemu", repeats=1, platform="here",
        registry=tmp_path / "platforms.json", success=(0, 1), stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert (found.exit_status, found.executions[0].status) == (1, "ok")
    assert found.counted.values["instructions"] > 50_000


def test_an_interrupt_leaves_nothing_running(programs: dict[str, Path], tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    marker.symlink_to(programs["loop"])
    script = (
        "import sys\nfrom crossperf.collect.process import Runner\nfrom crossperf.collect.qemu import QemuBackend\n"
        f"from crossperf.errors import CollectError\nrunner = Runner()\nline = '{marker} 1000000000000; true'\n"
        f"try:\n    QemuBackend({CACHES!r}).count(['sh', '-c', line], runner)\n"
        "except CollectError:\n    sys.exit(7 if runner.interrupted else 1)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    until = time.monotonic() + 30
    while not _running(str(marker)) and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)  # as a terminal's Ctrl-C
    assert child.wait(timeout=30) == 7
    assert not _running(str(marker))


def _running(word: str) -> bool:
    """Tell whether qemu executes a program now whose line holds a word."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words and b"qemu" in words[0]:
            return True
    return False


@pytest.mark.parametrize(
    "command",
    [
        ["gzip", "-kc", "/bin/sh"],
        ["sort", "-r", "/bin/bash"],
        [
            "sqlite3",
            ":memory:",
            "create table t as select value as v from generate_series(1, 20000); select avg(v) from t",
        ],
        ["/usr/bin/python3", "-S", "-c", "sum(i * i % 7 for i in range(300))"],
    ],
    ids=lambda command: Path(command[0]).name,
)
def test_valgrind_counts_the_same_of_real_programs(command: list[str]) -> None:
    need("valgrind", *command[:1])
    both = [tool.count(command, Runner()) for tool in (QemuBackend(CACHES), ValgrindBackend(CACHES))]
    here, there = (counted([each]).values for each in both)
    # The C library takes other ways of copying under either, and a hash of Python is salted; valgrind loads two
    # libraries of its own, in which the loader looks for every symbol.
    assert here["instructions"] == pytest.approx(there["instructions"], rel=0.02, abs=250_000)
    for name in ("int_ratio", "mem_ratio", "control_ratio"):
        assert here[name] == pytest.approx(there[name], abs=0.01), name
    # A jump into the middle of a block is seen by its address alone there.
    assert here["independent_ratio"] == pytest.approx(there["independent_ratio"], abs=0.02)
    assert here["atomic_ratio"] == pytest.approx(there["atomic_ratio"], abs=1e-4)
    # Both simulate the first data cache with its sets and ways. Of an access across two lines that both miss, valgrind
    # counts one; `sort` has many.
    assert here["bytes_beyond_l1"] == pytest.approx(there["bytes_beyond_l1"], rel=0.12, abs=64 * 2000)
    (missed, branches), (missed_there, branches_there) = (
        [each.events[name] or 0.0 for name in names]
        for each, names in zip(both, (("qemu.conditional_missed", "qemu.conditional"), ("Bcm", "Bc")), strict=True)
    )
    # Valgrind counts some exits of its own as branches.
    assert branches == pytest.approx(branches_there, rel=0.1)
    # Two predictors: ours is of a later generation, and misses at most a little more anywhere.
    ratio = missed / branches / (missed_there / branches_there)
    assert 1 / 3 < ratio < 1.3


def test_conditional_branches_are_those_that_a_disassembler_finds_in_the_executed_blocks(tmp_path: Path) -> None:
    capstone = pytest.importorskip("capstone")
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    tool = QemuBackend(CACHES)
    variables = {**os.environ, **tool.environment(tmp_path)}
    subprocess.run(tool.line(["sort", "-r", "/etc/services"]), env=variables, check=True, capture_output=True)
    (path,) = tmp_path.iterdir()
    report = ProcessReport.read(path)
    assert report is not None
    conditional = 0
    for block, executions in report.blocks.items():
        for _, _, mnemonic, _ in engine.disasm_lite(block.code[-block.sizes[-1] :], 0, 1):
            conditional += executions * (mnemonic.startswith("j") and mnemonic != "jmp")
    assert report.counts["conditional"] == pytest.approx(conditional, abs=5)


def test_code_compiled_at_run_time_is_sorted() -> None:
    need("luajit")
    script = "local s = 0.5 for i = 1, {} do s = s * 1.0001 + 0.5 end print(s)"
    more = between(events("luajit", "-e", script.format(1_000)), events("luajit", "-e", script.format(1_001_000)))
    assert more["mix.float"] == pytest.approx(2_000_000, rel=0.3)
    assert more["mix.classified"] == pytest.approx(more["instructions"], rel=0.001)


def test_every_counter_that_valgrind_gives_qemu_gives_too(known: Path) -> None:
    need("valgrind")
    command = [str(known), "empty"]
    of_valgrind = counted([ValgrindBackend(CACHES).count(command, Runner())]).values
    found = QemuBackend(CACHES, ["assumed"]).count(command, Runner())
    assert of_valgrind.keys() <= counted([found]).values.keys()
    assert found.version
    assert found.notes == ("assumed",)
    assert any("LD_PRELOAD" in word for word in found.command)


def test_a_report_cut_short_is_a_process_that_was_killed(tmp_path: Path) -> None:
    (tmp_path / "7.0").write_bytes(b"")
    (tmp_path / "8.0").write_bytes(b'{"version": 1}\n\x01')
    with pytest.raises(CollectError, match="no counts"):
        measured_in(tmp_path, CACHES)


def test_misses_between_two_edges_of_a_bin_are_taken_in_proportion() -> None:
    distances = [0.0] * 40 + [5.0]  # five first touches
    distances[24] = 100.0  # 32 to 36 lines
    assert [misses(distances, lines) for lines in (32, 33, 35, 36)] == [105, 80, 30, 5]
