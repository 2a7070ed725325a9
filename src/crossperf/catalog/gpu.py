"""Formulas from the events of GPU tools: Nsight Compute, CUPTI and nvprof for NVIDIA, rocprof for AMD.

Counts are totals over all kernel launches; a ratio is taken of totals, never averaged over launches.

``instructions`` counts what a warp (or wavefront) executes, since one of them drives up to 32 (64) threads as
one SIMD instruction of a CPU drives its lanes. The shares of kinds are taken from threads on NVIDIA, the only
level at which its tools tell kinds apart, with threads that are switched off by a predicate left out above and
below the line.

No formula gives ``independent_ratio``: GPU tools count why warps wait, and a warp that waits for a slot or for
memory says nothing about the dependencies between its instructions. AMD has no counter of divergent branches,
so ``branch_miss_ratio`` stays missing there.
"""

from __future__ import annotations

from crossperf.catalog.formula import formulas

_THREADS_ON = "smsp__thread_inst_executed_pred_on.sum"
_OF_THREADS = "Thread instructions that no predicate switches off, above and below the line."


def _kind(name: str) -> str:
    return f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum"


def _lookups(operation: str, result: str) -> str:
    return f"l1tex__t_sectors_pipe_lsu_mem_{operation}_lookup_{result}.sum"


def _lsu(result: str) -> str:
    every = [_lookups(f"global_op_{way}", result) for way in ("ld", "st")]
    return " + ".join([*every, *(f"{_lookups(f'local_op_{way}', result)}?" for way in ("ld", "st"))])


_DIVERGENT = "smsp__sass_branch_targets_threads_divergent.sum"
_NO_PREDICTION = "A GPU predicts no branches: branches at which the threads of a warp part, to all branches."
_L1 = (
    "32-byte sectors looked up in L1TEX by loads and stores; its stores write through, so a store that finds no"
    " line counts as a miss. ncu flushes the caches before each kernel unless set otherwise."
)
_L2 = (
    "32-byte sectors that the L1 asked of the L2. Traffic between the two halves of an L2 is left out: it would"
    " count some sectors twice. ncu flushes the caches before each kernel unless set otherwise."
)
_L2_TEXT = "lts__t_sectors_srcunit_tex_lookup_miss.sum // lts__t_sectors_srcunit_tex_lookup_hit.sum"

# Branches are not over smsp__inst_executed_op_branch.sum: that counts EXIT too, once for every warp.
_NCU = formulas(f"""
ncu on NVIDIA:
instructions | | smsp__inst_executed.sum
    | Instructions of warps: one stands for up to 32 threads, as one SIMD instruction does on a CPU.
instructions | | sm__inst_executed.sum | The same, added up per multiprocessor.
int_ratio | | {_kind("integer")} / {_THREADS_ON}
    | {_OF_THREADS} Logic, shifts, comparisons and address arithmetic are integer; so are moves made by IMAD.
float_ratio | | ( {_kind("fp16")} + {_kind("fp32")} + {_kind("fp64")} + {_kind("fp8")}? ) / {_THREADS_ON}
    | {_OF_THREADS} A fused multiply-add counts once, an instruction of the tensor cores once however much it
    multiplies (as fp16 on Hopper), and so does an HFMA2 that only sets a register.
mem_ratio | | {_kind("memory")} / {_THREADS_ON}
    | {_OF_THREADS} Global, local, shared and constant memory; kernel arguments are loads from constant memory.
control_ratio | | {_kind("control")} / {_THREADS_ON}
    | {_OF_THREADS} With EXIT, which every thread executes once, and the marks at which parted threads meet.
cache_miss_ratio | | l1tex__t_sectors_lookup_miss.sum // l1tex__t_sectors_lookup_hit.sum | {_L1}
cache_miss_ratio | | ( {_lsu("miss")} ) // ( {_lsu("hit")} )
    | {_L1} From the parts that 'ncu --set full' collects: global and local memory, no textures.
l2_miss_ratio | | {_L2_TEXT} | {_L2}
l2_miss_ratio | | lts__t_sectors_lookup_miss.sum // lts__t_sectors_lookup_hit.sum
    | All sectors looked up in the L2: with those that its halves ask of each other.
llc_miss_ratio | | {_L2_TEXT} | The L2 is the last level. {_L2}
branch_miss_ratio | | {_DIVERGENT} // smsp__sass_branch_targets.sum | {_NO_PREDICTION}
warp_blocks | | launch__grid_size
threads | | streams_with_kernels | Streams that carried a kernel, over all processes.
""")

_COPIES = (
    "Explicit copies (cudaMemcpy and its kin). What moves on demand is not seen: pages of managed memory, and host"
    " memory that a kernel reads in place."
)
_WHILE_COPYING = "Bytes over the time that the copies took, added up; the time between them does not count."

_CUPTI = formulas(f"""
cupti on NVIDIA:
threads | | streams | Streams that carried a kernel or a copy, over all processes.
warp_blocks | | thread_blocks
bytes_host_to_gpu | | memcpy_htod_bytes | {_COPIES}
bytes_gpu_to_host | | memcpy_dtoh_bytes | {_COPIES}
bandwidth_host_to_gpu | | memcpy_htod_bytes // memcpy_htod_ns * 1e9 | {_WHILE_COPYING}
bandwidth_gpu_to_host | | memcpy_dtoh_bytes // memcpy_dtoh_ns * 1e9 | {_WHILE_COPYING}
""")

