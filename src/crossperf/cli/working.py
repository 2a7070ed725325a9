"""Options of commands that run studies: who works on the pieces, and where finished ones are kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crossperf.cli.options import PATH
from crossperf.cli.output import json_on_stdout, say
from crossperf.errors import SettingsError

if TYPE_CHECKING:
    from crossperf.workers import Kept, Workers

_TLS = ("tls_ca", "tls_cert", "tls_key")
_NAMES = ("jobs", "threads", "dask", *_TLS, "site", "pieces", "resume")
_IN = click.IntRange(1, 4096)


def workers_options(jobs: str = "--jobs") -> Callable[[Any], Any]:
    """Return what adds the options; `jobs` is the flag for processes of this machine."""
    options = [
        click.option(
            jobs, "jobs", type=_IN, metavar="N", help="Work on N pieces at a time, by processes of this machine."
        ),
        click.option("--threads", type=_IN, help="Threads of each worker.  [1; without workers, as many as cores]"),
        click.option("--dask", metavar="ADDRESS", help="Work on a Dask cluster: the address of its scheduler."),
        click.option("--tls-ca", type=PATH, help="With --dask tls://...: the authority's certificate, in PEM."),
        click.option("--tls-cert", type=PATH, help="With --dask tls://...: your certificate, in PEM."),
        click.option("--tls-key", type=PATH, help="With --dask tls://...: its key, in PEM."),
        click.option("--site", type=PATH, metavar="SITE.toml", help="Work by jobs of a site: its table [workers]."),
        click.option("--pieces", type=PATH, metavar="DIR", help="Keep finished pieces in DIR.  [beside --json]"),
        click.option("--resume/--no-resume", default=True, help="Take pieces that were kept, or answer them again."),
    ]

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


class Working:
    """The options of a command that say who works, and where pieces are kept."""

    def __init__(self, options: dict[str, Any], output: Path | None, jobs: str = "--jobs") -> None:
        self._jobs = jobs
        self._given = {name: options.pop(name) for name in _NAMES}
        self._output = None if json_on_stdout() else output

    def refuse_all(self, needed: str) -> None:
        """Raise where any of the options was given without the one that they need."""
        given = [name for name in _NAMES if name != "resume" and self._given[name] is not None]
        if given:
            flag = self._jobs if given[0] == "jobs" else f"--{given[0].replace('_', '-')}"
            raise SettingsError(f"{flag}: found without {needed}, expected both: pieces are of a study.")

    @contextmanager
    def study(self) -> Iterator[tuple[Workers | None, Kept | None]]:
        """Yield the workers and the folder of pieces; ``None`` and ``None`` for this process that keeps nothing.

        Pieces beside an output are removed when the command has done its work; those of ``--pieces`` stay.
        """
        given = self._given
        folder = given["pieces"] or self._beside()
        chosen = {name: given[name] for name in ("jobs", "dask", "site")}
        if given["threads"] and not any(chosen.values()):
            advice = "OMP_NUM_THREADS sets them for this process"
            raise SettingsError(f"--threads: found without workers, expected {self._jobs}, --dask or --site; {advice}.")
        if folder is None and not any(chosen.values()):
            yield None, None
            return
        if given["site"] and folder is None:
            raise SettingsError("--site: found without a folder, expected --pieces DIR or --json FILE beside it.")
        from crossperf.workers import Kept
        from crossperf.workers.chosen import chosen as workers_of

        self._warn()
        # Of ``.`` the name as well: it stands in its absolute path.
        jobs_folder = folder and folder.absolute().parent / f"{folder.absolute().name}.jobs"
        how = {**chosen, "tls": self._tls(), "threads": given["threads"] or 1, "folder": jobs_folder}
        if folder is None:
            with workers_of(**how) as workers:
                yield workers, None
            return
        with Kept(folder, resume=given["resume"]) as kept:
            try:
                with workers_of(**how) as workers:
                    yield workers, kept
            except BaseException:
                self._leave(kept)
                raise
            if not given["pieces"]:
                kept.remove()

    def _beside(self) -> Path | None:
        """Return the folder beside the output; ``None`` without one, or where nothing can be written there."""
        if self._output is None or not os.access(self._output.parent, os.W_OK | os.X_OK):
            return None
        return self._output.with_name(f"{self._output.name}.pieces")

    def _warn(self) -> None:
        from crossperf.workers.dask_cluster import is_open

        if self._given["dask"] and is_open(self._given["dask"]):
            problem = "is neither encrypted nor protected: whoever reaches the scheduler can run code on its workers"
            advice = "On a shared network use tls:// with --tls-ca, --tls-cert and --tls-key"
            say(f"note: {self._given['dask']} {problem}. {advice}.")

    def _leave(self, kept: Kept) -> None:
        """Say what a study that was broken off leaves behind; nothing where it has not come to anything."""
        count = len(kept)
        if count:
            say(f"note: {count:,} finished pieces are in {kept.folder}; the same command goes on from them.")
        elif not self._given["pieces"]:
            kept.remove()

    def _tls(self) -> Any:
        files = {name.removeprefix("tls_"): self._given[name] for name in _TLS}
        if not any(files.values()):
            return None
        if not all(files.values()):
            raise SettingsError("--tls-ca, --tls-cert and --tls-key: found some, expected all three.")
        from crossperf.workers.dask_cluster import Tls

        return Tls(**files)
