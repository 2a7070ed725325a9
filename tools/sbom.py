"""Write what a release is made of and tested with, as CycloneDX JSON: the files of dist/, and what it depends on.

python tools/sbom.py dist        # writes dist/crossperf-VERSION.cdx.json

Components are the packages that pyproject.toml names for running crossperf, with what they need, in the releases of
constraints.txt. The same inputs give the same bytes: no time and no random number stand in it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def normal(name: str) -> str:
    """Return a package's name as PyPI spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned() -> dict[str, str]:
    """Return the release of each package in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {normal(name): version.split(";")[0].strip() for name, version in pairs}


def needed(requirements: list[str], known: dict[str, str]) -> set[str]:
    """Return the packages that some need to run, with what these need in turn, as far as they are pinned."""
    names, waiting = set[str](), [normal(re.split(r"[\s\[<>=!~;(]", text, maxsplit=1)[0]) for text in requirements]
    while waiting:
        name = waiting.pop()
        if name in known and name not in names:
            names.add(name)
            waiting += [normal(re.split(r"[\s\[<>=!~;(]", text, maxsplit=1)[0]) for text in _requires(name)]
    return names


def _requires(name: str) -> list[str]:
    try:
        return [text for text in metadata.requires(name) or [] if "extra ==" not in text]
    except metadata.PackageNotFoundError:
        return []


def document(folder: Path) -> dict[str, Any]:
    """Return the bill of materials of the files in a folder."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    known = pinned()
    components = [
        {"type": "library", "name": name, "version": known[name], "purl": f"pkg:pypi/{name}@{known[name]}"}
        for name in sorted(needed(project["dependencies"], known))
    ]
    files = [
        {"type": "file", "name": path.name, "hashes": [{"alg": "SHA-256", "content": _sha256(path)}]}
        for path in sorted(folder.iterdir())
        if path.suffix in (".whl", ".gz")
    ]
    own = {"type": "library", "name": project["name"], "version": project["version"]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": own | {"licenses": [{"expression": project["license"]}]}},
        "components": components + vendored() + files,
    }


def vendored() -> list[dict[str, Any]]:
    """Return the scripts of others that the package carries, named after their release in the folder of them."""
    scripts = sorted((ROOT / "src/crossperf/serve/web/static/vendor").glob("*.min.js"))
    parts = []
    for path in scripts:
        name, version = path.name.removesuffix(".min.js").rsplit("-", 1)
        facts = {"type": "library", "name": f"{name}.org", "version": version, "purl": f"pkg:npm/{name}.org@{version}"}
        parts.append(facts | {"hashes": [{"alg": "SHA-256", "content": _sha256(path)}]})
    return parts


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    facts = document(folder)
    own = facts["metadata"]["component"]
    path = folder / f"{own['name']}-{own['version']}.cdx.json"
    path.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    print(f"{len(facts['components'])} components; wrote {path}")


if __name__ == "__main__":
    main()
