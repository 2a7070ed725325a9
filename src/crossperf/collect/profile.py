r"""Profiles one command: native repeats for its runtime, and once more under each tool that counts.

```
command --Runner--> Execution (x repeats) --system--> Measurement  \
        --Backend-> Measurement (one for each tool)                 > to_run -> Run (x repeats)
```
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from crossperf.collect.backends import AUTO, backends
from crossperf.collect.guard import Guard
from crossperf.collect.measuring import COUNT_LIMIT_S, Progress, Say, measure
from crossperf.collect.process import Runner, resolve
from crossperf.collect.profiled import Profile
from crossperf.collect.starters import workload
from crossperf.collect.valgrind import CacheShape
from crossperf.errors import SettingsError
from crossperf.platforms import facts_of_this_machine, platform_of, read, user_file
from crossperf.records import Run
from crossperf.text import as_utf8

#: Takes runs as they become known.
Keep = Callable[[Sequence[Run]], None]

__all__ = ["Profile", "measure", "profile"]


def profile(
    command: Sequence[str],
    *,
    app: str | None = None,
    input: str | None = None,  # noqa: A002
    platform: str | None = None,
    platform_class: str | None = None,
    repeats: int = 3,
    backend: str = AUTO,
    cache: Mapping[str, CacheShape] | str | None = None,
    multiplex: bool = False,
    launch_limit: int | None = None,
    timeout: float | None = None,
    success: Sequence[int] = (0,),
    count_limit: float = COUNT_LIMIT_S,
    whole: bool = False,
    ranks: int | None = None,
    threads: int | None = None,
    registry: str | Path | None = None,
    stdout: int | None = None,
    say: Say = lambda _: None,
    progress: Progress = lambda _: None,
    keep: Keep = lambda _: None,
    guard: Guard | None = None,
) -> Profile:
    """Return the runs of a command on this machine: its runtimes, and the counters of its work.

    The first execution prints where the caller prints; later ones print nowhere. The others are spread between and
    after those under tools. A failed execution ends the profiling, and so does an interrupt; what was measured so
    far is returned.

    Parameters
    ----------
    command
        The program with its arguments; no shell is involved.
    app, input
        Names of the application and its input; the defaults are the program's name and its arguments, without
        what only starts it (``mpirun``, ``python3``, ...).
    platform
        Name of this machine; the default is its name in `registry`, or one made from its processor.
    platform_class
        ``cpu`` or ``gpu``; the default is ``gpu`` where the command launched kernels.
    repeats
        Executions for the runtime.
    backend
        ``auto`` (every tool that works here and adds something), ``quick`` (of these perf alone), ``os`` (none), or
        names: ``perf,valgrind``.
    cache, multiplex, launch_limit
        See `crossperf.collect.backends.backends`.
    timeout
        Seconds after which a native execution is ended.
    success
        Exit statuses that are no failure: ``(0, 1)`` for ``diff``, which tells by 1 that files differ.
    count_limit
        Seconds for all executions under tools together; what is not counted by then is missing.
    whole
        Measure the whole program although it marks a region.
    ranks, threads
        MPI ranks and threads, for the record; by default the ranks that the command's launcher is given.
    registry
        The file of the platforms that are known; the default is the user's own.
    stdout
        Descriptor for what the first execution prints; the default is the caller's own.
    say
        Called with a line of text before each step that takes long.
    progress
        Called several times a second with how far a silent execution is, and with ``None`` at its end.
    keep
        Called with each run as soon as it has ended, and again when a tool has counted more; its ``run_id`` stays.
    guard
        Ends the command where this process is killed; by default one that is started for it.

    Returns
    -------
    Profile
        `Profile.runs` holds one run for each execution.

    Examples
    --------
    >>> result = profile(["true"], repeats=2, backend="os", platform="here")
    >>> [(run.app, run.platform, run.repeat, run.status) for run in result.runs]
    [('true', 'here', 0, 'ok'), ('true', 'here', 1, 'ok')]
    """
    resolve(command)
    _refuse_blank(app=app, platform=platform, platform_class=platform_class)
    platform, platform_class = (name and as_utf8(name) for name in (platform, platform_class))
    named = workload(command, os.environ)
    kept = read(user_file() if registry is None else registry)
    facts = facts_of_this_machine()
    tools = backends(facts, cache, multiplex, launch_limit)
    start = Profile(
        tuple(command),
        as_utf8(named.app if app is None else app),
        as_utf8(named.input if input is None else input),
        class_given=platform_class,
        ranks=named.ranks if ranks is None else ranks,
        threads=threads,
        facts=facts,
    )

    def named_here(result: Profile) -> Profile:
        return replace(result, platform_name=platform_of(facts, kept, platform, result.platform_class).name)

    def on_change(result: Profile, first: int) -> None:
        keep(named_here(result).runs_from(first))

    with contextlib.nullcontext(guard) if guard else Guard() as standing_by:
        runner = Runner(timeout, stdout=stdout, whole=whole, success=tuple(success), guard=standing_by)
        result = measure(start, tools, backend, repeats, count_limit, runner, say, progress, on_change)
    return named_here(result)


def _refuse_blank(**names: str | None) -> None:
    for argument, name in names.items():
        if name is not None and not name.strip():
            problem = f"{argument}: found an empty name, expected one with letters in it, or none for the default."
            raise SettingsError(problem, argument=argument)