_NVPROF_KINDS = (
    "inst_fp_16? + inst_fp_32 + inst_fp_64 + inst_integer + inst_bit_convert + inst_control"
    " + inst_compute_ld_st + inst_misc + inst_inter_thread_communication"
)
_OF_KINDS = "Thread instructions, to the sum of all kinds."
_ONE_KERNEL = "nvprof tells a percentage, so this holds for one kernel; percentages of several cannot be added."

_NVPROF = formulas(f"""
nvprof on NVIDIA:
instructions | | inst_executed | Instructions of warps. Up to Volta.
int_ratio | | inst_integer / ( {_NVPROF_KINDS} ) | {_OF_KINDS}
float_ratio | | ( inst_fp_16? + inst_fp_32 + inst_fp_64 ) / ( {_NVPROF_KINDS} )
    | {_OF_KINDS} A fused multiply-add counts once.
mem_ratio | | inst_compute_ld_st / ( {_NVPROF_KINDS} ) | {_OF_KINDS}
control_ratio | | inst_control / ( {_NVPROF_KINDS} ) | {_OF_KINDS}
cache_miss_ratio | | ( 100 - global_hit_rate ) // global_hit_rate | Loads. {_ONE_KERNEL}
l2_miss_ratio | | ( 100 - l2_tex_hit_rate ) // l2_tex_hit_rate | {_ONE_KERNEL}
branch_miss_ratio | | divergent_branch // branch | {_NO_PREDICTION}
branch_miss_ratio | | ( 100 - branch_efficiency ) // 100 | {_NO_PREDICTION} {_ONE_KERNEL}
""")

_READ_AND_WRITE = "SQ_INSTS_VMEM_RD + SQ_INSTS_VMEM_WR"


def _waves(vector_memory: str) -> str:
    kinds = f"SQ_INSTS_VALU + SQ_INSTS_SALU + SQ_INSTS_SMEM + {vector_memory} + SQ_INSTS_LDS + SQ_INSTS_BRANCH"
    return f"{kinds} + SQ_INSTS_GDS? + SQ_INSTS_SENDMSG?"


_WAVES = _waves(_READ_AND_WRITE)
_FLOATS = " + ".join(
    f"SQ_INSTS_VALU_{operation}_{width}"
    for width in ("F16", "F32", "F64")
    for operation in ("ADD", "MUL", "FMA", "TRANS")
)
_MATRICES = " + ".join(f"SQ_INSTS_VALU_MFMA_{width}" for width in ("BF16", "F16", "F32", "F64"))
_OF_WAVES = "Instructions of wavefronts: one stands for up to 64 threads."
_FLAT = "FLAT loads and stores are among SQ_INSTS_VMEM_*, and on MI200 among SQ_INSTS_LDS too, so they count twice."
_VECTOR_L1 = "Requests of the vector L1 that went on to the L2, to those that did not; atomics left out."

_ROCPROF = formulas(f"""
rocprof on AMD GPU:
instructions | | {_WAVES} | {_OF_WAVES} {_FLAT}
instructions | | {_waves("SQ_INSTS_VMEM")} | {_OF_WAVES} {_FLAT}
int_ratio | | ( SQ_INSTS_VALU_INT32 + SQ_INSTS_VALU_INT64 + SQ_INSTS_SALU ) / ( {_WAVES} )
    | {_OF_WAVES} Scalar arithmetic is taken as integer. From MI200 on: earlier parts do not tell kinds apart.
float_ratio | | ( {_FLOATS} + {_MATRICES} ) / ( {_WAVES} )
    | {_OF_WAVES} A fused multiply-add counts once, a matrix instruction too. From MI200 on.
mem_ratio | | ( {_READ_AND_WRITE} + SQ_INSTS_SMEM + SQ_INSTS_LDS ) / ( {_WAVES} )
    | {_OF_WAVES} Vector, scalar and shared (LDS) memory. {_FLAT}
mem_ratio | | ( SQ_INSTS_VMEM + SQ_INSTS_SMEM + SQ_INSTS_LDS ) / ( {_waves("SQ_INSTS_VMEM")} )
    | {_OF_WAVES} Vector, scalar and shared (LDS) memory. {_FLAT}
control_ratio | | SQ_INSTS_BRANCH / ( {_WAVES} ) | {_OF_WAVES}
cache_miss_ratio | | ( TCP_TCC_READ_REQ_sum + TCP_TCC_WRITE_REQ_sum ) // ( TCP_TOTAL_CACHE_ACCESSES_sum -
    TCP_TCC_READ_REQ_sum - TCP_TCC_WRITE_REQ_sum )
    | {_VECTOR_L1}
l2_miss_ratio | | TCC_MISS_sum // TCC_HIT_sum
    | The L2 of CDNA. MI300 has a last-level cache behind it, which rocprof does not count.
l2_miss_ratio | | GL2C_MISS_sum // GL2C_HIT_sum | The L2 of RDNA.
warp_blocks | | workgroups
threads | | queues | Hardware queues that carried a kernel; HIP maps streams onto them.
""")

#: CUPTI first: it sees streams that only copy, and every launch where ncu was set to count some.
GPU_FORMULAS = (*_CUPTI, *_NCU, *_NVPROF, *_ROCPROF)
