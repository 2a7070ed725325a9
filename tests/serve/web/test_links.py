"""Runs in links: what is written is read again, and what was made up is refused in a sentence."""

from __future__ import annotations

import base64
import zlib
from dataclasses import replace

import pytest

from crossperf.errors import CrossperfError
from crossperf.records import Run
from crossperf.runs.events import EVENTS
from crossperf.serve.web import links
from crossperf.serve.web.links import LinkError
from tests.serve.web.world import LONG, asked


def test_a_run_comes_back_from_its_link() -> None:
    run = replace(asked(), repeat=None, source_tool=None, metadata={EVENTS: {"perf": {"cycles": 5.0}}})
    back = links.read(links.written(run))
    assert back.metadata[EVENTS] == {"perf": {"cycles": 5.0}}
    assert replace(back, counters={}, runtime_s=None, metadata={}) == replace(
        run, counters={}, runtime_s=None, metadata={}
    )
    known = [{name: value for name, value in own.counters.items() if value is not None} for own in (back, run)]
    assert known[0] == pytest.approx(known[1], rel=1e-6)


def test_a_name_of_ten_thousand_characters_fits_into_a_link() -> None:
    assert links.read(links.written(replace(asked(), app=LONG))).app == LONG


def test_events_are_left_out_where_a_link_would_be_too_long() -> None:
    events = {"perf": {f"event{number}": float(hash(number * 7919) % 10**9) for number in range(3000)}}
    text = links.written(replace(asked(), metadata={EVENTS: events}))
    assert len(text) <= links.MOST_CHARACTERS
    assert EVENTS not in links.read(text).metadata


def test_a_run_that_no_link_can_hold_is_refused() -> None:
    counters = {f"counter{hash(str(number)) % 10**12}": float(number) for number in range(3000)}
    with pytest.raises(LinkError, match="expected at most"):
        links.written(Run("a", "1", "p", 1.0, counters=counters))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "made up",
        "é",
        "AAAA",
        base64.urlsafe_b64encode(zlib.compress(b"[1]")).decode(),
        base64.urlsafe_b64encode(zlib.compress(b"\0" * 10_000_000)).decode(),
        base64.urlsafe_b64encode(zlib.compress(b"[" * 100_000)).decode(),
        "A" * 10_000,
    ],
    ids=["empty", "words", "letters", "no stream", "no run", "bomb", "deep", "long"],
)
def test_a_link_that_was_made_up_is_refused(text: str) -> None:
    with pytest.raises(LinkError, match="cannot be read"):
        links.read(text.rstrip("="))


def test_a_link_with_an_unsound_run_tells_what_is_wrong() -> None:
    text = base64.urlsafe_b64encode(zlib.compress(b'{"app": "a", "counters": {"x": "many"}}')).decode().rstrip("=")
    with pytest.raises(CrossperfError, match="platform"):
        links.read(text)
