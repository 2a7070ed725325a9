"""The page's tables against numbers worked out by hand and against a second road to them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crossperf.dataset.cells import TableFacts
from crossperf.display import CellView, TableView
from crossperf.evaluation import metrics
from crossperf.evaluation.heldout import HeldOut, HeldOutPredictions
from crossperf.evaluation.metrics import ConstantAnswer
from crossperf.evaluation.result import Evaluation
from crossperf.evaluation.scores import ModelScores, Scoreboard, heading
from crossperf.records import Run
from crossperf.report import sentences, tables
from crossperf.runs import from_runs, summary
from tests.report.conftest import HOSTILE


def column(table: TableView, name: str) -> list[CellView]:
    place = [column.name for column in table.columns].index(name)
    return [row[place] for row, reference in table.all_rows if not reference]


@pytest.fixture
def by_hand() -> HeldOut:
    """One workload of `a`, right on both platforms; one of `b`, a factor of 4 off on one and picked wrongly."""
    return HeldOut(
        platforms=("p", "q"),
        platform_classes=("cpu", "gpu"),
        workloads=(("a", "1"), ("b", "1")),
        log_time_wp=np.log([[1.0, 2.0], [4.0, 2.0]]),
        workload_n=np.array([0, 1]),
        source_n=np.array([0, 0]),
        fold_n=np.array([0, 0]),
        predictions={
            "m": HeldOutPredictions(np.log([[1.0, 2.0], [1.0, 2.0]])),
            "n": HeldOutPredictions(np.log([[3.0, 6.0], [1.0, 0.5]])),
        },
    )


def test_errors_and_picks_of_applications_are_those_worked_out_by_hand(by_hand: HeldOut) -> None:
    table = tables.applications(by_hand)
    assert [cell.text for cell in column(table, "application")] == ["b", "a"]
    # Both were profiled on p. b takes half as long on q, and twice as long as predicted by m: off by 4 on q.
    assert [cell.value for cell in column(table, "m")] == pytest.approx([4.0, 1.0])
    assert [cell.value for cell in column(table, "n")] == pytest.approx([1.0, 1.0])
    assert [cell.text for cell in column(table, "right picks")] == ["0%", "100%"]
    assert [cell.text for cell in column(table, "lost by picks")] == ["100.0%", "0.0%"]
    assert [cell.value for cell in column(table, "cells")] == [1, 1]


def test_errors_of_applications_agree_with_the_metric_on_their_rows(ordinary: Evaluation) -> None:
    held_out = ordinary.held_out
    assert held_out is not None
    table = tables.applications(held_out)
    shown = dict(zip([cell.text for cell in column(table, "application")], column(table, "crossperf"), strict=True))
    for number, app in enumerate(held_out.apps):
        rows_n = held_out.app_n == number
        truth_np, predicted_np = held_out.log_relative_time_np, held_out.predictions["crossperf"].predicted_np
        scores = metrics.score(truth_np[rows_n], predicted_np[rows_n], held_out.source_n[rows_n])
        assert shown[app].value == pytest.approx(scores.typical_factor)
    assert HOSTILE in shown
    assert sum(int(cell.value or 0) for cell in column(table, "cells")) == len(held_out)


def test_a_platform_that_was_not_measured_counts_nowhere(by_hand: HeldOut) -> None:
    gap = replace(by_hand, log_time_wp=np.array([[0.0, np.log(2.0)], [np.log(4.0), np.nan]]))
    table = tables.applications(gap)
    assert dict(zip(("a", "b"), sorted(cell.value for cell in column(table, "m")), strict=True)) == {"a": 1.0, "b": 1.0}


def test_more_applications_than_a_table_holds_are_counted_in_its_caption(by_hand: HeldOut) -> None:
    apps = 350
    many = replace(
        by_hand,
        workloads=tuple((f"app{a:03}", "1") for a in range(apps)),
        log_time_wp=np.tile(np.log([[1.0, 2.0]]), (apps, 1)),
        workload_n=np.arange(apps),
        source_n=np.zeros(apps, np.int64),
        fold_n=np.zeros(apps, np.int64),
        predictions={"m": HeldOutPredictions(np.log(np.column_stack([np.ones(apps), np.linspace(2.0, 9.0, apps)])))},
    )
    table = tables.applications(many)
    assert "200 of 350 applications" in table.caption
    assert table.rows[0][0] == "app349"
    assert len(table.rows) == tables.MOST_APPS


def test_the_best_of_each_column_is_marked_and_a_gap_is_not(ordinary: Evaluation) -> None:
    ridge = replace(ordinary.scores["ridge"], order_auc=None)
    board = Scoreboard({**ordinary.scores.models, "ridge": ModelScores(ridge)}, ordinary.scores.noise_ceiling)
    table = tables.scores(replace(ordinary, scores=board))
    for name in (column.name for column in table.columns if column.name[-1] in "↑↓"):
        cells = column(table, name)
        values = [cell.value for cell in cells if cell.value is not None]
        assert {cell.value for cell in cells if cell.best} == {max(values) if "↑" in name else min(values)}
    gap = column(table, heading("order_auc"))[list(board).index("ridge")]
    assert (gap.text, gap.value, gap.best) == ("–", None, False)


def test_the_noise_ceiling_and_constant_answers_stand_beside(ordinary: Evaluation) -> None:
    table = tables.scores(ordinary)
    ceiling, always = (row for row, reference in table.all_rows if reference)
    names = [column.name for column in table.columns]
    assert ceiling[names.index(heading("typical_factor"))].value == ordinary.scores.noise_ceiling.typical_factor
    assert always[names.index(heading("top1"))].value == ordinary.constant.fastest_share
    assert always[names.index(heading("same_order"))].value == ordinary.constant.order_share


def test_failed_runs_and_platforms_not_chosen_are_named(ordinary: Evaluation) -> None:
    assert "1 run failed with status 'out of memory'." in sentences.left_out(ordinary)
    fewer = replace(ordinary.table, platforms=ordinary.table.platforms[1:])
    dropped = ordinary.table.platforms[0]
    assert any(dropped in sentence for sentence in sentences.left_out(replace(ordinary, table=fewer)))


def test_a_table_without_its_facts_leaves_nothing_out() -> None:
    bare = TableFacts("runs.csv", platforms=("a", "b"))
    none = Evaluation(bare, "workload", 5, 0, Scoreboard(), ConstantAnswer("a", 1.0))
    assert sentences.left_out(none) == ["No row was left out."]


def test_counters_with_gaps_are_listed_with_their_places(ordinary: Evaluation) -> None:
    assert ordinary.table.info is not None
    table = tables.missing(ordinary.table.info)
    where = {name: row[3].text for row, _ in table.all_rows for name in row[0].text.split(", ")}
    assert set(where) == {"warp_blocks", "bytes_host_to_gpu", "bytes_gpu_to_host", "page_faults"}
    assert "gpu-a: 100%" in where["page_faults"]
    assert "cpu" not in where["page_faults"]


def test_counters_with_the_same_gaps_stand_in_one_row_and_a_single_run_is_told_as_such() -> None:
    runs = [
        Run(app, size, platform, 1.0, counters={} if (app, platform) == ("a", "p1") else {"x": 1.0, "y": 2.0, "z": z})
        for app in "abcdef"
        for size in "12"[: 1 + (app != "a")]
        for platform, z in (("p1", 3.0), ("p2", None))
    ]
    table = tables.missing(summary.info(from_runs(runs)))
    assert [[cell.text for cell in row] for row, _ in table.all_rows] == [
        ["x, y", "2", "1", "p1: 1 run"],
        ["z", "1", "2", "p1: 1 run, p2: 100%"],
    ]


def test_of_many_platforms_with_gaps_the_least_and_the_greatest_share_are_told() -> None:
    runs = [
        Run("a", str(size), f"p{p:02}", 1.0, counters={"x": 1.0} if size > p % 3 else {"y": 1.0})
        for p in range(12)
        for size in range(5)
    ]
    table = tables.missing(summary.info(from_runs(runs)))
    assert [row[3].text for row, _ in table.all_rows] == ["20% to 60% on 12 platforms", "40% to 80% on 12 platforms"]


def test_a_gap_that_is_the_same_on_each_platform_is_told_once() -> None:
    runs = [Run("a", str(i), p, 1.0, counters={"x": 1.0} if i else {"y": 1.0}) for p in "pq" for i in range(4)]
    table = tables.missing(summary.info(from_runs(runs)))
    assert [row[3].text for row, _ in table.all_rows] == ["1 run on each", "75% on each"]
