"""Gathers the programs of apps.toml with their libraries and data into a folder that runs on another machine.

    python testbed/apps/bundle.py FOLDER [--archive FILE.tar.xz] [APP ...]

The C library is left out: the other machine's own, which must not be older, is used. Everything else that `ldd` names
goes to FOLDER/lib, for LD_LIBRARY_PATH. Symbols are stripped.
"""

from __future__ import annotations

import argparse
import lzma
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

from apps import App, read

#: The parts of the C library, which come with every machine.
GLIBC = re.compile(
    r"(ld-linux-x86-64|libc|libm|libmvec|libpthread|libdl|librt|libresolv|libutil|libanl|libnss_\w+)\.so"
)
LDD_LINE = re.compile(r"^\s*(\S+) => (/\S+)", re.MULTILINE)
#: xz with jumps of x86 code made absolute and a dictionary over many files, which saves a sixth.
FILTERS = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 26}]


def is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def libraries(path: Path) -> dict[str, Path]:
    """Return the libraries of a program by the names that it asks for, without the C library."""
    text = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False).stdout
    missing = re.findall(r"(\S+) => not found", text)
    if missing:
        raise FileNotFoundError(f"{path}: the libraries {missing} are missing; install the packages of apps.toml")
    return {name: Path(where) for name, where in LDD_LINE.findall(text) if not GLIBC.match(name)}


def copy(source: Path, goal: Path) -> None:
    if not goal.exists():
        goal.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.resolve(), goal)
        goal.chmod(0o755)


def gather(app: App, folder: Path) -> None:
    """Copy the programs, the data and the libraries of an application."""
    copied = [(Path(path), folder / "bin" / Path(path).name) for path in app.programs]
    for pattern, goal in app.data.items():
        copied += [(path, folder / goal / path.name) for path in sorted(Path("/").glob(pattern.lstrip("/")))]
    for source, goal in copied:
        copy(source, goal)
        if is_elf(goal):
            for name, where in libraries(source).items():
                copy(where, folder / "lib" / name)


def strip(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_file() and is_elf(path):
            subprocess.run(["strip", "--strip-unneeded", str(path)], capture_output=True, check=False)


def pack(folder: Path, archive: Path) -> None:
    """Write a folder into a compressed archive, files of one kind beside each other."""
    with lzma.open(archive, "wb", filters=FILTERS) as packed, tarfile.open(fileobj=packed, mode="w|") as file:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            file.add(path, arcname=f"{folder.name}/{path.relative_to(folder)}", filter=anonymous)


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("apps", nargs="*", help="these only")
    parser.add_argument("--archive", type=Path)
    options = parser.parse_intermixed_args()
    apps = read()
    for name in options.apps or apps:
        gather(apps[name], options.folder)
    strip(options.folder.rglob("*"))
    size = sum(path.stat().st_size for path in options.folder.rglob("*") if path.is_file())
    print(f"{options.folder}: {size / 1e6:.1f} MB")
    if options.archive:
        pack(options.folder, options.archive)
        print(f"{options.archive}: {options.archive.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
