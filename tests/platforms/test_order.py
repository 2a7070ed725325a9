"""The order in which platforms are shown, and their facts in a line."""

from __future__ import annotations

import pytest

from crossperf.datasets import testbed
from crossperf.platforms import Family, MachineFacts, Platform, family_of, in_a_line, in_order


@pytest.mark.parametrize(
    ("name", "machine", "size"),
    [
        ("xeon-16t", "xeon", 16),
        ("intel-xeon-e5-2690-v4-28c", "intel-xeon-e5-2690-v4", 28),
        ("node_8threads", "node", 8),
        ("h200-x4", "h200", 4),
        ("c4.large", "c4", 16),
        ("c4.xlarge", "c4", 32),
        ("c4.2xlarge", "c4", 64),
        ("m5.metal", "m5", float("inf")),
        # What only looks like a count is a name.
        ("k20c", "k20c", 0),
        ("gtx1080", "gtx1080", 0),
        ("GTX-680", "GTX-680", 0),
        ("i7-6700k", "i7-6700k", 0),
        ("", "", 0),
        ("16t", "16t", 0),
    ],
)
def test_a_name_tells_machine_and_size(name: str, machine: str, size: float) -> None:
    assert family_of(name) == Family(machine, float(size))


def test_the_testbed_stands_by_machine_and_threads_with_its_gpu_last() -> None:
    known = testbed.platforms()
    classes = {platform.name: platform.platform_class for platform in known}
    wanted = ["epyc-1t", "epyc-2t", "xeon-1t", "xeon-4t", "xeon-16t", "h200"]
    assert in_order(sorted(classes, reverse=True), classes) == wanted


def test_cloud_machines_stand_by_family_and_then_by_size_and_numbers_by_value() -> None:
    names = ["c4.2xlarge", "c4.large", "c3.xlarge", "c4.xlarge", "node10", "node9"]
    assert in_order(names) == ["c3.xlarge", "c4.large", "c4.xlarge", "c4.2xlarge", "node9", "node10"]


def test_the_order_is_the_same_whatever_order_comes_in_even_of_names_that_differ_in_case() -> None:
    names = ["A", "a", "b-2t", "B-2t", "b"]
    assert in_order(names) == in_order(reversed(names))


def test_facts_of_the_testbed_in_a_line() -> None:
    lines = {platform.name: in_a_line(platform) for platform in testbed.platforms()}
    assert lines["epyc-2t"] == "AMD EPYC, 2 cores, 2.6 GHz, 24 GiB, 2 threads"
    assert lines["xeon-16t"] == "Intel Xeon Processor, 16 cores, 2.1 GHz, 126 GiB, 16 threads"
    assert lines["h200"] == "NVIDIA H200, 1.98 GHz, 140 GiB"
    assert in_a_line(Platform("nothing", "cpu", MachineFacts())) == ""
