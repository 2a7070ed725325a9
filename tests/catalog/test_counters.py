from __future__ import annotations

from pathlib import Path

import pytest

from crossperf import catalog
from crossperf.catalog.page import page as page_of_the_catalog

#: The rows of Table I of the seed paper, with its colours as groups, and the counters that answer for each.
TABLE_I = [
    ("# Instructions", ["instructions"]),
    ("Ratio Int Arith. to Total Instr.", ["int_ratio"]),
    ("Ratio Float Arith. to Total Instr.", ["float_ratio"]),
    ("Ratio Mem. to Total Instr.", ["mem_ratio"]),
    ("Ratio Caches Misses to Hits", ["cache_miss_ratio"]),
    ("# Page Levels", ["page_levels"]),
    ("# Page Faults", ["page_faults"]),
    ("GPU2CPU & CPU2GPU Bandwidth", ["bandwidth_gpu_to_host", "bandwidth_host_to_gpu"]),
    ("Ratio Control to Total Instr.", ["control_ratio"]),
    ("Ratio Indep. Instr. to Total Instr.", ["independent_ratio"]),
    ("Ratio Branch Misses to Branch Instr.", ["branch_miss_ratio"]),
    ("# Threads / Streams", ["threads"]),
    ("Warp Blocks", ["warp_blocks"]),
    ("IO Bytes Read/Written", ["io_bytes_read", "io_bytes_written"]),
    ("IO File Descriptors Opened", ["io_files_opened"]),
]


@pytest.mark.parametrize(("row", "names"), TABLE_I)
def test_each_row_of_table_one_has_a_counter(row: str, names: list[str]) -> None:
    assert set(names) <= set(catalog.COUNTERS)
    unit = "ratio" if row.startswith("Ratio") else "bytes/s" if "Bandwidth" in row else None
    assert unit is None or all(catalog.COUNTERS[name].unit == unit for name in names)


def test_every_ratio_is_a_share_of_a_whole_but_those_of_misses_to_hits() -> None:
    limits = {name: counter.at_most for name, counter in catalog.COUNTERS.items() if counter.unit == "ratio"}
    unbounded = {"cache_miss_ratio", "l2_miss_ratio", "llc_miss_ratio"}
    assert {name for name, limit in limits.items() if limit is None} == unbounded
    assert {limit for name, limit in limits.items() if name not in unbounded} == {1.0}


def test_what_is_beyond_table_one_is_optional() -> None:
    of_table = {name for _, names in TABLE_I for name in names}
    # The paper's row of caches is one; the second and last level, and the bytes of GPU copies, stand beside it.
    of_table |= {"l2_miss_ratio", "llc_miss_ratio", "bytes_host_to_gpu", "bytes_gpu_to_host"}
    assert {name for name, counter in catalog.COUNTERS.items() if not counter.optional} == of_table


@pytest.mark.parametrize("ratio", ["cache_miss_ratio", "l2_miss_ratio", "llc_miss_ratio"])
def test_each_ratio_of_misses_to_hits_has_a_bounded_rate_from_the_same_events(ratio: str) -> None:
    rate = catalog.RATES[ratio]
    for formula in (known for known in catalog.FORMULAS if known.counter == ratio):
        twin = formula.to_accesses(rate)
        assert twin in catalog.FORMULAS
        events = dict.fromkeys((*formula.events, formula.given), 10.0) | {formula.events[-1]: 90.0}
        misses_to_hits = formula.value(events)
        assert twin.value(events) == pytest.approx(misses_to_hits / (1 + misses_to_hits))


def test_every_counter_is_listed_under_its_own_name_with_a_meaning() -> None:
    assert all(name == counter.name and counter.meaning.endswith(".") for name, counter in catalog.COUNTERS.items())


def test_the_page_of_the_docs_is_what_the_catalog_writes() -> None:
    page = (Path(__file__).parents[2] / "docs" / "counters.md").read_text(encoding="utf-8")
    assert page == page_of_the_catalog(), "write it again: python -m crossperf.catalog.page > docs/counters.md"


@pytest.mark.parametrize("vendor", ["Intel", "AMD Zen", "ARM", "POWER", "NVIDIA", "AMD GPU", "any CPU"])
def test_the_page_tells_the_formulas_of_every_vendor(vendor: str) -> None:
    assert f"| {vendor} |" in page_of_the_catalog()
