from __future__ import annotations

import importlib.util
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from crossperf.errors import MissingDependencyError, ProfileFileError
from crossperf.importers import caliper
from crossperf.importers.detect import import_runs
from crossperf.importers.measurement import Measurement, to_run
from tests.collect.real import unavailable

SHARED = Path(__file__).parents[3] / "shared" / "profiles"

# Attributes of a .cali file of our own: id, name, type node (3 text, 5 double), property (64 value, 256 nested,
# 512 global).
HEAD = [
    "__rec=node,id=12,attr=10,data=64,parent=3",
    "__rec=node,id=13,attr=8,data=attribute.unit,parent=12",
    "__rec=node,id=20,attr=10,data=276,parent=3",
    "__rec=node,id=21,attr=8,data=region,parent=20",
    "__rec=node,id=30,attr=10,data=588,parent=3",
    "__rec=node,id=31,attr=8,data=cluster,parent=30",
    "__rec=node,id=32,attr=8,data=cmdline,parent=30",
    "__rec=node,id=33,attr=8,data=jobsize,parent=30",
    "__rec=node,id=34,attr=8,data=launchdate,parent=30",
    "__rec=node,id=35,attr=8,data=user,parent=30",
    "__rec=node,id=36,attr=8,data=cali.caliper.version,parent=30",
]
GLOBALS = [
    "__rec=node,id=90,attr=31,data=quartz",
    "__rec=node,id=91,attr=32,data=[/opt/bin/amg\\,-n\\,120],parent=90",
    "__rec=node,id=92,attr=33,data=4,parent=91",
    "__rec=node,id=93,attr=34,data=1703140918,parent=92",
    "__rec=node,id=94,attr=35,data=somebody,parent=93",
    "__rec=node,id=95,attr=36,data=2.11.0,parent=94",
    "__rec=globals,ref=95",
]
# main holds setup and two of solve; the rest of the time is outside of all regions.
PATHS = {40: ("main", None), 41: ("setup", 40), 42: ("solve", 40)}


def need_reader() -> None:
    if importlib.util.find_spec("caliperreader") is None:
        unavailable("caliper-reader is not installed: pip install 'crossperf[caliper]'")


def cali(path: Path, metrics: dict[str, dict[int | None, float]], units: dict[str, str] | None = None) -> Path:
    """Write a .cali file: values of each metric by node of a region; ``None`` is outside of all regions."""
    need_reader()
    lines = list(HEAD)
    for number, name in enumerate(metrics):
        node = 50 + 3 * number
        unit = (units or {}).get(name)
        lines.append(f"__rec=node,id={node},attr=13,data={unit or 'none'},parent=5")
        lines.append(f"__rec=node,id={node + 1},attr=10,data=65,parent={node if unit else 5}")
        lines.append(f"__rec=node,id={node + 2},attr=8,data={name},parent={node + 1}")
    for node, (name, parent) in PATHS.items():
        lines.append(f"__rec=node,id={node},attr=21,data={name}" + (f",parent={parent}" if parent else ""))
    for node in (None, *PATHS):
        found = [(52 + 3 * at, values[node]) for at, values in enumerate(metrics.values()) if node in values]
        if found:
            where = f"ref={node}," if node else ""
            attributes = "=".join(str(number) for number, _ in found)
            lines.append(f"__rec=ctx,{where}attr={attributes},data={'='.join(str(value) for _, value in found)}")
    path.write_text("\n".join([*lines, *GLOBALS]) + "\n")
    return path


INCLUSIVE = {None: 1.0, 40: 9.0, 41: 2.0, 42: 6.5}
EXCLUSIVE = {None: 1.0, 40: 0.5, 41: 2.0, 42: 6.5}


def scaled(values: dict[int | None, float], factor: float) -> dict[int | None, float]:
    return {node: value * factor for node, value in values.items()}


def only(path: Path) -> Measurement:
    (measurement,) = caliper.read(path)
    return measurement


@pytest.mark.parametrize(
    ("metrics", "units"),
    [
        ({"inclusive#sum#time.duration": INCLUSIVE}, {"inclusive#sum#time.duration": "sec"}),
        ({"sum#time.duration": EXCLUSIVE}, {"sum#time.duration": "sec"}),
        ({"sum#time.duration": scaled(EXCLUSIVE, 1e6)}, {"sum#time.duration": "usec"}),
        ({"inclusive#sum#time.duration.ns": scaled(INCLUSIVE, 1e9)}, {}),
        ({"sum#sum#time.duration.ns": scaled(EXCLUSIVE, 4e9)}, {}),  # summed over the 4 ranks
        ({"sum#time.duration": EXCLUSIVE}, {}),
        ({"sum#time.duration": scaled(EXCLUSIVE, 1e6)}, {}),
        ({"max#inclusive#sum#time.duration": INCLUSIVE, "sum#inclusive#sum#time.duration": scaled(INCLUSIVE, 3)}, {}),
    ],
)
def test_the_whole_runtime_is_ten_seconds_however_it_is_written(metrics: Any, units: Any, tmp_path: Path) -> None:
    assert only(cali(tmp_path / "a.cali", metrics, units)).runtime_s == pytest.approx(10.0)


