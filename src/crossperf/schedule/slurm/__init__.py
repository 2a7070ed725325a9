"""Slurm: a table of predictions for its controller, advice before a submission, and what finished jobs teach.

`setup` writes what a site installs, `table` what the controller reads, `advise` chooses a partition without touching
the controller, and `history` turns finished jobs into runs. The choice itself is made by the functions of
`crossperf.schedule.policies`, the same as in the simulator.
"""
