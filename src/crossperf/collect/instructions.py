"""Sorts executed instructions into integer, floating point, memory, control and atomic, and finds the independent ones.

What was executed comes as addresses in object files (callgrind) or as the bytes of blocks (qemu). Each distinct
instruction is decoded once. An instruction that loads and adds counts as memory and as integer, as a processor's own
counters count it, so the shares may add up to more than one; moves between registers, shuffles and no-ops are in none.

An instruction is independent if it reads no register (flags included) that an earlier instruction of its
basic block wrote. A block ends at a jump, call or return, at a gap, and where the number of executions
changes. The stack pointer is left out, since processors rename it apart, and so are the operands of zeroing
idioms such as ``xor eax, eax``.
"""

from __future__ import annotations

import re
import struct
import threading
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import IO, Any, NamedTuple

from crossperf.errors import MissingDependencyError

INT, FLOAT, MEMORY, CONTROL, ATOMIC = 1, 2, 4, 8, 16
_KINDS = {"int": INT, "float": FLOAT, "memory": MEMORY, "control": CONTROL, "atomic": ATOMIC}
#: Shares of kinds are not known where more of the executed instructions than this could not be sorted.
MOST_UNSORTED = 0.05
#: The longest instruction of any architecture here.
_LONGEST = 15


_IN_NO_FILE = "are in no file (compiled at run time)"


@dataclass(frozen=True)
class Mix:
    """How many executed instructions are of each kind.

    >>> (Mix({"int": 2}, 3, 1, 0) + Mix({"int": 1}, 2, 1, 1)).kinds
    {'int': 3}
    """

    kinds: Mapping[str, int]
    classified: int
    independent: int
    unknown: int
    #: Loads and stores: an instruction may have none, one or several.
    accesses: int = 0

    def __add__(self, other: Mix) -> Mix:
        kinds = {name: self.kinds.get(name, 0) + other.kinds.get(name, 0) for name in {**self.kinds, **other.kinds}}
        independent, unknown = self.independent + other.independent, self.unknown + other.unknown
        classified, accesses = self.classified + other.classified, self.accesses + other.accesses
        return Mix(kinds, classified, independent, unknown, accesses)

    @property
    def unsorted(self) -> float:
        """The share of executed instructions that could not be decoded."""
        return self.unknown / max(1, self.classified + self.unknown)

    def events(self, prefix: str = "", why: str = _IN_NO_FILE) -> tuple[dict[str, float | None], dict[str, str]]:
        """Return the counts under their names as events; each ``None`` with its reason where too few were sorted.

        Parameters
        ----------
        prefix
            What stands in front of each name.
        why
            What keeps instructions from being sorted.

        >>> Mix({"int": 2}, 3, 1, 7).events()[0]["mix.int"] is None
        True
        """
        counts = {**self.kinds, "classified": self.classified, "independent": self.independent}
        names = {f"{prefix}mix.{name}": float(count) for name, count in (counts | {"accesses": self.accesses}).items()}
        if self.unsorted <= MOST_UNSORTED:
            return dict(names), {}
        reason = f"{self.unsorted:.0%} of the instructions {why} and could not be sorted"
        return dict.fromkeys(names), dict.fromkeys(names, reason)


#: capstone's engine keeps state between calls, and inputs are counted by several threads.
_ONE_AT_A_TIME = threading.Lock()
NOTHING = Mix(dict.fromkeys(_KINDS, 0), 0, 0, 0)


class Decoded(NamedTuple):
    """What matters of an instruction: its kind, the registers it reads and writes as bits, its loads and stores."""

    kind: int
    reads: int
    writes: int
    accesses: int
    size: int


class ExecutedBlock(NamedTuple):
    """Straight code: the size of each instruction as one byte, and the bytes of all."""

    sizes: bytes
    code: bytes


class _Tally:
    """Adds executed blocks up to a mix."""

    def __init__(self) -> None:
        self._by_kind = [0] * (2 * ATOMIC)
        self._independent = self._accesses = 0
        self.unknown = 0

    def add(self, block: Iterable[Decoded], count: int) -> None:
        """Add the instructions of one basic block, each executed `count` times."""
        by_kind, independent, written, accesses = self._by_kind, 0, 0, 0
        for kind, reads, writes, of_instruction, _ in block:
            by_kind[kind] += count
            accesses += of_instruction
            if not reads & written:
                independent += 1
            written |= writes
        self._independent += independent * count
        self._accesses += accesses * count

    def mix(self) -> Mix:
        """Return the sum of what was added."""
        by_kind = list(enumerate(self._by_kind))
        kinds = {name: sum(count for kind, count in by_kind if kind & bit) for name, bit in _KINDS.items()}
        return Mix(kinds, sum(self._by_kind), self._independent, self.unknown, self._accesses)


