"""Two tables side by side: what changed, and whether they tell the same story."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from crossperf.errors import DatasetError, SettingsError
from crossperf.evaluation.compare import compare
from crossperf.records import Run
from crossperf.report.figures.changes import changes

FIRST = {("a", "p"): 1.0, ("a", "q"): 2.0, ("b", "p"): 3.0, ("b", "q"): 1.0, ("c", "p"): 5.0, ("c", "q"): 10.0}


def runs(times: dict[tuple[str, str], float]) -> list[Run]:
    return [Run(app, "1", platform, s, counters={"x": 1.0}) for (app, platform), s in times.items()]


def test_a_platform_that_became_twice_as_fast_has_that_bias_and_nothing_besides() -> None:
    second = {(app, platform): s / 2 if platform == "q" else s for (app, platform), s in FIRST.items()}
    p, q = compare(runs(FIRST), runs(second)).platforms
    assert (p.name, p.workloads, p.bias, p.typical_factor) == ("p", 3, 1.0, 1.0)
    assert q.bias == pytest.approx(0.5)
    assert q.typical_factor == pytest.approx(2.0)
    assert q.unbiased_factor == pytest.approx(1.0)


def test_agreement_is_that_of_relative_times_order_and_fastest() -> None:
    second = FIRST | {("a", "q"): 0.5}  # a is now faster on q; its ratio q / p goes from 2 to 0.5
    own = compare(runs(FIRST), runs(second)).agreement
    # Six cells, one other platform each: log error log 4 for the two of a, 0 for the rest.
    assert own.typical_factor == pytest.approx(4 ** (2 / 6))
    assert own.top1 == pytest.approx(4 / 6)
    assert own.same_order == pytest.approx(4 / 6)


def test_the_cell_that_changed_most_comes_first_with_both_times() -> None:
    result = compare(runs(FIRST), runs(FIRST | {("c", "q"): 1.0}))
    first = result.most_changed[0]
    assert (first.app, first.platform) == ("c", "q")
    assert (first.first_s, first.second_s) == (pytest.approx(10.0), pytest.approx(1.0))
    assert first.ratio == pytest.approx(0.1)


def test_cells_that_only_one_table_has_are_counted_and_left_out() -> None:
    second = {cell: s for cell, s in FIRST.items() if cell != ("b", "q")} | {("d", "p"): 1.0}
    result = compare(runs(FIRST), runs(second))
    assert (result.cells, result.only_in_first, result.only_in_second) == (5, 1, 1)


def test_tables_of_one_platform_compare_without_an_order() -> None:
    one = {cell: s for cell, s in FIRST.items() if cell[1] == "p"}
    result = compare(runs(one), runs(one))
    assert result.agreement.typical_factor is None
    assert [platform.name for platform in result.platforms] == ["p"]


def test_tables_without_a_common_platform_are_refused_with_both_names() -> None:
    other = {(app, "z"): s for (app, platform), s in FIRST.items() if platform == "p"}
    with pytest.raises(DatasetError, match=r"found z, expected a platform of .*p, q"):
        compare(runs(FIRST), runs(other))


def test_the_figure_tells_each_platform_and_how_many_cells(tmp_path: Path) -> None:
    drawn = changes(compare(runs(FIRST), runs({cell: 2 * s for cell, s in FIRST.items()})))
    assert "6 cells" in drawn.caption
    assert any(tooltip.text.startswith("p: bias 2.00x") for tooltip in drawn.tooltips)
    drawn.save(tmp_path / "changes.svg")
    assert (tmp_path / "changes.svg").stat().st_size > 1000


def test_a_table_and_its_noisy_copy_differ_by_what_was_added() -> None:
    rng = np.random.default_rng(3)
    times = {(f"app{i}", platform): float(rng.lognormal()) for i in range(400) for platform in "pq"}
    sigma = 0.1
    noisy = {cell: s * float(np.exp(rng.normal(0, sigma))) for cell, s in times.items()}
    own = compare(runs(times), runs(noisy)).agreement
    # The difference of two independent errors is normal with sigma * sqrt 2; its mean absolute value is known.
    assert own.typical_factor == pytest.approx(np.exp(sigma * np.sqrt(2) * np.sqrt(2 / np.pi)), rel=0.02)


def test_a_platform_that_one_of_the_tables_lacks_is_named() -> None:
    with pytest.raises(SettingsError, match=r"platforms: found 'r', expected some of p, q\. Both tables must have it"):
        compare(runs(FIRST), runs(FIRST), platforms=["p", "r"])
