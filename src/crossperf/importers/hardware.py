"""Names of hardware events as processor vendors and LIKWID write them, in the words of ``perf list``."""

from __future__ import annotations

import re

from crossperf.catalog import FORMULAS, canonical
from crossperf.importers.files import SPELLINGS


def _squashed(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower())


_KNOWN = {_squashed(event): event for formula in FORMULAS for event in formula.events if "." in event}


def perf_name(event: str) -> str:
    """Return perf's name of an event that a formula asks for, else the event's own name.

    >>> perf_name("INSTR_RETIRED_ANY"), perf_name("MEM_INST_RETIRED.ALL_LOADS_PS"), perf_name("UOPS_RETIRED_ALL")
    ('instructions', 'mem_inst_retired.all_loads', 'UOPS_RETIRED_ALL')
    """
    # Intel marks precise events with _PS; they count the same.
    plain = _squashed(event).removesuffix("_ps")
    return SPELLINGS["hardware"].get(plain) or _KNOWN.get(plain) or canonical(event)
