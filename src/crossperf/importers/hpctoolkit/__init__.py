"""Reads HPCToolkit databases, made by ``hpcprof``: version 3 (``experiment.xml``) and version 4 (``meta.db``).

Both hold a call tree with metrics; of it one run is made, with totals over the whole execution. Counts are
summed over ranks and threads. They are estimates from samples, already multiplied by the sampling period:
``hpcprof`` does that while it builds the database (only development snapshots before the release of
version 4 did not).
"""

from __future__ import annotations

from pathlib import Path

from crossperf.importers.files import unusable
from crossperf.importers.hpctoolkit import v3, v4
from crossperf.importers.measurement import Measurement


def reads(path: Path) -> bool:
    """Tell whether a folder, or a file in it, is an HPCToolkit database of any version."""
    try:
        return v4.reads(_folder(path)) or v3.reads(_folder(path))
    except OSError:
        return False


def read(path: Path) -> list[Measurement]:
    """Return the one execution that a database holds."""
    folder = _folder(path)
    try:
        if any((folder / name).is_file() for name in v4.FILES):
            return [v4.read(folder)]
        if (folder / v3.EXPERIMENT).is_file():
            return [v3.read(folder)]
        raw = folder.is_dir() and any(folder.glob("*.hpcrun"))
    except OSError as error:
        problem = f"cannot be read ({error.strerror}), expected an HPCToolkit database. Check its permissions."
        raise unusable(path, problem) from error
    if raw:
        advice = f"Make one with 'hpcprof -o DATABASE {path}' and import that."
        raise unusable(path, f"found the raw measurements of hpcrun, expected a database. {advice}")
    expected = "a folder with meta.db, profile.db and cct.db (version 4) or with experiment.xml (version 3)"
    advice = "Name the folder that hpcprof wrote."
    raise unusable(path, f"found no HPCToolkit database, expected {expected}. {advice}")


def _folder(path: Path) -> Path:
    return path.parent if path.name in (*v4.FILES, v3.EXPERIMENT) and not path.is_dir() else path
