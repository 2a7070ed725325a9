"""Measures many inputs of programs that time themselves, on the platforms of a machine; can be killed and resumed.

```
spec.toml --read--> Spec --timing--> DIR/times.jsonl  \
                         --counting-> DIR/counts.jsonl  > assemble -> Run (x repeats)
```
A program prints one line of JSON for each input, as the testbed's do (``testbed/main.cpp``); every line is kept as
it comes.
"""

from __future__ import annotations

from crossperf.campaign.assembling import assemble, recount
from crossperf.campaign.counting import count
from crossperf.campaign.spec import CountSet, Mode, Spec, Work, read
from crossperf.campaign.timing import time_mode

__all__ = ["CountSet", "Mode", "Spec", "Work", "assemble", "count", "read", "recount", "time_mode"]
