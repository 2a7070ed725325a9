"""What a form brings becomes runs: a table, a profiler's file, or a text in any of four shapes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.datastructures import FormData

from crossperf.errors import CrossperfError, RunsTableError
from crossperf.serve.service import Service
from crossperf.serve.web.api import PERF_STAT, examples_of
from crossperf.serve.web.ask import FormError, combined, read_runs
from crossperf.serve.web.site import Pages, shown
from tests.serve.web.world import asked


@pytest.fixture(scope="module")
def site() -> Iterator[Pages]:
    service = Service.open()
    yield Pages(service)
    service.close()


RUN = {"app": "a", "input": "1", "platform": "epyc-1t", "runtime_s": 2.0, "counters": {"instructions": 5.0}}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(RUN),
        json.dumps(RUN, indent=2),
        json.dumps([RUN]),
        json.dumps({"runs": [RUN]}),
        f"{json.dumps(RUN)}\n{json.dumps(RUN | {'repeat': 1})}",
    ],
    ids=["object", "on lines", "list", "runs", "one a line"],
)
def test_a_text_is_read_in_any_of_its_shapes(site: Pages, text: str) -> None:
    runs, _ = read_runs(site, FormData([("text", text)]))
    assert {(run.app, run.platform, run.runtime_s) for run in runs} == {("a", "epyc-1t", 2.0)}


@pytest.mark.parametrize("text", ["", "   ", "hello", "{", '{"app": "a"}', "[]", "7", "[[[[[[", '{"runs": 3}'])
def test_a_text_that_holds_no_run_is_refused_in_a_sentence(site: Pages, text: str) -> None:
    with pytest.raises(CrossperfError, match="expected"):
        read_runs(site, FormData([("text", text)]))


def test_a_table_and_a_profile_are_read_by_the_ending_of_their_names(site: Pages) -> None:
    table = b"app,input,platform,runtime_s,counter.instructions\na,1,epyc-1t,2.0,5\n"
    (run,), _ = read_runs(site, FormData([("file", ("runs.csv", table))]))  # type: ignore[list-item]
    assert run.counters["instructions"] == 5.0
    names = [("import-app", "solver"), ("import-input", "n=1"), ("import-platform", "epyc-1t")]
    fields = FormData([("file", ("perf.txt", PERF_STAT.encode())), *names])  # type: ignore[list-item]
    (run,), _ = read_runs(site, fields)
    assert (run.app, run.runtime_s, run.counters["page_faults"]) == ("solver", 12.503112, 5300.0)


def test_neither_a_file_nor_a_text_is_refused(site: Pages) -> None:
    with pytest.raises(FormError, match="neither a file nor a text"):
        read_runs(site, FormData([("file", ("", b""))]))  # type: ignore[list-item]


def test_repeats_become_the_median_and_failed_runs_are_left_out() -> None:
    run = asked()
    repeats = [replace(run, runtime_s=own, counters={"instructions": own}) for own in (1.0, 9.0, 2.0)]
    failed = replace(run, status="out of memory", runtime_s=None)
    (cell,) = combined([*repeats, failed])
    assert (cell.runtime_s, cell.counters["instructions"]) == (2.0, 2.0)
    with pytest.raises(RunsTableError, match="no successful run"):
        combined([failed])


def test_each_endpoint_has_an_example_with_an_address_and_a_body_where_it_takes_one(site: Pages) -> None:
    for example in examples_of(site.service):
        assert "{" not in example.address
        assert (example.body is not None) == bool(example.endpoint.body)


def test_a_name_is_shown_without_what_turns_letters_and_not_at_length() -> None:
    assert shown("a\u202eb\x1b[2J") == r"a\u202eb\x1b[2J"
    assert len(shown("x" * 10_000)) <= 61
