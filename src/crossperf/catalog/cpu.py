"""Formulas from the events of CPU tools: perf, PAPI, strace, valgrind, and what the operating system counts itself."""

from __future__ import annotations

from crossperf.catalog.formula import Formula

_ANY = "any CPU"
_LOADS_ONLY = "loads only: the generic event does not see stores"
_SPECULATIVE = "counts instructions that were started, wrong paths included"

_PERF = (
    Formula("instructions", "perf", _ANY, "instructions", "user mode only, as valgrind and PAPI count"),
    Formula("control_ratio", "perf", _ANY, "branches / instructions"),
    Formula("branch_miss_ratio", "perf", _ANY, "branch-misses // branches"),
    Formula(
        "cache_miss_ratio",
        "perf",
        _ANY,
        "L1-dcache-load-misses // ( L1-dcache-loads - L1-dcache-load-misses )",
        _LOADS_ONLY,
    ),
    Formula(
        "l2_miss_ratio",
        "perf",
        "Intel",
        "l2_rqsts.miss // ( l2_rqsts.references - l2_rqsts.miss )",
        "code and prefetch requests included",
    ),
    Formula(
        "l2_miss_ratio",
        "perf",
        "AMD Zen",
        "l2_cache_req_stat.ls_rd_blk_c // l2_cache_req_stat.dc_hit_in_l2",
        "data requests; dc_hit_in_l2 needs Zen 3 or later",
    ),
    Formula(
        "l2_miss_ratio", "perf", "ARM", "l2d_cache_refill // ( l2d_cache - l2d_cache_refill )", "write-backs included"
    ),
    Formula("llc_miss_ratio", "perf", "Intel", "LLC-load-misses // ( LLC-loads - LLC-load-misses )", _LOADS_ONLY),
    Formula("llc_miss_ratio", "perf", "ARM", "ll_cache_miss_rd // ( ll_cache_rd - ll_cache_miss_rd )", _LOADS_ONLY),
    Formula(
        "mem_ratio",
        "perf",
        "Intel",
        "( mem_inst_retired.all_loads + mem_inst_retired.all_stores ) / instructions",
        "an instruction that loads and stores counts twice; Skylake and later",
    ),
    Formula(
        "mem_ratio",
        "perf",
        "Intel",
        "( mem_uops_retired.all_loads + mem_uops_retired.all_stores ) / instructions",
        "micro-operations; Haswell and Broadwell",
    ),
    Formula(
        "mem_ratio",
        "perf",
        "AMD Zen",
        "( ls_dispatch.ld_dispatch + ls_dispatch.store_dispatch + ls_dispatch.ld_st_dispatch ) / instructions",
        "operations dispatched, not retired: wrong paths are included",
    ),
    Formula("mem_ratio", "perf", "ARM", "( ld_spec + st_spec ) / inst_spec", _SPECULATIVE),
    Formula("mem_ratio", "perf", "POWER", "( pm_ld_cmpl + pm_st_cmpl ) / instructions", "POWER9"),
    Formula(
        "float_ratio",
        "perf",
        "Intel",
        "( fp_arith_inst_retired.scalar_double + fp_arith_inst_retired.scalar_single"
        " + fp_arith_inst_retired.128b_packed_double + fp_arith_inst_retired.128b_packed_single"
        " + fp_arith_inst_retired.256b_packed_double + fp_arith_inst_retired.256b_packed_single"
        " + fp_arith_inst_retired.512b_packed_double? + fp_arith_inst_retired.512b_packed_single? ) / instructions",
        "a fused multiply-add counts twice; conversions and x87 do not count",
    ),
    Formula(
        "float_ratio", "perf", "ARM", "( vfp_spec + ase_spec ) / inst_spec", f"integer vectors too; {_SPECULATIVE}"
    ),
    Formula("int_ratio", "perf", "ARM", "dp_spec / inst_spec", f"moves included; {_SPECULATIVE}"),
)

