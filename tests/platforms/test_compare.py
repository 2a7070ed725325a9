from __future__ import annotations

from pathlib import Path

from crossperf.plain import to_json
from crossperf.platforms import MachineFacts, Platform, compare, describe, facts_of_this_machine
from tests.platforms import trees


def test_two_platforms_stand_side_by_side(tmp_path: Path) -> None:
    intel = Platform("xeon", "cpu", facts_of_this_machine(trees.intel_two_sockets(tmp_path / "a")))
    power = Platform("power9", "gpu", facts_of_this_machine(trees.power9(tmp_path / "b")))
    rows = {row.fact: row for row in compare(intel, power)}
    assert rows["cores"].ratio == 2 / 6
    assert rows["l1d_bytes"].texts == ("48 KiB", "32 KiB")
    assert rows["l3_bytes"].texts == ("36 MiB", "10 MiB")
    assert rows["max_ghz"].texts == ("3.4 GHz", "3.8 GHz")
    assert rows["memory_bytes"].texts == ("251.6 GiB", "307.2 GiB")
    assert rows["cpu_model"].ratio is None
    assert rows["gpu_model"].texts == ("-", "Tesla V100-SXM2-16GB")
    assert rows["hypervisor"].texts == ("no", "no")
    assert rows["class"].texts == ("cpu", "gpu")
    assert to_json(rows["cores"]) == {"fact": "cores", "a": 6, "b": 2, "ratio": 2 / 6}


def test_facts_set_by_a_user_are_compared_too() -> None:
    cheap = Platform("cheap", "cpu", MachineFacts(more={"price_per_hour": 0.5, "bandwidth_gb_s": 100, "free": 0}))
    dear = Platform("dear", "cpu", MachineFacts(more={"price_per_hour": 2.0, "free": 5}))
    rows = {row.fact: row for row in compare(cheap, dear)}
    assert rows["price_per_hour"].ratio == 4.0
    assert rows["bandwidth_gb_s"].texts == ("100 GB/s", "-")
    assert rows["free"].ratio is None


def test_a_platform_is_described_in_words() -> None:
    facts = MachineFacts(cores=1024, memory_bytes=2**34, hypervisor=True, more={"price_per_hour": 1.25})
    assert describe(Platform("a", "cpu", facts)) == [
        ("class", "cpu"),
        ("cores", "1,024"),
        ("memory_bytes", "16 GiB"),
        ("hypervisor", "yes"),
        ("price_per_hour", "1.25"),
    ]
