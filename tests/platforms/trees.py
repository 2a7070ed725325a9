"""Small trees of /proc and /sys as machines of several makers show them."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def write(root: Path, files: dict[str, Any]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    return root


def topology(threads: dict[int, tuple[int, str]]) -> dict[str, Any]:
    """Return the topology of hardware threads: number -> (socket, list of its core's threads)."""
    files: dict[str, Any] = {"sys/devices/system/cpu/online": f"0-{max(threads)}"}
    for number, (socket, siblings) in threads.items():
        folder = f"sys/devices/system/cpu/cpu{number}/topology"
        files |= {f"{folder}/physical_package_id": socket, f"{folder}/thread_siblings_list": siblings}
    return files


def cache(
    thread: int, index: int, level: int, kind: str, size: str, ways: Any, line: Any, sets: Any, shared: str
) -> Any:
    folder = f"sys/devices/system/cpu/cpu{thread}/cache/index{index}"
    told = {
        "level": level,
        "type": kind,
        "size": size,
        "ways_of_associativity": ways,
        "coherency_line_size": line,
        "number_of_sets": sets,
        "shared_cpu_list": shared,
    }
    return {f"{folder}/{name}": value for name, value in told.items() if value is not None}


def intel_two_sockets(root: Path) -> Path:
    """Two sockets of 3 cores with 2 threads each: 12 hardware threads, the second ones numbered from 6 on."""
    threads = {n: (n % 6 // 3, f"{n % 6},{n % 6 + 6}") for n in range(12)}
    files = topology(threads)
    for n in range(12):
        socket = "0-2,6-8" if n % 6 < 3 else "3-5,9-11"
        core = threads[n][1]
        files |= cache(n, 0, 1, "Data", "48K", 12, 64, 64, core)
        files |= cache(n, 1, 1, "Instruction", "32K", 8, 64, 64, core)
        files |= cache(n, 2, 2, "Unified", "1280K", 20, 64, 1024, core)
        files |= cache(n, 3, 3, "Unified", "36864K", 12, 64, 49152, socket)
        files[f"sys/devices/system/cpu/cpu{n}/cpufreq/base_frequency"] = 2_400_000
        files[f"sys/devices/system/cpu/cpu{n}/cpufreq/cpuinfo_max_freq"] = 3_400_000
    block = (
        "processor\t: {n}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\n"
        "model name\t: Intel(R) Xeon(R) Gold 6312U CPU @ 2.40GHz\ncpu MHz\t\t: 3100.012\ncache size\t: 36864 KB\n"
        "flags\t\t: fpu vme lm sse2 avx2 avx512f la57\n"
    )
    files |= {
        "proc/cpuinfo": "\n".join(block.format(n=n) for n in range(12)),
        "proc/meminfo": "MemTotal:       263856180 kB\nHugePages_Total:      16\nHugepagesize:       2048 kB",
        "proc/sys/kernel/osrelease": "5.14.0-362.el9.x86_64",
        "proc/sys/kernel/arch": "x86_64",
        "etc/os-release": 'NAME="Rocky Linux"\nPRETTY_NAME="Rocky Linux 9.3 (Blue Onyx)"',
        "sys/devices/system/node/has_cpu": "0-1",
        "sys/devices/system/node/online": "0-1",
        "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never",
        "proc/self/smaps": "55d0-55d1 r--p 0 00:00 0\nSize: 4 kB\nKernelPageSize:        4 kB",
    }
    return write(root, files)


def arm_neoverse(root: Path) -> Path:
    """A cloud machine of 4 Neoverse N1 cores; caches without ways, addresses of 48 bits in pages of 64 kB."""
    files = topology({n: (-1, str(n)) for n in range(4)})
    for n in range(4):
        files |= cache(n, 0, 1, "Data", "64K", None, 64, 256, str(n))
        files |= cache(n, 1, 1, "Instruction", "64K", 0, 64, 256, str(n))
        files |= cache(n, 2, 2, "Unified", "1024K", 8, 64, 2048, str(n))
        files |= cache(n, 3, 3, "Unified", "32768K", 16, 64, 32768, "0-3")
    block = (
        "processor\t: {n}\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd evtstrm aes atomics\nCPU implementer\t: 0x41\n"
        "CPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\nCPU revision\t: 1\n"
    )
    files |= {
        "proc/cpuinfo": "\n".join(block.format(n=n) for n in range(4)),
        "proc/meminfo": "MemTotal:       16068484 kB",
        "proc/self/smaps": "aaaa-aaab r-xp 0 00:00 0\nKernelPageSize:       64 kB",
        "proc/self/maps": "aaaac4a00000-aaaac4b00000 r-xp 00000000 103:01 1 /usr/bin/cat\n"
        "fffff7f00000-ffffffff0000 rw-p 00000000 00:00 0 [stack]",
        "sys/class/dmi/id/sys_vendor": "QEMU",
        "sys/class/dmi/id/product_name": "KVM Virtual Machine",
    }
    return write(root, files)


def power9(root: Path) -> Path:
    """Two sockets of 1 core with 4 threads each, bare metal, four V100 whose memory is nodes of its own."""
    files = topology({n: (8 * (n // 4), "0-3" if n < 4 else "4-7") for n in range(8)})
    for n in range(8):
        core = "0-3" if n < 4 else "4-7"
        files |= cache(n, 0, 1, "Data", "32K", 8, 128, 32, core)
        files |= cache(n, 1, 1, "Instruction", "32K", 8, 128, 32, core)
        files |= cache(n, 2, 2, "Unified", "512K", 8, 128, 512, core)
        files |= cache(n, 3, 3, "Unified", "10240K", 20, 128, 4096, core)
        files[f"sys/devices/system/cpu/cpu{n}/cpufreq/cpuinfo_max_freq"] = 3_800_000
    block = (
        "processor\t: {n}\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3450.000000MHz\n"
        "revision\t: 2.1 (pvr 004e 1201)\n"
    )
    whole = (
        "timebase\t: 512000000\nplatform\t: PowerNV\nmodel\t\t: 8335-GTW\nmachine\t\t: PowerNV 8335-GTW\nMMU\t\t: Radix"
    )
    files |= {
        "proc/cpuinfo": "\n".join(block.format(n=n) for n in range(8)) + f"\n{whole}",
        "proc/meminfo": "MemTotal:       322122547 kB",
        "proc/self/smaps": "1000-1001 r-xp 0 00:00 0\nKernelPageSize:       64 kB",
        "sys/devices/system/node/has_cpu": "0,8",
        "sys/devices/system/node/online": "0,8,252-255",
    }
    for n in range(4):
        files[f"proc/driver/nvidia/gpus/0004:0{n}:00.0/information"] = "Model: \t\t Tesla V100-SXM2-16GB\nIRQ: 40"
    return write(root, files)


def amd_virtual(root: Path) -> Path:
    """A container on a virtual machine that shows no topology and no caches, with time and memory limited."""
    block = (
        "processor\t: {n}\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7763 64-Core Processor\n"
        "cpu MHz\t\t: 2445.404\ncache size\t: 512 KB\nphysical id\t: 0\ncore id\t\t: {core}\n"
        "flags\t\t: fpu lm sse2 hypervisor avx2\n"
    )
    files = {
        "proc/cpuinfo": "\n".join(block.format(n=n, core=n // 2) for n in range(4)),
        "proc/meminfo": "MemTotal:       16370372 kB",
        "sys/hypervisor/type": "xen",
        "sys/fs/cgroup/memory.max": "4294967296",
        "sys/fs/cgroup/cpu.max": "150000 100000",
    }
    return write(root, files)
