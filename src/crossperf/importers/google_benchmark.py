"""Reads JSON of google-benchmark (``--benchmark_out=FILE --benchmark_out_format=json``): times of small kernels.

Each benchmark is an application, its arguments the input, and each repetition a run; the runtime is that of one
iteration. Means and other statistics over repetitions are passed over.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crossperf.documents import parse
from crossperf.errors import several, some_of
from crossperf.importers.files import start_of, text_of, unusable
from crossperf.importers.measurement import SECONDS, Measurement
from crossperf.runs.rules import as_number

#: What the library itself writes into an entry; the rest are counters of the benchmark's author.
_OWN = (
    *("name", "family_index", "per_family_instance_index", "run_name", "run_type", "repetitions", "repetition_index"),
    *("threads", "iterations", "real_time", "cpu_time", "time_unit", "aggregate_name", "aggregate_unit", "label"),
    *("error_occurred", "error_message", "skipped", "skip_message", "complexity_n", "big_o", "rms"),
)
#: Parts of a name that set how often or by which clock a benchmark is timed.
_SETTINGS = re.compile(r"(min_time|min_warmup_time|iterations|repeats):.*|real_time|process_time|manual_time")
_STATISTIC = re.compile(r".+_(mean|median|stddev|cv|BigO|RMS|min|max)")
#: The input of a benchmark without arguments.
_NO_ARGUMENTS = "no arguments"


def reads(path: Path) -> bool:
    """Tell whether a file is JSON of google-benchmark."""
    head = start_of(path, 1 << 14).lstrip()
    return head.startswith(b"{") and b'"context"' in head and (b'"num_cpus"' in head or b'"library_build_type"' in head)


def read(path: Path) -> list[Measurement]:
    """Return one measurement for each benchmark and repetition."""
    text = text_of(path, "JSON of google-benchmark")
    try:
        document = parse(text.encode(), lenient=True)
        context, entries = document["context"], list(document["benchmarks"])
    except (ValueError, TypeError, LookupError) as error:
        reason = error
        advice = "Run the benchmark to its end again, with --benchmark_out=FILE --benchmark_out_format=json"
        raise unusable(path, f"found no whole JSON with 'context' and 'benchmarks' ({reason}). {advice}") from error
    singles = [entry for entry in entries if isinstance(entry, dict) and not _is_statistic(entry)]
    timed = [entry for entry in singles if not entry.get("skipped")]
    if not timed:
        what = "statistics over repetitions alone" if entries else "no benchmark"
        advice = "Run it without --benchmark_report_aggregates_only and --benchmark_filter."
        raise unusable(path, f"found {what}, expected the time of at least one repetition. {advice}")
    facts = _machine(context if isinstance(context, dict) else {})
    seen: Counter[str] = Counter()
    return [_measurement(path, entry, facts, seen, _notes(singles)) for entry in timed]


def _is_statistic(entry: Mapping[str, Any]) -> bool:
    """Tell an entry over several repetitions; releases before 1.5 mark one by the end of its name alone."""
    if "run_type" in entry:
        return str(entry["run_type"]) != "iteration"
    return "real_time" not in entry or _STATISTIC.fullmatch(str(entry.get("name"))) is not None


def _notes(singles: list[dict[str, Any]]) -> tuple[str, ...]:
    skipped = [str(entry.get("name")) for entry in singles if entry.get("skipped")]
    notes = ["runtime is that of one iteration"]
    if skipped:
        notes.append(f"{several(len(skipped), 'benchmark')} skipped itself and is left out: {some_of(skipped, 3)}")
    return tuple(notes)


def _machine(context: Mapping[str, Any]) -> dict[str, Any]:
    names = {"host_name": "host", "date": "started", "num_cpus": "cpus", "mhz_per_cpu": "cpu_mhz"}
    facts = {ours: context[theirs] for theirs, ours in names.items() if theirs in context}
    return {key: str(value) if key in ("host", "started") else value for key, value in facts.items()} | {
        "library_version": context.get("library_version"),
        "library_build_type": context.get("library_build_type"),
    }


def _measurement(
    path: Path, entry: Mapping[str, Any], facts: Mapping[str, Any], seen: Counter[str], notes: tuple[str, ...]
) -> Measurement:
    name = str(entry.get("run_name") or entry.get("name"))
    app, arguments = _named(name)
    about: dict[str, Any] = {"app": app, "input": arguments, "repeat": entry.get("repetition_index", seen[name])}
    seen[name] += 1
    extra = {key: value for key, value in entry.items() if key not in _OWN and as_number(value) is not None}
    # A region keeps its name where the user names the whole suite.
    about |= {"region": app, "benchmark": name, "iterations": entry.get("iterations"), "label": entry.get("label")}
    about |= {"benchmark_counters": extra or None, "threads": entry.get("threads")}
    version = facts.get("library_version")
    if entry.get("error_occurred"):
        about["status"] = str(entry.get("error_message") or "failed without a reason")
        return Measurement("google-benchmark", {}, version, facts={**facts, **about})
    seconds, scale = as_number(entry.get("real_time")), SECONDS.get(str(entry.get("time_unit", "ns")))
    if seconds is None or scale is None or not 0 <= seconds < float("inf"):
        problem = f"benchmark {name!r}: found {entry.get('real_time')!r} {entry.get('time_unit')}"
        raise unusable(path, f"{problem}, expected a time in ns, us, ms or s. Run the benchmark again.")
    cpu_time = as_number(entry.get("cpu_time"))
    about["cpu_time_s"] = None if cpu_time is None else cpu_time * scale
    runtime_s = seconds * scale or None
    notes = notes if runtime_s else (*notes, f"{name} took no time that the clock could tell: no runtime")
    return Measurement("google-benchmark", {}, version, runtime_s=runtime_s, notes=notes, facts={**facts, **about})


def _named(name: str) -> tuple[str, str]:
    """Return the benchmark and its arguments; threads stay among these, since they make another workload.

    >>> _named("BM_Copy<float, 4>/64/n:8/repeats:3/threads:2"), _named("BM_Empty/real_time")
    (('BM_Copy<float, 4>', '64/n:8/threads:2'), ('BM_Empty', 'no arguments'))
    """
    depth, end = 0, len(name)
    for at, letter in enumerate(name):
        depth += (letter == "<") - (letter == ">")
        if letter == "/" and depth <= 0:
            end = at
            break
    arguments = [part for part in name[end + 1 :].split("/") if part and not _SETTINGS.fullmatch(part)]
    return name[:end], "/".join(arguments) or _NO_ARGUMENTS
