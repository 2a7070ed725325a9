"""What a site installs: the plugin for the controller, the mapping it rests on, and words on what to do next."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from crossperf.errors import CrossperfError
from crossperf.files import whole
from crossperf.schedule.slurm import names
from crossperf.schedule.slurm.site import Site

MODULE, PLUGIN, MAPPING, TABLE = "crossperf.lua", "job_submit.lua", "crossperf-partitions.json", "crossperf.table"


def files(
    folder: Path, site: Site, *, scale_limits: bool = False, tag_jobs: bool = True, shadow: bool = False
) -> dict[str, str]:
    """Return the files of a site by name, made for a folder; with `shadow` the plugin notes its choices alone."""
    settings = {"table": str(folder / TABLE), "scale_limits": scale_limits, "tag_jobs": tag_jobs, "shadow": shadow}
    bounds = {"longest": names.LONGEST, "most": names.MOST_WORDS, "longest_name": names.LONGEST_NAME}
    words = {**names.WORDS["script"], **bounds, "longest_comment": names.LONGEST_COMMENT}
    block = f"local SITE = {lua(settings)}\nlocal WORDS = {lua(words)}"
    module = _packaged(MODULE).replace("--@settings@", block)
    digest = hashlib.sha256(module.encode()).hexdigest()[:16]
    return {
        MODULE: module,
        PLUGIN: _packaged(PLUGIN).replace("--@path@", lua(str(folder / MODULE))).replace("--@digest@", digest),
        MAPPING: json.dumps(site.to_json(), indent=2) + "\n",
    }


def _packaged(name: str) -> str:
    return resources.files("crossperf.schedule.slurm").joinpath(name).read_text(encoding="utf-8")


def lua(value: Any) -> str:
    r"""Return a value as Lua writes it.

    >>> lua({"path": 'a"b\n', "on": True, "words": ("x", "y")})
    '{ ["path"] = "a\\"b\\010", ["on"] = true, ["words"] = { "x", "y" } }'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"[{lua(key)}] = {lua(part)}" for key, part in value.items()) + " }"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "{ " + ", ".join(map(lua, value)) + " }"
    marked = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(f"\\{ord(c):03d}" if ord(c) < 32 or ord(c) == 127 else c for c in marked) + '"'


def write(folder: str | os.PathLike[str], contents: Mapping[str, str], *, overwrite: bool = False) -> list[Path]:
    """Write files into a folder and return those that are new; without `overwrite`, one that differs stops it."""
    target = Path(folder)
    present = {name: _content(target / name) for name in contents}
    different = [name for name, text in contents.items() if present[name] is not None and present[name] != text]
    if different and not overwrite:
        raise CrossperfError(
            f"{target / different[0]}: exists already with other content; nothing was written. Replace it with "
            "--overwrite, or keep a job_submit.lua of your own with --module-only.",
            path=str(target / different[0]),
        )
    fresh = [name for name, text in contents.items() if present[name] != text]
    for name in fresh:
        before_s = _written_s(target / name)
        with whole(target / name) as part:
            part.write_text(contents[name], encoding="utf-8")
            # Slurm compares whole seconds, and two versions may be written within one.
            os.utime(part, (max(time.time(), before_s + 1),) * 2)
    return [target / name for name in fresh]


def _written_s(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0.0


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def what_to_do(folder: Path, module_only: bool = False) -> str:
    """Return the words on what a site does next."""
    plugin = (
        f"Add to your own {PLUGIN}, at its top and inside slurm_job_submit:\n"
        f"    local loaded, crossperf = pcall(dofile, {lua(str(folder / MODULE))})\n"
        "    if loaded then crossperf.place(job_desc, part_list) end\n"
        f"and touch {PLUGIN} whenever {MODULE} changes: Slurm watches that file alone."
        if module_only
        else f"Have {PLUGIN} beside slurm.conf ({folder} if that is where it is), and in slurm.conf:\n"
        "    JobSubmitPlugins=lua"
    )
    return (
        f"{plugin}\n"
        "Then 'scontrol reconfigure', once; a new version is taken up with the next job. "
        "Jobs are left as they are until there is a table:\n"
        f"    crossperf slurm table MODEL RUNS -o {folder / TABLE}\n"
        "A new table is taken up with the next job, and a bad one is ignored."
    )
