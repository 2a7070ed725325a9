"""Makes a git repository of a text that changes a little from commit to commit."""

import random
import subprocess
import sys
from pathlib import Path

text, folder = Path(sys.argv[1]), Path(sys.argv[2])
part = folder.with_name(folder.name + ".part")
rng = random.Random(15)  # noqa: S311
lines = text.read_bytes().splitlines(keepends=True)
blocks = [lines[i : i + 200] for i in range(0, len(lines), 200)]
stream = []
for commit in range(60):
    for block in rng.sample(range(len(blocks)), max(1, len(blocks) // 6)):
        blocks[block][rng.randrange(len(blocks[block]))] = b"line %d of commit %d\n" % (rng.randrange(10**6), commit)
    who = b"A <a@example.org> %d +0000" % (1_700_000_000 + commit)
    stream.append(b"commit refs/heads/main\ncommitter %s\ndata 1\nx\n" % who)
    for number, block in enumerate(blocks):
        data = b"".join(block)
        stream.append(b"M 644 inline file%04d.txt\ndata %d\n%s\n" % (number, len(data), data))
subprocess.run(["git", "init", "-q", "--bare", str(part)], check=True)
subprocess.run(["git", f"--git-dir={part}", "fast-import", "--quiet"], input=b"".join(stream), check=True)
part.rename(folder)
