"""Advice for an sbatch command line: what it asks for, and the partition that suits, by the controller's own word.

What it asks for stands in its words, in variables, and in the lines of its script that start with #SBATCH.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossperf.documents import MEGABYTE, read_text
from crossperf.schedule.policies import Ask, Policy
from crossperf.schedule.slurm import controller
from crossperf.schedule.slurm.controller import Queue, seconds_of
from crossperf.schedule.slurm.names import WORDS, Named, named
from crossperf.schedule.slurm.ranking import UNKNOWN_S, LiveQueues, options
from crossperf.schedule.slurm.table import PartitionChoice, PartitionFacts, StoredTable

#: Behind jobs without a limit Slurm predicts a start in some thousand years.
_YEAR_S = 365 * 86400
#: Slurm takes scripts of up to 4 MB; of a longer one nothing is read.
_MOST_BYTES = 16 * MEGABYTE
_SBATCH = WORDS["sbatch"]
_SHORT_VALUES, _SHORT, _VARIABLES = _SBATCH["short_values"], _SBATCH["short"], _SBATCH["variables"]
_FLAGS, _VALUED = frozenset(_SBATCH["flags"]), frozenset(_SBATCH["valued"])
#: Options with which sbatch prints something and reads no script.
_ANSWERS_AT_ONCE = frozenset(("help", "usage", "version"))
#: Options with which a user asks for generic resources.
_GRES = ("gres", "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket")
#: Options with which a user names places; such a job stays where it is.
_PLACES = ("nodelist", "nodefile", "reservation", "clusters")


@dataclass(frozen=True)
class Submission:
    """An sbatch command: its words after ``sbatch``, the options that they and the script set, and the script.

    `takes_stdin` tells that sbatch would read the script from its standard input, and the first `n_options` of the
    arguments come before the script.
    """

    arguments: tuple[str, ...]
    n_options: int
    options: Mapping[str, str]
    script: str
    job_name: str
    takes_stdin: bool
    heterogeneous: bool = False

    @property
    def fixed(self) -> str | None:
        """Why this job stays as it is, or ``None``."""
        if partition := self.options.get("partition"):
            return f"partition {partition} was asked for"
        if self.heterogeneous:
            return "the job is heterogeneous"
        return next((f"--{name} was asked for" for name in _PLACES if self.options.get(name)), None)

    @property
    def nodes(self) -> int:
        """The least number of nodes that was asked for; 1 where none was."""
        least = re.match(r"(\d{1,10})(?!\d)([kKmM]?)", self.options.get("nodes", ""))
        times = {"k": 1024, "m": 1024**2}
        return max(1, int(least[1]) * times.get(least[2].lower(), 1)) if least else 1

    @property
    def limit_s(self) -> float | None:
        """The time limit that was asked for."""
        return seconds_of(self.options.get("time", ""))

    def named(self, user: str) -> Named:
        """Return what the job is called."""
        return named(self.job_name, user, self.options.get("comment", ""), self.script, self.nodes)


def parse(arguments: Sequence[str], environment: Mapping[str, str], stdin: bytes | None = None) -> Submission:
    """Return what an sbatch command line asks for; what it gets wrong is left for sbatch to say.

    Parameters
    ----------
    arguments
        The words after ``sbatch``.
    stdin
        The script where sbatch reads it from its standard input; ``None`` where that was not read.
    """
    given, rest = _split(list(arguments))
    script, name = "", "sbatch"
    if "wrap" in given:
        script, name = given["wrap"], "wrap"
    elif rest:
        script, name = _text_of(rest[0]), Path(rest[0]).name
    elif stdin is not None:
        script = stdin.decode(errors="replace")
    lines = {} if "wrap" in given else _lines_of(script)
    variables = {option: environment[name] for name, option in _VARIABLES.items() if environment.get(name)}
    options = lines | variables | given
    heterogeneous = ":" in arguments or bool(re.search(r"(?m)^#SBATCH\s+(hetjob|packjob)\b", script))
    takes_stdin = "wrap" not in given and not rest and not _ANSWERS_AT_ONCE & given.keys()
    n_options = len(arguments) - len(rest)
    if n_options and arguments[n_options - 1] == "--":
        n_options -= 1
    job_name = options.get("job-name", name)
    return Submission(tuple(arguments), n_options, options, script, job_name, takes_stdin, heterogeneous)


def _split(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the options of a command line by their long names, and what follows them."""
    options: dict[str, str] = {}
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        options.update(_long(word[2:], words) if word.startswith("--") else _short(word[1:], words))
    return options, words


