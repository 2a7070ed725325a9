"""Makes the input files of the applications from their names, the same bytes on every machine.

    python testbed/apps/inputs.py FOLDER [NAME ...]

A name is ``kind-size-size.ending``, such as ``text-500.txt`` (500 kB of text) or ``y4m-320-180-30.y4m``. Without names
every file that apps.toml mentions is made. What exists is left alone. Random draws are hashes of a running number in
integer arithmetic, so that neither the version of Python or numpy nor the processor matters.
"""

from __future__ import annotations

import hashlib
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from shapes import photo_rgb, video_frames, wave

Numbers = np.ndarray


class Draws:
    """Random whole numbers that depend on a name alone (splitmix64 of a running number)."""

    def __init__(self, name: str) -> None:
        self.next = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")

    def below(self, bound: int, count: int) -> Numbers:
        """Return `count` whole numbers from 0 to `bound` - 1; `bound` is at most 2**31."""
        counter = np.arange(self.next, self.next + count, dtype=np.uint64)
        self.next += count
        word = counter * np.uint64(0x9E3779B97F4A7C15)
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
        return ((word >> np.uint64(33)) * np.uint64(bound) >> np.uint64(31)).astype(np.int64)

    def skewed(self, bound: int, count: int) -> Numbers:
        """Return numbers below `bound` of which small ones are frequent, as words of a language are."""
        draw = self.below(1 << 16, count)
        return (draw * draw * draw >> 32) * bound >> 16

    def number(self, bound: int) -> int:
        """Return a single number below `bound`."""
        return int(self.below(bound, 1)[0])


