"""Finished runs in SQLite, and what had been predicted for them: a run that was acknowledged survives any kill.

The database is in WAL mode with full synchronisation, so that a commit is on the disk before the client hears of it;
several worker processes may write to it. It is plain SQL: `sqlite3 FILE .schema` tells all.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from crossperf.errors import CrossperfError
from crossperf.records import Prediction, Run

_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    id INTEGER PRIMARY KEY, received REAL NOT NULL, run_id TEXT UNIQUE, app TEXT NOT NULL, input TEXT NOT NULL,
    platform TEXT NOT NULL, runtime_s REAL, counters INTEGER NOT NULL, run TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS runs_of_workload ON runs (app, input);
CREATE TABLE IF NOT EXISTS predictions (
    id INTEGER PRIMARY KEY, made REAL NOT NULL, model TEXT NOT NULL, app TEXT NOT NULL, input TEXT NOT NULL,
    source TEXT NOT NULL, platform TEXT NOT NULL, predicted_s REAL NOT NULL, low_s REAL, high_s REAL, level REAL);
CREATE INDEX IF NOT EXISTS predictions_of_cell ON predictions (app, input, platform);
CREATE TABLE IF NOT EXISTS outcomes (
    run INTEGER PRIMARY KEY REFERENCES runs (id), made REAL NOT NULL, model TEXT NOT NULL, app TEXT NOT NULL,
    input TEXT NOT NULL, source TEXT NOT NULL, platform TEXT NOT NULL, actual_s REAL NOT NULL,
    predicted_s REAL NOT NULL, low_s REAL, high_s REAL, level REAL, kept INTEGER NOT NULL);
"""


class StoreError(CrossperfError):
    """Finished runs cannot be kept or read."""


class NotOfferedError(CrossperfError):
    """What a request needs is nothing that the server was started with."""


@dataclass(frozen=True)
class Forecasted:
    """What was predicted for one workload on one platform, in seconds."""

    model: str
    app: str
    input: str
    source: str
    platform: str
    predicted_s: float
    low_s: float | None = None
    high_s: float | None = None
    level: float | None = None

    @classmethod
    def of(cls, prediction: Prediction, model: str) -> Iterator[Forecasted]:
        """Yield what was predicted for each platform other than its source; nothing without a runtime."""
        own_s = prediction.seconds.get(prediction.source)
        relative_to_source = prediction.relative_to in ("source", prediction.source)
        for name in prediction.offered:
            seconds = prediction.seconds.get(name)
            if own_s is None or seconds is None or name == prediction.source:
                continue
            low, high = prediction.low.get(name), prediction.high.get(name)
            ranged = relative_to_source and low is not None and high is not None
            ends = (own_s * low, own_s * high, prediction.level) if ranged and low and high else (None, None, None)
            yield cls(model, prediction.app, prediction.input, prediction.source, name, seconds, *ends)


@dataclass(frozen=True)
class ComparedRun:
    """A finished run beside what was predicted for it; `kept` tells that the prediction was given before the run."""

    made: float
    model: str
    app: str
    input: str
    source: str
    platform: str
    actual_s: float
    predicted_s: float
    low_s: float | None
    high_s: float | None
    level: float | None
    kept: bool


_OUTCOME = tuple(own.name for own in fields(ComparedRun))


