"""Numbers and platforms in the words of the pages."""

from __future__ import annotations

from typing import Any

from crossperf.platforms import Platform
from crossperf.report.asked import three_digits
from crossperf.serve.drift import DriftFigures


def described(platform: Platform | None) -> str:
    """Return a platform in a few words: its processor or GPU, and the threads that it is used with."""
    if platform is None:
        return ""
    facts = platform.facts
    if platform.platform_class == "gpu" and facts.gpus:
        return facts.gpus[0].model or "a GPU"
    threads: Any = facts.more.get("threads")
    model = (facts.cpu_model or "").replace("(R)", "").replace("(TM)", "").removesuffix(" Processor")
    used = f"{threads} thread{'s' * (threads != 1)}" if isinstance(threads, int) else ""
    return ", ".join(part for part in (model, used) if part)


def duration(seconds: float) -> str:
    """Return seconds in the unit in which three digits say most.

    >>> duration(0.00123), duration(12.34), duration(7_400)
    ('1.23 ms', '12.3 s', '2.06 h')
    """
    for unit, name in ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= unit and (name != "min" or seconds >= 600):
            return f"{three_digits(seconds / unit)} {name}"
    return f"{three_digits(seconds * 1e6)} µs"


def short(value: float) -> str:
    """Return a relative time with two digits after the point, or none where it is large."""
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def chance(value: float) -> str:
    """Return a chance in per cent; never sure.

    >>> chance(0.999), chance(0.001), chance(0.42)
    ('> 99 %', '< 1 %', '42 %')
    """
    return "> 99 %" if value > 0.99 else "< 1 %" if value < 0.01 else f"{value:.0%}".replace("%", " %")


def bias(own: DriftFigures) -> str:
    """Return in which direction predictions were off.

    >>> bias(DriftFigures("q", 3, 1.3, 1.2, None, None)), bias(DriftFigures("q", 3, 1.3, 0.5, None, None))
    ('20 % longer', '50 % shorter')
    """
    change = abs(own.bias - 1.0)
    return "as predicted" if change < 0.005 else f"{100 * change:.0f} % {'longer' if own.bias > 1 else 'shorter'}"
