"""Studies on many workers: one function mapped over questions by processes, a Dask cluster or a site's batch jobs."""

from crossperf.workers.here import Here
from crossperf.workers.kept import Kept
from crossperf.workers.parcels import Parcel
from crossperf.workers.processes import processes
from crossperf.workers.study import PieceQuestion, Progress, Study, Workers

__all__ = ["Here", "Kept", "Parcel", "PieceQuestion", "Progress", "Study", "Workers", "processes"]
