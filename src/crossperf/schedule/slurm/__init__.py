"""Slurm: a table of predictions for its controller, advice before a submission, and what finished jobs teach.

`setup` writes what a site installs, `table` what the controller reads, `advise` chooses a partition without touching
the controller, `history` turns finished jobs into runs, `learned` takes from them what they teach, `shadow` tells what
choices would have saved, and `rebalance` what should move in the queue. The choice itself is made by the functions of
`crossperf.schedule.policies`, the same as in the simulator.
"""
