"""HPCToolkit 3 databases: ``experiment.xml`` with the call tree, and one ``*.metric-db`` for each thread.

The XML rounds values to six digits, so totals come from the ``metric-db`` files where ``hpcprof-mpi``
wrote them. A ``metric-db`` holds, after 32 bytes of header, one row of doubles for each node of the
tree; the first row is the root, the whole of a thread.
"""

from __future__ import annotations

import math
import re
import struct
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from crossperf.documents import opened
from crossperf.errors import some_of
from crossperf.importers.files import start_of, unusable
from crossperf.importers.hpctoolkit.totals import Thread, summed, to_measurement
from crossperf.importers.measurement import Measurement
from crossperf.plain import shown, whole

EXPERIMENT = "experiment.xml"
#: HPCToolkit 3 wrote 2.0, then 2.1 and 2.2.
_VERSIONS = ("2.0", "2.1", "2.2")
_MAGIC = b"HPCPROF-metricdb__"
_DB_VERSION = b"00.10"
_STATISTIC = re.compile(r"(.+):((?:Sum|Mean|StdDev|CfVar|Min|Max)(?::accum2|:num-src)?)")
_FILE_NAME = re.compile(r"-(\d+)-(\d+)-([0-9a-f]+)-\d+-\d+\.metric-db$")
#: Six digits are left of a total in the XML.
_ROUNDING = 1e-5
_AGAIN = "Copy the database again, or make it anew with hpcprof."


def reads(folder: Path) -> bool:
    """Tell whether a folder holds the call tree of a version 3 database."""
    return b"HPCToolkitExperiment" in start_of(folder / EXPERIMENT)


def read(folder: Path) -> Measurement:
    """Return the execution that a database holds."""
    experiment = _Experiment(folder / EXPERIMENT)
    files = sorted(folder.glob("*.metric-db"))
    if experiment.columns and not files:
        expected = f"one for each thread, since {EXPERIMENT} refers to them"
        raise unusable(folder, f"found no *.metric-db file, expected {expected}. {_AGAIN}")
    threads, sums, longest = [], experiment.sums, experiment.longest
    notes = ["no *.metric-db files: totals are rounded to six digits, and ranks and threads are not known"]
    if experiment.columns:
        threads, notes = [_thread(path, experiment) for path in files], []
        sums, longest = summed(threads)
        _compare(folder, experiment.sums, sums, len(files))
    version = f"3 database ({experiment.version})"
    metrics = dict.fromkeys([*sums, *experiment.sums])
    return to_measurement(experiment.app, version, metrics, sums, longest, threads, notes)


