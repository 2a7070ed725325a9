from __future__ import annotations

from pathlib import Path

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import nvprof
from crossperf.importers.detect import guess
from crossperf.importers.measurement import Measurement, counted

HEAD = """\
==71== NVPROF is profiling process 71, command: ./bin/heat -n 64
a line that the program printed
==71== Metric result:
"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"
"""
METRIC = '"Tesla K20c (0)","{kernel}",{launches},"{name}","what it is",{low},{high},{mean}\n'


def metric(kernel: str, launches: int, name: str, mean: str) -> str:
    return METRIC.format(kernel=kernel, launches=launches, name=name, low=mean, high=mean, mean=mean)


def of_text(tmp_path: Path, text: str) -> Measurement:
    path = tmp_path / "nvprof.csv"
    path.write_text(text)
    assert guess(path) == "nvprof"
    (found,) = nvprof.read(path)
    return found


def test_means_times_launches_are_added_up_over_kernels(tmp_path: Path) -> None:
    rows = [metric("step(float*, int)", 3, "inst_executed", "1000"), metric("sum(float*)", 2, "inst_executed", "50")]
    found = of_text(tmp_path, HEAD + "".join(rows))
    assert counted([found]).values["instructions"] == 3 * 1000 + 2 * 50
    assert counted([found]).values["kernel_launches"] == 5
    assert (found.facts["app"], found.facts["input"], found.facts["gpu"]) == ("heat", "-n 64", "Tesla K20c")


def test_a_count_that_one_kernel_lacks_has_no_sum(tmp_path: Path) -> None:
    rows = [metric("a()", 1, "inst_executed", "10"), metric("b()", 1, "inst_integer", "7")]
    assert of_text(tmp_path, HEAD + "".join(rows)).events["inst_executed"] is None


def test_ratios_are_of_one_kernel_and_no_counts(tmp_path: Path) -> None:
    rows = [metric("a()", 4, "global_hit_rate", "75.000000%"), metric("a()", 4, "issued_ipc", "3.134806")]
    single = of_text(tmp_path, HEAD + "".join(rows))
    assert counted([single]).values["cache_miss_rate"] == 0.25
    assert single.events["issued_ipc"] == 3.134806
    several = of_text(tmp_path, HEAD + "".join(rows) + metric("b()", 1, "global_hit_rate", "10.0%"))
    assert "global_hit_rate" not in several.events
    assert any("ratios and percentages are left out" in note for note in several.notes)


@pytest.mark.parametrize(
    "text",
    [
        "Time(%),Time,Calls,Avg,Min,Max,Name\n"
        "60.0%,6.00ms,45,1ms,1ms,1ms,[CUDA memcpy HtoD]\n"
        "30.0%,3.00ms,150,20us,1us,1us,step(float*, float*, int)\n"
        "10.0%,500.0us,10,50us,1us,1us,sum(float*)\n",
        '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n'
        ",%,us,,us,us,us,\n"
        '"GPU activities",60.0,6000.0,45,1,1,1,"[CUDA memcpy HtoD]"\n'
        '"GPU activities",30.0,3000.0,150,20,1,1,"step(float*, float*, int)"\n'
        '"GPU activities",10.0,500.0,10,50,1,1,"sum(float*)"\n'
        '"API calls",99.0,90000.0,1,1,1,1,"cudaMalloc"\n',
    ],
)
def test_runtime_is_the_time_of_kernels_without_copies_and_calls(tmp_path: Path, text: str) -> None:
    found = of_text(tmp_path, text)
    assert found.runtime_s == pytest.approx(3.5e-3)
    assert found.events["invocations"] == 160


def test_a_table_without_kernels_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "nvprof.csv"
    path.write_text(HEAD)
    with pytest.raises(ProfileFileError, match="found no kernel"):
        nvprof.read(path)
