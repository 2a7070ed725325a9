"""One spelling for an event that several profilers write differently, so that one formula fits them all.

PAPI's presets keep their names (``PAPI_TOT_INS``) and Linux' generic events get those of ``perf list``
(``instructions``). Native events only lose the name of the processor's PMU (``power9::PM_LD_CMPL``).
"""

from __future__ import annotations

import re

#: Caches that perf's generic events know, and what it counts of them.
_CACHES = ("L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch")
_ACCESSES = ("loads", "load-misses", "stores", "store-misses")
#: Other names of a generic event, as ``perf list`` gives them.
_ALSO = {
    "cpu-cycles": "cycles",
    "branch-instructions": "branches",
    "faults": "page-faults",
    "cs": "context-switches",
    "migrations": "cpu-migrations",
}
_GENERIC = (
    *(f"{cache}-{access}" for cache in _CACHES for access in _ACCESSES),
    *("instructions", "cache-references", "cache-misses", "branch-misses", "bus-cycles", "ref-cycles"),
    *("stalled-cycles-frontend", "stalled-cycles-backend", "cpu-clock", "task-clock", "minor-faults", "major-faults"),
    *_ALSO.values(),
)
#: PMUs of processors with cores of several kinds: Intel's, ARM's, Apple's.
KIND_OF_CORE = r"(?:cpu\w*|armv\d\w*|apple_\w+_pmu)"
# libpfm4, and so HPCToolkit and PAPI, writes generic events in capitals after "perf::".
_PERF = {name.lower(): name for name in _GENERIC} | _ALSO


def canonical(text: str) -> str:
    """Return the common name of an event.

    >>> canonical("perf::BRANCH-INSTRUCTIONS"), canonical("papi.PAPI_TOT_INS"), canonical("PAPI_FP_OPS (proxy)")
    ('branches', 'PAPI_TOT_INS', 'PAPI_FP_OPS')
    >>> canonical("amd64_fam17h_zen2::LS_DISPATCH:LD_DISPATCH")
    'LS_DISPATCH:LD_DISPATCH'

    All tools count user mode, so perf's mark of it goes; a mark of the kernel stays.

    >>> canonical("instructions:u"), canonical("cpu_core/L1-dcache-loads/u"), canonical("instructions:k")
    ('instructions', 'L1-dcache-loads', 'instructions:k')
    """
    # HPCToolkit adds "(proxy)" where it read a counter at the samples of another; the count is one all the same.
    name = text.strip().removesuffix("(proxy)").rstrip()
    name = re.sub(r"^(\w+::)+", "", name)
    if on_one_pmu := re.fullmatch(rf"{KIND_OF_CORE}/([^/,=]+)/u?", name):
        name = on_one_pmu[1]
    name = re.sub(r"(?<!:):u[pPhHG]*$", "", name)
    preset = re.fullmatch(r"(?:papi\.)?(PAPI_[A-Z0-9_]+)", name)
    return preset[1] if preset else _PERF.get(name.lower(), name)