def words(draws: Draws, count: int) -> list[str]:
    """Return made-up words, short ones first."""
    syllables = [first + second for first in "bdfgklmnprstvz" for second in ("a", "e", "i", "o", "u", "an", "er", "is")]
    picks = draws.below(len(syllables), 4 * count).reshape(count, 4)
    return sorted(
        ("".join(syllables[i] for i in row[: 1 + n * 3 // count + n % 2]) for n, row in enumerate(picks)), key=len
    )


def text(draws: Draws, kilobytes: int) -> bytes:
    """Return lines of words that come back as often as in a language."""
    vocabulary = [word.encode() for word in words(draws, 6000)]
    count = kilobytes * 1000 // 6 + 100
    parts = [vocabulary[i] for i in draws.skewed(len(vocabulary), count)]
    ends = draws.below(12, count)
    tokens = [
        word + (b"\n" if end == 0 else b", " if end == 1 else b" ") for word, end in zip(parts, ends, strict=True)
    ]
    data = b"".join(tokens)
    while len(data) < kilobytes * 1000:
        data += data
    return data[: kilobytes * 1000 - 1] + b"\n"


def log(draws: Draws, lines: int) -> bytes:
    """Return the log of a made-up server."""
    paths = words(draws, 800)
    path, code, size = draws.skewed(800, lines), draws.skewed(8, lines), draws.below(1 << 20, lines)
    step = np.cumsum(draws.below(4, lines))
    codes = (200, 200, 304, 404, 301, 500, 403, 206)
    clock = (f"{1 + s // 86400 % 28:02d} {s // 3600 % 24:02d}:{s // 60 % 60:02d}:{s % 60:02d}" for s in step.tolist())
    rows = (
        f'10.0.{p % 7}.{z % 251} [2026-01-{t}] "GET /{paths[p]}/{z % 97}.html" {codes[c]} {z}\n'
        for p, c, z, t in zip(path.tolist(), code.tolist(), size.tolist(), clock, strict=True)
    )
    return "".join(rows).encode()


def table(draws: Draws, rows: int) -> bytes:
    """Return a CSV table: key, group, two numbers."""
    names = words(draws, 200)
    columns = draws.below(1 << 30, rows), draws.skewed(200, rows), draws.below(100_000, rows), draws.below(1000, rows)
    rows_ = zip(*(column.tolist() for column in columns), strict=True)
    return (
        "key,group,value,weight\n" + "".join(f"{k},{names[g]},{v / 100:.2f},{w}\n" for k, g, v, w in rows_)
    ).encode()


def records(draws: Draws, kilobytes: int) -> bytes:
    """Return binary records of 16 bytes: a running number, a slow walk, a flag, noise."""
    count = kilobytes * 1000 // 16
    fields = np.empty((count, 4), dtype="<u4")
    fields[:, 0] = np.arange(count)
    fields[:, 1] = np.cumsum(draws.below(9, count) - 4) + (1 << 20)
    fields[:, 2] = draws.skewed(50, count)
    fields[:, 3] = draws.below(1 << 31, count)
    return fields.tobytes()


def letters(alphabet: bytes, picks: Numbers) -> bytes:
    return np.frombuffer(alphabet, dtype=np.uint8)[picks].tobytes()


def folded(sequence: bytes, width: int = 60) -> bytes:
    return b"".join(sequence[i : i + width] + b"\n" for i in range(0, len(sequence), width))


def bases(kilobases: int) -> bytes:
    """Return a chromosome of which a fifth are copies of earlier stretches."""
    draws = Draws(f"bases-{kilobases}")
    data = np.frombuffer(letters(b"ACGT", draws.below(4, kilobases * 1000)), dtype=np.uint8).copy()
    for source, goal in draws.below(kilobases - 1, 2 * (kilobases // 5)).reshape(-1, 2):
        data[goal * 1000 : goal * 1000 + 1000] = data[source * 1000 : source * 1000 + 1000]
    return data.tobytes()


def genome(draws: Draws, kilobases: int) -> bytes:  # noqa: ARG001
    return b">chr1\n" + folded(bases(kilobases))


def sampled(draws: Draws, kilobases: int, count: int, length: int) -> tuple[list[int], list[bytes]]:
    """Return places in a chromosome and what was read there, with one letter in 64 wrong."""
    chromosome = np.frombuffer(bases(kilobases), dtype=np.uint8)
    starts = draws.below(kilobases * 1000 - length, count)
    read = chromosome[starts[:, None] + np.arange(length)]
    wrong = draws.below(64, count * length).reshape(count, length) == 0
    other = np.frombuffer(letters(b"ACGT", draws.below(4, count * length)), dtype=np.uint8).reshape(count, length)
    return starts.tolist(), [row.tobytes() for row in np.where(wrong, other, read)]


def reads(draws: Draws, kilobases: int, count: int, length: int) -> bytes:
    """Return reads of `genome` of the same size as FASTQ."""
    _, sequences = sampled(draws, kilobases, count, length)
    quality = b"I" * length
    return b"".join(b"@r%d\n%s\n+\n%s\n" % (n, sequence, quality) for n, sequence in enumerate(sequences))


def amplicons(draws: Draws, kilobases: int, count: int, length: int) -> bytes:
    """Return reads of few places of a genome as FASTA, so that they fall into clusters."""
    _, sequences = sampled(draws, kilobases, count, length)
    return b"".join(b">r%d\n%s\n" % (n, sequence) for n, sequence in enumerate(sequences))


def sam(draws: Draws, kilobases: int, count: int) -> bytes:
    """Return aligned reads of 100 letters in random order."""
    starts, sequences = sampled(draws, kilobases, count, 100)
    head = f"@HD\tVN:1.6\tSO:unsorted\n@SQ\tSN:chr1\tLN:{kilobases * 1000}\n".encode()
    rows = (
        b"r%d\t0\tchr1\t%d\t60\t100M\t*\t0\t0\t%s\t%s\n" % (n, start + 1, sequence, b"FFFFFIIIII" * 10)
        for n, (start, sequence) in enumerate(zip(starts, sequences, strict=True))
    )
    return head + b"".join(rows)


def proteins(draws: Draws, families: int, members: int, length: int) -> bytes:
    """Return families of protein sequences: each member differs from its ancestor in a quarter of the places.

    Files with sequences of one length share their first families, so that a search finds something.
    """
    parts = []
    for family in range(families):
        ancestor = Draws(f"family-{family}-{length}").below(20, length)
        changed = draws.below(4, members * length).reshape(members, length) == 0
        sequences = np.where(changed, draws.below(20, members * length).reshape(members, length), ancestor)
        cuts = draws.below(length // 8, members).tolist()
        for member, (row, cut) in enumerate(zip(sequences, cuts, strict=True)):
            parts.append(b">f%dm%d\n" % (family, member) + folded(letters(b"ACDEFGHIKLMNPQRSTVWY", row[cut:])))
    return b"".join(parts)


def ppm(draws: Draws, width: int, height: int) -> bytes:
    return b"P6\n%d %d\n255\n" % (width, height) + photo_rgb(draws.number(1 << 30), width, height).tobytes()


def png(draws: Draws, width: int, height: int) -> bytes:
    """Return a picture as PNG without compression, written by hand since versions of zlib differ."""
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = photo_rgb(draws.number(1 << 30), width, height).reshape(height, width * 3)
    raw = b"".join(b"\0" + row.tobytes() for row in pixels)
    blocks = [raw[i : i + 65535] for i in range(0, len(raw), 65535)]
    stored = b"".join(
        struct.pack("<BHH", n == len(blocks) - 1, len(block), len(block) ^ 0xFFFF) + block
        for n, block in enumerate(blocks)
    )
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + chunk(b"IDAT", b"\x78\x01" + stored + struct.pack(">I", zlib.adler32(raw)))
        + chunk(b"IEND", b"")
    )


def y4m(draws: Draws, width: int, height: int, frames: int) -> bytes:
    head = b"YUV4MPEG2 W%d H%d F30:1 Ip A1:1 C420jpeg\n" % (width, height)
    seed = draws.number(1 << 30)
    return head + b"".join(b"FRAME\n" + frame for frame in video_frames(seed, width, height, frames))


def wav(draws: Draws, seconds: int) -> bytes:
    """Return stereo sound of 16 bits at 44.1 kHz: chords that change, and some noise."""
    import struct

    samples = wave(draws.below, seconds * 44100).tobytes()
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 2, 44100, 44100 * 4, 4, 16)
    return (
        b"RIFF"
        + struct.pack("<I", 36 + len(samples))
        + b"WAVE"
        + form
        + b"data"
        + struct.pack("<I", len(samples))
        + samples
    )


def sql(draws: Draws, rows: int) -> bytes:
    """Return a script that fills two tables, makes an index, joins, groups and deletes."""
    names = words(draws, 500)
    people = draws.below(rows // 10 + 1, rows).tolist()
    amounts = draws.below(100_000, rows).tolist()
    tags = draws.skewed(500, rows).tolist()
    lines = [
        "CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT);",
        "CREATE TABLE sale(person INT, amount INT, tag TEXT);",
        "BEGIN;",
    ]
    lines += [f"INSERT INTO person VALUES({n},'{names[n % 500]}{n}');" for n in range(rows // 10 + 1)]
    lines += [f"INSERT INTO sale VALUES({p},{a},'{names[t]}');" for p, a, t in zip(people, amounts, tags, strict=True)]
    lines += [
        "COMMIT;",
        "SELECT tag, count(*), sum(amount) FROM sale GROUP BY tag ORDER BY 3 DESC, 1 LIMIT 20;",
        "CREATE INDEX by_person ON sale(person, amount);",
        "SELECT name, sum(amount) AS s FROM person JOIN sale ON sale.person = person.id "
        "GROUP BY person.id ORDER BY s DESC, name LIMIT 20;",
        "SELECT count(*) FROM sale a JOIN sale b ON a.person = b.person AND a.amount < b.amount;",
        "SELECT tag, avg(amount) FROM sale WHERE tag LIKE '%an%' GROUP BY tag ORDER BY 1 LIMIT 10;",
        "DELETE FROM sale WHERE amount % 3 = 0;",
        "SELECT count(*), max(amount) FROM sale;",
        "VACUUM;",
    ]
    return ("\n".join(lines) + "\n").encode()


def digraph(draws: Draws, nodes: int, edges: int) -> bytes:
    """Return a directed graph without cycles in the language of Graphviz."""
    first = draws.below(nodes - 1, edges).tolist()
    step = draws.skewed(max(nodes // 4, 2), edges).tolist()
    arrows = "".join(f"n{a} -> n{min(a + 1 + s, nodes - 1)};\n" for a, s in zip(first, step, strict=True))
    return ("digraph g {\n" + arrows + "}\n").encode()


def metis(draws: Draws, side: int) -> bytes:
    """Return a square grid of points with shortcuts, as METIS reads it."""
    count = side * side
    near: list[set[int]] = [set() for _ in range(count)]
    pairs = [(n, n + 1) for n in range(count) if (n + 1) % side] + [(n, n + side) for n in range(count - side)]
    pairs += [(a, b) for a, b in draws.below(count, count // 4 * 2).reshape(-1, 2).tolist() if a != b]
    for a, b in pairs:
        near[a].add(b)
        near[b].add(a)
    edges = sum(len(own) for own in near) // 2
    return (f"{count} {edges}\n" + "".join(" ".join(str(n + 1) for n in sorted(own)) + "\n" for own in near)).encode()


def linear(draws: Draws, rows: int, columns: int) -> bytes:
    """Return a packing problem with real amounts as an LP file."""
    return program(draws, rows, columns, "")


def whole(draws: Draws, rows: int, columns: int) -> bytes:
    """Return a packing problem with whole amounts as an LP file."""
    return program(draws, rows, columns, "General\n" + "".join(f" x{n}\n" for n in range(columns)))


def program(draws: Draws, rows: int, columns: int, kinds: str) -> bytes:
    gains = draws.below(90, columns) + 10
    weights = draws.below(60, rows * columns).reshape(rows, columns) - 40
    lines = ["Maximize", " gain: " + "\n  ".join(f"+ {g} x{n}" for n, g in enumerate(gains.tolist())), "Subject To"]
    for row, numbers in enumerate(weights.clip(min=0).tolist()):
        terms = "\n  ".join(f"+ {w} x{n}" for n, w in enumerate(numbers) if w)
        lines.append(f" r{row}: {terms or '+ 1 x0'} <= {max(sum(numbers) * 2, 7) // 3 + row % 17}")
    lines += ["Bounds", *(f" x{n} <= {3 + n % 5}" for n in range(columns))]
    return ("\n".join(lines) + "\n" + kinds + "End\n").encode()


def cnf(draws: Draws, variables: int, clauses: int) -> bytes:
    """Return a random 3-SAT problem in DIMACS form."""
    picks = draws.below(variables, clauses * 3).reshape(-1, 3) + 1
    signs = draws.below(2, clauses * 3).reshape(-1, 3) * 2 - 1
    rows = "".join(f"{a} {b} {c} 0\n" for a, b, c in (picks * signs).tolist())
    return f"p cnf {variables} {clauses}\n{rows}".encode()


def pigeons(draws: Draws, holes: int) -> bytes:  # noqa: ARG001
    """Return the problem of one pigeon more than there are holes, which has no solution."""
    name = [[pigeon * holes + hole + 1 for hole in range(holes)] for pigeon in range(holes + 1)]
    rows = [" ".join(map(str, own)) + " 0" for own in name]
    rows += [f"-{name[a][h]} -{name[b][h]} 0" for h in range(holes) for a in range(holes + 1) for b in range(a)]
    return f"p cnf {holes * (holes + 1)} {len(rows)}\n{chr(10).join(rows)}\n".encode()


def csource(draws: Draws, functions: int) -> bytes:
    """Return a C file, already preprocessed, of functions with loops, branches and calls."""
    parts = ["extern int printf(const char *, ...);\n"]
    picks = draws.below(1000, functions * 6).reshape(functions, 6).tolist()
    for n, (a, b, c, d, e, f) in enumerate(picks):
        call = f"f{e % n}(x + {f}, v)" if n else "x"
        parts.append(
            f"static int f{n}(int x, double *v) {{\n"
            f"  int s = {a}; double t = {b}.5;\n"
            f"  for (int i = 0; i < {c % 60 + 4}; i++) {{\n"
            f"    v[i] = v[i] * {d % 9 + 1} + t; s += (x ^ i) * {f + 1};\n"
            f"    if (s % {a % 7 + 2} == {b % 2}) t += v[i]; else switch (s & 3) {{\n"
            f"      case 0: s -= {c}; break; case 1: t *= 0.5; break; default: s ^= (int)t; }}\n"
            f"  }}\n  if (x > {d}) return s + {call};\n  return s + (int)t;\n}}\n"
        )
    parts.append(f'int main(void) {{ double v[64] = {{0}}; printf("%d\\n", f{functions - 1}(3, v)); return 0; }}\n')
    return "".join(parts).encode()


def asm(draws: Draws, lines: int) -> bytes:
    """Return an assembly file of labels, jumps, arithmetic and macros."""
    forms = (
        "add rax, {}", "mov rcx, [rbx + {} * 8]", "lea rdx, [rax + rcx * 4 + {}]", "imul rax, rdx, {}",
        "cmp rax, {}", "jne near .l{l}", "vaddpd ymm1, ymm2, [rsi + {}]", "work {}",
    )  # fmt: skip
    macro = "%macro work 1\n xor rax, %1\n%rep 3\n shl rax, 1\n add rax, %1\n%endrep\n%endmacro\n"
    head = f"bits 64\nsection .text\n{macro}global main\nmain:\n"
    kinds, numbers = draws.below(len(forms), lines).tolist(), draws.below(4000, lines).tolist()
    rows = (
        (f".l{n // 8}:\n" if n % 8 == 0 else "") + " " + forms[k].format(z, l=z % (lines // 8)) + "\n"
        for n, (k, z) in enumerate(zip(kinds, numbers, strict=True))
    )
    return (head + "".join(rows) + " ret\n").encode()


def points(draws: Draws, dimensions: int, count: int) -> bytes:
    """Return points of a cube, as Qhull reads them."""
    coordinates = draws.below(1_000_000, count * dimensions).reshape(count, dimensions).tolist()
    return (f"{dimensions}\n{count}\n" + "".join(" ".join(map(str, row)) + "\n" for row in coordinates)).encode()


def node(draws: Draws, count: int) -> bytes:
    """Return points of a cube, as TetGen reads them."""
    coordinates = draws.below(1_000_000, count * 3).reshape(count, 3).tolist()
    rows = "".join(f"{n} {x / 1000:.3f} {y / 1000:.3f} {z / 1000:.3f}\n" for n, (x, y, z) in enumerate(coordinates, 1))
    return f"{count} 3 0 0\n{rows}".encode()


def netlist(draws: Draws, stages: int, cycles: int) -> bytes:
    """Return a ladder of resistors, capacitors and diodes behind a pulse, for a SPICE program."""
    values = draws.below(900, stages * 2).reshape(stages, 2) + 100
    lines = ["* ladder", "V1 n0 0 PULSE(0 5 0 1n 1n 5u 10u)", ".model dm D(is=1e-14 cjo=1p)"]
    for n, (ohm, farad) in enumerate(values.tolist()):
        lines += [f"R{n} n{n} n{n + 1} {ohm}", f"C{n} n{n + 1} 0 {farad / 1000:.3f}p", f"D{n} n{n + 1} 0 dm"]
    lines += [".control", f"tran 10n {cycles * 10}u", f"meas tran top MAX v(n{stages})", "quit", ".endc", ".end"]
    return ("\n".join(lines) + "\n").encode()


def verilog(draws: Draws, units: int, cycles: int) -> bytes:
    """Return a circuit of counters and shift registers that feed each other, with a clock."""
    picks = draws.below(1 << 16, units).tolist()
    lines = ["module top;", "reg clk = 0; integer i;", f"wire [31:0] w [0:{units}];", "assign w[0] = 32'd1;"]
    lines += [f"unit #({z}) u{n}(clk, w[{n}], w[{n + 1}]);" for n, z in enumerate(picks)]
    lines += [
        f"initial begin for (i = 0; i < {2 * cycles}; i = i + 1) #1 clk = ~clk;",
        f'$display("%h", w[{units}]); $finish; end',
        "endmodule",
    ]
    lines += [
        "module unit #(parameter K = 1)(input clk, input [31:0] a, output reg [31:0] q);",
        "reg [31:0] s = K;",
        "initial q = K;",
    ]
    lines += ["always @(posedge clk) begin s <= {s[30:0], s[31] ^ s[21] ^ a[0]}; q <= (q ^ a) + s; end", "endmodule"]
    return ("\n".join(lines) + "\n").encode()


def solid(draws: Draws, x: int, y: int, z: int) -> bytes:  # noqa: ARG001
    """Return a clamped bar of x by y by z elements under a load, for CalculiX."""

    def at(i: int, j: int, k: int) -> int:
        return 1 + i + (x + 1) * (j + (y + 1) * k)

    corners = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))
    lines = ["*NODE, NSET=all"]
    lines += [f"{at(i, j, k)}, {i}.0, {j}.0, {k}.0" for k in range(z + 1) for j in range(y + 1) for i in range(x + 1)]
    lines.append("*ELEMENT, TYPE=C3D8, ELSET=bar")
    cells = [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
    lines += [
        f"{n}, " + ", ".join(str(at(i + a, j + b, k + c)) for a, b, c in corners)
        for n, (i, j, k) in enumerate(cells, 1)
    ]
    lines += ["*BOUNDARY", *(f"{at(0, j, k)}, 1, 3" for k in range(z + 1) for j in range(y + 1))]
    lines += ["*MATERIAL, NAME=steel", "*ELASTIC", "210000., 0.3", "*SOLID SECTION, ELSET=bar, MATERIAL=steel"]
    lines += ["*STEP", "*STATIC", "*CLOAD", f"{at(x, y, z)}, 2, -100.", "*NSET, NSET=tip", str(at(x, y, z))]
    return ("\n".join([*lines, "*NODE PRINT, NSET=tip", "U", "*END STEP"]) + "\n").encode()


def svm(draws: Draws, rows: int, features: int) -> bytes:
    """Return labelled sparse vectors with a few noisy labels, as liblinear reads them."""
    truth = draws.below(201, features) - 100
    lines = []
    for _ in range(rows):
        where = np.unique(draws.below(features, 24))
        values = draws.below(100, len(where)) + 1
        label = int((truth[where] * values).sum() + draws.number(4000) - 2000 > 0) * 2 - 1
        lines.append(
            f"{label:+d} "
            + " ".join(f"{w + 1}:{v / 100:.2f}" for w, v in zip(where.tolist(), values.tolist(), strict=True))
        )
    return ("\n".join(lines) + "\n").encode()


def pdf(draws: Draws, pages: int, shapes: int) -> bytes:
    """Return a document of filled curves and lines, without fonts."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{3 + 2 * n} 0 R" for n in range(pages))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>")
    for n in range(pages):
        rows = draws.below(600, shapes * 8).reshape(shapes, 8).tolist()
        strokes = "\n".join(
            f"{a / 600:.2f} {b / 600:.2f} {c / 600:.2f} {'rg' if d % 2 else 'RG'} "
            f"{a} {b} m {c} {d} {e} {f} {g} {h} c {'f' if d % 2 else 'S'}"
            for a, b, c, d, e, f, g, h in rows
        )
        objects.append(f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 600] /Contents {4 + 2 * n} 0 R >>")
        objects.append(f"<< /Length {len(strokes)} >>\nstream\n{strokes}\nendstream")
    body, places = "%PDF-1.4\n", []
    for n, content in enumerate(objects, 1):
        places.append(len(body))
        body += f"{n} 0 obj\n{content}\nendobj\n"
    entries = "".join(f"{place:010d} 00000 n \n" for place in places)
    tail = f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return f"{body}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{entries}{tail}".encode()


def go(draws: Draws, size: int, moves: int) -> bytes:
    """Return the commands of a game of Go that a program plays against itself after a random opening."""
    lines = [f"boardsize {size}", "clear_board", "komi 6.5"]
    spots = list(dict.fromkeys(draws.below((size - 2) * (size - 2), 8).tolist()))
    letters_ = "ABCDEFGHJKLMNOPQRST"
    for n, spot in enumerate(spots[:6]):
        lines.append(
            f"play {'black' if n % 2 == 0 else 'white'} {letters_[1 + spot % (size - 2)]}{2 + spot // (size - 2)}"
        )
    lines += [f"genmove {'black' if n % 2 == 0 else 'white'}" for n in range(moves)]
    return ("\n".join([*lines, "quit"]) + "\n").encode()


def digits(draws: Draws, kind: int, count: int) -> bytes:  # noqa: ARG001
    """Return a bc program: pi (1), e (2) or the root of two (3) to `count` places."""
    value = {1: "4*a(1)", 2: "e(1)", 3: "sqrt(2)"}[kind]
    return f"scale={count}\n{value}\nquit\n".encode()


def composites(draws: Draws, bits: int, count: int) -> bytes:
    """Return products of two primes, one a line."""

    def prime() -> int:
        candidate = 1 << bits - 1 | draws.number(1 << min(bits - 2, 30)) << max(0, bits - 32) | 1
        while any(pow(base, candidate - 1, candidate) != 1 for base in (2, 3, 5, 7, 11)):
            candidate += 2
        return candidate

    return "".join(f"{prime() * prime()}\n" for _ in range(count)).encode()


MAKERS: dict[str, Callable[..., bytes]] = {
    maker.__name__: maker
    for maker in (
        text, log, table, records, genome, reads, amplicons, sam, proteins, ppm, png, y4m, wav, sql, digraph, metis,
        linear, whole, cnf, pigeons, csource, asm, points, node, netlist, verilog, solid, svm, pdf, go, digits,
        composites,
    )
}  # fmt: skip


def content(name: str) -> bytes:
    """Return the bytes of the input file of this name."""
    kind, *sizes = name.partition(".")[0].split("-")
    if kind not in MAKERS or not all(size.isdecimal() for size in sizes):
        raise ValueError(f"{name}: no input has this name; expected KIND-SIZE.ENDING with a kind of {sorted(MAKERS)}")
    return MAKERS[kind](Draws(name), *map(int, sizes))


def make(name: str, folder: Path) -> Path:
    """Make the input file of this name in a folder, unless it is there, and return its path."""
    path = folder / name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"{name}.{os.getpid()}.tmp"
        part.write_bytes(content(name))
        part.replace(path)
    return path


def main() -> int:
    from apps import read

    folder = Path(sys.argv[1])
    names = sys.argv[2:] or sorted({name for app in read().values() for case in app.cases for name in app.files(case)})
    total = 0
    for name in names:
        size = make(name, folder).stat().st_size
        total += size
        print(f"{name} {size}", flush=True)
    print(f"{len(names)} files, {math.ceil(total / 1e6)} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
