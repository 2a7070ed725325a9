from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from crossperf.errors import ProfileFileError
from crossperf.importers import scorep
from crossperf.importers.measurement import to_run

#: Two trees of calls, of 3 and 1 nodes; two processes with two threads and one.
ANCHOR = """\
<?xml version="1.0" encoding="UTF-8"?>
<cube version="4.4">
<attr key="Creator" value="Score-P 8.0"/>
<metrics>
<metric id="0" type="EXCLUSIVE"><uniq_name>visits</uniq_name><dtype>UINT64</dtype><uom>occ</uom></metric>
<metric id="1" type="INCLUSIVE"><uniq_name>time</uniq_name><dtype>DOUBLE</dtype><uom>sec</uom></metric>
<metric id="2" type="EXCLUSIVE"><uniq_name>max_time</uniq_name><dtype>MAXDOUBLE</dtype><uom>sec</uom></metric>
<metric id="3" type="INCLUSIVE"><uniq_name>PAPI_TOT_INS</uniq_name><dtype>UINT64</dtype><uom>#</uom></metric>
<metric id="4" type="EXCLUSIVE"><uniq_name>io_bytes_read</uniq_name><dtype>UINT64</dtype><uom>bytes</uom></metric>
<metric id="5" type="EXCLUSIVE"><uniq_name>io_bytes_written</uniq_name><dtype>UINT64</dtype><uom>bytes</uom></metric>
</metrics>
<program>
<region id="2" mod="" begin="-1" end="-1"><name>stencil</name><role>artificial</role></region>
<region id="3" mod="a.c" begin="1" end="9"><name>main</name><role>function</role></region>
<cnode id="0" calleeId="2"><cnode id="1" calleeId="3"/><cnode id="2" calleeId="3"/></cnode>
<cnode id="3" calleeId="3"/>
</program>
<system>
<systemtreenode Id="0"><name>machine Linux</name><class>machine</class>
<systemtreenode Id="1"><name>node node9</name><class>node</class>
<locationgroup Id="0"><name>MPI Rank 0</name><rank>0</rank><type>process</type>
<location Id="0"><name>Master thread</name><rank>0</rank><type>thread</type></location>
<location Id="1"><name>OMP thread 1</name><rank>1</rank><type>thread</type></location></locationgroup>
<locationgroup Id="1"><name>MPI Rank 1</name><rank>1</rank><type>process</type>
<location Id="2"><name>Master thread</name><rank>0</rank><type>thread</type></location></locationgroup>
</systemtreenode></systemtreenode>
</system>
</cube>
"""
#: Rows by node, a value for each of the three threads.
TIME = {0: (4.0, 3.0, 5.5), 1: (1.0, 1.0, 1.0), 3: (0.5, 0.0, 0.25)}
INSTRUCTIONS = {0: (100, 200, 300), 2: (7, 8, 9), 3: (10, 20, 30)}
VISITS = {0: (1, 1, 1), 1: (5, 0, 6), 2: (2, 2, 2)}


def metric(
    rows: Mapping[int, Sequence[float]], letter: str, order: str = "<", packed: bool = False
) -> tuple[bytes, bytes]:
    """Return the two files of a metric."""
    index = b"CUBEX.INDEX" + struct.pack(f"{order}ihbi{len(rows)}i", 1, 0, 1, len(rows), *rows)
    values = [struct.pack(f"{order}{len(row)}{letter}", *row) for row in rows.values()]
    if not packed:
        return index, b"CUBEX.DATA" + b"".join(values)
    parts = [zlib.compress(row) for row in values]
    table = [number for part in parts for number in (0, 0, len(part))]
    return index, b"ZCUBEX.DATA" + struct.pack(f"{order}q{len(table)}q", len(parts), *table) + b"".join(parts)


def members(order: str = "<", packed: bool = False) -> dict[str, bytes]:
    files = {"anchor.xml": ANCHOR.encode()}
    for number, rows, letter in ((0, VISITS, "Q"), (1, TIME, "d"), (3, INSTRUCTIONS, "Q"), (4, {1: (64, 0, 1)}, "Q")):
        files[f"{number}.index"], files[f"{number}.data"] = metric(rows, letter, order, packed)
    return files


