"""Submissions made to keep a controller busy: what Slurm takes of an ordinary user, as large as it takes it."""

from __future__ import annotations

from typing import Any

#: Bytes of a text, about as many as Slurm takes in a job's script without a word.
SIZE = 65_000


def repeated(text: str) -> str:
    return (text * (SIZE // len(text) + 1))[:SIZE]


#: What a script may hold, by what it is.
SCRIPTS = {
    "blanks": repeated(" "),
    "blanks before a word": repeated(" ") + "x",
    "blanks between two words": "x" + repeated(" ") + "x",
    "slashes": repeated("/"),
    "slashes before a letter": repeated("/") + "x",
    "a path of many folders": repeated("a/"),
    "digits after a name": "python" + repeated("1.") + "x",
    "digits": "srun " + repeated("1"),
    "one long word": repeated("x"),
    "quotes": repeated("'"),
    "letters on lines of their own": repeated("a\n"),
    "words": repeated("-n "),
    "assignments": repeated("A=1 "),
    "a name before no equals sign": repeated("A"),
    "remarks": repeated("#\n"),
    "blanks before remarks": repeated("                #\n"),
    "lines that go on": repeated("\\\n"),
    "launchers": repeated("srun "),
    "interpreters": "python " + repeated("-m"),
    "bytes of no text": repeated("\x00\x01"),
    "line ends": repeated("\n"),
    "carriage returns": repeated("\r"),
}
#: What a comment may hold.
COMMENTS = {
    "words without a value": repeated(" a="),
    "an open quote": ' a="' + repeated("b"),
    "many open quotes": repeated(' a="b'),
    "letters": " " + repeated("a"),
    "blanks": repeated(" "),
    "semicolons": repeated(";"),
    "percent signs": " app=" + repeated("%41"),
    "a long name": " app=" + repeated("x"),
    "a long input": " app=lmp input=" + repeated("x"),
    "words of many names": "".join(f" {'a' * (n % 200)}=b" for n in range(600)),
}
#: What other fields may hold.
FIELDS: dict[str, dict[str, Any]] = {
    "a long name": {"name": repeated("n")},
    "many features": {"name": "lmp", "features": repeated("x86&")},
    "one long feature": {"name": "lmp", "features": repeated("x")},
    "many resources": {"name": "lmp", "tres_per_node": repeated("gres:gpu:1,")},
    "one long resource": {"name": "lmp", "tres_per_job": "gres:" + repeated("1:")},
    "a long account": {"name": "lmp", "account": repeated("a,")},
    "a long user": {"name": "lmp", "user_name": repeated("u")},
    "many nodes": {"name": "lmp", "min_nodes": 4294967293},
}
#: Every one of them as a job, by name.
JOBS: dict[str, dict[str, Any]] = {
    **{f"script: {what}": {"name": "run.sh", "script": script} for what, script in SCRIPTS.items()},
    **{f"comment: {what}": {"name": "run.sh", "comment": comment} for what, comment in COMMENTS.items()},
    **FIELDS,
}
