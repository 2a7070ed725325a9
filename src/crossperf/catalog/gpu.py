"""Formulas from the events of GPU tools: Nsight Compute and CUPTI for NVIDIA, rocprof for AMD."""

from __future__ import annotations

from crossperf.catalog.formula import Formula

GPU_FORMULAS: tuple[Formula, ...] = ()
