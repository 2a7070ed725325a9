"""Reads Caliper profiles: ``.cali`` (through caliper-reader), ``json-split``, and JSON records.

A profile is a tree of regions with metrics. `read` makes one run of a file by default (``regions="whole"``),
since an application is what crossperf predicts. In a benchmark suite such as RAJAPerf each kernel is the
application: ``regions="leaf"`` makes one run of each innermost region, named after it. Nothing in a file tells
the two apart for sure, so the choice is the caller's.

Runtime is a region's time on the slowest rank; counts are summed over ranks. Names of metrics tell how they
were made, outermost step first: ``max#inclusive#sum#time.duration`` is the greatest, over ranks, of the sum of
a region's times with those of the regions inside.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NoReturn

from crossperf.catalog import FORMULAS, canonical
from crossperf.documents import MEGABYTE, parse, read_bytes
from crossperf.errors import MissingDependencyError
from crossperf.importers.files import SPELLINGS, start_of, text_of, unusable, utc_time
from crossperf.importers.measurement import SECONDS, Measurement
from crossperf.runs.rules import as_number

Regions = Literal["whole", "leaf"]

_MOST_BYTES = 1024 * MEGABYTE
_STEPS = ("sum", "min", "max", "avg", "any", "inclusive", "count", "scale", "ratio")
_RANK = ("mpi.rank", "rank")
#: Where a record was made: regions that were marked, or the call path of a sample.
_NESTED = ("path", "region", "function", "annotation", "loop", "source.function#callpath.address")
#: The timer, or the clock of the services that watch GPUs.
_TIMER = re.compile(
    rf"time|time(\.inclusive)?\.duration(\.(?P<unit>{'|'.join(SECONDS)}))?|(?P<host>(cupti|rocm)\.host\.duration)"
)
#: Events that formulas of the catalog read.
_EVENTS = frozenset(event for formula in FORMULAS for event in formula.events)
#: Left out of the metadata: long, or about a person.
_PRIVATE = ("libraries", "user", "uid")
_ADVICE = "Profile again, or copy the file again."


#: Paths of regions of one name; ``None`` is the whole execution.
_Chosen = Sequence[tuple[str, ...]] | None
#: A region's path (empty outside of all regions), the rank where known, and metrics by name.
_Record = tuple[tuple[str, ...], Any, dict[str, float]]


@dataclass(frozen=True)
class _Metric:
    """How a metric was made, from its name."""

    name: str
    base: str
    across: str = ""
    inclusive: bool = False
    unit_s: float | None = None
    beside_gpu: bool = False


@dataclass
class _CaliperProfile:
    """The content of one file."""

    path: Path
    records: list[_Record] = field(default_factory=list)
    of_region: dict[tuple[str, ...], list[_Record]] = field(default_factory=lambda: defaultdict(list))
    facts: dict[str, Any] = field(default_factory=dict)
    units: dict[str, str | None] = field(default_factory=dict)
    aliases: dict[str, str | None] = field(default_factory=dict)

    @cached_property
    def ranks(self) -> int | None:
        """The number of ranks, where it is known."""
        sizes = [as_number(self.facts.get(name)) for name in ("mpi.world.size", "jobsize")]
        of_records = len({rank for _, rank, _ in self.records if rank is not None}) or None
        return next((int(size) for size in sizes if size is not None and 1 <= size < 1e9), of_records)

    @cached_property
    def innermost(self) -> list[tuple[str, ...]]:
        """The paths of regions that hold no other one."""
        paths = list(dict.fromkeys(names for names, _, _ in self.records if names))
        outer = {names[:depth] for names in paths for depth in range(1, len(names))}
        return [names for names in paths if names not in outer]


def reads(path: Path) -> bool:
    """Tell whether a file is a Caliper profile in one of its three forms."""
    start = start_of(path)
    if start.startswith(b"__rec="):
        return True
    if path.suffix != ".json" or not start.lstrip().startswith((b"[", b"{")):
        return False
    try:
        facts = parse(read_bytes(path, _MOST_BYTES), lenient=True)
    except (OSError, ValueError):
        return False
    if isinstance(facts, dict) and all(isinstance(facts.get(name), list) for name in ("data", "columns", "nodes")):
        return True
    return any(_metric(str(name)).base == "time" for record in _records_of(facts) for name in record)


def _records_of(facts: Any) -> list[dict[str, Any]]:
    records = facts.get("records") if isinstance(facts, dict) else facts
    return records if isinstance(records, list) and all(isinstance(record, dict) for record in records) else []


def read(path: Path, regions: Regions = "whole") -> list[Measurement]:
    """Return one measurement of the whole file, or one of each innermost region."""
    records = path.suffix == ".cali" or start_of(path, 6) == b"__rec="
    profile = _read_cali(path) if records else _read_json(path)
    paths = list(dict.fromkeys(names for names, _, _ in profile.records if names))
    if not paths:
        recording = "have Caliper record them (for instance 'CALI_CONFIG=runtime-report,profile.mpi')"
        advice = f"Mark regions in the program (CALI_MARK_BEGIN), or {recording}."
        if any(name.startswith("cali.snapshot.event") for _, _, numbers in profile.records for name in numbers):
            advice = "Make a profile of it: cali-query -q 'AGGREGATE sum(time.duration) GROUP BY path' -o NEW.cali FILE"
            raise unusable(path, f"found a trace of events, expected a profile of regions. {advice}")
        raise unusable(path, f"found a Caliper profile with no regions, expected at least one. {advice}")
    metrics = _CaliperMetrics(profile)
    if metrics.time is None and not metrics.events and not metrics.own:
        _fail(path, "regions with neither times nor counts")
    if regions == "whole":
        return [_measurement(metrics, None)]
    leaves: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for names in profile.innermost:
        leaves[names[-1]].append(names)
    return [_measurement(metrics, same) for same in leaves.values()]


def _fail(path: Path, problem: str, cause: BaseException | None = None) -> NoReturn:
    raise unusable(path, f"found {problem}, expected a whole Caliper profile. {_ADVICE}") from cause


def _read_cali(path: Path) -> _CaliperProfile:
    try:
        from caliperreader import CaliperReader
    except ImportError as error:
        needed = "reading .cali files needs caliper-reader: pip install 'crossperf[caliper]'"
        advice = "JSON that cali-query writes ('cali-query -f json-split') is read without it."
        raise MissingDependencyError(f"{path}: {needed}. {advice}", path=str(path)) from error
    text = text_of(path, "a Caliper profile", errors="replace")
    _refuse_own_parents(path, text)
    reader = CaliperReader()
    try:
        reader.read(text.splitlines())
        attributes = {name: reader.attribute(name) for name in reader.attributes()}
        units = {name: attribute.get("attribute.unit") for name, attribute in attributes.items()}
        aliases = {name: attribute.get("attribute.alias") for name, attribute in attributes.items()}
    except Exception as error:  # the reader meets damage with whatever Python raises
        _fail(path, f"records that are damaged ({type(error).__name__}: {error})", error)
    # Caliper writes the run's globals last; before version 2 they stood with every record.
    whole = "\n__rec=globals" in f"\n{text}" or any("cali.caliper.version" in record for record in reader.records)
    if not text.endswith("\n") or not whole:
        _fail(path, "a file without the record of globals that Caliper writes last, so it is cut short")
    profile = _CaliperProfile(path, facts=dict(reader.globals), units=units, aliases=aliases)
    for record in reader.records:
        own = {name: value for name, value in record.items() if name not in profile.facts}
        _add(profile, own, _place(record))
    return profile


def _refuse_own_parents(path: Path, text: str) -> None:
    """Raise where a node is its own parent: Caliper's reader, which walks up to a node without one, would never end."""
    for line in text.splitlines():
        if line.startswith("__rec=node"):
            # A field may hold several values, of which the first counts; what is no number the reader refuses itself.
            fields = {
                field.split("=")[0]: as_number(field.partition("=")[2].split("=")[0]) for field in line.split(",")
            }
            if fields.get("parent") is not None and fields["parent"] == fields.get("id"):
                _fail(path, f"node {fields['parent']:g} that is its own parent")


