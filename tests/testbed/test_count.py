"""Counting whole processes of the testbed: a small application under qemu, and array programs as forks."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from crossperf.campaign import log, spec
from crossperf.collect.qemu import QemuBackend
from crossperf.importers.measurement import Measurement

TESTBED = Path(__file__).parents[2] / "testbed"
sys.path[:0] = [str(TESTBED / "apps"), str(TESTBED)]

apps: Any = importlib.import_module("apps")
run: Any = importlib.import_module("run")
count: Any = importlib.import_module("count")

SETS = list(spec.read(TESTBED / "apps" / "campaign.toml").counts.values())


def needs_qemu() -> None:
    if why_not := QemuBackend({}).why_not():
        if os.environ.get("CI") == "true":
            pytest.fail(why_not)
        pytest.skip(why_not)


def test_both_machines_are_counted_in_one_execution_and_differ_in_their_caches_alone(tmp_path: Path) -> None:
    needs_qemu()
    app = apps.App(
        "gzip", "test", [], ["/usr/bin/gzip"], ["gzip", "-nc", "{inputs}/{file}"], [{"file": ["text-20.txt"]}]
    )
    executions = count.Applications(run.Place(tmp_path, None), {"gzip": app}, {})
    lines = count.Counting(count.Emulator(SETS), executions).count(spec.Work("gzip", "text-20.txt"))
    for line in lines:
        log.add(tmp_path / log.COUNTS, line)
    epyc, xeon = log.counted(tmp_path)
    assert (epyc.counts, xeon.counts, epyc.error, xeon.error) == ("epyc", "xeon", None, None)
    different = {name for name in epyc.events if epyc.events[name] != xeon.events[name]}
    assert different <= {"qemu.d1_misses", "qemu.ll_misses"}
    assert (xeon.events["qemu.d1_misses"] or 0) < (epyc.events["qemu.d1_misses"] or 0)
    # gzip reads its input once, and every process has page faults before main.
    assert (epyc.events["qemu.bytes_read"] or 0) >= (tmp_path / "text-20.txt").stat().st_size
    assert (epyc.events["qemu.startup_page_faults"] or 0) > 10


def test_an_application_whose_output_differs_under_qemu_is_an_error(tmp_path: Path) -> None:
    needs_qemu()
    app = apps.App("echo", "test", [], ["/bin/echo"], ["echo", "{word}"], [{"word": ["hello"]}])
    executions = count.Applications(run.Place(tmp_path, None), {"echo": app}, {"echo word=hello": "another"})
    lines = count.Counting(count.Emulator(SETS), executions).count(spec.Work("echo", "word=hello"))
    assert all("different under qemu" in line["error"] for line in lines)


def test_what_is_counted_is_not_counted_again(tmp_path: Path) -> None:
    campaign = spec.read(TESTBED / "apps" / "campaign.toml")
    first = campaign.works[0]
    log.add(tmp_path / log.COUNTS, {"counts": "epyc", "workload": first.workload, "input": first.input})
    assert count.left(campaign, tmp_path) == list(campaign.works[1:])


def test_parts_of_a_process_add_up_to_one_thread() -> None:
    start = Measurement(
        "qemu", {"qemu.loads": 5.0, "qemu.startup_page_faults": 7.0, "qemu.instructions_of_threads": 9.0}
    )
    part = Measurement(
        "qemu", {"qemu.loads": 2.0, "qemu.startup_page_faults": None, "qemu.instructions_of_threads": 3.0}
    )
    whole = count.added(start, part).events
    assert (whole["qemu.loads"], whole["qemu.startup_page_faults"]) == (7.0, 7.0)
    assert whole["qemu.threads"] == 1.0
    assert whole["qemu.busiest_thread"] == whole["qemu.instructions_of_threads"] == 12.0


def test_what_a_later_part_counts_again_is_taken_from_the_first() -> None:
    start = Measurement("qemu", {"qemu.footprint_bytes": 9.0, "qemu.loads": 5.0, "qemu.startup_instructions": None})
    less = count.without(start, {"qemu.footprint_bytes": 6.0}).events
    assert less == {"qemu.footprint_bytes": 3.0, "qemu.loads": 5.0, "qemu.startup_instructions": None}


def test_forks_answer_with_the_process_of_each_input() -> None:
    pytest.importorskip("torch", reason="the array programs are written in PyTorch")
    line = [sys.executable, str(TESTBED / "arrays" / "forks.py"), "--threads", "1"]
    asked = "sorting rows=5 columns=40\nsorting rows=5\n\nnbody bodies=20 steps=3\n"
    done = subprocess.run(line, input=asked, capture_output=True, text=True, check=True, timeout=120)
    answers = [json.loads(answer) for answer in done.stdout.splitlines()]
    assert [answer["code"] for answer in answers] == [0, 2, 0, 0]
    assert len({answer["pid"] for answer in answers}) == 4
    assert "the input has no columns" in done.stderr


def test_the_chosen_array_programs_have_five_of_their_inputs() -> None:
    everything = spec.read(TESTBED / "arrays" / "campaign.toml")
    known = {work.line for work in spec._works(TESTBED / "arrays" / "arrays.toml", [])}
    assert {work.line for work in everything.works} <= known
    names = [work.workload for work in everything.works]
    assert len(set(names)) >= 10
    assert {names.count(name) for name in names} == {5}


def test_applications_are_counted_as_such_whatever_path_their_campaign_is_read_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(TESTBED.parent)
    mode = next(iter(spec.read(Path("testbed/apps/campaign.toml")).modes.values()))
    given = argparse.Namespace(inputs=Path("inputs"), bundle=None)
    with count.executions(mode, given) as by:
        assert isinstance(by, count.Applications)
