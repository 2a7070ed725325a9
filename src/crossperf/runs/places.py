"""Where a runs table lies: a file, a folder of files, a pattern of names, or an address in an object store."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from crossperf.runs.rules import Problem, unusable

FORMATS = ("jsonl", "csv", "parquet", "jsonl.gz", "csv.gz")
_ENDINGS = ".jsonl, .csv, .parquet, .jsonl.gz or .csv.gz"
_OTHER_NAMES = {"ndjson": "jsonl", "pq": "parquet", "ndjson.gz": "jsonl.gz"}
#: Object stores whose addresses Polars reads; `pathlib` leaves one of the two slashes.
_ADDRESS = re.compile(r"(s3a?|gs|gcs|az|azure|abfss?|adl):/{1,2}(?=[^/])")
_WILD = re.compile(r"[*?\[]")
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
    names = (Path(parent, name) for parent, _, files in os.walk(folder, followlinks=True) for name in files)
    files = sorted(name for name in names if not any(part[0] in "._" for part in name.relative_to(folder).parts))
    expected, advice = f"a folder of runs tables alone ({_ENDINGS})", "Check the path, or name its files: 'DIR/*.csv'."
    stranger = next((file for file in files if not _is_table(file)), None)
    if stranger is not None:
        problem = f"a folder with {str(stranger.relative_to(folder))!r} in it"
        raise unusable(folder, [Problem(problem, expected, advice)])
    return files


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