def _long(word: str, words: list[str]) -> Iterator[tuple[str, str]]:
    written, equals, value = word.partition("=")
    matches = [written] if written in _VALUED else [name for name in (*_VALUED, *_FLAGS) if name.startswith(written)]
    name = matches[0] if len(matches) == 1 else written
    if name in _VALUED and not equals and words:
        value = words.pop(0)
    yield name, value


def _short(letters: str, words: list[str]) -> Iterator[tuple[str, str]]:
    for place, letter in enumerate(letters):
        if letter in _SHORT_VALUES:
            value = letters[place + 1 :] or (words.pop(0) if words else "")
            yield _SHORT.get(letter, letter), value
            return
        yield _SHORT.get(letter, letter), ""


def _text_of(path: str) -> str:
    try:
        return read_text(path, _MOST_BYTES, errors="replace")
    except OSError:
        return ""


def _lines_of(script: str) -> dict[str, str]:
    """Return the options of the #SBATCH lines, which end at the first command."""
    options: dict[str, str] = {}
    for line in script.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith("#SBATCH"):
            try:
                words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
            except ValueError:
                continue
            options |= _split(words)[0]
    return options


@dataclass(frozen=True)
class Advice:
    """A partition for a job, or ``None`` to leave it as it is, with the reason in one sentence.

    `limit_s` is the time limit that suits the partition, ``None`` where the job asked for none or stays. `adds` are
    options that the job needs there: a GPU, and the limit that it would have had in the default partition.
    """

    partition: str | None
    reason: str
    limit_s: float | None = None
    adds: tuple[str, ...] = ()


def advise(
    submission: Submission,
    table: StoredTable,
    policy: Policy,
    user: str,
    *,
    stdin: bytes | None = None,
    deadline_s: float | None = None,
    scale_limits: bool = False,
    sbatch: str = "sbatch",
) -> Advice:
    """Return where a job should run; raises `ControllerError` where the controller cannot be asked.

    Unless limits are scaled, a job goes to a slower partition than the default one only if it is known to end in time.
    """
    job = submission.named(user)
    if job.off:
        return Advice(None, "the job wants no advice (crossperf=off)")
    if submission.fixed:
        return Advice(None, submission.fixed)
    entry = table.find(job)
    if entry is None:
        names = " or ".join(repr(app) for app in job.apps) or "a job without a name"
        return Advice(None, f"the table knows nothing of {names}")
    (app, _, input_), row = entry
    if not row.choices:
        return Advice(None, f"the run of {app!r} looks unknown to the model, or no partition can run it")
    controller.refuse_unless_up()
    queues = controller.queues()
    facts = {partition.partition: partition for partition in table.partitions}
    adds = {name: _adds(submission, facts[name], table.default, queues) for name in facts if name in queues}
    starts = {
        choice.partition: controller.start(
            choice.partition, (*adds[choice.partition], *submission.arguments), stdin, sbatch
        )
        for choice in row.choices
        if choice.partition in adds
    }
    base = next((choice for choice in row.choices if choice.partition == table.default), None)
    limit_s = submission.limit_s or _default_limit_s(queues.get(table.default))
    open_to_it = [
        choice
        for choice in row.choices
        if (start := starts.get(choice.partition)) is not None
        and start.refused is None
        and (scale_limits or lasts(choice, base, row.seconds, limit_s))
    ]
    if not open_to_it:
        reason = next((start.refused for start in starts.values() if start.refused), "none of them exists")
        return Advice(None, f"no partition of the table can take it ({reason})")
    limit_s = submission.limit_s
    seconds = row.seconds or limit_s or UNKNOWN_S
    ask = Ask(submission.nodes, limit_s or seconds, app, input_, user, deadline_s=deadline_s)
    live = LiveQueues(queues, lambda name, _: starts[name].wait_s)
    best = open_to_it[policy(ask, options(open_to_it, seconds, facts, ask.nodes, live), np.random.default_rng())]
    scaled_s = None
    if limit_s is not None and base is not None and best is not base:
        longest_s = queues[best.partition].limit_s or math.inf
        scaled_s = min(limit_s * best.high / base.relative, longest_s)
    waits = ", ".join(f"{name} {duration(start.wait_s)}" for name, start in starts.items() if start.refused is None)
    where = f"partition {best.partition} ({facts[best.partition].platform})"
    reason = f"{where}: {_words(app, best, base, row.seconds)}; predicted waits: {waits}"
    return Advice(best.partition, reason, scaled_s, adds[best.partition])


