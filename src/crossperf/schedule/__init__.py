"""Places jobs from predictions: policies that choose, a simulator that tells what would come of it, and Slurm.

A policy sees a job and, for each place it could go, the predicted run time, its range and the state of the queue. The
same functions answer in the simulator (`simulate`), where the truth is known and the outcome of every job is told, and
for a real controller (`slurm`).
"""
