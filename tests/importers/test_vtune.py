from __future__ import annotations

from pathlib import Path

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import vtune
from crossperf.importers.measurement import to_run

EVENTS = """\
Function,Hardware Event Count:INST_RETIRED.ANY,Hardware Event Count:MEM_INST_RETIRED.ALL_LOADS_PS,\
Hardware Event Count:MEM_INST_RETIRED.ALL_STORES_PS,Hardware Event Count:MEM_LOAD_RETIRED.L1_HIT_PS,\
Hardware Event Count:MEM_LOAD_RETIRED.L1_MISS_PS,Hardware Event Count:BR_INST_RETIRED.ALL_BRANCHES (K),Module
"sweep<float, 3>",6000,2000,500,1500,300,1,stencil
main,4000,400,100,300,100,0.5,stencil
"""
SUMMARY = """\
Hierarchy Level,Metric Name,Metric Value
0,Elapsed Time,12.500000
1,Clockticks,"5,000,000,000"
1,Instructions Retired,8000000000
1,CPI Rate,0.625
1,Total Thread Count,4
0,Collection and Platform Info,
1,Application Command Line,/home/ada/stencil -n 64
1,Computer Name,node2
1,CPU,
2,Name,A made-up CPU
1,Bandwidth Domain,Platform Maximum,Observed Maximum,Average
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "report.csv"
    path.write_text(text)
    return path


def test_events_are_added_up_over_functions(tmp_path: Path) -> None:
    [measurement] = vtune.read(written(tmp_path, EVENTS))
    counters = to_run([measurement], app="a", input="i", platform="p").counters
    assert counters["instructions"] == 10_000
    assert counters["mem_ratio"] == pytest.approx(3000 / 10_000)
    assert counters["control_ratio"] == pytest.approx(1500 / 10_000)
    assert counters["cache_miss_ratio"] == pytest.approx(400 / 1800)
    assert measurement.runtime_s is None
    assert "summary" in " ".join(measurement.notes)


@pytest.mark.parametrize("separator", ["\t", ";"])
def test_other_separators_and_talk_before_the_table_are_no_matter(tmp_path: Path, separator: str) -> None:
    text = "vtune: Executing actions 75 % Generating a report\n" + EVENTS.replace('"sweep<float, 3>"', "sweep")
    [measurement] = vtune.read(written(tmp_path, text.replace(",", separator)))
    assert measurement.events["instructions"] == 10_000


def test_stacks_count_each_function_once(tmp_path: Path) -> None:
    own = "Function Stack,Clockticks:Self,Clockticks:Total,Module\nTotal,0,100,\n main,40,100,a\n  sweep,60,60,a\n"
    assert vtune.read(written(tmp_path, own))[0].events == {"cycles": 100}
    nested = "Function / Call Stack,Clockticks,Module\nsweep,60,a\n main,60,a\nmain,40,a\n"
    assert vtune.read(written(tmp_path, nested))[0].events == {"cycles": 100}


def test_a_summary_tells_runtime_counts_and_program(tmp_path: Path) -> None:
    [measurement] = vtune.read(written(tmp_path, SUMMARY))
    assert measurement.events == {"cycles": 5e9, "instructions": 8e9}
    run = to_run([measurement], platform="p")
    assert (run.app, run.input, run.host) == ("stencil", "-n 64", "node2")
    assert run.counters == {"instructions": 8e9, "threads": 4}
    assert run.runtime_s == 12.5
    assert run.metadata["cpu_model"] == "A made-up CPU"


def test_a_column_with_a_text_in_it_is_missing_rather_than_short(tmp_path: Path) -> None:
    [measurement] = vtune.read(written(tmp_path, EVENTS.replace("4000,400", "N/A,400")))
    assert measurement.events["instructions"] is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "found no row of VTune's column names"),
        ("Function,size\nmain,3\n", "found no row of VTune's column names"),
        ("Function,CPU Time,Module\nmain,3.5,a\n", "neither counts of events nor the elapsed time"),
        (EVENTS[:-20], "row 2: found 5 cells, expected 8"),
        (EVENTS.splitlines()[0] + "\n", "found no row of counts"),
        (EVENTS + '"' + "x" * 140_000, "found no proper CSV"),
    ],
)
def test_what_cannot_be_used_is_an_error_in_a_sentence(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ProfileFileError, match=why):
        vtune.read(written(tmp_path, text))


def test_a_table_of_other_things_is_not_taken_for_one(tmp_path: Path) -> None:
    assert not vtune.reads(written(tmp_path, "module,price\nsolar,3\n"))
    assert vtune.reads(written(tmp_path, EVENTS))
    assert vtune.reads(written(tmp_path, SUMMARY))
