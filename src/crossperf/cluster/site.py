"""What a site offers through Slurm: for each platform the resources that a job asks for, from one TOML file."""

from __future__ import annotations

import math
import re
import shlex
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from crossperf import plain
from crossperf.cluster.commands import seconds_of
from crossperf.documents import MEGABYTE, parse_toml, read_bytes
from crossperf.errors import CrossperfError, did_you_mean, some_of
from crossperf.plain import Between

_MOST_BYTES = MEGABYTE
#: What stands alone in an option of sbatch; blanks and ends of lines do not.
_WORD = re.compile(r"[^\s\x00-\x1f\x7f]+")
_OPTION = re.compile(r"[a-z][a-z0-9-]*")
#: Options that are decided elsewhere: by other settings of the file, or by what is submitted.
_TAKEN = {"array", "output", "error", "job-name", "signal", "open-mode", "requeue", "no-requeue", "test-only", "wrap"}
_TAKEN |= {"partition", "nodes", "cpus-per-task", "mem", "gres", "exclusive", "time", "account", "qos", "constraint"}
_TAKEN |= {"ntasks", "ntasks-per-node", "parsable", "wait", "hold"}
_Count = Annotated[int, Between(least=1, most=1_000_000)]


class SiteFileError(CrossperfError):
    """A SITE cannot be used; ``problems`` lists everything that must be fixed."""


@dataclass(frozen=True)
class Allocation:
    """The resources that a job of one platform asks Slurm for, and how it starts there.

    Parameters
    ----------
    partition, nodes, gres, exclusive, account, qos, constraint
        As ``sbatch`` has them.
    cpus, memory
        Processors of the job on each node, and memory as ``sbatch --mem`` has it.
    time
        The time limit of an element, as Slurm writes it: ``30`` are minutes, ``1:00:00`` is an hour.
    setup
        Lines of shell that the job's script starts with, such as ``module load gcc``.
    launcher
        The words before a measured command, such as ``srun -n 4``; none measures the command by itself.
    python
        The words that start Python on a node, such as ``apptainer exec crossperf.sif python3``; none takes the same
        interpreter as here.
    at_once
        Elements that may run at the same time.
    batch
        Inputs that an element takes.
    tries
        How often an input may be cut off by what befalls its job before it counts as failed.
    warn_s
        Seconds before the time limit at which a job is warned, so that it is queued again in time.
    options
        Further options of ``sbatch``, by their long names.
    """

    partition: str
    nodes: _Count = 1
    cpus: _Count | None = None
    memory: str | None = None
    gres: str | None = None
    exclusive: bool = False
    time: str = "1:00:00"
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    setup: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    at_once: _Count = 16
    batch: _Count = 30
    tries: _Count = 3
    warn_s: Annotated[int, Between(least=1, most=65535)] | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def limit_s(self) -> float:
        """The time limit in seconds; infinite where there is none."""
        seconds = seconds_of(self.time)
        return math.inf if seconds is None else seconds

    @property
    def warning_s(self) -> int:
        """Seconds before the limit at which a job is warned: by default 90, or a quarter of a short limit."""
        return self.warn_s or int(min(90.0, self.limit_s / 4))

    def sbatch(self) -> dict[str, str | bool]:
        """Return the options of ``sbatch`` by their long names; ``True`` stands for one without a value.

        >>> Allocation("cpu", cpus=4, time="30").sbatch()
        {'partition': 'cpu', 'nodes': '1', 'time': '30', 'requeue': True, 'cpus-per-task': '4'}
        """
        options: dict[str, str | bool] = {"partition": self.partition, "nodes": str(self.nodes), "time": self.time}
        options["requeue"] = True
        named = {"cpus-per-task": self.cpus, "mem": self.memory, "gres": self.gres, "account": self.account}
        named |= {"qos": self.qos, "constraint": self.constraint}
        options |= {name: str(value) for name, value in named.items() if value is not None}
        if self.exclusive:
            options["exclusive"] = True
        return options | dict(self.options)


@dataclass(frozen=True)
class ClusterSite:
    """The platforms of a site with the resources of each, and where evaluations run (`workers`).

    `folder` is one that login and compute nodes share, for the files of jobs; ``None`` keeps them beside the results.
    `poll_s` is how often Slurm is asked.
    """

    path: Path
    platforms: Mapping[str, Allocation]
    workers: Allocation | None = None
    folder: Path | None = None
    poll_s: float = 10.0

    def allocation(self, platform: str) -> Allocation:
        """Return what a job of a platform asks for; one that the file does not name raises."""
        if platform not in self.platforms:
            known = some_of(self.platforms, 20) or "none"
            problem = f"no platform {platform!r}{did_you_mean(platform, self.platforms)}, expected one of {known}"
            raise self._refusal([f"{problem}. Add a table [platforms.{platform}]"])
        return self.platforms[platform]

    def for_workers(self) -> Allocation:
        """Return what a job of an evaluation asks for."""
        if self.workers is None:
            raise self._refusal(["no table [workers], expected one with the partition that evaluations run in"])
        return self.workers

    def _refusal(self, problems: list[str]) -> SiteFileError:
        return _refusal(self.path, problems)


