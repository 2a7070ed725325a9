"""Write the hashes of every release that constraints.txt names to requirements.lock; --check compares the two alone.

The hashes are those that the package index tells, of all files of a release, so that the lock holds on every platform.
Where pip is configured with a folder of wheels (find-links) that has a build of its own, as torch for processors alone
(``2.13.0+cpu``), the lock names that build for machines like this one: the file on the index asks for packages that
constraints.txt does not have, and pip would prefer it, since only the index tells its hash before it is read.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import platform
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

ROOT = Path(__file__).parents[1]
CONSTRAINTS, LOCK = ROOT / "constraints.txt", ROOT / "requirements.lock"
_LINK = re.compile(r'<a [^>]*href="([^"]+)#sha256=([0-9a-f]{64})"')
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s\\]+)")


def pins(path: Path) -> dict[str, str]:
    """Return the releases that a file names, by name."""
    matches = map(_PIN.match, path.read_text(encoding="utf-8").splitlines())
    return {canonicalize_name(match[1]): match[2].partition("+")[0] for match in matches if match}


def _version_of(filename: str) -> Version | None:
    """Return the version of a wheel or source archive, without the mark of a local build."""
    try:
        parse = parse_wheel_filename if filename.endswith(".whl") else parse_sdist_filename
        return Version(parse(filename)[1].public)
    except ValueError:
        return None


def _on_index(name: str, release: str) -> set[str]:
    from pip._internal.models.index import PyPI

    with urllib.request.urlopen(f"{PyPI.simple_url}/{name}/", timeout=120) as answer:  # noqa: S310
        page = answer.read().decode()
    links = ((urllib.parse.unquote(html.unescape(link)), digest) for link, digest in _LINK.findall(page))
    return {digest for link, digest in links if _version_of(link.rpartition("/")[2]) == Version(release)}


def _in_folders(name: str, release: str) -> Iterator[tuple[Version, str]]:
    """Yield the version, with the mark of a local build, and the hash of each wheel in pip's own folders."""
    asked = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    named = [line for line in asked.stdout.splitlines() if "find-links" in line]
    folders = {path for line in named for path in re.findall(r"'(.*)'", line)}
    for folder in sorted(folders):
        for path in sorted(Path(folder).glob("*.whl")):
            own = canonicalize_name(path.name.partition("-")[0])
            if own == name and _version_of(path.name) == Version(release):
                yield parse_wheel_filename(path.name)[1], hashlib.sha256(path.read_bytes()).hexdigest()


def _entry(pin: tuple[str, str]) -> str:
    digests, own = _on_index(*pin), list(_in_folders(*pin))
    builds = {str(version): digest for version, digest in own if version.local}
    digests |= {digest for version, digest in own if not version.local}
    if not digests:
        raise SystemExit(f"{pin[0]}=={pin[1]}: the index has no such release")
    machine = (sys.platform, platform.machine())
    elsewhere = f' ; sys_platform != "{machine[0]}" or platform_machine != "{machine[1]}"' if builds else ""
    here = f' ; sys_platform == "{machine[0]}" and platform_machine == "{machine[1]}"'
    entries = [(f"{pin[0]}=={pin[1]}{elsewhere}", sorted(digests))]
    entries += [(f"{pin[0]}=={version}{here}", [digest]) for version, digest in builds.items()]
    return "\n".join(_lines(*entry) for entry in entries)


def _lines(requirement: str, digests: Sequence[str]) -> str:
    return " \\\n    ".join([requirement, *(f"--hash=sha256:{digest}" for digest in digests)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the lock, or compare it with the constraints."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only tell whether the lock fits the constraints")
    wanted = pins(CONSTRAINTS)
    if parser.parse_args(arguments).check:
        held = pins(LOCK) if LOCK.exists() else {}
        differ = sorted(name for name in wanted.keys() | held.keys() if wanted.get(name) != held.get(name))
        if differ:
            print(f"{LOCK.name}: does not fit {CONSTRAINTS.name} ({', '.join(differ)}). Run: python tools/lock.py")
        return int(bool(differ))
    with ThreadPoolExecutor(8) as pool:
        entries = list(pool.map(_entry, sorted(wanted.items())))
    heading = f"# The releases of {CONSTRAINTS.name} with the hashes of their files; written by tools/lock.py."
    LOCK.write_text("\n".join([heading, *entries]) + "\n", encoding="utf-8")
    print(f"wrote {LOCK.name}: {len(entries)} releases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
