"""Writes tiny HPCToolkit databases from the description of their formats, so that tests know every number."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

# One thread: rank, thread, and its total of each metric.
ThreadValues = tuple[int, int, Mapping[str, float]]

_KINDS = ("SUMMARY", "NODE", "RANK", "THREAD", "GPUDEVICE", "GPUCONTEXT", "GPUSTREAM", "CORE")


class _Blob:
    """Bytes that grow, with places to be filled in later."""

    def __init__(self, start: bytes) -> None:
        self.data = bytearray(start)

    def align(self) -> int:
        self.data += b"\0" * (-len(self.data) % 8)
        return len(self.data)

    def add(self, data: bytes) -> int:
        at = self.align()
        self.data += data
        return at

    def text(self, text: str) -> int:
        at = len(self.data)
        self.data += text.encode() + b"\0"
        return at

    def put(self, at: int, layout: str, *values: int) -> None:
        struct.pack_into(f"<{layout}", self.data, at, *values)


def write_v4(
    folder: Path,
    threads: Sequence[ThreadValues],
    metrics: Sequence[str],
    *,
    title: str = "toy",
    version: tuple[int, int] = (4, 0),
    trace_ns: tuple[int, int] | None = None,
    gpu: Sequence[int] = (),
    stored_sums: Mapping[str, float] | None = None,
) -> Path:
    """Write a version 4 database; `gpu` lists the threads, by place, that are streams of a GPU."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.db").write_bytes(_meta(metrics, title, version))
    (folder / "profile.db").write_bytes(_profile(threads, metrics, version, gpu, stored_sums))
    (folder / "cct.db").write_bytes(_header(b"ctxt", version) + b"\0" * 16 + b"__ctx.db")
    if trace_ns is not None:
        body = struct.pack("<QQ", 0x20, 0x20) + struct.pack("<QIB3xQQ", 0x40, 1, 24, *trace_ns)
        (folder / "trace.db").write_bytes(_header(b"trce", version) + body + b"\0" * 24 + b"trace.db")
    return folder


def _header(kind: bytes, version: tuple[int, int]) -> bytes:
    return b"HPCTOOLKIT" + kind + bytes(version)


def _meta(metrics: Sequence[str], title: str, version: tuple[int, int]) -> bytes:
    blob = _Blob(_header(b"meta", version) + b"\0" * 0x80)
    general = blob.add(b"\0" * 16)
    blob.put(general, "QQ", blob.text(title), blob.text("description"))
    id_names = blob.add(b"\0" * 16)
    names = blob.add(b"\0" * 8 * len(_KINDS))
    for place, kind in enumerate(_KINDS):
        blob.put(names + 8 * place, "Q", blob.text(kind))
    blob.put(id_names, "QB", names, len(_KINDS))
    section = blob.add(b"\0" * 32)
    scopes = blob.add(b"\0" * 32)
    blob.put(scopes, "QBB", blob.text("point"), 1, 255)
    blob.put(scopes + 16, "QBB", blob.text("execution"), 2, 255)
    array = blob.add(b"\0" * 32 * len(metrics))
    for place, name in enumerate(metrics):
        # Numbers of a metric: 4 n for "point", 4 n + 1 for "execution", 4 n + 2 for the stored sum of the latter.
        instances = blob.add(struct.pack("<QH6xQH6x", scopes, 4 * place, scopes + 16, 4 * place + 1))
        summaries = blob.add(b"\0" * 24)
        blob.put(summaries, "QQBxH", scopes + 16, blob.text("$$"), 0, 4 * place + 2)
        blob.put(array + 32 * place, "QQQHH", blob.text(name), instances, summaries, 2, 1)
    blob.put(section, "QIBBBxQHB", array, len(metrics), 32, 16, 24, scopes, 2, 16)
    blob.put(0x10, "QQQQQQ", 16, general, 16, id_names, 32, section)
    return bytes(blob.data) + b"_meta.db"