def mix(executions: Mapping[str, Mapping[int, int]]) -> Mix:
    """Return the mix of the instructions executed in each object file, keyed by address."""
    total = NOTHING
    for path, counts in executions.items():
        code = Code.of(path)
        total += Mix({}, 0, 0, sum(counts.values())) if code is None else mix_of_code(counts, code)
    return total


def mix_of_code(counts: Mapping[int, int], code: Code) -> Mix:
    """Return the mix of the executed addresses of one object."""
    tally = _Tally()
    block: list[Decoded] = []
    expected, last_count = -1, -1
    addresses = sorted(counts)
    decode = code.decode
    for address, after in zip(addresses, [*addresses[1:], addresses[-1] + _LONGEST], strict=True):
        count = counts[address]
        # Cut at the next executed address, equal instructions are equal bytes, which are decoded once.
        decoded = decode(address, after - address if after - address < _LONGEST else _LONGEST)
        if address != expected or count != last_count or decoded is None:
            tally.add(block, last_count)
            block = []
        if decoded is None:
            tally.unknown += count
            expected = -1
            continue
        block.append(decoded)
        expected = -1 if decoded.kind & CONTROL else address + decoded.size
        last_count = count
    tally.add(block, last_count)
    return tally.mix()


def mix_of_blocks(executions: Mapping[ExecutedBlock, int], machine: str) -> Mix:
    """Return the mix of executed blocks, code of a just-in-time compiler among them."""
    tally = _Tally()
    decode = decoder(machine)
    for (sizes, code), count in executions.items():
        block: list[Decoded] = []
        start = 0
        for size in sizes:
            decoded = decode(code[start : start + size])
            start += size
            if decoded is None:
                tally.unknown += count
            else:
                block.append(decoded)
        tally.add(block, count)
    return tally.mix()


class Code:
    """The executable bytes of one object file, and the decoder for its architecture."""

    def __init__(self, segments: list[tuple[int, bytes]], decoder: Decoder) -> None:
        self._segments = segments
        self._decoder = decoder
        self._start, self._data, self._n_bytes = 0, b"", 0

    @classmethod
    def of(cls, path: str) -> Code | None:
        """Return the code of an ELF file; ``None`` for code that no file holds, such as a just-in-time compiler's."""
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - a path as valgrind wrote it
                return cls(*_elf(file))
        except (OSError, struct.error, KeyError):
            return None

    def decode(self, address: int, n_bytes: int) -> Decoded | None:
        """Return what the instruction at an address does; ``None`` where there is none."""
        offset = address - self._start
        if not 0 <= offset < self._n_bytes:
            if not self._go_to(address):
                return None
            offset = address - self._start
        return self._decoder(self._data[offset : offset + n_bytes])

    def _go_to(self, address: int) -> bool:
        for start, data in self._segments:
            if start <= address < start + len(data):
                self._start, self._data, self._n_bytes = start, data, len(data)
                return True
        return False


#: What an ELF file calls the machines whose instructions can be sorted.
_MACHINES = {3: "x86", 62: "x86-64", 183: "aarch64"}


def _elf(file: IO[bytes]) -> tuple[list[tuple[int, bytes]], Decoder]:
    """Return the executable segments of an ELF file, each with its address, and what decodes them.

    Only the program headers are read, from the layout in elf(5); a whole ELF library costs more time here
    than the decoding.
    """
    head = file.read(64)
    if head[:4] != b"\x7fELF" or head[5] != 1:
        raise KeyError("no little-endian ELF file")
    wide = head[4] == 2
    (machine,) = struct.unpack_from("<H", head, 18)
    (table,) = struct.unpack_from("<Q" if wide else "<I", head, 32 if wide else 28)
    entry_size, n_entries = struct.unpack_from("<HH", head, 54 if wide else 42)
    segments = []
    for number in range(n_entries):
        file.seek(table + number * entry_size)
        entry = file.read(entry_size)
        if wide:
            kind, flags, offset, address, _, n_bytes = struct.unpack_from("<IIQQQQ", entry)
        else:
            kind, offset, address, _, n_bytes, _, flags = struct.unpack_from("<IIIIIII", entry)
        if kind == 1 and flags & 1:
            file.seek(offset)
            segments.append((address, file.read(n_bytes)))
    return segments, decoder(_MACHINES[machine])