def _place(record: Mapping[str, Any]) -> Any:
    return next((record[name] for name in _NESTED if record.get(name)), None)


def _read_json(path: Path) -> _CaliperProfile:
    try:
        facts = parse(read_bytes(path, _MOST_BYTES), lenient=True)
    except OSError as error:
        _fail(path, f"a file that cannot be read ({error.strerror})", error)
    except ValueError as error:
        _fail(path, f"text that is not JSON ({error})", error)
    profile = _CaliperProfile(path)
    if isinstance(facts, dict) and "columns" in facts:
        _read_split(profile, facts)
    elif records := _records_of(facts):
        if isinstance(facts, dict):
            profile.facts = {name: value for name, value in facts.items() if isinstance(value, str | int | float)}
        for record in records:
            _add(profile, record, _place(record))
    else:
        _fail(path, "JSON that is neither json-split nor a list of records")
    return profile


def _read_split(profile: _CaliperProfile, facts: dict[str, Any]) -> None:
    """Read ``data`` by ``columns``, where a region is the number of one of ``nodes``."""
    parts = {name: facts.pop(name, None) for name in ("data", "columns", "column_metadata", "nodes")}
    data, columns, nodes = parts["data"], parts["columns"], parts["nodes"]
    if not all(isinstance(part, list) for part in (data, columns, nodes)):
        _fail(profile.path, "json-split without data, columns or nodes")
    profile.facts = {name: value for name, value in facts.items() if isinstance(value, str | int | float)}
    paths = _paths(profile, nodes)
    names = [str(name) for name in columns]
    # Columns that are no values hold numbers of nodes.
    notes = parts["column_metadata"] if isinstance(parts["column_metadata"], list) else []
    noted = zip(names, notes, strict=False)
    labels = {name for name, note in noted if isinstance(note, dict) and not note.get("is_value", True)}
    region = next((names.index(name) for name in _NESTED if name in names), None)
    for row in data:
        if not isinstance(row, list) or len(row) != len(names):
            _fail(profile.path, f"a row of data that does not have {len(names)} cells")
        place = None if region is None else row[region]
        if place is not None and not (isinstance(place, int) and 0 <= place < len(paths)):
            _fail(profile.path, f"a row of data with node {place!r} of {len(paths)}")
        cells = {name: cell for name, cell in zip(names, row, strict=True) if name not in labels}
        _add(profile, cells, None if place is None else list(paths[place]))


