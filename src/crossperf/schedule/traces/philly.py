"""Traces of Microsoft's Philly clusters: ``cluster_job_log``, JSON with a record for each job and its attempts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crossperf.documents import parse
from crossperf.schedule.jobs import TraceError
from crossperf.schedule.traces import text
from crossperf.schedule.traces.labelled import TraceJob, TraceReading

#: The log that was published has 78 MB.
_LARGEST = 1 << 30


def read(path: Path) -> TraceReading:
    """Return the jobs that ran: for as long as all attempts together, on the GPUs of the widest.

    Users and virtual clusters (as queues) come with their hashed names. Jobs without an attempt that has ended are left
    out and counted.
    """
    reading = TraceReading(path.name)
    try:
        records = parse(_bytes(path))
    except ValueError as error:
        raise TraceError(f"{path}: does not read as JSON ({error}).", path=str(path)) from error
    if not isinstance(records, list):
        raise TraceError(f"{path}: found no list, expected a list of jobs as in cluster_job_log.", path=str(path))
    for number, record in enumerate(records, start=1):
        try:
            line = _line(path, number, record)
        except (KeyError, TypeError, AttributeError) as error:
            what = "expected 'submitted_time', 'user', 'vc' and 'attempts', each with its times and GPUs"
            raise TraceError(f"{path}, job {number:,}: {what} ({error!r}).", path=str(path), line=number) from error
        if line is None:
            reading.left_out["without an attempt that has ended"] += 1
        else:
            reading.add(line)
    return reading


def _bytes(path: Path) -> bytes:
    """Return the text of a log, unpacked; one that is too long is not read to its end."""
    data = bytearray()
    for _, line in text.lines(path):
        data += line.encode()
        if len(data) > _LARGEST:
            raise TraceError(f"{path}: found more than {_LARGEST:,} bytes, expected a log of jobs.", path=str(path))
    return bytes(data)


def _line(path: Path, number: int, record: Any) -> TraceJob | None:
    submit_s = text.seconds_of(path, number, "submitted_time", str(record["submitted_time"]))
    run_s, gpus, ended = 0.0, 0, False
    for attempt in record["attempts"]:
        times = [text.seconds_of(path, number, name, str(attempt.get(name))) for name in ("start_time", "end_time")]
        if times[0] is None or times[1] is None:
            continue
        ended = True
        run_s += times[1] - times[0]
        gpus = max(gpus, sum(len(server["gpus"]) for server in attempt["detail"]))
    if not ended or submit_s is None:
        return None
    return TraceJob(submit_s, run_s, gpus, user=str(record["user"]), queue=str(record["vc"]))