def written(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


@pytest.mark.parametrize(("order", "packed"), [("<", False), ("<", True), (">", False), (">", True)])
def test_totals_are_those_of_the_roots_or_of_all_nodes(tmp_path: Path, order: str, packed: bool) -> None:
    [measurement] = scorep.read(written(tmp_path / "profile.cubex", members(order, packed)))
    assert measurement.events == {"visits": 3 + 11 + 6, "PAPI_TOT_INS": 600 + 60}
    assert measurement.counters["io_bytes_read"] == 65
    assert "io_bytes_written" not in measurement.counters, "the archive holds no values of it"
    assert measurement.runtime_s == 5.75, "the third thread spent most, in both trees"


def test_processes_threads_and_names_are_told(tmp_path: Path) -> None:
    [measurement] = scorep.read(written(tmp_path / "profile.cubex", members()))
    run = to_run([measurement], input="i", platform="p")
    assert (run.app, run.host, run.ranks, run.threads) == ("stencil", "node9", 2, 2)
    assert run.counters["threads"] == 3
    assert run.counters["instructions"] == 660
    assert run.source_tool == "scorep Score-P 8.0"


def test_the_folder_of_an_experiment_is_read(tmp_path: Path) -> None:
    assert not scorep.reads(tmp_path)
    written(tmp_path / "profile.cubex", members())
    assert scorep.reads(tmp_path)
    assert scorep.read(tmp_path)[0].runtime_s == 5.75


def test_a_compressed_description_is_read(tmp_path: Path) -> None:
    files = members() | {"anchor.xml": gzip.compress(ANCHOR.encode())}
    assert scorep.read(written(tmp_path / "profile.cubex", files))[0].runtime_s == 5.75


def test_wrong_checksums_of_cube_4_8_are_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path / "profile.cubex", members())
    content = bytearray(path.read_bytes())
    content[148:156] = b"0000000\0"
    path.write_bytes(content)
    assert scorep.reads(path)
    assert scorep.read(path)[0].runtime_s == 5.75


def test_a_counter_that_ran_backwards_is_missing(tmp_path: Path) -> None:
    files = members()
    files["3.index"], files["3.data"] = metric({0: (2**64 - 5, 1, 1)}, "Q")
    [measurement] = scorep.read(written(tmp_path / "profile.cubex", files))
    assert measurement.events["PAPI_TOT_INS"] is None
    assert "PAPI_TOT_INS came out negative" in " ".join(measurement.notes)


def bomb() -> bytes:
    _, data = metric({0: (1, 2, 3)}, "Q", packed=True)
    part = zlib.compress(bytes(50_000_000))
    return data[:19] + struct.pack("<3q", 0, 0, len(part)) + part


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("anchor.xml", b"<cube><metrics>", "damaged"),
        ("anchor.xml", b'<!DOCTYPE cube [<!ENTITY a "aa">]><cube>&a;</cube>', "entity 'a' of its own"),
        ("anchor.xml", b"<cube></cube>", "no threads or no call tree"),
        ("3.index", b"CUBEX.INDEX", "damaged"),
        ("3.index", b"CUBEX.INDEX" + struct.pack("<ihbi", 1, 0, 1, 2**31 - 1), "instead of 2,147,483,647"),
        ("3.data", b"CUBEX.DATA" + bytes(7), "has 17 bytes instead of 82"),
        ("3.data", b"ZCUBEX.DATA" + struct.pack("<q", 2**62), "rows instead of 3"),
        ("1.data", metric(dict.fromkeys(TIME, (float("nan"), 1.0, 1.0)), "d")[1], "holds what is no number"),
        ("3.data", b"nothing of the kind", "does not start with CUBEX.DATA"),
    ],
)
def test_damage_is_an_error_in_a_sentence(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    with pytest.raises(ProfileFileError, match=why):
        scorep.read(written(tmp_path / "profile.cubex", members() | {name: content}))


def test_a_row_unpacks_to_no_more_than_its_threads_need(tmp_path: Path) -> None:
    files = members()
    files["3.index"], _ = metric({0: (1, 2, 3)}, "Q")
    files["3.data"] = bomb()
    with pytest.raises(ProfileFileError, match="a row unpacks to 25 bytes instead of 24"):
        scorep.read(written(tmp_path / "profile.cubex", files))


def test_a_description_that_unpacks_without_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorep, "_MOST_XML", 1 << 20)
    files = members() | {"anchor.xml": gzip.compress(b"<cube>" + b" " * (1 << 25))}
    with pytest.raises(ProfileFileError, match="unpacks to more than 1,048,576 bytes"):
        scorep.read(written(tmp_path / "profile.cubex", files))


def test_sizes_in_the_archive_never_go_past_its_end(tmp_path: Path) -> None:
    path = written(tmp_path / "profile.cubex", members())
    content = bytearray(path.read_bytes())
    content[124:136] = b"77777777777\0"
    path.write_bytes(content)
    assert not scorep.reads(path)
    with pytest.raises(ProfileFileError, match="goes past its end"):
        scorep.read(path)


def test_links_in_the_archive_are_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "profile.cubex"
    with tarfile.open(path, "w") as archive:
        link = tarfile.TarInfo("anchor.xml")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    assert not scorep.reads(path)
    with pytest.raises(ProfileFileError, match=r"no anchor\.xml in it"):
        scorep.read(path)


def test_another_archive_is_not_taken_for_one(tmp_path: Path) -> None:
    assert not scorep.reads(written(tmp_path / "photos.tar", {"a.txt": b"hello"}))