def _paths(profile: _CaliperProfile, nodes: Sequence[Any]) -> list[tuple[str, ...]]:
    """Return each node's path; a parent stands before its children."""
    paths: list[tuple[str, ...]] = []
    for number, node in enumerate(nodes):
        parent = node.get("parent") if isinstance(node, dict) else -1
        if not (parent is None or (isinstance(parent, int) and 0 <= parent < number)):
            _fail(profile.path, f"node {number} that does not follow its parent")
        above = () if parent is None else paths[parent]
        paths.append((*above, str(node.get("label", ""))))
    return paths


def _add(profile: _CaliperProfile, record: Mapping[str, Any], named: Any) -> None:
    names = tuple(map(str, named)) if isinstance(named, list) else tuple(filter(None, str(named or "").split("/")))
    rank = next((record[name] for name in _RANK if isinstance(record.get(name), int | str)), None)
    cells = {name: as_number(value) for name, value in record.items() if name not in (*_RANK, *_NESTED)}
    numbers = {name: number for name, number in cells.items() if number is not None and math.isfinite(number)}
    profile.records.append((names, rank, numbers))
    profile.of_region[names].append((names, rank, numbers))


def _metric(name: str, alias: str | None = None) -> _Metric:
    """Return how a metric was made; its base is ``time``, an event, or something else.

    >>> made = _metric("sum#inclusive#sum#time.duration.ns")
    >>> made.base, made.across, made.inclusive, made.unit_s
    ('time', 'sum', True, 1e-09)
    >>> _metric("inclusive#sum#papi.PAPI_TOT_INS").base
    'PAPI_TOT_INS'
    """
    *steps, base = name.split("#")
    if not steps and (alias or name).lower() in SPELLINGS["caliper"]:
        across, inclusive = SPELLINGS["caliper"][(alias or name).lower()]
        return _Metric(name, "time", across, inclusive)
    if any(step not in _STEPS for step in steps):
        return _Metric(name, base)
    inclusive = "inclusive" in steps
    # Two aggregations, the inner one over a process and the outer one over ranks.
    across = steps[0] if len([step for step in steps if step not in ("inclusive", "scale")]) > 1 else ""
    if timed := _TIMER.fullmatch(base):
        unit = timed["unit"] or ("sec" if timed["host"] and "scale" in steps else "")
        return _Metric(name, "time", across, inclusive or "inclusive" in base, SECONDS.get(unit), bool(timed["host"]))
    return _Metric(name, canonical(base), across, inclusive)


