"""The versions of everything that computes results: code, interpreter, packages, programs.

All of it is in every cache key (rule 31): another version may give another result.
Nothing is imported to determine its version, as most runs need only a few of the packages.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

__all__ = ["PACKAGES", "Version", "code_version", "file_version", "package_version", "versions"]

Version = tuple[str, str]  # name, and a text that differs between versions

ROOT = Path(__file__).parent.parent.parent
# Import name -> name of the installed package.
PACKAGES = {
    "bitwuzla": "bitwuzla", "capstone": "capstone", "elftools": "pyelftools",
    "highspy": "highspy",
    "networkx": "networkx", "numpy": "numpy", "pulp": "pulp", "pypcode": "pypcode",
}  # fmt: skip


def versions(*folders: str) -> tuple[Version, ...]:
    """The versions of the interpreter, the installed packages, and the named project folders."""
    python = f"{platform.python_implementation()} {sys.version}"
    return (
        ("python", python),
        *((name, package_version(name)) for name in PACKAGES),
        *((folder, code_version(ROOT / folder)) for folder in folders),
    )


@cache
def package_version(name: str) -> str:
    """Name, version, and the hash of the installer's list of hashes.

    Without such a list, or with several, the hash of all files of the package; "absent" if it is
    not installed.
    """
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return "absent"
    package = Path(spec.origin)  # one file, or a folder
    if spec.submodule_search_locations is not None:
        package = package.parent
    found = [n for n in _installed(str(package.parent)) if n.startswith(f"{PACKAGES[name]}-")]
    try:
        (information,) = found
        content = (package.parent / information / "RECORD").read_bytes()
        return f"{information} {hashlib.sha256(content).hexdigest()}"
    except (ValueError, OSError):
        return code_version(package) if package.is_dir() else file_version(package)


@cache
def _installed(folder: str) -> tuple[str, ...]:
    """The metadata of the packages installed in a folder."""
    return tuple(sorted(n for n in os.listdir(folder) if n.endswith(".dist-info")))


@cache
def code_version(folder: Path) -> str:
    """The hash of the names and contents of all files below a folder."""
    digest = hashlib.sha256()
    folders = [str(folder)]
    while folders:
        at = folders.pop()
        for entry in sorted(os.scandir(at), key=lambda e: e.name):
            if entry.is_dir():
                if entry.name != "__pycache__":
                    folders.append(entry.path)
            elif entry.is_file():
                name = os.fsencode(os.path.relpath(entry.path, folder))
                with open(entry.path, "rb") as file:
                    digest.update(len(name).to_bytes(4, "big") + name)
                    digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


@cache
def file_version(path: Path) -> str:
    """The hash of a file; the reason if it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as fault:
        return f"{path}: {fault.strerror or fault}"
