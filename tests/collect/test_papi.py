"""Counting through libpapi.

Hardware presets need a processor whose counters are in sight. Where there are none, a preloaded library lends
PAPI a processor whose every hardware event is the kernel's count of page faults: numbers that the kernel
tells by another road, too. The presets are lent as well.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crossperf.collect import libpapi, papi
from crossperf.errors import CollectError
from tests.collect.real import compiled, need, need_papi_that_counts, unavailable


@pytest.fixture
def library() -> libpapi.Library:
    need("papi_avail")
    return libpapi.load()


def test_the_library_says_which_it_is(library: libpapi.Library) -> None:
    shown = subprocess.run(["papi_version"], capture_output=True, text=True, check=True).stdout
    assert library.version in shown


def test_without_libpapi_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing() -> libpapi.Library:
        raise libpapi.LibraryMissingError("libpapi is not installed")

    monkeypatch.setattr(libpapi, "load", nothing)
    assert "apt-get install papi-tools" in str(papi.PapiBackend().why_not())


def test_a_library_that_is_no_papi_is_named() -> None:
    with pytest.raises(libpapi.LibraryMissingError, match="cannot be used"):
        libpapi.Library("libc.so.6")


def test_it_says_that_it_cannot_count_where_there_are_no_counters(library: libpapi.Library) -> None:
    reason = papi.PapiBackend(events=["PAPI_TOT_INS"]).why_not()
    if reason is None:
        pytest.skip("this machine has hardware counters")
    assert "no hardware counters" in reason or "perf_event_paranoid" in reason
    with pytest.raises(CollectError, match="papi cannot count here"):
        papi.PapiBackend(events=["PAPI_TOT_INS"]).count(["true"], runner=None)  # type: ignore[arg-type]


_COUNT = """
import json, sys
from crossperf.collect import papi
from crossperf.collect.process import Runner

class Remembering(Runner):
    def execute(self, *arguments, **options):
        execution = super().execute(*arguments, **options)
        executions.append(execution)
        return execution

