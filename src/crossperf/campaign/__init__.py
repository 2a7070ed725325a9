"""Measures many inputs on the platforms of a machine, in rounds of random order; can be killed and resumed.

```
spec.toml --read--> Spec --visit--> DIR/times.jsonl  \
                         --count--> DIR/counts.jsonl  > assemble -> Run (x visits x repeats)
```
On a site, elements of Slurm's arrays write such logs, which a driver merges (`crossperf.campaign.on_site`).
A program prints one line of JSON for each input, as the testbed's do (``testbed/main.cpp``), or is a command that is
timed as a whole; every line is kept as it comes.
"""

from __future__ import annotations

from crossperf.campaign.assembling import assemble
from crossperf.campaign.counting import count
from crossperf.campaign.ledger import LOCK, alone
from crossperf.campaign.spec import CountSet, Mode, Program, Spec, Work, read
from crossperf.campaign.timing import visit

__all__ = ["LOCK", "CountSet", "Mode", "Program", "Spec", "Work", "alone", "assemble", "count", "read", "visit"]
