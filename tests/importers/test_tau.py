from __future__ import annotations

from pathlib import Path

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import tau
from crossperf.importers.measurement import to_run

METADATA = "".join(
    f"<attribute><name>{name}</name><value>{value}</value></attribute>"
    for name, value in {
        "Executable": "/home/ada/stencil",
        "Command Line": "./stencil -n 64 &lt;in&gt;",
        "Hostname": "node3",
        "CPU Type": "A made-up CPU",
        "Starting Timestamp": "1614611761048525",
        "TAU Version": "2.30",
    }.items()
)


def profile(metric: str, scale: float = 1.0, events: str = "") -> str:
    """Return one thread's file: 100 + 40 + 60 of a metric, and rows that repeat parts of it."""
    rows = [
        ('".TAU application"', 1, 1, 100, 200, "TAU_USER"),
        ('"int main(int, char **) C [{a.c} {1,1}]  "', 1, 2, 40, 100, "TAU_DEFAULT"),
        ('"MPI_Send()  "', 8, 0, 60, 60, "MPI"),
        (
            '".TAU application  => int main(int, char **) C [{a.c} {1,1}]  "',
            1,
            2,
            40,
            100,
            "TAU_CALLPATH | TAU_DEFAULT",
        ),
        ('"MPI_Send()   [ <size> = <100> ]  "', 8, 0, 60, 60, "TAU_PARAM | MPI"),
        ('"[SAMPLE] main [{a.c} {9}]"', 4, 0, 30, 30, "TAU_SAMPLE"),
    ]
    lines = [f"{len(rows)} templated_functions_MULTI_{metric}"]
    lines.append(f"# Name Calls Subrs Excl Incl ProfileCalls # <metadata>{METADATA}</metadata>")
    lines += [f'{name} {n} {s} {e * scale:g} {i * scale:g} 0 GROUP="{g}" ' for name, n, s, e, i, g in rows]
    return "\n".join([*lines, "0 aggregates", *([events] if events else [])]) + "\n"


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_the_runtime_is_that_of_the_slowest_thread(tmp_path: Path) -> None:
    folder = written(tmp_path, {"profile.0.0.0": profile("TIME", 1e4), "profile.1.0.0": profile("TIME", 3e4)})
    [measurement] = tau.read(folder)
    assert measurement.runtime_s == pytest.approx(200 * 3e4 * 1e-6)
    assert (measurement.facts["ranks"], measurement.facts["threads"]) == (2, 1)


def test_counts_are_added_up_over_threads_and_each_row_counts_once(tmp_path: Path) -> None:
    files = {}
    for metric, scale in (("TIME", 1e4), ("PAPI_TOT_INS", 1e3), ("PAPI_BR_INS", 50)):
        files |= {f"MULTI__{metric}/profile.0.0.{thread}": profile(metric, scale) for thread in range(3)}
    [measurement] = tau.read(written(tmp_path, files))
    assert measurement.events == {"PAPI_TOT_INS": 3 * 200e3, "PAPI_BR_INS": 3 * 200 * 50}
    run = to_run([measurement], platform="p")
    assert run.counters["control_ratio"] == pytest.approx(0.05)
    assert run.counters["threads"] == 3
    assert run.threads == 3


def test_program_arguments_and_machine_come_from_the_metadata(tmp_path: Path) -> None:
    [measurement] = tau.read(written(tmp_path, {"profile.0.0.0": profile("TIME")}))
    run = to_run([measurement], platform="p")
    assert (run.app, run.input, run.host) == ("stencil", "-n 64 <in>", "node3")
    assert run.started == "2021-03-01T15:16:01+00:00"
    assert measurement.version == "2.30"


def test_bytes_read_are_those_of_all_files_once(tmp_path: Path) -> None:
    events = '2 userevents\n# eventname numevents max min mean sumsqr\n"Bytes Read" 4 100 10 50 1\n'
    events += '"Bytes Read <file=&quot;a&quot;>" 4 100 10 50 1'
    folder = written(tmp_path, {f"profile.{rank}.0.0": profile("TIME", events=events) for rank in range(2)})
    [measurement] = tau.read(folder)
    assert measurement.counters["io_bytes_read"] == 2 * 4 * 50


def test_a_metric_that_some_threads_lack_is_missing(tmp_path: Path) -> None:
    files = {f"MULTI__TIME/profile.0.0.{thread}": profile("TIME") for thread in range(2)}
    files["MULTI__PAPI_TOT_INS/profile.0.0.0"] = profile("PAPI_TOT_INS")
    [measurement] = tau.read(written(tmp_path, files))
    assert measurement.events == {"PAPI_TOT_INS": None}
    assert "PAPI_TOT_INS is not known for all threads" in measurement.notes


def test_without_a_clock_there_is_no_runtime(tmp_path: Path) -> None:
    [measurement] = tau.read(written(tmp_path, {"profile.0.0.0": profile("PAPI_TOT_INS")}))
    assert measurement.runtime_s is None
    assert "no runtime" in measurement.notes[0]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        "\n".join(profile("TIME").splitlines()[:5]),
        profile("TIME").replace(" 60 60 0 GROUP", " many 60 0 GROUP"),
        profile("TIME").replace("6 templated", f"{10**9} templated"),
    ],
)
def test_a_file_cut_short_or_damaged_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(ProfileFileError, match=r"profile\.0\.0\.0"):
        tau.read(written(tmp_path, {"profile.0.0.0": text}))


def test_entities_in_the_metadata_are_not_expanded(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE metadata [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><metadata>&b;'
    text = profile("TIME").replace("<metadata>", bomb, 1)
    [measurement] = tau.read(written(tmp_path, {"profile.0.0.0": text}))
    assert measurement.facts["app"] is None
    assert measurement.runtime_s == pytest.approx(200e-6)


def test_a_folder_is_told_by_its_files(tmp_path: Path) -> None:
    assert not tau.reads(tmp_path)
    assert tau.reads(written(tmp_path, {"MULTI__TIME/profile.0.0.0": profile("TIME")}))
    (tmp_path / "profile.json").write_text("{}")
    assert not tau.reads(tmp_path / "profile.json")
    with pytest.raises(ProfileFileError, match=r"found no file profile\.N\.C\.T"):
        tau.read(tmp_path / "profile.json")
