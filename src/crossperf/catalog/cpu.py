"""Formulas from the events of CPU tools: perf, PAPI, strace, valgrind, and what the operating system counts itself."""

from __future__ import annotations

from crossperf.catalog.formula import formulas

_LOADS_ONLY = "loads only: the generic event does not see stores"
_SPECULATIVE = "counts instructions that were started, wrong paths included"

_PERF = formulas(f"""
perf on any CPU:
instructions | | instructions | user mode only, as valgrind and PAPI count
control_ratio | | branches / instructions
branch_miss_ratio | | branch-misses // branches
cache_miss_ratio | | L1-dcache-load-misses // ( L1-dcache-loads - L1-dcache-load-misses ) | {_LOADS_ONLY}
l2_miss_ratio | Intel | l2_rqsts.miss // ( l2_rqsts.references - l2_rqsts.miss ) | code and prefetch requests included
l2_miss_ratio | AMD Zen | l2_cache_req_stat.ls_rd_blk_c // l2_cache_req_stat.dc_hit_in_l2
    | data requests; dc_hit_in_l2 needs Zen 3 or later
l2_miss_ratio | ARM | l2d_cache_refill // ( l2d_cache - l2d_cache_refill ) | write-backs included
llc_miss_ratio | Intel | LLC-load-misses // ( LLC-loads - LLC-load-misses ) | {_LOADS_ONLY}
llc_miss_ratio | ARM | ll_cache_miss_rd // ( ll_cache_rd - ll_cache_miss_rd ) | {_LOADS_ONLY}
mem_ratio | Intel | ( mem_inst_retired.all_loads + mem_inst_retired.all_stores ) / instructions
    | an instruction that loads and stores counts twice; Skylake and later
mem_ratio | Intel | ( mem_uops_retired.all_loads + mem_uops_retired.all_stores ) / instructions
    | micro-operations; Haswell and Broadwell
mem_ratio | AMD Zen | ( ls_dispatch.ld_dispatch + ls_dispatch.store_dispatch + ls_dispatch.ld_st_dispatch ) /
    instructions
    | operations dispatched, not retired: wrong paths are included
mem_ratio | ARM | ( ld_spec + st_spec ) / inst_spec | {_SPECULATIVE}
mem_ratio | POWER | ( pm_ld_cmpl + pm_st_cmpl ) / instructions | POWER9
float_ratio | Intel | ( fp_arith_inst_retired.scalar_double + fp_arith_inst_retired.scalar_single +
    fp_arith_inst_retired.128b_packed_double + fp_arith_inst_retired.128b_packed_single +
    fp_arith_inst_retired.256b_packed_double + fp_arith_inst_retired.256b_packed_single +
    fp_arith_inst_retired.512b_packed_double? + fp_arith_inst_retired.512b_packed_single? ) / instructions
    | a fused multiply-add counts twice; conversions and x87 do not count
float_ratio | ARM | ( vfp_spec + ase_spec ) / inst_spec | integer vectors too; {_SPECULATIVE}
int_ratio | ARM | dp_spec / inst_spec | moves included; {_SPECULATIVE}
""")

#: Software events and tracepoints: they need no counter in the processor, and tracepoints need root.
_PERF_SOFTWARE = formulas("""
perf on any CPU:
page_faults | | page-faults
threads | | task:task_newtask + 1 | threads started over the run, in all its processes
io_files_opened | | syscalls:sys_exit_openat + syscalls:sys_exit_open? + syscalls:sys_exit_creat? +
    syscalls:sys_exit_openat2?
    | successful calls; sockets and pipes are no files
""")