executions = []
settings = json.loads(sys.argv[1])
measured = papi.PapiBackend(**settings).count(sys.argv[2:], Remembering())
print(json.dumps({
    "events": dict(measured.events), "notes": measured.notes, "facts": measured.facts, "version": measured.version,
    "faults": [e.minor_faults + e.major_faults for e in executions],
    "cpu_s": [e.user_s + e.system_s for e in executions],
}))
"""


#: What PAPI's presets stand for on the lent processor: a release of PAPI has none for a processor newer than itself.
PRESETS = {
    "PAPI_TOT_INS": "INSTRUCTIONS",
    "PAPI_TOT_CYC": "CYCLES",
    "PAPI_BR_INS": "BRANCHES",
    "PAPI_BR_MSP": "BRANCH-MISSES",
    "PAPI_L1_DCM": "L1-DCACHE-LOAD-MISSES",
    "PAPI_L1_DCA": "L1-DCACHE-LOADS",
    "PAPI_TLB_DM": "DTLB-LOAD-MISSES",
}


def preset_file(folder: Path) -> Path:
    """Write the presets of the lent processor, in the form of PAPI's own ``papi_events.csv``."""
    shown = subprocess.run(["papi_component_avail"], capture_output=True, text=True, check=True).stdout
    (names,) = re.findall(r"^\s*PMUs supported: (.*perf\b.*)$", shown, flags=re.MULTILINE)[:1] or ["perf"]
    lines = [f"CPU,{name}" for name in names.split(", ")]
    lines += [f"PRESET,{preset},NOT_DERIVED,perf::{event}" for preset, event in PRESETS.items()]
    path = folder / "papi_events.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def counted(folder: Path, command: list[str], counters: int = 4, **settings: Any) -> dict[str, Any]:
    """Count in a process of its own, which the lent processor is preloaded into."""
    need("gcc")
    need_papi_that_counts()
    lent = compiled("fake_pmu.c", folder, "-shared", "-fPIC", "-ldl")
    environment = os.environ | {"LD_PRELOAD": str(lent), "FAKE_PMU_COUNTERS": str(counters)}
    environment["PAPI_CSV_EVENT_FILE"] = str(preset_file(folder))
    done = subprocess.run(
        [sys.executable, "-c", _COUNT, json.dumps(settings), *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


SOFTWARE = ["perf::PAGE-FAULTS", "perf::TASK-CLOCK"]


@pytest.fixture
def touch_pages(tmp_path: Path) -> Path:
    return compiled("touch_pages.c", tmp_path, "-pthread")


def root_only() -> None:
    if os.geteuid() != 0:
        unavailable("counting what the kernel does needs root")


def test_faults_and_time_of_children_and_threads_agree_with_the_kernels_own_account(
    tmp_path: Path, touch_pages: Path
) -> None:
    root_only()
    found = counted(tmp_path, [str(touch_pages), "5000", "3", "4"], events=SOFTWARE, kernel=True)
    faults, [all_faults] = found["events"]["page-faults"], found["faults"]
    assert 3 * 4 * 5000 <= faults <= all_faults
    # The kernel's account begins with the fork, before the counters are attached to the shell.
    assert all_faults - faults < 200
    # Two clocks: the account also has the start, the event also what the host takes away, and both grow on a busy
    # machine. One of the three children alone would be a third, one of the twelve threads a twelfth.
    [cpu_s] = found["cpu_s"]
    assert 0.5 * cpu_s < found["events"]["task-clock"] / 1e9 < 2.0 * cpu_s


def test_twice_the_pages_are_exactly_that_many_faults_more(tmp_path: Path, touch_pages: Path) -> None:
    few = counted(tmp_path, [str(touch_pages), "4000", "1", "1"], events=SOFTWARE)
    many = counted(tmp_path, [str(touch_pages), "8000", "1", "1"], events=SOFTWARE)
    more = many["events"]["page-faults"] - few["events"]["page-faults"]
    # 4,000 pages of data; the kernel needs a few faults more or less around them, by where things lie.
    assert abs(more - 4000) <= 8


def test_events_that_do_not_fit_together_are_counted_in_further_executions(
    tmp_path: Path, touch_pages: Path, library: libpapi.Library
) -> None:
    root_only()
    wanted = list(PRESETS)
    found = counted(tmp_path, [str(touch_pages), "1000", "2", "2"], counters=3, events=wanted, kernel=True)
    assert len(found["faults"]) == 3
    assert "3 executions" in " ".join(found["notes"])
    for place, event in enumerate(wanted):
        all_faults = found["faults"][place // 3]
        assert 4000 <= found["events"][event] <= all_faults
    assert found["version"] == library.version


def test_an_event_that_does_not_exist_is_missing_with_papis_reason(tmp_path: Path, touch_pages: Path) -> None:
    found = counted(tmp_path, [str(touch_pages), "10", "1", "1"], events=["PAPI_NO_SUCH", *SOFTWARE])
    assert found["events"]["PAPI_NO_SUCH"] is None
    assert found["events"]["page-faults"] > 0
    assert "PAPI_NO_SUCH" in " ".join(found["notes"])


def test_a_command_that_fails_under_it_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="CollectError: the command failed under papi: exit status 3"):
        counted(tmp_path, ["/bin/sh", "-c", "exit 3"], events=SOFTWARE)


def test_the_catalogs_events_are_counted_where_none_are_named(tmp_path: Path, touch_pages: Path) -> None:
    found = counted(tmp_path, [str(touch_pages), "1000", "1", "1"], counters=100)
    assert found["events"]["PAPI_TOT_INS"] >= 1000
    assert "user mode alone" in found["notes"]


def test_of_several_formulas_the_first_that_can_be_counted_is_taken() -> None:
    everything, missed = papi.choose(())
    assert {"PAPI_TOT_INS", "PAPI_LD_INS", "PAPI_SR_INS"} <= set(everything)
    assert "PAPI_LST_INS" not in everything
    assert missed == []
    without_stores, missed = papi.choose({"PAPI_SR_INS", "PAPI_INT_INS"})
    assert "PAPI_LST_INS" in without_stores
    assert "PAPI_SR_INS" not in without_stores
    assert missed == ["PAPI_INT_INS"]


def test_events_of_another_processor_are_not_missed() -> None:
    chosen, missed = papi.choose(papi.catalog_events())
    assert chosen == []
    assert not any(name.startswith("PM_") for name in missed)
    assert "PAPI_TOT_INS" in missed


def test_arguments_reach_the_command_as_they_are(tmp_path: Path) -> None:
    target = tmp_path / 'it\'s $HOME; a "file"'
    counted(tmp_path, ["/usr/bin/touch", str(target)], events=SOFTWARE)
    assert target.exists()
