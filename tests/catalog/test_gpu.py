from __future__ import annotations

import pytest

from crossperf.catalog import COUNTERS, FORMULAS, derive

GPU_FORMULAS = [formula for formula in FORMULAS if formula.on in ("NVIDIA", "AMD GPU")]
ON = "smsp__thread_inst_executed_pred_on.sum"


def _kind(name: str) -> str:
    return f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum"


def test_every_formula_names_a_counter_and_can_be_worked_out() -> None:
    for formula in GPU_FORMULAS:
        assert formula.counter in COUNTERS
        counts = {event: float(1000 + 7 * place) for place, event in enumerate(reversed(formula.events))}
        counts |= {event: 9999.0 for event in formula.events if "TOTAL" in event}
        counts |= {formula.events[-1]: 1e6} if formula.at_most else {}  # what is divided by stands last
        counts |= {formula.given: 1.0} if formula.given else {}
        percent = {event: 80.0 for event in formula.events if event.endswith(("_rate", "_efficiency"))}
        share = {event: 0.8 for event in formula.events if event.endswith("_occupancy")}
        assert formula.value(counts | percent | share) >= 0


def test_no_formula_claims_what_no_gpu_tool_tells() -> None:
    assert not [formula for formula in GPU_FORMULAS if formula.counter == "independent_ratio"]
    assert not [
        formula for formula in GPU_FORMULAS if formula.on == "AMD GPU" and formula.counter == "branch_miss_ratio"
    ]


def test_shares_of_kinds_have_threads_above_and_below_the_line() -> None:
    for formula in GPU_FORMULAS:
        if formula.tool == "ncu" and formula.counter in ("int_ratio", "float_ratio", "mem_ratio", "control_ratio"):
            assert all("thread" in event and "pred_on" in event for event in formula.events)


def test_floats_of_all_widths_count_and_eight_bits_may_be_absent() -> None:
    events = {_kind("fp16"): 10.0, _kind("fp32"): 20.0, _kind("fp64"): 30.0, ON: 100.0}
    assert derive(events, GPU_FORMULAS)["float_ratio"].value == pytest.approx(0.6)
    assert derive(events | {_kind("fp8"): 5.0}, GPU_FORMULAS)["float_ratio"].value == pytest.approx(0.65)


def test_the_parts_of_a_full_set_stand_in_for_the_first_cache_as_a_whole() -> None:
    parts = {
        f"l1tex__t_sectors_pipe_lsu_mem_{memory}_op_{way}_lookup_{result}.sum": count
        for memory, way, result, count in [
            ("global", "ld", "hit", 30.0),
            ("global", "st", "hit", 10.0),
            ("global", "ld", "miss", 10.0),
            ("global", "st", "miss", 5.0),
            ("local", "ld", "hit", 10.0),
            ("local", "ld", "miss", 10.0),
        ]
    }
    assert derive(parts, GPU_FORMULAS)["cache_miss_ratio"].value == pytest.approx(25 / 50)


def test_the_second_cache_prefers_what_the_first_one_asked_of_it() -> None:
    events = {
        "lts__t_sectors_srcunit_tex_lookup_miss.sum": 1.0,
        "lts__t_sectors_srcunit_tex_lookup_hit.sum": 4.0,
        "lts__t_sectors_lookup_miss.sum": 9.0,
        "lts__t_sectors_lookup_hit.sum": 9.0,
    }
    assert derive(events, GPU_FORMULAS)["l2_miss_ratio"].value == 0.25


def test_names_of_nvprof_give_the_same_counters() -> None:
    events = {
        "inst_executed": 50.0,
        "inst_fp_32": 200.0,
        "inst_fp_64": 100.0,
        "inst_integer": 300.0,
        "inst_bit_convert": 0.0,
        "inst_control": 100.0,
        "inst_compute_ld_st": 200.0,
        "inst_misc": 100.0,
        "inst_inter_thread_communication": 0.0,
        "branch_efficiency": 95.0,
        "l2_tex_hit_rate": 80.0,
    }
    values = {name: found.value for name, found in derive(events, GPU_FORMULAS).items()}
    assert values["instructions"] == 50
    assert values["int_ratio"] == pytest.approx(0.3)
    assert values["float_ratio"] == pytest.approx(0.3)
    assert values["mem_ratio"] == pytest.approx(0.2)
    assert values["control_ratio"] == pytest.approx(0.1)
    assert values["branch_miss_ratio"] == pytest.approx(0.05)
    assert values["l2_miss_ratio"] == pytest.approx(0.25)


def test_kinds_of_an_amd_gpu_that_lack_one_width_give_no_share_of_floats() -> None:
    waves = dict.fromkeys(
        [
            "SQ_INSTS_VALU",
            "SQ_INSTS_SALU",
            "SQ_INSTS_SMEM",
            "SQ_INSTS_VMEM_RD",
            "SQ_INSTS_VMEM_WR",
            "SQ_INSTS_LDS",
            "SQ_INSTS_BRANCH",
        ],
        10.0,
    )
    found = derive(waves | {"SQ_INSTS_VALU_FMA_F32": 5.0}, GPU_FORMULAS)
    assert found["instructions"].value == 70
    assert found["float_ratio"].value is None
