"""The platforms that a model knows, and which of them this machine is."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from crossperf import platforms
from crossperf.documents import MEGABYTE, at, parse, read_bytes
from crossperf.errors import ModelFolderError, some_of
from crossperf.plain import whole
from crossperf.platforms import Platform

if TYPE_CHECKING:
    from crossperf.collect.profiled import Profile

#: Where 'crossperf profile' looks for a model unless it is given one.
_DEFAULT = Path("model")
_DESCRIPTION = "model.json"


@dataclass(frozen=True)
class ModelPlatforms:
    """What a model calls its platforms, and the facts of those that are known here; the model itself is not loaded.

    Facts come from the user's platforms, then from those that the package's own table was measured on.
    """

    folder: Path
    names: tuple[str, ...]
    known: tuple[Platform, ...]

    @classmethod
    def of(cls, folder: Path | None, registry: Path) -> ModelPlatforms | None:
        """Return those of a model folder; by default of ``./model``, ``None`` where that is none."""
        if folder is None and not (_DEFAULT / _DESCRIPTION).is_file():
            return None
        return cls.read(folder or _DEFAULT, registry)

    @classmethod
    def read(cls, folder: Path, registry: Path) -> ModelPlatforms:
        """Return those of a model folder."""
        try:
            names = at(parse(read_bytes(folder / _DESCRIPTION, 256 * MEGABYTE)), "platforms", list[str])
        except (OSError, ValueError) as error:
            problem = f"{folder}: found no {_DESCRIPTION} that names platforms, expected a model folder"
            raise ModelFolderError(f"{problem}. 'crossperf train' makes one.") from error
        with as_file(files("crossperf") / "datasets" / "data" / "platforms.json") as shipped:
            entries = {entry.name: entry for entry in [*platforms.read(shipped), *platforms.read(registry)]}
        return cls(folder, tuple(map(str, names)), tuple(entries[name] for name in names if name in entries))

    def name_of(self, result: Profile, say: Callable[[str], None]) -> str:
        """Return the name for the machine of a profile: the model's where facts match; where not, say so."""
        own = result.platform_name
        threads = result.threads or _threads_of_environment()
        same = [entry for entry in self.known if platforms.matching([entry], result.facts, result.platform_class)]
        # A machine can be several platforms, by the number of threads that it is used with.
        used = [entry for entry in same if threads is None or entry.facts.more.get("threads", threads) == threads]
        if len(used) == 1:
            if used[0].name != own:
                say(f"this machine is {used[0].name} to {self.folder}")
            return used[0].name
        if used:
            names = " or ".join(entry.name for entry in used)
            say(f"this machine is {names} to {self.folder}; choose with --threads or --platform. Recorded as {own}")
        elif own not in self.names:
            advice = "If it is one of them: --platform NAME, or 'crossperf runs rename'"
            say(f"{self.folder} does not know this machine, {own}; it knows {some_of(self.names)}. {advice}")
        return own


def _threads_of_environment() -> int | None:
    return whole(os.environ.get("OMP_NUM_THREADS", ""))
