"""What a worker of Dask is given, in this process."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("distributed")

from crossperf.workers.calls import HELD, Held
from crossperf.workers.dask_plugin import HoldTable, forgive_trimming
from tests.workers.work import TABLE


def test_a_worker_holds_a_table_until_the_study_is_over() -> None:
    plugin = HoldTable(TABLE)
    plugin.setup(None)
    assert Held(TABLE.fingerprint).load() is TABLE
    plugin.teardown(None)
    assert TABLE.fingerprint not in HELD


def test_what_a_nanny_asks_of_memory_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    forgive_trimming()
    assert "MALLOC_TRIM_THRESHOLD_" not in os.environ
