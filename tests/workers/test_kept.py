"""Finished pieces: kept under the fingerprint of their question, taken again, never mixed up."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crossperf import versions
from crossperf.errors import CrossperfError, WorkerError
from crossperf.workers import Here, Kept, Parcel
from crossperf.workers.kept import Piece
from tests.workers.work import DOUBLE, TABLE, begun, questions

ROOT = Path(__file__).parents[2]


def test_a_piece_is_answered_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for _ in range(2):
        with Kept(tmp_path / "kept") as kept:
            answers = dict(DOUBLE.answers(questions(log, 3), Here(), kept))
        assert [answers[n].facts["number"] for n in range(3)] == [0, 2, 4]
    assert begun(log) == [0, 1, 2]


def test_parts_of_a_study_can_be_asked_now_and_others_later(tmp_path: Path) -> None:
    asked = questions(tmp_path / "log", 4)
    with Kept(tmp_path / "kept") as kept:
        list(DOUBLE.answers(asked[2:], Here(), kept))
        assert len(dict(DOUBLE.answers(asked, Here(), kept))) == 4
        assert sorted(piece.question["number"] for piece in kept.pieces()) == [0, 1, 2, 3]
    assert begun(tmp_path / "log") == [2, 3, 0, 1]


def test_without_resume_pieces_are_answered_again_and_replaced(tmp_path: Path) -> None:
    for resume in (True, False):
        with Kept(tmp_path / "kept", resume=resume) as kept:
            list(DOUBLE.answers(questions(tmp_path / "log", 2), Here(), kept))
            assert len(kept) == 2
    assert begun(tmp_path / "log") == [0, 1, 0, 1]


def test_what_an_answer_depends_on_is_in_its_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another table, other threads, other code or another release of a package is another question."""
    (question,) = questions(tmp_path / "log", 1)
    asked = DOUBLE.asked(question, 1)
    others = [
        DOUBLE.asked(replace(question, table=Parcel({"factor": 3})), 1),
        DOUBLE.asked(question, 2),
        replace(DOUBLE, code=("errors.py",)).asked(question, 1),
        DOUBLE.asked(replace(question, facts={**question.facts, "seed": 1}), 1),
    ]
    monkeypatch.setattr("crossperf.workers.study.own_versions", lambda: {"numpy": "0.1"})
    others.append(DOUBLE.asked(question, 1))
    with Kept(tmp_path / "kept") as kept:
        names = {kept.path(facts) for facts in (asked, *others)}
    assert len(names) == 6
    assert DOUBLE.asked(replace(question, label="other words", notes={"a": 1}), 1) == others[-1]


def test_the_digest_of_code_follows_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "_ROOT", tmp_path)
    digests = []
    for text in ("a = 1", "a = 2"):
        (tmp_path / "mine.py").write_text(text)
        versions.code_digest.cache_clear()
        digests.append(versions.code_digest(("mine.py",)))
    versions.code_digest.cache_clear()
    assert digests[0] != digests[1]


def test_a_damaged_piece_is_answered_again(tmp_path: Path) -> None:
    asked = questions(tmp_path / "log", 3)
    with Kept(tmp_path / "kept") as kept:
        list(DOUBLE.answers(asked, Here(), kept))
        first, second, third = (kept.path(DOUBLE.asked(own, Here().threads)) for own in asked)
        first.write_bytes(first.read_bytes()[:50])
        second.write_bytes(third.read_bytes())  # a sound answer, to another question
        answers = dict(DOUBLE.answers(asked, Here(), kept))
    assert [answers[n].facts["number"] for n in range(3)] == [0, 2, 4]
    assert begun(tmp_path / "log") == [0, 1, 2, 0, 1]


def test_a_second_driver_is_refused_and_told_who_works_there(tmp_path: Path) -> None:
    program = f"from crossperf.workers import Kept\nwith Kept({str(tmp_path / 'kept')!r}): pass"
    with Kept(tmp_path / "kept"):
        second = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert second.returncode == 1
    assert "works in this folder, expected one driver at a time" in second.stderr
    assert "kept: process " in second.stderr
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)  # the first has ended


def test_a_folder_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("\\begin{document}")
    with pytest.raises(WorkerError, match=r"found 'thesis.tex' and no pieces.json, expected a new folder"):
        Kept(tmp_path).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_of_a_later_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pieces.json").write_text('{"format": 99}')
    with pytest.raises(CrossperfError, match=r"found format 99, expected .* of format 1\. Upgrade crossperf\."):
        Kept(tmp_path).__enter__()


def test_removing_takes_the_pieces_and_nothing_else(tmp_path: Path) -> None:
    with Kept(tmp_path / "kept") as kept:
        kept.put(Piece({"n": 1}, Parcel({}), {}))
        (tmp_path / "kept" / "notes.txt").write_text("mine")
        kept.remove()
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["notes.txt"]


def test_a_parcel_comes_back_bit_for_bit(tmp_path: Path) -> None:
    arrays = {
        "whole": np.array([1, -5, 2**62]),
        "reals": np.array([[0.1, np.nan, -0.0], [np.inf, 1.0, 1e-310]]),
        "single": np.array([0.5, 0.25], np.float32),
        "truth": np.array([True, False]),
        "none": np.empty((0, 3)),
    }
    sent = Parcel({"a": [0.1, None, "é"]}, arrays)
    sent.write(tmp_path / "parcel.npz")
    received = Parcel.read(tmp_path / "parcel.npz")
    assert received.facts == sent.facts
    assert {name: (own.dtype, own.shape, own.tobytes()) for name, own in received.arrays.items()} == {
        name: (own.dtype, own.shape, own.tobytes()) for name, own in arrays.items()
    }
    assert received.fingerprint == sent.fingerprint != TABLE.fingerprint


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04", b'{"format": 1}', "cut"])
def test_what_is_no_parcel_raises_value_error(damage: bytes | str, tmp_path: Path) -> None:
    path = tmp_path / "parcel.npz"
    TABLE.write(path)
    path.write_bytes(path.read_bytes()[:-40] if isinstance(damage, str) else damage)
    with pytest.raises(ValueError, match=r"."):
        Parcel.read(path)
