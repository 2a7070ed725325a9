from __future__ import annotations

from crossperf.report.figures.sheet import Sheet
from crossperf.report.figures.words import fitted, fitted_apart

SHEET = Sheet("words", "?")


def test_a_long_name_loses_its_middle_until_it_fits() -> None:
    short = fitted(SHEET, "a-name-that-never-seems-to-end", 1.0, 10)
    assert SHEET.width_of(short, 10) <= 1.0 < SHEET.width_of("a-name-that-never-seems-to-end", 10)
    assert short.startswith("a-na") and short.endswith("end") and "…" in short
    assert fitted(SHEET, "h200", 1.0, 10) == "h200"
    assert fitted(SHEET, "wwwwwwww", 0.01, 10) == "ww…w"


def test_names_that_differ_in_their_middles_alone_keep_those() -> None:
    names = [f"a-family-of-cloud-instances.{i}xlarge-on-demand-in-the-far-north" for i in (2, 12)]
    first, second = fitted_apart(SHEET, names, 1.2, 10)
    assert first.startswith("…2x") and second.startswith("…12x")
    names = [f"a-family-of-cloud-instances-{i}-on-demand-in-the-far-north" for i in (100, 101)]
    assert fitted_apart(SHEET, names, 0.55, 10) == ["…100…", "…101…"]


def test_names_that_nothing_shown_tells_apart_are_numbered() -> None:
    assert fitted_apart(SHEET, ["node\x00", "node\x01"], 1.2, 10) == ["node (1)", "node (2)"]


def test_no_names_are_no_names() -> None:
    assert fitted_apart(SHEET, [], 1.2, 10) == []
