from __future__ import annotations

from pathlib import Path

import pytest

from crossperf.errors import CrossperfError
from crossperf.files import Folder, whole, write_json


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


BOX = Folder("box", lambda folder: (folder / "box.txt").is_file())


def fill(folder: Path, text: str) -> None:
    (folder / "box.txt").write_text(text)


def everything(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_finished_folder_takes_the_place_of_the_old_one_whole(tmp_path: Path) -> None:
    with BOX.whole(tmp_path / "deep" / "a") as part:
        fill(part, "old")
        (part / "more.txt").write_text("of the old")
    with BOX.whole(tmp_path / "deep" / "a", overwrite=True) as part:
        fill(part, "new")
        assert everything(tmp_path / "deep" / "a") == {"box.txt": "old", "more.txt": "of the old"}
    assert everything(tmp_path) == {"deep/a/box.txt": "new"}


@pytest.mark.parametrize("cause", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_interrupted_folder_leaves_the_old_one_and_no_part_of_the_new(
    tmp_path: Path, cause: type[BaseException]
) -> None:
    with BOX.whole(tmp_path / "a") as part:
        fill(part, "old")
    with pytest.raises(cause), BOX.whole(tmp_path / "a", overwrite=True) as part:
        fill(part, "half of the n")
        raise cause
    assert everything(tmp_path) == {"a/box.txt": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("cause", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_folder_that_cannot_be_moved_to_its_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: BaseException
) -> None:
    target = tmp_path / "a"
    with BOX.whole(target) as part:
        fill(part, "old")
    replace = Path.replace

    def refusing(self: Path, place: Path) -> Path:
        if self.suffix == ".part":
            raise cause
        return replace(self, place)

    monkeypatch.setattr(Path, "replace", refusing)
    with pytest.raises((CrossperfError, KeyboardInterrupt)), BOX.whole(target, overwrite=True) as part:
        fill(part, "new")
    assert everything(tmp_path) == {"a/box.txt": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_only_its_own_kind_of_folder_is_replaced_and_only_when_told_to(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("years of work")
    (tmp_path / "file").write_text("years of work")
    before = everything(tmp_path)
    for name in ("thesis", "file"):
        with pytest.raises(CrossperfError, match="not a crossperf box"), BOX.whole(tmp_path / name, overwrite=True):
            pytest.fail("nothing may be written")
    assert everything(tmp_path) == before
    (tmp_path / "empty").mkdir()
    with BOX.whole(tmp_path / "empty") as part:
        fill(part, "one")
    with (
        pytest.raises(CrossperfError, match=r"found a box there already.*overwrite"),
        BOX.whole(tmp_path / "empty"),
    ):
        pytest.fail("nothing may be written")


def test_a_place_where_no_folder_can_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CrossperfError, match=r"file/a: cannot be written"), BOX.whole(tmp_path / "file" / "a"):
        pytest.fail("nothing may be written")
