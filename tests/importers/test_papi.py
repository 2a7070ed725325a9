from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import papi
from crossperf.importers.measurement import to_run
from tests.collect.real import need, need_papi_that_counts, unavailable

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
    need("gcc")
    need_papi_that_counts()
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
