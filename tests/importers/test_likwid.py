from __future__ import annotations

from pathlib import Path

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import likwid
from crossperf.importers.measurement import to_run

WHOLE = """\
--------------------------------------------------------------------------------
hello from the program
STRUCT,Info,3,,
CPU name:,Intel(R) Made-Up(R) CPU @ 2.00GHz,,,
CPU type:,Intel Something processor,,,
CPU clock:,1.999 GHz,,,
TABLE,Group 1 Raw,DATA,5,
Event,Counter,HWThread 0,HWThread 4,
INSTR_RETIRED_ANY,FIXC0,1000,3000,
CPU_CLK_UNHALTED_CORE,FIXC1,500,1500,
MEM_INST_RETIRED_ALL_LOADS,PMC0,300,700,
MEM_INST_RETIRED_ALL_STORES,PMC1,100,500,
L1D_REPLACEMENT,PMC2,10,30,
CAS_COUNT_RD,MBOX0C0,5,0,
CAS_COUNT_RD,MBOX1C0,7,-,
TABLE,Group 1 Raw STAT,DATA,5,
Event,Counter,Sum,Min,Max,Avg
INSTR_RETIRED_ANY STAT,FIXC0,4000,1000,3000,2000
TABLE,Group 1 Metric,DATA,2,
Metric,HWThread 0,HWThread 4,,
Runtime (RDTSC) [s],1.2345,1.2346,,
CPI,0.5,0.5,,
TABLE,Group 1 Metric STAT,DATA,2,
Metric,Sum,Min,Max,Avg
Runtime (RDTSC) [s] STAT,2.4691,1.2345,1.2346,1.2345
"""
REGIONS = """\
STRUCT,Info,3
CPU name:,Intel(R) Made-Up(R) CPU @ 2.00GHz,
TABLE,Region solve,Group 1 Raw,L2CACHE,5
Region Info,HWThread 1,
RDTSC Runtime [s],0.000045,
call count,3,
Event,Counter,HWThread 1
INSTR_RETIRED_ANY,FIXC0,8000
L2_TRANS_ALL_REQUESTS,PMC0,400
L2_RQSTS_MISS,PMC1,100
TABLE,Region solve,Group 1 Metric,L2CACHE,2
Metric,HWThread 1,
Runtime (RDTSC) [s],4.474740e-05,
TABLE,Region set up,Group 1 Raw,L2CACHE,5
Region Info,HWThread 1,
RDTSC Runtime [s],0.250123,
Event,Counter,HWThread 1
INSTR_RETIRED_ANY,FIXC0,50
L2_TRANS_ALL_REQUESTS,PMC0,nan
L2_RQSTS_MISS,PMC1,2
TABLE,Region set up,Group 1 Metric,L2CACHE,2
Metric,HWThread 1,
Runtime (RDTSC) [s],0.2501,
"""
PRINTED = """\
--------------------------------------------------------------------------------
CPU name:\tIntel(R) Made-Up(R) CPU @ 2.00GHz
CPU type:\tIntel Something processor
CPU clock:\t2.00 GHz
--------------------------------------------------------------------------------
Group 1: BRANCH
+------------------------------+---------+------------+------------+
|             Event            | Counter | HWThread 0 | HWThread 1 |
+------------------------------+---------+------------+------------+
|       INSTR_RETIRED_ANY      |  FIXC0  |       1000 |       2000 |
| BR_INST_RETIRED_ALL_BRANCHES |   PMC0  |        100 |        200 |
| BR_MISP_RETIRED_ALL_BRANCHES |   PMC1  |          1 |          5 |
+------------------------------+---------+------------+------------+

+-----------------------------------+---------+------+------+------+------+
|               Event               | Counter |  Sum |  Min |  Max |  Avg |
+-----------------------------------+---------+------+------+------+------+
|       INSTR_RETIRED_ANY STAT      |  FIXC0  | 3000 | 1000 | 2000 | 1500 |
+-----------------------------------+---------+------+------+------+------+

+---------------------+------------+------------+
|        Metric       | HWThread 0 | HWThread 1 |
+---------------------+------------+------------+
| Runtime (RDTSC) [s] |     0.5000 |     0.5000 |
+---------------------+------------+------------+
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "likwid.csv"
    path.write_text(text)
    return path


def test_events_are_added_up_over_threads_and_units(tmp_path: Path) -> None:
    [measurement] = likwid.read(written(tmp_path, WHOLE))
    assert measurement.events["instructions"] == 4000
    assert measurement.events["CAS_COUNT_RD"] == 12
    run = to_run([measurement], app="a", input="i", platform="p")
    assert run.counters["mem_ratio"] == pytest.approx(1600 / 4000)
    assert run.counters["cache_miss_ratio"] == pytest.approx(40 / 1560)
    assert run.counters["cache_miss_rate"] == pytest.approx(40 / 1600)
    assert run.counters["bytes_beyond_l1"] == 40 * 64
    assert run.counters["bytes_beyond_llc"] == 12 * 64
    assert run.runtime_s == 1.2346
    assert run.threads == 2
    assert run.metadata["cpu_model"] == "Intel(R) Made-Up(R) CPU @ 2.00GHz"


def test_each_marked_region_is_a_run(tmp_path: Path) -> None:
    solve, set_up = likwid.read(written(tmp_path, REGIONS))
    assert (solve.facts["app"], set_up.facts["app"]) == ("solve", "set up")
    counters = to_run([solve], input="i", platform="p").counters
    assert counters["l2_miss_ratio"] == pytest.approx(100 / 300)
    assert counters["l2_miss_rate"] == pytest.approx(100 / 400)


def test_the_runtime_has_all_the_digits_that_the_file_has(tmp_path: Path) -> None:
    solve, set_up = likwid.read(written(tmp_path, REGIONS))
    assert solve.runtime_s == 4.474740e-05
    assert set_up.runtime_s == 0.250123


def test_an_event_that_was_not_counted_stays_missing(tmp_path: Path) -> None:
    _, set_up = likwid.read(written(tmp_path, REGIONS))
    assert set_up.events["l2_trans.all_requests"] is None
    assert "LIKWID could not count l2_trans.all_requests" in set_up.notes
    assert "l2_miss_ratio" not in to_run([set_up], input="i", platform="p").counters


def test_printed_tables_are_read_as_csv_is(tmp_path: Path) -> None:
    assert likwid.reads(written(tmp_path, PRINTED))
    [measurement] = likwid.read(written(tmp_path, PRINTED))
    counters = to_run([measurement], app="a", input="i", platform="p").counters
    assert counters["instructions"] == 3000
    assert counters["control_ratio"] == pytest.approx(0.1)
    assert counters["branch_miss_ratio"] == pytest.approx(6 / 300)
    assert measurement.runtime_s == 0.5


def test_a_program_that_prints_much_does_not_hide_the_tables(tmp_path: Path) -> None:
    before, after = PRINTED.split("Group 1", 1)
    path = written(tmp_path, before + "x" * 79 + "\n" + "much to say\n" * 10_000 + "Group 1" + after)
    assert likwid.reads(path)
    assert likwid.read(path)[0].events["instructions"] == 3000


def test_two_executions_in_one_log_are_two_runs(tmp_path: Path) -> None:
    assert [m.events["instructions"] for m in likwid.read(written(tmp_path, PRINTED + PRINTED))] == [3000, 3000]
    assert len(likwid.read(written(tmp_path, WHOLE + WHOLE))) == 2


def test_groups_that_took_turns_are_scaled_to_the_whole_time(tmp_path: Path) -> None:
    second = WHOLE[WHOLE.index("TABLE") :].replace("Group 1", "Group 2").replace("L1D_REPLACEMENT", "L2_LINES_IN_ALL")
    second = second.replace("1.2345", "3.7038").replace("1.2346", "3.7038")
    [measurement] = likwid.read(written(tmp_path, WHOLE + second))
    assert measurement.runtime_s == pytest.approx(1.2346 + 3.7038)
    assert measurement.events["instructions"] == 8000, "counted in both groups, so known for all of the time"
    assert measurement.events["l1d.replacement"] == pytest.approx(40 * 4.9384 / 1.2346)
    assert measurement.events["L2_LINES_IN_ALL"] == pytest.approx(40 * 4.9384 / 3.7038)
    assert "2 groups took turns" in " ".join(measurement.notes)


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "Event,Counter,HWThread 0\nX,PMC0,1\n"])
def test_what_is_no_output_of_likwid_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ProfileFileError, match="found no table of events"):
        likwid.read(written(tmp_path, text))
