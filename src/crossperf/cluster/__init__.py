"""Jobs on a cluster through Slurm: what a site offers (SITE.toml), arrays of calls, their states.

```
SITE.toml --read--> ClusterSite --allocation--> Allocation \
               [Call("module:function", plain arguments), ...] > JobArrays(folder).submit -> JobArray
JobArrays(folder).states([JobArray, ...]) -> {(name, element): JobState}, one query for all
```
"""

from __future__ import annotations

from crossperf.cluster.arrays import JobArray, JobArrays, SubmissionError
from crossperf.cluster.calls import Call, Plain, VersionError
from crossperf.cluster.commands import ControllerError
from crossperf.cluster.site import Allocation, ClusterSite, SiteFileError, read
from crossperf.cluster.states import GONE, JobState

__all__ = [
    "GONE",
    "Allocation",
    "Call",
    "ClusterSite",
    "ControllerError",
    "JobArray",
    "JobArrays",
    "JobState",
    "Plain",
    "SiteFileError",
    "SubmissionError",
    "VersionError",
    "read",
]
