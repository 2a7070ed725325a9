"""Reads traces of jobs: the Standard Workload Format, and the files of five studies of GPU clusters.

- SWF (``.swf``, ``.swf.gz``): `swf`.
- Philly (Microsoft; Jeon et al., USENIX ATC 2019): ``cluster_job_log``, JSON. `philly`.
- Helios (SenseTime; Hu et al., SC 2021): ``cluster_log.csv``. `tables`.
- PAI (Alibaba; Weng et al., NSDI 2022): ``pai_task_table.csv``, and two tables beside it. `tables`.
- Supercloud (MIT; Samsi et al., HPEC 2021): ``slurm-log.csv``, and labels beside it. `tables`.
- Gavel (Narayanan et al., OSDI 2020): ``.trace``, with the throughputs of its job types. `gavel`.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from crossperf.errors import SettingsError
from crossperf.schedule.jobs import Jobs, TraceError
from crossperf.schedule.traces import gavel, philly, tables, text
from crossperf.schedule.traces.swf import read_swf

__all__ = ["read_swf", "read_trace"]


def read_trace(
    path: str | os.PathLike[str],
    *,
    per_node: int | None = None,
    share_nodes: bool = False,
    feedback: str | None = None,
    throughputs: str | os.PathLike[str] | None = None,
    reference: str | None = None,
) -> Jobs:
    """Return the jobs of a trace in any format that is known by its name and first line.

    Parameters
    ----------
    per_node
        Processors (SWF) or GPUs (all others) that make a node; ``None`` follows the header of an SWF trace, else 1.
    share_nodes
        Count processors or GPUs in the place of nodes, so that a job may take a part of one.
    feedback
        See `swf.read_swf`; other formats name no preceding jobs.
    throughputs, reference
        The file that a trace of Gavel needs, and its platform that run times are of.
    """
    path = Path(path)
    name = path.name.removesuffix(".gz")
    if name.endswith(".swf"):
        return read_swf(path, processors_per_node=per_node, share_nodes=share_nodes, feedback=feedback)
    if feedback:
        raise SettingsError(f"feedback: {path} names no preceding jobs, expected an SWF trace.", argument="feedback")
    if name.endswith(".trace"):
        reading, kinds = gavel.read(path, throughputs, reference)
        jobs = reading.jobs(per_node or 1, share=share_nodes)
        return gavel.with_kinds(jobs, kinds)
    first = next((line for _, line in text.lines(path)), "")
    if first.lstrip()[:1] in ("[", "{"):
        reading = philly.read(path)
    else:
        for reader in (tables.helios, tables.pai, tables.supercloud):
            if reader.is_like(name, first):
                reading = reader.read(path)
                break
        else:
            raise TraceError(
                f"{path}: found no trace that is known, expected .swf, .trace (Gavel), cluster_job_log (Philly), "
                "cluster_log.csv (Helios), pai_task_table.csv (PAI) or slurm-log.csv (Supercloud).",
                path=str(path),
            )
    return replace(reading.jobs(per_node or 1, share=share_nodes), ignored=tuple(reading.ignored))
