"""Input files that people make: texts, tables, pictures, films, sound, sources and pages."""

from __future__ import annotations

import numpy as np
from draws import Draws, words
from shapes import photo_rgb, video_frames, wave


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
