"""Features and their columns: matched by name, known by kind, and never apart."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from crossperf.dataset import Columns, Dataset, Features
from crossperf.errors import SettingsError

COLUMNS = Columns.of(["uses_avx", "instructions"], ["p", "q"])


@pytest.fixture
def features() -> Features:
    """Three cells, of which the middle one was measured on q and lacks its instructions."""
    counters_nc = np.array([[1.0, 8.0], [0.0, np.nan], [1.0, 6.0]])
    made = Features.of(counters_nc, np.array([2.0, 4.0, 3.0]), np.array([0, 1, 0]), COLUMNS)
    return Features(
        made.values_nf, made.columns, np.array([5, 5, 6]), np.array([0, 0, 1]), np.array([True, False, True])
    )


def test_columns_know_their_kinds_by_name_alone() -> None:
    assert COLUMNS.names == ("uses_avx", "instructions", "runtime_s", "source=p", "source=q")
    assert COLUMNS.kinds == ("counter", "counter", "runtime", "source", "source")
    assert COLUMNS.counters == ("uses_avx", "instructions")
    assert COLUMNS.sources == ("p", "q")
    np.testing.assert_array_equal(COLUMNS.mask("source"), [False, False, False, True, True])
    np.testing.assert_array_equal(COLUMNS.mask("counter", "runtime"), [True, True, True, False, False])
    assert Columns.named(COLUMNS.names) == COLUMNS


def test_columns_without_names_are_counters_and_know_no_source() -> None:
    columns = Columns.unnamed(3)
    assert columns.names == ("x0", "x1", "x2")
    assert columns.counters == columns.names
    assert columns.sources == ()
    assert columns.derived == columns


def test_rates_are_counters_over_seconds_under_names_of_their_own(features: Features) -> None:
    rated = features.derived()
    assert rated.columns.names == (*COLUMNS.names, "uses_avx/s", "instructions/s")
    assert rated.columns.kinds[-2:] == ("rate", "rate")
    assert rated.columns.counters == COLUMNS.counters
    np.testing.assert_array_equal(rated.column("instructions/s"), [4.0, np.nan, 2.0])
    np.testing.assert_array_equal(rated.values_nf[:, : len(COLUMNS)], features.values_nf)
    np.testing.assert_array_equal(rated.workload_n, features.workload_n)


def test_a_rate_over_no_time_counts_as_not_measured(features: Features) -> None:
    values_nf = features.values_nf.copy()
    values_nf[:2, COLUMNS.names.index("runtime_s")] = [0.0, np.nan]
    rated = Features(values_nf, COLUMNS).derived()
    np.testing.assert_array_equal(np.isnan(rated.column("uses_avx/s")), [True, True, False])


def test_the_source_is_read_from_its_columns_and_not_from_other_zeros_and_ones(features: Features) -> None:
    np.testing.assert_array_equal(features.source_n, [0, 1, 0])
    unmarked = features.values_nf.copy()
    unmarked[0, COLUMNS.mask("source")] = 0.0
    unmarked[1, COLUMNS.mask("source")] = np.nan
    np.testing.assert_array_equal(Features(unmarked, COLUMNS).source_n, [-1, -1, 0])
    np.testing.assert_array_equal(Features(np.eye(3), Columns.unnamed(3)).source_n, [-1, -1, -1])


def test_columns_are_matched_by_name_whatever_their_order(features: Features) -> None:
    order = np.random.default_rng(3).permutation(len(COLUMNS))
    turned = Features(
        features.values_nf[:, order], Columns.named([COLUMNS.names[i] for i in order]), features.workload_n
    )
    matched = turned.matched(COLUMNS)
    assert matched.columns == COLUMNS
    np.testing.assert_array_equal(matched.values_nf, features.values_nf)
    np.testing.assert_array_equal(matched.workload_n, features.workload_n)


def test_columns_that_a_model_does_not_know_are_left_out(features: Features) -> None:
    wider = Features(np.column_stack([np.ones(3), features.values_nf]), Columns.named(["cycles", *COLUMNS.names]))
    np.testing.assert_array_equal(wider.matched(COLUMNS).values_nf, features.values_nf)


def test_a_missing_column_is_named_with_what_to_do(features: Features) -> None:
    fewer = Features(features.values_nf[:, 1:], Columns.named(["instruction", *COLUMNS.names[2:]]))
    with pytest.raises(SettingsError, match=r"^X: found no column 'uses_avx'.*Add it, NaN where") as caught:
        fewer.matched(COLUMNS)
    assert caught.value.facts["argument"] == "X"
    assert caught.value.facts["columns"] == ["uses_avx", "instructions"]


def test_a_matrix_without_names_is_taken_by_position(features: Features) -> None:
    matched = Features.read(features.values_nf).matched(COLUMNS)
    assert matched.columns == COLUMNS
    np.testing.assert_array_equal(matched.source_n, features.source_n)


def test_a_bare_matrix_of_another_width_is_refused(features: Features) -> None:
    with pytest.raises(SettingsError, match="X: found 4 columns without names, expected the 5"):
        Features.read(features.values_nf[:, :4]).matched(COLUMNS)


@pytest.mark.parametrize("rows", [1, np.int64(1), slice(1, 2), [1], np.array([1]), np.array([False, True, False])])
def test_indexing_keeps_rows_names_and_groups_together(features: Features, rows: object) -> None:
    part = features[rows]
    assert part.columns == COLUMNS
    assert part.shape == (1, 5)
    np.testing.assert_array_equal(part.values_nf[0], features.values_nf[1])
    assert part.workload_n is not None and part.app_n is not None and part.cpu_n is not None
    assert (part.workload_n.tolist(), part.app_n.tolist(), part.cpu_n.tolist()) == ([5], [0], [False])


def test_groups_that_are_not_known_stay_so(features: Features) -> None:
    part = Features(features.values_nf, COLUMNS)[[0, 2]]
    assert part.workload_n is None and part.app_n is None and part.cpu_n is None


def test_numpy_and_scikit_learn_see_the_matrix(features: Features) -> None:
    from sklearn.utils import _safe_indexing
    from sklearn.utils.validation import _num_samples

    np.testing.assert_array_equal(np.asarray(features), features.values_nf)
    copied = np.array(features, copy=True)
    copied[0, 0] = 99.0
    assert features.values_nf[0, 0] == 1.0
    assert _num_samples(features) == 3
    part = _safe_indexing(features, np.array([2, 0]))
    assert isinstance(part, Features)
    np.testing.assert_array_equal(part.workload_n, [6, 5])


def test_a_frame_brings_names_and_numbers_back(toy_data: Dataset) -> None:
    frame = toy_data.X.to_frame()
    assert tuple(frame.columns) == toy_data.X.columns.names
    again = Features.read(frame)
    assert again.columns == toy_data.X.columns
    np.testing.assert_array_equal(again.values_nf, toy_data.X.values_nf)


def test_a_polars_frame_is_read_by_name_too(features: Features) -> None:
    frame = pl.DataFrame(dict(zip(COLUMNS.names, features.values_nf.T.tolist(), strict=True)))
    read = Features.read(frame)
    assert read.columns == COLUMNS
    np.testing.assert_array_equal(read.values_nf, features.values_nf)


def test_features_print_in_a_few_lines(toy_data: Dataset) -> None:
    lines = repr(toy_data.X).splitlines()
    assert len(lines) <= 10
    assert "48 cells x 22 columns" in lines[0]
    assert "cpu-a" in lines[-1]


def test_events_are_set_against_the_runtime_and_the_instructions() -> None:
    columns = Columns.of(["instructions", "event.valgrind.Dr"], ["p"])
    features = Features.of(np.array([[8.0, 2.0], [np.nan, 2.0]]), np.array([4.0, 4.0]), np.array([0, 0]), columns)
    derived = features.derived()
    assert columns.events == ("event.valgrind.Dr",)
    assert derived.columns.names[-3:] == ("instructions/s", "event.valgrind.Dr/s", "event.valgrind.Dr/instruction")
    np.testing.assert_array_equal(derived.column("event.valgrind.Dr/s"), [0.5, 0.5])
    np.testing.assert_array_equal(derived.column("event.valgrind.Dr/instruction"), [0.25, np.nan])


def test_columns_can_be_left_out_by_name() -> None:
    assert COLUMNS.without({"instructions", "source=q"}).names == ("uses_avx", "runtime_s", "source=p")