def _profile(
    threads: Sequence[ThreadValues],
    metrics: Sequence[str],
    version: tuple[int, int],
    gpu: Sequence[int],
    stored_sums: Mapping[str, float] | None,
) -> bytes:
    blob = _Blob(_header(b"prof", version) + b"\0" * 0x20)
    infos = blob.add(b"\0" * 16)
    array = blob.add(b"\0" * 0x30 * (len(threads) + 1))
    blob.put(infos, "QIB", array, len(threads) + 1, 0x30)
    sums = {name: sum(values.get(name, 0.0) for _, _, values in threads) for name in metrics}
    sums |= dict(stored_sums or {})
    _block(blob, array, [(4 * place + 2, sums[name]) for place, name in enumerate(metrics)], 0, summary=True)
    for place, (rank, thread, values) in enumerate(threads):
        last = (6, thread) if place in gpu else (3, thread)
        ids = [(1, 0xA8C0), (2, rank), last]
        pointer = blob.add(struct.pack("<H6x", len(ids)))
        for kind, number in ids:
            blob.data += struct.pack("<BxHIQ", kind, int(kind == 1), number & 0xFFFF, number)
        pairs = [(4 * at + 1, values[name]) for at, name in enumerate(metrics) if values.get(name)]
        _block(blob, array + 0x30 * (place + 1), pairs, pointer)
    blob.put(0x10, "QQQQ", 16, infos, 0, infos)
    return bytes(blob.data) + b"_prof.db"


def _block(blob: _Blob, info: int, whole: Sequence[tuple[int, float]], id_tuple: int, *, summary: bool = False) -> None:
    """Write the values of context 0, then of a context 5 that must not be counted."""
    whole = [(number, value) for number, value in whole if value]
    other = [(number - 1 if number else 0, 77.0) for number, _ in whole]
    values = blob.add(b"".join(struct.pack("<Hd", number, value) for number, value in [*whole, *other]))
    indices = [(0, 0), (5, len(whole))] if whole else []
    pointer = blob.add(b"".join(struct.pack("<IQ", *index) for index in indices))
    count = len(whole) + len(other)
    blob.put(info, "QQI4xQQI", count, values, len(indices), pointer, id_tuple, int(summary))


def write_v3(
    folder: Path,
    threads: Sequence[ThreadValues],
    metrics: Sequence[str],
    *,
    title: str = "toy",
    version: str = "2.0",
    order: str = ">",
    metric_db: bool = True,
    doctype: str = "",
    statistics: Mapping[str, float] | None = None,
) -> Path:
    """Write a version 3 database; `statistics` are further values at the root, such as ``CPUTIME (usec):Max``."""
    folder.mkdir(parents=True, exist_ok=True)
    sums = {f"{name}:Sum": sum(values.get(name, 0.0) for _, _, values in threads) for name in metrics}
    table = list((sums | dict(statistics or {})).items())
    count = 2 * len(metrics)
    described = "".join(
        f'<Metric i="{10 + at}" n="{name} (I)" v="derived-incr" t="inclusive" show="1"/>'
        f'<Metric i="{500 + at}" n="{name} (E)" v="derived-incr" t="exclusive" show="1"/>'
        for at, (name, _) in enumerate(table)
    )
    columns = "".join(
        f'<MetricDB i="{at}" n="{name} ({mark})" t="{kind}" db-id="{2 * at + shift}" db-num-metrics="{count}"/>'
        for at, name in enumerate(metrics)
        for shift, (mark, kind) in enumerate((("I", "inclusive"), ("E", "exclusive")))
    )
    values = "".join(f'<M n="{10 + at}" v="{value:g}"/>' for at, (_, value) in enumerate(table) if value)
    (folder / "experiment.xml").write_text(
        f'<?xml version="1.0"?>\n{doctype}<HPCToolkitExperiment version="{version}">'
        f'<Header n="{title}"><Info/></Header>'
        f'<SecCallPathProfile i="0" n="{title}"><SecHeader><MetricTable>{described}</MetricTable>'
        f"<MetricDBTable>{columns if metric_db else ''}</MetricDBTable></SecHeader>"
        f'<SecCallPathProfileData>{values}<PF i="2"><M n="10" v="5"/></PF></SecCallPathProfileData>'
        "</SecCallPathProfile></HPCToolkitExperiment>\n"
    )
    mark = b"b" if order == ">" else b"l"
    for rank, thread, totals in threads if metric_db else ():
        rows = [pair for name in metrics for pair in (totals.get(name, 0.0), 0.0)] + [3.0] * count
        data = b"HPCPROF-metricdb__00.10" + mark + struct.pack(f"{order}II", 2, count)
        name = f"1.{title}-{rank:06d}-{thread:03d}-a8c00270-{9000 + rank}-0.metric-db"
        (folder / name).write_bytes(data + struct.pack(f"{order}{len(rows)}d", *rows))
    return folder
