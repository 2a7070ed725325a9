"""Numbers and names as a figure writes them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from os.path import commonprefix  # letter by letter, which is what is meant here
from typing import TYPE_CHECKING

from crossperf.errors import several

if TYPE_CHECKING:
    from crossperf.evaluation.scores import Scores
    from crossperf.report.figures.sheet import Sheet
    from crossperf.runs.summary import Spread


def times(factor: float) -> str:
    """Return a ratio in three digits.

    >>> times(1.0), times(1.314), times(23.04), times(1840.2), times(2.5e7)
    ('1.00x', '1.31x', '23.0x', '1,840x', '2.5e7x')
    """
    if factor >= 99.95:
        return f"{number(float(f'{factor:.3g}'))}x"
    return f"{factor:.1f}x" if factor >= 9.995 else f"{factor:.2f}x"


def number(value: float) -> str:
    """Return a number written out, or with a power of ten where that would be long.

    >>> number(1.5), number(1000.0), number(3e12)
    ('1.5', '1,000', '3e12')
    """
    if value < 1e6:
        return f"{value:,.6g}"
    power = math.floor(math.log10(value))
    return f"{value / 10**power:.3g}e{power}"


def percent(share: float) -> str:
    """Return a share, with a decimal where it would otherwise read as none or all.

    >>> percent(0.357), percent(0.004), percent(1.0), percent(0.9996)
    ('36%', '0.4%', '100%', '99.9%')
    """
    if 0 < share < 0.01 or 0.99 < share < 1:
        return f"{min(max(share, 0.001), 0.999):.1%}"
    return f"{share:.0%}"


def of_r2(scores: Scores) -> str:
    """Return R2 of the paper's vector in its three forms, in a sentence; empty where none is known.

    >>> from crossperf.evaluation.scores import Scores
    >>> of_r2(Scores(r2=0.81, r2_slowest=0.9))
    "R2 of the paper's vector: 0.81 as time over the fastest, 0.90 as time over the slowest."
    >>> of_r2(Scores(r2=-0.1)).endswith(" (below 0: worse than answering each platform's mean every time).")
    True
    """
    forms = {
        "time over the fastest": scores.r2,
        "time over the slowest": scores.r2_slowest,
        "speed over the fastest": scores.r2_speed,
    }
    known = {words: value for words, value in forms.items() if value is not None}
    worse = any(value < 0 for value in known.values())
    note = " (below 0: worse than answering each platform's mean every time)" if worse else ""
    parts = ", ".join(f"{value:.2f} as {words}" for words, value in known.items())
    return f"R2 of the paper's vector: {parts}{note}." if parts else ""


def how_often(repeats: Spread) -> str:
    """Return how often cells were measured: ``3 times``, or ``1 to 3 times``."""
    least, most = repeats.min or 0, repeats.max or 0
    return several(most, "time") if least == most else f"{least} to {most} times"


def left_out(number: int, noun: str, which: str = "") -> str:
    """Return a sentence on how many things a figure leaves out; empty where it shows all.

    >>> left_out(1, "application", "with smaller errors"), left_out(0, "model")
    (' 1 application with smaller errors left out.', '')
    """
    return f" {' '.join(filter(None, [several(number, noun), which]))} left out." if number > 0 else ""


def plain(name: str) -> str:
    r"""Return a name on one line, without what no font and no XML can show.

    >>> plain("lulesh\n \x00 30")
    'lulesh 30'
    """
    kept = (" " if unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") else letter for letter in name)
    return " ".join("".join(kept).split())


def fitted(sheet: Sheet, name: str, room: float, size: float) -> str:
    """Return a name that runs no wider than the room in inches: its middle gives way to an ellipsis."""
    name = plain(name)
    kept = len(name)
    while kept > 3 and sheet.width_of(_shortened(name, kept), size) > room:
        kept -= max(1, kept // 20)
    return _shortened(name, kept)


def fitted_apart(sheet: Sheet, names: Iterable[str], room: float, size: float) -> list[str]:
    """Return names that fit and stay distinct: what all have in common goes first where it must."""
    whole = [plain(name) for name in names]
    labels = [fitted(sheet, name, room, size) for name in whole]
    for own in (_without_common(whole, tail=False), _without_common(whole, tail=True)):
        if len(set(labels)) == len(set(whole)):
            break
        labels = [fitted(sheet, name, room, size) for name in own]
    # Names that differ in what cannot be shown, or all over, are numbered.
    twice = len(set(labels)) < len(labels)
    return [f"{label} ({i})" for i, label in enumerate(labels, start=1)] if twice else labels


def _without_common(names: list[str], *, tail: bool) -> list[str]:
    """Return names without the head, and the tail, that all share: ``…10…`` where ``node-20-fast`` is the other."""
    head = len(commonprefix(names))  # noqa: RUF071
    end = len(commonprefix([name[head:][::-1] for name in names])) if tail else 0  # noqa: RUF071
    while head and any(name[head - 1].isdigit() for name in names):  # a number stays whole
        head -= 1
    while end and any(name[len(name) - end].isdigit() for name in names):
        end -= 1
    return [f"{'…' * (head > 0)}{name[head : len(name) - end]}{'…' * (end > 0)}" for name in names]


def _shortened(name: str, kept: int) -> str:
    return name if kept >= len(name) else f"{name[: (kept + 1) // 2]}…{name[len(name) - kept // 2 :]}"
