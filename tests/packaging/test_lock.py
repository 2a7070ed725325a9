"""What `make` installs is named by release and by the hashes of its files."""

from __future__ import annotations

import re

from tools import lock


def test_the_lock_names_the_releases_of_the_constraints() -> None:
    assert lock.main(["--check"]) == 0, "constraints.txt has changed: run python tools/lock.py"


def test_every_release_has_hashes() -> None:
    text = lock.LOCK.read_text(encoding="utf-8").replace("\\\n", " ")
    entries = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert len(entries) == len(lock.pins(lock.CONSTRAINTS))
    assert all(re.fullmatch(r"\S+==\S+(\s+--hash=sha256:[0-9a-f]{64})+\s*", entry) for entry in entries)
