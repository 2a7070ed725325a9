from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crossperf.collect import instructions
from crossperf.collect.instructions import (
    ATOMIC,
    CONTROL,
    FLOAT,
    INT,
    MEMORY,
    Code,
    decoder,
    kind_on_arm64,
    kind_on_x86,
)
from tests.collect.real import need

capstone = pytest.importorskip("capstone", reason="capstone is not installed: pip install 'crossperf[valgrind]'")

X86 = [
    ("add", "rax, rbx", INT),
    ("add", "rax, qword ptr [rbx]", INT | MEMORY),
    ("lock xadd", "dword ptr [rax], ecx", INT | MEMORY | ATOMIC),
    ("xchg", "dword ptr [rax], ecx", MEMORY | ATOMIC),
    ("xchg", "eax, ecx", 0),
    ("lea", "rax, [rbx + rcx*8]", INT),
    ("mov", "rax, rbx", 0),
    ("mov", "rax, qword ptr [rbx]", MEMORY),
    ("movsd", "xmm0, qword ptr [rax]", MEMORY),
    ("movaps", "xmm0, xmm1", 0),
    ("mulsd", "xmm0, qword ptr [rax]", FLOAT | MEMORY),
    ("vfmadd231pd", "ymm0, ymm1, ymm2", FLOAT),
    ("vaddps", "zmm0, zmm1, zmm2", FLOAT),
    ("cvtsi2sd", "xmm0, eax", FLOAT),
    ("ucomisd", "xmm0, xmm1", FLOAT),
    ("vcmpltsd", "xmm0, xmm1, xmm2", FLOAT),
    ("cmpsd", "xmm0, xmm1, 1", FLOAT),
    ("repe cmpsd", "dword ptr [rsi], dword ptr [rdi]", INT | MEMORY),
    ("rep stosq", "qword ptr [rdi], rax", MEMORY),
    ("paddd", "xmm0, xmm1", INT),
    ("vpxor", "ymm0, ymm1, ymm2", INT),
    ("pshufd", "xmm0, xmm1, 0x1b", 0),
    ("unpcklpd", "xmm0, xmm1", 0),
    ("xorps", "xmm0, xmm1", 0),
    ("fadd", "st(0), st(1)", FLOAT),
    ("fld", "qword ptr [rax]", MEMORY),
    ("fstp", "qword ptr [rax]", MEMORY),
    ("jne", "0x10", CONTROL),
    ("call", "0x10", CONTROL | MEMORY),
    ("ret", "", CONTROL | MEMORY),
    ("push", "rax", MEMORY),
    ("popcnt", "rax, rbx", INT),
    ("nop", "word ptr [rax + rax]", 0),
    ("endbr64", "", 0),
    ("sete", "al", INT),
    ("cmove", "rax, rbx", 0),
    ("imul", "rax, rbx, 3", INT),
]

ARM = [
    ("add", INT),
    ("ldr", MEMORY),
    ("stp", MEMORY),
    ("ldadd", MEMORY | ATOMIC),
    ("ldaxr", MEMORY | ATOMIC),
    ("stlxr", MEMORY | ATOMIC),
    ("casal", MEMORY | ATOMIC),
    ("swp", MEMORY | ATOMIC),
    ("ldaddalb", MEMORY | ATOMIC),
    ("ldset", MEMORY | ATOMIC),
    ("ldar", MEMORY),
    ("ldp", MEMORY),
    ("fmadd", FLOAT),
    ("fmul", FLOAT),
    ("scvtf", FLOAT),
    ("fmov", 0),
    ("mov", 0),
    ("b.ne", CONTROL),
    ("cbz", CONTROL),
    ("bl", CONTROL),
    ("ret", CONTROL),
    ("bic", INT),
    ("subs", INT),
    ("prfm", 0),
]


@pytest.mark.parametrize(("mnemonic", "operands", "kind"), X86)
def test_an_instruction_of_x86_is_of_the_kinds_that_a_processor_would_count(
    mnemonic: str, operands: str, kind: int
) -> None:
    assert kind_on_x86(mnemonic, operands) == kind


@pytest.mark.parametrize(("mnemonic", "kind"), ARM)
def test_an_instruction_of_arm_is_of_one_kind(mnemonic: str, kind: int) -> None:
    assert kind_on_arm64(mnemonic, "") == kind


