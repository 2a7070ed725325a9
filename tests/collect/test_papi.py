"""Reading what PAPI's high-level API wrote, and counting through libpapi.

Hardware presets need a processor whose counters are in sight. Where there are none, a preloaded library lends
PAPI a processor whose every hardware event is the kernel's count of page faults: numbers that the kernel
tells by another road, too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crossperf.collect import libpapi, papi
from crossperf.collect.measurement import to_run
from crossperf.errors import CollectError, ProfileFileError
from tests.collect.real import compiled, need, unavailable

DATA = Path(__file__).parents[1] / "data" / "papi"
RECORDED = DATA / "papi_hl_output"

#: The pages that `regions.c` touches in each of its two ranks.
PAGES = 3 * (256 + 64) + 2 * 512 + 128


def recorded(rank: int) -> dict[str, Any]:
    return json.loads((RECORDED / f"rank_{rank:06d}.json").read_text())


def written(folder: Path, document: Any) -> Path:
    output = folder / "papi_hl_output"
    output.mkdir(exist_ok=True)
    text = document if isinstance(document, str) else json.dumps(document)
    (output / "rank_000000.json").write_text(text)
    return output


def test_a_page_fault_in_a_nested_region_counts_once() -> None:
    [measurement] = papi.read(RECORDED)
    faults = measurement.events["page-faults"]
    assert faults is not None
    assert 2 * PAGES <= faults <= 2 * PAGES + 50


def test_ranks_threads_and_regions_are_counted() -> None:
    [measurement] = papi.read(RECORDED)
    assert measurement.version == "7.0.0.0"
    assert measurement.facts["ranks"] == 2
    assert measurement.facts["threads"] == 3
    assert measurement.facts["regions"] == {"main": 2, "step": 6, "inner": 6, "after": 2, "worker": 4}
    assert measurement.facts["region_count"] == 20
    assert measurement.facts["cpu_max_mhz"] == 2445.0


def test_the_runtime_is_that_of_the_slowest_rank() -> None:
    def seconds(rank: int) -> float:
        main = recorded(rank)["threads"]["0"]["regions"]
        return (int(main["0"]["real_time_nsec"]) + int(main["7"]["real_time_nsec"])) / 1e9

    [measurement] = papi.read(RECORDED)
    assert measurement.runtime_s == pytest.approx(max(seconds(0), seconds(1)))


def test_a_folder_of_folders_holds_one_run_each(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "papi_hl_output")
    shutil.copytree(RECORDED, tmp_path / "papi_hl_output-20240131-120000")
    assert papi.reads(tmp_path)
    assert len(papi.read(tmp_path)) == 2


def test_one_file_is_one_rank() -> None:
    [measurement] = papi.read(RECORDED / "rank_000001.json")
    assert measurement.facts["ranks"] == 1


def test_the_layout_of_version_6_is_read_without_seconds() -> None:
    [measurement] = papi.read(DATA / "layout_6_0")
    assert measurement.events == {"PAPI_TOT_INS": 12e9, "PAPI_BR_INS": 1.5e9}
    assert measurement.facts["region_count"] == 3
    assert measurement.facts["cpu_max_mhz"] == 1995.0
    assert measurement.runtime_s is None
    assert "no seconds" in " ".join(measurement.notes)
    assert to_run([measurement], app="a", input="1", platform="p").counters["instructions"] == 12e9


def test_version_6_with_several_regions_says_that_they_may_lie_inside_each_other(tmp_path: Path) -> None:
    document = json.loads((DATA / "layout_6_0/papi_hl_output/rank_0000").read_text())
    document["threads"][0]["regions"].append({"inner": document["threads"][1]["regions"][0]["computation"]})
    [measurement] = papi.read(written(tmp_path, document))
    assert measurement.events["PAPI_TOT_INS"] == 16e9
    assert "counted twice" in " ".join(measurement.notes)


def test_an_event_that_a_rank_lacks_is_missing_and_not_smaller(tmp_path: Path) -> None:
    output = tmp_path / "papi_hl_output"
    shutil.copytree(RECORDED, output)
    changed = recorded(1)
    for region in changed["threads"]["1"]["regions"].values():
        del region["perf::PAGE-FAULTS"]
    (output / "rank_000001.json").write_text(json.dumps(changed))
    [measurement] = papi.read(output)
    assert measurement.events["page-faults"] is None
    assert "rank_000001.json" in " ".join(measurement.notes)
    assert measurement.events["task-clock"] is not None


def test_readings_of_the_moment_are_not_added_up(tmp_path: Path) -> None:
    changed = recorded(0)
    changed["event_definitions"]["perf::PAGE-FAULTS"]["type"] = "instant"
    [measurement] = papi.read(written(tmp_path, changed))
    assert "page-faults" not in measurement.events
    assert "reading" in " ".join(measurement.notes)


def test_the_comma_that_papi_leaves_behind_is_forgiven(tmp_path: Path) -> None:
    text = (RECORDED / "rank_000000.json").read_text()
    whole = papi.read(written(tmp_path, text))
    cut = text.rstrip().removesuffix("}").rstrip().removesuffix("}").rstrip()
    assert papi.read(written(tmp_path, cut + ",\n  }\n}\n")) == whole


def test_a_newer_version_is_named(tmp_path: Path) -> None:
    [measurement] = papi.read(written(tmp_path, recorded(0) | {"papi_version": "9.1.0.0"}))
    assert "PAPI 9.1.0.0, newer" in " ".join(measurement.notes)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ('{"papi_version":"7.0.0.0", "threads":{', "not whole JSON"),
        ("[1, 2]", "expected an object"),
        ("[" * 100_000, "not whole JSON"),
        ({"papi_version": "8.0.0.0", "processes": []}, "PAPI version 8.0.0.0"),
        ({"papi_version": "7.0.0.0", "threads": {"0": {"regions": {"0": {"name": "a"}}}}}, "parent_region_id"),
        ({"papi_version": "7.0.0.0", "threads": {}}, "holds no regions"),
        ({"papi_version": "7.0.0.0", "threads": {"0": {"regions": {"0": 5}}}}, "layout"),
        (
            {
                "papi_version": "7.0.0.0",
                "threads": {"0": {"regions": {"0": {"name": "a", "parent_region_id": "-1", "X": {"median": "5"}}}}},
            },
            "layout",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_sentence(document: Any, sentence: str, tmp_path: Path) -> None:
    output = written(tmp_path, document)
    with pytest.raises(ProfileFileError, match=sentence) as raised:
        papi.read(output)
    assert raised.value.path.endswith("rank_000000.json")


def test_what_is_not_papis_is_told_from_what_is(tmp_path: Path) -> None:
    (tmp_path / "rank_1.json").write_bytes(b"\xff\x00{")
    assert papi.reads(RECORDED)
    assert papi.reads(RECORDED / "rank_000000.json")
    assert papi.reads(DATA / "layout_6_0")
    assert not papi.reads(tmp_path)
    assert not papi.reads(tmp_path / "nothing")
    assert not papi.reads(Path(__file__))
    with pytest.raises(ProfileFileError, match="not text"):
        papi.read(tmp_path)
    with pytest.raises(ProfileFileError, match="no such file"):
        papi.read(tmp_path / "nothing")


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileFileError, match="no file rank_"):
        papi.read(tmp_path)


def test_the_installed_papi_writes_what_is_read(tmp_path: Path) -> None:
    need("gcc", "papi_avail")
    program = tmp_path / "regions"
    build = ["gcc", "-O1", str(DATA / "regions.c"), "-o", str(program), "-lpapi", "-lpthread"]
    if subprocess.run(build, capture_output=True, check=False).returncode:
        unavailable("the header of PAPI is not installed (Debian: libpapi-dev)")
    events = {"PAPI_EVENTS": "perf::TASK-CLOCK,perf::PAGE-FAULTS"}
    subprocess.run([program], cwd=tmp_path, env=os.environ | events, check=True)
    [measurement] = papi.read(tmp_path / "papi_hl_output")
    faults = measurement.events["page-faults"]
    assert faults is not None
    assert PAGES <= faults <= PAGES + 50
    assert measurement.runtime_s is not None
    assert measurement.runtime_s > 0


# --- counting -----------------------------------------------------------------------------------------------


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


def counted(folder: Path, command: list[str], counters: int = 4, **settings: Any) -> dict[str, Any]:
    """Count in a process of its own, which the lent processor is preloaded into."""
    need("papi_avail", "gcc")
    lent = compiled("fake_pmu.c", folder, "-shared", "-fPIC", "-ldl")
    environment = os.environ | {"LD_PRELOAD": str(lent), "FAKE_PMU_COUNTERS": str(counters)}
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
    [cpu_s] = found["cpu_s"]
    assert found["events"]["task-clock"] / 1e9 == pytest.approx(cpu_s, rel=0.1, abs=0.03)


def test_twice_the_pages_are_exactly_that_many_faults_more(tmp_path: Path, touch_pages: Path) -> None:
    few = counted(tmp_path, [str(touch_pages), "4000", "1", "1"], events=SOFTWARE)
    many = counted(tmp_path, [str(touch_pages), "8000", "1", "1"], events=SOFTWARE)
    more = many["events"]["page-faults"] - few["events"]["page-faults"]
    # 4,000 pages of data; the kernel needs a few faults more or less around them, by where things lie.
    assert abs(more - 4000) <= 8


def presets(library: libpapi.Library, wanted: int) -> list[str]:
    """Return presets that PAPI knows for this processor, whether they count or not."""
    shown = subprocess.run(["papi_avail", "-a"], capture_output=True, text=True, check=False).stdout
    rows = [line.split() for line in shown.splitlines() if line.startswith("PAPI_")]
    plain = [row[0] for row in rows if row[2] == "No"]  # not derived from several events
    if len(plain) < wanted:
        unavailable(f"PAPI knows {len(plain)} plain presets of this processor, the test needs {wanted}")
    return plain[:wanted]


def test_events_that_do_not_fit_together_are_counted_in_further_executions(
    tmp_path: Path, touch_pages: Path, library: libpapi.Library
) -> None:
    root_only()
    wanted = presets(library, 7)
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
