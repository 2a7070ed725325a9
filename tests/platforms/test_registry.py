from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from crossperf.errors import CrossperfError, PlatformError
from crossperf.platforms import Gpu, MachineFacts, Platform, add, find, matching, name_for, read, set_fact

EPYC = Platform("epyc-2", "cpu", MachineFacts(cpu_model="AMD EPYC", cores=2, memory_bytes=2**34))
XEON = Platform("xeon", "cpu", MachineFacts(cpu_model="Xeon", cores=8, memory_bytes=2**35))


def test_platforms_are_read_as_they_were_added(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "platforms.json"
    assert read(path) == []
    add(path, EPYC)
    assert add(path, XEON) == [EPYC, XEON]
    assert read(path) == [EPYC, XEON]
    assert json.loads(path.read_text())["format"] == 1


def test_a_name_is_given_once_unless_it_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "platforms.json"
    add(path, EPYC)
    add(path, XEON)
    newer = Platform("epyc-2", "cpu", MachineFacts(cores=4))
    with pytest.raises(PlatformError, match="holds a platform 'epyc-2' already"):
        add(path, newer)
    assert read(path) == [EPYC, XEON]
    assert add(path, newer, overwrite=True) == [newer, XEON]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "found a list of 0, expected a file of platforms"),
        ('{"platforms": []}', "found no format, expected a file of platforms"),
        (
            '{"format": 2, "platforms": []}',
            "found format 2, expected a file of platforms of format 1. Upgrade",
        ),
        ('{"format": 1}', "no list 'platforms'"),
        ('{"format": 1, "platforms": [{"name": "a", "facts": {"x": NaN}}]}', "NaN is no number"),
        ('{"format": 1, "platforms": [{"name": "a"}, {"name": "a"}]}', "the name 'a' stands twice"),
        ('{"format": 1, "platforms": [{"name": 5}, 6, {"name": "b", "facts": 7}]}', "platform 1 .*platform 2 .*3"),
        (
            '{"format": 1, "platforms": [{"name": "a", "facts": {"cores": "two"}}]}',
            "at facts.cores: found 'two', expected a whole number",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence_and_stays_untouched(
    text: str, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "platforms.json"
    path.write_text(text)
    with pytest.raises(PlatformError, match=sentence) as raised:
        read(path)
    assert raised.value.path == str(path)
    with pytest.raises(PlatformError):
        add(path, EPYC, overwrite=True)
    assert path.read_text() == text


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CrossperfError, match=r"cannot be (made|read)"):
        add(tmp_path / "file" / "platforms.json", EPYC)
    with pytest.raises(PlatformError, match="cannot be read"):
        read(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlatformError, match="not UTF-8 text"):
        read(tmp_path / "binary")


def test_a_place_where_nothing_can_be_written_is_said() -> None:
    with pytest.raises(CrossperfError, match="cannot be written"):
        add("/proc/platforms.json", EPYC)


def test_a_wrong_name_gets_the_nearest() -> None:
    assert find([EPYC, XEON], "xeon") == XEON
    with pytest.raises(PlatformError, match="did you mean 'epyc-2'"):
        find([EPYC, XEON], "epyc2")
    with pytest.raises(PlatformError, match="None is known yet"):
        find([], "epyc2")


def test_the_machine_is_recognised_by_its_facts() -> None:
    facts = replace(EPYC.facts, memory_bytes=0.97 * 2**34, kernel="6.1")
    assert matching([XEON, EPYC], facts) == EPYC
    assert matching([XEON, EPYC], facts, platform_class="gpu") is None
    assert matching([XEON, EPYC], replace(facts, cores=4)) is None
    assert matching([XEON, EPYC], replace(facts, memory_bytes=2**36)) is None
    assert matching([XEON, EPYC], replace(facts, gpus=(Gpu("NVIDIA", "NVIDIA H200"),))) is None
    assert matching([Platform("by hand", "cpu", MachineFacts(more={"price_per_hour": 1.2}))], MachineFacts()) is None


def test_facts_are_set_by_name() -> None:
    platform = set_fact(set_fact(EPYC, "price_per_hour=1.25"), "queue = fast one")
    platform = set_fact(set_fact(platform, "racks=3"), "shared=true")
    assert platform.facts.more == {"price_per_hour": 1.25, "queue": "fast one", "racks": 3, "shared": True}
    assert "racks" not in set_fact(platform, "racks=").facts.more
    assert not EPYC.facts.more
    assert set_fact(EPYC, "cores=4").facts.cores == 4
    assert set_fact(EPYC, "cores=").facts.cores is None


@pytest.mark.parametrize("text", ["price", "=5", "a b=3", "price_per_hour=inf", "price_per_hour=nan", "cores=many"])
def test_a_fact_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(PlatformError, match="expected a"):
        set_fact(EPYC, text)


@pytest.mark.parametrize(
    ("model", "vendor", "cores", "name"),
    [
        ("AMD EPYC", "AMD", 2, "amd-epyc-2c"),
        ("AMD EPYC 7763 64-Core Processor", "AMD", 128, "amd-epyc-7763-128c"),
        ("Intel(R) Xeon(R) Platinum 8480+", "Intel", 112, "intel-xeon-platinum-8480-112c"),
        ("Intel(R) Xeon(R) Processor", "Intel", 16, "intel-xeon-16c"),
        ("12th Gen Intel(R) Core(TM) i7-1260P", "Intel", 12, "12th-gen-intel-core-i7-1260p-12c"),
        ("AMD Ryzen 7 5800X with Radeon Graphics", "AMD", 8, "amd-ryzen-7-5800x-8c"),
        ("POWER9", "IBM", 44, "ibm-power9-44c"),
    ],
)
def test_names_are_short_and_tell_the_machine(model: str, vendor: str, cores: int, name: str) -> None:
    assert name_for(MachineFacts(cpu_model=model, cpu_vendor=vendor, cores=cores)) == name


def test_a_machine_without_facts_still_has_a_name() -> None:
    assert name_for(MachineFacts()) == "unknown"
    assert name_for(MachineFacts(architecture="riscv64", cores=4)) == "riscv64-4c"
    assert name_for(MachineFacts(architecture="x86_64", cores=4), platform_class="gpu") == "x86-64-4c"