@cache
def decoder(machine: str) -> Decoder:
    """Return what decodes one instruction of ``x86-64``, ``x86`` or ``aarch64``."""
    try:
        import capstone
    except ImportError as error:
        needed = "sorting instructions needs capstone: pip install 'crossperf[valgrind]'"
        raise MissingDependencyError(needed, package="capstone") from error
    if machine == "aarch64":
        arm64 = getattr(capstone, "CS_ARCH_AARCH64", None) or capstone.CS_ARCH_ARM64
        return Decoder(capstone.Cs(arm64, capstone.CS_MODE_ARM), kind_on_arm64, bytes)
    mode = capstone.CS_MODE_64 if machine == "x86-64" else capstone.CS_MODE_32
    return Decoder(capstone.Cs(capstone.CS_ARCH_X86, mode), kind_on_x86, _without_target)


def _without_target(code: bytes) -> bytes:
    """Return the bytes of an x86 instruction, those of a direct jump or call without how far it goes.

    A fifth of a program jumps, each time to somewhere else; the distance changes nothing here.
    """
    first = code[0] if code else 0
    if first in (0xE8, 0xE9, 0xEB) or 0x70 <= first <= 0x7F:
        return code[:1]
    if first == 0x0F and code[1:2] and 0x80 <= code[1] <= 0x8F:
        return code[:2]
    return code


_NUMBER = re.compile(r"\b(0x[0-9a-f]+|\d+)\b")


class Decoder:
    """Decodes each distinct byte string once, and looks into each distinct shape of an instruction once.

    A shape is the instruction's text with its numbers left out; capstone's full detail, which costs twenty
    times the text, is the same for all of a shape.
    """

    def __init__(self, engine: Any, kind_of: Callable[[str, str], int], essence: Callable[[bytes], bytes]) -> None:
        self._engine = engine
        self._essence = essence
        self._kind_of = kind_of
        self._by_bytes: dict[bytes, Decoded | None] = {}
        self._by_shape: dict[tuple[str, str], tuple[int, int, int, int]] = {}

    def __call__(self, code: bytes) -> Decoded | None:
        """Return what the first instruction of some bytes does, or ``None`` where they are no instruction."""
        known = self._by_bytes.get(code)
        if known is None:
            essence = self._essence(code)
            with _ONE_AT_A_TIME:
                known = self._by_bytes.get(essence) or self._decode(code)
            self._by_bytes[code] = self._by_bytes[essence] = known
        return known

    def _decode(self, code: bytes) -> Decoded | None:
        for _, size, mnemonic, operands in self._engine.disasm_lite(code, 0, 1):
            shape = (mnemonic, _NUMBER.sub("#", operands))
            if shape not in self._by_shape:
                self._by_shape[shape] = self._look_into(code, mnemonic, operands)
            return Decoded(*self._by_shape[shape], size)
        return None

    def _look_into(self, code: bytes, mnemonic: str, operands: str) -> tuple[int, int, int, int]:
        """Return kind, registers read, registers written, and the number of loads and stores."""
        self._engine.detail = True
        try:
            instruction = next(self._engine.disasm(code, 0, 1))
            read, written = instruction.regs_access()
            reads, writes = (_bits(map(instruction.reg_name, registers)) for registers in (read, written))
        finally:
            self._engine.detail = False
        kind = self._kind_of(mnemonic, operands)
        accesses = accesses_of(mnemonic, operands) if kind & MEMORY else 0
        return kind, 0 if _zeroes(mnemonic, operands) else reads, writes, accesses


def _zeroes(mnemonic: str, operands: str) -> bool:
    """Tell an idiom that sets a register to zero whatever it held."""
    registers = operands.split(", ")
    idiom = re.fullmatch(r"v?(xor|sub|pxor|xorp[sd]|psub[bwdq])[dq]?", mnemonic)
    return bool(idiom) and "[" not in operands and len(set(registers[-2:])) == 1


_WHOLE_ON_X86 = {
    **{part: f"{letter}x" for letter in "abcd" for part in (f"{letter}l", f"{letter}h", f"{letter}x")},
    **{part: name for name in ("si", "di", "bp") for part in (name, f"{name}l")},
}
_IGNORED = re.compile(r"[re]?sp|spl|w?sp|[re]?ip|pc|[cdefgs]s|wzr|xzr|mxcsr|fpsw|fpcw|")
#: Each whole register that was met, in the order of its bit.
_MET: dict[str, int] = {}


