from __future__ import annotations

import pytest

from crossperf import catalog
from crossperf.catalog.formula import Formula, UndefinedError, derive


def formula(text: str, counter: str = "mem_ratio") -> Formula:
    return Formula(counter, "tool", "any CPU", text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a", 8.0),
        ("a + b * c", 14.0),
        ("( a + b ) * c", 30.0),
        ("a / b / 2", 2.0),
        ("a - b - c", 3.0),
        ("a-b.c:d / 2", 5.0),
        ("a + gone?", 8.0),
        ("1e3 * b", 2000.0),
        ("b // zero", 2.0),
        ("zero // zero", 0.0),
        ("a // b", 4.0),
    ],
)
def test_a_formula_is_read_with_the_usual_precedence(text: str, value: float) -> None:
    assert formula(text).value({"a": 8.0, "b": 2.0, "c": 3.0, "a-b.c:d": 10.0, "zero": 0.0}) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a / gone", "gone was not counted"),
        ("a / asked", "asked was not counted"),
        ("a + asked?", "asked was not counted"),
        ("a / zero", "divide by 0"),
        ("a / minus", "minus is negative"),
        ("zero - a", "is negative"),
        ("gone? + lost?", "gone, lost were not counted"),
    ],
)
def test_missing_zero_and_negative_events_leave_a_counter_undefined_each_with_its_reason(
    text: str, reason: str
) -> None:
    events = {"a": 8.0, "zero": 0.0, "minus": -3.0, "asked": None}
    with pytest.raises(UndefinedError, match=reason):
        formula(text).value(events)


def test_zero_is_a_value_and_not_a_missing_one() -> None:
    assert derive({"a": 0.0, "b": 4.0}, [formula("a / b")])["mem_ratio"].value == 0.0


def test_the_first_formula_that_has_a_value_wins_and_says_which_it_was() -> None:
    first, second = formula("gone / b"), formula("a / b")
    found = derive({"a": 1.0, "b": 4.0}, [first, second, formula("b / b")])
    assert found["mem_ratio"].value == 0.25
    assert found["mem_ratio"].formula is second


def test_a_counter_of_which_no_event_was_asked_for_is_absent() -> None:
    assert derive({"x": 1.0}, [formula("a / b")]) == {}


@pytest.mark.parametrize("known", catalog.FORMULAS, ids=lambda known: f"{known.tool}-{known.on}-{known.counter}")
def test_every_formula_of_the_catalog_names_a_counter_and_has_a_value_for_sound_events(known: Formula) -> None:
    assert known.counter in catalog.COUNTERS
    # Each event larger than the one before leaves every difference of the catalog positive one way round.
    rising = {event: 100.0 + number for number, event in enumerate(known.events)}
    falling = {event: 100.0 - number for number, event in enumerate(known.events)}
    whole = {event: 1000.0 if event == known.events[-1] else 1.0 for event in known.events}
    share = dict.fromkeys(known.events, 0.5)
    values = []
    for events in (rising, falling, whole, share):
        try:
            values.append(known.value(events | ({known.given: 1.0} if known.given else {})))
        except UndefinedError:
            continue
    assert values, known.text


@pytest.mark.parametrize("name", sorted(set(catalog.COUNTERS)))
def test_every_counter_of_the_vocabulary_can_be_had_from_some_tool(name: str) -> None:
    assert any(known.counter == name for known in catalog.FORMULAS)


def test_events_keep_apart_by_their_names_so_that_tools_can_be_joined() -> None:
    tools_of: dict[str, set[str]] = {}
    for known in catalog.FORMULAS:
        for event in known.events:
            tools_of.setdefault(event, set()).add(known.tool)
    # LIKWID and VTune count the processor's events that perf names, nsys records what CUPTI does.
    same = ({"perf", "likwid", "vtune"}, {"cupti", "nsys"})
    shared = {event for event, tools in tools_of.items() if len(tools) > 1 and not any(tools <= of for of in same)}
    # On POWER and where HPCToolkit counted, PAPI's formulas take perf's own `instructions`.
    assert shared <= {"instructions"}


def test_more_misses_than_accesses_are_no_rate_and_no_ratio() -> None:
    events = {"L1-dcache-load-misses": 130.0, "L1-dcache-loads": 100.0}
    derived = derive(events, catalog.FORMULAS)
    for name in ("cache_miss_ratio", "cache_miss_rate"):
        assert derived[name].value is None
    assert derived["cache_miss_rate"].reason == (
        "L1-dcache-load-misses // L1-dcache-loads is 1.3, which no share of a whole can be"
    )


def test_a_share_above_one_is_missing_and_the_next_formula_is_asked() -> None:
    operations = {"PAPI_DP_OPS": 900.0, "PAPI_SP_OPS": 300.0, "PAPI_TOT_INS": 1000.0}
    assert derive(operations, catalog.FORMULAS)["float_ratio"].value is None
    scalars = {"FP_ARITH:SCALAR_DOUBLE": 100.0, "FP_ARITH:SCALAR_SINGLE": 50.0}
    assert derive(operations | scalars, catalog.FORMULAS)["float_ratio"].value == 0.15


def test_a_formula_holds_only_where_the_event_that_marks_the_processor_was_counted() -> None:
    formula = Formula("bytes_beyond_l1", "tool", "new parts", "128 * reads", given="new_event")
    assert formula.value({"reads": 2.0, "new_event": 7.0}) == 256.0
    with pytest.raises(UndefinedError, match="new_event was not counted"):
        formula.value({"reads": 2.0})


def test_lines_that_zen_filled_from_beyond_its_core_complex_are_misses_of_the_last_level() -> None:
    zen3 = {"ext_cache_local": 5.0, "ext_cache_remote": 1.0, "mem_io_local": 30.0, "mem_io_remote": 4.0}
    events = {f"ls_any_fills_from_sys.{name}": count for name, count in (zen3 | {"int_cache": 80.0}).items()}
    derived = derive(events, catalog.FORMULAS)
    assert derived["llc_miss_ratio"].value == 0.5
    assert derived["llc_miss_rate"].value == pytest.approx(1 / 3)
    assert derived["bytes_beyond_llc"].value == 64 * 34
    zen4 = {"remote_cache": 6.0, "dram_io_all": 34.0, "local_ccx": 80.0}
    events = {f"ls_any_fills_from_sys.{name}": count for name, count in zen4.items()}
    assert derive(events, catalog.FORMULAS)["llc_miss_ratio"].value == 0.5


def test_hits_of_the_second_level_on_zen_three_are_its_four_kinds_of_data_hits() -> None:
    counts = {"ls_rd_blk_c": 10.0, "ls_rd_blk_cs": 1.0, "ls_rd_blk_l_hit_x": 20.0, "ls_rd_blk_l_hit_s": 3.0}
    events = {f"l2_cache_req_stat.{name}": count for name, count in (counts | {"ls_rd_blk_x": 16.0}).items()}
    assert derive(events, catalog.FORMULAS)["l2_miss_ratio"].value == 10 / 40
