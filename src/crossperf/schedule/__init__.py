"""Places jobs from predictions: policies that choose, a simulator that shows what would come of it, and Slurm.

A policy sees a job and, for each place it could go, the predicted run time, its interval and the state of the queue.
The same functions answer in the simulator (`simulate`), where the truth is known, and for a real controller (`slurm`).
"""