class _CaliperMetrics:
    """Which metrics of a file are its time and its events."""

    def __init__(self, profile: _CaliperProfile) -> None:
        self.profile = profile
        names = list(dict.fromkeys(name for _, _, numbers in profile.records for name in numbers))
        metrics = [_metric(name, profile.aliases.get(name)) for name in names]
        if "time (exc)" in names:  # then the recipe calls inclusive time plainly "time"
            metrics = [replace(metric, inclusive=True) if metric.name == "time" else metric for metric in metrics]
        times = [metric for metric in metrics if metric.base == "time" and _outer(metric) != "count"]
        self.time = self._choose(times, ("max", "", "avg", "sum"))
        self.events: dict[str, _Metric] = {}
        events = [metric for metric in metrics if metric.base.startswith("PAPI_") or metric.base in _EVENTS]
        for base in dict.fromkeys(metric.base for metric in events):
            chosen = self._choose([metric for metric in events if metric.base == base], ("sum", "", "avg"))
            if chosen is not None:
                self.events[base] = chosen
        self.own = {counter: metric for metric in metrics if (counter := _counter_of(metric.base))}
        self.repeats = next((metric.name for metric in metrics if metric.base == "Reps"), None)
        used = {metric.name for metric in (*times, *events)}
        self.others = [name for name in names if name not in used]
        self.notes: list[str] = []
        self.unit_s = 1.0 if self.time is None else self._unit(self.time)

    @staticmethod
    def _choose(metrics: Sequence[_Metric], order: Sequence[str]) -> _Metric | None:
        """Return the best metric by its step across ranks, an inclusive one before an exclusive one."""
        # Without a step across ranks, min, max and avg are over a region's visits.
        visits = ("min", "max", "avg")
        usable = [each for each in metrics if each.across in order and (each.across or _outer(each) not in visits)]
        return min(usable, key=lambda metric: (order.index(metric.across), not metric.inclusive), default=None)

    def _unit(self, time: _Metric) -> float:
        named = time.unit_s or SECONDS.get(self.profile.units.get(time.name) or "")
        if named is not None:
            return named
        values = [numbers[time.name] for _, _, numbers in self.profile.records if time.name in numbers]
        whole = all(value.is_integer() for value in values) and max(values, default=0.0) >= 1.0
        unit, why = (1e-6, "whole numbers, as Caliper's timer counts microseconds") if whole else (1.0, "fractions")
        read_as = "microseconds" if whole else "seconds"
        self.notes.append(f"the file names no unit for {time.name}: read as {read_as}, since all are {why}")
        return unit


def _counter_of(base: str) -> str | None:
    """Return the counter that a metric of a suite or service is kept as; it is none of the catalog, or a part of one.

    >>> _counter_of("Flops/Rep"), _counter_of("topdown.l1_bound"), _counter_of("Node order")
    ('rajaperf_flops', 'topdown_l1_bound', None)
    """
    if level := re.fullmatch(r"topdown\.(\w+)", base):
        return f"topdown_{level[1]}"
    return SPELLINGS["caliper-counters"].get(base)


def _own_counters(metrics: _CaliperMetrics, regions: _Chosen) -> dict[str, float | None]:
    """Return what innermost regions hold beside times and events: totals, and shares where there is but one region.

    RAJAPerf says for each of its kernels what one repetition does, and how many there were.
    """
    profile = metrics.profile
    chosen = profile.innermost if regions is None else regions
    values: dict[str, float | None] = {}
    for counter, metric in metrics.own.items():
        records = [record for names in chosen for record in profile.of_region[names] if metric.name in record[2]]
        if not counter.startswith("topdown_"):
            ranks = 1 if any(rank is not None for _, rank, _ in records) or metric.across == "sum" else profile.ranks
            parts = [numbers[metric.name] * _repeats(metrics, metric, numbers) for _, _, numbers in records]
            values[counter] = math.fsum(parts) * (ranks or 1) if parts else None
        elif len(records) == 1:
            values[counter] = records[0][2][metric.name]
    return values


def _repeats(metrics: _CaliperMetrics, metric: _Metric, numbers: Mapping[str, float]) -> float:
    return numbers.get(metrics.repeats or "", 0.0) if metric.base.endswith("/Rep") else 1.0


def _on_gpu(profile: _CaliperProfile) -> bool:
    return bool(re.search(r"CUDA|HIP|SYCL|OMPTarget|OpenMPTarget", str(profile.facts.get("variant") or "")))


def _outer(metric: _Metric) -> str:
    return metric.name.split("#")[0] if "#" in metric.name else ""


