from __future__ import annotations

from crossperf.importers.measurement import Measurement, counted


def test_a_missing_counter_names_the_tool_s_own_reason_where_it_has_one() -> None:
    events = {"mix.int": None, "mix.classified": None, "Bc": None, "Bcm": 1.0, "Bi": 0.0, "Bim": 0.0}
    missing = counted([Measurement("valgrind", events, reasons={"mix.int": "70% could not be sorted"})]).missing
    assert missing["int_ratio"] == "valgrind: 70% could not be sorted"
    assert missing["branch_miss_ratio"] == "valgrind: Bc was not counted"


def test_events_of_an_earlier_version_still_give_every_counter_that_they_gave() -> None:
    """Accesses and sizes of lines were not kept; valgrind's reads and writes, and 64 bytes, stand in for them."""
    events = {"Ir": 100.0, "Dr": 30.0, "Dw": 10.0, "D1mr": 6.0, "D1mw": 4.0, "DLmr": 2.0, "DLmw": 0.0}
    values = counted([Measurement("valgrind", events)]).values
    assert values["cache_miss_ratio"] == 10.0 / 30.0
    assert values["cache_miss_rate"] == 0.25
    assert values["llc_miss_ratio"] == 0.25
    assert (values["bytes_beyond_l1"], values["bytes_beyond_llc"]) == (640.0, 128.0)
