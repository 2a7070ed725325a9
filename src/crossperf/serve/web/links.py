"""A run in a link: an answer has its own address, which any server with the same model can answer.

Nothing is stored on the server. The run is written as JSON, compressed, and spelled in letters that a link may hold.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

from crossperf.errors import CrossperfError
from crossperf.records import COLUMNS, Run
from crossperf.runs.checking import checked
from crossperf.runs.events import EVENT_PREFIX

#: Characters of a link's run, and bytes of its JSON: what browsers and proxies let through, and no bomb.
MOST_CHARACTERS, _MOST_BYTES = 6000, 200_000
#: What an answer does not depend on.
_LEFT_OUT = ("run_id", "host", "started", "measured_in", "repeat", "source_tool")


class LinkError(CrossperfError):
    """The run of a link cannot be read."""


def written(run: Run) -> str:
    """Return a run in the letters of a link; raw events are left out where it would be too long with them.

    >>> run = Run("lulesh", "30", "epyc-1t", 12.5, counters={"instructions": 3e9})
    >>> read(written(run)) == run
    True
    """
    own = {name: _short(value) for name, value in run.counters.items() if value is not None}
    facts = {name: value for name in COLUMNS if name not in _LEFT_OUT and (value := getattr(run, name)) is not None}
    for counters in (own, {name: value for name, value in own.items() if not name.startswith(EVENT_PREFIX)}):
        packed = zlib.compress(json.dumps({**facts, "counters": counters}, separators=(",", ":")).encode(), 9)
        text = base64.urlsafe_b64encode(packed).decode().rstrip("=")
        if len(text) <= MOST_CHARACTERS:
            return text
    raise LinkError(
        f"({run.app[:40]}, {run.input[:40]}): found a run of {len(text):,} letters, expected at most {MOST_CHARACTERS:,}, "
        "which a link can hold. Leave counters out that the model does not know."
    )


def _short(value: float) -> float | int:
    rounded = float(f"{value:.7g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def read(text: str) -> Run:
    """Return the run that a link holds; one that was cut or made up raises."""
    try:
        if len(text) > MOST_CHARACTERS:
            raise ValueError("too long")
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, _MOST_BYTES)
        if not unpacker.eof:
            raise ValueError("cut off, or too long")
        facts: Any = json.loads(data)
        if not isinstance(facts, dict):
            raise TypeError("no run")
        (run,) = checked(facts, need_runtime=False)
    except (ValueError, TypeError, binascii.Error, zlib.error, RecursionError) as error:
        sentence = "The run in this link cannot be read, expected the whole link as it was copied. Ask again."
        raise LinkError(sentence) from error
    return run
