from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crossperf.errors import CrossperfError
from crossperf.files import Folder, add_lines, folders, settled_size, whole, write_json


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
    write_json(target, {"format": 1, "x": 1.5})
    with pytest.raises(ValueError, match="JSON"):
        write_json(target, {"format": 1, "x": float("nan")})
    assert target.read_text() == '{\n  "format": 1,\n  "x": 1.5\n}\n'
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
@pytest.mark.parametrize("step", ["exchange", "rename"])
def test_a_folder_that_cannot_be_moved_to_its_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, cause: BaseException
) -> None:
    target = tmp_path / "a"
    with BOX.whole(target) as part:
        fill(part, "old")
    rename = Path.rename

    def refusing(self: Path, place: Path) -> Path:
        if self.suffix == ".part":
            raise cause
        return rename(self, place)

    def exchange(first: Path, second: Path) -> bool:
        if step == "exchange":
            raise cause
        return False

    monkeypatch.setattr(Path, "rename", refusing)
    monkeypatch.setattr(folders, "exchange", exchange)
    with pytest.raises((CrossperfError, KeyboardInterrupt)), BOX.whole(target, overwrite=True) as part:
        fill(part, "new")
    assert everything(tmp_path) == {"a/box.txt": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_where_names_cannot_change_places_a_folder_is_replaced_in_two_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "exchange", lambda first, second: False)
    for text in ("old", "new"):
        with BOX.whole(tmp_path / "a", overwrite=True) as part:
            fill(part, text)
    assert everything(tmp_path) == {"a/box.txt": "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_two_names_change_places_in_one_step(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        fill(tmp_path / name, name)
    assert folders.exchange(tmp_path / "a", tmp_path / "b")
    assert everything(tmp_path) == {"a/box.txt": "b", "b/box.txt": "a"}
    with pytest.raises(FileNotFoundError):
        folders.exchange(tmp_path / "a", tmp_path / "gone")


def test_what_was_put_into_a_folder_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    """A model can take hours to train: what is checked at the start need not hold at the end."""
    with BOX.whole(tmp_path / "a") as part:
        fill(part, "old")
    only_box = replace(BOX, ours=lambda folder: [path.name for path in folder.iterdir()] == ["box.txt"])
    with (
        pytest.raises(CrossperfError, match="not a crossperf box"),
        only_box.whole(tmp_path / "a", overwrite=True) as p,
    ):
        fill(p, "new")
        (tmp_path / "a" / "thesis.tex").write_text("years of work")
    assert everything(tmp_path) == {"a/box.txt": "old", "a/thesis.tex": "years of work"}


@pytest.fixture(params=[0o022, 0o077, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_and_a_new_folder_have_the_rights_that_the_umask_gives(tmp_path: Path, umask: int) -> None:
    write_json(tmp_path / "a.json", {"format": 1})
    add_lines(tmp_path / "runs.jsonl", "{}\n")
    with BOX.whole(tmp_path / "box") as part:
        fill(part, "new")
    assert mode(tmp_path / "a.json") == mode(tmp_path / "runs.jsonl") == 0o666 & ~umask
    assert mode(tmp_path / "box") == 0o777 & ~umask


def test_what_is_replaced_keeps_its_rights_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    write_json(tmp_path / "secret.json", {"format": 1})
    (tmp_path / "secret.json").chmod(0o600)
    with BOX.whole(tmp_path / "box") as part:
        fill(part, "old")
    (tmp_path / "box").chmod(0o2770)
    write_json(tmp_path / "secret.json", {"format": 1, "new": True})
    with BOX.whole(tmp_path / "box", overwrite=True) as part:
        fill(part, "new")
    assert mode(tmp_path / "secret.json") == 0o600
    assert mode(tmp_path / "box") == 0o2770


def test_a_file_that_its_owner_made_read_only_is_not_replaced() -> None:
    code = """
import os, sys
from pathlib import Path
from crossperf.errors import CrossperfError
from crossperf.files import write_json
if os.geteuid() == 0:
    os.setuid(65534)  # root may write everywhere
path = Path(sys.argv[1], "a.json")
write_json(path, {"format": 1})
path.chmod(0o444)
try:
    write_json(path, {"format": 1, "new": True})
except CrossperfError as error:
    print(str(error).partition("a.json")[2], "new" in path.read_text())
"""
    with tempfile.TemporaryDirectory() as folder:  # not below the folder of the tests, which is its owner's alone
        Path(folder).chmod(0o777)
        command = [sys.executable, "-c", code, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == ": cannot be written (Permission denied). Choose another place. False\n", done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_file_of_another_user_stays_that_users(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"format": 1})
    os.chown(tmp_path / "a.json", 1234, 1235)
    write_json(tmp_path / "a.json", {"format": 1, "new": True})
    facts = (tmp_path / "a.json").stat()
    assert (facts.st_uid, facts.st_gid) == (1234, 1235)


def test_a_link_stays_a_link_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    for folder in ("data", "home"):
        (tmp_path / folder).mkdir()
    write_json(tmp_path / "data" / "a.json", {"format": 1})
    for link, target in (("old.json", "a.json"), ("new.json", "b.json"), ("box", "box")):
        (tmp_path / "home" / link).symlink_to(tmp_path / "data" / target)
    with BOX.whole(tmp_path / "data" / "box") as part:
        fill(part, "old")
    write_json(tmp_path / "home" / "old.json", {"format": 1, "new": True})
    write_json(tmp_path / "home" / "new.json", {"format": 1})
    with BOX.whole(tmp_path / "home" / "box", overwrite=True) as part:
        fill(part, "new")
    assert all(path.is_symlink() for path in (tmp_path / "home").iterdir())
    assert sorted(everything(tmp_path / "data")) == ["a.json", "b.json", "box/box.txt"]
    assert '"new": true' in (tmp_path / "data" / "a.json").read_text()
    assert (tmp_path / "data" / "box" / "box.txt").read_text() == "new"


def test_a_link_that_leads_in_a_circle_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.json").symlink_to("a.json")
    with pytest.raises(CrossperfError, match=r"a\.json: cannot be written \(Too many levels of symbolic links\)"):
        write_json(tmp_path / "a.json", {"format": 1})


def device_in(folder: Path) -> Path:
    """Return a device that a defect may replace without harm: one of the test's own for root, whom nothing stops."""
    if os.geteuid() != 0:
        return Path("/dev/null")
    try:
        os.mknod(folder / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("not even root may make a device here")
    return folder / "null"


@pytest.mark.parametrize("write", [lambda path: write_json(path, {"format": 1}), lambda path: add_lines(path, "{}\n")])
def test_only_regular_files_are_written(tmp_path: Path, write: Callable[[Path], None]) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    device = device_in(tmp_path)
    (tmp_path / "link").symlink_to(device)
    for name, kind in (("folder", "a folder"), ("pipe", "a pipe"), ("link", "a device")):
        with pytest.raises(CrossperfError, match=f"{name}: found {kind}, expected a regular file"):
            write(tmp_path / name)
    with pytest.raises(CrossperfError, match="found a device"):
        write(device)
    assert device.is_char_device()
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_the_file_that_is_printed_into_is_not_replaced(tmp_path: Path) -> None:
    code = "import sys\nfrom crossperf.files import write_json\nwrite_json(sys.argv[1], {'format': 1})"
    path = tmp_path / "out.json"
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    for name in (str(path), str(tmp_path / "stdout")):
        with path.open("w") as out:
            done = subprocess.run(
                [sys.executable, "-c", code, name], stdout=out, stderr=subprocess.PIPE, text=True, check=False
            )
        assert "found the file that this command prints into" in done.stderr
        assert path.read_text() == ""


@pytest.mark.parametrize("text", ["app,input\na,1\n", "PAR1\x15\x04", '{"a": 1}\n', "years of work"])
def test_json_never_takes_the_place_of_what_crossperf_did_not_write(tmp_path: Path, text: str) -> None:
    path = tmp_path / "thesis"
    path.write_text(text)
    with pytest.raises(CrossperfError, match="thesis: found a file that crossperf did not write"):
        write_json(path, {"format": 1})
    assert path.read_text() == text
    path.write_text("")
    write_json(path, {"format": 1})


@pytest.mark.parametrize("text", ["app,input\na,1\n", "PAR1\x15\x04", '{\n  "format": 1\n}\n', "[1, 2]\n"])
def test_lines_of_json_are_added_to_nothing_else(tmp_path: Path, text: str) -> None:
    path = tmp_path / "table"
    path.write_text(text)
    with pytest.raises(CrossperfError, match="table: found something else than lines of JSON"):
        add_lines(path, '{"app": "a"}\n')
    assert path.read_text() == text


def test_a_new_file_of_lines_appears_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.jsonl"
    seen = []
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda *what: (seen.append(path.exists()), write(*what))[1])
        add_lines(path, '{"app": "a"}\n')
        add_lines(path, '{"app": "b"}\n')
    assert seen == [False, True]
    assert [one.name for one in tmp_path.iterdir()] == ["runs.jsonl"]


@pytest.mark.parametrize("error", [errno.EEXIST, errno.EPERM, errno.EOPNOTSUPP])
def test_lines_are_added_where_a_file_has_been_made_meanwhile_or_links_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    path = tmp_path / "runs.jsonl"

    def link(part: Path, target: Path) -> None:
        if error == errno.EEXIST:
            target.write_text('{"app": "other"}\n')
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(os, "link", link)
    add_lines(path, '{"app": "a"}\n')
    assert path.read_text() == '{"app": "other"}\n' * (error == errno.EEXIST) + '{"app": "a"}\n'
    assert [one.name for one in tmp_path.iterdir()] == ["runs.jsonl"]


def test_a_reader_waits_for_who_adds_lines_and_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.jsonl"
    add_lines(path, '{"app": "a"}\n')
    with path.open("ab", buffering=0) as other, path.open("rb") as file:
        fcntl.flock(other, fcntl.LOCK_EX)
        other.write(b'{"app": ')

        def end_the_addition(seconds: float) -> None:
            other.write(b'"b"}\n')
            fcntl.flock(other, fcntl.LOCK_UN)

        with monkeypatch.context() as patched:
            patched.setattr(time, "sleep", end_the_addition)
            assert settled_size(file) == len('{"app": "a"}\n') * 2
        fcntl.flock(other, fcntl.LOCK_EX)
        times = iter([0.0, 4.9, 5.1])
        monkeypatch.setattr(time, "monotonic", lambda: next(times))
        assert settled_size(file) == path.stat().st_size


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="there is no /proc here")
def test_a_file_that_says_it_is_empty_and_is_not_has_no_size(tmp_path: Path) -> None:
    with Path("/proc/self/status").open("rb") as file:
        assert settled_size(file) is None
    (tmp_path / "empty.jsonl").touch()
    with (tmp_path / "empty.jsonl").open("rb") as file:
        assert settled_size(file) == 0


def test_lines_go_on_after_a_line_that_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text('{"app": "a"}\n{"app": "b"')
    add_lines(path, '{"app": "c"}\n')
    assert path.read_text() == '{"app": "a"}\n{"app": "b"\n{"app": "c"}\n'


def test_a_lock_is_held_by_a_process_alone_and_ends_with_it(tmp_path: Path) -> None:
    """Each of eight processes adds one to a number, two hundred times."""
    code = """
import sys
from pathlib import Path
from crossperf.files import locked
path = Path(sys.argv[1])
for _ in range(200):
    with locked(path):
        path.write_text(str(int(path.read_text()) + 1))
"""
    path = tmp_path / "number"
    path.write_text("0")
    processes = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(8)]
    assert [process.wait(timeout=60) for process in processes] == [0] * 8
    assert path.read_text() == "1600"


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
