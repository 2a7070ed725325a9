"""What the operating system counts for every execution, at no cost."""

from __future__ import annotations

import platform as python_platform

from crossperf.collect.process import Execution
from crossperf.importers.measurement import Measurement
from crossperf.platforms import MachineFacts


def measurement(execution: Execution, facts: MachineFacts) -> Measurement:
    """Return an execution as events of the tool ``os``.

    Parameters
    ----------
    facts
        Those of the machine (`platforms.facts_of_this_machine`): the levels of the page table are its own.
    """
    events: dict[str, float | None] = {
        "os.user_s": execution.user_s,
        "os.system_s": execution.system_s,
        "os.max_rss_bytes": execution.max_rss_bytes,
        "os.minor_faults": float(execution.minor_faults),
        "os.major_faults": float(execution.major_faults),
        "os.peak_threads": execution.peak_threads,
        "os.page_table_bytes": execution.page_table_bytes,
        "os.page_levels": facts.page_levels,
    }
    io = execution.io or dict.fromkeys(("rchar", "wchar", "read_bytes", "write_bytes"))
    events |= {f"os.{name}": io[name] for name in ("rchar", "wchar", "read_bytes", "write_bytes")}
    notes = () if execution.io else ("bytes read and written are unknown: this kernel keeps no /proc/PID/io",)
    return Measurement(
        "os", events, version=f"Linux {python_platform.release()}", runtime_s=execution.wall_s, notes=notes
    )