class RunStore:
    """The database of finished runs; connections are made where they are used, one a thread and process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connections = threading.local()
        with self._connection() as database:
            written = database.execute("PRAGMA user_version").fetchone()[0]
            if written > _VERSION:
                raise StoreError(f"{path}: found runs of format {written}, expected {_VERSION}. Upgrade crossperf.")
            database.executescript(_SCHEMA)
            database.execute(f"PRAGMA user_version = {_VERSION}")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Yield this thread's connection within a transaction: all of it is committed, or nothing."""
        mine = self._connections
        try:
            if getattr(mine, "process", None) != os.getpid():  # a connection does not survive a fork
                mine.database = sqlite3.connect(self.path, timeout=10.0, isolation_level="IMMEDIATE")
                mine.database.execute("PRAGMA journal_mode = WAL")
                mine.database.execute("PRAGMA synchronous = FULL")
                mine.process = os.getpid()
            with mine.database:
                yield mine.database
        except sqlite3.Error as error:
            advice = "Check the disk and the rights of the file that the server was given for runs"
            raise StoreError(f"Finished runs cannot be kept or read ({error}). {advice}.") from error

    def add(self, runs: Sequence[Run], outcomes: Sequence[ComparedRun | None] = ()) -> list[bool]:
        """Keep runs, each with its outcome where it has one; tell of each whether it is new.

        A run whose ``run_id`` is kept already is not kept twice, so that a client may send again what it has no
        answer for. When this returns, the new ones are on the disk.
        """
        now, new = time.time(), []
        with self._connection() as database:
            for run, outcome in zip(runs, outcomes or [None] * len(runs), strict=True):
                row = (now, run.run_id, run.app, run.input, run.platform, run.runtime_s, bool(run.counters))
                done = database.execute(
                    "INSERT OR IGNORE INTO runs (received, run_id, app, input, platform, runtime_s, counters, run) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (*row, json.dumps(run.to_json())),
                )
                new.append(done.rowcount > 0)
                if new[-1] and outcome is not None:
                    names, marks = ", ".join(("run", *_OUTCOME)), ", ".join("?" * (1 + len(_OUTCOME)))
                    values = (done.lastrowid, *astuple(outcome))
                    database.execute(f"INSERT INTO outcomes ({names}) VALUES ({marks})", values)  # noqa: S608
        return new

    def runs(
        self, app: str | None = None, input: str | None = None, platform: str | None = None,  # noqa: A002
        *, after: int = 0, limit: int = 1000,
    ) -> list[tuple[int, Run]]:  # fmt: skip
        """Return kept runs with their numbers, in the order in which they came, from the one after a number."""
        asked = {"app": app, "input": input, "platform": platform}
        named = {name: value for name, value in asked.items() if value is not None}
        where = " AND ".join(["id > ?", *(f"{name} = ?" for name in named)])
        with self._connection() as database:
            rows = database.execute(
                f"SELECT id, run FROM runs WHERE {where} ORDER BY id LIMIT ?",  # noqa: S608
                (after, *named.values(), limit),
            ).fetchall()
        return [(number, Run.from_json(json.loads(text))) for number, text in rows]

    def count(self) -> int:
        """Return how many runs are kept."""
        with self._connection() as database:
            return int(database.execute("SELECT COUNT(*) FROM runs").fetchone()[0])

    def profiled(self, app: str, input: str, other_than: str) -> list[Run]:  # noqa: A002
        """Return the kept runs of a workload on other platforms that have counters, the newest first."""
        query = (
            "SELECT run FROM runs WHERE app = ? AND input = ? AND platform != ? AND counters AND runtime_s IS NOT NULL "
            "ORDER BY id DESC LIMIT 10"
        )
        with self._connection() as database:
            rows = database.execute(query, (app, input, other_than)).fetchall()
        return [Run.from_json(json.loads(text)) for (text,) in rows]

    def keep(self, forecasted: Iterable[Forecasted]) -> None:
        """Keep what was predicted, to be compared with the runs that follow."""
        rows = [(time.time(), *astuple(own)) for own in forecasted]
        marks = ", ".join("?" * (1 + len(fields(Forecasted))))
        names = ", ".join(("made", *(own.name for own in fields(Forecasted))))
        with self._connection() as database:
            database.executemany(f"INSERT INTO predictions ({names}) VALUES ({marks})", rows)  # noqa: S608

    def kept(self, app: str, input: str, platform: str) -> tuple[float, Forecasted] | None:  # noqa: A002
        """Return what was predicted last for a workload on a platform, and when."""
        names = ", ".join(own.name for own in fields(Forecasted))
        query = f"SELECT made, {names} FROM predictions WHERE app = ? AND input = ? AND platform = ? "  # noqa: S608
        with self._connection() as database:
            row: Any = database.execute(query + "ORDER BY id DESC LIMIT 1", (app, input, platform)).fetchone()
        return None if row is None else (row[0], Forecasted(*row[1:]))

    def outcomes(self, since: float = 0.0, limit: int = 100_000) -> list[ComparedRun]:
        """Return finished runs beside what was predicted for them, the newest last."""
        names = ", ".join(f"outcomes.{name}" for name in _OUTCOME)
        query = f"SELECT {names} FROM outcomes WHERE made >= ? ORDER BY run DESC LIMIT ?"  # noqa: S608
        with self._connection() as database:
            rows = database.execute(query, (since, limit)).fetchall()
        return [
            ComparedRun(**{**dict(zip(_OUTCOME, row, strict=True)), "kept": bool(row[-1])}) for row in reversed(rows)
        ]
