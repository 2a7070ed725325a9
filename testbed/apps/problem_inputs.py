"""Input files that science and engineering make: sequences, graphs, equations, circuits, solids, games and numbers."""

from __future__ import annotations

import numpy as np
from draws import Draws, letters


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
