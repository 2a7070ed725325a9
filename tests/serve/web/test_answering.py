"""The view of an answer: its sentences and rows say what the prediction says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from starlette.datastructures import QueryParams

from crossperf.errors import SettingsError
from crossperf.records import Familiarity
from crossperf.serve.service import Service
from crossperf.serve.web.answering import AnswerView, StrangerError, answered
from crossperf.serve.web.asking import PageQuestion
from crossperf.serve.web.machines import head_to_head


@pytest.fixture(scope="module")
def service() -> Service:
    return Service.open()


@pytest.fixture(scope="module")
def question(service: Service) -> PageQuestion:
    known = next(own for own in service.workloads(limit=2000) if own.fastest == "xeon-16t" and "epyc-1t" in own.sources)
    return PageQuestion(service.run_of(known.app, known.input, "epyc-1t"))


def test_the_headline_names_the_fastest_platform_and_how_much_faster_it_is(
    service: Service, question: PageQuestion
) -> None:
    view = answered(service, question)
    (prediction,) = service.predict([question.run]).predictions
    assert prediction.fastest == "xeon-16t"
    times = 1 / prediction.relative_time["xeon-16t"]
    assert view.headline == f"Take xeon-16t: about {times:.2g}× as fast as here"
    assert next(row.name for row in view.rows) == "xeon-16t"


def test_rows_are_in_the_order_of_their_times_and_say_which_one_is_here(
    service: Service, question: PageQuestion
) -> None:
    rows = list(answered(service, question).rows)
    assert [row.name for row in rows if row.here] == ["epyc-1t"]
    times = [float(row.relative.rstrip("×").replace(",", "")) for row in rows]
    assert times == sorted(times)


def test_toggles_narrow_the_platforms(service: Service, question: PageQuestion) -> None:
    one_thread = answered(service, replace(question, threads=1))
    assert {row.name for row in one_thread.rows} <= {"epyc-1t", "xeon-1t", "h200"}
    two = answered(service, replace(question, platforms=("xeon-4t",)))
    assert {row.name for row in two.rows} == {"xeon-4t", "epyc-1t"}
    chances = [two.prediction.chance_fastest[name] for name in ("xeon-4t", "epyc-1t")]
    assert sum(chances) == pytest.approx(1.0)


def test_a_gpu_is_offered_where_there_is_a_version_for_it(service: Service, question: PageQuestion) -> None:
    assert "h200" in {row.name for row in answered(service, replace(question, gpu="yes")).rows}
    without = answered(service, replace(question, gpu="no"))
    assert "h200" not in {row.name for row in without.rows}


def test_a_wider_level_gives_wider_ranges(service: Service, question: PageQuestion) -> None:
    widths = []
    for level in (0.5, 0.95):
        low, high = answered(service, replace(question, level=level)).asked.range_of("xeon-16t")
        widths.append(high / low)
    assert widths[0] < widths[1]


def test_a_run_from_a_strange_platform_asks_what_it_is_like(service: Service, question: PageQuestion) -> None:
    strange = replace(question, run=replace(question.run, platform="laptop"))
    with pytest.raises(StrangerError, match="most like it"):
        answered(service, strange)
    view = answered(service, replace(strange, here="epyc-1t"))
    assert "takes it for epyc-1t" in " ".join(view.caveats)
    assert not view.has_chances


def test_an_unknown_run_is_no_recommendation(service: Service, question: PageQuestion) -> None:
    view = answered(service, question)
    odd = replace(view.prediction, familiarity=Familiarity("unknown", 4.0, ("mem_ratio",)))
    unknown = AnswerView(**{**view.__dict__, "asked": replace(view.asked, prediction=odd)})
    assert unknown.headline.startswith("Can’t tell")
    assert unknown.next[0].what.startswith("Run it on")
    assert "url(#hatch)" in next(iter(unknown.rows)).bar


def test_a_link_and_its_fields_are_the_same_question(service: Service, question: PageQuestion) -> None:
    changed = replace(question, level=0.9, gpu="no", threads=4, platforms=("xeon-4t", "epyc-1t"))
    link = changed.link()
    back = PageQuestion.read(QueryParams(link.partition("?")[2]), service)
    assert back.link() == link
    assert replace(back, run=changed.run) == changed


@pytest.mark.parametrize("text", ["level=2", "gpu=maybe", "threads=many", "level=nan"])
def test_a_toggle_that_is_none_is_refused(service: Service, question: PageQuestion, text: str) -> None:
    with pytest.raises(SettingsError, match="found"):
        PageQuestion.read(QueryParams(f"{question.link().partition('?')[2]}&{text}"), service)


def test_shares_of_a_pair_sum_to_one(service: Service) -> None:
    shares = head_to_head(service.model().model.cells)
    for name, row in shares.items():
        for other, own in row.items():
            assert own.share is not None
            assert own.share + (shares[other][name].share or 0.0) == pytest.approx(1.0)
            assert own.workloads == shares[other][name].workloads