class _Experiment:
    """What ``experiment.xml`` tells: metrics, and their values at the root of the call tree.

    The file may be large, so it is read as a stream. Its DTD, which older releases put in front, is passed
    over; entities of its own are refused.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.version = ""
        self.app: str | None = None
        #: Column of a metric-db by name of the metric.
        self.columns: dict[str, int] = {}
        self.column_count = 0
        self.sums: dict[str, float] = {}
        self.longest: dict[str, float] = {}
        self._metrics: dict[str, tuple[str, str]] = {}
        self._open: list[str] = []
        self._parse()
        if not self.version:
            self._fail("no element HPCToolkitExperiment")
        if not self._metrics and not self.columns:
            self._fail("no metric")

    def _parse(self) -> None:
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = lambda _: self._open.pop()
        parser.EntityDeclHandler = lambda name, *_: self._fail(f"an entity {name!r} of its own")
        try:
            with opened(self.path) as file:
                parser.ParseFile(file)
        except expat.ExpatError as error:
            self._fail(f"XML that breaks off or is damaged ({error})", error)

    def _fail(self, problem: str, cause: Exception | None = None) -> NoReturn:
        expected = "the whole call tree of an HPCToolkit 3 database"
        raise unusable(self.path, f"found {problem}, expected {expected}. {_AGAIN}") from cause

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        parent = self._open[-1] if self._open else None
        self._open.append(tag)
        if tag == "HPCToolkitExperiment":
            self._check_version(attributes.get("version", ""))
        elif tag == "Header" and parent == "HPCToolkitExperiment":
            self.app = attributes.get("n") or None
        elif tag == "Metric" and attributes.get("t") == "inclusive":
            self._metric(attributes)
        elif tag == "MetricDB" and attributes.get("t") == "inclusive":
            self.columns[_plain(attributes.get("n", ""))] = self._whole(attributes, "db-id")
            self.column_count = self._whole(attributes, "db-num-metrics")
        elif tag == "M" and parent == "SecCallPathProfileData":
            self._value(attributes)

    def _check_version(self, version: str) -> None:
        self.version = version
        if version not in _VERSIONS:
            problem = f"found version {version!r} of the format, expected {' or '.join(_VERSIONS)}"
            advice = "crossperf does not know that version; make the database with a released HPCToolkit."
            raise unusable(self.path, f"{problem}. {advice}", version=version)

    def _metric(self, attributes: dict[str, str]) -> None:
        name = _plain(attributes.get("n", ""))
        statistic = _STATISTIC.fullmatch(name)
        base, kind = (statistic[1], statistic[2]) if statistic else (name, "Sum")
        self._metrics[attributes.get("i", "")] = (base, kind)
        if kind == "Sum":
            self.sums.setdefault(base, 0.0)

    def _value(self, attributes: dict[str, str]) -> None:
        base, kind = self._metrics.get(attributes.get("n", ""), ("", ""))
        try:
            value = float(attributes.get("v", ""))
        except ValueError as error:
            self._fail(f"the value {attributes.get('v')!r} of metric {base!r}", error)
        if not math.isfinite(value):
            self._fail(f"the value {value} of metric {base!r}")
        if kind in ("Sum", "Max"):
            (self.sums if kind == "Sum" else self.longest)[base] = value

    def _whole(self, attributes: dict[str, str], name: str) -> int:
        text = attributes.get(name, "")
        number = whole(text)
        if number is None or number > 1 << 16:
            self._fail(f"{name}={shown(text)} of a MetricDB")
        return number


def _plain(name: str) -> str:
    return name.removesuffix("(I)").rstrip()  # the mark of inclusive values


def _thread(path: Path, experiment: _Experiment) -> Thread:
    """Return the totals of one thread from the first row of its file."""
    size = path.stat().st_size
    with opened(path) as file:
        data = file.read(32 + 8 * experiment.column_count)
    header = data[: len(_MAGIC) + 6]
    if not header.startswith(_MAGIC):
        _fail_db(path, "a file that does not start with HPCPROF-metricdb")
    version, order = header[len(_MAGIC) : -1], header[-1:]
    if version != _DB_VERSION or order not in (b"b", b"l"):
        problem = f"found version {(version + order).decode('ascii', 'replace')!r} of the format, expected '00.10b'"
        advice = "crossperf does not know that version; make the database with a released HPCToolkit 3."
        raise unusable(path, f"{problem}. {advice}")
    if size < 32:
        _fail_db(path, f"a file of {size} bytes, cut short in its header")
    endian = ">" if order == b"b" else "<"
    nodes, metrics = struct.unpack_from(f"{endian}II", data, 24)
    if metrics != experiment.column_count or size != 32 + 8 * nodes * metrics:
        _fail_db(path, f"{size:,} bytes for {nodes:,} nodes and {metrics:,} metrics")
    if not nodes:
        _fail_db(path, "no node")
    row = struct.unpack_from(f"{endian}{metrics}d", data, 32)
    if max(experiment.columns.values()) >= metrics or not all(map(math.isfinite, row)):
        _fail_db(path, "values that are not numbers")
    ids = _FILE_NAME.search(path.name)
    values = {name: row[column] for name, column in experiment.columns.items()}
    return Thread(values, int(ids[1]), int(ids[2]), ids[3]) if ids else Thread(values)


def _fail_db(path: Path, problem: str) -> NoReturn:
    expected = "the whole metrics of one thread of an HPCToolkit 3 database"
    raise unusable(path, f"found {problem}, expected {expected}. {_AGAIN}")


def _compare(folder: Path, stored: dict[str, float], sums: dict[str, float], files: int) -> None:
    """Compare the threads' sums with those in the XML: a thread's file that was lost shows here."""
    wrong = [
        f"{name} {sums[name]:g} instead of {value:g}"
        for name, value in stored.items()
        if name in sums and not math.isclose(value, sums[name], rel_tol=_ROUNDING, abs_tol=1e-9)
    ]
    if wrong:
        problem = f"found {files} *.metric-db files whose sums differ from {EXPERIMENT} ({some_of(wrong, 3)})"
        raise unusable(folder, f"{problem}, expected the file of every thread. {_AGAIN}")