def test_a_time_without_a_unit_is_noted(tmp_path: Path) -> None:
    fractions = only(cali(tmp_path / "a.cali", {"sum#time.duration": EXCLUSIVE}))
    whole = only(cali(tmp_path / "b.cali", {"sum#time.duration": scaled(EXCLUSIVE, 1e6)}))
    assert any("read as seconds" in note for note in fractions.notes)
    assert any("read as microseconds" in note for note in whole.notes)


def test_visits_are_not_taken_for_times(tmp_path: Path) -> None:
    metrics = {"min#time.duration": scaled(EXCLUSIVE, 0.1), "sum#papi.PAPI_TOT_INS": EXCLUSIVE}
    found = only(cali(tmp_path / "a.cali", metrics))
    assert found.runtime_s is None
    assert any("no runtime" in note for note in found.notes)


def test_papi_counts_are_totals_under_papi_names(tmp_path: Path) -> None:
    metrics = {
        "sum#time.duration": EXCLUSIVE,
        "sum#papi.PAPI_TOT_INS": scaled(EXCLUSIVE, 1000.0),
        "inclusive#sum#papi.PAPI_BR_INS": scaled(INCLUSIVE, 100.0),
        "avg#inclusive#sum#papi.PAPI_BR_MSP": scaled(INCLUSIVE, 1.0),
    }
    found = only(cali(tmp_path / "a.cali", metrics))
    # The last is a mean over 4 ranks, so the total is four times as much.
    assert found.events == pytest.approx({"PAPI_TOT_INS": 10000.0, "PAPI_BR_INS": 1000.0, "PAPI_BR_MSP": 40.0})
    assert to_run([found], input="1").counters["control_ratio"] == pytest.approx(0.1)


def test_globals_tell_what_ran_where(tmp_path: Path) -> None:
    found = only(cali(tmp_path / "a.cali", {"sum#time.duration": EXCLUSIVE}))
    run = to_run([found])
    assert (run.app, run.input, run.platform, run.ranks) == ("amg", "-n 120", "quartz", 4)
    assert run.started == "2023-12-21T06:41:58+00:00"
    assert run.source_tool == "caliper 2.11.0"
    assert "somebody" not in json.dumps(run.to_json())


def test_each_innermost_region_is_a_run_when_asked(tmp_path: Path) -> None:
    path = cali(tmp_path / "a.cali", {"sum#time.duration": EXCLUSIVE, "any#Reps": {41: 50.0, 42: 7.0}})
    setup, solve = caliper.read(path, regions="leaf")
    assert [setup.facts["app"], solve.facts["app"]] == ["setup", "solve"]
    assert [setup.runtime_s, solve.runtime_s] == [2.0, 6.5]
    assert solve.facts["region"] == "main/solve"
    assert solve.facts["region_metrics"] == {"any#Reps": 7.0}


def split(path: Path, **more: Any) -> Path:
    """Write json-split of two ranks; the second is the slower one."""
    rows = [[rank, node, seconds * (1 + rank), 5] for rank in (0, 1) for node, seconds in ((None, 1), (0, 9), (1, 2))]
    facts = {
        "data": rows,
        "columns": ["mpi.rank", "path", "inclusive#sum#time.duration", "sum#papi.PAPI_TOT_INS"],
        "column_metadata": [{"is_value": True}] * 4,
        "nodes": [{"label": "main", "column": "path"}, {"label": "a/b", "column": "path", "parent": 0}],
        "cluster": "ruby",
    }
    path.write_text(json.dumps(facts | more))
    return path


def test_json_split_takes_the_slowest_rank_and_sums_counts(tmp_path: Path) -> None:
    found = only(split(tmp_path / "a.json"))
    assert found.runtime_s == pytest.approx(20e-6)  # whole numbers: microseconds
    assert found.events == {"PAPI_TOT_INS": 30.0}
    assert (found.facts["ranks"], found.facts["platform"]) == (2, "ruby")
    (leaf,) = caliper.read(tmp_path / "a.json", regions="leaf")
    assert (leaf.facts["app"], leaf.runtime_s) == ("a/b", pytest.approx(4e-6))


