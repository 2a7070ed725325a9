from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from crossperf.importers import perf
from crossperf.importers.detect import guess, import_runs
from crossperf.importers.measurement import Measurement, counted

ENGLISH = """\
hello from the program itself
 Performance counter stats for './bin/heat -n 200':

          1,250.50 msec task-clock                #    0.998 CPUs utilized
                12      context-switches          #    9.596 /sec
     4,000,000,000      cycles                    #    3.199 GHz                      (83.40%)
     6,000,000,000      instructions              #    1.50  insn per cycle
                                                  #    0.10  stalled cycles per insn  (66.70%)
     1,200,000,000      branches                  #  959.616 M/sec                    (83.26%)
        24,000,000      branch-misses             #    2.00% of all branches          (83.30%)
   <not supported>      LLC-loads
     <not counted>      LLC-load-misses                                               (0.00%)

       1.253000000 seconds time elapsed

       1.240000000 seconds user
       0.010000000 seconds sys
"""


def of_text(tmp_path: Path, text: str) -> list[Measurement]:
    path = tmp_path / "stat.txt"
    path.write_text(text, encoding="utf-8")
    assert guess(path) == "perf"
    return perf.read(path)


def test_the_printed_text_gives_counts_the_command_and_the_elapsed_time(tmp_path: Path) -> None:
    (found,) = of_text(tmp_path, ENGLISH)
    assert found.events["task-clock"] == 1250.5
    assert found.events["instructions"] == 6e9
    assert found.events["LLC-loads"] is None
    assert found.events["LLC-load-misses"] is None
    assert found.runtime_s == 1.253
    assert found.facts["app"] == "heat"
    assert found.facts["input"] == "-n 200"
    assert found.facts["user_s"] == 1.24
    values = counted([found]).values
    assert values["branch_miss_ratio"] == 0.02
    assert values["control_ratio"] == 0.2


def test_shared_counters_and_the_kernel_s_share_are_told(tmp_path: Path) -> None:
    (found,) = of_text(tmp_path, ENGLISH)
    assert found.facts["perf_running_share"]["cycles"] == pytest.approx(0.834)
    assert "cycles was counted for 83% of the time and scaled by perf" in found.notes
    assert any("kernel's share" in note for note in found.notes)
    (user,) = of_text(tmp_path, ENGLISH.replace(" instructions ", " instructions:u "))
    assert not any("kernel's share" in note for note in user.notes)


@pytest.mark.parametrize(
    ("thousands", "decimal"), [(".", ","), (" ", ","), ("\u00a0", ","), ("\u202f", ","), ("'", "."), ("\u2019", ".")]
)
def test_other_locales_say_the_same(tmp_path: Path, thousands: str, decimal: str) -> None:
    swapped = ENGLISH.replace(",", "\0").replace(".", decimal).replace("\0", thousands)
    swapped = swapped.replace(f"{decimal}/bin", "./bin")
    (found,) = of_text(tmp_path, swapped)
    (english,) = of_text(tmp_path, ENGLISH)
    assert found == english


def test_repeats_are_means_and_their_spread_is_no_count(tmp_path: Path) -> None:
    text = """
 Performance counter stats for 'sort list' (5 runs):

         2,000,000      instructions:u            #    1.00  insn per cycle           ( +-  0.02% )  (50.00%)
         300,000.25 msec task-clock:u             #    0.9 CPUs utilized              ( +-  1.50% )

          0.020000000 +- 0.000400000 seconds time elapsed  ( +-  2.00% )
"""
    (found,) = of_text(tmp_path, text)
    assert found.events["instructions:u"] == 2e6
    assert found.events["task-clock:u"] == 300_000.25
    assert found.runtime_s == 0.02
    assert "means over 5 executions" in found.notes
    assert found.facts["perf_running_share"] == {"instructions:u": 0.5}


def test_old_perf_writes_the_unit_behind_and_shares_in_square_brackets(tmp_path: Path) -> None:
    text = """
 Performance counter stats for './a.out':

        1660.048586      task-clock (msec)         #    1.000 CPUs utilized
      6,314,282,417      cycles                    #    3.804 GHz                     [83.34%]
          1.660692551 seconds time elapsed
"""
    (found,) = of_text(tmp_path, text)
    assert found.events == {"task-clock": 1660.048586, "cycles": 6314282417.0}
    assert found.facts["perf_running_share"] == {"cycles": pytest.approx(0.8334)}


def test_each_execution_of_a_file_is_a_run_and_names_are_the_command_s(tmp_path: Path) -> None:
    path = tmp_path / "three.log"
    path.write_text(ENGLISH * 2 + ENGLISH.replace("-n 200", "-n 400"))
    runs = import_runs("auto", [path], platform="vm").runs
    assert [(run.app, run.input, run.runtime_s) for run in runs] == [
        ("heat", "-n 200", 1.253),
        ("heat", "-n 200", 1.253),
        ("heat", "-n 400", 1.253),
    ]


def test_intervals_and_sockets_add_up(tmp_path: Path) -> None:
    text = """\
#           time             counts unit events
     1.000100000              1,500      page-faults               #    1.5 K/sec
     1.000100000          2,000,000      instructions:u
     2.000200000                500      page-faults
     2.000200000          1,000,000      instructions:u
"""
    (found,) = of_text(tmp_path, text)
    assert found.events == {"page-faults": 2000.0, "instructions:u": 3e6}
    assert found.runtime_s == 2.0002
    title = " Performance counter stats for 'system wide':"
    sockets = title + "\n\nS0        8      1,000      cycles\nS1        8        500      cycles\n"
    assert of_text(tmp_path, sockets)[0].events == {"cycles": 1500.0}


def test_a_whole_machine_is_no_command(tmp_path: Path) -> None:
    (found,) = of_text(tmp_path, ENGLISH.replace("./bin/heat -n 200", "system wide"))
    assert "app" not in found.facts
    assert any("not over one command" in note for note in found.notes)


def test_a_document_that_shows_such_a_text_is_read_by_its_name_alone(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(ENGLISH)
    assert not perf.reads(tmp_path / "README.md")
    assert perf.read(tmp_path / "README.md")[0].runtime_s == 1.253  # who names the format means it


@pytest.mark.skipif(shutil.which("perf") is None and not os.environ.get("CI"), reason="perf is not installed")
def test_real_perf_prints_and_writes_the_same(tmp_path: Path) -> None:
    events = ["-e", "page-faults", "-e", "task-clock", "-e", "duration_time"]
    text = tmp_path / "stat.txt"
    done = subprocess.run(["perf", "stat", "-o", str(text), *events, "ls", str(tmp_path)], check=False)
    assert done.returncode == 0
    (found,) = perf.read(text)
    assert found.facts["app"] == "ls"
    assert found.runtime_s is not None
    duration_ns = found.events["duration_time"]
    assert duration_ns is not None
    assert found.runtime_s == pytest.approx(duration_ns * 1e-9, rel=0.05)
