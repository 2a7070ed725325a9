"""Which workers a study runs on: of this process, processes of this machine, a Dask cluster, or jobs of a site."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from crossperf.errors import SettingsError
from crossperf.workers.here import Here
from crossperf.workers.processes import processes
from crossperf.workers.study import Workers

if TYPE_CHECKING:
    from crossperf.workers.dask_cluster import Tls


@contextmanager
def chosen(
    *,
    jobs: int | None = None,
    dask: str | None = None,
    tls: Tls | None = None,
    site: str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    threads: int = 1,
) -> Iterator[Workers]:
    """Yield the workers that settings name: one kind of them, or this process where they name none.

    Parameters
    ----------
    jobs
        Processes of this machine.
    dask, tls
        The address of a Dask scheduler, and the files of a TLS connection to it.
    site, folder
        A SITE (a TOML file), and a folder for its jobs that all nodes share.
    threads
        Threads of the numerical libraries of each worker; this process keeps its own.

    >>> with chosen() as workers:
    ...     workers.capacity()
    1
    """
    named = {"jobs": jobs, "dask": dask, "site": site}
    given = [name for name, value in named.items() if value is not None]
    if len(given) > 1:
        raise SettingsError(f"{given[0]} and {given[1]}: found both, expected one kind of workers.", argument=given[1])
    if tls is not None and dask is None:
        raise SettingsError("tls: found without the address of a Dask scheduler, expected both.", argument="tls")
    context: AbstractContextManager[Workers] = nullcontext(Here())
    if jobs is not None:
        context = processes(jobs, threads=threads)
    elif dask is not None:
        from crossperf.workers import dask_cluster

        context = dask_cluster.dask(dask, threads=threads, tls=tls)
    elif site is not None:
        from crossperf.workers import site_jobs

        if folder is None:
            raise SettingsError("site: found without a folder for its jobs, expected one that all nodes share.")
        context = site_jobs.site(site, folder, threads=threads)
    with context as workers:
        yield workers
