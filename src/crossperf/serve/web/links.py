"""A run in a link: an answer has its own address, which any server with the same model can answer.

Nothing is stored on the server. The run is written as JSON, compressed, and spelled in letters that a link may hold.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

from crossperf.documents import parse
from crossperf.errors import CrossperfError
from crossperf.records import COLUMNS, Run
from crossperf.runs.checking import checked
from crossperf.runs.events import EVENTS

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
    facts = {name: value for name in COLUMNS if name not in _LEFT_OUT and (value := getattr(run, name)) is not None}
    facts["counters"] = {name: _short(value) for name, value in run.counters.items() if value is not None}
    events = run.metadata.get(EVENTS)
    for more in ({EVENTS: events} if events else {}, {}):
        packed = zlib.compress(json.dumps({**facts, **more}, separators=(",", ":")).encode(), 9)
        text = base64.urlsafe_b64encode(packed).decode().rstrip("=")
        if len(text) <= MOST_CHARACTERS:
            return text
    raise LinkError(
        f"({run.app[:40]}, {run.input[:40]}): found a run of {len(text):,} letters, expected at most "
        f"{MOST_CHARACTERS:,}, which a link can hold. Leave counters out that the model does not know."
    )


def _short(value: float) -> float | int:
    rounded = float(f"{value:.7g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def read(text: str) -> Run:
    """Return the run that a link holds; one that was cut or made up raises."""
    facts = _unpacked(text)
    if not isinstance(facts, dict):
        sentence = "The run in this link cannot be read, expected the whole link as it was copied. Ask again."
        raise LinkError(sentence)
    (run,) = checked(facts, name="the link", need_runtime=False)
    return run


def _unpacked(text: str) -> Any:
    """Return what a link holds; ``None`` where that is nothing of ours."""
    if len(text) > MOST_CHARACTERS:
        return None
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(packed, _MOST_BYTES)
        return parse(data) if unpacker.eof else None
    except (ValueError, binascii.Error, zlib.error):
        return None
