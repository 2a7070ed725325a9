from __future__ import annotations

from pathlib import Path

import pytest

from crossperf.errors import CrossperfError
from crossperf.files import whole, write_json


def test_a_finished_write_takes_the_place_of_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with whole(target) as part:
        part.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("cause", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_interrupted_write_leaves_the_old_file_and_no_part_of_the_new(
    tmp_path: Path, cause: type[BaseException]
) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(cause), whole(target) as part:
        part.write_text("half of the n")
        raise cause
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_full_disk_is_told_with_the_name_of_the_target(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    with pytest.raises(CrossperfError, match=r"a\.txt: cannot be written \(No space left on device\)"), whole(target):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(CrossperfError, match=r"gone/a\.json: cannot be written") as caught:
        write_json(tmp_path / "gone" / "a.json", {})
    assert caught.value.facts["path"] == str(tmp_path / "gone" / "a.json")
    assert not (tmp_path / "gone").exists()


def test_json_that_cannot_be_written_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.json"
    write_json(target, {"x": 1.5})
    with pytest.raises(ValueError, match="JSON"):
        write_json(target, {"x": float("nan")})
    assert target.read_text() == '{\n  "x": 1.5\n}\n'
    assert list(tmp_path.iterdir()) == [target]
