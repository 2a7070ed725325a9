from __future__ import annotations

import pytest

from crossperf.schedule.machines import Machines
from crossperf.schedule.times import ScheduleTableError


def test_a_mode_belongs_to_the_longest_name_that_it_begins_with() -> None:
    machines = Machines.of({"a": 1, "a-b": 1})
    assert [machines.cluster_of(mode) for mode in ("a", "a-cpu", "a-b", "a-b-gpu", "ab")] == [0, 0, 1, 1, None]
    assert machines.clusters_of(["a-x", "zebra"]).tolist() == [0, -1]
    with pytest.raises(ScheduleTableError, match="expected at least one that is named as a machine"):
        machines.clusters_of(["zebra"])