def _measurement(metrics: _CaliperMetrics, regions: _Chosen) -> Measurement:
    profile = metrics.profile
    notes = list(metrics.notes)
    runtime_s = _time(metrics, regions, notes)
    events = {base: _count(profile, metric, regions, notes) for base, metric in metrics.events.items()}
    facts = _facts(profile)
    if regions is not None:
        others = [numbers for names in regions for _, _, numbers in profile.of_region[names]]
        facts |= {
            "app": regions[0][-1],
            "region": "; ".join("/".join(names) for names in regions),
            "region_metrics": {name: numbers[name] for numbers in others for name in metrics.others if name in numbers},
        }
    version = profile.facts.get("cali.caliper.version")
    counters = _own_counters(metrics, regions)
    launches = counters.pop("kernel_launches", None)
    if launches is not None and _on_gpu(profile):
        counters["kernel_launches"] = launches
    return Measurement("caliper", events, version, (), runtime_s, tuple(notes), facts, counters)


def _by_rank(profile: _CaliperProfile, metric: _Metric, regions: _Chosen) -> dict[Any, float]:
    """Return a metric's total by rank: over the whole execution, or over innermost regions of one name.

    With inclusive values the outermost regions hold those inside; records of no region hold the rest.
    """
    totals: dict[Any, float] = defaultdict(float)
    if regions is not None:
        records = [record for names in regions for record in profile.of_region[names]]
    else:
        records = [record for record in profile.records if len(record[0]) <= 1 or not metric.inclusive]
    for _, rank, numbers in records:
        if metric.name in numbers:
            totals[rank] += numbers[metric.name]
    return dict(totals)


def _time(metrics: _CaliperMetrics, regions: _Chosen, notes: list[str]) -> float | None:
    profile, time = metrics.profile, metrics.time
    if time is None:
        notes.append("no runtime: the profile holds no times (add the timer service)")
        return None
    by_rank = _by_rank(profile, time, regions)
    if not by_rank:
        return None
    longest = max(by_rank.values()) * metrics.unit_s
    of_all = time.across == "sum" or (time.beside_gpu and set(by_rank) == {None})
    if of_all and profile.ranks is not None and profile.ranks > 1:
        notes.append(f"runtime is the mean over {profile.ranks} ranks, for want of the slowest one's")
        longest /= profile.ranks
    elif time.across == "avg":
        notes.append("runtime is the mean over ranks, for want of the slowest one's")
    if regions is None:
        outside = [numbers.get(time.name, 0.0) for names, _, numbers in profile.records if not names]
        outside_s = max(outside, default=0.0) * metrics.unit_s
        if outside_s > 0.05 * longest:
            notes.append(f"{outside_s:.4g} s of the runtime were spent outside of all regions")
    return longest if longest > 0 else None


def _count(profile: _CaliperProfile, metric: _Metric, regions: _Chosen, notes: list[str]) -> float | None:
    by_rank = _by_rank(profile, metric, regions)
    if not by_rank:
        return None
    if metric.across != "avg":
        return sum(by_rank.values())
    if profile.ranks is None:
        notes.append(f"{metric.base} is left out: a mean over an unknown number of ranks")
        return None
    return sum(by_rank.values()) * profile.ranks


def _facts(profile: _CaliperProfile) -> dict[str, Any]:
    """Return what the globals, which Adiak collects, tell of a run."""
    known = profile.facts
    listed = re.fullmatch(r"\[(.+)\]", str(known.get("cmdline") or ""), re.DOTALL)  # as Adiak writes a list
    command = listed[1].split(",") if listed else []
    executable = str(known.get("executable") or (PurePosixPath(command[0]).name if command else "")) or None
    size, meaning = as_number(known.get("ProblemSizeRunParam")), known.get("SizeMeaning")
    size_text = " ".join(command[1:])
    if size is not None:
        size_text = f"{size:.0f}" if size.is_integer() else f"{size:g}"
        size_text += "" if meaning in (None, "Direct") else f" ({str(meaning).lower()})"
    started = as_number(known.get("launchdate"))
    kept = {
        name: value
        for name, value in known.items()
        if name not in _PRIVATE and not name.startswith(("spot.", "cali.")) and not isinstance(value, list)
    }
    return {
        "app": executable,
        "input": size_text or None,
        "platform": known.get("cluster"),
        "ranks": profile.ranks,
        "host": known.get("hostname"),
        "started": utc_time(started) if started is not None else None,
        "globals": kept or None,
    }