@pytest.mark.parametrize("wrap", [False, True])
def test_records_of_json_read_alike(wrap: bool, tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"time": 1.5, "time (exc)": 1.5},
        {"path": "main", "time": "9.0", "time (exc)": 0.5},
        {"path": "main/solve", "time": 8.5, "time (exc)": 8.5, "PAPI_TOT_INS": 77},
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"records": records, "cluster": "ruby"} if wrap else records))
    assert caliper.reads(path)
    found = only(path)
    assert found.runtime_s == pytest.approx(10.5)  # "time" holds the regions inside where "time (exc)" stands beside it
    assert found.events == {"PAPI_TOT_INS": 77.0}


def test_records_with_inclusive_time_beside_do_not_count_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(
        json.dumps([{"path": "a", "time": 1.5, "time (inc)": 4.0}, {"path": "a/b", "time": 2.5, "time (inc)": 2.5}])
    )
    assert only(path).runtime_s == pytest.approx(4.0)


def test_a_region_of_one_name_in_two_places_is_one_run(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"path": "a/x", "time": 1.5}, {"path": "b/x", "time": 2.25}]))
    (found,) = caliper.read(path, regions="leaf")
    assert (found.facts["app"], found.facts["region"], found.runtime_s) == ("x", "a/x; b/x", 3.75)


def test_a_profile_with_no_regions_says_so_in_one_sentence(tmp_path: Path) -> None:
    for path in (
        cali(tmp_path / "a.cali", {"sum#time.duration": {None: 1.0}}),
        split(tmp_path / "a.json", data=[[0, None, 1.0, 5]]),
    ):
        with pytest.raises(ProfileFileError, match="with no regions, expected at least one"):
            caliper.read(path)


def test_a_cali_file_cut_short_anywhere_is_one_clear_error(tmp_path: Path) -> None:
    path = cali(tmp_path / "a.cali", {"sum#time.duration": EXCLUSIVE})
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(ProfileFileError, match="expected"):
            caliper.read(path)
        caliper.reads(path)


def test_json_cut_short_anywhere_is_one_clear_error(tmp_path: Path) -> None:
    path = split(tmp_path / "a.json")
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(ProfileFileError, match="expected a whole Caliper profile"):
            caliper.read(path)
        assert not caliper.reads(path)


@pytest.mark.parametrize(
    "change",
    [
        {"data": 1},
        {"nodes": None},
        {"data": [[1, 2]]},
        {"data": [[0, 99, 1.0, 5]]},
        {"data": [[0, "x", 1.0, 5]]},
        {"nodes": [{"label": "a", "parent": 3}]},
        {"nodes": [7]},
    ],
)
def test_damaged_json_split_is_one_clear_error(change: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ProfileFileError, match="expected a whole Caliper profile"):
        caliper.read(split(tmp_path / "a.json", **change))


@pytest.mark.parametrize(
    "line", ["nonsense", "__rec=ctx,ref=77", "__rec=node,id=x,attr=8", "__rec=ctx,attr=99,data=1", "__rec=node\\"]
)
def test_damaged_records_are_one_clear_error(line: str, tmp_path: Path) -> None:
    path = cali(tmp_path / "a.cali", {"sum#time.duration": EXCLUSIVE})
    path.write_text(path.read_text().replace("__rec=globals", f"{line}\n__rec=globals"))
    with pytest.raises(ProfileFileError, match="records that are damaged"):
        caliper.read(path)


@pytest.mark.parametrize("line", ["__rec=node,id=90,attr=8,data=x,parent=90", "__rec=node,id=090,attr=8,parent=90=3"])
def test_a_node_that_is_its_own_parent_is_refused_and_not_followed_for_ever(line: str, tmp_path: Path) -> None:
    path = cali(tmp_path / "a.cali", {"sum#time.duration": EXCLUSIVE})
    path.write_text(path.read_text().replace("__rec=globals", f"{line}\n__rec=globals"))
    with pytest.raises(ProfileFileError, match="node 90 that is its own parent"):
        caliper.read(path)


