"""What is still to be submitted: for each platform the inputs that are left, in batches, one for each element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from crossperf.campaign.log import counted
from crossperf.campaign.rounds import Rounds, Turn
from crossperf.campaign.spec import Mode, Spec, Work
from crossperf.campaign.tasks import ArrayTasks, ElementTask
from crossperf.cluster import Allocation, ClusterSite

#: Platform (or ``counts``), round (or the name of the counts), workload, input.
Key = tuple[str, ...]


class SitePlan:
    """The inputs of a campaign on a site that nobody is at, as tasks.

    Parameters
    ----------
    modes
        The platforms that are asked for.
    counts
        The names of the counts that are asked for; each is taken on the first platform that has them.
    """

    def __init__(
        self, spec: Spec, modes: Sequence[Mode], counts: Sequence[str], site: ClusterSite, output: Path
    ) -> None:
        self._spec, self._modes, self._site, self._output = spec, modes, site, output
        self._counting = {
            name: mode.name for name in counts for mode in reversed(modes) if name in mode.counts
        }  # the first platform stays

    def tasks(
        self, platform: str, claimed: Mapping[Key, bool], cut_off: Mapping[tuple[str, str, str], int], *, retry: bool
    ) -> Iterator[ElementTask]:
        """Yield the tasks of a platform.

        Parameters
        ----------
        claimed
            What elements are at, and whether they are to count it.
        retry
            Take inputs that failed once more.
        """
        mode, batch = self._spec.mode(platform), self._site.allocation(platform).batch
        plan = Rounds(self._spec, self._modes, self._output, retry=retry)
        counting = {(key[0], *key[2:]) for key, counts in claimed.items() if counts}
        for name in plan.begin_all():
            works = plan.left(name).get(mode, [])
            works = [work for work in works if visit_key(platform, name, work) not in claimed]
            for own in _chunks(works, batch):
                uncounted = plan.uncounted(Turn(mode, own)) if self._spec.programs else set()
                fresh = {work for work in uncounted if (platform, work.workload, work.input) not in counting}
                counting |= {(platform, work.workload, work.input) for work in fresh}
                numbers = tuple(number for number, work in enumerate(own) if work in fresh)
                before = {work.line: times for work in own if (times := cut_off.get((platform, name, work.line)))}
                yield ElementTask(tuple(own), name, "", numbers, before)
        for name in (name for name, on in self._counting.items() if on == platform):
            done = {
                known.work for known in counted(self._output) if known.counts == name and not (known.error and retry)
            }
            works = [w for w in self._spec.works if w not in done and count_key(name, w) not in claimed]
            yield from (ElementTask(tuple(own), counts=name) for own in _chunks(works, batch))

    def array(self, platform: str, elements: Sequence[ElementTask]) -> ArrayTasks:
        """Return the tasks of an array, with what its jobs need to know."""
        allocation = self._site.allocation(platform)
        mode = replace(self._spec.mode(platform), launcher=launcher_of(allocation))
        spec = replace(self._spec, works=(), modes={platform: mode})
        return ArrayTasks(spec, platform, allocation.tries, tuple(elements))

    def total(self, platform: str) -> int:
        """Return how many visits a platform makes in all."""
        return self._spec.visits * len(self._spec.works)


def launcher_of(allocation: Allocation) -> tuple[str, ...]:
    """Return the words before a measured command.

    A step within a job's own step must share its processors.

    >>> launcher_of(Allocation("cpu", launcher=("srun", "-n", "4")))
    ('srun', '--overlap', '-n', '4')
    """
    words = allocation.launcher
    if words and words[0].rpartition("/")[2] == "srun" and "--overlap" not in words:
        return (words[0], "--overlap", *words[1:])
    return words


def visit_key(platform: str, name: str, work: Work) -> Key:
    """Return what a visit is known by."""
    return (platform, name, work.workload, work.input)


def count_key(counts: str, work: Work) -> Key:
    """Return what a counting is known by."""
    return ("counts", counts, work.workload, work.input)


def keys_of(platform: str, task: ElementTask) -> dict[Key, bool]:
    """Return the visits or countings of a task, and whether each is to be counted besides."""
    if task.counts:
        return {count_key(task.counts, work): False for work in task.works}
    return {visit_key(platform, task.round, own): number in task.to_count for number, own in enumerate(task.works)}


def _chunks(works: Sequence[Work], size: int) -> Iterator[Sequence[Work]]:
    for start in range(0, len(works), size):
        yield works[start : start + size]
