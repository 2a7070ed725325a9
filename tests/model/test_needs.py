from __future__ import annotations

import pytest

from crossperf.model import needs


def test_a_fit_that_does_not_fit_into_memory_is_told_with_a_way_out() -> None:
    words = needs.advice("crossperf", 1_000_000, 60, 6, 8e9)
    assert words is not None
    assert words.startswith("crossperf on 1,000,000 cells takes about ")
    assert "8 GB are free: use --sample " in words
    cells = int(words.split("--sample ")[1].split(",")[0])
    assert needs.need_of("crossperf").bytes_for(cells, 60, 6) <= 8e9
    assert needs.advice("crossperf", cells, 60, 6, 8e9) != words


def test_where_not_even_a_small_part_fits_another_way_is_told() -> None:
    words = needs.advice("crossperf", 5_000, 60, 6, 0.5e9)
    assert words is not None
    assert "use another model" in words


def test_small_tables_need_no_words() -> None:
    assert needs.advice("crossperf", 8_000, 60, 6, 16e9) is None
    assert needs.advice("ridge", 200_000, 60, 6, None) is None


def test_the_memory_that_is_free_is_what_the_kernel_tells() -> None:
    free = needs.free_bytes()
    assert free is not None
    assert 1e6 < free < 1e15


@pytest.mark.parametrize("name", ["crossperf", "random-forest", "of my own"])
def test_the_need_grows_in_line_with_the_cells(name: str) -> None:
    few, more, most = (needs.need_of(name).bytes_for(cells, 50, 5) for cells in (10_000, 20_000, 40_000))
    assert most - more == pytest.approx(2 * (more - few))
