"""Campaigns on a site, at the command line: check, start, follow in the background, status, cancel."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crossperf import plain
from crossperf.cli.campaign import write_runs
from crossperf.cli.output import progress_line, say, tell
from crossperf.errors import CollectError, CrossperfError, several, some_of

if TYPE_CHECKING:
    from crossperf.campaign.on_site import Show
    from crossperf.campaign.progress import SiteProgress
    from crossperf.campaign.spec import Mode, Spec

LOG = "driver.log"
#: Seconds between lines of progress where nobody watches a terminal.
_QUIET_S = 30.0
#: Seconds in which a driver in the background must have taken over.
_PATIENCE_S = 30.0
#: Failed inputs that are named; the table has them all.
_NAMED = 8


@dataclass(frozen=True)
class SiteRequest:
    """A campaign on a site as it is asked for on the command line."""

    spec_file: Path
    site_file: Path
    output: Path | None
    spec: Spec
    modes: Sequence[Mode]
    counts: Sequence[str]
    visits: int | None

    def check(self) -> int:
        """Ask the cluster about every platform, and tell what it says; 1 where something is wrong."""
        from crossperf import cluster
        from crossperf.cluster.checking import check

        site = cluster.read(self.site_file)
        # All tables first: what the file lacks is known before the cluster is asked.
        wanted = {mode.name: site.allocation(mode.name) for mode in self.modes}
        bad = 0
        for name, allocation in wanted.items():
            verdict = check(name, allocation)
            bad += bool(verdict.problems)
            where = f"{name}: partition {verdict.partition}"
            if verdict.problems:
                tell(f"{where}: {'; '.join(verdict.problems)}")
            else:
                starts = "at once" if verdict.wait_s < 60 else f"in about {verdict.wait_s / 60:.0f} min"
                tell(f"{where}: ok, {several(verdict.nodes, 'node')}; a job would start {starts}")
        if bad:
            say(f"{several(bad, 'platform')} of {len(wanted)} cannot be measured; correct {self.site_file}")
        return int(bad > 0)

    def run(self, *, detach: bool, retry: bool) -> int:
        """Submit what is missing, and follow it here or in the background."""
        from crossperf import cluster
        from crossperf.campaign import on_site

        if self.output is None:
            raise CollectError("no folder for the campaign, expected one with -o")
        site = cluster.read(self.site_file)
        names = [mode.name for mode in self.modes]
        settings = on_site.settings_for(self.output, self.spec_file, site, names, self.counts, self.visits)
        if on_site.is_new(self.output):
            # One that was begun is followed whatever the cluster says now; Slurm itself refuses what it cannot take.
            self._refuse_unless_taken(site, settings)
        self.output.mkdir(parents=True, exist_ok=True)
        with _showing() as show:
            try:
                refused = on_site.drive(
                    self.spec, site, settings, self.output, say, show, retry=retry, follow=not detach
                )
            except KeyboardInterrupt:
                say(f"interrupted; jobs go on, and what they measure is kept. {_NEXT.format(output=self.output)}")
                return 130
        if detach:
            return self._detach()
        write_runs(self.spec, self.output)
        _name_failures(self.output)
        return int(bool(refused))

    def _refuse_unless_taken(self, site: Any, settings: Any) -> None:
        from crossperf.campaign import on_site

        verdicts = on_site.checked(site, settings)
        problems = [f"platform {own.platform}: {problem}" for own in verdicts for problem in own.problems]
        if problems:
            sentence = f"{site.path}: {'; '.join(problems)}. Nothing was submitted; correct the site."
            raise CrossperfError(sentence, path=str(site.path), problems=problems)

    def _detach(self) -> int:
        """Leave a driver in the background."""
        from crossperf.campaign.ledger import driver_of

        output = Path(str(self.output))
        words = ["campaign", "run", str(self.spec_file), "-o", str(output), "--site", str(self.site_file)]
        words += [word for mode in self.modes for word in ("--platform", mode.name)]
        words += [word for name in self.counts for word in ("--counts", name)]
        words += ["--visits", str(self.visits)] if self.visits else []
        with (output / LOG).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "crossperf", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        end = time.monotonic() + _PATIENCE_S
        while driver_of(output) is None and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        tell(f"submitted; process {process.pid} follows in the background and writes {output / LOG}")
        say(f"how far it is: crossperf campaign status {output}")
        return 0


_NEXT = "Follow them with the same command, or cancel them: crossperf campaign cancel {output}"


def _facts(output: Path) -> dict[str, Any]:
    from crossperf.campaign.ledger import driver_of
    from crossperf.campaign.progress import read_progress

    progress = read_progress(output)
    return {"driver": driver_of(output), **(plain.to_json(progress) if progress else {"platforms": []})}


def status(output: Path) -> dict[str, Any]:
    """Tell how far a campaign is, and return the same as facts; where nobody drives it, look first."""
    from crossperf.campaign import on_site
    from crossperf.campaign.ledger import driver_of
    from crossperf.campaign.progress import read_progress

    spec, _, _ = on_site.opened(output)
    driver = driver_of(output)
    if driver is None:
        with contextlib.suppress(CollectError):  # one has started meanwhile
            on_site.look(output, say)
            write_runs(spec, output)
    progress = read_progress(output)
    for own in progress.platforms if progress else ():
        tell(own)
    if progress and progress.unreachable:
        tell(f"Slurm does not answer: {progress.unreachable}")
    left = sum(own.total - own.done - own.failed for own in progress.platforms) if progress else 0
    if driver:
        say(f"{driver} drives it")
    elif left:
        say("nobody drives it: jobs that are submitted go on; start the same command again for the rest")
    _name_failures(output)
    return _facts(output)


def cancel(output: Path) -> int:
    """Cancel what was submitted; where nobody drives the campaign, wait until it is gone and merge what it wrote."""
    from crossperf.campaign import on_site
    from crossperf.campaign.ledger import driver_of

    spec, _, _ = on_site.opened(output)
    driver = driver_of(output)
    with _showing() as show:
        cancelled = on_site.cancel(output, say, show, driven=driver is not None)
    tell(f"cancelled {several(cancelled, 'element')}; what was measured is kept in {output}")
    if driver:
        say(f"{driver} drives the campaign and ends when they are gone")
    else:
        write_runs(spec, output)
    return 0


def _name_failures(output: Path) -> None:
    """Name the first inputs that failed, with their reasons."""
    from crossperf.campaign.log import timed

    visits = [own for own in timed(output) if own.error is not None]
    failed = list(dict.fromkeys(f"{own.work.line} on {own.platform}: {own.error}" for own in visits))
    for text in failed[:_NAMED]:
        say(f"failed: {text}")
    if len(failed) > _NAMED:
        say(f"failed: {len(failed) - _NAMED:,} more, which {output / 'runs.jsonl'} has with their reasons")


@contextlib.contextmanager
def _showing() -> Iterator[Show]:
    """Yield what shows progress: on the last line of a terminal, or as a line when it has changed, now and then."""
    shown, at = "", 0.0
    with progress_line() as line:

        def show(progress: SiteProgress) -> None:
            nonlocal shown, at
            text = "; ".join(map(str, progress.platforms))
            if sys.stderr.isatty():
                line(text)
            counts = some_of([f"{own.done}/{own.failed}/{own.running}" for own in progress.platforms], 999)
            if not sys.stderr.isatty() and counts != shown and (progress.ended or time.monotonic() - at >= _QUIET_S):
                say(text)
                shown, at = counts, time.monotonic()

        yield show
