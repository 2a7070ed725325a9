from __future__ import annotations

import numpy as np
import pytest

from crossperf.schedule.times import ScheduleTableError, aligned
from tests.schedule.worlds import times


def test_a_table_of_times_prints_in_a_line_and_is_a_frame_of_its_workloads() -> None:
    table = times(["a", "b"], [1, 2], [3, 4])
    assert repr(table) == "RelativeTimes(times: 2 workloads in the modes a, b)"
    frame = table.to_frame()
    assert list(frame.columns) == ["app", "input", "a", "b"]
    assert list(frame["b"]) == [2.0, 4.0]


def test_tables_are_brought_to_the_workloads_they_share() -> None:
    truth, partial = times(["a", "b"], [1, 2], [3, 4], [5, 6]), times(["b"], [9], [8])
    first, second = aligned(truth, partial)
    assert first.workloads == second.workloads == truth.workloads[:2]
    np.testing.assert_array_equal(second.relative_wm, [[np.nan, 9], [np.nan, 8]])
    assert "1 workloads of times have no prediction" in first.notes[0]
    with pytest.raises(ScheduleTableError, match="found no workload of"):
        aligned(truth, times(["a"], [1], apps=["other"]))