def _refusal(path: Path, problems: list[str]) -> SiteFileError:
    return SiteFileError(f"{path}: {'; '.join(problems)}. Correct the site.", path=str(path), problems=problems)


def read(path: str | Path) -> ClusterSite:
    """Return the site of a TOML file, checked as far as the file alone tells; all problems are named at once."""
    path = Path(path)
    table, problems = _toml(path), list[str]()
    known = {"platforms", "workers", "defaults", "folder", "poll_s"}
    problems += [f"{name!r} is no setting of a site{did_you_mean(name, known)}" for name in sorted({*table} - known)]
    defaults, platforms = _table(table, "defaults", problems), _table(table, "platforms", problems)
    of_each = {f"platforms.{name}": facts for name, facts in platforms.items()}
    of_each |= {"workers": table["workers"]} if "workers" in table else {}
    if not of_each:
        problems.append("no platforms, expected at least one table [platforms.NAME] or a table [workers]")
    made = {name: _allocation(name, facts, defaults, problems) for name, facts in of_each.items()}
    folder, poll_s = table.get("folder"), table.get("poll_s", 10.0)
    if folder is not None and not (isinstance(folder, str) and folder.strip()):
        problems.append(f"folder is {plain.shown(folder)}, expected the path of a folder that all nodes share")
    if isinstance(poll_s, bool) or not isinstance(poll_s, int | float) or not 0.05 <= poll_s <= 3600:
        problems.append(f"poll_s is {plain.shown(poll_s)}, expected seconds from 0.05 to 3600")
    if problems:
        raise _refusal(path, problems)
    whole = {name.removeprefix("platforms."): own for name, own in made.items() if own and name != "workers"}
    shared = None if folder is None else path.parent.absolute() / Path(folder).expanduser()
    return ClusterSite(path, whole, made.get("workers"), shared, float(poll_s))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(read_bytes(path, _MOST_BYTES))
    except OSError as error:
        raise SiteFileError(
            f"{path}: cannot be read ({error.strerror}), expected a TOML file.", path=str(path)
        ) from error
    except ValueError as error:
        raise SiteFileError(f"{path}: is not TOML ({error}). Correct it.", path=str(path)) from error


def _table(table: Mapping[str, Any], name: str, problems: list[str]) -> dict[str, Any]:
    value = table.get(name, {})
    if isinstance(value, dict):
        return value
    problems.append(f"{name} is {plain.shown(value)}, expected a table")
    return {}


def _allocation(name: str, facts: Any, defaults: Mapping[str, Any], problems: list[str]) -> Allocation | None:
    """Return the resources of one table, or ``None`` where they are not sound."""
    if not isinstance(facts, dict):
        problems.append(f"{name} is {plain.shown(facts)}, expected a table [{name}]")
        return None
    facts, before = {**defaults, **facts}, len(problems)
    kinds = typing.get_type_hints(Allocation, include_extras=True)
    problems += [f"[{name}] {key!r} is no setting{did_you_mean(key, kinds)}" for key in sorted({*facts} - {*kinds})]
    if "partition" not in facts:
        problems.append(f"[{name}] has no partition, expected one")
    values = {}
    for own in fields(Allocation):
        if own.name in facts:
            try:
                values[own.name] = plain.from_json(kinds[own.name], _words(own.name, facts[own.name]))
            except ValueError as error:
                problems.append(f"[{name}] {own.name}: {error}")
    problems += [f"[{name}] {problem}" for problem in _unsound(values)]
    return Allocation(**values) if len(problems) == before else None


def _words(name: str, value: Any) -> Any:
    """Return the words of a command that was written as one text, or a time limit that was written as a number."""
    if name in ("launcher", "python") and isinstance(value, str):
        return shlex.split(value)
    return str(value) if name == "time" and type(value) is int else value


def _unsound(values: Mapping[str, Any]) -> Iterator[str]:
    for name in ("partition", "memory", "gres", "account", "qos", "constraint"):
        value = values.get(name)
        if value is not None and not _WORD.fullmatch(value):
            yield f"{name} is {plain.shown(value)}, expected a word without blanks"
    limit = str(values.get("time", "1")).strip()
    if seconds_of(limit) in (None, 0.0) and limit.upper() not in ("UNLIMITED", "INFINITE"):
        yield f"time is {plain.shown(limit)}, expected a limit as Slurm has it, such as 30 (minutes) or 1:00:00"
    for name in ("setup", "launcher", "python"):
        if any("\0" in word or (name != "setup" and "\n" in word) for word in values.get(name, ())):
            yield f"{name} holds a character that no line of a script can hold"
    for name, value in values.get("options", {}).items():
        if name in _TAKEN:
            yield f"options names {name!r}, which another setting or crossperf itself decides"
        elif not _OPTION.fullmatch(name) or not _WORD.fullmatch(value):
            yield f"options has {name} = {plain.shown(value)}, expected a long option of sbatch with a word"