def test_a_missing_reader_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = cali(tmp_path / "a.cali", {"sum#time.duration": EXCLUSIVE})
    monkeypatch.setitem(sys.modules, "caliperreader", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'crossperf\[caliper\]'"):
        caliper.read(path)
    assert only(split(tmp_path / "a.json")).runtime_s is not None


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'[{"path": "a"}]', b"[1, 2]", b"\xff\xfe", b'{"data": [1]}'])
def test_other_files_are_not_taken_for_caliper(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    assert not caliper.reads(path)
    with pytest.raises(ProfileFileError, match="expected"):
        caliper.read(path)


def shared(name: str) -> Path:
    if not (SHARED / name).is_file():
        pytest.skip("the shared sample profiles are not beside this checkout")
    need_reader()
    return SHARED / name


def by_hand(path: Path, attribute: str) -> dict[tuple[str, ...], float]:
    """Return one metric of a .cali file by region path, taken apart here without any reader."""
    nodes: dict[str, tuple[str, str, str | None]] = {}
    found: dict[tuple[str, ...], float] = defaultdict(float)
    for line in path.read_text().splitlines():
        facts = dict(part.split("=", 1) for part in line.replace("\\,", ";").split(",") if "=" in part)
        if facts["__rec"] == "node":
            nodes[facts["id"]] = (facts["attr"], facts.get("data", ""), facts.get("parent"))
        elif facts["__rec"] == "ctx":
            values = dict(zip(facts["attr"].split("="), facts["data"].split("="), strict=True))
            number = next(id_ for id_, (kind, name, _) in nodes.items() if kind == "8" and name == attribute)
            path_: list[str] = []
            node = facts.get("ref", "").split("=")[0]
            while node in nodes:
                kind, name, parent = nodes[node]
                if nodes[kind][1] in ("region", "function", "annotation", "loop"):
                    path_.insert(0, name)
                node = parent or ""
            if number in values:
                found[tuple(path_)] += float(values[number])
    return found


@pytest.mark.parametrize("level", ["O0", "O3"])
def test_real_rajaperf_of_quartz_agrees_with_sums_by_hand(level: str) -> None:
    path = shared(f"caliper-rajaperf/quartz/BaseSeq_{level}_8388608_01.cali")
    exclusive = by_hand(path, "sum#sum#time.duration.ns")
    found = only(path)
    # Inclusive times of the outermost regions and exclusive times of all: two roads to the whole.
    assert found.runtime_s == pytest.approx(sum(exclusive.values()) * 1e-9, rel=1e-6)
    assert (found.facts["platform"], found.facts["input"]) == ("quartz", "8388608")
    leaves = {kernel.facts["app"]: kernel for kernel in caliper.read(path, regions="leaf")}
    assert len(leaves) == 67
    for names, nanoseconds in exclusive.items():
        if len(names) == 3:
            assert leaves[names[-1]].runtime_s == pytest.approx(nanoseconds * 1e-9)


def test_real_rajaperf_of_lassen_agrees_with_sums_by_hand() -> None:
    path = shared("caliper-rajaperf/lassen/Base_CUDA-block_128-8388608.cali")
    inclusive = by_hand(path, "max#inclusive#sum#time.duration")
    found = only(path)
    assert found.runtime_s == pytest.approx(inclusive[()] + inclusive["RAJAPerf",])
    assert any("668.9 s of the runtime were spent outside" in note for note in found.notes)
    leaves = {kernel.facts["app"]: kernel.runtime_s for kernel in caliper.read(path, regions="leaf")}
    assert leaves == {names[-1]: seconds for names, seconds in inclusive.items() if len(names) == 3}


def test_real_lulesh_agrees_with_sums_by_hand() -> None:
    path = shared("caliper-lulesh/lulesh-annotation-profile.cali")
    assert only(path).runtime_s == pytest.approx(sum(by_hand(path, "sum#time.duration").values()))
    split_path = shared("caliper-lulesh/lulesh-annotation-profile.json")
    facts = json.loads(split_path.read_text())
    by_rank: dict[int, float] = defaultdict(float)
    for _, rank, exclusive, _ in facts["data"]:
        by_rank[rank] += exclusive
    found = only(split_path)
    assert found.runtime_s == pytest.approx(max(by_rank.values()) * 1e-6)
    assert found.facts["ranks"] == 8


def by_node(**values: float) -> dict[int | None, float]:
    return {number: values[name] for number, (name, _) in PATHS.items() if name in values}


def test_what_rajaperf_says_of_its_kernels_becomes_counters_of_its_own(tmp_path: Path) -> None:
    # The region around the kernels repeats what was set last, so it must not count.
    metrics = {
        "inclusive#sum#time.duration": INCLUSIVE,
        "any#any#max#Bytes/Rep": by_node(main=999.0, setup=16.0, solve=100.0),
        "any#any#max#Flops/Rep": by_node(main=999.0, setup=0.0, solve=7.0),
        "any#any#max#Kernels/Rep": by_node(main=999.0, setup=1.0, solve=2.0),
        "any#any#max#Reps": by_node(main=999.0, setup=10.0, solve=5.0),
    }
    path = cali(tmp_path / "a.cali", metrics)
    ranks = 4
    whole = only(path)
    assert whole.counters["rajaperf_bytes"] == ranks * (16 * 10 + 100 * 5)
    assert whole.counters["rajaperf_flops"] == ranks * 7 * 5
    assert "kernel_launches" not in whole.counters  # nothing says that the variant is one for GPUs
    by_app = {each.facts["app"]: each.counters for each in caliper.read(path, regions="leaf")}
    assert by_app["setup"]["rajaperf_bytes"] == ranks * 160
    assert by_app["solve"]["rajaperf_bytes"] == ranks * 500


def test_top_down_shares_belong_to_one_region_and_not_to_a_mixture(tmp_path: Path) -> None:
    shares = by_node(main=0.5, setup=0.25, solve=0.75)
    path = cali(tmp_path / "a.cali", {"inclusive#sum#time.duration": INCLUSIVE, "any#topdown.retiring": shares})
    assert "topdown_retiring" not in only(path).counters
    by_app = {each.facts["app"]: each.counters for each in caliper.read(path, regions="leaf")}
    assert by_app["solve"]["topdown_retiring"] == 0.75


def test_regions_stay_apart_under_one_application(tmp_path: Path) -> None:
    path = cali(tmp_path / "a.cali", {"inclusive#sum#time.duration": INCLUSIVE})
    runs = import_runs("caliper", [path], regions="leaf", app="suite").runs
    assert sorted((run.app, run.input) for run in runs) == [("suite", "setup -n 120"), ("suite", "solve -n 120")]
    named = import_runs("caliper", [path], regions="leaf", app="suite", input="big").runs
    assert sorted(run.input for run in named) == ["setup big", "solve big"]
    assert sorted(run.app for run in import_runs("caliper", [path], regions="leaf").runs) == ["setup", "solve"]


def test_a_profile_of_activity_on_a_gpu_has_the_host_s_time_and_the_gpu_s(tmp_path: Path) -> None:
    records = [
        {"path": "main", "mpi.rank": 0, "scale#sum#cupti.host.duration": 2.0},
        {"path": "main", "mpi.rank": 1, "scale#sum#cupti.host.duration": 2.5},
        {
            "path": "main/solve",
            "mpi.rank": 0,
            "scale#sum#cupti.host.duration": 1.0,
            "scale#cupti.activity.duration": 0.5,
        },
        {
            "path": "main/solve",
            "mpi.rank": 1,
            "scale#sum#cupti.host.duration": 1.0,
            "scale#cupti.activity.duration": 0.7,
        },
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(records))
    found = only(path)
    assert found.runtime_s == 3.5
    assert found.counters["gpu_time_s"] == pytest.approx(1.2)


def test_sampled_call_paths_are_regions(tmp_path: Path) -> None:
    columns = ["count", "module#cali.sampler.pc", "mpi.rank", "source.function#callpath.address", "sum#time.duration"]
    nodes = [
        {"label": "libc", "column": columns[1]},
        {"label": "main", "column": columns[3]},
        {"label": "solve", "column": columns[3], "parent": 1},
    ]
    data = [[4, 0, 0, 1, 20_000.0], [2, 0, 0, 2, 10_000.0], [9, 0, 1, 2, 45_000.0]]
    metadata = [{"is_value": name not in (columns[1], columns[3])} for name in columns]
    path = tmp_path / "samples.json"
    path.write_text(json.dumps({"data": data, "columns": columns, "column_metadata": metadata, "nodes": nodes}))
    found = only(path)
    assert found.runtime_s == pytest.approx(0.045)
    assert found.facts["ranks"] == 2


def test_an_old_trace_is_called_a_trace_and_not_cut_short(tmp_path: Path) -> None:
    need_reader()
    lines = [
        *HEAD[:4],
        "__rec=node,id=39,attr=10,data=20,parent=3",
        "__rec=node,id=36,attr=8,data=cali.caliper.version,parent=39",
        "__rec=node,id=37,attr=10,data=65,parent=1",
        "__rec=node,id=38,attr=8,data=cali.snapshot.event.end,parent=37",
        "__rec=node,id=95,attr=36,data=1.5",
        "__rec=ctx,ref=95,attr=38,data=70",
    ]
    path = tmp_path / "old.cali"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ProfileFileError, match="found a trace of events"):
        caliper.read(path)
