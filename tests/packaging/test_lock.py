"""What `make` installs is named by release and by the hashes of its files."""

from __future__ import annotations

import re

from packaging.requirements import Requirement
from tools import lock


def test_the_lock_names_the_releases_of_the_constraints() -> None:
    assert lock.main(["--check"]) == 0, "constraints.txt has changed: run python tools/lock.py"


def test_every_release_has_hashes() -> None:
    text = lock.LOCK.read_text(encoding="utf-8").replace("\\\n", " ")
    entries = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"\S+==\S+( ; [^-]+)?(\s+--hash=sha256:[0-9a-f]{64})+\s*", entry) for entry in entries)
    assert {entry.partition("==")[0] for entry in entries} == set(lock.pins(lock.CONSTRAINTS))


def test_a_release_with_a_build_of_its_own_is_named_once_for_each_machine() -> None:
    """Of two files that fit, pip takes the one on the index, which asks for packages that are not locked."""
    text = lock.LOCK.read_text(encoding="utf-8")
    heads = [Requirement(line.rstrip("\\ ")) for line in text.splitlines() if line[:1].isalnum()]
    for machine in (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")):
        known = {"sys_platform": machine[0], "platform_machine": machine[1]}
        names = [own.name for own in heads if own.marker is None or own.marker.evaluate(known)]
        assert len(names) == len(set(names)) == len(lock.pins(lock.CONSTRAINTS)), machine
    assert [str(own.specifier) for own in heads if own.name == "torch"] == ["==2.13.0", "==2.13.0+cpu"]


def test_what_builds_this_package_is_locked() -> None:
    """It is installed as a checkout and without an environment of its own, which needs these two."""
    assert {"hatchling", "editables", "setuptools"} <= set(lock.pins(lock.LOCK))