def assembled(code: str, folder: Path) -> bytes:
    """Return machine code as the assembler here writes it: an independent road to capstone's reading."""
    need("as", "objcopy")
    source, obj, raw = folder / "a.s", folder / "a.o", folder / "a.bin"
    source.write_text(".intel_syntax noprefix\n" + code + "\n")
    subprocess.run(["as", "-o", str(obj), str(source)], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", str(obj), str(raw)], check=True)
    return raw.read_bytes()


def mix_of(code: str, folder: Path, count: int = 1) -> instructions.Mix:
    """Return the mix of straight-line code of which each instruction is executed `count` times."""
    data = assembled(code, folder)
    engine = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    counts = {address: count for address, _, _, _ in engine.disasm_lite(data, 0)}
    return instructions.mix_of_code(counts, Code([(0, data)], decoder("x86-64")))


@pytest.mark.parametrize(
    ("code", "independent", "why"),
    [
        ("add rax, rbx\nadd rcx, rdx\nadd rsi, rdi", 3, "three chains of one"),
        ("add rax, rbx\nadd rcx, rax\nadd rdx, rcx", 1, "one chain of three"),
        ("mov eax, 1\nmov bl, al", 1, "a part of a register waits for the whole"),
        ("mov eax, [rdi]\nxor eax, eax\nadd ecx, 1", 3, "zeroing waits for nothing"),
        ("cmp rax, rbx\njne 0", 1, "a branch waits for its flags"),
        ("push rax\npush rbx\npop rcx", 3, "the stack pointer is renamed apart"),
        ("movsd xmm0, [rdi]\naddsd xmm1, xmm0\nvaddpd ymm2, ymm3, ymm1", 1, "vector registers have parts too"),
        ("add rax, rbx\ncall 0\nadd rcx, rax", 3, "a call ends the block"),
    ],
)
def test_independent_instructions_read_nothing_that_their_block_wrote(
    tmp_path: Path, code: str, independent: int, why: str
) -> None:
    assert mix_of(code, tmp_path).independent == independent, why


def test_a_block_ends_where_the_number_of_executions_changes(tmp_path: Path) -> None:
    data = assembled("add rax, rbx\nadd rcx, rax", tmp_path)
    code = Code([(0, data)], decoder("x86-64"))
    assert instructions.mix_of_code({0: 5, 3: 5}, code).independent == 5
    assert instructions.mix_of_code({0: 5, 3: 9}, code).independent == 14


def test_counts_weigh_each_kind_and_what_is_no_code_is_unknown(tmp_path: Path) -> None:
    found = mix_of("add rax, qword ptr [rbx]\nmulsd xmm0, xmm1\nret", tmp_path, count=10)
    assert found.kinds == {"int": 10, "float": 10, "memory": 20, "control": 10, "atomic": 0}
    assert instructions.mix({"???": {16: 7}}).unknown == 7


@pytest.mark.parametrize(
    ("code", "accesses"),
    [
        ("add rax, rbx\nlea rax, [rbx]\nprefetcht0 [rax]\nnop word ptr [rax]", 0),
        ("add rax, [rbx]\nadd [rbx], rax\nlock xadd [rbx], rax\nxchg [rbx], rax", 4),
        ("push rax\npop rbx\ncall 0\nret\nleave", 5),
        ("push qword ptr [rax]\ncall [rax]\nnotrack call rax", 5),
        ("rep movsb\nrep stosq\nrepe cmpsb\nlodsb", 6),
        ("vfmadd231ps ymm0, ymm1, [rax]\nvmovups [rax], ymm0", 2),
        ("vgatherdps ymm0, [rax + ymm1*4], ymm2\nvgatherdpd ymm0, [rax + xmm1*8], ymm2", 12),
        ("vgatherqps xmm0, [rax + ymm1*4], xmm2\nvpgatherqq xmm0, [rax + xmm1*8], xmm2", 6),
    ],
)
def test_loads_and_stores_of_an_instruction_are_counted_as_a_cache_sees_them(
    tmp_path: Path, code: str, accesses: int
) -> None:
    assert mix_of(code, tmp_path).accesses == accesses


def test_shares_are_known_up_to_five_percent_unsorted_and_missing_with_the_reason_beyond() -> None:
    kinds = {"int": 40, "float": 0, "memory": 0, "control": 0}
    known, no_reason = instructions.Mix(kinds, 95, 10, 5).events()
    assert known["mix.int"] == 40.0
    assert not no_reason
    unknown, reasons = instructions.Mix(kinds, 94, 10, 6).events()
    assert set(unknown) == set(known)
    assert set(unknown.values()) == {None}
    assert reasons["mix.int"].startswith("6% of the instructions")


def test_direct_jumps_that_differ_in_their_distance_alone_are_decoded_once(tmp_path: Path) -> None:
    decode = decoder("x86-64")
    near, far = decode(bytes([0xE8, 1, 0, 0, 0])), decode(bytes([0xE8, 9, 9, 0, 0]))
    assert near is far
    assert near is not None
    assert near.size == 5
    assert near.kind == CONTROL | MEMORY


def test_objdump_agrees_on_the_share_of_control_in_a_real_library(tmp_path: Path) -> None:
    """A second road: binutils decodes the same code, and names are compared by a rule of three letters."""
    need("objdump", "gcc")
    source = tmp_path / "a.c"
    source.write_text("int f(int n){int s=0;for(int i=0;i<n;i++)if(i%3)s+=i*i;else s-=f(i);return s;}")
    obj = tmp_path / "a.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(obj), str(source)], check=True)
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", "-M", "intel", str(obj)], check=True, capture_output=True, text=True
    ).stdout
    lines = [line.split(":\t")[1].split() for line in listing.splitlines() if ":\t" in line]
    addresses = [int(line.split(":")[0], 16) for line in listing.splitlines() if ":\t" in line]
    jumps = sum(any(word.startswith(("j", "call", "ret")) for word in words[:2]) for words in lines)
    found = instructions.mix({str(obj): dict.fromkeys(addresses, 1)})
    assert found.classified == len(addresses)
    assert found.kinds["control"] == jumps


def test_threads_may_share_a_decoder() -> None:
    """Each form of an instruction is looked into with details on, which is a setting of the whole engine."""
    decode = instructions.decoder.__wrapped__("x86-64")  # one that has met nothing yet
    forms = [bytes([0x48, 0x01, 0xC0 + i]) for i in range(64)] + [bytes([0x48, 0x8B, 0x00 + i]) for i in range(4)]
    with ThreadPoolExecutor(8) as pool:
        known = list(pool.map(decode, forms * 50))
    assert all(each is not None and each.size == 3 for each in known)
