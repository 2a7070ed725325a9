"""Facts of machines: of four made-up ones, and of this one against lscpu."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
from pathlib import Path

import pytest

from crossperf.platforms import CpuCache, Gpu, MachineFacts, facts_of_this_machine, gpus, name_for
from crossperf.platforms.tree import Tree
from tests.collect.real import need
from tests.platforms import trees


def cache_sizes(facts: MachineFacts) -> dict[str, tuple]:
    return {f"{cache.level}{cache.kind[0]}": (cache.size_bytes, cache.ways, cache.instances) for cache in facts.caches}


def test_an_intel_machine_of_two_sockets(tmp_path: Path) -> None:
    facts = facts_of_this_machine(trees.intel_two_sockets(tmp_path))
    assert facts.cpu_vendor == "Intel"
    assert facts.architecture == "x86_64"
    assert (facts.sockets, facts.cores, facts.threads_per_core) == (2, 6, 2)
    assert facts.hardware_threads_online == 12
    assert (facts.base_ghz, facts.base_ghz_from, facts.max_ghz) == (2.4, "cpufreq", 3.4)
    assert cache_sizes(facts) == {
        "1d": (48 * 1024, 12, 6),
        "1i": (32 * 1024, 8, 6),
        "2u": (1280 * 1024, 20, 6),
        "3u": (36 * 2**20, 12, 2),
    }
    assert facts.caches[3].shared_by == 6
    assert facts.memory_bytes == 263856180 * 1024
    assert facts.numa_nodes == 2
    assert (facts.page_bytes, facts.page_levels) == (4096, 5)
    assert (facts.huge_page_bytes, facts.huge_pages_reserved) == (2 * 2**20, 16)
    assert facts.transparent_huge_pages == "always"
    assert facts.os == "Rocky Linux 9.3 (Blue Onyx)"
    assert facts.kernel == "5.14.0-362.el9.x86_64"
    assert facts.hypervisor is False
    assert facts.gpus == ()
    assert name_for(facts) == "intel-xeon-gold-6312u-6c"


def test_an_arm_machine_has_codes_for_a_name(tmp_path: Path) -> None:
    facts = facts_of_this_machine(trees.arm_neoverse(tmp_path))
    assert (facts.cpu_vendor, facts.cpu_model, facts.architecture) == ("ARM", "Neoverse-N1", "aarch64")
    assert (facts.sockets, facts.cores, facts.threads_per_core) == (1, 4, 1)
    # 64 KiB in 256 sets of 64 bytes are 4 ways, although the machine does not say so.
    assert cache_sizes(facts)["1d"] == (64 * 1024, 4, 4)
    assert cache_sizes(facts)["1i"] == (64 * 1024, 4, 4)
    assert facts.base_ghz is None
    # 48 bits, less 16 within a page of 64 kB, 13 bits a level: 3 levels.
    assert (facts.page_bytes, facts.page_levels) == (65536, 3)
    assert facts.hypervisor is True
    assert name_for(facts) == "arm-neoverse-n1-4c"


def test_an_arm_machine_with_two_kinds_of_core_names_both(tmp_path: Path) -> None:
    block = "processor\t: {n}\nCPU implementer\t: 0x41\nCPU part\t: {part}\n"
    text = (
        block.format(n=0, part="0xd05")
        + "\n"
        + block.format(n=1, part="0xd0b")
        + "\n"
        + block.format(n=2, part="0xfff")
    )
    facts = facts_of_this_machine(trees.write(tmp_path, {"proc/cpuinfo": text}))
    assert facts.cpu_model == "Cortex-A55 + Cortex-A76 + ARM part 0xfff"


def test_a_power_machine_keeps_its_gpus_memory_apart(tmp_path: Path) -> None:
    facts = facts_of_this_machine(trees.power9(tmp_path))
    assert (facts.cpu_vendor, facts.cpu_model) == ("IBM", "POWER9")
    assert (facts.sockets, facts.cores, facts.threads_per_core) == (2, 2, 4)
    assert (facts.base_ghz, facts.base_ghz_from) == (3.45, "the clock of the moment")
    assert facts.max_ghz == 3.8
    assert facts.numa_nodes == 2
    assert (facts.page_bytes, facts.page_levels) == (65536, 4)
    assert facts.hypervisor is False
    assert [gpu.model for gpu in facts.gpus] == ["Tesla V100-SXM2-16GB"] * 4
    assert name_for(facts) == "ibm-power9-2c"
    assert name_for(facts, platform_class="gpu") == "v100-sxm2-16gb-x4"


def test_a_machine_that_shows_little_has_few_facts(tmp_path: Path) -> None:
    facts = facts_of_this_machine(trees.amd_virtual(tmp_path))
    assert facts.cpu_vendor == "AMD"
    assert (facts.sockets, facts.cores, facts.threads_per_core) == (1, 2, 2)
    assert facts.hardware_threads == 4
    assert facts.caches == (CpuCache(2, "unified", 512 * 1024),)
    assert facts.memory_limit_bytes == 4 * 2**30
    assert facts.cpu_quota == 1.5
    assert (facts.hypervisor, facts.hypervisor_name) == (True, "xen")
    assert facts.page_levels == 4
    assert facts.page_bytes is None
    assert name_for(facts) == "amd-epyc-7763-2c"


def test_an_empty_tree_has_no_facts_and_breaks_nothing(tmp_path: Path) -> None:
    assert facts_of_this_machine(tmp_path) == MachineFacts()


def test_impossible_ways_are_not_believed(tmp_path: Path) -> None:
    files = trees.topology({0: (0, "0")})
    files |= trees.cache(0, 0, 1, "Data", "32K", 4096, 64, None, "0")
    files |= trees.cache(0, 1, 2, "Unified", "0K", 8, 64, 1024, "0")
    files |= trees.cache(0, 2, 3, "Nonsense", "1M", 8, 64, 1024, "0")
    facts = facts_of_this_machine(trees.write(tmp_path, files))
    assert [(cache.level, cache.size_bytes, cache.ways) for cache in facts.caches] == [
        (1, 32 * 1024, None),
        (2, 8 * 64 * 1024, 8),
    ]


def lscpu() -> dict[str, str]:
    need("lscpu")
    environment = os.environ | {"LC_ALL": "C"}
    text = subprocess.run(["lscpu", "--json"], capture_output=True, text=True, check=True, env=environment).stdout

    def rows(entries: list) -> list[tuple[str, str]]:
        own = [(entry["field"].rstrip(":"), entry.get("data") or "") for entry in entries]
        return own + [row for entry in entries for row in rows(entry.get("children", []))]

    return dict(rows(json.loads(text)["lscpu"]))


def test_this_machine_is_as_lscpu_sees_it() -> None:
    seen, facts = lscpu(), facts_of_this_machine()
    assert facts.architecture == seen["Architecture"]
    assert facts.hardware_threads_online == int(seen["CPU(s)"])
    if "Core(s) per socket" in seen:
        assert facts.sockets == int(seen["Socket(s)"])
        assert facts.cores == int(seen["Core(s) per socket"]) * int(seen["Socket(s)"])
        assert facts.threads_per_core == int(seen["Thread(s) per core"])
    if "Model name" in seen:
        assert " ".join(seen["Model name"].split()) == facts.cpu_model or facts.cpu_vendor in ("ARM", "IBM")
    assert facts.numa_nodes == int(seen.get("NUMA node(s)", facts.numa_nodes))
    assert facts.page_bytes == resource.getpagesize()
    assert facts.hardware_threads == len(os.sched_getaffinity(0))
    assert facts.memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_the_caches_of_this_machine_are_as_lscpu_sees_them() -> None:
    seen, facts = lscpu(), facts_of_this_machine()
    compared = 0
    for cache in facts.caches:
        name = f"L{cache.level}{ {'data': 'd', 'instruction': 'i', 'unified': ''}[cache.kind] } cache"
        found = re.match(r"([\d.]+) ([KMG])iB(?: \((\d+) instance)?", seen.get(name, ""))
        if found and found[3]:
            total = float(found[1]) * {"K": 2**10, "M": 2**20, "G": 2**30}[found[2]]
            assert cache.instances == int(found[3])
            assert cache.size_bytes * cache.instances == pytest.approx(total, rel=0.05)
            compared += 1
    if not compared:
        pytest.skip("lscpu tells no instances of caches here")


# --- GPUs -------------------------------------------------------------------------------------------------


def test_nvidia_smi_tells_model_memory_and_clock() -> None:
    # As nvidia-smi of driver 580.159.04 printed it on a machine with one H200.
    [gpu] = gpus.nvidia_gpus("NVIDIA H200, 143771, 9.0, 1980, 580.159.04\n")
    assert gpu == Gpu(
        "NVIDIA",
        "NVIDIA H200",
        memory_bytes=143771 * 2**20,
        compute_capability="9.0",
        max_ghz=1.98,
        driver="580.159.04",
    )
    assert name_for(MachineFacts(gpus=(gpu,)), platform_class="gpu") == "h200"


def test_what_nvidia_smi_does_not_know_is_left_out() -> None:
    [gpu] = gpus.nvidia_gpus("Tesla K20m, [N/A], [N/A], [N/A], 470.1\n")
    assert gpu == Gpu("NVIDIA", "Tesla K20m", driver="470.1")


def test_an_older_driver_is_asked_for_less(monkeypatch: pytest.MonkeyPatch) -> None:
    def older(command: list[str]) -> str | None:
        if command[0] != "nvidia-smi" or "compute_cap" in command[1]:
            return None
        return "Tesla V100-SXM2-16GB, 16160\n"

    monkeypatch.setattr(gpus, "_output", older)
    [gpu] = gpus.gpus_of(Tree(Path("/nowhere")), ask_programs=True)
    assert gpu.memory_bytes == 16160 * 2**20


def test_rocm_smi_tells_model_and_memory() -> None:
    card = {"Card Series": "AMD Instinct MI250X", "GFX Version": "gfx90a", "VRAM Total Memory (B)": "68702699520"}
    text = "WARNING: AMD GPU device(s) is/are in a low-power state.\n" + json.dumps({"card0": card, "system": {}})
    [gpu] = gpus.amd_gpus(text)
    assert gpu == Gpu("AMD", "AMD Instinct MI250X", 68702699520, architecture="gfx90a")
    assert name_for(MachineFacts(gpus=(gpu,)), platform_class="gpu") == "mi250x"
    assert gpus.amd_gpus("no JSON here") == []
    assert gpus.amd_gpus("{}") == []


def test_an_amd_driver_without_rocm_smi_still_tells_of_its_card(tmp_path: Path) -> None:
    device = "sys/class/drm/card0/device"
    told = {"vendor": "0x1002", "mem_info_vram_total": 17163091968, "product_name": "Instinct MI100"}
    trees.write(tmp_path, {f"{device}/{name}": value for name, value in told.items()})
    [gpu] = gpus.gpus_of(Tree(tmp_path), ask_programs=False)
    assert (gpu.model, gpu.memory_bytes) == ("Instinct MI100", 17163091968)


def test_a_program_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(gpus, "_PATIENCE_S", 0.2)
    assert gpus.gpus_of(Tree(tmp_path), ask_programs=True) == ()