_PAPI = formulas("""
papi on any CPU:
instructions | | PAPI_TOT_INS
int_ratio | | PAPI_INT_INS / PAPI_TOT_INS | on few processors, POWER among them
float_ratio | | PAPI_FP_INS / PAPI_TOT_INS
mem_ratio | | ( PAPI_LD_INS + PAPI_SR_INS ) / PAPI_TOT_INS
mem_ratio | | PAPI_LST_INS / PAPI_TOT_INS
mem_ratio | POWER | ( PM_LD_CMPL + PM_ST_CMPL ) / instructions
mem_ratio | AMD Zen | ( LS_DISPATCH:LD_DISPATCH + LS_DISPATCH:STORE_DISPATCH ) / PAPI_TOT_INS
    | operations dispatched, not retired
control_ratio | | PAPI_BR_INS / PAPI_TOT_INS
branch_miss_ratio | | PAPI_BR_MSP // PAPI_BR_INS | conditional branches on most processors
cache_miss_ratio | | PAPI_L1_DCM // ( PAPI_L1_DCA - PAPI_L1_DCM )
cache_miss_ratio | | ( PAPI_L1_LDM + PAPI_L1_STM ) // ( PAPI_LD_INS + PAPI_SR_INS - PAPI_L1_LDM - PAPI_L1_STM )
    | every load and store is taken as an access
cache_miss_ratio | | PAPI_L1_DCM // ( PAPI_LD_INS + PAPI_SR_INS - PAPI_L1_DCM )
    | every load and store is taken as an access
cache_miss_ratio | POWER | ( PM_LD_MISS_L1 + PM_ST_MISS_L1 ) // ( PM_LD_CMPL + PM_ST_CMPL - PM_LD_MISS_L1 -
    PM_ST_MISS_L1 )
l2_miss_ratio | | PAPI_L2_DCM // ( PAPI_L2_DCA - PAPI_L2_DCM )
l2_miss_ratio | | PAPI_L2_TCM // ( PAPI_L2_TCA - PAPI_L2_TCM ) | code included
l2_miss_ratio | | ( PAPI_L2_LDM + PAPI_L2_STM ) // ( PAPI_L1_LDM + PAPI_L1_STM - PAPI_L2_LDM - PAPI_L2_STM )
    | every first-level miss is taken as an access
llc_miss_ratio | | PAPI_L3_TCM // ( PAPI_L3_TCA - PAPI_L3_TCM ) | code included
""")

_SIMULATED = "simulated caches of the geometry given, no prefetcher"

_VALGRIND = formulas(f"""
valgrind on any CPU:
instructions | | Ir | user mode; each round of a `rep` instruction counts
int_ratio | | mix.int / mix.classified | integer vectors included
float_ratio | | mix.float / mix.classified | conversions included; a fused multiply-add is one
mem_ratio | | mix.memory / mix.classified | every instruction that loads or stores, once
control_ratio | | mix.control / mix.classified
independent_ratio | | mix.independent / mix.classified
    | registers and flags inside a basic block; memory is not followed
cache_miss_ratio | | ( D1mr + D1mw ) // ( Dr + Dw - D1mr - D1mw ) | {_SIMULATED}
llc_miss_ratio | | ( DLmr + DLmw ) // ( D1mr + D1mw - DLmr - DLmw )
    | {_SIMULATED}; two levels, so each first-level miss asks the last level
branch_miss_ratio | | ( Bcm + Bim ) // ( Bc + Bi ) | a simulated predictor of about 2004
""")

#: Not the same thing, and so believed last: operations for instructions, or scalars alone.
_NEARLY = (
    *formulas("""
perf on any CPU:
float_ratio | AMD Zen | fp_ret_sse_avx_ops.all / instructions
    | operations, not instructions: a vector instruction counts once for each element, so it may exceed 1
float_ratio | POWER | pm_flop_cmpl / instructions | POWER9; operations
"""),
    *formulas("""
papi on any CPU:
float_ratio | | ( PAPI_SP_OPS + PAPI_DP_OPS ) / PAPI_TOT_INS
    | operations: a vector instruction counts once for each element
float_ratio | Intel | ( FP_ARITH:SCALAR_DOUBLE + FP_ARITH:SCALAR_SINGLE ) / PAPI_TOT_INS
    | vector instructions are not seen
"""),
)

_STRACE = formulas("""
strace on any CPU:
threads | | strace.threads_started + 1 | threads started over the run, in all its processes
io_files_opened | | strace.files_opened | successful calls; sockets and pipes are no files
""")

_OS = formulas("""
os on any CPU:
page_faults | | os.minor_faults + os.major_faults | children that were waited for included
page_levels | | os.page_levels | of the machine: 4, or 5 where 57-bit addresses are in use
io_bytes_read | | os.rchar | through system calls, cached or not; memory-mapped files are not seen
io_bytes_written | | os.wchar | through system calls; memory-mapped files are not seen
""")

_OS_THREADS = formulas("""
os on any CPU:
threads | | os.peak_threads | the most seen at a time by looking now and then: short-lived ones are missed
""")

#: In order of belief: hardware before simulation, the untraced run before a traced one where both see all.
CPU_FORMULAS = (*_PERF, *_PAPI, *_VALGRIND, *_NEARLY, *_OS, *_PERF_SOFTWARE, *_STRACE, *_OS_THREADS)
