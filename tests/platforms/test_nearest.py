"""The platform that stands for a machine: the same where facts say so, otherwise the nearest, with what differs."""

from __future__ import annotations

from dataclasses import replace

from crossperf.datasets import testbed
from crossperf.platforms import CpuCache, Gpu, MachineFacts, Platform, nearest


def machine(threads: int | None = None, **facts: object) -> MachineFacts:
    caches = (CpuCache(1, "data", 32768), CpuCache(2, "unified", 2**19), CpuCache(3, "unified", 2**25))
    known = MachineFacts(cpu_vendor="AMD", cpu_model="EPYC", architecture="x86_64", cores=2, caches=caches)
    return replace(known, more={"threads": threads} if threads else {}, **facts)  # type: ignore[arg-type]


ONE, TWO = Platform("one", "cpu", machine(1)), Platform("two", "cpu", machine(2))
INTEL = Platform("intel", "cpu", machine(1, cpu_vendor="Intel", cpu_model="Xeon", cores=16))
ARM = Platform("arm", "cpu", machine(1, architecture="aarch64", cpu_vendor="ARM", cpu_model="N1"))
H200 = Platform("h200", "gpu", machine(gpus=(Gpu("NVIDIA", "H200"),)))
ALL = [ONE, TWO, INTEL, ARM, H200]


def test_a_machine_is_the_platform_with_its_facts_and_its_threads() -> None:
    for threads, name in ((1, "one"), (2, "two")):
        match = nearest(ALL, machine(), "cpu", threads)
        assert match is not None
        assert (match.platform.name, match.same) == (name, True)


def test_another_cache_is_named_and_the_machine_is_no_longer_the_same() -> None:
    larger = (CpuCache(1, "data", 32768), CpuCache(2, "unified", 2**20), CpuCache(3, "unified", 2**25))
    match = nearest(ALL, machine(caches=larger), "cpu", 1)
    assert match is not None
    assert match.platform.name == "one"
    assert match.differs == ("1 MiB of L2 cache instead of 512 KiB",)


def test_another_instruction_set_is_farther_than_anything_else() -> None:
    far = machine(cpu_vendor="Intel", cpu_model="i3", cores=64)
    match = nearest([ARM, TWO], far, "cpu", 64)
    assert match is not None
    assert match.platform.name == "two"
    assert match.differs[0].startswith("64 threads instead of 2")


def test_a_number_of_threads_that_no_platform_has_goes_to_the_nearest_and_says_so() -> None:
    match = nearest(ALL, machine(), "cpu", 3)
    assert match is not None
    assert (match.platform.name, match.differs) == ("two", ("3 threads instead of 2",))


def test_the_same_processor_with_other_memory_is_another_machine() -> None:
    small = Platform("small", "cpu", machine(memory_bytes=2**33))
    match = nearest([small], machine(memory_bytes=2**36))
    assert match is not None
    assert match.differs == ("another machine with the same processor",)


def test_a_class_without_platforms_has_no_nearest_one() -> None:
    assert nearest([ONE], machine(), "gpu") is None
    match = nearest(ALL, machine(gpus=(Gpu("NVIDIA", "A100"),)), "gpu")
    assert match is not None
    assert match.differs == ("A100 instead of H200",)


def test_every_platform_of_the_testbed_finds_itself() -> None:
    known = testbed.platforms()
    for platform in known:
        threads = platform.facts.more.get("threads")
        match = nearest(known, platform.facts, platform.platform_class, threads)
        assert match is not None
        assert (match.platform.name, match.same) == (platform.name, True)