def _whole(name: str) -> str:
    """Return the name of the register of which one is a part.

    >>> [_whole(name) for name in ("eax", "al", "r9d", "xmm3", "zmm3", "w7", "d5")]
    ['ax', 'ax', 'r9', 'v3', 'v3', 'x7', 'v5']
    """
    if match := re.fullmatch(r"(r\d+)[bwd]?", name):
        return match[1]
    if match := re.fullmatch(r"[xyz]mm(\d+)|[vqdshb](\d+)", name):
        return "v" + (match[1] or match[2])
    if match := re.fullmatch(r"[wx](\d+)", name):
        return "x" + match[1]
    short = name[1:] if len(name) == 3 and name[0] in "re" else name
    return _WHOLE_ON_X86.get(short, short)


def _bits(names: Iterable[str]) -> int:
    wholes = {_whole(name) for name in names if not _IGNORED.fullmatch(name)}
    return sum(1 << _MET.setdefault(name, len(_MET)) for name in wholes)


def _patterns(machine: str) -> dict[str, re.Pattern[str]]:
    tables = tomllib.loads((files("crossperf.collect") / "mnemonics.toml").read_text("utf-8"))
    return {kind: re.compile("|".join(mnemonics)) for kind, mnemonics in tables[machine].items()}


_X86, _ARM = _patterns("x86"), _patterns("aarch64")
_PREFIXES = re.compile(r"(lock|rep[nz]?[ez]?|notrack|bnd|data16|xacquire|xrelease) ")


def _bare(mnemonic: str) -> str:
    """Return a mnemonic without its prefixes."""
    while match := _PREFIXES.match(mnemonic):
        mnemonic = mnemonic[match.end() :]
    return mnemonic


@cache
def _x86_mnemonic(mnemonic: str) -> int:
    name = _bare(mnemonic)
    kind = CONTROL if _X86["control"].fullmatch(name) else 0
    kind |= FLOAT if _X86["float"].fullmatch(name) else INT if _X86["int"].fullmatch(name) else 0
    return kind | (MEMORY if _X86["stack"].fullmatch(name) else 0)


def kind_on_x86(mnemonic: str, operands: str) -> int:
    """Return the kinds of an instruction as bits.

    >>> kind_on_x86("add", "rax, qword ptr [rbx]") == INT | MEMORY
    True
    >>> kind_on_x86("mulsd", "xmm0, xmm1") == FLOAT, kind_on_x86("mov", "rax, rbx") == 0
    (True, True)
    """
    kind = _x86_mnemonic(mnemonic)
    if "[" in operands and not _X86["no_access"].fullmatch(mnemonic):
        kind |= MEMORY
        if mnemonic == "xchg" or "lock " in mnemonic:
            kind |= ATOMIC
    # One name, two instructions: comparing doubles, and comparing strings of words.
    if kind & FLOAT and mnemonic.endswith("cmpsd") and "mm" not in operands:
        kind = kind & ~FLOAT | INT
    return kind


_GATHER = re.compile(r"vp?gather([dq])(ps|pd|d|q)")
_VECTOR_BYTES = {"x": 16, "y": 32, "z": 64}


def accesses_of(mnemonic: str, operands: str) -> int:
    """Return how often an instruction that touches memory does so, as a cache sees it.

    Reading and writing one place is one access, which finds the line once; the stack of ``push`` and ``call`` is an
    access that no operand names; a gather has one for each element.

    >>> [accesses_of("add", "qword ptr [rax], rbx"), accesses_of("call", "qword ptr [rax]"), accesses_of("ret", "")]
    [1, 2, 1]
    >>> accesses_of("rep movsb", "byte ptr [rdi], byte ptr [rsi]"), accesses_of("ldp", "x0, x1, [sp]")
    (2, 1)
    >>> accesses_of("vgatherdps", "ymm0, dword ptr [rax + ymm1*4], ymm2")
    8
    """
    if gather := _GATHER.fullmatch(mnemonic):
        vectors = re.findall(r"([xyz])mm\d", operands)
        by_element = _VECTOR_BYTES[vectors[0]] // (4 if gather[2] in ("ps", "d") else 8)
        by_index = _VECTOR_BYTES[vectors[1]] // (4 if gather[1] == "d" else 8)
        return min(by_element, by_index)
    return operands.count("[") + bool(_X86["stack"].fullmatch(_bare(mnemonic)))


def kind_on_arm64(mnemonic: str, operands: str) -> int:  # noqa: ARG001 - the same question as on x86
    """Return the kinds of an instruction as bits; on ARM only loads and stores touch memory."""
    if _ARM["control"].fullmatch(mnemonic):
        return CONTROL
    if _ARM["memory"].fullmatch(mnemonic):
        return MEMORY | (ATOMIC if _ARM["atomic"].fullmatch(mnemonic) else 0) if mnemonic != "prfm" else 0
    if _ARM["float"].fullmatch(mnemonic):
        return FLOAT
    return 0 if _ARM["moves"].fullmatch(mnemonic) else INT
