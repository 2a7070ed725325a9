"""Chunks of cells in threads."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from crossperf.model.fitted.threads import in_threads


def threads_of_products() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_answers_come_in_the_order_of_their_chunks() -> None:
    parts = in_threads(lambda rows: np.arange(100)[rows], cells=100, chunk=7)
    assert np.concatenate(parts).tolist() == list(range(100))


def test_a_chunk_alone_is_asked_in_the_thread_of_the_caller() -> None:
    assert in_threads(lambda _: threading.get_ident(), cells=5, chunk=5) == [threading.get_ident()]


def test_products_take_one_thread_while_there_are_several_chunks() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = threads_of_products()
        assert in_threads(lambda _: threads_of_products(), cells=4, chunk=2) == [{1}, {1}]
        assert threads_of_products() == before


def test_a_failure_gives_the_threads_back() -> None:
    with threadpool_limits(2, user_api="blas"):
        before = threads_of_products()
        with contextlib.suppress(ZeroDivisionError):
            in_threads(lambda rows: 1 // rows.start, 4, 2)
        assert threads_of_products() == before