def _adds(submission: Submission, facts: PartitionFacts, default: str, queues: Mapping[str, Queue]) -> tuple[str, ...]:
    """Return the options that a job needs in a partition: its generic resource, and the limit of the default one."""
    words = []
    if facts.adds and not any(submission.options.get(name) for name in _GRES):
        words.append(f"--gres={facts.adds}")
    if facts.partition != default and "time" not in submission.options and default in queues:
        limit_s = _default_limit_s(queues[default])
        words.append(f"--time={'UNLIMITED' if limit_s is None else math.ceil(limit_s / 60)}")
    return tuple(words)


def _default_limit_s(queue: Queue | None) -> float | None:
    """Return the limit of a job that asks for none, ``None`` where it has none."""
    return None if queue is None else queue.default_s or queue.limit_s


def lasts(choice: PartitionChoice, base: PartitionChoice | None, seconds: float | None, limit_s: float | None) -> bool:
    """Tell whether a job can end within its limit in a partition that is slower than the default one."""
    if base is None or choice.relative <= base.relative or limit_s is None:
        return True
    return seconds is not None and seconds * choice.high <= limit_s


def _words(app: str, best: PartitionChoice, base: PartitionChoice | None, seconds: float | None) -> str:
    how = f"measured {best.runs} times" if best.runs else "predicted"
    time = "" if seconds is None else f"about {duration(seconds * best.relative)}"
    if base is not None and base.partition != best.partition:
        ratio, low, high = (number / base.relative for number in (best.relative, best.low, best.high))
        against = f"{ratio:.3g} times as long as on {base.partition} (range {low:.3g} to {high:.3g}; {how})"
        return f"{app} takes {', '.join(filter(None, (time, against)))}"
    return f"{app} takes {time} there ({how})" if time else f"{app} is best left there ({how})"


def command(sbatch: str, submission: Submission, advice: Advice, *, scale_limits: bool = False) -> list[str]:
    """Return the command that submits a job as advised: what the user wrote, with the choice added."""
    words = list(submission.arguments)
    if scale_limits and advice.limit_s is not None:
        # The last word wins, so it stands behind the user's options; and before the script, whose arguments follow.
        words.insert(submission.n_options, f"--time={max(1, math.ceil(advice.limit_s / 60))}")
    chosen = [] if advice.partition is None else [f"--partition={advice.partition}"]
    return [sbatch, *chosen, *advice.adds, *words]


def duration(seconds: float) -> str:
    """Return a duration as a person reads it.

    >>> duration(0.0), duration(75.0), duration(600.0), duration(8640.0), duration(1e12)
    ('0 s', '75 s', '10 min', '2.4 h', 'over a year')
    """
    if seconds > _YEAR_S:
        return "over a year"
    if seconds < 90:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 5400 else f"{seconds / 3600:.3g} h"