#: Software events and tracepoints: they need no counter in the processor, and tracepoints need root.
_PERF_SOFTWARE = (
    Formula("page_faults", "perf", _ANY, "page-faults"),
    Formula("threads", "perf", _ANY, "task:task_newtask + 1", "threads started over the run, in all its processes"),
    Formula(
        "io_files_opened",
        "perf",
        _ANY,
        "syscalls:sys_exit_openat + syscalls:sys_exit_open? + syscalls:sys_exit_creat? + syscalls:sys_exit_openat2?",
        "successful calls; sockets and pipes are no files",
    ),
)

_PAPI = (
    Formula("instructions", "papi", _ANY, "PAPI_TOT_INS"),
    Formula("int_ratio", "papi", _ANY, "PAPI_INT_INS / PAPI_TOT_INS", "on few processors, POWER among them"),
    Formula("float_ratio", "papi", _ANY, "PAPI_FP_INS / PAPI_TOT_INS"),
    Formula("mem_ratio", "papi", _ANY, "( PAPI_LD_INS + PAPI_SR_INS ) / PAPI_TOT_INS"),
    Formula("mem_ratio", "papi", _ANY, "PAPI_LST_INS / PAPI_TOT_INS"),
    Formula("mem_ratio", "papi", "POWER", "( PM_LD_CMPL + PM_ST_CMPL ) / instructions"),
    Formula(
        "mem_ratio",
        "papi",
        "AMD Zen",
        "( LS_DISPATCH:LD_DISPATCH + LS_DISPATCH:STORE_DISPATCH ) / PAPI_TOT_INS",
        "operations dispatched, not retired",
    ),
    Formula("control_ratio", "papi", _ANY, "PAPI_BR_INS / PAPI_TOT_INS"),
    Formula("branch_miss_ratio", "papi", _ANY, "PAPI_BR_MSP // PAPI_BR_INS", "conditional branches on most processors"),
    Formula("cache_miss_ratio", "papi", _ANY, "PAPI_L1_DCM // ( PAPI_L1_DCA - PAPI_L1_DCM )"),
    Formula(
        "cache_miss_ratio",
        "papi",
        _ANY,
        "( PAPI_L1_LDM + PAPI_L1_STM ) // ( PAPI_LD_INS + PAPI_SR_INS - PAPI_L1_LDM - PAPI_L1_STM )",
        "every load and store is taken as an access",
    ),
    Formula(
        "cache_miss_ratio",
        "papi",
        _ANY,
        "PAPI_L1_DCM // ( PAPI_LD_INS + PAPI_SR_INS - PAPI_L1_DCM )",
        "every load and store is taken as an access",
    ),
    Formula(
        "cache_miss_ratio",
        "papi",
        "POWER",
        "( PM_LD_MISS_L1 + PM_ST_MISS_L1 ) // ( PM_LD_CMPL + PM_ST_CMPL - PM_LD_MISS_L1 - PM_ST_MISS_L1 )",
    ),
    Formula("l2_miss_ratio", "papi", _ANY, "PAPI_L2_DCM // ( PAPI_L2_DCA - PAPI_L2_DCM )"),
    Formula("l2_miss_ratio", "papi", _ANY, "PAPI_L2_TCM // ( PAPI_L2_TCA - PAPI_L2_TCM )", "code included"),
    Formula(
        "l2_miss_ratio",
        "papi",
        _ANY,
        "( PAPI_L2_LDM + PAPI_L2_STM ) // ( PAPI_L1_LDM + PAPI_L1_STM - PAPI_L2_LDM - PAPI_L2_STM )",
        "every first-level miss is taken as an access",
    ),
    Formula("llc_miss_ratio", "papi", _ANY, "PAPI_L3_TCM // ( PAPI_L3_TCA - PAPI_L3_TCM )", "code included"),
)

