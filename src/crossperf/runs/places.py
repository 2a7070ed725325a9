"""Where a runs table lies: a file, a folder of files, a pattern of names, or an address in an object store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from crossperf.errors import RunsTableError
from crossperf.runs.rules import Problem, unusable

FORMATS = ("jsonl", "csv", "parquet", "jsonl.gz", "csv.gz")
_ENDINGS = ".jsonl, .csv, .parquet, .jsonl.gz or .csv.gz"
_OTHER_NAMES = {"ndjson": "jsonl", "pq": "parquet", "ndjson.gz": "jsonl.gz"}
#: Object stores whose addresses Polars reads; `pathlib` leaves one of the two slashes.
_ADDRESS = re.compile(r"(s3a?|gs|gcs|az|azure|abfss?|adl):/{1,2}(?=[^/])")
_WILD = re.compile(r"[*?\[]")
#: Folders of a table; links to folders of links could make any number of them.
_MOST_FOLDERS = 100_000
#: What other programs write into the name of a folder for a missing value.
NOTHING = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class TableFile:
    """One file of a table: its address, its format, and the columns that the names of its folders tell."""

    address: str
    kind: str
    labels: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def is_remote(self) -> bool:
        """Whether it lies in an object store."""
        return is_address(self.address)

    @property
    def path(self) -> Path:
        """The path of a file of this machine."""
        return Path(self.address)


def is_address(place: str | os.PathLike[str]) -> bool:
    """Tell whether a place is the address of an object store.

    >>> is_address("s3://site/runs.parquet"), is_address("runs.parquet")
    (True, False)
    """
    return _ADDRESS.match(os.fspath(place)) is not None


def spelled(place: str | os.PathLike[str]) -> str:
    """Return a place as text; an address that `pathlib` has shortened gets its slash back.

    >>> spelled(Path("s3://site/runs.parquet"))
    's3://site/runs.parquet'
    """
    return _ADDRESS.sub(lambda match: f"{match[1]}://", os.fspath(place), count=1)


def has_wildcards(place: str) -> bool:
    """Tell whether a place is a pattern of names."""
    return _WILD.search(place) is not None


def before_wildcards(pattern: str) -> str:
    """Return the folder before the first part of a pattern that is one.

    >>> before_wildcards("s3://site/runs/platform=*/[0-9].parquet")
    's3://site/runs'
    """
    match = _WILD.search(pattern)
    return pattern[: match.start() if match else None].rpartition("/")[0]


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format that a file's name ends in.

    >>> format_of(Path("runs.v2.csv.gz")), format_of("s3://site/runs.PQ")
    ('csv.gz', 'parquet')
    """
    name = PurePosixPath(os.fspath(path))
    ending = "".join(name.suffixes[-2:] if name.suffix == ".gz" else name.suffixes[-1:]).lower().lstrip(".")
    kind = _OTHER_NAMES.get(ending, ending)
    if kind not in FORMATS:
        raise unusable(
            path, [Problem(f"a name that ends in {name.suffix or 'nothing'!r}", _ENDINGS, "Rename or convert it.")]
        )
    return kind


def parts_of(place: str | os.PathLike[str]) -> list[TableFile]:
    """Return the files of a table that lies on this machine, by name: one, those of a folder, or those of a pattern.

    A file whose own name looks like a pattern is that file. In a folder every file has to be of runs; names that begin
    with a dot or an underscore are left out.
    """
    text = os.fspath(place)
    path = Path(text)
    if path.is_file():
        return [TableFile(text, format_of(path))]
    if path.is_dir():
        return _of_folder(path)
    if has_wildcards(text):
        root = Path(before_wildcards(text) or ("/" if path.is_absolute() else "."))
        # As in a shell, a star does not stand for a dot: so begin the names of files that are not complete yet.
        matches = root.glob(str(path.relative_to(root)))
        files = sorted(file for file in matches if file.is_file() and not file.name.startswith("."))
        if files:
            return parts_below(root, files)
        raise unusable(text, [Problem("no file of such a name", "a runs table", "Check the pattern.")])
    raise unusable(text, [Problem("no such file", "a runs table", "Check the path.")])


def _of_folder(folder: Path) -> list[TableFile]:
    if files := files_of(folder):
        return parts_below(folder, files)
    expected = f"a folder of runs tables ({_ENDINGS})"
    raise unusable(folder, [Problem("an empty folder", expected, "Check the path.")])


def files_of(folder: Path) -> list[Path]:
    """Return the files of runs in a folder, by name; a folder with other files raises."""
    expected, advice = f"a folder of runs tables alone ({_ENDINGS})", "Check the path, or name its files: 'DIR/*.csv'."
    files = []
    for file in _below(folder):
        if not _is_table(file):
            problem = f"a folder with {str(file.relative_to(folder))!r} in it"
            raise unusable(folder, [Problem(problem, expected, advice)])
        files.append(file)
    return sorted(files)


def _below(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder but for hidden ones; links are followed, and what does not end raises."""
    waiting: list[tuple[Path, tuple[tuple[int, int], ...]]] = [(folder, ())]
    for number in count(1):
        if not waiting:
            return
        own, above = waiting.pop()
        try:
            status = own.stat()
            entries = sorted((entry for entry in os.scandir(own) if entry.name[0] not in "._"), key=lambda e: e.name)
        except OSError as error:
            raise _unread(folder, own, f"cannot be read ({error.strerror})") from error
        key = (status.st_dev, status.st_ino)
        if key in above:
            raise _unread(folder, own, "leads back to a folder that it is in")
        if number > _MOST_FOLDERS:
            raise _unread(folder, own, f"is one of more than {_MOST_FOLDERS:,} folders")
        yield from (Path(entry.path) for entry in entries if not entry.is_dir())
        waiting += [(Path(entry.path), (*above, key)) for entry in reversed(entries) if entry.is_dir()]


def _unread(folder: Path, own: Path, what: str) -> RunsTableError:
    problem, advice = f"{os.fspath(own)!r}, which {what}", "Take it out, or name the files: 'DIR/*.csv'."
    return unusable(folder, [Problem(problem, "a folder of runs tables whose folders end and can be read", advice)])


def _is_table(file: Path) -> bool:
    ending = file.name.lower().removesuffix(".gz").rpartition(".")[2]
    return _OTHER_NAMES.get(ending, ending) in FORMATS


def parts_below(root: str | os.PathLike[str], files: Iterable[str | os.PathLike[str]]) -> list[TableFile]:
    """Return files below a folder as parts; folders named ``column=value`` tell a column (Hive's way).

    >>> parts_below(Path("runs"), ["runs/platform=epyc%2F2/0.parquet"])[0].labels
    {'platform': 'epyc/2'}
    """
    return [TableFile(os.fspath(file), format_of(file), _labels(root, os.fspath(file))) for file in files]


def _labels(root: str | os.PathLike[str], file: str) -> dict[str, str | None]:
    below = file.removeprefix(os.fspath(root)).split("/")[:-1]
    pairs = (name.partition("=") for name in below if "=" in name)
    return {unquote(name): None if text == NOTHING else unquote(text) for name, _, text in pairs if name}
