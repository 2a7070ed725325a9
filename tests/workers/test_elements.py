"""What a job of a site does, in this process: an answer or an error in a file, a bound on starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crossperf.errors import DatasetError, WorkerError
from crossperf.workers.calls import Shared, WorkCall, name_of, refuse_differences
from crossperf.workers.elements import answer_of, answer_path, element, error_of, error_path, from_plain, to_plain
from tests.workers.work import TABLE, begun, double


def call(folder: Path, **question: Any) -> dict[str, Any]:
    TABLE.write(folder / "table.npz")
    shared = Shared(TABLE.fingerprint, str(folder / "table.npz"))
    facts = {"number": 4, "log": str(folder / "log"), **question}
    sent = WorkCall(name_of(double), (shared, facts))
    assert from_plain(json.loads(json.dumps(to_plain(sent)))) == sent
    return to_plain(sent)


def test_an_answer_is_a_file_and_is_not_given_twice(tmp_path: Path) -> None:
    facts = call(tmp_path)
    for _ in range(2):
        element(str(tmp_path), "name", facts, 3)
    answer = answer_of(answer_path(tmp_path, "name"))
    assert answer is not None and answer.facts == {"number": 8}
    assert begun(tmp_path / "log") == [4]
    assert answer_of(answer_path(tmp_path, "other")) is None


def test_an_error_is_a_file_and_of_its_own_kind(tmp_path: Path) -> None:
    with pytest.raises(DatasetError):
        element(str(tmp_path), "name", call(tmp_path, fails=True), 3)
    error = error_of(error_path(tmp_path, "name"))
    assert isinstance(error, DatasetError) and str(error) == "runs.csv: found nothing, expected something."
    with pytest.raises(KeyError):
        element(str(tmp_path), "strange", {"function": "x:y"}, 3)
    assert "a piece failed (KeyError: 'arguments')" in str(error_of(error_path(tmp_path, "strange")))


def test_a_piece_that_is_cut_off_again_and_again_is_given_up(tmp_path: Path) -> None:
    (tmp_path / "name.starts").write_bytes(b"..")
    with pytest.raises(WorkerError, match=r"was cut off 2 times .* Raise 'time' of \[workers\] in the site"):
        element(str(tmp_path), "name", call(tmp_path), 2)
    assert begun(tmp_path / "log") == []


def test_another_table_than_was_sent_is_refused(tmp_path: Path) -> None:
    facts = call(tmp_path)
    (tmp_path / "table.npz").unlink()
    facts["arguments"][0] = {"shared": ["0" * 64, str(tmp_path / "table.npz")]}
    with pytest.raises(WorkerError, match=r"cannot read .*table.npz .* need a folder that they share"):
        element(str(tmp_path), "name", facts, 3)
    TABLE.write(tmp_path / "table.npz")
    with pytest.raises(WorkerError, match="found another table than was sent"):
        element(str(tmp_path), "name", facts, 3)


def test_other_versions_are_refused_with_both() -> None:
    here, other = {"crossperf": "0.2", "numpy": "2.0", "code": "aa"}, {"crossperf": "0.1", "code": "bb"}
    with pytest.raises(WorkerError) as raised:
        refuse_differences(here, other, "node7")
    sentence = "node7: found crossperf 0.1, numpy not installed, expected crossperf 0.2, numpy 2.0 as here."
    assert str(raised.value).startswith(sentence)
    refuse_differences(here, dict(here), "node7")