_SIMULATED = "simulated caches of the geometry given, no prefetcher"

_VALGRIND = (
    Formula("instructions", "valgrind", _ANY, "Ir", "user mode; each round of a `rep` instruction counts"),
    Formula("int_ratio", "valgrind", _ANY, "mix.int / mix.classified", "integer vectors included"),
    Formula(
        "float_ratio",
        "valgrind",
        _ANY,
        "mix.float / mix.classified",
        "conversions included; a fused multiply-add is one",
    ),
    Formula(
        "mem_ratio", "valgrind", _ANY, "mix.memory / mix.classified", "every instruction that loads or stores, once"
    ),
    Formula("control_ratio", "valgrind", _ANY, "mix.control / mix.classified"),
    Formula(
        "independent_ratio",
        "valgrind",
        _ANY,
        "mix.independent / mix.classified",
        "registers and flags inside a basic block; memory is not followed",
    ),
    Formula("cache_miss_ratio", "valgrind", _ANY, "( D1mr + D1mw ) // ( Dr + Dw - D1mr - D1mw )", _SIMULATED),
    Formula(
        "llc_miss_ratio",
        "valgrind",
        _ANY,
        "( DLmr + DLmw ) // ( D1mr + D1mw - DLmr - DLmw )",
        f"{_SIMULATED}; two levels, so each first-level miss asks the last level",
    ),
    Formula(
        "branch_miss_ratio", "valgrind", _ANY, "( Bcm + Bim ) // ( Bc + Bi )", "a simulated predictor of about 2004"
    ),
)

#: Not the same thing, and so believed last: operations for instructions, or scalars alone.
_NEARLY = (
    Formula(
        "float_ratio",
        "perf",
        "AMD Zen",
        "fp_ret_sse_avx_ops.all / instructions",
        "operations, not instructions: a vector instruction counts once for each element, so it may exceed 1",
    ),
    Formula("float_ratio", "perf", "POWER", "pm_flop_cmpl / instructions", "POWER9; operations"),
    Formula(
        "float_ratio",
        "papi",
        _ANY,
        "( PAPI_SP_OPS + PAPI_DP_OPS ) / PAPI_TOT_INS",
        "operations: a vector instruction counts once for each element",
    ),
    Formula(
        "float_ratio",
        "papi",
        "Intel",
        "( FP_ARITH:SCALAR_DOUBLE + FP_ARITH:SCALAR_SINGLE ) / PAPI_TOT_INS",
        "vector instructions are not seen",
    ),
)

_STRACE = (
    Formula(
        "threads", "strace", _ANY, "strace.threads_started + 1", "threads started over the run, in all its processes"
    ),
    Formula(
        "io_files_opened", "strace", _ANY, "strace.files_opened", "successful calls; sockets and pipes are no files"
    ),
)

_OS = (
    Formula("page_faults", "os", _ANY, "os.minor_faults + os.major_faults", "children that were waited for included"),
    Formula("page_levels", "os", _ANY, "os.page_levels", "of the machine: 4, or 5 where 57-bit addresses are in use"),
    Formula(
        "io_bytes_read", "os", _ANY, "os.rchar", "through system calls, cached or not; memory-mapped files are not seen"
    ),
    Formula("io_bytes_written", "os", _ANY, "os.wchar", "through system calls; memory-mapped files are not seen"),
)

_OS_THREADS = (
    Formula(
        "threads",
        "os",
        _ANY,
        "os.peak_threads",
        "the most seen at a time by looking now and then: short-lived ones are missed",
    ),
)

#: In order of belief: hardware before simulation, the untraced run before a traced one where both see all.
CPU_FORMULAS: tuple[Formula, ...] = (
    *_PERF,
    *_PAPI,
    *_VALGRIND,
    *_NEARLY,
    *_OS,
    *_PERF_SOFTWARE,
    *_STRACE,
    *_OS_THREADS,
)
